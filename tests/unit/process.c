/*
 * Which process is meant by a pid: that which was there when it was noted, and no other.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "tap.h"

/* A child that lives until it is killed. */
static pid_t child(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			(void)pause();
	return pid;
}

static void alive(void)
{
	uint64_t start = xs_pid_start(getpid());

	CHECK(start, "when did it start?");
	CHECK(xs_pid_alive(getpid(), start), "this one");
	CHECK(xs_pid_alive(getpid(), 0), "any of that pid");
}

/* Pids come again; that one began at another time says so. */
static void reused_pid(void)
{
	uint64_t start = xs_pid_start(getpid());
	pid_t pid = child();
	int status;

	CHECK(!xs_pid_alive(getpid(), start + 1) && !xs_pid_alive(getpid(), start - 1),
	      "the pid is another one's");
	CHECK(!xs_pid_status(getpid(), start + 1, -1, &status),
	      "nobody tells how another one ended");
	start = xs_pid_start(pid);
	(void)kill(pid, SIGTERM);
	(void)waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	CHECK(!xs_pid_status(pid, start + 1, -1, &status), "nor of a zombie with its pid");
	CHECK(xs_pid_status(pid, start, -1, &status) && WIFSIGNALED(status) &&
		      WTERMSIG(status) == SIGTERM,
	      "status %d", status);
	(void)waitpid(pid, &status, 0);
}

static void ended(void)
{
	pid_t pid = child();
	uint64_t start = xs_pid_start(pid);
	int status;

	CHECK(xs_pid_alive(pid, start), "a child");
	(void)kill(pid, SIGKILL);
	(void)waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	CHECK(!xs_pid_alive(pid, start) && !xs_pid_alive(pid, 0), "a zombie");
	(void)waitpid(pid, &status, 0);
	CHECK(!xs_pid_alive(pid, start) && !xs_pid_alive(pid, 0), "nobody");
	CHECK(!xs_pid_start(pid), "nobody began");
}

/* /proc/PID/stat is read from its end: a name may hold anything. */
static void strange_name(void)
{
	static const char *const names[] = { ") S 1 2 3", "(((", "a b) R", ")" };
	uint64_t start = xs_pid_start(getpid());

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)prctl(PR_SET_NAME, names[i]);
		CHECK(xs_pid_start(getpid()) == start, "called %s", names[i]);
		CHECK(xs_pid_alive(getpid(), start), "called %s", names[i]);
	}
}

static void *stay(void *user)
{
	(void)user;
	for (;;)
		(void)pause();
	return NULL;
}

static void main_thread_ended(void)
{
	pid_t pid = fork();
	uint64_t start = xs_pid_start(pid);
	char path[32], text[512] = "";
	pthread_t thread;
	FILE *file;

	if (!pid) {
		(void)pthread_create(&thread, NULL, stay, NULL);
		pthread_exit(NULL);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (!strstr(text, ") Z")) {
		file = fopen(path, "re");
		CHECK(file && fgets(text, sizeof(text), file), "no process");
		if (file)
			(void)fclose(file);
	}
	CHECK(xs_pid_alive(pid, start) && xs_pid_alive(pid, 0), "another thread lives");
	CHECK(xs_pid_living(pid) > pid, "which one?");
	CHECK(xs_pid_living(getpid()) == getpid(), "the main thread lives");
	(void)kill(pid, SIGKILL);
	(void)waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	CHECK(!xs_pid_alive(pid, start) && xs_pid_living(pid) == pid, "nobody lives");
	(void)waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("alive", alive);
	tap_run("a pid that came again", reused_pid);
	tap_run("ended", ended);
	tap_run("a main thread that has ended", main_thread_ended);
	tap_run("a strange name", strange_name);
	return tap_done();
}
