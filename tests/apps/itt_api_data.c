/*
 * What carries values: metadata, counters, histograms, heaps, models, modules.
 */
#define INTEL_ITTNOTIFY_API_PRIVATE
#include <errno.h>
#include <fenv.h>
#include <stdint.h>
#include <wchar.h>

#include "itt_app.h"
#include "itt_api.h"

#define name(text) (__itt_string_handle_create(text))

static __itt_id make_id(uint64_t number)
{
	static char base;

	return __itt_id_make(&base, number);
}

/* ---- metadata ---- */

static void add_numbers(__itt_domain *domain, __itt_id id)
{
	uint64_t u64[] = { 0, 1, UINT64_MAX };
	int64_t s64[] = { INT64_MIN, -1, INT64_MAX };
	uint32_t u32[] = { 7, UINT32_MAX };
	int32_t s32[] = { INT32_MIN, 8 };
	uint16_t u16[] = { 9, UINT16_MAX };
	int16_t s16[] = { INT16_MIN, 10 };
	float f32[] = { 1.5F, -0.25F };
	double f64[] = { 0.1, -1e300 };

	__itt_metadata_add(domain, id, name("u64"), __itt_metadata_u64, ARRAY_SIZE(u64), u64);
	__itt_metadata_add(domain, id, name("s64"), __itt_metadata_s64, ARRAY_SIZE(s64), s64);
	__itt_metadata_add(domain, id, name("u32"), __itt_metadata_u32, ARRAY_SIZE(u32), u32);
	__itt_metadata_add(domain, id, name("s32"), __itt_metadata_s32, ARRAY_SIZE(s32), s32);
	__itt_metadata_add(domain, id, name("u16"), __itt_metadata_u16, ARRAY_SIZE(u16), u16);
	__itt_metadata_add(domain, id, name("s16"), __itt_metadata_s16, ARRAY_SIZE(s16), s16);
	__itt_metadata_add(domain, id, name("float"), __itt_metadata_float, ARRAY_SIZE(f32), f32);
	__itt_metadata_add(domain, id, name("double"), __itt_metadata_double, ARRAY_SIZE(f64), f64);
}

static void metadata(void)
{
	__itt_domain *domain = __itt_domain_create("metadata"),
		     *other = __itt_domain_create("metadata2");
	__itt_id frame = make_id(15);
	int32_t one = 1, two = 2, three = 3, four = 4;

	__itt_task_begin(domain, make_id(11), __itt_null, name("outer"));
	__itt_task_begin(domain, __itt_null, __itt_null, name("numbers"));
	add_numbers(domain, __itt_null);
	__itt_task_end(domain);
	__itt_task_begin(domain, __itt_null, __itt_null, name("texts"));
	__itt_metadata_str_add(domain, __itt_null, name("text"), "a \"text\" and more", 8);
	__itt_metadata_str_add(domain, __itt_null, name("key \\ \n"), "gr\303\274n", 5);
	__itt_metadata_add(domain, make_id(11), name("by id"), __itt_metadata_s32, 1, &one);
	__itt_task_end(domain);
	__itt_task_begin(other, __itt_null, __itt_null, name("of another domain"));
	__itt_metadata_add(domain, __itt_null, name("by domain"), __itt_metadata_s32, 1, &two);
	__itt_task_end(other);
	__itt_task_end(domain);

	__itt_region_begin(domain, make_id(14), __itt_null, name("region"));
	__itt_metadata_add(domain, make_id(14), name("of the region"), __itt_metadata_s32, 1,
			   &three);
	__itt_region_end(domain, make_id(14));
	__itt_frame_begin_v3(domain, &frame);
	__itt_metadata_add(domain, frame, name("of the frame"), __itt_metadata_s32, 1, &four);
	__itt_frame_end_v3(domain, &frame);
	__itt_metadata_add(domain, __itt_null, name("of nobody"), __itt_metadata_s32, 1, &one);
}

static void scopes(void)
{
	__itt_domain *domain = __itt_domain_create("scopes");
	const __itt_scope scope[] = { __itt_scope_task, __itt_scope_track, __itt_scope_track_group,
				      __itt_scope_global };
	static const char *const keys[] = { "task", "track", "process", "global" };

	task_begin(domain, name("around"));
	for (int i = 0; i < 4; i++) {
		__itt_metadata_add_with_scope(domain, scope[i], name(keys[i]), __itt_metadata_s32,
					      1, &i);
		__itt_metadata_str_add_with_scope(domain, scope[i], name("text"), keys[i],
						  strlen(keys[i]));
	}
	task_end(domain);
}

