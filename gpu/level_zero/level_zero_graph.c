/*
 * What was counted while a graph ran (--metric-query): a record of all its kernels together.
 */
#include "device_record.h"
#include "level_zero_execute.h"
#include "level_zero_metrics.h"
#include "shm.h"

/* b - a, of clocks that wrap. */
static int64_t ticks_between(uint8_t device, uint64_t a, uint64_t b)
{
	const struct xs_device_pairs *pairs = xs_own_device_pairs(device);
	uint32_t bits = pairs && pairs->kernel_bits < 64 ? pairs->kernel_bits : 64;
	uint32_t unused = bits ? 64 - bits : 0;

	return (int64_t)((b - a) << unused) >> unused;
}

void xs_ze_graph_ran(struct xs_device_record *graph, const struct xs_ze_node *node,
		     const ze_kernel_timestamp_result_t *times, uint32_t id)
{
	uint64_t start = times->global.kernelStart, end = times->global.kernelEnd;
	uint8_t device = node->record.device;

	if (!graph->id) {
		*graph = node->record;
		graph->id = id;
		graph->start = start;
		graph->end = end;
	}
	if (ticks_between(device, graph->start, start) < 0)
		graph->start = start;
	if (ticks_between(device, graph->end, end) > 0)
		graph->end = end;
}

static uint32_t name_of(struct xs_ze_body *body)
{
	char text[24] = "graph ", digits[12], *o = text + 6;
	uint32_t number = body->number, n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*o++ = digits[--n];
	*o = '\0';
	if (!body->name)
		body->name = xs_name(text, 0);
	return body->name;
}

void xs_ze_graph_told(const struct xs_ze_execution *execution, struct xs_device_record *graph)
{
	graph->work = XS_WORK_OTHER;
	graph->event.flags &= (uint8_t)~XS_DEVICE_FLAG_FUNCTION;
	graph->event.name = name_of(execution->body);
	graph->event.tick = graph->submit = execution->submit.tick;
	graph->tid = graph->submitter = execution->submit.tid;
	graph->host_ticks = 0;
	graph->kernel = 0;
	xs_ze_query_told(execution->query, graph);
}
