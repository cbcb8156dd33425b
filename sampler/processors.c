/*
 * xstrace-cpu EVENTS US SOCKET: what processors count for the application and all that it
 * starts, until it is told to end (SIGTERM). Started by xstrace --cpu-metrics, it is one more
 * process of the run. The drain process shares its counts among the kernels that ran.
 *
 * The events are made in the child that becomes the application, count from its exec on, and come
 * by the socket. EVENTS, in hexadecimal digits, are bits as in common/cpu_events.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <xstrace/xstrace.h>

#include "clock.h"
#include "cpu_events.h"
#include "state.h"

#define NS 1000000000u

struct counter {
	int fd;
	uint32_t event;
	uint64_t value;
	double told;
	bool was_told;
};

static struct counter counters[XS_CPU_EVENTS];
static uint32_t count, events;
static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

/* False: there is nothing to count by. */
static bool receive(int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(XS_CPU_EVENTS * sizeof(int))];
	} control;
	char word;
	struct iovec part = { .iov_base = &word, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	const struct cmsghdr *head;
	int fds[XS_CPU_EVENTS];

	while (!ended && recvmsg(fd, &message, MSG_CMSG_CLOEXEC) < 0)
		if (errno != EINTR)
			return false;
	(void)close(fd);
	for (uint32_t event = 0; event < XS_CPU_EVENTS; event++)
		if (events >> event & 1)
			counters[count++].event = event;
	head = CMSG_FIRSTHDR(&message);
	if (ended || !head || head->cmsg_type != SCM_RIGHTS ||
	    head->cmsg_len != CMSG_LEN(count * sizeof(int)))
		return false;
	memcpy(fds, CMSG_DATA(head), count * sizeof(int));
	for (uint32_t i = 0; i < count; i++)
		counters[i].fd = fds[i];
	return true;
}

/* What has not changed is not told again. */
static void tell(struct counter *counter, double rate)
{
	char name[64];

	if (counter->was_told && counter->told == rate)
		return;
	counter->was_told = true;
	counter->told = rate;
	(void)snprintf(name, sizeof(name),
		       counter->event == XS_CPU_TASK_CLOCK ? "application: processors used"
							   : "application: %s [1/s]",
		       xs_cpu_event_name(counter->event));
	xstrace_counter(name, rate);
}

/* What others had the counters for is taken to be like the rest; a sum never falls. */
static void read_one(struct counter *counter, uint64_t passed)
{
	uint64_t words[3], value; /* and ns for which it was to count, and did */
	double unit = counter->event == XS_CPU_TASK_CLOCK ? 1 : 1e9;

	if (read(counter->fd, words, sizeof(words)) != sizeof(words))
		return;
	value = words[0];
	if (words[2] && words[2] < words[1])
		value = (uint64_t)((double)words[0] * ((double)words[1] / (double)words[2]));
	if (value < counter->value)
		value = counter->value;
	if (passed)
		tell(counter, unit * (double)(value - counter->value) / (double)passed);
	counter->value = value;
}

static void look(uint64_t *last)
{
	uint64_t values[XS_CPU_EVENTS], time = xs_clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < count; i++)
		read_one(&counters[i], *last ? time - *last : 0);
	for (uint32_t i = 0; i < count; i++)
		values[i] = counters[i].value;
	*last = time;
	xs_table_of_library()->looked(events, values);
}

static void sample(uint64_t interval)
{
	uint64_t next = xs_clock_ns(CLOCK_MONOTONIC), last = 0;

	while (!ended) {
		struct timespec until;

		look(&last);
		next += interval;
		if (next < xs_clock_ns(CLOCK_MONOTONIC))
			next = xs_clock_ns(
				CLOCK_MONOTONIC); /* it was stopped, or the machine is too slow */
		until.tv_sec = (time_t)(next / NS);
		until.tv_nsec = (long)(next % NS);
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	look(&last);
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = end };

	if (argc != 4) {
		fprintf(stderr, "xstrace-cpu: called by xstrace --cpu-metrics\n");
		return 1;
	}
	events = (uint32_t)strtoul(argv[1], NULL, 16) & XS_CPU_ALL;
	(void)sigaction(SIGTERM, &action, NULL);
	(void)xstrace_initialize(true);
	if (receive((int)strtol(argv[3], NULL, 10)))
		sample(1000 * strtoull(argv[2], NULL, 10));
	else if (!ended)
		fprintf(stderr,
			"[WARNING] --cpu-metrics: the application's counters cannot be had; "
			"its tasks have theirs, kernels have none\n");
	return 0;
}
