/*
 * What records mean together: begins paired with ends, calls, device work in the host's time; each
 * goes on to the sinks.
 *
 * Nothing that a ring holds is believed: a torn or hostile one costs its own records and nothing
 * else.
 */
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "copy.h"
#include "cuda_activity.h"
#include "device_clock.h"
#include "flight.h"
#include "itt.h"
#include "mpi_records.h"
#include "output.h"
#include "own_clock.h"
#include "pauses.h"
#include "records.h"
#include "sink.h"
#include "sinks_open.h"

#define MAX_DEPTH   65536u
#define MAX_THREADS 4096u

/* ---- counts ---- */

void xs_track_stats(struct xs_track *track, uint32_t tid, uint32_t name)
{
	struct xs_process *process = track->process;
	struct xs_thread_stats *grown;

	if (process->run->flight && !process->out && track->thread != UINT32_MAX) {
		/*
		 * threads whose records are history no more are nobody's concern: one entry a ring,
		 * however long it runs
		 */
		process->threads[track->thread] =
			(struct xs_thread_stats){ .tid = tid, .name = name };
		return;
	}
	track->thread = UINT32_MAX;
	if (process->thread_count >= MAX_THREADS) {
		process->threads_omitted++;
		return;
	}
	if (process->thread_count == process->thread_room) {
		uint32_t room = process->thread_room ? 2 * process->thread_room : 16;

		grown = realloc(process->threads, room * sizeof(*grown));
		if (!grown)
			return;
		process->threads = grown;
		process->thread_room = room;
	}
	track->thread = process->thread_count++;
	process->threads[track->thread] = (struct xs_thread_stats){ .tid = tid, .name = name };
}

/* The thread is done with this ring, or the process is: its counts. */
void xs_track_close_stats(struct xs_track *track, uint64_t lost)
{
	struct xs_process *process = track->process;

	/* a counter of a hostile ring may go backwards */
	lost = lost > track->lost_base ? lost - track->lost_base : 0;
	process->lost += lost;
	process->events += track->records;
	if (track->thread < process->thread_count) {
		process->threads[track->thread].lost += lost;
		process->threads[track->thread].records += track->records;
	}
	track->lost_base += lost;
	track->records = 0;
}

/* ---- tasks ---- */

/* An open task that nobody will end. Events are marks then: they have no domain. */
static void close_one(struct xs_track *track, struct xs_open *task, uint64_t end)
{
	struct xs_process *process = track->process;

	if (!task->name.scope && task->name.id != XS_STRING_FULL) {
		const struct xs_mark mark = { .tid = track->tid,
					      .name = task->name.id,
					      .ns = task->start,
					      .extra = task->extra };

		XS_TELL_SINKS(process, mark, process, &mark);
		xs_extra_drop(process, task);
	} else {
		xs_itt_end(track, task, end, false, true);
	}
}

/* The innermost `count` open tasks, which nobody will end. */
void xs_track_close(struct xs_track *track, uint32_t count, uint64_t end)
{
	struct xs_process *process = track->process;

	while (track->depth && count--) {
		struct xs_open *task = &track->open[--track->depth];

		close_one(track, task, end > task->start ? end : task->start);
		if (process->out && xs_output_full(process->out)) {
			track->dirty = true;
			xs_process_commit(process);
		}
	}
}

static void read_thread(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_thread_record *record = (const void *)event;
	uint32_t tid, name = event->name;
	size_t length;
	const char *text = xs_text_of(process->run, name, &length);

	if (size < sizeof(*record))
		return;
	tid = (uint32_t)record->tid;
	if (tid != track->tid || track->thread == UINT32_MAX) {
		xs_itt_release(track);
		xs_track_close(track, UINT32_MAX, xs_process_ns(process, event->tick));
		xs_calls_finish(track, xs_process_ns(process, event->tick));
		XS_TELL_SINKS(process, leave, track, xs_process_ns(process, event->tick));
		xs_track_close_stats(track, record->lost);
		track->tid = tid;
		track->row = 0;
		xs_track_stats(track, tid, 0);
		XS_TELL_SINKS(process, enter, track);
	}
	if (track->thread == UINT32_MAX || process->threads[track->thread].name != name)
		XS_TELL_SINKS(process, thread, track, text, length);
	if (track->thread != UINT32_MAX)
		process->threads[track->thread].name = name;
}

