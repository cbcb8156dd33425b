#include "mpi_receives.h"

#include <stdlib.h>

#include "mpi_probes.h"

#define MAX_REQUESTS   65536u /* that wait for their completion; a power of two */
#define MAX_PERSISTENT (1u << 18)
#define MAX_HELD       256u /* of one input */

/* A receive whose data have not arrived yet. */
struct request {
	struct xm_channel_key key;
	uint64_t k;
	int64_t bytes;
	const struct xm_function *function;
	uint64_t number; /* of the request */
	int64_t posted, posted_tid;
	struct xm_input *from;
	uint32_t input;
	bool is_used, is_open, is_held, has_k;
	bool is_doubtful; /* MPI_Cancel was called for it */
};

/* A receive that cannot have its number yet. */
struct held {
	struct held *next;
	struct xm_channel_key key;
	int64_t bytes;
	const struct xm_function *function;
	uint64_t number;	       /* of its request; of a blocking one XM_NO_NUMBER */
	bool is_complete, is_doubtful; /* as its request */
	struct xm_end end;
};

struct input {
	struct held *first;
	uint32_t count;
	struct xm_probes probes;
};

struct persistent {
	struct xm_channel_key key;
	int64_t bytes;
	const struct xm_function *function;
	uint32_t begun; /* starts whose work is still to come */
	uint32_t ahead; /* works that were read before their start, which another thread made */
};

struct xm_receives {
	struct xm_channels *channels;
	/* who comes to a place that is taken closes what was there */
	struct request requests[MAX_REQUESTS];
	struct input *inputs;
	uint32_t input_room;
	struct xf_map persistent_map; /* of input and number */
	struct persistent *persistent;
	uint32_t persistent_room;
	uint64_t probed; /* messages that were taken out of queues */
	uint64_t dropped;
};

/* Such a message is a request of its own; they are placed far from what is as old among requests.
 */
#define PROBED(count) (XM_NO_NUMBER - (count))

struct xm_receives *xm_receives_create(struct xm_channels *channels)
{
	struct xm_receives *receives = calloc(1, sizeof(*receives));

	if (!receives)
		return NULL;
	receives->channels = channels;
	xf_map_init(&receives->persistent_map, MAX_PERSISTENT, (size_t)MAX_PERSISTENT * 16);
	return receives;
}

void xm_receives_free(struct xm_receives *receives)
{
	if (!receives)
		return;
	for (uint32_t i = 0; i < receives->input_room; i++) {
		for (struct held *held = receives->inputs[i].first, *next; held; held = next) {
			next = held->next;
			free(held);
		}
		xm_probes_free(&receives->inputs[i].probes);
	}
	free(receives->inputs);
	free(receives->persistent);
	xf_map_free(&receives->persistent_map);
	free(receives);
}

uint64_t xm_receives_dropped(const struct xm_receives *receives)
{
	return receives->dropped;
}

static struct request *place_of(struct xm_receives *receives, uint64_t number, uint32_t input)
{
	return &receives->requests[(number + input * 0x9e3779b1u) & (MAX_REQUESTS - 1)];
}

static struct request *find(struct xm_receives *receives, uint64_t number, uint32_t input)
{
	struct request *request = place_of(receives, number, input);

	return request->is_used && request->number == number && request->input == input ? request
											: NULL;
}

static bool is_known(const struct xm_channel_key *key)
{
	return key->from >= 0 && key->tag >= 0;
}

/* ---- held back ---- */

static struct input *input_of(struct xm_receives *receives, uint32_t index)
{
	return xf_room_for(&receives->inputs, &receives->input_room, index,
			   sizeof(*receives->inputs))
		       ? &receives->inputs[index]
		       : NULL;
}

/* Nobody knows yet whose message it gets, or whether it gets one. */
static bool is_open(const struct held *held)
{
	return !held->is_complete && (held->is_doubtful || !is_known(&held->key));
}

