/*
 * What becomes of records: tasks, calls, pauses, names and device work in the trace.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "backlog.h"
#include "device_record.h"
#include "drained.h"
#include "mpi_record.h"

static void tasks_and_calls(void)
{
	struct xs_ring *ring;
	struct trace trace;
	uint64_t t0;

	open_all(NULL, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "a\"thread");
	t0 = tick();
	put_begin(&dir, ring, t0, task("outer"));
	put_begin(&dir, ring, t0 + 1000, task("in\\ner"));
	put_call(&dir, ring, t0 + 2000, 500, 0, 0, 0);
	put_call(&dir, ring, t0 + 3000, 500, 0xffffff, XS_CALL_FLAG_FAILED, INT64_MIN);
	put_end(&dir, ring, t0 + 4000, domain);
	put_end(&dir, ring, t0 + 5000, domain);
	put_end(&dir, ring, t0 + 6000, domain); /* one too many */
	put_begin(&dir, ring, t0 + 7000, task("last"));
	finish(adopt());
	trace = load();
	CHECK(trace.count == 5, "%zu slices", trace.count);
	CHECK(trace_named(&trace, "d::outer") == 1 && trace_named(&trace, "d::in\\\\ner") == 1,
	      "names");
	CHECK(strstr(trace.text, "\"result\":-9223372036854775808"), "the smallest result");
	CHECK(strstr(trace.text, "(unknown)"), "a function that no table has");
	CHECK(trace_other(&trace, "events") == 8 && trace_other(&trace, "lost") == 0 &&
		      trace_other(&trace, "unmatched_ends") == 1,
	      "%" PRIu64 " events", trace_other(&trace, "events"));
	nested(&trace);
	for (size_t i = 0; i < trace.count; i++) {
		const struct slice *s = &trace.slices[i];

		CHECK(s->tid == 77 && s->unfinished == !strcmp(s->name, "d::last"), "%s", s->name);
		if (!strcmp(s->name, "d::outer"))
			CHECK(s->start == xs_timeline_ns(&dir.run.clock, t0) &&
				      s->end == xs_timeline_ns(&dir.run.clock, t0 + 5000),
			      "exact to the ns");
	}
	drop(&trace);
	close_all();
}

/*
 * What is open when recording goes off ends there; so do calls that last beyond, or they would
 * stick out of their tasks.
 */
static void pauses(void)
{
	struct xs_pauses *run, *own;
	struct xs_ring *ring;
	struct trace trace;
	uint64_t t0;

	open_all(NULL, 1);
	run = &dir.run.control->pauses;
	own = &file->pauses;
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	t0 = tick();
	put_begin(&dir, ring, t0, task("outer"));
	put_begin(&dir, ring, t0 + 10000, task("inner"));
	/* two that overlap; the process's began first and ends last */
	xs_pauses_begin(own, t0 + 20000);
	xs_pauses_begin(run, t0 + 30000);
	xs_pauses_end(run, t0 + 40000);
	xs_pauses_end(own, t0 + 50000);
	put_call(&dir, ring, t0 + 60000, 1000, 0xffffff, 0, 0);	 /* inside the next one */
	put_call(&dir, ring, t0 + 15000, 50000, 0xffffff, 0, 0); /* all the while */
	put_end(&dir, ring, t0 + 70000, domain);
	put_end(&dir, ring, t0 + 71000, domain);
	put_begin(&dir, ring, t0 + 80000, task("between"));
	xs_pauses_begin(run, t0 + 85000);
	xs_pauses_end(run, t0 + 90000);
	put_begin(&dir, ring, t0 + 100000, task("whole"));
	put_end(&dir, ring, t0 + 110000, domain);
	put_begin(&dir, ring, t0 + 120000, task("last"));
	xs_pauses_begin(own, t0 + 130000);
	finish(adopt());
	trace = load();
	CHECK(trace.count == 7, "%zu slices", trace.count);
	expect_slice(&trace, "d::outer", t0, t0 + 20000, true);
	expect_slice(&trace, "d::inner", t0 + 10000, t0 + 20000, true);
	expect_slice(&trace, "(unknown)", t0 + 15000, t0 + 20000, true);
	expect_slice(&trace, "(unknown)", t0 + 60000, t0 + 61000, false);
	expect_slice(&trace, "d::between", t0 + 80000, t0 + 85000, true);
	expect_slice(&trace, "d::whole", t0 + 100000, t0 + 110000, false);
	expect_slice(&trace, "d::last", t0 + 120000, t0 + 130000, true);
	CHECK(trace_other(&trace, "unmatched_ends") == 2, "%" PRIu64 " unmatched",
	      trace_other(&trace, "unmatched_ends"));
	nested(&trace);
	drop(&trace);
	close_all();
}

