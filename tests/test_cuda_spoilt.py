"""CUDA: whoever writes into the files of the activity, or cuts them, spoils what is in them, and nothing else happens."""

import glob
import os
import shutil
import signal
import time

import pytest
from conftest import APPS, XSTRACE, wait_until
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from test_hostile import Place, drains, place  # noqa: F401

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")
KERNELS = "--chrome-kernel-logging"
MODES = ["bytes", "words", "pointers", "lengths", "heads", "zero", "bits", "swap"]
LAUNCHES = 10_000
ACTIVITY, MADE = 548, 24  # where the words lie, in struct xs_process_file and struct xs_activity_file


def start(place, tmp_path, options=(KERNELS,), **settings):  # noqa: F811
    cuda = SoftCUDA(tmp_path / "out", **settings)
    place.mine = place.mine | {"softcuda.log", "core"}
    place.env |= cuda.env
    run = place.start([XSTRACE, *options, APPS / "cuda_loop", LAUNCHES])
    wait_until(lambda: run.poll() is not None or any(n.startswith("c") and n.endswith(".1") for n in os.listdir(run.dir)))
    return run, cuda


def missing(trace):
    other = trace["otherData"]
    return [other.get(key, 0) for key in ("lost", "corrupt_rings", "impossible_times", "open_commands", "untimed_commands")]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mode", MODES)
def test_scribbler(place, tmp_path, mode):  # noqa: F811
    """Lengths, states, records, names and pointers, at random, all the time: what is not shown is told."""
    run, cuda = start(place, tmp_path, CUT_EVERY=500)
    scribbler = place.scribble(run.dir, "c", mode, 500, seed=MODES.index(mode))
    place.wait(run, 0, 60)
    scribbler.communicate(timeout=30)
    (trace,) = place.traces()
    shown = sum(e.get("cat") == "gpu_op" for e in trace["traceEvents"])
    said = place.stderr.read_text()
    assert shown >= len(cuda.kernels) or any(missing(trace)) or "left out" in said, trace["otherData"]
    # memory of other kinds and numbers are read as they are: but no more than buffers hold
    assert shown < 3 * LAUNCHES


def test_files_that_are_cut(place, tmp_path):  # noqa: F811
    """The program may die of it; the drain process ends, and the trace is whole."""
    run, _ = start(place, tmp_path, CUT_EVERY=500)
    scribbler = place.scribble(run.dir, "c", "cut", 1000)
    run.wait(60)
    wait_until(lambda: not drains(run.dir), 60)
    scribbler.communicate(timeout=30)
    place.look()


@pytest.mark.parametrize("how", ["removed", "replaced", "grown", "a link"])
def test_files_that_are_others(place, tmp_path, how):  # noqa: F811
    run, _ = start(place, tmp_path, CUT_EVERY=2000)
    end = time.monotonic() + 1
    while time.monotonic() < end and run.poll() is None:
        for name in os.listdir(run.dir) if os.path.isdir(run.dir) else []:
            path = os.path.join(run.dir, name)
            if not name.startswith("c") or name.startswith("control"):
                continue
            try:
                if how == "grown":
                    os.truncate(path, 64 << 20)
                    continue
                os.unlink(path)
                if how == "replaced":
                    with open(path, "wb") as file:
                        file.write(os.urandom(1 << 20))
                elif how == "a link":
                    os.symlink(place.victim, path)
            except OSError:
                pass
        time.sleep(0.01)
    place.wait(run, 0, 60)


def left_by_drain(xstrace, tmp_path):
    """A run whose drain process was killed, and its process's pid and number, as they are in names of files."""
    run = xstrace.start(KERNELS, "cuda_loop", [LAUNCHES], env=SoftCUDA(tmp_path, CUT_EVERY=500).env)
    wait_until(lambda: glob.glob(f"{run.dir}/c*.2"))
    os.kill(run.drain, signal.SIGKILL)
    run.wait(60)
    (process,) = (name[1:] for name in os.listdir(run.dir) if name.startswith("p") and ".s" not in name)
    return run, process


