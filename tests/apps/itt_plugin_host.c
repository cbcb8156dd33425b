/*
 * Opens, uses and closes the plug-in of itt_plugin.c 20 times, tracing itself in between, while
 * another thread traces all the time.
 *
 *	itt_plugin_host [PLUGIN]	default: itt_plugin.so beside the program
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include "itt_app.h"

#define ROUNDS 20

static __itt_domain *domain;
static __itt_string_handle *before, *during;

static void find_plugin(char *ret_path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		die("/proc/self/exe");
	self[n] = '\0';
	if (snprintf(ret_path, size, "%s/itt_plugin.so", dirname(self)) >= (int)size)
		die("path too long");
}

static void use_plugin(const char *path, int round)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*work)(int);

	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&work = dlsym(plugin, "plugin_work");
	if (!work) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	work(round);
	if (dlclose(plugin)) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	if (round == 0)
		printf("unloaded: %s\n", dlopen(path, RTLD_NOW | RTLD_NOLOAD) ? "no" : "yes");
}

static _Atomic bool stop;

static void *trace_meanwhile(void *ret_count)
{
	long *count = ret_count;

	while (!stop) {
		finished_task(domain, during);
		(*count)++;
		sleep_ms(1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	long meanwhile = 0;
	pthread_t thread;

	if (argc > 1)
		snprintf(path, sizeof(path), "%s", argv[1]);
	else
		find_plugin(path, sizeof(path));

	domain = __itt_domain_create("host");
	before = __itt_string_handle_create("before");
	during = __itt_string_handle_create("meanwhile");
	thread = start_thread(trace_meanwhile, &meanwhile);
	for (int round = 0; round < ROUNDS; round++) {
		finished_task(domain, before);
		use_plugin(path, round);
		sleep_ms(2);
	}
	stop = true;
	pthread_join(thread, NULL);

	for (int round = 0; round < ROUNDS; round++)
		printf("expected: 1 tasks plugin::round %d\n", round);
	printf("expected: %d tasks host::before\n", ROUNDS);
	printf("expected: %ld tasks host::meanwhile\n", meanwhile);
	printf("expected: %ld tasks\n", 2 * ROUNDS + meanwhile);
	return 0;
}
