"""Gives the slices of a track lanes on which they nest, and finds on which lane each end of an arrow belongs."""

from __future__ import annotations

from .intervals import sorted_rows

LANES = 250  # of a track, at most; a slice that finds no room on them is left out
DOUBLE, NOWHERE = 254, 255
END_NEXT = 3  # as in repair_tracks.py: the end of an arrow that belongs to the next slice


class Sweep:
    """One walk over the slices of a track, in the order of their begins, the longest first.

    rounded: ns; what overlaps by no more is cut. only_once: a slice with the times and the name of another one is its double.
    Sets track.lanes, track.ends, track.is_cut, and the lanes of the track's points.
    """

    def __init__(self, track, points, rounded, only_once):
        self.track = track
        self.points = points
        self.rounded = rounded
        self.only_once = only_once
        self.stacks = [[]]  # of each lane: the slices that are open, as (end, slice)
        self.instant = -1  # where a slice without length begins, which covers that instant

    def run(self):
        track = self.track
        starts, ends = track.starts, track.ends
        times, rows = self.points.times, track.points
        waiting = iter(sorted_rows(len(rows), lambda at: times[rows[at]]))
        next_point = next(waiting, None)
        self.next_ones = []  # points that belong to the slice that begins next
        begun, seen = (-1, -1), set()
        for row in self._order():
            start = starts[row]
            while next_point is not None and times[rows[next_point]] < start:
                self._bind(rows[next_point])
                next_point = next(waiting, None)
            if self.only_once:
                if begun != (start, ends[row]):
                    begun = start, ends[row]
                    seen.clear()
                if track.names[row] in seen:
                    self._to(row, DOUBLE)
                    continue
                seen.add(track.names[row])
            lane = self._open(row, start, ends[row])
            if self.next_ones and lane != NOWHERE:
                for point in self.next_ones:
                    self.points.lanes[point] = lane
                self.next_ones = []
        while next_point is not None:
            self._bind(rows[next_point])
            next_point = next(waiting, None)
        for point in self.next_ones:
            self.points.lanes[point] = NOWHERE

    def _order(self):
        starts, ends = self.track.starts, self.track.ends
        return sorted_rows(len(starts), lambda row: (starts[row], -ends[row]))

    def _open(self, row, start, end):
        """Puts a slice on a lane; returns that."""
        if start == end:
            self.instant = start
            return 0
        for lane, stack in enumerate(self.stacks):
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack and stack[-1][0] < end and self.rounded and not lane:
                end = self._cut(stack, row, start, end)
            if not stack or stack[-1][0] >= end:
                break
        else:
            lane = len(self.stacks)
            if lane > LANES:
                self._to(row, NOWHERE)
                return NOWHERE
            self.stacks.append([])
        self.stacks[lane].append((end, row))
        if lane:
            self._to(row, lane)
        return lane

    def _cut(self, stack, row, start, end):
        """Cuts what overlaps by so little that it is rounding: the slices before, or this one, whose end it returns."""
        ends = self.track.ends
        while stack and stack[-1][0] < end and stack[-1][0] - start <= self.rounded:
            ends[stack.pop()[1]] = start
            self.track.is_cut = True
        if stack and 0 < end - stack[-1][0] <= self.rounded:
            end = ends[row] = stack[-1][0]
            self.track.is_cut = True
        return end

    def _to(self, row, lane):
        if self.track.lanes is None:
            self.track.lanes = bytearray(len(self.track.starts))
        self.track.lanes[row] = lane

    def _bind(self, point):
        """All slices that begin at the point's time or before are open, or were."""
        time = self.points.times[point]
        if self.points.kinds[point] == END_NEXT:
            if not self._begins(time, point):
                self.next_ones.append(point)
            return
        if self._begins(time, point) or self.instant == time:
            return
        for lane, stack in enumerate(self.stacks):
            if stack and stack[0][0] >= time:  # the outermost ends last
                self.points.lanes[point] = lane
                return
        self.points.lanes[point] = NOWHERE

    def _begins(self, time, point):
        """Does a slice begin at that time? Then the point belongs to it."""
        starts = self.track.starts
        if self.instant == time:
            return True
        for lane, stack in enumerate(self.stacks):
            if stack and starts[stack[-1][1]] == time:
                self.points.lanes[point] = lane
                return True
        return False
