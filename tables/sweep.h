/*
 * The sorted rows become slices, with their depths, parents and times of their own; counters, marks
 * and the ends of flows.
 */
#ifndef XT_SWEEP_H
#define XT_SWEEP_H

#include "out.h"
#include "progress.h"
#include "trace.h"

/*
 * All rows of the trace. The ends of flows go into `ends`: rows whose `ts` is the flow's identity,
 * whose `dur` is the time, and whose `text` is the slice's number + 1 (0: none). 0 or -errno.
 */
int xt_sweep(struct xt_trace *trace, struct xt_out *out, struct xt_rows *ends,
	     struct xt_progress *progress);
/* flows.c: joins them. 0 or -errno. */
int xt_join(const struct xt_trace *trace, struct xt_out *out, struct xt_rows *ends);
/* about.c: the tables of processes, threads, devices, and what the trace says of itself. */
void xt_tell(struct xt_trace *trace, struct xt_out *out);

#endif
