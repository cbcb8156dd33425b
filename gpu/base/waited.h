/*
 * For which commands a call has waited: the trace joins them to it.
 */
#ifndef XS_WAITED_H
#define XS_WAITED_H

#include "collector.h"
#include "device_record.h"

/*
 * Behind the record of the call that began at that tick (0: it has none). queue: its serial number;
 * until: as kind says.
 */
static inline void xs_waited(uint8_t source, uint64_t began, uint32_t queue, enum xs_waited kind,
			     uint64_t until)
{
	struct xs_waited_record *record = began ? xs_record_begin(sizeof(*record), XS_WAITED,
								  source, (uint8_t)kind, queue,
								  XS_ROLE_OTHER)
						: NULL;

	if (!record)
		return;
	record->event.tick = began;
	record->until = until;
	record->reserved = 0;
	xs_record_end(sizeof(*record));
}

#endif
