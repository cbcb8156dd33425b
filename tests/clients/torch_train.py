"""A small training loop, recorded twice: by PyTorch's own profiler, and by emit_itt() for whoever listens.

    torch_train.py cnn|block TREES [STEPS]

Both recordings are of the same work from the same seeds, in two threads at once (the profilers of PyTorch
cannot be on together in one thread, so one follows the other). TREES gets, as JSON, what PyTorch's profiler
saw: for each thread [[name, [children]], …], and how often each name stands in its exported file.
"""

import collections
import json
import os
import sys
import tempfile
import threading

import torch
from torch import nn
from torch.profiler import ProfilerActivity, itt, profile, record_function


class Block(nn.Module):
    """One block of a transformer, over random tokens."""

    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(50, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, 10)

    def forward(self, tokens):
        x = self.embed(tokens)
        y = self.norms[0](x)
        x = x + self.attention(y, y, y)[0]
        x = x + self.feed(self.norms[1](x))
        return self.head(x.mean(1))


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 10),
    )


class Training:
    """One thread's: a model, its optimizer, its data; the same from the same seed."""

    def __init__(self, kind, seed):
        generator = torch.Generator().manual_seed(seed)
        if kind == "cnn":
            self.model = cnn()
            self.data = torch.randn(4, 3, 16, 16, generator=generator)
        else:
            self.model = Block()
            self.data = torch.randint(50, (4, 12), generator=generator)
        self.truth = torch.randint(10, (4,), generator=generator)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 10)
        optimizer = torch.optim.SGD if kind == "cnn" else torch.optim.AdamW
        self.optimizer = optimizer(self.model.parameters(), lr=0.01)

    def run(self, steps):
        for step in range(steps):
            with record_function(f"step {step}"):
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(self.data), self.truth)
                loss.backward()
                self.optimizer.step()
        self.loss = loss.item()


def in_threads(trainings, steps, listen):
    """All of them at once, each in a thread of its own; their losses."""
    threads = []
    for training in trainings:

        def body(training=training):
            with listen():
                training.run(steps)

        threads.append(threading.Thread(target=body))
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return [training.loss for training in trainings]


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *unused):
        pass


def tree(event):
    return [event.name, [tree(child) for child in event.children]]


def own_profile(kind, steps):
    """(losses, what PyTorch's profiler saw)"""
    trainings = [Training(kind, seed) for seed in (1, 2)]
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(activities=[ProfilerActivity.CPU], experimental_config=config) as recorded:
        losses = in_threads(trainings, steps, Nothing)
    threads = collections.defaultdict(list)
    for event in recorded.profiler.kineto_results.experimental_event_tree():
        threads[event.start_tid].append(event)
    trees = [
        [tree(event) for event in sorted(events, key=lambda e: e.start_time_ns)]
        for events in threads.values()
    ]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recorded.export_chrome_trace(file.name)
        with open(file.name) as again:
            events = json.load(again)["traceEvents"]
    counts = collections.Counter(
        e["name"] for e in events if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation")
    )
    return losses, {"trees": trees, "counts": counts}


def main():
    kind, path = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    in_threads([Training(kind, seed) for seed in (1, 2)], 1, Nothing)  # what comes once only
    losses, seen = own_profile(kind, steps)
    trainings = [Training(kind, seed) for seed in (1, 2)]
    with itt.range("all of it"):
        itt.mark("a mark")
        again = in_threads(trainings, steps, torch.autograd.profiler.emit_itt)
    with open(path, "w") as file:
        json.dump(seen, file)
    print("losses", losses, "the same" if again == losses else again)
    os.write(1, f"process: {os.getpid()}\n".encode())


if __name__ == "__main__":
    main()
