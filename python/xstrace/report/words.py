"""Numbers and sentences as a reader sees them."""

from __future__ import annotations

import re

from ..summary import UNITS_BYTES, UNITS_NS, with_unit

NAME_MAX = 500  # characters of a name that are shown
PLACEHOLDER = re.compile(r"\{(\w+)(?::(\w+))?\}")


def time(ns):
    """Nanoseconds with a unit."""
    return "–" if ns is None else ("-" if ns < 0 else "") + with_unit(abs(ns), UNITS_NS)


def size(count):
    """Bytes with a unit."""
    return with_unit(count, UNITS_BYTES)


def share(part):
    """A part of 1 in percent."""
    return f"{100 * part:.1f} %" if part < 0.1 else f"{100 * part:.0f} %"


def number(value):
    """With groups of digits; fractions with six significant digits at most."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def name(text):
    """A name from a trace: printable, and not all of a megabyte."""
    text = str(text)
    if len(text) > NAME_MAX:
        text = text[: NAME_MAX * 2 // 3] + "…" + text[-NAME_MAX // 3 :]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


KINDS = {"ns": time, "n": number, "value": number, "": name}


def filled(sentence, detail):
    """The sentence with its {word:kind} replaced by values of the dict."""
    return PLACEHOLDER.sub(lambda match: KINDS[match[2] or ""](detail[match[1]]), sentence)
