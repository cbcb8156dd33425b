"""Inside of the traced program: threads that are cancelled, little stacks, handlers that interrupt and jump, sandboxes, shared memory.

Every program here is right without xstrace, and must be with it; what cannot be recorded is counted. Rules are looked at in the built libraries.
"""

import json
import re
import subprocess

import pytest

from conftest import BUILD, ROOT, compile_c, open_trace, root_only, wait_until

ITT = "--chrome-itt-logging"
SANITIZED = b"__asan_init" in (BUILD / "collector/libxstrace.so").read_bytes()
STEPPED = BUILD / "tests/apps/itt_stepped"
plain_only = pytest.mark.skipif(SANITIZED, reason="a sanitizer's own frames and calls")


def lost(run):
    """Events that xstrace says are lost."""
    return sum(int(n) for n in re.findall(r"(\d+) events? of process", "\n".join(run.said)))


def number(run, key):
    return int(re.search(rf"^{key}: (\d+)", run.out, re.M)[1])


def inside(xstrace, *args, options=ITT, timeout=40):
    """itt_inside under xstrace, as it is without: status 0, no word."""
    run = xstrace(options, "itt_inside", args, timeout=timeout)
    assert (run.status, run.err) == (0, "")
    return run


# ---- threads that are cancelled ----


def test_a_thread_that_is_to_be_cancelled(xstrace):
    """Its first event makes a file of rings, in which no cancellation point may be."""
    run = inside(xstrace, "cancel")
    assert run.out.startswith("cancelled\n")
    run.check_expected()
    assert not lost(run)


def test_threads_cancelled_at_any_moment(xstrace):
    run = inside(xstrace, "async", 200)
    run.check_expected()


# ---- little stacks ----


@plain_only
@pytest.mark.parametrize("args", [("stack", 0), ("stack", 20480), ("sigstack", 16384)], ids=str)
def test_little_stacks(xstrace, args):
    run = inside(xstrace, *args)
    assert run.out.startswith("intact\n")
    run.check_expected()
    names = {task.name for task in run.trace.tasks}
    assert "inside::on a little stack 1" in names
    assert any(task.name.startswith("inside::xxxx") and len(str(task.args.get("a key"))) > 1000 for task in run.trace.tasks)


@plain_only
def test_depth_of_entry_points(xstrace):
    """What docs/SECURITY.md says of the stack; setenv() is the C library's own need."""
    bare = xstrace.bare("itt_inside", ["depth"]).out
    run = inside(xstrace, "depth")
    depths = dict(re.findall(r"^(.+): (\d+)$", run.out, re.M))
    assert len(depths) == 10
    own = int(re.search(r"^setenv: (\d+)", bare, re.M)[1])
    assert int(depths.pop("setenv")) <= own + 1024
    for name, depth in depths.items():
        assert int(depth) <= (4608 if name == "a thread's first event" else 3072), name


@plain_only
def test_no_large_frames():
    """The compiler refuses frames above 1 KiB in all that is linked into the libraries."""
    rows = json.loads((BUILD / "compile_commands.json").read_text())
    ours = [row for row in rows if row["output"].startswith(("collector/", "itt_collector/", "gpu/", "interpose/", "common/libcommon.a"))]
    assert len(ours) > 60
    for row in ours:
        for flag in ("-Werror", "-Wframe-larger-than=1024", "-fstack-clash-protection"):
            assert flag in row["command"].split(), row["output"]


