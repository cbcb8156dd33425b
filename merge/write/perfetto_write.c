#include "perfetto.h"

#include <errno.h>
#include <inttypes.h>

#include "perfetto_fields.h"

#define OWN_PID 0x40000000 /* for pids that are no int32_t */

static void put_packet(struct xm_perfetto *p, const struct xf_proto *packet)
{
	char head[16], *o = head;
	uint64_t n = packet->length;
	const char *data = packet->data;

	if (packet->failed)
		xm_perfetto_fail(p, -ENOMEM);
	*o++ = TRACE_PACKET << 3 | 2;
	for (; n > 127; n >>= 7)
		*o++ = (char)(n | 128);
	*o++ = (char)n;
	memcpy(xs_output_put(&p->pour.front), head, (size_t)(o - head));
	p->pour.front.length += (size_t)(o - head);
	for (n = packet->length; n;) {
		size_t piece = n < 65536 ? n : 65536;

		memcpy(xs_output_put(&p->pour.front), data, piece);
		p->pour.front.length += piece;
		data += piece;
		n -= piece;
		xm_pour_full(&p->pour);
	}
}

/* The first from `number` on that no other has there: of a process's threads, or (0) of processes.
 */
static uint32_t take_number(struct xf_map *taken, uint32_t whose, uint32_t number)
{
	uint32_t key[2] = { whose, number };

	for (; xf_map_find(taken, key, sizeof(key)) != XF_NONE; key[1]++)
		;
	(void)xf_map_add(taken, key, sizeof(key));
	return key[1];
}

/* Of which order the process is that has a pid of the output; of two the first one. */
static void note_order(struct xm_perfetto *p, const struct xm_process *process)
{
	uint32_t count = p->places.count;
	uint32_t place = xf_map_add(&p->places, &process->out_pid, sizeof(process->out_pid));

	if (place == XF_NONE || !xf_room_for(&p->orders, &p->order_room, place, sizeof(*p->orders)))
		xm_perfetto_fail(p, -ENOMEM);
	else if (place == count)
		p->orders[place] = process->order;
}

/*
 * Pids and tids are int32_t there: those that are none get others, which nothing has that the
 * output holds; so the ones that fit come first.
 */
void xm_perfetto_number(struct xm_perfetto *p, const struct xm_merge *merge)
{
	struct xf_map taken;

	xf_map_init(&taken, UINT32_MAX - 1, UINT32_MAX);
	xf_map_init(&p->places, UINT32_MAX - 1, UINT32_MAX);
	for (int own = 0; own < 2; own++) {
		const struct xm_process *process;
		const struct xm_input *input;
		uint32_t place = 0, part = 0;

		while (xm_next_process(merge, &place, &part, &input, &process)) {
			if ((process->out_pid > INT32_MAX) != own)
				continue;
			note_order(p, process);
			if (!xf_room_for(&p->pids, &p->pid_room, process->order, sizeof(*p->pids)))
				xm_perfetto_fail(p, -ENOMEM);
			else
				p->pids[process->order] = take_number(&taken, 0,
								      own ? OWN_PID + process->order
									  : process->out_pid);
		}
		for (uint32_t i = 0; i < p->track_map.count; i++) {
			struct xm_track *t = &p->tracks[i];

			if (t->tid >= 0 && !t->is_counter && (t->tid > INT32_MAX) == own)
				t->out_tid = take_number(&taken, t->pid,
							 own ? OWN_PID + i : (uint32_t)t->tid);
		}
	}
	xf_map_free(&taken);
}

static uint32_t order_of(const struct xm_perfetto *p, uint32_t out_pid)
{
	uint32_t place = xf_map_find(&p->places, &out_pid, sizeof(out_pid));

	return place == XF_NONE ? 0 : p->orders[place];
}

/* Sequence 1 tells of all tracks and of the time of day. */
static void put_clocks(struct xm_perfetto *p, const struct xm_merge *merge)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_REALTIME_ID };
	struct xf_proto *o = &p->packet;
	size_t snapshot, clock;

	o->length = 0;
	xf_proto_uint(o, PACKET_SEQUENCE_ID, 1);
	xf_proto_uint(o, PACKET_TIMESTAMP, 0);
	snapshot = xf_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xf_proto_begin(o, SNAPSHOT_CLOCK);
		xf_proto_uint(o, CLOCK_ID, ids[i]);
		xf_proto_uint(o, CLOCK_TIMESTAMP, i ? (uint64_t)merge->base : 0);
		xf_proto_end(o, clock);
	}
	xf_proto_end(o, snapshot);
	put_packet(p, o);
}

/* Of a process: its number is behind those of all other tracks. */
static uint64_t process_uuid(const struct xm_perfetto *p, uint32_t order)
{
	return (uint64_t)p->track_map.count + 1 + order;
}

