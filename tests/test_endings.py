"""However a program, the launcher or the drain process ends, the trace is complete."""

import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import APPS, BUILD, ROOT, XSTRACE, Trace, alive, compile_c, expected_lines, limited, wait_until
from test_opencl import check_device

ITT = "--chrome-itt-logging"
WAYS = """return exit _exit quick_exit abort segv sigterm sigkill sigint exec pthread_exit
    thread_exit atexit_trace fork_exit fork__exit vfork_exec spawn detached""".split()


def without_pids(out):
    """The program's output, the blocks of its processes in any order."""
    return sorted(re.sub(r"process: \d+|(?<=atleast: )\d+", "", out).split("\n\n"))


@pytest.mark.parametrize("how", WAYS)
def test_every_way_to_end(xstrace, how):
    bare = xstrace.bare("itt_end", [how])
    run = xstrace(ITT, "itt_end", [how])
    assert (run.status, run.err) == (bare.status, bare.err)
    assert without_pids(run.out) == without_pids(bare.out)
    run.check_expected()
    assert all(s.end > s.start for t in run.traces for s in t.tasks if s.unfinished)
    # the launcher's own child is the one whose end is known
    own = sorted((t for t in run.traces if t.metadata["ppid"] == run.pid), key=lambda t: t.tasks[0].start)
    ends = [t.other["end"] for t in own]
    statuses = [t.other.get("status") for t in own]
    if how == "exec":
        assert ends == ["exec", "exited"]
    elif run.status < 0:
        assert (ends, statuses) == (["killed"], [-run.status])
    else:
        assert (ends, statuses) == (["exited"], [run.status])


@pytest.mark.parametrize("option", ["--session ends", "--flight-recorder 10s"])
def test_signals_when_it_has_ended(xstrace, option):
    """They come too late for the application: its status stays."""
    for _ in range(20):
        run = xstrace.start(f"{ITT} {option}", "sh", ["-c", "trap '' USR1 TERM; echo up; sleep 0.05; exit 3"])
        run.wait_for_output("up\n")
        while run.process.poll() is None:
            os.kill(run.pid, signal.SIGUSR1)
            os.kill(run.pid, signal.SIGTERM)
        assert run.process.returncode == 3


def test_one_core_file(xstrace):
    """The program's; the launcher, which ends by the same signal, leaves none beside it, nor in its place."""
    began = "import os, sys; p = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); print(os.WCOREDUMP(os.waitpid(p, 0)[1]))"
    crash = ["/bin/sh", "-c", "kill -SEGV $$"]
    allowed = limited(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)[1])
    if "True" not in xstrace.bare(sys.executable, ["-c", began, *crash], preexec_fn=allowed).out:
        pytest.skip("no core files here")
    run = xstrace.bare(sys.executable, ["-c", began, XSTRACE, ITT, *crash], preexec_fn=allowed)
    assert (run.status, run.out) == (0, "False\n")
    if re.fullmatch(r"core(\.%p)?", Path("/proc/sys/kernel/core_pattern").read_text().strip()):
        assert list(run.cwd.glob("core*"))


@pytest.mark.parametrize("number", [0, signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL])
def test_how_a_descendant_ended(xstrace, number):
    """Linux tells since 6.15 whoever holds a pidfd; before, its parent may be faster than we."""
    run = xstrace.start(ITT, "sh", ["-c", f"{APPS / 'itt_steps'} tasks a 1 wait; echo told $?"], stdin=subprocess.PIPE)
    (path,) = wait_until(lambda: list(xstrace.cwd.glob("itt_steps.*.json")))  # so the drain process knows it
    if number:
        os.kill(int(path.name.split(".")[1]), number)
    run.process.stdin.close()
    run.finish()
    assert f"told {128 + number if number else 0}\n" in run.out
    (trace,) = (t for t in run.traces if t.path.name == path.name)
    wanted = ("killed", number) if number else ("exited", 0)
    release = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
    assert (trace.other["end"], trace.other.get("status")) in {wanted} | (set() if release >= (6, 15) else {("unknown", None)})


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", ["detached", "thread_exit", "fork__exit", "exec"])
def test_again_and_again(xstrace, how):
    """What races with the end shows in some runs only."""
    for _ in range(5):
        run = xstrace(ITT, "itt_end", [how])
        assert run.status == 7
        run.check_expected()
        if how == "exec":
            assert sorted(t.other["end"] for t in run.traces) == ["exec", "exited"]


