/*
 * The drain process: finds the run's processes, reads their rings, notices their ends, and leaves
 * when the last is done.
 *
 * It sleeps on the doorbell while nothing happens. Producers ring when they enter a new step of
 * their ring, so a timeout is only needed to notice deaths and to write out the last records of
 * threads that went quiet.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adopt.h"
#include "commit.h"
#include "demand.h"
#include "channel.h"
#include "drain.h"
#include "faults.h"
#include "flight.h"
#include "kmd.h"
#include "lost.h"
#include "process.h"
#include "processes.h"
#include "run_open.h"
#include "text.h"
#include "names.h"
#include "window.h"

#define SLEEP_LOW    1000000u	 /* ns: some process is just joining, or ending */
#define SLEEP	     50000000u	 /* otherwise: what matters rings */
#define SLEEP_QUIET  500000000u	 /* at most, while nothing is recorded */
#define SLEEP_SILENT 1000000000u /* at most, while only silent descendants are left */
/*
 * how long the drain process waits for a process in the middle of joining, which may be stopped
 * there for ever
 */
#define JOINING 1000000000u
/* how long the drain process tolerates a process that it cannot examine */
#define BLIND	   1000000000u
#define VAIN_TURNS 64u /* of the loop without anything to read, for which it takes at least … */
#define VAIN_NS	   64000000u /* … this time, whatever the traced processes write */
#define BUSY_TURNS 16u	     /* with a lot to read, before everything else is looked at */

struct drain {
	struct xs_run run;
	struct xs_process *processes;
	uint32_t joined; /* mailbox->joined when the directory was last read */
	/* likewise: there has been a process whose file cannot be opened or mapped */
	uint64_t blind_since;
	/* CLOCK_MONOTONIC: a process has been in the middle of joining from then on; 0: none is */
	uint64_t unready_since;
	bool app_finished, app_seen, stopped;
	struct xs_window window;
	uint64_t start;	    /* of this process, as in struct xs_consumer */
	bool launcher_gone; /* and all that it had said was heard */
	bool app_ended, app_not_run;
	int app_status;		  /* as from waitpid(), when app_ended */
	struct xs_process *ended; /* flight recorder: they are history */
	bool crashed;		  /* and one of them so that it is to be written */
	bool dumping;
	struct xs_lost lost;
	struct xs_kmd *kmd;  /* NULL: not wanted, or over */
	uint64_t patience;   /* added to the sleep: it grows while nothing happens */
	uint32_t busy, vain; /* turns in a row with a lot to read, with nothing */
	uint64_t vain_since;
};

static bool known(const struct drain *drain, const char *name)
{
	for (const struct xs_process *p = drain->processes; p; p = p->next)
		if (!strcmp(p->name, name))
			return true;
	return false;
}

/* What the launcher has said by now. */
static void hear(struct drain *drain)
{
	struct xs_message message;
	enum xs_heard heard;

	while ((heard = xs_channel_hear(drain->run.channel, false, &message)) == XS_HEARD)
		switch (message.word) {
		case XS_WORD_APP:
			drain->run.app_pid = message.number;
			break;
		case XS_WORD_NO_APP:
			drain->app_not_run = drain->app_ended = true;
			break;
		case XS_WORD_APP_ENDED:
			drain->app_ended = true;
			drain->app_status = message.number;
			break;
		default:
			break;
		}
	drain->launcher_gone = heard == XS_HEARD_END;
}

/*
 * Is who makes this file still about to? Not for ever: it may be stopped, or no process of ours at
 * all.
 */
static bool about_to_join(struct drain *drain, int32_t pid)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);

	if (!xs_pid_alive(pid, 0))
		return false;
	if (!drain->unready_since)
		drain->unready_since = now;
	return now - drain->unready_since < JOINING;
}

/* What a look into the directory finds. */
struct look {
	struct drain *drain;
	bool again, unready, blind;
};

static void meet(void *user, const char *name)
{
	struct look *look = user;
	struct drain *drain = look->drain;
	struct xs_process *process;
	uint32_t serial;
	int32_t pid;

	if (!xs_process_file_parse(name, &pid, &serial) || known(drain, name))
		return;
	process = xs_process_adopt(&drain->run, name);
	if (!process) {
		look->blind |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		look->unready |= errno == EAGAIN;
		look->again |= errno == EAGAIN && about_to_join(drain, pid);
		return;
	}
	xs_demand_met(process);
	xs_lost_joined(&drain->lost, process->watched);
	process->next = drain->processes;
	drain->processes = process;
	if (!drain->run.app_pid)
		hear(drain); /* it was said before the program began */
	drain->app_seen |= process->pid == drain->run.app_pid;
}

