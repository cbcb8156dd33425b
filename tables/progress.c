#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS 1000000000
#define EVERY_NS 200000000

static int64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void xt_progress(struct xt_progress *progress, const char *what, uint64_t done, uint64_t all)
{
	int64_t time;
	char line[64];
	int n;

	if (progress->fd < 0)
		return;
	time = now();
	if (!progress->begin) {
		progress->begin = time;
		progress->last = time + FIRST_NS - EVERY_NS;
	}
	if (time - progress->last < EVERY_NS)
		return;
	progress->last = time;
	progress->is_shown = true;
	n = snprintf(line, sizeof(line), "\r%-8s %3u %%", what,
		     all ? (unsigned)(done * 100 / all) : 100);
	(void)!write(progress->fd, line, (size_t)n);
}

void xt_progress_end(struct xt_progress *progress)
{
	static const char away[] = "\r\033[K";

	if (progress->is_shown)
		(void)!write(progress->fd, away, sizeof(away) - 1);
}
