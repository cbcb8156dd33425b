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
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import (
    APPS,
    NOBODY,
    ROOT,
    VARIABLES,
    XSTRACE,
    Trace,
    compile_c,
    copy_build,
    limited,
    root_only,
    wait_until,
)
from test_endings import end_daemon

ITT = "--chrome-itt-logging"
ALL = f"{ITT} --chrome-call-logging --chrome-kernel-logging -h -d"
PY_MP = ROOT / "tests/apps/py_mp.py"
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
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD)
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_the_program_ends_the_launcher(xstrace, number):
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    os.kill(run.pid, number)
    run.finish()
    assert run.status == -number
    assert run.trace.other["status"] == number


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
        wait_until(lambda: state(app) != "T" and state(run.pid) != "T")
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
    assert set(run.children()) == {"xstrace-drain", "recv_sig"}
    os.kill(run.pid, signal.SIGUSR1)
    run.finish()
    assert run.status == 42 and run.out.count("got 18 ") == 3


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


# ---- programs that start programs ----


def test_shell_script(xstrace):
    script = xstrace.home / "script"
    script.write_text(
        f"#!/bin/sh\n{APPS}/itt_tasks 10\n{APPS}/itt_tasks 20 | cat\necho $1; exit 9\n"
    )
    script.chmod(0o755)
    run = xstrace(ITT, script, ["argument"])
    assert run.status == 9 and run.out.endswith("argument\n") and run.err == ""
    assert sorted(t.count("tasks") for t in run.traces) == [10, 20]


def test_script_without_an_interpreter_line(xstrace):
    """Shells and env(1) run it with sh."""
    script = xstrace.home / "script"
    script.write_text(f"{APPS}/itt_tasks 10\nexit 9\n")
    script.chmod(0o755)
    run = xstrace(ITT, script)
    assert run.status == 9 == xstrace.bare("env", [script]).status
    run.check_expected()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_python_multiprocessing(xstrace, method):
    bare = xstrace.bare(sys.executable, [PY_MP, method])
    run = xstrace(ITT, sys.executable, [PY_MP, method])
    assert (run.status, run.err) == (bare.status, bare.err)
    run.check_expected()
    assert len(run.traces) == 4


def test_many_processes(xstrace):
    """One after another and at once, each with a trace of its own."""
    script = f"for i in $(seq 40); do {APPS}/itt_tasks 3 & {APPS}/itt_tasks 4; done; wait"
    run = xstrace(ITT, "sh", ["-c", script])
    assert run.status == 0
    assert sorted(t.count("tasks") for t in run.traces) == [3] * 40 + [4] * 40
    assert len({t.metadata["run"] for t in run.traces}) == 1


@pytest.mark.parametrize("app, args", [("closer", []), ("closer", ["late"]), ("chdirer", [])])
def test_programs_that_disturb_tracers(xstrace, app, args):
    run = xstrace(ITT, app, args)
    assert run.status == 0
    run.check_expected()


@root_only
def test_program_that_drops_its_rights(xstrace):
    run = xstrace(ITT, "dropper")
    assert run.status == 0 and f"uid: {NOBODY}" in run.out
    run.check_expected()


def test_static_program(xstrace):
    run = xstrace(ITT, "static_hello")
    assert (run.status, run.out, run.err) == (5, "hello, static\n", "")
    assert sum("static" in line and "cannot be traced" in line for line in run.said) == 1


THIRTY_TWO = """
#include <stdio.h>
#include <stdlib.h>
int main(void) { puts("hello, 32"); fflush(stdout); return system("true; exit 5") >> 8; }
"""


def test_a_program_of_32_bits(xstrace, tmp_path):
    """One line, xstrace's: nothing for its loader to complain about; what it starts is as untraced as it is."""
    program = tmp_path / "p"
    (tmp_path / "p.c").write_text(THIRTY_TWO)
    if subprocess.run(["cc", "-m32", "-o", program, tmp_path / "p.c"], capture_output=True).returncode:
        pytest.skip("the compiler makes no programs of 32 bits")
    if subprocess.run([program], capture_output=True).returncode != 5:
        pytest.skip("this machine runs no programs of 32 bits")
    run = xstrace(ITT, program)
    assert (run.status, run.out, run.err) == (5, "hello, 32\n", "") and run.traces == []
    assert run.said == [f"xstrace: {program} is not a 64-bit program: it runs, but neither it nor what it starts can be traced"]


