/*
 * A ring of records in shared memory: one producer (a traced thread), one consumer (the drain
 * process).
 *
 * The ring is cut into XS_RING_STEPS steps and no record crosses a step's end (XS_PAD fills the
 * rest). All that is rare is done when a step is entered: room is waited for or records are counted
 * lost, fresh memory is made present, the consumer is woken. So the producer's common path is one
 * compare and the stores of the record. docs/RING.md argues the memory ordering.
 */
#ifndef XS_RING_H
#define XS_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define XS_RING_STEPS	8u
#define XS_RING_MIN	(64u << 10) /* a step holds the largest record several times */
#define XS_RING_DEFAULT (1u << 20)
#define XS_RING_MAX	(1u << 30)

enum xs_on_full { XS_FULL_BLOCK, XS_FULL_DROP, XS_FULL_OVERWRITE };

/* How a producer reaches the consumer; lives in the mailbox. */
struct xs_doorbell {
	_Atomic uint32_t rung;	   /* futex: the consumer sleeps on it */
	_Atomic uint32_t sleeping; /* the consumer is about to sleep, or sleeps */
};

/*
 * Does a thread write there? For the drain process to know; the producers' own word is in their
 * memory.
 */
enum xs_ring_state { XS_RING_FREE, XS_RING_LIVE, XS_RING_IDLE };

/*
 * What a record does to the nesting of tasks: a begin that finds no room is lost with its end, and
 * no end is lost without a word.
 */
enum xs_role {
	XS_ROLE_OTHER,
	XS_ROLE_WITHIN, /* says something of the innermost task, and is lost with it */
	XS_ROLE_BEGIN,
	XS_ROLE_END,
	/* whose records follow: if it finds no room, it is written as soon as there is some */
	XS_ROLE_THREAD,
};

/*
 * Overwrite: records that are given up, of one thread. The place is another's once all is told;
 * the counts go on, so each has one writer.
 */
struct xs_given_up {
	_Atomic uint32_t tid, name; /* string id */
	_Atomic uint64_t lost;
	_Atomic uint64_t told; /* by the consumer: what traces that are complete have counted */
};
#define XS_GIVEN_UP	 128u
#define XS_GIVEN_UP_REST (XS_GIVEN_UP - 1) /* of all threads that have found no place */

/*
 * The part in shared memory. Nothing in it is followed as a pointer, or used as a place without a
 * check, by either side.
 */
struct xs_ring {
	/* written by the producer, read by the consumer: bytes ever written */
	_Alignas(64) _Atomic uint64_t head;
	/* written by the consumer, read by both */
	_Alignas(64) _Atomic uint64_t tail; /* bytes ever consumed, and safe to overwrite */
	_Atomic uint32_t waiting;	    /* futex: the producer waits for room */
	/* of `lost` and `lost_nested`: what a trace that is complete has counted */
	_Atomic uint64_t lost_told;
	/* read by the consumer at the end, or rarely */
	_Alignas(64) _Atomic uint32_t state; /* enum xs_ring_state */
	_Atomic uint32_t tid;
	/* API call the thread is in: source << 24 | function number + 1; 0: none */
	_Atomic uint32_t call;
	_Atomic uint32_t consumer_dead;
	_Atomic uint64_t call_tick; /* when that call began */
	/*
	 * commands for devices: that the ring's threads have put on their way, and that they told
	 * of (produce.h); all rings' together differ by those in flight
	 */
	_Atomic uint64_t commands_begun, commands_ended;
	/* records lost because the ring was full, but for those that are given up */
	_Atomic uint64_t lost;
	/*
	 * records lost because a signal handler interrupted the collector, or of calls that the
	 * program has left without a return
	 */
	_Atomic uint64_t lost_nested;
	_Atomic uint64_t blocked;    /* times the producer waited for room */
	_Atomic uint64_t blocked_ns; /* how long, in all */
	/* that the collector's own code took for commands of devices */
	_Atomic uint64_t commands_ticks;
	_Atomic uint64_t tail_lost; /* overwrite: where intact records begin */
	/* overwrite: the thread that those records belong to, and its name's string id */
	_Atomic uint32_t tail_tid, tail_name;
	_Atomic uint64_t tail_losses;	/* overwrite: what was lost otherwise before they began */
	_Atomic uint64_t overwritten;	/* records that are given up, ever */
	_Atomic uint32_t tail_place;	/* the producer's: of that thread in `given_up` */
	_Atomic uint32_t given_up_rest; /* threads that have found no place there */
	_Atomic uint32_t given_up_rest_told;
	struct xs_given_up given_up[XS_GIVEN_UP];
};

/*
 * The producer's own part: in its private memory, so that whoever else can write into the ring (a
 * child that has dropped its rights) never tells where the producer stores. A common event needs
 * the first six words and what it writes.
 */
