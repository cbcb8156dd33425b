/*
 * Which group of metrics is measured on a device, and what it consists of.
 */
#include <dlfcn.h>

#include "level_zero_metrics.h"
#include "metric_text.h"
#include "options.h"
#include "shm.h"

static struct xs_spare rooms;
static _Atomic(struct xs_ze_meter *) meters; /* all of the process */

/* What the driver tells: too much for the caller's stack. */
struct room {
	zet_metric_group_properties_t group;
	zet_metric_properties_t metric;
	zet_metric_group_handle_t groups[512];
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

static zet_metric_group_handle_t find_group(struct room *room, ze_device_handle_t device,
					    const char *wanted)
{
	uint32_t count = sizeof(room->groups) / sizeof(room->groups[0]);

	if (xs_ze.zetMetricGroup.pfnGet(device, &count, room->groups))
		return NULL;
	for (uint32_t i = 0; i < count && i < sizeof(room->groups) / sizeof(room->groups[0]); i++) {
		room->group = (zet_metric_group_properties_t){
			.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
		};
		if (!xs_ze.zetMetricGroup.pfnGetProperties(room->groups[i], &room->group) &&
		    room->group.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED &&
		    !strncmp(room->group.name, wanted, sizeof(room->group.name)))
			return room->groups[i];
	}
	return NULL;
}

#define LONGEST_METRIC (1 + ZET_MAX_METRIC_NAME + 1 + ZET_MAX_METRIC_RESULT_UNITS + 1)

static bool describe(struct room *room, struct xs_ze_meter *meter)
{
	uint32_t count = sizeof(room->metrics) / sizeof(room->metrics[0]);
	char *end = room->text + sizeof(room->text) - 1;
	char *o = xs_metric_put(room->text, end, room->group.name, sizeof(room->group.name));

	if (xs_ze.zetMetric.pfnGet(meter->group, &count, room->metrics))
		return false;
	for (; meter->count < count && meter->count < XS_METRICS_MAX; meter->count++) {
		room->metric =
			(zet_metric_properties_t){ .stype = ZET_STRUCTURE_TYPE_METRIC_PROPERTIES };
		if (o + LONGEST_METRIC >= room->text + sizeof(room->text) ||
		    xs_ze.zetMetric.pfnGetProperties(room->metrics[meter->count], &room->metric))
			break;
		room->metric.resultUnits[sizeof(room->metric.resultUnits) - 1] = '\0';
		o = xs_metric_put_line(o, end, room->metric.name, sizeof(room->metric.name),
				       room->metric.resultUnits);
	}
	*o = '\0';
	meter->columns = meter->count ? xs_name(room->text, XS_METRICS_SCOPE) : 0;
	return meter->columns;
}

struct xs_ze_meter *xs_ze_meter_new(ze_context_handle_t context, ze_device_handle_t device)
{
	struct room *room = has_functions() ? xs_spare_take(&rooms, sizeof(*room)) : NULL;
	struct xs_ze_meter *meter = room ? xs_arena(sizeof(*meter)) : NULL;

	if (!meter) {
		xs_tell_unseen(has_functions() ? XS_UNSEEN_MEMORY : XS_UNSEEN_METRIC_FUNCTIONS);
		return NULL;
	}
	meter->context = context;
	meter->device = device;
	meter->group = find_group(room, device, xs_metric_group(xs_options_of_run()));
	if (!meter->group || !describe(room, meter)) {
		xs_tell_unseen(XS_UNSEEN_METRIC_GROUP);
		meter = NULL;
	} else if (xs_ze.zetContext.pfnActivateMetricGroups(context, device, 1, &meter->group)) {
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
