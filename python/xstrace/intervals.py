"""Sets of closed intervals [start, end] of integers: which overlap, what they cover."""

from __future__ import annotations

import heapq
import operator
from array import array
from bisect import bisect_right

RUN = 1 << 17  # rows that are sorted at once; each takes some 50 bytes meanwhile


def sorted_rows(count, key):
    """The rows 0 … count - 1 in the order of key(row), equal ones as they are: an array of 4 bytes a row, and little beside it."""
    runs = [array("I", sorted(range(at, min(at + RUN, count)), key=key)) for at in range(0, count, RUN)]
    return runs[0] if len(runs) == 1 else array("I", heapq.merge(*runs, key=key))


class Intervals:
    """Intervals given as two arrays of typecode "q", starts and ends, in any order.

    Tens of millions are usual, so they are sorted only where they must be. Device work is written
    in the order in which it begins. Host calls are written when they end: read backwards, with
    the time running backwards, they too are in the order in which they begin.
    """

    def __init__(self, starts, ends):
        self._mirrored = False
        self._starts = starts
        self._ends = ends
        self._order = range(len(starts))
        if _is_ordered(starts, ends):
            return
        if _is_ordered(ends, starts):
            self._mirrored = True
            self._starts = _mirror(ends)
            self._ends = _mirror(starts)
            return
        # the longest first among equal starts, so that it is the one around the others
        self._order = sorted_rows(len(starts), lambda row: (starts[row], -ends[row]))

    def overlaps(self):
        """Yields (i, j): interval j begins inside interval i and ends behind the end of i.

        Common boundaries and intervals without length overlap nothing. Where many overlap one
        another, not each pair is told.
        """
        last = len(self._starts) - 1
        open_ends = []
        open_indices = []
        for index in self._order:
            start = self._starts[index]
            end = self._ends[index]
            if start == end:
                continue
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
                open_indices.pop()
            if open_ends and open_ends[-1] < end:
                pair = open_indices[-1], index
                yield (last - pair[1], last - pair[0]) if self._mirrored else pair
            open_ends.append(end)
            open_indices.append(index)

    def union(self):
        """The Union of all."""
        starts = array("q")
        ends = array("q")
        covered = None
        for index in self._order:
            start = self._starts[index]
            end = self._ends[index]
            if covered is None or start > covered:
                starts.append(start)
                ends.append(end)
                covered = end
            elif end > covered:
                ends[-1] = covered = end
        return Union(_mirror(ends), _mirror(starts)) if self._mirrored else Union(starts, ends)


class Union:
    """Intervals that neither overlap nor touch, as two sorted arrays: starts and ends."""

    def __init__(self, starts, ends):
        self.starts = starts
        self.ends = ends

    def __contains__(self, point):
        """Does any interval hold the point? Boundaries belong to it."""
        index = bisect_right(self.starts, point) - 1
        return index >= 0 and point <= self.ends[index]

    def length(self):
        """The sum of the lengths."""
        return sum(self.ends) - sum(self.starts)


def _is_ordered(keys, others):
    """Do the keys ascend, and the others descend where keys are equal?"""
    last_key = last_other = None
    for key, other in zip(keys, others):
        if last_key is not None and last_key >= key and (last_key > key or last_other < other):
            return False
        last_key = key
        last_other = other
    return True


def _mirror(values):
    """The array backwards and negated."""
    return array("q", map(operator.neg, reversed(values)))
