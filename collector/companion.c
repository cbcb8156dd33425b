/*
 * For libraries of ours beside this one; see companion.h.
 */
#include "companion.h"

#include <string.h>

#include "lock.h"
#include "self.h"
#include "stack.h"
#include "sys.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT bool xs_companion_sys_begin(void)
{
	return xs_sys_begin();
}

EXPORT void xs_companion_sys_end(void)
{
	xs_sys_end();
}

EXPORT bool xs_companion_enter(struct xs_call *call, uint32_t word)
{
	return xs_call_enter_long(call, word);
}

EXPORT void xs_companion_within(struct xs_call *call)
{
	xs_call_within(call);
}

EXPORT void xs_companion_record(const void *record, uint32_t size)
{
	const struct xs_event *event = record;
	struct xs_event *place = xs_record_begin(size, event->kind, event->source, event->flags,
						 event->name, XS_ROLE_OTHER);

	if (place) {
		memcpy(place, record, size);
		xs_record_end(size);
	}
}

EXPORT uint32_t xs_companion_intern(const char *text, uint32_t length, uint32_t scope)
{
	return xs_name_parts(&(struct xs_part){ text, length }, 1, scope);
}

EXPORT bool xs_companion_came_by(uintptr_t slot)
{
	return xs_stack_came_by(slot);
}

EXPORT void xs_companion_lock(_Atomic uint32_t *lock)
{
	xs_lock_contended(lock);
}

EXPORT void xs_companion_unlock(_Atomic uint32_t *lock)
{
	xs_unlock_contended(lock);
}

EXPORT const struct xs_options *xs_companion_options(void)
{
	return xs_collector_options();
}

EXPORT void xs_companion_rank(int32_t rank, int32_t world_size)
{
	xs_told_rank(rank, world_size);
}

#define CRASH_WAIT 2000u /* ms */

EXPORT void xs_companion_crash(int number)
{
	const struct timespec ms = { 0, 1000000 };
	const struct xs_control *control = xs_self.control;
	struct xs_mailbox *mailbox = xs_self.mailbox;
	uint32_t mine;

	/* a child of vfork() has our memory, and is another process */
	if (xs_state() != XS_JOINED || xs_is_sealed() || xs_sys(SYS_getpid) != xs_self.pid ||
	    atomic_load_explicit(&control->paused, memory_order_relaxed) & XS_PAUSE_STOPPED)
		return;
	atomic_store_explicit(&mailbox->crash,
			      (uint64_t)xs_sys(SYS_gettid) << 8 | (unsigned char)number,
			      memory_order_relaxed);
	mine = atomic_fetch_add_explicit(&mailbox->crashes, 1, memory_order_release) + 1;
	xs_doorbell_ring(&mailbox->bell);
	for (unsigned i = 0; i < CRASH_WAIT; i++) {
		uint32_t served =
			atomic_load_explicit(&control->crashes_served, memory_order_acquire);

		if ((int32_t)(served - mine) >= 0)
			return;
		(void)xs_sys(SYS_nanosleep, &ms, NULL);
	}
}

EXPORT bool xs_companion_begin(const char *variable)
{
	return xs_begin_late(variable);
}

EXPORT const struct xs_control *xs_companion_control(void)
{
	return xs_state() == XS_JOINED ? xs_self.control : NULL;
}
