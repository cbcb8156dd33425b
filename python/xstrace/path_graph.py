"""Makes of a trace's tables the arrays of which xstrace-replay makes its graph (docs/PATH.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from .source import TraceError

KINDS = ("task", "call", "kernel", "copy", "device")  # of slices; the order is replay/graph.h's
TASK, CALL, KERNEL, COPY, WORK = range(len(KINDS))
CATEGORIES = (  # what time was spent on; the order is replay/graph.h's
    "host",
    "waiting",
    "launch latency",
    "queueing",
    "device",
    "wake-up",
    "message",
    "collective",
    "start",
    "join",
    "idle",
)
TO_DEVICE, TO_HOST, ORDER, SENT, TOGETHER, CHILD, HANDED = range(7)  # arrows
LOOK_BACK = 8  # slices
LONGEST = 1 << 60  # ns
OUTSIDE = "(outside any slice)"
IDLE = "OpenMP::barrier at the end of the region, then idle"
GIVES, GETS = 1, 2
# of OpenMP, each with its region: its threads' parts, and the barriers behind them. Where not all threads are seen, or more than there are
# (regions in each other), nothing is believed.
REGIONS = """
WITH regions AS (SELECT slice_id, track_id, process_id, ts, ts + dur AS te FROM slices WHERE kind = 'task' AND name LIKE 'OpenMP::parallel %'),
parts AS (SELECT track_id, process_id, ts, ts + dur AS te FROM slices WHERE kind = 'task' AND name = 'OpenMP::implicit task'),
barriers AS (SELECT slice_id, track_id, ts, ts + dur AS te FROM slices
    WHERE kind = 'task' AND name LIKE 'OpenMP::barrier at the end of the region%'),
members AS (SELECT r.slice_id AS region, r.track_id AS first, p.track_id, p.ts, p.te
    FROM parts p ASOF JOIN regions r ON p.process_id = r.process_id AND p.ts >= r.ts WHERE p.te <= r.te),
whole AS (SELECT region FROM members GROUP BY region HAVING count(*) = count(DISTINCT track_id) AND count(*) =
    (SELECT max(TRY_CAST(regexp_extract(value, '\\d+') AS BIGINT)) FROM args WHERE slice_id = region AND key = 'threads'))
"""
SYNTHETIC = 1 << 30  # tids from here on are no threads: frames, regions, requests (docs/TRACE_FORMAT.md)
NO_WORK = ("Trace", "overhead", "gpu_user_annotation", "cuda_sync", "mpi_request")  # categories that only describe
WAITING = re.compile(
    r"MPI_(I?m?probe|M?recv|Mprobe|Probe|Recv|Sendrecv|Sendrecv_replace|Ssend|Wait(all|any|some)?|Barrier"
    r"|(All)?gatherv?|(All)?reduce|Alltoall[vw]?|Bcast|Scatterv?|Reduce|Gatherv?|Scan|Exscan|Reduce_scatter(_block)?"
    r"|Neighbor_\w+|Win_(fence|wait|complete|lock|lock_all|unlock|unlock_all|flush|flush_all))(_c)?"
    r"|clFinish|clWaitForEvents|\w+(HostSynchronize|Synchronize)(_ptsz|_v\d+)?|(cuda|hip)Memcpy(2D|3D)?(_ptds)?"
    r"|cuMemcpy(DtoH|HtoD)?(_v2)?(_ptds)?",
    re.IGNORECASE,
)
ALL = "Allreduce|Allgather|Alltoall|Reduce_scatter_block"
COLLECTIVE = rf"MPI_(Barrier|{ALL}|Allgatherv|Bcast|Scatterv?|Reduce|Gatherv?)(_c)?"
DEPENDENT = ("dependent_on", "continuation_of", "continued_by", "predecessor_to")  # relations that one waits for

# which slices are nodes, as the graph knows them; small tables, made once
CHOSEN = (
    "CREATE OR REPLACE TEMP TABLE path_devices AS SELECT DISTINCT track_id FROM slices WHERE kind IN ('kernel', 'copy', 'device')",
    f"""CREATE OR REPLACE TEMP TABLE path_synthetic AS
        SELECT track_id FROM threads WHERE TRY_CAST(tid AS BIGINT) BETWEEN {SYNTHETIC} AND {2 * SYNTHETIC - 1}""",
    f"""CREATE OR REPLACE TEMP VIEW path_chosen AS SELECT slice_id, track_id, ts, dur,
        CASE kind WHEN 'call' THEN 1 WHEN 'kernel' THEN 2 WHEN 'copy' THEN 3 WHEN 'device' THEN 4 ELSE 0 END AS code,
        CASE WHEN kind IN ('kernel', 'copy', 'device')
            THEN regexp_replace(name, '\\[(SIMD|\\{{|[0-9]).*$', '') ELSE name END AS label
    FROM slices
    WHERE kind <> 'request' AND coalesce(cat, '') NOT IN {NO_WORK}
        AND (track_id IN (FROM path_devices)) = (kind IN ('kernel', 'copy', 'device'))
        AND track_id NOT IN (FROM path_synthetic)""",
    """CREATE OR REPLACE TEMP TABLE path_names AS SELECT code, label, row_number() OVER (ORDER BY code, label) AS number
    FROM (SELECT DISTINCT code, label FROM path_chosen)""",
)
AT_ONCE = 1 << 20  # slices that are asked for: DuckDB keeps an answer until it is a whole one


@dataclass
class Graph:
    """Arrays for replay/input.c, one element for each slice, track, name, arrow or member of a collective.

    slice_id, track_id, process_id: i8, what the numbers of slices, tracks and processes are in the tables.
    names: list of str, names[0] is OUTSIDE. name_kind: u1, index of KINDS.
    begin, end: i8, ns since `base`, which is in ns since the epoch.
    """

    base: int
    slice_id: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    track: np.ndarray
    name: np.ndarray
    kind: np.ndarray
    track_id: np.ndarray
    process: np.ndarray
    process_id: np.ndarray
    names: list
    name_kind: np.ndarray
    flags: np.ndarray
    arrow_from: np.ndarray = None
    arrow_to: np.ndarray = None
    arrow_time: np.ndarray = None
    arrow_type: np.ndarray = None
    groups: int = 0
    group: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint32))
    member: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint32))
    role: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))


def make_graph(tables):
    """The Graph of xstrace.open()'s tables; its arrays are empty where the traces hold no slice."""
    graph = _slices(tables)
    index = _index(graph.slice_id)
    _collectives(tables, graph, index)
    _regions(tables, graph, index)
    _arrows(tables, graph, index)
    return graph


