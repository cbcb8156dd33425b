/*
 * Holding threads for a moment, by ptrace.
 *
 * They are seized, which sends no signal, and interrupted: a system call that is interrupted so
 * begins anew, but for a few (docs/STACKS.md). All threads are seized first and then interrupted,
 * so the first stands still for hardly longer than the last. What is read of them meanwhile is
 * their registers and stacks. If this program dies, the kernel lets them go.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "stacks.h"

#define ROUNDS	    4		   /* looks for threads that have begun meanwhile */
#define PATIENCE_NS 150000000u	   /* until all stand still: one may be in the middle of vfork() */
#define STACK	    (256u << 10)   /* that is copied of a thread, */
#define STACKS	    (128ull << 20) /* and of all */
#define STACK_ONE   (64u << 10)	   /* where a thread alone is held */
#define SOON_NS	    100000000u	   /* in which it stops, if it gets a processor, */
#define AT_ONCE_NS  2000000u	   /* and mostly does */

static uint64_t now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- who is there ---- */

static struct xs_thread *find(struct xs_threads *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads->list[i].tid == tid)
			return &threads->list[i];
	return NULL;
}

/* "tid (name) state …"; the name may hold anything. False: it has ended. */
static bool look_at(pid_t pid, struct xs_thread *thread)
{
	char path[64], text[256], *open, *close;
	FILE *file;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, thread->tid);
	file = fopen(path, "re");
	n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file)
		(void)fclose(file);
	text[n] = '\0';
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ')
		return false;
	thread->state = close[2];
	*close = '\0';
	(void)snprintf(thread->name, sizeof(thread->name), "%s", open + 1);
	return thread->state != 'Z' && thread->state != 'X';
}

pid_t xs_thread_inner(pid_t pid, pid_t tid)
{
	char path[64], line[256], *last;
	pid_t inner = tid;
	FILE *file;

	if (xs_pid_namespace(pid) == xs_pid_namespace(0))
		return tid;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		inner = last ? (pid_t)strtol(last, NULL, 10) : tid;
		break;
	}
	if (file)
		(void)fclose(file);
	return inner;
}

/* Those that are not known yet. How many. */
static size_t find_new(struct xs_threads *threads)
{
	char path[32];
	struct dirent *entry;
	size_t before = threads->count;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", threads->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		struct xs_thread thread = { .tid = (pid_t)strtol(entry->d_name, NULL, 10) };

		if (thread.tid <= 0 || find(threads, thread.tid) || !look_at(threads->pid, &thread))
			continue;
		if (threads->count == XS_THREADS_MAX) {
			threads->more = true;
			break;
		}
		thread.inner = xs_thread_inner(threads->pid, thread.tid);
		threads->list[threads->count++] = thread;
	}
	if (dir)
		(void)closedir(dir);
	return threads->count - before;
}

/* ---- holding them ---- */

/* By the thread's number: by the process's nothing is seen once the main thread has ended. */
static void copy_stack(struct xs_thread *thread, size_t most)
{
	struct iovec here = { NULL, most < STACK ? most : STACK }, there[STACK / XS_PAGE + 1];
	uintptr_t at;
	ssize_t n;

	/* below it lies what functions use that call nobody */
	at = thread->stack = (uintptr_t)thread->registers.rsp - 128;
	here.iov_base = thread->bytes = malloc(here.iov_len);
	if (!here.iov_base)
		return;
	/* page by page: the kernel reads up to the first that is not there */
	for (size_t i = 0, left = here.iov_len; i < STACK / XS_PAGE + 1; i++) {
		size_t size = XS_PAGE - at % XS_PAGE;

		size = size < left ? size : left;
		there[i] = (struct iovec){ (void *)at, size };
		at += size;
		left -= size;
	}
	n = process_vm_readv(thread->tid, &here, 1, there, STACK / XS_PAGE + 1, 0);
	thread->stack_bytes = n > 0 ? (size_t)n : 0;
}

static void copy(struct xs_thread *thread, size_t most)
{
	struct iovec registers = { &thread->registers, sizeof(thread->registers) };

	/* NT_PRSTATUS: the general registers */
	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)1, &registers) < 0)
		return;
	thread->copied = true;
	copy_stack(thread, most);
}

