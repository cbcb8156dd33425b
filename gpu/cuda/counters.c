/*
 * The counters of a context: CUPTI's host and range profilers.
 */
#include <dlfcn.h>
#include <string.h>

#include "device_record.h"
#include "metric_sets.h"
#include "metric_text.h"
#include "options.h"
#include "profiler.h"
#include "shm.h"
#include "spare.h"

struct xs_prof xs_prof;

/* False: this libcupti does not have all of the functions. */
static bool open_profiler(void)
{
	bool complete = xs_cupti.library;

#define TAKE(name, type, last, theirs, member)                                    \
	if (complete)                                                             \
		*(void **)&xs_prof.name = dlsym(xs_cupti.library, "cupti" #name); \
	complete = complete && xs_prof.name;
	XS_PROF_CALLS(TAKE)
#undef TAKE
	return complete;
}

/* ---- names ---- */

/* What is too large for the caller's stack. */
struct room {
	char text[XS_STRING_MAX];
	double values[XS_METRICS_MAX + 1];
};
static struct xs_spare rooms;

/* "\ndram__bytes.sum[byte]"; false: CUPTI does not know it on this GPU. */
static bool put_metric(const struct xs_counters *counters, const char *name, char **o,
		       const char *end)
{
	struct xs_prof_properties p = { XS_PROF_HEAD(xs_prof_properties, type) };

	p.object = counters->host;
	p.name = name;
	if (xs_prof.ProfilerHostGetMetricProperties(&p))
		return false;
	*o = xs_metric_put_line(*o, end, name, XS_PATH_MAX, p.unit);
	return true;
}

/* CUPTI tells no other times of a kernel that it counts: this is counted with any others. */
static void take_time(struct xs_counters *counters)
{
	static const char name[] = "gpu__time_duration.sum";
	struct xs_prof_properties p = { XS_PROF_HEAD(xs_prof_properties, type) };

	p.object = counters->host;
	p.name = name;
	counters->all = counters->count;
	for (counters->time = 0; counters->time < counters->count; counters->time++)
		if (!strcmp(counters->metrics[counters->time], name))
			return;
	if (xs_prof.ProfilerHostGetMetricProperties(&p))
		counters->time = UINT32_MAX;
	else
		counters->metrics[counters->all++] = name;
}

/* The wanted metrics of the group; their names stay where they are. */
static bool take_metrics(struct xs_counters *counters, struct room *room)
{
	const char *group = xs_metric_group(xs_options_of_run());
	char *names = xs_arena(XS_METRIC_NAMES), *o, *end = room->text + sizeof(room->text) - 1;

	if (!names || !xs_metric_names(group, false, names))
		return false;
	o = xs_metric_put(room->text, end, xs_metrics_named(group) ? "metrics" : group,
			  XS_PATH_MAX);
	for (char *at = names; at && counters->count < XS_METRICS_MAX;) {
		char *stop = strchr(at, ',');

		if (stop)
			*stop++ = '\0';
		if (put_metric(counters, at, &o, end))
			counters->metrics[counters->count++] = at;
		else if (xs_metrics_named(group)) /* of a group of ours not each GPU has all */
			return false;
		at = stop;
	}
	if (!counters->count)
		return false;
	take_time(counters);
	*o = '\0';
	counters->columns = o < end ? xs_name(room->text, XS_METRICS_SCOPE) : 0;
	return counters->columns;
}

/* ---- making ---- */

static const char *chip_of(CUcontext context)
{
	struct xs_prof_chip chip = { XS_PROF_HEAD(xs_prof_chip, name) };
	uint32_t device = 0;

	if (!xs_cupti.GetDeviceId || xs_cupti.GetDeviceId(context, &device))
		return NULL;
	chip.device = device;
	return xs_prof.DeviceGetChipName(&chip) ? NULL : chip.name;
}

static bool make_host(struct xs_counters *counters, CUcontext context)
{
	struct xs_prof_initialize initialize = { XS_PROF_HEAD(xs_prof_initialize, head) };
	struct xs_prof_host host = { XS_PROF_HEAD(xs_prof_host, object) };

	if (xs_prof.ProfilerInitialize(&initialize))
		return false;
	host.type = XS_PROF_RANGES;
	host.chip = chip_of(context);
	if (!host.chip || xs_prof.ProfilerHostInitialize(&host))
		return false;
	counters->host = host.object;
	return true;
}

/* Memory stays, for the next context in this one's place. */
static bool make_room(uint8_t **memory, size_t *room, size_t bytes)
{
	if (*room < bytes) {
		*memory = xs_arena(bytes);
		*room = *memory ? bytes : 0;
	}
	return *room;
}

/* Which counters of the hardware the metrics need. */
static bool make_config(struct xs_counters *counters)
{
	struct xs_prof_add add = { XS_PROF_HEAD(xs_prof_add, count) };
	struct xs_prof_config_size size = { XS_PROF_HEAD(xs_prof_config_size, bytes) };
	struct xs_prof_config config = { XS_PROF_HEAD(xs_prof_config, image) };

	add.object = size.object = config.object = counters->host;
	add.names = counters->metrics;
	add.count = counters->all;
	if (xs_prof.ProfilerHostConfigAddMetrics(&add) ||
	    xs_prof.ProfilerHostGetConfigImageSize(&size) ||
	    !make_room(&counters->config, &counters->config_room, size.bytes))
		return false;
	config.bytes = counters->config_bytes = size.bytes;
	config.image = counters->config;
	return !xs_prof.ProfilerHostGetConfigImage(&config);
}

/* Where CUPTI puts what was counted. */
static bool make_image(struct xs_counters *counters, CUcontext context)
{
	struct xs_prof_enable enable = { XS_PROF_HEAD(xs_prof_enable, object) };
	struct xs_prof_data_size size = { XS_PROF_HEAD(xs_prof_data_size, bytes) };

	enable.context = context;
	if (xs_prof.RangeProfilerEnable(&enable))
		return false;
	counters->object = size.object = enable.object;
	size.names = counters->metrics;
	size.count = counters->all;
	size.ranges = size.nodes = counters->ranges;
	if (xs_prof.RangeProfilerGetCounterDataSize(&size))
		return false;
	counters->image_bytes = size.bytes;
	return make_room(&counters->image, &counters->image_room, size.bytes);
}

void xs_counters_end(struct xs_counters *counters)
{
	struct xs_prof_object object = { XS_PROF_HEAD(xs_prof_object, object) };
	struct xs_prof_host_end host = { XS_PROF_HEAD(xs_prof_host_end, object) };

	object.object = counters->object;
	host.object = counters->host;
	if (counters->object)
		(void)xs_prof.RangeProfilerDisable(&object);
	if (counters->host)
		(void)xs_prof.ProfilerHostDeinitialize(&host);
	counters->object = counters->host = NULL;
}

bool xs_counters_make(struct xs_counters *counters, CUcontext context, uint32_t ranges)
{
	bool complete = open_profiler();
	struct room *room = complete ? xs_spare_take(&rooms, sizeof(*room)) : NULL;
	enum xs_unseen why = XS_UNSEEN_METRIC_ACTIVE;
	bool made = false;

	counters->ranges = ranges;
	counters->count = 0;
	if (!room)
		why = complete ? XS_UNSEEN_MEMORY : XS_UNSEEN_METRIC_CUPTI;
	else if (!make_host(counters, context))
		why = XS_UNSEEN_METRIC_CUPTI;
	else if (!take_metrics(counters, room) || !make_config(counters))
		why = XS_UNSEEN_METRIC_GROUP;
	else
		made = make_image(counters, context);
	if (room)
		xs_spare_give(&rooms, room);
	if (made)
		return true;
	xs_tell_unseen(why);
	xs_counters_end(counters);
	return false;
}

/* ---- using ---- */

bool xs_counters_start(struct xs_counters *counters)
{
	struct xs_prof_data data = { XS_PROF_HEAD(xs_prof_data, image) };
	struct xs_prof_set set = { XS_PROF_HEAD(xs_prof_set, level) };
	struct xs_prof_object object = { XS_PROF_HEAD(xs_prof_object, object) };

	data.object = set.object = object.object = counters->object;
	data.bytes = set.bytes = counters->image_bytes;
	data.image = set.image = counters->image;
	set.config_bytes = counters->config_bytes;
	set.config = counters->config;
	set.range = XS_PROF_AUTO_RANGE;
	set.replay = XS_PROF_KERNEL_REPLAY;
	set.ranges = counters->ranges;
	set.levels = set.least_level = set.level = 1;
	return !xs_prof.RangeProfilerCounterDataImageInitialize(&data) &&
	       !xs_prof.RangeProfilerSetConfig(&set) && !xs_prof.RangeProfilerStart(&object);
}

uint32_t xs_counters_stop(struct xs_counters *counters)
{
	struct xs_prof_stop stop = { XS_PROF_HEAD(xs_prof_stop, all_submitted) };
	struct xs_prof_decode decode = { XS_PROF_HEAD(xs_prof_decode, dropped) };
	struct xs_prof_info info = { XS_PROF_HEAD(xs_prof_info, ranges) };

	stop.object = decode.object = counters->object;
	info.image = counters->image;
	info.bytes = counters->image_bytes;
	if (xs_prof.RangeProfilerStop(&stop) || xs_prof.RangeProfilerDecodeData(&decode) ||
	    decode.dropped || xs_prof.RangeProfilerGetCounterDataInfo(&info) ||
	    info.ranges > counters->ranges)
		return UINT32_MAX;
	return (uint32_t)info.ranges;
}

static bool write_values(const struct xs_counters *counters, uint32_t correlation,
			 const double *values)
{
	uint32_t size = XS_COUNTED_SIZE(counters->count);
	double ns = counters->time < counters->all ? values[counters->time] : 0;
	struct xs_counted_record *record = xs_record_begin(size, XS_COUNTED, XS_SOURCE_CUDA, 0,
							   counters->columns, XS_ROLE_OTHER);

	if (!record)
		return false;
	memset((char *)record + size - 16, 0, 16);
	record->event.tick = xs_tick(true);
	record->correlation = correlation;
	record->count = (uint16_t)counters->count;
	record->part = 0;
	record->ns = ns >= 1 && ns < 1e15 ? (uint64_t)ns : 0;
	memcpy(record->value, values, counters->count * sizeof(*values));
	xs_record_end(size);
	return true;
}

bool xs_counters_write(const struct xs_counters *counters, uint32_t range, uint32_t correlation)
{
	struct xs_prof_evaluate evaluate = { XS_PROF_HEAD(xs_prof_evaluate, values) };
	struct room *room = xs_spare_take(&rooms, sizeof(*room));
	bool written;

	if (!room)
		return false;
	evaluate.object = counters->host;
	evaluate.image = counters->image;
	evaluate.bytes = counters->image_bytes;
	evaluate.range = range;
	evaluate.names = (const char **)counters->metrics;
	evaluate.count = counters->all;
	evaluate.values = room->values;
	written = !xs_prof.ProfilerHostEvaluateToGpuValues(&evaluate) &&
		  write_values(counters, correlation, room->values);
	xs_spare_give(&rooms, room);
	return written;
}
