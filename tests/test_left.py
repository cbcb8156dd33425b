"""A thread that ends in the middle of a call, or leaves it by a jump: the others neither wait for it nor lose what they do. And sandboxes."""

import csv
import platform
import re

import pytest
from conftest import APPS, compile_c
from gpu_log import DRIVER, SoftGPU
from ranks import MPI, Ranks, mpi_app, needs_mpi  # noqa: F401

needs_ze = pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")
needs_cl = pytest.mark.skipif(not (APPS / "cl_left").exists(), reason="no OpenCL headers")
KERNELS = "--chrome-kernel-logging"
LAUNCHES = 100


@needs_ze
@pytest.mark.parametrize("how", ["cancel", "jump"])
@pytest.mark.parametrize("what", ["immediate", "event", "regular"])
def test_in_the_middle_of_reading_times(xstrace, tmp_path, what, how):
    gpu = SoftGPU(tmp_path, FAULT="rest-zeEventQueryKernelTimestamp:1:500000")
    run = xstrace(KERNELS, "ze_left", [what, how], env=gpu.env, timeout=30)
    assert run.out.startswith("went on") and run.status == 0 and not gpu.misuse
    other = run.trace.other
    # others ask again what it only asked; an execution whose times it was reading is told as missing
    missing = other.get("untimed_commands", 0) + other.get("open_commands", 0)
    assert len(run.trace.device) + missing == len(gpu.kernels) == LAUNCHES + 1
    assert missing <= (what == "regular") and other["lost"] <= 1  # the call that it was in


@needs_ze
def test_events_of_a_pool_that_is_gone(xstrace, tmp_path):
    """Nobody asks them for their times; what the commands told before is in the trace."""
    gpu = SoftGPU(tmp_path)
    run = xstrace(KERNELS, "ze_forgets", [5], env=gpu.env, timeout=30)
    assert run.out == "went on\n" and run.status == 0
    missing = run.trace.other.get("untimed_commands", 0) + run.trace.other.get("open_commands", 0)
    assert len(run.trace.device) + missing == 10 and run.trace.other["lost"] == 0
    assert len(run.trace.device) == 10


@needs_ze
@pytest.mark.parametrize("how", ["signalled", "host", "gone"])
def test_an_event_that_is_never_reset(xstrace, tmp_path, how):
    """It may tell of its former command, of two, or not exist any more: each command has times of its own, or is counted."""
    gpu = SoftGPU(tmp_path, DURATION_NS="*=2000000")
    run = xstrace(KERNELS, "ze_again", [how, 20], env=gpu.env, timeout=60)
    assert run.out == "went on\n" and run.status == 0
    missing = run.trace.other.get("untimed_commands", 0) + run.trace.other.get("open_commands", 0)
    starts = {slice.start for slice in run.trace.device}
    assert len(starts) == len(run.trace.device) and len(starts) + missing == len(gpu.kernels) == 40
    assert how != "signalled" or len(starts) >= 20


@needs_ze
@pytest.mark.parametrize("order", ["", "in-order"])
@pytest.mark.parametrize("how, least", [("lists", 20), ("apart", 40), ("together", 20), ("immediate", 20)])
def test_an_event_of_several_lists(xstrace, tmp_path, how, least, order):
    """What the event told is past when another list's command signals it: the times of the former are read before, or never."""
    gpu = SoftGPU(tmp_path, DURATION_NS="*=2000000")
    run = xstrace(KERNELS, "ze_again", [how, 20, *order.split()], env=gpu.env, timeout=60)
    assert run.out == "went on\n" and run.status == 0
    missing = run.trace.other.get("untimed_commands", 0) + run.trace.other.get("open_commands", 0)
    starts = {slice.start for slice in run.trace.device}
    assert len(starts) == len(run.trace.device) and len(starts) + missing == len(gpu.kernels) == 40
    assert len(starts) >= (40 if how == "together" and order else least)


