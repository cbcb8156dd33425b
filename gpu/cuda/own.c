/* Is a call our own, and not the program's? */
#include "xs_cuda.h"

__thread bool xs_cuda_is_ours __attribute__((tls_model("initial-exec")));
