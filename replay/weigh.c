/*
 * What each edge costs. The edge that kept a node is as long as it was in the run. The others are
 * as long as such edges usually are where they decide, but never longer than the run leaves room
 * for: so that with nothing changed each node is when it was.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long one edge was that decided. */
struct sample {
	uint64_t key; /* category and name */
	int64_t lag;
};

struct samples {
	struct sample *sample;
	size_t count;
	struct sample usual[XR_CATEGORIES]; /* of all names */
};

static uint64_t key_of(const struct xr_graph *graph, uint8_t category, uint32_t slice)
{
	uint32_t name = slice == XR_NONE ? XR_OUTSIDE : graph->input->name[slice];

	return (uint64_t)category << 32 | name;
}

int xr_sort_edges(struct xr_graph *graph)
{
	struct xr_edge *sorted = malloc((graph->edges + 1ul) * sizeof(*sorted));
	uint32_t *into = calloc(graph->nodes + 2ul, sizeof(*into));

	if (!sorted || !into) {
		free(sorted);
		free(into);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < graph->edges; i++)
		into[graph->edge[i].target + 2]++;
	for (uint32_t i = 2; i < graph->nodes + 2; i++)
		into[i] += into[i - 1];
	for (uint32_t i = 0; i < graph->edges; i++)
		sorted[into[graph->edge[i].target + 1]++] = graph->edge[i];
	free(graph->edge);
	graph->edge = sorted;
	graph->edge_room = graph->edges;
	graph->into = into;
	return 0;
}

/* The latest predecessor (an edge, or XR_NONE for the chain); of several that are as late an arrow,
 * for that is why there is one. */
uint32_t xr_kept_by(const struct xr_graph *graph, uint32_t node)
{
	bool has_chain = graph->chain[node] >= 0;
	int64_t latest = has_chain ? graph->time[node - 1] : -1;
	uint32_t kept_by = XR_NONE;

	for (uint32_t i = graph->into[node]; i < graph->into[node + 1]; i++) {
		int64_t time = graph->time[graph->edge[i].source];

		if (graph->edge[i].source == node) /* cut (order.c) */
			continue;
		if (time > latest || (time == latest && kept_by == XR_NONE)) {
			latest = time;
			kept_by = i;
		}
	}
	return kept_by;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *p = a, *q = b;

	if (p->key != q->key)
		return p->key < q->key ? -1 : 1;
	return p->lag < q->lag ? -1 : p->lag > q->lag;
}

/* Each name's samples become one, the median. They are sorted by key. */
static void take_medians(struct samples *samples)
{
	size_t kept = 0;

	for (size_t i = 0, next; i < samples->count; i = next) {
		struct sample *usual = &samples->usual[samples->sample[i].key >> 32];
		struct sample median;

		for (next = i;
		     next < samples->count && samples->sample[next].key == samples->sample[i].key;)
			next++;
		median = samples->sample[i + (next - i) / 2];
		/* for a name without samples: that of the name with the most */
		if (next - i > usual->key)
			*usual = (struct sample){ next - i, median.lag };
		samples->sample[kept++] = median;
	}
	samples->count = kept;
}

static int take_samples(const struct xr_graph *graph, struct samples *samples)
{
	size_t joins = 0;

	for (uint32_t i = 0; i < graph->nodes; i++)
		joins += graph->into[i] != graph->into[i + 1];
	samples->sample = malloc((joins + 1) * sizeof(*samples->sample));
	if (!samples->sample)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nodes; i++) {
		uint32_t by = xr_kept_by(graph, i);
		const struct xr_edge *edge = by == XR_NONE ? NULL : &graph->edge[by];

		if (graph->into[i] == graph->into[i + 1])
			continue;
		samples->sample[samples->count++] = (struct sample){
			edge ? key_of(graph, edge->category, edge->slice)
			     : key_of(graph, graph->category[i], graph->slice[i]),
			edge ? graph->time[i] - graph->time[edge->source] : graph->chain[i],
		};
	}
	qsort(samples->sample, samples->count, sizeof(*samples->sample), compare_samples);
	take_medians(samples);
	return 0;
}

/* How long such an edge usually is; `otherwise` where nothing is known of any. */
static int64_t usual(const struct samples *samples, uint64_t key, int64_t otherwise)
{
	const struct sample *usual = &samples->usual[key >> 32];
	size_t low = 0, high = samples->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples->sample[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < samples->count && samples->sample[low].key == key)
		return samples->sample[low].lag;
	return usual->key ? usual->lag : otherwise;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * The chain to a node that something else kept. A call's own cost is what it takes where nothing
 * keeps it, at most what it took to return here; a thread that waited without a call had nothing
 * else to do.
 */
static void weigh_chain(struct xr_graph *graph, const struct samples *samples, uint32_t node,
			const struct xr_edge *by, int64_t lag)
{
	uint8_t category = graph->category[node];
	int64_t weight;

	if (graph->chain[node] < 0)
		return;
	if (by->category == XR_JOIN || by->category == XR_COLLECTIVE)
		weight = 0;
	else if (category == XR_HOST)
		weight = smaller(usual(samples, key_of(graph, XR_HOST, graph->slice[node]), lag),
				 lag);
	else
		weight = usual(samples, key_of(graph, category, graph->slice[node]), 0);
	graph->chain[node] = smaller(weight, graph->chain[node]);
}

int xr_weigh(struct xr_graph *graph)
{
	struct samples samples = { NULL, 0, { { 0, 0 } } };
	int r;

	/* a call that something could have kept did what there was to do; nothing tells why others
	 * took long */
	for (uint32_t i = 0; i < graph->nodes; i++) {
		bool has_edges = graph->into[i] != graph->into[i + 1];

		if (graph->category[i] == XR_WAITING && has_edges)
			graph->category[i] = XR_HOST;
		else if (graph->category[i] == XR_QUEUE && !has_edges)
			graph->category[i] = XR_IDLE;
	}
	r = take_samples(graph, &samples);
	for (uint32_t i = 0; !r && i < graph->nodes; i++) {
		uint32_t by = xr_kept_by(graph, i);

		for (uint32_t k = graph->into[i]; k < graph->into[i + 1]; k++) {
			struct xr_edge *edge = &graph->edge[k];
			int64_t lag = graph->time[i] - graph->time[edge->source];

			edge->weight = k == by ? lag
					       : smaller(lag, usual(&samples,
								    key_of(graph, edge->category,
									   edge->slice),
								    0));
		}
		if (by != XR_NONE)
			weigh_chain(graph, &samples, i, &graph->edge[by], graph->edge[by].weight);
	}
	free(samples.sample);
	return r;
}
