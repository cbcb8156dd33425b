"""Traces of runs that never were, whose longest chains are known: drawn by hand, or by programs that are played through.

run = Planned(); main = run.thread("main"); kernel = run.slice(queue, 100, 200, "k", "gpu_op"); run.arrow("dep", main, 90, queue, 100)
path = run.write(directory / "planned.json")

play(programs, scale={"k1": 0.5})    # a Planned and its length; what takes how long is in COSTS
"""

import random

from ranks import START, text_of

DEVICE = 1 << 31
COSTS = {"call": 400, "launch": 3000, "gap": 600, "wake": 1700, "message": 5000, "collective": 4000}


class Planned:
    def __init__(self):
        self.events, self.flows, self.tracks = [], 0, {}

    def thread(self, name, pid=100, tid=None, process=None):
        """A track: (pid, tid)."""
        track = pid, tid or pid + sum(p == pid for p, _ in self.tracks)
        if not any(p == pid for p, _ in self.tracks):
            self._name("process_name", (pid, pid), process or f"HOST<h> app {pid}")
        self.tracks[track] = name
        self._name("thread_name", track, name)
        return track

    def queue(self, name, device=DEVICE):
        return self.thread(name, device, process=f"DEVICE<h>[gpu {device - DEVICE}]")

    def _name(self, what, track, name):
        pid, tid = track
        self.events.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})

    def slice(self, track, begin, end, name, cat="cpu_op", **args):
        pid, tid = track
        event = {"ph": "X", "ts": START + begin, "dur": end - begin, "cat": cat, "name": name, "pid": pid, "tid": tid}
        self.events.append({**event, "args": args} if args else event)

    def arrow(self, name, source, begin, target, end, cat="flow"):
        self.flows += 1
        for phase, track, time in (("s", source, begin), ("f", target, end)):
            if track:
                bind = {"bp": "e"} if phase == "f" else {}
                self.events.append(
                    {"ph": phase, "ts": START + time, "cat": cat, "name": name, "id": self.flows, "pid": track[0], "tid": track[1], **bind}
                )

    def text(self):
        about = {"tool": "xstrace", "version": "0.1.0", "run": "planned", "host": "h", "pid": 100}
        return text_of(self.events, about, {"end": "exited", "status": 0, "lost": 0})

    def write(self, path):
        path.write_text(self.text())
        return path


# ---- programs that are played through ----


def random_programs(ranks, steps, seed):
    """For each rank a list of what it does: (what, name or peer, ns)."""
    dice = random.Random(seed)
    programs = [[] for _ in range(ranks)]
    for _ in range(steps):
        for rank, program in enumerate(programs):
            for _ in range(dice.randrange(1, 4)):
                program.append(("work", f"train::w{dice.randrange(3)}", dice.randrange(1_000, 30_000)))
                for _ in range(dice.randrange(3)):
                    program.append(("launch", f"k{dice.randrange(3)}", dice.randrange(1_000, 40_000)))
            program.append(("wait", None, 0))
        if ranks == 1:
            continue
        if dice.random() < 0.6:
            for rank, program in enumerate(programs):
                program.append(("send", (rank + 1) % ranks, 0))
                program.append(("recv", (rank - 1) % ranks, 0))
        else:
            for program in programs:
                program.append(("barrier", None, 0))
    return programs


class _Rank:
    def __init__(self, run, number, program):
        self.thread = run.thread("main", 100 + number, process=f"RANK {number} HOST<h> app")
        self.queue = run.queue("queue", DEVICE + number)
        self.program, self.now, self.free, self.at, self.seq = program, 1000 * number, None, 0, 0


def play(programs, scale=None):
    """(Planned, its length in ns). scale: factors of works, kernels and costs, by name."""
    scale = scale or {}
    cost = {name: round(ns * scale.get(name, 1)) for name, ns in COSTS.items()}
    run = Planned()
    ranks = [_Rank(run, number, program) for number, program in enumerate(programs)]
    sent, ended = {}, []
    while any(rank.at < len(rank.program) for rank in ranks):
        for number, rank in enumerate(ranks):
            while rank.at < len(rank.program) and _do(run, number, rank, ranks, sent, cost, scale, ended):
                rank.at += 1
        _meet(run, ranks, cost, ended)
    return run, max(ended) - min(1000 * number for number in range(len(ranks)))


def _call(run, rank, end, name, ended, **args):
    run.slice(rank.thread, rank.now, end, name, **args)
    rank.now = end
    ended.append(end)


def _do(run, number, rank, ranks, sent, cost, scale, ended):
    """Does the next thing, if it can be done."""
    what, name, ns = rank.program[rank.at]
    begin = rank.now
    if what == "work":
        _call(run, rank, begin + round(ns * scale.get(name.partition("::")[2], 1)), name, ended)
    elif what == "launch":
        start = begin + cost["launch"] if rank.free is None else max(begin + cost["launch"], rank.free + cost["gap"])
        _call(run, rank, begin + cost["call"], "clEnqueueNDRangeKernel", ended)
        rank.free = start + round(ns * scale.get(name, 1))
        ended.append(rank.free)
        run.slice(rank.queue, start, rank.free, f"{name}[SIMD8 {{1; 1; 1}} {{1; 1; 1}}]", "gpu_op")
        run.arrow("dep", rank.thread, begin, rank.queue, start)
    elif what == "wait":
        done = rank.free
        _call(run, rank, begin + cost["call"] if done is None else max(begin + cost["call"], done + cost["wake"]), "clFinish", ended)
        if done is not None:
            run.arrow("wait", rank.queue, done, rank.thread, rank.now)
    elif what == "send":
        sent.setdefault((number, name), []).append(begin)
        _call(run, rank, begin + cost["call"], "MPI_Send", ended, comm="world", peer=name, tag=1)
    elif what == "recv":
        if not sent.get((name, number)):
            return False
        left = sent[name, number].pop(0)
        _call(run, rank, max(begin + cost["call"], left + cost["message"]), "MPI_Recv", ended, comm="world", peer=name, tag=1)
        run.arrow("message", ranks[name].thread, left, rank.thread, max(begin + 1, left + 1), "mpi")
    else:
        return False
    return True


def _meet(run, ranks, cost, ended):
    """A barrier, when all have come to it."""
    if not all(rank.at < len(rank.program) and rank.program[rank.at][0] == "barrier" for rank in ranks):
        return
    end = max(rank.now for rank in ranks) + cost["collective"]
    for rank in ranks:
        _call(run, rank, end, "MPI_Barrier", ended, comm="world", seq=rank.seq)
        rank.seq += 1
        rank.at += 1
