"""CUDA: arrows from device work to the call that has waited for it."""

import collections
import os
import signal

import pytest
from conftest import XSTRACE, wait_until
from cuda_log import HAVE_SOFTCUDA, SoftCUDA

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")
KERNELS = "--chrome-kernel-logging"
CALLS = {
    "A": "cudaStreamSynchronize",
    "B": "cudaStreamSynchronize",
    "E": "cudaEventSynchronize",
    "D": "cudaDeviceSynchronize",
}


def enclosing(slices, event):
    inner = [s for s in slices if s.start <= event["ts"] < max(s.end, s.start + 1)]
    return min(inner, key=lambda s: s.end - s.start)


def arrows(trace, name="wait"):
    """(device work, call), each a slice, of the arrows that end at waits; of others what they join."""
    by_track = collections.defaultdict(list)
    for one in trace.slices:
        by_track[one.track].append(one)
    flows = collections.defaultdict(dict)
    for e in trace.events:
        if e["ph"] in "sf" and e["name"] == name:
            flows[e["id"]][e["ph"]] = e
    return [
        tuple(enclosing(by_track[flow[end]["pid"], flow[end]["tid"]], flow[end]) for end in "sf")
        for flow in flows.values()
    ]


def waits_for(letters):
    """Which waits (their numbers among all) were for the n-th kernel, by what the program does."""
    found, streams, event, waits = [], ([], []), [], 0
    for letter in letters:
        if letter in "ab":
            streams["ab".index(letter)].append(len(found))
            found.append([])
        elif letter in "ef":
            event = list(streams["ef".index(letter)])
        elif letter in CALLS:
            over = {"A": streams[0], "B": streams[1], "E": event, "D": streams[0] + streams[1]}
            for kernel in over[letter]:
                found[kernel].append(waits)
            waits += 1
    return found


def pairs_of(letters):
    """To each kernel the first."""
    return {kernel: waits[0] for kernel, waits in enumerate(waits_for(letters)) if waits}


SCRIPTS = [
    ["aabA", "B"],
    ["aaeaE", "A"],
    ["aabbD"],
    ["aaebfE", "DA"],
    ["aebEaeE", "B"],
    ["aaewbbB", "A"],
    ["abab", "ABD"],
    ["aaabbbaeEfabD" * 20],
    ["ab" * 30 + "eE", "AB"],
]


@pytest.mark.parametrize("version", [18, 130500])
@pytest.mark.parametrize("letters", SCRIPTS, ids=lambda letters: ",".join(letters)[:20])
def test_each_pair(xstrace, tmp_path, letters, version):
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version)
    trace = xstrace(KERNELS, "cuda_waits", letters, env=cuda.env).trace
    kernels = sorted((k for k in trace.device), key=lambda k: k.args["correlation"])
    waits = sorted((c for c in trace.calls if c.name in CALLS.values()), key=lambda c: c.start)
    names = [CALLS[letter] for letter in "".join(letters) if letter in CALLS]
    assert [call.name for call in waits] == names
    found = {
        next(i for i, k in enumerate(kernels) if k is work): next(
            i for i, call in enumerate(waits) if call is end
        )
        for work, end in arrows(trace)
    }
    assert found == pairs_of("".join(letters))


@pytest.mark.parametrize("fault", [{"LATE_MS": 20}, {"OUT_OF_ORDER": 3}, {"CUT_EVERY": 2}], ids=str)
def test_whatever_the_order_of_the_records(xstrace, tmp_path, fault):
    letters = "aaebEabABaafbEDab" * 10 + "D"
    cuda = SoftCUDA(tmp_path, **fault)
    trace = xstrace(KERNELS, "cuda_waits", [letters], env=cuda.env).trace
    kernels = sorted((k.args["correlation"] for k in trace.device))
    waits = sorted((c.start for c in trace.calls if c.name in CALLS.values()))
    found = {
        kernels.index(work.args["correlation"]): waits.index(end.start)
        for work, end in arrows(trace)
    }
    if "OUT_OF_ORDER" not in fault:
        assert found == pairs_of(letters)
        return
    # a wait may be told of long after others: then a later one has the arrow, or none
    waited = waits_for(letters)
    assert len(found) > 0.8 * len(waited)
    assert all(wait in waited[kernel] for kernel, wait in found.items())


def orders_of(letters):
    """(kernel before the event, first kernel behind the wait) of each wait of stream 1 for stream 0's event."""
    found, kernels, last, event, waiting = set(), 0, [None, None], None, []
    for letter in letters:
        if letter in "ab":
            which = "ab".index(letter)
            if which:
                found |= {(before, kernels) for before in waiting}
                waiting = []
            last[which] = kernels
            kernels += 1
        elif letter in "ef":
            event = ("ef".index(letter), last["ef".index(letter)])
        elif letter == "w" and event and event[0] == 0 and event[1] is not None:
            waiting.append(event[1])
    return found


@pytest.mark.parametrize("version", [18, 130500])
@pytest.mark.parametrize("letters", ["aewb", "aaebwbbA", "ewb", "aefwb", "aeaawbb", "aew", "aewwb", "aewb" * 30, "bbaew" + "a" * 40 + "bbb"])
def test_a_stream_that_waits_for_another(xstrace, tmp_path, letters, version):
    """From the last kernel before the event to the first behind the wait, and between no others."""
    cuda = SoftCUDA(tmp_path, 12 if version < 130000 else 13, CUPTI_VERSION=version)
    trace = xstrace(KERNELS, "cuda_waits", [letters + "D"], env=cuda.env).trace
    kernels = sorted(trace.device, key=lambda k: k.args["correlation"])
    found = [tuple(next(i for i, k in enumerate(kernels) if k is end) for end in pair) for pair in arrows(trace, "order")]
    assert set(found) == orders_of(letters)


