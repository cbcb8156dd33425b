/*
 * The last step to one true time, for clocks whose pace changed: lines that bend (bounds.h) still
 * leave some messages that arrive before they were sent, where the pace changes within a part, and
 * between clocks that were not tied to each other directly.
 *
 * All messages are looked at again. Time is cut into parts; of each, and each direction of two
 * clocks, only the message that arrives earliest is kept, so memory does not depend on their
 * number. Each clock is moved a little at each end of each part, by as much as it takes: no message
 * of a part can then arrive too early, wherever in it. Where that is impossible, parts are too long
 * for what the clock did there: they are divided, and the messages are looked at once more.
 */
#ifndef XM_MEND_H
#define XM_MEND_H

#include "clocks.h"

struct xm_mend;

/* NULL: there is nothing to mend, or no memory. */
struct xm_mend *xm_mend_create(struct xm_clocks *clocks, const struct xm_merge *merge);
/*
 * Something left the clock `from` at `sent` and was seen by `to` at `seen`, in true time as it is
 * now (xm_true_time()).
 */
void xm_mend_message(struct xm_mend *mend, uint32_t from, int64_t sent, uint32_t to, int64_t seen);
/*
 * After all messages: changes the clocks; false: they have to be looked at once more, by the same
 * true time.
 */
bool xm_mend_solve(struct xm_mend *mend);
void xm_mend_free(struct xm_mend *mend);

#endif
