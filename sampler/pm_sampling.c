/*
 * CUPTI's PM sampling: one device after the other is read. It needs no context, so nothing of it is
 * in the traced program.
 *
 * Samples have times of the host's, "CPU based", as CUPTI's documentation says: of which clock, it
 * does not. CUPTI is given CLOCK_MONOTONIC, by which the kernels' times are, too. What the first
 * samples ended by shows whether it took that; else its own clock, or CLOCK_REALTIME, is read
 * beside CLOCK_MONOTONIC at each look.
 */
#include "pm_sampling.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device_record.h"
#include "pm_setup.h"
#include "task_record.h"

#define DEVICES_MAX 64u
#define READS_MAX   64u		   /* of a device, one after the other */
#define BEHIND_NS   10000000000ull /* a sample that has just been read is not older */
#define SAME_NS	    1000000u
#define LOOKS	    3u /* at a clock; the quickest counts */

static struct xs_pm_device devices[DEVICES_MAX];
static uint32_t device_count;
static const struct xs_wish *wish;
static const struct xs_library *library;

static void tell(uint32_t device, const char *what)
{
	fprintf(stderr, "[WARNING] %s: CUDA device #%u is not sampled: %s\n", wish->option, device,
		what);
}

/* ---- clocks ---- */

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t monotonic(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static uint64_t realtime(void)
{
	return read_clock(CLOCK_REALTIME);
}

static uint64_t cupti_time(void)
{
	uint64_t now;

	return xs_pm.get_timestamp && !xs_pm.get_timestamp(&now) ? now : 0;
}

static uint64_t (*const clocks[])(void) = { monotonic, cupti_time, realtime };
static uint64_t (*clock_of_samples)(void); /* NULL: it is not known yet */

/* The one by which a sample that was just read ended last. */
static bool find_clock(uint64_t end)
{
	uint64_t least = BEHIND_NS;

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		uint64_t now = clocks[i](), apart = now > end ? now - end : end - now;

		/* of two that are the same the first counts, however long a look at them takes */
		if (apart + (clock_of_samples ? SAME_NS : 0) < least) {
			least = apart;
			clock_of_samples = clocks[i];
		}
	}
	return clock_of_samples;
}

/* What CLOCK_MONOTONIC is ahead of the samples' clock. */
static uint64_t ahead(void)
{
	uint64_t best = UINT64_MAX, ret = 0;

	for (uint32_t i = 0; i < LOOKS && clock_of_samples != monotonic; i++) {
		uint64_t before = monotonic(), there = clock_of_samples(),
			 width = monotonic() - before;

		if (width < best) {
			best = width;
			ret = before + width / 2 - there;
		}
	}
	return ret;
}

/* ---- opening ---- */

static const char *open_device(struct xs_pm_device *device)
{
	struct xs_pm_object object = { XS_PROF_HEAD(xs_pm_object, object) };
	char name[256] = "CUDA device";
	struct xs_own_device told = { .number = device->number, .name = name };
	const char *problem;
	int handle, result;

	if (xs_cuda_driver.get(&handle, (int)device->number))
		return "CUDA's driver does not give it";
	(void)xs_cuda_driver.name(name, sizeof(name), handle);
	name[sizeof(name) - 1] = '\0';
	if (xs_cuda_driver.uuid)
		(void)xs_cuda_driver.uuid(device->uuid, handle);
	device->name = library->device(&told);
	if (!device->name)
		return "there is no memory";
	problem = xs_pm_setup(device, wish, library);
	if (problem)
		return problem;
	object.object = device->object;
	result = xs_pm.PmSamplingStart(&object);
	return result ? xs_pm_why(result, "CUPTI does not start") : NULL;
}

/* False: it is told. */
static bool open_library(void)
{
	const char *problem = xs_pm_library(monotonic);

	if (problem)
		fprintf(stderr, "[WARNING] %s: CUDA's devices are not sampled: %s\n", wish->option,
			problem);
	return !problem;
}

uint32_t xs_pm_open(const struct xs_wish *what, const struct xs_library *where)
{
	uint32_t count;

	wish = what;
	library = where;
	if (wish->stalls) /* which CUPTI samples within the program */
		return 0;
	count = xs_cuda_devices();
	if (!count || !wish->cuda_devices || !open_library())
		return 0;
	for (uint32_t i = 0; i < count && i < DEVICES_MAX; i++) {
		struct xs_pm_device *device = &devices[device_count];
		const char *problem;

		if (!(wish->cuda_devices >> i & 1))
			continue;
		*device = (struct xs_pm_device){ .number = i };
		problem = open_device(device);
		if (problem) {
			tell(i, problem);
			xs_pm_end(device);
		} else {
			device_count++;
		}
	}
	return device_count;
}

/* ---- reading ---- */

/* Where a sample is missing, its time was lost. */
static void count_lost(struct xs_pm_device *device, const struct xs_pm_sample *sample)
{
	uint64_t period = sample->end - sample->start, missed = sample->start - device->last;

	if (device->last && sample->start > device->last)
		device->lost += (missed + period / 2) / period;
	device->last = sample->end;
}

