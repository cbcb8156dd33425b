"""Runs xstrace-merge and looks at what it made, on the traces of jobs that never ran (ranks.Job) or of real ones."""

import collections
import subprocess

from conftest import BUILD, Trace, check_trace

MERGE = BUILD / "merge/xstrace-merge"


def merge(*args, cwd, status=0, **more):
    """Runs it; the CompletedProcess."""
    command = [str(arg) for arg in (MERGE, *args)]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, **more)
    assert result.returncode == status, result.stderr
    return result


def merged(paths, cwd, *options, status=0, name="all.json"):
    """Merges and checks; the Trace."""
    result = merge("-o", name, *options, *paths, cwd=cwd, status=status)
    assert check_trace(cwd / name, strict=True) == []
    trace = Trace(cwd / name)
    trace.said = result.stderr
    return trace


def arrows(trace, name=None, cat=None):
    """[(start, end)] of the flows, each an event."""
    points = collections.defaultdict(dict)
    for event in trace.events:
        if event["ph"] in "sf" and name in (None, event["name"]) and cat in (None, event["cat"]):
            points[event["cat"], event["name"], event["id"]][event["ph"]] = event
    return [(p["s"], p["f"]) for p in points.values()]


def talk(job, rounds=60, pause=20_000_000):
    """Work, neighbours' messages both ways, and a barrier, again and again."""
    for n in range(rounds):
        for rank in range(job.size):
            job.compute(rank, pause + job.random.randrange(pause))
        for rank in range(job.size):
            job.message(rank, (rank + 1) % job.size, tag=n % 3)
        if n % 5 == 0:
            job.everyone()
    return job


def worst_error(job, trace, among=""):
    """How far any slice is from its true time, up to one constant for all (ns); or those whose name begins so."""
    off = []
    found = collections.defaultdict(list)
    for s in trace.host:
        found[s.track[0]].append(s)
    for rank in range(job.size):
        slices = found[job.pid(rank)]
        assert len(slices) == len(job.calls[rank])
        off += [s.start - call[0] for s, call in zip(slices, job.calls[rank]) if call[2].startswith(among)]
    return max(abs(value - off[0]) for value in off)
