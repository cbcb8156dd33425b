/*
 * The open tasks of a track: what is rare.
 */
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

#include "extras.h"
#include "task_record.h"

#define MAX_DEPTH 65536u

static bool grow(struct xs_track *track)
{
	uint32_t room = track->room ? 2 * track->room : 32;
	struct xs_open *grown = room <= MAX_DEPTH ? realloc(track->open, room * sizeof(*grown))
						  : NULL;

	if (!grown)
		return false;
	track->open = grown;
	track->room = room;
	return true;
}

bool xs_tasks_grow(struct xs_track *track)
{
	if (grow(track))
		return true;
	track->process->omitted[XS_OMIT_TASKS]++;
	track->too_deep++;
	return false;
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

void xs_track_lose_begins(struct xs_track *track, uint32_t count, uint64_t start)
{
	struct xs_open *top = track->depth ? &track->open[track->depth - 1] : NULL;

	if (!count)
		return;
	if (start > track->last_ns)
		track->last_ns = start;
	if (!track->too_deep && top && top->lost) {
		top->lost = count < UINT32_MAX - top->lost ? top->lost + count : UINT32_MAX;
		return;
	}
	if (track->too_deep || (track->depth == track->room && !grow(track))) {
		track->too_deep += count;
		return;
	}
	/* of a row and a name with which no reader of plain tasks passes it over */
	track->open[track->depth++] =
		(struct xs_open){ .start = start,
				  .row = XS_STRING_FULL,
				  .lost = count,
				  .name = { XS_STRING_FULL, XS_SCOPE_UNKNOWN } };
}

uint32_t xs_track_end_lost(struct xs_track *track, uint32_t at, uint32_t count)
{
	struct xs_open *entry = &track->open[at];

	if (count < entry->lost) {
		entry->lost -= count;
		return count;
	}
	count = entry->lost;
	xs_track_take(track, at);
	return count;
}

struct xs_open *xs_track_open_task(struct xs_track *track, uint32_t scope, const struct xs_id *id)
{
	for (uint32_t i = track->depth; i > xs_track_lowest(track); i--) {
		struct xs_open *task = &track->open[i - 1];

		if (xs_id_is_null(id) ? !scope || task->name.scope == scope ||
						task->name.scope == XS_SCOPE_UNKNOWN
				      : task->extra && !memcmp(&task->extra->id, id, sizeof(*id)))
			return task;
	}
	return NULL;
}
