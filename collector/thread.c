/*
 * A thread takes a ring, says who it is, and gives the ring back when it ends.
 */
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "self.h"
#include "strtab.h"
#include "sys.h"

/* of glibc: values of later keys are in memory that the first of them takes from the allocator */
#define KEYS_WITHOUT_MALLOC 32u

static pthread_key_t key;
static bool have_key;
static struct xs_hook *_Atomic at_thread_end;

/* Between xs_enter() and xs_leave(). */
static void thread_record(void)
{
	struct xs_producer *producer = &xs_tls.producer;
	struct xs_thread_record *record = &producer->thread, *place;
	char name[16] = "";

	record->event.tick = xs_tick(xs_use_tsc);
	if (xs_tls.name)
		record->event.name = xs_tls.name;
	else if (!xs_sys(SYS_prctl, PR_GET_NAME, name))
		record->event.name =
			xs_intern(xs_self.strings, name, (uint32_t)strnlen(name, sizeof(name)), 0);
	record->event.kind = XS_THREAD;
	record->event.words = sizeof(*record) / 8;
	record->event.source = record->event.flags = 0;
	record->tid = xs_tls.tid;
	record->lost = atomic_load_explicit(&producer->ring->lost, memory_order_relaxed) +
		       atomic_load_explicit(&producer->ring->lost_nested, memory_order_relaxed);
	place = xs_ring_reserve(producer, xs_bell, sizeof(*record), XS_ROLE_THREAD);
	if (place) {
		*place = *record;
		xs_ring_commit(producer, sizeof(*record));
	}
}

void xs_at_thread_end(struct xs_hook *hook)
{
	xs_hang(&at_thread_end, hook);
}

/* Gives the ring back. */
static void detach(void)
{
	struct xs_entered entered;

	if (!xs_own_ring() || !xs_joined())
		return;
	xs_enter(&entered);
	thread_record(); /* its name as it is now */
	/* it has ended within a call */
	if (atomic_load_explicit(&xs_tls.producer.ring->call, memory_order_relaxed))
		atomic_fetch_add_explicit(&xs_tls.producer.ring->lost_nested, 1,
					  memory_order_relaxed);
	if (xs_tls.slot)
		xs_counters_close(xs_slot_counters(xs_tls.slot));
	xs_ring_give();
	xs_leave(&entered);
}

static void thread_ends(void *unused)
{
	(void)unused;
	xs_tls.mark = 0; /* no frame of the thread's life is left */
	xs_sys_left();
	xs_call_hooks(&at_thread_end);
	detach();
}

void xs_threads_init(void)
{
	have_key = !pthread_key_create(&key, thread_ends) && key < KEYS_WITHOUT_MALLOC;
}

void xs_thread_ignore(void)
{
	xs_tls.ignored = true;
	detach();
}

void xs_thread_name(uint32_t name)
{
	struct xs_entered entered;

	xs_tls.name = name;
	if (!xs_ready())
		return;
	xs_enter(&entered);
	thread_record();
	xs_leave(&entered);
}

void xs_thread_begin(void)
{
	long tid = xs_sys(SYS_gettid);

	xs_tls.tid = tid > 0 ? (uint32_t)tid : 0;
	if (!xs_ring_take())
		return;
	xs_counters_open(xs_slot_counters(xs_tls.slot),
			 xs_self.control->options.cpu_events_of_tasks);
	thread_record();
	if (have_key)
		pthread_setspecific(key, xs_tls.slot);
}
