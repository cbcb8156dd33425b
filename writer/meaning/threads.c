/*
 * Counts of threads: how many records each has, and how many are lost.
 */
#include "threads.h"

#include <stdlib.h>

#define MAX_THREADS 4096u

void xs_track_stats(struct xs_track *track, uint32_t tid, uint32_t name)
{
	struct xs_process *process = track->process;
	struct xs_thread_stats *grown;

	if (process->run->flight && !process->out && track->thread != UINT32_MAX) {
		/*
		 * threads whose records are history no more are nobody's concern: one entry a ring,
		 * however long it runs
		 */
		process->threads[track->thread] =
			(struct xs_thread_stats){ .tid = tid, .name = name };
		return;
	}
	track->thread = UINT32_MAX;
	if (process->thread_count >= MAX_THREADS) {
		process->threads_omitted++;
		return;
	}
	if (process->thread_count == process->thread_room) {
		uint32_t room = process->thread_room ? 2 * process->thread_room : 16;

		grown = realloc(process->threads, room * sizeof(*grown));
		if (!grown)
			return;
		process->threads = grown;
		process->thread_room = room;
	}
	track->thread = process->thread_count++;
	process->threads[track->thread] = (struct xs_thread_stats){ .tid = tid, .name = name };
}

/* The thread is done with this ring, or the process is: its counts. */
void xs_track_close_stats(struct xs_track *track, uint64_t lost)
{
	struct xs_process *process = track->process;

	/* a counter of a hostile ring may go backwards */
	lost = lost > track->lost_base ? lost - track->lost_base : 0;
	process->lost += lost;
	process->events += track->records;
	if (track->thread < process->thread_count) {
		process->threads[track->thread].lost += lost;
		process->threads[track->thread].records += track->records;
	}
	track->lost_base += lost;
	track->records = 0;
}
