"""What slows programs down, as questions to a trace: each finding is a statement of SQL, a limit, and a sentence that says what to do.

A statement has a row for each process of the host: n (how often), cost (ns of that process's time), ts and dur of the place where it is worst,
track_id of a track there (or NULL), and what its sentence tells besides. A finding fires for a process where n and cost reach its limits.
`reduce.py` puts those of many processes together, and adds what only all of them together tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from . import prelude
from .moments import STEP_NAME

SHORT_KERNEL_NS = 20_000
SHORT_GAP_NS = 100_000
MEMORY = "(?i)mem|alloc|rss|heap|usm|reserved"


class Limits(NamedTuple):
    """n: at least so often; share: of the process's time, 0 to 1."""

    n: int
    share: float


@dataclass(frozen=True)
class Finding:
    """One question. Texts may hold {detail:ns}, {detail:n} or {detail}, filled in by page.py and command.py."""

    id: str
    title: str
    limits: Limits
    sql: str
    says: str  # what was found, with the row's columns
    do: str  # what to do about it
    effect: str = "of the run"  # what the share is a share of


FINDINGS = (
    Finding(
        "short-kernels",
        "Short kernels, one after the other",
        Limits(20, 0.02),
        f"""WITH short AS (
  SELECT process_id AS device_id, ts, ts + dur AS te, dur FROM slices WHERE kind = 'kernel' AND dur <= {SHORT_KERNEL_NS}),
between_short AS (
  SELECT i.* FROM idle i SEMI JOIN short a ON a.device_id = i.device_id AND a.te = i.ts SEMI JOIN short b ON b.device_id = i.device_id AND b.ts = i.te
  WHERE i.te - i.ts <= {SHORT_GAP_NS} AND i.waited_in IS NULL)
SELECT g.process_id, count(*) AS n, sum(te - ts)::BIGINT AS cost, arg_max(ts, (te - ts, -ts)) AS ts, max(te - ts) AS dur, NULL AS track_id,
  (SELECT median(dur)::BIGINT FROM short s JOIN owners o USING (device_id) WHERE o.process_id = g.process_id) AS kernel,
  median(te - ts)::BIGINT AS gap
FROM between_short g GROUP BY g.process_id""",
        "The device idles {gap:ns} (median) between kernels that take {kernel:ns} (median), {n:n} times: the host cannot launch them as fast as they run.",
        "Fuse small kernels, make each one do more work, or launch many at once: a graph (cudaGraph, command buffer, command list) or a batched library call.",
    ),
    Finding(
        "blocking-calls",
        "The host waits before it launches the next work",
        Limits(10, 0.02),
        """SELECT process_id, count(*) AS n, sum(feeding)::BIGINT AS cost, arg_max(ts, (feeding, -ts)) AS ts, arg_max(te - ts, (feeding, -ts)) AS dur,
  any_value(track_id) AS track_id, mode(waited_in ORDER BY waited_in) AS call
FROM idle JOIN leads USING (process_id) WHERE waited_in IS NOT NULL GROUP BY process_id""",
        "{n:n} times the device ran out of work while the host waited in {call}, then idled until the host had returned and launched more.",
        "Enqueue the next work before waiting for the last: wait once for a batch, or use events and queue dependencies in place of {call}.",
    ),
    Finding(
        "synchronous-copies",
        "Copies that the host waits for",
        Limits(3, 0.02),
        """WITH waited_for AS (
  SELECT DISTINCT c.slice_id, c.process_id, c.track_id, c.name, c.ts, c.dur
  FROM flows f JOIN slices c ON c.slice_id = f.from_slice JOIN slices d ON d.slice_id = f.to_slice
  WHERE d.kind = 'copy' AND c.kind = 'call' AND c.ts + c.dur >= d.ts + d.dur)
SELECT process_id, count(*) AS n, sum(dur)::BIGINT AS cost, arg_max(ts, (dur, -ts)) AS ts, max(dur) AS dur, arg_max(track_id, (dur, -ts)) AS track_id, mode(name ORDER BY name) AS call
FROM waited_for GROUP BY process_id""",
        "{n:n} copies were over when the call that enqueued them ({call}) returned: the host thread did nothing else meanwhile.",
        "Copy asynchronously from pinned (page-locked, USM host) memory, on a queue of its own, and wait only where the data is needed.",
    ),
    Finding(
        "exposed-copies",
        "Copies while no kernel runs",
        Limits(3, 0.10),
        """SELECT l.process_id, count(*) AS n, sum(te - ts)::BIGINT AS cost, arg_max(ts, (te - ts, -ts)) AS ts, max(te - ts) AS dur, NULL AS track_id
FROM levels l JOIN firsts f USING (process_id) WHERE kernels = 0 AND others > 0 AND f.kernel IS NOT NULL GROUP BY l.process_id""",
        "The device only copied for {cost:ns}, in {n:n} places: no kernel ran beside the copies.",
        "Keep data on the device, or copy the next block on a second queue while kernels work on this one.",
    ),
    Finding(
        "late-builds",
        "Programs are compiled or loaded during the run",
        Limits(1, 0.01),
        """SELECT h.process_id, count(*) AS n, sum(te - ts)::BIGINT AS cost, arg_max(ts, (te - ts, -ts)) AS ts, max(te - ts) AS dur, arg_max(track_id, (te - ts, -ts)) AS track_id,
  arg_max(h.name, (te - ts, -ts)) AS call, count(DISTINCT h.name) AS names
FROM host_calls h JOIN firsts f USING (process_id) WHERE class = 'build' AND ts > f.kernel GROUP BY h.process_id""",
        "{n:n} calls such as {call} built or loaded device code after the first kernel had run.",
        "Build once, before the loop, and keep the result; cache binaries; avoid shapes and constants that make the library compile again.",
    ),
    Finding(
        "late-allocations",
        "Device memory is allocated or freed during the run",
        Limits(10, 0.01),
        """SELECT h.process_id, count(*) AS n, sum(te - ts)::BIGINT AS cost, arg_max(ts, (te - ts, -ts)) AS ts, max(te - ts) AS dur, arg_max(track_id, (te - ts, -ts)) AS track_id,
  mode(h.name ORDER BY h.name) AS call
FROM host_calls h JOIN firsts f USING (process_id) WHERE class = 'alloc' AND ts > f.kernel GROUP BY h.process_id""",
        "{n:n} calls such as {call} came after the first kernel. Many runtimes wait for the device in them.",
        "Allocate once and use the memory again, or use a pool (cudaMallocAsync, a caching allocator).",
    ),
    Finding(
        "late-start",
        "The device has nothing to do at first",
        Limits(1, 0.15),
        """WITH before AS (
  SELECT h.process_id, h.name, sum(te - ts) AS ns FROM host_calls h JOIN leads USING (process_id, track_id) JOIN firsts f USING (process_id)
  WHERE h.te <= f.work GROUP BY ALL),
longest AS (SELECT process_id, arg_max(name, ns) AS call, max(ns)::BIGINT AS call_ns FROM before GROUP BY ALL)
SELECT f.process_id, 1 AS n, f.work - s.begins AS cost, s.begins AS ts, f.work - s.begins AS dur, l.track_id, coalesce(b.call, '(none)') AS call, coalesce(b.call_ns, 0) AS call_ns
FROM firsts f JOIN spans s USING (process_id) LEFT JOIN leads l USING (process_id) LEFT JOIN longest b USING (process_id)""",
        "The first work reached a device after {cost:ns}. Of the calls before it {call} took most: {call_ns:ns}.",
        "Start the device's first work earlier: cache compiled programs, set up while something else runs. For a short test run this may be normal: trace a longer one.",
    ),
    Finding(
        "host-bound",
        "The device idles behind one host thread",
        Limits(1, 0.10),
        f"""WITH feeders AS (SELECT process_id, count(DISTINCT track_id) AS threads FROM host_calls WHERE class IN ('launch', 'copy') GROUP BY ALL)
SELECT i.process_id, count(*) AS n, sum(own)::BIGINT AS cost, arg_max(ts, (own, -ts)) AS ts, arg_max(te - ts, (own, -ts)) AS dur, any_value(track_id) AS track_id, any_value(threads) AS threads
FROM idle i JOIN leads USING (process_id) JOIN feeders USING (process_id) WHERE te - ts > {SHORT_GAP_NS} AND own > 0 GROUP BY i.process_id""",
        "The device idled for {cost:ns} ({n:n} gaps) while the thread that feeds it was in no call: it ran the program's own code. Threads that launch work: {threads:n}.",
        "Move that code off the launching thread (prepare the next input in another thread), or launch ahead of it. Tasks of ITT around it show which code it is.",
    ),
    Finding(
        "device-waits-for-mpi",
        "The device idles while its thread is in MPI",
        Limits(3, 0.05),
        """SELECT process_id, count(*) AS n, sum(mpi)::BIGINT AS cost, arg_max(ts, (mpi, -ts)) AS ts, arg_max(te - ts, (mpi, -ts)) AS dur, any_value(track_id) AS track_id
FROM idle JOIN leads USING (process_id) WHERE mpi > 0 GROUP BY process_id""",
        "The device idled for {cost:ns} ({n:n} gaps) while the thread that feeds it was in MPI.",
        "Overlap communication with device work: non-blocking calls, messages in parts, kernels for the inner part of the domain first.",
    ),
    Finding(
        "polling",
        "A thread asks again and again whether something is ready",
        Limits(1000, 0.02),
        r"""SELECT process_id, count(*) AS n, sum(te - ts)::BIGINT AS cost, min(ts) AS ts, max(te) - min(ts) AS dur, mode(track_id ORDER BY track_id) AS track_id, mode(name ORDER BY name) AS call
FROM host_calls WHERE class = 'poll' OR regexp_full_match(name, 'MPI_I?(Test|Probe)\w*|MPI_Request_get_status\w*') GROUP BY process_id""",
        "{n:n} calls of {call} and its like asked whether something was ready.",
        "Wait in one blocking call, or do work between two questions.",
    ),
    Finding(
        "failed-calls",
        "Calls that failed",
        Limits(10, 0),
        """SELECT s.process_id, count(*) AS n, sum(s.dur)::BIGINT AS cost, min(s.ts) AS ts, arg_min(s.dur, s.ts) AS dur, arg_min(s.track_id, s.ts) AS track_id,
  mode(s.name ORDER BY s.name) AS call, arg_min(a.value, s.ts) AS result
FROM args a JOIN slices s USING (slice_id) WHERE a.key = 'result' AND s.kind = 'call' GROUP BY s.process_id""",
        "{n:n} calls returned an error, most of them {call}; the first one returned {result}.",
        "Look at the first one: a program that goes on after an error often takes a slower way.",
    ),
    Finding(
        "memory-growth",
        "Memory grows all the time",
        Limits(10, 0),
        f"""WITH grown AS (
  SELECT coalesce(o.process_id, c.process_id) AS process_id, {prelude.COUNTER_NAME} AS name, count(*) AS n, arg_min(value, ts) AS first, arg_max(value, ts) AS last, min(ts) AS ts, max(ts) - min(ts) AS dur
  FROM counters c LEFT JOIN owners o ON o.device_id = c.process_id WHERE regexp_matches({prelude.COUNTER_NAME}, '{MEMORY}')
  GROUP BY ALL HAVING last > 1.5 * abs(first) AND corr(value, ts) >= 0.9)
SELECT process_id, arg_max(n, last - first) AS n, 0 AS cost, arg_max(ts, last - first) AS ts, arg_max(dur, last - first) AS dur, NULL AS track_id,
  arg_max(name, last - first) AS counter, arg_max(first, last - first) AS first, arg_max(last, last - first) AS last
FROM grown GROUP BY process_id""",
        "The counter {counter} rose from {first:value} to {last:value} without falling back.",
        "Look for what is allocated in each step and never freed; a longer run may end without memory.",
    ),
)

