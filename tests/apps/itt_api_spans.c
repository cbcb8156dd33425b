/*
 * What has a begin and an end: tasks, regions, frames, events; what lies between them; clocks,
 * tracks.
 */
#define INTEL_ITTNOTIFY_API_PRIVATE
#include <dlfcn.h>

#include "itt_app.h"
#include "itt_api.h"

#define name(text) (__itt_string_handle_create(text))

static __itt_id make_id(uint64_t number)
{
	static char base;

	return __itt_id_make(&base, number);
}

/* ---- tasks ---- */

void api_work(void);
void api_work(void)
{
}

static void *leave_open(void *domain)
{
	fact("leaver", "%d", (int)gettid());
	task_begin((__itt_domain *)domain, name("left open"));
	return NULL;
}

static void tasks(void)
{
	__itt_domain *domain = __itt_domain_create("tasks"), *other = __itt_domain_create("tasks2");
	__itt_domain *off = __itt_domain_create("tasks off");
	Dl_info info;

	fact("same_domain", "%d", domain == (__itt_domain_create("tasks")));
	fact("same_name", "%d", name("outer") == name("outer"));
	fact("other_name", "%d", name("outer") == name("inner"));
	__itt_id_create(domain, make_id(1));
	__itt_task_begin(domain, make_id(1), __itt_null, name("outer"));
	step();
	__itt_task_begin(domain, make_id(2), __itt_null, name("inner"));
	step();
	__itt_task_end(domain);
	__itt_task_begin(domain, make_id(3), make_id(1), name("child"));
	step();
	__itt_task_end(domain);
	__itt_task_end(domain);
	__itt_id_destroy(domain, make_id(1));

	__itt_task_begin_fn(domain, __itt_null, __itt_null, dlsym(RTLD_DEFAULT, "qsort"));
	__itt_task_end(domain);
	__itt_task_begin_fn(domain, __itt_null, __itt_null, (void *)(uintptr_t)api_work);
	__itt_task_end(domain);
	if (!dladdr((void *)(uintptr_t)api_work, &info))
		die("dladdr");
	fact("fn_offset", "0x%lx",
	     (unsigned long)((uintptr_t)api_work - (uintptr_t)info.dli_fbase));

	task_begin(domain, name("crosses a"));
	step();
	task_begin(other, name("crosses b"));
	step();
	task_end(domain);
	step();
	task_end(other);

	if (off)
		off->flags = 0;
	finished_task(off, name("never"));
	elsewhere(leave_open, domain);
}

/* ---- spans that may end elsewhere ---- */

static __itt_domain *spans;

static void *end_overlapped(void *unused)
{
	(void)unused;
	__itt_task_end_overlapped(spans, make_id(23));
	return NULL;
}

static void overlapped(void)
{
	spans = __itt_domain_create("overlapped");
	__itt_task_begin_overlapped(spans, make_id(21), __itt_null, name("a"));
	step();
	__itt_task_begin_overlapped(spans, make_id(22), make_id(21), name("b"));
	step();
	__itt_task_end_overlapped(spans, make_id(21));
	__itt_task_begin_overlapped(spans, make_id(23), __itt_null, name("c"));
	step();
	__itt_task_end_overlapped(spans, make_id(22));
	elsewhere(end_overlapped, NULL);
}

static void groups(void)
{
	__itt_domain *domain = __itt_domain_create("groups");

	__itt_task_begin(domain, make_id(31), __itt_null, name("maker"));
	step();
	__itt_task_group(domain, make_id(32), make_id(31), name("group"));
	step();
	__itt_task_end(domain);
	for (int i = 0; i < 3; i++) {
		__itt_task_begin(domain, make_id(33), make_id(32), name("member"));
		step();
		__itt_task_end(domain);
	}
}

