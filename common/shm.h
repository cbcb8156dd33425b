/*
 * The run directory: the files through which the traced processes, the drain process and the
 * launcher meet.
 *
 *   control                     struct xs_control; made by the launcher; traced processes can only
 * read it mailbox                     struct xs_mailbox; hints by traced processes, which are never
 * believed strings                     struct xs_strings (common/strtab.h); interned names, shared
 * by all processes of the run p<pid>.<serial>             struct xs_process_file and its first
 * rings; made by each traced process when it joins p<pid>.<serial>.s<k>        struct
 * xs_segment_file and more rings, when the first are all in use t<n>                        paths
 * of the traces, a NUL behind each, of the newest dump that serves request n (--flight-recorder)
 *   k<n>                        stacks that serve request n (--stacks), as text
 *   v                           the newest picture of the run (--top), struct xs_live_head
 *   d<pid>.<serial>[.s<k>]      struct xs_kept_file: what the drain process must believe later
 * about the rings of p…; only it and
 *                               --recover open it
 *
 * Serials count the joins of the run. A process that calls exec joins again, under the same pid and
 * a higher serial.
 *
 * A program may drop its rights and keep its mappings, and other users may make files where a run
 * directory was. So a directory or file is used only if its open descriptor shows that this user
 * owns it and nobody else has rights (xs_shm_open()). What other processes rely on lies where no
 * traced process can write.
 */
#ifndef XS_SHM_H
#define XS_SHM_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "clock.h"
#include "cpu_events.h"
#include "options.h"
#include "pause.h"
#include "ring.h"

#define XS_MAGIC 0x6563617274737801ull
/* for the collector: the run directory, a colon, and the run's secret (xs_run_variable()) */
#define XS_ENV_RUN     "XSTRACE_RUN"
#define XS_SECRET      32u			   /* hexadecimal digits: 128 bits */
#define XS_ENV_RUN_MAX (PATH_MAX + XS_SECRET + 2u) /* with NUL */
/* set: the user wants Level Zero's own validation layer too */
#define XS_ENV_ZE_VALIDATION "XSTRACE_ZE_VALIDATION"
/* libraries of the user's own that CUDA and NVTX are to load, too */
#define XS_ENV_CUDA_INJECTION "XSTRACE_CUDA_INJECTION"
#define XS_ENV_NVTX_INJECTION "XSTRACE_NVTX_INJECTION"

#define XS_SEGMENTS_SAVED 64u

/* How the drain process serves what a shell asks of a run that a program has begun. */
enum xs_session_answer {
	XS_SESSION_DONE,	 /* the trace has begun, or ended */
	XS_SESSION_DONE_ALREADY, /* nothing was to do */
	XS_SESSION_OTHER,	 /* the program's own trace, or dynolog's, is being recorded */
};

/* Why the flight recorder is to write. */
enum xs_dump_reason {
	XS_DUMP_SIGNAL = 1,  /* SIGUSR1 to the launcher */
	XS_DUMP_SESSION = 2, /* --dump NAME */
	XS_DUMP_TRIGGER = 4, /* --trigger */
	XS_DUMP_CRASH = 8,   /* a process was ended by a signal */
};

/*
 * The newest times of not recording: tasks that were open then cannot be told apart from later
 * ones, so the drain process ends them at `from` when it sees a record from `to` on. Number n is at
 * n % XS_PAUSES.
 */
#define XS_PAUSES 128u
struct xs_pauses {
	_Atomic uint32_t count;
	uint32_t reserved;
	struct {
		_Atomic uint64_t from, to; /* ticks; to UINT64_MAX: not over */
	} last[XS_PAUSES];
};

/* How the drain process is: what producers that wait for it must know. */
struct xs_consumer {
	_Atomic uint32_t heartbeat;
	int32_t pid;
	uint64_t start; /* start time, tells a reused pid */
};

/*
 * Written by the launcher, by commands of the session and by the drain process, which copies what
 * the launcher has said when it begins.
 */
