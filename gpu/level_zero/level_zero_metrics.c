/*
 * Which groups of metrics are measured on a device, and what they consist of.
 */
#include <dlfcn.h>

#include "device_record.h"
#include "level_zero_metrics.h"
#include "metric_groups.h"
#include "shm.h"

static struct xs_spare rooms;
static _Atomic(struct xs_ze_meter *) meters; /* all of the process */

/* What the driver tells: too much for the caller's stack. */
struct room {
	struct xs_group_room groups;
	struct xs_group_functions functions;
	struct xs_chosen chosen[XS_GROUPS_MAX];
	zet_metric_properties_t metric;
	zet_metric_handle_t metrics[1024];
	char text[XS_STRING_MAX];
};

/*
 * Are these two of one library? Below the static loader the program may call functions of the
 * driver, and those for metrics be the loader's, which has objects of its own in place of handles.
 */
static bool are_of_one(const void *one, const void *other)
{
	Dl_info first, second;

	return dladdr(one, &first) && dladdr(other, &second) && first.dli_fbase == second.dli_fbase;
}

/* Those that are called without being looked for each time. */
static bool has_functions(void)
{
	return xs_ze.zetMetricGroup.pfnGet && xs_ze.zetMetricGroup.pfnGetProperties &&
	       xs_ze.zetMetric.pfnGet && xs_ze.zetMetric.pfnGetProperties &&
	       xs_ze.zetContext.pfnActivateMetricGroups && xs_ze.zetMetricQueryPool.pfnCreate &&
	       xs_ze.zetMetricQueryPool.pfnDestroy && xs_ze.zetMetricQuery.pfnCreate &&
	       xs_ze.zetMetricQuery.pfnDestroy && xs_ze.zetMetricQuery.pfnReset &&
	       xs_ze.zetMetricQuery.pfnGetData && xs_ze.zetCommandList.pfnAppendMetricQueryBegin &&
	       xs_ze.zetCommandList.pfnAppendMetricQueryEnd &&
	       (xs_ze.zetMetricGroupExp.pfnCalculateMultipleMetricValuesExp ||
		xs_ze.zetMetricGroup.pfnCalculateMetricValues) &&
	       are_of_one((void *)xs_ze.zeDevice.pfnGet, (void *)xs_ze.zetMetricGroup.pfnGet);
}

/*
 * Where there are several drivers the functions that we have are the loader's, and newer ones are
 * symbols beside them; else they are the driver's.
 */
static struct xs_newer newer_of(ze_driver_handle_t driver)
{
	struct xs_newer from = { .extension = xs_ze.zeDriver.pfnGetExtensionFunctionAddress };
	ze_driver_handle_t drivers[2];
	uint32_t count = 2;
	Dl_info of;

