/*
 * Threads: their names, tracks and waits; whether to record; clocks of the application's own.
 */
#include "itt.h"

#include <string.h>
#include <time.h>

#include "strtab.h"
#include "task_record.h"

static const struct xs_id null_id;

/* ---- whether to record ---- */

EXPORT void __itt_pause(void)
{
	if (xs_collector_options())
		xs_control_itt(false);
}

EXPORT void __itt_resume(void)
{
	if (xs_collector_options())
		xs_control_itt(true);
}

enum { SCOPE_HOST = 1, SCOPE_OFFLOAD = 2 };

/* Host and device are recorded together or not at all: a scope without the host changes nothing. */
EXPORT void __itt_pause_scoped(int scope)
{
	if (scope & SCOPE_HOST)
		__itt_pause();
}

EXPORT void __itt_resume_scoped(int scope)
{
	if (scope & SCOPE_HOST)
		__itt_resume();
}

EXPORT void __itt_detach(void)
{
	if (xs_collector_options())
		xs_control_detach();
}

/* ---- threads and tracks ---- */

EXPORT void __itt_thread_set_name(const char *name)
{
	if (name && xs_recording() && itt_wanted(NULL))
		xs_thread_name(xs_name(name, 0));
}

EXPORT int __itt_thr_name_set(const char *name, int length)
{
	struct xs_part part = { name, name ? (uint32_t)strnlen(name, length > 0 ? (size_t)length
										: XS_STRING_MAX)
					   : 0 };

	if (name && xs_recording() && itt_wanted(NULL))
		xs_thread_name(xs_name_parts(&part, 1, 0));
	return 0;
}

EXPORT void __itt_thread_ignore(void)
{
	if (itt_wanted(NULL))
		xs_thread_ignore();
}

EXPORT void __itt_thr_ignore(void)
{
	__itt_thread_ignore();
}

struct track {
	__itt_track public;
	const char *name;
};

static void init_group(void *payload, const char *name)
{
	((__itt_track_group *)payload)->name = __itt_string_handle_create(name);
}
ITT_TABLE(groups, 1024, __itt_track_group, init_group);

static void init_track(void *payload, const char *name)
{
	((struct track *)payload)->name = name;
}
ITT_TABLE(tracks, 8192, struct track, init_track);

EXPORT __itt_track_group *__itt_track_group_create(__itt_string_handle *name, int type)
{
	__itt_track_group *group = itt_object(&groups, itt_handle_text(name));

	if (group)
		group->tgtype = type;
	return group;
}

EXPORT __itt_track *__itt_track_create(__itt_track_group *group, __itt_string_handle *name,
				       int type)
{
	struct track *track;

	if (group && group->name)
		track = itt_object_joined(&tracks, itt_handle_text(group->name), "/",
					  itt_handle_text(name));
	else
		track = itt_object(&tracks, itt_handle_text(name));
	if (!track)
		return NULL;
	track->public.name = name;
	track->public.group = group;
	track->public.ttype = type;
	return &track->public;
}

EXPORT void __itt_set_track(__itt_track *public)
{
	struct track *track = (struct track *)public;
	uint32_t name = 0;
	struct xs_event *event;

	if (!xs_recording() || !itt_wanted(NULL))
		return;
	if (track)
		name = xs_name(track->name, 0);
	event = xs_record_begin(sizeof(*event), XS_TRACK, XS_SOURCE_ITT, 0, name, XS_ROLE_OTHER);
	if (!event)
		return;
	event->tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*event));
}

/* ---- synchronization objects: waits ---- */

/*
 * Address -> names of its slices. Fixed: a program may have more objects than these; the rest have
 * a common name.
 */
#define OBJECTS 65536u
struct object {
	_Atomic(const void *) address;
	_Atomic uint32_t wait, release; /* interned; 0: not yet */
	_Atomic(const char *) type;	/* kept over a change of the name */
};
XS_TABLE(all_objects, OBJECTS * sizeof(struct object));
static _Atomic uint32_t object_count;

static struct object *object_of(const void *address, bool add)
{
	uint32_t slot = (uint32_t)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15ull >> 48);
	struct object *objects = xs_table(&all_objects);

	if (!objects)
		return NULL;
	for (uint32_t probe = 0; probe < 64; probe++, slot++) {
		const void *found = atomic_load_explicit(&objects[slot % OBJECTS].address,
							 memory_order_acquire);

		if (found == address)
			return &objects[slot % OBJECTS];
		if (found)
			continue;
		if (!add ||
		    atomic_load_explicit(&object_count, memory_order_relaxed) > OBJECTS / 4 * 3)
			return NULL;
		if (atomic_compare_exchange_strong(&objects[slot % OBJECTS].address, &found,
						   address)) {
			atomic_fetch_add_explicit(&object_count, 1, memory_order_relaxed);
			return &objects[slot % OBJECTS];
		}
		if (found == address)
			return &objects[slot % OBJECTS];
	}
	return NULL;
}

