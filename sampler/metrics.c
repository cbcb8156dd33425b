/*
 * xstrace-metrics GROUP US DEVICES CUDA_DEVICES FD: samples what devices count until it is told to
 * end (SIGTERM). Started by xstrace --metric-sampling and --stall-sampling, it is one more process
 * of the run. The drain process joins what it records with the kernels that ran.
 *
 * The driver keeps reports until they are read, so this process wakes up more seldom than a report
 * is made. Memory is that of the buffers for one read.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xstrace/xstrace.h>

#include "pm_sampling.h"
#include "state.h"
#include "streamer.h"

#define REPORTS_A_READ 100u
#define LEAST_NS       5000000u
#define MOST_NS	       50000000u

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

#ifndef XS_HAVE_LEVEL_ZERO
uint32_t xs_streamers_open(const struct xs_wish *wish, const struct xs_library *library)
{
	(void)wish, (void)library;
	return 0;
}

bool xs_streamers_read(void)
{
	return false;
}

void xs_streamers_close(void)
{
}
#endif

/* False: no device is left that can be read. */
static bool read_all(void)
{
	bool some = xs_streamers_read();

	return xs_pm_read() || some;
}

static void sample(uint64_t interval)
{
	uint64_t pause = interval > MOST_NS / REPORTS_A_READ ? MOST_NS : interval * REPORTS_A_READ;
	const struct timespec time = { .tv_nsec = (long)(pause < LEAST_NS ? LEAST_NS : pause) };
	bool some = true;

	while (!ended && some) {
		some = read_all();
		(void)nanosleep(&time, NULL);
	}
	(void)read_all();
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = end };
	struct xs_wish wish = { .option = "--metric-sampling" };
	uint32_t some;

	if (argc != 6) {
		fprintf(stderr, "xstrace-metrics: called by xstrace --metric-sampling\n");
		return 1;
	}
	wish.group = argv[1];
	wish.interval = 1000 * strtoull(argv[2], NULL, 10);
	/* --devices-to-sample, as masks */
	wish.devices = strtoull(argv[3], NULL, 16);
	wish.cuda_devices = strtoull(argv[4], NULL, 16);
	wish.stalls = !strcmp(wish.group, "EuStallSampling");
	if (wish.stalls)
		wish.option = "--stall-sampling";
	(void)sigaction(SIGTERM, &action, NULL);
	(void)setenv("ZET_ENABLE_METRICS", "1", 1);
	/* what this process calls is not to be seen in the run */
	(void)unsetenv("ZE_ENABLE_VALIDATION_LAYER");
	(void)unsetenv("CUDA_INJECTION64_PATH");
	(void)unsetenv("NVTX_INJECTION64_PATH");
	(void)xstrace_initialize(true);
	some = xs_streamers_open(&wish, xs_table_of_library());
	some += xs_pm_open(&wish, xs_table_of_library());
	(void)close((int)strtol(argv[5], NULL, 10)); /* the application is waiting for that */
	if (some)
		sample(wish.interval);
	xs_streamers_close();
	xs_pm_close();
	return 0;
}
