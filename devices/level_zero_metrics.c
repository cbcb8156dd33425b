/*
 * Level Zero's metrics: what groups there are, and which of them a device counts at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"

#ifdef XS_HAVE_LEVEL_ZERO
#include "device_record.h"
#include "level_zero.h"
#include "metric_groups.h"

#define MAX XS_LEVEL_ZERO_MAX

static bool is_for(uint32_t kinds, bool sampling)
{
	return kinds & (sampling ? ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED
				 : ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED);
}

static const char *kind_of(uint32_t kinds)
{
	bool query = is_for(kinds, false), sampling = is_for(kinds, true);

	return query && sampling ? "query, sampling" : query ? "query" : sampling ? "sampling" : "";
}

static void print_group(uint32_t device, zet_metric_group_handle_t group)
{
	zet_metric_group_properties_t properties = {
		.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
	};
	zet_metric_handle_t *metrics;
	uint32_t count = 0;

	if (xs_level_zero.zetMetricGroupGetProperties(group, &properties) != ZE_RESULT_SUCCESS ||
	    xs_level_zero.zetMetricGet(group, &count, NULL) != ZE_RESULT_SUCCESS)
		return;
	printf("Device #%u, group %s (%s; domain %u): %s\n", device, properties.name,
	       kind_of(properties.samplingType), properties.domain, properties.description);
	metrics = calloc(count + 1, sizeof(*metrics));
	if (!metrics || xs_level_zero.zetMetricGet(group, &count, metrics) != ZE_RESULT_SUCCESS)
		count = 0;
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_properties_t metric = { .stype = ZET_STRUCTURE_TYPE_METRIC_PROPERTIES };

		if (xs_level_zero.zetMetricGetProperties(metrics[i], &metric) == ZE_RESULT_SUCCESS)
			printf("  %s%s%s%s: %s\n", metric.name, metric.resultUnits[0] ? " [" : "",
			       metric.resultUnits, metric.resultUnits[0] ? "]" : "",
			       metric.description);
	}
	free(metrics);
}

void xs_want_metrics(void)
{
	(void)setenv("ZET_ENABLE_METRICS", "1", 1);
}

static const char *open_metrics(void)
{
	const char *missing = xs_level_zero_open();

	if (!missing &&
	    (!xs_level_zero.zetMetricGroupGet || !xs_level_zero.zetMetricGroupGetProperties ||
	     !xs_level_zero.zetMetricGet || !xs_level_zero.zetMetricGetProperties))
		missing = "its loader knows nothing of metrics";
	return missing;
}

/* ---- programmable metrics ---- */

typedef void programmable_t(void *data, uint32_t device, const struct xs_programmable *metric,
			    const struct xs_parameter *parameters, uint32_t count);

static void each_programmable(programmable_t *tell, void *data)
{
	struct xs_parameter parameters[XS_PARAMETERS_MAX];
	void *all[XS_PROGRAMMABLES_MAX];
	struct xs_programmables functions;
	ze_device_handle_t devices[MAX];
	ze_driver_handle_t drivers[2];
	struct xs_programmable metric;
	struct xs_newer newer;
	uint32_t count = 2, parameter_count;

	if (xs_level_zero.zeDriverGet(&count, drivers) != ZE_RESULT_SUCCESS || !count)
		return;
	newer = xs_newer_of(xs_level_zero.library, count == 1 ? drivers[0] : NULL);
	if (!xs_programmables_find(&functions, &newer))
		return;
	count = xs_level_zero_devices(devices);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = xs_programmables_get(&functions, devices[i], all);

		for (uint32_t k = 0; k < n; k++)
			if (xs_programmable_tell(&functions, all[k], &metric, parameters,
						 &parameter_count))
				tell(data, i, &metric, parameters, parameter_count);
	}
}

static void print_programmable(void *data, uint32_t device, const struct xs_programmable *metric,
			       const struct xs_parameter *parameters, uint32_t count)
{
	char text[32];

	(void)data;
	printf("Device #%u, programmable metric %s", device, metric->name);
	for (uint32_t i = 0; i < count; i++)
		printf(":%s=%s", parameters[i].name,
		       xs_parameter_text(parameters[i].value_type, &parameters[i].standard, text));
	printf(" (%s): %s\n", kind_of(metric->sampling), metric->description);
}

struct told {
	xs_metric_group_t *tell;
	void *data;
};

