/*
 * Locks inside the traced process.
 *
 * The word is the holder's thread id, as the kernel's PI futexes want it. So a real-time thread
 * that finds it taken lends the holder its priority instead of spinning, and a holder that died, or
 * left by a jump, is found out. Free is 0; a child of fork must find it free.
 */
#ifndef XS_LOCK_H
#define XS_LOCK_H

#include "collector.h"

#ifdef XS_COMPANION
#define xs_lock_contended   xs_companion_lock
#define xs_unlock_contended xs_companion_unlock
#endif

/*
 * For structures that handlers and dying threads may come by: only between xs_enter() and
 * xs_leave() (self.h), where no signal arrives. False: not to be had within a second, or without a
 * system call in a sealed process; the caller does without.
 */
bool xs_lock(_Atomic uint32_t *lock);

/*
 * For structures of an API that no handler may call anyway; never around a call of foreign code.
 * Never fails. If this thread already holds the lock, it left by a jump; if another thread has held
 * it for a second, that thread is gone. Both locks are taken over.
 */
static inline void xs_lock_robust(_Atomic uint32_t *lock);

/* Of both. */
static inline void xs_unlock(_Atomic uint32_t *lock);

/*
 * Between two looks at something that another thread is about to change. *rounds is 0 at first.
 * False: it has taken too long (about 100 ms), do without. Sleeps from some rounds on: whoever is
 * waited for may need this processor.
 */
bool xs_wait_a_bit(uint32_t *rounds);

/*
 * A claim is for work that one thread does at a time and that calls foreign code (a driver), which
 * may never return. No thread waits for a claim: a thread that finds it taken skips the work. If
 * the thread itself holds the claim, or the claim is as old as XS_LEFT_FOR_GOOD, its holder left by
 * a jump or ended, and the claim is taken over. So a holder that was away for so long may not be
 * the only one any more.
 */
static inline bool xs_claim(_Atomic uint64_t *claim);
static inline void xs_unclaim(_Atomic uint64_t *claim);

/*
 * A clock for that, in milliseconds, which wraps. The kernel's own ticks: they can be read where
 * the time stamp counter is forbidden (PR_SET_TSC).
 */
static inline uint32_t xs_moment(void)
{
	return (uint32_t)(xs_clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000u);
}
#define XS_LEFT_FOR_GOOD 3000u

/* What is rare of all these. */
bool xs_claim_again(_Atomic uint64_t *claim, uint64_t held, uint64_t mine) __attribute__((cold));
void xs_lock_contended(_Atomic uint32_t *lock) __attribute__((cold));
void xs_unlock_contended(_Atomic uint32_t *lock) __attribute__((cold));

static inline void xs_lock_robust(_Atomic uint32_t *lock)
{
	uint32_t me = xs_joined() ? xs_tls.tid : 0, none = 0;

	if (!me || !atomic_compare_exchange_strong_explicit(lock, &none, me, memory_order_acquire,
							    memory_order_relaxed))
		xs_lock_contended(lock);
}

static inline void xs_unlock(_Atomic uint32_t *lock)
{
	uint32_t holder = atomic_load_explicit(lock, memory_order_relaxed);

	/* more than the thread's id is in the word when others wait */
	if (!holder || holder >> 30 ||
	    !atomic_compare_exchange_strong_explicit(lock, &holder, 0, memory_order_release,
						     memory_order_relaxed))
		xs_unlock_contended(lock);
}

static inline uint32_t xs_claimant(void)
{
	return (uint32_t)((uintptr_t)&xs_tls >> 6) | 1;
}

static inline bool xs_claim(_Atomic uint64_t *claim)
{
	uint64_t held = 0, mine = xs_claimant() | (uint64_t)xs_moment() << 32;

	return atomic_compare_exchange_strong_explicit(claim, &held, mine, memory_order_acquire,
						       memory_order_relaxed) ||
	       xs_claim_again(claim, held, mine);
}

static inline void xs_unclaim(_Atomic uint64_t *claim)
{
	if ((uint32_t)atomic_load_explicit(claim, memory_order_relaxed) == xs_claimant())
		atomic_store_explicit(claim, 0, memory_order_release);
}

#endif
