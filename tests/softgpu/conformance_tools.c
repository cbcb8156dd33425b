/* What tools use: metrics, system management; and what tests use: faults, misuse, the log. */
#include "conformance.h"

#include <level_zero/zes_api.h>
#include <level_zero/zet_api.h>

#include <fcntl.h>

static struct ze_app app;

static void group_named(const char *name, zet_metric_group_sampling_type_flags_t sampling,
			zet_metric_group_handle_t *ret)
{
	zet_metric_group_handle_t groups[8];
	uint32_t count = 8;

	ZE_CHECK(zetMetricGroupGet((zet_device_handle_t)app.device, &count, groups));
	CHECK(count == 7);
	for (uint32_t i = 0; i < count; i++) {
		zet_metric_group_properties_t properties = {
			.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
		};

		ZE_CHECK(zetMetricGroupGetProperties(groups[i], &properties));
		if (!strcmp(properties.name, name) && properties.samplingType == sampling)
			*ret = groups[i];
	}
	ZE_CHECK(zetContextActivateMetricGroups((zet_context_handle_t)app.context,
						(zet_device_handle_t)app.device, 1, ret));
}

static void virtual_metrics(void)
{
	settings("ZET_ENABLE_METRICS", "1", "SOFTGPU_SYNC", "1", "SOFTGPU_CLOCK", "virtual",
		 "SOFTGPU_FREQUENCY", "1000000000", "SOFTGPU_DURATION_NS", "empty=4000,fill=1000",
		 NULL);
	ze_app_open(&app, 0, -1);
}

enum { COMPUTE = 11 }; /* metrics of ComputeBasic */

static void metric_names(void)
{
	const char *const expected[COMPUTE] = { "GpuTime",
						"QueryBeginTime",
						"GpuCoreClocks",
						"XVE_ACTIVE",
						"KernelLaunches",
						"WorkGroups",
						"AvgGpuCoreFrequencyMHz",
						"XVE_STALL",
						"GPU_MEMORY_BYTE_READ",
						"GPU_MEMORY_BYTE_READ_RATE",
						"ContextIdValid" };
	zet_metric_group_handle_t group;
	zet_metric_handle_t metrics[16];
	uint32_t count = 16;

	virtual_metrics();
	group_named("ComputeBasic", ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED, &group);
	ZE_CHECK(zetMetricGet(group, &count, metrics));
	CHECK(count == COMPUTE);
	for (uint32_t i = 0; i < count && i < COMPUTE; i++) {
		zet_metric_properties_t properties = {
			.stype = ZET_STRUCTURE_TYPE_METRIC_PROPERTIES
		};

		ZE_CHECK(zetMetricGetProperties(metrics[i], &properties));
		CHECK(!strcmp(properties.name, expected[i]), "%s", properties.name);
		CHECK(properties.resultUnits[0] && properties.description[0]);
	}
}

