/*
 * Late progress: how long a send or a wait for a message lasted while its partner, which had done
 * its part, was outside MPI; and in which of its tasks.
 *
 * MPI libraries move large messages only while both sides are in a call. What a partner did is
 * known when its trace has been read to the end, so it is looked for in a pass of its own, within
 * the times that the pass before has named.
 */
#ifndef XM_LATE_H
#define XM_LATE_H

#include "mpi.h"

struct xm_late;

struct xm_late *xm_late_create(void);
void xm_late_free(struct xm_late *late);

/*
 * `who` was in a call until its end, and from `from` on nothing but the partner's help was missing.
 * row: of the report.
 */
void xm_late_window(struct xm_late *late, uint32_t row, const struct xm_end *who,
		    const struct xm_end *partner, int64_t from, int64_t until);
/* Is there anything to look for? Then all slices are to be given, by true times. */
bool xm_late_begin(struct xm_late *late);
void xm_late_slice(struct xm_late *late, const struct xm_input *input, const struct xf_event *event,
		   int64_t tid, int64_t start, int64_t end);

/* Calls `one` for each wait that lasted longer so. */
void xm_late_solve(struct xm_late *late, void *user,
		   void (*one)(void *user, uint32_t row, int32_t who, int32_t partner,
			       uint64_t ns));
/* By rank and task: text, or a member of an object. */
void xm_late_print(const struct xm_late *late, FILE *out, bool json);

#endif
