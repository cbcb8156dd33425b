"""--flight-recorder: the newest records in memory, written when somebody asks or something crashes."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, compile_c, wait_until

FLIGHT = "--chrome-itt-logging --flight-recorder"


def start(xstrace, options, words):
    """Started, and come as far as its first "wait"."""
    run = xstrace.start(options, "itt_steps", words.split(), stdin=subprocess.PIPE)
    run.waits = 1
    run.wait_for_output("ready 1\n")
    return run


def go_on(run, to_the_end=False):
    """To the next "wait"."""
    run.process.stdin.write(b"\n")
    run.process.stdin.flush()
    run.waits += 1
    if not to_the_end:
        run.wait_for_output(f"ready {run.waits}\n")


def said(run):
    return (run.log / "stderr").read_text()


def stored(run):
    return said(run).count("Timeline is stored in")


def ask(run, files=1):
    """SIGUSR1 to the launcher; returns when so many files more are written."""
    before = stored(run)
    os.kill(run.pid, signal.SIGUSR1)
    wait_until(lambda: stored(run) >= before + files)


def finish(run, status=0):
    run.process.stdin.close()
    run.finish()
    assert run.status == status
    return sorted(run.traces, key=lambda t: t.metadata["flight_recorder"]["dump"])


def recorder(trace):
    """What the header says, times in ns."""
    said = dict(trace.metadata["flight_recorder"])
    for key in said.keys() & {"from", "to"}:
        said[key] = round(said[key] * 1000)
    return said


def names(trace):
    return {s.name.removeprefix("steps::") for s in trace.tasks}


def test_nothing_is_written_unasked(xstrace):
    run = xstrace(FLIGHT + " 10s", "itt_steps", ["tasks", "t", 1000])
    assert (run.status, run.trace_files) == (0, [])
    assert len(run.said) == 1 and "was not asked to write" in run.said[0] and "-USR1" in run.said[0]


def test_again_and_again(xstrace):
    """Each dump has all of the window, and the application goes on."""
    run = start(xstrace, FLIGHT + " 60s", "tasks a 1000 wait tasks b 5000 wait tasks c 20000 wait tasks d 1")
    for step in range(3):
        ask(run)
        go_on(run, to_the_end=step == 2)
    traces = finish(run)
    assert [t.count("tasks") for t in traces] == [1000, 6000, 26000]
    for number, trace in enumerate(traces, 1):
        assert recorder(trace) | {"from": 0, "to": 0} == {
            "dump": number, "reasons": ["signal"], "window_ns": 60 * 10**9, "from": 0, "to": 0}
        assert trace.other["end"] == "running"
        assert trace.other["events"] == 2 * trace.count("tasks") and trace.other["lost"] == 0
        begin, end = (recorder(trace)[key] for key in ("from", "to"))
        assert all(begin <= s.start and s.end <= end for s in trace.tasks)
    pid = traces[0].pid
    assert {p.name for p in run.trace_files} == {f"itt_steps.{pid}{n}.json" for n in ("", "-2", "-3")}


def test_the_window_is_kept_to(xstrace):
    run = start(xstrace, FLIGHT + " 400ms", "open outer tasks old 100 sleep 700 tasks new 100 wait")
    ask(run)
    (trace,) = finish(run)
    assert names(trace) == {"outer", "new"} and trace.count("tasks") == 100
    (outer,) = [s for s in trace.tasks if s.unfinished]
    assert outer.start < min(s.start for s in trace.tasks if not s.unfinished) - 600 * 10**6
    assert recorder(trace)["to"] - recorder(trace)["from"] == 400 * 10**6
    assert "cut" not in recorder(trace)
    assert "unmatched_ends" not in trace.other


def test_a_task_that_began_before_the_history(xstrace):
    run = start(xstrace, FLIGHT + " 300ms", "slow long 800 wait")
    ask(run)
    (trace,) = finish(run)
    (task,) = trace.tasks
    assert task.name == "steps::long" and task.end - task.start >= 800 * 10**6


def test_memory_is_bounded(xstrace):
    """A hundred times more records than there is memory for: the newest are there, the header says since when."""
    words = "tasks first 100 tasks a 300000 wait tasks b 3000000 wait tasks last 100 wait"
    run = start(xstrace, FLIGHT + " 60s --flight-memory 1M", words)

    def memory():
        lines = Path(f"/proc/{run.drain}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

    before = memory()
    go_on(run)
    assert memory() <= before + 64
    go_on(run)
    ask(run)
    (trace,) = finish(run)
    assert names(trace) == {"b", "last"} and trace.count("tasks", "steps::last") == 100
    assert 25000 < trace.count("tasks") < 34000
    assert recorder(trace)["cut"] is True
    assert "unmatched_ends" not in trace.other
    assert min(s.end for s in trace.tasks) <= recorder(trace)["from"] + 10**9
    assert recorder(trace)["to"] - recorder(trace)["from"] < 60 * 10**9


def test_threads_that_came_and_went(xstrace):
    """One ring, many threads: each record on its own, also when its XS_THREAD is history no more."""
    words = "thread a 20000 " * 4 + "thread last 20000 tasks main 10 wait"
    run = start(xstrace, FLIGHT + " 60s --flight-memory 1M", words)
    ask(run)
    (trace,) = finish(run)
    threads = trace.by_thread(trace.tasks)
    assert len(threads) in (2, 3)
    assert sorted(len({s.name for s in tasks}) for tasks in threads.values()) == [1] * len(threads)
    assert set(threads) <= {tid for _, tid in trace.names("thread_name")}
    assert trace.count("tasks", "steps::last") == 20000 and trace.count("tasks", "steps::main") == 10


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_a_crash_is_written(xstrace, number):
    run = xstrace(FLIGHT + " 60s", "itt_steps", ["tasks", "t", 500, "open", "fatal", "signal", int(number)])
    assert run.status == -number
    assert recorder(run.trace)["reasons"] == ["crash"]
    assert (run.trace.other["end"], run.trace.other["status"]) == ("killed", number)
    assert run.trace.count("tasks") == 500 and run.trace.count("open", "steps::fatal") == 1


def test_an_application_that_has_recorded_nothing_crashes(xstrace):
    """What it has started has a history."""
    run = xstrace(FLIGHT + " 60s", "sh", ["-c", f"{APPS}/itt_steps tasks a 50; kill -SEGV $$"])
    assert run.status == -signal.SIGSEGV and run.trace.count("tasks", "steps::a") == 50
    assert recorder(run.trace)["reasons"] == ["crash"]


def test_a_hang_that_is_killed(xstrace):
    """Nothing new within the window: what is open is what counts."""
    run = start(xstrace, FLIGHT + " 50ms", "open stuck wait")
    time.sleep(0.4)
    os.kill(run.child("itt_steps"), signal.SIGKILL)
    (trace,) = finish(run, -signal.SIGKILL)
    (task,) = trace.tasks
    assert task.unfinished and task.name == "steps::stuck" and task.end - task.start > 3 * 10**8


def test_a_child_that_crashes(xstrace):
    """All processes are written, those that have ended too; the parent lives on."""
    words = "tasks p 10 child tasks c1 20 end sleep 200 child tasks c2 30 signal 11 end sleep 300 wait"
    run = start(xstrace, FLIGHT + " 60s", words)
    wait_until(lambda: stored(run) == 3)
    ask(run)
    traces = finish(run)
    crash, later = traces[:3], traces[3:]
    assert {tuple(sorted(names(t) - {"p"})) for t in crash} == {(), ("c1",), ("c2",)}
    assert all(recorder(t)["reasons"] == ["crash"] for t in crash)
    ends = {min(names(t)): (t.other["end"], t.other.get("status")) for t in crash}
    assert ends["p"] == ("running", None) and ends["c2"] == ("killed", signal.SIGSEGV)
    # what has ended and was written is not written again
    assert [names(t) for t in later] == [{"p"}] and recorder(later[0])["dump"] == 2


def test_several_processes(xstrace):
    words = "tasks p 10 child tasks c 2000 sleep 1000 end child thread d 3000 sleep 1000 end sleep 200 wait"
    run = start(xstrace, FLIGHT + " 60s", words)
    ask(run, 3)
    traces = finish(run)
    assert sorted((t.count("tasks"), *names(t)) for t in traces) == [(10, "p"), (2000, "c"), (3000, "d")]
    assert len({recorder(t)["to"] for t in traces}) == 1


def test_a_slow_task_triggers(xstrace):
    words = "tasks t 100 slow work 10 wait slow work 80 slow after 1 wait"
    run = start(xstrace, [*FLIGHT.split(), "60s", "--trigger", "task:work>50ms"], words)
    time.sleep(0.2)
    assert not stored(run)
    go_on(run)
    wait_until(lambda: stored(run) == 1)
    (trace,) = finish(run)
    assert recorder(trace)["reasons"] == ["trigger"]
    slow = [s for s in trace.tasks if s.name == "steps::work"]
    assert max(s.end - s.start for s in slow) > 50 * 10**6 and len(slow) == 2
    assert trace.count("tasks", "steps::t") == 100


def test_a_marker_triggers(xstrace):
    run = start(xstrace, [*FLIGHT.split(), "60s", "--trigger", "marker:now"], "tasks t 100 marker other marker now wait")
    wait_until(lambda: stored(run) == 1)
    (trace,) = finish(run)
    assert recorder(trace)["reasons"] == ["trigger"] and trace.count("tasks", "steps::t") == 100


def test_dump_of_a_session(xstrace):
    """xstrace --dump is back when the files are complete."""
    name = f"test-{os.getpid()}"
    run = start(xstrace, f"--session {name} {FLIGHT} 60s", "tasks t 100000 wait")
    dumped = subprocess.run([XSTRACE, "--dump", name], capture_output=True, text=True, timeout=60)
    assert (dumped.returncode, dumped.stderr, stored(run)) == (0, "", 1)
    (trace,) = finish(run)
    assert recorder(trace)["reasons"] == ["session"] and trace.count("tasks") == 100000
    gone = subprocess.run([XSTRACE, "--dump", name], capture_output=True, text=True)
    assert gone.returncode == 125 and f"no session {name}" in gone.stderr


@pytest.mark.parametrize("option", ["--dump", "--stacks"])
def test_a_session_whose_drain_process_is_stopped(xstrace, option):
    name = f"test-{os.getpid()}"
    run = start(xstrace, f"--session {name} {FLIGHT} 60s", "tasks t 10 wait")
    drain = run.drain
    os.kill(drain, signal.SIGSTOP)
    done = subprocess.run([XSTRACE, option, name], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == f"xstrace: {option} {name}: the session's drain process is stopped: kill -CONT {drain}, then ask again\n"
    os.kill(drain, signal.SIGCONT)
    done = subprocess.run([XSTRACE, option, name], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout
    finish(run)


def test_sigusr1_is_the_recorders_alone(xstrace):
    """With a flight recorder it does not reach the application, which would die of it."""
    run = start(xstrace, FLIGHT + " 60s", "tasks t 10 wait tasks t 10")
    ask(run)
    finish(run)


@pytest.mark.long
def test_many_requests_at_once(xstrace):
    """What is asked for while a dump is written is one dump more."""
    run = start(xstrace, FLIGHT + " 60s", "tasks t 50000 wait")
    for _ in range(20):
        os.kill(run.pid, signal.SIGUSR1)
        time.sleep(0.002)
    wait_until(lambda: stored(run) >= 2)
    traces = finish(run)
    assert 2 <= len(traces) < 20
    assert all(t.count("tasks") == 50000 for t in traces)


def test_compressed(xstrace):
    run = start(xstrace, FLIGHT + " 60s --compress zstd", "tasks t 100000 wait")
    ask(run)
    (trace,) = finish(run)
    assert trace.path.suffix == ".zst" and trace.count("tasks") == 100000


def test_undisturbed_while_a_dump_is_written(xstrace):
    """The rings are read all the time: nothing is lost, and no task waits for the dump."""
    # until it is killed: how long a dump takes is the machine's affair
    run = xstrace.start(FLIGHT + " 60s --on-full drop", "itt_stress", [xstrace.home / "truth", 2, 50000])
    run.wait_for_output()
    for _ in range(5):
        time.sleep(0.2)
        ask(run)
    os.kill(run.child("itt_stress"), signal.SIGKILL)
    run.finish()
    assert run.status == -signal.SIGKILL and not any("lost" in line for line in run.said)
    traces = sorted(run.traces, key=lambda t: recorder(t)["dump"])
    assert [recorder(t)["reasons"] for t in traces] == [["signal"]] * 5 + [["crash"]]
    counts = [t.count("tasks") for t in traces]
    assert counts == sorted(counts) and len(set(counts)) >= 5  # the kill follows the last request at once
    for tasks in traces[-1].by_thread(traces[-1].tasks).values():
        numbers = [int(s.name.removeprefix("stress::t")) for s in tasks]
        assert numbers == [n % 16 for n in range(len(tasks))]


def test_recover(xstrace):
    """The history dies with the drain process; what still lies in the rings is written."""
    run = start(xstrace, FLIGHT + " 60s", "tasks a 200000 wait tasks b 1000 wait")
    time.sleep(0.2)
    os.kill(run.drain, signal.SIGKILL)
    go_on(run)
    run.process.stdin.close()
    run.wait()
    assert run.status == 0 and "--recover" in said(run)
    recovered = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True)
    assert recovered.returncode == 0, recovered.stderr
    run.collect()
    assert recorder(run.trace) == {"recovered": True}
    assert run.trace.count("tasks", "steps::b") == 1000
    assert 23000 < run.trace.count("tasks", "steps::a") < 32768


WORKERS = r"""
#define _GNU_SOURCE
/* The words say how many tasks each thread has, one thread after the other: all have the same ring. */
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static __itt_domain *domain;
static void *work(void *word)
{
	__itt_string_handle *name = __itt_string_handle_create(word);
	pthread_setname_np(pthread_self(), word);
	for (int i = atoi(word); i; i--) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
		if (i % 1000 == 0)
			usleep(2000);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	domain = __itt_domain_create("d");
	for (int i = 1; i < argc; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, work, argv[i]);
		pthread_join(thread, NULL);
	}
	printf("ready\\n"), fflush(stdout);
	getchar();
}
"""


@pytest.mark.parametrize("words", [["40000"], ["100000"], ["2000", "30000", "20"], ["7", "60000", "5000", "1"]])
def test_recover_of_threads_that_have_ended(xstrace, words):
    """Whose the records are that the ring still has: what says so has been overwritten."""
    app = compile_c(xstrace.home / "workers", WORKERS)
    run = xstrace.start(FLIGHT + " 60s", app, words, stdin=subprocess.PIPE)
    run.wait_for_output("ready")
    time.sleep(0.3)
    os.kill(run.drain, signal.SIGKILL)
    run.process.stdin.close()
    run.wait()
    recover = [XSTRACE, "--recover", run.dir]
    assert subprocess.run(recover, capture_output=True, cwd=run.cwd, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))).returncode == 125
    done = subprocess.run(recover, capture_output=True, text=True, cwd=run.cwd)
    assert done.returncode == 0, done.stderr
    run.collect()
    threads = run.trace.by_thread(run.trace.tasks).values()
    counts = sorted(((int(tasks[0].name.split("::")[1]), len(tasks)) for tasks in threads), reverse=True)
    assert all(len({task.name for task in tasks}) == 1 for tasks in threads)  # nobody has another one's
    assert 23000 < sum(count for _, count in counts) <= 32768 and counts[1:] == [(n, n) for n in sorted(map(int, words), reverse=True)[1:] if n not in (7, 2000)]  # those are overwritten
    assert run.trace.other["lost"] == 0
    names = {e["tid"]: e["args"]["name"] for e in run.trace.events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert all(names[task.track[1]] == task.name.split("::")[1] for task in run.trace.tasks)


@pytest.mark.parametrize("head", [2**64 - 1, 2**64 - 16, 2**64 - 0x20000, 2**63, 0x12BD76613D50, 0x12BD76613D52])
def test_recover_where_a_ring_has_no_head_that_can_be(xstrace, head):
    """Who can write into the ring makes nobody search for its beginning for ever."""
    run = start(xstrace, FLIGHT + " 60s", "tasks a 2000 wait tasks b 1000 wait")
    time.sleep(0.2)
    for pid in (run.drain, run.child("itt_steps")):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    for path in Path(run.dir).glob("p*"):
        with path.open("r+b") as file:
            file.seek(20480)  # the first ring's header, and its head
            file.write(head.to_bytes(8, "little"))
    recovered = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True, timeout=30)
    assert recovered.returncode == 125 and "1 ring of process" in recovered.stderr
    run.collect()


@pytest.mark.parametrize("options, message", [
    ("--chrome-itt-logging --flight-memory 8M", "needs --flight-recorder"),
    ("--flight-recorder 5s", "needs a trace"),
    ("--chrome-itt-logging -h --flight-recorder 5s", "without it"),
])
def test_options(xstrace, options, message):
    run = xstrace(options, "/bin/true")
    assert run.status == 125 and message in run.said[0]
