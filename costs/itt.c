/*
 * ITT's entry points, called as a program's static ittnotify calls them: through pointers.
 */
#include "probes.h"

#include "itt.h"
#include "record.h"

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

static __itt_domain *domain(void)
{
	/* wanted by every option that wants tasks: -r alone counts those of such domains */
	return __itt_domain_create("oneCCL");
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

static void many_tasks(uint32_t count)
{
	void (*volatile begin)(const __itt_domain *, __itt_id, __itt_id, __itt_string_handle *) =
		__itt_task_begin;
	void (*volatile end)(const __itt_domain *) = __itt_task_end;
	__itt_string_handle *name = __itt_string_handle_create("task");
	__itt_domain *of = domain();

	while (count--) {
		begin(of, no_id, no_id, name);
		end(of);
	}
}
const struct xs_probe xs_probe_task = { many_tasks, between };

static void many_spans(uint32_t count)
{
	void (*volatile begin)(const __itt_domain *, __itt_id *) = __itt_frame_begin_v3;
	void (*volatile end)(const __itt_domain *, __itt_id *) = __itt_frame_end_v3;
	__itt_domain *of = domain();

	while (count--) {
		begin(of, NULL);
		end(of, NULL);
	}
}
const struct xs_probe xs_probe_span = { many_spans, between };

static void many_values(uint32_t count)
{
	void (*volatile add)(const __itt_domain *, __itt_id, __itt_string_handle *, int, size_t,
			     void *) = __itt_metadata_add;
	__itt_string_handle *key = __itt_string_handle_create("key");
	__itt_domain *of = domain();
	uint64_t value = 1;

	while (count--)
		add(of, no_id, key, XS_VALUE_U64, 1, &value);
}
const struct xs_probe xs_probe_metadata = { many_values, NULL };

static void many_marks(uint32_t count)
{
	void (*volatile mark)(const __itt_domain *, __itt_id, __itt_string_handle *, int) =
		__itt_marker;
	__itt_string_handle *name = __itt_string_handle_create("mark");
	__itt_domain *of = domain();

	while (count--)
		mark(of, no_id, name, ITT_SCOPE_TASK);
}
const struct xs_probe xs_probe_mark = { many_marks, NULL };

static void many_counts(uint32_t count)
{
	void (*volatile step)(__itt_counter_info *) = __itt_counter_inc;
	__itt_counter_info *counter = __itt_counter_create("counter", "oneCCL");

	while (count--)
		step(counter);
}
const struct xs_probe xs_probe_counter = { many_counts, NULL };
