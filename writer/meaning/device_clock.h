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
/*
 * When the device's clock had come to `ticks`, of which all bits count. False: nothing is known of
 * it.
 */
bool xs_device_moment(struct xs_process *process, uint32_t device, uint64_t ticks,
		      uint64_t *ret_ns);
/* How many bits the times of the device's work have; 0: not known. */
uint32_t xs_device_bits(const struct xs_process *process, uint32_t device);
/* Ticks of the device's clock in a second; 0: not known. */
uint64_t xs_device_frequency(const struct xs_process *process, uint32_t device);
void xs_device_clocks_fini(struct xs_process *process);

#endif
