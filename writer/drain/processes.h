/*
 * One traced process, from its first record to its end: see process.c.
 */
#ifndef XS_PROCESSES_H
#define XS_PROCESSES_H

#include "traced.h"

/*
 * Reads what its rings hold; returns the bytes read. all: to the very end (the process writes no
 * more).
 */
uint64_t xs_process_read(struct xs_process *process, bool all);
/*
 * After the last read: open tasks, calls in flight, the sinks' ends. Unmaps and removes its files.
 */
void xs_process_finish(struct xs_process *process, enum xs_end end, int status);
/*
 * The program ends its trace and goes on (a hosted run): as xs_process_finish(), but its files
 * stay, and who adopts it next goes on behind the last record. `path`, of PATH_MAX bytes: the
 * trace's.
 */
void xs_process_cut(struct xs_process *process, char *path);
/*
 * The same, where there is to be no trace of what was recorded so far: of a process that goes on,
 * and of one that has ended.
 */
void xs_process_discard(struct xs_process *process);
void xs_process_cut_away(struct xs_process *process);

/* What is needed of the process's files is copied, then they are unmapped. 0 or -errno. */
int xs_process_detach(struct xs_process *process);
/*
 * Flight recorder, instead of xs_process_finish(): the process has ended, its history may still be
 * asked for. False: there is none.
 */
bool xs_process_retire(struct xs_process *process, enum xs_end end, int status);
/*
 * Flight recorder, in the process that writes a dump: a trace of the history. False: there is no
 * history.
 */
bool xs_process_dump(struct xs_process *process);
void xs_process_free(struct xs_process *process);

/* After its end, process_told.c: what is missing, and what the program has not freed. */
void xs_process_tell_end(const struct xs_process *process);
/*
 * What it shares with us, by itself or by a child with fewer rights: then it says nothing of
 * itself.
 */
bool xs_process_is_overwritten(const struct xs_process *process);

#endif
