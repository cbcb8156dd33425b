"""ITT tasks: counts, nesting, names, domains, plug-ins, threads."""

import collections
import os
import random
import re
import signal
import sys
import time

import pytest

from conftest import APPS, ROOT, Trace, compile_c, wait_until

ITT = "--chrome-itt-logging"


def script(xstrace, body, options=ITT, **more):
    """Runs a few lines of Python with begin(domain, task) and end(domain) at hand."""
    head = """
from ittapi import domain, string_handle, task_begin, task_end as end
def begin(domain, name):
    task_begin(domain, string_handle(name))
"""
    return xstrace(options, sys.executable, ["-c", head + body], **more)


@pytest.mark.parametrize("count, threads, depth", [(0, 1, 1), (1, 1, 1), (1000, 1, 8), (999, 4, 64)])
def test_counts_and_nesting(xstrace, count, threads, depth):
    run = xstrace(ITT, "itt_tasks", [count, threads, "--depth", depth])
    assert (run.status, run.err) == (0, "")
    if not count:
        assert not run.trace_files and "No event of interest" in run.said[0]
        return
    run.check_expected()
    for tasks in run.trace.by_thread(run.trace.tasks).values():
        # where the counter counts in steps of 10 ns, one task may have the very times of the one that it holds
        tasks.sort(key=lambda s: (s.start, -s.end, int(s.name[len("app::t") :])))
        assert [int(s.name[len("app::t") :]) for s in tasks] == [i % depth for i in range(count)]
        for outer, inner in zip(tasks, tasks[1:]):
            nested = inner.name != "app::t0"
            assert (inner.end <= outer.end) == nested and (inner.start >= outer.end) == (not nested)


def test_a_hundred_threads(xstrace):
    run = xstrace(ITT, "itt_tasks", [300, 100]).check_expected()
    assert all(len(tasks) == 300 for tasks in run.trace.by_thread(run.trace.tasks).values())


def test_many_rounds_of_threads(xstrace):
    run = xstrace(ITT, "itt_threads", [3200, 64]).check_expected()
    assert run.trace.other["lost"] == 0


def test_more_threads_than_are_listed(xstrace):
    """They are counted once each, and a thread that gets another name in a task goes on with it."""
    body = """
import threading
d = domain("d")
from ittapi import thread_set_name
def work():
    begin(d, "outer")
    thread_set_name("renamed")
    end(d)
for _ in range(4200):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
    run = script(xstrace, body)
    assert run.status == 0
    other = run.trace.other
    assert len(other["threads"]) == 4096 and other["threads_omitted"] == 4200 - 4096
    assert run.trace.count("tasks") == 4200 and run.trace.count("open") == 0
    assert other["lost"] == 0 and "unmatched_ends" not in other


@pytest.mark.long
def test_a_lot(xstrace):
    """The rings turn around many times, and nothing is lost."""
    run = xstrace(ITT, "itt_tasks", [300000, 2]).check_expected()
    assert run.trace.other["lost"] == 0
    assert run.trace.other["events"] == 2 * 600000


def test_every_name_is_exact(xstrace):
    run = xstrace(ITT, "itt_names")
    assert (run.status, run.err) == (0, "")
    printed = [bytes.fromhex(name) for name in re.findall("^name: (.*)$", run.out, re.M)]
    tasks = run.trace.by_thread(run.trace.tasks)[run.trace.pid]
    for raw, task in zip(printed, tasks):
        name = "names::" + raw.decode("utf-8", "replace")
        # how many U+FFFD a wrong sequence becomes is nobody's law
        seen = re.sub("\ufffd+", "\ufffd", task.name)
        assert seen == re.sub("\ufffd+", "\ufffd", name) or (len(name) > 4096 and name.startswith(seen))
    assert len(tasks[len(printed) - 1].name) > 1000  # the longest is cut, not gone
    run.check_expected()
    assert "of NULL: a domain, a name\n" in run.out
    assert 'do"ma\\in\n\ufffd::a' in [s.name for s in tasks]
    assert "::a" in [s.name for s in tasks]
    domain = ("abcdefghijklmnopqrstuvwxyz" * 116)[:3000]
    assert any(s.name.startswith(f"{domain}::abc") for s in tasks)


def test_tasks_that_cross_keep_their_times(xstrace):
    """Neither is inside the other: they go to two tracks, with the times that they had."""
    trace = xstrace(ITT, "itt_names").trace
    a, b = ([s for s in trace.tasks if s.name == name] for name in ("domain a::a", "domain b::b"))
    assert len(a) == len(b) == 1
    a, b = a[0], b[0]
    assert a.start < b.start < a.end < b.end and a.track != b.track
    assert min(b.start - a.start, a.end - b.start, b.end - a.end) > 1000000
    assert any("(overlapping)" in name for name in trace.names("thread_name").values())


def test_tasks_of_short_threads_that_cross(xstrace):
    """A thread that goes on in the ring of one that has ended has a track of its own for them."""
    body = """
