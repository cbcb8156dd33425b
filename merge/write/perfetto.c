/*
 * The merged trace as Perfetto's protobuf.
 *
 * There a slice is a begin and an end, and what begins in the same moment nests as it stands in the
 * file; so events are sorted by track and time before they are written, on disk where there are
 * many. Each track is a sequence of its own: its times are differences, and its texts are told
 * once.
 */
#include "perfetto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "file.h"
#include "perfetto_fields.h"

#define MAX_TEXTS    262144u /* that are told once for a track; others stand in each event */
#define TEXT_BYTES   (32u << 20)
#define COUNTER_HEAD 16 /* in front of a counter's name: longer than a thread's key */

/* ---- taking events ---- */

static int perfetto_open(struct xm_sink *sink, int fd, bool compress)
{
	struct xm_perfetto *p = (struct xm_perfetto *)sink;
	int result = xm_pour_open(&p->pour, fd, compress, true);
	int file;

	if (result < 0)
		return result;
	file = xm_temporary();
	if (file < 0)
		return file;
	p->sort = xm_sort_create(file);
	if (!p->sort)
		return -ENOMEM;
	for (int kind = 0; kind < XM_TEXT_KINDS; kind++)
		xf_map_init(&p->texts[kind], MAX_TEXTS, TEXT_BYTES);
	xf_map_init(&p->track_map, XM_MAX_TRACKS, UINT32_MAX);
	return 0;
}

static struct xm_track *find_track(struct xm_perfetto *p, uint32_t pid, int64_t tid,
				   bool is_counter, const char *key, size_t n)
{
	uint32_t known = p->track_map.count, index = xf_map_add(&p->track_map, key, n);

	if (index == XF_NONE || !xf_room_for(&p->tracks, &p->track_room, index, sizeof(*p->tracks)))
		return NULL;
	if (index == known)
		p->tracks[index] = (struct xm_track){
			.pid = pid, .tid = tid, .sort_index = -1, .is_counter = is_counter
		};
	return &p->tracks[index];
}

static struct xm_track *track_of(struct xm_perfetto *p, uint32_t pid, int64_t tid)
{
	char key[sizeof(pid) + sizeof(tid)];

	memcpy(key, &pid, sizeof(pid));
	memcpy(key + sizeof(pid), &tid, sizeof(tid));
	return find_track(p, pid, tid, false, key, sizeof(key));
}

/* It may hold any character, also NUL. */
static void set_name(struct xm_track *track, const char *text, size_t n)
{
	free(track->name.data);
	track->name.data = malloc(n + 1);
	track->name.length = n;
	if (track->name.data)
		memcpy(track->name.data, text, n);
}

/* The track of a counter's values that have this key; its name may be empty. */
static struct xm_track *counter_of(struct xm_perfetto *p, uint32_t pid, struct xf_text name,
				   struct xf_text key)
{
	const struct xf_text quoted = { key.p - 1, key.n + 2 };
	char *text = p->text + COUNTER_HEAD;
	size_t room = sizeof(p->text) - COUNTER_HEAD, n = 0;
	struct xm_track *track;

	memset(p->text, 0, COUNTER_HEAD);
	memcpy(p->text, &pid, sizeof(pid));
	if (xf_is_string(name))
		n = xf_unescape(name, text, room / 2);
	if (!xf_is(key, "value")) {
		text[n++] = ' ';
		n += xf_unescape(quoted, text + n, room - n);
	}
	track = find_track(p, pid, -1, true, p->text, COUNTER_HEAD + n);
	if (track && !track->name.data)
		set_name(track, text, n);
	return track;
}

/* The text's number, if it has one; else it becomes a field. */
static uint32_t text_number(struct xm_perfetto *p, int kind, struct xf_text string, uint32_t field)
{
	size_t n = xf_is_string(string) ? xf_unescape(string, p->text, sizeof(p->text)) : 0;
	uint32_t number = xf_map_add(&p->texts[kind], p->text, n);

	if (number == XF_NONE)
		xf_proto_bytes(&p->fields, field, p->text, n);
	return number;
}

