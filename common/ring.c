/*
 * The rare half of the ring: entering a step, waiting, waking.
 */
#include "ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "process.h"
#include "shm.h"
#include "sys.h"

/* how long a blocked producer sleeps before it looks whether the consumer lives */
#define WAIT_NS 50000000
/* So long is waited while the consumer looks about, BEATS times at least, and reads nothing here.
 */
#define UNREAD_NS 10000000000u
#define BEATS	  100u
/* bytes that are made present at once, at most: some microseconds */
#define PIECE_MAX (32u << 10)

static uint64_t step_of(const struct xs_producer *producer)
{
	return (producer->mask + 1) / XS_RING_STEPS;
}

static const struct xs_consumer *the_consumer;
/* Who that is, as it was when we joined: others can write there. 0: it had not said so yet. */
static struct {
	int32_t pid;
	uint64_t start;
} who;

void xs_ring_set_consumer(const struct xs_consumer *consumer)
{
	the_consumer = consumer;
	who.start = consumer->start;
	who.pid = consumer->pid;
}

static bool consumer_lives(void)
{
	return who.pid > 0 ? xs_pid_alive(who.pid, who.start)
			   : the_consumer->pid <= 0 ||
				     xs_pid_alive(the_consumer->pid, the_consumer->start);
}

static uint32_t heartbeat(void)
{
	return the_consumer ? atomic_load_explicit(&the_consumer->heartbeat, memory_order_relaxed)
			    : 0;
}

void xs_ring_init(struct xs_producer *producer, struct xs_ring *ring, unsigned char *data,
		  uint64_t size, enum xs_on_full policy)
{
	*producer = (struct xs_producer){
		.data = data, .mask = size - 1, .ring = ring, .policy = policy
	};
}

void xs_doorbell_ring(struct xs_doorbell *bell)
{
	/*
	 * seq_cst on both: with the consumer's store of sleeping and load of head
	 * (xs_doorbell_wait) this is Dekker's pattern; either we see it asleep or it sees our
	 * record.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&bell->sleeping, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&bell->rung, 1, memory_order_relaxed);
		(void)xs_sys(SYS_futex, &bell->rung, FUTEX_WAKE, 1);
	}
}

void xs_futex_wake(_Atomic uint32_t *word)
{
	(void)xs_sys(SYS_futex, word, FUTEX_WAKE, INT_MAX);
}

void xs_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = { (time_t)(timeout_ns / 1000000000u),
				    (long)(timeout_ns % 1000000000u) };

	(void)xs_sys(SYS_futex, word, FUTEX_WAIT, value, &timeout);
}

void xs_doorbell_wait(struct xs_doorbell *bell, uint32_t seen, uint64_t timeout_ns)
{
	xs_futex_wait(&bell->rung, seen, timeout_ns);
}

void xs_ring_release(struct xs_ring *ring, uint64_t size, uint64_t tail)
{
	/* what was read before this store is not read again; pairs with the acquire in room() */
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
	/*
	 * Dekker again: the producer stores waiting, then loads tail. It is woken when half of the
	 * ring is free and not for each step: a wake-up costs more than a step. The wake-up always
	 * comes: a waiting producer writes nothing, and the consumer consumes all that was written.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&ring->waiting, memory_order_relaxed) &&
	    atomic_load_explicit(&ring->head, memory_order_relaxed) - tail <= size / 2) {
		atomic_store_explicit(&ring->waiting, 0, memory_order_relaxed);
		(void)xs_sys(SYS_futex, &ring->waiting, FUTEX_WAKE, 1);
	}
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	/* one writer: no read-modify-write needed */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Is there room for the step that begins at `start`? */
static bool room(const struct xs_producer *p, uint64_t start)
{
	/* pairs with the release in xs_ring_release() */
	uint64_t tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire);

	/* a tail ahead of us is no reason to wait: see catch_up() */
	return (int64_t)(start + step_of(p) - tail) <= (int64_t)(p->mask + 1);
}

/*
 * Who spoils the ring of another process, or its file, may end before the consumer has looked: then
 * this ring is none of a process to it.
 */
struct patience {
	uint64_t since, tail;
	uint32_t beat;
};

static struct patience begin_patience(const struct xs_ring *ring, uint64_t now)
{
	return (struct patience){ now, atomic_load_explicit(&ring->tail, memory_order_relaxed),
				  heartbeat() };
}

