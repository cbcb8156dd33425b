#include "mpi.h"

#include <inttypes.h>
#include <stdlib.h>

#include "mpi_call.h"
#include "mpi_waits.h"

#define MAX_WAITING 400000u /* sends or receives without their other end: 96 bytes each */
#define MAX_OPEN 8192u	    /* collectives that wait for members; a power of two */
#define MAX_MEMBERS (1u << 18)
#define MAX_REQUESTS 65536u /* that wait for their completion; a power of two */

struct channel_key {
	uint64_t comm;
	int32_t from, to, tag;
	uint32_t zero;
};

struct waiting {
	struct xm_end end;
	const struct xm_function *function;
	uint64_t k;
	uint32_t next;
};

/* One side is ahead of the other; its ends wait in their order. */
struct channel {
	uint64_t sent, received;
	uint32_t first, last; /* of waiting; XM_NONE: none */
};

/* A receive whose data have not arrived yet. */
struct request {
	struct channel_key key; /* from or tag -1 or less: known at its completion */
	uint64_t k;
	int64_t bytes;
	const struct xm_function *function;
	uint64_t number; /* of the request */
	uint32_t input;
	bool open, has_k, is_used;
};

struct xm_mpi {
	struct xm_mpi_sink sink;
	struct xm_map channel_map, comm_map;
	struct channel *channels;
	uint32_t channel_room;
	struct waiting *waiting;
	uint32_t waiting_count, waiting_room, free;
	/* a place for each (communicator, seq), and for each request: who comes to a place that is taken closes what was there */
	struct xm_collective open[MAX_OPEN];
	struct request requests[MAX_REQUESTS];
	uint32_t sweep, member_count;
	uint32_t *comm_sizes; /* members seen */
	bool knows_sizes;
	struct xm_map member_map; /* comm and input */
	uint32_t comm_room;
	struct xm_map seq_map; /* comm and input → counter, where the slices have no seq */
	uint64_t *seqs;
	uint32_t seq_room;
	struct xm_waits waits;
	uint64_t dropped;
};

const char *xm_comm_name(uint64_t comm, char *text)
{
	if (!comm)
		return "-";
	if (comm == XM_COMM_WORLD || comm == XM_COMM_SELF)
		return comm == XM_COMM_WORLD ? "world" : "self";
	(void)sprintf(text, "%016" PRIx64, comm);
	return text;
}

struct xm_mpi *xm_mpi_create(const struct xm_mpi_sink *sink)
{
	struct xm_mpi *mpi = calloc(1, sizeof(*mpi));

	if (!mpi)
		return NULL;
	mpi->sink = *sink;
	mpi->free = XM_NONE;
	xm_map_init(&mpi->channel_map, 1u << 20, 64u << 20);
	xm_map_init(&mpi->comm_map, 65536, 1u << 20);
	xm_map_init(&mpi->member_map, 1u << 20, 32u << 20);
	xm_map_init(&mpi->seq_map, 1u << 20, 32u << 20);
	return mpi;
}

/* Room for one more in an array that grows; false: no memory. */
static bool room_for(void *array, uint32_t *room, uint32_t count, size_t size)
{
	void **pointer = array, *grown;
	uint32_t wanted = *room ? *room : 64;

	if (count < *room)
		return true;
	while (wanted <= count)
		wanted *= 2;
	grown = realloc(*pointer, wanted * size);
	if (!grown)
		return false;
	memset((char *)grown + *room * size, 0, (wanted - *room) * size);
	*pointer = grown;
	*room = wanted;
	return true;
}

/* ---- messages ---- */

static struct channel *channel_of(struct xm_mpi *mpi, const struct channel_key *key)
{
	uint32_t known = mpi->channel_map.count, index = xm_map_add(&mpi->channel_map, key, sizeof(*key));

	if (index == XM_NONE || !room_for(&mpi->channels, &mpi->channel_room, index, sizeof(*mpi->channels)))
		return NULL;
	if (index == known)
		mpi->channels[index].first = mpi->channels[index].last = XM_NONE;
	return &mpi->channels[index];
}

