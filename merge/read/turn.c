/*
 * One input: its events, the processes that they are of and their times, and what was wrong with
 * the file.
 */
#include <errno.h>
#include <stdlib.h>

#include "turn.h"

#define LONGEST_OF_ALL (256u << 20) /* bytes: that many inputs can hold a long event each */
#define SHORTEST_LIMIT (1u << 20)
#define TURN	       512u /* events */
/* bytes of a block */
#define TEXT  (128u << 10)
#define NOTES (64u << 10)

static struct xm_process *process_of(struct xm_input *input, const struct xf_event *event,
				     bool first)
{
	uint32_t known = input->pids.count, index;
	struct xf_text pid = event->pid;

	if (event->is_own && input->knows_last && event->own_pid == input->last_pid)
		return &input->processes[input->last_process];
	if (!pid.n)
		return NULL;
	index = first ? xf_map_add(&input->pids, pid.p, pid.n)
		      : xf_map_find(&input->pids, pid.p, pid.n);
	if (index == XF_NONE ||
	    !xf_room_for(&input->processes, &input->process_room, index, sizeof(*input->processes)))
		return NULL;
	if (index == known)
		input->processes[index].first_start = XM_NO_TIME;
	input->processes[index].is_number = xf_integer(pid, &input->processes[index].pid);
	if (event->is_own) { /* its number has one text alone */
		input->knows_last = true;
		input->last_pid = event->own_pid;
		input->last_process = index;
	}
	return &input->processes[index];
}

/* Is the event one that has a place in the output? Finds its times. */
static bool fit(const struct xm_input *input, const struct xf_event *event, int64_t *start,
		int64_t *end)
{
	int64_t ts, dur = 0;
	char phase;

	*start = *end = XM_NO_TIME;
	if (event->is_own) {
		*start = input->base + event->own_ts; /* of 2^61 and 10^18 */
		*end = *start + event->own_dur;
		return *end < XM_LATEST;
	}
	if (event->ph.n != 3 || event->ph.p[0] != '"')
		return false;
	phase = event->ph.p[1];
	if (phase == 'M')
		return event->name.n;
	if (!xf_nanoseconds(event->ts, &ts) ||
	    (event->dur.n && !xf_nanoseconds(event->dur, &dur)) || dur < 0)
		return false;
	*start = input->base + ts; /* of 2^61 and 2^62 */
	*end = *start;
	*end += phase == 'X' ? dur : 0; /* 2^62 more */
	return *start > -XM_LATEST && *end < XM_LATEST;
}

void xm_turn_make(struct xm_input *input, const struct xm_visitor *visitor, bool first,
		  struct xm_block *block)
{
	struct xf_event event;
	bool is_full = false;

	for (; input->turn < TURN && !is_full && !block->is_last; input->turn++) {
		struct xm_process *process;
		int64_t start, end;

		if (!xm_reader_next(&input->reader, &event)) {
			block->is_last = true;
			break;
		}
		process = fit(input, &event, &start, &end) ? process_of(input, &event, first)
							   : NULL;
		if (!process) {
			input->unfit += first;
			continue;
		}
		if (first)
			xm_first_look(input, &event, process, start, end);
		if (start != XM_NO_TIME)
			input->reached = start - input->first;
		input->met++;
		visitor->look(visitor->user, block, input, &event, process, start, end);
		is_full = block->text.length >= TEXT || block->notes.length >= NOTES ||
			  (block->notes.length && !visitor->is_ahead);
	}
	block->ends_turn = input->turn == TURN || block->is_last;
	if (block->ends_turn)
		input->turn = 0;
	block->progress = input->reached;
	block->lost = input->lost_read;
}

