/*
 * Leaves what puts work on a device, and waits for it, by a jump at every 23rd of the instructions
 * that libxstrace.so runs in it (the driver's own are not left), and goes on.
 *	ze_left_at WHO FIRST
 * WHO goes on: same; thread (another one; who has left ends); within (nobody leaves: the handler
 * works with a list of its own, while another thread looks at the interrupted one's). FIRST: which
 * of the 23 is the first. Ends by _exit(), so that what nobody has found complete by then is
 * missing.
 */
#include "ze_app.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define TRAP_FLAG     0x100
#define FLAGS(change) "sub $128, %%rsp\n\tpushfq\n\t" change ", (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
#define ON()	      __asm__ volatile(FLAGS("orq $0x100")::: "memory", "cc")
#define OFF()	      __asm__ volatile(FLAGS("andq $~0x100")::: "memory", "cc")
#else
#define ON()  (void)0
#define OFF() (void)0
#endif

enum { APART = 23, AFTER = 20 };

static const ze_group_count_t one = { 1, 1, 1 };
static struct ze_app app;
static ze_command_list_handle_t list, own_list;
static ze_kernel_handle_t kernel;
static ze_event_handle_t event, own_event;
static sigjmp_buf away;
static volatile long steps, leave_at;
static volatile bool whole, within;
static _Atomic int turn;       /* odd: the other thread looks */
static unsigned long from, to; /* where libxstrace.so lies */

static void work(ze_command_list_handle_t where, ze_event_handle_t tells)
{
	ZE_CHECK(zeCommandListAppendLaunchKernel(where, kernel, &one, NULL, 0, NULL));
	ZE_CHECK(zeCommandListAppendBarrier(where, tells, 0, NULL));
	ZE_CHECK(zeEventHostSynchronize(tells, UINT64_MAX));
	ZE_CHECK(zeEventHostReset(tells));
}

static void *look(void *unused)
{
	(void)unused;
	for (int seen = 0;; seen += 2) {
		while (atomic_load(&turn) == seen)
			(void)usleep(20);
		(void)zeEventQueryStatus(event);
		atomic_store(&turn, seen + 2);
	}
	return NULL;
}

/* The other thread may wait for what this one is in. */
static void interrupt(void)
{
	int mine = atomic_load(&turn) + 1;

	work(own_list, own_event);
	atomic_store(&turn, mine);
	for (int i = 0; i < 200 && atomic_load(&turn) == mine; i++)
		(void)usleep(50);
}

static void step(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
#if defined(__x86_64__)
	ucontext_t *at = context;
	unsigned long place = (unsigned long)at->uc_mcontext.gregs[REG_RIP];

	if (place < from || place >= to || ++steps != leave_at)
		return;
	at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (!within)
		siglongjmp(away, 1);
	interrupt();
#else
	(void)context;
#endif
}

static void *leave(void *unused)
{
	(void)unused;
	steps = 0;
	if (sigsetjmp(away, 1))
		return NULL;
	ON();
	work(list, event);
	OFF();
	whole = steps < leave_at;
	while (atomic_load(&turn) & 1)
		(void)usleep(20);
	return NULL;
}

static void find_library(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long low, high;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/libxstrace.so") || sscanf(line, "%lx-%lx", &low, &high) != 2)
			continue;
		if (!from)
			from = low;
		to = high;
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	bool thread_leaves = argc > 2 && !strcmp(argv[1], "thread");
	long left = 0, after = 2;
	ze_event_pool_handle_t pool;
	pthread_t thread;

	find_library();
	ze_app_open(&app, 0, -1);
	pool = ze_app_pool(&app, 2, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, false);
	event = ze_app_event(pool, 0);
	own_event = ze_app_event(pool, 1);
	kernel = ze_app_kernel(&app, "empty");
	list = ze_app_immediate(&app, 0, 0, false);
	own_list = ze_app_immediate(&app, 0, 1, false);
	work(list, event);
	work(list, event);
	within = argc > 2 && !strcmp(argv[1], "within");
	if (within && pthread_create(&thread, NULL, look, NULL))
		return 1;
	(void)sigaction(SIGTRAP, &action, NULL);
	for (leave_at = 1 + (argc > 2 ? atoi(argv[2]) : 0); !whole; leave_at += APART, left++) {
		if (!thread_leaves)
			(void)leave(NULL);
		else if (pthread_create(&thread, NULL, leave, NULL) || pthread_join(thread, NULL))
			return 1;
		ZE_CHECK(zeEventHostReset(event));
		for (int i = 0; i < AFTER; i++, after++)
			work(list, event);
	}
	printf("left %ld after %ld\n", left - 1, after);
	(void)fflush(stdout);
	_exit(3);
}
