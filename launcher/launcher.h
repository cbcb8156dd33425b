/*
 * The parts of the launcher: xstrace [options] app args…
 */
#ifndef XS_LAUNCHER_H
#define XS_LAUNCHER_H

#include <signal.h>
#include <stddef.h>

#include "channel.h"
#include "shm.h"

/* CLOCK_MONOTONIC, when main() began. */
extern uint64_t xs_launcher_began;

/* ---- run.c: the run directory ---- */

struct xs_launch {
	char dir[PATH_MAX]; /* the run directory */
	int directory;	    /* the same, opened; -1: it is not */
	struct xs_control *control;
	struct xs_mailbox *mailbox;
	const struct xs_options *options; /* our own copy: other processes can write `control` */
	int drain;			  /* our end of the channel */
	/* xstrace-system, xstrace-metrics, xstrace-cpu, --export; 0: there is none */
	int sampler, metrics, processors, exporter;
	int counters; /* a socket to xstrace-cpu; -1: there is none */
	/* what the drain process has said of it; 0: nothing yet */
	enum xs_word finished;
};

/*
 * Makes the run directory and its files. `all` is the launcher's argv, `argv` the application's
 * part of it. 0 or -errno; on failure nothing is left behind.
 */
int xs_launch_create(struct xs_launch *launch, const struct xs_options *options, char **all,
		     char **argv);
/* Removes it (only while no process has joined). */
void xs_launch_destroy(struct xs_launch *launch);

/* ---- program.c: the application's file ---- */

/* Finds `name` as execvp would. 0 and the path, or -ENOENT, -EACCES, … */
int xs_program_find(const char *name, char *path, size_t size);
/*
 * Could it be a shell script without its first line? No NUL among its first bytes, and no other
 * format's mark.
 */
bool xs_program_is_text(const char *path);

/* ---- limits.c ---- */

/*
 * Lifts this process's soft limits, for itself and the drain process. First of all: there may be
 * little stack.
 */
void xs_limits_lift(void);
/* What the application, or we, may have too little of to trace; NULL: enough of all. */
const char *xs_limits_scarce(void);
/* As they were: in the child that becomes the application. */
void xs_limits_restore(void);

/* ---- environment.c ---- */

/*
 * The application's environment: ours, with the variables added that make the loader, ITT and
 * OpenCL load `library`. Values that the user gave are kept and ours put beside them. `mpi`: MPI is
 * to be traced. NULL: no memory. Warnings are printed.
 */
char **xs_environment(const struct xs_launch *launch, const char *library, bool mpi);
/* 0, or -errno after a line that says that the file is missing or broken. */
int xs_check_library(const char *library);
/*
 * Lists of paths have no quoting, and ITT has little room for one: a library whose path has a
 * blank, colon or dollar, or is very long (`library`, of PATH_MAX bytes), goes through a link that
 * only this user can make, which stays. 0, or -1 after one line that says what to do.
 */
int xs_plain_library(char *library);
/*
 * Paths of PATH_MAX bytes of the collector library and the drain process's program, wherever they
 * are installed. 0 or -errno; -ESRCH: /proc is missing, or shows another namespace's processes.
 */
int xs_find_parts(char *library, char *drain);
/* Does the environment say --on-demand, as PyTorch understands it, and do the options allow that?
 */
bool xs_wants_daemon(const struct xs_options *options);
enum xs_part_program {
	XS_PART_DEVICES,
	XS_PART_SAMPLER,
	XS_PART_METRICS,
	XS_PART_PROCESSORS,
	XS_PART_DOCTOR,
	XS_PART_OPEN,
	XS_PART_ATTACH,
};
/* The program that looks for devices, or that samples the machine, likewise. */
int xs_find_program(enum xs_part_program which, char *path);

/* ---- result.c: --output, --result-dir ---- */

/* Can the report be written where --output says? 0, or -1 after one line that says why not. */
int xs_report_check(const struct xs_options *options);
/*
 * The same of all results: a run whose results cannot be written must not start. Makes the
 * directory of --output-dir-path where it is missing, and says so in *ret_made.
 */
int xs_output_check(const struct xs_options *options, bool *ret_made);

struct xs_result {
	char directory[PATH_MAX], config[PATH_MAX + 32]; /* empty: not made */
};

