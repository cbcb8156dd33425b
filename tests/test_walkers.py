"""Two ways to walk one stack: the frame walker of --call-stacks, in the program, and libunwind from outside (--stacks). Both must give the same.

Each thread of the programs here waits in an OpenCL call, so the record of that call has the stack that --stacks sees while it waits.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, XSTRACE

pytestmark = [
    pytest.mark.skipif(not (BUILD / "stacks/xstrace-stacks").exists(), reason="built without libunwind"),
    pytest.mark.skipif(not (BUILD / "tests/apps/cl_stacks").exists(), reason="no OpenCL"),
]
OPTIONS = "--chrome-call-logging --call-stacks=128"

PROGRAM = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

static cl_event event;
#define PLACE __attribute__((noinline))
#define BEHIND __asm__ volatile("" ::: "memory") /* no jump in place of the call */

PLACE void wait_here() { clWaitForEvents(1, &event); BEHIND; }
PLACE void recursion(int n) { if (n) recursion(n - 1); else wait_here(); BEHIND; }
static int compare(const void *, const void *) { static thread_local bool once; if (!once) { once = true; wait_here(); } return 0; }
PLACE void through_libc() { int some[4] = { 3, 1, 2, 0 }; qsort(some, 4, sizeof(int), compare); BEHIND; }
PLACE void variable_frame(int n) { volatile char *room = (volatile char *)alloca((size_t)n * 100); room[0] = 1; wait_here(); room[1] = 2; }
PLACE void aligned_frame() { alignas(64) volatile char room[128]; room[0] = 1; wait_here(); room[1] = 2; }
struct guard { ~guard() { wait_here(); BEHIND; } };
PLACE void throws() { guard g; throw std::runtime_error("x"); }
PLACE void unwinding() { try { throws(); } catch (const std::exception &) { BEHIND; } }
PLACE void catching() { try { throw 1; } catch (int) { wait_here(); BEHIND; } }
PLACE void large_frame() { volatile char room[100000]; room[0] = 1; wait_here(); room[99999] = 2; }
PLACE void functional() { std::function<void(int)> f = [](int n) { recursion(n); BEHIND; }; f(2); BEHIND; }
static void handler(int) { wait_here(); BEHIND; }
PLACE void interrupted(int number) { pthread_kill(pthread_self(), number); BEHIND; }
PLACE void fault_at(volatile int *p) { *p = 1; BEHIND; }
PLACE void by_handler() { interrupted(SIGURG); BEHIND; }
PLACE void by_fault() { fault_at((volatile int *)8); BEHIND; }
PLACE void by_other_stack() {
	stack_t stack = {}; stack.ss_size = 1 << 18; stack.ss_sp = malloc(stack.ss_size); sigaltstack(&stack, nullptr);
	interrupted(SIGWINCH); BEHIND;
}
static void deep() { recursion(90); BEHIND; }
static void *run(void *place) { ((void (*)())place)(); BEHIND; return nullptr; }
static void plain() { wait_here(); BEHIND; }
static void alloca_7() { variable_frame(7); BEHIND; }
static void fault_handler(int) { wait_here(); for (;;) pause(); } /* or it faults again */

int main() {
	cl_platform_id platform; cl_device_id device; cl_int error;
	void (*const places[])() = { plain, deep, through_libc, alloca_7, aligned_frame, unwinding, catching, large_frame, functional, by_handler, by_other_stack, by_fault };
	struct sigaction action = {};
	action.sa_handler = handler; sigaction(SIGURG, &action, nullptr);
	action.sa_flags = SA_ONSTACK; sigaction(SIGWINCH, &action, nullptr);
	action.sa_handler = fault_handler; sigaction(SIGSEGV, &action, nullptr);
	if (clGetPlatformIDs(1, &platform, nullptr) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr)) return 77;
	cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
	event = clCreateUserEvent(context, &error);
	std::vector<pthread_t> threads;
	for (auto place : places) { pthread_t thread; pthread_create(&thread, nullptr, run, (void *)place); threads.push_back(thread); }
	usleep(500000); puts("ready"); fflush(stdout); getchar();
	clSetUserEventStatus(event, CL_COMPLETE);
	threads.pop_back(); /* the last place is by_fault */
	for (auto thread : threads) pthread_join(thread, nullptr);
	usleep(100000); _exit(0);
	return 0;
}
"""
PLACES = ("plain", "deep", "through_libc", "alloca_7", "aligned_frame", "throws", "catching", "large_frame", "functional", "by_handler", "by_other_stack", "by_fault")

PYTHON = """
import sys, threading, pyopencl as cl
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
event = cl.UserEvent(context)
def waits(n):
    return waits(n - 1) if n else sorted([1], key=lambda x: cl.wait_for_events([event]))
threads = [threading.Thread(target=waits, args=(n,)) for n in range(3)]
[t.start() for t in threads]
import time; time.sleep(0.5)
print("ready", flush=True)
sys.stdin.read()
event.set_status(cl.command_execution_status.COMPLETE)
[t.join() for t in threads]
"""


def from_outside(text):
    """What --stacks prints of each thread that waits in an OpenCL call: the frames above ours, innermost first."""
    stacks, frames = [], None
    for line in text.splitlines() + ["  0 threads, "]:
        if re.match(r"  \d+ threads?, ", line):
            ours = [i for i, frame in enumerate(frames or []) if "(libxstrace.so)" in frame]
            if ours:
                stacks.append([re.sub(r"(\+0x[0-9a-f]+) \([^()]*\)$", r"\1", frame) for frame in frames[ours[-1] + 1 :]])
            frames = []
        elif frame := re.match(r"    #\d+ +(.+)", line):
            frames.append(frame[1])
    return stacks


def both(xstrace, app, *args):
    """The stacks of the calls that waited, by each way; sorted."""
    name = f"walk-{os.getpid()}"
    run = xstrace.start(f"--session {name} {OPTIONS}", app, args, stdin=subprocess.PIPE)
    run.wait_for_output()
    text = subprocess.run([XSTRACE, "--stacks", name], capture_output=True, text=True, check=True).stdout
    run.process.stdin.close()
    run.finish()
    assert run.status == 0
    inside = [call.args["stack"][::-1] for call in run.trace.calls if call.name == "clWaitForEvents" and call.end - call.start > 200_000]
    return sorted(inside), sorted(from_outside(text))


def test_places_of_a_program(xstrace):
    source = xstrace.home / "walk.cpp"
    source.write_text(PROGRAM)
    flags = ["-w", "-O2", "-fomit-frame-pointer", "-D_GNU_SOURCE", "-pthread"]
    subprocess.run(["c++", *flags, "-o", xstrace.home / "walk", source, "-lOpenCL"], check=True)
    inside, outside = both(xstrace, xstrace.home / "walk")
    for place in PLACES:
        mine, theirs = ([stack for stack in stacks if any(frame.startswith((place + "(", place + "+")) for frame in stack)] for stacks in (inside, outside))
        assert mine and mine == theirs, place


def test_python(xstrace):
    if subprocess.run([sys.executable, "-c", "import pyopencl"], capture_output=True).returncode:
        pytest.skip("no pyopencl")
    code = xstrace.home / "walk.py"
    code.write_text(PYTHON)
    inside, outside = both(xstrace, shutil.which("python3") and sys.executable, code)
    assert len(inside) == len(outside) == 3
    # Python's functions stand in the place of the interpreter's, whoever looks
    assert inside == outside and all("waits" in " ".join(stack) and len(stack) > 15 for stack in outside)
