/*
 * Calls of Level Zero that put work on a device, and what they say about copies, fills and images;
 * kernels: level_zero_kernel.c.
 */
#include "blocked.h"
#include "device_record.h"
#include "level_zero_metrics.h"

/* ---- one thread at a time ---- */

/* A thread that records has an id; those that do not append only what may be executed later. */
static inline uint32_t appender(void)
{
	return xs_tls.tid ? xs_tls.tid : xs_claimant();
}

/* Who has ended, or been inside for long, has left by a jump. */
static __attribute__((noinline, cold)) bool is_gone(struct xs_ze_list *list, uint32_t who)
{
	uint64_t refused = list->refused;
	uint32_t now = xs_moment();

	if (!xs_is_sealed() && xs_sys(SYS_tgkill, xs_sys(SYS_getpid), who, 0) == -ESRCH)
		return true;
	if (refused >> 32 == who)
		return now - (uint32_t)refused >= XS_LEFT_FOR_GOOD;
	list->refused = (uint64_t)who << 32 | now;
	return false;
}

/*
 * The API wants that of the program, and some drivers bear it otherwise. Then the command passes
 * untimed. This costs an ordinary append no more than two loads and stores; two threads that come
 * within some nanoseconds both go on, which the one that was overwritten finds when it is through.
 */
static inline bool begin_append(struct xs_ze_list *list)
{
	uint32_t me = appender(), who = atomic_load_explicit(&list->appender, memory_order_relaxed);

	if (__builtin_expect(who, 0)) {
		if (who != me && !is_gone(list, who))
			return false;
		xs_ze_append_left(list);
	}
	atomic_store_explicit(&list->appender, me, memory_order_relaxed);
	return true;
}

static inline bool appends(struct xs_ze_list *list)
{
	return atomic_load_explicit(&list->appender, memory_order_relaxed) == appender();
}

static inline void end_append(struct xs_ze_list *list)
{
	if (appends(list))
		atomic_store_explicit(&list->appender, 0, memory_order_relaxed);
}

/*
 * The node is not used after all. One of an immediate list stays where it is, for the next command.
 */
static void give_up(struct xs_ze_work *work)
{
	if (work->list->body)
		xs_ze_node_put(work->node);
	work->node = NULL;
	end_append(work->list);
}

/*
 * In a capture the graph is measured as a whole (level_zero_append.c). That of a command which the
 * program will change has begun; but not where the command waits: what it waits for may change,
 * too.
 */
static inline void begin_query(struct xs_ze_work *work, uint32_t nwait, ze_event_handle_t *wait)
{
	const struct xs_ze_list *list = work->list;

	if (__builtin_expect(!list->meter, 1) || !work->node->record.kernel)
		return;
	if (list->body && list->queue)
		return;
	if (list->next_command && nwait) {
		xs_count_unmeasured(list->begun != NULL);
	} else if (list->next_command) {
		work->node->query = list->begun;
		work->list->begun = NULL;
	} else {
		work->node->query = xs_ze_query_begin(list->meter, work->handle, nwait, wait);
	}
}

void xs_ze_launch(struct xs_ze_work *work, ze_kernel_handle_t kernel,
		  const ze_group_count_t *groups, ze_event_handle_t *event, uint32_t nwait,
		  ze_event_handle_t *wait)
{
	const struct xs_ze_device_info *device = work->list->device;

	/* of a regular list that is otherwise known when it is executed */
	if (__builtin_expect(xs_ze_places && device, 0)) {
		work->node->record.device = device->index;
		work->node->record.device_name = device->name;
	}
	if (xs_ze_node_launch(work->node, kernel, groups)) {
		begin_query(work, nwait, wait);
		return;
	}
	/* from here on as if no device times were wanted of this command */
	if (*event == work->node->own)
		*event = work->signal_after;
	work->signal_after = NULL;
	give_up(work);
}

/* ---- copies ---- */

/*
 * What kind of memory an address is, remembered until memory is allocated or freed. Two words that
 * do not fit together are another thread's half.
 */
static struct {
	_Atomic uint64_t address, kind; /* address ^ kind; generation << 8 | enum xs_memory */
} kinds[1024];
static _Atomic uint64_t generation;