static inline struct xs_open *open_task(struct xs_track *track, uint64_t start, uint32_t name)
{
	struct xs_open *task;

	if (__builtin_expect(track->depth == track->room, 0)) {
		uint32_t room = track->room ? 2 * track->room : 32;
		struct xs_open *grown =
			room <= MAX_DEPTH ? realloc(track->open, room * sizeof(*grown)) : NULL;

		if (!grown) {
			track->process->unmatched++;
			return NULL;
		}
		track->open = grown;
		track->room = room;
	}
	task = &track->open[track->depth++];
	task->start = start;
	task->extra = NULL;
	task->row = track->row;
	task->name = xs_name_of(track->process, name);
	if (start > track->last_ns)
		track->last_ns = start;
	return task;
}

struct xs_open *xs_track_open(struct xs_track *track, uint64_t start, uint32_t name)
{
	return open_task(track, start, name);
}

void xs_track_take(struct xs_track *track, uint32_t at)
{
	memmove(&track->open[at], &track->open[at + 1],
		(track->depth - at - 1) * sizeof(track->open[at]));
	track->depth--;
}

static inline void read_end(struct xs_track *track, const struct xs_event *event)
{
	struct xs_process *process = track->process;
	uint64_t end = xs_process_ns(process, event->tick);
	uint32_t at = track->depth, lowest = xs_track_lowest(track);
	struct xs_open *task;

	while (at > lowest && track->open[at - 1].name.scope != event->name &&
	       track->open[at - 1].name.id != XS_STRING_FULL)
		at--; /* a name that found no room has lost its domain too */
	if (__builtin_expect(at == lowest, 0)) {
		/* an end without a begin: the application's, or begun while paused */
		process->unmatched++;
		return;
	}
	task = &track->open[at - 1];
	if (__builtin_expect(at != track->depth || task->extra || task->row || end < track->last_ns,
			     0)) {
		/*
		 * the application ends tasks of two domains in another order than it began them, or
		 * at times of its own; or there is more to do with each
		 */
		struct xs_open copy = *task;
		uint64_t last = track->last_ns;

		end = xs_own_time_end(track, event, &copy, end);
		if (end > last && !(copy.extra && copy.extra->unplaced))
			track->last_ns = end;
		xs_itt_end(track, &copy, end, at != track->depth || end < last, false);
		xs_track_take(track, at - 1);
		return;
	}
	if (process->plain_task)
		process->plain_task(track, task, end);
	track->depth--;
	track->last_ns = end;
}

/* ---- calls and device work ---- */

/* An XS_STACK record: where the call was made whose record comes next. */
static void read_stack(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	const struct xs_stack_record *record = (const void *)event;
	uint32_t count = event->name;

	if (count > XS_STACK_DEPTH_MAX || size < XS_STACK_SIZE(count))
		return;
	if (!track->callers)
		track->callers = calloc(1, sizeof(*track->callers));
	if (!track->callers)
		return;
	track->callers->tick = event->tick;
	track->callers->count = count;
	track->callers->cut = event->flags & XS_STACK_FLAG_CUT;
	memcpy(track->callers->frames, record->frame, count * sizeof(record->frame[0]));
}

