/*
 * Producers and a consumer at full speed: every record arrives once, in order and whole, or is
 * counted. Built a second time with ThreadSanitizer.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring.h"
#include "shm.h"
#include "tap.h"

#if defined(__SANITIZE_THREAD__)
#define SLOWER 20
#else
#define SLOWER 1
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef SLOWER
#define SLOWER 20
#endif
#endif

#define RINGS_MAX 4u
#define DEPTH_MAX 64u

struct side {
	struct xs_ring *ring;
	struct xs_producer producer;
	pthread_t thread;
	uint64_t count; /* records to write */
	unsigned long long seed;
	/* the consumer's */
	uint64_t pos, seen, next, lost_ends;
	uint32_t depth;
	uint32_t open[DEPTH_MAX], lost[DEPTH_MAX]; /* lost: a run of so many lost begins */
};

static struct xs_doorbell bell;
static struct xs_consumer consumer;
static struct side sides[RINGS_MAX];
static _Atomic uint32_t running;
static uint64_t ring_size;
static enum xs_on_full policy;

static uint64_t word_of(uint64_t number, uint32_t i)
{
	return (number + 1) * 0x9e3779b97f4a7c15ull ^ i;
}

/* The number of the record is its tick; begins and ends carry the number of the begin. */
static void put(struct side *side, uint64_t number, uint32_t bytes, uint8_t kind, uint32_t name,
		enum xs_role role)
{
	struct xs_event *event = xs_ring_reserve(&side->producer, &bell, bytes, role);
	uint64_t *words = (void *)event;

	if (!event)
		return;
	event->tick = number;
	event->name = name;
	event->kind = kind;
	event->words = (uint8_t)(bytes / 8);
	event->source = event->flags = 0;
	for (uint32_t i = 2; i < bytes / 8; i++)
		words[i] = word_of(number, i);
	xs_ring_commit(&side->producer, bytes);
}

static void *produce(void *data)
{
	struct side *side = data;
	uint32_t open[DEPTH_MAX], depth = 0;

	for (uint64_t n = 0; n < side->count; n++) {
		unsigned dice = tap_random(&side->seed) % 16;

		if (dice < 5 && depth < DEPTH_MAX) {
			open[depth++] = (uint32_t)n;
			put(side, n, 16, XS_BEGIN, (uint32_t)n, XS_ROLE_BEGIN);
		} else if (dice < 11 && depth) {
			put(side, n, 16, XS_END, open[--depth], XS_ROLE_END);
		} else {
			put(side, n, dice == 15 ? 16 * (1 + tap_random(&side->seed) % 127) : 32,
			    XS_CALL, 0, XS_ROLE_OTHER);
		}
		if (n % 100000 == 99999) /* a pause now and then: the consumer goes to sleep */
			usleep(200);
	}
	atomic_fetch_sub(&running, 1);
	xs_doorbell_ring(&bell);
	return NULL;
}

/* The innermost one ends, of a run of lost begins one; true: that it was. */
static bool end_one(struct side *side)
{
	uint32_t *lost = &side->lost[side->depth - 1];
	bool is_lost = *lost;

	*lost -= is_lost;
	side->depth -= !*lost;
	return is_lost;
}

static void check(struct side *side, const struct xs_event *event, uint32_t bytes)
{
	const uint64_t *words = (const void *)event;

	if (event->kind == XS_PAD)
		return;
	if (event->kind == XS_LOST_ENDS) {
		for (uint32_t i = 0; i < event->name; i++)
			if (CHECK(side->depth, "%u ends lost of %u", event->name, i))
				(void)end_one(side);
		return;
	}
	if (event->kind == XS_LOST_BEGINS) {
		if (!CHECK(side->depth < DEPTH_MAX && event->name, "depth"))
			return;
		side->lost[side->depth++] = event->name;
		return;
	}
	side->seen++;
	CHECK(event->tick >= side->next && (policy != XS_FULL_BLOCK || event->tick == side->next),
	      "record %" PRIu64 ", not %" PRIu64, event->tick, side->next);
	side->next = event->tick + 1;
	for (uint32_t i = 2; i < bytes / 8; i++)
		if (!CHECK(words[i] == word_of(event->tick, i), "record %" PRIu64 ", word %u",
			   event->tick, i))
			break;
	if (policy == XS_FULL_OVERWRITE) /* begins are gone */
		return;
	if (event->kind == XS_BEGIN && CHECK(side->depth < DEPTH_MAX, "depth")) {
		side->lost[side->depth] = 0;
		side->open[side->depth++] = event->name;
	} else if (event->kind == XS_END && CHECK(side->depth, "the end of %u", event->name)) {
		bool lost = end_one(side);

		CHECK(lost || side->open[side->depth] == event->name, "the end of %u", event->name);
	}
}

