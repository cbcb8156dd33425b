/*
 * Which counters a device of CUDA samples, and how often.
 *
 * CUPTI samples what the hardware can count at once, in one pass. Of a group of ours that needs
 * more, or has metrics that the GPU does not know, each metric is sampled that can be beside those
 * before it; what the user names is sampled as a whole or not at all.
 */
#include "pm_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_record.h"
#include "metric_sets.h"
#include "metric_text.h"
#include "options.h"
#include "strtab.h"

#define SAMPLES	    1024u /* that are decoded at once */
#define BUFFER	    (256u << 20)
#define BUFFER_LESS (16u << 20)

void xs_pm_end(struct xs_pm_device *device)
{
	struct xs_pm_object object = { XS_PROF_HEAD(xs_pm_object, object) };
	struct xs_prof_host_end host = { XS_PROF_HEAD(xs_prof_host_end, object) };

	object.object = device->object;
	host.object = device->host;
	if (device->object)
		(void)xs_pm.PmSamplingDisable(&object);
	if (device->host)
		(void)xs_pm.ProfilerHostDeinitialize(&host);
	device->object = device->host = NULL;
	free(device->config);
	free(device->image);
	device->config = device->image = NULL;
}

/* ---- metrics ---- */

/* Without it all counters are taken for available: then configuring says what is not. */
static uint8_t *availability_of(uint32_t number, int *ret_result)
{
	struct xs_pm_availability told = { XS_PROF_HEAD(xs_pm_availability, image) };

	told.device = number;
	*ret_result = xs_pm.PmSamplingGetCounterAvailability(&told);
	if (*ret_result || !told.bytes)
		return NULL;
	told.image = malloc(told.bytes);
	if (told.image)
		*ret_result = xs_pm.PmSamplingGetCounterAvailability(&told);
	if (*ret_result) {
		free(told.image);
		told.image = NULL;
	}
	return told.image;
}

static bool make_host(struct xs_pm_device *device, const char *chip, const uint8_t *availability)
{
	struct xs_prof_host_end end = { XS_PROF_HEAD(xs_prof_host_end, object) };
	struct xs_prof_host host = { XS_PROF_HEAD(xs_prof_host, object) };

	end.object = device->host;
	if (device->host)
		(void)xs_pm.ProfilerHostDeinitialize(&end);
	host.type = XS_PROF_PM_SAMPLING;
	host.chip = chip;
	host.availability = availability;
	device->host = xs_pm.ProfilerHostInitialize(&host) ? NULL : host.object;
	return device->host;
}

/* What is added by one call is counted together; another call's metrics take another pass. */
static bool add(const struct xs_pm_device *device, const char **names, size_t count)
{
	struct xs_prof_add added = { XS_PROF_HEAD(xs_prof_add, count) };

	added.object = device->host;
	added.names = names;
	added.count = count;
	return !xs_pm.ProfilerHostConfigAddMetrics(&added);
}

static bool has(const struct xs_pm_device *device, const char *name)
{
	struct xs_prof_properties known = { XS_PROF_HEAD(xs_prof_properties, type) };

	known.object = device->host;
	known.name = name;
	return !xs_pm.ProfilerHostGetMetricProperties(&known) && add(device, &name, 1);
}

static bool make_config(struct xs_pm_device *device, size_t *ret_passes)
{
	struct xs_prof_config_size size = { XS_PROF_HEAD(xs_prof_config_size, bytes) };
	struct xs_prof_config config = { XS_PROF_HEAD(xs_prof_config, image) };
	struct xs_pm_passes passes = { XS_PROF_HEAD(xs_pm_passes, passes) };

	size.object = config.object = device->host;
	free(device->config);
	device->config = xs_pm.ProfilerHostGetConfigImageSize(&size) ? NULL : malloc(size.bytes);
	config.bytes = passes.bytes = device->config_bytes = size.bytes;
	config.image = passes.image = device->config;
	if (!device->config || xs_pm.ProfilerHostGetConfigImage(&config) ||
	    xs_pm.ProfilerHostGetNumOfPasses(&passes))
		return false;
	*ret_passes = passes.passes;
	return true;
}

