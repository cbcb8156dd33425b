/*
 * How an OpenMP runtime finds us: it looks for ompt_start_tool() in the process when it starts,
 * which is with the program's first region. GCC's libgomp does not look.
 */
#include "openmp.h"
#include "shm.h"

static struct ompt_tool *theirs; /* of the runtime that starts just now, or started last */

static const struct omp_callback *const lists[] = { omp_of_regions, omp_of_tasks, omp_of_locks,
						    omp_of_target };

ompt_function omp_ours(int event)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const struct omp_callback *c = lists[i]; c->event; c++)
			if (c->event == event)
				return c->function;
	return NULL;
}

static int start(ompt_lookup *lookup, int device, union ompt_word *word)
{
	ompt_set_callback *set = (ompt_set_callback *)lookup("ompt_set_callback");

	(void)word;
	omp_thread_start();
	omp_chain_start(theirs, lookup, device);
	if (!set)
		return theirs != NULL;
	/* what a runtime does not have it refuses, and nothing is shown of it */
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const struct omp_callback *c = lists[i]; c->event; c++)
			(void)set(c->event, c->function);
	return 1;
}

static void end(union ompt_word *word)
{
	(void)word;
	omp_chain_end();
}

__attribute__((visibility("default"))) struct ompt_tool *ompt_start_tool(unsigned version,
									 const char *runtime);
struct ompt_tool *ompt_start_tool(unsigned version, const char *runtime)
{
	static struct ompt_tool tool = { .initialize = start, .finalize = end };
	const struct xs_options *options = xs_collector_options();
	struct ompt_tool *others =
		omp_others_tool(version, runtime, options && xs_want_openmp(options));

	if (!options || !xs_want_openmp(options))
		return others;
	theirs = others;
	xs_tell_unseen(XS_SEEN_OPENMP);
	return &tool;
}
