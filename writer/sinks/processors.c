/*
 * --cpu-metrics: what processors have counted while kernels ran on them (OpenCL on processors).
 *
 * A kernel runs on threads of its runtime, which may do other things, too, so nobody counts for it
 * alone: xstrace-cpu looks at the counts of the whole application again and again. Between
 * two looks they are taken to rise evenly, and what runs at the same time shares them in equal
 * parts. Looks and kernels of all processes lie in files without names until the last look.
 */
#include "processors.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counted.h"
#include "device_record.h"
#include "files.h"
#include "metrics_file.h"
#include "metrics_text.h"
#include "put.h"
#include "samples.h"
#include "sinks.h"
#include "summary.h"
#include "text.h"

struct kernel {
	uint64_t start, end; /* ns of the trace */
	uint64_t name;	     /* offset in the file of names */
	uint64_t id;
	double share[XS_CPU_EVENTS];
};

struct look {
	uint64_t ns, unused;
	uint64_t value[XS_CPU_EVENTS];
};

/* A kernel begins or ends. */
struct turn {
	uint64_t ns, which; /* its number << 1 | it ends */
};

struct xs_processors {
	FILE *kernels, *looks, *names, *turns;
	uint64_t kernel_count, look_count, names_length, last;
	uint32_t known, device; /* events of all looks; number of the first kernel's */
	struct {
		uint32_t source, id;
		uint64_t offset;
	} recent[1024]; /* names that were written not long ago */
	bool told;
};

static void tell_error(struct xs_processors *processors, int error)
{
	if (!processors->told)
		xs_tell("xstrace: --cpu-metrics: cannot keep all counts of kernels: %s; what "
			"follows is lost\n",
			strerror(-error));
	processors->told = true;
}

static bool write_to(struct xs_process *process, FILE **file, const void *data, size_t size)
{
	struct xs_processors *processors = process->run->processors;
	int fd;

	if (processors->told)
		return false;
	if (!*file) {
		fd = xs_file_create_nameless(process);
		*file = fd < 0 ? NULL : fdopen(fd, "w+");
		if (!*file) {
			tell_error(processors, fd < 0 ? fd : -ENOMEM);
			if (fd >= 0)
				close(fd);
			return false;
		}
	}
	if (fwrite(data, 1, size, *file) == size)
		return true;
	tell_error(processors, -errno);
	return false;
}

/* Where the kernel's name is. UINT64_MAX: nowhere. */
static uint64_t name_of(struct xs_process *process, const struct xs_work *work)
{
	struct xs_processors *processors = process->run->processors;
	char name[2 * XS_ROW_NAME_MAX + 3], *end;
	const struct xs_event *event = &work->record->event;
	uint64_t offset = processors->names_length;
	size_t place = event->name % (sizeof(processors->recent) / sizeof(processors->recent[0]));

	if (processors->recent[place].id == event->name + 1 &&
	    processors->recent[place].source == event->source)
		return processors->recent[place].offset;
	end = xs_metrics_put_kernel(name, process, work, false);
	*end++ = '\0';
	if (!write_to(process, &processors->names, name, (size_t)(end - name)))
		return UINT64_MAX;
	processors->names_length += (uint64_t)(end - name);
	processors->recent[place].id = event->name + 1;
	processors->recent[place].source = event->source;
	processors->recent[place].offset = offset;
	return offset;
}

static void add_work(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_processors *processors = process->run->processors;
	struct kernel kernel = { .start = work->start, .end = work->end, .id = record->id };

	if (!processors || record->device_type != XS_DEVICE_CPU || record->work != XS_WORK_KERNEL)
		return;
	kernel.name = name_of(process, work);
	if (kernel.name == UINT64_MAX ||
	    !write_to(process, &processors->kernels, &kernel, sizeof(kernel)))
		return;
	if (!processors->kernel_count++)
		processors->device = record->device;
}

