/* Built without the OpenCL headers: no function has a name. */
#include "functions.h"

extern const char *const xs_opencl_names[];
extern const uint32_t xs_opencl_count;
extern const struct xs_api xs_opencl_arguments;

const char *const xs_opencl_names[1] = { "" };
const uint32_t xs_opencl_count = 0;
const struct xs_api xs_opencl_arguments = { .count = 0 };
