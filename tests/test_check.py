"""xstrace-check: what it says of which fault, and that it is quiet without one."""

import random
import time
from array import array

import pytest

from made import BASE, CLILOADER, DAY, DEVICE, KINETO, OTHER, UNITRACE, flow, kernel, named, normal_events, slice_, text_of_trace, us
from xstrace import check, check_trace, intervals


def problems(make, events, **members):
    return check_trace(make(events, **members), strict=True)


def with_normal(*events):
    return normal_events(1) + list(events)


def test_good_traces_have_no_problems(make):
    assert problems(make, []) == []
    assert problems(make, normal_events(50)) == []
    assert problems(make, UNITRACE) == []
    assert problems(make, KINETO) == []
    assert problems(make, CLILOADER) == []


def one(make, kind, *events, **members):
    """The events, beside a good trace, cause exactly one kind of problem. Returns its line."""
    found = problems(make, with_normal(*events), **members)
    assert len(found) == 1, found
    assert found[0].startswith(kind), found
    return found[0]


def test_says_cut_and_damage(make):
    good = text_of_trace(normal_events(1))
    assert problems(make, good[:-30]) == ["the file was cut"]
    assert problems(make, good + "x") == ["text behind the end: line 13"]
    assert problems(make, good.replace("clFinish", "cl\tFinish")) == [
        "unescaped control character: line 11"
    ]
    assert problems(make, good.replace("clFinish", 'cl"Finish')) == [
        "not valid JSON: line 11: Expecting ',' delimiter"
    ]
    assert problems(make, good.encode().replace(b"clFinish", b"cl\xffFinish")) == [
        "not valid UTF-8: line 11: invalid start byte"
    ]
    assert problems(make, good.replace("\n]", ",\n]")) == [
        "not valid JSON (comma): line 12: in front of the closing bracket"
    ]


@pytest.mark.parametrize("key", ["name", "ts", "dur", "pid", "tid"])
def test_slice_needs_its_members(make, key):
    event = slice_("a", 10**9, 10**9 + 5)
    del event[key]
    assert one(make, "event without " + ("a name" if key == "name" else key), event).endswith(
        "11: ph X"
    )


@pytest.mark.parametrize("value", ["5", None, True, [1], {}])
def test_times_are_numbers(make, value):
    one(make, "ts that is no time", {**slice_("a", 1, 2), "ts": value})
    one(make, "dur that is no time", {**slice_("a", 1, 2), "dur": value})


def test_negative_times(make):
    assert one(make, "negative dur", slice_("a", 5000, 3500)).endswith("-1.500 us")
    one(make, "negative ts", slice_("a", -5, 100))
    one(make, "negative ts", {"ph": "i", "name": "a", "pid": 7, "tid": 7, "ts": -1})


def test_range_of_times(make):
    """A run may last for weeks; what a double does not hold to the ns is out of range."""
    exact = 1 << 52
    assert problems(make, with_normal(slice_("a", 9 * DAY, 9 * DAY + 5 * DAY))) == []
    assert problems(make, with_normal(slice_("a", exact - 2, exact - 1))) == []
    assert one(make, "ts out of range", slice_("a", exact, exact + 1)).endswith("4503599627370.496 us")
    one(make, "ts out of range", slice_("a", BASE, BASE + 1))
    one(make, "dur out of range", slice_("a", 5, exact + 5))
    # others may count from 1970
    assert (
        problems(make, [slice_("a", BASE, BASE + 1), named("process_name", "p", 7)], metadata={})
        == []
    )
    assert problems(make, '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1e300,"dur":1}]')[
        0
    ].startswith("ts that is no time")
    assert problems(make, '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1e20,"dur":1}]')[
        0
    ].startswith("ts out of range")


@pytest.mark.parametrize("value", [1.5, 2**32, -(2**31) - 1, None, [], True])
def test_pids_and_tids_that_viewers_cannot_hold(make, value):
    one(make, "pid that viewers cannot hold", slice_("a", 1, 2, pid=value))
    one(make, "tid that viewers cannot hold", slice_("a", 1, 2, tid=value))


def test_largest_pid(make):
    name = named("process_name", "x", 2**32 - 1)
    assert problems(make, with_normal(name, slice_("a", 1, 2, pid=2**32 - 1, tid=2**32 - 1))) == []


