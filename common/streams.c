#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

void xs_stdout_waits(void)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL), fd;

	if (flags < 0 || !(flags & O_NONBLOCK))
		return;
	/* the flag belongs to the open file, which others share: this is another one of the same
	 * pipe */
	fd = open("/proc/self/fd/1", O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)dup2(fd, STDOUT_FILENO);
	(void)close(fd);
}

bool xs_printed(const char *program)
{
	bool flushed = !fflush(stdout);
	int error = errno;

	/* a closed stdout: nobody wants to know */
	if ((flushed && !ferror(stdout)) || fcntl(STDOUT_FILENO, F_GETFD) < 0)
		return true;
	if (flushed || error != EPIPE)
		xs_tell("%s: cannot write all that there is to say: %s\n", program,
			flushed ? "stdout takes no more" : strerror(error));
	return false;
}
