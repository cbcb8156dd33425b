/*
 * What processors have counted (--cpu-metrics), from records to arguments of tasks and shares of
 * kernels.
 */
#include "cpu_events.h"
#include "device_record.h"
#include "drained.h"

#define BOTH (XS_CPU_BIT(XS_CPU_CYCLES) | XS_CPU_BIT(XS_CPU_INSTRUCTIONS))
#define ALL  (BOTH | XS_CPU_BIT(XS_CPU_PAGE_FAULTS))

static const struct xs_options counting = { .chrome_itt = true,
					    .cpu_metrics = "cycles",
					    .cpu_events = ALL,
					    .cpu_events_of_tasks = ALL,
					    .ring_size = 1u << 20 };

static void put_counts(uint64_t when, uint32_t known, uint8_t flags, uint64_t enabled,
		       uint64_t running, const uint64_t *values)
{
	uint32_t count = (uint32_t)__builtin_popcount(known), size = XS_CPU_SIZE(count);
	struct xs_cpu_record *record = (void *)put_space(&dir, rundir_ring(file, 0), size);

	memset(record, 0, size);
	record->event = (struct xs_event){ .tick = when,
					   .name = known,
					   .kind = XS_CPU,
					   .words = (uint8_t)(size / 8),
					   .flags = flags };
	record->enabled = enabled;
	record->running = running;
	memcpy(record->value, values, 8 * count);
	xs_ring_commit(rundir_producer(rundir_ring(file, 0)), size);
}

struct counts {
	uint32_t known;
	uint64_t enabled, running, value[3];
};

static void put_task(const char *name, const struct counts *begin, const struct counts *end)
{
	uint64_t when = tick();

	put_counts(when, begin->known, 0, begin->enabled, begin->running, begin->value);
	put_begin(&dir, rundir_ring(file, 0), when, task(name));
	when = tick() + 1000;
	put_counts(when, end->known, 0, end->enabled, end->running, end->value);
	put_end(&dir, rundir_ring(file, 0), when, domain);
}

/* The slice's line says that; text NULL: it has no arguments. */
static void expect(const char *trace, const char *name, const char *text)
{
	char pattern[64];
	const char *end, *at;

	(void)snprintf(pattern, sizeof(pattern), "\"name\":\"d::%s\"", name);
	end = strstr(trace, pattern);
	if (!CHECK(end, "no %s", name))
		return;
	for (at = end; at > trace && at[-1] != '\n';)
		at--;
	if (!text)
		CHECK(!strstr(at, "\"args\"") || strstr(at, "\"args\"") > end, "%s: %.*s", name,
		      (int)(end - at), at);
	else
		CHECK(strstr(at, text) && strstr(at, text) < end, "%s: %.*s", name, (int)(end - at),
		      at);
}

static void tasks(void)
{
	const struct counts zero = { ALL, 1000, 1000, { 100, 200, 5 } };
	struct xs_process *process;
	uint64_t when;
	struct trace trace;

	open_all(&counting, 1);
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	put_task("exact", &zero, &(struct counts){ ALL, 3000, 3000, { 1100, 700, 7 } });
	put_task("half", &zero, &(struct counts){ ALL, 3000, 2000, { 1100, 700, 7 } });
	put_task("never", &zero, &(struct counts){ ALL, 3000, 1000, { 100, 200, 7 } });
	put_task("falls", &zero, &(struct counts){ ALL, 3000, 3000, { 99, 700, 7 } });
	put_task("less", &zero, &(struct counts){ BOTH, 3000, 3000, { 1100, 700 } });
	/* of another tick: another record's, which was lost */
	when = tick();
	put_counts(when + 1, ALL, 0, 1, 1, zero.value);
	put_begin(&dir, rundir_ring(file, 0), when, task("other"));
	put_counts(when + 2, ALL, 0, 2, 2, zero.value);
	put_end(&dir, rundir_ring(file, 0), when + 2, domain);
	/* its end has none */
	when = tick();
	put_counts(when, ALL, 0, 1, 1, zero.value);
	put_begin(&dir, rundir_ring(file, 0), when, task("endless"));
	put_end(&dir, rundir_ring(file, 0), when + 2, domain);
	process = adopt();
	finish(process);
	trace = load();
	expect(trace.text, "exact",
	       "{\"cycles\":[1000],\"instructions\":[500],\"page-faults\":[2],\"ipc\":[0.5]}");
	expect(trace.text, "half",
	       "{\"cycles\":[2000],\"instructions\":[1000],\"page-faults\":[2],\"ipc\":[0.5]}");
	expect(trace.text, "never", "{\"page-faults\":[2]}");
	expect(trace.text, "falls", "{\"instructions\":[500],\"page-faults\":[2]}");
	expect(trace.text, "less", "{\"cycles\":[1000],\"instructions\":[500],\"ipc\":[0.5]}");
	expect(trace.text, "other", NULL);
	expect(trace.text, "endless", NULL);
	drop(&trace);
	close_all();
}

