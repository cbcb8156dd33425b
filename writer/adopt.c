/*
 * The files of a traced process become tracks that can be read; with --recover, from where the killed drain process was.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "writer.h"

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
void xs_track_settle(struct xs_ring *ring)
{
	uint32_t state = atomic_load_explicit(&ring->saved_state, memory_order_relaxed);

	if (state == XS_SAVED_0_NEXT_1)
		atomic_store_explicit(&ring->saved_state, XS_SAVED_1, memory_order_release);
	else if (state == XS_SAVED_1_NEXT_0)
		atomic_store_explicit(&ring->saved_state, XS_SAVED_0, memory_order_release);
}

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
			return; /* for xs_track_read() to see */
		if (event->kind == XS_THREAD) {
			track->pos = pos; /* what comes before is another thread's, and it is not known whose */
			return;
		}
	}
	xs_track_stats(track, track->tid, 0);
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
			xs_track_settle(ring);
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

void xs_process_find_tracks(struct xs_process *process)
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
	process->log_calls = run->options->call_logging && !run->flight;
	process->watch_tasks = process->summary && run->options->ccl_summary;
	if (run->recovering) {
		xs_process_find_tracks(process);
		atomic_fetch_and(&process->file->committed, ~1ull); /* all rings have changed over */
		if (process->file->output[0])
			(void)xs_chrome_open(process); /* to close it, even if nothing more is to be written */
	}
	return process;
}
