/*
 * What a traced process and the drain process share of CUDA's activity: the buffers that CUPTI
 * fills, and what is needed to read them.
 *
 *   c<pid>.<serial>.0     struct xs_activity_file; made when CUDA is first used
 *   c<pid>.<serial>.<n>   struct xs_activity_buffer and, from XS_ACTIVITY_HEADER on, its data
 *
 * CUPTI writes its records straight into the data; nobody in the traced process copies them. A
 * record begins with its kind (32 bits), and no record says how long it is: the length of each kind
 * depends on the version of libcupti, which the traced process asks.
 */
#ifndef XS_ACTIVITY_H
#define XS_ACTIVITY_H

#include <stdatomic.h>
#include <stdint.h>

#include "shm.h"

#define XS_ACTIVITY_KINDS 64u /* kinds from here on are not known, and end a buffer */
/*
 * In the kind of a record whose call was made: CUPTI fills in the times later. No header has it; it
 * was seen of CUPTI 13.0.
 */
#define XS_ACTIVITY_RESERVED 0x80000000u
#define XS_ACTIVITY_BUFFERS  64u
#define XS_ACTIVITY_FILES    (XS_ACTIVITY_BUFFERS + 1) /* and one of all */
#define XS_ACTIVITY_BYTES    (4u << 20)		       /* of a buffer's data */
#define XS_ACTIVITY_HEADER   4096u
#define XS_ACTIVITY_NAMES    16384u /* a power of two */
#define XS_ACTIVITY_DEVICES  64u
#define XS_ACTIVITY_OBJECTS  1024u /* a power of two */

enum xs_activity_state {
	/* all zero; the traced process may hand it to CUPTI */
	XS_BUFFER_EMPTY,
	/* CUPTI writes; what it holds is read if the process has ended */
	XS_BUFFER_HANDED,
	/* `valid` bytes are to be read; the drain process makes it empty again */
	XS_BUFFER_FULL,
};

enum xs_activity_clock {
	XS_ACTIVITY_MONOTONIC, /* times are ns of CLOCK_MONOTONIC: CUPTI asks us for them */
	XS_ACTIVITY_PAIRS,     /* ns of a clock of CUPTI's: each buffer has a pair of readings */
};

/* CUPTI's clock, read between two readings of ours. */
struct xs_activity_pair {
	uint64_t before, cupti, after; /* before, after: ns of CLOCK_MONOTONIC; 0: not read */
};

struct xs_activity_buffer {
	_Atomic uint32_t state; /* enum xs_activity_state */
	uint32_t turn;		/* number of the hand-out to CUPTI, among all buffers' */
	_Atomic uint64_t valid; /* bytes */
	struct xs_activity_pair pair;
	uint64_t made_as; /* xs_file_word() */
};

/* A name that records point to. */
struct xs_activity_name {
	_Atomic uint64_t pointer; /* in the traced process; 0: free */
	_Atomic uint32_t name;	  /* interned; stored first */
	uint32_t reserved;
};

/* What the drain process shows under a name that no record has. In the order of enum below. */
enum xs_activity_text {
	XS_TEXT_DEVICE, /* a device that nothing is known of */
	XS_TEXT_OVERHEAD_ROW,
	XS_TEXT_SYNC_ROW,
	XS_TEXT_JIT_ROW,
	XS_TEXT_MEMORY_ROW,
	XS_TEXT_OVERHEAD, /* by CUPTI's numbers: see gpu/cuda/texts.c */
	XS_TEXT_OVERHEAD_COMPILER,
	XS_TEXT_OVERHEAD_FLUSH,
	XS_TEXT_OVERHEAD_INSTRUMENTATION,
	XS_TEXT_OVERHEAD_RESOURCE,
	XS_TEXT_OVERHEAD_TRIGGER,
	XS_TEXT_OVERHEAD_LAZY,
	XS_TEXT_OVERHEAD_COMMAND_BUFFER,
	XS_TEXT_SYNC,
	XS_TEXT_SYNC_EVENT,
	XS_TEXT_SYNC_WAIT_EVENT,
	XS_TEXT_SYNC_STREAM,
	XS_TEXT_SYNC_CONTEXT,
	XS_TEXT_JIT,
	XS_TEXT_JIT_PTX,
	XS_TEXT_JIT_NVVM,
	XS_TEXT_USED_DEVICE,
	XS_TEXT_USED_PINNED,
	XS_TEXT_USED_MANAGED,
	XS_TEXT_USED_POOL,
	XS_TEXT_MIGRATION_ROW,
	XS_TEXT_MIGRATION_HTOD,
	XS_TEXT_MIGRATION_DTOH,
	XS_TEXT_MIGRATION_DTOD,
	XS_TEXT_CPU_FAULTS,
	XS_TEXT_GPU_FAULTS,
	XS_TEXT_THRASHING,
	XS_ACTIVITY_TEXTS,
};

