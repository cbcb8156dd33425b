/*
 * Events become rows.
 */
#include <errno.h>
#include <stdlib.h>

#include "trace.h"

#define LONG_NAME 65536u /* bytes: a longer one is kept with its row alone */

/* What has begun: by B, or by b. */
struct xt_open {
	struct xt_open *next;
	struct xt_row row;
	char args[]; /* row.length bytes */
};

static void add(struct xt_trace *trace, const struct xt_row *row)
{
	xt_rows_add(&trace->rows, row);
	trace->row_count++;
	trace->error = trace->error ? trace->error : trace->rows.error;
	trace->error = trace->error ? trace->error : trace->store.error;
}

/* Of a text, which may be missing. */
static uint32_t number_of(struct xt_trace *trace, struct xf_text text)
{
	struct xf_map *map = &trace->names.map;
	struct xt_recent *recent, now = { .length = (uint32_t)text.n };

	if (text.n < 8)
		return xf_map_add(map, text.n ? text.p : "", text.n);
	memcpy(&now.first, text.p, 8);
	memcpy(&now.last, text.p + text.n - 8, 8);
	recent = &trace->recent[((now.first ^ now.last * 31 ^ text.n) * 0x9e3779b97f4a7c15ull) >>
				56];
	if (recent->first == now.first && recent->last == now.last &&
	    recent->length == now.length &&
	    !memcmp(map->bytes + map->keys[recent->number].at, text.p, text.n))
		return recent->number;
	now.number = xf_map_add(map, text.p, text.n);
	if (now.number != XF_NONE)
		*recent = now;
	return now.number;
}

/*
 * The row's name and category; the text of a name that has no number goes into the store, in front
 * of the arguments, which must come next.
 */
static void take_texts(struct xt_trace *trace, struct xt_row *row, const struct xf_event *event)
{
	struct xf_text name = event->name, category = event->cat;

	row->name = name.n <= LONG_NAME ? number_of(trace, name) : XF_NONE;
	row->category = number_of(trace, category);
	row->text = trace->store.end;
	if (row->name == XF_NONE) {
		row->flags |= XT_TEXT_HAS_NAME;
		row->name_length = (uint32_t)name.n;
		(void)xt_store_add(&trace->store, name.p, name.n);
	}
	row->length = (uint32_t)event->args.n;
}

static void take_args(struct xt_trace *trace, struct xt_row *row, struct xf_text args)
{
	row->length = (uint32_t)args.n;
	if (args.n)
		(void)xt_store_add(&trace->store, args.p, args.n);
}

static void take_row(struct xt_trace *trace, const struct xf_event *event, struct xt_row *row)
{
	take_texts(trace, row, event);
	take_args(trace, row, event->args);
	add(trace, row);
}

/* ---- what begins and ends by events of their own ---- */

static struct xt_open *begin(struct xt_trace *trace, const struct xf_event *event,
			     const struct xt_row *row, struct xt_open *next)
{
	struct xt_open *open = malloc(sizeof(*open) + event->args.n);

	if (!open) {
		trace->error = -ENOMEM;
		return next;
	}
	open->row = *row;
	take_texts(trace, &open->row, event);
	if (event->args.n)
		memcpy(open->args, event->args.p, event->args.n);
	open->next = next;
	return open;
}

/* Adds it, with its arguments and those of its end; returns the next one. */
static struct xt_open *end(struct xt_trace *trace, struct xt_open *open, int64_t ts,
			   struct xf_text args)
{
	struct xt_open *next = open->next;
	struct xt_row *row = &open->row;
	uint64_t at = trace->store.end;

	/* the name was stored when it began */
	if (row->flags & XT_TEXT_HAS_NAME) {
		char *name = malloc(row->name_length);
		const char *stored = xt_store_get(&trace->store, row->text, row->name_length);

		if (name && stored) {
			memcpy(name, stored, row->name_length);
			(void)xt_store_add(&trace->store, name, row->name_length);
		} else {
			trace->error = name ? trace->store.error : -ENOMEM;
		}
		free(name);
	}
	row->text = at;
	if (row->length)
		(void)xt_store_add(&trace->store, open->args, row->length);
	if (args.n)
		(void)xt_store_add(&trace->store, args.p, args.n);
	row->length += (uint32_t)args.n;
	row->dur = ts > row->ts ? ts - row->ts : 0;
	add(trace, row);
	free(open);
	return next;
}

static struct xf_text id_of(const struct xf_event *event)
{
	for (uint32_t i = 0; i < event->other_count && !event->id.n; i++) {
		const char *p = event->others[i].p;
		struct xf_text key, value;

		/* what ends a number stands behind it */
		if (xf_member(&p, p + event->others[i].n + 1, &key, &value) && xf_is(key, "id2"))
			return value;
	}
	return event->id;
}

