/*
 * Address space is a resource of the program's: threads with big stacks under a tight RLIMIT_AS.
 * A tracer that maps much, or that raises limits, changes how many threads such a program gets.
 *
 *	limits [THREADS [STACK_MIB [SPARE_MIB]]]	default 4, 64, 64
 *
 * The limit is what is mapped at the start, plus the stacks, plus SPARE_MIB; SPARE_MIB 0 leaves
 * the limit as the program was given it (for "ulimit -v"). All threads live at the same time.
 */
#include <sys/resource.h>
#include "itt_app.h"

#define MAX_THREADS 256
#define MIB	    (1UL << 20)

static __itt_domain *domain;
static __itt_string_handle *name;
static _Atomic bool go;

static unsigned long mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages;

	if (!f || fscanf(f, "%lu", &pages) != 1)
		die("/proc/self/statm");
	fclose(f);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

static void *trace_deep(void *arg)
{
	volatile char stack[MIB]; /* touched, so that it is not only an address range */

	(void)arg;
	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 1;
	finished_task(domain, name);
	while (!go)
		sleep_ms(1);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 4;
	unsigned long stack = (argc > 2 ? strtoul(argv[2], NULL, 10) : 64) * MIB;
	unsigned long spare = (argc > 3 ? strtoul(argv[3], NULL, 10) : 64) * MIB;
	pthread_t ids[MAX_THREADS];
	struct rlimit limit;
	pthread_attr_t attr;
	long made = 0;

	if (threads < 1 || threads > MAX_THREADS) {
		fprintf(stderr, "limits: out of range\n");
		return 2;
	}
	domain = __itt_domain_create("limits");
	name = __itt_string_handle_create("deep");
	if (getrlimit(RLIMIT_AS, &limit))
		die("getrlimit");
	/*
	 * ittnotify's dlopen() here: in a thread it makes a malloc arena, now in the room of the
	 * next stacks, now not
	 */
	if (!spare)
		__itt_thread_set_name("main");
	if (spare) {
		limit.rlim_cur = mapped_bytes() + (unsigned long)threads * stack + spare;
		if (setrlimit(RLIMIT_AS, &limit))
			die("setrlimit");
	}
	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, stack))
		die("pthread_attr_setstacksize");
	while (made < threads && pthread_create(&ids[made], &attr, trace_deep, NULL) == 0)
		made++;
	go = true;
	for (long i = 0; i < made; i++)
		pthread_join(ids[i], NULL);

	getrlimit(RLIMIT_STACK, &limit);
	printf("threads made: %ld of %ld\nstack limit: %jd\n", made, threads,
	       (intmax_t)limit.rlim_cur);
	printf("expected: %ld threads\nexpected: %ld tasks limits::deep\nexpected: %ld tasks\n",
	       made, made, made);
	return made == threads ? 0 : 1;
}
