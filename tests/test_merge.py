"""xstrace-merge: many traces become one; arrows, the report, bad input. Its clocks: test_merge_clocks.py."""

import collections
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import time

import pytest

import ranks
from conftest import ROOT, XSTRACE, Trace, check_trace, mounted, root_only
from merging import MERGE, arrows, merge, merged, talk
from ranks import BASE, MPI, MPIEXEC, START, Clock, Job, Ranks, mpi_app, needs_mpi  # noqa: F401

# ---- merging ----


def test_everything_is_there_once(tmp_path):
    job = talk(Job(["a", "a", "b"]), 3)
    paths = job.write(tmp_path)
    before = [path.read_bytes() for path in paths]
    trace = merged(paths, tmp_path)
    names = collections.Counter(s.name for s in trace.slices)
    assert names == collections.Counter(call[2] for calls in job.calls for call in calls)
    assert [path.read_bytes() for path in paths] == before
    assert trace.header["baseTimeNanoseconds"] == BASE
    assert trace.metadata["tool"] == "xstrace-merge" and trace.metadata["inputs"] == 3
    told = trace.other["inputs"]
    assert [(i["host"], i["rank"], i["pid"], i["end"]) for i in told] == [
        ("a", 0, 1000, "exited"),
        ("a", 1, 1001, "exited"),
        ("b", 2, 1002, "exited"),
    ]
    assert trace.names("process_name")[1002, 1002] == "RANK 2 HOST<b>"


def test_order_is_host_rank_process_device(tmp_path):
    job = Job(["b", "a", "a"])
    for rank in range(3):
        job.compute(rank, 1000)
    trace = merged(reversed(job.write(tmp_path)), tmp_path)
    places = {
        e["pid"]: e["args"]["sort_index"] for e in trace.events if e["name"] == "process_sort_index"
    }
    assert sorted(places, key=places.get) == [1001, 1002, 1000]


def test_the_output_does_not_depend_on_the_order_of_the_inputs(tmp_path):
    paths = talk(Job(["a", "b", "b"], {"b": Clock(10**6, 3)}), 10).write(tmp_path)
    merge("-o", "1.json", *paths, cwd=tmp_path)
    merge("-o", "2.json", *paths, cwd=tmp_path)
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    merge("-o", "3.json", *reversed(paths), cwd=tmp_path)
    first, third = ((tmp_path / name).read_text().splitlines() for name in ("1.json", "3.json"))
    assert collections.Counter(l for l in first if '"ph":"X"' in l) == collections.Counter(
        l for l in third if '"ph":"X"' in l
    )


def test_colliding_numbers_are_told_apart(tmp_path):
    """Two hosts with the same pids, tids and flow ids."""
    for host in "ab":
        events = [
            {
                "ph": "M",
                "name": "process_name",
                "pid": 5,
                "tid": 5,
                "args": {"name": f"HOST<{host}>"},
            },
            {
                "ph": "X",
                "pid": 5,
                "tid": 5,
                "ts": START,
                "dur": 100,
                "cat": "cpu_op",
                "name": f"{host}1",
            },
            {
                "ph": "X",
                "pid": 5,
                "tid": 6,
                "ts": START + 200,
                "dur": 100,
                "cat": "cpu_op",
                "name": f"{host}2",
            },
            {
                "ph": "s",
                "pid": 5,
                "tid": 5,
                "ts": START + 50,
                "id": 9,
                "cat": "flow",
                "name": "dep",
            },
            {
                "ph": "f",
                "bp": "e",
                "pid": 5,
                "tid": 6,
                "ts": START + 220,
                "id": 9,
                "cat": "flow",
                "name": "dep",
            },
        ]
        metadata = {"tool": "xstrace", "host": host, "pid": 5, "run": "r"}
        (tmp_path / f"{host}.json").write_text(ranks.text_of(events, metadata, {"lost": 3, "open_commands": 2}))
    trace = merged(["a.json", "b.json"], tmp_path)
    assert len({s.track[0] for s in trace.slices}) == 2
    assert trace.other["lost"] == 6
    assert [one["open_commands"] for one in trace.other["inputs"]] == [2, 2] and "open_requests" not in trace.other["inputs"][0]
    for start, end in arrows(trace):
        assert start["pid"] == end["pid"]
    assert len(arrows(trace)) == 2


OWN = [
    '{"ph":"X","tid":%s,"pid":%s,"ts":%s,"dur":%s,"cat":"cpu_op","name":"%s"%s}' % values
    for values in [
        (1, 1, "0.000", "0.001", "first", ""),
        (4294967295, 1, "1.500", "12345678.901", "largest tid", ""),
        (4294967296, 1, "2.500", "1.000", "no tid", ""),
        (7, 2, "86399999999.999", "99999999.999", "\\u00e9\\n\u00e9" * 20, ',"args":{"a":[1,{"b":"}"}]}'),
        (7, 2, "99999999.999", "100000000.000", "", ',"args":{"long":"' + "x" * 9000 + '"}'),
        (7, 2, "123456789012345.001", "1.000", "fifteen digits", ""),
        (7, 2, "1234567890123456.001", "1.000", "sixteen", ""),
        (7, 2, "3", "4", "no decimals", ""),
        (7, 2, "5.1", "6.1234", "others", ""),
    ]
]


