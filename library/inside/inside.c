/*
 * The recording half of the library, within libxstrace.so: what the program says becomes records.
 */
#include "library.h"

#include <string.h>

#include "companion.h"
#include "task_counters.h"
#include "itt.h"
#include "samples.h"
#include "task_record.h"

#define DOMAIN "xstrace"

extern __itt_domain *__itt_domain_create(const char *name);

static const struct xs_id null_id;

/* Ranges are tasks of a domain of their own; their names are shown without it. */
static __itt_domain *domain(void)
{
	static __itt_domain *_Atomic made;
	__itt_domain *found = atomic_load_explicit(&made, memory_order_acquire);

	if (__builtin_expect(!found, 0)) {
		found = __itt_domain_create(DOMAIN);
		atomic_store_explicit(&made, found, memory_order_release);
	}
	return found;
}

static void *get_domain(void)
{
	return domain();
}

/* ---- ranges ---- */

struct xstrace_name {
	const char *text;
	_Atomic uint32_t id; /* 0: the process has not joined yet */
};

static void init_name(void *payload, const char *text)
{
	((struct xstrace_name *)payload)->text = text;
}
ITT_TABLE(range_names, 65536, struct xstrace_name, init_name);

static const struct xstrace_name *get_name(const char *name)
{
	return itt_object(&range_names, name);
}

/* A name or a ring that is not there yet, another clock, somebody who watches. */
static __attribute__((noinline, cold)) void push_long(struct xstrace_name *name)
{
	struct xs_event *event;

	if (xs_watching())
		xs_watch_begin(domain(), DOMAIN, name->text);
	if (!xs_recording() || !domain()->flags)
		return;
	if (!atomic_load_explicit(&name->id, memory_order_relaxed))
		atomic_store_explicit(&name->id, xs_name(name->text, itt_domain_id(domain())),
				      memory_order_relaxed);
	if (xs_counting()) {
		xs_counted_begin(name->id, NULL);
		return;
	}
	event = xs_record_begin(sizeof(*event), XS_BEGIN, XS_SOURCE_ITT, 0, name->id,
				XS_ROLE_BEGIN);
	if (!event)
		return;
	event->tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*event));
}

static void push_name(const struct xstrace_name *name)
{
	uint32_t id;

	if (!name)
		return;
	id = atomic_load_explicit(&name->id, memory_order_relaxed);
	if (__builtin_expect(!id || !xs_mark(XS_BEGIN, XS_SOURCE_ITT, id), 0) &&
	    (!xs_paused() || xs_watching()))
		push_long((struct xstrace_name *)name);
}

static void push(const char *name)
{
	if (!xs_paused() || xs_watching())
		push_name(get_name(name));
}

static void write_end(uint64_t tick)
{
	struct xs_event *event =
		xs_record_begin(sizeof(*event), XS_END, XS_SOURCE_ITT, 0, 0, XS_ROLE_END);

	if (!event)
		return;
	event->name = itt_domain_id(domain());
	event->tick = tick;
	xs_record_end(sizeof(*event));
}

static __attribute__((noinline, cold)) void pop_long(void)
{
	uint64_t tick = xs_tick(xs_use_tsc);

	if (xs_joined() && xs_counting())
		xs_counted_end(itt_domain_id(domain()), tick);
	else
		write_end(tick);
	if (xs_watching())
		xs_watch_end(domain());
}

static void pop(void)
{
	uint32_t id = (uint32_t)__atomic_load_n(&domain()->extra1, __ATOMIC_ACQUIRE);

	if (__builtin_expect(!id || !xs_mark(XS_END, XS_SOURCE_ITT, id), 0) &&
	    (!xs_paused() || xs_watching()))
		pop_long();
}

static void mark(const char *name)
{
	struct itt_args args;

	if (xs_watching())
		xs_watch_marker(DOMAIN, name ? name : "(no name)");
	if (xs_recording() && itt_args_begin(&args, XS_INSTANT, XS_SCOPE_THREAD,
					     xs_name(name ? name : "(no name)", 0), null_id))
		itt_args_end(&args, 0);
}

static void counter(const char *name, double value)
{
	struct xs_counter_record *record;
	uint32_t id;

	if (!xs_recording())
		return;
	id = xs_name(name ? name : "(no name)", 0);
	record = xs_record_begin(sizeof(*record), XS_COUNTER, XS_SOURCE_ITT, XS_VALUE_DOUBLE, id,
				 XS_ROLE_OTHER);
	if (!record)
		return;
	record->value.d = value;
	record->reserved = 0;
	record->event.tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
}

/* Steps follow each other on a track of their own, whatever ranges are open around them. */
static void step_end(void)
{
	itt_keyed(XS_CLOSE, XS_SPAN_OVERLAPPED, itt_domain_id(domain()),
		  (struct xs_id){ { 1, 0, 0 } }, null_id, 0, XS_ROLE_OTHER);
}

static bool step(const char *name)
{
	if (!xs_recording())
		return false;
	itt_keyed(XS_OPEN, XS_SPAN_OVERLAPPED, xs_name(name, itt_domain_id(domain())),
		  (struct xs_id){ { 1, 0, 0 } }, null_id, 0, XS_ROLE_OTHER);
	return true;
}

static void external(uint64_t id, uint64_t user_id)
{
	struct xs_external_record *record =
		xs_record_begin(sizeof(*record), XS_EXTERNAL, XS_SOURCE_NONE, 0, 0, XS_ROLE_OTHER);

	if (!record)
		return;
	record->id = id;
	record->user_id = user_id;
	record->event.tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
}

