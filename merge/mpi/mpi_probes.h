/*
 * Messages that MPI_Mprobe or MPI_Improbe took out of the queue, until they are received. Their
 * order among the messages of their channel is that of the probes. Slices do not say which message
 * a call receives: it is found by what they say of it, and by who takes it.
 */
#ifndef XM_MPI_PROBES_H
#define XM_MPI_PROBES_H

#include "mpi_call.h"
#include "mpi_channels.h"

struct xm_probed;

/* Of one input. */
struct xm_probes {
	struct xm_probed *first;
	uint32_t count;
};

void xm_probes_free(struct xm_probes *probes);
/* False: it was received in what was read before, or there is no memory. */
bool xm_probes_add(struct xm_probes *probes, const struct xm_channel_key *key, int64_t bytes,
		   uint64_t number, const struct xm_end *end);
/* MPI_Imrecv: likely of the first message that this thread has taken. */
void xm_probes_bind(struct xm_probes *probes, const struct xm_call *call, const struct xm_end *end);
/* The number of the message that a call, or the work of a request, received; 0: none is known. */
uint64_t xm_probes_take(struct xm_probes *probes, const struct xm_call *call,
			const struct xm_end *end);
/* The call received one whose probe, by another thread, is perhaps still to be read. */
void xm_probes_ahead(struct xm_probes *probes, const struct xm_call *call,
		     const struct xm_end *end);

#endif
