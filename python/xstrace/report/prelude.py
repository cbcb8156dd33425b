"""What the report derives from a trace's tables before it asks its questions: a few tables, each one statement of SQL.

The report makes them once, as temporary tables. Where it shows the SQL of a finding, those that the finding reads stand in front of it as a
WITH clause, so xstrace-query runs the text as it is and finds the same rows.
"""

from __future__ import annotations

import re

DEVICE_WORK = "('kernel', 'copy', 'device')"

# a counter's events may hold several values
COUNTER_NAME = "CASE WHEN c.key = 'value' THEN c.name ELSE c.name || ' ' || c.key END"

# What a host call does, by its name: the first row that matches.
CLASSES = (
    ("mpi", r"P?MPI(_|::)\w+"),
    ("poll", r"clGetEventInfo|zeEventQueryStatus|zeFenceQueryStatus|(cuda|hip)(Event|Stream)Query|cu(Event|Stream)Query"),
    (
        "wait",
        r"clFinish|clWaitForEvents|ze(CommandQueue|EventHost|FenceHost|CommandListHost)Synchronize"
        r"|(cuda|hip)(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Synchronize|ur(QueueFinish|EventWait)|pi(QueueFinish|EventsWait)",
    ),
    (
        "build",
        r"cl(Build|Compile|Link)Program|clCreateProgramWith\w+|zeModule(Create|DynamicLink)|cu(Module|Library)Load\w*|cuLinkComplete"
        r"|(cuda|hip)(Library|Module)Load\w*|(nvrtc|hiprtc)CompileProgram|ur(Program(Build|Compile|Link)\w*)",
    ),
    (
        "launch",
        r"clEnqueue(NDRangeKernel|Task|NativeKernel|CommandBufferKHR)|zeCommandListAppendLaunch\w+|zeCommandQueueExecuteCommandLists"
        r"|zeCommandListImmediateAppendCommandListsExp|(cuda|hip)Launch\w+|cuLaunch\w*|(cuda|hip|cu)GraphLaunch|ur(EnqueueKernelLaunch\w*|EnqueueCommandBufferExp)",
    ),
    (
        "alloc",
        r"clCreate(Buffer|Image|SubBuffer|Pipe)\w*|clSVM(Alloc|Free)|cl\w*Mem(Alloc|Free)\w*INTEL|clMem\w*FreeINTEL|clReleaseMemObject"
        r"|zeMem(Alloc\w+|Free\w*)|zeImageCreate|(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree)\w*|cuMem(Alloc|Free|Create|Map)\w*|urUSM\w*(Alloc|Free)",
    ),
    (
        "copy",
        r"clEnqueue(Read|Write|Copy|Fill|Map|Unmap|Migrate|SVM)\w*|zeCommandListAppend(Memory|Image)\w*|(cuda|hip)Mem(cpy|set|Prefetch)\w*"
        r"|cuMem(cpy|set|Prefetch)\w*|urEnqueue(Mem|USM)\w*",
    ),
)


def class_of(column):
    """SQL: the class (a word of CLASSES, or call) of the call whose name the column has."""
    rows = "\n".join(f"    WHEN regexp_full_match({column}, '{pattern}') THEN '{name}'" for name, pattern in CLASSES)
    return f"CASE\n{rows}\n    ELSE 'call' END"