SLOW = r"""
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int slow; /* the run directory has been opened for the run's files; now for the process's own */
int fstat64(int fd, struct stat *st)
{
	int result = syscall(SYS_fstat, fd, st);
	if (!result && S_ISDIR(st->st_mode) && ++slow >= 2) usleep(BEFORE);
	return result;
}
int ftruncate64(int fd, long size) { usleep(BETWEEN); return syscall(SYS_ftruncate, fd, size); }
"""


@pytest.mark.parametrize("before, between", [(120000, 0), (0, 120000), (0, 0)])
def test_a_process_that_joins_slowly_is_not_overlooked(xstrace, before, between):
    """Whatever moment the drain process looks at, and however soon the process then ends."""
    flags = ["-shared", "-fPIC", f"-DBEFORE={before}", f"-DBETWEEN={between}"]
    library = compile_c(xstrace.home / "slow.so", SLOW, *flags)
    for how in ("return", "fork__exit", "sigkill"):
        run = xstrace(ITT, "itt_end", [how], env={"LD_PRELOAD": str(library)})
        run.check_expected()


def end_daemon(out):
    """Of itt_end: it is there still."""
    pid = int(re.search(rb"process: (\d+)\nexpected: 1 tasks end::daemon", out)[1])
    assert alive(pid)
    os.kill(pid, signal.SIGUSR1)


def test_descendants_go_on(xstrace):
    """The prompt is back at once, and whoever reads our output is not held up either."""
    run = xstrace.start(ITT, "itt_end", ["daemon"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = run.process.stdout.read()
    run.process.wait(60)
    assert run.process.returncode == 7
    time.sleep(0.1)
    assert run.dir  # the daemon's trace is not finished
    end_daemon(out)
    run.wait().collect()
    (run.log / "stdout").write_bytes(out)
    run.read_output()
    run.check_expected()
    assert len(run.traces) == 2
    daemon = max(run.traces, key=lambda t: t.pid)
    assert daemon.count("tasks", "end::daemon") == 1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("options", ["", "--queue several", "--queue out-of-order"])
@pytest.mark.parametrize("how", ["callback-exit", "_exit"])
def test_opencl_programs_that_end_in_flight(xstrace, how, options):
    for _ in range(4):
        run = xstrace("--chrome-kernel-logging", "cl_matrix", [*options.split(), "--end", how])
        assert run.status == 7
        run.check_expected()


# ---- killed at a random moment ----


def truth(path):
    """[(tid, begun, finished)] of itt_stress's file."""
    return list(struct.iter_unpack("<3Q40x", path.read_bytes()))


def check_truth(trace, path, all_of_them=True):
    """Each thread's tasks, in their order, are those that it made, or the first of them."""
    threads = trace.by_thread(trace.tasks)
    for tid, begun, finished in truth(path):
        tasks = threads[tid]
        count = sum(not s.unfinished for s in tasks)
        assert (finished if all_of_them else 0) <= count <= begun, (tid, begun, finished, count)
        assert len(tasks) <= begun and len(tasks) - count <= 1
        numbers = [int(s.name.removeprefix("stress::t")) for s in tasks]
        assert numbers == [n % 16 for n in range(len(tasks))]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("pace", [1000, 0])
@pytest.mark.parametrize("whom", ["app", "launcher", "both"])
def test_killed_at_random_moments(xstrace, whom, pace):
    for seed in range(6 if pace else 3):
        path = xstrace.home / f"truth{seed}"
        run = xstrace.start(ITT, "itt_stress", [path, 2, pace])
        app = run.child("itt_stress")
        run.wait_for_output()
        time.sleep(random.Random(seed).random() * (0.02 if pace else 0.002))
        if whom == "both":
            os.killpg(run.pid, signal.SIGKILL)
        else:
            os.kill(app if whom == "app" else run.pid, signal.SIGKILL)
        run.finish()
        assert run.status == -signal.SIGKILL
        wait_until(lambda: not alive(app))  # the launcher's end is the app's
        check_truth(run.trace, path)
        assert run.trace.other["lost"] == 0
        if whom == "app":
            assert (run.trace.other["end"], run.trace.other["status"]) == ("killed", 9)


def recover(run):
    """xstrace --recover on the run's directory, and what that left."""
    command = [XSTRACE, "--recover", run.dir]

    def attempt():
        result = subprocess.run(command, cwd=run.cwd, capture_output=True, text=True, timeout=60)
        return None if "still" in result.stderr else result  # what was killed may still be dying

    result = wait_until(attempt)
    assert result.returncode == 0, result.stderr
    assert not run.dir
    return run.collect()


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("compress", ["", " --compress zstd", " --format perfetto"])
@pytest.mark.parametrize("seed", range(6))
def test_drain_process_killed_at_a_random_moment(xstrace, seed, compress):
    """The app goes on; afterwards the trace has every task, and none of them twice."""
    path = xstrace.home / "truth"
    run = xstrace.start(ITT + compress, "itt_stress", [path, 2, 2000])
    drain, app = run.drain, run.child("itt_stress")
    run.wait_for_output()
    time.sleep(random.Random(seed).random() * 0.2)
    os.kill(drain, signal.SIGKILL)
    time.sleep(0.03)
    assert alive(app)
    os.kill(app, signal.SIGKILL)
    run.wait()
    assert run.status == -signal.SIGKILL and run.err == ""
    assert len(run.said) == 1 and f"xstrace --recover {run.dir}" in run.said[0]
    recover(run)
    check_truth(run.trace, path)
    assert run.trace.other["lost"] == 0


def time_of_threads(pid):
    """ns that each thread, but the first, has had a processor."""
    tids = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    return [int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0]) for tid in tids if tid != pid]


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("seed", range(8))
def test_busy_drain_process_killed(xstrace, seed):
    """At any instruction of it; what the rings had room for afterwards is there, too."""
    path = xstrace.home / "truth"
    run = xstrace.start(f"{ITT} --ring-size 64K", "itt_stress", [path, 2, 0])
    drain, app = run.drain, run.child("itt_stress")
    run.wait_for_output()
    time.sleep(random.Random(seed).random() * 0.008)
    os.kill(drain, signal.SIGKILL)
    before = time_of_threads(app)  # a millisecond is time for ten rings
    wait_until(lambda: all(now - then > 1e6 for then, now in zip(before, time_of_threads(app), strict=True)))
    os.kill(app, signal.SIGKILL)
    run.wait()
    recover(run)
    check_truth(run.trace, path, all_of_them=False)
    assert run.trace.other["events"] >= 2 * 64 * 1024 // 16 - 1000


