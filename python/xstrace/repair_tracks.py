"""What is wrong with slices and arrows together, and what becomes of each of them.

A first pass over the events gives them to feed(); solve() decides; a second pass asks about the same events, in the same order, with
place(). A slice takes some 25 bytes meanwhile, a step (B or E) 15 more, a point of an arrow 30.
"""

from __future__ import annotations

from array import array

from .cli import microseconds
from .intervals import sorted_rows
from .repair_events import SYNTHETIC, is_device
from .repair_lanes import DOUBLE, NOWHERE, Sweep

START, STEP, END_HERE, END_NEXT = range(4)  # of an arrow: s, t, f with "bp":"e", f
KEEP, DROP, JOIN, ALONE = range(4)  # what becomes of a B or an E: X made of both, X made of a B whose end is missing
SEARCHED = 1024  # of the slices that are open, for the one that ends
ROUNDED = (1000, 250)  # ns: times in whole us; doubles of us since 1970


class Track:
    """The slices of one (pid, tid): those of X in the order of the file, then those that B and E make."""

    def __init__(self, pid, tid, number):
        self.pid, self.tid, self.number = pid, tid, number
        self.starts, self.ends, self.names = array("q"), array("q"), array("q")
        self.step_times, self.step_names, self.is_begin = array("q"), array("q"), bytearray()
        self.points = array("I")  # its points of arrows
        self.is_device = False
        self.next_slice = self.next_step = 0
        self.lanes = None  # of each slice, when not all are on their own track
        self.is_cut = False  # some ends were moved
        self.fates = self.step_slices = None
        self.waiting = {}

    def __str__(self):
        return f"pid {self.pid} tid {self.tid}"


class Points:
    """Starts and ends of arrows, in the order of the file."""

    def __init__(self):
        self.ids, self.times, self.tracks = array("q"), array("q"), array("I")
        self.groups, self.kinds, self.lanes = array("I"), bytearray(), bytearray()
        self.new_ids = {}  # point -> id
        self.group_of, self.odd_ids = {}, {}

    def feed(self, event, track):
        flow_id = event["id"]
        if type(flow_id) is str or not 0 <= flow_id < 1 << 62:
            flow_id = self.odd_ids.setdefault(flow_id, -1 - len(self.odd_ids))
        phase = event["ph"]
        track.points.append(len(self.ids))
        self.ids.append(flow_id)
        self.times.append(event["ts"])
        self.tracks.append(track.number)
        self.groups.append(self.group_of.setdefault((event["cat"], event["name"]), len(self.group_of)))
        self.kinds.append(START if phase == "s" else STEP if phase == "t" else END_HERE if event.get("bp") == "e" else END_NEXT)
        self.lanes.append(0)

    def name_of(self, point):
        category, name = list(self.group_of)[self.groups[point]]
        number = self.ids[point]
        return f"{category}/{name} id {number if number >= 0 else list(self.odd_ids)[-1 - number]}"


