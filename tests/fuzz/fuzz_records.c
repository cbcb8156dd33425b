/*
 * A well-behaved process that does anything: threads, tasks in any order, calls, device work, full
 * rings, against a drain process that comes at any moment, is killed and recovered. The trace must
 * hold every record once, or count it as lost, and its slices must nest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_record.h"
#include "keep.h"
#include "large.h"
#include "rundir.h"
#include "trace.h"

#define PID	4000000 /* nobody's */
#define RINGS	3u
#define DOMAINS 3u
#define DEPTH	400u
#define MOST	120u /* records of a run, more or less */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct rundir dir;
static struct xs_process_file *file;
static uint32_t domains[DOMAINS], tasks[DOMAINS], kernel;

/* What the application knows. */
struct app {
	uint32_t open[DEPTH], depth; /* domains of open tasks */
};

static void at_exit(void)
{
	keep_files(false);
	rundir_close(&dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	rundir_open(&dir, NULL);
	(void)atexit(at_exit);
	for (uint32_t i = 0; i < DOMAINS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "d%u", i);
		domains[i] = rundir_name(&dir, name, 0);
		(void)snprintf(name, sizeof(name), "d%u::t", i);
		tasks[i] = rundir_name(&dir, name, domains[i]);
	}
	kernel = rundir_name(&dir, "kernel", 0);
	file = rundir_process(&dir, PID, 0, RINGS, XS_RING_MIN);
	keep_files(true);
	keep_drain_files();
	if (keep_memory)
		keep_memory();
	return 0;
}

/* As the process was when it had joined. */
static void reset(void)
{
	atomic_store(&file->used, RINGS);
	for (uint32_t i = 0; i < RINGS; i++) {
		struct xs_ring *ring = rundir_ring(file, i);

		memset(ring, 0, XS_RING_HEADER);
		rundir_ring_init(ring, XS_RING_MIN, (enum xs_on_full)dir.run.options->on_full);
		atomic_store(&ring->state, XS_RING_LIVE);
	}
}

static const unsigned char *input;
static size_t left;

