/*
 * xstrace-system [INTERVAL_US]: samples the machine until it is told to end (SIGTERM). Started by
 * xstrace --system-metrics, it is one more process of the run, and its trace has the counters.
 *
 * Each look is at a time of its own, so that two of them lie an interval apart however long they
 * take. What a system call gives more seldom is looked at more seldom. Memory is that of the
 * sources, which are found once.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xstrace/xstrace.h>

#include "clock.h"
#include "sampler.h"

#define DEFAULT_US 100000u
#define LEAST_US   100u
#define MOST_US	   60000000u

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

/* A GPU gives its own time beside what it tells, or is looked at so seldom that this one will do.
 */
static void look(struct xs_sources *sources)
{
	uint64_t begin = xs_clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < sources->count; i++) {
		struct xs_source *source = &sources->of[i];
		uint64_t ns = source->gpu ? begin : xs_clock_ns(CLOCK_MONOTONIC);

		if (source->off || (source->gpu && source->gpu->gone) ||
		    (source->last && ns - source->last < source->every))
			continue;
		source->look(source, ns, source->last);
		source->last = ns;
	}
}

static void sample(struct xs_sources *sources)
{
	uint64_t next = xs_clock_ns(CLOCK_MONOTONIC);

	while (!ended) {
		struct timespec until;

		look(sources);
		next += sources->interval;
		if (next < xs_clock_ns(CLOCK_MONOTONIC))
			next = xs_clock_ns(
				CLOCK_MONOTONIC); /* it was stopped, or the machine is too slow */
		until.tv_sec = (time_t)(next / 1000000000u);
		until.tv_nsec = (long)(next % 1000000000u);
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	look(sources);
}

/*
 * What the user has set for the programs is not meant for this one: it looks at all GPUs, each as
 * one, whatever this rank may use, and its own calls are not to be traced.
 */
static void be_alone(void)
{
	static const char *const names[] = { "ZE_AFFINITY_MASK", "ZE_ENABLE_VALIDATION_LAYER",
					     "ZE_ENABLE_TRACING_LAYER", "ZET_ENABLE_METRICS",
					     "ZES_ENABLE_SYSMAN" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
	(void)setenv("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE", 1);
}

int main(int argc, char **argv)
{
	static struct xs_sources sources;
	const struct sigaction action = { .sa_handler = end };
	const char *root = getenv("XSTRACE_SYSTEM_ROOT");
	unsigned long us = argc > 1 ? strtoul(argv[1], NULL, 10) : DEFAULT_US;

	if (argc > 2 || us < LEAST_US || us > MOST_US) {
		fprintf(stderr, "xstrace-system: takes an interval from %u to %u us\n", LEAST_US,
			MOST_US);
		return 1;
	}
	(void)sigaction(SIGTERM, &action, NULL);
	sources.root = root ? root : "";
	sources.interval = us * 1000u;
	(void)xstrace_initialize(true);
	xs_host_add(&sources);
	xs_uncore_add(&sources);
	look(&sources); /* a GPU's library may take long to start */
	be_alone();
#ifdef XS_HAVE_LEVEL_ZERO
	xs_level_zero_add(&sources);
#endif
	xs_nvml_add(&sources);
	sample(&sources);
	return 0;
}
