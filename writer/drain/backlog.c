/*
 * The backlog: raw records that were moved out of rings which fill faster than they become text.
 *
 * They lie in chunks of memory and, when that is used up, of a file on disk (chunks.c). A track
 * maps its chunks one behind the other, at their position in the ring's stream of bytes modulo a
 * power of two: a position means the same as in the ring. docs/RING.md.
 */
#include "backlog.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "chunks.h"
#include "pauses.h"
#include "unread.h"

#define PORTION	  8192u	     /* bytes that are read before the rings are looked at */
#define PER_RING  64u	     /* bytes read for each ring that a look costs */
#define ENOUGH	  (4u << 20) /* bytes that are free in a ring: its records can stay there */
#define BURST	  2000000u   /* ns: a program that has filled a ring since is in the middle of it */
#define CONTEND	  10000000u  /* ns: likewise, for processors */
#define AT_ONCE	  (1u << 20) /* bytes that are moved of one ring before the others are looked at */
#define ROOM_MOST (1ull << 34) /* of addresses for a track: there may be 4,096 */

struct xs_backlog {
	struct xs_process **processes;
	struct xs_chunks chunks;
	bool moves; /* no successor does */
	/*
	 * of addresses for a track, in which no chunk has its oldest and newest bytes: for all
	 * chunks, and for those in memory
	 */
	uint64_t room, room_least;
	uint64_t until;	 /* bytes to be read before the rings are looked at again */
	uint32_t owners; /* numbers given to tracks */
	/* CLOCK_MONOTONIC: when something was moved last, somebody else had to wait for us last */
	uint64_t moved_at, contended_at;
	long switches; /* ru_nivcsw then */
};

static uint64_t room_for(uint64_t bytes)
{
	uint64_t room = 2 * XS_RING_MIN;

	while (room / 2 < bytes)
		room *= 2;
	return room;
}

void xs_backlog_open(struct xs_run *run, struct xs_process **processes)
{
	const struct xs_options *options = run->options;
	struct xs_backlog *backlog;

	if (!options->backlog || options->flight || options->on_full == XS_FULL_OVERWRITE)
		return;
	backlog = calloc(1, sizeof(*backlog));
	if (!backlog)
		return;
	backlog->processes = processes;
	backlog->moves = !run->recovering;
	xs_chunks_init(&backlog->chunks, run, options->backlog, options->backlog_disk);
	backlog->room_least = room_for(options->backlog);
	backlog->room = room_for(options->backlog + options->backlog_disk);
	if (backlog->room > ROOM_MOST)
		backlog->room = ROOM_MOST > backlog->room_least ? ROOM_MOST : backlog->room_least;
	run->backlog = backlog;
}

void xs_backlog_close(struct xs_run *run)
{
	if (run->backlog)
		xs_chunks_close(&run->backlog->chunks);
	free(run->backlog);
	run->backlog = NULL;
}

/* ---- what a track has ---- */

