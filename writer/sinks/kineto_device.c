/*
 * Kineto's format: devices as processes, streams as their threads, and the work on them.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "activity_types.h"
#include "backends.h"
#include "device_record.h"
#include "kineto.h"

#define SORT_BEHIND_CPU 5000000u /* as Kineto sorts devices */
#define FREE_PIDS	16u	 /* from here on: devices whose number another API's has */

/* ---- devices ---- */

static bool is_taken(const struct xs_kineto *kineto, uint32_t pid)
{
	for (uint32_t i = 0; i < kineto->place_count; i++)
		if (kineto->places[i].pid == pid)
			return true;
	return false;
}

static void name_place(struct xs_process *process, const struct xs_kineto_place *place, bool gpu)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	size_t length = 0;
	const char *name = place->name ? xs_text_of(process->run, place->name, &length) : "";
	char *o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "process_name", place->pid,
					 place->pid);

	o = xs_put(o, "\"name\":\"");
	o = length ? xs_json_escape(o, name, length < 1024 ? length : 1024)
		   : xs_put_escaped(o, process->comm);
	o = xs_chrome_put_metadata(xs_put(o, "\"}},\n"), "process_labels", place->pid, place->pid);
	o = xs_put_count(xs_put(o, "\"labels\":\""), gpu ? "GPU " : "Device ", place->pid);
	o = xs_chrome_put_metadata(xs_put(o, "\"}},\n"), "process_sort_index", place->pid,
				   place->pid);
	o = xs_put_count(o, "\"sort_index\":", SORT_BEHIND_CPU + place->pid);
	xs_chrome_finish(chrome, xs_put(o, "}},\n"));
}

static uint32_t add_place(struct xs_process *process, struct xs_kineto_place place, bool gpu)
{
	struct xs_kineto *kineto = xs_chrome_of(process)->kineto;

	if (kineto->place_count == XS_DEVICES) /* what is too much shares the last one */
		return kineto->places[XS_DEVICES - 1].pid;
	if (is_taken(kineto, place.pid))
		for (place.pid = FREE_PIDS; is_taken(kineto, place.pid);)
			place.pid++;
	kineto->places[kineto->place_count++] = place;
	name_place(process, &place, gpu);
	return place.pid;
}

uint32_t xs_kineto_device_pid(struct xs_process *process, const struct xs_device_record *record)
{
	const struct xs_kineto *kineto = xs_chrome_of(process)->kineto;

	for (uint32_t i = 0; i < kineto->place_count; i++) {
		const struct xs_kineto_place *place = &kineto->places[i];

		if (place->told ? place->pid == record->device && !record->tile
				: place->device == record->device && place->tile == record->tile &&
					  place->source == record->event.source)
			return place->pid;
	}
	return add_place(process,
			 (struct xs_kineto_place){ .name = record->device_name,
						   .pid = record->device,
						   .source = record->event.source,
						   .device = record->device,
						   .tile = record->tile },
			 record->device_type == XS_DEVICE_GPU);
}

uint32_t xs_kineto_told_device(struct xs_process *process, uint32_t device)
{
	const struct xs_kineto *kineto = xs_chrome_of(process)->kineto;

	for (uint32_t i = 0; i < kineto->place_count; i++)
		if (kineto->places[i].pid == device)
			return device;
	return add_place(process, (struct xs_kineto_place){ .pid = device, .told = true }, true);
}

/* ---- what is known of work beside its record ---- */

/* Kineto's name of a fact; empty: it is told otherwise. NULL: Kineto has none. */
static const char *kineto_name(const char *key)
{
	static const struct {
		const char *ours, *kinetos;
	} rows[] = {
		{ "registers", "registers per thread" },
		{ "graph", "graph id" },
		{ "graph_node", "graph node id" },
		{ "from_device", "fromDevice" },
		{ "to_device", "toDevice" },
		{ "external_id", "External id" },
		/* both are made of others */
		{ "static_shared", "" },
		{ "dynamic_shared", "" },
		{ "correlation", "" },
		{ "MB/s", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].ours, key))
			return rows[i].kinetos;
	return NULL;
}

/* 0: it is not known. */
static uint64_t fact_of(const struct xs_work *work, const char *key)
{
	for (uint32_t i = 0; i < work->fact_count; i++)
		if (work->facts[i].key && !strcmp(work->facts[i].key, key))
			return work->facts[i].value;
	return 0;
}