void xs_ze_memory_changes(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

/* of newer headers: the program's own, which the driver was told of */
#define HOST_IMPORTED ((ze_memory_type_t)4)

static uint8_t kind_of(struct xs_ze_context *context, const void *pointer)
{
	uint64_t address = (uint64_t)(uintptr_t)pointer,
		 now = atomic_load_explicit(&generation, memory_order_relaxed) << 8;
	uint32_t at = (uint32_t)(address * 0x9e3779b97f4a7c15ull >> 54);
	ze_memory_allocation_properties_t properties = {
		.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
	};
	uint64_t kind = atomic_load_explicit(&kinds[at].kind, memory_order_relaxed);
	ze_device_handle_t device = NULL;

	if ((atomic_load_explicit(&kinds[at].address, memory_order_relaxed) ^ kind) == address &&
	    (kind & ~0xffull) == now && address)
		return (uint8_t)kind;
	if (xs_is_sealed())
		return XS_MEMORY_UNKNOWN; /* the driver may have to ask the kernel */
	kind = XS_MEMORY_SYSTEM;
	if (!xs_ze.zeMem.pfnGetAllocProperties(context->handle, pointer, &properties, &device))
		kind = properties.type == ZE_MEMORY_TYPE_HOST || properties.type == HOST_IMPORTED
			       ? XS_MEMORY_HOST
		       : properties.type == ZE_MEMORY_TYPE_DEVICE ? XS_MEMORY_DEVICE
		       : properties.type == ZE_MEMORY_TYPE_SHARED ? XS_MEMORY_SHARED
								  : XS_MEMORY_SYSTEM;
	kind |= now;
	atomic_store_explicit(&kinds[at].kind, kind, memory_order_relaxed);
	atomic_store_explicit(&kinds[at].address, address ^ kind, memory_order_relaxed);
	return (uint8_t)kind;
}

void xs_ze_copy(struct xs_ze_work *work, const void *to, const void *from, uint64_t bytes)
{
	struct xs_ze_context *context = work->list->context;

	work->node->record.bytes = bytes;
	if (from)
		work->node->record.memory =
			(uint8_t)(kind_of(context, from) << 4 | kind_of(context, to));
}

uint64_t xs_ze_region(const ze_copy_region_t *region)
{
	if (!region)
		return 0;
	return (uint64_t)region->width * (region->height ? region->height : 1) *
	       (region->depth ? region->depth : 1);
}

/* ---- images ---- */

struct image {
	uint32_t element; /* bytes */
	uint64_t elements;
};
static struct xs_handles images = { .size = 16384 };

static uint32_t bytes_of_layout(ze_image_format_layout_t layout)
{
	switch (layout) {
	case ZE_IMAGE_FORMAT_LAYOUT_8:
		return 1;
	case ZE_IMAGE_FORMAT_LAYOUT_16:
	case ZE_IMAGE_FORMAT_LAYOUT_8_8:
	case ZE_IMAGE_FORMAT_LAYOUT_5_6_5:
	case ZE_IMAGE_FORMAT_LAYOUT_5_5_5_1:
	case ZE_IMAGE_FORMAT_LAYOUT_4_4_4_4:
		return 2;
	case ZE_IMAGE_FORMAT_LAYOUT_32:
	case ZE_IMAGE_FORMAT_LAYOUT_16_16:
	case ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8:
	case ZE_IMAGE_FORMAT_LAYOUT_10_10_10_2:
	case ZE_IMAGE_FORMAT_LAYOUT_11_11_10:
		return 4;
	case ZE_IMAGE_FORMAT_LAYOUT_32_32:
	case ZE_IMAGE_FORMAT_LAYOUT_16_16_16_16:
		return 8;
	case ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32:
		return 16;
	default:
		return 0; /* video formats, whose planes differ */
	}
}

ze_result_t xs_hook_zeImageCreate(ze_context_handle_t context, ze_device_handle_t device,
				  const ze_image_desc_t *desc, ze_image_handle_t *handle)
{
	ze_result_t result = xs_ze.zeImage.pfnCreate(context, device, desc, handle);
	_Atomic uint64_t *value = !result && xs_ze_device ? xs_handle_add(&images, *handle) : NULL;
	struct image *image = value ? xs_arena(sizeof(*image)) : NULL;

	if (!image)
		return result;
	image->element = bytes_of_layout(desc->format.layout);
	image->elements = desc->width ? desc->width : 1;
	if (desc->type != ZE_IMAGE_TYPE_1D && desc->type != ZE_IMAGE_TYPE_1DARRAY &&
	    desc->type != ZE_IMAGE_TYPE_BUFFER)
		image->elements *= desc->height ? desc->height : 1;
	if (desc->type == ZE_IMAGE_TYPE_3D)
		image->elements *= desc->depth ? desc->depth : 1;
	if (desc->type == ZE_IMAGE_TYPE_1DARRAY || desc->type == ZE_IMAGE_TYPE_2DARRAY)
		image->elements *= desc->arraylevels ? desc->arraylevels : 1;
	atomic_store_explicit(value, (uint64_t)(uintptr_t)image, memory_order_release);
	return result;
}

void xs_ze_image_ends(ze_image_handle_t image)
{
	xs_handle_remove(&images, image);
}

/* An image lies in the device's memory; to, from: the other end, where it is not an image too. */
void xs_ze_image_copy(struct xs_ze_work *work, ze_image_handle_t handle,
		      const ze_image_region_t *region, const void *to, const void *from)
{
	struct image *image = xs_handle_get(&images, handle);
	uint64_t elements = image ? image->elements : 0;
	uint8_t source = from ? kind_of(work->list->context, from) : XS_MEMORY_DEVICE;
	uint8_t target = to ? kind_of(work->list->context, to) : XS_MEMORY_DEVICE;

	if (region)
		elements = (uint64_t)region->width * (region->height ? region->height : 1) *
			   (region->depth ? region->depth : 1);
	work->node->record.bytes = image ? elements * image->element : 0;
	work->node->record.memory = (uint8_t)(source << 4 | target);
}

/* ---- an append ---- */

/*
 * The device copies the times of the node's event away, before they are forgotten by a reset. For
 * an immediate list our own event tells when that is done.
 */
static void save_times(struct xs_ze_list *list, ze_command_list_handle_t handle,
		       struct xs_ze_node *node, uint32_t wait)
{
	ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
	ze_event_handle_t signal = node->body || list->in_order ? NULL : node->own;
	void *memory = node->memory;
	ze_result_t result;

	if (!memory && xs_is_sealed()) /* the driver may need system calls for it */
		return;
	if (!memory) {
		struct xs_blocked blocked = xs_block();

		(void)xs_ze.zeMem.pfnAllocHost(list->context->handle, &desc, sizeof(*node->saved),
					       64, &memory);
		node->memory = memory;
		xs_unblock(blocked);
	}
	if (!memory)
		return;
	memset(memory, 0xff, sizeof(*node->saved));
	node->saved = memory;
	if (node->body)
		xs_ze_body_saves(node->body);
	if (list->in_order)
		wait = 0; /* it is its turn anyway; there are drivers that hang */
	result = xs_ze.zeCommandList.pfnAppendQueryKernelTimestamps(handle, 1, &node->event, memory,
								    NULL, signal, wait,
								    wait ? &node->event : NULL);
	if (!result && list->in_order && !node->body)
		result = xs_ze.zeCommandList.pfnAppendSignalEvent(handle, node->own);
	if (result)
		node->saved = NULL;
}

/*
 * An event is signalled again without a reset: its previous command may not have been read yet, and
 * would get the times of this one, or ask an event that is gone by then.
 */
static void signalled_again(struct xs_ze_work *work, struct xs_ze_node *before)
{
	struct xs_ze_list *list = work->list;

	if (before->saved || (!before->body && xs_ze_node_finish(before)))
		return;
	if (before->body && before->body != list->body) {
		work->shares = list->body;
		xs_ze_body_shares(before->body);
		if (list->body)
			xs_ze_body_shares(list->body);
		else
			xs_ze_body_gives_way(before);
	} else if (list->in_order && (before->body || before->queue == list->queue)) {
		before->saved_always = before->body;
		save_times(list, work->handle, before, 0);
	} else if (before->body) {
		before->event = before->own; /* which is never signalled */
	} else {
		xs_ze_node_lost(before);
	}
}

/*
 * An event that is signalled while its command is appended goes on telling of its former use until
 * the command has run.
 */
static bool note_stale(struct xs_ze_node *node, ze_event_handle_t event)
{
	return !xs_ze.zeEvent.pfnQueryKernelTimestamp(event, &node->early_times);
}

/*
 * The application has an event of its own: is it that which will tell of the command? False: no
 * event can.
 */
static __attribute__((noinline)) bool choose_event(struct xs_ze_work *work,
						   ze_event_handle_t *event)
{
	struct xs_ze_node *node = work->node, *before;
	_Atomic uint64_t *word = xs_ze_event_word(*event);
	uint64_t value = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

	if (value & XS_ZE_EVENT_TIMED) {
		before = xs_ze_node_linked(xs_ze_event_link(value));
		if (before)
			signalled_again(work, before);
		value = atomic_load_explicit(word, memory_order_relaxed);
		node->stale = (before || value & (XS_ZE_EVENT_TOLD | XS_ZE_EVENT_HOST)) &&
			      !(value & XS_ZE_EVENT_COUNTS) && !work->list->body &&
			      note_stale(node, *event);
		node->event = *event;
		work->resets = value & XS_ZE_EVENT_RESETS;
		return true;
	}
	/*
	 * ours takes its place, and it is signalled behind the command; out of order that would
	 * hold others back
	 */
	if (value & XS_ZE_EVENT_KNOWN && work->list->in_order) {
		work->signal_after = *event;
		*event = node->own;
		return true;
	}
	return false;
}

/* The next command of a list gets a node. False: it passes untimed. */
static inline bool prepare(struct xs_ze_work *work, uint32_t function, uint8_t class,
			   ze_event_handle_t *event)
{
	struct xs_ze_list *list = work->list;
	struct xs_device_record *record;
	struct xs_ze_node *node;

	if (!begin_append(list))
		return false;
	node = work->node = list->body ? xs_ze_node_get(list->context) : xs_ze_claim(list->queue);
	if (!node) {
		end_append(list);
		return false;
	}
	node->event = node->own;
	if (!*event) {
		*event = node->own;
	} else if (!choose_event(work, event)) {
		give_up(work);
		return false;
	}
	node->shape = 0;
	node->query = NULL;
	record = &node->record;
	record->event.name = function;
	record->event.kind = XS_DEVICE;
	record->event.words = XS_DEVICE_RECORD_SHORT / 8;
	record->event.source = XS_SOURCE_LEVEL_ZERO;
	record->event.flags = list->flags;
	record->work = class;
	record->bytes = 0;
	record->memory = record->simd = 0;
	record->kernel = 0;
	return true;
}

/*
 * Of what is appended while nothing is recorded, that counts which may be executed later, when
 * something is.
 */
static __attribute__((noinline)) bool enter_paused(struct xs_ze_work *work,
						   ze_command_list_handle_t handle)
{
	const struct xs_ze_list *list =
		xs_ze_device && xs_joined() && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;

	work->call = (struct xs_call){ .tick = 0 };
	return list && list->body;
}

bool xs_ze_enter(struct xs_ze_work *work, ze_command_list_handle_t handle, uint32_t function,
		 uint8_t class, ze_event_handle_t *event)
{
	work->paused = !xs_call_enter(&work->call, XS_SOURCE_LEVEL_ZERO, function);
	if (__builtin_expect(work->paused, 0) && !enter_paused(work, handle))
		return false;
	work->time.ring = NULL;
	if (__builtin_expect(!work->paused, 1))
		xs_own_time_since(&work->time, work->call.tick);
	work->function = function;
	work->handle = handle;
	work->node = NULL;
	work->signal_after = NULL;
	work->resets = work->shares = false;
	work->list = xs_ze_device && xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	work->untimed =
		work->list ? !work->list->device->unwanted &&
				     (work->list->untimed || !prepare(work, function, class, event))
			   : xs_ze_device;
	return true;
}

/* The event that the application gave tells of this node from here on. */
static __attribute__((noinline)) void link_event(struct xs_ze_work *work, struct xs_ze_node *node)
{
	/* an event that is reset on the device may still be signalled by its last command */
	if (work->resets && node->queue)
		save_times(work->list, work->handle, node, 1);
	/* of what shares it, who is executed last has it */
	if (!work->shares)
		xs_ze_node_link_event(node, node->event);
}

static void keep_in_body(struct xs_ze_list *list, struct xs_ze_node *node)
{
	node->record.queue = 0; /* the one that it will be executed in */
	node->record.event.flags &= (uint8_t)~XS_DEVICE_FLAG_WAITED; /* that it is captured in */
	node->queue = NULL;
	node->body = list->body;
	node->command = list->next_command;
	list->next_command = 0;
	atomic_store_explicit(&node->early, 0, memory_order_relaxed);
	xs_ze_body_add(list->body, node);
}

/*
 * A command that was appended without a node: of what is executed as a whole, each time that it is.
 */
static void count_untimed(struct xs_ze_list *list)
{
	if (list && list->body)
		xs_ze_body_untimed(list->body);
	else
		xs_count_untimed(1);
}

/* Another thread has appended at the same time, maybe with the same node. */
static __attribute__((noinline, cold)) void raced(struct xs_ze_list *list, struct xs_ze_node *node)
{
	xs_count_unmeasured(node->query != NULL);
	if (list->body) {
		node->lost = true; /* the device will signal its event */
		xs_ze_node_put(node);
		xs_ze_body_raced(list->body);
	} else {
		atomic_store_explicit(&list->queue->raced, true, memory_order_relaxed);
	}
	count_untimed(list);
}

static inline void keep(struct xs_ze_work *work, struct xs_ze_node *node, uint64_t duration)
{
	struct xs_ze_queue *queue = work->list->body ? NULL : work->list->queue;

	if (__builtin_expect(!appends(work->list), 0)) {
		raced(work->list, node);
		return;
	}
	node->record.event.tick = node->record.submit = work->call.tick;
	node->record.submitter = 0;
	node->record.host_ticks = xs_ticks_pack(duration);
	node->record.tid = work->paused ? 0 : xs_thread_id();
	node->saved = NULL;
	if (__builtin_expect(!queue, 0))
		keep_in_body(work->list, node);
	if (__builtin_expect(node->event != node->own, 0))
		link_event(work, node);
	if (queue) {
		xs_commands_begin(1);
		xs_ze_push(queue, node);
	}
	end_append(work->list);
}

ze_result_t xs_ze_leave(struct xs_ze_work *work, ze_result_t result)
{
	uint8_t flags = XS_CALL_FLAG_OF_WORK | xs_ze_failed(result);
	uint64_t duration;

	if (__builtin_expect(work->list && work->list->begun, 0))
		xs_ze_body_unused(work->list, work->handle);
	if (!work->node) {
		if (work->untimed && !result)
			count_untimed(work->list);
		if (work->paused)
			return result;
		if (xs_ze_appends)
			xs_call_end(xs_call_header(XS_SOURCE_LEVEL_ZERO, work->function, flags),
				    result, &work->call);
		else
			(void)xs_call_leave(&work->call);
		return result;
	}
	duration = work->paused ? 0 : xs_call_ticks(&work->call);
	if (!work->paused)
		xs_own_time_since(&work->time, work->call.tick + duration);
	if (xs_ze_appends && !work->paused &&
	    __builtin_expect(!xs_call_write(work->call.tick, duration,
					    xs_call_header(XS_SOURCE_LEVEL_ZERO, work->function,
							   flags),
					    result),
			     0))
		work->node->record.event.flags |= XS_DEVICE_FLAG_ALONE;
	if (!work->paused)
		xs_call_past(&work->call);
	if (__builtin_expect(work->node->query != NULL, 0))
		work->node->query =
			xs_ze_query_end(work->node->query, work->handle, !work->list->body);
	/* a failed append has not used the event */
	if (result) {
		give_up(work);
		return result;
	}
	if (work->signal_after)
		result = xs_ze.zeCommandList.pfnAppendSignalEvent(work->handle, work->signal_after);
	keep(work, work->node, duration);
	xs_own_time_end(&work->time);
	return result;
}

void xs_ze_event_resets(ze_command_list_handle_t handle, ze_event_handle_t event)
{
	struct xs_ze_list *list = xs_ze_alive() ? xs_ze_list_of(handle) : NULL;
	_Atomic uint64_t *word = list ? xs_ze_event_word(event) : NULL;
	uint64_t link = word ? xs_ze_event_link(atomic_fetch_or(word, XS_ZE_EVENT_RESETS)) : 0;
	struct xs_ze_node *node = link ? xs_ze_node_linked(link) : NULL;

	if (word)
		xs_ze_event_forgets(word);
	if (!node || node->event != event || node->saved ||
	    (!node->body && xs_ze_node_finish(node)))
		return;
	node->saved_always = node->body && node->body == list->body;
	/*
	 * not by waiting for it: this may be the application's way to reset it before its command
	 * runs
	 */
	if (!list->in_order)
		(void)xs_ze.zeCommandList.pfnAppendBarrier(handle, NULL, 0, NULL);
	save_times(list, handle, node, 0);
	if (!list->in_order)
		(void)xs_ze.zeCommandList.pfnAppendBarrier(handle, NULL, 0, NULL);
}
