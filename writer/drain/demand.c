/*
 * Who may be asked for a trace, what is asked for, and when it is due. What is then recorded:
 * demand_traces.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demand.h"
#include "demand_state.h"
#include "process.h"
#include "text.h"

#define MS	    1000000u
#define INTERVAL    5000000000u /* between two questions, as Kineto has it */
#define SHORTEST    (50u * MS)
#define FIRST	    (100u * MS) /* after a process was found: many live shorter */
#define ANSWER	    (100u * MS) /* how long an answer is waited for */
#define ANSWER_STEP (5u * MS)
#define REFUSALS    20u	   /* lines of them that a run tells */
#define ANSWERS	    16u	   /* messages that are taken in one turn */
#define LATE	    10000u /* ms: a start that lies further back is no start, as Kineto has it */

/* ---- the configuration of this machine ---- */

/* The file that KINETO_CONFIG names. Its length; `text` has room for XS_DYNOLOG_TEXT bytes. */
static size_t read_base(char *text)
{
	const char *path = getenv("KINETO_CONFIG");
	int fd = open(path ? path : "/etc/libkineto.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, XS_DYNOLOG_TEXT);

	if (fd < 0 && path)
		xs_tell("[WARNING] KINETO_CONFIG: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

static bool read_configuration(struct xs_demand *demand)
{
	struct xs_demand_config *base = &demand->config;
	char error[128];

	if (!xs_demand_parse(base, demand->text, read_base(demand->text), error, sizeof(error)))
		xs_tell("[WARNING] KINETO_CONFIG: %s: %s; what stands before it counts\n",
			getenv("KINETO_CONFIG") ? getenv("KINETO_CONFIG") : "/etc/libkineto.conf",
			error);
	demand->interval = base->interval == UINT64_MAX ? INTERVAL : base->interval;
	if (demand->interval < SHORTEST)
		demand->interval = SHORTEST;
	if (base->fabric_given && !base->fabric)
		xs_tell("[WARNING] Kineto's configuration has ENABLE_IPC_FABRIC=0: dynolog is not "
			"asked, and nothing is recorded\n");
	return !base->fabric_given || base->fabric;
}

bool xs_demand_is_wanted(const struct xs_run *run)
{
	return run->options->on_demand || (run->hosted_start && run->options->session[0]);
}

void xs_demand_open(struct xs_run *run)
{
	struct xs_demand *demand = calloc(1, sizeof(*demand));

	if (!demand) {
		xs_tell("[WARNING] no memory for traces on demand; none is recorded\n");
		return;
	}
	run->demand = demand;
	run->trace_written = xs_demand_written;
	demand->own_format = run->copied_options.format;
	demand->silent = !run->options->on_demand || !read_configuration(demand);
	demand->for_session = run->hosted_start && run->options->session[0];
	if (!run->hosted_start)
		xs_demand_use_format(run, true);
}

static void remove_asked(struct xs_asked *asked)
{
	xs_dynolog_close(&asked->dynolog);
	free(asked);
}

void xs_demand_close(struct xs_run *run)
{
	struct xs_demand *demand = run->demand;

	while (demand && demand->asked) {
		struct xs_asked *asked = demand->asked;

		demand->asked = asked->next;
		remove_asked(asked);
	}
	free(demand);
	run->demand = NULL;
}

/* ---- processes ---- */

static int open_dynolog(const struct xs_demand *demand, struct xs_asked *asked)
{
	asked->dynolog.fd = -1;
	return demand->silent ? 0 : xs_dynolog_open(&asked->dynolog);
}

static void add_asked(struct xs_process *process)
{
	struct xs_demand *demand = process->run->demand;
	struct xs_asked *asked;
	int error;

	if ((demand->silent && !demand->for_session) || process->start == UINT64_MAX)
		return;
	if (demand->count == XS_ASKED_MAX) {
		if (!demand->told_many)
			xs_tell("[WARNING] dynolog can ask for traces of the first %u processes "
				"alone\n",
				XS_ASKED_MAX);
		demand->told_many = true;
		return;
	}
	asked = calloc(1, sizeof(*asked));
	error = asked ? open_dynolog(demand, asked) : -ENOMEM;
	if (error < 0) {
		if (!demand->told_error)
			xs_tell("[WARNING] process %d (%s) cannot be made known to dynolog: %s\n",
				process->pid, process->comm, strerror(-error));
		demand->told_error = true;
		free(asked);
		return;
	}
	asked->pid = process->pid;
	asked->watched = process->watched;
	asked->start = process->start;
	asked->next_poll = demand->silent ? UINT64_MAX : xs_clock_ns(CLOCK_MONOTONIC) + FIRST;
	asked->next = demand->asked;
	demand->asked = asked;
	demand->count++;
}

void xs_demand_met(struct xs_process *process)
{
	const struct xs_asked *asked;

	if (!process->run->demand)
		return;
	asked = xs_demand_asked(process);
	if (!asked) {
		add_asked(process);
		asked = xs_demand_asked(process);
	}
	if (asked && asked->state == XS_ASKED_ACTIVE)
		xs_demand_name_trace(process, asked);
	else if (!process->run->hosted_start)
		process->awaits_event = false; /* what it records meanwhile is for nobody */
}

void xs_demand_gone(struct xs_run *run, struct xs_asked *asked)
{
	struct xs_asked **link = asked ? &run->demand->asked : NULL;

	if (!asked)
		return;
	while (*link != asked)
		link = &(*link)->next;
	*link = asked->next;
	run->demand->count--;
	if (asked->state == XS_ASKED_WAITING)
		xs_tell("[WARNING] process %d has ended before the trace that dynolog asked for "
			"began\n",
			asked->pid);
	if (asked->state == XS_ASKED_ACTIVE && !xs_demand_is_active(run))
		xs_demand_record(run, false);
	remove_asked(asked);
}

bool xs_demand_wants(const struct xs_process *process)
{
	const struct xs_asked *asked = xs_demand_asked(process);

	return asked && asked->state == XS_ASKED_ACTIVE;
}

bool xs_demand_is_active(const struct xs_run *run)
{
	const struct xs_asked *asked = run->demand ? run->demand->asked : NULL;

	while (asked && asked->state != XS_ASKED_ACTIVE)
		asked = asked->next;
	return asked;
}

/* ---- requests ---- */

/* Why a request is not served; NULL: it is. */
static const char *why_not(const struct xs_run *run, const struct xs_asked *asked,
			   const struct xs_demand_config *config, uint64_t now)
{
	if (asked->state != XS_ASKED_IDLE)
		return "the one before it is not done yet";
	if (run->hosted_start &&
	    !(atomic_load_explicit(&run->control->paused, memory_order_relaxed) & XS_PAUSE_LIBRARY))
		return "the program records a trace of its own";
	if (!config->enabled)
		return "it has ACTIVITIES_ENABLED=0";
	if (config->start_time && config->start_iteration < 0 && config->start_time + LATE < now)
		return "its PROFILE_START_TIME is more than 10 s ago";
	return NULL;
}

static void plan_by_time(struct xs_asked *asked, uint64_t real_ms)
{
	const struct xs_demand_config *config = &asked->config;
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC),
		 wait = config->start_time > real_ms ? config->start_time - real_ms : 0;

	asked->begin_step = asked->end_step = 0;
	asked->begin = wait < (UINT64_MAX - now) / MS / 2 ? now + wait * MS : UINT64_MAX / 2;
	asked->end = asked->begin + config->duration;
}

/* Who sends many requests that are not served fills nobody's terminal. */
static void tell_refused(struct xs_demand *demand, const struct xs_asked *asked, const char *why)
{
	if (demand->refused < REFUSALS)
		xs_tell("[WARNING] process %d: a request of dynolog is not served: %s%s\n",
			asked->pid, why,
			demand->refused == REFUSALS - 1 ? "; no further ones are told" : "");
	demand->refused += demand->refused < REFUSALS;
}

static void choose_path(struct xs_asked *asked)
{
	const char *why = "which is not in the directory that KINETO_ONDEMAND_TRACE_DIR allows";
	bool allowed = xs_demand_path(&asked->config, asked->pid, asked->path);

	if (allowed && asked->config.log_file[0] && !xs_demand_is_safe(asked->path)) {
		why = "on the way to which is a link, no directory, or one that other users can "
		      "change";
		allowed = false;
		xs_demand_usual_path(asked->pid, asked->path);
	}
	if (!allowed)
		xs_tell("[WARNING] process %d: dynolog asks for a trace in %s, %s; it is to be in "
			"%s\n",
			asked->pid, asked->config.log_file, why, asked->path);
}

static void take_request(struct xs_run *run, struct xs_asked *asked, size_t length)
{
	struct xs_demand_config *config = &run->demand->config;
	uint64_t real_ms = xs_clock_ns(CLOCK_REALTIME) / MS;
	char error[128];
	const char *wrong = error;

	if (xs_demand_parse(config, run->demand->text, length, error, sizeof(error)))
		wrong = why_not(run, asked, config, real_ms);
	if (wrong) {
		tell_refused(run->demand, asked, wrong);
		return;
	}
	asked->config = *config;
	asked->by_session = false;
	choose_path(asked);
	asked->by_steps = config->start_iteration >= 0;
	plan_by_time(asked, real_ms);
	asked->state = XS_ASKED_WAITING;
	asked->fresh = true;
}

/* ---- the daemon ---- */

static void tell_error(struct xs_demand *demand, int error)
{
	/* there is no daemon yet, or it is slow: it is asked again */
	if (!error || error == -ECONNREFUSED || error == -ENOENT || error == -EAGAIN)
		return;
	if (!demand->told_error)
		xs_tell("[WARNING] dynolog cannot be asked: %s\n", strerror(-error));
	demand->told_error = true;
}

static int ask(struct xs_asked *asked)
{
	int32_t pids[XS_DYNOLOG_PIDS] = { asked->pid };
	uint32_t count = 1;
	int32_t pid = asked->watched;

	while (count < XS_DYNOLOG_PIDS && (pid = xs_pid_parent(pid)) > 1)
		pids[count++] = pid;
	return xs_dynolog_ask(&asked->dynolog, pids, count);
}

static void poll_daemon(struct xs_demand *demand, struct xs_asked *asked, uint64_t now)
{
	int error = 0;

	if (now < asked->next_poll)
		return;
	asked->next_poll = now + demand->interval;
	if (!asked->registered)
		error = xs_dynolog_register(&asked->dynolog, asked->pid);
	asked->registered |= !error;
	if (!error)
		error = ask(asked);
	if (!error)
		asked->answer_until = now + ANSWER;
	else if (error == -ECONNREFUSED || error == -ENOENT)
		asked->registered = false; /* a daemon that comes later does not know it */
	tell_error(demand, error);
}

static void hear(struct xs_run *run, struct xs_asked *asked)
{
	struct xs_demand *demand = run->demand;
	enum xs_dynolog_heard heard;
	size_t length;

	for (uint32_t i = 0; i < ANSWERS; i++) {
		heard = xs_dynolog_hear(&asked->dynolog, demand->text, &length);
		if (heard == XS_DYNOLOG_NOTHING)
			return;
		if (heard == XS_DYNOLOG_REQUEST)
			take_request(run, asked, length);
		if (heard == XS_DYNOLOG_GARBAGE && !demand->told_garbage) {
			xs_tell("[WARNING] what came from dynolog, or from another program in its "
				"place, is no message of its protocol; it is passed over\n");
			demand->told_garbage = true;
		}
	}
}

/* In how many ns something is due. */
static uint64_t sleep_of(const struct xs_asked *asked, uint64_t now)
{
	uint64_t next = asked->next_poll;

	if (asked->answer_until > now && now + ANSWER_STEP < next)
		next = now + ANSWER_STEP;
	if (asked->state == XS_ASKED_WAITING && !asked->begin_step && asked->begin < next)
		next = asked->begin;
	if (asked->state == XS_ASKED_ACTIVE && !asked->end_step && asked->end < next)
		next = asked->end;
	return next > now ? next - now : 0;
}

bool xs_demand_serve(struct xs_run *run, struct xs_process **list, uint64_t *ret_sleep)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);
	bool changed;

	if (!run->demand)
		return false;
	for (struct xs_asked *asked = run->demand->asked; asked && !run->demand->silent;
	     asked = asked->next) {
		hear(run, asked);
		poll_daemon(run->demand, asked, now);
	}
	changed = xs_demand_serve_session(run, list, now);
	changed |= xs_demand_act(run, list, now);
	now = xs_clock_ns(CLOCK_MONOTONIC);
	for (struct xs_asked *asked = run->demand->asked; asked; asked = asked->next) {
		uint64_t sleep = sleep_of(asked, now);

		if (sleep < *ret_sleep)
			*ret_sleep = sleep;
	}
	return changed;
}
