/*
 * Counts of threads: how many records each has, and how many are lost; and names that others give
 * them.
 */
#include "threads.h"

#include <stdlib.h>

#include "hash.h"
#include "names.h"
#include "sink.h"

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
	track->omitted = process->thread_count >= MAX_THREADS;
	if (track->omitted) {
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

/* ---- names that others give ---- */

#define NAMED  1024u /* a power of two */
#define PROBES 8u

struct xs_named_thread {
	uint32_t tid, name;
};

/* The thread's place, or one for it (make); of too many the oldest go. */
static struct xs_named_thread *named(const struct xs_process *process, uint32_t tid, bool make)
{
	struct xs_named_thread *at = NULL;

	for (uint32_t n = 0; n < PROBES; n++) {
		at = &process->named_threads[(xs_hash_id(tid) + n) & (NAMED - 1)];
		if (at->tid == tid)
			return at;
		if (make && !at->name)
			break;
	}
	if (!make)
		return NULL;
	at->tid = tid;
	return at;
}

uint32_t xs_thread_given(const struct xs_process *process, uint32_t tid)
{
	const struct xs_named_thread *at = process->named_threads ? named(process, tid, false)
								  : NULL;

	return at ? at->name : 0;
}

void xs_thread_named(struct xs_process *process, const struct xs_event *event, uint32_t size)
{
	const struct xs_thread_named_record *record = (const void *)event;
	size_t length;
	const char *text;

	if (size < sizeof(*record))
		return;
	if (!process->named_threads)
		process->named_threads = calloc(NAMED, sizeof(*process->named_threads));
	if (!process->named_threads)
		return;
	named(process, (uint32_t)record->tid, true)->name = event->name;
	text = xs_text_of(process->run, event->name, &length);
	XS_TELL_SINKS(process, thread, process, (uint32_t)record->tid, text, length);
}

/* The thread is gone: its number may be another's later. */
static void take_given_name(struct xs_process *process, struct xs_thread_stats *thread)
{
	struct xs_named_thread *at = process->named_threads ? named(process, thread->tid, false)
							    : NULL;

	if (!at || !at->name)
		return;
	thread->name = at->name;
	at->name = 0;
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
		take_given_name(process, &process->threads[track->thread]);
		process->threads[track->thread].lost += lost;
		process->threads[track->thread].records += track->records;
	}
	track->lost_base += lost;
	track->records = 0;
}
