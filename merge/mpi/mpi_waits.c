#include "mpi_waits.h"

#include <stdlib.h>

#define SETS 32u
#define WAYS 4u

/* The calls that have ended, by when they did. */
struct xm_recent {
	struct {
		int64_t start, end, tid;
		const struct xm_function *function; /* NULL: none yet */
	} calls[SETS][WAYS];
	uint8_t next[SETS];
};

static uint32_t mix(int64_t time)
{
	return (uint32_t)((uint64_t)time * 0x9e3779b97f4a7c15ull >> 32);
}

static struct xm_start *place_of(struct xm_waits *waits, uint32_t input, int64_t tid, int64_t start)
{
	return &waits->starts[(mix(start) ^ mix(tid) ^ input) & (XM_STARTS - 1)];
}

static void add_start(struct xm_waits *waits, const struct xm_end *call)
{
	if (!waits->starts)
		waits->starts = calloc(XM_STARTS, sizeof(*waits->starts));
	if (waits->starts)
		*place_of(waits, call->input->index, call->tid, call->start) =
			(struct xm_start){ call->start, call->tid, call->input };
}

void xm_waits_add(struct xm_waits *waits, const struct xm_function *function,
		  const struct xm_end *call)
{
	uint32_t index = call->input->index, set = mix(call->end) % SETS, way;
	struct xm_recent *recent;

	if (function->role == XM_START || function->role == XM_STARTED)
		add_start(waits, call);
	if (!xf_room_for(&waits->of_input, &waits->room, index, sizeof(*waits->of_input)))
		return;
	recent = &waits->of_input[index];
	way = recent->next[set]++ % WAYS;
	recent->calls[set][way].start = call->start;
	recent->calls[set][way].end = call->end;
	recent->calls[set][way].tid = call->tid;
	recent->calls[set][way].function = function;
}

static bool has_start(struct xm_waits *waits, const struct xm_end *work)
{
	const struct xm_start *start =
		waits->starts ? place_of(waits, work->input->index, work->started_by, work->start)
			      : NULL;

	return start && start->input == work->input && start->tid == work->started_by &&
	       start->start == work->start;
}

/* Is there a call that saw its end? In older traces the work does not say whose it was. */
static bool find_end(const struct xm_waits *waits, struct xm_end *work)
{
	uint32_t set = mix(work->end) % SETS;
	const struct xm_recent *recent = waits->of_input + work->input->index;
	bool found = false;

	for (uint32_t way = 0; work->input->index < waits->room && way < WAYS; way++) {
		const struct xm_function *function = recent->calls[set][way].function;

		if (!function || recent->calls[set][way].end != work->end ||
		    (work->ended_by != work->tid && recent->calls[set][way].tid != work->ended_by))
			continue;
		found = true;
		if (!xm_waits_for_requests(function))
			continue;
		work->waiter = function;
		work->wait_start = recent->calls[set][way].start;
	}
	return found;
}

void xm_waits_find(struct xm_waits *waits, struct xm_end *work)
{
	if (!find_end(waits, work))
		work->ended_by = work->tid;
	if (!has_start(waits, work))
		work->started_by = work->tid;
}