static void relations(void)
{
	__itt_domain *domain = __itt_domain_create("relations");

	__itt_task_begin(domain, make_id(41), __itt_null, name("first"));
	step();
	__itt_task_end(domain);
	__itt_task_begin(domain, make_id(42), __itt_null, name("second"));
	step();
	for (int kind = __itt_relation_is_dependent_on; kind <= __itt_relation_is_predecessor_to;
	     kind++)
		__itt_relation_add(domain, make_id(41), (__itt_relation)kind, make_id(42));
	step();
	__itt_task_end(domain);

	__itt_task_begin(domain, make_id(43), __itt_null, name("third"));
	step();
	__itt_relation_add_to_current(domain, __itt_relation_is_continuation_of, make_id(42));
	step();
	__itt_task_end(domain);

	/* both are over */
	__itt_relation_add(domain, make_id(41), __itt_relation_is_sibling_of, make_id(43));
	/* nobody is current, nobody has the id: nothing */
	__itt_relation_add_to_current(domain, __itt_relation_is_parent_of, make_id(41));
	__itt_relation_add(domain, make_id(48), __itt_relation_is_parent_of, make_id(49));
}

static void *end_region(void *unused)
{
	(void)unused;
	__itt_region_end(spans, make_id(51));
	return NULL;
}

static void regions(void)
{
	spans = __itt_domain_create("regions");
	__itt_region_begin(spans, make_id(51), __itt_null, name("a"));
	step();
	__itt_region_begin(spans, make_id(52), make_id(51), name("b"));
	step();
	elsewhere(end_region, NULL);
	step();
	__itt_region_end(spans, make_id(52));
	__itt_task_begin(spans, __itt_null, make_id(52), name("task of b"));
	step();
	__itt_task_end(spans);
	__itt_region_begin(spans, make_id(53), __itt_null, name("left open"));
}

static void *end_frame(void *id)
{
	__itt_frame_end_v3(spans, id);
	return NULL;
}

static void frames(void)
{
	__itt_id id = make_id(61), submitted = make_id(62);
	__itt_timestamp begin, end;
	uint64_t before, after;

	spans = __itt_domain_create("frames");
	for (int i = 0; i < 3; i++) {
		__itt_frame_begin_v3(spans, NULL);
		step();
		__itt_frame_end_v3(spans, NULL);
	}
	spans = __itt_domain_create("frames elsewhere");
	__itt_frame_begin_v3(spans, &id);
	step();
	elsewhere(end_frame, &id);

	spans = __itt_domain_create("frames submitted");
	before = now_ns();
	begin = __itt_get_timestamp();
	step();
	end = __itt_get_timestamp();
	after = now_ns();
	step();
	__itt_frame_submit_v3(spans, &submitted, begin, end);
	fact("submitted", "%ju", (uintmax_t)(after - before));
}

static void *leave_frame_open(void *arg)
{
	__itt_domain *domain = arg;

	__itt_frame_begin_v3(domain, NULL);
	step();
	return NULL;
}

/*
 * Frames without an id: two domains that cross, one that is inside of another of its domain, and
 * such as are never ended.
 */
static void frames_without_id(void)
{
	__itt_domain *a = __itt_domain_create("frame a"), *b = __itt_domain_create("frame b"),
		     *twice = __itt_domain_create("frame twice"),
		     *open = __itt_domain_create("frame left open"),
		     *gone = __itt_domain_create("frame of a thread");

	__itt_frame_begin_v3(a, NULL);
	step();
	__itt_frame_begin_v3(b, NULL);
	step();
	__itt_frame_end_v3(a, NULL);
	step();
	__itt_frame_end_v3(b, NULL);
	__itt_frame_begin_v3(twice, NULL);
	step();
	__itt_frame_begin_v3(twice, NULL);
	step();
	__itt_frame_end_v3(twice, NULL);
	step();
	__itt_frame_end_v3(twice, NULL);
	elsewhere(leave_frame_open, gone);
	__itt_frame_begin_v3(open, NULL);
	step();
}

/* More ends than there is room for, of what nobody has seen begin. */
static void ends_alone(void)
{
	__itt_domain *domain = __itt_domain_create("ends");

	for (unsigned i = 0; i < 70000; i++)
		__itt_region_end(domain, __itt_id_make(domain, i + 1));
	__itt_region_begin(domain, make_id(101), __itt_null, name("region"));
	step();
	__itt_region_end(domain, make_id(101));
}

