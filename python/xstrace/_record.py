"""What a program records: ranges, marks, counters, ids, memory. Each call does nothing while no trace is recorded."""

from __future__ import annotations

import functools
import json
import os
import time
from typing import Any, Callable, TypeVar

from . import _load

_native = _load.native
_Function = TypeVar("_Function", bound=Callable[..., Any])

if _native is not None:
    _Base = _native.range
    range_push: Callable[[str], None] = _native.range_push
    range_pop: Callable[[], None] = _native.range_pop
    mark: Callable[[str], None] = _native.mark
    counter: Callable[[str, float], None] = _native.counter
else:

    class _Base:  # type: ignore[no-redef]
        __slots__ = ("name",)

        def __init__(self, name: str):
            self.name = name

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    def range_push(name: str) -> None:
        """Begins a range of this thread; it lasts until the range_pop() that belongs to it."""

    def range_pop() -> None:
        """Ends the range that this thread has begun last."""

    def mark(name: str) -> None:
        """Records something without duration."""

    def counter(name: str, value: float) -> None:
        """Records the value that the counter has from now on."""


class record_function(_Base):
    """A range of the program, as context manager or decorator.

    Args:
        name: what the trace and the tables call it. Ranges of one name are one row of `key_averages()`.

    An object may be used again and again, also by several threads at once; that is cheaper than a new one each time.

    A coroutine function or generator that is decorated has a range for each time that it runs, till it waits or yields.
    The context manager is to end before the next of these, as ranges of a thread nest.

        with xstrace.record_function("load"):
            batch = next(batches)

        @xstrace.record_function("loss")
        def loss(output, target): ...
    """

    __slots__ = ()

    def __call__(self, function: _Function) -> _Function:
        from ._async import in_pieces  # who decorates nothing need not load it

        wrapper = in_pieces(self, function)
        if wrapper is None:

            @functools.wraps(function)
            def wrapper(*args, **keywords):
                with self:
                    return function(*args, **keywords)

        return wrapper  # type: ignore[return-value]


range = record_function


def now() -> int:
    """The time in ns since 1970, as all times of this package."""
    return _native.now() if _native else time.time_ns()


def is_recording() -> bool:
    """Is a trace being recorded, in a run of this program's own or the launcher's?"""
    return _native is not None and _native.is_active()


def initialize(*, cpu_only: bool = False) -> bool:
    """Loads what records. Call it before the program first uses OpenCL or CUDA, and before `import torch` for its ITT tasks.

    These look for a tracer once, when they are loaded. A profile that starts before that needs no such call.

    Args:
        cpu_only: nothing of devices.

    Returns:
        Can this process be traced? If not, `why_not()` says why.
    """
    return _native is not None and _native.initialize(cpu_only)[0] == 0


def why_not() -> str:
    """One line: why nothing can be traced here; empty: it can."""
    if _native is None:
        return _load.why
    result, why = _native.initialize(True)
    return why if result else ""


def metadata(key: str, value: Any) -> None:
    """Notes something about the whole trace that is being recorded.

    Args:
        key: the member's name: of the file itself in Kineto's format, of `otherData.application` in Chrome's.
        value: a str is noted as text, anything else as JSON.

    Raises:
        TypeError: json cannot write the value.
    """
    is_text = isinstance(value, str)
    text = value if is_text else json.dumps(value)
    if _native is not None and _native.is_active():
        _native.metadata(key, text, not is_text)


def push_correlation_id(number: int, *, user: bool = False) -> None:
    """From here on, what this thread does belongs to the event that the program has given this number.

    Args:
        number: 1 to 2**64 - 1. `Event.external_id` has it, of device work that is launched meanwhile, too.
        user: the number is of a range of the user's: `Event.user_external_id`.
    """
    if _native is not None:
        _native.push_correlation(number, user)


def pop_correlation_id(*, user: bool = False) -> None:
    """Ends the newest push_correlation_id() of this thread."""
    if _native is not None:
        _native.pop_correlation(user)


def memory(
    address: int,
    nbytes: int,
    *,
    total_allocated: int,
    total_reserved: int = 0,
    device_type: int = 0,
    device: int = 0,
    category: str | None = None,
) -> None:
    """The program has got memory, or given it back. Recorded while a profile with `profile_memory` is.

    Args:
        address: where it is.
        nbytes: how much; negative: it was given back.
        total_allocated, total_reserved: bytes of the device that are in use, and that the allocator holds.
        device_type: as in torch: 0 CPU, 1 CUDA, 12 XPU.
        device: its number.
        category: what it is for ("parameter", "gradient", …).
    """
    if _native is not None:
        _native.memory(address, nbytes, total_allocated, total_reserved, device_type, device, category)


def export_memory(path: str | os.PathLike[str]) -> None:
    """Writes the profile of memory that was stopped last, as JSON (xstrace.h: xstrace_memory_export()).

    Raises:
        RuntimeError: there is none.
        OSError: the file cannot be written.
    """
    if _native is None:
        raise RuntimeError(_load.why)
    result, why = _native.memory_export(path)
    if result:
        raise (OSError if result == 6 else RuntimeError)(why)
