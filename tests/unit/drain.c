/*
 * The drain side over rings that the test fills itself: what becomes of records, of torn rings, and of a drain process that is killed.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rundir.h"
#include "tap.h"
#include "trace.h"

#define PID 4000000 /* nobody's */

static struct rundir dir;
static struct xs_process_file *file;
static uint32_t domain;

static uint64_t tick(void)
{
	return xs_tick(dir.run.control->use_tsc);
}

static void open_all(const struct xs_options *options, uint32_t slots)
{
	rundir_open(&dir, options);
	file = rundir_process(&dir, PID, 0, slots, dir.run.options->ring_size);
	domain = rundir_name(&dir, "d", 0);
}

static void close_all(void)
{
	rundir_process_unmap(file);
	rundir_close(&dir);
}

static uint32_t task(const char *text)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "d::%s", text);
	return rundir_name(&dir, name, domain);
}

static struct xs_process *adopt(void)
{
	char name[XS_NAME_MAX];
	struct xs_process *process;

	xs_process_name(name, PID, 0, 0);
	process = xs_process_adopt(&dir.run, name);
	if (!process) {
		printf("Bail out! adopt: %s\n", strerror(errno));
		exit(1);
	}
	return process;
}

static void finish(struct xs_process *process)
{
	xs_timeline_update(&dir.run.clock);
	while (xs_process_read(process, true))
		;
	xs_process_finish(process, XS_END_EXITED, 0);
}

/* The trace, which is checked to be JSON. To be released with drop(). */
static struct trace load(void)
{
	char path[PATH_MAX], complaint[256] = "";
	struct trace trace = { .text = NULL };
	size_t length;
	char *text = rundir_trace(&dir, path, sizeof(path), &length);

	if (CHECK(text, "no trace, or too many"))
		CHECK(trace_parse(&trace, text, length, complaint, sizeof(complaint)), "%s", complaint);
	return trace;
}

static void drop(struct trace *trace)
{
	trace_free(trace);
	rundir_clear(&dir);
}

static void nested(struct trace *trace)
{
	const struct slice *s = trace_overlap(trace);

	CHECK(!s, "%s on track %" PRIu64 ", %" PRIu64 " to %" PRIu64 ", overlaps what it is in", s->name, s->tid, s->start, s->end);
}

