/* An order in which each node stands behind those before it (Kahn's); and what breaks circles. */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct out {
	uint32_t *first, *edge; /* of nodes: the edges that leave there */
	uint32_t *missing;	/* of nodes: predecessors that are not in order yet */
};

static int find_out(const struct xr_graph *graph, struct out *out)
{
	out->first = calloc(graph->nodes + 2ul, sizeof(*out->first));
	out->edge = malloc((graph->edges + 1ul) * sizeof(*out->edge));
	out->missing = calloc(graph->nodes + 1ul, sizeof(*out->missing));
	if (!out->first || !out->edge || !out->missing)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->edges; i++) {
		out->first[graph->edge[i].source + 2]++;
		out->missing[graph->edge[i].target]++;
	}
	for (uint32_t i = 2; i < graph->nodes + 2; i++)
		out->first[i] += out->first[i - 1];
	for (uint32_t i = 0; i < graph->edges; i++)
		out->edge[out->first[graph->edge[i].source + 1]++] = i;
	for (uint32_t i = 0; i < graph->nodes; i++)
		out->missing[i] += graph->chain[i] >= 0;
	return 0;
}

/* What is left when no node is ready, in the order of time. */
struct left {
	uint32_t *node, count, at;
};

static const int64_t *sorting;

static int compare_nodes(const void *a, const void *b)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (sorting[i] != sorting[j])
		return sorting[i] < sorting[j] ? -1 : 1;
	return i < j ? -1 : i > j;
}

static int find_left(const struct xr_graph *graph, const bool *is_placed, struct left *left)
{
	left->node = malloc((graph->nodes + 1ul) * sizeof(*left->node));
	if (!left->node)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nodes; i++)
		if (!is_placed[i])
			left->node[left->count++] = i;
	sorting = graph->time;
	qsort(left->node, left->count, sizeof(*left->node), compare_nodes);
	return 0;
}

/*
 * A circle is made of moments that are the same to the clock: arrows that contradict each other.
 * The earliest node that is left is in one, or behind one at the same time. Its arrows from nodes
 * that are left too are dropped: they become loops.
 */
static uint32_t cut_circle(struct xr_graph *graph, struct out *out, struct left *left,
			   const bool *is_placed)
{
	uint32_t node = left->node[left->at];

	while (is_placed[node])
		node = left->node[++left->at];
	for (uint32_t i = graph->into[node]; i < graph->into[node + 1]; i++)
		if (!is_placed[graph->edge[i].source]) {
			graph->edge[i].source = node;
			graph->circular++;
		}
	out->missing[node] = 0;
	return node;
}

static bool place(uint32_t *missing)
{
	return *missing && !--*missing;
}

int xr_put_in_order(struct xr_graph *graph)
{
	struct out out = { NULL, NULL, NULL };
	bool *is_placed = calloc(graph->nodes + 1ul, sizeof(*is_placed));
	struct left left = { NULL, 0, 0 };
	uint32_t count = 0, done = 0;
	int r = find_out(graph, &out);

	graph->order = malloc((graph->nodes + 1ul) * sizeof(*graph->order));
	if (!graph->order || !is_placed)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < graph->nodes; i++)
		if (!out.missing[i])
			graph->order[count++] = i;
	while (!r && done < graph->nodes) {
		uint32_t node;

		if (done == count) {
			r = left.node ? 0 : find_left(graph, is_placed, &left);
			if (r)
				break;
			graph->order[count++] = cut_circle(graph, &out, &left, is_placed);
		}
		node = graph->order[done++];
		is_placed[node] = true;
		if (node + 1 < graph->nodes && graph->chain[node + 1] >= 0 &&
		    place(&out.missing[node + 1]))
			graph->order[count++] = node + 1;
		for (uint32_t i = out.first[node]; i < out.first[node + 1]; i++) {
			uint32_t target = graph->edge[out.edge[i]].target;

			if (place(&out.missing[target]))
				graph->order[count++] = target;
		}
	}
	free(out.first);
	free(out.edge);
	free(out.missing);
	free(left.node);
	free(is_placed);
	return r;
}

void xr_graph_free(struct xr_graph *graph)
{
	void *arrays[] = { graph->time,	  graph->chain, graph->slice,  graph->category,
			   graph->order,  graph->first, graph->starts, graph->ends,
			   graph->leaves, graph->rules, graph->edge,   graph->into };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free(arrays[i]);
	*graph = (struct xr_graph){ 0 };
}
