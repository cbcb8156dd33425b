/*
 * --chrome-kmd-logging: bpftrace beside the application, and what its script prints as a trace of
 * the kernel's side.
 *
 * A script prints lines "tid,event,start,duration[,data]", times in ns of CLOCK_BOOTTIME
 * (bpftrace's nsecs), as unitrace's do; other lines are passed over.
 */
#ifndef XS_KMD_H
#define XS_KMD_H

#include "run.h"

/*
 * Starts bpftrace and tells the launcher when the application may start. NULL: bpftrace cannot be
 * started, and a line has said why.
 */
struct xs_kmd *xs_kmd_start(struct xs_run *run);
/*
 * Reads what has come; stop: bpftrace is to end now. False: it has ended, and all that it printed
 * is read.
 */
bool xs_kmd_look(struct xs_kmd *kmd, bool stop);
/* Waiting for it to begin or to end: not to be left alone for long. */
bool xs_kmd_urgent(const struct xs_kmd *kmd);
/* Completes the file and says where it is. */
void xs_kmd_close(struct xs_kmd *kmd);

#endif
