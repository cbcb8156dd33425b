/*
 * What the hardware has counted.
 */
#ifndef XS_METRICS_H
#define XS_METRICS_H

#include "device_record.h"
#include "traced.h"

struct xs_metrics;
struct xs_metrics_record;
struct xs_stalled_record;

/*
 * Tells the sinks, with the group and the names that metrics->columns stands for. False: it stands
 * for none, or not for as many.
 */
bool xs_metrics_tell(struct xs_process *process, struct xs_metrics *metrics);

void xs_metrics_read(struct xs_process *process, const struct xs_metrics_record *record,
		     uint32_t size);
/* The same of what the sampling process has read; of any other process it is nothing. */
void xs_sample_read(struct xs_process *process, const struct xs_metrics_record *record,
		    uint32_t size);
/* How often warps were found at an instruction. */
void xs_stalled_read(struct xs_process *process, const struct xs_stalled_record *record,
		     uint32_t size);

#endif
