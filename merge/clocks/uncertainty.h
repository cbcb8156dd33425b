/*
 * How far the true time can still be off, of clocks that did not run evenly.
 *
 * A message that was seen u ns after it was sent (in true time as it was found) says that the
 * sender's clock is not later by more than u than it should be, against the receiver's. How late it
 * can be at other times follows from how fast clocks change: a clock's pace is taken to have been,
 * at any time, among those that it was seen to have. So what a message says holds around it, ever
 * less so; the worst of all times, over all pairs of clocks, is what remains. Memory does not
 * depend on the number of messages.
 */
#ifndef XM_UNCERTAINTY_H
#define XM_UNCERTAINTY_H

#include "clocks.h"

struct xm_uncertainty;

/* Of clocks as they are; NULL: no memory. */
struct xm_uncertainty *xm_uncertainty_create(struct xm_clocks *clocks,
					     const struct xm_merge *merge);
/*
 * Something left the clock `from` at `sent` and was seen by `to` at `seen`, in true time; about in
 * the order of time.
 */
void xm_uncertainty_message(struct xm_uncertainty *uncertainty, uint32_t from, int64_t sent,
			    uint32_t to, int64_t seen);
/* After all messages: the error of each clock that did not run evenly. */
void xm_uncertainty_solve(struct xm_uncertainty *uncertainty);
void xm_uncertainty_free(struct xm_uncertainty *uncertainty);

#endif
