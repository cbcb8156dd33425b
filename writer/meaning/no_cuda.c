/* Built without the headers of CUPTI: no function has a name. */
#include "functions.h"

extern const char *const xs_cuda_names[];
extern const uint32_t xs_cuda_count;
extern const struct xs_api xs_cuda_arguments;

const char *const xs_cuda_names[1] = { "" };
const uint32_t xs_cuda_count = 0;
const struct xs_api xs_cuda_arguments = { .count = 0 };
