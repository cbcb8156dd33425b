"""Every MPI library there is, other people's programs over them, MPI's other languages: traces against what programs sent.

Only with XSTRACE_TEST_CLIENTS=1 and what scripts/setup --clients installs.
"""

import collections
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import ROOT
from others import CCL, CLIENTS, PROGRAMS, need, needs_clients
from ranks import MPI, Ranks, check_said

pytestmark = needs_clients
MPICH_5, OPEN_MPI_5 = ROOT / ".venv-mpich", ROOT / ".venv-openmpi"
AS_ROOT = {
    name: "1"
    for name in (
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "PRTE_ALLOW_RUN_AS_ROOT",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
    )
}


@pytest.fixture(autouse=True)
def more_time(time_limit):
    signal.alarm(600)


class Library:
    """An MPI library: how to compile for it, how to start ranks, and what they need in their environment."""

    def __init__(self, cc, *launcher, fortran=None, home=None, **env):
        self.cc, self.launcher, self.fortran, self.home = cc, launcher, fortran, home
        self.env = {"LD_LIBRARY_PATH": f"{home}/lib", **env} if home else env

    def lacks(self):
        return next((str(word) for word in (self.cc, self.launcher[0]) if not shutil.which(word)), None)

    def compile(self, compiler, path, source, *flags):
        if not shutil.which(compiler):
            pytest.skip(f"no {compiler}")
        env = {**os.environ, "I_MPI_ROOT": str(CCL)}  # Intel's compilers know no place of their own
        subprocess.run([compiler, "-O1", "-o", path, source, *flags], check=True, env=env)
        return path

    def run(self, xstrace, options, app, args=(), ranks=2, **more):
        env = {**self.env, **more.pop("env", {})}
        return Ranks(xstrace, options, app, args, ranks, env, self.launcher, timeout=300, **more)

    def bare(self, xstrace, app, args=(), ranks=2):
        program, *words = [*self.launcher, "-n", ranks, app, *args]
        return xstrace.bare(program, [str(word) for word in words], env=self.env, timeout=300)


INTEL_BIN = CCL / "bin"
OPENMPI_LIB = "-L/usr/lib/x86_64-linux-gnu/openmpi/lib"  # its wrapper leaves that to Debian's alternatives
# nor does Intel's know the gfortran of every Debian; modules are alike from 8 to 14
INTEL_FORTRAN = ["gfortran", f"-I{CCL}/include/mpi/gfortran/12.4.0", f"-I{CCL}/include", f"-L{CCL}/lib", "-lmpifort", "-lmpi"]
LIBRARIES = {
    "MPICH 4": Library("mpicc.mpich", "mpiexec.mpich", fortran=["mpif90.mpich"]),
    "Open MPI 4": Library(
        "mpicc.openmpi",
        "mpiexec.openmpi",
        "--oversubscribe",
        fortran=["mpif90.openmpi", OPENMPI_LIB],
        **AS_ROOT,
    ),
    "Intel MPI": Library(
        INTEL_BIN / "mpicc", INTEL_BIN / "mpiexec", fortran=INTEL_FORTRAN, home=CCL, I_MPI_ROOT=str(CCL)
    ),
    "MPICH 5": Library(MPICH_5 / "bin/mpicc", MPICH_5 / "bin/mpiexec.hydra", home=MPICH_5),
    "Open MPI 5": Library(
        OPEN_MPI_5 / "bin/mpicc", OPEN_MPI_5 / "bin/mpirun", "--map-by", ":OVERSUBSCRIBE", home=OPEN_MPI_5, **AS_ROOT
    ),
    "MPICH 5 by the ABI of MPI 5": Library(MPICH_5 / "bin/mpicc_abi", MPICH_5 / "bin/mpiexec.hydra", home=MPICH_5),
    # the same programs, compiled with MPICH's headers
    "Intel MPI by the ABI of MPI 5": Library(
        MPICH_5 / "bin/mpicc_abi", INTEL_BIN / "mpiexec", home=CCL, I_MPI_ROOT=str(CCL)
    ),
}


def library(name):
    found = LIBRARIES[name]
    if lacking := found.lacks():
        pytest.skip(f"no {lacking}; scripts/setup --clients installs it")
    return found


def check_whole(job, ranks=2):
    assert job.run.status == 0, job.run.err
    assert sorted(job.traces) == list(range(ranks))
    for trace in job.traces.values():
        assert trace.metadata["world_size"] == ranks
        assert trace.other["lost"] == 0 and "unmatched_ends" not in trace.other


# ---- our own programs over each library ----


