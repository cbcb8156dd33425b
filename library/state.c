/*
 * What all files of the library know of this process, and why the last call failed.
 */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

struct xs_state_of_library xs_library = { .lock = PTHREAD_MUTEX_INITIALIZER,
					  .table = &xs_library_nothing };

static __thread char why[512];

int xs_refuse(int result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	return result;
}

const char *xstrace_why(void)
{
	return why[0] ? why : "nothing has failed in this thread";
}

bool xs_is_child(void)
{
	return xs_library.pid && xs_library.pid != getpid();
}