/* Is there one before `end` that may still get the message that this one would get? */
static bool is_unsure(const struct input *input, const struct xm_channel_key *key,
		      const struct held *end)
{
	for (const struct held *held = input->first; held != end; held = held->next)
		if (is_open(held) && held->key.comm == key->comm &&
		    held->key.request == key->request &&
		    (held->key.from < 0 || held->key.from == key->from) &&
		    (held->key.tag < 0 || held->key.tag == key->tag))
			return true;
	return false;
}

/* The number of one that is sure; what is complete goes on. */
static void release(struct xm_receives *receives, struct held *held)
{
	struct request *request =
		held->is_complete ? NULL : find(receives, held->number, held->end.input->index);
	uint64_t k = is_known(&held->key) ? xm_channels_next(receives->channels, &held->key, false)
					  : XM_NO_NUMBER;

	if (held->is_complete && k != XM_NO_NUMBER) {
		xm_channels_end(receives->channels, &held->key, false, k, held->function,
				&held->end);
	} else if (request && request->is_held) {
		request->is_held = false;
		request->has_k = k != XM_NO_NUMBER;
		request->k = k;
	}
	free(held);
}

static void settle(struct xm_receives *receives, struct input *input)
{
	for (struct held **link = &input->first, *held; (held = *link);) {
		if (is_open(held) || is_unsure(input, &held->key, held)) {
			link = &held->next;
			continue;
		}
		*link = held->next;
		input->count--;
		release(receives, held);
	}
}

/* The first does not wait any longer: what it receives counts when it has come. */
static void give_up_first(struct xm_receives *receives, struct input *input)
{
	struct held *held = input->first;

	input->first = held->next;
	input->count--;
	release(receives, held);
	settle(receives, input);
}

static struct held *hold(struct xm_receives *receives, const struct xm_channel_key *key,
			 int64_t bytes, const struct xm_function *function, uint64_t number,
			 const struct xm_end *end)
{
	struct input *input = input_of(receives, end->input->index);
	struct held *held = input ? calloc(1, sizeof(*held)) : NULL, **link;

	if (!held)
		return NULL;
	if (input->count == MAX_HELD)
		give_up_first(receives, input);
	*held = (struct held){
		.key = *key, .bytes = bytes, .function = function, .number = number, .end = *end
	};
	for (link = &input->first; *link; link = &(*link)->next)
		;
	*link = held;
	input->count++;
	return held;
}

void xm_receives_finish(struct xm_receives *receives)
{
	for (uint32_t i = 0; i < receives->input_room; i++)
		while (receives->inputs[i].first)
			give_up_first(receives, &receives->inputs[i]);
}

static struct held *find_held(struct xm_receives *receives, const struct request *request)
{
	struct input *input = input_of(receives, request->input);
	struct held *held = input ? input->first : NULL;

	while (held && (held->number != request->number || held->is_complete))
		held = held->next;
	return held;
}

/* ---- cancelled ones ---- */

/* Is `later` behind this request in its channel, or this one itself, and not complete? */
static bool is_behind(const struct request *later, const struct request *request)
{
	return later->is_open && later->has_k && later->input == request->input &&
	       later->k >= request->k && !memcmp(&later->key, &request->key, sizeof(later->key));
}

static int by_k(const void *a, const void *b)
{
	const struct request *const *p = a, *const *q = b;

	return (*p)->k<(*q)->k ? -1 : (*p)->k>(*q)->k;
}

/*
 * Who knows whether this one gets a message: it and those behind it are held back, in front of all
 * that are (these are behind it, too, or of no matter to this channel). If one of them is complete,
 * this one had its message before.
 */
