"""PyTorch: its operations, recorded by its own profiler or by ITT, and its modules. Imported only beside torch."""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections import defaultdict
from typing import Any, Iterable

import torch
from torch.autograd import profiler
from torch.nn.modules import module as torch_module

from ._averages import TRANSFER, shapes_text
from ._record import range_pop, range_push

CPU_OP, USER_ANNOTATION, INSTANT, PYTHON_FUNCTION = 0, 1, 9, 10  # enum xstrace_type
BACKWARD_FUNCTION, USER_SCOPE = 1, 7  # at::RecordScope
MEMORY = "[memory]"
LOG_LEVEL = "KINETO_LOG_LEVEL"
COMPILED = "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"
FRAMES = 32  # of a stack that are kept, the innermost

Known = dict[int, tuple[str, int, tuple[str, ...]]]
"""Shapes, sequence number and stack of an operation, by its correlation."""

Pairs = tuple[tuple[str, str, bool], ...]


def name_compiled_kernels() -> None:
    """What torch.compile makes from now on for the CPU says which kernel runs."""
    os.environ.setdefault(COMPILED, "1")
    config = sys.modules.get("torch._inductor.config")
    if config is not None:
        config.cpp.enable_kernel_profile = True


class Operations:
    """The operations of one trace.

    PyTorch's own profiler records them in memory, and they are put into the trace at its end: it alone knows shapes,
    and which backward operation belongs to which forward one.
    """

    def __init__(self, *, by_itt: bool, record_shapes: bool, profile_memory: bool, with_stack: bool, with_modules: bool):
        self._modules = Modules() if with_modules else None
        self._by_itt = by_itt
        if by_itt:
            self._profiler: Any = profiler.emit_itt(record_shapes=record_shapes)
        else:
            self._profiler = profiler.profile(
                use_cpu=True, use_kineto=True, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack
            )

    def start(self) -> None:
        if self._modules:
            self._modules.watch()
        if profiler._is_profiler_enabled:  # the program's own would be cut off
            self._profiler = None
            _warn("the program's own profiler records")
            return
        said = os.environ.get(LOG_LEVEL)
        os.environ.setdefault(LOG_LEVEL, "6")  # else it logs to stderr when it starts and stops
        try:
            self._profiler.__enter__()
        except RuntimeError as error:
            self._profiler = None
            _warn(str(error))
        finally:
            if said is None:
                del os.environ[LOG_LEVEL]

    def stop(self, native: Any) -> Known:
        """Puts them into the trace. Says what else is known of them."""
        if self._modules:
            self._modules.leave()
        if self._profiler is None:
            return {}
        self._profiler.__exit__(None, None, None)
        if self._by_itt:
            return {}
        events = self._profiler.kineto_results.events()
        self._profiler = None
        known = Known()
        try:
            threads = {event.start_thread_id(): event.device_resource_id() for event in events}
            events = [event for event in events if event.device_type().value == 0]
            stacks = _stacks(events)
            rows = [_row(event, threads, stacks, known) for event in events]
        except (AttributeError, TypeError, ValueError) as error:  # a profiler's events are not PyTorch's public interface
            _warn(f"this PyTorch tells them in another way ({error})")
            return {}
        result, why = native.activities(TRANSFER, rows) if rows else (0, "")
        if result:
            _warn(why)
        return known


def _warn(why: str) -> None:
    warnings.warn(f"xstrace: operations of PyTorch are not recorded: {why}", RuntimeWarning, stacklevel=5)


def _is_function(event: Any) -> bool:
    """Is it a function of Python? PyTorch 2.11 does not tell."""
    tell = getattr(event, "is_python_function", None)
    return bool(tell and tell())


def _stacks(events: Iterable[Any]) -> dict[int, tuple[str, ...]]:
    """The functions of Python that each operation was called in, the innermost first, by its correlation."""
    threads = defaultdict(list)
    for event in events:
        threads[event.device_resource_id()].append(event)
    stacks = {}
    for thread in threads.values():
        if not any(map(_is_function, thread)):
            continue
        frames: list[Any] = []
        for event in sorted(thread, key=lambda event: (event.start_ns(), -event.end_ns())):
            while frames and frames[-1].end_ns() <= event.start_ns():
                frames.pop()
            if _is_function(event):
                frames.append(event)
            elif event.name() != MEMORY:
                names = [frame.name() for frame in reversed(frames) if not frame.name().startswith("<")]
                stacks[event.correlation_id()] = tuple(names[:FRAMES])
    return stacks


def _row(event: Any, threads: dict[int, int], stacks: dict[int, tuple[str, ...]], known: Known) -> tuple:
    """An operation, or a function of Python, as _native.activities() wants it."""
    name, start, correlation = event.name(), event.start_ns(), event.correlation_id()
    pairs: Pairs = ()
    kind = USER_ANNOTATION if event.scope() == USER_SCOPE else CPU_OP
    if _is_function(event):
        kind, correlation = PYTHON_FUNCTION, 0
    elif name == MEMORY:
        kind, correlation = INSTANT, 0
        pairs = (("Bytes", str(event.nbytes()), False), ("Device Type", "0", False))
    else:
        sequence, forward = event.sequence_nr(), event.fwd_thread_id()
        shapes = shapes_text(event.shapes())
        if shapes:
            pairs = (("Input Dims", shapes, False), ("Input type", json.dumps(event.dtypes()), False))
        # the engine's frame around a backward operation has the same number: one of them is the arrow's end
        if sequence >= 0 and (not forward or event.scope() == BACKWARD_FUNCTION):
            pairs += (("Sequence number", str(sequence), False),)
            if forward:
                pairs += (("Fwd thread id", str(threads.get(forward, 0)), False),)
        stack = stacks.get(correlation, ())
        if stack:
            pairs += (("Call stack", ";".join(stack), True),)
        known[correlation] = shapes, sequence, stack
    return name, kind, start, event.end_ns(), os.getpid(), event.device_resource_id(), correlation, pairs


class Modules:
    """A range for each call of an nn.Module, while a trace is recorded."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}  # empty unless they are watched: it keeps the modules
        self._depth = threading.local()
        self._hooks: list[Any] = []

    def watch(self) -> None:
        self._hooks = [
            torch_module.register_module_forward_pre_hook(self._before),
            torch_module.register_module_forward_hook(self._after, always_call=True),
        ]

    def leave(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._names = {}

    def _before(self, module: Any, _inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        name = self._names.get(module)
        if name is None:
            self._learn(module)
            name = self._names[module]
        self._depth.depth = getattr(self._depth, "depth", 0) + 1
        range_push(name)

    def _after(self, _module: Any, _inputs: Any, _output: Any) -> None:
        depth = getattr(self._depth, "depth", 0)
        if torch.compiler.is_compiling() or not depth:  # the trace began within it
            return
        self._depth.depth = depth - 1
        range_pop()

    def _learn(self, root: Any) -> None:
        """The names of a module that is called from outside, and of all within it."""
        for path, module in root.named_modules():
            if module not in self._names:
                kind = type(module).__name__
                self._names[module] = f"nn.Module: {path} ({kind})" if path else f"nn.Module: {kind}"
