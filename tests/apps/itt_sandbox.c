/*
 * A program that puts itself into a sandbox while it traces, and is killed by any system call that
 *it does not make itself.
 *
 *	itt_sandbox strict		seccomp's strict mode
 *	itt_sandbox filter|seccomp	a filter that lets through write, exit and exit_group, by
 *prctl() or by syscall(SYS_seccomp) itt_sandbox refused		a filter that the kernel
 *refuses: nothing changes itt_sandbox vfork		a child of vfork() puts itself into one, and
 *ends: nothing changes here itt_sandbox clock|clocksys	PR_SET_TSC, by prctl() or by syscall():
 *reading the clock is a SIGSEGV from then on, in children of fork, too
 *
 * Tasks "before" (10) come before, "within" (50,000) after it; a second thread, which had traced
 *before, makes 1,000 "beside" after it, a third one, which had not, makes its first event there.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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
	return by_syscall ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					 SECCOMP_FILTER_FLAG_TSYNC, &program)
			  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The parent waits for it, in whose memory it lives. */
static int filter_in_another(void)
{
	int status;
	pid_t child = vfork();

	if (!child) {
		(void)filter(false, false);
		syscall(SYS_exit_group, 0);
	}
	return waitpid(child, &status, 0) == child && !status ? 0 : -1;
}

/* All that may read a clock. */
static void everything(__itt_string_handle *within)
{
	__itt_id id = __itt_id_make(within, 1);

	finished_task(domain, within);
	__itt_metadata_str_add(domain, __itt_null, within, "text", 0);
	__itt_counter_set_value(__itt_counter_create("counter", "sandbox"),
				&(unsigned long long){ 1 });
	__itt_frame_begin_v3(domain, NULL);
	__itt_frame_end_v3(domain, NULL);
	__itt_frame_submit_v3(domain, NULL, 1, __itt_get_timestamp());
	__itt_marker(domain, id, within, __itt_scope_track);
	__itt_event_start(__itt_event_create("event", 5));
	__itt_event_end(__itt_event_create("event", 5));
	__itt_sync_prepare(&id);
	__itt_sync_acquired(&id);
	__itt_task_begin_overlapped(domain, id, __itt_null, within);
	__itt_task_end_overlapped(domain, id);
	__itt_thread_set_name("without a clock");
	__itt_pause();
	__itt_resume();
	__itt_detach();
	setenv("PTI_ENABLE_COLLECTION", "1", 1);
}

static void *traces_everything(void *within)
{
	everything(within);
	return NULL;
}

static int without_clock(bool by_syscall, __itt_string_handle *within)
{
	int status;
	pid_t child;

	if (by_syscall ? syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)
		       : prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		die("PR_SET_TSC");
	everything(within);
	pthread_join(start_thread(traces_everything, within), NULL);
	child = fork();
	if (!child) {
		everything(within);
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		return 1;
	printf("sealed\n");
	return 0;
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
	if (!strncmp(how, "clock", 5))
		return without_clock(!strcmp(how, "clocksys"), within);
	if (!strict) {
		start_thread(beside, domain);
		start_thread(beside, NULL);
		while (ready < 2)
			;
	}
	result = strict			 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)
		 : !strcmp(how, "vfork") ? filter_in_another()
					 : filter(refused, !strcmp(how, "seccomp"));
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
