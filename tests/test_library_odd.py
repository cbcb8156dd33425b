"""What no program is expected to do with the library (tests/apps/library_odd.c): nothing happens to the program, and it is told."""

import re
from pathlib import Path

import pytest

from conftest import APPS, Trace, mounted, root_only

ODD = APPS / "library_odd"


def run(xstrace, *words):
    run = xstrace.bare(ODD, [str(word) for word in words], cwd=xstrace.home, timeout=60)
    assert run.status == 0 and run.err == "", (run.status, run.err, run.out)
    return run.out


def test_cancelled_threads(xstrace, private):
    """A thread that is cancelled within a call of ours holds no lock for ever."""
    assert run(xstrace, "cancel") == "once more: 0\n"


def test_threads_that_are_cancelled_anywhere(xstrace):
    """Also where the signal was sent before we had said that it must not be."""
    run = xstrace("--chrome-itt-logging", "library_odd", ["anywhere"], timeout=60)
    assert (run.status, run.out) == (0, "all joined\n")


def test_many_traces_in_a_run_of_the_launcher(xstrace):
    """Each has another id; the former one's room is free again."""
    run = xstrace("--chrome-itt-logging", "library_odd", ["often", 4000])
    assert run.status == 0 and not [line for line in run.said if "WARNING" in line], run.said
    assert "omitted" not in run.trace.other


def test_small_stacks(xstrace, private):
    assert run(xstrace, "stack") == "stop: 0\n"


def test_a_trace_that_starts_while_events_are_told(xstrace, private):
    assert run(xstrace, "post") == "start: 0\nstop: 0\ntold 10\nstop: 0\n"


def test_a_child_has_no_trace_of_its_parent(xstrace, private):
    """A child of fork that runs its parent's destructors neither takes nor removes the trace."""
    out = run(xstrace, "fork")
    assert "child's save: 1, the trace belongs to the process that this one was forked from" in out
    assert out.endswith("save: 0\n")
    assert len(Trace(xstrace.home / "parent.json").events) and not (xstrace.home / "child.json").exists()


@pytest.mark.long
def test_a_child_that_is_forked_while_a_lock_is_held(xstrace, private):
    assert run(xstrace, "locked") == "done\n"


def test_subreaper(xstrace, private):
    """What we start never becomes the program's own child."""
    assert run(xstrace, "reaper") == "once: 0\nsubreaper 1, child -1\n"


def test_no_descriptors_for_the_stop(xstrace, private):
    """Nothing is lost: recording goes on until there are some."""
    out = run(xstrace, "descriptors").splitlines()
    assert out[0] == "start: 0" and re.fullmatch(r"stop: 6, .*: Too many open files", out[1])
    assert out[2:] == ["active 1", "stop: 0", "events 1"]


@pytest.mark.parametrize("descriptors", [3, 4, 5, 6, 7, 8])
def test_a_run_that_cannot_begin(xstrace, private, descriptors):
    """Nothing of it stays (`private`)."""
    assert run(xstrace, "limited", descriptors).startswith("start ")


def test_limited_file_size(xstrace, private):
    """SIGXFSZ does not end the program: saving fails, and can be tried again."""
    other = Path("/dev/shm") / f"{xstrace.home.name}-{private.stat().st_ino}.json"  # another file system: it must be copied
    try:
        assert run(xstrace, "saved", other) == "start: 0\nstop: 0\nsave 6\nexport 6\nsave: 0\n"
        assert len(Trace(other).events) > 1000
    finally:
        other.unlink(missing_ok=True)


def test_long_metadata(xstrace, private):
    """What is too long is cut; what comes behind it has its own key."""
    out = run(xstrace, "list", xstrace.home / "list.json")
    assert out == "short: 0\nlong: 0\nshort: 0\ntransfer: 0\nstop: 0\nsave: 0\n"
    (slice,) = [s for s in Trace(xstrace.home / "list.json").slices if s.name == "activity"]
    assert slice.args["first"] == ["1"] and set(slice.args["long"][0]) == {"x"}
    assert "last" not in slice.args["long"] and slice.args["cut"]


def test_impossible_times(xstrace, private):
    """They are left out and counted as what they are, which is no fault of a ring."""
    out = run(xstrace, "times", xstrace.home / "times.json")
    assert out == "start: 0\nadd: 0\ntransfer: 0\nstop: 0\nsave: 0\n"
    trace = Trace(xstrace.home / "times.json")
    assert [s.name for s in trace.slices] == ["right"]
    assert trace.other["impossible_times"] == 5 and "corrupt_rings" not in trace.other


def test_impossible_times_are_told(xstrace, tmp_path):
    run = xstrace("--chrome-itt-logging", "library_odd", ["times", str(tmp_path / "none.json")])
    (line,) = [line for line in run.said if "WARNING" in line]
    assert "5 events of process" in line and "left out: the times that the program or a driver told cannot be" in line


def test_too_many_options(xstrace, private):
    assert run(xstrace, "words", 40) == "prepare: 0\n"
    assert run(xstrace, "words", 200).startswith("prepare: 4, options: more than ")


@root_only
@pytest.mark.parametrize("size, complete", [("300k", False), ("1m", False), ("3m", False), ("30m", True)])
def test_full_disk(xstrace, private, size, complete):
    """The trace says that it is cut, and the list of events that it is not there."""
    path = xstrace.home / "full.json"
    with mounted(private, f"size={size}"):
        out = run(xstrace, "names", 3000, path)
    trace = Trace(path)
    if complete:
        assert "events 3000, " in out
        assert "write_error" not in trace.other and "an event: 0\n" in out
    else:
        assert "events 0, characters 0\nan event: 6, there was no room" in out
        assert (trace.other.get("write_error") == "No space left on device") == (len(trace.events) < 3000)


def test_sizes_of_the_configuration(xstrace, private):
    """Half a pointer is none."""
    assert run(xstrace, "sizes") == "wrong: 0\n"


def test_prepare_again(xstrace, private):
    """The last preparation counts; what belongs to the run cannot be changed, and that is said."""
    out = run(xstrace, "again", private).splitlines()
    assert out[:3] == ["prepare: 0"] * 3
    assert re.fullmatch(r"prepare: 3, .* options '--tid', which cannot be changed to '--format kineto'", out[3])
    assert re.fullmatch(rf"prepare: 3, .* directory '{private}', which cannot be changed to '/'", out[4])
    assert out[5:] == ["start: 0", "stop: 0", "events 1", "save: 0"]
    assert Trace(xstrace.home / "again.json").other["application"]["trace_id"] == "third"
