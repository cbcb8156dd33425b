#include "perfetto.h"

#include <stdlib.h>
#include <string.h>

#include "annotate.h"
#include "hash.h"
#include "map.h"
#include "names.h"
#include "perfetto_fields.h"

#define OWN_PID	       0x40000000u /* for pids that are no int32_t: a device's */
#define NO_TID	       (-1)	   /* of the process's own track; less: of counters */
#define SEQUENCES      65536u
#define RECOVERED      (2u + SEQUENCES)
#define TEXTS	       65536u
#define TEXT_BYTES     (16u << 20)
#define KEYS_MAX       255u
#define NAME_MAX_BYTES 8192u
#define NAMES	       1024u /* of tasks whose numbers are at hand, a power of two */
#define ONE_BYTE       128u  /* a varint that is less has one */
/* what one event may become: beyond it, the event comes without its arguments */
#define PACKET_MAX (XS_OUTPUT_SLACK / 2 - 4096)

enum { NAME, CATEGORY, KEY, KINDS };

/* A track. */
struct sequence {
	uint64_t uuid, now; /* now: ns; the time of its last packet */
	uint64_t *told[KINDS];
	uint32_t words[KINDS]; /* of 64 texts each */
	uint32_t number;
	bool counter;
};

/* Where a packet is put. */
struct place {
	char *at;
	const char *end;
};

struct xs_perfetto {
	struct xm_proto packet, fields;
	struct xm_map texts[KINDS], index; /* index: the sequences, by pid and tid */
	struct sequence *sequences;
	uint32_t sequence_room, first; /* first: the number of the first one */
	uint64_t base;		       /* ns since 1970 */
	uint64_t seed;		       /* of the tracks' numbers */
	struct {
		uint32_t id, number; /* number + 1; 0: it has none */
	} names[NAMES];
	struct xm_annotator annotator;
	uint32_t keys[KEYS_MAX], key_count; /* of the event that is being made */
	/* a name, as JSON has it and without that; packets, before they take the place of JSON */
	char escaped[6 * NAME_MAX_BYTES + 3], made[XS_OUTPUT_SLACK];
};

/* The number of an argument's key; its text is told with the event. */
static uint32_t key_number(void *user, const char *text, size_t length)
{
	struct xs_perfetto *p = user;
	uint32_t number = p->key_count < KEYS_MAX ? xm_map_add(&p->texts[KEY], text, length)
						  : XM_NONE;

	if (number != XM_NONE)
		p->keys[p->key_count++] = number;
	return number;
}

struct xs_perfetto *xs_perfetto_create(const struct xs_process *process)
{
	struct xs_perfetto *p = calloc(1, sizeof(*p));
	uint64_t words[4] = { 0 };

	if (!p)
		return NULL;
	for (int kind = 0; kind < KINDS; kind++)
		xm_map_init(&p->texts[kind], TEXTS, TEXT_BYTES);
	xm_map_init(&p->index, SEQUENCES, UINT32_MAX);
	p->annotator.out = &p->fields;
	p->annotator.key = key_number;
	p->annotator.user = p;
	memcpy(words, process->run->run_id, strnlen(process->run->run_id, sizeof(words) - 8));
	words[3] = (uint64_t)process->serial << 32 | (uint32_t)process->pid;
	p->seed = (uint64_t)xs_hash(words, 4) << 32 | xs_hash(words + 1, 3);
	/* --recover: sequences of its own, as it does not know what those in the file have told */
	p->base = process->run->base;
	p->first = process->run->recovering ? RECOVERED : 2;
	return p;
}

void xs_perfetto_free(struct xs_perfetto *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->index.count && i < p->sequence_room; i++)
		for (int kind = 0; kind < KINDS; kind++)
			free(p->sequences[i].told[kind]);
	for (int kind = 0; kind < KINDS; kind++)
		xm_map_free(&p->texts[kind]);
	xm_map_free(&p->index);
	free(p->sequences);
	free(p->packet.data);
	free(p->fields.data);
	free(p);
}

/* ---- packets ---- */

