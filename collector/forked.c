/*
 * What a child of fork() has of its parent's rings goes, before anything else may lie there: a
 * chain of forks would have those of all its ancestors else, as memory and as address space. Of the
 * file the first pages stay, until the child joins: it may still tell something of its parent.
 *
 * Not so in the handler of a signal that has interrupted an event: when the handler returns in the
 * child, the event goes on there as if it were the parent's.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "next.h"
#include "self.h"
#include "sys.h"

/* Of glibc, which has it for libraries alone; musl, which a program may have, does not. */
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
			     void *library) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/*
 * The event's stores would come into the parent's ring: memory of the child's own takes its place.
 * What is written there is forgotten with the thread's next event.
 */
static bool replace(struct xs_ring *ring, size_t size)
{
	/* what is there is not read: the program may have kept it from the child (MADV_DONTFORK) */
	return xs_sys(SYS_mmap, ring, size, PROT_READ | PROT_WRITE,
		      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == (long)ring;
}

static void replace_ring(struct xs_ring *ring)
{
	/* there is room, and nobody who would make some */
	if (replace(ring, XS_RING_HEADER + xs_tls.producer.mask + 1))
		atomic_store_explicit(&ring->tail, xs_tls.producer.head, memory_order_relaxed);
}

/*
 * A call's begin and end store into the ring's header, also outside of an event, and a handler may
 * have interrupted them. Of a chain of forks the last one's stays.
 */
static void leave_header(struct xs_ring *ring)
{
	static struct xs_ring *left;

	if (left && left != ring)
		(void)xs_sys(SYS_munmap, left, XS_RING_HEADER);
	left = ring && replace(ring, XS_RING_HEADER) ? ring : NULL;
}

/* In the child, at its first instructions. */
void xs_leave_parent(void)
{
	bool within = xs_tls.mark || xs_tls.busy;
	struct xs_ring *ring = xs_tls.producer.ring;
	struct xs_entered entered;

	xs_leave_activity();
	if (xs_state() != XS_NOT_JOINED || !xs_self.process)
		return;
	xs_enter(&entered);
	if (xs_state() != XS_NOT_JOINED) {
		/* a handler was faster */
	} else if (!within) {
		xs_tls.producer = (struct xs_producer){ .ring = NULL };
		xs_tls.slot = NULL;
		xs_rings_leave();
		leave_header(ring);
		xs_self.left = xs_self.process;
	} else if (ring) {
		replace_ring(ring);
	}
	xs_leave(&entered);
}

static _Atomic(void *) real_fork; /* _Fork() */

__attribute__((constructor)) static void find_early(void)
{
	(void)xs_next(&real_fork, "_Fork");
}

void xs_watch_forks(void)
{
	static bool watched;

	if (!watched && __register_atfork)
		watched = !__register_atfork(NULL, NULL, xs_leave_parent, &__dso_handle);
}

/* Handlers may call it, and nobody who watches forks hears of the child. */
__attribute__((visibility("default"))) pid_t _Fork(void)
{
	pid_t (*function)(void) = xs_next(&real_fork, "_Fork"), pid;

	if (!function) { /* the C library has none */
		errno = ENOSYS;
		return -1;
	}
	pid = function();
	if (!pid)
		xs_leave_parent();
	return pid;
}
