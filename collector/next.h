/*
 * The function that the application would have called without us.
 *
 * dlsym() waits for the dynamic loader's lock. A library's constructor may wait, while dlopen()
 * holds that, for a thread that calls one of these functions: so each is looked for in a
 * constructor of ours, and again only where a program's own constructor comes before that.
 */
#ifndef XS_NEXT_H
#define XS_NEXT_H

#include <dlfcn.h>
#include <stdatomic.h>

static inline void *xs_next(_Atomic(void *) *slot, const char *name)
{
	void *function = atomic_load_explicit(slot, memory_order_relaxed);

	if (__builtin_expect(!function, 0)) {
		function = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(slot, function, memory_order_relaxed);
	}
	return function;
}

#endif
