/*
 * Memory that lives as long as the process.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lock.h"
#include "self.h"
#include "sys.h"

#define ARENA 65536u

/* zeroed memory; the first piece is there already: most programs need no more */
static _Alignas(16) char first[2048];
static char *arena = first, *arena_end = first + sizeof(first);

void *xs_map_memory(size_t size)
{
	long map = xs_sys(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (map >= 0 || map < -4095)
		return (void *)map;
	if (map == -ENOMEM) /* and not in a sandbox, which is reported elsewhere */
		xs_tell_unseen(XS_UNSEEN_MEMORY);
	return NULL;
}

void *xs_arena_locked(size_t size)
{
	void *result = NULL;

	size = (size + 15) & ~(size_t)15;
	if (size > ARENA / 2 && size > (size_t)(arena_end - arena))
		return xs_map_memory(size);
	if (size > (size_t)(arena_end - arena)) {
		char *fresh = xs_map_memory(ARENA);

		if (!fresh)
			return NULL; /* a smaller piece may still fit */
		arena = fresh;
		arena_end = arena + ARENA;
	}
	result = arena;
	arena += size;
	return result;
}

void xs_arena_forget(void)
{
	arena = arena_end = NULL;
}

void *xs_arena(size_t size)
{
	struct xs_entered entered;
	void *result = NULL;

	xs_enter(&entered);
	if (xs_lock(&xs_gate->lock)) {
		result = xs_arena_locked(size);
		xs_unlock(&xs_gate->lock);
	}
	xs_leave(&entered);
	return result;
}

void *xs_table_make(struct xs_table *table)
{
	void *fresh = xs_arena(table->size), *there = NULL;

	/* two threads at once: what one of them got is lost */
	if (fresh &&
	    !atomic_compare_exchange_strong_explicit(&table->memory, &there, fresh,
						     memory_order_release, memory_order_acquire))
		return there;
	return fresh;
}
