#include "dynolog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define DAEMON	   "dynolog"
#define TYPE_BYTES 32u
#define ACTIVITIES 2 /* what is asked for: requests for traces */

/* Before every message. */
struct head {
	uint64_t size; /* of what follows */
	char type[TYPE_BYTES];
};

/* "ctxt": a process makes itself known. */
struct context {
	int32_t gpu, pid;
	int64_t job;
};

/* "req": it asks whether there is a request. */
struct question {
	int32_t type, count;
	int64_t job;
	int32_t pids[XS_DYNOLOG_PIDS];
};

/*
 * The address of a name: in a directory that the environment tells, or abstract, where the zero
 * byte behind the name belongs to it. Its length; 0: the name is too long.
 */
static size_t address_of(const char *name, struct sockaddr_un *ret)
{
	const char *directory = getenv("KINETO_IPC_SOCKET_DIR");
	bool file = directory && directory[0];
	int length;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (file)
		length = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", directory, name);
	else
		length = 1 + snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "%s", name);
	if (length >= (int)sizeof(ret->sun_path))
		return 0;
	return offsetof(struct sockaddr_un, sun_path) + (size_t)length + 1;
}

static int64_t job(void)
{
	const char *id = getenv("SLURM_JOB_ID");

	return id ? strtoll(id, NULL, 10) : 0;
}

/*
 * The daemon may be another user, so all may write to a socket that has a name. It is made so: what
 * has the name a moment later may be a link that somebody else has put there.
 */
static int bind_for_all(const struct xs_dynolog *dynolog)
{
	mode_t mask = umask(0111); /* this process has one thread */
	int result = bind(dynolog->fd, (const struct sockaddr *)&dynolog->own,
			  (socklen_t)dynolog->own_length) < 0
			     ? -errno
			     : 0;

	(void)umask(mask);
	return result;
}

int xs_dynolog_open(struct xs_dynolog *dynolog)
{
	unsigned char random[16];
	char name[64] = "dynoconfigclient";
	char *at = name + strlen(name);
	int error;

	dynolog->fd = -1;
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		at += sprintf(at, "%02x", random[i]);
	dynolog->own_length = address_of(name, &dynolog->own);
	if (!dynolog->own_length)
		return -ENAMETOOLONG;
	dynolog->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (dynolog->fd < 0)
		return -errno;
	error = bind_for_all(dynolog);
	if (error < 0) {
		close(dynolog->fd);
		dynolog->fd = -1;
	}
	return error;
}

void xs_dynolog_close(struct xs_dynolog *dynolog)
{
	if (dynolog->fd < 0)
		return;
	close(dynolog->fd);
	dynolog->fd = -1;
	if (dynolog->own.sun_path[0])
		(void)unlink(dynolog->own.sun_path);
}

static int send_message(const struct xs_dynolog *dynolog, const char *type, const void *data,
			size_t size)
{
	struct head head = { .size = size };
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)data, size } };
	struct sockaddr_un daemon;
	struct msghdr message = { .msg_name = &daemon,
				  .msg_namelen = (socklen_t)address_of(DAEMON, &daemon),
				  .msg_iov = parts,
				  .msg_iovlen = 2 };

	if (!message.msg_namelen)
		return -ENAMETOOLONG;
	(void)snprintf(head.type, sizeof(head.type), "%s", type);
	return sendmsg(dynolog->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int xs_dynolog_register(const struct xs_dynolog *dynolog, int32_t pid)
{
	struct context context = { .pid = pid, .job = job() };

	return send_message(dynolog, "ctxt", &context, sizeof(context));
}

int xs_dynolog_ask(const struct xs_dynolog *dynolog, const int32_t *pids, uint32_t count)
{
	struct question question = { .type = ACTIVITIES, .count = (int32_t)count, .job = job() };

	memcpy(question.pids, pids, count * sizeof(*pids));
	return send_message(dynolog, "req", &question,
			    offsetof(struct question, pids) + count * sizeof(*pids));
}

static bool is_daemon(const struct sockaddr_un *from, socklen_t length)
{
	struct sockaddr_un daemon;
	size_t expected = address_of(DAEMON, &daemon);

	return length == expected && !memcmp(from, &daemon, expected);
}

enum xs_dynolog_heard xs_dynolog_hear(const struct xs_dynolog *dynolog, char *text,
				      size_t *ret_length)
{
	struct head head;
	struct iovec parts[] = { { &head, sizeof(head) }, { text, XS_DYNOLOG_TEXT } };
	struct sockaddr_un from = { .sun_family = AF_UNSPEC };
	struct msghdr message = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = parts, .msg_iovlen = 2
	};
	ssize_t n = recvmsg(dynolog->fd, &message, MSG_DONTWAIT);

	if (n < 0)
		return XS_DYNOLOG_NOTHING;
	if ((size_t)n < sizeof(head) || message.msg_flags & MSG_TRUNC ||
	    !is_daemon(&from, message.msg_namelen) || head.size != (size_t)n - sizeof(head) ||
	    !memchr(head.type, '\0', sizeof(head.type)))
		return XS_DYNOLOG_GARBAGE;
	*ret_length = head.size;
	if (!strcmp(head.type, "ctxt"))
		return XS_DYNOLOG_EMPTY; /* how many have made themselves known */
	if (strcmp(head.type, "req") != 0)
		return XS_DYNOLOG_GARBAGE;
	for (size_t i = 0; i < head.size; i++)
		if (!strchr(" \t\r\n", text[i]))
			return XS_DYNOLOG_REQUEST;
	return XS_DYNOLOG_EMPTY;
}
