/*
 * The drain process's view: the run, its processes, the tracks (rings) of each, and what sinks are
 * given.
 *
 * drain.c looks for work, records.c reads and knows what records mean together, sinks (chrome.c,
 * summary.c) write, process.c commits.
 */
#ifndef XS_WRITER_H
#define XS_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "output.h"
#include "record.h"
#include "shm.h"
#include "strtab.h"

#define XS_FILTERED 256u /* kernels whose answer is remembered */

struct xs_run {
	char dir[PATH_MAX];
	int directory;		    /* the same, opened: its files are found by it alone */
	struct xs_control *control; /* the launcher's and ours */
	struct xs_mailbox *mailbox; /* every traced process can write there */
	const struct xs_options *options;
	struct xs_options copied_options;
	char run_id[sizeof(((struct xs_control *)0)->run_id)];
	int32_t rank; /* -1: unknown */
	char command[sizeof(((struct xs_control *)0)->command)];
	uint32_t command_length; /* bytes of `command` */
	char arguments[sizeof(((struct xs_control *)0)->arguments)];
	char variable[XS_ENV_RUN_MAX]; /* the value of XS_ENV_RUN in its processes */
	int32_t launcher_pid, app_pid; /* 0: not yet known */
	bool app_not_traced;	       /* the launcher has said why already */
	int channel;		       /* our end, to the launcher; -1: recovering */
	bool use_tsc;
	const struct xs_strings *strings;
	uint64_t strings_size;
	struct xs_timeline clock, raw; /* of ticks, of CLOCK_MONOTONIC_RAW */
	/* ns since the epoch that the traces' times count from: the start of the run's day */
	uint64_t base;
	char host[64];
	uint64_t descriptors; /* how many may be open; 0: unknown */
	int64_t date_offset;  /* of CLOCK_REALTIME to CLOCK_BOOTTIME, the least seen */
	bool recovering;
	/* recovering: a trace is not the file that was being written; a line has said so */
	bool refused;
	bool disk_error_told;
	bool wrote_something;	    /* a trace or report, of any process */
	struct xs_symbols *symbols; /* symbols.c; NULL: none yet */
	/* demangle.c: kernels' name ids << 1 | wanted, by their last bits */
	uint32_t filtered[XS_FILTERED];
	/* names.c: copies of the strings that were asked for; NULL: none yet */
	struct xs_texts *texts;
	struct xs_flight *flight; /* NULL: records become text as they are read */
};

/* May the descriptor be kept? A few are held back, for looking into the run directory and /proc. */
static inline bool xs_run_can_spare(const struct xs_run *run, int fd)
{
	return !run->descriptors || (uint64_t)fd + 4 < run->descriptors;
}

/* A name as the sinks need it; made once per name and run. */
struct xs_name {
	uint32_t id;	 /* key: string id, or source << 24 | function | XS_NAME_FUNCTION */
	uint32_t scope;	 /* of an ITT task: its domain's id */
	uint32_t length; /* of the JSON text; 0: too long to keep */
	/* ,"cat":"cpu_op","name":"…"},\n with XS_NAME_SLACK readable bytes behind its beginning */
	char *json;
};
#define XS_NAME_FUNCTION 0x80000000u
#define XS_NAME_SLACK	 128u
#define XS_NAMES_HOT	 64u

struct xs_names {
	struct xs_name *table;
	uint32_t size, count; /* size: power of two */
	size_t bytes;
	const struct xs_name *hot[XS_NAMES_HOT]; /* by the last bits of their ids; NULL: none */
};

/* The key of an argument as JSON, as it comes again and again. */
struct xs_key {
	uint32_t id; /* string id; 0: free */
	uint32_t length;
	char json[120]; /* "key":[ */
};
#define XS_KEYS 32u /* those that are remembered, by their ids' last bits */

/* A time by a clock of the application's: struct xs_own_time_record. */
struct xs_own_time {
	uint64_t tick, ns; /* tick 0: none */
	uint32_t clock;
	uint8_t placed; /* by what; 0: not at all */
};

