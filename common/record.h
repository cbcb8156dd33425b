/*
 * One record: what a traced process writes and the drain process reads.
 *
 * This file and common/shm.h are all that the two sides share. A record is written once and never
 * edited. It says its own size and kind. Both sides are of one version, so each kind has the sizes
 * that stand in writer/meaning/sizes.c. Sizes are multiples of 16 bytes.
 */
#ifndef XS_RECORD_H
#define XS_RECORD_H

#include <assert.h>
#include <stdint.h>

enum xs_kind {
	XS_PAD = 1,   /* nothing; fills the end of a ring step */
	XS_THREAD,    /* the records that follow are another thread's; struct xs_thread_record */
	XS_BEGIN,     /* an ITT task begins; name: interned with its domain as scope */
	XS_END,	      /* the innermost open task of domain `name` ends */
	XS_CALL,      /* an API call; struct xs_call_record */
	XS_DEVICE,    /* finished device work; struct xs_device_record */
	XS_LOST_ENDS, /* the ends of the `name` innermost open tasks are lost */
	XS_TASK,      /* as XS_BEGIN, of a task with an id or a parent; struct xs_task_record */
	XS_ARGS,      /* arguments of an open task or keyed span; struct xs_args_record */
	XS_INSTANT,   /* something happened; struct xs_args_record, flags: enum xs_scope */
	XS_COUNTER,   /* struct xs_counter_record */
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

/* Of XS_DEVICE and XS_COMMANDS. */
enum xs_device_flags {
	XS_DEVICE_FLAG_FUNCTION = 4, /* name is a function number of source, not a string */
	XS_DEVICE_FLAG_IN_ORDER = 8, /* the queue runs one command after the other */
	/*
	 * submit is a tick of the host, start and end what the device's clock counts
	 * (xs_device_pairs)
	 */
	XS_DEVICE_FLAG_TICKS = 16,
	XS_DEVICE_FLAG_COPY_ENGINE = 32, /* the engine can do nothing but copy */
	/* the enqueuing call returned when the command, and in order all before it, were complete
	 */
	XS_DEVICE_FLAG_WAITED = 64,
};

enum xs_mpi_flags {
	XS_MPI_FLAG_FAILED = 2, /* the record has an XS_MPI_RESULT */
	XS_MPI_FLAG_INSIDE = 4, /* no call, but what the library does within one */
};

static_assert((int)XS_MPI_FLAG_FAILED == (int)XS_CALL_FLAG_FAILED, "reports count both as calls");

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

enum xs_device_class { XS_WORK_KERNEL, XS_WORK_COPY, XS_WORK_FILL, XS_WORK_MAP, XS_WORK_OTHER };
/* Where a copy's end lies; OpenCL leaves it unknown. */
enum xs_memory {
	XS_MEMORY_UNKNOWN,
	XS_MEMORY_HOST,
	XS_MEMORY_DEVICE,
	XS_MEMORY_SHARED,
	XS_MEMORY_SYSTEM
};
enum xs_device_type { XS_DEVICE_UNKNOWN, XS_DEVICE_CPU, XS_DEVICE_GPU, XS_DEVICE_ACCELERATOR };

struct xs_device_record {
	/* tick: when the enqueuing call began; name: kernel or function number */
	struct xs_event event;
	uint32_t host_ticks;   /* how long the enqueuing call took (saturated) */
	uint32_t tid;	       /* the enqueuing thread */
	uint32_t id;	       /* correlation id: serial number in the process, from 1 */
	uint32_t queue;	       /* serial number of the queue in the process, from 1 */
	uint64_t queue_handle; /* the application's handle, for display */
	uint32_t device_name;  /* interned string */
	uint8_t device;	       /* index in the process */
	uint8_t device_type;   /* enum xs_device_type */
	uint8_t work;	       /* enum xs_device_class */
	uint8_t simd;	       /* work items that run in step; 0: unknown */
	union {
		uint64_t queued;
		/*
		 * XS_DEVICE_FLAG_TICKS: the thread that submitted it; 0: it was submitted when the
		 * enqueuing call began
		 */
		uint64_t submitter;
	};
	uint64_t submit, start, end; /* ns of the device's clock, but see XS_DEVICE_FLAG_TICKS */
	uint64_t bytes;		     /* copies, fills, maps */
	uint8_t tile;		     /* number of the tile, from 1; 0: the whole device */
	uint8_t engine;		     /* ordinal of the engine group, from 1; 0: unknown */
	uint8_t engine_index;	     /* within the group, from 0 */
	uint8_t memory;		     /* copies: enum xs_memory of the source << 4 | of the target */
	uint32_t kernel;	     /* id of the XS_KERNEL record; 0: none */
	/* kernels only (the record ends before it otherwise): work items, 0 = unused dimension */
	uint64_t global[3];
	uint64_t local[3]; /* work group; 0: left to the runtime */
};
static_assert(sizeof(struct xs_device_record) == 144, "multiple of 16");
#define XS_DEVICE_RECORD_SHORT 96 /* without global and local */
static_assert(sizeof(struct xs_device_record) - 48 == XS_DEVICE_RECORD_SHORT, "layout");

/*
 * What a command is, whenever it runs: those parts of its xs_device_record. Interned
 * (common/strtab.h) with XS_SHAPE_SCOPE, so that each run of it needs a number alone.
 */
struct xs_shape {
	uint32_t name;
	uint8_t flags, words, work, simd;
	uint32_t kernel;
	uint32_t memory;
	uint64_t bytes;
	uint64_t global[3], local[3];
};
static_assert(sizeof(struct xs_shape) == 72, "no padding: it is compared");
#define XS_SHAPE_SCOPE 2u /* the id of no string */

struct xs_command {
	uint64_t tick;	 /* when the enqueuing call began */
	uint64_t start;	 /* as in xs_device_record */
	uint32_t length; /* end - start */
	uint32_t host_ticks;
	uint32_t shape; /* id of a struct xs_shape */
	uint32_t tid;
};

struct xs_commands_record {
	/* tick: of the newest command; name: the device's; flags: those of the queue */
	struct xs_event event;
	uint64_t queue_handle;
	uint32_t queue;
	uint32_t id;	 /* of the first command, the others' follow */
	uint64_t submit; /* 0: each was submitted when its call began */
	/* submitter: the thread that did; 0: submit is 0 */
	uint32_t submitter : 24, count : 6, device_type : 2;
	uint8_t device, tile, engine, engine_index;
	struct xs_command command[];
};
static_assert(sizeof(struct xs_commands_record) == 48, "multiple of 16");
#define XS_COMMANDS_MAX 62u /* in a record */

/*
 * Hardware metrics of a command that has run: `count` words of values, then a byte for the type of
 * each (enum xs_value_type: U64, FLOAT, DOUBLE; another one: it has no value). What they are is
 * interned with XS_METRICS_SCOPE: a line for the group, and one for each metric.
 */
struct xs_metrics_record {
	struct xs_device_record work; /* the command's, but kind and size are this record's */
	uint32_t columns;	      /* id of that text */
	uint16_t count;
	uint16_t part; /* a device may report in parts (tiles): from 0 */
	uint64_t reserved;
	uint64_t value[];
};
#define XS_METRICS_SCOPE 4u /* the id of no string */
#define XS_METRICS_MAX	 200u
#define XS_METRICS_SIZE(count) \
	(((uint32_t)sizeof(struct xs_metrics_record) + 9u * (count) + 15) & ~15u)
static_assert(sizeof(struct xs_metrics_record) == 160, "multiple of 16");

/*
 * The same of a kernel that is told elsewhere (activity.h): both have this number. `count` numbers;
 * event.name is the id of the text that says what they are.
 */
struct xs_counted_record {
	struct xs_event event;
	uint32_t correlation;
	uint16_t count, part;
	uint64_t ns; /* how long it ran; 0: that was not counted */
	double value[];
};
#define XS_COUNTED_SIZE(count) \
	(((uint32_t)sizeof(struct xs_counted_record) + 8u * (count) + 15) & ~15u)
static_assert(sizeof(struct xs_counted_record) == 32, "multiple of 16");

/*
 * How often warps were found at an instruction of a kernel, by the reasons for which they stalled:
 * `count` words. event.name: the kernel's.
 */
struct xs_stalled_record {
	struct xs_event event;
	uint64_t address; /* from the kernel's begin, bytes */
	uint32_t columns; /* as in xs_metrics_record */
	uint16_t count;
	uint8_t device, reserved;
	uint64_t value[];
};
#define XS_STALLED_SIZE(count) \
	(((uint32_t)sizeof(struct xs_stalled_record) + 8u * (count) + 15) & ~15u)
static_assert(sizeof(struct xs_stalled_record) == 32, "multiple of 16");

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
 * Which commands of a queue a call has waited for. Those before it in a queue that keeps its order
 * are complete, too.
 */
enum xs_waited {
	XS_WAITED_SUBMITTED, /* all that were submitted by tick `until` (OpenCL: enqueued) */
	XS_WAITED_COMMAND,   /* the one whose id is `until` */
	XS_WAITED_STARTED,   /* the one that started at `until`, as its record says it */
};

struct xs_waited_record {
	/*
	 * tick: as that of the call's record; name: the queue's serial number; flags: enum
	 * xs_waited
	 */
	struct xs_event event;
	uint64_t until;
	uint64_t reserved;
};
static_assert(sizeof(struct xs_waited_record) == 32, "multiple of 16");

/*
 * What joins the call of a thread with work that is told elsewhere (activity.h), or with what it
 * has waited for, by the number that both have.
 */
struct xs_enqueued_record {
	/* tick: when the call began; name: the kernel's, 0: none; flags: XS_ENQUEUED_FLAG_… */
	struct xs_event event;
	uint32_t correlation;
	uint32_t host_ticks; /* how long the call took (saturated) */
	uint64_t reserved;
};
static_assert(sizeof(struct xs_enqueued_record) == 32, "multiple of 16");
/* XS_ENQUEUED: of a kernel; of a copy, fill or graph. It has a record when it has run. */
#define XS_ENQUEUED_FLAG_LAUNCH	 1
#define XS_ENQUEUED_FLAG_AWAITED 2

/*
 * An MPI call: its duration in ticks, and the words whose bits (1 << enum xs_mpi_word) are set in
 * `words`, in the order of the enum. Ranks are those in MPI_COMM_WORLD.
 */
enum xs_mpi_word {
	/*
	 * the communicator: XS_MPI_WORLD, XS_MPI_SELF or a hash that is the same on all of its
	 * ranks
	 */
	XS_MPI_COMM,
	XS_MPI_PEER, /* partner | tag << 32 */
	XS_MPI_COUNT,
	XS_MPI_BYTES,
	XS_MPI_ROOT,	  /* root | number of the collective on the communicator, from 1, << 32 */
	XS_MPI_RECV_PEER, /* the other half of what sends and receives; as XS_MPI_PEER */
	XS_MPI_RECV_BYTES,
	XS_MPI_REQUEST,	 /* handle */
	XS_MPI_NEW_COMM, /* that the call made; as XS_MPI_COMM */
	XS_MPI_WIN,	 /* handle */
	XS_MPI_FILE,	 /* handle */
	XS_MPI_OFFSET,	 /* in the file, in its units */
	/*
	 * of collectives whose partners need not be alike: whose data the call gets; see
	 * XS_MPI_FROM_ALL
	 */
	XS_MPI_FROM,
	XS_MPI_RESULT,	 /* of a call that failed */
	XS_MPI_DURATION, /* of a call that took too long for the record's 48 bits */
	XS_MPI_WORDS,
};
#define XS_MPI_MAKES   (1u << 15) /* in `words`: the call made the request that it names */
#define XS_MPI_WORLD   1u
#define XS_MPI_SELF    2u
#define XS_MPI_NOTHING INT32_MIN /* a half of a word that is not known, and not shown */
#define XS_MPI_NO_PEER -1	 /* MPI_PROC_NULL */

/*
 * XS_MPI_FROM: a bit for each of the first XS_MPI_FROM_BITS ranks of the communicator (between
 * groups: of the other group); or all of them; or the id of such bits in more words, interned with
 * XS_MPI_SET_SCOPE; or, if both marks are set, nothing is known.
 */
#define XS_MPI_FROM_BITS    62u
#define XS_MPI_FROM_ALL	    (1ull << 62)
#define XS_MPI_FROM_SET	    (1ull << 63)
#define XS_MPI_FROM_UNKNOWN UINT64_MAX
#define XS_MPI_SET_SCOPE    3u /* the id of no string */

struct xs_mpi_record {
	struct xs_event event;
	uint64_t duration : 48, words : 16;
	uint64_t word[];
};
static_assert(sizeof(struct xs_mpi_record) == 24 && 1u << XS_MPI_WORDS <= XS_MPI_MAKES,
	      "a call with one word is half a cache line");

struct xs_mpi_request_record {
	struct xs_event event; /* tick: when; name: number of the function that did or saw it */
	uint64_t request;      /* handle */
	uint64_t bytes;	       /* that came; UINT64_MAX: not known */
	int32_t peer, tag;     /* that they came from; XS_MPI_NOTHING: not known */
	uint64_t cancelled;    /* 1: nothing came, or will */
};
static_assert(sizeof(struct xs_mpi_request_record) == 48, "multiple of 16");

struct xs_mpi_member_record {
	/* name: what the application calls the communicator, interned; 0: nothing */
	struct xs_event event;
	uint64_t id;	       /* as XS_MPI_COMM */
	int32_t rank, members; /* in its group; members 0: not known */
	int32_t others;	       /* members of the other group; 0: there is none */
	int32_t side;	       /* 0 or 1: which of the two groups it is */
	uint64_t reserved;
};
static_assert(sizeof(struct xs_mpi_member_record) == 48, "multiple of 16");

struct xs_kernel_record {
	struct xs_event event; /* name: interned */
	uint32_t id;	       /* serial number in the process, from 1 */
	uint32_t arguments;
	uint32_t local_bytes;		     /* per work group */
	uint32_t private_bytes, spill_bytes; /* per hardware thread */
	uint32_t registers; /* size of the register file per hardware thread; 0: unknown */
	uint16_t simd;	    /* 0: unknown */
	uint8_t compiled;   /* 0: unknown, 1: at run time (JIT), 2: ahead of time (AOT) */
	uint8_t reserved[5];
};
static_assert(sizeof(struct xs_kernel_record) == 48, "multiple of 16");

struct xs_kernel_place_record {
	struct xs_event event; /* name: interned; flags: 1 if it is not to be shown */
	uint64_t address, bytes;
	uint32_t device_name; /* as in xs_device_record */
	uint8_t device;
	uint8_t reserved[11];
};
static_assert(sizeof(struct xs_kernel_place_record) == 48, "multiple of 16");

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
	uint32_t cancelled;    /* XS_SPAN_WAIT: given up */
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

static_assert(XS_STACK_SIZE(XS_STACK_DEPTH_MAX) <= 2032, "fits a record");

#define XS_RECORD_MAX 2032 /* bytes; fits `words` and the smallest ring step */
static_assert(sizeof(struct xs_commands_record) + XS_COMMANDS_MAX * sizeof(struct xs_command) <=
		      XS_RECORD_MAX,
	      "fits a record");
static_assert(XS_METRICS_SIZE(XS_METRICS_MAX) <= XS_RECORD_MAX, "fits a record");

#endif
