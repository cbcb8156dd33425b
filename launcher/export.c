/*
 * xstrace --export prometheus:WHERE: gives what --top shows to Prometheus, by HTTP or in a file for
 * the node exporter's textfile collector.
 *
 * The server takes one request after the other, each with a bound for its size and its time, and
 * answers GET /metrics alone. Who can reach the port can read the numbers; nobody can do more.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "look.h"
#include "option_values.h"
#include "paths.h"
#include "text.h"

#define EVERY_MS   5000 /* a file is written anew; and runs are looked at, so that counters go on */
#define REQUEST_MS 1000
#define REQUEST	   4096 /* bytes */

static volatile sig_atomic_t ended;

static void note(int signal)
{
	ended = signal;
}

/* ---- where ---- */

struct target {
	int socket;	  /* -1: it is a file */
	char address[64]; /* for people */
	bool is_local;	  /* it is this machine's alone */
	const char *path;
	const struct xs_launch *only; /* NULL: all runs of this user */
};

static bool is_port(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static int tell(const char *spec, const char *why)
{
	xs_tell("xstrace: --export %s: %s\n", spec, why);
	return -1;
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* The length of a numeric address; 0: it is none. */
static socklen_t read_address(const char *host, uint16_t port, union address *ret)
{
	*ret = (union address){ .v6 = { .sin6_port = htons(port) } };
	if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
		ret->any.sa_family = AF_INET6;
		return sizeof(ret->v6);
	}
	*ret = (union address){ .v4 = { .sin_family = AF_INET, .sin_port = htons(port) } };
	return inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1 ? sizeof(ret->v4) : 0;
}

/* What the socket has got: the port may have been 0. */
static void name_address(struct target *target)
{
	union address at;
	socklen_t length = sizeof(at);
	char host[INET6_ADDRSTRLEN] = "";
	bool six;

	if (getsockname(target->socket, &at.any, &length) < 0)
		return;
	six = at.any.sa_family == AF_INET6;
	target->is_local = six ? IN6_IS_ADDR_LOOPBACK(&at.v6.sin6_addr)
			       : ntohl(at.v4.sin_addr.s_addr) >> 24 == 127;
	(void)inet_ntop(at.any.sa_family, six ? (void *)&at.v6.sin6_addr : (void *)&at.v4.sin_addr,
			host, sizeof(host));
	(void)snprintf(target->address, sizeof(target->address),
		       six ? "http://[%s]:%u/metrics" : "http://%s:%u/metrics", host,
		       ntohs(six ? at.v6.sin6_port : at.v4.sin_port));
}

static int listen_at(struct target *target, const char *spec, const char *host, const char *port)
{
	union address at;
	socklen_t length;
	int one = 1, error;

	if (strlen(port) > 5 || atoi(port) > 65535)
		return tell(spec, "ports go to 65535");
	length = read_address(host, (uint16_t)atoi(port), &at);
	if (!length)
		return tell(spec, "no numeric address; 127.0.0.1:9400, [::1]:9400 or a port alone");
	target->socket = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (target->socket >= 0)
		(void)setsockopt(target->socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	error = target->socket < 0 || bind(target->socket, &at.any, length) < 0 ||
				listen(target->socket, 128) < 0
			? errno
			: 0;
	if (error)
		return tell(spec,
			    error == EADDRINUSE
				    ? "the port is taken; another --export may have it, choose "
				      "another port"
				    : strerror(error));
	name_address(target);
	return 0;
}

/* PORT, ADDRESS:PORT or a file. 0, or -1 after one line. */
static int open_target(struct target *target, const char *spec)
{
	const char *where = spec + sizeof(XS_EXPORT_PROMETHEUS) - 1, *colon = strrchr(where, ':');
	char host[64], directory[PATH_MAX];
	struct stat st;
	int error;

	target->socket = -1;
	target->path = where;
	if (is_port(where))
		return listen_at(target, spec, "127.0.0.1", where);
	if (!colon || !is_port(colon + 1) || strchr(where, '/') ||
	    (size_t)(colon - where) >= sizeof(host)) {
		/* it would be put in the place of a device or a pipe */
		if (!stat(where, &st) && !S_ISREG(st.st_mode))
			return tell(spec, "what is there is no file");
		/* said now: a short application may have ended when the first numbers come */
		error = xs_path_from_root(where, directory, sizeof(directory));
		if (strrchr(directory, '/') > directory)
			*strrchr(directory, '/') = '\0';
		else
			(void)snprintf(directory, sizeof(directory), "/");
		if (!error && access(directory, W_OK | X_OK) < 0)
			error = -errno;
		return error ? tell(spec, strerror(-error)) : 0;
	}
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		memmove(host, host + 1, strlen(host));
	}
	return listen_at(target, spec, host, colon + 1);
}

/* ---- what ---- */

static char *numbers(const struct target *target, size_t *ret_length)
{
	struct xs_looks looks = xs_look("*", target->only);
	char *text = xs_export_text(&looks, ret_length);

	xs_looks_free(&looks);
	return text;
}

/* Who reads has the old one or the new one. 0, or -1 after one line. */
static int write_file(const struct target *target, const char *spec)
{
	char path[PATH_MAX];
	size_t length = 0;
	char *text = numbers(target, &length);
	FILE *file;
	int error = ENOMEM;

	if (text &&
	    snprintf(path, sizeof(path), "%s.%d", target->path, getpid()) < (int)sizeof(path)) {
		file = fopen(path, "wxe");
		error = file ? 0 : errno;
		if (file && fwrite(text, 1, length, file) != length)
			error = errno;
		if (file && fclose(file))
			error = errno;
		if (!error && rename(path, target->path) < 0)
			error = errno;
		if (error && file && unlink(path) < 0)
			/* a directory may take files and give none back (chattr +a) */
			xs_tell("[WARNING] %s cannot be removed: %s\n", path, strerror(errno));
	}
	free(text);
	return error ? tell(spec, strerror(error)) : 0;
}

/* ---- requests ---- */

#define READERS 64u

/*
 * Somebody who is connected. Nobody waits for another one's request, nor for what another one does
 * not read.
 */
struct reader {
	int fd;
	uint64_t deadline;
	size_t got;
	char request[REQUEST + 1];
	char *answer; /* NULL: it has not asked yet */
	size_t length, sent;
};

/* NULL: nobody. Made as they come: an application starts with the launcher's RLIMIT_DATA. */
static struct reader *readers[READERS];

static void end(struct reader **place)
{
	if (!*place)
		return;
	(void)close((*place)->fd);
	free((*place)->answer);
	free(*place);
	*place = NULL;
}

static void answer(struct reader *reader, const char *status, const char *text, size_t length)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			 status, length);

	reader->answer = malloc((size_t)n + length);
	if (!reader->answer)
		return;
	memcpy(reader->answer, head, (size_t)n);
	memcpy(reader->answer + n, text, length);
	reader->length = (size_t)n + length;
	reader->sent = 0;
	/* what the numbers took is not the reader's time */
	reader->deadline = xs_clock_ns(CLOCK_MONOTONIC) + REQUEST_MS * 1000000ull;
}

