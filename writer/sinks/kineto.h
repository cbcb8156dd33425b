/*
 * The Chrome JSON sink's other dialect: the trace as Kineto writes it (docs/KINETO.md). The file,
 * threads, tasks, marks and counters are the Chrome sink's; what is here differs.
 */
#ifndef XS_KINETO_H
#define XS_KINETO_H

#include "chrome.h"
#include "device_record.h"

#define XS_KINETO_ROWS	1024u
#define XS_KINETO_KEPT	8192u /* a power of two: calls and activities that others may refer to */
#define XS_KINETO_SPANS 4096u /* a power of two */

/* A device, as a process of the trace. */
struct xs_kineto_place {
	uint32_t name; /* string id; 0: not known */
	uint32_t pid;
	uint8_t source, device, tile;
	bool told; /* by an activity of the program: nothing else is known of it */
};

/* Where slices of a stream, or activities of a thread, are shown. */
struct xs_kineto_row {
	uint32_t pid, tid;
	struct xs_lanes lanes;
};

/* A task of the host that device work may have been launched in. Turns count up; 0: free. */
struct xs_kineto_ref {
	uint32_t slot, turn;
};

struct xs_kineto_span {
	uint64_t start, user; /* user: the program's number of it; 0: none */
	uint32_t name, tid, turn;
	struct xs_kineto_ref around; /* the task that it is in */
};

/* From when to when its work lasted on a stream. */
struct xs_kineto_range {
	uint32_t turn, name, pid, stream;
	uint64_t first, last, user;
};

/* A call that has numbers of the program's, or tasks around it. */
struct xs_kineto_call {
	uint64_t correlation, external;
	struct xs_kineto_ref span;
};

/* An activity that an arrow may begin from. */
struct xs_kineto_origin {
	uint64_t key, other; /* other 0: free */
	uint64_t start;
	uint32_t pid, tid;
};

struct xs_kineto {
	struct xs_kineto_place places[XS_DEVICES];
	uint32_t place_count, row_count, last_row;
	struct xs_kineto_row rows[XS_KINETO_ROWS];
	struct xs_kineto_call calls[XS_KINETO_KEPT];
	struct xs_kineto_origin origins[XS_KINETO_KEPT];
	uint64_t arrows; /* numbers of those between activities */
	uint32_t span_turns;
	struct xs_kineto_span spans[XS_KINETO_SPANS];
	struct xs_kineto_range ranges[XS_KINETO_SPANS];
};

/* The same for a call and for the work that it has put on a device; exact in a double, never 0. */
static inline uint64_t xs_kineto_correlation(uint32_t tid, uint64_t tick)
{
	uint64_t mixed = (tick ^ (uint64_t)tid << 40) * 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9ull;
	return (mixed ^ mixed >> 32) >> 11 | 1;
}

/* Another member of the event's args, which are the last that was put; key with ,": before it. */
static inline char *xs_kineto_more_args(char *o)
{
	return o[-1] == '}' ? xs_put(o - 1, ",") : xs_put(o, ",\"args\":{");
}

/* ---- kineto.c ---- */

bool xs_kineto_init(struct xs_chrome *chrome);
void xs_kineto_fini(struct xs_chrome *chrome);
/* What the file begins with, behind the brace; and what ends its list of events. */
char *xs_kineto_put_head(char *o, const struct xs_process *process);
char *xs_kineto_put_tail(char *o, const struct xs_process *process);
size_t xs_kineto_tail_room(const struct xs_chrome *chrome);
/* Is a call wanted, by its type? */
bool xs_kineto_wants_call(const struct xs_process *process, const struct xs_call *call);
/* All of a call behind its args, which may be there. */
char *xs_kineto_end_call(char *o, struct xs_track *track, const struct xs_call *call);
void xs_kineto_aside(struct xs_process *process, const struct xs_aside *aside);

/* ---- kineto_device.c ---- */

void xs_kineto_work(struct xs_process *process, const struct xs_work *work);
/* The process that the work's device is shown as. */
uint32_t xs_kineto_device_pid(struct xs_process *process, const struct xs_device_record *record);
/* The device of that number, named if it is new. */
uint32_t xs_kineto_told_device(struct xs_process *process, uint32_t device);
/* ---- kineto_rows.c ---- */

enum xs_kineto_lanes { XS_KINETO_THREAD, XS_KINETO_STREAM, XS_KINETO_ANNOTATION };
/*
 * The track of a row, for what lasts from start to end. ret_tid: its number. False: there is no
 * room.
 */
bool xs_kineto_lane(struct xs_process *process, uint32_t pid, uint32_t tid,
		    enum xs_kineto_lanes what, uint64_t start, uint64_t end, uint32_t *ret_tid);

/* ---- kineto_names.c ---- */

#define XS_KINETO_OPERATION ",\"cat\":\"cpu_op\""
/*
 * Takes the domain from the name of a task of PyTorch's emit_itt(). True: it is an operation, and
 * no annotation of the program's.
 */
bool xs_kineto_is_operation(const char **text, size_t *length);

/* ---- kineto_spans.c ---- */

/* The innermost task that is open on the track. */
struct xs_kineto_ref xs_kineto_span_of(struct xs_track *track);
/* Work that was launched in it. */
void xs_kineto_span_work(struct xs_process *process, struct xs_kineto_ref ref, uint32_t pid,
			 uint32_t stream, const struct xs_work *work);
/* Writes all: the trace ends. */
void xs_kineto_span_flush(struct xs_process *process);

/* ---- kineto_own.c ---- */

void xs_kineto_activity(struct xs_track *track, const struct xs_activity *activity);

#endif
