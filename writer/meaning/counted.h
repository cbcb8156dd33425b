/*
 * What processors have counted: of tasks, and of the whole application by time (--cpu-metrics).
 */
#ifndef XS_COUNTED_H
#define XS_COUNTED_H

#include "extras.h"
#include "track.h"

/* Of the application, up to a time. */
struct xs_looked {
	uint64_t ns;
	struct xs_counted counted;
};

void xs_counted_read(struct xs_track *track, const struct xs_cpu_record *record, uint32_t size);
/* The task that begins with this record was counted from there on, if the record before said so. */
void xs_counted_begins(struct xs_track *track, const struct xs_event *event, struct xs_open *task);
/* The same at its end: what it has gets into its arguments. */
void xs_counted_ends(struct xs_track *track, const struct xs_event *event, struct xs_open *task);

#endif