def test_overlap(make):
    line = one(make, "slices that overlap", slice_("a", 1000, 5000), slice_("b", 4999, 6001))
    assert line == (
        "slices that overlap without nesting: a [1.000, 5.000] and b [4.999, 6.001] on pid 7 tid 7"
    )
    assert "(2 times)" in one(
        make, "slices that overlap", slice_("a", 1, 5), slice_("b", 4, 7), slice_("c", 6, 8)
    )


def test_overlap_by_one_nanosecond_far_from_zero(make):
    t = 2 * DAY - 10**9
    assert problems(make, with_normal(slice_("a", t, t + 5), slice_("b", t + 5, t + 9))) == []
    one(make, "slices that overlap", slice_("a", t, t + 6), slice_("b", t + 5, t + 9))


def test_what_is_no_overlap(make):
    fine = [
        slice_("outer", 1000, 9000),
        slice_("same", 1000, 9000),
        slice_("left", 1000, 3000),
        slice_("next", 3000, 5000),
        slice_("inner", 3000, 4000),
        slice_("right", 5000, 9000),
        slice_("nothing", 3000, 3000),
        slice_("nothing", 9000, 9000),
        slice_("nothing", 3500, 3500),
        slice_("after", 9000, 9001),
        slice_("other thread", 500, 1500, tid=8),
        slice_("other process", 500, 1500, pid=DEVICE),
    ]
    dice = random.Random(1)
    for _ in range(20):
        assert problems(make, with_normal(*fine)) == []
        dice.shuffle(fine)


def test_overlap_against_an_oracle():
    """Also in the orders that are not sorted: by begin, and by end with the inner ones first."""
    dice = random.Random(2)
    for _ in range(500):
        spans = []
        for _ in range(dice.randrange(7)):
            start = dice.randrange(10)
            spans.append((start, start + dice.randrange(6)))
        wrong = any(a[0] < b[0] < a[1] < b[1] for a in spans for b in spans)
        by_start = sorted(spans, key=lambda span: (span[0], -span[1]))
        by_end = sorted(spans, key=lambda span: (span[1], -span[0]))
        for ordered in (spans, by_start, by_end):
            starts = array("q", [start for start, _ in ordered])
            ends = array("q", [end for _, end in ordered])
            found = intervals.Intervals(starts, ends)
            pairs = list(found.overlaps())
            assert bool(pairs) == wrong, ordered
            for a, b in pairs:
                assert starts[a] < starts[b] < ends[a] < ends[b]
            union = found.union()
            for point in range(-1, 18):
                assert (point in union) == any(a <= point <= b for a, b in spans), ordered
            assert union.length() == len({cell for a, b in spans for cell in range(a, b)})


def test_slices_in_order_of_their_ends_are_not_sorted():
    starts, ends = array("q", [3, 1, 5, 0]), array("q", [4, 4, 6, 9])
    assert type(intervals.Intervals(starts, ends)._order) is range
    starts, ends = array("q", [3, 0, 5, 1]), array("q", [4, 9, 6, 4])
    assert type(intervals.Intervals(starts, ends)._order) is not range


def begin(ph, ts, name="a", tid=7):
    return {"ph": ph, "name": name, "cat": "x", "pid": 7, "tid": tid, "ts": ts}


def test_begin_and_end(make):
    fine = [begin("B", 1), begin("B", 2, "b"), begin("E", 3, "b"), begin("E", 4)]
    assert problems(make, with_normal(*fine)) == []
    unnamed = {"ph": "E", "pid": 7, "tid": 7, "ts": 5}
    assert problems(make, with_normal(begin("B", 1), unnamed)) == []
    one(make, "B without E", begin("B", 1), begin("B", 2), begin("E", 3))
    one(make, "B without E", begin("B", 1), begin("E", 2, tid=8), begin("B", 1, tid=8))
    one(make, "E without B", begin("E", 1))
    one(make, "E of another name", begin("B", 1, "a"), begin("E", 2, "b"))
    one(make, "slices that overlap", begin("B", 10), begin("E", 20), slice_("x", 15, 25))
    one(make, "event without ts", {"ph": "B", "name": "a", "pid": 7, "tid": 7})
    unnamed_end = {"ph": "E", "pid": 7, "tid": 7, "ts": 2}
    one(make, "event without a name", {"ph": "B", "pid": 7, "tid": 7, "ts": 1}, unnamed_end)


