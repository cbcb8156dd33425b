"""Who waits for whom in collectives: what MPI makes synchronising for these very counts, and nothing else, ties clocks and counts as waiting."""

import collections
import json
import os
import shutil
import subprocess

import pytest

from conftest import ROOT, XSTRACE
from merging import merge, merged, worst_error
from ranks import MPI, MPICC, MPIEXEC, Clock, Job, Ranks
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


@pytest.mark.long(keep=1)
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
    # who naps longer than others is up to the machine: most calls keep somebody waiting
    assert len({row["call"] for row in report["mpi"] if row["wait_ns"]}) > 10
    labels = {s.args.get("comm_name") for t in job.traces.values() for s in t.slices if s.args}
    calls = [s for t in job.traces.values() for s in t.slices if s.args.get("comm", "world") not in ("world", "self")]
    assert len(calls) > 100 and not [s.name for s in calls if "comm_name" not in s.args]
    assert labels - {None, "2 of world"} == {"back wards", "2 and 2 of world", "4 of world"}
    assert {"back wards", "2 and 2 of world (0-3)", "4 of world (0-3)"} <= {row["comm_name"] for row in report["mpi"]}
    trace = merged(paths, xstrace.cwd)
    assert [c["offset_ns"] for c in trace.metadata["clocks"]] == [0] and "tied_by" not in trace.metadata["clocks"][0]
    assert "No rank was moved." in merge("--report", "-", *paths, cwd=xstrace.cwd).stdout


@pytest.mark.long(keep=1)
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


# ---- made-up programs ----


def ranges(places):
    """A list of ranks as it stands in a trace."""
    return ",".join(map(str, sorted(places)))


def random_call(random, job, comm, members):
    """One collective of these ranks, with the arguments that their slices have, by a model of what MPI's standard says of it."""
    zero = random.random() < 0.3
    amounts = {rank: 0 if zero or random.random() < 0.3 else 8 for rank in members}
    even = {rank: 0 if zero else 8 for rank in members}
    root = random.choice(members)
    others = {rank: [other for other in members if other != rank] for rank in members}
    kind = random.choice(["Barrier", "Allreduce", "Allgatherv", "Bcast", "Scatterv", "Gatherv", "Scan", "Alltoallv", "Reduce_scatter"])
    args = {rank: {"bytes": even[rank]} for rank in members}
    needs = {rank: [] for rank in members}
    if kind == "Barrier":
        needs, args = others, {rank: {} for rank in members}
    elif kind == "Allreduce":
        needs = needs if zero else others
    elif kind == "Allgatherv":
        needs = {rank: [other for other in others[rank] if amounts[other]] for rank in members}
        args = {rank: {"bytes": amounts[rank]} for rank in members}
    elif kind == "Bcast":
        needs = {rank: [root] if even[rank] and rank != root else [] for rank in members}
        args = {rank: {"bytes": even[rank], "root": root} for rank in members}
    elif kind == "Scatterv":
        needs = {rank: [root] if amounts[rank] and rank != root else [] for rank in members}
        args = {rank: {"bytes": amounts[rank], "root": root} for rank in members}
    elif kind == "Gatherv":
        needs[root] = [other for other in others[root] if amounts[other]]
        args = {rank: {"bytes": amounts[rank], "root": root} for rank in members}
    elif kind == "Scan":
        needs = {rank: [] if zero else members[:place] for place, rank in enumerate(members)}
    elif kind == "Alltoallv":
        given = {rank: {other for other in members if not zero and random.random() < 0.4} for rank in members}
        needs = {rank: [other for other in given[rank] if other != rank] for rank in members}
        args = {rank: {"bytes": 8, "from": ranges(members.index(other) for other in given[rank])} for rank in members}
    else:
        needs = {rank: others[rank] if amounts[rank] else [] for rank in members}
        args = {rank: {"bytes": 8, "from": "all" if amounts[rank] else ""} for rank in members}
    before = {rank: len(job.calls[rank]) for rank in members}
    job.collective(kind, needs, args, comm)
    return kind, {rank: (job.calls[rank][before[rank]], wanted) for rank, wanted in needs.items()}


