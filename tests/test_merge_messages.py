"""Which calls of real ranks xstrace-merge takes for the ends of a message, or for one collective: failed calls, tests that come too early, messages taken by probes, MPI_Isendrecv."""

import collections

import pytest

from conftest import check_trace
from merging import arrows, merge, merged
from ranks import MPI, START, Job, Ranks, mpi_app, needs_mpi  # noqa: F401


def calls_of(trace, point):
    """The slices of calls that this end of an arrow lies in."""
    return [s for s in trace.slices if s.cat == "cpu_op" and s.track == (point["pid"], point["tid"]) and s.start <= point["ts"] <= s.end]


def lengths(trace):
    """[(bytes sent, bytes received, the call that received them)] of all arrows between sends and receives, sorted."""
    work = {(s.track[0], s.args["request"]): s for s in trace.slices if s.cat == "mpi_request"}
    found = []
    for start, end in arrows(trace, "message"):
        (send,) = [s for s in calls_of(trace, start) if s.start == start["ts"]]
        (receive,) = calls_of(trace, end)
        sent, came = (work.get((s.track[0], s.args.get("request")), s).args for s in (send, receive))
        found.append((sent["bytes"], came.get("recv_bytes", came.get("bytes")), receive.name))
    return sorted(found, key=lambda one: one[0])


def check_clocks(trace):
    """Two ranks of one host have its clock, unmoved, and nothing is said of it."""
    (clock,) = trace.header["metadata"]["clocks"]
    assert clock["offset_ns"] == 0 and "not_the_hosts" not in clock
    assert "clock" not in trace.said and "early" not in trace.other["messages"]


def merged_job(xstrace, mpi_app, app, *args, options=MPI):  # noqa: F811
    job = Ranks(xstrace, options, mpi_app(app), args)
    assert job.run.status == 0, job.run.err
    trace = merged([t.path for t in job.traces.values()], xstrace.cwd)
    check_clocks(trace)
    return job, trace


@needs_mpi
def test_failed_sends_and_receives_are_no_messages(xstrace, mpi_app):  # noqa: F811
    """But for receives of messages that were too long: these are gone."""
    job, trace = merged_job(xstrace, mpi_app, "mpi_failures", "messages")
    assert trace.other["messages"] == {"matched": 8, "unmatched": 0, "no_room": 0}
    found = lengths(trace)
    assert [sent for sent, _, _ in found] == [1, 2, 4, 5, 6, 8, 30, 31]
    assert [came for _, came, _ in found] == [1, 2, 4, 5, 6, 8, None, None]
    assert [name for *_, name in found][-2:] == ["MPI_Recv", "MPI_Mrecv"]
    failed = collections.Counter((rank, s.name, s.args["error"]) for rank in job.traces for s in job.calls(rank) if "result" in s.args)
    count, cut = "MPI_ERR_COUNT", "MPI_ERR_TRUNCATE"
    assert failed == collections.Counter(
        [(0, name, count) for name in ("MPI_Send", "MPI_Isend", "MPI_Sendrecv", "MPI_Send_init")] + [(0, "MPI_Ssend", "MPI_ERR_RANK")]
        + [(1, name, count) for name in ("MPI_Recv", "MPI_Irecv", "MPI_Sendrecv", "MPI_Recv_init")] + [(1, "MPI_Recv", "MPI_ERR_RANK")]
        + [(1, "MPI_Recv", cut), (1, "MPI_Mrecv", cut)]
    )
    (mrecv,) = [s for s in job.calls(1) if s.name == "MPI_Mrecv" and "result" in s.args]
    assert not {"peer", "tag"} & set(mrecv.args)  # of a call that failed nothing is known but what it was given


ALONE = {"root": "ROOT", "count": "COUNT", "type": "TYPE", "op": "OP", "started": "ROOT", "dup": "ARG", "group": "GROUP"}


