/*
 * What MPI makes of the calls of a collective: whose data a member gets, and so for whom it waits.
 */
#ifndef XM_MPI_NEEDS_H
#define XM_MPI_NEEDS_H

#include "mpi.h"

/* Can `to` not leave before `from` has come? */
bool xm_gets(const struct xm_collective *collective, const struct xf_member *to,
	     const struct xf_member *from);
/* Did `a` come after `b`? Of two at once the one of the lower rank did. b may be NULL. */
bool xm_is_later(const struct xf_member *a, const struct xf_member *b);
/*
 * Calls `one` for each member that gets anything, with the last to come of those that it waits for.
 */
void xm_each_wait(const struct xm_collective *collective, void *user,
		  void (*one)(void *user, const struct xm_collective *collective,
			      const struct xf_member *to, const struct xf_member *last));
/*
 * Calls `one` for pairs of members of which the first gets something from the second: for all, or
 * of large collectives for enough of them.
 */
void xm_each_pair(const struct xm_collective *collective, void *user,
		  void (*one)(void *user, const struct xm_collective *collective,
			      const struct xf_member *to, const struct xf_member *from));

#endif
