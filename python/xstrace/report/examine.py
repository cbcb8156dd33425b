"""What the report needs of one trace: a dict of plain values, small enough to be sent from where the trace is (workers.py).

Each section is SQL over the trace's tables and those of prelude.py, for all processes of the trace at once. `reduce.py` puts the dicts of many
traces together.
"""

from __future__ import annotations

import contextlib
import json

from .. import convert, overhead, tables
from . import findings, moments, prelude
from .prelude import COUNTER_NAME, rows_of

PROCESS_BYTES = 32 << 10  # of the memory limit: so many processes are told of
NAME_BYTES = 16 << 10  # likewise names, of one kind and all processes
NAMES_MAX = 2000  # of one kind and process; the time of further ones is told as one row
THREADS_MAX = 64
GAPS_MAX = 20
COUNTERS_MAX = 200
BUCKETS_NS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
OTHERS = "(all others)"

# a kernel's name without the shape of its launch, a copy's without its bytes
BASE_NAME = r"regexp_replace(name, '\[(SIMD[^\]]*|\d+)\]$', '')"


def examine(path, options):
    """Opens the trace `path` and returns what is told of it (a dict).

    options: {"memory_limit": bytes, "threads": of DuckDB, "converter": xstrace-tables, "step": a name or None,
    "subtract": bool}.
    Raises OSError or TraceError when the file cannot be used.
    """
    convert.prefer(options["converter"])
    with tables.open([path], memory_limit=options["memory_limit"], threads=options["threads"]) as opened, tables.explained():
        settle(opened.connection, options["subtract"])
        told, left_out = _told(opened.connection, path, options)
        faults, is_lossy = opened.faults(), opened.is_lossy()
    if left_out:
        faults = [*faults, f"{left_out} of {left_out + len(told['processes'])} processes need more memory than --memory-limit allows; left out"]
    return {**told, "faults": faults, "is_lossy": is_lossy or left_out > 0}


