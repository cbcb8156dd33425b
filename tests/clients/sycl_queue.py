"""SYCL's runtime by dpctl: kernels and copies in one queue. KERNELS.so PROPERTIES; prints how many kernels it ran, in how many work items."""

import sys

import dpctl
import dpctl.memory
import dpctl.program

COUNT = 50
properties = [word for word in sys.argv[2].split(",") if word]
queue = dpctl.SyclQueue("level_zero:gpu", **({"property": properties} if properties else {}))
with open(sys.argv[1], "rb") as module:  # which the software driver takes for SPIR-V
    kernel = dpctl.program.create_program_from_spirv(queue, module.read()).get_sycl_kernel("empty")
shared = dpctl.memory.MemoryUSMShared(1024, queue=queue)
device = dpctl.memory.MemoryUSMDevice(1024, queue=queue)
events = [queue.submit(kernel, [], [8 + n % 3]) for n in range(COUNT)]
events[-1].wait()
device.copy_from_device(shared)
device.copy_from_host(b"x" * 1024)
queue.wait()
if "enable_profiling" in properties:
    assert all(0 < event.profiling_info_start < event.profiling_info_end for event in events)
print(COUNT, sum(8 + n % 3 for n in range(COUNT)))
