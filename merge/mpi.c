#include "mpi.h"

#include <inttypes.h>
#include <stdlib.h>

#include "mpi_receives.h"
#include "mpi_waits.h"

#define MAX_OPEN 8192u /* collectives that wait for members; a power of two */
#define MAX_MEMBERS (1u << 18)

struct xm_mpi {
	struct xm_mpi_sink sink;
	struct xm_channels channels;
	struct xm_receives *receives;
	struct xm_waits waits;
	/* a place for each (communicator, seq): who comes to a place that is taken closes what was there */
	struct xm_collective open[MAX_OPEN];
	struct xm_map comm_map;
	uint32_t sweep, member_count;
	uint32_t *comm_sizes; /* members seen */
	bool knows_sizes;
	struct xm_map member_map; /* comm and input */
	uint32_t comm_room;
	struct xm_map seq_map; /* comm and input → counter, where the slices have no seq */
	uint64_t *seqs;
	uint32_t seq_room;
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
	xm_channels_init(&mpi->channels, &mpi->sink);
	mpi->receives = xm_receives_create(&mpi->channels);
	if (!mpi->receives) {
		free(mpi);
		return NULL;
	}
	xm_map_init(&mpi->comm_map, 65536, 1u << 20);
	xm_map_init(&mpi->member_map, 1u << 20, 32u << 20);
	xm_map_init(&mpi->seq_map, 1u << 20, 32u << 20);
	return mpi;
}

static void send(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	struct xm_channel_key key = { call->comm, end->rank, (int32_t)call->peer, (int32_t)call->tag, 0 };

	end->bytes = call->bytes;
	if (call->peer >= 0)
		xm_channels_next_end(&mpi->channels, &key, true, call->function, end);
}

/* The work of a request: of a receive, its data have arrived at its end. */
static void take_work(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	xm_waits_find(&mpi->waits, end);
	if (call->function->role == XM_IRECEIVE && call->has_request)
		xm_receives_complete(mpi->receives, call, end);
	else if (call->function->role == XM_RECEIVE_INIT || call->function->role == XM_SEND_INIT)
		xm_receives_work(mpi->receives, call, end);
}

/* ---- collectives ---- */

static uint32_t comm_index(struct xm_mpi *mpi, uint64_t comm)
{
	uint32_t index = xm_map_add(&mpi->comm_map, &comm, sizeof(comm));

	return index != XM_NONE && xm_room_for(&mpi->comm_sizes, &mpi->comm_room, index, sizeof(*mpi->comm_sizes)) ? index : XM_NONE;
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
	if (index == XM_NONE || !xm_room_for(&mpi->seqs, &mpi->seq_room, index, sizeof(*mpi->seqs)))
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
		break;
	case XM_SEND_INIT:
	case XM_RECEIVE_INIT:
		xm_receives_init(mpi->receives, &call, &end);
		break;
	case XM_START:
		xm_receives_start(mpi->receives, &call, &end);
		break;
	case XM_SEND:
		send(mpi, &call, &end);
		break;
	case XM_RECEIVE:
		xm_receives_blocking(mpi->receives, &call, call.peer, call.tag, call.bytes, &end);
		break;
	case XM_SENDRECV:
		send(mpi, &call, &end);
		xm_receives_blocking(mpi->receives, &call, call.recv_peer, call.recv_tag, call.recv_bytes, &end);
		break;
	case XM_IRECEIVE:
		xm_receives_post(mpi->receives, &call, &end);
		break;
	case XM_COMPLETE:
		xm_waits_add(&mpi->waits, call.function, &end);
		xm_receives_complete(mpi->receives, &call, &end);
		break;
	case XM_CANCEL:
		xm_receives_cancel(mpi->receives, &call, &end);
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
	xm_receives_finish(mpi->receives);
	for (uint32_t i = 0; i < MAX_OPEN; i++)
		close_collective(mpi, &mpi->open[i]);
	*ret_dropped = mpi->dropped + mpi->channels.dropped + xm_receives_dropped(mpi->receives);
	return xm_channels_alone(&mpi->channels);
}

void xm_mpi_free(struct xm_mpi *mpi)
{
	if (!mpi)
		return;
	for (uint32_t i = 0; i < MAX_OPEN; i++)
		free(mpi->open[i].members);
	xm_channels_free(&mpi->channels);
	xm_receives_free(mpi->receives);
	xm_map_free(&mpi->comm_map);
	xm_map_free(&mpi->member_map);
	xm_map_free(&mpi->seq_map);
	free(mpi->comm_sizes);
	free(mpi->seqs);
	free(mpi->waits.of_input);
	free(mpi);
}
