/*
 * Threads that all append to one list at once, which the API forbids and some drivers bear:
 *	ze_race THREADS ROUNDS [regular]
 * to an immediate list, or to a regular one, which is then executed twice. Says how many fills were
 * executed.
 */
#include "ze_app.h"

#include <pthread.h>
#include <string.h>

#define THREADS_MAX 64

static ze_command_list_handle_t list;
static void *memory;
static int rounds;
static pthread_barrier_t start;

static void *run(void *unused)
{
	const uint32_t word = 1;

	(void)pthread_barrier_wait(&start);
	for (int i = 0; i < rounds; i++)
		ZE_CHECK(zeCommandListAppendMemoryFill(list, memory, &word, sizeof(word), 64, NULL,
						       0, NULL));
	return unused;
}

static void execute(const struct ze_app *app)
{
	ze_command_queue_handle_t queue = ze_app_queue(app, 0, 0);

	ZE_CHECK(zeCommandListClose(list));
	for (int i = 0; i < 2; i++) {
		ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
		ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
	}
	ZE_CHECK(zeCommandQueueDestroy(queue));
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 1;
	bool regular = argc > 3 && !strcmp(argv[3], "regular");
	pthread_t threads[THREADS_MAX];
	struct ze_app app;

	rounds = argc > 2 ? atoi(argv[2]) : 1;
	ze_app_open(&app, 0, -1);
	memory = ze_app_host(&app, 64);
	list = regular ? ze_app_list(&app, 0, false) : ze_app_immediate(&app, 0, 0, false);
	(void)pthread_barrier_init(&start, NULL, (unsigned int)count);
	for (int i = 0; i < count; i++)
		(void)pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	if (regular)
		execute(&app);
	else
		ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	ZE_CHECK(zeCommandListDestroy(list));
	ze_app_close(&app);
	printf("fills: %d\n", count * rounds * (regular ? 2 : 1));
	return 0;
}
