/*
 * --metric-sampling, --stall-sampling: keeps samples and kernels until all of both are known.
 */
#include "samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device_clock.h"
#include "device_record.h"
#include "files.h"
#include "metrics_text.h"
#include "names.h"
#include "sinks.h"
#include "summary.h"
#include "text.h"

static void tell_error(struct xs_samples *samples, int error)
{
	if (!samples->told)
		xs_tell("xstrace: cannot keep all samples of devices: %s; what follows is lost\n",
			strerror(-error));
	samples->told = true;
}

static FILE *make_file(struct xs_process *process, struct xs_samples *samples)
{
	int fd = samples->told ? -EIO : xs_file_create_nameless(process);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!file) {
		tell_error(samples, fd < 0 ? fd : -ENOMEM);
		if (fd >= 0)
			close(fd);
	}
	return file;
}

static bool write_to(struct xs_process *process, struct xs_samples *samples, FILE **file,
		     const void *data, size_t size)
{
	if (!*file)
		*file = make_file(process, samples);
	if (!*file || samples->told)
		return false;
	if (fwrite(data, 1, size, *file) == size)
		return true;
	tell_error(samples, -errno);
	return false;
}

/* ---- devices ---- */

static bool same(const struct xs_text *one, const struct xs_text *other)
{
	return one->length == other->length && !memcmp(one->text, other->text, one->length);
}

static bool is(const struct xs_sampled_device *one, const struct xs_sampled_device *other)
{
	if (one->uuid[0] | one->uuid[1])
		return !memcmp(one->uuid, other->uuid, sizeof(one->uuid));
	return same(&one->bus, &other->bus) && same(&one->name, &other->name) &&
	       (one->bus.length || one->number == other->number);
}

/*
 * By its UUID or by where it sits; where neither is known, by the number that the process has given
 * it.
 */
static struct xs_sampled_device *device_of(struct xs_process *process, struct xs_samples *samples,
					   const struct xs_device_record *record,
					   const uint64_t *uuid)
{
	struct xs_sampled_device fresh = {
		.name = xs_text_find(process->run, record->device_name),
		.bus = xs_device_told(process->run, record->device_name).bus,
		.number = record->device
	};

	if (!fresh.name.text)
		return NULL;
	if (uuid)
		memcpy(fresh.uuid, uuid, sizeof(fresh.uuid));
	for (uint32_t i = 0; i < samples->device_count; i++) {
		if (is(&fresh, &samples->device[i]))
			return &samples->device[i];
	}
	if (samples->device_count == XS_DEVICES)
		return NULL;
	samples->device[samples->device_count] = fresh;
	return &samples->device[samples->device_count++];
}

/* ---- kernels ---- */

static uint64_t hash_of(const char *text, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
	return hash | 1;
}

/* Where the kernel's name is. UINT64_MAX: nowhere. */
static uint64_t name_of(struct xs_process *process, struct xs_samples *samples,
			const struct xs_work *work)
{
	char name[2 * XS_ROW_NAME_MAX + 3], *end = xs_metrics_put_kernel(name, process, work, true);
	uint64_t hash = hash_of(name, (size_t)(end - name)), offset = samples->names_length;
	size_t place = hash / 2 % (sizeof(samples->recent) / sizeof(samples->recent[0]));

	if (samples->recent[place].hash == hash)
		return samples->recent[place].offset;
	*end++ = '\0';
	if (!write_to(process, samples, &samples->names, name, (size_t)(end - name)))
		return UINT64_MAX;
	samples->names_length += (uint64_t)(end - name);
	samples->recent[place].hash = hash;
	samples->recent[place].offset = offset;
	return offset;
}

static void add_work(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct xs_samples *samples = process->run->samples;
	struct xs_sampled_device *device;
	struct xs_sampled_kernel kernel = { .ticks = work->start,
					    .length = work->end - work->start,
					    .ns = work->start,
					    .id = record->id,
					    .bits = 64 };
	bool ticks = record->event.flags & XS_DEVICE_FLAG_TICKS,
	     known = work->named.uuid[0] | work->named.uuid[1];

	if (!samples || xs_want_stalls(process->run->options) || record->work != XS_WORK_KERNEL ||
	    (!ticks && !known))
		return;
	if (ticks) {
		kernel.ticks = record->start;
		kernel.length = record->end - record->start;
		kernel.bits = xs_device_bits(process, record->device);
	}
	device = device_of(process, samples, record, ticks ? NULL : work->named.uuid);
	if (!device || !kernel.bits)
		return;
	if (kernel.bits < 64)
		kernel.length &= (1ull << kernel.bits) - 1;
	kernel.name = name_of(process, samples, work);
	if (kernel.name != UINT64_MAX &&
	    write_to(process, samples, &device->kernels, &kernel, sizeof(kernel)))
		device->kernel_count++;
}

