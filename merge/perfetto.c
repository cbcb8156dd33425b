/*
 * The merged trace as Perfetto's protobuf.
 *
 * There a slice is a begin and an end, and what begins in the same moment nests as it stands in the file; so events are sorted by track and
 * time before they are written, on disk where there are many. Each track is a sequence of its own: its times are differences, and its
 * texts are told once.
 */
#include "perfetto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "pour.h"
#include "proto.h"
#include "sink.h"
#include "sort.h"

#define MAX_TEXTS 262144u /* that are told once for a track; others stand in each event */
#define TEXT_BYTES (32u << 20)
#define MAX_TRACKS (1u << 20)
#define LONGEST_TEXT 65536
#define MAX_KEYS 255
#define OWN_PID 0x40000000 /* for pids that are no int32_t */

enum { NAMES, CATEGORIES, KEYS, TEXT_KINDS };
enum kind { SLICE, INSTANT, COUNTER, FLOW };

struct track {
	uint32_t pid;
	int64_t tid; /* -1: the process's own */
	char *name;
	int64_t sort_index; /* -1: none */
	bool is_counter;
	/* of phases B and E: texts of what is open */
	struct open {
		int64_t start;
		uint32_t length;
		char *data;
	} *open;
	uint32_t open_count, open_room;
};

/* In front of each record's annotations. */
struct shape {
	uint32_t name, category; /* XM_NONE: in the annotations' bytes, as a field of its own */
	uint64_t flow;
	double value;
	uint32_t keys[MAX_KEYS];
	uint8_t key_count;
	char phase;
	bool enclosing;
};
#define SHAPE_SIZE(count) (offsetof(struct shape, keys) + 4 * (size_t)(count))

struct perfetto {
	struct xm_sink sink;
	struct xm_pour pour;
	struct xm_sort *sort;
	struct xm_map texts[TEXT_KINDS], track_map;
	uint32_t *stamps[TEXT_KINDS]; /* the track in which a text was told last, + 1 */
	struct track *tracks;
	uint32_t track_room;
	struct xm_proto fields, packet;
	struct shape shape;
	char text[LONGEST_TEXT];
	uint64_t skipped;
	int64_t last;
	int error;
};

static void fail(struct perfetto *p, int error)
{
	if (!p->error && error < 0)
		p->error = error;
}

/* ---- taking events ---- */