def test_slices_in_another_order_of_members_are_the_same(tmp_path):
    """xstrace's own layout is read and written by a path of its own."""
    own = [json.loads(line, parse_float=str) for line in OWN]
    other = []
    for line in OWN:
        head, name = line[:-1].split(',"cat":"cpu_op",')
        other.append("{" + name + ',"cat":"cpu_op",' + head[1:] + "}")
    assert [json.loads(line, parse_float=str) for line in other] == own
    for name, lines in (("own", OWN), ("other", other)):
        (tmp_path / f"{name}.json").write_text('{"traceEvents":[\n' + ",\n".join(lines) + "\n]}\n")
        merge("-o", f"{name}.all.json", f"{name}.json", cwd=tmp_path)
    first, second = (json.loads((tmp_path / f"{n}.all.json").read_text()) for n in ("own", "other"))
    assert len(first["traceEvents"]) > len(OWN)
    assert first["traceEvents"] == second["traceEvents"]
    found = [e["name"] for e in first["traceEvents"] if e["ph"] == "X"]
    assert found == [e["name"] for e in own]


def test_directories_and_compressed_inputs(tmp_path):
    paths = talk(Job(["a", "b", "b", "b"]), 3).write(tmp_path)
    plain = merged(paths, tmp_path)
    deep = tmp_path / "in/deep"
    deep.mkdir(parents=True)
    paths[0].rename(deep / "0.json")
    (deep / "1.json.gz").write_bytes(gzip.compress(paths[1].read_bytes()))
    subprocess.run(["zstd", "-q", paths[2], "-o", tmp_path / "in/2.json.zst"], check=True)
    paths[3].rename(tmp_path / "in/3.json")
    (tmp_path / "in/notes.txt").write_text("no trace")
    again = merged([tmp_path / "in"], tmp_path, name="again.json.zst")
    assert sorted(map(repr, again.slices)) == sorted(map(repr, plain.slices))
    assert (tmp_path / "again.json.zst").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"


def test_merging_what_was_merged_changes_no_slice(tmp_path):
    paths = talk(Job(["a", "b"]), 4).write(tmp_path)
    once = merged(paths, tmp_path)
    twice = merged(["all.json"], tmp_path, name="twice.json")
    assert sorted(map(repr, once.slices)) == sorted(map(repr, twice.slices))


KINETO = """{
  "schemaVersion": 1,
  "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
  "baseTimeNanoseconds": %d,
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 77, "tid": 77,
    "ts": 3600000001.250, "dur": 10.5,
    "args": {
      "External id": 1,"Input Dims": [[2, 3], []], "x": NaN
    }
  },
  {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
    "ts": 3600000005.000, "dur": 3.001, "args": {"device": 0}
  },
  {
    "ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 1, "args": {"name": "python"}
  },
  {
    "ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 1, "args": {"name": "stream 7"}
  },
  {
    "ph": "X", "cat": "Trace", "ts": 3600000000.000, "dur": 20.0, "pid": "Spans", "tid": "PyTorch Profiler",
    "name": "PyTorch Profiler (0)", "args": {"Op count": 0}
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 3600000030.000
  }
  ],
  "traceName": "x.pt.trace.json"
}
"""


def test_kineto_and_unitrace_beside_ours(tmp_path):
    """Bases are brought together exactly, and pids that are texts or 0 become numbers."""
    (tmp_path / "kineto.json").write_text(KINETO % (BASE - 1000))
    epoch = (BASE + START) // 1000
    (tmp_path / "unitrace.json").write_text(
        '{ "traceEvents":[\n{"ph": "M", "name": "process_name", "pid": 77, "ts": %d.000000, "args": {"name": "RANK 3 HOST<b>"}},\n'
        '{"ph": "X", "tid": 77, "pid": 77, "name": "MPI::MPI_Init", "cat": "cpu_op", "ts": %d.250000, "dur": 67.383000, "id": 0}\n]\n}\n'
        % (epoch, epoch)
    )
    trace = merged(["kineto.json", "unitrace.json"], tmp_path)
    at = {s.name: (s.start, s.end) for s in trace.slices}
    assert at["aten::mm"] == (START + 250, START + 250 + 10_500)
    assert at["gemm"] == (START + 4000, START + 4000 + 3001)
    assert at["MPI::MPI_Init"] == (START + 250, START + 250 + 67_383)
    assert {type(e["pid"]) for e in trace.events} == {int}
    assert len({s.track[0] for s in trace.slices}) == 4
    assert "PyTorch Profiler" in trace.names("thread_name").values()
    assert [(i["tool"], i.get("rank")) for i in trace.other["inputs"]] == [
        ("Kineto", 1),
        ("unitrace", 3),
    ]
    args = next(s.args for s in trace.slices if s.name == "aten::mm")
    assert args["x"] is None and args["Input Dims"] == [[2, 3], []]


def test_traces_of_xstrace_itself(xstrace):
    run = xstrace("--chrome-itt-logging", "itt_tree", ["fork", "exec"])
    assert len(run.trace_files) == 3
    trace = merged(run.trace_files, xstrace.cwd)
    assert collections.Counter(s.name for s in trace.slices) == collections.Counter(
        s.name for t in run.traces for s in t.slices
    )


