/*
 * What no arrow tells: which thread began another one, and waited for its end. A thread begins when
 * the first one of its process was where it then was. Who began a thread or a process waited for
 * its end if the next that it does follows soon after.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>

#define SOON 10 /* a tenth of the time in which the starter did nothing that is known */

/* The end of a track, and what its starter does next. */
struct end {
	uint32_t last, next;
};

static int compare_ends(const void *a, const void *b)
{
	const struct end *p = a, *q = b;

	if (p->next != q->next)
		return p->next < q->next ? -1 : 1;
	return p->last < q->last ? -1 : p->last > q->last;
}

static bool is_thread(const struct xr_graph *graph, uint32_t track)
{
	uint32_t node = graph->first[track];

	if (node == graph->first[track + 1])
		return false;
	return graph->category[node] == XR_HOST || graph->category[node] == XR_WAITING;
}

/* Of each process its first thread, in an array that the caller frees; XR_NONE: it has none. */
static uint32_t *main_threads(const struct xr_graph *graph, uint32_t *ret_processes)
{
	const struct xr_input *input = graph->input;
	uint32_t processes = 0, *threads;

	for (uint32_t i = 0; i < input->tracks; i++)
		if (input->process[i] >= processes)
			processes = input->process[i] + 1;
	*ret_processes = processes;
	threads = malloc((processes + 1ul) * sizeof(*threads));
	for (uint32_t i = 0; threads && i < processes; i++)
		threads[i] = XR_NONE;
	for (uint32_t i = 0; threads && i < input->tracks; i++) {
		uint32_t *thread = &threads[input->process[i]];

		if (is_thread(graph, i) &&
		    (*thread == XR_NONE ||
		     graph->time[graph->first[i]] < graph->time[graph->first[*thread]]))
			*thread = i;
	}
	return threads;
}

/* Where the thread is that began each process that an arrow leads to. */
static void find_parents(const struct xr_graph *graph, uint32_t *parents)
{
	const struct xr_input *input = graph->input;

	for (uint32_t i = 0; i < input->arrows; i++)
		if (input->type[i] == XR_CHILD &&
		    input->process[input->track[input->from[i]]] !=
			    input->process[input->track[input->to[i]]])
			parents[input->process[input->track[input->to[i]]]] =
				input->track[input->from[i]];
}

/* Does a starter that does nothing known until the node wait, soon after what has ended? */
static bool waits_until(const struct xr_graph *graph, uint32_t node, int64_t ended)
{
	uint32_t slice = graph->slice[node];
	int64_t time = graph->time[node];

	if (graph->chain[node] <= 0 || graph->category[node] != XR_HOST)
		return false;
	if (slice != XR_NONE && graph->input->kind[slice] == XR_CALL)
		return false;
	return time - ended <= graph->chain[node] / SOON;
}

/* Those that end before the same node of one starter wait together: the last one decides. */
static int add_joins(struct xr_graph *graph, struct end *ends, uint32_t count)
{
	int r = 0;

	qsort(ends, count, sizeof(*ends), compare_ends);
	for (uint32_t i = 0, next; !r && i < count; i = next) {
		int64_t ended = 0;

		for (next = i; next < count && ends[next].next == ends[i].next; next++)
			if (graph->time[ends[next].last] > ended)
				ended = graph->time[ends[next].last];
		for (uint32_t k = i; !r && k < next && waits_until(graph, ends[i].next, ended); k++)
			r = xr_add_edge(graph, ends[k].last, ends[k].next, XR_NONE, XR_JOIN);
	}
	return r;
}

/* The thread's begin, and its end into *end; `starter` may be its own process's first thread. */
static int add_start(struct xr_graph *graph, uint32_t track, uint32_t starter, bool is_main,
		     struct end *ret_end)
{
	uint32_t first = graph->first[track], low = graph->first[starter],
		 high = graph->first[starter + 1];
	uint32_t after = xr_node_at(graph, low, high, graph->time[first] + 1);
	uint32_t last = graph->first[track + 1] - 1;

	*ret_end = (struct end){ last, xr_node_at(graph, low, high, graph->time[last]) };
	if (ret_end->next == high)
		ret_end->next = XR_NONE;
	return is_main || after == low
		       ? 0
		       : xr_add_edge(graph, after - 1, first, graph->slice[first + 1], XR_START);
}

int xr_add_starts(struct xr_graph *graph)
{
	const struct xr_input *input = graph->input;
	uint32_t processes, count = 0, *threads = main_threads(graph, &processes);
	uint32_t *parents = malloc((processes + 1ul) * sizeof(*parents));
	struct end *ends = malloc((input->tracks + 1) * sizeof(*ends));
	int r = threads && parents && ends ? 0 : -ENOMEM;

	for (uint32_t i = 0; !r && i < processes; i++)
		parents[i] = XR_NONE;
	if (!r)
		find_parents(graph, parents);
	for (uint32_t i = 0; !r && i < input->tracks; i++) {
		uint32_t process = input->process[i];
		bool is_main = is_thread(graph, i) && i == threads[process];
		uint32_t starter = is_main ? parents[process] : threads[process];

		if (!is_thread(graph, i) || starter == XR_NONE)
			continue;
		r = add_start(graph, i, starter, is_main, &ends[count]);
		count += ends[count].next != XR_NONE;
	}
	if (!r)
		r = add_joins(graph, ends, count);
	free(threads);
	free(parents);
	free(ends);
	return r;
}
