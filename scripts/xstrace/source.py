"""The bytes of a trace, whatever they are wrapped in: plain, gzip, or concatenated zstd frames.

The kind is taken from the first bytes, not from the name. A file that was cut gives all that can
be decompressed in front of the cut and then says so in `cut`; it raises nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import zlib

try:
    import zstandard
except ImportError:
    zstandard = None

CHUNK = 128 * 1024
PIECE = 8 * 1024  # of compressed data; damage costs at most so much of what is in front of it
ZSTD_MAGICS = [b"\x28\xb5\x2f\xfd"] + [bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16)]
GZIP_MAGIC = b"\x1f\x8b"


class TraceError(Exception):
    """The input cannot be used at all; str() is one line that says why."""


class Source:
    """Chunks of decompressed bytes.

    path: a file name. Raises OSError when it cannot be opened or read, and TraceError when it is
    zstd and there is neither the zstandard module nor the zstd command.
    cut: the compressed data ends in the middle of a frame (known when read() has given b"").
    error: what is wrong with damaged compressed data, else None.
    """

    def __init__(self, path):
        self.cut = False
        self.error = None
        self._file = open(path, "rb")
        try:
            head = self._file.read(PIECE)
            self._chunks = self._choose(path, head)
        except BaseException:
            self._file.close()
            raise

    def read(self):
        """The next bytes; b"" at the end."""
        for chunk in self._chunks:
            if chunk:
                return chunk
        return b""

    def close(self):
        """Lets go of the file (and ends the zstd command where that is used)."""
        self._chunks.close()
        self._file.close()

    def _choose(self, path, head):
        if any(magic.startswith(head[:4]) for magic in ZSTD_MAGICS) and head:
            if zstandard:
                return self._members(head, _zstd_member)
            if shutil.which("zstd"):
                return self._zstd_command(path)
            raise TraceError("reading .zst needs the Python module zstandard or the command zstd")
        if head and GZIP_MAGIC.startswith(head[:2]):
            return self._members(head, _gzip_member)
        return self._plain(head)

    def _plain(self, head):
        while head:
            yield head
            head = self._file.read(CHUNK)

    def _members(self, data, new_member):
        """Concatenated frames or members, each with a decompressor of its own."""
        member = None
        while data:
            member = member or new_member()
            try:
                out = member.decompress(data)
            except Exception as error:  # zlib.error, ZstdError: the data are what they are
                self.error = " ".join(str(error).split())
                return
            yield out
            data = b""
            if member.eof:
                data = member.unused_data
                member = None
            data = data or self._file.read(PIECE)
        self.cut = member is not None

    def _zstd_command(self, path):
        pipe = subprocess.PIPE
        with (
            open(path, "rb") as stdin,
            subprocess.Popen(
                ["zstd", "-dcq", "--long=31"], stdin=stdin, stdout=pipe, stderr=pipe
            ) as process,
        ):
            try:
                while True:
                    chunk = process.stdout.read(CHUNK)
                    if not chunk:
                        break
                    yield chunk
                message = process.stderr.read().decode("utf-8", "replace").lower()
                process.wait()
            finally:
                process.kill()  # nothing, when it has ended
        if process.returncode > 0:
            if "corrupt" in message or "checksum" in message:
                self.error = " ".join(message.split())
            else:
                self.cut = True


def _zstd_member():
    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


def _gzip_member():
    return zlib.decompressobj(wbits=31)