/* type NULL: as before. The lengths are those of the longest that is looked at. */
static void name_object(const void *address, const char *type, size_t type_length, const char *name,
			size_t name_length)
{
	char text[512], type_text[200];
	const __itt_string_handle *handle;
	struct object *object;
	size_t n;

	if (!address || !xs_recording() || !itt_wanted(NULL))
		return;
	object = object_of(address, true);
	if (!object)
		return;
	if (type) {
		n = strnlen(type,
			    type_length < sizeof(type_text) ? type_length : sizeof(type_text) - 1);
		memcpy(type_text, type, n);
		type_text[n] = '\0';
		handle = __itt_string_handle_create(type_text);
		type = handle ? handle->strA : "";
		atomic_store_explicit(&object->type, type, memory_order_release);
	} else {
		type = atomic_load_explicit(&object->type, memory_order_acquire);
	}
	text[0] = '\0';
	if (type && *type) {
		strncat(text, type, 200);
		strcat(text, " ");
	}
	if (name)
		strncat(text, name, name_length < 200 ? name_length : 200);
	atomic_store_explicit(&object->release, itt_join("release", " ", text, 0),
			      memory_order_relaxed);
	atomic_store_explicit(&object->wait, itt_join("wait", " ", text, 0), memory_order_relaxed);
}

static uint32_t object_name(const void *address, bool wait)
{
	static const char digits[] = "0123456789abcdef";
	struct object *object = object_of(address, true);
	uint32_t name;
	char text[24] = "0x", *end = text + 2;
	bool some = false;

	if (!object) {
		xs_count_unnamed();
		return xs_name(wait ? "wait sync (too many objects)"
				    : "release sync (too many objects)",
			       0);
	}
	name = atomic_load_explicit(wait ? &object->wait : &object->release, memory_order_relaxed);
	if (name)
		return name;
	for (int shift = 60; shift >= 0; shift -= 4) {
		unsigned digit = (unsigned)((uintptr_t)address >> shift) & 15;

		some |= digit || !shift;
		if (some)
			*end++ = digits[digit];
	}
	*end = '\0';
	name_object(address, "sync", SIZE_MAX, text, SIZE_MAX);
	return atomic_load_explicit(wait ? &object->wait : &object->release, memory_order_relaxed);
}

EXPORT void __itt_sync_create(void *address, const char *type, const char *name, int attribute)
{
	(void)attribute;
	name_object(address, type ? type : "", SIZE_MAX, name, SIZE_MAX);
}

EXPORT void __itt_sync_set_name(void *address, const char *type, const char *name, int attribute)
{
	(void)attribute;
	name_object(address, type ? type : "", SIZE_MAX, name, SIZE_MAX);
}

EXPORT int __itt_notify_sync_name(void *address, const char *type, int type_length,
				  const char *name, int name_length, int attribute)
{
	(void)attribute;
	name_object(address, type ? type : "", type_length > 0 ? (size_t)type_length : SIZE_MAX,
		    name, name_length > 0 ? (size_t)name_length : SIZE_MAX);
	return 0;
}

EXPORT void __itt_sync_rename(void *address, const char *name)
{
	name_object(address, NULL, 0, name, SIZE_MAX);
}

EXPORT void __itt_sync_destroy(void *address)
{
	struct object *object = object_of(address, false);

	if (!address || !object)
		return;
	/* the slot stays taken; another object at the address is named anew */
	atomic_store_explicit(&object->type, NULL, memory_order_relaxed);
	atomic_store_explicit(&object->wait, 0, memory_order_relaxed);
	atomic_store_explicit(&object->release, 0, memory_order_relaxed);
}

/*
 * What the thread waits for, as it has said. There is more than one if a handler that interrupts a
 * wait has one of its own: it takes the next place, and then that of the oldest.
 */
#define WAITS 4u
static __thread struct {
	struct {
		const void *object;
		uintptr_t frame;
		uint64_t tick;
	} of[WAITS];
	uint32_t count; /* ever, but those that have ended */
} waits __attribute__((tls_model("initial-exec")));