static void put_packet(struct xs_perfetto *p, struct place *place)
{
	const struct xm_proto *packet = &p->packet;
	uint64_t n = packet->length;
	char *o = place->at;

	if (packet->failed || packet->length + 16 > (size_t)(place->end - o))
		return;
	*o++ = TRACE_PACKET << 3 | 2;
	for (; n >= ONE_BYTE; n >>= 7)
		*o++ = (char)(n | ONE_BYTE);
	*o++ = (char)n;
	place->at = mempcpy(o, packet->data, packet->length);
}

static uint32_t pid_of(uint64_t pid)
{
	return pid <= INT32_MAX ? (uint32_t)pid : OWN_PID | (uint32_t)(pid & (OWN_PID - 1));
}

static uint64_t uuid_of(const struct xs_perfetto *p, uint64_t pid, int64_t tid)
{
	uint64_t words[3] = { p->seed, pid, (uint64_t)tid },
		 turned[3] = { pid, (uint64_t)tid, p->seed };

	return (uint64_t)xs_hash(words, 3) << 32 | xs_hash(turned, 3) | 1;
}

static void begin_descriptor(struct xs_perfetto *p, uint32_t sequence)
{
	p->packet.length = 0;
	xm_proto_uint(&p->packet, PACKET_SEQUENCE_ID, sequence);
}

/* Of a process: its name, labels or place. field 0: nothing but that it is there. */
static void put_process(struct xs_perfetto *p, struct place *place, uint64_t pid, uint32_t field,
			struct xm_text text, uint64_t number)
{
	struct xm_proto *o = &p->packet;
	size_t track, inner;

	begin_descriptor(p, 1);
	track = xm_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xm_proto_uint(o, TRACK_UUID, uuid_of(p, pid, NO_TID));
	inner = xm_proto_begin(o, TRACK_PROCESS);
	xm_proto_uint(o, PROCESS_PID, pid_of(pid));
	if (field == PROCESS_SORT_INDEX)
		xm_proto_uint(o, field, number & INT32_MAX);
	else if (field)
		xm_proto_bytes(o, field, p->annotator.text,
			       xm_unescape(text, p->annotator.text, sizeof(p->annotator.text)));
	xm_proto_end(o, inner);
	xm_proto_end(o, track);
	put_packet(p, place);
}

/* The same of a thread. */
static void put_thread(struct xs_perfetto *p, struct place *place, uint64_t pid, int64_t tid,
		       uint32_t field, struct xm_text text, uint64_t number)
{
	struct xm_proto *o = &p->packet;
	size_t track, inner;

	begin_descriptor(p, 1);
	track = xm_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xm_proto_uint(o, TRACK_UUID, uuid_of(p, pid, tid));
	xm_proto_uint(o, TRACK_PARENT, uuid_of(p, pid, NO_TID));
	inner = xm_proto_begin(o, TRACK_THREAD);
	xm_proto_uint(o, THREAD_PID, pid_of(pid));
	xm_proto_uint(o, THREAD_TID, (uint64_t)tid & INT32_MAX);
	if (field == THREAD_SORT_INDEX)
		xm_proto_uint(o, field, number & INT32_MAX);
	else if (field)
		xm_proto_bytes(o, field, p->annotator.text,
			       xm_unescape(text, p->annotator.text, sizeof(p->annotator.text)));
	xm_proto_end(o, inner);
	xm_proto_end(o, track);
	put_packet(p, place);
}

static void put_counter_track(struct xs_perfetto *p, struct place *place, uint64_t pid, int64_t tid,
			      const char *name, size_t length)
{
	struct xm_proto *o = &p->packet;
	size_t track;

	begin_descriptor(p, 1);
	track = xm_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xm_proto_uint(o, TRACK_UUID, uuid_of(p, pid, tid));
	xm_proto_uint(o, TRACK_PARENT, uuid_of(p, pid, NO_TID));
	xm_proto_bytes(o, TRACK_NAME, name, length);
	xm_proto_end(o, xm_proto_begin(o, TRACK_COUNTER));
	xm_proto_end(o, track);
	put_packet(p, place);
}