static void hold_again(struct xm_receives *receives, struct request *request)
{
	uint64_t count = xm_channels_received(receives->channels, &request->key) - request->k,
		 found = 0;
	struct input *input = input_of(receives, request->input);
	struct request **behind = count <= MAX_HELD ? calloc(count, sizeof(struct request *))
						    : NULL;

	if (!input || !behind || input->count + count > MAX_HELD) {
		free(behind);
		return;
	}
	if (count == 1)
		behind[found++] = request;
	for (uint32_t i = 0; count > 1 && i < MAX_REQUESTS && found < count; i++)
		if (is_behind(&receives->requests[i], request))
			behind[found++] = &receives->requests[i];
	qsort(behind, found, sizeof(struct request *), by_k);
	/* the last first, so that each comes in front of those behind it */
	while (found == count && found > 0) {
		struct request *last = behind[found - 1];
		struct held *held = calloc(1, sizeof(*held));

		if (!held)
			break;
		*held = (struct held){ .next = input->first,
				       .key = last->key,
				       .bytes = last->bytes,
				       .function = last->function,
				       .number = last->number,
				       .is_doubtful = last->is_doubtful,
				       .end = { .input = last->from } };
		input->first = held;
		input->count++;
		last->is_held = true;
		last->has_k = false;
		xm_channels_take_back(receives->channels, &last->key, last->k);
		count = --found;
	}
	free(behind);
}

static void doubt(struct xm_receives *receives, struct request *request)
{
	struct held *held = request->is_held ? find_held(receives, request) : NULL;

	request->is_doubtful = true;
	if (held)
		held->is_doubtful = true;
	else if (request->has_k)
		hold_again(receives, request);
}

/* ---- receives ---- */

static bool must_wait(struct xm_receives *receives, const struct xm_channel_key *key,
		      uint32_t index)
{
	const struct input *input = input_of(receives, index);

	return input && (!is_known(key) || is_unsure(input, key, NULL));
}

static void receive(struct xm_receives *receives, const struct xm_channel_key *key,
		    const struct xm_function *function, struct xm_end *end)
{
	struct held *held;

	if (key->from < 0)
		return;
	if (is_known(key) && must_wait(receives, key, end->input->index)) {
		held = hold(receives, key, end->bytes, function, XM_NO_NUMBER, end);
		if (held)
			held->is_complete = true;
		return;
	}
	xm_channels_next_end(receives->channels, key, false, function, end);
}

void xm_receives_blocking(struct xm_receives *receives, const struct xm_call *call, int64_t peer,
			  int64_t tag, int64_t bytes, struct xm_end *end)
{
	struct xm_channel_key key = { call->comm, (int32_t)peer, end->rank, (int32_t)tag, 0 };

	end->bytes = bytes;
	receive(receives, &key, call->function, end);
}

static void post(struct xm_receives *receives, const struct xm_channel_key *key, int64_t bytes,
		 const struct xm_function *function, uint64_t number, const struct xm_end *end)
{
	struct request *request = place_of(receives, number, end->input->index);

	receives->dropped += request->is_open;
	*request = (struct request){ .key = *key,
				     .bytes = bytes,
				     .function = function,
				     .number = number,
				     .posted = end->start,
				     .posted_tid = end->tid,
				     .from = end->input,
				     .input = end->input->index,
				     .is_open = true,
				     .is_used = true };
	if (must_wait(receives, key, end->input->index)) {
		request->is_held = hold(receives, key, bytes, function, number, end);
		return;
	}
	request->k = xm_channels_next(receives->channels, key, false);
	request->has_k = request->k != XM_NO_NUMBER;
}

void xm_receives_post(struct xm_receives *receives, const struct xm_call *call,
		      const struct xm_end *end)
{
	struct xm_channel_key key = { call->comm, (int32_t)call->peer, end->rank,
				      (int32_t)call->tag, 0 };

	/* its completion may have been read before */
	if (call->has_request && !find(receives, call->request, end->input->index))
		post(receives, &key, call->bytes, call->function, call->request, end);
}

static void complete_held(struct xm_receives *receives, struct request *request,
			  const struct xm_function *function, const struct xm_end *end)
{
	struct held *held = find_held(receives, request);

	if (!held)
		return;
	held->key = request->key;
	held->function = function;
	held->end = *end;
	held->is_complete = true;
	settle(receives, input_of(receives, request->input));
}

/* The data are there. */
static void arrive(struct xm_receives *receives, struct request *request,
		   const struct xm_call *call, struct xm_end *end)
{
	request->is_open = false;
	end->posted = request->posted;
	end->posted_tid = request->posted_tid;
	end->bytes = call->bytes >= 0 ? call->bytes : request->bytes;
	if (request->is_held) {
		complete_held(receives, request, call->function, end);
		return;
	}
	if (!request->has_k && is_known(&request->key)) {
		request->k = xm_channels_next(receives->channels, &request->key, false);
		request->has_k = request->k != XM_NO_NUMBER;
	}
	if (request->has_k)
		xm_channels_end(receives->channels, &request->key, false, request->k,
				call->function, end);
}

