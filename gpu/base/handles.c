#include "handles.h"

#include <stddef.h>

#include "collector.h"

static const char removed; /* its address: a place that was used, and may be again */

static struct xs_handle *place(struct xs_handle_table *table, const void *key, uint32_t probe)
{
	return &table->places[(xs_handle_place(key) + probe) & table->mask];
}

_Atomic uint64_t *xs_handle_search(struct xs_handle_table *newest, const void *key)
{
	for (struct xs_handle_table *table = newest; table; table = table->older) {
		for (uint32_t probe = 0; probe <= table->mask; probe++) {
			struct xs_handle *handle = place(table, key, probe);
			const void *found =
				atomic_load_explicit(&handle->key, memory_order_acquire);

			if (found == key)
				return &handle->value;
			if (!found)
				break;
		}
	}
	return NULL;
}

/* A place in one table; NULL: three quarters of it are used. */
static _Atomic uint64_t *add_to(struct xs_handle_table *table, const void *key)
{
	for (uint32_t probe = 0; probe <= table->mask; probe++) {
		struct xs_handle *handle = place(table, key, probe);
		const void *found = atomic_load_explicit(&handle->key, memory_order_acquire);

		if (found == key)
			return &handle->value;
		if (found && found != &removed)
			continue;
		if (!found &&
		    atomic_load_explicit(&table->used, memory_order_relaxed) > table->mask / 4 * 3)
			return NULL;
		if (!found)
			atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed);
		/*
		 * a thread that finds the key before its value is set here finds 0;
		 * xs_handle_remove() has left that
		 */
		if (atomic_compare_exchange_strong(&handle->key, &found, key) || found == key)
			return &handle->value;
	}
	return NULL;
}

/* A table behind `full` (NULL: the first). Two threads at once: that of one is lost. */
static struct xs_handle_table *grow(struct xs_handles *handles, struct xs_handle_table *full)
{
	uint64_t size = full ? 2 * ((uint64_t)full->mask + 1) : handles->size;
	struct xs_handle_table *table =
		size <= 1u << 31 ? xs_arena(sizeof(*table) + size * sizeof(table->places[0]))
				 : NULL;

	if (!table)
		return NULL;
	table->older = full;
	table->mask = (uint32_t)(size - 1);
	if (!atomic_compare_exchange_strong(&handles->newest, &full, table))
		table = full;
	return table;
}

_Atomic uint64_t *xs_handle_add(struct xs_handles *handles, const void *key)
{
	struct xs_handle_table *table =
		atomic_load_explicit(&handles->newest, memory_order_acquire);
	_Atomic uint64_t *value = xs_handle_find(handles, key);

	while (!value && key) {
		value = table ? add_to(table, key) : NULL;
		if (!value && !(table = grow(handles, table)))
			return NULL;
	}
	return value;
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

void xs_handle_each(struct xs_handles *handles, uint64_t value, void (*each)(const void *key))
{
	struct xs_handle_table *table =
		atomic_load_explicit(&handles->newest, memory_order_acquire);

	for (; table; table = table->older) {
		for (uint32_t i = 0; i <= table->mask; i++) {
			struct xs_handle *handle = &table->places[i];
			const void *key = atomic_load_explicit(&handle->key, memory_order_acquire);

			if (key && key != &removed &&
			    atomic_load_explicit(&handle->value, memory_order_relaxed) == value)
				each(key);
		}
	}
}
