"""--call-stacks in programs of Python: its functions stand in the place of the interpreter's frames, as Python itself says."""

import json
import re

import pytest

from conftest import compile_c
from others import INTERPRETERS

OPTIONS = "--chrome-call-logging --call-stacks=128"

HEAD = r'''
import ctypes, gc, json, signal, sys, threading, time
library = ctypes.CDLL("libOpenCL.so.1")
holding = ctypes.PyDLL("libOpenCL.so.1")  # keeps the interpreter's lock
count = ctypes.c_uint32()
said = []

def stack(frame):
    lines = []
    while frame:
        code = frame.f_code
        lines.append("%s (%s:%d)" % (getattr(code, "co_qualname", code.co_name), code.co_filename.rpartition("/")[2], frame.f_lineno))
        frame = frame.f_back
    return lines[::-1]

def call(of=library):
    of.clGetPlatformIDs(0, None, ctypes.byref(count)); said.append(stack(sys._getframe()))
'''

PLACES = r'''
class Of:
    def recurses(self, n):
        return self.recurses(n - 1) if n else call()
    def __del__(self):
        call()
def numbers():
    yield 1
    call()
def through(numbers):
    yield from numbers
async def waits():
    call(holding)
def redefined():
    for i in range(50):  # each in the memory of the one before
        names = {"call": call}
        exec(compile("\n" * (i % 7) + "def anew():\n    call()\n", "made%d.py" % (i % 3), "exec"), names)
        names["anew"]()
        names.clear()
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    call()
    return 0
def in_qsort():
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(), 2, 4, compare)
def main():
    call()
    call(holding)
    of = Of()
    of.recurses(9)
    del of
    list(numbers())
    for _ in through(numbers()):
        pass
    try:
        waits().send(None)
    except StopIteration:
        pass
    sorted([2, 1], key=lambda x: call() or x)
    list(map(lambda x: [call() for _ in range(2)], [1, 2]))
    in_qsort()
    sorted([1], key=lambda x: in_qsort() or x)
    try:
        raise ValueError
    except ValueError:
        call()
    redefined()
    thread = threading.Thread(target=Of().recurses, args=(3,))
    thread.start()
    thread.join()
    namespace = {"call": call}
    exec(compile("def \u00fcml\u00e4ut():\n    call()\n", "\u65e5\u672c.py", "exec"), namespace)
    namespace["\u00fcml\u00e4ut"]()
main()
json.dump(said, sys.stdout)
'''


@pytest.fixture(params=INTERPRETERS, ids=lambda path: path.resolve().name)
def python(request):
    return request.param


@pytest.fixture
def app(xstrace, python):
    """Runs a program's text; its status is 0."""

    def run(text, options=OPTIONS, *args):
        path = xstrace.cwd / "app.py"
        path.write_text(HEAD + text)
        traced = xstrace(options, python, [path, *args], timeout=60)
        assert (traced.status, traced.err) == (0, "")
        return traced

    return run


def stacks(run):
    """Of the calls, in their order; each outermost first."""
    calls = sorted((s for s in run.trace.calls if s.name == "clGetPlatformIDs"), key=lambda s: s.start)
    return [s.args["stack"] for s in calls if "stack" in s.args]  # one that has not returned has none


def of_python(stack):
    return [frame for frame in stack if re.search(r" \(.*:\d+\)$", frame)]


def test_all_functions_are_those_that_python_says(app):
    run = app(PLACES)
    said = json.loads(run.out)
    found = stacks(run)
    assert len(said) > 65 and [of_python(stack) for stack in found] == said
    assert not [stack for stack in found if any(frame.startswith("_PyEval_EvalFrameDefault") for frame in stack)]
    # C stands between them where it was
    sorts = [stack for stack in found if any("compare (app.py" in frame for frame in stack)]
    assert len(sorts) >= 2
    for stack in sorts:
        names = [frame.partition("+")[0] for frame in stack]
        at = next(i for i, frame in enumerate(names) if frame.startswith("compare ("))
        assert any("qsort" in frame for frame in names[:at]) and names[0] == "_start" and names[-1].startswith(("ffi", "libffi", "_ctypes", "0x"))


def test_the_folded_file_has_them(app, xstrace):
    app("def caller():\n    call()\ncaller()\n")
    (path,) = xstrace.cwd.glob("*.folded")
    assert re.search(r";<module> \(app\.py:\d+\);.*;?caller \(app\.py:\d+\);.*;?call \(app\.py:\d+\);.*;clGetPlatformIDs \d+$", path.read_text(), re.M)


@pytest.mark.parametrize("depth", [1, 7, 40])
def test_the_innermost_count_most(app, depth):
    """Functions are frames like others: so many in all."""
    run = app("def deep(n):\n    return deep(n - 1) if n else call()\ndeep(800)\n", f"--chrome-call-logging --call-stacks={depth}")
    (stack,) = stacks(run)
    assert stack[0] == "…" and len(stack) == depth + 1
    if depth == 40:
        assert sum(frame.startswith("deep (app.py:") for frame in stack) > 5


SPOIL = r"""
#include <CL/cl.h>
#include <stdint.h>
void spoil(uint64_t *at, uint64_t with)
{
	uint64_t was = *at;
	cl_uint count;
	*at = with;
	clGetPlatformIDs(0, NULL, &count);
	*at = was;
}
"""

