/*
 * The flight recorder: raw records of the newest time kept in memory, and traces made of them when
 * somebody asks.
 *
 * Rings are read as always, but their records are only copied, into chunks of one piece of memory
 * that is used again and again. What becomes too old goes through the normal dispatch without a
 * sink: so each track's own state (thread, open tasks) is that of the moment at which its history
 * begins. A dump is made by a child of this process: fork is the snapshot, the child sends the
 * history through the same dispatch once more, now with a sink, and meanwhile the rings are read
 * here as if nothing had happened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy.h"
#include "cuda_activity.h"
#include "flight.h"
#include "memory.h"
#include "text.h"

#define CHUNK	     (32u << 10)
#define LEAST_CHUNKS 32u /* as many as --flight-memory asks for at least */

/*
 * What one look at a ring found is behind an event that is no record; tick: when the look began,
 * name: bytes of records. A trace is written in the order of the looks, as without a flight
 * recorder.
 */
struct xs_chunk {
	struct xs_chunk *next; /* of the track, or spare */
	uint64_t last;	       /* tick of the newest look */
	uint32_t length;
	uint32_t look; /* where the newest look begins */
	_Alignas(16) unsigned char data[];
};
#define CHUNK_DATA (CHUNK - (uint32_t)sizeof(struct xs_chunk))

struct xs_flight {
	unsigned char *memory;
	size_t used, room; /* chunks: ever used, in all */
	struct xs_chunk *spare;
	struct xs_track *tracks; /* those that have chunks */
	uint64_t now;		 /* tick of this look */
	uint64_t window;	 /* ns */
	struct xs_dump dump;
	uint32_t asked;	    /* control->dumps when the newest dump began */
	uint32_t triggers;  /* the same of the mailbox's */
	uint32_t listed[2]; /* asked of the two dumps before */
	int list;	    /* of the paths of this dump's traces, in the child that writes it */
	unsigned in_list;   /* paths */
	pid_t writer;	    /* of the dump that is being written; 0: none */
};

bool xs_flight_create(struct xs_run *run)
{
	const struct xs_options *options = run->options;
	struct xs_flight *flight = calloc(1, sizeof(*flight));
	uint64_t limit = xs_memory_limit() / 8;
	void *memory;

	if (!flight)
		return false;
	/* what the group (container, job) has room for, beside the rings */
	flight->room = (options->flight_memory < limit ? options->flight_memory : limit) / CHUNK;
	if (flight->room < LEAST_CHUNKS)
		flight->room = LEAST_CHUNKS;
	flight->window = options->flight;
	memory = mmap(NULL, flight->room * CHUNK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		free(flight);
		return false;
	}
	flight->memory = memory;
	run->flight = flight;
	run->dump = &flight->dump;
	return true;
}

void xs_flight_destroy(struct xs_flight *flight)
{
	if (!flight)
		return;
	(void)munmap(flight->memory, flight->room * CHUNK);
	free(flight);
}

void xs_flight_look(struct xs_run *run)
{
	run->flight->now = xs_tick(run->use_tsc);
}

/* ---- keeping ---- */

/*
 * The i-th history of the process: those of its rings, then what CUPTI has told. NULL: there are no
 * more.
 */
static struct xs_track *history_of(const struct xs_process *process, uint32_t i)
{
	if (i < process->track_count)
		return process->tracks[i];
	return i == process->track_count && process->cuda ? process->cuda->history : NULL;
}

static struct xs_event *look_at(struct xs_chunk *chunk, uint32_t offset)
{
	return (struct xs_event *)(chunk->data + offset);
}

static void take_out(struct xs_track *track)
{
	struct xs_history *history = &track->history;

	*history->link = history->next;
	if (history->next)
		history->next->history.link = history->link;
	memset(history, 0, sizeof(*history));
}

static void put_in(struct xs_flight *flight, struct xs_track *track)
{
	struct xs_history *history = &track->history;

	history->next = flight->tracks;
	history->link = &flight->tracks;
	if (history->next)
		history->next->history.link = &history->next;
	flight->tracks = track;
}