/* A fact without a key is one more value of the one before. */
static char *put_facts(char *o, const struct xs_work *work, bool external)
{
	struct xs_fact shown[XS_FACTS_MAX];
	uint32_t count = 0;
	bool show = false;

	for (uint32_t i = 0; i < work->fact_count && count < XS_FACTS_MAX; i++) {
		const char *key = work->facts[i].key, *name = key ? kineto_name(key) : NULL;

		if (key)
			show = !name || (*name && !(external && !strcmp(name, "External id")));
		if (show)
			shown[count++] =
				(struct xs_fact){ name ? name : key, work->facts[i].value };
	}
	return xs_chrome_put_facts(o, shown, count, false);
}

/* ---- work ---- */

static const struct kind {
	uint32_t type;
	const char *copy; /* what names of copies begin with; NULL: it is none */
} kinds[] = {
	[XS_WORK_KERNEL] = { XS_TYPE_KERNEL, NULL },
	[XS_WORK_COPY] = { XS_TYPE_GPU_MEMCPY, "Memcpy " },
	[XS_WORK_FILL] = { XS_TYPE_GPU_MEMSET, "Memset " },
	[XS_WORK_MAP] = { XS_TYPE_GPU_MEMCPY, "Memcpy " },
};

/* Work of another kind is a whole graph where there are streams; elsewhere it moves memory. */
static const struct kind *kind_of(const struct xs_device_record *record)
{
	if (record->work < XS_WORK_OTHER)
		return &kinds[record->work];
	return &kinds[xs_backend_of(record->event.source)->streams ? XS_WORK_KERNEL : XS_WORK_COPY];
}

static char direction(uint32_t memory)
{
	return memory == XS_MEMORY_DEVICE || memory == XS_MEMORY_SHARED ? 'D' : 'H';
}

/* Between which memory, in Kineto's words. */
static char *put_memories(char *o, const struct xs_device_record *record)
{
	static const char *const words[] = {
		[XS_MEMORY_UNKNOWN] = "Unknown", [XS_MEMORY_HOST] = "Pinned",
		[XS_MEMORY_DEVICE] = "Device",	 [XS_MEMORY_SHARED] = "Managed",
		[XS_MEMORY_SYSTEM] = "Pageable",
	};
	uint32_t from = record->memory >> 4, to = record->memory & 15,
		 count = sizeof(words) / sizeof(words[0]);

	o = xs_put(o, " (");
	if (record->work != XS_WORK_FILL)
		o = xs_put(xs_put(o, words[from < count ? from : 0]), " -> ");
	return xs_put(xs_put(o, words[to < count ? to : 0]), ")");
}

/*
 * Kernels by their C++ names; copies as Kineto calls them, those of an API that has no such names
 * with the function in parentheses.
 */
static char *put_work_name(char *o, struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	const struct kind *kind = kind_of(record);
	size_t length;
	const char *name = xs_kernel_text(process->run, &record->event, &length);
	bool known = kind->copy && length >= 6 && !strncasecmp(name, kind->copy, 6),
	     ours = kind->copy && !known;

	if (!kind->copy)
		name = xs_demangle(name, &length);
	o = xs_put(o, ",\"name\":\"");
	if (ours) {
		o = xs_put(o, kind->copy);
		if (record->memory && record->work != XS_WORK_FILL) {
			*o++ = direction(record->memory >> 4);
			o = xs_put(o, "to");
			*o++ = direction(record->memory & 15);
			*o++ = ' ';
		}
		*o++ = '(';
	}
	if (known) /* but for the capital */
		o = mempcpy(o, kind->copy, 6);
	o = known ? xs_json_escape(o, name + 6, length < 4096 ? length - 6 : 4096)
		  : xs_json_escape(o, name, length < 4096 ? length : 4096);
	if (known && record->memory)
		o = put_memories(o, record);
	return xs_put(o, ours ? ")\"},\n" : "\"},\n");
}

static char *put_triple(char *o, const char *key, const uint64_t *d)
{
	o = xs_put_count(xs_put(xs_put(xs_put(o, ",\""), key), "\":["), "", d[0]);
	return xs_put(xs_put_count(xs_put_count(o, ",", d[1]), ",", d[2]), "]");
}