@needs_ze
@pytest.mark.parametrize("options", [KERNELS, "-h -d", "--chrome-call-logging"])
@pytest.mark.parametrize("launches", [1, 30, 300])
def test_in_a_sandbox(xstrace, launches, options):
    """What needs the kernel, or might make the driver need it, is done without, and counted."""
    env = {"ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_SYNC": "1"}
    bare = xstrace.bare(APPS / "ze_sealed", [launches], env=env)
    if bare.status == 77:
        pytest.skip("no sandboxes here")
    assert bare.status == 0
    run = xstrace(options, "ze_sealed", [launches], env=env, timeout=30)
    assert run.out == bare.out == "sealed\nwent on\n" and run.status == 0
    if options == KERNELS:
        other = run.trace.other
        missing = other.get("untimed_commands", 0) + other.get("open_commands", 0) + other["lost"]
        assert len(run.trace.device) + missing >= 2 * launches and len(run.trace.device) <= 2 * launches


@needs_ze
@pytest.mark.parametrize("options", [KERNELS, "-h -d", "--chrome-call-logging"])
def test_what_is_destroyed_in_strict_mode(xstrace, options):
    """Nobody waits for what is under way: even reading a clock would end the program."""
    env = {"ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_SYNC": "1"}
    bare = xstrace.bare(APPS / "ze_sealed", ["strict"], env=env)
    if bare.status == 77:
        pytest.skip("no sandboxes here")
    run = xstrace(options, "ze_sealed", ["strict"], env=env, timeout=30)
    assert (run.status, run.out) == (bare.status, bare.out) == (0, "went on\n")


@needs_cl
@pytest.mark.parametrize("how", ["cancel", "jump"])
def test_in_the_middle_of_harvesting(xstrace, how):
    xstrace.bare(APPS / "cl_left", [how])  # PoCL keeps what it has compiled
    run = xstrace(KERNELS, "cl_left", [how], env={"OPENCL_LAYERS": str(APPS / "cl_rest.so")}, timeout=30)
    assert run.out.startswith("went on") and run.status == 0
    # nobody has waited for the thread all the time
    assert int(run.out.split()[3]) < 450
    other = run.trace.other
    # lost: the call that never returned
    assert len(run.trace.device) == 100 and other["untimed_commands"] == 1 and other["lost"] == 1


@needs_mpi
def test_out_of_an_error_handler(xstrace, tmp_path, mpi_app):  # noqa: F811
    job = Ranks(xstrace, MPI, mpi_app("mpi_jump"), [tmp_path])
    for rank in job.traces:
        assert (tmp_path / f"said.{rank}").read_text().endswith("jumped 4\n")
        names = [call.name for call in job.calls(rank)]
        for name in ("MPI_Barrier", "MPI_Comm_dup", "MPI_Comm_free"):
            assert names.count(name) == 4 * 3 * 10


@pytest.mark.long(keep=4)
@needs_cl
@pytest.mark.parametrize("options", ["-h -d", KERNELS, "--chrome-device-logging"])
@pytest.mark.parametrize("how", ["finish", "event", "read"])
def test_cancelled_while_it_waits(xstrace, how, options):
    """The runtime's locks stay held. At the end nothing is asked of it that would wait for them."""
    bare = xstrace.bare(APPS / "cl_left", [how], timeout=30)
    run = xstrace(options, "cl_left", [how], timeout=30)
    assert bare.out == run.out == "went on\n" and bare.status == run.status == 0
    if options == KERNELS and how != "read":  # that call never came back: nobody knows what it has enqueued
        assert run.trace.other["open_commands"] == 1


CALLBACKS = r"""
#include <CL/cl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static jmp_buf back;

static void CL_CALLBACK jump(cl_program program, void *user)
{
	longjmp(back, 1);
}

static void CL_CALLBACK end(cl_program program, void *user)
{
	pthread_exit(NULL);
}

static void *build(void *callback)
{
	const char *source = "kernel void k(void) { }";
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);

	clBuildProgram(program, 1, &device, "", callback, NULL);
	return NULL;
}

int main(int argc, char *argv[])
{
	pthread_t thread;
	size_t size;

	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	for (volatile int i = 0; i < 5; i++) {
		if (!strcmp(argv[1], "thread")) {
			pthread_create(&thread, NULL, build, end);
			pthread_join(thread, NULL);
		} else if (!setjmp(back)) {
			build(jump);
		}
	}
	clGetPlatformInfo(platform, CL_PLATFORM_NAME, 0, NULL, &size);
	puts("went on");
	return 0;
}
"""