void xs_thread_copy_stack(struct xs_thread *thread)
{
	thread->copied = thread->untouched = true;
	copy_stack(thread, STACK_ONE);
}

void xs_thread_forget(struct xs_thread *thread)
{
	free(thread->bytes);
	free(thread->python);
	thread->bytes = NULL;
	thread->python = NULL;
}

/* True: nothing more is to be expected of it. most: bytes of its stack. */
static bool settle(struct xs_thread *thread, size_t most)
{
	int status;
	pid_t pid;

	if (!thread->seized || thread->held)
		return true;
	pid = waitpid(thread->tid, &status, __WALL | WNOHANG);
	if (!pid)
		return false;
	if (pid < 0 || !WIFSTOPPED(status)) {
		thread->seized = false; /* it has ended, or become another by exec */
		return true;
	}
	thread->held = true;
	/* it was about to get a signal, and gets it when it goes on */
	thread->signal = status >> 16 ? 0 : WSTOPSIG(status);
	copy(thread, most);
	return true;
}

static void seize(struct xs_threads *threads, size_t from)
{
	for (size_t i = from; i < threads->count; i++) {
		struct xs_thread *thread = &threads->list[i];

		thread->seized = !ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL);
		thread->error = thread->seized ? 0 : errno;
	}
	for (size_t i = from; i < threads->count; i++)
		if (threads->list[i].seized)
			(void)ptrace(PTRACE_INTERRUPT, threads->list[i].tid, NULL, NULL);
}

static void wait_for_all(struct xs_threads *threads, uint64_t until)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	bool all;

	do {
		all = true;
		for (size_t i = 0; i < threads->count; i++)
			all &= settle(&threads->list[i], STACKS / threads->count);
		if (!all)
			(void)nanosleep(&pause, NULL);
	} while (!all && now() < until);
}

int xs_threads_copy(struct xs_threads *threads, pid_t pid)
{
	uint64_t begin, until;
	int error = -ESRCH;
	size_t held = 0, known = 0; /* held: or was to be */

	*threads = (struct xs_threads){ .pid = pid,
					.list = calloc(XS_THREADS_MAX, sizeof(*threads->list)) };
	if (!threads->list)
		return -ENOMEM;
	(void)find_new(threads);
	begin = now();
	until = begin + PATIENCE_NS;
	for (int round = 0; round < ROUNDS && threads->count > known; round++) {
		size_t from = known;

		known = threads->count;
		seize(threads, from);
		wait_for_all(threads, until);
		(void)find_new(threads);
	}
	xs_python_list();
	xs_python_copy(threads);
	for (size_t i = 0; i < threads->count; i++) {
		struct xs_thread *thread = &threads->list[i];

		held += thread->held || thread->seized;
		if (thread->held)
			(void)ptrace(PTRACE_DETACH, thread->tid, NULL,
				     (void *)(uintptr_t)thread->signal);
		else if (thread->error && thread->error != ESRCH)
			error = -thread->error;
	}
	threads->still = now() - begin;
	return held ? 0 : error;
}

/* ---- one by one ---- */

/* Is a signal about to be handled by the thread? */
static bool has_signal(pid_t pid, pid_t tid)
{
	unsigned long long own = 0, shared = 0, blocked = 0;
	char path[64], line[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "SigPnd: %llx", &own);
		(void)sscanf(line, "ShdPnd: %llx", &shared);
		(void)sscanf(line, "SigBlk: %llx", &blocked);
	}
	if (file)
		(void)fclose(file);
	return !file || ((own | shared) & ~blocked);
}

/*
 * The thread was running when it was looked at, and has begun a system call just before it was to
 * stop. Most calls begin anew by themselves. Those that would return EINTR have done nothing yet,
 * and are made to begin anew here, as if the thread had come to them that little bit later. Not if
 * a signal has come, too: then the program expects EINTR. Calls that change the mask of signals are
 * left alone.
 */