static void put_processes(struct xm_perfetto *p, const struct xm_merge *merge)
{
	const struct xm_process *process;
	const struct xm_input *input;
	uint32_t place = 0, part = 0;
	struct xf_proto *o = &p->packet;
	char name[2048];

	while (xm_next_process(merge, &place, &part, &input, &process)) {
		size_t track, inner, n = xm_process_name(input, process, name, sizeof(name));
		struct xf_text labels = { process->labels,
					  process->labels ? strlen(process->labels) : 0 };

		o->length = 0;
		xf_proto_uint(o, PACKET_SEQUENCE_ID, 1);
		track = xf_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
		xf_proto_uint(o, TRACK_UUID, process_uuid(p, process->order));
		inner = xf_proto_begin(o, TRACK_PROCESS);
		xf_proto_uint(o, PROCESS_PID, p->pids[process->order]);
		xf_proto_uint(o, PROCESS_SORT_INDEX, process->order);
		xf_proto_bytes(o, PROCESS_NAME, p->text,
			       xf_unescape((struct xf_text){ name, n }, p->text, sizeof(p->text)));
		if (labels.n)
			xf_proto_bytes(o, PROCESS_LABELS, p->text,
				       xf_unescape(labels, p->text, sizeof(p->text)));
		xf_proto_end(o, inner);
		xf_proto_end(o, track);
		put_packet(p, o);
	}
}

/* Track `index`, and that it has a sequence of its own; its times begin at `start`. */
static void put_track(struct xm_perfetto *p, uint32_t index, int64_t start)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_OWN_ID };
	const struct xm_track *t = &p->tracks[index];
	struct xf_proto *o = &p->packet;
	uint64_t uuid = t->tid < 0 && !t->is_counter ? process_uuid(p, order_of(p, t->pid))
						     : (uint64_t)index + 1;
	size_t track, inner, clock;

	o->length = 0;
	xf_proto_uint(o, PACKET_SEQUENCE_ID, index + 2);
	xf_proto_uint(o, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
	inner = xf_proto_begin(o, PACKET_DEFAULTS);
	track = xf_proto_begin(o, DEFAULTS_TRACK_EVENT);
	xf_proto_uint(o, EVENT_TRACK_UUID, uuid);
	xf_proto_end(o, track);
	xf_proto_uint(o, DEFAULTS_CLOCK_ID, CLOCK_OWN_ID);
	xf_proto_end(o, inner);
	inner = xf_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xf_proto_begin(o, SNAPSHOT_CLOCK);
		xf_proto_uint(o, CLOCK_ID, ids[i]);
		xf_proto_uint(o, CLOCK_TIMESTAMP, (uint64_t)start);
		if (i)
			xf_proto_uint(o, CLOCK_IS_INCREMENTAL, 1);
		xf_proto_end(o, clock);
	}
	xf_proto_end(o, inner);
	put_packet(p, o);

	if (uuid != (uint64_t)index + 1)
		return; /* the process's own is there */
	o->length = 0;
	xf_proto_uint(o, PACKET_SEQUENCE_ID, index + 2);
	track = xf_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xf_proto_uint(o, TRACK_UUID, uuid);
	xf_proto_uint(o, TRACK_PARENT, process_uuid(p, order_of(p, t->pid)));
	if (t->is_counter) {
		if (t->name.data)
			xf_proto_bytes(o, TRACK_NAME, t->name.data, t->name.length);
		xf_proto_end(o, xf_proto_begin(o, TRACK_COUNTER));
	} else {
		inner = xf_proto_begin(o, TRACK_THREAD);
		xf_proto_uint(o, THREAD_PID, p->pids[order_of(p, t->pid)]);
		xf_proto_uint(o, THREAD_TID, t->out_tid);
		if (t->sort_index >= 0 && t->sort_index <= INT32_MAX)
			xf_proto_uint(o, THREAD_SORT_INDEX, (uint64_t)t->sort_index);
		if (t->name.data)
			xf_proto_bytes(o, THREAD_NAME, t->name.data, t->name.length);
		xf_proto_end(o, inner);
	}
	xf_proto_end(o, track);
	put_packet(p, o);
}

static void intern(struct xm_perfetto *p, int kind, uint32_t number, uint32_t track, size_t *begun)
{
	static const uint32_t fields[XM_TEXT_KINDS] = { INTERNED_NAMES, INTERNED_CATEGORIES,
							INTERNED_ANNOTATIONS };
	const char *text;
	size_t n, entry;

	if (number == XF_NONE || p->stamps[kind][number] == track + 1)
		return;
	p->stamps[kind][number] = track + 1;
	if (!*begun)
		*begun = xf_proto_begin(&p->packet, PACKET_INTERNED_DATA);
	entry = xf_proto_begin(&p->packet, fields[kind]);
	xf_proto_uint(&p->packet, INTERNED_IID, number + 1);
	text = xf_map_key(&p->texts[kind], number, &n);
	xf_proto_bytes(&p->packet, INTERNED_TEXT, text, n);
	xf_proto_end(&p->packet, entry);
}

