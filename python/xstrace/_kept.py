"""The file of a trace that the program exports: its own copy, from which all others are made."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

PIECE = 1 << 20


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class Kept:
    """A trace's file by its descriptor: what the program or another profile does to the exported ones is nothing to it.

    Args:
        trace: a _native.Trace.

    Raises:
        OSError: the file is not there any more, or cannot be opened.
    """

    _fd = -1

    def __init__(self, trace: Any):
        self._fd = os.open(trace.path(), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._identity = _identity(self._fd)
        self._trace: Any = trace

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        with contextlib.suppress(Exception):
            if self._is_there():
                close(self._fd)

    def _is_there(self) -> bool:
        """A program that closes all descriptors, as a daemon does, may have others of that number."""
        try:
            return self._fd >= 0 and _identity(self._fd) == self._identity
        except OSError:
            return False

    def _pieces(self) -> Iterator[bytes]:
        at = 0
        while piece := os.pread(self._fd, PIECE, at):
            yield piece
            at += len(piece)

    def _take(self) -> None:
        """Once it is exported nobody else needs the file's name: what ends the program leaves nothing behind."""
        trace, self._trace = self._trace, None
        if trace is None:
            return
        path = trace.path()
        if self._was_replaced(path):
            trace.save(path)  # by what the program has exported to that very place, which stays
        elif not trace.save(f"{path}.exported")[0]:
            with contextlib.suppress(OSError):
                os.unlink(f"{path}.exported")

    def _was_replaced(self, path: str) -> bool:
        try:
            status = os.lstat(path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) != self._identity

    def export(self, path: str) -> None:
        """Writes it; compressed where the name ends in ".gz".

        Raises:
            OSError: the file cannot be written.
        """
        try:
            if not self._is_there():
                raise OSError(errno.EBADF, "the program has closed the trace's descriptor")
            with _complete(path) as out:
                if path.endswith(".gz"):
                    with gzip.GzipFile(os.path.basename(path), "wb", fileobj=out) as packed:
                        packed.writelines(self._pieces())
                else:
                    out.writelines(self._pieces())
        except OSError as error:
            said = OSError(f"xstrace: {path}: {error.strerror or error}")
            said.errno = error.errno
            raise said from None
        self._take()


@contextlib.contextmanager
def _complete(path: str) -> Iterator[BinaryIO]:
    """A file that has its name when it is complete: what fails leaves nothing, and what lay there stays.

    It is running.written() for the inside of a program, whose umask is not ours to change. A link stays one.
    """
    with contextlib.suppress(FileNotFoundError):  # a link that the kernel would not follow is an error here, too
        if not stat.S_ISREG(os.stat(path).st_mode):  # a device, a pipe
            with open(path, "wb") as out:
                yield out
            return
    path = os.path.realpath(path)
    made = os.path.join(os.path.dirname(path), f".xstrace-{os.getpid()}-{os.urandom(4).hex()}")
    fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb") as out:
            yield out
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise
