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
#include "mpi_words.h"
#include "tree.h"

#define REQUESTS_MAX 65536u

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
	struct request *next; /* unused ones */
	uint64_t handle, start, number;
	uint64_t serial; /* no two have the same */
	uint8_t kind;
	uint32_t tid;	   /* of the thread that started it; of an end: that saw it */
	uint32_t ended_by; /* the latter, once it is known */
	uint32_t name;
	uint32_t words;
	bool receives, transfers; /* transfers: a file's */
	bool cancelled;
	uint64_t word[XS_MPI_WORDS];
	uint64_t bytes; /* of an end */
	int32_t peer, tag;
};

struct xs_requests {
	struct xs_tree tree;
	struct request *spare;
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

static struct request *new_request(struct xs_process *process, uint64_t handle)
{
	struct xs_requests *requests = process->requests;
	struct request *request;

	if (!requests) {
		requests = process->requests = calloc(1, sizeof(*requests));
		if (!requests)
			return NULL;
		requests->tree.compare = compare;
	}
	if (requests->tree.count >= REQUESTS_MAX) {
		process->omitted[XS_OMIT_REQUESTS]++;
		return NULL;
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
	char args[XS_MPI_WORDS_ROOM + 128], *o = args;

	if (!process->chrome) {
		drop(process, request);
		return;
	}
	o = xs_mpi_put_call(process, o, request->words, request->word);
	o = xs_json_uint(put(o, ",\"request\":"), request->number);
	o = xs_json_uint(put(o, ",\"started_by\":"), request->tid);
	if (request->ended_by)
		o = xs_json_uint(put(o, ",\"ended_by\":"), request->ended_by);
	if (request->cancelled)
		o = put(o, ",\"cancelled\":true");
	if (unfinished)
		o = put(o, ",\"unfinished\":true");
	xs_chrome_request(process, request->name, request->start, end, args + 1,
			  (size_t)(o - args) - 1);
	drop(process, request);
}

static void open_request(struct xs_process *process, struct request *request)
{
	struct request *end = find_end(process, request->handle, request->start);

	if (!end) {
		put_in(process, request);
		return;
	}
	take_out(process, end);
	complete(request, end);
	show(process, request, end->start, false);
	drop(process, end);
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
	struct request *request = new_request(process, word[XS_MPI_REQUEST]), *old;
	uint8_t role = role_of(process, name);
	uint64_t number;

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

static void read_request(struct xs_track *track, const struct xs_mpi_request_record *record,
			 uint64_t ns)
{
	struct xs_process *process = track->process;
	struct request *begin, *request;

	if (record->event.kind == XS_MPI_START) {
		uint64_t serial;

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
		if (track->started_tick != record->event.tick)
			track->started_count = 0; /* of one whose record was lost */
		track->started_tick = record->event.tick;
		if (track->started_count < XS_STARTED_MAX)
			track->started[track->started_count++] = request->number;
		open_request(process, request);
		return;
	}
	begin = find_open(process, record->request, ns);
	/*
	 * with one ring, what has not begun by now never will: it began while nothing was recorded
	 */
	if (!begin && process->track_count < 2)
		return;
	request = new_request(process, record->request);
	if (!request)
		return;
	request->kind = END;
	request->start = ns;
	request->tid = track->tid;
	request->bytes = record->bytes;
	request->peer = record->peer;
	request->tag = record->tag;
	request->cancelled = record->cancelled;
	if (begin) {
		take_out(process, begin);
		complete(begin, request);
		show(process, begin, ns, false);
		drop(process, request);
	} else {
		put_in(process, request);
	}
}

void xs_mpi_finish(struct xs_process *process, uint64_t end)
{
	struct xs_requests *requests = process->requests;

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
	free(requests);
	free(process->mpi_texts);
	process->requests = NULL;
	process->mpi_texts = NULL;
}

/* ---- calls ---- */

struct call {
	uint64_t start, end, tick;
	uint64_t number; /* of its request; 0: none, or not known */
	uint32_t name, words;
	int32_t result;
	bool unfinished;
	uint64_t word[XS_MPI_WORDS];
};

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

/* All that one call started, in their order. */
static char *put_started(char *o, const struct xs_track *track)
{
	o = put(o, ",\"requests\":[");
	for (uint32_t i = 0; i < track->started_count; i++) {
		if (i)
			*o++ = ',';
		o = xs_json_uint(o, track->started[i]);
	}
	*o++ = ']';
	return o;
}

/* The slice of a call. */
static void show_call(struct xs_track *track, const struct call *call)
{
	char *begin = xs_chrome_mpi_begin(track, call->start, call->end),
	     *args = put(begin, ",\"args\":"), *o = args;

	o = xs_mpi_put_call(track->process, o, call->words, call->word);
	if (call->number)
		o = xs_json_uint(put(o, ",\"request\":"), call->number);
	else if (track->started_count && track->started_tick == call->tick)
		o = put_started(o, track);
	if (call->result)
		o = xs_json_signed(put(o, ",\"result\":"), call->result);
	if (call->unfinished)
		o = put(o, ",\"unfinished\":true");
	if (o > args) {
		*args = '{'; /* in place of the first comma */
		*o++ = '}';
	} else {
		o = begin;
	}
	xs_chrome_mpi_end(track, call->name, o);
}

/* Its duration, in ticks. */
static uint64_t read_words(struct call *call, const struct xs_mpi_record *record, uint32_t size)
{
	uint32_t count = (size - (uint32_t)sizeof(*record)) / 8, at = 0,
		 left = record->words & ((1u << XS_MPI_WORDS) - 1);
	uint64_t duration = record->duration;

	/* the others are not looked at where they are not there */
	memset(call->word, 0, XS_MPI_REQUEST * sizeof(call->word[0]));
	call->words = 0;
	for (; left && at < count; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		call->word[i] = record->word[at++];
		call->words |= 1u << i;
	}
	call->result = call->words & 1u << XS_MPI_RESULT ? (int32_t)call->word[XS_MPI_RESULT] : 0;
	if (call->words & 1u << XS_MPI_DURATION)
		duration = call->word[XS_MPI_DURATION];
	call->words &= ~(1u << XS_MPI_RESULT | 1u << XS_MPI_DURATION);
	return duration;
}

static void read_call(struct xs_track *track, const struct xs_mpi_record *record, uint32_t size,
		      uint64_t start)
{
	struct xs_process *process = track->process;
	struct call call;
	uint64_t duration = read_words(&call, record, size), off;
	bool names_request = call.words & 1u << XS_MPI_REQUEST && !call.result;
	size_t length;

	if (!xs_track_believes(track, &record->event, duration)) {
		process->corrupt++;
		return;
	}
	call.start = start;
	call.tick = record->event.tick;
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
	call.number = 0;
	if (names_request && record->words & XS_MPI_MAKES)
		call.number = made(track, call.words, call.word, call.name, start);
	else if (names_request)
		call.number = number_of(process, call.word[XS_MPI_REQUEST], call.end);
	if (process->chrome)
		show_call(track, &call);
	track->started_count = 0;
	if (process->summary && !(record->event.flags & XS_MPI_FLAG_INSIDE))
		xs_summary_call(process->summary, &record->event, call.end - start);
	if (names_request && call.words == 1u << XS_MPI_REQUEST &&
	    !strcmp(xs_text_of(process->run, call.name, &length), "MPI_Request_free"))
		freed(process, call.word[XS_MPI_REQUEST], call.end);
	track->last_ns = call.end;
}

void xs_mpi_read(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	uint64_t ns = xs_process_ns(track->process, event->tick);

	if (event->kind == XS_MPI_MEMBER) {
		if (size >= sizeof(struct xs_mpi_member_record) && track->process->chrome)
			xs_mpi_show_member(track, (const struct xs_mpi_member_record *)event);
		return;
	}
	if (event->kind == XS_MPI && size >= sizeof(struct xs_mpi_record))
		read_call(track, (const struct xs_mpi_record *)event, size, ns);
	else if (event->kind != XS_MPI && size >= sizeof(struct xs_mpi_request_record))
		read_request(track, (const struct xs_mpi_request_record *)event, ns);
}
