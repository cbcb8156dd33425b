/*
 * A traced process's first file: who it is, and what was kept of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adopt.h"
#include "backlog.h"
#include "commit.h"
#include "faults.h"
#include "kept.h"
#include "names.h"
#include "process.h"
#include "ring_files.h"
#include "ring_tracks.h"
#include "sinks_open.h"
#include "threads.h"
#include "title.h"
#include "tracks.h"
#include "unread.h"

static struct xs_process *give_up(struct xs_process *process, int error)
{
	if (process->first.map)
		munmap(process->first.map, process->first.size);
	if (process->pidfd >= 0)
		close(process->pidfd);
	xs_names_free(process->names);
	free(process);
	errno = error;
	return NULL;
}

/*
 * In a time namespace CLOCK_MONOTONIC is another one, by seconds mostly. A difference that the
 * readings themselves may have is none.
 */
static int64_t mono_offset(const struct xs_process *process, uint64_t mono)
{
	const struct xs_timeline *clock = &process->run->clock;
	int64_t offset = (int64_t)(xs_timeline_ns(clock, process->join_tick) - mono),
		difference = (int64_t)((uint64_t)offset - (uint64_t)clock->offset);

	return difference > -1000000 && difference < 1000000 ? clock->offset : offset;
}

/* Reads its file's header once and checks it: it may change at any time. False: it is invalid. */
static bool read_header(struct xs_process *process)
{
	const volatile struct xs_process_file *file = process->file;
	bool same = file->pid == process->pid && file->serial == process->serial;

	process->ppid = file->ppid;
	process->pid_namespace = file->pid_namespace;
	process->identity = file->identity;
	process->join_tick = file->join_tick;
	process->mono_offset = mono_offset(process, file->join_mono);
	process->first.ring_size = file->ring_size;
	process->first.slots = file->slots;
	memcpy(process->comm, process->file->comm, sizeof(process->comm));
	process->comm[sizeof(process->comm) - 1] = '\0';
	xs_title_first(process, process->file->arguments, file->arguments_length);
	return same && xs_mapped_is_valid(process, &process->first);
}

/*
 * When the file got its size, in ns of CLOCK_BOOTTIME as this process has it, at most 10 ms too
 * early. Not when the process says that it was: in a time namespace it has clocks of its own.
 */
static uint64_t joined_at(struct xs_run *run, const char *name)
{
	int64_t offset = (int64_t)(xs_clock_ns(CLOCK_REALTIME) - xs_clock_ns(CLOCK_BOOTTIME));
	struct stat st;

	/*
	 * where the date was set in between, the later answer: it may take a dead process for one
	 * that lives, and never the other way
	 */
	if (offset < run->date_offset)
		run->date_offset = offset;
	if (fstatat(run->directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return UINT64_MAX / 2;
	return (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec -
	       (uint64_t)run->date_offset;
}

static void watch(struct xs_process *process)
{
	static uint64_t own_namespace;
	char file[sizeof(process->run->run_id) + sizeof(process->name) + 4];
	uint64_t start;

	if (process->pid_namespace && !own_namespace)
		own_namespace = xs_pid_namespace(0);
	process->watched = process->pid;
	if (process->pid_namespace && process->pid_namespace != own_namespace) {
		(void)snprintf(file, sizeof(file), "/%s/%s\n", process->run->run_id, process->name);
		process->watched = xs_pid_outer(process->pid, process->pid_namespace, file);
	}
	process->pidfd = process->watched ? (int)syscall(SYS_pidfd_open, process->watched, 0) : -1;
	if (process->pidfd >= 0 && !xs_run_can_spare(process->run, process->pidfd)) {
		close(process->pidfd);
		process->pidfd = -1; /* /proc tells as well */
	}
	start = process->watched ? xs_pid_start(process->watched) : 0;
	/* clock ticks of 10 ms; a process of this pid that began after the join is another one */
	process->start = start && start * 10000000u <=
						 joined_at(process->run, process->name) + 20000000u
				 ? start
				 : UINT64_MAX;
}

/*
 * Memory for the first ring's first records, while the program still starts: the kernel clears it
 * here and not in its first event. A full file system is for the program to find out.
 */
static void prepare_first(const struct xs_process *process)
{
	if (process->first.slots)
		(void)xs_shm_present((char *)process->first.map +
					     xs_slot_offset(0, process->first.ring_size),
				     XS_RING_HEADER + XS_PAGE);
}

/* Which commit is the newest; with --recover what it has, before anything has the next turn. */
static void take_up(struct xs_process *process)
{
	process->turn = atomic_load(&process->kept->turn);
	if (!process->run->recovering)
		return;
	xs_kept_tidy(process->kept);
	if (process->kept->output[0] && !xs_want_chrome(process->run->options))
		process->run->copied_options.chrome_itt = true; /* `control` is not what it was */
	(void)xs_kept_take_activity(&process->kept->activity, process->turn);
}

/* --recover: with its rings, and with the trace that there is. */
static void go_on(struct xs_process *process)
{
	xs_process_find_tracks(process, false);
	if (process->first.kept_spoilt && !process->track_count)
		xs_rings_tell_not_kept(process, 0);
	if (process->kept->output[0])
		/* to close it, even if nothing more is to be written */
		process->awaits_event = !xs_sinks_open(process, true);
	if (process->run->options->flight && !process->awaits_event)
		xs_tracks_name_threads(process); /* it goes on behind the head */
}

struct xs_process *xs_process_adopt(struct xs_run *run, const char *name)
{
	struct xs_process *process = calloc(1, sizeof(*process));
	struct xs_shm_file opened;
	int error;

	if (!process)
		return NULL;
	process->run = run;
	process->commit = xs_process_commit;
	process->pidfd = -1;
	process->names = xs_names_open();
	if (!process->names)
		return give_up(process, ENOMEM);
	process->end = XS_END_RUNNING;
	process->faults = xs_faults();
	(void)snprintf(process->name, sizeof(process->name), "%s", name);
	if (!xs_process_file_parse(name, &process->pid, &process->serial))
		return give_up(process, EBADMSG);
	error = xs_shm_map_at(run->directory, name, XS_SHM_OPEN, 0, &process->first.map, &opened);
	if (error < 0)
		return give_up(process, error == -EBADMSG
						? EAGAIN
						: -error); /* made, but not yet given its size */
	process->file = process->first.map;
	process->first.size = opened.size;
	if (process->first.size < XS_PROCESS_HEADER)
		return give_up(process, EBADMSG);
	/* pairs with the release in the collector's make_process() */
	if (atomic_load_explicit(&process->file->magic, memory_order_acquire) != XS_MAGIC)
		return give_up(process, EAGAIN);
	if (!read_header(process))
		return give_up(process, EBADMSG);
	process->first.other = xs_unread_is_other(process, process->file->made_as, opened.inode, 0);
	if (!run->recovering)
		prepare_first(process);
	watch(process);
	/* at once: a session that is stopped says what the trace is called; CUDA needs no ring */
	xs_rings_open_kept(process, &process->first, 0);
	process->kept = process->first.kept;
	if (!process->kept)
		return give_up(process, ENOMEM);
	take_up(process);
	if (xs_process_is(process, run->control->app_pid) && !run->saw_application) {
		process->launch_ns = run->control->launch_ns;
		run->saw_application = true;
	}
	process->log_calls = run->options->call_logging && !run->flight;
	(void)xs_sinks_open(process, false);
	process->awaits_event = !run->flight && xs_sinks_await_event(run);
	if (run->recovering)
		go_on(process);
	return process;
}
