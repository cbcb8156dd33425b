/*
 * The rings of a process's files become tracks; with --recover, from where the killed drain process
 * was.
 */
#include "ring_tracks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backlog.h"
#include "commit.h"
#include "kept.h"
#include "names.h"
#include "sinks_open.h"
#include "tasks.h"
#include "text.h"
#include "threads.h"
#include "title.h"
#include "tracks.h"
#include "unread.h"

static void *private_memory(void *at, uint64_t size)
{
	void *map = mmap(at, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/*
 * Is it the file about this process? One that was just being made is nobody's yet, and becomes so.
 */
static bool is_about(struct xs_kept_file *kept, const struct xs_process *process)
{
	uint64_t magic = atomic_load_explicit(&kept->magic, memory_order_acquire);

	if (magic)
		return magic == XS_MAGIC && kept->pid == process->pid &&
		       kept->serial == process->serial && xs_kept_is_sound(kept);
	if (kept->pid || kept->inode || kept->output[0] || atomic_load(&kept->turn) ||
	    atomic_load(&kept->turn_check))
		return false;
	kept->pid = process->pid;
	kept->serial = process->serial;
	atomic_store_explicit(&kept->magic, XS_MAGIC, memory_order_release);
	return true;
}

/*
 * The file beside a file of rings. Where the run directory has no memory left it is memory of our
 * own: the trace is complete as ever, unless we are killed.
 */
void xs_rings_open_kept(struct xs_process *process, struct xs_mapped *file, uint32_t segment)
{
	const struct xs_run *run = process->run;
	uint64_t size = xs_kept_offset(file->slots);
	char name[XS_NAME_MAX];
	int error = -ENOENT;

	if (file->kept)
		return;
	file->kept_size = size;
	xs_kept_name(name, process->pid, process->serial, segment);
	if (run->recovering || run->cuts)
		error = xs_shm_map_at(run->directory, name, XS_SHM_OPEN, size, &file->kept, NULL);
	if (run->recovering && xs_unread_for_want(error))
		return; /* it is there */
	if (!error && !segment && !is_about(file->kept, process)) {
		munmap(file->kept, size);
		(void)unlinkat(run->directory, name, 0);
		file->kept_spoilt = true;
		error = -ENOENT;
	}
	if (error == -EBADMSG) /* the killed drain process was just making it */
		(void)unlinkat(run->directory, name, 0);
	if (error < 0)
		error = xs_shm_map_at(run->directory, name, XS_SHM_CREATE, size, &file->kept, NULL);
	if (!error && !segment && !xs_shm_present(file->kept, XS_KEPT_HEADER)) {
		(void)unlinkat(run->directory, name, 0);
		munmap(file->kept, size);
		error = -ENOSPC;
	}
	if (error < 0)
		file->kept = private_memory(NULL, size);
	if (file->kept && !segment)
		(void)is_about(file->kept, process);
}

static struct xs_kept_ring *kept_ring(const struct xs_mapped *file, uint32_t slot)
{
	void *page = (char *)file->kept + xs_kept_offset(slot);

	return xs_shm_present(page, XS_PAGE) ? page : private_memory(page, XS_PAGE);
}

/*
 * Whose the records from track->pos on are, up to the next XS_THREAD, as the flight recorder has
 * noted it; NULL: not known.
 */
static const struct xs_thread_since *thread_at(const struct xs_track *track,
					       const struct xs_ring_saved *saved)
{
	const struct xs_thread_since *since = NULL;

	for (uint32_t i = 0; i < saved->depth && i < XS_RING_SAVED; i++)
		if (saved->since[i].pos <= track->pos && saved->since[i].tid)
			since = &saved->since[i];
	return since;
}

/*
 * Where the first XS_THREAD is, from which on it is known whose the records are; track->head: there
 * is none. What comes before is counted as lost.
 */
static uint64_t first_thread(struct xs_track *track, uint64_t head)
{
	const struct xs_event *event;
	uint64_t skipped = 0;
	uint32_t length;

	for (uint64_t pos = track->pos; pos != head; pos += length) {
		event = xs_ring_peek(track->data, track->ring_size, pos, head, &length);
		if (!event)
			break; /* for xs_track_read() to see */
		if (event->kind == XS_THREAD) {
			track->process->lost += skipped;
			return pos;
		}
		skipped += event->kind != XS_PAD;
	}
	return head;
}

/*
 * --recover when it was a flight recorder that died: what it had in memory is gone, but a ring
 * still holds its newest steps, read or not. The one behind the newest may be half overwritten.
 */
static void go_back(struct xs_track *track, const struct xs_ring_saved *saved)
{
	uint64_t size = track->ring_size, step = size / XS_RING_STEPS,
		 head = xs_ring_filled(track->ring), thread;
	/* up to the beginning of the step behind the one that was written last */
	uint64_t back = size - step - ((0 - head) & (step - 1));
	const struct xs_thread_since *since;

	if (head % 16 || head - track->pos > size)
		return; /* no head that can be: xs_track_begin() sees it, too */
	if (back > head)
		back = head;
	if (head - track->pos < back)
		track->pos = head - back;
	since = thread_at(track, saved);
	if (since) {
		track->tid = since->tid;
		xs_track_stats(track, since->tid, since->name);
		return;
	}
	thread = first_thread(track, head);
	track->tid = atomic_load_explicit(&track->ring->tid, memory_order_relaxed);
	if (thread != head)
		track->pos = thread;
	else
		xs_track_stats(track, track->tid, 0);
}

/*
 * Behind a cut: the same thread, whose counts begin anew. What its ring has lost since the cut is
 * this trace's, also what it lost before we looked; the thread may have ended by then.
 */
static void begin_again(struct xs_track *track, const struct xs_ring_saved *saved)
{
	const struct xs_ring *ring = track->ring;
	uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed) +
			atomic_load_explicit(&ring->lost_nested, memory_order_relaxed);
	uint32_t state = atomic_load_explicit(&ring->state, memory_order_relaxed);

	track->records = 0;
	track->lost_base = atomic_load_explicit(&ring->lost_told, memory_order_relaxed);
	/* where there was no memory for what is kept, the ring says whose it is */
	if (!track->tid && track->pos)
		track->tid = atomic_load_explicit(&ring->tid, memory_order_relaxed);
	if (track->tid && (state == XS_RING_LIVE || lost != track->lost_base ||
			   xs_ring_filled(ring) != track->pos))
		xs_track_stats(track, track->tid, saved->name);
}

/*
 * The same trace: of the threads that had the ring before this one, only these counts are known.
 */
static void go_on_counting(struct xs_track *track, const struct xs_ring_saved *saved)
{
	track->past_records = saved->past_records;
	track->past_threads = saved->past_threads;
	track->process->events += saved->past_records;
	track->process->threads_omitted += saved->past_threads;
	if (saved->tid)
		xs_track_stats(track, saved->tid, saved->name);
}

/*
 * Can that be what was kept of the ring? It is the drain process's own, but other processes of the
 * same user could write there.
 */
static bool is_possible(const struct xs_track *track, const struct xs_ring_saved *saved)
{
	const struct xs_process *process = track->process;
	uint64_t latest = xs_process_ns(process, xs_tick(process->run->use_tsc) + XS_SKEW);

	if (saved->depth > XS_RING_SAVED || saved->tail % 16 || saved->records > saved->tail / 16 ||
	    saved->past_records > saved->tail / 16 - saved->records ||
	    saved->past_threads > saved->tail / 16)
		return false;
	for (uint32_t i = 0; i < saved->depth; i++)
		if (process->run->options->flight ? saved->since[i].pos > saved->tail
						  : saved->open[i].ns > latest)
			return false;
	return true;
}

/* The copy that counts; one without anything where that is none, or not what it was. */
static const struct xs_ring_saved *saved_of(struct xs_track *track)
{
	static const struct xs_ring_saved nothing;
	struct xs_kept_ring *kept = track->kept;
	enum xs_kept_copy counts = xs_kept_take_ring(kept, track->process->turn);

	if (counts == XS_KEPT_NEITHER)
		return &nothing;
	if (counts != XS_KEPT_SPOILT && is_possible(track, &kept->saved[counts])) {
		track->next_saved = counts == XS_KEPT_FIRST;
		return &kept->saved[counts];
	}
	memset(kept, 0, sizeof(*kept));
	track->process->corrupt++;
	track->process->not_kept = true;
	return &nothing;
}

/* A thread has taken it, so it says that one did: what was there is gone. */
static bool is_blank(const struct xs_ring *ring)
{
	return atomic_load_explicit(&ring->state, memory_order_relaxed) == XS_RING_FREE &&
	       !atomic_load_explicit(&ring->tid, memory_order_relaxed) && !xs_ring_filled(ring);
}

/*
 * Where the killed drain process was, with its newest commit. A ring of which nothing is kept says
 * itself what was read of it.
 */
static void restore(struct xs_track *track)
{
	struct xs_kept_ring *kept = track->kept;
	uint64_t head = xs_ring_filled(track->ring);
	bool flight = track->process->run->options->flight;
	const struct xs_ring_saved *saved = saved_of(track);

	track->pos = saved->tail;
	if (!saved->turn && !atomic_load(&kept->moved)) {
		track->pos = atomic_load_explicit(&track->ring->tail, memory_order_relaxed);
		track->process->not_kept |= track->pos != 0;
	}
	xs_backlog_restore(track);
	if (!xs_track_is_moved(track, track->pos) && (track->pos > head || track->pos % 16)) {
		track->process->corrupt++;
		track->pos = head & ~15ull;
	} else if (is_blank(track->ring)) {
		track->process->corrupt++;
	}
	track->tid = saved->tid;
	track->row = saved->row;
	track->records = saved->records;
	if (flight)
		go_back(track, saved);
	else if (track->process->run->cuts)
		begin_again(track, saved);
	else
		go_on_counting(track, saved);
	for (uint32_t i = 0; i < saved->depth && i < XS_RING_SAVED && !flight; i++) {
		const struct xs_open_task *open = &saved->open[i];

		if (open->lost)
			xs_track_lose_begins(track, open->lost, open->ns);
		else
			(void)xs_track_open(track, open->ns, open->name);
	}
}

static int add_track(struct xs_process *process, struct xs_ring *ring, uint64_t ring_size,
		     struct xs_kept_ring *kept)
{
	struct xs_track *track;

	if (!kept)
		return -ENOMEM;
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
	track->replay = xs_track_records;
	track->ring = ring;
	track->kept = kept;
	track->data = (const unsigned char *)ring + XS_RING_HEADER;
	track->ring_size = ring_size;
	track->thread = UINT32_MAX;
	track->cut_at = UINT64_MAX;
	if (process->run->recovering || process->run->cuts)
		restore(track);
	else if (is_blank(ring))
		track->process->corrupt++;
	if (!xs_sinks_add_track(track)) {
		xs_sinks_drop_track(track);
		free(track->open);
		free(track);
		return -ENOMEM;
	}
	process->tracks[process->track_count++] = track;
	return 0;
}

/*
 * --recover: of these rings something was read, and nothing is kept about them. The file beside
 * theirs is spoilt or gone, or there was no memory for it.
 */
void xs_rings_tell_not_kept(struct xs_process *process, uint32_t segment)
{
	char name[XS_NAME_MAX];

	xs_kept_name(name, process->pid, process->serial, segment);
	if (process->run->options->flight) /* that keeps nothing */
		return;
	process->run->incomplete = true;
	xs_tell("[WARNING] --recover %s: %s, what the drain process kept of process %d, cannot be "
		"used; %s\n",
		process->run->dir, name, process->pid,
		segment || process->kept->output[0]
			? "tasks that were open are missing in the trace"
			: "what had been written before is missing in the trace that is written "
			  "now; the one that there was ends where it was written");
}

int xs_process_find_in(struct xs_process *process, struct xs_mapped *file, uint32_t segment,
		       uint32_t used)
{
	int error = 0;

	if (used > file->slots)
		used = file->slots;
	if (file->seen >= used)
		return 0;
	xs_rings_open_kept(process, file, segment);
	if (!file->kept)
		return -ENOMEM;
	process->not_kept = file->kept_spoilt;
	for (; file->seen < used && !error; file->seen += !error)
		error = add_track(process,
				  (void *)((char *)file->map +
					   xs_slot_offset(file->seen, file->ring_size)),
				  file->ring_size, kept_ring(file, file->seen));
	if (process->not_kept && process->run->recovering)
		xs_rings_tell_not_kept(process, segment);
	return error;
}