static void tell_programmable(void *data, uint32_t device, const struct xs_programmable *metric,
			      const struct xs_parameter *parameters, uint32_t count)
{
	const struct told *told = data;

	(void)device, (void)parameters, (void)count;
	told->tell(told->data, metric->name, 1, is_for(metric->sampling, false),
		   is_for(metric->sampling, true));
}

const char *xs_each_metric_group(xs_metric_group_t *tell, void *data)
{
	ze_device_handle_t devices[MAX];
	uint32_t count;
	const char *missing = open_metrics();

	if (missing)
		return missing;
	count = xs_level_zero_devices(devices);
	if (!count)
		return "it has no device";
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_group_handle_t groups[512];
		uint32_t n = 512;

		if (xs_level_zero.zetMetricGroupGet(devices[i], &n, groups) != ZE_RESULT_SUCCESS) {
			missing = "its driver does not tell of metrics";
			continue;
		}
		for (uint32_t k = 0; k < n && k < 512; k++) {
			zet_metric_group_properties_t group = {
				.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
			};

			if (xs_level_zero.zetMetricGroupGetProperties(groups[k], &group) !=
			    ZE_RESULT_SUCCESS)
				continue;
			group.name[sizeof(group.name) - 1] = '\0';
			if (!tell)
				return NULL;
			tell(data, group.name, group.metricCount, is_for(group.samplingType, false),
			     is_for(group.samplingType, true));
		}
	}
	each_programmable(tell_programmable, &(struct told){ tell, data });
	return missing;
}

/* ---- groups that are wished for ---- */

typedef ze_result_t concurrent_t(zet_device_handle_t, uint32_t, zet_metric_group_handle_t *,
				 uint32_t *, uint32_t *); /* of zet_api.h 1.11 */

/* The groups of a device, in sets that it counts at once. */
struct wished {
	struct xs_chosen chosen[XS_GROUPS_MAX];
	uint32_t domain[XS_GROUPS_MAX], set[XS_GROUPS_MAX];
	uint32_t count, sets, metrics;
};