@needs_mpi
@pytest.mark.parametrize("kind, paused", [*((kind, []) for kind in ALONE), ("count", ["paused"]), ("dup", ["paused"])])
def test_a_collective_that_fails_on_one_rank_alone(xstrace, mpi_app, kind, paused):  # noqa: F811
    """Wrong arguments are found before others take part: such a call has no number, and those behind it are matched."""
    job, trace = merged_job(xstrace, mpi_app, "mpi_failures", kind, *paused, options=f"{MPI} --start-paused")
    failed = [(s.args["error"], "seq" in s.args) for s in job.calls(1) if "result" in s.args]
    assert failed == ([] if paused else [(f"MPI_ERR_{ALONE[kind]}", False)])
    numbers = [[(s.name, s.args["comm"], s.args["seq"]) for s in job.calls(rank) if "seq" in s.args] for rank in (0, 1)]
    assert numbers[0] == numbers[1]
    world = [seq for _, comm, seq in numbers[0] if comm == "world"]
    assert world == [1, 2, 3, 4, 5, 6] and len(numbers[0]) == 7
    assert len(arrows(trace, "Barrier")) >= 3


@needs_mpi
@pytest.mark.parametrize("kind, receives", [("once", "MPI_Wait"), ("polls", "MPI_Test")])
def test_tests_that_come_too_early_complete_nothing(xstrace, mpi_app, kind, receives):  # noqa: F811
    job, trace = merged_job(xstrace, mpi_app, "mpi_taken", kind)
    assert trace.other["messages"] == {"matched": 4, "unmatched": 0, "no_room": 0}
    assert lengths(trace) == [(n, n, receives) for n in range(1, 5)]
    assert sum(s.name == "MPI_Test" for s in job.calls(1)) >= (4 if kind == "once" else 20)
    text = merge("--report", "-", *[t.path for t in job.traces.values()], cwd=xstrace.cwd).stdout
    assert "No rank was moved." in text


@needs_mpi
def test_persistent_receives_keep_their_place_among_others(xstrace, mpi_app):  # noqa: F811
    """MPI_Start names its request, but does not wait for what others of the program do to requests where there is one thread."""
    job, trace = merged_job(xstrace, mpi_app, "mpi_taken", "mixed")
    posted = [s for s in job.traces[1].calls if s.name in ("MPI_Irecv", "MPI_Start")]
    assert [s.start for s in posted] == sorted(s.start for s in posted)
    assert trace.other["messages"] == {"matched": 90, "unmatched": 0, "no_room": 0}


@needs_mpi
@pytest.mark.parametrize("kind", ["probes", "started"])
def test_a_probe_takes_its_message_out_of_the_queue(xstrace, mpi_app, kind):  # noqa: F811
    """MPI_Mprobe and MPI_Improbe: what is received of it later is that message, whatever was received before."""
    _, trace = merged_job(xstrace, mpi_app, "mpi_taken", kind)
    assert trace.other["messages"] == {"matched": 4, "unmatched": 0, "no_room": 0}
    names = ["MPI_Mrecv", "MPI_Recv", "MPI_Mrecv", "MPI_Recv"] if kind == "probes" else ["MPI_Wait"] * 4
    assert lengths(trace) == [(n, n, name) for n, name in enumerate(names, 1)]


@needs_mpi
def test_both_halves_of_isendrecv_are_messages(xstrace, mpi_app):  # noqa: F811
    job, trace = merged_job(xstrace, mpi_app, "mpi_taken", "both")
    if not any(s.name.startswith("MPI_Isendrecv") for s in job.calls(0)):
        pytest.skip("this MPI has no MPI_Isendrecv")
    assert trace.other["messages"] == {"matched": 5, "unmatched": 0, "no_room": 0}
    assert [(sent, name) for sent, _, name in lengths(trace)] == list(enumerate(["MPI_Wait", "MPI_Wait", "MPI_Test", "MPI_Test", "MPI_Wait"], 1))
    pids = {t.pid: rank for rank, t in job.traces.items()}
    assert all(pids[start["pid"]] + pids[end["pid"]] == 1 for start, end in arrows(trace, "message"))


