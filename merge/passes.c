/*
 * What each pass does with the events: the first ties clocks together, the second writes, the third
 * finds late progress.
 */
#include "passes.h"

#include <errno.h>

#include "halves.h"
#include "mpi_needs.h"

/*
 * In a trace that has lost events the k-th call need not be the k-th that was made: what it seems
 * to belong to proves nothing.
 */
static bool is_sure(const struct xm_end *from, const struct xm_end *to)
{
	return from->input->lost <= 0 && to->input->lost <= 0;
}

/* ---- the first pass: what ties the clocks together ---- */

/* Something that one end had before the other could go on. */
static void tie(struct xm_work *work, const struct xm_function *function, const struct xm_end *from,
		const struct xm_end *to)
{
	if (to->is_cut || !is_sure(from, to))
		return; /* when it ended is not known */
	work->tied = true;
	if (work->uncertainty)
		xm_uncertainty_message(work->uncertainty, from->input->clock, from->start,
				       to->input->clock, to->end);
	if (work->mend)
		xm_mend_message(work->mend, from->input->clock, from->start, to->input->clock,
				to->end);
	else
		xm_clocks_message(work->clocks, function, from->input, from->start, to->input,
				  to->end);
}

static void first_message(void *user, uint64_t comm, const struct xm_function *send,
			  const struct xm_function *receive, const struct xm_end *from,
			  const struct xm_end *to)
{
	(void)comm, (void)send;
	tie(user, receive, from, to);
}

static void first_pair(void *user, const struct xm_collective *c, const struct xf_member *to,
		       const struct xf_member *from)
{
	struct xm_work *work = user;

	tie(work, c->function, &from->end, &to->end);
	/*
	 * where each waits for the other, both go on at about the same time, unless they look at it
	 * later
	 */
	if (!work->mend && is_sure(&from->end, &to->end) && c->function->role == XM_COLLECTIVE &&
	    from < to && xm_gets(c, from, to))
		xm_clocks_together(work->clocks, from->end.input->index, from->end.end,
				   to->end.input->index, to->end.end);
}

static void first_collective(void *user, const struct xm_collective *c)
{
	xm_each_pair(c, user, first_pair);
}

static void first_look(void *user, struct xm_block *block, struct xm_input *input,
		       const struct xf_event *event, struct xm_process *process, int64_t start,
		       int64_t end)
{
	(void)user;
	xm_mpi_look(block, input, event, process, start, end);
}

static void first_take(void *user, const struct xm_block *block)
{
	struct xm_work *work = user;
	const struct xm_note *note;
	size_t at = 0;

	while ((note = xm_block_next(block, &at))) {
		block->input->lost = note->lost;
		xm_mpi_take(work->mpi, block->input, note);
	}
	work->error = work->error ? work->error : block->error;
}

/* ---- the second pass: writing ---- */

static void draw(struct xm_work *work, const char *name, const struct xm_end *from,
		 const struct xm_end *to)
{
	int64_t base = work->merge->base,
		arrival = from->start > to->start ? from->start : to->start;
	struct xm_place a = { from->out_pid, from->started_by, from->start - base };
	struct xm_place b = { to->out_pid, to->ended_by, 0 };

	if (!work->sink || !is_sure(from, to) || arrival > to->end || from->tid == XM_NO_TIME ||
	    to->tid == XM_NO_TIME)
		return;
	/* the call that saw the end ends with it, and viewers take an end for what is behind it */
	if (to->ended_by != to->tid && to->end > arrival)
		arrival = to->end - 1;
	/* what comes in the moment in which it went is taken for its beginning by viewers */
	if (arrival == from->start && arrival < to->end)
		arrival++;
	b.time = arrival - base;
	work->sink->arrow(work->sink, "mpi", name, work->next_id++, &a, &b);
	work->totals.arrows++;
}

