#!/usr/bin/env python3
"""Works for a while, then dies of a segmentation fault.

./crash.py
"""

import ctypes
import time

import xstrace


def read_header(address):
    return ctypes.string_at(address)


for number in range(100):
    with xstrace.record_function("app::read"):
        time.sleep(0.005)
        if number == 99:
            read_header(16)
