/*
 * CUDA's activity in the drain process: buffers that CUPTI has filled in a traced process's shared
 * memory (common/activity.h).
 *
 * drain/cuda.c finds the buffers, steps through their records and gives them back (drain/cuda.h);
 * cuda_records.c knows what a record means; cuda_calls.c joins it with the call that it came from.
 * Nothing that lies in shared memory is believed: what counts is copied once.
 */
#ifndef XS_CUDA_ACTIVITY_H
#define XS_CUDA_ACTIVITY_H

#include "activity.h"
#include "device_record.h"
#include "sink.h"

#define XS_RECORD_ROOM 512u /* bytes of a record that are looked at */

/*
 * A call that put work on a device; or several, where the driver gives later ones the number of one
 * that was left by a jump.
 */
struct xs_cuda_call {
	uint64_t tick;
	uint32_t correlation, host_ticks, tid;
	uint32_t name; /* the kernel's; 0: none */
	/* that have such a number: launches and other work that will have a record; records */
	uint32_t launches, awaited, kernels, others;
	bool known, launch;
	bool alone;	  /* it is in no trace */
	bool several;	  /* nobody knows which of them a record is of */
	uint8_t external; /* kind of the id below + 1; 0: none */
	uint64_t external_id;
};

/* Calls are numbered one after the other, so their numbers' last bits tell them apart. */
#define XS_CUDA_CALLS (1u << 18)

/* A record that is kept: it came before its call's, or is the flight recorder's. */
struct xs_cuda_told {
	int64_t offset; /* as that of struct xs_cuda */
	uint32_t size;
	uint32_t reserved;
	_Alignas(16) unsigned char data[256];
};

/* A record that came before its call's. */
struct xs_cuda_orphan {
	uint64_t since; /* CLOCK_MONOTONIC */
	struct xs_cuda_told told;
};
#define XS_CUDA_ORPHANS 4096u

struct xs_cuda_buffer {
	struct xs_activity_buffer *map; /* NULL: not mapped yet */
	uint32_t turn;			/* of the buffer, that `consumed` is about */
	uint32_t consumed;		/* bytes */
	bool full;			/* it was when the rings were looked at */
	bool done;			/* it is to be given back with the next commit */
	bool other;			/* not the file that the process made */
};

struct xs_cuda {
	struct xs_activity_file *file;
	bool other; /* it is not the one that the process made */
	uint8_t source, clock;
	uint32_t version;
	uint32_t off; /* interned; 0: it is traced */
	uint16_t size[XS_ACTIVITY_KINDS];
	struct xs_cuda_buffer buffer[XS_ACTIVITY_BUFFERS];
	struct xs_cuda_call *calls;	/* XS_CUDA_CALLS */
	uint64_t awaited, joined;	/* calls whose work has a record, and those that have it */
	struct xs_cuda_orphan *orphans; /* XS_CUDA_ORPHANS; NULL: none yet */
	uint32_t orphan_count;
	uint32_t serial;      /* of the work that was shown, and of orders */
	uint64_t records;     /* that were read, in all */
	uint64_t untimed;     /* records without times */
	uint64_t unknown;     /* records of kinds whose length is not known */
	uint64_t clock_error; /* ns, the greatest; of XS_ACTIVITY_PAIRS */
	/* the program runs: what is not whole yet, or has no call yet, is the next dump's */
	bool for_later;
	bool dirty;	    /* something was read since the last commit */
	uint8_t next_saved; /* the copy in kept->activity that does not count */
	int64_t offset;	    /* of the buffer that is read: from its ns to ns of the trace */
	int64_t used[XS_ACTIVITY_TEXTS]; /* bytes that are allocated, by the text of their counter
					  */
	struct xs_cuda_waits *waits;	 /* cuda_waits.c; NULL: none yet */
	struct xs_cuda_metrics *metrics; /* cuda_metrics.c; NULL: none yet */
	uint64_t unjoined;		 /* runs of kernels that were counted and not found */
	struct xs_track *history;	 /* flight recorder: what was told; NULL: there is none */
};

