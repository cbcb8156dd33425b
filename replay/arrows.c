/* The edges between tracks: what arrows and collectives say. */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>

int xr_add_edge(struct xr_graph *graph, uint32_t source, uint32_t target, uint32_t slice,
		enum xr_category category)
{
	if (graph->edges == graph->edge_room) {
		uint32_t room = graph->edge_room ? graph->edge_room + graph->edge_room / 2 : 4096;
		struct xr_edge *grown = realloc(graph->edge, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		graph->edge = grown;
		graph->edge_room = room;
	}
	graph->edge[graph->edges++] = (struct xr_edge){
		.source = source, .target = target, .slice = slice, .category = (uint8_t)category
	};
	return 0;
}

uint32_t xr_node_at(const struct xr_graph *graph, uint32_t low, uint32_t high, int64_t time)
{
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->time[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Where a call that waited goes on: at its end, or at what it did first after what it waited for
 * had come to pass.
 */
static uint32_t goes_on(const struct xr_graph *graph, uint32_t slice, int64_t time)
{
	uint32_t begin = graph->starts[slice], end = graph->ends[slice];

	if (time <= graph->time[begin] || time > graph->time[end])
		return end;
	return xr_node_at(graph, begin + 1, end, time);
}

static bool is_host(const struct xr_input *input, uint32_t slice)
{
	return !xr_is_device(input->kind[slice]);
}

/* The two ends of an arrow, each a node or XR_NONE. */
static void ends_of(const struct xr_graph *graph, uint32_t arrow, uint32_t *ret_source,
		    uint32_t *ret_target)
{
	const struct xr_input *input = graph->input;
	uint32_t from = input->from[arrow], to = input->to[arrow];
	uint32_t source = graph->leaves[arrow], target = graph->starts[to];

	switch (input->type[arrow]) {
	case XR_TO_DEVICE:
	case XR_CHILD:
		break;
	case XR_TO_HOST:
		source = is_host(input, from) ? XR_NONE : graph->ends[from];
		target = is_host(input, to) ? goes_on(graph, to, graph->time[graph->ends[from]])
					    : XR_NONE;
		break;
	case XR_SENT:
	case XR_TOGETHER:
		source = graph->starts[from];
		target = goes_on(graph, to, graph->time[source]);
		break;
	default: /* from a slice's end, unless its end is too late for that */
		source = source == XR_NONE ? graph->ends[from] : source;
		break;
	}
	*ret_source = source;
	*ret_target = target;
}

static enum xr_category category_of(uint8_t type)
{
	static const uint8_t categories[XR_ARROWS] = {
		[XR_TO_DEVICE] = XR_LAUNCH, [XR_TO_HOST] = XR_WAKE,	   [XR_ORDER] = XR_QUEUE,
		[XR_SENT] = XR_MESSAGE,	    [XR_TOGETHER] = XR_COLLECTIVE, [XR_CHILD] = XR_START,
		[XR_HANDED] = XR_START,
	};

	return categories[type];
}

/* How long calls of each name take in which a message leaves and whose receive began before or
 * after. */
struct sends {
	int64_t *sum;
	uint32_t *count;
};

/* Did the receive begin while the send was in its call? */
static bool begins_within(const struct xr_graph *graph, uint32_t send, uint32_t receive)
{
	int64_t begin = graph->time[graph->starts[receive]];

	return begin > graph->time[graph->starts[send]] && begin < graph->time[graph->ends[send]];
}

static int find_sends(const struct xr_graph *graph, struct sends *sends)
{
	const struct xr_input *input = graph->input;

	sends->sum = calloc(input->names, sizeof(*sends->sum));
	sends->count = calloc(input->names, sizeof(*sends->count));
	if (!sends->sum || !sends->count)
		return -ENOMEM;
	for (uint32_t i = 0; i < input->arrows; i++) {
		uint32_t send = input->from[i], name = input->name[send];

		if (input->type[i] != XR_SENT || begins_within(graph, send, input->to[i]))
			continue;
		sends->sum[name] +=
			graph->time[graph->ends[send]] - graph->time[graph->starts[send]];
		sends->count[name]++;
	}
	return 0;
}

/*
 * A send that went on only after its receive had begun waited for the receiver, unless it would
 * hardly have ended before.
 */
static int add_late_receiver(struct xr_graph *graph, const struct sends *sends, uint32_t send,
			     uint32_t receive)
{
	int64_t begin = graph->time[graph->starts[receive]];
	int64_t waited = begin - graph->time[graph->starts[send]];
	uint32_t name = graph->input->name[send];

	if (!begins_within(graph, send, receive) ||
	    (sends->count[name] && waited <= 2 * (sends->sum[name] / sends->count[name])))
		return 0;
	return xr_add_edge(graph, graph->starts[receive], goes_on(graph, send, begin), send,
			   XR_MESSAGE);
}

static int add_arrow(struct xr_graph *graph, const struct sends *sends, uint32_t arrow)
{
	const struct xr_input *input = graph->input;
	uint32_t from = input->from[arrow], to = input->to[arrow], source, target;
	int r;

	if (input->track[from] == input->track[to]) /* the chain says so already */
		return 0;
	ends_of(graph, arrow, &source, &target);
	if (source == XR_NONE || target == XR_NONE) {
		graph->loose++;
		return 0;
	}
	if (graph->time[source] > graph->time[target]) {
		graph->late++;
		return 0;
	}
	r = xr_add_edge(graph, source, target, to, category_of(input->type[arrow]));
	if (!r && input->type[arrow] == XR_SENT)
		r = add_late_receiver(graph, sends, from, to);
	return r;
}

int xr_add_arrows(struct xr_graph *graph)
{
	struct sends sends = { NULL, NULL };
	int r = find_sends(graph, &sends);

	for (uint32_t i = 0; !r && i < graph->input->arrows; i++)
		r = add_arrow(graph, &sends, i);
	free(sends.sum);
	free(sends.count);
	return r;
}

/*
 * Who gets something in a collective goes on after its last giver has come. Members with both roles
 * stand in both passes.
 */
static int add_getter(struct xr_graph *graph, uint32_t node, uint32_t slice)
{
	uint32_t target = goes_on(graph, slice, graph->time[node]);

	if (graph->time[node] > graph->time[target]) {
		graph->late++;
		return 0;
	}
	return xr_add_edge(graph, node, target, slice, XR_COLLECTIVE);
}

int xr_add_groups(struct xr_graph *graph)
{
	const struct xr_input *input = graph->input;
	int r = 0;

	for (uint64_t i = 0; i < input->members; i++) {
		uint32_t node = graph->tracks + input->group[i];
		int64_t begin = graph->time[graph->starts[input->member[i]]];

		if (input->role[i] & XR_GIVES && begin > graph->time[node])
			graph->time[node] = begin;
	}
	for (uint64_t i = 0; !r && i < input->members; i++) {
		uint32_t node = graph->tracks + input->group[i], slice = input->member[i];

		if (input->role[i] & XR_GIVES)
			r = xr_add_edge(graph, graph->starts[slice], node, slice, XR_COLLECTIVE);
		if (!r && input->role[i] & XR_GETS)
			r = add_getter(graph, node, slice);
	}
	return r;
}
