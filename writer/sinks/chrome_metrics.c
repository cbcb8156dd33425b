/*
 * What the hardware has counted, as counter tracks of the device: each metric has its value while
 * the kernel runs, and is 0 behind it; sampled ones keep it until the next sample.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chrome.h"
#include "device_record.h"
#include "kineto.h"
#include "task_record.h"

static bool number_of(uint64_t value, uint8_t type, double *ret)
{
	uint32_t bits = (uint32_t)value;
	float single;

	memcpy(&single, &bits, sizeof(single));
	memcpy(ret, &value, sizeof(*ret));
	if (type == XS_VALUE_FLOAT)
		*ret = (double)single;
	return isfinite(*ret);
}

/* At most 1 KiB of a name. */
#define NAME_MAX_SHOWN 1024u

static char *put_begin(struct xs_process *process, uint64_t pid, uint64_t ns)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	char *o = xs_put_count(xs_output_put(&chrome->out), "{\"ph\":\"C\",\"pid\":", pid);

	return xs_json_time(xs_put(o, ",\"ts\":"), ns, &chrome->time);
}

/* Level Zero's groups that were named together have metrics of the same names. */
static bool has_others(const struct xs_process *process, const struct xs_metrics *metrics)
{
	const char *wanted = xs_metric_group(process->run->options);

	return metrics->work->record->event.flags & XS_DEVICE_FLAG_TICKS &&
	       (strlen(wanted) != metrics->group_length ||
		memcmp(wanted, metrics->group, metrics->group_length) != 0);
}

static char *put_name(char *o, const char *name, size_t length)
{
	return xs_json_escape(o, name, length < NAME_MAX_SHOWN ? length : NAME_MAX_SHOWN);
}

static void put_end(struct xs_process *process, const struct xs_metrics *metrics, char *o,
		    const char *name, size_t length)
{
	o = xs_put(o, "},\"name\":\"");
	if (has_others(process, metrics))
		o = xs_put(put_name(o, metrics->group, metrics->group_length), ": ");
	o = put_name(o, name, length);
	if (metrics->part)
		o = xs_put_count(o, " part ", metrics->part);
	xs_chrome_finish(xs_chrome_of(process), xs_put(o, "\"},\n"));
}

/* False: it is no number that a viewer could show, or that JSON could say. */
static bool put_value(struct xs_process *process, const struct xs_metrics *metrics, uint32_t i,
		      uint64_t pid, const char *name, size_t length)
{
	uint8_t type = metrics->type[i];
	double number = 0;
	char *o;

	if (type != XS_VALUE_U64 && type != XS_VALUE_FLOAT && type != XS_VALUE_DOUBLE)
		return false;
	if (type != XS_VALUE_U64 && !number_of(metrics->value[i], type, &number))
		return false;
	o = xs_put(put_begin(process, pid, metrics->work->start), ",\"args\":{\"value\":");
	o = type == XS_VALUE_U64 ? xs_json_uint(o, metrics->value[i])
				 : xs_chrome_put_double(o, number, type == XS_VALUE_FLOAT);
	put_end(process, metrics, o, name, length);
	return true;
}

/* `ends`: the value is the work's, and no more behind it. */
static void put_counters(struct xs_process *process, const struct xs_metrics *metrics, bool ends)
{
	const struct xs_options *options = process->run->options;
	const char *at = metrics->names, *end = at + metrics->names_length;
	uint64_t pid;

	if (!options->chrome_kernel && !options->chrome_device)
		return;
	pid = xs_chrome_of(process)->kineto ? xs_kineto_device_pid(process, metrics->work->record)
					    : xs_chrome_device_pid(process, metrics->work);
	for (uint32_t i = 0; i < metrics->count; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((stop ? stop : end) - at);

		if (put_value(process, metrics, i, pid, at, length) && ends)
			put_end(process, metrics,
				xs_put(put_begin(process, pid, metrics->work->end),
				       ",\"args\":{\"value\":0"),
				at, length);
		at += length + 1;
	}
}

void xs_chrome_metrics(struct xs_process *process, const struct xs_metrics *metrics)
{
	put_counters(process, metrics, true);
}

/* Those of instructions have no time. */
void xs_chrome_sample(struct xs_process *process, const struct xs_metrics *sample)
{
	if (!xs_want_stalls(process->run->options))
		put_counters(process, sample, false);
}