@needs_cl
@pytest.mark.parametrize("how", ["jump", "thread"])
def test_out_of_a_callback(xstrace, how):
    """A call that never returns has no end to be recorded: the trace shows it unfinished, or it is counted as lost."""
    program = compile_c(xstrace.home / "callbacks", CALLBACKS, "-lOpenCL", "-DCL_TARGET_OPENCL_VERSION=120")
    run = xstrace("--chrome-call-logging", program, [how], timeout=30)
    assert (run.status, run.out) == (0, "went on\n")
    builds = [call for call in run.trace.calls if call.name == "clBuildProgram"]
    assert len(builds) + run.trace.other["lost"] == 5 and all(call.unfinished for call in builds)
    assert sum(call.name == "clCreateProgramWithSource" for call in run.trace.calls) == 5
    assert sum(call.name == "clGetPlatformInfo" for call in run.trace.calls) == 1


EXIT = r"""
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile int done;
static char when;

/* stands for the destructors of the runtime's libraries */
static void destructor(void)
{
	puts(done ? "complete" : "in the middle of it");
}

static void CL_CALLBACK work(void *unused)
{
	struct timespec time = { 0, 5000000 };

	if (when == 't')
		atexit(destructor);
	if (when == 'l')
		nanosleep(&time, NULL);
	if (when == 'l')
		atexit(destructor);
	nanosleep(&time, NULL);
	done = 1;
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_command_queue queue;
	cl_context context;
	cl_device_id device;
	long data = 0;
	cl_int error;

	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	when = argv[argc - 1][0];
	if (when == 'b')
		atexit(destructor);
	queue = clCreateCommandQueue(context, device, 0, &error);
	if (when == 'a')
		atexit(destructor);
	error = clEnqueueNativeKernel(queue, work, &data, sizeof(data), 0, NULL, NULL, 0, NULL, NULL);
	if (!error)
		error = clFlush(queue);
	return error != 0;
}
"""


@needs_cl
@pytest.mark.parametrize("when", ["before", "after", "thread", "late"])
def test_the_wait_at_exit_comes_first(xstrace, when):
    """
    What gives commands in flight a last chance runs before what the runtime's libraries have registered: before there is a queue, behind
    that, or by the thread that executes, perhaps while we wait. PoCL's threads would go on compiling without what LLVM's destructors
    take away: the program would crash.
    """
    program = compile_c(xstrace.home / "exit", EXIT, "-lOpenCL", "-DCL_TARGET_OPENCL_VERSION=120")
    run = xstrace(KERNELS, program, [when], timeout=30)
    assert (run.status, run.out) == (0, "complete\n")
    assert [slice.name for slice in run.trace.device] == ["clEnqueueNativeKernel"]


REGISTERS = r"""
#include <CL/cl.h>
#include <malloc.h>
#include <stdio.h>

int __cxa_atexit(void (*function)(void *), void *argument, void *library);
void __cxa_finalize(void *library);

static void destructor(void *unused)
{
	(void)unused;
}

/* as who loads and unloads a library of C++, whose handle is ever the same */
int main(void)
{
	static int library;
	cl_platform_id platform;
	cl_device_id device;
	size_t before;

	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	clCreateCommandQueue(clCreateContext(NULL, 1, &device, NULL, NULL, NULL), device, 0, NULL);
	before = mallinfo2().uordblks;
	for (int i = 0; i < 600; i++) {
		for (int k = 0; k < 100; k++)
			__cxa_atexit(destructor, NULL, &library);
		__cxa_finalize(&library);
	}
	printf("%zu\n", mallinfo2().uordblks - before);
	return 0;
}
"""


