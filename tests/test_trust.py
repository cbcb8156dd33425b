"""Who believes whom: run directories and files that others made, what a program may do to its own, and signals to its parent."""

import glob
import json
import mmap
import fcntl
import os
import platform
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conftest import (
    APPS,
    NOBODY,
    ROOT,
    XSTRACE,
    Trace,
    alive,
    append_only,
    compile_c,
    copy_build,
    mounted,
    root_only,
    wait_until,
)
from test_doctor import DENY
from test_endings import recover, truth
import kept

ITT = "--chrome-itt-logging"
FILES = ("control", "mailbox", "strings")


def control(*words):
    return subprocess.run([XSTRACE, *words], capture_output=True, text=True, timeout=60)


def refusal(*words):
    """The one line with which xstrace refuses."""
    result = control(*words)
    assert result.returncode == 125 and result.stderr.count("\n") == 1, (result.returncode, result.stderr)
    return result.stderr


def as_nobody(*command):
    subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command], check=True)


# ---- a run directory in the place of one that is gone ----


def fake(path, files, public, mode="755"):
    """Another user's directory of that name, with files that look right and a library that tells if it is loaded."""
    os.chmod("/dev/shm", 0o1777)
    for name in files:
        os.chmod(public / name, 0o644)
    source = f'__attribute__((constructor)) static void f(void) {{ close(creat("{public}/loaded", 0666)); }}'
    library = compile_c(public / "libxstrace.so", source, "-shared", "-fPIC")
    as_nobody("mkdir", "-m", mode, path)
    for name in (*files, library.name):
        as_nobody("cp", public / name, f"{path}/{name}")
        as_nobody("chmod", "666", f"{path}/{name}")


def check_fake(path, public, maps):
    assert path not in maps
    assert not [name for name in os.listdir(path) if name.startswith("p")]
    assert not (public / "loaded").exists()
    shutil.rmtree(path)


@root_only
@pytest.mark.parametrize("place", ["plain", "with blank"])
@pytest.mark.parametrize("when", ["stopped", "over"])
def test_a_directory_that_another_user_makes_again(xstrace, public, when, place):
    """Processes keep our variables after --stop and after the end of a run."""
    with mounted("/mnt", "mode=755"):
        (Path("/mnt") / place).mkdir()
        launcher = copy_build(Path("/mnt") / place)
        env = {"XDG_RUNTIME_DIR": "/mnt"}
        script = 'cp "${XSTRACE_RUN%%:*}"/[cms]* "$1"; env -0 > "$1/env"; echo ready; read line; exec cat /proc/self/maps'
        run = xstrace.start(
            f"{ITT} --session s", "sh", ["-c", script, "sh", public], launcher=launcher, env=env, stdin=subprocess.PIPE
        )
        run.wait_for_output()
        path, files = run.dir, [name for name in FILES if (public / name).exists()]
        assert control("--stop", "s").returncode == 0 and not os.path.exists(path)
        fake(path, files, public)
        if when == "stopped":
            run.process.stdin.write(b"\n")
        run.process.stdin.close()
        run.wait()
        maps = run.out
        if when == "over":
            variables = dict(v.split(b"=", 1) for v in (public / "env").read_bytes().split(b"\0") if v)
            maps = subprocess.run(["cat", "/proc/self/maps"], env=variables, capture_output=True, text=True, check=True).stdout
        assert ("libxstrace.so" in maps) and "libxstrace.so" not in run.err
        check_fake(path, public, maps)
    xstrace.left_behind = True


@root_only
def test_root_does_not_join_the_run_of_another_user(xstrace, public):
    """sudo -E and the like carry the variables over."""
    copy_build(public)
    more = {"cwd": public, "user": NOBODY, "group": NOBODY, "extra_groups": []}
    os.chmod("/dev/shm", 0o1777)
    run = xstrace.start(ITT, "sh", ["-c", "env -0 > env; echo ready; sleep 60"], launcher=public / "launcher/xstrace", **more)
    run.wait_for_output()
    variables = dict(v.split(b"=", 1) for v in (public / "env").read_bytes().split(b"\0") if v)
    out = subprocess.run([APPS / "itt_tasks", "5"], env=variables, capture_output=True, text=True, check=True).stdout
    assert "expected: 5 tasks" in out
    assert {os.stat(f"{run.dir}/{name}").st_uid for name in os.listdir(run.dir)} == {NOBODY}
    os.killpg(run.pid, signal.SIGTERM)
    run.finish()


def test_without_its_secret_nobody_joins(xstrace):
    wrong = "0" * 32
    script = f"{APPS}/itt_tasks 3; XSTRACE_RUN=${{XSTRACE_RUN%%:*}}:{wrong} {APPS}/itt_tasks 5; XSTRACE_RUN=${{XSTRACE_RUN%%:*}} {APPS}/itt_tasks 7"
    run = xstrace(ITT, "sh", ["-c", script])
    assert run.status == 0 and [t.count("tasks") for t in run.traces] == [3]


@root_only
@pytest.mark.parametrize(
    "spoil", ["directory", "control", "strings", "mailbox", "link", "second name", "gone", "moved", "file gone", "words"]
)
def test_a_directory_that_is_not_the_runs_alone_is_not_joined(xstrace, spoil):
    """Whatever is not ours alone, or gone; and a line says so, since a program that cannot join has nobody to tell."""
    script = f"{APPS}/itt_tasks 3; echo ready; read line; {APPS}/itt_tasks 5"
    run = xstrace.start(ITT, "sh", ["-c", script], stdin=subprocess.PIPE)
    run.wait_for_output()
    path = run.dir
    wait_until(lambda: list(run.cwd.glob("itt_tasks.*")))  # the drain process has met it
    if spoil == "directory":
        os.chmod(path, 0o711)
    elif spoil == "link":
        os.rename(f"{path}/control", f"{path}/moved")
        os.symlink("moved", f"{path}/control")
    elif spoil == "second name":
        os.link(f"{path}/strings", f"{path}/again")
    elif spoil == "gone":
        shutil.rmtree(path)
    elif spoil == "moved":
        os.rename(path, f"{path}.moved")
    elif spoil == "file gone":
        os.remove(f"{path}/mailbox")
    elif spoil == "words":
        with open(f"{path}/control", "r+b") as file:
            file.write(b"\0")
    else:
        os.chmod(f"{path}/{spoil}", 0o604)
    run.process.stdin.close()
    run.wait()
    shutil.rmtree(f"{path}.moved", ignore_errors=True)
    assert run.status == 0 and "expected: 5 tasks" in run.out
    said = [line for line in run.said if "programs that were started since are not traced" in line]
    assert len(said) == 1 and (path if spoil in ("directory", "gone", "moved") else "share, was ") in said[0], run.said
    run.collect()
    assert [t.count("tasks") for t in run.traces] == [3], run.said


