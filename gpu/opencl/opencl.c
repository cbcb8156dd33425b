/*
 * OpenCL's commands in flight.
 *
 * Device times come from the runtime's own profiling: queues are created with it, whatever the
 * application asked for, and the application goes on seeing what it asked for. Each command's event
 * gets a completion callback that writes one record. No call of the application waits for anything
 * that it would not wait for without us.
 */
#include "device_record.h"
#include "lock.h"
#include "opencl.h"
#include "pool.h"
#include "sys.h"
#include "waited.h"

/* ---- commands in flight ---- */

enum { NODE_FREE, NODE_ACTIVE, NODE_BUSY, NODE_RECORDED, NODE_LEFT, NODE_RELEASING };

/*
 * What the two threads of a command, who enqueues it and who completes it, pass to each other: one
 * cache line in most cases.
 */
struct node {
	union {
		struct xs_pool_item pool; /* while it is free */
		cl_event event;
	};
	const struct xs_cl_queue *queue;
	const struct xs_cl_sizes *sizes; /* of a known kernel's launch, else NULL */
	uint64_t bytes;
	uint64_t tick;
	uint32_t host_ticks, tid;
	uint32_t id;
	uint32_t name; /* the kernel's or the command buffer's, or the function's number */
	_Atomic uint8_t state;
	bool retained; /* the event is the application's */
	bool callback; /* a callback will come: only it may free the node */
	uint8_t flags; /* enum xs_device_flags */
	bool follows;  /* there is an event `before` */
	uint8_t work, simd;
	union {
		struct xs_cl_sizes own_sizes; /* where `sizes` points if there is no other copy */
		cl_event before;	      /* it ends when the command may begin */
	};
};
static_assert(offsetof(struct node, own_sizes) <= 64, "a cache line");
static struct xs_pool nodes = { .size = (sizeof(struct node) + 63) / 64 * 64 };
static __thread struct xs_pool_item *spare __attribute__((tls_model("initial-exec")));
/* Commands, by those who enqueue (it numbers them, too) and by those who complete them: on lines of
   their own, and not beside each other, for processors fetch lines in pairs. */
static struct {
	alignas(128) _Atomic uint64_t count;
} issued, finished;
/*
 * Threads that are in a call that waits. One that was cancelled there, or left by a jump, is
 * counted for ever: locks of the runtime may be held for ever, too.
 */
static struct {
	alignas(128) _Atomic uint32_t count;
} waiting;

static bool any_in_flight(void)
{
	/* finished first: it never runs ahead of the other */
	uint64_t done = atomic_load_explicit(&finished.count, memory_order_acquire);

	return atomic_load_explicit(&issued.count, memory_order_acquire) != done;
}

static uint32_t node_count(void)
{
	return atomic_load_explicit(&nodes.count, memory_order_relaxed);
}

struct times {
	uint64_t queued, submit, start, end;
};

static bool times_of(cl_event event, struct times *ret)
{
	const cl_icd_dispatch *t = &xs_cl_target;
	bool told =
		!t->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, 8, &ret->queued,
					    NULL) &&
		!t->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_SUBMIT, 8, &ret->submit,
					    NULL) &&
		!t->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &ret->start,
					    NULL) &&
		!t->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &ret->end, NULL);

	if (!told)
		return false;
	/* Intel's runtime for processors leaves them out of markers and command buffers */
	if (!ret->submit)
		ret->submit = ret->queued ? ret->queued : ret->start;
	if (!ret->queued)
		ret->queued = ret->submit;
	return true;
}

/*
 * What the runtime says, unless most of the time from the end of `before` is outside of it: then
 * its times are those of something behind the command.
 */
static void since_before(cl_event before, struct times *times)
{
	struct times first;

	if (!times_of(before, &first) || first.end >= times->start ||
	    times->end - times->start >= times->start - first.end)
		return;
	times->queued = first.queued;
	times->submit = first.submit;
	times->start = first.end;
}

