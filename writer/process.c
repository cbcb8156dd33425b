/*
 * One traced process, as its rings tell it: adopting its files, reading records, pairing begins with ends, committing.
 *
 * Nothing that a ring holds is believed: a torn or hostile one costs its own records and nothing else. Output is committed in
 * two steps (see commit()), so that a drain process killed at any instruction leaves rings and file such that --recover
 * can go on, with no record twice and none missing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flight.h"
#include "process.h"
#include "report.h"

#define MAX_DEPTH 65536u
#define MAX_THREADS 4096u

/* ---- adopting ---- */

static struct xs_process *give_up(struct xs_process *process, int error)
{
	if (process->first.map)
		munmap(process->first.map, process->first.size);
	if (process->pidfd >= 0)
		close(process->pidfd);
	free(process);
	errno = error;
	return NULL;
}

/* A ring changes over to the state that was prepared. */
static void settle(struct xs_ring *ring)
{
	uint32_t state = atomic_load_explicit(&ring->saved_state, memory_order_relaxed);

	if (state == XS_SAVED_0_NEXT_1)
		atomic_store_explicit(&ring->saved_state, XS_SAVED_1, memory_order_release);
	else if (state == XS_SAVED_1_NEXT_0)
		atomic_store_explicit(&ring->saved_state, XS_SAVED_0, memory_order_release);
}

static void stats_of(struct xs_track *track, uint32_t tid, uint32_t name);

/*
 * --recover when it was a flight recorder that died: what it had in memory is gone, but a ring still holds its newest steps, read or
 * not. The one behind the newest may be half overwritten.
 */
static void go_back(struct xs_track *track)
{
	uint64_t size = track->process->ring_size, step = size / XS_RING_STEPS, head = xs_ring_filled(track->ring);
	uint64_t written = (head + step - 1) & ~(step - 1), from = written > size - step ? written - size + step : 0;
	const struct xs_event *event;
	uint32_t length;

	if (from < track->pos)
		track->pos = from;
	track->tid = atomic_load_explicit(&track->ring->tid, memory_order_relaxed);
	for (uint64_t pos = track->pos; pos != head; pos += length) {
		event = xs_ring_peek(track->data, size, pos, head, &length);
		if (!event)
			return; /* for read_track() to see */
		if (event->kind == XS_THREAD) {
			track->pos = pos; /* what comes before is another thread's, and it is not known whose */
			return;
		}
	}
	stats_of(track, track->tid, 0);
}

