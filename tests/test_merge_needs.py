"""Who waits for whom in collectives: what MPI makes synchronising for these very counts, and nothing else, ties clocks and counts as waiting."""

import collections
import json
import os
import shutil
import subprocess

import pytest

from conftest import ROOT, XSTRACE
from merging import merge, merged
from ranks import MPI, MPICC, MPIEXEC, Ranks, needs_mpi
from test_merge_clocks import fake_clock, fakes_clocks

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LIBRARIES = {
    "MPICH": (MPICC, (MPIEXEC,), {}),
    "Open MPI": (shutil.which("mpicc.openmpi"), (shutil.which("mpiexec.openmpi"), "--oversubscribe"), AS_ROOT),
}


@pytest.fixture(scope="session", params=LIBRARIES)
def needs(request, tmp_path_factory):
    """(the program mpi_needs, the words in front of -n, environment) of a library."""
    cc, launcher, env = LIBRARIES[request.param]
    if not cc or not launcher[0]:
        pytest.skip(f"no {request.param}")
    path = tmp_path_factory.mktemp("needs") / "mpi_needs"
    source = ROOT / "tests/apps/mpi_needs.c"
    made = subprocess.run([cc, "-O1", "-Wall", "-Werror", "-Wno-stringop-overflow", "-o", path, source], capture_output=True, text=True)
    if made.returncode and "cannot find" in made.stderr:
        pytest.skip(f"{request.param} cannot link here")
    assert made.returncode == 0, made.stderr
    return path, launcher, env


def said(xstrace, rank):
    """({function: [ranks that each call waits for]}, [(which barrier, true times before and after it)])."""
    calls, times = collections.defaultdict(list), []
    for line in (xstrace.cwd / f"said.{rank}").read_text().splitlines():
        kind, *words = line.split()
        if kind == "need":
            calls[words[0]].append([] if words[1] == "-" else [int(word) for word in words[1].split(",")])
        elif kind == "true":
            times.append((len(calls["MPI_Barrier"]) - 1, int(words[0]), int(words[1])))
    return calls, times


def is_work(name):
    return name.startswith("MPI_I") or name.endswith("_init")


def expected(xstrace, traces):
    """{(communicator, function, rank): ns that it waits}, {…: ns that others waited for it}: from what the program says that its calls need, by one clock."""
    found = collections.defaultdict(dict)  # (comm, function, seq, start) → {rank: (slice, needs)}
    waits = {}
    for rank, trace in traces.items():
        calls, _ = said(xstrace, rank)
        base = trace.header["baseTimeNanoseconds"]
        by_name, starts = collections.defaultdict(list), collections.Counter()
        for s in sorted(trace.slices, key=lambda s: (s.start, s.end)):
            name = s.name.removesuffix("_c")
            if name in calls and (s.cat == "mpi_request") == is_work(name):
                by_name[name].append(s)
        waits[rank] = {base + s.end: base + s.start for s in trace.calls if s.name == "MPI_Wait"}
        for name, needed in calls.items():
            assert len(by_name[name]) == len(needed), (rank, name)
            for s, wanted in zip(by_name[name], needed):
                key = s.args["comm"], name, s.args["seq"]
                starts[key] += 1
                assert rank not in found[*key, starts[key]]
                found[*key, starts[key]][rank] = (base + s.start, base + s.end, wanted)
    waited, caused = collections.Counter(), collections.Counter()
    for (comm, name, *_), members in found.items():
        for rank, (start, end, wanted) in members.items():
            if not wanted:
                continue
            blame = max(wanted, key=lambda other: (members[other][0], -other))
            last = members[blame][0]
            assert all(members[other][0] <= end for other in wanted), (comm, name, rank, wanted)
            if is_work(name):
                comm_, name_, start = "-", "MPI_Wait", waits[rank][end]
            else:
                comm_, name_ = comm, name
            if last > start:
                waited[comm_, name_, rank] += min(last, end) - start
                caused[comm_, name_, blame] += min(last, end) - start
    return waited, caused


