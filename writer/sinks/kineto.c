/*
 * Kineto's format: what the file begins and ends with, and calls.
 */
#include "kineto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity_types.h"
#include "backends.h"
#include "names.h"

/* Members that are ours to write: a program's metadata must not come between. */
static const char *const reserved[] = {
	"schemaVersion",       "deviceProperties", "displayTimeUnit",
	"baseTimeNanoseconds", "metadata",	   "traceEvents",
	"traceName",	       "otherData",	   NULL
};

bool xs_kineto_init(struct xs_chrome *chrome)
{
	chrome->kineto = calloc(1, sizeof(*chrome->kineto));
	return chrome->kineto;
}

void xs_kineto_fini(struct xs_chrome *chrome)
{
	for (uint32_t i = 0; chrome->kineto && i < chrome->kineto->row_count; i++)
		xs_lanes_fini(&chrome->kineto->rows[i].lanes);
	free(chrome->kineto);
}

char *xs_kineto_put_head(char *o, const struct xs_process *process)
{
	o = xs_put(o, XS_KINETO_OPENING "\"displayTimeUnit\": \"ns\",\"baseTimeNanoseconds\": ");
	return xs_json_uint(o, process->run->base);
}

/* ---- the end of the file ---- */

#define PROPERTIES_MAX 1024u
#define DEVICE_ROOM    (64u + 6u * 1024u + 3u * PROPERTIES_MAX)

size_t xs_kineto_tail_room(const struct xs_chrome *chrome)
{
	return chrome->kineto ? 6u * PATH_MAX + 4096u + chrome->kineto->place_count * DEVICE_ROOM
			      : 0;
}

/* Members of an object. They come from memory that the process shares. */
static char *put_properties(char *o, const struct xs_process *process, uint32_t name)
{
	struct xs_text facts = xs_device_told(process->run, name).facts;
	char object[PROPERTIES_MAX + 2], *end;

	if (!facts.length || facts.length > PROPERTIES_MAX)
		return o;
	object[0] = '{';
	end = mempcpy(object + 1, facts.text, facts.length);
	*end++ = '}';
	if (memchr(object, '\n', (size_t)(end - object)) ||
	    memchr(object, '\r', (size_t)(end - object)) ||
	    !xs_json_valid(object, (size_t)(end - object)))
		return o;
	/* what was checked, not what may stand there by now */
	return xs_json_copy(xs_put(o, ","), object + 1, (size_t)(end - object) - 2);
}

static char *put_devices(char *o, const struct xs_process *process)
{
	const struct xs_kineto *kineto = xs_chrome_of(process)->kineto;

	o = xs_put(o, "\"deviceProperties\": [");
	for (uint32_t i = 0; i < kineto->place_count; i++) {
		const struct xs_kineto_place *place = &kineto->places[i];
		size_t length = 0;
		const char *name = place->name ? xs_text_of(process->run, place->name, &length)
					       : "";

		o = xs_put_count(xs_put(o, i ? "," : ""), "{\"id\": ", place->pid);
		if (length)
			o = xs_put(xs_json_escape(xs_put(o, ",\"name\": \""), name,
						  length < 1024 ? length : 1024),
				   "\"");
		if (place->name)
			o = put_properties(o, process, place->name);
		o = xs_put(o, "}");
	}
	return xs_put(o, "]");
}

/* Readers look for "rank": with a blank behind it, and take what they find first. */
static char *put_distributed(char *o, const struct xs_process *process)
{
	int32_t rank = xs_process_rank(process),
		size = atomic_load_explicit(&process->file->world_size, memory_order_relaxed);

	if (rank < 0 || xs_chrome_has_about(process, "distributedInfo"))
		return o;
	o = xs_put_count(o, ",\"distributedInfo\": {\"rank\": ", (uint64_t)rank);
	if (size > 0)
		o = xs_put_count(o, ",\"world_size\": ", (uint64_t)size);
	return xs_put(o, "}");
}

char *xs_kineto_put_tail(char *o, const struct xs_process *process)
{
	o = put_distributed(put_devices(o, process), process);
	if (!xs_chrome_has_about(process, "trace_id"))
		o = xs_put(xs_put_escaped(xs_put(o, ",\"trace_id\": \""),
					  process->trace_id ? process->trace_id
							    : process->run->run_id),
			   "\"");
	o = xs_chrome_put_about_keys(o, process, reserved);
	o = xs_put_escaped(xs_put(o, ",\"traceName\": \""), xs_chrome_of(process)->path);
	return xs_put(o, "\"");
}

