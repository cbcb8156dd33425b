/*
 * What the hardware has counted.
 */
#ifndef XS_METRICS_H
#define XS_METRICS_H

#include "traced.h"

struct xs_metrics_record;

void xs_metrics_read(struct xs_process *process, const struct xs_metrics_record *record,
		     uint32_t size);
/* The same of what the sampling process has read; of any other process it is nothing. */
void xs_sample_read(struct xs_process *process, const struct xs_metrics_record *record,
		    uint32_t size);

#endif