class Tracks:
    """All tracks of a trace."""

    def __init__(self, changes, exact):
        """exact: times are true to the ns, so slices that overlap by little do overlap."""
        self.changes = changes
        self.tracks, self.list = {}, []
        self.points = Points()
        self.next_point = 0
        self.process_names, self.thread_names, self.sort_indices = {}, {}, {}
        self.tids = {}  # of lanes
        self.rounded = 0 if exact else ROUNDED[0]

    def feed(self, event):
        phase = event["ph"]
        if phase == "M":
            return self._name(event)
        if phase not in "XBEstf":
            return None
        key = event.get("pid"), event.get("tid")
        track = self.tracks.get(key)
        if track is None:
            track = self.tracks[key] = Track(*key, len(self.list))
            self.list.append(track)
        start = event["ts"]
        if phase == "X":
            track.starts.append(start)
            track.ends.append(start + event["dur"])
            track.names.append(hash(event["name"]))
            if not track.is_device and is_device(event):
                track.is_device = True
            while self.rounded and start % self.rounded:
                self.rounded = ROUNDED[1] if self.rounded != ROUNDED[1] else 0
        elif phase in "stf":
            self.points.feed(event, track)
        else:
            track.step_times.append(start)
            track.step_names.append(hash(event["name"]) if type(event.get("name")) is str else 0)
            track.is_begin.append(phase == "B")
            track.is_device = track.is_device or is_device(event)
        return None

    def _name(self, event):
        what, pid, tid, args = event.get("name"), event.get("pid"), event.get("tid"), event.get("args")
        try:
            if what == "process_name":
                self.process_names[pid] = args["name"]
            elif what == "thread_name":
                self.thread_names[pid, tid] = args["name"]
            elif what == "thread_sort_index":
                self.sort_indices[pid, tid] = args["sort_index"]
        except (KeyError, TypeError):
            pass

    # ---- decide ----

    def solve(self, documents):
        """After the last feed(). documents: traces in the file; of more than one, slices that are in several are left out but once."""
        for track in self.list:
            _pair_steps(track)
            Sweep(track, self.points, self.rounded, documents > 1).run()
            _join_steps(track)
            track.has_slices = bool(track.starts)
            track.starts = track.names = track.step_times = track.step_names = track.points = None
            track.ends = track.ends if track.is_cut or track.fates else None
        self._solve_arrows(documents > 1)

    def _solve_arrows(self, only_once):
        points = self.points
        count = len(points.ids)
        ids, groups, times, kinds = points.ids, points.groups, points.times, points.kinds
        order = sorted_rows(count, lambda row: (groups[row], ids[row], times[row], kinds[row]))
        self._fresh = max(ids, default=0) + 1
        run = []
        for row in order:
            if run and (ids[row] != ids[run[0]] or groups[row] != groups[run[0]]):
                self._arrow(run)
                run = []
            if only_once and run and self._is_double(row, run[-1]):
                points.lanes[row] = NOWHERE
                continue
            run.append(row)
        if run:
            self._arrow(run)

    def _is_double(self, row, other):
        points = self.points
        return all(column[row] == column[other] for column in (points.times, points.kinds, points.tracks))

    def _arrow(self, run):
        """All points of one id, in the order of time; starts first among equal times."""
        kinds, lanes = self.points.kinds, self.points.lanes
        if len(run) == 2 and kinds[run[0]] == START != kinds[run[1]] and NOWHERE not in (lanes[run[0]], lanes[run[1]]):
            return
        starts = [row for row in run if kinds[row] == START]
        ends = [row for row in run if kinds[row] != START]
        times = self.points.times
        if len(starts) == len(ends) > 1 and all(times[one] <= times[other] for one, other in zip(starts, ends)):
            pieces = list(zip(starts, ends))
        else:
            pieces = [[]]  # what is in front of the first start has none
            for row in run:
                if kinds[row] == START:
                    pieces.append([])
                pieces[-1].append(row)
        is_first = True
        for piece in pieces:
            good = [row for row in piece if lanes[row] != NOWHERE]
            if len(good) < 2 or kinds[good[0]] != START:
                for row in piece:
                    lanes[row] = NOWHERE
                continue
            if not is_first:
                self.points.new_ids.update(dict.fromkeys(good, self._fresh))
                self._fresh += 1
            is_first = False

    # ---- apply ----

    def place(self, event):
        """The event itself where nothing is to be changed, a changed copy, or None: it is left out, or waits for its other half."""
        phase = event["ph"]
        if phase not in "XBEstf":
            return event
        track = self.tracks[event.get("pid"), event.get("tid")]
        if phase == "X":
            number = track.next_slice
            track.next_slice += 1
            return event if track.lanes is None and not track.is_cut else self._slice(event, track, number)
        if phase in "stf":
            return self._point(event, track)
        number = track.next_step
        track.next_step += 1
        return event if track.fates is None else self._step(event, track, number)

    def _slice(self, event, track, number):
        end = track.ends[number] if track.is_cut else event["ts"] + event["dur"]
        if end != event["ts"] + event["dur"]:
            self._tell("slices that overlap by no more than times are rounded were cut", event, track)
            event = {**event, "dur": end - event["ts"]}
        lane = track.lanes[number] if track.lanes else 0
        if lane == DOUBLE:
            return self._tell("left out: slices that are in the file twice", event, track)
        if lane == NOWHERE:
            return self._tell("left out: slices that overlap more than 250 others", event, track)
        if lane:
            self._tell("slices that overlap without nesting went to lanes of their own", event, track)
            event = {**event, "tid": self.tid(track, lane)}
        return event

    def _point(self, event, track):
        number = self.next_point
        self.next_point += 1
        points = self.points
        lane = points.lanes[number]
        if lane == NOWHERE:
            return self._tell("left out: ends of arrows that have no other end, or lie on no slice", event, track, points.name_of(number))
        if lane:
            event = {**event, "tid": self.tid(track, lane)}
            self._tell("ends of arrows went with their slices", event, track)
        if number in points.new_ids:
            event = {**event, "id": points.new_ids[number]}
            self._tell("ids of arrows that were used again are new", event, track, points.name_of(number))
        return event

    def _step(self, event, track, number):
        fate = track.fates[number]
        if fate == KEEP:
            return event
        if fate == DROP:
            return self._tell("left out: ends (E) without a begin", event, track)
        made = track.step_slices[number]
        if fate == ALONE:
            self._tell("begins (B) without an end last as long as what is around them", event, track)
            return self._made(event, {"args": {"unfinished": True}}, track, made)
        other = track.waiting.pop(made, None)
        if other is None:
            track.waiting[made] = event
            return None
        begin, end = (event, other) if event["ph"] == "B" else (other, event)
        self._tell("begins and ends (B, E) that cross became slices (X)", begin, track)
        return self._made(begin, end, track, made)

    def _made(self, begin, end, track, number):
        parts = [one["args"] for one in (begin, end) if type(one.get("args")) is dict]
        event = {**begin, "ph": "X", "dur": track.ends[number] - begin["ts"]}
        if parts:
            event["args"] = {key: value for part in parts for key, value in part.items()}
        track.is_cut, was_cut = False, track.is_cut  # its end is right
        event = self._slice(event, track, number)
        track.is_cut = was_cut
        return event

    def _tell(self, kind, event, track, name=None):
        self.changes.add(kind, "%s at %s us on %s", name or event.get("name"), microseconds(event["ts"]), track)

    def tid(self, track, lane):
        """The tid of a lane of a track, one that nothing in the process has."""
        key = track.number, lane
        if key not in self.tids:
            if not self.tids:
                self._next_tid = SYNTHETIC
            while (track.pid, self._next_tid) in self.tracks or (track.pid, self._next_tid) in self.thread_names:
                self._next_tid += 1
            self.tids[key] = self._next_tid
            self._next_tid += 1
        return self.tids[key]


