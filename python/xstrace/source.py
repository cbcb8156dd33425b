"""The bytes of a trace, whatever they are wrapped in: plain, gzip, or concatenated zstd frames.

The kind is taken from the first bytes, not from the name. A file that was cut gives all that can
be decompressed in front of the cut and then says so in `cut`; it raises nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zlib

from .running import opened

try:
    import zstandard
except ImportError:
    zstandard = None

CHUNK = 128 * 1024
PIECE = 8 * 1024  # of compressed data; damage costs at most so much of what is in front of it
FAR_NS = 1 << 61  # no time lies as far from 0, nor is anything as long; so xstrace-tables has it
WORTH_A_BAR = 64 << 20  # bytes of a file
is_shown = False  # a command sets it, for its own process; a program that uses the package sees no bars
ZSTD_WINDOW = 8 << 20  # bytes that a file may make its reader keep: as RFC 8878 asks of readers, xstrace's own need 1 MiB
ZSTD_WINDOWS = (1 << 10, 1 << 31)  # what zstd knows
ZSTD_MAGICS = [b"\x28\xb5\x2f\xfd"] + [bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16)]
GZIP_MAGIC = b"\x1f\x8b"


class TraceError(Exception):
    """The input cannot be used at all; str() is one line that says why."""


class OpenTrace:
    """What traces of all formats have: `header` says it, and `_source` is the file.

    unfit: int, events that nothing can be made of, as events_of() has counted them.
    """

    unfit = 0

    @property
    def metadata(self):
        value = self.header.get("metadata")
        return value if isinstance(value, dict) else {}

    @property
    def base_ns(self):
        return None if self.has_odd_base else self.header.get("baseTimeNanoseconds")

    @property
    def has_odd_base(self):
        """It says when its times begin, but so that nobody can use it: they count as if it did not."""
        value = self.header.get("baseTimeNanoseconds")
        return value is not None and (type(value) is not int or not 0 <= value < FAR_NS)

    @property
    def ours(self):
        return self.metadata.get("tool") in ("xstrace", "xstrace-merge")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """Lets go of the file."""
        self._source.close()


class Source:
    """Chunks of decompressed bytes.

    path: a file name; a pipe will do. Raises OSError when it cannot be opened or read, and TraceError
    when it is zstd and there is neither the zstandard module nor the zstd command.
    window: bytes that a zstd frame may make its reader keep; one that wants more is damage.
    cut: the compressed data ends in the middle of a frame (known when read() has given b"").
    error: what is wrong with damaged compressed data, else None.
    """

    def __init__(self, path, window=ZSTD_WINDOW):
        self.cut = False
        self.error = None
        self._bar = None
        self._window = window
        self._first = b""
        self._file = opened(path, "rb")
        try:
            self._bar = _bar_of(path, os.fstat(self._file.fileno()))
            head = self._file.read(PIECE)
            self._chunks = self._choose(head)
        except BaseException:
            self._file.close()
            raise

    def peek(self):
        """The first bytes, which read() gives too; b"" where there are none. Before the first read()."""
        self._first = self.read()
        return self._first

    def read(self):
        """The next bytes; b"" at the end."""
        first, self._first = self._first, b""
        if first:
            return first
        for chunk in self._chunks:
            if self._bar:
                self._bar.update(self._file.tell() - self._bar.n)
            if chunk:
                return chunk
        return b""

    def close(self):
        """Lets go of the file (and ends the zstd command where that is used)."""
        if self._bar:
            self._bar.update(self._file.tell() - self._bar.n)
            self._bar.close()
            self._bar = None
        self._chunks.close()
        self._file.close()

    def _choose(self, head):
        if any(magic.startswith(head[:4]) for magic in ZSTD_MAGICS) and head:
            if zstandard:
                return self._members(self._blocks(head), self._zstd_member)
            if shutil.which("zstd"):
                return self._zstd_command(head)
            raise TraceError("reading .zst needs the Python module zstandard or the command zstd")
        if head and GZIP_MAGIC.startswith(head[:2]):
            return self._members(self._plain(head, PIECE), _GzipMember)
        return self._plain(head, CHUNK)

    def _plain(self, head, size):
        while head:
            yield head
            head = self._file.read(size)

    def _members(self, pieces, new_member):
        """Concatenated frames or members, each with a decompressor of its own."""
        member = None
        for data in pieces:
            while data:
                member = member or new_member()
                try:
                    yield member.decompress(data)
                except Exception as error:  # zlib.error, ZstdError: the data are what they are
                    self.error = self._why(str(error))
                    return
                data = member.unused_data
                if member.eof:
                    member = None
        self.cut = member is not None

    def _blocks(self, data):
        """The compressed data, in pieces of one zstd block each: none of them becomes more than 128 KiB of text."""

        def take(size):
            nonlocal data
            parts = [data]
            missing = size - len(data)
            while missing > 0 and (part := self._file.read(max(PIECE, missing))):
                parts.append(part)
                missing -= len(part)
            data = b"".join(parts)
            piece, data = data[:size], data[size:]
            return piece

        while head := take(5):
            if head[:4] != ZSTD_MAGICS[0] or len(head) < 5:
                head += take(3)
                yield head  # where this is no frame either, the decoder says so
                left = int.from_bytes(head[4:8], "little")  # whatever the file says
                while left and (piece := take(min(left, CHUNK))):
                    left -= len(piece)
                    yield piece
                continue
            flags = head[4]
            single = flags >> 5 & 1
            yield head + take((not single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6])
            last = False
            while not last and (head := take(3)):
                header = int.from_bytes(head, "little")
                last = header & 1
                yield head + take(1 if header >> 1 & 3 == 1 else header >> 3)
            if flags >> 2 & 1:
                yield take(4)

    def _zstd_member(self):
        return zstandard.ZstdDecompressor(max_window_size=self._window).decompressobj()

    def _why(self, message):
        """One line of what a decoder says."""
        if "too much memory" in message or "Window size larger" in message:
            return f"needs a zstd window of more than {self._window} bytes: --zstd-window allows it"
        return " ".join(message.split())

    def _zstd_command(self, head):
        pipe = subprocess.PIPE
        command = ["zstd", "-dcq", f"--memory={self._window}"]
        with (
            self._from_its_beginning(head) as stdin,
            subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe) as process,
        ):
            try:
                while True:
                    chunk = process.stdout.read(CHUNK)
                    if not chunk:
                        break
                    yield chunk
                message = process.stderr.read().decode("utf-8", "replace")
                process.wait()
            finally:
                process.kill()  # nothing, when it has ended
        if process.returncode:
            if re.search("premature end|unknown header", message):  # within a frame, or its first 4 bytes
                self.cut = True
            else:
                self.error = self._why(message) or f"zstd has ended with {process.returncode}"

    def _from_its_beginning(self, head):
        """The file for another process to read all of; of a pipe `head` is gone, so that it gets a copy."""
        if self._file.seekable():
            file = os.fdopen(os.dup(self._file.fileno()), "rb")
        else:
            file = tempfile.TemporaryFile()
            file.write(head)
            shutil.copyfileobj(self._file, file)
            file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return file


def _bar_of(path, status):
    """A progress bar (tqdm's), where a command reads a large file and somebody looks; else None."""
    if not is_shown or not stat.S_ISREG(status.st_mode) or status.st_size < WORTH_A_BAR or not sys.stderr or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=status.st_size, unit="B", unit_scale=True, leave=False, desc=_shown(path))


def _shown(path):
    name = os.path.basename(os.fsdecode(path))
    return name if name.isprintable() and len(name) < 64 else "trace"


class _GzipMember:
    """Decompresses one gzip member, a part at a time: what has no room waits in unused_data."""

    def __init__(self):
        self._inflate = zlib.decompressobj(wbits=31)

    def decompress(self, data):
        out = self._inflate.decompress(data, CHUNK)
        self.eof = self._inflate.eof
        self.unused_data = self._inflate.unused_data if self.eof else self._inflate.unconsumed_tail
        return out
