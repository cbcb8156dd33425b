/*
 * What happens at a moment or has a value: markers, marks, events, counters, histograms.
 */
#include "itt.h"

#include <string.h>

#include "strtab.h"
#include "task_record.h"

static const struct xs_id null_id;

static uint8_t extent_of(int scope)
{
	return scope == ITT_SCOPE_GLOBAL	? XS_SCOPE_GLOBAL
	       : scope == ITT_SCOPE_TRACK_GROUP ? XS_SCOPE_PROCESS
						: XS_SCOPE_THREAD;
}

/* ---- markers and marks ---- */

EXPORT void __itt_marker_ex(const __itt_domain *domain, __itt_clock_domain *clock,
			    unsigned long long time, __itt_id id, __itt_string_handle *handle,
			    int scope)
{
	if (!itt_enabled(domain))
		return;
	if (xs_recording())
		itt_write(XS_INSTANT, extent_of(scope),
			  itt_name_in((__itt_domain *)domain, handle)->id, itt_id(id),
			  clock ? itt_tick_of(clock, time) : 0);
	if (xs_watching()) /* last: a dump that this triggers has the marker */
		xs_watch_marker(itt_domain_text(domain), itt_handle_text(handle));
}

EXPORT void __itt_marker(const __itt_domain *domain, __itt_id id, __itt_string_handle *handle,
			 int scope)
{
	__itt_marker_ex(domain, NULL, 0, id, handle, scope);
}

/* Marks and events are numbers for the client: their names by number, from 1. */
#define NUMBERS 65536u
struct number {
	_Atomic(const char *) name;
	_Atomic uint32_t id;
};
XS_TABLE(all_numbers, NUMBERS * sizeof(struct number));
static _Atomic uint32_t numbers;

/* NULL: no number of ours, or there is no memory. */
static struct number *number_at(int number)
{
	struct number *all = number > 0 && number < (int)NUMBERS ? xs_table(&all_numbers) : NULL;

	return all ? &all[number] : NULL;
}

static void init_number(void *payload, const char *name)
{
	uint32_t number = atomic_fetch_add(&numbers, 1) + 1;
	struct number *place = number < NUMBERS ? number_at((int)number) : NULL;

	if (place)
		atomic_store_explicit(&place->name, name, memory_order_release);
	else
		number = 1; /* there are more than the table has names */
	*(int *)payload = (int)number;
}
ITT_TABLE(numbered, NUMBERS, int, init_number);

static int number_of(const char *name, int length)
{
	int *number =
		name ? itt_object_of(&numbered, name, length > 0 ? (size_t)length : XS_STRING_MAX)
		     : NULL;

	return number ? *number : 0;
}

#define UNWANTED UINT32_MAX
/*
 * Interned name of a number that we gave out, UNWANTED when the options leave it out; 0 of another.
 */
static uint32_t id_of_number(int number)
{
	struct number *place = number_at(number);
	const char *name;
	uint32_t id;

	if (!place)
		return 0;
	id = atomic_load_explicit(&place->id, memory_order_acquire);
	if (!id) {
		name = atomic_load_explicit(&place->name, memory_order_acquire);
		id = !name ? 0 : itt_wanted(name) ? xs_name(name, 0) : UNWANTED;
		atomic_store_explicit(&place->id, id, memory_order_release);
	}
	return id;
}

EXPORT int __itt_mark_create(const char *name)
{
	return number_of(name, 0);
}

static int mark(int number, const char *parameter, bool off, uint8_t scope)
{
	struct number *place = xs_watching() ? number_at(number) : NULL;
	struct itt_args args;
	uint32_t one = 1, name;

	if (place && place->name)
		xs_watch_marker("", place->name);
	if (!itt_recording())
		return 0;
	name = id_of_number(number);
	if (!name)
		return -1;
	if (name == UNWANTED)
		return 0;
	if (!itt_args_begin(&args, XS_INSTANT, scope, name, null_id))
		return 0;
	itt_arg_text(&args, "parameter", parameter);
	if (off)
		itt_arg(&args, xs_name("off", 0), XS_VALUE_U32, &one, 1);
	itt_args_end(&args, 0);
	return 0;
}

EXPORT int __itt_mark(int number, const char *parameter)
{
	return mark(number, parameter, false, XS_SCOPE_THREAD);
}

EXPORT int __itt_mark_off(int number)
{
	return mark(number, NULL, true, XS_SCOPE_THREAD);
}

