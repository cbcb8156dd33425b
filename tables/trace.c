#include "trace.h"

#include <stdlib.h>

int xt_trace_init(struct xt_trace *trace, int directory, size_t bytes)
{
	trace->first = INT64_MAX;
	trace->last = INT64_MIN;
	trace->rank = trace->world_size = trace->pid = trace->status = trace->lost = -1;
	trace->said_end = &trace->said;
	xf_map_init(&trace->names.map, XT_NAMES, bytes / 4);
	xf_map_init(&trace->pids, XT_PROCESSES, 16u << 20);
	xf_map_init(&trace->tids, XT_TRACKS, 256u << 20);
	xf_map_init(&trace->waiting_ids, XT_NAMES, bytes / 4);
	xt_rows_init(&trace->rows, directory, bytes);
	return xt_store_init(&trace->store, directory);
}

void xt_trace_free(struct xt_trace *trace)
{
	for (uint32_t i = 0; i < trace->pids.count && i < trace->process_room; i++) {
		free(trace->processes[i].name);
		free(trace->processes[i].labels);
		free(trace->processes[i].host);
	}
	for (uint32_t i = 0; i < trace->tids.count && i < trace->track_room; i++)
		free(trace->tracks[i].name);
	while (trace->said) {
		struct xt_said *said = trace->said;

		trace->said = said->next;
		free(said->key);
		free(said->value);
		free(said);
	}
	xf_map_free(&trace->names.map);
	xf_map_free(&trace->pids);
	xf_map_free(&trace->tids);
	xf_map_free(&trace->waiting_ids);
	free(trace->processes);
	free(trace->tracks);
	free(trace->waiting);
	xt_rows_free(&trace->rows);
	xt_store_free(&trace->store);
}