static void thread_info(void)
{
	if (xs_recording())
		xs_thread_name(0); /* as the kernel calls the thread now */
}

/* ---- activities ---- */

/* Metadata as arguments, as much as there is room for. Its length in bytes. */
static uint32_t put_metadata(unsigned char *out, size_t room, const char *text,
			     const uint32_t *keys, uint32_t count)
{
	uint32_t length = 0;

	for (uint32_t i = 0; i < count; i++) {
		const char *value = text + strlen(text) + 1;
		struct xs_arg arg = { .key = keys[i],
				      .type = *value++ == XS_OWN_JSON ? XS_VALUE_JSON
								      : XS_VALUE_TEXT };
		size_t n = strlen(value), left;

		text = value + n + 1;
		if (length + sizeof(arg) + 8 > room)
			break;
		left = room - length - sizeof(arg);
		arg.cut = n > left;
		arg.count = (uint16_t)(arg.cut ? left : n);
		memcpy(out + length, &arg, sizeof(arg));
		memset(out + length + sizeof(arg) + (arg.count & ~7u), 0, arg.count & 7 ? 8 : 0);
		memcpy(out + length + sizeof(arg), value, arg.count);
		length += (uint32_t)sizeof(arg) + ((arg.count + 7u) & ~7u);
	}
	return length;
}

#define KEYS_MAX 32u

/* Names before the record: no other is written within it. */
static uint32_t name_keys(const struct xs_own_metadata *metadata, uint32_t *keys)
{
	uint32_t count = metadata->count < KEYS_MAX ? metadata->count : KEYS_MAX;
	const char *text = metadata->text;

	for (uint32_t i = 0; i < count; i++) {
		keys[i] = xs_name(text, 0);
		text += strlen(text) + 1;
		text += strlen(text) + 1;
	}
	return count;
}

static void write_activity(const struct xs_own_activity *activity, uint64_t clock, uint32_t name,
			   uint32_t row, const struct xs_own_metadata *metadata)
{
	uint32_t keys[KEYS_MAX], count = metadata ? name_keys(metadata, keys) : 0, length = 0;
	struct xs_activity_record *record;
	uint32_t size;

	record = xs_record_begin(count ? XS_RECORD_MAX : sizeof(*record), XS_ACTIVITY,
				 XS_SOURCE_NONE, 0, name, XS_ROLE_OTHER);
	if (!record)
		return;
	if (count)
		length = put_metadata((unsigned char *)(record + 1),
				      XS_RECORD_MAX - sizeof(*record), metadata->text, keys, count);
	size = (uint32_t)(sizeof(*record) + length + 15) & ~15u;
	record->start = activity->start - clock;
	record->end = activity->end - clock;
	record->device = activity->device;
	record->resource = activity->resource;
	record->correlation = activity->correlation;
	record->row = row;
	record->type = activity->type;
	record->length = (uint16_t)length;
	record->event.tick = xs_tick(xs_use_tsc);
	record->event.words = (uint8_t)(size / 8);
	xs_record_end(size);
}

static uint32_t id_of(struct xs_own_text *text)
{
	if (!text->id)
		text->id = xs_name_parts(&(struct xs_part){ text->text, text->length }, 1, 0);
	return text->id;
}

static void write_activities(const struct xs_own_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct xs_own_activity *activity = &list->activities[i];

		if (!xs_recording())
			return;
		write_activity(activity, list->clock, id_of(&list->names[activity->name]),
			       id_of(&list->rows[activity->row]),
			       i < list->metadata_count && list->metadata[i].count
				       ? &list->metadata[i]
				       : NULL);
	}
}

/* ---- what is known of the trace ---- */

#define PIECE 1024u

static void about(const char *key, const char *text, bool json)
{
	uint32_t name = xs_name(key, 0);
	size_t left = strlen(text);

	do {
		size_t n = left < PIECE ? left : PIECE;
		uint32_t size = (uint32_t)(sizeof(struct xs_args_record) + n + 15) & ~15u;
		struct xs_args_record *record;

		left -= n;
		record = xs_record_begin(size, XS_ABOUT, XS_SOURCE_NONE,
					 (uint8_t)((json ? XS_ABOUT_FLAG_JSON : 0) |
						   (left ? XS_ABOUT_FLAG_MORE : 0)),
					 name, XS_ROLE_OTHER);
		if (!record)
			return;
		record->id = null_id;
		record->length = (uint32_t)n;
		record->reserved = 0;
		memcpy(record + 1, text, n);
		record->event.tick = xs_tick(xs_use_tsc);
		xs_record_end(size);
		text += n;
	} while (left);
}

EXPORT const struct xs_library *xs_companion_library(void)
{
	static const struct xs_library library = {
		.version = XS_LIBRARY_VERSION,
		.range_push = push,
		.range_push_name = push_name,
		.range_pop = pop,
		.mark = mark,
		.counter = counter,
		.name = get_name,
		.domain = get_domain,
		.count_step = xs_count_step,
		.step = step,
		.step_end = step_end,
		.external = external,
		.thread_info = thread_info,
		.stop = xs_call_at_stop,
		.activities = write_activities,
		.about = about,
		.device = xs_samples_device,
		.columns = xs_samples_columns,
		.device_clock = xs_samples_clock,
		.sample = xs_samples_write,
		.looked = xs_samples_looked,
	};

	return &library;
}
