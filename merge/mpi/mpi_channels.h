/*
 * Messages of the same communicator, sender, receiver and tag: the k-th that was sent is the k-th
 * that was posted a receive for. Ends wait here for their other end.
 */
#ifndef XM_MPI_CHANNELS_H
#define XM_MPI_CHANNELS_H

#include "mpi.h"

struct xm_channel_key {
	uint64_t comm;
	int32_t from, to, tag; /* -1: not known yet */
	/*
	 * Partitioned ones go from one request to another: which of these it is, counted as they
	 * were made, from 1. 0: all other messages.
	 */
	uint32_t request;
};

#define XM_REQUESTS_MADE    UINT32_MAX	      /* the channel in which they are counted */
#define XM_REQUEST_NOT_SEEN (UINT32_MAX - 1u) /* nobody has seen it made */

struct xm_channels {
	const struct xm_mpi_sink *sink;
	struct xf_map map;
	struct channel *all;
	uint32_t room;
	struct waiting *waiting;
	uint32_t waiting_count, waiting_room, free;
	uint64_t dropped;
};

#define XM_NO_NUMBER UINT64_MAX

void xm_channels_init(struct xm_channels *channels, const struct xm_mpi_sink *sink);
void xm_channels_free(struct xm_channels *channels);
/* The number of the next send, or receive; XM_NO_NUMBER: there is no room. */
uint64_t xm_channels_next(struct xm_channels *channels, const struct xm_channel_key *key,
			  bool is_send);
/* Receives that have their number. */
uint64_t xm_channels_received(struct xm_channels *channels, const struct xm_channel_key *key);
/* Receives from number k on, none of which has come to its end, are to get their numbers again. */
void xm_channels_take_back(struct xm_channels *channels, const struct xm_channel_key *key,
			   uint64_t k);
/* One end of the k-th message: goes to the sink with the other one, or waits for it. */
void xm_channels_end(struct xm_channels *channels, const struct xm_channel_key *key, bool is_send,
		     uint64_t k, const struct xm_function *function, const struct xm_end *end);
/* The next send or receive, which is complete. */
void xm_channels_next_end(struct xm_channels *channels, const struct xm_channel_key *key,
			  bool is_send, const struct xm_function *function,
			  const struct xm_end *end);
/* Ends that wait. */
uint64_t xm_channels_alone(const struct xm_channels *channels);

#endif
