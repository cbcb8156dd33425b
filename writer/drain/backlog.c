/*
 * The backlog: raw records that were moved out of rings which fill faster than they become text.
 *
 * It is one sparse file in the run's directory, with a region for each ring that needed one. Byte
 * n of a ring's stream lies at n modulo the region's size, so a position says by itself where its
 * record is. Two numbers beside the ring's kept state are all that a successor needs:
 * docs/RING.md.
 */
#include "backlog.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "copy.h"
#include "memory.h"
#include "pauses.h"
#include "run.h"
#include "tracks.h"

#define NAME	 "backlog"
#define PORTION	 8192u	      /* bytes that are read of one track before the others are looked at */
#define PER_RING 64u	      /* bytes read for each ring that a look costs */
#define TURN	 (1u << 20)   /* bytes read of a process before the loop looks around */
#define FREE	 (256u << 10) /* bytes that are given back to the system at once */
#define LOOK	 (4u << 20)   /* bytes moved before memory is looked at again */

struct xs_backlog {
	struct xs_process **processes;
	int fd;		  /* -1: no file yet */
	bool failed;	  /* there can be none */
	uint64_t limit;	  /* bytes in all */
	uint64_t room;	  /* bytes of a region: more than the limit, a power of two */
	uint64_t used;	  /* bytes, of all regions */
	uint64_t allowed; /* bytes more, before memory is looked at again */
	uint64_t read;	  /* bytes, since the last look at the rings */
	uint32_t regions; /* given out */
};

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
	backlog->fd = run->recovering ? xs_shm_open(run->directory, NAME, XS_SHM_OPEN) : -1;
	backlog->limit = run->recovering ? 0 : options->backlog;
	/* twice: no page has a region's oldest and newest bytes */
	for (backlog->room = 2 * XS_RING_MIN; backlog->room / 2 < options->backlog;)
		backlog->room *= 2;
	run->backlog = backlog;
}

void xs_backlog_close(struct xs_run *run)
{
	if (run->backlog && run->backlog->fd >= 0)
		close(run->backlog->fd);
	free(run->backlog);
	run->backlog = NULL;
}

/* ---- a track's region ---- */

static bool open_file(struct xs_run *run)
{
	struct xs_backlog *backlog = run->backlog;
	uint64_t part;

	if (backlog->fd >= 0 || backlog->failed)
		return !backlog->failed;
	part = xs_memory_limit() / 8; /* the application is in the same group */
	if (backlog->limit > part)
		backlog->limit = part;
	backlog->fd = xs_shm_open(run->directory, NAME, XS_SHM_CREATE);
	if (backlog->fd >= 0 && !xs_run_can_spare(run, backlog->fd)) {
		close(backlog->fd);
		backlog->fd = -1;
	}
	backlog->failed = backlog->fd < 0;
	return !backlog->failed;
}

static uint64_t region_of(const struct xs_backlog *backlog, const struct xs_track *track)
{
	return (track->kept->region - 1) * backlog->room;
}

/* From now on the track's records from `from` on are in the backlog, as far as they are moved. */
static bool open_region(struct xs_backlog *backlog, struct xs_track *track, uint64_t from)
{
	void *map;

	if (!track->kept->region)
		track->kept->region = ++backlog->regions;
	map = mmap(NULL, backlog->room, PROT_READ, MAP_SHARED | MAP_NORESERVE, backlog->fd,
		   (off_t)region_of(backlog, track));
	if (map == MAP_FAILED)
		return false;
	track->moved =
		(struct xs_moved){ .data = map, .room = backlog->room, .end = from, .freed = from };
	return true;
}

static void close_region(struct xs_track *track)
{
	(void)munmap((void *)track->moved.data, track->moved.room);
	track->moved.room = 0;
}

/* The piece of a region, which may go on at its beginning, as one or two of the file. */
static uint64_t piece(const struct xs_backlog *backlog, uint64_t from, uint64_t to)
{
	uint64_t left = backlog->room - (from & (backlog->room - 1));

	return to - from < left ? to - from : left;
}

static void give_back(struct xs_backlog *backlog, struct xs_track *track, uint64_t to)
{
	uint64_t page = XS_PAGE - 1, from = track->moved.freed & ~page, length;

	backlog->used -= to - track->moved.freed;
	backlog->allowed += to - track->moved.freed;
	track->moved.freed = to;
	/* what lies in a page that is not done yet goes with that page */
	to = to == track->moved.end ? (to + page) & ~page : to & ~page;
	for (; from != to; from += length) {
		length = piece(backlog, from, to);
		(void)fallocate(backlog->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)(region_of(backlog, track) + (from & (backlog->room - 1))),
				(off_t)length);
	}
}

void xs_backlog_committed(struct xs_track *track)
{
	struct xs_backlog *backlog = track->process->run->backlog;

	track->committed = track->pos;
	if (!track->moved.room)
		return;
	if (xs_track_is_moved(track, track->pos)) {
		if (track->pos - track->moved.freed >= FREE)
			give_back(backlog, track, track->pos);
		return;
	}
	give_back(backlog, track, track->moved.end);
	close_region(track);
}