static int add_track(struct xs_process *process, struct xs_ring *ring)
{
	struct xs_track *track;

	if (process->track_count == process->track_room) {
		uint32_t room = process->track_room ? 2 * process->track_room : 8;
		struct xs_track **grown = realloc(process->tracks, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		process->tracks = grown;
		process->track_room = room;
	}
	track = calloc(1, sizeof(*track));
	if (!track)
		return -ENOMEM;
	track->process = process;
	track->ring = ring;
	track->data = (const unsigned char *)ring + XS_RING_HEADER;
	track->thread = UINT32_MAX;
	track->cut_at = UINT64_MAX;
	if (process->run->recovering) {
		uint32_t state = atomic_load(&ring->saved_state);
		const struct xs_ring_saved *saved;

		/* the killed drain process was changing over: on it goes if `committed` said so, else back */
		if (atomic_load(&process->file->committed) & 1)
			settle(ring);
		else if (state == XS_SAVED_0_NEXT_1)
			atomic_store(&ring->saved_state, XS_SAVED_0);
		else if (state == XS_SAVED_1_NEXT_0)
			atomic_store(&ring->saved_state, XS_SAVED_1);
		saved = &ring->saved[atomic_load(&ring->saved_state) == XS_SAVED_1];
		track->pos = saved->tail;
		track->tid = saved->tid;
		track->records = saved->records;
		if (process->run->options->flight)
			go_back(track);
		for (uint32_t i = 0; i < saved->depth && i < XS_RING_SAVED; i++) {
			if (!track->open)
				track->open = calloc(XS_RING_SAVED, sizeof(*track->open));
			if (!track->open)
				break;
			track->room = XS_RING_SAVED;
			track->open[i].start = saved->open[i].ns;
			track->open[i].name = *xs_name_of(process, saved->open[i].name);
			track->depth++;
		}
	}
	process->tracks[process->track_count++] = track;
	if (process->chrome)
		xs_chrome_prefix(track);
	return 0;
}

/* Rings of one file that threads took since the last look. */
static void find_in(struct xs_process *process, struct xs_mapped *file, uint32_t slots, const _Atomic uint32_t *used_count)
{
	/* pairs with the release in the collector's fresh() */
	uint32_t used = atomic_load_explicit(used_count, memory_order_acquire);

	for (; file->seen < used && file->seen < slots; file->seen++)
		if (add_track(process, (void *)((char *)file->map + xs_slot_offset(file->seen, process->ring_size))) < 0)
			return;
}

static bool map_segment(struct xs_process *process)
{
	struct xs_mapped *grown = realloc(process->segments, (process->segment_count + 1) * sizeof(*grown));
	const struct xs_segment_file *file;
	struct xs_mapped *segment;
	char name[XS_NAME_MAX];

	if (!grown)
		return false;
	process->segments = grown;
	segment = &grown[process->segment_count];
	memset(segment, 0, sizeof(*segment));
	xs_process_name(name, process->pid, process->serial, process->segment_count + 1);
	if (xs_shm_map(process->run->dir, name, false, 0, &segment->map, &segment->size) < 0)
		return false;
	file = segment->map;
	if (segment->size >= XS_PROCESS_HEADER) {
		segment->slots = file->slots;
		if (segment->slots > 65536 || xs_slot_offset(segment->slots, process->ring_size) > segment->size)
			segment->slots = 0;
	}
	process->segment_count++;
	return true;
}

static void find_tracks(struct xs_process *process)
{
	/* pairs with the release in the collector's make_segment() */
	uint32_t segments = atomic_load_explicit(&process->file->segments, memory_order_acquire);

	find_in(process, &process->first, process->first.slots, &process->file->used);
	if (segments > XS_MAX_SEGMENTS)
		segments = XS_MAX_SEGMENTS;
	while (process->segment_count < segments && map_segment(process))
		;
	for (uint32_t i = 0; i < process->segment_count; i++)
		if (process->segments[i].slots)
			find_in(process, &process->segments[i], process->segments[i].slots,
				&((struct xs_segment_file *)process->segments[i].map)->used);
}

struct xs_process *xs_process_adopt(struct xs_run *run, const char *name)
{
	struct xs_process *process = calloc(1, sizeof(*process));
	const struct xs_process_file *file;
	uint64_t start;
	int error;

	if (!process)
		return NULL;
	process->run = run;
	process->pidfd = -1;
	process->end = XS_END_RUNNING;
	(void)snprintf(process->name, sizeof(process->name), "%s", name);
	error = xs_shm_map(run->dir, name, false, 0, &process->first.map, &process->first.size);
	if (error < 0)
		return give_up(process, error == -EBADMSG ? EAGAIN : -error); /* made, but not yet given its size */
	file = process->file = process->first.map;
	if (process->first.size < XS_PROCESS_HEADER)
		return give_up(process, EBADMSG);
	/* pairs with the release in the collector's make_process() */
	if (atomic_load_explicit(&process->file->magic, memory_order_acquire) != XS_MAGIC)
		return give_up(process, EAGAIN);
	process->pid = file->pid;
	process->serial = file->serial;
	process->first.slots = file->slots;
	process->ring_size = file->ring_size;
	if (process->pid <= 0 || process->ring_size < XS_RING_MIN || process->ring_size > XS_RING_MAX ||
	    process->ring_size & (process->ring_size - 1) || process->first.slots > 65536 ||
	    xs_slot_offset(process->first.slots, process->ring_size) > process->first.size)
		return give_up(process, EBADMSG);
	memcpy(process->comm, file->comm, sizeof(process->comm));
	process->comm[sizeof(process->comm) - 1] = '\0';
	process->watched = process->pid;
	if (file->pid_namespace && file->pid_namespace != xs_process_namespace(0))
		process->watched = xs_process_outer(process->pid, file->pid_namespace);
	process->pidfd = process->watched ? (int)syscall(SYS_pidfd_open, process->watched, 0) : -1;
	if (process->pidfd >= 0 && !xs_run_can_spare(run, process->pidfd)) {
		close(process->pidfd);
		process->pidfd = -1; /* /proc tells as well */
	}
	start = process->watched ? xs_process_start(process->watched) : 0;
	/* clock ticks of 10 ms; a process of this pid that began after the join is another one */
	process->start = start && start * 10000000u <= file->join_boot + 20000000u ? start : UINT64_MAX;
	if (run->options->host_timing || run->options->device_timing || run->options->kernel_submission || run->options->ccl_summary)
		process->summary = xs_summary_open();
	process->watch_tasks = process->summary && run->options->ccl_summary;
	if (run->recovering) {
		find_tracks(process);
		atomic_fetch_and(&process->file->committed, ~1ull); /* all rings have changed over */
		if (process->file->output[0])
			(void)xs_chrome_open(process); /* to close it, even if nothing more is to be written */
	}
	return process;
}

/* ---- time ---- */

static uint64_t ns_of(const struct xs_process *process, uint64_t tick)
{
	return xs_timeline_ns(&process->run->clock, tick);
}

/* ---- records ---- */

static void stats_of(struct xs_track *track, uint32_t tid, uint32_t name)
{
	struct xs_process *process = track->process;
	struct xs_thread_stats *grown;

	if (process->run->flight && !process->chrome && track->thread != UINT32_MAX) {
		/* threads whose records are history no more are nobody's concern: one entry a ring, however long it runs */
		process->threads[track->thread] = (struct xs_thread_stats){ .tid = tid, .name = name };
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
static void close_stats(struct xs_track *track, uint64_t lost)
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

/* An open task that nobody will end. Events are marks then: they have no domain. */
static void close_one(struct xs_track *track, struct xs_open *task, uint64_t end)
{
	struct xs_process *process = track->process;

	if (process->chrome && !task->name.scope && task->name.id != XS_STRING_FULL)
		xs_chrome_instant(process, track->tid, task->name.id, false, task->start, XS_SCOPE_THREAD, task->extra);
	else if (task->extra || task->row)
		xs_itt_end(track, task, end, false, true);
	else if (process->chrome)
		xs_chrome_unfinished(track, &task->name, task->start, end);
	xs_extra_drop(process, task);
}

/* The innermost `count` open tasks, which nobody will end. */
static void close_some(struct xs_track *track, uint32_t count, uint64_t end)
{
	struct xs_process *process = track->process;

	while (track->depth && count--) {
		struct xs_open *task = &track->open[--track->depth];

		close_one(track, task, end > task->start ? end : task->start);
		if (process->chrome && xs_output_full(process->out)) {
			track->dirty = true;
			xs_process_commit(process);
		}
	}
}

/* ---- times of not recording ---- */

enum { PAUSES_OF_RUN, PAUSES_OF_PROCESS, PAUSE_LISTS };

static const struct xs_pauses *pauses_of(const struct xs_track *track, unsigned list)
{
	return list == PAUSES_OF_RUN ? &track->process->run->control->pauses : &track->process->file->pauses;
}

static uint32_t pause_count(const struct xs_track *track, unsigned list)
{
	/* pairs with the release in xs_pauses_begin() */
	return atomic_load_explicit(&pauses_of(track, list)->count, memory_order_acquire);
}

/* The first one of the list that the track is not past; *ret_from UINT64_MAX: there is none. */
static void next_pause(struct xs_track *track, unsigned list, uint64_t *ret_from, uint64_t *ret_to)
{
	const struct xs_pauses *pauses = pauses_of(track, list);
	uint32_t count = pause_count(track, list), at;

	*ret_from = *ret_to = UINT64_MAX;
	if ((int32_t)(count - track->cuts[list]) <= 0)
		return;
	if (count - track->cuts[list] > XS_PAUSES)
		track->cuts[list] = count - XS_PAUSES; /* older ones are forgotten */
	at = track->cuts[list] % XS_PAUSES;
	*ret_to = atomic_load_explicit(&pauses->last[at].to, memory_order_acquire);
	*ret_from = atomic_load_explicit(&pauses->last[at].from, memory_order_relaxed);
}

/* The one that ends first, of both lists; returns which list has it. Where the two overlap, it began when the first of them did. */
static unsigned first_pause(struct xs_track *track, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t from[PAUSE_LISTS], to[PAUSE_LISTS];
	unsigned list;

	next_pause(track, PAUSES_OF_RUN, &from[PAUSES_OF_RUN], &to[PAUSES_OF_RUN]);
	next_pause(track, PAUSES_OF_PROCESS, &from[PAUSES_OF_PROCESS], &to[PAUSES_OF_PROCESS]);
	list = to[PAUSES_OF_RUN] <= to[PAUSES_OF_PROCESS] ? PAUSES_OF_RUN : PAUSES_OF_PROCESS;
	*ret_from = from[0] < from[1] ? from[0] : from[1];
	*ret_to = to[list];
	return list;
}

/* Tasks that are open now ended at `from`, as far as anybody knows; what raced with the pause lies inside them all the same. */
static void close_at_pause(struct xs_track *track, uint64_t from)
{
	uint64_t end = ns_of(track->process, from);

	close_some(track, UINT32_MAX, end > track->last_ns ? end : track->last_ns);
}

/* A record of that time is next: ends what was open at the pauses before it. */
static __attribute__((noinline, cold)) void cut(struct xs_track *track, uint64_t tick)
{
	uint64_t from, to;

	for (;;) {
		unsigned list = first_pause(track, &from, &to);

		track->cut_at = to;
		if (to == UINT64_MAX || to > tick)
			return;
		/* not, in a recovered track, those from after a pause that the killed drain process had seen */
		if (track->depth && track->open[track->depth - 1].start < ns_of(track->process, to))
			close_at_pause(track, from);
		track->cut_to = to;
		track->cuts[list]++;
	}
}

/* When recording went off for the first time after that tick; UINT64_MAX: it did not. */
static uint64_t paused_after(const struct xs_track *track, uint64_t tick)
{
	uint64_t first = UINT64_MAX;

	for (unsigned list = 0; list < PAUSE_LISTS; list++) {
		const struct xs_pauses *pauses = pauses_of(track, list);
		uint32_t count = pause_count(track, list);

		for (uint32_t i = 0; i < count && i < XS_PAUSES; i++) {
			uint64_t from = atomic_load_explicit(&pauses->last[i].from, memory_order_relaxed);

			if (from < first && atomic_load_explicit(&pauses->last[i].to, memory_order_relaxed) > tick)
				first = from;
		}
	}
	return first;
}

/*
 * For a record that is written at its end, of something that began at `tick` and took `duration`: when it is to end in the trace if
 * recording was off in between, so that it stays inside the tasks around it; else UINT64_MAX.
 */
static uint64_t cut_short(struct xs_track *track, uint64_t tick, uint64_t duration)
{
	uint64_t from;

	if (track->cut_at <= tick + duration)
		cut(track, tick + duration);
	if (tick >= track->cut_to)
		return UINT64_MAX;
	from = paused_after(track, tick);
	return from < tick + duration ? from : UINT64_MAX;
}

static void read_thread(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_thread_record *record = (const void *)event;
	uint32_t tid, name = event->name;
	size_t length;
	const char *text = xs_text_of(process->run, name, &length);

	if (size < sizeof(*record))
		return;
	tid = (uint32_t)record->tid;
	if (tid != track->tid || track->thread == UINT32_MAX) {
		close_some(track, UINT32_MAX, ns_of(process, event->tick));
		close_stats(track, record->lost);
		track->tid = tid;
		track->row = 0;
		stats_of(track, tid, 0);
		if (process->chrome)
			xs_chrome_prefix(track);
	}
	if (process->chrome &&
	    (track->thread == UINT32_MAX || process->threads[track->thread].name != name))
		xs_chrome_thread(track, tid, text, length);
	if (track->thread != UINT32_MAX)
		process->threads[track->thread].name = name;
}

static inline struct xs_open *open_task(struct xs_track *track, uint64_t start, uint32_t name)
{
	struct xs_open *task;

	if (__builtin_expect(track->depth == track->room, 0)) {
		uint32_t room = track->room ? 2 * track->room : 32;
		struct xs_open *grown = room <= MAX_DEPTH ? realloc(track->open, room * sizeof(*grown)) : NULL;

		if (!grown) {
			track->process->unmatched++;
			return NULL;
		}
		track->open = grown;
		track->room = room;
	}
	task = &track->open[track->depth++];
	task->start = start;
	task->extra = NULL;
	task->row = track->row;
	task->name = *xs_name_of(track->process, name);
	if (start > track->last_ns)
		track->last_ns = start;
	return task;
}

struct xs_open *xs_track_open(struct xs_track *track, uint64_t start, uint32_t name)
{
	return open_task(track, start, name);
}

void xs_track_take(struct xs_track *track, uint32_t at)
{
	memmove(&track->open[at], &track->open[at + 1], (track->depth - at - 1) * sizeof(track->open[at]));
	track->depth--;
}

static inline void read_end(struct xs_track *track, const struct xs_event *event)
{
	struct xs_process *process = track->process;
	uint64_t end = ns_of(process, event->tick);
	uint32_t at = track->depth;
	struct xs_open *task;

	while (at && track->open[at - 1].name.scope != event->name && track->open[at - 1].name.id != XS_STRING_FULL)
		at--; /* a name that found no room has lost its domain too */
	if (__builtin_expect(!at, 0)) {
		process->unmatched++; /* an end without a begin: the application's, or begun while paused */
		return;
	}
	task = &track->open[at - 1];
	if (__builtin_expect(at != track->depth || task->extra || task->row || end < track->last_ns || process->watch_tasks, 0)) {
		/*
		 * the application ends tasks of two domains in another order than it began them, or at times of its own; or
		 * there is more to do with each
		 */
		struct xs_open copy = *task;

		xs_itt_end(track, &copy, end, at != track->depth || end < track->last_ns, false);
		xs_track_take(track, at - 1);
		if (end > track->last_ns)
			track->last_ns = end;
		return;
	}
	if (process->chrome)
		xs_chrome_task(track, task, end);
	track->depth--;
	track->last_ns = end;
}

static void read_call(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_call_record *call = (const void *)event;
	uint64_t start, end, off;

	if (size < sizeof(*call))
		return;
	start = ns_of(process, event->tick);
	end = ns_of(process, event->tick + call->duration);
	if (end < start)
		end = start;
	off = cut_short(track, event->tick, call->duration);
	if (off != UINT64_MAX) {
		off = ns_of(process, off);
		end = off > start ? off : start;
	}
	if (process->chrome && off != UINT64_MAX)
		xs_chrome_unfinished(track, xs_name_of(process, xs_function_id(event->source, event->name)), start, end);
	else if (process->chrome)
		xs_chrome_call(track, call, start, end);
	if (process->summary)
		xs_summary_call(process->summary, call, end - start);
	track->last_ns = end;
}

static bool lost_something(const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		if (atomic_load_explicit(&process->tracks[i]->ring->lost, memory_order_relaxed))
			return true;
	return false;
}

static void read_device(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_device_record *record = (const void *)event;
	struct xs_work work = { .record = record };

	if (size < XS_DEVICE_RECORD_SHORT || (record->work == XS_WORK_KERNEL && size < sizeof(*record) &&
					      !(event->flags & XS_FLAG_FUNCTION)))
		return;
	if (size >= sizeof(*record))
		work.shape = record->global;
	work.host_start = ns_of(process, event->tick);
	work.host_end = ns_of(process, event->tick + record->host_ticks);
	if (!xs_device_times(process, &work))
		return;
	work.linked = !lost_something(process);
	if (process->chrome)
		xs_chrome_device(process, &work);
	if (process->summary)
		xs_summary_device(process, &work);
	if (process->run->options->device_timeline)
		xs_timeline_device(process, &work);
	if (work.end > process->last_ns)
		process->last_ns = work.end;
}

/* The first event of a process that is to be shown makes its file. */
static void open_chrome(struct xs_track *track)
{
	struct xs_process *process = track->process;
	size_t length;
	const char *name;

	if (xs_chrome_open(process) < 0 || track->thread == UINT32_MAX)
		return;
	name = xs_text_of(process->run, process->threads[track->thread].name, &length);
	xs_chrome_thread(track, track->tid, name, length);
}

static void read_record(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;

	switch (event->kind) {
	case XS_CALL:
		read_call(track, event, size);
		break;
	case XS_DEVICE:
		read_device(track, event, size);
		break;
	case XS_KERNEL:
		if (process->summary && size >= sizeof(struct xs_kernel_record))
			xs_summary_kernel(process->summary, (const void *)event);
		break;
	case XS_THREAD:
		read_thread(track, event, size);
		return;
	case XS_LOST_ENDS:
		close_some(track, event->name, track->last_ns);
		return;
	case XS_PAD:
		return;
	default: /* what we do not know is skipped */
		xs_itt_read(track, event, size);
		break;
	}
	track->records++;
}

static inline void dispatch(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	if (__builtin_expect(event->tick >= track->cut_at, 0))
		cut(track, event->tick);
	if (event->kind == XS_BEGIN) {
		(void)open_task(track, ns_of(track->process, event->tick), event->name);
		track->records++;
	} else if (event->kind == XS_END) {
		read_end(track, event);
		track->records++;
	} else {
		read_record(track, event, size);
	}
}

void xs_track_records(struct xs_track *track, const unsigned char *data, uint32_t length)
{
	struct xs_process *process = track->process;
	uint32_t size;

	for (const unsigned char *end = data + length; data != end; data += size) {
		const struct xs_event *event = (const void *)data;

		size = event->words * 8u;
		dispatch(track, event, size);
		if (__builtin_expect(process->chrome && xs_output_full(process->out), 0))
			xs_process_commit(process);
	}
}

static uint64_t read_track(struct xs_track *track)
{
	struct xs_process *process = track->process;
	uint64_t head = xs_ring_filled(track->ring), first = track->pos;
	bool wanted = xs_want_chrome(process->run->options);
	uint32_t size;

	if (head - track->pos > process->ring_size) {
		/* overwritten (or hostile): the intact records begin at a step that the producer told */
		uint64_t intact = atomic_load_explicit(&track->ring->tail_lost, memory_order_acquire);

		if (intact > head || head - intact > process->ring_size)
			intact = head;
		first = track->pos = intact;
		while (track->depth)
			xs_extra_drop(process, &track->open[--track->depth]);
		track->tid = atomic_load_explicit(&track->ring->tail_tid, memory_order_relaxed);
		stats_of(track, track->tid, 0);
		if (process->chrome)
			xs_chrome_prefix(track);
	}
	/* after head: whoever wrote a record after a pause had seen the pause's end */
	if (pause_count(track, PAUSES_OF_RUN) != track->cuts[PAUSES_OF_RUN] ||
	    pause_count(track, PAUSES_OF_PROCESS) != track->cuts[PAUSES_OF_PROCESS])
		cut(track, 0);
	if (process->run->flight)
		xs_flight_keep(track, head);
	while (track->pos != head) {
		const struct xs_event *event = xs_ring_peek(track->data, process->ring_size, track->pos, head, &size);

		if (!event) {
			process->corrupt++;
			track->pos = head;
			break;
		}
		if (__builtin_expect(wanted && !process->chrome && event->kind != XS_PAD && event->kind != XS_THREAD, 0)) {
			open_chrome(track);
			wanted = false;
		}
		dispatch(track, event, size);
		track->pos += size;
		if (__builtin_expect(process->chrome && xs_output_full(process->out), 0)) {
			track->dirty = true;
			xs_process_commit(process);
		}
	}
	track->dirty |= track->pos != first;
	/* a small ring is full before the output's buffer is */
	if (track->pos - atomic_load_explicit(&track->ring->tail, memory_order_relaxed) >= process->ring_size / 4)
		xs_process_commit(process);
	return track->pos - first;
}

uint64_t xs_process_read(struct xs_process *process, bool all)
{
	uint64_t read = 0;

	find_tracks(process);
	xs_device_clocks_update(process);
	/* overwrite: the newest records are wanted, so nothing is read before the end */
	if (process->run->options->on_full == XS_FULL_OVERWRITE && !all)
		return 0;
	for (uint32_t i = 0; i < process->track_count; i++)
		read += read_track(process->tracks[i]);
	if (process->run->flight)
		(void)xs_flight_expire(process);
	return read;
}

/* ---- committing ---- */

/* One line a run: a full disk is full for all processes. */
void xs_tell_write_error(struct xs_run *run, int error)
{
	if (!run->disk_error_told)
		fprintf(stderr, "xstrace: cannot write the trace in %s: %s; the application goes on, what follows is lost\n",
			run->options->output_dir[0] ? run->options->output_dir : "the current directory",
			strerror(-error));
	run->disk_error_told = true;
}

static void save(struct xs_track *track)
{
	struct xs_ring *ring = track->ring;
	uint32_t state = atomic_load_explicit(&ring->saved_state, memory_order_relaxed);
	struct xs_ring_saved *saved = &ring->saved[state == XS_SAVED_0];
	uint32_t depth = track->depth < XS_RING_SAVED ? track->depth : XS_RING_SAVED;

	if (track->process->run->flight)
		depth = 0; /* those of the history's beginning, not of this moment */

	saved->tail = track->pos;
	saved->records = track->records;
	saved->tid = track->tid;
	saved->depth = depth;
	for (uint32_t i = 0; i < depth; i++) {
		saved->open[i].ns = track->open[i].start;
		saved->open[i].name = track->open[i].name.id;
	}
	atomic_store_explicit(&ring->saved_state, state == XS_SAVED_0 ? XS_SAVED_0_NEXT_1 : XS_SAVED_1_NEXT_0,
			      memory_order_release);
}

/*
 * The text of the records up to the tracks' positions goes to the file, then their room goes back to the producers.
 * In between: (1) each changed ring's new state is prepared beside the old one, (2) `committed` is set to the file's new length,
 * marked prepared: from here on the new state counts, (3) the rings change over, each by one store, (4) the mark goes.
 */
void xs_process_commit(struct xs_process *process)
{
	struct xs_process_file *file = process->file;
	uint64_t offset = 0;
	bool dirty = false;

	if (process->run->flight && process->chrome) { /* a dump: nobody will go on with it */
		int error = xs_output_flush(process->out);

		if (error)
			xs_tell_write_error(process->run, error);
		return;
	}
	for (uint32_t i = 0; i < process->track_count; i++)
		dirty |= process->tracks[i]->dirty;
	if (!dirty)
		return;
	xs_reports_flush(process);
	if (process->chrome) {
		struct xs_output *out = process->out;
		int error = xs_output_flush(out);

		if (error)
			xs_tell_write_error(process->run, error);
		if (out->error)
			process->lost++; /* at least one record; the exact number is not known when a piece is cut */
		offset = out->offset;
	}
	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->dirty)
			save(process->tracks[i]);
	atomic_store_explicit(&file->committed, offset << 1 | 1, memory_order_release);
	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->dirty)
			settle(process->tracks[i]->ring);
	atomic_store_explicit(&file->committed, offset << 1, memory_order_release);
	for (uint32_t i = 0; i < process->track_count; i++) {
		if (process->tracks[i]->dirty)
			xs_ring_release(process->tracks[i]->ring, process->tracks[i]->pos);
		process->tracks[i]->dirty = false;
	}
}

bool xs_process_urgent(const struct xs_process *process)
{
	if (process->run->options->on_full == XS_FULL_OVERWRITE)
		return false;
	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_track *track = process->tracks[i];

		if (xs_ring_filled(track->ring) - track->pos >= process->ring_size / XS_RING_STEPS ||
		    atomic_load_explicit(&track->ring->waiting, memory_order_relaxed))
			return true;
	}
	return false;
}

