"""What unitrace's own scripts read: summary.py our reports, uniview.py and mergetrace.py our traces.

XSTRACE_TEST_UNITRACE=DIR, a checkout of pti-gpu (or its tools/unitrace), runs the scripts themselves; no package has them. Without it the facts
about the files that they rely on are checked.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from conftest import APPS, BUILD, wait_until

SOFTGPU = BUILD / "tests/softgpu/libze_softgpu.so"
ZE = {"ZE_ENABLE_ALT_DRIVERS": str(SOFTGPU)}
pytestmark = pytest.mark.skipif(not SOFTGPU.exists(), reason="Level Zero is not built")
PROGRAMS = f"{APPS}/ze_matrix --copies 2 --fills 1; {APPS}/itt_ccl"


def script(name):
    where = os.environ.get("XSTRACE_TEST_UNITRACE")
    if not where:
        pytest.skip("XSTRACE_TEST_UNITRACE=DIR, a checkout of pti-gpu, is not set")
    return next(p for p in (Path(where) / "tools/unitrace/scripts" / name, Path(where) / "scripts" / name) if p.exists())


def reports(xstrace, options, env=None):
    run = xstrace(f"{options} -o output", "sh", ["-c", PROGRAMS], env=ZE | (env or {}))
    assert run.status == 0
    return run, sorted(run.cwd.glob("output.*"))


# ---- summary.py ----

HEADS = ["API Timing Summary", "Device Timing Summary", "*" * 28, "L0 Backend"]
TOTALS = ["Total Execution Time", "Total API Time for L0 backend", "Total Device Time for L0 backend"]


def table(lines):
    """What stands from a heading to the next empty line, after empty ones: a head line and rows, as CSV with blanks."""
    lines = iter(lines)
    head = next(line for line in lines if line.strip())
    rows = []
    for line in lines:
        if not line.strip():
            break
        rows.append(line)
    return list(csv.DictReader(rows, [cell.strip() for cell in head.split(",")], skipinitialspace=True))


def summary_of(text):
    """{first column: {name: (time, calls)}} of all that summary.py takes for tables."""
    found, section, lines = {}, None, text.splitlines()
    for i, line in enumerate(lines):
        head = next((h for h in HEADS if h in line), None)
        if any(t in line for t in TOTALS):
            assert re.fullmatch(r" *\d+", line.rpartition(":")[2]), line
            assert section and "Summary" in section, line
        elif head == "L0 Backend" or (head and head[0] == "*" and section and section[0] == "*"):
            column = "Kernel" if section.startswith("Device") else "Function"
            for row in table(lines[i + 1 :]):
                found.setdefault(section[0], {})[row[column]] = int(row["Time (ns)"]), int(row["Calls"])
            section = None if head[0] == "*" else section
        elif head:
            section = head
    return found


@pytest.mark.parametrize("options", ["-h -d -r", "-h -d -r -v", "-hdr --chrome-call-logging", "-h -d -r -t"])
def test_what_a_summary_reads(xstrace, options):
    """Below each heading that it looks for is unitrace's table, whatever tables of ours follow."""
    run, files = reports(xstrace, options)
    found = [summary_of(path.read_text()) for path in files]
    zero = next(f for f in found if "A" in f)
    assert zero["A"]["zeCommandListAppendLaunchKernel"][1] == 4
    kernels = {name: calls for name, (_, calls) in zero["D"].items()}
    assert sum(n for name, n in kernels.items() if name.startswith("increment")) == 4
    assert sum(n for name, n in kernels.items() if name.startswith("zeCommandListAppendMemoryCopy")) == 2
    ccl = next(f for f in found if "*" in f)["*"]
    assert {name: calls for name, (_, calls) in ccl.items()} == {
        "oneCCL::API::allreduce": 8,
        "oneCCL::API::bcast": 4,
        "oneCCL::API::barrier": 4,
    }


@pytest.mark.parametrize("options", ["-h -d -r", "-h -d -r -v"])
def test_summary(xstrace, options):
    program = script("summary/summary.py")
    run, files = reports(xstrace, options)
    archive, result = xstrace.home / "reports.tgz", xstrace.home / "summary.json"
    with tarfile.open(archive, "w:gz") as tar:
        for path in files:
            tar.add(path, path.name)
    schema = program.parent / "schemas/LLaMA.json"
    subprocess.run([sys.executable, program, "--input", archive, "--schema", schema, "--output", result], check=True, timeout=60)
    ours = [summary_of(path.read_text()) for path in files]
    theirs = json.loads(result.read_text())
    # "Wallclock" and "L0_backend" are categories too, and a mean over processes of each name is what it makes
    assert sum(n for name, n in theirs.items() if name.endswith("_calls")) >= sum(
        calls for f in ours for kind in "D*" for _, calls in f.get(kind, {}).values()
    )
    assert any("comm" in name or "allreduce" in name for name in theirs), theirs


# ---- mergetrace.py, uniview.py ----


def rank_traces(xstrace):
    for rank in "01":
        run = xstrace("--chrome-call-logging --chrome-kernel-logging", "ze_matrix", env=ZE | {"PMI_RANK": rank})
        assert run.status == 0
    return sorted(xstrace.cwd.glob("ze_matrix.*.json"))


def test_what_a_merge_relies_on(xstrace):
    """The events are a list in an object, and what binds events together tells processes apart."""
    traces = [json.loads(path.read_text())["traceEvents"] for path in rank_traces(xstrace)]
    assert len(traces) == 2
    for key in ("pid", "id"):
        values = [{e[key] for e in events if key in e and (key == "pid" or e["ph"] in "stf")} for events in traces]
        assert values[0] and values[0].isdisjoint(values[1]), key


def test_merge(xstrace):
    program, files, merged = script("tracemerge/mergetrace.py"), rank_traces(xstrace), xstrace.home / "merged.json"
    before = [path.read_bytes() for path in files]
    run = subprocess.run([sys.executable, program, "-o", merged, *files], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert [path.read_bytes() for path in files] == before
    assert json.loads(merged.read_text())["traceEvents"] == [e for text in before for e in json.loads(text)["traceEvents"]]


VIEWER = """
import sys, time, urllib.request
url = sys.argv[2].split("?url=")[1]
for attempt in range(100):
    try:
        data = urllib.request.urlopen(url, timeout=20).read()
        break
    except OSError:
        time.sleep(0.1)
open(sys.argv[1], "wb").write(data)
"""


def test_view(xstrace):
    """It takes the trace as it is and serves it to a browser: here one that stores what it gets."""
    program, trace, seen = script("uniview.py"), rank_traces(xstrace)[0], xstrace.home / "seen"
    before = trace.read_bytes()
    # of metrics alone, which there are none of
    modules = {"pandas": "", "matplotlib/__init__": "", "matplotlib/pyplot": "", "matplotlib/backends/__init__": ""}
    for name, text in (modules | {"matplotlib/backends/backend_pdf": "PdfPages = None\n"}).items():
        path = xstrace.home / "modules" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (xstrace.home / "viewer.py").write_text(VIEWER)
    browser = f"{sys.executable} {xstrace.home}/viewer.py {seen} %s &"
    env = os.environ | {"BROWSER": browser, "PYTHONPATH": str(xstrace.home / "modules")}
    run = subprocess.run([sys.executable, program, "-t", trace], env=env, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    wait_until(lambda: seen.exists() and seen.stat().st_size == len(before))
    assert trace.read_bytes() == before == seen.read_bytes()
