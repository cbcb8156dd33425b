/*
 * Reading tracks: where the records of a ring end, copies of them, and what they mean.
 *
 * Nothing that a ring holds is believed: a torn or hostile one costs its own records and nothing
 * else.
 */
#include "tracks.h"

#include "backlog.h"
#include "commit.h"
#include "copy.h"
#include "cuts.h"
#include "extras.h"
#include "output.h"
#include "records.h"
#include "sink.h"
#include "sinks_open.h"
#include "threads.h"

static void look_from(struct xs_track *track)
{
	track->look_at = track->cut_at <= track->latest ? track->cut_at : track->latest + 1;
}

/* A record that comes after a pause, or says so. False: it is not to be believed. */
static __attribute__((noinline, cold)) bool look_closely(struct xs_track *track, uint64_t tick)
{
	if (tick > track->latest) {
		track->process->corrupt++;
		return false;
	}
	if (tick >= track->cut_at)
		xs_track_cut(track, tick);
	look_from(track);
	return true;
}

static inline bool is_task(const struct xs_event *event)
{
	return event->kind == XS_BEGIN || event->kind == XS_END;
}

/* Padding, and what is told of kernels and devices, may have no time. */
static bool may_have_no_time(uint32_t kind)
{
	return kind == XS_PAD || kind == XS_LOST_ENDS || kind == XS_LOST_BEGINS ||
	       kind == XS_KERNEL || kind == XS_KERNEL_PLACE || kind == XS_DEVICE_USED ||
	       kind == XS_METRICS || kind == XS_COUNTED || kind == XS_STALLED || kind == XS_SAMPLE;
}

/* Nothing happens before the run begins. */
static inline bool is_too_early(const struct xs_track *track, const struct xs_event *event)
{
	return __builtin_expect(event->tick < track->process->run->began, 0) &&
	       !may_have_no_time(event->kind);
}

static inline void dispatch(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	if (is_too_early(track, event)) {
		track->process->corrupt++;
		return;
	}
	if (__builtin_expect(event->tick >= track->look_at, 0) && !look_closely(track, event->tick))
		return;
	xs_record_read(track, event, size);
}

/*
 * Tasks at `data`, of which `length` bytes may be read: so many of these as xs_tasks_read() takes.
 * The stretch is that of the last ones.
 */
static inline uint32_t read_tasks(struct xs_track *track, const unsigned char *data,
				  uint64_t length, struct xs_stretch *stretch)
{
	uint64_t tick;

	if (length < sizeof(struct xs_event))
		return 0;
	tick = __atomic_load_n((const uint64_t *)(const void *)data, __ATOMIC_RELAXED);
	if (__builtin_expect(tick - stretch->from >= stretch->length, 0))
		*stretch = xs_timeline_stretch(&track->process->run->clock, tick);
	return xs_tasks_read(track, data, length, stretch);
}

void xs_track_records(struct xs_track *track, const unsigned char *data, uint32_t length)
{
	struct xs_process *process = track->process;
	struct xs_stretch stretch = { .length = 0 };
	uint32_t size;

	for (const unsigned char *end = data + length; data != end; data += size) {
		const struct xs_event *event = (const void *)data;

		size = is_task(event) ? read_tasks(track, data, (uint64_t)(end - data), &stretch)
				      : 0;
		if (!size) {
			size = event->words * 8u;
			dispatch(track, event, size);
		}
		if (__builtin_expect(process->out && xs_output_full(process->out), 0))
			xs_process_commit(process);
	}
}

/*
 * Where records end that can be read, if nobody can have written so far, or there: the producer
 * will say again where its head is.
 */
static __attribute__((noinline, cold)) uint64_t odd_head(struct xs_track *track, uint64_t head)
{
	uint64_t unread;

	if (head != track->odd_head)
		track->process->corrupt++;
	track->odd_head = head;
	unread = xs_track_unread(track);
	return head - unread <= track->ring_size ? head & ~(uint64_t)15 : unread;
}

static bool is_odd(const struct xs_track *track, uint64_t head)
{
	return head % 16 || (head - xs_track_unread(track) > track->ring_size &&
			     track->process->run->options->on_full != XS_FULL_OVERWRITE);
}

/*
 * Overwrite: the intact records begin at a step that the producer has told. Behind a cut that may
 * be the step in which we stopped: what it holds of ours is counted as lost, and read no more.
 */
static bool is_overwritten(const struct xs_track *track, uint64_t head)
{
	uint64_t unread = xs_track_unread(track),
		 intact = atomic_load_explicit(&track->ring->tail_lost, memory_order_acquire);

	if (head - unread > track->ring_size)
		return true;
	return track->process->run->options->on_full == XS_FULL_OVERWRITE &&
	       intact - unread - 1 < head - unread;
}

static void begin_at_intact(struct xs_track *track, uint64_t head)
{
	struct xs_process *process = track->process;
	const struct xs_ring *ring = track->ring;
	uint64_t intact = atomic_load_explicit(&ring->tail_lost, memory_order_acquire),
		 losses = atomic_load_explicit(&ring->tail_losses, memory_order_relaxed);

	if (intact > head || head - intact > track->ring_size)
		intact = head;
	track->pos = intact;
	/* the others are in the counts of the threads that are given up */
	if (track->lost_base < losses)
		track->lost_base = losses;
	while (track->depth)
		xs_extra_drop(process, &track->open[--track->depth]);
	xs_track_go_on(track, atomic_load_explicit(&ring->tail_tid, memory_order_relaxed),
		       atomic_load_explicit(&ring->tail_name, memory_order_relaxed));
}