/* Those of `names`, which becomes their text, that the chip has. Returns one that it does not. */
static const char *split(struct xs_pm_device *device, char *names)
{
	const char *missing = NULL;

	for (char *at = names; at && device->count < XS_METRICS_MAX - XS_PM_TIMES;) {
		char *stop = strchr(at, ',');

		if (stop)
			*stop++ = '\0';
		if (has(device, at))
			device->metrics[device->count++] = at;
		else
			missing = at;
		at = stop;
	}
	return missing;
}

/* Gets the host's side ready for those metrics. NULL, or what is wrong. */
static const char *try(struct xs_pm_device *device, const char *chip, const uint8_t *availability,
		       size_t *ret_passes)
{
	/* a host that refused a metric, or has too many, is not used again */
	if (!make_host(device, chip, availability))
		return "CUPTI's profiler does not know its chip";
	if (!add(device, device->metrics, device->count))
		return "CUPTI's profiler refuses the metrics";
	if (!make_config(device, ret_passes))
		return "CUPTI's profiler cannot schedule the metrics";
	return NULL;
}

/* Keeps those that can be counted at once, in the order in which they were named. */
static void keep_fitting(struct xs_pm_device *device, const char *chip, const uint8_t *availability)
{
	uint32_t wanted = device->count;
	size_t passes = 0;

	device->count = 0;
	for (uint32_t i = 0; i < wanted; i++) {
		device->metrics[device->count++] = device->metrics[i];
		if (try(device, chip, availability, &passes) || passes > 1)
			device->count--;
	}
}

static const char *tell_fitting(const struct xs_pm_device *device)
{
	static char why[XS_METRIC_NAMES + 128];
	size_t n = (size_t)snprintf(why, sizeof(why),
				    "these metrics cannot be counted at once; name fewer by "
				    "--group, these can: ");

	for (uint32_t i = 0; i < device->count; i++)
		n += (size_t)snprintf(why + n, sizeof(why) - n, "%s%s", i ? "," : "",
				      device->metrics[i]);
	return why;
}

/* NULL, or what is wrong. */
static const char *choose(struct xs_pm_device *device, const char *chip,
			  const uint8_t *availability, const char *group)
{
	char *names = malloc(XS_METRIC_NAMES); /* as long as the program lives */
	const char *missing, *problem;
	bool whole = xs_metrics_named(group);
	static char why[XS_PATH_MAX + 64];
	size_t passes = 0;
	uint32_t wanted;

	if (!names || !xs_metric_names(group, true, names))
		return "CUDA has no such group of metrics, see xstrace --metric-list";
	missing = split(device, names);
	if (missing && whole) {
		(void)snprintf(why, sizeof(why), "it has no metric %s that can be sampled",
			       missing);
		return why;
	}
	wanted = device->count;
	problem = wanted ? try(device, chip, availability, &passes) : NULL;
	if (problem && whole)
		return problem;
	if (problem || passes > 1) {
		keep_fitting(device, chip, availability);
		if (whole)
			return tell_fitting(device);
	}
	if (!device->count || try(device, chip, availability, &passes))
		return "it has no metric of this group that can be sampled";
	if (missing || wanted != device->count)
		fprintf(stderr,
			"[WARNING] --metric-sampling: CUDA device #%u samples %u metrics of the "
			"group %s: the others it does not have, or not at once\n",
			device->number, device->count, group);
	return NULL;
}

