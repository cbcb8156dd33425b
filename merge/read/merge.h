/*
 * What the parts of the merger share: the inputs and the processes in them.
 *
 * Every input is read twice. The first pass finds out what is in it (processes, ranges of ids,
 * times, messages between ranks); then clocks are brought together and numbers given; the second
 * pass writes. Both read all inputs side by side, in step, so that the two ends of a message are
 * seen soon after each other and few have to be remembered.
 *
 * Times are int64_t ns since the Unix epoch, by the clock of their input until xm_true_time() has
 * been asked.
 */
#ifndef XM_MERGE_H
#define XM_MERGE_H

#include <stdio.h>

#include "block.h"
#include "file.h"
#include "map.h"
#include "reader.h"

#define XM_PROCESSES 65536u /* in one input */
#define XM_NO_TIME   INT64_MIN
/*
 * ns: no time, base or duration lies as far from 0, so that sums and differences of a few are exact
 */
#define XM_LATEST   ((int64_t)1 << 61)
#define XM_OWN_TID  0x50000000
#define XM_OWN_TIDS (1u << 20) /* so many from there on are none of an input's */
#define XM_TID_TEXT 252u       /* bytes of such a text; longer ones are none */

/* A process of an input, or a device, or what else has a pid there. */
struct xm_process {
	char *name;   /* JSON string with its quotes, or NULL */
	char *labels; /* likewise */
	int64_t pid;  /* in the input; meaningless if it is no number there */
	bool is_number, is_device;
	uint32_t out_pid, order;
	/* the first slice, which an arrow from the parent process points to */
	int64_t first_start, first_end;
	int64_t first_tid;
};

struct xm_input {
	char *path;
	uint32_t index;	 /* in the order of the command line */
	uint32_t number; /* in the order of the output */
	struct xm_file file;
	struct xm_reader reader;
	bool usable;	 /* it could be opened, and is a trace */
	bool is_written; /* somebody still writes it */
	bool changed;	 /* a later pass did not find what the first one had found */

	/* what it says of itself */
	char tool[32], host[256], run[64], end[16];
	/* -1: not said */
	int64_t rank, world_size, pid, ppid, base, status, lost, clock_error, untimed,
		open_commands, open_requests;
	bool recovered;	   /* by --recover */
	bool has_odd_base; /* it says when its times begin, but so that nobody can use it */
	int64_t late_base; /* said behind events: not known when they were read; 0: none */
	int64_t lost_read; /* `lost`, where the reader is; that one is as of the events that were
			      taken */
	/* JSON array of the threads that were inside a call at the end; NULL: none */
	char *in_calls;
	char *devices;	/* JSON array, as it stands there; NULL: none */
	char *overhead; /* likewise, an object */

	/* found in the first pass */
	struct xf_map pids; /* text of the pid → index of processes */
	struct xm_process *processes;
	uint32_t process_room;
	int64_t first, last; /* times */
	bool has_base;	     /* its times can be told from the epoch */
	int64_t id_low, id_high;
	bool has_ids, has_odd_ids; /* flows' ids: integers; others */
	uint64_t events;	   /* lines written of it */
	uint64_t met, met_first;   /* events that a pass has visited */
	/* arrows with one end alone, of an input of which something is missing; else NULL */
	struct xm_halves *halves;
	uint64_t half_arrows; /* such ends, which are left out */
	uint64_t unfit;	      /* events that are JSON but cannot be shown: no time, no process */

	/* set before the second pass */
	int64_t shift;	/* to add to its times, to be ns since the epoch of a common base */
	uint32_t clock; /* index; see clocks.h */
	int64_t id_base;

	/* walking */
	bool done;
	unsigned turn;	  /* events of this turn that were read */
	int64_t progress; /* behind the last turn that was taken */
	int64_t reached;  /* where the reader is */
	/* of the last slice of xstrace's own layout */
	uint32_t last_process, last_pid;
	bool knows_last;
	struct xf_map tids; /* names of tracks that are no numbers: process index and text */
};

struct xm_merge {
	struct xm_input *inputs;
	uint32_t count, room;
	struct xm_input **order; /* as they appear in the output */
	int64_t base;		 /* of the output */
	uint64_t next_id;	 /* for flows of our own */
	unsigned window_log;	 /* of .zst files */
	struct xf_map known;	 /* files and directories: device and number */
	bool left_out;		 /* something that was named; it has been said */
};

/* What a pass does with the events. */
struct xm_visitor {
	void *user;
	/*
	 * Called with each event, its process and its time and end (XM_NO_TIME without); with those
	 * of one input in their order.
	 */
	void (*look)(void *user, struct xm_block *block, struct xm_input *input,
		     const struct xf_event *event, struct xm_process *process, int64_t start,
		     int64_t end);
	/* By the caller's thread, in the order of all inputs: what look() has put into a block. */
	void (*take)(void *user, const struct xm_block *block);
	/*
	 * look() may be called before what comes before it was taken, by other threads: it changes
	 * nothing but the block and the input. Else there is one thread, and a note is taken at
	 * once.
	 */
	bool is_ahead;
	const char *what; /* such as "reading", for the line of progress */
};

/*
 * All events of all inputs, side by side. With `first`, what the header and the end of each say is
 * kept. 0 or -ENOMEM.
 */
int xm_walk(struct xm_merge *merge, bool first, const struct xm_visitor *visitor);

/*
 * inputs.c: files and the files of directories become inputs. 0, or -1: a name was no good, which
 * has been said.
 */
int xm_add_path(struct xm_merge *merge, const char *path);
/*
 * Waits until no process writes the inputs, at most so long; inputs that are still written are
 * marked.
 */
void xm_wait_for_writers(struct xm_merge *merge, unsigned seconds);
/* The file of this name is an output: if it is among the inputs, it is left out with a line. */
void xm_never_read(struct xm_merge *merge, const char *path);
/* After the first pass: no event of it can be used, and nothing says that it is xstrace's. */
bool xm_is_empty(const struct xm_input *input);
/* An input's events are in the output, all that it had. */
bool xm_is_complete(const struct xm_input *input);
/*
 * Behind the first pass: an input whose base stands behind its events (older files of Kineto) has
 * its times from there now. True: what was taken of its events is as of before.
 */
bool xm_take_late_base(struct xm_input *input);
/* places.c: orders the inputs, gives out pids and ids; after the first pass. */
void xm_arrange(struct xm_merge *merge);
void xm_merge_free(struct xm_merge *merge);

int64_t xm_tid_of_text(struct xm_input *input, const struct xm_process *process,
		       const struct xf_event *event);
/*
 * The tid of an event as a number: its own, or one from XM_OWN_TID on (input->tids has its text),
 * also where its own is one of those.
 * XM_NO_TIME: it has none.
 */
static inline int64_t xm_tid(struct xm_input *input, const struct xm_process *process,
			     const struct xf_event *event)
{
	return event->is_own && event->own_tid - XM_OWN_TID >= XM_OWN_TIDS
		       ? event->own_tid
		       : xm_tid_of_text(input, process, event);
}

bool xm_ends_with(const char *name, const char *suffix);
/* One line on stderr. */
void xm_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
