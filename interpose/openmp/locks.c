/*
 * Locks and critical sections: how long threads wait for them, and how long they hold what ends on
 * the same thread in any case.
 */
#include "openmp.h"

typedef void mutex_acquire(int kind, unsigned hint, unsigned implementation, uint64_t lock,
			   const void *code);
typedef void mutex(int kind, uint64_t lock, const void *code);

/*
 * A test does not wait, and need not succeed: nothing is shown of it. But LLVM's runtime before 17
 * calls a test of a lock like the lock's. So a wait is written when it is over: one of which no
 * more is heard was none.
 */
static enum omp_what what_of_wait(int kind)
{
	static const uint8_t whats[OMPT_MUTEXES] = {
		[OMPT_LOCK] = OMP_LOCK_WAIT,	     [OMPT_NEST_LOCK_KIND] = OMP_NEST_LOCK_WAIT,
		[OMPT_CRITICAL] = OMP_CRITICAL_WAIT, [OMPT_ATOMIC] = OMP_ATOMIC_WAIT,
		[OMPT_ORDERED] = OMP_ORDERED_WAIT,
	};

	return kind > 0 && kind < OMPT_MUTEXES && whats[kind] ? whats[kind] : OMP_NOTHING;
}

static enum omp_what what_of_hold(int kind)
{
	return kind == OMPT_CRITICAL  ? OMP_CRITICAL
	       : kind == OMPT_ORDERED ? OMP_ORDERED
				      : OMP_NOTHING;
}

static void on_acquire(int kind, unsigned hint, unsigned implementation, uint64_t lock,
		       const void *code)
{
	struct omp_thread *thread = what_of_wait(kind) == OMP_NOTHING ? NULL : omp_thread();

	if (thread) {
		thread->lock = lock;
		thread->lock_tick = omp_now();
	}
	OMP_PASS_ON(OMPT_MUTEX_ACQUIRE, mutex_acquire, kind, hint, implementation, lock, code);
}

static void on_acquired(int kind, uint64_t lock, const void *code)
{
	enum omp_what what = what_of_wait(kind);
	struct omp_thread *thread = what == OMP_NOTHING ? NULL : omp_thread();
	uint64_t tick = thread ? omp_now() : 0;

	if (tick && thread->lock_tick && thread->lock == lock) {
		omp_begin(omp_name(what, code), thread->lock_tick);
		omp_end(tick);
	}
	if (tick && what_of_hold(kind) != OMP_NOTHING)
		omp_begin(omp_name(what_of_hold(kind), code), tick);
	OMP_PASS_ON(OMPT_MUTEX_ACQUIRED, mutex, kind, lock, code);
}

static void on_released(int kind, uint64_t lock, const void *code)
{
	uint64_t tick = what_of_hold(kind) == OMP_NOTHING ? 0 : omp_now();

	if (tick)
		omp_end(tick);
	OMP_PASS_ON(OMPT_MUTEX_RELEASED, mutex, kind, lock, code);
}

const struct omp_callback omp_of_locks[] = {
	OMP_CALLBACK(OMPT_MUTEX_ACQUIRE, on_acquire),
	OMP_CALLBACK(OMPT_MUTEX_ACQUIRED, on_acquired),
	OMP_CALLBACK(OMPT_MUTEX_RELEASED, on_released),
	{ 0 },
};
