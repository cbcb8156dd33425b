/*
 * Processes that join, what the launcher says of them, and what their rings hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adopt.h"
#include "channel.h"
#include "demand.h"
#include "flight.h"
#include "loop.h"
#include "processes.h"
#include "run_open.h"
#include "text.h"
#include "unread.h"

/*
 * how long the drain process waits for a process in the middle of joining, which may be stopped
 * there for ever
 */
#define JOINING 1000000000u
/*
 * Processes that are adopted before those that have ended are finished: each has descriptors, and
 * short ones join faster than they are adopted. At most this share of the descriptors, and …
 */
#define NEWCOMERS_SHARE 4
#define NEWCOMERS	64u

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
		case XS_WORD_APP_BARE:
			loop->run.app_not_traced = true;
			break;
		case XS_WORD_APP_ENDED:
			loop->app_ended = true;
			loop->app_status = message.number;
			loop->app_joined = atomic_load_explicit(&loop->run.mailbox->joined,
								memory_order_acquire);
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

/* A process's file, by its name. */
struct found {
	uint32_t serial;
	int32_t pid;
	bool known; /* it is adopted already, or done with */
};

/* What a look into the directory finds. */
struct look {
	struct xs_loop *loop;
	struct found *found; /* in the order of serials, which is that of joining */
	size_t count, room;
	bool again, unready, blind;
	uint32_t spoilt; /* files that are none of ours */
};

static int compare(const void *first, const void *second)
{
	const struct found *a = first, *b = second;

	return a->serial != b->serial ? (a->serial > b->serial) - (a->serial < b->serial)
				      : (a->pid > b->pid) - (a->pid < b->pid);
}

static void see(void *user, const char *name)
{
	struct look *look = user;
	struct found found = { .known = false }, *more;

	if (!xs_process_file_parse(name, &found.pid, &found.serial))
		return;
	if (look->count == look->room) {
		more = reallocarray(look->found, look->room + 256, 2 * sizeof(*more));
		if (!more) {
			look->blind = true;
			return;
		}
		look->found = more;
		look->room = 2 * (look->room + 256);
	}
	look->found[look->count++] = found;
}

static void mark_one(const struct look *look, uint32_t serial, int32_t pid)
{
	const struct found key = { .serial = serial, .pid = pid };
	struct found *known = bsearch(&key, look->found, look->count, sizeof(key), compare);

	if (known)
		known->known = true;
}

static void mark_known(const struct look *look)
{
	const struct xs_run *run = &look->loop->run;

	for (const struct xs_process *p = look->loop->processes; p; p = p->next)
		mark_one(look, p->serial, p->pid);
	for (uint32_t i = 0; i < run->met_count; i++)
		mark_one(look, run->met[i].serial, run->met[i].pid);
}

/* Is it the same process? As we saw it, or where one was gone before we looked, as both told. */
static bool is_same(const struct xs_process *a, const struct xs_process *b)
{
	return a->watched == b->watched && a->pid == b->pid &&
	       (a->start != UINT64_MAX && b->start != UINT64_MAX ? a->start == b->start
								 : a->identity == b->identity);
}

/*
 * Where a later image of a pid has joined, the one before has called exec. A pid that comes again
 * is of a process that started at another time.
 */
static void find_images(const struct xs_loop *loop, struct xs_process *process)
{
	for (struct xs_process *p = loop->processes; p; p = p->next) {
		if (!is_same(p, process))
			continue;
		p->exec |= p->serial < process->serial;
		process->exec |= p->serial > process->serial;
	}
}

/* What was written of its trace is closed. */
static void close_left(struct xs_loop *loop, int32_t pid, uint32_t serial)
{
	struct xs_process *process = xs_process_left(&loop->run, pid, serial);

	if (!process)
		return;
	process->next = loop->processes;
	loop->processes = process;
}

/*
 * A file that --recover can make nothing of. That of a process which was killed while it joined had
 * not been met by the drain process that died.
 */
