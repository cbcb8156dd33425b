/*
 * What the rarer records of ITT mean.
 */
#ifndef XS_ITT_H
#define XS_ITT_H

#include "track.h"

/* A record of ITT other than XS_BEGIN and XS_END. */
void xs_itt_read(struct xs_track *track, const struct xs_event *event, uint32_t size);
/* A task that is not plain has ended: tells the sinks, and forgets it. */
void xs_itt_end(struct xs_track *track, struct xs_open *task, uint64_t end, bool displaced,
		bool unfinished);

#endif
