"""What all tools that read traces have in common: every kind of input, help with an example, JSON, bars, a bound of memory, a cluster's workers."""

import contextlib
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

pytest.importorskip("numpy")
pytest.importorskip("duckdb")

from conftest import ROOT, limited
from others import CLIENTS, need, needs_clients
from test_ranks import cluster
from made import KINETO, UNITRACE
from xstrace import check, diff, many, path, query, source, summary
from xstrace.categories import summary_main
from xstrace.report import command

SAMPLES = ROOT / "tests/samples/0.1.0"
SCRIPTS = ROOT / "scripts"
# name: (main, arguments with JSON on stdout)
TOOLS = {
    "xstrace-check": (check.main, ["--json"]),
    "xstrace-summary": (summary.main, ["--json"]),
    "xstrace-query": (query.main, ["--json", "TRACES", "select path from traces order by path"]),
    "xstrace-report": (command.main, ["--json", "-"]),
    "xstrace-path": (path.main, ["--json"]),
    "xstrace-diff": (diff.main, ["--json", "TRACES", "OTHER"]),
    "summary.py": (summary_main, ["--input"]),
}
FORMS = (
    "plain.json",
    "packed.json.gz",
    "packed.json.zst",
    "perfetto.pftrace",
    "perfetto.pftrace.gz",
    "kineto.json",
    "unitrace.json",
    "cut.json",
)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """One of each form; the first five tell of the same program."""
    place = tmp_path_factory.mktemp("forms")
    plain = gzip.decompress((SAMPLES / "gemm.json.gz").read_bytes())
    (place / "plain.json").write_bytes(plain)
    shutil.copy(SAMPLES / "gemm.json.gz", place / "packed.json.gz")
    subprocess.run(["zstd", "-qk", place / "plain.json", "-o", place / "packed.json.zst"], check=True)
    shutil.copy(SAMPLES / "gemm.pftrace", place / "perfetto.pftrace")
    (place / "perfetto.pftrace.gz").write_bytes(gzip.compress((SAMPLES / "gemm.pftrace").read_bytes()))
    (place / "kineto.json").write_text(KINETO)
    (place / "unitrace.json").write_text(UNITRACE)
    (place / "cut.json").write_bytes(plain[: len(plain) // 2])
    (place / "notes.txt").write_text("no trace")
    return place


@pytest.fixture(scope="module", autouse=True)
def other_place(tmp_path_factory):
    """What xstrace-diff compares with: a copy, beside which tables may lie."""
    TOOLS["xstrace-diff"][1][-1] = str(shutil.copy(SAMPLES / "gemm.pftrace", tmp_path_factory.mktemp("other")))


def asked(tool, *words, more=()):
    """(exit status, what its JSON says, stderr) of the tool on these places."""
    main, arguments = TOOLS[tool]
    words = list(map(str, words))
    at = arguments.index("TRACES") if "TRACES" in arguments else len(arguments)
    arguments = [*arguments[:at], *words, *arguments[at + 1 :], *more]
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    err.reconfigure = lambda **_: None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    out.flush()
    text = out.buffer.getvalue().decode()
    return status, json.loads(text) if text else None, err.getvalue()


def without(told, *places):
    """What a tool says, without these names of files."""
    text = json.dumps(told)
    for place in sorted(map(str, places), key=len, reverse=True):
        text = text.replace(place, "…")
    return text


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("tool", TOOLS)
def test_every_form_of_a_trace(traces, tool):
    told = {}
    for form in FORMS:
        status, told[form], said = asked(tool, traces / form)
        assert status in ((0, 1) if form == "cut.json" else (0,)), (form, said)
        assert told[form] or (tool, form) == ("summary.py", "unitrace.json"), form  # has no kernels
    if tool != "xstrace-query":
        for one, other in (
            ("packed.json.gz", "plain.json"),
            ("packed.json.zst", "plain.json"),
            ("perfetto.pftrace.gz", "perfetto.pftrace"),
        ):
            assert without(told[one], traces / one) == without(told[other], traces / other)
        assert without(told["plain.json"], traces / "plain.json") != without(told["perfetto.pftrace"], traces / "perfetto.pftrace")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_directory_and_a_pattern_mean_the_same(traces, tmp_path, tool):
    if tool == "xstrace-diff":  # the second place stays
        TOOLS[tool][1][-1] = str(traces)
    for form in ("packed.json.gz", "perfetto.pftrace", "kineto.json"):
        shutil.copy(traces / form, tmp_path)
    directory, pattern = asked(tool, tmp_path)[:2], asked(tool, tmp_path / "*.*")[:2]
    assert (
        directory[1]
        and without(directory[1], tmp_path) == without(pattern[1], tmp_path / "*.*", tmp_path)
        and directory[0] == pattern[0] == 0
    )
    paths = [row.get("path") for row in directory[1]] if type(directory[1]) is list else []
    assert paths in ([], sorted(str(path) for path in tmp_path.iterdir() if path.is_file()))
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "none.json", str(tmp_path / "none*.json")):
        status, told, said = asked(tool, nothing)
        assert status in (1, 2) and (not told or "error" in told[0]) and said.count("\n") == 1, said


@pytest.mark.parametrize("tool", [*TOOLS, "categorize.py", "uniview.py", "mergetrace.py", "xstrace-open"])
def test_help_has_an_example(tool):
    done = subprocess.run([sys.executable, SCRIPTS / tool, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "example" in done.stdout.lower() and tool in done.stdout.lower().partition("example")[2]
    if tool in TOOLS:
        assert "--memory-limit" in done.stdout and "--json" in done.stdout and "--scheduler" in done.stdout


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("tool", TOOLS)
def test_memory_has_a_bound(traces, tmp_path, tool):
    """A trace that needs more than is allowed: an answer, or one line that says what to do. The process itself has little more."""
    many = tmp_path / "many.json"
    line = '{"ph":"X","cat":"cpu_op","name":"a::b%d","pid":1,"tid":1,"ts":%d,"dur":0.5,"args":{"text":"%s"}},\n'
    with open(many, "w") as file:
        file.write('{"traceEvents":[\n' + "".join(line % (n, n, "x" * 20) for n in range(120_000)).rstrip(",\n") + "]}\n")
    _, arguments = TOOLS[tool]
    at = arguments.index("TRACES") if "TRACES" in arguments else len(arguments)
    command = [sys.executable, SCRIPTS / tool, *arguments[:at], many, *arguments[at + 1 :], "--memory-limit", "64M"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}, preexec_fn=limited(9, 1 << 31)
    )
    assert done.returncode == 0 or (done.returncode in (1, 2) and done.stderr.count("\n") == 1 and "--memory-limit" in done.stderr), (
        done.stderr
    )
    assert "Traceback" not in done.stderr


def test_the_bound_holds():
    with pytest.raises(MemoryError), many.memory_bound(64 << 20):
        bytearray(256 << 20)
    assert len(bytearray(256 << 20)) == 256 << 20


def test_bars_where_somebody_looks(traces, monkeypatch):
    """Of many traces, and of the bytes of a long one; none into a file."""
    pytest.importorskip("tqdm")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def reconfigure(self, **_):
            pass

    shown = Terminal()
    monkeypatch.setattr(source, "WORTH_A_BAR", 1)
    monkeypatch.setattr(source, "is_shown", True)
    monkeypatch.setattr(sys, "stderr", shown)
    assert summary.main([str(traces / "plain.json")]) == 0
    assert "plain.json: " in shown.getvalue()
    shown.truncate(0)
    assert summary.main(["--json", *(str(traces / form) for form in FORMS)]) == 0
    assert "/8 [" in shown.getvalue() and "traces/s" in shown.getvalue()


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("tool", TOOLS)
def test_one_process_says_what_several_say(traces, tmp_path, monkeypatch, tool):
    """Also where there is one processor: all of the traces, and the same of each."""
    for number in range(5):
        shutil.copy(traces / "plain.json", tmp_path / f"{number}.json")
    told = []
    for count in (1, 2):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        told.append(asked(tool, tmp_path))
    assert told[0] == told[1] and told[0][0] == 0 and told[0][2] == ""
    if tool not in ("xstrace-path", "xstrace-diff", "summary.py"):  # these tell of names and runs, not of files
        assert all(f"{number}.json" in json.dumps(told[0][1]) for number in range(5))


@pytest.fixture(scope="module")
def on_a_cluster(tmp_path_factory):
    """(address of two workers, a directory with 1,024 ranks, one with 12 of them)"""
    need("distributed, duckdb, numpy")
    place = tmp_path_factory.mktemp("cluster")
    all_of_them, some = place / "traces", place / "some"
    all_of_them.mkdir()
    some.mkdir()
    text = gzip.decompress((SAMPLES / "gemm.json.gz").read_bytes()).decode()
    for rank in range(1024):
        for directory in (all_of_them, some)[: 1 + (rank < 12)]:
            (directory / f"gemm.{rank}.json").write_text(text.replace('"gemm::init"', f'"gemm::init{rank % 7}"'))
    with cluster(place, 2) as address:
        yield address, all_of_them, some


@needs_clients
@pytest.mark.parametrize("tool", TOOLS)
def test_a_cluster_says_what_this_machine_says(on_a_cluster, tool):
    """The same bytes: of 1,024 ranks, of 12 where tables are made."""
    address, all_of_them, some = on_a_cluster
    signal.alarm(570)
    place = all_of_them if tool in ("xstrace-check", "xstrace-summary", "summary.py") else some
    arguments = list(TOOLS[tool][1])
    if tool == "xstrace-diff":  # two places, each of several traces
        arguments[-1] = str(some / "gemm.?.json")
    at = arguments.index("TRACES") if "TRACES" in arguments else len(arguments)
    words = [CLIENTS, SCRIPTS / tool, *arguments[:at], place, *arguments[at + 1 :]]
    here, there = (
        subprocess.run([*words, *more], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        for more in ([], ["--scheduler", address])
    )
    assert here.returncode == there.returncode == 0, (here.stderr, there.stderr)
    assert here.stdout == there.stdout and len(here.stdout) > 200
