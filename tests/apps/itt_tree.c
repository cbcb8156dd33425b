/*
 * A tree of processes, each of which makes one ITT task "tree::<word>":
 *
 *	itt_tree [WORD...]
 *
 * The first word says how the next process comes to be, which then does the same with the rest:
 *fork, vfork, spawn (posix_spawn), system (a shell between), exec (no new process), clone (with
 *signal SIGCHLD, past the C library), naked (exec with an empty environment), orphan (whose parent
 *does not wait). Each process waits for its child, if any, and prints what it traced (see app.h)
 *and its parent, as the kernel has it.
 *
 *	itt_tree same N [MS]
 *
 * starts N processes one after the other, MS milliseconds apart, that all have the same pid: root
 *can have that.
 */
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "itt_app.h"

#define CANNOT 77 /* what test suites take for "skipped" */

extern char **environ;

static char *self;

static void trace(const char *name)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "process: %d\nparent: %d\nexpected: 1 tasks tree::%s\n", (int)getpid(),
			 (int)syscall(SYS_getppid), name);

	finished_task(__itt_domain_create("tree"), __itt_string_handle_create(name));
	/* at once: lines of others never split these */
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		die("write");
}

static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0)
		die("no child");
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int with_shell(char **words)
{
	char command[1024] = "exec \"$SELF\"";
	size_t n = strlen(command);

	for (; *words; words++)
		n += (size_t)snprintf(command + n, sizeof(command) - n, " %s", *words);
	setenv("SELF", self, 1);
	return system(command) ? 1 : 0;
}

static int go(char **words)
{
	const char *word = words[0];
	char *nothing[] = { NULL };
	pid_t pid;

	trace(word ? word : "leaf");
	if (!word)
		return 0;
	words[0] = self; /* argv of those who are executed */
	if (!strcmp(word, "fork")) {
		pid = fork();
		if (!pid)
			_exit(go(words + 1));
		return wait_for(pid);
	}
	if (!strcmp(word, "orphan")) {
		pid_t parent = getpid();

		if (fork())
			return 0;
		while (getppid() == parent)
			sleep_ms(1);
		_exit(go(words + 1));
	}
	if (!strcmp(word, "clone")) {
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
		if (!pid)
			_exit(go(words + 1));
		return wait_for(pid);
	}
	if (!strcmp(word, "vfork")) {
		pid = vfork();
		if (!pid) {
			execv(self, words);
			_exit(99);
		}
		return wait_for(pid);
	}
	if (!strcmp(word, "spawn")) {
		if (posix_spawn(&pid, self, NULL, NULL, words, environ))
			die("posix_spawn");
		return wait_for(pid);
	}
	if (!strcmp(word, "system"))
		return with_shell(words + 1);
	if (!strcmp(word, "exec"))
		execv(self, words);
	if (!strcmp(word, "naked"))
		execve(self, words, nothing);
	die(word);
}

/* A child of that pid, if nobody has it now; 0: whatever pid comes. */
static pid_t fork_as(pid_t pid)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
			set_tid, set_tid_size, cgroup;
	} args = { .exit_signal = SIGCHLD,
		   .set_tid = pid ? (uint64_t)(uintptr_t)&pid : 0,
		   .set_tid_size = pid ? 1 : 0 };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int same_pid(int count, long pause)
{
	pid_t pid = 0;
	char name[16];

	for (int i = 0; i < count; i++) {
		pid_t child = fork_as(pid);

		if (!child) {
			(void)snprintf(name, sizeof(name), "same%d", i);
			trace(name);
			_exit(0);
		}
		if (child < 0) {
			fprintf(stderr, "clone3: %s\n", strerror(errno));
			return CANNOT;
		}
		pid = child;
		wait_for(child);
		sleep_ms(pause);
	}
	return 0;
}

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		die("/proc/self/exe");
	path[n] = '\0';
	self = path;
	if (argc > 2 && !strcmp(argv[1], "same"))
		return same_pid(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0);
	return go(argv + 1);
}
