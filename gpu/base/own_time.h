/*
 * How long our own code takes for commands of devices, measured where it happens and told at the
 * end.
 *
 * The sum is in the thread's ring, which nobody else writes to. One stretch may lie in another: a
 * runtime may call back within a call of ours. So an outer one adds to what there was when it
 * began, and what inner ones have added meanwhile is part of it. No state is left behind by a
 * thread that leaves by a jump.
 */
#ifndef XS_OWN_TIME_H
#define XS_OWN_TIME_H

#include "collector.h"
#include "sys.h"

struct xs_own_time {
	struct xs_ring *ring; /* NULL: not measured */
	uint64_t tick;	      /* when it began */
	uint64_t before;      /* the sum then */
	uint64_t blocked;     /* how often the thread had waited for room then */
};

/* Since a time that is known. Whether or not it is measured, the end is to be called, or nothing.
 */
static inline void xs_own_time_since(struct xs_own_time *time, uint64_t tick)
{
	struct xs_ring *ring = xs_joined() ? xs_own_ring() : NULL;

	*time = (struct xs_own_time){ .ring = ring, .tick = tick };
	if (!ring)
		return;
	time->before = atomic_load_explicit(&ring->commands_ticks, memory_order_relaxed);
	time->blocked = atomic_load_explicit(&ring->blocked, memory_order_relaxed);
}

/* Since now. A clock that may be the kernel's is not read in a sandbox. */
static inline void xs_own_time_begin(struct xs_own_time *time)
{
	if (xs_joined() && (xs_use_tsc || !xs_is_sealed()))
		xs_own_time_since(time, xs_tick(xs_use_tsc));
	else
		*time = (struct xs_own_time){ .ring = NULL };
}

/* One in which the thread has waited for room is told as a wait. */
static inline void xs_own_time_end(const struct xs_own_time *time)
{
	struct xs_ring *ring = time->ring;

	if (!ring || !xs_joined() || xs_own_ring() != ring || (!xs_use_tsc && xs_is_sealed()) ||
	    atomic_load_explicit(&ring->blocked, memory_order_relaxed) != time->blocked)
		return;
	atomic_store_explicit(&ring->commands_ticks,
			      time->before + (xs_tick(xs_use_tsc) - time->tick),
			      memory_order_relaxed);
}

#endif