def _numbers(relation):
    """The columns of a relation as arrays, by name."""
    return {name: np.ma.getdata(column) for name, column in relation.fetchnumpy().items()}


def _chosen(tables):
    """Columns of the slices, by track and time, what holds others before them: the order of their ids."""
    last = tables.sql("SELECT coalesce(max(slice_id), -1) FROM slices").fetchall()[0][0]
    parts = []
    for low in range(0, last + 1, AT_ONCE) or (0,):
        part = _numbers(
            tables.sql(
                f"""SELECT slice_id, track_id::UINTEGER AS track_id, ts, dur, path_chosen.code::UTINYINT AS kind, number::UINTEGER AS name
                FROM path_chosen JOIN path_names USING (code, label) WHERE slice_id BETWEEN {low} AND {low + AT_ONCE - 1}"""
            )
        )
        order = np.argsort(part["slice_id"])
        parts.append({name: column[order] for name, column in part.items()})
    # a column at a time: of ten million slices each has 40 or 80 MB
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}


def _slices(tables):
    for statement in CHOSEN:
        tables.connection.execute(statement)
    named = _numbers(tables.sql("SELECT code, label FROM path_names ORDER BY number"))
    slices = _chosen(tables)
    base = int(slices["ts"].min(initial=LONGEST))
    if len(slices["ts"]) and int(slices["ts"].max()) - base > LONGEST or slices["dur"].max(initial=0) > LONGEST:
        raise TraceError("times of the trace lie more than 36 years apart")
    is_new = np.append(True, slices["track_id"][1:] != slices["track_id"][:-1])[: len(slices["track_id"])]
    track_id = slices.pop("track_id")[is_new].astype(np.int64)
    track = np.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
    threads = _numbers(tables.sql("SELECT track_id, process_id FROM threads ORDER BY track_id"))
    of_track = threads["process_id"][np.searchsorted(threads["track_id"], track_id)]
    process_id, process = np.unique(of_track, return_inverse=True)
    names = [OUTSIDE, *map(str, named["label"])]
    name_kind = np.concatenate(([TASK], named["code"])).astype(np.uint8)
    begin, end = slices.pop("ts"), slices.pop("dur")
    begin -= base
    np.maximum(end, 0, out=end)
    end += begin
    # a worker of OpenMP's that nobody calls any more has ended with its work
    last = np.flatnonzero(np.append(is_new[1:], len(track) > 0))
    idle = last[np.array([names[n] == IDLE for n in slices["name"][last]], bool)]
    end[idle] = begin[idle]
    return Graph(
        base=base,
        slice_id=slices["slice_id"],
        begin=begin,
        end=end,
        track=track,
        name=slices["name"].astype(np.uint32, copy=False),
        kind=slices["kind"].astype(np.uint8, copy=False),
        track_id=track_id,
        process=process.astype(np.uint32),
        process_id=process_id,
        names=names,
        name_kind=name_kind,
        flags=np.array([k == CALL and bool(WAITING.fullmatch(n)) for n, k in zip(names, name_kind)], np.uint8),
    )


