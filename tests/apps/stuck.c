/*
 * Threads that are at known places: xstrace --stacks and its like say where.
 *
 *	stuck threads N		N threads, each in hold_<n mod 4>(); until stdin ends
 *	stuck calls		a thread for each system call that waits; what it returned after 2 s
 *	stuck churn S		threads come and go for S seconds
 *	stuck vfork S		a child of vfork() sleeps S seconds, its parent's thread cannot stop
 *	stuck exec S		becomes other programs for S seconds
 *	stuck guard		PR_SET_DUMPABLE 0; until stdin ends
 *	stuck spoilt		threads whose registers and stacks lead nowhere; until stdin ends
 *	stuck silent S		a task, nothing for S seconds, a task
 *	stuck crash HOW		ends by a signal
 */
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "itt_app.h"

static sem_t never;

static void task(const char *name)
{
	__itt_domain *domain = __itt_domain_create("stuck");

	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create(name));
	__itt_task_end(domain);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void until_stdin_ends(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
}

/* ---- threads ---- */

#define HOLD(n)                                              \
	__attribute__((noinline)) void hold_##n(int deeper); \
	__attribute__((noinline)) void hold_##n(int deeper)  \
	{                                                    \
		if (deeper)                                  \
			hold_##n(deeper - 1);                \
		else                                         \
			sem_wait(&never);                    \
		__asm__ volatile("");                        \
	}
HOLD(0)
HOLD(1)
HOLD(2)
HOLD(3)

static void *hold(void *arg)
{
	static void (*const places[])(int) = { hold_0, hold_1, hold_2, hold_3 };
	long n = (long)arg;

	task("held");
	places[n % 4]((int)(n % 4));
	return NULL;
}

static void run_threads(int count)
{
	for (long i = 0; i < count; i++)
		start_thread(hold, (void *)i);
	sleep_ms(200);
	task("main");
	ready();
	until_stdin_ends();
}

/* ---- system calls ---- */

struct call {
	const char *name;
	long (*make)(void);
	long result;
	int error;
	uint64_t took;
};

static struct timespec two = { 2, 0 };

static long call_nanosleep(void)
{
	return nanosleep(&two, NULL);
}

static long call_poll(void)
{
	return poll(NULL, 0, 2000);
}

static long call_select(void)
{
	return select(0, NULL, NULL, NULL, &(struct timeval){ 2, 0 });
}

static long call_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_create1(0), &event, 1, 2000);
}

static long call_futex(void)
{
	static int word;

	return syscall(SYS_futex, &word, 0, 0, &two);
}

/* Its other end is written to, or closed, after two seconds. */
static void *write_later(void *arg)
{
	sleep_ms(2000);
	(void)!write((int)(long)arg, "x", 1);
	return NULL;
}

static long call_read(void)
{
	int ends[2];
	char c;

	if (pipe(ends))
		die("pipe");
	start_thread(write_later, (void *)(long)ends[1]);
	return read(ends[0], &c, 1);
}

static long call_recv(void)
{
	int ends[2];
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair");
	start_thread(write_later, (void *)(long)ends[1]);
	return recv(ends[0], &c, 1, 0);
}

static long call_recv_timeout(void)
{
	int ends[2];
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair");
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 2, 0 },
		   sizeof(struct timeval));
	return recv(ends[0], &c, 1, 0);
}

static long call_semtimedop(void)
{
	int set = semget(IPC_PRIVATE, 1, 0600);
	long result = semtimedop(set, &(struct sembuf){ 0, -1, 0 }, 1, &two);
	int error = errno;

	semctl(set, 0, IPC_RMID);
	errno = error;
	return result;
}

static long call_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &two);
}