/* 0, or -errno: a file without a name in the directory for temporary ones. */
static int temporary(void)
{
	const char *dir = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd;

	if (!dir || !dir[0])
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	(void)snprintf(path, sizeof(path), "%s/xstrace-merge.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

static int perfetto_open(struct xm_sink *sink, int fd, bool compress)
{
	struct perfetto *p = (struct perfetto *)sink;
	int result = xm_pour_open(&p->pour, fd, compress);
	int file;

	if (result < 0)
		return result;
	file = temporary();
	if (file < 0)
		return file;
	p->sort = xm_sort_create(file);
	if (!p->sort)
		return -ENOMEM;
	for (int kind = 0; kind < TEXT_KINDS; kind++)
		xm_map_init(&p->texts[kind], MAX_TEXTS, TEXT_BYTES);
	xm_map_init(&p->track_map, MAX_TRACKS, UINT32_MAX);
	return 0;
}

static struct track *track_of(struct perfetto *p, uint32_t pid, int64_t tid, struct xm_text counter)
{
	char key[512];
	uint32_t known = p->track_map.count, index;
	size_t n = counter.n < 400 ? counter.n : 400;

	memcpy(key, &pid, 4);
	memcpy(key + 4, &tid, 8);
	memcpy(key + 12, counter.n ? counter.p : "", n);
	index = xm_map_add(&p->track_map, key, 12 + n);
	if (index == XM_NONE)
		return NULL;
	if (index >= p->track_room) {
		uint32_t room = p->track_room ? 2 * p->track_room : 64;
		struct track *grown = realloc(p->tracks, room * sizeof(*grown));

		if (!grown)
			return NULL;
		p->tracks = grown;
		p->track_room = room;
	}
	if (index == known)
		p->tracks[index] = (struct track){ .pid = pid, .tid = tid, .sort_index = -1, .is_counter = counter.n > 0 };
	return &p->tracks[index];
}

/* The text's number, if it has one; else it becomes a field. */
static uint32_t text_number(struct perfetto *p, int kind, struct xm_text string, uint32_t field)
{
	size_t n = xm_is_string(string) ? xm_unescape(string, p->text, sizeof(p->text)) : 0;
	uint32_t number = xm_map_add(&p->texts[kind], p->text, n);

	if (number == XM_NONE)
		xm_proto_bytes(&p->fields, field, p->text, n);
	return number;
}

static void annotate_value(struct perfetto *p, struct xm_text value);

static void annotate(struct perfetto *p, uint32_t field, struct xm_text key, struct xm_text value)
{
	size_t begin = xm_proto_begin(&p->fields, field);

	if (key.p) {
		struct xm_text quoted = { key.p - 1, key.n + 2 };
		uint32_t number = p->shape.key_count < MAX_KEYS ? XM_NONE - 1 : XM_NONE;

		if (number != XM_NONE)
			number = text_number(p, KEYS, quoted, ANNOTATION_NAME);
		else
			xm_proto_bytes(&p->fields, ANNOTATION_NAME, p->text, xm_unescape(quoted, p->text, sizeof(p->text)));
		if (number != XM_NONE) {
			p->shape.keys[p->shape.key_count++] = number;
			xm_proto_uint(&p->fields, ANNOTATION_NAME_IID, number + 1);
		}
	}
	annotate_value(p, value);
	xm_proto_end(&p->fields, begin);
}

static void annotate_value(struct perfetto *p, struct xm_text value)
{
	const char *at = value.p + 1, *end = value.p + value.n;
	struct xm_text key, member;
	int64_t number;

	switch (value.p[0]) {
	case '{':
		while (xm_member(&at, end, &key, &member))
			annotate(p, ANNOTATION_DICT, key, member);
		break;
	case '[':
		while (xm_element(&at, end, &member))
			annotate(p, ANNOTATION_ARRAY, (struct xm_text){ 0 }, member);
		break;
	case '"':
		xm_proto_bytes(&p->fields, ANNOTATION_STRING, p->text, xm_unescape(value, p->text, sizeof(p->text)));
		break;
	case 't':
	case 'f':
		xm_proto_uint(&p->fields, ANNOTATION_BOOL, value.p[0] == 't');
		break;
	case 'n':
		xm_proto_bytes(&p->fields, ANNOTATION_STRING, "null", 4);
		break;
	default:
		if (xm_integer(value, &number))
			xm_proto_uint(&p->fields, ANNOTATION_INT, (uint64_t)number);
		else
			xm_proto_double(&p->fields, ANNOTATION_DOUBLE, strtod(value.p, NULL));
	}
}

/* The args' times are those of their input. */
static void annotate_args(struct perfetto *p, const struct xm_input *input, const struct xm_event *event)
{
	bool is_device = xm_is(event->cat, "\"gpu_op\"");
	const char *at = xm_first(event->args);
	struct xm_text key, value;

	if (event->args.n < 2 || event->args.p[0] != '{')
		return;
	while (xm_member(&at, event->args.p + event->args.n, &key, &value)) {
		char text[64 + XM_SLACK] = "";
		int64_t ns;

		if (is_device && (xm_is(key, "queued") || xm_is(key, "submit")) && xm_nanoseconds(value, &ns)) {
			ns = xm_out_time(&p->sink, input, input->base + ns);
			value = (struct xm_text){ text, (size_t)snprintf(text, 64, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000)) };
		}
		annotate(p, EVENT_ANNOTATIONS, key, value);
	}
}

/* Name, category and arguments, into shape and fields. */
static void describe(struct perfetto *p, const struct xm_input *input, const struct xm_event *event)
{
	memset(&p->shape, 0, offsetof(struct shape, keys));
	p->shape.key_count = 0;
	p->shape.phase = event->ph.p[1];
	p->shape.enclosing = false;
	p->fields.length = 0;
	p->shape.name = text_number(p, NAMES, event->name, EVENT_NAME);
	p->shape.category = event->cat.n ? text_number(p, CATEGORIES, event->cat, EVENT_CATEGORIES) : XM_NONE;
	annotate_args(p, input, event);
}

/* What describe() left as one text: shape, then fields. */
static size_t flatten(struct perfetto *p)
{
	size_t n = SHAPE_SIZE(p->shape.key_count);

	/* the counts stand behind the keys in the struct, and in front of the fields in the text */
	p->packet.length = 0;
	xm_proto_raw(&p->packet, &p->shape.key_count, 1);
	xm_proto_raw(&p->packet, &p->shape.phase, 1);
	xm_proto_raw(&p->packet, &p->shape.enclosing, 1);
	xm_proto_raw(&p->packet, &p->shape, n);
	xm_proto_raw(&p->packet, p->fields.data, p->fields.length);
	return p->packet.length;
}

static void add(struct perfetto *p, const struct track *track, enum kind kind, int64_t start, int64_t end)
{
	struct xm_key_of_record key = { (uint32_t)(track - p->tracks), kind, start, end };
	size_t n = flatten(p);

	p->last = end > p->last ? end : p->last;
	if (p->fields.failed || p->packet.failed)
		fail(p, -ENOMEM);
	else
		fail(p, xm_sort_add(p->sort, &key, p->packet.data, (uint32_t)n));
}

static void add_counter(struct perfetto *p, const struct xm_event *event, const struct xm_place *place)
{
	const char *at = xm_first(event->args), *end = event->args.p + event->args.n;
	struct xm_text key, value;

	if (event->args.n < 2 || event->args.p[0] != '{')
		return;
	while (xm_member(&at, end, &key, &value)) {
		char name[300];
		int n = snprintf(name, sizeof(name), "%.*s%s%.*s", (int)(xm_inside(event->name).n < 200 ? xm_inside(event->name).n : 200),
				 xm_inside(event->name).n ? xm_inside(event->name).p : "", xm_is(key, "value") ? "" : " ",
				 xm_is(key, "value") ? 0 : (int)(key.n < 60 ? key.n : 60), key.p);
		struct track *track = track_of(p, place->pid, -1, (struct xm_text){ name, (size_t)n });

		if (!track || value.p[0] == '"' || value.p[0] == '{' || value.p[0] == '[')
			continue;
		if (!track->name)
			track->name = strdup(name);
		memset(&p->shape, 0, sizeof(p->shape));
		p->fields.length = 0;
		p->shape.value = strtod(value.p, NULL);
		add(p, track, COUNTER, place->time, place->time);
	}
}

static void add_flow(struct perfetto *p, const struct xm_input *input, const struct xm_event *event, struct track *track, int64_t time)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	int64_t id;

	describe(p, input, event);
	if (input->has_ids && xm_integer(event->id, &id) && id >= 0) {
		p->shape.flow = (uint64_t)(id - input->id_low + input->id_base);
	} else { /* above all numbers */
		for (size_t i = 0; i < event->id.n; i++)
			hash = (hash ^ (unsigned char)event->id.p[i]) * 0x100000001b3ull;
		p->shape.flow = (hash ^ input->number * 0x9e3779b97f4a7c15ull) | 1ull << 63;
	}
	p->shape.enclosing = event->bp.n > 0;
	add(p, track, FLOW, time, time);
}

