/*
 * Work on devices, in the host's time: to all sinks.
 */
#ifndef XS_WORK_H
#define XS_WORK_H

#include "device_record.h"
#include "traced.h"

struct xs_work;

/* Finished work whose times are known. */
void xs_work_show(struct xs_process *process, struct xs_work *work);
/* Records: of one command, whose device has a clock of its own. */
void xs_device_work_read(struct xs_process *process, const struct xs_device_record *record,
			 uint32_t size);
/* Of several commands: each as if it had a record of its own. */
void xs_commands_read(struct xs_track *track, const struct xs_event *event, uint32_t size);

#endif
