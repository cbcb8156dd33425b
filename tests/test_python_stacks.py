"""--python-stacks: functions of each of the machine's Pythons, beside what the programs count themselves."""

import collections
import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from others import INTERPRETERS

OPTION = "--python-stacks=app"

CALLS = r'''
import threading
def leaf(n):
    return n + 1
class Of:
    def method(self, n):
        return leaf(n)
def numbers():
    for i in range(3):
        yield i
def throws():
    raise ValueError
def passes_on():
    throws()
def work():
    of = Of()
    for i in range(10):
        of.method(i)
    for _ in range(5):
        list(numbers())
    for _ in range(4):
        try:
            passes_on()
        except ValueError:
            pass
def main():
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work()
main()
print("done")
'''
# of one work(); a generator's slices are those of its runs: one more than it gives
OF_WORK = {"work": 1, "leaf": 10, "method": 10, "numbers": 20, "throws": 4, "passes_on": 4}


@pytest.fixture(params=INTERPRETERS, ids=lambda path: path.resolve().name)
def python(request):
    return request.param


@pytest.fixture
def app(xstrace, python):
    """Runs a program's text under xstrace and without; both must end alike."""

    def run(text, options=OPTION, flags=(), status=0, **more):
        path = xstrace.cwd / "app.py"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        bare = xstrace.bare(python, [*flags, path])
        traced = xstrace(options, python, [*flags, path], **more)
        assert (bare.status, traced.status) == (status, status), traced.err
        assert addresses_out(traced.out + traced.err) == addresses_out(bare.out + bare.err)
        return traced

    return run


def addresses_out(text):
    return re.sub("0x[0-9a-f]+", "0x", text)


def function(task):
    """"leaf" of "Python::Of.leaf (/x/app.py:3)"."""
    return re.fullmatch(r"Python::(?:.*\.)?(.+) \(.*:\d+\)", task.name)[1]


def counts(trace):
    return collections.Counter(function(task) for task in trace.tasks if task.name.startswith("Python::"))


def test_each_call_is_a_slice_of_its_thread(app):
    trace = app(CALLS).trace
    found = counts(trace)
    assert {name: found[name] for name in OF_WORK} == {name: 4 * n for name, n in OF_WORK.items()}
    threads = trace.by_thread([task for task in trace.tasks if task.name.startswith("Python::")])
    of_threads = [collections.Counter(map(function, tasks)) for tasks in threads.values()]
    assert len(of_threads) == 4 and sum(dict(one) == OF_WORK for one in of_threads) == 3
    for tasks in threads.values():
        inner = [task for task in tasks if function(task) == "leaf"]
        outer = [task for task in tasks if function(task) == "method"]
        assert all(a.start <= b.start and b.end <= a.end for a, b in zip(outer, inner, strict=True))
    assert not any(task.unfinished for task in trace.tasks)


def test_a_name_says_where_the_function_is(app, python, xstrace):
    trace = app(CALLS).trace
    name = "Of.method" if int(re.search(r"3\.(\d+)", python.resolve().name)[1]) >= 11 else "method"
    assert f"Python::{name} ({xstrace.cwd}/app.py:6)" in {task.name for task in trace.tasks}


@pytest.mark.parametrize(
    ("modules", "wanted"),
    [("app", {"own"}), ("json", {"dumps", "encode"}), ("json.encoder", {"encode"}), ("-json", {"own"}), ("__main__", {"own"}), ("-__main__", {"dumps", "encode"}), ("json,-json.encoder", {"dumps"}), ("nothing", set())],
)
def test_filters(app, modules, wanted):
    run = app("import json\ndef own():\n    json.dumps(1.5)\n    json.encoder.JSONEncoder().encode([1])\nown()\n", f"--python-stacks={modules}")
    tasks = [task for trace in run.traces for task in trace.tasks if re.search(r"/json/|app\.py", task.name)]
    found = set(map(function, tasks)) & {"own", "dumps", "encode"}
    assert found == wanted