/* The trace's time is that since `base`, on the clock that the others are measured by. */
static void put_clocks(struct xs_perfetto *p, struct place *place)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_REALTIME_ID };
	struct xm_proto *o = &p->packet;
	size_t snapshot, clock;

	begin_descriptor(p, 1);
	xm_proto_uint(o, PACKET_TIMESTAMP, 0);
	snapshot = xm_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xm_proto_begin(o, SNAPSHOT_CLOCK);
		xm_proto_uint(o, CLOCK_ID, ids[i]);
		xm_proto_uint(o, CLOCK_TIMESTAMP, i ? p->base : 0);
		xm_proto_end(o, clock);
	}
	xm_proto_end(o, snapshot);
	put_packet(p, place);
}

/* What holds for all packets of a new sequence. */
static void put_defaults(struct xs_perfetto *p, struct place *place,
			 const struct sequence *sequence)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_OWN_ID };
	struct xm_proto *o = &p->packet;
	size_t inner, clock;

	begin_descriptor(p, sequence->number);
	xm_proto_uint(o, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
	inner = xm_proto_begin(o, PACKET_DEFAULTS);
	clock = xm_proto_begin(o, DEFAULTS_TRACK_EVENT);
	xm_proto_uint(o, EVENT_TRACK_UUID, sequence->uuid);
	xm_proto_end(o, clock);
	xm_proto_uint(o, DEFAULTS_CLOCK_ID, CLOCK_OWN_ID);
	xm_proto_end(o, inner);
	inner = xm_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xm_proto_begin(o, SNAPSHOT_CLOCK);
		xm_proto_uint(o, CLOCK_ID, ids[i]);
		xm_proto_uint(o, CLOCK_TIMESTAMP, 0);
		if (i)
			xm_proto_uint(o, CLOCK_IS_INCREMENTAL, 1);
		xm_proto_end(o, clock);
	}
	xm_proto_end(o, inner);
	put_packet(p, place);
}

/*
 * The number + 1 of the track's sequence, which is told if it is new; 0: there are too many. level:
 * how many tasks its tasks lie in; what is no plain task has level 0.
 */
static uint32_t sequence_of(struct xs_perfetto *p, struct place *place, uint64_t pid, int64_t tid,
			    uint32_t level)
{
	uint64_t key[3] = { pid, (uint64_t)tid, level };
	uint32_t known = p->index.count, number = xm_map_add(&p->index, key, sizeof(key));
	struct sequence *sequence;

	if (number == XM_NONE)
		return 0;
	if (!xm_room_for(&p->sequences, &p->sequence_room, number, sizeof(*p->sequences)))
		return 0;
	sequence = &p->sequences[number];
	if (number < known)
		return number + 1;
	sequence->number = p->first + number;
	sequence->uuid = uuid_of(p, pid, tid);
	if (!number)
		put_clocks(p, place);
	if (tid == NO_TID)
		put_process(p, place, pid, 0, (struct xm_text){ 0 }, 0);
	put_defaults(p, place, sequence);
	if (tid >= 0)
		put_thread(p, place, pid, tid, 0, (struct xm_text){ 0 }, 0);
	return number + 1;
}

/* Has the sequence told the text before? It has from here on. */
static bool tell(struct sequence *sequence, int kind, uint32_t number)
{
	uint32_t word = number / 64;
	uint64_t bit = 1ull << number % 64;

	if (!xm_room_for(&sequence->told[kind], &sequence->words[kind], word,
			 sizeof(*sequence->told[kind])))
		return false;
	if (sequence->told[kind][word] & bit)
		return true;
	sequence->told[kind][word] |= bit;
	return false;
}

static void intern(struct xs_perfetto *p, struct sequence *sequence, int kind, uint32_t number,
		   size_t *begun)
{
	static const uint32_t fields[KINDS] = { INTERNED_NAMES, INTERNED_CATEGORIES,
						INTERNED_ANNOTATIONS };
	const char *text;
	size_t n, entry;

	if (number == XM_NONE || tell(sequence, kind, number))
		return;
	if (!*begun)
		*begun = xm_proto_begin(&p->packet, PACKET_INTERNED_DATA);
	entry = xm_proto_begin(&p->packet, fields[kind]);
	xm_proto_uint(&p->packet, INTERNED_IID, number + 1);
	text = xm_map_key(&p->texts[kind], number, &n);
	xm_proto_bytes(&p->packet, INTERNED_TEXT, text, n);
	xm_proto_end(&p->packet, entry);
}