/* The command is complete: its record. */
static void node_record(struct node *node)
{
	const struct xs_cl_queue *queue = node->queue;
	const struct xs_cl_sizes *sizes = node->sizes;
	uint32_t size = sizes ? sizeof(struct xs_device_record) : XS_DEVICE_RECORD_SHORT;
	uint8_t flags = node->flags | (queue->in_order ? XS_DEVICE_FLAG_IN_ORDER : 0);
	struct xs_device_record *record;
	struct times times;

	if (!times_of(node->event, &times)) {
		xs_commands_untimed(1);
		return;
	}
	if (node->follows)
		since_before(node->before, &times);
	record = xs_record_begin(size, XS_DEVICE, XS_SOURCE_OPENCL, flags, node->name,
				 XS_ROLE_OTHER);
	if (!record) {
		xs_commands_end(1, false);
		return;
	}
	record->event.tick = node->tick;
	record->host_ticks = node->host_ticks;
	record->tid = node->tid;
	record->id = node->id;
	record->queue = queue->serial;
	record->queue_handle = (uint64_t)(uintptr_t)queue->handle;
	record->device = queue->device;
	record->device_name = xs_cl_devices[queue->device].name;
	record->device_type = xs_cl_devices[queue->device].type;
	record->work = node->work;
	record->simd = node->simd;
	record->bytes = node->bytes;
	record->tile = record->engine = record->engine_index = record->memory = 0;
	record->kernel = 0;
	if (sizes) {
		memcpy(record->global, sizes->global, sizeof(record->global));
		memcpy(record->local, sizes->local, sizeof(record->local));
	}
	record->queued = times.queued;
	record->submit = times.submit;
	record->start = times.start;
	record->end = times.end;
	for (uint32_t at = 0; at < sizeof(*record); at += 64)
		xs_own_ahead((const char *)record + at); /* all lines of the next one */
	xs_record_end(size);
	xs_commands_end(1, true);
}

/* The command has ended. */
static void node_ended(struct node *node, cl_int status)
{
	if (status == CL_COMPLETE)
		node_record(node);
	else
		xs_commands_untimed(1); /* it failed */
}

static void node_finish(struct node *node)
{
	/* who counts the event's references must see that ours is on its way */
	atomic_store(&node->state, NODE_RELEASING);
	if (node->event)
		(void)xs_cl_target.clReleaseEvent(node->event);
	if (node->follows)
		(void)xs_cl_target.clReleaseEvent(node->before);
	atomic_store_explicit(&node->state, NODE_FREE, memory_order_release);
	xs_pool_put(&nodes, node);
	atomic_fetch_add_explicit(&finished.count, 1, memory_order_release);
}

/*
 * Waits for a thread that harvests the node, which takes a moment. False: it took too long, so the
 * thread ended in the middle or left by a jump. What it may still read is then never used again.
 */
static bool wait_for_harvest(struct node *node)
{
	uint8_t state = NODE_BUSY;
	uint32_t rounds = 0;

	while (atomic_load_explicit(&node->state, memory_order_acquire) == NODE_BUSY &&
	       xs_wait_a_bit(&rounds))
		;
	if (!atomic_compare_exchange_strong(&node->state, &state, NODE_LEFT))
		return true;
	xs_commands_untimed(1);
	atomic_fetch_add_explicit(&finished.count, 1, memory_order_release);
	return false;
}

static void complete(struct node *node, cl_int status)
{
	for (;;) {
		uint8_t state = NODE_ACTIVE;

		if (atomic_compare_exchange_strong(&node->state, &state, NODE_BUSY)) {
			node_ended(node, status);
			break;
		}
		if (state == NODE_RECORDED)
			break;
		if (!wait_for_harvest(node))
			return;
	}
	node_finish(node);
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *data)
{
	struct xs_own_time time;

	(void)event;
	xs_own_time_begin(&time);
	complete(data, status);
	xs_own_time_end(&time);
}

static void give_back(struct node *node, uint8_t state)
{
	uint8_t busy = NODE_BUSY;

	atomic_compare_exchange_strong(&node->state, &busy, state);
}

/*
 * Commands that are complete though their callbacks did not run yet: when the application knows
 * them complete, so must the trace. queue NULL: all queues.
 */
