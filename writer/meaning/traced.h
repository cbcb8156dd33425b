/*
 * A traced process as the drain process sees it: what all of its parts know of it. What one module
 * alone knows hangs on it as a pointer to a struct of that module.
 */
#ifndef XS_TRACED_H
#define XS_TRACED_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "run.h"
#include "shm.h"

#define XS_TITLE_MAX	 256u
#define XS_DEVICES	 64u
#define XS_SINKS_MAX	 16u
#define XS_KINDS_COUNTED 256u /* all that a record can say */

struct xs_open;
struct xs_output;
struct xs_sink;
struct xs_task;
struct xs_track;

struct xs_thread_stats {
	uint32_t tid, name; /* string id */
	uint64_t records, lost;
	uint32_t call; /* the call it was in at the end, as in struct xs_ring */
};

struct xs_mapped {
	void *map;
	uint64_t size;
	uint32_t slots, seen; /* rings in the file; those that are tracks already */
	uint64_t ring_size;   /* data bytes of each */
	void *kept;	      /* the drain process's file about it; NULL: none yet */
	uint64_t kept_size;
	bool kept_spoilt; /* --recover: there was another one, which nobody can believe */
	int error;	  /* why it cannot be mapped, -errno, if not for want of something */
	bool other;	  /* it is mapped, but not the one that the process made */
};

/*
 * Tables that ids from records fill are bounded. What found no room is counted, and told at the
 * end.
 */
enum xs_omit {
	XS_OMIT_NAMES,	  /* shown as "(too many names)" */
	XS_OMIT_TRACKS,	  /* records whose track is one for all that is too many */
	XS_OMIT_SLICES,	  /* more overlap than there are lanes for */
	XS_OMIT_TASKS,	  /* begun in more open ones than are kept */
	XS_OMIT_SPANS,	  /* begun or ended, and nothing was seen of their other half */
	XS_OMIT_REQUESTS, /* the same of MPI's */
	XS_OMIT_ARROWS,
	XS_OMIT_COUNT,
};

static inline const char *xs_omit_word(enum xs_omit what)
{
	static const char *const words[XS_OMIT_COUNT] = {
		[XS_OMIT_NAMES] = "names",	     [XS_OMIT_TRACKS] = "tracks",
		[XS_OMIT_SLICES] = "slices",	     [XS_OMIT_TASKS] = "tasks",
		[XS_OMIT_SPANS] = "unmatched_spans", [XS_OMIT_REQUESTS] = "requests",
		[XS_OMIT_ARROWS] = "arrows",
	};

	return words[what];
}

/* What the trace says of the process beside its events, by a constant: a text, or a number. */
struct xs_about {
	const char *key;
	uint32_t text; /* string id; 0: the number counts */
	uint64_t number;
};
#define XS_ABOUT_MAX 9u

/* Files of it that could not be read at the last look (drain/unread.h). */
struct xs_unread {
	uint32_t files;
	int error;		/* of the first one, -errno */
	bool want;		/* of one at least: there was no memory or no descriptor */
	char name[XS_NAME_MAX]; /* of the first one */
};

enum xs_end {
	XS_END_EXITED,
	XS_END_KILLED,
	XS_END_EXEC,
	XS_END_UNKNOWN,
	XS_END_STOPPED,
	XS_END_RUNNING
};