def _index(slice_id):
    """A function from arrays of the tables' ids to the graph's numbers, -1 where there is none."""

    def numbers(ids):
        at = np.searchsorted(slice_id, ids)
        at[at == len(slice_id)] = 0
        return np.where(slice_id[at] == ids, at, -1) if len(slice_id) else np.full(len(ids), -1)

    return numbers


def _arrows(tables, graph, index):
    found = _numbers(
        tables.sql(
            f"""SELECT from_slice, to_slice, from_ts, to_ts,
                (CASE WHEN cat = 'mpi' AND name = 'message' THEN 1 WHEN cat = 'mpi' THEN 2 WHEN cat = 'process' THEN 3
                WHEN cat = 'relation' AND name NOT IN {DEPENDENT} THEN 9 ELSE 0 END)::UTINYINT AS sort
            FROM flows WHERE from_slice IS NOT NULL AND to_slice IS NOT NULL"""
        )
    )
    source, target, sort = index(found["from_slice"]), index(found["to_slice"]), found["sort"]
    good = (source >= 0) & (target >= 0) & (sort != 9)
    source, target, sort = source[good], target[good], sort[good]
    time, ends = found["from_ts"][good] - graph.base, found["to_ts"][good] - graph.base
    # device work lets others go on when it ends: at that moment the next may begin, and a wait be over
    source = np.where(graph.kind[source] >= KERNEL, _ended(graph, source, time), source)
    target = np.where((graph.kind[source] >= KERNEL) & (graph.kind[target] < KERNEL), _ended(graph, target, ends), target)
    from_device, to_device = graph.kind[source] >= KERNEL, graph.kind[target] >= KERNEL
    kinds = np.select(
        [from_device & to_device, to_device, from_device, sort == 1, sort == 2, sort == 3],
        [ORDER, TO_DEVICE, TO_HOST, SENT, TOGETHER, CHILD],
        HANDED,
    )
    # those of collectives whose members are known say nothing new
    known = np.zeros(len(graph.begin) + 1, bool)
    known[graph.member] = True
    good = (kinds != TOGETHER) | ~(known[source] & known[target])
    source, target, time, kinds = source[good], target[good], time[good], kinds[good]
    more_from, more_to = _unsaid_waits(graph, source, target, kinds)
    graph.arrow_from = np.concatenate((source, more_from)).astype(np.uint32)
    graph.arrow_to = np.concatenate((target, more_to)).astype(np.uint32)
    graph.arrow_time = np.maximum(np.concatenate((time, graph.end[more_from])), 0)
    graph.arrow_type = np.concatenate((kinds, np.full(len(more_from), TO_HOST))).astype(np.uint8)


def _ended(graph, slices, times):
    """For slices that begin at their time the one of the same track that ends then, if it is one of those just before."""
    found = slices.copy()
    begun = np.flatnonzero(graph.begin[slices] == times)
    for back in range(1, 1 + LOOK_BACK):
        before = np.maximum(slices[begun] - back, 0)
        is_it = (graph.end[before] == times[begun]) & (graph.track[before] == graph.track[slices[begun]])
        found[begun[is_it]] = before[is_it]
        begun = begun[~is_it & (before > 0)]
    return found


def _keys(numbers, times, moments):
    """Pairs of a number and a time, as one number that sorts as they do; moments: the times that matter, sorted."""
    return numbers.astype(np.int64) * (len(moments) + 1) + np.searchsorted(moments, times, side="right")


def _unsaid_waits(graph, source, target, kinds):
    """Calls that wait for a device, where the trace does not say for what: for what ended last, of their process's work.

    Returns two arrays: the work, and the calls.
    """
    waits = np.array([not name.startswith("MPI") for name in graph.names]) & (graph.flags > 0)
    is_open = waits[graph.name]
    is_open[target[kinds == TO_HOST]] = False
    calls = np.flatnonzero(is_open)
    launched = kinds == TO_DEVICE
    work, owner = target[launched], graph.process[graph.track[source[launched]]]
    if not len(calls) or not len(work):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # work by process and end: of a call's process the last that ends within the call
    order = np.lexsort((graph.end[work], owner))
    work, owner = work[order], owner[order]
    moments = np.sort(graph.end[work])
    whose = graph.process[graph.track[calls]]
    keys = _keys(owner, graph.end[work], moments)
    at = np.searchsorted(keys, _keys(whose, graph.end[calls], moments), side="right") - 1
    last = work[np.maximum(at, 0)]
    good = (at >= 0) & (owner[np.maximum(at, 0)] == whose) & (graph.end[last] > graph.begin[calls])
    return last[good], calls[good]