struct xs_control {
	_Atomic uint64_t magic;
	uint32_t version; /* XS_SHM_VERSION: equal on both sides or not joined */
	uint32_t use_tsc;
	char run_id[24];
	/* who comes without it does not belong to the run, or has found another one in its place */
	char secret[XS_SECRET + 1];
	struct xs_consumer consumer;
	/*
	 * --flight-recorder: traces asked for, ever; those that processes ask for are in the
	 * mailbox
	 */
	_Atomic uint32_t dumps;
	_Atomic uint32_t dumped; /* futex: those of `dumps` that are written */
	/* enum xs_dump_reason: of those that are not served yet; set before `dumps` */
	_Atomic uint32_t dump_reasons;
	/*
	 * launcher and drain process; what they tell each other later goes by a channel
	 * (common/channel.h)
	 */
	int32_t launcher_pid, app_pid;
	uint64_t launch_ns; /* from the launcher's begin to the application's */
	/*
	 * Bytes that the run's rings may have together, because its group (container, job) has a
	 * limit of memory: beyond it the kernel would end the application. 0: there is none.
	 */
	uint64_t rings_most;
	int32_t sampler_pid;	/* --system-metrics: xstrace-system's; 0: none */
	int32_t metrics_pid;	/* --metric-sampling, --stall-sampling: xstrace-metrics' */
	int32_t processors_pid; /* --cpu-metrics: xstrace-cpu' */
	/* string ids of the events' names, and of that of their rate, IPC */
	uint32_t cpu_names[XS_CPU_EVENTS + 1];
	/* string ids of what stacks in traces are called; 0: there are to be none */
	uint32_t stack_names[2];
	/*
	 * --stacks: asked for, ever; (futex) those that are served. And (futex) how many of the
	 * mailbox's crashes are.
	 */
	_Atomic uint32_t stacks_asked, stacks_served, crashes_served;
	/* --top: pictures of the run (live.h) asked for, ever; (futex) those that are made */
	_Atomic uint32_t live_asked, live_served;
	/* a process is to name the drain process as one that may look into it (Yama) */
	uint32_t names_tracer;
	/* whom the application would have for a parent without us */
	_Atomic int32_t launcher_parent;
	/* tell a reused pid, and of which namespace; 0: not needed, the run has no session */
	uint64_t launcher_start, launcher_namespace;
	/*
	 * A run that a program has begun for itself (library/): the start time of that program,
	 * which is no child of the launcher. 0: any other run.
	 */
	uint64_t hosted_start;
	uint32_t owns_output; /* its directory of traces goes with it, if it is empty */
	/* such a program ends its trace: how often so far, and (futex) how many are complete */
	_Atomic uint32_t cuts, cut;
	/*
	 * --on-demand in such a run. `own_trace` is the program's: it has started a trace. `demand`
	 * is the drain process's: it records one for dynolog. Who has set one looks at the other
	 * behind a fence; where both are set, the drain process gives way.
	 */
	_Atomic uint32_t own_trace, demand;
	/*
	 * --resume and --pause of such a run: what shells have asked for, its number << 1 | a trace
	 * is to be recorded; (futex) the newest that is served, and how. A trace that has ended so
	 * is in session_trace.
	 */
	_Atomic uint32_t session_asks, session_served, session_answer;
	char session_trace[PATH_MAX];
	uint32_t app_not_traced; /* the launcher has said why already */
	int32_t rank;		 /* of the job; -1: unknown */
	/* futex, for --stop: nothing is left to do, the drain process is just ending */
	_Atomic uint32_t finished;
	/* every event looks at it: on a line of its own, which is hardly ever written */
	_Alignas(64) _Atomic uint32_t paused; /* enum xs_pause_reason; 0: recording */
	_Atomic uint32_t paused_ever;	      /* reasons that there have been */
	_Alignas(64) struct xs_pauses pauses; /* for a reason of XS_PAUSE_ALL */
	struct xs_pauses host_pauses;	      /* XS_PART_HOST's */
	/* where the run's timeline begins */
	uint64_t tick0, mono0, real0; /* read together */
	struct xs_clock_pair raw0;    /* of CLOCK_MONOTONIC_RAW */
	/* the newest pieces of the drain process's timeline, number n at n % XS_SEGMENTS_SAVED */
	_Atomic uint32_t segment_count;
	struct xs_segment segments[XS_SEGMENTS_SAVED];
	uint64_t directory; /* inode of the run's own; 0: not known. In a copy of it all are copies
			     */
	struct xs_options options;
	uint64_t options_sum;	      /* xs_options_sum() of them */
	char own_directory[PATH_MAX]; /* --result-dir: where run_config.json is */
	char arguments[1024];	      /* xstrace's own, with blanks between; may be cut */
	uint32_t command_length;      /* bytes of `command` */
	char command[4096];	      /* the application's argv, each with its NUL; may be cut */
};