# what the libraries may call: nothing of it is a cancellation point, takes a lock that a handler can find taken, or grows the stack without bound.
# No function for memory and text, in front of which sanitizers stand: ours are in collector/own_text.c
ALLOWED = set(
    """__cxa_atexit __cxa_finalize __errno_location _dl_find_object clock_gettime dladdr dladdr1 dlclose dlerror dlopen dlsym dlvsym
    getenv __register_atfork pthread_key_create pthread_setspecific strtod strtol strtoul strtoull
    _r_debug _dl_debug_addr __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable __tls_get_addr __stack_chk_fail
    """.split()
)
# nothing that asks the kernel: a program, or a library that it preloads (fakeroot), may have a function of that name. But this one, which
# all that has to be known of libxstrace-mpi.so's pages comes from
ALLOWED |= {"sysconf"}
# the environment of execv() and its kin, by both of its names (collector/exec.c)
ALLOWED |= {"environ", "__environ"}
# pthread_atfork(), in a constructor (itt_collector/init.c)
ALLOWED |= {"__register_atfork"}
# weak: they are there in processes that hold a Python (interpose/python/start.c, collector/python.c)
ALLOWED |= {"PySys_AddAuditHook", "PyGILState_GetThisThreadState", "Py_IsInitialized"}
# at the normal end of a program that uses CUDA, whose driver has made threads before (gpu/cuda/end.c)
ALLOWED |= {"pthread_create", "pthread_detach"}
# changes a word of the thread (collector/blocked.c)
ALLOWED |= {"pthread_setcancelstate"}


@plain_only
@pytest.mark.parametrize("name", ["libxstrace.so", "libxstrace-mpi.so", "libxstrace-ze.so", "libxstrace-ze-deep.so", "libxstrace-jit.so", "libxstrace-crash.so"])
def test_functions_that_are_called(name):
    path = BUILD / "collector" / name
    if not path.exists():
        pytest.skip("not built")
    lines = subprocess.run(["nm", "-uD", path], check=True, capture_output=True, text=True).stdout.splitlines()
    called = {line.split()[-1].partition("@")[0] for line in lines}
    ours = {name for name in called if name.startswith(("xs_", "__itt_"))}
    assert len(called) > 3
    assert called - ours - ALLOWED == set()


def test_the_programs_own_functions_are_not_asked(xstrace):
    run = xstrace(ITT, "itt_taken", timeout=40)
    assert (run.status, run.err, number(run, "asked")) == (0, "", 0)
    assert not lost(run)
    run.check_expected()


# ---- handlers ----


def test_control_in_a_handler(xstrace):
    run = inside(xstrace, "control", 1, options=f"{ITT} --start-paused")
    assert run.out.startswith("went on\n")
    run.check_expected()


@pytest.mark.parametrize("where", ["same", "deeper", "sigstack"])
def test_jumps_out_of_handlers(xstrace, where):
    """What is recorded later is all there; strict checks have looked at what lies before."""
    run = inside(xstrace, "jump", 300, where)
    run.check_expected()


@pytest.mark.parametrize("mode", [("nested", 300), ("nodefer", 100, 200)], ids=["deferred", "nodefer"])
def test_handlers_that_trace(xstrace, mode):
    """The thread's own tasks are all there; what a handler recorded in the middle of one is counted if it is not. 400 events take less than the
    millisecond after which a handler that its own signal interrupts would come again, and go on until the stack ends.
    """
    run = inside(xstrace, *mode)
    run.check_expected()
    made = 2 * (number(run, "made") + number(run, "handled"))
    assert 2 * len(run.trace.tasks) + lost(run) == made


def test_a_real_time_thread_does_not_wait_for_the_scheduler(xstrace):
    """The kernel lets others run for 50 ms of a second that real-time threads fill."""
    run = inside(xstrace, "realtime", 2, options=f"{ITT} --on-full drop")
    if "not real-time" in run.out:
        pytest.skip("no right to be real-time")
    assert number(run, "longest") < 300000


# ---- sandboxes ----


def sandbox(xstrace, how):
    run = xstrace(f"{ITT} --ring-size 256K", "itt_sandbox", [how])
    assert (run.status, run.out, run.err) == (0, "refused\n" if how == "refused" else "sealed\n", "")
    return run, {name: sum(task.name == f"sandbox::{name}" for task in run.trace.tasks) for name in ("before", "within", "beside")}


