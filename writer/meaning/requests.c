/*
 * The work of MPI's requests: a slice for each, from the call that started it to the call that saw
 * it complete.
 *
 * Requests are known by their handles, which libraries use again, and for several requests at once
 * (MPICH has one handle for all sends that are complete at once). Threads start, complete and free
 * what others have made, and their rings are read one after the other: what they do waits
 * (in_time.h). A thread that is kept from its processor within a call writes what that did later
 * than all others, so what it has ended may be open still when the handle is another one's.
 *
 * A handle is the program's from the end of the call that makes it to the begin of the one that
 * completes or frees it: within that call the library may give it to another thread, whose call
 * may end first. So these two are the times that requests of one handle are told apart by (`at`).
 * Clocks may tick no more often than each 10 ns. What has the same time was read in its order from
 * one ring: `timed.number` tells it.
 */
#include "requests.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "early.h"
#include "in_time.h"
#include "mpi_record.h"
#include "pauses.h"
#include "sink.h"
#include "tree.h"

#define REQUESTS_MAX 65536u
#define NAMED_MAX    32768u /* calls that wait: what makes and ends requests must have room, too */

enum kind {
	STARTED,
	PERSISTENT, /* made, not started */
	END,	    /* then `start` is its time */
	/* these only wait, and are not in the tree */
	START, /* of a persistent one */
	FREED,
	NAMED, /* by a call that is shown when it is known which one it means */
};

/*
 * A request that was made, and its work; or what became of one, which may be still to be read from
 * another ring.
 */
struct request {
	struct xs_tree_node node;
	struct request *next;  /* unused ones */
	struct xs_early early; /* of an end */
	struct xs_timed timed; /* of what waits; number: no two have the same; of work: its begin */
	uint64_t handle, at, number;
	uint64_t start; /* of the work; of an end: its end */
	uint8_t kind;
	uint32_t tid;	   /* of the thread that started it; of an end: that saw it */
	uint32_t ended_by; /* the latter, once it is known; else 0 */
	uint32_t name;
	uint32_t words;
	bool receives, transfers; /* transfers: a file's */
	bool cancelled;
	uint64_t word[XS_MPI_WORDS];
	uint64_t bytes; /* of an end */
	int32_t peer, tag;
	struct {
		struct xs_track *track;
		struct xs_event event;
		uint64_t end;
		int32_t result;
		bool unfinished;
	} call; /* that names it */
};

struct xs_requests {
	struct xs_tree tree;
	struct xs_in_time waiting;
	struct request *spare;
	struct xs_earlies ends;
	uint64_t number, serial; /* given out so far */
};

static struct request *request_of(struct xs_tree_node *node)
{
	return (struct request *)node; /* its first member */
}

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Those of one handle together; of them each kind by time. */
static int compare(const struct xs_tree_node *x, const struct xs_tree_node *y)
{
	const struct request *a = (const struct request *)x, *b = (const struct request *)y;
	int difference = order(a->handle, b->handle);

	if (!difference)
		difference = order(a->kind, b->kind);
	if (!difference)
		difference = order(a->at, b->at);
	return difference ? difference : order(a->timed.number, b->timed.number);
}

static void drop(struct xs_process *process, struct request *request)
{
	request->next = process->requests->spare;
	process->requests->spare = request;
}

static void put_in(struct xs_process *process, struct request *request)
{
	xs_tree_add(&process->requests->tree, &request->node);
}

static void take_out(struct xs_process *process, struct request *request)
{
	xs_tree_take(&process->requests->tree, &request->node);
}

static void take_end_out(struct xs_process *process, struct request *end)
{
	take_out(process, end);
	xs_early_take(&process->requests->ends, &end->early);
}

static void drop_end(struct xs_process *process, struct xs_early *early)
{
	struct request *end = (struct request *)((char *)early - offsetof(struct request, early));

	take_end_out(process, end);
	drop(process, end);
}

static struct xs_requests *requests_of(struct xs_process *process)
{
	if (process->requests)
		return process->requests;
	process->requests = calloc(1, sizeof(*process->requests));
	if (process->requests)
		process->requests->tree.compare = compare;
	return process->requests;
}

/* Zeroed; NULL: no memory. */
static struct request *new_request(struct xs_process *process, uint64_t handle, uint8_t kind)
{
	struct xs_requests *requests = requests_of(process);
	struct request *request = requests ? requests->spare : NULL;

	if (request)
		requests->spare = request->next;
	else
		request = requests ? malloc(sizeof(*request)) : NULL;
	if (!request)
		return NULL;
	memset(request, 0, sizeof(*request));
	request->handle = handle;
	request->kind = kind;
	request->timed.number = ++requests->serial;
	return request;
}

