#include "summary.h"

#include <stdlib.h>
#include <string.h>

struct xs_summary *xs_summary_open(void)
{
	return calloc(1, sizeof(struct xs_summary));
}

void xs_summary_call(struct xs_summary *summary, const struct xs_event *call, uint64_t duration)
{
	struct xs_table_key key = { .id = xs_function_id(call->source, call->name),
				    .source = call->source };
	struct xs_table_row *row = xs_table_add(&summary->host, &key, duration);

	if (row && call->flags & XS_CALL_FLAG_FAILED)
		row->failed++;
}

struct xs_table_key xs_work_key(const struct xs_work *work, bool detailed)
{
	const struct xs_device_record *record = work->record;
	bool function = record->event.flags & XS_DEVICE_FLAG_FUNCTION;
	struct xs_table_key key = { .source = record->event.source,
				    .type = record->device_type & 3,
				    .tile = record->tile,
				    .device = 1,
				    .place = (uint8_t)(record->device + 1u) };

	key.id = function ? xs_function_id(record->event.source, record->event.name)
			  : record->event.name;
	key.memory = record->work == XS_WORK_COPY ? record->memory : 0;
	if (!detailed)
		return key;
	if (work->shape) {
		key.form = XS_FORM_SHAPE;
		key.simd = record->simd;
		memcpy(key.shape, work->shape, sizeof(key.shape));
	} else if (record->bytes) {
		key.form = XS_FORM_BYTES;
		key.shape[0] = record->bytes;
	}
	return key;
}

static void note_type(struct xs_summary *summary, uint8_t source, uint8_t type)
{
	if (source < XS_SOURCE_COUNT)
		summary->seen[source][type] = true;
}

void xs_summary_device(struct xs_process *process, const struct xs_work *work)
{
	struct xs_summary *summary = process->summary;
	struct xs_table_key key = xs_work_key(work, process->run->options->verbose);
	struct xs_table_row *row;

	if (!key.id)
		return;
	note_type(summary, key.source, key.type);
	row = xs_table_add(&summary->device, &key, work->end - work->start);
	if (!row)
		return;
	row->queued += work->submit - work->queued;
	row->submit += work->start - work->submit;
	if (work->record->kernel)
		row->kernel = work->record->kernel;
}

void xs_summary_device_used(struct xs_summary *summary, const struct xs_event *event)
{
	note_type(summary, event->source, event->flags & 3);
}

void xs_summary_kernel(struct xs_summary *summary, const struct xs_kernel_record *kernel)
{
	uint32_t room = summary->kernel_room ? summary->kernel_room : 64;

	if (!kernel->id || kernel->id >= XS_KERNELS_KEPT)
		return;
	while (room <= kernel->id)
		room *= 2;
	if (room != summary->kernel_room) {
		struct xs_kernel_record *grown = realloc(summary->kernels, room * sizeof(*grown));

		if (!grown)
			return;
		memset(grown + summary->kernel_room, 0,
		       (room - summary->kernel_room) * sizeof(*grown));
		summary->kernels = grown;
		summary->kernel_room = room;
	}
	summary->kernels[kernel->id] = *kernel;
}

/*
 * The task's send_size, as its JSON arguments have it (chrome_itt.c); the first one if it was given
 * more than once.
 */
static bool size_of_message(const struct xs_open *task, uint64_t *ret_size)
{
	size_t length = 0;
	const char *found = task->extra ? xs_chrome_values(task->extra, "\"send_size\":[", &length)
					: NULL,
		   *stop;

	if (!found)
		return false;
	stop = found + length;
	if (found == stop || *found < '0' || *found > '9')
		return false;
	for (*ret_size = 0; found < stop && *found >= '0' && *found <= '9'; found++)
		*ret_size = 10 * *ret_size + (uint64_t)(*found - '0');
	return true;
}

void xs_summary_ccl(struct xs_process *process, const struct xs_open *task, uint64_t end)
{
	struct xs_table_key key = { .id = task->name.id };
	uint64_t duration = end > task->start ? end - task->start : 0;
	size_t length;
	const char *domain = xs_text_of(process->run, task->name.scope, &length);

	if (!process->run->options->ccl_summary || !task->name.scope || length < 6 ||
	    memcmp(domain, "oneCCL", 6))
		return;
	(void)xs_table_add(&process->summary->ccl, &key, duration);
	if (size_of_message(task, &key.shape[0]))
		key.form = XS_FORM_BYTES;
	(void)xs_table_add(&process->summary->ccl_sizes, &key, duration);
}

bool xs_summary_close(struct xs_process *process)
{
	struct xs_summary *summary = process->summary;
	bool something = xs_timing_print(process);

	xs_table_fini(&summary->host);
	xs_table_fini(&summary->device);
	xs_table_fini(&summary->ccl);
	xs_table_fini(&summary->ccl_sizes);
	free(summary->kernels);
	free(summary);
	process->summary = NULL;
	return something;
}
