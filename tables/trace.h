/*
 * A trace, as its events are taken: processes, tracks and names by number, and rows to be sorted.
 * Times are those of the file until all of it has been read: some tell their base at the end.
 */
#ifndef XT_TRACE_H
#define XT_TRACE_H

#include "names.h"
#include "reader.h"
#include "rows.h"
#include "store.h"

#define XT_PROCESSES 65536u
#define XT_TRACKS    (1u << 20)
#define XT_NAMES     (1u << 24)
#define XT_RECENT    256u
#define XT_FAR	     ((int64_t)1 << 61) /* no time lies as far from 0 */

struct xt_process {
	char *name, *labels; /* strings of JSON, or NULL */
	char *host;
	int64_t rank;	/* -1: not known */
	bool is_device; /* by its name, or what runs there */
};

struct xt_track {
	uint32_t process;
	char *name;	 /* string of JSON, or NULL */
	bool is_process; /* the process itself: for what has no thread */
	bool is_queue;	 /* by its name: a queue of a device, of cliloader */
	bool has_slices;
	int64_t number;	      /* in the tables; -1: none */
	struct xt_open *open; /* begun and not ended, the innermost first */
};

/* Something that the trace says of itself. */
struct xt_said {
	char *key, *value;
	struct xt_said *next;
};

struct xt_trace {
	const char *path;
	struct xm_file file;
	struct xm_reader reader;
	int64_t base, first, last; /* ns; first > last: no event has a time */
	bool has_odd_base;	   /* it says when its times begin, but so that nobody can use it */
	bool is_kineto, is_own;	   /* by Kineto; by xstrace */
	char tool[32], version[64], host[256], run[64], ended[16];
	int64_t rank, world_size, pid, status, lost; /* -1: not said */
	bool has_end, recovered;
	struct xt_said *said, **said_end;
	size_t said_bytes;

	/* texts that came last, by their ends: most come again soon */
	struct xt_recent {
		uint64_t first, last;
		uint32_t length, number;
	} recent[XT_RECENT];
	struct xt_names names; /* of slices and categories alike */
	struct xf_map pids, tids, waiting_ids;
	struct xt_process *processes;
	struct xt_track *tracks;
	struct xt_open **waiting; /* asynchronous ones, by number in waiting_ids */
	uint32_t process_room, track_room, waiting_room;
	/* of the last slice of xstrace's own layout */
	uint32_t last_pid, last_tid, last_track;
	bool knows_last;

	struct xt_rows rows;
	struct xt_store store;
	uint64_t events, unfit, row_count;
	int error;
};

/* bytes: of memory for rows. 0 or -errno. */
int xt_trace_init(struct xt_trace *trace, int directory, size_t bytes);
void xt_trace_free(struct xt_trace *trace);

/* place.c: the track of an event; XF_NONE: it has none, or there is no room. */
uint32_t xt_track_of(struct xt_trace *trace, const struct xf_event *event);
/* The track of its process that has this name (bytes of any kind). */
uint32_t xt_track_named(struct xt_trace *trace, struct xf_text pid, const char *name,
			size_t length);
/* An event of phase M. */
void xt_take_name(struct xt_trace *trace, const struct xf_event *event);
/* said.c: a member of the top level, into the trace (user). */
void xt_take_member(void *user, struct xf_text key, struct xf_text value);
/* take.c: an event; times in ns by the file's clock. dur: 0 where it has none. */
void xt_take(struct xt_trace *trace, const struct xf_event *event, int64_t ts, int64_t dur);
/* What has not ended ends with the trace. */
void xt_take_end(struct xt_trace *trace);

#endif
