/*
 * Where threads are, when somebody asks (--stacks), nothing is recorded (--watchdog), or a signal
 * is about to end a process (--stacks-on-crash).
 *
 * A program of its own looks at each process (stacks/): what it reads there may be made to crash it
 * or to keep it, and this process goes on reading rings meanwhile. It prints into a file that has
 * no name, which is read when it has ended. Files are searched for names only then, when the
 * threads have long gone on.
 */
#include "where.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths.h"
#include "text.h"
#include "track.h"

#define AT_ONCE	    8u		 /* programs that look */
#define PROCESSES   256u	 /* of the run, that are looked at */
#define PATIENCE_NS 10000000000u /* for all of them; half a second each, mostly some ms */
#define TOLD_MAX    (64u << 20)	 /* bytes that such a program may print */
#define CRASHES_MAX 32u		 /* that are told of a run: who counts them is not believed */

struct look {
	uint32_t serial; /* of the process */
	int32_t watched;
	pid_t program; /* 0: not started, or it has ended */
	int fd;	       /* what it has printed; -1: not started */
	int how;       /* as from waitpid() */
	bool ended;
};

struct xs_where {
	struct look *looks;
	size_t count;
	uint64_t deadline; /* CLOCK_MONOTONIC; 0: nothing is being looked at */
	uint64_t tick;	   /* when it began */
	uint32_t reasons;  /* enum xs_where_reason */
	uint32_t asked, crashes, crashes_told;
	uint64_t crash;
	/* --watchdog: where all rings' heads were, since when, and whether that has been told */
	uint64_t heads, since;
	bool stall_told;
};

struct xs_where *xs_where_open(const struct xs_run *run)
{
	struct xs_where *where = xs_want_stacks(run->options) ? calloc(1, sizeof(*where)) : NULL;

	if (where)
		where->looks = calloc(PROCESSES, sizeof(*where->looks));
	if (!where || where->looks)
		return where;
	free(where);
	return NULL;
}

/* ---- the program that looks ---- */

/* Not with what this process ignores. 0 or why it cannot be run. */
static __attribute__((noinline)) int start(struct look *look)
{
	char path[PATH_MAX], number[16], *argv[] = { "xstrace-stacks", number, NULL };
	pid_t parent = getpid();
	volatile int failed = 0;

	xs_path_of_program("xstrace-stacks", "stacks", path);
	(void)snprintf(number, sizeof(number), "%d", look->watched);
	look->fd = memfd_create("xstrace-stacks", MFD_CLOEXEC);
	if (look->fd < 0)
		return errno;
	look->program = vfork();
	if (look->program == 0) {
		struct sigaction action = { .sa_handler = SIG_DFL };

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 1; i < NSIG; i++)
			(void)sigaction(i, &action, NULL);
		(void)dup2(look->fd, STDOUT_FILENO);
		if (getppid() == parent)
			execv(path, argv);
		failed = errno;
		_exit(XS_EXIT_NOT_RUNNABLE);
	}
	if (look->program < 0) {
		failed = errno;
		look->program = 0;
	}
	return failed;
}

