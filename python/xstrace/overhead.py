"""What tracing has cost a program (otherData.overhead, docs/OVERHEAD.md), and times without it.

A slice's cost is that of the events recorded inside it on its own thread, and that part of its own event's cost which
lies in it. What cannot be placed so stays: waits for a full ring, our own work for commands of devices, what an API's runtime does because it is traced, and
what other ranks or devices were held up.
"""

from __future__ import annotations

import collections
import json
import math
from array import array

Cost = collections.namedtuple("Cost", "count ns inside_ns")
Cost.__doc__ = """Of one kind of event: how many there were; what one costs the program, in ns; what of that lies in its own slice.

ns is None where the cost of the kind is not known.
"""

MOST_NS = 1e9  # what says that it costs more is no cost
NO_COST = Cost(0, 0.0, 0.0)
KINDS = ("task", "function", "counted", "span", "metadata", "mark", "counter", "call", "values", "mpi", "command", "stack")
# members of a task's args that are no metadata of the program's
OWN_ARGS = ("unfinished", "cut", "clock", "id", "started_by", "ended_by", "result", "returned", "stack", "in", "out", "counted", "ipc")


class Overhead:
    """What a trace says of its own cost.

    costs: {kind: Cost}. events_ns, waited_ns: of the threads of all processes of the trace, drain_cpu_ns: of the drain
    process, which may have served other processes, too; int. drain_peak_bytes: int. start_ns: int, until the processes
    could record; no slice has it. commands_ns: int, of our own code for commands of devices; 0: not measured.
    """

    def __init__(self, costs, events_ns=0, waited_ns=0, drain_cpu_ns=0, drain_peak_bytes=0, start_ns=0, commands_ns=0):
        self.costs = costs
        if "task" in costs:  # older traces know functions of Python only as tasks
            costs.setdefault("function", costs["task"]._replace(count=0))
        self.start_ns = start_ns
        self.commands_ns = commands_ns
        self.events_ns = events_ns
        self.waited_ns = waited_ns
        self.drain_cpu_ns = drain_cpu_ns
        self.drain_peak_bytes = drain_peak_bytes

    @property
    def tracing_ns(self):
        """What of the threads' time is known to be tracing's."""
        return self.events_ns + self.waited_ns + self.commands_ns

    def ns(self, kind):
        """Of one event of a kind; 0.0: none, or not known."""
        return self.costs.get(kind, NO_COST).ns or 0.0

    def inside_ns(self, kind):
        return self.costs.get(kind, NO_COST).inside_ns


def overhead_of(other):
    """The Overhead that otherData (a dict, or None) tells of; None: it tells of none.

    Of a merged trace, that of all of its inputs: a kind's cost is the mean of their events.
    """
    if type(other) is not dict:
        return None
    if type(other.get("overhead")) is dict:
        return _parse(other["overhead"])
    inputs = other.get("inputs")
    found = (
        [_parse(one["overhead"]) for one in inputs if type(one) is dict and type(one.get("overhead")) is dict]
        if type(inputs) is list
        else []
    )
    return _together(found) if found else None


def _number(value, most=1 << 62):
    return value if type(value) in (int, float) and 0 <= value <= most else 0


def _parse(told):
    costs = {}
    events = told.get("events")
    for kind, row in events.items() if type(events) is dict else ():
        if kind in KINDS and type(row) is dict:
            ns = _number(row.get("ns"), MOST_NS)
            inside = min(_number(row.get("inside_ns"), MOST_NS), ns)
            costs[kind] = Cost(int(_number(row.get("count"))), float(ns) if "ns" in row else None, float(inside))
    sums = ("events_ns", "waited_ns", "drain_cpu_ns", "drain_peak_bytes", "start_ns", "commands_ns")
    return Overhead(costs, **{name: int(_number(told.get(name))) for name in sums})


def _together(all_of_them):
    costs = {}
    for kind in KINDS:
        rows = [one.costs[kind] for one in all_of_them if kind in one.costs]
        known = [row for row in rows if row.ns is not None]
        count = sum(row.count for row in known) or 1
        if rows:
            costs[kind] = Cost(
                sum(row.count for row in rows),
                sum(row.ns * row.count for row in known) / count if known else None,
                sum(row.inside_ns * row.count for row in known) / count,
            )
    added = ("events_ns", "waited_ns", "drain_cpu_ns", "start_ns", "commands_ns")
    sums = {name: sum(getattr(one, name) for one in all_of_them) for name in added}
    return Overhead(costs, drain_peak_bytes=max(one.drain_peak_bytes for one in all_of_them), **sums)


def kind_of_task(name):
    """Of the event that a task's slice stands for."""
    return "function" if name.startswith("Python::") else "task"


# ---- on the tables of xstrace.open() ----

