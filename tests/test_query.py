"""xstrace-tables, xstrace.open() and xstrace-query: what they say of a trace is what Python's json finds in it."""

import collections
import contextlib
import gzip
import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time

import pytest
from conftest import BUILD, ROOT, wait_until
from counting import Truth, arguments, flows, rows
from gpu_log import DRIVER, SoftGPU, matrix_args
from merging import merge
from others import CLIENTS, need, needs_clients
from ranks import MPIEXEC, Job, Ranks, mpi_app  # noqa: F401
from test_ranks import cluster

import xstrace as package
from xstrace import convert, library
from xstrace.convert import NoTables
from xstrace.kinds import is_call

pytest.importorskip("duckdb")
TABLES = BUILD / "tables/xstrace-tables"
QUERY = ROOT / "scripts/xstrace-query"
ALL = "--chrome-kernel-logging --chrome-call-logging --chrome-itt-logging"
BASE = 1764028800 * 10**9


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


def convert_to(path, directory, *options, status=0):
    """Runs xstrace-tables; the CompletedProcess."""
    done = subprocess.run([TABLES, path, "-o", directory, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    return done


def query(*args, status=0, **more):
    """Runs xstrace-query; the CompletedProcess."""
    done = subprocess.run(
        [sys.executable, QUERY, *map(str, args)], capture_output=True, timeout=60, **{"stdin": subprocess.DEVNULL, **more}
    )
    assert done.returncode == status, done.stderr
    assert b"Traceback" not in done.stderr
    return done


def said(done):
    """The one line on stderr."""
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_calls_and_tasks_by_their_names(tmp_path):
    """The tables (tables/kinds.c) and xstrace-summary (kinds.py) take the same names for calls."""
    apis = "cl ze zes zet zex cu cuda hip ur nccl nvml MPI_ PMPI_ MPIX_ MPI:: mpi xs".split()
    names = [*apis, *(api + more for api in apis for more in ("Send", "send", "::Send", "_Send", "1")), "range", "d::clFinish", "aten::mm"]
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5} for n, name in enumerate(names)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    with package.open(path) as tables:
        found = dict(tables.sql("select name, kind from slices").fetchall())
    assert found == {name: "call" if is_call(name) else "task" for name in names}
    assert sum(kind == "call" for kind in found.values()) > 20
    (summary,) = json.loads(subprocess.run([sys.executable, ROOT / "scripts/xstrace-summary", "--json", path], capture_output=True).stdout)
    for kind in ("call", "task"):
        assert {one["name"] for one in summary[f"{kind}s"]} == {name for name in names if found[name] == kind}



def write(path, events, **members):
    """A trace of these events."""
    path.write_text(json.dumps({**members, "traceEvents": events}))
    return path


def slice_of(ts, dur, name, tid=1, pid=7, **more):
    return {"ph": "X", "ts": ts, "dur": dur, "name": name, "tid": tid, "pid": pid, **more}


def check_all(path, text=None):
    """Slices, arguments and flows are those that json finds; the totals by kind are all of them."""
    truth = Truth(text or path.read_text())
    with package.open(path) as tables:
        assert rows(tables) == truth.rows()
        assert arguments(tables) == truth.arguments()
        assert flows(tables) == truth.flows()
        assert tables.sql("select count(*), min(slice_id), max(slice_id) from slices").fetchall() == [
            (len(truth.slices), 0, len(truth.slices) - 1)
        ]
        assert tables.sql("select complete from traces").fetchall() == [(True,)]
        assert not tables.said
    return truth


# ---- real traces ----


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("form", ["", "--format kineto"])
def test_opencl(xstrace, form):
    run = xstrace(f"{ALL} {form}", "gemm")
    path = run.trace_files[0]
    check_all(path)
    with package.open(path) as tables:
        kinds = dict(tables.sql("select kind, count(*) from slices group by 1").fetchall())
        launches = tables.sql(
            "select count(*), min(ts - call_ts) > 0, bool_and(call like 'cl%' or call like '%::%') from launches"
        ).fetchall()
    trace = run.trace
    assert kinds["kernel"] == 10 and kinds["copy"] >= 25
    assert sum(kinds.get(kind, 0) for kind in ("kernel", "copy", "device")) == len(trace.device) or form
    assert launches == [(40, True, True)]


@pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")
def test_software_gpu(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path)
    run = xstrace(ALL, "ze_matrix", matrix_args("regular", [], "timed", "queue"), env=gpu.env)
    assert run.status == 0
    check_all(run.trace_files[0])
    with package.open(run.trace_files[0]) as tables:
        kernels = tables.sql("select count(*) from kernels").fetchall()[0][0]
        copies = tables.sql("select count(*), sum(bytes) from copies").fetchall()[0]
    assert kernels == len(gpu.kernels) > 0
    assert copies[0] == len(gpu.copies) and copies[1] > 0


@pytest.mark.long
@pytest.mark.skipif(not MPIEXEC, reason="no MPICH")
def test_ranks_and_what_is_merged_of_them(xstrace, mpi_app, tmp_path):  # noqa: F811
    """Each rank by itself, all of them as one database, and the merged trace, in JSON as in Perfetto's format."""
    job = Ranks(xstrace, "--chrome-mpi-logging", mpi_app("mpi_lanes"), [200], ranks=3)
    paths = [trace.path for trace in job.run.traces]
    truths = [check_all(path) for path in paths]
    with package.open(paths) as tables:
        assert rows(tables) == sorted(row for truth in truths for row in truth.rows())
        assert tables.sql("select count(distinct slice_id), max(slice_id) + 1 from slices").fetchall() == [
            (sum(len(t.slices) for t in truths),) * 2
        ]
        assert tables.sql("select trace_id, mpi.rank from mpi join traces using (trace_id) where mpi.rank <> traces.rank").fetchall() == []
        of_ranks = tables.sql(library.find("waits-by-rank").sql).fetchall()
    assert [row[0] for row in of_ranks] == [0, 1, 2]
    for row in of_ranks:
        calls = [one for one in truths[row[0]].slices if one["name"].startswith("MPI_") and one["cat"] == "cpu_op"]
        mine = [truth for truth, path in zip(truths, paths) if f".{row[0]}.json" in path.name][0]
        calls = [one for one in mine.slices if one["name"].startswith("MPI_") and one["cat"] == "cpu_op"]
        assert row[3:5] == (len(calls), sum(one["self"] for one in calls))
    merge("-o", "all.json", *paths, cwd=tmp_path)
    merge("-o", "all.pftrace", *paths, cwd=tmp_path)
    check_all(tmp_path / "all.json")
    check_same(tmp_path / "all.json", tmp_path / "all.pftrace")


def check_same(one, other):
    """Two files say the same."""
    with package.open(one) as tables, package.open(other) as others:
        # the formats count devices from different numbers on
        assert sorted(row[1:] for row in rows(tables)) == sorted(row[1:] for row in rows(others))
        assert arguments(tables) == arguments(others)
        assert flows(tables) == flows(others)
        for table in ("counters", "marks"):
            order = "select * exclude (track_id, process_id) from %s order by all" % table
            assert tables.sql(order).fetchall() == others.sql(order).fetchall()
        kinds = "select kind, unfinished, bytes, queued, submitted, count(*) from slices group by all order by all"
        assert tables.sql(kinds).fetchall() == others.sql(kinds).fetchall()


def test_perfettos_format_is_the_same_as_json(xstrace, tmp_path):
    """A real run, with device work and arrows, tasks, metadata and counters, by the merger into both formats; and xstrace's own writer."""
    run = xstrace(ALL, "gemm")
    merge("-o", "all.json", run.trace_files[0], cwd=tmp_path)
    merge("-o", "all.pftrace", run.trace_files[0], cwd=tmp_path)
    check_same(tmp_path / "all.json", tmp_path / "all.pftrace")
    own = xstrace(f"{ALL} --format perfetto", "gemm").trace_files[0]
    trace = package.open_trace(own)
    events = [event for event in trace if event["ph"] == "X"]
    with package.open(own) as tables:
        found = sorted(tables.sql("select ts, dur, name, cat from slices").fetchall())
        assert found == sorted((trace.base_ns + e["ts"], e["dur"], e["name"], e["cat"]) for e in events)
        assert tables.sql("select tool, host, pid, ended, complete from traces").fetchall() == [
            ("xstrace", trace.metadata["host"], trace.metadata["pid"], "exited", True)
        ]
        assert len(tables.sql("select * from launches").fetchall()) == 40
    cut = tmp_path / "cut.pftrace"
    cut.write_bytes(own.read_bytes()[:-100])
    with package.open(cut) as tables:
        assert tables.missing == [str(cut)] or tables.missing == [cut] and len(tables.said) == 1
        assert len(tables.slices.fetchall()) > 0.9 * len(events)


# ---- all that JSON can say ----

MARKED = {"ph": "i", "ts": 5.5, "name": "mark", "tid": 1, "pid": 7, "s": "t", "args": {"a": 1}}
COUNTED = {"ph": "C", "ts": 6, "name": "load", "pid": 7, "args": {"value": 2.5, "other": "7", "none": "x"}}


def test_phases(tmp_path):
    """Begins and ends, asynchronous ones, counters, marks, names, text pids and tids, what never ends, what cannot be used."""
    path = write(
        tmp_path / "a.json",
        [
            {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "RANK 3 HOST<node> app"}},
            {"ph": "M", "name": "process_name", "pid": 8, "args": {"name": "RANK 3 DEVICE<node>[GPU 1] 0:3a:0:0 #0"}},
            {"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "main"}},
            {"ph": "B", "ts": 1, "name": "outer", "tid": 1, "pid": 7, "args": {"x": True}},
            {"ph": "B", "ts": 2, "name": "inner", "tid": 1, "pid": 7},
            MARKED,
            COUNTED,
            {"ph": "E", "ts": 4, "tid": 1, "pid": 7, "args": {"y": [1, {"z": None}]}},
            {"ph": "E", "ts": 9, "tid": 1, "pid": 7},
            {"ph": "E", "ts": 9, "tid": 1, "pid": 7},
            {"ph": "B", "ts": 10, "name": "open", "tid": 1, "pid": 7},
            {"ph": "b", "ts": 3, "name": "request", "cat": "net", "id": "0x1", "pid": 7, "tid": 1},
            {"ph": "b", "ts": 3, "name": "request", "cat": "net", "id": "0x2", "pid": 7, "tid": 1},
            {"ph": "e", "ts": 7, "name": "request", "cat": "net", "id": "0x1", "pid": 7, "tid": 1},
            {"ph": "e", "ts": 8, "name": "request", "cat": "net", "id": "0x2", "pid": 7, "tid": 1},
            slice_of(20, 0, "at once", tid="text", pid="words"),
            slice_of(12, 5, "gemm[SIMD8 {1; 1; 1} {1; 1; 1}]", tid=2, pid=8, cat="gpu_op", args={"queued": 11, "submit": 11.5}),
            slice_of(18, 1, "clEnqueueReadBuffer[64]", tid=2, pid=8, cat="gpu_op"),
            {"ph": "X", "ts": "soon", "name": "bad", "pid": 7, "tid": 1},
            {"ph": "N", "ts": 1, "pid": 7, "id": 1},
        ],
        baseTimeNanoseconds=BASE,
        metadata={"tool": "other", "host": "meta", "n": [1, 2]},
        otherData={"end": "killed", "status": 9},
    )
    with package.open(path) as tables:
        found = tables.sql(
            "select name, (ts - $1)::int, dur::int, self::int, depth::int, kind, unfinished from slices order by ts, dur desc", [BASE]
        ).fetchall()
        assert found == [
            ("outer", 1000, 8000, 6000, 0, "task", False),
            ("inner", 2000, 2000, 2000, 1, "task", False),
            ("request", 3000, 5000, 5000, 0, "other", False),
            ("request", 3000, 4000, 4000, 0, "other", False),
            ("open", 10000, 10000, 10000, 0, "task", True),
            ("gemm[SIMD8 {1; 1; 1} {1; 1; 1}]", 12000, 5000, 5000, 0, "kernel", False),
            ("clEnqueueReadBuffer[64]", 18000, 1000, 1000, 0, "copy", False),
            ("at once", 20000, 0, 0, 0, "task", False),
        ]
        assert tables.sql("select (queued - $1)::int, (submitted - $1)::int from kernels", [BASE]).fetchall() == [(11000, 11500)]
        assert tables.sql("select bytes from copies").fetchall() == [(64,)]
        assert sorted(tables.sql("select key, value, number from args").fetchall(), key=str) == [
            ("queued", "11", 11.0), ("submit", "11.5", 11.5), ("x", "true", None), ("y", '[1, {"z": null}]', None)
        ]  # fmt: skip
        assert tables.sql("select name, ts - $1, args from marks", [BASE]).fetchall() == [("mark", 5500, '{"a": 1}')]
        assert sorted(tables.sql("select name, key, value from counters").fetchall()) == [("load", "other", 7.0), ("load", "value", 2.5)]
        assert tables.sql("select pid, name, rank, host, is_device from processes order by process_id").fetchall() == [
            (7, "RANK 3 HOST<node> app", 3, "node", False),
            (8, "RANK 3 DEVICE<node>[GPU 1] 0:3a:0:0 #0", 3, "node", True),
            (None, "words", None, "meta", False),
        ]
        assert tables.sql("select name, pci from devices").fetchall() == [("GPU 1", "0:3a:0:0")]
        assert ("metadata.n", "[1, 2]") in tables.sql("select key, value from metadata").fetchall()
        assert tables.sql("select tool, ended, status, complete, left_out from traces").fetchall() == [("other", "killed", 9, True, 2)]
        assert tables.missing and "2 events without a usable" in tables.said[0]


def test_overlapping_slices(tmp_path):
    """What lies partly in another is not in it; children that overlap count once. Against every slice compared with every other."""
    rnd = random.Random(5)
    events = [slice_of(rnd.randrange(300), rnd.randrange(1, 60), f"s{n}", tid=rnd.randrange(3)) for n in range(400)]
    path = write(tmp_path / "a.json", events)
    with package.open(path) as tables:
        found = {
            row[0]: row[1:]
            for row in tables.sql("select s.name, s.self, u.name from slices s left join slices u on u.slice_id = s.parent_id").fetchall()
        }
    for tid in range(3):
        track = sorted((e["ts"], -e["dur"], n, e["name"]) for n, e in enumerate(events) if e["tid"] == tid)
        parents = {}
        for i, (ts, minus, _, name) in enumerate(track):
            holds = [k for k in range(i) if ts < track[k][0] - track[k][1] >= ts - minus]
            parents[name] = track[holds[-1]][3] if holds else None
        for ts, minus, _, name in track:
            inside = set()
            for begin, less, _, child in track:
                if parents[child] == name:
                    inside.update(range(begin, begin - less))
            assert found[name] == ((-minus - len(inside)) * 1000, parents[name])


def test_flows(tmp_path):
    """Steps, one beginning with several ends, ids used again, ends without beginnings, clocks that differ, the next slice."""

    def point(ph, ts, id, tid=1, name="f", **more):
        return {"ph": ph, "ts": ts, "id": id, "tid": tid, "pid": 7, "name": name, "cat": "c", **more}

    enclosing = {"bp": "e"}
    events = [slice_of(n * 10, 8, f"s{n}") for n in range(12)] + [
        *(point("s", 1, 1), point("t", 11, 1), point("f", 21, 1, **enclosing)),
        *(point("s", 2, 2), point("f", 22, 2, **enclosing), point("f", 32, 2, **enclosing)),
        *(point("s", 3, 3), point("f", 13, 3, **enclosing), point("s", 23, 3), point("f", 33, 3, **enclosing)),
        *(point("f", 44, "lost", **enclosing), point("s", 45, "lonely")),
        *(point("s", 55, 5), point("f", 51, 5, **enclosing)),
        *(point("s", 60, 6), point("f", 69, 6)),  # behind s6, in front of s7
        *(point("s", 200, 7), point("f", 210, 7, **enclosing)),  # in no slice
    ]
    with package.open(write(tmp_path / "a.json", events)) as tables:
        found = tables.sql(
            "select a.name, b.name, from_ts // 1000, to_ts // 1000 from flows left join slices a on a.slice_id = from_slice left join slices b on b.slice_id = to_slice"
        ).fetchall()
    assert sorted(found, key=str) == sorted(
        [
            *(
                ("s0", "s1", 1, 11),
                ("s1", "s2", 11, 21),
                ("s0", "s2", 2, 22),
                ("s0", "s3", 2, 32),
                ("s0", "s1", 3, 13),
                ("s2", "s3", 23, 33),
            ),
            *((None, "s4", None, 44), ("s4", None, 45, None), ("s5", "s5", 55, 51), ("s6", "s7", 60, 69), (None, None, 200, 210)),
        ],
        key=str,
    )


HOSTILE = [
    "\x1b[31mred\x1b]0;title\x07",
    "line\nline\rline\ttab",
    "'; drop table slices; --",
    '"quotes" and \\ and \\u0041',
    "<script>alert(1)</script>",
    "\u202eright to left",
    "nul\0inside",
    "emoji 🎉 and ﬁ",
    "",
    "=cmd|' /C calc'!A0",
    "m" * 1_000_000,
    "μ" * 40_000,
]


def test_hostile_names(tmp_path):
    """They arrive as they are, in names, categories, arguments, processes; a terminal gets none of their tricks."""
    events = []
    for n, name in enumerate(HOSTILE):
        events.append(slice_of(n * 10, 5, name, tid=n, cat=name, args={name: name}))
        events.append({"ph": "M", "name": "thread_name", "pid": 7, "tid": n, "args": {"name": name[:1000]}})
    path = write(tmp_path / 'it\'s [1]*? a; "trace".json', events)
    with package.open(path) as tables:
        found = tables.sql(
            "select s.name, s.cat, a.key, a.value, t.name from slices s join args a using (slice_id) join threads t using (track_id) order by ts"
        ).fetchall()
        assert found == [(name, name, name, name, name[:1000]) for name in HOSTILE]
    shown = query(path, 'select name, name as "\x1b[1m\n" from slices order by ts').stdout.decode()
    assert len(shown.splitlines()) == len(HOSTILE) + 2
    assert all(character.isprintable() or character == "\n" for character in shown)
    parsed = json.loads(query("--json", path, "select name from slices order by ts").stdout)
    assert [row["name"] for row in parsed] == HOSTILE
    error = said(query(path, 'select \x1b[31m\n from "no\x1b[1m"', status=2))
    assert error.isprintable() and error.startswith("xstrace-query: ")


def test_raw_bytes(tmp_path):
    """Control characters and what is no UTF-8, unescaped in the file."""
    text = b'[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"a\x01\xff\xfeb"},\n{"ph":"X","ts":3,"dur":NaN,"pid":1,"tid":1,"name":"c"}]'
    (tmp_path / "a.json").write_bytes(text)
    with package.open(tmp_path / "a.json") as tables:
        assert [row[0] for row in tables.sql("select name from slices").fetchall()] == ["a\x01\ufffd\ufffdb"]


def test_a_thread_is_busy_once_where_slices_overlap(tmp_path):
    events = [slice_of(ts, dur, name) for ts, dur, name in ((0, 10, "A"), (5, 10, "B"), (6, 2, "C"))]
    path = write(tmp_path / "t.json", events)
    (row,) = json.loads(query("--no-cache", "--json", path, "threads-busy").stdout)
    assert row["busy_ns"] == 15000 == row["last_ts"] - row["first_ts"]


def test_what_is_missing_is_said_each_time(tmp_path):
    """Also of tables that are there already, and with processes."""
    events = [slice_of(0, 10, "A"), slice_of(20, 10, "B")]
    write(tmp_path / "whole.json", events)
    cut = write(tmp_path / "cut.json", events)
    cut.write_bytes(cut.read_bytes()[:-40])
    for _ in range(2):
        assert "cut.json" in said(query("--processes", 2, tmp_path, "select 1", status=1))


def test_what_is_missing_is_said_of_kept_tables_too(tmp_path):
    """In the same words, by whatever name the trace is called; tables that an earlier version has kept say it in words of their own."""
    text = write(tmp_path / "two.json", [slice_of(0, 10, "A")]).read_text()
    (tmp_path / "two.json").write_text(text + "\n" + text)
    (tmp_path / "none.json").write_text("")
    first = query("two.json", "select 1", status=1, cwd=tmp_path).stderr.decode()
    assert first.startswith("xstrace-query: two.json: line ") and first.endswith(": text behind the end of the trace; left out\n")
    assert query("./two.json", "select 1", status=1, cwd=tmp_path).stderr.decode() == first.replace(" two", " ./two")
    for more in ([], ["--processes", 2]):
        lines = query(*more, ".", "select 1", status=1, cwd=tmp_path).stderr.decode().splitlines()
        assert sorted(lines) == ["xstrace-query: ./none.json: empty; left out", first.replace(" two", " ./two").rstrip()]
    for file in tmp_path.glob("two.json.tables/*/said"):
        file.unlink()
    assert said(query("two.json", "select 1", status=1, cwd=tmp_path)) == "xstrace-query: two.json: not all of it could be read"


def test_cut_files(tmp_path):
    """Wherever a file ends, its tables hold the slices that are whole, and it is said; compressed ones, too."""
    job = Job(["a"])
    for _ in range(30):
        job.compute(0, 10**6)
        job.everyone()
    job.write(tmp_path)
    path = next(tmp_path.glob("*.json"))
    text = path.read_bytes()
    whole = len(Truth(text.decode()).slices)
    first = text.index(b"traceEvents") + 14
    lengths = []
    for n, at in enumerate([*range(first, len(text) - 3, max(1, len(text) // 24)), len(text) - 3]):
        cut = tmp_path / f"cut{n}.json"
        cut.write_bytes(text[:at])
        with package.open(cut, cache=False) if at > first + 200 else contextlib.nullcontext() as tables:
            if tables:
                lengths.append(len(tables.slices.fetchall()))
                assert tables.sql("select complete from traces").fetchall() == [(False,)]
                assert any("was cut" in line for line in tables.said)
    assert lengths == sorted(lengths) and lengths[-1] == whole > lengths[0] > 0
    packed = gzip.compress(text)
    (tmp_path / "cut.json.gz").write_bytes(packed[: len(packed) // 2])
    done = query(tmp_path / "cut.json.gz", "select count(*) n from slices", status=1)
    assert 0 < int(done.stdout.split()[-1]) < whole and "was cut" in said(done)


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "empty"),
        ("hello", "not a trace"),
        ('{"a": 1}', "no traceEvents"),
        ('{"traceEvents": []}', "no event in it can be used"),
        ('{"traceEvents": [{"ph": "X"}]}', "no event in it can be used"),
        ("\n\x05hello", "no event in it can be used"),
        ("[" * 100_000, "no event in it can be used"),
    ],
)
def test_no_trace(tmp_path, text, says):
    path = tmp_path / "no.json"
    path.write_text(text)
    error = query(path, "select 1", status=2).stderr.decode()
    assert says in error and len(error.splitlines()) <= 2 and str(path) in error
    with pytest.raises(NoTables, match=says):
        package.open(path)
    assert os.listdir(tmp_path) == ["no.json"]  # no place for tables that there are none of


# ---- memory ----


def big_trace(path, slices):
    """Slices on several tracks, out of order, with names, arguments and arrows, in xstrace's layout."""
    rnd = random.Random(1)
    with open(path, "w") as file:
        file.write('{"baseTimeNanoseconds":%d,"metadata":{"tool":"xstrace"},"traceEvents":[\n' % BASE)
        for n in range(slices):
            tid, at = n % 5, 1000 + n * 10 + rnd.randrange(2000)
            args = ',"args":{"n":%d}' % n if n % 3 == 0 else ""
            file.write(
                f'{{"ph":"X","tid":{tid},"pid":7,"ts":{at}.{n % 1000:03},"dur":{rnd.randrange(40)}.001,"cat":"cpu_op","name":"a::n{n % 97}"{args}}},\n'
            )
            if n % 4 == 0:
                for phase, moved in (("s", 1), ("f", 300)):
                    file.write(f'{{"ph":"{phase}","bp":"e","tid":{tid},"pid":7,"ts":{at + moved}.5,"id":{n},"cat":"flow","name":"dep"}},\n')
        file.write('{"ph":"M","name":"process_name","pid":7,"args":{"name":"HOST<h>"}}\n],"otherData":{"end":"exited","lost":0}}\n')
    return path


@pytest.mark.long
def test_little_memory_gives_the_same_tables(tmp_path):
    """Sorted in parts that lie in a file; the tables are the same to the last value."""
    big_trace(tmp_path / "big.json", 400_000)
    convert_to(tmp_path / "big.json", tmp_path / "much")
    convert_to(tmp_path / "big.json", tmp_path / "little", "--memory-limit", "32M", "--threads", "1")
    import duckdb

    for table in ("slices", "args", "flows"):
        much, little = (f"read_parquet('{tmp_path}/{place}/{table}.parquet')" for place in ("much", "little"))
        assert duckdb.sql(f"select count(*) from {much}").fetchall()[0][0] >= 100_000
        assert duckdb.sql(f"(from {much} except all from {little}) union all (from {little} except all from {much})").fetchall() == []
    assert not [path for path in (tmp_path / "little").iterdir() if path.suffix != ".parquet"]


@pytest.mark.long
def test_readers_agree(tmp_path):
    """Arrow, Polars and pandas read of the files what DuckDB does."""
    parquet, polars = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("polars")
    big_trace(tmp_path / "big.json", 130_000)  # more than one group of rows
    convert_to(tmp_path / "big.json", tmp_path / "t")
    import duckdb

    for path in sorted((tmp_path / "t").iterdir()):
        table = parquet.read_table(path)
        assert table.equals(polars.read_parquet(path).to_arrow().cast(table.schema))
        assert duckdb.sql(f"select * from read_parquet('{path}')").fetchall() == [tuple(row.values()) for row in table.to_pylist()]
    with package.open(tmp_path / "big.json") as tables:
        assert len(tables.slices.df()) == len(tables.slices.pl()) == 130_000


# ---- what is kept ----


def kept(path):
    return sorted(one for one in path.parent.glob(path.name + ".tables/*") if one.name != "lock")


def test_tables_are_kept_until_the_trace_changes(tmp_path, monkeypatch):
    path = write(tmp_path / "a.json", [slice_of(1, 1, "one")])
    with package.open(path):
        pass
    (first,) = kept(path)
    monkeypatch.setattr(convert, "_run", lambda *_: pytest.fail("converted again"))
    with package.open(path) as tables:
        assert tables.slices.fetchall()[0][4] == "one"
    monkeypatch.undo()
    with package.open(path) as old:
        write(path, [slice_of(1, 1, "two"), slice_of(3, 1, "three")])
        with package.open(path) as tables:
            assert len(tables.slices.fetchall()) == 2
        assert len(kept(path)) == 2  # those that somebody uses stay
        assert len(old.slices.fetchall()) == 1
    os.utime(path, ns=(1, 1))
    with package.open(path):
        (third,) = kept(path)
    assert third != first
    with package.open(path, cache=False) as tables:
        assert len(tables.slices.fetchall()) == 2 and kept(path) == [third]


@pytest.mark.parametrize("spoil", [lambda table: table.unlink(), lambda table: os.truncate(table, 10)], ids=["removed", "cut"])
def test_tables_of_which_one_is_not_whole_are_made_again(tmp_path, spoil):
    path = write(tmp_path / "a.json", [slice_of(1, 1, "one")])
    for _ in range(2):
        with package.open(path) as tables:
            assert tables.slices.fetchall()[0][4] == "one"
        (directory,) = kept(path)
        spoil(directory / "slices.parquet")


def test_no_bar_is_in_the_answer(tmp_path):
    """DuckDB would draw one on stdout for a query that takes two seconds."""
    with package.open(write(tmp_path / "a.json", [slice_of(1, 1, "one")])) as trace:
        assert trace.sql("select current_setting('enable_progress_bar')").fetchall() == [(False,)]


def test_nobody_elses_tables_are_believed(public):
    """Neither a directory of another user's, nor one that others can write, nor a link; and none is made where others rule."""
    if os.geteuid():
        pytest.skip("not root")
    path = write(public / "a.json", [slice_of(1, 1, "true")])
    false = write(public / "b.json", [slice_of(1, 1, "false")])
    public.chmod(0o755)
    key = convert._key(os.stat(path))
    place = public / "a.json.tables"
    for spoil in (
        lambda: os.chown(place, 12345, 12345),
        lambda: place.chmod(0o777),
        lambda: (place.rename(public / "elsewhere"), place.symlink_to("elsewhere")),
    ):
        place.mkdir()
        convert_to(false, place / key)
        (place / key / "status").write_text("0\n" + convert._sizes(place / key))
        spoil()
        with package.open(path) as tables:
            assert tables.slices.fetchall()[0][4] == "true"
        subprocess.run(["rm", "-rf", place, public / "elsewhere"], check=True)
    public.chmod(0o777)  # anybody can exchange what we make there
    with package.open(path) as tables:
        assert len(tables.slices.fetchall()) == 1
    assert not place.exists()


def test_many_at_once(tmp_path):
    """Processes that ask the same new trace: each is answered, and it was converted once."""
    path = big_trace(tmp_path / "a.json", 50_000)
    running = [subprocess.Popen([sys.executable, QUERY, path, "select count(*) n from slices"], stdout=subprocess.PIPE) for _ in range(6)]
    assert {process.communicate(timeout=60)[0].split()[-1] for process in running} == {b"50000"}
    assert len(kept(path)) == 1


def test_where_nothing_can_be_kept(tmp_path, public, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = write(public / "a.json", [slice_of(1, 1, "one")])
    with package.open(path) as tables:
        assert len(tables.slices.fetchall()) == 1
    assert not [name for name in os.listdir(tmp_path) if name.startswith("xstrace-")]
    assert os.listdir(public) == ["a.json"]


def test_killed_while_converting(tmp_path):
    """What is left is removed by the next one."""
    path = big_trace(tmp_path / "a.json", 200_000)
    process = subprocess.Popen([sys.executable, QUERY, path, "select 1"], start_new_session=True, stdout=subprocess.DEVNULL)
    wait_until(lambda: [one for one in kept(path) if one.name.startswith("new.") and list(one.iterdir())] or process.poll() is not None)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert query(path, "select count(*) n from slices").stdout.split()[-1] == b"200000"
    assert len(kept(path)) == 1


# ---- the command ----


@pytest.fixture
def small(tmp_path):
    events = [slice_of(n * 10, 5 + n, f"task {n % 2}", args={"n": n}) for n in range(4)]
    return write(tmp_path / "small.json", events)


def test_formats(small, tmp_path):
    asked = "select name, count(*) n, sum(dur) total, avg(dur) mean, null nothing, [1, 2] list from slices group by name order by name"
    assert query(small, asked).stdout.decode().splitlines() == [
        "name    n  total  mean  nothing  list",
        "------  -  -----  ----  -------  ------",
        "task 0  2  12000  6000           [1, 2]",
        "task 1  2  14000  7000           [1, 2]",
    ]
    wanted = [
        {"name": f"task {n}", "n": 2, "total": 12000 + 2000 * n, "mean": 6000.0 + 1000 * n, "nothing": None, "list": [1, 2]} for n in (0, 1)
    ]
    assert json.loads(query("--json", small, asked).stdout) == wanted
    assert query("--format", "csv", small, asked).stdout.decode().splitlines()[1] == 'task 0,2,12000,6000.0,,"[1, 2]"'
    arrow = pytest.importorskip("pyarrow")
    with arrow.ipc.open_stream(query("--format", "arrow", small, "select name, ts from slices order by ts").stdout) as stream:
        assert stream.read_all().to_pylist()[1] == {"name": "task 1", "ts": 10000}
    query("--format", "parquet", "-o", tmp_path / "o.parquet", small, "select name, ts from slices order by ts")
    from pyarrow import parquet

    assert parquet.read_table(tmp_path / "o.parquet").num_rows == 4
    assert json.loads(query("--json", small, "select 1 where false").stdout) == []


def test_query_from_file_and_stdin(small, tmp_path):
    (tmp_path / "q.sql").write_text("create temp table t as select * from slices; select count(*) n from t;")
    assert query("-f", tmp_path / "q.sql", small).stdout.split()[-1] == b"4"
    with open(tmp_path / "q.sql") as file:
        assert query(small, stdin=file).stdout.split()[-1] == b"4"


@pytest.mark.long(keep=7)
@pytest.mark.parametrize(
    "args, says",
    [
        (["no.json", "select 1"], "no.json: No such file or directory"),
        (["none*.json", "select 1"], "no file has such a name"),
        ([".", "--json", "--format", "csv"], "different things"),
        (["TRACE", "select nothing"], 'Binder Error: Referenced column "nothing"'),
        (["TRACE", "select from where"], "Parser Error"),
        (["TRACE", "top kernels"], "Parser Error"),
        (["TRACE", " "], "the query is empty"),
        (["TRACE", "select error('no\nsuch')"], "no"),
        (["--memory-limit", "1", "TRACE"], "--memory-limit"),
        (["--format", "xml", "TRACE"], "--format"),
        (["--show", "top-kernel"], "did you mean top-kernels?"),
        ([], "no traces given"),
        (["TRACE", "select 1", "--reduce", "select * from nothing"], "Catalog Error"),
        (["TRACE", "select 1", "--scheduler", "nowhere"], "--scheduler takes an address"),
        (["-f", "no.sql", "TRACE"], "no.sql: No such file"),
        (["-o", "/no/where", "TRACE", "select 1"], "cannot write"),
    ],
)
def test_bad_use(small, args, says):
    error = said(query(*[small if arg == "TRACE" else arg for arg in args], status=2, cwd=small.parent))
    assert says in error and error.isprintable()


def test_without_duckdb(small, tmp_path):
    (tmp_path / "duckdb.py").write_text("raise ImportError")
    error = said(query(small, "select 1", status=2, env={**os.environ, "PYTHONPATH": str(tmp_path)}))
    assert error == "xstrace-query: SQL needs DuckDB: pip install duckdb"


def test_output_that_nobody_reads_and_full_disks(small):
    process = subprocess.Popen(
        [sys.executable, QUERY, "--format", "csv", small, "select * from range(10000000)"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) == -signal.SIGPIPE and process.stderr.read() == b""
    process.stderr.close()
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, QUERY, small, "select * from slices"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2 and "cannot write: No space left" in said(done)


def test_a_directory_with_other_files(tmp_path, small):
    (tmp_path / "report.json").write_text('{"no": "trace"}')
    write(tmp_path / "deep.json", [slice_of(1, 1, "x")])
    assert query(tmp_path, "select count(*) n, count(distinct trace_id) from slices").stdout.split()[-2:] == [b"5", b"2"]
    os.unlink(small), os.unlink(tmp_path / "deep.json")
    assert "no traceEvents" in said(query(tmp_path, "select 1", status=2))


def test_every_query_of_the_library(xstrace, tmp_path):
    """Each is answered on a real trace and on one without anything; it has a line of documentation; docs/QUERY.md names it."""
    run = xstrace(ALL, "gemm")
    nothing = write(tmp_path / "nothing.json", [slice_of(1, 1, "one")])
    page = (ROOT / "docs/QUERY.md").read_text()
    with package.open(run.trace_files[0]) as tables, package.open(nothing) as empty:
        for one in library.queries():
            assert one.doc.endswith(".") and f"| `{one.name}` |" in page
            found = tables.sql(one.sql).fetchall()
            assert found or one.name in ("counters", "unfinished", "waits-by-rank", "outliers"), one.name
            empty.sql(one.sql).fetchall()
        truth = Truth(run.trace_files[0].read_text())
        kernels = collections.Counter()
        for s in truth.slices:
            if s["cat"] == "gpu_op" and "SIMD" in s["name"]:
                kernels[s["name"]] += s["dur"]
        assert [(row[0], row[2]) for row in tables.sql(library.find("top-kernels").sql).fetchall()] == kernels.most_common()
        check_busy(tables, truth)


def check_busy(tables, truth):
    """device-busy and the gaps between: by every interval laid over the others."""
    work = sorted((s["ts"], s["ts"] + s["dur"]) for s in truth.slices if s["cat"] == "gpu_op")
    busy, reached, gaps = 0, work[0][0], []
    for begin, end in work:
        if begin > reached:
            gaps.append(begin - reached)
        busy += max(0, end - max(begin, reached))
        reached = max(reached, end)
    assert tables.sql(library.find("device-busy").sql).fetchall()[0][2:5] == (len(work), sum(b - a for a, b in work), busy)
    assert [row[2] for row in tables.sql(library.find("device-gaps").sql).fetchall()] == sorted(gaps, reverse=True)[:100]


@pytest.mark.long
def test_many_traces_give_the_same_by_processes(xstrace, tmp_path):
    """Map and reduce, whatever does the map: the same bytes."""
    place = tmp_path / "traces"
    place.mkdir()
    for n in range(3):
        os.rename(xstrace(ALL, "gemm").trace_files[0], place / f"{n}.json")
    for name in ("top-kernels", "launch-latency", "copies-by-size", "device-gaps"):
        answers = {query("--json", *more, place, name).stdout for more in ([], ["--processes", "2"], ["--processes", "1"])}
        assert len(answers) == 1 and len(json.loads(answers.pop())) > 1
    mapped = ["select trace_id, sum(dur) d from slices group by 1", "--reduce", "select count(*) n, sum(d)::bigint d from mapped"]
    answers = {query("--json", *more, place, *mapped).stdout for more in ([], ["--processes", "3"])}
    total = sum(s["dur"] for n in range(3) for s in Truth((place / f"{n}.json").read_text()).slices)
    assert [json.loads(answer) for answer in answers] == [[{"n": 3, "d": total}]]


@needs_clients
def test_on_a_cluster_as_here(xstrace, tmp_path):
    need("distributed, duckdb")
    place = tmp_path / "traces"
    place.mkdir()
    for n in range(3):
        os.rename(xstrace(ALL, "gemm").trace_files[0], place / f"{n}.json")
    with cluster(tmp_path, 2) as address:
        for name in ("top-kernels", "device-gaps"):
            asked = [[CLIENTS, QUERY, "--json", *more, place, name] for more in ([], ["--scheduler", address])]
            answers = {subprocess.run(command, capture_output=True, check=True, timeout=120).stdout for command in asked}
            assert len(answers) == 1 and len(json.loads(answers.pop())) > 1


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_names_move_no_cursor(tmp_path, form):
    """On a terminal; a file gets them as they are."""
    name = "a\x1b[2J\x9b2J\r\u202e\U000e0041é\n=1"
    (tmp_path / "in.json").write_text(json.dumps([{"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 2}]))
    words = [sys.executable, QUERY, "--no-cache", "--format", form, tmp_path / "in.json", "select name from slices"]
    master, slave = pty.openpty()
    subprocess.run(words, stdin=slave, stdout=slave, check=True, timeout=60)
    os.close(slave)
    seen = os.read(master, 65536).replace(b"\r\n", b"\n").decode()
    os.close(master)
    assert all(one.isprintable() or one == "\n" for one in seen) and "é" in seen
    if form == "json":
        assert json.loads(seen) == [{"name": name}]
    if form == "csv":
        assert subprocess.run(words, capture_output=True, check=True, timeout=60).stdout.decode() == f'name\n"{name}"\n'


def test_the_prompt(small, tmp_path):
    """A terminal: SQL over lines, commands, a query's name, errors, Ctrl-C, history that the next session has."""
    for session in (1, 2):
        master, slave = pty.openpty()
        env = {**os.environ, "TERM": "dumb", "HOME": str(tmp_path)}
        process = subprocess.Popen([sys.executable, QUERY, small], stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)
        seen = b""

        def expect(text):
            nonlocal seen
            deadline = time.monotonic() + 60
            while text not in seen:
                assert select.select([master], [], [], max(0, deadline - time.monotonic()))[0], (text, seen)
                seen += os.read(master, 65536)
            seen = seen.partition(text)[2]

        expect(b"xstrace> ")
        if session == 1:
            for typed, answer in (
                (b"select count(*) as many\n", b"many"),
                (b"from slices;\n", b"4"),
                (b".tables\n", b"slices"),
                (b".schema flows\n", b"flows(flow_id BIGINT"),
                (b".format json\n", b"json"),
                (b"threads-busy\n", b'"slices": 4'),
                (b"select nonsense;\n", b"Binder Error"),
                (b".nonsense\n", b"no command .nonsense"),
            ):
                os.write(master, typed)
                expect(answer)
                expect(b"> ")  # what is typed before that may be taken for a part of something else
            os.write(master, b"select 12")
            expect(b"select 12")
            deadline = time.monotonic() + 60
            while b"xstrace> " not in seen:  # Python misses one that comes just before it waits for a key
                assert time.monotonic() < deadline, seen
                os.kill(process.pid, signal.SIGINT)
                if select.select([master], [], [], 1)[0]:
                    seen += os.read(master, 65536)
            expect(b"xstrace> ")
        else:
            os.write(master, b"\x1b[A" * 2)  # the line before the last
            expect(b"nonsense")
            os.write(master, b"\x15")  # and away with it
            expect(b"\x08 ")
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # the program has gone
                os.write(master, b".quit\n")
                if select.select([master], [], [], 1)[0]:  # a terminal that nobody reads holds its program
                    seen += os.read(master, 65536)
        assert process.poll() == 0, seen
        os.close(master)
