/*
 * A picture of a run while it goes on: what the drain process writes into the run directory (the
 * file "v") when somebody looks (--top, --export), and who looks reads.
 *
 * struct xs_live_head, then as many struct xs_live_process, xs_live_device and xs_live_name as it
 * says. Both sides are of one version (XS_SHM_VERSION). Who reads believes no count beyond the
 * file's size, and no text to be plain.
 */
#ifndef XS_LIVE_PICTURE_H
#define XS_LIVE_PICTURE_H

#include <stdint.h>

#define XS_LIVE_MAGIC	0x6576696c74737801ull
#define XS_LIVE_FILE	"v"
#define XS_LIVE_SECONDS 5u /* that "recent" reaches back, the last of them not yet over */

/* Who does not ask again for so long does not look any more: nothing is counted for him. */
#define XS_LIVE_PATIENCE_NS 10000000000u

enum xs_live_kind {
	XS_LIVE_TASK, /* and frames, regions, SYCL's and Python's slices */
	XS_LIVE_CALL, /* of APIs, and of MPI */
	XS_LIVE_KERNEL,
	XS_LIVE_COPY, /* and fills, maps */
	XS_LIVE_KINDS,
};

#define XS_LIVE_PROCESSES 512u /* in a picture; those that have recorded most */
#define XS_LIVE_DEVICES	  64u
#define XS_LIVE_NAMES	  64u /* of each kind: those that took longest recently */

/* Of what has ended. */
struct xs_live_sum {
	uint64_t count, ns;
};

struct xs_live_name {
	uint32_t kind; /* enum xs_live_kind */
	char name[124];
	struct xs_live_sum recent, all;
	uint64_t recent_bytes, bytes; /* copies */
};

struct xs_live_device {
	int32_t pid, device; /* its number in the process */
	char name[120];
	uint64_t recent_busy, busy; /* ns in which at least one command ran */
	struct xs_live_sum recent, all;
};

struct xs_live_process {
	int32_t pid, rank;		/* rank -1: unknown */
	char name[96];			/* one line */
	uint32_t threads;		/* that have rings now */
	uint32_t fill;			/* of the fullest ring, per mille */
	uint64_t events, recent_events; /* records read */
	uint64_t lost;
	struct xs_live_sum recent_calls, calls;
	uint64_t recent_waited, waited; /* ns in calls that waited for devices */
	/* the call that most threads are in now, since when the first of them; empty: none is */
	char in_call[64];
	uint32_t in_call_threads, reserved;
	uint64_t in_call_ns;
};

struct xs_live_head {
	uint64_t magic;
	uint32_t version, reserved;
	uint64_t size; /* of the file */
	uint32_t process_count, device_count, name_count;
	uint32_t more_processes;  /* for which there was no room */
	uint64_t mono, real;	  /* ns: when the picture was made */
	uint64_t begun;		  /* the run's age, ns */
	uint64_t watched;	  /* since when somebody looks, ns */
	uint64_t recent;	  /* the time that "recent" is about, ns */
	uint64_t cpu, recent_cpu; /* of the drain process: ns of processors */
	uint64_t rss;		  /* likewise, bytes */
	uint64_t behind;	  /* bytes of records that wait to become text */
	uint32_t paused;	  /* enum xs_pause_reason */
	/* names are not known before the end (--on-full=overwrite) or a dump (--flight-recorder) */
	uint32_t blind;
};

#endif
