/*
 * MPI calls: what their slices say, and which of them belong together.
 *
 * Messages are matched as MPI does it: the k-th send of (communicator, source, destination, tag)
 * with the k-th receive that was posted. Members of a collective have the same communicator and
 * number (seq). What waits for its other part is bounded; what found no room is counted.
 */
#ifndef XM_MPI_H
#define XM_MPI_H

#include "merge.h"

enum xm_role {
	XM_OTHER,     /* neither sends nor receives by itself, or nothing that can be followed */
	XM_SEND,      /* blocking or not: the data leave at the start of the call at the earliest */
	XM_RECEIVE,   /* blocking: they have arrived at its end */
	XM_IRECEIVE,  /* they have arrived at the end of the call that completes its request */
	XM_PROBE,     /* takes a message out of the queue, for the next two to receive */
	XM_MATCHED,   /* blocking: as XM_RECEIVE */
	XM_IMATCHED,  /* as XM_IRECEIVE */
	XM_SEND_INIT, /* persistent requests: the call does nothing by itself */
	XM_RECEIVE_INIT,
	XM_START, /* sends or posts them */
	XM_SENDRECV,
	XM_ISENDRECV, /* sends as XM_SEND, receives as XM_IRECEIVE */
	XM_COMPLETE,  /* MPI_Wait and its like */
	XM_TEST, /* MPI_Test and its like: the work of a request tells which one completed it */
	XM_CANCEL,
	XM_COLLECTIVE, /* members are in it from the call's start to its end */
	/*
	 * collectives that do not block: from the call's start to the end of the call that
	 * completes the request
	 */
	XM_STARTED,
	XM_COLLECTIVE_INIT, /* persistent ones: from each start of the request */
};

/* Whose data a member of a collective gets: that member cannot leave before these have come. */
enum xm_flow {
	XM_NO_FLOW,
	XM_BARRIER,   /* all others' */
	XM_ALL,	      /* the same, if it gets any data */
	XM_EACH,      /* of all who give any */
	XM_FROM_ROOT, /* the root's, if it gets any */
	XM_TO_ROOT,   /* the root: of all who give any */
	XM_LOWER,     /* of those before it in the communicator, if it gets any */
	XM_LISTED,    /* of those whom the call names */
};

struct xm_function;

/* One end of something; times are what the caller of xm_mpi_look() gave. */
struct xm_end {
	struct xm_input *input;
	uint32_t out_pid;
	int64_t tid, start, end;
	/*
	 * of a request's work: the threads whose calls started it and saw its end; else tid. Arrows
	 * lead from and to these calls, for on the work's own track other work may lie inside it.
	 */
	int64_t started_by, ended_by;
	int64_t bytes; /* -1: not said */
	int32_t rank;
	/*
	 * of a request's work: the call that waited for it (MPI_Waitall and its like), and when
	 * that began; NULL: none is known
	 */
	const struct xm_function *waiter;
	int64_t wait_start;
	/* of a receive: the call that posted it, when that began and on which thread */
	int64_t posted, posted_tid;
	uint64_t request; /* 0: none; of calls that start one, and of its work */
	bool is_cut;	  /* its end is not that of the call, but of what is known */
};

struct xm_function {
	const char *name; /* behind MPI_ */
	enum xm_role role;
	enum xm_flow flow;
};

/* Ranks of a communicator: pairs of the first and the last of a row of them. */
struct xm_ranks {
	bool all; /* all there are, then there are no pairs */
	uint32_t count;
	uint32_t pair[][2];
};

struct xf_member {
	struct xm_end end;
	int32_t root; /* as this member says it; -1: not */
	/* its rank in its group, and which of two groups that is; -1: not known */
	int32_t place, side;
	struct xm_ranks *from; /* XM_LISTED; NULL: not known, or nobody */
};

struct xm_collective {
	uint64_t comm, seq;
	const struct xm_function *function;
	int32_t root;  /* in MPI_COMM_WORLD; -1: none is known */
	bool is_inter; /* between two groups: what a member gets comes from the other one */
	uint32_t count, room;
	struct xf_member *members;
};

/* Does it wait for requests, of any communicator? */
static inline bool xm_waits_for_requests(const struct xm_function *function)
{
	return function->role == XM_COMPLETE || function->role == XM_TEST;
}

struct xm_mpi_sink {
	void *user;
	/* which: the function that sent; comm as in the events */
	void (*message)(void *user, uint64_t comm, const struct xm_function *send,
			const struct xm_function *receive, const struct xm_end *from,
			const struct xm_end *to);
	/* when all members are there, or when there is no more room to wait for them */
	void (*collective)(void *user, const struct xm_collective *collective);
	/* the work of a request that sends, with the call that waited for it */
	void (*sent)(void *user, uint64_t comm, const struct xm_end *work);
	/* any MPI call with its communicator (0: none) */
	void (*call)(void *user, uint64_t comm, const struct xm_function *function,
		     const struct xm_end *end);
};

struct xm_mpi;

struct xm_mpi *xm_mpi_create(const struct xm_mpi_sink *sink);
/* Takes what the first pass learnt of who belongs to which communicator. */
void xm_mpi_learn(struct xm_mpi *mpi, const struct xm_mpi *before);
/*
 * By any thread: looks at an event, and puts a note of it into the block. Anything that is no MPI
 * call of a rank, and does not tell of a communicator, is ignored.
 */
void xm_mpi_look(struct xm_block *block, struct xm_input *input, const struct xf_event *event,
		 const struct xm_process *process, int64_t start, int64_t end);
/* In the order of all inputs: a note that was put so. */
void xm_mpi_take(struct xm_mpi *mpi, struct xm_input *input, const struct xm_note *note);
/*
 * Gives collectives that wait for members to the sink. Returns the calls that found no other end;
 * *ret_dropped: for want of room.
 */
uint64_t xm_mpi_finish(struct xm_mpi *mpi, uint64_t *ret_dropped);
void xm_mpi_free(struct xm_mpi *mpi);

#define XM_COMM_WORLD 1u
#define XM_COMM_SELF  2u

#define XM_COMM_LABEL 96
/*
 * For human readers: the application's name, or "4 of world (0-3)". The text lives in `text`, of
 * XM_COMM_LABEL bytes.
 */
const char *xm_comm_label(const struct xm_mpi *mpi, uint64_t comm, char *text);

#endif