static void metrics_off(void)
{
	uint32_t count = 0;

	ze_app_open(&app, 0, -1);
	IS(zetMetricGroupGet((zet_device_handle_t)app.device, &count, NULL),
	   ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
}

/* A query around two kernels and a fill: 9 us, 8 of them in kernels. */
static void metric_query(void)
{
	zet_metric_query_pool_desc_t desc = { .stype = ZET_STRUCTURE_TYPE_METRIC_QUERY_POOL_DESC,
					      .type = ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE,
					      .count = 1 };
	const ze_group_count_t groups = { 5, 2, 1 };
	zet_metric_query_pool_handle_t pool;
	zet_metric_query_handle_t query;
	zet_metric_group_handle_t group;
	zet_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	zet_typed_value_t values[COMPUTE];
	uint8_t raw[256];
	uint32_t count = COMPUTE;
	size_t size = 0;

	virtual_metrics();
	group_named("ComputeBasic", ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED, &group);
	ZE_CHECK(zetMetricQueryPoolCreate((zet_context_handle_t)app.context,
					  (zet_device_handle_t)app.device, group, &desc, &pool));
	ZE_CHECK(zetMetricQueryCreate(pool, 0, &query));
	list = (zet_command_list_handle_t)ze_app_immediate(&app, 0, 0, true);
	kernel = ze_app_kernel(&app, "empty");
	launch((ze_command_list_handle_t)list, kernel, NULL, NULL);
	ZE_CHECK(zetCommandListAppendMetricQueryBegin(list, query));
	size = sizeof(raw);
	IS(zetMetricQueryGetData(query, &size, raw), ZE_RESULT_NOT_READY);
	ZE_CHECK(zeCommandListAppendLaunchKernel((ze_command_list_handle_t)list, kernel, &groups,
						 NULL, 0, NULL));
	launch((ze_command_list_handle_t)list, kernel, NULL, NULL);
	ZE_CHECK(zeCommandListAppendMemoryFill((ze_command_list_handle_t)list,
					       ze_app_device(&app, 8), "x", 1, 8, NULL, 0, NULL));
	ZE_CHECK(zetCommandListAppendMetricQueryEnd(list, query, NULL, 0, NULL));
	size = 0;
	ZE_CHECK(zetMetricQueryGetData(query, &size, NULL));
	CHECK(size && size <= sizeof(raw));
	ZE_CHECK(zetMetricQueryGetData(query, &size, raw));
	ZE_CHECK(zetMetricGroupCalculateMetricValues(
		group, ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES, size, raw, &count, values));
	CHECK(count == COMPUTE);
	/* the query's own begin is work as well: a microsecond */
	CHECK(values[0].value.ui64 == 10000, "%llu", (unsigned long long)values[0].value.ui64);
	CHECK(values[1].value.ui64 == 4000, "%llu", (unsigned long long)values[1].value.ui64);
	CHECK(values[3].value.fp32 == 80.f, "%g", (double)values[3].value.fp32);
	CHECK(values[4].value.ui64 == 2 && values[5].value.ui64 == 11);
	CHECK(values[6].type == ZET_VALUE_TYPE_UINT32 && values[6].value.ui32 == 1000);
	CHECK(values[7].type == ZET_VALUE_TYPE_FLOAT32 && values[7].value.fp32 == 20.f);
	CHECK(values[8].value.ui64 == 704);
	CHECK(values[9].type == ZET_VALUE_TYPE_FLOAT64 && values[9].value.fp64 == 0.0704);
	CHECK(values[10].type == ZET_VALUE_TYPE_BOOL8 && values[10].value.b8);
	ZE_CHECK(zetMetricQueryReset(query));
	IS(zetMetricQueryGetData(query, &size, raw), ZE_RESULT_NOT_READY);
	ZE_CHECK(zetMetricQueryDestroy(query));
	ZE_CHECK(zetMetricQueryPoolDestroy(pool));
}

static zet_metric_streamer_handle_t streamer_open(zet_metric_group_handle_t group, uint32_t period,
						  uint32_t notify, ze_event_handle_t event)
{
	zet_metric_streamer_desc_t desc = { .stype = ZET_STRUCTURE_TYPE_METRIC_STREAMER_DESC,
					    .notifyEveryNReports = notify,
					    .samplingPeriod = period };
	zet_metric_streamer_handle_t streamer;

	ZE_CHECK(zetMetricStreamerOpen((zet_context_handle_t)app.context,
				       (zet_device_handle_t)app.device, group, &desc, event,
				       &streamer));
	return streamer;
}

/* What is sampled while a kernel of 4 us runs, a fill of 1 us, and the kernel again. */
static size_t sampled(zet_metric_streamer_handle_t streamer, ze_kernel_handle_t kernel,
		      uint8_t *raw, size_t size)
{
	ze_command_list_handle_t list = ze_app_immediate(&app, 0, 0, true);

	launch(list, kernel, NULL, NULL);
	ZE_CHECK(zeCommandListAppendMemoryFill(list, ze_app_device(&app, 8), "x", 1, 8, NULL, 0,
					       NULL));
	launch(list, kernel, NULL, NULL);
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	ZE_CHECK(zetMetricStreamerReadData(streamer, 100, &size, raw));
	return size;
}

/* Samples of 3 us: all of it in kernels, two thirds, all of it. */
static void metric_streamer(void)
{
	const float expected[3] = { 100.f, 66.666664f, 100.f };
	zet_metric_streamer_handle_t streamer;
	zet_metric_group_handle_t group;
	zet_typed_value_t values[64];
	uint32_t sets = 0, total = 0, counts[4];
	uint8_t raw[4096];
	size_t size;

	virtual_metrics();
	group_named("ComputeBasic", ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED, &group);
	streamer = streamer_open(group, 3000, 0, NULL);
	size = sampled(streamer, ze_app_kernel(&app, "empty"), raw, sizeof(raw));
	ZE_CHECK(zetMetricGroupCalculateMultipleMetricValuesExp(
		group, ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES, size, raw, &sets, &total,
		NULL, NULL));
	CHECK(sets == 1 && total == 3 * COMPUTE, "%u %u", sets, total);
	if (total != 3 * COMPUTE)
		return;
	ZE_CHECK(zetMetricGroupCalculateMultipleMetricValuesExp(
		group, ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES, size, raw, &sets, &total,
		counts, values));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(values[i * COMPUTE].value.ui64 == 3000 &&
		      values[i * COMPUTE + 1].value.ui64 == i * 3000);
		CHECK(values[i * COMPUTE + 3].value.fp32 == expected[i], "%g",
		      (double)values[i * COMPUTE + 3].value.fp32);
		CHECK(values[i * COMPUTE + 4].value.ui64 == (i != 0),
		      "launches end in their sample");
	}
	ZE_CHECK(zetMetricStreamerClose(streamer));
}

