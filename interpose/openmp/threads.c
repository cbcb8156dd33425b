/*
 * What is known of each thread of OpenMP's. The memory is used again, so that a program may make
 * and end any number of threads.
 */
#include "openmp.h"

#include <unistd.h>

#include "spare.h"
#include "sys.h"

static __thread struct omp_thread *own __attribute__((tls_model("initial-exec")));
static struct xs_spare spare;
static _Atomic uint64_t numbers;

/* Of what an earlier owner of the memory did, its number and its count of tasks stay. */
static void clear(struct omp_thread *thread)
{
	thread->depth = thread->open = 0;
	thread->code = NULL;
	thread->lock_tick = 0;
}

static __attribute__((noinline, cold)) struct omp_thread *take(void)
{
	struct omp_thread *thread = xs_spare_take(&spare, sizeof(*thread));

	if (!thread)
		return NULL;
	if (!thread->number)
		thread->number = 1 + atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
	clear(thread);
	return own = thread;
}

struct omp_thread *omp_thread(void)
{
	return __builtin_expect(own != NULL, 1) ? own : take();
}

void omp_thread_leave(void)
{
	struct omp_thread *thread = own;

	own = NULL;
	if (thread)
		xs_spare_give(&spare, thread);
}

void omp_thread_start(void)
{
	static _Atomic pid_t last;
	pid_t pid = (pid_t)xs_sys(SYS_getpid);

	if (atomic_exchange_explicit(&last, pid, memory_order_relaxed) != pid && own)
		clear(own);
}
