"""Rings that fill faster than their records become text: the program goes on, and nothing is lost or out of order."""

import contextlib
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, XSTRACE, append_only, mounted, root_only, wait_until
from test_endings import check_truth, recover, truth
import kept

ITT = "--chrome-itt-logging"
SMALL = f"{ITT} --ring-size 64K"
MIB = 1 << 20


def backlog_bytes(run):
    """Memory of the run's backlog; 0: it has none."""
    try:
        return os.stat(f"{run.dir}/backlog").st_blocks * 512
    except OSError:
        return 0


def in_order(trace):
    for tasks in trace.by_thread(trace.tasks).values():
        starts = [task.start for task in tasks]
        assert starts == sorted(starts)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("options", ["", "--backlog 0", "--backlog 256K", "--backlog 1M", "--compress zstd", "--on-full drop"])
def test_nothing_is_lost(xstrace, options):
    run = xstrace(f"{SMALL} {options}", "itt_tasks", [12000, 4])
    if "drop" not in options:
        run.check_expected()
        assert run.trace.other["lost"] == 0
    assert "corrupt_rings" not in run.trace.other
    in_order(run.trace)


def recovered(run):
    """Completed by --recover, or by one before it that was quicker than the signal which was to end it."""
    return recover(run) if run.dir else run.collect()


def start_stress(xstrace, options, least, threads=2):
    """
    A program that works until it is killed, and has so much in its backlog; and its pid.

    Its disk is small: on a busy machine gigabytes would wait there before somebody looks.
    """
    path = xstrace.home / "truth"
    run = xstrace.start(f"--backlog-disk 8M {options}", "itt_stress", [path, threads, 0])
    app = run.child("itt_stress")
    run.wait_for_output()
    wait_until(lambda: backlog_bytes(run) >= least)
    return run, app, path


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("options", ["", "--compress zstd"])
def test_a_killed_program_has_all_that_it_did(xstrace, options):
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 2M {options}", MIB)
    os.kill(app, signal.SIGKILL)
    run.finish()
    assert run.status == -signal.SIGKILL
    check_truth(run.trace, path)
    assert run.trace.other["lost"] == 0


def test_a_full_backlog_grows_no_further(xstrace):
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 1M", MIB * 3 // 4)
    for _ in range(50):
        assert backlog_bytes(run) <= MIB + 65536  # and its table
    os.kill(app, signal.SIGKILL)
    run.finish()
    check_truth(run.trace, path)


@pytest.mark.long
def test_a_full_backlog_costs_little(xstrace):
    """Many threads that all want more of it than there is wait about as long as without one."""

    def seconds(options):
        run = xstrace(f"{SMALL} {options}", "itt_tasks", [5000, 64])
        run.check_expected()
        return run.seconds

    without, full = [], []
    for _ in range(6):  # others may have the processors
        without.append(seconds("--backlog 0"))
        full.append(seconds("--backlog 1M"))
        if min(full) < 3 * min(without):
            return
    pytest.fail(f"{min(full):.2f} s, and {min(without):.2f} s without a backlog")


@pytest.mark.parametrize("twice", [False, True])
def test_a_killed_drain_process_leaves_its_backlog(xstrace, twice):
    """All that was moved is in the trace; what the program did later may be lost."""
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 2M", MIB)
    os.kill(run.drain, signal.SIGKILL)
    moved = backlog_bytes(run)
    os.kill(app, signal.SIGKILL)
    run.wait()
    if twice:  # a successor, too, is killed in the middle of it
        wait_until(lambda: not os.path.exists(f"/proc/{app}"))
        process = subprocess.Popen([XSTRACE, "--recover", run.dir], cwd=run.cwd, stderr=subprocess.DEVNULL)
        process.kill()
        process.wait()
    recovered(run)
    check_truth(run.trace, path, all_of_them=False)
    assert "corrupt_rings" not in run.trace.other
    # some of its chunks may have been read already, or be new: a half is on the safe side
    assert run.trace.other["events"] * 16 >= moved // 2


def rings_told(run, app, done):
    """How many rings the trace counts as corrupt; --recover, which is `done`, told of as many."""
    rings = run.collect().trace.other.get("corrupt_rings", 0)
    assert done.returncode == (125 if rings else 0), done.stderr
    told = (
        f"[WARNING] {rings} ring{'s' * (rings != 1)} of process {app} (itt_stress) {'was' if rings == 1 else 'were'} not as they should be"
    )
    assert (told in done.stderr) == (rings > 0), done.stderr
    return rings


# In a moment at which all has been read there is nothing to spoil.
ATTEMPTS = range(5)