@root_only
def test_setuid_program(xstrace, public):
    copy = shutil.copy(APPS / "env_probe", public / "setuid_probe")
    os.chown(copy, 1234, 1234)
    os.chmod(copy, 0o4755)
    copy_build(public)
    more = {"cwd": public, "user": NOBODY, "group": NOBODY, "extra_groups": []}
    bare = xstrace.bare(copy, **more)
    run = xstrace(ITT, copy, launcher=public / "launcher/xstrace", **more)
    uids = r"status Uid:\s+65534\s+1234"
    assert run.status == bare.status == 0
    assert re.search(uids, run.out) and re.search(uids, bare.out)
    assert len([line for line in run.said if "setuid" in line]) == 1
    assert run.err == ""


@root_only
def test_another_users_run_directory_is_private(xstrace):
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    assert stat.S_IMODE(os.stat(run.dir).st_mode) == 0o700
    for name in os.listdir(run.dir):
        assert stat.S_IMODE(os.stat(f"{run.dir}/{name}").st_mode) == 0o600
    os.kill(run.pid, signal.SIGTERM)
    run.finish()


def test_xstrace_of_xstrace(xstrace):
    """The inner one's trace is the one that there is."""
    run = xstrace(ITT, XSTRACE, [ITT, APPS / "itt_tasks", "50"])
    assert run.status == 0
    run.check_expected()
    wait_until(lambda: not [d for d in os.listdir("/dev/shm") if d.startswith("xstrace-")])


def test_many_at_once(xstrace):
    runs = [xstrace.start(ITT, "itt_tasks", [2000 + i, 2]) for i in range(12)]
    for run in runs:
        run.wait()
        assert run.status == 0
        run.collect()
    counts = {path: Trace(path).count("tasks") for run in runs for path in run.trace_files}
    assert sorted(counts.values()) == [2 * (2000 + i) for i in range(12)]


@root_only
@pytest.mark.parametrize(
    "flags", ["-pf", "-pf --mount-proc", "-Ur", "-Urpf --mount-proc", "-n", "-m"]
)
def test_program_in_namespaces(xstrace, flags):
    """As sandboxes make them: there, pids are others."""
    words = ["unshare", *flags.split(), str(APPS / "itt_tasks"), "20"]
    if xstrace.bare("unshare", words[1:]).status:
        pytest.skip("not allowed here")
    run = xstrace(ITT, "unshare", words[1:])
    assert run.status == 0
    run.check_expected()


def test_process_that_ends_while_its_child_traces(xstrace):
    """Orphans of orphans, each with a trace."""
    script = f"(({APPS}/itt_tasks 5; sleep 0.1; {APPS}/itt_tasks 6) &) & exec {APPS}/itt_tasks 4"
    run = xstrace(ITT, "sh", ["-c", script])
    assert sorted(t.count("tasks") for t in run.traces) == [4, 5, 6]


THREADS_AND_KEYS = r"""
#include <ittnotify.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
static __itt_domain *domain;
static __itt_string_handle *name;
static pthread_key_t key;
static void trace(void)
{
	__itt_task_begin(domain, __itt_null, __itt_null, name);
	__itt_task_end(domain);
}
static void at_end(void *left)
{
	trace();
	if (left > (void *)1) pthread_setspecific(key, left - 1);
}
static void *body(void *n) { if (n) pthread_setspecific(key, n); trace(); return NULL; }
int main(int argc, char **argv)
{
	long count = atol(argv[1]), again = atol(argv[2]), at_once = atol(argv[3]);
	pthread_attr_t attr;
	pthread_t ids[64];
	domain = __itt_domain_create("d"); name = __itt_string_handle_create("n");
	pthread_key_create(&key, at_end); /* before the collector's: its destructors run first */
	trace();
	if (argc > 4) {
		struct rlimit none = { 3, 3 };
		setrlimit(RLIMIT_NOFILE, &none);
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	for (long i = 0; i < count; i += at_once) {
		for (long k = 0; k < at_once; k++)
			if (pthread_create(&ids[k], &attr, body, (void *)again)) return 1;
		for (long k = 0; k < at_once; k++) pthread_join(ids[k], NULL);
	}
	printf("expected: %ld tasks d::n\n", 1 + count * (1 + again));
	return 0;
}
"""


@pytest.mark.parametrize("again, at_once", [(0, 4), (1, 4), (4, 4), (4, 8), (4, 16)])
def test_threads_that_trace_at_their_very_end(xstrace, again, at_once):
    """On the smallest stacks; destructors of thread data trace when ours has already run. Rings of the dead have one new owner each."""
    app = compile_c(xstrace.home / "keys", THREADS_AND_KEYS)
    run = xstrace.start(ITT, app, [4000, again, at_once])
    peak = 0
    while run.process.poll() is None:
        with contextlib.suppress(OSError):
            # the drain process's own, as the backlog, come and go as busy as the machine is
            peak = max(peak, sum(name.startswith("p") for name in os.listdir(run.dir or "")))
        time.sleep(0.005)
    run.finish().check_expected()
    assert run.trace.other["lost"] == 0
    assert 1 <= peak <= 2  # the first file, at most one segment