/* Where its records end by now; and what has happened to the ring meanwhile. */
void xs_track_begin(struct xs_track *track)
{
	struct xs_process *process = track->process;
	uint64_t head = xs_ring_filled(track->ring);

	if (__builtin_expect(is_odd(track, head), 0))
		head = odd_head(track, head);
	track->head = head;
	track->latest = xs_tick(process->run->use_tsc) + XS_SKEW;
	process->horizon = xs_process_ns(process, track->latest);
	if (is_overwritten(track, head))
		begin_at_intact(track, head);
	/* after head: a thread that wrote a record after a pause had seen the pause's end */
	xs_track_look_for_pauses(track);
	look_from(track);
}

void xs_tracks_name_threads(struct xs_process *process)
{
	size_t length;
	const char *name;

	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];

		if (track->thread == UINT32_MAX)
			continue;
		name = xs_text_of(process->run, process->threads[track->thread].name, &length);
		XS_TELL_SINKS(process, thread, process, track->tid, name, length);
	}
}

void xs_tracks_first_event(struct xs_process *process)
{
	process->awaits_event = !xs_sinks_open(process, true);
	if (process->awaits_event) {
		process->no_memory = true;
		return;
	}
	if (process->no_memory) /* what came before is in no trace */
		process->lost += xs_process_events(process);
	xs_tracks_name_threads(process);
}

/*
 * Nothing tells where the next record begins, but at the next step. In the ring none of what is
 * there is read: it may be changing.
 */
static __attribute__((cold)) void skip(struct xs_track *track)
{
	uint64_t step = track->ring_size / XS_RING_STEPS, left;

	if (!xs_track_is_moved(track, track->pos)) {
		track->pos = track->head;
		return;
	}
	left = step - (track->pos & (step - 1));
	track->pos += left < track->moved.end - track->pos ? left : track->moved.end - track->pos;
}

static inline void commit_if_full(struct xs_track *track)
{
	struct xs_process *process = track->process;

	if (__builtin_expect(process->out && xs_output_full(process->out), 0)) {
		track->dirty = true;
		xs_process_commit(process);
	}
}

/*
 * wanted: there are sinks that are opened with the first event, which has not come yet. True: it
 * was a task, and more may come.
 */
static inline __attribute__((always_inline)) bool read_next(struct xs_track *track,
							    const struct xs_stream *stream,
							    bool *wanted)
{
	struct xs_process *process = track->process;
	struct xs_record record;
	uint32_t size = xs_record_copy(&record, stream, track->pos, XS_RECORD_MAX);
	const struct xs_event *event = &record.event;

	if (!size) {
		process->corrupt++;
		skip(track);
		return false;
	}
	if (__builtin_expect(*wanted && event->kind != XS_PAD && event->kind != XS_THREAD, 0)) {
		xs_tracks_first_event(process);
		*wanted = false;
	}
	dispatch(track, event, size);
	track->pos += size;
	commit_if_full(track);
	return is_task(event);
}

/* The same for tasks, as many as there are in a row; the bytes that were read. */
static inline uint64_t read_some_tasks(struct xs_track *track, const struct xs_stream *stream,
				       uint64_t most, struct xs_stretch *stretch)
{
	uint64_t offset = track->pos & (stream->size - 1), room = stream->size - offset;
	uint32_t read = offset % 16 ? 0
				    : read_tasks(track, stream->data + offset,
						 room < most ? room : most, stretch);

	track->pos += read;
	commit_if_full(track);
	return read;
}

/* without an output, so much of a backlog is read before its memory is given back */
#define MOVED_PORTION (1u << 20)

/* A small ring is full before the output's buffer is. Meanwhile others fill. */
static inline void commit_some(struct xs_track *track, uint64_t read)
{
	uint64_t most = xs_track_is_moved(track, track->pos) ? MOVED_PORTION : track->ring_size / 4;

	if (track->pos - track->committed >= most)
		xs_process_commit(track->process);
	if (track->process->run->backlog)
		(void)xs_backlog_relieve(track->process->run, read);
}

void xs_track_next(struct xs_track *track)
{
	const struct xs_stream stream = xs_track_stream(track, track->pos, track->head);
	bool wanted = track->process->awaits_event;
	uint64_t first = track->pos;

	(void)read_next(track, &stream, &wanted);
	track->dirty = true;
	commit_some(track, track->pos - first);
}

uint64_t xs_track_read(struct xs_track *track, uint64_t most)
{
	bool wanted = track->process->awaits_event;
	bool tasks = false; /* the last records were some */
	struct xs_stretch stretch = { .length = 0 };
	uint64_t first = track->pos,
		 length = track->head - first < most ? track->head - first : most;

	/* positions may pass 2^64 in a torn or hostile ring */
	while (track->pos - first < length) {
		const struct xs_stream stream = xs_track_stream(track, track->pos, track->head);
		uint64_t from = track->pos, left = length - (from - first);

		if (left > stream.end - from)
			left = stream.end - from;
		do
			tasks = (tasks && read_some_tasks(track, &stream,
							  left - (track->pos - from), &stretch)) ||
				read_next(track, &stream, &wanted);
		while (track->pos - from < left);
	}
	track->dirty |= track->pos != first;
	commit_some(track, track->pos - first);
	return track->pos - first;
}
