/*
 * Output is committed in two steps (see xs_process_commit()), so that a drain process killed at any
 * instruction leaves rings and file such that --recover can go on, with no record twice and none
 * missing.
 */
#include "commit.h"

#include "backlog.h"
#include "cuda.h"
#include "files.h"
#include "kept.h"
#include "output.h"
#include "sinks_open.h"

static void save(struct xs_track *track, uint64_t turn)
{
	struct xs_ring_saved *saved = &track->kept->saved[track->next_saved];
	bool flight = track->process->run->flight;
	uint32_t depth = track->depth < XS_RING_SAVED ? track->depth : XS_RING_SAVED;

	if (flight) /* tasks are those of the history's beginning, not of this moment */
		depth = track->since_count;
	xs_kept_begin_ring(saved, turn);
	saved->tail = track->pos;
	saved->records = track->records;
	saved->past_records = track->past_records;
	saved->past_threads = track->past_threads;
	saved->tid = track->tid;
	saved->row = track->row;
	saved->name = track->thread == UINT32_MAX ? 0 : track->process->threads[track->thread].name;
	saved->depth = depth;
	for (uint32_t i = 0; i < depth && flight; i++)
		saved->since[i] = track->since[i];
	for (uint32_t i = 0; i < depth && !flight; i++) {
		saved->open[i].ns = track->open[i].start;
		saved->open[i].name = track->open[i].name.id;
		saved->open[i].lost = track->open[i].lost;
	}
	xs_kept_end_ring(saved);
	track->next_saved ^= 1;
}

/*
 * If a producer waits for room although all is read, something else has overwritten the tail that
 * we stored: store it again.
 */
static void help_waiting(struct xs_process *process)
{
	for (uint32_t i = 0; i < process->track_count && !process->copy; i++)
		if (atomic_load_explicit(&process->tracks[i]->ring->waiting, memory_order_relaxed))
			xs_ring_release(process->tracks[i]->ring, process->tracks[i]->ring_size,
					xs_track_tail(process->tracks[i]));
}

/*
 * --recover commits nothing before all of a trace is written: if the disk is full by then, or this
 * process is killed, another one begins where this one began, with what is in no ring (spans that
 * are open, what was said of a slice that has just ended), too.
 */
static void write_out(struct xs_process *process)
{
	xs_sinks_flush(process);
	if (process->out) {
		(void)xs_output_flush(process->out);
		if (process->out->error)
			xs_tell_write_error(process, process->out->error);
	}
	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->dirty) {
			xs_backlog_committed(process->tracks[i]);
			process->tracks[i]->dirty = false;
		}
}

/* A dump: nobody will go on with it. */
static void write_dump(struct xs_process *process)
{
	if (!process->out)
		return;
	(void)xs_output_flush(process->out);
	if (process->out->error)
		xs_tell_write_error(process, process->out->error);
}

/*
 * The text of the records up to the tracks' positions goes to the file, then their room goes back
 * to the producers. In between: (1) each changed ring's new state is saved beside the one that
 * counts, (2) the new turn is stored: from here on the file's new length counts, and all that was
 * saved for that turn.
 */
void xs_process_commit(struct xs_process *process)
{
	uint64_t offset = 0;
	bool dirty = xs_cuda_is_dirty(process);

	if (process->run->recovering) {
		write_out(process);
		return;
	}
	if (process->copy || (process->run->flight && process->out)) {
		write_dump(process);
		return;
	}
	for (uint32_t i = 0; i < process->track_count; i++)
		dirty |= process->tracks[i]->dirty;
	if (!dirty) {
		help_waiting(process);
		return;
	}
	xs_sinks_flush(process);
	if (process->out) {
		struct xs_output *out = process->out;

		(void)xs_output_flush(out);
		if (out->error) {
			xs_tell_write_error(process, out->error);
			/* at least one record; the exact number is not known when a piece is cut */
			process->lost++;
			process->unwritten = true;
		}
		offset = out->offset;
	}
	for (uint32_t i = 0; i < process->track_count; i++)
		if (process->tracks[i]->dirty)
			save(process->tracks[i], process->turn + 1);
	xs_cuda_save(process, process->turn + 1);
	xs_kept_commit(process->kept, &process->turn, offset,
		       process->out ? process->out->error : 0);
	for (uint32_t i = 0; i < process->track_count; i++) {
		struct xs_track *track = process->tracks[i];

		if (!track->dirty)
			continue;
		xs_backlog_committed(track);
		xs_ring_release(track->ring, track->ring_size, xs_track_tail(track));
		track->dirty = false;
	}
	xs_cuda_release(process);
}

bool xs_process_urgent(const struct xs_process *process)
{
	if (process->run->options->on_full == XS_FULL_OVERWRITE)
		return false;
	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_track *track = process->tracks[i];

		if (track->moved.room ||
		    xs_ring_filled(track->ring) - track->pos >= track->ring_size / XS_RING_STEPS ||
		    atomic_load_explicit(&track->ring->waiting, memory_order_relaxed))
			return true;
	}
	return false;
}