def random_job(seed, hosts, clocks=None, calls=300):
    """(the job, what each of its ranks waits in each kind of call)."""
    job = Job(hosts, clocks, seed)
    comms = {"world": list(range(job.size)), "00000000000000aa": job.random.sample(range(job.size), job.size)}
    comms["00000000000000bb"] = sorted(job.random.sample(range(job.size), max(2, job.size // 2)))
    for comm, members in comms.items():
        for place, rank in enumerate(members):
            job.told[rank].append({"comm": comm, "rank": place, "members": len(members), **({"name": "odd ones"} if comm[-1] == "b" else {})})
    waited = collections.Counter()
    for _ in range(calls):
        for rank in range(job.size):
            job.compute(rank, 1 + int(job.random.expovariate(1 / 50_000)))
        comm = job.random.choice(list(comms))
        kind, members = random_call(job.random, job, comm, comms[comm])
        for rank, ((start, end, *_), wanted) in members.items():
            last = max((members[other][0][0] for other in wanted), default=start)
            if last > start:
                waited[comm, f"MPI_{kind}", rank] += min(last, end) - start
    return job, waited


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_of_one_host(tmp_path, seed):
    """As the model has it: nobody moves, every wait is found, and no other."""
    job, waited = random_job(seed, ["a"] * (2 + seed % 7))
    merge("--report", "r.json", *job.write(tmp_path), cwd=tmp_path)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["moved"] == []
    assert reported(report)[0] == waited
    names = {row["comm"]: row["comm_name"] for row in report["mpi"]}
    assert names["world"] == "world" and names["00000000000000aa"] == f"{job.size} of world (0{f'-{job.size - 1}' if job.size > 1 else ''})"
    assert names["00000000000000bb"] == "odd ones"


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_of_three_clocks(tmp_path, seed):
    """Two ranks of one host that contradict each other, and a host beside them: true times, and all that the report says of it."""
    job, _ = random_job(seed, ["a", "a", "a", "b"], {1: Clock(3 * 10**9, 0), "b": Clock(-5 * 10**9, 30)}, 600)
    paths = job.write(tmp_path)
    trace = merged(paths, tmp_path)
    assert worst_error(job, trace) < 10_000
    (line,) = [line for line in trace.said.splitlines() if "have clocks of their own" in line]
    assert line.startswith("[WARNING] ranks on a have clocks of their own: by one clock MPI_")
    merge("--report", "r.json", *paths, cwd=tmp_path)
    moved = {one["rank"]: one for one in json.loads((tmp_path / "r.json").read_text())["moved"]}
    assert abs(moved[1]["moved_ns"] + 3 * 10**9) < 10_000 and abs(moved[3]["moved_ns"] - 5 * 10**9) < 10**6
    assert moved[1]["not_the_hosts"]["early_ns"] > 2 * 10**9 and "not_the_hosts" not in moved[3]


def test_small_errors_of_two_clocks_are_no_proof(tmp_path):
    """Each trace says how far its times can be off: what they explain moves nobody; what they do not does."""
    job = Job(["a", "a"], {1: Clock(900, 0)}, fastest=400)
    for _ in range(50):
        job.compute(0, 10_000)
        job.compute(1, 10_000)
        job.everyone()
    for error, count in ((1000, 0), (10, 1)):
        for path in job.write(tmp_path):
            text = path.read_text()
            path.write_text(text.replace('"lost": 0', f'"lost": 0, "clock_error_ns": {error}'))
        paths = sorted(tmp_path.glob("app.*.json"))
        report = json.loads(merge_report(tmp_path, paths))
        assert len(report["moved"]) == count
        (tmp_path / "r.json").unlink()


def merge_report(where, paths):
    merge("--report", "r.json", *paths, cwd=where)
    return (where / "r.json").read_text()