@needs_cl
def test_what_is_registered_again_has_a_limit(xstrace):
    program = compile_c(xstrace.home / "registers", REGISTERS, "-lOpenCL", "-DCL_TARGET_OPENCL_VERSION=120")
    run = xstrace(KERNELS, program, timeout=60)
    # 16,384 times ours and one of those that it comes behind, 32 bytes each; without a limit 60,000 times
    assert run.status == 0 and int(run.out) < 3 << 19


HANGS = r"""
#include <level_zero/ze_api.h>
#include <unistd.h>
int main(void)
{
	ze_context_desc_t context_desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
	ze_command_queue_desc_t queue_desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC };
	ze_host_mem_alloc_desc_t memory_desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
	ze_command_list_handle_t list;
	ze_context_handle_t context;
	ze_device_handle_t device;
	ze_driver_handle_t driver;
	uint32_t one = 1;
	void *memory;

	zeInit(0);
	zeDriverGet(&one, &driver);
	zeDeviceGet(driver, &one, &device);
	zeContextCreate(driver, &context_desc, &context);
	zeMemAllocHost(context, &memory_desc, 64, 64, &memory);
	zeCommandListCreateImmediate(context, device, &queue_desc, &list);
	for (int i = 0; i < 3; i++)
		zeCommandListAppendMemoryFill(list, memory, &one, sizeof(one), 64, NULL, 0, NULL);
	_exit(0);
}
"""


@needs_ze
@pytest.mark.parametrize("option, titles", [("-d", ["Device Timing Summary"]), ("-s", ["Kernel Submission Summary"]), ("-d -s", ["Device Timing Summary", "Kernel Submission Summary"])])
def test_a_report_of_a_device_that_hangs(xstrace, tmp_path, option, titles):
    """Nothing is known to be complete: the reports that were asked for say so."""
    env = SoftGPU(tmp_path, DURATION_NS="*=900000000").env
    app = compile_c(xstrace.home / "hangs", HANGS, "-lze_loader")
    run = xstrace(option, app, env=env)
    assert all(run.err.count(f"=== {title} ===") == 1 for title in titles)
    assert run.err.count("(3 commands are not in this table") == len(titles)
    run = xstrace(f"{option} -o r.csv --report-format csv", app, env=env)
    (row,) = csv.DictReader(next(run.cwd.glob("r.*.csv")).open())
    assert (row["report"], row["open_commands"]) == ("process", "3")


AT_EACH_STEP = r"""
#define _GNU_SOURCE
#include <level_zero/ze_api.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
static sigjmp_buf away;
static volatile long steps, leave_at, been_there, left_there;
static unsigned long from, to;
static void step(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	unsigned long rip = at->uc_mcontext.gregs[REG_RIP];
	been_there |= rip >= from && rip < to;
	if (++steps != leave_at) return;
	left_there += been_there;
	at->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
	siglongjmp(away, 1);
}
#define ON "sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
#define OFF "sub $128, %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
int main(void)
{
	struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	char line[512];
	unsigned long low, high;
	volatile long whole = 0;
	ze_driver_handle_t driver;
	ze_api_version_t version;
	uint32_t count = 1;
	FILE *maps;
	if (zeInit(0) || zeDriverGet(&count, &driver)) return 9;
	maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "libze_softgpu") && sscanf(line, "%lx-%lx", &low, &high) == 2) {
			if (!from) from = low;
			to = high;
		}
	zeDriverGetApiVersion(driver, &version); /* the loader has found it */
	sigaction(SIGTRAP, &action, NULL);
	for (leave_at = 1; steps == leave_at - 1 || leave_at < 20; leave_at++) {
		steps = been_there = 0;
		if (sigsetjmp(away, 1)) {
			zeDriverGetApiVersion(driver, &version), whole++; /* the next one begins as ever */
			continue;
		}
		__asm__ volatile(ON ::: "memory", "cc");
		zeDriverGetApiVersion(driver, &version);
		__asm__ volatile(OFF ::: "memory", "cc");
		break;
	}
	printf("whole %ld left %ld\n", whole + 2, left_there);
	return 3;
}
"""


