/*
 * xstrace-attach RUN-DIRECTORY: becomes of the launcher where it is given --attach. It is to this
 * run what the drain process is to others: the run's directory, sessions and sinks are the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach.h"
#include "channel.h"
#include "process.h"
#include "run_open.h"
#include "sampler.h"
#include "shm.h"
#include "sink.h"
#include "sinks_open.h"
#include "task_record.h"
#include "text.h"
#include "title.h"

#define INTERVAL_US 10000u
#define TURN_MS	    50	       /* between two looks at what other shells have asked for */
#define COUNTERS_NS 100000000u /* between two values of the counters */
#define MS	    1000000u
#define PATIENCE_NS 5000000000u /* until a sampler that was asked to end is killed */

struct attach {
	struct xs_run run;
	struct xs_process process;
	struct at_stacks stacks;
	struct at_threads threads;
	struct at_sampler sampler;
	struct at_cost cost;
	pid_t pid;
	uint64_t interval, deadline; /* deadline: CLOCK_MONOTONIC; UINT64_MAX: none */
	int signals, pidfd;
	uint64_t now;		       /* ns of the trace: the look whose lines are read */
	uint64_t counted, counted_cpu; /* of the last values of the counters */
	bool again, begun, stopping, paused, told;
	char why[256]; /* the sampler has said why it cannot; empty: it has not */
};

/* ---- what the sampler says ---- */

static void put_counter(struct attach *attach, const char *name, double value)
{
	struct xs_counter_record record = {
		.event = { .name = at_name(&attach->stacks, name), .flags = XS_VALUE_DOUBLE },
		.value = { .d = value },
	};

	XS_TELL_SINKS(&attach->process, counter, &attach->process, &record, attach->now);
}

