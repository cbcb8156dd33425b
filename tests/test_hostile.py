"""Hostile programs, data and files against launcher and drain process: what is spoilt may be missing, and nothing else happens.

These run with any build; tests/sanitize runs them with the one that has ASan and UBSan in it, where each report fails the test.
"""

import contextlib
import json
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, open_trace, wait_until

MODES = ["bytes", "words", "pointers", "lengths", "heads", "zero", "bits", "swap"]
KINDS = ["p", "strings", "mailbox", "control", "p,strings,mailbox"]
ITT = "--chrome-itt-logging"
needs_itt = pytest.mark.skipif(not (APPS / "itt_stress").exists(), reason="no ITT here")
pytestmark = needs_itt


class Place:
    """Directories of one test: where the run works, and something beside it that nobody may touch."""

    def __init__(self, path):
        self.path = path
        self.out = path / "out"
        self.out.mkdir()
        self.victim = path / "victim" / "precious"
        self.victim.parent.mkdir()
        self.victim.write_text("precious\n" * 1000)
        self.stdout, self.stderr = path / "stdout", path / "stderr"
        self.stdout.touch()
        self.dirs = []
        self.parsed = {}
        self.reports = path / "reports"
        self.reports.mkdir()
        self.before = set(os.listdir(path.parent)), self.victim.stat()
        self.env = os.environ | {
            "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:log_path={self.reports}/asan:detect_leaks=0",
            "UBSAN_OPTIONS": f"{os.environ.get('UBSAN_OPTIONS', '')}:log_path={self.reports}/ubsan:print_stacktrace=1",
        }

    def start(self, command, **more):
        """The launcher of a run; `dir` is its run directory as soon as it is there."""
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=self.out,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=self.stdout.open("w"),
            stderr=self.stderr.open("w"),
            **more,
        )
        process.dir = wait_until(lambda: process.poll() is not None and "/none" or run_dir(process.pid), 30)
        self.dirs.append(process.dir)
        return process

    def scribble(self, directory, kinds, mode, ms, seed=1, text=""):
        return subprocess.Popen([APPS / "scribbler", directory, kinds, mode, str(seed), str(ms), text], stdout=subprocess.PIPE, text=True)

    def wait(self, process, status, timeout=60):
        """The run ends as it should, in time, and so does the drain process."""
        assert process.wait(timeout) == status, self.stderr.read_text()
        wait_until(lambda: not drains(process.dir), timeout)
        self.look()

    def look(self, cut=False):
        """Nobody crashed, nothing else was written, and what was is JSON; cut: or was never completed."""
        for report in self.reports.iterdir():
            assert not report.read_text().strip(), report.read_text()[:4000]
        said = self.stderr.read_text(errors="backslashreplace")
        assert "runtime error" not in said and "the drain process ended" not in said, said
        assert all(line.isprintable() for line in said.splitlines()), said
        assert self.victim.read_text() == "precious\n" * 1000
        siblings, status = self.before
        assert set(os.listdir(self.path.parent)) == siblings
        assert self.victim.stat().st_mtime_ns == status.st_mtime_ns and os.listdir(self.victim.parent) == ["precious"]
        assert sorted(os.listdir(self.path)) == ["out", "reports", "stderr", "stdout", "victim"]
        for path in self.out.iterdir():
            if path.name.startswith("r."):
                assert not path.name.endswith(".json") or json.loads(path.read_bytes())
            elif path.name.endswith(".json"):
                with open_trace(path) as trace:
                    for _ in trace:
                        pass
                assert not trace.damaged and (cut or not trace.truncated), (path, trace.damage)
                assert cut or self.read(path)
            else:
                assert path.name in self.mine, path

    mine = frozenset(("truth",))

    def read(self, path):
        """What is in the trace, which is not read again while its length stays."""
        length = path.stat().st_size
        if self.parsed.get(path, (None,))[0] != length:
            self.parsed[path] = (length, json.loads(path.read_bytes()))
        return self.parsed[path][1]

    def traces(self):
        return [self.read(path) for path in self.out.glob("*.json")]


