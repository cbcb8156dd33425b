"""Where threads are: --stacks, --watchdog, --stacks-on-crash. Programs go on, and end, as without."""

import os
import platform
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, BUILD, NOBODY, XSTRACE, alive, compile_c, copy_build, root_only, wait_until

ITT = "--chrome-itt-logging"
pytestmark = pytest.mark.skipif(not (BUILD / "stacks/xstrace-stacks").exists(), reason="built without libunwind")


def stacks(name, timeout=30, **more):
    """What --stacks prints."""
    asked = subprocess.run([XSTRACE, "--stacks", name], capture_output=True, text=True, timeout=timeout, **more)
    assert (asked.returncode, asked.stderr) == (0, "")
    return asked.stdout


def still(text):
    """ms for which each process stood still."""
    return [float(ms) for ms in re.findall(r"stood still for ([0-9.]+) ms", text)]


def groups(text):
    """[(threads, the functions of their stack, innermost first)]"""
    found = []
    for line in text.splitlines():
        line = line.removeprefix("[INFO] ")
        if head := re.match(r"  (\d+) threads?, ", line):
            found.append((int(head[1]), []))
        elif frame := re.match(r"    #\d+ +(.+?)(\+0x[0-9a-f]+)?( \([^()]+\))?$", line):
            found[-1][1].append(frame[1])
    return found


class Stuck:
    """A program that waits until its stdin ends."""

    def __init__(self, xstrace, options, *args, app="stuck", said="ready", **more):
        self.name = f"stuck-{os.getpid()}-{time.monotonic_ns()}"
        self.run = xstrace.start(f"--session {self.name} {options}", app, args, stdin=subprocess.PIPE, **more)
        self.run.wait_for_output(said)

    def stacks(self):
        return stacks(self.name)

    def finish(self, status=0):
        self.run.process.stdin.close()
        run = self.run.finish()
        assert (run.status, run.err) == (status, "")
        return run


# ---- --stacks ----


@pytest.mark.parametrize("form", ["chrome", "perfetto"])
def test_64_threads_at_known_places(xstrace, form):
    stuck = Stuck(xstrace, f"{ITT} --format {form}", "threads", 63)
    text = stuck.stacks()
    (ms,) = still(text)
    print(f"64 threads stood still for {ms} ms")
    assert ms <= 200
    found = groups(text)
    assert sum(count for count, _ in found) == 64
    for n in range(4):  # 63 threads in four functions
        assert sum(count for count, frames in found if f"hold_{n}" in frames) == (15 if n == 3 else 16)
    assert all({"hold", "start_thread"} <= set(frames) for _, frames in found if any(f.startswith("hold_") for f in frames))
    assert len(found) <= 5  # the same frames once
    run = stuck.finish()
    here = [event for event in run.trace.events if event["ph"] in "iI" and event["name"] == "thread is here"]
    assert len({event["tid"] for event in here}) == len(here) == 64
    held = [event["args"]["stack"] for event in here if any("hold_1" in frame for frame in event["args"]["stack"])]
    assert len(held) == 16 and all("start_thread" in stack[1] for stack in held)  # outermost first


def test_a_main_thread_that_has_ended(xstrace):
    stuck = Stuck(xstrace, ITT, "headless", app="attached", said="runs")
    status = Path(f"/proc/{stuck.run.child('attached')}/status")
    wait_until(lambda: "State:\tZ" in status.read_text())
    places = [frames for _, frames in groups(stuck.stacks())]
    assert any("be_busy" in frames for frames in places) and any("wait_for_the_end" in frames for frames in places)
    stuck.run.process.stdin.close()
    assert stuck.run.finish().status == 0


def test_stacks_are_in_the_dumps_of_the_flight_recorder(xstrace):
    stuck = Stuck(xstrace, f"{ITT} --flight-recorder 60s", "threads", 7)
    stuck.stacks()
    stuck.stacks()
    os.kill(stuck.run.pid, signal.SIGUSR1)
    wait_until(lambda: "Timeline" in (stuck.run.log / "stderr").read_text())
    run = stuck.finish()
    here = [event for event in run.traces[0].events if event["ph"] in "iI" and event["name"] == "thread is here"]
    assert len(here) == 16 and len({event["tid"] for event in here}) == 8
    assert any("hold_1" in frame for event in here for frame in event["args"]["stack"])


