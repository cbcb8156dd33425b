/*
 * What a sink is given: what records mean, made once and told to each sink that is open for the
 * process (sinks.h has the table of them). Times are ns of the trace (since run->base), names are
 * ids (names.h): a sink knows no ring and no API.
 *
 * A sink has those of the functions that it needs; the others are NULL. Its state for a process is
 * process->sink[number], that for a track track->sink[number], of track_size zeroed bytes.
 */
#ifndef XS_SINK_H
#define XS_SINK_H

#include "device_record.h"
#include "mpi_record.h"
#include "plain.h"
#include "task_record.h"
#include "traced.h"
#include "track.h"

struct xs_looked; /* counted.h */

#define XS_SPAN_TASK XS_SPAN_COUNT

/* A task, frame, region, … that the application has described. */
struct xs_slice {
	const struct xs_open *task; /* where it begins, its name and arguments */
	uint64_t end;
	struct xs_track *track; /* its thread's; NULL: it belongs to none */
	uint8_t kind;		/* enum xs_span, or XS_SPAN_TASK */
	uint32_t row;		/* of a task: string id of the track it goes to; 0: its thread's */
	bool displaced;		/* it crosses others of the thread */
	bool unfinished;	/* nobody has ended it */
};

/* Something without duration. */
struct xs_mark {
	uint32_t tid, name;
	bool metadata; /* arguments of nothing that is open, of the domain `name` */
	uint64_t ns;
	uint8_t scope;		      /* enum xs_scope */
	const struct xs_id *id;	      /* that the application gave it; NULL: none */
	const struct xs_id *within;   /* of the open task that it lies in; NULL: none, or no id */
	const struct xs_extra *extra; /* its arguments; NULL: none */
};

/* A call's argument words, and what they pointed to; with -c alone. */
struct xs_given {
	uint64_t start; /* of the call */
	const uint64_t *words;
	uint32_t count;
	/* NULL: not known (yet), or there are none */
	const struct xs_values_record *values;
	bool complete; /* all that is known of what was given was known when the call began */
	bool begun;    /* its beginning was seen; else `values` alone counts */
};

/* Where a call was made. */
struct xs_callers {
	uint64_t tick;
	uint32_t count; /* 0: not known, or taken */
	bool cut;
	uint64_t frames[XS_STACK_DEPTH_MAX]; /* innermost first; as in xs_stack_record */
};

struct xs_call {
	const struct xs_event *event; /* source, flags; name: the function's number */
	uint32_t name;		      /* the function's, as an id */
	int64_t result;
	uint64_t start, end;
	bool unfinished;	      /* it did not return, or recording ended before it did */
	const struct xs_given *given; /* NULL: not recorded */
	struct xs_callers *callers;   /* NULL: not known; xs_stacks_text() */
};

/* What is known of something, by a constant; NULL: a further value of the fact before. */
struct xs_fact {
	const char *key;
	uint64_t value;
};
#define XS_FACTS_MAX 24u /* of one thing */

/* What the program calls that on which work runs: string ids; 0: it has not said. */
struct xs_named {
	uint32_t device, context, queue;
	uint64_t uuid[2]; /* of the device, however the program numbers it; both 0: not known */
};

/* Finished device work. */
struct xs_work {
	const struct xs_device_record *record;
	uint64_t host_start, host_end, queued, submit, start, end;
	uint64_t queue;	       /* of its source, to which it was given */
	const uint64_t *shape; /* global[3], local[3], or NULL */
	bool linked;	       /* the enqueuing call is in the trace: nothing was lost so far */
	const struct xs_fact *facts;
	uint32_t fact_count;
	struct xs_named named;
};