/* ---- the end ---- */

static void finish_track(struct xs_track *track, uint64_t end)
{
	struct xs_process *process = track->process;
	uint32_t call = atomic_load_explicit(&track->ring->call, memory_order_relaxed);
	uint64_t call_tick = atomic_load_explicit(&track->ring->call_tick, memory_order_relaxed);
	uint64_t start = ns_of(process, call_tick), call_end = end, off, still;

	if (atomic_load_explicit(&track->ring->state, memory_order_relaxed) != XS_RING_LIVE)
		call = 0;
	/* a dump: that call began when the history had been read already */
	if (process->run->flight && start >= xs_flight_dump_of(process->run)->to)
		call = 0;
	close_stats(track, atomic_load_explicit(&track->ring->lost, memory_order_relaxed) +
				   atomic_load_explicit(&track->ring->lost_nested, memory_order_relaxed));
	if (call && track->thread < process->thread_count)
		process->threads[track->thread].call = call;
	off = paused_after(track, call_tick);
	if (off != UINT64_MAX)
		call_end = ns_of(process, off);
	if (call && process->chrome)
		xs_chrome_unfinished(track,
				     xs_name_of(process, xs_function_id((uint8_t)(call >> 24), (call & 0xffffff) - 1)),
				     start, call_end > start ? call_end : start);
	cut(track, UINT64_MAX);
	(void)first_pause(track, &off, &still);
	if (off != UINT64_MAX)
		close_at_pause(track, off);
	close_some(track, UINT32_MAX, end);
	if (process->chrome && xs_output_full(process->out))
		xs_process_commit(process);
}

