/* The run once more, with other weights: each node is when the last of those before it lets it be.
 */
#include "graph.h"

#define FAR (INT64_MAX / 4) /* later than this is no time; two of these can be added */

static uint32_t name_of(const struct xr_input *input, uint32_t slice)
{
	return slice == XR_NONE ? XR_OUTSIDE : input->name[slice];
}

static bool is_about(const struct xr_graph *graph, uint32_t rule, uint8_t category, uint32_t slice)
{
	const struct xr_input *input = graph->input;
	uint16_t match = input->match[rule * input->names + name_of(input, slice)];

	if (match >> category & 1)
		return true;
	return (category == XR_HOST || category == XR_WAITING) && slice != XR_NONE &&
	       graph->rules[slice] >> rule & 1;
}

static int64_t scaled(const struct xr_graph *graph, const struct xr_change *change, int64_t weight,
		      uint8_t category, uint32_t slice)
{
	const struct xr_input *input = graph->input;
	double factor = 1, length;

	for (uint64_t rules = change->rules; rules; rules &= rules - 1) {
		uint32_t rule = (uint32_t)__builtin_ctzll(rules);

		if (is_about(graph, rule, category, slice))
			factor *= input->factor[rule];
	}
	if (category == change->half_category && name_of(input, slice) == change->half_name)
		factor /= 2;
	if (factor == 1)
		return weight;
	length = (double)weight * factor + 0.5;
	return length < (double)FAR ? (int64_t)length : FAR;
}

int64_t xr_replay(const struct xr_graph *graph, const struct xr_change *change, int64_t *times)
{
	int64_t end = graph->begin;
	bool is_changed = change->rules || change->half_name != XR_NONE;

	for (uint32_t i = 0; i < graph->nodes; i++) {
		uint32_t node = graph->order[i];
		int64_t time = -1, weight = graph->chain[node];

		if (weight >= 0) {
			if (is_changed && weight)
				weight = scaled(graph, change, weight, graph->category[node],
						graph->slice[node]);
			time = times[node - 1] + weight;
		}
		for (uint32_t k = graph->into[node]; k < graph->into[node + 1]; k++) {
			const struct xr_edge *edge = &graph->edge[k];

			if (edge->source == node) /* cut (order.c) */
				continue;
			weight = edge->weight;
			if (is_changed && weight)
				weight = scaled(graph, change, weight, edge->category, edge->slice);
			if (times[edge->source] + weight > time)
				time = times[edge->source] + weight;
		}
		if (time < 0) /* nothing is known before it */
			time = graph->time[node];
		times[node] = time < FAR ? time : FAR;
		end = times[node] > end ? times[node] : end;
	}
	return end;
}

int64_t xr_slack(const struct xr_graph *graph, int64_t *latest, int64_t *slack)
{
	const struct xr_input *input = graph->input;
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < graph->nodes; i++)
		latest[i] = graph->end;
	for (uint64_t i = 0; i < input->names; i++)
		slack[i] = INT64_MAX;
	for (uint32_t i = graph->nodes; i-- > 0;) {
		uint32_t node = graph->order[i];
		int64_t before = latest[node] - graph->chain[node];

		for (uint32_t k = graph->into[node]; k < graph->into[node + 1]; k++) {
			const struct xr_edge *edge = &graph->edge[k];

			if (edge->source != node &&
			    latest[node] - edge->weight < latest[edge->source])
				latest[edge->source] = latest[node] - edge->weight;
		}
		if (graph->chain[node] < 0)
			continue;
		if (before < latest[node - 1])
			latest[node - 1] = before;
		if (graph->chain[node] > 0 && graph->slice[node] != XR_NONE &&
		    (graph->category[node] == XR_HOST || graph->category[node] == XR_DEVICE)) {
			int64_t *of_name = &slack[input->name[graph->slice[node]]];
			int64_t room = before - graph->time[node - 1];

			*of_name = room;
			least = room < least ? room : least;
		}
	}
	return least;
}
