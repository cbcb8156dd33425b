"""What becomes of a trace's files in a program that contains xstrace (tests/apps/library_files.c): each failure says what is wrong, and leaves nothing."""

import re
import resource


from conftest import APPS, Trace, mounted, root_only

FILES = APPS / "library_files"


def run(xstrace, *words, env=None, **more):
    run = xstrace.bare(FILES, [str(word) for word in words], cwd=xstrace.home, env=env, timeout=60, **more)
    assert run.status == 0 and run.err == "", (run.status, run.err, run.out)
    return run.out


def test_two_threads_save_one_trace(xstrace, private):
    """One of them has saved it, the other is told so: on another file system it takes a while."""
    a, b = (f"/dev/shm/{xstrace.home.name}-{private.stat().st_ino}-{name}.json" for name in "ab")
    assert run(xstrace, "twice", a, b) == "saved once 40, there 40 of 40\n"


def test_the_directory_is_removed_while_a_trace_is_recorded(xstrace, private):
    """The stop says what is wrong, and so does the next one, whose file could not be made."""
    place = xstrace.home / "place"
    place.mkdir()
    out = run(xstrace, "gone", place).splitlines()
    assert out[:3] == ["prepare: 0", "start: 0", "rmdir: 0"]
    assert re.fullmatch(rf"stop: 6, (the trace is gone|the drain process could not write the trace): {place}(/library_files\.\d+\.json)?: No such file or directory", out[3])
    assert out[4:6] == ["active 0, trace 0", "start: 0"]
    assert out[6].startswith("stop: 6, the ") and str(place) in out[6] and out[6].endswith(": No such file or directory")
    assert out[7:] == ["active 0, trace 0"]


def test_somebody_removes_the_trace(xstrace, private):
    """The file that is missing is named, not the one that was to be."""
    save, there = run(xstrace, "taken", "wished.json").splitlines()
    assert re.fullmatch(rf"save: 6, the trace is gone: {private}/xstrace-\w+/library_files\.\d+\.json: No such file or directory", save)
    assert there == "there 0, events 10"


@root_only
def test_no_room_where_it_is_saved(xstrace, private):
    """Nothing that is cut stays under the name, and the trace can be saved elsewhere."""
    small = xstrace.home / "small"
    small.mkdir()
    with mounted(small, "size=64k"):
        out = run(xstrace, "full", small / "trace.json")
        assert out == f"save: 6, {small}/trace.json: No space left on device\nthere 0\nsave elsewhere: 0\n"
        assert run(xstrace, "memory", small / "memory.json") == "export: 6, there 0\n"
        assert not list(small.iterdir())
    assert len(Trace(xstrace.home / "elsewhere.json").slices) == 20000


def test_no_event(xstrace, private):
    """A trace in which nothing happened has no list because of that, not because of a full disk."""
    assert run(xstrace, "empty") == "stop: 0\nevents 0\nevent: 4, the trace has no event 0\n" * 2


def test_numbers_of_steps(xstrace, private):
    """They are the program's: what nobody records counts, and it can say its own."""
    assert run(xstrace, "steps", "steps.json") == "save: 0\n"
    assert [s.name for s in Trace(xstrace.home / "steps.json").slices] == ["ProfilerStep#6", "ProfilerStep#70"]


# ---- a run that the environment lets not begin ----


def cannot(xstrace, *words, **more):
    """XSTRACE_OFF: it is no mistake of the program's."""
    out = run(xstrace, "prepare", *words, **more)
    assert out.startswith("prepare: 1, ") and "XXXXXX" not in out, out
    return out.removeprefix("prepare: 1, ").rstrip("\n")


def test_no_place_for_traces(xstrace):
    assert cannot(xstrace, env={"TMPDIR": "/no/such"}) == "no directory for traces can be made in /no/such: No such file or directory"


def test_a_session_that_is_none(xstrace, private):
    said = cannot(xstrace, env={"XSTRACE_SESSION": "my job"})
    assert said == "XSTRACE_SESSION: 'my job' is not a name of at most 128 letters, digits, '_', '-' and '.'"


def test_limited_files(xstrace, private):
    """Not even the run's own files can be made."""
    said = cannot(xstrace, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
    assert said == "cannot make a run directory in /dev/shm, $XDG_RUNTIME_DIR, $TMPDIR or /tmp: File too large"


def test_a_directory_of_the_programs_is_its_mistake(xstrace, private):
    assert run(xstrace, "prepare", "/no/such") == "prepare: 4, /no/such: No such file or directory\n"
