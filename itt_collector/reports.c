/*
 * What programs tell about their memory, models, modules and compiled methods: instants, with what
 * is known as arguments.
 */
#include "itt.h"

#include <string.h>

#include "jit.h"
#include "task_record.h"

static const struct xs_id null_id;

/* ---- memory ---- */

struct heap {
	const char *name;
};

static void init_heap(void *payload, const char *name)
{
	((struct heap *)payload)->name = name;
}
ITT_TABLE(heaps, 4096, struct heap, init_heap);

EXPORT void *__itt_heap_function_create(const char *name, const char *domain)
{
	return itt_object_in(&heaps, domain, name);
}

static void heap_event(const struct heap *heap, const char *what, const void *address,
		       const void *old, const size_t *size)
{
	struct itt_args args;

	if (!heap || !itt_recording())
		return;
	if (!itt_args_begin(&args, XS_INSTANT, XS_SCOPE_THREAD, itt_join(heap->name, " ", what, 0),
			    null_id))
		return;
	itt_arg_address(&args, "address", address);
	if (old)
		itt_arg_address(&args, "old", old);
	if (size)
		itt_arg_number(&args, "size", *size);
	itt_args_end(&args, 0);
}

EXPORT void __itt_heap_allocate_begin(void *heap, size_t size, int initialized)
{
	(void)heap, (void)size, (void)initialized; /* the end has it all */
}

EXPORT void __itt_heap_allocate_end(void *heap, void **address, size_t size, int initialized)
{
	(void)initialized;
	heap_event(heap, "allocate", address ? *address : NULL, NULL, &size);
}

EXPORT void __itt_heap_free_begin(void *heap, void *address)
{
	(void)heap, (void)address;
}

EXPORT void __itt_heap_free_end(void *heap, void *address)
{
	heap_event(heap, "free", address, NULL, NULL);
}

EXPORT void __itt_heap_reallocate_begin(void *heap, void *address, size_t size, int initialized)
{
	(void)heap, (void)address, (void)size, (void)initialized;
}

EXPORT void __itt_heap_reallocate_end(void *heap, void *address, void **fresh, size_t size,
				      int initialized)
{
	(void)initialized;
	heap_event(heap, "reallocate", fresh ? *fresh : NULL, address, &size);
}

/* An instant of the entry point's own name, with one number. */
static void note(const char *name, const char *key, uint64_t number)
{
	struct itt_args args;

	if (!itt_recording())
		return;
	if (!itt_args_begin(&args, XS_INSTANT, XS_SCOPE_THREAD, xs_name(name, 0), null_id))
		return;
	if (key)
		itt_arg_number(&args, key, number);
	itt_args_end(&args, 0);
}

