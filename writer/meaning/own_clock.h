/*
 * Times by clocks of the application's: see own_clock.c.
 */
#ifndef XS_OWN_CLOCK_H
#define XS_OWN_CLOCK_H

#include "extras.h"
#include "task_record.h"
#include "track.h"

void xs_own_time_read(struct xs_track *track, const struct xs_own_time_record *record,
		      uint32_t size);
/*
 * The time of a record that begins or marks something: as its tick says, or as its own clock says
 * if that cannot be placed; `task` is told so.
 */
uint64_t xs_own_time_begin(struct xs_track *track, const struct xs_event *event,
			   struct xs_open *task, uint64_t ns);
/* The same of what ends it. */
uint64_t xs_own_time_end(struct xs_track *track, const struct xs_event *event, struct xs_open *task,
			 uint64_t ns);

#endif
