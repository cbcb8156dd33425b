"""xstrace-check --repair: what it writes passes xstrace-check, and what was right is as it was."""

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from made import (
    CHECK,
    DEVICE,
    KINETO,
    METADATA,
    NAMES,
    UNITRACE,
    flow,
    kernel,
    normal_events,
    slice_,
    text_of_trace,
)
from xstrace import TraceError, check_trace, open_trace, repair, trace

T = 10**12  # ns


def repaired(path, target=None):
    """(events, changes) of what the repair makes of the file; the new one is right, and is repaired to itself."""
    done = repair.repair_trace(str(path), target)
    assert check_trace(done.path, strict=True) == []
    again = repair.repair_trace(done.path)
    with open_trace(done.path) as opened, open_trace(again.path) as same:
        events = list(opened)
        assert again.changes == [] and list(same) == events
        if opened.ours and done.path.endswith(".json"):  # of others blanks between events may go
            assert Path(again.path).read_bytes() == Path(done.path).read_bytes()
    os.unlink(again.path)
    assert len(events) == done.events
    return events, done.changes


def told(changes, kind):
    """How often the kind of change is told of."""
    lines = [line for line in changes if line.startswith(kind)]
    return sum(int(found[1]) if (found := re.match(r" \((\d+) times\)", line[len(kind) :])) else 1 for line in lines)


def of_name(events, name):
    return [event for event in events if event.get("name") == name]


@pytest.mark.parametrize("other", [slice_("b", 0, 10, pid=99), slice_("a", 0, 10)], ids=["other tracks", "the same"])
def test_a_file_that_changes_between_the_readings_is_refused(make, monkeypatch, other):
    """Whatever the second one meets; nothing is written."""
    path = make(text_of_trace(NAMES + [slice_("a", 0, 10)] * 2))
    analyse = repair._analyse

    def and_replace(*args):
        found = analyse(*args)
        make(text_of_trace(NAMES + [other]), "new").replace(path)
        return found

    monkeypatch.setattr(repair, "_analyse", and_replace)
    with pytest.raises(TraceError, match="was changed while it was read"):
        repair.repair_trace(str(path))
    assert [one.name for one in path.parent.iterdir()] == [path.name]


# ---- what is right stays ----


def test_what_is_right_is_copied_to_the_byte(make):
    path = make(text_of_trace(normal_events(2000)).replace('": ', '":').replace(', "', ',"'))  # as the writer has it
    done = repair.repair_trace(str(path))
    assert done.changes == [] and done.path == str(path)[:-5] + ".repaired.json"
    assert open(done.path, "rb").read() == path.read_bytes()


@pytest.mark.parametrize("text", [UNITRACE, KINETO], ids=["unitrace", "kineto"])
def test_events_of_others_keep_their_text(make, text):
    path = make(text)
    done = repair.repair_trace(str(path))
    assert done.changes == []
    written = open(done.path).read()
    with open_trace(path) as opened:
        wanted = list(opened)
    with open_trace(done.path) as opened:
        assert list(opened) == wanted and {**opened.header} == {**opened.header}
    for line in text.splitlines():
        if (
            line.strip()
            and line.strip() not in ("{", "]", "}", "]}", ",", '{ "traceEvents":[', '"traceEvents": [')
            and "traceEvents" not in line
        ):
            assert text is KINETO or line.rstrip(",") in written


def test_lines_beside_a_fault_keep_their_text(make):
    events = normal_events(50)
    path = make(text_of_trace(events).replace('"id":7,', '"id":9,'))
    done = repair.repair_trace(str(path))
    before, after = set(path.read_text().splitlines()), set(open(done.path).read().splitlines())
    changed = [line for line in before - after if "otherData" not in line]
    assert len(changed) == 2 and all('"id":9,' in line and '"ph":"X"' not in line for line in changed)


# ---- faults, one by one ----