static void say(struct look *look, const char *why)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "E %s\n", why);

	look->ended = true;
	if (look->fd >= 0) /* a file in memory */
		(void)!write(look->fd, line,
			     (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

static void begin_look(struct look *look)
{
	int failed = start(look);

	if (failed)
		say(look, failed == ENOENT ? "this xstrace was built without libunwind"
					   : strerror(failed));
}

/* True: all are over. */
static bool follow(struct xs_where *where, bool late)
{
	size_t running = 0, left = 0;

	for (size_t i = 0; i < where->count; i++) {
		struct look *look = &where->looks[i];
		pid_t ended;

		if (look->ended)
			continue;
		if (!look->program && late) {
			say(look, "there was no time left for it");
			continue;
		}
		if (!look->program && running < AT_ONCE)
			begin_look(look);
		if (look->program && late)
			(void)kill(look->program, SIGKILL);
		ended = look->program ? waitpid(look->program, &look->how, late ? 0 : WNOHANG) : 0;
		if (ended) {
			look->program = 0;
			look->ended = true;
		}
		running += look->program != 0;
		left += !look->ended;
	}
	return !left;
}

/* ---- who asks ---- */

/* Of all rings; it changes when something is recorded, or a process comes or goes. */
static uint64_t heads(const struct xs_loop *loop)
{
	uint64_t sum = 0;

	for (const struct xs_process *p = loop->processes; p; p = p->next)
		for (uint32_t i = 0; i < p->track_count && !xs_process_samples(p); i++)
			sum += p->serial + 1 +
			       atomic_load_explicit(&p->tracks[i]->ring->head,
						    memory_order_relaxed);
	return sum;
}

/* Who is stopped (job control, a debugger) does nothing, and is not stuck. */
static bool is_stopped(pid_t pid)
{
	char path[48], text[256], *end;
	FILE *file;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file)
		(void)fclose(file);
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && (end[2] == 'T' || end[2] == 't');
}

static bool stalls(struct xs_loop *loop)
{
	struct xs_where *where = loop->where;
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC), sum = heads(loop);

	if (!loop->run.options->watchdog || !loop->processes)
		return false;
	if (sum != where->heads || !where->since ||
	    atomic_load_explicit(&loop->run.control->paused, memory_order_relaxed)) {
		where->heads = sum;
		where->since = now;
		where->stall_told = false;
	}
	if (where->stall_told || now - where->since < loop->run.options->watchdog)
		return false;
	if (is_stopped(loop->run.app_pid)) {
		where->since = now;
		return false;
	}
	where->stall_told = true;
	return true;
}

static bool asked(const struct xs_loop *loop)
{
	return atomic_load_explicit(&loop->run.control->stacks_asked, memory_order_acquire) !=
	       loop->where->asked;
}

static bool crashed(const struct xs_loop *loop)
{
	return atomic_load_explicit(&loop->run.mailbox->crashes, memory_order_acquire) !=
	       loop->where->crashes;
}

bool xs_where_due(const struct xs_loop *loop)
{
	return loop->where && !loop->where->deadline && (asked(loop) || crashed(loop));
}

static void begin(struct xs_loop *loop, uint32_t reasons)
{
	struct xs_where *where = loop->where;

	where->asked = atomic_load_explicit(&loop->run.control->stacks_asked, memory_order_acquire);
	where->crashes = atomic_load_explicit(&loop->run.mailbox->crashes, memory_order_acquire);
	where->crash = atomic_load_explicit(&loop->run.mailbox->crash, memory_order_relaxed);
	where->crashes_told += (reasons & XS_WHERE_CRASH) != 0;
	where->reasons = reasons;
	where->tick = xs_tick(loop->run.use_tsc);
	where->deadline = xs_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	where->count = 0;
	(void)xs_loop_find(loop, true);
	(void)xs_loop_read(loop); /* what comes before it in the trace */
	for (const struct xs_process *p = loop->processes; p && where->count < PROCESSES;
	     p = p->next)
		if (p->watched > 0 && !xs_process_samples(p) && !p->exec && !xs_process_ended(p))
			where->looks[where->count++] = (struct look){ .serial = p->serial,
								      .watched = p->watched,
								      .fd = -1 };
}

/* ---- what is told ---- */

static void tell_look(struct xs_loop *loop, struct look *look, struct xs_lines *lines)
{
	off_t size = look->fd < 0 ? -1 : lseek(look->fd, 0, SEEK_END);
	struct xs_process *process = loop->processes;
	char *told;
	ssize_t n;

	while (process && process->serial != look->serial)
		process = process->next;
	if (size > TOLD_MAX)
		size = TOLD_MAX;
	told = process && size >= 0 ? malloc((size_t)size + 1) : NULL;
	n = told ? pread(look->fd, told, (size_t)size, 0) : -1;
	if (n >= 0) {
		told[n] = '\0';
		xs_where_tell(process, told, look->how, loop->where->tick, lines);
	} else {
		xs_lines_add(lines, "Process %d has just ended\n", look->watched);
	}
	free(told);
	if (look->fd >= 0)
		(void)close(look->fd);
}