@needs_ze
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 only")
def test_a_call_that_is_left_at_each_of_its_instructions(xstrace, tmp_path):
    """Once the driver has been in it, it is in the trace or counted, also while its record is written."""
    app = compile_c(tmp_path / "at_each_step", AT_EACH_STEP, "-lze_loader")
    run = xstrace("--chrome-call-logging", app, env=SoftGPU(tmp_path).env)
    assert run.status == 3
    whole, left = (int(n) for n in re.findall(r"\d+", run.out))
    shown = sum(call.name == "zeDriverGetApiVersion" for call in run.trace.calls)
    assert left > 30 and shown > whole  # some were left behind their record
    assert whole + left <= shown + run.trace.other["lost"] <= whole + left + 16, (whole, left, shown, run.trace.other["lost"])


@needs_ze
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 only")
@pytest.mark.parametrize("first", [0, 8, 16])
@pytest.mark.parametrize("who", ["same", "thread"])
def test_device_work_that_is_left_at_each_instruction(xstrace, tmp_path, who, first):
    """Whoever goes on, the same thread or another one, finds complete what it waits for, and the times are those of the command."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace(KERNELS, "ze_left_at", [who, first], env=gpu.env, timeout=240)
    assert run.status == 3 and not gpu.misuse
    left, after = (int(n) for n in re.findall(r"\d+", run.out))
    other, device = run.trace.other, run.trace.device
    missing = other.get("untimed_commands", 0) + other.get("open_commands", 0)
    assert left > 20 and missing <= 2 * left
    assert len({slice.start for slice in device}) == len(device) >= 2 * after


@needs_ze
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 only")
def test_a_handler_at_each_instruction_that_looks_at_another_list(xstrace, tmp_path):
    """The thread goes on with the first list: no other one looks at that in the meantime."""
    gpu = SoftGPU(tmp_path, SYNC=1)
    run = xstrace(KERNELS, "ze_left_at", ["within", 0], env=gpu.env, timeout=240)
    assert run.status == 3 and not gpu.misuse
    assert int(re.search(r"left (\d+)", run.out)[1]) > 20
    other, device = run.trace.other, run.trace.device
    assert len({slice.start for slice in device}) == len(device) and "untimed_commands" not in other
    shown = len(device) + other.get("open_commands", 0)
    assert shown <= len(gpu.commands) <= shown + other["lost"] and other.get("open_commands", 0) <= 4


FORKS_WITHIN = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <level_zero/ze_api.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int child, forks, by_hand;
static void handler(int number)
{
	int error = errno;
	pid_t pid = child ? 1 : by_hand ? _Fork() : fork();
	if (!pid) child = 1;
	forks += !child;
	errno = error;
}
int main(int argc, char **argv)
{
	struct itimerval timer = { { 0, 300 }, { 0, 300 } };
	ze_driver_handle_t driver;
	ze_api_version_t version;
	uint32_t count = 1;
	int after = 0, status, ended = 0;
	by_hand = argc > 1;
	if (zeInit(0) || zeDriverGet(&count, &driver)) return 9;
	signal(SIGALRM, handler), setitimer(ITIMER_REAL, &timer, NULL);
	while (child || forks < 1000) {
		zeDriverGetApiVersion(driver, &version);
		if (child && ++after > 20) _exit(0);
		while (!child && waitpid(-1, &status, WNOHANG) > 0) ended += status != 0;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0 } }, NULL);
	while (!child && (wait(&status) > 0 || errno == EINTR)) ended += status != 0;
	if (child) _exit(0);
	printf("ended badly: %d\n", ended);
	return 3;
}
"""


@needs_ze
@pytest.mark.parametrize("args", [[], ["_Fork"]], ids=["fork", "_Fork"])
def test_a_handler_that_forks_within_a_call(xstrace, tmp_path, args):
    """Its child goes on in the middle of what the call's begin and end store."""
    app = compile_c(tmp_path / "forks_within", FORKS_WITHIN, "-lze_loader")
    run = xstrace("--chrome-call-logging --follow-child-process 0", app, args, env=SoftGPU(tmp_path).env, timeout=60)
    assert (run.status, run.out.splitlines()[-1]) == (3, "ended badly: 0")
