"""mergetrace.py --check, --statistics, --parquet: here, and by the workers of a real Dask cluster."""

import collections
import contextlib
import json
import socket
import subprocess
import sys
import time

import pytest

from conftest import ROOT, wait_until
from merging import MERGE, talk
from others import CLIENTS, need, needs_clients
from ranks import BASE, Clock, Job

SCRIPT = ROOT / "scripts/mergetrace.py"


def mergetrace(*args, cwd, status=0, python=sys.executable):
    """Runs it; the CompletedProcess."""
    env = {"PATH": f"{MERGE.parent}:/usr/bin:/bin"}
    command = [python, SCRIPT, *map(str, args)]
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    assert result.returncode == status, result.stderr
    return result


@pytest.fixture
def job(tmp_path):
    """Traces of four ranks in tmp_path/traces."""
    job = talk(Job(["a", "a", "b", "b"], {"b": Clock(11 * 10**9, 100)}), 10)
    (tmp_path / "traces").mkdir()
    job.write(tmp_path / "traces")
    return job


def check_statistics(job, traces):
    assert [one["rank"] for one in traces] == list(range(job.size))
    for rank, one in enumerate(traces):
        assert (one["host"], one["pid"]) == (job.hosts[rank], job.pid(rank))
        assert one["events"] == len(job.calls[rank]) + 2
        wanted = collections.Counter(call[2] for call in job.calls[rank])
        assert {total["name"]: total["count"] for total in one["totals"]} == wanted
        shown = [job.clock(rank).shows(c[1]) - job.clock(rank).shows(c[0]) for c in job.calls[rank]]
        assert sum(total["total_ns"] for total in one["totals"]) == sum(shown)
        for total in one["totals"]:
            assert total["min_ns"] <= total["total_ns"] / total["count"] <= total["max_ns"]


def test_check_and_statistics(tmp_path, job):
    result = mergetrace("--check", "--statistics", "s.json", "traces", cwd=tmp_path)
    assert result.stderr == "" and not list(tmp_path.glob("*.all.json"))
    check_statistics(job, json.loads((tmp_path / "s.json").read_text())["traces"])
    before = (tmp_path / "s.json").read_bytes()
    result = mergetrace("--statistics", "s.json", "traces", cwd=tmp_path, status=125)
    assert len(result.stderr.splitlines()) == 1 and "s.json: is there already" in result.stderr
    assert (tmp_path / "s.json").read_bytes() == before


def test_what_is_wrong_is_named_and_the_rest_is_done(tmp_path, job):
    slices = [(0, 10, "early"), (5, 10, "late")]
    lines = ['{"ph":"X","pid":1,"tid":1,"ts":%d.000,"dur":%d.000,"name":"%s"}' % s for s in slices]
    (tmp_path / "traces/bad.json").write_text('{"traceEvents":[' + ",".join(lines) + "]}")
    (tmp_path / "traces/none.json").write_text("hello")
    result = mergetrace("--check", "--statistics", "-", "-o", "all.json", "traces", cwd=tmp_path, status=1)
    told = [line.split(": ")[1].rsplit("/", 1)[1] for line in result.stderr.splitlines()[:2]]
    assert told == ["bad.json", "none.json"] and "overlap" in result.stderr
    assert len(json.loads(result.stdout)["traces"]) == 5
    assert (tmp_path / "all.json").exists()


def test_a_cut_trace_is_noted(tmp_path, job):
    text = next((tmp_path / "traces").glob("*.json")).read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    result = mergetrace("--check", "cut.json", cwd=tmp_path)
    assert "cut.json: note: the file was cut" in result.stderr


