"""xstrace.profile: when traces are recorded, and what becomes of them."""

from __future__ import annotations

import enum
import functools
import os
import socket
import sys
import threading
import time
import warnings
from typing import Any, Callable, Iterable, TypeVar

from . import _load
from ._averages import Event, KeyAverages, averages

_Function = TypeVar("_Function", bound=Callable[..., Any])
_native = _load.native

OK, OFF, JOINED, BAD_STATE, BAD_ARGUMENT, NO_MEMORY, IO, TIMEOUT = (0, 1, 2, 3, 4, 5, 6, 7)  # enum xstrace_result


class ProfilerActivity(enum.IntFlag):
    """Whose activities a trace has. torch.profiler.ProfilerActivity is understood, too."""

    CPU = 1
    XPU = 2
    CUDA = 4
    MTIA = 8
    HPU = 16
    PrivateUse1 = 32


class ProfilerAction(enum.Enum):
    """What a profile does in a step; torch.profiler.ProfilerAction is understood, too."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Says for each step of a program what a profile does: skip, then again and again wait, warm up, record.

    Args:
        wait: steps of each cycle in which nothing is recorded.
        warmup: steps in which what must be there for recording is made.
        active: steps that are recorded; behind the last one the trace is ready.
        repeat: how many cycles; 0: as many as there are.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0: the first cycle has no `wait`.

    Raises:
        ValueError: a number is negative, or nothing would be recorded.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise ValueError("schedule: active must be above 0, and nothing below it")

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == cycle - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str], worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For `on_trace_ready`: each trace becomes a file of the directory, under a name that TensorBoard's plug-in expects."""

    def save(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{suffix}"))

    return save


def _bits(activities: Iterable[Any] | None) -> int:
    bits = 0
    for one in activities or ():
        try:
            bits |= ProfilerActivity[one if isinstance(one, str) else one.name]
        except (KeyError, AttributeError):
            raise ValueError(f"activities: {one!r} is none of {', '.join(a.name for a in ProfilerActivity)}") from None
    return int(bits)


class profile:
    """Records what the program does, as context manager, decorator, or by start() and stop().

    Args:
        activities: of enum ProfilerActivity; None: all.
        schedule: what each step does (see `schedule()`); step() must be called between steps. None: all is recorded.
        on_trace_ready: called with this object when a trace is complete.
        record_shapes: operations of PyTorch have the shapes of their arguments.
        profile_memory: what PyTorch allocates and gives back, and what the program reports by `memory()`.
        with_stack: operations of PyTorch have the functions of Python that they were called in; these are events, too.
        with_modules: each call of an nn.Module is a range with the module's name.
        with_compiled_kernels: code that torch.compile makes from now on for the CPU tells its kernels' names.
        torch: "auto": operations of PyTorch are recorded if the program has imported it; "itt": by emit_itt(), which
            costs least and has neither shapes nor arrows; False: they are not.
        options: options of `xstrace`, blanks between (docs/OPTIONS.md). A process has one set of them: a later profile with others is refused.
        directory: where traces lie until they are exported; None: $TMPDIR or /tmp.
        trace_id: None: xstrace makes one.

    Raises:
        ValueError: an unknown activity, an option that xstrace has not. (The latter by start().)

    One profile at a time can record in a process; all its threads are in it. Under `xstrace program` the events are in
    the launcher's trace, and there is nothing to export. After fork() the child records nothing.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        with_compiled_kernels: bool = False,
        torch: str | bool = "auto",
        options: str = "--format kineto",
        directory: str | os.PathLike[str] | None = None,
        trace_id: str | None = None,
    ):
        self._again = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._activities = _bits(activities)
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self._memory = profile_memory
        self._options = options
        self._directory = None if directory is None else os.fspath(directory)
        self._trace_id = trace_id
        if torch not in ("auto", "itt", True, False):
            raise ValueError(f'torch: {torch!r} is none of "auto", "itt", True, False')
        self._torch_mode = torch
        self._torch_options = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_modules": with_modules,
        }
        if with_compiled_kernels and _native is not None:
            from ._torch import name_compiled_kernels

            name_compiled_kernels()
        self._operations: Any = None
        self._action = ProfilerAction.NONE
        self._started = self._recording = False
        self._lock = threading.RLock()  # a handler of a signal may export, too
        self._trace: Any = None
        self._kept: Any = None
        self._pid = 0
        self._known: dict[int, tuple[str, int, tuple[str, ...]]] = {}
        self._events: list[Event] | None = None
        self.step_num = 0
        self.why = "nothing has been recorded yet"
        """Why there is no trace; empty: there is one."""

    # ---- life ----

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __call__(self, function: _Function) -> _Function:
        """As decorator: each call is a profile of its own, which `on_trace_ready` is given.

        Raises:
            TypeError: the function is an asynchronous generator, which may never come to its end.
        """
        from ._async import whole  # who decorates nothing need not load it

        wrapper = whole(lambda: type(self)(**self._again), function)
        if wrapper is None:

            @functools.wraps(function)
            def wrapper(*args, **keywords):
                with type(self)(**self._again):
                    return function(*args, **keywords)

        return wrapper  # type: ignore[return-value]

    def start(self) -> None:
        """Begins; with a schedule, with its step 0.

        Raises:
            RuntimeError: another profile is recording.
            ValueError: an option that xstrace has not.
        """
        self.step_num = 0
        self._action = self._action_of(0)
        self._prepare()
        self._started = True
        if self._records(self._action):
            self._begin()

    def step(self) -> None:
        """The next step of the program begins. Before `start()` and after `stop()` it has no effect."""
        if not self._started:
            return
        before = self._action
        self.step_num += 1
        self._action = self._action_of(self.step_num)
        if self._recording and (before is ProfilerAction.RECORD_AND_SAVE or not self._records(self._action)):
            self._finish()
        if self._records(self._action):
            if not self._recording:
                self._begin()
            elif _native is not None:
                _native.step(self.step_num)

    def stop(self) -> None:
        """Ends. A trace that is being recorded is complete then, and `on_trace_ready` is called."""
        self._started = False
        self._action = ProfilerAction.NONE
        if self._recording:
            self._finish()

    def _action_of(self, step: int) -> ProfilerAction:
        if self.schedule is None:
            return ProfilerAction.RECORD
        return ProfilerAction[self.schedule(step).name]

    @staticmethod
    def _records(action: ProfilerAction) -> bool:
        return action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _refuse(self, result: int, why: str) -> bool:
        """Was the call refused? What the caller has done wrong is an exception, what cannot be had is not."""
        if result in (OK, JOINED):
            return False
        self.why = why
        if result == BAD_STATE:
            raise RuntimeError(f"xstrace.profile: {why}")
        if result == BAD_ARGUMENT:
            raise ValueError(f"xstrace.profile: {why}")
        return True

    def _prepare(self) -> bool:
        if _native is None:
            self.why = _load.why
            return False
        wanted = (self._activities, False, None, self._trace_id, self._options, self._directory, self._memory)
        return not self._refuse(*_native.prepare(*wanted))

    def _begin(self) -> None:
        if not self._prepare() or self._refuse(*_native.start()):
            return
        self._recording = True
        self._trace = self._events = self._kept = None
        self._known = {}
        if self.schedule is not None:
            _native.step(self.step_num)
        if self._torch_mode is not False and "torch" in sys.modules:
            from ._torch import Operations

            self._operations = Operations(by_itt=self._torch_mode == "itt", **self._torch_options)
            self._operations.start()

    def _finish(self) -> None:
        self._recording = False
        if self._operations is not None:
            self._known = self._operations.stop(_native)
            self._operations = None
        (result, why), self._trace = _native.stop(_native.Trace)
        self.why = why or ""
        self._pid = os.getpid()
        if result in (OK, JOINED) and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # ---- while it records ----

    def add_metadata(self, key: str, value: str) -> None:
        """A text that is known of the trace; see `xstrace.metadata()`."""
        if self._recording:
            _native.metadata(key, value, False)

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same of JSON's text."""
        if self._recording:
            _native.metadata(key, value, True)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any] | None = None) -> None:
        """Within a trace: stops recording, or goes on. `activities`: those of the profile; None: all."""
        if self._recording:
            bits = _bits(activities) or self._activities or int(~ProfilerActivity(0))
            self._refuse(*_native.toggle(enable, bits))

    # ---- what was recorded ----

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace that was recorded last, as Chrome's JSON; compressed where the name ends in ".gz".

        It may be called again and again, whatever has become of the files it has written. They have their names when
        they are complete. Where there is no trace, a RuntimeWarning says why, and the program goes on.

        Raises:
            OSError: the file cannot be written.
        """
        path = os.fsdecode(path)
        why = self._why_no_file()
        if why:
            warnings.warn(f"xstrace: no trace is written as {path}: {why}", RuntimeWarning, stacklevel=2)
        else:
            self._export(path)

    def _why_no_file(self) -> str:
        """Why the trace cannot be exported; empty: it can."""
        if self._trace is None or self.why:
            return self.why
        if self._pid != os.getpid():  # another thread may have held the lock there
            return "the trace belongs to the process that this one was forked from"
        from ._kept import Kept  # who only records need not load it

        with self._lock:
            try:
                self._kept = self._kept or Kept(self._trace)
            except OSError as error:
                return f"it cannot be read: {error.filename}: {error.strerror}"
        return ""

    def _export(self, path: str) -> None:
        with self._lock:
            self._kept.export(path)

    def events(self) -> list[Event]:
        """What was recorded last, in the order in which it ended. Empty where there is no trace, as `why` says.

        Empty, too, where there was no room for their list: a RuntimeWarning says so. The trace itself may have them.
        """
        if self._events is None:
            if self._trace is None or self.why:
                return []
            types: dict[int, str] = {}
            try:
                rows = self._trace.events()
            except OSError as error:
                warnings.warn(f"xstrace: no events: {error}", RuntimeWarning, stacklevel=2)
                rows = []
            self._events = [self._event(types, *row) for row in rows]
        return self._events

    def _event(self, types: dict[int, str], name: str, number: int, start: int, duration: int, *rest: int) -> Event:
        if number not in types:
            types[number] = _native.type_name(number) or ""
        known = self._known.get(rest[3], ()) if types[number] == "cpu_op" else ()
        return Event(name, types[number], start, duration, *rest, *known)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> KeyAverages:
        """The events by name: a list of rows, with a method table().

        Args:
            group_by_input_shape: operations with other shapes are other rows.
            group_by_stack_n: operations that were called in other functions are other rows; how many functions count,
                from the innermost. With `with_stack`.
        """
        return averages(self.events(), group_by_input_shape, group_by_stack_n)