static void read_call(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_call_record *record = (const void *)event;
	struct xs_call call = { .event = event,
				.name = xs_function_id(event->source, event->name) };
	struct xs_given given;
	uint64_t off;

	if (size < sizeof(*record))
		return;
	if (__builtin_expect(!xs_track_believes(track, event, record->duration), 0)) {
		process->corrupt++;
		return;
	}
	call.result = record->result;
	call.start = xs_process_ns(process, event->tick);
	call.end = xs_process_ns(process, event->tick + record->duration);
	if (call.end < call.start)
		call.end = call.start;
	off = xs_track_cut_short(track, event->tick, record->duration);
	call.unfinished = off != UINT64_MAX;
	if (call.unfinished) {
		off = xs_process_ns(process, off);
		call.end = off > call.start ? off : call.start;
	}
	if (__builtin_expect(process->log_calls, 0) && xs_calls_end(track, record, &given))
		call.given = &given;
	/* a call's own record may be lost, and its stack not */
	if (track->callers && track->callers->count && track->callers->tick == event->tick)
		call.callers = track->callers;
	/* one that is cut did not return while it was recorded: no arrow leads to its end */
	track->call_tick = call.unfinished ? 0 : event->tick;
	track->call_start = call.start;
	track->call_end = track->last_ns = call.end;
	XS_TELL_SINKS(process, call, track, &call);
	if (call.callers)
		track->callers->count = 0;
}

static bool lost_something(const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		if (atomic_load_explicit(&process->tracks[i]->ring->lost, memory_order_relaxed))
			return true;
	return false;
}

void xs_work_show(struct xs_process *process, struct xs_work *work)
{
	if (work->end < work->start || work->end > process->horizon) {
		process->corrupt++;
		return;
	}
	work->linked &= !lost_something(process);
	XS_TELL_SINKS(process, work, process, work);
	if (work->end > process->last_ns)
		process->last_ns = work->end;
}

static void device_work(struct xs_process *process, const struct xs_device_record *record,
			uint32_t size)
{
	struct xs_work work = { .record = record, .queue = record->queue };

	if (size < XS_DEVICE_RECORD_SHORT ||
	    (record->work == XS_WORK_KERNEL && size < sizeof(*record) &&
	     !(record->event.flags & XS_DEVICE_FLAG_FUNCTION)))
		return;
	if (!xs_work_wanted(process->run, &record->event))
		return;
	if (size >= sizeof(*record))
		work.shape = record->global;
	work.host_start = xs_process_ns(process, record->event.tick);
	work.host_end = xs_process_ns(process, record->event.tick + record->host_ticks);
	if (!xs_device_times(process, &work))
		return;
	work.linked = true;
	xs_work_show(process, &work);
}

/* Each command as if it had a record of its own. */
static void read_commands(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_commands_record *commands = (const void *)event;
	uint32_t count = size < sizeof(*commands) ? 0
						  : (uint32_t)((size - sizeof(*commands)) /
							       sizeof(commands->command[0])),
		 length;
	struct xs_device_record record = { .event = { .kind = XS_DEVICE,
						      .source = event->source } };
	struct xs_shape shape;

	if (count > commands->count)
		count = commands->count;
	for (uint32_t i = 0; i < count; i++) {
		const struct xs_command *command = &commands->command[i];
		const struct xs_string *text = xs_string(process->run->strings,
							 process->run->strings_size, command->shape,
							 &length);

		if (!text || text->scope != XS_SHAPE_SCOPE || length != sizeof(shape))
			continue;
		memcpy(&shape, text->text, sizeof(shape));
		record.event.tick = command->tick;
		record.event.name = shape.name;
		record.event.flags = event->flags | shape.flags;
		if (record.event.flags & XS_DEVICE_FLAG_TICKS)
			record.submitter = commands->submitter;
		else
			record.queued = command->tick;
		record.host_ticks = command->host_ticks;
		record.tid = command->tid;
		record.id = commands->id + i;
		record.queue = commands->queue;
		record.queue_handle = commands->queue_handle;
		record.device_name = event->name;
		record.device = commands->device;
		record.device_type = commands->device_type;
		record.work = shape.work;
		record.simd = shape.simd;
		record.submit = commands->submit ? commands->submit : command->tick;
		record.start = command->start;
		record.end = command->start + command->length;
		record.bytes = shape.bytes;
		record.tile = commands->tile;
		record.engine = commands->engine;
		record.engine_index = commands->engine_index;
		record.memory = (uint8_t)shape.memory;
		record.kernel = shape.kernel;
		memcpy(record.global, shape.global, sizeof(record.global));
		memcpy(record.local, shape.local, sizeof(record.local));
		device_work(process, &record,
			    shape.words * 8u < sizeof(record) ? shape.words * 8u : sizeof(record));
	}
	track->records += count;
}

