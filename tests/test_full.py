"""Full rings and disks, small memory, no drain process: one clear line each, the app unharmed."""

import os
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

from conftest import APPS, NOBODY, XSTRACE, compile_c, copy_build, expected_lines, mounted, program, root_only, wait_until
from test_endings import truth
from xstrace import open_trace, pftrace

ITT = "--chrome-itt-logging"
SMALL = f"{ITT} --ring-size 64K"
RECORDS = 64 * 1024 // 16


def total(run):
    return expected_lines(run.out)[None, "expected", "tasks", None]


def losses(run):
    """Number of lines about losses."""
    return sum("are lost" in line for line in run.said)


# ---- rings ----


def start_with_drain(number, xstrace, options, app, args):
    """The program begins when its drain process has had the signal, however slow we are."""
    words = ["-c", 'read line; exec "$@"', "sh", program(app), *args]
    run = xstrace.start(options, "sh", words, stdin=subprocess.PIPE)
    os.kill(run.drain, number)
    run.process.stdin.close()
    return run


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("options", ["", "--on-full block"])
def test_block_loses_nothing(xstrace, options):
    run = xstrace(f"{SMALL} {options}", "itt_tasks", [60000, 2]).check_expected()
    assert run.trace.other["lost"] == 0 and not losses(run)


def test_block_waits_for_a_drain_process_that_stands_still(xstrace):
    """It is alive: so nothing is lost, however long it takes."""
    run = start_with_drain(signal.SIGSTOP, xstrace, SMALL, "itt_tasks", [50000, 2])
    time.sleep(0.3)
    assert run.process.poll() is None
    os.kill(run.drain, signal.SIGCONT)
    run.finish().check_expected()
    assert run.trace.other["lost"] == 0