/*
 * One argument in the JSON text of a slice's arguments: where its key begins, with "key":[, and
 * where the values end.
 */
struct xs_member {
	uint32_t at, key_length, end;
};

/* What few tasks have. */
struct xs_extra {
	struct xs_extra *next; /* unused ones */
	struct xs_id id;
	/* of this very slice, for arrows: the application's ids may come again; 0: none */
	uint64_t self;
	char *args; /* "key":[values],… */
	uint32_t length, room;
	struct xs_member *members; /* of args, in their order */
	uint32_t member_count, member_room;
	bool cut; /* there were more arguments than are kept */
	/* it began before something that is shown already: not on the thread's own track */
	bool displaced;
	bool cancelled; /* a wait */
	bool unplaced;	/* where it lies is arbitrary, not how long it is */
	struct xs_own_time began;
};

struct xs_open {
	uint64_t start;
	struct xs_extra *extra; /* NULL: nothing */
	uint32_t row;		/* string id of the track it is shown on; 0: its thread's */
	struct xs_name name;
};

/* A slice that is written: where, for flows. */
struct xs_place {
	uint32_t tid;
	uint64_t start;
};

struct xs_interval {
	uint64_t start, end;
};

/*
 * One row of slices that do not overlap. What is put there need not come in order of time, so it is
 * remembered.
 */
struct xs_lane {
	uint32_t tid;
	uint32_t count, room;
	struct xs_interval *taken; /* by start */
	uint64_t forgotten;	   /* nothing is known about what lies before it */
	uint64_t latest;	   /* end of all of them: what begins later crosses nothing */
};

struct xs_lanes {
	struct xs_lane *lane;
	uint32_t count;
	/* a time at which every lane is taken, once there can be no more lanes; 0: none is known */
	uint64_t crowded;
};

struct xs_thread_stats {
	uint32_t tid, name; /* string id */
	uint64_t records, lost;
	uint32_t call; /* the call it was in at the end, as in struct xs_ring */
};

/* The flight recorder's memory of one ring (flight.c). */
struct xs_history {
	struct xs_chunk *oldest, *newest;
	struct xs_track *next, **link; /* of all tracks that have chunks */
	struct xs_chunk *at;	       /* a dump has come so far */
	uint32_t offset;
};

/* One ring: a sequence of threads' records. */
#define XS_STARTED_MAX 64u
struct xs_track {
	struct xs_process *process;
	struct xs_ring *ring;
	struct xs_kept_ring *kept;
	const unsigned char *data;
	uint64_t pos;  /* consumed; committed with the output that holds it */
	uint64_t head; /* where the records end that are being read */
	uint64_t records, lost_base;
	uint32_t tid, thread; /* thread: index in process->threads */
	bool dirty;	      /* consumed since the last commit */
	uint64_t odd_head;    /* the last one that could not be; 0: none */
	/* tick: a record from there on is looked at more closely, for the next two */
	uint64_t look_at;
	uint64_t latest; /* tick: what says to be later is spoilt */
	/* tick: a record from there on shows that a time of not recording is over */
	uint64_t cut_at;
	uint64_t cut_to;  /* tick: the end of the last such time that is behind the track */
	uint32_t cuts[2]; /* how many are: of the run's, of the process's */
	uint64_t last_ns; /* of the last begin or end */
	uint64_t call_tick, call_start, call_end; /* the last call; waits.c */
	uint32_t depth, room;
	struct xs_open *open;
	char prefix[64]; /* {"ph":"X","tid":T,"pid":P,"ts": */
	uint32_t prefix_length;
	struct xs_lanes crossing;    /* tasks that end out of order */
	struct xs_lanes unplaced;    /* those of clocks that cannot be placed */
	struct xs_own_time own_time; /* of the next record, if that has this tick */
	struct xs_arrow *arrows;     /* arrows.c: they wait for the calls that they start from */
	/* those that wait, and for how many there is room */
	uint32_t arrow_first, arrow_end, arrow_room;
	struct keyed *bare;	/* itt.c: the newest open span without an id; NULL: none */
	uint32_t row;		/* string id of the track that tasks go to; 0: the thread's own */
	struct xs_calls *calls; /* call_log.c: the calls that the thread is in; NULL: none yet */
	struct xs_pending *pending; /* stacks.c; NULL: none yet */
	/* mpi.c: numbers of the requests that a call started whose record is still to come */
	uint64_t started[XS_STARTED_MAX];
	uint64_t started_tick; /* when it began */
	uint32_t started_count;
	struct xs_history history; /* the track's state is that before these records */
};