/* The number of an argument's key, for which its event is to tell the text. */
static uint32_t key_number(void *user, const char *text, size_t n)
{
	struct xm_perfetto *p = user;
	uint32_t number = p->shape.key_count < XM_MAX_KEYS ? xf_map_add(&p->texts[XM_KEYS], text, n)
							   : XF_NONE;

	if (number != XF_NONE)
		p->shape.keys[p->shape.key_count++] = number;
	return number;
}

/* The args' times are those of their input. */
static void annotate_args(struct xm_perfetto *p, const struct xm_input *input,
			  const struct xf_event *event)
{
	bool is_device = xf_is(event->cat, "\"gpu_op\"");
	const char *at = xf_first(event->args);
	struct xf_text key, value;

	if (event->args.n < 2 || event->args.p[0] != '{')
		return;
	while (xf_member(&at, event->args.p + event->args.n, &key, &value)) {
		char text[64 + XF_SLACK] = "";
		int64_t ns;

		if (is_device && (xf_is(key, "queued") || xf_is(key, "submit")) &&
		    xf_nanoseconds(value, &ns)) {
			ns = xm_out_time(&p->sink, input, input->base + ns);
			value = (struct xf_text){ text,
						  (size_t)snprintf(text, 64, "%" PRId64 ".%03d",
								   ns / 1000, (int)(ns % 1000)) };
		}
		xf_annotate(&p->annotator, EVENT_ANNOTATIONS, key, value);
	}
}

/* Name, category and arguments, into shape and fields. */
static void describe(struct xm_perfetto *p, const struct xm_input *input,
		     const struct xf_event *event)
{
	memset(&p->shape, 0, offsetof(struct xm_shape, keys));
	p->shape.key_count = 0;
	p->shape.phase = event->ph.p[1];
	p->shape.enclosing = false;
	p->fields.length = 0;
	p->shape.name = text_number(p, XM_NAMES, event->name, EVENT_NAME);
	p->shape.category = event->cat.n
				    ? text_number(p, XM_CATEGORIES, event->cat, EVENT_CATEGORIES)
				    : XF_NONE;
	annotate_args(p, input, event);
}

/* What describe() left as one text: shape, then fields. */
static size_t flatten(struct xm_perfetto *p)
{
	size_t n = XM_SHAPE_SIZE(p->shape.key_count);

	/* the counts are behind the keys in the struct, but before the fields in the text */
	p->packet.length = 0;
	xf_proto_raw(&p->packet, &p->shape.key_count, 1);
	xf_proto_raw(&p->packet, &p->shape.phase, 1);
	xf_proto_raw(&p->packet, &p->shape.enclosing, 1);
	xf_proto_raw(&p->packet, &p->shape, n);
	xf_proto_raw(&p->packet, p->fields.data, p->fields.length);
	return p->packet.length;
}

static void add(struct xm_perfetto *p, const struct xm_track *track, enum xm_kind kind,
		int64_t start, int64_t end)
{
	struct xm_key_of_record key = { (uint32_t)(track - p->tracks), kind, start, end };
	size_t n = flatten(p);

	p->last = end > p->last ? end : p->last;
	if (p->fields.failed || p->packet.failed)
		xm_perfetto_fail(p, -ENOMEM);
	else
		xm_perfetto_fail(p, xm_sort_add(p->sort, &key, p->packet.data, (uint32_t)n));
}

static void add_counter(struct xm_perfetto *p, const struct xf_event *event,
			const struct xm_place *place)
{
	const char *at = xf_first(event->args), *end = event->args.p + event->args.n;
	struct xf_text key, value;

	if (event->args.n < 2 || event->args.p[0] != '{')
		return;
	while (xf_member(&at, end, &key, &value)) {
		double number;
		struct xm_track *track;

		if (!xf_number(value, &number)) {
			value = xf_inside(value);
			if (!xf_number(value, &number))
				continue;
		}
		track = counter_of(p, place->pid, event->name, key);
		if (!track) {
			p->no_room++;
			continue;
		}
		memset(&p->shape, 0, sizeof(p->shape));
		p->fields.length = 0;
		xf_put_counter_value(&p->fields, value);
		add(p, track, XM_COUNTER, place->time, place->time);
	}
}

