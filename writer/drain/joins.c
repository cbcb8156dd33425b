/*
 * Processes that join, what the launcher says of them, and what their rings hold.
 */
#include <errno.h>
#include <string.h>

#include "adopt.h"
#include "channel.h"
#include "demand.h"
#include "flight.h"
#include "loop.h"
#include "processes.h"
#include "run_open.h"

/*
 * how long the drain process waits for a process in the middle of joining, which may be stopped
 * there for ever
 */
#define JOINING 1000000000u

static bool known(const struct xs_loop *loop, const char *name)
{
	for (const struct xs_process *p = loop->processes; p; p = p->next)
		if (!strcmp(p->name, name))
			return true;
	return false;
}

void xs_loop_hear(struct xs_loop *loop)
{
	struct xs_message message;
	enum xs_heard heard;

	while ((heard = xs_channel_hear(loop->run.channel, false, &message)) == XS_HEARD)
		switch (message.word) {
		case XS_WORD_APP:
			loop->run.app_pid = message.number;
			break;
		case XS_WORD_NO_APP:
			loop->app_not_run = loop->app_ended = true;
			break;
		case XS_WORD_APP_ENDED:
			loop->app_ended = true;
			loop->app_status = message.number;
			break;
		default:
			break;
		}
	loop->launcher_gone = heard == XS_HEARD_END;
}

/*
 * Is who makes this file still about to? Not for ever: it may be stopped, or no process of ours at
 * all.
 */
static bool about_to_join(struct xs_loop *loop, int32_t pid)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);

	if (!xs_pid_alive(pid, 0))
		return false;
	if (!loop->unready_since)
		loop->unready_since = now;
	return now - loop->unready_since < JOINING;
}

/* What a look into the directory finds. */
struct look {
	struct xs_loop *loop;
	bool again, unready, blind;
};

static void meet(void *user, const char *name)
{
	struct look *look = user;
	struct xs_loop *loop = look->loop;
	struct xs_process *process;
	uint32_t serial;
	int32_t pid;

	if (!xs_process_file_parse(name, &pid, &serial) || known(loop, name))
		return;
	process = xs_process_adopt(&loop->run, name);
	if (!process) {
		look->blind |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		look->unready |= errno == EAGAIN;
		look->again |= errno == EAGAIN && about_to_join(loop, pid);
		return;
	}
	xs_demand_met(process);
	xs_lost_joined(&loop->lost, process->watched);
	process->next = loop->processes;
	loop->processes = process;
	if (!loop->run.app_pid)
		xs_loop_hear(loop); /* it was said before the program began */
	loop->app_seen |= process->pid == loop->run.app_pid;
}

bool xs_loop_find(struct xs_loop *loop)
{
	struct look look = { .loop = loop };

	if (!xs_shm_each(loop->run.directory, meet, &look))
		return true;
	if (!look.unready)
		loop->unready_since = 0;
	if (!look.blind)
		loop->blind_since = 0;
	else if (!loop->blind_since)
		loop->blind_since = xs_clock_ns(CLOCK_MONOTONIC);
	return look.again || look.blind;
}

uint64_t xs_loop_read(struct xs_loop *loop)
{
	uint64_t read = 0;

	xs_timeline_update(&loop->run.clock);
	xs_timeline_update(&loop->run.raw);
	if (atomic_load_explicit(&loop->run.control->segment_count, memory_order_relaxed) !=
	    loop->run.clock.count)
		xs_run_save_clock(&loop->run);
	if (loop->run.flight)
		xs_flight_look(&loop->run);
	for (struct xs_process *p = loop->processes; p; p = p->next)
		read += xs_process_read(p, false);
	return read;
}