/*
 * Writes what is run and how (`all`, `argv`: see xs_launch_create()), before it is run. 0 or
 * -errno.
 */
int xs_result_create(struct xs_result *result, const struct xs_launch *launch, char **all,
		     char **argv);
/* It could not be run. */
void xs_result_remove(const struct xs_result *result);

/* ---- devices.c ---- */

/*
 * --device-list, --metric-list: becomes the program that prints them; the exit status if that
 * fails.
 */
int xs_devices_print(const char *what);
/*
 * --devices-to-sample: looks for the devices and notes which ones are meant. 0, or -1 after one
 * line that says what is wrong.
 */
int xs_devices_select(struct xs_options *options);
/*
 * --metric-query, --metric-sampling, --stall-sampling: can what is wished for be measured here? 0,
 * or -1 after one line that says what is wrong.
 */
int xs_devices_check(const struct xs_options *options);

/* ---- doctor.c ---- */

/*
 * --doctor: becomes the program that looks at the machine, and at the application if its words
 * (`argv`) are not empty; the exit status if that fails.
 */
int xs_doctor(const struct xs_options *options, char *const *argv);

/* ---- attach.c ---- */

/*
 * --attach: becomes the program that samples a process; the exit status if that fails. `all`: the
 * launcher's argv; `end`: what follows its options.
 */
int xs_attach(const struct xs_options *options, char **all, char **end);

/* ---- counters.c: --cpu-metrics ---- */

/*
 * Which of the events can be counted here, for the application and for its tasks; what cannot be is
 * said. 0, or -1 after one line that says what is wrong.
 */
int xs_counters_select(struct xs_options *options);
/*
 * In the child that becomes the application: xstrace-cpu gets the events that count from its
 * exec on. It keeps none.
 */
void xs_counters_offer(const struct xs_launch *launch);

/* ---- dump.c ---- */

/*
 * --dump NAME: makes the session's flight recorder write, and waits until it has. The exit status.
 */
int xs_dump(const struct xs_options *options);
/* Says on stdout where a trace is, on stderr if it is gone. Makes the path plain text. A status. */
int xs_print_trace(char *path);

/* ---- where.c ---- */

/*
 * --stacks NAME: prints where each thread of the session is. The exit status.
 */
int xs_session_stacks(const struct xs_options *options);

/* ---- spawn.c ---- */

/* Starts the drain process, with launch->drain as our end of the channel. Its pid or -errno. */
int xs_start_drain(struct xs_launch *launch, char *path);
/*
 * From here to xs_run_application() a signal waits for the application, as from then on: there are
 * files of ours that would stay.
 */
void xs_hold_signals(void);
/*
 * Runs the application, with the drain process beside it, and waits; its status as from waitpid().
 * -errno when it could not be run. `all`: see xs_launch_create().
 */
int xs_run_application(struct xs_launch *launch, char *drain_path, const char *path, char **all,
		       char **argv, char **environment);
/* Becomes the application, untraced; -errno if exec fails. */
int xs_exec_application(const char *path, char **argv);
/* The same, and says what there is too little of (limits.c). */
int xs_exec_untraced(const char *scarce, const char *path, char **argv);
/* Ends this process as the application ended. */
_Noreturn void xs_end_like(int status);

/* ---- job.c ---- */

/* From here on no SIGCONT is lost unseen; xs_job_watched() waits until that is so. */
void xs_job_watch(void);
void xs_job_watched(void);
/* To be called for each SIGCONT that was taken, before it is passed on. */
void xs_job_continued(void);
/*
 * Stops us as the application is stopped, by the same signal, so the shell sees one job. Whoever
 * continues us continues the application, too (spawn.c). If somebody continues the application
 * alone, or it ends, or our stop has taken back a SIGCONT, a child that we have meanwhile continues
 * us. True: `ret` is a SIGCONT of another, to be passed on.
 */
bool xs_job_stop(int app, int number, siginfo_t *ret);

/*
 * The signals that are pending in a thread ("SigPnd") or in its process ("ShdPnd"). False: nobody
 * knows.
 */
bool xs_pending_in(int pid, int thread, const char *which, uint64_t *ret);

/* ---- group.c ---- */

/* For whom was a signal that we have got? */
enum xs_meant { XS_MEANT_UNKNOWN, XS_MEANT_US, XS_MEANT_GROUP };