static void second_message(void *user, uint64_t comm, const struct xm_function *send,
			   const struct xm_function *receive, const struct xm_end *from,
			   const struct xm_end *to)
{
	struct xm_work *work = user;

	if (!is_sure(from, to))
		return;
	work->totals.messages++;
	if (to->end < from->start && !to->is_cut) {
		work->totals.early++;
		work->totals.early_ns = from->start - to->end > work->totals.early_ns
						? from->start - to->end
						: work->totals.early_ns;
	}
	draw(work, "message", from, to);
	if (work->report)
		xm_report_message(work->report, comm, send, receive, from, to);
}

/*
 * From the last that it waited for, unless it came still later; what a root gives always comes from
 * it.
 */
static void second_wait(void *user, const struct xm_collective *c, const struct xf_member *to,
			const struct xf_member *last)
{
	if (c->function->flow == XM_FROM_ROOT || xm_is_later(last, to))
		draw(user, c->function->name, &last->end, &to->end);
}

static void second_collective(void *user, const struct xm_collective *c)
{
	struct xm_work *work = user;

	xm_each_wait(c, work, second_wait);
	if (work->report)
		xm_report_collective(work->report, c);
}

static void second_sent(void *user, uint64_t comm, const struct xm_end *end)
{
	struct xm_work *work = user;

	if (work->report)
		xm_report_sent(work->report, comm, end);
}

static void second_call(void *user, uint64_t comm, const struct xm_function *function,
			const struct xm_end *end)
{
	struct xm_work *work = user;

	if (work->report)
		xm_report_call(work->report, comm, function, end);
}

static bool is_replaced(const struct xf_event *event)
{
	return event->ph.p[1] == 'M' && (xf_is(event->name, "\"process_name\"") ||
					 xf_is(event->name, "\"process_labels\"") ||
					 xf_is(event->name, "\"process_sort_index\""));
}

/* Half an arrow, where the other half may be missing. */
static bool is_half(const struct xm_work *work, struct xm_input *input,
		    const struct xf_event *event)
{
	char phase = event->ph.p[1];

	if (!work->sink || !input->halves || (phase != 's' && phase != 't' && phase != 'f') ||
	    !xm_half_is(input->halves, event))
		return false;
	input->half_arrows++;
	return true;
}

static void second_look(void *user, struct xm_block *block, struct xm_input *input,
			const struct xf_event *event, struct xm_process *process, int64_t start,
			int64_t end)
{
	struct xm_work *work = user;
	const struct xm_clock *clock = xm_clocks_of(work->clocks, input);
	bool is_slice = event->ph.p[1] == 'X';
	struct xm_place place = { process->out_pid, XM_NO_TIME, XM_NO_TIME };

	if (is_replaced(event) || is_half(work, input, event))
		return;
	if (start != XM_NO_TIME) {
		start = xm_true_time(clock, start + input->shift);
		end = xm_true_time(clock, end + input->shift);
		place.time = start - work->merge->base;
	}
	if (event->tid.n)
		place.tid = xm_tid(input, process, event);
	if (work->sink) {
		work->sink->event(work->sink, block, event, &place, is_slice ? end - start : -1);
		input->events++;
	}
	if (!is_slice)
		return;
	/* of the input's own children: no other thread looks at them */
	if (work->tree && process->is_number && process->pid == input->pid)
		xm_tree_slice(work->tree, input, place.tid, start, end);
	xm_mpi_look(block, input, event, process, start, end);
}

static void put_text(struct xm_work *work, const struct xm_block *block, size_t from, size_t to)
{
	if (to > from)
		work->sink->text(work->sink, block->text.data + from, to - from);
}

/* Arrows come behind the event that they were found with. */
static void second_take(void *user, const struct xm_block *block)
{
	struct xm_work *work = user;
	const struct xm_note *note;
	size_t at = 0, written = 0;

	while ((note = xm_block_next(block, &at))) {
		put_text(work, block, written, note->place);
		written = note->place;
		xm_mpi_take(work->mpi, block->input, note);
	}
	put_text(work, block, written, block->text.length);
	work->error = work->error ? work->error : block->error;
}

/* ---- the third, for a report: what ranks did while others waited for them ---- */

