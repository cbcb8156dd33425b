"""Products of matrices by dpnp (oneMKL), on Intel's OpenCL for processors: how long one takes (ns), in a loop that waits for each."""

import sys
import time

import dpnp

SIZE, COUNT = 256, int(sys.argv[1])
a = dpnp.ones((SIZE, SIZE), dtype=dpnp.float32, device="opencl:cpu")
for times in (COUNT // 10, COUNT):
    begin = time.monotonic_ns()
    for _ in range(times):
        dpnp.matmul(a, a)
        a.sycl_queue.wait()
    taken = (time.monotonic_ns() - begin) / times
print("product", taken)
