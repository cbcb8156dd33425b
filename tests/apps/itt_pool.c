/*
 * Threads that begin, describe and end each other's overlapped tasks and regions:
 *	itt_pool SEED THREADS STEPS
 * Each span has a name of its own, "span <n>", and its number as the value of "begun" (said by the
 * thread that began it, of every second one) and of "seen" (by the one that ends it). Before it
 * ends it becomes the parent of a task "child <n>". Half of the ids come again and again. Says how
 * many spans there were.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "itt_app.h"

#define POOL	    24
#define THREADS_MAX 16

static struct one {
	pthread_mutex_t mutex;
	bool open, region;
	unsigned long number;
	__itt_id id;
} pool[POOL];
static __itt_domain *domain;
static __itt_string_handle *begun, *seen;
static atomic_ulong numbers;
static unsigned seed;
static int steps;

static void describe(const struct one *one, __itt_string_handle *key)
{
	unsigned long number = one->number;

	__itt_metadata_add(domain, one->id, key, __itt_metadata_u64, 1, &number);
}

static void begin(struct one *one, unsigned dice)
{
	__itt_string_handle *handle;
	char name[32];

	one->number = atomic_fetch_add(&numbers, 1);
	one->region = dice & 1;
	one->id = __itt_id_make(domain,
				dice & 2 ? 1000000 + (unsigned long)(one - pool) : one->number);
	(void)snprintf(name, sizeof(name), "span %lu", one->number);
	handle = __itt_string_handle_create(name);
	if (one->region)
		__itt_region_begin(domain, one->id, __itt_null, handle);
	else
		__itt_task_begin_overlapped(domain, one->id, __itt_null, handle);
	if (one->number % 2)
		describe(one, begun);
	one->open = true;
}

static void end(struct one *one)
{
	char name[32];

	describe(one, seen);
	(void)snprintf(name, sizeof(name), "child %lu", one->number);
	__itt_task_begin(domain, __itt_null, one->id, __itt_string_handle_create(name));
	__itt_task_end(domain);
	if (one->region)
		__itt_region_end(domain, one->id);
	else
		__itt_task_end_overlapped(domain, one->id);
	one->open = false;
}

static void *work(void *number)
{
	unsigned dice = seed * 1000 + *(unsigned *)number;

	for (int i = 0; i < steps; i++) {
		struct one *one = &pool[rand_r(&dice) % POOL];

		if (pthread_mutex_trylock(&one->mutex))
			continue;
		if (one->open)
			end(one);
		else
			begin(one, (unsigned)rand_r(&dice) >> 8);
		pthread_mutex_unlock(&one->mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 3 ? (unsigned)atoi(argv[2]) : 1, own[THREADS_MAX];
	pthread_t threads[THREADS_MAX];

	seed = argc > 3 ? (unsigned)atoi(argv[1]) : 1;
	steps = argc > 3 ? atoi(argv[3]) : 1;
	domain = __itt_domain_create("pool");
	begun = __itt_string_handle_create("begun");
	seen = __itt_string_handle_create("seen");
	for (int i = 0; i < POOL; i++)
		pthread_mutex_init(&pool[i].mutex, NULL);
	for (unsigned i = 0; i < count; i++) {
		own[i] = i;
		threads[i] = start_thread(work, &own[i]);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < POOL; i++)
		if (pool[i].open)
			end(&pool[i]);
	printf("spans: %lu\n", numbers);
	return 0;
}
