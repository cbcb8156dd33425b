/*
 * Says which signals arrive, for the test that the launcher hands on every signal, once.
 *
 *	recv_sig STATUS [COUNT]	ends with STATUS after COUNT signals (default 1)
 *
 * "ready <pid>" when signals may come, then "got <n> <name>" for each, in the order of arrival.
 * SIGTSTP, SIGTTIN, SIGTTOU and SIGSTOP keep their effect, so that stopping can be tested too.
 */
#include <signal.h>
#include "app.h"

int main(int argc, char **argv)
{
	static const int left_alone[] = { SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV,
					  SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP };
	int status = argc > 1 ? atoi(argv[1]) : 0;
	int count = argc > 2 ? atoi(argv[2]) : 1;
	sigset_t set;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigfillset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(left_alone); i++)
		sigdelset(&set, left_alone[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("ready %d\n", (int)getpid());

	for (int n = 0; n < count; n++) {
		int sig = sigwaitinfo(&set, NULL);
		const char *name = sig > 0 ? sigabbrev_np(sig) : NULL;

		if (sig < 0) { /* EINTR: stopped and continued */
			n--;
			continue;
		}
		if (name)
			printf("got %d SIG%s\n", sig, name);
		else
			printf("got %d SIGRTMIN+%d\n", sig, sig - SIGRTMIN);
	}
	return status;
}
