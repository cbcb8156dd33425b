/*
 * Objects that one thread takes and another gives back, for ever: commands in flight.
 *
 * Nobody waits, and the two threads meet on a shared cache line once for many objects: a thread
 * that has none left takes all that were given back, and serves itself from them without an atomic
 * operation.
 */
#ifndef XS_POOL_H
#define XS_POOL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of every free object. */
struct xs_pool_item {
	struct xs_pool_item *next;
};

#define XS_POOL_CHUNK  256u
#define XS_POOL_CHUNKS 4096u

struct xs_pool {
	uint32_t size; /* of an object; a multiple of 64 keeps two threads' objects apart */
	_Atomic uint32_t count; /* objects ever made */
	_Atomic(char *) chunks[XS_POOL_CHUNKS];
	alignas(128) _Atomic(struct xs_pool_item *) returned;
};

/* An object of which the first pointer is anything and the rest is zero if it is new, else as it
   was given back; NULL: none left. spare: the calling thread's own, NULL at first. */
void *xs_pool_get(struct xs_pool *pool, struct xs_pool_item **spare);
void xs_pool_put(struct xs_pool *pool, void *object);
/* The thread ends: others may have what it took and did not need. */
void xs_pool_put_spare(struct xs_pool *pool, struct xs_pool_item **spare);
/* Object number i of those ever made; NULL: it is just being made. */
void *xs_pool_at(struct xs_pool *pool, uint32_t i);

#endif
