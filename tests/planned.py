"""Traces whose answer is known, because they were planned: what the report must find in each, and nothing else.

    plan = Plan()
    plan.launch(0, 10 * US, kernel=(20 * US, 30 * US))
    plan.write(path)

Times are ns after BASE. PLANS has a function for each finding: it writes traces into a directory and returns the numbers.
"""

import json

BASE = 1_700_006_400 * 10**9  # a day's begin
US, MS = 1000, 1_000_000
DEVICE = 3_000_000_000
LAUNCH, COPY, WAIT, BUILD = "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer", "clFinish", "clBuildProgram"


class Plan:
    """One process's trace."""

    def __init__(self, rank=None, pid=1000, name="app"):
        self.rank, self.pid, self.flows, self.events, self.lost = rank, pid, 0, [], 0
        who = "HOST<h>" if rank is None else f"RANK {rank} HOST<h>"
        self._event(ph="M", name="process_name", pid=pid, tid=pid, args={"name": f"{who} {name}"})
        self._event(ph="M", name="thread_name", pid=pid, tid=pid, args={"name": "main"})

    def _event(self, **members):
        self.events.append({key: value for key, value in members.items() if value is not None})

    def host(self, name, begin, end, tid=None, args=None):
        self._event(ph="X", cat="cpu_op", name=name, pid=self.pid, tid=tid or self.pid, ts=begin, dur=end - begin, args=args)

    def launch(self, begin, end, kernel, name="k", queue=1):
        self.host(LAUNCH, begin, end)
        self._work(f"{name}[SIMD8 {{8; 1; 1}} {{8; 1; 1}}]", begin, *kernel, queue, {"global": [8, 1, 1], "local": [8, 1, 1]})

    def copy(self, begin, end, copy, size=1000, queue=1):
        self.host(COPY, begin, end)
        self._work(f"{COPY}[{size}]", begin, *copy, queue, {"bytes": size})

    def _work(self, name, called, begin, end, queue, args):
        if self.flows == 0:
            self._event(ph="M", name="process_name", pid=DEVICE, tid=1, args={"name": "DEVICE<h>[a device]"})
        self.flows += 1
        self._event(ph="X", cat="gpu_op", name=name, pid=DEVICE, tid=queue, ts=begin, dur=end - begin, args={"id": self.flows, **args})
        self._event(ph="s", cat="flow", name="dep", id=self.flows, pid=self.pid, tid=self.pid, ts=called)
        self._event(ph="f", cat="flow", name="dep", id=self.flows, pid=DEVICE, tid=queue, ts=begin, bp="e")

    def counter(self, name, at, value):
        self._event(ph="C", name=name, pid=self.pid, ts=at, args={"value": value})

    def write(self, path):
        metadata = {"tool": "xstrace", "version": "0.1.0", "run": "1", "host": "h", "pid": self.pid}
        if self.rank is not None:
            metadata["rank"] = self.rank
        head = {"displayTimeUnit": "ns", "baseTimeNanoseconds": BASE, "metadata": metadata}
        lines = ",\n".join(map(self._line, self.events))
        other = {"end": "exited", "status": 0, "events": len(self.events), "lost": self.lost}
        path.write_text(json.dumps(head)[:-1] + f',"traceEvents":[\n{lines}\n],"otherData":{json.dumps(other)}}}\n')
        return path

    @staticmethod
    def _line(event):
        times = "".join(f'"{key}":{event[key] // 1000}.{event[key] % 1000:03d},' for key in ("ts", "dur") if key in event)
        return "{" + times + json.dumps({key: value for key, value in event.items() if key not in ("ts", "dur")})[1:]


