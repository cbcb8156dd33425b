/* Built without the Level Zero headers: no function has a name. */
#include "functions.h"

extern const char *const xs_level_zero_names[];
extern const uint32_t xs_level_zero_count;
extern const struct xs_api xs_level_zero_arguments;

const char *const xs_level_zero_names[1] = { "" };
const uint32_t xs_level_zero_count = 0;
const struct xs_api xs_level_zero_arguments = { .count = 0 };
