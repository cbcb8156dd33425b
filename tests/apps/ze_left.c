/*
 * A thread leaves in the middle of a call, and the others go on.
 *	ze_left WHAT HOW	WHAT: immediate, event, regular, clock; HOW: cancel, jump
 * The driver rests for half a second in its first call that tells times (SOFTGPU_FAULT), which no
 *call of this program's own is: who is cancelled there never comes back, and who jumps out of a
 *handler comes back without having returned. Whatever it was at is done again, and taken down.
 */
#include "ze_app.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { LAUNCHES = 100 };

static const ze_group_count_t one = { 1, 1, 1 };
static struct ze_app app;
static ze_command_list_handle_t list;
static ze_command_queue_handle_t queue;
static ze_kernel_handle_t kernel;
static ze_event_handle_t event;
static const char *what;
static sigjmp_buf back;
static volatile sig_atomic_t jumped;

static void on_signal(int number)
{
	(void)number;
	jumped = 1;
	siglongjmp(back, 1);
}

static void moment(long milliseconds)
{
	struct timespec pause = { 0, milliseconds * 1000000 };

	(void)nanosleep(&pause, NULL);
}

/* Begins to read times in its last call. */
static void work(void)
{
	if (!strcmp(what, "regular")) {
		ZE_CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
		ZE_CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX));
		return;
	}
	ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one,
						 strcmp(what, "event") ? NULL : event, 0, NULL));
	if (strcmp(what, "event"))
		ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	else
		ZE_CHECK(zeEventHostSynchronize(event, UINT64_MAX));
}

static void *leave(void *unused)
{
	(void)unused;
	if (!sigsetjmp(back, 1))
		work();
	return NULL;
}

/* All that could wait for who has left. */
static void go_on(void)
{
	ZE_CHECK(zeEventHostReset(event));
	for (int i = 0; i < LAUNCHES; i++) {
		work();
		ZE_CHECK(zeEventHostReset(event));
	}
	if (!strcmp(what, "regular"))
		ZE_CHECK(zeCommandListReset(list));
	ZE_CHECK(zeEventDestroy(event));
	ZE_CHECK(zeCommandListDestroy(list));
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	ze_event_pool_handle_t pool;
	bool jump = argc > 2 && !strcmp(argv[2], "jump");
	pthread_t thread;

	what = argv[1];
	ze_app_open(&app, 0, -1);
	queue = ze_app_queue(&app, 0, 0);
	pool = ze_app_pool(&app, 1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	event = ze_app_event(pool, 0);
	kernel = ze_app_kernel(&app, "empty");
	list = strcmp(what, "regular") ? ze_app_immediate(&app, 0, 0, false)
				       : ze_app_list(&app, 0, false);
	if (!strcmp(what, "regular")) {
		ZE_CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
		ZE_CHECK(zeCommandListClose(list));
	}
	(void)sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&thread, NULL, leave, NULL))
		return 1;
	moment(200);
	if (jump)
		(void)pthread_kill(thread, SIGUSR1);
	else
		(void)pthread_cancel(thread);
	(void)pthread_join(thread, NULL);
	go_on();
	ZE_CHECK(zeCommandQueueDestroy(queue));
	ZE_CHECK(zeEventPoolDestroy(pool));
	ZE_CHECK(zeKernelDestroy(kernel));
	ze_app_close(&app);
	printf("went on, jumped %d\n", (int)jumped);
	return 0;
}
