"""What the bench prints can be relied on; the figures themselves are nobody's test."""

import re
import subprocess

import pytest

from conftest import BUILD, ROOT, XSTRACE


@pytest.mark.skipif(not (BUILD / "tests/softgpu/libze_softgpu.so").exists(), reason="no Level Zero headers")
def test_side_by_side():
    """bench/beside finds what a tracer tells of the device's work; here the other tracer is xstrace too."""
    run = subprocess.run(
        [ROOT / "bench/beside", XSTRACE, "--rounds", "1"], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    told = re.findall(r"(\d+) of (\d+) \| ([\d.]+) %", run.stdout)
    assert len(told) == 44 and all(said == done for said, done, _ in told)
    assert all(98 < float(percent) < 101 for _, _, percent in told)
