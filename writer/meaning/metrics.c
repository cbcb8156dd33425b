/*
 * What the hardware has counted while work ran: told to the sinks with the names of the metrics.
 */
#include "metrics.h"

#include <string.h>

#include "device_clock.h"
#include "device_record.h"
#include "names.h"
#include "sink.h"

/* The lines of the text: the group's, then as many as there are values. */
static bool take_names(struct xs_run *run, struct xs_metrics *metrics)
{
	const struct xs_text text = xs_text_find(run, metrics->columns);
	const char *end = text.text + text.length, *at, *line;
	uint32_t lines = 0;

	line = text.text && text.scope == XS_METRICS_SCOPE ? memchr(text.text, '\n', text.length)
							   : NULL;
	if (!line)
		return false;
	metrics->group = text.text;
	metrics->group_length = (size_t)(line - text.text);
	metrics->names = at = line + 1;
	metrics->names_length = (size_t)(end - at);
	for (; at; lines++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return lines == metrics->count;
}

bool xs_metrics_tell(struct xs_process *process, struct xs_metrics *metrics)
{
	if (!take_names(process->run, metrics))
		return false;
	XS_TELL_SINKS(process, metrics, process, metrics);
	return true;
}

/* False: it is no whole record of metrics that are known. */
static bool take(struct xs_process *process, const struct xs_metrics_record *record, uint32_t size,
		 struct xs_metrics *metrics)
{
	if (size < sizeof(*record) || record->count > XS_METRICS_MAX ||
	    size < XS_METRICS_SIZE(record->count))
		return false;
	metrics->columns = record->columns;
	metrics->count = record->count;
	metrics->part = record->part;
	metrics->value = record->value;
	metrics->type = (const uint8_t *)&record->value[record->count];
	return take_names(process->run, metrics);
}

void xs_metrics_read(struct xs_process *process, const struct xs_metrics_record *record,
		     uint32_t size)
{
	struct xs_work work = { .record = &record->work };
	struct xs_metrics metrics = { .work = &work };

	/* what is no kernel is all that a graph did, which has no name of the program's */
	if (!take(process, record, size, &metrics) ||
	    (record->work.work == XS_WORK_KERNEL &&
	     !xs_work_wanted(process->run, &record->work.event)))
		return;
	work.queue = record->work.queue;
	work.shape = record->work.work == XS_WORK_KERNEL ? record->work.global : NULL;
	work.host_start = xs_process_ns(process, record->work.event.tick);
	work.host_end = xs_process_ns(process, record->work.event.tick +
						       xs_ticks_of(record->work.host_ticks));
	if (xs_device_times(process, &work) && work.end >= work.start &&
	    work.end <= process->horizon)
		(void)xs_metrics_tell(process, &metrics);
}

void xs_sample_read(struct xs_process *process, const struct xs_metrics_record *record,
		    uint32_t size)
{
	struct xs_work work = { .record = &record->work };
	struct xs_metrics metrics = { .work = &work };

	if (!xs_process_is(process, process->run->control->metrics_pid) ||
	    !take(process, record, size, &metrics))
		return;
	if (!(record->work.event.flags & XS_DEVICE_FLAG_TICKS))
		work.start = record->work.start + (uint64_t)process->run->clock.offset;
	else if (!xs_device_moment(process, record->work.device, record->work.start, &work.start))
		return;
	work.end = work.start;
	if (work.start <= process->horizon)
		XS_TELL_SINKS(process, sample, process, &metrics);
}

void xs_stalled_read(struct xs_process *process, const struct xs_stalled_record *record,
		     uint32_t size)
{
	const struct xs_device_record kernel = { .event = { .name = record->event.name,
							    .source = record->event.source },
						 .device = record->device,
						 .work = XS_WORK_KERNEL };
	const struct xs_work work = { .record = &kernel };
	struct xs_metrics metrics = { .work = &work };

	if (size < sizeof(*record) || record->count > XS_METRICS_MAX ||
	    size < XS_STALLED_SIZE(record->count))
		return;
	metrics.columns = record->columns;
	metrics.count = record->count;
	metrics.value = record->value;
	if (take_names(process->run, &metrics) && xs_work_wanted(process->run, &kernel.event))
		XS_TELL_SINKS(process, stalled, process, &metrics, record->address);
}
