/*
 * What the records of MPI mean: a slice for each call, with its partners and sizes, and one for the
 * work of each request, from the call that started it to the call that saw it complete.
 *
 * Requests are known by their handles, which libraries use again, and for several requests at once
 * (MPICH has one handle for all sends that are complete at once). Threads may complete what others
 * have started, and their rings are read one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "cuts.h"
#include "early.h"
#include "mpi_records.h"
#include "sink.h"
#include "tree.h"

#define REQUESTS_MAX 65536u
#define DONE_MAX     16384u /* completions that wait for what is still to be read */
#define STARTED_MAX  64u    /* requests that one call starts, whose numbers are shown */

enum {
	STARTED,
	PERSISTENT, /* made, not started */
	END,	    /* then `start` is its time */
};

/*
 * A request that was made, and its work; or a completion whose start is still to be read from
 * another ring.
 */
struct request {
	struct xs_tree_node node;
	struct request *next;  /* unused ones */
	struct xs_early early; /* of an end */
	uint64_t handle, start, number;
	uint64_t serial; /* no two have the same */
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
};

/* Numbers of the requests that a call started whose record is still to come. */
struct xs_mpi_started {
	uint64_t tick; /* when it began */
	uint32_t count;
	uint64_t number[STARTED_MAX];
};

/* A completion that waits until all starts are read that were written before it. */
struct done {
	struct xs_mpi_request_record record;
	uint64_t ns, serial;
	uint32_t tid;
};

struct xs_requests {
	struct xs_tree tree;
	struct done *done;
	uint32_t done_count;
	struct request *spare;
	struct xs_earlies ends;
	uint64_t number, serial; /* given out so far */
};

/* ---- requests ---- */

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
		difference = order(a->start, b->start);
	return difference ? difference : order(a->serial, b->serial);
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

static struct request *new_request(struct xs_process *process, uint64_t handle)
{
	struct xs_requests *requests = requests_of(process);
	struct request *request;

	if (!requests)
		return NULL;
	if (requests->tree.count >= REQUESTS_MAX) {
		process->omitted[XS_OMIT_REQUESTS]++;
		if (!requests->ends.oldest)
			return NULL;
		drop_end(process, requests->ends.oldest); /* it may have no begin */
	}
	request = requests->spare;
	if (request)
		requests->spare = request->next;
	else
		request = malloc(sizeof(*request));
	if (!request)
		return NULL;
	memset(request, 0, sizeof(*request));
	request->handle = handle;
	request->serial = ++requests->serial;
	return request;
}

/* The latest of the handle and kind up to `ns`. */
static struct request *find_before(const struct xs_process *process, uint64_t handle, uint8_t kind,
				   uint64_t ns)
{
	const struct request key = {
		.handle = handle, .kind = kind, .start = ns, .serial = UINT64_MAX
	};
	struct request *found =
		process->requests ? request_of(xs_tree_before(&process->requests->tree, &key.node))
				  : NULL;

	return found && found->handle == handle && found->kind == kind ? found : NULL;
}

/* Work that was started: the latest before `ns`. */
static struct request *find_open(const struct xs_process *process, uint64_t handle, uint64_t ns)
{
	return find_before(process, handle, STARTED, ns);
}

static struct request *find_persistent(const struct xs_process *process, uint64_t handle)
{
	return find_before(process, handle, PERSISTENT, UINT64_MAX);
}

/* A completion: the earliest from `ns` on. */
static struct request *find_end(const struct xs_process *process, uint64_t handle, uint64_t ns)
{
	const struct request key = { .handle = handle, .kind = END, .start = ns };
	struct request *found = request_of(xs_tree_behind(&process->requests->tree, &key.node));