static bool is_unread(struct patience *patience, const struct xs_ring *ring)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);

	if (atomic_load_explicit(&ring->tail, memory_order_relaxed) != patience->tail)
		*patience = begin_patience(ring, now);
	return now - patience->since > UNREAD_NS && heartbeat() - patience->beat > BEATS;
}

static bool wait_for_room(struct xs_producer *p, struct xs_doorbell *bell, uint64_t start)
{
	struct timespec timeout = { 0, WAIT_NS };
	struct xs_ring *ring = p->ring;
	uint64_t begin = xs_clock_ns(CLOCK_MONOTONIC);
	struct patience patience = begin_patience(ring, begin);

	count(&ring->blocked, 1);
	while (!room(p, start) && !xs_is_sealed()) {
		uint32_t beat = heartbeat();

		/*
		 * the consumer reads it here. It is right already unless another process has
		 * written there, which may do so again
		 */
		atomic_store_explicit(&ring->head, p->head, memory_order_release);
		xs_doorbell_ring(bell);
		atomic_store_explicit(&ring->waiting, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (room(p, start))
			break;
		if (xs_sys(SYS_futex, &ring->waiting, FUTEX_WAIT, 1, &timeout) == -ETIMEDOUT &&
		    the_consumer &&
		    (beat == heartbeat() ? !consumer_lives() : is_unread(&patience, ring))) {
			/*
			 * for good: an application must not stand still because its tracer was
			 * killed
			 */
			atomic_store_explicit(&ring->consumer_dead, 1, memory_order_relaxed);
			break;
		}
	}
	atomic_store_explicit(&ring->waiting, 0, memory_order_relaxed);
	count(&ring->blocked_ns, xs_clock_ns(CLOCK_MONOTONIC) - begin);
	return room(p, start);
}

static uint64_t value(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Overwrite: the records that are given up from here on are this thread's. */
static void give_up_of(struct xs_ring *ring, uint32_t tid, uint32_t name)
{
	uint32_t place = atomic_load_explicit(&ring->tail_place, memory_order_relaxed), i;

	atomic_store_explicit(&ring->tail_name, name, memory_order_relaxed);
	if (atomic_load_explicit(&ring->tail_tid, memory_order_relaxed) != tid) {
		for (i = 0; i < XS_GIVEN_UP_REST; i++)
			if (value(&ring->given_up[i].lost) == value(&ring->given_up[i].told))
				break;
		place = i;
		atomic_store_explicit(&ring->tail_tid, tid, memory_order_relaxed);
		atomic_store_explicit(&ring->tail_place, place, memory_order_relaxed);
		if (place == XS_GIVEN_UP_REST)
			atomic_fetch_add_explicit(&ring->given_up_rest, 1, memory_order_relaxed);
	}
	place %= XS_GIVEN_UP;
	atomic_store_explicit(&ring->given_up[place].tid, tid, memory_order_relaxed);
	atomic_store_explicit(&ring->given_up[place].name, name, memory_order_relaxed);
}

static void give_up(struct xs_ring *ring, uint64_t records)
{
	uint32_t place = atomic_load_explicit(&ring->tail_place, memory_order_relaxed);

	if (records)
		count(&ring->given_up[place % XS_GIVEN_UP].lost, records);
}

/* Another thread's records follow. What the one before has lost otherwise is said there alone. */
static void give_up_thread(struct xs_ring *ring, const struct xs_thread_record *record)
{
	uint64_t lost = record->lost, known = value(&ring->tail_losses),
		 told = value(&ring->lost_told);

	if (known < told)
		known = told;
	if (lost > known) {
		give_up(ring, lost - known);
		atomic_store_explicit(&ring->tail_losses, lost, memory_order_relaxed);
	}
	give_up_of(ring, (uint32_t)record->tid, record->event.name);
}

/*
 * Overwrite: the step at `start` is about to be used again; counts what is lost in it, thread by
 * thread, and moves the intact part's beginning. What an earlier trace has is not lost.
 */
static void give_up_oldest(struct xs_producer *p, uint64_t start)
{
	uint64_t size = p->mask + 1, step = step_of(p);
	struct xs_ring *ring = p->ring;
	uint64_t tail = value(&ring->tail);
	uint64_t pos, end, lost = 0, all = 0;
	uint32_t bytes;

	if (start < size)
		return;
	pos = start - size;
	end = pos + step;
	while (pos < end) {
		const struct xs_event *event = xs_ring_peek(p->data, size, pos, end, &bytes);

		if (!event)
			break;
		if (event->kind == XS_THREAD && bytes >= sizeof(struct xs_thread_record)) {
			give_up(ring, lost);
			all += lost;
			lost = 0;
			give_up_thread(ring, (const struct xs_thread_record *)event);
		} else if (event->kind != XS_PAD && (int64_t)(pos - tail) >= 0) {
			lost++;
		}
		pos += bytes;
	}
	give_up(ring, lost);
	count(&ring->overwritten, all + lost);
	/*
	 * before the first overwriting store; pairs with the acquire of the consumer, which reads
	 * it after the process ended
	 */
	atomic_store_explicit(&ring->tail_lost, end, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Makes the memory before `end` present: a full /dev/shm must be an error here and not a SIGBUS at
 * a store. In pieces that double, and never a whole step: the kernel clears every page, so a
 * thread's first event would wait for an eighth of its ring.
 */
static bool prepare(struct xs_producer *p, uint64_t end)
{
	uint64_t size = p->mask + 1, piece = p->prepared, least = end < size ? end : size, wanted;

	if (least <= p->prepared)
		return true;
	if (xs_is_sealed())
		return atomic_load_explicit(&xs_seal, memory_order_relaxed) == XS_SEALED_PREPARED;
	if (piece < XS_PAGE)
		piece = XS_PAGE;
	if (piece > PIECE_MAX)
		piece = PIECE_MAX;
	/* pieces and `prepared` are whole pages, and so is the ring */
	least = (least + XS_PAGE - 1) & ~(uint64_t)(XS_PAGE - 1);
	wanted = p->prepared + piece < size ? p->prepared + piece : size;
	if (wanted < least)
		wanted = least;
	while (!xs_shm_present(p->data + p->prepared, wanted - p->prepared)) {
		if (wanted == least)
			return false;
		wanted = least; /* there may be as much */
	}
	p->prepared = wanted;
	return true;
}

/* Where the limit is in a step that records may fill up to `end`: not behind the present memory. */
static uint64_t limit_at(const struct xs_producer *p, uint64_t end)
{
	bool all = p->prepared > p->mask ||
		   atomic_load_explicit(&xs_seal, memory_order_relaxed) == XS_SEALED_PREPARED;

	if (p->skip)
		return 0;
	return all || end <= p->prepared ? end : p->prepared;
}

/* Publishes all before `head`; pairs with the acquire in xs_ring_filled(). */
static void publish(struct xs_producer *p, uint64_t head)
{
	p->head = head;
	atomic_store_explicit(&p->ring->head, head, memory_order_release);
}

static void pad(struct xs_producer *p, uint64_t head, uint64_t end)
{
	uint64_t left = end - head;

	while (left) {
		struct xs_event *event = (void *)(p->data + (head & p->mask));
		uint64_t bytes = left < XS_RECORD_MAX ? left : XS_RECORD_MAX;

		event->tick = 0;
		event->name = 0;
		event->kind = XS_PAD;
		event->words = (uint8_t)(bytes / 8);
		event->source = event->flags = 0;
		head += bytes;
		left -= bytes;
	}
	publish(p, head);
}

static void *lose(struct xs_producer *p)
{
	count(&p->ring->lost, 1);
	return NULL;
}

/*
 * The step at `start`, for `needed` bytes. may_wait: a thread that says who it is does so with
 * signals blocked, and can say it later.
 */
static bool enter(struct xs_producer *p, struct xs_doorbell *bell, uint64_t start, uint32_t needed,
		  bool may_wait)
{
	if (!prepare(p, start + needed))
		return false;
	switch (p->policy) {
	case XS_FULL_OVERWRITE:
		give_up_oldest(p, start);
		return true;
	case XS_FULL_DROP:
		if (!room(p, start)) {
			xs_doorbell_ring(bell);
			return false;
		}
		break;
	default:
		if (!room(p, start) &&
		    (!may_wait ||
		     atomic_load_explicit(&p->ring->consumer_dead, memory_order_relaxed) ||
		     !wait_for_room(p, bell, start)))
			return false;
		break;
	}
	/* at the ring's very beginning there is nothing to be read yet; a wake-up takes 10 us */
	if (start)
		xs_doorbell_ring(bell);
	return true;
}

/* Says how many are lost; returns the head behind it. */
static uint64_t say_lost(const struct xs_producer *p, uint64_t head, uint8_t kind, uint32_t count)
{
	struct xs_event *event = (void *)(p->data + (head & p->mask));

	memset(event, 0, sizeof(*event));
	event->kind = kind;
	event->words = sizeof(*event) / 8;
	event->name = count;
	return head + sizeof(*event);
}

/* Is there something that had to be said and found no room, before a record of this role? */
static bool is_due(const struct xs_producer *p, enum xs_role role)
{
	return p->lost_ends || p->lost_others || p->thread_due ||
	       (p->skip && role == XS_ROLE_BEGIN);
}

/*
 * Says it; there are at least 64 bytes at `head` now. Returns the head behind it. Ends that were
 * lost come first: while lost begins are open, each end is taken to be one of theirs. A thread's
 * begins come behind what says that it is this thread.
 */
static uint64_t write_due(struct xs_producer *p, uint64_t head, enum xs_role role)
{
	if (p->lost_ends || p->lost_others) {
		head = say_lost(p, head, XS_LOST_ENDS, p->lost_ends);
		p->lost_ends = p->lost_others = 0;
	}
	if (p->thread_due) {
		memcpy(p->data + (head & p->mask), &p->thread, sizeof(p->thread));
		head += sizeof(p->thread);
		p->thread_due = 0;
	}
	if (p->skip && role == XS_ROLE_BEGIN) {
		head = say_lost(p, head, XS_LOST_BEGINS, p->skip);
		p->skip = 0;
	}
	publish(p, head);
	return head;
}

static void *no_room(struct xs_producer *p, enum xs_role role)
{
	p->limit = 0; /* every record comes here until all is made good */
	switch (role) {
	case XS_ROLE_BEGIN:
		p->skip++;
		break;
	case XS_ROLE_END:
		p->lost_ends++;
		break;
	case XS_ROLE_THREAD:
		p->thread_due = 1;
		return NULL; /* no event of the application: not counted */
	default:
		p->lost_others = 1;
		break;
	}
	return lose(p);
}

/*
 * If the consumer is ahead, another process wrote here (a child that shares this thread's memory),
 * and the consumer is right.
 */
static uint64_t catch_up(struct xs_producer *p)
{
	uint64_t tail = atomic_load_explicit(&p->ring->tail, memory_order_relaxed),
		 ahead = tail - p->head;

	if (__builtin_expect(ahead && ahead <= p->mask + 1, 0))
		p->head = tail & ~(uint64_t)15;
	return p->head;
}

void *xs_ring_enter_step(struct xs_producer *p, struct xs_doorbell *bell, uint32_t size,
			 enum xs_role role)
{
	uint64_t head = catch_up(p), step = step_of(p), stop = (head + step - 1) / step * step;
	/*
	 * where records may be lost, the last quarter of the last free step is kept for ends: what
	 * was begun can be ended
	 */
	bool guarded = p->policy == XS_FULL_DROP;
	uint32_t needed = size + (is_due(p, role) ? 64 : 0);

	if (p->skip && (role == XS_ROLE_END || role == XS_ROLE_WITHIN)) {
		p->skip -= role == XS_ROLE_END;
		return lose(p);
	}
	if (head + needed <= stop) {
		bool plenty = !guarded || room(p, stop);

		if (!plenty && role != XS_ROLE_END && role != XS_ROLE_THREAD &&
		    head + needed > stop - step / 4)
			return no_room(p, role);
		if (!prepare(p, head + needed))
			return no_room(p, role);
		stop -= plenty ? 0 : step / 4;
	} else {
		if (!enter(p, bell, stop, needed, role != XS_ROLE_THREAD))
			return no_room(p, role);
		if (stop > head)
			pad(p, head, stop);
		head = stop;
		stop += step - (guarded ? step / 4 : 0);
	}
	if (is_due(p, role))
		head = write_due(p, head, role);
	p->limit = limit_at(p, stop);
	return p->data + (head & p->mask);
}
