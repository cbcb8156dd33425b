/*
 * The open tasks of a track: what is rare.
 */
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

#include "extras.h"
#include "task_record.h"

#define MAX_DEPTH 65536u

bool xs_tasks_grow(struct xs_track *track)
{
	uint32_t room = track->room ? 2 * track->room : 32;
	struct xs_open *grown = room <= MAX_DEPTH ? realloc(track->open, room * sizeof(*grown))
						  : NULL;

	if (!grown) {
		track->process->omitted[XS_OMIT_TASKS]++;
		track->too_deep++;
		return false;
	}
	track->open = grown;
	track->room = room;
	return true;
}

void xs_track_displace(struct xs_track *track, struct xs_open *task)
{
	if (task && xs_extra_of(track->process, task))
		task->extra->displaced = true;
}

void xs_track_take(struct xs_track *track, uint32_t at)
{
	memmove(&track->open[at], &track->open[at + 1],
		(track->depth - at - 1) * sizeof(track->open[at]));
	track->depth--;
}

struct xs_open *xs_track_open_task(struct xs_track *track, uint32_t scope, const struct xs_id *id)
{
	for (uint32_t i = track->depth; i > xs_track_lowest(track); i--) {
		struct xs_open *task = &track->open[i - 1];

		if (xs_id_is_null(id) ? !scope || task->name.scope == scope
				      : task->extra && !memcmp(&task->extra->id, id, sizeof(*id)))
			return task;
	}
	return NULL;
}