PARENTS = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <stdlib.h>
static __itt_domain *domain;
static __itt_string_handle *name;
static void *work(void *count)
{
	static char memory[1 << 20];
	for (int i = 0; i < atoi(count); i++) {
		__itt_task_begin(domain, __itt_id_make(memory, i + 1), __itt_id_make(memory, i), name);
		__itt_task_end(domain);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	domain = __itt_domain_create("parents");
	name = __itt_string_handle_create("a");
	__itt_task_begin(domain, __itt_null, __itt_null, name);
	pthread_create(&thread, NULL, work, argv[argc - 1]);
	pthread_join(thread, NULL);
	__itt_task_end(domain);
}
"""


def test_relations_in_a_pass_that_reads_much(xstrace):
    """What threads have said of relations waits for the pass's end; by then the ids of its slices are not forgotten."""
    app = compile_c(xstrace.home / "parents", PARENTS)
    run = start_with_drain(signal.SIGSTOP, xstrace, f"{ITT} --ring-size 32M", app, [60000])
    time.sleep(1)
    os.kill(run.drain, signal.SIGCONT)
    run.finish()
    assert run.trace.count("tasks", "parents::a") == 60001
    assert sum(event["ph"] == "s" for event in run.trace.events) == 59999
    assert run.trace.other["open_relations"] == 1 and "omitted" not in run.trace.other  # the first one's parent


def test_block_does_not_wait_for_a_dead_one(xstrace):
    run = start_with_drain(signal.SIGKILL, xstrace, SMALL, "itt_tasks", [100000, 4])
    run.wait()
    assert (run.status, run.err) == (0, "")
    assert len(run.said) == 1 and "--recover" in run.said[0]
    xstrace.left_behind = True


def test_drop_counts_what_is_lost(xstrace):
    run = start_with_drain(signal.SIGSTOP, xstrace, f"{SMALL} --on-full drop", "itt_tasks", [100000, 3, "--depth", 5])
    drain = run.drain
    wait_until(lambda: (run.log / "stdout").read_text())  # it ends without waiting for anybody
    os.kill(drain, signal.SIGCONT)
    run.finish()
    assert (run.status, run.err) == (0, "")
    other = run.trace.other
    assert other["lost"] > 0 and losses(run) == 1
    assert other["events"] + other["lost"] == 2 * total(run)
    assert sum(t["lost"] for t in other["threads"]) == other["lost"]
    for thread in other["threads"]:
        if thread["records"]:
            assert thread["records"] + thread["lost"] == 2 * 100000
    # what is lost are whole tasks with all that is in them
    assert "unmatched_ends" not in other and not [s for s in run.trace.tasks if s.unfinished]
    for tasks in run.trace.by_thread(run.trace.tasks).values():
        assert tasks[0].name == "app::t0" and len(tasks) > RECORDS // 4


def test_drop_does_not_mix_up_threads(xstrace):
    """A ring that its next thread finds full must not give that thread's tasks to the last one."""
    run = start_with_drain(signal.SIGSTOP, xstrace, f"{SMALL} --on-full drop", "itt_threads", [9000, 2])
    drain = run.drain
    wait_until(lambda: len((run.log / "stdout").read_text()) or run.process.poll() is not None)
    os.kill(drain, signal.SIGCONT)
    run.finish()
    other = run.trace.other
    assert other["lost"] > 0
    assert all(thread["records"] <= 2 for thread in other["threads"])
    assert other["events"] + other["lost"] == 2 * total(run)
    assert all(s.end - s.start < 1e9 for s in run.trace.tasks)


SPANS = r"""
#include <ittnotify.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	__itt_string_handle *name = __itt_string_handle_create("t");
	__itt_event event = __itt_event_create("e", 1), again = __itt_event_create("f", 1);

	__itt_event_start(again);
	__itt_event_start(event);
	__itt_frame_begin_v3(domain, NULL);
	for (int i = 0; i < 100000; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
	__itt_event_end(again); /* these are lost */
	__itt_event_end(event);
	__itt_frame_end_v3(domain, NULL);
	__itt_event_start(event);
	__itt_frame_begin_v3(domain, NULL);
	puts("full");
	fflush(stdout);
	getchar();
	sleep(1);
	__itt_event_start(again); /* the one before was no mark */
	__itt_event_end(again);
	for (int i = 0; i < 2; i++) {
		__itt_event_end(event);
		__itt_frame_end_v3(domain, NULL);
		if (i)
			break;
		__itt_event_start(event);
		__itt_frame_begin_v3(domain, NULL);
	}
	return 0;
}
"""


def test_a_span_whose_end_may_be_lost_is_unfinished(xstrace):
    """The end that is there may be that of the next one, whose begin is lost."""
    app = compile_c(xstrace.home / "spans", SPANS)
    run = start_with_drain(signal.SIGSTOP, xstrace, f"{SMALL} --on-full drop --backlog 0", app, [])
    drain = run.drain
    wait_until(lambda: "full" in (run.log / "stdout").read_text())
    os.kill(drain, signal.SIGCONT)
    run.finish()
    spans = [s for s in run.trace.slices if s.name in ("e", "d", "f")]
    assert sorted((s.name, s.unfinished) for s in spans) == [(name, how) for name in "def" for how in (False, True)]
    assert run.trace.other["events"] + run.trace.other["lost"] == 200_016


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_overwrite_keeps_the_newest(xstrace, end):
    path = xstrace.home / "truth"
    run = xstrace.start(f"{SMALL} --on-full overwrite", "itt_stress", [path, 2, 100, int(end == "exit")])
    app = run.child("itt_stress")
    run.wait_for_output()
    if end == "kill":
        time.sleep(0.2)
        os.kill(app, signal.SIGKILL)
    run.finish()
    other = run.trace.other
    threads = run.trace.by_thread(run.trace.tasks)
    for tid, begun, finished in truth(path):
        tasks = [s for s in threads[tid] if s.name.startswith("stress")]
        numbers = [int(s.name.removeprefix("stress::t")) for s in tasks]
        assert RECORDS * 3 // 8 < len(tasks) <= RECORDS // 2 + 1
        # one that was killed may have ended its last task, and not counted it yet
        possible = {begun - 1} if tasks[-1].unfinished else {begun - 1, finished - 1}
        assert numbers in [[(last - i) % 16 for i in reversed(range(len(tasks)))] for last in possible]
        stats = next(t for t in other["threads"] if t["tid"] == tid)
        assert 2 * finished <= stats["records"] + stats["lost"] <= 2 * begun
    assert other["lost"] > 0 and losses(run) == 1


IN_TURN = r"""
#include <ittnotify.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static __itt_domain *domain;
static __itt_string_handle *name;
static int number, tasks;

static void *work(void *unused)
{
	char text[30];

	sprintf(text, "w%d", number++);
	__itt_thread_set_name(text);
	for (int i = 0; i < tasks; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
	printf("%ld\n", syscall(SYS_gettid));
	fflush(stdout);
	if (getenv("KILLED") && number == atoi(getenv("KILLED")))
		raise(SIGKILL);
	return unused;
}

int main(int argc, char **argv)
{
	domain = __itt_domain_create("d");
	name = __itt_string_handle_create("t");
	tasks = atoi(argv[argc - 1]);
	for (int i = 0; i < atoi(argv[1]); i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
	}
	return 0;
}
"""


@pytest.mark.parametrize("killed", ["", "5"])
def test_overwrite_tells_each_thread_of_a_ring(xstrace, killed):
    """Threads that use one ring in turn: what each has lost is its own, also where nothing of it is left."""
    app = compile_c(xstrace.home / "in_turn", IN_TURN)
    run = xstrace(f"{SMALL} --on-full overwrite", app, [5, 20000], env={"KILLED": killed} if killed else None)
    other = run.trace.other
    threads = {t["tid"]: t for t in other["threads"]}
    worked = [threads[int(tid)] for tid in run.out.split()]
    assert [t["name"] for t in worked] == [f"w{i}" for i in range(5)]
    assert [t["records"] + t["lost"] for t in worked] == [40000] * 5
    assert [t["lost"] for t in worked[:4]] == [40000] * 4 and worked[4]["records"] == other["events"]
    assert sum(t["lost"] for t in other["threads"]) == other["lost"] and "threads_omitted" not in other


def test_overwrite_of_more_threads_than_a_ring_lists(xstrace):
    """127 of those that are overwritten are named; the others are counted."""
    app = compile_c(xstrace.home / "in_turn", IN_TURN)
    run = xstrace(f"{SMALL} --on-full overwrite", app, [400, 2000])
    other = run.trace.other
    tids = [int(tid) for tid in run.out.split()]
    threads = {t["tid"]: t for t in other["threads"]}
    told = [t for tid in tids if (t := threads.get(tid))]
    assert len(told) >= 127 and all(t["records"] + t["lost"] == 4000 for t in told if tids.index(t["tid"]) < 127)
    assert len(told) + other["threads_omitted"] in (400, 401)  # the last one may be named and counted
    assert other["events"] + other["lost"] == 400 * 4000


def test_overwrite_when_it_all_fits(xstrace):
    run = xstrace(f"{ITT} --on-full overwrite", "itt_tasks", [1000, 2]).check_expected()
    assert run.trace.other["lost"] == 0 and not losses(run)


@pytest.mark.parametrize("size", ["65536", "64K", "100000", "3M", "--chrome-event-buffer-size 5000"])
def test_sizes_of_rings(xstrace, size):
    option = size if size.startswith("--") else f"--ring-size {size}"
    run = xstrace(f"{ITT} {option}", "itt_tasks", [20000]).check_expected()
    used = run.trace.metadata["ring_size"]
    wanted = {"64K": 65536, "100000": 131072, "3M": 4 << 20}.get(size, 65536)
    assert used == (262144 if option == size else wanted)


# ---- disks ----


def check_full_disk(run, reason, least=1):
    """The app noticed nothing, the user is told once, and the file is a trace."""
    assert (run.status, run.err) == (0, "") and total(run) == 100000
    lines = [line for line in run.said if reason in line]
    assert len(lines) == 1 and "cannot write" in lines[0], run.said
    if run.trace_files:
        assert least <= run.trace.count("tasks") < 100000
        assert run.trace.other["lost"] > 0
        assert [line for line in run.said if "lost, at least: what the disk did not take" in line], run.said


@root_only
@pytest.mark.parametrize("compress", ["", "--compress zstd", "--format perfetto"])
@pytest.mark.parametrize("size", ["8k", "100k", "300k", "1m"])
def test_full_disk(xstrace, size, compress):
    if "zstd" in compress:
        size = {"8k": "4k", "100k": "8k", "300k": "100k", "1m": "200k"}[size]
    with mounted(xstrace.cwd, f"size={size}"):
        run = xstrace(f"{ITT} {compress}", "itt_tasks", [100000])
        # a first frame (1 MiB of JSON) or the blocks that the end needs may be more than there is
        check_full_disk(run, "No space left", 1 if size in ("100k", "300k", "1m") and "zstd" not in compress else 0)
        assert run.trace_files


MARKS = r"""
#include <ittnotify.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("marks");
	__itt_string_handle *name = __itt_string_handle_create("a");
	struct timespec now;

	for (int i = 0; i < 60000; i++) {
		if (i == 50000)
			usleep(500000);
		__itt_marker(domain, __itt_null, name, __itt_scope_track_group);
	}
	if (argc == 1) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
	(void)argv;
	clock_gettime(CLOCK_REALTIME, &now);
	printf("%lld\n", now.tv_sec * 1000000000ll + now.tv_nsec);
	return 0;
}
"""


def shown(run, monkeypatch):
    """All events of a file in Perfetto's format, also those that the reader keeps to itself."""
    base = run.trace.header["baseTimeNanoseconds"]
    monkeypatch.setattr(pftrace, "OWN", frozenset())
    with open_trace(run.trace_files[0]) as trace:
        return base, list(trace)


def test_the_end_of_a_program_without_spans(xstrace, monkeypatch):
    _, events = shown(xstrace(f"{ITT} --format perfetto", compile_c(xstrace.home / "marks", MARKS), ["no task"]), monkeypatch)
    times = {event["name"]: event["ts"] for event in events if "ts" in event}
    assert times["xstrace::end"] >= times["xstrace::trace"] > 0


@root_only
def test_the_end_is_at_its_time_whatever_the_disk_did_not_take(xstrace, monkeypatch):
    """Times in a sequence of Perfetto's packets are told by how much later they are than the packet before, which may be lost."""
    app = compile_c(xstrace.home / "marks", MARKS)
    with mounted(xstrace.cwd, "size=200k"):
        run = xstrace(f"{ITT} --format perfetto", app)
        base, events = shown(run, monkeypatch)
    (end,) = (event for event in events if event["name"] == "xstrace::end")
    assert 100 < len(events) < 50000 and base + end["ts"] > int(run.out) - 100_000_000


def test_a_working_directory_that_no_path_leads_to(xstrace):
    """It was removed, or lies too deep: said before the application runs, as of any place that cannot be written."""
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    deep = f'for i in $(seq {4096 // 200 + 2}); do mkdir {"d" * 200}; cd -P {"d" * 200} || exit; done; exec "$@"'
    for how, reason in ((script, "No such file or directory"), (deep, "name too long")):
        for options in ("--chrome-itt-logging", "-h -o report.txt", "--result-dir results"):
            run = xstrace.bare("bash", ["-c", how, "bash", XSTRACE, *options.split(), APPS / "itt_tasks", "5"])
            assert (run.status, run.out) == (125, ""), options
            said = [line for line in run.said if line.startswith("xstrace: ")]
            assert len(said) == 1 and re.search(reason, said[0], re.I), run.said
            shutil.rmtree(xstrace.cwd / ("d" * 200), ignore_errors=True)
            assert xstrace.bare("bash", ["-c", how, "bash", XSTRACE, "-h", APPS / "itt_tasks", "5"]).status == 0
            shutil.rmtree(xstrace.cwd / ("d" * 200), ignore_errors=True)


@root_only
def test_disk_that_has_room_again(xstrace):
    """What was written before and after the app freed some: still a valid file."""
    with mounted(xstrace.cwd, "size=2m"):
        script = f"head -c 1500000 /dev/zero > junk; {APPS}/itt_tasks 20000; rm junk"
        run = xstrace(ITT, "sh", ["-c", script])
        assert run.status == 0 and len(run.traces) == 1


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("mib", [0, 1, 10, 30])
@pytest.mark.parametrize("args", [[40000], [1000, 40]])
def test_limited_file_size(xstrace, args, mib, hard):
    """`ulimit -f`: SIGXFSZ must kill neither the app nor anything of ours."""

    def prepare():
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (mib << 20, mib << 20 if hard else limit))

    out = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}  # those of a file would not fit
    run = xstrace.start(ITT, "itt_tasks", args, preexec_fn=prepare, **out)
    text, said = run.process.communicate(timeout=30)
    if hard and mib < 24:  # no run directory can be made: the app runs as it does without us
        assert run.process.returncode == 0 and b"expected: 40000 tasks" in text
        assert said.count(b"\n") == 1 and b"ulimit -f" in said and b"untraced" in said
        return
    assert run.process.returncode == 0, said
    assert b"expected: 40000 tasks" in text
    run.finish()
    complete = run.trace_files and run.trace.count("tasks") == 40000
    assert complete or (said.count(b"\nxstrace: ") + said.startswith(b"xstrace: ") == 1), said


