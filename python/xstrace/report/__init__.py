"""xstrace-report: one page that tells why a program is slow.

command.py   the command line
examine.py   what one trace tells, by SQL over its tables: sections; moments.py: steps and the drawing's data; findings.py
prelude.py   the tables in between, which the SQL of findings reads
reduce.py    many traces' parts become one report
page.py      that as HTML; drawing.py: its pictures; style.py: its looks; words.py: numbers and sentences
"""

from .command import main

__all__ = ["main"]
