/*
 * One traced process, from its first record to its end: reading its tracks, the end, and what the
 * flight recorder does instead of an end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "activities.h"
#include "ring_files.h"
#include "backlog.h"
#include "calls.h"
#include "commit.h"
#include "cuda.h"
#include "cuts.h"
#include "device_clock.h"
#include "events.h"
#include "extras.h"
#include "faults.h"
#include "flight.h"
#include "kept.h"
#include "names.h"
#include "order.h"
#include "output.h"
#include "pauses.h"
#include "processes.h"
#include "requests.h"
#include "sink.h"
#include "sinks_open.h"
#include "spans.h"
#include "text.h"
#include "threads.h"
#include "title.h"
#include "tracks.h"
#include "unread.h"
#include "where.h"

/* ---- reading ---- */

/*
 * bytes of a ring, before the next one's turn comes: what reaches a disk that is soon full holds
 * something of every track
 */
#define PORTION 8192u

/* Flight recorder: what the ring holds is only copied. */
static uint64_t keep(struct xs_track *track)
{
	uint64_t first = track->pos;

	xs_flight_keep(track, track->head);
	track->dirty |= track->pos != first;
	return track->pos - first + xs_track_read(track, 0);
}

static uint64_t read_tracks(struct xs_process *process, bool all)
{
	uint64_t read = 0, portion;

	xs_device_clocks_update(process);
	/* overwrite: the newest records are wanted, so nothing is read before the end */
	if (process->run->options->on_full == XS_FULL_OVERWRITE && !all)
		return 0;
	(void)xs_backlog_relieve(process->run, UINT64_MAX);
	if (process->log_calls)
		return xs_tracks_read_in_order(process, all);
	if (xs_process_is_behind(process))
		return xs_tracks_catch_up(process, all);
	for (uint32_t i = 0; i < process->track_count; i++)
		xs_track_begin(process->tracks[i]);
	do {
		portion = 0;
		for (uint32_t i = 0; i < process->track_count; i++)
			portion += process->run->flight
					   ? keep(process->tracks[i])
					   : xs_track_read(process->tracks[i], PORTION);
		read += portion;
	} while (portion);
	if (process->run->flight)
		(void)xs_flight_expire(process);
	return read;
}

/* Something that is mapped has been cut since the last look: was it a file of this process? */
static void look_for_cuts(struct xs_process *process)
{
	char name[XS_NAME_MAX];
	struct stat st;

	process->faults = xs_faults();
	for (uint32_t i = 0; i <= process->segment_count && !process->cut; i++) {
		xs_process_file_name(name, process->pid, process->serial, i);
		process->cut = !fstatat(process->run->directory, name, &st, AT_SYMLINK_NOFOLLOW) &&
			       (uint64_t)st.st_size <
				       (i ? process->segments[i - 1].size : process->first.size);
	}
	process->cut |= xs_cuda_is_cut(process);
	if (!process->cut)
		return;
	process->corrupt++;
	xs_tell("[WARNING] process %d (%s): its ring file was cut; what was in it is lost\n",
		process->pid, process->comm);
}

/*
 * CUPTI's buffers are not read before the calls that their records belong to. Where these wait for
 * something else (-c: for a call's end; or for the end of the process) they may, for CUPTI has no
 * more than so many.
 */
static bool may_read_cuda(const struct xs_process *process, uint64_t looked_at)
{
	return !xs_process_is_behind(process) &&
	       (process->log_calls || process->run->options->on_full == XS_FULL_OVERWRITE ||
		process->pass_tick == looked_at);
}