/* Calls `one` for each request that the call names. */
static void for_each(struct xm_receives *receives, const struct xm_call *call, struct xm_end *end,
		     void (*one)(struct xm_receives *receives, const struct xm_call *call,
				 uint64_t number, struct xm_end *end))
{
	const char *p = xf_first(call->requests);
	struct xf_text value;
	int64_t number;

	if (call->has_request)
		one(receives, call, call->request, end);
	if (call->requests.n > 1 && call->requests.p[0] == '[')
		while (xf_element(&p, call->requests.p + call->requests.n, &value))
			if (xf_integer(value, &number))
				one(receives, call, (uint64_t)number, end);
}

static void complete_one(struct xm_receives *receives, const struct xm_call *call, uint64_t number,
			 struct xm_end *end)
{
	struct request *request = find(receives, number, end->input->index);

	if (!request && call->is_work) {
		/* all that is wanted stands in the work itself */
		xm_receives_post(receives, call, end);
		request = find(receives, number, end->input->index);
	}
	if (!request || !request->is_open || (request->is_doubtful && !call->is_work))
		return;
	if (call->is_cancelled) {
		if (request->has_k) /* its MPI_Cancel was not seen */
			doubt(receives, request);
		request->has_k = false;
		request->key.from = -1; /* nobody */
	} else if (!is_known(&request->key)) {
		request->key.from = call->peer >= 0 ? (int32_t)call->peer : request->key.from;
		request->key.tag = call->tag >= 0 ? (int32_t)call->tag : request->key.tag;
		/* who waited does not say where it came from, the work will */
		if (!is_known(&request->key) && !call->is_work)
			return;
	}
	arrive(receives, request, call, end);
}

void xm_receives_cancel(struct xm_receives *receives, const struct xm_call *call,
			const struct xm_end *end)
{
	struct request *request =
		call->has_request ? find(receives, call->request, end->input->index) : NULL;

	if (request && request->is_open)
		doubt(receives, request);
}

void xm_receives_complete(struct xm_receives *receives, const struct xm_call *call,
			  struct xm_end *end)
{
	for_each(receives, call, end, complete_one);
}

/* ---- messages that a probe took out of the queue ---- */

void xm_receives_probe(struct xm_receives *receives, const struct xm_call *call,
		       const struct xm_end *end)
{
	struct xm_channel_key key = { call->comm, (int32_t)call->peer, end->rank,
				      (int32_t)call->tag, 0 };
	struct input *input = input_of(receives, end->input->index);
	uint64_t number = PROBED(receives->probed + 1);

	/* its bytes are there if it found one */
	if (call->bytes < 0 || !is_known(&key) || !input ||
	    !xm_probes_add(&input->probes, &key, call->bytes, number, end))
		return;
	receives->probed++;
	post(receives, &key, call->bytes, call->function, number, end);
}

void xm_receives_bind(struct xm_receives *receives, const struct xm_call *call,
		      const struct xm_end *end)
{
	struct input *input = input_of(receives, end->input->index);

	if (input)
		xm_probes_bind(&input->probes, call, end);
}

void xm_receives_matched(struct xm_receives *receives, const struct xm_call *call,
			 struct xm_end *end)
{
	struct input *input = input_of(receives, end->input->index);
	struct request *request;
	uint64_t number;

	if (!input || call->is_cut)
		return;
	number = xm_probes_take(&input->probes, call, end);
	request = number ? find(receives, number, end->input->index) : NULL;
	if (!number && call->peer >= 0 && call->tag >= 0) {
		xm_receives_blocking(receives, call, call->peer, call->tag, call->bytes, end);
		xm_probes_ahead(&input->probes, call, end);
	}
	if (!request || !request->is_open)
		return;
	/* before that the library had nowhere to put it */
	request->posted = end->start;
	request->posted_tid = end->started_by;
	arrive(receives, request, call, end);
}

