"""The queries that have names: queries/*.sql.

The first line of such a file says in a comment what the query answers. A query with two halves looks at each slice in
the first one; the second one is asked of the table `mapped`, which the first one gives:

    -- then      it needs the other tables, too: both halves are asked of the whole database
    -- reduce    it needs `mapped` alone: the first half can be asked of each trace by itself, wherever that is
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass

from .source import TraceError

PLACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "queries")


class NoQuery(TraceError):
    """There is no query of this name; the text is one line."""


@dataclass(frozen=True)
class Query:
    """name, doc: one line; first: SQL; reduce, then: the second half, SQL, one of them or none."""

    name: str
    doc: str
    first: str
    reduce: str = ""
    then: str = ""

    @property
    def sql(self):
        """All of it, for one database."""
        second = self.reduce or self.then
        return f"with mapped as (\n{self.first}\n)\n{second}" if second else self.first


def queries():
    """All of them, by name: a list of Query."""
    return [_read(name) for name in sorted(os.listdir(PLACE)) if name.endswith(".sql")]


def names():
    """Their names: a list of str."""
    return sorted(name.removesuffix(".sql") for name in os.listdir(PLACE) if name.endswith(".sql"))


def find(name):
    """The Query of this name. Raises NoQuery, with the names that are alike."""
    if name in names():
        return _read(name + ".sql")
    alike = difflib.get_close_matches(name, names(), 1)
    raise NoQuery(f"no query is called '{name}'" + (f"; did you mean {alike[0]}?" if alike else "; see xstrace-query --list"))


def _read(file):
    with open(os.path.join(PLACE, file), encoding="utf-8") as opened:
        doc, text = opened.read().split("\n", 1)
    parts = re.split(r"^-- (then|reduce)\n", text, flags=re.M)
    second = {parts[1]: parts[2].strip()} if len(parts) == 3 else {}
    return Query(file.removesuffix(".sql"), doc.removeprefix("-- "), parts[0].strip(), **second)
