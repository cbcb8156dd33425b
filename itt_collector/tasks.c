/*
 * Tasks, their ids and relations, and the spans that need not nest: overlapped tasks, regions,
 * frames.
 */
#include "itt.h"
#include "blocked.h"
#include "task_counters.h"

#include <string.h>

#include "strtab.h"
#include "task_record.h"

static const struct xs_id null_id;

/* --iterations and --trigger look at what goes the long way. True: the event is to be recorded. */
static bool begin_watched(__itt_domain *domain, const char *name)
{
	if (xs_watching())
		xs_watch_begin(domain, itt_domain_text(domain), name);
	return xs_recording();
}

/*
 * After the end was recorded: the last iteration has its end, and so has a dump that this triggers.
 */
static void end_watched(const __itt_domain *domain)
{
	if (xs_watching())
		xs_watch_end(domain);
}

/*
 * A name that is not ready or missing, a step of the ring that ends, a thread's first event,
 * somebody who watches.
 */
static __attribute__((noinline)) void begin_long(__itt_domain *domain, __itt_string_handle *handle)
{
	struct xs_event *event;
	uint32_t name;

	if (xs_paused() && !xs_watching())
		return;
	if (!begin_watched(domain, itt_handle_text(handle)))
		return;
	name = itt_name_in(domain, handle)->id;
	if (!domain->flags) /* only now known to be unwanted */
		return;
	if (xs_counting()) {
		xs_counted_begin(name, NULL);
		return;
	}
	event = xs_record_begin(sizeof(*event), XS_BEGIN, XS_SOURCE_ITT, 0, name, XS_ROLE_BEGIN);
	if (!event)
		return;
	event->tick = xs_tick(xs_use_tsc); /* last: our own work is not the task's */
	xs_record_end(sizeof(*event));
}

static void write_end(__itt_domain *domain, uint64_t tick)
{
	struct xs_event *event =
		xs_record_begin(sizeof(*event), XS_END, XS_SOURCE_ITT, 0, 0, XS_ROLE_END);

	if (!event)
		return;
	event->name = itt_domain_id(domain);
	event->tick = tick;
	xs_record_end(sizeof(*event));
}

static __attribute__((noinline)) void end_long(__itt_domain *domain)
{
	uint64_t tick;

	if (xs_paused() && !xs_watching())
		return;
	tick = xs_tick(xs_use_tsc); /* first, for the same reason */
	if (xs_joined() && xs_counting())
		xs_counted_end(itt_domain_id(domain), tick);
	else
		write_end(domain, tick);
	end_watched(domain);
}

/* With an id or a parent, or at a time of its own. */
static __attribute__((noinline)) void begin_with(__itt_domain *domain, struct xs_id id,
						 struct xs_id parent, uint32_t name, uint64_t tick)
{
	if (domain->flags && !tick && xs_counting())
		xs_counted_begin(name, (const struct xs_id[]){ id, parent });
	else if (domain->flags)
		itt_keyed(XS_TASK, 0, name, id, parent, tick, XS_ROLE_BEGIN);
}

static __attribute__((noinline)) void begin_with_ids(__itt_domain *domain, struct xs_id id,
						     struct xs_id parent,
						     __itt_string_handle *handle)
{
	if (begin_watched(domain, itt_handle_text(handle)))
		begin_with(domain, id, parent, itt_name_in(domain, handle)->id, 0);
}

/*
 * Word by word: wider loads than the caller's stores just before would have to wait for these to
 * reach the cache.
 */
static inline bool has_ids(const volatile __itt_id *task, const volatile __itt_id *parent)
{
	return task->d1 | task->d2 | parent->d1 | parent->d2;
}

/*
 * What most programs call most. Each begins a line of its own, and asks first of all whether
 * anything is recorded: a paused program goes no further.
 */
#define HOT __attribute__((aligned(64)))

