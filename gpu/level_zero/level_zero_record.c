/*
 * The records of Level Zero's commands: of one, or of many of a queue at once.
 */
#include "device_record.h"
#include "level_zero_metrics.h"
#include "options.h"

static _Atomic uint32_t work_serial;

uint32_t xs_ze_next_ids(uint32_t count)
{
	return atomic_fetch_add_explicit(&work_serial, count, memory_order_relaxed) + 1;
}

/*
 * Submitted by that call. If we did not see the command being appended, it is shown as if the call
 * had appended it, too.
 */
static inline void submitted(struct xs_device_record *record, const struct xs_ze_submit *submit)
{
	record->submit = submit->tick;
	record->submitter = submit->tid;
	if (record->tid)
		return;
	record->tid = submit->tid;
	record->event.tick = submit->tick;
}

/*
 * The record of one execution: the command's, and what only this execution has. False: nothing is
 * written.
 */
static inline bool write_record(const struct xs_device_record *from,
				const ze_kernel_timestamp_result_t *times,
				const struct xs_ze_submit *submit, uint32_t id)
{
	uint32_t size = from->event.words * 8u;
	struct xs_device_record *record = xs_record_reserve(size, XS_ROLE_OTHER);

	if (!record)
		return false;
	/* sizes that the compiler knows: no call */
	memcpy(record, from, XS_DEVICE_RECORD_SHORT);
	if (size > XS_DEVICE_RECORD_SHORT)
		memcpy((char *)record + XS_DEVICE_RECORD_SHORT,
		       (const char *)from + XS_DEVICE_RECORD_SHORT,
		       sizeof(*from) - XS_DEVICE_RECORD_SHORT);
	/* who appends to the list at the same time may have changed it */
	record->event.words = (uint8_t)(size / 8);
	record->id = id;
	if (submit)
		submitted(record, submit);
	record->start = times->global.kernelStart;
	record->end = times->global.kernelEnd;
	xs_record_end(size);
	return true;
}

/*
 * What the device copied away is one pair of times; only the event itself tells of tiles. False: it
 * does not.
 */
static __attribute__((noinline)) bool record_tiles(const struct xs_device_record *from,
						   ze_event_handle_t event,
						   const struct xs_ze_device_info *device,
						   const struct xs_ze_submit *submit, uint32_t id)
{
	struct xs_device_record of_tile = *from;
	ze_kernel_timestamp_result_t tiles[XS_ZE_TILES];
	uint32_t count = XS_ZE_TILES;
	bool written = false;

	if (!xs_options_of_run()->separate_tiles || !xs_ze.zeEventExp.pfnQueryTimestampsExp ||
	    xs_ze.zeEventExp.pfnQueryTimestampsExp(event, device->handle, &count, tiles) || !count)
		return false;
	for (uint32_t i = 0; i < count && i < XS_ZE_TILES; i++) {
		of_tile.tile = (uint8_t)(i + 1);
		written = write_record(&of_tile, &tiles[i], submit, i ? xs_ze_next_ids(1) : id);
	}
	xs_commands_end(1, written);
	return true;
}

void xs_ze_record_queue(struct xs_device_record *record, const struct xs_ze_queue *queue)
{
	const struct xs_ze_device_info *device = queue->device;

	record->event.flags |= queue->flags;
	record->queue_handle = queue->shown_handle;
	record->device = device->index;
	record->device_name = device->name;
	record->device_type = device->type;
	record->tile = device->tile;
	record->engine = (uint8_t)(queue->ordinal + 1);
	record->engine_index = (uint8_t)queue->index;
	atomic_signal_fence(memory_order_release);
	record->queue = queue->serial;
}

/* What was counted while it ran is told of the same record. */
static __attribute__((noinline)) void tell_query(const struct xs_ze_node *node,
						 const struct xs_device_record *from,
						 const ze_kernel_timestamp_result_t *times,
						 uint32_t holds, const struct xs_ze_submit *submit,
						 uint32_t id)
{
	struct xs_device_record work = *from;

	work.id = id;
	work.start = times->global.kernelStart;
	work.end = times->global.kernelEnd;
	if (submit)
		submitted(&work, submit);
	if (!(holds & XS_ZE_QUERY_HOLDS))
		xs_count_unmeasured(1);
	else if (node->body)
		xs_ze_query_executed(node->query, &work);
	else
		xs_ze_query_told(node->query, &work);
}