def test_threads(xstrace, tmp_path):
    """Each thread waits for its own streams: no arrow leads to another's call."""
    cuda = SoftCUDA(tmp_path)
    trace = xstrace(KERNELS, "cuda_streams", ["--threads", 4, "--kernels", 20], env=cuda.env).trace
    calls = {one.start: one for one in trace.calls if one.name == "cudaLaunchKernel"}
    launched = {}
    for e in trace.events:
        if e["ph"] == "s" and e["name"] == "dep" and e["ts"] in calls:
            launched[e["id"] & 0xFFFFFFF] = calls[e["ts"]].track
    found = [pair for pair in arrows(trace) if pair[0].name.startswith("_Z9")]
    assert len(found) == 4 * 2 * 20
    for work, call in found:
        assert call.name == "cudaStreamSynchronize"
        assert call.track == launched[int(work.args["id"])]


# ---- many of them ----


def number(kernel):
    """The n-th kernel that was launched (cuda_chains.c)."""
    return kernel.args["global"][0]


def chains(xstrace, tmp_path, *args):
    run = xstrace(KERNELS, "cuda_chains", args, env=SoftCUDA(tmp_path, SYNC=0).env)
    assert run.status == 0, run.err
    return run.trace


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("streams, times", [(24, 240), (200, 400), (2, 2000)])
def test_streams_in_turns(xstrace, tmp_path, streams, times):
    """However many streams there are, and however far the host runs ahead."""
    trace = chains(xstrace, tmp_path, "turns", streams, times)
    found = sorted((number(before), number(behind)) for before, behind in arrows(trace, "order"))
    assert found == [(2 * i + 1, 2 * i + 2) for i in range(times)]


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("what", [("again", 200, 1), ("again", 200, 2), ("again", 100, 8), ("events", 64), ("events", 800), ("streams", 1000)], ids=str)
def test_each_kernel_has_its_own_wait(xstrace, tmp_path, what):
    """An event that is recorded again before it is waited for; many events; many streams."""
    trace = chains(xstrace, tmp_path, *what)
    names = {"cudaEventSynchronize", "cudaDeviceSynchronize"}
    waits = sorted(call.start for call in trace.calls if call.name in names)
    found = {number(kernel): waits.index(call.start) + 1 for kernel, call in arrows(trace)}
    assert found == {n: n for n in range(1, what[1] + 1)}


def test_a_wait_that_came_before_a_slow_launch_was_done(xstrace, tmp_path):
    """It began after the launch's call and ended before the kernel: it has waited for something else."""
    trace = chains(xstrace, tmp_path, "early")
    waits = sorted((call for call in trace.calls if call.name == "cudaStreamSynchronize"), key=lambda call: call.start)
    ((kernel, call),) = [pair for pair in arrows(trace) if pair[0].name.startswith("empty")]
    assert len(waits) == 2 and waits[0].end < kernel.start
    assert call is waits[1]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("recordings, known", [(60_000, True), (70_000, False)])
def test_what_is_too_far_away_has_no_arrow(xstrace, tmp_path, recordings, known):
    """Beyond the bound of CUDA.md nobody knows who waited first: no arrow leads to whoever waited next."""
    trace = chains(xstrace, tmp_path, "far", recordings)
    found = {number(kernel): call.name for kernel, call in arrows(trace)}
    assert found == ({1: "cudaEventSynchronize"} if known else {}) | {2: "cudaStreamSynchronize"}
    assert len(arrows(trace, "order")) == known


def written(run):
    return sum(path.read_text().count('"gpu_op"') for path in run.cwd.glob("*.json"))


def test_numbers_of_a_part_that_is_recovered(xstrace, tmp_path):
    """Tracks, devices and arrows of what --recover writes are none of those that the file has; counters go on."""
    go = tmp_path / "go"
    run = xstrace.start(KERNELS, "cuda_chains", ["phases", go], env=SoftCUDA(tmp_path, DEVICES=2, SYNC=1).env)
    wait_until(lambda: written(run) == 400)
    directory = run.dir
    os.kill(run.drain, signal.SIGKILL)
    go.touch()
    run.wait(60)
    recovered = xstrace.bare(XSTRACE, ["--recover", directory], cwd=run.cwd)
    assert recovered.status == 0, recovered.err
    run.collect()
    names, devices, tracks = run.trace.names("thread_name"), run.trace.names("process_name"), collections.defaultdict(set)
    for kernel in run.trace.device:
        row = f"{devices[kernel.track[0], kernel.track[0]].rpartition('#')[2]} {names[kernel.track].partition('CUDA')[2]}"
        tracks[number(kernel)].add(row)
    assert len(run.trace.device) == 801 and all(len(rows) == 1 for rows in tracks.values())
    assert len(set().union(*tracks.values())) == len(tracks) == 5
    ends = collections.Counter((e["id"], e["ph"]) for e in run.trace.events if e["ph"] in "sf")
    assert set(ends.values()) == {1}
    orders = collections.Counter((number(at), number(to)) for at, to in arrows(run.trace, "order"))
    # what was held back by the process that was killed is missing
    assert set(orders) == {(1, 2), (2, 3), (3, 4), (4, 3), (3, 2), (2, 1)}
    assert all(orders[at, at - 1] == 100 and 0 < orders[at - 1, at] <= 100 for at in (2, 3, 4))
    used = [e["args"]["value"] for e in run.trace.events if e["ph"] == "C" and e["name"] == "CUDA device memory"]
    assert max(used) == used[-1] == 1001000
