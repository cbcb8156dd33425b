/*
 * Memory of our own that is used again, of one size for each purpose: what is too large for the
 * stack of a thread that calls us, and what comes and goes with the application's objects. It is
 * never freed, so a stale reference finds memory.
 */
#ifndef XS_SPARE_H
#define XS_SPARE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct xs_spare {
	void *first;
	_Atomic uint32_t lock;
};

/* As it was given back, but for its first word; NULL: none left. */
void *xs_spare_take(struct xs_spare *spare, size_t size);
/* The same, zeroed. */
void *xs_spare_take_zeroed(struct xs_spare *spare, size_t size);
void xs_spare_give(struct xs_spare *spare, void *memory);

#endif