static void remove_files(struct xs_process *process)
{
	char path[PATH_MAX + XS_NAME_MAX];

	for (uint32_t i = 0; i <= process->segment_count; i++) {
		char suffix[16] = "";

		if (i)
			(void)snprintf(suffix, sizeof(suffix), ".s%u", i);
		(void)snprintf(path, sizeof(path), "%s/%s%s", process->run->dir, process->name, suffix);
		(void)unlink(path);
	}
}

/* What is open, and what was lost. */
static void finish_tracks(struct xs_process *process)
{
	struct xs_run *run = process->run;
	uint64_t now = run->flight ? xs_flight_dump_of(run)->to : ns_of(process, xs_tick(run->use_tsc)), lost;

	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->last_ns > process->last_ns)
			process->last_ns = process->tracks[i]->last_ns;
	if (run->recovering || now < process->last_ns)
		now = process->last_ns;
	for (uint32_t i = 0; i < process->track_count; i++)
		finish_track(process->tracks[i], now);
	xs_itt_finish(process, now);
	lost = process->lost += atomic_load(&process->file->lost_no_ring);
	process->host_ns = now - ns_of(process, process->file->join_tick);
	xs_process_commit(process);
	if (lost)
		fprintf(stderr,
			"[WARNING] %llu events of process %d (%s) are lost; see --ring-size and --on-full, and otherData "
			"in the trace for which threads\n",
			(unsigned long long)lost, process->pid, process->comm);
}