static long call_waitpid(void)
{
	int pid = fork();

	if (!pid) {
		sleep_ms(2000);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static struct call calls[] = {
	{ .name = "nanosleep", .make = call_nanosleep },
	{ .name = "poll", .make = call_poll },
	{ .name = "select", .make = call_select },
	{ .name = "epoll_wait", .make = call_epoll_wait },
	{ .name = "futex", .make = call_futex },
	{ .name = "read", .make = call_read },
	{ .name = "recv", .make = call_recv },
	{ .name = "recv_timeout", .make = call_recv_timeout },
	{ .name = "semtimedop", .make = call_semtimedop },
	{ .name = "sigtimedwait", .make = call_sigtimedwait },
	{ .name = "waitpid", .make = call_waitpid },
};

static void *make_call(void *arg)
{
	struct call *call = arg;
	uint64_t begin = now_ns();

	call->result = call->make();
	call->error = call->result < 0 ? errno : 0;
	call->took = now_ns() - begin;
	return NULL;
}

static void run_calls(void)
{
	pthread_t threads[ARRAY_SIZE(calls)];

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		threads[i] = start_thread(make_call, &calls[i]);
	sleep_ms(200);
	task("main");
	ready();
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		pthread_join(threads[i], NULL);
		printf("%s: %ld %s%s\n", calls[i].name, calls[i].result,
		       calls[i].error ? strerrorname_np(calls[i].error) : "0",
		       calls[i].took < 1900000000 ? " early" : "");
	}
}

/* ---- processes that do not keep still ---- */

static void *come_and_go(void *arg)
{
	(void)arg;
	task("short");
	return NULL;
}

static void run_churn(int seconds)
{
	uint64_t end = now_ns() + (uint64_t)seconds * 1000000000;
	unsigned long count = 0;

	ready();
	for (; now_ns() < end; count++) {
		pthread_t threads[4];

		for (int i = 0; i < 4; i++)
			threads[i] = start_thread(come_and_go, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	printf("expected: %lu tasks stuck::short\n", 4 * count);
}

static void run_vfork(int seconds)
{
	task("main");
	ready();
	if (vfork() == 0) {
		struct timespec time = { seconds, 0 };

		syscall(SYS_nanosleep, &time, NULL);
		_exit(0);
	}
	puts("over");
}

static void run_exec(char **argv, uint64_t until)
{
	char text[32];

	task("image");
	if (!until)
		ready();
	if (!until)
		until = now_ns() + strtoull(argv[2], NULL, 10) * 1000000000;
	if (now_ns() > until) {
		puts("over");
		return;
	}
	sleep_ms(30); /* each image makes a trace */
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)until);
	execl("/proc/self/exe", argv[0], "exec", argv[2], text, NULL);
	die("exec");
}

/* A stack of our own making, where nothing leads anywhere. */
static void *spoil(void *arg)
{
	static const uintptr_t words[] = { 0, 8, 0x4141414141414141, (uintptr_t)-8, 1 };
	long n = (long)arg;
	uintptr_t *stack =
		mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t *top = stack + (1 << 13) - (n % 4 ? 64 : 1);

	/* frames that lead to each other for ever, to code that is none, or to the end of memory */
	for (uintptr_t *at = stack; at < stack + (1 << 13); at++)
		*at = n % 3 ? words[n % 5] : (uintptr_t)at;
	__asm__ volatile("mov %0, %%rsp\n\tmov %1, %%rbp\n\t"
			 "1: mov $34, %%eax\n\tsyscall\n\tjmp 1b" /* pause() */
			 :
			 : "r"(top), "r"(n % 2 ? (uintptr_t)top : words[n % 5])
			 : "memory");
	return NULL;
}

static void run_spoilt(void)
{
	for (long i = 0; i < 30; i++)
		start_thread(spoil, (void *)i);
	sleep_ms(200);
	task("main");
	ready();
	until_stdin_ends();
	_exit(0);
}

/* ---- ends ---- */

__attribute__((noinline)) int overflow(int n);
__attribute__((noinline)) int overflow(int n)
{
	volatile char room[4096];

	room[0] = (char)n;
	return n < 1 << 30 ? overflow(n + 1) + room[0] : 0;
}

__attribute__((noinline)) void fault(int *where);
__attribute__((noinline)) void fault(int *where)
{
	*where = 1;
	__asm__ volatile("");
}

static void own_handler(int number)
{
	printf("own %d\n", number);
	fflush(stdout);
	_exit(7);
}

__attribute__((noinline)) static int run_crash(const char *how)
{
	struct sigaction old;

	start_thread(hold, (void *)2);
	sleep_ms(100);
	task("main");
	sigaction(SIGSEGV, NULL, &old);
	printf("old %d\n", old.sa_handler == SIG_DFL);
	printf("signal %d\n", signal(SIGBUS, SIG_DFL) == SIG_DFL);
	fflush(stdout);
	if (!strcmp(how, "segv"))
		fault((int *)8);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "overflow"))
		return overflow(0);
	if (!strcmp(how, "raise"))
		raise(SIGFPE);
	if (!strcmp(how, "ignored")) {
		signal(SIGSEGV, SIG_IGN);
		raise(SIGSEGV);
	}
	if (!strcmp(how, "own")) {
		signal(SIGSEGV, own_handler);
		fault((int *)8);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int number = argc > 2 ? atoi(argv[2]) : 0;

	sem_init(&never, 0, 0);
	if (!strcmp(what, "threads"))
		run_threads(number);
	else if (!strcmp(what, "calls"))
		run_calls();
	else if (!strcmp(what, "churn"))
		run_churn(number);
	else if (!strcmp(what, "vfork"))
		run_vfork(number);
	else if (!strcmp(what, "exec"))
		run_exec(argv, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	else if (!strcmp(what, "spoilt"))
		run_spoilt();
	else if (!strcmp(what, "crash"))
		return run_crash(argc > 2 ? argv[2] : "");
	else if (!strcmp(what, "guard")) {
		prctl(PR_SET_DUMPABLE, 0);
		task("main");
		ready();
		until_stdin_ends();
	} else if (!strcmp(what, "silent")) {
		task("first");
		ready();
		sleep_ms(number * 1000);
		task("second");
		sleep_ms(number * 1000);
	} else {
		fprintf(stderr, "stuck: unknown '%s'\n", what);
		return 99;
	}
	return 0;
}
