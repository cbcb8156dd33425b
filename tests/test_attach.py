"""--attach: a program that runs without xstrace, sampled from outside. It must not notice."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conftest import APPS, BUILD, NOBODY, ROOT, XSTRACE, Trace, allow, check_trace, compile_c, mounted, root_only, wait_until
from test_doctor import DENY, PERF_EVENT_OPEN, PTRACE

pytestmark = pytest.mark.skipif(not (BUILD / "attach/xstrace-attach").exists(), reason="built without libunwind")
CYCLES = 1000 if os.environ.get("XSTRACE_TEST_CLIENTS") == "1" else 5
SECONDS = 120 + 2 * CYCLES  # on a busy machine


def attach(pid, *options, prefix=(), timeout=60, **more):
    """Runs xstrace --attach to its end, without asking how that was."""
    return subprocess.run([*prefix, XSTRACE, "--attach", str(pid), *options], capture_output=True, text=True, timeout=timeout, **more)


class Target:
    """A program that says "runs" and goes on until its stdin ends."""

    def __init__(self, *words, **popen):
        popen = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | popen
        self.process = subprocess.Popen(words, **popen)
        assert self.process.stdout.readline() == "runs\n"
        self.pid = self.process.pid

    def finish(self):
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, err) == (0, ""), out
        assert "spoilt" not in out
        return out


@pytest.fixture
def target():
    """Starts targets, and looks that none of them was harmed and nothing of ours is left."""
    started = []

    def start(*words, **popen):
        started.append(Target(*map(str, words), **popen))
        return started[-1]

    before = {path.name for path in Path("/dev/shm").glob("xstrace-*")}
    yield start
    for one in started:
        if one.process.returncode is None:
            status = Path(f"/proc/{one.pid}/status").read_text()
            assert re.search(r"TracerPid:\s*0\n", status)
            one.finish()
    ours = {path for path in Path("/dev/shm").glob("xstrace-*") if path.name not in before and path.owner() == Path.home().owner()}
    assert not [path for path in ours if (path / "control").exists() and not alive_run(path)]


def alive_run(path):
    """Does a process map the run's control file (another test's run)?"""
    return subprocess.run(["fuser", "-s", path / "control"], check=False).returncode == 0


def python(tmp_path, text):
    script = tmp_path / "app.py"
    script.write_text("import sys, threading, time\n" + text + "\nprint('runs', flush=True)\nsys.stdin.read()\n")
    return script


SPIN = """
def spin():
    while True:
        sum(range(2000))
def nap():
    while True:
        time.sleep(0.5)
for f in (spin, nap):
    threading.Thread(target=f, daemon=True).start()
