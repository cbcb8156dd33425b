/*
 * What an ITT client must not do, or not so much of. The program has to end well, with a good trace
 * of what is behind it: the task bad::survived.
 *
 *	itt_bad CASE...		see cases[]
 *	itt_bad all
 */
#define INTEL_ITTNOTIFY_API_PRIVATE
#include <limits.h>
#include <math.h>

#include "itt_app.h"

#define name(text) (__itt_string_handle_create(text))
#define MIB	   (1024 * 1024)

static __itt_domain *bad;

static __itt_id make_id(uint64_t number)
{
	static char base;

	return __itt_id_make(&base, number);
}

static void elsewhere(void *(*body)(void *), void *arg)
{
	pthread_join(start_thread(body, arg), NULL);
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "VmRSS:", 6))
			kib = atol(line + 6);
	if (file)
		fclose(file);
	return kib;
}

/* ---- begins in begins ---- */

static void *deep_thread(void *unused)
{
	__itt_string_handle *inner = name("inner"), *beside = name("beside");

	(void)unused;
	for (int i = 0; i < 70000; i++)
		task_begin(bad, inner);
	for (int i = 0; i < 70000; i++)
		task_end(bad);
	task_begin(bad, beside);
	task_end(bad);
	return NULL;
}

/* More than are kept, twice: the second time, they are never ended. */
static void *deep_for_ever(void *unused)
{
	__itt_string_handle *open = name("open");

	(void)unused;
	for (int i = 0; i < 66000; i++)
		task_begin(bad, open);
	return NULL;
}

static void deep(void)
{
	elsewhere(deep_thread, NULL);
	elsewhere(deep_for_ever, NULL);
}

/* ---- ends without begins ---- */

static void *end_only(void *unused)
{
	(void)unused;
	task_end(bad);
	return NULL;
}

static void ends(void)
{
	__itt_event event = __itt_event_create("bad event", 9);
	__itt_id id = make_id(1);

	task_end(bad);
	__itt_task_end_ex(bad, NULL, 0);
	__itt_event_end(event);
	__itt_event_end(12345);
	__itt_event_start(-1);
	__itt_event_start(INT_MAX);
	__itt_task_end_overlapped(bad, id);
	__itt_region_end(bad, id);
	__itt_frame_end_v3(bad, &id);
	__itt_frame_end_v3(bad, NULL);
	__itt_sync_acquired(&id);
	__itt_sync_cancel(&id);
	__itt_heap_free_end(NULL, NULL);
	task_begin(bad, name("ended by another")); /* which cannot: unfinished */
	elsewhere(end_only, NULL);
	for (int i = 0; i < 1000; i++)
		task_end(bad);
}

static void twice(void)
{
	__itt_id id = make_id(2);

	for (int i = 0; i < 2; i++)
		__itt_region_begin(bad, id, __itt_null, name("region twice"));
	for (int i = 0; i < 3; i++)
		__itt_region_end(bad, id);
	for (int i = 0; i < 2; i++)
		__itt_frame_begin_v3(bad, &id);
	for (int i = 0; i < 3; i++)
		__itt_frame_end_v3(bad, &id);
	__itt_task_begin_overlapped(bad, id, __itt_null, name("overlapped twice"));
	__itt_task_begin_overlapped(bad, id, __itt_null, name("overlapped twice"));
	for (int i = 0; i < 3; i++)
		__itt_task_end_overlapped(bad, id);
	for (int i = 0; i < 2; i++)
		__itt_sync_prepare(&id);
	for (int i = 0; i < 3; i++)
		__itt_sync_acquired(&id);
}

static void unopened(void)
{
	int32_t value = 1;

	__itt_metadata_add(bad, make_id(3), name("of an id never seen"), __itt_metadata_s32, 1,
			   &value);
	__itt_relation_add(bad, make_id(3), __itt_relation_is_parent_of, make_id(4));
	__itt_relation_add(bad, __itt_null, (__itt_relation)99, __itt_null);
	__itt_task_begin(bad, make_id(5), make_id(6), name("child of nobody"));
	__itt_relation_add(bad, make_id(5), __itt_relation_is_sibling_of, make_id(5));
	task_end(bad);
	__itt_metadata_add(bad, make_id(5), name("of an ended task"), __itt_metadata_s32, 1,
			   &value);
	__itt_id_destroy(bad, make_id(7));
	__itt_task_group(bad, __itt_null, __itt_null, name("group without id"));
}

