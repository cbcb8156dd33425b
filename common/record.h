/*
 * One record: what a traced process writes and the drain process reads.
 *
 * This file, those beside it that end in _record.h, and common/shm.h are all that the two sides
 * share. A record is written once and never edited. It says its own size and kind. Both sides are
 * of one version, so each kind has the sizes that stand in writer/meaning/sizes.c. Sizes are
 * multiples of 16 bytes.
 */
#ifndef XS_RECORD_H
#define XS_RECORD_H

#include <assert.h>
#include <stdint.h>

enum xs_kind {
	XS_PAD = 1, /* nothing; fills the end of a ring step */
	XS_THREAD,  /* the records that follow are another thread's; struct xs_thread_record */
	XS_BEGIN,   /* an ITT task begins; name: interned with its domain as scope */
	XS_END,	    /* the innermost open task of domain `name` ends */
	XS_CALL,    /* an API call; struct xs_call_record */
	XS_DEVICE,  /* finished device work; struct xs_device_record */
	/* here records are lost, among them the ends of the `name` innermost open tasks */
	XS_LOST_ENDS,
	XS_TASK,    /* as XS_BEGIN, of a task with an id or a parent; struct xs_task_record */
	XS_ARGS,    /* arguments of an open task or keyed span; struct xs_args_record */
	XS_INSTANT, /* something happened; struct xs_args_record, flags: enum xs_scope */
	XS_COUNTER, /* struct xs_counter_record */
	/* a wait, a frame: begun and ended; struct xs_span_record, flags: enum xs_span */
	XS_SPAN,
	/*
	 * a frame, region or overlapped task begins; struct xs_task_record or, without ids, its
	 * event alone; flags: enum xs_span
	 */
	XS_OPEN,
	XS_CLOSE,	/* it ends, on whatever thread; as XS_OPEN */
	XS_EVENT_BEGIN, /* a user event begins; name: interned */
	XS_EVENT_END,	/* the innermost one of the name ends */
	XS_RELATION,	/* between two tasks; struct xs_task_record, flags: enum xs_relation */
	/* the thread's tasks go to the track `name` from here on; 0: to its own again */
	XS_TRACK,
	/* what a kernel is made of, before its first XS_DEVICE; struct xs_kernel_record */
	XS_KERNEL,
	/* a device is used for the first time; name: interned, flags: enum xs_device_type */
	XS_DEVICE_USED,
	/* -c: the argument words of a call, before its XS_CALL: 8 bytes each behind the event */
	XS_CALL_IN,
	/*
	 * -c: what it returned and what its arguments point to, behind the XS_CALL if it succeeded;
	 * struct xs_values_record
	 */
	XS_CALL_OUT,
	XS_STACK, /* where the call was made whose record follows; struct xs_stack_record */
	XS_MPI,	  /* an MPI call; struct xs_mpi_record */
	/*
	 * a persistent request was started, by the call whose record follows; struct
	 * xs_mpi_request_record
	 */
	XS_MPI_START,
	/* the work of a request was seen to be complete; struct xs_mpi_request_record */
	XS_MPI_DONE,
	/* finished device work, many commands of one queue; struct xs_commands_record */
	XS_COMMANDS,
	/*
	 * what the record that follows says of its time: by a clock of the application's; struct
	 * xs_own_time_record
	 */
	XS_OWN_TIME,
	XS_MPI_MEMBER, /* who this process is in a communicator; struct xs_mpi_member_record */
	/*
	 * for which commands the call whose record came before has waited; struct xs_waited_record
	 */
	XS_WAITED,
	/*
	 * a call put work on a device whose record is not in a ring; struct xs_enqueued_record
	 */
	XS_ENQUEUED,
	/* an activity that the program has described (library/); struct xs_activity_record */
	XS_ACTIVITY,
	/*
	 * something that is known of the whole trace; struct xs_args_record, name: the key, flags:
	 * enum xs_about_flags, the text behind it
	 */
	XS_ABOUT,
	/*
	 * the program's numbers for what the thread does from here on; struct xs_external_record
	 */
	XS_EXTERNAL,
	XS_THREAD_NAMED, /* what the program calls another thread; struct xs_thread_named_record */
	XS_METRICS,	 /* what the hardware has counted of a kernel; struct xs_metrics_record */
	/*
	 * what a device has counted in a period that began at work.start, in whole ticks of its
	 * clock; struct xs_metrics_record
	 */
	XS_SAMPLE,
	XS_KERNEL_PLACE, /* where a kernel's instructions lie; struct xs_kernel_place_record */
	XS_COUNTED,	 /* the same, of one that is told elsewhere; struct xs_counted_record */
	XS_STALLED, /* how often warps were found at an instruction; struct xs_stalled_record */
	XS_CPU,	    /* what processors have counted so far; struct xs_cpu_record */
	/* a thread has done its part of a parallel region; struct xs_team_record */
	XS_TEAM,
	XS_CALLED, /* calls that no other record tells; struct xs_called_record */
	/*
	 * inside all that is open, the begins of `name` tasks are lost; their ends may come, or
	 * never
	 */
	XS_LOST_BEGINS,
};