/* ---- reading ---- */

/* For which commands the call has waited whose record came before. */
static void read_wait(struct xs_track *track, const struct xs_waited_record *record)
{
	const struct xs_wait wait = { .source = record->event.source,
				      .kind = record->event.flags,
				      .tid = track->tid,
				      .queue = record->event.name,
				      .until = record->until,
				      .start = track->call_start,
				      .end = track->call_end };

	/* if the call's own record was lost, there is nothing for an arrow to lead to */
	if (track->call_tick == record->event.tick)
		XS_TELL_SINKS(track->process, wait, track->process, &wait);
}

/* The first event of a process that is to be shown. */
static void first_event(struct xs_track *track)
{
	struct xs_process *process = track->process;
	size_t length;
	const char *name;

	process->awaits_event = !xs_sinks_open(process, true);
	if (process->awaits_event || track->thread == UINT32_MAX)
		return;
	name = xs_text_of(process->run, process->threads[track->thread].name, &length);
	XS_TELL_SINKS(process, thread, track, name, length);
}

/* What devices and kernels are, before there is work on or of them. */
static void read_description(struct xs_process *process, const struct xs_event *event,
			     uint32_t size)
{
	if (event->kind == XS_DEVICE_USED)
		XS_TELL_SINKS(process, device_used, process, event);
	else if (size >= sizeof(struct xs_kernel_record))
		XS_TELL_SINKS(process, kernel, process, (const void *)event);
}

static void read_record(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;

	switch (event->kind) {
	case XS_CALL:
		read_call(track, event, size);
		break;
	case XS_DEVICE:
		device_work(process, (const void *)event, size);
		break;
	case XS_COMMANDS:
		read_commands(track, event, size);
		return;
	case XS_MPI:
	case XS_MPI_START:
	case XS_MPI_DONE:
	case XS_MPI_MEMBER:
		xs_mpi_read(track, event, size);
		break;
	case XS_DEVICE_USED:
	case XS_KERNEL:
		read_description(process, event, size);
		break;
	case XS_CALL_IN:
		if (process->log_calls)
			xs_calls_begin(track, event, size);
		break;
	case XS_CALL_OUT: /* was looked at with its XS_CALL */
		break;
	case XS_THREAD:
		read_thread(track, event, size);
		return;
	case XS_LOST_ENDS:
		xs_track_close(track, event->name, track->last_ns);
		return;
	case XS_STACK:
		read_stack(track, event, size);
		return;
	case XS_WAITED:
		if (size >= sizeof(struct xs_waited_record))
			read_wait(track, (const void *)event);
		return;
	case XS_ENQUEUED:
		xs_cuda_enqueued(track, event, size);
		break;
	case XS_OWN_TIME:
		if (size >= sizeof(struct xs_own_time_record))
			xs_own_time_read(track, (const void *)event);
		return;
	case XS_PAD:
		return;
	default: /* what we do not know is skipped */
		xs_itt_read(track, event, size);
		break;
	}
	track->records++;
}

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

static inline void dispatch(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	if (__builtin_expect(event->tick >= track->look_at, 0) && !look_closely(track, event->tick))
		return;
	if (event->kind == XS_BEGIN) {
		(void)open_task(track, xs_process_ns(track->process, event->tick), event->name);
		track->records++;
	} else if (event->kind == XS_END) {
		read_end(track, event);
		track->records++;
	} else {
		read_record(track, event, size);
	}
}

