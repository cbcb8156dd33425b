"""A training loop of a small CNN, timed: plain, under emit_itt(), or under PyTorch's own profiler.

    torch_loop.py plain|itt|profiler|turns [STEPS]

Prints "step_us <median>" (what else the machine does falls upon few steps); what comes before the profiler is on is not counted.
turns: emit_itt(), and every second step is recorded (PTI_ENABLE_COLLECTION); prints "recorded_percent", by how much those take longer than
the paused ones beside them, the median over the pairs.
"""

import contextlib
import os
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
        "turns": torch.autograd.profiler.emit_itt,
        "profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
    }[how]
    for _ in range(10):
        step()
    with listen():
        step()
        walls = []
        for i in range(steps):
            if how == "turns":
                # 0 1 1 0: what drifts falls upon both
                os.environ["PTI_ENABLE_COLLECTION"] = "1" if i % 4 in (1, 2) else "0"
            begin = time.perf_counter_ns()
            step()
            walls.append(time.perf_counter_ns() - begin)
    if how == "turns":
        fours = [walls[i : i + 4] for i in range(0, steps - 3, 4)]
        shares = [(four[1] + four[2]) / (four[0] + four[3]) for four in fours]
        print("recorded_percent", 100 * (statistics.median(shares) - 1))
    print("step_us", statistics.median(walls) / 1e3)


if __name__ == "__main__":
    main()
