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
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backlog.h"
#include "below.h"
#include "channel.h"
#include "commit.h"
#include "demand.h"
#include "drain.h"
#include "faults.h"
#include "flight.h"
#include "kmd.h"
#include "last_words.h"
#include "loop.h"
#include "names.h"
#include "processes.h"
#include "run_open.h"
#include "processors.h"
#include "samples.h"
#include "shared.h"
#include "text.h"
#include "viewers.h"
#include "where.h"

#define SLEEP_LOW    1000000u	 /* ns: some process is just joining, or ending */
#define SLEEP	     50000000u	 /* otherwise: what matters rings */
#define SLEEP_QUIET  500000000u	 /* at most, while nothing is recorded */
#define SLEEP_SILENT 1000000000u /* at most, while only silent descendants are left */
#define MUCH	     (64u << 20) /* bytes to recover, of which a line tells */
#define PROGRESS     2000000000u /* between two lines that say how much is left */
/* how long the drain process tolerates a process that it cannot examine */
#define BLIND	   1000000000u
#define VAIN_TURNS 64u /* of the loop without anything to read, for which it takes at least … */
#define VAIN_NS	   64000000u   /* … this time, whatever the traced processes write */
#define LOOK	   1000000000u /* between two looks for processes, whatever the mailbox says */
#define OTHERS_NS  5000000000u /* that the launcher waits for traces of others, at most */
#define BUSY_TURNS 16u	       /* with a lot to read, before everything else is looked at */

/* Does the program still run that nobody waits for? */
static bool host_lives(const struct xs_loop *loop)
{
	return loop->run.hosted_start && xs_pid_alive(loop->run.app_pid, loop->run.hosted_start);
}

/* ---- --stop ---- */

/* Completes all traces as they are; no process joins any more. */
static void stop(struct xs_loop *loop)
{
	loop->stopped = true;
	(void)xs_loop_find(loop, true);
	(void)xs_loop_read(loop);
	(void)xs_loop_finish_ended(loop);
	/*
	 * the application's own behind the others: it tells whether the run has shown anything; and
	 * the sampling process behind that
	 */
	for (int turn = 0; turn < 3; turn++)
		for (struct xs_process **link = &loop->processes; *link;) {
			if ((turn < 1 && xs_process_is(*link, loop->run.app_pid)) ||
			    (turn < 2 && xs_loop_is_last(loop, *link)))
				link = &(*link)->next;
			else
				xs_loop_finish(loop, link, XS_END_STOPPED);
		}
}

static void be_patient(struct xs_loop *loop, uint64_t most)
{
	loop->patience = loop->patience + SLEEP < most - SLEEP ? loop->patience + SLEEP
							       : most - SLEEP;
}

/* Is no process left that may still join or write? */
static bool over(struct xs_loop *loop)
{
	if (loop->processes || loop->kmd || host_lives(loop))
		return false;
	/*
	 * with the launcher dead nobody tells us of the application's end; it dies with the
	 * launcher
	 */
	if (!loop->app_ended && !loop->launcher_gone)
		return false;
	if (!loop->run.app_pid)
		return true;
	if (loop->run.options->follow_children && xs_run_has_silent_descendants(&loop->run)) {
		be_patient(loop, SLEEP_SILENT);
		return false;
	}
	return true;
}

static void tell_not_asked(const struct xs_loop *loop)
{
	if (loop->run.flight && !loop->run.dump->number)
		xs_tell("[INFO] The flight recorder was not asked to write. Ask with kill -USR1 "
			"PID-OF-XSTRACE, with --session NAME and "
			"xstrace --dump NAME, or with --trigger\n");
}

/*
 * The application is over, and so are the traces of descendants that had ended before it, whose
 * ends it may have waited for: `waiting` is for some of these, or for later ones, so not for ever.
 */
