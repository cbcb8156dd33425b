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
            subprocess.run([MPICC, "-O1", "-Wall", "-Werror", "-o", made[name], source], check=True)
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
