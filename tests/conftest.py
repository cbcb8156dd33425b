"""Running programs, bare and under xstrace, and what their traces must hold.

    run = xstrace("--chrome-itt-logging --ring-size 64K", "itt_tasks", [1000, 4])
    run.status, run.out, run.err, run.said      # said: the lines that are xstrace's own
    run.traces, run.trace                       # all, or the only one
    run.check_expected()                        # the program's "expected:" lines (apps/app.h)

The fixture looks after what every run must leave behind: valid traces, and nothing in /dev/shm.
XSTRACE_BUILD names the build directory, default build/ beside this one.
"""

import collections
import contextlib
import ctypes
import fcntl
import glob
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("XSTRACE_BUILD", ROOT / "build")).resolve()
XSTRACE = BUILD / "launcher/xstrace"
APPS = BUILD / "tests/apps"
sys.path.insert(0, str(ROOT / "python"))

from made import make, windows, zstd_reader  # noqa: E402, F401 (fixtures)
from xstrace import check_trace, open_trace  # noqa: E402

# memory from malloc is never zero by chance: who reads what nobody has set is found out
os.environ.setdefault("MALLOC_PERTURB_", "178")
# as users have it: what is buffered is written at the end, where that may fail
os.environ.pop("PYTHONUNBUFFERED", None)

VARIABLES = (
    "XSTRACE_RUN",
    "LD_PRELOAD",
    "INTEL_LIBITTNOTIFY64",
    "INTEL_JIT_PROFILER64",
    "OPENCL_LAYERS",
    "ZE_ENABLE_VALIDATION_LAYER",
    "ASAN_OPTIONS",
    "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION64_PATH",
)
collect_ignore = ["toy_backend"]  # test_additions.py copies it
OWN_LINE = re.compile(r"xstrace: |\[(INFO|WARNING)\] ")
NOBODY = 65534
CLONE_NEWNS = 0x20000
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(uuid.uuid4())
SECONDS_OF_A_TEST = 120
is_root = os.geteuid() == 0
root_only = pytest.mark.skipif(not is_root, reason="not root")
COMMANDS = {
    "reads": r"clEnqueueRead",
    "writes": r"clEnqueueWrite",
    "copies": r"clEnqueueCopy|clEnqueueSVMMemcpy",
    "fills": r"clEnqueueFill|clEnqueueSVMMemFill",
    "maps": r"clEnqueueMap|clEnqueueSVMMap",
    "unmaps": r"clEnqueueUnmap|clEnqueueSVMUnmap",
    "migrations": r"clEnqueueMigrate|clEnqueueSVMMigrate",
}


class Slice:
    """One X event; times in ns."""

    def __init__(self, event):
        self.name, self.cat = event["name"], event.get("cat")
        self.track = event["pid"], event["tid"]
        self.start, self.end = event["ts"], event["ts"] + event["dur"]
        self.args = event.get("args", {})
        self.unfinished = bool(self.args.get("unfinished"))
        self.base = self.name.split("[")[0]  # of device work: without sizes

    def __repr__(self):
        return f"{self.name} {self.start}..{self.end} on {self.track}"


class Trace:
    """One file, all of it in memory."""

    def __init__(self, path):
        self.path = path
        with open_trace(path) as trace:
            self.events = list(trace)
        self.header, self.other, self.truncated = trace.header, trace.other or {}, trace.truncated
        self.damage = trace.damage
        self.metadata = trace.metadata
        self.pid = self.metadata.get("pid")
        self.slices = [Slice(event) for event in self.events if event["ph"] == "X"]
        self.host = [s for s in self.slices if s.cat == "cpu_op"]
        self.device = [s for s in self.slices if s.cat == "gpu_op"]
        self.tasks = [s for s in self.host if "::" in s.name]
        self.calls = [s for s in self.host if "::" not in s.name]

    def names(self, what):
        """Names of an M event, by track: "thread_name" or "process_name"."""
        return {
            (event["pid"], event["tid"]): event["args"]["name"]
            for event in self.events
            if event["ph"] == "M" and event["name"] == what
        }

    def by_thread(self, slices):
        """Slices in the order of their starts, by tid."""
        threads = collections.defaultdict(list)
        for one in sorted(slices, key=lambda s: (s.start, -s.end)):
            threads[one.track[1]].append(one)
        return threads

    def count(self, kind, name=None):
        """What an "expected:" line counts; see apps/app.h."""
        if kind == "threads":
            threads = self.other.get("threads", [])
            return sum(t["records"] > 0 for t in threads) + self.other.get("threads_omitted", 0)
        if kind in ("tasks", "open"):
            found = [s for s in self.tasks if s.unfinished == (kind == "open")]
        elif kind == "kernels":
            found = [s for s in self.device if "global" in s.args]
        elif kind == "commands":
            found = self.device
        else:
            found = [s for s in self.device if re.match(COMMANDS[kind], s.name)]
        return sum(name in (None, s.name, s.base) for s in found)


