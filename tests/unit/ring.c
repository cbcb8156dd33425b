/*
 * The ring with one thread: what is written is read, where it wraps, when it is full, and when a
 * side is gone.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "process.h"
#include "ring.h"
#include "shm.h"
#include "tap.h"

#define SIZE	      XS_RING_MIN
#define STEP	      (SIZE / XS_RING_STEPS)
#define PAGE_ROUND(n) (((n) + 4095) & ~4095ul)

static struct xs_ring *ring;
static struct xs_producer producer;
static struct xs_doorbell *bell;
static struct xs_consumer consumer;
static unsigned long long seed = 1;

/* A record of the tests: event.name its number, and words behind the header that follow from it. */
static uint64_t word_of(uint32_t number, uint32_t i)
{
	return (number + 1) * 0x9e3779b97f4a7c15ull ^ i;
}

static void consumer_is(pid_t pid, uint64_t start)
{
	consumer.pid = pid;
	consumer.start = start;
	xs_ring_set_consumer(&consumer);
}

static void setup(enum xs_on_full policy, uint64_t size)
{
	char *map = mmap(NULL, PAGE_ROUND(sizeof(*bell)) + XS_RING_HEADER + size,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		abort();
	bell = (void *)map;
	ring = (void *)(map + PAGE_ROUND(sizeof(*bell)));
	xs_ring_init(&producer, ring, (unsigned char *)ring + XS_RING_HEADER, size, policy);
	consumer_is(getpid(), 0);
}

static bool put(uint32_t number, uint32_t bytes, uint8_t kind, enum xs_role role)
{
	struct xs_event *event = xs_ring_reserve(&producer, bell, bytes, role);
	uint64_t *words = (void *)event;

	if (!event)
		return false;
	CHECK((uintptr_t)event % 16 == 0, "a record at %p", (void *)event);
	event->tick = number;
	event->name = number;
	event->kind = kind;
	event->words = (uint8_t)(bytes / 8);
	event->source = event->flags = 0;
	for (uint32_t i = 2; i < bytes / 8; i++)
		words[i] = word_of(number, i);
	xs_ring_commit(&producer, bytes);
	return true;
}

/* The record at *pos, which is moved on; pads are passed over. NULL: no more. */
static const struct xs_event *get(uint64_t *pos, uint64_t head)
{
	uint64_t size = producer.mask + 1;

	while (*pos != head) {
		uint32_t bytes = 0;
		const struct xs_event *event =
			xs_ring_peek(producer.data, size, *pos, head, &bytes);
		const uint64_t *words = (const void *)event;

		if (!CHECK(event, "nothing at %llu of %llu", (unsigned long long)*pos,
			   (unsigned long long)head))
			return NULL;
		CHECK(*pos / (size / 8) == (*pos + bytes - 1) / (size / 8),
		      "a record across a step's end");
		*pos += bytes;
		if (event->kind == XS_PAD) {
			CHECK(*pos % (size / 8) == 0 || bytes == XS_RECORD_MAX,
			      "padding inside a step");
			continue;
		}
		for (uint32_t i = 2; i < bytes / 8; i++)
			if (!CHECK(words[i] == word_of(event->name, i), "record %u, word %u",
				   event->name, i))
				break;
		return event;
	}
	return NULL;
}

static uint32_t random_size(void)
{
	uint32_t n = tap_random(&seed);

	return 16 * (1 + (n & 7 ? n / 8 % 8 : n / 8 % (XS_RECORD_MAX / 16)));
}

static void peek_believes_nothing(void)
{
	static _Alignas(16) unsigned char data[SIZE];
	struct xs_event *event = (void *)data;
	uint32_t bytes;

	for (unsigned words = 0; words < 256; words++) {
		bool good = words >= 2 && words % 2 == 0;

		event->words = (uint8_t)words;
		CHECK(!!xs_ring_peek(data, SIZE, 0, SIZE, &bytes) == good, "%u words", words);
		CHECK(!good || bytes == words * 8, "%u words", words);
		CHECK(!!xs_ring_peek(data, SIZE, 0, words * 8, &bytes) == good,
		      "%u words, all there", words);
		if (words >= 2)
			CHECK(!xs_ring_peek(data, SIZE, 0, words * 8 - 16, &bytes),
			      "%u words, cut by the head", words);
		event = (void *)(data + SIZE - 64);
		event->words = (uint8_t)words;
		CHECK(!!xs_ring_peek(data, SIZE, 5 * SIZE - 64, 6 * SIZE, &bytes) ==
			      (good && words <= 8),
		      "%u words at the end", words);
		event = (void *)data;
	}
	CHECK(!xs_ring_peek(data, SIZE, 0, 8, &bytes), "half a header");
	CHECK(!xs_ring_peek(data, SIZE, 64, 64, &bytes), "an empty ring");
}

static void wraps(uint64_t first)
{
	uint64_t pos = first;
	uint32_t put_count = 0, got = 0;

	setup(XS_FULL_DROP, SIZE);
	producer.head = first;
	atomic_store(&ring->head, first);
	atomic_store(&ring->tail, first);
	for (int i = 0; i < 100000; i++) {
		const struct xs_event *event;
		uint64_t head;

		put_count += put(put_count, random_size(), XS_CALL, XS_ROLE_OTHER);
		if (tap_random(&seed) % 8)
			continue;
		head = xs_ring_filled(ring);
		CHECK(head - pos <= SIZE, "more than there is room for");
		while ((event = get(&pos, head)))
			CHECK(event->name == got++, "record %u", event->name);
		xs_ring_release(ring, producer.mask + 1, pos);
	}
	while (get(&pos, xs_ring_filled(ring)))
		got++;
	CHECK(got == put_count && put_count > 90000, "%u of %u", got, put_count);
	CHECK(atomic_load(&ring->lost) == 100000 - put_count, "%u lost", 100000 - put_count);
}

static void wrapping(void)
{
	wraps(0);
}

static void wrapping_at_4g(void)
{
	wraps((1ull << 32) - 10 * SIZE);
}

static void errno_is_kept(void)
{
	for (int policy = 0; policy < 3; policy++) {
		setup((enum xs_on_full)policy, SIZE);
		consumer_is(4000000, 0); /* nobody */
		for (uint32_t i = 0; i < 3000; i++) {
			errno = 12345;
			(void)put(i, 32, XS_CALL, XS_ROLE_OTHER);
			if (!CHECK(errno == 12345, "policy %d, record %u", policy, i))
				break;
		}
	}
}

static void largest_records(void)
{
	uint64_t pos = 0;
	uint32_t n = 0, got = 0;

	setup(XS_FULL_DROP, SIZE);
	while (put(n, XS_RECORD_MAX, XS_CALL, XS_ROLE_OTHER))
		n++;
	CHECK(n >= XS_RING_STEPS * (STEP / XS_RECORD_MAX) - STEP / XS_RECORD_MAX &&
		      n <= SIZE / XS_RECORD_MAX,
	      "%u", n);
	while (get(&pos, xs_ring_filled(ring)))
		got++;
	CHECK(got == n, "%u of %u", got, n);
}

/* ---- policy block ---- */

static pid_t ended_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
	return pid;
}

