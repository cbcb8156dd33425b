"""How a command runs and ends, whatever it meets, and how it opens what others made and writes what is its own.

    @command("xstrace-check")
    def main(argv=None):                          # the exit status
        with written(options.output) as file:
            ...

Rules: a signal or a reader that has gone ends the command as it would end any program, but not before `with` and `finally` have
put away what is temporary. No exception leaves a command: what nobody foresaw is one line. A file of the user's is replaced by a
whole one or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import select
import shutil
import signal
import stat
import sys
import threading
import time
import warnings

from . import temporary

LEVELS = 4  # from <environment>/lib/python3.11/site-packages/xstrace up to the environment
UNFINISHED = ".xstrace-"  # how files begin that are still being written
# what other exceptions say then; the last two are CPython's SystemError: a library's C code had no memory for the exception
NO_MEMORY = (
    "start new thread",
    "failed to map segment",
    "Cannot allocate memory",
    "without exception set",
    "without setting an exception",
)
PATIENCE_S = 2  # for what is put away; a further signal then ends all
LONGEST_S = 5  # the same where there is no further one
AGAIN_S = 0.005
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_loading = []  # a list for each library that is being loaded: the signals that wait until it is there


class Ended(KeyboardInterrupt):
    """A signal is to end the command. number: of the signal."""

    def __init__(self, number):
        super().__init__()
        self.number = number


def command(name, failed=2):
    """Decorates main(argv=None), which gives the exit status. failed: the status where something went wrong that main() does not tell.

    Called without arguments it is a process of its own: then streams and signals are seen to. Else exceptions alone are.
    """

    def decorate(main):
        @functools.wraps(main)
        def run(argv=None):
            if argv is not None:
                return _guarded(name, failed, main, argv)
            from . import source

            source.is_shown = True  # bars, where much is read
            _open_streams()
            warnings.showwarning = lambda message, *_: _say(name, message)  # of libraries: may hold what a file says
            with ended_by_signals() as ended:
                return _flushed(name, failed, _guarded(name, failed, _whole(main), None, ended))

        return run

    return decorate


def _whole(main):
    """main(), which also gives a status where it leaves by sys.exit(), as argparse does: then what it has printed is not written yet."""

    def run(argv):
        try:
            return main(argv)
        except SystemExit as left:
            return left.code or 0

    return run


def _guarded(name, failed, main, argv, ended=()):
    """main()'s status. ended: not empty once a signal is to end the command."""
    try:
        return main(argv)
    except BrokenPipeError:
        raise Ended(signal.SIGPIPE) from None
    except OSError as error:
        text = f"{error.filename or 'cannot read or write'}: {error.strerror or error}"
    except Exception as error:
        if ended:  # DuckDB makes an exception of its own of ours
            raise Ended(ended[0]) from None
        if is_lack_of_memory(error):
            _say(name, "out of memory (or a limit forbids more threads)")
            return failed
        frame = error.__traceback__
        while frame.tb_next:
            frame = frame.tb_next
        place = f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
        text = f"a fault of this program: {type(error).__name__}: {error} ({place})"
    _say(name, text)
    return failed


def is_lack_of_memory(error):
    """Whether the exception, or one that it came from, says so: Python's, of a thread or library that cannot be had, DuckDB's."""
    while error is not None:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException" or any(why in str(error) for why in NO_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _flushed(name, failed, status):
    """The status, when all of the output has been written."""
    try:
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        raise Ended(signal.SIGPIPE) from None
    except OSError as error:
        if status != failed:  # else that has been said: what was left of it is still in the buffer
            _say(name, f"cannot write: {error.strerror}")
        discard_output()
        return failed


def _say(name, text):
    from .cli import said

    with contextlib.suppress(OSError):
        print(f"{name}: {said(text)}", file=sys.stderr, flush=True)