@pytest.mark.parametrize("how", ["filter", "seccomp"])
def test_filter(xstrace, how):
    """No system call of ours follows; what would have needed one is counted."""
    run, counts = sandbox(xstrace, how)
    assert counts["before"] == 11 and counts["beside"] == 1000  # the thread that had a ring
    assert counts["within"] > 1000
    missing = 2 * (50000 + 1 + 11 + 2000 - len(run.trace.tasks))
    assert abs(lost(run) - missing) <= 1  # the last begin may have found the ring's last place
    assert any("sandbox (seccomp)" in line for line in run.said)


FUNCTIONS = r"""
/* Leaves __itt_task_begin_fn() with functions that were not named before: by a timer's handler that jumps, or cancelled anywhere. */
#include <ittnotify.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
static __itt_domain *domain;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump, jumps;
static void leave(int number)
{
	if (may_jump) may_jump = 0, jumps++, siglongjmp(back, number);
}
static void begin(long i)
{
	__itt_task_begin_fn(domain, __itt_null, __itt_null, (char *)leave + i % 90000);
	__itt_task_end(domain);
}
static void *jump(void *unused)
{
	struct itimerval often = { { 0, 71 }, { 0, 71 } }, never = { { 0, 0 }, { 0, 0 } };
	volatile long i = 0;
	sigset_t alarm;
	sigemptyset(&alarm), sigaddset(&alarm, SIGALRM), pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (jumps < 1500)
		if (!sigsetjmp(back, 1))
			for (may_jump = 1;; i++) begin(i);
	may_jump = 0;
	setitimer(ITIMER_REAL, &never, NULL);
	return unused;
}
static void *go_on(void *from)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (long i = *(long *)from;; i++) begin(i);
}
int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = leave };
	sigset_t alarm;
	pthread_t thread;
	domain = __itt_domain_create("functions");
	sigaction(SIGALRM, &action, NULL);
	begin(0); /* ittnotify takes its mutex in the first call of each function: whoever is cancelled there keeps it */
	if (argc > 1 && !strcmp(argv[1], "jump")) {
		sigemptyset(&alarm), sigaddset(&alarm, SIGALRM), pthread_sigmask(SIG_BLOCK, &alarm, NULL);
		pthread_create(&thread, NULL, jump, NULL);
		pthread_join(thread, NULL);
	}
	for (long i = 0; argc > 1 && !strcmp(argv[1], "cancel") && i < 200; i++) {
		long from = i * 400;
		pthread_create(&thread, NULL, go_on, &from);
		usleep(300);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < 100; i++) begin(0);
	puts("through");
}
"""


@pytest.mark.parametrize("how", ["jump", "cancel"])
def test_a_thread_that_leaves_while_the_loader_is_asked(xstrace, how):
    """The loader would keep its lock, and the program hang in exit()."""
    run = xstrace(ITT, compile_c(xstrace.home / "functions", FUNCTIONS), [how], timeout=60)
    assert (run.status, run.out) == (0, "through\n")
    assert sum(task.name.startswith("functions::") for task in run.trace.tasks) >= 100


def test_strict(xstrace):
    run, counts = sandbox(xstrace, "strict")
    assert counts == {"before": 10, "within": 0, "beside": 0}
    assert any("strict mode; nothing is recorded from then on" in line for line in run.said)
    assert ["strict mode; nothing is recorded from then on" in text for text in run.trace.other["not_seen"]] == [True]


def test_a_filter_that_is_refused(xstrace):
    run, counts = sandbox(xstrace, "refused")
    assert counts == {"before": 11, "within": 50000, "beside": 2000}
    assert not any("seccomp" in line for line in run.said)


