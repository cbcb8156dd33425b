#include "pool.h"

#include "collector.h"

void *xs_pool_at(struct xs_pool *pool, uint32_t i)
{
	/* pairs with the compare-exchange in fresh() */
	char *chunk = i < XS_POOL_CHUNK * XS_POOL_CHUNKS
			      ? atomic_load_explicit(&pool->chunks[i / XS_POOL_CHUNK],
						     memory_order_acquire)
			      : NULL;

	return chunk ? chunk + (size_t)(i % XS_POOL_CHUNK) * pool->size : NULL;
}

static void *fresh(struct xs_pool *pool)
{
	uint32_t i = atomic_fetch_add_explicit(&pool->count, 1, memory_order_relaxed);
	char *chunk, *none = NULL;

	if (i >= XS_POOL_CHUNK * XS_POOL_CHUNKS) {
		atomic_fetch_sub_explicit(&pool->count, 1, memory_order_relaxed);
		return NULL;
	}
	if (!xs_pool_at(pool, i)) {
		chunk = xs_arena((size_t)XS_POOL_CHUNK * pool->size + 64);
		if (!chunk)
			return NULL;
		chunk += -(uintptr_t)chunk % 64;
		/* two threads at once: the chunk of one is lost */
		atomic_compare_exchange_strong(&pool->chunks[i / XS_POOL_CHUNK], &none, chunk);
	}
	return xs_pool_at(pool, i);
}

static void give_back(struct xs_pool *pool, struct xs_pool_item *first, struct xs_pool_item *last)
{
	struct xs_pool_item *top = atomic_load_explicit(&pool->returned, memory_order_relaxed);

	/*
	 * no thread takes single objects from there, so `top` cannot have been taken and given back
	 * meanwhile (ABA)
	 */
	do
		last->next = top;
	while (!atomic_compare_exchange_weak_explicit(&pool->returned, &top, first,
						      memory_order_release, memory_order_relaxed));
}

void *xs_pool_get(struct xs_pool *pool, struct xs_pool_item **spare)
{
	struct xs_pool_item *first = *spare;

	if (!first && atomic_load_explicit(&pool->returned, memory_order_relaxed)) {
		/* pairs with the release in give_back() */
		first = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
	}
	if (!first)
		return fresh(pool);
	*spare = first->next;
	/*
	 * the next one was last in the other thread's cache: what it takes to get it back runs
	 * beside the caller's work
	 */
	if (first->next)
		__builtin_prefetch(first->next, 1);
	return first;
}

void xs_pool_put(struct xs_pool *pool, void *object)
{
	give_back(pool, object, object);
}

void xs_pool_put_spare(struct xs_pool *pool, struct xs_pool_item **spare)
{
	struct xs_pool_item *first, *last;

	if (!*spare)
		return;
	/*
	 * what came back meanwhile is walked through, not the many that the thread may have taken:
	 * a thread that ends soon is no dearer for them
	 */
	first = last = atomic_exchange_explicit(&pool->returned, *spare, memory_order_acq_rel);
	*spare = NULL;
	if (!first)
		return;
	while (last->next)
		last = last->next;
	give_back(pool, first, last);
}
