"""Whatever runs under xstrace runs as it would without: results, environment, signals, limits."""

import contextlib
import os
import pty
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import APPS, VARIABLES, XSTRACE, Trace, compile_c, copy_build, limited, wait_until
from test_endings import end_daemon

ITT = "--chrome-itt-logging"
ALL = f"{ITT} --chrome-call-logging --chrome-kernel-logging -h -d"
# a shell between us and the program: then both have the same relation to their parents
SHELL = ("sh", "-c", '"$@"; exit $?', "sh")


def same(bare, run):
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)


# ---- the same results ----


@pytest.mark.parametrize(
    "app, args",
    [
        ("true", []),
        ("false", []),
        ("sh", ["-c", "exit 200"]),
        ("sh", ["-c", "echo out; echo err >&2; kill -TERM $$"]),
        ("sh", ["-c", "kill -KILL $$"]),
        ("sh", ["-c", "sh -c 'exit 3' | cat; (exit 4) & wait $!"]),
        ("echo", ["--help", "-x", "", "a b", "--", "\n"]),
        ("cat", ["/proc/self/comm", "/nonexistent"]),
        ("bash", ["-c", "ulimit -a; trap; jobs; umask; echo $0 $# $@", "a", "b"]),
        ("env", ["-i", "/usr/bin/env"]),
        ("python3", ["-c", "import sys; print(sys.argv, sys.flags); sys.exit(5)", "-x"]),
        ("perl", ["-e", "print sort map {qq($_\\n)} keys %INC; die qq(oops\\n)"]),
        ("find", ["/etc/apt", "-name", "*.list"]),
        ("cl_matrix", ["--queue", "several", "--events", "callbacks"]),
        ("cl_matrix", ["--no-profiling", "--create", "null"]),
        ("cl_dlopen", []),
        ("gemm", ["128", "2"]),
        ("itt_end", ["abort"]),
        ("closer", []),
        ("closer", ["late"]),
        ("chdirer", []),
        ("limits", ["4", "64", "256"]),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else value,
)
def test_same_results(xstrace, app, args):
    bare = xstrace.bare(app, args)
    run = xstrace("--chrome-call-logging --chrome-kernel-logging " + ITT, app, args)
    hide = re.compile(r"process: \d+")
    bare.out, run.out = hide.sub("", bare.out), hide.sub("", run.out)
    same(bare, run)


def probe(xstrace, options=ALL, env=None, **popen):
    """env_probe's lines, bare and traced: (facts, variables) of each."""
    results = []
    for traced in (False, True):
        xstrace.home.joinpath("shared").mkdir(exist_ok=True)
        files = {}
        for stream in ("stdout", "stderr"):  # of the same names: the program prints them
            if stream not in popen:
                files[stream] = (xstrace.home / "shared" / stream).open("w+")
        call = xstrace if traced else xstrace.bare
        first = [options] if traced else []
        more = {"prefix": SHELL, "env": env, "process_group": None, **files, **popen}
        run = call(*first, "env_probe", ["one", "two three"], **more)
        assert run.status == 0
        out = (xstrace.home / "shared" / "stdout").read_text()
        facts = [line for line in out.splitlines() if not line.startswith("env ")]
        pairs = [line[4:].partition("=") for line in out.splitlines() if line.startswith("env ")]
        results.append((facts, {name: value for name, _, value in pairs}))
    return results


def check_probe(bare, traced):
    """Nothing differs but our variables and the one signal that we need."""
    facts = [line.replace("death signal: 9", "death signal: 0") for line in traced[0]]
    assert facts == bare[0]
    ours = {name: traced[1].pop(name, None) for name in VARIABLES}
    others = {name: value for name, value in bare[1].items() if name not in VARIABLES}
    assert traced[1] == others
    return ours


def ignore(*signals):
    def prepare():
        for number in signals:
            signal.signal(number, signal.SIG_IGN)

    return prepare


def block():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD})


def low_limits():
    for which, value in [("NOFILE", 12), ("CORE", 0), ("STACK", 1 << 20), ("MEMLOCK", 4096)]:
        which = getattr(resource, "RLIMIT_" + which)
        resource.setrlimit(
            which, (value, min(resource.getrlimit(which)[1], value * 2) if value else 0)
        )


