#include "packets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "annotations.h"
#include "perfetto_fields.h"

#define LONGEST	  (64u << 20) /* bytes of a packet */
#define PIECE	  (256u << 10)
#define DEPTH	  256u
#define MOST	  (256u << 20) /* bytes that are remembered of texts and tracks */
#define SEQUENCES 65536u

enum { CATEGORIES, NAMES, KEYS, KINDS };

/* What the packets of one sequence have told so far. */
struct sequence {
	uint64_t now, uuid;
	struct xt_texts texts[KINDS];
};

/* Where events of a track are: numbers as text. */
struct place {
	char pid[24], tid[24];
	char *counter; /* string of JSON */
};

struct packets {
	struct xt_trace *trace;
	struct xf_map numbers, uuids;
	struct sequence *sequences;
	struct place *places;
	uint32_t sequence_room, place_room;
	size_t used;
	struct xf_proto args, name, category, repaired;
	struct sequence *sequence; /* of the packet */
};

bool xt_is_packets(const char *head, size_t n)
{
	size_t at = 1;

	if (n < 3 || head[0] != '\n')
		return false;
	while (at < n - 1 && head[at] & 128)
		at++;
	return at + 1 < n && !strchr(" \t\r\n{[", head[at + 1]);
}

/* Makes good JSON of it: names and arguments may be no UTF-8. */
static struct xf_text proper(struct packets *p, struct xf_proto *made)
{
	const char *stop, *why;
	size_t n = made->length;
	char *out;

	if (!xf_proto_room(made, XF_SLACK))
		return (struct xf_text){ "\"\"", 2 };
	memset(made->data + n, 0, XF_SLACK);
	if (xf_scan_value(made->data, made->data + n, &stop, &why) == XF_OK)
		return (struct xf_text){ made->data, n };
	p->repaired.length = 0;
	out = xf_proto_room(&p->repaired, xf_repaired_length(made->data, n) + XF_SLACK);
	if (!out)
		return (struct xf_text){ "\"\"", 2 };
	n = (size_t)(xf_repair(out, made->data, n) - out);
	memset(out + n, 0, XF_SLACK);
	/* `made` takes it, so that there can be more than one of them */
	made->length = 0;
	xf_proto_raw(made, out, n + XF_SLACK);
	made->length = n;
	return (struct xf_text){ made->data, made->failed ? 0 : n };
}

/* ---- what is told once ---- */

static struct xf_text text_of(const struct packets *p, unsigned kind, uint64_t number)
{
	const struct xt_texts *texts = &p->sequence->texts[kind];

	return number < texts->room ? texts->list[number] : (struct xf_text){ 0 };
}

static void forget(struct packets *p, struct sequence *sequence)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (uint32_t i = 0; i < sequence->texts[kind].room; i++) {
			struct xf_text *text = &sequence->texts[kind].list[i];

			p->used -= text->n;
			free((char *)text->p);
			*text = (struct xf_text){ 0 };
		}
}

static const char *remember(struct packets *p, unsigned kind, struct xt_message entry)
{
	struct xt_texts *texts = &p->sequence->texts[kind];
	struct xt_wire field, text = { 0 };
	uint64_t number = 0;
	struct xf_text made;
	uint32_t before = texts->room;
	char *copy;

	while (xt_next(&entry, &field)) {
		if (field.number == INTERNED_IID && field.kind == XT_NUMBER)
			number = field.value;
		else if (field.number == INTERNED_TEXT && field.kind == XT_BYTES)
			text = field;
	}
	if (entry.why || !number || !text.data)
		return entry.why ? entry.why : "a text without number";
	if (number > MOST / sizeof(*texts->list) ||
	    p->used + text.n + (number < before ? 0 : 2 * number * sizeof(*texts->list)) > MOST)
		return "too much is to be remembered";
	if (!xf_room_for(&texts->list, &texts->room, (uint32_t)number, sizeof(*texts->list)))
		return "out of memory";
	p->used += (texts->room - before) * sizeof(*texts->list);
	p->name.length = 0;
	xt_json_string(&p->name, text.data, text.n);
	made = proper(p, &p->name);
	copy = xf_keep(made);
	if (!copy)
		return "out of memory";
	p->used += made.n - texts->list[number].n;
	free((char *)texts->list[number].p);
	texts->list[number] = (struct xf_text){ copy, made.n };
	return NULL;
}