static void stall_samples(void)
{
	zet_metric_streamer_handle_t streamer;
	zet_metric_group_handle_t group;
	ze_kernel_handle_t kernel;
	zet_typed_value_t values[100];
	uint32_t sets = 0, total = 100, counts[4];
	uint64_t base, sum = 0;
	uint8_t raw[4096];
	size_t size;

	virtual_metrics();
	group_named("EuStallSampling", ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED, &group);
	streamer = streamer_open(group, 1000, 0, NULL);
	kernel = ze_app_kernel(&app, "empty");
	ZE_CHECK(((__typeof__(&zexKernelGetBaseAddress))
			  ze_app_function(&app, "zexKernelGetBaseAddress"))(kernel, &base));
	size = sampled(streamer, kernel, raw, sizeof(raw));
	ZE_CHECK(zetMetricGroupCalculateMultipleMetricValuesExp(
		group, ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES, size, raw, &sets, &total,
		counts, values));
	CHECK(total == 80, "8 of 9 samples are in a kernel: %u", total / 10);
	for (uint32_t i = 0; i < total; i++) {
		if (i % 10 == 0)
			CHECK(values[i].value.ui64 << 3 >= (base & 0xffffffff) &&
			      values[i].value.ui64 << 3 < (base & 0xffffffff) + 64);
		else
			sum += values[i].value.ui64;
	}
	CHECK(sum == 8);
	ZE_CHECK(zetMetricStreamerClose(streamer));
}

/*
 * By the real clock: the event tells that there are reports, and what they add up to is what the
 * kernel took.
 */
