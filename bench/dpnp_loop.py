"""Products of matrices by dpnp (oneMKL), on Intel's OpenCL for processors: how long one takes and its CPU time (ns), in a loop that waits for each."""

import sys
import time

import dpnp

SIZE, COUNT = 256, int(sys.argv[1])
a = dpnp.ones((SIZE, SIZE), dtype=dpnp.float32, device="opencl:cpu")
for times in (COUNT // 10, COUNT):
    begin, begin_cpu = time.monotonic_ns(), time.process_time_ns()
    for _ in range(times):
        dpnp.matmul(a, a)
        a.sycl_queue.wait()
    taken, cpu = (time.monotonic_ns() - begin) / times, (time.process_time_ns() - begin_cpu) / times
print("product", taken)
print("cpu", cpu)