void xm_turn_open(struct xm_merge *merge, struct xm_input *input, bool first)
{
	size_t window = (64u << 20) / (merge->count + 1);
	const char *why = NULL;
	int result;

	input->done = first ? input->file.fd < 0 : !input->usable;
	input->progress = input->reached = INT64_MIN;
	input->turn = 0;
	input->met = 0;
	input->knows_last = false;
	if (input->done)
		return;
	memset(&input->reader, 0, sizeof(input->reader));
	input->reader.member = first ? xm_take_member : NULL;
	input->reader.user = input;
	input->reader.longest = LONGEST_OF_ALL / merge->count;
	if (input->reader.longest > XM_LONGEST)
		input->reader.longest = XM_LONGEST;
	if (input->reader.longest < SHORTEST_LIMIT)
		input->reader.longest = SHORTEST_LIMIT;
	window = window > 131072 ? 131072 : window < 16384 ? 16384 : window;
	result = xm_reader_open(&input->reader, &input->file, window, &why);
	input->usable = !result;
	input->lost = input->lost_read;
	if (!result)
		return;
	input->changed = !first;
	input->done = true;
	(void)xm_left_out(merge, input->path, result == -EBADMSG && why ? why : xm_reason(result));
	xm_reader_close(&input->reader);
}

bool xm_is_empty(const struct xm_input *input)
{
	return !input->pids.count && strncmp(input->tool, "xstrace", 7) != 0;
}

bool xm_is_complete(const struct xm_input *input)
{
	const struct xm_reader *r = &input->reader;

	return input->usable && !input->changed && !xm_is_empty(input) && !r->left_out &&
	       !input->unfit && !input->has_odd_base && !r->error && !r->source.error;
}

/* What was wrong with the file; all of it is known now. */
static void say_damage(const struct xm_input *input)
{
	const struct xm_reader *r = &input->reader;

	if (r->error)
		xm_say("xstrace-merge: %s: %s; what could be read is merged", input->path,
		       xm_reason(r->error));
	else if (r->source.error)
		xm_say("xstrace-merge: %s: damaged compressed data (%s); all before that is merged",
		       input->path, r->source.error);
	if (r->left_out)
		xm_say("xstrace-merge: %s: line %llu: %s; left out%s", input->path,
		       (unsigned long long)r->first_line, r->first_why,
		       r->left_out > 1 ? ", and more like it" : "");
	if (r->lost_line)
		xm_say("xstrace-merge: %s: what follows that in line %llu cannot be read; all "
		       "before it is merged",
		       input->path, (unsigned long long)r->lost_line);
	if (xm_is_empty(input))
		xm_say("xstrace-merge: %s: no event in it can be used%s", input->path,
		       r->cut ? "; it was cut" : "");
	else if (input->is_written)
		xm_say("xstrace-merge: %s: is still being written; what is there by now is merged",
		       input->path);
	else if (r->cut && !r->source.error)
		xm_say("xstrace-merge: %s: was cut; all before that is merged", input->path);
	if (input->has_odd_base)
		xm_say("xstrace-merge: %s: its baseTimeNanoseconds is no time; its events are "
		       "merged as if none were given",
		       input->path);
	if (input->unfit)
		xm_say("xstrace-merge: %s: %llu events without a usable ph, pid or time, or of "
		       "more than %u "
		       "processes; left out",
		       input->path, (unsigned long long)input->unfit, XM_PROCESSES);
}

/* A later pass: did it meet what the first one had met? */
static void look_for_change(struct xm_input *input)
{
	if (input->changed || (!input->reader.error && input->met == input->met_first))
		return;
	input->changed = true;
	xm_say("xstrace-merge: %s: was changed while it was read; not all of it is merged as it "
	       "was",
	       input->path);
}

void xm_turn_close(struct xm_input *input, bool first)
{
	if (first) {
		input->met_first = input->met;
		say_damage(input);
		if (!input->reader.cut && xm_is_complete(input)) {
			free(input->halves); /* what is half there, is half for good */
			input->halves = NULL;
		}
	} else {
		look_for_change(input);
	}
	xm_reader_close(&input->reader);
}
