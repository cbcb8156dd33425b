/*
 * The records of what programs tell themselves: tasks, spans, counters, activities, and their
 * arguments.
 */
#ifndef XS_TASK_RECORD_H
#define XS_TASK_RECORD_H

#include "record.h"

/* An id that the application gives to tasks, frames, …: three words of its own, all 0: none. */
struct xs_id {
	uint64_t word[3];
};

struct xs_task_record {
	struct xs_event event; /* name; XS_CLOSE, XS_RELATION: the domain's */
	struct xs_id id;       /* XS_RELATION: the head; null: the thread's innermost task */
	struct xs_id parent;   /* XS_RELATION: the tail */
};
static_assert(sizeof(struct xs_task_record) == 64, "a cache line");

/* As ITT numbers them: head … tail. */
enum xs_relation {
	XS_RELATION_UNKNOWN,
	XS_RELATION_DEPENDENT_ON,
	XS_RELATION_SIBLING_OF,
	XS_RELATION_PARENT_OF,
	XS_RELATION_CONTINUATION_OF,
	XS_RELATION_CHILD_OF,
	XS_RELATION_CONTINUED_BY,
	XS_RELATION_PREDECESSOR_TO,
	XS_RELATION_COUNT,
};

struct xs_own_time_record {
	/*
	 * tick: that of the record which follows; name: number of the clock; flags: by what its
	 * times became ticks, 0: by nothing
	 */
	struct xs_event event;
	/* since that clock's zero, modulo 2^64; of clocks from XS_OWN_CLOCKS on nothing */
	uint64_t ns;
	uint64_t reserved;
};
#define XS_OWN_CLOCKS 64u /* whose pace is known */
static_assert(sizeof(struct xs_own_time_record) == 32, "multiple of 16");

/* Where something without duration belongs (as Chrome's "s"). */
enum xs_scope { XS_SCOPE_THREAD, XS_SCOPE_PROCESS, XS_SCOPE_GLOBAL };

/* Spans that are shown on tracks of their own, since they need not nest with the thread's tasks. */
enum xs_span {
	XS_SPAN_FRAME,
	XS_SPAN_REGION,
	XS_SPAN_OVERLAPPED,
	XS_SPAN_WAIT,
	XS_SPAN_REQUEST,
	XS_SPAN_COMMAND, /* of SYCL: submitted, and not on its way to the device yet */
	XS_SPAN_COUNT
};

struct xs_span_record {
	struct xs_event event; /* tick: when it began */
	uint64_t duration;     /* ticks */
	uint32_t scope;	       /* domain, or 0 */
	/* XS_SPAN_WAIT: it was given up. XS_SPAN_FRAME: its times could not be, and were moved */
	uint32_t special;
};
static_assert(sizeof(struct xs_span_record) == 32, "multiple of 16");

enum xs_value_type {
	XS_VALUE_NONE, /* numbers as ITT's __itt_metadata_type */
	XS_VALUE_U64,
	XS_VALUE_S64,
	XS_VALUE_U32,
	XS_VALUE_S32,
	XS_VALUE_U16,
	XS_VALUE_S16,
	XS_VALUE_FLOAT,
	XS_VALUE_DOUBLE,
	XS_VALUE_TEXT, /* count: bytes */
	XS_VALUE_POINTER,
	XS_VALUE_JSON, /* text that is shown as the JSON that it is; count: bytes */
};

struct xs_counter_record {
	struct xs_event event; /* flags: enum xs_value_type: U64, S64 or DOUBLE */
	union {
		uint64_t u;
		int64_t s;
		double d;
	} value;
	uint64_t reserved;
};
static_assert(sizeof(struct xs_counter_record) == 32, "multiple of 16");

/* An activity: its arguments follow (struct xs_arg), up to the record's end. */
struct xs_activity_record {
	struct xs_event event; /* tick: when it was told; name: interned */
	uint64_t start, end;   /* ns of CLOCK_MONOTONIC; equal: an instant */
	int64_t device, resource;
	uint64_t correlation;
	uint32_t row;	 /* string id of the track that it is shown on */
	uint16_t type;	 /* as Kineto numbers them */
	uint16_t length; /* bytes of arguments */
};
static_assert(sizeof(struct xs_activity_record) == 64, "a cache line");

enum xs_about_flags {
	XS_ABOUT_FLAG_JSON = 1,
	XS_ABOUT_FLAG_MORE = 2, /* the text goes on in the thread's next record of this kind */
};

struct xs_external_record {
	struct xs_event event;
	uint64_t id, user_id; /* 0: none */
};
static_assert(sizeof(struct xs_external_record) == 32, "multiple of 16");

/* One argument: its values follow, padded to 8 bytes. */
struct xs_arg {
	uint32_t key;	/* interned string */
	uint16_t count; /* values, or bytes of text */
	uint8_t type;	/* enum xs_value_type */
	uint8_t cut;	/* there were more than fit */
};
static_assert(sizeof(struct xs_arg) == 8, "keeps the values aligned");

struct xs_args_record {
	struct xs_event event; /* XS_ARGS: name: the domain */
	/* XS_ARGS: of what; null: of the thread's innermost task of the domain */
	struct xs_id id;
	uint32_t length; /* bytes of arguments that follow; the record's size is rounded up */
	uint32_t reserved;
	/* struct xs_arg … */
};
static_assert(sizeof(struct xs_args_record) == 48, "multiple of 16");

#endif