static void add_flow(struct xm_perfetto *p, const struct xm_input *input,
		     const struct xf_event *event, struct xm_track *track, int64_t time)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	int64_t id;

	describe(p, input, event);
	if (input->has_ids && xf_integer(event->id, &id) && id >= 0) {
		p->shape.flow = (uint64_t)(id - input->id_low + input->id_base);
	} else { /* above all numbers */
		for (size_t i = 0; i < event->id.n; i++)
			hash = (hash ^ (unsigned char)event->id.p[i]) * 0x100000001b3ull;
		p->shape.flow = (hash ^ input->number * 0x9e3779b97f4a7c15ull) | 1ull << 63;
	}
	p->shape.enclosing = event->bp.n > 0;
	add(p, track, XM_FLOW, time, time);
}

static void open_step(struct xm_perfetto *p, const struct xm_input *input,
		      const struct xf_event *event, struct xm_track *track, int64_t time)
{
	struct open *open;

	if (track->open_count == track->open_room) {
		uint32_t room = track->open_room ? 2 * track->open_room : 8;
		struct open *grown = room <= 65536 ? realloc(track->open, room * sizeof(*grown))
						   : NULL;

		if (!grown) {
			p->no_room++;
			track->too_deep++;
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
		xm_perfetto_fail(p, -ENOMEM);
		return;
	}
	memcpy(open->data, p->packet.data, open->length);
	track->open_count++;
}

static void close_step(struct xm_perfetto *p, struct xm_track *track, int64_t time)
{
	struct open *open;

	if (track->too_deep) {
		track->too_deep--;
		return;
	}
	if (!track->open_count) {
		p->skipped++;
		return;
	}
	open = &track->open[--track->open_count];
	xm_perfetto_fail(p,
			 xm_sort_add(p->sort,
				     &(struct xm_key_of_record){
					     (uint32_t)(track - p->tracks), XM_SLICE, open->start,
					     time > open->start ? time : open->start },
				     open->data, open->length));
	free(open->data);
}

static void take_metadata(struct xm_perfetto *p, const struct xf_event *event,
			  const struct xm_place *place)
{
	struct xm_track *track = place->tid == XM_NO_TIME ? NULL
							  : track_of(p, place->pid, place->tid);
	struct xf_text value;

	if (!track)
		return;
	if (xf_is(event->name, "\"thread_name\"")) {
		value = xf_find(event->args, "name");
		if (xf_is_string(value) && value.n < XF_LONGEST_TEXT)
			set_name(track, p->text, xf_unescape(value, p->text, sizeof(p->text)));
	} else if (xf_is(event->name, "\"thread_sort_index\"")) {
		(void)xf_integer(xf_find(event->args, "sort_index"), &track->sort_index);
	}
}

static void perfetto_event(struct xm_sink *sink, struct xm_block *block,
			   const struct xf_event *event, const struct xm_place *place,
			   int64_t duration)
{
	const struct xm_input *input = block->input;
	struct xm_perfetto *p = (struct xm_perfetto *)sink;
	char phase = event->ph.p[1];
	struct xm_track *track;
	bool of_process;

	if (phase == 'M') {
		take_metadata(p, event, place);
		return;
	}
	if (phase == 'C') {
		add_counter(p, event, place);
		return;
	}
	of_process = place->tid == XM_NO_TIME || ((phase == 'i' || phase == 'I') &&
						  event->scope.n && !xf_is(event->scope, "\"t\""));
	if (!strchr("XiIBEstf", phase)) {
		p->skipped++;
		return;
	}
	track = track_of(p, place->pid, of_process ? -1 : place->tid);
	if (!track) {
		p->no_room++;
		return;
	}
	switch (phase) {
	case 'X':
		describe(p, input, event);
		add(p, track, XM_SLICE, place->time, place->time + duration);
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
		add(p, track, XM_INSTANT, place->time, place->time);
	}
}

static void perfetto_arrow(struct xm_sink *sink, const char *category, const char *name,
			   uint64_t id, const struct xm_place *from, const struct xm_place *to)
{
	struct xm_perfetto *p = (struct xm_perfetto *)sink;
	const struct xm_place *places[2] = { from, to };

	for (int i = 0; i < 2; i++) {
		struct xm_track *track = track_of(p, places[i]->pid, places[i]->tid);

		if (!track)
			continue;
		memset(&p->shape, 0, sizeof(p->shape));
		p->fields.length = 0;
		p->shape.name = xf_map_add(&p->texts[XM_NAMES], name, strlen(name));
		p->shape.category =
			xf_map_add(&p->texts[XM_CATEGORIES], category, strlen(category));
		p->shape.phase = i ? 'f' : 's';
		p->shape.enclosing = i;
		p->shape.flow = id;
		add(p, track, XM_FLOW, places[i]->time, places[i]->time);
	}
}

static void perfetto_head(struct xm_sink *sink, const struct xm_merge *merge,
			  const struct xm_clocks *clocks, bool synced)
{
	/* all is written at the end */
	(void)sink, (void)merge, (void)clocks, (void)synced;
}

/* Tracks whose names are texts in their inputs are called by them. */
static void name_tracks(struct xm_perfetto *p, const struct xm_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++)
		for (uint32_t k = 0; k < merge->order[i]->tids.count; k++) {
			uint32_t process;
			size_t n;
			const char *key = xf_map_key(&merge->order[i]->tids, k, &n);
			struct xm_track *track;

			memcpy(&process, key, sizeof(process));
			track = track_of(p, merge->order[i]->processes[process].out_pid,
					 XM_OWN_TID + k);
			if (!track || track->name.data)
				continue;
			key += sizeof(process);
			n -= sizeof(process);
			if (*key == '"') {
				n = xf_unescape((struct xf_text){ key, n }, p->text,
						sizeof(p->text));
				key = p->text;
			}
			set_name(track, key, n);
		}
}

