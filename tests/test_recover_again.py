"""xstrace --recover that cannot write all: the run directory stays as it was found, and a second one writes each task once."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, Trace, compile_c, mounted, root_only, wait_until
from test_endings import recover
from test_full import start_with_drain

ITT = "--chrome-itt-logging"
STEPS = ("tasks", "a", "2000", "wait", "tasks", "b", "20000")


def killed_run(xstrace, options, words=("itt_steps", STEPS), traces=1):
    """A run whose drain process was killed before half of it."""
    run = xstrace.start(options, *words, stdin=subprocess.PIPE)
    run.wait_for_output("ready 1\n")
    wait_until(lambda: sum(path.stat().st_size > 1000 for path in xstrace.cwd.glob("itt_*")) == traces)
    time.sleep(0.1)
    os.kill(run.drain, signal.SIGKILL)
    run.process.stdin.close()
    run.wait()
    return run


def in_vain(run, cwd="/", lines=(1,), **popen):
    """What is said (one line) by an attempt that could not write all."""
    done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=cwd, capture_output=True, text=True, timeout=60, **popen)
    assert done.returncode == 125 and done.stderr.count("\n") in lines, (done.returncode, done.stderr)
    assert f"--recover {run.dir}: cannot write" in done.stderr and str(run.cwd) in done.stderr and "again" in done.stderr
    return done.stderr


def check_second(run):
    recover(run)
    assert [run.trace.count("tasks", f"steps::{name}") for name in "ab"] == [2000, 20000]
    assert run.trace.other["lost"] == 0 and "write_error" not in run.trace.other and "corrupt_rings" not in run.trace.other


@contextlib.contextmanager
def filled(place, left=0):
    """No room but so many bytes."""
    with (place / "junk").open("wb", buffering=0) as junk:
        with contextlib.suppress(OSError):
            while junk.write(bytes(4096)):
                pass
        junk.truncate(max(junk.tell() - left, 0))
        yield
    (place / "junk").unlink()


def limit(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@root_only
@pytest.mark.parametrize("options, left", [("", 0), ("", 200 << 10), (" --compress zstd", 0), (" --compress zstd", 4096), (" --format perfetto", 65536)])
def test_a_full_disk(xstrace, options, left):
    with mounted(xstrace.cwd, "size=8m"):
        run = killed_run(xstrace, ITT + options)
        for _ in range(2):
            with filled(xstrace.cwd, left):
                assert "No space left" in in_vain(run)
        if left and not options:  # what had room is a trace
            (path,) = run.cwd.iterdir()
            trace = Trace(path)
            assert 2000 <= trace.count("tasks") < 22000 and trace.other["write_error"]
        check_second(run)


@pytest.mark.parametrize("options, more", [("", -1000), ("", 50000), (" --compress zstd", -1000), (" --compress zstd", 1000), (" --format perfetto", -1000)])
def test_a_limit_for_files(xstrace, options, more):
    """Also one below the length that the file has."""
    run = killed_run(xstrace, ITT + options)
    (trace,) = run.cwd.iterdir()
    assert "File too large" in in_vain(run, preexec_fn=limit(trace.stat().st_size + more))
    check_second(run)


IN_TURN = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
static __itt_domain *domain;
static void *work(void *none)
{
	__itt_string_handle *name = __itt_string_handle_create("t");
	for (int i = 0; i < 500; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
	return none;
}
int main(void)
{
	domain = __itt_domain_create("turns");
	work(NULL);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		if (i == 10) {
			puts("ready 1");
			fflush(stdout);
			getchar();
		}
		if (!pthread_create(&thread, NULL, work, NULL))
			pthread_join(thread, NULL);
	}
	return 0;
}
"""


def test_counts_of_threads_that_shared_a_ring(xstrace):
    """Of those before the last one in it a killed drain process leaves the sums: nothing is missing in the counts."""
    app = compile_c(xstrace.home / "itt_turns", IN_TURN)
    run = killed_run(xstrace, ITT, (app, []))
    recover(run)
    other = run.trace.other
    assert run.trace.count("tasks", "turns::t") == 21 * 500 and (other["lost"], other["events"]) == (0, 21 * 1000)
    assert len(other["threads"]) + other["threads_omitted"] == 21
    assert sum(thread["records"] for thread in other["threads"]) == 1000 * len(other["threads"])


def test_a_directory_that_comes_back(xstrace):
    run = killed_run(xstrace, ITT)
    aside = xstrace.home / "aside"
    xstrace.cwd.rename(aside)
    assert "No such file" in in_vain(run)
    assert not xstrace.cwd.exists()
    aside.rename(xstrace.cwd)
    check_second(run)


@root_only
def test_a_trace_that_had_no_room_for_its_head(xstrace):
    """Nothing is there under its name, and nothing is missed."""
    with mounted(xstrace.cwd, "size=8m"):
        run = start_with_drain(signal.SIGKILL, xstrace, ITT, "itt_steps", STEPS[:3])
        run.wait()
        with filled(xstrace.cwd):
            in_vain(run, cwd=run.cwd)
        assert not list(xstrace.cwd.glob("*.json"))
        recover(run)
        assert run.trace.count("tasks") == 2000