void xs_ze_node_record(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times,
		       uint32_t holds, const struct xs_ze_submit *submit,
		       const struct xs_ze_queue *queue, uint32_t id)
{
	const struct xs_device_record *from = &node->record;
	struct xs_device_record copy;

	if (__builtin_expect(from->queue != queue->serial, 0)) {
		/* a list that was first executed in another queue */
		copy = *from;
		copy.event.flags &= (uint8_t)~XS_DEVICE_FLAG_COPY_ENGINE;
		xs_ze_record_queue(&copy, queue);
		from = &copy;
	}
	if (__builtin_expect(queue->device->tiles == 0, 1) || !(holds & XS_ZE_EVENT_HOLDS) ||
	    !record_tiles(from, node->event ? node->event : node->own, queue->device, submit, id))
		xs_commands_end(1, write_record(from, times, submit, id));
	if (__builtin_expect(node->query != NULL, 0))
		tell_query(node, from, times, holds, submit, id);
}

/* ---- many of them as one record ---- */

static_assert(XS_ZE_FINISHED <= XS_COMMANDS_MAX, "fits a record");

/*
 * A record's beginning; the newest of its commands says what they have in common. submit: as in the
 * record.
 */
static inline void commands_begin(struct xs_commands_record *record, uint32_t count, uint32_t size,
				  const struct xs_device_record *newest,
				  const struct xs_ze_submit *submit)
{
	*record = (struct xs_commands_record){
		.event = { .tick = newest->event.tick,
			   .name = newest->device_name,
			   .kind = XS_COMMANDS,
			   .words = (uint8_t)(size / 8),
			   .source = XS_SOURCE_LEVEL_ZERO,
			   .flags = newest->event.flags & (uint8_t)~XS_DEVICE_FLAG_FUNCTION },
		.queue_handle = newest->queue_handle,
		.queue = newest->queue,
		.id = xs_ze_next_ids(count),
		.submit = submit ? submit->tick : 0,
		.submitter = (submit ? submit->tid : 0) & 0xffffff,
		.count = count & 0x3f,
		.device_type = newest->device_type & 3,
		.device = newest->device,
		.tile = newest->tile,
		.engine = newest->engine,
		.engine_index = newest->engine_index,
	};
}

static inline uint32_t commands_size(uint32_t count)
{
	return (uint32_t)(sizeof(struct xs_commands_record) + count * sizeof(struct xs_command));
}

static inline void command_tell(struct xs_command *command, const struct xs_ze_node *node,
				const ze_kernel_timestamp_result_t *times)
{
	command->tick = node->record.event.tick;
	command->start = times->global.kernelStart;
	command->length = (uint32_t)(times->global.kernelEnd - times->global.kernelStart);
	command->host_ticks = node->record.host_ticks;
	command->shape = node->shape;
	command->tid = node->record.tid;
}

/* Else it has a record of its own. */
static inline bool can_share(const struct xs_ze_node *node,
			     const ze_kernel_timestamp_result_t *times,
			     const struct xs_ze_queue *queue)
{
	return __builtin_expect(node->shape && !node->query &&
					times->global.kernelEnd - times->global.kernelStart <=
						UINT32_MAX &&
					!queue->device->tiles &&
					node->record.queue == queue->serial && node->record.tid &&
					!(node->record.event.flags & XS_DEVICE_FLAG_ALONE),
				1);
}

static __attribute__((noinline)) void batch_write(struct xs_ze_finished *batch,
						  const struct xs_device_record *newest,
						  const struct xs_ze_submit *submit)
{
	uint32_t count = batch->count < XS_ZE_FINISHED ? batch->count : XS_ZE_FINISHED,
		 size = commands_size(count);
	struct xs_commands_record *record;

	/* who leaves by a jump from here on has written them, or they are missing: never twice */
	batch->count = 0;
	atomic_signal_fence(memory_order_release);
	record = xs_record_reserve_many(size, count);
	if (record) {
		commands_begin(record, count, size, newest, submit);
		memcpy(record->command, batch->command, count * sizeof(batch->command[0]));
		xs_record_end(size);
	}
	xs_commands_end(count, record);
}

