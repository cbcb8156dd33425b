"""Every entry point of the ITT API shows in the trace what docs/ITT.md says; bad clients do no harm."""

import collections
import re
import signal
import subprocess

import pytest

from conftest import APPS, BUILD, ROOT, compile_c

ITT = "--chrome-itt-logging"
STEP = 2_000_000  # ns that apps/itt_api.h sleeps in each step
RELATIONS = {
    "dependent_on",
    "sibling_of",
    "parent_of",
    "continuation_of",
    "child_of",
    "continued_by",
    "predecessor_to",
}
STATIC_PART = ROOT / ".deps/ittapi/src/ittnotify/ittnotify_static.h"


class Scenario:
    """One run of itt_api: its trace, and what it said about itself."""

    def __init__(self, xstrace, *words, options=ITT):
        self.run = xstrace(options, "itt_api", words)
        assert (self.run.status, self.run.err) == (0, "")
        self.facts = dict(re.findall(r"^fact: (\S+) (.*)$", self.run.out, re.M))
        self.trace = self.run.trace
        assert self.trace.other["lost"] == 0
        self.pid = int(self.facts["main"])
        self.threads = self.trace.names("thread_name")

    def number(self, key):
        return int(self.facts[key], 0)

    def all(self, name):
        """The slices of a name, in order."""
        return sorted((s for s in self.trace.slices if s.name == name), key=lambda s: s.start)

    def one(self, name):
        found = self.all(name)
        assert len(found) == 1, (name, found)
        return found[0]

    def instants(self, name=None):
        found = [e for e in self.trace.events if e["ph"] == "i" and name in (None, e["name"])]
        return sorted(found, key=lambda event: event["ts"])

    def instant(self, name):
        found = self.instants(name)
        assert len(found) == 1, (name, found)
        return found[0]

    def values(self, name):
        """What a counter was set to, in order."""
        found = [e for e in self.trace.events if e["ph"] == "C" and e["name"] == name]
        assert {e["pid"] for e in found} == {self.pid}, name
        return [e["args"]["value"] for e in sorted(found, key=lambda event: event["ts"])]

    def flows(self, name):
        """The two slices of each flow of that name, in order."""
        ends = collections.defaultdict(dict)
        for event in self.trace.events:
            if event["ph"] in "sf" and event["name"] == name:
                ends[event["id"]][event["ph"]] = event
        assert all(set(pair) == {"s", "f"} for pair in ends.values())
        pairs = sorted(ends.values(), key=lambda pair: pair["s"]["ts"])
        return [(self.at(pair["s"]), self.at(pair["f"])) for pair in pairs]

    def at(self, event):
        """The innermost slice that holds the point."""
        track = event["pid"], event["tid"]
        around = [s for s in self.trace.slices if s.track == track and s.start <= event["ts"] <= s.end]
        assert around, event
        return max(around, key=lambda s: (s.start, -s.end)).name

    def track(self, one):
        return self.threads[one.track]

    def is_on_main(self, *names):
        for name in names:
            assert all(s.track == (self.pid, self.pid) for s in self.all(name)), name
            assert self.all(name), name


@pytest.fixture
def scenario(xstrace):
    return lambda *words, **more: Scenario(xstrace, *words, **more)


def whole(values):
    """An argument that has one value."""
    values = values if isinstance(values, list) else [values]
    assert len(values) == 1, values
    return values[0]


def address(values):
    value = whole(values)
    return int(value, 16) if isinstance(value, str) else value


def lasts(one, steps):
    """So many steps, and less than a second more."""
    assert steps * STEP <= one.end - one.start < steps * STEP + 10**9, one


# ---- spans ----


def test_tasks(scenario):
    s = scenario("tasks")
    assert [s.facts[key] for key in ("same_domain", "same_name", "other_name")] == ["1", "1", "0"]
    outer, inner, child = (s.one("tasks::" + name) for name in ("outer", "inner", "child"))
    s.is_on_main("tasks::outer", "tasks::inner", "tasks::child", "tasks::qsort")
    assert outer.start <= inner.start < inner.end <= child.start < child.end <= outer.end
    lasts(outer, 3), lasts(inner, 1), lasts(child, 1)
    assert {task.cat for task in (outer, inner, child)} == {"cpu_op"}
    assert s.flows("parent") == [("tasks::outer", "tasks::child")]

    function = {"tasks::api_work", f"tasks::itt_api+{s.facts['fn_offset']}"}
    assert len([task for task in s.trace.tasks if task.name in function]) == 1
    a, b = s.one("tasks::crosses a"), s.one("tasks2::crosses b")
    assert a.start < b.start < a.end < b.end
    lasts(a, 2), lasts(b, 2)
    names = {s.track(a), s.track(b)} - {s.threads[s.pid, s.pid]}
    assert names == {f"{s.pid} (overlapping)"}
    assert not s.all("tasks off::never")

    left = s.one("tasks::left open")
    assert left.unfinished and left.track == (s.pid, s.number("leaver"))
    assert [task.name for task in s.trace.tasks if task.unfinished] == ["tasks::left open"]
    assert len(s.trace.tasks) == 8


def test_overlapped_tasks(scenario):
    s = scenario("overlapped")
    a, b, c = (s.one("overlapped::" + name) for name in "abc")
    assert a.start < b.start < a.end < c.start < b.end < c.end
    lasts(a, 2), lasts(b, 2), lasts(c, 1)
    assert all(s.track(one).startswith("Overlapped tasks") for one in (a, b, c))
    assert a.track != b.track and not (a.unfinished or b.unfinished or c.unfinished)
    assert s.flows("parent") == [("overlapped::a", "overlapped::b")]


