/*
 * Times of not recording, as the run and a process list them: see pauses.c. What ends at one:
 * cuts.h.
 */
#ifndef XS_PAUSES_H
#define XS_PAUSES_H

#include "track.h"

/* How many the list has had. */
uint32_t xs_pause_count(const struct xs_process *process, unsigned list);
/*
 * The pause that ends first, of those of all lists that the track is not past; returns which list
 * has it. Where some overlap, it began when the first of them did. *ret_to UINT64_MAX: there is
 * none, or it has not ended.
 */
unsigned xs_pause_first(struct xs_track *track, uint64_t *ret_from, uint64_t *ret_to);
/* When recording went off for the first time after that tick; UINT64_MAX: it did not. */
uint64_t xs_process_paused_after(const struct xs_process *process, uint64_t tick);
/* Was recording off at that time? Of very many pauses the newest are known. */
bool xs_process_was_paused(const struct xs_process *process, uint64_t ns);

#endif
