"""What the names mean that a command is given: a directory, or a pattern. Every command looks by these functions, and no other way.

As xstrace-merge does it: links are followed, each directory is entered once whatever leads to it, so that a link to one above
does not lead round, and hidden names are passed over. Directories of tables (TABLES) hold no traces.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re

TABLES = ".tables"  # how a directory's name ends where convert.py keeps tables of a trace
ANY_DEPTH = re.compile(r"(?:\A|(?<=/))\*\*(?:/+|\Z)")


def walk(top, met=None):
    """Yields (directory, names in it) for the directory `top` ("": this one) and those below, names in their order.

    met: a set of the directories that are not to be entered again, which grows.
    """
    met = set() if met is None else met
    waiting = [top]
    while waiting:
        place = waiting.pop()
        try:
            status = os.stat(place or ".")
            names = sorted(name for name in os.listdir(place or ".") if not name.startswith("."))
        except OSError:
            continue
        key = status.st_dev, status.st_ino
        if key in met:
            continue
        met.add(key)
        yield place, names
        paths = (os.path.join(place, name) for name in reversed(names) if not name.endswith(TABLES))
        waiting += [path for path in paths if os.path.isdir(path)]


def below(top, names):
    """The paths of what has such a name, as ("*.json",) tells it, in the directory `top` and below; directories are none of them."""
    paths = (
        os.path.join(place, name) for place, found in walk(top) for name in found if any(fnmatch.fnmatchcase(name, one) for one in names)
    )
    return [path for path in paths if not os.path.isdir(path)]


def matching(pattern):
    """The paths of a pattern, sorted. `**` stands for any directories below."""
    first, *rest = ANY_DEPTH.split(pattern)
    rest = [part for part in rest[:-1] if part] + rest[-1:]  # two in a row are one
    found = glob.glob(first) if first or not rest else [""]
    for part in rest:
        met = set()
        directories = [place for top in found if os.path.isdir(top or ".") for place, _ in walk(top, met)]
        found = [path for place in directories for path in glob.glob(os.path.join(glob.escape(place), part or "*"))]
    return sorted(set(found))


def identity(path):
    """What tells whether two paths are of one file, under whatever names; of what is not there, the path."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def meant(place, names):
    """The paths that `place` stands for: itself, what has such names in a directory and below, what a pattern means."""
    if os.path.isdir(place):
        return below(place, names)
    return [place] if os.path.exists(place) else matching(place)