HOT EXPORT void __itt_task_begin(const __itt_domain *domain, __itt_id task, __itt_id parent,
				 __itt_string_handle *handle)
{
	const struct itt_name *name;
	bool open = xs_is_open();

	if (__builtin_expect(!open, 0) && xs_paused() && !xs_watching())
		return;
	if (!itt_enabled(domain))
		return;
	if (__builtin_expect(has_ids(&task, &parent), 0)) {
		begin_with_ids((__itt_domain *)domain, itt_id(task), itt_id(parent), handle);
		return;
	}
	/* pairs with the release in make_name() */
	name = handle ? __atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE) : NULL;
	if (__builtin_expect(!name ||
				     name->domain != (uint32_t)__atomic_load_n(&domain->extra1,
									       __ATOMIC_ACQUIRE) ||
				     !open || !xs_mark_open(XS_BEGIN, XS_SOURCE_ITT, name->id),
			     0))
		begin_long((__itt_domain *)domain, handle);
}

HOT EXPORT void __itt_task_end(const __itt_domain *domain)
{
	uint32_t id;

	if (__builtin_expect(!xs_is_open(), 0)) {
		if ((!xs_paused() || xs_watching()) && itt_enabled(domain))
			end_long((__itt_domain *)domain);
		return;
	}
	if (!itt_enabled(domain))
		return;
	id = (uint32_t)__atomic_load_n(&domain->extra1, __ATOMIC_ACQUIRE);
	if (__builtin_expect(!id || !xs_mark_open(XS_END, XS_SOURCE_ITT, id), 0))
		end_long((__itt_domain *)domain);
}

/* ---- tasks named by a function ---- */

EXPORT void __itt_task_begin_fn(const __itt_domain *domain, __itt_id task, __itt_id parent,
				void *function)
{
	if (itt_enabled(domain) && (xs_recording() || xs_watching()))
		begin_with_ids((__itt_domain *)domain, itt_id(task), itt_id(parent),
			       itt_function_handle(function));
}

/* ---- at a time of the application's own clock ---- */

static void end_at(__itt_domain *domain, uint64_t tick)
{
	struct xs_event *event = xs_record_begin(sizeof(*event), XS_END, XS_SOURCE_ITT, 0,
						 itt_domain_id(domain), XS_ROLE_END);

	if (!event)
		return;
	event->tick = tick;
	xs_record_end(sizeof(*event));
}

EXPORT void __itt_task_begin_ex(const __itt_domain *domain, __itt_clock_domain *clock,
				unsigned long long time, __itt_id task, __itt_id parent,
				__itt_string_handle *handle)
{
	if (itt_enabled(domain) && begin_watched((__itt_domain *)domain, itt_handle_text(handle)))
		begin_with((__itt_domain *)domain, itt_id(task), itt_id(parent),
			   itt_name_in((__itt_domain *)domain, handle)->id,
			   itt_tick_of(clock, time));
}

EXPORT void __itt_task_begin_fn_ex(const __itt_domain *domain, __itt_clock_domain *clock,
				   unsigned long long time, __itt_id task, __itt_id parent,
				   void *function)
{
	if (itt_enabled(domain) && (xs_recording() || xs_watching()))
		__itt_task_begin_ex(domain, clock, time, task, parent,
				    itt_function_handle(function));
}

EXPORT void __itt_task_end_ex(const __itt_domain *domain, __itt_clock_domain *clock,
			      unsigned long long time)
{
	if (!itt_enabled(domain))
		return;
	if (xs_recording())
		end_at((__itt_domain *)domain, itt_tick_of(clock, time));
	end_watched(domain);
}

/* ---- spans with a key ---- */

static void open_span(const __itt_domain *domain, enum xs_span span, struct xs_id id,
		      struct xs_id parent, uint32_t name, uint64_t tick)
{
	if (domain->flags)
		itt_keyed(XS_OPEN, span, name, id, parent, tick, XS_ROLE_OTHER);
}

