"""What commands share that look at any number of traces, one by one: which ones, where the work is done, how far it is, how much memory it takes."""

from __future__ import annotations

import contextlib
import os
import resource
import sys

from . import convert
from .cli import add_memory_limit, add_zstd_window
from .convert import NAMES, find_traces
from .source import TraceError
from .workers import workers

WORTH_A_BAR = 8  # traces
NO_MEMORY = "needs more memory than --memory-limit allows"
TRACES_HELP = "a trace (.json, .pftrace, also .zst and .gz), a directory of them, or a pattern in quotes"


def add_options(parser):
    """FILE..., --scheduler, --memory-limit and --zstd-window, as each() reads them."""
    parser.add_argument("files", nargs="+", metavar="FILE", help=TRACES_HELP)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers read the traces, where they are")
    add_memory_limit(parser)
    add_zstd_window(parser)


def each(options, function, *more):
    """Calls function(path, *more) for each trace that the options mean; yields (path, result, error) in their order, one of them None.

    function and more must be such that another process can get them. It runs in as many processes as there are processors, or by the
    workers of a Dask cluster; in this process where that is one alone. Errors are those of the function; a TraceError where it needs more memory than
    is allowed. Raises NoTables where a directory or a pattern means no trace, Unavailable where there is no cluster.
    """
    if options.scheduler:
        with workers(options.scheduler) as pool:
            paths = pool.find(options.files, NAMES)
            if not paths:
                raise convert.NoTables(f"{' '.join(options.files)}: no worker sees such a trace")
            yield from shown(pool.each(function, [(path, *more) for path in paths]), len(paths))
        return
    paths = [path for path, _ in find_traces(options.files)]
    count = min(os.cpu_count() or 1, len(paths))
    if count == 1:
        for path in shown(paths, len(paths)):
            yield bounded(path, options.memory_limit, function, more)
        return
    with workers(None, count) as pool:
        calls = [(path, options.memory_limit // count, function, more) for path in paths]
        for path, result, error in shown(pool.each(bounded, calls), len(calls)):
            yield result or (path, None, error)


def bounded(path, limit, function, more):
    """(path, result, error) of the call function(path, *more), which gets so much memory (bytes). error: OSError, EOFError or TraceError."""
    try:
        with memory_bound(limit):
            return path, function(path, *more), None
    except MemoryError:
        return path, None, TraceError(NO_MEMORY)
    except (OSError, EOFError, TraceError) as error:
        return path, None, error


@contextlib.contextmanager
def memory_bound(size):
    """Within it this process gets `size` bytes more than it has; then MemoryError is raised."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/status") as file:
        has = next((int(line.split()[1]) << 10 for line in file if line.startswith("VmData:")), 0)
    bound = has + size
    if before[1] != resource.RLIM_INFINITY:
        bound = min(bound, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (bound, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def shown(results, count, unit=" traces"):
    """The same, with a progress bar where somebody looks and there is much to do."""
    if count < WORTH_A_BAR or not sys.stderr or not sys.stderr.isatty():
        return results
    try:
        from tqdm import tqdm
    except ImportError:
        return results
    return tqdm(results, total=count, unit=unit, leave=False)
