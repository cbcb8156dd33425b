#include "mpi.h"

#include <stdlib.h>

#include "mpi_collectives.h"
#include "mpi_receives.h"
#include "mpi_waits.h"

struct xm_mpi {
	struct xm_mpi_sink sink;
	struct xm_channels channels;
	struct xm_receives *receives;
	struct xm_waits waits;
	struct xm_collectives *collectives;
};

struct xm_mpi *xm_mpi_create(const struct xm_mpi_sink *sink)
{
	struct xm_mpi *mpi = calloc(1, sizeof(*mpi));

	if (!mpi)
		return NULL;
	mpi->sink = *sink;
	xm_channels_init(&mpi->channels, &mpi->sink);
	mpi->receives = xm_receives_create(&mpi->channels);
	mpi->collectives = xm_collectives_create(&mpi->sink);
	if (!mpi->receives || !mpi->collectives) {
		xm_mpi_free(mpi);
		return NULL;
	}
	return mpi;
}

static void send(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	struct xm_channel_key key = { call->comm, end->rank, (int32_t)call->peer,
				      (int32_t)call->tag, 0 };

	end->bytes = call->bytes;
	if (call->peer >= 0)
		xm_channels_next_end(&mpi->channels, &key, true, call->function, end);
}

/* The work of a request: of a receive, its data have arrived at its end. */
static void take_work(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	xm_waits_find(&mpi->waits, end);
	if (call->function->role == XM_SEND && end->waiter && mpi->sink.sent)
		mpi->sink.sent(mpi->sink.user, call->comm, end);
	if (call->function->role == XM_IRECEIVE && call->has_request)
		xm_receives_complete(mpi->receives, call, end);
	else if (call->function->role == XM_RECEIVE_INIT || call->function->role == XM_SEND_INIT)
		xm_receives_work(mpi->receives, call, end);
	else if ((call->function->role == XM_STARTED ||
		  call->function->role == XM_COLLECTIVE_INIT) &&
		 call->has_seq)
		xm_collectives_join(mpi->collectives, call, end);
}

void xm_mpi_learn(struct xm_mpi *mpi, const struct xm_mpi *before)
{
	xm_collectives_learn(mpi->collectives, before->collectives);
}

const char *xm_comm_label(const struct xm_mpi *mpi, uint64_t comm, char *text)
{
	return xm_collectives_label(mpi->collectives, comm, text);
}

static void take_call(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	switch (call->function->role) {
	case XM_OTHER:
		break;
	case XM_SEND_INIT:
	case XM_RECEIVE_INIT:
		xm_receives_init(mpi->receives, call, end);
		break;
	case XM_START:
		xm_receives_start(mpi->receives, call, end);
		break;
	case XM_SEND:
		send(mpi, call, end);
		break;
	case XM_RECEIVE:
		xm_receives_blocking(mpi->receives, call, call->peer, call->tag, call->bytes, end);
		break;
	case XM_SENDRECV:
		send(mpi, call, end);
		xm_receives_blocking(mpi->receives, call, call->recv_peer, call->recv_tag,
				     call->recv_bytes, end);
		break;
	case XM_IRECEIVE:
		xm_receives_post(mpi->receives, call, end);
		break;
	case XM_COMPLETE:
		xm_waits_add(&mpi->waits, call->function, end);
		xm_receives_complete(mpi->receives, call, end);
		break;
	case XM_CANCEL:
		xm_receives_cancel(mpi->receives, call, end);
		break;
	case XM_COLLECTIVE:
		xm_collectives_join(mpi->collectives, call, end);
		break;
	case XM_STARTED: /* their work is what counts */
	case XM_COLLECTIVE_INIT:
		break;
	}
}

void xm_mpi_take(struct xm_mpi *mpi, struct xm_input *input, const struct xm_event *event,
		 const struct xm_process *process, int64_t start, int64_t stop)
{
	struct xm_end end = { .input = input,
			      .out_pid = process->out_pid,
			      .start = start,
			      .end = stop,
			      .bytes = -1,
			      .rank = (int32_t)input->rank };
	struct xm_call call;

	if (input->rank >= 0 && event->ph.p[1] == 'M' && xm_is(event->name, "\"communicator\""))
		xm_collectives_told(mpi->collectives, input, event->args);
	if (event->ph.p[1] != 'X' || input->rank < 0 || !xm_call_of(event, &call))
		return;
	end.tid = xm_tid(input, process, event);
	end.posted = start;
	end.posted_tid = end.tid;
	end.started_by = call.started_by < 0 ? end.tid : call.started_by;
	end.ended_by = call.ended_by < 0 ? end.tid : call.ended_by;
	end.is_cut = call.is_cut;
	end.request = call.has_request ? call.request : 0;
	if (call.is_work) {
		take_work(mpi, &call, &end);
		return;
	}
	if (mpi->sink.call) {
		end.bytes = call.bytes;
		mpi->sink.call(mpi->sink.user, call.comm, call.function, &end);
	}
	take_call(mpi, &call, &end);
}

uint64_t xm_mpi_finish(struct xm_mpi *mpi, uint64_t *ret_dropped)
{
	xm_receives_finish(mpi->receives);
	*ret_dropped = xm_collectives_finish(mpi->collectives) + mpi->channels.dropped +
		       xm_receives_dropped(mpi->receives);
	return xm_channels_alone(&mpi->channels);
}

void xm_mpi_free(struct xm_mpi *mpi)
{
	if (!mpi)
		return;
	xm_channels_free(&mpi->channels);
	xm_receives_free(mpi->receives);
	xm_collectives_free(mpi->collectives);
	free(mpi->waits.of_input);
	free(mpi);
}
