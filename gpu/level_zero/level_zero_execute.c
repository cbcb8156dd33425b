/*
 * Executions of Level Zero's regular lists.
 *
 * The events of a list hold the times of its last execution. When that is complete (a fence tells,
 * ours where the application gave none) they are read. If the list is executed again before, a list
 * of ours goes in between, in the same call, which copies them on the device into host memory of
 * that execution: nothing waits, and no execution's times are lost.
 */
#include "device_record.h"
#include "level_zero_execute.h"
#include "level_zero_metrics.h"

_Atomic uint32_t xs_ze_execute_lock;
static struct xs_spare executions, many;
static _Atomic uint64_t serial;

/* ---- reading the times ---- */

static void record_execution(struct xs_ze_execution *execution)
{
	struct xs_ze_body *body = execution->body;
	const struct xs_ze_slot *slot = execution->slot;
	bool resets = slot && slot->resets;
	struct xs_device_record graph = { .id = 0 };
	uint32_t i = 0, id;

	if ((slot ? !slot->resets : !body->resets) && !execution->query) {
		xs_ze_nodes_record(body->first, slot ? slot->times : NULL, &execution->submit,
				   execution->queue);
		return;
	}

	for (struct xs_ze_node *node = body->first; node;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed), i++) {
		ze_kernel_timestamp_result_t times, *saved = node->saved;
		bool of_event = false;

		if (slot && saved)
			saved = resets ? &slot->times[body->count + i] : NULL;
		if (resets && xs_ze_is_set(&slot->times[2 * body->count + i]))
			times = slot->times[2 * body->count + i];
		else if (atomic_load_explicit(&node->early, memory_order_acquire) ==
			 execution->serial)
			times = node->early_times;
		else if (saved && node->saved_always)
			times = *saved;
		else if (slot)
			times = slot->times[i];
		else if (!xs_ze.zeEvent.pfnQueryKernelTimestamp(node->event, &times))
			of_event = true;
		else if (saved)
			times = *saved; /* another list has reset it */
		else
			memset(&times, 0xff, sizeof(times));
		if (!xs_ze_is_set(&times) || xs_ze_is_gone(&times)) {
			xs_commands_untimed(1);
		} else {
			id = xs_ze_next_ids(1);
			xs_ze_node_record(node, &times,
					  (of_event ? XS_ZE_EVENT_HOLDS : 0) |
						  (slot ? 0 : XS_ZE_QUERY_HOLDS),
					  &execution->submit, execution->queue, id);
			if (node->record.kernel)
				xs_ze_graph_ran(&graph, node, &times, id);
		}
		if (saved)
			memset(saved, 0xff, sizeof(*saved));
	}
	if (execution->query && graph.id) {
		xs_ze_record_queue(&graph, execution->queue);
		xs_ze_graph_told(execution, &graph);
		execution->query = NULL;
	}
}

/* No longer in a queue, and its times are read, or never will be. */
static void execution_end(struct xs_ze_execution *execution)
{
	struct xs_ze_body *body = execution->body;

	xs_lock_robust(&xs_ze_execute_lock);
	if (body->live == execution)
		body->live = NULL;
	if (execution->slot) {
		execution->slot->next = body->idle;
		body->idle = execution->slot;
	}
	xs_unlock(&xs_ze_execute_lock);
	xs_count_unmeasured(execution->query != NULL);
	xs_ze_submission_drop(execution->submission);
	xs_ze_body_drop(body);
	xs_spare_give(&executions, execution);
}

/* The oldest one is in the queue no more. With the lock held. */
static void take_off(struct xs_ze_queue *queue)
{
	queue->first = queue->first->next;
	if (!queue->first)
		queue->last = NULL;
}

/*
 * The thread that read the times of the oldest one has left in the middle: it stays as it is, and
 * its memory is never used again. With the lock held.
 */
static void leave_behind(struct xs_ze_queue *queue)
{
	struct xs_ze_execution *execution = queue->first;

	if (!execution || !execution->busy)
		return;
	take_off(queue);
	if (execution->body->live == execution)
		execution->body->live = NULL;
	xs_commands_untimed(execution->body->count);
}

