/*
 * What each edge costs. The edge that kept a node is as long as it was in the run. The others are
 * as long as such edges usually are where they decide, but never longer than the run leaves room
 * for: so that with nothing changed each node is when it was.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3 /* the first takes the latest of those before a node for what kept it */

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

/* Was it cut (order.c)? */
static bool is_loop(const struct xr_edge *edge)
{
	return edge->source == edge->target;
}

uint32_t xr_kept_by(const struct xr_graph *graph, uint32_t node)
{
	for (uint32_t i = graph->into[node]; i < graph->into[node + 1]; i++)
		if (graph->edge[i].is_kept)
			return i;
	return XR_NONE;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
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
	/* what one function costs tells nothing of another */
	return usual->key && key >> 32 != XR_HOST ? usual->lag : otherwise;
}

/* How long the chain to a node that has edges usually is; `otherwise` where nothing tells. */
static int64_t usual_chain(const struct xr_graph *graph, const struct samples *samples,
			   uint32_t node, int64_t otherwise)
{
	return usual(samples, key_of(graph, graph->category[node], graph->slice[node]), otherwise);
}

/*
 * What kept a node: of those before it the one that lets it be last, if each edge takes what it
 * usually does. Of several the latest, and of those an arrow, for that is why there is one.
 */
static void choose(struct xr_graph *graph, const struct samples *samples, uint32_t node)
{
	int64_t now = graph->time[node], best = -1, latest = -1;
	struct xr_edge *chosen = NULL;

	if (graph->chain[node] >= 0) {
		latest = graph->time[node - 1];
		best = smaller(now, latest + usual_chain(graph, samples, node, 0));
	}
	for (uint32_t i = graph->into[node]; i < graph->into[node + 1]; i++) {
		struct xr_edge *edge = &graph->edge[i];
		int64_t time = graph->time[edge->source], score = time;

		edge->is_kept = false;
		if (is_loop(edge))
			continue;
		if (node < graph->tracks) /* collectives come to pass when their last giver comes */
			score += usual(samples, key_of(graph, edge->category, edge->slice), 0);
		score = smaller(now, score);
		if (score < best || (score == best && time < latest) ||
		    (score == best && time == latest && chosen))
			continue;
		best = score;
		latest = time;
		chosen = edge;
	}
	if (chosen)
		chosen->is_kept = true;
}

static void take_samples(const struct xr_graph *graph, struct samples *samples)
{
	*samples = (struct samples){ .sample = samples->sample };
	for (uint32_t i = 0; i < graph->tracks; i++) {
		uint32_t by = xr_kept_by(graph, i);
		const struct xr_edge *edge = by == XR_NONE ? NULL : &graph->edge[by];

		if (graph->into[i] == graph->into[i + 1] || (!edge && graph->chain[i] < 0))
			continue;
		samples->sample[samples->count++] = (struct sample){
			edge ? key_of(graph, edge->category, edge->slice)
			     : key_of(graph, graph->category[i], graph->slice[i]),
			edge ? graph->time[i] - graph->time[edge->source] : graph->chain[i],
		};
	}
	qsort(samples->sample, samples->count, sizeof(*samples->sample), compare_samples);
	take_medians(samples);
}

/* Chooses what kept each node, by what is usual then; that changes with it. */
static int choose_all(struct xr_graph *graph, struct samples *samples)
{
	size_t joins = 0;

	for (uint32_t i = 0; i < graph->nodes; i++)
		joins += graph->into[i] != graph->into[i + 1];
	samples->sample = malloc((joins + 1) * sizeof(*samples->sample));
	if (!samples->sample)
		return -ENOMEM;
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < graph->nodes; i++)
			if (graph->into[i] != graph->into[i + 1])
				choose(graph, samples, i);
		take_samples(graph, samples);
	}
	return 0;
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
	else if (category != XR_HOST || by->category == XR_MESSAGE)
		weight = usual_chain(graph, samples, node, 0);
	else
		weight = smaller(usual_chain(graph, samples, node, lag), lag);
	graph->chain[node] = smaller(weight, graph->chain[node]);
}

static int64_t weight_of(const struct xr_graph *graph, const struct samples *samples,
			 uint32_t number, bool is_kept)
{
	const struct xr_edge *edge = &graph->edge[number];
	int64_t lag = graph->time[edge->target] - graph->time[edge->source];

	if (is_kept)
		return lag;
	/* a collective has come to pass when its last giver has come, at once */
	return edge->target >= graph->tracks
		       ? 0
		       : smaller(lag,
				 usual(samples, key_of(graph, edge->category, edge->slice), 0));
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
	r = choose_all(graph, &samples);
	for (uint32_t i = 0; !r && i < graph->nodes; i++) {
		uint32_t by = xr_kept_by(graph, i);

		for (uint32_t k = graph->into[i]; k < graph->into[i + 1]; k++)
			graph->edge[k].weight = weight_of(graph, &samples, k, k == by);
		if (by != XR_NONE)
			weigh_chain(graph, &samples, i, &graph->edge[by], graph->edge[by].weight);
	}
	free(samples.sample);
	return r;
}
