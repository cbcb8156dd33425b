/*
 * The records of work on devices, of those who waited for it, and of what was counted of it.
 */
#ifndef XS_DEVICE_RECORD_H
#define XS_DEVICE_RECORD_H

#include "record.h"

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
	/* the enqueuing call is in no trace: recording was paused when it returned, or it was lost
	 */
	XS_DEVICE_FLAG_ALONE = 128,
};

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

/*
 * Any duration in 32 bits: below 2^31 ticks as it is, above with 26 significant bits (a call of two
 * seconds to 30 ns), up to 2^46.
 */
#define XS_TICKS_SHIFT 20u
static inline uint32_t xs_ticks_pack(uint64_t ticks)
{
	uint32_t shift;

	if (ticks >> 31 == 0)
		return (uint32_t)ticks;
	shift = 64 - 26 - (uint32_t)__builtin_clzll(ticks);
	if (shift > XS_TICKS_SHIFT)
		return UINT32_MAX;
	return 1u << 31 | shift << 26 | (uint32_t)(ticks >> shift & 0x3ffffff);
}

static inline uint64_t xs_ticks_of(uint32_t packed)
{
	uint32_t shift = packed >> 26 & 31;

	return !(packed >> 31) ? packed
			       : (uint64_t)(packed & 0x3ffffff)
					 << (shift < XS_TICKS_SHIFT ? shift : XS_TICKS_SHIFT);
}

struct xs_device_record {
	/* tick: when the enqueuing call began; name: kernel or function number */
	struct xs_event event;
	uint32_t host_ticks;   /* how long the enqueuing call took: xs_ticks_of() */
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
	uint32_t host_ticks; /* how long the call took: xs_ticks_of() */
	uint64_t reserved;
};
static_assert(sizeof(struct xs_enqueued_record) == 32, "multiple of 16");
/* XS_ENQUEUED: of a kernel; of a copy, fill or graph. It has a record when it has run. */
#define XS_ENQUEUED_FLAG_LAUNCH	 1
#define XS_ENQUEUED_FLAG_AWAITED 2
#define XS_ENQUEUED_FLAG_ALONE	 4 /* as XS_DEVICE_FLAG_ALONE */

static_assert(sizeof(struct xs_commands_record) + XS_COMMANDS_MAX * sizeof(struct xs_command) <=
		      XS_RECORD_MAX,
	      "fits a record");
static_assert(XS_METRICS_SIZE(XS_METRICS_MAX) <= XS_RECORD_MAX, "fits a record");

#endif
