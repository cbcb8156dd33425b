/*
 * Has functions of its own by names of the C library's, as programs have with fakeroot, libfaketime
 * or an allocator. Their answers are no true ones, and each of them traces a task.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "itt_app.h"

enum { TASKS = 1000, THREADS = 12 }; /* more than there are rings at first */

static __itt_domain *domain;
static __itt_string_handle *inside_name, *name;
static _Atomic long called;

static void trace(void)
{
	static __thread int depth;

	called++;
	if (domain && depth++ < 3)
		finished_task(domain, inside_name);
	depth = domain ? depth - 1 : depth;
}

#define TAKEN(type, function, parameters, answer) \
	type function parameters;                 \
	type function parameters                  \
	{                                         \
		trace();                          \
		return answer;                    \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wnonnull-compare"
TAKEN(pid_t, getpid, (void), 1)
TAKEN(pid_t, gettid, (void), 1)
TAKEN(uid_t, geteuid, (void), 12345)
TAKEN(uid_t, getuid, (void), 12345)
TAKEN(int, fstat, (int fd, struct stat *st), -1)
TAKEN(int, stat, (const char *path, struct stat *st), -1)
TAKEN(int, fchmod, (int fd, mode_t mode), -1)
TAKEN(int, ftruncate, (int fd, off_t size), -1)
TAKEN(int, getrlimit, (__rlimit_resource_t of, struct rlimit *limit), -1)
TAKEN(int, setrlimit, (__rlimit_resource_t of, const struct rlimit *limit), -1)
TAKEN(void *, mmap, (void *at, size_t size, int rights, int flags, int fd, off_t from), MAP_FAILED)
TAKEN(int, munmap, (void *at, size_t size), -1)
TAKEN(int, madvise, (void *at, size_t size, int advice), -1)
TAKEN(int, sched_yield, (void), -1)
TAKEN(int, close, (int fd), -1)

/* goes back by a year each time */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static _Atomic long year;

	trace();
	ts->tv_sec = (100 - year++) * 31536000;
	ts->tv_nsec = 0;
	return 0;
}

static void *work(void *unused)
{
	for (int i = 0; i < TASKS; i++)
		finished_task(domain, name);
	return unused;
}

int main(void)
{
	pthread_t thread[THREADS];
	long before;

	domain = __itt_domain_create("taken");
	name = __itt_string_handle_create("task");
	inside_name = __itt_string_handle_create("inside");
	(void)work(NULL);
	(void)now_ns();
	before = called;
	for (int i = 0; i < THREADS; i++)
		thread[i] = start_thread(work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("asked: %ld\n", called - before);
	printf("process: %ld\n", syscall(SYS_getpid));
	printf("expected: %d tasks taken::task\n", TASKS * (THREADS + 1));
	return 0;
}