def test_device_work_keeps_its_own_times(tmp_path):
    """args.queued and args.submit move with ts; their track follows its process."""
    device = 2**31 + 7
    events = [
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 7, "args": {"name": "HOST<b>"}},
        {
            "ph": "M",
            "name": "process_name",
            "pid": device,
            "tid": device,
            "args": {"name": "DEVICE<b>[Fake]"},
        },
        {"ph": "M", "name": "thread_name", "pid": device, "tid": 1, "args": {"name": "queue"}},
        {
            "ph": "X",
            "pid": device,
            "tid": 1,
            "ts": START + 3000,
            "dur": 100,
            "cat": "gpu_op",
            "name": "k",
            "args": {"id": "1", "queued": 1.5, "submit": 2.25},
        },
    ]
    text = ranks.text_of(events, {"tool": "xstrace", "host": "b", "pid": 7}, {}, BASE + ranks.DAY)
    (tmp_path / "a.json").write_text(
        text.replace('"queued": 1.5', '"queued": 3600000001.500')
        .replace('"queued":1.5', '"queued":3600000001.500')
        .replace('"submit":2.25', '"submit":3600000002.250')
    )
    (tmp_path / "b.json").write_text(
        ranks.text_of(
            [{**events[3], "pid": 9, "args": {}}, {**events[1], "pid": 9}, {**events[2], "pid": 9}],
            {"tool": "xstrace", "host": "a", "pid": 9},
            {},
        )
    )
    merge("-o", "all.json", "a.json", "b.json", cwd=tmp_path)
    kernel = next(s for s in Trace(tmp_path / "all.json").device if s.args)
    assert kernel.start == START + ranks.DAY + 3000
    assert (kernel.args["queued"], kernel.args["submit"]) == (
        START + ranks.DAY + 1500,
        START + ranks.DAY + 2250,
    )


def test_children_hang_on_their_parents(tmp_path):
    def trace_of(pid, ppid, slices):
        events = [
            {"ph": "M", "name": "process_name", "pid": pid, "tid": pid, "args": {"name": "HOST<a>"}}
        ]
        events += [
            {
                "ph": "X",
                "pid": pid,
                "tid": pid,
                "ts": START + a,
                "dur": b - a,
                "cat": "cpu_op",
                "name": n,
            }
            for a, b, n in slices
        ]
        metadata = {"tool": "xstrace", "host": "a", "run": "r", "pid": pid, "ppid": ppid}
        (tmp_path / f"{pid}.json").write_text(ranks.text_of(events, metadata, {"lost": 0}))

    trace_of(10, 1, [(100, 200, "before"), (300, 900, "fork"), (950, 990, "after")])
    trace_of(11, 10, [(500, 600, "child"), (400, 800, "main")])
    trace_of(12, 11, [(700, 710, "grandchild")])
    trace_of(13, 10, [(920, 960, "late")])
    trace = merged(sorted(tmp_path.glob("*.json")), tmp_path)
    ends = {
        (s["pid"], f["pid"]): (s["ts"] - START, f["ts"] - START)
        for s, f in arrows(trace, "child", "process")
    }
    assert ends == {(10, 11): (399, 400), (11, 12): (699, 700), (10, 13): (899, 920)}


# ---- arrows ----


def test_messages_are_matched_in_order(tmp_path):
    """By communicator, source, destination and tag; what has no other end gets no arrow."""
    job = Job(["a", "a", "a"])
    job.message(0, 1, tag=1)
    job.message(0, 1, tag=2)
    job.message(2, 1, tag=1)
    job.message(0, 1, tag=1, comm="00000000deadbeef")
    job._call(0, job.now[0] + 100, "Send", comm="world", peer=2, tag=5, bytes=1)  # never received
    trace = merged(job.write(tmp_path), tmp_path)
    assert sorted((s["pid"], f["pid"]) for s, f in arrows(trace, "message")) == [
        (1000, 1001)
    ] * 3 + [(1002, 1001)]
    assert trace.other["messages"] == {"matched": 4, "unmatched": 1, "no_room": 0}


@pytest.mark.parametrize("receiver", [0, 1])
@pytest.mark.parametrize("first", ["work", "call", "wait"])
def test_receives_that_do_not_block(tmp_path, first, receiver):
    """Matched in the order in which they were posted, whatever completes first and is written first, and whether the sends are read before it or behind it."""
    sender = 1 - receiver
    job = Job(["a", "b"], {"b": Clock(10**8, 0)})
    envelope = {"comm": "world", "tag": 1, "count": 8, "bytes": 8}
    for n in range(2):
        job._call(sender, job.now[sender] + 100, "Send", **envelope, peer=receiver)
    begin = job.now[receiver]
    posts = [
        (
            begin + n * 100,
            begin + n * 100 + 50,
            "MPI_Irecv",
            {**envelope, "peer": sender, "request": n + 1},
        )
        for n in range(2)
    ]
    works = [
        (begin + n * 100, begin + 50_000 - n * 1000, "MPI_Irecv", {**posts[n][3]}) for n in range(2)
    ]
    waits = [
        (begin + 40_000 + n, begin + 50_000 - n * 1000, "MPI_Wait", {"request": n + 1})
        for n in range(2)
    ]
    job.calls[receiver] = {
        "work": works + posts,
        "call": posts + works[::-1],
        "wait": posts + waits[1:] + works[::-1],
    }[first]
    paths = job.write(tmp_path)
    lines = paths[receiver].read_text().splitlines(True)
    for n, line in enumerate(lines):  # work is on tracks of its own
        if '"MPI_Irecv"' in line and '"dur":0.050' not in line:
            tid = 2**30 + ('"request":2' in line)
            lines[n] = line.replace('"cpu_op"', '"mpi_request"').replace(
                f'"tid":{job.pid(receiver)}', f'"tid":{tid}'
            )
    paths[receiver].write_text("".join(lines))
    trace = merged(paths, tmp_path)
    assert trace.other["messages"] == {"matched": 2, "unmatched": 0, "no_room": 0}
    found = sorted(arrows(trace, "message"), key=lambda arrow: arrow[0]["ts"])
    second = job.pid(receiver) if first == "wait" else 2**30 + 1
    assert [end["tid"] for _, end in found] == [2**30, second]


