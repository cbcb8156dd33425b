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

/*
 * What is put from here on needs nothing that was put before, which a full disk may have cost. Of
 * no task may more be put.
 */
void xs_perfetto_begin_anew(struct xs_perfetto *perfetto);

/* Bytes of whole packets among these, which begin with one; a task's begin goes with its end. */
size_t xs_perfetto_whole(const char *data, size_t length);

/* Plain tasks, in the order of their ends; at most XS_TASKS_AT_A_TIME. */
void xs_perfetto_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count);
/*
 * When a slice of the thread is to be shown to begin, which the lowest `around` open tasks hold.
 * The reader has begins of one time in the order in which they stand in the file, which is that of
 * the ends, and would take the outer one for the inner one. So each begins a ns behind the one
 * around it.
 */
uint64_t xs_perfetto_start(const struct xs_track *track, uint32_t around, uint64_t start,
			   uint64_t end);

#endif