static void tell_app_finished(struct xs_loop *loop, bool waiting)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);

	if (loop->app_finished || loop->kmd || !loop->app_ended)
		return;
	for (const struct xs_process *p = loop->processes; p; p = p->next)
		if (xs_process_is(p, loop->run.app_pid))
			return;
	if (!loop->app_over)
		loop->app_over = now;
	waiting |= (int32_t)(loop->joined - loop->app_joined) < 0;
	if (waiting && now - loop->app_over < OTHERS_NS)
		return;
	loop->app_finished = true;
	xs_channel_say(loop->run.channel, XS_WORD_APP_FINISHED, 0);
}

/* To the launcher, and to who stops the session. */
static void tell_run_finished(struct xs_run *run)
{
	atomic_store_explicit(&run->control->finished, 1, memory_order_release);
	xs_futex_wake(&run->control->finished);
	xs_channel_say(run->channel, XS_WORD_RUN_FINISHED, 0);
}

static bool told_to_stop(const struct xs_loop *loop)
{
	return atomic_load_explicit(&loop->run.control->paused, memory_order_acquire) &
	       XS_PAUSE_STOPPED;
}

/*
 * Somebody has taken our descriptors or our memory (prlimit): a process that cannot be looked at
 * would wait for room in its rings for ever. All that was recorded so far is completed, and
 * recording ends.
 */
static bool is_blind(struct xs_loop *loop)
{
	if (!loop->blind_since || xs_clock_ns(CLOCK_MONOTONIC) - loop->blind_since < BLIND)
		return false;
	xs_tell("[WARNING] The drain process has no descriptors or no memory left for another "
		"process; nothing is recorded from now on\n");
	(void)xs_control_pause(loop->run.control, XS_PAUSE_STOPPED, true);
	return true;
}

static bool has_news(const struct xs_loop *loop, uint32_t joined)
{
	if (joined != atomic_load_explicit(&loop->run.mailbox->joined, memory_order_relaxed) ||
	    told_to_stop(loop) || xs_loop_wants_dump(loop) || xs_loop_wants_cut(loop) ||
	    xs_demand_session_asks(&loop->run) || xs_where_due(loop) || xs_viewers_due(&loop->run))
		return true;
	if (loop->defers)
		return xs_backlog_is_due(&loop->run);
	for (const struct xs_process *p = loop->processes; p; p = p->next)
		if (xs_process_urgent(p))
			return true;
	return false;
}

/* bpftrace ends with the application. True: not to be left alone for long. */
static bool follow_kmd(struct xs_loop *loop)
{
	bool stop;

	if (!loop->kmd)
		return false;
	stop = loop->app_ended || told_to_stop(loop) || loop->launcher_gone;
	if (xs_kmd_look(loop->kmd, stop))
		return xs_kmd_urgent(loop->kmd);
	xs_kmd_close(loop->kmd);
	loop->kmd = NULL;
	return true;
}

/*
 * Each wake-up takes a processor from the application where that has them all (ranks). Lines that
 * somebody may watch as they come do not wait; whatever else is waited for rings: a full step, a
 * newcomer, a command, the end of the application.
 */
static bool may_be_patient(const struct xs_loop *loop)
{
	const struct xs_options *options = loop->run.options;

	return !options->device_timeline && !options->call_logging && !loop->kmd;
}

/*
 * What is rung, joined or waited for without anything to read must not keep a processor busy: any
 * process can write there.
 */
static void restrain(struct xs_loop *loop, uint64_t read)
{
	uint64_t passed;

	if (read || loop->defers)
		loop->vain = 0;
	else if (!loop->vain++)
		loop->vain_since = xs_clock_ns(CLOCK_MONOTONIC);
	if (loop->vain < VAIN_TURNS)
		return;
	loop->vain = 0;
	passed = xs_clock_ns(CLOCK_MONOTONIC) - loop->vain_since;
	if (passed < VAIN_NS)
		(void)usleep((useconds_t)((VAIN_NS - passed) / 1000));
}

