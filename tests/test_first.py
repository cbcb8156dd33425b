"""What the first events cost: memory that the kernel must clear, and wake-ups.

Times differ from machine to machine, and `bench/run --only first_events` measures them. What is counted here does not.
"""

import os
import struct
import subprocess
from pathlib import Path

import pytest

PAGE = 4096
RINGS = 20480  # where they begin in a process's file
NAMES = 4 * 16384  # four options' of kernels' names, in the control file
HEADER = 1  # page of a ring, before its records


class Stopped:
    """itt_first under xstrace: THREADS [PAIRS [NAMES]], stopped before its first event and after its last."""

    def __init__(self, xstrace, options, *words):
        options = ["--chrome-itt-logging", *options]
        self.run = xstrace.start(options, "itt_first", words, stdin=subprocess.PIPE)
        self.run.wait_for_output("ready")

    def work(self):
        self.run.process.stdin.write(b"\n")
        self.run.process.stdin.flush()
        self.run.wait_for_output("done")

    def finish(self):
        self.run.process.stdin.close()
        return self.run.finish()

    def pages(self, kind, start=0):
        """Pages that are present, from `start` on, of the run directory's file whose name begins so."""
        (path,) = Path(self.run.dir).glob(kind + "*")
        count, fd = 0, os.open(path, os.O_RDONLY)
        try:
            while True:
                data = os.lseek(fd, start, os.SEEK_DATA)
                start = os.lseek(fd, data, os.SEEK_HOLE)
                count += (start - data + PAGE - 1) // PAGE
        except OSError:  # no more data
            return count
        finally:
            os.close(fd)

    def ring_pages(self):
        return self.pages("p", RINGS)

    def rung(self):
        """How often the drain process was rung for."""
        return struct.unpack("I", (Path(self.run.dir) / "mailbox").read_bytes()[:4])[0]


@pytest.mark.parametrize("size", ["64K", "1M", "64M", "1G"])
def test_memory_of_the_first_event(xstrace, size):
    """As much with every ring. Names: the first page of the table, one of text."""
    program = Stopped(xstrace, ["--ring-size", size], 1)
    program.work()
    assert (program.ring_pages(), program.pages("strings")) == (HEADER + 1, 2)
    assert program.finish().trace.count("tasks") == 1


@pytest.mark.parametrize("size", ["1M", "64M"])
def test_memory_grows_with_the_events(xstrace, size):
    """1,000 pairs are 32,000 bytes: the pieces double, so there is at most twice that."""
    program = Stopped(xstrace, ["--ring-size", size], 1, 1000)
    program.work()
    assert HEADER + 8 <= program.ring_pages() <= HEADER + 16
    assert program.finish().trace.count("tasks") == 1000


def test_pieces_of_a_large_ring_are_small(xstrace):
    """320,000 bytes of records in a ring whose steps have 8 MiB: a thread never waits for more than 32 KiB at once."""
    program = Stopped(xstrace, ["--ring-size", "64M"], 1, 10000)
    program.work()
    assert HEADER + 78 < program.ring_pages() <= HEADER + 78 + 9
    assert program.finish().trace.count("tasks") == 10000


def test_memory_of_further_threads(xstrace):
    program = Stopped(xstrace, ["--ring-size", "64M"], 8)
    program.work()
    assert program.ring_pages() == 8 * (HEADER + 1)
    assert program.finish().trace.count("tasks") == 8


def test_a_first_event_wakes_nobody(xstrace):
    """A wake-up takes longer than all else, and there is nothing to be read yet."""
    program = Stopped(xstrace, [], 4)
    before = program.rung()
    program.work()
    assert program.rung() == before
    assert program.finish().trace.count("tasks") == 4


def test_names_lie_close_together(xstrace):
    """The table of names has 257 pages. 300 names are in its first pages, and their text lies behind each other; 5,000 in 17."""
    program = Stopped(xstrace, [], 1, 300, 300)
    program.work()
    assert program.pages("strings") <= 4 + 300 * 48 // PAGE
    program.finish()
    program = Stopped(xstrace, [], 1, 5000, 5000)
    program.work()
    assert program.pages("strings") <= 18 + 5000 * 48 // PAGE
    program.finish()


def test_options_that_nobody_has_given(xstrace):
    """The names of kernels may have 64 KiB, and the launcher, which each program waits for, does not clear them."""
    program = Stopped(xstrace, [], 1)
    (control,) = Path(program.run.dir).glob("control*")
    assert program.pages("control") * PAGE <= control.stat().st_size - NAMES + PAGE
    program.work()
    program.finish()
    program = Stopped(xstrace, ["-d", "--include-kernels", "a"], 1)
    assert program.pages("control") > 20
    program.work()
    program.finish()