/* Reads what is there, gives room back now and then as the drain process does. */
static uint64_t consume(struct side *side)
{
	uint64_t head = xs_ring_filled(side->ring), first = side->pos;

	if (policy == XS_FULL_OVERWRITE) {
		side->pos = atomic_load_explicit(&side->ring->tail_lost, memory_order_acquire);
		first = side->pos;
	}
	while (side->pos != head && tap_failures < 20) {
		uint32_t bytes = 0;
		const struct xs_event *event =
			xs_ring_peek((unsigned char *)side->ring + XS_RING_HEADER, ring_size,
				     side->pos, head, &bytes);

		if (!CHECK(event, "no record at %" PRIu64 " of %" PRIu64, side->pos, head))
			break;
		check(side, event, bytes);
		side->pos += bytes;
	}
	if (side->pos != first && policy != XS_FULL_OVERWRITE)
		xs_ring_release(side->ring, ring_size, side->pos);
	return side->pos - first;
}

static bool news(unsigned rings)
{
	if (!atomic_load(&running))
		return true;
	for (unsigned i = 0; i < rings; i++)
		if (xs_ring_filled(sides[i].ring) - sides[i].pos >= ring_size / XS_RING_STEPS ||
		    atomic_load_explicit(&sides[i].ring->waiting, memory_order_relaxed))
			return true;
	return false;
}

/* The drain process's loop. Returns how often it slept. */
static unsigned drain(unsigned rings)
{
	unsigned slept = 0;

	while (atomic_load(&running)) {
		uint32_t rung = atomic_load_explicit(&bell.rung, memory_order_relaxed);
		uint64_t read = 0;

		atomic_fetch_add_explicit(&consumer.heartbeat, 1, memory_order_relaxed);
		for (unsigned i = 0; i < rings; i++)
			read += consume(&sides[i]);
		if (read >= 65536)
			continue;
		atomic_store_explicit(&bell.sleeping, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (!news(rings)) {
			/* far longer than a test may take: a lost wake-up shows */
			xs_doorbell_wait(&bell, rung, 2000000000);
			slept++;
		}
		atomic_store_explicit(&bell.sleeping, 0, memory_order_relaxed);
	}
	return slept;
}

static void go(enum xs_on_full how, unsigned rings, uint64_t size, uint64_t count)
{
	unsigned slept = 0;
	uint64_t blocked = 0;

	policy = how;
	ring_size = size;
	consumer.pid = getpid();
	xs_ring_set_consumer(&consumer);
	atomic_store(&running, rings);
	for (unsigned i = 0; i < rings; i++) {
		char *map = mmap(NULL, XS_RING_HEADER + size, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			abort();
		sides[i] = (struct side){ .ring = (void *)map,
					  .count = count / SLOWER,
					  .seed = i + 1 };
		xs_ring_init(&sides[i].producer, sides[i].ring,
			     (unsigned char *)map + XS_RING_HEADER, size, how);
	}
	for (unsigned i = 0; i < rings; i++)
		if (pthread_create(&sides[i].thread, NULL, produce, &sides[i]))
			abort();
	if (how != XS_FULL_OVERWRITE)
		slept = drain(rings);
	for (unsigned i = 0; i < rings; i++) {
		struct side *side = &sides[i];
		uint64_t lost;

		(void)pthread_join(side->thread, NULL);
		(void)consume(side);
		lost = atomic_load(&side->ring->lost) + atomic_load(&side->ring->overwritten);
		CHECK(side->seen + lost == side->count,
		      "%" PRIu64 " came, %" PRIu64 " are lost, of %" PRIu64, side->seen, lost,
		      side->count);
		CHECK(how != XS_FULL_BLOCK || !lost, "%" PRIu64 " lost", lost);
		blocked += atomic_load(&side->ring->blocked);
		munmap(side->ring, XS_RING_HEADER + size);
	}
	printf("# %u rings of %" PRIu64 " K: slept %u times, producers waited %" PRIu64 " times\n",
	       rings, size >> 10, slept, blocked);
}

static void block(void)
{
	go(XS_FULL_BLOCK, 1, XS_RING_MIN, 5000000);
}

static void block_default_size(void)
{
	go(XS_FULL_BLOCK, 1, XS_RING_DEFAULT, 5000000);
}

static void block_four(void)
{
	go(XS_FULL_BLOCK, 4, XS_RING_MIN, 1000000);
}

static void drop(void)
{
	go(XS_FULL_DROP, 1, XS_RING_MIN, 5000000);
}

static void drop_four(void)
{
	go(XS_FULL_DROP, 4, XS_RING_MIN, 1000000);
}

static void overwrite(void)
{
	go(XS_FULL_OVERWRITE, 1, XS_RING_MIN, 5000000);
}

static void overwrite_four(void)
{
	go(XS_FULL_OVERWRITE, 4, XS_RING_DEFAULT, 1000000);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("block", block);
	tap_run("block, default size", block_default_size);
	tap_run("block, four producers", block_four);
	tap_run("drop", drop);
	tap_run("drop, four producers", drop_four);
	tap_run("overwrite", overwrite);
	tap_run("overwrite, four producers", overwrite_four);
	return tap_done();
}