class Run:
    """A started program; its results are there after finish()."""

    def __init__(self, command, cwd, log, env, **popen):
        self.command, self.cwd, self.log = [str(word) for word in command], cwd, log
        self.started = time.monotonic()
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("process_group", 0)
        for stream in ("stdout", "stderr"):
            popen.setdefault(stream, (log / stream).open("w"))
        self.process = subprocess.Popen(
            self.command, cwd=cwd, env={**os.environ, **(env or {})}, **popen
        )
        self.pid = self.process.pid
        self.status = None

    def wait(self, timeout=60):
        """Waits for the end; keeps status, out, err, seconds and (in KiB) max_rss."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.seconds = time.monotonic() - self.started
        self.status = self.process.returncode
        self.read_output()
        return self

    def read_output(self):
        self.out = (self.log / "stdout").read_text(errors="backslashreplace")
        lines = (self.log / "stderr").read_text(errors="backslashreplace").splitlines(True)
        self.said = [line.rstrip("\n") for line in lines if OWN_LINE.match(line)]
        self.err = "".join(line for line in lines if not OWN_LINE.match(line))

    def kill(self):
        """Ends what is left of it; a drain process then ends by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def wait_for_output(self, text="ready", timeout=60):
        """Until the program has printed that line's beginning."""
        wait_until(lambda: re.search(f"^{text}", (self.log / "stdout").read_text(), re.M), timeout)


class TracedRun(Run):
    """The same under xstrace."""

    def __init__(self, options, app, args, cwd, log, env, launcher=XSTRACE, prefix=(), **popen):
        self.outputs = [Path(cwd)]
        self.trace_files = None
        options = options.split() if isinstance(options, str) else [str(o) for o in options]
        if "--output-dir-path" in options:
            self.outputs.append(Path(cwd, options[options.index("--output-dir-path") + 1]))
        self.known = set(self._files())
        self._dir = None
        super().__init__([*prefix, launcher, *options, app, *args], cwd, log, env, **popen)

    def _files(self):
        return [path for d in self.outputs for path in sorted([*d.glob("*.json*"), *d.glob("*.pftrace*")]) if path.is_file()]

    @property
    def dir(self):
        """The run directory, or None: its control file says which launcher made it."""
        if self._dir:
            return self._dir if os.path.isdir(self._dir) else None
        paths = filter(os.path.isdir, glob.glob("/dev/shm/xstrace-*"))
        for path in paths:
            if os.path.islink(path):
                continue  # a session's name
            try:
                with open(path + "/control", "rb") as control:
                    (launcher,) = struct.unpack_from("i", control.read(112), 108)
            except (OSError, struct.error):
                continue  # another run's: half removed, or just being made
            if launcher == self.pid:
                self._dir = path
                return path
        return None

    def children(self):
        """Pids of the launcher's children by name: {"xstrace-drain": …, "itt_tasks": …}."""
        path = f"/proc/{self.pid}/task/{self.pid}/children"
        pids = [int(pid) for pid in Path(path).read_text().split()]
        found = {}
        for pid in pids:
            with contextlib.suppress(OSError):  # it has just ended
                found[Path(f"/proc/{pid}/comm").read_text().strip()] = pid
        return found

    def child(self, name):
        """Pid of a child of the launcher, as soon as it is there."""
        return wait_until(lambda: self.children().get(name[:15]))

    @property
    def drain(self):
        return self.child("xstrace-drain")

    def finish(self, timeout=60):
        """Waits for launcher and drain process, then looks at what they left."""
        self.wait(timeout)
        return self.collect()

    def collect(self, timeout=60):
        self.trace_files = []
        try:
            wait_until(lambda: not self.dir, timeout)
        except AssertionError as error:
            path = self.dir
            drains = subprocess.run(["pgrep", "-af", "xstrace-drain"], capture_output=True, text=True).stdout
            raise AssertionError(f"{path} is still there: {path and os.listdir(path)}, {drains}") from error
        self.read_output()
        self.trace_files = [path for path in self._files() if path not in self.known]
        self._traces = None
        for path in self.trace_files:
            assert check_trace(path, strict=True) == [], path
        return self

    @property
    def traces(self):
        if self._traces is None:
            self._traces = [Trace(path) for path in self.trace_files]
        return self._traces

    @property
    def trace(self):
        assert len(self.traces) == 1, self.trace_files
        return self.traces[0]

    def check_expected(self, *kinds):
        """Compares the program's lines about these kinds (default: all) with the traces."""
        lines = expected_lines(self.out)
        seen = 0
        for (pid, how, kind, name), n in lines.items():
            if kinds and kind not in kinds:
                continue
            traces = [t for t in self.traces if pid in (None, t.pid)]
            found = sum(t.count(kind, name) for t in traces)
            good = {"expected": found == n, "atleast": found >= n, "atmost": found <= n}[how]
            assert good, f"pid {pid}: {how} {n} {kind} {name or ''}, found {found}"
            seen += 1
        assert seen, "the program expected nothing"
        return self


