/*
 * What the files of --on-demand know together. Nobody else includes it.
 */
#ifndef XS_DEMAND_STATE_H
#define XS_DEMAND_STATE_H

#include "demand.h"
#include "demand_config.h"
#include "dynolog.h"
#include "traced.h"

#define XS_ASKED_MAX 64u /* processes that the daemon may know; each has a socket */

enum xs_asked_state { XS_ASKED_IDLE, XS_ASKED_WAITING, XS_ASKED_ACTIVE };

/* A process that the daemon may ask for a trace. */
struct xs_asked {
	struct xs_asked *next;
	int32_t pid, watched; /* as in struct xs_process */
	uint64_t start;
	struct xs_dynolog dynolog;
	bool registered;
	uint64_t next_poll, answer_until; /* CLOCK_MONOTONIC */
	/* the request, unless it is idle */
	enum xs_asked_state state;
	struct xs_demand_config config;
	char path[PATH_MAX];	       /* where the trace is to be */
	bool by_session;	       /* a shell wants it, and not dynolog */
	bool by_steps;		       /* it counts steps, if the program tells any */
	bool fresh;		       /* that has not been looked at yet */
	bool written;		       /* the trace is there */
	uint64_t begin, end;	       /* CLOCK_MONOTONIC */
	uint64_t begin_step, end_step; /* calls of xstrace_step(); 0: the times count */
};

struct xs_demand {
	struct xs_asked *asked;
	uint32_t count;
	uint32_t own_format; /* of traces that nobody has asked for: enum xs_format */
	uint64_t interval;
	bool silent; /* the daemon is not to be asked */
	/* in a run that a program has begun: shells may ask by --resume and --pause */
	bool for_session;
	bool told_many, told_error, told_garbage;
	uint32_t refused;		/* requests that were told, up to REFUSALS */
	struct xs_demand_config config; /* that is being read */
	char text[XS_DYNOLOG_TEXT];
};

/* ---- demand_traces.c ---- */

/* Kineto's, or what the run's options say. */
void xs_demand_use_format(struct xs_run *run, bool kineto);
void xs_demand_name_trace(struct xs_process *process, const struct xs_asked *asked);
/* Whether the run records. */
void xs_demand_record(struct xs_run *run, bool on);
/* run->trace_written: the trace gets the name that was asked for. */
void xs_demand_written(struct xs_run *run, char *path);
/* Begins and ends what is due; true: processes have left the list. */
bool xs_demand_act(struct xs_run *run, struct xs_process **list, uint64_t now);

/* ---- demand_session.c ---- */

/* Serves what a shell asks for; true: processes have left the list. */
bool xs_demand_serve_session(struct xs_run *run, struct xs_process **list, uint64_t now);

#endif
