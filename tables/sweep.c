#include "sweep.h"

#include <errno.h>
#include <stdlib.h>

#include "kinds.h"

/* A slice that later ones may lie in. */
struct level {
	int64_t end, covered; /* covered: children lie up to here */
	int64_t self;
	int64_t slice;
	struct xt_late late;
};

struct sweep {
	struct xt_trace *trace;
	struct xt_out *out;
	struct xt_rows *ends;
	struct xt_kinds kinds;
	struct level *levels;
	uint32_t depth, room;
	uint32_t track; /* XF_NONE: none yet */
	/* flows that point at the next slice that begins */
	struct xt_row *pending;
	uint32_t pending_count, pending_room;
	struct xf_map series; /* of counters: process, track, name, key */
	int error;
};

/* What of the arguments is a column of the slice. */
struct told {
	int64_t bytes, queued, submitted; /* -1: nothing */
	bool unfinished;
};

/* ---- arguments ---- */

static void look_at(const struct sweep *sweep, struct xf_text key, struct xf_text value,
		    struct told *told)
{
	int64_t number;

	if (xf_is(key, "bytes") && xf_integer(value, &number) && number >= 0)
		told->bytes = number;
	else if (xf_is(key, "queued") && xf_nanoseconds(value, &number))
		told->queued = sweep->trace->base + number;
	else if (xf_is(key, "submit") && xf_nanoseconds(value, &number))
		told->submitted = sweep->trace->base + number;
	else if (xf_is(key, "unfinished") && xf_is(value, "true"))
		told->unfinished = true;
}

/* The arguments of a slice, one row each. */
static void put_args(struct sweep *sweep, const char *text, size_t length, int64_t slice,
		     struct told *told)
{
	struct xt_table *args = sweep->out->args;
	const char *p = text, *end = text + length;
	struct xf_text key, value;

	/* those of a begin and of its end are two objects */
	for (; p < end && *p == '{'; p++) {
		p++;
		while (xf_member(&p, end, &key, &value)) {
			double number;

			xt_put_int(args, XT_ARG_SLICE, slice);
			xt_put_string(args, XT_ARG_KEY, (struct xf_text){ key.p - 1, key.n + 2 });
			xt_put_string(args, XT_ARG_VALUE, value);
			if (xf_number(value, &number))
				xt_put_double(args, XT_ARG_NUMBER, number);
			xt_table_row(args);
			look_at(sweep, key, value, told);
		}
		while (p < end && *p != '}')
			p++;
	}
}

/* ---- slices ---- */

static void close_level(struct sweep *sweep)
{
	struct level *level = &sweep->levels[--sweep->depth];

	xt_settle(level->late, level->self);
}

/*
 * Closes what can hold nothing that begins at `ts` or later and ends at `end`: what is over, and
 * what ends before this does. (What begins later and lies in such a one lies in this, too.)
 */
static void close_levels(struct sweep *sweep, int64_t ts, int64_t end)
{
	while (sweep->depth && (sweep->levels[sweep->depth - 1].end <= ts ||
				sweep->levels[sweep->depth - 1].end < end))
		close_level(sweep);
}

/* The part of the parent's time that is this child's and no other's before it. */
static void cover(struct level *parent, int64_t ts, int64_t end)
{
	int64_t from = ts > parent->covered ? ts : parent->covered;

	if (end > from) {
		parent->self -= end - from;
		parent->covered = end;
	}
}

static void end_of_flow(struct sweep *sweep, const struct xt_row *point, int64_t slice)
{
	struct xt_row end = *point;

	end.ts = point->dur;
	end.dur = point->ts;
	end.text = (uint64_t)(slice + 1);
	end.track = 0;
	end.kind = XT_POINT;
	xt_rows_add(sweep->ends, &end);
}

static void settle_pending(struct sweep *sweep, int64_t slice)
{
	for (uint32_t i = 0; i < sweep->pending_count; i++)
		end_of_flow(sweep, &sweep->pending[i], slice);
	sweep->pending_count = 0;
}

static int64_t number_of_track(struct sweep *sweep, uint32_t index)
{
	return sweep->trace->tracks[index].number;
}

static void put_name(struct sweep *sweep, struct xt_table *table, unsigned column,
		     const struct xt_row *row, const char *text)
{
	if (row->flags & XT_TEXT_HAS_NAME)
		xt_put_string(table, column, (struct xf_text){ text, row->name_length });
	else
		xt_put_name(table, column, &sweep->trace->names, row->name);
}

static void put_category(struct sweep *sweep, struct xt_table *table, unsigned column,
			 const struct xt_row *row)
{
	if (row->category != XF_NONE && xt_name(&sweep->trace->names, row->category).n)
		xt_put_name(table, column, &sweep->trace->names, row->category);
}

