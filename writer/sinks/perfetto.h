/*
 * --format perfetto: the trace as Perfetto's protobuf. Events are put together as Chrome's JSON,
 * and become packets where they are finished; plain tasks, which are most of what there is, are
 * packets from the beginning.
 *
 * A slice is a begin and an end, told when it has ended. The reader sorts packets by time. Each
 * track is a sequence, and the tasks within tasks are further ones, by how many they lie in: their
 * packets have the time since the packet before, and their texts are told once. What begins before
 * the packet before all the same (a call that holds tasks) has its whole time.
 */
#ifndef XS_PERFETTO_H
#define XS_PERFETTO_H

#include "chrome.h"

#define XS_PERFETTO_THREADS 256u /* that the end of a trace tells of: it is one event */
#define XS_PERFETTO_ROOM    (XS_OUTPUT_SLACK + 64u)

/* NULL: no memory. */
struct xs_perfetto *xs_perfetto_create(const struct xs_process *process);
void xs_perfetto_free(struct xs_perfetto *perfetto);

/* A plain task. */
void xs_perfetto_task(struct xs_track *track, const struct xs_task *task);

#endif