def reported(report):
    waited, caused = collections.Counter(), collections.Counter()
    for row in report["mpi"]:
        for one in row["ranks"]:
            if one["wait_ns"]:
                waited[row["comm"], row["call"], one["rank"]] = one["wait_ns"]
            if one["waited_for_ns"]:
                caused[row["comm"], row["call"], one["rank"]] = one["waited_for_ns"]
    return waited, caused


def report_of(xstrace, paths, *options, name="report.json"):
    merge("--report", name, *options, *paths, cwd=xstrace.cwd)
    return json.loads((xstrace.cwd / name).read_text())


def test_collectives_tie_and_wait_as_mpi_says(xstrace, needs):
    """Every collective, full, empty, with one empty rank, sparse, in place, between groups: on one host nobody moves, and waits are those that the program tells."""
    app, launcher, env = needs
    job = Ranks(xstrace, MPI, app, [xstrace.cwd], 4, {**env}, launcher, timeout=120)
    assert job.run.status == 0, job.run.err
    paths = [t.path for t in job.traces.values()]
    report, still = report_of(xstrace, paths), report_of(xstrace, paths, "--no-clock-sync", name="still.json")
    assert report["mpi"] == still["mpi"] and report["moved"] == still["moved"] == []
    for told, true in zip(reported(report), expected(xstrace, job.traces)):
        assert {key: (told[key], true[key]) for key in told | true if told[key] != true[key]} == {}
    names = {row["call"].removeprefix("MPI_") for row in report["mpi"] if row["wait_ns"]}
    assert {"Barrier", "Bcast", "Reduce", "Scan", "Exscan", "Gatherv", "Scatterv", "Alltoallw", "Neighbor_alltoallw", "Wait"} <= names
    trace = merged(paths, xstrace.cwd)
    assert [c["offset_ns"] for c in trace.metadata["clocks"]] == [0] and "tied_by" not in trace.metadata["clocks"][0]
    assert "No rank was moved." in merge("--report", "-", *paths, cwd=xstrace.cwd).stdout


@fakes_clocks
def test_ranks_by_two_other_clocks_are_put_where_they_were(xstrace, needs):
    """The same with two ranks that live by clocks of their own: true times, and the report says how far they were moved, and why."""
    app, launcher, env = needs
    fronts = [[], fake_clock(11 * 10**9, 50), [], fake_clock(-7 * 10**9, -80)]
    words = [word for front in fronts for word in (":", "-n", 1, *front, XSTRACE, MPI, app, xstrace.cwd)][1:]
    run = xstrace.bare(launcher[0], [str(word) for word in (*launcher[1:], *words)], env={**os.environ, **env}, timeout=120)
    assert run.status == 0, run.err
    xstrace.adopt(run, sorted(xstrace.cwd.glob("*.json")))
    traces = {t.metadata["rank"]: t for t in run.traces}
    paths = [t.path for t in run.traces]
    trace = merged(paths, xstrace.cwd)
    assert "have clocks of their own" in trace.said
    least, most = [], []
    for rank, alone in traces.items():
        barriers = sorted((s for s in trace.host if s.name == "MPI_Barrier" and s.track[0] == alone.pid), key=lambda s: s.start)
        _, times = said(xstrace, rank)
        least.append(max(barriers[n].end - after for n, _, after in times))
        most.append(min(barriers[n].start - before for n, before, _ in times))
    error = max(late - early for late in least for early in most)
    clocks = {c["rank"]: c for c in trace.metadata["clocks"]}
    assert error < max(c["error_ns"] for c in clocks.values()) + 1000 and error < 200_000
    report = report_of(xstrace, paths)
    moved = {one["rank"]: one for one in report["moved"]}
    assert set(moved) >= {1, 3} and abs(moved[1]["moved_ns"] + 11 * 10**9) < 10**9 and abs(moved[3]["moved_ns"] - 7 * 10**9) < 10**9
    for rank in (1, 3):
        assert "MPI_Barrier" in moved[rank]["tied_by"] and moved[rank]["not_the_hosts"]["early_ns"] > 6 * 10**9
    text = merge("--report", "-", *paths, cwd=xstrace.cwd).stdout
    assert "Ranks that were moved" in text and "by one clock MPI_" in text