def test_begins_and_ends_that_cross_cost_the_same_each(make):
    """Each has a name of its own: the names are looked for once, not for each line that could be printed."""

    def seconds(count):
        begins = [begin("B", n, f"a{n}") for n in range(count)]
        ends = [begin("E", count + n, f"a{n}") for n in range(count)]
        before = time.process_time()
        assert f"E of another name ({count} times)" in one(make, "E of another name", *begins, *ends)
        return time.process_time() - before

    few = seconds(3000)
    assert seconds(24000) < 24 * few


HOST_SLICE = slice_("call", 1000, 2000)
DEVICE_SLICE = kernel("k", 3000, 4000)


def with_flow(*events):
    return (HOST_SLICE, DEVICE_SLICE, *events)


def test_good_flows(make):
    for start in (1000, 1500, 2000):
        for end in (3000, 3500, 4000):
            flows = with_flow(flow("s", start, id=9), flow("f", end, DEVICE, 1, id=9))
            assert problems(make, with_normal(*flows)) == []
    next_slice = {**flow("f", 2500, DEVICE, 1, id=9), "bp": "x"}
    assert problems(make, with_normal(*with_flow(flow("s", 1000, id=9), next_slice))) == []
    steps = [
        flow("f", 3900, DEVICE, 1, id="0x1"),
        flow("t", 3500, DEVICE, 1, id="0x1"),
        flow("s", 1000, id="0x1"),
    ]
    assert problems(make, with_normal(*with_flow(*steps))) == []
    at_nothing = slice_("marker", 6000, 6000), flow("s", 6000, id=9), flow("t", 6000, id=9)
    assert problems(make, with_normal(*at_nothing)) == []
    other = flow("s", 1000, id=1, cat="other"), flow("f", 3000, DEVICE, 1, id=1, cat="other")
    assert problems(make, with_normal(*with_flow(*other))) == []


@pytest.mark.parametrize("id", [9, 10**15, "abc", -3, 2**63])
def test_flow_without_its_other_side(make, id):
    line = one(make, "flow start without end", HOST_SLICE, flow("s", 1000, id=id))
    assert line == f"flow start without end: flow/dep id {id}"
    assert f"id {id}" in one(
        make, "flow end without start", DEVICE_SLICE, flow("f", 3000, DEVICE, 1, id=id)
    )
    one(make, "flow end without start", DEVICE_SLICE, flow("t", 3000, DEVICE, 1, id=id))


def test_flow_ids_are_not_reused(make):
    twice = with_flow(
        flow("s", 1000, id=9), flow("s", 1100, id=9), flow("f", 3000, DEVICE, 1, id=9)
    )
    one(make, "flow id used again", *twice)


def test_flow_goes_forward(make):
    late = slice_("late", 5000, 6000)
    one(
        make,
        "flow that ends before",
        late,
        *with_flow(flow("s", 5000, id=9), flow("f", 3000, DEVICE, 1, id=9)),
    )


def test_flow_start_needs_a_slice(make):
    end = flow("f", 3000, DEVICE, 1, id=9)
    for ts in (999, 2001):
        line = one(make, "flow start on no slice", *with_flow(flow("s", ts, id=9), end))
        assert line.endswith(f"flow/dep id 9 at {us(ts)} us on pid 7 tid 7")
    one(make, "flow start on no slice", *with_flow(flow("s", 1000, tid=99, id=9), end))


def test_flow_end_needs_a_slice(make):
    start = flow("s", 1000, id=9)
    for ts in (2999, 4001):
        one(make, "flow end on no slice", *with_flow(start, flow("f", ts, DEVICE, 1, id=9)))
    one(make, "flow end on no slice", *with_flow(start, flow("f", 3000, DEVICE, 2, id=9)))
    past_all = {**flow("f", 2 * 10**12, DEVICE, 1, id=9), "bp": "x"}
    one(make, "flow end on no slice", *with_flow(start, past_all))


@pytest.mark.parametrize("id", [None, 1.5, True, [], {}])
def test_flow_needs_an_id(make, id):
    one(make, "flow without a usable id", HOST_SLICE, flow("s", 1000, id=id))


@pytest.mark.parametrize("key", ["name", "cat"])
def test_flow_needs_name_and_category(make, key):
    event = flow("s", 1000, id=9)
    del event[key]
    one(make, "flow without name or cat", HOST_SLICE, event)


def test_unknown_phases(make):
    one(make, "ph that no viewer knows", {"ph": "?", "ts": 1})
    one(make, "ph that no viewer knows", {"ph": 5, "ts": 1})
    one(make, "ph that no viewer knows", {"ph": [], "ts": 1})
    one(make, "event without ph", {"ts": 1})


