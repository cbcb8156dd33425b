/*
 * Collectives: which calls of the ranks are one, who the members of communicators are, and who gets
 * whose data.
 */
#ifndef XM_MPI_COLLECTIVES_H
#define XM_MPI_COLLECTIVES_H

#include "mpi_call.h"

struct xm_collectives;

struct xm_collectives *xm_collectives_create(const struct xm_mpi_sink *sink);
/* Takes what a pass before learnt of who belongs to which communicator. */
void xm_collectives_learn(struct xm_collectives *collectives, const struct xm_collectives *before);
/* A member: a call, or the work of a request. */
void xm_collectives_join(struct xm_collectives *collectives, const struct xm_call *call,
			 const struct xm_end *end);
/* What a "communicator" event says of this rank. */
void xm_collectives_told(struct xm_collectives *collectives, const struct xm_input *input,
			 int32_t rank, struct xf_text args);
/* Gives what waits for members to the sink. Returns members that found no room. */
uint64_t xm_collectives_finish(struct xm_collectives *collectives);
const char *xm_collectives_label(const struct xm_collectives *collectives, uint64_t comm,
				 char *text);
void xm_collectives_free(struct xm_collectives *collectives);

#endif
