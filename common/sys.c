#include "sys.h"

_Atomic uint32_t xs_seal;
