/*
 * What waits.c remembers: of each queue the commands that no call has waited for yet, and the calls
 * that have waited.
 */
#ifndef XS_WAITS_H
#define XS_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "chrome.h"

#define XS_WAIT_NAMED 64u
/* commands that have their arrows and may still be named; a power of two */
#define XS_WAIT_DRAWN	   64u
#define XS_WAIT_HELD	   64u
#define XS_WAIT_QUEUES_MAX 2048u
#define XS_WAIT_BUCKETS	   XS_WAIT_QUEUES_MAX
#define XS_WAIT_WHOLE	   0x100u /* beside the source: what has waited for all queues of a context */

/* What a call may name a command by. */
struct xs_wait_name {
	uint64_t raw_start; /* when it started, as its record says it */
	uint32_t id;
};

struct xs_wait_command {
	struct xs_wait_name name;
	uint64_t tick;	     /* when it was submitted: the call that did began then, … */
	uint64_t put;	     /* … and by then it surely was */
	uint64_t start, end; /* ns */
	uint64_t pid, tid;   /* its track */
	bool in_order;
};

struct xs_wait_call {
	uint64_t until, start, end; /* until: as in xs_waited_record; ns */
	uint32_t tid, since;	    /* since: how many commands had been read */
	uint8_t kind;		    /* enum xs_waited */
};

struct xs_wait_queue {
	struct xs_wait_queue *next;	  /* of the bucket */
	struct xs_wait_queue *busy_next;  /* of those with pending commands */
	struct xs_wait_queue **busy_link; /* NULL: it has none */
	uint64_t key[2];		  /* its source, its number */
	bool used;			  /* since the hand came by */
	struct xs_wait_command *pending;
	uint32_t first, count, room; /* of pending */
	/*
	 * Calls that waited for all up to a tick, by their ends. Each waited for more than those
	 * before it: another is the first one of nothing.
	 */
	struct xs_wait_call *calls;
	uint32_t call_count, call_room;
	/* no call that was forgotten waited for more, or ended later */
	struct xs_wait_call forgotten;
	/* that waited for a command which has not come yet */
	struct xs_wait_call named[XS_WAIT_NAMED];
	uint32_t named_count;
	uint32_t commands;			  /* read, ever */
	struct xs_wait_name drawn[XS_WAIT_DRAWN]; /* the newest ones that got their arrows */
	uint32_t drawn_count;			  /* ever */
};

/*
 * Programs make and release queues all their lives. When there are too many, one that was not used
 * for a while gives its place: a hand goes round, and passes those that were used since it came by.
 */
struct xs_waits {
	/* of this look, by their ends: threads are read one by one */
	struct xs_wait held[XS_WAIT_HELD];
	uint32_t held_count;
	uint32_t count, hand;
	uint32_t room, call_room; /* of all queues */
	bool whole;		  /* a call has waited for all queues of a context */
	/* as in struct xs_wait_queue, of queues that have given their places */
	struct xs_wait_call forgotten;
	struct xs_wait_queue *busy;
	struct xs_wait_queue *queues[XS_WAIT_QUEUES_MAX];
	struct xs_wait_queue *bucket[XS_WAIT_BUCKETS];
};

/* NULL: there is no memory. */
struct xs_waits *xs_waits_of(struct xs_process *process);
/* Known, or made now; NULL: there is no memory. */
struct xs_wait_queue *xs_wait_queue_of(struct xs_process *process, uint64_t source,
				       uint64_t number);
/* Where the calls are that have waited for its whole context; NULL: there were none. */
const struct xs_wait_queue *xs_wait_whole_of(struct xs_waits *waits,
					     const struct xs_wait_queue *queue);
/* `all` stands for this call, too, from now on. */
void xs_wait_forgotten(struct xs_wait_call *all, const struct xs_wait_call *call);
/* The call has waited for all of the queue up to a tick; the oldest ones go, if there are too many.
 */
void xs_wait_remember(struct xs_waits *waits, struct xs_wait_queue *queue,
		      const struct xs_wait_call *call);
/* The command waits for a call; the oldest ones go, and are counted, where there are too many. */
void xs_wait_keep(struct xs_process *process, struct xs_wait_queue *queue,
		  const struct xs_wait_command *command);
/* No command waits. One that had many gives its memory back. */
void xs_wait_rest(struct xs_waits *waits, struct xs_wait_queue *queue);

static inline uint64_t xs_wait_context_of(uint64_t number)
{
	return number >> 32 << 32;
}

#endif
