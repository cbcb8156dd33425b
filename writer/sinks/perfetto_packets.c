#include "perfetto_packets.h"

#include <string.h>

#include "hash.h"

#define OWN_PID	  0x40000000u /* for pids that are no int32_t: a device's */
#define ONE_BYTE  128u	      /* a varint that is less has one */
#define ROOM_LEFT 512u	      /* behind an event, for its end */

static void put_packet(struct xs_perfetto *p, struct xs_pf_place *place)
{
	const struct xf_proto *packet = &p->packet;
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
	xf_proto_uint(&p->packet, PACKET_SEQUENCE_ID, sequence);
}

void xs_pf_put_process(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid,
		       uint32_t field, struct xf_text text, uint64_t number)
{
	struct xf_proto *o = &p->packet;
	size_t track, inner;

	begin_descriptor(p, 1);
	track = xf_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xf_proto_uint(o, TRACK_UUID, uuid_of(p, pid, XS_PF_NO_TID));
	inner = xf_proto_begin(o, TRACK_PROCESS);
	xf_proto_uint(o, PROCESS_PID, pid_of(pid));
	if (field == PROCESS_SORT_INDEX)
		xf_proto_uint(o, field, number & INT32_MAX);
	else if (field)
		xf_proto_bytes(o, field, p->annotator.text,
			       xf_unescape(text, p->annotator.text, sizeof(p->annotator.text)));
	xf_proto_end(o, inner);
	xf_proto_end(o, track);
	put_packet(p, place);
}

void xs_pf_put_thread(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid, int64_t tid,
		      uint32_t field, struct xf_text text, uint64_t number)
{
	struct xf_proto *o = &p->packet;
	size_t track, inner;

	begin_descriptor(p, 1);
	track = xf_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xf_proto_uint(o, TRACK_UUID, uuid_of(p, pid, tid));
	xf_proto_uint(o, TRACK_PARENT, uuid_of(p, pid, XS_PF_NO_TID));
	inner = xf_proto_begin(o, TRACK_THREAD);
	xf_proto_uint(o, THREAD_PID, pid_of(pid));
	xf_proto_uint(o, THREAD_TID, (uint64_t)tid & INT32_MAX);
	if (field == THREAD_SORT_INDEX)
		xf_proto_uint(o, field, number & INT32_MAX);
	else if (field)
		xf_proto_bytes(o, field, p->annotator.text,
			       xf_unescape(text, p->annotator.text, sizeof(p->annotator.text)));
	xf_proto_end(o, inner);
	xf_proto_end(o, track);
	put_packet(p, place);
}

void xs_pf_put_counter_track(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid,
			     int64_t tid, const char *name, size_t length)
{
	struct xf_proto *o = &p->packet;
	size_t track;

	begin_descriptor(p, 1);
	track = xf_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xf_proto_uint(o, TRACK_UUID, uuid_of(p, pid, tid));
	xf_proto_uint(o, TRACK_PARENT, uuid_of(p, pid, XS_PF_NO_TID));
	xf_proto_bytes(o, TRACK_NAME, name, length);
	xf_proto_end(o, xf_proto_begin(o, TRACK_COUNTER));
	xf_proto_end(o, track);
	put_packet(p, place);
}

/* The trace's time is that since `base`, on the clock that the others are measured by. */
static void put_clocks(struct xs_perfetto *p, struct xs_pf_place *place)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_REALTIME_ID };
	struct xf_proto *o = &p->packet;
	size_t snapshot, clock;

	begin_descriptor(p, 1);
	xf_proto_uint(o, PACKET_TIMESTAMP, 0);
	snapshot = xf_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xf_proto_begin(o, SNAPSHOT_CLOCK);
		xf_proto_uint(o, CLOCK_ID, ids[i]);
		xf_proto_uint(o, CLOCK_TIMESTAMP, i ? p->base : 0);
		xf_proto_end(o, clock);
	}
	xf_proto_end(o, snapshot);
	put_packet(p, place);
}

