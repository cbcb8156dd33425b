"""xstrace-merge and mergetrace.py on inputs that are odd or hostile: nothing is lost, nothing missing without a word, memory bounded."""

import collections
import contextlib
import gzip
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading

import pytest

from conftest import BUILD, ROOT, Trace, check_trace
from memory import run_for_peak, wide_frame
from merging import MERGE, merge, merged, talk
from ranks import Job

from xstrace.trace import open_trace

MERGETRACE = ROOT / "scripts/mergetrace.py"
SLICE = '{"ph":"X","pid":1,"tid":1,"ts":%d.000,"dur":1.000,"name":"%s"}'


def make(path, *names, more=""):
    path.write_text('{"traceEvents":[\n' + ",\n".join([SLICE % (n * 10, name) for n, name in enumerate(names)] + [more] * bool(more)) + "\n]}\n")
    return path


def names(path):
    assert check_trace(path, strict=True) == []
    return sorted(s.name for s in Trace(path).slices)


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def told(result, name):
    """The lines about the file; each is one that a terminal can show."""
    assert all(line.isprintable() for line in result.stderr.splitlines())
    return [line for line in result.stderr.splitlines() if name in line]


# ---- what can be read only once ----


def feed(path, data):
    def write():
        with contextlib.suppress(BrokenPipeError):
            path.write_bytes(data)

    threading.Thread(target=write, daemon=True).start()


@pytest.mark.parametrize("form", ["json", "json.zst", "json.gz"])
def test_named_pipes(tmp_path, form):
    job = talk(Job(["a", "b"]), 20)
    paths = job.write(tmp_path)
    wanted = collections.Counter(s.name for path in paths for s in Trace(path).slices)
    pipes = []
    for n, path in enumerate(paths):
        os.mkfifo(tmp_path / f"pipe{n}")
        data = path.read_bytes()
        if form == "json.zst":
            data = subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout
        pipes.append(tmp_path / f"pipe{n}")
        feed(pipes[-1], gzip.compress(data) if form == "json.gz" else data)
    trace = merged(pipes, tmp_path)
    assert collections.Counter(s.name for s in trace.slices) == wanted
    assert trace.other["messages"]["matched"] > 20


def test_process_substitution_and_stdin(tmp_path):
    one = make(tmp_path / "one.json", "a", "b")
    script = f'"{MERGE}" -o all.json <(cat one.json) one.json /dev/stdin < <(cat one.json)'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "all.json") == ["a", "a", "a", "b", "b", "b"] and one.exists()