/* True: there may be more. */
static bool collect_oldest(struct xs_ze_queue *queue)
{
	struct xs_ze_submission *submission;
	struct xs_ze_execution *execution;
	bool ours, again;

	xs_lock_robust(&xs_ze_execute_lock);
	leave_behind(queue);
	execution = queue->first;
	submission = execution ? execution->submission : NULL;
	if (submission)
		submission->users++;
	xs_unlock(&xs_ze_execute_lock);
	if (!submission)
		return false;
	if (!xs_ze_submission_done(submission)) {
		xs_ze_submission_drop(submission);
		return false;
	}
	xs_lock_robust(&xs_ze_execute_lock);
	ours = queue->first == execution && !execution->busy;
	again = ours && execution->submission != submission; /* it waits for another one by now */
	ours &= !again;
	execution->busy |= ours;
	xs_unlock(&xs_ze_execute_lock);
	if (ours && !submission->failed && execution->serial != XS_ZE_LOST)
		record_execution(execution);
	else if (ours)
		xs_commands_untimed(execution->body->count);
	xs_ze_submission_drop(submission);
	if (!ours)
		return again;
	xs_lock_robust(&xs_ze_execute_lock);
	ours = queue->first == execution; /* else it took so long that it was left behind */
	if (ours)
		take_off(queue);
	xs_unlock(&xs_ze_execute_lock);
	if (ours)
		execution_end(execution);
	return ours;
}

void xs_ze_collect_executions(struct xs_ze_queue *queue)
{
	struct xs_ze_look outer;

	if (!queue->first || !xs_recording() || !xs_ze_collect_begin(queue, &outer))
		return;
	while (collect_oldest(queue))
		;
	xs_ze_collect_end(queue, &outer);
}

/*
 * ns: the application has waited for its work, so ours is just about to be signalled; the machine
 * may be busy
 */
#define LAST_CHANCE 20000000u

uint64_t xs_ze_last_chance(void)
{
	return xs_true_ns() + LAST_CHANCE;
}

bool xs_ze_wait_on(uint64_t deadline, uint32_t *rounds)
{
	return xs_recording() && xs_true_ns() < deadline && xs_wait_a_bit(rounds);
}

void xs_ze_collect_executions_last(struct xs_ze_queue *queue)
{
	uint64_t deadline = xs_ze_last_chance();
	uint32_t rounds = 0;

	do
		xs_ze_collect_executions(queue);
	while (queue->first && xs_ze_wait_on(deadline, &rounds));
}

void xs_ze_abandon_executions(struct xs_ze_queue *queue)
{
	struct xs_ze_execution *execution;

	for (;;) {
		xs_lock_robust(&xs_ze_execute_lock);
		leave_behind(queue);
		execution = queue->first;
		if (execution) {
			/*
			 * its events and our fence may still be signalled: the body keeps them for
			 * good, and the fence is never destroyed
			 */
			execution->body->users++;
			execution->submission->failed = true;
			execution->submission->fence = NULL;
			take_off(queue);
		}
		xs_unlock(&xs_ze_execute_lock);
		if (!execution)
			break;
		xs_commands_untimed(execution->body->count);
		execution_end(execution);
	}
	xs_ze_fences_destroy(queue);
}

bool xs_ze_body_submit(struct xs_ze_body *body, struct xs_ze_submit *ret_submit,
		       uint32_t *ret_queue)
{
	xs_lock_robust(&xs_ze_execute_lock);
	*ret_submit = body->submit;
	*ret_queue = body->submit_queue;
	xs_unlock(&xs_ze_execute_lock);
	return ret_submit->tick;
}

void xs_ze_body_event_ends(struct xs_ze_node *node, bool destroyed)
{
	struct xs_ze_body *body = node->body;
	ze_kernel_timestamp_result_t times;
	uint64_t live_serial = 0;
	uint32_t rounds = 0;
	bool busy;

	do {
		xs_lock_robust(&xs_ze_execute_lock);
		busy = body->live && body->live->busy;
		live_serial = body->live ? body->live->serial : 0;
		xs_unlock(&xs_ze_execute_lock);
	} while (busy && xs_wait_a_bit(&rounds)); /* another thread reads the event just now */
	if (live_serial && !xs_ze.zeEvent.pfnQueryKernelTimestamp(node->event, &times)) {
		node->early_times = times;
		body->resets = true;
		atomic_store_explicit(&node->early, live_serial, memory_order_release);
	}
	if (destroyed)
		node->event = node->own; /* which is never signalled */
}

