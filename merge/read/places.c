/*
 * The places of inputs and processes in the output, and numbers that are told apart there.
 */
#include <stdlib.h>

#include "merge.h"

#define FIRST_OWN_PID 3000000000u /* above pids, and above the devices' that xstrace makes */

static int in_order(const void *left, const void *right)
{
	const struct xm_input *a = *(struct xm_input *const *)left,
			      *b = *(struct xm_input *const *)right;
	int hosts = strcmp(a->host, b->host);

	if (hosts)
		return hosts;
	if (a->rank != b->rank)
		return (uint64_t)a->rank < (uint64_t)b->rank ? -1 : 1; /* without a rank: last */
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return strcmp(a->path, b->path);
}

static void give_pid(struct xm_process *process, struct xf_map *taken, uint32_t *next)
{
	uint32_t pid = (uint32_t)process->pid, known = taken->count;

	/* viewers take process 0 for the idle one */
	if (process->is_number && process->pid > 0 && process->pid <= UINT32_MAX &&
	    xf_map_add(taken, &pid, sizeof(pid)) == known) {
		process->out_pid = pid;
		return;
	}
	do
		pid = (*next)++;
	while (xf_map_find(taken, &pid, sizeof(pid)) != XF_NONE);
	(void)xf_map_add(taken, &pid, sizeof(pid));
	process->out_pid = pid;
}

static bool ids_collide(const struct xm_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct xm_input *a = merge->order[i], *b = merge->order[k];

			if (a->has_ids && b->has_ids && a->id_low <= b->id_high &&
			    b->id_low <= a->id_high)
				return true;
		}
	return false;
}

/*
 * Ids of flows: where they collide, each input's range is moved to where no other's is, in the
 * order of the output.
 */
static void give_ids(struct xm_merge *merge)
{
	bool collide = ids_collide(merge);

	merge->next_id = 1;
	for (uint32_t i = 0; i < merge->count; i++) {
		struct xm_input *input = merge->order[i];
		uint64_t first = collide ? merge->next_id : (uint64_t)input->id_low, span;

		if (!input->has_ids)
			continue;
		span = (uint64_t)(input->id_high - input->id_low) + 1;
		/* they must be exact in a double; else they are told apart by a text */
		if (first > 1ull << 53 || span > (1ull << 53) - first) {
			input->has_ids = false;
			continue;
		}
		input->id_base = (int64_t)first;
		if (first + span > merge->next_id)
			merge->next_id = first + span;
	}
}

void xm_arrange(struct xm_merge *merge)
{
	uint32_t next_pid = FIRST_OWN_PID, place = 0;
	int64_t earliest = INT64_MAX;
	struct xf_map taken;

	merge->order = calloc(merge->count, sizeof(*merge->order));
	if (!merge->order)
		return;
	for (uint32_t i = 0; i < merge->count; i++) {
		struct xm_input *input = &merge->inputs[i];

		merge->order[i] = input;
		/* the year 2000 */
		input->has_base = input->base || input->first > 946684800000000000;
		if (input->first <= input->last && input->has_base && input->first < earliest)
			earliest = input->first;
	}
	qsort(merge->order, merge->count, sizeof(*merge->order), in_order);
	xf_map_init(&taken, UINT32_MAX - 1, UINT32_MAX);
	for (uint32_t i = 0; i < merge->count; i++) {
		struct xm_input *input = merge->order[i];

		input->number = i;
		/* times from nowhere begin where the others do */
		if (!input->has_base && input->first <= input->last)
			input->shift = (earliest == INT64_MAX ? 0 : earliest) - input->first;
		for (int devices = 0; devices < 2; devices++)
			for (uint32_t k = 0; k < input->pids.count; k++)
				if (input->processes[k].is_device == devices) {
					input->processes[k].order = place++;
					give_pid(&input->processes[k], &taken, &next_pid);
				}
	}
	xf_map_free(&taken);
	give_ids(merge);
}