static void close_span(const __itt_domain *domain, enum xs_span span, struct xs_id id,
		       uint64_t tick)
{
	itt_keyed(XS_CLOSE, span, itt_domain_id((__itt_domain *)domain), id, null_id, tick,
		  XS_ROLE_OTHER);
}

EXPORT void __itt_task_begin_overlapped_ex(const __itt_domain *domain, __itt_clock_domain *clock,
					   unsigned long long time, __itt_id task, __itt_id parent,
					   __itt_string_handle *handle)
{
	if (itt_enabled(domain) && xs_recording())
		open_span(domain, XS_SPAN_OVERLAPPED, itt_id(task), itt_id(parent),
			  itt_name_in((__itt_domain *)domain, handle)->id,
			  clock ? itt_tick_of(clock, time) : 0);
}

EXPORT void __itt_task_begin_overlapped(const __itt_domain *domain, __itt_id task, __itt_id parent,
					__itt_string_handle *handle)
{
	__itt_task_begin_overlapped_ex(domain, NULL, 0, task, parent, handle);
}

EXPORT void __itt_task_end_overlapped_ex(const __itt_domain *domain, __itt_clock_domain *clock,
					 unsigned long long time, __itt_id task)
{
	if (itt_enabled(domain) && xs_recording())
		close_span(domain, XS_SPAN_OVERLAPPED, itt_id(task),
			   clock ? itt_tick_of(clock, time) : 0);
}

EXPORT void __itt_task_end_overlapped(const __itt_domain *domain, __itt_id task)
{
	__itt_task_end_overlapped_ex(domain, NULL, 0, task);
}

EXPORT void __itt_region_begin(const __itt_domain *domain, __itt_id id, __itt_id parent,
			       __itt_string_handle *handle)
{
	if (itt_enabled(domain) && xs_recording())
		open_span(domain, XS_SPAN_REGION, itt_id(id), itt_id(parent),
			  itt_name_in((__itt_domain *)domain, handle)->id, 0);
}

EXPORT void __itt_region_end(const __itt_domain *domain, __itt_id id)
{
	if (itt_enabled(domain) && xs_recording())
		close_span(domain, XS_SPAN_REGION, itt_id(id), 0);
}

/* Most frames have no id, and are as cheap as a task. */
static_assert(XS_SPAN_FRAME == 0, "what xs_mark() writes as flags");

static __attribute__((noinline)) void frame_begin_long(const __itt_domain *domain,
						       const __itt_id *id)
{
	if (begin_watched((__itt_domain *)domain, itt_domain_text(domain)))
		open_span(domain, XS_SPAN_FRAME, id ? itt_id(*id) : null_id, null_id,
			  itt_frame_name((__itt_domain *)domain), 0);
}

static __attribute__((noinline)) void frame_end_long(const __itt_domain *domain, const __itt_id *id)
{
	if (xs_recording())
		close_span(domain, XS_SPAN_FRAME, id ? itt_id(*id) : null_id, 0);
	end_watched(domain);
}

EXPORT void __itt_frame_begin_v3(const __itt_domain *domain, __itt_id *id)
{
	if (!itt_enabled(domain))
		return;
	if (id || !__atomic_load_n(&domain->extra1, __ATOMIC_ACQUIRE) ||
	    !xs_mark(XS_OPEN, XS_SOURCE_ITT, itt_domain_info(domain)->frame_name))
		frame_begin_long(domain, id);
}

EXPORT void __itt_frame_end_v3(const __itt_domain *domain, __itt_id *id)
{
	uint32_t domain_id;

	if (!itt_enabled(domain))
		return;
	domain_id = (uint32_t)__atomic_load_n(&domain->extra1, __ATOMIC_ACQUIRE);
	if (id || !domain_id || !xs_mark(XS_CLOSE, XS_SOURCE_ITT, domain_id))
		frame_end_long(domain, id);
}