/*
 * A page in a browser of this machine may have its own name lead here (DNS rebinding): then the
 * request has that name. At other interfaces any name may be right.
 */
static bool is_meant(const struct target *target, const char *request)
{
	static const char field[] = "\r\nHost:";
	const char *host = strcasestr(request, field), *end;
	union address at;
	char name[64];
	size_t n;

	if (!host || !target->is_local)
		return true;
	host += sizeof(field) - 1;
	if (strcasestr(host, field))
		return false;
	host += strspn(host, " \t");
	host += *host == '[';
	n = strcspn(host, host[-1] == '[' ? "]\r\n" : ": \t\r\n");
	end = host + n + (host[n] == ']');
	if (*end == ':')
		end += 1 + strspn(end + 1, "0123456789");
	end += strspn(end, " \t");
	if (n >= sizeof(name) || strncmp(end, "\r\n", 2) != 0)
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)n, host);
	return !strcasecmp(name, "localhost") || read_address(name, 0, &at);
}

static void answer_request(const struct target *target, struct reader *reader)
{
	size_t length = 0;
	char *text;

	if (!is_meant(target, reader->request)) {
		answer(reader, "403 Forbidden", "not by this name\n", 17);
	} else if (!strncmp(reader->request, "GET /metrics ", 13) ||
		   !strncmp(reader->request, "GET /metrics?", 13)) {
		text = numbers(target, &length);
		if (text)
			answer(reader, "200 OK", text, length);
		free(text);
	} else if (reader->got) {
		answer(reader, "404 Not Found", "GET /metrics\n", 13);
	}
}