void xs_ze_body_gives_way(struct xs_ze_node *node)
{
	struct xs_ze_body *body = node->body;
	struct xs_ze_queue *queue = NULL;
	uint64_t of = 0;
	uint32_t rounds = 0;
	bool busy;

	xs_lock_robust(&xs_ze_execute_lock);
	if (body->live) {
		queue = body->live->queue;
		of = body->live->serial;
	}
	xs_unlock(&xs_ze_execute_lock);
	if (!queue)
		return;
	xs_ze_collect_executions(queue);
	do {
		xs_lock_robust(&xs_ze_execute_lock);
		busy = body->live && body->live->busy;
		if (!body->live || body->live->serial != of)
			of = 0;
		xs_unlock(&xs_ze_execute_lock);
	} while (busy && xs_wait_a_bit(&rounds)); /* another thread reads the event just now */
	if (!of || atomic_load_explicit(&node->early, memory_order_relaxed) == of)
		return;
	node->early_times.global.kernelStart = XS_ZE_GONE;
	body->resets = true;
	atomic_store_explicit(&node->early, of, memory_order_release);
}

/* ---- executing ---- */

/* The events that others signal, too, tell of this body from here on. */
static void take_events(const struct xs_ze_body *body)
{
	for (struct xs_ze_node *node = body->first; node;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed)) {
		_Atomic uint64_t *word = node->event != node->own ? xs_ze_event_word(node->event)
								  : NULL;
		uint64_t value = word ? atomic_load_explicit(word, memory_order_acquire) : 0;
		struct xs_ze_node *before = xs_ze_node_linked(xs_ze_event_link(value));

		if (!word || before == node)
			continue;
		if (before && before->body)
			xs_ze_body_gives_way(before);
		else if (before && !xs_ze_node_finish(before))
			xs_ze_node_lost(before);
		xs_ze_node_link_event(node, node->event);
	}
}

/* What the host has read early belongs to this execution, and the next one will do the same. */
static void keep_early(const struct xs_ze_body *body, const struct xs_ze_slot *slot, uint64_t of)
{
	ze_kernel_timestamp_result_t *times = &slot->times[2 * body->count];

	if (!slot->resets)
		return;
	memset(times, 0xff, body->count * sizeof(*times));
	for (struct xs_ze_node *node = body->first; node;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed), times++)
		if (atomic_load_explicit(&node->early, memory_order_relaxed) == of)
			*times = node->early_times;
}

/* Before a list is executed once more. Returns what must be executed before it, or NULL. */
static struct xs_ze_slot *save_times(struct xs_ze_body *body, struct xs_ze_submission *submission)
{
	struct xs_ze_slot *used = NULL;
	struct xs_ze_submission *before = NULL;
	struct xs_ze_execution *execution;
	struct xs_ze_slot *slot = NULL;
	uint32_t rounds = 0;
	bool busy;

	do {
		xs_lock_robust(&xs_ze_execute_lock);
		execution = body->live;
		busy = execution && execution->busy;
		xs_unlock(&xs_ze_execute_lock);
	} while (busy && xs_wait_a_bit(&rounds)); /* another thread reads the events just now */
	if (!execution || busy)
		return NULL;
	slot = xs_ze_slot_get(body);
	if (slot)
		keep_early(body, slot, execution->serial);
	xs_lock_robust(&xs_ze_execute_lock);
	if (body->live == execution && !execution->busy) {
		body->live = NULL;
		before = execution->submission;
		execution->submission = submission;
		submission->users++;
		execution->slot = slot;
		if (!slot) /* no way to copy them */
			execution->serial = XS_ZE_LOST;
		used = slot;
	} else if (slot) {
		slot->next = body->idle;
		body->idle = slot;
	}
	xs_unlock(&xs_ze_execute_lock);
	if (before)
		xs_ze_submission_drop(before);
	return used;
}

