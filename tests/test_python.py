"""The Python package (python/, docs/PYTHON.md): the wheel that pip builds, in an environment of its own."""

import collections
import json
import os
import re
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT, Trace, check_trace, mounted, once, root_only, wait_until
from others import CLIENTS, need, needs_clients

BACKEND = ROOT / ".venv-wheel/bin"
PLACE = ROOT / "build-package"
MESON = ROOT / "build-wheel"  # beside the other build: compiled with the same words, ccache knows most of it
# What test_install.py shows of the backends is not built again, nor made fast: it would take minutes.
QUICK = [f"-Csetup-args=-D{word}" for word in ("opencl=disabled", "level_zero=disabled", "cuda=disabled", "optimization=0")]


def make_package():
    """Builds the wheel, and installs it alone into an environment; both in PLACE."""
    env = {**os.environ, "PATH": f"{BACKEND}:{os.environ['PATH']}"}
    for old in PLACE.glob("*.whl"):
        old.unlink()
    pip = [BACKEND / "python", "-m", "pip", "-q", "--disable-pip-version-check"]
    options = ["--no-build-isolation", "--no-deps", f"-Cbuild-dir={MESON}", *QUICK]
    subprocess.run([*pip, "wheel", *options, "-w", PLACE, ROOT], check=True, env=env, timeout=900)
    (wheel,) = PLACE.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", PLACE / "venv"], check=True)
    subprocess.run([*pip, "--python", PLACE / "venv/bin/python", "install", "--no-index", wheel], check=True)


@pytest.fixture(scope="session")
def package():
    """The environment; made once for all processes of a test run."""
    if not (BACKEND / "pip").exists():
        pytest.skip("no .venv-wheel; scripts/setup makes it")
    once(PLACE, make_package)
    return PLACE / "venv"


@pytest.fixture
def python(package, xstrace, tmp_path, monkeypatch):
    """Runs a program of some lines in that environment, without a launcher."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))

    def run(text, *args, env=None, interpreter=package / "bin/python", status=0, timeout=60):
        script = tmp_path / "program.py"
        script.write_text(text)
        done = xstrace.bare(interpreter, [script, *args], env=env, timeout=timeout)
        assert done.status == status, done.out + done.err
        return done

    yield run
    wait_until(lambda: all(path.name.startswith("torchinductor") for path in place.iterdir()), timeout=10)


def slices(path, name=None):
    assert check_trace(path, strict=True) == []
    return [s for s in Trace(path).slices if name in (None, s.name)]


# ---- what is installed ----


@pytest.mark.long
def test_what_the_wheel_holds(package):
    (wheel,) = PLACE.glob("*.whl")
    assert "-abi3-" in wheel.name, "an extension module for one version of Python alone"
    names = zipfile.ZipFile(wheel).namelist()
    own = {re.sub(r".*\.data/", "", name) for name in names}
    assert own >= {
        "scripts/xstrace",
        "scripts/xstrace-merge",
        "data/lib/libxstrace-api.so.0",
        "data/lib/xstrace/libxstrace.so",
        "data/lib/xstrace/xstrace-drain",
        "data/lib/xstrace/xstrace-host",
        "xstrace/_native.abi3.so",
        "xstrace/py.typed",
        "headers/xstrace/xstrace.h",
    }
    sources = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python/xstrace").rglob("*.*") if path.suffix in (".py", ".sql")}
    assert {name for name in own if name.endswith((".py", ".sql")) and not name.startswith("data/share/")} == sources


def test_commands(package, xstrace):
    version = subprocess.run([package / "bin/xstrace", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"xstrace {(ROOT / 'VERSION').read_text()}"
    run = xstrace("--chrome-itt-logging", package / "bin/python", ["-c", RANGES], launcher=package / "bin/xstrace")
    assert run.status == 0 and run.out == "" and run.err == ""
    assert collections.Counter(s.name for s in run.trace.slices) == {"outer": 1, "inner": 3}
    for command in ("xstrace-check", "xstrace-summary", "xstrace-merge"):
        more = ["--report", "-"] if command == "xstrace-merge" else []
        subprocess.run([package / "bin" / command, *more, run.trace_files[0]], check=True, capture_output=True)


RANGES = """
import xstrace
with xstrace.record_function("outer"):
    for _ in range(3):
        with xstrace.range("inner"):
            pass
"""


def run_module(xstrace, package, *words, env=None):
    """python -m xstrace, which becomes the launcher."""
    before = set(xstrace.cwd.glob("*.json"))
    run = xstrace.bare(package / "bin/python", ["-m", "xstrace", *words], env=env)
    wait_until(lambda: "[INFO]" not in run.err or set(xstrace.cwd.glob("*.json")) - before)
    return run, sorted(set(xstrace.cwd.glob("*.json")) - before)


def test_python_m_xstrace(package, xstrace):
    app = xstrace.home / "app.py"
    app.write_text(RANGES + "import sys, signal\nprint(sys.argv[1:], signal.getsignal(signal.SIGPIPE).name)\nsys.exit(7)\n")
    run, (path,) = run_module(xstrace, package, app, "-x", "two words")
    assert run.status == 7 and run.out == "['-x', 'two words'] SIG_IGN\n" and run.err == ""
    assert len(slices(path, "inner")) == 3
    run, (path,) = run_module(xstrace, package, "--chrome-itt-logging", "--ring-size", "64K", app)
    assert run.status == 7 and len(slices(path, "inner")) == 3
    run, (path,) = run_module(xstrace, package, "--chrome-itt-logging", "-m", "app", env={"PYTHONPATH": str(xstrace.home)})
    assert run.status == 7 and len(slices(path, "inner")) == 3
    run, none = run_module(xstrace, package, "--chrome-itt-logging", "no_such.py")
    assert run.status == 2 and none == [] and "no Python program among: --chrome-itt-logging no_such.py" in run.out + "\n".join(run.said)


# ---- profile ----

PROFILE = """
import sys, threading, time, xstrace
path = sys.argv[1]

