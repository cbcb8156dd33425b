#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* How often a word is said, while the kernel takes none; half a second in all. */
#define SAY_TRIES    50
#define SAY_PAUSE_NS 10000000

int xs_channel_move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, XS_DRAIN_CONTROL + 1), error = errno;

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
	const struct timespec pause = { .tv_nsec = SAY_PAUSE_NS };
	struct xs_message message = { .word = word, .number = number };

	/* there is room, as each side says a few words in all; but the kernel may lack memory */
	for (int left = SAY_TRIES; left; left--) {
		if (send(end, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return;
		if (errno == EPIPE || errno == ECONNRESET)
			return; /* nobody is there */
		if (errno != EINTR)
			(void)nanosleep(&pause, NULL);
	}
	/* who waits for the word sees an end instead, and waits no longer */
	(void)shutdown(end, SHUT_WR);
}

enum xs_heard xs_channel_hear(int end, bool wait, struct xs_message *ret)
{
	bool reset = false;
	ssize_t n;

	/*
	 * who leaves with words of ours unheard leaves an error in front of his own, which are
	 * still there
	 */
	do {
		n = recv(end, ret, sizeof(*ret), wait ? 0 : MSG_DONTWAIT);
		reset = n < 0 && errno == ECONNRESET && !reset;
	} while (n < 0 && (errno == EINTR || reset));
	if (n == (ssize_t)sizeof(*ret))
		return XS_HEARD;
	return n < 0 && errno == EAGAIN ? XS_HEARD_NOTHING : XS_HEARD_END;
}