@pytest.mark.parametrize("name", ["5", "None", "type('S', (str,), {})('__main__')", "'x' * 100000"])
def test_a_module_whose_name_is_odd(app, name):
    run = app(f"def own():\n    pass\n__name__ = {name}\nown()\ndel __name__\ndef other():\n    pass\nother()\nprint('done')\n", "--python-stacks=__main__")
    assert run.out == "done\n" and not {"own", "other"} & {function(task) for trace in run.traces for task in trace.tasks}


def report(xstrace):
    with next(xstrace.cwd.glob("report.*.csv")).open() as file:
        return [row for row in csv.DictReader(file) if row["report"] == "python_functions"]


def test_the_report_has_each_function(app, xstrace):
    app(CALLS, [OPTION, "-h", "--report-format", "csv", "-o", xstrace.cwd / "report.csv"])
    rows = {re.search(r"(\w+)>? \(", row["name"])[1]: row for row in report(xstrace)}
    assert {name: int(rows[name]["calls"]) for name in OF_WORK} == {name: 4 * n for name, n in OF_WORK.items()}
    assert rows["leaf"]["self_ns"] == rows["leaf"]["time_ns"]
    assert int(rows["method"]["self_ns"]) == int(rows["method"]["time_ns"]) - int(rows["leaf"]["time_ns"])


def test_short_functions_are_only_counted_in_the_end(app, xstrace):
    text = "def short():\n    pass\ndef main():\n    for _ in range(50000):\n        short()\nmain()\n"
    run = app(text, [OPTION, "-h", "--report-format", "csv", "-o", xstrace.cwd / "report.csv"])
    row = next(row for row in report(xstrace) if "::short (" in row["name"])
    told = counts(next(trace for trace in run.traces if trace.tasks))["short"]
    assert (int(row["calls"]), int(row["only_counted"])) == (50000, 50000 - told)
    assert told % 4096 == 0 and told < 25000
    assert any("counted from here on: Python::short" in event["name"] for event in run.traces[0].events)


def test_a_call_has_a_slice_or_is_counted(app, xstrace):
    """Also one that is open when its function begins to be only counted: a recursive one, or in another thread."""
    text = "def down(n):\n    if n:\n        down(n - 1)\nfor _ in range(2000):\n    down(6)\n"
    run = app(text, [OPTION, "-h", "--report-format", "csv", "-o", xstrace.cwd / "report.csv"])
    row = next(row for row in report(xstrace) if "::down (" in row["name"])
    told = counts(next(trace for trace in run.traces if trace.tasks))["down"]
    assert (int(row["calls"]), int(row["only_counted"])) == (14000, 14000 - told)


def test_a_forked_child_tells_of_its_own_calls(app, xstrace):
    """What its parent has counted and not told yet is the parent's."""
    text = "import os\ndef hot():\n    pass\ndef never():\n    pass\nfor _ in range(10000):\n    hot()\nfor _ in range(4500):\n    never()\nif not os.fork():\n    for _ in range(10):\n        hot()\nelse:\n    os.wait()\n"
    app(text, [OPTION, "-h", "--report-format", "csv", "-o", xstrace.cwd / "report.csv"])
    found = []
    for path in xstrace.cwd.glob("report.*.csv"):
        with path.open() as file:
            found.append({row["name"].split()[0]: int(row["calls"]) for row in csv.DictReader(file) if row["report"] == "python_functions"})
    calls = [{name: of.get(f"Python::{name}", 0) for name in ("hot", "never")} for of in found]
    assert sorted(calls, key=str) == [{"hot": 10, "never": 0}, {"hot": 10000, "never": 4500}]


# ---- nothing that a program sees is different ----

SEES = r'''
import os, sys, threading
ours = ("LD_PRELOAD", "XSTRACE", "INTEL_", "OPENCL_", "CUDA_", "NVTX_", "ZE", "ZET", "XPTI", "UR_", "ASAN_", "PTI_", "OMP_", "KINETO")
print(sys.path, sorted(sys.modules), sys.flags, sys.argv, sys.getprofile(), sys.gettrace(), threading.active_count())
print(sorted(name for name in os.environ if not name.startswith(ours)))
'''


@pytest.mark.parametrize("flags", [(), ("-I",), ("-S", "-E")], ids=str)
def test_what_a_program_sees_of_itself(app, flags):
    app(SEES, flags=flags)