static const char *take_texts(struct packets *p, struct xt_message interned)
{
	struct xt_wire field;
	const char *why = NULL;

	while (!why && xt_next(&interned, &field)) {
		if (field.kind != XT_BYTES || field.number < INTERNED_CATEGORIES ||
		    field.number > INTERNED_ANNOTATIONS)
			continue;
		why = remember(p, field.number - INTERNED_CATEGORIES, xt_inside(&field));
	}
	return why ? why : interned.why;
}

/* ---- tracks ---- */

static struct place *place_of(struct packets *p, uint64_t uuid, bool add)
{
	uint32_t index = add ? xf_map_add(&p->uuids, &uuid, sizeof(uuid))
			     : xf_map_find(&p->uuids, &uuid, sizeof(uuid));

	if (index == XF_NONE ||
	    (add && !xf_room_for(&p->places, &p->place_room, index, sizeof(*p->places))))
		return NULL;
	return &p->places[index];
}

static struct xf_text as_text(const char *number)
{
	return (struct xf_text){ number, strlen(number) };
}

#define LITERAL(text) ((struct xf_text){ text, sizeof(text) - 1 })

/* A name, as the event of phase M that JSON would have. */
static void take_name(struct packets *p, const struct place *place, struct xf_text what,
		      const char *key, const struct xt_wire *name)
{
	struct xf_event event = { .ph = LITERAL("\"M\""), .name = what };

	event.pid = as_text(place->pid);
	event.tid = as_text(place->tid);
	p->args.length = 0;
	xf_proto_raw(&p->args, "{", 1);
	xt_json_string(&p->args, key, strlen(key));
	xf_proto_raw(&p->args, ":", 1);
	xt_json_string(&p->args, name->data, name->n);
	xf_proto_raw(&p->args, "}", 1);
	event.args = proper(p, &p->args);
	xt_take_name(p->trace, &event);
}

/* A descriptor of a process or a thread. */
static const char *take_place(struct packets *p, uint64_t uuid, struct xt_message told,
			      bool is_thread)
{
	uint64_t pid = 0, tid = 0;
	struct xt_wire field, name = { 0 }, labels = { 0 };
	struct place *place;

	while (xt_next(&told, &field)) {
		if (field.kind == XT_NUMBER && field.number == PROCESS_PID)
			pid = tid = tid ? tid : field.value;
		if (field.kind == XT_NUMBER && is_thread && field.number == THREAD_PID)
			pid = field.value;
		if (field.kind == XT_NUMBER && is_thread && field.number == THREAD_TID)
			tid = field.value;
		if (field.kind == XT_BYTES &&
		    field.number == (is_thread ? (uint32_t)THREAD_NAME : (uint32_t)PROCESS_NAME))
			name = field;
		if (field.kind == XT_BYTES && !is_thread && field.number == PROCESS_LABELS)
			labels = field;
	}
	place = told.why ? NULL : place_of(p, uuid, true);
	if (!place)
		return told.why ? told.why : "too many tracks";
	(void)snprintf(place->pid, sizeof(place->pid), "%lld", (long long)pid);
	(void)snprintf(place->tid, sizeof(place->tid), "%lld", (long long)tid);
	if (name.data)
		take_name(p, place,
			  is_thread ? LITERAL("\"thread_name\"") : LITERAL("\"process_name\""),
			  "name", &name);
	if (labels.data)
		take_name(p, place, LITERAL("\"process_labels\""), "labels", &labels);
	return NULL;
}

static const char *take_counter(struct packets *p, uint64_t uuid, uint64_t parent,
				const struct xt_wire *name)
{
	struct place *of = place_of(p, parent, false), *place;
	char pid[24];
	struct xf_text made;

	if (!of)
		return "a counter of a track that is not described";
	memcpy(pid, of->pid, sizeof(pid));
	place = place_of(p, uuid, true);
	if (!place || p->used + name->n > MOST)
		return "too many tracks";
	memcpy(place->pid, pid, sizeof(pid));
	p->name.length = 0;
	xt_json_string(&p->name, name->data ? name->data : "", name->n);
	made = proper(p, &p->name);
	free(place->counter);
	place->counter = xf_keep(made);
	p->used += made.n;
	return place->counter ? NULL : "out of memory";
}

