"""python -m xstrace [options] app.py [args]: runs a Python program under xstrace."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

# Options of xstrace that take their value as the next word are known to xstrace alone: the program is the first word
# that is a file, or follows "-m" or "--".
USAGE = """usage: python -m xstrace [options] app.py [args]
       python -m xstrace [options] -m module [args]

Runs the Python program under xstrace, with this Python. Options: xstrace --help.
Without any, those that show ITT tasks and ranges: --chrome-itt-logging.
"""
DEFAULT = ["--chrome-itt-logging"]


def launcher() -> Path | None:
    """The program xstrace of this package's own installation."""
    from ._load import LEVELS

    for place in list(Path(__file__).resolve().parents)[1 : LEVELS + 1]:
        if (place / "lib/xstrace").is_dir() and os.access(place / "bin/xstrace", os.X_OK):
            return place / "bin/xstrace"
    return None


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """Options, and the program with its arguments."""
    for i, word in enumerate(words):
        if word == "--":
            return words[:i], words[i + 1 :]
        if word == "-m" or os.path.isfile(word) and (i == 0 or word.endswith((".py", ".pyz"))):
            return words[:i], words[i:]
    return words, []


def main() -> int:
    options, program = split(sys.argv[1:])
    path = launcher()
    if not program:
        if options and options[0] not in ("-h", "--help"):
            print(f"xstrace: no Python program among: {' '.join(options)}", file=sys.stderr)
            print(USAGE, end="", file=sys.stderr)
            return 2
        print(USAGE, end="")
        return 0
    if path is None:
        print("xstrace: the package was installed without its native parts; pip install . builds them", file=sys.stderr)
        return 125
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored is inherited
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    os.execv(path, [os.fspath(path), *(options or DEFAULT), sys.executable, *program])


if __name__ == "__main__":
    sys.exit(main())