@xstrace.record_function("decorated")
def work(seconds):
    time.sleep(seconds)
    return "done"

def other():
    with xstrace.record_function("thread"):
        time.sleep(0.002)

with xstrace.profile(trace_id="mine") as prof:
    with xstrace.record_function("outer"):
        time.sleep(0.004)
        for i in range(3):
            xstrace.range_push("inner é")
            assert work(0.001) == "done"
            xstrace.range_pop()
        xstrace.push_correlation_id(42)
        with xstrace.range("with an id"):
            pass
        xstrace.pop_correlation_id()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    xstrace.mark("a mark")
    xstrace.counter("queue", 2.5)
    xstrace.metadata("about", {"a": [1, None]})
    xstrace.metadata("text", "{")
    assert xstrace.is_recording()
assert not xstrace.is_recording() and prof.why == "", prof.why
prof.export_chrome_trace(path)
prof.export_chrome_trace(path + ".2.json")
prof.export_chrome_trace(path + ".3.json.gz")
for event in prof.events():
    print(repr((event.name, event.category, event.duration_ns, event.resource, event.external_id)))
print("== next")
rows = {row.key: row for row in prof.key_averages()}
for row in rows.values():
    print(repr((row.key, row.count, row.cpu_time_total, row.self_cpu_time_total, row.cpu_time)))
print("== next")
print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=2))
"""


def test_profile(python, tmp_path):
    path = tmp_path / "trace.json"
    run = python(PROFILE, path)
    assert run.err == ""
    events, rows, table = run.out.split("== next\n")
    events = [eval(line) for line in events.splitlines()]
    counts = {"outer": 1, "inner é": 3, "decorated": 3, "with an id": 1, "thread": 1, "a mark": 1}
    assert collections.Counter(event[0] for event in events) == counts
    assert {event[0]: event[4] for event in events}["with an id"] == 42
    assert len({event[3] for event in events}) == 2

    trace = Trace(path)
    seen = slices(path)
    assert {(s.name, s.end - s.start) for s in seen} == {e[:1] + e[2:3] for e in events if e[0] != "a mark"}
    (outer,) = [s for s in seen if s.name == "outer"]
    inner = [s for s in seen if s.name in ("inner é", "with an id")]
    assert all(outer.start <= s.start and s.end <= outer.end for s in inner)
    data = json.loads(path.read_text())
    assert data["about"] == {"a": [1, None]} and data["text"] == "{" and data["trace_id"] == "mine"
    assert [e["args"]["value"] for e in data["traceEvents"] if e["ph"] == "C" and e["name"] == "queue"] == [2.5]
    assert slices(f"{path}.2.json") and len(slices(f"{path}.3.json.gz")) == len(seen) == len(trace.slices)

    rows = {row[0]: row for row in map(eval, rows.splitlines())}
    assert {name: row[1] for name, row in rows.items()} == counts
    total = {name: sum(s.end - s.start for s in seen if s.name == name) / 1000 for name in counts}
    assert {name: row[2] for name, row in rows.items()} == pytest.approx(total)
    assert rows["outer"][3] == pytest.approx(total["outer"] - total["inner é"] - total["with an id"])
    assert rows["inner é"][3] == pytest.approx(total["inner é"] - total["decorated"])
    assert rows["decorated"][3] == rows["decorated"][2] >= 3000 and rows["decorated"][4] == pytest.approx(total["decorated"] / 3)
    assert re.search(r"^-+.*\n *Name .*# of Calls\n-+.*\n *outer .* 1\n *(inner é .* 3|thread .* 1)\n-+", table), table


STEPS = """
import json, sys, xstrace
traces = []

def ready(prof):
    path = f"{sys.argv[1]}.{len(traces)}.json"
    prof.export_chrome_trace(path)
    traces.append([path, prof.step_num, sorted(e.name for e in prof.events() if not e.name.startswith("Prof"))])

schedule = xstrace.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
with xstrace.profile(schedule=schedule, on_trace_ready=ready) as prof:
    for i in range(12):
        with xstrace.record_function(f"step {i}"):
            pass
        prof.step()

@xstrace.profile(on_trace_ready=ready)
def decorated():
    with xstrace.record_function("in it"):
        return 5

assert decorated() + decorated() == 10
prof = xstrace.profile(schedule=lambda step: xstrace.ProfilerAction.RECORD, on_trace_ready=ready)
prof.start()
with xstrace.record_function("unfinished cycle"):
    prof.step()
