/*
 * Every way to end, with tasks finished and one still open. Nothing that was traced may be lost
 * however a program ends, and the launcher must end in the same way: the line
 *
 *	ends: status <n>   or   ends: signal <n>
 *
 * says how. Each process prints what it traced (see app.h) before it ends; the lines of one
 * process are written at once, so that those of a child never split them.
 */
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <fcntl.h>
#include <sys/wait.h>
#include "itt_app.h"

#define STATUS 7

extern char **environ;

static __itt_domain *domain;
static __itt_string_handle *done, *open_task;

/* two finished tasks and an open one, in this process */
static void trace_some(const char *finished, const char *unfinished)
{
	domain = __itt_domain_create("end");
	done = __itt_string_handle_create(finished);
	open_task = __itt_string_handle_create(unfinished);
	finished_task(domain, done);
	finished_task(domain, done);
	task_begin(domain, open_task);
}

static void trace_one(const char *name)
{
	finished_task(domain, __itt_string_handle_create(name));
}

/* one write(2) whatever stdout is, and nothing left in a buffer that a child would flush again */
static void say(const char *format, ...)
{
	char text[1024];
	va_list args;
	int n = snprintf(text, sizeof(text), "process: %d\n", (int)getpid());

	va_start(args, format);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		die("write");
}

#define USUAL "expected: 2 tasks end::done\nexpected: 1 open end::open\n"

static void wait_for(pid_t pid)
{
	int status;

	if (pid < 0)
		die("fork");
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
}

static void *sleep_thread(void *arg)
{
	(void)arg;
	while (true)
		pause();
	return NULL;
}

static void by_return(void)
{
	say(USUAL "ends: status %d\n", STATUS);
}

static void by_exit(void)
{
	say(USUAL "ends: status %d\n", STATUS);
	exit(STATUS);
}

static void by__exit(void)
{
	say(USUAL "ends: status %d\n", STATUS);
	_exit(STATUS);
}

static void by_quick_exit(void)
{
	say(USUAL "ends: status %d\n", STATUS);
	quick_exit(STATUS);
}

static void by_abort(void)
{
	say(USUAL "ends: signal %d\n", SIGABRT);
	abort();
}

static void by_segv(void)
{
	volatile int *volatile nowhere = NULL; /* or the compiler drops the store */

	say(USUAL "ends: signal %d\n", SIGSEGV);
	*nowhere = 1;
}

static void by_signal(int sig)
{
	say(USUAL "ends: signal %d\n", sig);
	kill(getpid(), sig);
	sleep_thread(NULL);
}

static void by_sigterm(void)
{
	by_signal(SIGTERM);
}

static void by_sigkill(void)
{
	by_signal(SIGKILL);
}

static void by_sigint(void)
{
	by_signal(SIGINT);
}

/* same pid, a second program: two traces */
static void by_exec(void)
{
	say(USUAL);
	execl("/proc/self/exe", "itt_end", "return", (char *)NULL);
	die("exec");
}

static void *trace_late(void *arg)
{
	(void)arg;
	sleep_ms(50);
	trace_one("late");
	return NULL;
}

/* the first thread is gone, the process is not; its status is then 0 */
static void by_pthread_exit(void)
{
	say(USUAL "expected: 1 tasks end::late\nends: status 0\n");
	start_thread(trace_late, NULL);
	pthread_exit(NULL);
}

static void *exit_thread(void *arg)
{
	(void)arg;
	trace_one("thread");
	exit(STATUS);
	return NULL;
}

static void by_thread_exit(void)
{
	say(USUAL "expected: 1 tasks end::thread\nends: status %d\n", STATUS);
	start_thread(exit_thread, NULL);
	sleep_thread(NULL);
}

static void trace_at_exit(void)
{
	trace_one("atexit");
}

static void by_atexit_trace(void)
{
	say(USUAL "expected: 1 tasks end::atexit\nends: status %d\n", STATUS);
	atexit(trace_at_exit);
	exit(STATUS);
}

static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		trace_some("child", "child_open");
		say("expected: 2 tasks end::child\nexpected: 1 open end::child_open\n");
	}
	return pid;
}

static void by_fork_exit(void)
{
	pid_t pid = fork_child();

	if (pid == 0)
		exit(1);
	wait_for(pid);
	by_return();
}

static void by_fork__exit(void)
{
	pid_t pid = fork_child();

	if (pid == 0)
		_exit(1);
	wait_for(pid);
	by_return();
}

/* the child between vfork and exec borrows our memory: it must not disturb our trace */
static void by_vfork_exec(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execl("/proc/self/exe", "itt_end", "return", (char *)NULL);
		_exit(99);
	}
	wait_for(pid);
	by_return();
}

static void by_spawn(void)
{
	char *args[] = { "itt_end", "return", NULL };
	pid_t pid;

	errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ);
	if (errno)
		die("posix_spawn");
	wait_for(pid);
	by_return();
}

static _Atomic long loops;

static void *trace_for_ever(void *arg)
{
	__itt_string_handle *loop = __itt_string_handle_create("loop");

	(void)arg;
	while (true) {
		finished_task(domain, loop);
		loops++;
	}
	return NULL;
}

/* the C library runs destructors while these go on tracing */
static void by_detached(void)
{
	for (int i = 0; i < 4; i++)
		pthread_detach(start_thread(trace_for_ever, NULL));
	while (loops < 1000)
		sleep_ms(1);
	say(USUAL "atleast: %ld tasks end::loop\nends: status %d\n", loops, STATUS);
}

/*
 * the prompt comes back at once (the child has let go of our output), the child's trace after a
 * SIGUSR1
 */
static void by_daemon(void)
{
	sigset_t set;
	pid_t pid;
	int null, number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid > 0) {
		by_return();
		return;
	}
	say("expected: 1 tasks end::daemon\n");
	setsid();
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	alarm(100); /* nobody is there any more */
	sigwait(&set, &number);
	trace_one("daemon");
	_exit(0);
}

static const struct {
	const char *name;
	void (*end)(void);
} ways[] = {
	{ "return", by_return },
	{ "exit", by_exit },
	{ "_exit", by__exit },
	{ "quick_exit", by_quick_exit },
	{ "abort", by_abort },
	{ "segv", by_segv },
	{ "sigterm", by_sigterm },
	{ "sigkill", by_sigkill },
	{ "sigint", by_sigint },
	{ "exec", by_exec },
	{ "pthread_exit", by_pthread_exit },
	{ "thread_exit", by_thread_exit },
	{ "atexit_trace", by_atexit_trace },
	{ "fork_exit", by_fork_exit },
	{ "fork__exit", by_fork__exit },
	{ "vfork_exec", by_vfork_exec },
	{ "spawn", by_spawn },
	{ "detached", by_detached },
	{ "daemon", by_daemon },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(ways); i++) {
		if (strcmp(argv[1], ways[i].name) == 0) {
			trace_some("done", "open");
			ways[i].end();
			return STATUS;
		}
	}
	fprintf(stderr, "usage: itt_end HOW, one of:");
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		fprintf(stderr, " %s", ways[i].name);
	fprintf(stderr, "\n");
	return 2;
}
