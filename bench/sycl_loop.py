"""Products of matrices by dpctl, on Intel's OpenCL for processors: how long one takes and its CPU time (ns), in a loop that waits for each."""

import sys
import time

import dpctl
import dpctl.memory
import dpctl.program

SIZE, COUNT = 256, int(sys.argv[1])
SOURCE = """
__kernel void product(__global const float *a, __global const float *b, __global float *c)
{
	size_t x = get_global_id(0), y = get_global_id(1), n = get_global_size(0);
	float sum = 0;

	for (size_t k = 0; k < n; k++)
		sum += a[y * n + k] * b[k * n + x];
	c[y * n + x] = sum;
}
"""
queue = dpctl.SyclQueue("opencl:cpu", property="in_order")
kernel = dpctl.program.create_program_from_source(queue, SOURCE).get_sycl_kernel("product")
matrices = [dpctl.memory.MemoryUSMShared(4 * SIZE * SIZE, queue=queue) for _ in range(3)]
for times in (COUNT // 10, COUNT):
    begin, begin_cpu = time.monotonic_ns(), time.process_time_ns()
    for _ in range(times):
        queue.submit(kernel, matrices, [SIZE, SIZE]).wait()
    taken, cpu = (time.monotonic_ns() - begin) / times, (time.process_time_ns() - begin_cpu) / times
print("product", taken)
print("cpu", cpu)
