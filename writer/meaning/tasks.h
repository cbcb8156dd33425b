/*
 * The open tasks of a track: a stack, whose tasks mostly end in the order that it has.
 */
#ifndef XS_TASKS_H
#define XS_TASKS_H

#include "task_record.h"
#include "track.h"

/*
 * The lowest open task that is looked at for one that is not the innermost. A program may leave any
 * number open in one domain and end those of another, and each end must not cost a walk over all of
 * them.
 */
#define XS_SEARCH_MAX 1024u
static inline uint32_t xs_track_lowest(const struct xs_track *track)
{
	return track->depth > XS_SEARCH_MAX ? track->depth - XS_SEARCH_MAX : 0;
}

/* More room; false: too deep, or no memory. */
bool xs_tasks_grow(struct xs_track *track);

/* Opens a task; NULL: too deep, or no memory. */
static inline struct xs_open *xs_track_open(struct xs_track *track, uint64_t start, uint32_t name)
{
	struct xs_open *task;

	if (__builtin_expect(track->depth == track->room, 0) && !xs_tasks_grow(track))
		return NULL;
	task = &track->open[track->depth++];
	task->start = start;
	task->extra = NULL;
	task->row = track->row;
	task->lost = 0;
	task->name = xs_name_of(track->process, name);
	if (start > track->last_ns)
		track->last_ns = start;
	return task;
}

/*
 * The task, if there is one, began before what the thread did last, which it may therefore cross:
 * a wait is told when it is over.
 */
void xs_track_displace(struct xs_track *track, struct xs_open *task);

/* Does this end belong to a task that found no room? Those begun last end first. */
static inline bool xs_track_ends_unseen(struct xs_track *track)
{
	if (__builtin_expect(!track->too_deep, 1))
		return false;
	track->too_deep--;
	return true;
}

/*
 * Before a begin or end that is paired by its name alone: where the thread has lost records, one
 * may have been the end of any such span that was open, and another the begin of the next. ns: a
 * time behind those records, and not before this one if it is an end.
 */
static inline void xs_track_note_lost(struct xs_track *track, uint64_t ns)
{
	if (__builtin_expect(track->lost_here, 0)) {
		track->lost_here = false;
		track->lost_ns = ns;
	}
}

/* Takes the open task number `at` out of the stack. */
void xs_track_take(struct xs_track *track, uint32_t at);

/*
 * Begins of `count` tasks are lost (XS_LOST_BEGINS). They are one entry of the stack, of which no
 * sink is told. Nobody knows their domains: so whoever looks for a task from the innermost one out
 * looks no further than there, and an end that comes there is one of theirs.
 */
void xs_track_lose_begins(struct xs_track *track, uint32_t count, uint64_t start);
/* As many of the entry number `at` have ended, if there are so many; how many those are. */
uint32_t xs_track_end_lost(struct xs_track *track, uint32_t at, uint32_t count);

/*
 * The thread's innermost open task, of a domain if that is given; or the one with an id. Of the
 * former nothing is known where it may be one whose begin is lost: then it is their entry.
 */
struct xs_open *xs_track_open_task(struct xs_track *track, uint32_t scope, const struct xs_id *id);

#endif