/* What holds for all packets of a new sequence. */
static void put_defaults(struct xs_perfetto *p, struct xs_pf_place *place,
			 const struct xs_pf_sequence *sequence)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_OWN_ID };
	struct xf_proto *o = &p->packet;
	size_t inner, clock;

	begin_descriptor(p, sequence->number);
	xf_proto_uint(o, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
	inner = xf_proto_begin(o, PACKET_DEFAULTS);
	clock = xf_proto_begin(o, DEFAULTS_TRACK_EVENT);
	xf_proto_uint(o, EVENT_TRACK_UUID, sequence->uuid);
	xf_proto_end(o, clock);
	xf_proto_uint(o, DEFAULTS_CLOCK_ID, CLOCK_OWN_ID);
	xf_proto_end(o, inner);
	inner = xf_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xf_proto_begin(o, SNAPSHOT_CLOCK);
		xf_proto_uint(o, CLOCK_ID, ids[i]);
		xf_proto_uint(o, CLOCK_TIMESTAMP, 0);
		if (i)
			xf_proto_uint(o, CLOCK_IS_INCREMENTAL, 1);
		xf_proto_end(o, clock);
	}
	xf_proto_end(o, inner);
	put_packet(p, place);
}

uint32_t xs_pf_sequence_of(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid,
			   int64_t tid, uint32_t level)
{
	uint64_t key[3] = { pid, (uint64_t)tid, level };
	uint32_t known = p->index.count, number = xf_map_add(&p->index, key, sizeof(key));
	struct xs_pf_sequence *sequence;

	if (number == XF_NONE)
		return 0;
	if (!xf_room_for(&p->sequences, &p->sequence_room, number, sizeof(*p->sequences)))
		return 0;
	sequence = &p->sequences[number];
	if (number < known)
		return number + 1;
	sequence->number = p->first + number;
	sequence->uuid = uuid_of(p, pid, tid);
	if (!number)
		put_clocks(p, place);
	if (tid == XS_PF_NO_TID)
		xs_pf_put_process(p, place, pid, 0, (struct xf_text){ 0 }, 0);
	put_defaults(p, place, sequence);
	if (tid >= 0)
		xs_pf_put_thread(p, place, pid, tid, 0, (struct xf_text){ 0 }, 0);
	return number + 1;
}

/* Has the sequence told the text before? It has from here on. */
static bool tell(struct xs_pf_sequence *sequence, int kind, uint32_t number)
{
	uint32_t word = number / 64;
	uint64_t bit = 1ull << number % 64;

	if (!xf_room_for(&sequence->told[kind], &sequence->words[kind], word,
			 sizeof(*sequence->told[kind])))
		return false;
	if (sequence->told[kind][word] & bit)
		return true;
	sequence->told[kind][word] |= bit;
	return false;
}

static void intern(struct xs_perfetto *p, struct xs_pf_sequence *sequence, int kind,
		   uint32_t number, size_t *begun)
{
	static const uint32_t fields[XS_PF_KINDS] = { INTERNED_NAMES, INTERNED_CATEGORIES,
						      INTERNED_ANNOTATIONS };
	const char *text;
	size_t n, entry;

	if (number == XF_NONE || tell(sequence, kind, number))
		return;
	if (!*begun)
		*begun = xf_proto_begin(&p->packet, PACKET_INTERNED_DATA);
	entry = xf_proto_begin(&p->packet, fields[kind]);
	xf_proto_uint(&p->packet, INTERNED_IID, number + 1);
	text = xf_map_key(&p->texts[kind], number, &n);
	xf_proto_bytes(&p->packet, INTERNED_TEXT, text, n);
	xf_proto_end(&p->packet, entry);
}

static void begin_packet(struct xs_perfetto *p, struct xs_pf_sequence *sequence, uint64_t time)
{
	p->packet.length = 0;
	if (time >= sequence->now) {
		xf_proto_uint(&p->packet, PACKET_TIMESTAMP, time - sequence->now);
		sequence->now = time;
	} else {
		xf_proto_uint(&p->packet, PACKET_TIMESTAMP, time);
		xf_proto_uint(&p->packet, PACKET_TIMESTAMP_CLOCK_ID, CLOCK_BOOTTIME_ID);
	}
	xf_proto_uint(&p->packet, PACKET_SEQUENCE_ID, sequence->number);
}