import threading
a, b = domain("a"), domain("b")
def work(number):
    for _ in range(2):
        begin(a, f"of {number}")
        begin(b, "within")
        end(a)
        end(b)
    print(number, threading.get_native_id())
for number in range(3):
    thread = threading.Thread(target=work, args=(number,))
    thread.start()
    thread.join()
"""
    run = script(xstrace, body)
    tids = dict(line.split() for line in run.out.splitlines())
    names = run.trace.names("thread_name")
    tracks = {(s.name, names[s.track]) for s in run.trace.tasks if s.name.startswith("a::of")}
    assert tracks == {(f"a::of {number}", f"{tid} (overlapping)") for number, tid in tids.items()}


def test_many_tasks_that_cross(xstrace):
    """A pipeline, each stage a domain: every task overlaps those before and behind it."""
    body = """
import time
domains = [domain(f"stage{i}") for i in range(4)]
for i in range(200):
    begin(domains[i % 4], f"work{i}")
    time.sleep(0.0001)
    if i >= 3:
        end(domains[(i - 3) % 4])
for i in range(3):
    end(domains[(197 + i) % 4])
"""
    trace = script(xstrace, body).trace
    tasks = sorted(trace.tasks, key=lambda s: int(s.name.split("work")[1]))
    assert [s.name for s in tasks] == [f"stage{i % 4}::work{i}" for i in range(200)]
    for i in range(196):
        assert tasks[i].start < tasks[i + 1].start < tasks[i].end < tasks[i + 4].start, i
    assert trace.other["lost"] == 0 and "unmatched_ends" not in trace.other


@pytest.mark.parametrize("count", [50, 3000])
@pytest.mark.parametrize("kind", ["overlapped", "region", "frame"])
def test_spans_that_threads_hand_to_each_other(xstrace, kind, count):
    """All have one id. Rings are read one after the other, but what belongs together is found by its time."""
    run = xstrace(ITT, "itt_handed", [kind, count])
    spans = sorted((s for s in run.trace.slices), key=lambda s: s.start)
    assert [s.args for s in spans] == [{"number": [i]} for i in range(count)]
    assert all(one.end <= next.start for one, next in zip(spans, spans[1:]))
    assert "unmatched_ends" not in run.trace.other and run.trace.other["lost"] == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("options", ["", "--ring-size 64K", "--ring-size 64K --backlog 0"])
def test_spans_of_a_pool(xstrace, options):
    """What one thread says of a span that another one has begun, whose ring is read later, is said of that one, and of no other."""
    for seed in random.sample(range(10000), 3):
        run = xstrace(f"{ITT} {options}", "itt_pool", [seed, 8, 3000])
        count = int(re.search(r"spans: (\d+)", run.out)[1])
        spans = {int(s.name.split()[-1]): s for s in run.trace.slices if s.name.startswith("pool::span")}
        assert len(spans) == len(run.trace.slices) / 2 == count > 500
        wrong = {n: s.args for n, s in spans.items() if s.args != {"seen": [n]} | ({"begun": [n]} if n % 2 else {})}
        assert not wrong, (seed, len(wrong), next(iter(wrong.items())))
        children = {(s.track, s.start): int(s.name.split()[-1]) for s in run.trace.slices if s.name.startswith("pool::child")}
        arrows = collections.defaultdict(dict)
        for event in run.trace.events:
            if event["ph"] in "sf" and event["name"] == "parent":
                arrows[event["id"]][event["ph"]] = (event["pid"], event["tid"]), event["ts"]
        assert len(arrows) == count
        for arrow in arrows.values():
            number, (track, ts) = children[arrow["f"]], arrow["s"]
            assert spans[number].track == track and spans[number].start <= ts <= spans[number].end, (seed, number)
        assert "unmatched_ends" not in run.trace.other and run.trace.other["lost"] == 0


def test_plugins_with_an_ittnotify_of_their_own(xstrace):
    run = xstrace(ITT, "itt_plugin_host", [APPS / "itt_plugin.so"])
    assert run.status == 0 and "unloaded: yes\n" in run.out
    run.check_expected()


def test_what_is_said_of_a_task_is_lost_with_it(xstrace):
    run = xstrace(f"{ITT} --ring-size 64K --backlog 0 --on-full drop", "itt_crowded", [300000])
    assert run.trace.other["lost"] > 0
    (outer,) = [task for task in run.trace.tasks if task.name == "crowded::outer"]
    assert "value" not in outer.args
    assert all(len(task.args.get("value", [0])) == 1 for task in run.trace.tasks)


@pytest.mark.long
def test_new_names_of_many_threads(xstrace):
    """None waits for another one."""
    threads, names = 8, 5000
    run = xstrace(f"{ITT} --ring-size 4M", "itt_fresh", [threads, names])
    assert len({task.name for task in run.trace.tasks}) == threads * names == len(run.trace.tasks)
    assert int(re.search(r"waits: (\d+)", run.out)[1]) < threads * names / 20


def test_a_handle_in_very_many_domains(xstrace):
    """Its name in the last domain is found as fast as in the first, and is the right one."""
    run = xstrace(ITT, "itt_domains", [10000]).check_expected()
    assert int(re.search(r"price: (\d+)", run.out)[1]) < 3000
    assert collections.Counter(s.name for s in run.trace.tasks) == {f"domain{i}::same": 2 for i in range(10000)}


def test_domain_switched_off(xstrace):
    """Part of itt_names; the task in the disabled domain must not be there."""
    trace = xstrace(ITT, "itt_names").trace
    assert trace.count("tasks", "switched::on") == 1
    assert trace.count("tasks", "switched::off") == 0


def test_without_itt_logging_nothing_listens(xstrace):
    """The program's create functions then give NULL, as without any collector."""
    run = xstrace("--chrome-call-logging", "itt_names")
    assert run.status == 0 and "of NULL: no domain, no name\n" in run.out
    assert not run.trace_files