static bool mend(pid_t pid, const struct xs_thread *thread)
{
	const struct user_regs_struct *r = &thread->registers;

	switch ((long long)r->orig_rax) {
	case SYS_epoll_wait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_io_getevents:
	case SYS_rt_sigtimedwait:
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
		break;
	default:
		return false;
	}
	if ((long long)r->rax != -EINTR || thread->signal || has_signal(pid, thread->tid))
		return false;
	/* 2: the bytes of the instruction syscall */
	return !ptrace(PTRACE_POKEUSER, thread->tid, offsetof(struct user, regs.rax),
		       r->orig_rax) &&
	       !ptrace(PTRACE_POKEUSER, thread->tid, offsetof(struct user, regs.rip), r->rip - 2);
}

static void let_go(struct xs_threads *threads, struct xs_thread *thread, uint64_t since,
		   struct xs_held *held)
{
	uint64_t ns;

	xs_python_copy_one(thread);
	held->mended += thread->copied && mend(threads->pid, thread);
	(void)ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(uintptr_t)thread->signal);
	thread->seized = false;
	ns = now() - since;
	held->threads++;
	held->ns += ns;
	if (ns > held->longest)
		held->longest = ns;
}

static void pause_for(long ns)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

void xs_threads_visit(struct xs_threads *threads, struct xs_held *held)
{
	uint64_t begin = now(), last = begin;
	bool all;

	xs_python_list();
	seize(threads, 0);
	do { /* `last`: when those had not stopped yet that are found stopped next */
		all = true;
		for (size_t i = 0; i < threads->count; i++) {
			struct xs_thread *thread = &threads->list[i];

			if (!thread->seized)
				continue;
			last = now();
			all &= settle(thread, STACK_ONE);
			if (thread->held)
				let_go(threads, thread, last, held);
		}
		if (!all && now() - begin > 100000)
			pause_for(now() - begin < AT_ONCE_NS ? 20000 : 200000);
	} while (!all && now() - begin < SOON_NS);
	for (size_t i = 0; i < threads->count; i++)
		held->missed += threads->list[i].seized;
}

/* ---- why not ---- */

static long number_in(const char *path, const char *key)
{
	char line[256];
	long number = -1;
	FILE *file = fopen(path, "re");

	while (file && number < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			number = strtol(line + strlen(key), NULL, 10);
	if (file)
		(void)fclose(file);
	return number;
}

static bool is_ours(pid_t pid)
{
	char path[48];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return !stat(path, &st) && st.st_uid == geteuid();
}

void xs_say_why_not(FILE *out, pid_t pid, int error)
{
	long scope = number_in("/proc/sys/kernel/yama/ptrace_scope", ""), tracer;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	tracer = number_in(path, "TracerPid:");
	if (error == -ESRCH || !is_ours(pid) == (access(path, F_OK) < 0 && geteuid()))
		error = access(path, F_OK) < 0 ? -ESRCH : error;
	if (error == -ESRCH)
		fprintf(out, "it has just ended\n");
	else if (tracer > 0)
		fprintf(out, "process %ld traces it already (a debugger, strace)\n", tracer);
	else if (error != -EPERM && error != -EACCES)
		fprintf(out, "%s\n", strerror(-error));
	else if (scope == 3)
		fprintf(out, "kernel.yama.ptrace_scope is 3: nobody may look into another process "
			     "until the next boot\n");
	else if (scope == 2)
		fprintf(out, "kernel.yama.ptrace_scope is 2: only root may look into another "
			     "process (sudo sysctl kernel.yama.ptrace_scope=1)\n");
	else if (geteuid() && !is_ours(pid))
		fprintf(out, "it forbids that itself (PR_SET_DUMPABLE 0), has gained rights, or is "
			     "another user's\n");
	else if (number_in("/proc/self/status", "Seccomp:") > 0)
		fprintf(out, "a sandbox forbids ptrace() (of a container: --cap-add SYS_PTRACE, or "
			     "--security-opt with a seccomp profile that allows it)\n");
	else if (scope == 1)
		fprintf(out,
			"kernel.yama.ptrace_scope is 1, and the program has named somebody else "
			"with PR_SET_PTRACER, or has not joined the run\n");
	else
		fprintf(out, "the kernel does not allow it; this user lacks CAP_SYS_PTRACE\n");
}
