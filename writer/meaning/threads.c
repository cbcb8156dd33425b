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

/* One more; UINT32_MAX: there is no room. */
static uint32_t add_thread(struct xs_process *process, uint32_t tid, uint32_t name)
{
	struct xs_thread_stats *grown;

	if (process->thread_count >= MAX_THREADS) {
		process->threads_omitted++;
		return UINT32_MAX;
	}
	if (process->thread_count == process->thread_room) {
		uint32_t room = process->thread_room ? 2 * process->thread_room : 16;

		grown = realloc(process->threads, room * sizeof(*grown));
		if (!grown)
			return UINT32_MAX;
		process->threads = grown;
		process->thread_room = room;
	}
	process->threads[process->thread_count] =
		(struct xs_thread_stats){ .tid = tid, .name = name };
	return process->thread_count++;
}

void xs_track_stats(struct xs_track *track, uint32_t tid, uint32_t name)
{
	struct xs_process *process = track->process;

	if (process->run->flight && !process->out && track->thread != UINT32_MAX) {
		/*
		 * threads whose records are history no more are nobody's concern: one entry a ring,
		 * however long it runs
		 */
		process->threads[track->thread] =
			(struct xs_thread_stats){ .tid = tid, .name = name };
		return;
	}
	track->omitted = process->thread_count >= MAX_THREADS;
	track->thread = add_thread(process, tid, name);
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

uint64_t xs_process_events(const struct xs_process *process)
{
	uint64_t events = process->events;

	for (uint32_t i = 0; i < process->track_count; i++)
		events += process->tracks[i]->records;
	return events;
}

/* The thread is done with this ring, or the process is: its counts. */
void xs_track_close_stats(struct xs_track *track, uint64_t lost)
{
	struct xs_process *process = track->process;

	/* a counter of a hostile ring may go backwards */
	lost = lost > track->lost_base ? lost - track->lost_base : 0;
	process->lost += lost;
	process->events += track->records;
	track->past_records += track->records;
	track->past_threads += track->tid != 0;
	if (track->thread < process->thread_count) {
		take_given_name(process, &process->threads[track->thread]);
		process->threads[track->thread].lost += lost;
		process->threads[track->thread].records += track->records;
	}
	track->lost_base += lost;
	track->records = 0;
}

/* ---- records that are given up ---- */

/* A count of the traced process's: what no trace has told; one that goes backwards is nonsense. */
static uint64_t not_told(uint64_t count, uint64_t told)
{
	return count > told ? count - told : 0;
}

static uint64_t given_up(const struct xs_given_up *given)
{
	return not_told(atomic_load_explicit(&given->lost, memory_order_relaxed),
			atomic_load_explicit(&given->told, memory_order_relaxed));
}

uint64_t xs_ring_given_up(const struct xs_ring *ring)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < XS_GIVEN_UP; i++)
		sum += given_up(&ring->given_up[i]);
	return sum;
}

/* Some of its records may be there, too. */
static void lose_of(const struct xs_track *track, uint32_t tid, uint32_t name, uint64_t lost)
{
	struct xs_process *process = track->process;
	uint32_t at = process->thread_count, given = xs_thread_given(process, tid);

	while (at && process->threads[at - 1].tid != tid)
		at--;
	if (!at && track->omitted && track->tid == tid)
		return;
	if (!at)
		at = add_thread(process, tid, given ? given : name) + 1;
	if (at)
		process->threads[at - 1].lost += lost;
}

void xs_track_close_given_up(struct xs_track *track)
{
	struct xs_process *process = track->process;
	struct xs_ring *ring = track->ring;
	uint32_t rest = atomic_load_explicit(&ring->given_up_rest, memory_order_relaxed),
		 rest_told = atomic_load_explicit(&ring->given_up_rest_told, memory_order_relaxed);

	for (uint32_t i = 0; i < XS_GIVEN_UP; i++) {
		struct xs_given_up *given = &ring->given_up[i];
		uint64_t lost = given_up(given);

		if (lost && i != XS_GIVEN_UP_REST)
			lose_of(track, atomic_load_explicit(&given->tid, memory_order_relaxed),
				atomic_load_explicit(&given->name, memory_order_relaxed), lost);
		process->lost += lost;
		if (!process->run->recovering) /* which may have to be done again */
			atomic_fetch_add_explicit(&given->told, lost, memory_order_relaxed);
	}
	process->threads_omitted += not_told(rest, rest_told);
	if (!process->run->recovering)
		atomic_store_explicit(&ring->given_up_rest_told, rest, memory_order_relaxed);
}