@pytest.mark.parametrize("hard", [False, True])
def test_few_descriptors(xstrace, hard):
    """The drain process of an app that may open few files has many processes to look after."""

    def prepare():
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16 if hard else limit))

    script = f"for i in $(seq 30); do {APPS}/itt_tasks 3 --hold & done; sleep 0.5; kill $(jobs -p); wait"
    run = xstrace(ITT, "bash", ["-c", script], preexec_fn=prepare)
    assert run.status in (0, 143) and "cannot" not in run.err
    assert len(run.traces) == 30 or (hard and sum("xstrace: " in line for line in run.said) == 1)


def unwritable(xstrace, directory, options, **more):
    """Found out before the app starts."""
    mark = xstrace.home / "started"
    run = xstrace(f"{ITT} {options}", "touch", [mark], cwd=directory, **more)
    assert run.status == 125 and run.err == "" and len(run.said) == 1, (run.said, run.err)
    assert not mark.exists() and not run.trace_files


@root_only
@pytest.mark.parametrize("options", ["", "--output-dir-path sub", "-o rep.txt"])
def test_read_only_directory(xstrace, options):
    with mounted(xstrace.cwd, "ro"):
        unwritable(xstrace, xstrace.cwd, options)


@pytest.mark.parametrize("options", ["", "--output-dir-path sub"])
def test_directory_of_somebody_else(xstrace, public, options):
    path = xstrace.home / "closed"
    path.mkdir()
    path.chmod(0o555)
    xstrace.home.chmod(0o755)
    for parent in list(xstrace.home.parents)[:3]:
        parent.chmod(0o755) if str(parent) != "/tmp" and os.geteuid() == 0 else None
    user = {}
    if os.geteuid() == 0:
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "launcher": copy_build(public)}
    unwritable(xstrace, path, options, **user)