uint64_t xs_process_read(struct xs_process *process, bool all)
{
	uint64_t read, now;

	xs_title_look(process);
	process->pass_tick = now = xs_tick(process->run->use_tsc);
	xs_unread_begin(process);
	/* first: the calls that a full buffer's records belong to are in the rings that are there
	 * now */
	xs_cuda_look(process);
	xs_process_find_tracks(process, all);
	read = read_tracks(process, all);
	process->pass_tick = xs_tracks_read_until(process);
	if (all || !xs_process_is_behind(process)) {
		process->passes++;
		xs_spans_pass(process);
		xs_requests_pass(process);
	}
	if (process->awaits_event && xs_cuda_is_there(process))
		process->awaits_event = !xs_sinks_open(process, true);
	/* not before the calls that its buffers' records belong to */
	if (all || may_read_cuda(process, now))
		read += xs_cuda_read(process, all);
	if (xs_faults() != process->faults && !process->cut)
		look_for_cuts(process);
	return read;
}

/* ---- the end ---- */

/* The call that a thread was in at the end: source << 24 | number + 1, as in struct xs_ring. */
static void show_in_call(struct xs_track *track, uint32_t in, uint64_t start, uint64_t end)
{
	const struct xs_event event = { .source = (uint8_t)(in >> 24),
					.name = (in & 0xffffff) - 1 };
	const struct xs_call call = { .event = &event,
				      .name = xs_function_id(event.source, event.name),
				      .start = start,
				      .end = end,
				      .unfinished = true };

	if (xs_call_wanted(track->process->run, &event))
		XS_TELL_SINKS(track->process, call_unfinished, track, &call);
}

/* Which call its thread is in, and since when; 0: none. */
static uint32_t call_of(const struct xs_track *track, uint64_t *ret_tick)
{
	const struct xs_process *process = track->process;
	uint32_t call = atomic_load_explicit(&track->ring->call, memory_order_relaxed);
	uint64_t tick = atomic_load_explicit(&track->ring->call_tick, memory_order_relaxed);

	*ret_tick = tick;
	if (atomic_load_explicit(&track->ring->state, memory_order_relaxed) != XS_RING_LIVE ||
	    tick < process->run->began || tick > track->latest ||
	    tick == track->call_tick) /* its record was the last, and was read */
		return 0;
	/* a dump: that call began when the history had been read already */
	if (process->run->flight && xs_process_ns(process, tick) >= process->run->dump->to)
		return 0;
	return call;
}

/*
 * Its first event of all may be a call that it has never come back from (a process that hangs in
 * MPI_Init, and is killed): that is a trace, too.
 */
static void show_first_calls(struct xs_process *process)
{
	bool shown = false;

	for (uint32_t i = 0; i < process->track_count && process->awaits_event && !shown; i++) {
		struct xs_event event;
		uint64_t tick;
		uint32_t call = call_of(process->tracks[i], &tick);

		event = (struct xs_event){ .source = (uint8_t)(call >> 24),
					   .name = (call & 0xffffff) - 1 };
		shown = call && xs_call_wanted(process->run, &event);
	}
	if (!shown)
		return;
	xs_tracks_first_event(process);
}

static void finish_track(struct xs_track *track, uint64_t end)
{
	struct xs_process *process = track->process;
	uint64_t call_tick;
	uint32_t call = call_of(track, &call_tick);
	uint64_t start = xs_process_ns(process, call_tick), call_end = end, off;
	uint64_t lost = atomic_load_explicit(&track->ring->lost, memory_order_relaxed) +
			atomic_load_explicit(&track->ring->lost_nested, memory_order_relaxed);

	xs_track_close_stats(track, lost);
	if (!process->run->recovering) /* that may have to be done again, and no trace follows */
		atomic_store_explicit(&track->ring->lost_told, lost, memory_order_relaxed);
	if (process->run->options->on_full == XS_FULL_OVERWRITE)
		xs_track_close_given_up(track);
	if (call && track->thread < process->thread_count)
		process->threads[track->thread].call = call;
	off = xs_process_paused_after(process, call_tick);
	if (off < track->latest)
		call_end = xs_process_ns(process, off);
	if (call)
		show_in_call(track, call, start, call_end > start ? call_end : start);
	xs_track_cut_last(track);
	xs_track_close(track, end);
	xs_calls_finish(track, end);
	XS_TELL_SINKS(process, leave, track, end);
	if (process->out && xs_output_full(process->out))
		xs_process_commit(process);
}

