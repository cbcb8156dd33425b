"""Files of Perfetto's packets that nobody sane has written: the tools end in time, with one line for each fault."""

import collections
import random
import resource
import struct
import subprocess

import pytest

from conftest import BUILD, check_trace, open_trace
from xstrace import TraceError, pftrace, summarize

MEMORY = 2 << 30
NUMBER, DOUBLE, BYTES = 0, 1, 2


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3 | NUMBER) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | DOUBLE) + struct.pack("<d", value)
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def packet(*fields, sequence=1):
    return field(1, field(10, sequence) + b"".join(fields))


def begin(time, *more, name=b"task"):
    return packet(field(8, time), field(11, field(9, 1) + field(23, name) + b"".join(more)))


def end(time):
    return packet(field(8, time), field(11, field(9, 2)))


def argument(value, *, nested=0, kind=11):
    data = field(10, b"key") + value
    for _ in range(nested):
        data = field(10, b"key") + field(kind, data)
    return field(4, data)


HEAD = (
    packet(field(60, field(1, 7) + field(3, field(1, 5) + field(6, b"program"))))
    + packet(field(60, field(1, 8) + field(4, field(1, 5) + field(2, 6) + field(5, b"thread"))))
    + packet(field(59, field(11, field(11, 8))))
)
LAST = begin(100, name=b"the last one") + end(200)
# what may be wrong with an event, its arguments, its track: all other events are read
FAULTS = {
    "nested": begin(1, argument(field(4, 1), nested=20_000)) + end(2),
    "nested lists": begin(1, argument(field(4, 1), nested=20_000, kind=12)) + end(2),
    "a name that is a number": packet(field(8, 1), field(11, field(9, 1) + field(23, 5))) + end(2),
    "a text that is a number": begin(1, argument(field(6, 5))) + end(2),
    "a time that is a text": packet(field(8, b"1"), field(58, 6), field(11, field(9, 1) + field(23, b"task"))) + end(2),
    "a process that is a text": packet(field(60, field(1, 9) + field(3, field(1, b"5")))),
    "an arrow's phase": packet(field(8, 1), field(11, field(6, field(2, 1 << 60)))),
    "a value of a thread": packet(field(8, 1), field(11, field(9, 4) + field(44, 1.0))),
    "no such text": packet(field(8, 1), field(11, field(9, 1) + field(10, 77))) + end(2),
    "a message cut": packet(field(8, 1), field(11, b"\x48")),
}
# what is of another kind than xstrace writes, but no fault of the file's form
WORDS = {
    "a device's time": begin(1, field(22, b"gpu_op"), field(4, field(10, b"submit") + field(5, float("inf")))) + end(2),
    "the end is a number": packet(
        field(8, 1), field(11, field(9, 3) + field(23, b"xstrace::end") + field(4, field(10, b"otherData") + field(4, 5)))
    ),
    "metadata is a number": packet(
        field(8, 1), field(11, field(9, 3) + field(23, b"xstrace::trace") + field(4, field(10, b"metadata") + field(4, 5)))
    )
    + packet(field(8, 1), field(11, field(9, 3) + field(23, b"xstrace::process"))),
}


@pytest.fixture
def tools(tmp_path):
    """Runs both tools on a file of these bytes; returns what xstrace-check says."""

    def run(data, size=None, timeout=60):
        path = tmp_path / "hostile.pftrace"
        with open(path, "wb") as file:
            file.write(data)
            if size:
                file.truncate(size)
        said = []
        for tool in ("xstrace-check", "xstrace-summary"):
            ended = subprocess.run(
                [BUILD.parent / "scripts" / tool, path],
                capture_output=True,
                text=True,
                timeout=timeout,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )
            assert ended.returncode in (0, 1, 2) and "Traceback" not in ended.stderr, ended.stderr
            said.append(ended.stdout + ended.stderr)
        return said[0]

    return run


def test_what_is_whole_is_read(tools):
    assert "4 events, ok" in tools(HEAD + begin(1, argument(field(4, 1), nested=200)) + end(2) + LAST)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_costs_one_event(tools, what):
    said = tools(HEAD + FAULTS[what] + LAST)
    assert "not valid packets" in said and "no len" not in said and "3 events, 1 problem" in said


@pytest.mark.parametrize("what", WORDS)
def test_words_of_another_kind(tools, what):
    assert tools(HEAD + WORDS[what] + LAST).endswith((" events, ok\n", " events, 1 problem\n"))


def test_a_packet_without_end(tools):
    """Bytes are copied once, however long a packet says that it is; what is too long is none."""
    assert "3 events" in tools(HEAD + LAST + b"\n" + varint((1 << 26) - 1), size=1 << 26)
    assert "no packet" in tools(HEAD + LAST + b"\n" + varint(1 << 28), size=1 << 32)


@pytest.mark.parametrize("what", ["sequences", "begins", "texts", "tracks"])
def test_what_is_remembered_has_a_bound(what, tmp_path, monkeypatch):
    """Each costs the reader more than the file: small files must not take all memory."""
    assert pftrace.MOST * 150 < MEMORY
    monkeypatch.setattr(pftrace, "MOST", 1000)
    many = {
        "sequences": b"".join(packet(sequence=n) for n in range(2, 300)),
        "begins": b"".join(begin(n) for n in range(300)),
        "texts": b"".join(packet(field(12, field(2, field(1, n) + field(2, b"name")))) for n in range(1, 2000)),
        "tracks": b"".join(packet(field(60, field(1, n) + field(3, field(1, n)))) for n in range(9, 2000)),
    }[what]
    path = tmp_path / "hostile.pftrace"
    path.write_bytes(HEAD + many)
    with open_trace(path) as trace:
        collections.deque(trace, maxlen=0)
    assert any("remembered" in damage.detail for damage in trace.damage)


def test_changed_at_random(xstrace, tmp_path):
    run = xstrace("--format perfetto --chrome-itt-logging --chrome-call-logging --chrome-kernel-logging", "gemm")
    whole = run.trace_files[0].read_bytes()[:20_000]
    path = tmp_path / "changed.pftrace"
    chance = random.Random(1)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 2, 5, 30))):
            at = chance.randrange(len(data))
            how = chance.randrange(4)
            if how == 0:
                data[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
            elif how == 1:
                del data[at : at + chance.randrange(1, 20)]
            elif how == 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 20))
            else:  # another kind of the same field
                data[at] ^= chance.randrange(1, 8)
        path.write_bytes(data)
        for tool in (check_trace, summarize):
            try:
                tool(path)
            except TraceError:
                pass