static void tell_spoilt(struct xs_loop *loop, const struct found *found, const char *name)
{
	char kept[XS_NAME_MAX];

	xs_kept_name(kept, found->pid, found->serial, 0);
	if (faccessat(loop->run.directory, kept, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	loop->spoilt = true;
	xs_tell("[WARNING] --recover %s: %s is not the file that process %d made; what was in it "
		"is "
		"lost, and its trace ends where it was written\n",
		loop->run.dir, name, found->pid);
	close_left(loop, found->pid, found->serial);
}

/* --recover: there was no memory for a process, or no descriptor. All of it stays as it is. */
static void tell_blind(struct xs_loop *loop, const char *name, int error)
{
	loop->run.again = true;
	xs_tell("[WARNING] --recover %s: %s could not be read: %s; " XS_UNREAD_AGAIN "\n",
		loop->run.dir, name, xs_unread_reason(-error));
}

/* The drain process was killed while it removed the files of one whose trace it had completed. */
static bool was_complete(const struct xs_loop *loop, const char *name)
{
	struct xs_kept_file *kept;
	void *map;
	bool complete;

	if (xs_shm_map_at(loop->run.directory, name, XS_SHM_OPEN, XS_KEPT_HEADER, &map, NULL) < 0)
		return false;
	kept = map;
	complete = kept->complete == XS_KEPT_COMPLETE;
	munmap(map, XS_KEPT_HEADER);
	return complete;
}

/* Of a process whose own file is there no more nothing would be said. */
static void see_kept(void *user, const char *name)
{
	struct xs_loop *loop = user;
	char file[XS_NAME_MAX];
	int32_t pid;
	uint32_t serial;

	if (*name != 'd' || snprintf(file, sizeof(file), "p%s", name + 1) >= (int)sizeof(file))
		return;
	if (!xs_process_file_parse(file, &pid, &serial) ||
	    !faccessat(loop->run.directory, file, F_OK, AT_SYMLINK_NOFOLLOW) ||
	    was_complete(loop, name))
		return;
	loop->spoilt = true;
	xs_tell("[WARNING] --recover %s: %s, the file of process %d, is gone; what was in it is "
		"lost, and its trace ends where it was written\n",
		loop->run.dir, file, pid);
	close_left(loop, pid, serial);
}

void xs_loop_look_for_gone(struct xs_loop *loop)
{
	(void)xs_shm_each(loop->run.directory, see_kept, loop);
}

static void meet(struct look *look, const struct found *found)
{
	struct xs_loop *loop = look->loop;
	struct xs_process *process;
	char name[XS_NAME_MAX];

	xs_process_file_name(name, found->pid, found->serial, 0);
	process = xs_process_adopt(&loop->run, name);
	if (!process) {
		int error = errno;
		bool blind = xs_unread_for_want(-error), unready = error == EAGAIN,
		     spoilt = error == EBADMSG;

		if (loop->run.recovering && blind)
			tell_blind(loop, name, error);
		else if (loop->run.recovering)
			tell_spoilt(loop, found, name);
		look->spoilt += spoilt;
		look->blind |= blind;
		look->unready |= unready;
		look->again |= unready && about_to_join(loop, found->pid);
		return;
	}
	xs_demand_met(process);
	xs_lost_joined(&loop->lost, process->watched);
	find_images(loop, process);
	loop->newcomers++;
	loop->adopted++;
	process->next = loop->processes;
	loop->processes = process;
	if (!loop->run.app_pid)
		xs_loop_hear(loop); /* it was said before the program began */
	loop->app_seen |= xs_process_is(process, loop->run.app_pid);
}

static uint32_t most_newcomers(const struct xs_run *run)
{
	uint64_t share = run->descriptors / NEWCOMERS_SHARE;

	return !share || share > NEWCOMERS ? NEWCOMERS : (uint32_t)share;
}

/* Whoever has called exec is not finished before its image is adopted. */
static void let_wait(const struct look *look, size_t first)
{
	for (struct xs_process *p = look->loop->processes; p; p = p->next)
		p->image_waits = false;
	for (size_t i = first; i < look->count; i++)
		for (struct xs_process *p = look->loop->processes; p; p = p->next)
			p->image_waits |= !look->found[i].known && p->pid == look->found[i].pid &&
					  p->serial < look->found[i].serial;
}

bool xs_loop_find(struct xs_loop *loop, bool all)
{
	struct look look = { .loop = loop };
	uint32_t most = most_newcomers(&loop->run);
	int error = ENOMEM;
	size_t i = 0;

	if (!xs_shm_each(loop->run.directory, see, &look)) {
		look.blind = true;
		error = errno;
	}
	if (look.blind && loop->run.recovering)
		tell_blind(loop, "the directory", error);
	if (look.count) {
		qsort(look.found, look.count, sizeof(*look.found), compare);
		mark_known(&look);
	}
	for (; i < look.count && (all || loop->newcomers < most); i++)
		if (!look.found[i].known)
			meet(&look, &look.found[i]);
	let_wait(&look, i);
	look.again |= i < look.count;
	free(look.found);
	loop->looks++;
	loop->looked = xs_clock_ns(CLOCK_MONOTONIC);
	loop->spoilt_files = look.spoilt;
	if (!look.unready)
		loop->unready_since = 0;
	if (!look.blind)
		loop->blind_since = 0;
	else if (!loop->blind_since)
		loop->blind_since = xs_clock_ns(CLOCK_MONOTONIC);
	return look.again || look.blind;
}

void xs_loop_look_at_clocks(struct xs_loop *loop)
{
	xs_timeline_update(&loop->run.clock);
	xs_timeline_update(&loop->run.raw);
	if (atomic_load_explicit(&loop->run.control->segment_count, memory_order_relaxed) !=
	    loop->run.clock.count)
		xs_run_save_clock(&loop->run);
}

uint64_t xs_loop_read(struct xs_loop *loop)
{
	uint64_t read = 0;

	xs_loop_look_at_clocks(loop);
	if (loop->run.flight)
		xs_flight_look(&loop->run);
	for (struct xs_process *p = loop->processes; p; p = p->next)
		read += xs_process_read(p, false);
	return read;
}
