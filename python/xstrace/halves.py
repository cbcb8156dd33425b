"""Slices that a trace has as two events, a begin and an end (phases B and E)."""

from __future__ import annotations

class Halves:
    """Makes events of phase X of them. They nest: an end belongs to the begin that is open last on its track.

    trace: whose events they are; an end without a begin counts as unfit there.
    """

    def __init__(self, trace):
        self._trace = trace
        self._open = {}

    def take(self, event):
        """Takes an event of phase B or E that events_of() has given. The slice, where this is its end; else None."""
        track = repr(event.get("pid")), repr(event.get("tid"))
        if event["ph"] == "B":
            self._open.setdefault(track, []).append(event)
            return None
        begins = self._open.get(track)
        if not begins:
            self._trace.unfit += 1
            return None
        return _slice(begins.pop(), event["ts"])

    def rest(self, last):
        """The slices that have no end: as if it came at `last`, the trace's end (ns)."""
        for begins in self._open.values():
            for event in begins:
                yield _slice(event, last)


def _slice(event, end):
    return {**event, "ph": "X", "dur": max(0, end - event["ts"])}