/* Room for one more. An end gives way: it may have no begin. */
static bool make_room(struct xs_process *process)
{
	struct xs_requests *requests = process->requests;

	if (requests->tree.count < REQUESTS_MAX)
		return true;
	process->omitted[XS_OMIT_REQUESTS]++;
	if (!requests->ends.oldest)
		return false;
	drop_end(process, requests->ends.oldest);
	return true;
}

/* The latest of the handle and kind up to `ns`; of that very time up to `number`. */
static struct request *find_before(const struct xs_process *process, uint64_t handle, uint8_t kind,
				   uint64_t ns, uint64_t number)
{
	const struct request key = {
		.handle = handle, .kind = kind, .at = ns, .timed.number = number
	};
	struct request *found =
		process->requests ? request_of(xs_tree_before(&process->requests->tree, &key.node))
				  : NULL;

	return found && found->handle == handle && found->kind == kind ? found : NULL;
}

static struct request *find_persistent(const struct xs_process *process, uint64_t handle,
				       uint64_t ns)
{
	return find_before(process, handle, PERSISTENT, ns, UINT64_MAX);
}

/*
 * The work that was started, and goes on until `until`. Not one of before its handle became a
 * persistent request's: what ended that is still to be read, since its thread has not come to write
 * it.
 */
static struct request *find_open(const struct xs_process *process, const struct request *until)
{
	struct request *open =
		find_before(process, until->handle, STARTED, until->at, until->timed.number);
	const struct request *made = open ? find_persistent(process, until->handle, until->at)
					  : NULL;

	return made && made->at > open->at ? NULL : open;
}

/* The earliest of a kind behind `since`, by whatever thread. */
static struct request *find_behind(const struct xs_process *process, const struct request *since,
				   uint8_t kind)
{
	const struct request key = { .handle = since->handle,
				     .kind = kind,
				     .at = since->at,
				     .timed.number = since->timed.number };
	struct request *found = request_of(xs_tree_behind(&process->requests->tree, &key.node));

	return found && found->handle == since->handle && found->kind == kind ? found : NULL;
}

/* The same; it should have come before, and was handed to the thread of `since`. */
static struct request *find_handed(const struct xs_process *process, const struct request *since,
				   uint8_t kind)
{
	struct request *found = find_behind(process, since, kind);

	return found && found->tid != since->tid && found->at - since->at <= XS_HANDED_NS ? found
											  : NULL;
}

/* What completed the work: behind its begin, or handed on too early. */
static struct request *find_end(const struct xs_process *process, const struct request *begun)
{
	struct request since = *begun, *found;

	since.at -= since.at < XS_HANDED_NS ? since.at : XS_HANDED_NS;
	found = find_behind(process, &since, END);
	return !found || found->at > begun->at || found->tid != begun->tid
		       ? found
		       : find_behind(process, begun, END);
}

static void set_half(struct request *request, enum xs_mpi_word word, int32_t peer, int32_t tag)
{
	uint32_t low = (uint32_t)request->word[word], high = (uint32_t)(request->word[word] >> 32);

	if ((int32_t)low == XS_MPI_NOTHING)
		low = (uint32_t)peer;
	if ((int32_t)high == XS_MPI_NOTHING)
		high = (uint32_t)tag;
	request->word[word] = low | (uint64_t)high << 32;
}

/* What a status told of a receive. */
static void complete(struct request *request, const struct request *end)
{
	bool both = request->words & 1u << XS_MPI_RECV_PEER;

	request->ended_by = end->tid;
	request->cancelled = end->cancelled && request->receives;
	if (end->bytes == UINT64_MAX)
		return;
	if (request->transfers)
		request->word[XS_MPI_BYTES] = end->bytes;
	if (!request->receives)
		return;
	if (!(request->words & 1u << (both ? XS_MPI_RECV_PEER : XS_MPI_PEER))) {
		/* MPI_Imrecv does not say from whom */
		request->words |= 1u << XS_MPI_PEER;
		request->word[XS_MPI_PEER] = (uint32_t)XS_MPI_NOTHING |
					     (uint64_t)(uint32_t)XS_MPI_NOTHING << 32;
	}
	set_half(request, both ? XS_MPI_RECV_PEER : XS_MPI_PEER, end->peer, end->tag);
	if (both) {
		request->words |= 1u << XS_MPI_RECV_BYTES;
		request->word[XS_MPI_RECV_BYTES] = end->bytes;
	} else {
		uint64_t posted = request->word[XS_MPI_BYTES], count = request->word[XS_MPI_COUNT];

		/* so many elements as the bytes are; of a part of one nothing can be said */
		if ((int64_t)posted > 0 && count && posted % count == 0)
			request->word[XS_MPI_COUNT] = end->bytes % (posted / count)
							      ? (uint64_t)INT64_MIN
							      : end->bytes / (posted / count);
		request->word[XS_MPI_BYTES] = end->bytes;
	}
}