def test_a_process_whose_file_is_gone_before_it_is_read(xstrace):
    script = f"{APPS}/itt_tasks 3; echo ready; read line; {APPS}/itt_tasks 5; rm ${{XSTRACE_RUN%%:*}}/p*; echo again; read line; exit 0"
    run = xstrace.start(ITT, "sh", ["-c", script], stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: list(run.cwd.glob("itt_tasks.*")))
    os.kill(run.drain, signal.SIGSTOP)
    run.process.stdin.write(b"go\n")
    run.process.stdin.flush()
    run.wait_for_output("again")
    os.kill(run.drain, signal.SIGCONT)
    run.process.stdin.close()
    run.wait()
    run.collect()
    assert run.status == 0 and [t.count("tasks") for t in run.traces] == [3]
    assert any("process is not traced: what it shared with us was gone before it was read" in line for line in run.said), run.said


@pytest.mark.parametrize("how", ["mode", "name"])
def test_a_drain_process_that_begins_late(xstrace, how):
    """It fills and removes the directory that the launcher made, whatever has happened to it meanwhile."""
    launcher = copy_build(xstrace.home)
    drain = xstrace.home / "writer/xstrace-drain"
    drain.rename(drain.with_name("real"))
    drain.write_text(f'#!/bin/sh\nwhile [ ! -e {xstrace.cwd}/go ]; do sleep 0.05; done\nexec {drain.with_name("real")} "$@"\n')
    drain.chmod(0o755)
    spoil = {"mode": 'chmod 711 "$dir"', "name": 'mv "$dir" "$dir.moved"'}[how]
    script = f'{APPS}/itt_tasks 3; dir=${{XSTRACE_RUN%:*}}; {spoil}; {APPS}/itt_tasks 5; touch go; echo "$dir"'
    run = xstrace.start(ITT, "sh", ["-c", script], launcher=launcher)
    run.wait(30)
    (run.cwd / "go").unlink()
    assert run.status == 0 and not re.search("fail|cannot|ended", "".join(run.said)), run.said
    dir = run.out.splitlines()[-1]
    wait_until(lambda: not os.path.exists(dir))
    if how == "name":
        os.rmdir(dir + ".moved")  # empty
    run.collect()
    assert [t.count("tasks") for t in run.traces] == [3]


def test_what_a_traced_process_has_mapped(xstrace):
    """It cannot write what others believe: not itself, not what it becomes without its rights."""
    run = xstrace(ITT, sys.executable, ["-c", "import ctypes; print(open('/proc/self/maps').read())"])
    mapped = dict(reversed(m) for m in re.findall(r"^\S+ (\S+) .* /dev/shm/xstrace-\w+/(\w)", run.out, re.M))
    assert mapped == {"c": "r--s", "m": "rw-s", "s": "rw-s", "p": "rw-s"}


# ---- xstrace --recover ----


STEPS = ("tasks", "a", "2000", "wait", "tasks", "b", "3")


def killed_run(xstrace, options=ITT, app="itt_steps", args=STEPS, traces=1):
    """A run whose drain process was killed when its traces had begun; one of its traces."""

    def begun():
        paths = [p for p in (*xstrace.home.rglob("itt_steps.*.json*"), *xstrace.home.rglob("chrome_trace*")) if p.stat().st_size > 1000]
        return paths if len(paths) == traces else None

    run = xstrace.start(options, app, args, stdin=subprocess.PIPE)
    run.wait_for_output()
    path = wait_until(begun)[0]
    time.sleep(0.1)
    os.kill(run.drain, signal.SIGKILL)
    wait_until(lambda: "xstrace-drain" not in run.children())
    run.process.stdin.close()
    run.wait()
    return run, path


def check_recovered(run):
    recover(run)
    assert {t.count("tasks", "steps::a") for t in run.traces} == {2000}