HOSTILE = {
    "deep": "import sys\nsys.setrecursionlimit(300000)\ndef deep(n):\n    return deep(n - 1) + 1 if n else 0\n"
    "print(deep(100000 if sys.version_info >= (3, 11) else 5000))\n",
    "too deep": "import sys\ndef deep():\n    deep()\ntry:\n    deep()\nexcept RecursionError:\n    print('caught')\n",
    "recursion through C": "import sys\nclass To:\n    def __init__(self, to):\n        self.to = to\n    def __getattr__(self, name):\n        return getattr(self.to, name)\n"
    "class Long:\n    def __len__(self):\n        global n\n        n += 1\n        return len(self)\ndef attributes(n):\n    to = Exception()\n    for _ in range(n):\n        to = To(to)\n    to.args\n"
    "def sums(n):\n    return 1 + sum(sums(i) for i in range(n - 1, n) if i)\nfor of in attributes, sums:\n    n = 250\n    try:\n        while True:\n            n += 1\n            of(n)\n    except RecursionError:\n        print(n)\n"
    "for _ in range(40):\n    n = 0\n    try:\n        len(Long())\n    except RecursionError:\n        pass\nprint(n)\n",
    "generators": "def g(n):\n    if n:\n        yield from g(n - 1)\n    yield n\nprint(sum(g(100)))\nit = g(3)\nnext(it)\n"
    "try:\n    it.throw(KeyError)\nexcept KeyError:\n    print('k')\nit = g(5)\nnext(it)\ndel it\n",
    "asyncio": "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\n"
    "async def main():\n    print(sum(await asyncio.gather(*map(f, range(200)))))\nasyncio.run(main())\n",
    "reused code": "for i in range(2000):\n    exec('def f%04d():\\n    pass\\nf%04d()\\n' % (i, i), {})\n",
    "names": "exec('def ' + 'n' * 1000000 + '(): pass\\n' + 'n' * 1000000 + '()')\n"
    "exec(compile('def s(): pass\\ns()', 'a\\udc80\\ud800\\n\\x1bb.py', 'exec'))\nprint(1)\n",
    "fork": "import os\ndef f():\n    pid = os.fork()\n    if not pid:\n        g()\n        os._exit(3)\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
    " if hasattr(os, 'waitstatus_to_exitcode') else 3)\ndef g():\n    pass\nf()\n",
    "exec": "import os, sys\ndef f():\n    sys.stdout.flush()\n    os.execv(sys.executable, [sys.executable, '-c', 'def g(): print(7)\\ng()'])\nf()\n",
    "faulthandler": "import faulthandler, sys\nfaulthandler.enable()\ndef f():\n    faulthandler.dump_traceback(sys.stdout.fileno() and sys.stdout)\nf()\n",
    "daemon threads": "import threading, time\ndef f():\n    while True:\n        time.sleep(0.0001)\n"
    "for _ in range(8):\n    threading.Thread(target=f, daemon=True).start()\ntime.sleep(0.05)\nprint(1)\n",
    "settrace": "import sys\nn = 0\ndef t(frame, event, arg):\n    global n\n    n += 1\n    return t\ndef f():\n    return 1\nsys.settrace(t)\nf()\nsys.settrace(None)\nprint(n)\n",
    "audit": "import sys, threading\ndef hook(event, arguments):\n    if event == 'sys.setprofile':\n        print(event)\n        raise RuntimeError(event)\n"
    "sys.addaudithook(hook)\ndef f():\n    print('ran')\nt = threading.Thread(target=f)\nt.start()\nt.join()\n",
    "many threads": "import threading\ndef f():\n    pass\nfor _ in range(300):\n    t = threading.Thread(target=f)\n    t.start()\n    t.join()\nprint(1)\n",
    "multiprocessing": "import multiprocessing as m\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    for how in ('fork', 'spawn'):\n"
    "        with m.get_context(how).Pool(2) as pool:\n            print(pool.map(f, range(5)))\n            pool.close()\n            pool.join()\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_end_as_they_do_alone(app, name):
    app(HOSTILE[name], "--python-stacks")


@pytest.mark.parametrize(("text", "status"), [("raise SystemExit(5)", 5), ("import os\ndef f():\n    os._exit(9)\nf()", 9), ("import os\ndef f():\n    os.abort()\nf()", -6)])
def test_ends(app, text, status):
    run = app(text, status=status)
    assert len(run.traces) == 1
    if "def" in text:
        assert [task.unfinished for task in run.trace.tasks if function(task) == "f"] == [True]


@pytest.mark.parametrize("value", ["debug", "malloc_debug", "pymalloc_debug"])
def test_an_interpreter_with_debug_hooks_on_its_memory(xstrace, python, value):
    """Which has at its end what was allocated before it had them (-X dev sets them, too)."""
    run = xstrace("--python-stacks --chrome-itt-logging", python, ["-c", "def f(): pass\nf()\nprint(1)"], env={"PYTHONMALLOC": value})
    assert (run.status, run.out, run.err) == (0, "1\n", "") and run.trace.count("tasks")


def test_code_in_the_place_of_other_code_has_its_own_name(app):
    trace = app(HOSTILE["reused code"], "--python-stacks=<string>").trace
    found = counts(trace)
    assert [found[f"f{i:04}"] for i in range(2000)] == [1] * 2000


PROFILED = r'''
import cProfile, io, pstats
def f():
    return 1
def work():
    for _ in range(100):
        f()
work()
profile = cProfile.Profile()
profile.enable()
work()
profile.disable()
print(pstats.Stats(profile, stream=io.StringIO()).total_calls)
'''


def test_a_program_keeps_its_own_profiler(app, python):
    run = app(PROFILED)
    own = any("it has a profiler of its own" in line for line in run.said)
    aside = int(re.search(r"3\.(\d+)", python.resolve().name)[1]) < 12
    assert own == aside and counts(run.trace)["f"] == (100 if aside else 200)


def test_what_hears_of_calls_takes_no_level_of_recursion(app, monitoring):
    app("import sys\nsys.setrecursionlimit(100000)\nn = 0\ndef f(_):\n    global n\n    n += 1\n    list(map(f, [1]))\ntry:\n    f(1)\nexcept RecursionError:\n    print(n)\n")


# what a program may do with the six ids of sys.monitoring; the list of what it saw must be the same
TOOLS = r"""
import sys
monitoring = sys.monitoring
START = monitoring.events.PY_START
seen = []
def heard(code, offset):
    if code.co_filename == __file__ and code.co_name == "f":
        seen.append(code.co_name)
def other(code, offset):
    return monitoring.DISABLE
def f():
    pass
def listen(id):
    monitoring.set_events(id, START)
    f()
    print(id, len(seen), monitoring.get_events(id), monitoring.get_tool(id), monitoring.get_local_events(id, f.__code__))
def leave(id):
    monitoring.set_events(id, 0)
    print(monitoring.register_callback(id, START, None) is heard, monitoring.free_tool_id(id), monitoring.get_tool(id))
f()
"""
EACH = "monitoring.use_tool_id(id, 'mine')\n    print(monitoring.register_callback(id, START, heard))\n    listen(id)\n"
OF_TOOLS = {
    "each": f"for id in range(6):\n    {EACH}    leave(id)\n",
    "a callback first": "for id in range(5, -1, -1):\n    print(monitoring.register_callback(id, START, heard))\n    monitoring.use_tool_id(id, 'mine')\n    listen(id)\n    leave(id)\n",
    "five at once": f"for id in (4, 3, 2, 0, 5):\n    {EACH}for id in (4, 3, 2, 0, 5):\n    leave(id)\n",
    "what others left": "for id in range(6):\n    if monitoring.get_tool(id) is not None:\n        print('left', id)\n        monitoring.set_events(id, 0)\n        monitoring.free_tool_id(id)\n"
    "for id in range(6):\n    monitoring.free_tool_id(id)\n",
    "without having it": "for id in range(-1, 8):\n    for name, more in (('set_events', (START,)), ('get_events', ()), ('set_local_events', (f.__code__, START)), ('get_local_events', (f.__code__,)), ('use_tool_id', (5,)), ('use_tool_id', ()), ('get_tool', (1,))):\n"
    "        try:\n            print(getattr(monitoring, name)(id, *more))\n        except Exception as error:\n            print(name, type(error), error)\n",
    "odd numbers": "import enum\nclass Index:\n    def __init__(self, id):\n        self.id = id\n    def __index__(self):\n        return self.id\nId = enum.IntEnum('Id', ['MINE'], start=4)\n"
    "for id in (Index(4), Id.MINE, True, Index(3)):\n    monitoring.use_tool_id(id, 'mine')\n    print(monitoring.get_tool(id))\n    monitoring.free_tool_id(id)\n"
    "for id in (Index(2**70), 2**70, 'a', None, 4.0):\n    try:\n        monitoring.get_tool(id)\n    except Exception as error:\n        print(type(error), error)\n",
    "how they look": "for name in dir(monitoring):\n    of = getattr(monitoring, name)\n    print(name, of, *(getattr(of, at, None) for at in ('__name__', '__qualname__', '__module__', '__self__', '__doc__', '__text_signature__')))\n",
    "registered and free": "for id in range(6):\n    monitoring.register_callback(id, START, heard)\nfor id in (4, 3, 5, 2, 1, 0):\n    monitoring.use_tool_id(id, 'mine')\n    listen(id)\n    leave(id)\n",
    "a thread": f"import threading\ndef run():\n  for id in (4, 3):\n    {EACH}thread = threading.Thread(target=run)\nthread.start()\nthread.join()\nf()\nprint(len(seen))\n",
}


@pytest.fixture
def monitoring(python):
    if int(re.search(r"3\.(\d+)", python.resolve().name)[1]) < 12:
        pytest.skip("no sys.monitoring before 3.12")


@pytest.mark.parametrize("name", OF_TOOLS)
def test_all_ids_of_tools_are_the_programs(app, monitoring, name):
    """Whichever it takes, asks for or clears: it is as if the tracer had none, and the tracing goes on."""
    run = app(TOOLS + OF_TOOLS[name] + "for _ in range(100):\n    f()\n")
    assert counts(run.trace)["f"] > 100
    assert not any("its own tools" in line for line in run.said)


def test_places_switched_off_for_the_tracer_are_on_for_who_has_its_id_next(app, monitoring):
    """Nothing of them is wanted; the tool sees all of them, though none ran between."""
    text = TOOLS + "monitoring.register_callback(4, START, heard)\nmonitoring.use_tool_id(4, 'mine')\nlisten(4)\n"
    run = app(text, "--python-stacks=json")
    assert run.out.startswith("4 1 ")


@pytest.mark.parametrize(
    "text",
    [
        f"for id in range(6):\n    {EACH}",
        "def hook(event, arguments):\n    if event == 'sys.monitoring.register_callback':\n        raise PermissionError(event)\nsys.addaudithook(hook)\nmonitoring.use_tool_id(4, 'mine')\nlisten(4)\n",
    ],
    ids=["all", "audit"],
)
def test_a_program_that_leaves_no_id_of_tools(app, monitoring, text):
    run = app(TOOLS + "for _ in range(30):\n    f()\n" + text + "for _ in range(100):\n    f()\nprint(len(seen))\n")
    (line,) = run.trace.other["not_seen"]
    assert "its own tools have all ids of sys.monitoring" in line and any(line in said for said in run.said)
    assert 30 < counts(run.trace)["f"] < 40


AGAIN = r"""
#include <pthread.h>
#include <stdlib.h>
void Py_InitializeEx(int signals);
int PyRun_SimpleString(const char *text), Py_FinalizeEx(void);
static void *one(void *text)
{
	Py_InitializeEx(0);
	return PyRun_SimpleString(text) || Py_FinalizeEx() ? text : NULL;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	void *failed = NULL;

	for (int i = 0; i < atoi(argv[1]) && !failed; i++) {
		if (argc == 3)
			failed = one(argv[2]);
		else if (pthread_create(&thread, NULL, one, argv[2]) || pthread_join(thread, &failed))
			return 4;
	}
	return failed ? 5 : 3;
}
"""
OF_AGAIN = """
import sys, threading
def f(n):
    return f(n - 1) if n else 0
def work():
    for _ in range(10):
        f(4)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
work()
def hook(event, arguments):
    pass
sys.addaudithook(hook)
"""


@pytest.fixture
def embedded(python, tmp_path):
    """A program that is linked with that interpreter."""
    text = "import sysconfig; print(*map(sysconfig.get_config_var, ('LIBDIR', 'INSTSONAME')), sep='/')"
    library = Path(subprocess.run([python, "-c", text], capture_output=True, text=True, check=True).stdout.strip())
    if ".so" not in library.name or not library.exists():
        pytest.skip("no libpython")
    (tmp_path / "again.c").write_text(AGAIN)
    subprocess.run(["cc", tmp_path / "again.c", "-o", tmp_path / "again", "-pthread", library, f"-Wl,-rpath,{library.parent}"], check=True)
    return tmp_path / "again"


@pytest.mark.parametrize("memory", ["default", "debug"])
@pytest.mark.parametrize("threads", [(), ("threads",)], ids=["main", "threads"])
def test_an_interpreter_that_is_made_again(xstrace, embedded, threads, memory):
    run = xstrace("--python-stacks=<string>", embedded, ["5", OF_AGAIN, *threads], env={"PYTHONMALLOC": memory})
    assert (run.status, run.out, run.err) == (3, "", "")
    assert counts(run.trace)["f"] == 5 * 4 * 10 * 5 and "not_seen" not in run.trace.other
    assert not any(task.unfinished for task in run.trace.tasks)


@pytest.mark.parametrize("form", ["perfetto", "kineto", "kineto-hta"])
def test_formats(app, form):
    run = app(CALLS, f"{OPTION} --format {form}", timeout=60)
    assert run.trace_files


TOLD_BY_AN_EXTENSION = """
import sys
try:
    import _testcapi
    like = _testcapi.CodeLike(1)
except (ImportError, AttributeError):
    print("none")
else:
    for name in ("PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD"):
        _testcapi.monitoring_enter_scope(like, getattr(sys.monitoring.events, name))
        for _ in range(3):
            getattr(_testcapi, "fire_event_" + name.lower())(like, 0, *[1] * (name in ("PY_RETURN", "PY_YIELD")))
        _testcapi.monitoring_exit_scope()
    print("told")
"""


def test_functions_that_an_extension_tells_of(app):
    """From 3.13 on: what stands for their code is no code."""
    run = app(TOLD_BY_AN_EXTENSION, "--python-stacks=all")
    if run.out == "none\n":
        pytest.skip("no PyMonitoring_FirePyStartEvent(), or no module that calls it")
    assert run.out == "told\n"


def test_a_paused_run_has_no_functions(app):
    assert all(not counts(trace) for trace in app(CALLS, f"{OPTION} --start-paused").traces)


def test_a_program_without_an_interpreter(xstrace):
    run = xstrace("--python-stacks", "/bin/true")
    assert [line for line in run.said if "no interpreter of Python was seen" in line]


def test_without_the_option_nothing_is_there(xstrace):
    run = xstrace("--chrome-itt-logging", sys.executable, ["-c", "def f(): pass\nf()"])
    assert not any(counts(trace) for trace in run.traces) and not run.err


def test_an_interpreter_that_comes_by_dlopen_is_named(xstrace, tmp_path):
    library = next(iter(Path("/usr/lib").glob("*/libpython3.*.so.1.0")), None)
    if not library:
        pytest.skip("no libpython3.*.so")
    program = tmp_path / "opens"
    source = tmp_path / "opens.c"
    source.write_text("#include <dlfcn.h>\nint main(int argc, char **argv) { return dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) ? 0 : 1; }\n")
    subprocess.run(["cc", source, "-o", program], check=True)
    run = xstrace(OPTION, program, [library])
    assert run.status == 0 and any("opens libpython with dlopen()" in line for line in run.said), run.said
    assert not any("no interpreter" in line for line in run.said)
    run = xstrace("--chrome-itt-logging", program, [library])
    assert not any("libpython" in line for line in run.said)