# of the drain process's timeline only the newest pieces are kept: all of them begin when the program has ended
LATER = r"""
#include <stdio.h>
#include "shm.h"
int main(int argc, char **argv)
{
	static struct xs_control control;
	FILE *file = fopen(argv[1], "r+");

	fread(&control, sizeof(control), 1, file);
	for (unsigned i = 0; i < XS_SEGMENTS_SAVED; i++) {
		struct xs_segment *s = &control.segments[i];

		if (i)
			*s = control.segments[0];
		else
			s->tick += 1ull << 33, s->ns += s->slope << 1;
	}
	control.segment_count = 10 * XS_SEGMENTS_SAVED;
	rewind(file);
	fwrite(&control, sizeof(control), 1, file);
	return fclose(file);
}
"""


def test_a_long_run_is_recovered(xstrace):
    """What was recorded before the oldest piece of the timeline that is left is no record from before the run."""
    later = compile_c(xstrace.home / "later", LATER, "-D_GNU_SOURCE", "-I", ROOT / "common")
    run = xstrace.start(ITT, "sh", ["-c", f"sleep 1; {APPS}/itt_tasks 5000 1"])
    drain = run.drain
    os.kill(drain, signal.SIGSTOP)
    wait_until(lambda: "sh" not in run.children())
    os.kill(drain, signal.SIGKILL)
    run.wait()
    subprocess.run([later, Path(run.dir) / "control"], check=True)
    recover(run)
    assert run.trace.count("tasks") == 5000
    assert run.trace.other["lost"] == 0 and "corrupt" not in run.trace.other
    for command, said in (("xstrace-check", "recovered: spans that were open"), ("xstrace-summary", "recovered (without spans that were open")):
        told = subprocess.run([ROOT / "scripts" / command, *run.trace_files], capture_output=True, text=True)
        assert told.returncode == 0 and said in told.stdout and "nothing lost" not in told.stdout
    subprocess.run([BUILD / "merge/xstrace-merge", "-o", "merged.json", *run.trace_files], cwd=run.cwd, check=True, capture_output=True)
    (one,) = Trace(run.cwd / "merged.json").other["inputs"]
    assert one["recovered"] is True


@pytest.mark.long
def test_a_run_directory_that_is_removed(xstrace):
    """As somebody does who tidies up /dev/shm: what processes have mapped is written, and nobody waits for the rest."""
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    wait_until(lambda: list(run.cwd.glob("*.json")))  # the drain process has met it
    shutil.rmtree(run.dir)
    time.sleep(1.5)  # it looks for others in the meantime
    os.kill(run.child("itt_stress"), signal.SIGTERM)
    run.finish(timeout=20)
    assert run.status == -signal.SIGTERM and run.trace.count("tasks")