/* The directory may be of a file system that takes nothing more, or the file be mounted upon. */
static void remember(struct xs_run *run, const struct xs_process *process)
{
	struct xs_met *met = reallocarray(run->met, run->met_count + 1, sizeof(*met));

	if (!met)
		return;
	run->met = met;
	met[run->met_count++] = (struct xs_met){ process->serial, process->pid };
}

static void remove_files(struct xs_process *process)
{
	char name[XS_NAME_MAX];

	xs_cuda_remove_files(process);
	if (process->kept)
		process->kept->complete = XS_KEPT_COMPLETE;
	for (uint32_t i = 0; i < process->track_count; i++)
		atomic_fetch_sub_explicit(&process->run->mailbox->rings,
					  process->tracks[i]->ring_size, memory_order_relaxed);
	for (uint32_t i = 0; i <= process->segment_count; i++) {
		xs_process_file_name(name, process->pid, process->serial, i);
		if (unlinkat(process->run->directory, name, 0) < 0 && !i && errno != ENOENT)
			remember(process->run, process);
		xs_kept_name(name, process->pid, process->serial, i);
		(void)unlinkat(process->run->directory, name, 0);
	}
}

/* The rings' counters wrap and are the traced process's: nonsense is none at all. */
static uint64_t open_commands(const struct xs_process *process)
{
	uint64_t open =
		0 - atomic_load_explicit(&process->file->commands_ended, memory_order_relaxed);

	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_ring *ring = process->tracks[i]->ring;

		open -= atomic_load_explicit(&ring->commands_ended, memory_order_relaxed);
		open += atomic_load_explicit(&ring->commands_begun, memory_order_relaxed);
	}
	return open >> 63 ? 0 : open;
}

/* A count goes on for as long as the process lives: what no trace before this one has told. */
static uint64_t not_told(const struct xs_run *run, const _Atomic uint64_t *count,
			 _Atomic uint64_t *told)
{
	uint64_t now = atomic_load(count),
		 before = run->recovering ? atomic_load(told) : atomic_exchange(told, now);

	return now > before ? now - before : 0; /* a hostile one goes backwards */
}

/* What is open, and what was lost. */
static void finish_tracks(struct xs_process *process)
{
	struct xs_process_file *file = process->file;
	struct xs_run *run = process->run;
	uint64_t now = run->flight ? run->dump->to : xs_process_ns(process, xs_tick(run->use_tsc));

	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->last_ns > process->last_ns)
			process->last_ns = process->tracks[i]->last_ns;
	if (run->recovering || now < process->last_ns)
		now = process->last_ns;
	for (uint32_t i = 0; i < process->track_count; i++)
		finish_track(process->tracks[i], now);
	xs_spans_finish(process, now);
	xs_requests_finish(process, now);
	process->lost += not_told(run, &file->lost_no_ring, &file->told.lost_no_ring);
	process->open_commands = open_commands(process);
	process->untimed =
		not_told(run, &file->untimed, &file->told.untimed) + process->untimed_here;
	process->unmeasured = not_told(run, &file->unmeasured, &file->told.unmeasured);
	if (process->no_memory && process->awaits_event)
		process->lost += xs_process_events(process);
	xs_cuda_metrics_end(process);
	xs_cuda_finish(process);
	process->unmeasured += xs_cuda_unjoined(process);
	process->unsampled = not_told(run, &file->unsampled, &file->told.unsampled);
	process->omitted[XS_OMIT_NAMES] += not_told(run, &file->unnamed, &file->told.unnamed);
	run->saw_python |= atomic_load(&file->unseen) >> XS_SEEN_PYTHON & 1;
	run->saw_openmp |= atomic_load(&file->unseen) >> XS_SEEN_OPENMP & 1;
	process->host_ns = now - xs_process_ns(process, process->join_tick);
	xs_unread_end(process, xs_process_is_overwritten(process));
	run->incomplete |= run->recovering && process->corrupt;
	xs_process_commit(process);
}

