/*
 * The last calls of each input that waited for requests. Most do not say for which; but the work
 * that such a call saw complete ends with it, and stands behind it.
 */
#ifndef XM_MPI_WAITS_H
#define XM_MPI_WAITS_H

#include "mpi.h"

struct xm_waits {
	struct xm_recent *of_input; /* by index; free() */
	uint32_t room;
};

void xm_waits_add(struct xm_waits *waits, const struct xm_function *function,
		  const struct xm_end *call);
/* Sets waiter and wait_start of a request's work, if the call that waited for it is known. */
void xm_waits_find(const struct xm_waits *waits, struct xm_end *work);

#endif