def test_device_tracks_have_names(make):
    line = one(make, "device track without thread_name", kernel("k", 1, 2, tid=5))
    assert line.endswith(f"pid {DEVICE} tid 5")
    kineto = KINETO.replace('"thread_name"', '"thread_nam"')
    assert problems(make, kineto) == ["device track without thread_name: pid 0 tid 7"]


def test_processes_have_names(make):
    one(make, "process without process_name", slice_("a", 1, 2, pid=55))
    kineto = KINETO.replace('"process_name"', '"process_nam"')
    assert problems(make, kineto) == ["process without process_name: pid 0"]


def test_names_are_usable(make):
    one(make, "process or thread name without", {"ph": "M", "name": "process_name", "pid": 7})
    one(
        make,
        "process or thread name without",
        {"ph": "M", "name": "thread_name", "args": {"name": "x"}},
    )
    one(make, "process or thread name without", named("process_name", 5, 7))
    one(make, "thread name without a usable tid", named("thread_name", "x", 7))


def test_lone_surrogates(make):
    text = text_of_trace(with_normal(slice_("a@", 1, 2))).replace("a@", "a\\ud800")
    assert problems(make, text) == ["name that is not valid Unicode: event 11: 'a\\ud800'"]


def counter(args, **more):
    return {"ph": "C", "name": "load", "pid": 7, "ts": 5, "args": args, **more}


def test_counters(make):
    assert problems(make, with_normal(counter({"a": 1, "b": 1.5, "": -3}))) == []
    for value in ("1", None, True, [1], {}):
        one(make, "counter whose value is no number", counter({"v": value}))
    one(make, "counter without values", counter({}))
    one(make, "counter without values", counter(5))
    one(make, "counter without a usable pid", counter({"v": 1}, pid=1.5))
    text = text_of_trace(with_normal(counter({"v": 12345}))).replace("12345", "1e999")
    assert problems(make, text) == ["counter whose value is no number: event 11: v is inf"]
    one(make, "event without a name", {"ph": "C", "pid": 7, "ts": 5, "args": {"v": 1}})


def test_device_times(make):
    def device(**args):
        return kernel("k", 3000, 4000, args=args)

    for args in (
        {},
        {"queued": 3000},
        {"submit": 3000},
        {"queued": 5, "submit": 5},
        {"queued": 0, "submit": 9},
    ):
        assert problems(make, with_normal(device(**args))) == []
    one(make, "device work queued after", device(queued=9, submit=8))
    one(make, "device work queued after", device(queued=3001))
    one(make, "device work submitted after", device(submit=3001))
    one(make, "device work submitted after", device(queued=9, submit=3001))
    one(make, "args.queued or args.submit that is no time", device(queued="1"))


def test_our_header(make):
    one(make, "baseTimeNanoseconds is not the start of a day", base=BASE + 1)
    one(make, "baseTimeNanoseconds is not the start of a day", base=None)
    one(make, "no otherData", other=None)
    text = text_of_trace(normal_events(1)).replace(
        '"displayTimeUnit":"ns"', '"displayTimeUnit":"ms"'
    )
    assert problems(make, text) == ["displayTimeUnit is not ns"]


@pytest.mark.parametrize("base", ['"1785110400000000000"', "1.5", "[]"])
def test_a_base_that_is_no_integer(make, base):
    """In anybody's trace: null and nothing mean the same, all else would be passed over."""
    text = '{"baseTimeNanoseconds":%s,"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"a"}]}'
    assert problems(make, text % "null") == []
    (problem,) = problems(make, text % base)
    assert problem.startswith("baseTimeNanoseconds is no integer")


def test_lost_records_are_a_note(make):
    path = make(normal_events(1), other={**OTHER, "lost": 12})
    report = check.inspect_trace(path, strict=True)
    assert report.problems == [] and report.events == 10
    assert report.notes == ["12 records were lost while tracing"]


def test_examples_are_few(make):
    line = one(make, "negative dur", *(slice_("a", 5, 4) for _ in range(10)))
    assert line.startswith("negative dur (10 times): event 11: ") and line.endswith("; …")
    assert line.count("event ") == 3


def test_order_of_events_does_not_matter(make):
    events = normal_events(5)
    dice = random.Random(3)
    for _ in range(10):
        dice.shuffle(events)
        assert problems(make, events) == []
