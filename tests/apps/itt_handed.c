/*
 * Threads that hand a span to each other: each ends the one before it and begins the next, always
 * with the same id, as an id is an object's address. Each says its number.
 *
 *	itt_handed KIND N	KIND: overlapped, region or frame
 */
#include <sched.h>
#include <stdatomic.h>

#include "itt_app.h"

#define THREADS 4

static __itt_domain *domain;
static __itt_string_handle *name, *key;
static __itt_id id;
static atomic_int turn;
static int count;
static char kind;

static void end(void)
{
	if (kind == 'o')
		__itt_task_end_overlapped(domain, id);
	else if (kind == 'r')
		__itt_region_end(domain, id);
	else
		__itt_frame_end_v3(domain, &id);
}

static void begin(int number)
{
	if (kind == 'o')
		__itt_task_begin_overlapped(domain, id, __itt_null, name);
	else if (kind == 'r')
		__itt_region_begin(domain, id, __itt_null, name);
	else
		__itt_frame_begin_v3(domain, &id);
	__itt_metadata_add(domain, id, key, __itt_metadata_s32, 1, &number);
}

static void *work(void *arg)
{
	int own = *(int *)arg, now;

	while ((now = atomic_load(&turn)) <= count) {
		if (now % THREADS != own) {
			sched_yield();
			continue;
		}
		if (now)
			end();
		if (now < count)
			begin(now);
		atomic_store(&turn, now + 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int numbers[THREADS];

	if (argc != 3)
		return 2;
	kind = argv[1][0];
	count = atoi(argv[2]);
	domain = __itt_domain_create("handed");
	name = __itt_string_handle_create("span");
	key = __itt_string_handle_create("number");
	id = __itt_id_make(&turn, 0);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		threads[i] = start_thread(work, &numbers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