/*
 * Where the disk has no room for even the beginning of a trace, nothing is there under its name.
 * (One that dynolog has asked for has another name by now.)
 */
static bool is_unwritten(const struct xs_process *process)
{
	const char *path = process->kept && !process->trace_path ? process->kept->output : "";

	return path[0] && access(path, F_OK) < 0 && errno == ENOENT;
}

void xs_process_finish(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_run *run = process->run;
	bool shown;

	show_first_calls(process);
	finish_tracks(process);
	xs_process_tell_end(process);
	shown = xs_sinks_close(process, end, status);
	if (process->again) { /* all that belongs to it is as --recover has found it */
		xs_process_free(process);
		return;
	}
	if (is_unwritten(process))
		process->kept->unwritten = XS_KEPT_UNWRITTEN; /* for --stop to say */
	run->wrote_something |= shown;
	/*
	 * a script starts hundreds of programs that have nothing to show: only the application's
	 * silence is news
	 */
	if (!shown && !process->open_commands && !process->untimed &&
	    (run->options->verbose ||
	     (xs_process_is(process, run->app_pid) && end != XS_END_EXEC && !run->wrote_something)))
		xs_tell("[INFO] No event of interest is logged for process %d (%s)\n", process->pid,
			process->comm);
	remove_files(process);
	xs_process_free(process);
}

/* Completes the trace; `path`, of PATH_MAX bytes: where it is. */
static void complete(struct xs_process *process, char *path)
{
	struct xs_kept_file *kept = process->kept;

	finish_tracks(process);
	(void)xs_sinks_close(process, XS_END_STOPPED, -1);
	path[0] = '\0';
	if (!kept)
		return;
	memcpy(path, kept->output, PATH_MAX);
	path[is_unwritten(process) ? 0 : PATH_MAX - 1] = '\0';
	xs_kept_end_trace(kept, &process->turn);
}

void xs_process_cut(struct xs_process *process, char *path)
{
	/* a trace without an event is one, too */
	if (process->awaits_event)
		process->awaits_event = !xs_sinks_open(process, true);
	complete(process, path);
	xs_process_tell_end(process);
	xs_process_free(process);
}

static void remove_beside(const char *path, const char *suffix)
{
	char name[PATH_MAX + 16];

	(void)snprintf(name, sizeof(name), "%s%s", path, suffix);
	(void)unlink(name);
}

static void complete_and_remove(struct xs_process *process)
{
	char path[PATH_MAX];

	complete(process, path);
	if (path[0]) {
		remove_beside(path, "");
		remove_beside(path, XS_EVENTS_SUFFIX);
		remove_beside(path, XS_NAMES_SUFFIX);
	}
}

void xs_process_discard(struct xs_process *process)
{
	complete_and_remove(process);
	xs_process_free(process);
}

void xs_process_cut_away(struct xs_process *process)
{
	complete_and_remove(process);
	remove_files(process);
	xs_process_free(process);
}

/* ---- the flight recorder ---- */

static void unmap_file(struct xs_mapped *file)
{
	if (file->map)
		munmap(file->map, file->size);
	if (file->kept)
		munmap(file->kept, file->kept_size);
	file->map = file->kept = NULL;
}

static void unmap(struct xs_process *process)
{
	for (uint32_t i = 0; i < process->segment_count; i++)
		unmap_file(&process->segments[i]);
	process->segment_count = 0;
	unmap_file(&process->first);
	process->kept = NULL;
}

int xs_process_detach(struct xs_process *process)
{
	size_t file_size = (sizeof(*process->file) + 63) / 64 * 64;
	struct xs_process_file *file =
		aligned_alloc(64, file_size + process->track_count * sizeof(struct xs_ring));
	struct xs_ring *rings;

	if (!file)
		return -ENOMEM;
	memcpy(file, process->file, sizeof(*file));
	process->copy = process->file = file;
	rings = (void *)((char *)file + file_size);
	for (uint32_t i = 0; i < process->track_count; i++) {
		memcpy(&rings[i], process->tracks[i]->ring, sizeof(*rings));
		process->tracks[i]->ring = &rings[i];
		process->tracks[i]->data = NULL;
		process->tracks[i]->kept = NULL;
	}
	unmap(process);
	return 0;
}