def test_task_groups(scenario):
    s = scenario("groups")
    maker, group = s.one("groups::maker"), s.one("groups::group")
    assert group.start == group.end and maker.start < group.start < maker.end
    s.is_on_main("groups::maker", "groups::group", "groups::member")
    assert sorted(s.flows("parent")) == [
        *[("groups::group", "groups::member")] * 3,
        ("groups::maker", "groups::group"),
    ]


def test_relations(scenario):
    s = scenario("relations")
    first, second, third = ("relations::" + name for name in ("first", "second", "third"))
    found = {e["name"] for e in s.trace.events if e["ph"] in "sf"}
    assert found == RELATIONS
    wanted = {name: [{first, second}] for name in RELATIONS}
    wanted["continuation_of"].append({second, third})
    wanted["sibling_of"].append({first, third})
    for name, pairs in wanted.items():
        flows = [set(pair) for pair in s.flows(name)]
        assert sorted(map(sorted, flows)) == sorted(map(sorted, pairs)), name


def test_regions(scenario):
    s = scenario("regions")
    a, b, left = (s.one("regions::" + name) for name in ("a", "b", "left open"))
    assert a.start < b.start < a.end < b.end
    lasts(a, 2), lasts(b, 2)
    assert all(s.track(one).startswith("Regions") for one in (a, b, left))
    assert left.unfinished and not a.unfinished and not b.unfinished
    pairs = [("regions::a", "regions::b"), ("regions::b", "regions::task of b")]
    assert s.flows("parent") == pairs


def test_ends_without_begins(xstrace):
    """They take no room from what comes later."""
    run = xstrace(ITT, "itt_api", ["ends-alone"])
    assert [s.unfinished for s in run.trace.slices if s.name == "ends::region"] == [False]
    assert run.trace.other["unmatched_ends"] == 70000


@pytest.mark.long
def test_more_open_tasks_than_are_kept(xstrace):
    """The innermost ones are left out, with their ends, and a line tells how many; those around them end where they do."""
    run = xstrace(ITT, "itt_bad", ["deep"])
    other = run.trace.other
    assert other["omitted"] == {"tasks": 70000 - 65536 + 66000 - 65536} and "unmatched_ends" not in other
    assert "tasks %d" % other["omitted"]["tasks"] in "".join(run.said)
    found = {name: [s for s in run.trace.slices if s.name == f"bad::{name}"] for name in ("inner", "beside", "open")}
    assert [len(slices) for slices in found.values()] == [65536, 1, 65536]
    assert not any(s.unfinished for s in found["inner"]) and all(s.unfinished for s in found["open"])
    # each lies in the one before it, with room for what was left out in the innermost
    inner = sorted(found["inner"], key=lambda s: (s.start, -s.end))
    assert all(a.end >= b.end for a, b in zip(inner, inner[1:], strict=False))


def test_frames(scenario):
    s = scenario("frames")
    frames = s.all("frames")
    assert len(frames) == 3
    for one in frames:
        lasts(one, 1)
    assert all(one.end <= other.start for one, other in zip(frames, frames[1:]))
    elsewhere, submitted = s.one("frames elsewhere"), s.one("frames submitted")
    lasts(elsewhere, 1), lasts(submitted, 1)
    assert submitted.end - submitted.start <= s.number("submitted") + 1000
    assert elsewhere.end <= submitted.start
    assert all(s.track(one).startswith("Frames") for one in [*frames, elsewhere, submitted])


def test_frames_without_an_id(scenario):
    """They belong to their thread, and an end is that of the newest begin of its domain."""
    s = scenario("frames-without-id")
    a, b = s.one("frame a"), s.one("frame b")
    lasts(a, 2), lasts(b, 2)
    assert a.start < b.start < a.end < b.end
    inner, outer = sorted(s.all("frame twice"), key=lambda one: one.end - one.start)
    assert outer.start < inner.start < inner.end < outer.end
    lasts(inner, 1), lasts(outer, 3)
    left, gone = s.one("frame left open"), s.one("frame of a thread")
    assert left.unfinished and gone.unfinished
    assert not any(one.unfinished for one in (a, b, inner, outer))
    lasts(left, 1), lasts(gone, 1)


def test_markers(scenario):
    s = scenario("markers")
    around = s.one("markers::around")
    scopes = {"everywhere": "g", "of the process": "p", "of the thread": "t", "of the task": "t"}
    for name, scope in scopes.items():
        marker = s.instant("markers::" + name)
        assert (marker["s"], marker["cat"]) == (scope, "cpu_op"), name
        shown = marker.get("args", {}).get("id")
        assert (shown is None) == (name != "of the process"), name  # the only one that has an id
        assert shown is None or re.fullmatch(r"0x[0-9a-f]+:0x[0-9a-f]+:0x[0-9a-f]+", shown[0]), shown
        assert (marker["pid"], marker["tid"]) == (s.pid, s.pid), name
        assert around.start + STEP <= marker["ts"] <= around.end - STEP, name
    assert len(s.instants()) == 4


def test_relations_of_markers(scenario):
    """An arrow of a marker ends on the slice that it lies in, wherever that is shown; in none, there is no arrow."""
    s = scenario("marker-relations")
    pairs = {frozenset(pair) for pair in s.flows("predecessor_to")}
    related = [("around", "one"), ("on a track", "a track"), ("backwards", "backwards")]
    assert pairs == {frozenset((f"related::{a}", f"related::behind {b}")) for a, b in related}


