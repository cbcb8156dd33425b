/*
 * Locks of the collector (collector/lock.c) whose holder has ended, or has left by a jump.
 */
#include <pthread.h>

#include "lock.h"
#include "tap.h"

enum { AT_ONCE_MS = 500 };
static _Atomic uint32_t lock;

static void *take_and_end(void *unused)
{
	return xs_lock(&lock) ? &lock : unused;
}

static void *take_robust_and_end(void *unused)
{
	xs_lock_robust(&lock);
	return unused;
}

/* A thread that has the lock, and is gone. */
static void leave_it_taken(void *(*how)(void *))
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, how, NULL), "no thread");
	CHECK(!pthread_join(thread, NULL), "no end");
	CHECK(lock, "nobody has taken it");
}

/* Found out by the kernel, not by waiting. */
static void dead_holder(void)
{
	uint64_t start = xs_clock_ns(CLOCK_MONOTONIC);

	leave_it_taken(take_and_end);
	CHECK(xs_lock(&lock), "it is not to be had");
	xs_unlock(&lock);
	CHECK(!lock, "it stays taken");
	leave_it_taken(take_robust_and_end);
	xs_lock_robust(&lock);
	xs_unlock(&lock);
	CHECK(!lock, "it stays taken");
	CHECK(xs_clock_ns(CLOCK_MONOTONIC) - start < AT_ONCE_MS * 1000000ull, "it was waited for");
}

/* The thread itself has left by a jump: a lock of an API's is its own again, another is done
 * without. */
static void own_lock(void)
{
	CHECK(xs_lock(&lock), "it is free");
	CHECK(!xs_lock(&lock), "taken twice");
	xs_lock_robust(&lock);
	xs_unlock(&lock);
	CHECK(!lock, "it stays taken");
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("a holder that has ended", dead_holder);
	tap_run("a holder that has left by a jump", own_lock);
	return tap_done();
}