/* submit: as in the batch's record. */
static inline void batch_add(struct xs_ze_finished *batch, const struct xs_ze_node *node,
			     const ze_kernel_timestamp_result_t *times,
			     const struct xs_ze_submit *submit, const struct xs_ze_queue *queue)
{
	if (!can_share(node, times, queue)) {
		xs_ze_node_record(node, times, XS_ZE_EVENT_HOLDS | XS_ZE_QUERY_HOLDS, submit, queue,
				  xs_ze_next_ids(1));
		return;
	}
	command_tell(&batch->command[batch->count % XS_ZE_FINISHED], node, times);
	atomic_signal_fence(memory_order_release);
	if (__builtin_expect(++batch->count >= XS_ZE_FINISHED, 0))
		batch_write(batch, &node->record, submit);
}

/* Their times are in their events. */
static void record_by_events(const struct xs_ze_node *first, const struct xs_ze_submit *submit,
			     const struct xs_ze_queue *queue)
{
	const struct xs_ze_node *newest = first;
	ze_kernel_timestamp_result_t times;
	struct xs_ze_finished batch;

	batch.count = 0;
	for (const struct xs_ze_node *node = first; node;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed)) {
		if (xs_ze.zeEvent.pfnQueryKernelTimestamp(node->event, &times)) {
			xs_commands_untimed(1);
			continue;
		}
		batch_add(&batch, node, &times, submit, queue);
		newest = node;
	}
	if (batch.count)
		batch_write(&batch, &newest->record, submit);
}

/* So many commands in a row, in the ring at once: no driver is asked. */
static void write_row(const struct xs_ze_node *node, const struct xs_ze_node *newest,
		      const ze_kernel_timestamp_result_t *times, uint32_t count,
		      const struct xs_ze_submit *submit)
{
	uint32_t size = commands_size(count);
	struct xs_commands_record *record = xs_record_reserve_many(size, count);

	if (record) {
		commands_begin(record, count, size, &newest->record, submit);
		for (uint32_t i = 0; i < count;
		     i++, node = atomic_load_explicit(&node->next, memory_order_relaxed))
			command_tell(&record->command[i], node, &times[i]);
		xs_record_end(size);
	}
	xs_commands_end(count, record);
}

/* How many from here on share a record, and the last of them. */
static uint32_t row_length(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times,
			   const struct xs_ze_queue *queue, const struct xs_ze_node **ret_newest)
{
	uint32_t count = 0;

	while (node && count < XS_COMMANDS_MAX && xs_ze_is_set(&times[count]) &&
	       can_share(node, &times[count], queue)) {
		*ret_newest = node;
		node = atomic_load_explicit(&node->next, memory_order_relaxed);
		count++;
	}
	return count;
}

static void record_saved(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times,
			 const struct xs_ze_submit *submit, const struct xs_ze_queue *queue)
{
	const struct xs_ze_node *newest;
	uint32_t row;

	for (; node; node = atomic_load_explicit(&newest->next, memory_order_relaxed)) {
		newest = node;
		row = row_length(node, times, queue, &newest);
		if (row)
			write_row(node, newest, times, row, submit);
		else if (xs_ze_is_set(times))
			xs_ze_node_record(node, times, 0, submit, queue, xs_ze_next_ids(1));
		else
			xs_commands_untimed(1);
		times += row ? row : 1;
	}
}

void xs_ze_nodes_record(const struct xs_ze_node *first, const ze_kernel_timestamp_result_t *saved,
			const struct xs_ze_submit *submit, const struct xs_ze_queue *queue)
{
	if (saved)
		record_saved(first, saved, submit, queue);
	else
		record_by_events(first, submit, queue);
}

/* ---- what is complete ---- */

/*
 * What this thread is at. It may leave by a jump, or end, at any instruction: what it has left is
 * then found here, or by who finds its mark.
 */
static __thread struct {
	struct xs_ze_queue *queue; /* whose commands it looks at */
	struct xs_ze_node *node;   /* whose times it reads */
} here __attribute__((tls_model("initial-exec")));

