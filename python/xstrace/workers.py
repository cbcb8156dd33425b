"""Where the work on each rank's trace is done: in processes of this machine, or by a Dask cluster's workers near the files.

with workers(address) as pool:              # address None: here
    traces = pool.find(["traces/"])
    for path, result, error in pool.each(ranks.check, [(path,) for path in traces]):
        ...
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ctypes
import logging
import multiprocessing
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading

from . import ranks, source
from .running import ENDING, ended_by_signals, loading
from .temporary import Directory

PR_SET_PDEATHSIG = 1  # linux/prctl.h
BATCH = 32  # calls in one task of a cluster
PATIENCE_S = 15  # for the scheduler to answer
LOOK_S = 1  # how often it is looked whether the threads that serve the processes still run
ADDRESS = re.compile(r"(?:(\w+)://)?\[?([^\s/]+?)\]?:(\d+)")


class Unavailable(Exception):
    """There is nothing to work with; the text is one line."""


def workers(address=None, count=None):
    """The pool, a context manager. count: of processes, where there is no address; None: as many as processors."""
    return _Cluster(address) if address else _Processes(count)


class _Processes:
    def __init__(self, count):
        self._count = count or os.cpu_count()
        self._lost = None

    def __enter__(self):
        self._hook, threading.excepthook = threading.excepthook, self._lose
        self._place = self._stdin = None
        with contextlib.suppress(OSError):  # they may need none
            self._place = Directory("xstrace-work.")
        try:
            self._stdin = os.dup(0)  # a trace may come from there; Python takes it from the processes that it makes
            given = (os.getpid(), self._place and self._place.name, self._stdin)
            self._pool = concurrent.futures.ProcessPoolExecutor(self._count, initializer=_begin, initargs=given)
        except OSError as error:
            self._leave()
            raise _no_processes(error) from None
        return self

    def _leave(self):
        threading.excepthook = self._hook
        if self._stdin is not None:
            os.close(self._stdin)
        if self._place:
            self._place.cleanup()

    def _lose(self, what):
        """A thread of the executor has ended, for want of memory or threads: its futures would never be done."""
        self._lost = what.exc_value

    def __exit__(self, kind, *_):
        try:
            if kind:  # nobody waits for what they still do
                children = multiprocessing.active_children()
                for child in children:
                    child.terminate()
                for child in children:  # one that could not even begin may not know what a signal means to it
                    child.join(LOOK_S)
                    child.kill()
            with contextlib.suppress(RuntimeError):  # of a thread that could not be started
                self._pool.shutdown(cancel_futures=True)
        finally:
            self._leave()

    def find(self, places, names=ranks.NAMES):
        return sorted(ranks.find(places, names))

    def each(self, function, calls):
        """Calls function(path, ...) for each tuple in calls; yields (path, result, error) in that order, one of them None."""
        try:
            futures = [(call[0], self._pool.submit(_work, function, call)) for call in calls]
        except (OSError, RuntimeError) as error:
            raise _no_processes(error) from None
        for path, future in futures:
            error = self._error_of(future)
            if isinstance(error, concurrent.futures.process.BrokenProcessPool):
                raise Unavailable("a process that did the work was ended: is there enough memory?")
            yield path, None if error else future.result(), error

    def _error_of(self, future):
        while not self._lost:
            try:
                return future.exception(LOOK_S)
            except concurrent.futures.TimeoutError:
                continue
        raise _no_processes(self._lost)


def _no_processes(error):
    return Unavailable(f"no further process can be made: {getattr(error, 'strerror', None) or error}")


def _begin(parent, place, stdin):
    """In each process of the pool: it ends with its parent, and between two pieces of work as any program. It shows nothing by itself.

    place: where it has what is temporary, which the parent removes; None: where it likes. stdin: the parent's, as it has been copied.
    """
    if multiprocessing.get_start_method() == "fork":
        os.dup2(stdin, 0)
    source.is_shown = False
    tempfile.tempdir = place
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _work(function, call):
    with ended_by_signals():
        return function(*call)


class _Cluster:
    def __init__(self, address):
        self._near = {}  # path: (which file it is, the workers that see it)
        _look_for(address)
        try:
            with loading():
                import distributed
        except ImportError:
            raise Unavailable("--scheduler needs Dask here and on the workers: pip install distributed") from None
        for name in ("distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said below
        try:
            self._client = distributed.Client(address, timeout=PATIENCE_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:  # TimeoutError is an OSError
            why = " ".join(str(error).split()) or type(error).__name__
            raise Unavailable(f"no Dask scheduler at {address}: {why[:200]}") from None

    def __enter__(self):
        try:
            if not self._client.scheduler_info()["workers"]:
                raise Unavailable("the scheduler has no workers: start some with `dask worker ADDRESS` near the traces")
            with Directory("xstrace-package.") as place:
                here = os.path.dirname(os.path.abspath(__file__))
                copy = os.path.join(place, "package", "xstrace")
                shutil.copytree(here, copy, ignore=shutil.ignore_patterns("__pycache__"))
                archive = shutil.make_archive(os.path.join(place, "xstrace"), "zip", os.path.dirname(copy))
                self._client.upload_file(archive)
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_):
        self._client.close()

    def find(self, places, names=ranks.NAMES):
        """All traces that any worker sees; who sees which is remembered, also of former calls."""
        near = {}
        places = [os.path.abspath(place) for place in places]
        for worker, found in self._client.run(ranks.find, places, names).items():
            for path, which in found.items():
                known = near.setdefault(path, (which, []))
                if known[0] != which:
                    raise Unavailable(f"{path}: workers see different files of this name; put traces into directories named by their hosts")
                known[1].append(worker)
        self._near.update(near)
        return sorted(near)

    def each(self, function, calls):
        # who sees a file may end before it is asked for it; then any other may try
        options = {"allow_other_workers": True, "pure": False}
        futures = [
            (batch, self._client.submit(_each_of, function, batch, workers=self._near[batch[0][0]][1], **options))
            for batch in self._batches(calls)
        ]
        for batch, future in futures:
            try:
                results, error = self._result(future), None
            except Unavailable:
                raise
            except (Exception, asyncio.CancelledError) as lost:  # not the function's own
                error = lost
            if isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError, OSError)):
                raise Unavailable(f"the Dask scheduler is gone: {' '.join(str(error).split())[:200] or type(error).__name__}") from None
            if error:
                results = [(None, error)] * len(batch)
            for call, (result, error) in zip(batch, results):
                yield call[0], result, error
            future.release()

    def _result(self, future):
        """What it gives. Workers may come and go; it is given up where there has been none for a while."""
        while True:
            try:
                return future.result(PATIENCE_S)
            except TimeoutError:
                if not self._client.scheduler_info()["workers"]:
                    raise Unavailable("the Dask scheduler's workers are gone") from None

    def _batches(self, calls):
        """The calls in their order, in lists of those whose files the same workers see: a task for each would cost more than a small trace."""
        most = max(1, min(BATCH, len(calls) // (4 * max(1, len(self._client.scheduler_info()["workers"])))))
        batch = []
        for call in calls:
            if batch and (len(batch) == most or self._near[call[0]][1] != self._near[batch[0][0]][1]):
                yield batch
                batch = []
            batch.append(call)
        if batch:
            yield batch


def _each_of(function, calls):
    """[(result, error)] of each call, one of them None. Runs on a worker."""
    results = []
    for call in calls:
        try:
            results.append((function(*call), None))
        except Exception as error:  # of one trace; it is told where it is read
            results.append((None, error))
    return results


def _look_for(address):
    """A client would go on trying for long, and talk about it."""
    match = ADDRESS.fullmatch(address)
    if not match:
        raise Unavailable(f"--scheduler takes an address like tcp://node7:8786, not '{address}'")
    if match[1] not in (None, "tcp", "tls"):
        return
    try:
        socket.create_connection((match[2], int(match[3])), PATIENCE_S).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"no Dask scheduler at {address}: {why}") from None
