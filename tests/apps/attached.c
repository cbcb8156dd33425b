/*
 * What --attach is tried on: attached KIND, until its stdin ends. Each kind does something that a
 * tool which stops threads or interrupts calls would spoil, notices when it was spoilt, and prints
 * a line for each such case at its end; the last line says how much was done.
 *
 *	waits	each way to wait, in a thread of its own, for a millisecond at a time
 *	threads	threads that begin, add up and end
 *	forks	children, each with a status of its own
 *	execs	becomes itself again and again
 *	busy	hot() and warm(), 3 to 1, in one thread
 *	sums	adds up in one thread
 *	headless	as busy, and the main thread ends
 */
#include "app.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile bool ending;
static volatile unsigned long done, spoilt;

static void spoil(const char *what, long result)
{
	__atomic_fetch_add(&spoilt, 1, __ATOMIC_RELAXED);
	printf("spoilt: %s: %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

/* ---- waits ---- */

#define SHORT_NS 1000000
#define WAITS	 11

static int watched, pair[2], ends[2], semaphore;
static pthread_t waiting[WAITS];
static char much[1 << 20];

static long wait_semaphore(struct timespec *time)
{
	struct sembuf take = { .sem_op = -1 };

	return semtimedop(semaphore, &take, 1, time);
}

static long wait_signal(struct timespec *time)
{
	sigset_t none;

	sigemptyset(&none);
	sigaddset(&none, SIGUSR2);
	return sigtimedwait(&none, NULL, time);
}

static long wait_once(int how)
{
	struct timespec time = { .tv_nsec = SHORT_NS };
	struct timeval tv = { .tv_usec = SHORT_NS / 1000 };
	struct epoll_event event;
	char bytes[8];
	int word = 0;

	switch (how) {
	case 0:
		return nanosleep(&time, NULL);
	case 1:
		return -clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	case 2:
		return poll(NULL, 0, 1);
	case 3:
		return epoll_wait(watched, &event, 1, 1);
	case 4:
		return select(0, NULL, NULL, NULL, &tv);
	case 5:
		return pselect(0, NULL, NULL, NULL, &time, NULL);
	case 6:
		return ppoll(NULL, 0, &time, NULL);
	case 7:
		return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0);
	case 8:
		return wait_semaphore(&time);
	case 9:
		return wait_signal(&time);
	default:
		return recv(pair[0], bytes, sizeof(bytes), 0);
	}
}

static void *wait_often(void *arg)
{
	static const char *const names[WAITS] = {
		"nanosleep", "clock_nanosleep", "poll",	      "epoll_wait",   "select", "pselect",
		"ppoll",     "futex",		"semtimedop", "sigtimedwait", "recv"
	};
	int how = (int)(intptr_t)arg;

	while (!ending) {
		uint64_t begin = now_ns();
		long result = wait_once(how);

		if (result < 0 && (errno == EINTR || result == -EINTR))
			spoil(names[how], result);
		else if (now_ns() - begin < SHORT_NS / 2)
			spoil("a wait that was too short", how);
		__atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *write_often(void *arg)
{
	while (!ending) {
		ssize_t n = write(ends[1], much, sizeof(much));

		if (n != (ssize_t)sizeof(much))
			spoil("write", n);
	}
	return arg;
}

static void *read_often(void *arg)
{
	static char bytes[1 << 16];

	while (!ending) {
		ssize_t n = read(ends[0], bytes, sizeof(bytes));

		if (n <= 0)
			spoil("read", n);
		sleep_ms(1);
	}
	return arg;
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
	(void)number;
	alarms++;
}

static void begin_waits(void)
{
	const struct timeval limit = { .tv_usec = SHORT_NS / 1000 };
	const struct itimerval every = { { 0, 5000 }, { 0, 5000 } };
	sigset_t set;

	watched = epoll_create1(0);
	semaphore = semget(IPC_PRIVATE, 1, 0600 | IPC_CREAT);
	if (watched < 0 || semaphore < 0 || pipe(ends) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
		die("waits");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGALRM); /* it interrupts the main thread alone */
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (intptr_t i = 0; i < WAITS; i++)
		waiting[i] = start_thread(wait_often, (void *)i);
	(void)start_thread(write_often, NULL);
	(void)start_thread(read_often, NULL);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)signal(SIGALRM, count_alarm);
	(void)setitimer(ITIMER_REAL, &every, NULL);
}

static void end_waits(void)
{
	const struct itimerval never = { { 0 }, { 0 } };

	(void)setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < WAITS; i++)
		(void)pthread_join(waiting[i], NULL);
	(void)semctl(semaphore, 0, IPC_RMID);
	if (!alarms)
		spoil("no alarm came", 0);
}

/* ---- threads, forks, execs, busy ---- */

static void *add_up(void *arg)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < 20000; i++)
		sum += i ^ (unsigned long)(uintptr_t)arg;
	return (void *)(uintptr_t)sum;
}

