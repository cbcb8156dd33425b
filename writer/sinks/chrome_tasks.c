/*
 * Plain tasks as JSON: what a track's slices begin with and their names are ready, so that a slice
 * is copies of fixed sizes and two numbers.
 */
#include "perfetto.h"

#include "chrome.h"

/* Bytes that a plain slice may touch. */
#define SLICE_ROOM (XS_CHUNK + 32u + XS_NAME_SLACK)

/* Those that are like most; returns how many these are. */
static uint32_t put_quickly(struct xs_chrome *chrome, const struct xs_begun *begun,
			    const struct xs_task *tasks, uint32_t count)
{
	char *o = xs_output_put(&chrome->out);
	uint32_t i = 0;

	for (; i < count && i < XS_OUTPUT_SLACK / SLICE_ROOM; i++) {
		const struct xs_task *task = &tasks[i];
		const struct xs_json_name *name = &chrome->names.hot[task->name % XS_JSON_HOT];
		uint64_t low = task->start - begun->from, duration = task->end - task->start;

		if (low >= XS_JSON_TIME_LOW || duration > XS_JSON_TIME_DUR ||
		    name->id != task->name || !name->length)
			break;
		memcpy(o, begun->text, sizeof(begun->text));
		o = xs_json_times(o + begun->length, (uint32_t)low, (uint32_t)duration);
		memcpy(o, name->text, XS_CHUNK);
		if (__builtin_expect(name->length > XS_CHUNK, 0))
			memcpy(o + XS_CHUNK, name->text + XS_CHUNK, XS_NAME_SLACK - XS_CHUNK);
		o += name->length;
	}
	xs_output_put_end(&chrome->out, o);
	return i;
}

static void put_one(struct xs_track *track, const struct xs_task *task)
{
	struct xs_process *process = track->process;
	struct xs_chrome *chrome = xs_chrome_of(process);
	char *o;

	if (chrome->types != UINT64_MAX && !xs_chrome_wants_task(process, task->name))
		return;
	o = xs_chrome_put_slice(xs_output_put(&chrome->out), track, task->start, task->end);
	xs_chrome_finish(chrome, xs_chrome_put_name(o, process, task->name));
}

void xs_chrome_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	struct xs_chrome *chrome = xs_chrome_of(track->process);
	const struct xs_begun *begun = &xs_chrome_track(track)->begun;
	bool all = chrome->types == UINT64_MAX;

	if (chrome->perfetto) {
		xs_perfetto_tasks(track, tasks, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (all && begun->from)
			i += put_quickly(chrome, begun, tasks + i, count - i);
		if (i < count)
			put_one(track, &tasks[i]);
	}
}
