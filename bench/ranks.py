"""Jobs of MPI ranks for bench/run, and what their drain processes take while they run."""

import os
import re
import subprocess
import time

from measure import Failed, Tracer, cpu_ns, process_stat, spawn, warm


class Ranks(Tracer):
    """The ranks of a job, each under a tracer or alone."""

    def __init__(self, tracer, mpiexec, ranks, environment=None):
        self.name, self.tracer, self.environment = tracer.name, tracer, environment or {}
        self.start = [mpiexec, "-n", str(ranks)]

    def command(self, trace, program, options):
        return [*self.start, *self.tracer.command(trace, program, options)]


def drains_of(pid):
    """The drain processes of all xstrace that run below a process."""
    parents, drains = {}, []
    for number in map(int, filter(str.isdigit, os.listdir("/proc"))):
        process = process_stat(number)
        if process:
            parents[number] = process.parent
            if process.name == "xstrace-drain":
                drains.append(number)

    def below(number):
        while number and number != pid:
            number = parents.get(number)
        return number == pid

    return list(filter(below, drains))


def wake_ups(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M)[1])


def watched(scratch, tracer, program, options=(), needs=0):
    """Runs a job: {"whole_s", "drain_share": % of all processors that its drain processes took}."""
    trace, taken = scratch.fresh(), {}
    warm(needs, scratch.path)
    command = tracer.command(trace, [str(word) for word in program], list(options))
    begin = time.monotonic()
    pid = spawn(command, trace, tracer.environment)
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        for drain in drains_of(pid):
            try:
                taken[drain] = cpu_ns(drain)
            except OSError:
                pass  # it has just ended
        time.sleep(0.25)
    whole = time.monotonic() - begin
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        raise Failed(f"{' '.join(command)}: status {status}")
    share = 100 * sum(taken.values()) / 1e9 / (whole * os.cpu_count())
    return {"whole_s": whole, "drain_share": share}


def idle_drains(scratch, tracer, seconds):
    """Ranks that only sleep: {"wake_ups": a second, of one drain process, "drain_share"}."""
    command = tracer.command(scratch.fresh(), ["sleep", str(seconds + 5)], ["--chrome-mpi-logging"])
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(4)
    drains = drains_of(job.pid)
    before = [(wake_ups(drain), cpu_ns(drain)) for drain in drains]
    begin = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begin
    after = [(wake_ups(drain), cpu_ns(drain)) for drain in drains]
    job.wait()
    if not drains:
        raise Failed("no drain process")
    woken, ns = (sum(b[i] - a[i] for a, b in zip(before, after)) for i in (0, 1))
    return {"wake_ups": woken / len(drains) / took, "drain_share": 100 * ns / 1e9 / (took * os.cpu_count())}