/* Who made the record: a row of writer/meaning/backends.c. Tables of reports come in this order. */
enum xs_source {
	XS_SOURCE_NONE,
	XS_SOURCE_ITT,
	XS_SOURCE_LEVEL_ZERO,
	XS_SOURCE_OPENCL,
	XS_SOURCE_CUDA,
	XS_SOURCE_MPI,
	XS_SOURCE_UR, /* SYCL's runtime, and the Unified Runtime below it */
	XS_SOURCE_COUNT,
};

/*
 * xs_event.flags, by kind of record: a bit means something else in each, so each name says its
 * kind.
 */
enum xs_call_flags {
	/*
	 * the call has to do with work on a device: makes what that needs, puts it there, waits for
	 * it
	 */
	XS_CALL_FLAG_OF_WORK = 1,
	XS_CALL_FLAG_FAILED = 2, /* result is the API's error code */
};

enum xs_stack_flags {
	XS_STACK_FLAG_CUT = 1, /* there are more frames */
};

struct xs_event {
	uint64_t tick;	/* raw clock (common/clock.h); the drain process turns it into ns */
	uint32_t name;	/* interned string, or a function number */
	uint8_t kind;	/* enum xs_kind */
	uint8_t words;	/* size in 8-byte words, even, at least 2 */
	uint8_t source; /* enum xs_source */
	uint8_t flags;	/* of its kind */
};
static_assert(sizeof(struct xs_event) == 16, "a task's begin or end is one of these and no more");

struct xs_thread_record {
	struct xs_event event; /* name: the thread's name */
	uint64_t tid;
	uint64_t lost; /* the ring's count of lost records so far */
};
static_assert(sizeof(struct xs_thread_record) == 32, "multiple of 16");

struct xs_thread_named_record {
	struct xs_event event; /* name: the thread's name */
	uint64_t tid;
	uint64_t reserved;
};
static_assert(sizeof(struct xs_thread_named_record) == 32, "multiple of 16");

struct xs_call_record {
	struct xs_event event; /* tick: when the call began; name: function number */
	uint64_t duration;     /* ticks */
	int64_t result;	       /* as the API returned it; pointers are 0 unless the call failed */
};
static_assert(sizeof(struct xs_call_record) == 32, "two calls in a cache line");

struct xs_values_record {
	struct xs_event event; /* tick: as the XS_CALL's; name: function number */
	uint64_t result;       /* of a function that returns no error code */
	uint32_t length;       /* bytes of values that follow; the record's size is rounded up */
	uint32_t reserved;
	/* struct xs_value … */
};
static_assert(sizeof(struct xs_values_record) == 32, "multiple of 16");