def test_system_calls_go_on(xstrace):
    """What a call returns is what it returns without; docs/STACKS.md lists those that do not go on."""
    bare = xstrace.bare("stuck", ["calls"])
    name = f"calls-{os.getpid()}"
    run = xstrace.start(f"--session {name} {ITT}", "stuck", ["calls"])
    run.wait_for_output()
    for _ in range(3):
        assert groups(stacks(name))
    run.finish()
    differ = set(run.out.splitlines()) - set(bare.out.splitlines())
    assert run.status == 0 and differ <= {f"{call}: -1 EINTR early" for call in ("epoll_wait", "recv_timeout", "semtimedop", "sigtimedwait")}
    assert "nanosleep: 0 0" in run.out and "poll: 0 0" in run.out and "read: 1 0" in run.out


@pytest.mark.long
def test_threads_that_come_and_go(xstrace):
    name = f"churn-{os.getpid()}"
    run = xstrace.start(f"--session {name} {ITT}", "stuck", ["churn", 3])
    run.wait_for_output()
    end = time.monotonic() + 2
    looks = 0
    while time.monotonic() < end:
        text = stacks(name)
        # clone3() says of itself that nothing called it
        assert any({"main", "__clone3"} & set(frames) for _, frames in groups(text)), text
        assert "did not stop" not in text
        looks += 1
    assert looks > 5
    run.finish().check_expected()
    assert (run.status, run.err) == (0, "")


def test_a_thread_that_does_not_stop(xstrace):
    """A parent in vfork() is in the kernel until its child has ended; the run does not wait."""
    name = f"vfork-{os.getpid()}"
    run = xstrace.start(f"--session {name} {ITT}", "stuck", ["vfork", 4])
    run.wait_for_output()
    time.sleep(0.3)
    text = stacks(name)
    assert "did not stop in time" in text and still(text)[0] < 1000
    run.finish()
    assert (run.status, run.err) == (0, "") and run.out.endswith("over\n") and run.seconds < 10


VFORKS = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int deep(int n)
{
	volatile char room[256];

	room[0] = n;
	return n ? deep(n - 1) + room[0] : pause();
}

static void *thread(void *number) { return (void *)(long)deep(110 + (long)number % 10); }