def settings():
    os.umask(0o027)
    os.nice(3)
    os.sched_setaffinity(0, {0})


PREPARATIONS = {
    "plain": None,
    "ignored signals": ignore(signal.SIGHUP, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE),
    "blocked signals": block,
    "limits": low_limits,
    "umask, nice, cpus": settings,
    "stdin at an offset": lambda: os.dup2(os.open(__file__, os.O_RDONLY), 0) or os.lseek(0, 77, 0),
    "more descriptors": lambda: [
        os.dup2(os.open("/etc/passwd", os.O_RDONLY), n) for n in (5, 9, 200)
    ],
    "no stdin": lambda: os.close(0),
}


@pytest.mark.parametrize("name", PREPARATIONS)
def test_the_program_sees_what_it_would_see(xstrace, name):
    """Arguments, descriptors, signals, limits, scheduling, errno, optind, children, environment."""
    popen = {"close_fds": False} if name == "more descriptors" else {}
    prepare = PREPARATIONS[name]
    bare, traced = probe(xstrace, preexec_fn=prepare, **popen)
    ours = check_probe(bare, traced)
    assert ours["LD_PRELOAD"] == ours["INTEL_LIBITTNOTIFY64"] == ours["OPENCL_LAYERS"]
    assert ours["LD_PRELOAD"] == ours["CUDA_INJECTION64_PATH"] == ours["NVTX_INJECTION64_PATH"]


def test_timers_that_exec_keeps(xstrace):
    """`alarm 1; exec xstrace …`: the time is the program's."""
    left = "import signal\nprint([signal.getitimer(which)[0] > 0 for which in (0, 1, 2)], flush=True)\nsignal.setitimer(0, 0.1)\nsignal.pause()"

    def prepare():
        for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(which, 50)

    run = xstrace("-d", sys.executable, ["-c", left], preexec_fn=prepare)
    assert (run.status, run.out) == (-signal.SIGALRM, "[True, True, True]\n")


def test_only_the_variables_that_are_needed(xstrace):
    for options, absent in [(ITT, "OPENCL_LAYERS"), ("-d", "INTEL_LIBITTNOTIFY64")]:
        run = xstrace(options, "env")
        assert absent + "=" not in run.out and "XSTRACE_RUN=/dev/shm/xstrace-" in run.out


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_closed_standard_streams(xstrace, closed):
    """Nothing of ours gets a number that is not ours: not in the app, not in the trace."""

    def prepare():
        for fd in closed:
            os.close(fd)

    script = "ls /proc/self/fd > '%s'; exec %s 100" % (xstrace.home / "fds", APPS / "itt_tasks")
    bare = xstrace.bare("sh", ["-c", script], preexec_fn=prepare)
    fds = (xstrace.home / "fds").read_text()
    run = xstrace(ITT, "sh", ["-c", script], preexec_fn=prepare)
    assert run.status == bare.status and (xstrace.home / "fds").read_text() == fds
    assert run.trace.count("tasks") == 100


# ---- what the user had set ----

OWN_LAYER = r"""
#include <CL/cl_layer.h>
#include <stdio.h>
__attribute__((constructor)) static void hello(void) { fputs("own preload\n", stderr); }
cl_int clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *ret)
{
	if (name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
	if (value) *(cl_layer_api_version *)value = CL_LAYER_API_VERSION_100;
	if (ret) *ret = sizeof(cl_layer_api_version);
	return size && size < sizeof(cl_layer_api_version) ? CL_INVALID_VALUE : 0;
}
static struct _cl_icd_dispatch table;
cl_int clInitLayer(cl_uint n, const struct _cl_icd_dispatch *target, cl_uint *n_ret,
		   const struct _cl_icd_dispatch **ret)
{
	fputs("own layer\n", stderr);
	table = *target;
	*n_ret = sizeof(table) / sizeof(void *);
	*ret = &table;
	return 0;
}
"""


@pytest.fixture
def own_layer(tmp_path):
    source = "#define CL_TARGET_OPENCL_VERSION 300\n" + OWN_LAYER
    return str(compile_c(tmp_path / "own.so", source, "-shared", "-fPIC"))