static void open_step(struct perfetto *p, const struct xm_input *input, const struct xm_event *event, struct track *track, int64_t time)
{
	struct open *open;

	if (track->open_count == track->open_room) {
		uint32_t room = track->open_room ? 2 * track->open_room : 8;
		struct open *grown = room <= 65536 ? realloc(track->open, room * sizeof(*grown)) : NULL;

		if (!grown) {
			p->skipped++;
			return;
		}
		track->open = grown;
		track->open_room = room;
	}
	describe(p, input, event);
	open = &track->open[track->open_count];
	open->length = (uint32_t)flatten(p);
	open->start = time;
	open->data = malloc(open->length);
	if (!open->data || p->packet.failed) {
		fail(p, -ENOMEM);
		return;
	}
	memcpy(open->data, p->packet.data, open->length);
	track->open_count++;
}

static void close_step(struct perfetto *p, struct track *track, int64_t time)
{
	struct open *open;

	if (!track->open_count) {
		p->skipped++;
		return;
	}
	open = &track->open[--track->open_count];
	fail(p, xm_sort_add(p->sort, &(struct xm_key_of_record){ (uint32_t)(track - p->tracks), SLICE, open->start, time > open->start ? time : open->start },
			    open->data, open->length));
	free(open->data);
}

static void take_metadata(struct perfetto *p, const struct xm_event *event, const struct xm_place *place)
{
	struct track *track = place->tid == XM_NO_TIME ? NULL : track_of(p, place->pid, place->tid, (struct xm_text){ 0 });
	struct xm_text value;

	if (!track)
		return;
	if (xm_is(event->name, "\"thread_name\"")) {
		value = xm_find(event->args, "name");
		if (xm_is_string(value) && value.n < LONGEST_TEXT) {
			(void)xm_unescape(value, p->text, sizeof(p->text));
			free(track->name);
			track->name = strdup(p->text);
		}
	} else if (xm_is(event->name, "\"thread_sort_index\"")) {
		(void)xm_integer(xm_find(event->args, "sort_index"), &track->sort_index);
	}
}

