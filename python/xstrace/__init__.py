"""Records what a program does, and reads traces. docs/PYTHON.md has examples.

Recording (where the package's native parts are not, or with XSTRACE_DISABLE in the environment, all of it does nothing):

    import xstrace

    with xstrace.profile() as prof:
        with xstrace.record_function("load"):
            ...
    prof.export_chrome_trace("trace.json")
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))

Reading the traces of xstrace, unitrace, cliloader and Kineto (docs/TRACE_FORMAT.md):

    with xstrace.open_trace("app.123.json.zst") as trace:
        for event in trace:             # one dict each; event["ts"] and event["dur"] in integer ns
            ...
    assert xstrace.check_trace("app.123.json", strict=True) == []
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import os
import time
from _thread import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._averages import Event, KeyAverages, Row
    from ._profile import ProfilerAction, ProfilerActivity, profile, schedule, tensorboard_trace_handler
    from ._record import (
        counter,
        export_memory,
        initialize,
        is_recording,
        mark,
        memory,
        metadata,
        now,
        pop_correlation_id,
        push_correlation_id,
        range,
        range_pop,
        range_push,
        record_function,
        why_not,
    )
    from .check import check_trace
    from .path import critical_path
    from .summary import summarize
    from .tables import Tables, open
    from .trace import Trace, TraceError, open_trace


def _version() -> str:
    """The version: one file says it, beside the package where it is installed, in the tree's root else."""
    package = os.path.dirname(os.path.realpath(__file__))
    for place in (package, os.path.dirname(os.path.dirname(package))):
        with contextlib.suppress(OSError), builtins.open(os.path.join(place, "VERSION"), encoding="ascii") as file:
            return file.read().strip()
    return "unknown"


__version__ = _version()

_WHERE = {
    "_averages": ["Event", "KeyAverages", "Row"],
    "_profile": ["ProfilerAction", "ProfilerActivity", "profile", "schedule", "tensorboard_trace_handler"],
    "_record": [
        "counter",
        "export_memory",
        "initialize",
        "is_recording",
        "mark",
        "memory",
        "metadata",
        "now",
        "pop_correlation_id",
        "push_correlation_id",
        "range",
        "range_pop",
        "range_push",
        "record_function",
        "why_not",
    ],
    "check": ["check_trace"],
    "path": ["critical_path"],
    "summary": ["summarize"],
    "tables": ["Tables", "open"],
    "trace": ["Trace", "TraceError", "open_trace"],
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "Event",
    "KeyAverages",
    "ProfilerAction",
    "ProfilerActivity",
    "Row",
    "Tables",
    "Trace",
    "TraceError",
    "check_trace",
    "counter",
    "critical_path",
    "export_memory",
    "initialize",
    "is_recording",
    "mark",
    "memory",
    "metadata",
    "now",
    "open",
    "open_trace",
    "pop_correlation_id",
    "profile",
    "push_correlation_id",
    "range",
    "range_pop",
    "range_push",
    "record_function",
    "schedule",
    "summarize",
    "tensorboard_trace_handler",
    "why_not",
]


_loading = set()  # threads that load a module of ours


class _Nothing:
    """A range, mark or counter of a signal handler that has interrupted the loading of what records: there is none."""

    def __init__(self, *_, **__): ...

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __call__(self, function):
        return function

    def __bool__(self):
        return False


def __getattr__(name: str):
    # who only records need not load what reads traces, and the other way round
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'xstrace' has no attribute {name!r}")
    thread = get_ident()
    is_within = thread in _loading
    if is_within and module == "_record":  # half of it may be there; the next call finds the whole
        return time.time_ns if name == "now" else _Nothing
    _loading.add(thread)
    try:
        value = getattr(importlib.import_module(f".{module}", __name__), name)
    finally:
        if not is_within:
            _loading.discard(thread)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