prof.stop()
prof.stop()
print(json.dumps(traces))
"""


def test_schedule(python, tmp_path):
    """Each cycle is a trace with the steps that its schedule records, and no others."""
    traces = json.loads(python(STEPS, tmp_path / "cycle").out)
    assert [(number, names) for _, number, names in traces] == [
        (5, ["step 3", "step 4"]),
        (9, ["step 7", "step 8"]),
        (0, ["in it"]),
        (0, ["in it"]),
        (1, ["unfinished cycle"]),
    ]
    steps = [[s.name for s in slices(path) if s.name.startswith("ProfilerStep#")] for path, *_ in traces]
    assert steps == [["ProfilerStep#3", "ProfilerStep#4"], ["ProfilerStep#7", "ProfilerStep#8"], [], [], ["ProfilerStep#0", "ProfilerStep#1"]]


def test_a_step_outside(python):
    """Before the start and after the stop a step is nobody's: it begins no trace, and what was recorded stays."""
    code = """
import xstrace
prof = xstrace.profile()
prof.step()
print(xstrace.is_recording(), prof.step_num)
with prof:
    with xstrace.range("in it"):
        prof.step()
prof.step()
print(xstrace.is_recording(), [event.name for event in prof.events() if event.name == "in it"])
with xstrace.profile():
    pass
"""
    assert python(code).out == "False 0\nFalse ['in it']\n"


def test_an_event_in_another_of_its_name(python):
    """One that is all that lies in the other counts with it; two that lie in it, or what lies between, count by themselves."""
    code = """
import xstrace
def nest(names):
    if names:
        with xstrace.range(names[0]):
            nest(names[1:])
with xstrace.profile() as prof:
    nest("aaab")
    nest("cdc")
    with xstrace.range("e"):
        nest("e")
        nest("e")
rows = {row.key: row for row in prof.key_averages()}
print({key: row.count for key, row in rows.items()})
length = {event.name: event.duration_ns for event in sorted(prof.events(), key=lambda event: event.duration_ns)}
print(round(rows["a"].cpu_time_total * 1000) == length["a"], round(rows["a"].self_cpu_time_total * 1000) == length["a"] - length["b"])
"""
    assert python(code).out == "{'a': 1, 'b': 1, 'c': 2, 'd': 1, 'e': 3}\nTrue True\n"


def test_schedule_as_torch(tmp_path):
    """The same actions as torch.profiler.schedule(), which says them so."""
    sys.path.insert(0, str(ROOT / "python"))
    import xstrace as package

    letters = {package.ProfilerAction[name]: letter for name, letter in zip(("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"), "-wrs")}

    def said(steps, **numbers):
        action = package.schedule(**numbers)
        return "".join(letters[action(step)] for step in range(steps))

    assert said(10, wait=1, warmup=1, active=2) == "-wrs-wrs-w"
    assert said(12, wait=1, warmup=1, active=2, repeat=2, skip_first=1) == "--wrs-wrs---"
    assert said(6, wait=0, warmup=0, active=1) == "ssssss"
    assert said(8, wait=2, warmup=1, active=1, skip_first_wait=1) == "ws--ws--"
    for wrong in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
        with pytest.raises(ValueError):
            package.schedule(**wrong)


MISUSE = """
import os, warnings, xstrace
warnings.simplefilter("error")

def refused(kind, function):
    try:
        function()
    except kind as error:
        print(kind.__name__, error)
    else:
        print("not refused")

refused(ValueError, lambda: xstrace.profile(activities=["GPU"]))
refused(ValueError, lambda: xstrace.profile(torch="yes"))
refused(ValueError, lambda: xstrace.profile(options="--no-such").start())
refused(TypeError, lambda: xstrace.record_function(3))
refused(TypeError, lambda: xstrace.range_push(None))
refused(RuntimeWarning, lambda: xstrace.profile().export_chrome_trace("x.json"))
with xstrace.profile(activities=["CPU"]) as prof:
    refused(RuntimeError, xstrace.profile().start)
    refused(TypeError, lambda: xstrace.metadata("key", object()))
    xstrace.range_push("\\ud800 surrogate")
    xstrace.range_pop()
    xstrace.range_pop()  # one too many
    if os.fork() == 0:
        with xstrace.record_function("child"):
            pass
        os._exit(0)
    os.wait()
try:
    with xstrace.profile() as failed, xstrace.record_function("raises"):
        raise KeyError("of the program")
except KeyError as error:
    print("raised", error, [e.name for e in failed.events()])
print([e.name for e in prof.events()])
refused(OSError, lambda: failed.export_chrome_trace("/no/such/directory/x.json"))
refused(ValueError, lambda: prof.key_averages().table(sort_by="nothing"))
"""


def test_misuse(python):
    assert python(MISUSE).out.splitlines() == [
        "ValueError activities: 'GPU' is none of CPU, XPU, CUDA, MTIA, HPU, PrivateUse1",
        'ValueError torch: \'yes\' is none of "auto", "itt", True, False',
        "ValueError xstrace.profile: unknown option --no-such; see xstrace --help",
        "TypeError record_function() argument 1 must be str, not int",
        "TypeError a name or text of xstrace must be a str",
        "RuntimeWarning xstrace: no trace is written as x.json: nothing has been recorded yet",
        "RuntimeError xstrace.profile: a trace is being recorded; stop it first",
        "TypeError Object of type object is not JSON serializable",
        "raised 'of the program' ['raises']",
        "['? surrogate']",
        "OSError xstrace: /no/such/directory/x.json: No such file or directory",
        "ValueError sort_by: 'nothing' is none of cpu_time, cpu_time_total, self_cpu_time_total, "
        "device_time, device_time_total, self_device_time_total, count",
    ]


