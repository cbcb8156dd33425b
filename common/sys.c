#include "sys.h"

_Atomic uint32_t xs_seal, xs_seal_complete, xs_sys_going;
__thread uint32_t xs_sys_mine __attribute__((tls_model("initial-exec")));