def test_events(scenario):
    s = scenario("events")
    assert s.facts["same_event"] == "1"
    outers, inners = s.all("event outer"), s.all("event inner")
    assert len(outers) == len(inners) == 2
    for outer, inner in zip(outers, inners):
        assert outer.start < inner.start < inner.end <= outer.end
        lasts(outer, 2), lasts(inner, 1)
    s.is_on_main("event outer", "event inner")
    alone = s.instant("event alone")
    assert alone["tid"] == s.pid and alone["ts"] >= outers[1].end and not s.all("event alone")


def test_marks(scenario):
    s = scenario("marks")
    found = [(mark["name"], mark["s"], mark.get("args", {})) for mark in s.instants()]
    assert [(name, scope) for name, scope, _ in found] == [("a mark", c) for c in "ttgg"]
    args = [args for _, _, args in found]
    assert whole(args[0].pop("parameter")) == 'of the "thread"'
    assert whole(args[2].pop("parameter")) == "of all"
    assert args == [{}, {"off": [1]}, {}, {"off": [1]}]


def test_tracks(scenario):
    s = scenario("tracks")
    assert s.facts["same_track"] == "1"
    tracks = {
        "before": None,
        "on upper": "a group/upper",
        "inside upper": "a group/upper",
        "on lower": "a group/lower",
        "behind": None,
        "lower, elsewhere": "a group/lower",
    }
    for name, track in tracks.items():
        task = s.one("tracks::" + name)
        if track:
            assert s.track(task) == track and task.track[0] == s.pid, name
        else:
            assert task.track == (s.pid, s.pid), name
    assert s.one("tracks::on lower").track == s.one("tracks::lower, elsewhere").track


def test_clock_domains(scenario):
    """Each of the program's clocks was read between steps inside a task of the collector's clock."""
    s = scenario("clocks")
    assert (s.facts["calls_at_create"], s.facts["calls_at_reset"]) == ("1", "2")
    for label in ("now", "zero", "micro", "reset"):
        around = s.one("clocks::" + label)
        inside = lambda one: around.start <= one.start <= one.end <= around.end  # noqa: E731
        ex, fn, over = (
            next(filter(inside, s.all("clocks::" + n)), None) for n in ("ex", "qsort", "overlapped")
        )
        assert ex and fn and over, label
        first = ex.start
        assert around.start + STEP <= first <= around.start + STEP + 10**9
        times = [s.number(f"{label}_{i}") for i in range(6)]
        seen = [first, fn.start, None, fn.end, ex.end, over.end]
        near = 20_000 if label != "micro" else 22_000  # rates differ, and a microsecond is cut
        for i, time in enumerate(times):
            if seen[i] is not None:
                assert abs(seen[i] - first - time) < near, (label, i)
        assert abs(over.start - fn.start) < near and over.end <= around.end - STEP + near
        markers = [m for m in s.instants("clocks::marker") if first <= m["ts"] <= ex.end]
        assert len(markers) == 1 and abs(markers[0]["ts"] - first - times[2]) < near, label
        sets = [e for e in s.trace.events if e["ph"] == "C" and e["name"] == f"{label}::clocked"]
        assert [e["args"]["value"] for e in sets] == [5]
        assert abs(sets[0]["ts"] - first - times[2]) < near, label
        assert fn.track == ex.track == around.track
    # the time of the overlapped task is its own clock's: it is inside, though made behind
    assert len(s.all("clocks::overlapped")) == 4
    pairs = [{"clocks::ex", "clocks::overlapped"}] * 4
    assert [set(pair) for pair in s.flows("sibling_of")] == pairs
    assert all("clocks::overlapped" in pair for pair in s.flows("parent_of"))
    assert len(s.flows("parent_of")) == 4


# ---- values ----


def test_metadata(scenario):
    s = scenario("metadata")
    numbers = s.one("metadata::numbers").args
    assert numbers == {
        "u64": [0, 1, 2**64 - 1],
        "s64": [-(2**63), -1, 2**63 - 1],
        "u32": [7, 2**32 - 1],
        "s32": [-(2**31), 8],
        "u16": [9, 2**16 - 1],
        "s16": [-(2**15), 10],
        "float": [1.5, -0.25],
        "double": [0.1, -1e300],
    }
    assert s.one("metadata::texts").args == {"text": ['a "text"'], "key \\ \n": ["grün"]}
    assert s.one("metadata::outer").args == {"by id": [1], "by domain": [2]}
    assert s.one("metadata2::of another domain").args == {}
    assert s.one("metadata::region").args == {"of the region": [3]}
    assert s.one("metadata").args == {"of the frame": [4]}
    assert s.instant("metadata::metadata")["args"] == {"of nobody": [1]}
    assert len(s.instants()) == 1


NO_TASK = r"""
#include <ittnotify.h>
int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	__itt_string_handle *name = __itt_string_handle_create("t");
	__itt_id id = __itt_id_make(domain, 1);

	__itt_task_begin(domain, id, __itt_null, name);
	__itt_task_end(domain);
	for (int i = 0; i < 100; i++)
		__itt_relation_add_to_current(domain, __itt_relation_is_child_of, id);
	return 0;
}
"""


def test_a_relation_of_no_task(xstrace):
    """The thread is in none: there is no arrow, and that is counted."""
    run = xstrace("--chrome-itt-logging", compile_c(xstrace.home / "no_task", NO_TASK))
    assert run.trace.other["open_relations"] == 100 and len(run.trace.slices) == 1


FLAGS = ("cut", "cancelled", "clock", "unfinished")
KEYS_OF_FLAGS = r"""
#include <ittnotify.h>
int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	const char *keys[] = { "cut", "cancelled", "clock", "unfinished" };

	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("open"));
	for (int i = 0; i < 4; i++)
		__itt_metadata_str_add(domain, __itt_null, __itt_string_handle_create(keys[i]), "mine", 0);
	return 0;
}
"""