/* ---- markers and events ---- */

static void simulated(__itt_clock_info *ret, void *data)
{
	(void)data;
	ret->clock_freq = 1000000000;
	ret->clock_base = 0;
}

static void markers(void)
{
	__itt_domain *domain = __itt_domain_create("markers");

	task_begin(domain, name("around"));
	step();
	__itt_marker(domain, __itt_null, name("everywhere"), __itt_scope_global);
	__itt_marker(domain, make_id(71), name("of the process"), __itt_scope_track_group);
	__itt_marker(domain, __itt_null, name("of the thread"), __itt_scope_track);
	__itt_marker(domain, __itt_null, name("of the task"), __itt_scope_task);
	step();
	task_end(domain);
}

static void related(__itt_domain *domain, const char *text, __itt_id id, __itt_id marker)
{
	__itt_task_begin(domain, id, __itt_null, name(text));
	__itt_task_end(domain);
	__itt_relation_add(domain, marker, __itt_relation_is_predecessor_to, id);
}

/* Markers that have relations: in no task; in one; in one that is shown elsewhere, or ends early.
 */
static void marker_relations(void)
{
	__itt_domain *domain = __itt_domain_create("related");
	__itt_track_group *group = __itt_track_group_create(name("a group"), 0);
	__itt_clock_domain *clock = __itt_clock_domain_create(simulated, NULL);

	__itt_marker(domain, make_id(91), name("marker"), __itt_scope_task);
	task_begin(domain, name("around"));
	__itt_marker(domain, make_id(92), name("marker"), __itt_scope_task);
	task_end(domain);
	__itt_set_track(__itt_track_create(group, name("apart"), 0));
	task_begin(domain, name("on a track"));
	__itt_marker(domain, make_id(93), name("marker"), __itt_scope_task);
	__itt_set_track(NULL);
	task_end(domain);
	__itt_task_begin_ex(domain, clock, 5000, __itt_null, __itt_null, name("backwards"));
	__itt_marker(domain, make_id(94), name("marker"), __itt_scope_task);
	__itt_task_end_ex(domain, clock, 3000);
	related(domain, "behind none", make_id(1), make_id(91));
	related(domain, "behind one", make_id(2), make_id(92));
	related(domain, "behind a track", make_id(3), make_id(93));
	related(domain, "behind backwards", make_id(4), make_id(94));
}

static void events(void)
{
	__itt_event outer = __itt_event_create("event outer", 11);
	__itt_event inner = __itt_event_create("event inner, and no more", 11);

	fact("same_event", "%d", outer == (__itt_event_create("event outer", 11)));
	for (int i = 0; i < 2; i++) {
		__itt_event_start(outer);
		step();
		__itt_event_start(inner);
		step();
		__itt_event_end(inner);
		__itt_event_end(outer);
	}
	__itt_event_start(__itt_event_create("event alone", 11));
}

static void marks(void)
{
	__itt_mark_type type = __itt_mark_create("a mark");

	__itt_mark(type, "of the \"thread\"");
	__itt_mark_off(type);
	__itt_mark_global(type, "of all");
	__itt_mark_global_off(type);
}

/* ---- tracks ---- */

static __itt_track *upper, *lower;

static void *on_a_track(void *domain)
{
	__itt_set_track(lower);
	task_begin((__itt_domain *)domain, name("lower, elsewhere"));
	step();
	task_end((__itt_domain *)domain);
	return NULL;
}

static void tracks(void)
{
	__itt_domain *domain = __itt_domain_create("tracks");
	__itt_track_group *group =
		__itt_track_group_create(name("a group"), __itt_track_group_type_normal);

	upper = __itt_track_create(group, name("upper"), __itt_track_type_normal);
	lower = __itt_track_create(group, name("lower"), __itt_track_type_normal);
	fact("same_track", "%d",
	     upper == (__itt_track_create(group, name("upper"), __itt_track_type_normal)));
	finished_task(domain, name("before"));
	__itt_set_track(upper);
	task_begin(domain, name("on upper"));
	task_begin(domain, name("inside upper"));
	step();
	task_end(domain);
	task_end(domain);
	__itt_set_track(lower);
	finished_task(domain, name("on lower"));
	__itt_set_track(NULL);
	finished_task(domain, name("behind"));
	elsewhere(on_a_track, domain);
}