struct xs_process {
	struct xs_process *next;
	struct xs_run *run;
	struct xs_process_file *file; /* it is the process's own: what counts is copied */
	/* ours; NULL: there was no memory, or (flight recorder) there is no ring yet */
	struct xs_kept_file *kept;
	uint64_t turn; /* of the newest commit */
	char name[XS_NAME_MAX];
	uint32_t serial;
	int32_t pid, ppid;
	int32_t watched; /* pid here: the process may be in another PID namespace; 0: not found */
	uint64_t pid_namespace, identity, join_tick; /* as it says */
	/* the trace's ns = CLOCK_MONOTONIC of the process + this */
	int64_t mono_offset;
	uint64_t launch_ns; /* of the launcher, before it; 0: it did not start this process */
	/*
	 * start time of the pid's process, for xs_process_alive(); UINT64_MAX: it was gone before
	 * we looked
	 */
	uint64_t start;
	int pidfd;
	bool exec; /* a later image of the same pid has joined */
	/* loop.h: of the reading of the directory that began after its end was seen; 0: not seen */
	uint64_t look;
	bool image_waits; /* somebody of this pid has joined later, and is not adopted yet */
	bool over;	  /* it has ended: who goes on filling its rings is not helped */
	/* as from waitpid(), where it was looked at before the backlog was written */
	bool has_status;
	int wait_status;
	struct xs_mapped first, *segments;
	uint32_t segment_count; /* as it says, also those that are not mapped */
	struct xs_unread unread;
	struct xs_track **tracks;
	uint32_t track_count, track_room;
	struct xs_thread_stats *threads;
	uint32_t thread_count, thread_room;
	struct xs_named_thread *named_threads; /* threads.c; NULL: none yet */
	bool unwritten;	       /* its file took no more, and `lost` is the least that can be */
	bool again;	       /* --recover: likewise, so its files stay for another one */
	int no_backlog;	       /* --recover: -errno, for want of what records there are missing */
	uint64_t untimed_here; /* commands that have a record, and no times of their own */
	uint64_t events, lost, untimed, unmeasured, unsampled, unmatched, corrupt, threads_omitted;
	/* left out: what the program or a driver has told of their times cannot be */
	uint64_t impossible;
	uint64_t excluded;		  /* calls, by --exclude-calls */
	uint64_t kinds[XS_KINDS_COUNTED]; /* records by kind; of tasks XS_BEGIN counts both */
	/*
	 * at the end: on their way to a device or back; MPI's, started and not complete; between
	 * ids of which one has no slice
	 */
	uint64_t open_commands, open_requests, open_relations;
	uint64_t omitted[XS_OMIT_COUNT];
	uint64_t horizon; /* nothing can have happened behind it */
	uint64_t last_ns; /* latest end of device work; at the end: of anything */
	uint64_t host_ns; /* run time of the process, once it has ended */
	char comm[16];
	char *arguments; /* title.c: its argv when it joined, a NUL behind each; NULL: not known */
	uint32_t arguments_length;
	char title[XS_TITLE_MAX];	 /* empty: not looked at yet */
	uint64_t title_next, title_wait; /* CLOCK_MONOTONIC: when to look again */
	/* those that are open, and the state of each by its number (NULL: it is not open) */
	const struct xs_sink *open_sinks[XS_SINKS_MAX];
	uint32_t open_count;
	void *sink[XS_SINKS_MAX];
	bool awaits_event; /* there are sinks that are opened with the first one */
	bool no_memory;	   /* they could not be, at one event at least */
	/* of tasks that have nothing but a name: of the sink that wants them, or of all */
	void (*plain_tasks)(struct xs_track *track, const struct xs_task *tasks, uint32_t count);
	/* writes out what is buffered, so that the rings' room goes back to the producers */
	void (*commit)(struct xs_process *process);
	/* the file that --recover completes, which a sink has open; NULL: none (yet) */
	struct xs_output *out;
	struct xs_names *names;
	uint64_t passes;    /* over the rings, after each of which all that had to wait is told */
	uint64_t pass_tick; /* all that was written by then is read when this pass over the rings is
			       over */
	struct xs_keyed *keyed;		       /* spans.c: open spans, and ends that came first */
	struct xs_extras *extras;	       /* itt.c */
	struct xs_own_clocks *own_clocks;      /* own_clock.c */
	struct xs_device_clock *device_clocks; /* device_clock.c */
	struct xs_requests *requests;	       /* mpi.c */
	struct xs_cuda *cuda;		       /* cuda.c */
	struct xs_about about[XS_ABOUT_MAX];   /* what backends have told of it */
	uint32_t about_count;
	struct xs_reports *reports; /* report.c: those that are open; NULL: none */
	char *directory;	    /* --result-dir: of its files; NULL: not made yet */
	bool needs_no_list;	    /* of its events, which only the program itself reads */
	char *trace_path;	    /* --on-demand: where its trace is to be; NULL: as usual */
	char *trace_id;	      /* --on-demand: as dynolog calls it; NULL: as the run is called */
	uint64_t trace_types; /* --on-demand: a bit for each type of activity; 0: all */
	bool log_calls;	      /* records are read in the order of their times: calls.c */
	bool cut;	      /* its file was, by itself */
	bool not_kept;	      /* --recover: nothing is known of what was read */
	unsigned faults;      /* xs_faults() when that was looked at */
	/* flight recorder */
	uint64_t history_cut; /* tick; records before it had to go for want of memory */
	enum xs_end end;
	int status;
	uint64_t end_tick;	      /* 0: it runs */
	void *copy;		      /* of what was in shared memory */
	struct xs_kept_stack *stacks; /* where threads were, oldest first (where_kept.c) */
	size_t stacks_bytes;
};

/* Is it the process that has this pid here? In another PID namespace there are the same numbers. */
static inline bool xs_process_is(const struct xs_process *process, int32_t pid)
{
	return pid && process->watched == pid;
}

/* Is it one of the run's own programs, which sample? They are none of the application's. */
static inline bool xs_process_samples(const struct xs_process *process)
{
	const struct xs_control *control = process->run->control;

	return xs_process_is(process, control->sampler_pid) ||
	       xs_process_is(process, control->metrics_pid) ||
	       xs_process_is(process, control->processors_pid);
}

/* Of the job: as MPI says, else the process's environment; -1: unknown. */
static inline int32_t xs_process_rank(const struct xs_process *process)
{
	/* any number */
	int32_t told = atomic_load_explicit(&process->file->rank_told, memory_order_acquire);

	return told > 0 ? told - 1 : -1;
}

static inline void xs_process_tell(struct xs_process *process, struct xs_about about)
{
	if (process->about_count < XS_ABOUT_MAX)
		process->about[process->about_count++] = about;
}

static inline uint64_t xs_process_ns(const struct xs_process *process, uint64_t tick)
{
	return xs_timeline_ns(&process->run->clock, tick);
}

#endif
