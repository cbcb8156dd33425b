/*
 * This library's own functions by name.
 */
#ifndef XS_ITT_OWN_H
#define XS_ITT_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its table of symbols, as ELF has it. */
struct itt_own {
	const void *symbols;
	const char *names;
	const uint32_t *buckets;
	uint32_t bucket_count, first;
};

/* False: the library was linked in an odd way. */
bool itt_own_open(struct itt_own *own);
/* `length` bytes of `name`. NULL: it is none of what the library exports. */
void *itt_own_function(const struct itt_own *own, const char *name, size_t length);

#endif