# ---- where it is not ----

NOTHING = """
import sys, warnings, xstrace
with xstrace.profile(schedule=xstrace.schedule(wait=0, warmup=0, active=1), on_trace_ready=print) as prof:
    with xstrace.record_function("a"):
        xstrace.mark("b")
        xstrace.counter("c", 1)
        xstrace.range_push("d")
        xstrace.range_pop()
        xstrace.metadata("e", 1)
    prof.step()

@xstrace.record_function("f")
def f():
    return 1

assert f() == 1 and prof.events() == [] and len(prof.key_averages()) == 0 and xstrace.now() > 1.5e18
with warnings.catch_warnings(record=True) as said:
    prof.export_chrome_trace(sys.argv[1])
print(said[0].message)
print(xstrace.why_not())
"""


def test_switched_off(python, tmp_path):
    path = tmp_path / "x.json"
    why = "XSTRACE_DISABLE is set in the environment"
    run = python(NOTHING, path, env={"XSTRACE_DISABLE": "1"})
    assert run.out == f"xstrace: no trace is written as {path}: {why}\n{why}\n" and not path.exists()


def test_without_the_native_parts(python, tmp_path):
    path = tmp_path / "x.json"
    run = python(NOTHING, path, env={"PYTHONPATH": str(ROOT / "python")})
    assert "the package was installed without its native parts" in run.out.splitlines()[1] and not path.exists()


def test_under_the_launcher(package, xstrace):
    """The events are in the launcher's trace, and the program goes on."""
    script = xstrace.home / "app.py"
    script.write_text(PROFILE.partition("assert not")[0] + "print(prof.why)\nprof.export_chrome_trace(path)")
    run = xstrace("--chrome-itt-logging", package / "bin/python", [script, xstrace.home / "x.json"], launcher=package / "bin/xstrace")
    assert run.status == 0 and run.out == "the events are in the launcher's trace\n"
    assert "RuntimeWarning: xstrace: no trace is written as" in run.err and not (xstrace.home / "x.json").exists()
    assert len([s for s in run.trace.slices if s.name == "decorated"]) == 3


INTERRUPTED = """
import signal, sys, xstrace

class Interrupt:
    # a signal at each import that the first use of the package makes
    def find_spec(self, name, path=None, target=None):
        signal.raise_signal(signal.SIGUSR1)

def handler(*_):
    global heard
    heard += 1
    with xstrace.record_function("range"):
        xstrace.mark("mark")
        xstrace.counter("counter", 1.0)
    assert xstrace.now() > 1.5e18

heard = 0
signal.signal(signal.SIGUSR1, handler)
sys.meta_path.insert(0, Interrupt())
with xstrace.profile() as prof:
    pass
del sys.meta_path[0]
before = heard
signal.raise_signal(signal.SIGUSR1)
with xstrace.profile() as prof:
    signal.raise_signal(signal.SIGUSR1)
assert before > 2, before
print(heard - before, sorted(event.name for event in prof.events()))
"""


def test_a_handler_that_comes_within_the_first_use(python):
    """It records nothing, and what comes later does."""
    assert python(INTERRUPTED).out == "2 ['mark', 'range']\n"


def test_what_is_imported(python):
    """Who only records loads nothing of torch, and nothing that reads traces."""
    out = python(
        "import sys, xstrace\n"
        "with xstrace.profile() as prof: pass\n"
        "prof.key_averages()\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('torch', 'numpy', 'xstrace')))\n"
    ).out
    assert eval(out) == ["xstrace", *(f"xstrace.{name}" for name in ("_averages", "_load", "_native", "_profile"))]


def test_everything_is_documented(python):
    text = """
import xstrace
members = [(name, getattr(xstrace, name)) for name in xstrace.__all__]
members += [(name, member) for name, member in vars(xstrace.profile).items() if callable(member) and not name.startswith("_")]
print(len(members) > 30, [name for name, member in members if not member.__doc__])
"""
    assert python(text).out == "True []\n"


def test_a_range_costs_less_than_a_microsecond(python):
    text = """
import timeit, xstrace
def new():
    with xstrace.record_function("name"):
        pass
with xstrace.profile(options="--ring-size 64M"):
    print(min(timeit.repeat(new, number=500, repeat=100)) / 500)
"""
    assert float(python(text).out) < 1e-6


# ---- what becomes of the files ----