/* The file that who asks reads; of older ones the newest stays for a while. */
static void write_file(const struct xs_run *run, uint32_t number, const struct xs_lines *lines)
{
	char name[XS_NAME_MAX];
	size_t done = 0;
	int fd;

	for (uint32_t old = number - 1; old && old + 16 > number; old--) {
		xs_stacks_name(name, old - 1);
		(void)unlinkat(run->directory, name, 0);
	}
	xs_stacks_name(name, number);
	fd = openat(run->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	while (fd >= 0 && done < lines->length) {
		ssize_t n = write(fd, lines->text + done, lines->length - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (fd >= 0)
		(void)close(fd);
	if (done < lines->length)
		(void)unlinkat(run->directory, name, 0); /* half of it, or nothing, is no answer */
}

static void tell_reason(const struct xs_loop *loop)
{
	const struct xs_where *where = loop->where;

	if (where->reasons & XS_WHERE_CRASH)
		xs_tell("[WARNING] Signal %u (%s) is about to end a process, in its thread %u. The "
			"threads of the run are here:\n",
			(unsigned)(where->crash & 0xff),
			sigabbrev_np((int)(where->crash & 0xff))
				? sigabbrev_np((int)(where->crash & 0xff))
				: "?",
			(unsigned)(where->crash >> 8));
	else
		xs_tell("[WARNING] The run has recorded nothing for %.1f s. Its threads are "
			"here:\n",
			(double)(xs_clock_ns(CLOCK_MONOTONIC) - where->since) / 1e9);
}

/* Who waits with his end does not wait any longer. */
static void serve_crashes(struct xs_loop *loop, uint32_t number)
{
	struct xs_control *control = loop->run.control;

	loop->where->crashes = number;
	atomic_store_explicit(&control->crashes_served, number, memory_order_release);
	xs_futex_wake(&control->crashes_served);
}

static void end(struct xs_loop *loop)
{
	struct xs_control *control = loop->run.control;
	struct xs_where *where = loop->where;
	struct xs_lines lines = { NULL, 0, 0 };

	for (size_t i = 0; i < where->count; i++)
		tell_look(loop, &where->looks[i], &lines);
	if (!where->count)
		xs_lines_add(&lines, "No process of the run is there\n");
	if (where->reasons & XS_WHERE_SESSION)
		write_file(&loop->run, where->asked, &lines);
	if (where->reasons & (XS_WHERE_WATCHDOG | XS_WHERE_CRASH)) {
		char *rest = lines.text, *line;

		tell_reason(loop);
		while (rest && (line = strsep(&rest, "\n")))
			if (*line)
				xs_tell("[INFO] %s\n", line);
	}
	free(lines.text);
	where->deadline = 0;
	atomic_store_explicit(&control->stacks_served, where->asked, memory_order_release);
	xs_futex_wake(&control->stacks_served);
	serve_crashes(loop, where->crashes);
}

bool xs_where_serve(struct xs_loop *loop)
{
	struct xs_where *where = loop->where;
	uint32_t reasons = 0;

	if (!where)
		return false;
	if (!where->deadline) {
		if (asked(loop))
			reasons |= XS_WHERE_SESSION;
		if (crashed(loop) && where->crashes_told < CRASHES_MAX)
			reasons |= XS_WHERE_CRASH;
		else if (crashed(loop))
			serve_crashes(loop, atomic_load_explicit(&loop->run.mailbox->crashes,
								 memory_order_relaxed));
		if (stalls(loop))
			reasons |= XS_WHERE_WATCHDOG;
		if (!reasons)
			return false;
		begin(loop, reasons);
	}
	if (follow(where, xs_clock_ns(CLOCK_MONOTONIC) > where->deadline))
		end(loop);
	return where->deadline != 0;
}

void xs_where_close(struct xs_where *where)
{
	if (!where)
		return;
	if (where->deadline)
		(void)follow(where, true);
	for (size_t i = 0; where->deadline && i < where->count; i++)
		if (where->looks[i].fd >= 0)
			(void)close(where->looks[i].fd);
	free(where->looks);
	free(where);
}
