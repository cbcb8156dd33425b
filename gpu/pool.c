#include "pool.h"

#include "collector.h"

void *xs_pool_at(struct xs_pool *pool, uint32_t i)
{
	/* pairs with the compare-exchange in fresh() */
	char *chunk = i < XS_POOL_CHUNK * XS_POOL_CHUNKS
			      ? atomic_load_explicit(&pool->chunks[i / XS_POOL_CHUNK], memory_order_acquire)
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
		chunk = xs_arena((size_t)XS_POOL_CHUNK * pool->size);
		if (!chunk)
			return NULL;
		/* two threads at once: the chunk of one is lost */
		atomic_compare_exchange_strong(&pool->chunks[i / XS_POOL_CHUNK], &none, chunk);
	}
	return xs_pool_at(pool, i);
}

static struct xs_pool_item *take_all(_Atomic(struct xs_pool_item *) *list)
{
	if (!atomic_load_explicit(list, memory_order_relaxed))
		return NULL;
	/* pairs with the releases of those who put objects there */
	return atomic_exchange_explicit(list, NULL, memory_order_acquire);
}

static void give_back(struct xs_pool *pool, struct xs_pool_item *first, struct xs_pool_item *last)
{
	struct xs_pool_item *top = atomic_load_explicit(&pool->returned, memory_order_relaxed);

	/* nobody takes single objects from there, so what `top` points to cannot have come and gone */
	do
		last->next = top;
	while (!atomic_compare_exchange_weak_explicit(&pool->returned, &top, first, memory_order_release,
						      memory_order_relaxed));
}

void *xs_pool_get(struct xs_pool *pool, uint32_t any)
{
	struct xs_pool_item *first = take_all(&pool->shelf[any % XS_POOL_SHELVES].first), *rest, *none;

	if (!first)
		first = take_all(&pool->returned);
	for (uint32_t i = 1; !first && i < XS_POOL_SHELVES; i++)
		first = take_all(&pool->shelf[(any + i) % XS_POOL_SHELVES].first);
	if (!first)
		return fresh(pool);
	rest = first->next;
	if (!rest)
		return first;
	/* the next one was last in the other thread's cache: what it takes to get it back runs beside the caller's work */
	for (uint32_t at = 0; at < pool->size; at += 64)
		__builtin_prefetch((char *)rest + at, 1);
	for (uint32_t i = 0; i < XS_POOL_SHELVES; i++) {
		none = NULL;
		if (atomic_compare_exchange_strong_explicit(&pool->shelf[(any + i) % XS_POOL_SHELVES].first, &none, rest,
							    memory_order_release, memory_order_relaxed))
			return first;
	}
	for (none = rest; none->next; none = none->next)
		;
	give_back(pool, rest, none);
	return first;
}

void xs_pool_put(struct xs_pool *pool, void *object)
{
	give_back(pool, object, object);
}
