#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths.h"

#define PIPE	       (1 << 20)
#define LINE_MAX_BYTES (64u << 10)

/*
 * In the child: a session of its own, so that what a terminal sends does not reach it while it
 * holds threads; its end comes with ours.
 */
static void become(const char *path, char *const *argv, int out, pid_t parent)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &action, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)dup2(out, STDOUT_FILENO);
	(void)close_range(STDERR_FILENO + 1, ~0u, 0);
	if (getppid() == parent)
		execv(path, argv);
	_exit(126);
}

int at_sampler_start(struct at_sampler *sampler, pid_t target, uint64_t interval)
{
	char path[PATH_MAX], pid[16], ns[24], *argv[] = { "xstrace-stacks", pid, ns, NULL };
	pid_t parent = getpid();
	int ends[2];

	xs_path_of_program("xstrace-stacks", "stacks", path);
	if (access(path, X_OK) < 0)
		return -errno;
	(void)snprintf(pid, sizeof(pid), "%d", target);
	(void)snprintf(ns, sizeof(ns), "%llu", (unsigned long long)interval);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(ends[1], F_SETPIPE_SZ, PIPE);
	sampler->length = 0;
	sampler->pid = fork();
	if (!sampler->pid)
		become(path, argv, ends[1], parent);
	close(ends[1]);
	if (sampler->pid < 0) {
		int error = errno;

		sampler->pid = 0;
		close(ends[0]);
		return -error;
	}
	sampler->fd = ends[0];
	return 0;
}

void at_sampler_end(const struct at_sampler *sampler, int signal)
{
	if (sampler->pid)
		(void)kill(sampler->pid, signal);
}

static bool make_room(struct at_sampler *sampler)
{
	char *grown;

	if (sampler->room)
		return true;
	grown = malloc(LINE_MAX_BYTES);
	sampler->room = grown ? LINE_MAX_BYTES : 0;
	sampler->text = grown;
	return grown;
}

/* What is longer than any line of it is thrown away: it has gone mad. */
static void take_lines(struct at_sampler *sampler, void (*line)(void *data, char *line), void *data)
{
	char *at = sampler->text, *end;

	while ((end = memchr(at, '\n', sampler->length - (size_t)(at - sampler->text)))) {
		*end = '\0';
		line(data, at);
		at = end + 1;
	}
	sampler->length -= (size_t)(at - sampler->text);
	memmove(sampler->text, at, sampler->length);
	if (sampler->length == sampler->room)
		sampler->length = 0;
}

bool at_sampler_read(struct at_sampler *sampler, void (*line)(void *data, char *line), void *data,
		     int *ret_how)
{
	ssize_t n = -1;

	if (make_room(sampler))
		n = read(sampler->fd, sampler->text + sampler->length,
			 sampler->room - sampler->length);
	if (n > 0) {
		sampler->length += (size_t)n;
		take_lines(sampler, line, data);
		return true;
	}
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0)
		(void)kill(sampler->pid, SIGKILL);
	while (waitpid(sampler->pid, ret_how, 0) < 0 && errno == EINTR)
		;
	close(sampler->fd);
	sampler->pid = 0;
	return false;
}