def test_existing_file_is_kept(xstrace):
    """A pid can come again; the second trace gets a number."""
    for suffix, options in (("json", ITT), ("json.zst", f"{ITT} --compress zstd")):
        script = f"echo old > itt_tasks.$$.{suffix}; exec {APPS}/itt_tasks 5"
        run = xstrace.start(options, "sh", ["-c", script])
        run.wait()
        old, new = (f"itt_tasks.{{}}{n}.{suffix}" for n in ("", "-2"))
        files = wait_until(lambda: not run.dir and sorted(p.name for p in run.cwd.iterdir()))
        pid = files[0].split(".")[1].removesuffix("-2")
        assert sorted(files) == sorted([old.format(pid), new.format(pid)])
        assert (run.cwd / old.format(pid)).read_text() == "old\n"
        (run.cwd / old.format(pid)).unlink()
        assert run.collect().trace.count("tasks") == 5
        (run.cwd / new.format(pid)).unlink()


# what somebody does with the files of a run that goes on; {}: their names
MEANWHILE = {"removed": "rm {}", "moved": "mkdir away && mv {} away", "replaced": "for f in {}; do echo > new && mv new $f; done"}


@pytest.mark.parametrize("how", MEANWHILE)
@pytest.mark.parametrize("compress", ["", "--compress zstd"])
def test_files_that_are_gone_are_not_said_to_be_stored(xstrace, how, compress):
    """Each is named in a line of its own, whether it is a trace, a log or stacks; what has come in its place is let alone."""
    run = xstrace.start(f"{ITT} {compress} -c -o log.txt", "itt_stress", [xstrace.home / "truth", 1, 100, 0])
    run.wait_for_output()
    names = wait_until(lambda: sorted(path.name for path in run.cwd.iterdir() if path.name.startswith("itt_stress.")))
    subprocess.run(MEANWHILE[how].format(" ".join(names)), shell=True, check=True, cwd=run.cwd)
    os.kill(run.child("itt_stress"), signal.SIGTERM)
    run.wait()
    wait_until(lambda: not run.dir)
    run.read_output()
    assert run.status == -signal.SIGTERM
    for name in names:
        assert [line for line in run.said if f"/{name}" in line] == [
            f"xstrace: {run.cwd}/{name} is gone: it was removed, moved or replaced before it was complete"
        ]
        assert not (run.cwd / name).exists() or (run.cwd / name).read_text() == "\n"
        (run.cwd / name).unlink(missing_ok=True)
    assert not any("Timeline is stored" in line for line in run.said)