void xs_track_records(struct xs_track *track, const unsigned char *data, uint32_t length)
{
	struct xs_process *process = track->process;
	uint32_t size;

	for (const unsigned char *end = data + length; data != end; data += size) {
		const struct xs_event *event = (const void *)data;

		size = event->words * 8u;
		dispatch(track, event, size);
		if (__builtin_expect(process->out && xs_output_full(process->out), 0))
			xs_process_commit(process);
	}
}

#define SKEW (1ull << 33) /* ticks: some seconds; clocks of processors differ by less */

/*
 * Where records end that can be read, if nobody can have written so far, or there: the producer
 * will say again where its head is.
 */
static __attribute__((noinline, cold)) uint64_t odd_head(struct xs_track *track, uint64_t head)
{
	if (head != track->odd_head)
		track->process->corrupt++;
	track->odd_head = head;
	return head - track->pos <= track->process->ring_size ? head & ~(uint64_t)15 : track->pos;
}

static bool is_odd(const struct xs_track *track, uint64_t head)
{
	return head % 16 || (head - track->pos > track->process->ring_size &&
			     track->process->run->options->on_full != XS_FULL_OVERWRITE);
}

/* Where its records end by now; and what has happened to the ring meanwhile. */
void xs_track_begin(struct xs_track *track)
{
	struct xs_process *process = track->process;
	uint64_t head = xs_ring_filled(track->ring);

	if (__builtin_expect(is_odd(track, head), 0))
		head = odd_head(track, head);
	track->head = head;
	track->latest = xs_tick(process->run->use_tsc) + SKEW;
	process->horizon = xs_process_ns(process, track->latest);
	if (head - track->pos > process->ring_size) {
		/*
		 * overwritten (or hostile): the intact records begin at a step that the producer
		 * told
		 */
		uint64_t intact =
			atomic_load_explicit(&track->ring->tail_lost, memory_order_acquire);

		if (intact > head || head - intact > process->ring_size)
			intact = head;
		track->pos = intact;
		while (track->depth)
			xs_extra_drop(process, &track->open[--track->depth]);
		track->tid = atomic_load_explicit(&track->ring->tail_tid, memory_order_relaxed);
		xs_track_stats(track, track->tid, 0);
		XS_TELL_SINKS(process, enter, track);
	}
	/* after head: a thread that wrote a record after a pause had seen the pause's end */
	xs_track_look_for_pauses(track);
	look_from(track);
}

/* wanted: there are sinks that are opened with the first event, which has not come yet */
static inline void read_next(struct xs_track *track, bool *wanted)
{
	struct xs_process *process = track->process;
	struct xs_record record;
	uint32_t size = xs_record_copy(&record, track, track->pos, track->head, XS_RECORD_MAX);
	const struct xs_event *event = &record.event;

	if (!size) {
		process->corrupt++;
		track->pos = track->head;
		return;
	}
	if (__builtin_expect(*wanted && event->kind != XS_PAD && event->kind != XS_THREAD, 0)) {
		first_event(track);
		*wanted = false;
	}
	dispatch(track, event, size);
	track->pos += size;
	if (__builtin_expect(process->out && xs_output_full(process->out), 0)) {
		track->dirty = true;
		xs_process_commit(process);
	}
}

/* A small ring is full before the output's buffer is. */
static inline void commit_some(struct xs_track *track)
{
	if (track->pos - atomic_load_explicit(&track->ring->tail, memory_order_relaxed) >=
	    track->process->ring_size / 4)
		xs_process_commit(track->process);
}

void xs_track_next(struct xs_track *track)
{
	bool wanted = track->process->awaits_event;

	read_next(track, &wanted);
	track->dirty = true;
	commit_some(track);
}

uint64_t xs_track_read(struct xs_track *track, uint64_t most)
{
	bool wanted = track->process->awaits_event;
	uint64_t first = track->pos,
		 length = track->head - first < most ? track->head - first : most;

	if (track->process->run->flight)
		xs_flight_keep(track, track->head);
	while (track->pos - first < length) /* positions may pass 2^64 in a torn or hostile ring */
		read_next(track, &wanted);
	track->dirty |= track->pos != first;
	commit_some(track);
	return track->pos - first;
}