static void prepare(const void *address)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	uint32_t count = waits.count, last = (count - 1) % WAITS;

	if (!xs_recording() || !itt_wanted(NULL))
		return;
	/* begun anew, and not by a handler, whose frames are deeper */
	if (count && waits.of[last].object == address && frame >= waits.of[last].frame)
		count--;
	/* first of all, so that a handler's wait takes the next place */
	waits.of[count % WAITS].object = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	waits.count = count + 1;
	atomic_signal_fence(memory_order_seq_cst);
	waits.of[count % WAITS].frame = frame;
	waits.of[count % WAITS].tick = xs_tick(xs_use_tsc);
	atomic_signal_fence(memory_order_seq_cst);
	waits.of[count % WAITS].object = address;
}

/* Ends the wait, and those within it, which nobody will end. False: none has begun. */
static bool end_wait(const void *address, uint64_t *ret_tick)
{
	for (uint32_t n = waits.count, last = n > WAITS ? n - WAITS : 0; n > last; n--) {
		if (waits.of[(n - 1) % WAITS].object != address)
			continue;
		*ret_tick = waits.of[(n - 1) % WAITS].tick;
		atomic_signal_fence(memory_order_seq_cst);
		waits.count = n - 1;
		return true;
	}
	return false;
}

static void waited(const void *address, bool cancelled)
{
	struct xs_span_record *record;
	uint32_t name;
	uint64_t now, since;

	if (!address || !end_wait(address, &since) || xs_paused())
		return;
	now = xs_tick(xs_use_tsc);
	if (!xs_recording())
		return;
	name = object_name(address, true);
	record = xs_record_begin(sizeof(*record), XS_SPAN, XS_SOURCE_ITT, XS_SPAN_WAIT, name,
				 XS_ROLE_OTHER);
	if (!record)
		return;
	record->event.tick = since;
	record->duration = now - since;
	record->scope = 0;
	record->special = cancelled;
	xs_record_end(sizeof(*record));
}

static void releasing(const void *address)
{
	if (address && xs_recording() && itt_wanted(NULL))
		itt_write(XS_INSTANT, XS_SCOPE_THREAD, object_name(address, false), null_id, 0);
}

#define SYNC(family)                                          \
	EXPORT void __itt_##family##_prepare(void *address)   \
	{                                                     \
		prepare(address);                             \
	}                                                     \
	EXPORT void __itt_##family##_cancel(void *address)    \
	{                                                     \
		waited(address, true);                        \
	}                                                     \
	EXPORT void __itt_##family##_acquired(void *address)  \
	{                                                     \
		waited(address, false);                       \
	}                                                     \
	EXPORT void __itt_##family##_releasing(void *address) \
	{                                                     \
		releasing(address);                           \
	}
SYNC(sync)
SYNC(notify_sync)

/* ---- clocks of the application's own ---- */

struct clock {
	__itt_clock_domain public;
	uint64_t mono;	  /* when the application was asked for clock_base */
	_Atomic int kind; /* enum below */
};
enum { CLOCK_BASED, CLOCK_KERNEL_FIRST, CLOCK_TICKS = 16, CLOCK_UNUSABLE };
#define NOT_PLACED 0u /* as records tell of a kind, which they number from 1 */
static const clockid_t kernel_clocks[] = { CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME,
					   CLOCK_REALTIME };

#define CLOCKS XS_OWN_CLOCKS
#define NARROW 3000u /* ticks: some readings of clocks take less than that */
/* the last one is that of all for which there was no place: it has no frequency */
static struct clock clocks[CLOCKS + 1];
static _Atomic uint32_t clock_count;

/* Where clocks are forbidden, the application's may be one of them: without us nobody reads it. */
static void ask(struct clock *clock)
{
	if (xs_is_off())
		return;
	clock->public.fn(&clock->public.info, clock->public.fn_data);
	clock->mono = xs_clock_ns(CLOCK_MONOTONIC);
}

EXPORT __itt_clock_domain *__itt_clock_domain_create(__itt_get_clock_info_fn function, void *data)
{
	uint32_t number;

	if (!function)
		return NULL;
	number = atomic_fetch_add(&clock_count, 1);
	if (number >= CLOCKS) {
		atomic_store(&clock_count, CLOCKS);
		return &clocks[CLOCKS].public;
	}
	clocks[number].public.fn = function;
	clocks[number].public.fn_data = data;
	ask(&clocks[number]);
	return &clocks[number].public;
}

EXPORT void __itt_clock_domain_reset(void)
{
	uint32_t count = atomic_load(&clock_count);

	for (uint32_t i = 0; i < count && i < CLOCKS; i++) {
		if (!clocks[i].public.fn)
			continue;
		ask(&clocks[i]);
		atomic_store(&clocks[i].kind, CLOCK_BASED);
	}
}

