#include "handles.h"

#include <stddef.h>

#include "collector.h"

static const char removed; /* its address: a place that was used, and may be again */

/* Handles are addresses: those that lie close together share pages of the table too. */
static uint32_t place(const struct xs_handles *handles, const void *key, uint32_t probe)
{
	uintptr_t word = (uintptr_t)key;

	return (uint32_t)((word >> 4) + (word >> 20) * 0x9e3779b1u + probe) & (handles->size - 1);
}

_Atomic uint64_t *xs_handle_find(struct xs_handles *handles, const void *key)
{
	/* pairs with the exchange in xs_handle_add() */
	struct xs_handle *table = atomic_load_explicit(&handles->table, memory_order_acquire);

	for (uint32_t probe = 0; table && probe < handles->size; probe++) {
		struct xs_handle *handle = &table[place(handles, key, probe)];
		const void *found = atomic_load_explicit(&handle->key, memory_order_acquire);

		if (found == key)
			return &handle->value;
		if (!found)
			break;
	}
	return NULL;
}

_Atomic uint64_t *xs_handle_add(struct xs_handles *handles, const void *key)
{
	struct xs_handle *table = atomic_load_explicit(&handles->table, memory_order_acquire), *none = NULL;
	_Atomic uint64_t *known = xs_handle_find(handles, key);

	if (known)
		return known;
	if (!table) {
		table = xs_arena(handles->size * sizeof(*table));
		if (!table)
			return NULL;
		/* two threads at once: the table of one is lost */
		if (!atomic_compare_exchange_strong(&handles->table, &none, table))
			table = none;
	}
	for (uint32_t probe = 0; probe < handles->size; probe++) {
		struct xs_handle *handle = &table[place(handles, key, probe)];
		const void *found = atomic_load_explicit(&handle->key, memory_order_acquire);

		if (found == key)
			return &handle->value;
		if (found && found != &removed)
			continue;
		/* whoever finds the key before its value is set here finds 0; xs_handle_remove() has left that */
		if (atomic_compare_exchange_strong(&handle->key, &found, key) || found == key)
			return &handle->value;
	}
	return NULL;
}

void xs_handle_remove(struct xs_handles *handles, const void *key)
{
	_Atomic uint64_t *value = xs_handle_find(handles, key);
	struct xs_handle *handle;

	if (!value)
		return;
	handle = (struct xs_handle *)((char *)value - offsetof(struct xs_handle, value));
	atomic_store_explicit(value, 0, memory_order_relaxed);
	atomic_store_explicit(&handle->key, &removed, memory_order_release);
}