static void perfetto_event(struct xm_sink *sink, const struct xm_input *input, const struct xm_event *event, const struct xm_place *place,
			   int64_t duration)
{
	struct perfetto *p = (struct perfetto *)sink;
	char phase = event->ph.p[1];
	struct track *track;
	bool of_process;

	if (phase == 'M') {
		take_metadata(p, event, place);
		return;
	}
	if (phase == 'C') {
		add_counter(p, event, place);
		return;
	}
	of_process = place->tid == XM_NO_TIME || ((phase == 'i' || phase == 'I') && event->scope.n && !xm_is(event->scope, "\"t\""));
	track = strchr("XiIBEstf", phase) ? track_of(p, place->pid, of_process ? -1 : place->tid, (struct xm_text){ 0 }) : NULL;
	if (!track) {
		p->skipped++;
		return;
	}
	switch (phase) {
	case 'X':
		describe(p, input, event);
		add(p, track, SLICE, place->time, place->time + duration);
		break;
	case 'B':
		open_step(p, input, event, track, place->time);
		break;
	case 'E':
		close_step(p, track, place->time);
		break;
	case 's':
	case 't':
	case 'f':
		add_flow(p, input, event, track, place->time);
		break;
	default:
		describe(p, input, event);
		add(p, track, INSTANT, place->time, place->time);
	}
}

static void perfetto_arrow(struct xm_sink *sink, const char *category, const char *name, uint64_t id, const struct xm_place *from,
			   const struct xm_place *to)
{
	struct perfetto *p = (struct perfetto *)sink;
	const struct xm_place *places[2] = { from, to };

	for (int i = 0; i < 2; i++) {
		struct track *track = track_of(p, places[i]->pid, places[i]->tid, (struct xm_text){ 0 });

		if (!track)
			continue;
		memset(&p->shape, 0, sizeof(p->shape));
		p->fields.length = 0;
		p->shape.name = xm_map_add(&p->texts[NAMES], name, strlen(name));
		p->shape.category = xm_map_add(&p->texts[CATEGORIES], category, strlen(category));
		p->shape.phase = i ? 'f' : 's';
		p->shape.enclosing = i;
		p->shape.flow = id;
		add(p, track, FLOW, places[i]->time, places[i]->time);
	}
}

