/*
 * Other ways into a sandbox than itt_sandbox's, by a program that traces.
 *
 *	itt_sealing listener	a filter whose refused calls wait for an answer that never comes
 *	itt_sealing dispatch	system calls are dispatched to user space: each of another's is a
 *SIGSYS itt_sealing fork	a child of fork that has not traced puts itself into a sandbox, and
 *traces itt_sealing together	four threads enter one at once, two others trace itt_sealing HOW
 *exec|fork|system|spawn|vfork with HOW (kill, trap, errno) forbidden calls that only the tracer
 *makes, the program starts itself, by exec, in a child of fork, …: "itt_sealing ran"
 *
 * Tasks "before" (10) come before, "within" (100, each with a name of its own) after it.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "itt_app.h"

static __itt_domain *domain;

static void tasks(const char *name, int n)
{
	char text[32];

	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s %d", name, i);
		finished_task(domain, __itt_string_handle_create(text));
	}
}

/* All calls but these three have the action. */
static int forbid_all(uint32_t action, unsigned flags)
{
	struct sock_filter allow[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(allow), .filter = allow };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/*
 * Calls that joining a run makes have the action: one that no other program's start makes; and one
 * that the C library makes for system() and others.
 */
static int forbid_ours(uint32_t action, bool more)
{
	struct sock_filter refuse[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ftruncate, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, more ? SYS_rt_sigprocmask : SYS_ftruncate, 0,
			 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(refuse), .filter = refuse };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int listener(void)
{
	if (forbid_all(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER) < 0)
		die("seccomp");
	tasks("within", 100);
	(void)write(1, "sealed\n", 7);
	syscall(SYS_exit_group, 0);
	return 0;
}

static int dispatch(void)
{
	static volatile char blocks;

	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &blocks))
		return puts("no dispatch"), 0;
	blocks = SYSCALL_DISPATCH_FILTER_BLOCK;
	tasks("within", 100);
	blocks = SYSCALL_DISPATCH_FILTER_ALLOW;
	puts("sealed");
	return 0;
}

static int forked(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (forbid_all(SECCOMP_RET_KILL_PROCESS, 0))
			die("seccomp");
		for (int i = 0; i < 100; i++)
			finished_task(domain, __itt_string_handle_create("within"));
		(void)write(1, "sealed\n", 7);
		syscall(SYS_exit_group, 0);
	}
	return waitpid(child, &status, 0) != child || status;
}

static void *seals(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		tasks("within", 3);
		if (forbid_ours(SECCOMP_RET_ERRNO | EPERM, false))
			die("seccomp");
	}
	return NULL;
}

static _Atomic int over;

static void *traces(void *unused)
{
	(void)unused;
	for (int i = 0; !over; i++) {
		tasks("beside", 1 + i % 300);
		usleep(100);
	}
	return NULL;
}

/* A second is what a thread waits for another one at most. */
static int together(void)
{
	pthread_t sealing[4], tracing[2];
	uint64_t begin;

	for (int i = 0; i < 2; i++)
		tracing[i] = start_thread(traces, NULL);
	usleep(10000);
	begin = now_ns();
	for (int i = 0; i < 4; i++)
		sealing[i] = start_thread(seals, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(sealing[i], NULL);
	begin = now_ns() - begin;
	over = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(tracing[i], NULL);
	puts(begin < 900000000 ? "sealed" : "slow");
	return 0;
}

static int wait_for(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child ? status : -1;
}

static int starts(uint32_t action, const char *how, char *self)
{
	char *ran[] = { self, (char *)(uintptr_t)"ran", NULL }, command[4096];
	bool vforks = !strcmp(how, "vfork");
	volatile pid_t child = vforks ? vfork() : 1;

	if (vforks && child)
		return wait_for(child);
	if (forbid_ours(action, vforks || !strcmp(how, "exec")))
		_exit(9);
	if (!strcmp(how, "system")) {
		snprintf(command, sizeof(command), "%s ran", self);
		return system(command);
	}
	if (!strcmp(how, "spawn"))
		return posix_spawn((pid_t *)(uintptr_t)&child, self, NULL, NULL, ran, environ)
			       ? 1
			       : wait_for(child);
	if (!strcmp(how, "fork"))
		child = fork();
	if (vforks || child == 1 || !child) {
		execv(self, ran);
		_exit(8);
	}
	return wait_for(child);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int status;

	domain = __itt_domain_create("sealing");
	if (!strcmp(how, "ran")) {
		tasks("within", 100);
		puts("ran");
		return 0;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	tasks("before", strcmp(how, "fork") != 0 ? 10 : 0);
	if (!strcmp(how, "listener"))
		return listener();
	if (!strcmp(how, "dispatch"))
		return dispatch();
	if (!strcmp(how, "together"))
		return together();
	if (!strcmp(how, "fork"))
		return forked();
	status = starts(!strcmp(how, "kill")   ? SECCOMP_RET_KILL_PROCESS
			: !strcmp(how, "trap") ? SECCOMP_RET_TRAP
					       : SECCOMP_RET_ERRNO | EPERM,
			argv[2], argv[0]);
	/* a child of vfork() has sealed itself alone */
	tasks("after", 10);
	return status != 0;
}