def test_own_preload_and_layer_are_kept(xstrace, own_layer):
    env = {"LD_PRELOAD": own_layer, "OPENCL_LAYERS": own_layer}
    xstrace.bare("cl_dlopen")  # the first time, PoCL starts a linker, which would load it too
    bare = xstrace.bare("cl_dlopen", env=env)
    assert bare.err == "own preload\nown layer\n"
    run = xstrace("--chrome-kernel-logging", "cl_dlopen", env=env).check_expected()
    assert run.status == bare.status and run.out == bare.out
    assert run.err.count("own layer\n") == 1 and "own preload\n" in run.err


def test_values_of_the_user_are_kept(xstrace, own_layer):
    env = {"LD_PRELOAD": own_layer, "OPENCL_LAYERS": own_layer, "XSTRACE_RUN": "/nonexistent"}
    bare, traced = probe(xstrace, env=env)
    ours = check_probe(bare, traced)
    assert ours["LD_PRELOAD"].split(":")[:-1] == [own_layer]
    assert sorted(ours["OPENCL_LAYERS"].split(":")) == sorted(ours["LD_PRELOAD"].split(":"))


ASAN = """
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	cl_uint n = 0;
	clGetPlatformIDs(0, NULL, &n);
	puts(n ? "platforms" : "none");
	fflush(stdout);
	volatile char *memory = calloc(1, 4);
	return memory[argc > 1 ? 4 : 0];
}
"""


@pytest.mark.parametrize("how", ["itself", "by a shell", "by a script with options"])
def test_a_program_with_a_sanitizer(xstrace, tmp_path, how):
    """gcc's AddressSanitizer ends a program whose first library is not its runtime: not because of ours. It still finds what it should."""
    source = "#define CL_TARGET_OPENCL_VERSION 300\n" + ASAN
    program = compile_c(tmp_path / "asan", source, "-fsanitize=address", "-lOpenCL")
    for words in [], ["overflow"]:
        own = "ASAN_OPTIONS=detect_leaks=0:exitcode=57 " if "options" in how else ""
        command = [program, *words] if how == "itself" else ["/bin/sh", "-c", own + " ".join([*([] if own else ["exec"]), str(program), *words])]
        env = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=57"}
        bare = xstrace.bare(*[command[0], command[1:]], env=env)
        assert bare.status == (57 if words else 0)
        run = xstrace("--chrome-call-logging", command[0], command[1:], env=env)
        assert (run.status, run.out) == (bare.status, bare.out)
        assert ("heap-buffer-overflow" in run.err) == bool(words)
        assert [call.name for call in run.trace.calls] == ["clGetPlatformIDs"]


def test_another_itt_collector_gets_a_warning(xstrace):
    run = xstrace(ITT, "itt_tasks", [5], env={"INTEL_LIBITTNOTIFY64": "/opt/vtune/other.so"})
    assert run.status == 0 and run.trace.count("tasks") == 5
    assert sum("/opt/vtune/other.so" in line for line in run.said) == 1


MUSL = Path("/usr/lib/x86_64-linux-musl")