/* Is it older than what a dump shows? */
static inline bool xs_cuda_is_past(const struct xs_process *process, uint64_t ns)
{
	return process->run->dump && ns < process->run->dump->from;
}

/* ---- cuda_records.c ---- */

/*
 * A record, in memory of ours. False: it is of a call that is not known yet. last: it will not be
 * known later, either.
 */
bool xs_cuda_record(struct xs_process *process, const unsigned char *data, uint32_t size,
		    bool last);

/* ---- cuda_beside.c ---- */

/* A record of something else than work on a device; as xs_cuda_record(). */
bool xs_cuda_beside(struct xs_process *process, uint32_t kind, const unsigned char *data,
		    uint32_t size, bool last);

/* ---- cuda_waits.c ---- */

/* Tells the sinks of waits; all: of those, too, that an earlier one might still follow. */
void xs_cuda_tell_waits(struct xs_process *process, bool all);
/* A record of an event that was put into a stream. False: its call is not known (yet). */
bool xs_cuda_event(struct xs_cuda *cuda, const unsigned char *data, uint32_t size);
/* A record of a wait. False: its call is not known (yet). */
bool xs_cuda_waited(struct xs_process *process, const unsigned char *data, uint32_t size);

/* ---- cuda_streams.c ---- */

/* Work was put into that stream (context << 32 | stream) by a call of this tick: after a wait? */
void xs_cuda_follows(struct xs_process *process, uint64_t queue, uint64_t tick);
/* Tells the sinks of streams that have waited; all: of those, too, that were just followed. */
void xs_cuda_tell_streams(struct xs_process *process, bool all);

/* ---- cuda_metrics.c ---- */

/* Are kernels counted, so that those without times may get some here? */
bool xs_cuda_is_counted(const struct xs_process *process);
/*
 * A kernel has run. work: NULL: it was left out. timed: it was shown; else its times are its call's
 * and it is shown when the counter of its time is known.
 */
void xs_cuda_ran(struct xs_process *process, uint32_t correlation, const struct xs_work *work,
		 bool timed);
/* No more kernels will come: those that still have no times are counted. */
void xs_cuda_metrics_end(struct xs_process *process);
/* An XS_COUNTED record. */
void xs_cuda_counted(struct xs_process *process, const struct xs_event *event, uint32_t size);
/* Runs of kernels that were counted, and whose kernels are not in the trace. */
uint64_t xs_cuda_unjoined(const struct xs_process *process);
void xs_cuda_metrics_free(struct xs_cuda *cuda);

/* ---- cuda_calls.c ---- */

/* A piece of work has a record. Its call may not be known, or only later. */
void xs_cuda_ended(struct xs_cuda *cuda, uint32_t correlation, bool kernel);
/* An XS_ENQUEUED record. */
void xs_cuda_enqueued(struct xs_track *track, const struct xs_event *event, uint32_t size);
/* NULL: it is not known (yet). */
struct xs_cuda_call *xs_cuda_call_of(const struct xs_cuda *cuda, uint32_t correlation);
/* The application's own id for what the call puts on a device. */
void xs_cuda_external(struct xs_process *process, uint32_t correlation, uint8_t kind, uint64_t id);
/* A number that no other work of this process has, nor an order of streams. */
uint32_t xs_cuda_number(struct xs_process *process);
/* Of the process, made when it is first needed; NULL: no memory. */
struct xs_cuda *xs_cuda_of(struct xs_process *process);
/* A text that the traced process has interned for us. */
uint32_t xs_cuda_text(const struct xs_cuda *cuda, enum xs_activity_text text);
/* See struct xs_backend. */
struct xs_named xs_cuda_named(const struct xs_process *process,
			      const struct xs_device_record *record);
/* What is known of a pointer that records hold; 0: nothing. */
uint32_t xs_cuda_name_of(const struct xs_cuda *cuda, uint64_t pointer);

#endif