def test_damage_in_a_pipe_is_named_with_its_line(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    feed(tmp_path / "pipe", make(tmp_path / "x.json", "a", more="{]").read_bytes())
    result = merge("-o", "all.json", "pipe", cwd=tmp_path, status=1)
    assert "line 3" in told(result, "pipe")[0] and names(tmp_path / "all.json") == ["a"]


def test_a_number_that_readers_refuse(tmp_path):
    """Python reads 4,300 digits of an integer. Merger and check have the same bound and the same words."""
    words = "line 3: a number with too many digits"
    for digits in (4300, 4301):
        more = SLICE % (9, "b") + ',"args":{"n":-' + "7" * digits + "}}"
        make(tmp_path / f"{digits}.json", "a", more=more.replace("},", ",", 1))
    merge("-o", "good.json", "4300.json", cwd=tmp_path)
    assert names(tmp_path / "good.json") == names(tmp_path / "4300.json") == ["a", "b"]
    result = merge("-o", "all.json", "4301.json", cwd=tmp_path, status=1)
    assert len(told(result, words)) == 1 and names(tmp_path / "all.json") == ["a"]
    check = subprocess.run([sys.executable, ROOT / "scripts/xstrace-check", "4301.json"], cwd=tmp_path, capture_output=True, text=True)
    assert words in check.stdout and check.returncode == 1


EVENT = '{"ph":"X","pid":1,"tid":1,"ts":15,"dur":1,"name":"odd"%s}'
NO_EVENTS = {
    "number": "1",
    "null": "null",
    "text": '"},{ \\" ]"',
    "list": "[]",
    "list of events": '[{"ph":"X"}]',
    "deep": EVENT % (',"args":{"a":' + "[" * 300 + "]" * 300 + "}"),
    "deep objects": EVENT % (',"args":' + '{"a":' * 300 + "1" + "}" * 300),
    "very deep": EVENT % (',"args":{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "digits": EVENT % (',"args":{"a":' + "9" * 5000 + "}"),
    "members": EVENT % "".join(f',"m{n}":1' for n in range(30)),
    "long": EVENT % (',"args":{"a":"' + "]}," * (6 << 20) + '"}'),
    # these are no JSON, but their brackets tell where they end
    "bad word": EVENT % ',"args":foo',
    "no colon": '{"ph" "X"}',
    "garbage": "@@@",
}


@pytest.mark.parametrize("between", [",", ", ", ",\n", " \n , \n\t"], ids=["one line", "json.dump", "lines", "loose lines"])
@pytest.mark.parametrize("what", NO_EVENTS)
def test_what_is_no_event_is_left_out_alone(tmp_path, what, between):
    """All around it is merged, also where no line ends."""
    events = [SLICE % (n * 10, f"n{n:03}") for n in range(100)]
    for place in (0, 50, 100):
        elements = [*events[:place], NO_EVENTS[what], NO_EVENTS[what], *events[place:]]
        (tmp_path / "x.json").write_text('{"traceEvents":[' + between.join(elements) + '],"otherData":{"status":0}}')
        result = merge("-o", f"{place}.json", "x.json", cwd=tmp_path, status=1)
        assert names(tmp_path / f"{place}.json") == [f"n{n:03}" for n in range(100)]
        (line,) = told(result, "x.json")
        assert line.endswith("; left out, and more like it"), line


@pytest.mark.parametrize("what", ["list of events", "deep", "deep objects", "digits", "members"])
def test_what_has_many_lines_is_left_out_alone(tmp_path, what):
    """As json.dump(indent=1) writes it: its lines begin as events do."""
    events = [SLICE % (n * 10, "a") for n in range(9)]
    odd = re.sub(r"(?<!\d)([\[{,:]|(?=[\]}]))(?!\d)", "\\1\n", NO_EVENTS[what])
    (tmp_path / "x.json").write_text('{"traceEvents":[\n' + ",\n".join([*events, odd, *events]) + "]}\n")
    result = merge("-o", "all.json", "x.json", cwd=tmp_path, status=1)
    assert names(tmp_path / "all.json") == ["a"] * 18 and len(told(result, "x.json")) == 1


@pytest.mark.parametrize("odd", [EVENT[:-1] % "", EVENT % ',"open":"', '"'], ids=["no end", "open text", "quote"])
def test_what_cannot_be_read_behind_it_is_told(tmp_path, odd):
    """Where an element ends that has no end, nobody knows: of what is in lines the next one is read, else that the rest is not is said."""
    events = [SLICE % (n * 10, "a") for n in range(20)]
    elements = [*events[:10], odd, *events[10:]]
    (tmp_path / "x.json").write_text('{"traceEvents":[' + ",".join(elements) + "]}\n")
    result = merge("-o", "all.json", "x.json", cwd=tmp_path, status=1)
    assert names(tmp_path / "all.json") == ["a"] * 10
    left, lost = told(result, "x.json")
    assert left.endswith("; left out") and lost.endswith("x.json: what follows that in line 1 cannot be read; all before it is merged")
    done = subprocess.run([BUILD / "tables/xstrace-tables", "-o", "tables", "x.json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.endswith("x.json: what follows that in line 1 cannot be read; the tables hold all before it\n")
    (tmp_path / "x.json").write_text('{"traceEvents":[\n' + ",\n".join(elements) + "\n]}\n")
    result = merge("-o", "lines.json", "x.json", cwd=tmp_path, status=1)
    assert names(tmp_path / "lines.json") == ["a"] * 20 and len(told(result, "x.json")) == 1


@pytest.mark.parametrize("torn", ['5],"b":1}}', '"x":[1,2]}}', '{"a":1],"b":2}', "[1,2"])
def test_a_torn_line_takes_no_other_with_it(tmp_path, torn):
    """Its brackets say nothing of where the events end."""
    make(tmp_path / "x.json", "a", "b", more=torn + ",\n" + SLICE % (50, "c"))
    merge("-o", "all.json", "x.json", cwd=tmp_path, status=1)
    assert names(tmp_path / "all.json") == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text",
    ['{"a":[\n' * 300_000, "[\n" * 10**6, ",5]\n" * 10**6, "null," * 10**6, ',{"a":' * 300_000, (',{"a":' + "[" * 300 + "\n") * 9000],
    ids=range(6),
)
def test_many_that_are_no_events_take_no_longer(tmp_path, text):
    (tmp_path / "x.json").write_text('{"traceEvents":[\n' + text + "{}\n")
    done = subprocess.run([MERGE, "-o", "all.json", "x.json"], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert done.returncode and len(done.stderr.splitlines()) <= 4


def test_no_room_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    feed(tmp_path / "pipe", make(tmp_path / "x.json", "a").read_bytes())
    good = make(tmp_path / "good.json", "b")
    result = merge("-o", "all.json", "pipe", good, cwd=tmp_path, status=1, env=os.environ | {"TMPDIR": str(tmp_path / "none")})
    assert len(told(result, " pipe: ")) == 1 and "left out" in result.stderr and names(tmp_path / "all.json") == ["b"]


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/full"])
def test_devices(tmp_path, path):
    good = make(tmp_path / "good.json", "b")
    result = merge("-o", "all.json", path, good, cwd=tmp_path, status=1)
    assert len(told(result, path)) == 1 and names(tmp_path / "all.json") == ["b"]
    merge("-o", "2.json", path, cwd=tmp_path, status=125)
    assert not (tmp_path / "2.json").exists()


@pytest.mark.parametrize("path", ["/dev/stdout", "pipe", "directory"])
def test_the_output_is_a_new_file(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    make(tmp_path / "good.json", "b")
    before = sorted(os.listdir(tmp_path)), sorted(os.listdir("/dev"))
    for option in ("-o", "--report"):
        result = merge(option, path, "good.json", cwd=tmp_path, status=125)
        assert len(told(result, path)) == 1 and result.stdout == ""
    assert before == (sorted(os.listdir(tmp_path)), sorted(os.listdir("/dev")))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Takes xstrace-merge some tenths of a second to write."""
    path = tmp_path_factory.mktemp("large") / "large.json"
    path.write_text('{"traceEvents":[\n' + ",\n".join(SLICE % (n * 10, f"c{n % 50}") for n in range(500_000)) + "\n]}\n")
    return path


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("output", ["all.json", "all.json.zst", "all.pftrace"])
def test_ended_by_a_signal_it_leaves_nothing(tmp_path, large, output, number):
    """What has the output's name is whole: until then it has another one, under which nothing stays."""
    for _ in range(10):
        with subprocess.Popen([MERGE, "-o", output, large], cwd=tmp_path, stderr=subprocess.DEVNULL, preexec_fn=no_core) as child:
            while child.poll() is None and not os.listdir(tmp_path):
                pass
            child.send_signal(number)
        if child.returncode:
            break
        os.unlink(tmp_path / output)  # it was faster
    assert child.returncode == -number and not os.listdir(tmp_path)


def test_a_signal_that_is_ignored_stays_so(tmp_path, large):
    """As nohup has it."""
    words = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", MERGE, "-o", "all.json", large]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as child:
        while child.poll() is None and not os.listdir(tmp_path):
            pass
        child.send_signal(signal.SIGHUP)
    assert child.returncode == 0 and os.listdir(tmp_path) == ["all.json"]


# ---- the same thing twice ----


@pytest.mark.parametrize("how", ["twice", "dot", "symlink", "hard link", "directory", "directory twice", "directory link", "within"])
def test_a_file_is_merged_once(tmp_path, how):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/sub").mkdir()
    path = make(tmp_path / "d/x.json", "a", "b")
    other = {
        "twice": "d/x.json",
        "dot": "./d/../d//x.json",
        "symlink": "link.json",
        "hard link": "hard.json",
        "directory": "d",
        "directory twice": "d",
        "directory link": "e",
        "within": "d",
    }[how]
    (tmp_path / "link.json").symlink_to("d/x.json")
    os.link(path, tmp_path / "hard.json")
    (tmp_path / "e").symlink_to("d")
    inputs = ["d/x.json", other]
    if how.startswith("directory"):
        inputs = ["d", other] if how != "directory" else inputs
    if how == "within":
        os.link(path, tmp_path / "d/y.json")
        inputs = ["d"]
    result = merge("-o", "all.json", *inputs, cwd=tmp_path, status=1)
    assert names(tmp_path / "all.json") == ["a", "b"]
    assert len([line for line in result.stderr.splitlines() if "already" in line]) == 1


def test_directories_that_hold_themselves(tmp_path):
    (tmp_path / "d/e").mkdir(parents=True)
    make(tmp_path / "d/e/x.json", "a")
    for n in range(4):
        (tmp_path / f"d/e/up{n}").symlink_to("..")
    merge("-o", "all.json", "d", cwd=tmp_path)
    assert names(tmp_path / "all.json") == ["a"]


@pytest.mark.parametrize("how", ["itself", "symlink", "hard link", "spelling", "directory", "report"])
def test_the_output_is_no_input(tmp_path, how):
    (tmp_path / "d").mkdir()
    make(tmp_path / "d/x.json", "a")
    old = make(tmp_path / "d/all.json", "old")
    before = old.read_bytes()
    os.link(old, tmp_path / "hard.json")
    (tmp_path / "link.json").symlink_to("d/all.json")
    inputs = {"itself": ["d/all.json"], "symlink": ["link.json"], "hard link": ["hard.json"], "spelling": ["d/./all.json"], "directory": []}.get(how, [])
    inputs += ["d"] if how in ("directory", "report") else ["d/x.json"]
    options = ["--report", "d/all.json", "-o", "d/new.json"] if how == "report" else ["-o", "d/all.json"]
    result = merge(*options, *inputs, cwd=tmp_path, status=1)
    assert old.read_bytes() == before
    assert len([line for line in result.stderr.splitlines() if "left out" in line]) == 1
    assert names(tmp_path / ("d/new.json" if how == "report" else "d/all-2.json")) == ["a"]
    if how != "report":
        merge("-o", "d/all.json", "d/all.json", cwd=tmp_path, status=125)


def test_a_merged_trace_beside_its_inputs_is_said(tmp_path):
    make(tmp_path / "x.json", "a")
    merge("-o", "all.json", "x.json", cwd=tmp_path)
    result = merge("-o", "more.json", "all.json", "x.json", cwd=tmp_path)
    assert "all.json is a merged trace" in result.stderr
    assert "is a merged trace" not in merge("-o", "again.json", "all.json", cwd=tmp_path).stderr


def test_a_report_is_plain_text(tmp_path):
    """Names of communicators, tasks and hosts are programs' texts, and a report goes to a terminal."""
    odd = "x\x1b]0;title\x07\n\r\u009b31m\u202e"
    job = Job([f"a{odd}", f"b{odd}"])
    talk(job, 10)
    job.everyone(comm="0123456789abcdef", ranks=[0, 1])
    for rank in 0, 1:
        job.told[rank].append({"comm": "0123456789abcdef", "rank": rank, "members": 2, "name": odd})
    paths = job.write(tmp_path)
    result = merge("--report", "-", *paths, cwd=tmp_path)
    assert all(line.isprintable() for line in result.stdout.split("\n"))
    assert any(line.startswith("x?]0;title???") and "MPI_Barrier" in line for line in result.stdout.splitlines())


# ---- nothing to merge, or not all ----

NOTHING = {
    "nothing": b"",
    "blanks": b" \n" * 99,
    "an object": b"{}",
    "a list": b"[]",
    "no event": b'{"traceEvents":[]}',
    "cut": b'{"traceEvents":[\n',
    "binary": bytes(range(256)),
    "no slice": b'[{"ph":"X"},1]',
}


@pytest.mark.parametrize("what", NOTHING)
def test_an_input_without_events_is_said(tmp_path, what):
    (tmp_path / "n.json").write_bytes(NOTHING[what])
    make(tmp_path / "x.json", "a")
    result = merge("-o", "all.json", "n.json", "x.json", cwd=tmp_path, status=1)
    assert told(result, "n.json") and names(tmp_path / "all.json") == ["a"]
    result = merge("-o", "alone.json", "--report", "alone.txt", "n.json", cwd=tmp_path, status=125)
    assert "no trace to merge" in result.stderr and not list(tmp_path.glob("alone*"))


@pytest.mark.parametrize("value", ['{"a":\n"b\\"c"}', '["x",\t1]', '{}', '{"a":1,"a":"\\ud800"}'])
@pytest.mark.parametrize("member", ["tid", "pid", "id", "cat", "name", "s", "bp"])
def test_an_object_or_a_list_in_the_place_of_a_text(tmp_path, member, value):
    """The output is JSON, whatever a member is; a tid of this kind is named by its text, as others that are no numbers."""
    event = {"ph": '"%s"', "ts": "1.000", "pid": "1", "tid": "1", "id": "7", "name": '"n"', "cat": '"c"', "bp": '"e"', "s": '"t"'} | {member: value}
    events = ["{%s}" % ",".join(f'"{key}":{text}' for key, text in event.items()) % ph for ph in "sfbi"]
    (tmp_path / "x.json").write_text('{"traceEvents":[\n%s,\n%s\n]}' % (",\n".join(events), SLICE % (1, "slice")))
    make(tmp_path / "y.json", "other")
    for form in "json", "kineto":
        out = tmp_path / f"{form}.json"
        subprocess.run([MERGE, "--wait", "0", "--format", form, "-o", out, "x.json", "y.json"], cwd=tmp_path, check=False)
        merged_events = json.loads(out.read_text())["traceEvents"]
        assert {"slice", "other"} <= {e.get("name") for e in merged_events if e["ph"] == "X"}
        if member == "tid":
            assert value in [e["args"].get("name") for e in merged_events if e["name"] == "thread_name"] or "ud800" in value


@pytest.mark.parametrize("base", ['"1785110400000000000"', "1.5", "-1", "9" * 19, "[]"])
@pytest.mark.parametrize("behind", [False, True])
def test_a_base_that_is_no_time_is_said(tmp_path, base, behind):
    """Its events come in, but not where they belong: nobody knows where that is."""
    make(tmp_path / "x.json", "a")
    pieces = [f'"baseTimeNanoseconds":{base}', '"traceEvents":[\n%s\n]' % (SLICE % (1, "b"))]
    (tmp_path / "odd.json").write_text("{%s}" % ",".join(pieces[::-1] if behind else pieces))
    result = merge("-o", "all.json", "x.json", "odd.json", cwd=tmp_path, status=1)
    assert told(result, "odd.json: its baseTimeNanoseconds is no time") and names(tmp_path / "all.json") == ["a", "b"]


def test_what_a_directory_holds_is_merged_or_said(tmp_path):
    (tmp_path / "d").mkdir()
    make(tmp_path / "d/x.json", "a")
    (tmp_path / "d/gone.json").symlink_to("nowhere")
    os.mkfifo(tmp_path / "d/pipe.json")
    deep = tmp_path / "d"
    for _ in range(20):
        deep = deep / "d"
        deep.mkdir()
    make(deep / "deep.json", "b")
    result = merge("-o", "all.json", "d", cwd=tmp_path, status=1)
    assert names(tmp_path / "all.json") == ["a"]
    assert [len(told(result, name)) for name in ("gone.json", "pipe.json", "nested too deeply")] == [1, 1, 1]


@pytest.mark.long
def test_a_trace_that_goes_on_is_merged_as_it_was(tmp_path):
    """Each pass reads the same bytes, whatever is written to the file, or put in its place, between them."""
    size = 200_000
    path = tmp_path / "x.json"
    with path.open("w") as out:
        out.write("[\n")
        for n in range(size):
            out.write(SLICE % (n * 10, "a") + ",\n")
    stop = threading.Event()

    def write_on():
        with path.open("a") as out:
            while not stop.is_set():
                out.write((SLICE % (1, "late") + ",\n").replace('"pid":1', '"pid":%d' % random.randrange(10**6)) * 100)
                out.flush()

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        result = merge("-o", "all.json", path, cwd=tmp_path)
    finally:
        stop.set()
        writer.join()
    assert "was cut" in result.stderr
    found = collections.Counter(names(tmp_path / "all.json"))
    assert found["a"] == size
    written = Trace(tmp_path / "all.json").other["inputs"][0]["events"]
    assert sum(found.values()) == written


def test_a_trace_that_is_cut_meanwhile_is_said(tmp_path):
    path = tmp_path / "x.json"
    with path.open("w") as out:
        out.write("[\n" + "".join(SLICE % (n * 10, "a") + ",\n" for n in range(400_000)))
    process = subprocess.Popen([MERGE, "-o", "all.json", "x.json"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while len(os.listdir(tmp_path)) < 2:  # until it writes
        assert process.poll() is None
    os.truncate(path, 5000)
    said = process.stderr.read()
    assert process.wait() == 1 and "while it was read" in said
    assert check_trace(tmp_path / "all.json", strict=True) == []


# ---- memory ----


@pytest.mark.long
def test_small_files_cannot_take_a_gigabyte(tmp_path):
    pytest.importorskip("zstandard")
    text = '{"traceEvents":[\n' + SLICE % (1, "a") + "\n]}"
    for log, options, fine in ((23, [], True), (30, [], False), (24, [], False), (28, ["--zstd-window", "256M"], True)):
        paths = []
        for n in range(4):
            paths.append(tmp_path / f"{log}-{n}.json.zst")
            paths[-1].write_bytes(wide_frame(text, log, 128 << 20))
            assert paths[-1].stat().st_size < 60_000
        done = run_for_peak(tmp_path, [MERGE, "-o", tmp_path / f"{log}.json", *options, *paths])
        assert (done.returncode == 0) == fine and (fine or "--zstd-window" in done.stderr)
        assert done.peak < 40_000 + 4 * ((128 << 10) if options else (9 << 10))


@pytest.mark.parametrize("value", ["0", "1", "-1", "4G", "8X", "", "1" * 50])
def test_bad_zstd_window(tmp_path, value):
    make(tmp_path / "x.json", "a")
    result = merge(f"--zstd-window={value}", "x.json", cwd=tmp_path, status=125)
    assert "--zstd-window" in result.stderr and len(result.stderr.splitlines()) == 1
    assert os.listdir(tmp_path) == ["x.json"]


@pytest.mark.long
def test_long_events_are_not_kept(tmp_path):
    """What many inputs can hold of their events has a bound, 512 MiB for all together; what is longer is left out and said."""
    long = (SLICE % (1, "n" * (15 << 20))).encode()
    dirty = long.replace(b"n" * 1000, b"n" * 999 + b"\xff")
    filler = [(SLICE % (100 + n, "x")).encode() for n in range(2000)]
    paths = []
    for n in range(32):
        paths.append(tmp_path / f"{n}.json.gz")
        paths[-1].write_bytes(gzip.compress(b"[\n" + b",\n".join([long, *filler, dirty, *filler]) + b"\n]", 1))
    done = run_for_peak(tmp_path, [MERGE, "-o", tmp_path / "all.json", *paths])
    assert done.returncode == 1 and done.stderr.count("an event that is too long") == 32
    assert done.peak < 600_000
    assert len(names(tmp_path / "all.json")) == 32 * 4000
    done = run_for_peak(tmp_path, [MERGE, "-o", tmp_path / "few.json", *paths[:4]])
    assert done.returncode == 0 and done.peak < 250_000


# ---- hostile contents ----


def test_what_files_say_cannot_reach_the_terminal(tmp_path):
    bad = "\x1b[2J\nok\r\u009b31m\u202e" + "n" * 5000
    header = {"tool": bad, "host": bad, "pid": 1, "rank": 0}
    other = {"end": "killed", "status": 9, "threads": [{"tid": 1, "in_call": bad}]}
    text = json.dumps({"baseTimeNanoseconds": 0, "metadata": header, "traceEvents": [json.loads(SLICE % (1, "a"))], "otherData": other}, ensure_ascii=False)
    (tmp_path / "x\x1b]0;y\a\n\u202ez.json").write_text(text)
    result = merge("-o", "all\x1b[1m\n.json", "x\x1b]0;y\a\n\u202ez.json", cwd=tmp_path)
    assert len(result.stderr.splitlines()) == 2 and result.stdout == ""
    assert all(line.isprintable() for line in result.stderr.splitlines())
    with open(tmp_path / b"\xff\xfe.json".decode(errors="surrogateescape"), "w") as out:
        out.write("x")
    for command in ([MERGE, "-o", "2.json", "."], [sys.executable, MERGETRACE, "--check", "--statistics", "-", "."]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60)
        assert done.returncode in (1, 125)
        assert all(line.isprintable() for line in (done.stderr + done.stdout).decode().splitlines())


NUMBERS = ["9" * 18, "9" * 19, "9" * 400, "1e308", "1e-308", "-1", "-" + "9" * 18, "9223372036854775807", "-9223372036854775808", "4611686018427387903", "1e18", "2.5e15", "0.0004", "NaN"]


@pytest.mark.long
def test_numbers_out_of_range(tmp_path):
    """In every place in which a number is read, beside good ranks, whose events are all there."""
    good = talk(Job(["a", "b"]), 5).write(tmp_path)
    wanted = collections.Counter(s.name for path in good for s in Trace(path).slices)
    call = '{"ph":"X","pid":%s,"tid":%s,"ts":%s,"dur":%s,"cat":"cpu_op","name":"MPI_Send","args":{"dst":%s,"tag":%s,"bytes":%s}}'
    flow = '{"ph":"%s","pid":1,"tid":1,"ts":%s,"id":%s,"cat":"c","name":"f"}'
    dice = random.Random(1)
    for turn in range(60):
        pick = [dice.choice(NUMBERS + ["1", "2"]) for _ in range(40)]
        take = iter(pick).__next__
        events = [call % tuple(take() for _ in range(7)) for _ in range(3)] + [flow % (ph, take(), take()) for ph in "stf"]
        header = '"baseTimeNanoseconds":%s,"metadata":{"tool":"xstrace","host":"c","rank":%s,"world_size":%s,"pid":%s,"ppid":%s}' % tuple(take() for _ in range(5))
        (tmp_path / "bad.json").write_text("{" + header + ',"traceEvents":[\n' + ",\n".join(events) + '\n],"otherData":{"lost":%s,"clock_error_ns":%s,"status":%s}}' % (take(), take(), take()))
        for name in ("all.json", "all.pftrace"):
            done = subprocess.run([MERGE, "-o", name, *good, "bad.json"], cwd=tmp_path, capture_output=True, text=True, timeout=30)
            assert done.returncode in (0, 1) and "runtime error" not in done.stderr and "Sanitizer" not in done.stderr, (turn, done)
        found = collections.Counter(s.name for s in Trace(tmp_path / "all.json").slices)
        assert not wanted - found
        os.unlink(tmp_path / "all.json")
        os.unlink(tmp_path / "all.pftrace")


def test_keys_twice(tmp_path):
    """The output says each thing once, as one value: JSON leaves open which."""
    twice = '{"ph":"X","ph":"X","pid":1,"pid":2,"tid":1,"tid":"t","ts":1.000,"ts":2.000,"dur":1.0,"dur":9,"name":"a","name":"b","args":{"x":1,"x":2}}'
    make(tmp_path / "x.json", "c", more=twice)
    merge("-o", "all.json", "x.json", cwd=tmp_path)
    found = names(tmp_path / "all.json")
    assert len(found) == 2
    pairs = []
    json.loads((tmp_path / "all.json").read_text(), object_pairs_hook=lambda p: pairs.append([key for key, _ in p]))
    assert all(len(set(keys)) == len(keys) for keys in pairs if keys != ["x", "x"])


@pytest.mark.parametrize("text", ["[%s]", '{"traceEvents":[%s]}'])
def test_what_follows_a_trace_is_told(tmp_path, text):
    """Two traces in one file, as `cat` makes them: one is read, and that the other is not has a line and a status."""
    one = text % (SLICE % (10, "a")) + "\n"
    (tmp_path / "twice.json").write_text(one + one)
    (tmp_path / "once.json").write_text(one + " \n")
    done = merge("-o", "all.json", "twice.json", cwd=tmp_path, status=1)
    assert any("line 2: text behind the end" in line for line in told(done, "twice.json"))
    merge("-o", "good.json", "once.json", cwd=tmp_path)
    assert names(tmp_path / "all.json") == names(tmp_path / "good.json") == ["a"]
    for name, status in (("twice", 1), ("once", 0)):
        tables = subprocess.run([BUILD / "tables/xstrace-tables", "-o", tmp_path / name, tmp_path / f"{name}.json"], capture_output=True, text=True)
        assert (tables.returncode, "text behind the end" in tables.stderr) == (status, bool(status))


def test_counters_and_tracks_keep_their_names(tmp_path):
    """In Perfetto's format as in JSON: names that are long, escaped, alike or empty, and no value that is no number."""
    pytest.importorskip("duckdb")
    import xstrace

    odd = ["", "\u00e9\"\\\n" * 100 + "a", "\u00e9\"\\\n" * 100 + "b", "n" * 250 + "0", "n" * 250 + "1"]
    values = {"value": 1.5, "k" * 100 + "0": 2, "k" * 100 + "1": 3, "text": "4", "none": None, "yes": True, "no": [5], "unit": "6 GB"}
    events = [{"ph": "C", "name": name, "pid": 7, "ts": 1 + n, "args": values} for n, name in enumerate(odd)]
    events += [{"ph": "X", "name": "x", "pid": 7, "tid": tid, "ts": 1, "dur": 1} for tid in ("stream \u00e9", 'a "b"', -1, 5)]
    events.append({"ph": "M", "name": "thread_name", "pid": 7, "tid": 5, "args": {"name": "x\0y"}})
    (tmp_path / "in.json").write_text(json.dumps(events))
    merge("-o", "all.pftrace", "in.json", cwd=tmp_path)
    assert check_trace(tmp_path / "all.pftrace", strict=True) == []
    asked = "select name, key, value from counters order by all"
    with xstrace.open(tmp_path / "in.json", cache=False) as before, xstrace.open(tmp_path / "all.pftrace", cache=False) as after:
        wanted = [(name + (key != "value") * f" {key}", value) for name, key, value in before.sql(asked).fetchall()]
        assert sorted(wanted) == sorted((name, value) for name, _, value in after.sql(asked).fetchall()) and len(wanted) == 4 * len(odd)
        assert {name for (name,) in after.sql("select name from threads").fetchall()} >= {"stream \u00e9", 'a "b"', "x\0y"}


def test_what_the_output_has_no_room_for_is_left_out_with_a_line(tmp_path):
    """More slices that are open at once than Perfetto's format is given: the status is 1, and those around them end where they did."""
    begins = [f'{{"ph":"B","pid":1,"tid":1,"ts":{n},"name":"n"}}' for n in range(65540)]
    ends = [f'{{"ph":"E","pid":1,"tid":1,"ts":{200000 - n}}}' for n in reversed(range(65540))]
    (tmp_path / "in.json").write_text("[\n" + ",\n".join(begins + ends) + "\n]\n")
    said = merge("-o", "all.pftrace", "in.json", cwd=tmp_path, status=1).stderr
    assert "xstrace-merge: 4 slices and other events are left out" in said
    found = Trace(tmp_path / "all.pftrace").slices
    assert len(found) == 65536 and all(one.start % 86400_000_000_000 + one.end % 86400_000_000_000 == 200_000_000 for one in found)
    merge("-o", "all.json", "in.json", cwd=tmp_path)


def test_escaped_words_are_the_words(tmp_path):
    """Keys, phases, categories, at any depth: "d\\u0075r" is dur, and "\\\\u0064ur" is not."""
    pytest.importorskip("duckdb")
    import xstrace

    args = {"queued": 1.5, "bytes": 7, "\\u0064ur": {"comm": "w"}}
    events = [
        {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "HOST<h> app"}},
        {"ph": "B", "name": "half", "pid": "p", "tid": 7, "ts": 20.125},
        {"ph": "E", "pid": "p", "tid": 7, "ts": 25.5},
        {"ph": "X", "name": "gemm", "cat": "gpu_op", "pid": 8, "tid": 7, "ts": 30.5, "dur": 5.25, "args": args},
        {"ph": "X", "name": "MPI_Send", "cat": "cpu_op", "pid": 7, "tid": 7, "ts": 40, "dur": 1, "args": {"comm": "world", "peer": 0}},
        *({"ph": ph, "name": "job", "cat": "c", "id2": {"local": n}, "pid": 7, "ts": ts + n} for ph, ts in (("b", 1), ("e", 10)) for n in (1, 2)),
        {"ph": "C", "name": "memory", "pid": 7, "ts": 1, "args": {"value": 4}},
    ]
    plain = json.dumps({"baseTimeNanoseconds": 17 * 10**17, "metadata": {"host": "node7", "rank": 3}, "traceEvents": events})
    escaped = re.sub('"[^"]*"', lambda text: re.sub(r"(?<!\\)\w", lambda letter: f"\\u{ord(letter[0]):04x}", text[0]), plain)
    assert json.loads(escaped) == json.loads(plain) and "baseTime" not in escaped and "\\\\u" in escaped
    made = {}
    for name, text in (("plain", plain), ("escaped", escaped)):
        place = tmp_path / name
        place.mkdir()
        (place / "in.json").write_text(text)
        for output in ("all.json", "all.pftrace"):
            merge("-o", output, "in.json", cwd=place)
        subprocess.run([BUILD / "tables/xstrace-tables", "--threads", "1", "-o", "tables", "in.json"], cwd=place, check=True)
        made[name] = {path.name: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "in.json"}
    assert made["plain"] == made["escaped"] and len(made["plain"]) > 10
    with xstrace.open(tmp_path / "escaped/in.json", cache=False) as opened:
        assert opened.sql("select dur from slices where name = 'job'").fetchall() == [(9000,), (9000,)]


@pytest.mark.parametrize("output", ["all.json", "all.pftrace"])
def test_half_an_arrow_is_not_merged_where_the_input_was_cut(tmp_path, output):
    """Wherever that was, and however many ends an arrow has: those that are whole stay. What is half in a whole input stays, too."""
    events = []
    for n in range(8):
        start, first, second = ({"ph": ph, "cat": "flow", "name": "dep", "id": n, "pid": 7, "tid": 7, "ts": 10 * n + 1} for ph in "sff")
        events += [{"ph": "X", "name": f"n{n}", "pid": 7, "tid": 7, "ts": 10 * n, "dur": 5}]
        events += [[start, first], [first, start], [start, first, second], [first, start, second]][n % 4]
    whole = "[\n" + "".join(json.dumps(event | {"bp": "e"}) + ",\n" for event in events)
    lines = whole.splitlines(keepends=True)
    for kept in range(2, len(lines), 3 if "pf" in output else 2):
        (tmp_path / "in.json").write_text("".join(lines[:kept]))
        said = merge("-o", output, "in.json", cwd=tmp_path).stderr
        assert check_trace(tmp_path / output, strict=True) == []
        ends = [event["id"] for event in events[: kept - 1] if event["ph"] in "sf"]
        with open_trace(tmp_path / output) as trace:
            found = [event for event in trace if event["ph"] in "stf"]
        assert len(found) == len(ends) - (ends.count(ends[-1]) == 1 if ends else 0)
        assert ("1 arrows of which only one end is there" in said) == (len(found) < len(ends))
        (tmp_path / output).unlink()
    (tmp_path / "in.json").write_text("".join(lines[:3]).rstrip(",\n") + "]")
    merge("-o", output, "in.json", cwd=tmp_path)
    assert any("flow start without end" in line for line in check_trace(tmp_path / output, strict=True))


@pytest.mark.parametrize(
    "threads",
    [
        [(1, 2147483654), (1, 1073741824), (1, 1073741825)],
        [(1, 2147483654), (1, 2147483655), (1, 1073741824), (1, 1073741825)],
        [(2147483654, 2147483654), (2147483654, 1073741825), (1073741824, 5), (1073741824, 1073741824)],
        [(1, '"a"'), (1, 1342177280), (1, '"b"'), (1, 1342177281), (1, -3)],
    ],
)
@pytest.mark.parametrize("output", ["all.json", "all.pftrace"])
def test_threads_stay_apart_whatever_their_numbers(tmp_path, threads, output):
    """Those that the output has no number for get others: not ones that a thread or process met later has."""
    events = [
        {"ph": "X", "name": f"n{n}", "cat": "cpu_op", "pid": pid, "tid": tid, "ts": 1 + 5 * n, "dur": 10} for n, (pid, tid) in enumerate(threads)
    ]
    (tmp_path / "in.json").write_text(json.dumps(events))
    merge("-o", output, "in.json", cwd=tmp_path)
    assert check_trace(tmp_path / output, strict=True) == []
    with open_trace(tmp_path / output) as trace:
        found = {event["name"]: (event["pid"], event["tid"]) for event in trace if event["ph"] == "X"}
    assert len(found) == len(set(found.values())) == len(threads)
    assert len({pid for pid, _ in found.values()}) == len({pid for pid, _ in threads})


# ---- mergetrace.py ----


def mergetrace(*args, cwd, status):
    done = subprocess.run([sys.executable, MERGETRACE, *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    return done


def test_what_has_no_end_lasts_as_long_in_every_tool(tmp_path):
    """To the last time of any event, though nothing else has an end; an end before all begins belongs to none."""
    pytest.importorskip("duckdb")
    import xstrace

    (tmp_path / "in.json").write_text('[{"ph":"E","pid":5,"tid":6,"ts":10},{"ph":"B","name":"a","pid":5,"tid":6,"ts":1}]')
    done = mergetrace("--statistics", "-", "in.json", cwd=tmp_path, status=1)
    (row,) = json.loads(done.stdout[: done.stdout.rindex("}") + 1])["traces"][0]["totals"]
    with xstrace.open(tmp_path / "in.json", cache=False) as opened:
        assert opened.sql("select count(*), sum(dur) from slices").fetchall() == [(row["count"], row["total_ns"])] == [(1, 9000)]


def test_mergetrace_leaves_nothing_out_without_a_word(tmp_path):
    make(tmp_path / "x.json", "a")
    make(tmp_path / "old.json", "a")
    (tmp_path / "none").mkdir()
    (tmp_path / "empty.json").write_text("")
    os.mkfifo(tmp_path / "pipe.json")
    done = mergetrace("--statistics", "-", "x.json", "x.json", "none", "pipe.json", "empty.json", "old.json", cwd=tmp_path, status=1)
    assert len(json.loads(done.stdout)["traces"]) == 2
    feed(tmp_path / "pipe.json", (tmp_path / "x.json").read_bytes())
    done = mergetrace("--statistics", "-", "x.json", "x.json", "pipe.json", "empty.json", "old.json", "-o", "old.json", cwd=tmp_path, status=1)
    assert [trace["events"] for trace in json.loads(done.stdout[: done.stdout.rindex("}") + 1])["traces"]] == [1]
    for name in ("pipe.json", "empty.json", "old.json"):
        assert told(done, name), done.stderr


@pytest.mark.parametrize("wanted", ["--statistics s.json", "--parquet tables --no-clock-sync", "--check", "--check --statistics s.json"])
def test_mergetrace_makes_nothing_where_nothing_can_be_done(tmp_path, wanted):
    if "--parquet" in wanted:
        pytest.importorskip("pyarrow")
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "text.json").write_text("hello")
    for more in ([], ["-o", "all.json"]):
        mergetrace(*more, *wanted.split(), "empty.json", "text.json", cwd=tmp_path, status=125)
        assert sorted(os.listdir(tmp_path)) == ["empty.json", "text.json"]


def test_mergetrace_that_has_made_something_says_so(tmp_path):
    """By its status: 125 means that nothing was created."""
    make(tmp_path / "x.json", "a")
    mergetrace("--statistics", "s.json", "-o", "none/all.json", "x.json", cwd=tmp_path, status=1)
    assert len(json.loads((tmp_path / "s.json").read_text())["traces"]) == 1
    mergetrace("--statistics", "2.json", "-o", "all.json", "x.json", cwd=tmp_path, status=0)
    assert sorted(os.listdir(tmp_path)) == ["2.json", "all.json", "s.json", "x.json"]


def test_tables_of_hostile_traces(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    bad = [{"ph": "X", "ts": 10**30, "dur": 10**30, "pid": 10**30, "tid": [], "name": "\ud800", "args": {"x": 10**400}}, {"ph": "X", "ts": -(2**62), "dur": 1, "name": {}}]
    good = {"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": [], "name": {}, "args": {"x": 10**400}}
    about = {"baseTimeNanoseconds": 2**62, "metadata": {"host": [1], "rank": 10**30, "pid": 10**30}}
    (tmp_path / "x.json").write_text(json.dumps({**about, "traceEvents": [*bad, good]}))
    mergetrace("--parquet", "tables", "--statistics", "s.json", "--no-clock-sync", "x.json", cwd=tmp_path, status=1)
    assert parquet.read_table(tmp_path / "tables/x.parquet").num_rows == 1


def test_many_processes_in_perfettos_format(tmp_path):
    """The time grows as their number, not as its square: a minute for these, else."""
    one = '{"ph":"X","name":"n","pid":%d,"tid":%d,"ts":%d,"dur":1}'
    path = tmp_path / "many.json"
    path.write_text('{"traceEvents":[\n' + ",\n".join(one % (i + 1, i + 1, i) for i in range(60_000)) + "\n]}")
    began = os.times().children_user
    subprocess.run([MERGE, "--wait", "0", "-o", tmp_path / "all.pftrace", path], check=True, capture_output=True, timeout=120)
    assert os.times().children_user - began < 3


def test_more_processes_than_are_known(tmp_path):
    one = '{"ph":"X","name":"n","pid":%d,"tid":1,"ts":%d,"dur":1}'
    path = tmp_path / "more.json"
    path.write_text('{"traceEvents":[\n' + ",\n".join(one % (i + 1, i) for i in range(65_546)) + "\n]}")
    done = subprocess.run([MERGE, "--wait", "0", "-o", tmp_path / "all.json", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "10 events" in done.stderr and "more than 65536 processes" in done.stderr