def test_records_of_the_backlog_stay(xstrace):
    """Also those in chunks, of memory and on disk, that the first attempt has read."""
    run = xstrace.start(f"{ITT} --ring-size 64K --backlog 1M", "itt_tasks", [600000, 2])
    drain = run.drain
    wait_until(lambda: list(xstrace.cwd.glob("*.json")))
    time.sleep(0.05)
    os.kill(drain, signal.SIGKILL)
    run.wait()
    size = max(path.stat().st_size for path in xstrace.cwd.glob("*.json"))
    in_vain(run, lines=(1, 2), preexec_fn=limit(size + 20000))  # the other one: rings were full without a drain process
    recover(run)
    other = run.trace.other
    assert other["events"] + other["lost"] == 2400000 and 0 <= other["events"] - 2 * run.trace.count("tasks") < 10
    assert "corrupt_rings" not in other


def test_of_several_processes_one_that_fails(xstrace):
    """The others' traces are complete, and are left alone by the second attempt."""
    script = f"{APPS}/itt_tasks 200; exec {APPS}/itt_steps {' '.join(STEPS)}"
    run = killed_run(xstrace, ITT, ("sh", ["-c", script]), traces=2)
    in_vain(run, preexec_fn=limit(200000))
    recover(run)
    assert sorted(trace.count("tasks") for trace in run.traces) == [200, 22000]


@pytest.mark.parametrize("options", [ITT, f"{ITT} --compress zstd", f"{ITT} --format perfetto"])
def test_what_the_killed_drain_process_could_not_write(xstrace, options):
    """Its disk was full, and the rings gave their room back: what is missing then is in no ring, and the trace says so."""
    run = xstrace.start(options, "itt_steps", [*STEPS, "wait", "tasks", "c", "10"], stdin=subprocess.PIPE)
    run.wait_for_output("ready 1\n")
    path = wait_until(lambda: [path for path in xstrace.cwd.glob("itt_*") if path.stat().st_size > 1000])[0]
    size = path.stat().st_size + 1000
    resource.prlimit(run.drain, resource.RLIMIT_FSIZE, (size, size))
    run.process.stdin.write(b"\n")
    run.process.stdin.flush()
    run.wait_for_output("ready 2\n")
    wait_until(lambda: "cannot write the trace" in (run.log / "stderr").read_text())
    time.sleep(0.3)
    os.kill(run.drain, signal.SIGKILL)
    run.process.stdin.close()
    run.wait()
    done = subprocess.run([XSTRACE, "--recover", run.dir], capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and "what the disk did not take is not counted one by one" in done.stderr, done.stderr
    run.collect()
    trace = run.trace
    assert trace.other["write_error"] == "File too large" and trace.other["lost"] >= 1
    assert trace.count("tasks", "steps::c") == 10 and 0 < trace.count("tasks") < 22010


def recover_copy(run, place, prefix=()):
    return subprocess.run([*prefix, XSTRACE, "--recover", place], cwd=run.cwd, capture_output=True, text=True, timeout=60)


def nothing_left(run, place):
    done = recover_copy(run, place)
    assert done.returncode == 0 and not place.exists() and f"--recover {place}: nothing was left" in done.stderr, done


def test_kills_while_the_directory_is_removed(xstrace):
    """Before each file that goes, and before the directory does: the next --recover removes what is left."""
    run = killed_run(xstrace, ITT)
    place = Path(f"{run.dir}-copy")
    for number in range(1, 100):
        place.mkdir()
        (place / "v").touch(0o600)  # made before and after the others: the order of going may be either
        shutil.copytree(run.dir, place, dirs_exist_ok=True)
        (place / "t1").touch(0o600)
        place.chmod(0o700)
        kill = ("strace", "-f", "-o", "/dev/null", "-e", "trace=unlinkat,rmdir", "-e", f"inject=unlinkat,rmdir:signal=KILL:when={number}")
        if recover_copy(run, place, kill).returncode == 0:
            break
        if place.exists():  # the kernel may have done what it was asked for
            assert recover_copy(run, place).returncode == 0 and not place.exists(), number
    assert number > 5
    shutil.rmtree(run.dir)
    run.collect()
    assert [run.trace.count("tasks", f"steps::{name}") for name in "ab"] == [2000, 20000]


def test_what_is_no_rest_of_a_run_stays(xstrace):
    """A directory without `control` goes if nothing is in it but what goes just before that, in files as we make them."""
    run = killed_run(xstrace, ITT)
    aside, place = xstrace.home / "aside", Path(f"{run.dir}-rest")
    shutil.copytree(run.dir, aside)

    def make(*names, mode=0o700):
        place.mkdir()
        for name in names:
            shutil.copy2(aside / name, place / name)
        place.chmod(mode)
        return place

    for names in ((), ("control",), ("control", "mailbox"), ("strings", "mailbox"), ("control", "strings")):
        nothing_left(run, make(*names))
    (process,) = (path.name for path in aside.glob("p*"))

    def stays(path):
        before = sorted(os.listdir(path))
        done = recover_copy(run, path)
        assert done.returncode == 125 and sorted(os.listdir(path)) == before, done
        shutil.rmtree(path)

    stays(make("mailbox", "strings", process))
    stays(make("control", process))
    stays(make(mode=0o755))
    (make("mailbox") / "mailbox").chmod(0o644)
    stays(place)
    (make() / "mine").touch()
    stays(place)
    (xstrace.home / "mine").mkdir(mode=0o700)
    stays(xstrace.home / "mine")
    recover(run)
