#!/usr/bin/env python3
"""Python's multiprocessing under the tracer: children made by fork end in os._exit (no exit hook
runs), those made by spawn are a new Python, and both make ITT tasks of their own.

    py_mp.py [fork|spawn] [CHILDREN [TASKS]]     default fork, 3 children of 10 tasks

Prints, as the programs in C do (see app.h), what each process traced.
"""

import multiprocessing
import os
import sys

import ittapi


def trace(name, count):
    for _ in range(count):
        with ittapi.task(name, domain="python"):
            pass


def say(name, count):
    text = f"process: {os.getpid()}\nexpected: {count} tasks python::{name}\nexpected: {count} tasks\n"
    os.write(1, text.encode())


def child(count):
    trace("child", count)
    say("child", count)


def main():
    method = sys.argv[1] if len(sys.argv) > 1 else "fork"
    children = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    context = multiprocessing.get_context(method)

    trace("parent", count)
    processes = [context.Process(target=child, args=(count,)) for _ in range(children)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    trace("parent", count)
    say("parent", 2 * count)
    return 0 if all(process.exitcode == 0 for process in processes) else 1


if __name__ == "__main__":
    sys.exit(main())
