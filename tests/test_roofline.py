"""scripts/roofline.py: points and roofs from metrics of two runs."""

import csv
import json
import os
import re
import subprocess

import pytest
from conftest import APPS, BUILD, ROOT, XSTRACE
from cuda_log import HAVE_SOFTCUDA, SoftCUDA

COMMAND = ROOT / "scripts/roofline.py"
PRECISIONS = ["FP16", "FP32", "FP64", "XMX_FP16", "XMX_BF16"]
HEAD = "=== Device #0 Metrics ===\n\nKernel,GlobalInstanceId,SubDeviceId,GpuTime[ns],"
COMPUTE = HEAD + ",".join(f"XVE_INST_EXECUTED_{name}[events]" for name in PRECISIONS) + """
"axpy",1,0,1000,0,100,0,0,0

"axpy",2,0,3000,0,300,0,0,0

"gemm<half>",3,0,2000,5,0,0,4000,0

"only here",4,0,1,1,1,1,1,1
"""
MEMORY = HEAD + """L3_BYTE_READ[bytes],L3_BYTE_WRITE[bytes],GPU_MEMORY_BYTE_READ[bytes],GPU_MEMORY_BYTE_WRITE[bytes]
"axpy",1,0,1000,16000,16000,32000,32000

"axpy",2,0,2000,48000,48000,96000,96000

"gemm<half>",3,0,1000,10000,10240,1024,1024
"""
DEVICE = {
    "PlatformName": '"a device"', "FP16_GFLOPS": 40, "FP32_GFLOPS": 20, "FP64_GFLOPS": 10, "FP16_XMX_GFLOPS": 2000, "BF16_XMX_GFLOPS": 2000,
    "GPU_MEMORY_BW_in_GB_per_sec": 50, "L3_BW_in_GB_per_sec": 200,
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """The options for files that are as they should be; the files can be changed."""

    def write(compute=COMPUTE, memory=MEMORY, **device):
        (tmp_path / "c.csv").write_text(compute)
        (tmp_path / "m.csv").write_text(memory)
        (tmp_path / "d.csv").write_text("".join(f"{key},{value}\n" for key, value in (DEVICE | device).items() if value is not None))
        return ["--compute", tmp_path / "c.csv", "--memory", tmp_path / "m.csv", "--device", tmp_path / "d.csv", "--output", tmp_path / "roof"]

    return write


def roofline(*args, status=0):
    run = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert run.returncode == status, run
    return run


def rows_of(run):
    lines = run.stdout.splitlines()
    assert lines[-1].startswith("Roofline is stored in ")
    return {row["Kernel_name"]: row for row in csv.DictReader(lines[:-1], skipinitialspace=True)}


def traces_of(path):
    """The lines and points of the chart, by their names."""
    data = re.search(r"Plotly\.newPlot\(\s*\"[^\"]*\",\s*", path.read_text())
    found, _ = json.JSONDecoder().raw_decode(path.read_text(), data.end())
    return {one["name"]: one for one in found}


def test_numbers(files, tmp_path):
    """By the formulas of roofline.py: axpy 400 * 32 FLOP in 4000 ns; memory 256000 B, L3 128000 B in 3000 ns."""
    rows = rows_of(roofline(*files()))
    assert list(rows) == ["axpy", "gemm<half>"]
    axpy = {key: value if key in ("Kernel_name", "Bounded_by") else float(value) for key, value in rows["axpy"].items()}
    assert axpy == {
        "Kernel_name": "axpy", "time_elapsed (s)": 3e-6, "% of Total time": 75, "Bounded_by": "gpu_memory",
        "FP16 (GFLOPS)": 0, "FP32 (GFLOPS)": 3.2, "FP64 (GFLOPS)": 0, "BF16_XMX (GFLOPS)": 0, "FP16_XMX (GFLOPS)": 0,
        "AI (gpu_memory)": 0.05, "AI (L3)": 0.1, "gpu_memory (GB/s)": 85.3333, "L3 (GB/s)": 42.6667, "% of roof": 128,
    }  # fmt: skip
    gemm = rows["gemm<half>"]
    assert (gemm["FP16_XMX (GFLOPS)"], gemm["FP16 (GFLOPS)"], gemm["Bounded_by"], gemm["% of roof"]) == ("1024", "0.16", "compute", "51.2")
    traces = traces_of(tmp_path / "roof.html")
    point = traces["25.00 % gemm&lt;half&gt;"]
    assert point["y"] == [1024, 1024] and point["x"] == [pytest.approx(2048000 / 20240), 1000] and point["marker"]["symbol"] == ["square", "circle"]
    assert traces["75.00 % axpy"]["marker"]["size"] > point["marker"]["size"]
    line = traces["FP32 20 GFLOP/s, gpu_memory 50 GB/s"]
    assert line["x"][1] == 0.4 and line["y"] == [pytest.approx(line["x"][0] * 50), 20, 20]
    assert len(traces) == 2 + 2 * 2


def test_a_third_level(files, tmp_path):
    memory = MEMORY.replace("L3_BYTE_READ", "LOAD_STORE_CACHE_BYTE_READ[bytes],L3_BYTE_READ").replace(",0,1000,", ",0,1000,640000,").replace(",0,2000,", ",0,2000,1920000,")
    rows = rows_of(roofline(*files(memory=memory, L1_BW_in_GB_per_sec=400)))
    assert rows["axpy"]["AI (L1)"] == "0.005" and rows["axpy"]["Bounded_by"] == "L1"
    assert traces_of(tmp_path / "roof.html")["75.00 % axpy"]["x"] == [0.005, 0.1, 0.05]


def test_files_the_other_way_round(files):
    args = files()
    args[1], args[3] = args[3], args[1]
    assert rows_of(roofline(*args))["axpy"]["FP32 (GFLOPS)"] == "3.2"


def test_the_application(files, tmp_path):
    """By a tracer that writes what is asked for, and an application that it starts with its arguments."""
    args = files()
    tracer = tmp_path / "tracer"
    tracer.write_text(f"""#!/bin/bash
[ "$1 $3 $4" = "--group -q -o" ] || exit 99
case $2 in VectorEngine138) from={tmp_path}/c.csv;; ComputeBasic) from={tmp_path}/m.csv;; *) exit 98;; esac
cp $from $5.metrics.77.csv
"${{@:6}}"
""")
    tracer.chmod(0o755)
    run = roofline("--app", f"touch '{tmp_path}/ran {{}}'", "--xstrace", tracer, *args[4:])
    assert (tmp_path / "ran {}").exists() and rows_of(run)["axpy"]["FP32 (GFLOPS)"] == "3.2"
    run = roofline("--app", "true", "--unitrace", tracer, "--memory-group", "Other", *args[4:], status=1)
    assert run.stderr == f"roofline.py: {tracer} --group Other -q has written no metrics (status 98)\n"


@pytest.mark.parametrize(
    "change,said",
    [
        ({"FP32_GFLOPS": "fast"}, 'd.csv: FP32_GFLOPS is "fast", not a number above 0'),
        ({"L3_BW_in_GB_per_sec": None}, "d.csv: it has no L3_BW_in_GB_per_sec"),
        ({"FP16_XMX_GFLOPS": None}, "d.csv: it has no FP16_XMX_GFLOPS"),
        ({"compute": ""}, "c.csv: the file is empty"),
        ({"compute": MEMORY}, "the file of --compute has no metric XVE_INST_EXECUTED_FP16[events]: it is of another group"),
        ({"memory": COMPUTE}, "the file of --memory has no metric L3_BYTE_READ[bytes]: it is of another group"),
        ({"memory": MEMORY.replace('"', "'")}, "no kernel is in both files"),
        ({"memory": MEMORY[:-9]}, "m.csv: line"),
        ({"PlatformName": "x" * 200000}, "d.csv: field larger than field limit (131072): no file of a device"),
        *(
            ({"memory": MEMORY.replace(",16000,", f",{value},", 1)}, 'kernel "axpy" has a time or a count that is below 0 or no number')
            for value in ("inf", "nan", "1e400")
        ),
        ({"PlatformName": "x\nFP16_GFLOPS,50"}, "d.csv: it has FP16_GFLOPS twice"),
        ({"compute": COMPUTE.replace(",3000,", ",-3000,")}, 'kernel "axpy" has a time or a count that is below 0 or no number'),
        ({"memory": MEMORY.replace(",1000,", ",inf,", 1)}, 'kernel "axpy" has a time or a count that is below 0 or no number'),
    ],
    ids=range(15),
)
def test_bad_files(files, tmp_path, change, said):
    run = roofline(*files(**change), status=1)
    assert run.stderr.startswith("roofline.py: ") and said in run.stderr and run.stderr.count("\n") == 1
    assert not (tmp_path / "roof.html").exists()


def test_kernels_that_the_files_do_not_share_evenly(files):
    """What is left out is named; where one run had more executions of a kernel, its intensity is that of the mean one."""
    run = roofline(*files(compute=COMPUTE + '\n"copy",5,0,7,0,0,0,0,0\n', memory=MEMORY + '\n"copy",5,0,1,1,1,1,1\n'))
    assert [line.removeprefix("roofline.py: ") for line in run.stderr.splitlines()] == [
        '1 kernel in one file alone, or without a time, and left out: "only here"',
        '1 kernel without an operation of a precision that is counted, and left out: "copy"',
    ]
    for change in ({"memory": MEMORY + '\n"axpy",4,0,1500,32000,32000,64000,64000\n'}, {"compute": COMPUTE + '\n"axpy",5,0,2000,0,200,0,0,0\n'}):
        run = roofline(*files(**change))
        told = '1 kernel executed more often in one run than in the other; what is said of them is of the mean execution: "axpy"'
        assert run.stderr.splitlines()[-1] == f"roofline.py: {told}"
        assert (rows_of(run)["axpy"]["AI (gpu_memory)"], rows_of(run)["axpy"]["AI (L3)"]) == ("0.05", "0.1")


@pytest.mark.parametrize("app,why", [("a 'b", "No closing quotation"), (" ", "it names no application")])
def test_an_application_that_is_none(files, app, why):
    run = roofline("--app", app, "--xstrace", "true", *files()[4:], status=1)
    assert run.stderr.startswith("roofline.py: --app") and run.stderr.endswith(f": {why}\n")


@pytest.mark.parametrize("args", [["--app", "a", "--compute", "c", "--memory", "m"], [], ["--compute", "c"]])
def test_misuse(args):
    run = roofline(*args, "--device", "d", "--output", "o", status=1)
    assert run.stderr == "roofline.py: either --app COMMAND or both --compute FILE and --memory FILE are needed\n"


# ---- ceilings ----

CEILINGS = BUILD / "devices/xstrace-ceilings"


@pytest.mark.long
@pytest.mark.skipif(not CEILINGS.exists(), reason="no OpenCL headers")
def test_ceilings_of_this_machine(files, tmp_path, xstrace):
    """What it measures is a configuration that roofline.py takes, and adds up as a device does."""
    run = xstrace.bare(CEILINGS, [], timeout=100)
    assert run.status == 0
    found = dict(line.split(",") for line in run.out.splitlines())
    assert found.pop("PlatformName").strip('"')
    found = {key: float(value) for key, value in found.items()}
    assert {"FP32_GFLOPS", "GPU_MEMORY_BW_in_GB_per_sec", "L1_BW_in_GB_per_sec"} <= set(found) and min(found.values()) > 0
    assert found["L1_BW_in_GB_per_sec"] > found["GPU_MEMORY_BW_in_GB_per_sec"]
    assert found["FP32_GFLOPS"] < os.cpu_count() * 6 * 64  # 6 GHz, 64 operations a cycle: no time was lost
    args = files(memory=MEMORY.replace("L3_", "GPU_MEMORY_X_") if "L3_BW_in_GB_per_sec" not in found else MEMORY, compute=COMPUTE.replace(",4000,", ",0,"))
    (tmp_path / "d.csv").write_text(run.out)
    if "FP16_GFLOPS" not in found:
        args[1].write_text(COMPUTE.replace(",4000,", ",0,").replace(",5,0,0,0,", ",0,7,0,0,"))
    assert "axpy" in rows_of(roofline(*args))


@pytest.mark.skipif(not CEILINGS.exists(), reason="no OpenCL headers")
@pytest.mark.parametrize(
    "args,env,said",
    [
        (["x"], {}, "takes the number of a device of OpenCL, as --device-list shows it, or nothing"),
        (["99"], {}, r"OpenCL has devices 0 to \d+, no 99"),
        ([], {"OCL_ICD_VENDORS": "/nonexistent"}, "OpenCL has no device"),
    ],
    ids=range(3),
)
def test_ceilings_of_nothing(xstrace, args, env, said):
    run = xstrace.bare(CEILINGS, args, env=env)
    assert run.status == 1 and not run.out and re.fullmatch(f"xstrace-ceilings: {said}\n", run.err)


# ---- CUDA ----


@pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no CUPTI headers")
def test_cuda(files, tmp_path, monkeypatch):
    """Two runs under -q, of kernels with 4 blocks of 256 threads: an addition and two fused ones each, as the software CUDA counts."""
    cuda = SoftCUDA(tmp_path)
    for name, value in cuda.env.items():
        monkeypatch.setenv(name, value)
    *_, output = files(L1_BW_in_GB_per_sec=900)
    app = f"{APPS}/cuda_streams --streams 1 --kernels 3"
    run = roofline("--app", app, "--xstrace", XSTRACE, "--compute-group", "Flops", "--device", tmp_path / "d.csv", "--output", output)
    lines = [line for line in run.stdout.splitlines() if not line.startswith("expected:")]
    (row,) = csv.DictReader(lines[:-1], skipinitialspace=True)
    compute, memory = cuda.kernels[:3], cuda.kernels[3:]
    flop = 3 * 5 * 4 * 256
    assert len(memory) == 3 and float(row["FP32 (GFLOPS)"]) == pytest.approx(flop / sum(k.end - k.start for k in compute), rel=1e-5)
    for level in ("L1", "L3", "gpu_memory"):
        assert float(row[f"AI ({level})"]) == pytest.approx(5 / 96, rel=1e-5)
        assert float(row[f"{level} (GB/s)"]) == pytest.approx(3 * 96 * 4 * 256 / sum(k.end - k.start for k in memory), rel=1e-5)
    assert row["FP16 (GFLOPS)"] == row["FP64 (GFLOPS)"] == "0"


def test_cuda_of_another_group(files):
    time = "=== Device #0 Metrics ===\n\nKernel,GlobalInstanceId,SubDeviceId,gpu__time_duration.sum[ns]"
    given = files(compute=f'{time}\n"axpy",1,0,10\n', memory=f'{time}\n"axpy",1,0,10\n')
    run = roofline(*given, status=1)
    assert "--compute has no metric smsp__sass_thread_inst_executed_op_hadd_pred_on.sum" in run.stderr
