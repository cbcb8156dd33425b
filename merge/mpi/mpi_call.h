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
	int64_t started_by, ended_by; /* of work: threads; -1: not said */
	bool has_seq, has_request, is_cancelled, is_cut, has_failed;
	bool is_truncated; /* a receive that failed: its message was longer, and is gone */
	/* no call: what lies between the call that began a request and its completion */
	bool is_work;
	struct xf_text requests, from;
};

/* Fills *call from the slice; false: no MPI call. */
bool xm_call_of(const struct xf_event *event, struct xm_call *call);

/* Functions that messages and collectives are made by are numbered from 0 to XM_FUNCTIONS - 1. */
#define XM_FUNCTIONS 128u
uint32_t xm_function_number(const struct xm_function *function);
const struct xm_function *xm_function_at(uint32_t number);

/* A communicator as text: its identity. */
uint64_t xm_comm_of(struct xf_text value);
/* As text: "world", "self" or 16 hex digits. */
const char *xm_comm_name(uint64_t comm, char *text);

#endif