EXPORT int __itt_mark_global(int number, const char *parameter)
{
	return mark(number, parameter, false, XS_SCOPE_GLOBAL);
}

EXPORT int __itt_mark_global_off(int number)
{
	return mark(number, NULL, true, XS_SCOPE_GLOBAL);
}

EXPORT int __itt_event_create(const char *name, int length)
{
	return number_of(name, length);
}

static __attribute__((noinline)) int event_long(int number, uint8_t kind)
{
	struct xs_event *record;
	uint64_t tick;
	uint32_t id;

	if (xs_paused())
		return 0;
	tick = xs_tick(xs_use_tsc);
	if (!xs_recording())
		return 0;
	id = id_of_number(number);
	if (!id || id == UNWANTED)
		return id ? 0 : -1;
	record = xs_record_begin(sizeof(*record), kind, XS_SOURCE_ITT, 0, id, XS_ROLE_OTHER);
	if (!record)
		return 0;
	record->tick = kind == XS_EVENT_END ? tick : xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
	return 0;
}

static inline int event(int number, uint8_t kind)
{
	struct number *place = number_at(number);
	uint32_t id = place ? atomic_load_explicit(&place->id, memory_order_acquire) : 0;

	if (id && id != UNWANTED && xs_mark(kind, XS_SOURCE_ITT, id))
		return 0;
	return event_long(number, kind);
}

EXPORT int __itt_event_start(int number)
{
	return event(number, XS_EVENT_BEGIN);
}

EXPORT int __itt_event_end(int number)
{
	return event(number, XS_EVENT_END);
}

/* ---- counters ---- */

/*
 * What belongs to a name; the objects that clients hold, also those of a static part that had not
 * found us yet, lead to it.
 */
struct counter {
	_Atomic uint64_t value; /* of counter_inc and its like */
	_Atomic uint32_t id;
	_Atomic uint32_t type; /* enum xs_value_type, as ITT's */
	const char *name;      /* with its domain */
	__itt_counter_info public;
};

/*
 * In `index`: extra2 is ours. The static part sets index to 0 in an object that it makes itself,
 * before it has found us, and leaves extra2 as malloc gave it.
 */
#define KNOWN 0x58537463l

static void init_counter(void *payload, const char *name)
{
	struct counter *counter = payload;

	counter->type = XS_VALUE_U64;
	counter->name = counter->public.nameA = name;
	counter->public.extra2 = counter;
	counter->public.index = KNOWN;
}
ITT_TABLE(counters, 65536, struct counter, init_counter);

static __itt_counter_info *make_counter(const char *name, const char *domain, int type)
{
	struct counter *counter = itt_object_in(&counters, domain, name);

	if (!counter)
		return NULL;
	if (type > 0 && type <= XS_VALUE_DOUBLE)
		atomic_store_explicit(&counter->type, (uint32_t)type, memory_order_relaxed);
	return &counter->public;
}

static struct counter *counter_of(__itt_counter_info *info)
{
	const __itt_counter_info *own;