static const char *take_descriptor(struct packets *p, struct xt_message track)
{
	struct xt_message told = track;
	struct xt_wire field, name = { 0 };
	uint64_t uuid = 0, parent = 0;
	bool has_uuid = false, is_counter = false;
	const char *why = NULL;

	while (xt_next(&told, &field)) {
		if (field.number == TRACK_UUID && field.kind == XT_NUMBER) {
			uuid = field.value;
			has_uuid = true;
		} else if (field.number == TRACK_PARENT && field.kind == XT_NUMBER) {
			parent = field.value;
		} else if (field.number == TRACK_NAME && field.kind == XT_BYTES) {
			name = field;
		} else if (field.number == TRACK_COUNTER) {
			is_counter = true;
		}
	}
	if (told.why || !has_uuid)
		return told.why ? told.why : "a track without a number";
	while (!why && xt_next(&track, &field)) {
		if (field.kind == XT_BYTES &&
		    (field.number == TRACK_PROCESS || field.number == TRACK_THREAD))
			why = take_place(p, uuid, xt_inside(&field), field.number == TRACK_THREAD);
	}
	if (!why && is_counter)
		why = take_counter(p, uuid, parent, &name);
	return why;
}

/* ---- events ---- */

struct found {
	uint64_t type, uuid, legacy_phase, legacy_id;
	bool is_enclosing, has_value, is_whole;
	double value;
	int64_t whole;
};

/* The members of an event that are texts; annotations become `args`. */
static const char *take_field(struct packets *p, const struct xt_wire *field,
			      struct xf_event *event, struct found *found)
{
	struct xt_message legacy;
	struct xt_wire inner;

	switch (field->number) {
	case EVENT_TYPE:
		found->type = field->value;
		break;
	case EVENT_TRACK_UUID:
		found->uuid = field->value;
		break;
	case EVENT_CATEGORY_IIDS:
		event->cat = text_of(p, CATEGORIES, field->value);
		return event->cat.p ? NULL : "a text that was not told";
	case EVENT_NAME_IID:
		event->name = text_of(p, NAMES, field->value);
		return event->name.p ? NULL : "a text that was not told";
	case EVENT_CATEGORIES:
	case EVENT_NAME: {
		struct xf_proto *made = field->number == EVENT_NAME ? &p->name : &p->category;

		made->length = 0;
		xt_json_string(made, field->data, field->n);
		*(field->number == EVENT_NAME ? &event->name : &event->cat) = proper(p, made);
		break;
	}
	case EVENT_VALUE:
		found->has_value = found->is_whole = field->kind == XT_NUMBER;
		found->whole = (int64_t)field->value;
		break;
	case EVENT_DOUBLE_VALUE:
		found->has_value = field->kind == XT_EIGHT;
		memcpy(&found->value, &field->value, 8);
		break;
	case EVENT_ANNOTATIONS:
		xf_proto_raw(&p->args, p->args.length ? "," : "{", 1);
		return xt_json_annotation(&p->args, xt_inside(field), &p->sequence->texts[KEYS],
					  DEPTH);
	case EVENT_LEGACY:
		for (legacy = xt_inside(field); xt_next(&legacy, &inner);) {
			if (inner.number == LEGACY_PHASE)
				found->legacy_phase = inner.value;
			else if (inner.number == LEGACY_ID)
				found->legacy_id = inner.value;
			else if (inner.number == LEGACY_ENCLOSING)
				found->is_enclosing = inner.value;
		}
		return legacy.why;
	}
	return NULL;
}

/* What xstrace tells of the trace, in events of its own. */
static bool is_own(struct packets *p, const struct xf_event *event)
{
	struct xf_text key, value;
	const char *at = xf_first(event->args);
	bool is_trace = xf_is(event->name, "\"xstrace::trace\""),
	     is_end = xf_is(event->name, "\"xstrace::end\"");

	if (event->cat.p || (!is_trace && !is_end && !xf_is(event->name, "\"xstrace::process\"")))
		return false;
	while ((is_trace || is_end) && event->args.n &&
	       xf_member(&at, event->args.p + event->args.n, &key, &value))
		xt_take_member(p->trace, key, value);
	return true;
}