static void add_look(struct xs_process *process, const struct xs_looked *looked)
{
	struct xs_processors *processors = process->run->processors;
	struct look look = { .ns = looked->ns };

	if (!processors || looked->ns < processors->last)
		return;
	processors->known = processors->look_count ? processors->known & looked->counted.known
						   : looked->counted.known;
	memcpy(look.value, looked->counted.value, sizeof(look.value));
	if (!write_to(process, &processors->looks, &look, sizeof(look)))
		return;
	processors->look_count++;
	processors->last = looked->ns;
}

/* ---- the join ---- */

struct joined {
	struct kernel *kernels;
	const struct look *looks;
	struct turn *turns;
	uint64_t kernel_count, look_count, turn_count;
	uint64_t now, at;	   /* ns; the look before */
	uint64_t running;	   /* kernels */
	double sum[XS_CPU_EVENTS]; /* for one of those that run, since the beginning */
};

static void add_share(struct joined *joined, const struct look *look, uint64_t ns)
{
	double part = (double)ns / (double)(look[1].ns - look->ns) / (double)joined->running;

	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (look[1].value[event] > look->value[event])
			joined->sum[event] +=
				part * (double)(look[1].value[event] - look->value[event]);
}

/* Time goes on; what is before the first look or behind the last one was not counted. */
static void advance(struct joined *joined, uint64_t until)
{
	while (joined->now < until && joined->at + 1 < joined->look_count) {
		const struct look *look = &joined->looks[joined->at];
		uint64_t from = joined->now > look->ns ? joined->now : look->ns,
			 to = until < look[1].ns ? until : look[1].ns;

		if (joined->running && from < to)
			add_share(joined, look, to - from);
		joined->now = to > joined->now ? to : joined->now;
		if (until < look[1].ns)
			break;
		joined->at++;
	}
	joined->now = until;
}

static void share_out(struct joined *joined)
{
	for (uint64_t i = 0; i < joined->turn_count; i++) {
		const struct turn *turn = &joined->turns[i];
		struct kernel *kernel = &joined->kernels[turn->which >> 1];
		bool ends = turn->which & 1;

		advance(joined, turn->ns);
		for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
			kernel->share[event] += ends ? joined->sum[event] : -joined->sum[event];
		joined->running += ends ? UINT64_MAX : 1;
	}
}

/* ---- the file ---- */

static void put_line(struct xs_output *out, char *o)
{
	xs_output_put_end(out, o);
	if (xs_output_full(out))
		(void)xs_output_flush(out);
}

static void put_header(struct xs_output *out, const struct xs_run *run)
{
	const struct xs_processors *processors = run->processors;
	char *o = xs_output_put(out);

	if (!run->options->result_dir[0])
		o = xs_put(xs_put_count(o, "\n=== Device #", processors->device), " Metrics ===\n");
	o = xs_put(o, "\nKernel,GlobalInstanceId,GpuTime[ns]");
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (processors->known >> event & 1)
			o = xs_put(xs_put(xs_put(o, ","), xs_cpu_event_name(event)),
				   event == XS_CPU_TASK_CLOCK ? "[ns]" : "[Events]");
	put_line(out, xs_put(o, "\n"));
}

/* False: the looks ended before it did. */
static bool put_kernel(struct xs_output *out, const struct xs_processors *processors,
		       const char *names, const struct kernel *kernel)
{
	char *o;

	if (kernel->end > processors->last)
		return false;
	o = xs_put(xs_output_put(out), names + kernel->name);
	o = xs_put_count(o, ",", kernel->id);
	o = xs_put_count(o, ",", kernel->end - kernel->start);
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (processors->known >> event & 1)
			o += sprintf(o, ",%f", kernel->share[event]);
	put_line(out, xs_put(o, "\n"));
	return true;
}

