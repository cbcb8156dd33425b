"""xstrace-summary: what it says of whose trace."""

import pytest

from made import CLILOADER, DEVICE, KINETO, METADATA, NAMES, UNITRACE, kernel, named, normal_events, slice_, text_of_trace
from xstrace import cli, ranks, summarize, summary


def lines_of(make, events, **members):
    lines = summarize(make(events, **members))
    assert 0 < len(lines) <= 10
    for line in lines:
        assert cli.columns(line) <= 100 and line.isprintable()
    return lines


def starting(lines, word):
    found = [line for line in lines if line.startswith(word)]
    assert len(found) == 1, lines
    return found[0]


def test_summary_of_ours(make):
    copy = kernel(
        "clEnqueueWriteBuffer[4000]", 10**12 + 20_000, 10**12 + 22_000, args={"bytes": 4000}
    )
    lines = lines_of(make, normal_events(2) + [copy])
    assert lines[0].endswith("t.json: xstrace 0.1.0, host vm, pid 7")
    assert lines[1] == "command   ./app 3"
    assert lines[2] == "time      2026-11-21 00:16:40.000 UTC, wall span 22 us"
    assert lines[3] == "end       exited, status 0, nothing lost"
    assert lines[4] == "events    17: calls 4, tasks 2, kernels 2, copies 1, flow points 4, names 4"
    assert (
        lines[5] == "calls     clFinish 2x avg 6 us 67 %; clEnqueueNDRangeKernel 2x avg 3 us 33 %"
    )
    assert lines[6] == 'tasks     d::t"a\\s?\u2603k\U0001f600 2x avg 7 us 100 %'
    assert lines[7] == "kernels   GEMM[SIMD8 {1; 1; 1} {2; 2; 2}] 2x avg 3 us 100 %"
    assert lines[8] == "copies    clEnqueueWriteBuffer 1x 4 kB 2 GB/s"
    assert lines[9] == "devices   Fake GPU 3000 busy 36.4 %"
    assert len(lines) == 10


@pytest.mark.parametrize(
    "other, text",
    [
        ({"end": "exited", "status": 3}, "exited, status 3"),
        ({"end": "killed", "status": 9}, "killed by signal 9 (SIGKILL)"),
        ({"end": "killed", "status": 9999}, "killed by signal 9999"),
        ({"end": "exec"}, "exec"),
        ({"end": "running", "lost": 1234}, "running, RECORDS LOST: 1,234"),
        ({"threads": [{"tid": 5, "in_call": "clFinish"}, {"tid": 6}]}, "thread 5 was in clFinish"),
    ],
)
def test_summary_says_how_it_ended(make, other, text):
    assert starting(lines_of(make, normal_events(), other=other), "end") == "end       " + text


def test_summary_of_a_cut_file(make):
    lines = lines_of(make, text_of_trace(normal_events())[:-60])
    assert starting(lines, "end") == "end       THE FILE WAS CUT"


def test_summary_of_a_damaged_file(make):
    text = text_of_trace(normal_events()).replace("clFinish", "cl\tFinish")
    assert "DAMAGED PLACES IN THE FILE: 3" in starting(lines_of(make, text), "end")


@pytest.mark.parametrize(
    "spoil, status", [(lambda text: text[:-60], 0), (lambda text: text + text, 1), (lambda text: text.replace("clFinish", "cl\tFinish"), 0)]
)
def test_the_status_says_whether_something_was_left_out(make, capsys, spoil, status):
    """What was cut off a file was never there, and a name with a tab in it can be read."""
    path = str(make(spoil(text_of_trace(normal_events()))))
    assert [summary.main([path]), summary.main(["--json", path])] == [status, status]
    capsys.readouterr()


def test_energy_says_what_could_not_be_read(make, capsys):
    counters = [{"ph": "C", "name": "energy of 0 package [J]", "pid": 7, "tid": 7, "ts": ts, "args": {"value": ts}} for ts in (0, 50_000)]
    text = text_of_trace([slice_("d::a", 0, 1000), *counters])
    found = []
    for one, status, says in ((text, 0, ""), (text[: text.rindex("]")], 0, "was cut"), (text + text, 1, "behind the end of the trace; left out")):
        path = str(make(one))
        assert summary.main(["--energy", "--json", path]) == status
        told = capsys.readouterr()
        found.append(told.out)
        assert told.err.startswith(f"xstrace-summary: {path}: ") == bool(says) and says in told.err
    assert found[0] == found[1] == found[2]


def test_summary_of_a_trace_without_events(make):
    lines = lines_of(make, [])
    assert lines[-1] == "events    0" and "exited" in starting(lines, "end")


def test_summary_of_unitrace(make):
    device = """,
{"ph": "M", "name": "process_name", "pid": 4294699519, "ts": 1.0, "args": {"name": "DEVICE<vm>[AMD EPYC] 0:0:0:0"}},
{"ph": "X", "tid": 4294699519, "pid": 4294699519, "name": "GEMM[SIMD16 {64; 64; 1} {0; 0; 0}]", "cat": "gpu_op", "ts": 1795246672698000.000000, "dur": 100.000000, "args": {"id": "3"}},
{"ph": "X", "tid": 4294699519, "pid": 4294699519, "name": "zeCommandListAppendMemoryCopy(M2D)[16384]", "cat": "gpu_op", "ts": 1795246672698100.000000, "dur": 16.384000, "args": {"id": "4"}},
{"ph": "X", "tid": 8, "pid": 8, "name": "MPI::MPI_Send", "cat": "cpu_op", "ts": 1795246672698000.000000, "dur": 4.000000, "id": 0}
]"""
    lines = lines_of(make, UNITRACE.replace("\n]", device))
    assert lines[0].endswith("t.json: host vm, pid 8")
    assert starting(lines, "time") == "time      2026-11-21 07:37:52.697 UTC, wall span 1.14 ms"
    assert starting(lines, "calls") == "calls     MPI::MPI_Send 1x avg 4 us 100 %"
    assert starting(lines, "tasks").startswith("tasks     d::a 1x avg 1.13 ms 100 %; d::b 1x")
    assert (
        starting(lines, "copies")
        == "copies    zeCommandListAppendMemoryCopy(M2D) 1x 16.4 kB 1 GB/s"
    )
    assert starting(lines, "devices") == "devices   AMD EPYC busy 10.2 %"