def _regions(tables, graph, index):
    """Threads of an OpenMP region wait for its begin, and its first thread for all of them, as members of a collective do."""
    joined = _numbers(
        tables.sql(
            REGIONS
            + f"""SELECT b.slice_id, region AS number, (CASE WHEN m.track_id = first THEN {GIVES | GETS} ELSE {GIVES} END)::UTINYINT AS role
            FROM members m JOIN whole USING (region) JOIN barriers b ON b.track_id = m.track_id AND b.ts = m.te"""
        )
    )
    begun = _numbers(
        tables.sql(
            REGIONS
            + """, waited AS (SELECT m.region, b.slice_id FROM members m ASOF JOIN barriers b ON b.track_id = m.track_id AND m.ts >= b.te
                WHERE m.track_id <> first)
            SELECT slice_id, region AS number FROM waited JOIN whole USING (region)"""
        )
    )
    begins = np.unique(begun["number"])
    _add_groups(
        graph,
        np.concatenate((joined["number"], -1 - begun["number"], -1 - begins)),
        index(np.concatenate((joined["slice_id"], begun["slice_id"], begins))),
        np.concatenate((joined["role"], np.full(len(begun["number"]), GETS), np.full(len(begins), GIVES))),
    )


def _collectives(tables, graph, index):
    """Calls of one collective, by the communicator's identity and the call's number on it (docs/MPI.md)."""
    calls = tables.sql(
        f"""WITH wanted AS (SELECT slice_id, track_id, name FROM slices WHERE kind = 'call' AND regexp_full_match(name, '{COLLECTIVE}')),
        said AS (SELECT slice_id,
            max(value) FILTER (key = 'comm') AS comm, max(value) FILTER (key = 'seq') AS seq,
            max(value) FILTER (key = 'root') AS root, max(value) FILTER (key = 'bytes') AS bytes,
            bool_or(key = 'result') AS failed
            FROM args WHERE slice_id IN (SELECT slice_id FROM wanted) AND key IN ('comm', 'seq', 'root', 'bytes', 'result')
            GROUP BY slice_id)
        SELECT slice_id, dense_rank() OVER (ORDER BY comm, seq, plain) AS number,
            (CASE WHEN plain = 'Barrier' THEN 3
                WHEN coalesce(TRY_CAST(bytes AS BIGINT), 0) <= 0 THEN 0
                WHEN plain IN ('Bcast', 'Scatter', 'Scatterv') THEN CASE WHEN is_root THEN 1 ELSE 2 END
                WHEN plain IN ('Reduce', 'Gather', 'Gatherv') THEN CASE WHEN is_root THEN 2 ELSE 1 END
                ELSE 3 END)::UTINYINT AS role
        FROM (SELECT slice_id, comm, seq, bytes, regexp_extract(wanted.name, '^MPI_(.*?)(_c)?$', 1) AS plain,
                coalesce(TRY_CAST(root AS BIGINT) = processes.rank, false) AS is_root
            FROM said JOIN wanted USING (slice_id) JOIN threads USING (track_id) JOIN processes USING (process_id)
            WHERE comm IS NOT NULL AND seq IS NOT NULL AND comm <> 'self' AND NOT coalesce(failed, false))
        ORDER BY number"""
    )
    calls = _numbers(calls)
    _add_groups(graph, calls["number"], index(calls["slice_id"]), calls["role"])


def _add_groups(graph, number, member, role):
    """Further groups of slices, by numbers of any kind; those of one member, and slices that the graph has not, are left out."""
    good = (member >= 0) & (role > 0)
    member, role = member[good], role[good]
    _, group, size = np.unique(number[good], return_inverse=True, return_counts=True)
    several = size[group] > 1
    group = np.unique(group[several], return_inverse=True)[1] + graph.groups
    graph.group = np.concatenate((graph.group, group.astype(np.uint32)))
    graph.member = np.concatenate((graph.member, member[several].astype(np.uint32)))
    graph.role = np.concatenate((graph.role, role[several].astype(np.uint8)))
    graph.groups = int(group.max(initial=graph.groups - 1)) + 1