# (1) what each slice, mark and value costs; (2) the same in the order of time, summed up along each track; (3) the sum
# at the last that begins before a slice ends, less the sum at its own begin, is what lies in it.
_NET = """
create or replace temp table slices_net as
with own as (
  select s.slice_id, s.track_id, s.ts, s.dur, s.depth,
    case when s.kind = 'task' then case when s.name like 'Python::%' then 'function' else 'task' end when s.kind = 'call' and regexp_matches(s.name, '^P?MPI[_X:]') then 'mpi' when s.kind = 'call' then 'call' end as event,
    s.trace_id
  from slices s
), more as (
  select slice_id, sum(case when key = 'in' then v.ns else m.ns end) as ns
  from args
    join slices using (slice_id)
    left join xstrace_costs m on m.trace_id = slices.trace_id and m.event = 'metadata'
    left join xstrace_costs v on v.trace_id = slices.trace_id and v.event = 'values'
  where (slices.kind = 'task' and not list_contains(?, key)) or (slices.kind = 'call' and key = 'in')
  group by slice_id
), points as (
  select o.slice_id, o.track_id, o.ts, o.dur, o.depth, coalesce(c.ns, 0) + case when o.event = 'call' then coalesce(m.ns, 0) else 0 end as whole,
    coalesce(c.inside_ns, 0) + case when o.event in ('task', 'function') then coalesce(m.ns, 0) else 0 end as inside,
    case when o.event in ('task', 'function') then coalesce(m.ns, 0) else 0 end as within
  from own o left join xstrace_costs c on c.trace_id = o.trace_id and c.event = o.event left join more m using (slice_id)
  union all
  select null, k.track_id, k.ts, 0, 1 << 20, coalesce(c.ns, 0), 0, 0
  from marks k left join xstrace_costs c on c.trace_id = k.trace_id and c.event = 'mark'
), ordered as (
  select *, sum(whole + within) over (partition by track_id order by ts, depth, slice_id rows unbounded preceding) as upto from points
), ends as (
  select track_id, ts, max(upto) as upto from ordered group by all
)
select o.slice_id, least(o.dur, cast(round(o.inside + greatest(e.upto - o.upto, 0)) as bigint)) as cost, o.dur - cost as net
from ordered o asof left join ends e on o.track_id = e.track_id and o.ts + o.dur > e.ts
where o.slice_id is not null
"""


def subtract(connection):
    """Makes the table slices_net(slice_id, cost, net) in a database of a trace's tables (docs/QUERY.md).

    connection: DuckDB's, with the tables slices, args, marks and metadata. cost: BIGINT, ns of the slice's duration that
    tracing took, never more than that; net: dur - cost. A slice on a device, or of a trace that does not tell what it
    cost, has cost 0. Returns {trace_id: Overhead} of the traces that tell it.
    """
    told = {}
    for trace_id, key, value in connection.execute(
        "select trace_id, key, value from metadata where key in ('otherData.overhead', 'otherData.inputs')"
    ).fetchall():
        try:
            overhead = overhead_of({key.partition(".")[2]: json.loads(value)})
        except (ValueError, TypeError, RecursionError):
            continue
        if overhead:
            told[trace_id] = overhead
    connection.execute("create or replace temp table xstrace_costs(trace_id bigint, event varchar, ns double, inside_ns double)")
    rows = [(trace_id, kind, cost.ns or 0.0, cost.inside_ns) for trace_id, one in told.items() for kind, cost in one.costs.items()]
    if rows:
        connection.executemany("insert into xstrace_costs values (?, ?, ?, ?)", rows)
    connection.execute(_NET, [list(OWN_ARGS)])
    return told


# ---- on events, one after the other ----


class NetTimes:
    """Takes the slices and instants of one trace, in any order; totals() gives the costs by what they were added for."""

    def __init__(self):
        self._tracks = {}
        self._groups = []
        self._number_of = {}

    def add(self, track, start, end, kind, group, values=0):
        """A slice or (start == end) an instant. track: its thread, hashable. kind: of its event, or None: it cost nothing.

        group: hashable, for what totals() adds up. values: how many values of metadata it has, of a call with -c: 1.
        """
        columns = self._tracks.get(track)
        if columns is None:
            columns = self._tracks[track] = (array("q"), array("q"), array("b"), array("q"), array("i"))
        number = self._number_of.get(group)
        if number is None:
            number = self._number_of[group] = len(self._groups)
            self._groups.append(group)
        row = start, end, KINDS.index(kind) if kind else -1, number, min(values, 1 << 20)
        for column, value in zip(columns, row):
            column.append(value)

    def totals(self, overhead):
        """{group: ns that tracing took of its slices' durations}, float."""
        sums = [0.0] * len(self._groups)
        whole = [overhead.ns(kind) for kind in KINDS] + [0.0]  # -1: the last
        inside = [overhead.inside_ns(kind) for kind in KINDS] + [0.0]
        metadata, values = overhead.ns("metadata"), overhead.ns("values")
        call = KINDS.index("call")
        for starts, ends, kinds, groups, extra in self._tracks.values():
            open_ones = []  # [end, duration, cost of what lies in it, own cost inside, own cost in all, group]

            def close(before):
                while open_ones and open_ones[-1][0] <= before:
                    _, duration, below, own, whole_own, group = open_ones.pop()
                    sums[group] += min(own + below, duration)
                    if open_ones:
                        open_ones[-1][2] += whole_own + below

            for i in sorted(range(len(starts)), key=lambda i: (starts[i], -ends[i])):
                close(starts[i])
                kind, end = kinds[i], ends[i]
                within = 0.0 if kind == call else metadata * extra[i]
                all_of_it = whole[kind] + within + (values * extra[i] if kind == call else 0.0)
                open_ones.append([end, end - starts[i], 0.0, inside[kind] + within, all_of_it, groups[i]])
            close(math.inf)
        return dict(zip(self._groups, sums))