def expected_lines(out):
    """{(pid or None, how, kind, name or None): count} of a program's output."""
    counts = collections.Counter()
    pid = None
    for line in out.splitlines():
        if match := re.match(r"process: (\d+)", line):
            pid = int(match[1])
        elif match := re.match(r"(expected|atleast|atmost): (\d+) (\w+)(?: (.+))?$", line):
            counts[pid, match[1], match[3], match[4]] += int(match[2])
    for kind in ("markers", "barriers"):  # they wait, they do not work: no device slices
        n = counts.pop((None, "expected", kind, None), 0)
        if (None, "expected", "commands", None) in counts:
            counts[None, "expected", "commands", None] -= n
    return counts


def wait_until(true, timeout=60):
    """Calls true() until it gives something, and returns that."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        result = true()
        if result:
            return result
        time.sleep(0.002)
    raise AssertionError(f"waited {timeout} s in vain")


def alive(pid):
    """Zombies are not: who reaps an orphan takes its time."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Runner:
    """Makes runs in one test's directory; see the fixtures."""

    def __init__(self, tmp_path):
        self.home = tmp_path
        self.cwd = tmp_path / "cwd"
        self.cwd.mkdir()
        self.runs = []
        self.left_behind = False  # set by a test that leaves a run directory on purpose

    def _log(self):
        log = self.home / f"log{len(self.runs)}"
        log.mkdir()
        return log

    def bare(self, app, args=(), env=None, cwd=None, timeout=60, prefix=(), **popen):
        """Runs the program as it is."""
        run = Run([*prefix, program(app), *args], cwd or self.cwd, self._log(), env, **popen)
        self.runs.append(run)
        return run.wait(timeout)

    def start(self, options, app, args=(), env=None, cwd=None, **popen):
        """Starts it under xstrace: a TracedRun, to be finished with finish()."""
        run = TracedRun(options, program(app), args, cwd or self.cwd, self._log(), env, **popen)
        self.runs.append(run)
        return run

    def __call__(self, options, app, args=(), timeout=60, **more):
        """Runs it under xstrace to the end: a TracedRun."""
        return self.start(options, app, args, **more).finish(timeout)

    @staticmethod
    def adopt(run, files):
        """The traces of a run in which xstrace was started by somebody else (mpiexec)."""
        for path in files:
            assert check_trace(path, strict=True) == [], path
        run.traces = [Trace(path) for path in files]

    def end(self):
        for run in self.runs:
            if run.status is None:
                run.kill()
            if not isinstance(run, TracedRun):
                continue
            try:
                if run.trace_files is None and not self.left_behind:
                    run.wait().collect(3)
            finally:
                shutil.rmtree(run.dir or "", ignore_errors=True)


