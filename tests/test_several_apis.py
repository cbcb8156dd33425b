"""One program that uses several APIs with devices: each counts its devices and commands by itself."""

import collections

import pytest
from conftest import BUILD
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from gpu_log import DRIVER, SoftGPU

pytestmark = [
    pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI"),
    pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers"),
]
needs_opencl = pytest.mark.skipif(not (BUILD / "tests/apps/cl_open").exists(), reason="no OpenCL headers")


@pytest.mark.parametrize("words", [[7], pytest.param([7, "opencl"], marks=needs_opencl)], ids=str)
@pytest.mark.parametrize("form", ["chrome", "perfetto", "kineto"])
def test_devices_and_arrows(xstrace, tmp_path, form, words):
    """Each API's device is a process of its own, and no arrow has the number of another one (what check_trace() looks for)."""
    cuda, gpu = SoftCUDA(tmp_path), SoftGPU(tmp_path)
    run = xstrace(f"--chrome-kernel-logging --format {form}", "ze_cuda", words, env=cuda.env | gpu.env)
    assert run.status == 0 and run.out == "launched 7 and 7 kernels\n"
    work = collections.defaultdict(collections.Counter)
    for one in run.trace.slices:
        if one.cat in ("gpu_op", "kernel", "gpu_memcpy"):
            work[one.track[0]][one.base.removeprefix("Memcpy (").removesuffix(")")] += 1
    assert sorted(map(dict, work.values()), key=str) == [
        *([{"clEnqueueWriteBuffer": 7}] if len(words) > 1 else []),
        {"empty": 7},
        {"nothing": 7},
    ]
