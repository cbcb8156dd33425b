"""What holds of every command that reads what others wrote: one table of commands, and the rules that all of them keep."""

import contextlib
import fcntl
import functools
import importlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import warnings

import pytest
from conftest import BUILD, ROOT, append_only, mounted, root_only

SCRIPTS = ROOT / "scripts"
duckdb = pytest.importorskip("duckdb")
EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 7, "tid": 7, "args": {"name": "HOST<h> app"}},
    {"ph": "M", "name": "process_name", "pid": 8, "tid": 0, "args": {"name": "DEVICE<h> d"}},
    {"ph": "M", "name": "thread_name", "pid": 8, "tid": 1, "args": {"name": "queue"}},
    {"ph": "X", "name": "clFinish", "cat": "cpu_op", "pid": 7, "tid": 7, "ts": 1, "dur": 90},
    {"ph": "X", "name": "MPI_Send", "cat": "cpu_op", "pid": 7, "tid": 7, "ts": 100, "dur": 9},
    {"ph": "X", "name": "gemm", "cat": "gpu_op", "pid": 8, "tid": 1, "ts": 10, "dur": 20},
]
TRACE = json.dumps({"traceEvents": EVENTS})


def python(name, *words):
    return [sys.executable, str(SCRIPTS / name), *words]


def built(path, *words):
    return [str(BUILD / path), *words]


# IN is what others wrote, OUT what the command writes, GOOD a trace
TOOLS = {
    "check": python("xstrace-check", "IN"),
    "repair": python("xstrace-check", "--repair", "-o", "OUT.json", "IN"),
    "summary": python("xstrace-summary", "IN"),
    "energy": python("xstrace-summary", "--energy", "IN"),
    "query": python("xstrace-query", "--json", "-o", "OUT", "IN", "top-calls"),
    "query of many": python("xstrace-query", "--processes", "2", "IN", "top-calls"),
    "report": python("xstrace-report", "-o", "OUT.html", "IN"),
    "path": python("xstrace-path", "-o", "OUT.json", "IN"),
    "diff": python("xstrace-diff", "--junit", "OUT.xml", "IN", "GOOD"),
    "summary.py": python("summary.py", "--input", "IN", "--output", "OUT.json"),
    "schema": python("summary.py", "--input", "GOOD", "--schema", "IN"),
    "categorize": python("categorize.py", "--ini", "IN", "--json", "OUT.json"),
    "metrics": python("analyzeperfmetrics.py", "-l", "IN"),
    "options": python("analyzeperfmetrics.py", "-f", "IN", "GOOD"),
    "roofline": python("roofline.py", "--compute", "IN", "--memory", "IN", "--device", "IN", "--output", "OUT"),
    "mergetrace": python("mergetrace.py", "-o", "OUT.json", "IN"),
    "each rank": python("mergetrace.py", "--check", "--statistics", "OUT.json", "IN"),
    "parquet": python("mergetrace.py", "--no-clock-sync", "--parquet", "OUT", "IN"),
    "tables": built("tables/xstrace-tables", "-o", "OUT", "--", "IN"),
    "merge": built("merge/xstrace-merge", "--wait", "0", "-o", "OUT.json", "--", "IN"),
    "report of ranks": built("merge/xstrace-merge", "--wait", "0", "--report", "-", "--", "IN"),
    "doctor": built("launcher/xstrace", "--doctor", "--json", "IN"),
    "recover": built("launcher/xstrace", "--recover", "IN"),
}
NO_TRACE = {"schema", "categorize", "metrics", "options", "roofline", "doctor", "recover", "energy"}  # want other files


def words_of(tool, place, path, before=()):
    if not (place / "good.json").exists():  # its tables stay those of this file
        (place / "good.json").write_text(TRACE)
    words = [{"IN": path, "GOOD": str(place / "good.json")}.get(word, word) for word in TOOLS[tool]]
    return [*before, *(re.sub("^OUT", f"{place}/out", word) for word in words)]


def run(tool, place, path, limits=(), env=None, timeout=60, **how):
    """The finished command; its outputs lie in `place`."""
    words = words_of(tool, place, path, how.pop("before", ()))

    def begin():
        for what, size in limits:
            resource.setrlimit(what, (size, size))

    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run(words, cwd=place, env=env, timeout=timeout, preexec_fn=begin, **how)


def check_words(tool, done):
    """What a person reads of it: no traceback, nothing that moves the cursor, no signal of ours."""
    said = (done.stdout or b"") + (done.stderr or b"")
    assert b"Traceback" not in said and b"a fault of this program" not in said, said.decode(errors="replace")
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", said), said
    assert done.returncode >= 0, said
    if tool != "doctor":  # one line, and the summing up of those that do more than one thing
        assert len((done.stderr or b"").splitlines()) <= 3, said


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("tool", TOOLS)
def test_files_that_are_none(tool, tmp_path):
    for path in ("/dev/zero", str(tmp_path / "none\x1b[2J\n.json")):
        done = run(tool, tmp_path, path)
        check_words(tool, done)
        assert done.returncode and (done.stderr or tool == "doctor"), path
        if tool == "doctor":
            json.loads(done.stdout)


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in NO_TRACE])
def test_names_of_files(tool, tmp_path):
    """Any name that a file can have is as good as another."""
    path = os.fsdecode(bytes(tmp_path) + b"/a\xff'\"{b,c}[d]*?;$(e)\n\x1b[31m.json")
    with open(path, "w") as file:
        file.write(TRACE)
    done = run(tool, tmp_path, path)
    check_words(tool, done)
    assert done.returncode == 0, done.stdout + done.stderr
    for made in tmp_path.glob("out*.json"):
        json.loads(made.read_bytes())