static void give_back(struct xs_flight *flight, struct xs_track *track)
{
	struct xs_chunk *chunk = track->history.oldest;

	track->history.oldest = chunk->next;
	chunk->next = flight->spare;
	flight->spare = chunk;
	if (!track->history.oldest)
		take_out(track);
}

/* The track's oldest chunk is history no more: what it says about later records is remembered. */
static void drop_oldest(struct xs_flight *flight, struct xs_track *track)
{
	struct xs_chunk *chunk = track->history.oldest;

	for (uint32_t offset = 0; offset < chunk->length;) {
		const struct xs_event *look = look_at(chunk, offset);

		track->replay(track, (const unsigned char *)(look + 1), look->name);
		offset += (uint32_t)sizeof(*look) + look->name;
	}
	give_back(flight, track);
}

static void make_room(struct xs_flight *flight)
{
	struct xs_track *oldest = flight->tracks;

	for (struct xs_track *track = oldest; track; track = track->history.next)
		if (track->history.oldest->last < oldest->history.oldest->last)
			oldest = track;
	if (oldest->history.oldest->last > oldest->process->history_cut)
		oldest->process->history_cut = oldest->history.oldest->last;
	drop_oldest(flight, oldest);
}

static struct xs_chunk *take_chunk(struct xs_flight *flight)
{
	struct xs_chunk *chunk;

	if (!flight->spare && flight->used < flight->room)
		return (struct xs_chunk *)(flight->memory + CHUNK * flight->used++);
	if (!flight->spare)
		make_room(flight);
	chunk = flight->spare;
	flight->spare = chunk->next;
	return chunk;
}

/* The track's newest chunk, with room for any record behind the mark of this look. */
static struct xs_chunk *place(struct xs_flight *flight, struct xs_track *track)
{
	struct xs_chunk *chunk = track->history.newest;
	struct xs_event *look;

	if (chunk && chunk->last == flight->now && CHUNK_DATA - chunk->length >= XS_RECORD_MAX)
		return chunk;
	if (!chunk || CHUNK_DATA - chunk->length < XS_RECORD_MAX + sizeof(*look)) {
		/* the track's last chunk may go for it */
		struct xs_chunk *fresh = take_chunk(flight);

		fresh->next = NULL;
		fresh->length = 0;
		if (track->history.oldest)
			track->history.newest->next = fresh;
		else
			put_in(flight, track);
		if (!track->history.oldest)
			track->history.oldest = fresh;
		track->history.newest = chunk = fresh;
	}
	look = look_at(chunk, chunk->length);
	*look = (struct xs_event){ .tick = flight->now };
	chunk->look = chunk->length;
	chunk->length += sizeof(*look);
	chunk->last = flight->now;
	return chunk;
}

/*
 * Another thread has the ring from `pos` on. A successor reads what the ring still has of what was
 * read before, where the record that says so is gone.
 */
static __attribute__((cold)) void note_thread(struct xs_track *track, uint64_t pos,
					      const struct xs_thread_record *record)
{
	struct xs_thread_since *since = track->since;
	uint32_t count = track->since_count, old = 0;

	if (!since)
		since = track->since = calloc(XS_RING_SAVED, sizeof(*since));
	if (!since || (count && since[count - 1].tid == (uint32_t)record->tid &&
		       since[count - 1].name == record->event.name))
		return;
	/* what the ring cannot have any more, and where that is not enough the oldest */
	while (old + 1 < count && pos - since[old + 1].pos >= track->ring_size)
		old++;
	if (count - old == XS_RING_SAVED)
		old++;
	memmove(since, since + old, (count - old) * sizeof(*since));
	since[count - old] = (struct xs_thread_since){ .pos = pos,
						       .tid = (uint32_t)record->tid,
						       .name = record->event.name };
	track->since_count = count - old + 1;
}

/*
 * How many of the bytes are whole records. They are our own: what the ring holds may change at any
 * time.
 */
static uint32_t whole_records(struct xs_track *track, const unsigned char *data, uint32_t length)
{
	uint32_t done = 0;

	while (length - done >= sizeof(struct xs_event)) {
		const struct xs_event *event = (const void *)(data + done);
		uint32_t size = event->words * 8u;

		if (size < sizeof(*event) || size % 16 || size > length - done ||
		    !xs_record_fits(event->kind, size))
			break;
		if (__builtin_expect(event->kind == XS_THREAD, 0))
			note_thread(track, track->pos + done, (const void *)event);
		done += size;
	}
	return done;
}