void xs_backlog_restore(struct xs_track *track)
{
	struct xs_backlog *backlog = track->process->run->backlog;
	uint64_t end = atomic_load(&track->kept->moved);

	track->committed = track->pos;
	if (backlog && track->kept->region > backlog->regions)
		backlog->regions = (uint32_t)track->kept->region;
	if (!track->kept->region || end - track->pos - 1 >= track->kept->room)
		return;
	if (backlog && backlog->fd >= 0 && backlog->room == track->kept->room &&
	    open_region(backlog, track, track->pos)) {
		track->moved.end = end;
		backlog->used += end - track->pos;
		return;
	}
	track->process->corrupt++;
	track->pos = track->committed = end;
}

/* ---- moving ---- */

/*
 * How many bytes more there may be. What the option allows is not taken from who needs memory: at
 * least as much as the backlog has stays free, for rings and for the application.
 */
static uint64_t room_left(struct xs_backlog *backlog)
{
	uint64_t left = backlog->limit > backlog->used ? backlog->limit - backlog->used : 0;
	struct statvfs fs;

	if (backlog->allowed < LOOK / 2) {
		uint64_t free = 0, memory = xs_memory_available();

		if (!fstatvfs(backlog->fd, &fs))
			free = (uint64_t)fs.f_bavail * fs.f_frsize;
		free = free < memory ? free : memory;
		free = free > backlog->used ? (free - backlog->used) / 2 : 0;
		backlog->allowed = free < LOOK ? free : LOOK;
	}
	return left < backlog->allowed ? left : backlog->allowed;
}

/* By a system call: a ring file that its process has cut makes an error here, and no signal. */
static bool copy(const struct xs_backlog *backlog, const struct xs_track *track, uint64_t from,
		 uint64_t to)
{
	uint64_t mask = track->process->ring_size - 1;

	while (from != to) {
		uint64_t length = piece(backlog, from, to);
		ssize_t n;

		if (length > mask + 1 - (from & mask))
			length = mask + 1 - (from & mask);
		n = pwrite(backlog->fd, track->data + (from & mask), length,
			   (off_t)(region_of(backlog, track) + (from & (backlog->room - 1))));
		if (n <= 0)
			return false;
		from += (uint64_t)n;
	}
	return true;
}

/* Pauses are known for a while only: a track must not be too far behind them. */
static bool knows_pauses(const struct xs_track *track)
{
	for (unsigned list = 0; list < XS_PAUSE_LISTS; list++)
		if (xs_pause_count(track->process, list) - track->cuts[list] > XS_PAUSES / 2)
			return false;
	return true;
}

static void relieve(struct xs_backlog *backlog, struct xs_track *track)
{
	uint64_t size = track->process->ring_size, step = size / XS_RING_STEPS;
	uint64_t from = xs_track_tail(track), head = xs_ring_filled(track->ring), to, left;

	if (__builtin_expect(head - from <= size / 2, 1) || head - from > size ||
	    !knows_pauses(track) || !open_file(track->process->run))
		return;
	to = head & ~(step - 1);
	left = room_left(backlog);
	if (to - from > left)
		to = (from + left) & ~(step - 1);
	if ((int64_t)(to - from) <= 0 || (!track->moved.room && !open_region(backlog, track, from)))
		return;
	if (!copy(backlog, track, from, to)) {
		backlog->allowed = 0;
	} else {
		track->moved.end = to;
		backlog->used += to - from;
		backlog->allowed -= to - from;
		/* from here on a successor reads up to there in the backlog */
		track->kept->room = backlog->room;
		atomic_store_explicit(&track->kept->moved, to, memory_order_release);
		xs_ring_release(track->ring, size, to);
	}
	if (track->moved.freed == track->moved.end)
		close_region(track);
}

void xs_backlog_relieve(struct xs_run *run, uint64_t read)
{
	struct xs_backlog *backlog = run->backlog;
	uint64_t rings = 0;

	if (!backlog || !backlog->limit)
		return;
	if (backlog->read > read) {
		backlog->read -= read;
		return;
	}
	for (struct xs_process *p = *backlog->processes; p; p = p->next) {
		/* CUPTI's buffers are read behind the rings, and would wait for them */
		if (p->cuda)
			continue;
		rings += p->track_count;
		for (uint32_t i = 0; i < p->track_count; i++)
			relieve(backlog, p->tracks[i]);
	}
	backlog->read = PORTION > rings * PER_RING ? PORTION : rings * PER_RING;
}

/* ---- reading ---- */

bool xs_process_is_behind(const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->moved.room)
			return true;
	return false;
}

/* The one whose next record is the oldest; NULL: all are read. */
static struct xs_track *oldest(const struct xs_process *process)
{
	struct xs_track *first = NULL;
	uint64_t least = UINT64_MAX;
	struct xs_record record;

	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];
		uint32_t size;

		if (track->pos == track->head)
			continue;
		size = xs_record_at(&record, track, track->pos, track->head, sizeof(record.event));
		/* a spoilt one is read at once, and the reader rejects it */
		if (!first || !size || record.event.tick < least) {
			least = size ? record.event.tick : 0;
			first = track;
		}
	}
	return first;
}

uint64_t xs_process_catch_up(struct xs_process *process, bool all)
{
	struct xs_track *track;
	uint64_t read = 0;

	for (uint32_t i = 0; i < process->track_count; i++)
		xs_track_begin(process->tracks[i]);
	/* what belongs together lies in several rings: they are read at the same time of theirs */
	while ((track = oldest(process)) && (all || read < TURN))
		read += xs_track_read(track, PORTION);
	return read;
}
