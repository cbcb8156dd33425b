/*
 * Memory that lives as long as the process.
 */
#include "self.h"
#include "sys.h"

#define CHUNK 65536u

/*
 * Pieces are taken without a lock: threads that all have something new at once (names) would hand
 * one to each other, a switch of threads each time. A handler may take one in the middle, and a
 * child of fork goes on with a copy.
 */
struct chunk {
	char *memory; /* zeroed */
	size_t size;
	_Atomic size_t used;
};

/* the first one is there already: most programs need no more */
static _Alignas(16) char memory[2048];
static struct chunk first = { memory, sizeof(memory), 0 };
static struct chunk *_Atomic current = &first;

static void *map_memory(size_t size)
{
	void *map = xs_map_memory(size);

	if (!map && !xs_is_sealed()) /* what a sandbox refuses is reported elsewhere */
		xs_tell_unseen(XS_UNSEEN_MEMORY);
	return map;
}

/* NULL: there is not so much. */
static void *take(struct chunk *chunk, size_t size)
{
	size_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);

	do {
		if (size > chunk->size - used)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&chunk->used, &used, used + size,
							memory_order_relaxed,
							memory_order_relaxed));
	return chunk->memory + used;
}

static struct chunk *new_chunk(void)
{
	struct chunk *fresh = map_memory(CHUNK);
	size_t head = (sizeof(*fresh) + 15) & ~(size_t)15;

	if (!fresh)
		return NULL;
	fresh->memory = (char *)fresh + head;
	fresh->size = CHUNK - head;
	return fresh;
}

void *xs_arena(size_t size)
{
	/* pairs with the release of the thread that has made it */
	struct chunk *chunk = atomic_load_explicit(&current, memory_order_acquire), *fresh;
	void *piece;

	size = (size + 15) & ~(size_t)15;
	while (!(piece = take(chunk, size))) {
		if (size > CHUNK / 2)
			return map_memory(size);
		fresh = new_chunk();
		if (!fresh)
			return NULL; /* a smaller piece may still fit */
		if (atomic_compare_exchange_strong_explicit(&current, &chunk, fresh,
							    memory_order_acq_rel,
							    memory_order_acquire))
			chunk = fresh;
		else /* another thread was quicker */
			(void)xs_sys(SYS_munmap, fresh, CHUNK);
	}
	return piece;
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
