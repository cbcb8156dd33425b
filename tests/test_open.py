"""What is on its way when a process ends, or recording does: it is in the trace, or it is counted and told; in all ways to end."""

import json
import re

import pytest
from conftest import APPS, XSTRACE
from gpu_log import DRIVER, SoftGPU
from ranks import MPI, MPIEXEC, Ranks, mpi_app, needs_mpi  # noqa: F401

needs_ze = pytest.mark.skipif(not DRIVER.exists(), reason="no Level Zero headers")
needs_cl = pytest.mark.skipif(not (APPS / "cl_open").exists(), reason="no OpenCL headers")

KERNELS = "--chrome-kernel-logging"
ENDS = {"return": "exited", "_exit": "exited", "kill": "killed", "exec": "exec"}


def told(run, what):
    """The number in the line that tells of what is missing; 0: there is none."""
    found = [re.search(rf"(\d+) {what}s? of process", line) for line in run.said if "not known to be complete" in line]
    return sum(int(match[1]) for match in found if match)


def check_counts(run, trace, all_of_them):
    """Each command is in the trace once or counted: how many are counted."""
    still_open = trace.other.get("open_commands", 0)
    assert len(trace.device) + still_open == all_of_them and trace.other["lost"] == 0
    assert told(run, "command") == still_open
    return still_open


# ---- Level Zero ----


def ze(xstrace, gpu, options, kind, end, *args):
    words = ["--list", kind, "--sync", "none", "--kernel", "empty", "--end", end]
    return xstrace(options, "ze_matrix", [*words, *args], env=gpu.env)


@needs_ze
@pytest.mark.parametrize("order", [[], ["--in-order"]])
@pytest.mark.parametrize("kind", ["immediate", "regular"])
@pytest.mark.parametrize("count", [1, 63, 100])
def test_what_is_just_about_to_end_is_waited_for(xstrace, tmp_path, count, kind, order):
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=20000", WORKERS=1)

    def missing():
        run = ze(xstrace, gpu, KERNELS, kind, "return", "--kernels", count, *order)
        return check_counts(run, run.trace, count)

    # a moment is all that it gets: on a machine that is busy with other things that may not do
    assert not all(missing() for _ in range(3))


@needs_ze
@pytest.mark.parametrize("kind", ["immediate", "regular"])
@pytest.mark.parametrize("end", ENDS)
def test_commands_that_run_on(xstrace, tmp_path, end, kind):
    """Three kernels never end; the fills that were appended behind them do."""
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=60000000000", WORKERS=8)
    run = ze(xstrace, gpu, KERNELS, kind, end, "--kernels", 3, "--fills", 4)
    trace = next(t for t in run.traces if t.other["end"] == ENDS[end])
    missing = check_counts(run, trace, 7)
    # who returns from main has our last look, which does not mind the order in which an immediate list's commands end
    assert missing == (3 if (end, kind) == ("return", "immediate") else 7)


@needs_ze
@pytest.mark.parametrize("events", ["timed", "plain"])
def test_commands_that_run_on_with_events_of_the_program(xstrace, tmp_path, events):
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=60000000000", WORKERS=8)
    args = ["--kernels", 2, "--fills", 3, "--events", events]
    run = ze(xstrace, gpu, KERNELS, "immediate", "return", *args)
    assert check_counts(run, run.trace, 5) == 2


@needs_ze
def test_many_lists_share_the_time_at_the_end(xstrace, tmp_path):
    """Forty lists whose commands never end hold the end of the program up no longer than one."""
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=60000000000", WORKERS=2)

    def seconds(lists):
        run = ze(xstrace, gpu, KERNELS, "immediate", "return", "--kernels", 1, "--threads", lists)
        assert check_counts(run, run.trace, lists) == lists
        return run.seconds

    one, forty = min(seconds(1) for _ in range(3)), min(seconds(40) for _ in range(3))
    assert forty - one < 0.6


@needs_ze
@pytest.mark.parametrize("option", ["-d", "-s", "--chrome-device-logging"])
def test_nothing_else_is_seen(xstrace, tmp_path, option):
    """No event of interest is no word about it: a single launch that runs on."""
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=60000000000")
    run = ze(xstrace, gpu, option, "immediate", "return", "--kernels", 1)
    assert told(run, "command") == 1
    assert not any("No event of interest" in line for line in run.said)