OUTLIERS = Finding(
    "outlier-steps",
    "Some steps take much longer than the others",
    Limits(1, 0.01),
    f"""WITH steps AS (SELECT process_id, track_id, ts, dur FROM slices WHERE kind = 'task' AND depth = {{depth}} AND {STEP_NAME} = {{name}}),
usual AS (SELECT process_id, median(dur) AS median, mad(dur) AS deviation FROM steps GROUP BY ALL HAVING count(*) >= 8)
SELECT process_id, count(*) AS n, sum(dur - median)::BIGINT AS cost, arg_max(ts, (dur, -ts)) AS ts, max(dur) AS dur, arg_max(track_id, (dur, -ts)) AS track_id,
  any_value(median)::BIGINT AS median
FROM steps JOIN usual USING (process_id) WHERE dur > greatest(1.5 * median, median + 5 * deviation) GROUP BY process_id""",
    "{n:n} steps took more than half as long again as the median step ({median:ns}); the longest took {dur:ns}.",
    "The table of steps below tells what took longer in them. The first steps are often slower: caches, compilation, memory that is touched first.",
)


def _literal(name):
    """The name in SQL. Pages and terminals show it: a character that is not printable is written as its number."""
    words = []
    for printable, run in groupby(name, str.isprintable):
        words += ["'" + "".join(run).replace("'", "''") + "'"] if printable else [f"chr({ord(letter)})" for letter in run]
    return " || ".join(words) or "''"