ODD = ["x", "", "\ud800", 1.5, -1, 1 << 63, 10**30, True, None, [], ["x", {}], {}, {"a": "x"}]
OF_EACH_KIND = [
    *EVENTS,
    {"ph": "C", "name": "c[J]", "pid": 7, "tid": 7, "ts": 5, "args": {"value": 3}},
    {"ph": "i", "name": "mark", "s": "t", "pid": 7, "tid": 7, "ts": 5},
    {"ph": "s", "name": "dep", "cat": "flow", "id": 4, "pid": 7, "tid": 7, "ts": 5},
    {"ph": "f", "name": "dep", "cat": "flow", "id": 4, "bp": "e", "pid": 8, "tid": 1, "ts": 10},
    {"ph": "B", "name": "a::b", "cat": "cpu_op", "pid": 7, "tid": 9, "ts": 5},
    {"ph": "E", "pid": 7, "tid": 9, "ts": 6},
]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in NO_TRACE or tool == "energy"])
def test_members_of_any_kind(tool, tmp_path):
    """Each member of each kind of event is everything that JSON has: what cannot be used is left out, and nothing else."""
    events = [{**event, key: value} for event in OF_EACH_KIND for key in [*event, "args", "id"] for value in ODD]
    about = {"tool": "xstrace", "rank": 0, "pid": 7, "host": "h"}
    (tmp_path / "in.json").write_text(json.dumps({"baseTimeNanoseconds": 0, "metadata": about, "traceEvents": EVENTS + events}))
    done = run(tool, tmp_path, str(tmp_path / "in.json"))
    if tool != "each rank":  # it tells all that is wrong with the file
        check_words(tool, done)
    assert done.returncode in ((2,) if tool == "energy" else (0, 1)), done.stderr
    for made in tmp_path.glob("out*.json"):
        json.loads(made.read_bytes())


MERGES = ["mergetrace", "each rank", "parquet", "merge"]