static void begin_packet(struct xm_perfetto *p, uint32_t track, int64_t *now, int64_t time)
{
	p->packet.length = 0;
	xf_proto_uint(&p->packet, PACKET_TIMESTAMP, (uint64_t)(time - *now));
	xf_proto_uint(&p->packet, PACKET_SEQUENCE_ID, track + 2);
	xf_proto_uint(&p->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	*now = time;
}

static void put_end(struct xm_perfetto *p, uint32_t track, int64_t *now, int64_t time)
{
	begin_packet(p, track, now, time);
	xf_proto_varint(&p->packet, PACKET_TRACK_EVENT << 3 | 2);
	xf_proto_varint(&p->packet, 2);
	xf_proto_uint(&p->packet, EVENT_TYPE, TYPE_END);
	put_packet(p, &p->packet);
}

static void put_record(struct xm_perfetto *p, const struct xm_record *record, int64_t *now)
{
	uint32_t track = record->key.track;
	uint8_t keys = (uint8_t)record->data[0];
	size_t size = 3 + XM_SHAPE_SIZE(keys), begun = 0, event, legacy;
	struct xm_shape *shape = &p->shape;
	struct xf_proto *o = &p->packet;

	memcpy(shape, record->data + 3, XM_SHAPE_SIZE(keys));
	shape->phase = record->data[1];
	shape->enclosing = record->data[2];
	begin_packet(p, track, now, record->key.start);
	if (record->key.kind != XM_COUNTER) {
		intern(p, XM_NAMES, shape->name, track, &begun);
		intern(p, XM_CATEGORIES, shape->category, track, &begun);
		for (uint8_t i = 0; i < keys; i++)
			intern(p, XM_KEYS, shape->keys[i], track, &begun);
	}
	if (begun)
		xf_proto_end(o, begun);
	event = xf_proto_begin(o, PACKET_TRACK_EVENT);
	switch (record->key.kind) {
	case XM_COUNTER:
		xf_proto_uint(o, EVENT_TYPE, TYPE_COUNTER);
		xf_proto_raw(o, record->data + size, record->length - size);
		xf_proto_end(o, event);
		put_packet(p, o);
		return;
	case XM_FLOW:
		legacy = xf_proto_begin(o, EVENT_LEGACY);
		xf_proto_uint(o, LEGACY_PHASE, (uint64_t)shape->phase);
		xf_proto_uint(o, LEGACY_ID, shape->flow);
		if (shape->enclosing)
			xf_proto_uint(o, LEGACY_ENCLOSING, 1);
		xf_proto_end(o, legacy);
		break;
	default:
		xf_proto_uint(o, EVENT_TYPE,
			      record->key.kind == XM_SLICE ? TYPE_BEGIN : TYPE_INSTANT);
	}
	if (shape->category != XF_NONE)
		xf_proto_uint(o, EVENT_CATEGORY_IIDS, shape->category + 1);
	if (shape->name != XF_NONE)
		xf_proto_uint(o, EVENT_NAME_IID, shape->name + 1);
	xf_proto_raw(o, record->data + size, record->length - size);
	xf_proto_end(o, event);
	put_packet(p, o);
}

/* Ends of the slices around the place that is reached. */
struct ends {
	int64_t *times;
	uint32_t count, room;
};

static void push_end(struct xm_perfetto *p, struct ends *ends, int64_t time)
{
	if (!xf_room_for(&ends->times, &ends->room, ends->count, sizeof(*ends->times))) {
		xm_perfetto_fail(p, -ENOMEM);
		return;
	}
	ends->times[ends->count++] = time;
}

static void put_events(struct xm_perfetto *p)
{
	struct ends ends = { 0 };
	struct xm_record record;
	uint32_t track = XF_NONE;
	int64_t now = 0;
	int more;

	while ((more = xm_sort_next(p->sort, &record)) > 0 && !p->error) {
		if (record.key.track != track) {
			while (ends.count)
				put_end(p, track, &now, ends.times[--ends.count]);
			track = record.key.track;
			now = record.key.start;
			put_track(p, track, now);
		}
		/*
		 * an arrow may start where a slice ends; a slice that begins there is another one
		 */
		while (ends.count && (record.key.kind == XM_SLICE
					      ? ends.times[ends.count - 1] <= record.key.start
					      : ends.times[ends.count - 1] < record.key.start))
			put_end(p, track, &now, ends.times[--ends.count]);
		/* what overlaps without nesting cannot be shown: the earlier slice is cut */
		while (record.key.kind == XM_SLICE && ends.count &&
		       ends.times[ends.count - 1] < record.key.end) {
			put_end(p, track, &now, record.key.start);
			ends.count--;
		}
		put_record(p, &record, &now);
		if (record.key.kind == XM_SLICE)
			push_end(p, &ends, record.key.end);
	}
	xm_perfetto_fail(p, more);
	while (ends.count)
		put_end(p, track, &now, ends.times[--ends.count]);
	free(ends.times);
}

void xm_perfetto_write(struct xm_perfetto *p, const struct xm_merge *merge)
{
	put_clocks(p, merge);
	put_processes(p, merge);
	put_events(p);
}
