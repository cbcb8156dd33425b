"""What ITT's Python package can do, a little of each; or what its words for recording do (first argument)."""

import os
import sys
import threading
import time

import ittapi


def mark(name, domain="python"):
    with ittapi.task(name, domain=domain):
        time.sleep(0.001)


def everything():
    with ittapi.task("outer", domain="python"):
        with ittapi.task("inner", domain="python"):
            mark("innermost", "other domain")

    @ittapi.task
    def decorated():
        time.sleep(0.001)

    decorated()

    # two that cross, and one that ends on another thread
    first = ittapi.task("first", domain="python", overlapped=True)
    second = ittapi.task("second", domain="python", overlapped=True)
    first.begin()
    time.sleep(0.001)
    second.begin()
    time.sleep(0.001)
    first.end()
    time.sleep(0.001)
    second.end()
    moved = ittapi.task("moved", domain="python", overlapped=True)
    moved.begin()
    thread = threading.Thread(target=moved.end)
    thread.start()
    thread.join()

    parent = ittapi.task("parent", domain="python")
    parent.begin()
    with ittapi.task("child", domain="python", parent=parent.id()):
        time.sleep(0.001)
    parent.end()

    with ittapi.event("loading"):
        mark("in the event")
    ittapi.event("instant").begin()

    def named():
        ittapi.thread_set_name("the worker")
        mark("in the worker")

    thread = threading.Thread(target=named)
    thread.start()
    thread.join()


def pauses():
    """Regions of the package, and the bare words."""
    mark("a")
    with ittapi.active_region():
        mark("b")
    mark("c")
    ittapi.resume()
    mark("d")
    with ittapi.paused_region():
        mark("e")
    mark("f")
    with ittapi.task("cut", domain="python"):
        ittapi.pause()
        time.sleep(0.002)
    mark("g")


def detached():
    mark("before")
    ittapi.detach()
    mark("behind")


{"all": everything, "pauses": pauses, "detach": detached}[sys.argv[1]]()
print("process:", os.getpid())