/* What the hardware has counted of work. */
struct xs_metrics {
	const struct xs_work *work;
	uint32_t columns; /* string id of the text below: the same number, the same metrics */
	const char *group;
	size_t group_length;
	const char *names; /* of the metrics, with units; '\n' between them */
	size_t names_length;
	uint32_t count; /* as many names and values */
	uint32_t part;	/* of those that the device reports of one run, from 0 */
	const uint64_t *value;
	const uint8_t *type; /* enum xs_value_type: U64, FLOAT, DOUBLE; else there is no value */
};

/* A thread's part of one run of a parallel region. */
struct xs_team {
	uint32_t name;	     /* the region's */
	uint64_t region;     /* which run of it, in the process */
	uint64_t start, end; /* the thread has arrived at the region's end */
	uint64_t waited;     /* of that, inside the region */
	uint32_t index, size;
	/*
	 * it has told before, and has done more in tasks while it waited there: ns of work told
	 */
	bool more;
	uint64_t told;
	bool paused; /* recording was off in between: when the thread waited is not known */
};

/* What a device or its library does beside work that calls have put there. */
struct xs_aside {
	uint32_t row, name; /* string ids: of the track, of what it is */
	uint64_t start, end;
	const struct xs_fact *facts;
	uint32_t fact_count;
};

/* An activity that the program has described itself. */
struct xs_activity {
	const struct xs_activity_record *record;
	uint64_t start, end;	   /* equal: it has no duration */
	const unsigned char *args; /* struct xs_arg …: xs_args_next() */
	uint32_t length;	   /* of those */
};

/* A call has waited for commands of a queue. */
struct xs_wait {
	uint8_t source, kind; /* enum xs_source, enum xs_waited */
	bool whole;	      /* for all queues whose numbers have the upper half of `queue` */
	bool unknown;	      /* whole: for what of these, by `until`, is not known any more */
	uint32_t tid;	      /* of the call's thread */
	uint64_t queue;	      /* as in struct xs_work */
	uint64_t until;	      /* as in struct xs_waited_record */
	uint64_t start, end;  /* of the call */
};

/*
 * Work of one queue was told to wait for that of another; told when that has come. Ticks are those
 * of the calls.
 */
struct xs_order {
	uint8_t source;
	uint32_t number;      /* of its own */
	uint64_t from, until; /* for what was put into this queue by then, … */
	uint64_t to, after;   /* … what was put into this one later */
};

struct xs_mpi_call {
	const struct xs_event *event;
	uint32_t name; /* as an id */
	uint64_t start, end;
	uint32_t words; /* those that there are: bits of enum xs_mpi_word */
	const uint64_t *word;
	int32_t result;		 /* of a call that failed */
	uint32_t error;		 /* of one: enum xs_mpi_error */
	uint64_t request;	 /* number of its request; 0: none, or not known */
	const uint64_t *started; /* numbers of those that it has started */
	uint32_t started_count;
	bool unfinished;
};

/* The work of an MPI request, from the call that started it to the one that saw it complete. */
struct xs_mpi_work {
	uint32_t name; /* of the function that started it, as an id */
	uint64_t start, end;
	uint32_t words;
	const uint64_t *word;
	uint64_t number;
	uint32_t started_by, ended_by; /* threads; 0: not known */
	bool cancelled, unfinished;
};