def busy_device(plan, until):
    """Kernels one behind the other, launched at once: the device is no cause of anything."""
    for n in range(until // MS):
        plan.launch(n * US, n * US + 500, (n * MS + 2 * US, (n + 1) * MS + 2 * US))


def nothing(place):
    plan = Plan()
    busy_device(plan, 100 * MS)
    plan.write(place / "t.json")


def short_kernels(place):
    plan = Plan()
    for n in range(1000):
        plan.launch(n * 15 * US, n * 15 * US + 14 * US, (n * 15 * US + 20 * US, n * 15 * US + 25 * US))
    plan.write(place / "t.json")
    return {"n": 999, "cost": 999 * 10 * US, "detail": {"kernel": 5 * US, "gap": 10 * US}}


def blocking_calls(place):
    plan = Plan()
    for n in range(100):
        at = n * 240 * US
        plan.launch(at, at + 10 * US, (at + 10 * US, at + 210 * US))
        plan.host(WAIT, at + 10 * US, at + 240 * US)
    plan.write(place / "t.json")
    return {"n": 99, "cost": 99 * 40 * US, "share": 99 * 40 / 24000, "detail": {"call": WAIT}, "place": {"dur": 40 * US, "tid": 1000}}


def synchronous_copies(place):
    plan = Plan()
    for n in range(50):
        at = n * MS
        plan.copy(at, at + 300 * US, (at + 100 * US, at + 120 * US), queue=2)
        plan.launch(at + 300 * US, at + 310 * US, (at + 400 * US, at + MS + 400 * US))
    plan.write(place / "t.json")
    return {"n": 50, "cost": 50 * 300 * US, "share": 15 / 50.4, "detail": {"call": COPY}, "place": {"dur": 300 * US}}


def exposed_copies(place):
    plan = Plan()
    for n in range(20):
        plan.copy(n * 4 * US, n * 4 * US + 2 * US, (n * MS + 5 * US, n * MS + 305 * US))
        plan.launch(n * 4 * US + 2 * US, n * 4 * US + 4 * US, (n * MS + 305 * US, (n + 1) * MS + 5 * US))
    plan.write(place / "t.json")
    return {"n": 20, "cost": 20 * 300 * US, "share": 6 / 20.005}


def late_builds(place):
    plan = Plan()
    busy_device(plan, 100 * MS)
    for n in range(3):
        plan.host(BUILD, (20 + 20 * n) * MS, (25 + 20 * n) * MS + n)
    plan.write(place / "t.json")
    return {"n": 3, "cost": 15 * MS + 3, "detail": {"call": BUILD}, "place": {"ts": BASE + 60 * MS, "dur": 5 * MS + 2}}


def late_allocations(place):
    plan = Plan()
    busy_device(plan, 100 * MS)
    for n in range(100):
        plan.host("clCreateBuffer", n * 500 * US + 2 * MS, n * 500 * US + 2050 * US)
    plan.write(place / "t.json")
    return {"n": 100, "cost": 100 * 50 * US, "detail": {"call": "clCreateBuffer"}}


def late_start(place):
    plan = Plan()
    plan.host("clGetPlatformIDs", 0, 5 * MS)
    plan.host(BUILD, 5 * MS, 30 * MS)
    plan.launch(30 * MS, 30 * MS + 10 * US, (31 * MS, 100 * MS))
    plan.write(place / "t.json")
    return {"n": 1, "cost": 31 * MS, "share": 0.31, "detail": {"call": BUILD, "call_ns": 25 * MS}}


def host_bound(place):
    plan = Plan()
    for n in range(50):
        plan.launch(n * 2 * MS, n * 2 * MS + 10 * US, (n * 2 * MS + 10 * US, n * 2 * MS + MS + 10 * US))
    plan.write(place / "t.json")
    return {"n": 49, "cost": 49 * 990 * US, "detail": {"threads": 1}, "place": {"dur": MS, "tid": 1000}}


def device_waits_for_mpi(place):
    plan = Plan(rank=0)
    for n in range(50):
        at = n * 2 * MS
        plan.launch(at, at + 10 * US, (at + 10 * US, at + MS))
        plan.host("MPI_Sendrecv", at + 10 * US, at + 2 * MS)
    plan.write(place / "t.json")
    return {"n": 49, "cost": 49 * MS}


def polling(place):
    plan = Plan()
    busy_device(plan, 20 * MS)
    for n in range(2000):
        plan.host("clGetEventInfo", n * 8 * US + MS, n * 8 * US + MS + 5 * US)
    plan.write(place / "t.json")
    return {"n": 2000, "cost": 2000 * 5 * US, "detail": {"call": "clGetEventInfo"}}


def failed_calls(place):
    plan = Plan()
    busy_device(plan, 100 * MS)
    for n in range(20):
        plan.host("clSetKernelArg", n * MS + 200 * US, n * MS + 201 * US, args={"result": -52})
    plan.write(place / "t.json")
    return {"n": 20, "cost": 20 * US, "detail": {"call": "clSetKernelArg", "result": "-52"}, "place": {"ts": BASE + 200 * US}}


def memory_growth(place):
    plan = Plan()
    busy_device(plan, 100 * MS)
    for n in range(50):
        plan.counter("app::memory in use", n * 2 * MS, 1000 + 100 * n)
        plan.counter("app::temperature", n * 2 * MS, 1000 + 100 * n)
    plan.write(place / "t.json")
    return {"n": 50, "cost": 0, "detail": {"counter": "app::memory in use", "first": 1000.0, "last": 5900.0}}


def outlier_steps(place):
    plan = Plan()
    busy_device(plan, 112 * MS)
    at = MS
    for n in range(100):
        length = 5 * MS if n in (10, 50, 90) else MS
        plan.host("app::step", at, at + length)
        if length > MS:
            plan.host("app::save", at + 500 * US, at + 4500 * US)
        at += length
    plan.write(place / "t.json")
    return {"n": 3, "cost": 12 * MS, "detail": {"median": MS}, "place": {"dur": 5 * MS, "tid": 1000}}


def imbalance(place):
    for rank, work in enumerate((80, 80, 80, 98)):
        plan = Plan(rank=rank, pid=1000 + rank)
        plan.host("MPI_Barrier", work * MS, 100 * MS)
        plan.host("app::work", 0, work * MS)
        plan.write(place / f"t.{rank}.json")
    return {"n": 4, "cost": 13_500 * US, "share": 0.135, "detail": {"rank": 3, "work": 98 * MS, "mean": 84_500 * US}}


def communication(place):
    for rank in range(4):
        plan = Plan(rank=rank, pid=1000 + rank)
        for n in range(10):
            plan.host("app::work", n * 10 * MS, n * 10 * MS + 6 * MS)
            plan.host("MPI_Alltoall", n * 10 * MS + 6 * MS, n * 10 * MS + 10 * MS - rank)
        plan.write(place / f"t.{rank}.json")
    return {"n": 4, "cost": 40 * MS - 30, "detail": {"rank": 3, "call": "MPI_Alltoall"}}


def incomplete_trace(place):
    plan = Plan()
    busy_device(plan, 100 * MS)
    plan.lost = 5
    plan.write(place / "t.json")
    return {"n": 1, "cost": 0}


PLANS = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(short_kernels, blocking_calls, synchronous_copies, exposed_copies, late_builds, late_allocations, late_start, host_bound),
        *(device_waits_for_mpi, polling, failed_calls, memory_growth, outlier_steps, imbalance, communication, incomplete_trace),
    )
}