static void harvest(cl_command_queue queue)
{
	uint32_t count = node_count();
	struct xs_own_time time;

	if (!any_in_flight())
		return;
	xs_own_time_begin(&time);
	for (uint32_t i = 0; i < count; i++) {
		struct node *node = xs_pool_at(&nodes, i);
		uint8_t state = NODE_ACTIVE;
		cl_int status = CL_QUEUED;

		if (!node ||
		    atomic_load_explicit(&node->state, memory_order_acquire) != NODE_ACTIVE ||
		    (queue && node->queue->handle != queue))
			continue;
		if (!atomic_compare_exchange_strong(&node->state, &state, NODE_BUSY))
			continue;
		if (xs_cl_target.clGetEventInfo(node->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
						sizeof(status), &status, NULL) ||
		    status > CL_COMPLETE) {
			give_back(node, NODE_ACTIVE);
			continue;
		}
		if (atomic_load_explicit(&node->state, memory_order_relaxed) != NODE_BUSY)
			continue; /* it took so long that the callback did not wait */
		node_ended(node, status);
		if (status < 0 && node->callback) {
			/*
			 * PoCL does not call back for a command that failed; the event must not
			 * outlive it because of us
			 */
			(void)xs_cl_target.clReleaseEvent(node->event);
			node->event = NULL;
		}
		if (node->callback)
			give_back(node, NODE_RECORDED);
		else
			node_finish(node);
	}
	xs_own_time_end(&time);
}

/* Is there a command that has not ended, or whose record is not written yet? */
static bool any_open(void)
{
	for (uint32_t i = 0; i < node_count(); i++) {
		struct node *node = xs_pool_at(&nodes, i);
		uint8_t state = node ? atomic_load_explicit(&node->state, memory_order_acquire)
				     : NODE_FREE;

		if (state == NODE_ACTIVE || state == NODE_BUSY)
			return true;
	}
	return false;
}

/* ns: for what is just about to end, and for callbacks that other threads are in the middle of */
#define LAST_CHANCE 20000000u

/* whose commands they are: a child that is forked inherits nothing but their nodes */
static pid_t owner;

/* no system call in a sandbox; commands in flight are counted as open */
static bool is_owner(void)
{
	return xs_sys(SYS_getpid) == (long)owner;
}

void xs_cl_harvest_all(void)
{
	/* else only what the runtime itself tells: asking it might wait for a thread that has
	 * ended */
	if (is_owner() && !atomic_load_explicit(&waiting.count, memory_order_relaxed))
		harvest(NULL);
}

static void last_chance(void)
{
	uint64_t since = xs_true_ns();
	uint32_t rounds = 0;

	if (!is_owner())
		return;
	do {
		xs_cl_harvest_all();
		if (!any_in_flight() || !any_open())
			return;
	} while (xs_recording() && xs_true_ns() - since < LAST_CHANCE && xs_wait_a_bit(&rounds));
}

static void thread_ends(void)
{
	xs_pool_put_spare(&nodes, &spare);
}

void xs_cl_commands_init(void)
{
	static struct xs_hook at_end = { .function = xs_cl_harvest_all },
			      at_thread_end = { .function = thread_ends };

	owner = (pid_t)xs_sys(SYS_getpid);
	xs_cl_last_chance = last_chance;
	xs_at_end(&at_end);
	xs_at_thread_end(&at_thread_end);
}

cl_int xs_hook_clFinish(cl_command_queue queue)
{
	cl_int result;

	atomic_fetch_add_explicit(&waiting.count, 1, memory_order_relaxed);
	result = xs_cl_target.clFinish(queue);
	atomic_fetch_sub_explicit(&waiting.count, 1, memory_order_relaxed);
	harvest(queue);
	return result;
}

cl_int xs_hook_clWaitForEvents(cl_uint count, const cl_event *events)
{
	cl_int result;

	atomic_fetch_add_explicit(&waiting.count, 1, memory_order_relaxed);
	result = xs_cl_target.clWaitForEvents(count, events);
	atomic_fetch_sub_explicit(&waiting.count, 1, memory_order_relaxed);
	return result;
}

