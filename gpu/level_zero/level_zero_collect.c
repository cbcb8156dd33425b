/*
 * What is complete of an immediate list: found by whoever comes by, once, and recorded.
 */
#include "device_record.h"
#include "level_zero_metrics.h"
#include "produce.h"
#include "stack.h"

/*
 * What this thread is at. It may leave by a jump, or end, at any instruction: what it has left is
 * then found here, or by who finds its mark.
 */
static __thread struct {
	struct xs_ze_look at;	 /* whose commands it looks at */
	struct xs_ze_node *node; /* whose times it reads */
	uintptr_t node_mark;
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
	if (here.at.queue)
		leave_queue(here.at.queue);
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

/*
 * The thread was looking at something when it came here. It may be in a handler that interrupts
 * that, and go on with it: false, if that is the same. Else it has left it.
 */
static __attribute__((noinline, cold)) bool look_within(const struct xs_ze_queue *queue,
							struct xs_ze_look *ret_outer)
{
	struct xs_ze_queue *before = here.at.queue;
	uint32_t since =
		(uint32_t)(atomic_load_explicit(&before->collecting, memory_order_relaxed) >> 32);

	/* not for ever, where the stack cannot be read */
	if (xs_moment() - since < XS_LEFT_FOR_GOOD && xs_stack_has(here.at.mark)) {
		*ret_outer = here.at;
		return before != queue;
	}
	if (before != queue)
		leave_queue(before);
	return true;
}

bool xs_ze_collect_begin_in(uintptr_t mark, struct xs_ze_queue *queue, struct xs_ze_look *ret_outer)
{
	bool left = atomic_load_explicit(&queue->collecting, memory_order_relaxed);

	*ret_outer = (struct xs_ze_look){ .queue = NULL };
	if (__builtin_expect(here.at.queue != NULL, 0) && !look_within(queue, ret_outer))
		return false;
	if (!xs_claim(&queue->collecting))
		return false;
	/* a handler that comes in between finds a frame that is there */
	here.at.mark = mark;
	atomic_signal_fence(memory_order_release);
	here.at.queue = queue;
	if (__builtin_expect(left || atomic_load_explicit(&queue->left, memory_order_relaxed), 0))
		go_on(queue);
	return true;
}

void xs_ze_collect_end(struct xs_ze_queue *queue, const struct xs_ze_look *outer)
{
	xs_unclaim(&queue->collecting);
	here.at.queue = outer->queue;
	atomic_signal_fence(memory_order_release);
	here.at.mark = outer->mark;
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

/* As look_within(): what the thread goes on with, NULL: nothing. */
static __attribute__((noinline, cold)) struct xs_ze_node *read_within(uintptr_t *ret_mark)
{
	struct xs_ze_node *before = here.node;

	if (!is_left(atomic_load_explicit(&before->state, memory_order_relaxed)))
		return NULL; /* it is done, or others have given it up */
	if (!xs_stack_has(here.node_mark)) {
		leave_node(before);
		return NULL;
	}
	*ret_mark = here.node_mark;
	return before;
}

bool xs_ze_node_finish(struct xs_ze_node *node)
{
	uint64_t state = atomic_load_explicit(&node->state, memory_order_acquire),
		 busy = xs_ze_state(state, XS_ZE_BUSY) | (uint64_t)reader() << XS_ZE_STATE_READER;
	struct xs_ze_node *outer = NULL;
	uintptr_t outer_mark = 0;
	bool done;

	if (__builtin_expect(is_left(state), 0))
		return read_again(node);
	if ((state & 3) != XS_ZE_PENDING)
		return (state & 3) == XS_ZE_DONE;
	if (__builtin_expect(here.node && here.node != node, 0))
		outer = read_within(&outer_mark);
	here.node_mark = XS_FRAME_MARK();
	atomic_signal_fence(memory_order_release);
	here.node = node;
	if (atomic_compare_exchange_strong(&node->state, &state, busy))
		done = read_times(node, busy);
	else
		done = (state & 3) == XS_ZE_DONE;
	here.node = outer;
	atomic_signal_fence(memory_order_release);
	here.node_mark = outer_mark;
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
		xs_ze_finished_add(&queue->batch, node, times, NULL, queue);
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
	struct xs_ze_look outer;

	/*
	 * what ends while nothing is recorded, or is seen by a thread of which nothing is, is
	 * looked at later
	 */
	if (!xs_recording() || !xs_ze_collect_begin(queue, &outer))
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
		xs_ze_finished_write(&queue->batch, &told->record, NULL);
	xs_ze_collect_end(queue, &outer);
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