/* ---- persistent ones, and sends that are ---- */

static struct persistent *persistent_of(struct xm_receives *receives, uint64_t number,
					uint32_t input, bool add)
{
	uint64_t key[2] = { input, number };
	uint32_t index = add ? xf_map_add(&receives->persistent_map, key, sizeof(key))
			     : xf_map_find(&receives->persistent_map, key, sizeof(key));

	if (index == XF_NONE || !xf_room_for(&receives->persistent, &receives->persistent_room,
					     index, sizeof(*receives->persistent)))
		return NULL;
	return &receives->persistent[index];
}

static bool is_partitioned(const struct xm_function *function)
{
	return function->name[0] == 'P'; /* of all that are persistent, MPI_Psend_init's like */
}

/* The k-th that one side makes belongs to the k-th of the other side, however they are started. */
static uint32_t number_made(struct xm_receives *receives, const struct xm_channel_key *key,
			    bool sends)
{
	struct xm_channel_key made = *key;
	uint64_t k;

	made.request = XM_REQUESTS_MADE;
	k = is_known(key) && key->to >= 0 ? xm_channels_next(receives->channels, &made, sends)
					  : XM_NO_NUMBER;
	return k < XM_REQUEST_NOT_SEEN - 1 ? (uint32_t)k + 1 : XM_REQUEST_NOT_SEEN;
}

void xm_receives_init(struct xm_receives *receives, const struct xm_call *call,
		      const struct xm_end *end)
{
	bool sends = call->function->role == XM_SEND_INIT;
	int32_t peer = (int32_t)call->peer;
	struct persistent *persistent =
		call->has_request ? persistent_of(receives, call->request, end->input->index, true)
				  : NULL;

	if (!persistent)
		return;
	*persistent = (struct persistent){
		.key = { call->comm, sends ? end->rank : peer, sends ? peer : end->rank,
			 (int32_t)call->tag, 0 },
		.bytes = call->bytes,
		.function = call->function,
	};
	if (is_partitioned(call->function))
		persistent->key.request = number_made(receives, &persistent->key, sends);
}

static void start_one(struct xm_receives *receives, const struct xm_call *call, uint64_t number,
		      struct xm_end *end)
{
	struct persistent *persistent = persistent_of(receives, number, end->input->index, false);

	(void)call;
	if (!persistent)
		return;
	if (persistent->ahead) {
		persistent->ahead--;
		return;
	}
	persistent->begun++;
	if (persistent->function->role == XM_SEND_INIT) {
		end->bytes = persistent->bytes;
		if (persistent->key.to >= 0)
			xm_channels_next_end(receives->channels, &persistent->key, true,
					     persistent->function, end);
	} else {
		post(receives, &persistent->key, persistent->bytes, persistent->function, number,
		     end);
	}
}

void xm_receives_start(struct xm_receives *receives, const struct xm_call *call, struct xm_end *end)
{
	for_each(receives, call, end, start_one);
}

void xm_receives_work(struct xm_receives *receives, const struct xm_call *call, struct xm_end *end)
{
	bool sends = call->function->role == XM_SEND_INIT;
	int32_t peer = (int32_t)call->peer;
	struct persistent *persistent =
		call->has_request ? persistent_of(receives, call->request, end->input->index, false)
				  : NULL;
	struct xm_channel_key key = { call->comm, sends ? end->rank : peer,
				      sends ? peer : end->rank, (int32_t)call->tag, 0 };

	if (persistent && persistent->begun) {
		persistent->begun--;
		if (!sends)
			complete_one(receives, call, call->request, end);
		return;
	}
	/* its start was not seen, or is still to come */
	if (persistent)
		persistent->ahead++;
	if (is_partitioned(call->function))
		key.request = persistent ? persistent->key.request : XM_REQUEST_NOT_SEEN;
	end->bytes = call->bytes;
	if (!sends)
		receive(receives, &key, call->function, end);
	else if (peer >= 0)
		xm_channels_next_end(receives->channels, &key, true, call->function, end);
}
