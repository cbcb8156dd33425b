/*
 * Names of the files that a process leaves, and making them.
 */
#ifndef XS_FILES_H
#define XS_FILES_H

#include <stddef.h>
#include <stdio.h>

#include "traced.h"

enum xs_file {
	/* reports, as enum xs_report_kind; without --result-dir all are one file */
	XS_FILE_HOST_TIMING,
	XS_FILE_DEVICE_TIMING,
	XS_FILE_SUBMISSION,
	XS_FILE_TIMELINE,
	XS_FILE_CALL_LOG,
	XS_FILE_CCL,
	XS_FILE_TASK_COUNTS,
	XS_FILE_OPENMP,
	XS_FILE_PYTHON,
	XS_FILE_SAMPLES,
	XS_FILE_TRACE,
	XS_FILE_FOLDED,
	XS_FILE_COUNT,
};
/*
 * Makes the process's file of that kind, under the first name that is not taken; `path` is the
 * name. A trace is locked. The descriptor or -errno.
 */
int xs_file_create(struct xs_process *process, enum xs_file kind, char *path, size_t size);
/*
 * The same for what is written as a whole at the end. NULL: it cannot be made, which is told.
 */
FILE *xs_file_begin(struct xs_process *process, enum xs_file kind, char *path, size_t size);
/*
 * Ends such a file, with a line that says where it is, or that it is not whole; `what` begins that
 * line: "Call stacks are". False: it is not whole.
 */
bool xs_file_end(FILE *out, const char *what, const char *path);
/*
 * As xs_file_create(), of a device's hardware metrics: <output>.metrics.<pid>[.<rank>]<suffix>,
 * which devices share, or metrics/metrics_<device>.csv in the directory of --result-dir.
 */
int xs_file_create_metrics(struct xs_process *process, uint32_t device, char *path, size_t size);
/* A file without a name, for what is copied elsewhere later. The descriptor or -errno. */
int xs_file_create_nameless(const struct xs_process *process);
/*
 * Held while this process lives and the file is open: tells readers that the file is not complete
 * yet. False: another descriptor holds it. Where there are no locks, it is true.
 */
bool xs_file_lock(int fd);
/*
 * A file of the process cannot be written. --recover has the records still: its files stay, for
 * another try.
 */
void xs_file_failed(struct xs_process *process);
/* The same of the trace, and one line a run: a full disk is full for all processes. */
void xs_tell_write_error(struct xs_process *process, int error);

#endif