/* Resident memory, bytes; 0: not to be seen. */
static uint64_t memory_of(pid_t pid)
{
	unsigned long long resident = 0;
	char path[32];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*u %llu", &resident) != 1)
		resident = 0;
	if (file)
		(void)fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void count(struct attach *attach)
{
	uint64_t span = attach->now - attach->counted, cpu;

	if (attach->counted && span < COUNTERS_NS)
		return;
	cpu = at_threads_cpu(&attach->threads);
	if (attach->counted) {
		put_counter(attach, "cpu_percent",
			    100.0 * (double)(cpu - attach->counted_cpu) / (double)span);
		put_counter(attach, "resident_bytes",
			    (double)memory_of(xs_pid_living(attach->pid)));
		put_counter(attach, "threads", attach->threads.count);
	}
	attach->counted = attach->now;
	attach->counted_cpu = cpu;
}

/* "NS" */
static void begin_look(struct attach *attach, const char *rest)
{
	uint64_t ns = strtoull(rest, NULL, 10) + (uint64_t)attach->run.clock.offset;

	if (ns > attach->now)
		attach->now = ns;
	if (attach->cost.looks++)
		return;
	attach->cost.first = attach->now;
	if (attach->run.options->duration)
		attach->deadline = xs_clock_ns(CLOCK_MONOTONIC) + attach->run.options->duration;
}

/* "HELD MISSED MENDED NS LONGEST OWN SAMPLES" */
static void end_look(struct attach *attach, const char *rest)
{
	unsigned long long held = 0, missed = 0, mended = 0, ns = 0, longest = 0, own = 0,
			   samples = 0;
	struct at_cost *cost = &attach->cost;

	(void)sscanf(rest, "%llu %llu %llu %llu %llu %llu %llu", &held, &missed, &mended, &ns,
		     &longest, &own, &samples);
	cost->samples += samples;
	cost->held += held;
	cost->missed += missed;
	cost->mended += mended;
	cost->held_ns += ns;
	cost->own_ns += own;
	if (longest > cost->longest_ns)
		cost->longest_ns = longest;
	count(attach);
	xs_title_look(&attach->process);
}

/* Once threads were seen: before, the kernel may refuse it yet. */
static void tell_begin(struct attach *attach)
{
	attach->begun = true;
	at_tell_not_recorded(attach->pid);
	xs_tell("[INFO] Process %d (%s) is sampled every %g ms; Ctrl-C ends that\n", attach->pid,
		attach->process.comm, (double)attach->interval / MS);
}

static void read_line(void *data, char *line)
{
	struct attach *attach = data;
	char kind = line[0], *rest = line[0] && line[1] ? line + 2 : line;

	if (kind == 'T' && !attach->begun)
		tell_begin(attach);
	if (attach->paused && kind != 'E')
		return;
	switch (kind) {
	case 'M':
	case 'D':
	case 'Y':
	case 'K':
		at_stacks_read(&attach->stacks, kind, rest);
		break;
	case 'B':
		begin_look(attach, rest);
		break;
	case 'W':
		at_threads_named(&attach->threads, rest, attach->now);
		break;
	case 'T':
		at_threads_seen(&attach->threads, rest, attach->now);
		break;
	case 'X':
		at_threads_ended(&attach->threads, rest, attach->now);
		break;
	case 'S':
		end_look(attach, rest);
		break;
	case 'O':
		attach->cost.more_threads = true;
		break;
	case 'A':
		attach->again = true;
		break;
	case 'E':
		(void)snprintf(attach->why, sizeof(attach->why), "%s", rest);
		break;
	default:
		break;
	}
}

/* ---- life ---- */

static uint64_t trace_now(const struct attach *attach)
{
	return xs_clock_ns(CLOCK_MONOTONIC) + (uint64_t)attach->run.clock.offset;
}

static bool start_sampler(struct attach *attach)
{
	int error;

	at_stacks_renew(&attach->stacks);
	error = at_sampler_start(&attach->sampler, attach->pid, attach->interval);
	if (error < 0)
		xs_tell("xstrace: --attach %d: xstrace-stacks: %s\n", attach->pid,
			error == -ENOENT ? "this xstrace was built without libunwind"
					 : strerror(-error));
	return error >= 0;
}

/* What signals and other shells want. */
static void hear(struct attach *attach)
{
	struct xs_control *control = attach->run.control;
	uint32_t paused = atomic_load_explicit(&control->paused, memory_order_acquire), asked;
	struct signalfd_siginfo info;

	while (read(attach->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		attach->stopping = true;
	if (paused & XS_PAUSE_STOPPED || xs_clock_ns(CLOCK_MONOTONIC) >= attach->deadline)
		attach->stopping = true;
	/* --stacks of this session: there is no process of its own in it */
	asked = atomic_load_explicit(&control->stacks_asked, memory_order_acquire);
	if (asked != atomic_load_explicit(&control->stacks_served, memory_order_relaxed)) {
		atomic_store_explicit(&control->stacks_served, asked, memory_order_release);
		xs_futex_wake(&control->stacks_served);
	}
	if (!!paused == attach->paused)
		return;
	attach->paused = paused;
	if (paused && attach->threads.count)
		at_threads_pause(&attach->threads, trace_now(attach));
}

/* The sampler has ended by itself. True: another one goes on. */
static bool replace_sampler(struct attach *attach, int how)
{
	bool again = attach->again;

	attach->again = false;
	if (attach->stopping || attach->why[0])
		return false;
	if (WIFSIGNALED(how) && !attach->told) {
		xs_tell("[WARNING] signal %d has ended the program that looks at the threads; "
			"another one goes on\n",
			WTERMSIG(how));
		attach->told = again = true;
	}
	if (!again)
		return false;
	at_threads_pause(&attach->threads, attach->now);
	return start_sampler(attach);
}

static void follow(struct attach *attach)
{
	struct pollfd fds[] = { { attach->sampler.fd, POLLIN, 0 }, { attach->signals, POLLIN, 0 } };
	uint64_t asked = 0;
	int how;

	for (;;) {
		fds[0].fd = attach->sampler.fd;
		(void)poll(fds, 2, TURN_MS);
		hear(attach);
		if (attach->stopping && !asked) {
			at_sampler_end(&attach->sampler, SIGTERM);
			asked = xs_clock_ns(CLOCK_MONOTONIC);
		} else if (asked && xs_clock_ns(CLOCK_MONOTONIC) - asked > PATIENCE_NS) {
			at_sampler_end(&attach->sampler, SIGKILL); /* it waits for memory */
		}
		if (!(fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		if (at_sampler_read(&attach->sampler, read_line, attach, &how))
			continue;
		if (!replace_sampler(attach, how))
			return;
	}
}

/* ---- begin and end ---- */

static void name_process(struct attach *attach)
{
	struct xs_process *process = &attach->process;
	char path[32], arguments[XS_ARGUMENTS_MAX];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", attach->pid);
	file = fopen(path, "re");
	if (file && fgets(process->comm, sizeof(process->comm), file))
		process->comm[strcspn(process->comm, "\n")] = '\0';
	if (file)
		(void)fclose(file);
	xs_title_first(process, arguments,
		       (uint32_t)xs_pid_arguments(attach->pid, arguments, sizeof(arguments)));
	if (process->arguments && process->arguments_length <= sizeof(attach->run.command)) {
		memcpy(attach->run.command, process->arguments, process->arguments_length);
		attach->run.command_length = process->arguments_length;
	}
}

/* 0 or -errno. */
static int prepare(struct attach *attach, const char *dir)
{
	struct xs_process *process = &attach->process;
	const struct xs_options *options;
	int error = xs_run_open(&attach->run, dir, XS_DRAIN_CHANNEL);

	if (error < 0)
		return error;
	options = attach->run.options;
	attach->pid = (pid_t)strtol(options->attach, NULL, 10);
	attach->interval =
		1000ull * (options->sampling_interval ? options->sampling_interval : INTERVAL_US);
	attach->deadline = UINT64_MAX;
	attach->run.control->consumer.start = xs_pid_start(getpid());
	*process = (struct xs_process){
		.run = &attach->run,
		.file = calloc(1, sizeof(*process->file)),
		.names = xs_names_open(),
		.pid = attach->pid,
		.watched = attach->pid,
		.ppid = xs_pid_parent(attach->pid),
		.start = xs_pid_start(attach->pid),
		.pidfd = -1,
		.join_tick = attach->run.control->tick0,
	};
	attach->threads = (struct at_threads){ .process = process, .stacks = &attach->stacks };
	attach->pidfd = (int)syscall(SYS_pidfd_open, attach->pid, 0);
	if (!process->file || !process->names ||
	    !at_stacks_init(&attach->stacks, &attach->run, attach->pid))
		return -ENOMEM;
	return 0;
}

/* Ctrl-C and its like end the sampling, and not this program. */
static int take_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		(void)sigaddset(&set, ends[i]);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void list_threads(struct attach *attach)
{
	struct xs_process *process = &attach->process;

	process->threads = calloc(attach->threads.ended_count + 1, sizeof(*process->threads));
	process->threads_omitted = attach->threads.more;
	for (uint32_t i = 0; process->threads && i < attach->threads.ended_count; i++) {
		const struct at_thread *thread = attach->threads.ended[i];

		process->events += thread->slices;
		process->threads[process->thread_count++] = (struct xs_thread_stats){
			.tid = (uint32_t)thread->tid,
			.name = at_name(&attach->stacks, thread->name[0] ? thread->name : "?"),
			.records = thread->slices,
		};
	}
}

static void tell_cost(struct attach *attach)
{
	const struct at_cost *cost = &attach->cost;
	const struct xs_about facts[] = {
		{ "sampled", at_name(&attach->stacks, "from outside: times are those of looks"),
		  0 },
		{ "looks", 0, cost->looks },
		{ "perf_samples", 0, cost->samples },
		{ "held", 0, cost->held },
		{ "held_ns", 0, cost->held_ns },
		{ "longest_held_ns", 0, cost->longest_ns },
		{ "not_held", 0, cost->missed },
		{ "restarted_calls", 0, cost->mended },
		{ "sampler_cpu_ns", 0, cost->own_ns },
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		xs_process_tell(&attach->process, facts[i]);
}

/* How it has ended, if it has. */
static enum xs_end end_of(const struct attach *attach, int *ret_status)
{
	int how;

	*ret_status = -1;
	if (xs_pid_alive(attach->pid, attach->process.start))
		return XS_END_STOPPED;
	if (!xs_pid_status(attach->pid, attach->process.start, attach->pidfd, &how))
		return XS_END_UNKNOWN;
	*ret_status = WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how);
	return WIFSIGNALED(how) ? XS_END_KILLED : XS_END_EXITED;
}

static void write_all(struct attach *attach)
{
	struct xs_process *process = &attach->process;
	uint64_t end = trace_now(attach);
	enum xs_end how;
	int status;

	if (!attach->threads.told)
		return;
	at_threads_end(&attach->threads, attach->paused ? attach->now : end);
	attach->cost.last = end;
	process->last_ns = end;
	process->host_ns = end - attach->cost.first;
	list_threads(attach);
	tell_cost(attach);
	at_report(&attach->threads, &attach->cost);
	how = end_of(attach, &status);
	(void)xs_sinks_close(process, how, status);
	at_write_folded(&attach->threads);
}

static int sample(struct attach *attach)
{
	char why[512];

	if (at_refused(attach->pid, why, sizeof(why))) {
		xs_tell("xstrace: --attach %d: %s\n", attach->pid, why);
		return XS_EXIT_SELF;
	}
	name_process(attach);
	if (!start_sampler(attach))
		return XS_EXIT_SELF;
	follow(attach);
	if (!attach->threads.told && !attach->why[0])
		(void)strcpy(attach->why, attach->stopping
						  ? "ended before a thread was looked at: nothing "
						    "is written"
						  : "it has just ended");
	if (attach->why[0])
		xs_tell("xstrace: --attach %d: %s\n", attach->pid, attach->why);
	write_all(attach);
	return attach->threads.told ? 0 : XS_EXIT_SELF;
}

int main(int argc, char **argv)
{
	static struct attach attach;
	int error, status, null;

	if (argc != 2 || fcntl(XS_DRAIN_DIRECTORY, F_GETFD) < 0) {
		xs_tell("xstrace-attach: xstrace --attach starts this program; see xstrace "
			"--help\n");
		return XS_EXIT_SELF;
	}
	while ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && null <= STDERR_FILENO)
		(void)fcntl(null, F_SETFD, 0); /* closed: or a pipe would become one of them */
	close(null);
	(void)fcntl(XS_DRAIN_DIRECTORY, F_SETFD, FD_CLOEXEC);
	attach.signals = take_signals();
	error = prepare(&attach, argv[1]);
	if (error < 0)
		xs_tell("xstrace: --attach: %s\n", strerror(-error));
	/* nobody else looks for it: if this program is killed, nothing is left */
	if (attach.run.control && !attach.run.options->session[0])
		(void)xs_shm_remove(attach.run.directory, attach.run.dir);
	status = error < 0 ? XS_EXIT_SELF : sample(&attach);
	if (attach.run.owns_output)
		(void)rmdir(attach.run.options->output_dir); /* if it is empty */
	if (attach.run.control) {
		if (attach.run.options->session[0])
			xs_run_remove(&attach.run);
		atomic_store_explicit(&attach.run.control->finished, 1, memory_order_release);
		xs_futex_wake(&attach.run.control->finished);
	}
	return status;
}
