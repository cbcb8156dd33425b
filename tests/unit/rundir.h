/*
 * A run directory with everything in it that a launcher and traced processes would have made, for
 * tests of the drain side.
 */
#ifndef RUNDIR_H
#define RUNDIR_H

#include <dirent.h>

#include "adopt.h"
#include "ring_files.h"
#include "commit.h"
#include "device_record.h"
#include "launcher.h"
#include "names.h"
#include "processes.h"
#include "run.h"
#include "traced.h"

struct rundir {
	struct xs_launch launch;
	struct xs_strings *strings;
	struct xs_run run;
	char out[PATH_MAX]; /* directory of the traces */
	DIR *list;	    /* it, once it was read */
};

/*
 * `options` NULL: ITT tasks, calls and device work to Chrome JSON. Ends the program when there is
 * no memory.
 */
void rundir_open(struct rundir *dir, const struct xs_options *options);
/* Removes all of it, traces too. */
void rundir_close(struct rundir *dir);

/* As a process that joined: its file with `slots` rings of `ring_size` bytes, all of them taken. */
struct xs_process_file *rundir_process(struct rundir *dir, int pid, uint32_t serial, uint32_t slots,
				       uint64_t ring_size);
struct xs_ring *rundir_ring(struct xs_process_file *file, uint32_t slot);
/* Who writes to a ring, and a new one. */
struct xs_producer *rundir_producer(const struct xs_ring *ring);
void rundir_ring_init(struct xs_ring *ring, uint64_t size, enum xs_on_full policy);
void rundir_process_unmap(struct xs_process_file *file);
/* What a drain process that read it has kept for its successor. Stays mapped. */
struct xs_kept_file *rundir_kept(struct rundir *dir, const struct xs_process_file *file);
struct xs_kept_ring *rundir_kept_ring(struct xs_kept_file *kept, uint32_t slot);

uint32_t rundir_name(struct rundir *dir, const char *text, uint32_t scope);

/* Producers: one record each. False: lost. */
bool put_thread(struct rundir *dir, struct xs_ring *ring, uint32_t tid, const char *name);
/* Room for a record of any form, to be committed; NULL: lost. */
struct xs_event *put_space(struct rundir *dir, struct xs_ring *ring, uint32_t size);
/* Fills a ring at no cost. */
bool put_pad(struct rundir *dir, struct xs_ring *ring, uint32_t size);
bool put_begin(struct rundir *dir, struct xs_ring *ring, uint64_t tick, uint32_t name);
bool put_end(struct rundir *dir, struct xs_ring *ring, uint64_t tick, uint32_t domain);
bool put_call(struct rundir *dir, struct xs_ring *ring, uint64_t tick, uint64_t duration,
	      uint32_t function, uint8_t flags, int64_t result);
/* `record` but for the header's kind and size. */
bool put_device(struct rundir *dir, struct xs_ring *ring, const struct xs_device_record *record,
		bool shaped);

/*
 * The text of the only trace in dir->out, and its name; NULL when there is none or more than one.
 * To be freed.
 */
char *rundir_trace(struct rundir *dir, char *path, size_t size, size_t *ret_length);
/* Removes the traces. */
void rundir_clear(struct rundir *dir);

#endif
