"""What bench/run measures with: programs run and timed, /proc read, traces counted, figures shown."""

import json
import mmap
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import namedtuple
from dataclasses import dataclass, field

MIB = 1 << 20


class Failed(Exception):
    """A program did not do what it should; the message is for people."""


# ---- running programs ----


class Tracer:
    """No tracer: the program alone. The others say what stands around it."""

    name = "bare"
    environment = {}

    def command(self, trace, program, options):
        return program

    def begin(self, trace):
        pass

    def end(self):
        """Makes the trace complete."""

    def clean(self):
        pass


class Launched(Tracer):
    """A tracer that is put before the program; `options` always, then its option for `trace`."""

    def __init__(self, name, path, output_option, options=()):
        self.name, self.path, self.output_option = name, path, output_option
        self.options = list(options)

    def command(self, trace, program, options):
        return [self.path, *self.options, *options, self.output_option, trace, *program]


class Wrapper(Tracer):
    """A program with a first argument of its own, put before what it starts; it writes no trace."""

    def __init__(self, name, path, argument):
        self.name, self.words = name, [path, argument]

    def command(self, trace, program, options):
        return [*self.words, *program]


class Loaded(Tracer):
    """A collector that the program's static ittnotify loads; nothing stands around the program."""

    def __init__(self, name, path):
        self.name, self.environment = name, {"INTEL_LIBITTNOTIFY64": path}


class Subscribed(Tracer):
    """A subscriber of XPTI's; the runtime tells it what it tells xstrace. Nothing stands around the program."""

    def __init__(self, name, path, framework):
        self.name = name
        self.environment = {
            "XPTI_TRACE_ENABLE": "1",
            "XPTI_FRAMEWORK_DISPATCHER": framework,
            "XPTI_SUBSCRIBERS": path,
            "UR_ENABLE_LAYERS": "UR_LAYER_TRACING",
        }


class Layer(Tracer):
    """A layer of OpenCL's loader; nothing stands around the program."""

    def __init__(self, name, path):
        self.name, self.environment = name, {"OPENCL_LAYERS": path}