/* ---- what becomes of records ---- */

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
	put_call(&dir, ring, t0 + 3000, 500, 0xffffff, XS_FLAG_FAILED, INT64_MIN);
	put_end(&dir, ring, t0 + 4000, domain);
	put_end(&dir, ring, t0 + 5000, domain);
	put_end(&dir, ring, t0 + 6000, domain); /* one too many */
	put_begin(&dir, ring, t0 + 7000, task("last"));
	finish(adopt());
	trace = load();
	CHECK(trace.count == 5, "%zu slices", trace.count);
	CHECK(trace_named(&trace, "d::outer") == 1 && trace_named(&trace, "d::in\\\\ner") == 1, "names");
	CHECK(strstr(trace.text, "\"result\":-9223372036854775808"), "the smallest result");
	CHECK(strstr(trace.text, "(unknown)"), "a function that no table has");
	CHECK(trace_other(&trace, "events") == 8 && trace_other(&trace, "lost") == 0 && trace_other(&trace, "unmatched_ends") == 1,
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

static void expect(const struct trace *trace, const char *name, uint64_t start, uint64_t end, bool unfinished)
{
	int found = 0;

	start = xs_timeline_ns(&dir.run.clock, start);
	end = xs_timeline_ns(&dir.run.clock, end);
	for (size_t i = 0; i < trace->count; i++) {
		const struct slice *s = &trace->slices[i];

		found += !strcmp(s->name, name) && s->start == start && s->end == end && s->unfinished == unfinished;
	}
	CHECK(found == 1, "%s from %" PRIu64 " to %" PRIu64 ": %d", name, start, end, found);
}

/* What is open when recording goes off ends there; so do calls that last beyond, or they would stick out of their tasks. */
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
	put_call(&dir, ring, t0 + 60000, 1000, 0xffffff, 0, 0);      /* inside the next one */
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
	expect(&trace, "d::outer", t0, t0 + 20000, true);
	expect(&trace, "d::inner", t0 + 10000, t0 + 20000, true);
	expect(&trace, "(unknown)", t0 + 15000, t0 + 20000, true);
	expect(&trace, "(unknown)", t0 + 60000, t0 + 61000, false);
	expect(&trace, "d::between", t0 + 80000, t0 + 85000, true);
	expect(&trace, "d::whole", t0 + 100000, t0 + 110000, false);
	expect(&trace, "d::last", t0 + 120000, t0 + 130000, true);
	CHECK(trace_other(&trace, "unmatched_ends") == 2, "%" PRIu64 " unmatched", trace_other(&trace, "unmatched_ends"));
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
	for (size_t length = 0; length < sizeof(text); length = length < 200 ? length + 1 : length * 2) {
		for (int fill = 0; fill < 3; fill++) {
			memset(text, "\x01\xf0""a"[fill], length);
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

/* Tasks that end in another order than nesting wants, at random; of two domains, or ends could not tell them apart. */
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
	CHECK(process->names.count < 10, "%u names are kept", process->names.count);
	finish(process);
	trace = load();
	CHECK(trace.count == 30000, "%zu", trace.count);
	drop(&trace);
	close_all();
}

static struct xs_device_record device_record(uint64_t start, uint64_t length)
{
	struct xs_device_record r = { .event = { .tick = tick(), .name = rundir_name(&dir, "ker\"nel", 0) } };

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
		struct xs_device_record r = device_record(tap_random(&seed) % 100000, tap_random(&seed) % 20000);

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

/* The tables' arithmetic. */
static void summary(void)
{
	struct xs_options options = { .host_timing = true, .device_timing = true, .ring_size = XS_RING_MIN };
	unsigned long long calls, total, average, low, high;
	struct xs_ring *ring;
	struct trace trace = { .text = NULL };
	char path[PATH_MAX], *row;
	double percent;

	memcpy(options.output, "rep.txt", 8);
	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	for (uint32_t i = 1; i <= 4; i++) {
		struct xs_device_record r = device_record(0, 1000 * i);

		CHECK(put_device(&dir, ring, &r, true), "room");
		r.event.name = rundir_name(&dir, "other", 0);
		r.end = r.start + 2500;
		CHECK(put_device(&dir, ring, &r, true), "room");
		put_call(&dir, ring, tick(), 0, 1, 0, 0);
	}
	finish(adopt());
	trace.text = rundir_trace(&dir, path, sizeof(path), &trace.length);
	if (CHECK(trace.text, "no report")) {
		CHECK(strstr(path, "/rep.4000000.txt"), "%s", path);
		row = strstr(trace.text, "ker\"nel,");
		CHECK(row && sscanf(row, "ker\"nel, %llu, %llu, %lf, %llu, %llu, %llu", &calls, &total, &percent, &average,
				    &low, &high) == 6,
		      "%s", trace.text);
		CHECK(row && calls == 4 && total == 10000 && percent > 49.99 && percent < 50.01 && average == 2500 &&
			      low == 1000 && high == 4000,
		      "%s", trace.text);
	}
	drop(&trace);
	close_all();
}

static bool shows(const char *text, const char *line)
{
	return CHECK(strstr(text, line), "no \"%s\" in %s", line, text);
}

/* Level Zero's device tables: columns of their own, tiles, kinds of copies, and what kernels are made of. */
static void level_zero_tables(void)
{
	struct xs_options options = { .device_timing = true, .kernel_submission = true, .verbose = true, .ring_size = XS_RING_MIN };
	struct xs_kernel_record *kernel;
	struct trace trace = { .text = NULL };
	struct xs_device_record r;
	struct xs_ring *ring;
	char path[PATH_MAX];

	memcpy(options.output, "rep.txt", 8);
	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	kernel = xs_ring_reserve(ring, &dir.launch.control->bell, sizeof(*kernel), XS_ROLE_OTHER);
	*kernel = (struct xs_kernel_record){ .event = { tick(), rundir_name(&dir, "_Z4gemmPf", 0), XS_KERNEL, sizeof(*kernel) / 8, XS_SOURCE_LEVEL_ZERO, 0 },
					     .id = 3, .arguments = 7, .spill_bytes = 64, .private_bytes = 128, .registers = 256, .simd = 32, .compiled = 2 };
	xs_ring_commit(ring, sizeof(*kernel));
	r = device_record(0, 3000);
	r.event.source = XS_SOURCE_LEVEL_ZERO;
	r.event.name = rundir_name(&dir, "_Z4gemmPf", 0);
	r.simd = 32;
	r.kernel = 3;
	r.tile = 2;
	r.global[0] = 1024, r.global[1] = r.global[2] = 1;
	r.local[0] = 256, r.local[1] = r.local[2] = 1;
	CHECK(put_device(&dir, ring, &r, true), "room");
	r = device_record(0, 1000);
	r.event.source = XS_SOURCE_LEVEL_ZERO;
	r.event.flags = XS_FLAG_FUNCTION;
	r.event.name = 1;
	r.work = XS_WORK_COPY;
	r.memory = XS_MEMORY_SYSTEM << 4 | XS_MEMORY_DEVICE;
	r.bytes = 4096;
	CHECK(put_device(&dir, ring, &r, false), "room");
	finish(adopt());
	trace.text = rundir_trace(&dir, path, sizeof(path), &trace.length);
	if (CHECK(trace.text, "no report")) {
		shows(trace.text, "    Total Device Time for L0 backend (ns):                 4000\n");
		shows(trace.text, "== L0 Backend ==");
		shows(trace.text, ",        Calls,            Time (ns),     Time (%),         Average (ns),             Min (ns),             Max (ns)\n");
		shows(trace.text, "Tile #1: \"gemm(float*)[SIMD32 {4; 1; 1} {256; 1; 1}]\",            1,                 3000,    75.000000,");
		shows(trace.text, "\"(unknown)(M2D)[4096]\",            1,                 1000,    25.000000,");
		shows(trace.text, ", Compiled, SIMD, Number of Arguments, SLM Per Work Group, Private Memory Per Thread, Spill Memory Per Thread, "
				  "Register File Size Per Thread\n");
		shows(trace.text, "}]\",      AOT,   32,                   7,                  0,                       128,                      64,"
				  "                           256\n");
		shows(trace.text, ",        Calls,          Append (ns),  Append (%),          Submit (ns),  Submit (%),         Execute (ns),  Execute (%)\n");
	}
	drop(&trace);
	close_all();
}

/* More shapes than a table has rows for: one row has the rest, and the total is that of all. */
static void more_than_rows(void)
{
	struct xs_options options = { .device_timing = true, .verbose = true, .ring_size = XS_RING_MAX / 64 };
	const uint32_t count = 70000;
	unsigned long long total = 0, calls = 0;
	struct trace trace = { .text = NULL };
	struct xs_process *process;
	struct xs_ring *ring;
	char path[PATH_MAX];
	uint32_t rows = 0;

	memcpy(options.output, "rep.txt", 8);
	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	process = adopt();
	for (uint32_t i = 0; i < count; i++) {
		struct xs_device_record r = device_record(0, 10);

		r.global[2] = i + 1;
		if (i % 3 == 0) { /* the two clocks agree to some us only: it seems to begin before its call, and is as long as it was */
			r.queued = r.submit -= 3000;
			r.start -= 3000;
			r.end -= 3000;
		}
		CHECK(put_device(&dir, ring, &r, true), "room");
		if (i % 1000 == 999)
			(void)xs_process_read(process, false);
	}
	finish(process);
	trace.text = rundir_trace(&dir, path, sizeof(path), &trace.length);
	if (CHECK(trace.text, "no report")) {
		char *stop = strstr(trace.text, "=== Device Time Distribution");

		for (char *line = strtok(trace.text, "\n"); line && line < stop; line = strtok(NULL, "\n")) {
			unsigned long long n, ns;
			char *figures = strstr(line, ", ");

			if (figures && sscanf(figures, ", %llu, %llu", &n, &ns) == 2) {
				rows++;
				calls += n;
				total += ns;
			}
			CHECK(!strstr(line, "(all others)") || n > 1, "%s", line);
		}
		CHECK(calls == count && total == 10ull * count && rows < count, "%u rows, %llu calls, %llu ns", rows, calls, total);
	}
	drop(&trace);
	close_all();
}

/* ---- rings that are not as they should be ---- */

static void spoilt_rings(void)
{
	unsigned long long seed = 3;

	for (int round = 0; round < 300; round++) {
		struct xs_ring *ring;
		struct trace trace;
		unsigned spoil = 1u + tap_random(&seed) % 4;

		open_all(NULL, 2);
		ring = rundir_ring(file, 0);
		put_thread(&dir, ring, 77, "t");
		for (int i = 0; i < 500; i++)
			put_begin(&dir, ring, tick(), task("x")), put_end(&dir, ring, tick(), domain);
		for (unsigned i = 0; i < spoil; i++)
			((unsigned char *)ring + XS_RING_HEADER)[tap_random(&seed) % 16000] = (unsigned char)tap_random(&seed);
		if (round % 3 == 0)
			atomic_store(&ring->head, (uint64_t)tap_random(&seed) << 33 ^ tap_random(&seed));
		if (round % 5 == 0)
			atomic_store(&ring->tail_lost, (uint64_t)tap_random(&seed) << 33 ^ tap_random(&seed));
		if (round % 7 == 0)
			atomic_store(&ring->call, tap_random(&seed) << 1);
		finish(adopt());
		if (round % 3) { /* with nothing that can be believed there is no trace at all */
			trace = load();
			drop(&trace);
		}
		close_all();
	}
}

/* A record's place is a multiple of 16, whatever the ring says. */
static void crooked_head(void)
{
	struct xs_ring *ring;
	struct xs_process *process;
	struct trace trace;

	open_all(NULL, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	put_begin(&dir, ring, tick(), task("x"));
	atomic_store(&ring->head, atomic_load(&ring->head) + 7);
	process = adopt();
	xs_process_read(process, true);
	atomic_store(&ring->head, atomic_load(&ring->head) + 160);
	for (uint32_t i = 0; i < 4096; i++)
		ring->data[48 + i] = 2; /* two words wherever one looks */
	finish(process);
	trace = load();
	drop(&trace);
	close_all();
}

/* A slot of a later file that is used before the first file is full: each ring is read once. */
static void segments(void)
{
	struct xs_segment_file *segment;
	struct xs_process *process;
	struct xs_ring *ring;
	struct trace trace;
	char name[XS_NAME_MAX];
	void *map;

	open_all(NULL, 4);
	atomic_store(&file->used, 1);
	xs_process_name(name, PID, 0, 1);
	if (!CHECK(!xs_shm_map(dir.launch.dir, name, true, xs_slot_offset(2, file->ring_size), &map, NULL), "segment"))
		return;
	segment = map;
	segment->slots = 2;
	for (uint32_t i = 0; i < 2; i++) {
		ring = (struct xs_ring *)((char *)map + xs_slot_offset(i, file->ring_size));
		xs_ring_init(ring, (unsigned char *)ring + XS_RING_HEADER, file->ring_size, XS_FULL_BLOCK);
		put_thread(&dir, ring, 80 + i, "s");
		put_begin(&dir, ring, tick(), task("s"));
		put_end(&dir, ring, tick(), domain);
	}
	atomic_store(&segment->used, 2);
	atomic_store(&segment->magic, XS_MAGIC);
	atomic_store(&file->segments, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	process = adopt();
	for (int i = 0; i < 5; i++)
		xs_process_read(process, true);
	ring = rundir_ring(file, 1);
	put_thread(&dir, ring, 78, "late");
	put_begin(&dir, ring, tick(), task("late"));
	put_end(&dir, ring, tick(), domain);
	atomic_store(&file->used, 2);
	finish(process);
	trace = load();
	CHECK(trace_named(&trace, "d::s") == 2, "%zu of 2", trace_named(&trace, "d::s"));
	CHECK(trace_named(&trace, "d::late") == 1, "%zu of 1", trace_named(&trace, "d::late"));
	drop(&trace);
	munmap(map, xs_slot_offset(2, file->ring_size));
	close_all();
}

static void hostile_headers(void)
{
	static const struct {
		size_t offset;
		uint64_t value;
		size_t size;
	} faults[] = {
#define FAULT(field, value) { offsetof(struct xs_process_file, field), value, sizeof(((struct xs_process_file *)0)->field) }
		FAULT(pid, 0), FAULT(pid, 0xffffffff), FAULT(slots, 2), FAULT(slots, 0xffffffff), FAULT(slots, 65536),
		FAULT(ring_size, 0), FAULT(ring_size, XS_RING_MIN - 16), FAULT(ring_size, 3ull << 20),
		FAULT(ring_size, 1ull << 31), FAULT(ring_size, 1ull << 63), FAULT(magic, 0),
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		char name[XS_NAME_MAX];

		open_all(NULL, 1);
		memcpy((char *)file + faults[i].offset, &faults[i].value, faults[i].size);
		xs_process_name(name, PID, 0, 0);
		CHECK(!xs_process_adopt(&dir.run, name), "fault %zu", i);
		file->slots = 1;
		file->ring_size = XS_RING_MIN;
		close_all();
	}
	for (uint64_t size = 0; size < 20000; size += 4000) {
		char name[XS_NAME_MAX];
		void *map;

		rundir_open(&dir, NULL);
		xs_process_name(name, PID, 0, 0);
		if (size && !xs_shm_map(dir.launch.dir, name, true, size, &map, NULL)) {
			((struct xs_process_file *)map)->magic = XS_MAGIC;
			((struct xs_process_file *)map)->pid = PID;
			munmap(map, size);
		}
		CHECK(!xs_process_adopt(&dir.run, name), "a file of %" PRIu64 " bytes", size);
		rundir_close(&dir);
	}
}

/* ---- a drain process that is killed ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPPING false
#else
#define STEPPING true
#endif

/* Fills both rings with tasks n0, n1, … of which every other is still open inside its predecessor when the ring ends. */
static void fill(unsigned *n, unsigned count)
{
	for (unsigned i = 0; i < count; i++, ++*n) {
		struct xs_ring *ring = rundir_ring(file, *n % 2);
		char text[16];

		(void)snprintf(text, sizeof(text), "n%u", *n);
		put_begin(&dir, ring, tick(), task(text));
		put_end(&dir, ring, tick(), domain);
	}
}

static void each_once(unsigned n, const char *when)
{
	struct trace trace = load();
	bool *seen = calloc(n, sizeof(*seen));
	unsigned number;

	CHECK(trace.count == n + 4, "%s: %zu slices, not %u", when, trace.count, n + 4);
	for (size_t i = 0; seen && i < trace.count; i++) {
		if (sscanf(trace.slices[i].name, "d::n%u", &number) != 1 || number >= n)
			continue;
		CHECK(!seen[number], "%s: n%u twice", when, number);
		seen[number] = true;
		CHECK(!trace.slices[i].unfinished, "%s: n%u unfinished", when, number);
	}
	for (number = 0; seen && number < n; number++)
		CHECK(seen[number], "%s: n%u missing", when, number);
	CHECK(trace_named(&trace, "d::open") == 4, "%s: %zu of 4 open tasks", when, trace_named(&trace, "d::open"));
	free(seen);
	drop(&trace);
}

static void prepare(unsigned *n)
{
	open_all(NULL, 2);
	*n = 0;
	for (uint32_t i = 0; i < 2; i++) {
		put_thread(&dir, rundir_ring(file, i), 77 + i, "t");
		put_begin(&dir, rundir_ring(file, i), tick(), task("open"));
		put_begin(&dir, rundir_ring(file, i), tick(), task("open"));
	}
}

/* What --recover does. */
static void recover(void)
{
	dir.run.recovering = true;
	finish(adopt());
	dir.run.recovering = false;
}

/* A drain process, stopped twice: before its first commit and, two thirds read, before its second. Its status is of no interest. */
static void victim(unsigned n)
{
	struct xs_process *process;

	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	process = adopt();
	xs_process_read(process, false);
	xs_process_commit(process);
	fill(&n, 40);
	xs_process_read(process, false);
	(void)raise(SIGSTOP);
	xs_process_commit(process);
	xs_process_commit(process);
	(void)raise(SIGSTOP);
	_exit(0);
}

/* Runs the victim to its second stop, then `steps` instructions further. Returns the instructions that it made; -1: not possible here. */
static long kill_after(unsigned n, long steps)
{
	pid_t pid = fork();
	int status, stops = 0;
	long made = 0;

	if (!pid)
		victim(n);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) == SIGSTOP)
			stops++;
		else
			made++;
		if (stops == 3 || made == steps || ptrace(stops < 2 ? PTRACE_CONT : PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return stops < 2 ? -1 : made;
}

static long commit_length;

static void killed_while_committing(void)
{
	enum { ROUNDS = 400 };
	char when[64];
	unsigned n;

	prepare(&n);
	fill(&n, 40);
	commit_length = kill_after(n, LONG_MAX);
	close_all();
	for (int i = 0; i < ROUNDS && commit_length > 0; i++) {
		long steps = 1 + commit_length * i / ROUNDS;

		prepare(&n);
		fill(&n, 40);
		(void)kill_after(n, steps);
		(void)snprintf(when, sizeof(when), "killed after %ld of %ld instructions", steps, commit_length);
		n += 40;
		recover();
		each_once(n, when);
		close_all();
		if (tap_failures)
			break;
	}
	CHECK(commit_length > 0, "cannot trace a process here");
}

/* The same point by hand: the mark is set and no ring has changed over. */
static void recover_prepared(void)
{
	struct xs_process *process;
	uint64_t committed;
	unsigned n;
	int status;
	pid_t pid;

	prepare(&n);
	fill(&n, 40);
	pid = fork();
	if (!pid) {
		process = adopt();
		xs_process_read(process, false);
		xs_process_commit(process);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	committed = atomic_load(&file->committed);
	CHECK(committed && !(committed & 1), "%" PRIu64, committed);
	atomic_store(&file->committed, committed | 1);
	for (uint32_t i = 0; i < 2; i++) {
		struct xs_ring *ring = rundir_ring(file, i);

		CHECK(atomic_load(&ring->saved_state) == XS_SAVED_1, "%u", atomic_load(&ring->saved_state));
		atomic_store(&ring->saved_state, i ? XS_SAVED_0_NEXT_1 : XS_SAVED_1);
	}
	recover();
	each_once(n, "prepared");
	close_all();
}

/* Recovery is a drain process too: killed, it can be done again. */
static void recover_twice(void)
{
	unsigned n, first;
	int status;
	pid_t pid;

	for (int prepared = 0; prepared < 2; prepared++) {
		prepare(&n);
		fill(&n, 40);
		first = n;
		(void)first;
		pid = fork();
		if (!pid) {
			struct xs_process *process = adopt();

			xs_process_read(process, false);
			xs_process_commit(process);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (prepared) {
			atomic_store(&file->committed, atomic_load(&file->committed) | 1);
			atomic_store(&rundir_ring(file, 0)->saved_state, XS_SAVED_0_NEXT_1);
			atomic_store(&rundir_ring(file, 1)->saved_state, XS_SAVED_0_NEXT_1);
		}
		fill(&n, 40);
		pid = fork();
		if (!pid) {
			struct xs_process *process;

			dir.run.recovering = true;
			process = adopt();
			xs_process_read(process, false);
			xs_process_commit(process);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		fill(&n, 10);
		recover();
		each_once(n, prepared ? "after a kill while prepared" : "after a kill between commits");
		close_all();
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	(void)signal(SIGXFSZ, SIG_IGN);
	tap_run("tasks and calls", tasks_and_calls);
	tap_run("pauses", pauses);
	tap_run("many pauses", many_pauses);
	tap_run("names", names);
	tap_run("crossing tasks: the smallest case", crossing_behind_the_last_group);
	tap_run("crossing tasks at random", crossing);
	tap_run("device work finds a lane", device_lanes);
	tap_run("timing tables add up", summary);
	tap_run("Level Zero's tables", level_zero_tables);
	tap_run("more shapes than rows", more_than_rows);
	tap_run("records without a name", no_name);
	tap_run("60,000 tasks open at the end", deep);
	tap_run("spoilt rings", spoilt_rings);
	tap_run("a head between records", crooked_head);
	tap_run("rings in several files", segments);
	tap_run("hostile headers", hostile_headers);
	tap_run("recovery after a kill while prepared", recover_prepared);
	tap_run("recovery after a killed recovery", recover_twice);
	if (STEPPING)
		tap_run("killed at any instruction of a commit", killed_while_committing);
	else
		tap_skip("killed at any instruction of a commit", "not under a sanitizer");
	return tap_done();
}
