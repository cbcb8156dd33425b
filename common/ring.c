/*
 * The rare half of the ring: entering a step, waiting, waking.
 */
#include "ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "shm.h"

#define WAIT_NS 50000000 /* how long a blocked producer sleeps before it looks whether the consumer lives */

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static uint64_t step_of(const struct xs_ring *ring)
{
	return (ring->mask + 1) / XS_RING_STEPS;
}

static const struct xs_consumer *the_consumer;

void xs_ring_set_consumer(const struct xs_consumer *consumer)
{
	the_consumer = consumer;
}

static uint32_t heartbeat(void)
{
	return the_consumer ? atomic_load_explicit(&the_consumer->heartbeat, memory_order_relaxed) : 0;
}

void xs_ring_init(struct xs_ring *ring, unsigned char *data, uint64_t size, enum xs_on_full policy)
{
	ring->data = data;
	ring->mask = size - 1;
	ring->policy = policy;
	ring->limit = 0;
}

void xs_doorbell_ring(struct xs_doorbell *bell)
{
	int saved = errno;

	/*
	 * seq_cst on both: with the consumer's store of sleeping and load of head (xs_doorbell_wait) this is Dekker's
	 * pattern; either we see it asleep or it sees our record.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&bell->sleeping, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&bell->rung, 1, memory_order_relaxed);
		futex(&bell->rung, FUTEX_WAKE, 1, NULL);
	}
	errno = saved;
}

void xs_futex_wake(_Atomic uint32_t *word)
{
	futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

void xs_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = { (time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u) };

	futex(word, FUTEX_WAIT, value, &timeout);
}

void xs_doorbell_wait(struct xs_doorbell *bell, uint32_t seen, uint64_t timeout_ns)
{
	xs_futex_wait(&bell->rung, seen, timeout_ns);
}

void xs_ring_release(struct xs_ring *ring, uint64_t tail)
{
	uint64_t half = (ring->mask + 1) / 2;

	/* what was read before this store is not read again; pairs with the acquire in room() */
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
	/*
	 * Dekker again: the producer stores waiting, then loads tail. It is woken when half of the ring is free and not for each step: a
	 * wake-up costs more than a step. It comes in any case, since all that is written is consumed while nobody writes.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&ring->waiting, memory_order_relaxed) &&
	    atomic_load_explicit(&ring->head, memory_order_relaxed) - tail <= half) {
		atomic_store_explicit(&ring->waiting, 0, memory_order_relaxed);
		futex(&ring->waiting, FUTEX_WAKE, 1, NULL);
	}
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	/* one writer: no read-modify-write needed */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Is there room for the step that begins at `start`? */
static bool room(struct xs_ring *ring, uint64_t start)
{
	/* pairs with the release in xs_ring_release() */
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	return start + step_of(ring) - tail <= ring->mask + 1;
}

static bool wait_for_room(struct xs_ring *ring, struct xs_doorbell *bell, uint64_t start)
{
	struct timespec timeout = { 0, WAIT_NS };

	count(&ring->blocked, 1);
	while (!room(ring, start)) {
		uint32_t beat = heartbeat();

		xs_doorbell_ring(bell);
		atomic_store_explicit(&ring->waiting, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (room(ring, start))
			break;
		if (futex(&ring->waiting, FUTEX_WAIT, 1, &timeout) < 0 && errno == ETIMEDOUT &&
		    the_consumer && beat == heartbeat() && !xs_process_alive(the_consumer->pid, the_consumer->start)) {
			/* for good: an application must not stand still because its tracer was killed */
			atomic_store_explicit(&ring->consumer_dead, 1, memory_order_relaxed);
			break;
		}
	}
	atomic_store_explicit(&ring->waiting, 0, memory_order_relaxed);
	return room(ring, start);
}

/* Overwrite: the step at `start` is about to be used again; counts what is lost in it and moves the intact part's beginning. */
static void give_up_oldest(struct xs_ring *ring, uint64_t start)
{
	uint64_t size = ring->mask + 1, step = step_of(ring);
	uint64_t pos, end, lost = 0;
	uint32_t bytes;

	if (start < size)
		return;
	pos = start - size;
	end = pos + step;
	while (pos < end) {
		const struct xs_event *event = xs_ring_peek(ring->data, size, pos, end, &bytes);

		if (!event)
			break;
		if (event->kind == XS_THREAD && bytes >= sizeof(struct xs_thread_record))
			atomic_store_explicit(&ring->tail_tid, (uint32_t)((const struct xs_thread_record *)event)->tid,
					      memory_order_relaxed);
		else if (event->kind != XS_PAD)
			lost++;
		pos += bytes;
	}
	count(&ring->lost, lost);
	/* before the first overwriting store; pairs with the acquire of the consumer, which reads it after the process ended */
	atomic_store_explicit(&ring->tail_lost, end, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Makes the step's memory present: a full /dev/shm must be an error here and not a SIGBUS at a store. */
static bool prepare(struct xs_ring *ring, uint64_t end)
{
	uint64_t size = ring->mask + 1;

	if (ring->prepared >= size || end <= ring->prepared)
		return true;
	if (!xs_shm_present(ring->data + ring->prepared, end - ring->prepared))
		return false;
	ring->prepared = end;
	return true;
}

static void pad(struct xs_ring *ring, uint64_t head, uint64_t end)
{
	uint64_t left = end - head;

	while (left) {
		struct xs_event *event = (void *)(ring->data + (head & ring->mask));
		uint64_t bytes = left < XS_RECORD_MAX ? left : XS_RECORD_MAX;

		event->tick = 0;
		event->name = 0;
		event->kind = XS_PAD;
		event->words = (uint8_t)(bytes / 8);
		event->source = event->flags = 0;
		head += bytes;
		left -= bytes;
	}
	/* publishes the padding; pairs with the acquire in xs_ring_filled() */
	atomic_store_explicit(&ring->head, head, memory_order_release);
}

static void *lose(struct xs_ring *ring)
{
	count(&ring->lost, 1);
	return NULL;
}

static bool enter(struct xs_ring *ring, struct xs_doorbell *bell, uint64_t start)
{
	uint64_t step = step_of(ring);

	if (!prepare(ring, start + step))
		return false;
	switch (ring->policy) {
	case XS_FULL_OVERWRITE:
		give_up_oldest(ring, start);
		return true;
	case XS_FULL_DROP:
		if (!room(ring, start)) {
			xs_doorbell_ring(bell);
			return false;
		}
		break;
	default:
		if (!room(ring, start) && (atomic_load_explicit(&ring->consumer_dead, memory_order_relaxed) ||
					   !wait_for_room(ring, bell, start)))
			return false;
		break;
	}
	xs_doorbell_ring(bell);
	return true;
}

/* What had to be said and found no room; there are at least 64 bytes at `head` now. Returns the head behind it. */
static uint64_t write_due(struct xs_ring *ring, uint64_t head)
{
	struct xs_event *event;

	if (ring->lost_ends) {
		event = (void *)(ring->data + (head & ring->mask));
		memset(event, 0, sizeof(*event));
		event->kind = XS_LOST_ENDS;
		event->words = sizeof(*event) / 8;
		event->name = ring->lost_ends;
		head += sizeof(*event);
		ring->lost_ends = 0;
	}
	if (ring->thread_due) {
		memcpy(ring->data + (head & ring->mask), &ring->thread, sizeof(ring->thread));
		head += sizeof(ring->thread);
		ring->thread_due = 0;
	}
	/* publishes them; pairs with the acquire in xs_ring_filled() */
	atomic_store_explicit(&ring->head, head, memory_order_release);
	return head;
}

static void *no_room(struct xs_ring *ring, enum xs_role role)
{
	ring->limit = 0; /* every record comes here until all is made good */
	switch (role) {
	case XS_ROLE_BEGIN:
		ring->skip = 1;
		break;
	case XS_ROLE_END:
		ring->lost_ends++;
		break;
	case XS_ROLE_THREAD:
		ring->thread_due = 1;
		return NULL; /* no event of the application: not counted */
	default:
		break;
	}
	return lose(ring);
}

void *xs_ring_enter_step(struct xs_ring *ring, struct xs_doorbell *bell, uint32_t size, enum xs_role role)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t step = step_of(ring);
	uint64_t stop = (head + step - 1) / step * step;
	/* where records may be lost, the last quarter of the last free step is kept for ends: what was begun can be ended */
	bool guarded = ring->policy == XS_FULL_DROP;
	bool due = ring->lost_ends || ring->thread_due;
	uint32_t needed = size + (due ? 64 : 0);
	int saved = errno;

	if (ring->skip && (role == XS_ROLE_BEGIN || role == XS_ROLE_END)) {
		ring->skip += role == XS_ROLE_BEGIN ? 1 : -1u;
		return lose(ring);
	}
	if (head + needed <= stop) {
		bool plenty = !guarded || room(ring, stop);

		if (!plenty && (role == XS_ROLE_OTHER || role == XS_ROLE_BEGIN) && head + needed > stop - step / 4)
			return no_room(ring, role);
		ring->limit = ring->skip ? 0 : plenty ? stop : stop - step / 4;
	} else {
		if (!enter(ring, bell, stop)) {
			errno = saved;
			return no_room(ring, role);
		}
		errno = saved;
		if (stop > head)
			pad(ring, head, stop);
		head = stop;
		ring->limit = ring->skip ? 0 : stop + step - (guarded ? step / 4 : 0);
	}
	if (due)
		head = write_due(ring, head);
	return ring->data + (head & ring->mask);
}
