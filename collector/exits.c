/*
 * In place of the C library's: what is registered to be called at the end of the program, which is
 * also every destructor of C++. It comes behind ours (first.c).
 */
#include <stddef.h>
#include <stdint.h>

#include "first.h"
#include "next.h"
#include "sys.h"

/*
 * What was registered is never taken back: a program may load and unload a library again and again,
 * whose destructors go with it. LLVM registers some hundreds.
 */
#define MOST 16384u

typedef int register_function(void (*function)(void *), void *argument, void *library);

/* Sanitizers' libraries call it before they are ready for the code that they look at. */
register_function __cxa_atexit
	__attribute__((visibility("default"), no_sanitize("address", "thread", "undefined")));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void run(void *unused)
{
	(void)unused;
	xs_first_run();
}

static _Atomic(void *) real_atexit;

__attribute__((constructor)) static void find_early(void)
{
	(void)xs_next(&real_atexit, "__cxa_atexit");
}

int __cxa_atexit(void (*function)(void *), void *argument, void *library)
{
	static _Atomic uint32_t count;
	register_function *real = xs_next(&real_atexit, "__cxa_atexit");
	int result;

	result = real(function, argument, library);
	/* in a sandbox the memory for it may be a system call that the program would not make */
	if (xs_first_is_wanted() && !xs_is_sealed() &&
	    atomic_load_explicit(&count, memory_order_relaxed) < MOST) {
		atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
		(void)real(run, NULL, &__dso_handle);
	}
	return result;
}