static const char *take_event(struct packets *p, struct xt_message message, uint64_t time)
{
	static const char *const phases[] = { NULL, "\"B\"", "\"E\"", "\"i\"", "\"C\"" };
	struct found found = { .uuid = p->sequence->uuid };
	struct xf_event event = { 0 };
	struct xt_wire field;
	const struct place *place;
	char id[24], phase[4] = "\"?\"", value[48];
	const char *why = NULL;

	p->args.length = 0;
	while (!why && xt_next(&message, &field))
		why = take_field(p, &field, &event, &found);
	if (why || message.why)
		return why ? why : message.why;
	if (found.type < 1 || found.type > 4) {
		if (found.legacy_phase <= ' ' || found.legacy_phase > '~')
			return "an event of no kind";
		phase[1] = (char)found.legacy_phase;
		(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)found.legacy_id);
		event.id = as_text(id);
		event.bp = found.is_enclosing ? LITERAL("\"e\"") : (struct xf_text){ 0 };
	}
	event.ph = as_text(found.type >= 1 && found.type <= 4 ? phases[found.type] : phase);
	if (p->args.length) {
		xf_proto_raw(&p->args, "}", 1);
		event.args = proper(p, &p->args);
	}
	if (found.type == TYPE_INSTANT && is_own(p, &event))
		return NULL;
	place = place_of(p, found.uuid, false);
	if (!place || time > XT_FAR)
		return place ? "a time that is too late"
			     : "an event of a track that is not described";
	event.pid = as_text(place->pid);
	event.tid = as_text(place->tid);
	if (found.type == TYPE_COUNTER) {
		if (!place->counter || !found.has_value)
			return "a value of a track that is no counter's";
		event.name = as_text(place->counter);
		if (found.is_whole)
			(void)snprintf(value, sizeof(value), "{\"value\":%lld}",
				       (long long)found.whole);
		else
			(void)snprintf(value, sizeof(value), "{\"value\":%.17g}", found.value);
		event.args = as_text(value);
	}
	if (found.type == TYPE_BEGIN && !event.cat.p && p->trace->is_own)
		event.cat = LITERAL("\"cpu_op\""); /* of plain tasks */
	xt_take(p->trace, &event, (int64_t)time, 0);
	return NULL;
}

/* ---- packets ---- */

static struct sequence *sequence_of(struct packets *p, uint64_t number)
{
	uint32_t index = xf_map_add(&p->numbers, &number, sizeof(number));

	if (index == XF_NONE ||
	    !xf_room_for(&p->sequences, &p->sequence_room, index, sizeof(*p->sequences)))
		return NULL;
	return &p->sequences[index];
}

/* The default track of the sequence's events. */
static void take_defaults(struct packets *p, struct xt_message defaults)
{
	struct xt_wire field, inner;

	while (xt_next(&defaults, &field)) {
		struct xt_message event = xt_inside(&field);

		p->sequence->uuid = field.number == DEFAULTS_TRACK_EVENT ? 0 : p->sequence->uuid;
		while (field.number == DEFAULTS_TRACK_EVENT && xt_next(&event, &inner))
			if (inner.number == EVENT_TRACK_UUID)
				p->sequence->uuid = inner.value;
	}
}

static void take_clocks(struct packets *p, struct xt_message snapshot)
{
	struct xt_wire field, inner;
	uint64_t real = 0, boot = UINT64_MAX;

	while (xt_next(&snapshot, &field)) {
		struct xt_message clock = xt_inside(&field);
		uint64_t id = 0, time = 0;

		while (field.number == SNAPSHOT_CLOCK && xt_next(&clock, &inner)) {
			id = inner.number == CLOCK_ID ? inner.value : id;
			time = inner.number == CLOCK_TIMESTAMP ? inner.value : time;
		}
		if (id == CLOCK_OWN_ID)
			p->sequence->now = time;
		else if (id == CLOCK_REALTIME_ID)
			real = time;
		else if (id == CLOCK_BOOTTIME_ID)
			boot = time;
	}
	/* xstrace tells its base itself */
	if (!p->trace->base && boot <= real && real - boot < (uint64_t)XT_FAR)
		p->trace->base = (int64_t)(real - boot);
}