static void streamer_event(void)
{
	zet_metric_streamer_handle_t streamer;
	zet_metric_group_handle_t group;
	ze_command_list_handle_t list;
	zet_typed_value_t values[COMPUTE * 64];
	ze_event_handle_t event;
	ze_kernel_handle_t spin;
	uint32_t total = COMPUTE * 64;
	uint8_t raw[64 * 64];
	double active = 0;
	size_t size = sizeof(raw);

	settings("ZET_ENABLE_METRICS", "1", "SOFTGPU_SYNC", "1", NULL);
	ze_app_open(&app, 0, -1);
	group_named("ComputeBasic", ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED, &group);
	event = ze_app_event(ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false), 0);
	list = ze_app_immediate(&app, 0, 0, true);
	spin = ze_app_kernel(&app, "spin");
	spin_for(spin, 3000);
	streamer = streamer_open(group, 1000000, 5, event);
	launch(list, spin, NULL, NULL);
	ZE_CHECK(zeEventHostSynchronize(event, 5000000000u));
	(void)usleep(3000); /* and whole periods after the end as well */
	ZE_CHECK(zetMetricStreamerReadData(streamer, UINT32_MAX, &size, raw));
	ZE_CHECK(zetMetricGroupCalculateMetricValues(
		group, ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES, size, raw, &total, values));
	CHECK(total >= 5 * COMPUTE, "%u", total);
	for (uint32_t i = 0; i < total / COMPUTE; i++)
		active += (double)values[i * COMPUTE + 3].value.fp32 / 100;
	CHECK(active >= 2.999, "%g ms", active);
	ZE_CHECK(zetMetricStreamerClose(streamer));
}

static void sysman(void)
{
	zes_device_properties_t properties = { .stype = ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES };
	zes_mem_state_t state = { .stype = ZES_STRUCTURE_TYPE_MEM_STATE };
	zes_power_energy_counter_t energy[2];
	zes_freq_state_t frequency = { .stype = ZES_STRUCTURE_TYPE_FREQ_STATE };
	zes_engine_stats_t load;
	zes_mem_handle_t memory;
	zes_freq_handle_t clocks;
	zes_pwr_handle_t power;
	zes_temp_handle_t sensor;
	zes_engine_handle_t engine;
	zes_device_handle_t device;
	uint32_t count = 1;
	double degrees;
	uint64_t before;
	void *pointer;

	settings("ZES_ENABLE_SYSMAN", "1", NULL);
	virtual_metrics();
	device = (zes_device_handle_t)app.device;
	ZE_CHECK(zesDeviceGetProperties(device, &properties));
	CHECK(!strcmp(properties.core.name, "SoftGPU 0"));
	ZE_CHECK(zesDeviceEnumMemoryModules(device, &count, &memory));
	ZE_CHECK(zesMemoryGetState(memory, &state));
	before = state.free;
	pointer = ze_app_device(&app, 100000);
	ZE_CHECK(zesMemoryGetState(memory, &state));
	CHECK(before - state.free == 102400 && state.size == 16ull << 30);
	ZE_CHECK(zeMemFree(app.context, pointer));
	ZE_CHECK(zesDeviceEnumPowerDomains(device, &count, &power));
	ZE_CHECK(zesPowerGetEnergyCounter(power, &energy[0]));
	launch(ze_app_immediate(&app, 0, 0, false), ze_app_kernel(&app, "empty"), NULL, NULL);
	ZE_CHECK(zesPowerGetEnergyCounter(power, &energy[1]));
	CHECK(energy[1].energy - energy[0].energy == 4 * 250, "4 us at 250 W: %llu uJ",
	      (unsigned long long)(energy[1].energy - energy[0].energy));
	ZE_CHECK(zesDeviceEnumFrequencyDomains(device, &count, &clocks));
	ZE_CHECK(zesFrequencyGetState(clocks, &frequency));
	CHECK(frequency.actual == 1000);
	ZE_CHECK(zesDeviceEnumTemperatureSensors(device, &count, &sensor));
	ZE_CHECK(zesTemperatureGetState(sensor, &degrees));
	CHECK(degrees == 40);
	ZE_CHECK(zesDeviceEnumEngineGroups(device, &count, &engine));
	ZE_CHECK(zesEngineGetActivity(engine, &load));
	CHECK(load.activeTime == 4);
}

