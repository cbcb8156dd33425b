/* Built without the OpenCL headers: no function has a name. */
#include <stdint.h>

extern const char *const xs_opencl_names[];
extern const uint32_t xs_opencl_count;

const char *const xs_opencl_names[1] = { "" };
const uint32_t xs_opencl_count = 0;