def find(connection, processes):
    """Adds "findings" to each process: a list of {"id", "n", "cost", "share", "place", "detail"}, and "sql" where it is not the finding's own."""
    for process in processes.values():
        process["findings"] = []
    asked = [(finding, finding.sql) for finding in FINDINGS]
    for depth, name in connection.execute("SELECT DISTINCT depth, step FROM step_of ORDER BY ALL").fetchall():
        asked.append((OUTLIERS, OUTLIERS.sql.replace("{depth}", str(depth)).replace("{name}", f"({_literal(name)})")))
    for finding, sql in asked:
        for row in list(prelude.rows_of(connection, sql)):
            process = processes.get(row.pop("process_id"))
            if process is None:
                continue
            span = max(process["ends"] - process["begins"], 1)
            share = (row["cost"] or 0) / span
            if row["n"] >= finding.limits.n and share >= finding.limits.share:
                process["findings"].append(_fired(connection, finding, row, share, sql))


def _fired(connection, finding, row, share, sql):
    place = {"ts": row.pop("ts"), "dur": row["dur"], "thread": None, "tid": None, "pid": None}
    track = row.pop("track_id")
    if track is not None:
        names = connection.execute(
            "SELECT t.name, t.tid, p.pid FROM threads t JOIN processes p USING (process_id) WHERE t.track_id = ?", [track]
        )
        place.update(zip(("thread", "tid", "pid"), names.fetchone(), strict=True))
    return {
        "id": finding.id,
        "n": row.pop("n"),
        "cost": row["cost"],
        "share": share,
        "place": place,
        "detail": row,
        "sql": None if sql == finding.sql else sql,
    }
