/*
 * Times that cannot be: they cost their own records. Nothing waits for them, and what comes behind
 * them is read.
 */
#include "drained.h"
#include "mpi_record.h"
#include "task_record.h"

#define FAR (UINT64_C(1) << 60) /* ticks: years, on any clock */

static const struct xs_options logging = {
	.call_logging = true, .chrome_itt = true, .chrome_mpi = true, .ring_size = 1u << 20
};

static void put(struct xs_ring *ring, uint8_t kind, uint8_t source, uint64_t when,
		const struct xs_event *record, uint32_t size)
{
	struct xs_event *event = put_space(&dir, ring, size);

	memcpy(event, record, size);
	event->kind = kind;
	event->source = source;
	event->tick = when;
	event->words = (uint8_t)(size / 8);
	xs_ring_commit(rundir_producer(ring), size);
}

/* Reads as the drain process does while the program runs, for as long as something comes of it. */
static void look(struct xs_process *process)
{
	xs_timeline_update(&dir.run.clock);
	while (xs_process_read(process, false))
		;
}

/* -c reads the rings in the order of time, and waits for ends of calls. */
static void a_record_from_the_future(void)
{
	static const uint64_t whens[] = { FAR, UINT64_MAX, UINT64_MAX - 1 };

	for (size_t i = 0; i < 2 * sizeof(whens) / sizeof(whens[0]); i++) {
		struct xs_call_record call = { .duration = i % 2 ? whens[i / 2] : 1 };
		uint64_t when, behind;
		struct xs_process *process;
		struct trace trace;

		open_all(&logging, 2);
		when = i % 2 ? tick() : whens[i / 2];
		put_thread(&dir, rundir_ring(file, 0), 77, "t");
		put_thread(&dir, rundir_ring(file, 1), 78, "u");
		put(rundir_ring(file, 0), XS_CALL_IN, XS_SOURCE_OPENCL, when, &call.event, 16);
		put(rundir_ring(file, 0), XS_CALL, XS_SOURCE_OPENCL, when, &call.event,
		    sizeof(call));
		for (uint32_t ring = 0; ring < 2; ring++)
			for (int n = 0; n < 100; n++) {
				put_begin(&dir, rundir_ring(file, ring), tick(), task("x"));
				put_end(&dir, rundir_ring(file, ring), tick(), domain);
			}
		process = adopt();
		look(process);
		for (uint32_t ring = 0; ring < 2; ring++) {
			behind = xs_ring_filled(rundir_ring(file, ring)) -
				 process->tracks[ring]->pos;
			CHECK(!behind, "variant %zu: %" PRIu64 " bytes of ring %u are not read", i,
			      behind, ring);
		}
		CHECK(process->corrupt, "variant %zu: not counted", i);
		finish(process);
		trace = load();
		CHECK(trace_named(&trace, "d::x") == 200, "variant %zu: %zu tasks of 200", i,
		      trace_named(&trace, "d::x"));
		drop(&trace);
		close_all();
	}
}

/* A call of MPI that takes years. */
static void long_calls(void)
{
	struct {
		struct xs_mpi_record head;
		uint64_t word[3];
	} record = { .head = { .words = 1u << XS_MPI_DURATION }, .word = { FAR } };
	struct xs_process *process;
	struct trace trace;

	open_all(&logging, 1);
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	put(rundir_ring(file, 0), XS_MPI, XS_SOURCE_MPI, tick(), &record.head.event,
	    sizeof(record));
	put_begin(&dir, rundir_ring(file, 0), tick(), task("x"));
	put_end(&dir, rundir_ring(file, 0), tick(), domain);
	process = adopt();
	look(process);
	CHECK(process->corrupt == 1, "%" PRIu64 " corrupt records", (uint64_t)process->corrupt);
	finish(process);
	trace = load();
	CHECK(trace.count == 1, "%zu slices", trace.count);
	for (size_t i = 0; i < trace.count; i++)
		CHECK(trace.slices[i].end - trace.slices[i].start < 60u * 1000000000u,
		      "%s lasts %" PRIu64 " ns", trace.slices[i].name,
		      trace.slices[i].end - trace.slices[i].start);
	drop(&trace);
	close_all();
}

/* Of each slice: it lies in this test's life. */
static void check_slices(const struct trace *trace, size_t count, const char *what)
{
	CHECK(trace->count == count, "%s: %zu slices of %zu", what, trace->count, count);
	for (size_t i = 0; i < trace->count; i++)
		CHECK(trace->slices[i].end >= trace->slices[i].start &&
			      trace->slices[i].end - trace->slices[i].start < 60u * 1000000000u,
		      "%s: %s lasts %" PRIu64 " ns", what, trace->slices[i].name,
		      trace->slices[i].end - trace->slices[i].start);
}

/* What is said to have been before the run began: a task's end, a record of another kind. */
static void a_record_from_before_the_run(void)
{
	static const uint8_t kinds[] = { XS_END, XS_INSTANT };

	for (size_t i = 0; i < 2 * sizeof(kinds); i++) {
		struct xs_args_record args = { .length = 0 };
		struct xs_process *process;
		struct xs_ring *ring;
		struct trace trace;

		open_all(&logging, 1);
		ring = rundir_ring(file, 0);
		put_thread(&dir, ring, 77, "t");
		put_begin(&dir, ring, tick(), task("x"));
		args.event.name = domain;
		put(ring, kinds[i / 2], XS_SOURCE_ITT, i % 2, &args.event,
		    kinds[i / 2] == XS_END ? sizeof(args.event) : sizeof(args));
		process = adopt();
		look(process);
		CHECK(process->corrupt == 1, "variant %zu: %" PRIu64 " corrupt records", i,
		      (uint64_t)process->corrupt);
		finish(process);
		trace = load();
		check_slices(&trace, 1, "a task that is open at the end");
		drop(&trace);
		close_all();
	}
}

/* A pause of the process, and a call that it is in, at times that cannot be. */
static void told_times(void)
{
	static const uint64_t whens[] = { 0, 1, FAR, UINT64_MAX - 1 };

	for (size_t i = 0; i < 2 * sizeof(whens) / sizeof(whens[0]); i++) {
		struct xs_process *process;
		struct xs_ring *ring;
		struct trace trace;

		open_all(&logging, 1);
		ring = rundir_ring(file, 0);
		put_thread(&dir, ring, 77, "t");
		put_begin(&dir, ring, tick(), task("x"));
		if (i % 2) {
			xs_pauses_begin(&file->pauses, whens[i / 2]);
			atomic_store(&file->pauses.last[0].to, tick());
			put_begin(&dir, ring, tick(), task("y"));
			put_end(&dir, ring, tick(), domain);
		} else {
			atomic_store(&ring->call_tick, whens[i / 2]);
			atomic_store(&ring->call, 1);
		}
		process = adopt();
		look(process);
		finish(process);
		trace = load();
		check_slices(&trace, 1 + i % 2, i % 2 ? "a pause" : "a call");
		drop(&trace);
		close_all();
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("a record from the future", a_record_from_the_future);
	tap_run("calls that take years", long_calls);
	tap_run("a record from before the run", a_record_from_before_the_run);
	tap_run("times that are told beside records", told_times);
	return tap_done();
}