static void wait_for_other(struct xm_mpi *mpi, struct channel *channel, const struct xm_function *function, const struct xm_end *end, uint64_t k)
{
	uint32_t index = mpi->free;
	struct waiting *waiting;

	if (index != XM_NONE) {
		mpi->free = mpi->waiting[index].next;
	} else {
		index = mpi->waiting_count;
		if (index >= MAX_WAITING || !room_for(&mpi->waiting, &mpi->waiting_room, index, sizeof(*mpi->waiting))) {
			mpi->dropped++;
			return;
		}
		mpi->waiting_count++;
	}
	waiting = &mpi->waiting[index];
	*waiting = (struct waiting){ *end, function, k, XM_NONE };
	/* receives of one channel can complete out of their order */
	if (channel->last != XM_NONE && mpi->waiting[channel->last].k > k) {
		uint32_t *link = &channel->first;

		while (mpi->waiting[*link].k < k)
			link = &mpi->waiting[*link].next;
		waiting->next = *link;
		*link = index;
		return;
	}
	if (channel->last == XM_NONE)
		channel->first = index;
	else
		mpi->waiting[channel->last].next = index;
	channel->last = index;
}

/* The one that waits as number k; NULL: it is not there. */
static struct waiting *take_waiting(struct xm_mpi *mpi, struct channel *channel, uint64_t k, uint32_t *ret_index)
{
	uint32_t index = channel->first, before = XM_NONE;

	for (unsigned n = 0; index != XM_NONE && mpi->waiting[index].k < k && n < 64; n++) {
		before = index;
		index = mpi->waiting[index].next;
	}
	if (index == XM_NONE || mpi->waiting[index].k != k)
		return NULL;
	if (before == XM_NONE)
		channel->first = mpi->waiting[index].next;
	else
		mpi->waiting[before].next = mpi->waiting[index].next;
	if (channel->last == index)
		channel->last = before;
	*ret_index = index;
	return &mpi->waiting[index];
}

/*
 * One end of the k-th message of a channel. All that wait there are of the other side, or all are of this one: k tells which, since the
 * other side's count is the number of those that came.
 */
static void one_end(struct xm_mpi *mpi, const struct channel_key *key, bool is_send, uint64_t k, const struct xm_function *function,
		    const struct xm_end *end)
{
	struct channel *channel = channel_of(mpi, key);
	struct waiting *other = NULL;
	uint32_t index;

	if (!channel) {
		mpi->dropped++;
		return;
	}
	if (k < (is_send ? channel->received : channel->sent))
		other = take_waiting(mpi, channel, k, &index);
	if (!other) {
		wait_for_other(mpi, channel, function, end, k);
		return;
	}
	if (mpi->sink.message)
		mpi->sink.message(mpi->sink.user, key->comm, is_send ? function : other->function, is_send ? other->function : function,
				  is_send ? end : &other->end, is_send ? &other->end : end);
	other->next = mpi->free;
	mpi->free = index;
}

static void send(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	struct channel_key key = { call->comm, end->rank, (int32_t)call->peer, (int32_t)call->tag, 0 };
	struct channel *channel;

	if (call->peer < 0)
		return;
	channel = channel_of(mpi, &key);
	end->bytes = call->bytes;
	if (channel)
		one_end(mpi, &key, true, channel->sent++, call->function, end);
}

static void receive(struct xm_mpi *mpi, const struct xm_call *call, int64_t peer, int64_t tag, int64_t bytes, struct xm_end *end)
{
	struct channel_key key = { call->comm, (int32_t)peer, end->rank, (int32_t)tag, 0 };
	struct channel *channel;

	if (peer < 0)
		return;
	channel = channel_of(mpi, &key);
	end->bytes = bytes;
	if (channel)
		one_end(mpi, &key, false, channel->received++, call->function, end);
}

static struct request *place_of(struct xm_mpi *mpi, uint64_t number, uint32_t input)
{
	return &mpi->requests[(number + input * 0x9e3779b1u) & (MAX_REQUESTS - 1)];
}

static void post(struct xm_mpi *mpi, const struct xm_call *call, const struct xm_end *end)
{
	struct request *request = place_of(mpi, call->request, end->input->index);
	struct channel *channel;

	/* its completion may have been read before */
	if (!call->has_request || (request->is_used && request->number == call->request && request->input == end->input->index))
		return;
	mpi->dropped += request->open;
	*request = (struct request){ .key = { call->comm, (int32_t)call->peer, end->rank, (int32_t)call->tag, 0 },
				     .bytes = call->bytes, .function = call->function, .number = call->request,
				     .input = end->input->index, .open = true, .is_used = true };
	if (call->peer < 0 || call->tag < 0)
		return;
	channel = channel_of(mpi, &request->key);
	if (channel) {
		request->k = channel->received++;
		request->has_k = true;
	}
}