/*
 * Every process of the run writes here, also one that means harm: whatever it holds costs the drain
 * process at most a look in vain.
 */
struct xs_mailbox {
	struct xs_doorbell bell;
	_Atomic uint32_t serials; /* given out so far */
	/* process files that are ready, ever: when it changes, the directory has news */
	_Atomic uint32_t joined;
	_Atomic uint32_t join_failed;
	_Atomic uint32_t triggers; /* --trigger: traces that processes asked for, ever */
	/* --stacks-on-crash: threads that a signal is about to end, ever */
	_Atomic uint32_t crashes;
	_Atomic uint64_t rings; /* bytes of the rings of processes that live; see rings_most */
	_Atomic uint64_t crash; /* of the newest: the thread << 8 | the signal */
};

/* Where a device's clock was, between two readings of the host's. */
struct xs_device_pair {
	uint64_t before, after; /* ticks of the host */
	uint64_t device;	/* ticks of the device */
};

#define XS_DEVICE_PAIRS 8u
#define XS_CLOCKS	64u /* devices of a process whose clocks are told like this */

struct xs_device_pairs {
	/* number n of them at n % XS_DEVICE_PAIRS; 0: nothing else is valid */
	_Atomic uint32_t count;
	/* that the clock counts, in the pairs and in the times of device work */
	uint32_t bits, kernel_bits;
	uint64_t frequency; /* Hz */
	struct xs_device_pair last[XS_DEVICE_PAIRS];
};

/* What a process does beyond our reach. */
enum xs_unseen {
	XS_UNSEEN_ZE_OLD,
	XS_UNSEEN_ZE_SECOND,
	XS_UNSEEN_ZE_DEEP,
	XS_UNSEEN_SANDBOX,
	XS_UNSEEN_STRICT,
	XS_UNSEEN_CLOCK,
	XS_UNSEEN_LATE,
	XS_UNSEEN_MEMORY,
	XS_UNSEEN_METRIC_FUNCTIONS,
	XS_UNSEEN_METRIC_GROUP,
	XS_UNSEEN_METRIC_ACTIVE,
	XS_UNSEEN_METRIC_THEIRS,
	XS_UNSEEN_METRIC_CUPTI,
	XS_UNSEEN_XPTI_NONE,
	XS_UNSEEN_XPTI_NEWER,
	XS_UNSEEN_XPTI_SECOND,
	XS_UNSEEN_PYTHON,
	XS_UNSEEN_PYTHON_PROFILER,
	XS_UNSEEN_PYTHON_OPENED,
	XS_UNSEEN_CLASS,
	XS_SEEN_OPENMP, /* the other way round: a runtime of OpenMP's tells us what it does */
	XS_SEEN_PYTHON, /* likewise, an interpreter of Python's */
	XS_UNSEEN_SANDBOX_EXEC,
	XS_UNSEEN_CUDA_LEFT,
	XS_UNSEEN_PYTHON_TOOLS,
	XS_UNSEEN_CUDA_THEIRS,
	XS_UNSEEN_CUDA_CHANGED,
};

/* Allocations of SYCL (USM) that are in use on a device. */
struct xs_unfreed {
	_Atomic uint64_t count, bytes;
	_Atomic uint32_t device; /* an interned name; 0: not known */
	uint32_t reserved;
};
#define XS_UNFREED 16u /* devices; what is on further ones counts for the first, which is none */