def test_no_descriptor_left(xstrace):
    """With more threads than the first file has rings: what cannot be recorded is counted."""
    app = compile_c(xstrace.home / "keys", THREADS_AND_KEYS)
    run = xstrace(ITT, app, [960, 0, 48, "no descriptors"])
    assert run.status == 0 and run.err == ""
    other = run.trace.other
    assert other["events"] + other["lost"] == 2 * 961


@root_only
def test_after_chroot(xstrace):
    """No path is valid any more."""
    body = """
import os, threading
from ittapi import domain, string_handle, task_begin, task_end
d, s = domain("d"), string_handle("s")
def work(*unused):
    task_begin(d, s)
    task_end(d)
    barrier.wait()
barrier = threading.Barrier(1)
work()
os.chroot("/proc/self/fd")
os.chdir("/")
barrier = threading.Barrier(30)
threads = [threading.Thread(target=work) for _ in range(30)]
[t.start() for t in threads]
[t.join() for t in threads]
print("done")
"""
    run = xstrace(ITT, sys.executable, ["-c", body])
    assert (run.status, run.out, run.err) == (0, "done\n", "")
    assert run.trace.other["events"] + run.trace.other["lost"] == 2 * 31


def test_fork_while_other_threads_trace(xstrace):
    """The child has no thread but one, and maybe a lock that nobody will open."""
    source = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static __itt_domain *d; static __itt_string_handle *s; static volatile int stop;
static void trace(void) { __itt_task_begin(d, __itt_null, __itt_null, s); __itt_task_end(d); }
static void *thread(void *x) { trace(); return x; }
static void *loop(void *x)
{
	pthread_t t;
	while (!stop) { pthread_create(&t, NULL, thread, NULL); pthread_join(t, NULL); trace(); }
	return x;
}
int main(void)
{
	pthread_t t[3];
	int bad = 0, status;
	d = __itt_domain_create("d"); s = __itt_string_handle_create("s");
	trace(); /* or we fork while ittnotify itself starts, with its lock held */
	for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, loop, NULL);
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		if (!pid) {
			alarm(10);
			trace();
			pthread_create(&t[0], NULL, thread, NULL);
			pthread_join(t[0], NULL);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		bad += status != 0;
	}
	stop = 1;
	for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
	printf("bad %d\n", bad);
	return 0;
}
"""
    run = xstrace(ITT, compile_c(xstrace.home / "forks", source))
    assert (run.status, run.out) == (0, "bad 0\n")
    assert len(run.traces) == 61
    assert sorted(t.count("tasks") for t in run.traces)[:60] == [2] * 60


# As the static part looks for a collector, with a table that takes long to fill.
LONG_START = r"""
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define ROWS 3000000
struct row { const char *name; void **function; void *init, *null; int group; };
static struct {
	unsigned char magic[8];
	unsigned long version[3];
	volatile long initialized, mutex_initialized, counter;
	pthread_mutex_t mutex;
	void *library, *handler;
	const char **path;
	struct row *rows;
} global = { .mutex_initialized = 1, .counter = 1, .mutex = PTHREAD_MUTEX_INITIALIZER };
static void *volatile first, *volatile last;
static void *start(void *x)
{
	void (*init)(void *, int);
	pthread_mutex_lock(&global.mutex);
	global.library = dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_LAZY);
	*(void **)&init = dlsym(global.library, "__itt_api_init");
	init(&global, ~0);
	global.initialized = 1;
	pthread_mutex_unlock(&global.mutex);
	return x;
}
int main(void)
{
	pthread_t thread;
	int status, in_time;
	global.rows = calloc(ROWS + 1, sizeof(*global.rows));
	for (int i = 0; i < ROWS; i++)
		global.rows[i] = (struct row){ "__itt_task_begin", (void **)(i < ROWS / 2 ? &first : &last) };
	pthread_create(&thread, NULL, start, NULL);
	while (!first) ;
	in_time = !last;
	if (!fork()) {
		alarm(20);
		/* as ITT_MUTEX_INIT_AND_LOCK does it */
		if (!global.mutex_initialized) {
			pthread_mutex_init(&global.mutex, NULL);
			global.mutex_initialized = 1;
		}
		pthread_mutex_lock(&global.mutex);
		_exit(global.initialized && last ? 0 : 1);
	}
	wait(&status);
	pthread_join(thread, NULL);
	printf("in time %d, child %d, parent %d\n", in_time, status, !last);
	return 0;
}
"""


def test_fork_while_ittnotify_starts(xstrace):
    """The child would wait at its first ITT call for a lock that nobody opens."""
    run = xstrace(ITT, compile_c(xstrace.home / "start", LONG_START))
    assert (run.status, run.out) == (0, "in time 1, child 0, parent 0\n")


NAMESPACES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ittnotify.h>
#include <stdio.h>
#include <stdlib.h>
static __itt_domain *domain;
static __itt_string_handle *name;
static void trace(int count)
{
	while (count--) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
}
int main(int argc, char **argv)
{
	void (*plugin)(void);
	domain = __itt_domain_create("d"); name = __itt_string_handle_create("n");
	trace(10);
	for (int i = 1; i < argc; i++) {
		void *library = dlmopen(LM_ID_NEWLM, argv[i][0] ? argv[i] : getenv("INTEL_LIBITTNOTIFY64"), RTLD_NOW);
		*(void **)&plugin = library ? dlsym(library, "in_namespace") : NULL;
		if (plugin)
			plugin();
	}
	trace(500000);
	printf("expected: 500010 tasks d::n\n");
	if (plugin)
		printf("expected: 3 tasks p::n\n");
	return 0;
}
"""
IN_NAMESPACE = r"""
#include <ittnotify.h>
void in_namespace(void)
{
	__itt_domain *domain = __itt_domain_create("p");
	for (int i = 0; i < 3; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("n"));
		__itt_task_end(domain);
	}
}
"""