EXPORTS = """
import json, os, sys, threading, xstrace
os.chdir(sys.argv[1])

def record(name):
    with xstrace.profile() as prof, xstrace.record_function(name):
        pass
    return prof

def names(path):
    return [event["name"] for event in json.load(open(path))["traceEvents"] if event["ph"] == "X"]

def lies():
    return [name for top, _, names in os.walk(os.environ["TMPDIR"]) for name in names]

first = record("first")
first.export_chrome_trace("a.json")
first.export_chrome_trace("a.json")
print("the same name", names("a.json"))
second = record("second")
second.export_chrome_trace("a.json")
first.export_chrome_trace("b.json")
print("another's", names("a.json"), names("b.json"))
with open("b.json", "w") as file:
    file.write("changed")
os.remove("a.json")
os.mkdir("sub")
os.chdir("sub")
first.export_chrome_trace("c.json")
second.export_chrome_trace("/dev/null")
os.symlink("real.json", "link.json")
second.export_chrome_trace("link.json")
print("changed", names("c.json"), open("../b.json").read(), names("real.json"), os.path.islink("link.json"))
threads = [threading.Thread(target=first.export_chrome_trace, args=(f"{i % 2}.json",)) for i in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("threads", names("0.json"), names("1.json"), sorted(os.listdir(".")))
third = record("third")
print("none lies there", lies()[1:], end=" ")
third.export_chrome_trace("third.json")
fourth = record("fourth")
del third
fourth.export_chrome_trace("third.json")
print(names("third.json"), lies())
third = record("third")
(own,) = [os.path.join(top, name) for top, _, files in os.walk(os.environ["TMPDIR"]) for name in files]
third.export_chrome_trace(own)
third.export_chrome_trace(own)
del third
print("its own name", os.path.basename(own) in lies(), names(own), flush=True)
os.remove(own)
os._exit(0)
"""


def test_exports(python, tmp_path):
    """As often as the program likes, whatever it does with the files; and nothing stays where traces lie, though nobody tidies up."""
    place = tmp_path / "exports"
    place.mkdir()
    assert python(EXPORTS, place).out.splitlines() == [
        "the same name ['first']",
        "another's ['second'] ['first']",
        "changed ['first'] changed ['second'] True",
        "threads ['first'] ['first'] ['0.json', '1.json', 'c.json', 'link.json', 'real.json']",
        "none lies there [] ['fourth'] []",
        "its own name True ['third']",
    ]


FULL = """
import os, sys, xstrace
with xstrace.profile() as prof:
    for _ in range(5000):
        with xstrace.record_function("a"):
            pass
os.chdir(sys.argv[1])
with open("t.json", "w") as file:
    file.write("before")
for name in ("t.json", "new.json", "new.json.gz"):
    try:
        prof.export_chrome_trace(name)
    except OSError as error:
        print(error, error.errno)
print(os.listdir("."), open("t.json").read())
os.closerange(3, 100)
try:
    prof.export_chrome_trace("/dev/null")
except OSError as error:
    print(error)
"""


@root_only
def test_an_export_that_fails(python, tmp_path):
    """Nothing that is cut stays, and what lay under the name does."""
    place = tmp_path / "small"
    place.mkdir()
    with mounted(place, "size=8k"):
        out = python(FULL, place).out.splitlines()
    said = [f"xstrace: {name}: No space left on device 28" for name in ("t.json", "new.json", "new.json.gz")]
    assert out == [*said, "['t.json'] before", "xstrace: /dev/null: the program has closed the trace's descriptor"]


def test_a_child_exports_its_parents_trace(python, tmp_path):
    """It is warned, and goes on; the parent has the trace."""
    text = """
import os, sys, warnings, xstrace
os.chdir(sys.argv[1])
with xstrace.profile() as prof, xstrace.record_function("a"):
    pass
for early in (True, False):
    if os.fork() == 0:
        with warnings.catch_warnings(record=True) as said:
            prof.export_chrome_trace("child.json")
            prof.export_chrome_trace("child.json.gz")
        print(*[warning.message for warning in said], [event.name for event in prof.events()], sep="\\n", flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
    prof.export_chrome_trace("parent.json")
print(os.listdir("."))
"""
    place = tmp_path / "exports"
    place.mkdir()
    why = "the trace belongs to the process that this one was forked from"
    said = [f"xstrace: no trace is written as child.json{end}: {why}" for end in ("", ".gz")] + ["['a']"]
    assert python(text, place).out.splitlines() == [*said, *said, "['parent.json']"]


GONE = """
import shutil, sys, warnings, xstrace
warnings.simplefilter("always")
prof = xstrace.profile(directory=sys.argv[1])
for stopped in (True, False):
    prof.start()
    with xstrace.record_function("a"):
        pass
    if stopped:
        prof.stop()
    shutil.rmtree(sys.argv[1])
    if not stopped:
        prof.stop()
    with warnings.catch_warnings(record=True) as said:
        prof.export_chrome_trace("x.json")
    print([str(warning.message) for warning in said], [event.name for event in prof.events()])
    shutil.os.mkdir(sys.argv[1])
"""


def test_the_directory_vanishes(python, tmp_path):
    """What is missing is named, and the program goes on."""
    place = tmp_path / "traces"
    place.mkdir()
    first, second = map(eval, re.findall(r"\[.*?\]", python(GONE, place).out)[::2])
    (line,) = first
    assert re.fullmatch(rf"xstrace: no trace is written as x\.json: it cannot be read: {place}/\S+\.json: No such file or directory", line)
    (line,) = second
    assert re.fullmatch(rf"xstrace: no trace is written as x\.json: the .*{place}.*: No such file or directory", line)


NO_ROOM = """
import os, sys, warnings, xstrace
warnings.simplefilter("always")
prof = xstrace.profile(directory=sys.argv[1])
prof.start()
for i in range(5000):
    xstrace.mark("mark")
prof.stop()
with warnings.catch_warnings(record=True) as said:
    print(repr(prof.why), prof.events(), len(prof.key_averages()))
print(*[warning.message for warning in said])
"""