/* For who waits at a terminal. */
static void tell_left(uint64_t left)
{
	if (left && isatty(STDERR_FILENO))
		xs_tell("[INFO] %llu MiB of records are still to be written\n",
			(unsigned long long)(left >> 20));
}

/* Where the application has ended. */
static void tell_progress(struct xs_loop *loop)
{
	uint64_t left = xs_backlog_left(&loop->run), now;

	if (!loop->app_ended || !left)
		return;
	now = xs_clock_ns(CLOCK_MONOTONIC);
	if (!loop->progress_told)
		loop->progress_told = now;
	if (now - loop->progress_told < PROGRESS)
		return;
	loop->progress_told = now;
	tell_left(left);
}

static uint64_t read_rings(struct xs_loop *loop)
{
	uint64_t read;

	xs_viewers_watch(loop);
	loop->defers = xs_backlog_defers(&loop->run);
	tell_progress(loop);
	read = loop->defers ? xs_backlog_relieve(&loop->run, UINT64_MAX) : xs_loop_read(loop);
	xs_viewers_serve(loop);
	return read;
}

/* Again and again: producers that wait for room go by it, and somebody may have written there. */
static void show_life(const struct xs_loop *loop)
{
	struct xs_consumer *consumer = &loop->run.control->consumer;

	if (consumer->pid != getpid() || consumer->start != loop->start) {
		consumer->pid = getpid();
		consumer->start = loop->start;
	}
	atomic_fetch_add_explicit(&consumer->heartbeat, 1, memory_order_relaxed);
}

/*
 * Processes that have joined. The mailbox tells of them, but what lies under its name may be
 * another file by now, and nobody is to wait for ever because of that. True: to be done again at
 * once.
 */
static bool find_processes(struct xs_loop *loop, uint32_t joined)
{
	bool soon;

	if (joined != loop->joined) {
		loop->patience = 0;
		xs_lost_again(&loop->lost);
	} else if (loop->app_ended && !loop->looked_at_end) {
		/* who waits for the application is to find all traces, whatever was written there
		 */
		loop->looked_at_end = true;
	} else if (xs_clock_ns(CLOCK_MONOTONIC) - loop->looked < LOOK) {
		return false;
	}
	soon = xs_loop_find(loop, false);
	loop->joined = soon ? joined - 1 : joined;
	return soon;
}

/* Is nothing left to be read? A process that was not told of may have come and gone. */
static bool all_read(struct xs_loop *loop, uint32_t joined)
{
	if (!over(loop) || has_news(loop, joined))
		return false;
	(void)xs_loop_find(loop, true);
	return !loop->processes;
}

/* Until somebody rings, or for so many ns. */
static void rest(struct xs_loop *loop, uint32_t rung, uint32_t joined, uint64_t most)
{
	struct xs_doorbell *bell = &loop->run.mailbox->bell;

	xs_timeline_looked(&loop->run.clock);
	xs_timeline_looked(&loop->run.raw);
	/* Dekker with xs_doorbell_ring(): either we see its step or it sees us asleep */
	atomic_store_explicit(&bell->sleeping, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!has_news(loop, joined))
		xs_doorbell_wait(bell, rung, most);
	atomic_store_explicit(&bell->sleeping, 0, memory_order_relaxed);
}