static void add_place(struct xs_process *process, const struct xs_kernel_place_record *record)
{
	const struct xs_device_record on = { .device_name = record->device_name,
					     .device = record->device };
	const struct xs_place place = { .address = record->address,
					.bytes = record->bytes,
					.name = record->event.name,
					.source = record->event.source,
					.unwanted = record->event.flags & 1 };
	struct xs_samples *samples = process->run->samples;
	struct xs_sampled_device *device = samples ? device_of(process, samples, &on, NULL) : NULL;

	if (device && !xs_stalls_place(device, &place))
		tell_error(samples, -ENOMEM);
}

/* ---- samples ---- */

static bool has_ticks(const struct xs_metrics *sample)
{
	return sample->work->record->event.flags & XS_DEVICE_FLAG_TICKS;
}

static uint64_t ticks_of(const struct xs_metrics *sample)
{
	return has_ticks(sample) ? sample->work->record->start : sample->work->start;
}

/* The first one says what the group's samples are like. */
static void begin(struct xs_process *process, struct xs_sampled_group *group,
		  const struct xs_metrics *sample)
{
	const struct xs_device_record *record = sample->work->record;

	*group = (struct xs_sampled_group){ .ticks = ticks_of(sample),
					    .ns = sample->work->start,
					    .frequency = 1000000000u,
					    .columns = sample->columns,
					    .count = sample->count,
					    .names = sample->names,
					    .names_length = sample->names_length };
	if (has_ticks(sample))
		group->frequency = xs_device_frequency(process, record->device);
	memcpy(group->type, sample->type, sample->count);
}

/* That of the sample's columns. Ids grow: the groups stand in the order in which they were named.
 */
static struct xs_sampled_group *group_of(struct xs_process *process,
					 struct xs_sampled_device *device,
					 const struct xs_metrics *sample)
{
	struct xs_sampled_group *group = device->group, *end = group + device->group_count;

	while (group < end && group->columns < sample->columns)
		group++;
	if (group < end && group->columns == sample->columns)
		return group;
	if (device->group_count == XS_GROUPS_MAX)
		return NULL;
	memmove(group + 1, group, (size_t)(end - group) * sizeof(*group));
	begin(process, group, sample);
	device->group_count++;
	device->number = sample->work->record->device;
	return group;
}

static void add_sample(struct xs_process *process, const struct xs_metrics *sample)
{
	const struct xs_device_record *record = sample->work->record;
	struct xs_samples *samples = process->run->samples;
	struct xs_sampled_device *device =
		samples ? device_of(process, samples, record,
				    has_ticks(sample) ? NULL : record->global)
			: NULL;
	struct xs_sampled_group *group;
	uint64_t text[2 + XS_METRICS_MAX];
	struct xs_sample *kept = (void *)text;

	if (!device || !sample->count)
		return;
	group = group_of(process, device, sample);
	if (!group || group->count != sample->count ||
	    memcmp(group->type, sample->type, sample->count) != 0) {
		device->odd++;
		return;
	}
	if (xs_want_stalls(process->run->options)) {
		if (!xs_stalls_add(device, sample))
			tell_error(samples, -ENOMEM);
		return;
	}
	kept->ticks = ticks_of(sample);
	kept->part = sample->part;
	memcpy(kept->value, sample->value, 8u * sample->count);
	group->parts |= sample->part;
	if (write_to(process, samples, &group->samples, kept, sizeof(*kept) + 8u * sample->count))
		group->sample_count++;
}

/* ---- the sink ---- */

void xs_samples_free(struct xs_run *run)
{
	struct xs_samples *samples = run->samples;

	if (!samples)
		return;
	for (uint32_t i = 0; i < samples->device_count; i++) {
		if (samples->device[i].kernels)
			(void)fclose(samples->device[i].kernels);
		for (uint32_t k = 0; k < samples->device[i].group_count; k++)
			if (samples->device[i].group[k].samples)
				(void)fclose(samples->device[i].group[k].samples);
		xs_stalls_free(&samples->device[i]);
	}
	if (samples->names)
		(void)fclose(samples->names);
	free(samples);
	run->samples = NULL;
}

static bool wanted(const struct xs_run *run)
{
	return run->options->metric_sampling || run->options->stall_sampling;
}

/* What is kept is the run's: a process has no state of its own. */
static bool open_samples(struct xs_process *process)
{
	struct xs_run *run = process->run;

	if (!run->samples)
		run->samples = calloc(1, sizeof(*run->samples));
	process->sink[XS_SINK_SAMPLES] = run->samples ? process : NULL;
	return run->samples;
}

/* The sampling process is the last one that ends (writer/drain/ends.c). */
static bool close_samples(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_run *run = process->run;
	bool some = false;

	(void)end, (void)status;
	if (!xs_process_is(process, run->control->metrics_pid) || !run->samples)
		return false;
	some = xs_samples_write(process, run->samples);
	xs_samples_free(run);
	return some;
}

static void drop(struct xs_process *process)
{
	if (xs_process_is(process, process->run->control->metrics_pid))
		xs_samples_free(process->run);
}

const struct xs_sink xs_samples_sink = {
	.wanted = wanted,
	.open = open_samples,
	.work = add_work,
	.sample = add_sample,
	.place = add_place,
	.close = close_samples,
	.drop = drop,
};
