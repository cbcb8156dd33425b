/*
 * A program that closes every descriptor, as daemons and shells do, and then traces from a new
 * thread. It goes on to use all the numbers itself: what it opens gets the lowest numbers, and a
 * collector that still writes to a number it once owned would write into the program's file.
 *
 *	closer [late]	late: nothing is traced before the descriptors are closed
 *
 * Status 0 if no descriptor and no byte came from elsewhere, else 1 (there is no stderr left).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "itt_app.h"

#define LAST_FD 512

static __itt_domain *domain;

static void trace(const char *name)
{
	finished_task(domain, __itt_string_handle_create(name));
}

static void *trace_after(void *arg)
{
	(void)arg;
	trace("after");
	return NULL;
}

static void *trace_reused(void *arg)
{
	(void)arg;
	trace("reused");
	return NULL;
}

static bool is_empty(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == 0;
}

int main(int argc, char **argv)
{
	bool late = argc > 1 && strcmp(argv[1], "late") == 0;
	int file;

	if (!late) {
		domain = __itt_domain_create("closer");
		trace("before");
		printf("expected: 1 tasks closer::before\n");
	}
	printf("expected: 1 tasks closer::after\nexpected: 1 tasks closer::reused\n");
	printf("expected: %d tasks\n", late ? 2 : 3);
	fflush(stdout);

	if (close_range(0, ~0U, 0))
		die("close_range");
	domain = __itt_domain_create("closer");
	pthread_join(start_thread(trace_after, NULL), NULL);

	for (int fd = 0; fd < 3; fd++)
		if (open("/dev/null", O_RDWR) != fd)
			return 1;
	file = memfd_create("closer", 0);
	for (int fd = file + 1; fd <= LAST_FD; fd++)
		if (dup2(file, fd) != fd)
			return 1;
	pthread_join(start_thread(trace_reused, NULL), NULL);
	return file == 3 && is_empty(file) ? 0 : 1;
}