def test_summary_of_kineto(make):
    lines = lines_of(make, KINETO)
    assert lines[0].endswith("t.json: Kineto, rank 3")
    assert starting(lines, "calls") == "calls     cudaLaunchKernel 1x avg 5 us 100 %"
    assert starting(lines, "tasks") == "tasks     aten::mm 1x avg 50.5 us 100 %"
    assert starting(lines, "kernels") == "kernels   void gemm<float, 4>(float*) 1x avg 20 us 100 %"
    assert starting(lines, "copies") == "copies    Memcpy HtoD (Pinned -> Device) 1x 40 kB 4 GB/s"
    assert starting(lines, "devices") == "devices   GPU 0 busy 30.0 %"


def test_summary_of_cliloader(make):
    lines = lines_of(make, CLILOADER)
    assert starting(lines, "calls").startswith(
        "calls     clGetPlatformIDs 1x avg 150 ns 79 %; clFinish 1x"
    )


def test_slices_of_two_events(make):
    """B and E are as one X; a slice without an end goes to the trace's."""
    events = [
        {"ph": "B", "pid": 1, "tid": 1, "ts": 1000, "cat": "cpu_op", "name": "a::A"},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 2000, "dur": 5000, "cat": "cpu_op", "name": "a::B"},
        {"ph": "B", "pid": 1, "tid": 2, "ts": 17000, "cat": "cpu_op", "name": "a::open"},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 21000},
        {"ph": "E", "pid": 1, "tid": 3, "ts": 21000},
    ]
    assert "tasks 3, others 2" in starting(lines_of(make, events), "events")
    assert starting(lines_of(make, events), "tasks").split(None, 1)[1] == "a::A 1x avg 20 us 69 %; a::B 1x avg 5 us 17 %; a::open 1x avg 4 us 14 %"
    totals = ranks.statistics(str(make(events)))[0]["totals"]
    assert {one["name"]: one["total_ns"] for one in totals} == {"a::A": 20000, "a::B": 5000, "a::open": 4000}


def test_slices_without_a_category(make):
    """Are what their names say."""
    events = [{"ph": "X", "pid": 1, "tid": 1, "ts": at, "dur": 1, "name": name} for at, name in enumerate(("clFinish", "work"))]
    assert "calls 1, tasks 1" in starting(lines_of(make, events), "events")


def test_device_is_busy_once_where_work_overlaps(make):
    events = NAMES + [kernel("a", 0, 600), kernel("b", 500, 700, tid=2), slice_("c", 0, 1000)]
    assert starting(lines_of(make, events), "devices") == "devices   Fake GPU 3000 busy 70.0 %"


def test_summary_has_room_for_any_name(make):
    """Wide characters, escape sequences, newlines, no end of them."""
    events = list(NAMES)
    for n, name in enumerate(
        ["\u6f22\u5b57" * 60, "\x1b[31mred" * 30, "a\nb\rc\u2028" * 30, "x" * 500 + "1"]
    ):
        t = n * 10_000
        events += [
            slice_("d::" + name, t, t + 900),
            slice_("clC" + name, t, t + 1000),
            kernel(name, t, t + 1000),
        ]
        events += [kernel(name + "[77]", t + 1000, t + 2000, args={"bytes": 77})]
        events += [slice_(name, t, t + 10, pid=DEVICE + 1 + n, cat="gpu_op")]
        events += [named("process_name", f"DEVICE<vm>[{name}]", DEVICE + 1 + n)]
    other = {"end": "x" * 300, "threads": [{"in_call": "y" * 300}]}
    lines = lines_of(
        make,
        events,
        metadata={**METADATA, "command": ["\u6f22\n" * 99], "host": "h" * 200},
        other=other,
    )
    assert len(lines) == 10
    assert "; " in starting(lines, "kernels") and "more" in starting(lines, "kernels")


def test_names_that_differ_at_their_ends_stay_different(make):
    events = [
        slice_(f"some_domain::a_very_long_name_of_a_task_{n}", n * 10, n * 10 + 5) for n in range(2)
    ]
    line = starting(lines_of(make, events), "tasks")
    assert "task_0 1x" in line and "task_1 1x" in line


@pytest.mark.parametrize(
    "text, width, clipped",
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("\u6f22\u5b57\u6f22", 6, "\u6f22\u5b57\u6f22"),
        ("\u6f22\u5b57\u6f22", 5, "\u6f22\u5b57…"),
        ("\u6f22\u5b57\u6f22", 4, "\u6f22…"),
        ("ab", 1, "…"),
    ],
)
def test_clip(text, width, clipped):
    assert cli.clip(text, width) == clipped
    for room in range(9, 12):
        assert cli.columns(cli.clip_middle(text * 9, room)) <= room