/* Most lists are only ever executed in one queue. What is executed twice may be so often. */
static void prepare(struct xs_ze_body *body, const struct xs_ze_queue *queue, uint32_t before)
{
	for (struct xs_ze_node *node = body->first; before <= 1 && node;
	     node = atomic_load_explicit(&node->next, memory_order_relaxed)) {
		if (!before)
			xs_ze_record_queue(&node->record, queue);
		else if (!node->shape)
			node->shape = xs_ze_shape(&node->record);
	}
}

static struct xs_ze_execution *new_execution(struct xs_ze_queue *queue, struct xs_ze_body *body,
					     struct xs_ze_submission *submission, uint64_t tick)
{
	struct xs_ze_execution *execution = xs_spare_take_zeroed(&executions, sizeof(*execution));

	if (!execution)
		return NULL;
	execution->queue = queue;
	execution->body = body;
	execution->submission = submission;
	execution->submit = (struct xs_ze_submit){ .tick = tick, .tid = xs_thread_id() };
	prepare(body, queue, atomic_fetch_add_explicit(&body->executions, 1, memory_order_relaxed));
	execution->serial = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed) + 1;
	xs_lock_robust(&xs_ze_execute_lock);
	body->users++;
	submission->users++;
	body->live = execution;
	body->submit = execution->submit;
	body->submit_queue = queue->serial;
	xs_unlock(&xs_ze_execute_lock);
	return execution;
}

void xs_ze_batch_begin(struct xs_ze_batch *batch, struct xs_ze_queue *queue, uint32_t lists)
{
	xs_own_time_begin(&batch->time);
	batch->list = lists <= XS_ZE_FEW
			      ? batch->few
			      : xs_spare_take(&many, 2 * XS_ZE_LISTS * sizeof(*batch->list));
	if (!batch->list)
		queue = NULL; /* no memory: what it executes is as if it were not traced */
	batch->queue = queue;
	batch->submission = queue ? xs_ze_submission_new(queue) : NULL;
	batch->first = batch->last = NULL;
	batch->count = 0;
	batch->untimed = 0;
	if (!batch->submission)
		return;
	xs_ze_collect_executions(queue);
	batch->tick = xs_recording() ? xs_tick(xs_use_tsc) : 0;
	xs_ze_kernels_tell();
}

/* ns: a program that lets the device wait longer than that is not waited for again */
#define MEASURED_CHANCE 1000000000u

/*
 * A query holds what was counted in the last execution alone, and nothing on the device can copy
 * it: the next execution waits until it is read.
 */
static __attribute__((noinline)) void await_queries(struct xs_ze_body *body,
						    const struct xs_ze_submission *submission)
{
	uint64_t deadline = xs_true_ns() + MEASURED_CHANCE;
	struct xs_ze_execution *execution;
	struct xs_ze_queue *queue;
	uint32_t rounds = 0;

	do {
		xs_lock_robust(&xs_ze_execute_lock);
		execution = body->live;
		queue = execution && execution->submission != submission ? execution->queue : NULL;
		xs_unlock(&xs_ze_execute_lock);
		if (queue)
			xs_ze_collect_executions(queue);
	} while (queue && xs_ze_wait_on(deadline, &rounds));
	body->impatient |= queue != NULL;
}

/* Its last execution's times are kept, and what was counted in it. */
static struct xs_ze_slot *keep_last(struct xs_ze_body *body, struct xs_ze_submission *submission)
{
	if (__builtin_expect(body->measured && !body->impatient, 0) && !xs_is_sealed())
		await_queries(body, submission);
	return body->count ? save_times(body, submission) : NULL;
}

struct xs_ze_slot *xs_ze_batch_body(struct xs_ze_batch *batch, struct xs_ze_body *body)
{
	struct xs_ze_slot *slot = keep_last(body, batch->submission);
	struct xs_ze_execution *execution = NULL;

	if (body->shares)
		take_events(body);
	if (body->count && batch->tick)
		execution = new_execution(batch->queue, body, batch->submission, batch->tick);
	if (batch->tick)
		batch->untimed += body->untimed + (execution ? 0 : body->count);
	if (execution) {
		*(batch->last ? &batch->last->next : &batch->first) = execution;
		batch->last = execution;
	}
	return slot;
}