@pytest.mark.parametrize("at", ["the end", "the middle"])
@pytest.mark.parametrize("compress", ["", "--compress zstd"])
def test_a_trace_that_somebody_cuts_is_not_said_to_be_stored(xstrace, compress, at):
    """Before the process ends, or while it goes on: what it writes then stands behind a hole."""
    steps = ["tasks", "a", "30000", "wait", *([] if at == "the end" else ["tasks", "b", "30000"])]
    run = xstrace.start(f"{ITT} {compress}", "itt_steps", steps, stdin=subprocess.PIPE)
    run.wait_for_output()
    (trace,) = wait_until(lambda: [path for path in run.cwd.glob("itt_steps.*") if path.stat().st_size > 20000])
    os.truncate(trace, 0)
    run.process.stdin.close()
    run.wait()
    wait_until(lambda: not run.dir)
    run.read_output()
    assert run.status == 0
    assert f"xstrace: {trace} was cut before it was complete; what had been written of it is lost" in run.said
    assert not any("stored" in line for line in run.said)
    trace.unlink()


@pytest.mark.parametrize("left", [0, -10])
def test_a_trace_that_is_cut_by_less_than_a_page(xstrace, left):
    """It has no hole, and the length that it was to have."""
    run = xstrace.start(ITT, "itt_steps", ["tasks", "a", "5", "wait", "tasks", "b", "9"], stdin=subprocess.PIPE)
    run.wait_for_output()
    (trace,) = wait_until(lambda: [path for path in run.cwd.glob("itt_steps.*") if path.stat().st_size > 200])
    os.truncate(trace, left if left >= 0 else trace.stat().st_size + left)
    run.process.stdin.close()
    run.wait()
    wait_until(lambda: not run.dir)
    run.read_output()
    assert run.status == 0 and not any("stored" in line for line in run.said)
    assert f"xstrace: {trace} was cut before it was complete; what had been written of it is lost" in run.said
    trace.unlink()


