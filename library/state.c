/*
 * What all files of the library know of this process, and why the last call failed.
 */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct xs_state_of_library xs_library = { .lock = PTHREAD_MUTEX_INITIALIZER,
					  .table = &xs_library_nothing };

/*
 * A pointer alone: a library that is loaded late finds little room for variables of threads.
 */
static __thread struct xs_of_thread *mine;
static pthread_key_t key;
static bool have_key;

static void forget(void *thread)
{
	mine = NULL;
	free(thread);
}

static void make_key(void)
{
	have_key = !pthread_key_create(&key, forget);
}

struct xs_of_thread *xs_of_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (__builtin_expect(mine != NULL, 1))
		return mine;
	(void)pthread_once(&once, make_key);
	if (!have_key)
		return NULL;
	mine = calloc(1, sizeof(*mine));
	if (mine && pthread_setspecific(key, mine)) {
		free(mine);
		mine = NULL;
	}
	return mine;
}

int xs_refuse(int result, const char *format, ...)
{
	struct xs_of_thread *thread = xs_of_thread();
	va_list args;

	if (!thread)
		return result;
	va_start(args, format);
	(void)vsnprintf(thread->why, sizeof(thread->why), format, args);
	va_end(args);
	return result;
}

const char *xstrace_why(void)
{
	struct xs_of_thread *thread = xs_of_thread();

	if (!thread)
		return "no memory";
	return thread->why[0] ? thread->why : "nothing has failed in this thread";
}

bool xs_is_child(void)
{
	return xs_library.pid && xs_library.pid != getpid();
}
