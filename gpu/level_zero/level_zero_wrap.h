/*
 * Between the generated Level Zero wrappers (interpose/generate.py) and what they call.
 */
#ifndef XS_LEVEL_ZERO_WRAP_H
#define XS_LEVEL_ZERO_WRAP_H

#include <string.h>

#include "call_values.h"
#include "level_zero_functions.h"
#include "level_zero_tables.h"
#include "own_time.h"

extern struct xs_ze_tables xs_ze; /* the functions below us; NULL: none */
extern bool xs_ze_calls;	  /* record the calls that are hooked for other reasons too */
/* the same of those that have to do with kernels, and other commands */
extern bool xs_ze_kernel_calls;
extern bool xs_ze_appends; /* the same of calls that put work on a device */
extern bool xs_ze_waits;   /* record for what calls have waited */
extern bool xs_ze_device;  /* device work is wanted */
extern bool xs_ze_queries; /* kernels are to be measured */
extern bool xs_ze_places;  /* where kernels lie is to be told */

/*
 * Where one of the loader's tables lies, and where the last one lay that has its name and got
 * wrappers; NULL: it is the first.
 */
struct xs_ze_place {
	const char *entries, *before;
	/*
	 * objects go from one of its functions to another: all of them are taken, or none after the
	 * first that is refused
	 */
	bool whole;
	bool taken, refused; /* some of its functions, since xs_ze_wrap() began */
};

/* Keeps a function as the one below its wrapper. False: another one is there already. */
bool xs_ze_take(void **target, void *real);
/*
 * The same of a table's entry, which gets the wrapper (NULL: none). Refused: the other one is still
 * in use, and another loader's.
 */
void xs_ze_put(struct xs_ze_place *place, void **entry, void **target, void *wrapper);

/*
 * Generated: puts the wrappers into one of the loader's tables, all of them or those that device
 * times need.
 */
void xs_ze_wrap(uint32_t number, uint32_t version, void *entries, bool all,
		struct xs_ze_place *place);
/* Generated: the wrapper of an extension function found at `real`, or `real`. */
void *xs_ze_wrap_extension(const char *name, void *real, bool all);

/* Here and not behind the wrappers: what it gives is one of them. */
static inline ze_result_t xs_hook_zeDriverGetExtensionFunctionAddress(ze_driver_handle_t driver,
								      const char *name,
								      void **function)
{
	ze_result_t result = xs_ze.zeDriver.pfnGetExtensionFunctionAddress(driver, name, function);

	if (!result && name && function && *function)
		*function = xs_ze_wrap_extension(name, *function, xs_ze_calls);
	return result;
}

/* The record's flag. To ask whether something is ready and to hear that it is not is no failure. */
static inline uint8_t xs_ze_failed(ze_result_t result)
{
	return result && result != ZE_RESULT_NOT_READY ? XS_CALL_FLAG_FAILED : 0;
}

/* ---- level_zero_work.c: a call that puts work on a device ---- */

struct xs_ze_work {
	struct xs_call call;
	struct xs_own_time time;
	struct xs_ze_node *node; /* NULL: no device times wanted or possible */
	struct xs_ze_list *list;
	ze_command_list_handle_t handle;
	ze_event_handle_t signal_after; /* the application's event, where ours took its place */
	uint32_t function;
	bool resets;  /* the event is one that is reset on the device */
	bool shares;  /* a command of another list or graph signals it, too */
	bool untimed; /* times are wanted, and not possible */
	bool paused;  /* nothing is recorded, of the call neither */
};

/* *event becomes ours where the application has none. False: not recorded. */
bool xs_ze_enter(struct xs_ze_work *work, ze_command_list_handle_t list, uint32_t function,
		 uint8_t class, ze_event_handle_t *event);
/* Directly before the call: what was done since it began is ours. */
static inline void xs_ze_ready(struct xs_ze_work *work)
{
	work->time.tick = work->call.tick; /* it may have begun anew */
	if (work->node)
		xs_own_time_end(&work->time);
}
/* Returns what the application gets. */
ze_result_t xs_ze_leave(struct xs_ze_work *work, ze_result_t result);
/*
 * *event is given back when the kernel is not to be shown. groups NULL: only the device knows.
 * wait: what the kernel waits for.
 */
void xs_ze_launch(struct xs_ze_work *work, ze_kernel_handle_t kernel,
		  const ze_group_count_t *groups, ze_event_handle_t *event, uint32_t nwait,
		  ze_event_handle_t *wait);