static int64_t ns_of(uint64_t units, uint64_t frequency)
{
	return (int64_t)((unsigned __int128)units * 1000000000u / frequency);
}

struct moment {
	/* kernel: by the clock of the kind, if it is one of the kernel's */
	uint64_t tick, mono, kernel;
};

/*
 * Clocks read one after the other; again if something has come in between, which would count as the
 * program's time.
 */
static struct moment now_of(int kind)
{
	bool kernel = kind >= CLOCK_KERNEL_FIRST && kind < CLOCK_KERNEL_FIRST + 4;
	uint64_t narrowest = UINT64_MAX;
	struct moment best = { 0 };

	for (int i = 0; i < 5 && narrowest > NARROW; i++) {
		struct moment now = { .tick = xs_tick(xs_use_tsc) };
		uint64_t width;

		now.mono = xs_clock_ns(CLOCK_MONOTONIC);
		now.kernel = kernel ? xs_clock_ns(kernel_clocks[kind - CLOCK_KERNEL_FIRST]) : 0;
		width = xs_tick(xs_use_tsc) - now.tick;
		if (width < narrowest) {
			narrowest = width;
			best = now;
		}
	}
	return best;
}

/* How long ago `time` was by a clock of this kind, in ns; negative: it is yet to come. */
static int64_t age(const struct clock *clock, int kind, uint64_t time, const struct moment *now)
{
	uint64_t frequency = clock->public.info.clock_freq, base = clock->public.info.clock_base;

	if (kind == CLOCK_BASED)
		return (int64_t)(now->mono - clock->mono) -
		       (time >= base ? ns_of(time - base, frequency)
				     : -ns_of(base - time, frequency));
	return (int64_t)now->kernel - ns_of(time, frequency);
}

/*
 * The record that follows is of that tick, and has this time by the application's clock: durations
 * are kept where the clock cannot be placed.
 */
static uint64_t own_time(const struct clock *clock, int kind, uint64_t time, uint64_t tick)
{
	uint64_t frequency = clock->public.info.clock_freq;
	struct xs_own_time_record *record =
		xs_record_begin(sizeof(*record), XS_OWN_TIME, XS_SOURCE_ITT,
				kind == CLOCK_UNUSABLE ? NOT_PLACED : (uint8_t)(kind + 1),
				frequency ? (uint32_t)(clock - clocks) : CLOCKS, XS_ROLE_OTHER);

	if (record) {
		record->event.tick = tick;
		record->ns = frequency
				     ? (uint64_t)((unsigned __int128)time * 1000000000u / frequency)
				     : 0;
		record->reserved = 0;
		xs_record_end(sizeof(*record));
	}
	return tick;
}

/* By what the clock's times can become ticks from here on; *ago: how long ago `time` was. */
static int kind_of(struct clock *clock, uint64_t time, int64_t *ago, struct moment *now)
{
	int kind = clock->public.info.clock_freq
			   ? atomic_load_explicit(&clock->kind, memory_order_relaxed)
			   : CLOCK_UNUSABLE;

	for (*now = now_of(kind); kind < CLOCK_KERNEL_FIRST + 4; *now = now_of(++kind)) {
		*ago = age(clock, kind, time, now);
		if (*ago >= -1000 && *ago <= (int64_t)(now->mono - xs_life_began_ns()))
			break;
	}
	if (kind == CLOCK_KERNEL_FIRST + 4)
		kind = CLOCK_TICKS;
	if (kind == CLOCK_TICKS && !(time <= now->tick && time >= xs_life_began_tick()))
		kind = CLOCK_UNUSABLE;
	atomic_store_explicit(&clock->kind, kind, memory_order_relaxed);
	return kind;
}

uint64_t itt_tick_of(const __itt_clock_domain *domain, unsigned long long time)
{
	struct clock *clock = (struct clock *)domain;
	int64_t ago = 0;
	uint64_t elapsed;
	struct moment now;
	int kind;

	if (clock < clocks || clock > clocks + CLOCKS)
		return xs_tick(xs_use_tsc);
	kind = kind_of(clock, time, &ago, &now);
	if (kind == CLOCK_TICKS)
		return own_time(clock, kind, time, time);
	/* ticks per ns are known from the clock's own birth on; the time is mostly a moment ago */
	elapsed = now.mono - xs_life_began_ns();
	if (kind == CLOCK_UNUSABLE || ago < 0 || !elapsed)
		return own_time(clock, kind, time, now.tick);
	return own_time(clock, kind, time,
			now.tick - (uint64_t)((unsigned __int128)(uint64_t)ago *
					      (now.tick - xs_life_began_tick()) / elapsed));
}