static void record_frame(const __itt_domain *domain, uint64_t begin, uint64_t end)
{
	struct xs_span_record *record;
	uint64_t now = xs_tick(xs_use_tsc), first = xs_life_began_tick();
	uint32_t name, scope;
	bool moved;

	if (!end) /* now */
		end = now;
	moved = begin > end || begin < first || end > now;
	if (end > now)
		end = now;
	if (begin > end)
		begin = end;
	if (begin < first)
		begin = first;
	name = itt_frame_name((__itt_domain *)domain);
	scope = itt_domain_id((__itt_domain *)domain);
	record = xs_record_begin(sizeof(*record), XS_SPAN, XS_SOURCE_ITT, XS_SPAN_FRAME, name,
				 XS_ROLE_OTHER);
	if (!record)
		return;
	record->event.tick = begin;
	record->duration = end > begin ? end - begin : 0;
	record->scope = scope;
	record->special = moved;
	xs_record_end(sizeof(*record));
}

EXPORT void __itt_frame_submit_v3(const __itt_domain *domain, __itt_id *id,
				  unsigned long long begin, unsigned long long end)
{
	(void)id;
	if (!itt_enabled(domain))
		return;
	if (begin_watched((__itt_domain *)domain, itt_domain_text(domain)))
		record_frame(domain, begin, end);
	end_watched(domain);
}

EXPORT unsigned long long __itt_get_timestamp(void)
{
	return xs_collector_options() ? xs_tick(xs_use_tsc) : 0;
}

/* Legacy frames: an object that stands for a domain. */
static void init_frame(void *payload, const char *name)
{
	*(__itt_domain **)payload = __itt_domain_create(name);
}
ITT_TABLE(frames, 4096, __itt_domain *, init_frame);

EXPORT void *__itt_frame_create(const char *domain)
{
	return itt_object(&frames, domain);
}

EXPORT void __itt_frame_begin(void *frame)
{
	if (frame)
		__itt_frame_begin_v3(*(__itt_domain **)frame, NULL);
}

EXPORT void __itt_frame_end(void *frame)
{
	if (frame)
		__itt_frame_end_v3(*(__itt_domain **)frame, NULL);
}

/* ---- groups and relations ---- */

EXPORT void __itt_task_group(const __itt_domain *domain, __itt_id id, __itt_id parent,
			     __itt_string_handle *handle)
{
	uint64_t tick;
	uint32_t name;

	if (!itt_enabled(domain) || !xs_recording())
		return;
	name = itt_name_in((__itt_domain *)domain, handle)->id;
	tick = xs_tick(xs_use_tsc);
	begin_with((__itt_domain *)domain, itt_id(id), itt_id(parent), name, tick);
	end_at((__itt_domain *)domain, tick);
}

static void relate(const __itt_domain *domain, struct xs_id head, int relation, __itt_id tail)
{
	if (itt_enabled(domain) && relation > 0 && relation < XS_RELATION_COUNT && xs_recording())
		itt_keyed(XS_RELATION, (uint8_t)relation, itt_domain_id((__itt_domain *)domain),
			  head, itt_id(tail), 0,
			  itt_is_null(head) ? XS_ROLE_WITHIN : XS_ROLE_OTHER);
}

EXPORT void __itt_relation_add(const __itt_domain *domain, __itt_id head, int relation,
			       __itt_id tail)
{
	relate(domain, itt_id(head), relation, tail);
}

EXPORT void __itt_relation_add_to_current(const __itt_domain *domain, int relation, __itt_id tail)
{
	relate(domain, null_id, relation, tail);
}

EXPORT void __itt_relation_add_ex(const __itt_domain *domain, __itt_clock_domain *clock,
				  unsigned long long time, __itt_id head, int relation,
				  __itt_id tail)
{
	(void)clock, (void)time;
	relate(domain, itt_id(head), relation, tail);
}

EXPORT void __itt_relation_add_to_current_ex(const __itt_domain *domain, __itt_clock_domain *clock,
					     unsigned long long time, int relation, __itt_id tail)
{
	(void)clock, (void)time;
	relate(domain, null_id, relation, tail);
}