static bool push(struct sweep *sweep, const struct xt_row *row, int64_t slice)
{
	struct level *level;

	if (!xf_room_for(&sweep->levels, &sweep->room, sweep->depth, sizeof(*sweep->levels))) {
		sweep->error = -ENOMEM;
		return false;
	}
	level = &sweep->levels[sweep->depth++];
	level->end = row->ts + row->dur;
	level->covered = row->ts;
	level->self = row->dur;
	level->slice = slice;
	level->late = xt_promise(sweep->out->slices);
	return true;
}

static enum xt_what what_of(struct sweep *sweep, const struct xt_row *row, const char *text,
			    int64_t *bytes)
{
	struct xt_trace *trace = sweep->trace;
	bool has_name = row->flags & XT_TEXT_HAS_NAME;
	struct xf_text name = has_name ? (struct xf_text){ text, row->name_length }
				       : xt_name(&trace->names, row->name);
	const struct xt_track *track = &trace->tracks[row->track];
	enum xt_what what = xt_what(&sweep->kinds, trace, name, has_name ? XF_NONE : row->name,
				    row->category, track->is_queue, bytes);

	if (xt_is_work(what) && !track->is_queue)
		trace->processes[track->process].is_device = true;
	return what;
}

static void put_slice(struct sweep *sweep, const struct xt_row *row, const char *text)
{
	struct xt_table *slices = sweep->out->slices;
	int64_t slice = (int64_t)xt_table_rows(slices);
	struct told told = { -1, -1, -1, row->flags & XT_UNFINISHED };
	const char *kind;

	close_levels(sweep, row->ts, row->ts + row->dur);
	settle_pending(sweep, slice);
	xt_put_int(slices, XT_SLICE_ID, slice);
	xt_put_int(slices, XT_SLICE_TRACK, number_of_track(sweep, row->track));
	xt_put_int(slices, XT_SLICE_PROCESS, sweep->trace->tracks[row->track].process);
	put_category(sweep, slices, XT_SLICE_CAT, row);
	put_name(sweep, slices, XT_SLICE_NAME, row, text);
	xt_put_int(slices, XT_SLICE_TS, sweep->trace->base + row->ts);
	xt_put_int(slices, XT_SLICE_DUR, row->dur);
	xt_put_int(slices, XT_SLICE_DEPTH, sweep->depth);
	if (sweep->depth) {
		struct level *parent = &sweep->levels[sweep->depth - 1];

		xt_put_int(slices, XT_SLICE_PARENT, parent->slice);
		cover(parent, row->ts, row->ts + row->dur);
	}
	if (row->length)
		put_args(sweep, text + row->name_length, row->length, slice, &told);
	kind = xt_what_names[what_of(sweep, row, text, &told.bytes)];
	xt_put_text(slices, XT_SLICE_KIND, kind, strlen(kind));
	xt_put_flag(slices, XT_SLICE_UNFINISHED, told.unfinished);
	if (told.bytes >= 0)
		xt_put_int(slices, XT_SLICE_BYTES, told.bytes);
	if (told.queued >= 0)
		xt_put_int(slices, XT_SLICE_QUEUED, told.queued);
	if (told.submitted >= 0)
		xt_put_int(slices, XT_SLICE_SUBMITTED, told.submitted);
	if (push(sweep, row, slice))
		xt_table_row(slices);
}

/* ---- what else lies on a track ---- */

/* The slice that the point lies in or at the end of; -1: none. */
static int64_t slice_at(struct sweep *sweep, int64_t ts)
{
	while (sweep->depth && sweep->levels[sweep->depth - 1].end < ts)
		close_level(sweep);
	return sweep->depth ? sweep->levels[sweep->depth - 1].slice : -1;
}

static void put_point(struct sweep *sweep, const struct xt_row *row)
{
	if (!(row->flags & XT_NEXT)) {
		end_of_flow(sweep, row, slice_at(sweep, row->ts));
		return;
	}
	if (xf_room_for(&sweep->pending, &sweep->pending_room, sweep->pending_count,
			sizeof(*sweep->pending)))
		sweep->pending[sweep->pending_count++] = *row;
	else
		sweep->error = -ENOMEM;
}

static void put_mark(struct sweep *sweep, const struct xt_row *row, const char *text)
{
	struct xt_table *marks = sweep->out->marks;
	const struct xt_track *track = &sweep->trace->tracks[row->track];

	if (track->number >= 0)
		xt_put_int(marks, XT_MARK_TRACK, track->number);
	xt_put_int(marks, XT_MARK_PROCESS, track->process);
	put_category(sweep, marks, XT_MARK_CAT, row);
	put_name(sweep, marks, XT_MARK_NAME, row, text);
	xt_put_int(marks, XT_MARK_TS, sweep->trace->base + row->ts);
	if (row->length)
		xt_put_text(marks, XT_MARK_ARGS, text + row->name_length, row->length);
	xt_table_row(marks);
}

