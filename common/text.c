#include "text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"

#define LINE_MAX_BYTES	16384
#define PATIENCE_NS	5000000000ull
#define NO_WAITING	8  /* RWF_NOWAIT, which not every C library's headers have */
#define KERNEL_SET_SIZE 8u /* signal sets as the kernel has them: C libraries hide some */

static bool is_pending(uint64_t signals)
{
	uint64_t pending = 0;

	(void)syscall(SYS_rt_sigpending, &pending, KERNEL_SET_SIZE);
	return pending & signals;
}

/*
 * Somebody who starts a program and waits for its end may never read its stderr. Lines of ours wait
 * a few seconds for him, all together, and are then given up.
 */
static bool wait_for_reader(void)
{
	static uint64_t left = PATIENCE_NS;
	uint64_t begin = xs_clock_ns(CLOCK_MONOTONIC), took;
	struct pollfd stream = { .fd = STDERR_FILENO, .events = POLLOUT };
	int ready = poll(&stream, 1, (int)(left / 1000000));
	/* poll() takes no descriptor where there may be none (prlimit) */
	bool may_ask = ready >= 0 || errno != EINVAL;

	if (!may_ask)
		(void)usleep(1000);
	took = xs_clock_ns(CLOCK_MONOTONIC) - begin;
	left -= took < left ? took : left;
	return ready > 0 || (ready < 0 && (!may_ask || errno == EINTR) && left);
}

/* A part of a line, to a pipe or socket: bytes written or -1. */
static ssize_t put_patiently(const char *part, size_t length)
{
	struct iovec whole = { (void *)(uintptr_t)part, length };
	ssize_t n;

	if (!wait_for_reader())
		return -1;
	/* the program may fill it at this moment; where the kernel cannot be asked, that is left */
	n = syscall(SYS_pwritev2, STDERR_FILENO, &whole, 1, -1L, -1L, NO_WAITING);
	if (n < 0 && errno == EAGAIN)
		return 0;
	return n < 0 && errno != EPIPE ? write(STDERR_FILENO, part, length) : n;
}

static void put(const char *line, const char *end)
{
	struct stat stream;
	bool waits = !fstat(STDERR_FILENO, &stream) &&
		     (S_ISFIFO(stream.st_mode) || S_ISSOCK(stream.st_mode));

	while (line < end) {
		size_t most = waits && end - line > PIPE_BUF ? PIPE_BUF : (size_t)(end - line);
		ssize_t n = waits ? put_patiently(line, most) : write(STDERR_FILENO, line, most);

		if (n < 0 && errno != EINTR)
			return;
		line += n > 0 ? n : 0;
	}
}

/*
 * What cannot be written is no signal for us, which might end us, or which the launcher would take
 * for one to be passed on to the application.
 */
static void put_calmly(const char *line, const char *end)
{
	static const struct timespec now;
	uint64_t ours = 1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1), old = 0;
	bool others;

	(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &old, KERNEL_SET_SIZE);
	others = is_pending(ours);
	put(line, end);
	while (!others && is_pending(ours))
		(void)syscall(SYS_rt_sigtimedwait, &ours, NULL, &now, KERNEL_SET_SIZE);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, KERNEL_SET_SIZE);
}

void xs_tell(const char *format, ...)
{
	/* there may be little stack (launcher/limits.c) */
	static _Thread_local char line[LINE_MAX_BYTES];
	char *end;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n < 0)
		return;
	if (n >= (int)sizeof(line))
		n = (int)sizeof(line) - 1;
	end = xs_plain(line, line, (size_t)(n ? n - 1 : 0)); /* without its end */
	*end++ = '\n';
	put_calmly(line, end);
}
