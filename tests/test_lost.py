"""Begins of tasks that find no room in a full ring (--on-full drop): what is recorded behind them, whether they ever end or not."""

import os
import signal
import time

import pytest

from conftest import compile_c, wait_until
from others import INTERPRETERS
from test_endings import recover
from test_full import SMALL, start_with_drain

DROP = f"{SMALL} --on-full drop --backlog 0"

PROGRAM = r"""
#include <ittnotify.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static __itt_domain *domain;
static sigjmp_buf back;
static long events;

static void begin(const char *name)
{
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(name));
	events++;
}

static void end(void)
{
	__itt_task_end(domain);
	events++;
}

static void tasks(const char *name, int count)
{
	while (count--) {
		begin(name);
		end();
	}
}

static void leave(int number)
{
	(void)number;
	begin("lost in a handler");
	siglongjmp(back, 1);
}

/* Says so, and waits for a file. */
static void wait_for(const char *file)
{
	puts(file);
	fflush(stdout);
	while (access(file, F_OK))
		usleep(1000);
}

int main(int argc, char **argv)
{
	const char *how = argv[argc - 1];

	domain = __itt_domain_create("d");
	if (strchr(how, 'a'))
		begin("outer");
	tasks("fill", 20000);
	if (strchr(how, 'j') && !sigsetjmp(back, 1)) {
		signal(SIGUSR1, leave);
		begin("lost");
		raise(SIGUSR1);
	} else if (!strchr(how, 'j')) {
		begin("lost");
		begin("lost");
	}
	wait_for("full");
	if (strchr(how, 'k')) {
		begin("inner");
		tasks("before", 10);
		wait_for("killed");
		end(); /* inner */
		end(); /* both that are lost */
		end();
	}
	tasks("after", 1000);
	if (strchr(how, 'a'))
		end();
	printf("%ld events\n", events);
	return 0;
}
"""


def go_on(run, word):
    """The program has come so far, and whoever reads its ring has read all."""
    wait_until(lambda: word in (run.log / "stdout").read_text())
    os.kill(run.drain, signal.SIGCONT)
    time.sleep(1)


def check(run, unfinished=()):
    """The tasks behind the lost begins by their names. What was not recorded is counted."""
    run.read_output()
    (events,) = (int(line.split()[0]) for line in run.out.splitlines() if "events" in line)
    other = run.trace.other
    assert other["lost"] > 30000 and other["events"] + other["lost"] == events
    assert "recovered" in other or sum(t["records"] + t["lost"] for t in other["threads"]) == events
    assert "unmatched_ends" not in other and "omitted" not in other
    assert [s.name for s in run.trace.tasks if s.unfinished] == list(unfinished)
    assert not run.trace.count("tasks", "d::lost")
    assert run.trace.count("tasks", "d::after") == 1000
    tasks = {s.name: s for s in run.trace.tasks}
    return [s for s in run.trace.tasks if s.name == "d::after"], tasks


@pytest.mark.parametrize("form", ["", "--format perfetto"])
@pytest.mark.parametrize("how", ["jump", "never", "a jump", "a never"], ids=lambda how: how.replace(" ", "_"))
def test_tasks_whose_begins_are_lost_and_never_end(xstrace, how, form):
    """
    The thread goes on recording. An end pairs with the innermost task: so that of one around them is taken for one of theirs, as for
    a task whose begin was recorded and which never ends.
    """
    app = compile_c(xstrace.home / "left", PROGRAM)
    run = start_with_drain(signal.SIGSTOP, xstrace, f"{DROP} {form}", app, [how])
    go_on(run, "full")
    (run.cwd / "full").touch()
    run.finish()
    (run.cwd / "full").unlink()
    after, tasks = check(run, ["d::outer"] if how[0] == "a" else [])
    if how[0] == "a":
        assert all(tasks["d::outer"].start <= s.start <= s.end <= tasks["d::outer"].end for s in after)


def test_lost_begins_that_are_open_when_the_drain_process_is_killed(xstrace):
    """Its successor knows them: their ends close nothing."""
    app = compile_c(xstrace.home / "left", PROGRAM)
    run = start_with_drain(signal.SIGSTOP, xstrace, DROP, app, ["a never, killed"])
    go_on(run, "full")
    (run.cwd / "full").touch()
    go_on(run, "killed")
    os.kill(run.drain, signal.SIGKILL)
    (run.cwd / "killed").touch()
    run.wait()
    assert run.status == 0
    for name in ("full", "killed"):
        (run.cwd / name).unlink()
    recover(run)
    after, tasks = check(run)
    outer, inner = tasks["d::outer"], tasks["d::inner"]
    assert outer.start < inner.start <= tasks["d::before"].start <= tasks["d::before"].end <= inner.end
    assert all(inner.end <= s.start <= s.end <= outer.end for s in after)


PYTHON = r"""
import os
import time
def leaf():
    pass
def fill():
    for _ in range(3000):
        leaf()
def after():
    pass
def lost():
    print("full", flush=True)
    while not os.path.exists("full"):
        time.sleep(0.001)
    for _ in range(1000):
        after()
def outer():
    fill()
    lost()
outer()
print(2 * (3000 + 1000 + 4), "events")
"""


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.resolve().name)
def test_functions_whose_begins_are_lost(xstrace, python):
    """Their ends are told to the ring, which knows that they are none of what is around them."""
    (xstrace.home / "app.py").write_text(PYTHON)
    run = start_with_drain(signal.SIGSTOP, xstrace, "--python-stacks=app --ring-size 64K --on-full drop --backlog 0", python, [xstrace.home / "app.py"])
    go_on(run, "full")
    (run.cwd / "full").touch()
    run.finish()
    (run.cwd / "full").unlink()
    other = run.trace.other
    assert other["lost"] > 2 and other["events"] + other["lost"] == 2 * (3000 + 1000 + 4)
    names = [s.name.split()[0].removeprefix("Python::") for s in run.trace.tasks]
    assert names.count("after") == 1000 and "lost" not in names
    assert "unmatched_ends" not in other and not [s for s in run.trace.tasks if s.unfinished]