struct xs_mapped {
	void *map;
	uint64_t size;
	uint32_t slots, seen; /* rings in the file; those that are tracks already */
	void *kept;	      /* the drain process's file about it; NULL: none yet */
	uint64_t kept_size;
};

/* device_clock.c */
struct xs_device_clock {
	/* one that tells ns */
	bool known;
	int candidate;	/* enum in device_clock.c */
	int64_t offset; /* unknown clock: result = device ns + offset */
	/* one that counts */
	uint32_t looks, bits, kernel_bits; /* looks: at it so far */
	uint64_t nominal;		   /* ns of a tick, 32 fraction bits */
	uint64_t first_tick, first_ns, first_width;
	struct xs_segment *segments;
	size_t count, room;
};

#define XS_DEVICES   64u
#define XS_TITLE_MAX 256u

/*
 * Tables that ids from records fill are bounded. What found no room is counted, and told at the
 * end.
 */
enum xs_omit {
	XS_OMIT_NAMES,	  /* shown as "(too many names)" */
	XS_OMIT_TRACKS,	  /* records whose track is one for all that is too many */
	XS_OMIT_SLICES,	  /* more overlap than there are lanes for */
	XS_OMIT_SPANS,	  /* begun or ended, and nothing was seen of their other half */
	XS_OMIT_REQUESTS, /* the same of MPI's */
	XS_OMIT_ARROWS,
	XS_OMIT_COUNT,
};
extern const char *const xs_omit_words[XS_OMIT_COUNT]; /* process.c */

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
	char name[XS_NAME_MAX];
	uint32_t serial;
	int32_t pid, ppid;
	int32_t watched; /* pid here, if the process is in another PID namespace */
	/* as it says; told_start: in its own time namespace */
	uint64_t pid_namespace, join_tick, told_start;
	/*
	 * start time of the pid's process, for xs_process_alive(); UINT64_MAX: it was gone before
	 * we looked
	 */
	uint64_t start;
	int pidfd;
	bool exec; /* a later image of the same pid has joined */
	struct xs_mapped first, *segments;
	uint32_t segment_count;
	uint64_t ring_size;
	struct xs_track **tracks;
	uint32_t track_count, track_room;
	struct xs_thread_stats *threads;
	uint32_t thread_count, thread_room;
	uint64_t events, lost, untimed, unmatched, corrupt, threads_omitted;
	/* at the end: on their way to a device or back; MPI's, started and not complete */
	uint64_t open_commands, open_requests;
	uint64_t omitted[XS_OMIT_COUNT];
	uint64_t horizon; /* nothing can have happened behind it */
	uint64_t last_ns; /* latest end of device work; at the end: of anything */
	uint64_t host_ns; /* run time of the process, once it has ended */
	struct xs_device_clock device_clock[XS_DEVICES];
	char comm[16];
	char *arguments; /* title.c: its argv when it joined, a NUL behind each; NULL: not known */
	uint32_t arguments_length;
	char title[XS_TITLE_MAX];	 /* empty: not looked at yet */
	uint64_t title_next, title_wait; /* CLOCK_MONOTONIC: when to look again */
	struct xs_names names;
	struct {
		bool known;
		uint64_t zero;	    /* ns in the trace */
	} own_clock[XS_OWN_CLOCKS]; /* itt.c: where the application's clocks are shown that cannot
				       be placed */
	/* itt.c: spans that are open, and ends that came first; NULL: none yet */
	struct xs_keyed *keyed;
	struct xs_flows *flows;		/* flows.c */
	struct xs_waits *waits;		/* waits.c */
	struct xs_requests *requests;	/* mpi.c */
	struct xs_cuda *cuda;		/* cuda.c; NULL: none is used */
	struct xs_mpi_texts *mpi_texts; /* mpi_words.c */
	struct xs_extra *spare;		/* unused ones */
	struct xs_key keys[XS_KEYS];
	uint64_t selves;	    /* given out so far, see struct xs_extra */
	uint64_t args_bytes;	    /* room of all extras' arguments */
	struct xs_chrome *chrome;   /* NULL: not wanted, or no event yet */
	struct xs_output *out;	    /* chrome's */
	struct xs_summary *summary; /* NULL: not wanted */
	/* timeline.c: lines that are not in order yet; NULL: none */
	struct xs_timeline_lines *timeline;
	char *directory;	    /* --result-dir: of its files; NULL: not made yet */
	struct xs_stacks *stacks;   /* stacks.c; NULL: none yet */
	struct xs_reports *reports; /* report.c: those that are open; NULL: none */
	bool log_calls;		    /* -c */
	struct xs_handles *handles; /* call_log.c; NULL: none has a name yet */
	bool cut;		    /* its file was, by itself */
	unsigned faults;	    /* xs_faults() when that was looked at */
	bool watch_tasks;	    /* the summary has tasks too: no task is plain */
	/* flight recorder */
	uint64_t history_cut; /* tick; records before it had to go for want of memory */
	enum xs_end end;
	int status;
	uint64_t end_tick; /* 0: it runs */
	void *copy;	   /* of what was in shared memory */
};