FILTERS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
extern char **environ;
static void allow_all(void)
{
	struct sock_filter filter[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, filter };
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) abort();
}
int main(int argc, char **argv)
{
	static char *none[] = { "PATH=/bin", NULL };
	size_t count = 0, size = 0;
	char **list, *texts, *at;
	while (environ[count]) size += strlen(environ[count++]) + 1;
	list = calloc(count + 1, sizeof(*list));
	at = texts = malloc(size);
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1) list[i] = strcpy(at, environ[i]);
	environ = list;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	allow_all();
	environ = none;
	memset(texts, 'd', size); /* the memory is for something else now */
	allow_all();
	for (size_t i = 0; i < size; i++) if (texts[i] != 'd') return 1;
	puts("intact");
	return 0;
}
"""


def test_a_second_filter_when_the_environment_has_moved(xstrace):
    """Where the run's variable was at the first one is the program's own memory now."""
    run = xstrace(ITT, compile_c(xstrace.home / "filters", FILTERS))
    assert (run.status, run.out, run.err) == (0, "intact\n", "")


READ_ONLY = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
extern char **environ;
int main(void)
{
	/* might end what is started here, for a call of ours */
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	size_t count = 0, size = 1 << 20;
	char *texts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at = texts, **list;
	while (environ[count]) count++;
	list = calloc(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1) list[i] = strcpy(at, environ[i]);
	environ = list;
	mprotect(texts, size, PROT_READ);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) abort();
	puts("fine");
	return 0;
}
"""


def test_a_filter_where_the_environment_cannot_be_written(xstrace):
    run = xstrace(ITT, compile_c(xstrace.home / "read_only", READ_ONLY))
    assert (run.status, run.out, run.err) == (0, "fine\n", "")


def test_a_filter_of_a_child_in_our_memory(xstrace):
    """A child of vfork() seals itself alone."""
    run, counts = sandbox(xstrace, "vfork")
    assert counts == {"before": 11, "within": 50000, "beside": 2000}
    assert not any("seccomp" in line for line in run.said)


@pytest.mark.parametrize("how", ["listener", "dispatch"])
def test_a_sandbox_that_asks_or_dispatches(xstrace, how):
    """seccomp() gives a descriptor where a listener answers, not 0. With PR_SET_SYSCALL_USER_DISPATCH calls of a library are a SIGSYS."""
    run = xstrace(f"{ITT} --ring-size 256K", "itt_sealing", [how], timeout=30)
    if run.out == "no dispatch\n":
        pytest.skip("this kernel has no dispatch of system calls")
    assert (run.status, run.out, run.err) == (0, "sealed\n", "")
    assert [task.name.split()[0] for task in run.trace.tasks] == 10 * ["sealing::before"] + 100 * ["sealing::within"]
    assert any("sandbox (seccomp" in line for line in run.said)


def test_a_forked_child_that_seals_itself_before_it_traces(xstrace):
    """It joins before that: afterwards it could not."""
    run = xstrace(f"{ITT} --ring-size 256K", "itt_sealing", ["fork"])
    assert (run.status, run.out, run.err) == (0, "sealed\n", "")
    assert [len(trace.tasks) for trace in run.traces] == [100]


def test_threads_that_seal_at_once(xstrace):
    """None of them waits for a thread that waits for a lock which nobody hands on any more (a second)."""
    for _ in range(4):  # a busy machine may take as long
        run = xstrace(f"{ITT} --ring-size 256K", "itt_sealing", ["together"])
        assert (run.status, run.err) == (0, "")
        if run.out == "sealed\n":
            break
    assert run.out == "sealed\n"


@pytest.mark.parametrize("how", ["exec", "fork", "system", "spawn", "vfork"])
@pytest.mark.parametrize("action", ["kill", "trap", "errno"])
def test_a_program_that_is_started_in_a_sandbox(xstrace, action, how):
    """What would end it for a call of ours is not led to the run; a child of vfork() changes nothing for its parent."""
    run = xstrace(f"{ITT} --ring-size 256K", "itt_sealing", [action, how])
    assert (run.status, run.out, run.err) == (0, "ran\n", "")
    tasks = [task.name.split()[0] for trace in run.traces for task in trace.tasks]
    assert tasks == 10 * ["sealing::before"] + (0 if how == "exec" else 10) * ["sealing::after"]
    assert any("starts in its sandbox" in line for line in run.said) == (action != "errno")


