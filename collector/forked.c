/*
 * fork() in the handler of a signal that has interrupted an event: when the handler returns in the
 * child, the event goes on there as if it were the parent's.
 */
#include <sys/mman.h>

#include "self.h"
#include "sys.h"

/* Of glibc, which has it for libraries alone; musl, which a program may have, does not. */
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
			     void *library) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/*
 * In the child, whether or not it was called within an event, which nobody knows at its first
 * instructions. The event's stores would come into the parent's ring: memory of the child's own
 * takes its place. What is written there is forgotten with the thread's next event.
 */
static void leave_parents_ring(void)
{
	struct xs_ring *ring = xs_tls.producer.ring;
	size_t size = XS_RING_HEADER + xs_tls.producer.mask + 1;

	if (!ring || xs_own_ring())
		return;
	/* what is there is not read: the program may have kept it from the child (MADV_DONTFORK) */
	if (xs_sys(SYS_mmap, ring, size, PROT_READ | PROT_WRITE,
		   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != (long)ring)
		return;
	/* there is room, and nobody who would make some */
	atomic_store_explicit(&ring->tail, xs_tls.producer.head, memory_order_relaxed);
}

void xs_watch_forks(void)
{
	static bool watched;

	if (!watched && __register_atfork)
		watched = !__register_atfork(NULL, NULL, leave_parents_ring, &__dso_handle);
}