/* ---- NULL ---- */

static void nulls(void)
{
	__itt_domain *null_name = __itt_domain_create(NULL);
	uint64_t value = 1;
	__itt_id id = make_id(8);
	__itt_counter counter;

	if (null_name)
		finished_task(null_name, name("of a domain without name"));
	finished_task(bad, NULL);
	finished_task(bad, name(NULL));
	__itt_task_begin_fn(bad, __itt_null, __itt_null, NULL);
	task_end(bad);
	__itt_task_begin_ex(bad, NULL, 0, __itt_null, __itt_null, NULL);
	__itt_task_end_ex(bad, NULL, 0);
	__itt_task_begin_overlapped(bad, __itt_null, __itt_null, NULL);
	__itt_task_end_overlapped(bad, __itt_null);
	__itt_region_begin(bad, __itt_null, __itt_null, NULL);
	__itt_region_end(bad, __itt_null);
	__itt_frame_submit_v3(bad, NULL, 0, 0);
	__itt_frame_submit_v3(bad, &id, UINT64_MAX, 1);
	__itt_marker(bad, __itt_null, NULL, __itt_scope_unknown);
	__itt_marker(bad, __itt_null, name("scope"), (__itt_scope)77);
	__itt_task_group(bad, id, __itt_null, NULL);
	task_begin(bad, name("around"));
	__itt_metadata_add(bad, __itt_null, NULL, __itt_metadata_u64, 1, &value);
	__itt_metadata_add(bad, __itt_null, name("null data"), __itt_metadata_u64, 1, NULL);
	__itt_metadata_add(bad, __itt_null, name("no values"), __itt_metadata_u64, 0, &value);
	__itt_metadata_add(bad, __itt_null, name("type"), (__itt_metadata_type)55, 1, &value);
	__itt_metadata_str_add(bad, __itt_null, name("null text"), NULL, 4);
	__itt_metadata_str_add(bad, __itt_null, name("empty"), "", 0);
	__itt_metadata_add_with_scope(bad, (__itt_scope)66, NULL, __itt_metadata_u64, 1, NULL);
	__itt_formatted_metadata_add(bad, NULL, 1);
	__itt_formatted_metadata_add(bad, name("%s"), (char *)NULL);
	task_end(bad);
	__itt_set_track(NULL);
	__itt_set_track(__itt_track_create(NULL, NULL, __itt_track_type_normal));
	finished_task(bad, name("track without names"));
	__itt_set_track(NULL);
	(void)(__itt_track_group_create(NULL, __itt_track_group_type_normal));
	counter = __itt_counter_create(NULL, NULL);
	__itt_counter_inc(counter);
	__itt_counter_inc(NULL);
	__itt_counter_set_value(NULL, &value);
	counter = __itt_counter_create("without domain", NULL);
	__itt_counter_set_value(counter, NULL);
	__itt_counter_set_value_ex(counter, NULL, 0, NULL);
	__itt_counter_destroy(NULL);
	__itt_counter_inc_v3(bad, NULL);
	__itt_bind_context_metadata_to_counter(NULL, 1, NULL);
	__itt_bind_context_metadata_to_counter(counter, 1, NULL);
	(void)(__itt_clock_domain_create(NULL, NULL));
	__itt_clock_domain_reset();
}