@pytest.mark.parametrize("program", ["mpi_messages", "mpi_collectives"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_c(xstrace, name, program):
    mpi = library(name)
    app = mpi.compile(mpi.cc, xstrace.home / program, ROOT / f"tests/apps/{program}.c")
    args = [xstrace.cwd]
    if name == "Intel MPI by the ABI of MPI 5":
        args.append("no errors")  # it does not know MPI_ERRORS_RETURN there and ends the job
    bare = mpi.bare(xstrace, app, args, ranks=4)
    assert bare.status == 0, bare.err
    job = mpi.run(xstrace, MPI, app, args, ranks=4)
    check_whole(job, 4)
    assert job.run.out == bare.out
    check_said(xstrace, job)


@pytest.mark.parametrize("name", ["Open MPI 4", "MPICH 5", "Open MPI 5"])
def test_spawned_ranks(xstrace, name):
    """Ranks that ranks start: those of another world have no rank in this one. (Debian's MPICH and Intel's cannot do it.)"""
    mpi = library(name)
    app = mpi.compile(mpi.cc, xstrace.home / "mpi_spawn", ROOT / "tests/apps/mpi_spawn.c")
    program, *words = map(str, [*mpi.launcher, "-n", 2, app])
    run = xstrace(MPI, program, words, env=mpi.env, timeout=300)
    assert run.status == 0, run.err
    assert run.out == "4 ranks, sum 28\n"
    ranks = [t for t in run.traces if any(s.name == "MPI_Init" for s in t.calls)]
    assert sorted(t.metadata["rank"] for t in ranks) == [0, 0, 1, 1]
    spawned = [t for t in ranks if not any(s.name == "MPI_Comm_spawn" for s in t.calls)]
    assert len(spawned) == 2
    for trace in ranks:
        assert trace.metadata["world_size"] == 2 and trace.other["lost"] == 0
        (merge,) = [s for s in trace.calls if s.name == "MPI_Intercomm_merge"]
        (reduce,) = [s for s in trace.calls if s.name == "MPI_Allreduce"]
        assert reduce.args["comm"] == merge.args["new_comm"] and reduce.args["seq"] == 1 and reduce.args["bytes"] == 4
    (send,) = [s for t in ranks for s in t.calls if s.name == "MPI_Send"]
    (recv,) = [s for t in ranks for s in t.calls if s.name == "MPI_Recv"]
    for one in send, recv:
        assert "peer" not in one.args and one.args["tag"] == 3 and one.args["bytes"] == 4


@pytest.mark.parametrize("dialect", ["MPIF_H", "USE_MPI", "USE_MPI_F08"])
@pytest.mark.parametrize("name", [name for name, mpi in LIBRARIES.items() if mpi.fortran])
def test_fortran(xstrace, name, dialect):
    mpi = library(name)
    if (name, dialect) == ("Intel MPI", "USE_MPI_F08"):
        pytest.skip("Intel's package has no mpi_f08 for gfortran")
    compiler, *flags = mpi.fortran
    source = PROGRAMS / "mpi_dialects.F90"
    app = mpi.compile(compiler, xstrace.home / "dialects", source, f"-D{dialect}", "-fallow-argument-mismatch", "-w", *flags)
    job = mpi.run(xstrace, MPI, app, [xstrace.cwd], ranks=2)
    check_whole(job)
    check_said(xstrace, job)


# ---- mpi4py ----

MPI4PY = {
    "Open MPI 4": (OPEN_MPI_5, {"MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": "/usr/lib/x86_64-linux-gnu/libmpi.so.40"}),
    "Intel MPI": (MPICH_5, {"MPI4PY_MPIABI": "mpich", "MPI4PY_LIBMPI": f"{CCL}/lib/libmpi.so.12"}),
    "MPICH 5": (MPICH_5, {}),
    "Open MPI 5": (OPEN_MPI_5, {}),
}
LOOKED_AT = {
    f"MPI_{name}"
    for name in "Send Recv Irecv Isend Mrecv Allreduce Comm_split Bcast Allgather Barrier".split()
}


@pytest.mark.parametrize("name", MPI4PY)
def test_mpi4py(xstrace, name):
    mpi = library(name)
    place, env = MPI4PY[name]
    python = place / "bin/python"
    if not shutil.which(python) or subprocess.run([python, "-c", "import mpi4py"], capture_output=True).returncode:
        pytest.skip(f"no mpi4py in {place.name}")
    job = mpi.run(xstrace, MPI, python, [PROGRAMS / "mpi4py_ranks.py", xstrace.cwd], env=env)
    check_whole(job)
    check_said(xstrace, job, LOOKED_AT)


# ---- what Intel MPI tells of itself ----


def test_idle_time(xstrace):
    """Where a rank waits for another one, its library says that it is idle: within the call, and not longer."""
    mpi = library("Intel MPI")
    app = mpi.compile(mpi.cc, xstrace.home / "late", PROGRAMS / "mpi_late.c")
    job = mpi.run(xstrace, f"{MPI} -h --report-format=json -o rep.json", app, reports="rep.*")
    check_whole(job)
    for rank, name, least in (1, "MPI_Recv", 0.25e9), (0, "MPI_Barrier", 0.15e9):
        (call,) = [s for s in job.calls(rank) if s.name == name]
        idle = [s for s in job.calls(rank) + job.traces[rank].tasks if s.name == "MPI_Internal::Idle"]
        inside = [s for s in idle if call.start <= s.start and s.end <= call.end]
        assert least < sum(s.end - s.start for s in inside) <= call.end - call.start
        assert all(s.track == call.track for s in inside)
    # the table of calls counts the time once
    for path in xstrace.cwd.glob("rep.*.json"):
        assert "MPI_Barrier" in path.read_text() and "Idle" not in path.read_text()


def test_who_looks_for_unitrace(xstrace):
    """Only where MPI is traced does unitrace's library seem to be there."""
    source = xstrace.home / "asks.c"
    source.write_text(
        "#include <dlfcn.h>\n#include <stdio.h>\n"
        'int main(void) { void *h = dlopen("libunitrace_mpi.so", RTLD_LAZY | RTLD_NOLOAD);'
        ' return printf("%s\\n", h && dlsym(h, "_MPI_Internal_task_start_hook") ? "there" : "none") < 0; }\n'
    )
    subprocess.run(["cc", "-o", xstrace.home / "asks", source], check=True)
    assert xstrace.bare(xstrace.home / "asks").out == "none\n"
    assert xstrace("--chrome-itt-logging", xstrace.home / "asks").out == "none\n"
    assert xstrace(MPI, xstrace.home / "asks").out == "there\n"


# ---- programs that measure ----


def sizes(job, rank, function):
    """How many calls of a function there were with each number of bytes."""
    return collections.Counter(s.args["bytes"] for s in job.calls(rank) if s.name == function)


def test_imb(xstrace):
    """Intel's benchmarks, as Intel ships them: each size as often as they say, and once more to get warm."""
    mpi = library("Intel MPI")
    words = ["-iter", 50, "-iter_policy", "off", "-msglog", "2:16", "PingPong", "Allreduce", "Exchange"]
    job = mpi.run(xstrace, MPI, INTEL_BIN / "IMB-MPI1", words)
    check_whole(job)
    tables = re.split(r"Benchmarking (\w+)", job.run.out)
    said = {}
    for name, text in zip(tables[1::2], tables[2::2]):
        said[name] = {int(b): int(n) for b, n in re.findall(r"^ +(\d+) +(\d+) +\d", text, re.M)}
        assert set(said[name]) == {0, *(1 << i for i in range(2, 17))}
    for rank in 0, 1:
        reduced = sizes(job, rank, "MPI_Allreduce")
        assert {size: n for size, n in reduced.items() if size > 8 and n < 50} == {}
        assert set(said["Allreduce"]) == set(reduced)
        exchanged = [s for s in job.traces[rank].slices if s.cat == "mpi_request"]
        assert {s.name for s in exchanged} == {"MPI_Isend"} and not any(s.unfinished for s in exchanged)
        each = collections.Counter(s.args["bytes"] for s in exchanged)
        for size, times in said["Exchange"].items():
            assert each[size] >= 2 * times and each[size] % 2 == 0
        for size, times in said["PingPong"].items():
            # a message there and one back; what Exchange sends by MPI_Isend is received alike
            sent = sizes(job, rank, "MPI_Send")[size]
            assert sent >= times and sizes(job, 1 - rank, "MPI_Recv")[size] == sent + each[size]


@pytest.mark.parametrize("name, program", [("MPICH 4", "NPmpich2"), ("Open MPI 4", "NPopenmpi")])
def test_netpipe(xstrace, name, program):
    """Each size three times as often as it says: that is how often it tries."""
    mpi = library(name)
    if not shutil.which(program):
        pytest.skip(f"no {program}")
    job = mpi.run(xstrace, f"{MPI} --output-dir-path {xstrace.cwd}", program, ["-u", 3000, "-n", 1000])
    check_whole(job)
    said = {int(size): int(n) for size, n in re.findall(r": +(\d+) bytes +(\d+) times", job.run.err)}
    assert len(said) > 40 and set(said.values()) == {1000}
    for rank in 0, 1:
        sent, received = sizes(job, rank, "MPI_Send"), sizes(job, 1 - rank, "MPI_Recv")
        assert sent == received
        assert {size: sent[size] for size in said if size > 8} == {size: 3 * n for size, n in said.items() if size > 8}


# ---- ranks without MPI ----


def test_torchrun(xstrace):
    """gloo: the rank is what torchrun says in the environment."""
    need("torch")
    words = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", PROGRAMS / "torch_ranks.py"]
    run = xstrace("--chrome-itt-logging", CLIENTS, words, timeout=300)
    assert run.status == 0, run.err
    ranks = {t.metadata["rank"]: t for t in run.traces if "rank" in t.metadata}
    assert sorted(ranks) == [0, 1]
    for rank, trace in ranks.items():
        assert trace.metadata["world_size"] == 2 and trace.path.name.endswith(f".{trace.pid}.{rank}.json")
        assert trace.count("tasks", "PyTorch::c10d::allreduce_") == 3
