/*
 * The run's directory, clock and descendants: see run.c.
 */
#ifndef XS_RUN_OPEN_H
#define XS_RUN_OPEN_H

#include "run.h"

/*
 * Fills *run (of zeros) from the run directory `dir`; channel -1: what another drain process has
 * left. 0 or -errno.
 */
int xs_run_open(struct xs_run *run, const char *dir, int channel);
/*
 * Each new segment of the timeline is left in the control file: a successor (--recover) must
 * convert as we did, or slices of both would overlap where they meet.
 */
void xs_run_save_clock(struct xs_run *run);
/* Is there a process of the run, beside the application, for which `is_one` says so? */
bool xs_run_has_descendant(const struct xs_run *run, bool (*is_one)(int pid));
/*
 * Descendants that have not joined yet: forked and silent so far, or on their way to main(). To be
 * looked for only when the run would otherwise be over, so that a fork costs the application
 * nothing.
 */
bool xs_run_has_silent_descendants(const struct xs_run *run);
/* Removes the directory and the session's name; reports a failure on stderr. */
void xs_run_remove(const struct xs_run *run);

/*
 * --recover of a directory that was being removed when the one who did it was killed: goes on with
 * that. 0 or -errno; -ENOENT: it is none.
 */
int xs_run_remove_left(const char *dir);

#endif
