/*
 * A handler that comes every 100 us and leaves by a jump, out of whatever call it has interrupted:
 *	ze_jumps JUMPS
 * while fills are appended to an immediate list. With SOFTGPU_SYNC=1 the driver bears that.
 */
#include "ze_app.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf again;
static volatile sig_atomic_t jumps;

static void leave(int number)
{
	jumps++;
	siglongjmp(again, number);
}

int main(int argc, char **argv)
{
	static const struct itimerval often = { { 0, 100 }, { 0, 100 } }, never;
	const uint32_t word = 1;
	int most = argc > 1 ? atoi(argv[1]) : 1000;
	ze_command_list_handle_t list;
	struct ze_app app;
	void *memory;

	ze_app_open(&app, 0, -1);
	memory = ze_app_host(&app, 64);
	list = ze_app_immediate(&app, 0, 0, false);
	(void)signal(SIGALRM, leave);
	(void)sigsetjmp(again, 1);
	if (jumps == 0)
		(void)setitimer(ITIMER_REAL, &often, NULL);
	while (jumps < most)
		(void)zeCommandListAppendMemoryFill(list, memory, &word, sizeof(word), 64, NULL, 0,
						    NULL);
	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)signal(SIGALRM, SIG_IGN);
	printf("jumped\n");
	return 0;
}