def test_one_recovers_at_a_time(xstrace):
    """Two would both write the ends of the traces."""
    run, trace = killed_run(xstrace)
    before = trace.read_bytes()
    directory = os.open(run.dir, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    assert "another xstrace --recover is working there" in refusal("--recover", run.dir) and trace.read_bytes() == before
    os.close(directory)
    check_recovered(run)


@root_only
@pytest.mark.parametrize("spoil", ["owner", "mode", "control mode", "control owner", "control link"])
def test_recover_believes_no_directory_of_others(xstrace, spoil):
    run, trace = killed_run(xstrace)
    path, before, moved = run.dir, trace.read_bytes(), f"{run.dir}/control"
    if spoil == "owner":
        os.chown(path, NOBODY, NOBODY)
    elif spoil == "mode":
        os.chmod(path, 0o755)
    elif spoil == "control mode":
        os.chmod(moved, 0o644)
    elif spoil == "control owner":
        os.chown(moved, NOBODY, NOBODY)
    else:
        os.rename(moved, f"{path}/real")
        os.symlink("real", moved)
    line = refusal("--recover", path)
    assert path in line and trace.read_bytes() == before
    os.chown(path, 0, 0)
    os.chmod(path, 0o700)
    if spoil == "control link":
        os.rename(f"{path}/real", moved)
    os.chown(moved, 0, 0)
    os.chmod(moved, 0o600)
    check_recovered(run)


@root_only
@pytest.mark.parametrize("compress", ["", " --compress zstd"])
@pytest.mark.parametrize("spoil", ["link", "other", "owner", "shorter", "pipe", "content"])
def test_recover_writes_into_nothing_but_its_own_trace(xstrace, spoil, compress):
    run, trace = killed_run(xstrace, ITT + compress)
    victim, aside = xstrace.home / "victim", xstrace.home / "aside"
    content = trace.read_bytes()
    victim.write_bytes(b"precious\n" * 10000)
    if spoil not in ("owner", "shorter", "content"):
        os.rename(trace, aside)
    if spoil == "link":
        trace.symlink_to(victim)
    elif spoil == "other":
        shutil.copy(aside, trace)
    elif spoil == "owner":
        os.chown(trace, NOBODY, NOBODY)
    elif spoil == "shorter":
        os.truncate(trace, 100)
    elif spoil == "content":
        with trace.open("r+b") as file:
            file.write(b"#" * 600)
    else:
        os.mkfifo(trace)
    before = trace.read_bytes() if spoil != "pipe" else None
    line = refusal("--recover", run.dir)
    assert trace.name in line and victim.read_bytes() == b"precious\n" * 10000
    assert before is None or trace.read_bytes() == before
    assert len(list(run.cwd.iterdir())) == 1
    if spoil == "owner":
        os.chown(trace, 0, 0)
    elif spoil in ("shorter", "content"):
        trace.write_bytes(content)
    else:
        os.rename(aside, trace)
    check_recovered(run)


def kept_of(run, pid):
    (file,) = Path(run.dir).glob(f"d{pid}.*")
    return file


@pytest.mark.parametrize("place", ["../elsewhere", "a/b", "..", "."])
def test_recover_makes_results_nowhere_but_in_their_directory(xstrace, place):
    """Whatever is kept there: a process of the same user may have written it."""
    run, trace = killed_run(xstrace, f"{ITT} --result-dir {xstrace.home}/results")
    elsewhere = Path(f"{xstrace.home}/results/{place}")
    elsewhere.mkdir(parents=True, exist_ok=True)
    before = set(elsewhere.iterdir())
    kept.put_output(kept_of(run, trace.parent.name.split(".")[1]), os.fsencode(elsewhere / "chrome_trace.json"))
    assert control("--recover", run.dir).returncode == 125 and not run.dir  # no trace is there
    assert place == "." or set(elsewhere.iterdir()) == before
    (made,) = {p.parent for p in xstrace.home.rglob("chrome_trace.json")} - {trace.parent}
    assert made.parent == xstrace.home / "results"
    run.trace_files = []


@pytest.mark.parametrize("options", [ITT, ITT + " --compress zstd"])
def test_recover_of_a_trace_whose_first_bytes_are_not_its_own(xstrace, options):
    """What would be written behind them is no trace; with the bytes back it is one."""
    run, trace = killed_run(xstrace, options)
    before = trace.read_bytes()
    for words in (b"#", b"#!/bin/sh\n", b"\0" * 4):
        trace.write_bytes(words + before[len(words) :])
        line = refusal("--recover", run.dir)
        assert "no trace of this run" in line and trace.name in line
        assert trace.read_bytes() == words + before[len(words) :]
    trace.write_bytes(before)
    check_recovered(run)


def test_recover_writes_no_trace_for_two(xstrace):
    """Each would write over what the other has written."""
    step = f"{APPS}/itt_steps tasks a 2000 wait tasks b 3"
    run, trace = killed_run(xstrace, app="sh", args=["-c", f"exec 3<&0; {step} <&3 & {step}; wait"], traces=2)
    first, second = run.cwd.glob("itt_steps.*")
    file = kept_of(run, second.name.split(".")[1])
    before, other = file.read_bytes(), kept_of(run, first.name.split(".")[1]).read_bytes()
    own = slice(kept.TRACE, kept.OUTPUT + kept.OUTPUT_SIZE)  # which file the trace is
    file.write_bytes(before[: own.start] + other[own] + before[own.stop :])
    line = refusal("--recover", run.dir)
    assert first.name in line and "another process's" in line
    file.write_bytes(before)
    check_recovered(run)


ON_A_TRACK = r"""
#include <ittnotify.h>
#include <stdio.h>

int main(void)
{
	__itt_domain *domain = __itt_domain_create("steps");
	__itt_string_handle *name = __itt_string_handle_create("a");
	__itt_track_group *group = __itt_track_group_create(__itt_string_handle_create("G"), __itt_track_group_type_normal);

	__itt_set_track(__itt_track_create(group, __itt_string_handle_create("T"), __itt_track_type_normal));
	for (int i = 0; i < 20000; i++) {
		if (i == 10000) {
			puts("ready");
			fflush(stdout);
			getchar();
		}
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
	return 0;
}
"""


def test_recover_goes_on_with_the_track_of_a_thread(xstrace):
    app = compile_c(xstrace.home / "itt_steps", ON_A_TRACK)
    run, _ = killed_run(xstrace, app=app, args=[])
    recover(run)
    assert run.trace.count("tasks") == 20000
    names = {e["tid"]: e["args"]["name"] for e in run.trace.events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {names[task.track[1]] for task in run.trace.tasks} == {"G/T"}


@pytest.mark.parametrize("spoil", ["cut", "noise", "pipe", "link", "gone"])
def test_recover_says_which_file_of_a_process_it_cannot_use(xstrace, spoil):
    """Beside it lies what the drain process has kept of that process. Its trace stays as it was written; other processes' are completed."""
    run, trace = killed_run(xstrace)
    path, before = run.dir, trace.read_bytes()
    (file,) = Path(path).glob("p*")
    if spoil == "cut":
        os.truncate(file, 100)
    elif spoil == "noise":
        with file.open("r+b") as stream:
            stream.write(os.urandom(65536))
    else:
        file.unlink()
        if spoil != "gone":
            {"pipe": os.mkfifo, "link": lambda to: os.symlink(trace, to)}[spoil](file)
    lines = recover_in_part(run)
    assert path in lines[0] and file.name in lines[0] and "what was in it is lost" in lines[0] and len(lines) == 2
    assert trace.read_bytes().startswith(before) and not os.path.exists(path)
    run.collect()  # it is closed behind what was written
    assert run.trace.count("tasks", "steps::a") == 2000 and run.trace.other["corrupt_rings"] == 1
    assert subprocess.run([ROOT / "scripts/xstrace-check", trace], capture_output=True).returncode == 0


def recover_in_part(run):
    """What was said where not all could be had; the last line says what is written."""
    done = subprocess.run([XSTRACE, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True)
    assert done.returncode == 125, done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("spoil", ["cut", "zeros", "random", "large", "ones", "mode", "name", "gone", "trace gone"])
def test_recover_says_what_of_a_trace_is_missing(xstrace, spoil):
    """Where the trace is, and what it has, stands in the drain process's own file alone."""
    run, trace = killed_run(xstrace)
    path, before = run.dir, trace.read_bytes()
    (file,) = Path(path).glob("d*")
    size = file.stat().st_size
    if spoil in ("cut", "zeros"):
        os.truncate(file, 0)
        os.truncate(file, size if spoil == "zeros" else 100)
    elif spoil in ("random", "large", "ones"):
        file.write_bytes({"random": random.Random(3).randbytes(8), "large": struct.pack("Q", 1 << 62), "ones": b"\xff" * 8}[spoil] * (size // 8))
    elif spoil == "mode":
        file.chmod(0o644)
    elif spoil == "name":
        os.link(file, f"{path}/second")
    else:
        (trace if "trace" in spoil else file).unlink()
    lines = recover_in_part(run)
    assert len(lines) == 2 and path in lines[0] and (trace.name if spoil == "trace gone" else file.name) in lines[0], lines
    assert not os.path.exists(path)
    if spoil != "trace gone":
        assert trace.read_bytes() == before
        trace.unlink()  # it has no end
    run.collect()
    assert 3 <= run.trace.count("tasks") < 2003


@pytest.mark.parametrize("content", [b"\xff" * 8, struct.pack("Q", 1 << 62), struct.pack("Q", 2 << 40 | 2), bytes(range(8))])
def test_recover_where_a_ring_was_kept_that_cannot_be(xstrace, content):
    """Of the file beside the rings one page: the trace is known still, and goes on with what is in the ring."""
    run, _ = killed_run(xstrace)
    (file,) = Path(run.dir).glob("d*")
    with file.open("r+b") as stream:
        stream.seek(8192)  # struct xs_kept_ring
        stream.write(content * 512)
    check_ring_not_kept(run, file)


@pytest.mark.parametrize("words", [{"records": 1 << 40}, {"tail": 8}, {"open": [(1 << 60, 1)]}])
def test_recover_where_a_ring_was_kept_that_cannot_be_though_its_check_is_right(xstrace, words):
    run, _ = killed_run(xstrace)
    (file,) = Path(run.dir).glob("d*")
    kept.put_ring(file, **words)
    check_ring_not_kept(run, file)


def check_ring_not_kept(run, file):
    lines = recover_in_part(run)
    assert file.name in lines[0] and "tasks that were open are missing" in lines[0]
    run.collect()
    assert run.trace.count("tasks", "steps::a") == 2000 and run.trace.other["events"] < 5000
    assert all(0 <= e.get("dur", 0) < 1e8 for e in run.trace.events)


CHANGES = {
    "zero": lambda word: 0,
    "more": lambda word: word + 1,
    "less": lambda word: word - 1,
    "half": lambda word: word // 2,
    "bit": lambda word: word ^ 1 << word % 31,
    "sixteen": lambda word: word + 16,
}


def recover_copy(run, copy, place):
    """--recover in a copy of the run's directory."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(copy, place)
    place.chmod(0o700)
    done = subprocess.run([XSTRACE, "--recover", place], cwd=run.cwd, capture_output=True, text=True, timeout=60)
    shutil.rmtree(place, ignore_errors=True)
    return done


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", CHANGES)
def test_recover_where_one_word_of_what_was_kept_was_changed(xstrace, how):
    """Each word of the file's head and of what it has of a ring: all is there once, or a line says whose file it is."""
    # with sleeps, so that there are several commits: both copies of the ring's state have been written
    steps = ("open", "o", "tasks", "a", "2000", "sleep", "300", "tasks", "a", "2000", "sleep", "300", "wait", "tasks", "b", "30")
    run, trace = killed_run(xstrace, args=steps)
    before, aside, place = trace.read_bytes(), xstrace.home / "aside", Path("/dev/shm", f"{Path(run.dir).name}-copy")
    shutil.copytree(run.dir, aside)
    (file,) = aside.glob("d*")
    content, told, changed = file.read_bytes(), 0, 0
    assert all(struct.unpack_from("<Q", content, kept.HEADER + at)[0] for at in kept.COPIES)
    for at in range(0, kept.HEADER + kept.PAGE, 4):
        (word,) = struct.unpack_from("<I", content, at)
        new = CHANGES[how](word) & 0xFFFFFFFF
        if not word or new == word:
            continue
        file.write_bytes(content[:at] + struct.pack("<I", new) + content[at + 4 :])
        done = recover_copy(run, aside, place)
        changed += 1
        about = f"word {at // 4}: {word:#x} {new:#x}: {done.returncode} {done.stderr}"
        traces = [Trace(path) for path in run.cwd.glob("*.json") if path != trace or trace.read_bytes() != before]
        counts = [(one.count("tasks", "steps::a"), one.count("tasks", "steps::b")) for one in traces]
        if done.returncode:
            told += 1
            assert done.returncode == 125 and (file.name in done.stderr or trace.name in done.stderr), about
            # the trace that was there goes on, or is as it was and another one has the rest
            assert counts == [(4000, 30)] or (trace.read_bytes() == before and [b for _, b in counts] == [30] and counts[0][0] < 4000), (
                about,
                counts,
            )
        else:
            assert counts == [(4000, 30)] and traces[0].count("open", "steps::o") == 1, (about, counts)
        for path in run.cwd.glob("*.json"):
            if path != trace:
                path.unlink()
        trace.write_bytes(before)  # the same file: its inode is kept, too
    assert changed > 30 and told > 20
    file.write_bytes(content)
    done = recover_copy(run, aside, place)
    assert done.returncode == 0, done.stderr
    assert Trace(trace).count("tasks") == 4030
    shutil.rmtree(run.dir)
    run.trace_files = []


@pytest.mark.parametrize("mark", [1, kept.IS_COMPLETE ^ 1])
def test_recover_of_a_mark_that_somebody_has_made(xstrace, mark):
    """A trace is complete only where the drain process says so in its own word; else what the rings hold becomes a trace."""
    run, trace = killed_run(xstrace)
    before = trace.read_bytes()
    (file,) = Path(run.dir).glob("d*")
    with file.open("r+b") as stream:
        stream.seek(kept.COMPLETE)
        stream.write(struct.pack("I", mark))
    lines = recover_in_part(run)
    assert file.name in lines[0] and trace.read_bytes() == before
    trace.unlink()
    run.collect()
    assert run.trace.count("tasks", "steps::b") == 3


@pytest.mark.parametrize("size", [0, 65536])
def test_recover_without_names(xstrace, size):
    """An end names its domain, and a begin whose name is gone has none: such tasks are instants."""
    run, trace = killed_run(xstrace)
    path = run.dir
    os.truncate(Path(path, "strings"), size)
    line = "".join(recover_in_part(run))
    assert path in line and "'strings'" in line and not os.path.exists(path)
    run.collect()
    assert sum(e["ph"] in "Xi" for e in run.trace.events) >= 2003


def check_options_overwritten(run, offset, data):
    """Behind `backlog` in struct xs_options, which `backlog_disk` follows; what was there before."""
    with Path(run.dir, "control").open("r+b") as file:
        at = file.read().index(struct.pack("QQ", 256 << 20, 16 << 30)) + offset
        file.seek(at)
        before = file.read(len(data))
        file.seek(at)
        file.write(data)
    assert "options in 'control' were overwritten" in recover_in_part(run)[0]
    run.collect()
    assert run.trace.count("tasks", "steps::a") == 2000
    return before


@pytest.mark.parametrize("value", [1 << 63, (1 << 64) - 1, 1 << 41])
def test_recover_where_control_has_options_that_cannot_be(xstrace, value):
    """A backlog of 2^63 bytes: its room would be doubled for ever. The option counts as not given."""
    run, _ = killed_run(xstrace)
    check_options_overwritten(run, 8, struct.pack("Q", value))


def test_recover_where_control_wants_no_trace_any_more(xstrace):
    """One word, and the run would be over without an end of its trace."""
    run, _ = killed_run(xstrace)
    assert check_options_overwritten(run, -64, bytes(32)).count(b"\1") == 1  # the flags, at the beginning


LATER = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ittnotify.h"
static __itt_domain *domain;
static __itt_string_handle *name;
static void *ten(void *wait)
{
	for (int i = 0; i < 10; i++) __itt_task_begin(domain, __itt_null, __itt_null, name), __itt_task_end(domain);
	if (wait) usleep(200000); /* each has a ring of its own */
	return wait;
}
int main(int argc, char **argv)
{
	int status = 0;
	pthread_t thread[20];
	domain = __itt_domain_create("later"), name = __itt_string_handle_create(argc > 1 ? argv[1] : "first");
	ten(NULL);
	if (argc > 1) return 0;
	puts("ready"), fflush(stdout), getchar();
	for (int i = 0; i < 20; i++) pthread_create(&thread[i], NULL, ten, argv);
	for (int i = 0; i < 20; i++) pthread_join(thread[i], NULL);
	if (!fork()) { ten(NULL); _exit(0); }
	wait(&status);
	if (!status && !fork()) execl(argv[0], argv[0], "exec", NULL);
	if (!status) wait(&status);
	printf("children: %d\n", status);
}
"""


@pytest.mark.parametrize("value", [0, 1, 65537, 1 << 63, (1 << 64) - 1])
def test_options_that_are_overwritten_while_the_program_runs(xstrace, value):
    """The size of rings: threads that come get rings all the same. Processes that come trust none of the options, and that is told."""
    run = xstrace.start(f"{ITT} --ring-size 128K", compile_c(xstrace.home / "later", LATER), stdin=subprocess.PIPE)
    run.wait_for_output()
    with Path(run.dir, "control").open("r+b") as file:
        file.seek(file.read().index(struct.pack("QQQ", 128 << 10, 256 << 20, 16 << 30)))
        file.write(struct.pack("Q", value))
    run.process.stdin.write(b"\n")
    run.process.stdin.close()
    run.finish()
    assert (run.status, run.out.splitlines()[-1]) == (0, "children: 0")
    assert run.trace.count("tasks", "later::first") == 210 and len(run.traces) == 1
    (line,) = [line for line in run.said if "'control'" in line]
    assert "was overwritten; programs that were started since are not traced" in line


@root_only
def test_files_that_cannot_be_removed(xstrace):
    """Who is done with is not met again: each process has one trace, and the run ends."""
    run = xstrace.start(ITT, compile_c(xstrace.home / "later", LATER), stdin=subprocess.PIPE)
    run.wait_for_output()
    with append_only(run.dir):
        run.process.stdin.write(b"\n")
        run.process.stdin.close()
        run.process.wait(timeout=60)
    place = run.dir
    shutil.rmtree(place)
    run.finish()
    assert (run.status, run.out.splitlines()[-1]) == (0, "children: 0")
    assert sorted(trace.count("tasks") for trace in run.traces) == [10, 10, 210]
    assert [line for line in run.said if "cannot remove" in line and place in line]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
@pytest.mark.parametrize("call", [8, 217], ids=["lseek", "getdents64"])
def test_a_directory_that_cannot_be_looked_into(xstrace, call):
    """A sandbox around all of it: the program runs, and the run ends."""
    command = [sys.executable, "-c", DENY, call, XSTRACE, ITT, APPS / "itt_tasks", 5]
    run = subprocess.run([str(word) for word in command], cwd=xstrace.home, capture_output=True, text=True, timeout=30)
    assert run.returncode == 0 and "expected: 5 tasks" in run.stdout
    assert "nothing is recorded from now on" in run.stderr
    shutil.rmtree(re.search(r"cannot remove (\S+):", run.stderr)[1])


def test_recover_without_control(xstrace):
    run, trace = killed_run(xstrace)
    file = Path(run.dir, "control")
    content = file.read_bytes()
    os.truncate(file, 4096)
    assert "'control' was cut" in refusal("--recover", run.dir)
    file.write_bytes(content)
    check_recovered(run)


@pytest.mark.parametrize("file", ["strings", "control", "mailbox"])
@pytest.mark.parametrize("size", [0, 4096])
def test_files_that_are_cut_before_the_drain_process_begins(xstrace, file, size):
    """Nothing but what was in them is missing, and that is told. The launcher has `control` mapped, and ends."""
    launcher = copy_build(xstrace.home)
    drain = xstrace.home / "writer/xstrace-drain"
    drain.rename(drain.with_name("real"))
    drain.write_text(f'#!/bin/sh\nwhile [ ! -e {xstrace.cwd}/go ]; do sleep 0.05; done\nexec {drain.with_name("real")} "$@"\n')
    drain.chmod(0o755)
    script = f'{APPS}/itt_tasks 3; truncate -s {size} "${{XSTRACE_RUN%:*}}/{file}"; touch go; sleep 1'
    run = xstrace.start(ITT, "sh", ["-c", script], launcher=launcher)
    dir = wait_until(lambda: run.dir)
    run.wait(30)
    (run.cwd / "go").unlink()
    wait_until(lambda: not os.path.exists(dir))
    said = "".join(run.said)
    assert not re.search("drain process", said) and (file != "strings" or "'strings'" in said), said
    run.collect()
    assert file != "mailbox" or [t.count("tasks") for t in run.traces] == [3]


def test_recover_of_files_that_were_being_removed(xstrace):
    """A drain process killed between the removals of p… and d…: it has marked the trace complete before."""
    run, trace = killed_run(xstrace)
    place = run.dir
    before = trace.read_bytes()
    (file,) = Path(place).glob("p*")
    file.unlink()
    with Path(place, "d" + file.name[1:]).open("r+b") as stream:
        stream.seek(kept.COMPLETE)
        stream.write(struct.pack("I", kept.IS_COMPLETE))
    done = subprocess.run([XSTRACE, "--recover", place], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "") and "gone" not in done.stderr
    assert trace.read_bytes() == before and not os.path.exists(place)
    trace.unlink()  # it has no end


NAMER = r"""
/* Finds the name of its trace in whatever it can write, and puts another name there. */
#define _GNU_SOURCE
#include <ittnotify.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("d");
	__itt_string_handle *name = __itt_string_handle_create("n");
	char line[4096], perms[8], mine[64];
	unsigned long from, to;
	FILE *maps;
	int found = 0;
	for (int i = 0; i < 100; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
	printf("traced\n"), fflush(stdout);
	getchar();
	snprintf(mine, sizeof(mine), ".%d.json", getpid());
	maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, perms) != 3 || strcmp(perms, "rw-s") || !strstr(line, "/xstrace-")) continue;
		for (char *at = (char *)from; (at = memmem(at, (char *)to - at, mine, strlen(mine))); at++) {
			char *start = at;
			while (start > (char *)from && start[-1]) start--;
			strcpy(start, argv[1]);
			found++;
		}
	}
	printf("replaced %d\n", found);
	return 0;
}
"""


def test_a_process_does_not_name_the_file_that_recover_writes(xstrace):
    app = compile_c(xstrace.home / "namer", NAMER)
    victim = xstrace.home / "victim"
    victim.write_bytes(b"precious\n" * 10000)
    run = xstrace.start(ITT, app, [victim], stdin=subprocess.PIPE)
    run.wait_for_output("traced")
    wait_until(lambda: [p for p in run.cwd.glob("namer.*") if p.stat().st_size > 1000])
    time.sleep(0.1)
    os.kill(run.drain, signal.SIGKILL)
    run.process.stdin.write(b"\n")
    run.process.stdin.close()
    run.wait()
    assert run.status == 0 and "replaced" in run.out
    recover(run)
    assert victim.read_bytes() == b"precious\n" * 10000
    assert run.trace.count("tasks") == 100


@root_only
def test_a_session_that_others_can_use_is_refused(xstrace):
    run = xstrace.start(f"{ITT} --session s", "itt_stress", [xstrace.home / "truth"])
    run.wait_for_output()
    os.chmod(run.dir, 0o750)
    assert "another user's" in refusal("--pause", "s")
    os.chmod(run.dir, 0o700)
    assert control("--stop", "s").returncode == 0
    os.kill(run.pid, signal.SIGTERM)
    run.finish()


# ---- the drain process ----


def test_files_that_nobody_completes(xstrace):
    """Of processes that live, and not even with a pid."""
    run = xstrace.start(ITT, "sh", ["-c", f"echo ready; read line; {APPS}/itt_tasks 6"], stdin=subprocess.PIPE)
    run.wait_for_output()
    for name in (f"p{os.getpid()}.900", "p1.901", "p1.902.s1", "pieces", "p", "p-1.1", "p0.0", "p1.99999999999"):
        os.close(os.open(f"{run.dir}/{name}", os.O_CREAT | os.O_WRONLY, 0o600))
    run.process.stdin.close()
    run.finish(20)
    assert run.status == 0 and run.trace.count("tasks") == 6 and run.seconds < 15


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_process_that_gets_no_further_than_joining(xstrace, number):
    """The others' traces are complete as ever; if it is only stopped, its own comes later."""
    app = APPS / "itt_tasks"
    stopper = f"strace -qq -o /dev/null -e trace=ftruncate -e inject=ftruncate:signal={number.name}:when=1"
    # a session of its own: the kernel continues the stopped ones of a process group that loses its parent
    script = f"setsid {stopper} {app} 5 > later & sleep 0.2; {app} 6; echo $! > pid; exec {app} 7"
    run = xstrace.start(ITT, "sh", ["-c", script])
    run.wait(20)
    assert run.status == 0 and run.seconds < 15
    pid = int((run.cwd / "pid").read_text())
    wait_until(lambda: len(list(run.cwd.glob("*.json"))) == 2)
    if number == signal.SIGSTOP:
        (stopped,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(stopped), signal.SIGCONT)
    run.collect()
    counts = sorted(t.count("tasks") for t in run.traces)
    assert counts == ([5, 6, 7] if number == signal.SIGSTOP else [6, 7])


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
@pytest.mark.parametrize("error", ["EINTR", "ENOBUFS", "ENOMEM"])
@pytest.mark.parametrize("when", ["1", "1+"])
def test_a_word_to_the_drain_process_that_the_kernel_does_not_take(xstrace, error, when):
    """That the application has ended is said again, and in the end by closing the channel: nobody waits for ever."""
    inject = ["-e", "trace=sendto", "-e", f"inject=sendto:error={error}:when={when}"]
    run = xstrace.bare("strace", ["-qq", "-o", "/dev/null", *inject, XSTRACE, "--chrome-itt-logging", APPS / "itt_tasks", "5"])
    assert run.status == 0 and "expected: 5 tasks" in run.out
    (trace,) = xstrace.cwd.glob("itt_tasks.*.json")
    assert json.loads(trace.read_text())["otherData"]["lost"] == 0


def test_a_process_that_cuts_its_own_file(xstrace):
    """It ends itself at its next event; nobody else."""
    steps = APPS / "itt_steps"
    script = f"{steps} paced a 100000 1000 & {steps} tasks b 50 wait tasks b 50"
    run = xstrace.start(ITT, "sh", ["-c", script], stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: len(list(run.cwd.glob("itt_steps.*"))) == 2)
    paths = {path: os.path.basename(path)[1:].split(".")[0] for path in glob.glob(f"{run.dir}/p*")}
    cut = [path for path, pid in paths.items() if "paced" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")]
    assert cut
    drain = run.drain
    for path in cut:
        os.truncate(path, 4096)
    time.sleep(0.7)
    assert alive(drain)
    run.process.stdin.write(b"\n")
    run.process.stdin.close()
    run.finish()
    assert sum("was cut" in line for line in run.said) == len(cut)
    assert [t.count("tasks", "steps::b") for t in run.traces if t.count("tasks", "steps::b")] == [100]


def cpu_seconds(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("how", ["counting", "random", "ones"])
def test_the_mailbox_holds_anything(xstrace, how):
    """The drain process looks in vain, and not all the time."""
    run = xstrace.start(ITT, "itt_steps", ["tasks", "a", "100", "wait", "tasks", "b", "100"], stdin=subprocess.PIPE)
    run.wait_for_output()
    drain = run.drain
    with open(f"{run.dir}/mailbox", "r+b") as file, mmap.mmap(file.fileno(), 0) as box:
        before, until, n = cpu_seconds(drain), time.monotonic() + 2, 0
        while time.monotonic() < until:
            n += 1
            box[:] = {
                "counting": struct.pack("I", n) * (len(box) // 4),
                "random": os.urandom(len(box)),
                "ones": b"\xff" * len(box),
            }[how]
        used = cpu_seconds(drain) - before
    assert used < 0.5, f"{used} s of 2"
    run.process.stdin.close()
    run.finish()
    assert run.status == 0 and run.trace.count("tasks") == 200


@pytest.mark.long
def test_a_tail_that_somebody_sets_back(xstrace):
    """A child without rights can write its parent's rings: the parent does not wait for ever."""
    path = xstrace.home / "truth"
    run = xstrace.start(f"{ITT} --ring-size 64K", "itt_stress", [path, 1, 0])
    run.wait_for_output()
    (name,) = glob.glob(f"{run.dir}/p*")
    headers = {20480 + 8 * (4096 + 65536): 20480, 24576 + 8 * (8192 + 65536): 24576}
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        at = headers[len(memory)] + 64
        for _ in range(20):
            memory[at : at + 8] = bytes(8)
            time.sleep(0.01)
    ((_, _, before),) = truth(path)
    wait_until(lambda: truth(path)[0][2] > before + 100000, 10)
    os.kill(run.pid, signal.SIGTERM)
    run.finish()
    assert run.trace.count("tasks") > 100000


@pytest.mark.parametrize("value", [b"\0", b"\xff"])
def test_what_control_says_keeps_nobody(xstrace, value):
    """Whoever can write there neither keeps launcher and drain process waiting nor tells them how the application ended."""
    run = xstrace.start(ITT, "itt_steps", ["tasks", "a", "100", "wait", "tasks", "b", "100", "signal", int(signal.SIGTERM)], stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: glob.glob(f"{run.dir}/d*"))
    over = threading.Event()

    def spoil(name):
        with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as control:
            first = control.find(struct.pack("i", run.pid))  # behind what tells that it is one
            while not over.is_set():
                control[first:] = value * (len(control) - first)

    writer = threading.Thread(target=spoil, args=(f"{run.dir}/control",))
    writer.start()
    try:
        time.sleep(0.2)
        run.process.stdin.close()
        run.process.wait(20)
    finally:
        over.set()
        writer.join()
    run.wait(20)
    assert run.status == -signal.SIGTERM and run.seconds < 15
    run.collect()
    assert (value == b"\xff") == (run.trace.other["end"] == "stopped")  # all bits of `paused`
    if value == b"\0":
        assert (run.trace.other["end"], run.trace.other["status"]) == ("killed", signal.SIGTERM) and run.trace.count("tasks") == 200


FILLER = r"""
import mmap, struct, sys, time
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    print("ready", flush=True)
    at, end = int(sys.argv[2]), time.monotonic() + 15
    while time.monotonic() < end:
        (tail,) = struct.unpack_from("Q", memory, at + 64)
        struct.pack_into("Q", memory, at, tail + 65536)
"""


def test_a_ring_that_is_filled_after_its_process_has_ended(xstrace):
    """By a child that still has it, as fast as it is read."""
    run = xstrace.start(f"{ITT} --ring-size 64K", "itt_steps", ["tasks", "a", "10000", "wait"], stdin=subprocess.PIPE)
    run.wait_for_output()
    (name,) = glob.glob(f"{run.dir}/p*")
    at = {20480 + 8 * (4096 + 65536): 20480, 24576 + 8 * (8192 + 65536): 24576}[os.path.getsize(name)]
    filler = subprocess.Popen([sys.executable, "-c", FILLER, name, str(at)], stdout=subprocess.PIPE)
    filler.stdout.readline()
    run.process.stdin.close()
    try:
        run.wait(10)
        wait_until(lambda: not run.dir, 8)
        assert run.status == 0 and filler.poll() is None
    finally:
        filler.kill()
        filler.communicate()
    run.collect()


@pytest.mark.parametrize("limit", [4, 0])
@pytest.mark.parametrize("full", ["block", "drop"])
def test_a_drain_process_whose_descriptors_are_taken(xstrace, full, limit):
    """By prlimit, before a shell that it knows calls exec: nobody waits for what it cannot look at, and what it has is complete."""
    steps = APPS / "itt_steps"
    script = f"{steps} tasks a 50; {steps} tasks a 60 wait; exec {steps} tasks b 300000"
    run = xstrace.start(f"{ITT} --ring-size 64K --on-full {full}", "sh", ["-c", script], stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: len(list(run.cwd.glob("itt_steps.*"))) == 2)
    resource.prlimit(run.drain, resource.RLIMIT_NOFILE, (limit, limit))
    run.process.stdin.close()
    run.wait(30)
    assert run.status == 0
    run.collect(20)
    assert any("no descriptors" in line for line in run.said)
    assert sorted(t.count("tasks", "steps::a") for t in run.traces) == [50, 60]


@pytest.mark.parametrize("begun", [True, False])
def test_a_drain_process_that_has_no_descriptors_left_at_the_end(xstrace, begun):
    """poll() takes none then. A trace that was begun is complete; of one that was not, a line says so."""
    steps = ["tasks", "a", "300", "wait"] if begun else ["wait", "tasks", "a", "300"]
    run = xstrace.start(ITT, "itt_steps", steps, stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: glob.glob(f"{run.dir}/d*"))
    if begun:
        wait_until(lambda: [path for path in run.cwd.glob("itt_steps.*") if path.stat().st_size > 1000])
    resource.prlimit(run.drain, resource.RLIMIT_NOFILE, (0, 0))
    run.process.stdin.close()
    run.wait(20)
    assert run.status == 0
    run.collect(20)
    assert [t.count("tasks") for t in run.traces] == begun * [300]
    assert begun or any("Too many open files" in line for line in run.said), run.said


@pytest.mark.parametrize("compress", ["", " --compress zstd", " --format perfetto"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_drain_process_whose_memory_is_taken(xstrace, when, compress):
    """A trace that was begun gets its end; one that cannot be begun leaves no file, and what it lacks is counted."""
    steps = ["wait", "tasks", "a", "300"] if when == "before" else ["tasks", "a", "200", "wait", "tasks", "a", "100"]
    run = xstrace.start(ITT + compress, "itt_steps", steps, stdin=subprocess.PIPE)
    run.wait_for_output()
    wait_until(lambda: glob.glob(f"{run.dir}/d*"))
    if when == "after":
        wait_until(lambda: list(run.cwd.glob("itt_steps.*")))
    resource.prlimit(run.drain, resource.RLIMIT_DATA, (4096, 4096))
    run.process.stdin.close()
    run.wait(30)
    assert run.status == 0
    run.collect(20)
    lost = [int(number) for line in run.said for number in re.findall(r"(\d+) events? of .* no memory for a trace", line)]
    if when == "after":
        assert [t.count("tasks", "steps::a") for t in run.traces] == [300] and not lost, (run.said, run.traces[0].other)
        assert run.traces[0].other["end"] == "exited" and run.traces[0].other["lost"] == 0
    else:
        assert not run.traces and not list(run.cwd.glob("itt_steps.*")) and len(lost) == 1 and lost[0] >= 600, run.said


# ---- time namespaces ----


@root_only
@pytest.mark.parametrize("offset", [1000, -20])
@pytest.mark.parametrize("how", ["", "--fork"])
def test_a_process_in_a_time_namespace(xstrace, offset, how):
    """It has clocks of its own, and its start is another time to it."""
    if float(Path("/proc/uptime").read_text().split()[0]) < 30:
        pytest.skip("this machine has just been started")
    enter = f"unshare -T --boottime {offset} {how}"
    if subprocess.run(f"{enter} true", shell=True, capture_output=True).returncode:
        pytest.skip("not allowed here")
    script = f"{enter} {APPS}/itt_steps paced a 100 2000; {enter} sh -c 'exec {APPS}/itt_steps tasks b 10'"
    run = xstrace(ITT, "sh", ["-c", script])
    assert run.status == 0
    assert sorted(t.count("tasks") for t in run.traces) == [10, 100]
    assert {t.other["end"] for t in run.traces} <= {"exited", "unknown"}


# ---- the preloaded library ----


@root_only
@pytest.mark.parametrize("variable", ["XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"])
def test_the_link_to_an_oddly_installed_library(xstrace, variable):
    """It lies where no other user can make anything, and stays: programs have it in LD_PRELOAD after the run."""
    with mounted("/mnt", "mode=755"):
        place = Path("/mnt/a b:c$d")
        place.mkdir()
        launcher = copy_build(place)
        env = {"XDG_RUNTIME_DIR": "", "XDG_CACHE_HOME": "/nonexistent", "HOME": "", variable: "/mnt"}
        run = xstrace(ITT, "sh", ["-c", f"echo $LD_PRELOAD; {APPS}/itt_tasks 5"], launcher=launcher, env=env)
        (line,) = (line for line in run.out.splitlines() if line.endswith("libxstrace.so"))
        assert line.startswith("/mnt/") and not set(" :$") & set(line)
        assert os.path.realpath(line) == f"{place}/collector/libxstrace.so"
        assert run.trace.count("tasks") == 5
        # what was linked there before is no longer
        os.unlink(os.path.dirname(line))
        os.symlink("/tmp", os.path.dirname(line))
        assert xstrace(ITT, APPS / "itt_tasks", [6], launcher=launcher, env=env).trace.count("tasks") == 6


@root_only
@pytest.mark.parametrize("unsafe", ["sticky", "writable", "foreign", "missing"])
def test_no_safe_place_for_the_link(xstrace, unsafe):
    with mounted("/mnt", "mode=755"):
        place, home = Path("/mnt/a b"), Path("/mnt/home/me")
        place.mkdir()
        launcher = copy_build(place)
        if unsafe != "missing":
            home.mkdir(parents=True)
        if unsafe in ("sticky", "writable"):
            home.parent.chmod(0o1777 if unsafe == "sticky" else 0o775)
        elif unsafe == "foreign":
            os.chown(home.parent, NOBODY, NOBODY)
        env = {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": "/tmp", "XDG_CACHE_HOME": str(home)}
        result = subprocess.run([launcher, ITT, "echo", "ran"], env=env, capture_output=True, text=True, cwd=xstrace.cwd)
        assert (result.returncode, result.stdout) == (125, "") and result.stderr.count("\n") == 1
        assert "XDG_RUNTIME_DIR" in result.stderr and str(place) in result.stderr
        assert not home.exists() or not list(home.iterdir())


# ---- signals to the parent ----

PARENT = r"""
/* Starts the rest of its line in a process group of its own and tells each signal that it gets. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	siginfo_t info;
	sigset_t all, old;
	char text[16];
	pid_t pid;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	snprintf(text, sizeof(text), "%d", getpid());
	setenv("PARENT", text, 1);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &old, NULL);
		execvp(argv[1], argv + 1);
	}
	for (;;) {
		int number = sigwaitinfo(&all, &info);
		if (number == SIGCHLD && info.si_code != SI_USER && waitpid(pid, NULL, WNOHANG) == pid) return 0;
		if (number > 0 && (number != SIGCHLD || info.si_code == SI_USER))
			printf("parent: %d %d\n", number, info.si_code == SI_QUEUE ? info.si_value.sival_int : -1), fflush(stdout);
	}
}
"""

CHILD = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void on_signal(int number) { write(1, "app: signal\n", 12); }
int main(int argc, char **argv)
{
	const char *how = argv[1];
	pid_t parent = strstr(how, "raw") || strstr(how, "asks") ? syscall(SYS_getppid) : getppid(), group = getpgrp();
	int number = SIGUSR2;
	signal(SIGUSR2, on_signal);
	signal(SIGRTMIN + 3, on_signal);
	setvbuf(stdout, NULL, _IONBF, 0);
	if (strstr(how, "raw")) setsid();
	printf("parent is %s\n", parent == atoi(getenv("PARENT")) ? "it" : "another");
	if (strstr(how, "chld")) number = SIGCHLD;
	if (strstr(how, "queue")) sigqueue(parent, SIGRTMIN + 3, (union sigval){ .sival_int = 4711 });
	else if (strstr(how, "group job")) { if (!fork()) { setpgid(0, 0); usleep(30000); kill(-group, number); _exit(0); } wait(NULL); }
	else if (strstr(how, "group child")) { if (!fork()) { signal(SIGUSR2, SIG_IGN); usleep(1000); kill(0, number); usleep(100000); _exit(0); } wait(NULL); }
	else if (strstr(how, "group")) kill(0, number);
	else if (strstr(how, "child")) { if (!fork()) { if (strstr(how, "raw")) setsid(); kill(parent, number); usleep(100000); _exit(0); } wait(NULL); }
	else kill(parent, number);
	usleep(200000);
	return 0;
}
"""


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    home = tmp_path_factory.mktemp("family")
    return compile_c(home / "parent", PARENT), compile_c(home / "child", CHILD)


GROUPS = ["group", "group child", "group job"]


@pytest.mark.parametrize("how", ["kill", "chld", "child", "queue", "raw", "raw queue", "raw child", "asks", "asks queue", *GROUPS])
def test_a_program_that_signals_its_parent(xstrace, family, how):
    """The parent that it would have without us gets it, once; what is for the process group does not go beyond it, nor comes twice."""
    parent, child = family
    bare = subprocess.run([parent, child, how], capture_output=True, text=True, cwd=xstrace.cwd, timeout=30)
    run = subprocess.run([parent, XSTRACE, "-d", child, how], capture_output=True, text=True, cwd=xstrace.cwd, timeout=30)
    if "raw" in how or "asks" in how:  # of what it asks the kernel itself, we know nothing
        bare.stdout = bare.stdout.replace("parent is it", "parent is another")
    if how == "raw child":  # only the program itself is believed to mean its parent
        bare.stdout = re.sub("parent: .*\n", "", bare.stdout)
    assert sorted(run.stdout.splitlines()) == sorted(bare.stdout.splitlines())
    assert ("parent: " in run.stdout) == (how not in ("raw child", *GROUPS))


def test_the_parent_of_a_shell(xstrace):
    """And of what is started by the application: that is the application."""
    script = f"""echo $PPID; {sys.executable} -c 'import os; print(os.getppid())'; echo $$"""
    run = xstrace("-d", "sh", ["-c", script])
    shell, of_child, own = run.out.split()
    assert int(shell) == os.getpid() and of_child == own


def test_a_parent_that_has_ended(xstrace, family):
    """The application sees that it is another's child now."""
    log = xstrace.home / "log"
    body = "import os, sys, time\nfirst = os.getppid()\nprint(first, flush=True)\nwhile os.getppid() == first: time.sleep(0.01)\nprint('changed', flush=True)"
    shell = subprocess.Popen(
        ["sh", "-c", f"{XSTRACE} -d {sys.executable} -c \"$1\" > {log} 2>&1 & echo $!; read line", "sh", body],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=xstrace.cwd,
    )
    launcher = int(shell.stdout.readline())
    wait_until(lambda: log.exists() and log.read_text().startswith(f"{shell.pid}\n"))
    shell.communicate(b"\n")
    wait_until(lambda: "changed" in log.read_text(), 10)
    wait_until(lambda: not alive(launcher))


# ---- outputs of tools, in directories where others may make files ----


@pytest.fixture
def crowded(tmp_path):
    """Where everybody may make files, as in /tmp."""
    for part in (tmp_path, *tmp_path.parents):
        if "pytest-" in str(part):
            part.chmod(0o755)
    place = tmp_path / "crowded"
    place.mkdir()
    place.chmod(0o1777)
    (tmp_path / "in.json").write_text('{"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":3,"tid":3,"name":"a","cat":"cpu_op"}]}')
    return place


def tool(name, place, *words):
    command = [sys.executable, ROOT / "scripts" / name, *words]
    return subprocess.run(command, cwd=place.parent, capture_output=True, text=True, timeout=60)


@root_only
def test_rights_of_a_file_that_another_made(crowded):
    """The output that takes its place has the rights of a new file: no setuid, and nobody else may write there."""
    output = crowded / "out.csv"
    as_nobody("sh", "-c", f"umask 0; echo x > {output}; chmod 6777 {output}")
    assert tool("xstrace-query", crowded, "--format", "csv", "-o", output, "in.json", "select 1").returncode == 0
    status = output.stat()
    assert (status.st_uid, status.st_mode & 0o7777) == (os.geteuid(), 0o666 & ~umask())
    output.chmod(0o4640)
    assert tool("xstrace-query", crowded, "--format", "csv", "-o", output, "in.json", "select 1").returncode == 0
    assert output.stat().st_mode & 0o7777 == 0o640


@root_only
def test_links_that_another_made(crowded):
    """Where the kernel follows no link of another user's in such a directory, tools do not follow it either."""
    if Path("/proc/sys/fs/protected_symlinks").read_text().strip() != "1":
        pytest.skip("fs.protected_symlinks is not 1")
    victim = crowded.parent / "victim"
    victim.write_text("mine")
    as_nobody("ln", "-s", victim, crowded / "out.csv")
    done = tool("xstrace-query", crowded, "--format", "csv", "-o", crowded / "out.csv", "in.json", "select 1")
    assert done.returncode and "Permission denied" in done.stderr and victim.read_text() == "mine"


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