def _pair_steps(track):
    """Makes slices of B and E; fates[n] is what becomes of the n-th of them, step_slices[n] the slice that it belongs to."""
    count = len(track.step_times)
    if not count:
        return
    times, names, is_begin = track.step_times, track.step_names, track.is_begin
    fates, slices = bytearray(count), array("q", [-1]) * count
    is_open = []  # of (step, slice)
    around = {}  # slice that is still open -> the one around it
    for step in sorted_rows(count, times.__getitem__):
        if is_begin[step]:
            number = len(track.starts)
            track.starts.append(times[step])
            track.ends.append(-1)
            track.names.append(names[step])
            slices[step] = number
            if is_open:
                around[number] = is_open[-1][1]
            is_open.append((step, number))
            continue
        at = len(is_open) - 1
        innermost = max(at - SEARCHED, -1)
        while at > innermost and names[step] and names[is_open[at][0]] != names[step]:
            at -= 1
        if at == innermost:
            fates[step] = DROP
            continue
        begin, number = is_open[at]
        if at < len(is_open) - 1:
            fates[begin] = fates[step] = JOIN
        del is_open[at]
        track.ends[number] = times[step]
        slices[step] = number
    last = max(max(track.ends, default=0), max(times))
    for step, number in is_open:
        fates[step] = ALONE
        outer = around.get(number)
        while outer is not None and track.ends[outer] <= times[step]:  # it ended before, without ends of its own
            outer = around.get(outer)
        end = track.ends[outer] if outer is not None else last
        track.ends[number] = max(end, times[step])
    track.fates = fates if any(fates) else None
    track.step_slices = slices


def _join_steps(track):
    """B and E of slices that went elsewhere, or were cut, become X. Called when the lanes are known."""
    if track.step_slices is None:
        return
    fates = track.fates or bytearray(len(track.step_times))
    changed = set()
    for step, number in enumerate(track.step_slices):
        if number >= 0 and fates[step] == KEEP:
            if (track.lanes and track.lanes[number]) or (not track.is_begin[step] and track.ends[number] != track.step_times[step]):
                changed.add(number)
    for step, number in enumerate(track.step_slices):
        if number in changed and fates[step] == KEEP:
            fates[step] = JOIN
    track.fates = fates if any(fates) else None
