/*
 * What a kernel of the software CUDA is: a function softcuda_NAME of the program (linked with
 * -rdynamic) or of a module, called once for each launch of the kernel NAME (for C++ the mangled
 * name). It finds its arguments as CUDA hands them over: pointers to their values.
 *
 * An object softcuda_info_NAME beside it is optional. Without it, the sizes of its arguments are
 * not known, and nothing can keep them until a stream gets there: such a kernel runs in the
 * call that launches it, when all work before it is done.
 */
#ifndef SOFTCUDA_H
#define SOFTCUDA_H

#include <stdint.h>

enum { SOFTCUDA_ARGS_MAX = 16 };

struct softcuda_info {
	uint32_t registers, static_shared, local_bytes;
	uint32_t arg_count, arg_sizes[SOFTCUDA_ARGS_MAX];
};

/* a kernel sets the value of a conditional node by it, as by cudaGraphSetConditional() */
void softcuda_set_conditional(unsigned long long handle, unsigned value);

typedef void (*softcuda_kernel)(void **args, const unsigned grid[3], const unsigned block[3]);

#endif