static void *sum_often(void *arg)
{
	void *expected = add_up(arg);

	for (; !ending; done++)
		if (add_up(arg) != expected)
			spoil("a sum", 0);
	return arg;
}

static void *begin_threads(void *arg)
{
	void *expected = add_up((void *)7), *sum;

	while (!ending) {
		pthread_t threads[8];

		for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
			threads[i] = start_thread(add_up, (void *)7);
		for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
			(void)pthread_join(threads[i], &sum);
			if (sum != expected)
				spoil("a sum", (long)(intptr_t)sum);
			done++;
		}
	}
	return arg;
}

static void *fork_often(void *arg)
{
	for (int i = 0; !ending; i = (i + 1) % 100) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(i);
		if (child < 0 || waitpid(child, &status, 0) != child)
			spoil("waitpid", child);
		else if (!WIFEXITED(status) || WEXITSTATUS(status) != i)
			spoil("a status", status);
		done++;
	}
	return arg;
}

static volatile unsigned long heat;

static __attribute__((noipa)) void hot(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		heat += i;
}

static __attribute__((noipa)) void warm(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		heat ^= i;
}

static void *be_busy(void *arg)
{
	for (; !ending; done++) {
		uint64_t begin = now_ns();

		while (now_ns() - begin < 30000000)
			hot(100000);
		begin = now_ns();
		while (now_ns() - begin < 10000000)
			warm(100000);
	}
	return arg;
}

/* Its stdin is looked at in between: it is the test's to end. */
static int exec_often(char **argv)
{
	unsigned long turns = argv[2] ? strtoul(argv[2], NULL, 10) : 0;
	char number[24], *again[] = { argv[0], argv[1], number, NULL };
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };

	if (!turns)
		puts("runs");
	(void)fflush(stdout);
	if (poll(&in, 1, 5)) {
		printf("done: %lu\n", turns);
		return 0;
	}
	(void)snprintf(number, sizeof(number), "%lu", turns + 1);
	execv("/proc/self/exe", again);
	die("execv");
}

static void *wait_for_the_end(void *kind)
{
	char byte;

	puts("runs");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	ending = true;
	if (!strcmp(kind, "waits"))
		end_waits();
	printf("done: %lu\n", done);
	(void)fflush(stdout);
	_exit(spoilt ? 1 : 0);
}

int main(int argc, char **argv)
{
	char nothing[] = "", *kind = argc > 1 ? argv[1] : nothing;

	if (!strcmp(kind, "execs"))
		return exec_often(argv);
	if (!strcmp(kind, "waits"))
		begin_waits();
	else
		(void)start_thread(!strcmp(kind, "threads") ? begin_threads
				   : !strcmp(kind, "forks") ? fork_often
				   : !strcmp(kind, "sums")  ? sum_often
							    : be_busy,
				   NULL);
	if (strcmp(kind, "headless") != 0)
		(void)wait_for_the_end(kind);
	(void)start_thread(wait_for_the_end, kind);
	pthread_exit(NULL);
}
