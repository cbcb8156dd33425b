"""SYCL's runtime (PyPI's, through dpctl) on the software driver: Intel's own two adapters for Level Zero are what is traced.

Needs a loader that is younger than Debian's: with 1.8 the runtime fails without xstrace, too. XSTRACE_TEST_ZE_LOADER names the folder of one.
"""

import os
import re
from pathlib import Path

import pytest

from gpu_log import SoftGPU
from others import CCL, PROGRAMS, needs_clients
from conftest import BUILD

LOADER = os.environ.get("XSTRACE_TEST_ZE_LOADER", "")
pytestmark = [
    needs_clients,
    pytest.mark.skipif(not LOADER, reason="XSTRACE_TEST_ZE_LOADER does not name the folder of a newer libze_loader.so.1"),
    pytest.mark.skipif(not list(CCL.glob("lib/python3*/site-packages/dpctl")), reason="no dpctl in .venv-ccl; scripts/setup --clients installs it"),
]


@pytest.mark.parametrize("properties", ["", "in_order", "enable_profiling", "in_order,enable_profiling"])
@pytest.mark.parametrize("adapter", [1, 2])
def test_kernels_and_copies(xstrace, tmp_path, adapter, properties):
    gpu = SoftGPU(tmp_path)
    env = {**gpu.env, "LD_LIBRARY_PATH": str(Path(LOADER).resolve()), "SYCL_UR_USE_LEVEL_ZERO_V2": str(adapter - 1)}
    words = [PROGRAMS / "sycl_queue.py", BUILD / "tests/softgpu/ze_kernels.so", properties]
    run = xstrace("--chrome-kernel-logging --chrome-call-logging", CCL / "bin/python", words, env=env)
    assert run.status == 0, run.err
    assert not any("WARNING" in line for line in run.said)
    assert "zeInitDrivers" in {s.name for s in run.trace.calls}
    count, items = map(int, run.out.split())
    kernels = [s for s in run.trace.device if s.base == "empty"]
    assert len(kernels) == count == len(gpu.kernels)
    sizes = [list(map(int, re.findall(r"\d+", s.name.split("{", 1)[1]))) for s in kernels]
    assert sum(x * y * z * a * b * c for x, y, z, a, b, c in sizes) == items
    assert sorted(s.args["bytes"] for s in run.trace.device if s.args.get("bytes")) == sorted(c.bytes for c in gpu.copies if c.bytes)
    assert sorted(s.end - s.start for s in kernels) == pytest.approx(sorted(k.end_ns - k.start_ns for k in gpu.kernels), abs=60, rel=1e-3)
