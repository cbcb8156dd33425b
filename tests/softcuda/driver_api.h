/* What the generated functions of the driver need. */
#include "driver.h"

#include <cupti.h>

static inline void sc_driver_start(void)
{
}
