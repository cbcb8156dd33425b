/*
 * What records mean together: begins paired with ends, calls, device work in the host's time; each
 * goes on to the sinks.
 *
 * Nothing that a ring holds is believed: a torn or hostile one costs its own records and nothing
 * else.
 */
#include <stdlib.h>
#include <string.h>

#include "activities.h"
#include "calls.h"
#include "copy.h"
#include "cuda_activity.h"
#include "cuts.h"
#include "device_clock.h"
#include "device_record.h"
#include "extras.h"
#include "itt.h"
#include "metrics.h"
#include "mpi_records.h"
#include "own_clock.h"
#include "records.h"
#include "sink.h"
#include "spans.h"
#include "threads.h"
#include "work.h"

/* ---- threads and tasks ---- */

void xs_track_enter(struct xs_track *track, uint32_t tid)
{
	if (tid != track->tid) {
		track->row = 0;
		track->external = track->user_external = 0;
		xs_about_forget(track);
	}
	track->tid = tid;
	XS_TELL_SINKS(track->process, enter, track);
}

static void call_thread(struct xs_track *track, uint32_t tid, uint32_t name)
{
	struct xs_process *process = track->process;
	uint32_t given = xs_thread_given(process, tid);
	size_t length;
	const char *text;

	if (given)
		name = given;
	text = xs_text_of(process->run, name, &length);
	if (track->thread == UINT32_MAX || process->threads[track->thread].name != name)
		XS_TELL_SINKS(process, thread, process, tid, text, length);
	if (track->thread != UINT32_MAX)
		process->threads[track->thread].name = name;
}

void xs_track_go_on(struct xs_track *track, uint32_t tid, uint32_t name)
{
	if (tid != track->tid || track->thread == UINT32_MAX)
		xs_track_stats(track, tid, 0);
	xs_track_enter(track, tid);
	if (name)
		call_thread(track, tid, name);
}

static void read_thread(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	struct xs_process *process = track->process;
	const struct xs_thread_record *record = (const void *)event;
	uint32_t tid;

	if (size < sizeof(*record))
		return;
	tid = (uint32_t)record->tid;
	/* the same thread again has a new name; its tasks go on */
	if (tid != track->tid || (track->thread == UINT32_MAX && !track->omitted)) {
		xs_spans_release(track);
		xs_track_close(track, xs_process_ns(process, event->tick));
		xs_calls_finish(track, xs_process_ns(process, event->tick));
		XS_TELL_SINKS(process, leave, track, xs_process_ns(process, event->tick));
		xs_track_close_stats(track, record->lost);
		xs_track_stats(track, tid, 0);
		xs_track_enter(track, tid);
	}
	call_thread(track, tid, event->name);
}

void xs_task_end_among(struct xs_track *track, const struct xs_event *event, uint32_t at,
		       uint64_t end)
{
	struct xs_open task = track->open[at];
	uint64_t last = track->last_ns;

	if (task.lost) {
		(void)xs_track_end_lost(track, at, 1);
		return;
	}
	end = xs_own_time_end(track, event, &task, end);
	if (task.extra && (track->counts_due || task.extra->counted.known))
		xs_counted_ends(track, event, &task);
	if (end > last && !(task.extra && task.extra->unplaced))
		track->last_ns = end;
	xs_itt_end(track, &task, end, at + 1 != track->depth || end < last, false);
	xs_track_take(track, at);
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
	bool wanted;

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
	wanted = xs_call_wanted(process->run, event);
	/*
	 * one that is cut did not return while it was recorded: no arrow leads to its end, nor to
	 * one that is not shown
	 */
	track->call_tick = call.unfinished || !wanted ? 0 : event->tick;
	track->call_start = call.start;
	track->call_end = track->last_ns = call.end;
	process->excluded += !wanted;
	if (wanted)
		XS_TELL_SINKS(process, call, track, &call);
	if (call.callers)
		track->callers->count = 0;
}

/* ---- reading ---- */

static void read_team(struct xs_track *track, const struct xs_team_record *record, uint32_t size)
{
	struct xs_process *process = track->process;
	uint64_t tick = record->event.tick;
	struct xs_team team = { .name = record->event.name, .region = record->region };

	if (size < sizeof(*record))
		return;
	if (record->duration > tick || record->waited > record->duration ||
	    record->told > record->duration - record->waited ||
	    !xs_track_believes(track, &record->event, 0)) {
		process->corrupt++;
		return;
	}
	team.start = xs_process_ns(process, tick - record->duration);
	team.end = xs_process_ns(process, tick);
	team.waited = team.end - xs_process_ns(process, tick - record->waited);
	team.index = record->index;
	team.size = record->size;
	team.more = record->event.flags & XS_TEAM_FLAG_MORE;
	team.told = team.end - xs_process_ns(process, tick - record->told);
	team.paused = xs_track_cut_short(track, tick - record->duration, record->duration) !=
		      UINT64_MAX;
	if (team.start <= team.end && team.waited <= team.end - team.start)
		XS_TELL_SINKS(process, team, process, &team);
}

