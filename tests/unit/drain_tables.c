/*
 * The timing tables that the drain process prints: -d and -s.
 */
#include <stdio.h>
#include <string.h>

#include "device_record.h"
#include "drained.h"

/* The tables' arithmetic. */
static void summary(void)
{
	struct xs_options options = { .host_timing = true,
				      .device_timing = true,
				      .ring_size = XS_RING_MIN };
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
		CHECK(row && sscanf(row, "ker\"nel, %llu, %llu, %lf, %llu, %llu, %llu", &calls,
				    &total, &percent, &average, &low, &high) == 6,
		      "%s", trace.text);
		CHECK(row && calls == 4 && total == 10000 && percent > 49.99 && percent < 50.01 &&
			      average == 2500 && low == 1000 && high == 4000,
		      "%s", trace.text);
	}
	drop(&trace);
	close_all();
}

static bool shows(const char *text, const char *line)
{
	return CHECK(strstr(text, line), "no \"%s\" in %s", line, text);
}

/*
 * Level Zero's device tables: columns of their own, tiles, kinds of copies, and what kernels are
 * made of.
 */
static void level_zero_tables(void)
{
	struct xs_options options = { .device_timing = true,
				      .kernel_submission = true,
				      .verbose = true,
				      .ring_size = XS_RING_MIN };
	struct xs_kernel_record *kernel;
	struct trace trace = { .text = NULL };
	struct xs_device_record r;
	struct xs_ring *ring;
	char path[PATH_MAX];

	memcpy(options.output, "rep.txt", 8);
	open_all(&options, 1);
	ring = rundir_ring(file, 0);
	put_thread(&dir, ring, 77, "t");
	kernel = xs_ring_reserve(rundir_producer(ring), &dir.launch.mailbox->bell, sizeof(*kernel),
				 XS_ROLE_OTHER);
	*kernel = (struct xs_kernel_record){ .event = { tick(), rundir_name(&dir, "_Z4gemmPf", 0),
							XS_KERNEL, sizeof(*kernel) / 8,
							XS_SOURCE_LEVEL_ZERO, 0 },
					     .id = 3,
					     .arguments = 7,
					     .spill_bytes = 64,
					     .private_bytes = 128,
					     .registers = 256,
					     .simd = 32,
					     .compiled = 2 };
	xs_ring_commit(rundir_producer(ring), sizeof(*kernel));
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
	r.event.flags = XS_DEVICE_FLAG_FUNCTION;
	r.event.name = 1;
	r.work = XS_WORK_COPY;
	r.memory = XS_MEMORY_SYSTEM << 4 | XS_MEMORY_DEVICE;
	r.bytes = 4096;
	CHECK(put_device(&dir, ring, &r, false), "room");
	finish(adopt());
	trace.text = rundir_trace(&dir, path, sizeof(path), &trace.length);
	if (CHECK(trace.text, "no report")) {
		shows(trace.text,
		      "    Total Device Time for L0 backend (ns):                 4000\n");
		shows(trace.text, "== L0 Backend ==");
		shows(trace.text, ",        Calls,            Time (ns),     Time (%),         "
				  "Average (ns),             Min (ns),             Max (ns)\n");
		shows(trace.text, "Tile #1: \"gemm(float*)[SIMD32 {4; 1; 1} {256; 1; 1}]\",        "
				  "    1,                 3000,    75.000000,");
		shows(trace.text, "\"(unknown)(M2D)[4096]\",            1,                 1000,   "
				  " 25.000000,");
		shows(trace.text, ", Compiled, SIMD, Number of Arguments, SLM Per Work Group, "
				  "Private Memory Per Thread, Spill Memory Per Thread, "
				  "Register File Size Per Thread\n");
		shows(trace.text, "}]\",      AOT,   32,                   7,                  0,  "
				  "                     128,                      64,"
				  "                           256\n");
		shows(trace.text, ",        Calls,          Append (ns),  Append (%),          "
				  "Submit (ns),  Submit (%),         Execute (ns),  Execute (%)\n");
	}
	drop(&trace);
	close_all();
}

/* More shapes than a table has rows for: one row has the rest, and the total is that of all. */
static void more_than_rows(void)
{
	struct xs_options options = { .device_timing = true,
				      .verbose = true,
				      .ring_size = XS_RING_MAX / 64 };
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
		/*
		 * the two clocks agree to some us only: it seems to begin before its call, and is
		 * as long as it was
		 */
		if (i % 3 == 0) {
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

		for (char *line = strtok(trace.text, "\n"); line && line < stop;
		     line = strtok(NULL, "\n")) {
			unsigned long long n, ns;
			char *figures = strstr(line, ", ");

			if (figures && sscanf(figures, ", %llu, %llu", &n, &ns) == 2) {
				rows++;
				calls += n;
				total += ns;
			}
			CHECK(!strstr(line, "(all others)") || n > 1, "%s", line);
		}
		CHECK(calls == count && total == 10ull * count && rows < count,
		      "%u rows, %llu calls, %llu ns", rows, calls, total);
	}
	drop(&trace);
	close_all();
}

/* Thousands of C++ names, each of which takes a while and comes to something. */
static void many_long_names(void)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	uint64_t start = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID), spent;

	for (unsigned i = 0; i < 12000; i++) {
		char name[512];
		size_t n = (size_t)sprintf(name, "_Z6f%05u1aI1bS0_E", i), length;

		for (int k = 0; k < 12; k++) /* each holds the one before it twice */
			n += (size_t)sprintf(name + n, "S_IS%c_S%c_E", digits[k + 1],
					     digits[k + 1]);
		length = n;
		(void)xs_demangle(name, &length);
	}
	spent = (xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / 1000000;
	CHECK(spent < 2500, "took %" PRIu64 " ms", spent);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("timing tables add up", summary);
	tap_run("Level Zero's tables", level_zero_tables);
	tap_run("more shapes than rows", more_than_rows);
	tap_run("thousands of long C++ names", many_long_names);
	return tap_done();
}