static char *put_shape(char *o, const struct xs_work *work)
{
	const uint64_t *global = work->shape, *local = work->shape + 3;
	uint64_t grid[3], block[3];

	for (int i = 0; i < 3; i++) {
		block[i] = local[i] ? local[i] : 1;
		grid[i] = global[i] / block[i] + (global[i] % block[i] != 0);
		if (!grid[i])
			grid[i] = 1;
	}
	if (!local[0]) /* the runtime has chosen it, and has not told */
		return put_triple(o, "global work size", global);
	return put_triple(put_triple(o, "grid", grid), "block", block);
}

/* ",key":GB/s, which are bytes per ns. */
static char *put_bandwidth(char *o, const struct xs_work *work)
{
	uint64_t ns = work->end - work->start;

	o = xs_put_count(o, ",\"bytes\":", work->record->bytes);
	o = xs_put(o, ",\"memory bandwidth (GB/s)\":");
	return xs_chrome_put_double(o, ns ? (double)work->record->bytes / (double)ns : 0, true);
}

static char *put_work_args(char *o, struct xs_process *process, const struct xs_work *work,
			   uint32_t pid, uint32_t stream)
{
	const struct xs_device_record *record = work->record;
	const struct xs_backend *backend = xs_backend_of(record->event.source);
	const struct xs_kineto *kineto = xs_chrome_of(process)->kineto;
	uint64_t correlation =
		record->event.tick ? xs_kineto_correlation(record->tid, record->event.tick) : 0;
	const struct xs_kineto_call *call = &kineto->calls[correlation / 2 % XS_KINETO_KEPT];
	bool external = correlation && call->correlation == correlation && call->external;

	o = xs_put_count(xs_put_count(o, ",\"args\":{\"device\":", pid), ",\"stream\":", stream);
	if (backend->streams)
		o = xs_put_count(o, ",\"context\":", record->queue_handle >> 32);
	if (correlation)
		o = xs_put_count(o, ",\"correlation\":", correlation);
	if (external)
		o = xs_put_count(o, ",\"External id\":", call->external);
	if (record->work == XS_WORK_KERNEL)
		o = xs_json_time(xs_put(o, ",\"queued\":"), work->queued,
				 &xs_chrome_of(process)->time);
	if (work->shape)
		o = put_shape(o, work);
	if (record->work == XS_WORK_KERNEL && work->fact_count)
		o = xs_put_count(o, ",\"shared memory\":",
				 fact_of(work, "static_shared") + fact_of(work, "dynamic_shared"));
	if (record->bytes)
		o = put_bandwidth(o, work);
	return xs_put(put_facts(o, work, external), "}");
}

/* Of the call that has launched it. */
static void span_work(struct xs_process *process, const struct xs_work *work, uint32_t pid,
		      uint32_t stream)
{
	const struct xs_device_record *record = work->record;
	uint64_t correlation = xs_kineto_correlation(record->tid, record->event.tick);
	const struct xs_kineto_call *call =
		&xs_chrome_of(process)->kineto->calls[correlation / 2 % XS_KINETO_KEPT];

	if (record->event.tick && call->correlation == correlation)
		xs_kineto_span_work(process, call->span, pid, stream, work);
}

void xs_kineto_work(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_chrome *chrome = xs_chrome_of(process);
	uint32_t pid = xs_kineto_device_pid(process, record), tid,
		 stream = xs_backend_of(record->event.source)->streams
				  ? (uint32_t)record->queue_handle
				  : record->queue;
	char *o;

	if ((!process->run->options->chrome_kernel && !process->run->options->chrome_device) ||
	    !xs_chrome_wants(chrome, kind_of(record)->type))
		return;
	if (!xs_kineto_lane(process, pid, stream, XS_KINETO_STREAM, work->start, work->end, &tid))
		return;
	o = xs_put_count(xs_output_put(&chrome->out), "{\"ph\":\"X\",\"tid\":", tid);
	o = xs_put(xs_put_count(o, ",\"pid\":", pid), ",\"ts\":");
	o = xs_put(xs_json_time(o, work->start, &chrome->time), ",\"dur\":");
	o = xs_put(xs_json_micros(o, work->end - work->start), ",\"cat\":\"");
	o = xs_put(xs_put(o, xs_activity_type_name(kind_of(record)->type)), "\"");
	o = put_work_args(o, process, work, pid, stream);
	xs_chrome_finish(chrome, put_work_name(o, process, work));
	span_work(process, work, pid, stream);
	/* with types left out, an arrow may begin from nothing */
	if (process->run->options->chrome_kernel && work->linked && chrome->types == UINT64_MAX)
		xs_arrow_add(process, work, pid, tid);
}
