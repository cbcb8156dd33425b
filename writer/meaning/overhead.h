/*
 * What tracing has cost a process, as far as that is known: its events by what each kind costs on
 * this machine (costs/), the waits of its threads for a full ring, its work for commands of
 * devices, and what the drain process has used.
 */
#ifndef XS_OVERHEAD_H
#define XS_OVERHEAD_H

#include "costs.h"
#include "traced.h"

#define XS_OVERHEAD_KINDS 12u

struct xs_overhead_row {
	const char *kind; /* as otherData.overhead calls it */
	uint64_t count;
	bool measured; /* else the cost is not known: an API's own work, or a walk over a stack */
	struct xs_cost cost; /* of one */
};

struct xs_overhead {
	struct xs_overhead_row rows[XS_OVERHEAD_KINDS]; /* those with a count above 0 */
	uint32_t row_count;
	uint64_t events_ns; /* of all threads together: the rows that are measured */
	uint64_t waited_ns; /* likewise, for room in a ring */
	uint64_t waits;	    /* how often that was */
	/* likewise, that our own code took for commands, where it is measured; 0: nowhere */
	uint64_t commands_ns;
	uint64_t start_ns; /* until the process could record, as far as it is seen */
	uint64_t drain_ns; /* CPU time of the drain process so far, for all processes of the run */
	uint64_t drain_peak; /* bytes of memory that it had at most */
};

/* Who measures; NULL: nobody, and every cost is 0. */
typedef struct xs_cost xs_cost_function(enum xs_cost_kind kind, const struct xs_options *options,
					bool use_tsc);
void xs_overhead_measured_by(xs_cost_function *function);

/* Of a process whose records are read. The first call for a kind of event takes some 150 us. */
void xs_overhead_of(const struct xs_process *process, struct xs_overhead *ret);
/* That of one event. */
struct xs_cost xs_overhead_cost(const struct xs_run *run, enum xs_cost_kind kind);

#endif
