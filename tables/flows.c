/*
 * The two ends of flows are joined: those of one identity lie behind each other.
 */
#include <errno.h>
#include <stdlib.h>

#include "sweep.h"

struct join {
	const struct xt_trace *trace;
	struct xt_table *flows;
	struct xt_row *points; /* of one identity */
	uint32_t count, room;
};

/* By time; what begins comes first. */
static int in_time(const void *left, const void *right)
{
	const struct xt_row *a = left, *b = right;
	bool begins_a = a->flags & XT_BEGINS, begins_b = b->flags & XT_BEGINS;

	if (a->dur != b->dur)
		return a->dur < b->dur ? -1 : 1;
	if (begins_a != begins_b)
		return begins_a ? -1 : 1;
	return (a->text > b->text) - (a->text < b->text);
}

static void put_end(struct join *join, const struct xt_row *point, unsigned slice, unsigned ts)
{
	if (point->text)
		xt_put_int(join->flows, slice, (int64_t)point->text - 1);
	xt_put_int(join->flows, ts, join->trace->base + point->dur);
}

/* One of them may be missing. */
static void put(struct join *join, const struct xt_row *from, const struct xt_row *to)
{
	const struct xt_row *any = from ? from : to;
	const struct xt_names *names = &join->trace->names;

	xt_put_int(join->flows, XT_FLOW_ID, (int64_t)xt_table_rows(join->flows));
	if (any->name != XF_NONE && xt_name(names, any->name).n)
		xt_put_name(join->flows, XT_FLOW_NAME, names, any->name);
	if (any->category != XF_NONE && xt_name(names, any->category).n)
		xt_put_name(join->flows, XT_FLOW_CAT, names, any->category);
	if (from)
		put_end(join, from, XT_FLOW_FROM, XT_FLOW_FROM_TS);
	if (to)
		put_end(join, to, XT_FLOW_TO, XT_FLOW_TO_TS);
	xt_table_row(join->flows);
}

/*
 * From each beginning or step to the steps and ends behind it, up to the next of these. Where there
 * is one beginning alone, all others belong to it, whatever the clocks say.
 */
static void join_points(struct join *join)
{
	const struct xt_row *from = NULL;
	uint32_t beginnings = 0, used = 0;

	qsort(join->points, join->count, sizeof(*join->points), in_time);
	for (uint32_t i = 0; i < join->count; i++)
		beginnings += !!(join->points[i].flags & XT_BEGINS);
	for (uint32_t i = 0; i < join->count && beginnings == 1; i++)
		if (join->points[i].flags & XT_BEGINS)
			from = &join->points[i];
	for (uint32_t i = 0; i < join->count; i++) {
		const struct xt_row *point = &join->points[i];

		if (!(point->flags & XT_BEGINS)) {
			put(join, from, point);
			used++;
		}
		if (!(point->flags & (XT_BEGINS | XT_GOES_ON)))
			continue;
		if ((point->flags & XT_BEGINS) && beginnings > 1 && from && !used)
			put(join, from, NULL);
		if ((point->flags & XT_BEGINS) && beginnings > 1)
			used = 0;
		from = point;
	}
	if (from && !used)
		put(join, from, NULL);
	join->count = 0;
}

int xt_join(const struct xt_trace *trace, struct xt_out *out, struct xt_rows *ends)
{
	struct join join = { .trace = trace, .flows = out->flows };
	const struct xt_row *row;

	xt_rows_sort(ends);
	while ((row = xt_rows_next(ends))) {
		if (join.count && row->ts != join.points[0].ts)
			join_points(&join);
		if (!xf_room_for(&join.points, &join.room, join.count, sizeof(*join.points))) {
			ends->error = -ENOMEM;
			break;
		}
		join.points[join.count++] = *row;
	}
	if (join.count)
		join_points(&join);
	free(join.points);
	return ends->error;
}
