/*
 * Locks inside of somebody else's process.
 *
 * The word is the holder's thread id, as the kernel's PI futexes want it. So a real-time thread that finds it taken lends the holder its
 * priority instead of spinning, and a holder that died, or left by a jump, is found out. Free is 0; a child of fork must find it free.
 */
#ifndef XS_LOCK_H
#define XS_LOCK_H

#include "collector.h"

/*
 * For structures that handlers and dying threads may come by: only between xs_enter() and xs_leave() (self.h), where no signal arrives.
 * False: not to be had within a second, or without a system call in a sealed process; the caller does without.
 */
bool xs_lock(_Atomic uint32_t *lock);

/*
 * For structures of an API that no handler may call anyway. Never fails: what a thread itself holds it left by a jump, and what is held
 * for a second its holder has left for good; both are taken over.
 */
static inline void xs_lock_robust(_Atomic uint32_t *lock);

/* Of both. */
static inline void xs_unlock(_Atomic uint32_t *lock);

/*
 * Between two looks at something that another thread is about to change. *rounds is 0 at first. False: it has taken too long (about
 * 100 ms), do without. Sleeps from some rounds on: whoever is waited for may need this processor.
 */
bool xs_wait_a_bit(uint32_t *rounds);

/* What is rare of the two. */
void xs_lock_contended(_Atomic uint32_t *lock) __attribute__((cold));
void xs_unlock_contended(_Atomic uint32_t *lock) __attribute__((cold));

static inline void xs_lock_robust(_Atomic uint32_t *lock)
{
	uint32_t me = xs_joined() ? xs_tls.tid : 0, none = 0;

	if (!me || !atomic_compare_exchange_strong_explicit(lock, &none, me, memory_order_acquire, memory_order_relaxed))
		xs_lock_contended(lock);
}

static inline void xs_unlock(_Atomic uint32_t *lock)
{
	uint32_t holder = atomic_load_explicit(lock, memory_order_relaxed);

	/* more than the thread's id is in the word when others wait */
	if (!holder || holder >> 30 ||
	    !atomic_compare_exchange_strong_explicit(lock, &holder, 0, memory_order_release, memory_order_relaxed))
		xs_unlock_contended(lock);
}

#endif