#define XS_MORE_MAX 1024u
/* Finished device work, in ns of the trace (since run->base). */
struct xs_work {
	const struct xs_device_record *record;
	uint64_t host_start, host_end, queued, submit, start, end;
	const uint64_t *shape; /* global[3], local[3], or NULL */
	bool linked;	       /* the enqueuing call is in the trace: nothing was lost so far */
	const char *more; /* JSON members (",\"key\":…"), at most XS_MORE_MAX bytes; NULL: none */
};

/* Of the job: as MPI says, else the process's environment; -1: unknown. */
static inline int32_t xs_process_rank(const struct xs_process *process)
{
	/* any number */
	int32_t told = atomic_load_explicit(&process->file->rank_told, memory_order_acquire);

	return told > 0 ? told - 1 : -1;
}

/* ---- adopt.c ---- */

/* Maps a process's file; NULL when it is not ready (errno EAGAIN) or no such file can be used. */
struct xs_process *xs_process_adopt(struct xs_run *run, const char *name);
/* Rings that threads took since the last look. */
void xs_process_find_tracks(struct xs_process *process);
/* A ring changes over to the state that was prepared. */
void xs_track_settle(struct xs_kept_ring *kept);

/* ---- title.c ---- */

/* As it was when the process joined; `arguments` may change meanwhile. */
void xs_title_first(struct xs_process *process, const char *arguments, uint32_t length);
/* Looks what the process is called now, if it is time. */
void xs_title_look(struct xs_process *process);
/* One plain line, never empty. */
const char *xs_title_of(struct xs_process *process);
/* How many of at most `most` bytes of UTF-8 are whole characters. */
size_t xs_title_cut(const char *text, size_t length, size_t most);

/* ---- records.c ---- */

static inline uint64_t xs_process_ns(const struct xs_process *process, uint64_t tick)
{
	return xs_timeline_ns(&process->run->clock, tick);
}

/* Finished device work whose times are known: to all sinks. */
void xs_work_show(struct xs_process *process, struct xs_work *work);
/* How much the ring holds by now: track->head. */
void xs_track_begin(struct xs_track *track);
/* Reads up to there, but not much more than `most` bytes; returns how many. */
uint64_t xs_track_read(struct xs_track *track, uint64_t most);
/* One record, while track->pos is not there yet. */
void xs_track_next(struct xs_track *track);
/* Records in memory of our own, known to be whole, through the dispatch. */
void xs_track_records(struct xs_track *track, const unsigned char *data, uint32_t length);
/* The ring is another thread's from here on: counts of its own. */
void xs_track_stats(struct xs_track *track, uint32_t tid, uint32_t name);
/* The thread is done with the ring, or the process is. lost: the ring's count. */
void xs_track_close_stats(struct xs_track *track, uint64_t lost);
/* The innermost `count` open tasks end there, though nobody ended them. */
void xs_track_close(struct xs_track *track, uint32_t count, uint64_t end);
/* Opens a task; NULL: too deep, or no memory. */
struct xs_open *xs_track_open(struct xs_track *track, uint64_t start, uint32_t name);
/*
 * The lowest open task that is looked at for one that is not the innermost. A program may leave any
 * number open in one domain and end those of another, and each end must not cost a walk over all of
 * them.
 */
