#include "mpi_call.h"

#include <inttypes.h>
#include <pthread.h>

static const struct xm_function functions[] = {
	{ "Send", XM_SEND, XM_NO_FLOW },
	{ "Ssend", XM_SEND, XM_NO_FLOW },
	{ "Bsend", XM_SEND, XM_NO_FLOW },
	{ "Rsend", XM_SEND, XM_NO_FLOW },
	{ "Isend", XM_SEND, XM_NO_FLOW },
	{ "Issend", XM_SEND, XM_NO_FLOW },
	{ "Ibsend", XM_SEND, XM_NO_FLOW },
	{ "Irsend", XM_SEND, XM_NO_FLOW },
	{ "Recv", XM_RECEIVE, XM_NO_FLOW },
	{ "Mrecv", XM_MATCHED, XM_NO_FLOW },
	{ "Irecv", XM_IRECEIVE, XM_NO_FLOW },
	{ "Imrecv", XM_IMATCHED, XM_NO_FLOW },
	{ "Mprobe", XM_PROBE, XM_NO_FLOW },
	{ "Improbe", XM_PROBE, XM_NO_FLOW },
	{ "Send_init", XM_SEND_INIT, XM_NO_FLOW },
	{ "Ssend_init", XM_SEND_INIT, XM_NO_FLOW },
	{ "Bsend_init", XM_SEND_INIT, XM_NO_FLOW },
	{ "Rsend_init", XM_SEND_INIT, XM_NO_FLOW },
	{ "Psend_init", XM_SEND_INIT, XM_NO_FLOW },
	{ "Recv_init", XM_RECEIVE_INIT, XM_NO_FLOW },
	{ "Precv_init", XM_RECEIVE_INIT, XM_NO_FLOW },
	{ "Start", XM_START, XM_NO_FLOW },
	{ "Startall", XM_START, XM_NO_FLOW },
	{ "Sendrecv", XM_SENDRECV, XM_NO_FLOW },
	{ "Sendrecv_replace", XM_SENDRECV, XM_NO_FLOW },
	{ "Isendrecv", XM_ISENDRECV, XM_NO_FLOW },
	{ "Isendrecv_replace", XM_ISENDRECV, XM_NO_FLOW },
	{ "Cancel", XM_CANCEL, XM_NO_FLOW },
	{ "Wait", XM_COMPLETE, XM_NO_FLOW },
	{ "Waitall", XM_COMPLETE, XM_NO_FLOW },
	{ "Waitany", XM_COMPLETE, XM_NO_FLOW },
	{ "Waitsome", XM_COMPLETE, XM_NO_FLOW },
	{ "Test", XM_TEST, XM_NO_FLOW },
	{ "Testall", XM_TEST, XM_NO_FLOW },
	{ "Testany", XM_TEST, XM_NO_FLOW },
	{ "Testsome", XM_TEST, XM_NO_FLOW },
/* each with the one that does not block, and the persistent one */
#define COLLECTIVE(name, small, flow)                                   \
	{ name, XM_COLLECTIVE, flow }, { "I" small, XM_STARTED, flow }, \
	{                                                               \
		name "_init", XM_COLLECTIVE_INIT, flow                  \
	}
	COLLECTIVE("Barrier", "barrier", XM_BARRIER),
	COLLECTIVE("Allreduce", "allreduce", XM_ALL),
	COLLECTIVE("Allgather", "allgather", XM_ALL),
	COLLECTIVE("Alltoall", "alltoall", XM_ALL),
	COLLECTIVE("Reduce_scatter_block", "reduce_scatter_block", XM_ALL),
	COLLECTIVE("Allgatherv", "allgatherv", XM_EACH),
	COLLECTIVE("Bcast", "bcast", XM_FROM_ROOT),
	COLLECTIVE("Scatter", "scatter", XM_FROM_ROOT),
	COLLECTIVE("Scatterv", "scatterv", XM_FROM_ROOT),
	COLLECTIVE("Reduce", "reduce", XM_TO_ROOT),
	COLLECTIVE("Gather", "gather", XM_TO_ROOT),
	COLLECTIVE("Gatherv", "gatherv", XM_TO_ROOT),
	COLLECTIVE("Scan", "scan", XM_LOWER),
	COLLECTIVE("Exscan", "exscan", XM_LOWER),
	COLLECTIVE("Alltoallv", "alltoallv", XM_LISTED),
	COLLECTIVE("Alltoallw", "alltoallw", XM_LISTED),
	COLLECTIVE("Reduce_scatter", "reduce_scatter", XM_LISTED),
	COLLECTIVE("Neighbor_allgather", "neighbor_allgather", XM_LISTED),
	COLLECTIVE("Neighbor_allgatherv", "neighbor_allgatherv", XM_LISTED),
	COLLECTIVE("Neighbor_alltoall", "neighbor_alltoall", XM_LISTED),
	COLLECTIVE("Neighbor_alltoallv", "neighbor_alltoallv", XM_LISTED),
	COLLECTIVE("Neighbor_alltoallw", "neighbor_alltoallw", XM_LISTED),
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))
#define PLACES	  512u /* a power of two: where a name is looked for */
_Static_assert(2 * FUNCTIONS < PLACES && FUNCTIONS <= XM_FUNCTIONS,
	       "searches end, and all have numbers");
static const struct xm_function others = { "(other)", XM_OTHER, XM_NO_FLOW };

uint32_t xm_function_number(const struct xm_function *function)
{
	return (uint32_t)(function - functions);
}

const struct xm_function *xm_function_at(uint32_t number)
{
	return number < FUNCTIONS ? &functions[number] : NULL;
}

