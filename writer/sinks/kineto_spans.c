/*
 * Kineto's format: on a device's rows, what each task of the host has launched there
 * (gpu_user_annotation): from the beginning of the first piece of work to the end of the last.
 *
 * A call tells which tasks are open around it; its work comes later, perhaps when they have ended.
 * So the newest tasks with calls in them are remembered, and for each its extent on each stream.
 * What has to make room for another one is written, and the rest at the end.
 */
#include "activity_types.h"
#include "hash.h"
#include "kineto.h"
#include "names.h"
#include "tasks.h"

#define DEPTH 16u /* of tasks around a call, from the innermost out */

static struct xs_kineto_span *span_of(struct xs_kineto *kineto, const struct xs_open *task,
				      uint32_t tid)
{
	uint64_t words[3] = { task->start, task->name.id, tid };

	return &kineto->spans[xs_hash(words, 3) & (XS_KINETO_SPANS - 1)];
}

static bool is_span(const struct xs_kineto_span *span, const struct xs_open *task, uint32_t tid)
{
	return span->turn && span->start == task->start && span->name == task->name.id &&
	       span->tid == tid;
}

struct xs_kineto_ref xs_kineto_span_of(struct xs_track *track)
{
	struct xs_kineto *kineto = xs_chrome_of(track->process)->kineto;
	uint32_t first = track->depth > DEPTH ? track->depth - DEPTH : 0;
	struct xs_kineto_ref around = { 0, 0 };

	for (uint32_t i = first; i < track->depth; i++) {
		const struct xs_open *task = &track->open[i];
		struct xs_kineto_span *span = span_of(kineto, task, track->tid);
		size_t length;
		const char *text = xs_text_of(track->process->run, task->name.id, &length);

		if (task->lost || xs_kineto_is_operation(&text, &length))
			continue;
		if (!is_span(span, task, track->tid))
			*span = (struct xs_kineto_span){ .start = task->start,
							 .name = task->name.id,
							 .tid = track->tid,
							 .turn = ++kineto->span_turns,
							 .around = around };
		around = (struct xs_kineto_ref){ (uint32_t)(span - kineto->spans), span->turn };
	}
	if (around.turn && track->user_external)
		kineto->spans[around.slot].user = track->user_external;
	return around;
}

static void write_range(struct xs_process *process, const struct xs_kineto_range *range)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	uint32_t tid;
	char *o;

	if (!xs_chrome_wants(chrome, XS_TYPE_GPU_USER_ANNOTATION) ||
	    !xs_kineto_lane(process, range->pid, range->stream, XS_KINETO_ANNOTATION, range->first,
			    range->last, &tid))
		return;
	o = xs_put_count(xs_output_put(&chrome->out), "{\"ph\":\"X\",\"tid\":", tid);
	o = xs_json_micros(xs_put(xs_put_count(o, ",\"pid\":", range->pid), ",\"ts\":"),
			   range->first);
	o = xs_json_micros(xs_put(o, ",\"dur\":"), range->last - range->first);
	o = xs_put_count(xs_put_count(o, ",\"args\":{\"device\":", range->pid),
			 ",\"stream\":", range->stream);
	if (range->user)
		o = xs_put_count(o, ",\"External id\":", range->user);
	o = xs_put(o, "},\"cat\":\"gpu_user_annotation\"");
	xs_chrome_finish(chrome, xs_chrome_put_bare_name(o, process, range->name));
}

static void extend(struct xs_process *process, struct xs_kineto_ref ref, uint32_t pid,
		   uint32_t stream, const struct xs_work *work)
{
	struct xs_kineto *kineto = xs_chrome_of(process)->kineto;
	uint64_t words[3] = { ref.turn, pid, stream };
	struct xs_kineto_range *range = &kineto->ranges[xs_hash(words, 3) & (XS_KINETO_SPANS - 1)];

	if (range->turn && range->turn == ref.turn && range->pid == pid &&
	    range->stream == stream) {
		if (work->start < range->first)
			range->first = work->start;
		if (work->end > range->last)
			range->last = work->end;
		return;
	}
	if (range->turn)
		write_range(process, range);
	*range = (struct xs_kineto_range){ .turn = ref.turn,
					   .pid = pid,
					   .stream = stream,
					   .name = kineto->spans[ref.slot].name,
					   .user = kineto->spans[ref.slot].user,
					   .first = work->start,
					   .last = work->end };
}

void xs_kineto_span_work(struct xs_process *process, struct xs_kineto_ref ref, uint32_t pid,
			 uint32_t stream, const struct xs_work *work)
{
	struct xs_kineto *kineto = xs_chrome_of(process)->kineto;

	for (uint32_t i = 0; i < DEPTH && ref.turn; i++) {
		const struct xs_kineto_span *span = &kineto->spans[ref.slot];

		if (span->turn != ref.turn) /* forgotten since */
			return;
		extend(process, ref, pid, stream, work);
		ref = span->around;
	}
}

void xs_kineto_span_flush(struct xs_process *process)
{
	struct xs_kineto *kineto = xs_chrome_of(process)->kineto;

	for (uint32_t i = 0; kineto && i < XS_KINETO_SPANS; i++) {
		if (kineto->ranges[i].turn)
			write_range(process, &kineto->ranges[i]);
		kineto->ranges[i].turn = 0;
	}
}