def program(app):
    """A name of a program of apps/, or any other path."""
    path = APPS / str(app)
    return path if path.exists() else app


@pytest.fixture
def public():
    """A directory that every user can reach (pytest's own, and where the repository lies, may be private)."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def copy_build(place):
    """The launcher in a copy of what it needs."""
    for part in ("launcher/xstrace", "writer/xstrace-drain", "collector/libxstrace.so"):
        (place / part).parent.mkdir(parents=True)
        shutil.copy(BUILD / part, place / part)
    return place / "launcher/xstrace"


def compile_c(path, source, *flags):
    """A program (or library, with flags) of a few lines; ITT's static part is linked in."""
    source_file = path.with_suffix(".c")
    source_file.write_text(source)
    itt = ["-I", ROOT / ".deps/ittapi/include", APPS / "libittnotify.a", "-ldl", "-pthread"]
    subprocess.run(["cc", "-w", "-O1", "-o", path, source_file, *flags, *itt], check=True)
    return path


@contextlib.contextmanager
def mounted(where, options, kind="tmpfs"):
    """A file system at a place, for this process and its children alone (pytest_configure)."""
    subprocess.run(["mount", "-t", kind, "-o", options, "none", where], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


@pytest.fixture
def private(tmp_path, monkeypatch):
    """A directory for traces that nobody else uses; nothing stays in it."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield place
    wait_until(lambda: not list(place.iterdir()), timeout=10)


@contextlib.contextmanager
def append_only(directory):
    """Files can be made there, and neither removed nor renamed."""
    if not shutil.which("chattr") or subprocess.run(["chattr", "+a", directory], capture_output=True).returncode:
        pytest.skip("no append-only directories here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-a", directory], check=True)


def limited(which, value):
    """A preexec_fn that sets a soft limit."""
    hard = resource.getrlimit(which)[1]
    return lambda: resource.setrlimit(which, (value, hard))


@pytest.fixture
def xstrace(tmp_path):
    runner = Runner(tmp_path)
    yield runner
    runner.end()


@pytest.fixture(autouse=True)
def time_limit():
    """No test hangs."""

    def stop(*unused):
        raise TimeoutError("the test takes too long")

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_OF_A_TEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def once(place, make):
    """Calls make() in the first test of a run that asks for it, whichever process that is in; `place` keeps what it makes. Returns place."""
    place.mkdir(exist_ok=True)
    stamp = place / "stamp"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != RUN:
            make()
            stamp.write_text(RUN)
    return place


def allow(seconds):
    """For a test that builds: it may take so long from now on."""
    signal.alarm(seconds)


def pytest_collection_modifyitems(config, items):
    """With XSTRACE_TEST_SHORT=1 what is marked as long stays out, all but the first `keep` of a test's cases."""
    if os.environ.get("XSTRACE_TEST_SHORT") != "1":
        return
    met, out = collections.Counter(), set()
    for item in items:
        mark = item.get_closest_marker("long")
        if mark:
            test = item.nodeid.split("[")[0]
            met[test] += 1
            if met[test] > mark.kwargs.get("keep", 0):
                out.add(item)
    config.hook.pytest_deselected(items=list(out))
    items[:] = [item for item in items if item not in out]


def pytest_configure(config):
    """What tests mount is nobody else's, and what others do in /dev/shm is nothing to us."""
    config.addinivalue_line("markers", "long(keep=0): not for everyday; its first `keep` cases are")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's children would not end by it
    if not is_root or ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return
    # in a plain chroot / is no mount point: there it is as for everybody but root
    if subprocess.run(["mount", "--make-rprivate", "/"], stderr=subprocess.DEVNULL).returncode == 0:
        subprocess.run(["mount", "-t", "tmpfs", "none", "/dev/shm"], check=True)