	if (!info)
		return NULL;
	/* pairs with the release below: extra2 is set */
	if (__builtin_expect(__atomic_load_n(&info->index, __ATOMIC_ACQUIRE) != KNOWN, 0)) {
		own = make_counter(info->nameA, info->domainA, info->type);
		if (!own)
			return NULL;
		__atomic_store_n(&info->extra2, own->extra2, __ATOMIC_RELAXED);
		__atomic_store_n(&info->index, KNOWN, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&info->extra2, __ATOMIC_RELAXED);
}

static void write_counter(uint32_t id, uint8_t type, uint64_t value, uint64_t tick)
{
	struct xs_counter_record *record = xs_record_begin(sizeof(*record), XS_COUNTER,
							   XS_SOURCE_ITT, type, id, XS_ROLE_OTHER);

	if (!record)
		return;
	record->value.u = value;
	record->reserved = 0;
	record->event.tick = tick ? tick : xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
}

static void count(struct counter *counter, uint8_t type, uint64_t value, uint64_t tick)
{
	uint32_t id = atomic_load_explicit(&counter->id, memory_order_acquire);

	if (__builtin_expect(!id, 0)) {
		id = itt_wanted(counter->name) ? xs_name(counter->name, 0) : UINT32_MAX;
		atomic_store_explicit(&counter->id, id, memory_order_release);
	}
	if (id != UINT32_MAX)
		write_counter(id, type, value, tick);
}

EXPORT void *__itt_counter_create(const char *name, const char *domain)
{
	return make_counter(name, domain, XS_VALUE_U64);
}

EXPORT void *__itt_counter_create_typed(const char *name, const char *domain, int type)
{
	return make_counter(name, domain, type);
}

EXPORT void *__itt_counter_create_v3(const __itt_domain *domain, const char *name, int type)
{
	return make_counter(name, domain ? itt_domain_text(domain) : NULL, type);
}

EXPORT void __itt_counter_destroy(__itt_counter_info *counter)
{
	(void)counter; /* another client may have created the same */
}

static void step(__itt_counter_info *object, uint64_t delta)
{
	struct counter *counter = xs_recording() ? counter_of(object) : NULL;

	if (counter)
		count(counter, XS_VALUE_U64,
		      atomic_fetch_add_explicit(&counter->value, delta, memory_order_relaxed) +
			      delta,
		      0);
}

EXPORT void __itt_counter_inc(__itt_counter_info *counter)
{
	step(counter, 1);
}

EXPORT void __itt_counter_inc_delta(__itt_counter_info *counter, unsigned long long delta)
{
	step(counter, delta);
}

EXPORT void __itt_counter_dec(__itt_counter_info *counter)
{
	step(counter, 0 - 1ull);
}

EXPORT void __itt_counter_dec_delta(__itt_counter_info *counter, unsigned long long delta)
{
	step(counter, 0 - delta);
}

double itt_widened(const void *value)
{
	uint32_t single, magnitude;
	uint64_t bits;
	double wide;

	memcpy(&single, value, sizeof(single));
	magnitude = single & INT32_MAX;
	if (magnitude <= 0x7f800000)
		return (double)*(const float *)value;
	bits = (uint64_t)(single >> 31) << 63 | 0x7ff8ull << 48 |
	       (uint64_t)(magnitude & 0x7fffff) << 29;
	memcpy(&wide, &bits, sizeof(wide));
	return wide;
}

EXPORT void __itt_counter_set_value_ex(__itt_counter_info *object, __itt_clock_domain *clock,
				       unsigned long long time, void *value)
{
	struct counter *counter = xs_recording() ? counter_of(object) : NULL;
	union {
		uint64_t u;
		int64_t s;
		double d;
	} wide = { 0 };
	uint8_t type = XS_VALUE_U64;

	if (!counter || !value)
		return;
	switch (atomic_load_explicit(&counter->type, memory_order_relaxed)) {
	case XS_VALUE_S64:
		wide.s = *(const int64_t *)value;
		type = XS_VALUE_S64;
		break;
	case XS_VALUE_S32:
		wide.s = *(const int32_t *)value;
		type = XS_VALUE_S64;
		break;
	case XS_VALUE_S16:
		wide.s = *(const int16_t *)value;
		type = XS_VALUE_S64;
		break;
	case XS_VALUE_U32:
		wide.u = *(const uint32_t *)value;
		break;
	case XS_VALUE_U16:
		wide.u = *(const uint16_t *)value;
		break;
	case XS_VALUE_FLOAT:
		wide.d = itt_widened(value);
		type = XS_VALUE_DOUBLE;
		break;
	case XS_VALUE_DOUBLE:
		wide.d = *(const double *)value;
		type = XS_VALUE_DOUBLE;
		break;
	default:
		wide.u = *(const uint64_t *)value;
		break;
	}
	atomic_store_explicit(&counter->value, wide.u, memory_order_relaxed);
	count(counter, type, wide.u, clock ? itt_tick_of(clock, time) : 0);
}

EXPORT void __itt_counter_set_value(__itt_counter_info *counter, void *value)
{
	__itt_counter_set_value_ex(counter, NULL, 0, value);
}

EXPORT void __itt_counter_set_value_v3(__itt_counter_info *counter, void *value)
{
	__itt_counter_set_value_ex(counter, NULL, 0, value);
}

static void step_v3(const __itt_domain *domain, __itt_string_handle *handle, uint64_t delta)
{
	struct itt_name *name;

	if (!itt_enabled(domain) || !xs_recording())
		return;
	name = itt_name_in((__itt_domain *)domain, handle);
	if (domain->flags)
		write_counter(name->id, XS_VALUE_U64,
			      atomic_fetch_add_explicit(&name->value, delta, memory_order_relaxed) +
				      delta,
			      0);
}

EXPORT void __itt_counter_inc_v3(const __itt_domain *domain, __itt_string_handle *name)
{
	step_v3(domain, name, 1);
}

EXPORT void __itt_counter_inc_delta_v3(const __itt_domain *domain, __itt_string_handle *name,
				       unsigned long long delta)
{
	step_v3(domain, name, delta);
}

EXPORT void __itt_counter_dec_v3(const __itt_domain *domain, __itt_string_handle *name)
{
	step_v3(domain, name, 0 - 1ull);
}

EXPORT void __itt_counter_dec_delta_v3(const __itt_domain *domain, __itt_string_handle *name,
				       unsigned long long delta)
{
	step_v3(domain, name, 0 - delta);
}

EXPORT void __itt_bind_context_metadata_to_counter(__itt_counter_info *object, size_t length,
						   __itt_context_metadata *metadata)
{
	static const char *const keys[] = {
		[ITT_CONTEXT_NAME_A] = "name",
		[ITT_CONTEXT_DEVICE_A] = "device",
		[ITT_CONTEXT_UNITS_A] = "units",
		[ITT_CONTEXT_PCI_ADDR_A] = "pci_addr",
		[ITT_CONTEXT_TID] = "tid",
		[ITT_CONTEXT_MAX_VALUE] = "max_value",
		[ITT_CONTEXT_BANDWIDTH_FLAG] = "bandwidth",
		[ITT_CONTEXT_LATENCY_FLAG] = "latency",
		[ITT_CONTEXT_OCCUPANCY_FLAG] = "occupancy",
		[ITT_CONTEXT_ON_THREAD_FLAG] = "on_thread",
		[ITT_CONTEXT_IS_ABS_FLAG] = "is_absolute",
		[ITT_CONTEXT_CPU_INSTRUCTIONS_FLAG] = "cpu_instructions",
		[ITT_CONTEXT_CPU_CYCLES_FLAG] = "cpu_cycles",
	};
	struct counter *counter = xs_recording() ? counter_of(object) : NULL;
	struct itt_args args;

	if (!counter || !metadata || !itt_wanted(counter->name))
		return;
	if (!itt_args_begin(&args, XS_INSTANT, XS_SCOPE_PROCESS, xs_name(counter->name, 0),
			    null_id))
		return;
	for (size_t i = 0; i < length; i++) {
		unsigned type = (unsigned)metadata[i].type;

		if (type >= sizeof(keys) / sizeof(keys[0]) || !keys[type] || !metadata[i].value)
			continue;
		if (type < ITT_CONTEXT_TID)
			itt_arg_text(&args, keys[type], metadata[i].value);
		else
			itt_arg_number(&args, keys[type], *(const uint64_t *)metadata[i].value);
	}
	itt_args_end(&args, 0);
}

/* ---- histograms ---- */

static void init_histogram(void *payload, const char *name)
{
	__itt_histogram *histogram = payload;

	histogram->nameA = name;
	histogram->extra1 = (int)xs_name(name, 0);
}
ITT_TABLE(histograms, 4096, __itt_histogram, init_histogram);

EXPORT __itt_histogram *__itt_histogram_create(const __itt_domain *domain, const char *name,
					       int x_type, int y_type)
{
	__itt_histogram *histogram =
		itt_object_in(&histograms, domain ? itt_domain_text(domain) : NULL, name);

	if (!histogram)
		return NULL;
	histogram->domain = domain;
	histogram->x_type = x_type;
	histogram->y_type = y_type;
	return histogram;
}

EXPORT void __itt_histogram_submit(__itt_histogram *histogram, size_t length, void *x, void *y)
{
	struct itt_args args;

	if (!histogram || !itt_enabled(histogram->domain) || !xs_recording())
		return;
	if (!histogram->extra1) /* made by a static part that had not found us yet */
		histogram->extra1 =
			(int)itt_intern_in(itt_domain_text(histogram->domain), histogram->nameA, 0);
	if (!itt_args_begin(&args, XS_INSTANT, XS_SCOPE_THREAD, (uint32_t)histogram->extra1,
			    null_id))
		return;
	if (x)
		itt_arg(&args, xs_name("x", 0), (uint32_t)histogram->x_type, x, length);
	itt_arg(&args, xs_name("y", 0), (uint32_t)histogram->y_type, y, length);
	itt_args_end(&args, 0);
}