/* The parts of a packet, in the order in which they count. NULL, or what is wrong. */
static const char *take_packet(struct packets *p, struct xt_message packet)
{
	struct xt_wire parts[PACKET_TRACK_DESCRIPTOR + 1] = { 0 }, field;
	bool has_own_time;
	const char *why = NULL;
	uint64_t time;

	while (xt_next(&packet, &field))
		if (field.number <= PACKET_TRACK_DESCRIPTOR)
			parts[field.number] = field;
	if (packet.why)
		return packet.why;
	p->sequence = sequence_of(p, parts[PACKET_SEQUENCE_ID].value);
	if (!p->sequence)
		return "too many sequences";
	if (parts[PACKET_SEQUENCE_FLAGS].value & SEQUENCE_CLEARED)
		forget(p, p->sequence);
	if (parts[PACKET_DEFAULTS].data)
		take_defaults(p, xt_inside(&parts[PACKET_DEFAULTS]));
	if (parts[PACKET_CLOCK_SNAPSHOT].data)
		take_clocks(p, xt_inside(&parts[PACKET_CLOCK_SNAPSHOT]));
	if (parts[PACKET_TRACK_DESCRIPTOR].data)
		why = take_descriptor(p, xt_inside(&parts[PACKET_TRACK_DESCRIPTOR]));
	if (!why && parts[PACKET_INTERNED_DATA].data)
		why = take_texts(p, xt_inside(&parts[PACKET_INTERNED_DATA]));
	if (why || !parts[PACKET_TRACK_EVENT].data)
		return why;
	has_own_time = parts[PACKET_TIMESTAMP_CLOCK_ID].data;
	time = parts[PACKET_TIMESTAMP].value;
	if (!has_own_time)
		time = p->sequence->now += time;
	return take_event(p, xt_inside(&parts[PACKET_TRACK_EVENT]), time);
}

static void note(struct xt_trace *trace, const char *why)
{
	if (!trace->reader.left_out++)
		trace->reader.first_why = why;
}

/* The packets in data; returns the bytes that are behind them. *ret_wanted: of the next one. */
static size_t take_all(struct packets *p, const uint8_t *data, size_t n, size_t *ret_wanted)
{
	const uint8_t *at = data, *end = data + n;

	*ret_wanted = 0;
	while (at < end) {
		const uint8_t *start = at;
		uint64_t key, size;
		const char *why;

		if (!xt_varint(&start, end, &key) || !xt_varint(&start, end, &size)) {
			if (end - at < 20)
				break;
			key = 0;
		}
		if (key != (TRACE_PACKET << 3 | XT_BYTES) || size > LONGEST) {
			note(p->trace, "no packet of a trace begins where one should");
			*ret_wanted = SIZE_MAX;
			return 0;
		}
		if (size > (uint64_t)(end - start)) {
			*ret_wanted = (size_t)(start - at) + size;
			break;
		}
		why = take_packet(p, (struct xt_message){ start, start + size, NULL });
		if (why)
			note(p->trace, why);
		at = start + size;
	}
	return (size_t)(end - at);
}

static void free_packets(struct packets *p)
{
	for (uint32_t i = 0; i < p->numbers.count && i < p->sequence_room; i++) {
		forget(p, &p->sequences[i]);
		for (unsigned kind = 0; kind < KINDS; kind++)
			free(p->sequences[i].texts[kind].list);
	}
	for (uint32_t i = 0; i < p->uuids.count && i < p->place_room; i++)
		free(p->places[i].counter);
	free(p->sequences);
	free(p->places);
	free(p->args.data);
	free(p->name.data);
	free(p->category.data);
	free(p->repaired.data);
	xf_map_free(&p->numbers);
	xf_map_free(&p->uuids);
}

int xt_packets_take(struct xt_trace *trace, struct xm_source *source, struct xt_progress *progress)
{
	struct packets packets = { .trace = trace };
	size_t length = 0, room = PIECE, wanted = 0;
	char *data = malloc(room);
	ssize_t n = 1;

	xf_map_init(&packets.numbers, SEQUENCES, 16u << 20);
	xf_map_init(&packets.uuids, XT_TRACKS, 64u << 20);
	while (data && n > 0 && wanted != SIZE_MAX && !trace->error) {
		size_t left;

		if (wanted > room || length == room) {
			char *grown = realloc(data, wanted > 2 * room ? wanted : 2 * room);

			if (!grown) {
				trace->error = -ENOMEM;
				break;
			}
			room = wanted > 2 * room ? wanted : 2 * room;
			data = grown;
		}
		n = xm_source_read(source, data + length, room - length);
		length += n > 0 ? (size_t)n : 0;
		if (length < wanted && n > 0)
			continue;
		left = take_all(&packets, (const uint8_t *)data, length, &wanted);
		memmove(data, data + length - left, left);
		length = left;
		xt_progress(progress, "reading", (uint64_t)source->at, (uint64_t)trace->file.size);
	}
	trace->reader.cut = length || source->cut || (trace->is_own && !trace->has_end);
	trace->reader.error = n < 0 ? (int)n : 0;
	trace->reader.source.error = source->error;
	free_packets(&packets);
	free(data);
	xt_take_end(trace);
	return data ? trace->error : -ENOMEM;
}
