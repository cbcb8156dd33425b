/*
 * The traces of --on-demand: from the moment at which one is due to the file that has its name.
 *
 * Recording is switched for the run as a whole. While a trace of one process is recorded, others of
 * the run record too: what they do is read, and no file is made of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demand.h"
#include "demand_state.h"
#include "processes.h"
#include "text.h"

#define TEMPORARY ".tmp" /* as Kineto has it: readers wait for the name without it */

void xs_demand_use_format(struct xs_run *run, bool kineto)
{
	uint32_t *format = &run->copied_options.format;

	*format = run->demand->own_format;
	if (kineto && *format == XS_FORMAT_CHROME)
		*format = XS_FORMAT_KINETO;
}

void xs_demand_name_trace(struct xs_process *process, const struct xs_asked *asked)
{
	process->needs_no_list = true;
	if (asked->by_session)
		return;
	free(process->trace_path);
	free(process->trace_id);
	process->trace_types = asked->config.types;
	process->trace_id = asked->config.trace_id[0] ? strdup(asked->config.trace_id) : NULL;
	if (asprintf(&process->trace_path, "%s" TEMPORARY, asked->path) < 0)
		process->trace_path = NULL;
}

void xs_demand_written(struct xs_run *run, char *path)
{
	for (struct xs_asked *asked = run->demand->asked; asked; asked = asked->next) {
		size_t length = strlen(asked->path);

		if (asked->state != XS_ASKED_ACTIVE || strncmp(path, asked->path, length) != 0 ||
		    strncmp(path + length, TEMPORARY, strlen(TEMPORARY)) != 0)
			continue;
		asked->written = true;
		if (!xs_demand_may_replace(asked->path))
			xs_tell("[WARNING] %s is there already and is no trace of this user; the "
				"trace stays in %s\n",
				asked->path, path);
		else if (rename(path, asked->path) < 0)
			xs_tell("[WARNING] %s: %s; the trace stays in %s\n", asked->path,
				strerror(errno), path);
		else
			memcpy(path, asked->path, length + 1);
		return;
	}
}

struct xs_asked *xs_demand_asked(const struct xs_process *process)
{
	struct xs_asked *asked = process->run->demand ? process->run->demand->asked : NULL;

	while (asked && (asked->pid != process->pid || asked->watched != process->watched ||
			 asked->start != process->start))
		asked = asked->next;
	return asked;
}

/* ---- recording ---- */

/*
 * In a run that a program has begun for itself: may we record? The program sets its word before it
 * looks at ours, and we the other way round; where both are set, we give way.
 */
static bool may_record(struct xs_run *run)
{
	struct xs_control *control = run->control;

	if (!run->hosted_start)
		return true;
	atomic_store_explicit(&control->demand, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&control->own_trace, memory_order_relaxed))
		return true;
	atomic_store_explicit(&control->demand, 0, memory_order_relaxed);
	return false;
}

void xs_demand_record(struct xs_run *run, bool on)
{
	(void)xs_control_change(run->directory, run->control, XS_PAUSE_LIBRARY, !on);
	if (run->hosted_start && !on)
		atomic_store_explicit(&run->control->demand, 0, memory_order_release);
}

/* The step that waits for us goes on. */
static void answer_step(struct xs_process_file *file, uint64_t due)
{
	atomic_store_explicit(&file->step_due, due, memory_order_relaxed);
	atomic_fetch_add_explicit(&file->step_done, 1, memory_order_release);
	xs_futex_wake(&file->step_done);
}

/* False: the program has a trace of its own now. */
static bool begin(struct xs_run *run, struct xs_asked *asked, struct xs_process *process)
{
	struct xs_process_file *file = process->file;

	if (!may_record(run)) {
		asked->state = XS_ASKED_IDLE;
		answer_step(file, 0);
		if (!asked->by_session)
			xs_tell("[WARNING] process %d: a request of dynolog is not served: the "
				"program records a trace of its own\n",
				asked->pid);
		return false;
	}
	asked->state = XS_ASKED_ACTIVE;
	asked->written = false;
	xs_demand_use_format(run, !asked->by_session);
	xs_demand_record(run, true);
	answer_step(file, asked->end_step);
	return true;
}

