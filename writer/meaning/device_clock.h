/*
 * Times of devices, as times of the host.
 */
#ifndef XS_DEVICE_CLOCK_H
#define XS_DEVICE_CLOCK_H

#include "sink.h"

/* What the traced process has told of its devices' clocks since the last call. */
void xs_device_clocks_update(struct xs_process *process);
/*
 * Sets queued, submit, start, end; host_start and host_end are set. False: nothing is known of the
 * device's clock.
 */
bool xs_device_times(struct xs_process *process, struct xs_work *work);
void xs_device_clocks_fini(struct xs_process *process);

#endif