def run_dir(launcher):
    """The directory of this launcher's run, as test programs find it: by the environment of its children."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        try:
            found = [v for v in Path(f"/proc/{child}/environ").read_bytes().split(b"\0") if v.startswith(b"XSTRACE_RUN=")]
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        for word in [*found, *words]:
            match = re.search(rb"/[^:=]*/xstrace-[\w-]+", word)
            if match and os.path.isfile(match[0] + b"/control"):
                return os.fsdecode(match[0])
    return None


def begun(directory):
    """Has the drain process opened what is in the directory? It keeps a file of its own beside each process's."""
    with contextlib.suppress(FileNotFoundError):
        return any(re.match(r"d\d", name) for name in os.listdir(directory))


def drains(directory):
    """The drain processes of the run directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if (
                Path(f"/proc/{pid}/comm").read_text() == "xstrace-drain\n"
                and os.fsencode(directory) in Path(f"/proc/{pid}/cmdline").read_bytes()
            ):
                found.append(int(pid))
        except OSError:
            pass
    return found


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    for directory in place.dirs:
        for pid in drains(directory):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(directory, ignore_errors=True)


def finished(path):
    """How many tasks itt_stress really ended."""
    data = path.read_bytes()
    return sum(struct.unpack_from("=QQQ", data, at)[2] for at in range(0, len(data), 64))


def tells_of_loss(trace, said):
    other = trace.get("otherData", {})
    counts = [other.get(key, 0) for key in ("lost", "corrupt_rings", "impossible_times", "unmatched_ends", "untimed_commands")]
    return any(counts) or other.get("end") == "unknown" or bool(said.strip())


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_scribbler(place, mode, kinds):
    """A process of the same user writes into the files of the run while a program is traced."""
    truth = place.out / "truth"
    run = place.start([XSTRACE, ITT, "--on-full", "drop", APPS / "itt_stress", truth, "3", "10000", "1"])
    has_files = kinds != "mailbox" or os.path.exists(run.dir + "/mailbox")
    scribbler = place.scribble(run.dir, kinds, mode, 700, seed=MODES.index(mode) * 10 + KINDS.index(kinds))
    place.wait(run, 0, 30)
    written = int(scribbler.communicate(timeout=30)[0].split()[1])
    assert scribbler.returncode == 0 and (written > 100 or not has_files or (mode == "heads" and kinds != "p"))
    assert "expected: 3 threads" in place.stdout.read_text()
    found = sum(1 for trace in place.traces() for event in trace["traceEvents"] if event["ph"] == "X")
    said = "\n".join(line for line in place.stderr.read_text().splitlines() if "is stored in" not in line)
    if found < finished(truth) and kinds != "control":  # which says whether the run records at all
        assert not place.traces() or tells_of_loss(place.traces()[0], said), place.traces()[0]["otherData"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kinds", ["p,strings,mailbox", "control,v"])
@pytest.mark.parametrize("mode", ["bytes", "words", "bits", "swap"])
def test_scribbler_while_somebody_looks(place, mode, kinds):
    """--top shows whatever it is, as JSON, and ends; so does the run."""
    run = place.start([XSTRACE, ITT, "--on-full", "drop", APPS / "itt_stress", place.out / "truth", "3", "10000", "1"])
    scribbler = place.scribble(run.dir, kinds, mode, 1500, seed=MODES.index(mode))
    looks = 0
    while run.poll() is None:
        seen = subprocess.run([XSTRACE, "--once", "--json", "--top"], capture_output=True, env=place.env, timeout=30)
        assert (seen.returncode, seen.stderr) == (0, b"")
        text = seen.stdout.decode()
        assert "\x1b" not in text
        json.loads(text)
        looks += 1
    scribbler.communicate(timeout=30)
    place.wait(run, 0, 30)
    assert looks


@pytest.mark.parametrize("kinds", ["p", "control", "mailbox"])
def test_paths_are_not_followed(place, kinds):
    """What shared memory says of files is not what is written to, by the drain process or by --recover."""
    run = place.start([XSTRACE, ITT, APPS / "itt_stress", place.out / "truth", "2", "20000"], process_group=0)
    wait_until(lambda: "ready" in place.stdout.read_text())
    time.sleep(0.3)
    place.scribble(run.dir, kinds, "paths", 300, text=str(place.victim)).wait(20)
    for pid in drains(run.dir):
        os.kill(pid, signal.SIGKILL)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait(20)
    done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=place.out, env=place.env, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1, 125), done
    place.stderr.write_text(done.stderr)
    place.look(cut=done.returncode != 0)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kinds", KINDS)
def test_files_that_are_cut_while_they_are_used(place, kinds):
    """The program itself may die of it, the drain process may not; it ends."""
    place.mine = place.mine | {"core"}
    run = place.start([XSTRACE, ITT, "--on-full", "drop", APPS / "itt_stress", place.out / "truth", "3", "2000", "1"])
    wait_until(lambda: run.poll() is not None or begun(run.dir))
    scribbler = place.scribble(run.dir, kinds, "cut", 1500, seed=KINDS.index(kinds))
    status = run.wait(30)
    wait_until(lambda: not drains(run.dir), 30)
    scribbler.communicate(timeout=30)
    reports = list(place.reports.glob("asan.*"))  # the program's own, which it ends with status 1 after
    assert status in (0, -signal.SIGBUS, 128 + signal.SIGBUS) or (status == 1 and reports), place.stderr.read_text()
    for report in reports:
        text = report.read_text()
        assert "BUS on unknown address" in text and "xstrace-drain" not in text, text[:3000]
        report.unlink()
    place.look()


@pytest.fixture(scope="module")
def dead_run(tmp_path_factory):
    """A run directory whose processes were all killed, as a copy to copy from."""
    place = Place(tmp_path_factory.mktemp("dead"))
    run = place.start([XSTRACE, ITT, APPS / "itt_stress", place.out / "truth", "3", "5000"], process_group=0)
    wait_until(lambda: "ready" in place.stdout.read_text())
    time.sleep(0.5)
    for pid in drains(run.dir):
        os.kill(pid, signal.SIGKILL)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait(20)
    kept = place.path / "kept"
    subprocess.run(["cp", "-a", "--sparse=always", run.dir, kept], check=True)
    shutil.rmtree(run.dir)
    return kept, Path(run.dir)


def lengths_of(size):
    return sorted(
        {0, 1, 7, 8, 63, 64, 100, 511, 512, 1000, 4095, 4096, 4097, 8192, 65536, size // 3, size // 2, size - 4096, size - 1, size}
        & set(range(size + 1))
    )


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("what", ["control", "strings", "p", "d", "mailbox"])
def test_recover_from_cut_files(place, dead_run, what):
    """Each file of a run directory at many lengths, and absent: a trace, or one line; never a crash, a hang, another file."""
    kept, directory = dead_run
    names = [
        name
        for name in os.listdir(kept)
        if (name == what or (len(what) == 1 and name[:1] == what and name[1:2].isdigit())) and (kept / name).is_file()
    ]
    if not names:
        pytest.skip("no such file in this version")
    for length in [None, *lengths_of((kept / names[0]).stat().st_size)]:
        subprocess.run(["cp", "-a", "--sparse=always", kept, directory], check=True)
        if length is None:
            (directory / names[0]).unlink()
        else:
            os.truncate(directory / names[0], length)
        done = subprocess.run([XSTRACE, "--recover", directory], cwd=place.out, env=place.env, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1, 125), (length, done)
        assert done.stderr.strip(), length
        place.stderr.write_text(done.stderr)
        place.look()
        shutil.rmtree(directory, ignore_errors=True)
        for path in place.out.glob("*.json"):
            path.unlink()


def test_recover_from_scribbled_files(place, dead_run):
    kept, directory = dead_run
    for number, mode in enumerate(MODES):
        subprocess.run(["cp", "-a", "--sparse=always", kept, directory], check=True)
        place.scribble(directory, KINDS[-1], mode, 150, seed=number).wait(20)
        done = subprocess.run([XSTRACE, "--recover", directory], cwd=place.out, env=place.env, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1, 125) and done.stderr.strip(), (mode, done)
        place.stderr.write_text(done.stderr)
        place.look()
        shutil.rmtree(directory, ignore_errors=True)
        for path in place.out.glob("*.json"):
            path.unlink()


NAMES = ["\x1b[2J\x1b]0;owned\x07", "new\nline", "-rf", "%s%n", ']}"', "\u202egpj.exe", "x" * 200]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_program_names(place, name):
    """A program's name goes into files' names, traces and messages."""
    where = place.path / "victim" / "p"
    where.mkdir()
    program = where / name
    shutil.copy(APPS / "itt_names", program)
    bare = subprocess.run([program], capture_output=True, cwd=place.path / "victim", timeout=60)
    run = place.start([XSTRACE, ITT, "-h", "-d", "-v", program])
    assert run.wait(60) == bare.returncode
    wait_until(lambda: not drains(run.dir))
    shutil.rmtree(where)
    traces = list(place.out.glob("*.json"))
    assert traces and all(path.name.isprintable() and not path.name.startswith("-") for path in traces)
    place.look()


def test_hostile_task_names_in_every_output(place):
    """Names that break JSON, terminals, columns and file names, in traces and reports of every form."""
    for n, options in enumerate(
        [
            "-r",
            "-r --report-format json -o r.json",
            "-r --report-format csv -o r.txt",
            "--compress zstd",
            "--result-dir sub",
            "--flight-recorder 10s",
        ]
    ):
        place.mine = place.mine | {"sub"}
        run = place.start([XSTRACE, ITT, *options.split(), APPS / "itt_names"])
        assert run.wait(60) == 0
        wait_until(lambda: not drains(run.dir))
        for path in list(place.out.glob("*.zst")) + [p for p in place.out.glob("sub/**/*.json") if p.name != "run_config.json"]:
            with open_trace(path) as trace:
                assert sum(1 for _ in trace) and not trace.damaged
            if path.suffix == ".zst":
                path.unlink()
        for path in place.out.glob("r.*.txt"):
            assert all(line.isprintable() for line in path.read_text().splitlines())
        place.look()
        for path in [*place.out.glob("*.json"), *place.out.glob("r.*")]:
            path.unlink()


def spoilt(memory, kind, words, number, new):
    """Changes the number-th record of this kind and size in the process's first ring: new kind, new size (None: as it was)."""
    at = {20480 + 8 * (4096 + (1 << 20)): 24576}[len(memory)]
    while number >= 0:
        assert memory[at + 13], "no such record"
        number -= (memory[at + 12], memory[at + 13]) == (kind, words)
        at += 8 * memory[at + 13] if number >= 0 else 0
    memory[at + 12] = new[0] or memory[at + 12]
    memory[at + 13] = new[1] or memory[at + 13]


