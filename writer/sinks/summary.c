#include "device_record.h"
#include "summary.h"
#include "extras.h"
#include "mpi_record.h"
#include "names.h"
#include "task_record.h"

#include <stdlib.h>
#include <string.h>

static struct xs_summary *summary_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_SUMMARY];
}

static void count_call(struct xs_process *process, const struct xs_event *event, uint32_t name,
		       uint64_t duration)
{
	struct xs_table_key key = { .id = name, .source = event->source };
	struct xs_table_row *row = xs_table_add(&summary_of(process)->host, &key, duration);

	if (row && event->flags & XS_CALL_FLAG_FAILED)
		row->failed++;
}

static void add_call(struct xs_track *track, const struct xs_call *call)
{
	count_call(track->process, call->event, call->name, call->end - call->start);
}

static void add_mpi_call(struct xs_track *track, const struct xs_mpi_call *call)
{
	if (!(call->event->flags & XS_MPI_FLAG_INSIDE))
		count_call(track->process, call->event, call->name, call->end - call->start);
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

static void add_work(struct xs_process *process, const struct xs_work *work)
{
	struct xs_summary *summary = summary_of(process);
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

/* Of which type the devices are that a backend is used with. */
static void note_device(struct xs_process *process, const struct xs_event *event)
{
	note_type(summary_of(process), event->source, event->flags & 3);
}

/* What a kernel is made of, before it first runs. */
static void add_kernel(struct xs_process *process, const struct xs_kernel_record *kernel)
{
	struct xs_summary *summary = summary_of(process);
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

/* A number of an argument, without its fraction; false: it is none, or below 0. */
static bool number_of(const struct xs_arg *arg, const unsigned char *value, uint64_t *ret)
{
	union {
		uint64_t u;
		int64_t s;
		double d;
	} wide = { .u = 0 };
	int32_t s32;
	int16_t s16;
	float f;

	switch (arg->type) {
	case XS_VALUE_U64:
	case XS_VALUE_U32:
	case XS_VALUE_U16: /* little-endian, as all that we run on */
		memcpy(ret, &wide, sizeof(*ret));
		memcpy(ret, value, xs_value_size(arg->type));
		return true;
	case XS_VALUE_S64:
		memcpy(&wide.s, value, sizeof(wide.s));
		break;
	case XS_VALUE_S32:
		memcpy(&s32, value, sizeof(s32));
		wide.s = s32;
		break;
	case XS_VALUE_S16:
		memcpy(&s16, value, sizeof(s16));
		wide.s = s16;
		break;
	case XS_VALUE_FLOAT:
	case XS_VALUE_DOUBLE:
		memcpy(&f, value, sizeof(f));
		wide.d = (double)f;
		if (arg->type == XS_VALUE_DOUBLE)
			memcpy(&wide.d, value, sizeof(wide.d));
		*ret = wide.d >= 0 && wide.d < 0x1p63 ? (uint64_t)wide.d : 0;
		return wide.d >= 0 && wide.d < 0x1p63;
	default:
		return false;
	}
	*ret = (uint64_t)wide.s;
	return wide.s >= 0;
}

/* The task's send_size; the first one if it was given more than once. */
static bool size_of_message(const struct xs_process *process, const struct xs_extra *extra,
			    uint64_t *ret_size)
{
	static const char wanted_key[] = "send_size";
	const unsigned char *values;
	struct xs_arg arg;
	uint32_t at = 0;

	while (extra && xs_args_next(extra->args, extra->length, &at, &arg, &values)) {
		size_t length;
		const char *key = xs_text_of(process->run, arg.key, &length);

		if (length == sizeof(wanted_key) - 1 && !memcmp(key, wanted_key, length) &&
		    (arg.count || arg.type == XS_VALUE_TEXT || arg.type == XS_VALUE_JSON))
			return number_of(&arg, values, ret_size);
	}
	return false;
}

/* A task has ended; those of other libraries than oneCCL are left out. */
static void add_task(struct xs_process *process, const struct xs_open *task, uint64_t end)
{
	struct xs_summary *summary = summary_of(process);
	struct xs_table_key key = { .id = task->name.id };
	uint64_t duration = end > task->start ? end - task->start : 0;
	size_t length;
	const char *domain = xs_text_of(process->run, task->name.scope, &length);

	if (!process->run->options->ccl_summary || !task->name.scope || length < 6 ||
	    memcmp(domain, "oneCCL", 6))
		return;
	(void)xs_table_add(&summary->ccl, &key, duration);
	if (size_of_message(process, task->extra, &key.shape[0]))
		key.form = XS_FORM_BYTES;
	(void)xs_table_add(&summary->ccl_sizes, &key, duration);
}

static void add_plain_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct xs_open task = { .start = tasks[i].start,
					      .name = xs_name_of(track->process, tasks[i].name) };

		add_task(track->process, &task, tasks[i].end);
	}
}

static void add_span(struct xs_process *process, const struct xs_slice *span)
{
	if (!span->unfinished && (span->kind == XS_SPAN_TASK || span->kind == XS_SPAN_OVERLAPPED))
		add_task(process, span->task, span->end);
}

static bool wanted(const struct xs_run *run)
{
	const struct xs_options *options = run->options;

	return options->host_timing || options->device_timing || options->kernel_submission ||
	       options->ccl_summary;
}

static bool wants_tasks(const struct xs_run *run)
{
	return run->options->ccl_summary;
}

static bool open_summary(struct xs_process *process)
{
	process->sink[XS_SINK_SUMMARY] = calloc(1, sizeof(struct xs_summary));
	return process->sink[XS_SINK_SUMMARY];
}

static void drop_summary(struct xs_process *process)
{
	struct xs_summary *summary = summary_of(process);

	xs_table_fini(&summary->host);
	xs_table_fini(&summary->device);
	xs_table_fini(&summary->ccl);
	xs_table_fini(&summary->ccl_sizes);
	free(summary->kernels);
	free(summary);
}

static bool close_summary(struct xs_process *process, enum xs_end end, int status)
{
	bool something = xs_timing_print(process);

	(void)end, (void)status;
	drop_summary(process);
	return something;
}

const struct xs_sink xs_summary_sink = {
	.wanted = wanted,
	.open = open_summary,
	.wants_tasks = wants_tasks,
	.tasks = add_plain_tasks,
	.slice = add_span,
	.call = add_call,
	.work = add_work,
	.kernel = add_kernel,
	.device_used = note_device,
	.mpi_call = add_mpi_call,
	.close = close_summary,
	.drop = drop_summary,
};