def test_the_last_to_arrive_lets_the_others_go(tmp_path):
    job = Job(["a"] * 4)
    job.compute(2, 50_000)
    job.everyone("Allreduce", bytes=8)
    job.compute(0, 10_000)
    job.everyone("Bcast", root=0, bytes=8)
    job.compute(3, 70_000)
    job.everyone("Reduce", root=1, bytes=8)
    trace = merged(job.write(tmp_path), tmp_path)
    assert sorted((s["pid"], f["pid"]) for s, f in arrows(trace, "Allreduce")) == [
        (1002, p) for p in (1000, 1001, 1003)
    ]
    assert sorted((s["pid"], f["pid"]) for s, f in arrows(trace, "Bcast")) == [
        (1000, p) for p in (1001, 1002, 1003)
    ]
    assert [(s["pid"], f["pid"]) for s, f in arrows(trace, "Reduce")] == [(1003, 1001)]


def test_communicators_of_some_ranks(tmp_path):
    job = Job(["a"] * 4)
    job.everyone(comm="0123456789abcdef", ranks=[0, 2])
    job.everyone(comm="fedcba9876543210", ranks=[1, 3])
    job.everyone()
    trace = merged(job.write(tmp_path), tmp_path)
    found = {frozenset((s["pid"], f["pid"])) for s, f in arrows(trace, "Barrier")}
    assert frozenset((1000, 1002)) in found and frozenset((1001, 1003)) in found
    assert len(arrows(trace, "Barrier")) == 1 + 1 + 3


# ---- the report ----


def test_report(tmp_path):
    job = Job(["a", "a", "b"], {"b": Clock(4 * 10**9, 0)})
    for _ in range(10):
        job.compute(1, 1_000_000)
        job.everyone()
    job.compute(0, 500_000)
    job.message(0, 2)
    paths = job.write(tmp_path)
    text = merge("--report", "-", *paths, cwd=tmp_path).stdout
    assert not (tmp_path / "xstrace.all.json").exists()
    row = next(line for line in text.splitlines() if "MPI_Barrier" in line)
    assert row.split()[:3] == ["world", "MPI_Barrier", "30"] and "rank 1" in row
    merge("--report", "r.json", *paths, cwd=tmp_path)
    rows = {row["call"]: row for row in json.loads((tmp_path / "r.json").read_text())["mpi"]}
    barrier = rows["MPI_Barrier"]
    waits = sum(
        call[1] - call[0] for calls in job.calls for call in calls if call[2] == "MPI_Barrier"
    )
    assert abs(barrier["time_ns"] - waits) < 100 and 95 < barrier["wait_percent"] <= 100
    by_rank = {r["rank"]: r for r in barrier["ranks"]}
    assert by_rank[1]["waited_for_ns"] > 0.95 * barrier["wait_ns"]
    assert abs(by_rank[0]["wait_ns"] - 10_000_000) < 500_000
    assert rows["MPI_Recv"]["late_senders"] == 1 and rows["MPI_Recv"]["bytes"] == 64
    assert 300_000 < rows["MPI_Recv"]["wait_ns"] < 600_000


