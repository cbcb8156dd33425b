/*
 * xstrace-replay: the longest chain through a run, and how long the run were if parts of it took
 * more or less. It is a part of the command xstrace-path: what is asked comes on stdin, what is
 * found goes to stdout (docs/PATH.md).
 */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void find_extent(struct xr_graph *graph)
{
	for (uint32_t i = 0; i < graph->tracks; i++) {
		if (!i || graph->time[i] < graph->begin)
			graph->begin = graph->time[i];
		if (graph->time[i] > graph->end)
			graph->end = graph->time[i];
	}
}

static int run(struct xr_graph *graph, struct xr_input *input)
{
	int r = xr_make_nodes(graph);

	/* from here on nodes have the times; of ten million slices these are 160 MB */
	free(input->begin);
	free(input->end);
	input->begin = input->end = NULL;
	if (!r) {
		find_extent(graph);
		r = xr_add_arrows(graph);
	}
	r = r ? r : xr_add_groups(graph);
	r = r ? r : xr_add_starts(graph);
	r = r ? r : xr_sort_edges(graph);
	r = r ? r : xr_put_in_order(graph);
	r = r ? r : xr_weigh(graph);
	return r ? r : xr_answer(graph);
}

int main(void)
{
	struct xr_input input;
	struct xr_graph graph = { .input = &input };
	int r = xr_read(STDIN_FILENO, &input);

	r = r ? r : run(&graph, &input);
	xr_graph_free(&graph);
	xr_input_free(&input);
	if (r)
		fprintf(stderr, "xstrace-replay: %s\n", strerror(-r));
	return r ? 1 : 0;
}
