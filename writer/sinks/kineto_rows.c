/*
 * Kineto's format: rows of streams and threads, and their lanes where what they show overlaps.
 */
#include "kineto.h"

static struct xs_kineto_row *row_of(struct xs_process *process, uint32_t pid, uint32_t tid)
{
	struct xs_kineto *kineto = xs_chrome_of(process)->kineto;
	uint32_t at = kineto->last_row;

	for (uint32_t i = 0; i < kineto->row_count;
	     i++, at = at + 1 < kineto->row_count ? at + 1 : 0)
		if (kineto->rows[at].pid == pid && kineto->rows[at].tid == tid) {
			kineto->last_row = at;
			return &kineto->rows[at];
		}
	if (kineto->row_count == XS_KINETO_ROWS) {
		process->omitted[XS_OMIT_TRACKS]++;
		return NULL;
	}
	kineto->last_row = kineto->row_count;
	kineto->rows[kineto->row_count] = (struct xs_kineto_row){ .pid = pid, .tid = tid };
	return &kineto->rows[kineto->row_count++];
}

static void name_lane(struct xs_process *process, const struct xs_kineto_row *row, bool stream,
		      uint32_t tid)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	char *o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "thread_name", row->pid, tid);

	o = xs_put_count(xs_put(o, "\"name\":\""), stream ? "stream " : "thread ", row->tid);
	if (row->lanes.count > 1)
		o = xs_put_count(o, " lane ", row->lanes.count);
	o = xs_chrome_put_metadata(xs_put(o, " \"}},\n"), "thread_sort_index", row->pid, tid);
	xs_chrome_finish(chrome, xs_put(xs_put_count(o, "\"sort_index\":", row->tid), "}},\n"));
}

bool xs_kineto_lane(struct xs_process *process, uint32_t pid, uint32_t tid,
		    enum xs_kineto_lanes what, uint64_t start, uint64_t end, uint32_t *ret_tid)
{
	bool stream = what != XS_KINETO_THREAD;
	struct xs_kineto_row *row = row_of(process, pid, tid);
	struct xs_lane *lane =
		row ? xs_lanes_take(&row->lanes, start, end,
				    what == XS_KINETO_STREAM ? XS_FIT_APART : XS_FIT_NESTING)
		    : NULL;

	if (!lane) {
		process->omitted[XS_OMIT_SLICES]++;
		return false;
	}
	if (!lane->tid) { /* stream 0 is a track, too: one more */
		lane->tid =
			1 +
			(row->lanes.count == 1 ? tid : XS_OWN_TID + xs_chrome_own_number(process));
		if (stream || row->lanes.count > 1)
			name_lane(process, row, stream, lane->tid - 1);
	}
	*ret_tid = lane->tid - 1;
	return true;
}