static int perfetto_close(struct xm_sink *sink, const struct xm_merge *merge,
			  struct xm_totals *totals)
{
	struct xm_perfetto *p = (struct xm_perfetto *)sink;
	int result;

	xm_perfetto_fail(p, sink->error);
	name_tracks(p, merge);
	/* what was never ended lasts to the end */
	for (uint32_t i = 0; i < p->track_map.count; i++)
		for (p->tracks[i].too_deep = 0; p->tracks[i].open_count;)
			close_step(p, &p->tracks[i], p->last);
	for (int kind = 0; kind < XM_TEXT_KINDS; kind++) {
		p->stamps[kind] = calloc(p->texts[kind].count + 1, sizeof(*p->stamps[kind]));
		if (!p->stamps[kind])
			xm_perfetto_fail(p, -ENOMEM);
	}
	xm_perfetto_number(p, merge);
	xm_perfetto_fail(p, xm_sort_start(p->sort));
	if (!p->error)
		xm_perfetto_write(p, merge);
	result = xm_pour_close(&p->pour, "", 0);
	result = p->error ? p->error : result;
	if (p->skipped)
		xm_say("[WARNING] %" PRIu64
		       " events that Perfetto's format has no place for are left out",
		       p->skipped);
	totals->no_room = p->no_room;
	for (uint32_t i = 0; i < p->track_map.count; i++) {
		free(p->tracks[i].name.data);
		free(p->tracks[i].open);
	}
	for (int kind = 0; kind < XM_TEXT_KINDS; kind++) {
		xf_map_free(&p->texts[kind]);
		free(p->stamps[kind]);
	}
	xf_map_free(&p->track_map);
	xf_map_free(&p->places);
	free(p->orders);
	xm_sort_free(p->sort);
	free(p->tracks);
	free(p->pids);
	free(p->fields.data);
	free(p->packet.data);
	free(p);
	return result;
}

struct xm_sink *xm_sink_perfetto(void)
{
	struct xm_perfetto *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sink = (struct xm_sink){ .open = perfetto_open,
				    .head = perfetto_head,
				    .event = perfetto_event,
				    .arrow = perfetto_arrow,
				    .close = perfetto_close };
	p->annotator.out = &p->fields;
	p->annotator.key = key_number;
	p->annotator.user = p;
	p->pour.back.fd = -1;
	return &p->sink;
}
