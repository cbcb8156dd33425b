/*
 * The rings of this process: eight in its first file, 64 in each further one. Threads that have
 * ended leave theirs to others.
 *
 * Private memory here says which thread has which ring. The ring's header is for the drain process
 * only, since others may write there.
 */
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>

#include "lock.h"
#include "self.h"
#include "sys.h"

struct xs_slot {
	_Atomic uint32_t state;	     /* enum xs_ring_state */
	uint32_t tid;		     /* of the thread that has it, or had it last */
	struct xs_producer producer; /* as that thread left it */
	struct xs_counters counters; /* of that thread */
};

/* The process's first file (number 0), and its segments. */
struct file {
	char *map;
	struct xs_slot *slots;
	uint32_t count, used;
	uint64_t ring_size;
};
static struct file first;
static struct file *segments; /* XS_MAX_SEGMENTS of them; NULL: none yet */
static uint32_t segment_count;

/* Bytes, of the whole run. */
static uint64_t rings_taken(void)
{
	return atomic_load_explicit(&xs_self.mailbox->rings, memory_order_relaxed);
}

static bool has_room(uint64_t taken, uint64_t ring_size)
{
	uint64_t most = xs_self.control->rings_most;

	return !most || taken + ring_size <= most;
}

/*
 * One more of the whole run's, if it has room. Counted and compared in one step, since other
 * processes do the same; the drain process takes it off when the process has ended.
 */
static bool take_room(uint64_t ring_size)
{
	uint64_t taken = rings_taken();

	do
		if (!has_room(taken, ring_size))
			return false;
	while (!atomic_compare_exchange_weak_explicit(&xs_self.mailbox->rings, &taken,
						      taken + ring_size, memory_order_relaxed,
						      memory_order_relaxed));
	return true;
}

uint64_t xs_ring_size(uint32_t slots)
{
	uint64_t size = xs_self.control->options.ring_size, half = xs_self.control->rings_most / 2;
	uint64_t taken = rings_taken();
	uint64_t left = taken < half ? half - taken : 0;

	if (size < XS_RING_MIN || size > XS_RING_MAX || size & (size - 1))
		size = XS_RING_MIN; /* somebody has overwritten it since the process has joined */
	while (half && size > XS_RING_MIN && size * slots > left)
		size /= 2;
	return size;
}

void xs_rings_forget(void)
{
	/* in a child of fork: what may lie there is the parent's (forked.c), and stays mapped */
	first = (struct file){ .map = (char *)xs_self.process,
			       .count = xs_self.slots,
			       .ring_size = xs_self.ring_size };
	segments = NULL;
	segment_count = 0;
}

/* What another thread was just writing when this one called fork() may be there by half. */
static void leave(const struct file *file, uint64_t from)
{
	if (file->map && file->count)
		(void)xs_sys(SYS_munmap, file->map + from,
			     xs_slot_offset(file->count, file->ring_size) - from);
}

void xs_rings_leave(void)
{
	leave(&first, XS_PROCESS_HEADER);
	for (uint32_t i = 0; segments && i < segment_count; i++)
		leave(&segments[i], 0);
	first = (struct file){ .map = NULL };
	segments = NULL;
	segment_count = 0;
}

static struct xs_slot *slots_of(struct file *file)
{
	if (!file->slots)
		file->slots = xs_arena(file->count * sizeof(*file->slots));
	return file->slots;
}

static bool is_gone(uint32_t tid)
{
	return tid && xs_sys(SYS_tgkill, xs_self.pid, tid, 0) == -ESRCH;
}

static void take(struct xs_slot *slot)
{
	struct xs_producer *p = &slot->producer;

	p->skip = p->lost_ends = p->lost_others = 0; /* of a thread that ended inside a lost task */
	p->limit = 0;
	slot->tid = xs_tls.tid;
	atomic_store_explicit(&p->ring->tid, xs_tls.tid, memory_order_relaxed);
	atomic_store_explicit(&p->ring->call, 0, memory_order_relaxed);
	atomic_store_explicit(&p->ring->state, XS_RING_LIVE, memory_order_relaxed);
	xs_tls.slot = slot;
	xs_tls.producer = *p;
	xs_tls.producer.key = atomic_load_explicit(&xs_gate->key, memory_order_relaxed);
}

/*
 * of_dead_threads: those of threads that traced in their last destructor round, when ours had run:
 * they left them LIVE.
 */
static bool reuse(struct file *file, bool of_dead_threads)
{
	for (uint32_t i = 0; i < file->used; i++) {
		struct xs_slot *slot = &file->slots[i];
		uint32_t state = of_dead_threads && is_gone(slot->tid) ? XS_RING_LIVE
								       : XS_RING_IDLE;

		/* pairs with the release in xs_ring_give() */
		if (!atomic_compare_exchange_strong_explicit(&slot->state, &state, XS_RING_LIVE,
							     memory_order_acquire,
							     memory_order_relaxed))
			continue;
		if (of_dead_threads) /* it took its own state along */
			slot->producer.head = atomic_load_explicit(&slot->producer.ring->head,
								   memory_order_relaxed) &
					      ~(uint64_t)15;
		take(slot);
		return true;
	}
	return false;
}

