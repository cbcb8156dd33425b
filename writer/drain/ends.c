/*
 * Processes that end: by exit, by exec, by a signal; and how that is known.
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backlog.h"
#include "commit.h"
#include "demand.h"
#include "loop.h"
#include "processes.h"

/*
 * Somebody may have taken our descriptors (prlimit): poll() takes no more of them than there may
 * be, none where that is 0. Then only a process that its parent has waited for has ended.
 */
static bool has_ended(int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };
	int ready = poll(&fd, 1, 0);

	return ready > 0 ||
	       (ready < 0 && errno == EINVAL &&
		syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno == ESRCH);
}

bool xs_process_ended(const struct xs_process *process)
{
	if (process->start == UINT64_MAX)
		return true;
	if (process->pidfd >= 0)
		return has_ended(process->pidfd);
	return !xs_pid_alive(process->watched, process->start);
}

/* The flight recorder keeps what an ended process recorded as long as it is new. */
static void retire(struct xs_loop *loop, struct xs_process *process, enum xs_end end, int status)
{
	/* it may have recorded nothing, and what it has started a lot */
	loop->crashed |= end == XS_END_KILLED && xs_process_is(process, loop->run.app_pid);
	if (!xs_process_retire(process, end, status)) {
		xs_process_free(process);
		return;
	}
	process->next = loop->ended;
	loop->ended = process;
	loop->crashed |= end == XS_END_KILLED;
}

/* As wait() tells it: the launcher of the application, Linux of descendants. False: nobody does. */
static bool told_status(const struct xs_loop *loop, const struct xs_process *process, int *ret)
{
	if (xs_process_is(process, loop->run.app_pid) && loop->app_ended) {
		*ret = loop->app_status;
		return true;
	}
	if (process->has_status) {
		*ret = process->wait_status;
		return true;
	}
	/* gone before it was looked at: its pid may be another process's */
	if (loop->run.recovering || !process->watched || process->start == UINT64_MAX)
		return false;
	return xs_pid_status(process->watched, process->start, process->pidfd, ret);
}

/*
 * A hosted run whose program has stopped its trace, or a process that nobody has asked for one:
 * what comes after that belongs to none.
 */
static bool between_traces(const struct xs_loop *loop, const struct xs_process *process)
{
	if (loop->run.recovering)
		return loop->run.options->on_demand && !loop->run.hosted_start && process->kept &&
		       !process->kept->output[0];
	if (loop->run.options->on_demand && !loop->run.hosted_start)
		return !xs_demand_wants(process);
	return loop->run.hosted_start &&
	       atomic_load_explicit(&loop->run.control->paused, memory_order_relaxed) &
		       XS_PAUSE_LIBRARY;
}

void xs_loop_finish(struct xs_loop *loop, struct xs_process **link, enum xs_end end)
{
	struct xs_process *process = *link;
	int wait_status, status = -1;
	struct xs_asked *asked;

	if (end == XS_END_UNKNOWN && told_status(loop, process, &wait_status)) {
		bool killed = WIFSIGNALED(wait_status);

		end = killed ? XS_END_KILLED : XS_END_EXITED;
		status = killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	}
	/*
	 * all that is there by now: who still has the rings (a child of it) may go on filling them
	 */
	(void)xs_process_read(process, true);
	*link = process->next;
	/* while it is being finished its trace may still have to get its name */
	asked = end == XS_END_EXEC ? NULL : xs_demand_asked(process);
	if (loop->run.flight)
		retire(loop, process, end, status);
	else if (between_traces(loop, process))
		xs_process_cut_away(process);
	else
		xs_process_finish(process, end, status);
	xs_demand_gone(&loop->run, asked);
}

bool xs_loop_is_last(const struct xs_loop *loop, const struct xs_process *process)
{
	return xs_process_is(process, loop->run.control->metrics_pid) ||
	       xs_process_is(process, loop->run.control->processors_pid);
}

/* What others of the run record is joined with what it has: it waits for them. */
static bool waits_for_others(const struct xs_loop *loop, const struct xs_process *process)
{
	if (xs_loop_is_last(loop, process))
		for (const struct xs_process *p = loop->processes; p; p = p->next)
			if (!xs_loop_is_last(loop, p))
				return true;
	return false;
}

/*
 * It may have called exec: a later image of it has then joined before the end. So the directory is
 * read once after the end was seen; who has joined since then does not count, or nobody would be
 * finished for as long as others join.
 */
static bool may_have_an_image(const struct xs_loop *loop, struct xs_process *process)
{
	uint32_t joined = atomic_load_explicit(&loop->run.mailbox->joined, memory_order_acquire);

	if (process->exec || process->image_waits || joined == loop->joined)
		return !process->exec && process->image_waits;
	if (!process->look)
		process->look = loop->looks + 1;
	return loop->looks < process->look;
}

bool xs_loop_finish_ended(struct xs_loop *loop)
{
	struct xs_process **link = &loop->processes;
	bool waiting = false;

	loop->newcomers = 0;
	while (*link) {
		struct xs_process *process = *link;
		bool exec = process->exec;

		if ((!exec && !xs_process_ended(process)) || waits_for_others(loop, process)) {
			link = &process->next;
		} else if (xs_process_is_behind(process)) {
			/* it is read in turns, so that others need not wait; its parent will not */
			process->over = true;
			process->has_status = !exec &&
					      told_status(loop, process, &process->wait_status);
			waiting = true;
			link = &process->next;
		} else if (may_have_an_image(loop, process)) {
			waiting = true;
			link = &process->next;
		} else if (!exec && xs_process_is(process, loop->run.app_pid) && !loop->app_ended &&
			   !loop->launcher_gone && !loop->run.hosted_start) {
			waiting = true;
			link = &process->next;
		} else {
			xs_loop_finish(loop, link, exec ? XS_END_EXEC : XS_END_UNKNOWN);
			/* the others were before it in the list */
			waiting |= loop->processes && xs_loop_is_last(loop, loop->processes);
		}
	}
	return waiting;
}