@pytest.mark.skipif(not (MUSL / "libc.so").exists(), reason="no musl here")
@pytest.mark.parametrize("options", [ITT, "--chrome-mpi-logging", f"{ITT} --chrome-mpi-logging -h -d --chrome-call-logging"])
def test_a_program_of_another_c_library(xstrace, tmp_path, options):
    """Its loader takes our libraries for what they are; it starts, also as the child of another program."""
    source, program = tmp_path / "musl.c", tmp_path / "musl"
    source.write_text("#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { puts(dlsym(RTLD_DEFAULT, \"puts\") ? \"ran\" : \"no puts\"); return 7; }\n")
    own = subprocess.run(["cc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    includes = ["-nostdinc", "-isystem", "/usr/include/x86_64-linux-musl", "-isystem", own]
    parts = [MUSL / name for name in ("crt1.o", "crti.o", "crtn.o", "libc.so")]
    loader = "-Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1"
    subprocess.run(["cc", "-w", *includes, "-nostdlib", "-no-pie", "-o", program, source, *parts, loader], check=True)
    for command in ([program], ["sh", "-c", f"{program}; exit $?"]):
        run = xstrace(options, command[0], command[1:])
        assert (run.status, run.out, run.err) == (7, "ran\n", "")


# ---- signals ----

FORWARDED = [
    number
    for number in signal.valid_signals()
    if number not in (signal.SIGKILL, signal.SIGSTOP)
    and number not in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
    and number not in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP)
]


def test_every_signal_is_forwarded_once(xstrace):
    run = xstrace.start("-d", "recv_sig", [42, len(FORWARDED)])
    run.wait_for_output()
    for i, number in enumerate(FORWARDED):
        os.kill(run.pid, number)
        run.wait_for_output(f"got {number} ")
        assert (run.log / "stdout").read_text().count("got ") == i + 1
    run.finish()
    assert run.status == 42


OWN_GROUP = """
import os, signal
os.setpgid(0, 0)
signal.signal(signal.SIGUSR1, lambda *unused: print("got", flush=True))
print("ready", flush=True)
signal.pause()
"""


def test_a_signal_to_the_group_of_a_shell(xstrace):
    """One with job control makes a group of its own where it would lead the launcher's: `fg` continues it, for one."""
    run = xstrace.start("-d", sys.executable, ["-c", OWN_GROUP])
    run.wait_for_output()
    os.killpg(run.pid, signal.SIGUSR1)
    run.finish()
    assert (run.status, run.out) == (0, "ready\ngot\n")


def test_a_signal_to_the_group_arrives_once(xstrace):
    """The launcher is in it, too, and passes on what is for it alone; also when the sender has ended."""
    run = xstrace.start("-d", "recv_sig", [42, 7])
    run.wait_for_output()
    for i, number in enumerate((signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR1)):
        witness = run.child("group-witness")
        assert not Path(f"/proc/{witness}/cmdline").read_bytes().strip(b"\0")  # pkill -f does not find it
        subprocess.run(["kill", f"-{int(number)}", "--", f"-{run.pid}"], check=True)
        wait_until(lambda old=witness: run.children().get("group-witness", old) != old)
        os.kill(run.pid, number)
        wait_until(lambda n=2 * i + 2: (run.log / "stdout").read_text().count("got ") >= n)
    os.kill(run.pid, signal.SIGUSR2)
    run.finish()
    assert run.status == 42
    assert re.findall("got ([0-9]+)", run.out) == ["10", "10", "1", "1", "10", "10", "12"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_the_program_ends_the_launcher(xstrace, number):
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    os.kill(run.pid, number)
    run.finish()
    assert run.status == -number
    assert run.trace.other["status"] == number


def test_a_signal_before_the_application_starts(xstrace):
    """It ends the launcher, as it would the program; nothing of ours stays."""
    chance = random.Random(1)
    for _ in range(40):
        number = chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
        run = xstrace.start("-d", "sleep", [0.5])
        time.sleep(chance.uniform(0, 0.004))
        os.kill(run.pid, number)
        run.finish()  # and looks for the run directory
        assert run.status == -number


def test_ctrl_c_arrives_once(xstrace):
    """The terminal sends to launcher and program; forwarding would make two of one."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(xstrace.cwd)
        os.execv(XSTRACE, ["xstrace", "-d", str(APPS / "recv_sig"), "3", "3"])
    os.set_blocking(terminal, False)
    text = [b""]

    def read(wanted):
        with contextlib.suppress(OSError):
            text[0] += os.read(terminal, 1000)
        return re.search(wanted, text[0])

    wait_until(lambda: read(rb"ready \d+"))
    os.kill(pid, signal.SIGSTOP)  # or two of one could come as one: the second before the first is taken
    wait_until(lambda: state(pid) == "T")
    os.write(terminal, b"\x03")
    wait_until(lambda: read(b"got 2 SIGINT"))
    os.kill(pid, signal.SIGCONT)  # taken behind SIGINT, and forwarded
    wait_until(lambda: read(b"got 18 SIGCONT"))
    assert text[0].count(b"SIGINT") == 1
    os.kill(pid, signal.SIGUSR1)
    wait_until(lambda: read(b"got 10 SIGUSR1"))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    os.close(terminal)


def traced_in(cwd):
    """The run directories of the programs that were started there."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(path / "cwd") == str(cwd) and (match := re.search(rb"\0XSTRACE_RUN=([^:]+):", (path / "environ").read_bytes())):
                found.add(os.fsdecode(match[1]))
    return found


@pytest.mark.parametrize("how", ["leader", "child"])
def test_a_terminal_that_is_hung_up(xstrace, how):
    """Who leads the terminal's session is told by the kernel: that is the launcher, in the application's place."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(xstrace.cwd)
        command = [str(XSTRACE), ITT, str(APPS / "itt_stress"), str(xstrace.home / "truth")]
        os.execvp("sh", ["sh", "-c", ("exec " if how == "leader" else "") + '"$@"; exit 5', "sh", *command])
    text = b""
    while b"ready" not in text:
        text += os.read(terminal, 1000)
    (directory,) = wait_until(lambda: traced_in(xstrace.cwd))
    time.sleep(0.3)
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == -signal.SIGHUP
    (path,) = wait_until(lambda: [p for p in xstrace.cwd.glob("*.json") if p.read_bytes().rstrip().endswith(b"}}")], 20)
    trace = Trace(path)
    assert (trace.other["end"], trace.other["status"]) == ("killed", signal.SIGHUP) and trace.count("tasks") > 0
    wait_until(lambda: not os.path.exists(directory), 20)


def waits_for_signals(pid):
    """Has the launcher come back from a stop? Until then it is not ready for the next. Not every kernel says where a process waits."""
    where = Path(f"/proc/{pid}/wchan").read_text()
    return state(pid) == "S" and ("sigtimedwait" in where or where in ("", "0"))


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
@pytest.mark.parametrize("group", [False, True])
def test_stop_and_continue(xstrace, number, group):
    """Shells stop jobs; the launcher is stopped as the program is, and goes on as it does."""
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    app = run.child("itt_stress")
    for _ in range(2):
        (os.killpg if group else os.kill)(run.pid, number)
        _, status = os.waitpid(run.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and state(app) == "T"
        (os.killpg if group else os.kill)(run.pid, signal.SIGCONT)
        wait_until(lambda: state(app) != "T" and waits_for_signals(run.pid))
    os.kill(run.pid, signal.SIGTERM)
    run.finish()
    assert run.status == -signal.SIGTERM


def test_the_application_alone_is_stopped_and_continued(xstrace):
    """By its pid, which a file may tell. The launcher goes on with it; the application hears of one SIGCONT."""
    run = xstrace.start(ITT, "recv_sig", [42, 4])
    run.wait_for_output()
    app = run.child("recv_sig")
    for i in range(3):
        os.kill(app, signal.SIGSTOP)
        _, status = os.waitpid(run.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and state(app) == "T"
        os.kill(run.pid if i == 1 else app, signal.SIGCONT)
        wait_until(lambda: state(app) != "T" and state(run.pid) != "T")
        wait_until(lambda i=i: (run.log / "stdout").read_text().count("got 18 ") == i + 1)
    wait_until(lambda: waits_for_signals(run.pid))
    assert set(run.children()) == {"xstrace-drain", "recv_sig", "group-witness"}
    os.kill(run.pid, signal.SIGUSR1)
    run.finish()
    assert run.status == 42 and run.out.count("got 18 ") == 3


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGSTOP])
def test_the_application_stops_its_group(xstrace, number):
    """And with it the launcher: whoever continues that one process continues the application, as without us."""
    run = xstrace.start(ITT, "sh", ["-c", f"kill -{int(number)} 0; exit 3"], preexec_fn=lambda: os.setpgid(0, 0))
    _, status = os.waitpid(run.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == number
    wait_until(lambda: state(run.child("sh")) == "T")
    os.kill(run.pid, signal.SIGCONT)
    assert os.waitid(os.P_PID, run.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT).si_code == os.CLD_EXITED  # it is not stopped again
    run.finish()
    assert run.status == 3


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP])
def test_the_shell_is_told_which_signal_stopped_the_job(xstrace, number):
    run = xstrace.start(ITT, "sh", ["-c", f"kill -{int(number)} $$; exit 3"], preexec_fn=lambda: os.setpgid(0, 0))
    _, status = os.waitpid(run.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == number
    os.killpg(run.pid, signal.SIGCONT)
    run.finish()
    assert run.status == 3


BETWEEN = r"""
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
/* PID NUMBER: SIGCONT to PID just before the kernel hears of its NUMBER for itself */
struct info { unsigned char op, pad[3]; unsigned arch; unsigned long long ip, sp, nr, args[6]; };
int main(int argc, char **argv)
{
	int pid = atoi(argv[1]), number = atoi(argv[2]), status;
	struct info info;
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) || ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		return 77;
	waitpid(pid, &status, __WALL);
	puts("ready");
	fflush(stdout);
	while (!ptrace(PTRACE_SYSCALL, pid, 0, 0) && waitpid(pid, &status, __WALL) == pid) {
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80) || ptrace(0x420e, pid, sizeof(info), &info) <= 0 || info.op != 1)
			continue; /* PTRACE_GET_SYSCALL_INFO, PTRACE_SYSCALL_INFO_ENTRY */
		if ((info.nr == SYS_tkill && info.args[1] == number) || (info.nr == SYS_tgkill && info.args[2] == number)) {
			kill(pid, SIGCONT);
			return ptrace(PTRACE_DETACH, pid, 0, 0) != 0;
		}
	}
	return 1;
}
"""


def continue_before(xstrace, run, number):
    tracer = subprocess.Popen([compile_c(xstrace.home / "between", BETWEEN), str(run.pid), str(int(number))], stdout=subprocess.PIPE)
    if not tracer.stdout.readline():
        pytest.skip("no process may be traced here")
    return tracer


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGSTOP])
def test_who_continues_the_job_before_it_is_stopped(xstrace, number):
    """The application is stopped, as can be seen, and the launcher is about to be: its own stop takes SIGCONT back."""
    script = f"echo ready; read line; kill -{int(number)} $$; exit 3"
    run = xstrace.start(ITT, "sh", ["-c", script], stdin=subprocess.PIPE, preexec_fn=lambda: os.setpgid(0, 0))
    run.wait_for_output()
    tracer = continue_before(xstrace, run, number)
    run.process.stdin.write(b"\n")
    run.process.stdin.close()
    assert tracer.wait(20) == 0
    run.finish(timeout=20)
    assert run.status == 3


def test_who_continues_the_job_twice(xstrace):
    """The first SIGCONT is passed on when the next one would be noticed, before any stop."""
    run = xstrace.start(ITT, "recv_sig", [42])
    run.wait_for_output()
    tracer = continue_before(xstrace, run, signal.SIGTTOU)
    os.kill(run.pid, signal.SIGCONT)
    assert tracer.wait(20) == 0
    run.finish(timeout=20)
    assert run.status == 42


SUBREAPER = r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int is_one = 0, status, count = 0;
	if (argc > 1) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		execv(argv[1], argv + 1);
		return 99;
	}
	prctl(PR_GET_CHILD_SUBREAPER, &is_one);
	if (!fork()) {
		if (!fork()) { usleep(100000); _exit(7); }
		_exit(0);
	}
	while (wait(&status) > 0) count++;
	printf("%d %d %d\n", is_one, count, WEXITSTATUS(status));
	return 0;
}
"""