void xs_process_finish(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_run *run = process->run;
	bool shown;

	finish_tracks(process);
	shown = process->chrome;
	if (process->chrome)
		xs_chrome_close(process, end, status);
	if (process->summary)
		shown |= xs_summary_close(process);
	shown |= xs_reports_close(process);
	run->wrote_something |= shown;
	/* a script starts hundreds of programs that have nothing to show: only the application's silence is news */
	if (!shown && (run->options->verbose ||
		       (process->pid == run->control->app_pid && end != XS_END_EXEC && !run->wrote_something)))
		fprintf(stderr, "[INFO] No event of interest is logged for process %d (%s)\n", process->pid,
			process->comm);
	remove_files(process);
	xs_process_free(process);
}

/* ---- the flight recorder ---- */

static void unmap(struct xs_process *process)
{
	for (uint32_t i = 0; i < process->segment_count; i++)
		munmap(process->segments[i].map, process->segments[i].size);
	process->segment_count = 0;
	if (process->first.map)
		munmap(process->first.map, process->first.size);
	process->first.map = NULL;
}

int xs_process_detach(struct xs_process *process)
{
	size_t file_size = (sizeof(*process->file) + 63) / 64 * 64;
	struct xs_process_file *file = aligned_alloc(64, file_size + process->track_count * sizeof(struct xs_ring));
	struct xs_ring *rings;

	if (!file)
		return -ENOMEM;
	memcpy(file, process->file, sizeof(*file));
	process->copy = process->file = file;
	rings = (void *)((char *)file + file_size);
	for (uint32_t i = 0; i < process->track_count; i++) {
		memcpy(&rings[i], process->tracks[i]->ring, sizeof(*rings));
		process->tracks[i]->ring = &rings[i];
		process->tracks[i]->data = NULL;
	}
	unmap(process);
	return 0;
}

