#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 30 /* seconds */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* What comes out of the pipe until its other end is closed; false: that took too long. */
static bool read_all(int fd, char *text, size_t size)
{
	double end = now() + PATIENCE;
	size_t used = 0;
	char more[512];

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		double left = end - now();
		ssize_t n;

		if (left <= 0 || poll(&wait, 1, (int)(left * 1000)) == 0)
			return false;
		n = used + 1 < size ? read(fd, text + used, size - 1 - used)
				    : read(fd, more, sizeof(more));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		if (used + 1 < size)
			used += (size_t)n;
		text[used < size ? used : size - 1] = '\0';
	}
}

static pid_t begin(int *fds)
{
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	(void)fflush(NULL);
	pid = fork();
	if (pid) {
		close(fds[1]);
		if (pid < 0)
			close(fds[0]);
		return pid;
	}
	(void)setpgid(0, 0);
	return 0;
}

static struct dr_ended end(pid_t pid, int fd, char *text, size_t size)
{
	struct dr_ended ended = { .status = -1 };

	text[0] = '\0';
	if (pid < 0)
		return ended;
	ended.timed_out = !read_all(fd, text, size);
	if (ended.timed_out)
		(void)kill(-pid, SIGKILL);
	close(fd);
	while (waitpid(pid, &ended.status, 0) < 0 && errno == EINTR)
		;
	return ended;
}

struct dr_ended dr_look(void (*look)(FILE *out, const void *data), const void *data, char *text,
			size_t size)
{
	int fds[2];
	pid_t pid = begin(fds);

	if (!pid) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		FILE *out = fdopen(fds[1], "w");

		for (int fd = 0; null >= 0 && fd < 3; fd++)
			(void)dup2(null, fd);
		if (out)
			look(out, data);
		_exit(out && !fclose(out) ? 0 : 1);
	}
	return end(pid, fds[0], text, size);
}

struct dr_ended dr_run(char *const *argv, char *text, size_t size)
{
	int fds[2];
	pid_t pid = begin(fds);

	if (!pid) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		(void)dup2(null, STDIN_FILENO);
		(void)dup2(fds[1], STDOUT_FILENO);
		(void)dup2(fds[1], STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	return end(pid, fds[0], text, size);
}

const char *dr_why(const struct dr_ended *ended, char *text, size_t size)
{
	if (ended->status == -1)
		return "no process could be started";
	if (ended->timed_out)
		(void)snprintf(text, size, "did not end within %d s", PATIENCE);
	else if (WIFSIGNALED(ended->status))
		(void)snprintf(text, size, "crashed (signal %d, %s)", WTERMSIG(ended->status),
			       strsignal(WTERMSIG(ended->status)));
	else if (WEXITSTATUS(ended->status))
		(void)snprintf(text, size, "ended with status %d", WEXITSTATUS(ended->status));
	else
		return NULL;
	return text;
}