/* Its begin alone would be an event without an end: one that is too long goes without arguments. */
static bool fits(const struct xs_perfetto *p, const struct xs_pf_place *place,
		 const struct xs_pf_said *said)
{
	size_t needed = p->fields.length + said->long_name.n + 2 * XS_PF_NAME_MAX + ROOM_LEFT, n;

	for (uint32_t i = 0; i < p->key_count; i++) {
		(void)xf_map_key(&p->texts[XS_PF_KEY], p->keys[i], &n);
		needed += n + 32;
	}
	return !p->fields.failed && needed < (size_t)(place->end - place->at);
}

void xs_pf_put_event(struct xs_perfetto *p, struct xs_pf_place *place,
		     struct xs_pf_sequence *sequence, uint64_t time, const struct xs_pf_said *said)
{
	struct xf_proto *o = &p->packet;
	size_t begun = 0, event, legacy;

	if (!fits(p, place, said)) {
		p->key_count = 0;
		p->fields.length = 0;
		p->fields.failed = false;
	}
	begin_packet(p, sequence, time);
	intern(p, sequence, XS_PF_NAME, said->name, &begun);
	intern(p, sequence, XS_PF_CATEGORY, said->category, &begun);
	for (uint32_t i = 0; i < p->key_count; i++)
		intern(p, sequence, XS_PF_KEY, p->keys[i], &begun);
	if (begun)
		xf_proto_end(o, begun);
	event = xf_proto_begin(o, PACKET_TRACK_EVENT);
	if (said->type) {
		xf_proto_uint(o, EVENT_TYPE, said->type);
	} else {
		legacy = xf_proto_begin(o, EVENT_LEGACY);
		xf_proto_uint(o, LEGACY_PHASE, (uint64_t)said->phase);
		xf_proto_uint(o, LEGACY_ID, said->flow);
		if (said->enclosing)
			xf_proto_uint(o, LEGACY_ENCLOSING, 1);
		xf_proto_end(o, legacy);
	}
	if (said->category != XF_NONE)
		xf_proto_uint(o, EVENT_CATEGORY_IIDS, said->category + 1);
	if (said->name != XF_NONE)
		xf_proto_uint(o, EVENT_NAME_IID, said->name + 1);
	else if (said->long_name.p)
		xf_proto_bytes(o, EVENT_NAME, said->long_name.p, said->long_name.n);
	xf_proto_raw(o, p->fields.data, p->fields.length);
	xf_proto_end(o, event);
	put_packet(p, place);
}

static char *put_varint(char *o, uint64_t value)
{
	for (; value >= ONE_BYTE; value >>= 7)
		*o++ = (char)(value | ONE_BYTE);
	*o++ = (char)value;
	return o;
}

char *xs_pf_put_short(char *o, struct xs_pf_sequence *sequence, uint64_t time, uint32_t type,
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
	if (name != XF_NONE) {
		*o++ = EVENT_NAME_IID << 3;
		o = put_varint(o, name + 1);
	}
	*event = (char)(o - event - 1);
	*length = (char)(o - length - 1);
	return o;
}

void xs_pf_put_end(struct xs_pf_place *place, struct xs_pf_sequence *sequence, uint64_t time)
{
	if (place->end - place->at > ONE_BYTE)
		place->at = xs_pf_put_short(place->at, sequence, time, TYPE_END, XF_NONE);
}

uint32_t xs_pf_number(struct xs_perfetto *p, enum xs_pf_kind kind, struct xf_text string,
		      struct xf_text *ret_text)
{
	size_t n = xf_is_string(string)
			   ? xf_unescape(string, p->annotator.text, sizeof(p->annotator.text))
			   : 0;
	uint32_t number = n ? xf_map_add(&p->texts[kind], p->annotator.text, n) : XF_NONE;

	*ret_text = number == XF_NONE ? (struct xf_text){ p->annotator.text, n }
				      : (struct xf_text){ 0 };
	return number;
}

void xs_pf_put_counter(struct xs_perfetto *p, struct xs_pf_place *place,
		       struct xs_pf_sequence *sequence, uint64_t time, struct xf_text value)
{
	size_t event;

	begin_packet(p, sequence, time);
	event = xf_proto_begin(&p->packet, PACKET_TRACK_EVENT);
	xf_proto_uint(&p->packet, EVENT_TYPE, TYPE_COUNTER);
	xf_put_counter_value(&p->packet, value);
	xf_proto_end(&p->packet, event);
	put_packet(p, place);
}
