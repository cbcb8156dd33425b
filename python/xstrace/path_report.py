"""What xstrace-path has found, as a dict for JSON and as tables for a terminal."""

from __future__ import annotations

import numpy as np

from .cli import clip_middle, columns, printable
from .path_core import NONE
from .path_graph import CALL, CATEGORIES, COPY, KERNEL, TASK

HOST, DEVICE = CATEGORIES.index("host"), CATEGORIES.index("device")
NO_SLACK = np.iinfo(np.int64).max
NAME_WIDTH = 48
NUMBERS = ("of this", "share", "times", "if halved", "run's length", "change", "waited", "may grow by")  # headings of columns


def kind_of(graph, category, name):
    """The word for time of a category spent on a name (its number)."""
    kind = graph.name_kind[name]
    if category == HOST:
        return "host" if kind == TASK else "call"
    if category == DEVICE:
        return {KERNEL: "kernel", COPY: "copy"}.get(kind, "device")
    return CATEGORIES[category]


def names_of(graph, found):
    """Of each step of the chain the number of its name; 0 where it lies in no slice."""
    slices = np.where(found.steps["slice"] == NONE, 0, found.steps["slice"])
    return np.where(found.steps["slice"] == NONE, 0, graph.name[slices] if len(graph.name) else 0)


def tell(graph, found, rules, titles):
    """The whole result, ready for JSON; times are in ns.

    rules: list of Rule; the scenarios are each alone, then all together. titles: of processes, by number.
    """
    length = found.end - found.begin
    share, count = {}, {}
    times = found.steps["end"] - found.steps["begin"]
    keys = found.steps["category"].astype(np.int64) * len(graph.names) + names_of(graph, found)
    unique, inverse = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, inverse, times)
    for key, ns, n in zip(unique.tolist(), sums.tolist(), np.bincount(inverse, minlength=len(unique)).tolist()):
        share[divmod(key, len(graph.names))] = ns
        count[divmod(key, len(graph.names))] = n
    halved = {(int(half["category"]), int(half["name"])): int(half["end"]) - found.begin for half in found.halves}
    kinds = {}
    for (category, name), ns in share.items():
        kind = kind_of(graph, category, name)
        kinds[kind] = kinds.get(kind, 0) + ns
    return {
        "begin_ns": graph.base + found.begin,
        "length_ns": length,
        "reproduced": found.is_same,
        "kinds": dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))),
        "names": [
            {
                "kind": kind_of(graph, *key),
                "name": graph.names[key[1]],
                "ns": ns,
                "count": count[key],
                **({"halved_length_ns": halved[key]} if key in halved else {}),
            }
            for key, ns in sorted(share.items(), key=lambda item: (-item[1], item[0][::-1]))
            if ns
        ],
        "what_if": _scenarios(found, rules),
        "waits": _waits(found, titles),
        "slack": _slack(graph, found),
        "graph": {key: getattr(found, key) for key in ("nodes", "edges", "late", "loose", "circular", "overlaps")},
    }


def scenarios_of(rules):
    """The bits of the rules in each scenario: each alone, then all together where there are several."""
    alone = [1 << number for number in range(len(rules))]
    return [*alone, (1 << len(rules)) - 1] if len(rules) > 1 else alone


def _scenarios(found, rules):
    texts = [[rule.text] for rule in rules]
    if len(rules) > 1:
        texts.append([rule.text for rule in rules])
    return [{"changes": text, "length_ns": int(end) - found.begin} for text, end in zip(texts, found.ends.tolist())]


def _waits(found, titles):
    waits = sorted(found.waits.tolist(), key=lambda wait: (-wait[3], wait[0], wait[1]))
    return [{"who": titles[who], "whom": titles[whom], "count": count, "ns": ns} for who, whom, count, ns in waits]


def _slack(graph, found):
    rows = np.flatnonzero(found.slack != NO_SLACK)
    rows = rows[np.lexsort((rows, found.slack[rows]))]
    words = {TASK: "host", CALL: "call", KERNEL: "kernel", COPY: "copy"}
    return [
        {
            "kind": words.get(int(graph.name_kind[name]), "device"),
            "name": graph.names[name],
            "ns": int(found.slack[name]),
        }
        for name in rows.tolist()
    ]


def show(told, top):
    """The lines for a terminal: `top` rows of each table at most."""
    length = told["length_ns"]
    lines = [f"longest chain: {duration(length)}, from the first event to the last"]
    lines += _table(
        ["of this", "share", "kind"],
        [[duration(ns), percent(ns, length), kind] for kind, ns in told["kinds"].items() if ns],
    )
    lines += _table(
        ["of this", "share", "times", "kind", "name", "if halved"],
        [
            [
                duration(row["ns"]),
                percent(row["ns"], length),
                str(row["count"]),
                row["kind"],
                row["name"],
                _change(row.get("halved_length_ns"), length),
            ]
            for row in told["names"][:top]
        ],
        len(told["names"]) - top,
    )
    lines += _table(
        ["run's length", "change", "if"],
        [[duration(row["length_ns"]), _change(row["length_ns"], length), " and ".join(row["changes"])] for row in told["what_if"]],
    )
    lines += _table(
        ["waited", "times", "who", "for whom"],
        [[duration(row["ns"]), str(row["count"]), row["who"], row["whom"]] for row in told["waits"][:top]],
        len(told["waits"]) - top,
    )
    off = [row for row in told["slack"] if row["ns"]]
    lines += _table(
        ["may grow by", "kind", "not on the chain"],
        [[duration(row["ns"]), row["kind"], row["name"]] for row in off[:top]],
        len(off) - top,
    )
    return lines


def duration(ns):
    """A time with four digits and its unit."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}" if abs(ns) < 9999 * size else f"{ns / size:.0f} {unit}"
    return f"{ns} ns"


def percent(ns, length):
    return f"{100 * ns / length:.1f} %" if length else "-"


def _change(new, length):
    return "" if new is None else "-" if not length else f"{round(100 * (new - length) / length, 1) + 0.0:+.1f} %"


def _table(heads, rows, more=0):
    """Lines of a table, a blank one before it; none where there are no rows."""
    if not rows:
        return []
    cells = [heads, *([clip_middle(printable(cell), NAME_WIDTH) for cell in row] for row in rows)]
    widths = [max(map(columns, column)) for column in zip(*cells)]
    lines = [""]
    for row in cells:
        padded = [" " * (width - columns(cell)) for cell, width in zip(row, widths)]
        pairs = zip(heads, row, padded)
        lines.append("  ".join(pad + cell if head in NUMBERS else cell + pad for head, cell, pad in pairs).rstrip())
    return [*lines, f"and {more} more"] if more > 0 else lines