def test_slices_that_overlap(make):
    events, changes = repaired(
        make(
            NAMES
            + [
                slice_("a", T, T + 10),
                slice_("b", T + 5, T + 15),
                slice_("c", T + 8, T + 20),
                slice_("in", T + 6, T + 9),
                slice_("d", T + 30, T + 40),
            ]
        )
    )
    assert told(changes, "slices that overlap without nesting went to lanes of their own") == 2 and len(changes) == 1
    tids = {event["name"]: event["tid"] for event in events if event["ph"] == "X"}
    assert tids["a"] == tids["d"] == 7 and len({tids["a"], tids["b"], tids["c"]}) == 3
    lanes = {event["tid"]: event["args"]["name"] for event in of_name(events, "thread_name")}
    assert lanes[tids["b"]] == "app lane 2" and lanes[tids["c"]] == "app lane 3"
    assert all(event["dur"] in (10, 12, 3) for event in events if event["ph"] == "X")  # nothing was cut


def test_arrows_go_with_their_slices(make):
    events, _ = repaired(
        make(
            NAMES
            + [slice_("a", T, T + 100), flow("s", T + 10, id=1), kernel("k", T + 20, T + 60), kernel("l", T + 40, T + 90)]
            + [flow("f", T + 40, DEVICE, 1, id=1), flow("s", T + 11, id=2), flow("f", T + 20, DEVICE, 1, id=2)]
        )
    )
    (lane,) = (event["tid"] for event in of_name(events, "l"))
    assert {event["id"]: event["tid"] for event in events if event["ph"] == "f"} == {1: lane, 2: 1}


