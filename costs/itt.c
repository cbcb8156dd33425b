/*
 * ITT's entry points, called as a program's static ittnotify calls them: through pointers.
 */
#include "probes.h"

#include "itt.h"
#include "task_record.h"

void __itt_frame_begin_v3(const __itt_domain *domain, __itt_id *id);
void __itt_frame_end_v3(const __itt_domain *domain, __itt_id *id);
void __itt_marker(const __itt_domain *domain, __itt_id id, __itt_string_handle *name, int scope);
void __itt_task_end(const __itt_domain *domain);
void __itt_metadata_add(const __itt_domain *domain, __itt_id id, __itt_string_handle *key, int type,
			size_t count, void *data);
void *__itt_counter_create(const char *name, const char *domain);
void __itt_counter_inc(__itt_counter_info *counter);
__itt_domain *__itt_domain_create(const char *name);
__itt_string_handle *__itt_string_handle_create(const char *name);

static const __itt_id no_id;

/* As a program has them in its static ittnotify. */
static struct {
	void (*task_begin)(const __itt_domain *, __itt_id, __itt_id, __itt_string_handle *);
	void (*task_end)(const __itt_domain *);
	void (*frame_begin)(const __itt_domain *, __itt_id *);
	void (*frame_end)(const __itt_domain *, __itt_id *);
	void (*metadata)(const __itt_domain *, __itt_id, __itt_string_handle *, int, size_t,
			 void *);
	void (*marker)(const __itt_domain *, __itt_id, __itt_string_handle *, int);
	void (*increase)(__itt_counter_info *);
} volatile itt = {
	__itt_task_begin,   __itt_task_end, __itt_frame_begin_v3, __itt_frame_end_v3,
	__itt_metadata_add, __itt_marker,   __itt_counter_inc,
};
static __itt_domain *domain;
static __itt_string_handle *name;
static __itt_counter_info *counter;

static void prepare(void)
{
	/* wanted by every option that wants tasks: -r alone counts those of such domains */
	domain = __itt_domain_create("oneCCL");
	name = __itt_string_handle_create("task");
	counter = __itt_counter_create("counter", "oneCCL");
}

/* Begins and ends in turn, each of which ends with the reading of its clock's value. */
static uint64_t between(const unsigned char *data, uint32_t count)
{
	uint64_t ticks = 0, begin = 0;

	while (count) {
		const struct xs_event *event = (const void *)data;

		if (event->kind == XS_BEGIN || event->kind == XS_OPEN) {
			begin = event->tick;
		} else if (event->kind == XS_END || event->kind == XS_CLOSE) {
			ticks += event->tick - begin;
			count--;
		}
		data += event->words * 8u;
		if (!event->words)
			return 0;
	}
	return ticks;
}

static void task(void)
{
	itt.task_begin(domain, no_id, no_id, name);
	itt.task_end(domain);
}
const struct xs_probe xs_probe_task = { prepare, task, between };

static void span(void)
{
	itt.frame_begin(domain, NULL);
	itt.frame_end(domain, NULL);
}
const struct xs_probe xs_probe_span = { prepare, span, between };

static void metadata(void)
{
	uint64_t value = 1;

	itt.metadata(domain, no_id, name, XS_VALUE_U64, 1, &value);
}
const struct xs_probe xs_probe_metadata = { prepare, metadata, NULL };

static void mark(void)
{
	itt.marker(domain, no_id, name, ITT_SCOPE_TASK);
}
const struct xs_probe xs_probe_mark = { prepare, mark, NULL };

static void count(void)
{
	itt.increase(counter);
}
const struct xs_probe xs_probe_counter = { prepare, count, NULL };
