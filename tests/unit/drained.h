/*
 * One process's rings, which the test fills and drains itself: what the tests of the drain side
 * begin with. It is all here and not in a file of its own because CHECK() counts for the file that
 * it stands in.
 */
#ifndef DRAINED_H
#define DRAINED_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_record.h"
#include "rundir.h"
#include "tap.h"
#include "trace.h"

#define PID 4000000 /* nobody's */

static struct rundir dir;
static struct xs_process_file *file;
static uint32_t domain; /* "d", of the tasks */

static inline uint64_t tick(void)
{
	return xs_tick(dir.run.control->use_tsc);
}

static inline void open_all(const struct xs_options *options, uint32_t slots)
{
	rundir_open(&dir, options);
	file = rundir_process(&dir, PID, 0, slots, dir.run.options->ring_size);
	domain = rundir_name(&dir, "d", 0);
}

static inline void close_all(void)
{
	rundir_process_unmap(file);
	rundir_close(&dir);
}

static inline uint32_t task(const char *text)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "d::%s", text);
	return rundir_name(&dir, name, domain);
}

static inline struct xs_process *adopt(void)
{
	char name[XS_NAME_MAX];
	struct xs_process *process;

	xs_process_file_name(name, PID, 0, 0);
	process = xs_process_adopt(&dir.run, name);
	if (!process) {
		printf("Bail out! adopt: %s\n", strerror(errno));
		exit(1);
	}
	return process;
}

static inline void finish(struct xs_process *process)
{
	xs_timeline_update(&dir.run.clock);
	while (xs_process_read(process, true))
		;
	xs_process_finish(process, XS_END_EXITED, 0);
}

/* The trace, which is checked to be JSON. To be released with drop(). */
static inline struct trace load(void)
{
	char path[PATH_MAX], complaint[256] = "";
	struct trace trace = { .text = NULL };
	size_t length;
	char *text = rundir_trace(&dir, path, sizeof(path), &length);

	if (CHECK(text, "no trace, or too many"))
		CHECK(trace_parse(&trace, text, length, complaint, sizeof(complaint)), "%s",
		      complaint);
	return trace;
}

static inline void drop(struct trace *trace)
{
	trace_free(trace);
	rundir_clear(&dir);
}

static inline void nested(struct trace *trace)
{
	const struct slice *s = trace_overlap(trace);

	CHECK(!s, "%s on track %" PRIu64 ", %" PRIu64 " to %" PRIu64 ", overlaps what it is in",
	      s->name, s->tid, s->start, s->end);
}

/* One slice is so; times are ticks. */
static inline void expect_slice(const struct trace *trace, const char *name, uint64_t start,
				uint64_t end, bool unfinished)
{
	int found = 0;

	start = xs_timeline_ns(&dir.run.clock, start);
	end = xs_timeline_ns(&dir.run.clock, end);
	for (size_t i = 0; i < trace->count; i++) {
		const struct slice *s = &trace->slices[i];

		found += !strcmp(s->name, name) && s->start == start && s->end == end &&
			 s->unfinished == unfinished;
	}
	CHECK(found == 1, "%s from %" PRIu64 " to %" PRIu64 ": %d", name, start, end, found);
}

/* A kernel of 8 x 8 work items that begins `start` ns from now, and ends `length` ns later. */
static inline struct xs_device_record device_record(uint64_t start, uint64_t length)
{
	struct xs_device_record r = { .event = { .tick = tick(),
						 .name = rundir_name(&dir, "ker\"nel", 0) } };

	r.tid = 77;
	r.id = 1;
	r.queue = 1;
	r.queue_handle = 0xdeadbeef;
	r.device_name = rundir_name(&dir, "dev\nice", 0);
	r.device_type = XS_DEVICE_GPU;
	r.host_ticks = 1000;
	r.work = XS_WORK_KERNEL;
	r.queued = r.submit = xs_clock_ns(CLOCK_MONOTONIC);
	r.start = r.queued + start;
	r.end = r.start + length;
	r.global[0] = r.global[1] = r.local[0] = 8;
	return r;
}

#endif