/* More of them than are remembered, and lists that hold anything. */
static void many_pauses(void)
{
	struct xs_ring *ring;
	struct trace trace;
	uint64_t t0;

	open_all(NULL, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	t0 = tick();
	put_begin(&dir, ring, t0, task("first"));
	for (uint64_t i = 1; i <= 10 * XS_PAUSES; i++) {
		xs_pauses_begin(&file->pauses, t0 + 100 * i);
		xs_pauses_end(&file->pauses, t0 + 100 * i + 50);
	}
	put_begin(&dir, ring, t0 + 2000 * XS_PAUSES, task("second"));
	put_end(&dir, ring, t0 + 2100 * XS_PAUSES, domain);
	memset(&dir.run.control->pauses, 0x81, sizeof(struct xs_pauses));
	finish(adopt());
	trace = load();
	CHECK(trace.count == 2 && trace_other(&trace, "lost") == 0, "%zu slices", trace.count);
	drop(&trace);
	close_all();
}

/* Long and hostile names, each way that a name can reach the file. */
static void names(void)
{
	static char text[XS_STRING_MAX + 100];
	struct xs_ring *ring;
	struct trace trace;
	int put = 0;

	open_all(NULL, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "\xff\xfe\xfd");
	for (size_t length = 0; length < sizeof(text);
	     length = length < 200 ? length + 1 : length * 2) {
		for (int fill = 0; fill < 3; fill++) {
			memset(text,
			       "\x01\xf0"
			       "a"[fill],
			       length);
			text[length] = '\0';
			put_begin(&dir, ring, tick(), rundir_name(&dir, text, domain));
			put_end(&dir, ring, tick(), domain);
			put++;
		}
	}
	finish(adopt());
	trace = load();
	CHECK(trace.count == (size_t)put, "%zu of %d slices", trace.count, put);
	drop(&trace);
	close_all();
}

/*
 * Tasks that end in another order than nesting wants, at random; of two domains, or ends could not
 * tell them apart.
 */
static void crossing(void)
{
	unsigned long long seed = 5;
	uint32_t domains[8], names[8];
	struct trace trace;

	open_all(NULL, 1);
	for (int i = 0; i < 8; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "d%d", i);
		domains[i] = rundir_name(&dir, text, 0);
		(void)snprintf(text, sizeof(text), "d%d::t", i);
		names[i] = rundir_name(&dir, text, domains[i]);
	}
	for (int round = 0; round < 40; round++) {
		uint64_t now = tick();
		struct xs_ring *ring = rundir_ring(file, 0);
		unsigned open = 0;
		size_t begun = 0;

		put_thread(&dir, ring, 77, "t");
		for (int i = 0; i < 200; i++) {
			unsigned k = tap_random(&seed) % 8;

			now += 100 + tap_random(&seed) % 5000;
			if (open & 1u << k)
				put_end(&dir, ring, now, domains[k]);
			else
				begun += put_begin(&dir, ring, now, names[k]);
			open ^= 1u << k;
		}
		finish(adopt());
		trace = load();
		CHECK(trace.count == begun, "%zu of %zu slices", trace.count, begun);
		nested(&trace);
		drop(&trace);
		rundir_process_unmap(file);
		file = rundir_process(&dir, PID, 0, 1, XS_RING_MIN);
		if (tap_failures)
			break;
	}
	close_all();
}

/* The smallest case: C holds A only in part, with B between. */
static void crossing_behind_the_last_group(void)
{
	uint32_t a, b, c, x;
	struct xs_ring *ring;
	struct trace trace;
	uint64_t t0;

	open_all(NULL, 1);
	a = rundir_name(&dir, "a", 0), b = rundir_name(&dir, "b", 0);
	c = rundir_name(&dir, "c", 0), x = rundir_name(&dir, "x", 0);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	t0 = tick();
	put_begin(&dir, ring, t0 + 10000, rundir_name(&dir, "a::A", a));
	put_begin(&dir, ring, t0 + 15000, rundir_name(&dir, "c::C", c));
	put_end(&dir, ring, t0 + 20000, a);
	put_begin(&dir, ring, t0 + 30000, rundir_name(&dir, "b::B", b));
	put_begin(&dir, ring, t0 + 31000, rundir_name(&dir, "x::X", x));
	put_end(&dir, ring, t0 + 40000, b);
	put_end(&dir, ring, t0 + 50000, c);
	put_end(&dir, ring, t0 + 60000, x);
	finish(adopt());
	trace = load();
	CHECK(trace.count == 4, "%zu", trace.count);
	nested(&trace);
	drop(&trace);
	close_all();
}