static bool has_open_task(const struct xs_track *track)
{
	for (uint32_t i = 0; i < track->depth; i++)
		if (!track->open[i].lost)
			return true;
	return false;
}

/* What is open counts too: a program that hangs records nothing new. */
static bool track_has_history(const struct xs_track *track)
{
	return track->history.oldest || has_open_task(track) ||
	       (atomic_load_explicit(&track->ring->state, memory_order_relaxed) == XS_RING_LIVE &&
		atomic_load_explicit(&track->ring->call, memory_order_relaxed));
}

static bool has_history(const struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++)
		if (track_has_history(process->tracks[i]))
			return true;
	return process->cuda && process->cuda->history && process->cuda->history->history.oldest;
}

bool xs_process_retire(struct xs_process *process, enum xs_end end, int status)
{
	process->end = end;
	process->status = status;
	process->end_tick = xs_tick(process->run->use_tsc);
	remove_files(process);
	xs_cuda_unmap(process);
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->pidfd = -1;
	return has_history(process) && !xs_process_detach(process);
}

/* Counts begin anew: those of the history alone. Lost records are those of the whole run. */
static void restart_stats(struct xs_process *process)
{
	struct xs_thread_stats *old = process->threads;

	process->threads = NULL;
	process->thread_count = process->thread_room = 0;
	process->events = process->unmatched = process->excluded = process->open_relations = 0;
	memset(process->kinds, 0, sizeof(process->kinds));
	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];
		uint32_t name = track->thread != UINT32_MAX ? old[track->thread].name : 0;
		bool known = track->thread != UINT32_MAX;

		track->records = 0;
		track->thread = UINT32_MAX;
		track->omitted = false;
		if (known && track_has_history(track))
			xs_track_stats(track, track->tid, name);
	}
	free(old);
}

bool xs_process_dump(struct xs_process *process)
{
	if (!has_history(process))
		return false;
	xs_flight_rewind(process);
	restart_stats(process);
	if (!xs_sinks_open(process, true))
		return true; /* it has been said why there is no file */
	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_track *track = process->tracks[i];
		size_t length;
		const char *name;

		if (track->thread == UINT32_MAX)
			continue;
		name = xs_text_of(process->run, process->threads[track->thread].name, &length);
		XS_TELL_SINKS(process, thread, process, track->tid, name, length);
		if (xs_output_full(process->out))
			xs_process_commit(process);
	}
	xs_flight_replay(process);
	xs_where_dump(process);
	xs_cuda_read_newest(process);
	finish_tracks(process);
	xs_process_tell_end(process);
	(void)xs_sinks_close(process, process->end, process->status);
	return true;
}

/* A history that no dump needs any more. */
static void forget_open(struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];

		xs_flight_forget(track);
		while (track->depth)
			xs_extra_drop(process, &track->open[--track->depth]);
	}
	xs_spans_finish(process, 0);
	xs_requests_finish(process, 0);
}

void xs_process_free(struct xs_process *process)
{
	if (process->run->flight)
		forget_open(process);
	xs_where_forget(process);
	xs_sinks_drop(process);
	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];

		xs_sinks_drop_track(track);
		xs_backlog_forget(track);
		xs_calls_forget(track);
		free(track->open);
		free(track->callers);
		free(track->started);
		free(track->since);
		xs_about_forget(track);
		free(track->own_time);
		free(track->counts);
		free(track);
	}
	unmap(process);
	xs_cuda_free(process);
	xs_names_free(process->names);
	free(process->own_clocks);
	free(process->segments);
	free(process->tracks);
	free(process->threads);
	free(process->named_threads);
	free(process->copy);
	xs_device_clocks_fini(process);
	free(process->directory);
	free(process->trace_path);
	free(process->trace_id);
	free(process->arguments);
	if (process->pidfd >= 0)
		close(process->pidfd);
	free(process);
}