static void more_nulls(void)
{
	__itt_module_object empty = { 0 };
	__itt_histogram *histogram =
		__itt_histogram_create(bad, "histogram", __itt_metadata_u64, __itt_metadata_u64);
	uint64_t value = 1;
	void *null = NULL;

	__itt_histogram_submit(NULL, 1, &value, &value);
	__itt_histogram_submit(histogram, 1, NULL, NULL);
	__itt_histogram_submit(histogram, 0, &value, &value);
	(void)(__itt_histogram_create(bad, NULL, __itt_metadata_u64, __itt_metadata_u64));
	__itt_thread_set_name(NULL);
	__itt_sync_create(NULL, NULL, NULL, 0);
	__itt_sync_prepare(NULL);
	__itt_sync_acquired(NULL);
	__itt_sync_rename(NULL, NULL);
	__itt_sync_destroy(NULL);
	__itt_heap_allocate_end(NULL, NULL, 1, 0);
	__itt_heap_allocate_end(__itt_heap_function_create(NULL, NULL), &null, 1, 0);
	__itt_heap_reallocate_end(NULL, NULL, NULL, 1, 0);
	__itt_model_site_begin(NULL, NULL, NULL);
	__itt_model_task_beginA(NULL);
	__itt_model_task_beginAL(NULL, 100);
	__itt_model_lock_acquire(NULL);
	__itt_module_load(NULL, NULL, NULL);
	__itt_module_unload(NULL);
	__itt_module_load_with_sections(NULL);
	__itt_module_load_with_sections(&empty);
	__itt_module_unload_with_sections(NULL);
	(void)(__itt_av_save(NULL, -1, NULL, -1, NULL, -1));
	(void)(__itt_mark_create(NULL));
	(void)(__itt_mark(-1, NULL));
	(void)(__itt_mark_off(1000000));
	(void)(__itt_event_create(NULL, 5));
}

/* ---- too much ---- */

static void huge(void)
{
	char *text = malloc(MIB + 1);
	uint64_t *values = calloc(MIB, sizeof(*values));

	if (!text || !values)
		die("malloc");
	memset(text, 'x', MIB);
	text[MIB] = '\0';
	finished_task(bad, name(text));
	finished_task(__itt_domain_create(text), name("huge domain"));
	task_begin(bad, name("huge metadata"));
	__itt_metadata_str_add(bad, __itt_null, name("text"), text, MIB);
	__itt_metadata_add(bad, __itt_null, name("values"), __itt_metadata_u64, MIB, values);
	__itt_formatted_metadata_add(bad, name("%s"), text);
	for (int i = 0; i < 100; i++)
		__itt_metadata_add(bad, __itt_null, name("again"), __itt_metadata_u64, 200, values);
	task_end(bad);
	__itt_histogram_submit(__itt_histogram_create(bad, "huge histogram", __itt_metadata_u64,
						      __itt_metadata_u64),
			       MIB, values, values);
	__itt_event_start(__itt_event_create(text, MIB));
	__itt_thread_set_name(text);
	__itt_sync_create(values, text, text, 0);
	__itt_sync_prepare(values);
	__itt_sync_acquired(values);
	free(values);
	free(text);
}