class Lttng(Tracer):
    """LTTng-UST: the program carries it; a session stands around the run and loses nothing."""

    name = "LTTng-UST"
    environment = {"LTTNG_UST_ALLOW_BLOCKING": "1"}

    def __init__(self):
        self.daemon = None
        if not self.works("list"):
            self.daemon = subprocess.Popen(
                ["lttng-sessiond", "--no-kernel"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            wait_for(lambda: self.works("list"), "lttng-sessiond does not start")

    @staticmethod
    def works(*command):
        call = ["lttng", "--no-sessiond", *command]
        return subprocess.run(call, capture_output=True).returncode == 0

    def need(self, *command):
        if not self.works(*command):
            raise Failed("lttng " + " ".join(command) + " failed")

    def begin(self, trace):
        session = f"xstrace-bench-{os.getpid()}"
        self.need("create", session, "--output=" + trace)
        self.need("enable-channel", "-u", "--blocking-timeout=inf", "c")
        self.need("enable-event", "-u", "xstrace_bench:*", "-c", "c")
        self.need("start")

    def end(self):
        self.need("stop")

    def clean(self):
        self.need("destroy")

    def close(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()


def lines_of(text):
    """{name: value} of a program's lines "<name> <number>"."""
    values = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2:
            try:
                values[words[0]] = float(words[1])
            except ValueError:
                pass
    return values


def spawn(command, out, environment):
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, out + ".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, out + ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    return os.posix_spawn(command[0], command, {**os.environ, **environment}, file_actions=actions)


class Scratch:
    """Where traces go; each is removed as soon as it was looked at."""

    def __init__(self, parent=None):
        self.path = tempfile.mkdtemp(prefix="xstrace-bench-", dir=parent)
        self.trace = os.path.join(self.path, "trace")

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def fresh(self):
        """The directory for the next trace, empty."""
        shutil.rmtree(self.trace, ignore_errors=True)
        os.mkdir(self.trace)
        return self.trace

    def run(self, tracer, program, options=(), look=None, needs=MIB):
        """The program's own figures, and ours: whole_s, exit_ms, bytes, and what look(trace) says. needs 0: nothing is made present before."""
        self.fresh()
        if needs:
            warm(needs, self.path)
        tracer.begin(self.trace)
        command = tracer.command(self.trace, [str(word) for word in program], list(options))
        begin = time.monotonic_ns()
        pid = spawn(command, self.trace, tracer.environment)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        ended = time.monotonic_ns()
        tracer.end()
        finished = time.monotonic_ns()
        tracer.clean()
        with open(self.trace + ".out") as out, open(self.trace + ".err") as err:
            values, errors = lines_of(out.read()), err.read()
        if status:
            raise Failed(f"{' '.join(command)}: status {status}\n{errors}")
        values["whole_s"] = (finished - begin) / 1e9
        if "end_ns" in values:
            values["exit_ms"] = (ended - values["end_ns"]) / 1e6
        values["bytes"] = size_of(self.trace)
        if look:
            values.update(look(self.trace))
        shutil.rmtree(self.trace)
        return values


def warm(size, directory):
    """Makes memory present: a virtual machine's host gives it anew, slowly (a tenth of the speed), once it was unused for some seconds.
    The kernel hands out first what was given back last, of the kind that was given back: a third of it is a file's."""
    pages, piece = min(size, 4 << 30) // 4096, bytes(128 << 10)
    with mmap.mmap(-1, pages * 4096) as memory:
        memory[::4096] = b"x" * pages
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(pages * 4096 // 3 // len(piece) + 1):
            file.write(piece)


def size_of(directory):
    return sum(
        os.path.getsize(os.path.join(where, name))
        for where, _, names in os.walk(directory)
        for name in names
    )


# ---- the drain process ----


Process = namedtuple("Process", "name state parent")


def process_stat(pid):
    """A Process, or None when there is no such process, or only what its parent must reap."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 :].rsplit(")", 1)
    state, parent = rest.split()[:2]
    return None if state == "Z" else Process(name, state, int(parent))


def child(parent, name):
    """The pid of the first child of that name; it may be about to come."""

    def look():
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            process = process_stat(pid)
            if process and (process.name, process.parent) == (name, parent):
                return pid
        return None

    return wait_for(look, f"no process {name}")


def wait_for(condition, complaint, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.001)
    raise Failed(complaint)


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0])


def peak_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def settle(pid):
    """Waits until the process has done its work and sleeps; returns its CPU time."""
    before = cpu_ns(pid)
    while True:
        time.sleep(0.15)
        now = cpu_ns(pid)
        # S: neither kept from the processor by others nor waiting for a disk
        if now - before < 1_000_000 and process_stat(pid).state == "S":
            return now
        before = now


class Stepped:
    """A program with --step under xstrace, with its drain process, stopped before and after its run."""

    def __init__(self, scratch, tracer, program, options=(), needs=MIB):
        self.scratch = scratch
        warm(needs, scratch.path)
        command = tracer.command(scratch.fresh(), [str(word) for word in program], list(options))
        self.launcher = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.drain = child(self.launcher.pid, "xstrace-drain")
        self.expect("ready")

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        self.launcher.stdin.close()
        self.launcher.stdout.close()
        self.launcher.wait()
        if not error:
            self.trace = count_slices(self.scratch.trace)
        shutil.rmtree(self.scratch.trace)

    def expect(self, word):
        if self.launcher.stdout.readline().strip() != word:
            raise Failed("the traced program ended early")

    def work(self):
        self.launcher.stdin.write("\n")
        self.launcher.stdin.flush()
        self.expect("done")


# ---- traces ----


def count_slices(trace):
    """{"slices": n, "lost": n} of the one JSON trace in a directory, every line of it looked at."""
    names = os.listdir(trace)
    if len(names) != 1:
        raise Failed(f"{len(names)} files where one trace should be")
    name, path = names[0], os.path.join(trace, names[0])
    if name.endswith(".zst"):
        with subprocess.Popen(["zstd", "-dcq", path], stdout=subprocess.PIPE) as process:
            return count_in(process.stdout)
    with open(path, "rb") as file:
        return count_in(file)


def count_packets(trace):
    """The same of a trace in Perfetto's format."""
    from xstrace.trace import open_trace

    (name,) = os.listdir(trace)
    with open_trace(os.path.join(trace, name)) as found:
        slices = sum(event["ph"] == "X" for event in found)
    return {"slices": slices, "lost": found.other["lost"]}


def count_in(file):
    mark, slices, total, rest = b'\n{"ph":"X"', 0, 0, b""
    while block := file.read(16 * MIB):
        total += len(block)
        block = rest + block
        slices += block.count(mark)
        rest = block[-(len(mark) - 1) :] if len(block) < 65536 else block[-65536:]
        slices -= rest.count(mark)
    slices += rest.count(mark)
    other = json.loads(b"{" + rest[rest.rindex(b'"otherData":') :].rstrip()[:-1] + b"}")["otherData"]
    return {"slices": slices, "json_bytes": total, "lost": other["lost"]}


# ---- the machine ----


class Machine:
    """How fast the machine is just now: virtual machines are slowed down by their neighbours for hours, and their memory more than
    their arithmetic. Two references without a tracer run in the same rounds: two reads of the clock with 32 bytes stored (the
    processor), and write(2) alone into a file (the kernel and the memory). They are told beside the figures and change no goal."""

    def __init__(self, pairs, scratch):
        self.pairs, self.scratch = pairs, scratch
        self.pair_ns, self.write_gb_s, self.next = [], [], 0

    def look(self):
        """At most once a second: it takes some time itself."""
        if time.monotonic() < self.next:
            return
        run = self.scratch.run(Tracer(), [self.pairs, "burst", 11, 8192])
        self.pair_ns.append(run["floor"])
        self.write_gb_s.append(plain_write(self.scratch, 64 * MIB)["gb_s"])
        self.next = time.monotonic() + 1

    def __str__(self):
        if not self.pair_ns:
            return "not measured"
        spread = (statistics.median(self.pair_ns), min(self.pair_ns), max(self.pair_ns), statistics.median(self.write_gb_s))
        return "two clock reads and 32 bytes %.1f ns (%.1f..%.1f), write(2) %.2f GB/s" % spread


def plain_write(scratch, size):
    """What the kernel alone takes for as many bytes, in pieces of the drain loop's size."""
    piece, pieces = bytes(128 << 10), size // (128 << 10)
    warm(3 * size, scratch.path)
    path = os.path.join(scratch.fresh(), "plain")
    before = time.process_time()
    with open(path, "wb", buffering=0) as file:
        for _ in range(pieces):
            file.write(piece)
    seconds = time.process_time() - before
    os.unlink(path)
    return {"gb_s": pieces * len(piece) / 1e9 / seconds}


# ---- figures ----


def interleave(rounds, variants, look=lambda: None):
    """Calls the variants in turn, forwards and backwards; {name: [result of each round]}. look: called in each round."""
    results = {name: [] for name in variants}
    for i in range(rounds):
        look()
        for name in list(variants) if i % 2 == 0 else reversed(variants):
            results[name].append(variants[name]())
    return results


def over_bare(results, key, each=1):
    """{variant: its differences to "bare", round by round}, of `each` calls; and what bare has."""
    bare = [run[key] / each for run in results["bare"]]
    differences = {
        name: [run[key] / each - base for run, base in zip(runs, bare)]
        for name, runs in results.items()
        if name != "bare"
    }
    return {**differences, "bare itself": bare}


@dataclass
class Figure:
    """One line of the table: xstrace's values, the goal, and what stands beside it."""

    what: str
    unit: str
    values: list
    goal: float = None
    beside: dict = field(default_factory=dict)
    at_least: bool = False
    least: str = "least layer"  # the name in `beside` of the least that this can cost, where there is one

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def verdict(self):
        """Against the goal as it was ordered; nothing that is measured changes it."""
        if self.goal is None:
            return ""
        if self.median >= self.goal if self.at_least else self.median <= self.goal:
            return "met"
        least = self.beside.get(self.least)
        return f"missed; {self.least} {number(statistics.median(least))}" if least else "missed"

    def cells(self):
        low, high = number(min(self.values)), number(max(self.values))
        median = [number(self.median), self.unit]
        if len(self.values) > 1:
            median.append(f"({low}..{high})")
        sign = "≥" if self.at_least else "≤"
        goal = "" if self.goal is None else f"{sign} {number(self.goal)}"
        return [
            self.what,
            " ".join(filter(None, median)),
            goal,
            self.verdict,
            ", ".join(f"{k} {number(statistics.median(v))}" for k, v in self.beside.items()),
        ]


def number(value):
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


HEAD = ["figure", "xstrace: median (min..max)", "goal", "verdict", "beside it, same run, medians"]


def markdown(figures):
    rows = [HEAD, ["---"] * len(HEAD)] + [figure.cells() for figure in figures]
    return ["| " + " | ".join(row) + " |" for row in rows]


def plain(figures):
    rows = [HEAD] + [figure.cells() for figure in figures]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows]