static void fault_calls(void)
{
	ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
	const ze_group_count_t one = { 1, 1, 1 };
	ze_command_list_handle_t list;
	ze_kernel_handle_t kernel;
	void *pointer;

	settings("SOFTGPU_FAULT", "zeMemAllocHost:2:out_of_host_memory,append:3:0x70000003", NULL);
	ze_app_open(&app, 0, -1);
	IS(zeMemAllocHost(app.context, &desc, 64, 0, &pointer), ZE_RESULT_SUCCESS);
	IS(zeMemAllocHost(app.context, &desc, 64, 0, &pointer), ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
	IS(zeMemAllocHost(app.context, &desc, 64, 0, &pointer), ZE_RESULT_SUCCESS);
	list = ze_app_immediate(&app, 0, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	launch(list, kernel, NULL, NULL);
	ZE_CHECK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
	IS(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL),
	   ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
	launch(list, kernel, NULL, NULL);
}

static void fault_events(void)
{
	ze_command_list_handle_t list;
	ze_event_pool_handle_t pool;
	ze_kernel_handle_t kernel;
	ze_event_handle_t e[4];

	settings("SOFTGPU_FAULT", "never:1,hold:2,late:4:20000", "SOFTGPU_SYNC", "1", NULL);
	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, false);
	pool = ze_app_pool(&app, 4, TIMED, false);
	kernel = ze_app_kernel(&app, "empty");
	for (uint32_t i = 0; i < 4; i++)
		e[i] = ze_app_event(pool, i);
	launch(list, kernel, e[0], NULL);
	launch(list, kernel, e[1], NULL);
	IS(zeEventQueryStatus(e[0]), ZE_RESULT_NOT_READY);
	IS(zeEventQueryStatus(e[1]), ZE_RESULT_NOT_READY);
	launch(list, kernel, e[2], NULL);
	IS(zeEventQueryStatus(e[0]), ZE_RESULT_NOT_READY);
	IS(zeEventQueryStatus(e[1]), ZE_RESULT_SUCCESS);
	IS(zeEventQueryStatus(e[2]), ZE_RESULT_SUCCESS);
	CHECK(times_of(e[1]).kernelEnd <= times_of(e[2]).kernelStart);
	launch(list, kernel, e[3], NULL);
	IS(zeEventQueryStatus(e[3]), ZE_RESULT_SUCCESS);
	CHECK(times_of(e[3]).kernelEnd - times_of(e[3]).kernelStart < 19200 * 20);
}

static void fault_lost(void)
{
	const ze_group_count_t one = { 1, 1, 1 };
	ze_command_list_handle_t list;
	ze_event_pool_handle_t pool;
	ze_kernel_handle_t kernel;
	ze_event_handle_t e[2];

	settings("SOFTGPU_FAULT", "lost:1", NULL);
	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, false);
	pool = ze_app_pool(&app, 2, TIMED, false);
	kernel = ze_app_kernel(&app, "empty");
	for (uint32_t i = 0; i < 2; i++)
		e[i] = ze_app_event(pool, i);
	launch(list, kernel, e[0], NULL);
	while (zeDeviceGetStatus(app.device) == ZE_RESULT_SUCCESS)
		(void)usleep(100);
	IS(zeDeviceGetStatus(app.device), ZE_RESULT_ERROR_DEVICE_LOST);
	IS(zeCommandListAppendLaunchKernel(list, kernel, &one, e[1], 0, NULL),
	   ZE_RESULT_ERROR_DEVICE_LOST);
	IS(zeEventHostSynchronize(e[1], UINT64_MAX), ZE_RESULT_ERROR_DEVICE_LOST);
	IS(zeEventQueryStatus(e[1]), ZE_RESULT_ERROR_DEVICE_LOST);
	ZE_CHECK(zeCommandListDestroy(list));
}

static char *log_read(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = '\0';
	(void)close(fd);
	return text;
}

static const char *log_path(void)
{
	static char path[64];

	(void)snprintf(path, sizeof(path), "%s/softgpu-log-%d", P_tmpdir, (int)getpid());
	settings("SOFTGPU_LOG", path, NULL);
	return path;
}

