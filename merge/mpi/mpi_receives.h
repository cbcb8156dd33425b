/*
 * Receives and requests, as they are found in the slices of each input, in their order there. A
 * receive's number in its channel is that in which it was posted (MPI_Irecv, MPI_Start), whenever
 * it was completed. Until one from any source, or of any tag, has told where it came from, what was
 * posted after it and could have got the same message is held back.
 */
#ifndef XM_MPI_RECEIVES_H
#define XM_MPI_RECEIVES_H

#include "mpi_call.h"
#include "mpi_channels.h"

struct xm_receives;

struct xm_receives *xm_receives_create(struct xm_channels *channels);
/* What is still held back goes to the channels. */
void xm_receives_finish(struct xm_receives *receives);
void xm_receives_free(struct xm_receives *receives);

/* A blocking one: posted and complete. */
void xm_receives_blocking(struct xm_receives *receives, const struct xm_call *call, int64_t peer,
			  int64_t tag, int64_t bytes, struct xm_end *end);
void xm_receives_post(struct xm_receives *receives, const struct xm_call *call,
		      const struct xm_end *end);
/* MPI_Wait and its like; or the work of a receive. */
void xm_receives_complete(struct xm_receives *receives, const struct xm_call *call,
			  struct xm_end *end);

/*
 * A message that a probe took out of the queue, which is when it has its number; MPI_Imrecv; a
 * call, or the work of a request, that has received one.
 */
void xm_receives_probe(struct xm_receives *receives, const struct xm_call *call,
		       const struct xm_end *end);
void xm_receives_bind(struct xm_receives *receives, const struct xm_call *call,
		      const struct xm_end *end);
void xm_receives_matched(struct xm_receives *receives, const struct xm_call *call,
			 struct xm_end *end);

/* MPI_Cancel: whether that came too late says the work. */
void xm_receives_cancel(struct xm_receives *receives, const struct xm_call *call,
			const struct xm_end *end);

/* Persistent requests: made, started, and the work of one. */
void xm_receives_init(struct xm_receives *receives, const struct xm_call *call,
		      const struct xm_end *end);
void xm_receives_start(struct xm_receives *receives, const struct xm_call *call,
		       struct xm_end *end);
void xm_receives_work(struct xm_receives *receives, const struct xm_call *call, struct xm_end *end);

/* Receives that were forgotten for want of room. */
uint64_t xm_receives_dropped(const struct xm_receives *receives);

#endif