"""


def only(tmp_path, pattern="*.json"):
    (path,) = tmp_path.glob(pattern)
    return path


def columns(report):
    """{function: (self %, total %)} of the report as text."""
    rows = re.findall(r"^ +([0-9.]+) +([0-9.]+) +[0-9.]+ +[0-9.]+  (.+)$", report, re.M)
    return {name: (float(own), float(total)) for own, total, name in rows}


def sampled(app, tmp_path, want, *options, **more):
    """(what it says, its directory) of a sampling that was long enough to find these functions: the machine may be busy."""
    for seconds in (1, 3, 9):
        place = tmp_path / f"sampled{seconds}"
        place.mkdir()
        place.chmod(0o777)
        done = attach(app.pid, "--duration", f"{seconds}s", *options, cwd=place, **more)
        assert done.returncode == 0, done
        found = columns(done.stderr)
        if set(want) <= set(found) and sum(found[name][1] for name in want) > 20:
            return done, place
    raise AssertionError(done.stderr)


# ---- what is found ----


def test_hot_functions_are_found(target, tmp_path):
    app = target(APPS / "attached", "busy")
    done, place = sampled(app, tmp_path, ["hot", "warm"], "-i", "2000")
    assert "Ctrl-C ends that" in done.stderr
    found = columns(done.stderr)
    assert found["hot"][0] > found["warm"][0] > 3  # 3 to 1
    assert found["be_busy"][1] > 95
    trace = Trace(only(place))
    assert check_trace(trace.path, strict=True) == []
    assert trace.other["end"] == "stopped" and trace.pid == app.pid and trace.metadata["argv"][-1] == "busy"
    assert {s.cat for s in trace.slices} == {"sample"}
    hot, outer = ([s for s in trace.slices if s.name == name] for name in ("hot", "be_busy"))
    assert all(any(o.start <= s.start and s.end <= o.end and o.track == s.track for o in outer) for s in hot)
    main = [s.name for s in trace.slices if s.track[1] == app.pid]
    assert "main" in main and "(waiting)" in main
    folded = only(place, "*.folded").read_text().splitlines()
    assert any(re.search(r";be_busy;hot \d+$", line) for line in folded)
    assert any(re.search(r"main;.*read;\(waiting\) \d+$", line) for line in folded)


def test_main_thread_that_has_ended(target, tmp_path):
    """Of its number /proc shows no memory any more; the others go on."""
    app = target(APPS / "attached", "headless")
    wait_until(lambda: "State:\tZ" in Path(f"/proc/{app.pid}/status").read_text())
    done, place = sampled(app, tmp_path, ["hot", "warm"])
    assert re.search(r"be_busy;hot \d+$", only(place, "*.folded").read_text(), re.M)
    assert Trace(only(place)).other["end"] == "stopped" and app.process.poll() is None


def perf_is_allowed():
    return os.geteuid() == 0 or int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) <= 2


def test_native_program_never_stands_still(target, tmp_path):
    app = target(APPS / "attached", "waits")
    done = attach(app.pid, "-i", "1000", "--duration", "500ms", cwd=tmp_path)
    assert done.returncode == 0
    other = Trace(only(tmp_path)).other
    assert not perf_is_allowed() or other["held"] == other["not_held"] == 0


def test_python_functions_are_found(target, tmp_path):
    app = target(sys.executable, python(tmp_path, SPIN))
    # nap is in the trace alone: the report has who ran, and innermost functions that waited
    done, place = sampled(app, tmp_path, ["spin (app.py:3)"])
    assert columns(done.stderr)["spin (app.py:3)"][1] > 60
    trace = Trace(only(place))
    assert check_trace(trace.path, strict=True) == []
    by_thread = {name: {s.name for s in trace.slices if any(x.name == name and x.track == s.track for x in trace.slices)}
                 for name in ("spin (app.py:3)", "nap (app.py:6)", "<module> (app.py:1)")}  # fmt: skip
    assert all(any(name.startswith("Thread._bootstrap ") for name in by_thread[f]) for f in list(by_thread)[:2])
    assert "(waiting)" in by_thread["nap (app.py:6)"] and "(waiting)" in by_thread["<module> (app.py:1)"]
    assert not any("_PyEval_EvalFrameDefault" in names for names in by_thread.values())
    assert trace.other["held"] > 0


def test_counters(target, tmp_path):
    app = target(APPS / "attached", "busy")
    assert attach(app.pid, "--duration", "1s", cwd=tmp_path).returncode == 0
    values = {}
    for event in Trace(only(tmp_path)).events:
        if event["ph"] == "C":
            values.setdefault(event["name"], []).append(event["args"]["value"])
    assert set(values) == {"cpu_percent", "resident_bytes", "threads"}
    assert max(values["cpu_percent"]) > 0.1 and set(values["threads"]) == {2} and min(values["resident_bytes"]) > 1e5


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ("--format perfetto", "*.pftrace"),
        ("--format kineto", "*.json"),
        ("--compress zstd", "*.json.zst"),
        ("--result-dir r", "r/attached.*/chrome_trace.json"),
    ],
)
def test_formats(target, tmp_path, options, pattern):
    app = target(APPS / "attached", "threads")
    done = attach(app.pid, "--duration", "300ms", *options.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert check_trace(only(tmp_path, pattern), strict=True) == []


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_report_as_table(target, tmp_path, form):
    app = target(APPS / "attached", "busy")
    sampled(app, tmp_path, ["hot"])  # it computes
    done = attach(app.pid, "--duration", "3s", "--report-format", form, "-o", f"rep.{form}", cwd=tmp_path)
    assert done.returncode == 0 and "hot" not in done.stderr
    text = (tmp_path / f"rep.{app.pid}.{form}").read_text()
    if form == "json":
        rows = json.loads(text)
        assert {row["report"] for row in rows} >= {"sampled_functions", "sampled_threads"}
        assert {"hot"} <= {row["name"] for row in rows if row.get("self_ns")}
    else:
        assert '"hot"' in text


@pytest.mark.long
def test_tools_read_it(target, tmp_path):
    app = target(APPS / "attached", "busy")
    assert attach(app.pid, "--duration", "500ms", cwd=tmp_path).returncode == 0
    trace = only(tmp_path)
    for words in (["xstrace-query", trace, "SELECT count(*) AS n FROM slices WHERE name = 'hot'"],
                  ["xstrace-report", "-o", tmp_path / "r.html", trace], ["xstrace-summary", trace]):  # fmt: skip
        done = subprocess.run([ROOT / "scripts" / words[0], *words[1:]], capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


# ---- no harm ----


@pytest.mark.parametrize("kind", ["waits", "threads", "forks", "execs"])
def test_many_times(target, tmp_path, kind):
    allow(SECONDS)
    app = target(APPS / "attached", kind)
    for i in range(CYCLES):
        done = attach(app.pid, "-i", "1000", "--duration", "30ms", "--output-dir-path", str(tmp_path / str(i % 10)))
        assert done.returncode == 0, done.stderr
    assert int(re.search(r"done: (\d+)", app.finish())[1]) > 5


PYTHON_WORK = """
import hashlib, os, select, socket, subprocess
want = hashlib.sha256(b"x" * 9999).digest()
def compute():
    while True:
        assert hashlib.sha256(b"x" * 9999).digest() == want