SPOILT = r'''
spoil = ctypes.PyDLL(sys.argv[1]).spoil
spoil.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
state = ctypes.pythonapi.PyGILState_GetThisThreadState
state.restype = ctypes.c_uint64
word = lambda at: ctypes.c_uint64.from_address(at).value
def frame_at():
    """Where the state of this thread says which frame is the innermost."""
    if sys.version_info < (3, 11):
        return state() + 24
    if sys.version_info < (3, 13):
        return word(state() + 56) + (8 if sys.version_info < (3, 12) else 0)
    return state() + (ctypes.c_uint64 * 24).in_dll(ctypes.pythonapi, "_PyRuntime")[23]
import mmap
hole = mmap.mmap(-1, 1 << 16)
inside = ctypes.addressof(ctypes.c_char.from_buffer(hole))
ctypes.CDLL(None).mprotect(ctypes.c_void_p(inside + 4096), 8192, 0)
for i in range(512):  # pointers to themselves, and to the pages that cannot be read
    ctypes.c_uint64.from_address(inside + 8 * i).value = inside + (0 if i % 2 else 4096 + 8 * i)
noise = (ctypes.c_uint64 * 64)(*(0x9e3779b97f4a7c15 * i % 2**64 for i in range(64)))
for value in [1, 7, 8, 4095, 4096, 2**47 - 8, 2**62, 2**63, 2**64 - 8, 2**64 - 1, inside, inside + 8, inside + 4000, inside + 4088, inside + 4096,
              inside + 12280, ctypes.addressof(noise), state(), id(type), id(spoil)]:
    spoil(frame_at(), value)
# a frame of code that calls itself, which has itself for a text
circle = (ctypes.c_uint64 * 64)()
circle[:] = [ctypes.addressof(circle)] * 64
circle[1] = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "PyCode_Type"))
spoil(frame_at(), ctypes.addressof(circle))
# the same in memory that was read, and is gone then
ctypes.memmove(inside, (ctypes.c_uint64 * 64)(*(value if i == 1 else inside for i, value in enumerate(circle))), 512)
for _ in range(2):
    spoil(frame_at(), inside)
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(inside), 4096, 0)
call()
json.dump(said, sys.stdout)
'''


def test_spoilt_frames(app, tmp_path):
    """They lead nowhere; the interpreter's native frames stay."""
    library = compile_c(tmp_path / "spoil.so", SPOIL, "-shared", "-fPIC", "-lOpenCL")
    run = app(SPOILT, OPTIONS, library)
    found = stacks(run)
    assert len(found) > 18 and of_python(found[-1]) == json.loads(run.out)[0]
    *nowhere, _, _, gone, _ = found  # two have what may be a function
    for stack in [*nowhere, gone]:
        assert stack[0].startswith("_start+") and not of_python(stack) and "_PyEval_EvalFrameDefault" in " ".join(stack)


HANDLER = r"""
#include <CL/cl.h>
#include <signal.h>
#include <sys/time.h>
static volatile int calls;
__attribute__((noinline)) void on_signal(int number)
{
	cl_uint count;
	clGetPlatformIDs(0, NULL, &count);
	calls++;
}
void begin(void)
{
	cl_uint count;
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	clGetPlatformIDs(0, NULL, &count);
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &often, NULL);
}
int end(void)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &never, NULL);
	return calls;
}
"""

INTERRUPTED = r'''
handlers = ctypes.CDLL(sys.argv[1])
def deep(n):
    return deep(n - 1) + sum(i for i in range(3)) if n else 0
handlers.begin()
while handlers.end() < 300:
    handlers.begin()
    for _ in range(300):
        deep(30)
call()
json.dump(said, sys.stdout)
'''


def test_a_handler_that_interrupts_the_interpreter(app, tmp_path):
    """It may have been changing its frames: they are not looked at."""
    library = compile_c(tmp_path / "handler.so", HANDLER, "-shared", "-fPIC", "-lOpenCL")
    run = app(INTERRUPTED, OPTIONS, library)
    found = stacks(run)
    inside = [stack for stack in found if any(frame.startswith("on_signal+") for frame in stack)]
    assert len(inside) > 200 and not [stack for stack in inside if of_python(stack)]
    assert of_python(found[-1]) == json.loads(run.out)[0]


ENDS = r'''
calls = ctypes.c_int()
def loop():
    looper(ctypes.byref(calls))
looper = ctypes.CDLL(sys.argv[1]).loop
threading.Thread(target=loop, daemon=True).start()
while calls.value < 100:  # the first one loads a driver
    time.sleep(0.01)
'''

LOOP = r"""
#include <CL/cl.h>
void loop(volatile int *calls)
{
	cl_uint count;
	for (;; ++*calls)
		clGetPlatformIDs(0, NULL, &count);
}
"""


def test_a_daemon_thread_that_calls_while_the_interpreter_ends(app, tmp_path):
    library = compile_c(tmp_path / "loop.so", LOOP, "-shared", "-fPIC", "-lOpenCL")
    run = app(ENDS, "--chrome-call-logging --call-stacks --on-full drop", library)
    assert any(of_python(stack)[-1:] and "loop (app.py" in of_python(stack)[-1] for stack in stacks(run))