def test_a_backlog_that_was_cut_is_told(xstrace):
    def rings():
        run, app, _ = start_stress(xstrace, f"{SMALL} --backlog 2M --backlog-disk 0", MIB)
        os.kill(run.drain, signal.SIGKILL)
        os.truncate(f"{run.dir}/backlog", 4096)
        os.kill(app, signal.SIGKILL)
        run.wait()
        wait_until(lambda: not os.path.exists(f"/proc/{app}"))
        done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True, timeout=60)
        return rings_told(run, app, done)

    assert any(rings() for _ in ATTEMPTS)


@pytest.mark.parametrize("change", [16, -1, 1 << 40], ids=["between steps", "between records", "far away"])
def test_where_it_was_kept_wrongly_how_far_a_ring_was_moved(xstrace, change):
    """Such a ring is read from its own tail on, and a line says which file cannot be used."""
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 2M --backlog-disk 0", MIB)
    os.kill(run.drain, signal.SIGKILL)
    (file,) = Path(run.dir).glob("d*")
    changed = 0
    with file.open("r+b") as stream:
        for page in range(kept.HEADER, file.stat().st_size, kept.PAGE):
            stream.seek(page + kept.MOVED)
            (moved,) = struct.unpack("<Q", stream.read(8))
            if moved:
                stream.seek(page + kept.MOVED)
                stream.write(struct.pack("<Q", moved + change))
                changed += 1
    os.kill(app, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{app}"))
    done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True, timeout=60)
    assert changed and done.returncode == 125 and f"{file.name}, what the drain process kept" in done.stderr, done.stderr
    threads = run.collect().trace.by_thread(run.trace.tasks)
    assert run.trace.other["corrupt_rings"] == changed
    assert all(0 < len(threads[tid]) <= begun for tid, begun, _ in truth(path))


def test_memory_is_given_back(xstrace):
    """While the program goes on, once the text is written; 4 MiB are kept for the next time."""
    run, app, _ = start_stress(xstrace, f"{SMALL} --backlog 8M", 7 * MIB)
    os.kill(app, signal.SIGSTOP)
    wait_until(lambda: backlog_bytes(run) <= 5 * MIB)
    os.kill(run.pid, signal.SIGCONT)  # it stops as its child does
    os.kill(app, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not run.dir)
    (trace,) = run.cwd.glob("*.json")
    assert trace.stat().st_size > 10 * MIB  # far too much to be read here
    trace.unlink()