def test_list_of_system_calls(xstrace):
    """A filter is asked about all that the library calls."""
    asked = set(re.findall(r"\bSYS_(\w+),", (ROOT / "collector/filter.c").read_text()))
    called = set()
    for path in [*(ROOT / "collector").glob("*.[ch]"), *(ROOT / "common").glob("*.[ch]"), *(ROOT / "itt_collector").glob("*.[ch]")]:
        called.update(re.findall(r"xs_sys(?:_always)?\(\s*SYS_(\w+)", path.read_text()))
    # the program's own; --cpu-metrics, --stacks-on-crash; what the launcher alone calls; where there is no filter yet; in valgrind
    others = {"execveat", "perf_event_open", "sigaltstack", "unlinkat", "kcmp", "process_vm_readv"}
    assert called - asked == others
    assert not asked - called


@pytest.mark.parametrize("how", ["clock", "clocksys"])
def test_a_program_that_forbids_itself_the_clock(xstrace, how):
    """PR_SET_TSC: reading the time stamp counter is a SIGSEGV then, and so is clock_gettime()."""
    run, counts = sandbox(xstrace, how)
    assert counts == {"before": 10, "within": 0, "beside": 0}
    assert sum("PR_SET_TSC" in line and "nothing is recorded from then on" in line for line in run.said) == 1


# ---- every instruction ----


def stepped(xstrace, *args, options=ITT):
    run = xstrace(options, "itt_stepped", args, timeout=60)
    assert (run.status, run.err) == (0, "")
    if "not allowed" in run.out:
        pytest.skip("no right to trace a process of one's own")
    return run


@plain_only
@pytest.mark.skipif(not STEPPED.exists(), reason="x86-64 only")
@pytest.mark.parametrize("what, stride, least", [("name", 7, 50), ("control", 7, 50), ("new", 31, 25)])
def test_a_jump_at_every_instruction(xstrace, what, stride, least):
    """Out of a handler that comes anywhere in the rare paths, also just before they block signals: what the thread traces later is there."""
    run = stepped(xstrace, "jump", what, stride, options=f"{ITT} --start-paused")
    assert number(run, "rounds") > least
    run.check_expected()


@plain_only
@pytest.mark.skipif(not STEPPED.exists(), reason="x86-64 only")
def test_a_handler_at_every_instruction(xstrace):
    run = stepped(xstrace, "handle", "new", 29)
    run.check_expected()
    handled = sum(task.name == "stepped::handled" for task in run.trace.tasks)
    assert 2 * handled + lost(run) >= 2 * number(run, "rounds") - 1


@plain_only
@pytest.mark.skipif(not STEPPED.exists(), reason="x86-64 only")
def test_a_sandbox_before_every_system_call(xstrace):
    """Another thread puts all into a sandbox while this one is just before its call: it waits until that is made."""
    for number_of_call in range(1, 14):
        run = stepped(xstrace, "seal", number_of_call, options=f"{ITT} --ring-size 64K --on-full drop")
        assert run.out in ("sealed\n", "no more\n")
        if run.out == "no more\n":
            break
        tasks = len(run.trace.tasks)
        assert abs(lost(run) - 2 * (1 + 1 + 300 + 10000 + 1 - tasks)) <= 1
    assert number_of_call > 8


# ---- shared memory ----


def check_spoilt(run):
    """What is spoilt may be shown at any place, in a file that can be read."""
    wait_until(lambda: not run.dir, 30)
    for path in run.cwd.glob("*.json*"):
        with open_trace(path) as trace:
            assert sum(1 for _ in trace) > 0
    run.trace_files = []


@root_only
@pytest.mark.parametrize("how", ["aim", "scribble"])
def test_a_child_with_fewer_rights(xstrace, how):
    """It can spoil the records of its parent, and nothing else: no memory, no file, no end."""
    run = xstrace.start(ITT, "itt_sharing", [how, 3])
    xstrace.left_behind = True
    run.wait(40)
    assert run.status == 0 and run.err == ""
    assert number(run, "changed") == 0
    check_spoilt(run)


