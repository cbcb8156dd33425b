#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

int xs_channel_move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, XS_DRAIN_DIRECTORY + 1), error = errno;

	close(fd);
	return moved < 0 ? -error : moved;
}

int xs_channel_open(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		ends[i] = xs_channel_move_up(ends[i]);
	if (ends[0] >= 0 && ends[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return ends[0] < 0 ? ends[0] : ends[1];
}

void xs_channel_say(int end, enum xs_word word, int32_t number)
{
	struct xs_message message = { .word = word, .number = number };

	/* there is room: each side says a few words in all */
	(void)send(end, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum xs_heard xs_channel_hear(int end, bool wait, struct xs_message *ret)
{
	ssize_t n;

	do
		n = recv(end, ret, sizeof(*ret), wait ? 0 : MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*ret))
		return XS_HEARD;
	return n < 0 && errno == EAGAIN ? XS_HEARD_NOTHING : XS_HEARD_END;
}
