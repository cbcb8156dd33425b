"""A training loop of a small CNN, timed: plain, under emit_itt(), or under PyTorch's own profiler.

    torch_loop.py plain|itt|profiler [STEPS]

Prints "step_us <median>" (what else the machine does falls upon few steps) and "step_cpu_us <mean>"; what comes before the profiler is on is
not counted.
"""

import contextlib
import statistics
import sys
import time

import torch
from torch import nn


def main():
    how, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 169, 10)
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data, truth = torch.randn(32, 3, 32, 32), torch.randint(10, (32,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), truth).backward()
        optimizer.step()

    listen = {
        "plain": contextlib.nullcontext,
        "itt": torch.autograd.profiler.emit_itt,
        "profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
    }[how]
    for _ in range(10):
        step()
    with listen():
        step()
        walls, cpu = [], time.process_time_ns()
        for _ in range(steps):
            begin = time.perf_counter_ns()
            step()
            walls.append(time.perf_counter_ns() - begin)
        cpu = time.process_time_ns() - cpu
    print("step_us", statistics.median(walls) / 1e3)
    print("step_cpu_us", cpu / 1e3 / steps)


if __name__ == "__main__":
    main()