def test_metadata_with_the_names_of_flags(xstrace):
    """A program's own key is beside the flag of that name: two members of one name would be one for a reader."""
    run = xstrace("--chrome-itt-logging", compile_c(xstrace.home / "keys", KEYS_OF_FLAGS))
    (task,) = [event for event in run.trace.events if event["name"] == "d::open"]
    assert task["args"] == {f"{key} (metadata)": ["mine"] for key in FLAGS} | {"unfinished": True}


def test_metadata_with_a_scope(scenario):
    s = scenario("scopes")
    assert s.one("scopes::around").args == {"task": [0], "text": ["task"]}
    found = [(e["name"], e["s"], e["args"]) for e in s.instants()]
    wanted = []
    for i, (key, scope) in enumerate([("track", "t"), ("process", "p"), ("global", "g")]):
        wanted += [("scopes::metadata", scope, {key: [i + 1]})]
        wanted += [("scopes::metadata", scope, {"text": [key]})]
    assert found == wanted


def test_formatted_metadata(scenario):
    s = scenario("formatted")
    text = "step: -3 of 12345678901234, 62.50%, c, 0xff"
    assert s.one("formatted::plain").args == {"metadata": [text]}
    assert s.one("formatted::without a trace").args == {"metadata": ["é, € 😀, 7, 3.33e+299, 0x1.8p+0"]}
    assert "errno 7, exceptions 0, stored 5\n" in s.run.out
    digits, blanks, positions = s.one("formatted::long").args.pop("metadata")
    assert digits[:57] == "0.1000000000000000055511151231257827021181583404541015625" and len(digits) > 1900
    assert not blanks.strip() and len(blanks) > 1900 and positions == "1, %2$d"
    assert s.one("formatted::overlapped").args == {"metadata": ["rank 3 of 8"]}


def test_counters(scenario):
    s = scenario("counters")
    assert s.facts["same_counter"] == "1"
    assert s.values("counters::plain") == [1, 2, 1, 11, 8, 100, 200, 300, 301]
    wanted = {
        "u64": [1, 2**64 - 1],
        "s64": [-(2**63), 2],
        "u32": [3, 2**32 - 1],
        "s32": [-(2**31), 4],
        "u16": [5, 2**16 - 1],
        "s16": [-(2**15), 6],
        "float": [1.5, -0.25],
        "double": [0.1, -1e300],
        "v3": [-2.5],
        "by handle": [1, 21, 20, 5],
    }
    for name, values in wanted.items():
        assert s.values("counters::" + name) == values, name
    names = {e["name"] for e in s.trace.events if e["ph"] == "C"}
    assert names == {"counters::plain", *("counters::" + name for name in wanted)}


def test_metadata_of_a_counter(scenario):
    s = scenario("bound")
    event = s.instant("bound::bound")
    assert event["s"] == "p"
    values = [whole(value) for value in event["args"].values()]
    assert sorted(map(str, values)) == sorted(
        ["a counter", "card 0", "MB/s", "0:3:0.1", "42", "1000", "1"]
    )


def test_histograms(scenario):
    s = scenario("histograms")
    assert s.instant("histograms::both")["args"] == {"x": [1, 10, 100], "y": [0.5, 2.5, 12.5]}
    assert s.instant("histograms::only y")["args"] == {"y": [4, -5, 6, 7]}


def test_heap(scenario):
    s = scenario("heap")
    allocate, reallocate, free = (
        s.instant("heap::pool " + what)["args"] for what in ("allocate", "reallocate", "free")
    )
    assert (address(allocate["address"]), whole(allocate["size"])) == (0x1000, 100)
    assert (address(reallocate["address"]), whole(reallocate["size"])) == (0x2000, 200)
    assert address(free["address"]) == 0x2000 and "size" not in free
    for what in ("internal_access", "record_memory_growth"):
        begin, end = (s.instant(f"heap_{what}_{edge}") for edge in ("begin", "end"))
        assert begin["ts"] <= end["ts"]
    assert whole(s.instant("heap_reset_detection")["args"]["mask"]) == 1
    assert whole(s.instant("heap_record")["args"]["mask"]) == 2
    assert len(s.instants()) == 9


MODEL = [
    ("model_site_begin", "site plain", {}),
    ("model_task_begin", "task plain", {}),
    ("model_lock_acquire", "", {"address": 0x3000}),
    ("model_lock_release", "", {"address": 0x3000}),
    ("model_record_allocation", "", {"address": 0x3000, "size": 301}),
    ("model_induction_uses", "", {"address": 0x3000, "size": 302}),
    ("model_reduction_uses", "", {"address": 0x3000, "size": 303}),
    ("model_observe_uses", "", {"address": 0x3000, "size": 304}),
    ("model_clear_uses", "", {"address": 0x3000}),
    ("model_record_deallocation", "", {"address": 0x3000}),
    ("model_task_end", None, {}),
    ("model_site_end", None, {}),
    ("model_site_begin", "site A", {}),
    ("model_task_begin", "task A", {}),
    ("model_lock_acquire", "", {"address": 0x3000}),
    ("model_lock_release", "", {"address": 0x3000}),
    ("model_task_end", None, {}),
    ("model_site_end", None, {}),
    ("model_site_begin", "site AL", {}),
    ("model_task_begin", "task AL", {}),
    ("model_iteration_task", "iteration A", {}),
    ("model_iteration_task", "iteration AL", {}),
    ("model_aggregate_task", "", {"count": 5}),
    ("model_disable_push", "", {}),
    ("model_disable_pop", "", {}),
    ("model_task_end", None, {}),
    ("model_site_end", None, {}),
]