static size_t place_of(const char *name, size_t length)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x01000193u;
	return hash >> 7 & (PLACES - 1);
}

static const struct xm_function *places[PLACES];
static pthread_once_t placed = PTHREAD_ONCE_INIT;

static void place_all(void)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		size_t at = place_of(functions[i].name, strlen(functions[i].name));

		while (places[at])
			at = (at + 1) & (PLACES - 1);
		places[at] = &functions[i];
	}
}

/* By the name behind MPI_; those with large counts are the same ones. */
static const struct xm_function *function_of(const char *name, size_t length)
{
	(void)pthread_once(&placed, place_all);
	if (length > 2 && !memcmp(name + length - 2, "_c", 2))
		length -= 2;
	for (size_t at = place_of(name, length); places[at]; at = (at + 1) & (PLACES - 1))
		if (strlen(places[at]->name) == length && !memcmp(places[at]->name, name, length))
			return places[at];
	return &others;
}

uint64_t xm_comm_of(struct xf_text value)
{
	struct xf_text text = xf_inside(value);
	uint64_t number = 0;

	if (xf_is(text, "world"))
		return XM_COMM_WORLD;
	if (xf_is(text, "self"))
		return XM_COMM_SELF;
	for (size_t i = 0; i < text.n && i < 16; i++) {
		char c = text.p[i];

		number = number << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return number;
}

static bool take_number(struct xf_text value, uint64_t *ret)
{
	int64_t number;

	if (!xf_integer(value, &number))
		return false;
	*ret = (uint64_t)number;
	return true;
}

static void take_argument(struct xm_call *call, struct xf_text key, struct xf_text value)
{
	static const struct {
		const char *name;
		size_t offset;
	} numbers[] = {
		{ "peer", offsetof(struct xm_call, peer) },
		{ "tag", offsetof(struct xm_call, tag) },
		{ "bytes", offsetof(struct xm_call, bytes) },
		{ "root", offsetof(struct xm_call, root) },
		{ "recv_peer", offsetof(struct xm_call, recv_peer) },
		{ "recv_tag", offsetof(struct xm_call, recv_tag) },
		{ "recv_bytes", offsetof(struct xm_call, recv_bytes) },
		{ "started_by", offsetof(struct xm_call, started_by) },
		{ "ended_by", offsetof(struct xm_call, ended_by) },
		/* unitrace's */
		{ "dst", offsetof(struct xm_call, peer) },
		{ "dtag", offsetof(struct xm_call, tag) },
		{ "dsize", offsetof(struct xm_call, bytes) },
		{ "src", offsetof(struct xm_call, recv_peer) },
		{ "stag", offsetof(struct xm_call, recv_tag) },
		{ "ssize", offsetof(struct xm_call, recv_bytes) },
	};

	if (xf_is(key, "comm"))
		call->comm = xm_comm_of(value);
	else if (xf_is(key, "seq"))
		call->has_seq = take_number(value, &call->seq) && call->seq <= INT64_MAX;
	else if (xf_is(key, "request"))
		call->has_request = take_number(value, &call->request);
	else if (xf_is(key, "cancelled"))
		call->is_cancelled = xf_is(value, "true");
	else if (xf_is(key, "unfinished"))
		call->is_cut = xf_is(value, "true");
	else if (xf_is(key, "result"))
		call->has_failed = true;
	else if (xf_is(key, "error"))
		call->is_truncated = xf_is(value, "\"MPI_ERR_TRUNCATE\"");
	else if (xf_is(key, "from"))
		call->from = xf_inside(value);
	else if (xf_is(key, "requests"))
		call->requests = value;
	else
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (xf_is(key, numbers[i].name))
				(void)xf_integer(value,
						 (int64_t *)((char *)call + numbers[i].offset));
}

bool xm_call_of(const struct xf_event *event, struct xm_call *call)
{
	struct xf_text key, value, inside = xf_inside(event->name);
	const char *name = inside.p, *p = event->args.p;
	size_t length = inside.n;
	bool unitrace = false;

	if (length < 5 || memcmp(name, "MPI", 3))
		return false;
	if (length > 9 && !memcmp(name, "MPI::MPI_", 9)) {
		unitrace = true;
		name += 5;
		length -= 5;
	}
	if (name[3] != '_')
		return false;
	memset(call, 0, sizeof(*call));
	call->function = function_of(name + 4, length - 4);
	call->is_work = xf_is(event->cat, "\"mpi_request\"");
	call->peer = call->recv_peer = call->root = -1;
	call->tag = call->recv_tag = -1;
	call->started_by = call->ended_by = -1;
	call->bytes = call->recv_bytes = -1;
	if (unitrace)
		call->comm = XM_COMM_WORLD; /* which one it was is not said */
	if (event->args.n && *p == '{') {
		p++;
		while (xf_member(&p, event->args.p + event->args.n, &key, &value))
			take_argument(call, key, value);
	}
	if (unitrace &&
	    (call->function->role == XM_RECEIVE || call->function->role == XM_IRECEIVE ||
	     call->function->role == XM_MATCHED)) {
		call->peer = call->recv_peer;
		call->tag = call->recv_tag;
		call->bytes = call->recv_bytes;
	}
	return true;
}

const char *xm_comm_name(uint64_t comm, char *text)
{
	if (!comm)
		return "-";
	if (comm == XM_COMM_WORLD || comm == XM_COMM_SELF)
		return comm == XM_COMM_WORLD ? "world" : "self";
	(void)sprintf(text, "%016" PRIx64, comm);
	return text;
}