def talk():
    a, b = socket.socketpair()
    blob = os.urandom(300000)
    while True:
        sender = threading.Thread(target=a.sendall, args=(blob,))
        sender.start()
        got = b""
        while len(got) < len(blob):
            got += b.recv(65536)
        sender.join()
        assert got == blob
def run():
    while True:
        assert subprocess.run(["sh", "-c", "exit 7"]).returncode == 7
def wait():
    while True:
        begin = time.monotonic()
        select.select([], [], [], 0.002)
        assert time.monotonic() - begin >= 0.002
def fail(args):
    print("spoilt:", args.exc_value, flush=True)
threading.excepthook = fail
for f in (compute, talk, run, wait):
    threading.Thread(target=f, daemon=True).start()
"""


def test_many_times_python(target, tmp_path):
    allow(SECONDS)
    app = target(sys.executable, python(tmp_path, PYTHON_WORK))
    for i in range(CYCLES):
        done = attach(app.pid, "-i", "1000", "--duration", "30ms", "--output-dir-path", str(tmp_path / str(i % 10)))
        assert done.returncode == 0, done.stderr


def work_of(app, seconds):
    """What it has done for each tick of CPU time."""
    time.sleep(seconds)
    fields = Path(f"/proc/{app.pid}/stat").read_text().rpartition(")")[2].split()
    return int(re.search(r"done: (\d+)", app.finish())[1]) / (int(fields[11]) + int(fields[12]))


@pytest.mark.long
def test_program_is_as_fast_as_before(target, tmp_path):
    """Work for CPU time, with and without, in turn; pytest -s prints the shares."""
    shares = []
    for _ in range(3):
        alone = work_of(target(APPS / "attached", "sums"), 1)
        app = target(APPS / "attached", "sums")
        with attached(app.pid, cwd=tmp_path) as process:
            with_it = work_of(app, 1)
            assert process.wait(20) == 0
        shares.append(with_it / alone)
    print(f"\nwork per CPU time while it is sampled: {sorted(shares)} of what it is alone")
    assert sorted(shares)[1] > 0.6  # ticks are coarse, and the machine may be busy


def without(*calls):
    """A prefix: a sandbox that forbids these system calls."""
    return [sys.executable, "-c", DENY, ",".join(map(str, calls))]


def test_without_perf_threads_are_held(target, tmp_path):
    app = target(APPS / "attached", "busy")
    _, place = sampled(app, tmp_path, ["hot"], "-i", "2000", prefix=without(PERF_EVENT_OPEN))
    other = Trace(only(place)).other
    assert other["perf_samples"] == 0 and other["held"] > 0


STRICT = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A program whose own filter ends it if the kernel calls restart_syscall() for it. */
static void *waits(void *kind)
{
	struct timespec time = { 0, 300000 };

	for (;;) { /* seen while it runs, held when it waits again */
		kind ? (void)poll(NULL, 0, 1) : (void)nanosleep(&time, NULL);
		for (volatile int i = 0; i < 30000; i++)
			;
	}
}
int main(void)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, rows };
	pthread_t thread;
	char byte;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
		return 2;
	for (long i = 0; i < 12; i++)
		pthread_create(&thread, NULL, waits, (void *)(i & 1));
	puts("runs");
	fflush(stdout);
	read(0, &byte, 1);
	_exit(0);
}
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("prefix, duration", [((), "300ms"), (without(PERF_EVENT_OPEN), "1500ms")], ids=["perf", "held"])
def test_program_with_a_filter_of_its_own(target, tmp_path, prefix, duration):
    app = target(compile_c(tmp_path / "strict", STRICT))
    for length in (duration, duration, "50ms"):  # one that has ended cannot be sampled
        assert attach(app.pid, "-i", "500", "--duration", length, cwd=tmp_path, prefix=prefix).returncode == 0


def test_stopped_program_stays_stopped(target, tmp_path):
    app = target(APPS / "attached", "busy")
    os.kill(app.pid, signal.SIGSTOP)
    state = Path(f"/proc/{app.pid}/stat")
    wait_until(lambda: state.read_text().split()[2] == "T")
    assert attach(app.pid, "--duration", "200ms", cwd=tmp_path).returncode == 0
    assert state.read_text().split()[2] == "T"
    os.kill(app.pid, signal.SIGCONT)
    assert any(s.name == "(stopped)" for s in Trace(only(tmp_path)).slices)


# ---- how it ends ----


@contextlib.contextmanager
def attached(pid, *options, **more):
    """While it samples: the process of xstrace."""
    process = subprocess.Popen([XSTRACE, "--attach", str(pid), *options], stderr=subprocess.PIPE, text=True, **more)
    try:
        assert "is sampled" in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def looks_at(pid):
    """It has looked at least once: xstrace-stacks runs."""
    return wait_until(lambda: children(pid))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_it(target, tmp_path, number):
    app = target(APPS / "attached", "busy")
    with attached(app.pid, cwd=tmp_path) as process:
        wait_until(lambda: list(tmp_path.glob("*.json")))
        process.send_signal(number)
        assert process.wait(20) == 0
        assert "Timeline is stored" in process.stderr.read()
    assert check_trace(only(tmp_path), strict=True) == []


def takes_signals(pid):
    """It has become xstrace-attach, and its look is still to begin."""
    status = Path(f"/proc/{pid}/status").read_text()
    return "xstrace-attach" in status and int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16) & 1 << signal.SIGINT - 1


def test_ended_before_it_has_looked(target, tmp_path):
    """Then there is no trace, and a line says so."""
    app, none = target(APPS / "attached", "busy"), 0
    for turn in range(20):
        place = tmp_path / str(turn)
        place.mkdir()
        with subprocess.Popen([XSTRACE, "--attach", str(app.pid)], stderr=subprocess.PIPE, text=True, cwd=place) as process:
            while not takes_signals(process.pid):
                pass
            process.send_signal(signal.SIGINT)
            said, status = process.communicate(timeout=20)[1], process.returncode
        wrote = bool(list(place.iterdir()))
        assert status == (0 if wrote else 125) and (wrote or said.count("ended before a thread was looked at") == 1), (status, said)
        none += not wrote
        if none == 2:
            return
    pytest.fail("it has always looked before")


def test_stop_ends_it(target, tmp_path):
    app = target(APPS / "attached", "busy")
    name = f"attach-{os.getpid()}"
    with attached(app.pid, "--session", name, cwd=tmp_path) as process:
        wait_until(lambda: list(tmp_path.glob("*.json")))
        for command in ("--pause", "--resume"):
            assert subprocess.run([XSTRACE, command, name], capture_output=True, timeout=30, check=False).returncode == 0
        asked = subprocess.run([XSTRACE, "--stop", name], capture_output=True, text=True, timeout=30, check=False)
        assert (asked.returncode, asked.stderr) == (0, "") and "is stopped" in asked.stdout
        assert process.wait(20) == 0
    assert Trace(only(tmp_path)).other["end"] == "stopped"


def test_end_of_the_program_ends_it(target, tmp_path):
    app = target(APPS / "attached", "busy")
    with attached(app.pid, cwd=tmp_path) as process:
        wait_until(lambda: list(tmp_path.glob("*.json")))
        app.process.stdin.write("\n")
        app.process.stdin.flush()
        assert process.wait(20) == 0
    trace = Trace(only(tmp_path))
    assert trace.other["end"] in ("exited", "unknown") and trace.other.get("status", 0) == 0
    assert check_trace(trace.path, strict=True) == []


def test_killed_it_lets_go(target, tmp_path):
    app = target(sys.executable, python(tmp_path, SPIN))
    with attached(app.pid, "-i", "500", cwd=tmp_path) as process:
        (sampler,) = looks_at(process.pid)
        process.kill()
        process.wait(20)
        wait_until(lambda: not Path(f"/proc/{sampler}").exists())
    wait_until(lambda: re.search(r"TracerPid:\s*0\n", Path(f"/proc/{app.pid}/status").read_text()))
    wait_until(lambda: Path(f"/proc/{app.pid}/stat").read_text().rpartition(")")[2].split()[0] in "RS")


def test_stopped_it_harms_nobody(target, tmp_path):
    """Ctrl-Z: what it prints finds no reader, and no thread is held meanwhile."""
    app = target(sys.executable, python(tmp_path, SPIN))
    with attached(app.pid, "-i", "500", cwd=tmp_path) as process:
        wait_until(lambda: list(tmp_path.glob("*.json")))
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        tasks = [Path(f"/proc/{app.pid}/task/{tid}/stat") for tid in os.listdir(f"/proc/{app.pid}/task")]
        wait_until(lambda: all(path.read_text().rpartition(")")[2].split()[0] in "RS" for path in tasks))
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert check_trace(only(tmp_path), strict=True) == []


def test_two_at_once(target, tmp_path):
    app = target(sys.executable, python(tmp_path, SPIN))
    with attached(app.pid, "-i", "500", cwd=tmp_path) as first:
        done = attach(app.pid, "-i", "500", "--duration", "1s", cwd=tmp_path)
        first.send_signal(signal.SIGINT)
        assert first.wait(20) == 0
    assert done.returncode == 0 or "traces it already" in done.stderr
    assert all(check_trace(path, strict=True) == [] for path in tmp_path.glob("*.json"))


def test_few_descriptors(target, tmp_path):
    app = target(sys.executable, python(tmp_path, SPIN))
    sampled(app, tmp_path, ["spin (app.py:3)"], prefix=["prlimit", "--nofile=40:40"])


def test_sampler_that_dies_is_replaced(target, tmp_path):
    app = target(APPS / "attached", "busy")
    with attached(app.pid, cwd=tmp_path) as process:
        (first,) = looks_at(process.pid)
        wait_until(lambda: list(tmp_path.glob("*.json")))
        os.kill(int(first), signal.SIGSEGV)
        wait_until(lambda: children(process.pid) not in ([], [first]))
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert "signal 11 has ended the program that looks" in process.stderr.read()
    assert check_trace(only(tmp_path), strict=True) == []


# ---- who is refused ----


def refused(pid, *options, **more):
    done = attach(pid, *options, **more)
    assert done.returncode == 125 and done.stderr.count("\n") <= 2, done
    return done.stderr


def test_refused_pids(tmp_path):
    assert "there is no such process" in refused(4194303, cwd=tmp_path)
    shell = f"exec {XSTRACE} --attach $$"
    own = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert own.returncode == 125 and "that is xstrace itself" in own.stderr
    zombie = subprocess.Popen(["true"])
    wait_until(lambda: Path(f"/proc/{zombie.pid}/stat").read_text().split()[2] == "Z")
    assert "it has ended" in refused(zombie.pid, cwd=tmp_path)
    zombie.wait()
    for words in ("0", "-1", "x", "1x", "99999999", ""):
        assert "--attach takes" in refused(words, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_kernel_thread_is_refused(tmp_path):
    if not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text() != "kthreadd\n":
        pytest.skip("no threads of the kernel are seen here")
    assert "a thread of the kernel" in refused(2, cwd=tmp_path)


def test_thread_is_refused(target, tmp_path):
    app = target(APPS / "attached", "busy")
    (tid,) = {int(tid) for tid in os.listdir(f"/proc/{app.pid}/task")} - {app.pid}
    assert f"a thread of process {app.pid}: xstrace --attach {app.pid}" in refused(tid, cwd=tmp_path)


def test_traced_is_refused(target, tmp_path):
    app = target(APPS / "attached", "busy")
    with subprocess.Popen(["strace", "-o", tmp_path / "strace", "-p", str(app.pid)], stderr=subprocess.DEVNULL) as strace:
        wait_until(lambda: f"TracerPid:\t{strace.pid}\n" in Path(f"/proc/{app.pid}/status").read_text())
        assert f"process {strace.pid} (strace) traces it already" in refused(app.pid, cwd=tmp_path)
        strace.terminate()


def test_ours_is_refused(xstrace, tmp_path):
    run = xstrace.start("--chrome-itt-logging", "stuck", ["threads", 1], stdin=subprocess.PIPE)
    run.wait_for_output()
    pids = [pid for pid in children(run.process.pid) if Path(f"/proc/{pid}/comm").read_text() == "stuck\n"]
    assert "xstrace traces it already: xstrace --top" in refused(pids[0], cwd=tmp_path)
    run.process.stdin.close()
    run.finish()


@root_only
def test_others_are_refused(target, public):
    app = target(APPS / "attached", "busy")
    done = attach(app.pid, prefix=["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"], cwd=public)
    assert done.returncode == 125 and re.search(r"another user's|does not allow|forbids", done.stderr), done
    assert len(done.stderr.splitlines()) == 1, done.stderr  # and not that it is sampled
    assert list(public.iterdir()) == []


@root_only
def test_own_of_no_rights(public):
    """A user without rights samples a program of his own."""
    words = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    (public / "attached").write_bytes((APPS / "attached").read_bytes())
    (public / "attached").chmod(0o755)
    app = Target(*words, str(public / "attached"), "busy")
    try:
        sampled(app, public, ["hot"], prefix=words)
    finally:
        app.finish()


def test_sandbox_that_forbids_all(target, tmp_path):
    app = target(sys.executable, python(tmp_path, SPIN))
    out = tmp_path / "out"
    out.mkdir()
    text = refused(app.pid, cwd=out, prefix=without(PTRACE, PERF_EVENT_OPEN))
    assert "a sandbox forbids ptrace()" in text and list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("-h", "needs xstrace to start it"),
        ("--chrome-call-logging", "needs xstrace to start it"),
        ("--delay 1s", "begins at once"),
        ("-i 499", "2000 times a second at most"),
        ("--flight-recorder 1s", "begins at once"),
        ("./app", "takes no application"),
        ("--top", "give one of"),
    ],
)
def test_options_that_do_not_fit(tmp_path, options, why):
    assert why in refused(os.getpid(), *options.split(), cwd=tmp_path)


# ---- odd programs ----


def test_static_program(target, tmp_path):
    cc = ["cc", "-static", "-O2", "-w", "-D_GNU_SOURCE", "-pthread", "-o", tmp_path / "static", ROOT / "tests/apps/attached.c"]
    if subprocess.run(cc, capture_output=True, check=False).returncode:
        pytest.skip("no static C library")
    app = target(tmp_path / "static", "busy")
    # without a table of call frame information there is the innermost function alone
    sampled(app, tmp_path, ["hot", "warm"])


def test_32_bit_program(tmp_path):
    source = tmp_path / "a.c"
    source.write_text('int main(void) { for (;;) __asm__ volatile("pause"); }')
    if subprocess.run(["cc", "-m32", "-static", "-o", tmp_path / "a", source], capture_output=True, check=False).returncode:
        pytest.skip("no C library of 32 bits")
    with subprocess.Popen([tmp_path / "a"]) as app:
        try:
            wait_until(lambda: Path(f"/proc/{app.pid}/exe").resolve() == (tmp_path / "a").resolve())
            assert "a 32-bit program" in refused(app.pid, cwd=tmp_path)
        finally:
            app.kill()


@root_only
def test_pid_namespace(target, tmp_path):
    """Its threads have other numbers there, by which Python knows them."""
    outer = target("unshare", "-p", "-f", sys.executable, python(tmp_path, SPIN))
    (pid,) = children(outer.pid)
    outer.pid = int(pid)
    sampled(outer, tmp_path, ["spin (app.py:3)"])


@root_only
def test_proc_of_another_namespace_is_refused(tmp_path):
    """The process of that number in /proc is not the one that this namespace calls so."""
    assert "shows another PID namespace" in refused(os.getpid(), cwd=tmp_path, prefix=("unshare", "-p", "-f"))


HOSTILE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

void spin(void) __asm__("\"a;b<script>\"");
void spin(void) { for (volatile unsigned long i = 0;; i++) ; }
static void *go(void *arg)
{
	prctl(PR_SET_NAME, "e\x1b[1m\n\"<x>;");
	spin();
	return arg;
}
int main(void)
{
	pthread_t thread;
	char byte;

	prctl(PR_SET_NAME, "../\x1b[2J\"x\n;");
	pthread_create(&thread, NULL, go, NULL);
	puts("runs");
	fflush(stdout);
	read(0, &byte, 1);
	_exit(0);
}
"""