def test_model(scenario):
    """The suffixes _2, A, AL and W are not part of the name, or all tools must know them."""
    found = scenario("model").instants()
    assert len(found) == len(MODEL)
    for event, (name, behind, args) in zip(found, MODEL):
        if behind is None:  # nobody has said that the end knows its begin's name
            assert event["name"].startswith(name), event
        else:
            assert event["name"].replace("_2", "") == f"{name} {behind}".rstrip(), event
        have = event.get("args", {})
        assert {key: address(have[key]) for key in args} == args, event


def test_modules(scenario):
    s = scenario("modules")
    loaded = s.instant("module_load")["args"]
    assert whole(loaded["path"]) == "/lib/loaded.so"
    assert (address(loaded["start"]), address(loaded["end"])) == (0x4000, 0x5000)
    assert address(s.instant("module_unload")["args"]["start"]) == 0x4000
    for name in ("module_load_with_sections", "module_unload_with_sections"):
        assert whole(s.instant(name)["args"]["path"]) == "/lib/with sections.so"
    saved = s.instant("av_save")["args"]
    assert (whole(saved["path"]), whole(saved["rank"])) == ("/tmp/array.csv", 2)
    assert len(s.instants()) == 5


# ---- control, threads, waits ----


def test_pause_and_resume(scenario):
    s = scenario("control", options=f"{ITT} --start-paused")
    names = ["resumed", "resumed elsewhere", "open at pause", "resumed scoped"]
    assert [task.name for task in sorted(s.trace.tasks, key=lambda task: task.start)] == [
        "control::" + name for name in names
    ]
    left = s.one("control::open at pause")
    assert left.unfinished
    lasts(left, 1)
    assert left.end < s.one("control::resumed scoped").start - STEP  # it ends where the pause begins


def test_pause_without_the_option_has_no_effect(scenario):
    s = scenario("control")
    assert len(s.trace.tasks) == 8 and not any(task.unfinished for task in s.trace.tasks)
    lasts(s.one("control::open at pause"), 2)


def test_paused_to_the_end(xstrace):
    run = xstrace(f"{ITT} --start-paused", "itt_api", ["tasks", "metadata", "counters", "sync"])
    assert (run.status, run.err) == (0, "")
    assert not run.trace_files or not run.trace.slices


def test_detach(scenario):
    assert [task.name for task in scenario("detach").trace.tasks] == ["detach::attached"]


def test_threads(scenario):
    s = scenario("threads")
    assert s.threads[s.pid, s.number("named")] == "a named thread"
    assert s.one("threads::named").track == (s.pid, s.number("named"))
    assert sorted(task.name for task in s.trace.tasks) == [
        "threads::behind",
        "threads::long-named",
        "threads::named",
        "threads::not yet ignored",
    ]
    assert not s.instants()
    # the list of threads has what 64 bytes hold of a name, and no half letter
    long_name = s.threads[s.pid, s.number("long_named")]
    listed = {thread["tid"]: thread["name"] for thread in s.trace.other["threads"]}
    assert listed[s.number("named")] == "a named thread"
    assert listed[s.number("long_named")] == long_name.encode()[:63].decode()
    assert long_name.endswith("é: é and more behind it")


def test_waits(scenario):
    s = scenario("sync")
    unnamed = [f"wait sync {s.facts[f'address_{i}']}" for i in range(2)]
    firsts = s.all("wait Mutex first")
    assert len(firsts) == 3
    main = [wait for wait in firsts if wait.track[1] == s.pid]
    assert [wait.args.get("cancelled") for wait in main] == [None, True]
    facts = ["wait_first", "wait_cancelled"]
    waits = [*zip(main, facts), (s.one("wait Mutex renamed"), "wait_renamed")]
    waits += [(s.one(unnamed[0]), "wait_destroyed"), (s.one(unnamed[1]), "wait_unnamed")]
    barrier = s.all("wait Barrier user's")
    assert [wait.args.get("cancelled") for wait in barrier] == [None, True]
    waits += [(barrier[0], "wait_fsync")]
    for wait, fact in waits:
        assert wait.track == (s.pid, s.pid) and STEP <= wait.end - wait.start <= s.number(fact), fact
    waiter = next(wait for wait in firsts if wait not in main)
    assert waiter.track == (s.pid, s.number("waiter"))
    assert STEP <= waiter.end - waiter.start <= s.number("wait_elsewhere")
    released = s.instant("release Mutex first")
    assert released["ts"] >= waiter.end and released["tid"] == s.pid
    assert s.instant("release Barrier user's")["ts"] >= barrier[0].end
    assert len(s.instants()) == 2 and len(s.trace.slices) == 8


def test_what_shows_nothing(scenario):
    s = scenario("silent")
    assert [one.name for one in s.trace.slices] == ["silent::around"]
    assert {e["ph"] for e in s.trace.events} <= {"X", "M"}


def test_the_old_header(scenario):
    s = scenario("legacy")
    frame, wait, cancelled = s.one("old frames"), s.one("wait Mutex old"), s.one("wait Lock older")
    lasts(frame, 1), lasts(wait, 1), lasts(cancelled, 1)
    assert s.track(frame).startswith("Frames")
    assert wait.end - wait.start <= s.number("wait_old") and "cancelled" not in wait.args
    assert cancelled.args["cancelled"] is True
    assert s.instant("release Mutex old")["ts"] >= wait.end
    named = s.instant("old event")
    assert s.threads[s.pid, named["tid"]] == "an old name"
    assert named["tid"] == s.number("old_named")
    assert len(s.trace.slices) == 3 and len(s.instants()) == 2