/*
 * From here on that can be said. `argv`: the launcher's; the child that knows takes them away from
 * itself.
 */
void xs_group_watch(char **argv);
/* To be asked for each signal that was taken, once. Of two at once the second is taken for ours. */
enum xs_meant xs_group_meant(int number);
/* If the child is the one that knows, somebody has ended it. */
void xs_group_reaped(int pid);
/* That child is to end; it has, when the second one returns. */
void xs_group_end(void);
void xs_group_ended(void);

/* ---- sampler.c: --system-metrics, --metric-sampling, --stall-sampling, --cpu-metrics ---- */

/*
 * Starts the programs that sample, which join the run as the application does. One rank of a
 * machine has them. Where they cannot be started, the application runs without, after one line.
 */
void xs_sampler_start(struct xs_launch *launch, char **environment);
/* If the child is one of them, it has ended by itself: a driver may have crashed in it. */
void xs_sampler_reaped(struct xs_launch *launch, int pid, int status);
/* The application runs, or could not be started. */
void xs_sampler_started(struct xs_launch *launch);
/* They sample a last time, and are gone. */
void xs_sampler_end(struct xs_launch *launch);

/* ---- select.c: what is to be traced ---- */

/*
 * Does --ranks-to-sample want this process's rank? Without a rank in the environment: yes, after a
 * warning.
 */
bool xs_rank_wanted(const struct xs_options *options);
/* The rank that the environment gives this process; -1: none. */
int32_t xs_rank(void);
/*
 * Puts the names of --include-kernels-file and --exclude-kernels-file to the others, and splits
 * them and those of --exclude-calls. 0, or -1 after one line that says what is wrong.
 */
int xs_read_names(struct xs_options *options);
/* Prints a line for each option that is accepted and changes nothing. */
void xs_tell_missing(const struct xs_options *options);

/* ---- session.c: runs that have a name ---- */

/*
 * Gives the run the name of --session, with its rank behind it if it has one, or its id if a
 * program has begun it. 0, or -1 after one line that says why it cannot have it.
 */
int xs_session_register(const struct xs_launch *launch);
/*
 * The running session of that name: one run, or one of each rank of a job on this machine. 0 after
 * one line that says why there is none.
 */
size_t xs_session_open(const char *name, struct xs_launch **ret_runs);
/* Is there one, without a word? */
bool xs_session_is_there(const char *name);
/* All running ones of this user, named or not, in the directories where runs are. */
size_t xs_session_all(struct xs_launch **ret_runs);
void xs_session_close(struct xs_launch *runs, size_t count);
/*
 * Does `act` to each run of that name, whose statuses are or-ed; XS_EXIT_SELF after one line where
 * there is none.
 */
int xs_session_each(const char *session,
		    int (*act)(const struct xs_launch *launch, const char *session));
bool xs_session_drain_lives(const struct xs_control *control);
/*
 * Waits until the drain process has served a request: *served, a futex, has come so far. False: it
 * will not, and a line has said why.
 */
bool xs_session_await(const struct xs_launch *launch, const char *session, const char *option,
		      _Atomic uint32_t *served, uint32_t request);
/*
 * Why a file of the run directory is not there: is the run ending? Its files go before that can be
 * seen, so this waits for 100 ms.
 */
bool xs_session_ends(const struct xs_launch *launch);

/*
 * --open: becomes xstrace-open, which the Python package brings; the exit status if that is not
 * there.
 */
int xs_open(const struct xs_options *options);

/* ---- top.c, export.c: runs while they go on (look.h) ---- */

/* --top: the exit status. */
int xs_top(const struct xs_options *options);
/* --export without an application: until a signal ends it. */
int xs_export(const struct xs_options *options);
/*
 * --export with one: a child gives the numbers of this run until SIGTERM. Its pid; 0: there is
 * none, if it was asked for after one line that says why.
 */
int xs_export_start(struct xs_launch *launch);

/* ---- commands.c: what is done to them ---- */

/*
 * --pause, --resume and --stop NAME: what they do to each run of that name is said in a line. The
 * exit status.
 */
int xs_session_pause(const struct xs_options *options);
int xs_session_resume(const struct xs_options *options);
int xs_session_stop(const struct xs_options *options);

#endif