/*
 * True when some process was in the middle of joining: to be looked at again. If it is given up, it
 * says itself when it is ready.
 */
static bool find_processes(struct drain *drain)
{
	struct look look = { .drain = drain };

	if (!xs_shm_each(drain->run.directory, meet, &look))
		return true;
	if (!look.unready)
		drain->unready_since = 0;
	if (!look.blind)
		drain->blind_since = 0;
	else if (!drain->blind_since)
		drain->blind_since = xs_clock_ns(CLOCK_MONOTONIC);
	return look.again || look.blind;
}

/*
 * Is it the same process, by its start? As we saw it, or where one was gone before we looked, as
 * both told: they may be in different time namespaces.
 */
static bool same_start(const struct xs_process *a, const struct xs_process *b)
{
	return a->start != UINT64_MAX && b->start != UINT64_MAX ? a->start == b->start
								: a->told_start == b->told_start;
}

/*
 * Has a later image of the same pid joined? Then this one has called exec. A pid that comes again
 * is of a process that started at another time.
 */
static bool superseded(const struct drain *drain, const struct xs_process *process)
{
	for (const struct xs_process *p = drain->processes; p; p = p->next)
		if (p->watched == process->watched && p->pid == process->pid &&
		    p->serial > process->serial && same_start(p, process))
			return true;
	return false;
}

static bool ended(const struct xs_process *process)
{
	struct pollfd fd = { .fd = process->pidfd, .events = POLLIN };

	if (process->start == UINT64_MAX)
		return true;
	if (process->pidfd >= 0)
		return poll(&fd, 1, 0) > 0;
	return !xs_pid_alive(process->watched, process->start);
}

/* The flight recorder keeps what an ended process recorded as long as it is new. */
static void retire(struct drain *drain, struct xs_process *process, enum xs_end end, int status)
{
	if (!xs_process_retire(process, end, status)) {
		xs_process_free(process);
		return;
	}
	process->next = drain->ended;
	drain->ended = process;
	drain->crashed |= end == XS_END_KILLED;
}

/* As wait() tells it: the launcher of the application, Linux of descendants. False: nobody does. */
static bool told_status(const struct drain *drain, const struct xs_process *process, int *ret)
{
	if (process->pid == drain->run.app_pid && drain->app_ended) {
		*ret = drain->app_status;
		return true;
	}
	/* gone before it was looked at: its pid may be another process's */
	if (drain->run.recovering || !process->watched || process->start == UINT64_MAX)
		return false;
	return xs_pid_status(process->watched, process->start, process->pidfd, ret);
}

/*
 * A hosted run whose program has stopped its trace, or a process that nobody has asked for one:
 * what comes after that belongs to none.
 */
static bool between_traces(const struct drain *drain, const struct xs_process *process)
{
	if (drain->run.recovering)
		return drain->run.options->on_demand && !drain->run.hosted_start && process->kept &&
		       !process->kept->output[0];
	if (drain->run.options->on_demand && !drain->run.hosted_start)
		return !xs_demand_wants(process);
	return drain->run.hosted_start &&
	       atomic_load_explicit(&drain->run.control->paused, memory_order_relaxed) &
		       XS_PAUSE_LIBRARY;
}