void xs_cl_finished(cl_command_queue handle, const struct xs_call *call)
{
	const struct xs_cl_queue *queue = xs_cl_queue_of(handle);

	if (queue)
		xs_waited(XS_SOURCE_OPENCL, call->tick, queue->serial, XS_WAITED_SUBMITTED,
			  call->tick);
}

/*
 * An event is no way to its command's record, which may be written already: by its times the trace
 * finds it.
 */
void xs_cl_waited_for(cl_uint count, const cl_event *events, const struct xs_call *call)
{
	for (cl_uint i = 0; i < count; i++) {
		const struct xs_cl_queue *queue = NULL;
		cl_command_queue handle = NULL;
		cl_ulong start;

		if (!xs_cl_target.clGetEventInfo(events[i], CL_EVENT_COMMAND_QUEUE, sizeof(handle),
						 &handle, NULL) &&
		    handle)
			queue = xs_cl_queue_of(handle);
		if (queue &&
		    !xs_cl_target.clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START,
							  sizeof(start), &start, NULL))
			xs_waited(XS_SOURCE_OPENCL, call->tick, queue->serial, XS_WAITED_STARTED,
				  start);
	}
}

/* The state of the node that holds a reference to the application's event; NODE_FREE: none does. */
static uint8_t held_by(cl_event event)
{
	uint32_t count = any_in_flight() ? node_count() : 0;

	for (uint32_t i = 0; i < count; i++) {
		struct node *node = xs_pool_at(&nodes, i);
		uint8_t state = node ? atomic_load_explicit(&node->state, memory_order_acquire)
				     : NODE_FREE;

		if (state != NODE_FREE && node->event == event && node->retained)
			return state;
	}
	return NODE_FREE;
}

/*
 * The application counts its own references. Ours may go while it counts: then it counts again, a
 * few times.
 */
cl_int xs_hook_clGetEventInfo(cl_event event, cl_event_info name, size_t size, void *value,
			      size_t *size_ret)
{
	bool counts = name == CL_EVENT_REFERENCE_COUNT && value;
	uint8_t before, after = NODE_FREE;
	uint32_t rounds = 0;
	cl_int result;

	do {
		before = counts ? held_by(event) : NODE_FREE;
		result = xs_cl_target.clGetEventInfo(event, name, size, value, size_ret);
		after = counts && !result && before != NODE_FREE ? held_by(event) : NODE_FREE;
	} while (before != NODE_FREE && !result &&
		 (after == NODE_FREE || after == NODE_RELEASING) && xs_wait_a_bit(&rounds));
	if (before != NODE_FREE && after != NODE_FREE && after != NODE_RELEASING &&
	    *(cl_uint *)value > 1)
		--*(cl_uint *)value;
	return result;
}

bool xs_cl_enter(struct xs_cl_work *work, cl_command_queue handle, uint32_t function, uint8_t class,
		 cl_event **event)
{
	if (!xs_call_enter(&work->call, XS_SOURCE_OPENCL, function))
		return false;
	work->queue = xs_cl_times ? xs_cl_queue_of(handle) : NULL;
	work->function = function;
	work->work = class;
	work->kernel = NULL;
	work->name = 0;
	work->before = NULL;
	work->blocking = false;
	if (work->queue && xs_cl_devices[work->queue->device].unwanted) {
		work->queue = NULL; /* nobody asked for its times */
		work->untimed = false;
		return true;
	}
	work->untimed = xs_cl_times && (!work->queue || !work->queue->profiled);
	if (work->untimed || !work->queue) {
		work->queue = NULL;
		return true;
	}
	work->own = NULL;
	work->event = *event ? *event : &work->own;
	*event = work->event;
	xs_own_time_since(&work->time, work->call.tick);
	return true;
}

void xs_cl_kernel(struct xs_cl_work *work, cl_kernel kernel, cl_event **event)
{
	struct xs_cl_kernel *known;

	if (!work->queue)
		return;
	known = xs_cl_kernel_of(kernel, work->queue);
	if (known && known->unwanted) {
		/* from here on as if no device times were wanted of this command */
		if (*event == &work->own)
			*event = NULL;
		work->queue = NULL;
		return;
	}
	work->kernel = known;
}