@pytest.mark.parametrize("what", ["collector", "plugin"])
def test_second_namespace(xstrace, what):
    """A copy of the library there joined the run as what had come by an exec: nobody read the first one's rings any more."""
    program = compile_c(xstrace.home / "namespaces", NAMESPACES)
    plugin = compile_c(xstrace.home / "plugin.so", IN_NAMESPACE, "-shared", "-fPIC")
    run = xstrace(f"{ITT} --ring-size 64K --backlog 0", program, ["" if what == "collector" else plugin])
    assert run.status == 0
    run.check_expected()
    assert run.trace.other["end"] == "exited"


COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
void *dlopen(const char *path, int flags)
{
	void *(*next)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
	printf("dlopen\n");
	return next(path, flags);
}
"""
OPENS = r"""
#include <dlfcn.h>
#include <ittnotify.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	__itt_domain *domain = __itt_domain_create("d");
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("n"));
	__itt_task_end(domain);
	puts("traced");
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path, RTLD_LAZY);
		printf("%d %d %d\n", !dlsym(library, "__itt_task_begin"), !!dlsym(library, "main"), dlclose(library));
	}
	puts("expected: 1 tasks d::n");
	return 0;
}
"""


def test_first_event_opens_nothing(xstrace):
    """glibc's dlopen() takes longest of what the static part does with its lock held. Later handles are glibc's own."""
    counter = compile_c(xstrace.home / "counter.so", COUNTER, "-shared", "-fPIC")
    # linked with it, so it stands behind us
    program = compile_c(xstrace.home / "opens", OPENS, "-Wl,--no-as-needed", counter)
    run = xstrace(ITT, program)
    assert run.out.startswith("traced\n" + "dlopen\n0 0 0\n" * 3)
    run.check_expected()


def test_memory_of_app_and_drain_process(xstrace):
    """A ring and a little in the app; in the drain process the same for a lot as for a little."""
    peaks = []
    for count in (20000, 700000):
        run = xstrace.start(ITT, "itt_tasks", [count, "--hold"])
        wait_until(lambda: "expected" in (run.log / "stdout").read_text())
        pids = run.child("itt_tasks"), run.drain
        texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
        peaks.append([int(re.search(r"VmHWM:\s+(\d+)", text)[1]) // 1024 for text in texts])
        os.kill(pids[0], signal.SIGTERM)
        run.finish()
    bare = xstrace.bare(
        "sh", ["-c", f"{APPS}/itt_tasks 1000 --hold & sleep 0.1; cat /proc/$!/status; kill $!"]
    )
    base = int(re.search(r"VmHWM:\s+(\d+)", bare.out)[1]) // 1024
    assert peaks[1][0] <= base + 1 + 8
    assert peaks[1][1] <= min(64, peaks[0][1] + 4)


# ---- resources ----


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
