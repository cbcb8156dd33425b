#include "mpi_call.h"

static const struct xm_function functions[] = {
	{ "Send", XM_SEND },
	{ "Ssend", XM_SEND },
	{ "Bsend", XM_SEND },
	{ "Rsend", XM_SEND },
	{ "Isend", XM_SEND },
	{ "Issend", XM_SEND },
	{ "Ibsend", XM_SEND },
	{ "Irsend", XM_SEND },
	{ "Recv", XM_RECEIVE },
	{ "Mrecv", XM_RECEIVE },
	{ "Irecv", XM_IRECEIVE },
	{ "Imrecv", XM_IRECEIVE },
	{ "Send_init", XM_SEND_INIT },
	{ "Ssend_init", XM_SEND_INIT },
	{ "Bsend_init", XM_SEND_INIT },
	{ "Rsend_init", XM_SEND_INIT },
	{ "Recv_init", XM_RECEIVE_INIT },
	{ "Start", XM_START },
	{ "Startall", XM_START },
	{ "Sendrecv", XM_SENDRECV },
	{ "Sendrecv_replace", XM_SENDRECV },
	{ "Cancel", XM_CANCEL },
	{ "Wait", XM_COMPLETE },
	{ "Waitall", XM_COMPLETE },
	{ "Waitany", XM_COMPLETE },
	{ "Waitsome", XM_COMPLETE },
	{ "Test", XM_COMPLETE },
	{ "Testall", XM_COMPLETE },
	{ "Testany", XM_COMPLETE },
	{ "Testsome", XM_COMPLETE },
	{ "Barrier", XM_ALL },
	{ "Allreduce", XM_ALL },
	{ "Allgather", XM_ALL },
	{ "Allgatherv", XM_ALL },
	{ "Alltoall", XM_ALL },
	{ "Alltoallv", XM_ALL },
	{ "Alltoallw", XM_ALL },
	{ "Reduce_scatter", XM_ALL },
	{ "Reduce_scatter_block", XM_ALL },
	{ "Bcast", XM_FROM_ROOT },
	{ "Scatter", XM_FROM_ROOT },
	{ "Scatterv", XM_FROM_ROOT },
	{ "Reduce", XM_TO_ROOT },
	{ "Gather", XM_TO_ROOT },
	{ "Gatherv", XM_TO_ROOT },
};
static const struct xm_function others = { "(other)", XM_OTHER };

static uint64_t comm_of(struct xm_text value)
{
	struct xm_text text = xm_inside(value);
	uint64_t number = 0;

	if (xm_is(text, "world"))
		return XM_COMM_WORLD;
	if (xm_is(text, "self"))
		return XM_COMM_SELF;
	for (size_t i = 0; i < text.n && i < 16; i++) {
		char c = text.p[i];

		number = number << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return number;
}

static bool take_number(struct xm_text value, uint64_t *ret)
{
	int64_t number;

	if (!xm_integer(value, &number))
		return false;
	*ret = (uint64_t)number;
	return true;
}

static void take_argument(struct xm_call *call, struct xm_text key, struct xm_text value)
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
		/* unitrace's */
		{ "dst", offsetof(struct xm_call, peer) },
		{ "dtag", offsetof(struct xm_call, tag) },
		{ "dsize", offsetof(struct xm_call, bytes) },
		{ "src", offsetof(struct xm_call, recv_peer) },
		{ "stag", offsetof(struct xm_call, recv_tag) },
		{ "ssize", offsetof(struct xm_call, recv_bytes) },
	};

	if (xm_is(key, "comm"))
		call->comm = comm_of(value);
	else if (xm_is(key, "seq"))
		call->has_seq = take_number(value, &call->seq) && call->seq <= INT64_MAX;
	else if (xm_is(key, "request"))
		call->has_request = take_number(value, &call->request);
	else if (xm_is(key, "cancelled"))
		call->is_cancelled = xm_is(value, "true");
	else if (xm_is(key, "requests"))
		call->requests = value;
	else
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (xm_is(key, numbers[i].name))
				(void)xm_integer(value, (int64_t *)((char *)call + numbers[i].offset));
}

bool xm_call_of(const struct xm_event *event, struct xm_call *call)
{
	struct xm_text key, value, inside = xm_inside(event->name);
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
	call->function = &others;
	call->is_work = xm_is(event->cat, "\"mpi_request\"");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strlen(functions[i].name) == length - 4 && !memcmp(name + 4, functions[i].name, length - 4))
			call->function = &functions[i];
	call->peer = call->recv_peer = call->root = -1;
	call->tag = call->recv_tag = -1;
	call->bytes = call->recv_bytes = -1;
	if (unitrace)
		call->comm = XM_COMM_WORLD; /* which one it was is not said */
	if (event->args.n && *p == '{') {
		p++;
		while (xm_member(&p, event->args.p + event->args.n, &key, &value))
			take_argument(call, key, value);
	}
	if (unitrace && (call->function->role == XM_RECEIVE || call->function->role == XM_IRECEIVE)) {
		call->peer = call->recv_peer;
		call->tag = call->recv_tag;
		call->bytes = call->recv_bytes;
	}
	return true;
}