@pytest.mark.parametrize("tool", ["check", "summary", "energy", "query", "report", "path", "diff", "summary.py", *MERGES])
def test_a_pipe_in_a_directory(tool, tmp_path):
    """Nobody has named it, and nobody may ever write there: it is not waited for."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/trace.json").write_text(TRACE)
    os.mkfifo(tmp_path / "in/pipe.json")
    done = run(tool, tmp_path, str(tmp_path / "in"))
    check_words(tool, done)
    assert b"pipe.json" in done.stderr and done.returncode, done.stderr


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in NO_TRACE])
def test_a_pipe_that_is_named(tool, tmp_path):
    """As of <(...): it is read, or one line says why not."""
    reader, writer = os.pipe()
    os.write(writer, TRACE.encode())
    os.close(writer)
    done = run(tool, tmp_path, f"/dev/fd/{reader}", pass_fds=[reader])
    os.close(reader)
    check_words(tool, done)
    if tool in ("repair", "summary.py", "each rank", "parquet"):
        assert done.returncode and re.search(rb"(pipe|only a file).*\n\Z", done.stderr), done.stderr
    else:
        assert (done.returncode, b"No such file" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("tool", ["query", "query of many", "report", "diff"])
def test_a_trace_from_standard_input(tool, tmp_path):
    """Also where processes of a pool read it."""
    reader, writer = os.pipe()
    os.write(writer, TRACE.encode())
    os.close(writer)
    done = run(tool, tmp_path, "/dev/stdin", stdin=reader)
    os.close(reader)
    check_words(tool, done)
    assert (done.returncode, done.stderr) == (0, b"")


SPOILS = {
    "no time": lambda line: line.replace('"ts"', '"when"'),
    "no process": lambda line: line.replace('"pid"', '"of"'),
    "no JSON": lambda line: line.replace(",", ";", 1),
}


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in NO_TRACE])
def test_what_is_left_out_of_a_trace_is_told(tool, spoil, tmp_path):
    """A quarter of the events is spoilt: each tool says so, and its status is 1."""
    lines = [json.dumps({**EVENTS[3], "ts": 100 * number}) for number in range(200)]
    lines[40:90] = map(SPOILS[spoil], lines[40:90])
    about = '{"baseTimeNanoseconds":0,"metadata":{"tool":"xstrace"},"traceEvents":[\n'
    end = '\n],"otherData":{"end":"exited","status":0,"lost":0}}\n'
    (tmp_path / "in.json").write_text(about + ",\n".join([*map(json.dumps, EVENTS[:3]), *lines]) + end)
    done = run(tool, tmp_path, str(tmp_path / "in.json"))
    if tool != "each rank":  # it tells all that is wrong with the file
        check_words(tool, done)
    told = done.stdout + done.stderr
    assert done.returncode == 1 or tool == "repair", told
    assert re.search(rb"left out|CANNOT BE USED: 50|DAMAGED PLACES IN THE FILE: 50|\(50 times\)|taken out", told), told
    assert b"nothing lost" not in told


DIRECTORIES = ["check", "summary", "energy", "query", "query of many", "report", "path", "diff", "summary.py", *MERGES, "report of ranks"]


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("tool", DIRECTORIES)
def test_a_directory_that_leads_to_itself(tool, tmp_path):
    """Each directory is entered once and each trace counts once, however many names lead to it: by two links 2^40 names do."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/trace.json").write_text(TRACE)
    alone = run(tool, tmp_path, str(tmp_path / "in"))
    for left in tmp_path.glob("out*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for name in ("a", "b", "c.json"):
        (tmp_path / "in" / name).symlink_to(".")
    if not tool.startswith(("merge", "report of")):  # which tell that there is a second name
        (tmp_path / "in/z.json").symlink_to("trace.json")
    done = run(tool, tmp_path, str(tmp_path / "in"))
    check_words(tool, done)
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout), done.stderr
    if tool == "report":
        assert b"1 trace(s)" in done.stdout
    if tool == "each rank":
        assert len(json.loads((tmp_path / "out.json").read_bytes())["traces"]) == 1


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("tool", [tool for tool in DIRECTORIES if tool not in (*MERGES, "report of ranks")])
def test_a_pattern_that_leads_to_itself(tool, tmp_path):
    (tmp_path / "in/real").mkdir(parents=True)
    (tmp_path / "in/real/trace.json").write_text(TRACE)
    alone = run(tool, tmp_path, str(tmp_path / "in"))
    for left in tmp_path.glob("out*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for name in ("a", "b"):
        (tmp_path / "in" / name).symlink_to(".")
    done = run(tool, tmp_path, str(tmp_path / "in/**/real/**/*.json"))
    check_words(tool, done)
    assert done.returncode == alone.returncode, (done.stdout, done.stderr)


def test_links_to_other_directories_are_followed(tmp_path):
    """As xstrace-merge does; names that are hidden, and tables that are kept, are passed over."""
    for name in ("traces/.hidden", "traces/x.json.tables", "elsewhere/below"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "t.json").write_text(TRACE)
    (tmp_path / "traces/link").symlink_to("../elsewhere")
    (tmp_path / "traces/again").symlink_to("../elsewhere/below")
    (tmp_path / "elsewhere/up").symlink_to("../traces")
    for words in (["traces"], ["traces/**/*.json"]):
        done = subprocess.run(python("xstrace-check", *words), cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "traces/again/t.json: 6 events, ok\n"), done.stderr


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("tool", TOOLS)
def test_closed_streams(tool, tmp_path):
    """Nobody listens: what is to be written is written, into no other file's descriptor."""
    (tmp_path / "in.json").write_text(TRACE)
    done = run(tool, tmp_path, str(tmp_path / "in.json"), before=["sh", "-c", 'exec <&- >&- 2>&-; exec "$@"', "sh"])
    told_to_stdout = tool == "report of ranks"  # for it that is an error
    assert bool(done.returncode) == (tool in NO_TRACE or told_to_stdout) and done.returncode != 120
    made = [path for path in tmp_path.glob("out*")]
    assert bool(made) == (not done.returncode and any("OUT" in word for word in TOOLS[tool]))
    for path in tmp_path.glob("out*.json"):
        json.loads(path.read_bytes())


OVER = {"query": "out", "report": "out.html", "path": "out.json", "diff": "out.xml", "summary.py": "out.json"}


@pytest.mark.long(keep=1)
@root_only
@pytest.mark.parametrize("tool", OVER)
def test_what_others_kept_private_stays_so(tool, tmp_path):
    """A file of another user's that only he may read becomes none that all may read."""
    (tmp_path / "in.json").write_text(TRACE)
    out = tmp_path / OVER[tool]
    out.write_text("old")
    out.chmod(0o600)
    os.chown(out, 65534, 65534)
    assert run(tool, tmp_path, str(tmp_path / "in.json")).returncode == 0
    assert out.read_text() != "old" and out.stat().st_mode & 0o7777 == 0o600


FORKS = """
import os, signal, sys, time
sys.path.insert(0, sys.argv.pop(1))
from xstrace.running import command
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
@command("forks")
def main(argv=None):
    try:
        if not os.fork():
            os._exit(0)
        for _ in range(1000):
            time.sleep(0.01)
        print("went on")
    finally:
        time.sleep(0.1)
        print("put away", flush=True)
    return 0
main()
"""


def test_a_signal_around_a_fork_ends_the_command(tmp_path):
    """Python loses an exception that is raised there."""
    done = subprocess.run([sys.executable, "-c", FORKS, str(ROOT / "python")], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "put away\n", "")


STUCK = """
import ctypes, os, sys
sys.path.insert(0, sys.argv.pop(1))
from xstrace import temporary
from xstrace.running import command
@command("stuck")
def main(argv=None):
    with temporary.Directory("stuck.") as place:
        open(place + "/file", "w").close()
        temporary.name_for("never.", "/")
        print("now", flush=True)
        mutex = ctypes.create_string_buffer(64)
        for _ in range(2):  # a library that never comes back to Python
            ctypes.CDLL(None).pthread_mutex_lock(mutex)
    return 0
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_library_that_computes_keeps_no_signal(number, tmp_path):
    """The command ends by it, a few seconds later, and leaves nothing."""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", STUCK, str(ROOT / "python")], env=env, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"now\n" and os.listdir(tmp_path)
        child.send_signal(number)
        assert child.wait(30) == -number
    assert not os.listdir(tmp_path)


KILLED = """
import os, sys, tempfile, time
sys.path.insert(0, sys.argv.pop(1))
from xstrace.running import command
from xstrace.temporary import Directory
from xstrace.workers import workers
def work(path):
    Directory("kept.")
    import ctypes
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
@command("killed")
def main(argv=None):
    with workers(count=1) as pool:
        print("now", flush=True)
        list(pool.each(work, [("a",)]))
    return 0
main()
"""


def test_what_a_killed_worker_leaves_goes_with_the_command(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", KILLED, str(ROOT / "python")], env=env, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"now\n"
        until = time.monotonic() + 30
        while not list(tmp_path.rglob("kept.*")) and time.monotonic() < until:
            time.sleep(0.01)
        assert list(tmp_path.rglob("kept.*"))
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == -signal.SIGTERM
    assert not os.listdir(tmp_path)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("tool", OVER)
def test_what_was_there_stays_until_all_is_written(tool, tmp_path):
    """No room for the output: what had its name is as it was, nothing else is left, and a line names it."""
    (tmp_path / "in.json").write_text(TRACE)
    assert run(tool, tmp_path, str(tmp_path / "in.json")).returncode == 0  # tables are kept from now on
    out = tmp_path / OVER[tool]
    out.write_text("old")
    out.chmod(0o640)
    before = sorted(os.listdir(tmp_path))
    done = run(tool, tmp_path, str(tmp_path / "in.json"), [(resource.RLIMIT_FSIZE, 40)])
    check_words(tool, done)
    assert done.returncode and b"File too large" in done.stderr
    assert out.read_text() == "old" and sorted(os.listdir(tmp_path)) == before
    assert run(tool, tmp_path, str(tmp_path / "in.json")).returncode == 0
    assert out.read_text() != "old" and out.stat().st_mode & 0o777 == 0o640


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("tool", OVER)
def test_links_stay_links_and_devices_devices(tool, tmp_path):
    (tmp_path / "in.json").write_text(TRACE)
    out = tmp_path / OVER[tool]
    (tmp_path / "elsewhere").write_text("old")
    out.symlink_to("elsewhere")
    assert run(tool, tmp_path, str(tmp_path / "in.json")).returncode == 0
    assert out.is_symlink() and (tmp_path / "elsewhere").read_text() != "old"
    out.unlink()
    out.symlink_to("/dev/full")
    done = run(tool, tmp_path, str(tmp_path / "in.json"))
    check_words(tool, done)
    assert done.returncode and b"No space left" in done.stderr and os.path.exists("/dev/full")


@pytest.mark.parametrize("tool", ["tables", "merge"])
def test_no_room_is_an_error_and_no_signal(tool, tmp_path):
    (tmp_path / "in.json").write_text(TRACE)
    done = run(tool, tmp_path, str(tmp_path / "in.json"), [(resource.RLIMIT_FSIZE, 40)])
    check_words(tool, done)
    assert done.returncode == 125 and b"File too large" in done.stderr


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Takes what Python reads of it some tenths of a second."""
    path = tmp_path_factory.mktemp("large") / "large.json"
    one = '{"ph":"X","name":"clCall%d","cat":"cpu_op","pid":7,"tid":%d,"ts":%d,"dur":5}'
    path.write_text('{"traceEvents":[\n' + ",\n".join(one % (i % 50, i % 4, i * 10) for i in range(100_000)) + "\n]}")
    return path


def processes_of(session):
    """Of a session, the pids."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found += [int(name)] * (os.getsid(int(name)) == session)
    return found


def is_read(session, path):
    for pid in processes_of(session):
        with contextlib.suppress(OSError):
            if any(os.path.realpath(f"/proc/{pid}/fd/{fd}") == path for fd in os.listdir(f"/proc/{pid}/fd")):
                return True
    return False


# True: it reads pipes, so that the moment of the signal is certain
READS_PIPES = {"query": True, "query of many": True, "diff": True, "each rank": False, "parquet": False, "repair": False}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("tool", READS_PIPES)
def test_ended_by_a_signal(tool, number, large, tmp_path):
    """While the trace is read: it ends as any program does, with all of its processes, and leaves nothing."""
    (tmp_path / "tmp").mkdir()
    path = str(tmp_path / "in.json")
    os.mkfifo(path) if READS_PIPES[tool] else os.link(large, path)
    if tool in OVER:
        (tmp_path / OVER[tool]).write_text("old")
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    pipe = subprocess.PIPE
    with subprocess.Popen(words_of(tool, tmp_path, path), cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, start_new_session=True) as child:
        until = time.monotonic() + 60
        while not is_read(child.pid, path) and child.poll() is None and time.monotonic() < until:
            if READS_PIPES[tool]:
                with contextlib.suppress(OSError):  # nobody has opened it yet
                    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            time.sleep(0.01)
        assert child.poll() is None
        os.killpg(child.pid, number) if number == signal.SIGINT else os.kill(child.pid, number)
        out, err = child.communicate(timeout=30)
        until = time.monotonic() + 30
        while processes_of(child.pid):
            assert time.monotonic() < until
            time.sleep(0.01)
    if READS_PIPES[tool]:
        os.close(writer)
    assert child.returncode == -number and b"Traceback" not in out + err, err.decode()
    assert not os.listdir(tmp_path / "tmp")
    assert tool not in OVER or (tmp_path / OVER[tool]).read_text() == "old"
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".xstrace-")]


ENDS = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from xstrace.running import Ended, command, ended_by_signals, loading

def load():
    with loading():
        os.kill(os.getpid(), signal.SIGTERM)
        print("loaded", flush=True)
    print("not reached", flush=True)

def another():  # DuckDB answers an exception by one of its own
    try:
        os.kill(os.getpid(), signal.SIGHUP)
    except Ended:
        raise RuntimeError("Query interrupted")

def child():  # as a pool's process that has not begun yet
    if not (pid := os.fork()):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            print("not reached", flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)

command("ends")(lambda argv=None: globals()[sys.argv[2]]())()
"""


@pytest.mark.parametrize("what, out, status", [("load", "loaded\n", -15), ("another", "", -1), ("child", "-15\n", 0)])
def test_a_signal_at_any_moment(what, out, status):
    """While a library is loaded, in one that makes its own of our exception, in a process that was forked just now: not a word."""
    done = subprocess.run([sys.executable, "-c", ENDS, str(ROOT / "python"), what], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == (out, "", status)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in NO_TRACE and TOOLS[tool][0] == sys.executable])