static void drain_loop(struct xs_loop *loop)
{
	struct xs_mailbox *mailbox = loop->run.mailbox;

	for (;;) {
		uint32_t rung = atomic_load_explicit(&mailbox->bell.rung, memory_order_relaxed);
		uint32_t joined = atomic_load_explicit(&mailbox->joined, memory_order_acquire);
		uint64_t read, window = xs_window_follow(&loop->window, &loop->run), sleep;
		bool soon, busy, waiting;

		xs_loop_look_at_clocks(loop);
		xs_loop_hear(loop);
		if (xs_demand_serve(&loop->run, &loop->processes, &window))
			(void)xs_loop_find(loop, true);
		if (told_to_stop(loop) || is_blind(loop)) {
			stop(loop);
			while (loop->kmd && follow_kmd(loop))
				(void)usleep(1000);
			return;
		}
		show_life(loop);
		soon = find_processes(loop, joined);
		read = read_rings(loop);
		loop->dumping = xs_loop_serve_dumps(loop);
		xs_loop_serve_cuts(loop);
		soon |= xs_where_serve(loop);
		if (read >= 65536 && ++loop->busy % BUSY_TURNS)
			continue; /* a lot: more is on its way */
		restrain(loop, read);
		if (read)
			loop->patience = 0;
		else if (may_be_patient(loop))
			be_patient(loop, SLEEP_QUIET);
		if (!read)
			for (struct xs_process *p = loop->processes; p; p = p->next)
				xs_process_commit(p);
		waiting = xs_loop_finish_ended(loop);
		soon |= waiting;
		soon |= follow_kmd(loop);
		if (loop->run.options->follow_children)
			xs_lost_look(&loop->lost, &loop->run, loop->processes);
		busy = loop->dumping || xs_loop_wants_dump(loop);
		soon |= busy || loop->defers;
		if (!soon && all_read(loop, joined))
			return;
		if (!busy)
			tell_app_finished(loop, waiting);
		if (loop->app_finished)
			xs_last_words(loop);
		sleep = soon ? SLEEP_LOW : SLEEP + loop->patience;
		rest(loop, rung, joined, sleep < window ? sleep : window);
	}
}

/* Completes what a drain process has left that died. */
static int recover(struct xs_loop *loop)
{
	const struct xs_consumer *consumer = &loop->run.control->consumer;

	/*
	 * before a process is adopted: that cuts its file back to what was committed, which is less
	 * than a drain process that lives has written
	 */
	if (xs_pid_alive(consumer->pid, consumer->start))
		return -EBUSY;
	/* for as long as this process lives: two at once would both write the ends of the traces */
	if (flock(loop->run.directory, LOCK_EX | LOCK_NB) < 0)
		return -EALREADY;
	(void)xs_loop_find(loop, true);
	for (struct xs_process *p = loop->processes; p; p = p->next)
		if (!xs_process_ended(p))
			return -EBUSY;
	if (!loop->run.refused)
		xs_loop_look_for_gone(loop);
	if (loop->run.refused)
		return -ECANCELED;
	for (int turn = 0; turn < 2; turn++)
		for (struct xs_process **link = &loop->processes; *link;) {
			if (!turn && xs_loop_is_last(loop, *link)) {
				link = &(*link)->next;
			} else {
				if (xs_backlog_left(&loop->run) >= MUCH)
					tell_left(xs_backlog_left(&loop->run));
				xs_loop_finish(loop, link,
					       (*link)->exec ? XS_END_EXEC : XS_END_UNKNOWN);
			}
		}
	return 0;
}

static int follow_run(struct xs_loop *loop)
{
	if (loop->run.options->flight && !xs_flight_create(&loop->run))
		return -ENOMEM;
	xs_shared_note(&loop->run);
	loop->start = xs_pid_start(getpid());
	xs_window_set(&loop->window, &loop->run);
	loop->where = xs_where_open(&loop->run);
	if (xs_demand_is_wanted(&loop->run))
		xs_demand_open(&loop->run);
	if (loop->run.options->kmd_script[0])
		loop->kmd = xs_kmd_start(&loop->run);
	drain_loop(loop);
	xs_where_close(loop->where);
	return 0;
}

#define MOST_PIDS (1 << 22) /* PID_MAX_LIMIT of the kernel */