static void record_sample(struct xs_pm_device *device, size_t number, uint64_t offset)
{
	struct xs_pm_sample at = { XS_PROF_HEAD(xs_pm_sample, end) };
	struct xs_prof_evaluate evaluate = { XS_PROF_HEAD(xs_prof_evaluate, values) };
	uint64_t values[XS_METRICS_MAX];
	uint8_t types[XS_METRICS_MAX];
	double counted[XS_METRICS_MAX] = { 0 };
	struct xs_own_sample sample = { .device = device->number,
					.name = device->name,
					.columns = device->columns,
					.count = (uint16_t)(device->count + XS_PM_TIMES),
					.uuid = device->uuid,
					.values = values,
					.types = types };

	at.object = device->object;
	at.image = evaluate.image = device->image;
	at.bytes = evaluate.bytes = device->image_bytes;
	at.index = evaluate.range = number;
	evaluate.object = device->host;
	evaluate.names = device->metrics;
	evaluate.count = device->count;
	evaluate.values = counted;
	if (xs_pm.PmSamplingCounterDataGetSampleInfo(&at) || at.end <= at.start ||
	    xs_pm.ProfilerHostEvaluateToGpuValues(&evaluate)) {
		device->odd++;
		return;
	}
	count_lost(device, &at);
	sample.ticks = at.start + offset;
	values[0] = at.end - at.start;
	values[1] = sample.ticks;
	memset(types, XS_VALUE_U64, XS_PM_TIMES);
	memset(types + XS_PM_TIMES, XS_VALUE_DOUBLE, device->count);
	memcpy(values + XS_PM_TIMES, counted, device->count * sizeof(*counted));
	library->sample(&sample);
}

/* When the last one ended; 0: there is none that says so. */
static uint64_t end_of(const struct xs_pm_device *device, size_t count)
{
	struct xs_pm_sample at = { XS_PROF_HEAD(xs_pm_sample, end) };

	at.object = device->object;
	at.image = device->image;
	at.bytes = device->image_bytes;
	at.index = count - 1;
	return xs_pm.PmSamplingCounterDataGetSampleInfo(&at) ? 0 : at.end;
}

/* NULL, or why the device cannot be read any more. */
static const char *record_samples(struct xs_pm_device *device)
{
	struct xs_pm_info info = { XS_PROF_HEAD(xs_pm_info, completed) };
	uint64_t offset;

	info.image = device->image;
	info.bytes = device->image_bytes;
	if (xs_pm.PmSamplingGetCounterDataInfo(&info))
		return "from now on: its samples cannot be read any more";
	if (info.completed && !clock_of_samples && !find_clock(end_of(device, info.completed)))
		return "its samples have times of a clock that is not known";
	offset = info.completed ? ahead() : 0;
	for (size_t i = 0; i < info.completed; i++)
		record_sample(device, i, offset);
	return xs_pm_empty(device) ? NULL : "from now on: its samples cannot be read any more";
}

/* The device keeps the oldest samples and makes no more until it is started anew. */
static const char *restart(struct xs_pm_device *device)
{
	struct xs_pm_object object = { XS_PROF_HEAD(xs_pm_object, object) };

	device->overflowed++;
	object.object = device->object;
	return xs_pm.PmSamplingStop(&object) || xs_pm.PmSamplingStart(&object)
		       ? "from now on: its buffer was full, and it does not start again"
		       : NULL;
}

static void read_device(struct xs_pm_device *device)
{
	const char *problem = NULL;

	for (uint32_t i = 0; i < READS_MAX && !problem; i++) {
		struct xs_pm_decode decode = { XS_PROF_HEAD(xs_pm_decode, overflow) };
		int result;

		decode.object = device->object;
		decode.image = device->image;
		decode.bytes = device->image_bytes;
		result = xs_pm.PmSamplingDecodeData(&decode);
		if (result && !decode.overflow && result != XS_CUPTI_OUT_OF_MEMORY)
			problem = "from now on: its samples cannot be read any more";
		else
			problem = record_samples(device);
		if (!problem && (decode.overflow || result))
			problem = restart(device);
		else if (decode.reason != XS_PM_IMAGE_FULL)
			break;
	}
	if (!problem)
		return;
	tell(device->number, problem);
	xs_pm_end(device);
}

bool xs_pm_read(void)
{
	bool some = false;

	for (uint32_t i = 0; i < device_count; i++) {
		if (devices[i].object)
			read_device(&devices[i]);
		some |= devices[i].object != NULL;
	}
	return some;
}

void xs_pm_close(void)
{
	for (uint32_t i = 0; i < device_count; i++) {
		struct xs_pm_device *one = &devices[i];
		struct xs_pm_object object = { XS_PROF_HEAD(xs_pm_object, object) };

		object.object = one->object;
		if (one->object)
			(void)xs_pm.PmSamplingStop(&object);
		xs_pm_end(one);
		if (one->lost || one->overflowed)
			fprintf(stderr,
				"[WARNING] %s: samples of CUDA device #%u are lost: %llu that its "
				"times show, and its buffer was full %llu times; try a longer "
				"interval (-i)\n",
				wish->option, one->number, (unsigned long long)one->lost,
				(unsigned long long)one->overflowed);
		if (one->odd)
			fprintf(stderr,
				"[WARNING] %s: %llu samples of CUDA device #%u cannot be "
				"understood\n",
				wish->option, (unsigned long long)one->odd, one->number);
	}
}
