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

/*
 * A call that failed has sent, started and received nothing, but for a receive whose message was
 * longer than its room: that message is gone.
 */
static bool has_acted(const struct xm_call *call)
{
	enum xm_role role = call->function->role;

	return !call->has_failed ||
	       (call->is_truncated &&
		(role == XM_RECEIVE || role == XM_MATCHED || role == XM_SENDRECV));
}

static struct xm_call receiving_half(const struct xm_call *call)
{
	struct xm_call half = *call;

	half.peer = call->recv_peer;
	half.tag = call->recv_tag;
	half.bytes = call->recv_bytes;
	return half;
}

/* The work of a request: of a receive, its data have arrived at its end. */
static void take_work(struct xm_mpi *mpi, const struct xm_call *call, struct xm_end *end)
{
	struct xm_call half = receiving_half(call);

	xm_waits_find(&mpi->waits, end);
	if (call->function->role == XM_SEND && end->waiter && mpi->sink.sent)
		mpi->sink.sent(mpi->sink.user, call->comm, end);
	if (call->function->role == XM_IRECEIVE && call->has_request)
		xm_receives_complete(mpi->receives, call, end);
	else if (call->function->role == XM_ISENDRECV && call->has_request)
		xm_receives_complete(mpi->receives, &half, end);
	else if (call->function->role == XM_IMATCHED)
		xm_receives_matched(mpi->receives, call, end);
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
	struct xm_call half = receiving_half(call);

	switch (call->function->role) {
	case XM_OTHER:
	case XM_TEST:
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
	case XM_MATCHED:
		xm_receives_matched(mpi->receives, call, end);
		break;
	case XM_SENDRECV:
		send(mpi, call, end);
		xm_receives_blocking(mpi->receives, call, call->recv_peer, call->recv_tag,
				     call->recv_bytes, end);
		break;
	case XM_ISENDRECV:
		send(mpi, call, end);
		xm_receives_post(mpi->receives, &half, end);
		break;
	case XM_PROBE:
		xm_receives_probe(mpi->receives, call, end);
		break;
	case XM_IMATCHED:
		xm_receives_bind(mpi->receives, call, end);
		break;
	case XM_IRECEIVE:
		xm_receives_post(mpi->receives, call, end);
		break;
	case XM_COMPLETE:
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

/* What a note of this folder says; texts of the call stand behind it, each with XF_SLACK zeros. */
struct said {
	int32_t rank;
	bool is_told; /* no call, but what a "communicator" event says: `requests` are its args */
	struct xm_call call;
	struct xm_end end;
};

static void copy_text(char **to, struct xf_text text)
{
	if (!text.n)
		return;
	memcpy(*to, text.p, text.n);
	memset(*to + text.n, 0, XF_SLACK);
	*to += text.n + XF_SLACK;
}

static void put_note(struct xm_block *block, const struct said *said)
{
	const struct xm_call *call = &said->call;
	size_t size = sizeof(*said);
	struct xm_note *note;
	char *texts;

	size += call->requests.n ? call->requests.n + XF_SLACK : 0;
	size += call->from.n ? call->from.n + XF_SLACK : 0;
	note = xm_block_note(block, size);
	if (!note)
		return;
	memcpy(note->says, said, sizeof(*said));
	texts = (char *)note->says + sizeof(*said);
	copy_text(&texts, call->requests);
	copy_text(&texts, call->from);
}

void xm_mpi_look(struct xm_block *block, struct xm_input *input, const struct xf_event *event,
		 const struct xm_process *process, int64_t start, int64_t stop)
{
	struct said said;
	struct xm_end *end = &said.end;

	said.rank = (int32_t)input->rank;
	said.is_told = false;
	if (input->rank < 0)
		return;
	if (event->ph.p[1] == 'M' && xf_is(event->name, "\"communicator\"")) {
		said.is_told = true;
		memset(&said.call, 0, sizeof(said.call));
		said.call.requests = event->args;
		put_note(block, &said);
		return;
	}
	if (event->ph.p[1] != 'X' || !xm_call_of(event, &said.call))
		return;
	*end = (struct xm_end){ .input = input,
				.out_pid = process->out_pid,
				.start = start,
				.end = stop,
				.bytes = -1,
				.rank = said.rank };
	end->tid = xm_tid(input, process, event);
	end->posted = start;
	end->posted_tid = end->tid;
	end->started_by = said.call.started_by < 0 ? end->tid : said.call.started_by;
	end->ended_by = said.call.ended_by < 0 ? end->tid : said.call.ended_by;
	end->is_cut = said.call.is_cut;
	end->request = said.call.has_request ? said.call.request : 0;
	put_note(block, &said);
}

static void take_text(const char **from, struct xf_text *text)
{
	if (!text->n)
		return;
	text->p = *from;
	*from += text->n + XF_SLACK;
}

void xm_mpi_take(struct xm_mpi *mpi, struct xm_input *input, const struct xm_note *note)
{
	const char *texts = (const char *)note->says + sizeof(struct said);
	struct said said;

	memcpy(&said, note->says, sizeof(said));
	take_text(&texts, &said.call.requests);
	take_text(&texts, &said.call.from);
	if (said.is_told) {
		xm_collectives_told(mpi->collectives, input, said.rank, said.call.requests);
		return;
	}
	if (said.call.is_work) {
		take_work(mpi, &said.call, &said.end);
		return;
	}
	if (mpi->sink.call) {
		said.end.bytes = said.call.bytes;
		mpi->sink.call(mpi->sink.user, said.call.comm, said.call.function, &said.end);
	}
	xm_waits_add(&mpi->waits, said.call.function, &said.end);
	if (has_acted(&said.call))
		take_call(mpi, &said.call, &said.end);
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
	free(mpi->waits.starts);
	free(mpi);
}