def test_rounded_times_are_cut_not_moved(make):
    """unitrace's: doubles of us since 1970 tell multiples of 250 ns."""
    lines = [("a", 1000, 250100), ("b", 251000, 10000), ("out", 300000, 50000), ("in", 340000, 10100)]
    body = ",\n".join(
        '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%d.%03d,"dur":%d.%03d}' % (n, t // 1000, t % 1000, d // 1000, d % 1000)
        for n, t, d in lines
    )
    events, changes = repaired(make('{"traceEvents":[\n' + body + "\n]}"))
    assert told(changes, "slices that overlap by no more than times are rounded were cut") == 2 and len(changes) == 1
    assert {e["name"]: e["dur"] for e in events} == {"a": 250000, "b": 10000, "out": 50000, "in": 10000}


def test_arrows_that_dangle_or_share_an_id(make):
    one = slice_("a", T, T + 1000)
    bad = [
        flow("s", T + 1, id=1),
        flow("f", T + 2, id=2),
        flow("f", T + 3, id=3),
        flow("s", T + 4, id=3),
        flow("s", T + 5000, id=4),
        flow("f", T + 9, id=4),
    ]
    twice = [flow("s", T + 10, id=5), flow("f", T + 20, id=5), flow("s", T + 30, id=5), flow("f", T + 40, id=5)]
    crossed = [flow("s", T + 50, id=6), flow("s", T + 51, id=6), flow("f", T + 60, id=6), flow("f", T + 61, id=6)]
    events, changes = repaired(make(NAMES + [one] + bad + twice + crossed))
    found = {}
    for event in events:
        if event["ph"] in "sf":
            found.setdefault(event["id"], []).append(event["ts"] - T)
    assert sorted(found.values()) == [[10, 20], [30, 40], [50, 60], [51, 61]]
    assert told(changes, "left out: ends of arrows that have no other end, or lie on no slice") == 6


def test_begins_and_ends(make):
    def step(ph, name, at):
        return {"ph": ph, "pid": 7, "tid": 7, "ts": T + at, **({"name": name} if name else {})}

    steps = [step("B", "whole", 0), step("B", "in", 1), step("E", None, 2), step("E", "whole", 3)]
    steps += [step("B", "null", 5), {**step("E", None, 6), "name": None}]
    steps += [step("B", "x", 10), step("B", "y", 12), step("E", "x", 14), {**step("E", "y", 16), "args": {"v": 1}}]
    steps += [
        step("E", "nobody", 20),
        step("B", "outer", 30),
        step("B", "open", 32),
        step("E", "outer", 40),
        step("B", "last", 50),
        step("B", "later", 60),
    ]
    events, changes = repaired(make(NAMES + steps))
    slices = {e["name"]: (e["ts"] - T, e["dur"], e.get("args")) for e in events if e["ph"] == "X"}
    assert slices["x"] == (10, 4, None) and slices["y"] == (12, 4, {"v": 1})
    assert slices["open"] == (32, 8, {"unfinished": True})
    assert slices["last"] == (50, 10, {"unfinished": True}) and slices["later"][1] == 0
    assert [e["name"] for e in events if e["ph"] == "B"] == ["whole", "in", "null"]
    assert not of_name(events, "nobody")
    assert told(changes, "left out: ends (E) without a begin") == 1


def test_names_with_quotes(make):
    text = UNITRACE.replace("d::a", 'd::has "quote" and \\ back \t').replace("d::b", "\\n \\u12 \x01")
    events, changes = repaired(make(text))
    assert [e["name"] for e in events] == ["process_name", 'd::has "quote" and \\ back \t', "\n \\u12 \x01"]
    assert told(changes, "quotes in names were escaped") == 2


def test_a_run_of_a_week(make):
    """Events of its later days are as good as those of its first one."""
    week = 7 * 86400 * 10**9
    events, changes = repaired(make(text_of_trace([*normal_events(1), slice_("late", T + week, T + week + 5)])))
    assert any(e["name"] == "late" for e in events) and changes == []


def test_two_traces_in_one_file(make):
    """A child of fork() that wrote its copy of the parent's events into the parent's file."""
    more = UNITRACE.replace("d::b", "d::child")
    events, changes = repaired(make(UNITRACE + more))
    assert sorted(e["name"] for e in events if e["ph"] == "X") == ["d::a", "d::b", "d::child"]
    assert any("joined" in line for line in changes) and any("twice" in line for line in changes)


ODD = [
    ({"pid": 1.5, "tid": [2]}, "were replaced"),
    ({"pid": "\ud800"}, "pids that viewers cannot hold"),
    ({"ts": "soon"}, "without a time"),
    ({"ts": -5}, "before the beginning"),
    ({"ts": 10**18}, "out of range"),
    ({"dur": -7}, "without a length"),
    ({"name": None}, "without a name"),
    ({"name": "\ud800"}, "halves"),
    ({"ph": "?"}, "no kind"),
    ({"ph": "i", "s": "x"}, "unknown extent"),
    ({"ph": "C", "args": {"v": "x", "w": 1}}, "were taken away"),
    ({"ph": "C", "args": {}}, "without values"),
    ({"ph": "s", "id": None}, "without a usable id"),
    ({"cat": "gpu_op", "args": {"queued": T + 50, "submit": T}}, "cannot be true"),
]


@pytest.mark.parametrize("odd, said", ODD, ids=[said for _, said in ODD])
def test_odd_events(make, odd, said):
    text = text_of_trace(normal_events(1) + [{**slice_("odd", T + 10**6, T + 10**6 + 5), **odd}])
    events, changes = repaired(make(text.encode("utf-8", "surrogatepass") if "\ud800" not in text else text.replace("\ud800", "\\ud800")))
    assert any(said in line for line in changes), changes
    assert len(events) >= len(normal_events(1))


def test_a_cut_at_each_byte(make):
    text = text_of_trace(normal_events(1)).encode()
    start = text.index(b"traceEvents")
    for at in range(start, len(text) - 2, 7):
        events, changes = repaired(make(text[:at], "cut.json"), target=str(make(b"x", "o.json")) + f".{at}.json")
        assert len(events) <= len(normal_events(1)) + 4 and any("closed" in line for line in changes)


def test_bytes_that_are_not_utf8(make):
    path = make(text_of_trace(normal_events(1)).encode().replace(b"clFinish", b"cl\xff\xfeFinish"))
    events, changes = repaired(path)
    assert of_name(events, "cl\ufffd\ufffdFinish") and any("UTF-8" in line for line in changes)


def test_our_head(make):
    path = make(text_of_trace(normal_events(1), base=5 * 86_400 * 10**9 + 500))
    events, changes = repaired(path)
    assert (
        of_name(events, "clFinish")[0]["ts"] == T + 3000 + 500
        and of_name(events, "GEMM[SIMD8 {1; 1; 1} {2; 2; 2}]")[0]["args"]["queued"] == T + 600
    )


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_packed(make, packing):
    if packing == "zst" and not shutil.which("zstd"):
        pytest.skip("no command zstd")
    text = text_of_trace(normal_events(3000))[:-40].encode()
    packed = (
        gzip.compress(text) if packing == "gz" else subprocess.run(["zstd", "-qc"], input=text, stdout=subprocess.PIPE, check=True).stdout
    )
    path = make(packed, f"t.json.{packing}")
    done = repair.repair_trace(str(path))
    assert done.path.endswith(f"t.repaired.json.{packing}") and check_trace(done.path, strict=True) == []
    assert open(done.path, "rb").read(2) == packed[:2]


# ---- damage at random ----


def soup(r):
    """Events that are right one by one, and wrong together."""
    events = list(NAMES)
    for _ in range(r.randrange(1, 40)):
        start, length = r.randrange(300) * r.choice((1, 250)), r.randrange(100) * r.choice((0, 1, 250))
        pid, tid = r.choice(((7, 7), (7, 8), (DEVICE, 1), (9, "a")))
        name = r.choice("abc")
        kind = r.randrange(8)
        if kind < 3:
            events.append(slice_(name, start, start + length, pid, tid, r.choice(("cpu_op", "gpu_op", "kernel"))))
        elif kind < 5:
            events.append(
                {"ph": "BE"[kind - 3], "pid": pid, "tid": tid, "ts": start, **({"name": name} if kind == 3 or r.random() < 0.6 else {})}
            )
        else:
            point = flow(r.choice("sft"), start, pid, tid, r.choice((1, 2, 3, "x", 2**70)), name=name)
            if r.random() < 0.3:
                point.pop("bp", None)
            events.append(point)
    return text_of_trace(events, metadata=r.choice((METADATA, {})))


def damaged(data, r):
    data = bytearray(data)
    for _ in range(r.randrange(4)):
        at = r.randrange(len(data) + 1)
        kind = r.randrange(5)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at : at + r.randrange(40)]
        elif kind == 2:
            data[at:at] = data[at : at + r.randrange(200)]
        elif kind == 3:
            data[at:at] = r.choice((b'"', b"{", b"}", b"]", b",", b"\n", b"\\", b"NaN", b"\xff\x00"))
        else:
            data += bytes(data)
    return bytes(data)