def test_senders_that_are_late_for_a_waitall(tmp_path):
    """Its slice does not say which requests it waited for: their work ends with it, and stands behind it."""
    job = Job(["a"] * 3)
    envelope = {"comm": "world", "tag": 1, "count": 8, "bytes": 8}
    begin = job.now[2] + 1000
    job.now[0] = begin - 500  # in time
    job._call(0, job.now[0] + 100, "Send", **envelope, peer=2)
    for source, late in ((1, 40_000), (0, 70_000)):
        job.now[source] = begin + 1000 + late
        job._call(source, job.now[source] + 100, "Send", **envelope, peer=2)
    end = begin + 1000 + 72_000
    sources = [0, 1, 0]
    posts = [
        (begin + 10 * n, begin + 10 * n + 5, "MPI_Irecv", {**envelope, "peer": p, "request": n + 1})
        for n, p in enumerate(sources)
    ]
    works = [(begin + 10 * n, end, "MPI_Irecv", {**posts[n][3]}) for n in range(3)]
    job.calls[2] = [*posts, (begin + 1000, end, "MPI_Waitall", {"count": 3}), *works]
    paths = job.write(tmp_path)
    text = paths[2].read_text()
    for line in text.splitlines():  # work is on tracks of its own
        if '"MPI_Irecv"' in line and '"dur":0.005' not in line:
            request = json.loads(line.rstrip(","))["args"]["request"]
            other = line.replace('"cpu_op"', '"mpi_request"').replace('"tid":1002', f'"tid":{2**30 + request}')
            text = text.replace(line, other)
    paths[2].write_text(text)
    merge("--report", "r.json", *paths, cwd=tmp_path)
    rows = {row["call"]: row for row in json.loads((tmp_path / "r.json").read_text())["mpi"]}
    row = rows["MPI_Waitall"]
    assert row["late_senders"] == 2 and abs(row["wait_ns"] - 70_000) < 100
    caused = {one["rank"]: one["waited_for_ns"] for one in row["ranks"]}
    assert caused[2] == 0 and caused[0] + caused.get(1, 0) == row["wait_ns"]
    trace = merged(paths, tmp_path)
    assert trace.other["messages"] == {"matched": 3, "unmatched": 0, "no_room": 0}


def test_persistent_requests(tmp_path):
    """They are sent and received each time they are started; what they have the same channel with is not mistaken."""
    job = Job(["a", "a"])
    envelope = {"comm": "world", "tag": 1, "count": 8, "bytes": 8}
    for n in range(4):
        job._call(0, job.now[0] + 100, "Send", **envelope, peer=1)
    begin = job.now[1] + 1000
    job.calls[1].append((begin, begin + 10, "MPI_Recv_init", {**envelope, "peer": 0, "request": 9}))
    for n in range(3):
        job.calls[1].append((begin + 100 + 2000 * n, begin + 1100 + 2000 * n, "MPI_Recv_init", {**envelope, "peer": 0, "request": 9}))
    job.now[1] = begin + 10_000
    job._call(1, begin + 10_500, "Recv", **envelope, peer=0)
    paths = job.write(tmp_path)
    text = paths[1].read_text().splitlines(True)
    for n, line in enumerate(text):
        if '"dur":1.000' in line:
            text[n] = line.replace('"cpu_op"', '"mpi_request"').replace('"tid":1001', f'"tid":{2**30}')
    paths[1].write_text("".join(text))
    trace = merged(paths, tmp_path)
    assert trace.other["messages"] == {"matched": 4, "unmatched": 0, "no_room": 0}
    ends = [f["tid"] for _, f in sorted(arrows(trace, "message"), key=lambda arrow: arrow[0]["ts"])]
    assert ends == [2**30] * 3 + [1001]


# ---- names, bad use, bad input ----


def test_a_base_behind_the_events(tmp_path):
    """Where Kineto writes it: the same trace as with the base in front."""
    events = ",".join(json.dumps({"ph": "X", "pid": 1, "tid": 1, "ts": 47000000012 + at, "dur": 10, "name": name}) for name, at in (("A", 0), ("B", 100)))
    base = '"baseTimeNanoseconds":1728000000000000000'
    (tmp_path / "late.json").write_text('{"traceEvents":[%s],%s}' % (events, base))
    (tmp_path / "early.json").write_text('{%s,"traceEvents":[%s]}' % (base, events))
    texts = set()
    for name in ("late", "early"):
        merge("-o", f"{name}.all.json", f"{name}.json", cwd=tmp_path)
        texts.add((tmp_path / f"{name}.all.json").read_text().replace(f"{name}.json", ""))
    assert len(texts) == 1 and '"ts":47000000012.000' in texts.pop()


def test_times_of_nineteen_digits(tmp_path):
    """Microseconds since 1970 with three decimals are exact."""
    times = "1795786371718166.417", "1795786371718176.418"
    slices = ",".join('{"ph":"X","pid":1,"tid":1,"ts":%s,"dur":%s,"name":"%s"}' % one for one in zip(times, ("10.001", "0.009"), "AB", strict=True))
    (tmp_path / "in.json").write_text('{"traceEvents":[%s]}' % slices)
    trace = merged(["in.json"], tmp_path)
    assert [(s.start % 10**9, s.end - s.start) for s in trace.slices] == [(718166417, 10001), (718176418, 9)]


def test_nothing_is_overwritten(tmp_path):
    paths = talk(Job(["a"]), 1).write(tmp_path)
    merge("-o", "all.json", *paths, cwd=tmp_path)
    before = (tmp_path / "all.json").read_bytes()
    said = merge("-o", "all.json", *paths, cwd=tmp_path).stderr
    assert "all-2.json" in said and (tmp_path / "all.json").read_bytes() == before
    assert (tmp_path / "all-2.json").exists()


@pytest.mark.parametrize(
    "args, says",
    [
        ("", "no traces given"),
        ("--nonsense x.json", "--nonsense"),
        ("-o", "-o"),
        ("-o= x", "x"),
        ("--format xml x.json", "xml"),
        ("missing.json", "missing.json"),
        ("empty", "empty"),
        ("text.json", "text.json"),
        ("-o none/all.json good.json", "none/all.json"),
    ],
)
def test_bad_use(tmp_path, args, says):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "good.json").write_text('{"traceEvents":[' + SLICE % (1, "one") + "]}")
    before = sorted(tmp_path.rglob("*"))
    result = merge(*args.split(), cwd=tmp_path, status=125)
    lines = result.stderr.splitlines()
    assert says in lines[0] and len(lines) <= 2
    assert sorted(tmp_path.rglob("*")) == before


