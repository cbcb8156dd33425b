/*
 * A program that changes its directory, and then traces from a new thread and from a program that
 * it starts: every path of the tracer's must be absolute.
 *
 *	chdirer [DIR]	default /
 */
#include <limits.h>
#include <sys/wait.h>
#include "itt_app.h"

static __itt_domain *domain;

static void *trace_after(void *arg)
{
	(void)arg;
	finished_task(domain, __itt_string_handle_create("after"));
	return NULL;
}

/* itself again, from the new directory, with nothing left to do but trace */
static void run_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl("/proc/self/exe", "chdirer", "--child", (char *)NULL);
		_exit(99);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork");
	if (status)
		exit(1);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "/";
	char cwd[PATH_MAX];

	domain = __itt_domain_create("chdirer");
	if (strcmp(dir, "--child") == 0) {
		printf("process: %d\nexpected: 1 tasks chdirer::child\n", (int)getpid());
		finished_task(domain, __itt_string_handle_create("child"));
		return 0;
	}
	finished_task(domain, __itt_string_handle_create("before"));
	if (chdir(dir))
		die(dir);
	pthread_join(start_thread(trace_after, NULL), NULL);
	run_child();
	if (!getcwd(cwd, sizeof(cwd)))
		die("getcwd");
	printf("process: %d\ncwd: %s\n", (int)getpid(), cwd);
	printf("expected: 1 tasks chdirer::before\nexpected: 1 tasks chdirer::after\n");
	printf("expected: 2 tasks\n");
	return 0;
}
