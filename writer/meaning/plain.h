/*
 * Plain tasks, which have nothing but a name: the hottest of all that is read and told.
 */
#ifndef XS_PLAIN_H
#define XS_PLAIN_H

#include "record.h"
#include "traced.h"

struct xs_track;

/* One that has ended, on its thread's own track. */
struct xs_task {
	uint64_t start, end;
	uint32_t name;	/* id (names.h) */
	uint32_t depth; /* of itself: 1 for one that is in no other */
};

/* so many bytes of records are read before the sinks are told of the tasks that end there */
#define XS_TASKS_BYTES	   2048u
#define XS_TASKS_AT_A_TIME (XS_TASKS_BYTES / sizeof(struct xs_event))

/*
 * Reads begins and ends of plain tasks as long as there is nothing but these, each in the order of
 * a stack and of time; at most XS_TASKS_BYTES. The bytes that it has read: what comes then, or
 * first, is for xs_record_read(). `data` may change at any time: each word is read once.
 */
uint32_t xs_tasks_read(struct xs_track *track, const unsigned char *data, uint64_t length,
		       const struct xs_stretch *stretch);

#endif
