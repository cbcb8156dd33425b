/*
 * A thread that is cancelled already appends fills to an immediate list, which is no cancellation
 * point, and ends behind that: with which signals blocked?
 *	ze_cancelled FILLS
 */
#include "ze_app.h"

#include <pthread.h>
#include <signal.h>

static ze_command_list_handle_t list;
static void *memory;
static int fills, appended;
static sigset_t blocked;

static void see_signals(void *unused)
{
	(void)unused;
	(void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
}

static void *append(void *unused)
{
	const uint32_t word = 1;

	pthread_cleanup_push(see_signals, NULL);
	(void)pthread_cancel(pthread_self());
	for (; appended < fills; appended++)
		ZE_CHECK(zeCommandListAppendMemoryFill(list, memory, &word, sizeof(word), 64, NULL,
						       0, NULL));
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return unused;
}

int main(int argc, char **argv)
{
	struct ze_app app;
	pthread_t thread;
	void *ended;

	fills = argc > 1 ? atoi(argv[1]) : 100;
	ze_app_open(&app, 0, -1);
	memory = ze_app_host(&app, 64);
	list = ze_app_immediate(&app, 0, 0, false);
	(void)pthread_create(&thread, NULL, append, NULL);
	(void)pthread_join(thread, &ended);
	printf("%s, %d fills, SIGUSR1 %s\n",
	       ended == PTHREAD_CANCELED ? "cancelled" : "not cancelled", appended,
	       sigismember(&blocked, SIGUSR1) ? "blocked" : "open");
	return 0;
}
