/*
 * Maps from an application's handles to a word of ours. Lookups take no lock; a handle that exists
 * is found while others come and go. A map grows by a further table, twice as large: what an older
 * one holds stays where it is.
 */
#ifndef XS_HANDLES_H
#define XS_HANDLES_H

#include <stdatomic.h>
#include <stdint.h>

struct xs_handle {
	_Atomic(const void *) key;
	_Atomic uint64_t value;
};

struct xs_handle_table {
	struct xs_handle_table *older;
	uint32_t mask;	       /* of places, less one */
	_Atomic uint32_t used; /* places that ever held a handle */
	struct xs_handle places[];
};

struct xs_handles {
	/* of the first table, which is made with the first handle; a power of two */
	const uint32_t size;
	_Atomic(struct xs_handle_table *) newest;
};

/* Handles are addresses: those that lie close together share pages of the table too. */
static inline uint32_t xs_handle_place(const void *key)
{
	uintptr_t word = (uintptr_t)key;

	return (uint32_t)((word >> 4) + (word >> 20) * 0x9e3779b1u);
}

/* The rest of xs_handle_find(). */
_Atomic uint64_t *xs_handle_search(struct xs_handle_table *newest, const void *key);

/* The value of a handle; NULL: unknown. */
static inline _Atomic uint64_t *xs_handle_find(struct xs_handles *handles, const void *key)
{
	/* pairs with the exchange in xs_handle_add() */
	struct xs_handle_table *table =
		atomic_load_explicit(&handles->newest, memory_order_acquire);
	struct xs_handle *handle;

	if (!table || !key)
		return 0;
	handle = &table->places[xs_handle_place(key) & table->mask];
	if (__builtin_expect(atomic_load_explicit(&handle->key, memory_order_acquire) == key, 1))
		return &handle->value;
	return xs_handle_search(table, key);
}

/* The same, of a new handle too, whose value is 0 then; NULL: no memory. */
_Atomic uint64_t *xs_handle_add(struct xs_handles *handles, const void *key);
void xs_handle_remove(struct xs_handles *handles, const void *key);
/* Calls the function for each handle that has this value; it may remove it. */
void xs_handle_each(struct xs_handles *handles, uint64_t value, void (*each)(const void *key));

/* A value that is a pointer; NULL: unknown. */
static inline void *xs_handle_get(struct xs_handles *handles, const void *key)
{
	_Atomic uint64_t *value = xs_handle_find(handles, key);

	return value ? (void *)(uintptr_t)atomic_load_explicit(value, memory_order_acquire) : 0;
}

#endif