int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	pthread_attr_t small;
	pthread_t id;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 131072);
	for (long i = 0; i < 1500; i++)
		pthread_create(&id, &small, thread, (void *)i);
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("t"));
	puts("ready");
	fflush(stdout);
	if (!vfork()) {
		char byte;

		read(0, &byte, 1);
		_exit(0);
	}
}
"""


def number_in_status(pid, key):
    return int(re.search(rf"{key}:\t(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def test_who_did_not_stop_is_let_go_with_the_others(xstrace):
    """And not only when who looks has gone through all frames."""
    stuck = Stuck(xstrace, ITT, app=compile_c(xstrace.home / "vforks", VFORKS, "-O0"))
    pid = stuck.run.child("vforks")
    asks = subprocess.Popen([XSTRACE, "--stacks", stuck.name], stdout=subprocess.PIPE, text=True)
    tracer = wait_until(lambda: number_in_status(pid, "TracerPid"))  # a thread
    looks = number_in_status(tracer, "Tgid")
    wait_until(lambda: not number_in_status(pid, "TracerPid"))
    goes_on = alive(looks)
    assert "did not stop in time" in asks.communicate()[0] and goes_on
    stuck.finish()


def test_exec_meanwhile(xstrace):
    name = f"exec-{os.getpid()}"
    run = xstrace.start(f"--session {name} {ITT}", "stuck", ["exec", 3])
    run.wait_for_output()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        stacks(name)
    run.finish()
    assert (run.status, run.err, run.out) == (0, "", "ready\nover\n")


def test_a_stopped_program_stays_stopped(xstrace):
    stuck = Stuck(xstrace, ITT, "threads", 3)
    pid = stuck.run.child("stuck")

    def state():
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state() == "T")
    text = stuck.stacks()
    assert sum(count for count, _ in groups(text)) == 4 and ", stopped:" in text
    assert state() == "T"
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: state() == "S")
    stuck.finish()


def test_who_is_traced_already(xstrace):
    stuck = Stuck(xstrace, ITT, "threads", 3)
    pid = stuck.run.child("stuck")
    strace = shutil.which("strace") or pytest.skip("no strace")
    tracer = subprocess.Popen([strace, "-f", "-o", "/dev/null", "-p", str(pid)], stderr=subprocess.DEVNULL)
    wait_until(lambda: f"TracerPid:\t{tracer.pid}" in Path(f"/proc/{pid}/status").read_text())
    text = stuck.stacks()
    assert re.search(rf"cannot be seen: process {tracer.pid} traces it already", text) and len(text.splitlines()) == 1
    tracer.terminate()
    tracer.wait()
    stuck.finish()


def test_spoilt_stacks(xstrace):
    """Registers and stacks that lead nowhere: what is known is told, and nothing ends."""
    stuck = Stuck(xstrace, ITT, "spoilt")
    for _ in range(2):
        text = stuck.stacks()
        found = groups(text)
        assert sum(count for count, _ in found) == 31 and still(text)[0] <= 200
        assert any("run_spoilt" in frames or "main" in frames for _, frames in found)
        assert all(len(frames) <= 128 for _, frames in found)
        assert not [frame for _, frames in found for frame in frames[1:] if frame.startswith("0x")]
    stuck.finish()


def test_python_between_native_frames(xstrace):
    code = xstrace.home / "waits.py"
    code.write_text(
        "import sys, threading\nevent = threading.Event()\n"
        "def deeper(n):\n    return deeper(n - 1) if n else event.wait()\n"
        "def called_by_c():\n    sorted([1], key=lambda x: deeper(2))\n"
        "threading.Thread(target=called_by_c, daemon=True).start()\n"
        "print('ready', flush=True)\nsys.stdin.read()\n"
    )
    python = shutil.which("python3", path="/usr/bin") or "python3"
    stuck = Stuck(xstrace, ITT, code, app=python)
    found = next(frames for _, frames in groups(stuck.stacks()) if any("deeper" in frame for frame in frames))
    stuck.finish()
    named = [frame.split(" ")[0] for frame in found]
    assert named.count("deeper") == 3 and "_PyEval_EvalFrameDefault" not in named
    at = [named.index(n) for n in ("Event.wait", "deeper", "called_by_c.<locals>.<lambda>", "called_by_c", "start_thread")] if "called_by_c.<locals>.<lambda>" in named else [
        named.index(n) for n in ("wait", "deeper", "<lambda>", "called_by_c", "start_thread")
    ]
    assert at == sorted(at)


def test_many_processes_and_a_zombie(xstrace):
    name = f"many-{os.getpid()}"
    app = str(BUILD / "tests/apps/stuck")
    script = f"for i in 1 2 3; do {app} silent 2 & done; sleep 1 & echo ready; wait"
    run = xstrace.start(f"--session {name} {ITT}", "bash", ["-c", script])
    run.wait_for_output()
    wait_until(lambda: stacks(name).count(" (stuck): 1 thread;") == 3, 3)
    run.finish()
    assert run.status == 0


def test_the_drain_process_dies_meanwhile(xstrace):
    """The kernel lets the threads go."""
    stuck = Stuck(xstrace, ITT, "threads", 40)
    asked = subprocess.Popen([XSTRACE, "--stacks", stuck.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.kill(stuck.run.drain, signal.SIGKILL)
    asked.communicate(timeout=30)
    pid = stuck.run.child("stuck")
    stuck.run.process.stdin.close()
    wait_until(lambda: not alive(pid))
    stuck.run.wait()
    assert stuck.run.status == 0
    subprocess.run([XSTRACE, "--recover", stuck.run.dir], check=True, capture_output=True)
    stuck.run.collect()


@root_only
def test_who_may_not(public):
    """One line says what forbids it; the program, and the run, go on."""
    user = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv")
    launcher = copy_build(public)
    (public / "stacks").mkdir()
    shutil.copy(BUILD / "stacks/xstrace-stacks", public / "stacks")
    app = shutil.copy(BUILD / "tests/apps/stuck", public)
    name = f"guard-{os.getpid()}"
    command = [*user, launcher, "--session", name, ITT, app, "guard"]
    run = subprocess.Popen(command, cwd=public, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    asked = subprocess.run([*user, launcher, "--stacks", name], capture_output=True, text=True, cwd=public)
    err = run.communicate()[1]
    assert re.fullmatch(r"Process \d+ \(stuck\): its threads cannot be seen: it forbids that itself \(PR_SET_DUMPABLE 0\).*\n", asked.stdout)
    assert run.returncode == 0 and all(line.startswith("[INFO] Timeline is stored") for line in err.splitlines())


@root_only
def test_yama_is_told_who_looks(xstrace):
    """With ptrace_scope 1 each process names the drain process, with any other none does."""
    strace = shutil.which("strace") or pytest.skip("no strace")
    for scope, session, named in [("1", True, True), ("1", False, False), ("0", True, False)]:
        options = f"--session yama-{os.getpid()} {ITT}" if session else ITT
        log = xstrace.home / f"strace{scope}{session}"
        fake = xstrace.home / f"kernel{scope}{session}"
        (fake / "yama").mkdir(parents=True)
        (fake / "yama/ptrace_scope").write_text(scope + "\n")
        command = f'mount --bind {fake} /proc/sys/kernel && exec {XSTRACE} {options} {strace} -qq -f -e trace=prctl -o {log} {BUILD / "tests/apps/stuck"} silent 0'
        done = subprocess.run(["unshare", "-m", "bash", "-c", command], cwd=xstrace.cwd, capture_output=True, text=True)
        if "mount" in done.stderr:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        assert ("PR_SET_PTRACER" in log.read_text()) == named, (scope, session)


def test_no_such_session():
    asked = subprocess.run([XSTRACE, "--stacks", "nobody-has-this"], capture_output=True, text=True)
    assert asked.returncode == 125 and asked.stdout == "" and asked.stderr.startswith("xstrace: there is no session nobody-has-this")


# ---- --watchdog ----


def test_watchdog_once_for_each_stall(xstrace):
    run = xstrace(f"--watchdog 1 {ITT}", "stuck", ["silent", 3])
    assert run.status == 0
    told = [line for line in run.said if "has recorded nothing for" in line]
    assert len(told) == 2 and all(line.startswith("[WARNING] ") for line in told)
    assert sum("sleep_ms" in line or "nanosleep" in line for line in run.said) >= 2
    here = [event for event in run.trace.events if event["name"] == "thread is here"]
    assert len(here) == 2


def test_watchdog_is_silent_while_something_is_recorded(xstrace):
    run = xstrace(f"--watchdog 2 {ITT}", "stuck", ["churn", 3])
    assert run.status == 0 and not [line for line in run.said if "recorded nothing" in line]


def test_watchdog_knows_pauses_and_stopped_programs(xstrace):
    name = f"dog-{os.getpid()}"
    run = xstrace.start(f"--session {name} --watchdog 1 {ITT}", "stuck", ["threads", 1], stdin=subprocess.PIPE)
    run.wait_for_output()
    subprocess.run([XSTRACE, "--pause", name], check=True, capture_output=True)
    time.sleep(2.2)
    run.process.stdin.close()
    run.finish()
    assert run.status == 0 and not [line for line in run.said if "recorded nothing" in line]


# ---- --stacks-on-crash ----


@pytest.mark.parametrize(
    ("how", "number", "functions"),
    [
        ("segv", signal.SIGSEGV, ["fault", "run_crash"]),
        ("abort", signal.SIGABRT, ["abort", "run_crash"]),
        ("raise", signal.SIGFPE, ["raise", "run_crash"]),
        ("overflow", signal.SIGSEGV, None),
        ("ignored", 0, None),
        ("own", 0, None),
    ],
)
def test_crashes(xstrace, how, number, functions):
    """Status and output are those of the bare program; a handler of its own is called, and none of ours is seen."""
    bare = xstrace.bare("stuck", ["crash", how])
    run = xstrace(f"--stacks-on-crash {ITT}", "stuck", ["crash", how])
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)
    assert run.status == (-number or bare.status) and "old 1\nsignal 1\n" in run.out
    told = [line for line in run.said if "is about to end a process" in line]
    if functions is None:
        assert not told
        return
    assert told and f"Signal {int(number)} " in told[0]
    found = groups("\n".join(run.said))
    crashed = next(frames for _, frames in found if "xs_companion_crash" in frames)
    inner = crashed[crashed.index("__restore_rt") + 1 :]
    assert [frame.removesuffix(".cold") for frame in inner if frame.removesuffix(".cold") in functions] == functions
    assert any("hold_2" in frames for _, frames in found)  # the other thread
    here = [event for event in run.trace.events if event["name"] == "thread is here"]
    assert len(here) == 2


CRASHER = r"""
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static void jump(int number) { siglongjmp(back, number); }
sighandler_t __sysv_signal(int, sighandler_t), bsd_signal(int, sighandler_t);
int __sigaction(int, const struct sigaction *, struct sigaction *);