@pytest.mark.long
def test_more_names_than_fit(xstrace):
    """Every task stays; names beyond the table's size share one."""
    body = """
names = domain("names")
for i in range(150000):
    begin(names, f"{i:0300}")
    end(names)
"""
    run = script(xstrace, body)
    assert run.status == 0 and len(run.said) == 2 and f"names {run.trace.other['omitted']['names']}" in run.said[0]
    assert run.trace.count("tasks") == 150000
    shared = run.trace.count("tasks", "names::(too many names)")
    assert 0 < shared <= run.trace.other["omitted"]["names"] <= 2 * shared
    assert run.trace.tasks[0].name == f"names::{0:0300}"
    assert "too many names" in max(run.trace.tasks, key=lambda s: s.start).name


def test_many_open_tasks(xstrace):
    """More of them than any buffer holds, and all still open at the end."""
    run = script(xstrace, "d = domain('d')\nfor i in range(50000):\n    begin(d, 'open')\n")
    assert run.status == 0
    assert run.trace.count("open", "d::open") == 50000
    assert run.trace.other["lost"] == 0


def test_tasks_of_a_signal_handler(xstrace):
    """It may interrupt the collector itself: then its tasks are counted as lost, whole ones."""
    source = r"""
#include <ittnotify.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static __itt_domain *a, *b;
static __itt_string_handle *s, *h;
static volatile long handled;
static void handler(int sig)
{
	__itt_task_begin(b, __itt_null, __itt_null, h);
	__itt_task_end(b);
	handled++;
}
int main(void)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	long n;
	a = __itt_domain_create("main"); b = __itt_domain_create("handler");
	s = __itt_string_handle_create("task"); h = __itt_string_handle_create("signal");
	__itt_task_begin(b, __itt_null, __itt_null, h); __itt_task_end(b);
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	for (n = 0; handled < 1000; n++) {
		__itt_task_begin(a, __itt_null, __itt_null, s);
		for (volatile int i = 0; i < 200; i++);
		__itt_task_end(a);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("expected: %ld tasks main::task\natmost: %ld tasks handler::signal\n", n, handled + 1);
	return 0;
}
"""
    run = xstrace(ITT, compile_c(xstrace.home / "handler", source))
    run.check_expected()
    other = run.trace.other
    found = run.trace.count("tasks", "handler::signal")
    made = int(re.search(r"atmost: (\d+)", run.out)[1])
    assert other["lost"] == 2 * (made - found) and found > made // 2
    assert "unmatched_ends" not in other and not [s for s in run.trace.tasks if s.unfinished]