/* What belongs together by its id: the number of that. */
static uint32_t waiting_of(struct xt_trace *trace, const struct xf_event *event)
{
	struct xf_text parts[] = { event->pid, event->cat, event->name, id_of(event) };
	char key[1024];
	size_t n = 0;

	for (unsigned i = 0; i < 4; i++) {
		size_t length = parts[i].n < 250 ? parts[i].n : 250;

		if (length)
			memcpy(key + n, parts[i].p, length);
		n += length;
		key[n++] = 0;
	}
	return xf_map_add(&trace->waiting_ids, key, n);
}

static void take_asynchronous(struct xt_trace *trace, const struct xf_event *event,
			      struct xt_row *row, bool begins)
{
	uint32_t number = waiting_of(trace, event);
	struct xf_text id = id_of(event);
	struct xt_open **open;

	if (number == XF_NONE ||
	    !xf_room_for(&trace->waiting, &trace->waiting_room, number, sizeof(*trace->waiting))) {
		trace->unfit++;
		return;
	}
	open = &trace->waiting[number];
	row->track = xt_track_named(trace, event->pid, id.n ? id.p : "", id.n);
	if (row->track == XF_NONE)
		trace->unfit++;
	else if (begins)
		*open = begin(trace, event, row, *open);
	else if (*open)
		*open = end(trace, *open, row->ts, event->args);
	else
		trace->unfit++;
}

void xt_take_end(struct xt_trace *trace)
{
	const struct xf_text none = { 0 };

	for (uint32_t i = 0; i < trace->tids.count; i++)
		while (trace->tracks[i].open) {
			trace->tracks[i].open->row.flags |= XT_UNFINISHED;
			trace->tracks[i].open =
				end(trace, trace->tracks[i].open, trace->last, none);
		}
	for (uint32_t i = 0; i < trace->waiting_ids.count && i < trace->waiting_room; i++)
		while (trace->waiting[i]) {
			trace->waiting[i]->row.flags |= XT_UNFINISHED;
			trace->waiting[i] = end(trace, trace->waiting[i], trace->last, none);
		}
}

/* ---- flows ---- */

/* Arrows that end where the slices do; docs/TRACE_FORMAT.md, Arrows. */
static bool is_late(const struct xf_event *event, char phase)
{
	return xf_is(event->cat, "\"flow\"") && (xf_is(event->name, "\"wait\"") ||
						 (phase == 's' && xf_is(event->name, "\"order\"")));
}

static void take_flow(struct xt_trace *trace, const struct xf_event *event, struct xt_row *row,
		      char phase)
{
	uint64_t identity = xf_arrow_hash(event, id_of(event));

	row->kind = is_late(event, phase) ? XT_LATE_POINT : XT_POINT;
	row->flags = phase == 's' ? XT_BEGINS : phase == 't' ? XT_GOES_ON : 0;
	if (phase == 'f' && row->kind == XT_POINT && !xf_is(event->bp, "\"e\""))
		row->flags |= XT_NEXT;
	row->dur = (int64_t)identity;
	take_texts(trace, row, event);
	row->length = 0;
	add(trace, row);
}

/* ---- all of them ---- */

/* The phases of slices, points, flows: of all that lies on a track. */
static void take_on_track(struct xt_trace *trace, const struct xf_event *event, struct xt_row *row,
			  char phase)
{
	struct xt_track *track = &trace->tracks[row->track];

	track->has_slices |= phase == 'X' || phase == 'B';
	switch (phase) {
	case 'X':
		if (xf_is(event->cat, "\"gpu_user_annotation\"")) /* Kineto's */
			row->flags |= XT_OUTER;
		take_row(trace, event, row);
		break;
	case 'B':
		track->open = begin(trace, event, row, track->open);
		break;
	case 'E':
		if (track->open)
			track->open = end(trace, track->open, row->ts, event->args);
		else
			trace->unfit++;
		break;
	case 's':
	case 't':
	case 'f':
		take_flow(trace, event, row, phase);
		break;
	case 'i':
	case 'I':
	case 'R':
	case 'n':
		row->kind = XT_MARK;
		take_row(trace, event, row);
		break;
	case 'C':
		row->kind = XT_COUNTER;
		take_row(trace, event, row);
		break;
	}
}

void xt_take(struct xt_trace *trace, const struct xf_event *event, int64_t ts, int64_t dur)
{
	struct xt_row row = { .ts = ts, .dur = dur, .kind = XT_SLICE };
	char phase = event->ph.p[1];

	trace->events++;
	if (phase != 'X' && !strchr("BEstfiIRnCbeSF", phase))
		return; /* samples, objects, memory dumps: nothing of theirs is in a table */
	if (ts < trace->first)
		trace->first = ts;
	if (ts + dur > trace->last)
		trace->last = ts + dur;
	if (phase != 'X' && strchr("beSF", phase)) {
		take_asynchronous(trace, event, &row, phase == 'b' || phase == 'S');
		return;
	}
	row.track = xt_track_of(trace, event);
	if (row.track == XF_NONE)
		trace->unfit++;
	else
		take_on_track(trace, event, &row, phase);
}