static unsigned take(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

static struct xs_process *adopt(void)
{
	char name[XS_NAME_MAX];
	struct xs_process *process;

	xs_process_file_name(name, PID, 0, 0);
	process = xs_process_adopt(&dir.run, name);
	if (!process)
		abort();
	return process;
}

static void fail(const struct trace *trace)
{
	if (trace)
		printf("%s", trace->text);
	(void)fflush(stdout);
	abort();
}

static void expect(const struct trace *trace, const char *key, uint64_t wanted)
{
	uint64_t got = trace_other(trace, key);

	if (got == wanted)
		return;
	printf("%s: %llu, not %llu\n", key, (unsigned long long)got, (unsigned long long)wanted);
	fail(trace);
}

static void judge(uint64_t records, uint64_t lost)
{
	char path[PATH_MAX], complaint[256];
	size_t length = 0;
	char *text = rundir_trace(&dir, path, sizeof(path), &length);
	const struct slice *overlap;
	struct trace trace;

	if (!text && records > lost) {
		printf("no trace of %llu records\n", (unsigned long long)records);
		fail(NULL);
	}
	if (!text)
		return;
	if (!trace_parse(&trace, text, length, complaint, sizeof(complaint))) {
		printf("%s\n", complaint);
		fail(&trace);
	}
	overlap = trace_overlap(&trace);
	if (overlap) {
		printf("%s on track %llu overlaps another slice: %llu to %llu\n", overlap->name,
		       (unsigned long long)overlap->tid, (unsigned long long)overlap->start,
		       (unsigned long long)overlap->end);
		fail(&trace);
	}
	expect(&trace, "lost", lost);
	expect(&trace, "events", records - lost);
	expect(&trace, "corrupt_rings", UINT64_MAX);
	trace_free(&trace);
	rundir_clear(&dir);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct xs_options *options = &dir.run.copied_options;
	struct xs_process *process;
	static struct app apps[RINGS];
	uint64_t records = 0, lost = 0, fill_lost = 0, filled = 0, now = dir.launch.control->tick0,
		 id = 0;
	uint32_t tid = 100;
	unsigned mode;

	input = data;
	left = size;
	mode = take();
	/* nobody blocks here: as a consumer that is dead */
	options->on_full = mode % 3 == 0   ? XS_FULL_DROP
			   : mode % 3 == 1 ? XS_FULL_OVERWRITE
					   : XS_FULL_BLOCK;
	options->no_thread_on_device = mode & 16;
	options->no_engine_on_device = mode & 32;
	reset();
	memset(apps, 0, sizeof(apps));
	for (uint32_t i = 0; i < RINGS; i++) {
		put_thread(&dir, rundir_ring(file, i), ++tid, "thread");
		atomic_store(&rundir_ring(file, i)->consumer_dead, 1);
	}
	process = adopt();
	while (left && records < MOST) {
		unsigned what = take(), number = what >> 4 & 3, repeat = 1;
		struct xs_ring *ring = rundir_ring(file, number % RINGS);
		struct xs_producer *producer = rundir_producer(ring);
		struct app *app = &apps[number % RINGS];

		if (what & 64)
			repeat = 1 + take() % 16;
		for (; repeat; repeat--) {
			uint32_t d = what >> 7;

			now += 1 + (what & 15) * 1000;
			switch (what & 7) {
			case 0:
			case 1:
				if (app->depth < DEPTH) {
					app->open[app->depth++] = d;
					records++;
					(void)put_begin(&dir, ring, now, tasks[d]);
				}
				break;
			case 2:
			case 3:
				/* the innermost of its domain, as ITT has it */
				for (uint32_t at = app->depth; at--;) {
					if (app->open[at] != d)
						continue;
					memmove(app->open + at, app->open + at + 1,
						(app->depth - at - 1) * sizeof(app->open[0]));
					app->depth--;
					records++;
					(void)put_end(&dir, ring, now, domains[d]);
					break;
				}
				break;
			case 4:
				records++;
				now += 5000; /* the call lies between its neighbours */
				(void)put_call(&dir, ring, now - 4000, 3000, repeat,
					       d ? XS_CALL_FLAG_FAILED : 0, -5);
				break;
			case 5: {
				struct xs_device_record record = { .event = { .tick = now,
									      .name = kernel } };

				record.host_ticks = 100;
				record.tid = tid;
				record.id = (uint32_t)++id;
				record.queue = 1 + (what >> 3 & 1);
				record.device_name = kernel;
				record.work = d ? XS_WORK_COPY : XS_WORK_KERNEL;
				record.event.flags = d ? XS_DEVICE_FLAG_IN_ORDER : 0;
				record.queued = now / 3;
				record.submit = record.queued + 10;
				record.start = record.queued + (uint64_t)(repeat * 7919) % 5000;
				record.end = record.start + (uint64_t)(repeat * 104729) % 9000;
				records++;
				(void)put_device(&dir, ring, &record, !d);
				break;
			}
			/* the thread ends inside whatever it was in, another one takes its ring */
			case 6:
				if (app->depth && !d)
					break;
				producer->skip = producer->lost_ends = 0;
				producer->limit = 0;
				app->depth = 0;
				producer->thread = (struct xs_thread_record){
					.event = { .tick = now,
						   .name = kernel,
						   .kind = XS_THREAD,
						   .words = 4 },
					.tid = ++tid,
					.lost = atomic_load(&ring->lost)
				};
				atomic_store(&ring->tid, tid);
				{
					struct xs_thread_record *place =
						xs_ring_reserve(producer, &dir.launch.mailbox->bell,
								sizeof(*place), XS_ROLE_THREAD);

					if (place) {
						*place = producer->thread;
						xs_ring_commit(producer, sizeof(*place));
					}
				}
				repeat = 1;
				break;
			default:
				if (what & 64) { /* the ring fills */
					for (; repeat && filled < 64; repeat--, filled++)
						fill_lost += !put_pad(&dir, ring, 2032);
					repeat = 1;
					break;
				}
				(void)xs_process_read(process, false); /* true is for the end */
				if (d)
					xs_process_commit(process);
				repeat = 1;
			}
		}
	}
	while (xs_process_read(process, true))
		;
	for (uint32_t i = 0; i < RINGS; i++)
		lost += atomic_load(&rundir_ring(file, i)->lost) +
			atomic_load(&rundir_ring(file, i)->overwritten);
	xs_process_finish(process, XS_END_KILLED, 9);
	judge(records + fill_lost, lost);
	return 0;
}
