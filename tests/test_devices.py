"""--device-list, --metric-list, --devices-to-sample: what is there, and only a part of it."""

import re
import subprocess

import pytest

from conftest import APPS, BUILD, XSTRACE

SOFTGPU = BUILD / "tests/softgpu/libze_softgpu.so"
NO_OPENCL = {"OCL_ICD_VENDORS": "/nonexistent"}
NO_LEVEL_ZERO = {"ZE_ENABLE_ALT_DRIVERS": "/nonexistent"}
needs_softgpu = pytest.mark.skipif(not SOFTGPU.exists(), reason="no Level Zero headers")


def softgpu(count, tiles=0):
    return {
        "ZE_ENABLE_ALT_DRIVERS": str(SOFTGPU),
        "SOFTGPU_DEVICES": str(count),
        "SOFTGPU_TILES": str(tiles),
    }


def listing(xstrace, *options, env):
    run = xstrace.bare(XSTRACE, options, env=env)
    assert (run.status, run.err, run.said) == (0, "", [])
    return run.out


def devices(text):
    """[{key: value}] of a list, with "name"."""
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"Device #(\d+): (.*)", line):
            assert int(match[1]) == len(found)
            found.append({"name": match[2]})
        elif match := re.fullmatch(r"  ([\w ]+): (.*)", line):
            found[-1][match[1]] = match[2]
    return found


def test_neither_api_has_anything(xstrace):
    text = listing(xstrace, "--device-list", env=NO_OPENCL | NO_LEVEL_ZERO)
    assert text.startswith("No device found.\n")
    assert "Level Zero: it has no driver." in text and "OpenCL: it has no device." in text


def test_opencl(xstrace):
    (device,) = devices(listing(xstrace, "--device-list", env=NO_LEVEL_ZERO))
    assert "OpenCL (device 0, Portable Computing Language)" == device["APIs"]
    assert device["Type"] == "CPU" and device["Memory"].endswith(" GiB") and device["name"]


@needs_softgpu
def test_level_zero(xstrace):
    found = devices(listing(xstrace, "--device-list", env=softgpu(2, 3) | NO_OPENCL))
    assert [d["name"] for d in found] == ["SoftGPU 0", "SoftGPU 1"]
    assert [d["APIs"] for d in found] == ["Level Zero (device 0)", "Level Zero (device 1)"]
    assert len({d["PCI address"] for d in found}) == len({d["UUID"] for d in found}) == 2
    for device in found:
        assert re.fullmatch(r"[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.[\da-f]", device["PCI address"])
        assert re.fullmatch(r"[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}", device["UUID"])
        assert device["Tiles"] == "3" and device["Memory"] == "16.0 GiB"
        assert device["Engines"] == "group 0: 4 compute, group 1: 1 copy, group 2: 2 copy"
        assert device["Clock"] == "1000 MHz" and device["Type"] == "GPU"


@needs_softgpu
def test_both_are_one_list(xstrace):
    found = devices(listing(xstrace, "--device-list", env=softgpu(2)))
    assert [d["APIs"].split(" (")[0] for d in found] == ["Level Zero", "Level Zero", "OpenCL"]


@needs_softgpu
def test_metrics(xstrace):
    text = listing(xstrace, "--metric-list", env=softgpu(2))
    groups = re.findall(r"^Device #(\d+), group (\w+) \((\w+); domain \d+\): .+", text, re.M)
    one = [("ComputeBasic", "query"), ("ComputeBasic", "sampling"), ("EuStallSampling", "sampling")]
    one += [(name, how) for how in ("sampling", "query") for name in ("MemoryProfile", "MemoryTwin")]
    assert groups == [(str(i), *group) for i in range(2) for group in one]
    assert len(re.findall(r"^  GpuTime \[ns\]: ", text, re.M)) == 12
    assert len(re.findall(r"^  IP \[Address\]: ", text, re.M)) == 2
    both = listing(xstrace, "--device-list", "--metric-list", env=softgpu(2))
    assert both.startswith("Device #0: SoftGPU 0\n") and both.endswith(text)


def test_no_metrics(xstrace):
    text = listing(xstrace, "--metric-list", env=NO_LEVEL_ZERO)
    assert text.startswith("No metrics: ") and text.count("\n") == 1


@pytest.mark.parametrize("option", ["--device-list", "--metric-list"])
def test_the_lists_take_no_application(xstrace, option):
    run = xstrace(option, "true")
    assert run.status == 125 and len(run.said) == 1 and option in run.said[0]


# ---- --devices-to-sample ----


def work(run):
    return sum(len(t.device) for t in run.traces)


def test_the_only_device(xstrace):
    run = xstrace("--chrome-kernel-logging --devices-to-sample 0", "cl_dlopen", env=NO_LEVEL_ZERO)
    run.check_expected()


