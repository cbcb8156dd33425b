/*
 * One ring of a traced process: a sequence of threads' records.
 */
#ifndef XS_TRACK_H
#define XS_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "names.h"
#include "record.h"
#include "ring.h"
#include "traced.h"

/* Lists of pauses (pauses.h). */
enum xs_pause_list { XS_PAUSES_OF_RUN, XS_PAUSES_OF_PROCESS, XS_PAUSES_OF_HOST, XS_PAUSE_LISTS };

struct xs_open {
	uint64_t start;
	struct xs_extra *extra; /* NULL: nothing */
	uint32_t row;		/* string id of the track it is shown on; 0: its thread's */
	uint32_t lost;		/* not 0: no task, but so many lost begins (tasks.h) */
	struct xs_name name;
};

/* The flight recorder's memory of one ring (flight.c). */
struct xs_history {
	struct xs_chunk *oldest, *newest;
	struct xs_track *next, **link; /* of all tracks that have chunks */
	struct xs_chunk *at;	       /* a dump has come so far */
	uint32_t offset;
};

/*
 * Records that were moved out of the ring before they were read (drain/backlog.c): those that lie
 * before `end`, at their position modulo `room`.
 */
struct xs_moved {
	const unsigned char *data;
	uint64_t room; /* a power of two; 0: there are none */
	uint64_t end;  /* the ring goes on from there */
	struct xs_chunk_list {
		uint32_t first, last; /* numbers + 1; 0: it is empty */
		uint64_t from, to;    /* positions where these two begin */
	} chunks;
};

/* One ring: a sequence of threads' records. */
struct xs_track {
	struct xs_process *process;
	struct xs_ring *ring;
	struct xs_kept_ring *kept;
	const unsigned char *data;
	uint64_t ring_size; /* bytes of `data`, a power of two */
	uint64_t pos;	    /* consumed; committed with the output that holds it */
	uint64_t committed; /* pos at the last commit */
	struct xs_moved moved;
	uint64_t head; /* where the records end that are being read */
	uint64_t records, lost_base;
	uint64_t past_records; /* of threads that have had the ring, … */
	uint32_t past_threads; /* … and how many those are */
	uint32_t tid, thread;  /* thread: index in process->threads */
	bool omitted;	       /* there was no room for the thread there */
	bool dirty;	       /* consumed since the last commit */
	uint8_t next_saved;    /* the copy in kept->saved that does not count */
	uint64_t odd_head;     /* the last one that could not be; 0: none */
	/* tick: a record from there on is looked at more closely, for the next two */
	uint64_t look_at;
	uint64_t latest; /* tick: what says to be later is spoilt */
	/* tick: a record from there on shows that a time of not recording is over */
	uint64_t cut_at;
	uint64_t cut_to; /* tick: the end of the last such time that is behind the track */
	uint32_t cuts[XS_PAUSE_LISTS];		  /* how many are, of each list */
	uint64_t last_ns;			  /* of the last begin or end */
	uint64_t call_tick, call_start, call_end; /* the last call */
	uint32_t depth, room;
	uint64_t too_deep; /* tasks that are open and found no room: inside all others */
	struct xs_open *open;
	uint32_t row;		  /* string id of the track that tasks go to; 0: the thread's own */
	void *sink[XS_SINKS_MAX]; /* what each sink has of it, by its number */
	struct xs_own_time *own_time; /* own_clock.c; NULL: none yet */
	struct xs_counts *counts;     /* counted.c; NULL: none yet */
	bool counts_due;	      /* they are those of the next begin or end */
	struct keyed *bare;	      /* spans.c: the newest open span without an id; NULL: none */
	bool lost_here;		      /* records between the last one and the next */
	uint64_t lost_ns;	      /* what was begun by then may have an end that is lost */
	struct xs_calls *calls;	      /* calls.c: those that the thread is in; NULL: none yet */
	struct xs_callers *callers; /* records.c: of the call whose record comes; NULL: none yet */
	/* the program's numbers for what the thread does (XS_EXTERNAL); 0: none */
	uint64_t external, user_external;
	struct xs_about_text *about;	/* activities.c: a text that is not complete; NULL: none */
	struct xs_mpi_started *started; /* mpi.c; NULL: none yet */
	uint64_t mpi_begin, mpi_end;	/* ticks: of the last call of MPI's */
	struct xs_thread_since *since;	/* flight.c: whose records the ring has; NULL: not known */
	uint32_t since_count;
	struct xs_history history; /* the track's state is that before these records */
	/* reads records of the history */
	void (*replay)(struct xs_track *track, const unsigned char *data, uint32_t length);
};

static inline bool xs_track_is_moved(const struct xs_track *track, uint64_t pos)
{
	return track->moved.end - pos - 1 < track->moved.room;
}

/* Where its ring begins: before that, the room is the producer's. */
static inline uint64_t xs_track_tail(const struct xs_track *track)
{
	return track->moved.room ? track->moved.end : track->committed;
}

/* Where what is not read yet begins in the ring. */
static inline uint64_t xs_track_unread(const struct xs_track *track)
{
	return xs_track_is_moved(track, track->pos) ? track->moved.end : track->pos;
}

#endif