/* What is open counts too: a program that hangs records nothing new. */
static bool track_has_history(const struct xs_track *track)
{
	return track->history.oldest || track->depth ||
	       (atomic_load_explicit(&track->ring->state, memory_order_relaxed) == XS_RING_LIVE &&
		atomic_load_explicit(&track->ring->call, memory_order_relaxed));
}

static bool has_history(const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		if (track_has_history(process->tracks[i]))
			return true;
	return false;
}

bool xs_process_retire(struct xs_process *process, enum xs_end end, int status)
{
	process->end = end;
	process->status = status;
	process->end_tick = xs_tick(process->run->use_tsc);
	remove_files(process);
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->pidfd = -1;
	return has_history(process) && !xs_process_detach(process);
}

/* Counts begin anew: those of the history alone. Lost records are those of the whole run. */
static void restart_stats(struct xs_process *process)
{
	struct xs_thread_stats *old = process->threads;

	process->threads = NULL;
	process->thread_count = process->thread_room = 0;
	process->events = process->unmatched = 0;
	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];
		uint32_t name = track->thread != UINT32_MAX ? old[track->thread].name : 0;
		bool known = track->thread != UINT32_MAX;

		track->records = 0;
		track->thread = UINT32_MAX;
		if (known && track_has_history(track))
			stats_of(track, track->tid, name);
	}
	free(old);
}