def test_existing_link_is_not_followed(xstrace):
    target = xstrace.home / "target"
    script = f"ln -s {target} itt_tasks.$$.json; exec {APPS}/itt_tasks 5"
    run = xstrace.start(ITT, "sh", ["-c", script])
    run.wait()
    wait_until(lambda: not run.dir)
    assert not target.exists()
    next(p for p in run.cwd.iterdir() if p.is_symlink()).unlink()
    assert run.collect().trace.count("tasks") == 5


# ---- memory ----


@pytest.mark.long(keep=1)
@root_only
@pytest.mark.parametrize("size", ["64m", "33m", "1m"])
@pytest.mark.parametrize("app, args", [("itt_tasks", [50000, 4]), ("cl_matrix", [])])
def test_small_dev_shm(xstrace, size, app, args):
    """The place of containers (64 MiB), and one where nothing fits: the next directory is taken."""
    with mounted("/dev/shm", f"size={size}"):
        run = xstrace.start(f"{ITT} --chrome-kernel-logging", app, args)
        run.finish()
        assert (run.status, run.err) == (0, "") and not os.listdir("/dev/shm")
        run.check_expected()
        assert run.trace.other["lost"] == 0


@pytest.mark.long
@root_only
def test_more_rings_than_dev_shm_holds(xstrace):
    """Threads without a ring are counted; nobody dies of SIGBUS."""
    with mounted("/dev/shm", "size=64m"):
        run = xstrace(f"{ITT} --ring-size 4M", "itt_tasks", [10000, 60])
        assert (run.status, run.err) == (0, "")
        other = run.trace.other
        assert other["events"] + other["lost"] == 2 * total(run)
        assert other["lost"] == 0 or losses(run) == 1