void xs_ze_batch_list(struct xs_ze_batch *batch, ze_command_list_handle_t handle)
{
	struct xs_ze_list *list = batch->submission ? xs_ze_list_of(handle) : NULL;
	struct xs_ze_slot *slot = list && list->body ? xs_ze_batch_body(batch, list->body) : NULL;

	if (slot)
		batch->list[batch->count++] = slot->list;
	batch->list[batch->count++] = handle;
}

void xs_ze_batch_ready(const struct xs_ze_batch *batch)
{
	xs_own_time_end(&batch->time);
}

void xs_ze_batch_called(struct xs_ze_batch *batch)
{
	xs_own_time_begin(&batch->time);
}

void xs_ze_batch_end(struct xs_ze_batch *batch, ze_result_t result)
{
	struct xs_ze_submission *submission = batch->submission;
	struct xs_ze_queue *queue = batch->queue;
	struct xs_ze_execution *next;

	if (batch->list && batch->list != batch->few)
		xs_spare_give(&many, batch->list);
	if (!submission)
		return;
	/* before another thread can see them */
	for (const struct xs_ze_execution *execution = batch->first; !result && execution;
	     execution = execution->next)
		xs_commands_begin(execution->body->count);
	if (!result && batch->untimed)
		xs_count_untimed(batch->untimed);
	xs_lock_robust(&xs_ze_execute_lock);
	if (result) {
		submission->failed = true;
	} else if (batch->first) {
		if (queue->last)
			queue->last->next = batch->first;
		else
			queue->first = batch->first;
		queue->last = batch->last;
		if (submission->theirs) {
			submission->next = queue->submissions;
			queue->submissions = submission;
		}
	}
	xs_unlock(&xs_ze_execute_lock);
	for (; result && batch->first; batch->first = next) {
		next = batch->first->next;
		execution_end(batch->first);
	}
	xs_ze_submission_drop(submission);
	xs_ze_collect_executions(queue);
	xs_ze_clock(queue->device);
	xs_own_time_end(&batch->time);
}

static ze_result_t execute(ze_command_queue_handle_t handle, uint32_t count,
			   ze_command_list_handle_t *lists, ze_fence_handle_t fence)
{
	struct xs_ze_submission *submission;
	ze_fence_handle_t theirs = fence;
	struct xs_ze_batch batch;
	ze_result_t result;

	xs_ze_batch_begin(&batch,
			  xs_ze_device && xs_ze_alive() && lists ? xs_ze_queue_of(handle) : NULL,
			  count);
	submission = batch.submission;
	if (!submission) {
		result = xs_ze.zeCommandQueue.pfnExecuteCommandLists(handle, count, lists, fence);
		xs_ze_batch_end(&batch, result);
		return result;
	}
	submission->theirs = theirs;
	for (uint32_t i = 0; i < count; i++)
		xs_ze_batch_list(&batch, lists[i]);
	if (!fence && submission->users > 1) {
		submission->fence = xs_ze_fence_get(batch.queue);
		/* nothing tells that would not ask the kernel */
		submission->failed = !submission->fence && xs_is_sealed();
		fence = submission->fence ? submission->fence->handle : NULL;
	}
	xs_ze_batch_ready(&batch);
	result =
		xs_ze.zeCommandQueue.pfnExecuteCommandLists(handle, batch.count, batch.list, fence);
	xs_ze_batch_called(&batch);
	if (!result && theirs)
		xs_ze_fence_submitted(theirs, batch.tick);
	xs_ze_batch_end(&batch, result);
	return result;
}

/* The lists of one call are executed one after the other, and so are those of two. */
ze_result_t xs_hook_zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t handle,
						      uint32_t count,
						      ze_command_list_handle_t *lists,
						      ze_fence_handle_t fence)
{
	ze_result_t result = ZE_RESULT_SUCCESS;

	for (; lists && count > XS_ZE_LISTS && !result; count -= XS_ZE_LISTS, lists += XS_ZE_LISTS)
		result = execute(handle, XS_ZE_LISTS, lists, NULL);
	return result ? result : execute(handle, count, lists, fence);
}