def discard_output():
    """What is left in the buffers of stdout and stderr goes nowhere, and is no error when Python ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Patient(io.FileIO):
    """A stream that others with the same terminal or pipe have made non-blocking: waits for room as if they had not."""

    def write(self, data):
        while (count := super().write(data)) is None:
            select.select((), (self,), ())
        return count


def _open_streams():
    """Closed standard streams lead nowhere, so that no file gets their descriptors; the others take any text, and all of it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDWR)  # the least free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))
        stream = getattr(sys, name)
        if number and not os.get_blocking(number):
            buffer = io.BufferedWriter(_Patient(number, "w", closefd=False))
            stream = io.TextIOWrapper(buffer, stream.encoding, line_buffering=stream.line_buffering)
            setattr(sys, name, stream)
        if number:
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def ended_by_signals():
    """Within it the signals that end a program let `with` and `finally` do what they must first. Those that are ignored stay so.

    Gives a list, which is not empty once there was such a signal: its number, and when.
    """
    ended = []
    is_over = False
    owner = os.getpid()

    def end(number, _):
        if is_over or os.getpid() != owner:  # a child that a fork has made, which has not begun yet
            _die(number)
        if not ended:
            ended.extend((number, time.monotonic()))
            signal.signal(signal.SIGALRM, end_again)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
            if not _loading:
                raise Ended(number)
            _loading[-1].append(number)
            return
        if time.monotonic() - ended[1] > PATIENCE_S:
            temporary.remove_all()
            os._exit(128 + number)

    def end_again(_, __):
        """Where the exception was lost: what Python calls around a fork, or when it frees something, raises none."""
        raised = sys.exc_info()[1]
        while raised and not isinstance(raised, Ended):
            raised = raised.__context__
        if not (raised or is_over or _loading) and os.getpid() == owner:
            raise Ended(ended[0])

    def end_at_last(number):
        """In a thread of its own: a library that computes, or makes nothing of an exception, does not come back to Python."""
        time.sleep(LONGEST_S)
        if not is_over:
            _die_anywhere(number)

    before = {number: signal.getsignal(number) for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN}
    lost = sys.unraisablehook
    sys.unraisablehook = lambda what: None if isinstance(what.exc_value, Ended) else lost(what)
    try:
        for number in before:
            signal.signal(number, end)
        with _seen_at_once(before, end_at_last):
            yield ended
    except Ended as error:
        _die(error.number)
    finally:
        is_over = True
        if ended:  # also where a library has made another exception, or none, of ours
            _die(ended[0])
        sys.unraisablehook = lost
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def loading():
    """Around the import of a library, which an exception in its middle would break: a signal ends the command when it is there."""
    if threading.current_thread() is not threading.main_thread():  # signals are no exceptions there
        yield
        return
    waiting = []
    _loading.append(waiting)
    try:
        yield
    finally:
        _loading.pop()
    if waiting:
        raise Ended(waiting[0])


_wakeup = -1  # where the numbers of signals are written as they come; -1: nowhere


def _set_wakeup(descriptor):
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)


# a signal of a child is none of ours
os.register_at_fork(before=lambda: _set_wakeup(-1), after_in_parent=lambda: _set_wakeup(_wakeup), after_in_child=lambda: _set_wakeup(-1))


@contextlib.contextmanager
def _seen_at_once(numbers, then):
    """Calls then(number) in a thread when the first of these signals has come, also while the main thread runs no Python."""
    global _wakeup

    def watch():
        while (come := os.read(ends[0], 1)) != b"\0":
            if come[0] in numbers:
                then(come[0])
        for end in ends:
            os.close(end)

    ends = os.pipe()
    os.set_blocking(ends[1], False)
    watcher = threading.Thread(target=watch, daemon=True)
    size = threading.stack_size(1 << 18)
    try:
        watcher.start()
        _wakeup = ends[1]
    except RuntimeError:  # no more threads: without it, then
        pass
    finally:
        threading.stack_size(size)
    _set_wakeup(_wakeup)
    try:
        yield
    finally:
        _wakeup = -1
        _set_wakeup(-1)
        os.write(ends[1], b"\0")