#define NOTE(function)                     \
	EXPORT void __itt_##function(void) \
	{                                  \
		note(#function, NULL, 0);  \
	}
#define NOTE_NUMBER(function, type, key)                \
	EXPORT void __itt_##function(type number)       \
	{                                               \
		note(#function, key, (uint64_t)number); \
	}

NOTE(heap_internal_access_begin)
NOTE(heap_internal_access_end)
NOTE(heap_record_memory_growth_begin)
NOTE(heap_record_memory_growth_end)
NOTE_NUMBER(heap_reset_detection, unsigned, "mask")
NOTE_NUMBER(heap_record, unsigned, "mask")

/* ---- models (Advisor's annotations) ---- */

/* `length`: of the name at most. */
static void model_of(const char *function, const char *name, size_t length, const void *address,
		     const size_t *size)
{
	struct xs_part parts[] = { { function, (uint32_t)strlen(function) },
				   { " ", 1 },
				   { name, name ? (uint32_t)strnlen(name, length < XS_STRING_MAX
										  ? length
										  : XS_STRING_MAX)
						: 0 } };
	struct itt_args args;

	if (!itt_recording() || !itt_args_begin(&args, XS_INSTANT, XS_SCOPE_THREAD,
						xs_name_parts(parts, name ? 3 : 1, 0), null_id))
		return;
	if (address)
		itt_arg_address(&args, "address", address);
	if (size)
		itt_arg_number(&args, "size", *size);
	itt_args_end(&args, 0);
}

static void model(const char *function, const char *name, const void *address, const size_t *size)
{
	model_of(function, name, SIZE_MAX, address, size);
}

EXPORT void __itt_model_site_begin(void *site, void *instance, const char *name)
{
	(void)site, (void)instance;
	model("model_site_begin", name, NULL, NULL);
}

EXPORT void __itt_model_site_end(void *site, void *instance)
{
	(void)site, (void)instance;
	model("model_site_end", NULL, NULL, NULL);
}

EXPORT void __itt_model_task_begin(void *task, void *instance, const char *name)
{
	(void)task, (void)instance;
	model("model_task_begin", name, NULL, NULL);
}

EXPORT void __itt_model_task_end(void *task, void *instance)
{
	(void)task, (void)instance;
	model("model_task_end", NULL, NULL, NULL);
}

#define MODEL_NAME(function, shown)                                       \
	EXPORT void __itt_##function##A(const char *name)                 \
	{                                                                 \
		model(shown, name, NULL, NULL);                           \
	}                                                                 \
	EXPORT void __itt_##function##AL(const char *name, size_t length) \
	{                                                                 \
		model_of(shown, name ? name : "", length, NULL, NULL);    \
	}
#define MODEL_ADDRESS(function, shown)              \
	EXPORT void __itt_##function(void *address) \
	{                                           \
		model(shown, NULL, address, NULL);  \
	}
#define MODEL_SIZE(function)                                     \
	EXPORT void __itt_##function(void *address, size_t size) \
	{                                                        \
		model(#function, NULL, address, &size);          \
	}
MODEL_NAME(model_site_begin, "model_site_begin")
MODEL_NAME(model_task_begin, "model_task_begin")
MODEL_NAME(model_iteration_task, "model_iteration_task")
MODEL_ADDRESS(model_lock_acquire, "model_lock_acquire")
MODEL_ADDRESS(model_lock_release, "model_lock_release")
MODEL_ADDRESS(model_lock_acquire_2, "model_lock_acquire")
MODEL_ADDRESS(model_lock_release_2, "model_lock_release")
MODEL_ADDRESS(model_record_deallocation, "model_record_deallocation")
MODEL_ADDRESS(model_clear_uses, "model_clear_uses")
MODEL_SIZE(model_record_allocation)
MODEL_SIZE(model_induction_uses)
MODEL_SIZE(model_reduction_uses)
MODEL_SIZE(model_observe_uses)
NOTE(model_disable_pop)
NOTE_NUMBER(model_disable_push, int, "mode")
NOTE_NUMBER(model_aggregate_task, size_t, "count")

EXPORT void __itt_model_site_end_2(void)
{
	note("model_site_end", NULL, 0);
}

EXPORT void __itt_model_task_end_2(void)
{
	note("model_task_end", NULL, 0);
}

/* ---- modules and arrays ---- */

static void module(const char *function, const char *path, const void *start, const void *end)
{
	struct itt_args args;

	if (!itt_recording())
		return;
	if (!itt_args_begin(&args, XS_INSTANT, XS_SCOPE_PROCESS, xs_name(function, 0), null_id))
		return;
	itt_arg_text(&args, "path", path);
	if (start)
		itt_arg_address(&args, "start", start);
	if (end)
		itt_arg_address(&args, "end", end);
	itt_args_end(&args, 0);
}

EXPORT void __itt_module_load(void *start, void *end, const char *path)
{
	module("module_load", path, start, end);
}

EXPORT void __itt_module_unload(void *start)
{
	module("module_unload", NULL, start, NULL);
}

static void module_with_sections(const char *function, const __itt_module_object *object)
{
	const char *start = NULL, *end = NULL;

	if (!object)
		return;
	for (size_t i = 0; object->section_array && i < object->section_number; i++) {
		const __itt_section_info *section = &object->section_array[i];
		const char *from = section->start_addr;

		if (!start || from < start)
			start = from;
		if (from + section->size > end)
			end = from + section->size;
	}
	module(function, object->module_name, start, end);
}

EXPORT void __itt_module_load_with_sections(__itt_module_object *object)
{
	module_with_sections("module_load_with_sections", object);
}

EXPORT void __itt_module_unload_with_sections(__itt_module_object *object)
{
	module_with_sections("module_unload_with_sections", object);
}

EXPORT int __itt_av_save(void *data, int rank, const int *dimensions, int type, const char *path,
			 int column_order)
{
	struct itt_args args;

	(void)data, (void)dimensions, (void)type, (void)column_order;
	if (!itt_recording())
		return 0;
	if (!itt_args_begin(&args, XS_INSTANT, XS_SCOPE_THREAD, xs_name("av_save", 0), null_id))
		return 0;
	itt_arg_text(&args, "path", path);
	itt_arg_number(&args, "rank", (uint64_t)rank);
	itt_args_end(&args, 0);
	return 0;
}

EXPORT void xs_jit_method(const char *name, const void *address, unsigned size)
{
	struct itt_args args;

	if (!itt_recording())
		return;
	if (!itt_args_begin(&args, XS_INSTANT, XS_SCOPE_PROCESS,
			    itt_join("jit", " ", name ? name : "(no name)", 0), null_id))
		return;
	itt_arg_address(&args, "address", address);
	itt_arg_number(&args, "size", size);
	itt_args_end(&args, 0);
}
