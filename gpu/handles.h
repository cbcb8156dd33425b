/*
 * Maps from an application's handles to a word of ours. Lookups take no lock; a handle that exists is found while others come and go.
 */
#ifndef XS_HANDLES_H
#define XS_HANDLES_H

#include <stdatomic.h>
#include <stdint.h>

struct xs_handle {
	_Atomic(const void *) key;
	_Atomic uint64_t value;
};

struct xs_handles {
	const uint32_t size; /* a power of two */
	_Atomic(struct xs_handle *) table; /* made with the first handle */
};

/* The value of a handle; NULL: unknown. */
_Atomic uint64_t *xs_handle_find(struct xs_handles *handles, const void *key);
/* The same, of a new handle too, whose value is 0 then; NULL: no room. */
_Atomic uint64_t *xs_handle_add(struct xs_handles *handles, const void *key);
void xs_handle_remove(struct xs_handles *handles, const void *key);

/* A value that is a pointer; NULL: unknown. */
static inline void *xs_handle_get(struct xs_handles *handles, const void *key)
{
	_Atomic uint64_t *value = xs_handle_find(handles, key);

	return value ? (void *)(uintptr_t)atomic_load_explicit(value, memory_order_acquire) : 0;
}

#endif