def test_hostile_names(target, tmp_path):
    (tmp_path / "out").mkdir()
    app = target(compile_c(tmp_path / "hostile", HOSTILE))
    done = attach(app.pid, "--duration", "400ms", cwd=tmp_path / "out")
    assert done.returncode == 0 and "\x1b" not in done.stderr
    trace = Trace(only(tmp_path / "out"))
    assert check_trace(trace.path, strict=True) == []
    folded = only(tmp_path / "out", "*.folded").read_text()
    assert "\x1b" not in folded and all(re.fullmatch(r".* \d+", line) for line in folded.splitlines())


def test_many_threads(target, tmp_path):
    text = """
def wait():
    threading.Event().wait()
threading.stack_size(65536)
for _ in range(500):
    threading.Thread(target=wait, daemon=True).start()
"""
    app = target(sys.executable, python(tmp_path, text))
    done = attach(app.pid, "--duration", "1s", cwd=tmp_path)
    assert done.returncode == 0
    trace = Trace(only(tmp_path))
    assert sum(s.name == "wait (app.py:3)" for s in trace.slices) >= 495
    own = float(re.search(r"looking took ([0-9.]+) % of a processor", done.stderr)[1])
    assert own < 50  # with the first look, which reads everything


@root_only
def test_full_disk(target, tmp_path):
    app = target(APPS / "attached", "waits")
    place = tmp_path / "small"
    place.mkdir()
    with mounted(place, "size=32k"):
        done = attach(app.pid, "-i", "500", "--duration", "2s", cwd=place)
        assert done.returncode == 0 and "No space left on device" in done.stderr
        assert check_trace(only(place), strict=False) == []


