"""From traces to tables: finds traces, converts each with xstrace-tables, and keeps the result where it is found again.

A trace's tables lie in `TRACE.tables/<key>/`, or below the user's cache directory where nobody can write beside the
trace, or anybody could. The key is made of the trace's size, time and number, so that a changed trace has other tables.
Nothing is read that somebody else could have put there.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from . import places
from .cli import printable
from .places import TABLES
from .running import program
from .source import ZSTD_WINDOW, TraceError
from .temporary import Directory

FORMAT = 2  # of the tables: other ones are made when it changes
ENDINGS = (".json", ".json.zst", ".json.gz", ".pftrace", ".pftrace.zst", ".pftrace.gz")
NAMES = tuple("*" + ending for ending in ENDINGS)
FAILED = 125
MOST_STATUS = 4096  # bytes of what is kept beside tables: the status, and how long each is
LEAST_MEMORY = 32 << 20
MOST_SAID = 64 << 10  # characters of what was said of a trace


class NoTables(TraceError):
    """There are no tables of this trace; the text is one line that says why."""


_preferred = None
_running = set()  # of Popen: when the command is ended, they are


def prefer(path):
    """Takes xstrace-tables from this path, where it is there."""
    global _preferred
    _preferred = path if path and os.access(path, os.X_OK) else None


def find_converter():
    """The path of xstrace-tables. Raises NoTables where there is none."""
    if _preferred:
        return _preferred
    path = program("xstrace-tables", ("bin", "build/tables"))
    if path is None:
        raise NoTables("xstrace-tables was not found: build it (ninja -C build), or put it into PATH")
    return path


def find_traces(paths):
    """The traces that are meant, as (path, was it named): files, directories and what is below them, patterns.

    paths: a str or path, or several of them. Raises NoTables where one means nothing, or where a pipe is among what is met.
    """
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = {}
    for path in map(os.fspath, paths):
        if os.path.isdir(path):
            below = places.below(path, NAMES)
            if not below:
                raise NoTables(f"{printable(path)}: no traces ({', '.join(ENDINGS[:4])}) in this directory")
            for one in below:
                found.setdefault(one, False)
        elif os.path.exists(path) or not glob.has_magic(path):
            found[path] = True
        else:
            matches = [one for one in places.matching(path) if not os.path.isdir(one)]
            if not matches:
                raise NoTables(f"{printable(path)}: no file has such a name")
            for one in matches:
                found.setdefault(one, False)
    if not found:
        raise NoTables("no traces given")
    for path in (path for path, named in found.items() if not named and _waits(path)):
        raise NoTables(f"{printable(path)}: a pipe or a socket; nobody may ever write there: name it, or what is to be read beside it")
    once = {}
    for path, named in found.items():
        once.setdefault(places.identity(path), (path, named))
    return list(once.values())


def _waits(path):
    try:
        kind = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)


class Conversion:
    """Tables of one trace, in `directory`, which stays as it is until close().

    Attributes: path; directory; status: 0, or 1 where something of the trace is in no table; said: list of str, what
    xstrace-tables had to say when it made them, now or before: a line at least where the status is 1.
    """

    def __init__(self, path, directory, status=0, said=(), lock=None, temporary=None):
        self.path = path
        self.directory = directory
        self.status = status
        self.said = list(said)
        self._lock = lock
        self._temporary = temporary

    def close(self):
        """Lets go of the tables; those that are not kept are removed."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self._temporary:
            self._temporary.cleanup()
            self._temporary = None