@pytest.mark.parametrize("how", ["removed", "cut", "half", "head removed", "head cut", "punched"])
def test_recover_of_files_that_are_spoilt(xstrace, tmp_path, how):
    """Which file it is, is told; or that what is in it is not as it should be."""
    run, process = left_by_drain(xstrace, tmp_path)
    directory = run.dir
    number = "0" if "head" in how else full(directory, process)
    file = os.path.join(directory, f"c{process}.{number}")
    if "removed" in how:
        os.unlink(file)
    elif how == "punched":
        size = os.path.getsize(file)
        os.truncate(file, 4096)
        os.truncate(file, size)
    else:
        os.truncate(file, os.path.getsize(file) // 2 if how == "half" else 0)
    done = xstrace.bare(XSTRACE, ["--recover", directory], cwd=run.cwd)
    assert done.status == 125 and not os.path.exists(directory), done.said
    run.collect()
    assert len(run.trace.device) < LAUNCHES
    if how == "punched":
        assert any("not as they should be" in line for line in done.said) and run.trace.other["corrupt_rings"] == 1
    else:
        (line,) = [line for line in done.said if "could not be read" in line]
        assert f"c{process}.{number}: it was {'removed' if 'removed' in how else 'cut'}" in line and run.trace.other["unread_files"] == 1


@pytest.mark.parametrize("which", ["head", "buffer"])
def test_recover_with_a_copy_of_a_file(xstrace, tmp_path, which):
    """What an equal file holds is read, but CUPTI would go on writing into the one that was made."""
    run, process = left_by_drain(xstrace, tmp_path)
    name = f"c{process}.{full(run.dir, process) if which == 'buffer' else 0}"
    shutil.copy2(f"{run.dir}/{name}", f"{run.dir}/copy")
    os.rename(f"{run.dir}/copy", f"{run.dir}/{name}")
    done = xstrace.bare(XSTRACE, ["--recover", run.dir], cwd=run.cwd)
    (line,) = [line for line in done.said if "could not be read" in line]
    assert done.status == 125 and f"{name}: it is another file" in line
    run.collect()
    assert len(run.trace.device) == LAUNCHES and run.trace.other["unread_files"] == 1


@pytest.mark.parametrize("word", ["activity", "made"])
def test_recover_where_a_word_says_that_there_are_no_files(xstrace, tmp_path, word):
    """The program's own file says whether there are any, their first one which: the files that are there are read, and the word is told."""
    run, process = left_by_drain(xstrace, tmp_path)
    file, at, size = (f"p{process}", ACTIVITY, 4) if word == "activity" else (f"c{process}.0", MADE, 8)
    with open(os.path.join(run.dir, file), "r+b") as out:
        out.seek(at)
        assert int.from_bytes(out.read(size), "little") in ((1,) if word == "activity" else [(1 << n) - 1 for n in range(2, 65)])
        out.seek(at)
        out.write(bytes(size))
    done = xstrace.bare(XSTRACE, ["--recover", run.dir], cwd=run.cwd)
    assert done.status == 125 and any("not as they should be" in line for line in done.said), done.said
    run.collect()
    other = run.trace.other
    assert len(run.trace.device) == LAUNCHES and other["corrupt_rings"] == 1, other


def full(directory, process):
    """The number of a buffer that nobody had read when the drain process was killed."""
    for number in range(1, 65):
        with open(os.path.join(directory, f"c{process}.{number}"), "rb") as file:
            if file.read(4) == b"\2\0\0\0":
                return number
    raise AssertionError("no buffer is full")


@pytest.mark.long
def test_tiny_buffers(place, tmp_path):  # noqa: F811
    """A buffer for each record: all are read, and the memory does not grow."""
    run, cuda = start(place, tmp_path, CUT_EVERY=1, SYNC=1)
    place.wait(run, 0, 120)
    (trace,) = place.traces()
    shown = sum(e.get("cat") == "gpu_op" for e in trace["traceEvents"])
    assert shown + sum(missing(trace)) >= len(cuda.kernels) == LAUNCHES and shown <= LAUNCHES