BEGIN, END, COUNTER, UNKNOWN = 3, 4, 11, 68
SPOILT = {
    "long_begin": [(BEGIN, 50, (None, 6))],  # what it swallows is an end and a begin: nothing is unmatched
    "long_end": [(END, 50, (None, 10))],
    "longest_begin": [(BEGIN, 50, (None, 66))],
    "unknown_kinds": [(END, 50, (UNKNOWN, None)), (BEGIN, 50, (UNKNOWN, None))],
    "short_counters": [(END, 50, (COUNTER, None)), (BEGIN, 50, (COUNTER, None))],
}


@pytest.mark.parametrize("recorder", [(), ("--session", "spoilt", "--flight-recorder", "60s")], ids=["trace", "flight"])
@pytest.mark.parametrize("what", SPOILT)
def test_records_of_sizes_that_their_kind_cannot_have(xstrace, what, recorder):
    """One flipped bit makes a record swallow others, or be skipped: what is missing is told."""
    run = xstrace.start([ITT, *recorder], "itt_steps", ["tasks", "a", "1", "wait", "tasks", "a", "99", "wait"], stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: begun(run.dir))
    drain = run.drain
    os.kill(drain, signal.SIGSTOP)
    try:
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()
        run.wait_for_output("ready 2")
        (name,) = Path(run.dir).glob("p*")
        with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            for kind, number, new in SPOILT[what]:
                spoilt(memory, kind, 2, number, new)
    finally:
        os.kill(drain, signal.SIGCONT)
    if recorder:
        assert subprocess.run([XSTRACE, "--dump", "spoilt"], capture_output=True, timeout=30).returncode == 0
    run.process.stdin.close()
    run.finish()
    trace = run.traces[0]
    assert run.status == 0 and trace.count("tasks") < 100 and trace.other["corrupt_rings"] == 1


