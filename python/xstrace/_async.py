"""Ranges around functions that run in pieces: coroutines and generators, which others of their thread interrupt."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncGenerator, Callable
from typing import Any


def _in_pieces(span: Any, make: Callable[..., Any]) -> Callable[..., Any]:
    """A generator that goes on with what `make` gives, a generator or what an await waits for: a range until it hands on, each time.

    It does so itself: a `yield from` would close what is inside where GeneratorExit is thrown, which that may take.
    """

    def wrapper(*args, **keywords):
        inner = make(*args, **keywords)
        go_on, given = inner.send, None
        while True:
            with span:
                try:
                    got = go_on(given)
                except StopIteration as end:
                    return end.value
            try:
                go_on, given = inner.send, (yield got)
            except BaseException as error:  # of close() too
                go_on, given = inner.throw, error

    return wrapper


def _awaited(span: Any) -> Callable[..., Any]:
    """The same for an await in another function."""
    return types.coroutine(_in_pieces(span, lambda inner: inner))


def _async_generator(span: Any, function: Callable[..., AsyncGenerator[Any, Any]]) -> Callable[..., Any]:
    awaited = _awaited(span)

    async def wrapper(*args, **keywords):
        inner = function(*args, **keywords)
        step = inner.asend(None)
        while True:
            try:
                got = await awaited(step)
            except StopAsyncIteration:
                return
            try:
                step = inner.asend((yield got))
            except BaseException as error:
                step = inner.athrow(error)

    return wrapper


def in_pieces(span: Any, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function with a range for each of its pieces; None: it runs in one."""
    wrapper: Callable[..., Any]
    if inspect.iscoroutinefunction(function):
        awaited = _awaited(span)

        async def wrapper(*args, **keywords):
            return await awaited(function(*args, **keywords).__await__())

    elif inspect.isasyncgenfunction(function):
        wrapper = _async_generator(span, function)
    elif inspect.isgeneratorfunction(function):
        wrapper = _in_pieces(span, function)
        if getattr(function, "__code__", wrapper.__code__).co_flags & inspect.CO_ITERABLE_COROUTINE:
            wrapper = types.coroutine(wrapper)
    else:
        return None
    return functools.wraps(function)(wrapper)


def whole(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function with one context from its first piece to its last; None: it runs in one.

    Raises:
        TypeError: an asynchronous generator, whose last piece may never come.
    """
    wrapper: Callable[..., Any]
    if inspect.isasyncgenfunction(function):
        raise TypeError("an asynchronous generator cannot be decorated by xstrace.profile")
    if inspect.iscoroutinefunction(function):

        async def wrapper(*args, **keywords):
            with make():
                return await function(*args, **keywords)

    elif inspect.isgeneratorfunction(function):

        def wrapper(*args, **keywords):
            with make():
                return (yield from function(*args, **keywords))

    else:
        return None
    return functools.wraps(function)(wrapper)
