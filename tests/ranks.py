"""Ranks of MPI jobs: real ones, each under xstrace, and traces of a program that was never run, whose true times are known.

    job = Ranks(xstrace, MPI, mpi_app("mpi_messages"), [directory], ranks=4)
    check_said(xstrace, job)    # the traces against what the program says about itself

    job = Job(hosts=["a", "a", "b"], clocks={"b": Clock(11 * 10**9, 100)})
    job.barrier(); job.message(0, 2, 7, 64); job.compute(1, 5000)
    paths = job.write(directory)

Each rank of a Job has a time of its own, in true ns; writing turns it into what the clock of its host shows.
"""

import fcntl
import json
import random
import shutil
import subprocess
from collections import namedtuple

import pytest

from conftest import ROOT, XSTRACE, wait_until

# ---- real ranks ----

MPICC, MPIEXEC = shutil.which("mpicc.mpich"), shutil.which("mpiexec.mpich")
MPICH = MPICC and MPIEXEC
MPI = "--chrome-mpi-logging"
needs_mpi = pytest.mark.skipif(not MPICH, reason="no MPICH")


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


def is_being_written(path):
    """Does a drain process have the trace locked? (docs/MERGE.md)"""
    with open(path, "r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class Ranks:
    """All ranks of a job, each under xstrace of its own. `launcher`: the words before "-n"; `reports`: files that are no traces."""

    def __init__(self, xstrace, options, app, args=(), ranks=2, env=None, launcher=(MPIEXEC,), timeout=60, reports=None, **popen):
        program, *words = [*launcher, "-n", ranks, XSTRACE, *options.split(), app, *args]
        known = set(xstrace.cwd.glob("*.json"))
        self.run = xstrace.bare(program, [str(word) for word in words], env=env, timeout=timeout, **popen)
        known |= set(xstrace.cwd.glob(reports)) if reports else set()
        found = sorted(set(xstrace.cwd.glob("*.json")) - known)
        wait_until(lambda: not any(is_being_written(path) for path in found))  # after MPI_Abort mpiexec waits for nobody
        xstrace.adopt(self.run, found)
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


def check_said(xstrace, job, functions=None):
    """Each slice is as the program said, and none is left over; of these functions alone where others may come between."""
    for rank, trace in job.traces.items():
        calls, done = job.calls(rank), [s for s in trace.slices if s.cat == "mpi_request"]
        calls = iter([s for s in calls if not functions or base(s) in functions])
        for kind, function, wanted in said(xstrace.cwd / f"said.{rank}"):
            if kind == "call":
                call = next(calls)
                assert base(call) == function and holds(call, wanted), (rank, function, wanted, call, call.args)
            else:
                found = [s for s in done if base(s) == function and holds(s, wanted)]
                assert found, (rank, function, wanted, [(s.name, s.args) for s in done])
                done.remove(found[0])
        assert not list(calls) and not done


def base(slice_):
    """The function, without the mark of large counts: some programs call those where there are any."""
    return slice_.name.removesuffix("_c")


# ---- ranks that never were ----

DAY = 86_400 * 10**9
BASE = 20_778 * DAY
START = 3_600 * 10**9  # of the job, from BASE

Clock = namedtuple("Clock", "offset ppm")
Clock.shows = lambda self, t: t + self.offset + round((t - START) * self.ppm / 1e6)
TRUE = Clock(0, 0)


class Slewed:
    """A clock whose pace changes: bends is [(true time since START, ppm)], the first at 0."""

    def __init__(self, offset, bends):
        self.offset = offset
        self.bends = bends

    def shows(self, t):
        ahead = 0
        for (begin, ppm), (end, _) in zip(self.bends, [*self.bends[1:], (float("inf"), 0)]):
            if t - START > begin:
                ahead += (min(t - START, end) - begin) * ppm / 1e6
        return t + self.offset + round(ahead)


def us(ns):
    return "%d.%03d" % divmod(ns, 1000)


def line(event):
    """An event; ts and dur in ns."""
    head = ""
    if "ts" in event:
        head = f'"ts":{us(event["ts"])},'
        if "dur" in event:
            head += f'"dur":{us(event["dur"])},'
    rest = {key: value for key, value in event.items() if key not in ("ts", "dur")}
    return "{" + head + json.dumps(rest, separators=(",", ":"), ensure_ascii=False)[1:]


def text_of(events, metadata, other, base=BASE):
    head = {"displayTimeUnit": "ns", "baseTimeNanoseconds": base, "metadata": metadata}
    text = json.dumps(head, separators=(",", ":"))[:-1] + ',"traceEvents":[\n'
    return text + ",\n".join(map(line, events)) + '\n],"otherData":' + json.dumps(other) + "}\n"


class Job:
    def __init__(self, hosts, clocks=None, seed=1, fastest=1500):
        self.hosts = hosts
        self.clocks = clocks or {}
        self.random = random.Random(seed)
        self.fastest = fastest  # ns that a message takes at least
        self.size = len(hosts)
        self.now = [START + self.random.randrange(1000) for _ in hosts]
        self.calls = [[] for _ in hosts]  # (true start, true end, name, args)
        self.told = [[] for _ in hosts]  # args of "communicator" events
        self.seq = {}
        self.arrived = {}

    def delay(self):
        return self.fastest + int(self.random.expovariate(1 / 3000))

    def compute(self, rank, ns, name="work::step"):
        self.calls[rank].append((self.now[rank], self.now[rank] + ns, name, None))
        self.now[rank] += ns + 50

    def _call(self, rank, end, name, **args):
        self.calls[rank].append((self.now[rank], end, f"MPI_{name}", args))
        self.now[rank] = end + 50

    def message(self, source, target, tag=7, size=64, comm="world"):
        """An eager message."""
        sent = self.now[source]
        args = {"comm": comm, "tag": tag, "count": size, "bytes": size}
        self._call(source, sent + 300, "Send", **args, peer=target)
        end = max(sent + self.delay(), self.now[target] + 200)
        self._call(target, end, "Recv", **args, peer=source)

    def everyone(self, name="Barrier", comm="world", ranks=None, **args):
        ranks = ranks or range(self.size)
        last = max(self.now[rank] for rank in ranks)
        seq = self.seq[comm] = self.seq.get(comm, -1) + 1
        for rank in ranks:
            self._call(rank, last + self.delay(), name, comm=comm, seq=seq, **args)

    def of_root(self, name, root, comm="world", **args):
        """Bcast: no one can have what the root has not sent; Reduce: the root waits for everyone. Nobody else waits for anybody."""
        seq = self.seq[comm] = self.seq.get(comm, -1) + 1
        began = list(self.now)
        others = [rank for rank in range(self.size) if rank != root]
        for rank in range(self.size):
            waits_for = [root] if name == "Bcast" and rank != root else others if name == "Reduce" and rank == root else []
            ends = [began[other] + self.delay() for other in waits_for]
            self._call(rank, max([began[rank] + 300, *ends]), name, comm=comm, seq=seq, root=root, **args)

    def collective(self, name, needs, args, comm="world"):
        """needs and args of each member {rank: …}: nobody leaves before those whom he needs have come."""
        seq = self.seq[comm] = self.seq.get(comm, -1) + 1
        began = {rank: self.now[rank] for rank in needs}
        for rank, others in needs.items():
            end = max([began[rank] + 300, *(began[other] + self.delay() for other in others)])
            self._call(rank, end, name, comm=comm, seq=seq, **args[rank])

    def clock(self, rank):
        return self.clocks.get(rank, self.clocks.get(self.hosts[rank], TRUE))

    def pid(self, rank):
        return 1000 + rank

    def events(self, rank):
        pid, clock = self.pid(rank), self.clock(rank)
        yield {
            "ph": "M",
            "name": "process_name",
            "pid": pid,
            "tid": pid,
            "args": {"name": f"HOST<{self.hosts[rank]}>"},
        }
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": pid, "args": {"name": "app"}}
        for args in self.told[rank]:
            yield {"ph": "M", "name": "communicator", "pid": pid, "tid": pid, "args": args}
        for start, end, name, args in self.calls[rank]:
            start, end = clock.shows(start), clock.shows(end)
            event = {
                "ph": "X",
                "tid": pid,
                "pid": pid,
                "ts": start,
                "dur": end - start,
                "cat": "cpu_op",
                "name": name,
            }
            if args is not None:
                event["args"] = args
            yield event

    def metadata(self, rank):
        pid = self.pid(rank)
        return {
            "tool": "xstrace",
            "version": "0.1.0",
            "run": f"xstrace-{rank:06}",
            "host": self.hosts[rank],
            "pid": pid,
            "ppid": 1,
            "rank": rank,
            "world_size": self.size,
        }

    def write(self, directory):
        paths = []
        for rank in range(self.size):
            path = directory / f"app.{self.pid(rank)}.{rank}.json"
            path.write_text(
                text_of(
                    self.events(rank),
                    self.metadata(rank),
                    {"end": "exited", "status": 0, "lost": 0},
                )
            )
            paths.append(path)
        return paths
