/*
 * What somebody asks for while the run goes on: the flight recorder's dumps, a hosted run's traces.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "commit.h"
#include "demand.h"
#include "flight.h"
#include "loop.h"
#include "processes.h"
#include "text.h"

/* ---- the flight recorder ---- */

void xs_loop_forget_ended(struct xs_loop *loop, bool all)
{
	for (struct xs_process **link = &loop->ended; *link;) {
		struct xs_process *process = *link;

		if (!all && xs_flight_expire(process)) {
			link = &process->next;
			continue;
		}
		*link = process->next;
		xs_process_free(process);
	}
}

bool xs_loop_wants_dump(const struct xs_loop *loop)
{
	return loop->run.flight && !loop->dumping && (loop->crashed || xs_flight_asked(&loop->run));
}

/* In a child: fork was the snapshot. */
static _Noreturn void write_dump(struct xs_loop *loop)
{
	bool any = false;

	/* at once: what the threads are doing at this moment stands in their rings */
	for (struct xs_process *p = loop->processes; p; p = p->next)
		(void)xs_process_detach(p);
	for (struct xs_process *p = loop->processes; p; p = p->next)
		any |= xs_process_dump(p);
	for (struct xs_process *p = loop->ended; p; p = p->next)
		any |= xs_process_dump(p);
	if (any)
		xs_flight_end_list(&loop->run);
	else
		xs_tell("[INFO] Flight recorder: dump %u has no file, since no process recorded "
			"anything\n",
			loop->run.dump->number);
	_exit(0);
}

bool xs_loop_serve_dumps(struct xs_loop *loop)
{
	struct xs_control *control = loop->run.control;
	uint32_t asked, triggers, reasons;

	if (!loop->run.flight)
		return false;
	loop->dumping = xs_flight_writing(&loop->run);
	if (loop->dumping)
		return true;
	if (!xs_loop_wants_dump(loop)) {
		xs_loop_forget_ended(loop, false);
		return false;
	}
	if (atomic_load_explicit(&loop->run.mailbox->joined, memory_order_acquire) != loop->joined)
		return true; /* it may be a newcomer who asks */
	/* behind the look: a request that came in between would be served now, and again */
	asked = atomic_load_explicit(&control->dumps, memory_order_acquire);
	triggers = atomic_load_explicit(&loop->run.mailbox->triggers, memory_order_acquire);
	(void)xs_loop_read(loop); /* what was recorded before somebody asked */
	reasons = atomic_exchange_explicit(&control->dump_reasons, 0, memory_order_relaxed);
	if (loop->crashed)
		reasons |= XS_DUMP_CRASH;
	loop->crashed = false;
	if (xs_flight_dump(&loop->run, asked, triggers, reasons))
		write_dump(loop);
	xs_loop_forget_ended(loop,
			     true); /* their traces are complete now: not again in the next dump */
	return true;
}

/* ---- a run that a program has begun for itself ---- */

/* In a run that a program has begun for itself. Elsewhere the words mean nothing. */
bool xs_loop_wants_cut(const struct xs_loop *loop)
{
	const struct xs_control *control = loop->run.control;

	return loop->run.hosted_start &&
	       atomic_load_explicit(&control->cuts, memory_order_acquire) !=
		       atomic_load_explicit(&control->cut, memory_order_relaxed);
}

/*
 * The traces of a cut, a NUL behind each, where the program looks for them. It is always the same
 * file, under a new name: its memory is there since the run began (launcher/host.c).
 */
static int begin_list(struct xs_loop *loop, uint32_t number)
{
	static const char nothing[PATH_MAX];
	char from[XS_NAME_MAX], to[XS_NAME_MAX];
	int list;

	xs_dump_name(from, loop->listed);
	xs_dump_name(to, number);
	(void)renameat(loop->run.directory, from, loop->run.directory, to);
	loop->listed = number;
	list = xs_shm_open(loop->run.directory, to, XS_SHM_OPEN);
	if (list < 0) { /* it is gone, or something else */
		(void)unlinkat(loop->run.directory, to, 0);
		list = xs_shm_open(loop->run.directory, to, XS_SHM_CREATE);
	}
	if (list >= 0)
		(void)!pwrite(list, nothing, sizeof(nothing), 0);
	return list;
}

static void end_cut(struct xs_control *control, uint32_t number)
{
	atomic_store_explicit(&control->cut, number, memory_order_release);
	xs_futex_wake(&control->cut);
}

void xs_loop_serve_cuts(struct xs_loop *loop)
{
	struct xs_control *control = loop->run.control;
	uint32_t asked = atomic_load_explicit(&control->cuts, memory_order_acquire);
	struct xs_process *process;
	int list;

	if (!xs_loop_wants_cut(loop))
		return;
	(void)xs_loop_find(loop, true);
	if (xs_demand_is_active(&loop->run)) {
		xs_demand_yield(&loop->run, &loop->processes);
		(void)xs_loop_find(loop, true);
		end_cut(control, asked);
		return;
	}
	list = begin_list(loop, asked);
	while ((process = loop->processes)) {
		char path[PATH_MAX];

		(void)xs_process_read(process, true);
		loop->processes = process->next;
		xs_process_cut(process, path);
		if (list >= 0 && path[0])
			(void)!write(list, path, strlen(path) + 1);
	}
	if (list >= 0)
		close(list);
	(void)xs_loop_find(loop, true);
	end_cut(control, asked);
}
