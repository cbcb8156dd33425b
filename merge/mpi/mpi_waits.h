/*
 * Calls that started requests and saw them complete. Most do not say which; but the work begins
 * with the one and ends with the other, and stands behind both. They may be missing: excluded by
 * the user, or cut short by a pause.
 */
#ifndef XM_MPI_WAITS_H
#define XM_MPI_WAITS_H

#include "mpi.h"

#define XM_STARTS 65536u /* calls that started one are known, about; a power of two */

struct xm_start {
	int64_t start, tid;
	const struct xm_input *input;
};

struct xm_waits {
	struct xm_recent *of_input; /* by index; free() */
	uint32_t room;
	struct xm_start *starts; /* free() */
};

/* Any MPI call. */
void xm_waits_add(struct xm_waits *waits, const struct xm_function *function,
		  const struct xm_end *call);
/*
 * Sets waiter and wait_start of a request's work, if the call that waited for it is known. Where a
 * call that started it, or saw its end, is not, the work itself takes its place: an arrow there
 * would have no slice.
 */
void xm_waits_find(struct xm_waits *waits, struct xm_end *work);

#endif