static void put_all(struct xs_process *process, const struct joined *joined, const char *names)
{
	struct xs_processors *processors = process->run->processors;
	struct xs_output out = { .fd = -1 };
	unsigned long long uncounted = 0;
	char path[PATH_MAX];

	if (xs_metrics_open(process, processors->device, &out, path) < 0)
		return;
	put_header(&out, process->run);
	for (uint64_t i = 0; i < joined->kernel_count; i++)
		uncounted += !put_kernel(&out, processors, names, &joined->kernels[i]);
	put_line(&out, xs_put(xs_output_put(&out), "\n"));
	xs_metrics_close(&out, path);
	if (uncounted)
		xs_tell("[WARNING] --cpu-metrics: %llu kernels ended behind the last look at the "
			"counters, and are left out\n",
			uncounted);
}

static bool make_turns(struct xs_process *process, struct joined *joined)
{
	struct xs_processors *processors = process->run->processors;

	for (uint64_t i = 0; i < joined->kernel_count; i++) {
		const struct turn turns[2] = { { joined->kernels[i].start, i << 1 },
					       { joined->kernels[i].end, i << 1 | 1 } };

		if (!write_to(process, &processors->turns, turns, sizeof(turns)))
			return false;
	}
	joined->turn_count = 2 * joined->kernel_count;
	joined->turns = xs_samples_map(processors->turns, joined->turn_count * sizeof(struct turn));
	return joined->turns;
}

static void unmap(const void *memory, uint64_t size)
{
	if (memory)
		(void)munmap((void *)(uintptr_t)memory, size);
}

static void write_all(struct xs_process *process)
{
	struct xs_processors *processors = process->run->processors;
	struct joined joined = { .kernel_count = processors->kernel_count,
				 .look_count = processors->look_count };
	const char *names = xs_samples_map(processors->names, processors->names_length);

	joined.kernels =
		xs_samples_map(processors->kernels, joined.kernel_count * sizeof(*joined.kernels));
	joined.looks = xs_samples_map(processors->looks, joined.look_count * sizeof(*joined.looks));
	if (names && joined.kernels && joined.looks) {
		xs_samples_sort(joined.kernels, joined.kernel_count, sizeof(*joined.kernels));
		if (make_turns(process, &joined)) {
			xs_samples_sort(joined.turns, joined.turn_count, sizeof(*joined.turns));
			share_out(&joined);
			put_all(process, &joined, names);
		}
	}
	unmap(names, processors->names_length);
	unmap(joined.kernels, joined.kernel_count * sizeof(*joined.kernels));
	unmap(joined.looks, joined.look_count * sizeof(*joined.looks));
	unmap(joined.turns, joined.turn_count * sizeof(*joined.turns));
}

/* ---- the sink ---- */

static bool wanted(const struct xs_run *run)
{
	return run->options->cpu_events;
}

/* What is kept is the run's: a process has no state of its own. */
static bool open_processors(struct xs_process *process)
{
	struct xs_run *run = process->run;

	if (!run->processors)
		run->processors = calloc(1, sizeof(*run->processors));
	process->sink[XS_SINK_PROCESSORS] = run->processors ? process : NULL;
	return run->processors;
}

static void close_file(FILE *file)
{
	if (file)
		(void)fclose(file);
}

void xs_processors_free(struct xs_run *run)
{
	struct xs_processors *processors = run->processors;

	if (!processors)
		return;
	close_file(processors->kernels);
	close_file(processors->looks);
	close_file(processors->names);
	close_file(processors->turns);
	free(processors);
	run->processors = NULL;
}

static void drop(struct xs_process *process)
{
	if (xs_process_is(process, process->run->control->processors_pid))
		xs_processors_free(process->run);
}

/* The sampling process is the last one that ends (writer/drain/ends.c). */
static bool close_processors(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_processors *processors = process->run->processors;
	bool some = processors && processors->kernel_count && processors->look_count;

	(void)end, (void)status;
	if (!xs_process_is(process, process->run->control->processors_pid))
		return false;
	if (some)
		write_all(process);
	xs_processors_free(process->run);
	return some;
}

const struct xs_sink xs_processors_sink = {
	.wanted = wanted,
	.open = open_processors,
	.work = add_work,
	.looked = add_look,
	.close = close_processors,
	.drop = drop,
};