def test_orphans_come_to_who_was_to_have_them(xstrace):
    """PR_SET_CHILD_SUBREAPER survives exec, and so it survives xstrace."""
    app = compile_c(xstrace.home / "subreaper", SUBREAPER)
    run = xstrace(ITT, app, prefix=[app])
    assert (run.status, run.out) == (0, "1 2 7\n")


def test_the_application_ends_while_the_job_is_stopped(xstrace):
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    app = run.child("itt_stress")
    os.kill(app, signal.SIGSTOP)
    _, status = os.waitpid(run.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(app, signal.SIGKILL)
    run.finish(timeout=20)
    assert run.status == -signal.SIGKILL


def test_the_drain_process_hears_no_signal_of_the_job(xstrace):
    """Job managers signal every process that they find in the job's group or session."""
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth", 1, 100000])
    drain = run.drain
    run.wait_for_output()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGTSTP):
        os.kill(drain, number)
    time.sleep(0.05)
    os.killpg(run.pid, signal.SIGTERM)
    run.finish()
    assert run.status == -signal.SIGTERM and run.trace.count("tasks") > 0


# ---- streams ----


def test_stdin_reaches_the_program(xstrace):
    data = random.Random(1).randbytes(300000)
    (xstrace.home / "in").write_bytes(data)
    with (xstrace.home / "in").open("rb") as stdin:
        run = xstrace("-d", "cat", stdin=stdin)
    assert (run.log / "stdout").read_bytes() == data


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("app, args", [("itt_end", ["daemon"]), ("itt_tasks", ["300000", "2"])])
def test_pipelines_end_in_time(xstrace, app, args):
    """`xstrace app | next`: the drain process, busy for long perhaps, does not hold the pipe."""
    run = xstrace.start(ITT, app, args, stdout=subprocess.PIPE)
    after = subprocess.run(["cat"], stdin=run.process.stdout, capture_output=True, timeout=60)
    assert b"expected" in after.stdout
    if app == "itt_end":
        end_daemon(after.stdout)
    run.finish()
    assert run.process.returncode == run.status