/* What one argument points to: `bytes` follow, padded to 8. */
struct xs_value {
	uint8_t argument; /* from 0 */
	uint8_t member;	  /* 1: text that a member of the struct points to, not the struct */
	uint16_t bytes;
	uint32_t count; /* how many values there are; bytes hold as many as fitted */
};
static_assert(sizeof(struct xs_value) == 8, "keeps the values aligned");

/*
 * What processors have counted by now. flags 0: for the thread, up to the begin or end of a task
 * whose record follows and has the same tick. XS_CPU_FLAG_ALL: for the application and all that it
 * has started, by xstrace-cpu. name: the events, a bit each (cpu_events.h), in whose order
 * the values come.
 */
struct xs_cpu_record {
	struct xs_event event;
	/* ns: for how long the hardware was to count, and did; both 0: all the time */
	uint64_t enabled, running;
	uint64_t value[];
};
#define XS_CPU_FLAG_ALL	   1
#define XS_CPU_MAX	   24u /* values */
#define XS_CPU_SIZE(count) (((uint32_t)sizeof(struct xs_cpu_record) + 8u * (count) + 15) & ~15u)
static_assert(sizeof(struct xs_cpu_record) == 32, "multiple of 16");

/*
 * A second one with XS_TEAM_FLAG_MORE comes for each task that the thread has run while it waited
 * at the region's end: its tick is the task's end, and its numbers are the sums until then.
 */
struct xs_team_record {
	struct xs_event event; /* tick: when it arrived at the region's end; name: the region's */
	uint64_t region;       /* serial number of this run of the region, from 1 */
	uint64_t duration;     /* since it began with its part, in ticks, … */
	uint64_t waited;       /* … and how much of that it has waited */
	uint64_t told; /* ticks of work (duration - waited) that its records before this one had */
	uint64_t reserved;
	uint32_t index, size; /* which thread of how many */
};
static_assert(sizeof(struct xs_team_record) == 64, "a cache line");
#define XS_TEAM_FLAG_MORE 1

/* Further calls of a function, which are only counted; event.name: the function's. */
struct xs_called_record {
	struct xs_event event;
	uint64_t calls, duration; /* of all of them together, ticks */
};
static_assert(sizeof(struct xs_called_record) == 32, "multiple of 16");

/*
 * A return address: in which file (interned path, with the build id's digits as scope), and at
 * which of its addresses.
 */
#define XS_FRAME(file, address) ((uint64_t)(file) << 40 | ((address) & 0xffffffffffu))
#define XS_FRAME_FILE(frame)	((uint32_t)((frame) >> 40))
#define XS_FRAME_ADDRESS(frame) ((frame) & 0xffffffffffu)
#define XS_FRAME_RAW		(1ull << 63) /* an address in memory, in no file */
/*
 * A function of Python's, which is called what `function` says (interned, with its file's path as
 * scope), and the line that it is at.
 */
#define XS_FRAME_PYTHON (1ull << 62)
#define XS_FRAME_OF_PYTHON(function, line) \
	(XS_FRAME_PYTHON | (uint64_t)((line) & 0x3fffffff) << 32 | (function))
#define XS_FRAME_LINE(frame)	 ((uint32_t)((frame) >> 32) & 0x3fffffff)
#define XS_FRAME_FUNCTION(frame) ((uint32_t)(frame))
#define XS_STACK_DEPTH_MAX	 128u

struct xs_stack_record {
	struct xs_event event; /* tick: that of the call; name: count of frames */
	uint64_t frame[];      /* innermost first; an even number of words */
};
#define XS_STACK_SIZE(count) ((uint32_t)sizeof(struct xs_stack_record) + ((count) + 1) / 2 * 16)

#define XS_RECORD_MAX 2032 /* bytes; fits `words` and the smallest ring step */
static_assert(XS_STACK_SIZE(XS_STACK_DEPTH_MAX) <= XS_RECORD_MAX, "fits a record");

#endif
