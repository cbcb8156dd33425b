"""Traces of MPI ranks as xstrace writes them, of a program that was never run: true times are known.

    job = Job(hosts=["a", "a", "b"], clocks={"b": Clock(11 * 10**9, 100)})
    job.barrier(); job.message(0, 2, 7, 64); job.compute(1, 5000)
    paths = job.write(directory)

Each rank has a time of its own, in true ns; writing turns it into what the clock of its host shows.
"""

import json
import random
from collections import namedtuple

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