static bool any_twice(const struct wished *wished)
{
	for (uint32_t i = 0; i < wished->count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (wished->chosen[i].group == wished->chosen[k].group)
				return true;
	return false;
}

/* As the driver says it, which puts the groups in the order of their sets. */
static bool ask_sets(struct wished *wished, ze_device_handle_t device, concurrent_t *concurrent)
{
	zet_metric_group_handle_t groups[XS_GROUPS_MAX];
	uint32_t counts[XS_GROUPS_MAX], sets = 0, at = 0;

	for (uint32_t i = 0; i < wished->count; i++)
		groups[i] = wished->chosen[i].group;
	if (!concurrent ||
	    concurrent(device, wished->count, groups, NULL, &sets) != ZE_RESULT_SUCCESS || !sets ||
	    sets > XS_GROUPS_MAX ||
	    concurrent(device, wished->count, groups, counts, &sets) != ZE_RESULT_SUCCESS)
		return false;
	wished->sets = sets;
	for (uint32_t set = 0; set < sets; set++)
		for (uint32_t n = 0; n < counts[set] && at < wished->count; n++, at++)
			for (uint32_t i = 0; i < wished->count; i++)
				if (wished->chosen[i].group == groups[at])
					wished->set[i] = set;
	return true;
}

/* Older drivers do not say it: then groups of one domain exclude each other. */
static void guess_sets(struct wished *wished)
{
	wished->sets = 0;
	for (uint32_t i = 0; i < wished->count; i++) {
		wished->set[i] = 0;
		for (uint32_t k = 0; k < i; k++)
			if (wished->domain[i] == wished->domain[k] &&
			    wished->set[i] <= wished->set[k])
				wished->set[i] = wished->set[k] + 1;
		if (wished->set[i] >= wished->sets)
			wished->sets = wished->set[i] + 1;
	}
}

static bool choose(struct wished *wished, const struct xs_group_functions *functions,
		   ze_device_handle_t device, const char *groups, struct xs_group_room *room)
{
	*wished = (struct wished){ .count = 0 };
	wished->count = xs_groups_choose(functions, device, groups, room, wished->chosen);
	for (uint32_t i = 0; i < wished->count; i++)
		if (xs_group_tell(functions, wished->chosen[i].group, room)) {
			wished->domain[i] = room->group.domain;
			wished->metrics += room->group.metricCount;
		}
	return wished->count;
}

static void put_sets(const struct wished *wished, char *text, size_t size)
{
	size_t n = 0;

	if (wished->sets == wished->count) {
		(void)snprintf(text, size, "no two of them go together");
		return;
	}
	n = (size_t)snprintf(text, size, "these go together: ");
	for (uint32_t set = 0; set < wished->sets; set++) {
		const char *between = set ? "; or " : "";

		for (uint32_t i = 0; i < wished->count && n < size; i++) {
			if (wished->set[i] != set)
				continue;
			n += (size_t)snprintf(text + n, size - n, "%s%s", between,
					      wished->chosen[i].name);
			between = ",";
		}
	}
}

static const char *problem_of(const struct wished *wished, const char *groups, bool sampling,
			      char *text, size_t size)
{
	char sets[2 * XS_PATH_MAX];

	if (wished->sets > 1) {
		put_sets(wished, sets, sizeof(sets));
		(void)snprintf(text, size, "no device %s the metric groups %s at once; %s",
			       sampling ? "samples" : "counts", groups, sets);
		return text;
	}
	if (sampling || wished->count < 2 || wished->metrics <= XS_METRICS_MAX)
		return NULL;
	(void)snprintf(text, size,
		       "the metric groups %s have %u metrics together, %u at most can be counted; "
		       "name fewer by --group",
		       groups, wished->metrics, XS_METRICS_MAX);
	return text;
}

const char *xs_groups_problem(const char *groups, bool sampling, char *text, size_t size)
{
	ze_driver_handle_t drivers[2];
	ze_device_handle_t devices[MAX];
	struct xs_group_functions functions = { .get = xs_level_zero.zetMetricGroupGet,
						.properties =
							xs_level_zero.zetMetricGroupGetProperties };
	static struct xs_group_room room;
	struct wished wished = { .count = 0 };
	concurrent_t *concurrent;
	struct xs_newer newer;
	const char *problem = NULL;
	uint32_t count = 2;

	if (xs_level_zero.zeDriverGet(&count, drivers) != ZE_RESULT_SUCCESS || !count)
		return NULL;
	newer = xs_newer_of(xs_level_zero.library, count == 1 ? drivers[0] : NULL);
	functions.kind = sampling ? ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED
				  : ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED;
	functions.programmable = xs_programmables_find(&functions.programmables, &newer);
	*(void **)&concurrent = xs_newer_function(&newer, "zetDeviceGetConcurrentMetricGroupsExp");
	count = xs_level_zero_devices(devices);
	for (uint32_t i = 0; i < count; i++) {
		if (!choose(&wished, &functions, devices[i], groups, &room)) {
			/* what another device says is nearer to the wish */
			problem = problem ? problem : xs_groups_why(&room, text, size);
			continue;
		}
		if (any_twice(&wished) || !ask_sets(&wished, devices[i], concurrent))
			guess_sets(&wished);
		problem = problem_of(&wished, groups, sampling, text, size);
		if (!problem)
			break;
	}
	return problem;
}

bool xs_print_metrics(void)
{
	ze_device_handle_t devices[MAX];
	uint32_t count, groups = 0;
	const char *missing = open_metrics();

	if (missing) {
		printf("No metrics: Level Zero tells of none, %s\n", missing);
		return false;
	}
	count = xs_level_zero_devices(devices);
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_group_handle_t *list;
		uint32_t n = 0;

		if (xs_level_zero.zetMetricGroupGet(devices[i], &n, NULL) != ZE_RESULT_SUCCESS ||
		    !n)
			continue;
		list = calloc(n, sizeof(*list));
		if (list &&
		    xs_level_zero.zetMetricGroupGet(devices[i], &n, list) == ZE_RESULT_SUCCESS)
			for (uint32_t k = 0; k < n; k++)
				print_group(i, list[k]);
		free(list);
		groups += n;
	}
	each_programmable(print_programmable, NULL);
	if (!groups)
		printf("No metrics: %s\n",
		       count ? "the Level Zero driver has none for its devices; on a GPU, their "
			       "library (libigdmd) may be missing, or "
			       "the right to read them (sysctl dev.i915.perf_stream_paranoid=0, or "
			       "root)"
			     : "Level Zero has no device");
	return groups;
}

#else
void xs_want_metrics(void)
{
}

const char *xs_each_metric_group(xs_metric_group_t *tell, void *data)
{
	(void)tell, (void)data;
	return "this xstrace was built without it";
}

const char *xs_groups_problem(const char *groups, bool sampling, char *text, size_t size)
{
	(void)groups, (void)sampling, (void)text, (void)size;
	return NULL;
}

bool xs_print_metrics(void)
{
	puts("No metrics: this xstrace was built without Level Zero");
	return false;
}
#endif
