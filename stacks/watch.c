/*
 * The threads of a process over time, by /proc alone: none of them is disturbed.
 *
 * A thread that has not been on a processor since the last look is where it was, and nothing more
 * is read of it. One that sleeps tells in which system call and with which stack pointer. Where
 * more of its registers are needed, it can be held once in each sleep, but only in a call that the
 * kernel lets begin anew without a trace; any other sleeper is left alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stacks.h"

#define SPARE 64u /* descriptors that are left for all else */

static ssize_t read_file(const struct xs_watch *watch, pid_t tid, const char *name, char *text,
			 size_t size)
{
	char path[48];
	int fd;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%d/%s", tid, name);
	fd = openat(watch->tasks, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

static bool is_filtered(const struct xs_watch *watch)
{
	char text[4096], *line;

	(void)read_file(watch, watch->pid, "status", text, sizeof(text));
	line = strstr(text, "\nSeccomp:");
	return !line || strtol(line + 9, NULL, 10) != 0;
}

int xs_watch_open(struct xs_watch *watch, pid_t pid)
{
	struct rlimit files;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	*watch = (struct xs_watch){ .pid = pid,
				    .tasks = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	if (watch->tasks < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	watch->list = calloc(XS_THREADS_MAX, sizeof(*watch->list));
	if (!watch->list)
		return -ENOMEM;
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
		watch->descriptors = files.rlim_cur < 2 * XS_THREADS_MAX
					     ? (int)files.rlim_cur - (int)SPARE
					     : (int)(2 * XS_THREADS_MAX);
	}
	return 0;
}

/* ---- one thread ---- */

/* How long it was on processors, and how often it was put there. False: it has ended. */
static bool read_run(const struct xs_watch *watch, struct xs_watched *thread)
{
	unsigned long long cpu = 0, waited = 0, slices = 0;
	char path[48], text[96];
	int fd = thread->run;
	ssize_t n;

	if (fd < 0) {
		(void)snprintf(path, sizeof(path), "%d/schedstat", thread->tid);
		fd = openat(watch->tasks, path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return false;
	}
	n = pread(fd, text, sizeof(text) - 1, 0);
	if (fd < watch->descriptors && n > 0)
		thread->run = fd;
	else {
		close(fd);
		thread->run = -1;
	}
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%llu %llu %llu", &cpu, &waited, &slices) < 3)
		return false;
	thread->changed = cpu != thread->cpu || slices != thread->slices;
	thread->cpu = cpu;
	/* it has but gone back to sleep */
	thread->ours = slices != thread->slices && slices <= thread->slices + thread->grace;
	thread->slices = slices;
	return true;
}

/* "tid (name) state …"; the name may hold anything. */
static bool read_state(const struct xs_watch *watch, struct xs_watched *thread)
{
	char text[256], *open, *close;

	if (read_file(watch, thread->tid, "stat", text, sizeof(text)) <= 0)
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ')
		return false;
	thread->state = close[2];
	*close = '\0';
	if (strncmp(thread->name, open + 1, sizeof(thread->name) - 1) != 0)
		thread->named = false;
	(void)snprintf(thread->name, sizeof(thread->name), "%.15s", open + 1);
	return true;
}

/* Where it sleeps: "number arguments… sp pc", "-1 sp pc" outside of calls, or "running". */
static bool read_call(const struct xs_watch *watch, const struct xs_watched *thread, int *ret_call,
		      uintptr_t *ret_sp, uintptr_t *ret_pc)
{
	char text[256], *pc, *sp;

	if (read_file(watch, thread->tid, "syscall", text, sizeof(text)) <= 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	pc = strrchr(text, ' ');
	if (!pc)
		return false;
	*pc = '\0';
	sp = strrchr(text, ' ');
	if (!sp)
		return false;
	*ret_call = (int)strtol(text, NULL, 10);
	*ret_sp = strtoull(sp + 1, NULL, 16);
	*ret_pc = strtoull(pc + 1, NULL, 16);
	return *ret_sp && *ret_pc;
}

bool xs_watch_sleeps(const struct xs_watch *watch, const struct xs_watched *thread)
{
	uintptr_t sp, pc;
	int call;

	return read_call(watch, thread, &call, &sp, &pc) && sp == thread->sp && pc == thread->pc;
}

/*
 * Calls that begin anew when their thread was held: by the kernel, with the time that is left, and
 * with nothing that the program could see. Of others some return EINTR, some what they have done so
 * far (a write of many bytes).
 */
static bool can_be_held(int call)
{
	switch (call) {
	case SYS_futex:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_poll:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_pause:
	case SYS_restart_syscall:
		return true;
	default:
		return false;
	}
}

static void look_at_sleeper(const struct xs_watch *watch, struct xs_watched *thread)
{
	uintptr_t sp, pc;
	int call;

	thread->grace = 0;
	if (!read_call(watch, thread, &call, &sp, &pc)) {
		thread->look = XS_LOOK_HOLD; /* it has just woken */
		thread->state = 'R';
		thread->sp = 0;
		return;
	}
	if (thread->ours && sp == thread->sp && pc == thread->pc)
		return;
	thread->call = call;
	thread->sp = sp;
	thread->pc = pc;
	thread->look = XS_LOOK_ASLEEP;
	thread->can_be_held = thread->state == 'S' && !watch->filtered && can_be_held(call);
}

static bool look_at(const struct xs_watch *watch, struct xs_watched *thread)
{
	const bool ran = thread->state == 'R' || !thread->state || thread->look == XS_LOOK_HOLD;

	thread->look = XS_LOOK_NONE;
	if (!read_run(watch, thread))
		return false;
	if (!ran && !thread->changed)
		return true;
	thread->changed = true;
	if (!read_state(watch, thread))
		return false;
	switch (thread->state) {
	case 'R':
		thread->look = XS_LOOK_HOLD;
		thread->sp = 0;
		thread->grace = 0;
		return true;
	case 'S':
	case 'D':
	case 'T':
	case 't':
		look_at_sleeper(watch, thread);
		return true;
	default:
		return false; /* it has ended, and waits for who is to know it */
	}
}

/* ---- all of them ---- */

/* They come in one order: the next one is mostly the one that is expected. */
static struct xs_watched *find(struct xs_watch *watch, pid_t tid, size_t *at)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct xs_watched *thread = &watch->list[(*at + i) % watch->count];

		if (thread->tid == tid) {
			*at = (size_t)(thread - watch->list) + 1;
			return thread;
		}
	}
	if (watch->count == XS_THREADS_MAX) {
		watch->more = true;
		return NULL;
	}
	watch->list[watch->count] = (struct xs_watched){
		.tid = tid,
		.inner = xs_thread_inner(watch->pid, tid),
		.run = -1,
		.call = -1,
		.stack = XS_NO_STACK,
	};
	*at = watch->count + 1;
	return &watch->list[watch->count++];
}

bool xs_watch_look(struct xs_watch *watch)
{
	int fd = openat(watch->tasks, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t at = 0, alive = 0;

	if (fd >= 0 && !dir)
		close(fd);
	watch->filtered = is_filtered(watch);
	for (size_t i = 0; i < watch->count; i++)
		watch->list[i].seen = false;
	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct xs_watched *thread = tid > 0 ? find(watch, tid, &at) : NULL;

		if (!thread)
			continue;
		thread->seen = look_at(watch, thread);
		alive += thread->seen;
	}
	if (dir)
		(void)closedir(dir);
	for (size_t i = 0; i < watch->count; i++)
		watch->list[i].ended = !watch->list[i].seen;
	return alive;
}

void xs_watch_sweep(struct xs_watch *watch)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->count; i++) {
		if (!watch->list[i].ended) {
			watch->list[kept++] = watch->list[i];
			continue;
		}
		xs_perf_close(watch->list[i].perf);
		if (watch->list[i].run >= 0)
			close(watch->list[i].run);
	}
	watch->count = kept;
}