static void show(struct xs_process *process, struct request *request, uint64_t end, bool unfinished)
{
	const struct xs_mpi_work work = { .name = request->name,
					  .start = request->start,
					  .end = end > request->start ? end : request->start,
					  .words = request->words,
					  .word = request->word,
					  .number = request->number,
					  .started_by = request->tid,
					  .ended_by = request->ended_by,
					  .cancelled = request->cancelled,
					  .unfinished = unfinished };

	XS_TELL_SINKS(process, mpi_work, process, &work);
	drop(process, request);
}

/* ---- in the order of time ---- */

static void open_request(struct xs_process *process, struct request *request)
{
	struct request *end = find_end(process, request);

	if (!end && !make_room(process)) {
		drop(process, request);
	} else if (!end) {
		put_in(process, request);
	} else {
		take_end_out(process, end);
		complete(request, end);
		show(process, request, end->start, false);
		drop(process, end);
	}
}

static void end_request(struct xs_process *process, struct request *end)
{
	struct request *begin = find_open(process, end);

	if (!begin)
		begin = find_handed(process, end, STARTED);
	/* a completion needs no room of its own: it makes some */
	if (!begin && make_room(process)) {
		put_in(process, end);
		xs_early_add(&process->requests->ends, &end->early);
		return;
	}
	if (begin) {
		take_out(process, begin);
		complete(begin, end);
		show(process, begin, end->start, false);
	}
	drop(process, end);
}

static void start_request(struct xs_process *process, struct request *request)
{
	const struct request *made = find_persistent(process, request->handle, request->at);

	if (!made)
		made = find_handed(process, request, PERSISTENT);
	if (!made) {
		drop(process, request);
		return;
	}
	/* processors' clocks may differ by more than it took to hand it on */
	if (request->at < made->at)
		request->at = made->at;
	request->number = made->number;
	request->name = made->name;
	request->words = made->words;
	memcpy(request->word, made->word, sizeof(request->word));
	request->receives = made->receives;
	request->transfers = made->transfers;
	request->kind = STARTED;
	open_request(process, request);
}

static void free_request(struct xs_process *process, struct request *freed)
{
	struct request *request = find_open(process, freed);

	if (request) {
		take_out(process, request);
		show(process, request, freed->at, true);
	}
	/* and those that somebody has freed whom we did not see */
	while ((request = find_before(process, freed->handle, PERSISTENT, freed->at,
				      freed->timed.number))) {
		take_out(process, request);
		drop(process, request);
	}
	drop(process, freed);
}

/* The request that is meant by the handle of `by` at its time; 0: not known. */
static uint64_t number_meant(const struct xs_process *process, const struct request *by)
{
	const struct request *found = find_open(process, by);

	if (!found)
		found = find_persistent(process, by->handle, by->at);
	if (!found)
		found = find_handed(process, by, STARTED);
	if (!found)
		found = find_handed(process, by, PERSISTENT);
	return found ? found->number : 0;
}

static void tell_call(struct xs_process *process, struct request *named)
{
	const struct xs_mpi_call call = { .event = &named->call.event,
					  .name = named->name,
					  .start = named->start,
					  .end = named->call.end,
					  .words = named->words,
					  .word = named->word,
					  .result = named->call.result,
					  .request = number_meant(process, named),
					  .unfinished = named->call.unfinished };

	XS_TELL_SINKS(process, mpi_call, named->call.track, &call);
	drop(process, named);
}

static void settle_one(void *of, struct xs_timed *timed)
{
	struct xs_process *process = of;
	struct request *request =
		(struct request *)((char *)timed - offsetof(struct request, timed));

	switch (request->kind) {
	case END:
		end_request(process, request);
		break;
	case START:
		start_request(process, request);
		break;
	case NAMED:
		tell_call(process, request);
		break;
	default: /* FREED */
		free_request(process, request);
	}
}

static void settle(struct xs_process *process, uint64_t until)
{
	xs_in_time_settle(&process->requests->waiting, until, settle_one, process);
}

static bool is_alone(const struct xs_process *process, uint64_t tick)
{
	return process->track_count == 1 && tick <= process->pass_tick &&
	       !process->requests->waiting.count;
}

/* `request` waits, unless its thread is the only one. */
static void act_in_time(struct xs_process *process, struct request *request, uint64_t tick)
{
	struct xs_requests *requests = process->requests;

	request->timed.tick = tick;
	if (is_alone(process, tick) ||
	    !xs_in_time_add(&requests->waiting, &request->timed, settle_one, process))
		settle_one(process, &request->timed);
}

