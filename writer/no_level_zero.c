/* Built without the Level Zero headers: no function has a name. */
#include <stdint.h>

extern const char *const xs_level_zero_names[];
extern const uint32_t xs_level_zero_count;

const char *const xs_level_zero_names[1] = { "" };
const uint32_t xs_level_zero_count = 0;