#define XS_SEARCH_MAX 1024u
static inline uint32_t xs_track_lowest(const struct xs_track *track)
{
	return track->depth > XS_SEARCH_MAX ? track->depth - XS_SEARCH_MAX : 0;
}
/* Takes the open task number `at` out of the stack. */
void xs_track_take(struct xs_track *track, uint32_t at);

/* ---- pauses.c ---- */

/*
 * Are there pauses that the track is not past? To be asked after the ring's head was read: who
 * wrote behind a pause had seen its end.
 */
void xs_track_look_for_pauses(struct xs_track *track);
/* A record of that tick is next: ends what was open at the pauses before it. */
void xs_track_cut(struct xs_track *track, uint64_t tick) __attribute__((cold));
/* The process has ended: the same for all pauses, also for one that has not ended. */
void xs_track_cut_last(struct xs_track *track);
/* When recording went off for the first time after that tick; UINT64_MAX: it did not. */
uint64_t xs_process_paused_after(const struct xs_process *process, uint64_t tick);
/*
 * For a record that is written at its end, of something that began at `tick` and took `duration`:
 * when it is to end in the trace if recording was off in between, so that it stays inside the tasks
 * around it; else UINT64_MAX.
 */
uint64_t xs_track_cut_short(struct xs_track *track, uint64_t tick, uint64_t duration);

/* ---- process.c ---- */

/*
 * Reads what its rings hold; returns the bytes read. all: to the very end (the process writes no
 * more).
 */
uint64_t xs_process_read(struct xs_process *process, bool all);
/* Writes out what is buffered and gives the rings' room back. */
void xs_process_commit(struct xs_process *process);
/* Is a producer waiting, or a step of a ring filled? Then the drain process must not sleep. */
bool xs_process_urgent(const struct xs_process *process);
/*
 * After the last read: open tasks, calls in flight, the sinks' ends. Unmaps and removes its files.
 */
void xs_process_finish(struct xs_process *process, enum xs_end end, int status);

/* What is needed of the process's files is copied, then they are unmapped. 0 or -errno. */
int xs_process_detach(struct xs_process *process);
/*
 * Flight recorder, instead of xs_process_finish(): the process has ended, its history may still be
 * asked for. False: there is none.
 */
bool xs_process_retire(struct xs_process *process, enum xs_end end, int status);
/*
 * Flight recorder, in the process that writes a dump: a trace of the history. False: there is none.
 */
bool xs_process_dump(struct xs_process *process);
void xs_process_free(struct xs_process *process);

void xs_tell_write_error(struct xs_run *run, int error);

/* ---- device_clock.c ---- */

/* What the traced process has told of its devices' clocks since the last call. */
void xs_device_clocks_update(struct xs_process *process);
/*
 * Sets queued, submit, start, end; host_start and host_end are set. False: nothing is known of the
 * device's clock.
 */
bool xs_device_times(struct xs_process *process, struct xs_work *work);
void xs_device_clocks_fini(struct xs_process *process);

/* ---- names.c ---- */

/*
 * The name behind a string id or function number; valid until the next call for the same process.
 */
