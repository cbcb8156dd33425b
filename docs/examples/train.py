#!/usr/bin/env python3
"""A loop like that of a training: it loads a batch, computes, now and then saves. Slow in the way of your choice.

./train.py [small | loader | saves | grows | stuck]
"""

import sys
import threading
import time

import xstrace

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
kept = []


@xstrace.record_function("data::load")
def load():
    time.sleep(0.008 if MODE == "loader" else 0.001)
    return [1.0] * 1000


def add(a, b):
    return a + b


@xstrace.record_function("train::compute")
def compute(batch):
    if MODE == "small":  # one call for each number
        total = 0
        for value in batch:
            total = add(total, value)
        return total
    time.sleep(0.002)
    return sum(batch)


@xstrace.record_function("train::save")
def save():
    time.sleep(0.1)


@xstrace.record_function("train::step")
def step(number):
    batch = load()
    compute(batch)
    if MODE == "saves" and number % 20 == 10:
        save()
    if MODE == "grows":
        kept.append(batch)
    xstrace.counter("memory of batches", (1 + len(kept)) * 8 * len(batch))


def wait_for_each_other():
    first, second = threading.Lock(), threading.Lock()

    def take(one, other):
        with one:
            time.sleep(0.2)
            with other:
                pass

    threads = [threading.Thread(target=take, args=pair, daemon=True) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4)  # so that this example ends; a real one would not


for number in range(60):
    step(number)
if MODE == "stuck":
    wait_for_each_other()
print("done")