def test_nothing_that_python_warns_of(tool, tmp_path):
    (tmp_path / "in.json").write_text(TRACE)
    done = run(tool, tmp_path, str(tmp_path / "in.json"), env={**os.environ, "PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"})
    check_words(tool, done)
    assert done.returncode == 0 and b"Warning" not in done.stderr, done.stderr


def test_killed_while_a_library_is_loaded_nothing_is_left(tmp_path):
    """Loading takes long on a busy machine, and a pool that is given up kills those that do not end: no directory is made before."""
    for name in ("tmp", "modules"):
        (tmp_path / name).mkdir()
    (tmp_path / "in.json").write_text(TRACE)
    (tmp_path / "modules/duckdb.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(tmp_path / "modules")}
    with subprocess.Popen(python("xstrace-query", str(tmp_path / "in.json"), "select 1"), env=env, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"loading\n"
        child.kill()
    assert not os.listdir(tmp_path / "tmp")


def test_no_program_is_run_that_anybody_may_have_put_there(tmp_path):
    """The package lies in a directory such as /tmp, with somebody's bin/ beside it."""
    shutil.copytree(ROOT / "python/xstrace", tmp_path / "mine/python/xstrace", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for place in (tmp_path / "bin", tmp_path / "mine/bin"):
        place.mkdir()
        (place / "xstrace-tables").write_text("#!/bin/sh\n")
        (place / "xstrace-tables").chmod(0o755)
        tmp_path.chmod(0o1777)
        find = "from xstrace.running import program; print(program('xstrace-tables', ('bin',)))"
        env = {"PYTHONPATH": str(tmp_path / "mine/python"), "PATH": ""}
        found = subprocess.run([sys.executable, "-c", find], env=env, capture_output=True, text=True, check=True).stdout.strip()
        assert found == ("None" if place == tmp_path / "bin" else str(tmp_path / "mine/bin/xstrace-tables"))


ALONE = ("xstrace-check", "xstrace-query", "xstrace-report", "mergetrace.py", "roofline.py", "summary.py")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "words", [*([name, "--help"] for name in ALONE), ["xstrace-query", "--list"], ["xstrace-check", "in.json"]], ids=" ".join
)
def test_a_full_stdout_is_one_line(words, tmp_path):
    """Also what argparse prints, and also where that line has no room either."""
    (tmp_path / "in.json").write_text(TRACE)
    words = python(*words)

    def end(how):
        return subprocess.run(
            ["sh", "-c", f'exec {how}; exec "$@"', "sh", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )

    done = end(">/dev/full")
    assert done.returncode in (1, 2, 125) and re.fullmatch(r"[\w.-]+: cannot write: No space left on device\n", done.stderr), done.stderr
    assert end(">/dev/full 2>&1").returncode == done.returncode
    for how in (">&-", ">&- 2>&-"):
        assert (end(how).returncode, end(how).stderr) == (0, "")


def test_a_stdout_that_others_made_non_blocking(tmp_path):
    """What does not fit waits for whoever reads, as it would if they had not."""
    (tmp_path / "in.json").write_text(TRACE)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    words = python("xstrace-query", "--no-cache", "--format", "csv", str(tmp_path / "in.json"), "select * from range(20000)")
    with subprocess.Popen(words, stdout=writer, stderr=subprocess.PIPE) as child:
        os.close(writer)
        time.sleep(1)
        text = b""
        while part := os.read(reader, 65536):
            text += part
        os.close(reader)
        assert (child.stderr.read(), child.wait()) == (b"", 0)
    assert text.decode().split() == ["range", *map(str, range(20000))]


# OUT is another name of the input
SPARED = {
    "analyze": python("analyzeperfmetrics.py", "-l", "-o", "OUT", "in"),
    "analyze charts": python("analyzeperfmetrics.py", "-m", "A", "-y", "Y", "-o", "OUT", "in"),
    "query": python("xstrace-query", "--no-cache", "-o", "OUT", "in", "select 1"),
    "query of many": python("xstrace-query", "--processes", "2", "-o", "OUT", "in", "top-calls"),
    "report": python("xstrace-report", "-o", "OUT", "in"),
    "report as data": python("xstrace-report", "--json", "OUT", "in"),
    "two outputs": python("xstrace-report", "--json", "new", "-o", "./new", "in"),
    "path": python("xstrace-path", "-o", "OUT", "in"),
    "diff": python("xstrace-diff", "--no-cache", "--junit", "OUT", "in", "in"),
    "summary.py": python("summary.py", "--json", "OUT", "--input", "in"),
    "schema": python("categorize.py", "--json", "OUT", "--ini", "in"),
}


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("tool", SPARED)
def test_no_input_is_written_over(tool, tmp_path):
    text = "[a if startswith]\nb\n" if tool == "schema" else TRACE
    (tmp_path / "in").write_text(text)
    (tmp_path / "link").symlink_to("in")
    for name in ("in", "./in", "link"):
        words = [name if word == "OUT" else word for word in SPARED[tool]]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2) and "another name" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert (tmp_path / "in").read_text() == text and set(os.listdir(tmp_path)) <= {"in", "link", "in.tables"}


@pytest.mark.parametrize(
    "words",
    [("xstrace-query", "--no-cache", "-o", "asked", "-f", "asked", "in.json"), ("analyzeperfmetrics.py", "-f", "asked", "-l", "-o", "asked", "in.json")],
    ids=["query", "options"],
)
def test_no_file_of_a_question_is_written_over(tmp_path, words):
    text = "select 1" if "xstrace-query" in words else "-d 0"
    (tmp_path / "in.json").write_text(TRACE)
    (tmp_path / "asked").write_text(text)
    done = subprocess.run(python(*words), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and "another name" in done.stderr and (tmp_path / "asked").read_text() == text


@pytest.mark.parametrize("which", ["--compute", "--memory", "--device"])
@pytest.mark.parametrize("output", ["in.html", "in"])
def test_no_input_of_the_roofline_is_written_over(tmp_path, which, output):
    """Also where the output's name is completed."""
    for name in ("in.html", "other"):
        (tmp_path / name).write_text("x\n")
    words = {"--compute": "other", "--memory": "other", "--device": "other", which: "in.html", "--output": output}
    done = subprocess.run([*python("roofline.py"), *itertools.chain(*words.items())], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "another name" in done.stderr and (tmp_path / "in.html").read_text() == "x\n"


@pytest.mark.parametrize("tool", OVER)
def test_what_cannot_be_written_is_named_as_the_user_did(tool, tmp_path):
    (tmp_path / "in.json").write_text(TRACE)
    (tmp_path / OVER[tool]).symlink_to("nowhere/at-all")
    done = run(tool, tmp_path, str(tmp_path / "in.json"))
    check_words(tool, done)
    assert done.returncode and OVER[tool].encode() in done.stderr and b".xstrace-" not in done.stderr, done.stderr


@pytest.mark.long(keep=1)
@root_only
@pytest.mark.parametrize("tool", [*OVER, "merge"])
def test_what_cannot_be_removed_is_told(tool, tmp_path):
    """In a directory that takes files and gives none back no output takes its name by rename, and what was written stays."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "good.json").write_text(TRACE)
    (place / "in.json").write_text(TRACE)
    assert run(tool, place, str(place / "in.json")).returncode == 0  # tables are kept from now on
    for file in place.glob("out*"):
        file.unlink()
    with append_only(place):
        done = run(tool, place, str(place / "in.json"))
        check_words(tool, done)
        (left,) = place.glob(".xstrace-*")
        assert f"{left} cannot be removed: Operation not permitted".encode() in done.stderr, done.stderr
        assert (done.returncode != 0) == (tool != "merge")


@pytest.mark.long
@pytest.mark.parametrize("name", ["xstrace-path", "xstrace-diff", "xstrace-report"])
def test_too_little_memory_is_said(name, tmp_path):
    """Of whatever library it is that finds none: no fault of ours."""
    (tmp_path / "in.json").write_text(TRACE)
    words = python(
        name, *(["in.json"] if name != "xstrace-diff" else ["in.json", "in.json"]), *(["-q"] if name == "xstrace-report" else [])
    )

    def begin(size):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    said = []
    for size in (40, 72, 85, 130, 175, 220, 265, 310, 355, 400):
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=60, preexec_fn=functools.partial(begin, size << 20)
        )
        said.append(done.stderr)
        assert "a fault of this program" not in done.stderr and "MemoryError" not in done.stderr, done.stderr
    assert any("memory" in text for text in said)


def test_a_library_that_has_no_memory_for_its_exception(tmp_path):
    """Then CPython makes a SystemError of it."""
    (tmp_path / "in.json").write_text(TRACE)
    (tmp_path / "numpy.py").write_text("raise SystemError('error return without exception set')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = python("xstrace-path", "in.json")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 2 and done.stderr == "xstrace-path: out of memory (or a limit forbids more threads)\n"


@pytest.mark.parametrize(
    "words",
    [
        python("categorize.py", "--ini", "huge", "--json", "out.json"),
        python("summary.py", "--input", "in.json", "--schema", "huge"),
        python("roofline.py", "--device", "huge", "--compute", "in.json", "--memory", "in.json", "--output", "out.html"),
        python("xstrace-query", "-f", "huge", "in.json"),
    ],
    ids=lambda words: os.path.basename(words[1]),
)
def test_a_text_that_is_too_large(tmp_path, words):
    """What people write is small: a file of 1 TiB is refused before it is read."""
    (tmp_path / "in.json").write_text(TRACE)
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode and "huge: more than 64 MiB" in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("verb", ["equals to", "starts with", "ends with"])
def test_names_that_begin_with_each_other(tmp_path, verb):
    """A schema is as deep as there are such: both commands take, or refuse, the same."""
    (tmp_path / "in.json").write_text(TRACE)
    for count in (399, 400, 3000):
        (tmp_path / "s.ini").write_text(f"[few if {verb}]\n" + "\n".join("a" * n for n in range(1, count + 1)))
        told = []
        for words in (
            python("categorize.py", "--ini", "s.ini", "--json", "s.json"),
            python("summary.py", "--input", "in.json", "--schema", "s.ini"),
            python("summary.py", "--input", "in.json", "--schema", "s.json"),
        ):
            if "--schema" in words and not (tmp_path / words[-1]).exists():
                continue
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=30, preexec_fn=little_memory)
            told.append((done.returncode, done.stderr.partition("s.ini: ")[2]))
        (tmp_path / "s.json").unlink(missing_ok=True)
        many = "more than 398 names, each of which begins (or ends) with the one before\n"
        assert told == ([(0, "")] * 3 if count < 400 else [(1, many)] * 2), (count, told)


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


@pytest.mark.parametrize("text", [b"\0" * 30_000, b"x" * 30_000, b"-l " * 20_000, b"-l " * 30_000, None], ids=range(5))
def test_options_of_a_file_that_are_none(tmp_path, text):
    """A file of options is bounded, and what is wrong with it is one short line."""
    with open(tmp_path / "config", "wb") as file:
        file.write(text) if text else file.truncate(1 << 40)
    words = python("analyzeperfmetrics.py", "-l", "-f", "config", "none.csv")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and len(done.stderr) < 400, done.stderr[:1000]
    assert ("config: more than 64 KiB" in done.stderr) == (not text or len(text) > 1 << 16), done.stderr


def test_a_file_of_nuls_is_no_tarball(tmp_path):
    with open(tmp_path / "nuls.json", "wb") as file:
        file.truncate(1 << 40)
    words = python("summary.py", "--input", "nuls.json")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and done.stderr.endswith("nuls.json: no report and no trace in it\n"), done.stderr


def test_impossible_times_are_told(tmp_path):
    """They count nowhere, and how many they are is said."""
    kernel = {"ph": "X", "pid": 1, "tid": 1, "cat": "gpu_op", "name": "gemm", "ts": 10}
    events = [{**kernel, "dur": length} for length in (5, 7, -3, 1e308, "x", None)]
    (tmp_path / "in.json").write_text(json.dumps({"traceEvents": events}))
    done = subprocess.run(
        python("summary.py", "--input", "in.json", "--json", "out.json"), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "in.json: 4 events without a usable ph, pid, time or beginning; left out" in done.stderr, done.stderr
    told = json.loads((tmp_path / "out.json").read_text())
    assert (told["device_time"], told["device_calls"]) == (12000, 2)


REPORT = """=== Device Timing Summary ===

 Total Execution Time (ns): 900
    Total Device Time for L0 backend (ns): 60

== L0 Backend ==

 Kernel, Calls, Time (ns)
 "a", 2, 20
 "b", %s, 40

"""


@pytest.mark.parametrize("number", ["abc", "-5", "nan", "1" * 6000, "", "1.5", "1_0"])
def test_rows_of_a_report_that_are_spoilt(number, tmp_path):
    for calls, said, status in (("3", "", 0), (number, "in.txt: 1 rows whose numbers cannot be used; left out\n", 1)):
        (tmp_path / "in.txt").write_text(REPORT % calls)
        words = python("summary.py", "--input", "in.txt")
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == status and done.stderr.endswith(said) and bool(done.stderr) == bool(said), done.stderr


def test_a_report_that_was_cut(tmp_path):
    (tmp_path / "in.txt").write_text(REPORT[: REPORT.index('"b"')] + ' "b"')
    done = subprocess.run(python("summary.py", "--input", "in.txt"), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "in.txt: 1 rows whose numbers cannot be used; left out; was cut; what could be read counts" in done.stderr


WARNS = """
import sys, warnings
sys.path.insert(0, sys.argv.pop(1))
from xstrace.running import command
command("warns")(lambda argv=None: warnings.warn("Glyph \\x1b[31m missing\\nat all") or 0)()
"""


def test_what_libraries_warn_of_is_one_line():
    done = subprocess.run([sys.executable, "-c", WARNS, str(ROOT / "python")], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "warns: Glyph ?[31m missing?at all\n")


def test_names_that_no_font_has(tmp_path, capfd):
    pytest.importorskip("matplotlib")
    from xstrace import charts

    name = "\x1b[31m\x07 \u4e00 $x"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        charts.put([charts.Chart(name, name, name, {name: [1, 2]}, labels=[name, name]), [name]], str(tmp_path / "c.pdf"))
    assert capfd.readouterr() == ("", "")


def test_a_text_that_is_no_report(tmp_path):
    (tmp_path / "note.txt").write_text("x" * 5000)
    done = subprocess.run(python("summary.py", "--input", str(tmp_path / "note.txt")), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.endswith("no report and no trace in it\n")


def test_tables_that_cannot_be_made_leave_nothing(tmp_path):
    """No directory is left of what is no trace, and of a full disk the reason is told."""
    words = built("tables/xstrace-tables", "-o", "out")
    for path in ("none", "/etc/passwd", "/dev/full"):
        done = subprocess.run([*words, path], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 125 and done.stderr.count("\n") == 1 and not os.listdir(tmp_path)
    (tmp_path / "out").mkdir()
    subprocess.run([*words, "none"], cwd=tmp_path, capture_output=True, timeout=60)
    assert os.listdir(tmp_path) == ["out"]


@root_only
def test_tables_on_a_full_disk(tmp_path):
    events = [{**EVENTS[3], "ts": 100 * n, "args": {"text": "x" * 100 + str(n)}} for n in range(2000)]
    (tmp_path / "in.json").write_text(json.dumps({"traceEvents": events}))
    (tmp_path / "small").mkdir()
    for size in ("8k", "40k", "200k"):
        with mounted(tmp_path / "small", f"size={size}"):
            words = built("tables/xstrace-tables", "-o", "small/out", "in.json")
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert done.returncode == 125 and done.stderr.endswith(": No space left on device\n"), done.stderr
            assert not os.listdir(tmp_path / "small")


def test_columns_of_one_name_are_all_in_json(tmp_path):
    (tmp_path / "in.json").write_text(TRACE)
    words = python("xstrace-query", "--no-cache", "--json", "in.json", "select 1 as a, 2 as a, 3 as a_1, 4 as a")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == [{"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}]


def test_numbers_of_any_size_in_what_tracing_cost(tmp_path):
    for number in (10**300, 10**4000, -(10**4000)):
        overhead = {"events": {"call": {"count": number, "ns": number}}, "events_ns": number}
        (tmp_path / "in.json").write_text(json.dumps({"traceEvents": EVENTS, "otherData": {"overhead": overhead}}))
        done = subprocess.run(python("xstrace-summary", "in.json"), cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


# ---- how that is kept so ----


def test_every_command_is_begun_and_ended_in_one_way():
    for script in sorted(SCRIPTS.iterdir()):
        text = script.read_text()
        for module, main in re.findall(r"^from (xstrace\.\w+) import (\w*main)", text, re.M):
            function = getattr(importlib.import_module(module), main)
            assert hasattr(function, "__wrapped__"), f"{script.name}: {module}.{main} lacks @command"


def test_ctrl_c_while_a_command_is_loaded():
    """From the first line of ours on it ends the command without a word: the modules are loaded later. (Before that it is Python that starts.)"""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert len(entries) == 10
    for name, entry in entries.items():
        module, function = entry.split(":")
        assert module == "xstrace.commands" and callable(getattr(importlib.import_module(module), function)), name
    shown = "import signal, sys, xstrace.commands; print(signal.getsignal(2), [m for m in sys.modules if m.startswith('xstrace.')])"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", shown], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "Handlers.SIG_DFL ['xstrace.commands']\n" or done.stdout == "0 ['xstrace.commands']\n"
    for script in sorted(SCRIPTS.iterdir()):
        text = script.read_text() if script.is_file() else ""
        if "from xstrace." in text and text.startswith("#!/usr/bin/env python3"):
            assert "signal.signal(signal.SIGINT, signal.SIG_DFL)" in text.partition("from xstrace.")[0], script.name


def test_what_is_written_and_read_goes_one_way():
    """running.py writes outputs and opens what others made; the files named here write into directories of their own alone."""
    own = {"running.py", "_kept.py", "convert.py", "mapped.py", "report_tables.py", "view.py", "repair.py"}
    for path in sorted((ROOT / "python/xstrace").rglob("*.py")):
        for line in path.read_text().splitlines():
            writes = re.search(r"""(?<![.\w])open\([^)]*["'][wax]""", line)
            assert not writes or path.name in own, f"{path.name}: {line.strip()}: use running.written()"


def test_directories_and_patterns_are_looked_at_in_one_way():
    """places.py ends where links lead round; a walk of any other kind may not."""
    for path in (*sorted((ROOT / "python").rglob("*.py")), *filter(os.path.isfile, sorted(SCRIPTS.iterdir()))):
        found = re.findall(r".*(?:os\.f?walk|rglob|scandir|iterdir|recursive=).*", path.read_text(errors="replace"))
        assert not found, f"{path.name}: {found}: use places.py"
        assert "glob.glob(" not in path.read_text(errors="replace") or path.name in ("places.py", "roofline.py", "sass.py"), path.name


def test_no_library_is_loaded_while_signals_are_exceptions():
    """Compiled ones break by an exception in the middle of their beginning: imports in functions are `with loading():`."""
    for path in sorted((ROOT / "python/xstrace").rglob("*.py")):
        for before, name in re.findall(r"^( +[^\n]*\n) +(?:import|from) (duckdb|pyarrow|distributed|numpy|pandas)\b", path.read_text(), re.M):
            assert before.strip() == "with loading():" or "import" in before, f"{path.name}: {name}"