/* Where no more requests can be open, those that are complete end at once. */
static void make_place(struct xs_process *process)
{
	if (process->requests && process->requests->tree.count >= REQUESTS_MAX)
		settle(process, UINT64_MAX);
}

void xs_requests_pass(struct xs_process *process)
{
	struct xs_early *early;

	if (!process->requests)
		return;
	settle(process, process->pass_tick);
	process->requests->ends.pass++;
	while ((early = xs_early_next(&process->requests->ends)))
		drop_end(process, early);
}

/* ---- reading ---- */

uint64_t xs_request_made(struct xs_track *track, const struct xs_mpi_call *call,
			 const struct xs_request_role *role, uint64_t made)
{
	struct xs_process *process = track->process;
	uint64_t handle = call->word[XS_MPI_REQUEST], number;
	struct request *request;

	make_place(process);
	request = new_request(process, handle, role->persistent ? PERSISTENT : STARTED);
	if (!request)
		return 0;
	request->start = call->start;
	request->at = made;
	request->timed.tick = call->event->tick;
	request->tid = track->tid;
	request->name = call->name;
	request->words = call->words;
	memcpy(request->word, call->word, sizeof(request->word));
	request->receives = role->receives;
	request->transfers = role->transfers;
	request->number = number = ++process->requests->number;
	if (request->kind == STARTED) {
		open_request(process, request);
	} else if (make_room(process)) {
		put_in(process, request);
	} else {
		drop(process, request);
		number = 0;
	}
	return number;
}

uint64_t xs_request_read(struct xs_track *track, const struct xs_mpi_request_record *record,
			 uint64_t ns, uint64_t tick)
{
	struct xs_process *process = track->process;
	bool is_start = record->event.kind == XS_MPI_START;
	const struct request *made;
	struct request *request;
	uint64_t number;

	make_place(process);
	request = new_request(process, record->request, is_start ? START : END);
	if (!request)
		return 0;
	request->start = ns;
	request->at = xs_process_ns(process, tick);
	request->tid = track->tid;
	request->bytes = record->bytes;
	request->peer = record->peer;
	request->tag = record->tag;
	request->cancelled = record->cancelled;
	made = is_start ? find_persistent(process, record->request, request->at) : NULL;
	number = made ? made->number : 0;
	act_in_time(process, request, tick);
	return number;
}

void xs_request_freed(struct xs_track *track, uint64_t handle, uint64_t tick, uint64_t ns)
{
	struct request *request = new_request(track->process, handle, FREED);

	if (!request)
		return;
	request->at = ns;
	act_in_time(track->process, request, tick);
}

void xs_request_named(struct xs_track *track, struct xs_mpi_call *call)
{
	struct xs_process *process = track->process;
	const struct xs_requests *requests = requests_of(process);
	struct request *named, now = { .handle = call->word[XS_MPI_REQUEST],
				       .at = call->start,
				       .tid = track->tid,
				       .timed.number = UINT64_MAX };

	named = requests && !is_alone(process, call->event->tick) &&
				requests->waiting.count < NAMED_MAX
			? new_request(process, now.handle, NAMED)
			: NULL;
	if (!named) {
		call->request = number_meant(process, &now);
		XS_TELL_SINKS(process, mpi_call, track, call);
		return;
	}
	named->start = named->at = call->start;
	named->tid = track->tid;
	named->name = call->name;
	named->words = call->words;
	memcpy(named->word, call->word, sizeof(named->word));
	named->call.track = track;
	named->call.event = *call->event;
	named->call.end = call->end;
	named->call.result = call->result;
	named->call.unfinished = call->unfinished;
	act_in_time(process, named, call->event->tick);
}

/* Nobody has seen it end: it did so while nothing was recorded, if it did at all. */
static void show_open(struct xs_process *process, struct request *request, uint64_t end)
{
	uint64_t off = xs_process_paused_after(process, request->timed.tick);

	if (off != UINT64_MAX && xs_process_ns(process, off) < end)
		end = xs_process_ns(process, off);
	process->open_requests++;
	show(process, request, end, true);
}

void xs_requests_finish(struct xs_process *process, uint64_t end)
{
	struct xs_requests *requests = process->requests;

	if (!requests)
		return;
	settle(process, UINT64_MAX);
	while (requests->tree.root) {
		struct request *request = request_of(requests->tree.root);

		take_out(process, request);
		if (request->kind == STARTED)
			show_open(process, request, end);
		else
			drop(process, request);
	}
	while (requests->spare) {
		struct request *request = requests->spare;

		requests->spare = request->next;
		free(request);
	}
	xs_in_time_free(&requests->waiting);
	free(requests);
	process->requests = NULL;
}