def slices_of(text, tmp_path, status, name="bad.json"):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    result = merge("-o", "all.json", name, cwd=tmp_path, status=status)
    assert check_trace(tmp_path / "all.json", strict=True) == []
    return [s.name for s in Trace(tmp_path / "all.json").slices], result.stderr


SLICE = '{"ph":"X","pid":1,"tid":1,"ts":%d.000,"dur":1.000,"name":"%s"}'


@pytest.mark.parametrize(
    "bad, line",
    [
        ("{]", 3),
        ('{"ph":"X"', 3),
        ('{"ph":"X","name":"a"b","ts":1}', 3),
        ('{"ph":"X","ts":0x12}', 3),
        ('{"ph":X}', 3),
        ("nonsense", 3),
        ('{"a":' + "[" * 1000 + "]" * 1000 + "}", 3),
        ('{"a":01}', 3),
    ],
)
def test_damage_is_named_and_left_out(tmp_path, bad, line):
    text = '{"traceEvents":[\n' + ",\n".join([SLICE % (1, "one"), bad, SLICE % (5, "two")]) + "\n]}"
    names, said = slices_of(text, tmp_path, 1)
    assert names == ["one", "two"]
    assert f"bad.json: line {line}: " in said.splitlines()[0] and len(said.splitlines()) == 2


def test_texts_are_repaired(tmp_path):
    """Raw control characters, broken UTF-8, halves of surrogate pairs, a backslash at the end."""
    names = [
        b"a\nb",
        b"\xff\xfe",
        b"\\ud800x",
        b"\\udc00x",
        b"x\\\\",
        b"\\q",
        b"tab\there",
        "sn\u2603\U0001f600w".encode(),
        b"nul\x00",
    ]
    lines = [SLICE.encode() % (n, name) for n, name in enumerate(names)]
    found, _ = slices_of(b'{"traceEvents":[\n' + b",\n".join(lines) + b"\n]}", tmp_path, 0)
    assert found == [
        "a\nb",
        "\ufffd\ufffd",
        "\ufffdx",
        "\ufffdx",
        "x\\",
        "\\q",
        "tab\there",
        "sn\u2603\U0001f600w",
        "nul\0",
    ]


