/*
 * Every entry point of the ITT API, through the real static ittnotify, with values that are known.
 *
 *	itt_api SCENARIO...	see the tables api_spans, api_data, api_other and api_legacy
 *	itt_api all		those that leave the process as it was
 *	itt_api list		the entry points that the static part knows, and "yes" for those
 *				that a collector has taken over
 *	itt_api no-clock		reading the time stamp counter is a SIGSEGV from here on
 */
#include <sys/prctl.h>

#include <ittnotify.h>

#include "itt_api.h"

static const struct scenario *const tables[] = { api_spans, api_data, api_other, api_legacy };

/* The heads of ittnotify_config.h's structures, which the static part exports for collectors. */
struct api_info {
	const char *name;
	void **func_ptr;
	void *init_func;
	void *null_func;
	int group;
};

struct api_global {
	unsigned char magic[8];
	unsigned long version_major, version_minor, version_build;
	volatile long api_initialized, mutex_initialized, atomic_counter;
	pthread_mutex_t mutex;
	void *lib;
	void *error_handler;
	const char **dll_path_ptr;
	struct api_info *api_list_ptr;
};

extern struct api_global __itt__ittapi_global;

static void list(void)
{
	/* the create functions do not look for a collector, others do */
	fact("timestamp", "%llu", (__itt_get_timestamp()));
	for (const struct api_info *one = __itt__ittapi_global.api_list_ptr; one->name; one++) {
		void *now = *one->func_ptr;

		printf("entry: %s %s\n", one->name,
		       now && now != one->init_func && now != one->null_func ? "yes" : "no");
	}
}

/* `word` may be "all". */
static int run(const char *word)
{
	bool all = !strcmp(word, "all");
	int found = 0;

	if (!strcmp(word, "list")) {
		list();
		return 1;
	}
	if (!strcmp(word, "no-clock"))
		return !prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct scenario *one = tables[t]; one->name; one++)
			if (all ? !one->alone : !strcmp(word, one->name)) {
				one->run();
				found++;
			}
	return found;
}

int main(int argc, char **argv)
{
	fact("main", "%d", (int)getpid());
	for (int i = 1; i < argc; i++)
		if (!run(argv[i])) {
			fprintf(stderr, "itt_api: no scenario %s\n", argv[i]);
			return 2;
		}
	return 0;
}