/* ---- writing ---- */

static void put_packet(struct perfetto *p, const struct xm_proto *packet)
{
	char head[16], *o = head;
	uint64_t n = packet->length;
	const char *data = packet->data;

	if (packet->failed)
		fail(p, -ENOMEM);
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

static uint32_t pid_of(const struct xm_merge *merge, uint32_t out_pid)
{
	const struct xm_process *process;
	const struct xm_input *input;
	uint32_t place = 0, part = 0;

	if (out_pid <= INT32_MAX)
		return out_pid;
	while (xm_next_process(merge, &place, &part, &input, &process))
		if (process->out_pid == out_pid)
			return OWN_PID + process->order;
	return OWN_PID;
}

/* Sequence 1 tells of all tracks and of the time of day. */
static void put_clocks(struct perfetto *p, const struct xm_merge *merge)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_REALTIME_ID };
	struct xm_proto *o = &p->packet;
	size_t snapshot, clock;

	o->length = 0;
	xm_proto_uint(o, PACKET_SEQUENCE_ID, 1);
	xm_proto_uint(o, PACKET_TIMESTAMP, 0);
	snapshot = xm_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xm_proto_begin(o, SNAPSHOT_CLOCK);
		xm_proto_uint(o, CLOCK_ID, ids[i]);
		xm_proto_uint(o, CLOCK_TIMESTAMP, i ? (uint64_t)merge->base : 0);
		xm_proto_end(o, clock);
	}
	xm_proto_end(o, snapshot);
	put_packet(p, o);
}

/* Of a process: its number is behind those of all other tracks. */
static uint64_t process_uuid(const struct perfetto *p, uint32_t order)
{
	return (uint64_t)p->track_map.count + 1 + order;
}

static void put_processes(struct perfetto *p, const struct xm_merge *merge)
{
	const struct xm_process *process;
	const struct xm_input *input;
	uint32_t place = 0, part = 0;
	struct xm_proto *o = &p->packet;
	char name[2048];

	while (xm_next_process(merge, &place, &part, &input, &process)) {
		size_t track, inner, n = xm_process_name(input, process, name, sizeof(name));
		struct xm_text labels = { process->labels, process->labels ? strlen(process->labels) : 0 };

		o->length = 0;
		xm_proto_uint(o, PACKET_SEQUENCE_ID, 1);
		track = xm_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
		xm_proto_uint(o, TRACK_UUID, process_uuid(p, process->order));
		inner = xm_proto_begin(o, TRACK_PROCESS);
		xm_proto_uint(o, PROCESS_PID, pid_of(merge, process->out_pid));
		xm_proto_uint(o, PROCESS_SORT_INDEX, process->order);
		xm_proto_bytes(o, PROCESS_NAME, p->text, xm_unescape((struct xm_text){ name, n }, p->text, sizeof(p->text)));
		if (labels.n)
			xm_proto_bytes(o, PROCESS_LABELS, p->text, xm_unescape(labels, p->text, sizeof(p->text)));
		xm_proto_end(o, inner);
		xm_proto_end(o, track);
		put_packet(p, o);
	}
}

static uint32_t order_of(const struct xm_merge *merge, uint32_t out_pid)
{
	const struct xm_process *process;
	const struct xm_input *input;
	uint32_t place = 0, part = 0;

	while (xm_next_process(merge, &place, &part, &input, &process))
		if (process->out_pid == out_pid)
			return process->order;
	return 0;
}