static void dead_consumer(void)
{
	uint64_t before, pos = 0;
	uint32_t n = 0, got = 0;

	setup(XS_FULL_BLOCK, SIZE);
	consumer_is(ended_process(), 0);
	while (put(n, 16, XS_BEGIN, XS_ROLE_BEGIN) && n < SIZE)
		n++;
	CHECK(n == SIZE / 16, "%u records, not %u", n, SIZE / 16);
	CHECK(atomic_load(&ring->consumer_dead), "noticed");
	CHECK(atomic_load(&ring->blocked) == 1, "waited once");
	CHECK(atomic_load(&ring->blocked_ns) > 0, "and how long is known");
	before = xs_clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 1000; i++)
		CHECK(!put(n, 16, XS_CALL, XS_ROLE_OTHER), "still full");
	CHECK(xs_clock_ns(CLOCK_MONOTONIC) - before < 20000000000u,
	      "waits for nobody, not 50 ms each time");
	CHECK(atomic_load(&ring->lost) == 1001, "%llu lost",
	      (unsigned long long)atomic_load(&ring->lost));
	while (get(&pos, xs_ring_filled(ring)))
		got++;
	CHECK(got == n, "all readable");
}

/* What stands there of a dead one has been overwritten since we joined. */
static void dead_consumer_that_is_overwritten(void)
{
	const pid_t words[] = { 0, -1, 1, getpid() };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint32_t n = 0;

		setup(XS_FULL_BLOCK, SIZE);
		consumer_is(ended_process(), 0);
		consumer.pid = words[i];
		while (put(n, 16, XS_BEGIN, XS_ROLE_BEGIN) && n < SIZE)
			n++;
		CHECK(n == SIZE / 16, "%u records, not %u", n, SIZE / 16);
		CHECK(atomic_load(&ring->consumer_dead), "noticed");
	}
}

/* The consumer's pid is another process's now. */
static void reused_consumer(void)
{
	uint32_t n = 0;

	setup(XS_FULL_BLOCK, SIZE);
	consumer_is(getpid(), xs_pid_start(getpid()) + 1);
	while (put(n, 16, XS_CALL, XS_ROLE_OTHER) && n < SIZE)
		n++;
	CHECK(n == SIZE / 16, "%u records, not %u", n, SIZE / 16);
	CHECK(atomic_load(&ring->consumer_dead), "noticed");
}

