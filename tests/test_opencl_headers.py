"""The wrappers of OpenCL's functions are those of the installed headers, in whichever style these declare the loader's table."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

INSTALLED = Path("/usr/include/CL/cl_icd.h")
OLDER = r"typedef ([\w \*]+?)\(CL_API_CALL \*cl_api_(cl\w+)\)\("


def wrappers(folder, *flags):
    folder.mkdir()
    command = [
        sys.executable,
        ROOT / "interpose/generate.py",
        ROOT / "interpose/opencl.toml",
        folder,
        "cc",
        "-DCL_TARGET_OPENCL_VERSION=300",
    ]
    subprocess.run([*command, *flags], check=True)
    return (folder / "opencl_wrap.c").read_text()


@pytest.mark.skipif(not INSTALLED.exists(), reason="no headers of OpenCL")
def test_both_styles_of_headers(tmp_path):
    """Since 2024 the table has "clFoo_t *clFoo" in place of "cl_api_clFoo clFoo"."""
    text = INSTALLED.read_text()
    if not re.search(OLDER, text):
        pytest.skip("the installed headers are newer ones already")
    text = re.sub(OLDER, r"typedef \1 CL_API_CALL \2_t(", text)
    text = re.sub(r"\bcl_api_(cl\w+) (cl\w+);", r"\1_t *\2;", text)
    (tmp_path / "CL").mkdir()
    (tmp_path / "CL/cl_icd.h").write_text(text)
    installed, newer = wrappers(tmp_path / "installed"), wrappers(tmp_path / "newer", f"-I{tmp_path}")
    assert len(re.findall(r"layer->cl\w+ = ", installed)) > 100
    assert re.findall(r"layer->cl\w+ = ", newer) == re.findall(r"layer->cl\w+ = ", installed)