void xs_cl_launched(struct xs_cl_work *work, cl_kernel kernel, cl_uint dimensions,
		    const size_t *global, const size_t *local)
{
	struct xs_cl_kernel *known = work->kernel;

	if (!work->queue)
		return;
	for (cl_uint i = 0; i < 3; i++) {
		work->launched.global[i] = i < dimensions && global ? global[i] : 1;
		work->launched.local[i] = i < dimensions && local ? local[i] : local ? 1 : 0;
	}
	work->sizes = known ? xs_cl_sizes_of(known, &work->launched, kernel,
					     &xs_cl_devices[work->queue->device])
			    : NULL;
}

/* For a command that is on its way; NULL: it will have no record. */
static struct node *take_node(const struct xs_cl_work *work)
{
	struct node *node = NULL;

	if (!xs_recording()) /* it may have been paused in the meantime */
		return NULL;
	if (work->queue && *work->event)
		node = xs_pool_get(&nodes, &spare);
	if (node)
		xs_commands_begin(1);
	else if (work->queue || work->untimed)
		xs_count_untimed(1);
	return node;
}

/* The command is on its way: what is known of it waits in the node until it is complete. */
static void take_up(struct xs_cl_work *work, struct node *node, uint64_t bytes, uint64_t duration,
		    bool written)
{
	const struct xs_cl_kernel *kernel = work->kernel;

	node->queue = work->queue;
	node->sizes = kernel ? work->sizes : NULL;
	if (kernel && !work->sizes) {
		node->own_sizes = work->launched;
		node->sizes = &node->own_sizes;
	}
	node->follows = work->before;
	if (work->before)
		node->before = work->before;
	node->bytes = bytes;
	node->tick = work->call.tick;
	node->host_ticks = xs_ticks_pack(duration);
	node->tid = xs_thread_id();
	node->id = (uint32_t)atomic_fetch_add_explicit(&issued.count, 1, memory_order_relaxed) + 1;
	node->name = kernel ? kernel->name : work->name ? work->name : work->function;
	node->flags = (uint8_t)((kernel || work->name ? 0 : XS_DEVICE_FLAG_FUNCTION) |
				(work->blocking ? XS_DEVICE_FLAG_WAITED : 0) |
				(written ? 0 : XS_DEVICE_FLAG_ALONE));
	node->work = work->work;
	node->simd = !kernel ? 0 : work->sizes ? work->sizes->simd : kernel->simd;
	node->event = *work->event;
	node->retained = work->event != &work->own;
	if (node->retained)
		(void)xs_cl_target.clRetainEvent(node->event);
	node->callback = true;
	/* the node is complete; pairs with the acquires in harvest() */
	atomic_store_explicit(&node->state, NODE_ACTIVE, memory_order_release);
	if (xs_cl_target.clSetEventCallback(node->event, CL_COMPLETE, on_complete, node))
		node->callback = false; /* harvests will find it */
}

void xs_cl_leave(struct xs_cl_work *work, int64_t result, bool failed, uint64_t bytes)
{
	uint64_t duration = xs_call_ticks(&work->call);
	struct xs_own_time time;
	bool written = true;
	struct node *node;

	xs_own_time_since(&time, work->call.tick + duration);
	if (xs_cl_enqueues)
		written = xs_call_write(work->call.tick, duration,
					xs_call_header(XS_SOURCE_OPENCL, work->function,
						       XS_CALL_FLAG_OF_WORK |
							       (failed ? XS_CALL_FLAG_FAILED : 0)),
					result);
	xs_call_past(&work->call);
	node = failed ? NULL : take_node(work);
	if (!node && work->before)
		(void)xs_cl_target.clReleaseEvent(work->before);
	if (failed)
		return;
	if (!node) {
		if (work->queue && work->event == &work->own && work->own)
			(void)xs_cl_target.clReleaseEvent(work->own);
		return;
	}
	take_up(work, node, bytes, duration, written);
	xs_own_time_end(&time);
}

uint64_t xs_cl_region(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

uint64_t xs_cl_image(cl_mem image, const size_t *region)
{
	size_t element = 0;

	(void)xs_cl_target.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element,
					  NULL);
	return element * xs_cl_region(region);
}