static void counts(void)
{
	uint64_t value = UINT64_MAX;
	__itt_counter counter = __itt_counter_create("counts", "bad");
	__itt_counter real = __itt_counter_create_typed("real", "bad", __itt_metadata_double);
	double odd[] = { NAN, INFINITY, -INFINITY, 1.0 };

	__itt_counter_set_value(counter, &value);
	__itt_counter_inc(counter);
	__itt_counter_dec(counter);
	__itt_counter_dec_delta(counter, UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		__itt_counter_set_value(real, &odd[i]);
	task_begin(bad, name("counts"));
	__itt_metadata_add(bad, __itt_null, name("not numbers"), __itt_metadata_double, 4, odd);
	__itt_metadata_str_add(bad, __itt_null, name("endless"), "ends", (size_t)-1);
	for (int i = 0; i < 3; i++)
		__itt_metadata_add(bad, __itt_null, name("same key"), __itt_metadata_u64, 1,
				   &value);
	task_end(bad);
	__itt_event_start(__itt_event_create("event", -1));
	__itt_event_start(__itt_event_create("event", 0));
}

static void invalid_utf8(void)
{
	static const char wrong[] = "\303(\377\300\200\355\240\200\360\237";

	finished_task(bad, name(wrong));
	task_begin(bad, name("wrong metadata"));
	__itt_metadata_str_add(bad, __itt_null, name(wrong), wrong, sizeof(wrong) - 1);
	__itt_metadata_str_add(bad, __itt_null, name("with zeros"), "a\0b\0c", 5);
	__itt_formatted_metadata_add(bad, name("%s\303"), wrong);
	task_end(bad);
	__itt_marker(bad, __itt_null, name(wrong), __itt_scope_track);
	__itt_counter_inc(__itt_counter_create(wrong, wrong));
	__itt_event_start(__itt_event_create(wrong, 3));
	__itt_module_load(NULL, NULL, wrong);
}

static void formats(void)
{
	task_begin(bad, name("formats"));
	__itt_formatted_metadata_add(bad, name("%"), 1);
	__itt_formatted_metadata_add(bad, name("%q %"), 1);
	__itt_formatted_metadata_add(bad, name("%1000000d"), 1);
	__itt_formatted_metadata_add(bad, name("%*d"), INT_MIN, 1);
	task_end(bad);
}

/* Also handles: an application that makes a name for each of its objects. */
static void million(void)
{
	char text[32];
	long before;

	/* until then handles are the static part's: a list that it searches */
	finished_task(bad, name("first"));
	before = resident_kib();
	for (int i = 0; i < 1000000; i++) {
		snprintf(text, sizeof(text), "handle %d", i);
		(void)name(text);
	}
	printf("growth_kib: %ld\n", resident_kib() - before);
	finished_task(bad, name(text));
}

/* ---- threads ---- */

#define THREADS 16

static pthread_barrier_t start;

struct made {
	void *domain, *handle, *counter, *track;
};

static void *create_same(void *arg)
{
	struct made *ret = arg;
	__itt_track_group *group;

	pthread_barrier_wait(&start);
	ret->domain = __itt_domain_create("same domain");
	ret->handle = name("same name");
	ret->counter = __itt_counter_create("same counter", "bad");
	group = __itt_track_group_create(ret->handle, __itt_track_group_type_normal);
	ret->track = __itt_track_create(group, ret->handle, __itt_track_type_normal);
	return NULL;
}

static void same(void)
{
	pthread_t threads[THREADS];
	struct made made[THREADS] = { 0 };
	int equal = 0;

	finished_task(bad, name("first")); /* until then objects are the static part's */
	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		threads[i] = start_thread(create_same, &made[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		equal += !memcmp(&made[i], &made[0], sizeof(made[0]));
	}
	printf("same: %d of %d\n", equal, THREADS);
}

static pthread_key_t key;

/* The collector's own destructor may have run already. */
static void last_words(void *rounds)
{
	int32_t value = 1;

	task_begin(bad, name("of a destructor"));
	__itt_metadata_add(bad, __itt_null, name("value"), __itt_metadata_s32, 1, &value);
	__itt_marker(bad, __itt_null, name("of a destructor"), __itt_scope_track);
	__itt_counter_inc(__itt_counter_create("of a destructor", "bad"));
	task_end(bad);
	if ((uintptr_t)rounds > 1)
		pthread_setspecific(key, (void *)((uintptr_t)rounds - 1));
}

static void *thread_with_last_words(void *unused)
{
	(void)unused;
	pthread_setspecific(key, (void *)3);
	finished_task(bad, name("before the destructor"));
	return NULL;
}

static void destructors(void)
{
	pthread_key_create(&key, last_words);
	for (int i = 0; i < 10; i++)
		elsewhere(thread_with_last_words, NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "ends", ends },
	{ "twice", twice },
	{ "unopened", unopened },
	{ "nulls", nulls },
	{ "more_nulls", more_nulls },
	{ "huge", huge },
	{ "counts", counts },
	{ "utf8", invalid_utf8 },
	{ "formats", formats },
	{ "same", same },
	{ "destructors", destructors },
	{ "million", million },
	{ "deep", deep },
};

int main(int argc, char **argv)
{
	bad = __itt_domain_create("bad");
	for (int i = 1; i < argc; i++) {
		int found = 0;

		for (size_t c = 0; c < ARRAY_SIZE(cases); c++)
			if (!strcmp(argv[i], "all") || !strcmp(argv[i], cases[c].name)) {
				cases[c].run();
				found++;
			}
		if (!found) {
			fprintf(stderr, "itt_bad: no case %s\n", argv[i]);
			return 2;
		}
	}
	finished_task(bad, name("survived"));
	printf("survived\n");
	return 0;
}