def test_stop_writes_the_backlog(xstrace):
    run, app, path = start_stress(xstrace, f"{SMALL} --backlog 2M --session backlog-{os.getpid()}", MIB)
    stop = [XSTRACE, "--stop", f"backlog-{os.getpid()}"]
    result = subprocess.run(stop, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    os.kill(app, signal.SIGKILL)
    run.finish()
    check_truth(run.trace, path, all_of_them=False)
    assert run.trace.other["lost"] == 0 and run.trace.other["events"] * 16 >= MIB


def test_logged_calls_are_complete(xstrace):
    """-c reads all rings in the order of time: each call has its two lines, in their order."""
    logs = {}
    for options in ("--backlog 0", "--backlog 64M"):
        run = xstrace(f"-c --ring-size 64K {options} -o log.txt", "cl_enqueue", [3, 1000])
        (log,) = run.cwd.glob("log*.txt")
        calls = re.findall(r"^(>>>>|<<<<) \[\d+\] (clSetKernelArg|clGetDeviceInfo)\b", log.read_text(), re.M)
        log.unlink()
        logs[options] = calls
    assert len(logs["--backlog 0"]) > 8000 and logs["--backlog 0"] == logs["--backlog 64M"]


# ---- what has no place in memory ----

DISK = f"{SMALL} --backlog 256K --backlog-disk 8M"


def spools(*directories):
    return [file for directory in directories for file in directory.glob(".xstrace-backlog-*")]


def disk_bytes(run):
    """What the run keeps on disk."""
    total = 0
    for file in spools(run.cwd):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_blocks * 512
    return total


def start_on_disk(xstrace, least=MIB, options=DISK, threads=2):
    """A program that works until it is killed, and has so much on disk; its pid, and what it did."""
    path = xstrace.home / "truth"
    run = xstrace.start(options, "itt_stress", [path, threads, 0])
    app = run.child("itt_stress")
    run.wait_for_output()
    wait_until(lambda: disk_bytes(run) >= least)
    return run, app, path


def test_what_has_no_memory_goes_to_disk(xstrace):
    """Four times what the memory holds."""
    run, app, path = start_on_disk(xstrace, MIB)
    assert backlog_bytes(run) <= MIB // 4 + 65536  # and its table
    (spool,) = spools(run.cwd)
    assert spool.stat().st_mode & 0o7777 == 0o600
    os.kill(app, signal.SIGKILL)
    run.finish()
    check_truth(run.trace, path)
    assert run.trace.other["lost"] == 0 and "corrupt_rings" not in run.trace.other
    in_order(run.trace)
    assert not spools(run.cwd)


@root_only
def test_a_disk_file_that_cannot_be_removed_is_told(xstrace):
    with append_only(xstrace.cwd):
        run, app, path = start_on_disk(xstrace)
        os.kill(app, signal.SIGKILL)
        run.finish()
        (spool,) = spools(run.cwd)
        assert spool.stat().st_size == 0
        (line,) = (line for line in run.said if str(spool) in line)
        assert line.startswith("[WARNING]") and "cannot be removed: Operation not permitted" in line
        check_truth(run.trace, path)


def waits(directory, options):
    """How often the program waited, which does nothing but record; of the trace only the end is read: it is large."""
    command = [XSTRACE, ITT, "--ring-size", "256K", *options.split(), APPS / "itt_tasks", "1500000"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=60)
    (trace,) = directory.glob("*.json")
    with open(trace, "rb") as file:
        file.seek(-4096, os.SEEK_END)
        end = file.read().decode()
    trace.unlink()
    assert '"events":3000000,"lost":0,' in end
    waited = re.search(r'"waits":(\d+)', end)
    return int(waited[1]) if waited else 0


@pytest.mark.long
def test_with_a_disk_the_program_waits_less(tmp_path):
    """48 MB of records, of which memory has a place for 1."""
    for _ in range(8):  # others may have the processors
        without, disk = waits(tmp_path, "--backlog 1M --backlog-disk 0"), waits(tmp_path, "--backlog 1M")
        if disk < without / 2:
            return
    pytest.fail(f"{disk} waits, and {without} without a disk")


@pytest.mark.long
@pytest.mark.parametrize("options", ["--compress zstd", "--on-full drop", "--format perfetto", "--ring-size 64K --backlog-disk 1M"])
def test_every_event_comes_back_from_disk(xstrace, options):
    for _ in range(5):
        # who drops does not wait: many threads are needed until there is more than is read
        run, app, path = start_on_disk(xstrace, MIB // 2, f"{DISK} {options}", threads=8 if "drop" in options else 2)
        os.kill(app, signal.SIGKILL)
        run.wait()
        wait_until(lambda run=run: not run.dir)
        (trace,) = [*run.cwd.glob("*.json*"), *run.cwd.glob("*.pftrace")]
        if trace.stat().st_size < 32 * MIB:
            break
        trace.unlink()  # far too much to be read here
    run.collect()
    if "drop" not in options:
        check_truth(run.trace, path)
        assert run.trace.other["lost"] == 0
    assert "corrupt_rings" not in run.trace.other
    assert not spools(run.cwd)


def test_nothing_on_disk_if_not_wanted(xstrace):
    run, app, path = start_stress(xstrace, f"{DISK} --backlog-disk 0", MIB // 8)
    for _ in range(50):
        assert not spools(run.cwd)
    os.kill(app, signal.SIGKILL)
    run.finish()
    check_truth(run.trace, path)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("twice", [False, True])
def test_a_killed_drain_process_leaves_its_spool(xstrace, twice):
    run, app, path = start_on_disk(xstrace)
    os.kill(run.drain, signal.SIGKILL)
    kept = disk_bytes(run)
    os.kill(app, signal.SIGKILL)
    run.wait()
    if twice:
        wait_until(lambda: not os.path.exists(f"/proc/{app}"))
        process = subprocess.Popen([XSTRACE, "--recover", run.dir], cwd=run.cwd, stderr=subprocess.DEVNULL)
        process.kill()
        process.wait()
    recovered(run)
    check_truth(run.trace, path, all_of_them=False)
    assert "corrupt_rings" not in run.trace.other
    assert run.trace.other["events"] * 16 >= kept // 2
    assert not spools(run.cwd)


def spoil(run, how):
    """Does something to the spool; what stays of it belongs to somebody else."""
    (spool,) = spools(run.cwd)
    if how == "cut":
        os.truncate(spool, 100)
    elif how == "scribbled":
        size = spool.stat().st_size
        with open(spool, "r+b") as file:
            for at in range(0, size, 4096):
                file.seek(at)
                file.write(os.urandom(1024))
    elif how == "gone":
        spool.unlink()
    elif how == "another":
        shutil.copy(spool, spool.with_suffix(".copy"))
        os.replace(spool.with_suffix(".copy"), spool)
    elif how == "link":
        spool.rename(run.cwd / "elsewhere")
        spool.symlink_to(run.cwd / "elsewhere")
    elif how == "fifo":
        spool.unlink()
        os.mkfifo(spool, 0o600)
    else:
        spool.chmod(0o644)


@pytest.mark.long
@pytest.mark.parametrize("how", ["cut", "scribbled", "gone", "another", "link", "fifo", "mode"])
def test_a_spoilt_spool_is_told(xstrace, how):
    def rings():
        run, app, _ = start_on_disk(xstrace, 4 * MIB)  # more than is read before the kill
        os.kill(run.drain, signal.SIGKILL)
        os.kill(app, signal.SIGKILL)
        run.wait()
        spoil(run, how)
        wait_until(lambda: not os.path.exists(f"/proc/{app}"))
        done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True, timeout=60)
        left = spools(run.cwd)
        assert bool(left) == (how not in ("cut", "scribbled", "gone"))  # what is not ours stays
        for file in left:
            file.unlink()
        if how not in ("cut", "scribbled"):
            assert re.search(r"\[WARNING\] \S+/\.xstrace-backlog-\S+, with records that were still to be written: ", done.stderr), (
                done.stderr
            )
        return rings_told(run, app, done)

    assert any(rings() for _ in ATTEMPTS)


@pytest.mark.long
@pytest.mark.parametrize("how", ["cut", "scribbled"])
def test_a_spool_that_is_spoilt_while_it_is_used(xstrace, how):
    run, app, _ = start_on_disk(xstrace, 4 * MIB)
    for _ in range(3):
        spoil(run, how)
    os.kill(app, signal.SIGKILL)
    run.finish()
    assert run.trace.other["corrupt_rings"] > 0
    assert not spools(run.cwd)


def told_of_the_spool(run):
    return [line for line in run.said if "[WARNING] cannot keep records in" in line]


def test_a_file_size_limit_makes_the_thread_wait(xstrace):
    """It is told once, and nothing is lost."""
    limit = 25 * MIB

    def prepare():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    # more threads than the machine has processors: they fill it faster than it is read
    options = f"{SMALL} --backlog 256K --compress zstd"
    run = xstrace.start(options, "itt_stress", [xstrace.home / "truth", 8, 0], preexec_fn=prepare)
    app = run.child("itt_stress")
    run.wait_for_output()
    wait_until(lambda: any(file.stat().st_size > limit - MIB // 4 for file in spools(run.cwd)))
    time.sleep(0.2)  # of which each 50 ms it is tried again
    os.kill(app, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not run.dir)
    assert len(told_of_the_spool(run)) == 1 and "File too large" in told_of_the_spool(run)[0], run.said
    assert not any("lost" in line for line in run.said), run.said
    assert not spools(run.cwd)
    (trace,) = run.cwd.glob("*.json.zst")
    trace.unlink()  # far too much to be read here


@contextlib.contextmanager
def small_disk(home, size):
    image, disk = home / "image", home / "disk"
    with open(image, "wb") as file:
        file.truncate(size)
    disk.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, disk], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no loop device here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.long
@root_only
@pytest.mark.skipif(not shutil.which("mkfs.ext4"), reason="no mkfs.ext4")
def test_a_full_disk_makes_the_thread_wait(xstrace):
    """Where the traces go is memory, so the spool is in TMPDIR, which somebody else fills."""
    path = xstrace.home / "truth"
    with small_disk(xstrace.home, 48 * MIB) as disk, mounted(xstrace.cwd, "size=4g"):
        run = xstrace.start(DISK, "itt_stress", [path, 2, 0], env={"TMPDIR": str(disk)})
        app = run.child("itt_stress")
        run.wait_for_output()
        wait_until(lambda: any(file.stat().st_size > MIB for file in spools(disk)))
        fs = os.statvfs(disk)
        with open(disk / "junk", "wb") as junk, contextlib.suppress(OSError):
            os.posix_fallocate(junk.fileno(), 0, fs.f_bavail * fs.f_frsize)
        os.kill(app, signal.SIGKILL)
        run.finish()
        assert len(told_of_the_spool(run)) <= 1
        check_truth(run.trace, path)
        assert run.trace.other["lost"] == 0 and "corrupt_rings" not in run.trace.other
        assert not spools(run.cwd, disk)


@pytest.mark.parametrize("limit", [8, 9, 10])
def test_recover_that_has_no_descriptors_for_the_spool(xstrace, limit):
    """What is in it is not taken for spoilt: all stays, for a second one."""
    run, app, path = start_on_disk(xstrace, 4 * MIB)
    os.kill(run.drain, signal.SIGKILL)
    os.kill(app, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{app}"))
    directory = run.dir
    done = subprocess.run(
        [XSTRACE, "--recover", directory],
        cwd=run.cwd,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    )
    if done.returncode:
        assert done.returncode == 125 and os.path.exists(directory) and spools(run.cwd), done.stderr
        assert "ulimit -n" in done.stderr
    recovered(run)
    check_truth(run.trace, path, all_of_them=False)
    assert "corrupt_rings" not in run.trace.other and "unread_files" not in run.trace.other
    assert not spools(run.cwd)