static inline uint32_t reader(void)
{
	return xs_claimant() & (UINT32_MAX >> (XS_ZE_STATE_READER - 32));
}

/* By this thread, which does not do so any more, or by one that has said so. */
static inline bool is_left(uint64_t state)
{
	uint32_t who = (uint32_t)(state >> XS_ZE_STATE_READER);

	return (state & 3) == XS_ZE_BUSY && (!who || who == reader());
}

static __attribute__((noinline, cold)) void leave_node(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_relaxed);
	uint64_t told = state;

	if (!is_left(state))
		return;
	/* in this order: else it could be read twice */
	atomic_compare_exchange_strong(&node->told, &told, xs_ze_state(state, XS_ZE_BUSY));
	atomic_compare_exchange_strong(&node->state, &state, xs_ze_state(state, XS_ZE_BUSY));
}

static __attribute__((noinline, cold)) void leave_queue(struct xs_ze_queue *queue)
{
	atomic_store_explicit(&queue->left, true, memory_order_relaxed);
	xs_unclaim(&queue->collecting);
}

void xs_ze_thread_ends(void)
{
	if (here.node)
		leave_node(here.node);
	if (here.queue)
		leave_queue(here.queue);
}

/*
 * Who looked last has left in the middle: what is dealt with may still have its event signalled.
 * With the queue claimed.
 */
static __attribute__((noinline, cold)) void go_on(struct xs_ze_queue *queue)
{
	struct xs_ze_node *done = atomic_load_explicit(&queue->done, memory_order_relaxed),
			  *newest = atomic_load_explicit(&queue->newest, memory_order_acquire);
	uint32_t left = xs_ze_queue_most(queue);

	atomic_store_explicit(&queue->left, false, memory_order_relaxed);
	if (queue->context->dead || !newest)
		return;
	for (struct xs_ze_node *node = done; node && left--;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed)) {
		if (node == done || !node->event)
			(void)xs_ze.zeEvent.pfnHostReset(node->own);
		if (node == newest)
			break;
	}
}

bool xs_ze_collect_begin(struct xs_ze_queue *queue)
{
	bool left = atomic_load_explicit(&queue->collecting, memory_order_relaxed);

	if (!xs_claim(&queue->collecting))
		return false;
	if (__builtin_expect(here.queue && here.queue != queue, 0))
		leave_queue(here.queue);
	here.queue = queue;
	if (__builtin_expect(left || atomic_load_explicit(&queue->left, memory_order_relaxed), 0))
		go_on(queue);
	return true;
}

void xs_ze_collect_end(struct xs_ze_queue *queue)
{
	xs_unclaim(&queue->collecting);
	here.queue = NULL;
}

/* Who was away for too long finds that others have given it up. */
static inline bool is_still(const struct xs_ze_node *node, uint64_t state)
{
	return atomic_load_explicit(&node->state, memory_order_relaxed) == state;
}

/* Not ready as long as the event tells of its former use. */
static ze_result_t ask_event(const struct xs_ze_node *node, ze_kernel_timestamp_result_t *times)
{
	ze_result_t result = xs_ze.zeEvent.pfnQueryKernelTimestamp(node->event, times);

	if (!result && node->stale && !node->body &&
	    times->global.kernelStart == node->early_times.global.kernelStart &&
	    times->global.kernelEnd == node->early_times.global.kernelEnd)
		return ZE_RESULT_NOT_READY;
	return result;
}