bool xs_process_dump(struct xs_process *process)
{
	if (!has_history(process))
		return false;
	xs_flight_rewind(process);
	restart_stats(process);
	if (xs_chrome_open(process) < 0)
		return false;
	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_track *track = process->tracks[i];
		size_t length;
		const char *name;

		if (track->thread == UINT32_MAX)
			continue;
		name = xs_text_of(process->run, process->threads[track->thread].name, &length);
		xs_chrome_thread(process->tracks[i], track->tid, name, length);
		if (xs_output_full(process->out))
			xs_process_commit(process);
	}
	xs_flight_replay(process);
	finish_tracks(process);
	xs_chrome_close(process, process->end, process->status);
	return true;
}

/* A history that nobody asks for any more. */
static void forget_open(struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];

		xs_flight_forget(track);
		while (track->depth)
			xs_extra_drop(process, &track->open[--track->depth]);
	}
	xs_itt_finish(process, 0);
}

void xs_process_free(struct xs_process *process)
{
	if (process->run->flight)
		forget_open(process);
	for (uint32_t i = 0; i < process->track_count; i++) {
		xs_lanes_fini(&process->tracks[i]->crossing);
		free(process->tracks[i]->open);
		free(process->tracks[i]);
	}
	unmap(process);
	for (uint32_t i = 0; i < process->names.size; i++)
		free(process->names.table[i].json);
	free(process->names.table);
	free(process->segments);
	free(process->tracks);
	free(process->threads);
	free(process->copy);
	xs_device_clocks_fini(process);
	if (process->pidfd >= 0)
		close(process->pidfd);
	free(process);
}