#define XS_ARGUMENTS_MAX 1024u
struct xs_process_file {
	_Atomic uint64_t magic; /* stored last */
	int32_t pid, ppid;	/* as the process sees them */
	/* xs_pid_namespace(), or that it is unknown; 0: the launcher's (xs_shm_is_marked()) */
	uint64_t pid_namespace;
	/* xs_pid_identity(); the same in all images of an exec. 0: unknown */
	uint64_t identity;
	/* two readings at one time; CLOCK_MONOTONIC is another one in a time namespace */
	uint64_t join_tick, join_mono;
	uint32_t serial;
	uint32_t slots;		   /* rings in this file */
	uint64_t ring_size;	   /* data bytes of each ring in this file */
	_Atomic uint32_t used;	   /* rings ever taken in this file */
	_Atomic uint32_t segments; /* further files */
	/* events of threads for which there was no memory for a ring */
	_Atomic uint64_t lost_no_ring;
	_Atomic uint64_t untimed;    /* commands whose device times cannot be read */
	_Atomic uint64_t unmeasured; /* runs of kernels whose metrics cannot be read */
	_Atomic uint64_t unsampled;  /* samples of instructions that were lost, at least */
	_Atomic uint64_t unnamed;    /* how often there was no room for a name */
	/* of these five: what traces that are complete have told */
	struct xs_counts_told {
		_Atomic uint64_t lost_no_ring, untimed, unmeasured, unsampled, unnamed;
	} told;
	struct xs_unfreed unfreed[XS_UNFREED];
	_Atomic uint64_t commands_ended; /* as in struct xs_ring, by threads that have no ring */
	_Atomic uint32_t unseen;	 /* enum xs_unseen, a bit each */
	_Atomic uint32_t activity;	 /* 1: it has files of CUDA's activity (activity.h) */
	/* of the job, as the environment says, later MPI: rank + 1; 0: unknown */
	_Atomic int32_t rank_told, world_size;
	/*
	 * --on-demand: calls of xstrace_step() so far; at how many the drain process begins or ends
	 * a trace (0: at none), and (futex) for how many it has done that
	 */
	_Atomic uint64_t steps, step_due;
	_Atomic uint32_t step_done;
	_Atomic uint32_t start_ns; /* that joining took */
	/* --python-stacks: ended calls of functions that have slices, and of those that have none
	 */
	_Atomic uint64_t functions, counted_functions;
	/* in 1/256 ns, of the process that has begun the interpreter; 0: not known */
	struct xs_function_costs {
		/* as in struct xs_cost, of one that has a slice; of one that has none */
		_Atomic uint32_t ns, inside_ns, counted_ns;
	} function_costs;
	struct xs_pauses pauses; /* its own; those of the run are in the control file */
	char other_class[64]; /* XS_UNSEEN_CLASS: the first program that it started so; may be cut
			       */
	char comm[16];
	uint32_t arguments_length;
	/* its argv when it joined, a NUL behind each; may be cut */
	char arguments[XS_ARGUMENTS_MAX];
	uint64_t made_as; /* xs_file_word() */
};

/* What follows the struct, in pages of its own that are there from the first clock on. */
struct xs_process_clocks {
	struct xs_device_pairs device[XS_CLOCKS];
};

struct xs_segment_file {
	_Atomic uint64_t magic;
	uint32_t slots;
	_Atomic uint32_t used;
	uint64_t ring_size; /* of this file's rings: at most that of the first file's */
	uint64_t made_as;   /* xs_file_word() */
};

struct xs_open_task {
	uint64_t ns;
	uint32_t name;
	uint32_t lost; /* not 0: no task, but as many begins that were lost */
};

/* Flight recorder: from `pos` on the ring's records are this thread's. */
struct xs_thread_since {
	uint64_t pos;
	uint32_t tid, name;
};

/*
 * What the drain process knows about the records of a ring before its tail, kept so that a
 * successor can go on (--recover): as it was with a commit, whose number is `turn`.
 */
