"""tests/gpu/run, with the software CUDA in the place of a GPU."""

import re
import subprocess

import pytest
from conftest import BUILD, ROOT
from cuda_log import HAVE_SOFTCUDA

usual = BUILD == ROOT / "build"


@pytest.mark.long
@pytest.mark.skipif(not HAVE_SOFTCUDA or not usual, reason="no software CUDA in build/")
def test_the_script_works():
    done = subprocess.run([ROOT / "tests/gpu/run", "--software", "--quick"], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("loop", "streams", "graph"):
        assert f"ok     {what}: launched = reported" in done.stdout
    assert re.search(r"^  bare CUPTI, empty buffers +\d+\.\d$", done.stdout, re.M)
    assert "not checked:\n  a GPU" in done.stdout and "WRONG" not in done.stdout
