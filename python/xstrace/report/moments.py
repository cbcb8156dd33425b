"""Steps of a program, and how busy its tracks are over time: what examine.py tells in order of time."""

from __future__ import annotations

import statistics
from array import array

from .prelude import DEVICE_WORK, rows_of

STEPS = range(3, 20_001)  # so often must a task occur to be taken for a step
STEP_SHARE = 0.2  # of the run, which steps must cover
OUTLIERS_MAX = 5
CAUSES_MAX = 5
BINS = 240
DRAWN_MAX = 24  # processes of a report, whose tracks and steps are kept
HOST_ROWS, DEVICE_ROWS = 6, 8  # of a process

# a step's name without its number
STEP_NAME = r"regexp_replace(name, '[ #]*\d+$', '')"


# ---- steps ----

# Of the tasks at one depth of one thread that repeat, ProfilerStep#N comes first, then the one that covers the most time.
_CHOICE = rf"""CREATE OR REPLACE TEMP TABLE step_of AS
SELECT process_id, track_id, depth, {STEP_NAME} AS step, count(*) AS n, sum(dur)::BIGINT AS ns FROM slices JOIN spans USING (process_id)
WHERE kind = 'task' AND ($wanted IS NULL OR name = $wanted OR {STEP_NAME} = $wanted) GROUP BY process_id, track_id, depth, step
HAVING n BETWEEN {STEPS[0]} AND {STEPS[-1]} AND ($wanted IS NOT NULL OR ns >= {STEP_SHARE} * any_value(ends - begins))
QUALIFY row_number() OVER (PARTITION BY process_id ORDER BY step = 'ProfilerStep' DESC, ns DESC, depth, track_id, step) = 1"""

_STEPS = rf"""CREATE OR REPLACE TEMP TABLE steps AS
SELECT s.process_id, s.track_id, s.slice_id, row_number() OVER (PARTITION BY s.process_id ORDER BY ts, slice_id) - 1 AS number, ts, dur
FROM timed s JOIN step_of o ON o.track_id = s.track_id AND o.depth = s.depth AND {STEP_NAME} = o.step WHERE s.kind = 'task'"""

# ns of device work in each step: of all devices of the process together
_BUSY = """WITH busy AS (SELECT *, sum(te - ts) OVER (PARTITION BY device_id ORDER BY ts ROWS UNBOUNDED PRECEDING) AS ns FROM levels WHERE kernels + others > 0),
edges AS (
  SELECT s.process_id, s.number, o.device_id, unnest([s.ts, s.ts + s.dur]) AS t, unnest([-1, 1]) AS sign FROM steps s JOIN owners o USING (process_id))
SELECT e.process_id, e.number, sum(e.sign * coalesce(b.ns - greatest(b.te - e.t, 0), 0))::BIGINT AS ns
FROM edges e ASOF LEFT JOIN busy b ON b.device_id = e.device_id AND b.ts <= e.t GROUP BY ALL"""
_TIMES = f"""SELECT s.process_id, s.ts, s.dur, b.ns FROM steps s LEFT JOIN ({_BUSY}) b USING (process_id, number)
ORDER BY s.process_id, s.number"""


def steps(connection, processes, wanted):
    """Adds "steps" to each process: None, or the times of the task that repeats, or of the one that is named `wanted`."""
    for process in processes.values():
        process["steps"] = None
    connection.execute(_CHOICE, {"wanted": wanted})
    connection.execute(_STEPS)
    for row in rows_of(connection, "SELECT process_id, track_id, step AS name FROM step_of"):
        if process := processes.get(row["process_id"]):
            process["steps"] = {**row, "rows": array("q")}
    for row in rows_of(connection, _TIMES):
        if process := processes.get(row["process_id"]):
            process["steps"]["rows"].extend((row["ts"], row["dur"], -1 if row["ns"] is None else row["ns"]))
    for at, (process_id, process) in enumerate(processes.items()):
        if process["steps"]:
            _judge(connection, process_id, process["steps"], at < DRAWN_MAX)


def _judge(connection, process_id, found, is_drawn):
    """Adds median and the outliers, the worst first, each with what took longer in it than in the mean step. What is not drawn needs no more of them."""
    rows = found["rows"]
    lengths = rows[1::3]
    found["rows"] = [[*pair, None if ns < 0 else ns] for *pair, ns in zip(rows[::3], lengths, rows[2::3])] if is_drawn else None
    found["count"] = len(lengths)
    found["median"] = int(statistics.median(lengths))
    deviation = statistics.median(abs(dur - found["median"]) for dur in lengths)
    limit = max(1.5 * found["median"], found["median"] + 5 * deviation)
    outliers = sorted((n for n, dur in enumerate(lengths) if dur > limit), key=lambda n: -lengths[n])
    found["limit"], found["beyond"] = int(limit), len(outliers)
    found["cost"] = sum(lengths[n] - found["median"] for n in outliers)
    outliers = outliers[:OUTLIERS_MAX] if is_drawn else []
    causes = _causes(connection, process_id, len(lengths), outliers) if outliers else {}
    found["outliers"] = [{"number": n, "ts": rows[3 * n], "dur": lengths[n], "longer": causes.get(n, [])} for n in outliers]