/* More tasks open at the end than the output has room for at once. */
static void deep(void)
{
	const struct xs_options options = { .chrome_itt = true, .ring_size = 2u << 20 };
	struct xs_ring *ring;
	struct trace trace;
	size_t depth = 60000;

	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	for (size_t i = 0; i < depth; i++)
		put_begin(&dir, ring, tick(), task("deep"));
	finish(adopt());
	trace = load();
	CHECK(trace.count == depth, "%zu of %zu", trace.count, depth);
	drop(&trace);
	close_all();
}

/* 0 is the name of what could not be named. */
static void no_name(void)
{
	const struct xs_options options = { .chrome_itt = true, .ring_size = 2u << 20 };
	struct xs_process *process;
	struct xs_ring *ring;
	struct trace trace;
	uint64_t before;

	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	for (size_t i = 0; i < 30000; i++) {
		put_begin(&dir, ring, tick(), 0);
		put_end(&dir, ring, tick(), 0);
	}
	process = adopt();
	before = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	xs_process_read(process, true);
	CHECK(xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before < 500000000, "took %" PRIu64 " ms",
	      (xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / 1000000);
	CHECK(process->names->count < 10, "%u names are kept", process->names->count);
	finish(process);
	trace = load();
	CHECK(trace.count == 30000, "%zu", trace.count);
	drop(&trace);
	close_all();
}

/* Overlapping work of one queue, more than there are lanes for, and times out of order. */
static void device_lanes(void)
{
	const struct xs_options options = { .chrome_kernel = true, .ring_size = XS_RING_MIN };
	unsigned long long seed = 9;
	struct xs_ring *ring;
	struct trace trace;

	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	for (uint32_t i = 0; i < 300; i++) {
		struct xs_device_record r =
			device_record(tap_random(&seed) % 100000, tap_random(&seed) % 20000);

		r.id = i + 1;
		if (i % 10 == 0)
			r.end = r.start - 5;
		if (i % 7 == 0)
			r.simd = 16;
		r.work = i % 3 ? XS_WORK_KERNEL : XS_WORK_COPY;
		r.bytes = i % 3 ? 0 : UINT64_MAX;
		CHECK(put_device(&dir, ring, &r, i % 3), "room");
	}
	finish(adopt());
	trace = load();
	CHECK(trace.count == 300, "%zu", trace.count);
	nested(&trace);
	drop(&trace);
	close_all();
}

/* ---- what threads hand to each other ---- */

#define HANDED_RING (2u << 20)

extern const char *const xs_mpi_names[]; /* mpi_names.c */

/* So many bytes of tasks. */
static void fill(struct xs_ring *ring, uint32_t bytes)
{
	const uint32_t name = task("filler");

	for (uint32_t done = 0; done < bytes; done += 32) {
		put_begin(&dir, ring, tick(), name);
		put_end(&dir, ring, tick(), domain);
	}
}

static void put_mpi_at(struct xs_ring *ring, uint64_t when, uint8_t kind, uint32_t function,
		       const void *payload, uint32_t bytes)
{
	uint32_t size = (uint32_t)sizeof(struct xs_event) + bytes;
	struct xs_event *event = put_space(&dir, ring, size);

	*event = (struct xs_event){ .tick = when,
				    .name = function,
				    .kind = kind,
				    .words = (uint8_t)(size / 8),
				    .source = XS_SOURCE_MPI };
	memcpy(event + 1, payload, bytes);
	xs_ring_commit(rundir_producer(ring), size);
}

static void put_mpi(struct xs_ring *ring, uint8_t kind, uint32_t function, const void *payload,
		    uint32_t bytes)
{
	put_mpi_at(ring, tick(), kind, function, payload, bytes);
}

static uint32_t number_of(const char *function)
{
	uint32_t number = 0;

	while (strcmp(xs_mpi_names[number], function) != 0)
		number++;
	return number;
}

/* A persistent request, made on one processor and started at once on one whose clock is behind. */
static void handed_to_another_processor(void)
{
	struct {
		uint64_t duration_words, handle;
	} made = { 1 | (uint64_t)(XS_MPI_MAKES | 1u << XS_MPI_REQUEST) << 48, 79 };
	const struct xs_mpi_request_record handed = {
		.request = 79, .bytes = UINT64_MAX, .peer = XS_MPI_NOTHING, .tag = XS_MPI_NOTHING
	};
	const uint32_t bytes = sizeof(handed) - sizeof(handed.event);
	const struct xs_options options = { .chrome_mpi = true, .ring_size = XS_RING_MIN };
	struct xs_ring *ring[3];
	struct trace trace;
	uint64_t when;

	open_all(&options, 3);
	for (uint32_t i = 0; i < 3; i++) {
		ring[i] = rundir_ring(file, i);
		put_thread(&dir, ring[i], 77 + i, "t");
	}
	when = tick() + xs_timeline_ticks(&dir.run.clock, 10000);
	put_mpi_at(ring[0], when, XS_MPI, number_of("MPI_Recv_init"), &made, sizeof(made));
	put_mpi_at(ring[1], when - xs_timeline_ticks(&dir.run.clock, 200), XS_MPI_START, 0,
		   &handed.request, bytes);
	put_mpi_at(ring[2], when + xs_timeline_ticks(&dir.run.clock, 5000), XS_MPI_DONE, 2,
		   &handed.request, bytes);
	(void)usleep(1000); /* it is past by then */
	finish(adopt());
	trace = load();
	CHECK(trace_named(&trace, "MPI_Recv_init") == 1 + 1, "%zu slices",
	      trace_named(&trace, "MPI_Recv_init"));
	CHECK(!strstr(trace.text, "unfinished") && strstr(trace.text, "\"ended_by\":79"),
	      "it was completed");
	drop(&trace);
	close_all();
}

/*
 * One thread has so much to be read that it is moved to the backlog; the next one makes a request,
 * behind so much that a turn ends before it; the last one, whose records have been read, starts and
 * completes it.
 */
static void handed_behind_a_backlog(void)
{
	static struct xs_process *processes;
	struct {
		uint64_t duration_words, handle;
	} made = { 1 | (uint64_t)(XS_MPI_MAKES | 1u << XS_MPI_REQUEST) << 48, 79 };
	const struct xs_mpi_request_record handed = {
		.request = 79, .bytes = UINT64_MAX, .peer = XS_MPI_NOTHING, .tag = XS_MPI_NOTHING
	};
	const void *payload = &handed.request;
	const uint32_t bytes = sizeof(handed) - sizeof(handed.event);
	const struct xs_options options = { .chrome_itt = true,
					    .chrome_mpi = true,
					    .ring_size = HANDED_RING,
					    .backlog = 16u << 20 };
	struct xs_process *process;
	struct xs_ring *ring[3];
	struct trace trace;

	open_all(&options, 3);
	xs_backlog_open(&dir.run, &processes);
	for (uint32_t i = 0; i < 3; i++) {
		ring[i] = rundir_ring(file, i);
		put_thread(&dir, ring[i], 77 + i, "t");
	}
	fill(ring[0], HANDED_RING / 2 + 24576);
	fill(ring[1], HANDED_RING / 2 - 8192);
	put_mpi(ring[1], XS_MPI, number_of("MPI_Recv_init"), &made, sizeof(made));
	put_mpi(ring[2], XS_MPI_START, 0, payload, bytes);
	put_mpi(ring[2], XS_MPI_DONE, 2, payload, bytes);
	processes = process = adopt();
	for (uint32_t i = 0; i < 4; i++) {
		xs_timeline_update(&dir.run.clock);
		(void)xs_process_read(process, false);
		xs_process_commit(process);
	}
	finish(process);
	xs_backlog_close(&dir.run);
	trace = load();
	CHECK(trace_named(&trace, "MPI_Recv_init") == 1 + 1, "%zu slices",
	      trace_named(&trace, "MPI_Recv_init"));
	drop(&trace);
	close_all();
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("tasks and calls", tasks_and_calls);
	tap_run("pauses", pauses);
	tap_run("many pauses", many_pauses);
	tap_run("names", names);
	tap_run("crossing tasks: the smallest case", crossing_behind_the_last_group);
	tap_run("crossing tasks at random", crossing);
	tap_run("device work finds a lane", device_lanes);
	tap_run("records without a name", no_name);
	tap_run("60,000 tasks open at the end", deep);
	tap_run("what threads hand to another processor", handed_to_another_processor);
	tap_run("what threads hand to each other behind a backlog", handed_behind_a_backlog);
	return tap_done();
}
