"""What xstrace-diff compares: traces become runs, and each run a table of times by kind and name.

A place is a file, a directory or a pattern. What belongs to one run is found out so:
- each directory that holds traces is a place of its own;
- traces of one launch (metadata.run) belong together;
- launches of ranks: the first one of each rank make the first run, the second ones the second, and so on.
"""

from __future__ import annotations

import collections
import os

from .convert import NoTables, find_traces
from .many import NAMES
from .tables import explained, open as open_tables

KINDS = ("task", "call", "kernel", "copy", "rank", "run")
BLOCKS = 24  # of the executions of a name, where there is one run alone

# of a trace: what it is, and a row for each kind and name
ABOUT = "select rank, run, host, begin_ns, end_ns, complete, pid from traces"
ROWS = """
select kind, name, count(*)::bigint, sum(dur)::bigint, sum(self)::bigint, approx_quantile(dur, 0.5)::double
from slices where kind in ('task', 'call', 'kernel', 'copy') and not coalesce(unfinished, false) and name is not null
group by kind, name"""
SUMS = """
select coalesce(sum(case when kind in ('kernel', 'copy', 'device') then dur end), 0)::bigint,
       coalesce(sum(case when kind = 'call' and (name like 'MPI\\_%' escape '\\' or name like 'PMPI\\_%' escape '\\') then dur end), 0)::bigint,
       coalesce(min(ts), 0)::bigint, coalesce(max(ts + dur), 0)::bigint
from slices where not coalesce(unfinished, false)"""
PIECES = f"""
select kind, name, block, count(*)::bigint, sum(dur)::bigint, sum(self)::bigint, approx_quantile(dur, 0.5)::double from (
  select kind, name, dur, self, ntile({BLOCKS}) over (partition by kind, name order by ts, slice_id) as block
  from slices where kind in ('task', 'call', 'kernel', 'copy') and not coalesce(unfinished, false) and name is not null)
group by kind, name, block order by block"""


def read_trace(path, in_blocks, cache, memory_limit, zstd_window):
    """What is compared of a trace: a dict of plain values. Raises NoTables.

    faults: what of the trace is in no table, list of str; is_lossy: is that more than a missing end?

    rows: list of (kind, name, count, ns, ns without children, median); blocks: the same with the block's number behind the name, when
    in_blocks says so; rank, run, host, pid, complete; work, mpi: ns; begin, end: ns since the epoch, of the first and last slice.
    """
    with open_tables([path], cache=cache, memory_limit=memory_limit, zstd_window=zstd_window, threads=1) as tables, explained():
        ask = tables.connection.execute
        rank, run, host, begin, end, complete, pid = ask(ABOUT).fetchone()
        work, mpi, first, last = ask(SUMS).fetchone()
        return {
            "path": path,
            "faults": tables.faults(),
            "is_lossy": tables.is_lossy(),
            "rank": rank,
            "run": run,
            "host": host,
            "pid": pid,
            "complete": bool(complete),
            "begin": first or begin or 0,
            "end": last or end or 0,
            "work": work,
            "mpi": mpi,
            "rows": ask(ROWS).fetchall(),
            "blocks": ask(PIECES).fetchall() if in_blocks else [],
        }


def traces_of(place, pool=None):
    """The paths of the traces of a place. pool: of a cluster's workers, who see them. Raises NoTables."""
    if pool is None:
        return [path for path, _ in find_traces(place)]
    found = pool.find([place], NAMES)
    if not found:
        raise NoTables(f"{place}: no worker sees a trace there")
    return found


def runs_of(traces):
    """The runs, lists of what read_trace() gives, in the order in which they began."""
    launches = collections.defaultdict(list)
    for number, trace in enumerate(traces):
        place = os.path.dirname(os.path.abspath(trace["path"]))
        launches[place, trace["run"] if trace["run"] is not None else number].append(trace)
    runs = []
    of_ranks = collections.defaultdict(list)
    for (place, _), launch in sorted(launches.items(), key=lambda item: min(trace["begin"] for trace in item[1])):
        ranks = {trace["rank"] for trace in launch}
        if len(ranks) == 1 and None not in ranks:
            of_ranks[place, *ranks].append(launch)
        else:
            runs.append(launch)
    places = collections.defaultdict(dict)
    for (place, _), repeats in of_ranks.items():
        for number, launch in enumerate(repeats):
            places[place].setdefault(number, []).extend(launch)
    runs += [run for repeats in places.values() for run in repeats.values()]
    return sorted(runs, key=lambda run: min(trace["begin"] for trace in run))


Sample = collections.namedtuple("Sample", "count total self median")
Sample.__doc__ = (
    """One value to compare: executions, the ns of all of them, with and without what is inside, and their medians times their number."""
)


def samples_of(runs, by_rank=False):
    """{(kind, name): [Sample or None for each run]}; of one run alone without repeats, the samples are its blocks.

    by_rank: names get the rank in front, as in "2: MPI_Send".
    """
    found = collections.defaultdict(dict)
    is_single = len(runs) == 1 and any(trace["blocks"] for trace in runs[0])

    def add(key, number, count, total, own, median):
        before = found[key].get(number, (0, 0, 0, 0))
        found[key][number] = (before[0] + count, before[1] + total, before[2] + own, before[3] + median * count)

    for number, run in enumerate(runs):
        for trace in run:
            front = f"{trace['rank']}: " if by_rank and trace["rank"] is not None else ""
            if is_single:
                for kind, name, block, *row in trace["blocks"]:
                    add((kind, front + name), block - 1, *row)
            else:
                for kind, name, *row in trace["rows"]:
                    add((kind, front + name), number, *row)
        for key, value in _sums_of(run):
            add(key, number, 1, value, value, value)
    width = 1 if is_single else len(runs)
    return {key: _filled(values, max(width, max(values) + 1) if is_single else width) for key, values in found.items()}


def _filled(values, width):
    return [Sample(*values[number]) if number in values else None for number in range(width)]


def _sums_of(run):
    """The rows of the kinds "run" and "rank"."""
    begin, end = min(trace["begin"] for trace in run), max(trace["end"] for trace in run)
    yield ("run", "wall"), end - begin
    work, mpi = sum(trace["work"] for trace in run), sum(trace["mpi"] for trace in run)
    if work:
        yield ("run", "device work"), work
    if mpi:
        yield ("run", "MPI"), mpi
    for trace in run:
        if trace["rank"] is not None:
            yield ("rank", f"{trace['rank']} wall"), trace["end"] - trace["begin"]
            if trace["work"]:
                yield ("rank", f"{trace['rank']} device work"), trace["work"]
            if trace["mpi"]:
                yield ("rank", f"{trace['rank']} MPI"), trace["mpi"]
