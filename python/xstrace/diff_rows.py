"""The rows of a comparison: what has changed by how much, of each kind and name."""

from __future__ import annotations

import math

from .diff_stats import holm, permutation_p, ratio_interval

PER_EXECUTION = {"mean": 1, "self": 2, "median": 3}  # metrics, and where they are in a Sample
LEVEL = 0.05  # of p, for what is marked as changed


class Change:
    """A metric of one row. a, b: its means over the runs (ns; of count, executions). ratio: b / a, inf where a is 0. p: float or None."""

    def __init__(self, metric, a, b):
        """a, b: lists of float, a value for each run."""
        self.metric = metric
        self._values = a, b
        self.a, self.b = math.fsum(a) / len(a), math.fsum(b) / len(b)
        self.ratio = self.b / self.a if self.a else math.inf if self.b else 1.0
        self.p = permutation_p(a, b)

    def interval(self):
        """(low, high) of the ratio, with a confidence of 95 %, or None."""
        return ratio_interval(*self._values)

    def text(self):
        show = count_text if self.metric == "count" else time_text
        return f"{show(self.a)} to {show(self.b)} ({percent_text(self.ratio)})"


class Row:
    """One kind and name. state: "both", "new" or "gone". change: {metric: Change}, of what is in both.

    total_a, total_b: ns of a run, on average; count_a, count_b: executions. adjusted: p of the mean after Holm's correction over all rows.
    """

    def __init__(self, kind, name, a, b):
        """a, b: lists of Sample or None, one for each run (or each block of the one run)."""
        self.kind, self.name = kind, name
        has_a, has_b = any(a), any(b)
        self.state = "both" if has_a and has_b else "gone" if has_a else "new"
        self.is_in_both = has_a and has_b
        self.adjusted = None
        self._a, self._b = a, b
        self.total_a, self.count_a = _sum(a)
        self.total_b, self.count_b = _sum(b)
        self.change = _Changes(self)

    def is_changed(self):
        return self.state != "both" or (self.adjusted is not None and self.adjusted < LEVEL)


class _Changes(dict):
    """Of each metric, made when it is asked for."""

    def __init__(self, row):
        super().__init__()
        self._row = row

    def __missing__(self, metric):
        row = self._row
        a, b = _values(row._a, metric), _values(row._b, metric)
        found = self[metric] = Change(metric, a, b)
        return found


def _sum(samples):
    return sum(one.total for one in samples if one), sum(one.count for one in samples if one)


def _values(samples, metric):
    """What is compared of each run; a run in which nothing of that name was has no mean, but a sum: 0."""
    if metric in PER_EXECUTION:
        return [one[PER_EXECUTION[metric]] / one.count for one in samples if one and one.count]
    return [float((one.total if metric == "total" else one.count) if one else 0) for one in samples]


def compare(a, b, runs_a, runs_b):
    """All rows. a, b: of samples_of(). runs_a, runs_b: how many runs the sums are divided by."""
    rows = [Row(*key, a.get(key, [None]), b.get(key, [None])) for key in {**a, **b}]
    for row in rows:
        row.total_a, row.count_a = row.total_a / runs_a, row.count_a / runs_a
        row.total_b, row.count_b = row.total_b / runs_b, row.count_b / runs_b
    tested = [row.change["mean"].p if row.is_in_both else None for row in rows]
    for row, p in zip(rows, holm(tested)):
        row.adjusted = p
    return rows


# ---- texts ----


def time_text(ns):
    """ns as people read it: three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size * 0.9995:
            return f"{ns / size:.3g} {unit}" if abs(ns) < 999.5 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.3g} ns"


def count_text(number):
    return f"{number:.0f}" if number == int(number) else f"{number:.1f}"


def percent_text(ratio):
    """A ratio as a change: +5.2 %."""
    if ratio == math.inf:
        return "from nothing"
    percent = (ratio - 1) * 100
    return f"{percent:+.0f} %" if abs(percent) >= 99.95 else f"{round(percent, 1) + 0.0:+.1f} %"
