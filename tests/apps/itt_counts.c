/*
 * Tasks of which the kernel knows what they cost: itt_counts PAGES SLEEPS [THREADS]
 *
 * Each task asks the kernel at its own first and last instruction, and just outside: what is
 * counted for the task lies between the two answers, which the program prints:
 *	between: <least> <most> <event> <task>
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "itt_app.h"

static long pages, sleeps;
static __itt_domain *domain;

static struct rusage usage(void)
{
	struct rusage now;

	if (getrusage(RUSAGE_THREAD, &now))
		die("getrusage");
	return now;
}

static void say(const char *task, const struct rusage of[4])
{
	printf("between: %ld %ld page-faults %s\n",
	       of[2].ru_minflt + of[2].ru_majflt - of[1].ru_minflt - of[1].ru_majflt,
	       of[3].ru_minflt + of[3].ru_majflt - of[0].ru_minflt - of[0].ru_majflt, task);
	printf("between: %ld %ld context-switches %s\n",
	       of[2].ru_nvcsw + of[2].ru_nivcsw - of[1].ru_nvcsw - of[1].ru_nivcsw,
	       of[3].ru_nvcsw + of[3].ru_nivcsw - of[0].ru_nvcsw - of[0].ru_nivcsw, task);
}

static void touch(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, (size_t)pages * page, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise((void *)memory, (size_t)pages * page, MADV_NOHUGEPAGE))
		die("mmap");
	for (long i = 0; i < pages; i++)
		memory[(size_t)i * page] = 1;
	(void)munmap((void *)memory, (size_t)pages * page);
}

static void sleep_often(void)
{
	for (long i = 0; i < sleeps; i++)
		(void)usleep(1000);
}

static void task(const char *name, void (*body)(void))
{
	__itt_string_handle *handle = __itt_string_handle_create(name);
	struct rusage of[4];

	/* what the first task and the first answer need is there */
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("first"));
	of[0] = usage();
	__itt_task_end(domain);
	of[0] = usage();
	__itt_task_begin(domain, __itt_null, __itt_null, handle);
	of[1] = usage();
	body();
	of[2] = usage();
	__itt_task_end(domain);
	of[3] = usage();
	say(name, of);
}

static void *work(void *unused)
{
	(void)unused;
	task("touch", touch);
	task("sleep", sleep_often);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 3 ? strtol(argv[3], NULL, 10) : 0;

	if (argc < 3)
		return 2;
	pages = strtol(argv[1], NULL, 10);
	sleeps = strtol(argv[2], NULL, 10);
	domain = __itt_domain_create("app");
	(void)work(NULL);
	for (long i = 0; i < threads; i++)
		(void)pthread_join(start_thread(work, NULL), NULL);
	printf("expected: %ld tasks app::touch\n", threads + 1);
	printf("expected: %ld tasks app::sleep\n", threads + 1);
	return 0;
}
