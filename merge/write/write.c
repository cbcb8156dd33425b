/*
 * The merged trace as Chrome's JSON, in the layout of xstrace's own (docs/TRACE_FORMAT.md).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "json.h"
#include "pour.h"
#include "sink.h"

#define ROOM 512u /* bytes that an event needs beyond its members as they stand there */

/* What the last slice of an input was written with. */
struct last {
	struct xs_json_clock clock;
	char own[64]; /* how a slice of this track begins, up to its time */
	size_t own_length;
	uint32_t own_pid;
	int64_t own_tid;
} __attribute__((aligned(64))); /* a thread's own lines */

struct json_sink {
	struct xm_sink sink;
	struct xm_pour pour;
	struct last *last; /* by the input's index */
	bool kineto;
};

static inline char *put(char *o, const char *text, size_t n)
{
	memcpy(o, text, n);
	return o + n;
}
#define PUT(o, literal) put(o, literal, sizeof(literal) - 1)

static char *put_micros(char *o, int64_t ns)
{
	if (ns < 0) {
		*o++ = '-';
		ns = -ns;
	}
	return xs_json_micros(o, (uint64_t)ns);
}

static int json_open(struct xm_sink *sink, int fd, bool compress)
{
	/* plain text is made by many threads, and the one that puts it in order writes it, too */
	return xm_pour_open(&((struct json_sink *)sink)->pour, fd, compress, compress);
}

/* Text that was printed to memory; frees it. */
static void put_printed(struct json_sink *json, char *text, size_t n)
{
	if (text)
		xm_pour_text(&json->pour, text, n);
	else
		json->sink.error = -ENOMEM;
	free(text);
}

#define MOST_OF(bytes) (6 * (bytes))

/*
 * What a string has between its quotes, or any other value as such: the text of an object has
 * quotes and line ends of its own. At most MOST_OF() its bytes.
 */
static char *put_inside(char *o, struct xf_text value)
{
	struct xf_text inside = xf_inside(value);

	return xf_is_string(value) ? put(o, inside.p, inside.n)
				   : xs_json_escape(o, value.p, value.n);
}

static void put_tids(FILE *out, const struct xm_input *input)
{
	for (uint32_t i = 0; i < input->tids.count; i++) {
		uint32_t process;
		size_t n;
		const char *key = xf_map_key(&input->tids, i, &n);
		struct xf_text tid = { key + sizeof(process), n - sizeof(process) };
		char text[MOST_OF(XM_TID_TEXT)];

		memcpy(&process, key, sizeof(process));
		fprintf(out,
			"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRIu32
			",\"tid\":%" PRIu32 ",\"args\":{\"name\":\"%.*s\"}},\n",
			input->processes[process].out_pid, XM_OWN_TID + i,
			(int)(put_inside(text, tid) - text), text);
	}
}

static void json_head(struct xm_sink *sink, const struct xm_merge *merge,
		      const struct xm_clocks *clocks, bool synced)
{
	struct json_sink *json = (struct json_sink *)sink;
	const struct xm_process *process;
	const struct xm_input *input;
	uint32_t place = 0, part = 0;
	char *text = NULL, name[2048];
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	json->last = aligned_alloc(64, (merge->count + 1) * sizeof(*json->last));
	if (json->last)
		memset(json->last, 0, (merge->count + 1) * sizeof(*json->last));
	if (!out || !json->last) {
		json->sink.error = -ENOMEM;
		return;
	}
	fprintf(out,
		"{%s\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRId64 ",\"metadata\":{",
		json->kineto ? "\"schemaVersion\": 1," : "", merge->base);
	xm_put_metadata(out, merge, clocks, synced);
	fputs("},\"traceEvents\":[\n", out);
	while (xm_next_process(merge, &place, &part, &input, &process)) {
		uint32_t pid = process->out_pid;

		(void)xm_process_name(input, process, name, sizeof(name));
		fprintf(out,
			"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu32
			",\"tid\":%" PRIu32 ",\"args\":{\"name\":%s}},\n",
			pid, pid, name);
		if (process->labels)
			fprintf(out,
				"{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%" PRIu32
				",\"tid\":%" PRIu32 ",\"args\":{\"labels\":%s}},\n",
				pid, pid, process->labels);
		fprintf(out,
			"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%" PRIu32
			",\"tid\":%" PRIu32 ",\"args\":{\"sort_index\":%" PRIu32 "}},\n",
			pid, pid, process->order);
	}
	for (uint32_t i = 0; i < merge->count; i++)
		put_tids(out, merge->order[i]);
	fclose(out);
	put_printed(json, text, n);
}