/* More of a request. False: there is nothing to be done for it. */
static bool hear(const struct target *target, struct reader *reader)
{
	ssize_t n = recv(reader->fd, reader->request + reader->got, REQUEST - reader->got,
			 MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	reader->got += (size_t)n;
	reader->request[reader->got] = '\0';
	if (n && reader->got < REQUEST && !strstr(reader->request, "\r\n\r\n"))
		return true;
	answer_request(target, reader);
	return reader->answer;
}

/* More of an answer. False: that was all. */
static bool tell_more(struct reader *reader)
{
	ssize_t n = send(reader->fd, reader->answer + reader->sent, reader->length - reader->sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	reader->sent += (size_t)n;
	return reader->sent < reader->length;
}

/* One that has connected; where there are too many, the first of them has had its time. */
static void take(const struct target *target, uint64_t now)
{
	int fd = accept4(target->socket, NULL, NULL, SOCK_CLOEXEC);
	struct reader **place = &readers[0];

	if (fd < 0) {
		/* no descriptor is left, and the reader waits on */
		(void)poll(NULL, 0, errno == EAGAIN ? 0 : 100);
		return;
	}
	for (unsigned i = 0; i < READERS && *place; i++)
		if (!readers[i] || readers[i]->deadline < (*place)->deadline)
			place = &readers[i];
	end(place);
	*place = calloc(1, sizeof(**place));
	if (!*place) {
		(void)close(fd);
		return;
	}
	(*place)->fd = fd;
	(*place)->deadline = now + REQUEST_MS * 1000000ull;
}

/* How long nothing has to be done, ms. */
static int patience(uint64_t now, uint64_t next)
{
	for (unsigned i = 0; i < READERS; i++)
		if (readers[i] && readers[i]->deadline < next)
			next = readers[i]->deadline;
	return next > now ? (int)((next - now) / 1000000) + 1 : 0;
}

/* What one of them has waited for, or its time is over. */
static void go_on(const struct target *target, struct reader **place, bool ready, uint64_t now)
{
	struct reader *reader = *place;
	bool stays = ready || now < reader->deadline;

	if (ready)
		stays = reader->answer ? tell_more(reader) : hear(target, reader);
	if (!stays)
		end(place);
}

static void serve(const struct target *target)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC), next = now + EVERY_MS * 1000000ull;

	while (!ended) {
		struct pollfd fds[READERS + 1] = { { target->socket, POLLIN, 0 } };
		struct reader **waiting[READERS + 1];
		nfds_t count = 1; /* with a low limit of descriptors poll() takes no more */

		for (unsigned i = 0; i < READERS; i++) {
			if (!readers[i])
				continue;
			waiting[count] = &readers[i];
			fds[count++] = (struct pollfd){
				readers[i]->fd, (short)(readers[i]->answer ? POLLOUT : POLLIN), 0
			};
		}
		if (poll(fds, count, patience(now, next)) < 0)
			continue;
		now = xs_clock_ns(CLOCK_MONOTONIC);
		for (nfds_t i = 1; i < count; i++)
			go_on(target, waiting[i], fds[i].revents, now);
		if (fds[0].revents)
			take(target, now);
		if (now >= next) {
			struct xs_looks looks = xs_look("*", target->only);

			xs_looks_free(&looks);
			next = now + EVERY_MS * 1000000ull;
		}
	}
}

static int run(const struct target *target, const char *spec)
{
	int failed = 0;

	if (target->socket >= 0)
		serve(target);
	while (!ended && !failed) {
		failed = write_file(target, spec);
		(void)poll(NULL, 0, failed ? 0 : EVERY_MS);
	}
	return failed ? XS_EXIT_SELF : 0;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = note };
	sigset_t none;

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- by itself ---- */

int xs_export(const struct xs_options *options)
{
	struct target target = { .socket = -1 };

	catch_signals();
	if (open_target(&target, options->export) < 0)
		return XS_EXIT_SELF;
	if (target.address[0])
		xs_tell("[INFO] Numbers of this user's runs: %s\n", target.address);
	return run(&target, options->export);
}

/* ---- beside an application ---- */

/*
 * No exec: it is this program. What ties the launcher to others (the drain process's channel) must
 * not be open twice.
 */
int xs_export_start(struct xs_launch *launch)
{
	const char *spec = launch->options->export;
	struct target target = { .socket = -1, .only = launch };
	int launcher = getpid(), pid;

	if (!spec[0] || open_target(&target, spec) < 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)setsid();
		(void)close(launch->drain);
		(void)close(launch->directory);
		if (launch->counters >= 0)
			(void)close(launch->counters);
		catch_signals();
		if (getppid() != launcher)
			_exit(0);
		_exit(run(&target, spec));
	}
	if (target.socket >= 0)
		(void)close(target.socket);
	if (pid < 0)
		tell(spec, strerror(errno));
	else if (target.address[0])
		xs_tell("[INFO] Numbers of this run: %s\n", target.address);
	return pid < 0 ? 0 : pid;
}
