/*
 * Pools of objects: what one thread gives back another one takes, also from a thread that ended; no
 * object has two owners.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "collector.h"
#include "pool.h"
#include "tap.h"

struct object {
	struct xs_pool_item item;
	_Atomic int taken;
	char rest[100];
};

enum { THREADS = 3, BATCH = 100, ROUNDS = 2000 };

static struct xs_pool pool = { .size = 128 };

void *xs_arena(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* the collector's is aligned to that */
	return memory == MAP_FAILED ? NULL : (char *)memory + 16;
}

static struct object *take(struct xs_pool_item **spare)
{
	struct object *object = xs_pool_get(&pool, spare);

	if (CHECK(object, "no object") && CHECK((uintptr_t)object % 64 == 0, "%p", (void *)object))
		CHECK(!atomic_exchange(&object->taken, 1), "somebody has it");
	return object;
}

static void put(struct object *object)
{
	CHECK(atomic_exchange(&object->taken, 0), "nobody has it");
	xs_pool_put(&pool, object);
}

static void used_again(void)
{
	struct xs_pool_item *spare[2] = { NULL, NULL };
	struct object *objects[BATCH];

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < BATCH; i++)
			objects[i] = take(&spare[round % 2]);
		for (int i = 0; i < BATCH; i++)
			put(objects[i]);
	}
	CHECK(pool.count == BATCH, "%u objects", pool.count);
	/* a thread that takes one has all */
	put(take(&spare[0]));
	put(take(&spare[1]));
	CHECK(pool.count == BATCH, "%u objects", pool.count);
	xs_pool_put_spare(&pool, &spare[0]);
	CHECK(!spare[0], "given back");
	xs_pool_put_spare(&pool, &spare[0]);
	for (int i = 0; i < BATCH; i++)
		objects[i] = take(&spare[1]);
	CHECK(pool.count == BATCH, "%u objects", pool.count);
	for (uint32_t i = 0; i < BATCH; i++)
		CHECK(((struct object *)xs_pool_at(&pool, i))->taken, "%u", i);
	CHECK(!xs_pool_at(&pool, XS_POOL_CHUNK * XS_POOL_CHUNKS), "no such object");
}

/*
 * A thread ends that has spare ones, while others have given some back: all of them are there for
 * the next thread.
 */
static void none_is_lost(void)
{
	struct xs_pool_item *spare[2] = { NULL, NULL };
	struct object *objects[BATCH];

	for (int i = 0; i < BATCH; i++)
		objects[i] = take(&spare[0]);
	for (int i = 0; i < BATCH; i++)
		put(objects[i]);
	for (int i = 0; i < BATCH / 2; i++)
		objects[i] = take(&spare[0]);
	for (int i = 0; i < BATCH / 2; i++)
		put(objects[i]);
	xs_pool_put_spare(&pool, &spare[0]);
	for (int i = 0; i < BATCH; i++)
		objects[i] = take(&spare[1]);
	CHECK(pool.count == BATCH, "%u objects", pool.count);
}

/* Takes objects and passes them to the next thread, which gives them back. */
static _Atomic(struct object *) passed[THREADS][BATCH];

static void *worker(void *argument)
{
	size_t me = (size_t)(uintptr_t)argument, other = (me + 1) % THREADS;
	struct xs_pool_item *spare = NULL;
	struct object *object;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BATCH; i++) {
			object = atomic_exchange(&passed[other][i], take(&spare));
			if (object)
				put(object);
		}
		for (int i = 0; i < BATCH; i++) {
			object = atomic_exchange(&passed[me][i], NULL);
			if (object)
				put(object);
		}
		if (round % 100 == 0)
			xs_pool_put_spare(&pool, &spare);
	}
	xs_pool_put_spare(&pool, &spare);
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	uint32_t taken = 0;

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&all[i], NULL, worker, (void *)i), "pthread_create");
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(all[i], NULL);
	for (int i = 0; i < THREADS * BATCH; i++)
		if (passed[i / BATCH][i % BATCH])
			put(passed[i / BATCH][i % BATCH]);
	for (uint32_t i = 0; i < pool.count; i++)
		taken += ((struct object *)xs_pool_at(&pool, i))->taken != 0;
	CHECK(!taken, "%u of %u", taken, pool.count);
	/* each thread may sit on as many as are in flight at once */
	CHECK(pool.count <= THREADS * THREADS * 2 * BATCH, "%u objects", pool.count);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("objects are used again, also those of a thread that ended", used_again);
	tap_run("none is lost when a thread ends", none_is_lost);
	tap_run("threads that give back what others took", threads);
	return tap_done();
}
