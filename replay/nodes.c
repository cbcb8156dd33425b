/* The nodes of each track: its slices in the order of time, taken apart into moments. */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A moment in a slice from which an arrow leaves. */
struct point {
	int64_t time;
	uint32_t track, arrow;
};

struct walk {
	struct xr_graph *graph;
	const uint32_t *sorted; /* slices */
	struct point *points;
	uint32_t point_count, point;
	uint32_t *open, depth; /* slices that are open, the outermost first */
};

static const struct xr_input *sorting;

static int compare_slices(const void *a, const void *b)
{
	const struct xr_input *input = sorting;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (input->track[i] != input->track[j])
		return input->track[i] < input->track[j] ? -1 : 1;
	if (input->begin[i] != input->begin[j])
		return input->begin[i] < input->begin[j] ? -1 : 1;
	if (input->end[i] != input->end[j])
		return input->end[i] > input->end[j] ? -1 : 1;
	return i < j ? -1 : i > j;
}

static int compare_points(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	if (p->track != q->track)
		return p->track < q->track ? -1 : 1;
	if (p->time != q->time)
		return p->time < q->time ? -1 : 1;
	return p->arrow < q->arrow ? -1 : p->arrow > q->arrow;
}

/* Sorts what is nearly always sorted already. */
static void sort(void *array, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	char *at = array;
	size_t i = 1;

	while (i < count && compare(at + (i - 1) * size, at + i * size) <= 0)
		i++;
	if (i < count)
		qsort(array, count, size, compare);
}

/* Does the arrow leave from within its slice? Others leave from its begin or end. */
static bool leaves_within(const struct xr_input *input, uint32_t arrow)
{
	switch (input->type[arrow]) {
	case XR_TO_DEVICE:
	case XR_CHILD:
		return !xr_is_device(input->kind[input->from[arrow]]);
	case XR_HANDED:
		return input->end[input->from[arrow]] > input->begin[input->to[arrow]];
	default:
		return false;
	}
}

static struct point *points_of(const struct xr_input *input, uint32_t *ret_count)
{
	struct point *points;
	uint32_t count = 0;

	for (uint32_t i = 0; i < input->arrows; i++)
		count += leaves_within(input, i);
	points = malloc((count + 1) * sizeof(*points));
	*ret_count = count;
	for (uint32_t i = 0, n = 0; points && i < input->arrows; i++) {
		uint32_t from = input->from[i];
		int64_t time = input->from_time[i];

		if (!leaves_within(input, i))
			continue;
		time = time < input->begin[from] ? input->begin[from] : time;
		time = time > input->end[from] ? input->end[from] : time;
		points[n++] = (struct point){ time, input->track[from], i };
	}
	if (points)
		sort(points, count, sizeof(*points), compare_points);
	return points;
}

static uint32_t *slices_in_order(const struct xr_input *input)
{
	uint32_t *sorted = malloc((input->slices + 1) * sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < input->slices; i++)
		sorted[i] = i;
	sorting = input;
	if (sorted)
		sort(sorted, input->slices, sizeof(*sorted), compare_slices);
	return sorted;
}

/* The next node of the track; `begins`: the slice that begins there, or XR_NONE. */
static uint32_t put_node(struct walk *walk, uint32_t first, int64_t time, uint32_t begins)
{
	struct xr_graph *graph = walk->graph;
	const struct xr_input *input = graph->input;
	uint32_t node = graph->nodes++, in = walk->depth ? walk->open[walk->depth - 1] : XR_NONE;
	enum xr_category category = XR_HOST;

	if (in == XR_NONE && begins != XR_NONE && xr_is_device(input->kind[begins])) {
		category = XR_QUEUE;
		in = begins;
	} else if (in != XR_NONE && xr_is_device(input->kind[in])) {
		category = XR_DEVICE;
	} else if (in != XR_NONE && input->flags[input->name[in]] & XR_WAITS) {
		category = XR_WAITING;
	}
	/* a slice that was cut to the one around it may end before an arrow that leaves from it */
	graph->time[node] = node > first && time < graph->time[node - 1] ? graph->time[node - 1]
									 : time;
	graph->chain[node] = node > first ? graph->time[node] - graph->time[node - 1] : -1;
	graph->slice[node] = in;
	graph->category[node] = (uint8_t)category;
	return node;
}

/* The points of the track up to a time. */
static void put_points(struct walk *walk, uint32_t first, uint32_t track, int64_t until)
{
	for (; walk->point < walk->point_count; walk->point++) {
		const struct point *point = &walk->points[walk->point];

		if (point->track != track || point->time > until)
			return;
		walk->graph->leaves[point->arrow] = put_node(walk, first, point->time, XR_NONE);
	}
}

/* Ends the slices that have ended by `until`. */
static void put_ends(struct walk *walk, uint32_t first, uint32_t track, int64_t until,
		     const int64_t *ends)
{
	while (walk->depth) {
		uint32_t slice = walk->open[walk->depth - 1];

		if (ends[walk->depth - 1] > until)
			return;
		put_points(walk, first, track, ends[walk->depth - 1]);
		walk->graph->ends[slice] = put_node(walk, first, ends[walk->depth - 1], XR_NONE);
		walk->depth--;
	}
}

