"""--compress=zstd: independent frames of whole lines, written as they come, good up to any cut."""

import os
import random
import re
import shutil
import signal
import subprocess

import pytest
import zstandard

from conftest import Trace, wait_until

OPTIONS = "--chrome-itt-logging --compress=zstd"


def frames(path):
    """The decompressed text of each frame, each by a decompressor of its own."""
    data, texts = path.read_bytes(), []
    while data:
        one = zstandard.ZstdDecompressor().decompressobj()
        texts.append(one.decompress(data))
        assert one.eof
        data = one.unused_data
    return texts


@pytest.mark.long
def test_scripts_read_it(xstrace):
    run = xstrace(OPTIONS, "itt_tasks", [50000, 2]).check_expected()
    assert re.fullmatch(r"itt_tasks\.\d+\.json\.zst", run.trace.path.name)
    plain = xstrace("--chrome-itt-logging", "itt_tasks", [50000, 2])
    sizes = [r.trace_files[0].stat().st_size for r in (run, plain)]
    assert sizes[0] * 5 < sizes[1]


def test_frames_are_independent_and_hold_whole_lines(xstrace):
    run = xstrace(OPTIONS, "itt_tasks", [100000]).check_expected()
    texts = frames(run.trace_files[0])
    assert len(texts) > 8
    assert all(text.endswith(b"\n") and len(text) < 2 << 20 for text in texts)
    assert texts[0].startswith(b'{"displayTimeUnit"')
    data = run.trace_files[0].read_bytes()
    starts = [m.start() for m in re.finditer(re.escape(zstandard.FRAME_HEADER), data)]
    assert len(starts) >= len(texts)
    if shutil.which("zstd"):
        assert subprocess.run(["zstd", "-tq", run.trace_files[0]]).returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["json", "json.zst"])
def test_a_cut_file_opens_up_to_the_cut(xstrace, suffix):
    run = xstrace(
        OPTIONS if suffix.endswith("zst") else "--chrome-itt-logging", "itt_tasks", [30000, 2]
    )
    whole = run.trace.events
    data = run.trace_files[0].read_bytes()
    last_frame = len(frames(run.trace_files[0])[-1]) if suffix.endswith("zst") else 0
    cut = xstrace.home / f"cut.{suffix}"
    offsets = [random.Random(i).randrange(len(data)) for i in range(8)] + [
        1,
        2,
        3,
        5,
        len(data) - 2,
    ]
    for offset in offsets:
        cut.write_bytes(data[:offset])
        trace = Trace(cut)
        assert trace.truncated and not trace.damage
        assert trace.events == whole[: len(trace.events)]
        # what lies in complete frames (of about 1 MiB) is all there; 90 bytes is a short event
        missing = len(whole) * (1 - offset / len(data))
        assert len(whole) - len(trace.events) <= missing + (2 << 20) / 90 + last_frame, offset


@pytest.mark.long
@pytest.mark.parametrize("whom", ["app", "drain"])
def test_it_is_written_as_it_streams(xstrace, whom):
    """Not at the end: frames are there while the app runs, and whoever is killed then."""
    run = xstrace.start(OPTIONS, "itt_tasks", [200000, "--hold"])
    path = wait_until(lambda: next(run.cwd.glob("*.zst"), None))
    wait_until(lambda: path.stat().st_size > 1000 and len(Trace(path).tasks) > 190000)
    assert len(frames(path)) > 5
    os.kill(run.drain if whom == "drain" else run.child("itt_tasks"), signal.SIGKILL)
    if whom == "drain":
        wait_until(lambda: "--recover" in (run.log / "stderr").read_text())
        assert Trace(path).truncated
        xstrace.left_behind = True
        return
    run.finish()
    assert run.trace.count("tasks") == 200000


def test_compress_none(xstrace):
    run = xstrace("--chrome-itt-logging --compress none", "itt_tasks", [5])
    assert run.trace_files[0].suffix == ".json"


def test_opencl(xstrace):
    run = xstrace("--chrome-kernel-logging --compress zstd", "cl_matrix").check_expected()
    assert run.status == 0