#define XS_RING_SAVED 123u
struct xs_ring_saved {
	uint64_t turn;
	uint64_t tail, records;
	/* of the threads that had the ring before this one */
	uint64_t past_records;
	uint32_t past_threads, reserved;
	uint32_t tid, depth;
	uint32_t name, row; /* of the thread, and of the track that its tasks go to; interned */
	uint64_t check;	    /* of all of it (kept.h); 0: it is being written */
	union {		    /* so many as `depth` says */
		struct xs_open_task open[XS_RING_SAVED];
		/* flight recorder, whose successor begins before the tail: the newest */
		struct xs_thread_since since[XS_RING_SAVED];
	};
};

/*
 * Of the two copies the newer one counts, unless it says that it is of a commit which the head of
 * the file does not know of: then it was only being prepared.
 */
struct xs_kept_ring {
	uint32_t owner; /* of chunks of the backlog, from 1; 0: it needed none yet */
	uint32_t reserved;
	_Atomic uint64_t moved; /* records from the saved tail to there are in the backlog */
	struct xs_ring_saved saved[2];
};

/* As struct xs_kept_ring, of the buffers of CUDA's activity (activity.h). */
struct xs_activity_saved {
	uint64_t turn;
	uint64_t consumed[64]; /* bytes that are read, and the buffer's turn << 32 */
	int64_t used[3];       /* bytes of a device, pinned ones, managed ones */
	uint64_t check;
};
struct xs_kept_activity {
	struct xs_activity_saved saved[2];
};

/*
 * Numbers that the trace has, noted as they are given: a successor goes on behind them. A part of
 * it that was not committed may have had some.
 */
#define XS_KEPT_PLACES 64u
struct xs_kept_numbers {
	uint32_t work;	 /* of CUDA's work, and of arrows between */
	uint32_t flows;	 /* arrows between tasks */
	uint32_t own;	 /* tracks that are no thread's */
	uint32_t track;	 /* of a device, the highest of all */
	uint32_t places; /* devices: each has the pid of its place */
	struct {
		uint32_t name;
		uint8_t source, device, tile, shown;
	} place[XS_KEPT_PLACES];
};

/* Of a commit: how much of the trace counts. */
struct xs_kept_length {
	uint64_t turn;
	uint64_t bytes; /* of output, or XS_KEPT_ENDED */
	uint64_t error; /* errno of the first write that failed: something is missing; 0: none */
	uint64_t check;
};
#define XS_KEPT_ENDED UINT64_MAX /* the trace is complete, and none has begun since */

/* Not 1: a word that something else has written is neither. */
#define XS_KEPT_COMPLETE  0x704d4f43u
#define XS_KEPT_UNWRITTEN 0x57724e55u

/* Followed by one struct xs_kept_ring for each ring, a page each. kept.h says how it is written. */
struct xs_kept_file {
	/*
	 * The newest commit that counts, from 1 on. One store of it makes all count that was saved
	 * for it: length[turn & 1], and copies of rings' states in this file and those of `.s<k>`.
	 * Its check is stored behind it.
	 */
	_Atomic uint64_t turn, turn_check;
	struct xs_kept_length length[2];
	uint64_t device, inode; /* of the trace; 0: not made yet */
	uint64_t trace_check;	/* of these two */
	uint64_t output_check;
	uint32_t unwritten; /* XS_KEPT_UNWRITTEN: it is complete, and there was no room for it */
	uint32_t complete;  /* XS_KEPT_COMPLETE: it is, and the process's files are about to go */
	char output[PATH_MAX]; /* its absolute path; empty: none yet */
	struct xs_kept_activity activity;
	struct xs_kept_numbers numbers;
	/* whose it is, of segment 0; stored last. Without it nothing in the file is believed */
	int32_t pid;
	uint32_t serial;
	_Atomic uint64_t magic;
};

