/*
 * The rings of this process: eight in its first file, 64 in each further one. Threads that have ended leave theirs to others.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "self.h"

static struct xs_segment_file *segment_files[XS_MAX_SEGMENTS];

void xs_rings_forget(void)
{
	memset(segment_files, 0, sizeof(segment_files));
}

static struct xs_ring *slot_ring(void *file, uint32_t slot)
{
	return (struct xs_ring *)((char *)file + xs_slot_offset(slot, xs_self.process->ring_size));
}

/* A thread that traced in its last destructor round has left its ring LIVE: our own destructor had run before. */
static bool abandoned(const struct xs_ring *ring)
{
	uint32_t tid = atomic_load_explicit(&ring->tid, memory_order_relaxed);

	return atomic_load_explicit(&ring->state, memory_order_acquire) == XS_RING_LIVE && tid &&
	       syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH;
}

static struct xs_ring *reuse(void *file, uint32_t used, bool of_dead_threads)
{
	for (uint32_t i = 0; i < used; i++) {
		struct xs_ring *ring = slot_ring(file, i);
		uint32_t idle = of_dead_threads && abandoned(ring) ? XS_RING_LIVE : XS_RING_IDLE;

		/* pairs with the release in thread_detach() */
		if (atomic_compare_exchange_strong_explicit(&ring->state, &idle, XS_RING_LIVE, memory_order_acquire,
							    memory_order_relaxed)) {
			ring->skip = ring->lost_ends = 0; /* of a thread that ended inside a lost task */
			ring->limit = 0;
			return ring;
		}
	}
	return NULL;
}

static struct xs_ring *fresh(void *file, uint32_t slots, _Atomic uint32_t *used)
{
	uint32_t slot = atomic_load_explicit(used, memory_order_relaxed);
	struct xs_ring *ring;

	if (slot >= slots)
		return NULL;
	ring = slot_ring(file, slot);
	/* a full /dev/shm must show here and not as a SIGBUS */
	if (!xs_shm_present(ring, XS_RING_HEADER))
		return NULL;
	xs_ring_init(ring, (unsigned char *)ring + XS_RING_HEADER, xs_self.process->ring_size,
		     xs_self.control->options.on_full);
	atomic_store_explicit(&ring->state, XS_RING_LIVE, memory_order_relaxed);
	/* the ring is ready; pairs with the acquire in the drain process */
	atomic_store_explicit(used, slot + 1, memory_order_release);
	return ring;
}

static struct xs_segment_file *make_segment(uint32_t number)
{
	uint64_t ring_size = xs_self.process->ring_size;
	char name[XS_NAME_MAX];
	void *map;

	xs_process_name(name, xs_self.process->pid, xs_self.process->serial, number);
	for (uint32_t slots = XS_MORE_SLOTS; slots; slots /= 8) {
		struct xs_segment_file *segment;

		if (xs_shm_map(xs_self.dir, name, XS_SHM_CREATE, xs_slot_offset(slots, ring_size), &map, NULL) < 0)
			continue;
		segment = map;
		segment->slots = slots;
		atomic_store_explicit(&segment->magic, XS_MAGIC, memory_order_release);
		/* pairs with the acquire in the drain process */
		atomic_store_explicit(&xs_self.process->segments, number, memory_order_release);
		return segment;
	}
	return NULL;
}

static struct xs_ring *reuse_any(uint32_t segments, bool of_dead_threads)
{
	uint32_t used = atomic_load_explicit(&xs_self.process->used, memory_order_relaxed);
	struct xs_ring *ring = reuse(xs_self.process, used, of_dead_threads);

	for (uint32_t i = 0; !ring && i < segments; i++) {
		used = atomic_load_explicit(&segment_files[i]->used, memory_order_relaxed);
		ring = reuse(segment_files[i], used, of_dead_threads);
	}
	return ring;
}

struct xs_ring *xs_ring_take(void)
{
	uint32_t segments = atomic_load_explicit(&xs_self.process->segments, memory_order_relaxed);
	struct xs_ring *ring = reuse_any(segments, false);

	if (!ring)
		ring = fresh(xs_self.process, xs_self.process->slots, &xs_self.process->used);
	if (!ring && segments)
		ring = fresh(segment_files[segments - 1], segment_files[segments - 1]->slots,
			     &segment_files[segments - 1]->used);
	if (!ring)
		ring = reuse_any(segments, true);
	if (!ring && segments < XS_MAX_SEGMENTS) {
		struct xs_segment_file *segment = make_segment(segments + 1);

		segment_files[segments] = segment;
		if (segment)
			ring = fresh(segment, segment->slots, &segment->used);
	}
	if (!ring)
		atomic_store_explicit(&xs_gate->no_rings, 1, memory_order_relaxed);
	return ring;
}