def test_app_of_a_killed_drain_process_ends_as_ever(xstrace):
    """And what did not fit into the rings is counted."""
    run = xstrace.start(f"{ITT} --ring-size 64K", "itt_tasks", [200000, 2])
    os.kill(run.drain, signal.SIGKILL)
    run.wait()
    assert run.status == 0 and run.err == ""
    recover(run)
    other = run.trace.other
    assert other["events"] + other["lost"] == 2 * 400000
    assert expected_lines(run.out)[None, "expected", "tasks", None] == 400000


@pytest.mark.long
def test_recover_a_run_that_is_not_over(xstrace):
    run = xstrace.start(ITT, "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    command = [XSTRACE, "--recover", run.dir]
    for _ in range(100):  # it must not touch what the drain process is writing, at whatever moment it comes
        result = subprocess.run(command, cwd=run.cwd, capture_output=True, text=True, timeout=60)
        assert result.returncode == 125 and result.stderr.count("\n") == 1
        assert "still" in result.stderr
    os.kill(run.child("itt_stress"), signal.SIGKILL)
    run.finish()
    check_truth(run.trace, xstrace.home / "truth")


@pytest.mark.parametrize("form", ["", " --format perfetto"])
def test_recover_opencl(xstrace, form):
    """Device work, names and flows survive, too."""
    body = """
import os, signal, sys, pyopencl as cl
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
kernel = cl.Kernel(cl.Program(context, "kernel void k(void) {}").build(), "k")
def work():
    for _ in range(100):
        cl.enqueue_nd_range_kernel(queue, kernel, (8,), None)
    queue.finish()
work()
print("ready", flush=True)
sys.stdin.readline()
work()
print("expected: 200 kernels k")
"""
    args = ["-c", body]
    run = xstrace.start("--chrome-kernel-logging" + form, sys.executable, args, stdin=subprocess.PIPE)
    run.wait_for_output()
    time.sleep(0.2)
    os.kill(run.drain, signal.SIGKILL)
    run.process.stdin.write(b"\n")
    run.process.stdin.close()
    run.wait()
    assert run.status == 0
    recover(run).check_expected()
    assert len(run.trace.names("process_name")) >= 2


def test_recover_several_processes(xstrace):
    """Those that joined when nobody drained any more, too; and the launcher is dead as well."""
    app = APPS / "itt_tasks"
    script = f"{app} 5; sleep 0.2; {app} 6 & {app} 7; wait; echo ready; sleep 9"
    run = xstrace.start(ITT, "sh", ["-c", script])
    wait_until(lambda: next(run.cwd.glob("*.json"), None))
    os.kill(run.drain, signal.SIGKILL)
    run.wait_for_output()
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    recover(run)
    assert sorted(t.count("tasks") for t in run.traces) == [5, 6, 7]


@pytest.mark.parametrize("seed", range(8))
def test_opencl_program_killed_at_a_random_moment(xstrace, seed):
    """Flows, too, have both their ends, and what waited for them is in order."""
    run = xstrace.start("--chrome-kernel-logging", "cl_enqueue", [100, 1000])
    app = run.child("cl_enqueue")
    time.sleep(0.1 + random.Random(seed).random() * 0.1)
    os.kill(app, signal.SIGKILL)
    run.finish()
    assert run.status == -signal.SIGKILL
    for trace in run.traces:
        check_device(trace)


@pytest.mark.parametrize(
    "call, code",
    [
        ("clFinish", "cl.enqueue_marker(queue, [gate]); queue.finish()"),
        ("clWaitForEvents", "cl.wait_for_events([gate])"),
    ],
)
def test_the_call_a_killed_thread_was_in(xstrace, call, code):
    body = f"""
import pyopencl as cl
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
gate = cl.UserEvent(context)
print("ready", flush=True)
{code}
"""
    run = xstrace.start("--chrome-call-logging", sys.executable, ["-c", body])
    run.wait_for_output()
    time.sleep(1)  # it is in the call for some tenths of it, on any machine
    os.kill(run.child("python"), signal.SIGKILL)
    run.finish()
    assert run.status == -signal.SIGKILL
    assert [t.get("in_call") for t in run.trace.other["threads"] if t["tid"] == run.trace.pid] == [call]
    stuck = [s for s in run.trace.calls if s.unfinished]
    assert [s.name for s in stuck] == [call] and stuck[0].end - stuck[0].start > 100e6


def test_nothing_is_in_a_call_at_a_normal_end(xstrace):
    run = xstrace("--chrome-call-logging", "cl_matrix")
    assert not [t for t in run.trace.other["threads"] if "in_call" in t]
    assert not [s for s in run.trace.slices if s.unfinished]
