/*
 * Kineto's format: activities that the program has described itself, and the arrows between them.
 */
#include <stdlib.h>
#include <string.h>

#include "activity_types.h"
#include "extras.h"
#include "hash.h"
#include "kineto.h"
#include "names.h"
#include "task_record.h"

#define TRACK_BITS 0x7fffffffu /* what a viewer takes for a thread or process */

static bool is_device(uint32_t type)
{
	return type == XS_TYPE_KERNEL || type == XS_TYPE_GPU_MEMCPY || type == XS_TYPE_GPU_MEMSET ||
	       type == XS_TYPE_GPU_USER_ANNOTATION || type == XS_TYPE_CUDA_SYNC;
}

static bool is_runtime(uint32_t type)
{
	return type == XS_TYPE_CUDA_RUNTIME || type == XS_TYPE_CUDA_DRIVER ||
	       type == XS_TYPE_XPU_RUNTIME || type == XS_TYPE_XPU_DRIVER;
}

/* What is looked for among the activity's metadata. */
struct found {
	uint64_t sequence, forward_thread;
	bool has_sequence, has_stream, has_device, has_correlation, has_external;
};

static bool is_key(const char *key, size_t length, const char *wanted)
{
	return length == strlen(wanted) && !memcmp(key, wanted, length);
}

