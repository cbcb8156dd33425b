/*
 * What the slice of an MPI call says: xstrace's arguments, and unitrace's.
 */
#ifndef XM_MPI_CALL_H
#define XM_MPI_CALL_H

#include "mpi.h"

struct xm_call {
	const struct xm_function *function;
	uint64_t comm, seq, request;
	int64_t peer, tag, bytes, root, recv_peer, recv_tag, recv_bytes;
	bool has_seq, has_request, is_cancelled;
	bool is_work; /* no call: what lies between the call that began a request and its completion */
	struct xm_text requests;
};

/* Fills *call from the slice; false: no MPI call. */
bool xm_call_of(const struct xm_event *event, struct xm_call *call);

#endif
