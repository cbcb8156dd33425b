/*
 * Threads that all trace tasks with new names at once:
 *	itt_fresh THREADS NAMES
 * Says how often they had to wait while they did: ru_nvcsw of getrusage().
 */
#include <sys/resource.h>

#include "itt_app.h"

#define THREADS_MAX 64

static __itt_domain *domain;
static __itt_string_handle **handles;
static long names;

static void *trace(void *first)
{
	for (long i = 0; i < names; i++)
		finished_task(domain, ((__itt_string_handle **)first)[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[1]) : 1;
	pthread_t threads[THREADS_MAX];
	struct rusage before, after;
	char name[32];

	names = argc > 2 ? atol(argv[2]) : 1;
	domain = __itt_domain_create("fresh");
	handles = calloc((size_t)(count * names), sizeof(*handles));
	for (long i = 0; i < count * names; i++) {
		(void)snprintf(name, sizeof(name), "name %ld", i);
		handles[i] = __itt_string_handle_create(name);
	}
	(void)getrusage(RUSAGE_SELF, &before);
	for (long i = 0; i < count; i++)
		threads[i] = start_thread(trace, handles + i * names);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	(void)getrusage(RUSAGE_SELF, &after);
	printf("waits: %ld\n", after.ru_nvcsw - before.ru_nvcsw);
	free(handles);
	return 0;
}
