/*
 * The API's loader and its driver.
 */
#include "toy_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

struct _toy_queue {
	uint32_t device;
};

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static toy_result create(uint32_t device, toy_queue *queue)
{
	*queue = malloc(sizeof(**queue));
	(*queue)->device = device;
	return TOY_OK;
}

static toy_result launch(toy_queue queue, const char *kernel, uint64_t *start, uint64_t *end)
{
	(void)kernel;
	if (!queue)
		return TOY_BAD_QUEUE;
	*start = now();
	while (now() < *start + 20000)
		;
	*end = now();
	return TOY_OK;
}

static toy_result destroy(toy_queue queue)
{
	free(queue);
	return TOY_OK;
}

static struct toy_functions functions = { create, launch, destroy };

__attribute__((constructor)) static void load(void)
{
	const char *name = getenv("TOY_INJECTION");
	void *library = name ? dlopen(name, RTLD_NOW) : NULL;
	toy_injection inject = library ? (toy_injection)dlsym(library, "toyInject") : NULL;

	if (inject)
		inject(&functions);
}

toy_result toyQueueCreate(uint32_t device, toy_queue *queue)
{
	return functions.toyQueueCreate(device, queue);
}

toy_result toyLaunch(toy_queue queue, const char *kernel, uint64_t *start, uint64_t *end)
{
	return functions.toyLaunch(queue, kernel, start, end);
}

toy_result toyQueueDestroy(toy_queue queue)
{
	return functions.toyQueueDestroy(queue);
}