/* An id of flows or asynchronous events: told apart from other inputs'. */
static char *put_id(char *o, const struct xm_input *input, char phase, struct xf_text id)
{
	bool is_flow = phase == 's' || phase == 't' || phase == 'f';
	int64_t number;

	if (phase == 'X' || phase == 'i' || phase == 'I')
		return put(o, id.p, id.n);
	if (is_flow && input->has_ids && xf_integer(id, &number) && number >= 0)
		return xs_json_uint(o, (uint64_t)(number - input->id_low + input->id_base));
	*o++ = '"';
	o = xs_json_uint(o, input->number);
	*o++ = ':';
	o = put_inside(o, id);
	*o++ = '"';
	return o;
}

/* Room for so many bytes more behind o, which moves with the text. NULL: no memory. */
static char *make_room(struct xm_block *block, char *o, size_t more)
{
	size_t before = block->text.length;

	block->text.length = (size_t)(o - block->text.data);
	o = xm_block_room(block, &block->text, more);
	block->text.length = before; /* an event is there as a whole, or not */
	return o;
}

/* The arguments of device work, in which there are two more times. NULL: no memory. */
static char *put_device_args(struct json_sink *json, struct xm_block *block, char *o,
			     struct xf_text args)
{
	const char *p = xf_first(args), *from = args.p, *end = args.p + args.n;
	struct xf_text key, value;

	while (xf_member(&p, end, &key, &value)) {
		int64_t ns;

		if ((!xf_is(key, "queued") && !xf_is(key, "submit")) || !xf_nanoseconds(value, &ns))
			continue;
		o = put(o, from, (size_t)(value.p - from));
		from = value.p + value.n;
		/* the time may be longer than it was */
		o = make_room(block, o, (size_t)(end - from) + ROOM);
		if (!o)
			return NULL;
		o = put_micros(o, xm_out_time(&json->sink, block->input, block->input->base + ns));
	}
	return put(o, from, (size_t)(end - from));
}

/* A slice of xstrace's own layout: its numbers change, the rest is copied as it stands. */
static char *put_own(struct last *last, char *o, const struct xf_event *event,
		     const struct xm_place *place, int64_t duration)
{
	const char *rest = event->own_rest.p;

	if (place->pid != last->own_pid || place->tid != last->own_tid || !last->own_length) {
		char *p = xs_json_uint(PUT(last->own, "{\"ph\":\"X\",\"tid\":"),
				       (uint64_t)place->tid);

		last->own_length =
			(size_t)(PUT(xs_json_uint(PUT(p, ",\"pid\":"), place->pid), ",\"ts\":") -
				 last->own);
		last->own_pid = place->pid;
		last->own_tid = place->tid;
	}
	memcpy(o, last->own, sizeof(last->own));
	o = xs_json_time(o + last->own_length, (uint64_t)place->time, &last->clock);
	if (duration != event->own_dur) { /* the clock goes at another pace */
		o = xs_json_micros(PUT(o, ",\"dur\":"), (uint64_t)duration);
		rest = event->dur.p + event->dur.n;
	}
	return PUT(put(o, rest, (size_t)(event->own_rest.p + event->own_rest.n - rest)), ",\n");
}

static size_t length_of(const struct xf_event *event)
{
	size_t n = ROOM + event->ph.n + MOST_OF(event->id.n) + event->bp.n + event->scope.n +
		   event->cat.n + event->name.n + event->args.n;

	for (uint32_t i = 0; i < event->other_count; i++)
		n += event->others[i].n + 1;
	return n;
}

static inline char *put_member(char *o, const char *key, size_t key_length, struct xf_text value)
{
	return value.n ? put(put(o, key, key_length), value.p, value.n) : o;
}
#define MEMBER(o, literal, value) put_member(o, literal, sizeof(literal) - 1, value)