@needs_ze
@pytest.mark.parametrize("kind, sync", [("immediate", "list"), ("regular", "queue")])
def test_what_ends_while_nothing_is_recorded(xstrace, tmp_path, kind, sync):
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=300000000", WORKERS=3)
    args = ["--list", kind, "--kernel", "empty", "--kernels", 3, "--sync", sync]
    run = xstrace(KERNELS + " --duration 150ms", "ze_matrix", args, env=gpu.env)
    assert run.trace.count("kernels") == 0 and told(run, "command") == run.trace.other["open_commands"] == 3


@needs_ze
@pytest.mark.parametrize("option", ["-d", "-h -d", "-s"])
def test_reports_say_what_is_not_in_them(xstrace, tmp_path, option):
    gpu = SoftGPU(tmp_path, DURATION_NS="empty=60000000000", WORKERS=8)
    args = ["--kernels", 3, "--fills", 4]
    run = ze(xstrace, gpu, option, "immediate", "return", *args)
    assert run.err.count("(3 commands are not in this table: not known to be complete") == 1
    ze(xstrace, gpu, f"{option} --report-format=json -o rep.txt", "immediate", "return", *args)
    rows = json.loads(next(xstrace.cwd.glob("rep.*.txt")).read_text())
    assert rows[-1]["report"] == "process"
    assert (rows[-1]["lost"], rows[-1]["open_commands"], rows[-1]["untimed_commands"]) == (0, 3, 0)


@pytest.mark.long
@needs_ze
def test_counts_of_a_run_that_is_complete(xstrace, tmp_path):
    gpu = SoftGPU(tmp_path)
    args = ["--list", "immediate", "--kernels", 1000, "--executions", 3, "--threads", 3, "--events", "timed"]
    for options in (KERNELS, KERNELS + " --on-full=drop --ring-size=64K", KERNELS + " --separate-tiles"):
        run = xstrace(options, "ze_matrix", args, env=gpu.env)
        assert "open_commands" not in run.trace.other and "untimed_commands" not in run.trace.other
        assert told(run, "command") == 0


# ---- OpenCL ----


@needs_cl
@pytest.mark.parametrize("end", ENDS)
def test_opencl(xstrace, end):
    run = xstrace(KERNELS, "cl_open", [5, 3, end])
    trace = next(t for t in run.traces if t.other["end"] == ENDS[end])
    missing = check_counts(run, trace, 8)
    # a callback may be late where nobody waits for it
    assert missing == 3 if end == "return" else missing >= 3


@needs_cl
def test_opencl_released_before(xstrace):
    run = xstrace(KERNELS, "cl_open", [5, 3, "release"])
    assert check_counts(run, run.trace, 8) == 3


@needs_cl
def test_opencl_of_a_parent(xstrace):
    """What a forked child inherits is neither in its trace nor counted there."""
    run = xstrace(KERNELS, "cl_open", [5, 3, "fork"])
    parent = next(t for t in run.traces if t.calls)
    assert check_counts(run, parent, 8) >= 3
    assert all(not t.device and "open_commands" not in t.other for t in run.traces if t is not parent)


@needs_cl
def test_opencl_waits_a_moment(xstrace):
    run = xstrace(KERNELS, "cl_open", [0, 3, "quick"])
    assert check_counts(run, run.trace, 3) == 0


@needs_cl
def test_opencl_alone(xstrace):
    run = xstrace("-d", "cl_open", [0, 1, "return"])
    assert told(run, "command") == 1
    assert not any("No event of interest" in line for line in run.said)


# ---- MPI ----


@needs_mpi
@pytest.mark.parametrize("end", ["_exit", "abort"])
def test_requests(xstrace, mpi_app, end):  # noqa: F811
    job = Ranks(xstrace, MPI, mpi_app("mpi_open"), [xstrace.cwd, end])
    for trace in job.traces.values():
        open_ = [s for s in trace.slices if s.cat == "mpi_request" and s.unfinished]
        assert trace.other["open_requests"] == len(open_) == 2
    if end != "abort":  # mpiexec says nothing more of what it ends
        assert told(job.run, "MPI request") == 2 * len(job.traces)


@needs_mpi
def test_requests_in_a_report(xstrace, mpi_app):  # noqa: F811
    words = ["-n", "2", XSTRACE, "-h", "--report-format=json", "-o", "rep.json", mpi_app("mpi_open"), xstrace.cwd]
    run = xstrace.bare(MPIEXEC, [str(word) for word in words])
    rows = [json.loads(path.read_text())[-1] for path in xstrace.cwd.glob("rep.*.json")]
    assert [row["open_requests"] for row in rows] == [2, 2] and told(run, "MPI request") == 4
