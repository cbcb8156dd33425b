#include "mpi_probes.h"

#include <stdlib.h>

#define MAX_PROBED 256u /* messages of one input; the oldest is forgotten */

struct xm_probed {
	struct xm_probed *next;
	struct xm_channel_key key;
	int64_t bytes, tid;
	uint64_t number;   /* 0: received, and its probe is still to come */
	uint64_t request;  /* of the MPI_Imrecv that is likely its own; 0: none */
	int64_t receiving; /* without a number: when that began */
};

static void take_out(struct xm_probes *probes, struct xm_probed **link)
{
	struct xm_probed *probed = *link;

	*link = probed->next;
	probes->count--;
	free(probed);
}

void xm_probes_free(struct xm_probes *probes)
{
	while (probes->first)
		take_out(probes, &probes->first);
}

static bool append(struct xm_probes *probes, const struct xm_probed *what)
{
	struct xm_probed *probed = malloc(sizeof(*probed)), **link;

	if (!probed)
		return false;
	if (probes->count == MAX_PROBED)
		take_out(probes, &probes->first);
	*probed = *what;
	probed->next = NULL;
	for (link = &probes->first; *link; link = &(*link)->next)
		;
	*link = probed;
	probes->count++;
	return true;
}

bool xm_probes_add(struct xm_probes *probes, const struct xm_channel_key *key, int64_t bytes,
		   uint64_t number, const struct xm_end *end)
{
	for (struct xm_probed **link = &probes->first; *link; link = &(*link)->next)
		if (!(*link)->number && (*link)->bytes == bytes && (*link)->receiving >= end->end &&
		    !memcmp(&(*link)->key, key, sizeof(*key))) {
			take_out(probes, link);
			return false;
		}
	return append(probes,
		      &(struct xm_probed){
			      .key = *key, .bytes = bytes, .tid = end->tid, .number = number });
}

void xm_probes_bind(struct xm_probes *probes, const struct xm_call *call, const struct xm_end *end)
{
	for (struct xm_probed *probed = probes->first; call->has_request && probed;
	     probed = probed->next)
		if (probed->number && !probed->request && probed->tid == end->tid &&
		    probed->key.comm == call->comm) {
			probed->request = call->request;
			return;
		}
}

/* How much speaks for it; 0: it is another one. */
static int likeness(const struct xm_probed *probed, const struct xm_call *call,
		    const struct xm_end *end)
{
	uint64_t request = call->has_request ? call->request : 0;

	if (!probed->number || probed->key.comm != call->comm ||
	    (call->peer >= 0 && probed->key.from != call->peer) ||
	    (call->tag >= 0 && probed->key.tag != call->tag))
		return 0;
	/* what was cut is longer than what was received of it */
	if (call->is_truncated ? probed->bytes <= call->bytes : probed->bytes != call->bytes)
		return 0;
	return 1 + 2 * (probed->request == request) + (probed->tid == end->started_by);
}

uint64_t xm_probes_take(struct xm_probes *probes, const struct xm_call *call,
			const struct xm_end *end)
{
	struct xm_probed **best = NULL;
	uint64_t number;
	int most = 0, likely;

	for (struct xm_probed **link = &probes->first; *link; link = &(*link)->next) {
		likely = likeness(*link, call, end);
		if (likely > most) {
			most = likely;
			best = link;
		}
	}
	if (!best)
		return 0;
	number = (*best)->number;
	take_out(probes, best);
	return number;
}

void xm_probes_ahead(struct xm_probes *probes, const struct xm_call *call, const struct xm_end *end)
{
	struct xm_channel_key key = { call->comm, (int32_t)call->peer, end->rank,
				      (int32_t)call->tag, 0 };

	(void)append(probes, &(struct xm_probed){
				     .key = key, .bytes = call->bytes, .receiving = end->start });
}