static void read_called(struct xs_track *track, const struct xs_called_record *record,
			uint32_t size)
{
	struct xs_process *process = track->process;
	uint64_t tick = record->event.tick;

	if (size < sizeof(*record))
		return;
	if (record->duration > tick || !record->calls ||
	    !xs_track_believes(track, &record->event, 0)) {
		process->corrupt++;
		return;
	}
	XS_TELL_SINKS(process, called, process, record->event.name, record->calls,
		      xs_process_ns(process, tick) -
			      xs_process_ns(process, tick - record->duration));
}

/* For which commands the call has waited whose record came before. */
static void read_wait(struct xs_track *track, const struct xs_waited_record *record, uint32_t size)
{
	const struct xs_wait wait = { .source = record->event.source,
				      .kind = record->event.flags,
				      .tid = track->tid,
				      .queue = record->event.name,
				      .until = record->until,
				      .start = track->call_start,
				      .end = track->call_end };

	/* if the call's own record was lost, there is nothing for an arrow to lead to */
	if (size >= sizeof(*record) && track->call_tick == record->event.tick)
		XS_TELL_SINKS(track->process, wait, track->process, &wait);
}

/* What devices and kernels are, before there is work on or of them; and what that has counted. */
static void read_description(struct xs_process *process, const struct xs_event *event,
			     uint32_t size)
{
	if (event->kind == XS_METRICS)
		xs_metrics_read(process, (const void *)event, size);
	else if (event->kind == XS_COUNTED)
		xs_cuda_counted(process, event, size);
	else if (event->kind == XS_STALLED)
		xs_stalled_read(process, (const void *)event, size);
	else if (event->kind == XS_SAMPLE)
		xs_sample_read(process, (const void *)event, size);
	else if (event->kind == XS_KERNEL_PLACE && size >= sizeof(struct xs_kernel_place_record))
		XS_TELL_SINKS(process, place, process, (const void *)event);
	else if (event->kind == XS_DEVICE_USED)
		XS_TELL_SINKS(process, device_used, process, event);
	else if (event->kind == XS_KERNEL && size >= sizeof(struct xs_kernel_record))
		XS_TELL_SINKS(process, kernel, process, (const void *)event);
}

/* What is told of something that has a record of its own, or lost it. */
static void read_of_other(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	if (event->kind == XS_LOST_ENDS)
		xs_track_lose(track, event->name);
	else if (event->kind == XS_LOST_BEGINS)
		xs_track_lose_begins(track, event->name, track->last_ns);
	else if (event->kind == XS_STACK)
		read_stack(track, event, size);
	else if (event->kind == XS_OWN_TIME)
		xs_own_time_read(track, (const void *)event, size);
	else if (event->kind == XS_THREAD_NAMED)
		xs_thread_named(track->process, event, size);
	else if (event->kind == XS_CPU)
		xs_counted_read(track, (const void *)event, size);
	else if (event->kind == XS_TEAM)
		read_team(track, (const void *)event, size);
	else if (event->kind == XS_CALLED)
		read_called(track, (const void *)event, size);
	else
		read_wait(track, (const void *)event, size);
}

void xs_record_read_other(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	switch (event->kind) {
	case XS_CALL:
		read_call(track, event, size);
		break;
	case XS_DEVICE:
		xs_device_work_read(track->process, (const void *)event, size);
		break;
	case XS_COMMANDS:
		xs_commands_read(track, event, size);
		return;
	case XS_MPI:
	case XS_MPI_START:
	case XS_MPI_DONE:
	case XS_MPI_MEMBER:
		xs_mpi_read(track, event, size);
		break;
	case XS_DEVICE_USED:
	case XS_KERNEL:
	case XS_METRICS:
	case XS_COUNTED:
	case XS_STALLED:
	case XS_SAMPLE:
	case XS_KERNEL_PLACE:
		read_description(track->process, event, size);
		break;
	case XS_CALL_IN:
	case XS_CALL_OUT: /* was looked at with its XS_CALL */
		if (track->process->log_calls && event->kind == XS_CALL_IN)
			xs_calls_begin(track, event, size);
		break;
	case XS_THREAD:
		read_thread(track, event, size);
		return;
	case XS_PAD:
		return;
	case XS_CPU:
	case XS_LOST_ENDS:
	case XS_STACK:
	case XS_WAITED:
	case XS_OWN_TIME:
	case XS_THREAD_NAMED:
	case XS_TEAM ... XS_LOST_BEGINS:
		read_of_other(track, event, size);
		return;
	case XS_ACTIVITY:
	case XS_ABOUT:
	case XS_EXTERNAL:
		xs_activity_read(track, event, size);
		break;
	case XS_ENQUEUED:
		xs_cuda_enqueued(track, event, size);
		break;
	default:
		xs_itt_read(track, event, size);
		break;
	}
	track->records++;
}
