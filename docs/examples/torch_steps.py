#!/usr/bin/env python3
"""A few steps of a small model, on a GPU if there is one.

./torch_steps.py            as it would be without xstrace, but for emit_itt()
./torch_steps.py profile    records itself and writes steps.json
"""

import contextlib
import sys

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step():
    optimizer.zero_grad()
    loss = model(torch.randn(128, 256, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()  # waits for the device


if sys.argv[1:] == ["profile"]:
    import xstrace

    with xstrace.profile(record_shapes=True) as profile:
        for _ in range(10):
            step()
            profile.step()
    profile.export_chrome_trace("steps.json")
    print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=8))
else:
    emit = getattr(torch.autograd.profiler, "emit_itt", contextlib.nullcontext)
    with emit():
        for _ in range(10):
            step()
print("done")
