"""categorize.py and summary.py, with the options of unitrace's scripts of these names: times of kernels by category.

A schema says which kernels belong to which category. It is an INI file, or what categorize.py makes of one: a tree of prefixes,
`{"length": n, "next": {first n characters: tree}}`, where `category` holds for what goes no further, and the key "" for an exact end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import sys

from .cli import Parser, add_memory_limit, printable, put, said
from .running import SMALL, command, opened, spare, written
from .report_tables import Misuse, readings_of
from .workers import Unavailable

SECTION = re.compile(r"\[\s*(?P<name>[^\]]*?)\s+if\s+(?P<verb>[^\]]*?)\s*\]")
VERBS = {"equalsto": "exact", "startswith": "start", "endswith": "end"}
BLANKS = str.maketrans("", "", " \t")
DEEPEST = 400  # prefixes in each other


# ---- schemas ----


def read_ini(path):
    """The rules of a schema: a list of (text, category, "exact", "start" or "end"). Raises OSError, Misuse."""
    rules = []
    category = kind = None
    with opened(path, most=SMALL, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("[") and line.endswith("]") and " if " in line:
                found = SECTION.fullmatch(line)
                kind = VERBS.get(found["verb"].translate(BLANKS)) if found else None
                if not kind:
                    raise Misuse(f"line {number}: a section is [NAME if equals to], [NAME if starts with] or [NAME if ends with]")
                category = found["name"].partition(".")[0].strip()
            elif kind is None:
                raise Misuse(f"line {number}: a name in front of the first section")
            else:
                rules.append((re.sub(r"\s*:=\s*", ":=", line, count=1), category, kind))
    if not rules:
        raise Misuse("no names in it")
    return rules


def schema_of(rules, ignore_spaces=True):
    """What categorize.py writes (a dict for JSON) of the rules that read_ini() gives."""
    direct, reverse = [], []
    for text, category, kind in rules:
        text = text.translate(BLANKS) if ignore_spaces else text
        if kind == "end":
            reverse.append((text[::-1], category, False))
        else:
            direct.append((text, category, kind == "exact"))
    return {"ignore_spaces": ignore_spaces, "direct": _tree(direct), "reverse": _tree(reverse)}


def _tree(rules, begin=0, depth=0):
    """The prefix tree of (text, category, is exact), from `begin` on. All texts that begin alike share a branch, as long as the shortest of them."""
    if depth > DEEPEST - 2:  # below it are two levels more
        raise Misuse(f"more than {DEEPEST - 2} names, each of which begins (or ends) with the one before")
    end = min((len(text) for text, _, _ in rules), default=begin + 1)
    branches, longer = {}, {}
    for rule in rules:
        text, category, is_exact = rule
        key = text[begin:end]
        if len(text) > end:
            longer.setdefault(key, []).append(rule)
        elif is_exact:
            branches[key] = {"next": {"": {"category": category}}}
        else:
            branches[key] = {"category": category}
    for key, rest in longer.items():
        here, below = branches.get(key, {}), _tree(rest, end, depth + 1)
        branches[key] = {**here, **below, "next": {**below["next"], **here.get("next", {})}}
    return {"length": end - begin, "next": branches}


def category_of(schema, name):
    """The category of a name, None: the schema has none. The longest rule that fits counts; beginnings before ends."""
    if schema["ignore_spaces"]:
        name = name.translate(BLANKS)
    found = _search(schema["direct"], name)
    return found if found is not None else _search(schema["reverse"], name[::-1])


def _search(tree, text):
    category = None
    while True:
        category = tree.get("category", category)
        branches = tree.get("next", {})
        if not text:
            return branches.get("", {}).get("category", category)
        length = tree.get("length")
        branch = branches.get(text[:length]) if length and len(text) >= length else None
        if branch is None:
            return category
        tree, text = branch, text[length:]


def load_schema(path):
    """A schema, of INI or of categorize.py's JSON. Raises OSError, Misuse."""
    with opened(path, most=SMALL, encoding="utf-8", errors="replace") as file:
        text = file.read(1).strip()
        if text != "{":
            return schema_of(read_ini(path))
        try:
            schema = json.loads(text + file.read())
            _check_tree(schema["direct"])
            _check_tree(schema["reverse"])
            schema["ignore_spaces"] = bool(schema["ignore_spaces"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Misuse("neither INI nor what categorize.py writes") from None
    return schema


def _check_tree(tree, depth=0):
    if type(tree) is not dict or depth > DEEPEST or type(tree.get("length", 1)) is not int or type(tree.get("category", "")) is not str:
        raise ValueError
    branches = tree.get("next", {})
    if type(branches) is not dict:
        raise ValueError
    for branch in branches.values():
        _check_tree(branch, depth + 1)


# ---- sums ----


def _beside(values, at):
    """The value next to the least (at 1) or the largest (-2); of two their mean."""
    values = sorted(values)
    if len(values) == 2:
        return sum(values) // 2
    return values[at] if len(values) > 2 else values[0]


AGGREGATORS = {
    "min": min,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": math.fsum,
    "min+1": lambda values: _beside(values, 1),
    "max-1": lambda values: _beside(values, -2),
}


def summarize_categories(readings, schema, aggregator="mean"):
    """{category_time: ns, category_calls: number} of readings, as readings_of() gives them: (section, {name: (ns, calls)}).

    Each name is aggregated over the readings that have it; the names of a category are added.
    """
    values = {"device": {}, "comm": {}}
    for section, table in readings:
        for name, row in table:
            if section in values:
                values[section].setdefault(name, []).append(row)
    sums = {}
    aggregate = AGGREGATORS[aggregator]
    for section, names in values.items():
        for name, rows in names.items():
            category = category_of(schema, name)
            category = section if category is None else category
            if category:
                for label, at in (("time", 0), ("calls", 1)):
                    key = f"{category}_{label}"
                    sums[key] = sums.get(key, 0) + aggregate([row[at] for row in rows])
    return sums


# ---- the commands ----


@command("categorize.py", 1)
def categorize_main(argv=None):
    """categorize.py: 0, or 1 when a file is not as it must be."""
    parser = Parser(
        prog="categorize.py",
        description="Makes of a schema in INI the JSON that summary.py takes, too.",
        epilog="Example: categorize.py --ini LLaMA.ini --json LLaMA.json",
    )
    parser.add_argument("-v", "--verbose", action="count", default=0, help="write the JSON for people")
    parser.add_argument("--ini", "--input", required=True, metavar="FILE", help="the schema")
    parser.add_argument("--json", "--output", required=True, metavar="FILE", help="where to put the JSON; - for the terminal")
    parser.add_argument("--remove-spaces", action=argparse.BooleanOptionalAction, default=True, help="blanks in names do not count")
    options = parser.parse_args(argv)
    try:
        spare([options.ini], [options.json])
        schema = schema_of(read_ini(options.ini), options.remove_spaces)
    except (OSError, Misuse, RecursionError) as error:
        return _fail("categorize.py", options.ini, error)
    return _write(
        "categorize.py",
        options.json,
        json.dumps(schema, indent=3 if options.verbose else None, separators=None if options.verbose else (",", ":")),
    )


@command("summary.py", 1)
def summary_main(argv=None):
    """summary.py: 0; 1 when a file is not as it must be, or something of it was left out."""
    parser = Parser(
        prog="summary.py",
        description="Times and calls of kernels by category, over all processes: of reports (-h -d -r) or of traces.",
        epilog="Example: summary.py --input reports.tgz --schema LLaMA.ini --output sums.json . Exit status: 0 (what was cut off a "
        "file was never there); 1 when something of a file was left out, or there is no report and no trace; a line on stderr says which.",
    )
    add = parser.add_argument
    add("-v", "--verbose", action="count", default=0, help="say what is read; twice: and which names have no category")
    add(
        "--tarfile",
        "--input",
        required=True,
        metavar="PLACE",
        help="a tarball, a directory, a pattern in quotes or one file of reports or traces",
    )
    add("--schema", metavar="FILE", help="INI, or JSON of categorize.py (default: LLaMA.ini, which is installed)")
    add("--aggregator", choices=list(AGGREGATORS), default="mean", help="over the processes that have a name (default: mean)")
    add("--skip-empty", action=argparse.BooleanOptionalAction, default=True, help="write nothing where there is nothing")
    add("--json", "--output", metavar="FILE", help="where to put the sums (default: the terminal)")
    add("--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers read the files of a directory, where they are")
    add_memory_limit(parser)
    options = parser.parse_args(argv)
    path = options.schema or os.path.join(os.path.dirname(__file__), "schemas", "LLaMA.ini")
    warned = _Warned()
    try:
        schema = load_schema(path)
        schema_file, path = path, options.tarfile
        readings, names = [], [schema_file, path]
        for name, section, table in readings_of(path, warned, options.scheduler, options.memory_limit):
            if options.verbose:
                print(f"summary.py: {printable(name)}: {len(table)} names ({section})", file=sys.stderr)
            readings.append((section, table))
            names.append(name)
        path = options.json
        spare(names, [path])
    except (OSError, Misuse, Unavailable) as error:
        return _fail("summary.py", path, error)
    if options.verbose > 1:
        for name in sorted({name for _, table in readings for name, _ in table if category_of(schema, name) is None}):
            print(f"summary.py: no category: {printable(name)}", file=sys.stderr)
    sums = summarize_categories(readings, schema, options.aggregator)
    if not sums and options.skip_empty:
        return warned.status
    return _write("summary.py", options.json or "-", json.dumps(sums, indent=2)) or warned.status


class _Warned:
    """Says what cannot be read; `status` is 1 as soon as the sums would be others with it."""

    def __init__(self):
        self.status = 0

    def __call__(self, text, is_missing=True):
        print(f"summary.py: {printable(text)}", file=sys.stderr)
        self.status |= is_missing


def _write(command, path, text):
    try:
        if path == "-":
            put(command, [text])
        else:
            with written(path, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
    except OSError as error:
        return _fail(command, path, error)
    return 0


def _fail(command, path, error):
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    print(f"{command}: {printable(path)}: {said(reason)}", file=sys.stderr)
    return 1