/* What was recorded before, for others, is none of its. The step that is just beginning waits. */
static bool begin_anew(struct xs_run *run, struct xs_asked *asked, struct xs_process *process)
{
	(void)xs_process_read(process, true);
	if (!begin(run, asked, process))
		return false;
	xs_process_discard(process);
	return true;
}

static void end(struct xs_run *run, struct xs_asked *asked, struct xs_process *process)
{
	struct xs_process_file *file = process->file;
	char path[PATH_MAX];
	bool others = false;

	for (const struct xs_asked *one = run->demand->asked; one; one = one->next)
		others |= one != asked && one->state == XS_ASKED_ACTIVE;
	if (!others)
		xs_demand_record(run, false);
	answer_step(file, 0);
	(void)xs_process_read(process, true);
	xs_process_cut(process, path);
	if (asked->by_session)
		memcpy(run->control->session_trace, path, strlen(path) + 1);
	else if (!asked->written)
		xs_tell("[WARNING] process %d: the trace that dynolog has asked for cannot be "
			"written to %s\n",
			asked->pid, asked->path);
	asked->state = XS_ASKED_IDLE;
	if (run->hosted_start)
		xs_demand_use_format(run, false);
}

/* ---- when ---- */

/* The next step is the one after `steps` calls; they count from 0. */
static void plan_by_steps(struct xs_asked *asked, uint64_t steps)
{
	const struct xs_demand_config *config = &asked->config;
	uint64_t first = (uint64_t)config->start_iteration;

	if (first < steps) {
		first = steps;
		if (config->roundup)
			first = (first + config->roundup - 1) / config->roundup * config->roundup;
	}
	asked->begin_step = first + 1;
	asked->end_step = asked->begin_step + (config->iterations ? config->iterations : 1);
}

/* Decides whether steps or times count. */
static void plan(struct xs_asked *asked, struct xs_process_file *file)
{
	uint64_t steps = atomic_load_explicit(&file->steps, memory_order_relaxed);

	asked->fresh = false;
	/* as Kineto: a program that tells no steps is traced for a time */
	if (!asked->by_steps || !steps || steps > INT64_MAX / 2)
		return;
	plan_by_steps(asked, steps);
	atomic_store_explicit(&file->step_due, asked->begin_step, memory_order_relaxed);
}

static bool is_due(const struct xs_process *process, uint64_t step, uint64_t time, uint64_t now)
{
	const struct xs_process_file *file = process->file;

	/* a later image of the process does not wait at that step */
	return step ? atomic_load_explicit(&file->steps, memory_order_relaxed) >= step ||
			       atomic_load_explicit(&file->step_due, memory_order_relaxed) != step
		    : now >= time;
}

bool xs_demand_act(struct xs_run *run, struct xs_process **list, uint64_t now)
{
	struct xs_process **link = list;
	bool changed = false;

	while (*link) {
		struct xs_process *process = *link;
		struct xs_asked *asked = xs_demand_asked(process);
		bool gone = false;

		if (asked && asked->fresh)
			plan(asked, process->file);
		*link = process->next;
		if (!asked || process->exec)
			;
		else if (asked->state == XS_ASKED_WAITING &&
			 is_due(process, asked->begin_step, asked->begin, now))
			gone = begin_anew(run, asked, process);
		else if (asked->state == XS_ASKED_ACTIVE &&
			 is_due(process, asked->end_step, asked->end, now)) {
			end(run, asked, process);
			gone = true;
		}
		changed |= gone;
		if (!gone) {
			*link = process;
			link = &process->next;
		}
	}
	return changed;
}

void xs_demand_yield(struct xs_run *run, struct xs_process **list)
{
	for (struct xs_asked *asked = run->demand->asked; asked; asked = asked->next)
		if (asked->state == XS_ASKED_ACTIVE) {
			asked->end_step = 0;
			asked->end = 0;
		}
	(void)xs_demand_act(run, list, xs_clock_ns(CLOCK_MONOTONIC));
	/* a process that could not be mapped: its trace is lost, the program's is not */
	for (struct xs_asked *asked = run->demand->asked; asked; asked = asked->next)
		asked->state = XS_ASKED_IDLE;
	xs_demand_record(run, false);
	xs_demand_use_format(run, false);
}