/* No task's, or too short for what it says. */
static void odd(void)
{
	static const uint64_t values[3] = { 1, 2, 3 };
	struct xs_process *process;
	struct trace trace;

	open_all(&counting, 1);
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	for (int i = 0; i < 3; i++) {
		uint64_t when = tick();
		struct xs_event *event;

		put_counts(when, ALL, 0, 1, 1, values);
		event = (void *)put_space(&dir, rundir_ring(file, 0), 32);
		*event = (struct xs_event){
			.tick = when, .name = i ? UINT32_MAX : ALL, .kind = XS_CPU, .words = 4
		};
		xs_ring_commit(rundir_producer(rundir_ring(file, 0)), 32);
		put_begin(&dir, rundir_ring(file, 0), when, task("x"));
		put_end(&dir, rundir_ring(file, 0), when + 5, domain);
	}
	process = adopt();
	finish(process);
	trace = load();
	CHECK(trace_named(&trace, "d::x") == 3, "%zu tasks", trace_named(&trace, "d::x"));
	drop(&trace);
	close_all();
}

/* `model`: it was enqueued then. */
static void put_kernel(const struct xs_device_record *model, uint32_t id, uint8_t type,
		       uint64_t start, uint64_t end)
{
	struct xs_device_record kernel = *model;

	kernel.id = id;
	kernel.device_type = type;
	kernel.start = start;
	kernel.end = end;
	(void)put_device(&dir, rundir_ring(file, 0), &kernel, true);
}

/* Its cycles in the file; -1: it is not there. */
static double share_of(const char *text, uint32_t id)
{
	char pattern[32];
	const char *at;
	double share;

	(void)snprintf(pattern, sizeof(pattern), "\",%u,", id);
	at = strstr(text, pattern);
	return at && sscanf(at + strlen(pattern), "%*[0-9],%lf", &share) == 1 ? share : -1;
}

/* Where a kernel is alone it gets all; where two run, each gets half. */
static void kernels(void)
{
	static const uint64_t counts[3][3] = { { 0, 0, 0 }, { 1000, 1, 1 }, { 3000, 2, 2 } };
	int kept = dup(STDERR_FILENO), said = -1;
	struct xs_device_record model;
	struct xs_process *process;
	char text[4096] = "";
	uint64_t at[3], half;
	FILE *saying = tmpfile();

	open_all(&counting, 1);
	dir.run.control->processors_pid = PID;
	put_thread(&dir, rundir_ring(file, 0), 77, "t");
	model = device_record(1, 1);
	for (int i = 0; i < 3; i++) {
		put_counts(tick(), ALL, XS_CPU_FLAG_ALL, 0, 0, counts[i]);
		at[i] = xs_clock_ns(CLOCK_MONOTONIC);
		(void)usleep(20000);
	}
	half = (at[1] - at[0]) / 2;
	put_kernel(&model, 1, XS_DEVICE_CPU, at[0], at[1]);
	put_kernel(&model, 2, XS_DEVICE_CPU, at[0] + half, at[1] + (at[2] - at[1]) / 2);
	put_kernel(&model, 3, XS_DEVICE_GPU, at[0], at[1]);
	/* nobody has looked any more; clocks that are tied to each other differ by microseconds */
	put_kernel(&model, 4, XS_DEVICE_CPU, at[2] + 1000000, at[2] + 2000000);
	process = adopt();
	if (saying)
		said = fileno(saying);
	(void)dup2(said, STDERR_FILENO);
	finish(process);
	(void)dup2(kept, STDERR_FILENO);
	(void)!pread(said, text, sizeof(text) - 1, 0);
	CHECK(strstr(text, "GpuTime[ns],cycles[Events],instructions[Events],page-faults[Events]"),
	      "%s", text);
	CHECK(share_of(text, 1) > 740 && share_of(text, 1) < 760, "%f", share_of(text, 1));
	CHECK(share_of(text, 2) > 1235 && share_of(text, 2) < 1265, "%f", share_of(text, 2));
	CHECK(share_of(text, 3) < 0 && share_of(text, 4) < 0, "%s", text);
	CHECK(strstr(text, "1 kernels ended behind the last look"), "%s", text);
	close_all();
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("tasks", tasks);
	tap_run("odd records", odd);
	tap_run("kernels", kernels);
	return tap_done();
}