@root_only
def test_no_room_for_the_events(python, tmp_path):
    """Nobody takes it for a trace in which nothing happened."""
    place = tmp_path / "small"
    place.mkdir()
    with mounted(place, "size=200k"):
        out = python(NO_ROOM, place).out.splitlines()
    assert out == [
        "'' [] 0",
        "xstrace: no events: there was no room for the list of the trace's events; the trace itself may have them",
    ]


@pytest.mark.parametrize("variables", [{"TMPDIR": "/no/such"}, {"XSTRACE_SESSION": "my job"}], ids=["TMPDIR", "XSTRACE_SESSION"])
def test_what_the_environment_cannot_give(python, tmp_path, variables):
    """It is no exception: the program has done nothing wrong, and goes on."""
    run = python(NOTHING.replace("why_not()", "is_recording()"), tmp_path / "x.json", env=variables)
    said, recording = run.out.splitlines()
    assert said.startswith(f"xstrace: no trace is written as {tmp_path}/x.json: ") and recording == "False"
    assert list(variables.values())[0] in said and "XXXXXX" not in said


# ---- threads, coroutines, generators ----

WAITS = """
import os, signal, subprocess, threading, time, xstrace
from xstrace._load import native
prof = xstrace.profile()
prof.start()

def drain():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as name, open(f"/proc/{pid}/environ") as environ:
                if name.read() == "xstrace-drain\\n" and os.environ["TMPDIR"] in environ.read():
                    return int(pid)
        except OSError:
            pass

pid = drain()
os.kill(pid, signal.SIGSTOP)
goes_on = subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {pid}"])
stop = threading.Thread(target=prof.stop)
stop.start()
time.sleep(0.2)
waits = [threading.Thread(target=function) for function in (xstrace.why_not, xstrace.initialize, native.start)]
[thread.start() for thread in waits]
ticks = 0
while goes_on.poll() is None:
    time.sleep(0.01)
    ticks += 1
[thread.join() for thread in (stop, *waits)]
native.stop(native.Trace)
print(ticks)
"""


def test_a_wait_stops_no_other_thread(python):
    """While one thread waits for the drain process, and others for that, the rest of Python goes on."""
    assert int(python(WAITS).out) > 20


ASYNC = """
import asyncio, time, xstrace

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

@xstrace.record_function("short")
async def short():
    spin(0.002)
    await asyncio.sleep(0.01)
    spin(0.002)
    return "short"

@xstrace.record_function("long")
async def long():
    await asyncio.sleep(0.005)
    with xstrace.record_function("in long"):
        spin(0.001)
    try:
        await asyncio.sleep(10)
    except TimeoutError:
        pass
    except asyncio.CancelledError:
        spin(0.001)
        raise

@xstrace.record_function("generator")
def numbers():
    try:
        got = yield 1
        yield got + 1
        return 3
    finally:
        spin(0.001)

@xstrace.record_function("takes")
def takes():
    try:
        yield 1
    except GeneratorExit:
        yield 2

@xstrace.record_function("stream")
async def stream():
    for i in range(3):
        await asyncio.sleep(0)
        yield i

async def main():
    task = asyncio.create_task(long())
    print(await short(), [i async for i in stream()])
    task.cancel()
    print(*[type(error).__name__ for error in await asyncio.gather(task, return_exceptions=True)])

def both():
    print((yield from numbers()))

with xstrace.profile() as prof:
    asyncio.run(main())
    a, b = both(), numbers()
    print(next(a), next(b), a.send(5))
    time.sleep(0.05)
    b.close()
    print(next(a, "end"))
    c = takes()
    print(next(c), c.throw(GeneratorExit()), next(c, "end"))
for name in ("short", "long", "in long", "generator", "stream"):
    print(name, *[event.duration_ns for event in prof.events() if event.name == name])

@xstrace.profile(on_trace_ready=lambda prof: print([event.name for event in prof.events()]))
async def whole():
    with xstrace.record_function("first"):
        pass
    await asyncio.sleep(0)
    with xstrace.record_function("last"):
        pass
    return 5

print(asyncio.run(whole()), asyncio.iscoroutinefunction(short))
try:
    xstrace.profile()(stream)
except TypeError as error:
    print(error)
"""


def test_coroutines_and_generators(python):
    """One that is decorated has a range for each of its pieces, whatever others do in between."""
    *out, names, whole, refused = python(ASYNC).out.splitlines()
    assert out[:6] == ["short [0, 1, 2]", "CancelledError", "1 1 6", "3", "end", "1 2 end"]
    times = {name: list(map(int, rest.split())) for name, rest in (re.match(r"(\D+) (.*)", line).groups() for line in out[6:])}
    assert {name: len(ns) for name, ns in times.items()} == {"short": 2, "long": 3, "in long": 1, "generator": 5, "stream": 7}
    assert min(times["short"]) > 1_900_000 and sum(times["short"]) < 9_000_000 and sum(times["generator"]) < 40_000_000
    assert sum(times["in long"]) <= sum(times["long"])
    assert names == "['first', 'last']" and whole == "5 True"
    assert refused == "an asynchronous generator cannot be decorated by xstrace.profile"