static void complete_one(struct xm_mpi *mpi, const struct xm_call *call, uint64_t number, struct xm_end *end)
{
	struct request *request = place_of(mpi, number, end->input->index);
	struct channel *channel;

	if (!request->is_used || request->number != number || request->input != end->input->index) {
		if (!call->is_work)
			return;
		/* all that is wanted stands in the work itself */
		post(mpi, call, end);
	}
	if (!request->open)
		return;
	request->open = false;
	if (!request->has_k) {
		if (call->peer >= 0)
			request->key.from = (int32_t)call->peer;
		if (call->tag >= 0)
			request->key.tag = (int32_t)call->tag;
		if (request->key.from < 0 || request->key.tag < 0)
			return;
		channel = channel_of(mpi, &request->key);
		if (!channel)
			return;
		request->k = channel->received++;
	}
	end->bytes = call->bytes >= 0 ? call->bytes : request->bytes;
	one_end(mpi, &request->key, false, request->k, call->function, end);
}

static void complete(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	const char *p = xm_first(call->requests);
	struct xm_text value;
	int64_t number;

	if (call->has_request)
		complete_one(mpi, call, call->request, end);
	if (call->requests.n > 1 && call->requests.p[0] == '[')
		while (xm_element(&p, call->requests.p + call->requests.n, &value))
			if (xm_integer(value, &number))
				complete_one(mpi, call, (uint64_t)number, end);
}

/* The work of a request: of a receive, its data have arrived at its end; a persistent one is sent, or received, each time that it is started. */
static void take_work(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	xm_waits_find(&mpi->waits, end);
	if (call->function->role == XM_IRECEIVE && call->has_request)
		complete_one(mpi, call, call->request, end);
	else if (call->function->role == XM_RECEIVE_INIT)
		receive(mpi, call, call->peer, call->tag, call->bytes, end);
	else if (call->function->role == XM_SEND_INIT)
		send(mpi, call, end);
}

/* ---- collectives ---- */

static uint32_t comm_index(struct xm_mpi *mpi, uint64_t comm)
{
	uint32_t index = xm_map_add(&mpi->comm_map, &comm, sizeof(comm));

	return index != XM_NONE && room_for(&mpi->comm_sizes, &mpi->comm_room, index, sizeof(*mpi->comm_sizes)) ? index : XM_NONE;
}

static void close_collective(struct xm_mpi *mpi, struct xm_collective *collective)
{
	if (!collective->room)
		return;
	if (collective->count > 1 && mpi->sink.collective)
		mpi->sink.collective(mpi->sink.user, collective);
	mpi->member_count -= collective->count;
	free(collective->members);
	memset(collective, 0, sizeof(*collective));
}

static uint64_t seq_of(struct xm_mpi *mpi, const struct xm_call *call, const struct xm_end *end)
{
	uint64_t key[2] = { call->comm, end->input->index };
	uint32_t index;

	if (call->has_seq)
		return call->seq;
	index = xm_map_add(&mpi->seq_map, key, sizeof(key));
	if (index == XM_NONE || !room_for(&mpi->seqs, &mpi->seq_room, index, sizeof(*mpi->seqs)))
		return 0;
	return mpi->seqs[index]++;
}