# A child that has dropped its rights writes one or two odd words into its parent's ring, for 0.3 s, and is gone; the parent traces on for 0.5 s more.
ODD = """
#include <grp.h>
#include "itt_app.h"
#include "shm.h"

int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("odd");
	__itt_string_handle *task = __itt_string_handle_create("task");
	uint64_t until, head = strtoull(argv[1], NULL, 0), tail = strtoull(argv[2], NULL, 0);

	finished_task(domain, task);
	if (!fork()) {
		FILE *file = fopen("/proc/self/maps", "r");
		struct xs_process_file *process = NULL;
		struct xs_ring *ring;
		char line[5000], *slash;
		void *from;

		while (fgets(line, sizeof(line), file))
			if ((slash = strrchr(line, '/')) && slash[1] == 'p' && strstr(line, "/xstrace-") && sscanf(line, "%p", &from) == 1)
				process = from;
		ring = (void *)((char *)process + xs_slot_offset(0, process->ring_size));
		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			die("setuid");
		for (until = now_ns() + 100000000; now_ns() < until;) {
			if (head)
				atomic_store(&ring->head, head);
			if (tail)
				atomic_store(&ring->tail, tail);
		}
		_exit(0);
	}
	for (until = now_ns() + 250000000; now_ns() < until;)
		for (int i = 0; i < 100; i++)
			finished_task(domain, task);
	finished_task(domain, __itt_string_handle_create("last"));
	return 0;
}
"""


@pytest.mark.long(keep=2)
@root_only
@pytest.mark.parametrize("head, tail", [("~0", "0"), ("0", "~0"), ("~0", "~0"), ("8", "~0"), ("16", "0"), ("1048576", "16"), ("0x7fffffffffff", "1")])
def test_odd_words_that_stay(xstrace, head, tail):
    """Each side says its own word again: the parent does not wait for ever, and its last records are there."""
    app = compile_c(xstrace.home / "odd", ODD, "-D_GNU_SOURCE", "-I", ROOT / "common", "-I", ROOT / "tests/apps")
    words = [str(2**64 - 1) if word == "~0" else word for word in (head, tail)]
    run = xstrace.start(f"{ITT} --ring-size 64K", app, words)
    run.wait(20)
    assert run.status == 0 and run.err == ""
    wait_until(lambda: not run.dir, 30)
    (path,) = run.cwd.glob("*.json")
    with open_trace(path) as trace:
        assert any(event.get("name") == "odd::last" for event in trace)
    run.trace_files = []


def test_a_process_in_our_thread(xstrace):
    """clone(CLONE_VM) with the thread's own variables: the parent's tasks are all there, the other's are counted."""
    run = xstrace(ITT, "itt_sharing", ["clone", 20000])
    assert (run.status, run.err) == (0, "")
    names = [task.name for task in run.trace.tasks]
    assert names.count("sharing::task") == len(names) == 20001
    assert 2 * len(names) + lost(run) == 2 * number(run, "made")


def test_a_process_in_our_thread_by_the_system_call(xstrace):
    """Nobody can know of it: it must not stop either."""
    run = xstrace.start(ITT, "itt_sharing", ["rawclone", 20000])
    run.wait(40)
    assert (run.status, run.err) == (0, "")
    check_spoilt(run)


OVERWRITES = r"""
#include <ittnotify.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[8192], own[32];
	unsigned long from;

	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("t"));
	__itt_task_end(domain);
	sleep(1); /* it is known by then */
	sprintf(own, "/p%d.", getpid());
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, own) && sscanf(line, "%lx-", &from) == 1)
			memset((void *)from, 255, 4096);
	return 5;
}
"""


def test_what_is_overwritten_says_nothing(xstrace):
    """One line tells that, instead of all that the words there would mean."""
    run = xstrace(ITT, compile_c(xstrace.home / "overwrites", OVERWRITES))
    assert run.status == 5 and run.trace.count("tasks") == 1
    assert sum("has overwritten what it shares" in line for line in run.said) == 1
    assert not [line for line in run.said if "SYCL" in line or "sandbox" in line or "Python" in line]
