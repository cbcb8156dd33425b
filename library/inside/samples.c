/*
 * Samples of devices, as records: what a device has counted, and where its clock is.
 */
#include "samples.h"

#include <string.h>

#include "collector.h"
#include "device_record.h"
#include "shm.h"

#define LOOKS 3 /* at a clock; the quickest counts */

/* "0:3a:0:0" */
static uint32_t bus_name(const uint32_t bus[4])
{
	static const char digits[] = "0123456789abcdef";
	char text[4 * 9], *o = text;

	if (!(bus[0] | bus[1] | bus[2] | bus[3]))
		return 0;
	for (int i = 0; i < 4; i++) {
		int shift = 28;

		while (shift && !(bus[i] >> shift))
			shift -= 4;
		for (; shift >= 0; shift -= 4)
			*o++ = digits[bus[i] >> shift & 15];
		*o++ = ':';
	}
	o[-1] = '\0';
	return xs_name(text, 0);
}

uint32_t xs_samples_device(const struct xs_own_device *device)
{
	struct xs_device_pairs *pairs;

	if (!xs_joined())
		return 0;
	if (!device->frequency)
		return xs_name(device->name, 0);
	pairs = xs_own_device_pairs(device->number);
	if (!pairs)
		return 0;
	pairs->frequency = device->frequency;
	pairs->bits = pairs->kernel_bits = device->bits;
	return xs_name(device->name, bus_name(device->bus));
}

uint32_t xs_samples_columns(const char *text)
{
	return xs_joined() ? xs_name(text, XS_METRICS_SCOPE) : 0;
}

void xs_samples_clock(uint32_t number, bool (*read)(void *data, uint64_t *ret), void *data)
{
	struct xs_device_pairs *pairs = xs_joined() ? xs_own_device_pairs(number) : NULL;
	struct xs_device_pair best = { .before = 0, .after = UINT64_MAX };
	uint32_t count;

	for (int i = 0; pairs && i < LOOKS; i++) {
		struct xs_device_pair pair = { .before = xs_tick(xs_use_tsc) };

		if (!read(data, &pair.device))
			return;
		pair.after = xs_tick(xs_use_tsc);
		if (pair.after - pair.before < best.after - best.before)
			best = pair;
	}
	if (best.after == UINT64_MAX)
		return;
	count = atomic_load_explicit(&pairs->count, memory_order_relaxed);
	pairs->last[count % XS_DEVICE_PAIRS] = best;
	/* pairs with the acquire in the drain process */
	atomic_store_explicit(&pairs->count, count + 1, memory_order_release);
}

void xs_samples_write(const struct xs_own_sample *sample)
{
	uint32_t size = XS_METRICS_SIZE(sample->count);
	const bool cuda = sample->uuid;
	struct xs_metrics_record *record =
		xs_record_begin(size, XS_SAMPLE, cuda ? XS_SOURCE_CUDA : XS_SOURCE_LEVEL_ZERO,
				cuda ? 0 : XS_DEVICE_FLAG_TICKS, 0, XS_ROLE_OTHER);

	if (!record)
		return;
	memset((char *)record + sizeof(record->work.event), 0,
	       sizeof(*record) - sizeof(record->work.event));
	memset((char *)record + size - 16, 0, 16);
	record->work.device = (uint8_t)sample->device;
	record->work.device_name = sample->name;
	record->work.device_type = XS_DEVICE_GPU;
	record->work.work = XS_WORK_OTHER;
	record->work.start = record->work.end = sample->ticks;
	if (cuda) /* which other programs number otherwise */
		memcpy(record->work.global, sample->uuid, 2 * sizeof(*sample->uuid));
	record->columns = sample->columns;
	record->count = sample->count;
	record->part = sample->part;
	memcpy(record->value, sample->values, 8u * sample->count);
	memcpy(&record->value[sample->count], sample->types, sample->count);
	record->work.event.tick = xs_tick(xs_use_tsc);
	xs_record_end(size);
}

void xs_samples_looked(uint32_t events, const uint64_t *values)
{
	uint32_t count = (uint32_t)__builtin_popcount(events), size = XS_CPU_SIZE(count);
	struct xs_cpu_record *record;

	if (count > XS_CPU_MAX)
		return;
	record = xs_record_begin(size, XS_CPU, XS_SOURCE_NONE, XS_CPU_FLAG_ALL, events,
				 XS_ROLE_OTHER);
	if (!record)
		return;
	record->enabled = record->running = 0;
	memcpy(record->value, values, 8u * count);
	memset(&record->value[count], 0, size - sizeof(*record) - 8u * count);
	record->event.tick = xs_tick(xs_use_tsc);
	xs_record_end(size);
}