@needs_softgpu
def test_another_device(xstrace):
    """Calls are there, device work is not, and the program sees its queue as it made it."""
    options = "--chrome-kernel-logging --devices-to-sample"
    other = xstrace(f"{options} 0-1", "cl_dlopen", env=softgpu(2))
    assert other.status == 0 and work(other) == 0
    # nothing is missing: it was not asked for
    assert not [line for line in other.said if "commands of process" in line]
    assert not [t for t in other.traces if "untimed_commands" in t.other]
    assert [c for t in other.traces for c in t.calls if c.name == "clEnqueueNDRangeKernel"]
    assert not [e for t in other.traces for e in t.events if e["ph"] in "sf"]
    xstrace(f"{options} 2", "cl_dlopen", env=softgpu(2)).check_expected()
    matrix = xstrace(f"{options}=0", "cl_matrix", ["--no-profiling"], env=softgpu(2))
    assert (matrix.status, work(matrix)) == (0, 0)


@needs_softgpu
@pytest.mark.parametrize(
    "numbers, bad, shown", [("3", "3", 0), ("256", "256", 0), ("0,7", "7", 5), ("1,7", "7", 0), ("1-4", "4", 0), ("7,1,0-2", "7", 5)]
)
def test_a_number_that_no_device_has(xstrace, numbers, bad, shown):
    """Said before the program starts, and passed over; where none is left, no work of devices is recorded, as in unitrace."""
    options = f"--chrome-kernel-logging --devices-to-sample {numbers}"
    run = xstrace(options, "ze_matrix", ["--kernels", "5", "--device", "0"], env=softgpu(2) | NO_OPENCL)
    assert run.status == 0
    assert len([line for line in run.said if f"no device {bad};" in line]) == 1
    assert len([line for line in run.said if "--devices-to-sample" in line]) == 1
    assert sum("global" in s.args for t in run.traces for s in t.device) == shown


@needs_softgpu
def test_numbers_add_up(xstrace):
    options = "--chrome-kernel-logging --devices-to-sample 0 --devices-to-sample 2"
    for device, shown in ((0, 5), (1, 0), (2, 5)):
        run = xstrace(options, "ze_matrix", ["--kernels", "5", "--device", device], env=softgpu(3))
        assert sum("global" in s.args for t in run.traces for s in t.device) == shown


def test_no_device_to_choose_from(xstrace):
    run = xstrace("-d --devices-to-sample 0", "echo", ["ran"], env=NO_OPENCL | NO_LEVEL_ZERO)
    assert (run.status, run.out) == (0, "ran\n")
    assert any("no device found here" in line for line in run.said)


@pytest.mark.parametrize("numbers", ["gpu", "-1", "0,", "2-1", ""])
def test_bad_numbers(xstrace, numbers):
    run = xstrace(["-d", f"--devices-to-sample={numbers}"], "true")
    assert run.status == 125 and len(run.said) == 1 and "--devices-to-sample" in run.said[0]


def test_a_driver_that_crashes(xstrace):
    """The program is not begun: it would be sampled otherwise than asked for."""
    source, library = xstrace.home / "crash.c", xstrace.home / "libze_loader.so.1"
    names = ["Init", "DriverGet", "DeviceGet", "DeviceGetProperties", "DeviceGetSubDevices"]
    names += ["DeviceGetMemoryProperties", "DeviceGetCommandQueueGroupProperties"]
    source.write_text("".join(f"int ze{name}(void) {{ __builtin_trap(); }}\n" for name in names))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    env = {"LD_LIBRARY_PATH": str(xstrace.home)}
    run = xstrace("-d --devices-to-sample 0", "echo", ["ran"], env=env)
    assert (run.status, run.out) == (125, "")
    assert len(run.said) == 1 and "looking for the devices failed" in run.said[0]


def test_calls_of_all_devices_stay(xstrace):
    run = xstrace("-h --devices-to-sample 0", APPS / "cl_dlopen", env=NO_LEVEL_ZERO)
    assert run.status == 0


@needs_softgpu
@pytest.mark.parametrize("device", [0, 1, 2])
def test_level_zeros_devices(xstrace, device):
    """Work of the other devices stays away, also of their tiles; calls are all there."""
    options = "--chrome-kernel-logging --devices-to-sample 0,2"
    for more in ([], ["--tile", "1"]):
        args = ["--kernels", "5", "--device", device, *more]
        run = xstrace(options, "ze_matrix", args, env=softgpu(3, 2))
        assert run.status == 0
        launches = [c for t in run.traces for c in t.calls if "LaunchKernel" in c.name]
        assert len(launches) >= 5
        kernels = sum("global" in s.args for t in run.traces for s in t.device)
        assert kernels == (0 if device == 1 else 5)
        if device == 1:
            assert work(run) == 0