/* Track `index`, and that it has a sequence of its own; its times begin at `start`. */
static void put_track(struct perfetto *p, const struct xm_merge *merge, uint32_t index, int64_t start)
{
	static const uint64_t ids[2] = { CLOCK_BOOTTIME_ID, CLOCK_OWN_ID };
	const struct track *t = &p->tracks[index];
	struct xm_proto *o = &p->packet;
	uint64_t uuid = t->tid < 0 && !t->is_counter ? process_uuid(p, order_of(merge, t->pid)) : (uint64_t)index + 1;
	size_t track, inner, clock;

	o->length = 0;
	xm_proto_uint(o, PACKET_SEQUENCE_ID, index + 2);
	xm_proto_uint(o, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
	inner = xm_proto_begin(o, PACKET_DEFAULTS);
	track = xm_proto_begin(o, DEFAULTS_TRACK_EVENT);
	xm_proto_uint(o, EVENT_TRACK_UUID, uuid);
	xm_proto_end(o, track);
	xm_proto_uint(o, DEFAULTS_CLOCK_ID, CLOCK_OWN_ID);
	xm_proto_end(o, inner);
	inner = xm_proto_begin(o, PACKET_CLOCK_SNAPSHOT);
	for (int i = 0; i < 2; i++) {
		clock = xm_proto_begin(o, SNAPSHOT_CLOCK);
		xm_proto_uint(o, CLOCK_ID, ids[i]);
		xm_proto_uint(o, CLOCK_TIMESTAMP, (uint64_t)start);
		if (i)
			xm_proto_uint(o, CLOCK_IS_INCREMENTAL, 1);
		xm_proto_end(o, clock);
	}
	xm_proto_end(o, inner);
	put_packet(p, o);

	if (uuid != (uint64_t)index + 1)
		return; /* the process's own is there */
	o->length = 0;
	xm_proto_uint(o, PACKET_SEQUENCE_ID, index + 2);
	track = xm_proto_begin(o, PACKET_TRACK_DESCRIPTOR);
	xm_proto_uint(o, TRACK_UUID, uuid);
	xm_proto_uint(o, TRACK_PARENT, process_uuid(p, order_of(merge, t->pid)));
	if (t->is_counter) {
		if (t->name)
			xm_proto_bytes(o, TRACK_NAME, t->name, strlen(t->name));
		xm_proto_end(o, xm_proto_begin(o, TRACK_COUNTER));
	} else {
		inner = xm_proto_begin(o, TRACK_THREAD);
		xm_proto_uint(o, THREAD_PID, pid_of(merge, t->pid));
		xm_proto_uint(o, THREAD_TID, t->tid <= INT32_MAX ? (uint64_t)t->tid : OWN_PID + (uint64_t)index);
		if (t->sort_index >= 0 && t->sort_index <= INT32_MAX)
			xm_proto_uint(o, THREAD_SORT_INDEX, (uint64_t)t->sort_index);
		if (t->name)
			xm_proto_bytes(o, THREAD_NAME, t->name, strlen(t->name));
		xm_proto_end(o, inner);
	}
	xm_proto_end(o, track);
	put_packet(p, o);
}

static void intern(struct perfetto *p, int kind, uint32_t number, uint32_t track, size_t *begun)
{
	static const uint32_t fields[TEXT_KINDS] = { INTERNED_NAMES, INTERNED_CATEGORIES, INTERNED_ANNOTATIONS };
	const char *text;
	size_t n, entry;

	if (number == XM_NONE || p->stamps[kind][number] == track + 1)
		return;
	p->stamps[kind][number] = track + 1;
	if (!*begun)
		*begun = xm_proto_begin(&p->packet, PACKET_INTERNED_DATA);
	entry = xm_proto_begin(&p->packet, fields[kind]);
	xm_proto_uint(&p->packet, INTERNED_IID, number + 1);
	text = xm_map_key(&p->texts[kind], number, &n);
	xm_proto_bytes(&p->packet, INTERNED_TEXT, text, n);
	xm_proto_end(&p->packet, entry);
}

static void begin_packet(struct perfetto *p, uint32_t track, int64_t *now, int64_t time)
{
	p->packet.length = 0;
	xm_proto_uint(&p->packet, PACKET_TIMESTAMP, (uint64_t)(time - *now));
	xm_proto_uint(&p->packet, PACKET_SEQUENCE_ID, track + 2);
	xm_proto_uint(&p->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	*now = time;
}

static void put_end(struct perfetto *p, uint32_t track, int64_t *now, int64_t time)
{
	begin_packet(p, track, now, time);
	xm_proto_varint(&p->packet, PACKET_TRACK_EVENT << 3 | 2);
	xm_proto_varint(&p->packet, 2);
	xm_proto_uint(&p->packet, EVENT_TYPE, TYPE_END);
	put_packet(p, &p->packet);
}

static void put_record(struct perfetto *p, const struct xm_record *record, int64_t *now)
{
	uint32_t track = record->key.track;
	uint8_t keys = (uint8_t)record->data[0];
	size_t size = 3 + SHAPE_SIZE(keys), begun = 0, event, legacy;
	struct shape *shape = &p->shape;
	struct xm_proto *o = &p->packet;

	memcpy(shape, record->data + 3, SHAPE_SIZE(keys));
	shape->phase = record->data[1];
	shape->enclosing = record->data[2];
	begin_packet(p, track, now, record->key.start);
	if (record->key.kind != COUNTER) {
		intern(p, NAMES, shape->name, track, &begun);
		intern(p, CATEGORIES, shape->category, track, &begun);
		for (uint8_t i = 0; i < keys; i++)
			intern(p, KEYS, shape->keys[i], track, &begun);
	}
	if (begun)
		xm_proto_end(o, begun);
	event = xm_proto_begin(o, PACKET_TRACK_EVENT);
	switch (record->key.kind) {
	case COUNTER:
		xm_proto_uint(o, EVENT_TYPE, TYPE_COUNTER);
		xm_proto_double(o, EVENT_DOUBLE_VALUE, shape->value);
		xm_proto_end(o, event);
		put_packet(p, o);
		return;
	case FLOW:
		legacy = xm_proto_begin(o, EVENT_LEGACY);
		xm_proto_uint(o, LEGACY_PHASE, (uint64_t)shape->phase);
		xm_proto_uint(o, LEGACY_ID, shape->flow);
		if (shape->enclosing)
			xm_proto_uint(o, LEGACY_ENCLOSING, 1);
		xm_proto_end(o, legacy);
		break;
	default:
		xm_proto_uint(o, EVENT_TYPE, record->key.kind == SLICE ? TYPE_BEGIN : TYPE_INSTANT);
	}
	if (shape->category != XM_NONE)
		xm_proto_uint(o, EVENT_CATEGORY_IIDS, shape->category + 1);
	if (shape->name != XM_NONE)
		xm_proto_uint(o, EVENT_NAME_IID, shape->name + 1);
	xm_proto_raw(o, record->data + size, record->length - size);
	xm_proto_end(o, event);
	put_packet(p, o);
}

/* Ends of the slices around the place that is reached. */
struct ends {
	int64_t *times;
	uint32_t count, room;
};

static void push_end(struct perfetto *p, struct ends *ends, int64_t time)
{
	if (ends->count == ends->room) {
		uint32_t room = ends->room ? 2 * ends->room : 64;
		int64_t *grown = realloc(ends->times, room * sizeof(*grown));

		if (!grown) {
			fail(p, -ENOMEM);
			return;
		}
		ends->times = grown;
		ends->room = room;
	}
	ends->times[ends->count++] = time;
}

static void put_events(struct perfetto *p, const struct xm_merge *merge)
{
	struct ends ends = { 0 };
	struct xm_record record;
	uint32_t track = XM_NONE;
	int64_t now = 0;
	int more;

	while ((more = xm_sort_next(p->sort, &record)) > 0 && !p->error) {
		if (record.key.track != track) {
			while (ends.count)
				put_end(p, track, &now, ends.times[--ends.count]);
			track = record.key.track;
			now = record.key.start;
			put_track(p, merge, track, now);
		}
		/* an arrow may start where a slice ends; a slice that begins there is another one */
		while (ends.count && (record.key.kind == SLICE ? ends.times[ends.count - 1] <= record.key.start :
								  ends.times[ends.count - 1] < record.key.start))
			put_end(p, track, &now, ends.times[--ends.count]);
		/* what overlaps without nesting cannot be shown: the earlier slice is cut */
		while (record.key.kind == SLICE && ends.count && ends.times[ends.count - 1] < record.key.end) {
			put_end(p, track, &now, record.key.start);
			ends.count--;
		}
		put_record(p, &record, &now);
		if (record.key.kind == SLICE)
			push_end(p, &ends, record.key.end);
	}
	fail(p, more);
	while (ends.count)
		put_end(p, track, &now, ends.times[--ends.count]);
	free(ends.times);
}

static void perfetto_head(struct xm_sink *sink, const struct xm_merge *merge, const struct xm_clocks *clocks, bool synced)
{
	/* all is written at the end */
	(void)sink, (void)merge, (void)clocks, (void)synced;
}

/* Tracks whose names are texts in their inputs are called by them. */
static void name_tracks(struct perfetto *p, const struct xm_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++)
		for (uint32_t k = 0; k < merge->order[i]->tids.count; k++) {
			uint32_t process;
			size_t n;
			const char *key = xm_map_key(&merge->order[i]->tids, k, &n);
			struct track *track;

			memcpy(&process, key, sizeof(process));
			track = track_of(p, merge->order[i]->processes[process].out_pid, XM_OWN_TID + k, (struct xm_text){ 0 });
			if (track && !track->name && key[sizeof(process)] == '"')
				track->name = strndup(key + sizeof(process) + 1, n - sizeof(process) - 2);
			else if (track && !track->name)
				track->name = strndup(key + sizeof(process), n - sizeof(process));
		}
}

static int perfetto_close(struct xm_sink *sink, const struct xm_merge *merge, const struct xm_totals *totals)
{
	struct perfetto *p = (struct perfetto *)sink;
	int result;

	(void)totals;
	name_tracks(p, merge);
	for (uint32_t i = 0; i < p->track_map.count; i++) /* what was never ended lasts to the end */
		while (p->tracks[i].open_count)
			close_step(p, &p->tracks[i], p->last);
	for (int kind = 0; kind < TEXT_KINDS; kind++) {
		p->stamps[kind] = calloc(p->texts[kind].count + 1, sizeof(*p->stamps[kind]));
		if (!p->stamps[kind])
			fail(p, -ENOMEM);
	}
	fail(p, xm_sort_start(p->sort));
	if (!p->error) {
		put_clocks(p, merge);
		put_processes(p, merge);
		put_events(p, merge);
	}
	result = xm_pour_close(&p->pour, "", 0);
	result = p->error ? p->error : result;
	if (p->skipped)
		xm_say("[WARNING] %" PRIu64 " events that Perfetto's format has no place for are left out", p->skipped);
	for (uint32_t i = 0; i < p->track_map.count; i++) {
		free(p->tracks[i].name);
		free(p->tracks[i].open);
	}
	for (int kind = 0; kind < TEXT_KINDS; kind++) {
		xm_map_free(&p->texts[kind]);
		free(p->stamps[kind]);
	}
	xm_map_free(&p->track_map);
	xm_sort_free(p->sort);
	free(p->tracks);
	free(p->fields.data);
	free(p->packet.data);
	free(p);
	return result;
}

struct xm_sink *xm_sink_perfetto(void)
{
	struct perfetto *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sink = (struct xm_sink){ .open = perfetto_open, .head = perfetto_head, .event = perfetto_event, .arrow = perfetto_arrow,
				    .close = perfetto_close };
	p->pour.back.fd = -1;
	return &p->sink;
}