static void begin_packet(struct xs_perfetto *p, struct sequence *sequence, uint64_t time)
{
	p->packet.length = 0;
	if (time >= sequence->now) {
		xm_proto_uint(&p->packet, PACKET_TIMESTAMP, time - sequence->now);
		sequence->now = time;
	} else {
		xm_proto_uint(&p->packet, PACKET_TIMESTAMP, time);
		xm_proto_uint(&p->packet, PACKET_TIMESTAMP_CLOCK_ID, CLOCK_BOOTTIME_ID);
	}
	xm_proto_uint(&p->packet, PACKET_SEQUENCE_ID, sequence->number);
}

/* What an event says beside its time. */
struct said {
	uint32_t name, category;  /* numbers; XM_NONE: none */
	struct xm_text long_name; /* one that has no number; p NULL: none */
	uint32_t type;		  /* 0: an arrow's end */
	char phase;
	bool enclosing;
	uint64_t flow;
};

static void put_event(struct xs_perfetto *p, struct place *place, struct sequence *sequence,
		      uint64_t time, const struct said *said)
{
	struct xm_proto *o = &p->packet;
	size_t begun = 0, event, legacy;

	begin_packet(p, sequence, time);
	intern(p, sequence, NAME, said->name, &begun);
	intern(p, sequence, CATEGORY, said->category, &begun);
	for (uint32_t i = 0; i < p->key_count; i++)
		intern(p, sequence, KEY, p->keys[i], &begun);
	if (begun)
		xm_proto_end(o, begun);
	event = xm_proto_begin(o, PACKET_TRACK_EVENT);
	if (said->type) {
		xm_proto_uint(o, EVENT_TYPE, said->type);
	} else {
		legacy = xm_proto_begin(o, EVENT_LEGACY);
		xm_proto_uint(o, LEGACY_PHASE, (uint64_t)said->phase);
		xm_proto_uint(o, LEGACY_ID, said->flow);
		if (said->enclosing)
			xm_proto_uint(o, LEGACY_ENCLOSING, 1);
		xm_proto_end(o, legacy);
	}
	if (said->category != XM_NONE)
		xm_proto_uint(o, EVENT_CATEGORY_IIDS, said->category + 1);
	if (said->name != XM_NONE)
		xm_proto_uint(o, EVENT_NAME_IID, said->name + 1);
	else if (said->long_name.p)
		xm_proto_bytes(o, EVENT_NAME, said->long_name.p, said->long_name.n);
	if (p->fields.length < PACKET_MAX)
		xm_proto_raw(o, p->fields.data, p->fields.length);
	xm_proto_end(o, event);
	put_packet(p, place);
}

/* A begin and an end of a short form: of a task whose name is told. */
static char *put_varint(char *o, uint64_t value)
{
	for (; value >= ONE_BYTE; value >>= 7)
		*o++ = (char)(value | ONE_BYTE);
	*o++ = (char)value;
	return o;
}

/* A packet of at most 127 bytes, without its length. */
static char *put_short(char *o, struct sequence *sequence, uint64_t time, uint32_t type,
		       uint32_t name)
{
	char *length = ++o, *event;

	o[-1] = TRACE_PACKET << 3 | 2;
	*++o = PACKET_TIMESTAMP << 3;
	o++;
	if (time >= sequence->now) {
		o = put_varint(o, time - sequence->now);
		sequence->now = time;
	} else {
		o = put_varint(put_varint(put_varint(o, time), PACKET_TIMESTAMP_CLOCK_ID << 3),
			       CLOCK_BOOTTIME_ID);
	}
	*o++ = PACKET_SEQUENCE_ID << 3;
	o = put_varint(o, sequence->number);
	*o++ = PACKET_TRACK_EVENT << 3 | 2;
	event = o++;
	*o++ = EVENT_TYPE << 3;
	*o++ = (char)type;
	if (name != XM_NONE) {
		*o++ = EVENT_NAME_IID << 3;
		o = put_varint(o, name + 1);
	}
	*event = (char)(o - event - 1);
	*length = (char)(o - length - 1);
	return o;
}