static void join(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	uint64_t seq = seq_of(mpi, call, end), member[2] = { call->comm, end->input->index };
	uint32_t comm = comm_index(mpi, call->comm), known = mpi->member_map.count;
	struct xm_collective *collective = &mpi->open[(seq + call->comm * 0x9e3779b1u) & (MAX_OPEN - 1)];

	if (comm == XM_NONE || call->comm == XM_COMM_SELF || !call->comm)
		return;
	if (xm_map_add(&mpi->member_map, member, sizeof(member)) == known)
		mpi->comm_sizes[comm]++;
	/* another one's place; or another job's of the same name, or a wrong program */
	if (collective->room && (collective->comm != call->comm || collective->seq != seq || collective->function != call->function))
		close_collective(mpi, collective);
	for (uint32_t n = 0; mpi->member_count >= MAX_MEMBERS && n < MAX_OPEN; n++, mpi->sweep++)
		close_collective(mpi, &mpi->open[mpi->sweep % MAX_OPEN]);
	if (collective->count == collective->room) {
		uint32_t room = collective->room ? 2 * collective->room : 4;
		struct xm_end *grown = realloc(collective->members, room * sizeof(*grown));

		if (!grown) {
			mpi->dropped++;
			return;
		}
		collective->members = grown;
		collective->room = room;
	}
	if (!collective->count) {
		collective->comm = call->comm;
		collective->seq = seq;
		collective->function = call->function;
		collective->root = (int32_t)call->root;
	}
	end->bytes = call->bytes;
	collective->members[collective->count++] = *end;
	mpi->member_count++;
	if (mpi->knows_sizes && collective->count == mpi->comm_sizes[comm])
		close_collective(mpi, collective);
}

void xm_mpi_learn(struct xm_mpi *mpi, const struct xm_mpi *before)
{
	for (uint32_t i = 0; i < before->comm_map.count; i++) {
		size_t length;
		uint64_t comm;

		memcpy(&comm, xm_map_key(&before->comm_map, i, &length), sizeof(comm));
		if (comm_index(mpi, comm) == i)
			mpi->comm_sizes[i] = before->comm_sizes[i];
	}
	for (uint32_t i = 0; i < before->member_map.count; i++) {
		size_t length;
		const void *key = xm_map_key(&before->member_map, i, &length);

		(void)xm_map_add(&mpi->member_map, key, length);
	}
	mpi->knows_sizes = true;
}

void xm_mpi_take(struct xm_mpi *mpi, struct xm_input *input, const struct xm_event *event, const struct xm_process *process, int64_t start,
		 int64_t stop)
{
	struct xm_end end = { .input = input, .out_pid = process->out_pid, .start = start, .end = stop, .bytes = -1, .rank = (int32_t)input->rank };
	struct xm_call call;

	if (event->ph.p[1] != 'X' || input->rank < 0 || !xm_call_of(event, &call))
		return;
	end.tid = xm_tid(input, process, event);
	if (call.is_work) {
		take_work(mpi, &call, &end);
		return;
	}
	if (mpi->sink.call) {
		end.bytes = call.bytes;
		mpi->sink.call(mpi->sink.user, call.comm, call.function, &end);
	}
	switch (call.function->role) {
	case XM_OTHER:
	case XM_SEND_INIT:
	case XM_RECEIVE_INIT:
		break;
	case XM_SEND:
		send(mpi, &call, &end);
		break;
	case XM_RECEIVE:
		receive(mpi, &call, call.peer, call.tag, call.bytes, &end);
		break;
	case XM_SENDRECV:
		send(mpi, &call, &end);
		receive(mpi, &call, call.recv_peer, call.recv_tag, call.recv_bytes, &end);
		break;
	case XM_IRECEIVE:
		post(mpi, &call, &end);
		break;
	case XM_COMPLETE:
		xm_waits_add(&mpi->waits, call.function, &end);
		complete(mpi, &call, &end);
		break;
	case XM_ALL:
	case XM_FROM_ROOT:
	case XM_TO_ROOT:
	case XM_PARTLY:
		join(mpi, &call, &end);
		break;
	}
}

uint64_t xm_mpi_finish(struct xm_mpi *mpi, uint64_t *ret_dropped)
{
	uint64_t alone = mpi->waiting_count;

	for (uint32_t i = 0; i < MAX_OPEN; i++)
		close_collective(mpi, &mpi->open[i]);
	for (uint32_t index = mpi->free; index != XM_NONE; index = mpi->waiting[index].next)
		alone--;
	*ret_dropped = mpi->dropped;
	return alone;
}

void xm_mpi_free(struct xm_mpi *mpi)
{
	if (!mpi)
		return;
	for (uint32_t i = 0; i < MAX_OPEN; i++)
		free(mpi->open[i].members);
	xm_map_free(&mpi->channel_map);
	xm_map_free(&mpi->comm_map);
	xm_map_free(&mpi->member_map);
	xm_map_free(&mpi->seq_map);
	free(mpi->channels);
	free(mpi->waiting);
	free(mpi->comm_sizes);
	free(mpi->seqs);
	free(mpi->waits.of_input);
	free(mpi);
}