const struct xs_name *xs_name_find(struct xs_process *process, uint32_t id);
static inline const struct xs_name *xs_name_of(struct xs_process *process, uint32_t id)
{
	const struct xs_name *hot = process->names.hot[id % XS_NAMES_HOT];

	return __builtin_expect(hot && hot->id == id, 1) ? hot : xs_name_find(process, id);
}
/* A string of the run: our own copy, the same whenever it is asked for. */
struct xs_text {
	const char *text;
	uint32_t length, scope;
};
struct xs_text xs_text_find(struct xs_run *run, uint32_t id);
void xs_texts_fini(struct xs_run *run);
/* The text of a name or a function; it stays as long as the run. */
const char *xs_text_of(struct xs_run *run, uint32_t id, size_t *ret_length);
/* enum xs_memory, as unitrace calls it. */
char xs_memory_letter(uint8_t source, unsigned memory);
/* Of global[3], local[3] what is shown first: groups or work items, as the backend has it. */
void xs_shown_shape(uint8_t source, const uint64_t *shape, uint64_t *shown);
/* Key of a function's name for the two above. */
uint32_t xs_function_id(uint8_t source, uint32_t function);
/* A C++ name as it is written; other text stays. Valid until the next call. */
const char *xs_demangle(const char *text, size_t *length);
/*
 * What a device record's event names: a function, or a kernel, by its C++ name where that is
 * wanted; valid until the next call.
 */
const char *xs_kernel_text(struct xs_run *run, const struct xs_event *event, size_t *ret_length);
/*
 * --include-kernels, --exclude-kernels: is the work to be shown? The traced process has decided as
 * far as it knew.
 */
bool xs_work_wanted(struct xs_run *run, const struct xs_event *event);

/* ---- files.c ---- */

enum xs_file {
	/* reports, as enum xs_report_kind; without --result-dir all are one file */
	XS_FILE_HOST_TIMING,
	XS_FILE_DEVICE_TIMING,
	XS_FILE_SUBMISSION,
	XS_FILE_TIMELINE,
	XS_FILE_CALL_LOG,
	XS_FILE_CCL,
	XS_FILE_TRACE,
	XS_FILE_FOLDED,
	XS_FILE_COUNT,
};
/*
 * Makes the process's file of that kind, under the first name that is not taken; `path` is the
 * name. The descriptor or -errno.
 */
int xs_file_create(struct xs_process *process, enum xs_file kind, char *path, size_t size);

/* ---- stacks.c ---- */

/* An XS_STACK record. */
void xs_stacks_read(struct xs_track *track, const struct xs_event *event, uint32_t size);
/*
 * The call that it belonged to, which took `ns`: its stack as JSON ("stack":[…]), valid until the
 * next one; NULL: it has none.
 */
const char *xs_stacks_take(struct xs_track *track, const struct xs_call_record *call, uint64_t ns,
			   size_t *ret_length);
/* Writes the folded file, if there were any. True: there were. */
bool xs_stacks_close(struct xs_process *process);
void xs_stacks_free(struct xs_process *process);

/* ---- sinks ---- */

int xs_chrome_open(struct xs_process *process);
void xs_chrome_thread(struct xs_track *track, uint32_t tid, const char *name, size_t length);
void xs_chrome_prefix(struct xs_track *track);
/* A finished ITT task on its thread's own track. */
void xs_chrome_task(struct xs_track *track, const struct xs_open *task, uint64_t end);
void xs_chrome_unfinished(struct xs_track *track, const struct xs_name *name, uint64_t start,
			  uint64_t end);
struct xs_call_members;
/* members, stack: what is known about the call, and where it was made (JSON); NULL: not known. */
void xs_chrome_call(struct xs_track *track, const struct xs_call_record *call, uint64_t start,
		    uint64_t end, const struct xs_call_members *members, const char *stack,
		    size_t length);
/* An MPI call: where its arguments are put, and its end behind them. */
char *xs_chrome_mpi_begin(const struct xs_track *track, uint64_t start, uint64_t end);
void xs_chrome_mpi_end(const struct xs_track *track, uint32_t name, char *o);
/* The work of a request, on a row of such work. */
void xs_chrome_request(struct xs_process *process, uint32_t name, uint64_t start, uint64_t end,
		       const char *args, size_t length);
void xs_chrome_device(struct xs_process *process, const struct xs_work *work);
void xs_chrome_close(struct xs_process *process, enum xs_end end, int status);

