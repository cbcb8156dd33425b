/*
 * Reading tracks, and what their records mean together: see records.c.
 */
#ifndef XS_RECORDS_H
#define XS_RECORDS_H

#include "track.h"

struct xs_work;

/* Finished device work whose times are known: to all sinks. */
void xs_work_show(struct xs_process *process, struct xs_work *work);
/* How much the ring holds by now: track->head. */
void xs_track_begin(struct xs_track *track);
/* Reads up to there, but not much more than `most` bytes; returns how many. */
uint64_t xs_track_read(struct xs_track *track, uint64_t most);
/* One record, while track->pos is not there yet. */
void xs_track_next(struct xs_track *track);
/* Records in memory of our own, known to be whole, through the dispatch. */
void xs_track_records(struct xs_track *track, const unsigned char *data, uint32_t length);
/* The ring is another thread's from here on: counts of its own. */
void xs_track_stats(struct xs_track *track, uint32_t tid, uint32_t name);
/* The thread is done with the ring, or the process is. lost: the ring's count. */
void xs_track_close_stats(struct xs_track *track, uint64_t lost);
/* The innermost `count` open tasks end there, though nobody ended them. */
void xs_track_close(struct xs_track *track, uint32_t count, uint64_t end);
/* Opens a task; NULL: too deep, or no memory. */
struct xs_open *xs_track_open(struct xs_track *track, uint64_t start, uint32_t name);
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
/* Takes the open task number `at` out of the stack. */
void xs_track_take(struct xs_track *track, uint32_t at);

#endif