static void formatted(void)
{
	__itt_domain *domain = __itt_domain_create("formatted");
	int stored = 5;

	task_begin(domain, name("plain"));
	__itt_formatted_metadata_add(domain, name("%s: %d of %llu, %.2f%%, %c, 0x%x"), "step", -3,
				     12345678901234ULL, 62.5, 'c', 255);
	task_end(domain);
	task_begin(domain, name("without a trace"));
	errno = 7;
	(void)feclearexcept(FE_ALL_EXCEPT);
	__itt_formatted_metadata_add(domain, name("%lc, %ls, %m, %n%.3g, %La"), 0xe9,
				     L"\u20ac \U0001f600", &stored, 1e300 / 3, 1.5L);
	__itt_counter_set_value(__itt_counter_create_typed("no number", "formatted",
							   __itt_metadata_float),
				&(uint32_t){ 0x7fa00000 }); /* as a float, it signals */
	printf("errno %d, exceptions %d, stored %d\n", errno, fetestexcept(FE_ALL_EXCEPT), stored);
	task_end(domain);
	task_begin(domain, name("long"));
	__itt_formatted_metadata_add(domain, name("%.*f"), 900000000, 0.1);
	__itt_formatted_metadata_add(domain, name("%*d|%s"), 2000000000, 1, "behind");
	__itt_formatted_metadata_add(domain, name("%d, %2$d"), 1, 2);
	task_end(domain);
	__itt_task_begin_overlapped(domain, make_id(21), __itt_null, name("overlapped"));
	__itt_formatted_metadata_add_overlapped(domain, make_id(21), name("rank %ld of %zu"), 3L,
						(size_t)8);
	__itt_task_end_overlapped(domain, make_id(21));
}

/* ---- counters ---- */

static void *set_elsewhere(void *counter)
{
	uint64_t value = 300;

	__itt_counter_set_value((__itt_counter)counter, &value);
	return NULL;
}

