"""common/python_frames.c: the stacks of real interpreters' threads, beside what the interpreters say of themselves."""

import os
import subprocess

import pytest

from conftest import program
from others import INTERPRETERS

# Threads that stand at known places: in a generator, a method, a nested function, a handler of an exception, below C (map,
# sorted), in a function of many lines. It prints what Python says of each, innermost first.
PROGRAM = r'''
import os, sys, threading, traceback

stop = threading.Event()
ready = []

def wait():
    ready.append(1)
    stop.wait()

class Of:
    def method(self, depth):
        if depth:
            return self.method(depth - 1)
        return (
            len(
                "x"
            ) and
            wait()
        )

def generator():
    yield 1
    wait()
    yield 2

def in_generator():
    for _ in generator():
        pass

def below_c():
    return sorted([2, 1], key=lambda x: wait() if x == 2 else x)

def in_handler():
    try:
        raise ValueError
    except ValueError:
        try:
            pass
        finally:
            wait()

def deep(n):
    return deep(n - 1) if n else wait()

namespace = {"wait": wait}
exec(compile("\n" * 300 + "def far():\n" + "    x = 1\n" * 200 + "    wait()\n" + "    y = 2\n" * 70000, "far_away.py", "exec"), namespace)
exec(compile("def \u00fcml\u00e4ut():\n    wait()\n", "\u65e5\u672c.py", "exec"), namespace)
exec(compile("def \U00020000x():\n    wait()\n", "sur\udc80rogate.py", "exec"), namespace)
exec(compile("def " + "n" * 1000 + "():\n    wait()\n", "d" * 5000, "exec"), namespace)

targets = [lambda: Of().method(5), in_generator, below_c, in_handler, lambda: deep(100), lambda: list(map(deep, [1])), namespace["far"],
           namespace["\u00fcml\u00e4ut"], namespace["\U00020000x"], namespace["n" * 1000]]
threads = [threading.Thread(target=t, daemon=True) for t in targets]
for thread in threads:
    thread.start()
while len(ready) < len(targets):
    pass

def native():
    return [str(threading.get_native_id()), str(threading.get_ident())]

def tell():
    said = []
    frames = sys._current_frames()
    for thread in threads:
        said.append("thread %d %d" % (thread.native_id, thread.ident))
        frame = frames[thread.ident]
        while frame:
            code = frame.f_code
            said.append("frame %d %d %s|%s" % (frame.f_lineno, code.co_firstlineno, getattr(code, "co_qualname", code.co_name), code.co_filename))
            frame = frame.f_back
    return said

import time
time.sleep(0.3)  # they are in wait()'s lock
data = "\n".join(tell()).encode("utf-8", "surrogatepass")
os.write(1, data + b"\nready\n")
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
print("done")
'''


class Said:
    """{(tid or 0, pthread): frames}"""

    def __init__(self, lines, has_entry):
        self.threads, self.version = {}, None
        for line in lines:
            kind, _, rest = line.partition(" ")
            if kind == "version":
                self.version = int(rest)
            elif kind == "thread":
                tid, pthread = rest.split()[:2]
                frames = self.threads[int(pthread)] = []
                self.tids = {**getattr(self, "tids", {}), int(pthread): int(tid)}
            elif kind == "frame":
                fields = rest.split(" ", 3 if has_entry else 2)
                frames.append((int(fields[0]), int(fields[-2]), *fields[-1].split("|")))


def shown(text):
    """As the reader shows it: half pairs replaced, and cut at a character."""
    raw = "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text).encode()[:255]
    return raw.decode(errors="ignore")


@pytest.fixture(params=INTERPRETERS, ids=lambda path: path.resolve().name)
def standing(request):
    process = subprocess.Popen([request.param, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lines = []
    while (line := process.stdout.readline()) not in (b"ready\n", b""):
        lines.append(line.decode("utf-8", "surrogatepass").rstrip("\n"))
    yield process, Said(lines, False)
    process.communicate()


def test_frames_are_what_the_interpreter_says(standing):
    process, wanted = standing
    ran = subprocess.run([program("python_frames"), str(process.pid)], capture_output=True)
    assert ran.returncode == 0, ran
    got = Said(ran.stdout.decode().splitlines(), True)
    assert wanted.threads and set(wanted.threads) < set(got.threads)  # and the main thread
    for pthread, frames in wanted.threads.items():
        assert got.threads[pthread] == [(line, first, shown(function), shown(file)) for line, first, function, file in frames]
        assert got.tids[pthread] == (wanted.tids[pthread] if got.version >= 11 else 0)
    out, _ = process.communicate(b"")
    assert out == b"done\n" and process.returncode == 0


@pytest.mark.long
def test_spoilt_memory_ends_every_walk(standing):
    process, _ = standing
    ran = subprocess.run([program("python_frames"), str(process.pid), str(os.getpid())], capture_output=True, timeout=120)
    assert ran.returncode == 0 and ran.stdout == b"spoilt 1000\n", ran


def test_a_program_without_an_interpreter():
    process = subprocess.Popen(["/bin/sleep", "100"])
    ran = subprocess.run([program("python_frames"), str(process.pid)], capture_output=True)
    process.kill()
    process.wait()
    assert (ran.stdout, ran.returncode) == (b"version 0\n", 2)  # ENOENT
