"""What is recorded when: by ITT, the environment, sessions, time, iterations, rank and kernel."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import APPS, BUILD, NOBODY, ROOT, XSTRACE, alive, compile_c, copy_build, expected_lines, root_only, wait_until

ITT = "--chrome-itt-logging"
CALL = "--chrome-call-logging"
KERNEL = "--chrome-kernel-logging"
PAUSED = ITT + " --start-paused"
ENABLE = "PTI_ENABLE_COLLECTION"


def names(run):
    """Finished tasks of all traces, sorted; unfinished ones with a question mark."""
    tasks = [s for t in run.traces for s in t.tasks]
    return " ".join(sorted(s.name.removeprefix("app::") + "?" * s.unfinished for s in tasks))


def steps(xstrace, options, text, **more):
    """Runs itt_control's steps; returns the tasks that are in the traces."""
    run = xstrace(options, "itt_control", text.split(), **more)
    assert (run.status, run.err) == (0, ""), run.err
    return names(run)


def xs(*args, launcher=XSTRACE, **more):
    """The launcher alone; a CompletedProcess."""
    command = [str(arg) for arg in (launcher, *args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **more)


# ---- ITT and the environment ----


@pytest.mark.parametrize(
    "text, shown",
    [
        ("=a", ""),
        ("=a resume =b pause =c resume =d", "b d"),
        ("=a resume resume =b pause pause =c", "b"),
        ("resume +a +b pause - - =c", "a? b?"),
        ("resume +a pause resume =b - =c", "a? b c"),
        ("resume +a =b pause =c resume =d", "a? b d"),
        ("+a resume =b - =c", "b c"),
        ("=a set:1 =b set:0 =c set:2 =d unset =e", "b d"),
        ("=a put:1 =b put:0 =c put:1 =d clear =e", "b d"),
        # only what says no is a no; nothing at all is a yes, as in unitrace
        ("set:yes =a set:no =b set:true =c set:false =d set:on =e set:off =f set: =g set:NO =h set:x =i", "a c e g i"),
        ("put:True =a put:False =b put: =c put:0 =d", "a c"),
        # ITT's word counts more, from the first on
        ("set:1 =a pause =b set:0 set:1 =c resume set:0 =d", "a d"),
        # children begin as their parent stood; a program begins anew
        ("resume =a fork =b pause =c", "a b"),
        ("fork =a resume =b", "b"),
        ("resume =a exec =b resume =c", "a c"),
        ("set:1 =a exec =b set:0 =c exec =d", "a b"),
    ],
)
def test_paused_from_the_start(xstrace, text, shown):
    assert steps(xstrace, PAUSED, text) == shown


@pytest.mark.parametrize(
    "value, shown", [("1", "a"), ("0", ""), ("", "a"), ("3", "a"), ("true", "a"), ("yes", "a"), ("False", ""), ("off", ""), ("no", "")]
)
def test_environment_at_the_start(xstrace, value, shown):
    assert steps(xstrace, PAUSED, "=a", env={ENABLE: value}) == shown
    older = ITT + " --conditional-collection"
    assert steps(xstrace, older, "=a set:0 =b", env={ENABLE: value}) == shown


def test_no_effect_without_the_option(xstrace):
    text = "=a pause =b set:0 =c unset =d resume =e"
    assert steps(xstrace, ITT, text, env={ENABLE: "0"}) == "a b c d e"


def test_python(xstrace):
    body = f"""
import os, ittapi
def task(name):
    with ittapi.task(name, domain="app"):
        pass
task("a")
os.environ["{ENABLE}"] = "1"
task("b")
os.environ["{ENABLE}"] = "0"
task("c")
os.environ["{ENABLE}"] = "1"
task("d")
del os.environ["{ENABLE}"]
task("e")
ittapi.resume()
task("f")
ittapi.pause()
task("g")
"""
    run = xstrace(PAUSED, sys.executable, ["-c", body])
    assert (run.status, run.err, names(run)) == (0, "", "b d f")


def test_open_tasks_end_at_the_pause(xstrace):
    """To the time, and what comes after stands beside them, not inside."""
    text = "resume +a +b sleep:20 pause sleep:50 resume +c =d - - - sleep:10"
    run = xstrace(PAUSED, "itt_control", text.split())
    a, b, c, d = sorted(run.trace.tasks, key=lambda s: s.name)
    assert a.unfinished and b.unfinished and not c.unfinished and not d.unfinished
    assert a.start <= b.start and b.end == a.end
    assert a.end - a.start >= 20e6 and c.start - a.end >= 50e6
    assert c.start <= d.start <= d.end <= c.end
    assert run.trace.other["unmatched_ends"] == 2


def test_frames_and_pauses(xstrace):
    """One that goes on through a pause is whole; one whose end fell into it ends where that began."""
    text = "resume frame:whole frame:cut sleep:20 pause sleep:50 end:cut resume sleep:5 end:whole sleep:50"
    run = xstrace(PAUSED, "itt_control", text.split())
    events = [e for e in run.trace.events if e["ph"] == "X"]
    cut, whole = sorted(events, key=lambda e: e["name"])
    assert (cut["name"], cut["args"], whole["name"]) == ("cut", {"unfinished": True}, "whole")
    assert "args" not in whole and 75e6 <= whole["dur"]
    assert 20e6 <= cut["dur"] and cut["ts"] + cut["dur"] + 55e6 <= whole["ts"] + whole["dur"]


def test_still_paused_at_the_end(xstrace):
    run = xstrace(PAUSED, "itt_control", "resume +a sleep:10 pause sleep:800".split())
    (task,) = run.trace.tasks
    assert task.unfinished and 10e6 <= task.end - task.start < 700e6


def test_many_pauses(xstrace):
    run = xstrace(PAUSED, "itt_control", ["resume", "+a", *"pause =x resume =b".split() * 1000])
    assert names(run) == " ".join(["a?"] + ["b"] * 1000)


# ---- iterations ----


@pytest.mark.parametrize(
    "which, shown",
    [
        ("step:2-3", "a2 a3 between step step"),
        ("step:1", "a1 step"),
        ("app::step:4", "a4 step"),
        ("step:1-9", "a1 a2 a3 a4 between between between between step step step step"),
        ("step:5", ""),
        ("other:1", ""),
    ],
)
def test_iterations(xstrace, which, shown):
    """From the begin of the first to the end of the last."""
    text = "=a0 " + " ".join(f"+step =a{i} - =between" for i in range(1, 5))
    assert steps(xstrace, f"{ITT} --iterations {which}", text) == shown


FORKS_IN_THE_MIDDLE = r"""
#include <ittnotify.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void step(__itt_domain *domain, const char *who, int number)
{
	char name[16];

	sprintf(name, "%s%d", who, number);
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("step"));
	__itt_marker(domain, __itt_null, __itt_string_handle_create(name), __itt_scope_task);
	__itt_task_end(domain);
}

int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");

	for (int i = 1; i <= 3; i++)
		step(domain, "parent", i);
	if (!fork()) {
		for (int i = 4; i <= 6; i++)
			step(domain, "child", i);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
"""


@pytest.mark.parametrize("which, shown", [("3-4", ["child4", "parent3"]), ("4", ["child4"]), ("5-6", ["child5", "child6"])])
def test_iterations_go_on_in_a_child(xstrace, which, shown):
    """Its first task counts, too."""
    run = xstrace(f"{ITT} --iterations step:{which}", compile_c(xstrace.home / "forks", FORKS_IN_THE_MIDDLE))
    found = [re.search(r"(child|parent)\d", e["name"]) for trace in run.traces for e in trace.events if e["ph"] == "i"]
    assert sorted(one[0] for one in found if one) == shown


WRITES = r"""
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <ittnotify.h>

int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	static char from[4096];
	cl_platform_id platform;
	cl_command_queue queue;
	cl_context context;
	cl_device_id device;
	cl_mem to;

	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
	to = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, NULL);
	for (int i = 1; i <= 6; i++) {
		if (i == 3)
			__itt_resume();
		if (i == 5)
			__itt_pause();
		__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("it"));
		clEnqueueWriteBuffer(queue, to, CL_TRUE, 0, 100 + i, from, 0, NULL, NULL);
		__itt_task_end(domain);
	}
	return 0;
}
"""


@pytest.mark.skipif(not (APPS / "cl_matrix").exists(), reason="no OpenCL headers")
@pytest.mark.parametrize("option", [KERNEL, "-d", CALL])
@pytest.mark.parametrize(
    "how, env, shown",
    [("--start-paused", {}, [3, 4]), ("--start-paused", {ENABLE: "1"}, [1, 2, 3, 4]), ("--iterations it:2-4", {}, [2, 3, 4])],
)
def test_itt_decides_what_is_recorded_of_devices(xstrace, option, how, env, shown):
    """Also where no option asks for ITT's own events."""
    app = compile_c(xstrace.home / "writes", WRITES, "-lOpenCL")
    run = xstrace(f"{option} {how} {'-v' if option == '-d' else ''}", app, env=env)
    if option == KERNEL:
        assert sorted(s.args["bytes"] for s in run.trace.device) == [100 + i for i in shown]
    elif option == CALL:
        assert sum(s.name == "clEnqueueWriteBuffer" for s in run.trace.slices) == len(shown)
    else:
        assert [i for i in range(1, 7) if f"[{100 + i}" in run.err] == shown, run.err


def test_iterations_of_a_frame(xstrace):
    text = "=a0 " + " ".join(f"frame:f =a{i} end:f =between" for i in range(1, 5))
    assert steps(xstrace, f"{ITT} --iterations f:2-3", text) == "a2 a3 between"


def test_iterations_inside_a_paused_part_count(xstrace):
    text = "+step =a1 - resume +step =a2 - pause +step =a3 - resume +step =a4 -"
    assert steps(xstrace, f"{PAUSED} --iterations step:2-3", text) == "a2 step"


@pytest.mark.parametrize(
    "options",
    [
        "--iterations step",
        "--iterations step:0",
        "--iterations step:3-2",
        "--iterations :3",
        "--iterations step:1-x",
        f"{ITT} --flight-recorder 1s --trigger task:a",
        f"{ITT} --flight-recorder 1s --trigger task:>1ms",
        f"{ITT} --flight-recorder 1s --trigger mark:a",
        "--session a/b",
        "--session ",
        "--pause a:b",
        "--ranks-to-sample 1,x",
        "--ranks-to-sample 3-1",
        "--ranks-to-sample 1,",
        "--delay 1x",
        "--follow-child-process 2",
    ],
)
def test_wrong_values(options):
    option = re.findall(r"--[\w-]+", options)[-1]
    result = xs(*options.split(" "), "echo", "started")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (125, "", 1)
    assert option in result.stderr


# ---- time ----


LOOP = ["=first", "loop:tick"]


def run_for(xstrace, options, seconds):
    """Much longer than what is to be recorded: a machine that is busy with something else opens and shuts late."""
    run = xstrace.start(options, "itt_control", LOOP, stdin=subprocess.PIPE)
    time.sleep(seconds)
    run.process.communicate(b"\n")
    return run.finish()


def window(run):
    """The first task's start; of the others the first start, the last end, and all."""
    ticks = [s for s in run.trace.tasks if s.name == "app::tick"]
    begin = min(s.start for s in run.trace.slices)
    return begin, min(s.start for s in ticks), max(s.end for s in ticks), ticks


def test_duration(xstrace):
    run = run_for(xstrace, f"{ITT} --duration 200ms", 1.5)
    begin, first, last, ticks = window(run)
    assert "first" in names(run) and 20e6 < last - begin < 1e9
    assert sum(s.unfinished for s in ticks) <= 1


def test_delay(xstrace):
    run = run_for(xstrace, f"{ITT} --delay 400ms", 1.5)
    assert "first" not in names(run)
    begin, first, last, ticks = window(run)
    assert 100e6 < last - first < (run.seconds - 0.4) * 1e9


def test_delay_and_duration(xstrace):
    """The window has the length that was asked for, wherever it lies."""
    run = run_for(xstrace, f"{ITT} --delay 200ms --duration 200ms", 1.5)
    begin, first, last, ticks = window(run)
    assert "first" not in names(run) and 100e6 < last - first < 1e9
    other = run_for(xstrace, f"{ITT} --delay 10", 0.1)
    assert not other.trace_files and any("No event of interest" in line for line in other.said)


# ---- ranks ----

RANKS = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PALS_RANKID", "RANK"]


def test_ranks_add_up(xstrace):
    for rank, traced in (("0", True), ("2", True), ("3", False), ("5", True)):
        shown = steps(xstrace, f"{ITT} --ranks-to-sample 0 --ranks-to-sample 2 --ranks-to-sample=4-5", "=a", env={"RANK": rank})
        assert (shown == "a") == traced, rank


@pytest.mark.parametrize("variable", RANKS)
def test_ranks(xstrace, variable):
    for rank, traced in (("0", True), ("2", False), ("3", True), ("11", True), ("16", False)):
        shown = steps(xstrace, f"{ITT} --ranks-to-sample 0,3,8-15", "=a", env={variable: rank})
        assert (shown == "a") == traced, rank


def test_the_first_variable_counts(xstrace):
    for i, variable in enumerate(RANKS[:-1]):
        env = {variable: "1", **{other: "0" for other in RANKS[i + 1 :]}}
        assert steps(xstrace, f"{ITT} --ranks-to-sample 0", "=a", env=env) == ""


def test_untraced_rank_is_the_program_itself(xstrace):
    """Status, output, environment, and no process between."""
    script = 'echo $PPID; env | grep -c "XSTRACE_RUN\\|PRELOAD\\|INTEL_\\|OPENCL_"; kill -TERM $$'
    options = f"{ITT} --ranks-to-sample 5 --output-dir-path never"
    run = xstrace(options, "sh", ["-c", script], env={"RANK": "4"})
    assert (run.status, run.out, run.err) == (-15, f"{os.getpid()}\n0\n", "")
    assert not run.said and not (run.cwd / "never").exists()
    (xstrace.cwd / "script").write_text("echo a script without its first line: $1\n")
    (xstrace.cwd / "script").chmod(0o755)
    run = xstrace("--ranks-to-sample 5", "./script", ["x"], env={"RANK": "4"})
    assert (run.status, run.out) == (0, "a script without its first line: x\n")
    run = xstrace("--ranks-to-sample 5", "nonexistent", env={"RANK": "4"})
    assert run.status == 127


@pytest.mark.parametrize("env", [{}, {"RANK": "x"}, {"RANK": ""}])
def test_no_rank(xstrace, env):
    run = xstrace(f"{ITT} --ranks-to-sample 7", "itt_control", ["=a"], env=env)
    assert names(run) == "a"
    assert len([line for line in run.said if "no rank" in line]) == 1


# ---- descendants ----


def test_descendants_are_not_followed(xstrace):
    own = f"{ITT} --follow-child-process 0"
    assert steps(xstrace, own, "=a fork =b") == "a"
    assert steps(xstrace, f"{ITT} --follow-child-process 1", "=a fork =b") == "a b"
    assert steps(xstrace, own, "=a exec =b fork =c exec =d") == "a b"
    run = xstrace(own, "sh", ["-c", f"{APPS}/itt_control =a; exec {APPS}/itt_control =b"])
    assert (run.status, run.err, names(run)) == (0, "", "b")


def test_run_does_not_wait_for_those_not_followed(xstrace):
    script = f"{APPS}/itt_control =b sleep:40000 & echo $!; exec {APPS}/itt_control =a"
    run = xstrace(f"{ITT} --follow-child-process 0", "sh", ["-c", script])
    other = int(run.out.split()[0])
    assert names(run) == "a" and alive(other)
    os.kill(other, signal.SIGKILL)


# ---- sessions ----


def links():
    return glob.glob("/dev/shm/xstrace-session-*") + glob.glob("/tmp/xstrace-session-*")


def start_loop(xstrace, session, options=ITT, text="say:ready loop:tick", **more):
    run = xstrace.start(f"{options} --session {session}", "itt_control", text.split(), stdin=subprocess.PIPE, **more)
    run.wait_for_output()
    return run


def end_loop(run):
    run.process.communicate(b"\n")
    return run.finish()


def control(what, session, status=0):
    result = xs(what, session)
    assert result.returncode == status, result.stderr
    said, silent = (result.stdout, result.stderr) if status == 0 else (result.stderr, result.stdout)
    assert silent == "" and said.count("\n") == 1
    assert said.startswith(f"[INFO] Session {session} " if status == 0 else "xstrace: ")
    return said


def test_pause_and_resume(xstrace):
    run = start_loop(xstrace, "s1")
    pid = run.child("itt_control")
    time.sleep(0.1)
    said = control("--pause", "s1")
    assert re.search(rf"s1 is paused: run xstrace-\w+, 1 process \({pid} itt_control\)$", said)
    assert "is paused already" in control("--pause", "s1")
    time.sleep(0.3)
    assert "records again: run" in control("--resume", "s1")
    assert "is not paused: run" in control("--resume", "s1")
    time.sleep(0.1)
    end_loop(run)
    assert (run.status, run.err) == (0, "")
    ticks = sorted((s for s in run.trace.tasks), key=lambda s: s.start)
    gaps = [b.start - a.end for a, b in zip(ticks, ticks[1:]) if b.start - a.end > 200e6]
    assert len(gaps) == 1
    assert len([s for s in ticks if s.unfinished]) <= 1
    assert not links()


def play(xstrace, options, text):
    """itt_control's steps, and between them xstrace --pause, --resume and --stop (!pause, …) from outside. The tasks that are in the trace."""
    steps, commands = [], []
    for step in text.split():
        if step.startswith("!"):
            steps += [f"say:here{len(commands)}", "wait"]
            commands.append(step[1:])
        else:
            steps.append(step)
    run = xstrace.start(options, "itt_control", steps, stdin=subprocess.PIPE)
    for i, command in enumerate(commands):
        wait_until(lambda: f"here{i}\n" in (run.log / "stdout").read_text())
        if command == "enough":  # time for a --delay or --duration
            time.sleep(2.5)
        else:
            assert xs("--" + command, "s").returncode == 0
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()
    run.process.stdin.close()
    run.finish()
    assert (run.status, run.err) == (0, ""), run.err
    return names(run)


SESSION = ITT + " --session s"
SESSION_PAUSED = PAUSED + " --session s"


@pytest.mark.parametrize(
    "options, text, shown",
    [
        # unitrace's recipe
        (SESSION_PAUSED, "=a !resume =b !pause =c !resume =d", "b d"),
        (SESSION_PAUSED, "=a !pause =b !resume =c", "c"),
        (SESSION_PAUSED, "=a !stop =b", ""),
        (SESSION_PAUSED, "=a !resume =b !stop =c", "b"),
        # what the program says does not count, neither before the first command nor later
        (SESSION_PAUSED, "=a resume =b !resume =c pause =d !pause =e resume =f", "c d"),
        (SESSION_PAUSED, "=a pause =b !resume =c resume =d pause =e", "c d e"),
        (SESSION_PAUSED, "=a set:1 =b !resume =c set:0 =d unset =e !pause =f set:1 =g", "c d e"),
        (SESSION_PAUSED, "=a put:1 resume =b !resume =c pause clear =d", "c d"),
        (SESSION, "=a pause =b !pause resume =c !resume pause set:0 =d", "a b d"),
        # neither do children and other programs, whatever their parents said
        (SESSION_PAUSED, "resume =a fork =b !resume pause =c exec =d !pause =e", "c d"),
        (SESSION_PAUSED, "!resume pause =a exec pause =b fork pause =c !pause resume =d", "a b c"),
        # windows are the user's own word: both must be open
        (SESSION_PAUSED + " --delay 2s", "=a !enough =b !resume =c !pause =d", "c"),
        (SESSION_PAUSED + " --delay 2s", "=a !resume resume =b !enough =c !pause =d", "c"),
        (SESSION + " --delay 2s", "!pause =a !enough =b !resume =c", "c"),
        (SESSION + " --duration 2s", "=a !pause =b !resume =c !enough =d !pause !resume =e", "a c"),
        (SESSION_PAUSED + " --duration 2s", "!resume =a !enough =b !pause !resume =c", "a"),
        (SESSION + " --iterations i:2-3", "=i !pause =i !resume =a =i =b", "a i"),
        (SESSION_PAUSED + " --iterations i:2-3", "!resume =a +i =b - !pause +i =c - !resume +i =d - =e", "d i"),
        (SESSION + " --iterations i:2", "+i =a - !resume =b +i =c - =d", "c i"),
    ],
)
def test_orders_from_outside_and_inside(xstrace, options, text, shown):
    assert play(xstrace, options, text) == shown


def test_what_a_resume_says(xstrace):
    run = start_loop(xstrace, "s", options=PAUSED)
    assert "records again: run" in control("--resume", "s")
    wait_until(lambda: list(run.cwd.glob("*.json")))
    end_loop(run)
    assert run.trace.tasks
    run = start_loop(xstrace, "s", options=f"{ITT} --iterations tick:2-3")
    assert "it records what --iterations says: run" in control("--resume", "s")
    end_loop(run)


def test_session_of_several_processes(xstrace):
    """Also those that join while it is paused."""
    os.mkfifo(xstrace.home / "later")
    script = (
        f"exec 3<>{xstrace.home}/later; for i in 1 2; do {APPS}/itt_control =a say:ready wait =b <&3 & done; "
        f"read line; {APPS}/itt_control =c say:ready wait =d <&3 & read line; echo >&3; echo >&3; echo >&3; wait"
    )
    run = xstrace.start(f"{ITT} --session many", "sh", ["-c", script], stdin=subprocess.PIPE)
    wait_until(lambda: (run.log / "stdout").read_text().count("ready") == 2)
    said = control("--pause", "many")
    assert re.search(r"3 processes \(\d+ sh, \d+ itt_control, \d+ itt_control\)$", said)
    run.process.stdin.write(b"\n")
    run.process.stdin.flush()
    wait_until(lambda: (run.log / "stdout").read_text().count("ready") == 3)
    assert "4 processes" in control("--pause", "many")
    assert "4 processes" in control("--resume", "many")
    run.process.stdin.close()
    run.finish()
    assert names(run) == "a a b b d" and run.status == 0
    assert not links()


def test_stop(xstrace):
    run = start_loop(xstrace, "s-2.x", text="+open say:ready loop:tick =late fork =child")
    directory = run.dir
    began = time.monotonic()
    said = control("--stop", "s-2.x")
    assert time.monotonic() - began < 15
    (path,) = run.cwd.glob("*.json")
    assert said.endswith(f"; traces: {path}\n")
    assert not os.path.exists(directory) and not links()
    wait_until(lambda: "xstrace-drain" not in run.children())
    assert alive(run.child("itt_control"))
    before = path.read_bytes()
    control("--stop", "s-2.x", 125)
    end_loop(run)
    assert (run.status, run.err) == (0, "") and path.read_bytes() == before
    assert run.trace.other["end"] == "stopped" and "status" not in run.trace.other
    assert len([s for s in run.trace.tasks if s.unfinished and s.name == "app::open"]) == 1
    assert "late" not in names(run) and "child" not in names(run)
    assert [line for line in run.said if "Timeline" not in line] == []


def test_resume_after_a_stop(xstrace):
    """The drain process has not answered the stop yet, and will."""
    run = start_loop(xstrace, "again")
    drain = run.drain
    os.kill(drain, signal.SIGSTOP)
    stop = subprocess.Popen([XSTRACE, "--stop", "again"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: "being stopped" in xs("--resume", "again").stderr, 5)
    done = xs("--resume", "again")
    assert (done.returncode, done.stdout) == (125, "") and "session again is being stopped" in done.stderr and done.stderr.count("\n") == 1
    os.kill(drain, signal.SIGCONT)
    stop.communicate(timeout=30)
    assert stop.returncode == 0
    end_loop(run)


@pytest.mark.parametrize("follow", [0, 1])
def test_nobody_joins_after_a_stop(xstrace, follow):
    """Not even where there is a place for it: the run's directory, made again. The program's own process, its children, and what it calls by exec."""
    options = f"{ITT} --follow-child-process {follow}"
    run = start_loop(xstrace, "s", options, "=a say:ready wait =late fork frame:new end:new exec =again fork frame:new end:new")
    directory = run.dir
    control("--stop", "s")
    wait_until(lambda: not os.path.exists(directory))
    os.mkdir(directory, 0o700)
    try:
        run.process.communicate(b"\n")
        run.wait()
        assert (run.status, run.err, os.listdir(directory)) == (0, "", [])
    finally:
        shutil.rmtree(directory)
    assert names(run.collect()) == "a"


@pytest.mark.parametrize("how", ["TERM", "KILL", "7"])
def test_end_after_a_stop(xstrace, how):
    """As without xstrace."""
    end = f"exit {how}" if how == "7" else f"kill -{how} $$"
    script = f"{APPS}/itt_control =a say:ready wait; {end}"
    run = xstrace.start(f"{ITT} --session s", "sh", ["-c", script], stdin=subprocess.PIPE)
    run.wait_for_output()
    control("--stop", "s")
    end_loop(run)
    assert run.status == (7 if how == "7" else -getattr(signal, f"SIG{how}"))
    assert names(run) == "a" and [line for line in run.said if "Timeline" not in line] == []


def test_stop_while_paused(xstrace):
    run = start_loop(xstrace, "s")
    time.sleep(0.05)
    control("--pause", "s")
    control("--stop", "s")
    end_loop(run)
    assert run.trace.other["end"] == "stopped"


def test_stop_of_many_busy_threads(xstrace):
    run = xstrace.start(f"{ITT} --session busy --ring-size 64K", "itt_tasks", [3000000, 4])
    wait_until(lambda: run.dir and list(run.cwd.glob("*.json")))
    control("--stop", "busy")
    run.finish()
    assert run.status == 0 and run.trace.other["end"] == "stopped"


def test_stop_of_reports(xstrace):
    run = start_loop(xstrace, "s", options="-h -d")
    assert "reports" in control("--stop", "s")
    assert end_loop(run).status == 0


@pytest.mark.long
def test_pause_of_a_busy_program(xstrace):
    """Whatever the threads were in the middle of."""
    run = xstrace.start(f"{ITT} --session busy", "itt_tasks", [800000, 2, "--depth", 8])
    wait_until(lambda: run.dir and list(run.cwd.glob("*.json")))
    while run.process.poll() is None and xs("--pause", "busy").returncode == 0:
        xs("--resume", "busy")
    run.finish()
    assert run.status == 0 and run.trace.other["lost"] == 0


def test_pause_of_a_program_with_calls(xstrace):
    """Calls and device work that last longer than a pause."""
    run = xstrace.start(f"{ITT} {CALL} {KERNEL} --session gpu", "gemm", [256, 60])
    wait_until(lambda: run.dir and list(run.cwd.glob("*.json")), 60)
    while run.process.poll() is None and xs("--pause", "gpu").returncode == 0:
        xs("--resume", "gpu")
    run.finish()
    assert run.status == 0 and run.trace.device


def test_window_and_session(xstrace):
    run = start_loop(xstrace, "s", options=f"{ITT} --delay 10")
    control("--pause", "s")
    assert "--delay or --duration still keeps it" in control("--resume", "s")
    end_loop(run)
    assert not run.trace_files


def test_name_in_use(xstrace):
    run = start_loop(xstrace, "s")
    result = xs(ITT, "--session", "s", "--output-dir-path", "new", "echo", "started", cwd=run.cwd)
    assert (result.returncode, result.stdout) == (125, "")
    assert result.stderr.count("\n") == 1 and str(run.child("itt_control")) in result.stderr
    assert not (run.cwd / "new").exists()
    assert len(glob.glob("/dev/shm/xstrace-*")) == 2  # the first one's directory and name
    control("--pause", "s")  # it is still the first one's
    end_loop(run)


def test_name_left_over(xstrace):
    """Of a run directory that is gone, and of one whose processes are dead."""
    os.symlink("/dev/shm/xstrace-gone", f"/dev/shm/xstrace-session-{os.getuid()}-s")
    assert "is over" in control("--pause", "s", 125)
    assert steps(xstrace, f"{ITT} --session s", "=a") == "a"
    assert not links()
    run = start_loop(xstrace, "s")
    os.kill(run.drain, signal.SIGKILL)
    wait_until(lambda: "xstrace-drain" not in run.children())
    assert "drain process is dead" in control("--stop", "s", 125)
    assert "is paused" in control("--pause", "s")
    run.process.communicate(b"\n")
    run.wait()
    assert "is over" in control("--resume", "s", 125)
    assert len(links()) == 1
    assert xs("--recover", run.dir, cwd=run.cwd).returncode == 0
    run.collect()
    assert not links()


def test_ranks_of_a_job_have_one_name(xstrace):
    """As in unitrace, where they share it: one command for all of them, which says what became of each."""
    job = [start_loop(xstrace, "s", options=PAUSED, env={"PMI_RANK": str(rank)}) for rank in range(3)]
    result = xs(ITT, "--session", "s", "echo", "started", env=os.environ | {"PMI_RANK": "1"}, cwd=job[0].cwd)
    assert (result.returncode, result.stdout) == (125, "") and "runs already" in result.stderr
    alone = start_loop(xstrace, "s1", options=PAUSED)  # another name that begins alike
    for command, what in (("--pause", "is paused already"), ("--resume", "records again"), ("--stop", "is stopped")):
        result = xs(command, "s")
        lines = result.stdout.splitlines()
        assert (result.returncode, result.stderr, len(lines)) == (0, "", 3)
        for rank, line in enumerate(lines):
            assert re.match(rf"\[INFO\] Session s {what}: rank {rank}, run xstrace-\w+, 1 process", line)
        if command == "--resume":
            wait_until(lambda: len(list(xstrace.cwd.glob("*.json"))) == 3)
    assert "no session s " in control("--pause", "s", 125)
    for run in job:
        run.process.communicate(b"\n")
        run.wait()
        assert run.status == 0
    end_loop(alone)
    assert len({path.suffixes[-2] for path in xstrace.cwd.glob("*.json")} & {".0", ".1", ".2"}) == 3 and not links()


def test_no_such_session():
    assert "no session nobody" in control("--pause", "nobody", 125)
    assert "no session nobody" in control("--resume", "nobody", 125)
    assert "no session nobody" in control("--stop", "nobody", 125)


def test_commands_take_no_application():
    result = xs("--pause", "s", "echo", "started")
    assert (result.returncode, result.stdout) == (125, "") and "echo" in result.stderr
    result = xs("--pause", "s", "--resume", "s")
    assert result.returncode == 125 and "one of" in result.stderr


@root_only
def test_session_of_another_user(xstrace, public):
    run = start_loop(xstrace, "s")
    result = xs("--pause", "s", launcher=copy_build(public), user=NOBODY)
    assert result.returncode == 125 and "another user (uid 0)" in result.stderr
    # a link that somebody else has put where mine would be, even to a run of mine
    link = f"/dev/shm/xstrace-session-{os.getuid()}-"
    os.chmod("/dev/shm", 0o1777)
    subprocess.run(["ln", "-s", run.dir, link + "t"], user=NOBODY, check=True)
    assert "another user's" in control("--pause", "t", 125)
    os.unlink(link + "t")
    end_loop(run)
    link += "s"
    subprocess.run(["ln", "-s", "/tmp", link], user=NOBODY, check=True)
    assert "another user's" in control("--pause", "s", 125)
    result = xs(ITT, "--session", "s", "true", cwd=xstrace.cwd)
    assert result.returncode == 125 and "another user's" in result.stderr
    os.unlink(link)
    os.mkdir("/dev/shm/theirs", 0o700)
    os.chown("/dev/shm/theirs", NOBODY, NOBODY)
    os.symlink("/dev/shm/theirs", link)
    assert "another user's" in control("--stop", "s", 125)
    os.unlink(link)
    os.rmdir("/dev/shm/theirs")


def test_application_that_cannot_be_run_leaves_no_name(xstrace):
    (xstrace.cwd / "garbage").write_bytes(b"\x7fELF\0garbage")
    (xstrace.cwd / "garbage").chmod(0o755)
    run = xstrace("--session s", "./garbage")
    assert run.status == 126
    wait_until(lambda: not links())


# ---- kernels ----


def kernels(run):
    """Which kernels are in the trace; everything else must be there whatever is filtered."""
    lines = expected_lines(run.out)
    trace = run.trace
    for (_, _, kind, _), n in lines.items():
        if kind in ("writes", "reads", "maps", "unmaps", "fills"):
            assert trace.count(kind) == n, kind
    found = {s.base for s in trace.device if "global" in s.args}
    for name in found:
        assert trace.count("kernels", name) == 3
    # each device command has its arrow, and the host's calls are all there
    assert len([e for e in trace.events if e["ph"] == "f" and e["name"] == "dep"]) == len(trace.device)
    assert len([s for s in trace.calls if s.name == "clEnqueueNDRangeKernel"]) == 6
    return " ".join(sorted(found))


@pytest.mark.long(keep=9)
@pytest.mark.parametrize(
    "options, shown",
    [
        ([], "multiply reduce"),
        (["--include-kernels", "mult"], "multiply"),
        (["--include-kernels", "nothing, educ"], "reduce"),
        (["--include-kernels", "u"], "multiply reduce"),
        (["--include-kernels", "nothing"], ""),
        (["--include-kernels", "\tnothing , mult \t,\n"], "multiply"),
        (["--exclude-kernels", "mult,nothing"], "reduce"),
        (["--exclude-kernels", " mult\t ,nothing "], "reduce"),
        (["--include-kernels", "mult,red", "--exclude-kernels", "multi"], "reduce"),
        (["--include-kernels", '"mult",x'], "multiply"),
        (["--include-kernels", 'x , " mult ", "'], "multiply"),
        (["--include-kernels", '"mult,x"'], ""),
        (["--include-kernels", '"mult'], "multiply"),
        (["--exclude-kernels", '"x,red",mult'], "reduce"),
        (["--exclude-kernels", '"mu""red"'], ""),
        # given again, they add up
        (["--include-kernels", "mult", "--include-kernels", "red"], "multiply reduce"),
        (["--exclude-kernels", "mult", "--exclude-kernels", "x,red"], ""),
        (["--include-kernels", '"x', "--include-kernels", "red"], "reduce"),
        (["--include-kernels-file", "reduce", "--include-kernels-file", "mult"], "multiply reduce"),
        (["--include-kernels", "x", "--include-kernels-file", "quoted"], "multiply"),
        (["--include-kernels-file", "reduce"], "reduce"),
        (["--include-kernels-file", "both"], "multiply reduce"),
        (["--include-kernels", "red", "--include-kernels-file", "mult"], "multiply reduce"),
        (["--exclude-kernels-file", "reduce"], "multiply"),
        (["--exclude-kernels-file", "both"], ""),
    ],
)
def test_kernels(xstrace, options, shown):
    (xstrace.cwd / "reduce").write_text("\n# no comment\r\n reduce\t\r\n\n")
    (xstrace.cwd / "both").write_text("mul,\nfoo,reduc,bar")
    (xstrace.cwd / "mult").write_text("mult")
    (xstrace.cwd / "quoted").write_text('"a,b","mult"\n"reduce,\n')
    run = xstrace([KERNEL, *options], "gemm", ["--expected", 64, 3])
    assert (run.status, run.err) == (0, "")
    assert kernels(run) == shown


def test_kernels_in_the_report(xstrace):
    run = xstrace("-h -d --include-kernels reduce", "gemm", [64, 3])
    assert re.search(r"\breduce\b", run.err + "\n".join(run.said)) and "multiply" not in run.err
    assert re.search(r"clEnqueueNDRangeKernel,\s*6,", run.err)


def test_excluded_calls(xstrace):
    """They are nowhere; what they gave to the device is there."""
    options = "-h -c -o log --chrome-call-logging --chrome-device-logging"
    run = xstrace([*options.split(), "--exclude-calls", "NDRange, clSetKernelArg"], "gemm", [64, 3])
    seen = {s.name for s in run.trace.calls}
    assert "clEnqueueReadBuffer" in seen and not seen & {"clEnqueueNDRangeKernel", "clSetKernelArg"}
    assert {s.base for s in run.trace.device if "global" in s.args} == {"multiply", "reduce"}
    text = "".join(path.read_text() for path in run.cwd.glob("log.*"))
    assert "clEnqueueReadBuffer" in text and "NDRange" not in text and "clSetKernelArg" not in text
    excluded = run.trace.other["excluded_calls"]
    whole = xstrace(options.split(), "gemm", [64, 3]).trace
    assert len(whole.calls) == len(run.trace.calls) + excluded and excluded and "excluded_calls" not in whole.other
    told = subprocess.run([ROOT / "scripts/xstrace-summary", run.trace_files[0]], capture_output=True, text=True, check=True).stdout
    assert f"nothing lost, without {excluded} calls of --exclude-calls" in told
    # where arrows begin and end is never left out
    run = xstrace([KERNEL, "--exclude-calls", "NDRange"], "gemm", ["--expected", 64, 3])
    assert kernels(run) == "multiply reduce"


def test_calls_that_fill_a_large_trace_are_told(xstrace):
    """By a program that polls: the functions, and the option that leaves them out."""
    (xstrace.cwd / "poll.py").write_text(
        "import ctypes, sys\n"
        "cl = ctypes.CDLL('libOpenCL.so.1')\n"
        "ask, other, at = cl.clGetPlatformIDs, cl.clGetExtensionFunctionAddress, ctypes.byref(ctypes.c_uint(0))\n"
        "other.restype = ctypes.c_void_p\n"
        "for i in range(int(sys.argv[1])):\n"
        "    ask(0, None, at)\n"
        "    if not i % 32: other(b'none')\n"
    )
    told = "[INFO] 96 % of the calls in it are of clGetPlatformIDs. If these only poll: --exclude-calls clGetPlatformIDs leaves them out"
    for calls, lines in ((2_600_000, [told]), (1000, [])):
        result = xs("--chrome-call-logging", sys.executable, "poll.py", calls, cwd=xstrace.cwd)
        (trace,) = xstrace.cwd.glob("*.json")
        assert result.returncode == 0 and (trace.stat().st_size > 256 << 20) == bool(lines)
        trace.unlink()
        assert [line for line in result.stderr.splitlines() if "--exclude-calls" in line] == lines


def test_excluded_calls_of_no_function(xstrace):
    result = xs("--exclude-calls", " , ", "echo", "started", cwd=xstrace.cwd)
    assert (result.returncode, result.stdout) == (125, "")
    assert result.stderr == "xstrace: --exclude-calls names no function\n"
    result = xs("--exclude-calls", "x" * 1024, "echo", "started", cwd=xstrace.cwd)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (125, "", 1) and "--exclude-calls" in result.stderr
    assert xstrace("--chrome-itt-logging --exclude-calls " + "x" * 1023, "itt_tasks", [1]).status == 0


def test_kernel_files_that_cannot_be_read(xstrace):
    (xstrace.cwd / "long").write_text("x" * 16384)
    (xstrace.cwd / "zero").write_bytes(b"a\0b")
    (xstrace.cwd / "empty").write_text(" \n,\n")
    (xstrace.cwd / "dir").mkdir()
    for which in ("include", "exclude"):
        for name in ("missing", "long", "zero", "empty", "dir"):
            option = f"--{which}-kernels-file"
            result = xs(option, name, "echo", "started", cwd=xstrace.cwd)
            assert (result.returncode, result.stdout) == (125, ""), name
            assert result.stderr.count("\n") == 1 and option in result.stderr
    (xstrace.cwd / "longest").write_text("x" * 16383)
    run = xstrace([KERNEL, "--exclude-kernels-file", "longest"], "gemm", ["--expected", 64, 3])
    assert kernels(run) == "multiply reduce"


TOGGLES = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *toggles(void *unused)
{
	for (;;) {
		setenv("PTI_ENABLE_COLLECTION", "0", 1), usleep(1 + rand() % 50);
		setenv("PTI_ENABLE_COLLECTION", "1", 1), usleep(1 + rand() % 50);
	}
	return unused;
}
__attribute__((constructor)) static void start(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, toggles, NULL);
}
"""


@pytest.mark.skipif(not (APPS / "ze_calls").exists() or not (APPS / "cl_enqueue").exists(), reason="no Level Zero or OpenCL headers")
@pytest.mark.parametrize("app, args", [("ze_calls", ["10", "3000"]), ("cl_enqueue", ["4", "3000"])], ids=["ze_calls", "cl_enqueue"])
def test_pauses_in_the_middle_of_calls(xstrace, app, args):
    """Work whose call returned in a pause has no arrow from a call that is not in the trace."""
    library = compile_c(xstrace.home / "toggles.so", TOGGLES, "-shared", "-fPIC")
    env = {"LD_PRELOAD": str(library), "ZE_ENABLE_ALT_DRIVERS": str(BUILD / "tests/softgpu/libze_softgpu.so")}
    run = xstrace(f"{CALL} {KERNEL} --start-paused", app, args, env=env, timeout=60)
    assert run.status == 0 and run.trace.device
    check = subprocess.run([ROOT / "scripts/xstrace-check", run.trace.path], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
