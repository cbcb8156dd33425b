/*
 * Objects that one thread takes and another gives back, for ever: commands in flight.
 *
 * Nobody waits, and the two threads meet on a shared cache line once for many objects: all that were given back are taken at once
 * and put on a shelf, from where the takers serve themselves.
 */
#ifndef XS_POOL_H
#define XS_POOL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The first thing in every object. */
struct xs_pool_item {
	struct xs_pool_item *next;
};

#define XS_POOL_CHUNK 256u
#define XS_POOL_CHUNKS 4096u
#define XS_POOL_SHELVES 16u

struct xs_pool {
	uint32_t size; /* of an object; a multiple of 64 keeps two threads' objects apart */
	_Atomic uint32_t count; /* objects ever made */
	_Atomic(char *) chunks[XS_POOL_CHUNKS];
	alignas(64) _Atomic(struct xs_pool_item *) returned;
	struct {
		alignas(64) _Atomic(struct xs_pool_item *) first;
	} shelf[XS_POOL_SHELVES];
};

/* An object, zero if it is new, else as it was given back; NULL: none left. any: spreads threads over the shelves. */
void *xs_pool_get(struct xs_pool *pool, uint32_t any);
void xs_pool_put(struct xs_pool *pool, void *object);
/* Object number i of those ever made; NULL: it is just being made. */
void *xs_pool_at(struct xs_pool *pool, uint32_t i);

#endif