#define XS_SHM_VERSION	  37u
#define XS_PAGE		  4096u
#define XS_KEPT_HEADER	  8192u	 /* of struct xs_kept_file */
#define XS_PROCESS_FIRST  4096u	 /* of struct xs_process_file */
#define XS_PROCESS_HEADER 20480u /* and of its clocks */
#define XS_FIRST_SLOTS	  8u
#define XS_MORE_SLOTS	  64u
#define XS_MAX_SEGMENTS	  1024u
_Static_assert(sizeof(struct xs_process_file) <= XS_PROCESS_FIRST, "the clocks begin behind it");
_Static_assert(XS_PROCESS_FIRST + sizeof(struct xs_process_clocks) <= XS_PROCESS_HEADER,
	       "the rings begin behind the header");
_Static_assert(sizeof(struct xs_kept_file) <= XS_KEPT_HEADER &&
		       sizeof(struct xs_kept_ring) <= XS_PAGE,
	       "a page each");

static inline struct xs_process_clocks *xs_clocks_of(void *process_file)
{
	return (struct xs_process_clocks *)((char *)process_file + XS_PROCESS_FIRST);
}

/* Offset of ring `slot` in a file of rings, of ring_size data bytes each. */
static inline uint64_t xs_slot_offset(uint32_t slot, uint64_t ring_size)
{
	return XS_PROCESS_HEADER + slot * (XS_RING_HEADER + ring_size);
}

/* Where what is kept about ring `slot` lies in its file; the number of rings: the file's size. */
static inline uint64_t xs_kept_offset(uint32_t slot)
{
	return XS_KEPT_HEADER + (uint64_t)slot * XS_PAGE;
}

enum xs_shm_access {
	XS_SHM_OPEN, /* shared and writable */
	/*
	 * the same; it must not exist, and is made `size` bytes long (sparse), its first page
	 * present
	 */
	XS_SHM_CREATE,
	/* shared, and never to be written through this mapping, whoever inherits it */
	XS_SHM_READ,
};

/*
 * Opens a run directory: a real directory (no link) of this user, with no rights for others. The
 * descriptor or -errno; -EPERM: it is another's. Usable in any context, as all that follows here
 * but xs_run_variable().
 */
int xs_shm_open_directory(const char *path);
/*
 * Marks the directory as this process's, by a lock for reading that the kernel forgets when the
 * process ends or closes a descriptor of the directory. The second says whether process `pid` has
 * marked it and is in the PID namespace of who asks: the kernel translates the number for him
 * (fcntl(2), F_GETLK), and has none for a process of another namespace.
 */
void xs_shm_mark(int directory);
bool xs_shm_is_marked(int directory, pid_t pid);
/* Has any process? */
bool xs_shm_is_anyones(int directory);
/*
 * Opens a file in it: a regular file of this user with mode 0600 and no second name. The descriptor
 * or -errno; -EPERM: it is none.
 */
int xs_shm_open(int directory, const char *name, enum xs_shm_access access);
struct xs_shm_file {
	uint64_t size; /* that is mapped */
	uint64_t inode;
};
/*
 * Maps such a file; size 0: all of it. Returns 0 and the mapping, or -errno. No descriptor stays
 * open. ret_file, unless NULL: what was opened, or made.
 */
int xs_shm_map_at(int directory, const char *name, enum xs_shm_access access, uint64_t size,
		  void **ret_map, struct xs_shm_file *ret_file);
/* The same, with the directory opened by its path. */
int xs_shm_map(const char *path, const char *name, enum xs_shm_access access, uint64_t size,
	       void **ret_map, struct xs_shm_file *ret_file);
/*
 * What a process writes into each file that it makes for its records: a word of the file's inode,
 * whose it is, and which of its files. Never 0, which is no word. Another file under that name says
 * something else, even an equal copy, in which nobody goes on writing.
 */
uint64_t xs_file_word(uint64_t inode, int32_t pid, uint32_t serial, uint32_t number);

/* The value of XS_ENV_RUN. `text` has room for XS_ENV_RUN_MAX bytes. */
void xs_run_variable(char *text, const char *dir, const struct xs_control *control);
/*
 * That value in parts: copies the directory's path to `dir` and points *ret_secret to the secret.
 * False: it is none.
 */
