/*
 * What must run before all else at the end of the program. The C library runs what was registered
 * with atexit() in the opposite order, and the runtimes that we wait for register destructors at
 * any time, in threads of theirs, too. So each that comes is followed by ours again (exits.c).
 */
#include "first.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static _Atomic(void (*)(void)) wanted;

bool xs_first_is_wanted(void)
{
	return atomic_load_explicit(&wanted, memory_order_acquire) != NULL;
}

/* Once; then it is too late for those that come. */
void xs_first_run(void)
{
	void (*function)(void) = atomic_exchange(&wanted, NULL);

	if (function)
		function();
}

void xs_first_at_exit(void (*function)(void))
{
	if (!atomic_exchange(&wanted, function))
		(void)atexit(xs_first_run);
}
