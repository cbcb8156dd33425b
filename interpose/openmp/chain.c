/*
 * A tool of the program's own: it works as without us. A runtime takes one tool alone, so we are
 * that one and call the other; the words that the runtime keeps for its tool are the other's then,
 * and ours are in a map.
 */
#include "openmp.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"

static _Atomic(ompt_function) others[OMPT_EVENTS]; /* the other tool's callbacks */
static struct ompt_tool *chained;		   /* NULL: there is no other tool */
static ompt_set_callback *runtime_set;
static ompt_lookup *runtime_lookup;
static struct xs_handles words = { .size = 4096 };

/* ---- who it is ---- */

/*
 * The runtime that looks for a tool keeps the library that it finds, as the loader does for each
 * dlsym() of RTLD_DEFAULT. We are not the runtime: so its library stays by our doing.
 */
static void keep(ompt_start *start)
{
	Dl_info info;

	if (dladdr(*(void **)&start, &info) && info.dli_fname)
		(void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static struct ompt_tool *ask(ompt_start *start, unsigned version, const char *runtime)
{
	struct ompt_tool *tool = start ? start(version, runtime) : NULL;

	if (tool)
		keep(start);
	return tool;
}

/* Of a list of files that is separated by colons, as the runtime reads it where there is no tool.
 */
static struct ompt_tool *from_files(const char *list, unsigned version, const char *runtime)
{
	struct ompt_tool *tool = NULL;

	while (!tool && *list) {
		char part[512];
		size_t length = strcspn(list, ":");
		void *library;

		if (length && length < sizeof(part)) {
			memcpy(part, list, length);
			part[length] = '\0';
			library = dlopen(part, RTLD_LAZY);
			if (library) {
				ompt_start *start = NULL;

				*(void **)&start = dlsym(library, "ompt_start_tool");
				tool = ask(start, version, runtime);
			}
		}
		list += length + (list[length] == ':');
	}
	return tool;
}

struct ompt_tool *omp_others_tool(unsigned version, const char *runtime, bool with_files)
{
	const char *files = getenv("OMP_TOOL_LIBRARIES");
	ompt_start *next = NULL;
	struct ompt_tool *tool;

	*(void **)&next = dlsym(RTLD_NEXT, "ompt_start_tool");
	tool = ask(next, version, runtime);
	/* without us, the runtime itself opens these */
	return tool || !with_files || !files ? tool : from_files(files, version, runtime);
}

/* ---- its callbacks ---- */

ompt_function omp_others(int event)
{
	return atomic_load_explicit(&others[event], memory_order_acquire);
}

static int set_for_others(int event, ompt_function callback)
{
	if (event <= 0 || event >= OMPT_EVENTS || !omp_ours(event))
		return runtime_set(event, callback);
	atomic_store_explicit(&others[event], callback, memory_order_release);
	/* asked only to learn whether the runtime has the event */
	return runtime_set(event, omp_ours(event));
}

static int get_for_others(int event, ompt_function *ret)
{
	ompt_get_callback *get = (ompt_get_callback *)runtime_lookup("ompt_get_callback");

	if (event <= 0 || event >= OMPT_EVENTS || !omp_ours(event))
		return get ? get(event, ret) : 0;
	*ret = omp_others(event);
	return *ret != NULL;
}

static ompt_function lookup_for_others(const char *name)
{
	if (!strcmp(name, "ompt_set_callback"))
		return (ompt_function)set_for_others;
	if (!strcmp(name, "ompt_get_callback"))
		return (ompt_function)get_for_others;
	return runtime_lookup(name);
}

static void forget(void)
{
	chained = NULL;
	for (int i = 0; i < OMPT_EVENTS; i++)
		atomic_store_explicit(&others[i], NULL, memory_order_release);
}

void omp_chain_start(struct ompt_tool *tool, ompt_lookup *lookup, int device)
{
	runtime_lookup = lookup;
	runtime_set = (ompt_set_callback *)lookup("ompt_set_callback");
	chained = tool;
	if (runtime_set && tool && tool->initialize &&
	    tool->initialize(lookup_for_others, device, &tool->word))
		return;
	/* one that an earlier runtime had is gone: else it would have been found again */
	forget();
}

void omp_chain_end(void)
{
	struct ompt_tool *tool = chained;

	if (tool && tool->finalize)
		tool->finalize(&tool->word);
}

/* ---- words ---- */

uint64_t omp_word(const union ompt_word *of)
{
	_Atomic uint64_t *value;

	if (!of)
		return 0;
	if (__builtin_expect(!chained, 1))
		return of->value;
	value = xs_handle_find(&words, of);
	return value ? atomic_load_explicit(value, memory_order_acquire) : 0;
}

void omp_set_word(union ompt_word *of, uint64_t new)
{
	_Atomic uint64_t *value;

	if (!of)
		return;
	if (__builtin_expect(!chained, 1)) {
		of->value = new;
		return;
	}
	value = new ? xs_handle_add(&words, of) : xs_handle_find(&words, of);
	if (value)
		atomic_store_explicit(value, new, memory_order_release);
}

void omp_drop_word(union ompt_word *of)
{
	if (__builtin_expect(chained != NULL, 0) && of)
		xs_handle_remove(&words, of);
}
