/*
 * What kernels.c and sycl/sycl.hpp agree about: how a SYCL kernel is called, and the text that its
 * name is written over.
 */
#ifndef UNITRACE_CLOSURE_H
#define UNITRACE_CLOSURE_H

#include <stdint.h>

#define UNITRACE_NAME_MARK "the name of a SYCL kernel comes here"
enum { UNITRACE_NAME_MAX = 1024 };

typedef void unitrace_kernel_function(void *closure, const uint32_t *id, const uint32_t *count,
				      const uint32_t *size);

#endif
