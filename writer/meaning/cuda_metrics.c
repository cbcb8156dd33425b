/*
 * What CUPTI has counted of a kernel, joined with the kernel's record of activity by their
 * correlation id. Either may come first: kernels' records come in buffers, what was counted when
 * the traced process has looked at the profiler.
 *
 * Of a kernel that it counts CUPTI tells no times. Its launch returns when it has run, for the last
 * time if several passes are needed. So it ends with its call here, and is as long as the counter
 * of its time says. Without that counter it has no place in the trace.
 *
 * Both tables have a fixed size. What gives way to newer entries, and never finds its other half,
 * is counted.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_activity.h"
#include "device_record.h"
#include "metrics.h"
#include "task_record.h"
#include "work.h"

#define PLACES 16384u

struct ran {
	struct xs_device_record record;
	struct xs_work work;
	struct xs_fact facts[XS_FACTS_MAX];
	uint32_t correlation;
	bool known;  /* and what was counted is awaited */
	bool wanted; /* no filter has left it out */
	bool timed;  /* and shown */
};

struct counted {
	uint32_t correlation, columns;
	uint16_t count, part;
	uint64_t ns;
	double *value; /* NULL: the place is free */
};

struct xs_cuda_metrics {
	struct ran ran[PLACES];
	struct counted counted[PLACES];
};

static struct xs_cuda_metrics *metrics_of(struct xs_process *process)
{
	struct xs_cuda *cuda = process->run->options->metric_query ? xs_cuda_of(process) : NULL;

	if (cuda && !cuda->metrics)
		cuda->metrics = calloc(1, sizeof(*cuda->metrics));
	return cuda ? cuda->metrics : NULL;
}

static void forget(struct counted *counted)
{
	free(counted->value);
	counted->value = NULL;
}

/* Its call was when it ran. */
static void show(struct xs_process *process, struct ran *ran, const struct counted *counted)
{
	struct xs_work *work = &ran->work;

	if (!counted->ns) {
		process->cuda->untimed++;
		return;
	}
	if (counted->ns < work->end - work->start)
		work->start = work->end - counted->ns;
	work->submit = work->submit < work->start ? work->submit : work->start;
	xs_work_show(process, work);
}

static void tell(struct xs_process *process, struct ran *ran, const struct counted *counted)
{
	uint64_t values[XS_METRICS_MAX];
	uint8_t types[XS_METRICS_MAX];
	struct xs_metrics metrics = { .work = &ran->work,
				      .columns = counted->columns,
				      .count = counted->count,
				      .part = counted->part,
				      .value = values,
				      .type = types };

	if (!ran->wanted)
		return;
	ran->work.record = &ran->record;
	ran->work.shape = ran->record.global;
	ran->work.facts = ran->facts;
	if (!ran->timed)
		show(process, ran, counted);
	ran->work.facts = NULL;
	ran->work.fact_count = 0;
	memcpy(values, counted->value, counted->count * sizeof(*values));
	memset(types, XS_VALUE_DOUBLE, counted->count);
	if (!xs_metrics_tell(process, &metrics))
		process->corrupt++;
}

/* Another takes its place, or none comes any more. */
static void give_up(struct xs_process *process, struct ran *ran)
{
	process->cuda->untimed += ran->known && ran->wanted && !ran->timed;
	ran->known = false;
}

bool xs_cuda_is_counted(const struct xs_process *process)
{
	return process->run->options->metric_query;
}

void xs_cuda_ran(struct xs_process *process, uint32_t correlation, const struct xs_work *work,
		 bool timed)
{
	struct xs_cuda_metrics *metrics = metrics_of(process);
	struct counted *counted;
	struct ran *ran;

	if (!metrics) {
		if (process->cuda)
			process->cuda->untimed += work && !timed;
		return;
	}
	ran = &metrics->ran[correlation % PLACES];
	counted = &metrics->counted[correlation % PLACES];
	give_up(process, ran);
	ran->correlation = correlation;
	ran->known = true;
	ran->wanted = work;
	ran->timed = timed;
	if (work) {
		ran->record = *work->record;
		ran->work = *work;
		memcpy(ran->facts, work->facts, work->fact_count * sizeof(*work->facts));
	}
	if (!counted->value || counted->correlation != correlation)
		return;
	tell(process, ran, counted);
	forget(counted);
	ran->known = false;
}

void xs_cuda_counted(struct xs_process *process, const struct xs_event *event, uint32_t size)
{
	const struct xs_counted_record *record = (const void *)event;
	struct xs_cuda_metrics *metrics = metrics_of(process);
	struct counted *counted;
	struct ran *ran;

	if (!metrics || size < sizeof(*record) || record->count > XS_METRICS_MAX ||
	    size < XS_COUNTED_SIZE(record->count))
		return;
	counted = &metrics->counted[record->correlation % PLACES];
	ran = &metrics->ran[record->correlation % PLACES];
	if (counted->value)
		process->cuda->unjoined++;
	forget(counted);
	counted->value = malloc(record->count * sizeof(double) + 1);
	if (!counted->value) {
		process->cuda->unjoined++;
		return;
	}
	counted->correlation = record->correlation;
	counted->columns = event->name;
	counted->count = record->count;
	counted->part = record->part;
	counted->ns = record->ns;
	memcpy(counted->value, record->value, record->count * sizeof(double));
	if (!ran->known || ran->correlation != record->correlation)
		return;
	tell(process, ran, counted);
	forget(counted);
	ran->known = false;
}

void xs_cuda_metrics_end(struct xs_process *process)
{
	struct xs_cuda_metrics *metrics = process->cuda ? process->cuda->metrics : NULL;

	for (uint32_t i = 0; metrics && i < PLACES; i++)
		give_up(process, &metrics->ran[i]);
}

uint64_t xs_cuda_unjoined(const struct xs_process *process)
{
	struct xs_cuda_metrics *metrics = process->cuda ? process->cuda->metrics : NULL;
	uint64_t count = metrics ? process->cuda->unjoined : 0;

	for (uint32_t i = 0; metrics && i < PLACES; i++)
		count += metrics->counted[i].value != NULL;
	return count;
}

void xs_cuda_metrics_free(struct xs_cuda *cuda)
{
	for (uint32_t i = 0; cuda->metrics && i < PLACES; i++)
		forget(&cuda->metrics->counted[i]);
	free(cuda->metrics);
	cuda->metrics = NULL;
}