	return found && found->handle == handle && found->kind == END ? found : NULL;
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
					  .end = end,
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

static void open_request(struct xs_process *process, struct request *request)
{
	struct request *end = find_end(process, request->handle, request->start);

	if (!end) {
		put_in(process, request);
		return;
	}
	take_end_out(process, end);
	complete(request, end);
	show(process, request, end->start, false);
	drop(process, end);
}

static void complete_now(struct xs_process *process, const struct done *done)
{
	struct request *begin = find_open(process, done->record.request, done->ns), end, *request;

	/* a completion needs no room of its own: it makes some */
	request = begin ? &end : new_request(process, done->record.request);
	if (!request)
		return;
	request->kind = END;
	request->start = done->ns;
	request->tid = done->tid;
	request->bytes = done->record.bytes;
	request->peer = done->record.peer;
	request->tag = done->record.tag;
	request->cancelled = done->record.cancelled;
	if (begin) {
		take_out(process, begin);
		complete(begin, request);
		show(process, begin, done->ns, false);
	} else {
		put_in(process, request);
		xs_early_add(&process->requests->ends, &request->early);
	}
}

static int by_time(const void *x, const void *y)
{
	const struct done *a = x, *b = y;
	int difference = order(a->record.event.tick, b->record.event.tick);

	return difference ? difference : order(a->serial, b->serial);
}

/* Those that wait and were written by then. */
static void settle(struct xs_process *process, uint64_t until)
{
	struct xs_requests *requests = process->requests;
	uint32_t settled = 0;

	if (!requests->done_count)
		return;
	qsort(requests->done, requests->done_count, sizeof(*requests->done), by_time);
	while (settled < requests->done_count && requests->done[settled].record.event.tick <= until)
		complete_now(process, &requests->done[settled++]);
	requests->done_count -= settled;
	memmove(requests->done, requests->done + settled,
		requests->done_count * sizeof(*requests->done));
}

/* As spans are (spans.c): threads complete what others have started, and handles come again. */
static void complete_in_time(struct xs_process *process, struct done *done)
{
	struct xs_requests *requests = requests_of(process);

	if (requests && !requests->done)
		requests->done = malloc(DONE_MAX * sizeof(*requests->done));
	if (!requests || !requests->done ||
	    (process->track_count == 1 && done->record.event.tick <= process->pass_tick &&
	     !requests->done_count)) {
		complete_now(process, done);
		return;
	}
	done->serial = ++requests->serial;
	requests->done[requests->done_count++] = *done;
	if (requests->done_count < DONE_MAX)
		return;
	qsort(requests->done, DONE_MAX, sizeof(*requests->done), by_time);
	settle(process, requests->done[DONE_MAX / 2].record.event.tick);
}

/* Where no more requests can be open, those that are complete end at once. */
static void make_place(struct xs_process *process)
{
	if (process->requests && process->requests->tree.count >= REQUESTS_MAX)
		settle(process, UINT64_MAX);
}

void xs_mpi_pass(struct xs_process *process)
{
	struct xs_early *early;

	if (!process->requests)
		return;
	settle(process, process->pass_tick);
	process->requests->ends.pass++;
	while ((early = xs_early_next(&process->requests->ends)))
		drop_end(process, early);
}

/* What the requests are that a function makes, from its name: looked up once. */
enum { ROLE_KNOWN = 1, ROLE_RECEIVES = 2, ROLE_TRANSFERS = 4, ROLE_PERSISTENT = 8 };

static uint8_t role_of(const struct xs_process *process, uint32_t name)
{
	static uint8_t roles[1024];
	uint32_t function = name & 0xffffff;
	uint8_t role = function < sizeof(roles) ? roles[function] : 0;
	const char *text;
	size_t length;

	if (role)
		return role;
	text = xs_text_of(process->run, name, &length);
	role = (uint8_t)(ROLE_KNOWN |
			 (strstr(text, "recv") || strstr(text, "Recv_init") ? ROLE_RECEIVES : 0) |
			 (strncmp(text, "MPI_File_", 9) ? 0 : ROLE_TRANSFERS) |
			 (strstr(text, "_init") ? ROLE_PERSISTENT : 0));
	if (function < sizeof(roles))
		roles[function] = role;
	return role;
}

/* A call that made a request; its number. */
static uint64_t made(struct xs_track *track, uint32_t words, const uint64_t *word, uint32_t name,
		     uint64_t start)
{
	struct xs_process *process = track->process;
	struct request *request, *old;
	uint8_t role = role_of(process, name);
	uint64_t number;

	make_place(process);
	request = new_request(process, word[XS_MPI_REQUEST]);
	if (!request)
		return 0;
	request->start = start;
	request->tid = track->tid;
	request->name = name;
	request->words = words;
	memcpy(request->word, word, sizeof(request->word));
	request->receives = role & ROLE_RECEIVES;
	request->transfers = role & ROLE_TRANSFERS;
	request->kind = role & ROLE_PERSISTENT ? PERSISTENT : STARTED;
	request->number = number = ++process->requests->number;
	if (request->kind == STARTED) {
		open_request(process, request);
		return number;
	}
	old = find_persistent(process, request->handle);
	if (old) {
		/* it was freed by somebody whom we did not see */
		take_out(process, old);
		drop(process, old);
	}
	put_in(process, request);
	return number;
}

/* The call that began at `tick` has started it. */
static void note_started(struct xs_track *track, uint64_t tick, uint64_t number)
{
	struct xs_mpi_started *started = track->started;

	if (!started)
		started = track->started = calloc(1, sizeof(*started));
	if (!started)
		return;
	if (started->tick != tick)
		started->count = 0; /* of one whose record was lost */
	started->tick = tick;
	if (started->count < STARTED_MAX)
		started->number[started->count++] = number;
}

static void read_request(struct xs_track *track, const struct xs_mpi_request_record *record,
			 uint64_t ns)
{
	struct xs_process *process = track->process;
	struct done done = { .record = *record, .ns = ns, .tid = track->tid };
	struct request *begin, *request;

	if (record->event.kind == XS_MPI_START) {
		uint64_t serial;

		make_place(process);
		begin = find_persistent(process, record->request);
		request = begin ? new_request(process, record->request) : NULL;
		if (!request)
			return;
		serial = request->serial;
		*request = *begin;
		request->serial = serial;
		request->kind = STARTED;
		request->start = ns;
		request->tid = track->tid;
		note_started(track, record->event.tick, request->number);
		open_request(process, request);
		return;
	}
	complete_in_time(process, &done);
}

void xs_mpi_finish(struct xs_process *process, uint64_t end)
{
	struct xs_requests *requests = process->requests;

	if (requests)
		settle(process, UINT64_MAX);
	while (requests && requests->tree.root) {
		struct request *request = request_of(requests->tree.root);

		take_out(process, request);
		if (request->kind == STARTED) {
			process->open_requests++;
			show(process, request, end > request->start ? end : request->start, true);
		} else {
			drop(process, request);
		}
	}
	while (requests && requests->spare) {
		struct request *request = requests->spare;

		requests->spare = request->next;
		free(request);
	}
	if (requests)
		free(requests->done);
	free(requests);
	process->requests = NULL;
}

/* ---- calls ---- */

/* MPI_Request_free: nobody will see the end of the work. */
static void freed(struct xs_process *process, uint64_t handle, uint64_t ns)
{
	struct request *request = find_open(process, handle, ns);

	if (request) {
		take_out(process, request);
		show(process, request, ns, true);
	}
	request = find_persistent(process, handle);
	if (request) {
		take_out(process, request);
		drop(process, request);
	}
}

/* The number of the request that a call names by its handle; 0: not known. */
static uint64_t number_of(struct xs_process *process, uint64_t handle, uint64_t ns)
{
	const struct request *request = find_open(process, handle, ns);

	if (!request)
		request = find_persistent(process, handle);
	return request ? request->number : 0;
}

/* Its duration, in ticks. */
static uint64_t read_words(struct xs_mpi_call *call, uint64_t *word,
			   const struct xs_mpi_record *record, uint32_t size)
{
	const uint64_t *from = record->word, *stop = from + (size - sizeof(*record)) / 8;
	const uint32_t told = record->words & ((1u << XS_MPI_WORDS) - 1);
	uint64_t duration = record->duration;
	uint32_t left = told;

	/* the others are not looked at where they are not there */
	memset(word, 0, XS_MPI_REQUEST * sizeof(word[0]));
	for (; left && from < stop; left &= left - 1)
		word[__builtin_ctz(left)] = *from++;
	call->words = told ^ left;
	call->result = call->words & 1u << XS_MPI_RESULT ? (int32_t)word[XS_MPI_RESULT] : 0;
	if (call->words & 1u << XS_MPI_DURATION)
		duration = word[XS_MPI_DURATION];
	call->words &= ~(1u << XS_MPI_RESULT | 1u << XS_MPI_DURATION);
	return duration;
}

static void read_call(struct xs_track *track, const struct xs_mpi_record *record, uint32_t size,
		      uint64_t start)
{
	struct xs_process *process = track->process;
	uint64_t word[XS_MPI_WORDS];
	struct xs_mpi_call call = { .event = &record->event, .word = word, .start = start };
	uint64_t duration = read_words(&call, word, record, size), off;
	bool names_request = call.words & 1u << XS_MPI_REQUEST && !call.result;
	size_t length;

	if (!xs_track_believes(track, &record->event, duration)) {
		process->corrupt++;
		return;
	}
	call.name = xs_function_id(record->event.source, record->event.name);
	call.end = xs_process_ns(process, record->event.tick + duration);
	if (call.end < start)
		call.end = start;
	off = xs_track_cut_short(track, record->event.tick, duration);
	call.unfinished = off != UINT64_MAX;
	if (call.unfinished) {
		off = xs_process_ns(process, off);
		call.end = off > start ? off : start;
	}
	if (names_request && record->words & XS_MPI_MAKES)
		call.request = made(track, call.words, word, call.name, start);
	else if (names_request)
		call.request = number_of(process, word[XS_MPI_REQUEST], call.end);
	if (track->started && track->started->tick == record->event.tick) {
		call.started = track->started->number;
		call.started_count = track->started->count;
	}
	if (xs_call_wanted(process->run, &record->event))
		XS_TELL_SINKS(process, mpi_call, track, &call);
	else
		process->excluded++;
	if (track->started)
		track->started->count = 0;
	if (names_request && call.words == 1u << XS_MPI_REQUEST &&
	    !strcmp(xs_text_of(process->run, call.name, &length), "MPI_Request_free"))
		freed(process, word[XS_MPI_REQUEST], call.end);
	track->last_ns = call.end;
}

void xs_mpi_read(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	uint64_t ns = xs_process_ns(track->process, event->tick);

	if (event->kind == XS_MPI_MEMBER) {
		if (size >= sizeof(struct xs_mpi_member_record))
			XS_TELL_SINKS(track->process, communicator, track,
				      (const struct xs_mpi_member_record *)event);
		return;
	}
	if (event->kind == XS_MPI && size >= sizeof(struct xs_mpi_record))
		read_call(track, (const struct xs_mpi_record *)event, size, ns);
	else if (event->kind != XS_MPI && size >= sizeof(struct xs_mpi_request_record))
		read_request(track, (const struct xs_mpi_request_record *)event, ns);
}