void xs_flight_keep(struct xs_track *track, uint64_t head)
{
	struct xs_process *process = track->process;
	struct xs_flight *flight = process->run->flight;

	while (track->pos != head) {
		struct xs_chunk *chunk = place(flight, track);
		uint64_t offset = track->pos & (track->ring_size - 1);
		uint64_t length = head - track->pos;
		uint32_t kept;

		if (length > track->ring_size - offset)
			length = track->ring_size - offset;
		if (length > CHUNK_DATA - chunk->length)
			length = CHUNK_DATA - chunk->length;
		memcpy(chunk->data + chunk->length, track->data + offset, length);
		kept = whole_records(track, chunk->data + chunk->length, (uint32_t)length);
		if (!kept) { /* there was room for any record: this is none */
			process->corrupt++;
			track->pos = head;
			return;
		}
		look_at(chunk, chunk->look)->name += kept;
		chunk->length += kept;
		track->pos += kept;
	}
}

void xs_flight_add(struct xs_track *track, const void *record, uint32_t size)
{
	struct xs_chunk *chunk = place(track->process->run->flight, track);

	memcpy(chunk->data + chunk->length, record, size);
	look_at(chunk, chunk->look)->name += size;
	chunk->length += size;
}

/* Where the history of this moment begins, in ns of the trace. */
static uint64_t horizon(const struct xs_run *run)
{
	uint64_t now = xs_timeline_ns(&run->clock, run->flight->now);

	return now > run->flight->window ? now - run->flight->window : 0;
}

bool xs_flight_expire(struct xs_process *process)
{
	struct xs_run *run = process->run;
	uint64_t from = horizon(run);
	struct xs_track *track;
	bool left = false;

	for (uint32_t i = 0; (track = history_of(process, i)); i++) {
		while (track->history.oldest &&
		       xs_timeline_ns(&run->clock, track->history.oldest->last) < from)
			drop_oldest(run->flight, track);
		left |= track->history.oldest != NULL;
	}
	return left;
}

void xs_flight_forget(struct xs_track *track)
{
	while (track->history.oldest)
		give_back(track->process->run->flight, track);
}

/* ---- dumping: in the child ---- */

static const struct xs_event *next_look(const struct xs_track *track)
{
	struct xs_chunk *chunk = track->history.at;

	return chunk ? look_at(chunk, track->history.offset) : NULL;
}

/*
 * All tracks' records of the first look that is left, if it began before `until` (ns of the trace).
 */
static bool replay(struct xs_process *process, uint64_t until)
{
	struct xs_timeline *clock = &process->run->clock;
	uint64_t first = UINT64_MAX;
	size_t segments = clock->count;
	struct xs_track *track;

	for (uint32_t i = 0; (track = history_of(process, i)); i++) {
		const struct xs_event *look = next_look(track);

		if (look && look->tick < first)
			first = look->tick;
	}
	if (first == UINT64_MAX || xs_timeline_ns(clock, first) >= until)
		return false;
	/* as the timeline was then: the conversion is quick in its last segment */
	while (clock->count > 1 && clock->segments[clock->count - 1].tick > first)
		clock->count--;
	for (uint32_t i = 0; (track = history_of(process, i)); i++) {
		struct xs_history *history = &track->history;
		const struct xs_event *look;

		while ((look = next_look(track)) && look->tick == first) {
			history->offset += sizeof(*look) + look->name;
			track->replay(track, (const unsigned char *)(look + 1), look->name);
			if (history->offset == history->at->length) {
				history->at = history->at->next;
				history->offset = 0;
			}
		}
	}
	clock->count = segments;
	return true;
}