/* Processes of which there is no trace, and why. */
static void tell_not_traced(const struct xs_loop *loop)
{
	uint32_t failed = atomic_load(&loop->run.mailbox->join_failed);
	int32_t gone = (int32_t)(atomic_load(&loop->run.mailbox->joined) - loop->adopted -
				 loop->spoilt_files);

	failed -= failed < loop->lost.failed ? failed : loop->lost.failed;
	if (loop->spoilt_files && !loop->run.recovering)
		xs_tell("[WARNING] %u process%s not traced: what %s with us was overwritten\n",
			loop->spoilt_files, loop->spoilt_files == 1 ? " is" : "es are",
			loop->spoilt_files == 1 ? "it shares" : "they share");
	if (failed > (uint32_t)MOST_PIDS)
		xs_tell("[WARNING] what the run's processes share was overwritten by one of "
			"them\n");
	else if (failed)
		xs_tell("[WARNING] %u process%s not traced: no memory, no descriptor or no right "
			"to make files in %s\n",
			failed, failed == 1 ? " is" : "es are", loop->run.dir);
	if (gone > 0 && gone < MOST_PIDS && !loop->run.recovering && !loop->stopped)
		xs_tell("[WARNING] %d process%s not traced: what %s with us was gone before it was "
			"read\n",
			gone, gone == 1 ? " is" : "es are",
			gone == 1 ? "it shared" : "they shared");
	if (!loop->run.recovering && !loop->stopped && !loop->app_seen && !loop->app_not_run &&
	    !loop->run.app_not_traced && !failed && !xs_lost_has(&loop->lost, loop->run.app_pid))
		xs_tell("[WARNING] process %d is not traced: the collector was not loaded into it, "
			"or could not open %s\n",
			loop->run.app_pid, loop->run.dir);
	xs_lost_tell(&loop->lost);
}

/* An option that has shown nothing: mostly the runtime is the reason. */
static void tell_no_openmp(const struct xs_loop *loop)
{
	/* the flight recorder need not have looked */
	if (xs_want_openmp(loop->run.options) && !loop->run.saw_openmp && !loop->run.flight &&
	    !loop->run.recovering)
		xs_tell("[INFO] no runtime of OpenMP was seen. GCC's libgomp does not tell "
			"tools what it does (no OMPT); LLVM's runtime takes its place with "
			"LD_PRELOAD=libomp.so.5\n");
}

static void tell_no_python(const struct xs_loop *loop)
{
	if (loop->run.options->python_stacks[0] && !loop->run.saw_python && !loop->run.flight &&
	    !loop->run.recovering)
		xs_tell("[INFO] --python-stacks: no interpreter of Python was seen\n");
}

int xs_drain(const char *dir, int channel)
{
	static struct xs_loop loop; /* large, and most of it is never touched */
	int error;

	xs_faults_catch(); /* first: files may have been cut before they are mapped */
	error = xs_run_open(&loop.run, dir, channel);
	if (error < 0)
		return error;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	xs_backlog_open(&loop.run, &loop.processes);
	error = loop.run.recovering ? recover(&loop) : follow_run(&loop);
	if (error < 0)
		return error;
	tell_not_traced(&loop);
	if (xs_shared_tell(&loop.run))
		loop.spoilt |= loop.run.recovering;
	tell_not_asked(&loop);
	tell_no_openmp(&loop);
	tell_no_python(&loop);
	if (loop.run.again) /* it has been said that all is left where it is */
		return -ECANCELED;
	if (loop.run.recovering && !loop.run.wrote_something && !loop.spoilt &&
	    !loop.run.incomplete)
		xs_tell("[INFO] --recover %s: nothing was left to be written\n", loop.run.dir);
	xs_backlog_close(&loop.run);
	free(loop.run.live);
	xs_run_remove(&loop.run);
	if (!loop.run.recovering)
		tell_run_finished(&loop.run);
	xs_loop_forget_ended(&loop, true);
	xs_demand_close(&loop.run);
	xs_flight_destroy(loop.run.flight);
	xs_samples_free(&loop.run);
	xs_processors_free(&loop.run);
	xs_texts_fini(&loop.run);
	xs_below_fini(&loop.run);
	xs_timeline_fini(&loop.run.clock);
	xs_timeline_fini(&loop.run.raw);
	return loop.spoilt || loop.run.incomplete ? -ECANCELED
						  : 0; /* it has been said what is wrong */
}
