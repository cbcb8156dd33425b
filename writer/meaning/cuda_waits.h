/*
 * What is remembered of CUDA's events and of who waits for them, between the files that know it:
 * one piece of memory, of which what is never used is never there.
 */
#ifndef XS_CUDA_WAITS_H
#define XS_CUDA_WAITS_H

#include "sink.h"
#include "tree.h"

#define XS_CUDA_PLACES	65536u /* recordings of events, of all events together */
#define XS_CUDA_STREAMS 65536u /* streams that wait for an event */
#define XS_CUDA_HELD	256u   /* waits that are held back … */
#define XS_CUDA_LATE	128u   /* … until so many records more were read: they come in any order */

/* An event was put into a stream, by a call of this tick. */
struct xs_cuda_place {
	struct xs_tree_node node; /* first; by event and tick */
	uint64_t event;		  /* context << 32 | event */
	uint64_t tick, queue;
};

/* The newest ones. */
struct xs_cuda_places {
	struct xs_tree tree;
	uint64_t count;	    /* ever */
	uint64_t forgotten; /* the latest tick of those that have given their places */
	struct xs_cuda_place place[XS_CUDA_PLACES];
};

/* In the order in which they came; the first and the last one. */
struct xs_cuda_stream_list {
	struct xs_cuda_stream_wait *first, *last;
};

/*
 * A stream waits for an event. Where the event lies is known when it is complete, so at the latest
 * with the first work that follows the wait.
 */
struct xs_cuda_stream_wait {
	struct xs_tree_node node;    /* first; by queue, tick and serial: those without such work */
	uint64_t queue, event, tick; /* tick: of the call */
	uint64_t serial;	     /* of the wait */
	uint64_t until;		     /* which record it is held back for, once work has followed */
	struct xs_cuda_stream_wait *next, *back; /* in its list; next: of spare ones, too */
};

struct xs_cuda_streams {
	struct xs_tree tree;
	struct xs_cuda_stream_list waiting, followed;
	struct xs_cuda_stream_wait *spare;
	uint32_t used; /* of `wait` */
	uint64_t serial;
	struct xs_cuda_stream_wait wait[XS_CUDA_STREAMS];
};

/* wait.until: of an event, when the call began */
struct xs_cuda_held {
	struct xs_wait wait;
	uint64_t until; /* which record */
	uint64_t event; /* as in struct xs_cuda_place; 0: it is for none */
};

struct xs_cuda_waits {
	struct xs_cuda_held held[XS_CUDA_HELD]; /* in the order of their starts */
	uint32_t held_count;
	struct xs_cuda_places places;
	struct xs_cuda_streams streams;
};

/* ---- cuda_events.c ---- */

void xs_cuda_put_place(struct xs_cuda_places *places, uint64_t event, uint64_t tick,
		       uint64_t queue);
/*
 * Where the event was put last before that tick; NULL: that is not known (yet), or not any more.
 */
const struct xs_cuda_place *xs_cuda_place_of(const struct xs_cuda_places *places, uint64_t event,
					     uint64_t tick);

/* ---- cuda_streams.c ---- */

/* A stream waits for an event: its call has this tick. */
void xs_cuda_stream_waits(struct xs_cuda_streams *streams, uint64_t queue, uint64_t event,
			  uint64_t tick);

#endif
