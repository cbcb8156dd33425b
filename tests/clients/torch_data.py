"""Processes that PyTorch starts: workers of a DataLoader, or of torch.multiprocessing, each marking its own work.

    torch_data.py loader|fork|spawn|forkserver

Prints what each process traced, as the programs of tests/apps do.
"""

import collections
import os
import sys

import torch
from torch.profiler import itt
from torch.utils.data import DataLoader, Dataset


class Items(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        with itt.range("item"):
            return torch.full((3,), index) * 2, os.getpid()


def say(pid, count, name):
    text = f"process: {pid}\nexpected: {count} tasks PyTorch::{name}\n"
    os.write(1, text.encode())


def loader():
    """Workers are forked and end in os._exit()."""
    made, batches = collections.Counter(), 0
    for epoch in range(2):
        for _, pids in DataLoader(Items(), batch_size=5, num_workers=2):
            with itt.range("batch"):
                made.update(pids.tolist())
                batches += 1
    for pid, count in made.items():
        say(pid, count, "item")
    say(os.getpid(), batches, "batch")


def work(number, count):
    torch.set_num_threads(1)
    with torch.autograd.profiler.emit_itt():
        for _ in range(count):
            torch.relu(torch.ones(10))
    say(os.getpid(), count, "aten::relu")


def processes(method):
    context = torch.multiprocessing.get_context(method)
    with itt.range("main"):
        children = [context.Process(target=work, args=(i, 5 + i)) for i in range(2)]
        [child.start() for child in children]
        [child.join() for child in children]
    say(os.getpid(), 1, "main")
    return any(child.exitcode for child in children)


if __name__ == "__main__":
    sys.exit(loader() if sys.argv[1] == "loader" else processes(sys.argv[1]))
