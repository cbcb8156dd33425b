/*
 * What CUPTI has counted of a kernel, joined with the kernel's record of activity by their
 * correlation id. Either may come first: kernels' records come in buffers, what was counted when
 * the traced process has looked at the profiler. What was counted of a graph's launch is told when
 * all of its kernels are known: with a newer launch in its place, or at the end.
 *
 * Both tables have a fixed size. What gives way to newer entries, and never finds its other half,
 * is counted.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_activity.h"
#include "metrics.h"

#define PLACES 16384u

struct ran {
	struct xs_device_record record;
	struct xs_work work;
	uint32_t correlation;
	bool known, shown;
	bool graph; /* the record is that of its first kernel, the times are those of all */
	struct xs_fact id;
};

struct counted {
	uint32_t correlation, columns;
	uint16_t count, part;
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

	if (!ran->shown)
		return; /* a filter has left it out */
	ran->work.record = &ran->record;
	ran->work.shape = ran->graph ? NULL : ran->record.global;
	memcpy(values, counted->value, counted->count * sizeof(*values));
	memset(types, XS_VALUE_DOUBLE, counted->count);
	if (!xs_metrics_tell(process, &metrics))
		process->corrupt++;
}

/* Its graph's launch is complete. */
static void tell_graph(struct xs_process *process, struct xs_cuda_metrics *metrics, uint32_t place)
{
	struct ran *ran = &metrics->ran[place];
	struct counted *counted = &metrics->counted[place];

	if (!ran->known || !ran->graph || !counted->value ||
	    counted->correlation != ran->correlation)
		return;
	ran->work.facts = &ran->id;
	ran->work.fact_count = 1;
	tell(process, ran, counted);
	forget(counted);
	ran->known = false;
}

void xs_cuda_ran_graph(struct xs_process *process, uint32_t correlation, uint64_t graph,
		       const struct xs_work *work)
{
	struct xs_cuda_metrics *metrics = metrics_of(process);
	uint32_t place = correlation % PLACES;
	struct ran *ran;

	if (!metrics)
		return;
	ran = &metrics->ran[place];
	if (ran->correlation != correlation || !ran->known || !ran->graph) {
		tell_graph(process, metrics, place);
		*ran = (struct ran){ .correlation = correlation,
				     .known = true,
				     .graph = true,
				     .id = { "graph", graph } };
	}
	if (!work)
		return;
	if (!ran->shown) {
		ran->work = *work;
		ran->record = *work->record;
		ran->record.event.name = XS_WORK_OF_GRAPH;
		ran->record.event.flags |= XS_DEVICE_FLAG_FUNCTION;
		ran->record.work = XS_WORK_OTHER;
		memset(ran->record.global, 0, sizeof(ran->record.global));
		memset(ran->record.local, 0, sizeof(ran->record.local));
	}
	ran->shown = true;
	if (work->start < ran->work.start)
		ran->work.start = work->start;
	if (work->end > ran->work.end)
		ran->work.end = work->end;
}

void xs_cuda_ran(struct xs_process *process, uint32_t correlation, const struct xs_work *work)
{
	struct xs_cuda_metrics *metrics = metrics_of(process);
	struct counted *counted;
	struct ran *ran;

	if (!metrics)
		return;
	ran = &metrics->ran[correlation % PLACES];
	counted = &metrics->counted[correlation % PLACES];
	tell_graph(process, metrics, correlation % PLACES);
	*ran = (struct ran){ .correlation = correlation, .known = true, .shown = work };
	if (work) {
		ran->record = *work->record;
		ran->work = *work;
		ran->work.facts = NULL;
		ran->work.fact_count = 0;
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
	tell_graph(process, metrics, record->correlation % PLACES);
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
	memcpy(counted->value, record->value, record->count * sizeof(double));
	if (!ran->known || ran->graph || ran->correlation != record->correlation)
		return;
	tell(process, ran, counted);
	forget(counted);
	ran->known = false;
}

void xs_cuda_metrics_end(struct xs_process *process)
{
	struct xs_cuda_metrics *metrics = process->cuda ? process->cuda->metrics : NULL;

	for (uint32_t i = 0; metrics && i < PLACES; i++)
		tell_graph(process, metrics, i);
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
