/*
 * Was a signal for us alone, or for our whole process group, where the application has got it
 * itself? The kernel does not say, and the sender may be gone. So there is a witness: a child in
 * our group that does nothing and blocks all signals. What is for the group is pending there; and
 * no name or argument of it is one by which somebody looks for us or for the application.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher.h"

#define NAME "group-witness"

static int witness;	/* 0: there is none */
static uint64_t owed;	/* what a former one has seen, and we have not taken yet */
static uint64_t unsure; /* what may have come before there was one */
static char *arguments;
static size_t arguments_size;

static _Noreturn void be_witness(int launcher)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(0);
	(void)prctl(PR_SET_NAME, NAME);
	memset(arguments, 0, arguments_size);
	/* nobody waits for the end of a file because of us */
	(void)syscall(SYS_close_range, 0u, ~0u, 0u);
	for (;;)
		(void)pause();
}

static void call_witness(void)
{
	int self = getpid(), pid = fork();

	if (pid == 0)
		be_witness(self);
	witness = pid > 0 ? pid : 0;
	(void)syscall(SYS_rt_sigpending, &unsure, sizeof(unsure));
}

void xs_group_watch(char **argv)
{
	arguments = argv[0];
	do /* as the kernel has put them */
		arguments_size = (size_t)(*argv - arguments) + strlen(*argv);
	while (argv[1] == arguments + arguments_size + 1 && *++argv);
	call_witness();
}

void xs_group_end(void)
{
	if (witness)
		(void)kill(witness, SIGKILL);
}

void xs_group_ended(void)
{
	if (witness)
		(void)waitpid(witness, NULL, 0);
	witness = 0;
}

void xs_group_reaped(int pid)
{
	if (pid == witness)
		witness = 0;
}

enum xs_meant xs_group_meant(int number)
{
	uint64_t one = UINT64_C(1) << (number - 1), own = 0, seen = 0;
	bool knows = witness && xs_pending_in(witness, witness, "ShdPnd", &seen);
	enum xs_meant meant = (seen | owed) & one	 ? XS_MEANT_GROUP
			      : knows && !(unsure & one) ? XS_MEANT_US
							 : XS_MEANT_UNKNOWN;

	owed &= ~one;
	unsure &= ~one;
	if (!seen)
		return meant;
	/* no signal can be taken from another: that one has seen enough */
	(void)syscall(SYS_rt_sigpending, &own, sizeof(own));
	owed |= seen & own & ~one;
	xs_group_end();
	xs_group_ended();
	call_witness();
	return meant;
}