#define set_typed(text, type, ctype, a, b)                                                   \
	do {                                                                                 \
		__itt_counter typed =                                                        \
			__itt_counter_create_typed(text, "counters", __itt_metadata_##type); \
		ctype values[] = { a, b };                                                   \
                                                                                             \
		__itt_counter_set_value(typed, &values[0]);                                  \
		__itt_counter_set_value(typed, &values[1]);                                  \
		__itt_counter_destroy(typed);                                                \
	} while (0)

static void counters(void)
{
	__itt_domain *domain = __itt_domain_create("counters");
	__itt_counter plain = __itt_counter_create("plain", "counters"), v3;
	uint64_t value = 100;
	double real = -2.5;

	fact("same_counter", "%d", plain == (__itt_counter_create("plain", "counters")));
	__itt_counter_inc(plain);
	__itt_counter_inc(plain);
	__itt_counter_dec(plain);
	__itt_counter_inc_delta(plain, 10);
	__itt_counter_dec_delta(plain, 3);
	__itt_counter_set_value(plain, &value);
	value = 200;
	__itt_counter_set_value_ex(plain, NULL, 0, &value);
	elsewhere(set_elsewhere, plain);
	__itt_counter_inc(plain);
	__itt_counter_destroy(plain);

	set_typed("u64", u64, uint64_t, 1, UINT64_MAX);
	set_typed("s64", s64, int64_t, INT64_MIN, 2);
	set_typed("u32", u32, uint32_t, 3, UINT32_MAX);
	set_typed("s32", s32, int32_t, INT32_MIN, 4);
	set_typed("u16", u16, uint16_t, 5, UINT16_MAX);
	set_typed("s16", s16, int16_t, INT16_MIN, 6);
	set_typed("float", float, float, 1.5F, -0.25F);
	set_typed("double", double, double, 0.1, -1e300);

	v3 = __itt_counter_create_v3(domain, "v3", __itt_metadata_double);
	__itt_counter_set_value_v3(v3, &real);
	__itt_counter_inc_v3(domain, name("by handle"));
	__itt_counter_inc_delta_v3(domain, name("by handle"), 20);
	__itt_counter_dec_v3(domain, name("by handle"));
	__itt_counter_dec_delta_v3(domain, name("by handle"), 15);
}

static void bound(void)
{
	static char text[] = "a counter", device[] = "card 0", units[] = "MB/s", pci[] = "0:3:0.1";
	static unsigned long long tid = 42, most = 1000, flag = 1;
	__itt_context_metadata what[] = {
		{ __itt_context_nameA, text },
		{ __itt_context_deviceA, device },
		{ __itt_context_unitsA, units },
		{ __itt_context_pci_addrA, pci },
		{ __itt_context_tid, &tid },
		{ __itt_context_max_val, &most },
		{ __itt_context_bandwidth_flag, &flag },
	};
	__itt_counter counter = __itt_counter_create("bound", "bound");

	/* neither of the others makes the static part look for a collector */
	__itt_counter_inc(counter);
	__itt_bind_context_metadata_to_counter(counter, ARRAY_SIZE(what), what);
}

static void histograms(void)
{
	__itt_domain *domain = __itt_domain_create("histograms");
	__itt_histogram *both =
		__itt_histogram_create(domain, "both", __itt_metadata_u64, __itt_metadata_double);
	__itt_histogram *only_y =
		__itt_histogram_create(domain, "only y", __itt_metadata_u64, __itt_metadata_s32);
	uint64_t x[] = { 1, 10, 100 };
	double y[] = { 0.5, 2.5, 12.5 };
	int32_t counts[] = { 4, -5, 6, 7 };

	__itt_histogram_submit(both, ARRAY_SIZE(x), x, y);
	__itt_histogram_submit(only_y, ARRAY_SIZE(counts), NULL, counts);
}

/* ---- heaps, models, modules ---- */

static void heap(void)
{
	__itt_heap_function h = __itt_heap_function_create("pool", "heap");
	void *p = (void *)(uintptr_t)0x1000, *q = (void *)(uintptr_t)0x2000;

	__itt_heap_allocate_begin(h, 100, 0);
	__itt_heap_allocate_end(h, &p, 100, 0);
	__itt_heap_reallocate_begin(h, p, 200, 1);
	__itt_heap_reallocate_end(h, p, &q, 200, 1);
	__itt_heap_free_begin(h, q);
	__itt_heap_free_end(h, q);
	__itt_heap_internal_access_begin();
	__itt_heap_internal_access_end();
	__itt_heap_record_memory_growth_begin();
	__itt_heap_record_memory_growth_end();
	__itt_heap_reset_detection(__itt_heap_leaks);
	__itt_heap_record(__itt_heap_growth);
}

static void model(void)
{
	__itt_model_site site = NULL, site_instance = NULL;
	__itt_model_task task = NULL, task_instance = NULL;
	void *at = (void *)(uintptr_t)0x3000;

	__itt_model_site_begin(&site, &site_instance, "site plain");
	__itt_model_task_begin(&task, &task_instance, "task plain");
	__itt_model_lock_acquire(at);
	__itt_model_lock_release(at);
	__itt_model_record_allocation(at, 301);
	__itt_model_induction_uses(at, 302);
	__itt_model_reduction_uses(at, 303);
	__itt_model_observe_uses(at, 304);
	__itt_model_clear_uses(at);
	__itt_model_record_deallocation(at);
	__itt_model_task_end(&task, &task_instance);
	__itt_model_site_end(&site, &site_instance);

	__itt_model_site_beginA("site A");
	__itt_model_task_beginA("task A");
	__itt_model_lock_acquire_2(at);
	__itt_model_lock_release_2(at);
	__itt_model_task_end_2();
	__itt_model_site_end_2();
	__itt_model_site_beginAL("site AL, cut", 7);
	__itt_model_task_beginAL("task AL, cut", 7);
	__itt_model_iteration_taskA("iteration A");
	__itt_model_iteration_taskAL("iteration AL, cut", 12);
	__itt_model_aggregate_task(5);
	__itt_model_disable_push(__itt_model_disable_collection);
	__itt_model_disable_pop();
	__itt_model_task_end_2();
	__itt_model_site_end_2();
}

static void modules(void)
{
	void *start = (void *)(uintptr_t)0x4000, *end = (void *)(uintptr_t)0x5000;
	__itt_section_info section = {
		".text", itt_section_type_text, __itt_section_exec, start, 0x800, 0
	};
	__itt_module_object object = {
		.version = 1,
		.module_id = make_id(91),
		.module_type = __itt_module_type_elf,
		.module_name = "/lib/with sections.so",
		.section_array = &section,
		.section_number = 1,
	};
	int data[6] = { 0 }, dimensions[2] = { 2, 3 };

	__itt_module_load(start, end, "/lib/loaded.so");
	__itt_module_unload(start);
	__itt_module_load_with_sections(&object);
	__itt_module_unload_with_sections(&object);
	__itt_av_save(data, 2, dimensions, __itt_e_int32, "/tmp/array.csv", 0);
}

const struct scenario api_data[] = {
	{ "metadata", metadata, false },   { "scopes", scopes, false },
	{ "formatted", formatted, false }, { "counters", counters, false },
	{ "bound", bound, false },	   { "histograms", histograms, false },
	{ "heap", heap, false },	   { "model", model, false },
	{ "modules", modules, false },	   { 0 },
};
