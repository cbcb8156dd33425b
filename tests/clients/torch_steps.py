"""Steps of a model on one thread, of which one operation's work can be changed: torch_steps.py STEPS ROWS.

Each step multiplies ROWS × 512 by 512 × 512 ("aten::mm", the batch) and sorts a fixed vector. Where it may, the program does so before what
else the machine does: the time of a step is then that of its work.
"""

import contextlib
import os
import sys

import torch

steps, rows = map(int, sys.argv[1:])
torch.manual_seed(0)
torch.set_num_threads(1)
batch, weights, fixed = torch.randn(rows, 512), torch.randn(512, 512), torch.randn(40_000)


def step():
    with torch.no_grad():
        torch.mm(batch, weights)
        torch.sort(fixed)


for _ in range(5):
    step()
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
with torch.autograd.profiler.emit_itt():
    for number in range(steps):
        with torch.profiler.itt.range(f"step {number}"):
            step()