void xs_flight_rewind(struct xs_process *process)
{
	struct xs_dump *dump = &process->run->flight->dump;
	struct xs_track *track;

	for (uint32_t i = 0; (track = history_of(process, i)); i++)
		track->history.at = track->history.oldest;
	dump->from = horizon(process->run);
	/* a chunk holds older records too, above all a quiet thread's */
	while (replay(process, dump->from))
		;
	dump->cut = process->history_cut &&
		    xs_timeline_ns(&process->run->clock, process->history_cut) > dump->from;
	if (dump->cut)
		dump->from = xs_timeline_ns(&process->run->clock, process->history_cut);
	if (dump->from < xs_timeline_ns(&process->run->clock, process->join_tick))
		dump->from = xs_timeline_ns(&process->run->clock, process->join_tick);
	dump->to = xs_timeline_ns(&process->run->clock, process->end_tick
								? process->end_tick
								: process->run->flight->now);
}

void xs_flight_replay(struct xs_process *process)
{
	while (replay(process, UINT64_MAX))
		;
}

static void list_trace(struct xs_run *run, char *path)
{
	size_t length = strlen(path) + 1;
	char name[XS_NAME_MAX];

	run->flight->in_list++;
	if (run->flight->list < 0 || write(run->flight->list, path, length) == (ssize_t)length)
		return;
	run->flight->list = -1;
	xs_dump_name(name, run->flight->asked);
	(void)unlinkat(run->directory, name, 0); /* who asks is to see that it is not there */
}

void xs_flight_end_list(struct xs_run *run)
{
	static char nothing[] = XS_DUMP_UNWRITTEN;

	if (!run->flight->in_list)
		list_trace(run, nothing);
}

/*
 * The list that --dump shows; of the two before the newest none is asked for any more. In the child
 * that writes the dump.
 */
static void begin_list(struct xs_run *run)
{
	char name[XS_NAME_MAX];

	xs_dump_name(name, run->flight->listed[0]);
	if (run->flight->listed[0] != run->flight->asked)
		(void)unlinkat(run->directory, name, 0);
	xs_dump_name(name, run->flight->asked);
	(void)unlinkat(run->directory, name, 0);
	run->flight->list = openat(run->directory, name,
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	run->trace_written = list_trace;
}

/* ---- dumping: here ---- */

static void tell_done(struct xs_run *run)
{
	atomic_store_explicit(&run->control->dumped, run->flight->asked, memory_order_release);
	xs_futex_wake(&run->control->dumped);
}

bool xs_flight_writing(struct xs_run *run)
{
	struct xs_flight *flight = run->flight;
	int status = 0;
	pid_t pid;

	if (!flight->writer)
		return false;
	pid = waitpid(flight->writer, &status, WNOHANG);
	if (!pid || (pid < 0 && errno == EINTR))
		return true;
	if (pid > 0 && status)
		xs_tell("[WARNING] Flight recorder: dump %u is not complete (%s %d)\n",
			flight->dump.number, WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	flight->writer = 0;
	tell_done(run);
	return false;
}

bool xs_flight_is_writing(const struct xs_run *run)
{
	return run->flight->writer;
}

bool xs_flight_asked(const struct xs_run *run)
{
	/* processes may ask where --trigger lets them */
	return atomic_load_explicit(&run->control->dumps, memory_order_acquire) !=
		       run->flight->asked ||
	       (run->options->trigger[0] &&
		atomic_load_explicit(&run->mailbox->triggers, memory_order_acquire) !=
			run->flight->triggers);
}

bool xs_flight_dump(struct xs_run *run, uint32_t asked, uint32_t triggers, uint32_t reasons)
{
	struct xs_flight *flight = run->flight;

	if (run->options->trigger[0] && triggers != flight->triggers)
		reasons |= XS_DUMP_TRIGGER;
	flight->listed[0] = flight->listed[1];
	flight->listed[1] = flight->asked;
	flight->asked = asked;
	flight->triggers = triggers;
	flight->dump.number++;
	flight->dump.reasons = reasons;
	flight->writer = fork();
	if (!flight->writer)
		begin_list(run);
	if (flight->writer >= 0)
		return !flight->writer;
	xs_tell("[WARNING] Flight recorder: dump %u is not written: %s\n", flight->dump.number,
		strerror(errno));
	flight->writer = 0;
	tell_done(run);
	return false;
}