@pytest.mark.parametrize("compressed", [False, True])
def test_cut_anywhere(tmp_path, compressed):
    whole = talk(Job(["a"]), 3).write(tmp_path)[0]
    data = whole.read_bytes()
    if compressed:
        data = subprocess.run(["zstd", "-qc", whole], capture_output=True, check=True).stdout
    for at in (len(data) - 2, len(data) // 2, len(data) * 9 // 10, 300):
        (tmp_path / "cut.json").write_bytes(data[:at])
        result = subprocess.run(
            [MERGE, "-o", f"{at}.json", "cut.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert result.returncode in (0, 125) and (
            "was cut" in result.stderr or "empty" in result.stderr
        )
        if result.returncode == 0:
            assert check_trace(tmp_path / f"{at}.json", strict=True) == []
            assert Trace(tmp_path / f"{at}.json").other["inputs"][0]["cut"] is True


def test_a_bad_file_does_not_spoil_the_good(tmp_path):
    good = talk(Job(["a"]), 2).write(tmp_path)[0]
    (tmp_path / "bad.json").write_bytes(b"\x28\xb5\x2f\xfd" + b"garbage" * 10)
    (tmp_path / "no.json").write_text("[[[[")
    (tmp_path / "empty.json").write_text("")
    result = merge(
        "-o", "all.json", good, "bad.json", "no.json", "empty.json", cwd=tmp_path, status=1
    )
    assert check_trace(tmp_path / "all.json", strict=True) == []
    lines = result.stderr.splitlines()[:-1]
    assert {line.split(": ")[1] for line in lines} == {"bad.json", "no.json", "empty.json"}
    told = {
        i["file"]: i.get("left_out", False) for i in Trace(tmp_path / "all.json").other["inputs"]
    }
    assert told == {str(good): False, "bad.json": True, "no.json": False, "empty.json": True}


@root_only
def test_a_full_disk_is_said(tmp_path):
    """No trace that lacks something has the output's name; the inputs are as they were; the status says it."""
    paths = talk(Job(["a", "b"]), 5000).write(tmp_path)
    before = [path.read_bytes() for path in paths]
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "size=256k"):
        result = merge("-o", disk / "all.json", *paths, cwd=tmp_path, status=125)
        assert "No space left" in result.stderr and "all.json" in result.stderr
        assert len(result.stderr.splitlines()) <= 3
        assert not list(disk.iterdir())
        report = merge("--report", disk / "r.json", *paths, cwd=tmp_path)
        assert "is stored in" in report.stderr and [path.name for path in disk.iterdir()] == ["r.json"]
    assert [path.read_bytes() for path in paths] == before


def test_memory_is_bounded(tmp_path):
    """Half a million slices in 24 files: a few MB each would be far more than this."""
    job = talk(Job(["a"] * 4), 2)
    events = [
        f'{{"ph":"X","tid":1,"pid":1,"ts":{1000 + 2 * n}.000,"dur":1.000,"cat":"cpu_op","name":"work"}}'
        for n in range(60_000)
    ]
    text = '{"baseTimeNanoseconds":%d,"traceEvents":[\n' % BASE + ",\n".join(events) + "\n]}"
    for n in range(24):
        (tmp_path / f"{n}.json").write_text(text.replace('"pid":1,', f'"pid":{n + 1},'))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    command = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    result = subprocess.run(
        [sys.executable, "-c", command, MERGE, "-o", "all.json", *sorted(tmp_path.glob("*.json"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(result.stdout) < 60_000, (result.stdout, before, job.size)


def test_mergetrace_is_the_same(tmp_path):
    paths = talk(Job(["a", "b"]), 2).write(tmp_path)
    script = ROOT / "scripts/mergetrace.py"
    env = {**os.environ, "PATH": f"{MERGE.parent}:{os.environ['PATH']}"}
    subprocess.run([script, *paths], cwd=tmp_path, check=True, env=env, capture_output=True)
    assert check_trace(tmp_path / "unitrace.all.json", strict=True) == []
    lonely = tmp_path / "lonely/mergetrace.py"
    lonely.parent.mkdir()
    shutil.copy(script, lonely)
    (lonely.parent / "xstrace").symlink_to(ROOT / "python/xstrace")
    result = subprocess.run(
        [sys.executable, lonely, *paths],
        cwd=tmp_path,
        env={"PATH": "/nonexistent"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 125 and "xstrace-merge was not found" in result.stderr


# ---- Perfetto's format, real ranks ----


def fields(data):
    """[(field, value)] of a message: int, or bytes."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            found.append((key >> 3, data[at : at + size]))
            at += size
    assert at == len(data)
    return found


def slices_of_protobuf(data):
    """[(pid, tid, start, end, name)], told by begins and ends."""
    found, tracks = [], {}
    for key, value in fields(data):
        assert key == 1
        packet = dict(fields(value))
        sequence = tracks.setdefault(packet[10], {"now": 0, "open": [], "names": {}})
        if 60 in packet and 4 in (track := dict(fields(packet[60]))):
            sequence["thread"] = {k: v for k, v in fields(track[4]) if k in (1, 2)}
        if 6 in packet and packet[10] > 1:
            clocks = [dict(fields(c)) for k, c in fields(packet[6])]
            sequence["now"] = next(c[2] for c in clocks if c[1] == 64)
        for _, entry in [f for f in fields(packet.get(12, b"")) if f[0] == 2]:
            entry = dict(fields(entry))
            sequence["names"][entry[1]] = entry[2].decode()
        if 11 not in packet:
            continue
        sequence["now"] += packet[8]
        event = dict(fields(packet[11]))
        if event.get(9) == 1:
            sequence["open"].append((sequence["now"], sequence["names"][event[10]]))
        elif event.get(9) == 2:
            start, name = sequence["open"].pop()
            thread = sequence["thread"]
            found.append((thread[1], thread[2], start, sequence["now"], name))
    assert not any(track["open"] for track in tracks.values())
    return sorted(found)


def test_perfetto_holds_the_same(tmp_path):
    """Nested slices that begin or end together, too."""
    paths = talk(Job(["a", "b"], {"b": Clock(10**7, 5)}), 10).write(tmp_path)
    nested = [(0, 100), (0, 50), (50, 50), (50, 100), (0, 100), (100, 130), (130, 130)]
    events = [
        {"ph": "X", "pid": 9, "tid": 9, "ts": START + a, "dur": b - a, "name": f"n{n}"}
        for n, (a, b) in enumerate(nested)
    ]
    text = ranks.text_of(events, {"tool": "xstrace", "host": "c", "pid": 9}, {})
    (tmp_path / "nested.json").write_text(text)
    merge("-o", "all.json", *paths, "nested.json", cwd=tmp_path)
    merge("-o", "all.pftrace", *paths, "nested.json", cwd=tmp_path)
    wanted = sorted((*s.track, s.start, s.end, s.name) for s in Trace(tmp_path / "all.json").slices)
    found = slices_of_protobuf((tmp_path / "all.pftrace").read_bytes())
    assert found == wanted
    assert (tmp_path / "all.pftrace").stat().st_size < (tmp_path / "all.json").stat().st_size / 2


@needs_mpi
def test_real_ranks_that_exchange_and_wait(xstrace, mpi_app):
    """Each message of a ring is found, and who of the neighbours sends too late for MPI_Waitall."""
    job = Ranks(xstrace, MPI, mpi_app("mpi_ring"), [4], ranks=4)
    assert job.run.status == 0
    paths = [t.path for t in job.traces.values()]
    trace = merged(paths, xstrace.cwd)
    assert trace.other["messages"] == {"matched": 16, "unmatched": 0, "no_room": 0}
    assert len(arrows(trace, "message")) == 16 and "WARNING" not in trace.said
    merge("--report", "r.json", *paths, cwd=xstrace.cwd)
    rows = {row["call"]: row for row in json.loads((xstrace.cwd / "r.json").read_text())["mpi"]}
    row = rows["MPI_Waitall"]
    assert row["calls"] == 16 and row["late_senders"] > 0 and 0 < row["wait_ns"] <= row["time_ns"]


def innermost(trace, point):
    """The slice that viewers take for the end of an arrow."""
    time = point["ts"]
    found = [s for s in trace.slices if s.track == (point["pid"], point["tid"]) and s.start <= time < max(s.end, s.start + 1)]
    return max(found, key=lambda s: (s.start, -s.end))


@pytest.mark.long(keep=1)
@needs_mpi
@pytest.mark.parametrize("app, ranks", [("mpi_ring", 4), ("mpi_lanes", 1), ("mpi_needs", 4)])
def test_arrows_lead_to_calls(xstrace, mpi_app, app, ranks):
    """Not to the work of a request, inside which that of others may be drawn: from the call that started it, to that which saw its end."""
    args = {"mpi_ring": [4], "mpi_lanes": [300], "mpi_needs": [xstrace.cwd]}[app]
    job = Ranks(xstrace, MPI, mpi_app(app), args, ranks=ranks)
    assert job.run.status == 0, job.run.err
    trace = merged([t.path for t in job.traces.values()], xstrace.cwd)
    work = [s for s in trace.slices if s.cat == "mpi_request"]
    began = {(s.track[0], s.args["started_by"], s.start) for s in work}
    ended = {(s.track[0], s.args["ended_by"], s.end) for s in work}
    begins = ends = 0
    for start, end in arrows(trace, cat="mpi"):
        tail, head = innermost(trace, start), innermost(trace, end)
        assert tail.cat == head.cat == "cpu_op" and tail.start == start["ts"]
        begins += (*tail.track, tail.start) in began
        ends += (*head.track, head.end) in ended
    assert begins >= {"mpi_ring": 16, "mpi_lanes": 0, "mpi_needs": 100}[app] and ends >= 16


@needs_mpi
def test_a_rank_that_was_killed(xstrace, mpi_app):
    """The merge says which, how, and in which call it was."""
    files, deadline = [], time.monotonic() + 60
    command = ["-n", "2", XSTRACE, MPI, mpi_app("mpi_killed")]
    run = xstrace.bare(MPIEXEC, [str(word) for word in command])
    while len(files) < 2 or any(not path.read_text().endswith("]}}\n") for path in files):
        assert time.monotonic() < deadline
        files = sorted(xstrace.cwd.glob("*.json"))
        time.sleep(0.05)
    xstrace.adopt(run, files)
    pids = {t.metadata["rank"]: t.pid for t in run.traces}
    trace = merged(files, xstrace.cwd)
    host = trace.other["inputs"][1]["host"]
    line = f"[WARNING] rank 1, pid {pids[1]} on {host} was killed by signal 9, in MPI_Recv"
    assert line in trace.said.splitlines()
    told = {one["rank"]: one for one in trace.other["inputs"]}
    assert (told[1]["end"], told[1]["status"]) == ("killed", 9)
    assert [thread["in_call"] for thread in told[1]["in_call"]] == ["MPI_Recv"]
    assert trace.other["messages"]["matched"] == 100


@needs_mpi
def test_real_ranks(xstrace, mpi_app):
    job = Ranks(xstrace, MPI, mpi_app("mpi_first"))
    trace = merged([t.path for t in job.traces.values()], xstrace.cwd)
    pids = {rank: t.pid for rank, t in job.traces.items()}
    assert [(s["pid"], f["pid"]) for s, f in arrows(trace, "message")] == [(pids[0], pids[1])]
    assert len(arrows(trace, "Allreduce")) == len(arrows(trace, "Barrier")) == 1
    assert trace.other["messages"] == {"matched": 1, "unmatched": 0, "no_room": 0}


@needs_mpi
def test_receives_get_what_they_were_posted_for(xstrace, mpi_app):
    """Persistent ones, from any source, of any tag: in the order in which they were posted, not in that of their completion, and without those cancelled."""
    job = Ranks(xstrace, MPI, mpi_app("mpi_orders"))
    assert job.run.status == 0
    trace = merged([t.path for t in job.traces.values()], xstrace.cwd)
    assert trace.other["messages"] == {"matched": 12, "unmatched": 0, "no_room": 0}
    assert sum(s.args.get("cancelled", False) for s in job.traces[1].slices if s.cat == "mpi_request") == 4
    came = {s.args["request"]: s.args["bytes"] for s in job.traces[1].slices if s.cat == "mpi_request"}
    slices = {rank: [s for s in trace.slices if s.track[0] == t.pid and s.args] for rank, t in job.traces.items()}
    found = []
    for start, end in arrows(trace, "message"):
        (send,) = [s for s in slices[0] if s.name == "MPI_Send" and s.start <= start["ts"] <= s.end]
        (receive,) = [s for s in slices[1] if s.track[1] == end["tid"] and s.start <= end["ts"] <= s.end]
        assert send.args["bytes"] == came.get(receive.args.get("request"), receive.args.get("bytes"))
        found.append(send.args["bytes"])
    assert sorted(found) == sorted([4 * n for n in range(1, 8)] + [4 * n for n in range(1, 6)])