# name -> (tables that it reads, SQL). Later ones may read earlier ones.
TABLES = {
    # which process of the host a device worked for: that whose calls its flows come from, else one of the same rank; where there is none, itself
    "owners": (
        (),
        f"""WITH work AS (SELECT DISTINCT process_id AS device_id FROM slices WHERE kind IN {DEVICE_WORK}),
callers AS (
  SELECT d.process_id AS device_id, h.process_id, count(*) AS n
  FROM flows f JOIN slices h ON h.slice_id = f.from_slice JOIN slices d ON d.slice_id = f.to_slice
  WHERE d.kind IN {DEVICE_WORK} AND h.kind = 'call' GROUP BY ALL)
SELECT w.device_id, h.process_id
FROM work w JOIN processes d ON d.process_id = w.device_id
JOIN processes h ON h.trace_id = d.trace_id AND (NOT h.is_device OR h.process_id = d.process_id)
LEFT JOIN callers c ON c.device_id = w.device_id AND c.process_id = h.process_id
LEFT JOIN (SELECT DISTINCT process_id, true AS is_program FROM slices WHERE kind IN ('call', 'task')) p ON p.process_id = h.process_id
QUALIFY row_number() OVER (PARTITION BY w.device_id
  ORDER BY c.n DESC NULLS LAST, h.is_device, p.is_program NULLS LAST, h.rank IS NOT DISTINCT FROM d.rank DESC, h.process_id) = 1""",
    ),
    # a host process from its first event to its last, with its devices' work
    "spans": (
        ("owners",),
        """SELECT coalesce(o.process_id, s.process_id) AS process_id, min(s.ts) AS begins, max(s.ts + s.dur) AS ends
FROM slices s LEFT JOIN owners o ON o.device_id = s.process_id GROUP BY ALL""",
    ),
    # a device's time cut wherever work begins or ends: how many kernels and other commands run from ts to te
    "levels": (
        ("owners",),
        f"""WITH edges AS (
  SELECT process_id AS device_id, ts AS t, CASE WHEN kind = 'kernel' THEN 1 ELSE 0 END AS kernels, CASE WHEN kind = 'kernel' THEN 0 ELSE 1 END AS others
  FROM slices WHERE kind IN {DEVICE_WORK} AND dur > 0
  UNION ALL
  SELECT process_id, ts + dur, CASE WHEN kind = 'kernel' THEN -1 ELSE 0 END, CASE WHEN kind = 'kernel' THEN 0 ELSE -1 END
  FROM slices WHERE kind IN {DEVICE_WORK} AND dur > 0),
places AS (SELECT device_id, t, sum(kernels)::BIGINT AS kernels, sum(others)::BIGINT AS others FROM edges GROUP BY ALL),
cut AS (
  SELECT device_id, t AS ts, lead(t) OVER w AS te, sum(kernels) OVER w AS kernels, sum(others) OVER w AS others
  FROM places WINDOW w AS (PARTITION BY device_id ORDER BY t))
SELECT device_id, process_id, ts, te, kernels::BIGINT AS kernels, others::BIGINT AS others FROM cut JOIN owners USING (device_id) WHERE te IS NOT NULL""",
    ),
    # idle time of a device between two pieces of work; total: of all its gaps up to this one's end
    "gaps": (
        ("levels",),
        """SELECT device_id, process_id, ts, te, sum(te - ts) OVER (PARTITION BY device_id ORDER BY ts ROWS UNBOUNDED PRECEDING)::BIGINT AS total
FROM levels WHERE kernels = 0 AND others = 0""",
    ),
    # calls of the host that lie in no other call, with what they do
    "host_calls": (
        (),
        f"""WITH classes AS (SELECT name, {class_of("name")} AS class FROM (SELECT DISTINCT name FROM slices WHERE kind = 'call')),
marked AS (
  SELECT slice_id, track_id, process_id, name, ts, ts + dur AS te, max(ts + dur) OVER (
    PARTITION BY track_id ORDER BY ts, dur DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered
  FROM slices WHERE kind = 'call')
SELECT slice_id, track_id, process_id, name, class, ts, te FROM marked JOIN classes USING (name) WHERE covered IS NULL OR ts >= covered""",
    ),
    # of each host process the thread that feeds its devices; without devices, the busiest
    "leads": (
        ("host_calls",),
        f"""WITH feeding AS (SELECT track_id, count(*) AS n FROM host_calls WHERE class IN ('launch', 'copy') GROUP BY ALL),
busy AS (
  SELECT process_id, track_id, sum(dur) AS ns FROM slices
  WHERE depth = 0 AND kind NOT IN {DEVICE_WORK} AND process_id IN (SELECT process_id FROM processes WHERE NOT is_device) GROUP BY ALL)
SELECT process_id, track_id FROM busy LEFT JOIN feeding USING (track_id)
QUALIFY row_number() OVER (PARTITION BY process_id ORDER BY n DESC NULLS LAST, ns DESC, track_id) = 1""",
    ),
    # each gap of a device with what its process's lead thread did: ns in calls that feed the device or wait for it, in MPI,
    # outside calls; and the waiting call that ended in the gap
    "idle": (
        ("gaps", "host_calls", "leads"),
        """WITH lead_calls AS (SELECT h.* FROM host_calls h JOIN leads USING (process_id, track_id)),
sums AS (
  SELECT process_id, ts, te, class, sum(te - ts) OVER w AS ns,
    sum(CASE WHEN class IN ('wait', 'launch', 'copy', 'poll', 'call') THEN te - ts ELSE 0 END) OVER w AS feeding,
    sum(CASE WHEN class = 'mpi' THEN te - ts ELSE 0 END) OVER w AS mpi
  FROM lead_calls WINDOW w AS (PARTITION BY process_id ORDER BY ts ROWS UNBOUNDED PRECEDING)),
edges AS (
  SELECT device_id, process_id, ts, te, ts AS t, -1 AS sign FROM gaps UNION ALL SELECT device_id, process_id, ts, te, te, 1 FROM gaps),
covered AS (
  SELECT e.device_id, e.process_id, e.ts, e.te, sum(sign * (s.ns - greatest(s.te - e.t, 0)))::BIGINT AS ns,
    sum(sign * (s.feeding - CASE WHEN s.class IN ('wait', 'launch', 'copy', 'poll', 'call') THEN greatest(s.te - e.t, 0) ELSE 0 END))::BIGINT AS feeding,
    sum(sign * (s.mpi - CASE WHEN s.class = 'mpi' THEN greatest(s.te - e.t, 0) ELSE 0 END))::BIGINT AS mpi
  FROM edges e ASOF LEFT JOIN sums s ON s.process_id = e.process_id AND s.ts <= e.t GROUP BY e.device_id, e.process_id, e.ts, e.te),
waits AS (SELECT process_id, te AS wait_end, name AS waited_in FROM host_calls WHERE class = 'wait')
SELECT g.device_id, g.process_id, g.ts, g.te, coalesce(feeding, 0) AS feeding, coalesce(mpi, 0) AS mpi, g.te - g.ts - coalesce(ns, 0) AS own,
  CASE WHEN w.wait_end >= g.ts THEN w.waited_in END AS waited_in
FROM covered g ASOF LEFT JOIN waits w ON w.process_id = g.process_id AND w.wait_end <= g.te""",
    ),
    # the first kernel of each host process
    "firsts": (
        ("owners",),
        f"""SELECT o.process_id, min(CASE WHEN s.kind = 'kernel' THEN s.ts END) AS kernel, min(s.ts) AS work
FROM slices s JOIN owners o ON o.device_id = s.process_id WHERE s.kind IN {DEVICE_WORK} GROUP BY ALL""",
    ),
}


def make(connection):
    """Makes the tables in the connection (of DuckDB), which has the trace's own."""
    for name, (_, sql) in TABLES.items():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")


def rows_of(connection, sql):
    """Yields the rows of a statement as dicts; until the last one the connection is for nothing else."""
    result = connection.execute(sql)
    names = [column[0] for column in result.description]
    while rows := result.fetchmany(1024):
        yield from (dict(zip(names, row, strict=True)) for row in rows)


def with_tables(sql):
    """The statement as it runs on a trace's tables alone: those above that it reads stand in front of it."""
    needed = []

    def need(names):
        for name in names:
            need(TABLES[name][0])
            if name not in needed:
                needed.append(name)

    need(name for name in TABLES if re.search(rf"\b{name}\b", sql))
    parts = [f"{name} AS (\n{TABLES[name][1]})" for name in needed]
    body = sql.strip()
    if not parts:
        return body
    rest = re.sub(r"\AWITH\b", "", body)
    return "WITH " + ",\n".join(parts) + (",\n" + rest.lstrip() if rest != body else "\n" + body)