/* Any other event. NULL: no memory. */
static char *put_event(struct json_sink *json, struct xm_block *block, char *o,
		       const struct xf_event *event, const struct xm_place *place, int64_t duration)
{
	bool is_device = xf_is(event->cat, "\"gpu_op\"") && event->args.n &&
			 event->args.p[0] == '{';
	struct xs_json_clock *clock = &json->last[block->input->index].clock;

	o = put(PUT(o, "{\"ph\":"), event->ph.p, event->ph.n);
	if (place->tid != XM_NO_TIME)
		o = xs_json_uint(PUT(o, ",\"tid\":"), (uint64_t)place->tid);
	o = xs_json_uint(PUT(o, ",\"pid\":"), place->pid);
	if (place->time != XM_NO_TIME)
		o = place->time < 0
			    ? put_micros(PUT(o, ",\"ts\":"), place->time)
			    : xs_json_time(PUT(o, ",\"ts\":"), (uint64_t)place->time, clock);
	if (duration >= 0)
		o = xs_json_micros(PUT(o, ",\"dur\":"), (uint64_t)duration);
	if (event->id.n && event->id.n < 4096)
		o = put_id(PUT(o, ",\"id\":"), block->input, event->ph.p[1], event->id);
	o = MEMBER(o, ",\"bp\":", event->bp);
	o = MEMBER(o, ",\"s\":", event->scope);
	o = MEMBER(o, ",\"cat\":", event->cat);
	o = MEMBER(o, ",\"name\":", event->name);
	for (uint32_t i = 0; i < event->other_count; i++)
		o = MEMBER(o, ",", event->others[i]);
	if (is_device)
		o = put_device_args(json, block, PUT(o, ",\"args\":"), event->args);
	else
		o = MEMBER(o, ",\"args\":", event->args);
	return o ? PUT(o, "},\n") : NULL;
}

static void json_event(struct xm_sink *sink, struct xm_block *block, const struct xf_event *event,
		       const struct xm_place *place, int64_t duration)
{
	struct json_sink *json = (struct json_sink *)sink;
	bool is_own = event->is_own && place->time >= 0;
	size_t most = is_own ? event->own_rest.n + ROOM : length_of(event);
	char *o = json->last ? xm_block_room(block, &block->text, most) : NULL;

	if (o)
		o = is_own ? put_own(&json->last[block->input->index], o, event, place, duration)
			   : put_event(json, block, o, event, place, duration);
	if (o)
		block->text.length = (size_t)(o - block->text.data);
}

static void json_text(struct xm_sink *sink, const char *text, size_t length)
{
	xm_pour_text(&((struct json_sink *)sink)->pour, text, length);
}

static char *put_end(char *o, char phase, const struct xm_place *place, const char *category,
		     const char *name, uint64_t id)
{
	o = PUT(o, "{\"ph\":\"");
	*o++ = phase;
	o = phase == 'f' ? PUT(o, "\",\"bp\":\"e\",\"tid\":") : PUT(o, "\",\"tid\":");
	o = xs_json_uint(PUT(xs_json_uint(o, (uint64_t)place->tid), ",\"pid\":"), place->pid);
	o = xs_json_uint(PUT(put_micros(PUT(o, ",\"ts\":"), place->time), ",\"id\":"), id);
	o = put(PUT(o, ",\"cat\":\""), category, strlen(category));
	o = put(PUT(o, "\",\"name\":\""), name, strlen(name));
	return PUT(o, "\"},\n");
}

static void json_arrow(struct xm_sink *sink, const char *category, const char *name, uint64_t id,
		       const struct xm_place *from, const struct xm_place *to)
{
	struct json_sink *json = (struct json_sink *)sink;
	char *o = xs_output_put(&json->pour.front);

	o = put_end(o, 's', from, category, name, id);
	o = put_end(o, 'f', to, category, name, id);
	xs_output_put_end(&json->pour.front, o);
	xm_pour_full(&json->pour);
}

static int json_close(struct xm_sink *sink, const struct xm_merge *merge, struct xm_totals *totals)
{
	struct json_sink *json = (struct json_sink *)sink;
	const struct xm_process *process;
	const struct xm_input *input;
	uint32_t place = 0, part = 0;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int error;

	if (out) {
		/* every event ends with a comma; this one does not */
		if (xm_next_process(merge, &place, &part, &input, &process))
			fprintf(out,
				"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%" PRIu32
				",\"tid\":%" PRIu32 ",\"args\":{\"sort_index\":%" PRIu32 "}}",
				process->out_pid, process->out_pid, process->order);
		fputs("\n],", out);
		if (json->kineto)
			xm_put_kineto(out, merge);
		fputs("\"otherData\":{", out);
		xm_put_summary(out, merge, sink->clocks, totals);
		fputs("}}\n", out);
		fclose(out);
	}
	error = xm_pour_close(&json->pour, text ? text : "", n);
	error = sink->error ? sink->error : error;
	free(text);
	free(json->last);
	free(json);
	return text ? error : -ENOMEM;
}

struct xm_sink *xm_sink_json(bool kineto)
{
	struct json_sink *json = calloc(1, sizeof(*json));

	if (!json)
		return NULL;
	json->sink = (struct xm_sink){ .open = json_open,
				       .head = json_head,
				       .event = json_event,
				       .text = json_text,
				       .is_ahead = true,
				       .arrow = json_arrow,
				       .close = json_close };
	json->pour.back.fd = -1;
	json->kineto = kineto;
	return &json->sink;
}