def test_odd_texts(python):
    """What UTF-8 has not is replaced, in each of them."""
    text = """
import os, xstrace
from xstrace import _load
odd = os.fsdecode(b"a\\xff")
with xstrace.profile() as prof:
    xstrace.metadata("file", odd)
    xstrace.metadata(odd, "value")
    prof.add_metadata("added", odd)
    xstrace.mark(odd)
    xstrace.counter(odd, 1)
    result, why = _load.native.activities("", [("x", 0, xstrace.now(), xstrace.now(), 0, 0, 0, (("key", odd, True),))])
    assert not result, why
prof.export_chrome_trace("odd.json")
import json
data = json.load(open("odd.json"))
print(data["file"], data["a?"], data["added"], sorted(event.name for event in prof.events()))
"""
    assert python(text).out == "a? value a? ['a?', 'x']\n"


# ---- documents ----


def examples(torch):
    text = (ROOT / "docs/PYTHON.md").read_text()
    found = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    chosen = [example for example in found if ("import torch" in example) == torch]
    assert chosen
    return chosen


def test_examples_of_the_page(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for example in examples(torch=False):
        run = python(f"import os\nos.chdir({str(tmp_path)!r})\n{example}")
        assert run.err == ""
    for path in tmp_path.glob("*.json"):
        assert slices(path)


# What PyTorch and a device do, told by hand: op (around it a range) calls launch, which puts work on the device.
LAUNCHED = """
import os, threading, xstrace
from xstrace import _native
OP, ANNOTATION, COPY, KERNEL, RUNTIME = 0, 1, 3, 5, 7
with xstrace.profile() as prof:
    now, pid, tid = xstrace.now(), os.getpid(), threading.get_native_id()
    def host(name, kind, begin, end, correlation=0):
        return name, kind, now + begin * 1000, now + end * 1000, pid, tid, correlation, ()
    def device(name, kind, begin, end, correlation):
        return name, kind, now + begin * 1000, now + end * 1000, 0, 7, correlation, ()
    result, why = _native.activities("", [
        host("step", ANNOTATION, 0, 100), host("outer", OP, 10, 90, 1), host("inner", OP, 20, 50, 2),
        host("cudaLaunchKernel", RUNTIME, 30, 35, 11), host("cudaMemcpyAsync", RUNTIME, 60, 65, 12),
        host("cudaLaunchKernel", RUNTIME, 95, 97, 13),
        device("gemm", KERNEL, 40, 140, 11), device("Memcpy", COPY, 140, 150, 12), device("gemm", KERNEL, 150, 151, 13),
        device("unknown", KERNEL, 160, 163, 14)])
    assert not result, why
for row in prof.key_averages():
    print(row.key, row.count, row.device_time_total, row.self_device_time_total)
print(prof.key_averages().table(sort_by="cuda_time_total"))
"""


def test_time_on_devices(python):
    """Work counts for itself, for the calls that have launched it, and for what is around these."""
    rows, table = python(LAUNCHED).out.split("---", 1)
    assert dict(line.split(" ", 1) for line in rows.splitlines()) == {
        "step": "1 111.0 1.0",
        "outer": "1 110.0 10.0",
        "inner": "1 100.0 100.0",
        "cudaLaunchKernel": "2 101.0 0.0",
        "cudaMemcpyAsync": "1 10.0 0.0",
        "gemm": "2 101.0 101.0",
        "Memcpy": "1 10.0 10.0",
        "unknown": "1 3.0 3.0",
    }
    assert "Self Device" in table and table.endswith("Device time total: 114.000us\n\n")


# ---- PyTorch ----

TRAIN = """
import sys, torch, xstrace
net = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.set_num_threads(1)

def step():
    optimizer.zero_grad()
    with xstrace.record_function("forward"):
        loss = net(torch.randn(32, 16)).square().mean()
    loss.backward()
    optimizer.step()

schedule = xstrace.schedule(wait=1, warmup=1, active=3, repeat=1)
with xstrace.profile(schedule=schedule, record_shapes=True, with_modules=True) as prof:
    for _ in range(6):
        step()
        prof.step()
prof.export_chrome_trace(sys.argv[1])
for row in prof.key_averages(group_by_input_shape=True):
    print(repr((row.key, row.input_shapes, row.count, row.self_cpu_time_total <= row.cpu_time_total)))
"""


@pytest.fixture
def torch(python, package, monkeypatch):
    need("torch")
    (place,) = package.glob("lib/python3*/site-packages")
    monkeypatch.setenv("PYTHONPATH", str(place))
    return lambda text, *args, **more: python(text, *args, interpreter=CLIENTS, timeout=300, **more)


@needs_clients
def test_torch(torch, tmp_path):
    """Operations with shapes, modules around them, an arrow from each forward operation to its backward one."""
    path = tmp_path / "trace.json"
    run = torch(TRAIN, path)
    assert run.err == ""
    rows = {row[:2]: row[2:] for row in map(eval, run.out.splitlines())}
    assert rows["aten::addmm", "[[8], [32, 16], [16, 8], [], []]"] == (3, True)
    assert rows["aten::addmm", "[[4], [32, 8], [8, 4], [], []]"] == (3, True)
    assert rows["nn.Module: 0 (Linear)", ""] == rows["nn.Module: Sequential", ""] == rows["forward", ""] == (3, True)
    assert all(good for _, good in rows.values())

    data = json.loads(path.read_text())
    found = slices(path)
    linear = [s for s in found if s.name == "nn.Module: 2 (Linear)"]
    addmm = [s for s in found if s.name == "aten::addmm" and s.args["Input Dims"][1] == [32, 8]]
    assert len(linear) == len(addmm) == 3
    for module, op in zip(linear, addmm):
        assert module.start <= op.start and op.end <= module.end and module.track == op.track
    at = {(s.track, s.start): s.name for s in found if s.cat == "cpu_op"}
    ends = collections.defaultdict(dict)
    for event in data["traceEvents"]:
        if event.get("cat") == "fwdbwd":
            ts = round(event["ts"] * 1000)
            (name,) = {name for (track, start), name in at.items() if track == (event["pid"], event["tid"]) and abs(start - ts) < 2}
            ends[event["id"]][event["ph"]] = name
    pairs = collections.Counter((pair["s"], pair["f"]) for pair in ends.values())
    assert pairs["aten::relu", "ReluBackward0"] == pairs["aten::mean", "MeanBackward0"] == 3
    assert pairs["aten::addmm", "AddmmBackward0"] == 6


STACK = """
import json, sys, torch, xstrace
def scale(x):
    return x.mul(2)
def model(x):
    return scale(x).mul(3)
with xstrace.profile(with_stack=True) as prof:
    model(torch.ones(3))
prof.export_chrome_trace(sys.argv[1])
print([[frame.rpartition("/")[2] for frame in event.stack[:2]] for event in prof.events() if event.name == "aten::mul"])
rows = prof.key_averages(group_by_stack_n=1)
print([row.count for row in rows if row.key == "aten::mul"], any(row.key.startswith("program.py") for row in rows))
print("program.py(3): scale" in rows.table() and "Source Location" in rows.table())
"""


@needs_clients
def test_torch_with_stack(torch, tmp_path):
    """The functions that an operation was called in, as a list and in the trace; they are events of their own, too."""
    path = tmp_path / "trace.json"
    lines = torch(STACK, path).out.splitlines()
    assert eval(lines[0])[0] == ["program.py(3): scale", "program.py(5): model"]
    assert eval(lines[0])[1][0] == "program.py(5): model"
    assert lines[1:] == ["[1, 1] False", "True"]
    found = slices(path)
    functions = {s.name.rpartition("/")[2]: s for s in found if s.cat == "python_function"}
    inner, outer = [s for s in found if s.name == "aten::mul"]
    assert inner.args["Call stack"].split(";")[0].endswith("program.py(3): scale")
    scale, model = functions["program.py(3): scale"], functions["program.py(5): model"]
    assert scale.start <= inner.start and inner.end <= scale.end
    assert model.start <= scale.start and scale.end <= model.end and outer.end <= model.end


@needs_clients
def test_torch_by_itt(torch, tmp_path):
    text = """
import xstrace
assert xstrace.initialize()
import torch
with xstrace.profile(torch="itt") as prof:
    torch.ones(3) + 1
print(sorted(event.name for event in prof.events() if "add" in event.name))
"""
    assert torch(text).out == "['PyTorch::aten::add']\n"


@needs_clients
def test_beside_torchs_own_profiler(torch):
    """The program's profiler goes before ours."""
    text = """
import torch, warnings, xstrace
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
    with warnings.catch_warnings(record=True) as said, xstrace.profile() as prof, xstrace.record_function("ours"):
        torch.ones(3) + 1
print(said[0].message)
print([event.name for event in prof.events()], "aten::add" in {row.key for row in theirs.key_averages()})
with xstrace.profile() as prof:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        torch.ones(3) + 1
print([event.name for event in prof.events()], "aten::add" in {row.key for row in theirs.key_averages()})
"""
    assert torch(text).out.splitlines() == [
        "xstrace: operations of PyTorch are not recorded: the program's own profiler records",
        "['ours'] True",
        "[] True",
    ]


LOADER = """
import torch, xstrace

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    @xstrace.record_function("item")
    def __getitem__(self, i):
        return i

with xstrace.profile():
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2):
        pass
"""


@needs_clients
def test_workers_of_a_loader(torch, package, xstrace):
    """Under the launcher each has a trace with its ranges; the program's has the time that it waited for them."""
    script = xstrace.home / "load.py"
    script.write_text(LOADER)
    run = xstrace("--chrome-itt-logging", CLIENTS, [script], launcher=package / "bin/xstrace")
    assert run.status == 0 and run.err == ""
    items = sorted(sum(s.name == "item" for s in trace.slices) for trace in run.traces)
    assert items == [0, 4, 4]
    (program,) = [trace for trace in run.traces if "worker" not in trace.path.name]
    assert sum("DataLoader" in s.name for s in program.slices) == 5  # four batches, and the end


@needs_clients
def test_compiled_kernels(torch):
    text = """
import torch, xstrace
net = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU())
with xstrace.profile(schedule=xstrace.schedule(wait=0, warmup=1, active=2, repeat=1), with_modules=True, with_compiled_kernels=True) as prof:
    compiled = torch.compile(net)
    for _ in range(3):
        compiled(torch.randn(4, 16))
        prof.step()
print(sum("cpp_fused" in event.name for event in prof.events()), dict(torch._dynamo.utils.counters["graph_break"]))
"""
    kernels, breaks = torch(text).out.split(maxsplit=1)
    assert int(kernels) >= 2 and breaks == "{}\n"


@needs_clients
def test_examples_with_torch(torch, tmp_path):
    for example in examples(torch=True):
        run = torch(f"import os\nos.chdir({str(tmp_path)!r})\n{example}")
        assert run.err == ""