/* A consumer that lives, and looks at everything but this ring. */
static void *beat(void *stop)
{
	struct timespec pause = { 0, 10000000 };

	while (!atomic_load((atomic_bool *)stop)) {
		atomic_fetch_add(&consumer.heartbeat, 1);
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

static void consumer_that_looks_elsewhere(void)
{
	atomic_bool stop = false;
	pthread_t thread;
	uint64_t waited;
	uint32_t n = 0;

	setup(XS_FULL_BLOCK, SIZE);
	consumer_is(getpid(), xs_pid_start(getpid()));
	(void)pthread_create(&thread, NULL, beat, &stop);
	waited = xs_clock_ns(CLOCK_MONOTONIC);
	while (put(n, 16, XS_CALL, XS_ROLE_OTHER) && n < SIZE)
		n++;
	waited = xs_clock_ns(CLOCK_MONOTONIC) - waited;
	atomic_store(&stop, true);
	(void)pthread_join(thread, NULL);
	CHECK(n == SIZE / 16, "%u records, not %u", n, SIZE / 16);
	CHECK(atomic_load(&ring->consumer_dead), "noticed");
	CHECK(waited > 9000000000u && waited < 30000000000u, "after %llu ns",
	      (unsigned long long)waited);
	CHECK(atomic_load(&ring->lost) == 1, "counted");
}

/* ---- wake-ups: whatever waits has a time-out too, which would hide that nobody woke it ---- */

/* As many sleepers as there are, and how many there were. */
static long wake(_Atomic uint32_t *word)
{
	return syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps on the word while it is `value`; far longer than a wake-up takes. 0: woken. */
static int sleep_on(_Atomic uint32_t *word, uint32_t value)
{
	struct timespec timeout = { 5, 0 };

	return syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0) < 0 ? errno : 0;
}

/* How a sleeper of another process ends that `wakes` is to wake. */
static int woken_by(void (*wakes)(void), _Atomic uint32_t *word, uint32_t value)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(sleep_on(word, value));
	/*
	 * so long, and it sleeps: one that comes too late ends at once, and is no proof of anything
	 */
	usleep(100000);
	wakes();
	(void)waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void give_back_half(void)
{
	xs_ring_release(ring, SIZE, xs_ring_filled(ring) - SIZE / 2);
}

static void ring_bell(void)
{
	xs_doorbell_ring(bell);
}

/*
 * True when a sleeper was woken; not all of the time is another process quick enough to be asleep.
 */
static bool wakes(void (*prepare)(void), void (*wake_up)(void), _Atomic uint32_t *word,
		  uint32_t value)
{
	int how = EAGAIN;

	for (int i = 0; i < 50 && how == EAGAIN; i++) {
		prepare();
		how = woken_by(wake_up, word, value);
	}
	return CHECK(!how, "%s", strerror(how));
}

static void full_and_waiting(void)
{
	uint64_t head = atomic_load(&ring->head) + SIZE;

	atomic_store(&ring->head, head);
	atomic_store(&ring->tail, head - SIZE);
	atomic_store(&ring->waiting, 1);
}

static void consumer_asleep(void)
{
	atomic_store(&bell->rung, 7);
	atomic_store(&bell->sleeping, 1);
}

static void release_wakes(void)
{
	setup(XS_FULL_BLOCK, SIZE);
	wakes(full_and_waiting, give_back_half, &ring->waiting, 1);
	CHECK(!atomic_load(&ring->waiting), "nobody waits any more");
	full_and_waiting();
	xs_ring_release(ring, SIZE, atomic_load(&ring->tail) + SIZE / 4);
	CHECK(atomic_load(&ring->waiting), "less than half is free: it waits on");
}

static void doorbell_wakes(void)
{
	setup(XS_FULL_BLOCK, SIZE);
	wakes(consumer_asleep, ring_bell, &bell->rung, 7);
}

/* The producer sleeps where xs_ring_release() wakes. */
static void producer_sleeps(void)
{
	int status = -1;
	long woken = 0;
	pid_t pid;

	setup(XS_FULL_BLOCK, SIZE);
	pid = fork();
	if (!pid) {
		bool all = true;

		for (uint32_t n = 0; n < SIZE / 16 + 1; n++)
			all &= put(n, 16, XS_CALL, XS_ROLE_OTHER);
		_exit(!all);
	}
	for (int i = 0; i < 20000 && !woken; i++) {
		usleep(1000);
		woken = wake(&ring->waiting);
	}
	CHECK(woken == 1, "%ld sleep there", woken);
	CHECK(!waitpid(pid, &status, WNOHANG), "it waits, whoever woke it: there is no room");
	CHECK(xs_ring_filled(ring) == SIZE, "nothing is written over what nobody has read");
	xs_ring_release(ring, SIZE, SIZE);
	(void)waitpid(pid, &status, 0);
	CHECK(!status, "status %d", status);
	CHECK(atomic_load(&ring->blocked) == 1, "it waited once");
}

/*
 * A consumer that is there but slow: the producer waits for ever, longer than it takes to notice a
 * dead one.
 */
static void slow_consumer(void)
{
	uint64_t pos = 0;
	uint32_t got = 0;
	int status = -1;
	pid_t pid;

	setup(XS_FULL_BLOCK, SIZE);
	pid = fork();
	if (!pid) {
		uint32_t n = 0;

		for (int i = 0; i < 3 * (int)SIZE / 16; i++)
			n += put(n, 16, XS_CALL, XS_ROLE_OTHER);
		_exit(n != 3 * SIZE / 16 || !atomic_load(&ring->blocked));
	}
	for (int i = 0; i < 200 && waitpid(pid, &status, WNOHANG) != pid; i++) {
		usleep(20000 + 100000 * (i < 2));
		while (get(&pos, xs_ring_filled(ring)))
			got++;
		xs_ring_release(ring, producer.mask + 1, pos);
	}
	(void)kill(pid, SIGKILL);
	CHECK(!status, "status %d", status);
	while (get(&pos, xs_ring_filled(ring)))
		got++;
	CHECK(got == 3 * SIZE / 16, "%u", got);
	CHECK(!atomic_load(&ring->consumer_dead) && !atomic_load(&ring->waiting), "state");
}

/* ---- policy drop ---- */

/* Open tasks by their numbers; among what was seen also runs of lost begins, which count. */
struct nest {
	uint32_t open[4096], lost[4096];
	unsigned depth;
};

static bool is_open(const struct nest *seen, uint32_t number)
{
	for (unsigned i = 0; i < seen->depth; i++)
		if (!seen->lost[i] && seen->open[i] == number)
			return true;
	return false;
}

/* The innermost one ends, of a run of lost begins one. */
static void end_one(struct nest *seen)
{
	uint32_t *lost = &seen->lost[seen->depth - 1];

	if (*lost)
		--*lost;
	seen->depth -= !*lost;
}

/*
 * What a record does to the tasks that the consumer believes open. Returns false for what is no
 * record of the application.
 */
static bool follow(struct nest *seen, const struct xs_event *event)
{
	if (event->kind == XS_LOST_ENDS) {
		for (uint32_t i = 0; i < event->name; i++) {
			if (!CHECK(seen->depth, "%u ends lost of %u tasks", event->name, i))
				break;
			end_one(seen);
		}
		return false;
	}
	if (event->kind == XS_LOST_BEGINS || event->kind == XS_BEGIN) {
		bool lost = event->kind == XS_LOST_BEGINS;

		if (!CHECK(seen->depth < 4096 && (!lost || event->name), "too deep, or none"))
			return false;
		seen->lost[seen->depth] = lost ? event->name : 0;
		seen->open[seen->depth++] = event->name;
		return !lost;
	}
	if (event->kind != XS_END)
		return true;
	if (!CHECK(seen->depth, "the end of %u closes none", event->name))
		return true;
	if (seen->lost[seen->depth - 1])
		CHECK(!is_open(seen, event->name), "the end of %u is taken for a lost one's",
		      event->name);
	else
		CHECK(seen->open[seen->depth - 1] == event->name,
		      "the end of %u closes %u (depth %u)", event->name,
		      seen->open[seen->depth - 1], seen->depth);
	end_one(seen);
	return true;
}

/*
 * Random nesting against a consumer that comes now and then: what arrives must be balanced (every
 * end closes the task whose begin came last), and every record arrives or is counted.
 */
static void drop_balance(unsigned max_depth, unsigned run)
{
	static struct nest app, seen;
	uint64_t pos = 0;
	uint32_t number = 0, arrived = 0, produced = 0;

	setup(XS_FULL_DROP, SIZE);
	memset(&app, 0, sizeof(app));
	memset(&seen, 0, sizeof(seen));
	for (int i = 0; i < 300000; i++) {
		const struct xs_event *event;
		uint64_t head;
		bool begin = app.depth < max_depth && (!app.depth || tap_random(&seed) % 2);

		if (i > 290000)
			begin = false; /* to the end of all */
		produced++;
		if (tap_random(&seed) % 4 == 0 && i <= 290000) {
			(void)put(number, 16 * (1 + tap_random(&seed) % 9), XS_CALL, XS_ROLE_OTHER);
		} else if (begin) {
			app.open[app.depth++] = ++number;
			(void)put(number, 16, XS_BEGIN, XS_ROLE_BEGIN);
		} else if (app.depth) {
			(void)put(app.open[--app.depth], 16, XS_END, XS_ROLE_END);
		} else {
			produced--;
		}
		if (tap_random(&seed) % run)
			continue;
		head = xs_ring_filled(ring);
		/* not all of it: to the end of a step */
		if (tap_random(&seed) % 2 && head / STEP > pos / STEP)
			head = (pos / STEP + 1) * STEP;
		while ((event = get(&pos, head))) {
			arrived += follow(&seen, event);
			if (tap_failures)
				return;
		}
		xs_ring_release(ring, producer.mask + 1, pos);
	}
	CHECK(!producer.skip, "all lost begins have ended");
	for (const struct xs_event *event; (event = get(&pos, xs_ring_filled(ring)));)
		arrived += follow(&seen, event);
	xs_ring_release(ring, producer.mask + 1, pos);
	CHECK(put(++number, 16, XS_BEGIN, XS_ROLE_BEGIN), "a record that brings along what is due");
	produced++;
	for (const struct xs_event *event; (event = get(&pos, xs_ring_filled(ring)));)
		arrived += follow(&seen, event);
	seen.depth -= seen.depth && seen.open[seen.depth - 1] == number;
	CHECK(!seen.depth, "%u tasks never end", seen.depth);
	CHECK(arrived + atomic_load(&ring->lost) == produced, "%u arrived, %llu lost, %u produced",
	      arrived, (unsigned long long)atomic_load(&ring->lost), produced);
	CHECK(atomic_load(&ring->lost) > 1000, "the ring was full often enough to test anything");
}

static void drop_flat(void)
{
	drop_balance(1, 4000);
}

static void drop_nested(void)
{
	drop_balance(30, 4000);
	drop_balance(100, 10000);
	drop_balance(1000, 20000);
}

/*
 * More tasks to end than the room for ends holds: when some come through later, they must end the
 * right ones.
 */
static void drop_deep(void)
{
	static struct nest seen;
	const struct xs_event *event;
	unsigned depth = 0;
	uint64_t pos = 0;

	setup(XS_FULL_DROP, SIZE);
	for (; depth < 400; depth++)
		CHECK(put(depth, 16, XS_BEGIN, XS_ROLE_BEGIN), "begin %u", depth);
	while (put(0, 16, XS_CALL, XS_ROLE_OTHER))
		;
	while (depth > 150)
		(void)put(--depth, 16, XS_END, XS_ROLE_END);
	while ((event = get(&pos, xs_ring_filled(ring))))
		(void)follow(&seen, event);
	CHECK(seen.depth > 150, "ends were lost");
	xs_ring_release(ring, producer.mask + 1, pos);
	while (depth)
		CHECK(put(--depth, 16, XS_END, XS_ROLE_END), "room again");
	while ((event = get(&pos, xs_ring_filled(ring))) && tap_failures < 5)
		(void)follow(&seen, event);
	CHECK(!seen.depth, "%u", seen.depth);
}

/*
 * A thread's name and id that found no room are said before anything else of it is, and ends that
 * were lost before begins that were.
 */
static void drop_thread(void)
{
	static const uint8_t kinds[] = { XS_LOST_ENDS, XS_THREAD, XS_LOST_BEGINS, XS_BEGIN };
	const struct xs_event *event;
	uint32_t n = 0;
	uint64_t pos;

	setup(XS_FULL_DROP, SIZE);
	while (put(0, 16, XS_CALL, XS_ROLE_OTHER))
		;
	while (put(0, 16, XS_END, XS_ROLE_END)) /* the room for ends, too */
		;
	producer.thread =
		(struct xs_thread_record){ .event = { .name = 5, .kind = XS_THREAD, .words = 4 },
					   .tid = 99 };
	CHECK(!xs_ring_reserve(&producer, bell, sizeof(producer.thread), XS_ROLE_THREAD),
	      "no room");
	CHECK(!put(1, 16, XS_BEGIN, XS_ROLE_BEGIN) && !put(2, 16, XS_BEGIN, XS_ROLE_BEGIN),
	      "no room");
	CHECK(atomic_load(&ring->lost) == 4, "%llu lost",
	      (unsigned long long)atomic_load(&ring->lost));
	pos = xs_ring_filled(ring);
	xs_ring_release(ring, producer.mask + 1, pos);
	CHECK(put(3, 16, XS_BEGIN, XS_ROLE_BEGIN), "room");
	for (uint32_t bytes; pos != xs_ring_filled(ring); pos += bytes) {
		event = xs_ring_peek(producer.data, SIZE, pos, xs_ring_filled(ring), &bytes);
		if (!CHECK(event, "at %llu", (unsigned long long)pos))
			break;
		if (event->kind == XS_PAD)
			continue;
		CHECK(event->kind == kinds[n % 4], "record %u is a %u", n, event->kind);
		CHECK(event->kind != XS_LOST_BEGINS || event->name == 2, "%u begins are lost",
		      event->name);
		n++;
	}
	CHECK(n == 4, "%u records", n);
}

/* The records that are there: their kinds and numbers. */
static void expect(uint64_t *pos, const uint32_t (*records)[2], unsigned count)
{
	const struct xs_event *event;

	for (unsigned i = 0; i < count; i++) {
		event = get(pos, xs_ring_filled(ring));
		if (!CHECK(event, "record %u is missing", i))
			return;
		CHECK(event->kind == records[i][0] && event->name == records[i][1],
		      "record %u is a %u of %u", i, event->kind, event->name);
	}
	CHECK(!get(pos, xs_ring_filled(ring)), "and no more");
}

/* A lost begin takes along its end and what is said of it, and nothing more. */
static void drop_subtree(void)
{
	static const uint32_t records[][2] = { { XS_LOST_ENDS, 0 },   { XS_CALL, 3 },
					       { XS_LOST_BEGINS, 1 }, { XS_BEGIN, 2 },
					       { XS_ARGS, 2 },	      { XS_END, 2 },
					       { XS_END, 1 },	      { XS_BEGIN, 4 },
					       { XS_END, 4 },	      { XS_END, 1000000 } };
	uint32_t n = 0;
	uint64_t pos;

	setup(XS_FULL_DROP, SIZE);
	CHECK(put(1000000, 16, XS_BEGIN, XS_ROLE_BEGIN), "outer");
	while (put(n, 16, XS_CALL, XS_ROLE_OTHER))
		n++;
	CHECK(atomic_load(&ring->lost) == 1, "one call");
	CHECK(!put(5, 16, XS_BEGIN, XS_ROLE_BEGIN) && !put(5, 16, XS_END, XS_ROLE_END), "no room");
	CHECK(!put(1, 16, XS_BEGIN, XS_ROLE_BEGIN), "no room");
	CHECK(!put(6, 16, XS_BEGIN, XS_ROLE_BEGIN), "no room inside of it");
	pos = atomic_load(&ring->head);
	atomic_store(&ring->tail, pos); /* there is room again */
	CHECK(!put(6, 16, XS_ARGS, XS_ROLE_WITHIN), "of a lost task");
	CHECK(!put(6, 16, XS_END, XS_ROLE_END), "its end");
	CHECK(put(3, 16, XS_CALL, XS_ROLE_OTHER), "a call inside a lost task is no task");
	CHECK(!put(1, 16, XS_ARGS, XS_ROLE_WITHIN), "of the one around it");
	CHECK(put(2, 16, XS_BEGIN, XS_ROLE_BEGIN), "a task inside a lost one");
	CHECK(put(2, 16, XS_ARGS, XS_ROLE_WITHIN) && put(2, 16, XS_END, XS_ROLE_END),
	      "what is its");
	CHECK(put(1, 16, XS_END, XS_ROLE_END), "the end of the lost one, which the reader knows");
	CHECK(put(4, 16, XS_BEGIN, XS_ROLE_BEGIN) && put(4, 16, XS_END, XS_ROLE_END),
	      "behind the lost task");
	CHECK(put(1000000, 16, XS_END, XS_ROLE_END), "outer's end");
	CHECK(atomic_load(&ring->lost) == 8, "%llu", (unsigned long long)atomic_load(&ring->lost));
	expect(&pos, records, sizeof(records) / sizeof(records[0]));
}

/* Begins that are lost, and never end, cost themselves and nothing else. */
static void drop_left(void)
{
	static const uint32_t first[][2] = { { XS_LOST_ENDS, 0 },
					     { XS_LOST_BEGINS, 2 },
					     { XS_BEGIN, 3 } },
			      second[][2] = { { XS_LOST_ENDS, 5 },
					      { XS_LOST_BEGINS, 1 },
					      { XS_BEGIN, 5 } };
	uint32_t lost;
	uint64_t pos;

	setup(XS_FULL_DROP, SIZE);
	while (put(0, 16, XS_CALL, XS_ROLE_OTHER))
		;
	CHECK(!put(1, 16, XS_BEGIN, XS_ROLE_BEGIN) && !put(2, 16, XS_BEGIN, XS_ROLE_BEGIN),
	      "no room");
	pos = atomic_load(&ring->head);
	xs_ring_release(ring, SIZE, pos);
	CHECK(put(3, 16, XS_BEGIN, XS_ROLE_BEGIN) && producer.limit, "and goes on as ever");
	expect(&pos, first, 3);
	for (uint32_t n = 0; n < 1000; n++) {
		xs_ring_release(ring, SIZE, xs_ring_filled(ring));
		CHECK(put(n, 16, XS_BEGIN, XS_ROLE_BEGIN) && put(n, 16, XS_END, XS_ROLE_END),
		      "task %u", n);
	}
	CHECK(atomic_load(&ring->lost) == 3, "%llu", (unsigned long long)atomic_load(&ring->lost));
	/* lost ends come before the begins that were lost behind them */
	while (put(3, 16, XS_END, XS_ROLE_END))
		;
	for (int i = 0; i < 4; i++)
		CHECK(!put(3, 16, XS_END, XS_ROLE_END), "no room");
	CHECK(!put(4, 16, XS_BEGIN, XS_ROLE_BEGIN), "no room");
	lost = (uint32_t)atomic_load(&ring->lost);
	pos = atomic_load(&ring->head);
	xs_ring_release(ring, SIZE, pos);
	CHECK(put(5, 16, XS_BEGIN, XS_ROLE_BEGIN), "room again");
	expect(&pos, second, 3);
	CHECK(atomic_load(&ring->lost) == lost && lost == 9, "%u", lost);
}

/* What was begun can be ended, however full the ring. */
static void drop_room_for_ends(void)
{
	unsigned depth = 0;

	setup(XS_FULL_DROP, SIZE);
	for (; depth < 100; depth++)
		CHECK(put(depth, 16, XS_BEGIN, XS_ROLE_BEGIN), "begin %u", depth);
	while (put(0, 16, XS_CALL, XS_ROLE_OTHER))
		;
	while (depth--)
		CHECK(put(depth, 16, XS_END, XS_ROLE_END), "end %u", depth);
}

/* ---- policy overwrite ---- */

static void overwrite(void)
{
	for (uint32_t total = 1; total < 60000; total = total * 3 + 7) {
		const struct xs_event *event;
		uint64_t pos, head;
		uint32_t n = 0, first, expected = 0, threads = 0, thread = 0;

		setup(XS_FULL_OVERWRITE, SIZE);
		for (; n < total; n++) {
			if (n % 1000 == 0) {
				struct xs_thread_record *record = xs_ring_reserve(&producer, bell,
										  sizeof(*record),
										  XS_ROLE_OTHER);

				record->event = (struct xs_event){
					.tick = n, .name = 7, .kind = XS_THREAD, .words = 4
				};
				record->tid = ++threads;
				record->lost = 0;
				xs_ring_commit(&producer, sizeof(*record));
			}
			CHECK(put(n, 16 * (1 + n % 5), XS_CALL, XS_ROLE_OTHER), "never full");
		}
		head = xs_ring_filled(ring);
		pos = atomic_load(&ring->tail_lost);
		CHECK(head - pos <= SIZE && (!pos || head - pos > SIZE - 2 * STEP),
		      "%llu bytes are intact", (unsigned long long)(head - pos));
		thread = atomic_load(&ring->tail_tid);
		first = (uint32_t)atomic_load(&ring->overwritten);
		expected = first;
		for (uint32_t i = 0, before = 0; i < XS_GIVEN_UP; i++, before += 1000) {
			uint32_t of = first > before ? first - before : 0;

			CHECK(atomic_load(&ring->given_up[i].lost) == (of < 1000 ? of : 1000),
			      "of thread %u", i + 1);
		}
		while (pos != head) {
			uint32_t bytes = 0;

			event = xs_ring_peek(producer.data, SIZE, pos, head, &bytes);
			if (!CHECK(event, "at %llu", (unsigned long long)pos))
				break;
			pos += bytes;
			if (event->kind == XS_THREAD)
				thread = (uint32_t)((const struct xs_thread_record *)event)->tid;
			if (event->kind != XS_CALL)
				continue;
			CHECK(event->name == expected, "record %u, not %u", event->name, expected);
			CHECK(thread == event->name / 1000 + 1, "record %u of thread %u",
			      event->name, thread);
			expected = event->name + 1;
			if (tap_failures)
				return;
		}
		CHECK(expected == total, "up to %u of %u", expected, total);
	}
}

/* ---- memory that is not there ---- */

/* Half of the steps are there; the last of these ends `less` bytes too early. */
static void no_memory_behind(uint64_t less)
{
	for (int policy = 0; policy < 3; policy++) {
		int fd = memfd_create("ring", MFD_CLOEXEC);
		uint64_t there = SIZE / 2 - less, half = XS_RING_HEADER + there, pos = 0;
		uint32_t n = 0, got = 0;

		setup((enum xs_on_full)policy, SIZE); /* for the doorbell */
		consumer_is(4000000, 0);
		CHECK(fd >= 0 && !ftruncate(fd, (off_t)half), "memfd");
		ring = mmap(NULL, XS_RING_HEADER + SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		xs_ring_init(&producer, ring, (unsigned char *)ring + XS_RING_HEADER, SIZE,
			     (enum xs_on_full)policy);
		/* a store behind the file's end would be a SIGBUS */
		while (put(n, 64, XS_CALL, XS_ROLE_OTHER) && n < SIZE)
			n++;
		CHECK(n >= there / 64 - 32 && n <= there / 64, "%u records", n);
		while (get(&pos, xs_ring_filled(ring)))
			got++;
		CHECK(got == n, "%u of %u", got, n);
		CHECK(atomic_load(&ring->lost) == 1, "counted");
		close(fd);
	}
}

static void no_memory(void)
{
	no_memory_behind(0);
	no_memory_behind(4096); /* within a step */
}

/* ---- a producer that is killed ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPPING false
#else
#define STEPPING true
#endif

/* Writes until killed; tells in shared memory how many records it has finished. */
static void produce(volatile uint32_t *done)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	for (uint32_t n = 0;; n++) {
		if (put(n, 16 * (1 + n % 9), XS_CALL, XS_ROLE_OTHER))
			*done = n + 1;
		else
			_exit(1);
	}
}

static void killed_producer(void)
{
	static const int policies[] = { XS_FULL_DROP, XS_FULL_OVERWRITE };
	volatile uint32_t *done =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (unsigned i = 0; i < 120; i++) {
		uint64_t pos, head;
		uint32_t next = 0;
		int status;
		pid_t pid;

		setup((enum xs_on_full)policies[i % 2], SIZE);
		*done = 0;
		/* near the end of a step, of the ring, or behind it */
		producer.head = i % 3 * SIZE / 2 + STEP - 256 - 16 * (tap_random(&seed) % 8);
		atomic_store(&ring->head, producer.head);
		atomic_store(&ring->tail, atomic_load(&ring->head));
		atomic_store(&ring->tail_lost, atomic_load(&ring->head));
		pos = atomic_load(&ring->head);
		pid = fork();
		if (!pid)
			produce(done);
		(void)waitpid(pid, &status, 0);
		for (unsigned steps = 1 + tap_random(&seed) % 1500; steps && WIFSTOPPED(status);
		     steps--)
			if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0 ||
			    waitpid(pid, &status, 0) != pid)
				break;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		head = xs_ring_filled(ring);
		for (const struct xs_event *event; (event = get(&pos, head)); next++)
			CHECK(event->name == next, "record %u, not %u", event->name, next);
		CHECK(next == *done || next == *done + 1, "%u records, %u were finished", next,
		      *done);
		munmap((char *)ring - PAGE_ROUND(sizeof(*bell)),
		       PAGE_ROUND(sizeof(*bell)) + XS_RING_HEADER + SIZE);
	}
}

static void doorbell(void)
{
	uint64_t before = xs_clock_ns(CLOCK_MONOTONIC);
	uint32_t seen;

	setup(XS_FULL_BLOCK, SIZE);
	seen = atomic_load(&bell->rung);
	xs_doorbell_ring(bell);
	CHECK(atomic_load(&bell->rung) == seen, "nobody sleeps: nothing is done");
	atomic_store(&bell->sleeping, 1);
	xs_doorbell_ring(bell);
	CHECK(atomic_load(&bell->rung) == seen + 1, "rung");
	xs_doorbell_wait(bell, seen, 5000000000u);
	CHECK(xs_clock_ns(CLOCK_MONOTONIC) - before < 4000000000u, "rung before the wait: no wait");
	before = xs_clock_ns(CLOCK_MONOTONIC);
	xs_doorbell_wait(bell, seen + 1, 20000000);
	CHECK(xs_clock_ns(CLOCK_MONOTONIC) - before >= 10000000u, "times out");
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("peek believes nothing", peek_believes_nothing);
	tap_run("wrapping", wrapping);
	tap_run("wrapping at 4 GiB", wrapping_at_4g);
	tap_run("largest records", largest_records);
	tap_run("errno is kept", errno_is_kept);
	tap_run("block: a dead consumer", dead_consumer);
	tap_run("block: a dead consumer that is overwritten", dead_consumer_that_is_overwritten);
	tap_run("block: a consumer whose pid is another's", reused_consumer);
	tap_run("block: a consumer that looks elsewhere", consumer_that_looks_elsewhere);
	tap_run("block: a slow consumer", slow_consumer);
	tap_run("block: a producer sleeps", producer_sleeps);
	tap_run("block: a producer is woken", release_wakes);
	tap_run("a consumer is woken", doorbell_wakes);
	tap_run("drop: a lost task's subtree", drop_subtree);
	tap_run("drop: begins that are lost and never end", drop_left);
	tap_run("drop: room for ends", drop_room_for_ends);
	tap_run("drop: balanced", drop_flat);
	tap_run("drop: balanced, nested", drop_nested);
	tap_run("drop: balanced, deeper than the room for ends", drop_deep);
	tap_run("drop: a thread's record", drop_thread);
	tap_run("overwrite: the newest stay", overwrite);
	tap_run("no memory behind the ring", no_memory);
	tap_run("doorbell", doorbell);
	if (STEPPING)
		tap_run("a producer killed at any instruction", killed_producer);
	else
		tap_skip("a producer killed at any instruction", "not under a sanitizer");
	return tap_done();
}