static void the_log(void)
{
	const char *path = log_path(), *line;
	const ze_group_count_t groups = { 3, 2, 1 };
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t list;
	unsigned long long seq, bytes, start, end, host[2], execution;
	ze_kernel_handle_t kernel;
	char kind[32], name[64], group[32], size[32];
	int pid, device, tile, lines = 0;
	unsigned ordinal, index;
	void *of[2];

	settings("SOFTGPU_TILES", "2", NULL);
	virtual_metrics();
	queue = ze_app_queue(&app, 0, 2);
	list = ze_app_list(&app, 0, false);
	kernel = ze_app_kernel(&app, "empty");
	ZE_CHECK(zeKernelSetGroupSize(kernel, 8, 4, 1));
	ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &groups, NULL, 0, NULL));
	ZE_CHECK(zeCommandListAppendMemoryFill(list, ze_app_device(&app, 80), "x", 1, 77, NULL, 0,
					       NULL));
	ZE_CHECK(zeCommandListClose(list));
	execute(queue, list);
	execute(queue, list);
	ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
	line = strchr(log_read(path), '\n');
	for (; line && line[1]; line = strchr(line + 1, '\n'), lines++) {
		int n = sscanf(line,
			       "%llu %d %d %d %u %u %31s %63s %llu %31s %31s %llu %llu %llu %llu "
			       "%p %p %llu",
			       &seq, &pid, &device, &tile, &ordinal, &index, kind, name, &bytes,
			       group, size, &start, &end, &host[0], &host[1], &of[0], &of[1],
			       &execution);

		CHECK(n == 18, "%d fields", n);
		CHECK(pid == getpid() && device == 0 && tile == -1 && ordinal == 0 && index == 2);
		CHECK(of[0] == queue && of[1] == list && host[0] <= host[1]);
		CHECK(seq == (unsigned)lines + 1 && execution == (unsigned)lines / 2 + 1);
		if (lines % 2)
			CHECK(!strcmp(kind, "fill") && bytes == 77 && !strcmp(group, "-") &&
			      end - start == 1000);
		else
			CHECK(!strcmp(name, "empty") && !strcmp(group, "3,2,1") &&
			      !strcmp(size, "8,4,1") && end - start == 4000);
	}
	CHECK(lines == 4, "%d", lines);
	(void)unlink(path);
}

static void misuse(void)
{
	const char *path = log_path();
	ze_command_queue_handle_t queue;
	ze_command_list_handle_t list;
	ze_event_pool_handle_t pool;
	ze_event_handle_t event;

	ze_app_open(&app, 0, -1);
	queue = ze_app_queue(&app, 0, 0);
	list = ze_app_list(&app, 0, false);
	pool = ze_app_pool(&app, 1, TIMED, false);
	event = ze_app_event(pool, 0);
	launch(list, ze_app_kernel(&app, "empty"), NULL, event);
	ZE_CHECK(zeCommandListClose(list));
	execute(queue, list);
	CHECK(!strstr(log_read(path), "misuse"));
	ZE_CHECK(zeCommandListReset(list));
	CHECK(strstr(log_read(path),
		     "a command list is reset with 1 of its commands on their way"));
	ZE_CHECK(zeModuleDestroy(app.module));
	CHECK(strstr(log_read(path), "a module is destroyed before 1 of its kernels"));
	(void)unlink(path);
	_exit(tap_failures > 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("metrics and their names", metric_names);
	tap_run("no metrics unless asked for", metrics_off);
	tap_run("a metric query", metric_query);
	tap_run("a metric streamer", metric_streamer);
	tap_run("stall samples", stall_samples);
	tap_run("a streamer's event, by the real clock", streamer_event);
	tap_run("system management", sysman);
	tap_run("calls that are made to fail", fault_calls);
	tap_run("events late, out of order, never", fault_events);
	tap_run("a lost device", fault_lost);
	tap_run("the log", the_log);
	tap_run("misuse is told", misuse);
	return tap_done();
}
