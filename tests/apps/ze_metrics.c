/*
 * A program that uses the hardware's counters itself: ze_metrics N launches N kernels, chooses a
 * group, launches N more, of which it measures the last one, and prints how many it has counted.
 * ze_metrics N wait: launches N kernels, each of which waits 20 ms for the host.
 */
#include "ze_app.h"

#include <level_zero/zet_api.h>

#include <string.h>
#include <unistd.h>

static zet_metric_group_handle_t group_of(const struct ze_app *app)
{
	zet_metric_group_handle_t groups[16];
	uint32_t count = 16;

	ZE_CHECK(zetMetricGroupGet(app->device, &count, groups));
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_group_properties_t properties = {
			.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
		};

		ZE_CHECK(zetMetricGroupGetProperties(groups[i], &properties));
		if (properties.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED)
			return groups[i];
	}
	exit(1);
}

static void launch(const struct ze_app *app, ze_command_list_handle_t list,
		   ze_kernel_handle_t kernel, int count)
{
	const ze_group_count_t one = { 1, 1, 1 };

	for (int i = 0; i < count; i++)
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(app, list, UINT64_MAX));
}

static int launch_late(const struct ze_app *app, ze_command_list_handle_t list,
		       ze_kernel_handle_t kernel, int count)
{
	ze_event_pool_handle_t pool = ze_app_pool(app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	ze_event_handle_t event = ze_app_event(pool, 0);
	const ze_group_count_t one = { 1, 1, 1 };

	for (int i = 0; i < count; i++) {
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 1, &event));
		(void)usleep(20000);
		ZE_CHECK(zeEventHostSignal(event));
		ZE_CHECK(ze_app_list_sync(app, list, UINT64_MAX));
		ZE_CHECK(zeEventHostReset(event));
	}
	return 0;
}

int main(int argc, char **argv)
{
	zet_metric_query_pool_desc_t desc = { .stype = ZET_STRUCTURE_TYPE_METRIC_QUERY_POOL_DESC,
					      .type = ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE,
					      .count = 1 };
	int count = argc > 1 ? atoi(argv[1]) : 1;
	zet_typed_value_t values[64];
	zet_metric_query_pool_handle_t pool;
	zet_metric_query_handle_t query;
	zet_metric_group_handle_t group;
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	uint8_t raw[4096];
	size_t size = sizeof(raw);
	uint32_t total = 64;
	struct ze_app app;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, true);
	kernel = ze_app_kernel(&app, "empty");
	if (argc > 2 && !strcmp(argv[2], "wait"))
		return launch_late(&app, list, kernel, count);
	launch(&app, list, kernel, count);
	group = group_of(&app);
	ZE_CHECK(zetContextActivateMetricGroups(app.context, app.device, 1, &group));
	launch(&app, list, kernel, count - 1);
	ZE_CHECK(zetMetricQueryPoolCreate(app.context, app.device, group, &desc, &pool));
	ZE_CHECK(zetMetricQueryCreate(pool, 0, &query));
	ZE_CHECK(zetCommandListAppendMetricQueryBegin(list, query));
	launch(&app, list, kernel, 1);
	ZE_CHECK(zetCommandListAppendMetricQueryEnd(list, query, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	ZE_CHECK(zetMetricQueryGetData(query, &size, raw));
	ZE_CHECK(zetMetricGroupCalculateMetricValues(
		group, ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES, size, raw, &total, values));
	printf("counted %llu launches\n", (unsigned long long)values[4].value.ui64);
	ZE_CHECK(zetMetricQueryDestroy(query));
	ZE_CHECK(zetMetricQueryPoolDestroy(pool));
	return 0;
}