static int *volatile nowhere;

static volatile int aborts;

/* As soon as the first thread blocks signals: it is in a handler. */
static void *crash_second(void *unused)
{
	char text[4096];

	while (!aborts)
		;
	for (;;) {
		FILE *file = fopen("/proc/self/status", "r");

		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
		if (strstr(text, "SigBlk:\tfffffff")) {
			usleep(500); /* its first instructions may wait for a processor */
			*nowhere = 1;
		}
	}
}

int main(int count, char **arguments)
{
	const char *how = arguments[1];
	sighandler_t (*const set[])(int, sighandler_t) = { __sysv_signal, bsd_signal, ssignal, sysv_signal, sigset };
	struct sigaction old;

	if (!strcmp(how, "jump") && !sigsetjmp(back, 1)) {
		signal(SIGALRM, jump);
		setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 1000 }, { 0, 1000 } }, NULL);
		abort();
	} else if (!strcmp(how, "jump")) {
		return 0;
	} else if (!strcmp(how, "small")) { /* a signal stack without room for a frame of the kernel's */
		sigaltstack(&(stack_t){ .ss_sp = malloc(2048), .ss_size = 2048 }, NULL);
		abort();
	} else if (!strcmp(how, "sent")) { /* also where a sandbox forbids to say who sent a signal */
		kill(getpid(), SIGABRT);
		return 3;
	} else if (!strcmp(how, "second")) { /* a thread crashes while another one does */
		pthread_create(&(pthread_t){ 0 }, NULL, crash_second, NULL);
		aborts = 1;
		kill(getpid(), SIGABRT);
	} else if (!strcmp(how, "strict")) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	} else if (!strcmp(how, "refused")) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
	} else {
		for (int i = 0; i < 5; i++)
			printf("%d", set[i](SIGBUS, SIG_IGN) == SIG_DFL && set[i](SIGBUS, SIG_DFL) == SIG_IGN);
		printf(" %d", !__sigaction(SIGBUS, NULL, &old) && old.sa_handler == SIG_DFL);
		printf(" %x", old.sa_flags);
		old = (struct sigaction){ .sa_handler = SIG_DFL, .sa_flags = SA_RESTART | SA_NODEFER };
		sigaddset(&old.sa_mask, SIGUSR1);
		sigaction(SIGBUS, &old, NULL);
		sigaction(SIGBUS, NULL, &old);
		printf(" %x %d\n", old.sa_flags, sigismember(&old.sa_mask, SIGUSR1));
		fflush(stdout);
		raise(SIGBUS);
	}
	*nowhere = 1;
}
"""


@pytest.mark.parametrize(
    ("how", "number", "told"),
    [
        ("jump", signal.SIGABRT, True),
        ("small", signal.SIGABRT, True),
        ("strict", signal.SIGSEGV, False),
        ("refused", signal.SIGSEGV, True),
        ("names", signal.SIGBUS, True),
    ],
)
def test_unlucky_crashes(xstrace, how, number, told):
    """Nobody survives because of us: not by another handler meanwhile; nor does the signal become another one."""
    program = compile_c(xstrace.home / "crasher", CRASHER)
    bare = xstrace.bare(program, [how])
    run = xstrace(f"--stacks-on-crash {ITT}", program, [how])
    assert (run.status, run.out) == (bare.status, bare.out) and bare.status == -number
    assert any("is about to end a process" in line for line in run.said) == told


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of a system call")
def test_a_crash_where_nobody_may_say_who_has_sent_a_signal(xstrace):
    """A sandbox around all of it refuses rt_tgsigqueueinfo(): the program ends by the signal all the same."""
    program = compile_c(xstrace.home / "crasher", CRASHER)
    run = xstrace(f"--stacks-on-crash {ITT}", program, ["sent"], prefix=[APPS / "refuse", "297"])
    assert (run.status, run.out) == (-signal.SIGABRT, "")
    assert any("is about to end a process" in line for line in run.said)


def test_the_first_crash_ends_the_program(xstrace):
    """Another thread's, which comes while stacks are being looked at, does not, and nobody looks for it."""
    program = compile_c(xstrace.home / "crasher", CRASHER)
    for _ in range(6):
        run = xstrace(f"--stacks-on-crash {ITT}", program, ["second"])
        assert run.status == -signal.SIGABRT
        assert len([line for line in run.said if "about to end" in line]) == 1


def test_no_handler_without_the_option(xstrace):
    run = xstrace(ITT, "stuck", ["crash", "segv"])
    assert run.status == -signal.SIGSEGV and not [line for line in run.said if "about to end" in line]


def test_a_crash_does_not_wait_for_a_dead_drain_process(xstrace):
    program = compile_c(
        xstrace.home / "late",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) { puts(\"ready\"); fflush(stdout); getchar(); abort(); }\n",
    )
    xstrace.left_behind = True
    run = xstrace.start(f"--stacks-on-crash {ITT}", program, stdin=subprocess.PIPE)
    run.wait_for_output()
    os.kill(run.drain, signal.SIGKILL)
    begin = time.monotonic()
    run.process.stdin.close()
    run.wait()
    assert run.status == -signal.SIGABRT and time.monotonic() - begin < 8
