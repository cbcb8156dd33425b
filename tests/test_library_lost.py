"""Events that a program's own traces lack: each trace says how many, of its time alone (docs/LIBRARY.md)."""

import collections
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, XSTRACE, Trace, mounted, root_only

API = BUILD / "library"
SMALL = "--ring-size 64K --backlog 0"
OWN = range(5)  # what the program's first thread records: the identity of the trace, and a range
PAIRS = 20_000  # of begin and end, of each thread in each trace: ten times what a ring has room for

# OPTIONS DIRECTORY ROUNDS THREADS [BEFORE AFTER]: the same threads in each trace, which commands begin and end, or the program itself
SOURCE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xstrace/xstrace.h>

static pthread_barrier_t barrier;
static long rounds, pairs = PAIRS;

static void *record(void *unused)
{
	for (long round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		for (long i = 0; i < pairs; i++) {
			xstrace_range_push("a");
			xstrace_range_pop();
		}
		pthread_barrier_wait(&barrier);
	}
	return unused;
}

static void fill(const char *path)
{
	static char bytes[65536];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	for (size_t size = sizeof(bytes); size; size /= 2)
		while (write(fd, bytes, size) > 0)
			;
	close(fd);
}

static void save(const char *directory, long round)
{
	struct xstrace_trace *trace;
	char path[4096];

	if (xstrace_stop(&trace)) {
		puts(xstrace_why());
		return;
	}
	snprintf(path, sizeof(path), "%s/%ld.json", directory, round);
	puts(xstrace_trace_save(trace, path) ? xstrace_why() : path);
	xstrace_trace_free(trace);
}

int main(int argc, char **argv)
{
	struct xstrace_config config = { .size = sizeof(config), .options = argv[1] };
	long count = atol(argv[4]);
	pthread_t threads[16];

	rounds = atol(argv[3]);
	if (getenv("FEW"))
		pairs = atol(getenv("FEW"));
	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_barrier_init(&barrier, NULL, count + 1);
	if (xstrace_prepare(&config))
		return puts(xstrace_why()), 1;
	if (getenv("FILL")) {
		/* this thread has a ring then */
		xstrace_start();
		xstrace_range_push("main");
		xstrace_range_pop();
		save(argv[2], rounds);
		fill(getenv("FILL"));
	}
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, record, NULL);
	for (long round = 0; round < rounds; round++) {
		if (argc > 5 ? system(argv[5]) : xstrace_start())
			return puts("not started"), 1;
		pthread_barrier_wait(&barrier);
		xstrace_range_push("main");
		xstrace_range_pop();
		pthread_barrier_wait(&barrier);
		for (long i = 0; round == rounds - 1 && i < count; i++)
			pthread_join(threads[i], NULL);
		if (argc <= 5)
			save(argv[2], round);
		else if (system(argv[6]))
			return puts("not stopped"), 1;
	}
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    place = tmp_path_factory.mktemp("lost")
    (place / "lost.c").write_text(SOURCE)
    words = ["cc", f"-DPAIRS={PAIRS}", f"-I{ROOT}/include", f"-I{API}", "-o", place / "lost", place / "lost.c"]
    subprocess.run([*words, f"-L{API}", "-lxstrace-api", f"-Wl,-rpath,{API}", "-pthread"], check=True)
    return place / "lost"


def run(xstrace, program, options, rounds, threads, *commands, **env):
    run = xstrace.bare(program, [options, str(xstrace.home), str(rounds), str(threads), *commands], env=env)
    assert run.status == 0 and run.err == "", run.out + run.err
    return run.out


def check(trace, threads):
    """Each event is in the trace, or counted as lost by it: in all, and of each thread."""
    other, told = trace.other, collections.Counter()
    assert other["events"] + other["lost"] - 2 * PAIRS * threads in OWN, (other["events"], other["lost"])
    for thread in other["threads"]:
        told[thread["tid"]] += thread["records"] + thread["lost"]
    assert {count for count in told.values() if count not in OWN} <= {2 * PAIRS}
    return other["lost"]


@pytest.mark.parametrize("policy", ["drop", "overwrite"])
def test_full_rings(xstrace, program, policy):
    """Of rings that the first trace begins, and that later ones find again."""
    out = run(xstrace, program, f"{SMALL} --on-full {policy}", 3, 4)
    traces = [Trace(path) for path in out.splitlines()]
    assert len(traces) == 3
    for trace in traces:
        assert check(trace, 4) > 0 or policy == "drop"  # all may be read in time
        assert sum(thread["lost"] for thread in trace.other["threads"]) == trace.other["lost"]


@pytest.mark.parametrize("policy", ["drop", "overwrite"])
def test_full_rings_of_traces_from_another_shell(xstrace, program, policy, tmp_path):
    name = f"lost{os.getpid()}{policy}"
    commands = [f"{XSTRACE} {what} {name}" for what in ("--resume", "--pause")]
    out = run(xstrace, program, f"{SMALL} --on-full {policy} --session {name}", 3, 2, *commands, TMPDIR=str(tmp_path))
    traces = [Trace(path) for path in re.findall(r"stored in (\S+)", out)]
    assert len(traces) == 3
    for trace in traces:
        assert check(trace, 2) > 0 or policy == "drop"


def test_threads_that_end_before_they_are_looked_at(xstrace, program):
    """What they have recorded and lost since the trace before is theirs in the list of threads."""
    out = run(xstrace, program, "", 2, 3, FEW="10")
    for path in out.splitlines():
        other = Trace(path).other
        assert sorted(thread["records"] for thread in other["threads"])[-3:] == [20] * 3
        assert sum(thread["records"] for thread in other["threads"]) == other["events"]


@root_only
def test_no_memory_for_a_ring(xstrace, program):
    """/dev/shm is full before the threads begin: each trace is there, and lacks its own events and no older ones."""
    with mounted("/dev/shm", "size=40m"):
        out = run(xstrace, program, SMALL, 3, 12, FILL="/dev/shm/full")
        Path("/dev/shm/full").unlink()
    traces = [Trace(path) for path in out.splitlines()]
    assert len(traces) == 4, out
    for trace in traces[1:]:
        assert check(trace, 12) == 2 * PAIRS * 12
        (own,) = trace.slices  # main's ring is older; nothing is kept of it, and no name
        assert own.track[0] == own.track[1]