/* ---- arrows.c: from calls to device work; waits.c: back ---- */

/* To the slice of the work, on that track, from the calls that enqueued and submitted it. */
void xs_arrow_add(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		  uint64_t tid);
/* The calls of the track that ended by then are written: so are the arrows that waited for them. */
void xs_arrows_flush(struct xs_track *track, uint64_t ns);
/* From the slice to the call that waited for it: one that is known, or comes later. */
void xs_waits_command(struct xs_process *process, const struct xs_work *work, uint64_t pid,
		      uint64_t tid);
void xs_waits_read(struct xs_track *track, const struct xs_waited_record *record);
void xs_waits_fini(struct xs_process *process);

/* ---- chrome_itt.c: what is not a plain slice of a thread ---- */

/*
 * A slice on the row `row` (a string id, or enum xs_span), on the first lane where it fits; tid 0:
 * there was no memory.
 */
struct xs_place xs_chrome_on_row(struct xs_process *process, uint32_t row,
				 const struct xs_open *task, uint64_t end, bool unfinished);
/* On the thread's own track; displaced: on a track beside it. */
struct xs_place xs_chrome_on_thread(struct xs_track *track, const struct xs_open *task,
				    uint64_t end, bool displaced, bool unfinished);
/* name: string id, with "::metadata" behind it if so wanted; args: JSON text. */
void xs_chrome_instant(struct xs_process *process, uint32_t tid, uint32_t name, bool metadata,
		       uint64_t ns, uint8_t scope, const struct xs_extra *extra);
void xs_chrome_counter(struct xs_track *track, const struct xs_counter_record *record, uint64_t ns);
void xs_chrome_flow(struct xs_process *process, const char *name, struct xs_place from,
		    struct xs_place to);
/* Puts the id that the application gave before the other arguments. */
void xs_chrome_id(struct xs_process *process, struct xs_extra *extra, const struct xs_id *id);
/* Adds the arguments of a record (struct xs_arg …) to the text. */
void xs_chrome_args(struct xs_process *process, struct xs_extra *extra, const unsigned char *args,
		    uint32_t length);
/* The values of an argument, by its key as it begins in the text; NULL: it has none. */
const char *xs_chrome_values(const struct xs_extra *extra, const char *key, size_t *ret_length);

/* ---- itt.c: what the rarer records of ITT mean ---- */

struct xs_extra *xs_extra_of(struct xs_process *process, struct xs_open *task);
void xs_extra_drop(struct xs_process *process, struct xs_open *task);
/* A record of ITT other than XS_BEGIN and XS_END. */
void xs_itt_read(struct xs_track *track, const struct xs_event *event, uint32_t size);
/* A task that is not plain has ended; writes and forgets it. */
void xs_itt_end(struct xs_track *track, struct xs_open *task, uint64_t end, bool displaced,
		bool unfinished);
/* What the track alone knows of open spans is found through its process from here on. */
void xs_itt_release(struct xs_track *track);
/* The process has ended: what is still open. */
void xs_itt_finish(struct xs_process *process, uint64_t end);

/* ---- own_clock.c: times by clocks of the application's ---- */

void xs_own_time_read(struct xs_track *track, const struct xs_own_time_record *record);
/*
 * The time of a record that begins or marks something: as its tick says, or as its own clock says
 * if that cannot be placed; `task` is told so.
 */
uint64_t xs_own_time_begin(struct xs_track *track, const struct xs_event *event,
			   struct xs_open *task, uint64_t ns);
/* The same of what ends it. */
uint64_t xs_own_time_end(struct xs_track *track, const struct xs_event *event, struct xs_open *task,
			 uint64_t ns);

/* ---- mpi.c: MPI calls and the work of requests ---- */

void xs_mpi_read(struct xs_track *track, const struct xs_event *event, uint32_t size);
/* The process has ended: requests that are open. */
void xs_mpi_finish(struct xs_process *process, uint64_t end);

/* ---- flows.c: arrows between tasks that are named by their ids ---- */