/* The rules about the host time in the slice; those about the slice around it hold for it too. */
static void find_rules(const struct walk *walk, uint32_t slice)
{
	const struct xr_input *input = walk->graph->input;
	uint64_t rules = walk->depth ? walk->graph->rules[walk->open[walk->depth - 1]] : 0;

	for (uint64_t i = 0; i < input->rules; i++)
		if (input->match[i * input->names + input->name[slice]] >> XR_HOST & 1)
			rules |= 1ull << i;
	walk->graph->rules[slice] = rules;
}

/* One track, whose slices are sorted[*at …]; leaves *at behind them. `ends`: room for those of open
 * ones. */
static void walk_track(struct walk *walk, uint32_t track, uint32_t *at, int64_t *ends)
{
	const struct xr_input *input = walk->graph->input;
	uint32_t first = walk->graph->nodes;

	for (; *at < input->slices && input->track[walk->sorted[*at]] == track; ++*at) {
		uint32_t slice = walk->sorted[*at];
		int64_t begin = input->begin[slice], end = input->end[slice];

		put_ends(walk, first, track, begin, ends);
		put_points(walk, first, track, begin - 1);
		if (walk->depth && end > ends[walk->depth - 1]) {
			end = ends[walk->depth - 1];
			walk->graph->overlaps++;
		}
		walk->graph->starts[slice] = put_node(walk, first, begin, slice);
		if (input->rules)
			find_rules(walk, slice);
		walk->open[walk->depth] = slice;
		ends[walk->depth++] = end;
	}
	put_ends(walk, first, track, INT64_MAX, ends);
	put_points(walk, first, track, INT64_MAX); /* of slices that were cut */
}

/* How deep slices lie in each other at most. */
static uint32_t deepest(const struct xr_input *input, const uint32_t *sorted, int64_t *ends)
{
	uint32_t deepest = 0, depth = 0;

	for (uint32_t i = 0; i < input->slices; i++) {
		uint32_t slice = sorted[i];

		if (i && input->track[sorted[i - 1]] != input->track[slice])
			depth = 0;
		while (depth && ends[depth - 1] <= input->begin[slice])
			depth--;
		ends[depth] = depth && ends[depth - 1] < input->end[slice] ? ends[depth - 1]
									   : input->end[slice];
		deepest = ++depth > deepest ? depth : deepest;
	}
	return deepest;
}

static int make_room(struct xr_graph *graph, uint32_t nodes)
{
	const struct xr_input *input = graph->input;

	graph->time = malloc((nodes + 1ul) * sizeof(*graph->time));
	graph->chain = malloc((nodes + 1ul) * sizeof(*graph->chain));
	graph->slice = malloc((nodes + 1ul) * sizeof(*graph->slice));
	graph->category = malloc(nodes + 1ul);
	graph->first = calloc(input->tracks + 1, sizeof(*graph->first));
	graph->starts = malloc((input->slices + 1) * sizeof(*graph->starts));
	graph->ends = malloc((input->slices + 1) * sizeof(*graph->ends));
	graph->rules = malloc((input->rules ? input->slices + 1 : 1) * sizeof(*graph->rules));
	graph->leaves = malloc((input->arrows + 1) * sizeof(*graph->leaves));
	if (!graph->time || !graph->chain || !graph->slice || !graph->category || !graph->first ||
	    !graph->starts || !graph->ends || !graph->rules || !graph->leaves)
		return -ENOMEM;
	memset(graph->leaves, 0xff, (input->arrows + 1) * sizeof(*graph->leaves));
	return 0;
}

/* A node for each collective: it has come to pass when its last giver has come. */
static void put_groups(struct xr_graph *graph)
{
	for (uint64_t i = 0; i < graph->input->groups; i++) {
		uint32_t node = graph->nodes++;

		graph->time[node] = 0;
		graph->chain[node] = -1;
		graph->slice[node] = XR_NONE;
		graph->category[node] = XR_COLLECTIVE;
	}
}

int xr_make_nodes(struct xr_graph *graph)
{
	const struct xr_input *input = graph->input;
	struct walk walk = { .graph = graph };
	int64_t *ends = malloc((input->slices + 1) * sizeof(*ends));
	uint32_t at = 0;
	int r = -ENOMEM;

	walk.sorted = slices_in_order(input);
	walk.points = points_of(input, &walk.point_count);
	if (walk.sorted && walk.points && ends)
		walk.open = malloc((deepest(input, walk.sorted, ends) + 1ul) * sizeof(*walk.open));
	if (walk.open)
		r = make_room(graph,
			      (uint32_t)(2 * input->slices + walk.point_count + input->groups));
	if (!r) {
		for (uint32_t track = 0; track < input->tracks; track++) {
			graph->first[track] = graph->nodes;
			walk_track(&walk, track, &at, ends);
		}
		graph->first[input->tracks] = graph->tracks = graph->nodes;
		put_groups(graph);
	}
	free((void *)walk.sorted);
	free(walk.points);
	free(walk.open);
	free(ends);
	return r;
}