HANDLERS_WAITS = r"""
#include <ittnotify.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static char object, others[2];
static volatile long handled;

static void handler(int number)
{
	void *waited = &others[handled % 2];

	(void)number;
	if (handled % 3 == 2)
		waited = &object;
	__itt_sync_prepare(waited);
	__itt_sync_acquired(waited);
	handled++;
}

int main(void)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	long n;

	__itt_sync_create(&object, "", "main", 0);
	__itt_sync_create(&others[0], "", "handler", 0);
	__itt_sync_create(&others[1], "", "handler", 0);
	__itt_sync_prepare(&object);
	__itt_sync_acquired(&object);
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	for (n = 1; handled < 600; n++) {
		__itt_sync_prepare(&object);
		for (volatile int i = 0; i < 100; i++)
			;
		__itt_sync_acquired(&object);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%ld %ld\n", n, handled);
	return 0;
}
"""


def test_waits_of_a_signal_handler(xstrace):
    """One that interrupts a wait, between its two calls or in one of them, has its own, of the same object too."""
    run = xstrace(ITT, compile_c(xstrace.home / "handler", HANDLERS_WAITS))
    waits, handled = map(int, run.out.split())
    names = [s.name for s in run.trace.slices]
    other = run.trace.other
    assert "corrupt_rings" not in other
    assert len(names) + other["lost"] == waits + handled and set(names) == {"wait main", "wait handler"}
    assert names.count("wait main") >= waits and other["lost"] < handled
    assert all(s.end - s.start < 10**9 for s in run.trace.slices)


def test_what_the_file_says_about_the_run(xstrace):
    """The members that docs/TRACE_FORMAT.md promises."""
    began = time.time_ns()
    run = xstrace(ITT, "itt_tasks", [10, 2, "--depth", "3"])
    trace, ended = run.trace, time.time_ns()
    wanted = {"tool", "version", "run", "host", "pid", "ppid", "command", "options", "clock"}
    assert wanted <= set(trace.metadata)
    assert trace.metadata["ppid"] == run.pid and trace.metadata["tool"] == "xstrace"
    assert trace.metadata["command"] == [str(word) for word in run.command[2:]]
    assert trace.metadata["clock"] in ("tsc", "monotonic")
    other = trace.other
    assert (other["end"], other["status"], other["lost"]) == ("exited", 0, 0)
    assert other["events"] == 2 * 20 == sum(t["records"] for t in other["threads"])
    assert {t["name"] for t in other["threads"]} == {"itt_tasks"}
    assert other["clock_error_ns"] < 100000
    base = trace.header["baseTimeNanoseconds"]
    assert all(began <= base + s.start <= base + s.end <= ended for s in trace.slices)


def test_a_very_long_command(xstrace):
    args = ["3"] + ['"\\é\n' * 500] * 20
    run = xstrace(ITT, "sh", ["-c", f"exec {APPS}/itt_tasks $0", *args])
    assert run.trace.count("tasks") == 3
    assert run.trace.metadata["command"][0] == "sh"


def test_a_quiet_program_is_on_disk(xstrace):
    """Its few tasks do not wait in a ring until it ends."""
    run = xstrace.start(ITT, "itt_tasks", [10, "--hold"])
    path = wait_until(lambda: next(run.cwd.glob("*.json"), None), 5)
    wait_until(lambda: len(Trace(path).tasks) == 10, 5)
    os.kill(run.child("itt_tasks"), signal.SIGTERM)
    run.finish()
    assert run.trace.count("tasks") == 10


LONG_NAMES = r"""
#include <ittnotify.h>
#include <string.h>

int main(void)
{
	static char type[3001], name[3001];
	int lock;

	memset(type, 't', 3000);
	memset(name, 'n', 3000);
	__itt_thread_set_name(name);
	__itt_sync_create(&lock, type, name, 0);
	__itt_sync_prepare(&lock);
	__itt_sync_acquired(&lock);
	return 0;
}
"""


def test_names_of_threads_and_objects_are_as_long_as_the_document_says(xstrace):
    said = " ".join((ROOT / "docs/ITT.md").read_text().split())
    thread = re.search(r"but (\d+) of a thread's", said)
    of = re.search(r"Of a sync object (\d+) bytes of its type and (\d+) of its name are used", said)
    run = xstrace("--chrome-itt-logging", compile_c(xstrace.home / "long_names", LONG_NAMES))
    assert [s.name for s in run.trace.slices] == [f"wait {'t' * int(of[1])} {'n' * int(of[2])}"]
    names = re.findall(r'"thread_name".*?"name":"(n*)"', run.trace.path.read_text())
    assert names == ["n" * int(thread[1])]