def _causes(connection, process_id, count, outliers):
    """What took longer in those steps than in the mean of the others: {number: [{"name", "ns", "more"}, …]}."""
    sql = f"""WITH mine AS (SELECT * FROM steps WHERE process_id = $process),
work AS (
  SELECT name, ts, self AS ns FROM slices WHERE track_id = (SELECT any_value(track_id) FROM mine) AND slice_id NOT IN (SELECT slice_id FROM mine)
  UNION ALL
  SELECT name, ts, dur FROM slices WHERE kind IN {DEVICE_WORK} AND process_id IN (SELECT device_id FROM owners WHERE process_id = $process)
  UNION ALL
  SELECT NULL, s.ts, s.self FROM slices s JOIN mine USING (slice_id)),
placed AS (SELECT w.name, w.ns, CASE WHEN m.number IN (SELECT unnest($outliers)) THEN m.number END AS number
  FROM work w ASOF JOIN mine m ON m.ts <= w.ts WHERE w.ts < m.ts + m.dur)
SELECT name, number, sum(ns)::BIGINT AS ns FROM placed GROUP BY ALL"""
    usual, found = {}, {n: {} for n in outliers}
    for name, number, ns in connection.execute(sql, {"process": process_id, "outliers": outliers}).fetchall():
        if number is None:
            usual[name] = ns / max(count - len(outliers), 1)
        else:
            found[number][name] = ns
    longer = {}
    for number, names in found.items():
        more = sorted(((round(ns - usual.get(name, 0)), ns, name) for name, ns in names.items()), key=lambda row: (-row[0], str(row[2])))
        longer[number] = [{"name": name, "ns": ns, "more": by} for by, ns, name in more[:CAUSES_MAX] if by > 0]
    return longer


# ---- the drawing ----

# how long each track was in each state in each of BINS equal parts of its process's time
_COVER = f"""WITH ranked AS (
  SELECT p.process_id, s.track_id, d.is_device, sum(s.dur) AS ns
  FROM slices s JOIN processes d ON d.process_id = s.process_id LEFT JOIN owners o ON o.device_id = s.process_id
  JOIN spans p ON p.process_id = coalesce(o.process_id, s.process_id)
  WHERE p.process_id IN (SELECT unnest($drawn)) AND ((s.depth = 0 AND NOT d.is_device) OR s.kind IN {DEVICE_WORK}) GROUP BY ALL),
chosen AS (
  SELECT r.* FROM ranked r LEFT JOIN leads l USING (process_id, track_id)
  QUALIFY row_number() OVER (PARTITION BY r.process_id, r.is_device ORDER BY l.track_id IS NULL, ns DESC, track_id)
    <= CASE WHEN is_device THEN {DEVICE_ROWS} ELSE {HOST_ROWS} END),
parts AS (
  SELECT track_id, ts, te, CASE WHEN class IN ('wait', 'mpi', 'build') THEN class WHEN class = 'poll' THEN 'wait' ELSE 'call' END AS state FROM host_calls
  UNION ALL
  SELECT track_id, ts, ts + dur, CASE WHEN kind = 'kernel' THEN 'kernel' WHEN kind IN {DEVICE_WORK} THEN 'copy' ELSE 'any' END
  FROM slices WHERE kind IN {DEVICE_WORK} OR depth = 0),
placed AS (
  SELECT c.process_id, p.track_id, p.state, p.ts, p.te, s.begins, greatest((s.ends - s.begins) / {BINS}, 1) AS part,
    floor((p.ts - s.begins) / part)::BIGINT AS first, floor((p.te - s.begins) / part)::BIGINT AS last
  FROM parts p JOIN chosen c USING (track_id) JOIN spans s USING (process_id) WHERE NOT (c.is_device AND p.state = 'any')),
pieces AS (
  SELECT process_id, track_id, state, first AS number, te - ts AS ns FROM placed WHERE first = last
  UNION ALL
  SELECT process_id, track_id, state, number, least(te, begins + part * (number + 1)) - greatest(ts, begins + part * number)
  FROM (SELECT *, unnest(range(first, last + 1)) AS number FROM placed WHERE first < last))
SELECT process_id, track_id, state, number, sum(ns) AS ns FROM pieces WHERE number BETWEEN 0 AND {BINS - 1} GROUP BY ALL ORDER BY ALL"""


def timeline(connection, processes):
    """Adds "timeline" to each process that is drawn: rows {"name", "device", "states": {state: [share in 1/1000 of each of BINS parts]}}."""
    for process in processes.values():
        process["timeline"] = []
    rows, drawn = {}, list(processes)[:DRAWN_MAX]
    for process_id, track, state, number, ns in connection.execute(_COVER, {"drawn": drawn}).fetchall():
        process = processes[process_id]
        if track not in rows:
            thread, device = _names_of(connection, track)
            rows[track] = {"name": thread, "device": device or None, "states": {}}
            process["timeline"].append(rows[track])
        part = max((process["ends"] - process["begins"]) / BINS, 1)
        rows[track]["states"].setdefault(state, [0] * BINS)[number] = min(round(1000 * ns / part), 1000)
    for row in rows.values():
        _split(row["states"])


def _names_of(connection, track):
    """What the track is called, and the device that it is of, or None."""
    sql = "SELECT t.tid, t.name, p.is_device, p.name FROM threads t JOIN processes p USING (process_id) WHERE t.track_id = ?"
    tid, thread, is_device, name = connection.execute(sql, [track]).fetchone() or (None, "", False, None)
    return thread if thread or tid is None else f"thread {tid}", name if is_device else None


def _split(states):
    """A host track's time in slices that is in no call is its tasks'."""
    if "any" in states:
        calls = [states[state] for state in ("wait", "mpi", "build", "call") if state in states]
        states["task"] = [max(whole - sum(parts), 0) for whole, *parts in zip(states.pop("any"), *calls)]
