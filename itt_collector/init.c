/*
 * How a static ittnotify finds us, and the table of what it gets.
 */
#include "itt.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "own.h"
#include "version.h"

/* Analyses that a tracer does not make; there for clients that look the names up themselves. */
#define NOTHING(name, ...)                    \
	EXPORT void __itt_##name(__VA_ARGS__) \
	{                                     \
	}
NOTHING(enable_attach, void)
NOTHING(suppress_push, unsigned mask __attribute__((unused)))
NOTHING(suppress_pop, void)
NOTHING(suppress_mark_range, int mode __attribute__((unused)),
	unsigned mask __attribute__((unused)), void *address __attribute__((unused)),
	size_t size __attribute__((unused)))
NOTHING(suppress_clear_range, int mode __attribute__((unused)),
	unsigned mask __attribute__((unused)), void *address __attribute__((unused)),
	size_t size __attribute__((unused)))
NOTHING(memory_read, void *address __attribute__((unused)), size_t size __attribute__((unused)))
NOTHING(memory_write, void *address __attribute__((unused)), size_t size __attribute__((unused)))
NOTHING(memory_update, void *address __attribute__((unused)), size_t size __attribute__((unused)))
NOTHING(stack_caller_destroy, void *caller __attribute__((unused)))
NOTHING(stack_callee_enter, void *caller __attribute__((unused)))
NOTHING(stack_callee_leave, void *caller __attribute__((unused)))
NOTHING(id_create, const __itt_domain *domain __attribute__((unused)),
	__itt_id id __attribute__((unused)))
NOTHING(id_destroy, const __itt_domain *domain __attribute__((unused)),
	__itt_id id __attribute__((unused)))
NOTHING(id_create_ex, const __itt_domain *domain __attribute__((unused)),
	__itt_clock_domain *clock __attribute__((unused)),
	unsigned long long time __attribute__((unused)), __itt_id id __attribute__((unused)))
NOTHING(id_destroy_ex, const __itt_domain *domain __attribute__((unused)),
	__itt_clock_domain *clock __attribute__((unused)),
	unsigned long long time __attribute__((unused)), __itt_id id __attribute__((unused)))

EXPORT int __itt_state_get(void)
{
	return 0;
}

EXPORT int __itt_state_set(int state)
{
	return state;
}

EXPORT int __itt_obj_mode_set(int property, int state)
{
	(void)property;
	return state;
}

EXPORT int __itt_thr_mode_set(int property, int state)
{
	(void)property;
	return state;
}

/* Clients only hand it back. */
EXPORT void *__itt_stack_caller_create(void)
{
	static char caller;

	return &caller;
}

EXPORT unsigned char __itt_pt_region_create(const char *name)
{
	static _Atomic unsigned char regions;

	(void)name;
	return (unsigned char)atomic_fetch_add(&regions, 1);
}

EXPORT const char *__itt_api_version(void)
{
	return "xstrace " XS_VERSION;
}

/*
 * The library's own function for a name of the static part's table; variants for 8-bit text ("…A")
 * are the plain functions. NULL: none.
 */
static void *function_for(const struct itt_own *own, const char *name)
{
	size_t length = strlen(name);
	void *function = itt_own_function(own, name, length);

	return function || !length || name[length - 1] != 'A'
		       ? function
		       : itt_own_function(own, name, length - 1);
}

/*
 * Everything in a process that is not traced, and what we do not know, gets the function that it
 * would have without any collector.
 */
static void fill(const struct itt_global *global)
{
	const struct xs_options *options = xs_collector_options();
	struct itt_own own;
	bool wanted = options && xs_listen_to_itt(options) && itt_own_open(&own);

	for (struct itt_api_info *row = global->api_list_ptr; row->name; row++) {
		void *function = wanted ? function_for(&own, row->name) : NULL;

		*row->func_ptr = function ? function : row->null_func;
	}
}

void __itt_api_init(struct itt_global *global, int groups);
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* In a copy of this library the process's own collector does it: the same file, at another place.
 */
static bool first_fills(struct itt_global *global, int groups)
{
	const struct link_map *first = xs_first_self();
	uintptr_t own = (uintptr_t)&__ehdr_start;
	void (*init)(struct itt_global *, int);

	if (!first || first->l_addr == own)
		return false;
	init = (void (*)(struct itt_global *, int))((uintptr_t)__itt_api_init - own +
						    first->l_addr);
	init(global, groups);
	return true;
}

/* The static part whose table is being filled, with its mutex held. */
static _Atomic(struct itt_global *) starting;

/* Called by each static part when it finds us. */
EXPORT void __itt_api_init(struct itt_global *global, int groups)
{
	struct itt_global *none = NULL;
	bool is_told;

	/* groups: INTEL_ITTNOTIFY_GROUPS; all is wanted */
	if (!global || !global->api_list_ptr || first_fills(global, groups))
		return;
	/* else another one starts at the same time, and a fork in this moment is not helped */
	is_told = atomic_compare_exchange_strong(&starting, &none, global);
	fill(global);
	if (is_told)
		atomic_store(&starting, NULL);
}

/*
 * In a child of fork(), by the only thread that it has. Another thread may have been in the middle
 * of the above: it is not there to go on and to open the mutex. The static part makes a new one
 * where there is none.
 */
static void finish_start(void)
{
	struct itt_global *global = atomic_load(&starting);

	if (!global)
		return;
	fill(global);
	global->api_initialized = 1;
	global->mutex_initialized = global->atomic_counter = 0;
	atomic_store(&starting, NULL);
}

/* What pthread_atfork() of glibc calls (nptl/pthread_atfork.c). musl, which a program may have, has
 * none. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *library) __attribute__((weak));

/* Not later: a fork that has begun calls none that comes during it. */
__attribute__((constructor)) static void watch_forks(void)
{
	const struct xs_options *options = xs_collector_options();

	if (options && xs_listen_to_itt(options) && __register_atfork)
		(void)__register_atfork(NULL, NULL, finish_start, NULL);
}

EXPORT void __itt_api_fini(struct itt_global *global)
{
	(void)global; /* nothing of the static part is kept */
}