@pytest.fixture
def listening():
    """The address of a port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield "tcp://127.0.0.1:%d" % server.getsockname()[1]


@pytest.mark.parametrize(
    "args, says",
    [
        ("", "give traces"),
        ("--check", "give traces"),
        ("--nonsense traces", "--nonsense"),
        ("--check missing", "missing: no traces"),
        ("--scheduler tcp://127.0.0.1:1 traces", "--scheduler needs --check"),
        ("--scheduler nonsense --check traces", "'nonsense'"),
        ("--scheduler tcp://127.0.0.1:1 --check traces", "no Dask scheduler at tcp://127.0.0.1:1: "),
        ("--scheduler LISTENING --check --statistics s.json traces", "pip install distributed"),
        ("--parquet tables traces", "pip install pyarrow"),
    ],
)
def test_bad_use(tmp_path, job, listening, args, says):
    modules = tmp_path / "modules"  # where they are installed, they look as if they were not
    modules.mkdir()
    for name in ("distributed", "pyarrow"):
        text = f"raise ModuleNotFoundError('no {name}', name='{name}')"
        (modules / f"{name}.py").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    command = [sys.executable, SCRIPT, *args.replace("LISTENING", listening).split()]
    env = {"PATH": f"{MERGE.parent}:/usr/bin:/bin", "PYTHONPATH": modules, "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.returncode == 125
    assert says in result.stderr and len(result.stderr.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


# ---- a cluster ----


@contextlib.contextmanager
def cluster(place, workers, running=None):
    """A scheduler and so many workers; gives the address. running: a list that gets their processes, the scheduler's first."""
    dask, described = CLIENTS.parent / "dask", place / "scheduler.json"
    command = [dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    options = {"cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    nanny = [] if running is None else ["--no-nanny"]  # which would start a worker again
    running = [] if running is None else running
    running.append(subprocess.Popen([*command, "--scheduler-file", described], **options))
    try:
        while not described.exists():
            assert running[0].poll() is None
            time.sleep(0.1)
        for n in range(workers):
            command = [dask, "worker", "--scheduler-file", described, "--no-dashboard", "--nthreads", "1", *nanny]
            running.append(subprocess.Popen([*command, "--local-directory", place / f"w{n}"], **options))
        address = json.loads(described.read_text())["address"]
        count = f"import sys, distributed; distributed.Client(sys.argv[1]).wait_for_workers({workers}, timeout=100)"
        if workers:
            subprocess.run([CLIENTS, "-c", count, address], check=True)
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait()


@needs_clients
@pytest.mark.parametrize("who", ["the scheduler", "all workers"])
def test_a_cluster_that_goes_away(tmp_path, job, who):
    """One line says who has gone; nobody waits for ever."""
    need("distributed")
    running = []
    large, one = tmp_path / "traces/large.json", '{"ph":"X","name":"c","cat":"cpu_op","pid":7,"tid":7,"ts":%d,"dur":5}'
    large.write_text('{"traceEvents":[\n' + ",\n".join(one % (i * 10) for i in range(1_000_000)) + "\n]}")
    with cluster(tmp_path, 1, running) as address:
        words = [CLIENTS, SCRIPT, "--scheduler", address, "--check", "traces"]
        with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            wait_until(lambda: subprocess.run(["fuser", "-s", large], check=False).returncode == 0, timeout=60)
            for process in running[:1] if who == "the scheduler" else running[1:]:
                process.kill()
            _, err = child.communicate(timeout=90)
    (line,) = [line for line in err.splitlines() if "Dask" in line]
    assert child.returncode == 125 and "gone" in line and "fault" not in err


ROWS = """import json, sys, pyarrow.parquet as parquet
print(json.dumps([parquet.read_table(path).to_pylist() for path in sys.argv[1:]]))"""


@needs_clients
@pytest.mark.parametrize("workers", [None, 2])
def test_on_a_cluster_as_here(tmp_path, job, workers):
    """Two workers, or none at all: the same results; Parquet's times are true."""
    need("distributed, pyarrow")
    outputs = ["--check", "--statistics", "s.json", "--parquet", "tables", "traces"]
    with cluster(tmp_path, workers) if workers else contextlib.nullcontext() as address:
        options = ["--scheduler", address] if address else []
        mergetrace(*options, *outputs, cwd=tmp_path, python=CLIENTS)
        result = mergetrace(*options, *outputs[3:], cwd=tmp_path, python=CLIENTS, status=1)
        assert result.stderr.count("is there already") == job.size
    check_statistics(job, json.loads((tmp_path / "s.json").read_text())["traces"])
    tables = sorted((tmp_path / "tables").iterdir())
    assert len(tables) == job.size
    read = subprocess.run([CLIENTS, "-c", ROWS, *tables], capture_output=True, check=True)
    for rank, rows in enumerate(json.loads(read.stdout)):
        assert [row["name"] for row in rows] == [call[2] for call in job.calls[rank]]
        assert {(row["host"], row["rank"], row["pid"]) for row in rows} == {
            (job.hosts[rank], rank, str(job.pid(rank)))
        }
        for row, call in zip(rows, job.calls[rank]):
            assert abs(row["ts_ns"] - BASE - call[0]) < 20_000
            assert abs(row["dur_ns"] - (call[1] - call[0])) < 2_000
            assert (row["args"] and json.loads(row["args"])) == call[3]


@needs_clients
def test_a_cluster_without_workers_is_said(tmp_path, job):
    need("distributed")
    with cluster(tmp_path, 0) as address:
        result = mergetrace("--scheduler", address, "--check", "traces", cwd=tmp_path, python=CLIENTS, status=125)
    assert "has no workers" in result.stderr and len(result.stderr.splitlines()) == 1