static void *reserve(uint64_t room)
{
	void *map = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* From now on the track's records from `from` on are in the backlog, as far as they are moved. */
static bool begin(struct xs_backlog *backlog, struct xs_track *track, uint64_t from)
{
	uint64_t room = backlog->room;
	void *map = reserve(room);

	if (!map && room > backlog->room_least) { /* ulimit -v */
		room = backlog->room_least;
		map = reserve(room);
	}
	if (!map)
		return false;
	if (!track->kept->owner)
		track->kept->owner = ++backlog->owners;
	track->moved = (struct xs_moved){ .data = map, .room = room, .end = from };
	return true;
}

/* Where the chunk with these bytes is mapped. */
static void *place(const struct xs_track *track, uint64_t position)
{
	return (void *)(track->moved.data + (position & (track->moved.room - 1)));
}

static void drop_chunks(struct xs_backlog *backlog, struct xs_track *track, uint64_t before)
{
	struct xs_chunk_list *list = &track->moved.chunks;
	uint64_t size = backlog->chunks.size;

	while (list->first && (int64_t)(before - list->from - size) >= 0) {
		/*
		 * or it would count as memory of this process, and as a mapping, for as long as the
		 * track has others
		 */
		(void)mmap(place(track, list->from), size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		xs_chunks_drop(&backlog->chunks, list);
	}
}

void xs_backlog_forget(struct xs_track *track)
{
	struct xs_backlog *backlog = track->process->run->backlog;

	if (!track->moved.room)
		return;
	while (track->moved.chunks.first)
		xs_chunks_drop(&backlog->chunks, &track->moved.chunks);
	(void)munmap((void *)track->moved.data, track->moved.room);
	track->moved.room = 0;
}

void xs_backlog_committed(struct xs_track *track)
{
	track->committed = track->pos;
	if (!track->moved.room)
		return;
	if (xs_track_is_moved(track, track->pos))
		drop_chunks(track->process->run->backlog, track, track->pos);
	else
		xs_backlog_forget(track);
}

/*
 * All chunks that a killed drain process had filled for the track, from track->pos to `end`. 0 or
 * -errno.
 */
static int find_chunks(struct xs_backlog *backlog, struct xs_track *track, uint64_t end)
{
	uint64_t size = backlog->chunks.size;
	int error = 0;

	if (!begin(backlog, track, track->pos))
		return -ENOMEM;
	if (end - (track->pos & ~(size - 1)) > track->moved.room)
		return track->moved.room < backlog->room ? -ENOMEM : -EBADMSG;
	track->moved.end = end;
	for (uint64_t at = track->pos & ~(size - 1); !error && (int64_t)(end - at) > 0; at += size)
		error = xs_chunks_find(&backlog->chunks, &track->moved.chunks, track->kept->owner,
				       at, place(track, at));
	return error;
}

/*
 * --recover: whole steps are moved, and no more than there is room for. Of a ring that has moved
 * some, what was not moved behind the saved tail is in the ring still.
 */
static bool is_possible(const struct xs_backlog *backlog, const struct xs_track *track,
			uint64_t end)
{
	if (end & (track->ring_size / XS_RING_STEPS - 1))
		return false;
	if (end > track->pos)
		return end - track->pos <= backlog->room;
	return !track->kept->owner || xs_ring_filled(track->ring) - track->pos <= track->ring_size;
}

/* What was kept of the backlog is not what it was: the ring says how far it was moved. */
static void go_to_ring(struct xs_track *track)
{
	uint64_t tail = atomic_load_explicit(&track->ring->tail, memory_order_relaxed);

	track->process->corrupt++;
	track->process->not_kept = true;
	if (tail > track->pos)
		track->pos = track->committed = tail;
}

void xs_backlog_restore(struct xs_track *track)
{
	struct xs_backlog *backlog = track->process->run->backlog;
	uint64_t end = atomic_load(&track->kept->moved);
	int error;

	track->committed = track->pos;
	if (!backlog)
		return;
	if (track->kept->owner > backlog->owners)
		backlog->owners = track->kept->owner;
	if (track->process->run->recovering && !is_possible(backlog, track, end)) {
		go_to_ring(track);
		return;
	}
	if (end - track->pos - 1 >= backlog->room)
		return;
	error = find_chunks(backlog, track, end);
	if (!error)
		return;
	xs_backlog_forget(track);
	if (xs_unread_for_want(error))
		track->process->no_backlog = error;
	else
		track->process->corrupt++;
	track->pos = track->committed = end;
}

/* ---- moving ---- */

/* Has the chunk addresses of its own? */
static bool fits(const struct xs_backlog *backlog, const struct xs_track *track, uint64_t start)
{
	const struct xs_chunk_list *list = &track->moved.chunks;

	return !list->first || start + backlog->chunks.size - list->from <= track->moved.room;
}

/*
 * Copies what the ring has; returns how far. By system calls: a ring file that its process has cut
 * makes an error, and no signal. *ret_failed: there was room, and it could not be filled.
 */
static uint64_t copy(struct xs_backlog *backlog, struct xs_track *track, uint64_t from, uint64_t to,
		     bool *ret_failed)
{
	struct xs_chunks *chunks = &backlog->chunks;
	struct xs_chunk_list *list = &track->moved.chunks;
	uint64_t size = chunks->size, ring = track->ring_size;

	while (from != to) {
		uint64_t length = size - (from & (size - 1)), left = ring - (from & (ring - 1)),
			 start = from & ~(size - 1);
		ssize_t n;

		if (!xs_chunks_has(chunks, list, from) &&
		    (!fits(backlog, track, start) ||
		     !xs_chunks_add(chunks, list, track->kept->owner, start, place(track, start))))
			break;
		length = length < left ? length : left;
		length = length < to - from ? length : to - from;
		n = xs_chunks_write(chunks, list, from, track->data + (from & (ring - 1)), length);
		*ret_failed = n <= 0;
		if (n <= 0)
			break;
		from += (uint64_t)n;
	}
	return from;
}

/* Pauses are known for a while only: a track must not be too far behind them. */
static bool knows_pauses(const struct xs_track *track)
{
	for (unsigned list = 0; list < XS_PAUSE_LISTS; list++)
		if (xs_pause_count(track->process, list) - track->cuts[list] > XS_PAUSES / 2)
			return false;
	return true;
}

static bool is_due(const struct xs_track *track)
{
	uint64_t size = track->ring_size, free = size / 2 < ENOUGH ? size / 2 : ENOUGH;
	uint64_t used = xs_ring_filled(track->ring) - xs_track_tail(track);

	return __builtin_expect(size - used < free, 0) && knows_pauses(track);
}

/* Returns the bytes moved. */
static uint64_t relieve(struct xs_backlog *backlog, struct xs_track *track)
{
	uint64_t size = track->ring_size, step = size / XS_RING_STEPS;
	uint64_t from = xs_track_tail(track), to = xs_ring_filled(track->ring);
	bool failed = false;

	if (to - from > size)
		return 0;
	if (!track->moved.room &&
	    (!xs_chunks_has_room(&backlog->chunks) || !begin(backlog, track, from)))
		return 0;
	/* others wait, too */
	if (to - from > step + AT_ONCE)
		to = from + step + AT_ONCE;
	to = copy(backlog, track, from, to & ~(step - 1), &failed) & ~(step - 1);
	if ((int64_t)(to - from) <= 0) {
		to = from;
	} else {
		track->moved.end = to;
		/* from here on a successor reads up to there in the backlog */
		atomic_store_explicit(&track->kept->moved, to, memory_order_release);
		xs_ring_release(track->ring, size, to);
	}
	/* one on a disk that is full would keep the track from those in memory */
	while (failed && track->moved.chunks.first && (int64_t)(track->moved.chunks.to - to) >= 0)
		xs_chunks_drop_last(&backlog->chunks, &track->moved.chunks);
	if (track->moved.end == track->committed)
		xs_backlog_forget(track);
	return to - from;
}

/* CUPTI's buffers are read behind the rings, and would wait for them. */
static bool may_move(const struct xs_process *process)
{
	return !process->cuda && !process->over;
}

uint64_t xs_backlog_relieve(struct xs_run *run, uint64_t read)
{
	struct xs_backlog *backlog = run->backlog;
	uint64_t rings = 0, moved = 0;

	if (!backlog || !backlog->moves)
		return 0;
	if (backlog->until > read) {
		backlog->until -= read;
		return 0;
	}
	for (struct xs_process *p = *backlog->processes; p; p = p->next) {
		if (!may_move(p))
			continue;
		rings += p->track_count;
		for (uint32_t i = 0; i < p->track_count; i++)
			if (is_due(p->tracks[i]))
				moved += relieve(backlog, p->tracks[i]);
	}
	backlog->until = PORTION > rings * PER_RING ? PORTION : rings * PER_RING;
	if (moved)
		backlog->moved_at = xs_clock_ns(CLOCK_MONOTONIC);
	return moved;
}

bool xs_backlog_is_due(const struct xs_run *run)
{
	for (const struct xs_process *p = *run->backlog->processes; p; p = p->next)
		for (uint32_t i = 0; i < p->track_count; i++)
			if (may_move(p) && is_due(p->tracks[i]))
				return true;
	return false;
}

bool xs_backlog_defers(const struct xs_run *run)
{
	struct xs_backlog *backlog = run->backlog;
	const struct xs_chunk_store *memory;
	struct rusage usage;
	uint64_t now;

	if (!backlog)
		return false;
	memory = &backlog->chunks.store[XS_CHUNK_MEMORY];
	if (!memory->taken || memory->taken > memory->count / 2)
		return false;
	now = xs_clock_ns(CLOCK_MONOTONIC);
	(void)getrusage(RUSAGE_SELF, &usage);
	if (usage.ru_nivcsw != backlog->switches)
		backlog->contended_at = now;
	backlog->switches = usage.ru_nivcsw;
	return now - backlog->moved_at < BURST && now - backlog->contended_at < CONTEND;
}

uint64_t xs_backlog_left(const struct xs_run *run)
{
	return run->backlog ? xs_chunks_taken(&run->backlog->chunks) : 0;
}

bool xs_process_is_behind(const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->moved.room)
			return true;
	return false;
}