/* ---- clocks ---- */

struct own_clock {
	uint64_t base, per_second;
	bool from_now; /* clock_base is the time of the call */
	int calls;
};

static uint64_t read_clock(const struct own_clock *clock)
{
	return now_ns() / (1000000000 / clock->per_second);
}

static void get_info(__itt_clock_info *ret, void *data)
{
	struct own_clock *clock = data;

	ret->clock_freq = clock->per_second;
	ret->clock_base = clock->from_now ? read_clock(clock) : clock->base;
	clock->calls++;
}

/* One of everything that takes a time, each at a time that is past, inside a task that is not. */
static void use_clock(__itt_domain *domain, const char *label, struct own_clock *clock,
		      __itt_clock_domain *itt)
{
	__itt_counter counter = __itt_counter_create("clocked", label);
	uint64_t times[6], value = 5;
	uint64_t ns = 1000000000 / clock->per_second;

	task_begin(domain, name(label));
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		step();
		times[i] = read_clock(clock);
	}
	step();
	__itt_id_create_ex(domain, itt, times[0], make_id(81));
	__itt_task_begin_ex(domain, itt, times[0], make_id(81), __itt_null, name("ex"));
	__itt_task_begin_fn_ex(domain, itt, times[1], __itt_null, make_id(81),
			       dlsym(RTLD_DEFAULT, "qsort"));
	__itt_marker_ex(domain, itt, times[2], __itt_null, name("marker"), __itt_scope_track);
	__itt_counter_set_value_ex(counter, itt, times[2], &value);
	__itt_task_end_ex(domain, itt, times[3]);
	__itt_task_end_ex(domain, itt, times[4]);
	__itt_task_begin_overlapped_ex(domain, itt, times[1], make_id(82), __itt_null,
				       name("overlapped"));
	__itt_relation_add_ex(domain, itt, times[1], make_id(81), __itt_relation_is_sibling_of,
			      make_id(82));
	__itt_relation_add_to_current_ex(domain, itt, times[1], __itt_relation_is_parent_of,
					 make_id(82));
	__itt_task_end_overlapped_ex(domain, itt, times[5], make_id(82));
	__itt_id_destroy_ex(domain, itt, times[5], make_id(81));
	__itt_task_end(domain);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		printf("fact: %s_%zu %ju\n", label, i, (uintmax_t)((times[i] - times[0]) * ns));
}

static void clocks(void)
{
	static struct own_clock from_now = { .per_second = 1000000000, .from_now = true };
	static struct own_clock from_zero = { .per_second = 1000000000 };
	static struct own_clock micro = { .per_second = 1000000, .from_now = true };
	__itt_domain *domain = __itt_domain_create("clocks");
	__itt_clock_domain *made[] = {
		__itt_clock_domain_create(get_info, &from_now),
		__itt_clock_domain_create(get_info, &from_zero),
		__itt_clock_domain_create(get_info, &micro),
	};

	use_clock(domain, "now", &from_now, made[0]);
	use_clock(domain, "zero", &from_zero, made[1]);
	use_clock(domain, "micro", &micro, made[2]);
	fact("calls_at_create", "%d", from_now.calls);
	__itt_clock_domain_reset();
	fact("calls_at_reset", "%d", from_now.calls);
	use_clock(domain, "reset", &from_now, made[0]);
}

const struct scenario api_spans[] = {
	{ "tasks", tasks, false },
	{ "overlapped", overlapped, false },
	{ "groups", groups, false },
	{ "relations", relations, false },
	{ "regions", regions, false },
	{ "ends-alone", ends_alone, true },
	{ "frames", frames, false },
	{ "frames-without-id", frames_without_id, false },
	{ "markers", markers, false },
	{ "marker-relations", marker_relations, false },
	{ "events", events, false },
	{ "marks", marks, false },
	{ "tracks", tracks, false },
	{ "clocks", clocks, false },
	{ 0 },
};
