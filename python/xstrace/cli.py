"""What the commands share: options, and text that is safe to print."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import unicodedata

from .running import discard_output
from .source import ZSTD_WINDOW, ZSTD_WINDOWS

SAID = 300  # characters of what a file says, in a message


def put(command, lines):
    """Writes the lines (a list of str) to stdout; where that fails, says so and exits with 2."""
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"{command}: cannot write: {error.strerror}", file=sys.stderr)
        discard_output()
        sys.exit(2)


def say_unusable(command, path, error):
    """One line on stderr: why `command` cannot use the file `path` (an OSError or a TraceError)."""
    reason = getattr(error, "strerror", None) or str(error)
    print(f"{command}: {printable(path)}: {said(reason)}", file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """One line says what is wrong, and what to do: which option was meant, or where all are. Its status is 2."""

    def parse_args(self, args=None, namespace=None):
        """As argparse does; but a mistaken option comes before what else is missing."""
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for word in sys.argv[1:] if args is None else args:
            name = word.partition("=")[0]
            if name == "--":
                break
            if not name.startswith("--") or " " in name or any(one.startswith(name) for one in known):
                continue
            near = difflib.get_close_matches(name[2:], [one[2:] for one in known], 1)
            text = f"unknown option {said(name)}"
            self.refuse(f"{text}; did you mean --{near[0]}?" if near else f"{text}; see {self.prog} --help")
        return super().parse_args(args, namespace)

    def error(self, message):
        """What argparse found wrong; does not return."""
        self.refuse(f"{said(message)}; see {self.prog} --help")

    def refuse(self, text):
        """Ends with this line (str); a command that does so in a way of its own overrides it."""
        self.exit(2, f"{self.prog}: {text}\n")


def add_zstd_window(parser):
    """The option --zstd-window."""
    parser.add_argument(
        "--zstd-window",
        type=_window,
        default=ZSTD_WINDOW,
        metavar="BYTES",
        help="largest window of a .zst that is read (suffixes K, M, G; default 8M)",
    )


def add_memory_limit(parser, default="1G", of="use about so much memory"):
    """The option --memory-limit. default: str. of: what it bounds."""
    told = f"{of} (suffixes K, M, G, T; default {default})"
    parser.add_argument("--memory-limit", type=_memory, default=default, metavar="BYTES", help=told)


def _memory(text):
    size = _size(text)
    if size < 64 << 20:
        raise argparse.ArgumentTypeError(f"takes bytes from 64M on, not '{printable(text)}'")
    return size


def _window(text):
    size = _size(text)
    if not ZSTD_WINDOWS[0] <= size <= ZSTD_WINDOWS[1]:
        raise argparse.ArgumentTypeError(f"takes bytes from 1K to 2G, not '{printable(text)}'")
    return size


def _size(text):
    """Bytes; 0: it is no size."""
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)B?", text, re.ASCII)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]] if match else 0


def said(text):
    """The text as a message can hold it: printable, and not all of a megabyte."""
    return clip_middle(printable(str(text)[: 100 * SAID]), SAID)


def printable(text):
    """The text with ? for each character that could move the cursor, break the line, or worse."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "?" for character in text)


def columns(text):
    """Columns that a terminal needs for the text."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def clip(text, width):
    """The text, cut with … where it has more than `width` columns."""
    if columns(text) <= width:
        return text
    kept = []
    left = width - 1
    for character in text:
        left -= _columns_of(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def clip_middle(text, width):
    """As clip(), but of a long text the end stays, too: names often differ only there."""
    if columns(text) <= width or width < 9:
        return clip(text, width)
    tail = text[-(width // 3) :]
    while columns(tail) > width // 3:
        tail = tail[1:]
    return clip(text, width - columns(tail)) + tail


def clip_path(path, width):
    """The path, as much of its end as has room."""
    if columns(path) <= width:
        return path
    return clip(os.path.basename(path), width)


def _columns_of(character):
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def microseconds(ns):
    """Nanoseconds as they stand in a trace: microseconds with three decimals, exact."""
    sign = "-" if ns < 0 else ""
    return "%s%d.%03d" % (sign, *divmod(abs(ns), 1000))