@pytest.mark.parametrize("part", range(4))
def test_damage_at_random(tmp_path, part):
    r = random.Random(part)
    texts = [text_of_trace(normal_events(2)), UNITRACE, KINETO]
    written = 0
    for number in range(120):
        path, target = tmp_path / "t.json", str(tmp_path / f"{number}.json")
        path.write_bytes(damaged((soup(r) if r.random() < 0.6 else r.choice(texts)).encode(), r))
        try:
            events, _ = repaired(path, target)
        except TraceError:
            continue
        json.loads(open(target).read())
        written += 1
        if events:
            assert repair.repair_trace(target, target + ".again").changes == []
    assert written > 60


def test_tiny_windows(make, monkeypatch):
    text = soup(random.Random(5)) + UNITRACE
    wanted, changes = repaired(make(text))
    monkeypatch.setattr(trace, "BLOCK", 64)
    assert repaired(make(text, "again.json"))[0] == wanted


# ---- the command ----


def run(*arguments):
    return subprocess.run([sys.executable, str(CHECK), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def test_command(make, tmp_path):
    path = make(text_of_trace(normal_events(1))[:-30])
    done = run("--repair", path)
    assert done.returncode == 0 and "closed" in done.stdout and "t.repaired.json: 10 events, ok" in done.stdout
    assert (tmp_path / "t.repaired.json").exists()
    assert "t.repaired-2.json" in run("--repair", path).stdout
    taken = run("--repair", "-o", path, path)
    assert taken.returncode == 2 and "File exists" in taken.stderr and len(taken.stderr.splitlines()) == 1


def test_command_refuses(make, tmp_path):
    empty, text = make(b"", "empty.json"), make(b"hello", "text.json")
    (tmp_path / "nothing").mkdir()
    for path in (empty, text, tmp_path / "nothing", tmp_path / "none.json", "/dev/null"):
        done = run("--repair", path)
        assert done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1, done.stderr
    assert run("-o", "x", text).returncode == 2
    assert not list(tmp_path.glob("*repaired*"))


@pytest.mark.long
def test_a_full_disk(make):
    path = make(text_of_trace(normal_events(20_000))[:-30])
    limited = subprocess.run(
        ["sh", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$@"', "-", sys.executable, str(CHECK), "--repair", str(path)],
        capture_output=True,
        text=True,
    )
    assert limited.returncode == 2 and len(limited.stderr.splitlines()) == 1 and not list(path.parent.glob("*repaired*"))
