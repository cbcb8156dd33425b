/*
 * The events of a trace as the library gives them to its program: "<trace>.events" holds
 * struct xs_event_row after row, "<trace>.names" their texts. writer/sinks/events.c writes,
 * library/trace.c reads. Both are empty where there was no event; where there was no room for them,
 * neither stays.
 */
#ifndef XS_EVENTS_H
#define XS_EVENTS_H

#include <stdint.h>

#define XS_EVENTS_SUFFIX ".events"
#define XS_NAMES_SUFFIX	 ".names"

struct xs_event_row {
	int64_t start; /* ns since 1970 */
	uint64_t duration, correlation, external, user_external, bytes;
	int64_t device, resource;
	uint64_t name; /* offset in the other file: there a NUL ends it */
	int32_t type;  /* enum xs_activity_type */
	int32_t reserved;
};

#endif
