/*
 * What is found, to stdout as python/xstrace/path_core.py reads it: a head, the steps of the
 * longest chain, what changes give, the slack of names, and who waited for whom.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC 0x3261506572727378ull /* "xsrrePa2" */

struct head {
	uint64_t magic, nodes, edges, late, loose, circular, overlaps, is_same;
	int64_t begin, end;
	uint64_t steps, halves, waits;
};

/* Of the longest chain: time from one moment to the next. */
struct step {
	int64_t begin, end;
	uint32_t slice;	 /* XR_NONE: in none */
	uint32_t track;	 /* of the later moment; XR_NONE: a collective's */
	uint32_t before; /* the slice that the step leaves, where it goes from one track to another;
			    else XR_NONE */
	uint32_t category;
};

struct half {
	uint32_t name, category;
	int64_t share, end;
};

/* How long processes waited for one another. */
struct wait {
	uint32_t who, whom;
	uint64_t count;
	int64_t time;
};

struct found {
	struct step *steps;
	struct half *halves;
	struct wait *waits;
	uint64_t step_count, half_count, wait_count, step_room, wait_room;
};

static int write_all(const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t n = write(STDOUT_FILENO, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Room for one more element; false: no memory. */
static bool make_room(void *array, uint64_t count, uint64_t *room, size_t size)
{
	void **at = array, *grown;

	if (count < *room)
		return true;
	grown = realloc(*at, (2 * *room + 1024) * size);
	if (!grown)
		return false;
	*at = grown;
	*room = 2 * *room + 1024;
	return true;
}

static uint32_t track_of(const struct xr_graph *graph, uint32_t node)
{
	uint32_t low = 0, high = (uint32_t)graph->input->tracks;

	if (node >= graph->tracks)
		return XR_NONE;
	while (low + 1 < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->first[middle] <= node)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The slice that an edge leaves: the innermost one of the track up to that moment, or the one that
 * begins there. */
static uint32_t slice_at(const struct xr_graph *graph, uint32_t node)
{
	if (node >= graph->tracks)
		return XR_NONE;
	if (graph->chain[node] >= 0 && graph->slice[node] != XR_NONE &&
	    graph->category[node] != XR_QUEUE && graph->category[node] != XR_IDLE)
		return graph->slice[node];
	return node + 1 < graph->tracks && graph->chain[node + 1] >= 0 ? graph->slice[node + 1]
								       : XR_NONE;
}

static int add_step(struct found *found, const struct xr_graph *graph, uint32_t from, uint32_t to,
		    uint32_t by)
{
	const struct xr_edge *edge = by == XR_NONE ? NULL : &graph->edge[by];

	if (!make_room(&found->steps, found->step_count, &found->step_room, sizeof(struct step)))
		return -ENOMEM;
	found->steps[found->step_count++] = (struct step){
		.begin = graph->time[from],
		.end = graph->time[to],
		.slice = edge ? edge->slice : graph->slice[to],
		.track = track_of(graph, to),
		.before = edge ? slice_at(graph, from) : XR_NONE,
		.category = edge ? edge->category : graph->category[to],
	};
	return 0;
}

/* Before a moment before which nothing is known. */
static int add_begin(struct found *found, const struct xr_graph *graph, uint32_t node)
{
	uint32_t slice = slice_at(graph, node);
	bool is_work = slice != XR_NONE && xr_is_device(graph->input->kind[slice]);

	if (!make_room(&found->steps, found->step_count, &found->step_room, sizeof(struct step)))
		return -ENOMEM;
	found->steps[found->step_count++] = (struct step){
		.begin = graph->begin,
		.end = graph->time[node],
		.slice = is_work ? slice : XR_NONE,
		.track = track_of(graph, node),
		.before = XR_NONE,
		.category = is_work ? XR_IDLE : XR_START,
	};
	return 0;
}

/* From the last moment of the run back to one before which nothing is known. */
static int walk_back(struct xr_graph *graph, struct found *found)
{
	uint32_t node = 0;
	int r = 0;

	for (uint32_t i = 0; i < graph->nodes; i++)
		if (graph->time[i] == graph->end) {
			node = i;
			break;
		}
	while (!r && graph->nodes) {
		uint32_t by = xr_kept_by(graph, node), from;

		if (by == XR_NONE && graph->chain[node] < 0)
			break;
		from = by == XR_NONE ? node - 1 : graph->edge[by].source;
		r = add_step(found, graph, from, node, by);
		node = from;
	}
	if (!r && graph->nodes && graph->time[node] > graph->begin)
		r = add_begin(found, graph, node);
	return r;
}

static int compare_halves(const void *a, const void *b)
{
	const struct half *p = a, *q = b;

	if (p->name != q->name)
		return p->name < q->name ? -1 : 1;
	return p->category < q->category ? -1 : p->category > q->category;
}

static int compare_shares(const void *a, const void *b)
{
	const struct half *p = a, *q = b;

	if (p->share != q->share)
		return p->share > q->share ? -1 : 1;
	return compare_halves(a, b);
}

/* The names with the largest shares of the chain, and what the run were if they took half. */
static int find_halves(struct xr_graph *graph, struct found *found, int64_t *times)
{
	uint64_t count = 0;

	found->halves = malloc((found->step_count + 1) * sizeof(*found->halves));
	if (!found->halves)
		return -ENOMEM;
	for (uint64_t i = 0; i < found->step_count; i++) {
		const struct step *step = &found->steps[i];
		uint32_t name = step->slice == XR_NONE ? XR_OUTSIDE
						       : graph->input->name[step->slice];

		found->halves[i] =
			(struct half){ name, step->category, step->end - step->begin, 0 };
	}
	qsort(found->halves, found->step_count, sizeof(*found->halves), compare_halves);
	for (uint64_t i = 0; i < found->step_count; i++) {
		if (count && !compare_halves(&found->halves[count - 1], &found->halves[i]))
			found->halves[count - 1].share += found->halves[i].share;
		else
			found->halves[count++] = found->halves[i];
	}
	qsort(found->halves, count, sizeof(*found->halves), compare_shares);
	found->half_count = count < graph->input->halves ? count : graph->input->halves;
	for (uint64_t i = 0; i < found->half_count; i++) {
		struct half *half = &found->halves[i];
		struct xr_change change = { 0, half->name, (uint8_t)half->category };

		half->end = xr_replay(graph, &change, times);
	}
	return 0;
}

static int compare_waits(const void *a, const void *b)
{
	const struct wait *p = a, *q = b;

	if (p->who != q->who)
		return p->who < q->who ? -1 : 1;
	return p->whom < q->whom ? -1 : p->whom > q->whom;
}

/* The waits of each pair become one. */
static void sum_waits(struct found *found)
{
	uint64_t count = 0;

	if (found->wait_count)
		qsort(found->waits, found->wait_count, sizeof(*found->waits), compare_waits);
	for (uint64_t i = 0; i < found->wait_count; i++) {
		if (count && !compare_waits(&found->waits[count - 1], &found->waits[i])) {
			found->waits[count - 1].count += found->waits[i].count;
			found->waits[count - 1].time += found->waits[i].time;
		} else {
			found->waits[count++] = found->waits[i];
		}
	}
	found->wait_count = count;
}

#define MANY 65536u /* waits that are summed at a time, beyond the pairs that there are */

/* A thread that something in another process, or a device, kept waiting. */
static int find_waits(struct xr_graph *graph, struct found *found)
{
	const struct xr_input *input = graph->input;
	uint64_t limit = MANY;

	for (uint32_t track = 0; track < input->tracks; track++)
		for (uint32_t i = graph->first[track]; i < graph->first[track + 1]; i++) {
			uint32_t by = xr_kept_by(graph, i), source;

			if (by == XR_NONE || graph->chain[i] < 0 ||
			    graph->edge[by].category == XR_LAUNCH)
				continue;
			source = graph->edge[by].source;
			if (source >= graph->tracks) { /* a collective: its last giver */
				by = xr_kept_by(graph, source);
				source = by == XR_NONE ? i : graph->edge[by].source;
			}
			if (input->process[track_of(graph, source)] == input->process[track])
				continue;
			if (!make_room(&found->waits, found->wait_count, &found->wait_room,
				       sizeof(struct wait)))
				return -ENOMEM;
			found->waits[found->wait_count++] =
				(struct wait){ input->process[track],
					       input->process[track_of(graph, source)], 1,
					       graph->time[source] - graph->time[i - 1] };
			if (found->wait_count >= limit) {
				sum_waits(found);
				limit = found->wait_count * 2 + MANY;
			}
		}
	sum_waits(found);
	return 0;
}

/* Is each node when it was? */
static bool is_same(const struct xr_graph *graph, const int64_t *times)
{
	for (uint32_t i = 0; i < graph->nodes; i++)
		if (times[i] != graph->time[i])
			return false;
	return true;
}

static int put(const struct xr_graph *graph, const struct found *found, const int64_t *ends,
	       const int64_t *slack, bool same)
{
	const struct xr_input *input = graph->input;
	struct head head = {
		MAGIC,
		graph->nodes,
		graph->edges,
		graph->late,
		graph->loose,
		graph->circular,
		graph->overlaps,
		same,
		graph->begin,
		graph->end,
		found->step_count,
		found->half_count,
		found->wait_count,
	};
	int r = write_all(&head, sizeof(head));

	r = r ? r : write_all(found->steps, found->step_count * sizeof(*found->steps));
	r = r ? r : write_all(found->halves, found->half_count * sizeof(*found->halves));
	r = r ? r : write_all(found->waits, found->wait_count * sizeof(*found->waits));
	r = r ? r : write_all(ends, input->scenarios * sizeof(*ends));
	return r ? r : write_all(slack, input->names * sizeof(*slack));
}

int xr_answer(struct xr_graph *graph)
{
	const struct xr_input *input = graph->input;
	struct found found = { 0 };
	struct xr_change change = { 0, XR_NONE, 0 };
	int64_t *times = malloc((graph->nodes + 1ul) * sizeof(*times));
	int64_t *slack = malloc((input->names + 1) * sizeof(*slack));
	int64_t *ends = malloc((input->scenarios + 1) * sizeof(*ends));
	bool same = false;
	int r = times && slack && ends ? 0 : -ENOMEM;

	if (!r) {
		(void)xr_replay(graph, &change, times);
		same = is_same(graph, times);
		r = walk_back(graph, &found);
	}
	if (!r) {
		for (uint64_t i = 0; i < input->scenarios; i++) {
			change.rules = input->scenario[i];
			ends[i] = xr_replay(graph, &change, times);
		}
		r = find_halves(graph, &found, times);
	}
	if (!r) {
		xr_slack(graph, times, slack);
		r = find_waits(graph, &found);
	}
	if (!r)
		r = put(graph, &found, ends, slack, same);
	free(times);
	free(slack);
	free(ends);
	free(found.steps);
	free(found.halves);
	free(found.waits);
	return r;
}