void xs_ze_copy(struct xs_ze_work *work, const void *to, const void *from, uint64_t bytes);
void xs_ze_image_copy(struct xs_ze_work *work, ze_image_handle_t image,
		      const ze_image_region_t *region, const void *to, const void *from);
uint64_t xs_ze_region(const ze_copy_region_t *region);

/* ---- what other calls mean ---- */

/* Captures of immediate lists into graphs that go on just now. */
extern _Atomic uint32_t xs_ze_captures;
/*
 * A list that waits for an event of a captured one is captured too, from that command on. Before
 * each call that may wait or signal.
 */
void xs_ze_capture_follow(ze_command_list_handle_t list, ze_event_handle_t signal, uint32_t nwait,
			  const ze_event_handle_t *wait);
static inline void xs_ze_capture_spreads(ze_command_list_handle_t list, ze_event_handle_t signal,
					 uint32_t nwait, const ze_event_handle_t *wait)
{
	if (__builtin_expect(atomic_load_explicit(&xs_ze_captures, memory_order_relaxed), 0))
		xs_ze_capture_follow(list, signal, nwait, wait);
}
/* The call's result is this: a list that it would have captured is not, if it failed. */
void xs_ze_capture_spread(ze_command_list_handle_t list, ze_result_t result);
void xs_ze_capture_begins(ze_command_list_handle_t list, const void *graph, ze_result_t result);
void xs_ze_capture_ends(ze_command_list_handle_t list, const void *graph, ze_result_t result);
void xs_ze_graph_instantiated(const void *graph, const void *executable, ze_result_t result);
void xs_ze_graph_ends(const void *graph);
void xs_ze_executable_ends(const void *executable);
/* id 0: there is none */
void xs_ze_command_names(ze_command_list_handle_t list);
void xs_ze_command_named(ze_command_list_handle_t list, uint64_t id);
void xs_ze_commands_change(ze_command_list_handle_t list);
void xs_ze_commands_changed(ze_command_list_handle_t list, const void *desc, ze_result_t result);
void xs_ze_command_kernels(ze_command_list_handle_t list, uint32_t count, const uint64_t *ids,
			   const ze_kernel_handle_t *kernels, ze_result_t result);
void xs_ze_context_ends(ze_context_handle_t context);
void xs_ze_module_ends(ze_module_handle_t module);
void xs_ze_kernel_ends(ze_kernel_handle_t kernel);
void xs_ze_kernel_shaped(ze_kernel_handle_t kernel, uint32_t x, uint32_t y, uint32_t z,
			 ze_result_t result);
/* Three numbers, as ze_group_size_t and, in older headers' stead, ze_group_count_t have them. */
static inline void xs_ze_kernel_shaped_as(ze_kernel_handle_t kernel, const void *sizes)
{
	uint32_t size[3];

	memcpy(size, sizes, sizeof(size));
	xs_ze_kernel_shaped(kernel, size[0], size[1], size[2], ZE_RESULT_SUCCESS);
}
/* The program chooses what the device counts. */
void xs_ze_metrics_yield(ze_device_handle_t device);
void xs_ze_image_ends(ze_image_handle_t image);
void xs_ze_memory_changes(void);
void xs_ze_pool_ends(ze_event_pool_handle_t pool);
void xs_ze_event_ends(ze_event_handle_t event);
void xs_ze_event_changes(ze_event_handle_t event);
void xs_ze_event_signalled(ze_event_handle_t event);
void xs_ze_event_resets(ze_command_list_handle_t list, ze_event_handle_t event);
/*
 * A call that may have waited, when it began; 0: it is not recorded, or no option needs to know for
 * what it waited.
 */
void xs_ze_event_seen(ze_event_handle_t event, ze_result_t result, uint64_t began);
void xs_ze_fence_ends(ze_fence_handle_t fence, bool destroyed);
void xs_ze_fence_seen(ze_fence_handle_t fence, ze_result_t result, uint64_t began);
void xs_ze_queue_ends(ze_command_queue_handle_t queue);
/* On a synchronous queue the call has waited for what it has submitted. */
void xs_ze_lists_executed(ze_command_queue_handle_t queue, ze_result_t result, uint64_t began);
void xs_ze_queue_seen(ze_command_queue_handle_t queue, ze_result_t result, uint64_t began);
void xs_ze_list_ends(ze_command_list_handle_t list, bool destroyed);
void xs_ze_list_seen(ze_command_list_handle_t list, ze_result_t result, uint64_t began);

#endif