/* ---- calls ---- */

/* CUDA's driver calls begin with cu and a capital, the runtime's with cuda. */
static uint32_t type_of(const struct xs_call *call, const char *name, size_t length)
{
	uint32_t type = xs_backend_of(call->event->source)->call_type;

	if (type == XS_TYPE_CUDA_RUNTIME && length > 2 && name[0] == 'c' && name[1] == 'u' &&
	    name[2] >= 'A' && name[2] <= 'Z')
		return XS_TYPE_CUDA_DRIVER;
	return type;
}

bool xs_kineto_wants_call(const struct xs_process *process, const struct xs_call *call)
{
	size_t length;
	const char *name = xs_text_of(process->run, call->name, &length);

	return xs_chrome_wants(xs_chrome_of(process), type_of(call, name, length));
}

/* HolisticTraceAnalysis counts launches by the names that CUDA's runtime gives them. */
static bool is_launch(const char *name, size_t length)
{
	static const char *const words[] = { "clEnqueueNDRangeKernel", "clEnqueueTask",
					     "LaunchKernel", "LaunchCooperativeKernel" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(name, length, words[i], strlen(words[i])))
			return true;
	return false;
}

static void remember(struct xs_track *track, uint64_t correlation)
{
	struct xs_kineto *kineto = xs_chrome_of(track->process)->kineto;

	if (track->external || track->depth)
		kineto->calls[correlation / 2 % XS_KINETO_KEPT] =
			(struct xs_kineto_call){ correlation, track->external,
						 xs_kineto_span_of(track) };
}

char *xs_kineto_end_call(char *o, struct xs_track *track, const struct xs_call *call)
{
	struct xs_process *process = track->process;
	uint64_t correlation = xs_kineto_correlation(track->tid, call->event->tick);
	size_t length;
	const char *name = xs_text_of(process->run, call->name, &length);
	uint32_t type = type_of(call, name, length);
	bool renamed = process->run->options->format == XS_FORMAT_KINETO_HTA &&
		       is_launch(name, length);

	o = xs_put_count(xs_kineto_more_args(o), "\"correlation\":", correlation);
	if (track->external)
		o = xs_put_count(o, ",\"External id\":", track->external);
	remember(track, correlation);
	if (renamed)
		o = xs_put(xs_json_escape(xs_put(o, ",\"call\":\""), name,
					  length < 256 ? length : 256),
			   "\"");
	o = xs_put(xs_put(xs_put(o, "},\"cat\":\""), xs_activity_type_name(type)), "\"");
	return renamed ? xs_put(o, ",\"name\":\"cudaLaunchKernel\"},\n")
		       : xs_chrome_put_bare_name(o, process, call->name);
}

/* ---- what CUPTI tells beside ---- */

#define FACTS_MAX 8u

void xs_kineto_aside(struct xs_process *process, const struct xs_aside *aside)
{
	size_t length;
	const char *row = xs_text_of(process->run, aside->row, &length);
	bool sync = memmem(row, length, "synchronization", 15);
	char *o;

	if (!xs_chrome_wants(xs_chrome_of(process), sync ? XS_TYPE_CUDA_SYNC : XS_TYPE_OVERHEAD))
		return;
	o = xs_chrome_own_slice(process, aside->row, aside->start, aside->end);
	if (!o)
		return;
	for (uint32_t i = 0; i < aside->fact_count && i < FACTS_MAX; i++) {
		const char *key = aside->facts[i].key;

		/* CUPTI's number, which calls do not have here */
		if (!strcmp(key, "correlation"))
			continue;
		if (!strcmp(key, "event"))
			key = "wait_on_cuda_event_id";
		o = xs_put(xs_put(xs_kineto_more_args(o), "\""), key);
		o = xs_put(xs_put_count(o, "\":", aside->facts[i].value), "}");
	}
	o = xs_put(o, sync ? ",\"cat\":\"cuda_sync\"" : ",\"cat\":\"overhead\"");
	xs_chrome_finish(xs_chrome_of(process), xs_chrome_put_bare_name(o, process, aside->name));
}
