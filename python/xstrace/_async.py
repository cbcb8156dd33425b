"""Ranges around functions that run in pieces: coroutines and generators, which others of their thread interrupt."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any


def _pieces(span: Any, inner: Any) -> Generator[Any, Any, Any]:
    """Goes on with `inner`, a generator or what an await waits for; each time that is a range until it hands on."""
    go_on, given = inner.send, None
    while True:
        with span:
            try:
                got = go_on(given)
            except StopIteration as end:
                return end.value
        try:
            go_on, given = inner.send, (yield got)
        except GeneratorExit:
            with span:
                inner.close()
            raise
        except BaseException as error:
            go_on, given = inner.throw, error


_awaited = types.coroutine(_pieces)


def _async_generator(span: Any, function: Callable[..., AsyncGenerator[Any, Any]]) -> Callable[..., Any]:
    async def wrapper(*args, **keywords):
        inner = function(*args, **keywords)
        step = inner.asend(None)
        while True:
            try:
                got = await _awaited(span, step)
            except StopAsyncIteration:
                return
            try:
                step = inner.asend((yield got))
            except GeneratorExit:
                await _awaited(span, inner.aclose())
                raise
            except BaseException as error:
                step = inner.athrow(error)

    return wrapper


def in_pieces(span: Any, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function with a range for each of its pieces; None: it runs in one."""
    wrapper: Callable[..., Any]
    if inspect.iscoroutinefunction(function):

        async def wrapper(*args, **keywords):
            return await _awaited(span, function(*args, **keywords).__await__())

    elif inspect.isasyncgenfunction(function):
        wrapper = _async_generator(span, function)
    elif inspect.isgeneratorfunction(function):

        def wrapper(*args, **keywords):
            return (yield from _pieces(span, function(*args, **keywords)))

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
