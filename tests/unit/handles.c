/*
 * Maps of handles: they grow, and handles that exist are found while other threads add and remove
 * theirs.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "collector.h"
#include "handles.h"
#include "tap.h"

enum { THREADS = 4, HANDLES = 20000 };

static struct xs_handles map = { .size = 64 };

/* Zeroed, from the kernel, as in the collector; nothing is given back there either. */
void *xs_arena(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void *key(size_t thread, size_t i)
{
	return (void *)(0x7f0000000000 + thread * 0x10000000 + (i + 1) * 64);
}

static void grows(void)
{
	for (size_t i = 0; i < 100000; i++) {
		_Atomic uint64_t *value = xs_handle_add(&map, key(0, i));

		if (!CHECK(value, "%zu", i))
			return;
		*value = i + 1;
	}
	for (size_t i = 0; i < 100000; i++)
		CHECK(xs_handle_get(&map, key(0, i)) == (void *)(i + 1), "%zu", i);
	CHECK(!xs_handle_find(&map, key(1, 0)) && !xs_handle_find(&map, NULL), "unknown handles");
	for (size_t i = 0; i < 100000; i += 2)
		xs_handle_remove(&map, key(0, i));
	for (size_t i = 0; i < 100000; i++)
		CHECK(xs_handle_get(&map, key(0, i)) == (i % 2 ? (void *)(i + 1) : NULL), "%zu", i);
}

/* A handle that comes and goes takes no room. */
static void used_again(void)
{
	_Atomic uint64_t *first = xs_handle_add(&map, key(0, 0));

	for (int i = 0; i < 100000; i++) {
		*xs_handle_add(&map, key(0, 1)) = 1;
		xs_handle_remove(&map, key(0, 1));
		CHECK(*xs_handle_add(&map, key(0, 1)) == 0, "a new handle's value");
		xs_handle_remove(&map, key(0, 1));
	}
	CHECK(xs_handle_find(&map, key(0, 0)) == first && map.newest->mask == 63,
	      "the first table");
}

static void *worker(void *argument)
{
	size_t thread = (size_t)argument;

	for (size_t i = 0; i < HANDLES; i++) {
		*xs_handle_add(&map, key(thread, i)) = i + 1;
		if (i % 3 == 0)
			xs_handle_remove(&map, key(thread, i));
		CHECK(xs_handle_get(&map, key(thread, i / 2)) ==
			      (i / 2 % 3 ? (void *)(i / 2 + 1) : NULL),
		      "%zu %zu", thread, i);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_create(&thread[i], NULL, worker, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("grows", grows);
	tap_run("used again", used_again);
	tap_run("from four threads", threads);
	return tap_done();
}
