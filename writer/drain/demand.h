/*
 * Traces that others ask for: dynolog (--on-demand), and a shell in a run that a program has begun
 * (--resume, --pause). The drain process makes the run's processes known to the daemon, asks it
 * every few seconds whether there is a request, and records while there is one. Nothing of that
 * happens in the traced processes.
 */
#ifndef XS_DEMAND_H
#define XS_DEMAND_H

#include "traced.h"

struct xs_asked;

/* Is it wanted in this run? */
bool xs_demand_is_wanted(const struct xs_run *run);
/* run->demand stays NULL: no memory (a line says so). */
void xs_demand_open(struct xs_run *run);
void xs_demand_close(struct xs_run *run);

/* A process was adopted, for the first time or behind a cut. */
void xs_demand_met(struct xs_process *process);
/* What the daemon knows it as; NULL: it does not. */
struct xs_asked *xs_demand_asked(const struct xs_process *process);
/* It has ended. NULL: nothing. */
void xs_demand_gone(struct xs_run *run, struct xs_asked *asked);
/* Is a trace of it being recorded that was asked for? */
bool xs_demand_wants(const struct xs_process *process);
bool xs_demand_is_active(const struct xs_run *run);
/* Has a shell asked for something that was not served yet? */
bool xs_demand_session_asks(const struct xs_run *run);

/*
 * Talks to the daemon, and begins and ends what is due: then processes leave the list, and are to
 * be adopted again (true). *ret_sleep: in how many ns to come again.
 */
bool xs_demand_serve(struct xs_run *run, struct xs_process **list, uint64_t *ret_sleep);
/* Ends what is being recorded: the program begins a trace of its own. */
void xs_demand_yield(struct xs_run *run, struct xs_process **list);

#endif