@pytest.mark.parametrize("keeps", [False, True])
def test_who_reads_our_lines_waits_as_for_the_program(xstrace, keeps):
    """`$(xstrace app 2>&1)`: the drain process has stderr for as long as some process of the run has it, and no longer."""
    script = f"(exec sleep {2 if keeps else 60} >&- {'' if keeps else '2>&-'}) & echo $! >&2"
    run = xstrace.start("--chrome-itt-logging", "sh", ["-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    before = time.monotonic()
    text = run.process.stdout.read().decode()
    took = time.monotonic() - before
    child = int(re.search(r"^\d+$", text, re.M)[0])
    assert ("without this stderr" in text) == (not keeps)
    if keeps:
        assert took > 1.5
    else:
        assert took < 10
        os.kill(child, signal.SIGKILL)
    run.wait()


def test_a_reader_that_goes_away(xstrace):
    """SIGPIPE ends the program as it would without us."""
    for options in (None, "-d"):
        read, write = os.pipe()
        os.close(read)
        run = (xstrace if options else xstrace.bare)(
            *([options] if options else []), "yes", stdout=write
        )
        os.close(write)
        assert run.status == -signal.SIGPIPE


def no_reader(kind):
    """A stderr that nobody reads: a full pipe or socket, one whose reader is gone."""
    if kind == "socket":
        ends = socket.socketpair()
        read, write = (end.detach() for end in ends)
    else:
        read, write = os.pipe()
    if kind == "gone":
        os.close(read)
        return [write]
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * (4096 if kind == "pipe" else 1))
    os.set_blocking(write, True)
    return [write, read]


@pytest.mark.parametrize("kind", ["pipe", "socket", "gone"])
def test_messages_that_nobody_reads(xstrace, kind):
    """Neither the program nor whoever waits for it notices; a line is given up after seconds."""
    ends = no_reader(kind)
    run = xstrace(f"{ITT} -v --ring-size 64K", "itt_tasks", [10000, 2], stderr=ends[0], timeout=25)
    assert run.status == 0
    run.check_expected()
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("kind", ["pipe", "gone"])
def test_a_launcher_that_nobody_hears(xstrace, kind):
    """What it has to say of a drain process that was killed ends nobody by SIGPIPE, also not the application."""
    ends = no_reader(kind)
    run = xstrace.start(ITT, "recv_sig", [42, 1], stderr=ends[0])
    run.wait_for_output()
    os.kill(run.child("xstrace-drain"), signal.SIGKILL)
    time.sleep(0.5)
    os.kill(run.pid, signal.SIGUSR1)
    run.wait(timeout=25)
    shutil.rmtree(run.dir)
    assert run.status == 42 and (run.log / "stdout").read_text().count("got ") == 1
    for end in ends:
        os.close(end)


def test_messages_beyond_a_limit_of_file_size(xstrace):
    """The launcher says by one line that such a program runs untraced. Where that line has no room, nothing comes of it."""
    for most in (0, 1, 10):
        with (xstrace.home / "said").open("w") as said:
            run = xstrace(ITT, "true", stderr=said, preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        assert run.status == 0
        assert (xstrace.home / "said").stat().st_size == most


# ---- resources ----


@pytest.mark.long
def test_100000_short_threads(xstrace):
    """They share few rings, and neither the app's memory nor the run directory grows."""
    peaks = []
    for count in (2000, 100000):
        run = xstrace.start(ITT, "itt_threads", [count])
        peak = rss = 0
        while run.process.poll() is None:
            path = run.dir
            with contextlib.suppress(OSError, KeyError, TypeError):
                peak = max(
                    peak, sum(os.stat(f"{path}/{f}").st_blocks for f in os.listdir(path or ""))
                )
                status = Path(f"/proc/{run.children()['itt_threads']}/status").read_text()
                rss = max(rss, int(re.search(r"VmHWM:\s+(\d+)", status)[1]))
            time.sleep(0.005)
        run.finish()
        assert run.status == 0
        run.check_expected("tasks")
        assert run.trace.other["lost"] == 0
        peaks.append((peak // 2, rss))
    assert peaks[1][0] < 8 * 1024, peaks  # KiB
    assert peaks[1][1] < peaks[0][1] + 4 * 1024, peaks


@pytest.mark.parametrize("mib", [150, 300, 1000])
def test_limited_address_space(xstrace, mib):
    """`ulimit -v`: as many threads as without us, and their tasks."""
    prepare = limited(resource.RLIMIT_AS, mib << 20)
    args = [4, mib // 10, 0]
    bare = xstrace.bare("limits", args, preexec_fn=prepare)
    run = xstrace(ITT, "limits", args, preexec_fn=prepare)
    same(bare, run)
    assert bare.status == 0
    run.check_expected()


@pytest.mark.parametrize("threads", [4, 9, 60, 200])
def test_threads_under_a_tight_limit(xstrace, threads):
    """The program sets its limit itself, when we are already there.

    128 MiB: the first task makes ittnotify call dlopen() in a thread, which gets a malloc arena.
    """
    for options, spare in [("-d", 64), (ITT, 128 + 24 + int(1.1 * threads))]:
        args = [threads, 8, spare]
        same(xstrace.bare("limits", args), xstrace(options, "limits", args))


@pytest.mark.parametrize("name", ["with blanks in it", "colon:and;more", "grüße '\"", "$LIB"])
def test_installed_in_a_place_with_an_odd_name(xstrace, name):
    place = xstrace.home / name
    copy_build(place)
    options = f"{ITT} --chrome-kernel-logging"
    run = xstrace(options, "gemm", ["--expected"], launcher=place / "launcher/xstrace")
    assert run.status == 0 and run.err == ""
    run.check_expected()
    for link in Path.home().glob(".cache/xstrace/*"):  # it stays, for programs that still run
        if link.is_symlink() and os.readlink(link).startswith(str(place)):
            link.unlink()


def test_directories_and_programs_with_odd_names(xstrace):
    cwd = xstrace.home / 'a dir\nwith "quotes" and ä'
    cwd.mkdir()
    app = shutil.copy(APPS / "itt_tasks", cwd / 'an "app"\n\xff')
    run = xstrace(ITT, app, [5], cwd=cwd)
    assert run.status == 0
    run.check_expected()
    assert run.trace.metadata["command"][0] == str(app)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("options", ["--chrome-itt-logging", "--chrome-itt-logging --start-paused"])
@pytest.mark.parametrize("mode", ["first", "seal", "switch", "none"])
def test_an_environment_that_changes(xstrace, mode, options):
    """We look at it where another thread may be changing it, as getenv() must not."""
    run = xstrace(options, "itt_environment", [mode, 150])
    assert (run.status, run.out) == (0, "bad: 0\n"), run.err


FILTERED = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	execvp(argv[1], argv + 1);
	return 99;
}
"""


@pytest.mark.parametrize("mode", ["first", "none"])
def test_an_environment_under_the_filter_of_a_service(xstrace, tmp_path, mode):
    """As a service manager sets one: the kernel may end who makes a call that the program never makes."""
    filtered = compile_c(tmp_path / "filtered", FILTERED)
    words = [filtered, XSTRACE, "--chrome-itt-logging", APPS / "itt_environment", mode, "40"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "bad: 0\n"), done.stderr
