"""Slices that a trace has as two events, a begin and an end (phases B and E)."""

from __future__ import annotations

LONGEST = 1 << 62  # ns


class Halves:
    """Makes events of phase X of them. They nest: an end belongs to the begin that is open last on its track."""

    def __init__(self):
        self._open = {}

    def take(self, event):
        """Takes an event of phase B or E, with times as Trace gives them. The slice, where this is its end; else None."""
        track = repr(event.get("pid")), repr(event.get("tid"))
        start = event.get("ts")
        if type(start) is not int or abs(start) > LONGEST:
            return None
        if event["ph"] == "B":
            self._open.setdefault(track, []).append(event)
            return None
        begins = self._open.get(track)
        return _slice(begins.pop(), start) if begins else None

    def rest(self, last):
        """The slices that have no end: as if it came at `last`, the trace's end (ns)."""
        for begins in self._open.values():
            for event in begins:
                yield _slice(event, last)


def _slice(event, end):
    return {**event, "ph": "X", "dur": max(0, end - event["ts"])}
