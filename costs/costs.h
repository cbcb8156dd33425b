/*
 * What recording costs a traced program on this machine: the collector's own code is run here, in
 * the drain process, on a ring of its own that nobody reads, and timed.
 *
 * A cost is the least of some rounds, in each of which other work is done between the events, and
 * the cost of that subtracted. Code and ring are in the caches all the same: in a program that
 * comes to an event after a long time, it takes several times as long (docs/OVERHEAD.md).
 */
#ifndef XS_COSTS_H
#define XS_COSTS_H

#include <stdbool.h>

#include "options.h"

enum xs_cost_kind {
	XS_COST_CALL,	  /* of an API for devices */
	XS_COST_TASK,	  /* begin and end of a task */
	XS_COST_SPAN,	  /* begin and end of a frame, region or overlapped task */
	XS_COST_METADATA, /* one value of a task */
	XS_COST_MARK,	  /* an instant, or another single record */
	XS_COST_COUNTER,
	XS_COST_VALUES, /* -c: what such a call was given, and what it gave */
	XS_COST_MPI,	/* an MPI call */
	XS_COST_COUNT
};

struct xs_cost {
	double ns;	  /* that the program takes longer for one */
	double inside_ns; /* of that, what lies in the slice of the event itself */
};

/*
 * Measured with the run's options when it is first asked for, in some 150 us; the same ever after.
 * Zeros: it was not built, or there is no memory.
 */
struct xs_cost xs_cost_of(enum xs_cost_kind kind, const struct xs_options *options, bool use_tsc);

#endif
