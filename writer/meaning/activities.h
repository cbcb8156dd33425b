/*
 * What a program that contains the library says of itself: activities, metadata of its trace, its
 * numbers for what its threads do.
 */
#ifndef XS_ACTIVITIES_H
#define XS_ACTIVITIES_H

#include "track.h"

/* XS_ACTIVITY, XS_ABOUT, XS_EXTERNAL. */
void xs_activity_read(struct xs_track *track, const struct xs_event *event, uint32_t size);
/* What the track has of a text goes. */
void xs_about_forget(struct xs_track *track);

#endif
