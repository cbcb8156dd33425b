/*
 * Memory for what is rare: the application's allocator is never entered. Blocks are given out
 * again, and never given back.
 */
#include "mpi_wrap.h"

#include <sys/mman.h>

#include "sys.h"

#define CLASSES 40u
static void *spare[CLASSES]; /* blocks of 1 << class bytes */
static _Atomic uint32_t memory_lock;

static uint32_t class_of(size_t size)
{
	uint32_t class = 6;

	while ((size_t)1 << class < size)
		class ++;
	return class;
}

void *xs_mpi_take(size_t size)
{
	static char *rest, *rest_end;
	uint32_t class = class_of(size);
	size_t bytes = (size_t)1 << class;
	void *block = NULL;

	if (class >= CLASSES)
		return NULL;
	xs_lock_robust(&memory_lock);
	block = spare[class];
	if (block) {
		spare[class] = *(void **)block;
	} else {
		if (bytes > (size_t)(rest_end - rest)) {
			size_t chunk = bytes > 65536 ? bytes : 65536;
			long map = xs_sys(SYS_mmap, NULL, chunk, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			bool failed = map < 0 && map > -4096;

			rest = failed ? NULL : (char *)map;
			rest_end = failed ? NULL : rest + chunk;
		}
		block = rest;
		rest = rest ? rest + bytes : NULL;
	}
	xs_unlock(&memory_lock);
	return block;
}

void xs_mpi_give(void *block, size_t size)
{
	uint32_t class = class_of(size);

	if (!block)
		return;
	xs_lock_robust(&memory_lock);
	*(void **)block = spare[class];
	spare[class] = block;
	xs_unlock(&memory_lock);
}
