/*
 * Lost begins: what becomes of ends that come behind them.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drained.h"
#include "task_record.h"

static void put_event(struct xs_ring *ring, uint8_t kind, uint64_t when, uint32_t name)
{
	struct xs_event *event = put_space(&dir, ring, sizeof(*event));

	event->kind = kind;
	event->tick = when;
	event->name = name;
	xs_ring_commit(rundir_producer(ring), sizeof(*event));
}

static void put_args_of_innermost(struct xs_ring *ring, uint64_t when)
{
	struct xs_args_record *record = (void *)put_space(&dir, ring, sizeof(*record) + 16);
	struct xs_arg arg = { .key = rundir_name(&dir, "said", 0),
			      .count = 1,
			      .type = XS_VALUE_U64 };

	record->event.kind = XS_ARGS;
	record->event.tick = when;
	record->event.name = domain;
	record->event.flags = 0;
	record->id = (struct xs_id){ { 0 } };
	record->length = 16;
	record->reserved = 0;
	memcpy(record + 1, &arg, sizeof(arg));
	memset((char *)(record + 1) + sizeof(arg), 0, 8);
	xs_ring_commit(rundir_producer(ring), sizeof(*record) + 16);
}

/* No end closes another one's task, whichever of the lost begins it belongs to. */
static void lost_begins(void)
{
	struct xs_ring *ring;
	struct trace trace;
	uint32_t other;
	uint64_t t0;

	open_all(NULL, 1);
	other = rundir_name(&dir, "other", 0);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	t0 = tick();
	put_begin(&dir, ring, t0, task("outer"));
	put_event(ring, XS_LOST_BEGINS, 0, 0); /* of none */
	put_event(ring, XS_LOST_BEGINS, 0, 1);
	put_event(ring, XS_LOST_BEGINS, 0, 2);
	put_args_of_innermost(ring, t0 + 500);
	put_begin(&dir, ring, t0 + 1000, task("inner"));
	put_event(ring, XS_LOST_BEGINS, 0, 1);
	put_begin(&dir, ring, t0 + 2000, task("innermost"));
	put_end(&dir, ring, t0 + 3000, domain);
	put_end(&dir, ring, t0 + 4000, domain); /* of the last one that was lost */
	put_end(&dir, ring, t0 + 5000, domain);
	put_end(&dir, ring, t0 + 6000, other);
	put_end(&dir, ring, t0 + 7000, domain);
	put_end(&dir, ring, t0 + 8000, domain);
	put_end(&dir, ring, t0 + 9000, domain);
	/* of what is lost here the end of `b` is one, but not that of `a` */
	put_begin(&dir, ring, t0 + 10000, task("a"));
	put_begin(&dir, ring, t0 + 11000, task("b"));
	put_event(ring, XS_LOST_BEGINS, 0, 3);
	put_end(&dir, ring, t0 + 12000, domain);
	put_event(ring, XS_LOST_ENDS, 0, 1);
	put_event(ring, XS_LOST_BEGINS, 0, 1);
	put_event(ring, XS_LOST_ENDS, 0, 3);
	put_end(&dir, ring, t0 + 13000, domain);
	/* these never end */
	put_event(ring, XS_LOST_BEGINS, 0, UINT32_MAX);
	put_event(ring, XS_LOST_BEGINS, 0, UINT32_MAX);
	put_end(&dir, ring, t0 + 14000, domain);
	put_begin(&dir, ring, t0 + 15000, task("last"));
	finish(adopt());
	trace = load();
	expect_slice(&trace, "d::innermost", t0 + 2000, t0 + 3000, false);
	expect_slice(&trace, "d::inner", t0 + 1000, t0 + 5000, false);
	expect_slice(&trace, "d::outer", t0, t0 + 9000, false);
	expect_slice(&trace, "d::b", t0 + 11000, t0 + 11000, true);
	expect_slice(&trace, "d::a", t0 + 10000, t0 + 13000, false);
	CHECK(trace.count == 6 && trace_named(&trace, "d::last") == 1, "%zu slices", trace.count);
	CHECK(!strstr(trace.text, "said"), "what is said of a lost one is said of none");
	CHECK(trace_other(&trace, "events") == 17 &&
		      trace_other(&trace, "unmatched_ends") == UINT64_MAX,
	      "%" PRIu64 " events", trace_other(&trace, "events"));
	drop(&trace);
	close_all();
}

