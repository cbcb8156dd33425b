"""What is in a trace, counted with Python's json alone and by no means quickly: the truth for tables and what asks them."""

import collections
import json
import re
from decimal import ROUND_HALF_EVEN, Decimal


def ns(value):
    return int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_EVEN))


class Truth:
    """slices: list of dicts (pid, tid, name, cat, ts, dur, args, parent, depth, self) in the order of tables; flows: set."""

    def __init__(self, text):
        doc = json.loads(text, parse_float=Decimal, parse_int=lambda digits: int(digits))
        self.doc = doc if isinstance(doc, dict) else {"traceEvents": doc}
        self.events = self.doc["traceEvents"]
        self.base = self.doc.get("baseTimeNanoseconds", 0)
        self.slices = [self._slice(event) for event in self.events if event.get("ph") == "X"]
        tracks = collections.defaultdict(list)
        for one in self.slices:
            tracks[one["pid"], one["tid"]].append(one)
        for track in tracks.values():
            self._nest(track)

    def _slice(self, event):
        return {
            "pid": event["pid"],
            "tid": event["tid"],
            "name": event["name"],
            "cat": event.get("cat"),
            "ts": self.base + ns(event["ts"]),
            "dur": ns(event.get("dur", 0)),
            "args": event.get("args", {}),
        }

    @staticmethod
    def _nest(track):
        """Of each slice the innermost one that holds it: all are compared with all."""
        order = sorted(range(len(track)), key=lambda i: (track[i]["ts"], -track[i]["dur"], track[i]["cat"] != "gpu_user_annotation", i))
        place = {i: n for n, i in enumerate(order)}
        children = collections.defaultdict(list)
        for i, one in enumerate(track):
            end = one["ts"] + one["dur"]
            holds = [k for k, other in enumerate(track) if place[k] < place[i] and one["ts"] < other["ts"] + other["dur"] >= end]
            one["up"] = max(holds, key=lambda k: place[k], default=None)
            children[one["up"]].append(one)
        for i, one in enumerate(track):
            one["depth"], up = 0, one["up"]
            while up is not None:
                one["depth"], up = one["depth"] + 1, track[up]["up"]
            one["parent"] = None if one["up"] is None else (track[one["up"]]["ts"], track[one["up"]]["name"])
            reached, covered = one["ts"], 0
            for child in sorted(children[i], key=lambda child: child["ts"]):
                end = child["ts"] + child["dur"]
                covered += max(0, end - max(reached, child["ts"]))
                reached = max(reached, end)
            one["self"] = one["dur"] - covered

    def rows(self):
        """Sorted tuples, as ROWS asks for them."""
        keys = ("pid", "tid", "name", "cat", "ts", "dur", "self", "depth")
        return sorted((*(one[key] for key in keys), one["parent"]) for one in self.slices)

    def arguments(self):
        """Counter of (name of the slice, key, value) with values as tables have them."""
        found = collections.Counter()
        for one in self.slices:
            for key, value in one["args"].items():
                found[one["name"], key, without_zeros(as_text(value))] += 1
        return found

    def flows(self):
        """Counter of (cat, name, from ts, to ts) of those with a beginning and one end."""
        points = collections.defaultdict(dict)
        for event in self.events:
            if event.get("ph") in ("s", "f"):
                points[event.get("cat"), event["name"], event["id"]][event["ph"]] = self.base + ns(event["ts"])
        return collections.Counter((key[0], key[1], p["s"], p["f"]) for key, p in points.items() if len(p) == 2)


def as_text(value):
    """A value of JSON; of what has parts, the value itself, since their text is the file's."""
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=str, sort_keys=True)
    return {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else str(value)


def without_zeros(value):
    """Perfetto's format has no zeros behind a number."""
    return value.rstrip("0").rstrip(".") if re.fullmatch(r"-?\d+\.\d+", value) else value


ROWS = """select p.pid, t.tid, s.name, s.cat, s.ts, s.dur, s.self, s.depth, if(u.slice_id is null, null, (u.ts, u.name))
          from slices s join threads t using (track_id) join processes p on p.process_id = s.process_id
          left join slices u on u.slice_id = s.parent_id"""
ARGUMENTS = "select s.name, a.key, a.value from args a join slices s using (slice_id)"


def rows(tables):
    return sorted(tuple(tuple(v.values()) if isinstance(v, dict) else v for v in row) for row in tables.sql(ROWS).fetchall())


def arguments(tables):
    found = collections.Counter()
    for name, key, value in tables.sql(ARGUMENTS).fetchall():
        if value[:1] in ("{", "["):
            value = json.dumps(json.loads(value, parse_float=Decimal), default=str, sort_keys=True)
        found[name, key, without_zeros(value)] += 1
    return found


def flows(tables):
    query = "select cat, name, from_ts, to_ts from flows where from_ts is not null and to_ts is not null"
    return collections.Counter(tables.sql(query).fetchall())