def convert_all(found, cache=True, memory_limit=512 << 20, zstd_window=ZSTD_WINDOW):
    """Yields, in their order, (path, Conversion or None, NoTables or None) for the traces that find_traces() gave."""
    workers = max(1, min(len(found), os.cpu_count() or 1))
    memory = max(LEAST_MEMORY, memory_limit // workers)
    threads = 1 if workers > 1 else None

    def one(path):
        try:
            return path, convert(path, cache, memory, zstd_window, threads), None
        except NoTables as error:
            return path, None, error

    if workers == 1:
        yield from map(one, (path for path, _ in found))
        return
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from pool.map(one, (path for path, _ in found))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in list(_running):
                child.kill()
            raise


def convert(path, cache=True, memory_limit=512 << 20, zstd_window=ZSTD_WINDOW, threads=None):
    """The Conversion of a trace: tables that are there already, or new ones.

    cache: False: the tables are new ones, and gone after close(). memory_limit, zstd_window: bytes. threads: that encode.
    Raises NoTables, with one line that says why.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise NoTables(f"{printable(path)}: {getattr(error, 'strerror', None) or error}") from None
    if cache and stat.S_ISREG(status.st_mode):
        for place in _places(path):
            with contextlib.suppress(OSError):
                return _cached(path, status, place, memory_limit, zstd_window, threads)
    temporary = Directory("xstrace-tables.")
    try:
        directory = os.path.join(temporary.name, "tables")
        code, said = _run(path, directory, memory_limit, zstd_window, threads)
    except BaseException:
        temporary.cleanup()
        raise
    return Conversion(path, directory, code, said, temporary=temporary)


def _places(path):
    """Where tables can lie. DuckDB knows names in UTF-8 alone."""
    real = os.path.realpath(path)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    kept = [real + TABLES]
    if os.path.isabs(cache):
        kept.append(os.path.join(cache, "xstrace", hashlib.sha256(os.fsencode(real)).hexdigest()[:32] + TABLES))
    return [place for place in kept if _is_utf8(place)]


def _is_utf8(path):
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def _is_safe(status):
    """Nobody but us and root can put another thing in the place of what we made there."""
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    return status.st_uid in (0, os.geteuid()) and not others


def _own_directory(path):
    """Makes the directory if need be. Raises OSError where it is not ours alone, or others could put another one in its place."""
    parent = os.path.dirname(path)
    os.makedirs(parent, 0o700, exist_ok=True)
    if not _is_safe(os.stat(parent)):
        raise PermissionError(f"{parent} is open to others")
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{path} is not ours")


def _key(status):
    told = (FORMAT, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:24]


def _cached(path, status, place, memory_limit, zstd_window, threads):
    """Raises OSError where this place cannot be used."""
    _own_directory(place)
    key = _key(status)
    directory = os.path.join(place, key)
    found = _taken(path, directory)
    if found:
        return found
    with _locked(os.path.join(place, "lock")):
        found = _taken(path, directory)  # somebody else has made it meanwhile
        if found:
            return found
        _remove_others(place)
        unfinished = tempfile.mkdtemp(prefix="new.", dir=place)
        try:
            code, said = _run(path, unfinished, memory_limit, zstd_window, threads)
            _keep_said(unfinished, path, said)
            with open(os.path.join(unfinished, "status"), "x") as file:
                file.write(f"{code}\n{_sizes(unfinished)}")
            # of a trace that was written meanwhile they are those of no state of it
            if _key(os.stat(path)) == key:
                os.rename(unfinished, directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            _remove_empty(place)
    found = _taken(path, directory)
    if not found:
        raise OSError("changed while it was read")
    return found


def _sizes(directory):
    """Of the tables, a line each."""
    names = sorted(name for name in os.listdir(directory) if name.endswith(".parquet"))
    return "".join(f"{name} {os.stat(os.path.join(directory, name)).st_size}\n" for name in names)


def _keep_said(directory, path, said):
    """Beside the tables, for who finds them there; behind a tab where the trace's name stood, which may be another one then."""
    name = f"{printable(path)}: "
    lines = ["\t" + line.removeprefix(name) if line.startswith(name) else line for line in said]
    with open(os.path.join(directory, "said"), "x", encoding="utf-8", errors="replace") as file:
        file.write("".join(line + "\n" for line in lines))


def _kept_said(directory, path, code):
    """What _keep_said() has kept; earlier versions kept nothing."""
    lines = []
    with contextlib.suppress(OSError), open(os.path.join(directory, "said"), encoding="utf-8", errors="replace") as file:
        lines = file.read(MOST_SAID).splitlines()
    if code and not lines:
        lines = ["\tnot all of it could be read"]
    return [f"{printable(path)}: {line[1:]}" if line.startswith("\t") else line for line in lines]


def _taken(path, directory):
    """The Conversion that lies there; None: there is none, or not all of it. It is ours by the directory above."""
    try:
        lock = os.open(os.path.join(directory, "status"), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # as long as it is used
        code, _, sizes = os.read(lock, MOST_STATUS).decode().partition("\n")
        if sizes != _sizes(directory):
            raise ValueError("a table was removed or cut")
        code = int(code)
    except (OSError, ValueError):
        os.close(lock)
        return None
    return Conversion(path, directory, code, _kept_said(directory, path, code), lock)


@contextlib.contextmanager
def _locked(path):
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _remove_others(place):
    """Tables of former states of the trace that nobody uses, and what was never finished. The caller has the lock."""
    for name in os.listdir(place):
        directory = os.path.join(place, name)
        if name == "lock":
            continue
        try:
            lock = os.open(os.path.join(directory, "status"), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            continue
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _remove_empty(place):
    """The directory, where no tables came to lie: of a file that is no trace. The caller has the lock; who waits for it finds another place."""
    with contextlib.suppress(OSError):
        if os.listdir(place) == ["lock"]:
            os.unlink(os.path.join(place, "lock"))
            os.rmdir(place)


def _descriptor(path):
    """The number of our own descriptor that the path means, as of <(...): a child has it where it is given; None: it means another thing."""
    match = re.fullmatch(r"/dev/(?:fd/(\d{1,9})|stdin)|/proc/(?:self|thread-self)/fd/(\d{1,9})", path, re.ASCII)
    return int(match[1] or match[2] or 0) if match else None


def _run(path, directory, memory_limit, zstd_window, threads):
    """Runs xstrace-tables: its exit status (0 or 1) and what it said. Raises NoTables."""
    command = [find_converter(), "--memory-limit", str(max(LEAST_MEMORY, memory_limit)), "--zstd-window", str(zstd_window)]
    if threads:
        command += ["--threads", str(threads)]
    shown = []
    own = _descriptor(path)
    if sys.stderr and sys.stderr.isatty():
        shown = [os.dup(sys.stderr.fileno())]
        command += ["--progress", str(shown[0])]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    given = [*shown, own] if own else shown
    try:
        child = subprocess.Popen([*command, "-o", directory, "--", path], stdin=None if own == 0 else nothing, stdout=nothing, stderr=pipe, pass_fds=given)
    except (OSError, ValueError) as error:
        raise NoTables(f"{printable(path)}: {getattr(error, 'strerror', None) or error}") from None
    finally:
        for one in shown:
            os.close(one)
    with child:
        _running.add(child)
        try:
            text = child.communicate()[1]
        except BaseException:
            child.kill()
            raise
        finally:
            _running.discard(child)
    said = [line.removeprefix("xstrace-tables: ") for line in text.decode(errors="replace").splitlines()]
    if child.returncode not in (0, 1):
        ended = f"xstrace-tables ended with status {child.returncode}"
        raise NoTables(said[-1] if said else f"{printable(path)}: {ended}")
    return child.returncode, said
