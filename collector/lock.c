#include "lock.h"

#include <linux/futex.h>
#include <time.h>

#include "sys.h"

#define SPINS	 64u
#define NAPS	 8u
#define PATIENCE 100u /* ms */
#define MOMENTS	 (1u << 30)

/* Sealed: no call tells. Only whether it is taken counts then. */
static uint32_t own_id(void)
{
	long tid = xs_sys(SYS_gettid);

	return tid > 0 ? (uint32_t)tid : FUTEX_TID_MASK;
}

static bool take_free(_Atomic uint32_t *lock, uint32_t me)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong_explicit(lock, &none, me, memory_order_acquire,
						       memory_order_relaxed);
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/*
 * The kernel hands a lock on to a thread that must wake up first. Threads that take it again and
 * again then wait for each other's wake-up each time, which takes a hundred times as long as what
 * the lock is for. So a thread asks the kernel only if its holder keeps it: it does not run, or is
 * no more.
 */
static bool is_soon_free(_Atomic uint32_t *lock, uint32_t me)
{
	struct timespec pause = { 0, 50000 };
	uint32_t holder = atomic_load_explicit(lock, memory_order_relaxed);

	for (uint32_t i = 0; i < SPINS + NAPS && (holder & FUTEX_TID_MASK) != me; i++) {
		if (!holder && take_free(lock, me))
			return true;
		if (i < SPINS)
			relax();
		else
			(void)xs_sys(SYS_nanosleep, &pause, NULL);
		holder = atomic_load_explicit(lock, memory_order_relaxed);
	}
	return false;
}

/* 0: taken. -EDEADLK: this thread had it already. Others: not available. */
static __attribute__((noinline, cold)) long wait_for(_Atomic uint32_t *lock, uint32_t me)
{
	struct timespec deadline;
	uint32_t rounds = 0;
	long result;

	if (is_soon_free(lock, me))
		return 0;
	(void)xs_sys(SYS_clock_gettime, CLOCK_REALTIME, &deadline);
	deadline.tv_sec++;
	for (;;) {
		uint32_t holder;

		result = xs_sys(SYS_futex, lock, FUTEX_LOCK_PI_PRIVATE, 0, &deadline);
		/* the kernel has handed it on; pairs with the release in xs_unlock_contended() */
		(void)atomic_load_explicit(lock, memory_order_acquire);
		if (result == -ESRCH) { /* there is no such thread any more */
			holder = atomic_load_explicit(lock, memory_order_relaxed);
			if (atomic_compare_exchange_strong_explicit(lock, &holder, me,
								    memory_order_acquire,
								    memory_order_relaxed))
				return 0;
		} else if (result == -ENOSYS) {
			if (take_free(lock, me))
				return 0;
			if (!xs_wait_a_bit(&rounds))
				return -ETIMEDOUT;
		} else if (result != -EAGAIN && result != -EINTR) {
			return result;
		}
	}
}

bool xs_lock(_Atomic uint32_t *lock)
{
	uint32_t me = own_id();

	return take_free(lock, me) || !wait_for(lock, me);
}

void xs_lock_contended(_Atomic uint32_t *lock)
{
	uint32_t me = own_id();

	if (!take_free(lock, me) && wait_for(lock, me))
		atomic_store_explicit(lock, me, memory_order_relaxed);
}

void xs_unlock_contended(_Atomic uint32_t *lock)
{
	(void)atomic_fetch_or_explicit(lock, 0, memory_order_release);
	/*
	 * the kernel hands it on; where it refuses to, those who wait find it free when they give
	 * up
	 */
	if (!xs_sys_begin_last() || xs_sys_always(SYS_futex, lock, FUTEX_UNLOCK_PI_PRIVATE) < 0)
		atomic_store_explicit(lock, 0, memory_order_release);
	xs_sys_end();
}

bool xs_claim_again(_Atomic uint64_t *claim, uint64_t held, uint64_t mine)
{
	if ((uint32_t)held != (uint32_t)mine &&
	    (uint32_t)(mine >> 32) - (uint32_t)(held >> 32) < XS_LEFT_FOR_GOOD)
		return false;
	return atomic_compare_exchange_strong_explicit(claim, &held, mine, memory_order_acquire,
						       memory_order_relaxed);
}

bool xs_wait_a_bit(uint32_t *rounds)
{
	struct timespec pause = { 0, 50000 };

	if (*rounds < SPINS) {
		++*rounds;
		return !xs_is_sealed();
	}
	/* from here on it holds the moment: on a busy machine a pause takes as long as it likes */
	if (*rounds == SPINS)
		*rounds = SPINS + 1 + xs_moment() % MOMENTS;
	(void)xs_sys(SYS_nanosleep, &pause, NULL);
	return (xs_moment() - (*rounds - SPINS - 1)) % MOMENTS < PATIENCE && !xs_is_sealed();
}
