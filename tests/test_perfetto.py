"""Perfetto's own UI opens what we write and misses nothing; only with XSTRACE_TEST_CLIENTS=1."""

import os
import signal

import perfetto_ui
import pytest

from conftest import Trace
from merging import arrows, merge, talk
from ranks import Job, Slewed

pytestmark = pytest.mark.skipif(
    os.environ.get("XSTRACE_TEST_CLIENTS") != "1", reason="XSTRACE_TEST_CLIENTS is not 1"
)
ALL = "--chrome-call-logging --chrome-kernel-logging --chrome-itt-logging"


@pytest.fixture(autouse=True)
def available(time_limit):
    signal.alarm(300)
    try:
        perfetto_ui.browser(), perfetto_ui.ui_directory(), perfetto_ui.devtools()
    except perfetto_ui.Unavailable as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    "options, app, args",
    [
        (ALL, "gemm", []),
        (f"{ALL} --chrome-no-thread-on-device --chrome-no-engine-on-device", "cl_enqueue", []),
        (f"{ALL} --compress zstd", "cl_matrix", []),
        ("--chrome-itt-logging", "itt_tasks", [20000, 4]),
        ("--chrome-itt-logging", "itt_end", ["fork_exit"]),
        ("--chrome-itt-logging", "itt_names", []),
        ("--chrome-itt-logging", "itt_threads", []),
        ("--chrome-itt-logging --on-full drop --ring-size 64K", "itt_tasks", [100000, 3]),
    ],
)
def test_imports_everything(xstrace, tmp_path, options, app, args):
    run = xstrace(options, app, args)
    for number, trace in enumerate(run.traces):
        image = tmp_path / f"{number}.png"
        with perfetto_ui.PerfettoUI(trace.path) as ui:
            assert ui.report() == perfetto_ui.expected(trace.path)
            perfetto_ui.picture(ui, image)
        assert image.stat().st_size > 10000
    assert run.traces


def test_times_and_names_are_the_same(xstrace):
    trace = xstrace(ALL, "gemm").trace
    with perfetto_ui.PerfettoUI(trace.path) as ui:
        rows = ui.query("select name, category, ts, dur from slice order by ts, dur desc, name")
    wanted = sorted((s.name, s.cat, s.start, s.end - s.start) for s in trace.slices)
    assert sorted(map(tuple, rows)) == wanted


@pytest.mark.parametrize("options, app, args", [(ALL, "gemm", []), ("--chrome-itt-logging", "itt_tasks", [3000, 2, "--depth", 3])])
def test_packets_are_what_they_say(xstrace, options, app, args):
    """--format perfetto: what our reader finds in a file is what Perfetto does, to the ns, and nothing is wrong with it."""
    trace = xstrace(f"{options} --format perfetto", app, args).trace
    with perfetto_ui.PerfettoUI(trace.path) as ui:
        assert ui.report()["wrong"] == {} and ui.report()["flows"] == sum(e["ph"] == "f" for e in trace.events)
        rows = ui.query("select name, ts, dur from slice where name not glob 'xstrace::*'")
    assert sorted(map(tuple, rows)) == sorted((s.name, s.start, s.end - s.start) for s in trace.slices)


@pytest.mark.parametrize("name", ["all.json", "all.pftrace"])
def test_merged_ranks(tmp_path, name):
    """Perfetto sees the same slices and arrows in both formats, and nothing wrong."""
    clocks = {"b": Slewed(10**9, [(0, 50), (200_000_000, -300)])}
    job = talk(Job(["a", "a", "b", "b"], clocks), 20)
    paths = job.write(tmp_path)
    merge("-o", "wanted.json", *paths, cwd=tmp_path)
    merge("-o", name, *paths, cwd=tmp_path)
    wanted = Trace(tmp_path / "wanted.json")
    with perfetto_ui.PerfettoUI(tmp_path / name) as ui:
        assert ui.report() == perfetto_ui.expected(tmp_path / "wanted.json")
        rows = ui.query(
            "select s.name, s.category, s.ts, s.dur, t.tid, p.name from slice s join thread_track tt "
            "on s.track_id = tt.id join thread t using (utid) join process p using (upid)"
        )
        ends = ui.query(
            "select a.ts, b.ts from flow join slice a on a.id = slice_out "
            "join slice b on b.id = slice_in"
        )
    processes = wanted.names("process_name")
    assert sorted(map(tuple, rows)) == sorted(
        (s.name, s.cat, s.start, s.end - s.start, s.track[1], processes[s.track[0], s.track[0]])
        for s in wanted.slices
    )

    def around(point):
        return next(
            s.start
            for s in wanted.slices
            if s.track == (point["pid"], point["tid"]) and s.start <= point["ts"] <= s.end
        )

    # whichever way an arrow leads, Perfetto takes the slice that began first for its beginning
    found = sorted(tuple(sorted((around(s), around(f)))) for s, f in arrows(wanted))
    assert sorted(tuple(sorted(pair)) for pair in ends) == found