static void finish(struct drain *drain, struct xs_process **link, enum xs_end end)
{
	struct xs_process *process = *link;
	int wait_status, status = -1;
	struct xs_asked *asked;

	if (end == XS_END_UNKNOWN && told_status(drain, process, &wait_status)) {
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
	if (drain->run.flight)
		retire(drain, process, end, status);
	else if (between_traces(drain, process))
		xs_process_cut_away(process);
	else
		xs_process_finish(process, end, status);
	xs_demand_gone(&drain->run, asked);
}

/* Reads all rings once; returns the bytes read. */
static uint64_t look(struct drain *drain)
{
	uint64_t read = 0;

	xs_timeline_update(&drain->run.clock);
	xs_timeline_update(&drain->run.raw);
	if (atomic_load_explicit(&drain->run.control->segment_count, memory_order_relaxed) !=
	    drain->run.clock.count)
		xs_run_save_clock(&drain->run);
	if (drain->run.flight)
		xs_flight_look(&drain->run);
	for (struct xs_process *p = drain->processes; p; p = p->next)
		read += xs_process_read(p, false);
	return read;
}

/* ---- the flight recorder ---- */

static void forget_ended(struct drain *drain, bool all)
{
	for (struct xs_process **link = &drain->ended; *link;) {
		struct xs_process *process = *link;

		if (!all && xs_flight_expire(process)) {
			link = &process->next;
			continue;
		}
		*link = process->next;
		xs_process_free(process);
	}
}

/* In a run that a program has begun for itself. Elsewhere the words mean nothing. */
static bool cut_wanted(const struct drain *drain)
{
	const struct xs_control *control = drain->run.control;

	return drain->run.hosted_start &&
	       atomic_load_explicit(&control->cuts, memory_order_acquire) !=
		       atomic_load_explicit(&control->cut, memory_order_relaxed);
}

static bool dump_wanted(const struct drain *drain)
{
	return drain->run.flight && !drain->dumping &&
	       (drain->crashed || xs_flight_asked(&drain->run));
}

/* In a child: fork was the snapshot. */
static _Noreturn void write_dump(const struct drain *drain)
{
	bool wrote = false;

	/* at once: what the threads are doing at this moment stands in their rings */
	for (struct xs_process *p = drain->processes; p; p = p->next)
		(void)xs_process_detach(p);
	for (struct xs_process *p = drain->processes; p; p = p->next)
		wrote |= xs_process_dump(p);
	for (struct xs_process *p = drain->ended; p; p = p->next)
		wrote |= xs_process_dump(p);
	if (!wrote)
		xs_tell("[INFO] Flight recorder: dump %u has no file, since no process recorded "
			"anything\n",
			drain->run.dump->number);
	_exit(0);
}

/* True while a dump is due or being written. What is asked for meanwhile is one dump more. */
static bool serve_dumps(struct drain *drain)
{
	struct xs_control *control = drain->run.control;
	uint32_t asked = atomic_load_explicit(&control->dumps, memory_order_acquire), reasons;
	uint32_t triggers =
		atomic_load_explicit(&drain->run.mailbox->triggers, memory_order_acquire);

	if (!drain->run.flight)
		return false;
	drain->dumping = xs_flight_writing(&drain->run);
	if (drain->dumping)
		return true;
	if (!dump_wanted(drain)) {
		forget_ended(drain, false);
		return false;
	}
	if (atomic_load_explicit(&drain->run.mailbox->joined, memory_order_acquire) !=
	    drain->joined)
		return true; /* it may be a newcomer who asks */
	(void)look(drain);   /* what was recorded before somebody asked */
	reasons = atomic_exchange_explicit(&control->dump_reasons, 0, memory_order_relaxed);
	if (drain->crashed)
		reasons |= XS_DUMP_CRASH;
	drain->crashed = false;
	if (xs_flight_dump(&drain->run, asked, triggers, reasons))
		write_dump(drain);
	forget_ended(drain, true); /* their traces are complete now: not again in the next dump */
	return true;
}

static void tell_not_asked(const struct drain *drain)
{
	if (drain->run.flight && !drain->run.dump->number)
		xs_tell("[INFO] The flight recorder was not asked to write. Ask with kill -USR1 "
			"PID-OF-XSTRACE, with --session NAME and "
			"xstrace --dump NAME, or with --trigger\n");
}

/* True when a process has ended and something must be known before it is finished. */
static bool finish_ended(struct drain *drain)
{
	struct xs_process **link = &drain->processes;
	bool waiting = false;

	/* for all before any is gone from the list */
	for (struct xs_process *p = drain->processes; p; p = p->next)
		p->exec |= superseded(drain, p);
	while (*link) {
		struct xs_process *process = *link;
		bool exec = process->exec;

		if (!exec && !ended(process)) {
			link = &process->next;
		} else if (!exec && atomic_load_explicit(&drain->run.mailbox->joined,
							 memory_order_acquire) != drain->joined) {
			waiting = true; /* it may have called exec: look at new joins first */
			link = &process->next;
		} else if (!exec && process->pid == drain->run.app_pid && !drain->app_ended &&
			   !drain->launcher_gone && !drain->run.hosted_start) {
			waiting = true;
			link = &process->next;
		} else {
			finish(drain, link, exec ? XS_END_EXEC : XS_END_UNKNOWN);
		}
	}
	return waiting;
}

/* ---- a run that a program has begun for itself ---- */

/* Does the program still run that nobody waits for? */
static bool host_lives(const struct drain *drain)
{
	return drain->run.hosted_start && xs_pid_alive(drain->run.app_pid, drain->run.hosted_start);
}

/* The traces of a cut, a NUL behind each, where the program looks for them. */
static int begin_list(const struct xs_run *run, uint32_t number)
{
	char name[XS_NAME_MAX];

	xs_dump_name(name, number - 1);
	(void)unlinkat(run->directory, name, 0);
	xs_dump_name(name, number);
	(void)unlinkat(run->directory, name, 0);
	return openat(run->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		      0600);
}

static void end_cut(struct xs_control *control, uint32_t number)
{
	atomic_store_explicit(&control->cut, number, memory_order_release);
	xs_futex_wake(&control->cut);
}

/*
 * The program has ended its trace (xstrace_stop()): all that was recorded so far is completed, and
 * what comes next goes to another file. Or it begins one while another is
 * recorded for dynolog: that one ends.
 */
static void serve_cuts(struct drain *drain)
{
	struct xs_control *control = drain->run.control;
	uint32_t asked = atomic_load_explicit(&control->cuts, memory_order_acquire);
	struct xs_process *process;
	int list;

	if (!cut_wanted(drain))
		return;
	(void)find_processes(drain);
	if (xs_demand_is_active(&drain->run)) {
		xs_demand_yield(&drain->run, &drain->processes);
		(void)find_processes(drain);
		end_cut(control, asked);
		return;
	}
	list = begin_list(&drain->run, asked);
	while ((process = drain->processes)) {
		char path[PATH_MAX];

		(void)xs_process_read(process, true);
		drain->processes = process->next;
		xs_process_cut(process, path);
		if (list >= 0 && path[0])
			(void)!write(list, path, strlen(path) + 1);
	}
	if (list >= 0)
		close(list);
	(void)find_processes(drain);
	end_cut(control, asked);
}

/* ---- --stop ---- */

/* Completes all traces as they are; no process joins any more. */
static void stop(struct drain *drain)
{
	drain->stopped = true;
	(void)find_processes(drain);
	(void)look(drain);
	(void)finish_ended(drain);
	/* the application's own at last: it tells whether the run has shown anything */
	for (int last = 0; last < 2; last++)
		for (struct xs_process **link = &drain->processes; *link;) {
			if (!last && (*link)->pid == drain->run.app_pid)
				link = &(*link)->next;
			else
				finish(drain, link, XS_END_STOPPED);
		}
}

static void be_patient(struct drain *drain, uint64_t most)
{
	drain->patience = drain->patience + SLEEP < most - SLEEP ? drain->patience + SLEEP
								 : most - SLEEP;
}

/* Is no process left that may still join or write? */
static bool over(struct drain *drain)
{
	if (drain->processes || drain->kmd || host_lives(drain))
		return false;
	/*
	 * with the launcher dead nobody tells us of the application's end; it dies with the
	 * launcher
	 */
	if (!drain->app_ended && !drain->launcher_gone)
		return false;
	if (!drain->run.app_pid)
		return true;
	if (drain->run.options->follow_children && xs_run_has_silent_descendants(&drain->run)) {
		be_patient(drain, SLEEP_SILENT);
		return false;
	}
	return true;
}

static void tell_app_finished(struct drain *drain)
{
	if (drain->app_finished || drain->kmd || !drain->app_ended)
		return;
	for (const struct xs_process *p = drain->processes; p; p = p->next)
		if (p->pid == drain->run.app_pid)
			return;
	drain->app_finished = true;
	xs_channel_say(drain->run.channel, XS_WORD_APP_FINISHED, 0);
}

/* To the launcher, and to who stops the session. */
static void tell_run_finished(struct xs_run *run)
{
	atomic_store_explicit(&run->control->finished, 1, memory_order_release);
	xs_futex_wake(&run->control->finished);
	xs_channel_say(run->channel, XS_WORD_RUN_FINISHED, 0);
}

static bool told_to_stop(const struct drain *drain)
{
	return atomic_load_explicit(&drain->run.control->paused, memory_order_acquire) &
	       XS_PAUSE_STOPPED;
}

/*
 * Somebody has taken our descriptors or our memory (prlimit): a process that cannot be looked at
 * would wait for room in its rings for ever. All that was recorded so far is completed, and
 * recording ends.
 */
static bool is_blind(struct drain *drain)
{
	if (!drain->blind_since || xs_clock_ns(CLOCK_MONOTONIC) - drain->blind_since < BLIND)
		return false;
	xs_tell("[WARNING] The drain process has no descriptors or no memory left for another "
		"process; nothing is recorded from now on\n");
	(void)xs_control_pause(drain->run.control, XS_PAUSE_STOPPED, true);
	return true;
}

static bool has_news(const struct drain *drain, uint32_t joined)
{
	if (joined != atomic_load_explicit(&drain->run.mailbox->joined, memory_order_relaxed) ||
	    told_to_stop(drain) || dump_wanted(drain) || cut_wanted(drain))
		return true;
	for (const struct xs_process *p = drain->processes; p; p = p->next)
		if (xs_process_urgent(p))
			return true;
	return false;
}

/* bpftrace ends with the application. True: not to be left alone for long. */
static bool follow_kmd(struct drain *drain)
{
	bool stop;

	if (!drain->kmd)
		return false;
	stop = drain->app_ended || told_to_stop(drain) || drain->launcher_gone;
	if (xs_kmd_look(drain->kmd, stop))
		return xs_kmd_urgent(drain->kmd);
	xs_kmd_close(drain->kmd);
	drain->kmd = NULL;
	return true;
}

/*
 * Each wake-up takes a processor from the application where that has them all (ranks). Lines that
 * somebody may watch as they come do not wait; whatever else is waited for rings: a full step, a
 * newcomer, a command, the end of the application.
 */
static bool may_be_patient(const struct drain *drain)
{
	const struct xs_options *options = drain->run.options;

	return !options->device_timeline && !options->call_logging && !drain->kmd;
}

/*
 * What is rung, joined or waited for without anything to read must not keep a processor busy: any
 * process can write there.
 */
static void restrain(struct drain *drain, uint64_t read)
{
	uint64_t passed;

	if (read)
		drain->vain = 0;
	else if (!drain->vain++)
		drain->vain_since = xs_clock_ns(CLOCK_MONOTONIC);
	if (drain->vain < VAIN_TURNS)
		return;
	drain->vain = 0;
	passed = xs_clock_ns(CLOCK_MONOTONIC) - drain->vain_since;
	if (passed < VAIN_NS)
		(void)usleep((useconds_t)((VAIN_NS - passed) / 1000));
}

/* Again and again: producers that wait for room go by it, and somebody may have written there. */
static void show_life(const struct drain *drain)
{
	struct xs_consumer *consumer = &drain->run.control->consumer;

	if (consumer->pid != getpid() || consumer->start != drain->start) {
		consumer->pid = getpid();
		consumer->start = drain->start;
	}
	atomic_fetch_add_explicit(&consumer->heartbeat, 1, memory_order_relaxed);
}

static void drain_loop(struct drain *drain)
{
	struct xs_mailbox *mailbox = drain->run.mailbox;
	struct xs_doorbell *bell = &mailbox->bell;

	for (;;) {
		uint32_t rung = atomic_load_explicit(&bell->rung, memory_order_relaxed);
		uint32_t joined = atomic_load_explicit(&mailbox->joined, memory_order_acquire);
		uint64_t read, window = xs_window_follow(&drain->window, &drain->run), sleep;
		bool soon = false, busy;

		hear(drain);
		if (xs_demand_serve(&drain->run, &drain->processes, &window))
			(void)find_processes(drain);
		if (told_to_stop(drain) || is_blind(drain)) {
			stop(drain);
			while (drain->kmd && follow_kmd(drain))
				(void)usleep(1000);
			return;
		}
		show_life(drain);
		if (joined != drain->joined) {
			drain->patience = 0;
			xs_lost_again(&drain->lost);
			soon = find_processes(drain);
			drain->joined = soon ? joined - 1 : joined;
		}
		read = look(drain);
		drain->dumping = serve_dumps(drain);
		serve_cuts(drain);
		if (read >= 65536 && ++drain->busy % BUSY_TURNS)
			continue; /* a lot: more is on its way */
		restrain(drain, read);
		if (read)
			drain->patience = 0;
		else if (may_be_patient(drain))
			be_patient(drain, SLEEP_QUIET);
		if (!read)
			for (struct xs_process *p = drain->processes; p; p = p->next)
				xs_process_commit(p);
		soon |= finish_ended(drain);
		soon |= follow_kmd(drain);
		if (drain->run.options->follow_children)
			xs_lost_look(&drain->lost, &drain->run, drain->processes);
		busy = drain->dumping || dump_wanted(drain);
		soon |= busy;
		if (!soon && over(drain) && !has_news(drain, joined))
			return;
		if (!busy)
			tell_app_finished(drain);
		/* Dekker with xs_doorbell_ring(): either we see its step or it sees us asleep */
		atomic_store_explicit(&bell->sleeping, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		sleep = soon ? SLEEP_LOW : SLEEP + drain->patience;
		if (!has_news(drain, joined))
			xs_doorbell_wait(bell, rung, sleep < window ? sleep : window);
		atomic_store_explicit(&bell->sleeping, 0, memory_order_relaxed);
	}
}

/* Completes what a drain process has left that died. */
static int recover(struct drain *drain)
{
	const struct xs_consumer *consumer = &drain->run.control->consumer;

	/*
	 * before a process is adopted: that cuts its file back to what was committed, which is less
	 * than a drain process that lives has written
	 */
	if (xs_pid_alive(consumer->pid, consumer->start))
		return -EBUSY;
	/* for as long as this process lives: two at once would both write the ends of the traces */
	if (flock(drain->run.directory, LOCK_EX | LOCK_NB) < 0)
		return -EALREADY;
	(void)find_processes(drain);
	for (struct xs_process *p = drain->processes; p; p = p->next)
		if (!ended(p))
			return -EBUSY;
	if (drain->run.refused)
		return -ECANCELED;
	for (struct xs_process *p = drain->processes; p; p = p->next)
		p->exec = superseded(drain, p);
	for (struct xs_process **link = &drain->processes; *link;)
		finish(drain, link, (*link)->exec ? XS_END_EXEC : XS_END_UNKNOWN);
	return 0;
}

static int follow_run(struct drain *drain)
{
	if (drain->run.options->flight && !xs_flight_create(&drain->run))
		return -ENOMEM;
	drain->start = xs_pid_start(getpid());
	xs_window_set(&drain->window, &drain->run);
	if (drain->run.options->on_demand)
		xs_demand_open(&drain->run);
	if (drain->run.options->kmd_script[0])
		drain->kmd = xs_kmd_start(&drain->run);
	drain_loop(drain);
	return 0;
}

/* Processes of which there is no trace, and why. */
static void tell_not_traced(const struct drain *drain)
{
	uint32_t failed = atomic_load(&drain->run.mailbox->join_failed);

	failed -= failed < drain->lost.failed ? failed : drain->lost.failed;
	if (failed)
		xs_tell("[WARNING] %u process%s not traced: no memory or no right to make files in "
			"%s\n",
			failed, failed == 1 ? " is" : "es are", drain->run.dir);
	if (!drain->run.recovering && !drain->stopped && !drain->app_seen && !drain->app_not_run &&
	    !drain->run.app_not_traced && !failed && !xs_lost_has(&drain->lost, drain->run.app_pid))
		xs_tell("[WARNING] process %d is not traced: the collector was not loaded into it, "
			"or could not open %s\n",
			drain->run.app_pid, drain->run.dir);
	xs_lost_tell(&drain->lost);
}

int xs_drain(const char *dir, int channel)
{
	struct drain drain = { 0 };
	int error = xs_run_open(&drain.run, dir, channel);

	if (error < 0)
		return error;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	xs_faults_catch();
	error = drain.run.recovering ? recover(&drain) : follow_run(&drain);
	if (error < 0)
		return error;
	tell_not_traced(&drain);
	tell_not_asked(&drain);
	if (drain.run.recovering && !drain.run.wrote_something)
		xs_tell("[INFO] --recover %s: nothing was left to be written\n", drain.run.dir);
	xs_run_remove(&drain.run);
	if (!drain.run.recovering)
		tell_run_finished(&drain.run);
	forget_ended(&drain, true);
	xs_demand_close(&drain.run);
	xs_flight_destroy(drain.run.flight);
	xs_texts_fini(&drain.run);
	xs_timeline_fini(&drain.run.clock);
	xs_timeline_fini(&drain.run.raw);
	return 0;
}