/* The same where so much is open that nothing more is known of what is inside. */
static void lost_begins_in_the_depth(void)
{
	const struct xs_options options = { .chrome_itt = true, .ring_size = 4u << 20 };
	const uint32_t deepest = 65536;
	struct xs_ring *ring;
	struct trace trace;
	uint64_t t0, at = 0;

	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	t0 = tick();
	for (uint32_t i = 0; i < deepest; i++)
		put_begin(&dir, ring, t0 + at++, task(i + 1 == deepest ? "deepest" : "deep"));
	put_event(ring, XS_LOST_BEGINS, 0, 2);
	put_begin(&dir, ring, t0 + at++, task("unseen"));
	put_event(ring, XS_LOST_BEGINS, 0, 1);
	for (int i = 0; i < 4; i++)
		put_end(&dir, ring, t0 + at++, domain);
	put_end(&dir, ring, t0 + at, domain);
	/* and there is room again */
	put_event(ring, XS_LOST_BEGINS, 0, 1);
	put_event(ring, XS_LOST_BEGINS, 0, UINT32_MAX);
	put_begin(&dir, ring, t0 + at + 1, task("unseen"));
	put_event(ring, XS_LOST_BEGINS, 0, UINT32_MAX);
	put_event(ring, XS_LOST_BEGINS, 0, UINT32_MAX);
	finish(adopt());
	trace = load();
	CHECK(trace.count == deepest && trace_named(&trace, "d::deep") == deepest - 1, "%zu slices",
	      trace.count);
	expect_slice(&trace, "d::deepest", t0 + deepest - 1, t0 + at, false);
	CHECK(strstr(trace.text, "\"omitted\":{\"tasks\":2}"), "two tasks found no room");
	drop(&trace);
	close_all();
}

/* What is kept for a successor has them, too. */
static void lost_begins_recovered(void)
{
	struct xs_ring *ring;
	struct trace trace;
	uint64_t t0;
	pid_t pid;

	open_all(NULL, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	t0 = tick();
	put_begin(&dir, ring, t0, task("outer"));
	put_event(ring, XS_LOST_BEGINS, 0, 2);
	put_begin(&dir, ring, t0 + 1000, task("inner"));
	pid = fork();
	if (!pid) {
		struct xs_process *process = adopt();

		xs_process_read(process, false);
		xs_process_commit(process);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	put_end(&dir, ring, t0 + 2000, domain);
	put_end(&dir, ring, t0 + 3000, domain);
	put_end(&dir, ring, t0 + 4000, domain);
	put_end(&dir, ring, t0 + 5000, domain);
	put_event(ring, XS_LOST_BEGINS, 0, 1);
	put_begin(&dir, ring, t0 + 6000, task("last"));
	put_end(&dir, ring, t0 + 7000, domain);
	dir.run.recovering = true;
	finish(adopt());
	trace = load();
	expect_slice(&trace, "d::inner", t0 + 1000, t0 + 2000, false);
	expect_slice(&trace, "d::outer", t0, t0 + 5000, false);
	expect_slice(&trace, "d::last", t0 + 6000, t0 + 7000, false);
	CHECK(trace.count == 3 && trace_other(&trace, "events") == 8, "%zu slices", trace.count);
	drop(&trace);
	close_all();
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("lost begins", lost_begins);
	tap_run("lost begins inside of more than is known", lost_begins_in_the_depth);
	tap_run("lost begins that are open when the drain process is killed",
		lost_begins_recovered);
	return tap_done();
}
