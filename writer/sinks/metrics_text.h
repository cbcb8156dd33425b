/*
 * Pieces of unitrace's files of metrics.
 */
#ifndef XS_METRICS_TEXT_H
#define XS_METRICS_TEXT_H

#include "sink.h"

/* ",GpuTime[ns],…": the first `count` lines of the names. */
char *xs_metrics_put_names(char *o, const char *names, size_t length, uint32_t count);
/* The kernel, and if `detailed` how it was launched, in quotes. */
char *xs_metrics_put_kernel(char *o, const struct xs_process *process, const struct xs_work *work,
			    bool detailed);
char *xs_metrics_put_value(char *o, uint64_t value, uint8_t type);

#endif