/* Its times are read by this thread alone, in the state `busy`. */
static bool read_times(struct xs_ze_node *node, uint64_t busy)
{
	ze_kernel_timestamp_result_t times;
	ze_result_t result;
	uint32_t id = 0;

	if (node->saved) {
		result = xs_ze.zeEvent.pfnQueryStatus(node->own);
		times = *node->saved;
	} else {
		result = ask_event(node, &times);
	}
	if (!is_still(node, busy))
		return false;
	if (result == ZE_RESULT_NOT_READY) {
		atomic_store_explicit(&node->state, xs_ze_state(busy, XS_ZE_PENDING),
				      memory_order_release);
		return false;
	}
	atomic_store_explicit(&node->told, busy, memory_order_relaxed);
	if (!result)
		xs_ze_node_record(node, &times,
				  (node->saved ? 0 : XS_ZE_EVENT_HOLDS) | XS_ZE_QUERY_HOLDS, NULL,
				  node->queue, id = xs_ze_next_ids(1));
	else
		xs_commands_untimed(1);
	if (node->saved)
		(void)xs_ze.zeEvent.pfnHostReset(node->own);
	xs_ze_event_told(node->event, node, id);
	if (is_still(node, busy))
		atomic_store_explicit(&node->state, xs_ze_state(busy, XS_ZE_DONE),
				      memory_order_release);
	return true;
}

/* What this thread has left: false, it cannot go on with that. */
static __attribute__((noinline, cold)) bool read_again(struct xs_ze_node *node)
{
	(void)xs_ze_node_abandon(node);
	return (atomic_load_explicit(&node->state, memory_order_acquire) & 3) == XS_ZE_DONE ||
	       xs_ze_node_finish(node);
}

bool xs_ze_node_finish(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_acquire),
		 busy = xs_ze_state(state, XS_ZE_BUSY) | (uint64_t)reader() << XS_ZE_STATE_READER;
	bool done;

	if (__builtin_expect(is_left(state), 0))
		return read_again(node);
	if ((state & 3) != XS_ZE_PENDING)
		return (state & 3) == XS_ZE_DONE;
	if (__builtin_expect(here.node && here.node != node, 0))
		leave_node(here.node);
	here.node = node;
	if (!atomic_compare_exchange_strong(&node->state, &state, busy))
		return (state & 3) == XS_ZE_DONE;
	done = read_times(node, busy);
	here.node = NULL;
	return done;
}

bool xs_ze_node_abandon(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_acquire);
	bool complete = atomic_load_explicit(&node->told, memory_order_relaxed) == state;

	if ((state & 3) != XS_ZE_BUSY)
		return false;
	/* only asked: so can others; and an event of ours may still be signalled */
	if (!complete && (node->saved || is_left(state))) {
		atomic_compare_exchange_strong(&node->state, &state,
					       xs_ze_state(state, XS_ZE_PENDING));
		return false;
	}
	if (!atomic_compare_exchange_strong(&node->state, &state, xs_ze_state(state, XS_ZE_DONE)))
		return false;
	if (node->saved)
		(void)xs_ze.zeEvent.pfnHostReset(node->own);
	xs_ze_event_unlink(node->event, node);
	xs_commands_untimed(1);
	return true;
}

/* Has a thread left in the middle of reading the node's times? With the queue claimed. */
static __attribute__((noinline, cold)) bool is_stuck(struct xs_ze_queue *queue,
						     const struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_relaxed);

	if ((state & 3) != XS_ZE_BUSY)
		return false;
	if (queue->stuck == node && queue->stuck_state == state)
		return xs_moment() - queue->stuck_since >= XS_LEFT_FOR_GOOD;
	queue->stuck = node;
	queue->stuck_state = state;
	queue->stuck_since = xs_moment();
	return false;
}

void xs_ze_node_lost(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_relaxed);

	if (!node->saved && (state & 3) == XS_ZE_PENDING &&
	    atomic_compare_exchange_strong(&node->state, &state, xs_ze_state(state, XS_ZE_DONE)))
		xs_commands_untimed(1);
}

/*
 * A command that is timed by our own event, which the thread that collects has asked. It is marked
 * as dealt with by then: who leaves by a jump behind the reset would else wait for it for ever. One
 * that is not reset by then is so by who comes next: go_on().
 */
static inline void tell_own(struct xs_ze_queue *queue, struct xs_ze_node *node, ze_result_t result,
			    const ze_kernel_timestamp_result_t *times)
{
	if (!result)
		batch_add(&queue->batch, node, times, NULL, queue);
	else
		xs_commands_untimed(1);
	(void)xs_ze.zeEvent.pfnHostReset(node->own);
}

/*
 * Of those behind the first that is not complete: what runs out of order need not wait for it. From
 * here on they are dealt with.
 */
