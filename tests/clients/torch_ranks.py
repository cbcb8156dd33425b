"""A rank of torchrun with gloo: collectives under emit_itt(). Prints what it traced."""

import os

import torch
import torch.distributed as dist


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    data = torch.ones(1000)
    with torch.autograd.profiler.emit_itt():
        for _ in range(3):
            dist.all_reduce(data)
        dist.broadcast(data, 0)
        dist.barrier()
    assert data[0] == dist.get_world_size() ** 3
    text = f"process: {os.getpid()}\n"
    for count, name in (3, "allreduce_"), (1, "broadcast_"), (1, "barrier"):
        text += f"expected: {count} tasks PyTorch::c10d::{name}\n"
    os.write(1, text.encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