/* Names of work that has none of its own: the first functions of the source. */
enum xs_activity_work {
	XS_WORK_OF_KERNEL, /* whose name is not known */
	XS_WORK_OF_COPY,   /* + CUpti_ActivityMemcpyKind */
	XS_WORK_OF_MEMSET = 12,
	XS_WORK_OF_GRAPH,
	XS_WORK_OF_DECOMPRESSION,
	XS_WORK_OF_HOST_NODE,
	XS_ACTIVITY_WORKS = 16,
};

/* What the program calls a stream or a context, if it has named it; see xs_activity_object_of(). */
struct xs_activity_object {
	_Atomic uint64_t id;   /* context << 32 | stream, or … | XS_ACTIVITY_CONTEXT; 0: free */
	_Atomic uint32_t name; /* interned */
	uint32_t reserved;
};
#define XS_ACTIVITY_CONTEXT UINT32_MAX /* no stream has this number */

struct xs_activity_device {
	_Atomic uint32_t name;	 /* interned, with its properties as scope; 0: not known */
	_Atomic uint32_t given;	 /* what the program calls it; 0: it has not said */
	_Atomic uint32_t wanted; /* by --devices-to-sample */
	uint32_t reserved;
	_Atomic uint64_t uuid[2]; /* stored before the name; both 0: not known */
};

struct xs_activity_file {
	_Atomic uint64_t magic; /* stored last */
	uint32_t version;	/* of libcupti, as it says */
	uint8_t source;		/* enum xs_source */
	uint8_t clock;		/* enum xs_activity_clock */
	uint8_t reserved[2];
	uint32_t off;				  /* why CUDA is not traced, interned; 0: it is */
	_Atomic uint64_t made;			  /* files: bit n for number n + 1 */
	_Atomic uint64_t dropped;		  /* records for which CUPTI had no room */
	uint64_t made_as;			  /* xs_file_word() */
	_Atomic uint16_t size[XS_ACTIVITY_KINDS]; /* bytes of a record; 0: not known */
	uint32_t text[XS_ACTIVITY_TEXTS];	  /* interned */
	struct xs_activity_device device[XS_ACTIVITY_DEVICES];
	_Atomic uint32_t objects; /* that have names; where there are none nobody looks for one */
	struct xs_activity_object object[XS_ACTIVITY_OBJECTS];
	struct xs_activity_name name[XS_ACTIVITY_NAMES];
};

/* Where a pointer's name is, or may be put, if all before it are taken: the n-th place. */
static inline uint32_t xs_activity_place(uint64_t pointer, uint32_t n)
{
	return (uint32_t)((pointer >> 3) * 0x9e3779b97f4a7c15ull >> 40) + n;
}
#define XS_ACTIVITY_PROBES 32u

/* The place of the object, or one that is free (add); NULL: there is none. */
static inline struct xs_activity_object *xs_activity_object_of(struct xs_activity_file *file,
							       uint64_t id, _Bool add)
{
	for (uint32_t n = 0; n < XS_ACTIVITY_PROBES; n++) {
		struct xs_activity_object *object =
			&file->object[xs_activity_place(id << 3, n) & (XS_ACTIVITY_OBJECTS - 1)];
		uint64_t there = atomic_load_explicit(&object->id, memory_order_acquire);

		if (there == id)
			return object;
		if (there)
			continue;
		if (!add)
			return 0;
		if (atomic_compare_exchange_strong(&object->id, &there, id) || there == id)
			return object;
	}
	return 0;
}

#endif