static void put_end(struct place *place, struct sequence *sequence, uint64_t time)
{
	if (place->end - place->at > ONE_BYTE)
		place->at = put_short(place->at, sequence, time, TYPE_END, XM_NONE);
}

/* A text's number, or the text itself where there are too many. */
static uint32_t number_of_text(struct xs_perfetto *p, int kind, struct xm_text string,
			       struct xm_text *ret_text)
{
	size_t n = xm_is_string(string)
			   ? xm_unescape(string, p->annotator.text, sizeof(p->annotator.text))
			   : 0;
	uint32_t number = n ? xm_map_add(&p->texts[kind], p->annotator.text, n) : XM_NONE;

	*ret_text = number == XM_NONE ? (struct xm_text){ p->annotator.text, n }
				      : (struct xm_text){ 0 };
	return number;
}

/* ---- tasks ---- */

static uint32_t number_of_name(struct xs_process *process, struct xs_perfetto *p, uint32_t id,
			       struct xm_text *ret_text)
{
	uint32_t at = id % NAMES;
	size_t length;
	const char *text;
	char *end;

	if (p->names[at].id == id && p->names[at].number) {
		*ret_text = (struct xm_text){ 0 };
		return p->names[at].number - 1;
	}
	/* by way of JSON, which makes valid UTF-8 of it */
	text = xs_text_of(process->run, id, &length);
	p->escaped[0] = '"';
	end = xs_json_escape(p->escaped + 1, text,
			     length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES);
	*end++ = '"';
	p->names[at].id = id;
	p->names[at].number =
		number_of_text(p, NAME, (struct xm_text){ p->escaped, (size_t)(end - p->escaped) },
			       ret_text) +
		1;
	return p->names[at].number - 1;
}

void xs_perfetto_task(struct xs_track *track, uint32_t name, uint64_t start, uint64_t end)
{
	struct xs_chrome_track *own = xs_chrome_track(track);
	struct xs_chrome *chrome = xs_chrome_of(track->process);
	struct xs_perfetto *p = chrome->perfetto;
	char *o = xs_output_put(&chrome->out);
	struct place place = { o, o + XS_OUTPUT_SLACK };
	struct said said = { .category = XM_NONE, .type = TYPE_BEGIN };
	uint32_t level = track->depth < XS_PERFETTO_LEVELS ? track->depth : XS_PERFETTO_LEVELS - 1,
		 *known = &own->sequences[level];
	struct sequence *sequence;

	said.name = number_of_name(track->process, p, name, &said.long_name);
	if (!*known)
		*known = sequence_of(p, &place, (uint32_t)track->process->pid, track->tid, level);
	if (!*known) {
		track->process->omitted[XS_OMIT_TRACKS]++;
		return;
	}
	sequence = &p->sequences[*known - 1];
	if (said.name != XM_NONE && said.name / 64 < sequence->words[NAME] &&
	    sequence->told[NAME][said.name / 64] >> said.name % 64 & 1) {
		place.at = put_short(place.at, sequence, start, TYPE_BEGIN, said.name);
	} else {
		p->key_count = 0;
		p->fields.length = 0;
		put_event(p, &place, sequence, start, &said);
	}
	put_end(&place, sequence, end > start ? end : start);
	xs_output_put_end(&chrome->out, place.at);
}

/* ---- from JSON ---- */

static void take_metadata(struct xs_perfetto *p, struct place *place, const struct xm_event *event,
			  uint64_t pid, int64_t tid)
{
	struct xm_text name = xm_find(event->args, "name"), labels = xm_find(event->args, "labels");
	int64_t number = 0;

	(void)xm_integer(xm_find(event->args, "sort_index"), &number);
	if (xm_is(event->name, "\"process_name\""))
		put_process(p, place, pid, PROCESS_NAME, name, 0);
	else if (xm_is(event->name, "\"process_labels\""))
		put_process(p, place, pid, PROCESS_LABELS, labels, 0);
	else if (xm_is(event->name, "\"process_sort_index\""))
		put_process(p, place, pid, PROCESS_SORT_INDEX, name, (uint64_t)number);
	else if (xm_is(event->name, "\"thread_name\""))
		put_thread(p, place, pid, tid, THREAD_NAME, name, 0);
	else if (xm_is(event->name, "\"thread_sort_index\""))
		put_thread(p, place, pid, tid, THREAD_SORT_INDEX, name, (uint64_t)number);
}

