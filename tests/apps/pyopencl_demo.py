#!/usr/bin/env python3
"""A vector addition with pyopencl, whose wheel brings an OpenCL loader of its own: neither linked
with the system's nor found by its name, and called from a Python extension.

    pyopencl_demo.py [SIZE]     default 100000
"""

import sys

import numpy as np
import pyopencl as cl

SOURCE = """
kernel void vector_add(global const float *a, global const float *b, global float *sum)
{
    size_t i = get_global_id(0);
    sum[i] = a[i] + b[i];
}
"""


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    a = np.arange(size, dtype=np.float32)
    b = np.full(size, 2, dtype=np.float32)
    total = np.empty_like(a)

    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(), "vector_add")
    device_a, device_b, device_total = (
        cl.Buffer(context, cl.mem_flags.READ_WRITE, a.nbytes) for _ in range(3)
    )

    cl.enqueue_copy(queue, device_a, a)
    cl.enqueue_copy(queue, device_b, b, is_blocking=False)
    event = kernel(queue, a.shape, None, device_a, device_b, device_total)
    event.wait()
    cl.enqueue_copy(queue, total, device_total)

    correct = bool((total == a + b).all())
    print(f"pyopencl {cl.VERSION_TEXT} on {device.name}")
    print(f"Results are {'CORRECT' if correct else 'WRONG'}")
    print("expected: 2 writes\nexpected: 1 reads")
    print("expected: 1 kernels vector_add\nexpected: 1 kernels")
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(main())
