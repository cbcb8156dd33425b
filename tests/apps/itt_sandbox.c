/*
 * A program that puts itself into a sandbox while it traces, and is killed by any system call that it does not make itself.
 *
 *	itt_sandbox strict		seccomp's strict mode
 *	itt_sandbox filter|seccomp	a filter that lets through write, exit and exit_group, by prctl() or by syscall(SYS_seccomp)
 *	itt_sandbox refused		a filter that the kernel refuses: nothing changes
 *
 * Tasks "before" (10) come before, "within" (50,000) after it; a second thread, which had traced before, makes 1,000 "beside" after it,
 * a third one, which had not, makes its first event there.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "itt_app.h"

static __itt_domain *domain;
static atomic_int ready, sealed, done;

static int filter(bool refused, bool by_syscall)
{
	struct sock_filter allow[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = refused ? 0 : ARRAY_SIZE(allow), .filter = allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	/* all threads where that can be asked for */
	return by_syscall ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)
			  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *beside(void *had_traced)
{
	__itt_string_handle *name = __itt_string_handle_create("beside");

	if (had_traced)
		finished_task(domain, __itt_string_handle_create("before"));
	ready++;
	while (!sealed)
		;
	for (int i = 0; i < 1000; i++)
		finished_task(domain, name);
	done++;
	for (;;)
		; /* its end would need system calls of the C library's */
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	__itt_string_handle *before, *within;
	bool strict = !strcmp(how, "strict"), refused = !strcmp(how, "refused");
	int result;

	domain = __itt_domain_create("sandbox");
	before = __itt_string_handle_create("before");
	within = __itt_string_handle_create("within");
	for (int i = 0; i < 10; i++)
		finished_task(domain, before);
	if (!strict) {
		start_thread(beside, domain);
		start_thread(beside, NULL);
		while (ready < 2)
			;
	}
	result = strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : filter(refused, !strcmp(how, "seccomp"));
	sealed = 1;
	for (int i = 0; i < 50000; i++)
		finished_task(domain, within);
	if (!strict)
		finished_task(domain, __itt_string_handle_create("a name that is new"));
	while (!strict && done < 2)
		;
	result = result ? (int)write(1, "refused\n", 8) : (int)write(1, "sealed\n", 7);
	syscall(strict ? SYS_exit : SYS_exit_group, 0); /* exit() does more than that */
	return 0;
}