static uint64_t number_of(const char *text, size_t length)
{
	uint64_t value = 0;

	for (size_t i = 0; i < length && i < 19 && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	return value;
}

static void look(struct found *found, const char *key, size_t length, const char *value, size_t n)
{
	if (is_key(key, length, "Sequence number")) {
		found->has_sequence = n && value[0] >= '0' && value[0] <= '9';
		found->sequence = number_of(value, n);
	} else if (is_key(key, length, "Fwd thread id")) {
		found->forward_thread = number_of(value, n);
	}
	found->has_stream |= is_key(key, length, "stream");
	found->has_device |= is_key(key, length, "device");
	found->has_correlation |= is_key(key, length, "correlation");
	found->has_external |= is_key(key, length, "External id");
}

/* A key that comes again would make the object ambiguous: the first one counts. */
#define KEYS_MAX 32u

static char *put_metadata(char *o, const struct xs_process *process,
			  const struct xs_activity *activity, struct found *found)
{
	const unsigned char *values;
	uint32_t at = 0, seen[KEYS_MAX], count = 0;
	struct xs_arg arg;

	while (count < KEYS_MAX &&
	       xs_args_next(activity->args, activity->length, &at, &arg, &values)) {
		const char *value = (const char *)values;
		size_t length;
		const char *key = xs_text_of(process->run, arg.key, &length);
		uint32_t i = 0;

		while (i < count && seen[i] != arg.key)
			i++;
		if (i < count || !xs_chrome_is_text(&arg))
			continue;
		seen[count++] = arg.key;
		look(found, key, length, value, arg.count);
		o = xs_put(xs_json_escape(xs_put(o, ",\""), key, length < 256 ? length : 256),
			   "\":");
		o = xs_chrome_put_text(o, &arg, values);
	}
	return o;
}

/* ---- arrows ---- */

static struct xs_kineto_origin *origin_of(struct xs_kineto *kineto, uint64_t key, uint64_t other)
{
	uint64_t words[2] = { key, other };

	return &kineto->origins[xs_hash(words, 2) & (XS_KINETO_KEPT - 1)];
}

static char *put_end(char *o, const char *phase, const char *name, uint64_t id, uint64_t ts,
		     const struct xs_kineto_origin *at)
{
	o = xs_put(xs_put(xs_put(o, "{\"ph\":\""), phase), "\",\"id\":");
	o = xs_put_count(xs_put_count(xs_json_uint(o, id), ",\"pid\":", at->pid),
			 ",\"tid\":", at->tid);
	o = xs_put(xs_json_micros(xs_put(o, ",\"ts\":"), ts), ",\"cat\":\"");
	return xs_put(xs_put(xs_put(xs_put(o, name), "\",\"name\":\""), name), "\"},\n");
}

static void put_arrow(struct xs_chrome *chrome, const char *name,
		      const struct xs_kineto_origin *from, const struct xs_kineto_origin *to)
{
	/* behind those of calls, which begin with a process's number */
	uint64_t id = 1ull << 52 | ++chrome->kineto->arrows;
	char *o = xs_output_put(&chrome->out);

	o = put_end(o, "s", name, id, from->start, from);
	xs_chrome_finish(chrome, put_end(o, "f\",\"bp\":\"e", name, id, to->start, to));
}

/* From a forward operation to its backward one, and from a launch to what it has launched. */
static void put_arrows(struct xs_chrome *chrome, const struct xs_activity_record *record,
		       const struct found *found, const struct xs_kineto_origin *here)
{
	struct xs_kineto *kineto = chrome->kineto;
	struct xs_kineto_origin *from;

	if (found->has_sequence && found->forward_thread) {
		from = origin_of(kineto, found->sequence, found->forward_thread);
		if (from->other == found->forward_thread && from->key == found->sequence)
			put_arrow(chrome, "fwdbwd", from, here);
	} else if (found->has_sequence && record->resource > 0) {
		from = origin_of(kineto, found->sequence, (uint64_t)record->resource);
		*from = *here;
		from->key = found->sequence;
		from->other = (uint64_t)record->resource;
	}
	if (!record->correlation)
		return;
	from = origin_of(kineto, record->correlation, UINT64_MAX);
	if (is_runtime(record->type)) {
		*from = *here;
		from->key = record->correlation;
		from->other = UINT64_MAX;
	} else if (is_device(record->type) && record->type != XS_TYPE_GPU_USER_ANNOTATION &&
		   from->other == UINT64_MAX && from->key == record->correlation &&
		   from->start <= here->start) {
		put_arrow(chrome, "ac2g", from, here);
	}
}

/* ---- slices ---- */

static char *put_args(char *o, const struct xs_process *process, const struct xs_activity *activity,
		      struct found *found)
{
	const struct xs_activity_record *record = activity->record;
	bool device = is_device(record->type);
	char *first = xs_put(o, ",\"args\":{") - 1;

	*found = (struct found){ .sequence = 0 };
	/* each member has a comma before it: the first one's is the brace */
	o = put_metadata(first, process, activity, found);
	if (device && !found->has_device)
		o = xs_put_count(o, ",\"device\":", (uint32_t)record->device & TRACK_BITS);
	if (device && !found->has_stream)
		o = xs_put_count(o, ",\"stream\":", (uint32_t)record->resource & TRACK_BITS);
	if (record->correlation && (device || is_runtime(record->type)) && !found->has_correlation)
		o = xs_put_count(o, ",\"correlation\":", record->correlation);
	else if (record->correlation && !found->has_external)
		o = xs_put_count(o, ",\"External id\":", record->correlation);
	if (o == first)
		return xs_put(o, "{}");
	*first = '{';
	return xs_put(o, "}");
}

void xs_kineto_activity(struct xs_track *track, const struct xs_activity *activity)
{
	const struct xs_activity_record *record = activity->record;
	struct xs_process *process = track->process;
	struct xs_chrome *chrome = xs_chrome_of(process);
	bool instant = record->type == XS_TYPE_CPU_INSTANT_EVENT, device = is_device(record->type);
	uint32_t pid = (uint32_t)process->pid, tid = (uint32_t)record->resource & TRACK_BITS;
	enum xs_kineto_lanes lanes = !device ? XS_KINETO_THREAD
				     : record->type == XS_TYPE_GPU_USER_ANNOTATION
					     ? XS_KINETO_ANNOTATION
					     : XS_KINETO_STREAM;
	struct found found;
	char *o;

	if (record->type < XS_TYPE_COUNT && !xs_chrome_wants(chrome, record->type))
		return;
	if (device)
		pid = xs_kineto_told_device(process, (uint32_t)record->device & TRACK_BITS);
	if (!instant &&
	    !xs_kineto_lane(process, pid, tid, lanes, activity->start, activity->end, &tid))
		return;
	o = xs_put(xs_output_put(&chrome->out),
		   instant ? "{\"ph\":\"i\",\"s\":\"t\"" : "{\"ph\":\"X\"");
	o = xs_put_count(xs_put_count(o, ",\"tid\":", tid), ",\"pid\":", pid);
	o = xs_json_micros(xs_put(o, ",\"ts\":"), activity->start);
	if (!instant)
		o = xs_json_micros(xs_put(o, ",\"dur\":"), activity->end - activity->start);
	o = put_args(o, process, activity, &found);
	o = xs_put(xs_put(xs_put(o, ",\"cat\":\""), xs_activity_type_name(record->type)), "\"");
	xs_chrome_finish(chrome, xs_chrome_put_bare_name(o, process, record->event.name));
	if (!instant && chrome->types == UINT64_MAX)
		put_arrows(chrome, record, &found,
			   &(struct xs_kineto_origin){
				   .start = activity->start, .pid = pid, .tid = tid });
}
