"""MPI with real ranks: what the traces say against what the programs know they did."""

import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import ROOT, XSTRACE, Trace, root_only, wait_until
from ranks import MPI, MPICC, MPICH, MPIEXEC, Ranks, check_said, mpi_app  # noqa: F401

pytestmark = pytest.mark.skipif(not MPICH, reason="no MPICH")


def names_of(trace):
    """How many calls there are of each MPI function."""
    return collections.Counter(s.name for s in trace.calls if s.name.startswith("MPI_"))


def comms_of(trace):
    return [s.args["comm"] for s in sorted(trace.calls, key=lambda s: s.start) if "comm" in s.args]


@pytest.mark.parametrize("ranks", [2, 4])
def test_messages(xstrace, mpi_app, ranks):
    app = mpi_app("mpi_messages")
    bare = xstrace.bare(MPIEXEC, ["-n", str(ranks), app, xstrace.cwd])
    job = Ranks(xstrace, MPI, app, [xstrace.cwd], ranks)
    assert job.run.status == bare.status == 0 and job.run.out == bare.out and job.run.err == bare.err
    assert sorted(job.traces) == list(range(ranks))
    check_said(xstrace, job)
    for trace in job.traces.values():
        assert trace.other["lost"] == 0 and "unmatched_ends" not in trace.other
        # a request's work has the number of the calls that it began with and was waited for
        made = {s.args["request"] for s in trace.calls if s.name == "MPI_Irecv"}
        assert made <= {s.args["request"] for s in trace.slices if s.cat == "mpi_request"}
    # the same communicator has the same identity on all of its ranks, and different ones have different ones
    turned = {next(s.args["comm"] for s in job.calls(r) if s.name == "MPI_Bcast") for r in job.traces}
    half = [next(s.args["comm"] for s in job.calls(r) if s.name == "MPI_Allreduce") for r in sorted(job.traces)]
    assert len(turned) == 1 and len(turned.pop()) == 16
    assert half[0::2] == [half[0]] * (ranks // 2) and half[1::2] == [half[1]] * (ranks // 2)
    assert half[0] != half[1]


ENDS = r"""
#include <mpi.h>
#include <signal.h>
#include <string.h>
extern char **environ;
static volatile int armed;
char *getenv(const char *name) /* MPI asks for its variables */
{
	size_t n = strlen(name);
	if (armed && !strncmp(name, "MPI", 3)) raise(SIGKILL);
	for (char **at = environ; at && *at; at++)
		if (!strncmp(*at, name, n) && (*at)[n] == '=') return *at + n + 1;
	return 0;
}
int main(int argc, char **argv) { armed = 1; return MPI_Init(&argc, &argv); }
"""


@pytest.mark.parametrize("options", [MPI, f"{MPI} --flight-recorder 10s"])
def test_an_end_within_the_first_call(xstrace, options):
    """It is shown, although nothing was recorded before it."""
    source = xstrace.home / "ends.c"
    source.write_text(ENDS)
    subprocess.run([MPICC, "-w", "-o", source.with_suffix(""), source], check=True)
    run = xstrace(options, source.with_suffix(""))
    assert run.status == -signal.SIGKILL
    (call,) = run.trace.calls
    assert (call.name, call.unfinished) == ("MPI_Init", True)
    assert [thread.get("in_call") for thread in run.trace.other["threads"]] == ["MPI_Init"]


@pytest.mark.parametrize("mode", ["RTLD_NOW", "RTLD_LAZY", "RTLD_NOW | RTLD_GLOBAL"])
def test_the_first_library_that_is_opened(xstrace, mode):
    """A plug-in brings MPI, bound at once or later: as in Python, which opens an extension module."""
    plugin, host = xstrace.home / "plugin.c", xstrace.home / "host.c"
    plugin.write_text(
        "#include <mpi.h>\nint work(void)\n{\n\tint size;\n\tMPI_Init(0, 0);\n\tMPI_Comm_size(MPI_COMM_WORLD, &size);\n"
        "\tMPI_Barrier(MPI_COMM_WORLD);\n\tMPI_Finalize();\n\treturn size;\n}\n"
    )
    host.write_text(
        "#include <dlfcn.h>\nint main(int argc, char **argv)\n{\n"
        f"\tvoid *plugin = dlopen(argv[1], {mode});\n"
        '\tint (*work)(void) = dlsym(plugin, "work");\n\treturn work() - 2;\n}\n'
    )
    subprocess.run([MPICC, "-shared", "-fPIC", "-o", plugin.with_suffix(".so"), plugin], check=True)
    subprocess.run(["cc", "-w", "-o", host.with_suffix(""), host, "-ldl"], check=True)
    job = Ranks(xstrace, MPI, host.with_suffix(""), [plugin.with_suffix(".so")])
    assert job.run.status == 0
    for rank in (0, 1):
        assert list(names_of(job.traces[rank])) == ["MPI_Init", "MPI_Comm_size", "MPI_Barrier", "MPI_Finalize"]


def test_excluded_calls(xstrace, mpi_app):
    """Without calls that begin, ask for or end requests the rest is as it was, and so is the requests' work."""
    app = mpi_app("mpi_messages")
    out = ("MPI_Wait", "MPI_Test", "MPI_Irecv")
    whole = Ranks(xstrace, MPI, app, [xstrace.cwd])
    part = Ranks(xstrace, f"{MPI} -h --exclude-calls {','.join(out)}", app, [xstrace.cwd])
    assert part.run.status == 0 and not any(word in part.run.err for word in out)
    for rank, trace in part.traces.items():
        before = names_of(whole.traces[rank])
        assert names_of(trace) == {name: count for name, count in before.items() if not name.startswith(out)} != before
        work, was = (collections.Counter(s.name for s in t.slices if s.cat == "mpi_request") for t in (trace, whole.traces[rank]))
        assert work == was and work["MPI_Irecv"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives(xstrace, mpi_app, ranks):
    app = mpi_app("mpi_collectives")
    job = Ranks(xstrace, MPI, app, [xstrace.cwd], ranks)
    assert job.run.status == 0, job.run.err
    check_said(xstrace, job)
    for name, key in (("MPI_Win_fence", "win"), ("MPI_File_sync", "file"), ("MPI_Cart_shift", "comm")):
        found = {s.args[key] for t in job.traces.values() for s in t.calls if s.name == name}
        assert len(found) == 1 and len(found.pop()) == 16
    dup = {s.args["new_comm"] for t in job.traces.values() for s in t.calls if s.name == "MPI_Comm_dup"}
    assert len(dup) == 1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("ranks", [2, 4])
def test_rare_kinds_of_requests(xstrace, mpi_app, ranks):
    """Partitioned messages, MPI_Imrecv, MPI_Comm_idup, files."""
    job = Ranks(xstrace, MPI, mpi_app("mpi_more"), [xstrace.cwd], ranks)
    assert job.run.status == 0, job.run.err
    check_said(xstrace, job)
    twins = []
    for rank in sorted(job.traces):
        twins.append([next(s.args["comm"] for s in job.calls(rank) if s.name == name) for name in ("MPI_Barrier", "MPI_Bcast")])
    assert twins == [twins[0]] * ranks and len({*twins[0], "world"}) == 3


@pytest.mark.parametrize("ranks", [2, 4])
def test_sessions(xstrace, mpi_app, ranks):
    job = Ranks(xstrace, MPI, mpi_app("mpi_session"), [xstrace.cwd], ranks)
    assert job.run.status == 0, job.run.err
    assert sorted(job.traces) == list(range(ranks))
    check_said(xstrace, job)
    made = {tuple(s.args["new_comm"] for s in job.calls(rank) if "new_comm" in s.args) for rank in job.traces}
    (comms,) = made
    assert len(set(comms)) == 2
    for rank in job.traces:
        assert job.traces[rank].metadata["world_size"] == ranks
        used = [s.args["comm"] for s in job.calls(rank) if s.name in ("MPI_Barrier", "MPI_Bcast")]
        assert used == list(comms)


def test_killed_rank(xstrace, mpi_app):
    """A rank that is killed in a call: its trace says where it was, and those of the others are whole."""
    app = mpi_app("mpi_killed")
    files, deadline = [], time.monotonic() + 20
    xstrace.bare(MPIEXEC, ["-n", "2", XSTRACE, MPI, app])
    while len(files) < 2 or any(not path.read_text().endswith("]}}\n") for path in files):
        assert time.monotonic() < deadline
        files = sorted(xstrace.cwd.glob("*.json"))
        time.sleep(0.05)
    run = xstrace.runs[0]
    xstrace.adopt(run, files)
    killed = next(t for t in run.traces if t.metadata["rank"] == 1)
    assert killed.other["end"] == "killed" and killed.other["status"] == 9
    assert [t.get("in_call") for t in killed.other["threads"] if t["records"]] == ["MPI_Recv"]
    assert sum(s.name == "MPI_Send" for s in killed.calls) == 100


def most_at_once(slices):
    ends = sorted([(s.start, 1) for s in slices] + [(s.end, -1) for s in slices])
    now = most = 0
    for _, step in ends:
        now += step
        most = max(most, now)
    return most


@pytest.mark.long
def test_lanes_of_requests(xstrace, mpi_app):
    """Requests that overlap are shown on few tracks, not on one each, and those that come later use these again."""
    for many, tracks in (600, 12), (8000, 300):
        job = Ranks(xstrace, MPI, mpi_app("mpi_lanes"), [many], ranks=1)
        assert job.run.status == 0, job.run.err
        trace = job.traces[0]
        requests = [s for s in trace.slices if s.cat == "mpi_request"]
        assert len(requests) == many + 2 * min(many // 8 * 8, 1000) and not any("omitted" in key for key in trace.other)
        assert not any("told apart" in line for line in job.run.said)
        lanes = collections.defaultdict(list)
        for one in requests:
            lanes[one.track].append(one)
        assert len(lanes) <= tracks
        names = [trace.names("thread_name")[lane] for lane in lanes]
        assert sorted(names, key=len)[0] == "MPI requests" and set(names) - {"MPI requests"} == {
            f"MPI requests lane {i + 2}" for i in range(len(lanes) - 1)
        }
        for found in lanes.values():
            assert most_at_once(found) <= 100
            # in the file's order, of those that begin together the longest comes first
            begun = {}
            for one in found:
                assert begun.setdefault(one.start, one.end) >= one.end
        # one after the other: always the first track
        last = sorted(requests, key=lambda s: s.start)[-500:]
        assert {trace.names("thread_name")[s.track] for s in last} == {"MPI requests"}


@pytest.mark.parametrize("kind", [(), ("persistent",)], ids=["immediate", "persistent"])
@pytest.mark.parametrize("many", [50, 1000])
def test_requests_that_threads_hand_to_each_other(xstrace, mpi_app, many, kind):
    """They have one handle. Rings are read one after the other, but what belongs together is found by its time."""
    job = Ranks(xstrace, MPI, mpi_app("mpi_handed"), [many, *kind], ranks=1)
    if job.run.status == 77:
        pytest.skip("no MPI_THREAD_MULTIPLE")
    assert job.run.status == 0, job.run.err
    requests = sorted((s for s in job.traces[0].slices if s.cat == "mpi_request"), key=lambda s: s.start)
    assert [s.args["tag"] for s in requests] == list(range(many))
    assert all(one.end <= next.start for one, next in zip(requests, requests[1:]))
    assert "open_requests" not in job.traces[0].other


@pytest.mark.long
@pytest.mark.parametrize("options", ["--ring-size 64K", "--ring-size 64K -c", "--ring-size 4M"])
def test_requests_of_a_pool(xstrace, mpi_app, options):
    """A handle may be another thread's before the call that gave it back has ended; a small ring is behind its neighbours."""
    for seed in random.sample(range(10000), 4):
        job = Ranks(xstrace, f"{MPI} {options}", mpi_app("mpi_pool"), [seed, 8, 3000, xstrace.cwd / "truth"], ranks=1)
        if job.run.status == 77:
            pytest.skip("no MPI_THREAD_MULTIPLE")
        assert job.run.status == 0, job.run.err
        (trace,) = job.traces.values()
        truth = collections.Counter((xstrace.cwd / "truth").read_text().splitlines())
        works = [s for s in trace.slices if s.cat == "mpi_request"]
        tags = {work.args["request"]: work.args["tag"] for work in works}
        shown = collections.Counter(f"{work.name} {work.args['tag']}" for work in works)
        shown.update(f"by {s.name} {tags.get(s.args.get('request'))}" for s in job.calls(0) if s.name in ("MPI_Start", "MPI_Wait"))
        assert sum(truth.values()) > 1000 and shown == truth, (seed, truth - shown, shown - truth)
        assert "open_requests" not in trace.other and not any(work.unfinished for work in works)


@pytest.mark.long
def test_more_requests_than_are_kept(xstrace, mpi_app):
    """Those beyond the bound are counted; the others are complete, and all that come later are shown."""
    many, kept = 70000, 65536
    job = Ranks(xstrace, MPI, mpi_app("mpi_lanes"), [many], ranks=1)
    assert job.run.status == 0, job.run.err
    trace = job.traces[0]
    requests = [s for s in trace.slices if s.cat == "mpi_request"]
    assert len(requests) == kept + 2 * 1000 and not any(s.unfinished for s in requests)
    assert trace.other["omitted"] == {"requests": many - kept} and "open_requests" not in trace.other


def test_paused(xstrace, mpi_app):
    """Collectives and communicators are counted while nothing is recorded."""
    job = Ranks(xstrace, f"{MPI} --start-paused", mpi_app("mpi_paused"))
    assert job.run.status == 0, job.run.err
    for rank in job.traces:
        (barrier,) = [s for s in job.calls(rank) if s.name == "MPI_Barrier"]
        assert barrier.args["seq"] == 8 and len(barrier.args["comm"]) == 16
    assert len({job.calls(rank)[0].args["comm"] for rank in job.traces}) == 1


def test_requests_that_are_complete_while_nothing_is_recorded(xstrace, mpi_app):
    """When is not known: they end where recording ended, and are not told to have been open at the process's end. Others go on."""
    job = Ranks(xstrace, f"{MPI} --start-paused", mpi_app("mpi_off"))
    assert job.run.status == 0, job.run.err
    for rank, trace in job.traces.items():
        works = [s for s in trace.slices if s.cat == "mpi_request"]
        assert sorted(s.args["tag"] for s in works) == sorted([*range(7), *range(7)])
        assert {s.args["tag"] for s in works if s.unfinished} == {1, 3, 5} and trace.other["open_requests"] == 6
        calls = job.calls(rank)
        for work in works:
            (post,) = [s for s in calls if s.args.get("request") == work.args["request"] and s.start == work.start]
            behind = min(s.start for s in calls if s.start > post.start and s.name != "MPI_Isend")
            assert post.start <= work.end <= behind if work.unfinished else work.end > behind
    told = [line for line in job.run.said if "6 MPI requests" in line]
    assert len(told) == 2 and all(line.endswith("not known to be complete when the process ended, or while it was recorded") for line in told)


def test_under_xstrace(xstrace, mpi_app):
    """The wrong way round: it is said, and the ranks of this machine are traced all the same."""
    run = xstrace(MPI, MPIEXEC, ["-n", "2", mpi_app("mpi_first")])
    assert run.status == 0
    assert len([line for line in run.said if "mpiexec.mpich -n N xstrace" in line]) == 1
    ranks = {t.metadata["rank"]: t for t in run.traces}
    assert sorted(ranks) == [0, 1] and all(t.metadata["world_size"] == 2 for t in run.traces)
    for rank, trace in ranks.items():
        assert trace.path.name == f"mpi_first.{trace.pid}.{rank}.json"


def test_sampled_ranks_under_xstrace(xstrace, mpi_app):
    """Which of them are traced is decided by each rank's own environment."""
    run = xstrace(f"{MPI} --ranks-to-sample 1,3", MPIEXEC, ["-n", "4", mpi_app("mpi_first")])
    assert run.status == 0
    assert [(t.metadata["rank"], t.metadata["world_size"]) for t in run.traces] in ([(1, 4), (3, 4)], [(3, 4), (1, 4)])
    assert all(names_of(t)["MPI_Barrier"] == 1 for t in run.traces)


def test_table_of_calls(xstrace, mpi_app):
    """-h: in ranks MPI's functions are API functions like others, with a trace or without."""
    app, words = mpi_app("mpi_messages"), "-h --report-format=json -o rep.json"
    job = Ranks(xstrace, f"{words} {MPI}", app, [xstrace.cwd], reports="rep.*")
    for rank, trace in job.traces.items():
        (path,) = xstrace.cwd.glob(f"rep.{trace.pid}.{rank}.json")
        rows = json.loads(path.read_text())
        assert rows[-1]["rank"] == rank
        rows = {row["name"]: row for row in rows if row.get("backend") == "MPI"}
        assert {name: row["calls"] for name, row in rows.items()} == names_of(trace)
        assert rows["MPI_Send"]["failed"] == 2 and rows["MPI_Init"]["failed"] == 0
        took = [s.end - s.start for s in trace.calls if s.name == "MPI_Barrier"]
        assert abs(rows["MPI_Barrier"]["time_ns"] - sum(took)) <= len(took)
    run = xstrace.bare(MPIEXEC, ["-n", "2", XSTRACE, "-h", "-o", "alone.txt", app, xstrace.cwd])
    texts = [path.read_text() for path in xstrace.cwd.glob("alone.*.[01].txt")]
    assert run.status == 0 and len(texts) == 2
    for text in texts:
        assert "Total API Time for MPI backend (ns):" in text
        assert len(re.findall(r"^ *MPI_Sendrecv, +1,", text, re.M)) == 1
    assert len(list(xstrace.cwd.glob("*.json"))) == 4  # two traces and two reports, of the first run


@root_only
def test_nodes_that_share_a_directory(xstrace, mpi_app):
    """The same program, pid and rank on each, at the same time: each has files of its own, and says which host it was."""
    hosts, namespaces = ["node1", "node2", "node3"], ["--uts", "--pid", "--fork", "--mount-proc"]
    script = 'hostname "$1"; echo >>ready; read x; shift; exec "$@"'
    if xstrace.bare("unshare", [*namespaces, "hostname", "x"]).status:
        pytest.skip("no namespaces here")
    ready = xstrace.cwd / "ready"
    words = [XSTRACE, MPI, "-h", "-o", "rep.txt", mpi_app("mpi_session"), xstrace.cwd]
    pipes = {"cwd": xstrace.cwd, "stdin": subprocess.PIPE, "env": {**os.environ, "RANK": "0"}}
    jobs = [subprocess.Popen(["unshare", *namespaces, "sh", "-c", script, "sh", host, *map(str, words)], **pipes) for host in hosts]
    wait_until(lambda: ready.exists() and len(ready.read_text()) == len(hosts))
    for job in jobs:
        job.stdin.close()
    assert [job.wait() for job in jobs] == [0, 0, 0]
    traces = [Trace(path) for path in xstrace.cwd.glob("mpi_session.*.json")]
    assert sorted(t.metadata["host"] for t in traces) == hosts
    assert all(names_of(t)["MPI_Session_finalize"] == 1 and t.other["lost"] == 0 for t in traces)
    assert len({t.pid for t in traces}) == 1 and len(list(xstrace.cwd.glob("rep.*.txt"))) == 3
    assert sorted(path.name.split(".", 2)[2] for path in xstrace.cwd.glob("mpi_session.*")) == ["0-2.json", "0-3.json", "0.json"]


def test_what_programs_ask_for(xstrace):
    """Who looks whether an MPI library is there, and what it has, gets the same answers."""
    script = """
import ctypes
names = "MPI_Init", "MPI_Send_c", "MPI_Abi_get_version"
everything = ctypes.CDLL(None)
print([hasattr(everything, name) for name in names])
ctypes.CDLL("libmpich.so.12", ctypes.RTLD_GLOBAL)
print([hasattr(everything, name) for name in names])
"""
    words = [sys.executable, ["-c", script]]
    bare, traced = xstrace.bare(*words), xstrace(MPI, *words)
    assert bare.status == traced.status == 0 and bare.out == traced.out
    assert bare.out.splitlines()[0] == "[False, False, False]" and "True" in bare.out


def test_a_program_with_a_sanitizer(xstrace, tmp_path):
    """AddressSanitizer's runtime asks dlsym(), which is ours, for the string functions that it stands in front of."""
    app = tmp_path / "asan"
    source = ROOT / "tests/apps/mpi_first.c"
    subprocess.run([MPICC, "-fsanitize=address", "-O1", "-o", app, source], check=True)
    job = Ranks(xstrace, MPI, app, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert job.run.status == 0 and "AddressSanitizer" not in job.run.err
    assert sorted(job.traces) == [0, 1] and all(names_of(t)["MPI_Barrier"] == 1 for t in job.traces.values())


def test_others_do_not_pay(xstrace):
    """Without the option nothing of MPI is in the process."""
    run = xstrace("--chrome-itt-logging", "cat", ["/proc/self/maps"])
    assert "libxstrace.so" in run.out and "libxstrace-mpi.so" not in run.out


def test_first(xstrace, mpi_app):
    job = Ranks(xstrace, MPI, mpi_app("mpi_first"))
    assert job.run.status == 0, job.run.err
    assert sorted(job.traces) == [0, 1]
    for rank, trace in job.traces.items():
        assert trace.path.name == f"mpi_first.{trace.pid}.{rank}.json"
        assert trace.metadata["world_size"] == 2 and trace.other["lost"] == 0
        names = collections.Counter(call.name for call in trace.calls)
        assert names == {
            "MPI_Init": 1,
            "MPI_Comm_rank": 1,
            "MPI_Send" if rank == 0 else "MPI_Recv": 1,
            "MPI_Allreduce": 1,
            "MPI_Bcast": 1,
            "MPI_Barrier": 1,
            "MPI_Finalize": 1,
        }
    send = next(s for s in job.calls(0) if s.name == "MPI_Send")
    assert send.args == {"comm": "world", "peer": 1, "tag": 7, "count": 100, "bytes": 800}
    bcast = next(s for s in job.calls(1) if s.name == "MPI_Bcast")
    assert bcast.args == {"comm": "world", "count": 10, "bytes": 40, "root": 1, "seq": 2}