def test_all_at_once(scenario):
    """What one scenario leaves behind does not disturb another."""
    s = scenario("all")
    for name in ("tasks::outer", "overlapped::c", "frames submitted", "metadata::numbers"):
        assert s.one(name)
    assert "unmatched_ends" not in s.trace.other


# ---- none is forgotten ----


def stubs():
    """The entry points in the static part's header, by their names in a collector."""
    text = STATIC_PART.read_text()
    rows = re.findall(r"^ITT_STUBV?\((.*?\))(?=\s*(?:^ITT_STUB|^#|\Z))", text, re.M | re.S)
    names = set()
    for row in rows:
        # api, type, name, (args), (params), name in the library, group, format
        match = re.search(r"\(ITT_(?:NO_PARAMS|FORMAT)[^)]*\)\s*,\s*(\w+)\s*,", row)
        names.add(match[1])
    assert len(names) > 180 and len(rows) == len(re.findall(r"^ITT_STUBV?\(", text, re.M))
    return names


def documented():
    """The rows of the table of docs/ITT.md: names spelled out, all patterns, what is shown."""
    for line in (ROOT / "docs/ITT.md").read_text().splitlines():
        if not line.startswith("| `"):
            continue
        cell, shown = line.split("|")[1:3]
        names, patterns = [], []
        for part in re.findall(r"[^`/]+", "/".join(re.findall(r"`([^`]+)`", cell))):
            if "…" in part:
                patterns.append(re.escape(part).replace("…", r"\w+"))
            elif part.startswith("_"):
                # behind a name of the row, or in place of its last part
                patterns += [re.escape(name + part) for name in names]
                patterns += [re.escape(name.rpartition("_")[0] + part) for name in names]
                names += [name + part for name in names]
                names += [name.rpartition("_")[0] + part for name in names]
            else:
                names.append(part)
                patterns.append(re.escape(part))
        yield re.findall(r"`(\w+)`", cell), re.compile("|".join(patterns)), shown


def is_silent(name):
    """Is it in the row of what a tracer has nothing to say about?"""
    row = next(pattern for _, pattern, shown in documented() if "steer analyses" in shown)
    return row.fullmatch(plain(name))


def exported():
    command = ["nm", "-D", "--defined-only", next(BUILD.glob("*/libxstrace.so"))]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1][len("__itt_") :] for line in lines if " __itt_" in line}


def plain(name):
    """Without what marks the variants for wide and for narrow characters."""
    match = re.fullmatch(r"(\w+?)(AL|A|W)(_v3)?", name)
    return match[1] + (match[3] or "") if match else name


def test_every_entry_point_is_documented():
    rows = [pattern for _, pattern, _ in documented()]
    missing = {n for n in map(plain, stubs()) if not any(row.fullmatch(n) for row in rows)}
    assert not missing


def test_every_documented_entry_point_is_real():
    real = set(map(plain, stubs()))
    spelled = {name for names, _, _ in documented() for name in names if not name.startswith("_")}
    assert len(spelled) > 80 and spelled - real == {"iJIT_NotifyEvent"} & spelled


def test_every_entry_point_is_exported():
    """For clients that look names up themselves; those without effect may be absent."""
    have = exported()
    assert not {plain(name) for name in stubs() if not is_silent(name)} - {plain(n) for n in have}
    assert {plain(n) for n in have} - {"api_init", "api_fini"} <= {plain(n) for n in stubs()}


def test_every_entry_point_reaches_the_collector(xstrace):
    """Of those that the real static part has on this system."""
    run = xstrace(ITT, "itt_api", ["list"])
    entries = dict(re.findall(r"^entry: __itt_(\w+) (yes|no)$", run.out, re.M))
    assert len(entries) > 130
    assert not [name for name, there in entries.items() if there == "no" and not is_silent(name)]


def test_without_a_collector_none_is_reached(xstrace):
    out = xstrace.bare("itt_api", ["list"]).out
    assert set(re.findall(r"^entry: \S+ (\w+)$", out, re.M)) == {"no"}


EMPTY = r"""
#include <ittnotify.h>
int main(void)
{
	__itt_domain *domain = __itt_domain_create("");
	int event = __itt_event_create("", 0);
	for (int i = 0; i < 3; i++) {
		__itt_event_start(event);
		__itt_event_end(event);
		__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(""));
		__itt_task_end(domain);
	}
	return 0;
}
"""


def test_empty_names(xstrace):
    """They are names, and not what blanked memory looks like."""
    run = xstrace(ITT, compile_c(xstrace.home / "empty", EMPTY))
    assert sorted(slice.name for slice in run.trace.slices) == [""] * 3 + ["::"] * 3
    assert "omitted" not in run.trace.other and not any("at once" in line for line in run.said)