struct xs_sink {
	bool (*wanted)(const struct xs_run *run);
	/*
	 * Makes the state; false: it cannot be. When the process is found, or at its first event:
	 * then a process that shows nothing makes no file.
	 */
	bool (*open)(struct xs_process *process);
	bool at_first_event;
	size_t track_size;
	/* The track is another thread's (track->tid) from here on; first of all, when it is there.
	 */
	void (*enter)(struct xs_track *track);
	/* The thread is done with the track, or the process is. */
	void (*leave)(struct xs_track *track, uint64_t ns);
	/* What a thread is called; the last one counts. */
	void (*thread)(struct xs_process *process, uint32_t tid, const char *name, size_t length);
	/*
	 * Spans that have nothing but a name, on their thread's own track: the hottest of all. Does
	 * the sink want them (NULL: yes)?
	 */
	bool (*wants_tasks)(const struct xs_run *run);
	void (*tasks)(struct xs_track *track, const struct xs_task *tasks, uint32_t count);
	void (*slice)(struct xs_process *process, const struct xs_slice *slice);
	void (*mark)(struct xs_process *process, const struct xs_mark *mark);
	void (*counter)(struct xs_process *process, const struct xs_counter_record *record,
			uint64_t ns);
	/* An arrow between two spans that have these ids, or will have. name: a constant. */
	void (*flow)(struct xs_process *process, const char *name, const struct xs_id *from,
		     const struct xs_id *to);
	void (*call_begin)(struct xs_track *track, const struct xs_event *event,
			   const struct xs_given *given);
	void (*call)(struct xs_track *track, const struct xs_call *call);
	/* The call that the thread was in when the process ended. */
	void (*call_unfinished)(struct xs_track *track, const struct xs_call *call);
	/* A call whose beginning was told, and whose end is lost; with -c alone. */
	void (*call_left)(struct xs_track *track, const struct xs_event *event, uint64_t start,
			  uint64_t end);
	void (*work)(struct xs_process *process, const struct xs_work *work);
	void (*metrics)(struct xs_process *process, const struct xs_metrics *metrics);
	/* What a device has counted in a period that begins at work->start: of no work. */
	void (*sample)(struct xs_process *process, const struct xs_metrics *sample);
	/* What processors have counted of the application so far; times only rise. */
	void (*looked)(struct xs_process *process, const struct xs_looked *looked);
	/*
	 * How often warps were found at this address of a kernel (work->record's name, device and
	 * source), by reason: `value` alone, no types.
	 */
	void (*stalled)(struct xs_process *process, const struct xs_metrics *counts,
			uint64_t address);
	void (*aside)(struct xs_process *process, const struct xs_aside *aside);
	void (*activity)(struct xs_track *track, const struct xs_activity *activity);
	/* Something is known of the whole trace: text, or JSON that is valid. */
	void (*about)(struct xs_process *process, uint32_t key, const char *text, size_t length,
		      bool json);
	void (*wait)(struct xs_process *process, const struct xs_wait *wait);
	void (*order)(struct xs_process *process, const struct xs_order *order);
	void (*kernel)(struct xs_process *process, const struct xs_kernel_record *kernel);
	/* Where it lies on its device: samples of instructions belong to it. */
	void (*place)(struct xs_process *process, const struct xs_kernel_place_record *place);
	void (*device_used)(struct xs_process *process, const struct xs_event *event);
	void (*team)(struct xs_process *process, const struct xs_team *team);
	/* So many further calls of a function, which took so long together. */
	void (*called)(struct xs_process *process, uint32_t name, uint64_t calls, uint64_t ns);
	void (*mpi_call)(struct xs_track *track, const struct xs_mpi_call *call);
	void (*mpi_work)(struct xs_process *process, const struct xs_mpi_work *work);
	void (*communicator)(struct xs_track *track, const struct xs_mpi_member_record *record);
	/* What was read so far is to reach its file. */
	void (*flush)(struct xs_process *process);
	/* The process has ended. True: it has shown something. The state goes. */
	bool (*close)(struct xs_process *process, enum xs_end end, int status);
	/* What the state of a track holds goes; not the state. */
	void (*drop_track)(struct xs_track *track);
	/* Instead of close(): nobody wants it any more. */
	void (*drop)(struct xs_process *process);
};

/* Tells each open sink that has the function. */
#define XS_TELL_SINKS(process, function, ...)                                 \
	do {                                                                  \
		const struct xs_process *told_ = (process);                   \
		for (uint32_t i_ = 0; i_ < told_->open_count; i_++)           \
			if (told_->open_sinks[i_]->function)                  \
				told_->open_sinks[i_]->function(__VA_ARGS__); \
	} while (0)

#endif