def _told(connection, path, options):
    prelude.make(connection)
    trace = dict(zip(TRACE, connection.execute(f"SELECT {', '.join(TRACE.values())} FROM traces").fetchone(), strict=True))
    trace["overhead"] = _cost(connection)
    processes, left_out = _processes(connection, max(options["memory_limit"] // PROCESS_BYTES, 1))
    names_max = max(options["memory_limit"] // NAME_BYTES // max(len(processes), 1), 1)
    for process in processes.values():
        process["trace"] = path
        process["devices"] = {}
    for section in SECTIONS:
        section(connection, processes, names_max)
    moments.steps(connection, processes, options["step"])
    moments.timeline(connection, processes)
    findings.find(connection, processes)
    for process in processes.values():
        process["devices"] = list(process["devices"].values())
    return {"trace": trace, "processes": list(processes.values())}, left_out


def settle(connection, subtract):
    """Makes `timed`, the slices with the durations that tables by name and steps show: here alone they may differ from the trace's.

    subtract: without what tracing cost.
    """
    if not subtract:
        connection.execute("CREATE OR REPLACE TEMP VIEW timed AS SELECT *, 0 AS cost FROM slices")
    else:
        overhead.subtract(connection)
        connection.execute("""CREATE OR REPLACE TEMP TABLE timed AS
WITH below AS (SELECT parent_id AS slice_id, sum(n.cost) AS cost FROM slices_net n JOIN slices USING (slice_id) WHERE parent_id IS NOT NULL GROUP BY ALL)
SELECT s.* REPLACE (n.net AS dur, greatest(s.self - n.cost + coalesce(b.cost, 0), 0)::BIGINT AS self), n.cost
FROM slices s JOIN slices_net n USING (slice_id) LEFT JOIN below b USING (slice_id)""")


TRACE = {
    "path": "path",
    "tool": "tool",
    "version": "version",
    "host": "host",
    "rank": "rank",
    "base": "base_ns",
    "begins": "begin_ns",
    "end": "ended",
    "status": "status",
    "lost": "lost",
    "complete": "complete",
}


def _cost(connection):
    """What the trace tells of its own cost, as plain values, or None."""
    for key, value in connection.execute(
        "SELECT key, value FROM metadata WHERE key IN ('otherData.overhead', 'otherData.inputs')"
    ).fetchall():
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            if told := overhead.overhead_of({key.partition(".")[2]: json.loads(value)}):
                events = {kind: {"count": one.count, "ns": one.ns} for kind, one in told.costs.items()}
                return {
                    "events": events,
                    **{
                        key: getattr(told, key)
                        for key in ("events_ns", "waited_ns", "commands_ns", "start_ns", "drain_cpu_ns", "drain_peak_bytes")
                    },
                }
    return None


def _processes(connection, most):
    """Those that the report tells of, at most so many: the ones that did most. Second: how many further ones there are."""
    sql = f"""WITH told AS (SELECT process_id FROM owners UNION SELECT process_id FROM slices JOIN processes USING (process_id)
  WHERE NOT is_device AND kind IN ('call', 'task', 'request')),
work AS (SELECT coalesce(o.process_id, s.process_id) AS process_id, sum(s.self) AS ns FROM slices s LEFT JOIN owners o ON o.device_id = s.process_id GROUP BY ALL),
chosen AS (
  SELECT process_id, count(*) OVER () AS whole FROM told JOIN work USING (process_id)
  QUALIFY row_number() OVER (ORDER BY ns DESC, process_id) <= {most})
SELECT p.process_id, p.pid, p.name, p.rank, p.host, s.begins, s.ends, c.whole
FROM processes p JOIN spans s USING (process_id) JOIN chosen c USING (process_id) ORDER BY p.process_id"""
    processes, whole = {}, 0
    for row in rows_of(connection, sql):
        whole = row.pop("whole")
        processes[row["process_id"]] = row
    return processes, whole - len(processes)


def _threads(connection, processes, names_max):
    sql = """WITH states AS (
  SELECT track_id, sum(te - ts)::BIGINT AS calls, sum(CASE WHEN class IN ('wait', 'poll') THEN te - ts ELSE 0 END)::BIGINT AS wait,
    sum(CASE WHEN class = 'mpi' THEN te - ts ELSE 0 END)::BIGINT AS mpi, count(*) FILTER (class IN ('launch', 'copy')) AS launches
  FROM host_calls GROUP BY ALL),
busy AS (SELECT track_id, process_id, sum(dur)::BIGINT AS busy, sum(cost)::BIGINT AS cost FROM timed WHERE depth = 0 GROUP BY ALL)
SELECT b.process_id, b.track_id, t.tid, t.name, b.busy, b.cost, coalesce(s.calls, 0) AS calls, coalesce(s.wait, 0) AS wait, coalesce(s.mpi, 0) AS mpi,
  coalesce(s.launches, 0) AS launches, l.track_id IS NOT NULL AS leads
FROM busy b JOIN threads t USING (track_id) JOIN processes p ON p.process_id = b.process_id AND NOT p.is_device
LEFT JOIN states s USING (track_id) LEFT JOIN leads l USING (track_id) ORDER BY leads DESC, busy DESC, b.track_id"""
    for process in processes.values():
        process["threads"], process["lead"], process["threads_more"] = [], None, 0
    for row in rows_of(connection, sql):
        process = processes.get(row.pop("process_id"))
        if process is None:
            continue
        if row.pop("leads"):
            process["lead"] = row
        if len(process["threads"]) < min(THREADS_MAX, names_max):
            process["threads"].append(row)
        else:
            process["threads_more"] += 1


def _lead_calls(connection, processes, names_max):
    """What the lead thread's time went into: outermost calls by name; the rest of its time is the program's own."""
    sql = """SELECT h.process_id, h.class, h.name, count(*) AS count, sum(t.dur)::BIGINT AS ns
FROM host_calls h JOIN leads USING (process_id, track_id) JOIN timed t USING (slice_id) GROUP BY ALL ORDER BY ns DESC, h.name"""
    _by_name(connection, processes, sql, "lead_calls", names_max, ("count", "ns"))


def _by_name(connection, processes, sql, section, names_max, sums):
    """Rows with a name; those beyond NAMES_MAX, and names_max, are summed up, those of a class together."""
    most, others = min(NAMES_MAX, names_max), {}
    for process in processes.values():
        process[section] = []
    for row in rows_of(connection, sql):
        process_id = row.pop("process_id")
        if process_id not in processes:
            continue
        rows, kind = processes[process_id][section], (process_id, row.get("class"))
        if len(rows) < most:
            rows.append(row)
        elif kind not in others:
            others[kind] = {**row, "name": OTHERS}
            rows.append(others[kind])
        else:
            rest = others[kind]
            for key in sums:
                rest[key] += row[key]
            if "min" in row:
                rest["min"], rest["max"] = min(rest["min"], row["min"]), max(rest["max"], row["max"])


def _calls(connection, processes, names_max):
    sql = f"""WITH names AS (SELECT DISTINCT name FROM slices WHERE kind = 'call'), classes AS (SELECT name, {prelude.class_of("name")} AS class FROM names)
SELECT process_id, class, name, count(*) AS count, sum(dur)::BIGINT AS ns, min(dur) AS min, max(dur) AS max
FROM timed JOIN classes USING (name) WHERE kind = 'call' GROUP BY ALL ORDER BY ns DESC, name"""
    _by_name(connection, processes, sql, "calls", names_max, ("count", "ns"))


def _tasks(connection, processes, names_max):
    sql = """SELECT process_id, name, count(*) AS count, sum(dur)::BIGINT AS ns, sum(self)::BIGINT AS self, min(dur) AS min, max(dur) AS max
FROM timed WHERE kind = 'task' GROUP BY ALL ORDER BY self DESC, name"""
    _by_name(connection, processes, sql, "tasks", names_max, ("count", "ns", "self"))


def _kernels(connection, processes, names_max):
    sql = f"""SELECT o.process_id, {BASE_NAME} AS name, count(*) AS count, sum(dur)::BIGINT AS ns, min(dur) AS min, max(dur) AS max
FROM slices s JOIN owners o ON o.device_id = s.process_id WHERE kind = 'kernel' GROUP BY ALL ORDER BY ns DESC, name"""
    _by_name(connection, processes, sql, "kernels", names_max, ("count", "ns"))


def _copies(connection, processes, names_max):
    sql = f"""SELECT o.process_id, {BASE_NAME} AS name, count(*) AS count, sum(dur)::BIGINT AS ns, min(dur) AS min, max(dur) AS max,
  coalesce(sum(bytes), 0)::BIGINT AS bytes
FROM slices s JOIN owners o ON o.device_id = s.process_id WHERE kind IN ('copy', 'device') GROUP BY ALL ORDER BY ns DESC, name"""
    _by_name(connection, processes, sql, "copies", names_max, ("count", "ns", "bytes"))


def _devices(connection, processes, _):
    """Of each device: how long kernels ran, other commands, both, nothing; and for how long how many commands ran at once."""
    sql = """SELECT l.device_id, l.process_id, p.name, least(kernels + others, 8) AS running, kernels > 0 AS kernels, others > 0 AS others,
  sum(te - ts)::BIGINT AS ns, min(ts) AS begins, max(te) AS ends
FROM levels l JOIN processes p ON p.process_id = l.device_id GROUP BY ALL ORDER BY ALL"""
    for row in rows_of(connection, sql):
        process = processes.get(row["process_id"])
        if process is None:
            continue
        device = process["devices"].setdefault(
            row["device_id"],
            {
                "name": row["name"],
                **dict.fromkeys(("kernel", "copy", "both", "between"), 0),
                **{"begins": row["begins"], "ends": row["ends"], "at_once": {}, "gaps": [], "lengths": [], "idle": []},
            },
        )
        state = ("both" if row["others"] else "kernel") if row["kernels"] else "copy" if row["others"] else "between"
        device[state] += row["ns"]
        device["begins"], device["ends"] = min(device["begins"], row["begins"]), max(device["ends"], row["ends"])
        if row["running"]:
            device["at_once"][str(row["running"])] = device["at_once"].get(str(row["running"]), 0) + row["ns"]
    for process in processes.values():
        span = process["ends"] - process["begins"]
        for device in process["devices"].values():
            device["busy"] = device["kernel"] + device["copy"] + device["both"]
            device["span"] = span
            device["before"], device["after"] = device["begins"] - process["begins"], process["ends"] - device["ends"]


def _gap_lengths(connection, processes, _):
    bucket = (
        "CASE " + " ".join(f"WHEN te - ts < {ns} THEN {number}" for number, ns in enumerate(BUCKETS_NS)) + f" ELSE {len(BUCKETS_NS)} END"
    )
    sql = f"SELECT process_id, device_id, {bucket} AS bucket, count(*) AS count, sum(te - ts)::BIGINT AS ns FROM gaps GROUP BY ALL"
    for row in rows_of(connection, sql):
        if device := _device_of(processes, row):
            device["lengths"] = device["lengths"] or [[0, 0] for _ in range(len(BUCKETS_NS) + 1)]
            device["lengths"][row["bucket"]] = [row["count"], row["ns"]]


def _device_of(processes, row):
    process = processes.get(row["process_id"])
    return process and process["devices"].get(row["device_id"])


def _gaps(connection, processes, names_max):
    """The longest gaps, with the innermost slice of the lead thread in their middle."""
    sql = f"""WITH longest AS (
  SELECT * FROM idle QUALIFY row_number() OVER (PARTITION BY device_id ORDER BY te - ts DESC, ts) <= {min(GAPS_MAX, names_max)}),
inside AS (
  SELECT g.device_id, g.ts, s.name, s.depth FROM longest g JOIN leads l USING (process_id)
  JOIN slices s ON s.track_id = l.track_id AND s.ts <= (g.ts + g.te) // 2 AND s.ts + s.dur > (g.ts + g.te) // 2)
SELECT g.process_id, g.device_id, g.ts, g.te - g.ts AS dur, g.feeding, g.mpi, g.own, arg_max(i.name, i.depth) AS doing
FROM longest g LEFT JOIN inside i USING (device_id, ts) GROUP BY ALL ORDER BY dur DESC, g.ts"""
    for row in rows_of(connection, sql):
        if device := _device_of(processes, row):
            device["gaps"].append({key: row[key] for key in ("ts", "dur", "feeding", "mpi", "own", "doing")})


def _idle(connection, processes, names_max):
    """Whose fault the idle time between a device's work is: it by the innermost slice that the lead thread was in."""
    most = min(NAMES_MAX, names_max)
    sql = f"""WITH slices_of AS (
  SELECT o.device_id, s.slice_id, s.parent_id, s.ts, s.ts + s.dur AS te FROM leads l JOIN owners o USING (process_id) JOIN slices s USING (track_id)),
begun AS (
  SELECT s.*, coalesce(g.total - greatest(g.te - s.ts, 0), 0) AS before FROM slices_of s ASOF LEFT JOIN gaps g ON g.device_id = s.device_id AND g.ts <= s.ts),
covered AS (
  SELECT s.device_id, s.slice_id, s.parent_id, coalesce(g.total - greatest(g.te - s.te, 0), 0) - s.before AS ns
  FROM begun s ASOF LEFT JOIN gaps g ON g.device_id = s.device_id AND g.ts <= s.te),
entries AS (
  SELECT device_id, slice_id, ns FROM covered WHERE ns > 0
  UNION ALL
  SELECT device_id, parent_id, -ns FROM covered WHERE ns > 0 AND parent_id IS NOT NULL),
named AS (SELECT e.device_id, s.name, s.kind, sum(e.ns)::BIGINT AS ns FROM entries e JOIN slices s USING (slice_id) GROUP BY ALL)
SELECT o.process_id, n.device_id, n.name, CASE WHEN n.kind = 'call' THEN {prelude.class_of("n.name")} ELSE 'task' END AS class, n.ns
FROM named n JOIN owners o USING (device_id) WHERE n.ns > 0 ORDER BY n.ns DESC, n.name"""
    for row in rows_of(connection, sql):
        if device := _device_of(processes, row):
            rows = device["idle"]
            if len(rows) < most:
                rows.append({key: row[key] for key in ("name", "class", "ns")})
            elif len(rows) == most:
                rows.append({"name": OTHERS, "class": "other", "ns": row["ns"]})
            else:
                rows[-1]["ns"] += row["ns"]
    for process in processes.values():
        for device in process["devices"].values():
            rest = device["between"] - sum(row["ns"] for row in device["idle"])
            if rest > 0:
                device["idle"].append({"name": None, "class": "own", "ns": rest})
            device["idle"].sort(key=lambda row: -row["ns"])


def _counters(connection, processes, names_max):
    sql = f"""WITH ordered AS (
  SELECT coalesce(o.process_id, c.process_id) AS process_id, {COUNTER_NAME} AS name, c.ts, c.value FROM counters c LEFT JOIN owners o ON o.device_id = c.process_id)
SELECT process_id, name, count(*) AS count, min(value) AS min, max(value) AS max, avg(value) AS mean, arg_min(value, ts) AS first, arg_max(value, ts) AS last
FROM ordered GROUP BY process_id, name
QUALIFY row_number() OVER (PARTITION BY process_id ORDER BY count DESC, name) <= {min(COUNTERS_MAX, names_max)} ORDER BY name"""
    for process in processes.values():
        process["counters"] = []
    for row in rows_of(connection, sql):
        if process := processes.get(row.pop("process_id")):
            process["counters"].append(row)


SECTIONS = (_threads, _lead_calls, _calls, _tasks, _kernels, _copies, _devices, _gap_lengths, _gaps, _idle, _counters)