NAMES = {
    "blanked": lambda file, at: file.write_bytes(file.read_bytes()[: 1 << 16] + bytes(file.stat().st_size - (1 << 16))),
    # struct xs_string: hash, length, scope, reserved, text
    "hash": lambda file, at: put(file, at - 16, b"\xff\xff\0\0"),
    "length": lambda file, at: put(file, at - 12, struct.pack("I", 7)),
    "no domain": lambda file, at: put(file, at - 8, bytes(4)),
    "another domain": lambda file, at: put(file, at - 8, struct.pack("I", 0x20010)),
    "letter": lambda file, at: put(file, at + 7, b"b"),
}


def put(file, at, data):
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


@pytest.mark.parametrize("options", ["", " --on-full drop"])
@pytest.mark.parametrize("what", NAMES)
def test_names_that_are_changed_before_they_are_read(xstrace, what, options):
    """A sibling's work: the tasks are there all the same, of names that are not known, and that is said."""
    run = xstrace.start(f"--chrome-itt-logging{options}", "itt_steps", ["wait", "tasks", "a", "1000"], stdin=subprocess.PIPE)
    run.wait_for_output()
    os.kill(run.drain, signal.SIGSTOP)
    run.process.stdin.close()
    wait_until(lambda: "itt_steps" not in run.children())
    file = Path(run.dir, "strings")
    NAMES[what](file, file.read_bytes().index(b"steps::a\0"))
    os.kill(run.drain, signal.SIGCONT)
    trace = run.finish().trace
    assert len(trace.slices) == 1000 and trace.other["lost"] == 0 and "unmatched_ends" not in trace.other
    assert trace.other["omitted"]["names"] and any("names" in line for line in run.said)


def test_a_process_that_nobody_tells_of(xstrace):
    """The count of those that have joined was overwritten, and comes to what it was: with the application's end its trace is there."""
    words = ["tasks", "a", "10", "wait", "child", "tasks", "b", "20", "end", "tasks", "c", "10"]
    run = xstrace.start("--chrome-itt-logging", "itt_steps", words, stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: list(xstrace.cwd.glob("itt_steps.*.json")))
    with Path(run.dir, "mailbox").open("r+b") as file:
        file.seek(12)  # struct xs_mailbox: joined
        assert file.read(4) == struct.pack("I", 1)
        file.seek(12)
        file.write(bytes(4))
    run.process.stdin.close()
    run.wait()
    assert len(list(xstrace.cwd.glob("itt_steps.*.json"))) == 2
    assert sorted(trace.count("tasks") for trace in run.collect().traces) == [20, 20]
