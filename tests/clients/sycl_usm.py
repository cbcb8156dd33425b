"""SYCL by dpctl on an OpenCL device: kernels, copies and USM in one queue. Prints how many kernels it ran, and how long each took (ns)."""

import dpctl
import dpctl.memory
import dpctl.program

COUNT = 40
queue = dpctl.SyclQueue("opencl:cpu", property=["in_order", "enable_profiling"])
program = dpctl.program.create_program_from_source(queue, "__kernel void twice(__global float *a) { a[get_global_id(0)] *= 2; }")
kernel = program.get_sycl_kernel("twice")
shared = dpctl.memory.MemoryUSMShared(4096, queue=queue)
device = dpctl.memory.MemoryUSMDevice(4096, queue=queue)
events = [queue.submit(kernel, [shared], [1024]) for _ in range(COUNT)]
events[-1].wait()
device.copy_from_device(shared)
queue.wait()
del device
print(COUNT, *(event.profiling_info_end - event.profiling_info_start for event in events))