struct xs_producer {
	uint64_t head;	/* bytes ever written; the ring's is a copy */
	uint64_t limit; /* records must end at or before it; beyond: xs_ring_enter_step() */
	unsigned char *data;
	uint64_t mask; /* size - 1 */
	struct xs_ring *ring;
	uint32_t key;	   /* of the process whose ring it is (gate.h) */
	uint32_t policy;   /* enum xs_on_full */
	uint64_t prepared; /* bytes from the start that are present in memory */
	/*
	 * lost begins whose ends have not come, inside all that is written: their ends are lost,
	 * too. Before the next begin that finds room XS_LOST_BEGINS is due.
	 */
	uint32_t skip;
	uint32_t lost_ends;   /* ends lost of what is written: XS_LOST_ENDS is due */
	uint32_t lost_others; /* others lost: the same is due */
	uint32_t thread_due;  /* `thread` is due */
	struct xs_thread_record thread;
};

#define XS_RING_HEADER 4096u
_Static_assert(sizeof(struct xs_ring) <= XS_RING_HEADER, "the data begins behind the header");

struct xs_consumer;
/*
 * The consumer of this process's rings, described where no traced process can write (struct
 * xs_control). A producer that waits for room learns from it whether the consumer lives. NULL:
 * unknown, so it waits.
 */
void xs_ring_set_consumer(const struct xs_consumer *consumer);

/*
 * Makes `producer` write to `ring` (zeroed memory), `size` bytes (a power of two) of data at
 * `data`.
 */
void xs_ring_init(struct xs_producer *producer, struct xs_ring *ring, unsigned char *data,
		  uint64_t size, enum xs_on_full policy);

/*
 * The rare path of xs_ring_reserve(): enters the next step. Returns where to write, or NULL: the
 * record is lost and counted. May wait (policy block). Preserves errno. For XS_ROLE_THREAD the
 * caller must put the record into producer->thread first.
 */
void *xs_ring_enter_step(struct xs_producer *producer, struct xs_doorbell *bell, uint32_t size,
			 enum xs_role role) __attribute__((cold));

/* Room for a record of `size` bytes (multiple of 16, at most XS_RECORD_MAX), or NULL. */
static inline void *xs_ring_reserve(struct xs_producer *producer, struct xs_doorbell *bell,
				    uint32_t size, enum xs_role role)
{
	if (__builtin_expect(producer->head + size > producer->limit, 0))
		return xs_ring_enter_step(producer, bell, size, role);
	return producer->data + (producer->head & producer->mask);
}

static inline void xs_ring_commit(struct xs_producer *producer, uint32_t size)
{
	producer->head += size;
	/* publishes the record; pairs with the acquire in xs_ring_filled() */
	atomic_store_explicit(&producer->ring->head, producer->head, memory_order_release);
}

/* Wakes all that wait in xs_futex_wait() (or in the kernel) for the word to change. */
void xs_futex_wake(_Atomic uint32_t *word);
/* Waits until *word is not `value` any more, at most timeout_ns; may return early. */
void xs_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);

/* Wakes the consumer if it sleeps. Preserves errno. */
void xs_doorbell_ring(struct xs_doorbell *bell);

/*
 * Consumer: sleeps until somebody rings, at most timeout_ns. `seen` is bell->rung as read before
 * the last look at the rings.
 */
void xs_doorbell_wait(struct xs_doorbell *bell, uint32_t seen, uint64_t timeout_ns);

/* Consumer: bytes ever written; records before it may be read. */
static inline uint64_t xs_ring_filled(const struct xs_ring *ring)
{
	/* pairs with the release in xs_ring_commit() */
	return atomic_load_explicit(&ring->head, memory_order_acquire);
}

/*
 * Consumer: bytes before `tail` may be overwritten; wakes a producer that waits for room. `size`:
 * of the ring.
 */
void xs_ring_release(struct xs_ring *ring, uint64_t size, uint64_t tail);

/*
 * The record at `pos` of a ring of `size` bytes at `data`, where bytes before `head` are written;
 * NULL when what is there cannot be a record (a torn or hostile ring). *ret_size: its size.
 */
static inline const struct xs_event *xs_ring_peek(const unsigned char *data, uint64_t size,
						  uint64_t pos, uint64_t head, uint32_t *ret_size)
{
	uint64_t offset = pos & (size - 1);
	uint64_t room = size - offset < head - pos ? size - offset : head - pos;
	const struct xs_event *event = (const void *)(data + offset);

	if (room < sizeof(*event) || offset % 16)
		return NULL;
	/* once: it may change at any time */
	*ret_size = __atomic_load_n(&event->words, __ATOMIC_RELAXED) * 8u;
	if (*ret_size < sizeof(*event) || *ret_size % 16 || *ret_size > room)
		return NULL;
	return event;
}

#endif
