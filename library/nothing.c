/*
 * The functions that record, where nothing is traced.
 */
#include "library.h"

static void name_only(const char *name)
{
	(void)name;
}

static void handle_only(const struct xstrace_name *name)
{
	(void)name;
}

static void nothing(void)
{
}

static void counter(const char *name, double value)
{
	(void)name, (void)value;
}

static const struct xstrace_name *no_name(const char *name)
{
	(void)name;
	return NULL;
}

static void *no_domain(void)
{
	return NULL;
}

static uint64_t count_step(void)
{
	return 0;
}

static bool step(const char *name)
{
	(void)name;
	return false;
}

static void external(uint64_t id, uint64_t user_id)
{
	(void)id, (void)user_id;
}

static void activities(const struct xs_own_list *list)
{
	(void)list;
}

static void about(const char *key, const char *text, bool json)
{
	(void)key, (void)text, (void)json;
}

static uint32_t device(const struct xs_own_device *device)
{
	(void)device;
	return 0;
}

static uint32_t columns(const char *text)
{
	(void)text;
	return 0;
}

static void device_clock(uint32_t number, bool (*read)(void *data, uint64_t *ret), void *data)
{
	(void)number, (void)read, (void)data;
}

static void sample(const struct xs_own_sample *sample)
{
	(void)sample;
}

static void looked(uint32_t events, const uint64_t *values)
{
	(void)events, (void)values;
}

const struct xs_library xs_library_nothing = {
	.version = XS_LIBRARY_VERSION,
	.range_push = name_only,
	.range_push_name = handle_only,
	.range_pop = nothing,
	.mark = name_only,
	.counter = counter,
	.name = no_name,
	.domain = no_domain,
	.count_step = count_step,
	.step = step,
	.step_end = nothing,
	.external = external,
	.thread_info = nothing,
	.stop = nothing,
	.activities = activities,
	.about = about,
	.device = device,
	.columns = columns,
	.device_clock = device_clock,
	.sample = sample,
	.looked = looked,
};
