/*
 * --recover of a process whose own file is spoilt or gone: the drain process's file beside it says
 * which trace is its, and how much of that counts. It is closed there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "adopt.h"
#include "commit.h"
#include "faults.h"
#include "kept.h"
#include "names.h"
#include "sinks_open.h"

/* NULL: there is no such file, or none that can be believed, or no trace to be closed. */
static struct xs_kept_file *map_kept(const struct xs_run *run, int32_t pid, uint32_t serial)
{
	struct xs_kept_file *kept;
	char name[XS_NAME_MAX];
	void *map;

	xs_kept_name(name, pid, serial, 0);
	if (xs_shm_map_at(run->directory, name, XS_SHM_OPEN, XS_KEPT_HEADER, &map, NULL) < 0)
		return NULL;
	kept = map;
	if (atomic_load(&kept->magic) == XS_MAGIC && kept->pid == pid && kept->serial == serial &&
	    xs_kept_is_sound(kept) && !kept->complete) {
		xs_kept_tidy(kept);
		if (kept->output[0])
			return kept;
	}
	munmap(map, XS_KEPT_HEADER);
	return NULL;
}

/* As the trace is called: <comm>.<pid>… */
static void put_comm(struct xs_process *process)
{
	char path[PATH_MAX], end[16];
	char *name, *stop;

	(void)snprintf(path, sizeof(path), "%.*s", PATH_MAX - 1, process->kept->output);
	(void)snprintf(end, sizeof(end), ".%d", process->pid);
	name = strrchr(path, '/');
	stop = name ? strstr(name, end) : NULL;
	if (!stop)
		return;
	*stop = '\0';
	(void)snprintf(process->comm, sizeof(process->comm), "%.15s", name + 1);
}

/* What it would have said itself: no more than who it is. */
static struct xs_process_file *make_file(struct xs_process *process)
{
	struct xs_process_file *file = aligned_alloc(64, XS_PROCESS_HEADER);

	if (!file)
		return NULL;
	memset(file, 0, XS_PROCESS_HEADER);
	file->pid = process->pid;
	file->serial = process->serial;
	atomic_store(&file->magic, XS_MAGIC);
	return file;
}

struct xs_process *xs_process_left(struct xs_run *run, int32_t pid, uint32_t serial)
{
	struct xs_kept_file *kept = map_kept(run, pid, serial);
	struct xs_process *process = kept ? calloc(1, sizeof(*process)) : NULL;

	if (!process) {
		if (kept)
			munmap(kept, XS_KEPT_HEADER);
		return NULL;
	}
	process->run = run;
	process->commit = xs_process_commit;
	process->pidfd = -1;
	process->start = UINT64_MAX;
	process->end = XS_END_RUNNING;
	process->faults = xs_faults();
	process->pid = pid;
	process->serial = serial;
	xs_process_file_name(process->name, pid, serial, 0);
	process->kept = process->first.kept = kept;
	process->turn = atomic_load(&kept->turn);
	process->first.kept_size = XS_KEPT_HEADER;
	process->names = xs_names_open();
	process->copy = process->file = make_file(process);
	if (!process->names || !process->file) {
		munmap(kept, XS_KEPT_HEADER);
		xs_names_free(process->names);
		free(process->copy);
		free(process);
		return NULL;
	}
	process->join_tick = run->began;
	process->last_ns = xs_process_ns(process, run->began);
	process->cut = true; /* it has been told */
	process->corrupt = 1;
	put_comm(process);
	(void)xs_sinks_open(process, true);
	return process;
}
