/*
 * Calls that execute lists: when what they have submitted is complete. Fences, ours and the
 * application's.
 */
#include "device_record.h"
#include "level_zero_execute.h"

/* A fence of the application. */
struct their_fence {
	struct xs_ze_queue *queue;
	_Atomic uint64_t tick; /* when what it goes with was submitted */
};

static struct xs_spare submissions, fences, their_fences;
static struct xs_handles fence_of = { .size = 65536 }; /* struct their_fence * */

struct xs_ze_submission *xs_ze_submission_new(struct xs_ze_queue *queue)
{
	struct xs_ze_submission *submission =
		xs_spare_take_zeroed(&submissions, sizeof(*submission));

	if (submission) {
		submission->queue = queue;
		submission->users = 1;
	}
	return submission;
}

struct xs_ze_fence *xs_ze_fence_get(struct xs_ze_queue *queue)
{
	ze_fence_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_FENCE_DESC };
	struct xs_ze_fence *fence;

	xs_lock_robust(&xs_ze_execute_lock);
	fence = queue->fences;
	if (fence)
		queue->fences = fence->next;
	xs_unlock(&xs_ze_execute_lock);
	if (fence || xs_is_sealed()) /* the driver may need system calls for one */
		return fence;
	fence = xs_spare_take_zeroed(&fences, sizeof(*fence));
	if (fence && xs_ze.zeFence.pfnCreate(queue->handle, &desc, &fence->handle)) {
		xs_spare_give(&fences, fence);
		fence = NULL;
	}
	return fence;
}

void xs_ze_submission_drop(struct xs_ze_submission *submission)
{
	struct xs_ze_queue *queue = submission->queue;
	uint32_t users;

	xs_lock_robust(&xs_ze_execute_lock);
	users = --submission->users;
	for (struct xs_ze_submission **at = &queue->submissions; !users && *at; at = &(*at)->next) {
		if (*at == submission) {
			*at = submission->next;
			break;
		}
	}
	xs_unlock(&xs_ze_execute_lock);
	if (users)
		return;
	if (submission->node) {
		submission->node->lost = !submission->done || submission->failed;
		xs_ze_node_put(submission->node);
	}
	if (submission->fence && submission->done && !submission->failed && queue->handle &&
	    !xs_ze.zeFence.pfnReset(submission->fence->handle)) {
		xs_lock_robust(&xs_ze_execute_lock);
		submission->fence->next = queue->fences;
		queue->fences = submission->fence;
		xs_unlock(&xs_ze_execute_lock);
	} else if (submission->fence && queue->handle && submission->failed) {
		(void)xs_ze.zeFence.pfnDestroy(submission->fence->handle);
		xs_spare_give(&fences, submission->fence);
	}
	xs_spare_give(&submissions, submission);
}

bool xs_ze_submission_done(struct xs_ze_submission *submission)
{
	ze_result_t result;

	if (submission->done || submission->failed)
		return true;
	if (submission->node)
		result = xs_ze.zeEvent.pfnQueryStatus(submission->node->own);
	else if (submission->fence)
		result = xs_ze.zeFence.pfnQueryStatus(submission->fence->handle);
	else if (xs_is_sealed()) /* the program will see its fence */
		result = ZE_RESULT_NOT_READY;
	else /* another thread may destroy their fence just now; the queue is there */
		result = xs_ze.zeCommandQueue.pfnSynchronize(submission->queue->handle, 0);
	if (result == ZE_RESULT_NOT_READY)
		return false;
	if (result)
		submission->failed = true;
	submission->done = true;
	return true;
}

ze_result_t xs_hook_zeFenceCreate(ze_command_queue_handle_t queue, const ze_fence_desc_t *desc,
				  ze_fence_handle_t *fence)
{
	ze_result_t result = xs_ze.zeFence.pfnCreate(queue, desc, fence);
	struct xs_ze_queue *known = !result && xs_ze_device ? xs_ze_queue_of(queue) : NULL;
	_Atomic uint64_t *value = known ? xs_handle_add(&fence_of, *fence) : NULL;
	struct their_fence *theirs = value ? xs_spare_take_zeroed(&their_fences, sizeof(*theirs))
					   : NULL;

	if (theirs) {
		theirs->queue = known;
		atomic_store_explicit(value, (uint64_t)(uintptr_t)theirs, memory_order_release);
	}
	return result;
}

void xs_ze_fence_submitted(ze_fence_handle_t fence, uint64_t tick)
{
	struct their_fence *theirs = xs_handle_get(&fence_of, fence);

	if (theirs)
		atomic_store_explicit(&theirs->tick, tick, memory_order_relaxed);
}

static void fence_signalled(struct xs_ze_queue *queue, ze_fence_handle_t fence, bool signalled)
{
	xs_lock_robust(&xs_ze_execute_lock);
	for (struct xs_ze_submission *s = queue->submissions; s; s = s->next) {
		if (s->theirs == fence) {
			s->done |= signalled;
			s->theirs = NULL;
		}
	}
	xs_unlock(&xs_ze_execute_lock);
}

void xs_ze_fence_ends(ze_fence_handle_t fence, bool destroyed)
{
	struct their_fence *theirs = xs_ze_alive() ? xs_handle_get(&fence_of, fence) : NULL;
	struct xs_ze_queue *queue = theirs ? theirs->queue : NULL;

	if (queue && queue->submissions) {
		fence_signalled(queue, fence, !xs_ze.zeFence.pfnQueryStatus(fence));
		xs_ze_collect_executions(queue);
	}
	if (theirs)
		atomic_store_explicit(&theirs->tick, 0, memory_order_relaxed);
	if (destroyed && theirs) {
		xs_handle_remove(&fence_of, fence);
		xs_spare_give(&their_fences, theirs);
	}
}

void xs_ze_fence_seen(ze_fence_handle_t fence, ze_result_t result, uint64_t began)
{
	struct their_fence *theirs = !result && xs_ze_alive() ? xs_handle_get(&fence_of, fence)
							      : NULL;
	struct xs_ze_queue *queue = theirs ? theirs->queue : NULL;
	uint64_t tick = theirs ? atomic_load_explicit(&theirs->tick, memory_order_relaxed) : 0;
	struct xs_own_time time;

	if (!queue)
		return;
	xs_own_time_begin(&time);
	fence_signalled(queue, fence, true);
	xs_ze_collect_executions(queue);
	if (tick)
		xs_waited(XS_SOURCE_LEVEL_ZERO, began, queue->serial, XS_WAITED_SUBMITTED, tick);
	xs_ze_clock(queue->device);
	xs_own_time_end(&time);
}

void xs_ze_fences_destroy(struct xs_ze_queue *queue)
{
	struct xs_ze_fence *fence;

	while ((fence = queue->fences)) {
		queue->fences = fence->next;
		(void)xs_ze.zeFence.pfnDestroy(fence->handle);
		xs_spare_give(&fences, fence);
	}
}