	if (!xs_ze.zeDriver.pfnGet(&count, drivers) && count == 1)
		from.driver = driver;
	else if (dladdr((void *)xs_ze.zetMetricGroup.pfnGet, &of))
		from.library = dlopen(of.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return from;
}

static uint32_t choose(struct room *room, ze_driver_handle_t driver, ze_device_handle_t device)
{
	const char *wanted = xs_metric_group(xs_options_of_run());
	struct xs_newer newer;
	uint32_t count;

	room->functions = (struct xs_group_functions){
		.get = xs_ze.zetMetricGroup.pfnGet,
		.properties = xs_ze.zetMetricGroup.pfnGetProperties,
		.kind = ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED
	};
	count = xs_groups_choose(&room->functions, device, wanted, &room->groups, room->chosen);
	if (count)
		return count;
	newer = newer_of(driver);
	room->functions.programmable =
		xs_programmables_find(&room->functions.programmables, &newer) &&
		xs_programmables_get(&room->functions.programmables, device,
				     room->groups.programmables);
	if (!room->functions.programmable)
		return 0;
	return xs_groups_choose(&room->functions, device, wanted, &room->groups, room->chosen);
}

/* ---- names ---- */

static bool has_line(const char *text, const char *line, size_t length)
{
	for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'))
		if (at != line && !strncmp(at, line, length) && (!at[length] || at[length] == '\n'))
			return true;
	return false;
}

#define LONGEST_METRIC (3 + XS_PATH_MAX + ZET_MAX_METRIC_NAME + 1 + ZET_MAX_METRIC_RESULT_UNITS + 1)

/*
 * The metric's line. What an earlier group has, too (each has the time that was measured), has the
 * name of its group before it.
 */
static char *put_metric(struct room *room, char *o, const char *group)
{
	zet_metric_properties_t *metric = &room->metric;
	const char *end = room->text + sizeof(room->text) - 1;
	size_t more = strlen(group) + 2;
	char *line = o;

	metric->resultUnits[sizeof(metric->resultUnits) - 1] = '\0';
	o = xs_metric_put_line(line, end, metric->name, sizeof(metric->name), metric->resultUnits);
	*o = '\0';
	if (!has_line(room->text, line, (size_t)(o - line)))
		return o;
	memmove(line + 1 + more, line + 1, (size_t)(o - line));
	memcpy(xs_metric_put(line + 1, end, group, XS_PATH_MAX), ": ", 2);
	return o + more;
}

/* The metrics of group number i, as far as there is room. */
static char *describe_group(struct room *room, struct xs_ze_meter *meter, uint32_t i, char *o)
{
	uint32_t count = sizeof(room->metrics) / sizeof(room->metrics[0]);
	struct xs_ze_metered *group = &meter->group[i];

	if (xs_ze.zetMetric.pfnGet(group->group, &count, room->metrics))
		return NULL;
	group->stride = count;
	for (; group->count < count && meter->count < XS_METRICS_MAX;
	     group->count++, meter->count++) {
		room->metric =
			(zet_metric_properties_t){ .stype = ZET_STRUCTURE_TYPE_METRIC_PROPERTIES };
		if (o + LONGEST_METRIC >= room->text + sizeof(room->text) ||
		    xs_ze.zetMetric.pfnGetProperties(room->metrics[group->count], &room->metric))
			break;
		o = put_metric(room, o, room->chosen[i].name);
	}
	return o;
}

static bool describe(struct room *room, struct xs_ze_meter *meter)
{
	char *o = xs_metric_put(room->text, room->text + XS_PATH_MAX,
				xs_metric_group(xs_options_of_run()), XS_PATH_MAX);

	*o = '\0';
	for (uint32_t i = 0; o && i < meter->groups; i++)
		o = describe_group(room, meter, i, o);
	meter->columns = o && meter->count ? xs_name(room->text, XS_METRICS_SCOPE) : 0;
	return meter->columns;
}

/* ---- a device's meter ---- */

static bool activate(const struct xs_ze_meter *meter)
{
	zet_metric_group_handle_t groups[XS_GROUPS_MAX];

	for (uint32_t i = 0; i < meter->groups; i++)
		groups[i] = meter->group[i].group;
	/* one call: the next one would end what this one began */
	return !xs_ze.zetContext.pfnActivateMetricGroups(meter->context, meter->device,
							 meter->groups, groups);
}

struct xs_ze_meter *xs_ze_meter_new(ze_driver_handle_t driver, ze_context_handle_t context,
				    ze_device_handle_t device)
{
	struct room *room = has_functions() ? xs_spare_take(&rooms, sizeof(*room)) : NULL;
	struct xs_ze_meter *meter = room ? xs_arena(sizeof(*meter)) : NULL;

	if (!meter) {
		xs_tell_unseen(has_functions() ? XS_UNSEEN_MEMORY : XS_UNSEEN_METRIC_FUNCTIONS);
		return NULL;
	}
	meter->context = context;
	meter->device = device;
	meter->groups = choose(room, driver, device);
	for (uint32_t i = 0; i < meter->groups; i++)
		meter->group[i].group = room->chosen[i].group;
	if (!meter->groups || !describe(room, meter)) {
		xs_tell_unseen(XS_UNSEEN_METRIC_GROUP);
		meter = NULL;
	} else if (!activate(meter)) {
		xs_tell_unseen(XS_UNSEEN_METRIC_ACTIVE);
		meter = NULL;
	}
	xs_spare_give(&rooms, room);
	if (meter) {
		meter->next = atomic_load(&meters);
		while (!atomic_compare_exchange_weak(&meters, &meter->next, meter))
			;
	}
	return meter;
}

static void deactivate(struct xs_ze_meter *meter)
{
	if (!atomic_exchange(&meter->theirs, true))
		(void)xs_ze.zetContext.pfnActivateMetricGroups(meter->context, meter->device, 0,
							       NULL);
}

void xs_ze_metrics_yield(ze_device_handle_t device)
{
	struct xs_ze_meter *meter = xs_ze_alive() ? atomic_load(&meters) : NULL;

	for (; meter; meter = meter->next) {
		if (meter->device != device || atomic_load(&meter->theirs))
			continue;
		xs_tell_unseen(XS_UNSEEN_METRIC_THEIRS);
		deactivate(meter);
	}
}

void xs_ze_meter_end(struct xs_ze_meter *meter)
{
	xs_ze_queries_destroy(meter);
	deactivate(meter);
}
