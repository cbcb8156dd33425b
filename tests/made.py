"""Traces that tests write themselves, in the formats of several programs; and the commands that read them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS.parent / "python"))

from xstrace import open_trace  # noqa: E402
from xstrace import source, trace  # noqa: E402

CHECK = SCRIPTS / "xstrace-check"
SUMMARY = SCRIPTS / "xstrace-summary"
DAY = 86_400 * 10**9
BASE = 20_778 * DAY
DEVICE = 2**31 + 5
METADATA = {
    "tool": "xstrace",
    "version": "0.1.0",
    "host": "vm",
    "pid": 7,
    "command": ["./app", "3"],
}
OTHER = {"end": "exited", "status": 0, "lost": 0}

needs_zstd = pytest.mark.skipif(not shutil.which("zstd"), reason="no command zstd")


# ---- making traces ----


def us(ns):
    return "%d.%03d" % divmod(ns, 1000)


def slice_(name, start, end, pid=7, tid=7, cat="cpu_op", **more):
    """An X event; start and end in ns."""
    event = {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid}
    return {**event, "ts": start, "dur": end - start, **more}


def kernel(name, start, end, tid=1, **more):
    return slice_(name, start, end, DEVICE, tid, "gpu_op", **more)


def flow(ph, ts, pid=7, tid=7, id=1, **more):
    event = {"ph": ph, "name": "dep", "cat": "flow", "id": id, "pid": pid, "tid": tid, "ts": ts}
    if ph == "f":
        event["bp"] = "e"
    event.update(more)
    return event


def named(what, name, pid, tid=None):
    event = {"ph": "M", "name": what, "pid": pid, "args": {"name": name}}
    return event if tid is None else {**event, "tid": tid}


NAMES = [
    named("process_name", "HOST<vm>", 7),
    named("thread_name", "app", 7, 7),
    named("process_name", "DEVICE<vm>[Fake GPU 3000]", DEVICE),
    named("thread_name", "queue 1", DEVICE, 1),
]


def text_of(event):
    """The event as the writer writes it: times, which are ns here, with three decimals."""
    event = dict(event)
    times = {key: event.pop(key) for key in ("ts", "dur") if type(event.get(key)) is int}
    args = event.get("args")
    args = dict(args) if type(args) is dict else {}
    if event.get("cat") == "gpu_op":
        times.update((key, args[key]) for key in ("queued", "submit") if type(args.get(key)) is int)
    for key in times:
        if key in args and key not in ("ts", "dur"):
            args[key] = f"<{key}>"
            event["args"] = args
        else:
            event[key] = f"<{key}>"
    text = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
    for key, ns in times.items():
        text = text.replace(f'"<{key}>"', "-" * (ns < 0) + us(abs(ns)))
    return text


def text_of_trace(events, metadata=METADATA, other=OTHER, base=BASE):
    header = {"displayTimeUnit": "ns", "baseTimeNanoseconds": base, "metadata": metadata}
    head = json.dumps(header, separators=(",", ":"))[:-1] + ',"traceEvents":[\n'
    tail = '\n],"otherData":' + json.dumps(other) + "}\n"
    return head + ",\n".join(map(text_of, events)) + tail


def normal_events(count=3):
    """A well-formed trace with an event of every kind that xstrace writes."""
    events = list(NAMES)
    for n in range(count):
        t = 10**12 + n * 10_000
        events += [
            slice_("clEnqueueNDRangeKernel", t, t + 3000),
            flow("s", t + 100, id=n + 1),
            kernel(
                "GEMM[SIMD8 {1; 1; 1} {2; 2; 2}]",
                t + 1500,
                t + 4501,
                args={"id": n, "queued": t + 100, "submit": t + 1200, "global": [8, 8]},
            ),
            flow("f", t + 1500, DEVICE, 1, id=n + 1),
            slice_('d::t"a\\s\n\u2603k\U0001f600', t + 3000, t + 9999),
            slice_("clFinish", t + 3000, t + 9000, args={"result": -5, "x": [1.25, {"y": 2.5}]}),
        ]
    return events


@pytest.fixture
def make(tmp_path):
    """Writes a trace of the given events (or the text itself) and returns its path."""

    def make(events, name="t.json", **members):
        path = tmp_path / name
        text = events if isinstance(events, (str, bytes)) else text_of_trace(events, **members)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def read(path):
    """(events, trace) of the file."""
    with open_trace(path) as opened:
        return list(opened), opened


@pytest.fixture(params=["large windows", "tiny windows"])
def windows(request, monkeypatch):
    """Runs a test also with windows so small that everything straddles one."""
    if request.param == "tiny windows":
        monkeypatch.setattr(source, "CHUNK", 7)
        monkeypatch.setattr(source, "PIECE", 5)
        monkeypatch.setattr(trace, "BLOCK", 16)


def zstd_frames(text, lines_per_frame):
    """The compressed text, as a list of independent frames."""
    lines = text.splitlines(keepends=True)
    parts = ["".join(lines[n : n + lines_per_frame]) for n in range(0, len(lines), lines_per_frame)]
    return [
        subprocess.run(
            ["zstd", "-qc"], input=part.encode(), stdout=subprocess.PIPE, check=True
        ).stdout
        for part in parts
    ]


@pytest.fixture(params=["module", "command"])
def zstd_reader(request, monkeypatch):
    """Reads zstd with the Python module, and with the command where that is missing."""
    if not shutil.which("zstd"):
        pytest.skip("no command zstd")  # it makes the input, too
    if request.param == "command":
        monkeypatch.setattr(source, "zstandard", None)
    elif source.zstandard is None:
        pytest.skip("no module zstandard")
    return request.param


UNITRACE = """{ "traceEvents":[

{"ph": "M", "name": "process_name", "pid": 8, "ts": 1795246672684202.750000, "args": {"name": "HOST<vm>"}},
{"ph": "X", "tid": 9, "pid": 8, "name": "d::a", "cat": "cpu_op", "ts": 1795246672697455.500000, "dur": 1134.092000, "id": 0}
,
{"ph": "X", "tid": 9, "pid": 8, "name": "d::b", "cat": "cpu_op", "ts": 1795246672698591.000000, "dur": 0.000000, "args": {"u64":[1,18446744073709551615],"flt":[1.250000]}}
]
}
"""

KINETO = """
{
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "Fake", "totalGlobalMem": 1}
  ],
  "displayTimeUnit": "ms",
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4},
  "traceEvents": [
  {
    "name": "process_name", "ph": "M", "ts": 0.000, "pid": 0, "tid": 0,
    "args": {
      "name": "python"
    }
  },
  {
    "name": "process_labels", "ph": "M", "ts": 0.000, "pid": 0, "tid": 0,
    "args": {
      "labels": "GPU 0"
    }
  },
  {
    "name": "thread_name", "ph": "M", "ts": 0.000, "pid": 0, "tid": 7,
    "args": {
      "name": "stream 7 "
    }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5,
    "ts": 1000.250, "dur": 50.500,
    "args": {
      "External id": 1, "Input Dims": [[2, 2], [2, 2]]
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5,
    "ts": 1010.000, "dur": 5.000,
    "args": {
      "cbid": 211, "correlation": 1
    }
  },
  {
    "ph": "s", "id": 1, "pid": 5, "tid": 5, "ts": 1010.000, "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void gemm<float, 4>(float*)", "pid": 0, "tid": 7,
    "ts": 1020.000, "dur": 20.000,
    "args": {
      "queued": 0, "device": 0, "stream": 7, "correlation": 1, "est. achieved occupancy %": 12.5
    }
  },
  {
    "ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 1020.000, "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
  {
    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7,
    "ts": 1040.000, "dur": 10.000,
    "args": {
      "bytes": 40000, "memory bandwidth (GB/s)": 4.0
    }
  },
  {
    "ph": "X", "cat": "Trace", "ts": 1000.000, "dur": 100.000, "pid": "Spans", "tid": "PyTorch",
    "name": "PyTorch Profiler (0)"
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1100.000
  }
  ],
  "baseTimeNanoseconds": 1795219200000000000,
  "traceName": "x.pt.trace.json"
}
"""

CLILOADER = """[
{"ph":"M","name":"process_name","pid":8,"tid":0,"args":{"name":"cl_gemm"}},
{"ph":"X","pid":8,"tid":8,"name":"clGetPlatformIDs","ts":37267.344,"dur":0.150},
{"ph":"X","pid":8,"tid":8,"name":"clFinish","ts":37297.238,"dur":0.040}
]
"""


# ---- running the commands ----


def run(command, *args, **more):
    return subprocess.run(
        [str(command), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=60,
        **more,
    )




def without_zstandard(place):
    """A directory that hides the module."""
    (place / "hide").mkdir(exist_ok=True)
    (place / "hide" / "zstandard.py").write_text("raise ImportError")
    return place / "hide"