static void late_look(void *user, struct xm_block *block, struct xm_input *input,
		      const struct xf_event *event, struct xm_process *process, int64_t start,
		      int64_t end)
{
	struct xm_work *work = user;
	const struct xm_clock *clock = xm_clocks_of(work->clocks, input);

	(void)block;
	if (event->ph.p[1] != 'X' || !process->is_number || process->pid != input->pid)
		return;
	xm_late_slice(work->late, input, event, xm_tid(input, process, event),
		      xm_true_time(clock, start + input->shift),
		      xm_true_time(clock, end + input->shift));
}

static void late_take(void *user, const struct xm_block *block)
{
	(void)user, (void)block;
}

/* ---- the passes ---- */

/* One more begins, by clocks that the one before made; what that one learnt is kept. */
static int begin(struct xm_work *work, const struct xm_mpi_sink *sink)
{
	struct xm_mpi *before = work->mpi;

	work->mpi = xm_mpi_create(sink);
	if (work->mpi && before)
		xm_mpi_learn(work->mpi, before);
	xm_mpi_free(before);
	return work->mpi ? 0 : -ENOMEM;
}

static int walk(struct xm_work *work, bool first, const struct xm_visitor *visitor)
{
	int result;

	work->error = 0;
	result = xm_walk(work->merge, first, visitor);
	return result ? result : work->error;
}

static int pass_first(struct xm_work *work, bool first)
{
	const struct xm_mpi_sink sink = { work, first_message, first_collective, NULL, NULL };
	const struct xm_visitor visitor = { work, first_look, first_take, true, "reading" };
	int result;

	work->clocks = xm_clocks_create(work->merge->count);
	result = work->clocks ? begin(work, &sink) : -ENOMEM;
	result = result ? result : walk(work, first, &visitor);
	if (!result)
		(void)xm_mpi_finish(work->mpi, &work->totals.dropped);
	return result;
}

int xm_pass_first(struct xm_work *work)
{
	return pass_first(work, true);
}

int xm_pass_again(struct xm_work *work)
{
	xm_clocks_free(work->clocks);
	return pass_first(work, false);
}

int xm_pass_mend(struct xm_work *work)
{
	const struct xm_mpi_sink sink = { work, first_message, first_collective, NULL, NULL };
	const struct xm_visitor visitor = { work, second_look, second_take, true,
					    "looking at the clocks" };
	bool is_mended;
	int result = 0;

	work->mend = xm_mend_create(work->clocks, work->merge);
	work->uncertainty = work->mend ? xm_uncertainty_create(work->clocks, work->merge) : NULL;
	for (is_mended = !work->mend; !is_mended && !result;) {
		uint64_t dropped;

		result = begin(work, &sink);
		result = result ? result : walk(work, false, &visitor);
		if (result)
			break;
		(void)xm_mpi_finish(work->mpi, &dropped);
		if (work->uncertainty)
			xm_uncertainty_solve(work->uncertainty);
		xm_uncertainty_free(work->uncertainty);
		/* later passes see the same messages, at the same times */
		work->uncertainty = NULL;
		is_mended = xm_mend_solve(work->mend);
	}
	xm_uncertainty_free(work->uncertainty);
	xm_mend_free(work->mend);
	work->uncertainty = NULL;
	work->mend = NULL;
	return result;
}

int xm_pass_second(struct xm_work *work)
{
	const struct xm_mpi_sink sink = { work, second_message, second_collective, second_sent,
					  second_call };
	const struct xm_visitor visitor = { work, second_look, second_take,
					    !work->sink || work->sink->is_ahead, "writing" };
	int result = begin(work, &sink);

	result = result ? result : walk(work, false, &visitor);
	if (!result)
		work->totals.alone = xm_mpi_finish(work->mpi, &work->totals.dropped);
	return result;
}

int xm_pass_late(struct xm_work *work)
{
	const struct xm_visitor visitor = { work, late_look, late_take, false,
					    "looking for late progress" };

	return walk(work, false, &visitor);
}