static void finish_others(struct xs_ze_queue *queue, struct xs_ze_node *done,
			  const struct xs_ze_node *newest)
{
	uint32_t left = xs_ze_queue_most(queue);
	ze_kernel_timestamp_result_t times;
	ze_result_t result;

	while (done != newest && left--) {
		done = atomic_load_explicit(&done->next, memory_order_relaxed);
		if (done->event != done->own) {
			(void)xs_ze_node_finish(done);
			continue;
		}
		result = xs_ze.zeEvent.pfnQueryKernelTimestamp(done->own, &times);
		if (result == ZE_RESULT_NOT_READY)
			continue;
		atomic_store_explicit(&done->state,
				      xs_ze_state(atomic_load_explicit(&done->state,
								       memory_order_relaxed),
						  XS_ZE_DONE),
				      memory_order_relaxed);
		atomic_signal_fence(memory_order_release);
		done->event = NULL;
		atomic_signal_fence(memory_order_release);
		tell_own(queue, done, result, &times);
	}
}

/* True: it is complete, or nothing will tell. *ret_result: what our own event said, if that does.
 */
static inline bool is_complete(struct xs_ze_queue *queue, struct xs_ze_node *node,
			       ze_result_t *ret_result, ze_kernel_timestamp_result_t *times)
{
	if (__builtin_expect(node->event == node->own, 1)) {
		*ret_result = xs_ze.zeEvent.pfnQueryKernelTimestamp(node->own, times);
		return *ret_result != ZE_RESULT_NOT_READY;
	}
	*ret_result = ZE_RESULT_NOT_READY;
	return xs_ze_node_finish(node) || (is_stuck(queue, node) && xs_ze_node_abandon(node));
}

/* As far as they lie in a row; returns the last of them, NULL: another thread has taken over. */
static inline struct xs_ze_node *finish_row(struct xs_ze_queue *queue, struct xs_ze_node *done,
					    const struct xs_ze_node *newest)
{
	uint32_t left = xs_ze_queue_most(queue);
	ze_kernel_timestamp_result_t times;
	struct xs_ze_node *next;
	ze_result_t result;

	while (done != newest && left--) {
		next = atomic_load_explicit(&done->next, memory_order_relaxed);
		if (!is_complete(queue, next, &result, &times))
			break;
		/* not if the driver took so long that another thread has taken over */
		if (__builtin_expect(atomic_load_explicit(&queue->done, memory_order_relaxed) !=
					     done,
				     0))
			return NULL;
		done = next;
		/*
		 * pairs with the acquire in xs_ze_claim(): what is behind it is no longer looked at
		 */
		atomic_store_explicit(&queue->done, done, memory_order_release);
		atomic_signal_fence(memory_order_release);
		if (result != ZE_RESULT_NOT_READY)
			tell_own(queue, done, result, &times);
	}
	return done;
}

static void collect(struct xs_ze_queue *queue, bool others)
{
	struct xs_ze_node *done, *newest;
	const struct xs_ze_node *told;

	/*
	 * what ends while nothing is recorded, or is seen by a thread of which nothing is, is
	 * looked at later
	 */
	if (!xs_recording() || !xs_ze_collect_begin(queue))
		return; /* or another thread has it */
	/* in this order: the first node of all is in both places when it is in `newest` */
	newest = atomic_load_explicit(&queue->newest, memory_order_acquire);
	done = atomic_load_explicit(&queue->done, memory_order_relaxed);
	told = done = finish_row(queue, done, newest);
	if (others && done) {
		finish_others(queue, done, newest);
		told = newest;
	}
	/* `told` is not used again before the next one is done with */
	if (queue->batch.count && told)
		batch_write(&queue->batch, &told->record, NULL);
	xs_ze_collect_end(queue);
}

static inline void collect_queries(struct xs_ze_queue *queue)
{
	if (__builtin_expect(queue->meter != NULL, 0))
		xs_ze_queries_collect(queue->meter);
}

void xs_ze_collect(struct xs_ze_queue *queue)
{
	collect(queue, false);
	collect_queries(queue);
}

void xs_ze_collect_others(struct xs_ze_queue *queue)
{
	collect(queue, true);
	collect_queries(queue);
}