@root_only
def test_a_ring_that_dev_shm_does_not_hold(xstrace):
    with mounted("/dev/shm", "size=64m"):
        run = xstrace(f"{ITT} --ring-size 1G", "itt_tasks", [10000, 2])
        assert (run.status, run.err) == (0, "")
        assert not run.traces or run.trace.other["events"] + run.trace.other["lost"] == 2 * total(run)
        assert run.traces or losses(run)


def test_huge_rings(xstrace):
    """They cost what is used of them."""
    run = xstrace(f"{ITT} --ring-size 1G", "itt_tasks", [5000, 20]).check_expected()
    assert run.trace.other["lost"] == 0


@root_only
def test_dev_shm_that_fills_up_in_the_middle(xstrace):
    """By others: what we have must be enough."""
    with mounted("/dev/shm", "size=64m"):
        run = xstrace.start(f"{ITT} --ring-size 1M", "itt_stress", [xstrace.home / "truth", 4, 20000, 1])
        run.wait_for_output()
        subprocess.run("cat /dev/zero > /dev/shm/junk", shell=True, stderr=subprocess.DEVNULL)
        run.finish()
        assert (run.status, run.err) == (0, "")
        other = run.trace.other
        assert other["events"] + other["lost"] == 2 * total(run)


FAIL_ONE = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
extern char *program_invocation_short_name;
static int calls;
static int fails(void)
{
	const char *which = getenv("FAIL_AT"), *all = getenv("FAIL_ALL");
	if (!which || strcmp(program_invocation_short_name, "itt_tasks")) return 0;
	int n = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	if (n < atoi(which) || (n > atoi(which) && !all)) return 0;
	errno = ENOMEM;
	return 1;
}
int fstat64(int fd, struct stat *st) /* of each file that we open */
{
	if (fails()) return -1;
	return syscall(SYS_fstat, fd, st);
}
int ftruncate64(int fd, long size) { return fails() ? -1 : syscall(SYS_ftruncate, fd, size); }
void *mmap64(void *at, size_t size, int prot, int flags, int fd, long offset)
{
	if (fails()) return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
}
int madvise(void *at, size_t size, int advice)
{
	return fails() ? -1 : syscall(SYS_madvise, at, size, advice);
}
"""


@pytest.fixture(scope="module")
def fail_one(tmp_path_factory):
    return str(compile_c(tmp_path_factory.mktemp("fail") / "fail.so", FAIL_ONE, "-shared", "-fPIC"))


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("all_further", ["", "1"])
@pytest.mark.parametrize("which", range(1, 25))
def test_any_system_call_of_ours_may_fail(xstrace, fail_one, which, all_further):
    """The app is unharmed; what is not recorded is counted, or it is said that nothing is."""
    env = {"LD_PRELOAD": fail_one, "FAIL_AT": str(which)}
    env.update({"FAIL_ALL": "1"} if all_further else {})
    run = xstrace(ITT, "itt_tasks", [3000, 12], env=env)
    assert (run.status, run.err) == (0, "") and total(run) == 36000
    if run.traces:
        other = run.trace.other
        assert other["events"] + other["lost"] == 2 * total(run)
        assert losses(run) == (other["lost"] > 0)
    else:
        assert run.said, "nothing is traced, and nobody says so"


@root_only
@pytest.mark.parametrize("options", ["ro", "nr_inodes=4"])
def test_next_best_place_of_the_run_directory(xstrace, options):
    """No /dev/shm at all, or no room for files there: $TMPDIR, and nothing stays there."""
    place = xstrace.home / "tmp"
    place.mkdir()
    env = {"TMPDIR": str(place), "XDG_RUNTIME_DIR": "/nonexistent"}
    script = f"echo $XSTRACE_RUN; exec {APPS}/itt_tasks 10"
    with mounted("/dev/shm", options):
        run = xstrace(ITT, "sh", ["-c", script], env=env).check_expected()
        assert run.out.startswith(f"{place}/xstrace-")
        wait_until(lambda: not os.listdir(place))