@needs_mpi
@pytest.mark.parametrize("out", [None, "MPI_Start", "_init"])
def test_partitioned_messages_go_from_request_to_request(xstrace, mpi_app, out):  # noqa: F811
    """The k-th that was made on one side belongs to the k-th of the other, in whatever order they are started; and no other message to either."""
    job, trace = merged_job(xstrace, mpi_app, "mpi_taken", "parts", options=f"{MPI} --exclude-calls {out}" if out else MPI)
    if not any(s.name == "MPI_Pready_range" for s in job.calls(0)):
        pytest.skip("this MPI has no partitioned messages")
    assert trace.other["messages"] == {"matched": 6, "unmatched": 0, "no_room": 0} and len(arrows(trace, "message")) == 6
    if not out:
        assert lengths(trace) == [(1, 1, "MPI_Recv")] * 2 + [(n, n, "MPI_Wait") for n in (10, 10, 20, 20)]


class Threads(Job):
    """Probes are of a thread of their own."""

    def events(self, rank):
        for event in super().events(rank):
            yield {**event, "tid": event["tid"] + (event["name"] == "MPI_Mprobe")}


def test_a_receive_that_is_read_before_its_probe(tmp_path):
    """The rings of two threads are read one after the other: that a message was probed may stand behind that it was received."""
    job = Threads(["a", "a"])
    for n in range(1, 7):
        sent, args = START + n * 10_000, {"comm": "world", "tag": 1, "bytes": n}
        job.calls[0].append((sent, sent + 300, "MPI_Send", {**args, "peer": 1}))
        names = ["MPI_Recv"] if n % 3 == 0 else ["MPI_Mrecv", "MPI_Mprobe"] if n % 3 == 1 else ["MPI_Mprobe", "MPI_Mrecv"]
        for name in names:
            begin = sent + (1000 if name == "MPI_Mprobe" else 2000)
            job.calls[1].append((begin, begin + 500, name, {**args, "peer": 0}))
    trace = merged(job.write(tmp_path), tmp_path)
    assert trace.other["messages"] == {"matched": 6, "unmatched": 0, "no_room": 0}
    assert lengths(trace) == [(n, n, "MPI_Recv" if n % 3 == 0 else "MPI_Mrecv") for n in range(1, 7)]


LEFT_OUT = {
    "mpi_taken": (["polls"], "MPI_Test", 4, 0),
    "mpi_ring": ([4], "MPI_Wait", 16, 0),
    "mpi_needs": (["."], "MPI_Wait,MPI_Start,MPI_Ia,MPI_Ib,MPI_Ir", 16, 16),
}


@pytest.mark.long(keep=1)
@needs_mpi
@pytest.mark.parametrize("app", LEFT_OUT)
def test_arrows_where_the_calls_of_requests_are_left_out(xstrace, mpi_app, app):  # noqa: F811
    """Each begins and ends on a slice that is there: the request's own takes the place of a call that --exclude-calls has left out."""
    args, out, ended, begun = LEFT_OUT[app]
    job = Ranks(xstrace, f"{MPI} --exclude-calls {out}", mpi_app(app), args, ranks=2 if app == "mpi_taken" else 4)
    assert job.run.status == 0, job.run.err
    trace = merged([t.path for t in job.traces.values()], xstrace.cwd)
    work = {s.track for s in trace.slices if s.cat == "mpi_request"}
    found = arrows(trace, cat="mpi")
    assert sum((end["pid"], end["tid"]) in work for _, end in found) >= ended
    assert sum((start["pid"], start["tid"]) in work for start, _ in found) >= begun
    messages = trace.other["messages"]
    assert messages["unmatched"] == 0 and messages["matched"] == len(arrows(trace, "message"))
    merge("-o", "all.pftrace", *[t.path for t in job.traces.values()], cwd=xstrace.cwd)
    assert check_trace(xstrace.cwd / "all.pftrace", strict=True) == []
