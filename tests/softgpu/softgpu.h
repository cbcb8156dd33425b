/*
 * What a module for the software GPU is: an ordinary ELF shared object that exports
 * softgpu_kernels[], ended by a row without a name. zeModuleCreate() gets its bytes as a native
 * binary; they stand for SPIR-V as well, to be compiled "just in time".
 */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <stddef.h>
#include <stdint.h>

/*
 * One work-group of one launch: a kernel is called once for each, its work-items are its own
 * business.
 */
struct softgpu_group {
	uint32_t id[3], count[3], size[3];
	const unsigned char *args;
};

enum { SOFTGPU_ARG_SIZE = 16, SOFTGPU_ARGS_MAX = 32 };

/*
 * Argument `index` as bytes; one that was set without a value (local memory) is a pointer to that
 * much memory.
 */
#define SOFTGPU_ARG(group, index, type) \
	(*(type const *)((group)->args + (size_t)(index) * SOFTGPU_ARG_SIZE))

struct softgpu_kernel {
	const char *name;
	void (*run)(const struct softgpu_group *group);
	uint32_t args, simd;
	uint32_t local_bytes, private_bytes, spill_bytes; /* as zeKernelGetProperties tells them */
	uint32_t registers; /* of a thread, as the register file extension tells them */
};

#endif