/* The slice of an id is written. */
void xs_flows_place(struct xs_process *process, const struct xs_id *id, struct xs_place place);
/* An arrow between two ids, as soon as both are written. name: a constant. */
void xs_flows_add(struct xs_process *process, const char *name, const struct xs_id *from,
		  const struct xs_id *to);
void xs_flows_fini(struct xs_process *process);

/* ---- lanes.c ---- */

enum xs_fit {
	XS_FIT_APART,	/* overlaps nothing */
	XS_FIT_NESTING, /* overlaps nothing but what it is inside of or around */
	XS_FIT_TRUSTED, /* as apart, and what is too long ago to be remembered is taken for free */
};
/*
 * The first lane where [start, end] fits; a new one (tid 0, to be named by the caller) if there is
 * none. NULL: no memory, or too many lanes.
 */
struct xs_lane *xs_lanes_take(struct xs_lanes *lanes, uint64_t start, uint64_t end,
			      enum xs_fit fit);
void xs_lanes_fini(struct xs_lanes *lanes);

/* ---- reports: summary.c, timeline.c ---- */

struct xs_summary *xs_summary_open(void);
void xs_summary_call(struct xs_summary *summary, const struct xs_event *call, uint64_t duration);
void xs_summary_device(struct xs_process *process, const struct xs_work *work);
/* Of which type the devices are that a backend is used with. */
void xs_summary_device_used(struct xs_summary *summary, const struct xs_event *event);
/* What a kernel is made of, before it first runs. */
void xs_summary_kernel(struct xs_summary *summary, const struct xs_kernel_record *kernel);
/* A task has ended; those of other libraries than oneCCL are left out. */
void xs_summary_ccl(struct xs_process *process, const struct xs_open *task, uint64_t end);
/* True when there was something to report. */
bool xs_summary_close(struct xs_process *process);
/* -t */
void xs_timeline_device(struct xs_process *process, const struct xs_work *work);
void xs_timeline_flush(struct xs_process *process);

/* ---- call_log.c: -c ---- */

/*
 * What a call was given and what it gave, as JSON objects; NULL: not known. Valid until the next
 * call is read.
 */
struct xs_call_members {
	const char *in, *out;
	size_t in_length, out_length;
	char result[256]; /* empty: it returns none */
};
void xs_call_log_in(struct xs_track *track, const struct xs_event *event, uint32_t size);
struct xs_call_members xs_call_log_call(struct xs_track *track, const struct xs_call_record *call,
					uint64_t start, uint64_t end);
/*
 * Instead of xs_track_read() for each ring: all of them in the order of time. Returns the bytes
 * read.
 */
uint64_t xs_call_log_read(struct xs_process *process, bool all);
/* The thread or its process has ended: what it was in. */
void xs_call_log_finish(struct xs_track *track, uint64_t end);
void xs_call_log_forget(struct xs_track *track);

/* ---- run.c ---- */

/*
 * Fills *run from the run directory `dir`; channel -1: what another drain process has left. 0 or
 * -errno.
 */
int xs_run_open(struct xs_run *run, const char *dir, int channel);
/*
 * Each new segment of the timeline is left in the control file: a successor (--recover) must
 * convert as we did, or slices of both would overlap where they meet.
 */
void xs_run_save_clock(struct xs_run *run);
/*
 * Descendants that have not joined yet: forked and silent so far, or on their way to main(). To be
 * looked for only when the run would otherwise be over, so that a fork costs the application
 * nothing.
 */
bool xs_run_has_silent_descendants(const struct xs_run *run);
/* Removes the directory and the session's name; reports a failure on stderr. */
void xs_run_remove(const struct xs_run *run);

/* ---- faults.c ---- */

/* From here on what is cut off a mapped file reads as zero, instead of ending this process. */
void xs_faults_catch(void);
/* How many pages that were so far. */
unsigned xs_faults(void);

/* ---- drain.c ---- */

/*
 * The drain process: reads until the application and its descendants have ended, then removes the
 * run directory. channel: to the launcher; -1: that of another drain process, which died, is
 * completed (--recover).
 */
int xs_drain(const char *dir, int channel);

#endif
