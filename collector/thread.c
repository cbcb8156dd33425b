/*
 * A thread gets a ring at its first event, says who it is, and gives the ring back when it ends.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "self.h"
#include "strtab.h"

static pthread_key_t key;
static bool have_key;
static _Atomic(void (*)(void)) at_thread_end;

static void thread_record(struct xs_ring *ring)
{
	struct xs_thread_record *record = &ring->thread, *place;
	char name[16] = "";

	record->event.tick = xs_tick(xs_use_tsc);
	record->event.name = xs_tls.name;
	if (!xs_tls.name) {
		prctl(PR_GET_NAME, name);
		record->event.name = xs_intern(xs_self.strings, name, (uint32_t)strnlen(name, sizeof(name)), 0);
	}
	record->event.kind = XS_THREAD;
	record->event.words = sizeof(*record) / 8;
	record->event.source = record->event.flags = 0;
	record->tid = atomic_load_explicit(&ring->tid, memory_order_relaxed);
	record->lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
	place = xs_ring_reserve(ring, xs_bell, sizeof(*record), XS_ROLE_THREAD);
	if (place) {
		*place = *record;
		xs_ring_commit(ring, sizeof(*record));
	}
}

void xs_at_thread_end(void (*function)(void))
{
	atomic_store_explicit(&at_thread_end, function, memory_order_release);
}

/* Runs when a thread ends; its ring goes to the next thread as it is, whatever is still in it. */
static void thread_detach(void *unused)
{
	void (*function)(void) = atomic_load_explicit(&at_thread_end, memory_order_acquire);
	struct xs_ring *ring = xs_tls.ring;
	int saved = errno;

	(void)unused;
	if (function)
		function();
	if (!ring || !xs_joined())
		return;
	(void)xs_enter();
	thread_record(ring); /* its name as it is now */
	xs_tls.ring = NULL;
	/* all that this thread wrote; pairs with the acquire in xs_ring_take() */
	atomic_store_explicit(&ring->state, XS_RING_IDLE, memory_order_release);
	atomic_store_explicit(&xs_gate->no_rings, 0, memory_order_relaxed);
	xs_leave(NULL);
	errno = saved;
}

void xs_threads_init(void)
{
	have_key = !pthread_key_create(&key, thread_detach);
}

void xs_thread_ignore(void)
{
	xs_tls.ignored = true;
	xs_tls.ready = NULL;
}

void xs_thread_name(uint32_t name)
{
	int saved = errno;
	struct xs_ring *ready;

	xs_tls.name = name;
	if (xs_joined() && xs_tls.ready) {
		ready = xs_enter();
		thread_record(ready);
		xs_leave(ready);
	}
	errno = saved;
}

static void attach(void)
{
	struct xs_ring *ring = NULL;

	if (!xs_joined() && !xs_start())
		return;
	if (xs_tls.ring)
		return;
	if (!atomic_load_explicit(&xs_gate->no_rings, memory_order_relaxed)) {
		xs_lock();
		ring = xs_ring_take();
		/* before the next one looks for rings of dead threads: this one's last owner may be dead */
		if (ring)
			atomic_store_explicit(&ring->tid, (uint32_t)syscall(SYS_gettid), memory_order_relaxed);
		xs_unlock();
	}
	if (!ring) {
		atomic_fetch_add_explicit(&xs_self.process->lost_no_ring, 1, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&ring->call, 0, memory_order_relaxed);
	thread_record(ring);
	if (have_key)
		pthread_setspecific(key, ring);
	xs_tls.ring = ring;
}

bool xs_thread_attach(void)
{
	int saved = errno;

	if (xs_state() == XS_OFF)
		return false;
	if (xs_tls.ignored)
		return false;
	if (xs_joined() && xs_tls.ring) {
		/* we are inside the collector: this is a signal handler */
		atomic_fetch_add_explicit(&xs_tls.ring->lost_nested, 1, memory_order_relaxed);
		return false;
	}
	if (xs_tls.busy)
		return false;
	xs_tls.busy++;
	attach();
	xs_tls.busy--;
	if (xs_joined())
		xs_tls.ready = xs_tls.ring;
	errno = saved;
	return xs_tls.ready && !xs_paused(); /* joining may have shown that nothing is to be recorded for now */
}
