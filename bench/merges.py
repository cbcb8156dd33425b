"""Traces of many ranks for bench/run to merge, and the floor: their bytes copied."""

import os
import time

from measure import Failed, warm

PIECE = 128 << 10  # bytes that the merger writes at once


def traces_of(directory, files, lines):
    """So many traces of plain slices; their paths."""
    paths = [os.path.join(directory, f"{n}.json") for n in range(files)]
    for pid, path in enumerate(paths, 1):
        head = '{"ph":"X","tid":%d,"pid":%d,"ts":' % (pid, pid)
        with open(path, "w") as file:
            base = 20_778 * 86_400 * 10**9
            file.write('{"baseTimeNanoseconds":%d,"metadata":{"tool":"xstrace","host":"h%d"},' % (base, pid))
            file.write('"traceEvents":[\n')
            for n in range(lines):
                more = ',"dur":1.250,"cat":"cpu_op","name":"library::a_task_of_usual_length"},\n'
                file.write(f"{head}{57_183_514_172 + 2 * n}.873{more}")
            file.write('{"ph":"M","name":"process_name","pid":%d,"args":{"name":"HOST<h>"}}\n]}\n' % pid)
    return paths


class Merges:
    """What merges or copies the same inputs, on some of the processors; each gives MB of input per second."""

    def __init__(self, inputs, out):
        self.inputs, self.out = inputs, out
        self.sizes = [os.path.getsize(path) for path in inputs]
        self.usable = sorted(os.sched_getaffinity(0))

    @property
    def megabytes(self):
        return sum(self.sizes) / 1e6

    def run(self, cpus, *command):
        warm(sum(self.sizes), os.path.dirname(self.out))
        begin = time.monotonic()
        os.sched_setaffinity(0, self.usable[:cpus])
        try:
            pid = os.spawnvp(os.P_NOWAIT, command[0], [*command, *self.inputs])
        finally:
            os.sched_setaffinity(0, self.usable)
        status, usage = os.wait4(pid, 0)[1:]
        wall = time.monotonic() - begin
        os.unlink(self.out)
        if status:
            raise Failed(f"{command[0]}: status {status}")
        return {"user": self.megabytes / usage.ru_utime, "rss": usage.ru_maxrss / 1024, **self.rates(wall, [usage])}

    def copy(self, cpus):
        """The floor: all is read once and written once."""
        warm(sum(self.sizes), os.path.dirname(self.out))
        target = os.open(self.out, os.O_WRONLY | os.O_CREAT, 0o600)
        begin, children = time.monotonic(), []
        for n in range(cpus):
            children.append(os.fork())
            if not children[-1]:
                self.copy_some(target, n, cpus)
        usages = [os.wait4(pid, 0)[2] for pid in children]
        wall = time.monotonic() - begin
        os.close(target)
        os.unlink(self.out)
        return self.rates(wall, usages)

    def copy_some(self, target, first, step):
        """One process's part of a copy: ends the process."""
        os.sched_setaffinity(0, [self.usable[first]])
        for i in range(first, len(self.inputs), step):
            at, source = sum(self.sizes[:i]), os.open(self.inputs[i], os.O_RDONLY)
            while data := os.read(source, PIECE):
                at += os.pwrite(target, data, at)
        os._exit(0)

    def rates(self, wall, usages):
        cpu = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        return {"wall": self.megabytes / wall, "cpu": self.megabytes / cpu}