def test_what_is_not_recorded_is_said(target, tmp_path):
    library = compile_c(tmp_path / "libcuda.so.1", "int cuInit(int x) { return x; }", "-shared", "-fPIC")
    text = f"import ctypes\nctypes.CDLL({str(library)!r})\n"
    app = target(sys.executable, python(tmp_path, text))
    done = attach(app.pid, "--duration", "100ms", cwd=tmp_path)
    assert "not recorded: what the program does with CUDA." in done.stderr


MAPS_AND_SPINS = """
import ctypes, os
library = ctypes.CDLL(sys.argv[1])
os.unlink(sys.argv[1])
threading.Thread(target=library.spin, daemon=True).start()
"""


def test_what_is_no_file_is_not_opened(target, tmp_path):
    """What has the name of a file that a program has mapped may be anything by then, and opening it may do something: a pipe's writer goes on."""
    library = compile_c(tmp_path / "spin.so", 'void spin(void) { for (;;) __asm__ volatile(""); }', "-shared", "-fPIC")
    one = target(sys.executable, python(tmp_path, MAPS_AND_SPINS), library)
    pipe = f"{library} (deleted)"  # so the kernel shows it
    os.mkfifo(pipe)
    writer = threading.Thread(target=os.open, args=(pipe, os.O_WRONLY), daemon=True)
    writer.start()
    done = attach(one.pid, "--duration", "300ms", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert writer.is_alive()
    os.close(os.open(pipe, os.O_RDONLY))