static void take_counter(struct xs_perfetto *p, struct place *place, const struct xm_event *event,
			 uint64_t pid, uint64_t time)
{
	struct xm_text value = xm_find(event->args, "value"), text;
	uint32_t name = number_of_text(p, NAME, event->name, &text), number;
	struct sequence *sequence;
	size_t begun, n;

	if (name == XM_NONE || !value.n)
		return;
	number = sequence_of(p, place, pid, NO_TID - 1 - (int64_t)name, 0);
	if (!number)
		return;
	sequence = &p->sequences[number - 1];
	if (!sequence->counter) {
		const char *shown = xm_map_key(&p->texts[NAME], name, &n);

		put_counter_track(p, place, pid, NO_TID - 1 - (int64_t)name, shown, n);
	}
	sequence->counter = true;
	begin_packet(p, sequence, time);
	begun = xm_proto_begin(&p->packet, PACKET_TRACK_EVENT);
	xm_proto_uint(&p->packet, EVENT_TYPE, TYPE_COUNTER);
	xm_proto_double(&p->packet, EVENT_DOUBLE_VALUE, strtod(value.p, NULL));
	xm_proto_end(&p->packet, begun);
	put_packet(p, place);
}

/* Arrows have numbers; those between spans have texts. */
static uint64_t flow_of(const struct xs_perfetto *p, struct xm_text id)
{
	uint64_t hash = p->seed;
	int64_t number;

	if (xm_integer(id, &number) && number >= 0)
		return (hash & 0xffffffff00000000ull) | (uint32_t)number;
	for (size_t i = 0; i < id.n; i++)
		hash = (hash ^ (unsigned char)id.p[i]) * 0x100000001b3ull;
	return hash | 1ull << 63;
}

static void take_event(struct xs_perfetto *p, struct place *place, const struct xm_event *event)
{
	struct said said = { .phase = event->ph.p[1], .enclosing = event->bp.n > 0 };
	int64_t pid = 0, tid = NO_TID, time = 0, duration = 0;
	struct sequence *sequence;
	struct xm_text none;
	uint32_t number;

	if (!xm_integer(event->pid, &pid))
		return;
	(void)xm_integer(event->tid, &tid);
	if (said.phase == 'M') {
		take_metadata(p, place, event, (uint64_t)pid, tid);
		return;
	}
	if (!xm_nanoseconds(event->ts, &time) || time < 0)
		return;
	if (said.phase == 'C') {
		take_counter(p, place, event, (uint64_t)pid, (uint64_t)time);
		return;
	}
	if (event->scope.n && !xm_is(event->scope, "\"t\""))
		tid = NO_TID;
	number = sequence_of(p, place, (uint64_t)pid, tid, 0);
	if (!number)
		return;
	sequence = &p->sequences[number - 1];
	p->key_count = 0;
	p->fields.length = 0;
	xm_annotate_all(&p->annotator, event->args);
	said.category = number_of_text(p, CATEGORY, event->cat, &none);
	said.name = number_of_text(p, NAME, event->name, &said.long_name);
	if (said.phase == 'X')
		said.type = TYPE_BEGIN;
	else if (said.phase == 'i')
		said.type = TYPE_INSTANT;
	else
		said.flow = flow_of(p, event->id);
	put_event(p, place, sequence, (uint64_t)time, &said);
	if (said.phase == 'X') {
		(void)xm_nanoseconds(event->dur, &duration);
		put_end(place, sequence, (uint64_t)(time + (duration > 0 ? duration : 0)));
	}
}

char *xs_perfetto_put(struct xs_perfetto *p, char *text, char *end)
{
	struct place place = { p->made, p->made + sizeof(p->made) };
	const char *at = text, *why;
	struct xm_event event;

	memset(end, 0, XM_SLACK);
	while (at < end && *at == '{' && xm_scan_event(at, end, &event, &at, &why) == XM_OK) {
		take_event(p, &place, &event);
		at += strspn(at, ",\n");
	}
	return mempcpy(text, p->made, (size_t)(place.at - p->made));
}
