#include "mpi_waits.h"

#include <stdlib.h>

#define RECENT 16u

struct xm_recent {
	struct {
		int64_t start, end;
		const struct xm_function *function;
	} calls[RECENT];
	uint32_t next;
};

void xm_waits_add(struct xm_waits *waits, const struct xm_function *function,
		  const struct xm_end *call)
{
	uint32_t index = call->input->index;
	struct xm_recent *recent;

	if (!xf_room_for(&waits->of_input, &waits->room, index, sizeof(*waits->of_input)))
		return;
	recent = &waits->of_input[index];
	recent->calls[recent->next].start = call->start;
	recent->calls[recent->next].end = call->end;
	recent->calls[recent->next].function = function;
	recent->next = (recent->next + 1) % RECENT;
}

void xm_waits_find(const struct xm_waits *waits, struct xm_end *work)
{
	const struct xm_recent *recent = waits->of_input + work->input->index;

	if (work->input->index >= waits->room)
		return;
	for (uint32_t i = 0; i < RECENT; i++)
		if (recent->calls[i].function && recent->calls[i].end == work->end) {
			work->waiter = recent->calls[i].function;
			work->wait_start = recent->calls[i].start;
		}
}