static bool fresh(struct file *file, _Atomic uint32_t *used)
{
	uint64_t ring_size = file->ring_size;
	struct xs_producer *producer;
	struct xs_ring *ring;

	if (!file->map || file->used >= file->count || !slots_of(file) || !take_room(ring_size))
		return false;
	producer = &file->slots[file->used].producer;
	ring = (struct xs_ring *)(file->map + xs_slot_offset(file->used, ring_size));
	/* a full /dev/shm must show here and not as a SIGBUS; the first records come at once */
	if (!xs_shm_present(ring, XS_RING_HEADER + XS_PAGE)) {
		atomic_fetch_sub_explicit(&xs_self.mailbox->rings, ring_size, memory_order_relaxed);
		return false;
	}
	xs_ring_init(producer, ring, (unsigned char *)ring + XS_RING_HEADER, ring_size,
		     (enum xs_on_full)xs_self.control->options.on_full);
	producer->prepared = XS_PAGE;
	atomic_store_explicit(&file->slots[file->used].state, XS_RING_LIVE, memory_order_relaxed);
	take(&file->slots[file->used]);
	file->used++;
	/* the ring is ready; pairs with the acquire in the drain process */
	atomic_store_explicit(used, file->used, memory_order_release);
	return true;
}

static struct file *make_segment(void)
{
	const uint32_t number = segment_count + 1;
	const uint64_t ring_size = xs_ring_size(XS_MORE_SLOTS) < xs_self.ring_size
					   ? xs_ring_size(XS_MORE_SLOTS)
					   : xs_self.ring_size;
	struct xs_shm_file made;
	char name[XS_NAME_MAX];
	void *map;

	if (!segments)
		segments = xs_arena(XS_MAX_SEGMENTS * sizeof(*segments));
	if (!segments || segment_count == XS_MAX_SEGMENTS || xs_is_sealed() ||
	    !has_room(rings_taken(), ring_size))
		return NULL;
	xs_process_file_name(name, xs_self.pid, xs_self.serial, number);
	for (uint32_t slots = XS_MORE_SLOTS; slots; slots /= 8) {
		struct xs_segment_file *segment;

		if (xs_shm_map(xs_self.dir, name, XS_SHM_CREATE, xs_slot_offset(slots, ring_size),
			       &map, &made) < 0)
			continue;
		segment = map;
		segment->slots = slots;
		segment->ring_size = ring_size;
		segment->made_as = xs_file_word(made.inode, xs_self.pid, xs_self.serial, number);
		atomic_store_explicit(&segment->magic, XS_MAGIC, memory_order_release);
		/* pairs with the acquire in the drain process */
		atomic_store_explicit(&xs_self.process->segments, number, memory_order_release);
		segments[segment_count] =
			(struct file){ .map = map, .count = slots, .ring_size = ring_size };
		return &segments[segment_count++];
	}
	return NULL;
}

static _Atomic uint32_t *used_in(const struct file *segment)
{
	return &((struct xs_segment_file *)segment->map)->used;
}

static bool reuse_any(bool of_dead_threads)
{
	bool found = reuse(&first, of_dead_threads);

	for (uint32_t i = 0; !found && i < segment_count; i++)
		found = reuse(&segments[i], of_dead_threads);
	return found;
}

static bool find(void)
{
	struct file *segment;

	if (reuse_any(false) || fresh(&first, &xs_self.process->used))
		return true;
	if (segment_count &&
	    fresh(&segments[segment_count - 1], used_in(&segments[segment_count - 1])))
		return true;
	if (reuse_any(true))
		return true;
	segment = make_segment();
	return segment && fresh(segment, used_in(segment));
}

bool xs_ring_take(void)
{
	bool found;

	if (!xs_lock(&xs_gate->lock))
		return false;
	found = find();
	xs_unlock(&xs_gate->lock);
	if (!found)
		atomic_store_explicit(&xs_gate->no_rings, 1, memory_order_relaxed);
	return found;
}

struct xs_counters *xs_slot_counters(struct xs_slot *slot)
{
	return &slot->counters;
}

void xs_ring_give(void)
{
	struct xs_slot *slot = xs_tls.slot;

	if (!slot)
		return;
	slot->producer = xs_tls.producer;
	/* the drain process finds all that was written before */
	atomic_store_explicit(&slot->producer.ring->state, XS_RING_IDLE, memory_order_release);
	xs_tls.producer = (struct xs_producer){ .ring = NULL };
	xs_tls.slot = NULL;
	/* all that this thread wrote; pairs with the acquire in reuse() */
	atomic_store_explicit(&slot->state, XS_RING_IDLE, memory_order_release);
	atomic_store_explicit(&xs_gate->no_rings, 0, memory_order_relaxed);
}

#define PREPARE_MAX (256u << 20)

static bool prepare(struct file *file, uint64_t *bytes)
{
	for (uint32_t i = 0; i < file->used; i++) {
		*bytes += file->ring_size;
		if (*bytes > PREPARE_MAX ||
		    !xs_shm_present(file->slots[i].producer.data, file->ring_size))
			return false;
	}
	return true;
}

bool xs_rings_prepare(void)
{
	uint64_t bytes = 0;
	bool all;

	if (!xs_lock(&xs_gate->lock))
		return false;
	all = prepare(&first, &bytes);
	for (uint32_t i = 0; all && i < segment_count; i++)
		all = prepare(&segments[i], &bytes);
	xs_unlock(&xs_gate->lock);
	return all;
}
