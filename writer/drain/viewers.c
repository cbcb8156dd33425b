/*
 * --top and --export: another process asks for a picture of the run, by a number in `control`, and
 * reads it from a file that this process puts in its place in one step. Pictures cost the traced
 * processes nothing; and this process counts for them only while somebody asks.
 */
#include "viewers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "backlog.h"
#include "live.h"
#include "sinks.h"
#include "sinks_open.h"

#define NEW_FILE XS_LIVE_FILE "-new"

static uint32_t asked(const struct xs_run *run)
{
	/* pairs with the release of who asks */
	return atomic_load_explicit(&run->control->live_asked, memory_order_acquire);
}

bool xs_viewers_due(const struct xs_run *run)
{
	return asked(run) != atomic_load_explicit(&run->control->live_served, memory_order_relaxed);
}

static void stop(struct xs_loop *loop)
{
	for (struct xs_process *p = loop->processes; p; p = p->next)
		xs_sinks_remove(p, XS_SINK_LIVE);
	free(loop->run.live);
	loop->run.live = NULL;
}

void xs_viewers_watch(struct xs_loop *loop)
{
	struct xs_run *run = &loop->run;
	bool due = xs_viewers_due(run);
	uint64_t now;

	if (!due && !run->live)
		return;
	now = xs_clock_ns(CLOCK_MONOTONIC);
	if (!run->live) {
		run->live = calloc(1, sizeof(*run->live));
		if (!run->live)
			return;
		run->live->begun = now;
		run->live->cpu = xs_live_cpu();
		run->live->cpus.second = now / 1000000000;
	}
	run->live->second = now / 1000000000;
	if (due)
		run->live->asked = now;
	if (now - run->live->asked > XS_LIVE_PATIENCE_NS) {
		stop(loop);
		return;
	}
	/* those that have joined or begun another trace meanwhile, too */
	for (struct xs_process *p = loop->processes; p; p = p->next)
		xs_sinks_add(p, XS_SINK_LIVE);
}

static bool write_all(int fd, const void *data, size_t size)
{
	for (const char *at = data; size;) {
		ssize_t n = write(fd, at, size);

		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

/* Who reads has the old one or the new one, and both are whole. */
static void write_picture(const struct xs_run *run, const struct xs_live_head *picture)
{
	int fd;

	(void)unlinkat(run->directory, NEW_FILE, 0);
	fd = openat(run->directory, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return;
	if (write_all(fd, picture, picture->size))
		(void)renameat(run->directory, NEW_FILE, run->directory, XS_LIVE_FILE);
	(void)close(fd);
}

void xs_viewers_serve(struct xs_loop *loop)
{
	struct xs_run *run = &loop->run;
	uint32_t number = asked(run);
	struct xs_live_head *picture;

	if (!run->live || !xs_viewers_due(run))
		return;
	picture = xs_live_picture(run, loop->processes, xs_backlog_left(run));
	if (picture)
		write_picture(run, picture);
	free(picture);
	atomic_store_explicit(&run->control->live_served, number, memory_order_release);
	xs_futex_wake(&run->control->live_served);
}