/* The group's name, the times, and the metrics with their units. */
static bool describe(struct xs_pm_device *device, const struct xs_library *library,
		     const char *group)
{
	static char text[XS_STRING_MAX];
	char *end = text + sizeof(text) - 1,
	     *o = xs_metric_put(text, end, xs_metrics_named(group) ? "metrics" : group,
				XS_PATH_MAX);

	o = xs_metric_put_line(o, end, "GpuTime", XS_PATH_MAX, "ns");
	o = xs_metric_put_line(o, end, "QueryBeginTime", XS_PATH_MAX, "ns");
	for (uint32_t i = 0; i < device->count; i++) {
		struct xs_prof_properties p = { XS_PROF_HEAD(xs_prof_properties, type) };

		p.object = device->host;
		p.name = device->metrics[i];
		if (xs_pm.ProfilerHostGetMetricProperties(&p))
			return false;
		o = xs_metric_put_line(o, end, p.name, XS_PATH_MAX, p.unit);
	}
	*o = '\0';
	device->columns = o < end ? library->columns(text) : 0;
	return device->columns;
}

/* ---- the device ---- */

static int configure(const struct xs_pm_device *device, uint64_t interval)
{
	struct xs_pm_config config = { XS_PROF_HEAD(xs_pm_config, append) };
	int result;

	config.object = device->object;
	config.config = device->config;
	config.config_bytes = device->config_bytes;
	config.append = XS_PM_KEEP_OLDEST;
	/* a device may have less room */
	for (config.buffer = BUFFER; config.buffer >= BUFFER_LESS; config.buffer /= 2) {
		config.trigger = XS_PM_BY_NS;
		config.interval = interval;
		result = xs_pm.PmSamplingSetConfig(&config);
		if (!result)
			break;
		/* Turing and GA100 count cycles: of 1.5 GHz, the samples say how long they were */
		config.trigger = XS_PM_BY_CYCLES;
		config.interval = interval * 3 / 2;
		result = xs_pm.PmSamplingSetConfig(&config);
		if (!result)
			break;
	}
	return result;
}

bool xs_pm_empty(const struct xs_pm_device *device)
{
	struct xs_pm_data data = { XS_PROF_HEAD(xs_pm_data, image) };

	data.object = device->object;
	data.bytes = device->image_bytes;
	data.image = device->image;
	return !xs_pm.PmSamplingCounterDataImageInitialize(&data);
}

static bool make_image(struct xs_pm_device *device)
{
	struct xs_pm_data_size size = { XS_PROF_HEAD(xs_pm_data_size, bytes) };

	size.object = device->object;
	size.names = device->metrics;
	size.count = device->count;
	size.samples = SAMPLES;
	if (xs_pm.PmSamplingGetCounterDataSize(&size))
		return false;
	device->image_bytes = size.bytes;
	device->image = malloc(size.bytes);
	return device->image && xs_pm_empty(device);
}

const char *xs_pm_setup(struct xs_pm_device *device, const struct xs_wish *wish,
			const struct xs_library *library)
{
	struct xs_prof_chip chip = { XS_PROF_HEAD(xs_prof_chip, name) };
	struct xs_pm_enable enable = { XS_PROF_HEAD(xs_pm_enable, object) };
	const char *problem = NULL;
	uint8_t *availability;
	int result = 0;

	chip.device = enable.device = device->number;
	if (xs_pm.DeviceGetChipName(&chip) || !chip.name)
		return "CUPTI's profiler does not know it";
	availability = availability_of(device->number, &result);
	if (result == XS_CUPTI_INSUFFICIENT_PRIVILEGES)
		problem = xs_pm_why(result, "");
	else if (!make_host(device, chip.name, availability))
		problem = "CUPTI's profiler does not know its chip";
	else
		problem = choose(device, chip.name, availability, wish->group);
	free(availability);
	if (problem)
		return problem;
	if (!describe(device, library, wish->group))
		return "its metrics have no room";
	result = xs_pm.PmSamplingEnable(&enable);
	if (result)
		return xs_pm_why(result, "CUPTI does not begin: another tool may sample it");
	device->object = enable.object;
	result = configure(device, wish->interval);
	if (result)
		return xs_pm_why(result, "CUPTI refuses the interval (-i) or the metrics");
	return make_image(device) ? NULL : "there is no memory";
}
