"""MPI with real ranks: what the traces say against what the programs know they did."""

import collections
import shutil
import subprocess

import pytest

from conftest import XSTRACE, ROOT

MPICC, MPIEXEC = shutil.which("mpicc.mpich"), shutil.which("mpiexec.mpich")
MPI = "--chrome-mpi-logging"
pytestmark = pytest.mark.skipif(not (MPICC and MPIEXEC), reason="no MPICH")


@pytest.fixture(scope="session")
def mpi_app(tmp_path_factory):
    """Compiles a program of apps/, once."""
    made, where = {}, tmp_path_factory.mktemp("mpi")

    def make(name):
        if name not in made:
            made[name] = where / name
            source = ROOT / f"tests/apps/{name}.c"
            subprocess.run([MPICC, "-O1", "-Wall", "-Werror", "-Wno-stringop-overflow", "-o", made[name], source], check=True)
        return made[name]

    return make


class Ranks:
    """All ranks of a job, each under xstrace of its own."""

    def __init__(self, xstrace, options, app, args=(), ranks=2, env=None):
        command = ["-n", ranks, XSTRACE, *options.split(), app, *args]
        self.run = xstrace.bare(MPIEXEC, [str(word) for word in command], env=env)
        files = sorted(xstrace.cwd.glob("*.json"))
        xstrace.adopt(self.run, files)
        self.traces = {t.metadata["rank"]: t for t in self.run.traces}

    def calls(self, rank):
        """Slices of a rank, in order of time."""
        return sorted(self.traces[rank].calls, key=lambda s: s.start)


def said(path):
    """What a rank says that its trace must hold: [(kind, function, {key: value})]."""
    for line in path.read_text().splitlines():
        kind, function, *pairs = line.split()
        yield kind, function, dict(pair.split("=") for pair in pairs)


def holds(slice_, wanted):
    """Has the slice these arguments? "!": any value."""
    return all(
        key in slice_.args and value in ("!", str(slice_.args[key])) for key, value in wanted.items()
    )


def check_said(xstrace, job):
    for rank, trace in job.traces.items():
        calls, done = iter(job.calls(rank)), [s for s in trace.slices if s.cat == "mpi_request"]
        for kind, function, wanted in said(xstrace.cwd / f"said.{rank}"):
            if kind == "call":
                call = next(calls)
                assert call.name == function and holds(call, wanted), (rank, wanted, call, call.args)
            else:
                found = [s for s in done if s.name == function and holds(s, wanted)]
                assert found, (rank, function, wanted, [(s.name, s.args) for s in done])
                done.remove(found[0])
        assert not list(calls) and not done


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
    half = [next(s.args["comm"] for s in job.calls(r) if s.name == "MPI_Allreduce") for r in job.traces]
    assert len(turned) == 1 and len(turned.pop()) == 16
    assert half[0::2] == [half[0]] * (ranks // 2) and half[1::2] == [half[1]] * (ranks // 2)
    assert half[0] != half[1]


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