bool xs_run_parse(const char *value, char *dir, size_t size, const char **ret_secret);
/* Is it a control file of this version, of the run with that secret (NULL: of any)? */
bool xs_control_valid(const struct xs_control *control, const char *secret);
/* Are the options still those that the launcher has written there? */
bool xs_control_is_whole(const struct xs_control *control);

/*
 * Makes memory of a mapping present, so that a full file system is seen here and not as a SIGBUS at
 * a store. Usable in any context.
 */
bool xs_shm_present(void *start, uint64_t size);

/* Notes that recording was off from now on, and that it is on again. For one writer at a time. */
void xs_pauses_begin(struct xs_pauses *pauses, uint64_t tick);
void xs_pauses_end(struct xs_pauses *pauses, uint64_t tick);

/*
 * Asks the flight recorder to write. Returns the number of the request: done when `dumped` has come
 * so far.
 */
uint32_t xs_control_dump(struct xs_control *control, struct xs_mailbox *mailbox,
			 enum xs_dump_reason reason);

/*
 * Gives the whole run a reason not to record, or takes it away. True when that changed something.
 * For one writer at a time, too.
 */
bool xs_control_pause(struct xs_control *control, enum xs_pause_reason reason, bool on);
/*
 * The same while other writers may be active (commands of the session, the drain process). Waits
 * for the lock of the run directory, but no longer than 200 ms: otherwise a command that somebody
 * has stopped would stop the run.
 */
bool xs_control_change(int directory, struct xs_control *control, enum xs_pause_reason reason,
		       bool on);

/*
 * --resume, --pause of a run that a program has begun: asks the drain process for a trace, or for
 * its end. Returns the request: served when `session_served` has come so far.
 */
uint32_t xs_control_ask(struct xs_control *control, struct xs_mailbox *mailbox, bool on);
bool xs_control_is_served(const struct xs_control *control, uint32_t request);

/*
 * A session is a link, xstrace-session-<uid>-<name>, to the run directory, in one of the
 * directories that every shell of a user knows. xs_session_link() gives its path in the n-th of
 * them; false: there are no more. `path` has room for PATH_MAX bytes.
 */
bool xs_session_link(unsigned n, unsigned uid, const char *session, char *path);
/* Removes the session's links to this run directory (before the directory itself). */
void xs_session_remove(const char *session, const char *dir);

/*
 * Calls `each` for every name in an opened directory. It needs no other descriptor: there may be
 * none. False: errno says why.
 */
bool xs_shm_each(int directory, void (*each)(void *user, const char *name), void *user);
/*
 * Removes a run directory, opened, and all that is in it. 0, or -1 and errno. What processes share
 * goes last, `control` behind all else: xs_shm_goes_last() says of a name whether it is of that.
 */
int xs_shm_remove(int directory, const char *path);
bool xs_shm_goes_last(const char *name);

/*
 * "p<pid>.<serial>", with ".s<segment>" when segment > 0. `text` has room for XS_NAME_MAX bytes.
 * Usable in any context.
 */
#define XS_NAME_MAX 64
void xs_process_file_name(char *text, int32_t pid, uint32_t serial, uint32_t segment);
/* The same with a 'd': the drain process's file about it. */
void xs_kept_name(char *text, int32_t pid, uint32_t serial, uint32_t segment);
/* A file of CUDA's activity (activity.h): "c<pid>.<serial>.<number>". */
void xs_activity_name(char *text, int32_t pid, uint32_t serial, uint32_t number);
/* In the list of a dump's traces, for a path: there was something to write, and no room for it. */
#define XS_DUMP_UNWRITTEN "!"
/* The list of a dump's traces; of a hosted run's cut number `number`. */
void xs_dump_name(char *text, uint32_t number);
/* The stacks that serve request `number` of --stacks. */
void xs_stacks_name(char *text, uint32_t number);
/* Reads a process's name of segment 0; false: it is none. */
bool xs_process_file_parse(const char *text, int32_t *ret_pid, uint32_t *ret_serial);

#endif
