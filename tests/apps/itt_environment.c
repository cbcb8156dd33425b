/*
 * Children of fork in which one thread changes the environment while another one, which does not
 * look at it,
 *	itt_environment first N		traces for the first time
 *	itt_environment seal N		enters a sandbox
 *	itt_environment switch N	sets PTI_ENABLE_COLLECTION
 *	itt_environment none N		traces, and there is no environment (one thread)
 * Says how many of the N children did not end as they should.
 */
#include "itt_app.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static pthread_barrier_t both;
static atomic_bool stop;
static __itt_domain *domain;
static __itt_string_handle *name;

static void *change(void *unused)
{
	char variable[32];

	pthread_barrier_wait(&both);
	for (int i = 0; !stop && i < 3000; i++) {
		(void)snprintf(variable, sizeof(variable), "V%d", i);
		setenv(variable, "some text that takes some room", 1);
	}
	return unused;
}

static void trace(void)
{
	finished_task(domain, name);
}

static void seal(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int i = 0; i < 20; i++)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void enable(void)
{
	for (int i = 0; i < 1000; i++)
		setenv("PTI_ENABLE_COLLECTION", i & 1 ? "1" : "0", 1);
}

static void run(void (*act)(void), int turn)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&thread, NULL, change, NULL);
	pthread_barrier_wait(&both);
	for (volatile int i = 0; i < turn * 500; i++)
		;
	act();
	stop = true;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	int bad = 0, status;

	domain = __itt_domain_create("environment");
	name = __itt_string_handle_create("task");
	trace(); /* ittnotify itself looks at the environment for its collector */
	for (int i = 0; argc > 2 && i < atoi(argv[2]); i++) {
		pid_t child = fork();

		if (!child) {
			alarm(20);
			if (!strcmp(mode, "none")) {
				environ = (char **)4096;
				trace();
			} else {
				run(!strcmp(mode, "first")  ? trace
				    : !strcmp(mode, "seal") ? seal
							    : enable,
				    i % 40);
			}
			_exit(0);
		}
		bad += waitpid(child, &status, 0) != child || status;
	}
	printf("bad: %d\n", bad);
	return 0;
}