SCENARIOS = sorted(
    {name for source in (ROOT / "tests/apps").glob("itt_api_*.c") for name in re.findall(r'^\t\{ "([\w-]+)"', source.read_text(), re.M)}
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_entry_point_where_the_clock_is_forbidden(xstrace, scenario):
    """Also one that records nothing by itself, such as the creation of a clock domain."""
    words = ["tasks", "no-clock", scenario]
    bare = xstrace.bare("itt_api", words, timeout=60)
    if bare.status == -signal.SIGSEGV:
        pytest.skip("the program reads a clock itself")
    run = xstrace(ITT, "itt_api", words, timeout=60)
    assert (bare.status, run.status) == (0, 0)
    assert [task.name for task in run.trace.tasks] and any("PR_SET_TSC" in text for text in run.trace.other["not_seen"])


# ---- bad clients ----


BAD = "ends twice unopened nulls more_nulls huge counts utf8 formats same destructors".split()


def bad(xstrace, *words, **more):
    run = xstrace(ITT, "itt_bad", words, **more)
    assert (run.status, run.err) == (0, "") and run.out.endswith("survived\n")
    names = ("bad::survived", "bad::(too many names)")  # the latter behind a million of them
    assert any(run.trace.count("tasks", name) for name in names)
    return run


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("word", BAD)
def test_bad_clients(xstrace, word):
    """The fixture checks the trace; here it must be there, and go on behind the misuse."""
    bad(xstrace, word)


@pytest.mark.long
def test_all_that_is_bad_at_once(xstrace):
    bad(xstrace, *BAD)


def test_ends_without_begins(xstrace):
    trace = bad(xstrace, "ends").trace
    assert sorted(s.name for s in trace.slices) == ["bad::ended by another", "bad::survived"]
    assert trace.count("open") == 0  # of the 1000 ends behind it the first is its own
    assert trace.other["unmatched_ends"] >= 1000


def test_nothing_of_ids_never_seen(xstrace):
    trace = bad(xstrace, "unopened").trace
    assert {e["name"] for e in trace.events if e["ph"] in "sf"} <= {"sibling_of"}  # of itself
    assert not next(s for s in trace.tasks if s.name == "bad::child of nobody").args


def test_null_names(xstrace):
    trace = bad(xstrace, "nulls").trace
    assert trace.count("tasks", "bad::(no name)") >= 2


def test_frames_that_cannot_be_are_told(xstrace):
    """The first begins before the process, the second ends before it begins; tests/apps/itt_api_spans.c's is right."""
    frames = [s for s in bad(xstrace, "nulls").trace.slices if s.args.get("clock") == "moved"]
    assert [frame.name for frame in frames] == ["bad", "bad"], frames
    assert not [s for s in xstrace(ITT, "itt_api", ["frames"]).trace.slices if "clock" in s.args]


def test_huge_values_are_cut(xstrace):
    run = bad(xstrace, "huge")
    longest = max(run.trace.slices, key=lambda s: len(s.name))
    assert 1000 < len(longest.name.encode()) <= 2 * 16384 + 16
    task = next(s for s in run.trace.tasks if s.name == "bad::huge metadata")
    assert task.args["cut"] is True
    text = whole(task.args["text"])
    assert 1000 < len(text) <= 1976 and set(text) == {"x"}
    assert 100 < len(task.args["values"]) <= 1976 // 8
    assert len(str(task.args)) < 2 * 32768
    assert run.trace_files[0].stat().st_size < 1 << 20


@pytest.mark.long
@pytest.mark.parametrize("kind", ["regions", "overlapped"])
def test_metadata_that_is_too_much_is_cut(xstrace, kind):
    """What is open holds 256 MiB of it: each slice that lacks some says so, and what comes later has all."""
    run = xstrace(f"{ITT} --on-full block", "itt_laden", [kind, 1100, 72, 20_000])
    slices = [s for s in run.trace.slices if s.name == "laden::one"]
    assert len(slices) + run.trace.other.get("omitted", {}).get("slices", 0) == 21_100 and run.trace.other["lost"] == 0
    lacking = [s for s in slices if s.args.get("text") != ["x" * 1899]]
    assert kind == "overlapped" or any("text" not in s.args for s in lacking)  # of those 1,024 are shown
    assert all(s.args["cut"] is True for s in lacking)
    after = [s for s in run.trace.slices if s.name == "laden::after"]
    assert len(after) == 5 and "cut" not in after[-1].args


def test_numbers_that_json_has_not(xstrace):
    """NaN and the infinities: the reader refuses them, so their place must be something else."""
    trace = bad(xstrace, "counts").trace
    sets = [e["args"]["value"] for e in trace.events if e["ph"] == "C" and e["name"] == "bad::real"]
    assert sets[-1] == 1.0
    task = next(s for s in trace.tasks if s.name == "bad::counts")
    assert whole(task.args["endless"]) == "ends"


def test_invalid_utf8(xstrace):
    trace = bad(xstrace, "utf8").trace
    task = next(s for s in trace.tasks if s.name == "bad::wrong metadata")
    assert any("\ufffd" in key for key in task.args)
    assert [s for s in trace.tasks if s.name.startswith("bad::\ufffd")]
    assert [e for e in trace.events if e["ph"] == "C" and "\ufffd" in e["name"]]


def test_the_same_name_from_many_threads(xstrace):
    assert "same: 16 of 16\n" in bad(xstrace, "same").out


def test_tasks_in_destructors_of_threads(xstrace):
    trace = bad(xstrace, "destructors").trace
    assert trace.count("tasks", "bad::before the destructor") == 10
    assert trace.count("open") == 0
    for task in trace.tasks:
        if task.name == "bad::of a destructor":
            assert task.args == {"value": [1]}


def test_a_million_names(xstrace):
    run = bad(xstrace, "million", timeout=30)
    assert int(re.search(r"growth_kib: (\d+)", run.out)[1]) < 48 * 1024


# ---- JIT ----


def test_jit_methods(xstrace):
    run = xstrace(ITT, "itt_jit")
    assert (run.status, run.err) == (0, "") and "active: 1\n" in run.out
    said = re.findall(r"^method: (\S+) (\d+) (.*)$", run.out, re.M)
    found = [e for e in run.trace.events if e["ph"] == "i"]
    assert [(e["name"], address(e["args"]["address"]), whole(e["args"]["size"])) for e in found] == [
        ("jit " + name, int(at, 16), int(size)) for at, size, name in said
    ]
    assert len(said) == 3


def test_jit_untraced(xstrace):
    run = xstrace.bare("itt_jit")
    assert run.status == 0 and "active: 0\n" in run.out


def test_apps_are_there():
    assert all((APPS / name).exists() for name in ("itt_api", "itt_bad", "itt_jit"))


@pytest.mark.parametrize("frequency", [10**9, 10**6, 2_400_000_000])
@pytest.mark.parametrize("zero, base", [(500_000_000, 0), (3, 0), (5 * 10**8, 10**9)])
def test_a_clock_that_cannot_be_placed(xstrace, zero, base, frequency):
    """Its tasks are as long as it says, lie within each other as it says, and say that their place is arbitrary."""
    zero *= frequency // 10**6
    run = xstrace(ITT, "itt_own_clock", [zero, base, frequency])
    found = {name: [s for s in run.trace.slices if s.name == f"own::{name}"] for name in ("outer", "inner", "plain", "lapped", "open")}
    assert [len(found[name]) for name in found] == [3, 6, 3, 3, 1]
    for name, length in (("outer", 5), ("inner", 2), ("lapped", 7)):
        for one in found[name]:
            assert abs(one.end - one.start - length * 10**6) <= 1, name
            assert one.args["clock"] == "not placed"
    for outer in found["outer"]:
        inside = [i for i in found["inner"] if outer.start <= i.start and i.end <= outer.end]
        assert len(inside) == 2 and all(i.track == outer.track for i in inside)
        assert outer.track != found["plain"][0].track
    starts = sorted(one.start for one in found["outer"])
    assert starts[2] - starts[1] == starts[1] - starts[0] == 10**7
    assert found["open"][0].args == {"clock": "not placed", "unfinished": True}
    assert not any("clock" in one.args for one in found["plain"])
    assert all(m["args"]["clock"] == "not placed" for m in run.trace.events if m["name"] == "own::mark")


@pytest.mark.parametrize("days", [9, 29, 400])
def test_a_clock_that_jumps(xstrace, days):
    """Wherever its tasks then lie, no viewer misreads them: the fixture checks the trace."""
    run = xstrace(ITT, "itt_own_clock", [3, 0, 10**9, days])
    (far,) = [s for s in run.trace.slices if s.name == "own::mark"]
    assert far.args["clock"] == "not placed"
    (first, *_) = [s for s in run.trace.slices if s.name == "own::outer"]
    if days <= 30:
        assert far.start - first.start > 86400 * 10**9 and abs(far.end - far.start - 10**6) <= 1
    else:  # put at the moment of its call
        assert abs(far.start - first.start) < 60 * 10**9


@pytest.mark.parametrize("frequency", [10**9, 10**6])
def test_a_clock_that_turns_out_wrong(xstrace, frequency):
    """Its first time may be that of its call, the others cannot."""
    run = xstrace(ITT, "itt_own_clock", [0, 0, frequency])
    outer = [s for s in run.trace.slices if s.name == "own::outer"]
    assert [abs(s.end - s.start - 5 * 10**6) <= 1 for s in outer] == [True] * 3
    assert all(s.args["clock"] == "not placed" for s in outer)


def test_a_clock_without_a_pace(xstrace):
    run = xstrace(ITT, "itt_own_clock", [0, 0, 0])
    tasks = [s for s in run.trace.slices if s.name in ("own::outer", "own::inner", "own::lapped")]
    assert len(tasks) == 12 and all(s.args["clock"] == "not placed" for s in tasks)
    assert all(s.end - s.start < 10**9 for s in tasks)


OPEN_FRAMES = r"""
#include <ittnotify.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("open");

	(void)argc;
	for (int i = atoi(argv[1]); i; i--) {
		__itt_id id = __itt_id_make(domain, (unsigned long long)i);

		__itt_frame_begin_v3(domain, &id);
	}
	return 0;
}
"""


def test_frames_that_never_end_cost_what_they_are(xstrace):
    """Where thousands lie in each other, a place for one more is not looked for among all of them."""
    app = compile_c(xstrace.home / "frames", OPEN_FRAMES)
    ns = []
    for count in (6000, 60000):
        run = xstrace("--chrome-itt-logging --ring-size 16M", app, [count])
        assert len(run.trace.slices) == count and all(s.unfinished for s in run.trace.slices)
        ns.append(run.trace.other["overhead"]["drain_cpu_ns"])
    assert ns[1] < 35 * ns[0], ns


MANY_OBJECTS = r"""
#include <ittnotify.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static char objects[60000];

	(void)argc;
	for (int i = 0; i < atoi(argv[1]); i++) {
		__itt_sync_prepare(&objects[i]);
		__itt_sync_acquired(&objects[i]);
		__itt_sync_releasing(&objects[i]);
	}
	return 0;
}
"""


def test_more_sync_objects_than_have_names(xstrace):
    """Each use is recorded; those without a name are counted."""
    app = compile_c(xstrace.home / "objects", MANY_OBJECTS)
    run = xstrace(ITT, app, [1000])
    assert len({s.name for s in run.trace.slices}) == 1000 and "omitted" not in run.trace.other
    run = xstrace(ITT, app, [60000])
    names = [s.name for s in run.trace.slices] + [e["name"] for e in run.trace.events if e["ph"] == "i"]
    unnamed = sum(name.endswith("sync (too many objects)") for name in names)
    assert len(names) == 2 * 60000 and len(set(names)) == 2 * 49153 + 2
    assert unnamed == 2 * (60000 - 49153) == run.trace.other["omitted"]["names"]
    assert f"names {unnamed}" in "".join(run.said)
