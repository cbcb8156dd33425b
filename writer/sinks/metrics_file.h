/*
 * Files of what devices were sampled.
 */
#ifndef XS_METRICS_FILE_H
#define XS_METRICS_FILE_H

#include "output.h"
#include "traced.h"

/* The file of that device, of all of them, or stderr; its name: PATH_MAX bytes. -errno: none. */
int xs_metrics_open(struct xs_process *process, uint32_t device, struct xs_output *out, char *path);
void xs_metrics_close(struct xs_output *out, const char *path);

#endif
