"""A group with a limit of memory (container, batch job): rings and histories stay within their share of it, so that the kernel ends nobody."""

import glob
import os
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, Trace, mounted, root_only
from test_backlog import SMALL, backlog_bytes, start_on_disk

ITT = "--chrome-itt-logging"
MIB = 1 << 20
# in a mount namespace of its own the program sees these groups and not the machine's
SEEN = 'mount --bind "$0" /sys/fs/cgroup && exec "$@"'
V1, V2 = ("memory", ":memory:", "memory.limit_in_bytes"), ("", "0::", "memory.max")


def groups(tmp_path, kind, own, limit):
    """A tree with the limit in our own group, below a root that has none, or in the root alone, as a container sees its group."""
    folder, mark, name = kind
    lines = [line for line in Path("/proc/self/cgroup").read_text().splitlines() if mark in line]
    path = lines[0].partition(mark)[2].strip("/") if lines else ""
    if own and not path:
        pytest.skip("our group is the root")
    root = tmp_path / "groups" / folder
    (root / path if own else root).mkdir(parents=True)
    (root / name).write_text("max\n" if kind is V2 else f"{(1 << 63) - 4096}\n")
    (root / path / name if own else root / name).write_text(f"{limit}\n")
    return tmp_path / "groups"


def run(tmp_path, tree, *command):
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    done = subprocess.run(["unshare", "-m", "sh", "-c", SEEN, tree, XSTRACE, *command], cwd=out, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done, [Trace(path) for path in glob.glob(str(out / "*.json"))]


@root_only
@pytest.mark.parametrize("own", (False, True), ids=("container", "group"))
@pytest.mark.parametrize("kind", (V1, V2), ids=("v1", "v2"))
def test_rings_fit_the_group(tmp_path, kind, own):
    """A quarter of it is for rings, half of that for the first eight: 40 threads at once have one, in whatever order they run."""
    _, (trace,) = run(tmp_path, groups(tmp_path, kind, own, 16 * MIB), ITT, APPS / "itt_threads", "96", "32")
    assert trace.metadata["ring_size"] == 256 << 10 and trace.other["lost"] == 0


@root_only
def test_no_room_for_more_rings(tmp_path):
    """Threads beyond what the group has room for are not recorded, and that is told; the program goes on."""
    tree = groups(tmp_path, V2, False, 2 * MIB)
    done, (trace,) = run(tmp_path, tree, ITT, APPS / "itt_threads", "640", "64")
    lost = trace.other["lost"]
    assert trace.metadata["ring_size"] == 64 << 10 and 2 * trace.count("tasks") + lost == 2 * 640  # a begin and an end
    assert (f"{lost} event" in done.stderr) == (lost > 0)


@root_only
def test_rings_of_ended_processes_do_not_count(tmp_path):
    """Of 60 processes one after the other each finds room, where eight at once would fill it."""
    tree = groups(tmp_path, V2, False, 2 * MIB)
    script = f"for i in $(seq 60); do {APPS}/itt_tasks 5 1; sleep 0.02; done"
    done, traces = run(tmp_path, tree, ITT, "sh", "-c", script)
    assert len(traces) == 60 and "lost" not in done.stderr


@root_only
def test_the_backlog_stays_within_its_share(xstrace, tmp_path):
    """An eighth of it, also where that is less than what is otherwise had at once."""
    with mounted("/sys/fs/cgroup", "size=1M"):
        Path("/sys/fs/cgroup/memory.max").write_text(f"{4 * MIB}\n")
        run, app, _ = start_on_disk(xstrace, options=f"{SMALL} --backlog-disk 8M")
        assert 0 < backlog_bytes(run) <= MIB // 2 + 65536  # and its table
    os.kill(app, signal.SIGKILL)
    run.finish()