def _die(number):
    """Ends the process as the signal would have."""
    temporary.remove_all()
    with contextlib.suppress(OSError):
        discard_output()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _die_anywhere(number):
    """The same in any thread."""
    import ctypes

    temporary.remove_all()
    ctypes.CDLL(None).signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def program(name, places):
    """The path of a program of xstrace's (str), which lies in one of `places` above the package, or in PATH; None: nowhere.

    No directory is looked into in which everybody may put a program.
    """
    above = os.path.dirname(os.path.realpath(__file__))
    for _ in range(LEVELS):
        above = os.path.dirname(above)
        if os.stat(above).st_mode & stat.S_IWOTH:
            break
        for place in places:
            path = os.path.join(above, place, name)
            if os.access(path, os.X_OK):
                return path
    return shutil.which(name)


@contextlib.contextmanager
def written(path, mode="wb", **how):
    """A file to write, which takes the place of `path` when all of it is there, and else leaves nothing behind.

    mode, how: as for open(). A link stays one; a device or a pipe is written as it is. Raises OSError, whose filename is `path`.
    """
    real = unfinished = None
    try:
        real = os.path.realpath(path)
        old = _there(path)
        if old and not stat.S_ISREG(old.st_mode):
            with open(path, mode, **how) as file:
                yield file
            return
        unfinished = temporary.name_for(UNFINISHED, os.path.dirname(real))
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, mode, **how) as file:
            os.fchmod(descriptor, _mode_of(old))
            yield file
        os.replace(unfinished, real)
        temporary.forget(unfinished)
    except BaseException as error:
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            if _is_of(error.filename, unfinished, real):
                error.filename = path
            error.strerror = f"{error.strerror or error}{_left(unfinished)}"
        elif left := _left(unfinished):
            _say(os.path.basename(sys.argv[0]), f"{path}{left}")
        raise


def _there(path):
    """os.stat() of what is there; None: nothing. A link that the kernel does not follow (fs.protected_symlinks) is an error."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _mode_of(old):
    """Of the file that takes the place of `old`, as os.stat() has it. What others made gives no right, and takes some away."""
    if old and old.st_uid == os.geteuid():
        return stat.S_IMODE(old.st_mode) & 0o777
    return 0o666 & ~_umask() & (old.st_mode if old else 0o777)


def _left(unfinished):
    """Removes the file, if there is one. What to say where it stays: a directory may take files and give none back (chattr +a)."""
    try:
        if unfinished:
            temporary.forget(unfinished)
            os.unlink(unfinished)
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"; {unfinished} cannot be removed: {error.strerror}"
    return ""


def _is_of(name, unfinished, real):
    """Whether what an error names, if anything, is what written() itself has opened."""
    if name in (None, unfinished, real) or real and name == os.path.dirname(real):
        return True
    return isinstance(name, str) and os.path.basename(name).startswith(UNFINISHED)


def spare(inputs, outputs):
    """Raises OSError where an output (None and - are none) would take the place of an input, or of another output."""
    taken = {os.path.realpath(path): "is to be read: give the output another name" for path in inputs if path}
    for path in outputs:
        if path in (None, "", "-") or os.path.exists(path) and not os.path.isfile(path):
            continue
        real = os.path.realpath(path)
        if real in taken:
            raise FileExistsError(errno.EEXIST, taken[real], path)
        taken[real] = "is named for two outputs: give one of them another name"


def _umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


SMALL = 64 << 20  # bytes: of a text that people write, such as a query or a schema


def opened(path, mode="r", most=None, **how):
    """open() for what somebody else made: a file or a pipe. Raises OSError, also for a device, which may have no end.

    most: bytes; a file that has more is refused.
    """
    file = open(path, mode, **how)
    status = os.fstat(file.fileno())
    kind = status.st_mode
    if most and stat.S_ISREG(kind) and status.st_size > most:
        file.close()
        raise OSError(errno.EFBIG, f"more than {most >> 20} MiB" if most >> 20 else f"more than {most >> 10} KiB", path)
    if stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        return file
    file.close()
    raise OSError(errno.EINVAL, "neither a file nor a pipe", path)
