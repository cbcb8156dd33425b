/*
 * What the records of MPI mean: a slice for each call, with its partners and sizes. The work of the
 * requests that calls start: requests.c.
 */
#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "cuts.h"
#include "mpi_record.h"
#include "mpi_records.h"
#include "requests.h"
#include "sink.h"

#define STARTED_MAX 64u /* requests that one call starts, whose numbers are shown */

/* Numbers of the requests that a call started whose record is still to come. */
struct xs_mpi_started {
	uint64_t tick; /* when it began */
	uint32_t count;
	uint64_t number[STARTED_MAX];
};

/* From the function's name: looked up once. */
static const struct xs_request_role *role_of(const struct xs_process *process, uint32_t name)
{
	static struct xs_request_role roles[1024], other;
	uint32_t function = name & 0xffffff;
	bool is_listed = function < sizeof(roles) / sizeof(*roles);
	struct xs_request_role *role = is_listed ? &roles[function] : &other;
	const char *text;
	size_t length;

	if (is_listed && role->is_known)
		return role;
	text = xs_text_of(process->run, name, &length);
	role->is_known = true;
	role->receives = strstr(text, "recv") || strstr(text, "Recv_init");
	role->transfers = !strncmp(text, "MPI_File_", 9);
	role->persistent = strstr(text, "_init");
	return role;
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
	call->error = call->result ? (uint32_t)(word[XS_MPI_RESULT] >> 32) : 0;
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
	uint64_t duration = read_words(&call, word, record, size), off, returned;
	bool names_request = call.words & 1u << XS_MPI_REQUEST && !call.result;
	bool makes_it = names_request && record->words & XS_MPI_MAKES;
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
	returned = call.end;
	track->mpi_begin = record->event.tick;
	track->mpi_end = record->event.tick + duration;
	call.unfinished = off != UINT64_MAX;
	if (call.unfinished) {
		off = xs_process_ns(process, off);
		call.end = off > start ? off : start;
	}
	if (makes_it)
		call.request = xs_request_made(track, &call, role_of(process, call.name), returned);
	if (track->started && track->started->tick == record->event.tick) {
		call.started = track->started->number;
		call.started_count = track->started->count;
	}
	/* MPI_Start keeps its place among the calls where nobody else makes or frees requests */
	if (names_request && !makes_it && call.started_count == 1 && process->track_count == 1) {
		call.request = call.started[0];
		names_request = false;
	}
	if (!xs_call_wanted(process->run, &record->event))
		process->excluded++;
	else if (names_request && !makes_it)
		xs_request_named(track, &call);
	else
		XS_TELL_SINKS(process, mpi_call, track, &call);
	if (track->started)
		track->started->count = 0;
	if (names_request && call.words == 1u << XS_MPI_REQUEST &&
	    !strcmp(xs_text_of(process->run, call.name, &length), "MPI_Request_free"))
		xs_request_freed(track, word[XS_MPI_REQUEST], record->event.tick, start);
	track->last_ns = call.end;
}

/* Before the records of what was seen to be complete comes that of the call that saw it. */
static void read_request(struct xs_track *track, const struct xs_mpi_request_record *record,
			 uint64_t ns)
{
	uint64_t tick = record->event.tick, number;

	if (record->event.kind == XS_MPI_DONE && track->mpi_end == tick)
		tick = track->mpi_begin;
	number = xs_request_read(track, record, ns, tick);

	if (number)
		note_started(track, record->event.tick, number);
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