/* The number of a counter; XF_NONE: too many of them. */
static uint32_t series_of(struct sweep *sweep, const struct xt_row *row, const char *text,
			  struct xf_text key)
{
	bool has_name = row->flags & XT_TEXT_HAS_NAME;
	char bytes[512];
	size_t n = key.n < 256 ? key.n : 256;

	memcpy(bytes, &row->track, 4);
	memcpy(bytes + 4, &row->name, 4);
	memcpy(bytes + 8, key.p, n);
	if (has_name) {
		size_t more = row->name_length < 240 ? row->name_length : 240;

		memcpy(bytes + 8 + n, text, more);
		n += more;
	}
	return xf_map_add(&sweep->series, bytes, 8 + n);
}

static void put_counter(struct sweep *sweep, const struct xt_row *row, const char *text)
{
	struct xt_table *counters = sweep->out->counters;
	const struct xt_track *track = &sweep->trace->tracks[row->track];
	const char *p = text + row->name_length + 1, *end = p + row->length - 1;
	struct xf_text key, value;

	while (row->length && xf_member(&p, end, &key, &value)) {
		double number;
		uint32_t series;

		if (!xf_number(value, &number) && !xf_number(xf_inside(value), &number))
			continue;
		series = series_of(sweep, row, text, key);
		if (series == XF_NONE)
			continue;
		xt_put_int(counters, XT_COUNTER_ID, series);
		xt_put_int(counters, XT_COUNTER_PROCESS, track->process);
		if (track->number >= 0)
			xt_put_int(counters, XT_COUNTER_TRACK, track->number);
		put_name(sweep, counters, XT_COUNTER_NAME, row, text);
		xt_put_string(counters, XT_COUNTER_KEY, (struct xf_text){ key.p - 1, key.n + 2 });
		xt_put_int(counters, XT_COUNTER_TS, sweep->trace->base + row->ts);
		xt_put_double(counters, XT_COUNTER_VALUE, number);
		xt_table_row(counters);
	}
}

/* ---- all of it ---- */

/* The last slice of the track is behind: what waits for a next one has none. */
static void end_track(struct sweep *sweep)
{
	if (sweep->pending_count)
		settle_pending(sweep, sweep->depth ? sweep->levels[sweep->depth - 1].slice : -1);
	while (sweep->depth)
		close_level(sweep);
}

static void put_row(struct sweep *sweep, const struct xt_row *row)
{
	size_t length = (size_t)row->name_length + row->length;
	const char *text = "";

	if (row->track != sweep->track)
		end_track(sweep);
	sweep->track = row->track;
	if (length) {
		text = xt_store_get(&sweep->trace->store, row->text, length);
		if (!text) {
			sweep->error = sweep->trace->store.error;
			return;
		}
	}
	switch (row->kind) {
	case XT_SLICE:
		put_slice(sweep, row, text);
		break;
	case XT_MARK:
		put_mark(sweep, row, text);
		break;
	case XT_COUNTER:
		put_counter(sweep, row, text);
		break;
	default:
		put_point(sweep, row);
	}
}

/* Which tracks are there, in the order of the tables. */
static void number_tracks(struct xt_trace *trace)
{
	int64_t number = 0;

	for (uint32_t i = 0; i < trace->tids.count; i++) {
		struct xt_track *track = &trace->tracks[i];

		track->number = track->is_process && !track->has_slices ? -1 : number++;
	}
}

int xt_sweep(struct xt_trace *trace, struct xt_out *out, struct xt_rows *ends,
	     struct xt_progress *progress)
{
	struct sweep sweep = { .trace = trace, .out = out, .ends = ends, .track = XF_NONE };
	const struct xt_row *row;
	uint64_t done = 0;

	xf_map_init(&sweep.series, 1u << 20, 256u << 20);
	number_tracks(trace);
	xt_rows_sort(&trace->rows);
	while (!sweep.error && (row = xt_rows_next(&trace->rows))) {
		put_row(&sweep, row);
		if (!(++done & 0xfff))
			xt_progress(progress, "writing", done, trace->row_count);
	}
	end_track(&sweep);
	free(sweep.levels);
	free(sweep.pending);
	free(sweep.kinds.known);
	xf_map_free(&sweep.series);
	return sweep.error ? sweep.error : trace->rows.error;
}
