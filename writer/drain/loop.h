/*
 * What the files of the drain process's loop know together: drain.c turns it, joins.c finds
 * processes, ends.c notices their ends, asked.c writes what somebody asks for in between.
 */
#ifndef XS_LOOP_H
#define XS_LOOP_H

#include "lost.h"
#include "process.h"
#include "window.h"

struct xs_kmd;
struct xs_where;

/* last_words.h */
struct xs_last_words {
	uint64_t next, pause; /* CLOCK_MONOTONIC of the next look, ns to the one behind it */
	uint32_t unwanted;    /* looks in a row that found no process with our stderr */
	bool over;
};

struct xs_loop {
	struct xs_run run;
	struct xs_process *processes;
	uint32_t joined;    /* mailbox->joined when the directory was last read */
	uint64_t looks;	    /* how often it was read */
	uint64_t looked;    /* CLOCK_MONOTONIC of the last time */
	uint32_t newcomers; /* adopted since those that have ended were finished */
	/* likewise: there has been a process whose file cannot be opened or mapped */
	uint64_t blind_since;
	uint32_t spoilt_files; /* of processes that are not adopted */
	uint32_t adopted;      /* processes, ever */
	/* CLOCK_MONOTONIC: a process has been in the middle of joining from then on; 0: none is */
	uint64_t unready_since;
	bool app_finished, app_seen, stopped;
	bool looked_at_end; /* of the application: for processes that nobody has told of */
	bool spoilt;	    /* --recover: the file of a process is not what it was */
	struct xs_window window;
	uint64_t start;	    /* of this process, as in struct xs_consumer */
	bool launcher_gone; /* and all that it had said was heard */
	bool app_ended, app_not_run;
	int app_status;		  /* as from waitpid(), when app_ended */
	uint32_t app_joined;	  /* mailbox->joined by then */
	uint64_t app_over;	  /* CLOCK_MONOTONIC: its own trace was complete; 0: it is not */
	struct xs_process *ended; /* flight recorder: they are history */
	bool crashed;		  /* and one of them so that it is to be written */
	bool dumping;
	struct xs_lost lost;
	struct xs_kmd *kmd;	/* NULL: not wanted, or over */
	struct xs_where *where; /* NULL: nobody asks where threads are */
	uint64_t patience;	/* added to the sleep: it grows while nothing happens */
	uint32_t busy, vain;	/* turns in a row with a lot to read, with nothing */
	uint64_t vain_since;
	bool defers;		/* records are only moved: backlog.h */
	uint64_t progress_told; /* CLOCK_MONOTONIC; 0: the application has not ended */
	uint32_t listed;	/* the cut that the list of traces is of */
	struct xs_last_words last_words;
};

/* ---- joins.c ---- */

/* What the launcher has said by now. */
void xs_loop_hear(struct xs_loop *loop);
/*
 * Adopts those that have joined, in this order; not all: some of them, if many have joined since
 * xs_loop_finish_ended(). True when there are more, or some process was in the middle of joining:
 * to be looked at again. If it is given up, it says itself when it is ready.
 */
bool xs_loop_find(struct xs_loop *loop, bool all);
/* Tells, for --recover, which processes have left no file of their own. */
void xs_loop_look_for_gone(struct xs_loop *loop);
/* Before anything that was recorded by now is read. */
void xs_loop_look_at_clocks(struct xs_loop *loop);
/* Reads all rings once; returns the bytes read. */
uint64_t xs_loop_read(struct xs_loop *loop);

/* ---- ends.c ---- */

bool xs_process_ended(const struct xs_process *process);
/* Is it the one that samples devices? It is finished when no other is left. */
bool xs_loop_is_last(const struct xs_loop *loop, const struct xs_process *process);
/* Completes the trace of *link, which is no longer in the list. */
void xs_loop_finish(struct xs_loop *loop, struct xs_process **link, enum xs_end end);
/* True when a process has ended and something must be known before it is finished. */
bool xs_loop_finish_ended(struct xs_loop *loop);

/* ---- asked.c ---- */

/* The flight recorder's: is a dump due? */
bool xs_loop_wants_dump(const struct xs_loop *loop);
/* True while a dump is due or being written. What is asked for meanwhile is one dump more. */
bool xs_loop_serve_dumps(struct xs_loop *loop);
/* Of processes that have ended: what is too old for a dump, or all. */
void xs_loop_forget_ended(struct xs_loop *loop, bool all);
/* A hosted run's program has ended its trace (xstrace_stop()): is it due? */
bool xs_loop_wants_cut(const struct xs_loop *loop);
/*
 * All that was recorded so far is completed, and what comes next goes to another file. Or the
 * program begins a trace while another is recorded for dynolog: that one ends. Does nothing where
 * nobody asks.
 */
void xs_loop_serve_cuts(struct xs_loop *loop);

#endif
