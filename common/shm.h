/*
 * The run directory: the files through which the traced processes, the drain process and the launcher meet.
 *
 *   control                     struct xs_control; made by the launcher
 *   strings                     struct xs_strings (common/strtab.h); interned names, shared by all processes of the run
 *   p<pid>.<serial>             struct xs_process_file and its first rings; made by each traced process when it joins
 *   p<pid>.<serial>.s<k>        struct xs_segment_file and more rings, when the first are all in use
 *
 * Serials count the joins of the run. A process that calls exec joins again, under the same pid and a higher serial.
 */
#ifndef XS_SHM_H
#define XS_SHM_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "options.h"
#include "ring.h"

#define XS_MAGIC 0x6563617274737801ull
#define XS_ENV_RUN "XSTRACE_RUN" /* path of the run directory, for the collector */
#define XS_ENV_ZE_VALIDATION "XSTRACE_ZE_VALIDATION" /* set: the user wants Level Zero's own validation layer too */

#define XS_SEGMENTS_SAVED 16u

enum xs_finished {
	XS_NOT_FINISHED,
	XS_APP_FINISHED, /* the application's trace is complete; descendants still run */
	XS_RUN_FINISHED, /* nothing is left to do: the drain process is just ending */
};

/* Why the whole run does not record (a process may have reasons of its own, collector/control.c). */
enum xs_pause_reason {
	XS_PAUSE_SESSION = 1, /* --pause NAME */
	XS_PAUSE_WINDOW = 2,  /* --delay, --duration */
	XS_PAUSE_STOPPED = 4, /* --stop NAME: for good */
};

/* Why the flight recorder is to write. */
enum xs_dump_reason {
	XS_DUMP_SIGNAL = 1,  /* SIGUSR1 to the launcher */
	XS_DUMP_SESSION = 2, /* --dump NAME */
	XS_DUMP_TRIGGER = 4, /* --trigger */
	XS_DUMP_CRASH = 8,   /* a process was ended by a signal */
};

/*
 * The newest times of not recording: tasks that were open then cannot be told apart from later ones, so the drain process ends them at
 * `from` when it sees a record from `to` on. Number n is at n % XS_PAUSES.
 */
#define XS_PAUSES 128u
struct xs_pauses {
	_Atomic uint32_t count;
	uint32_t reserved;
	struct {
		_Atomic uint64_t from, to; /* ticks; to UINT64_MAX: not over */
	} last[XS_PAUSES];
};

struct xs_control {
	_Atomic uint64_t magic;
	uint32_t version; /* XS_SHM_VERSION: equal on both sides or not joined */
	uint32_t use_tsc;
	char run_id[24];
	struct xs_doorbell bell;
	_Atomic uint32_t serials; /* given out so far */
	_Atomic uint32_t joined;  /* process files that are ready, ever: when it changes, the directory has news */
	_Atomic uint32_t join_failed;
	_Atomic uint32_t dumps; /* --flight-recorder: traces asked for, ever */
	_Atomic uint32_t dumped; /* futex: those of `dumps` that are written */
	_Atomic uint32_t dump_reasons; /* enum xs_dump_reason: of those that are not served yet; set before `dumps` */
	/* launcher and drain process */
	int32_t launcher_pid, app_pid;
	uint64_t launcher_start;       /* tells a reused pid; 0: not needed, the run has no session */
	uint32_t app_not_traced;       /* the launcher has said why already */
	int32_t rank;                  /* of the job; -1: unknown */
	_Atomic uint32_t app_started;  /* 1: the application runs (app_pid is valid) */
	_Atomic uint32_t app_exited;   /* 1: the launcher has reaped it (app_status is valid) */
	_Atomic uint32_t app_finished; /* futex, enum xs_finished */
	int32_t app_status;            /* as from waitpid() */
	/* every event looks at it: on a line of its own, which is hardly ever written */
	_Alignas(64) _Atomic uint32_t paused; /* enum xs_pause_reason; 0: recording */
	_Alignas(64) struct xs_pauses pauses;
	/* where the run's timeline begins */
	uint64_t tick0, mono0, real0; /* read together */
	struct xs_clock_pair raw0;    /* of CLOCK_MONOTONIC_RAW */
	/* the newest pieces of the drain process's timeline, number n at n % XS_SEGMENTS_SAVED */
	_Atomic uint32_t segment_count;
	struct xs_segment segments[XS_SEGMENTS_SAVED];
	struct xs_options options;
	_Atomic uint32_t kmd_ready; /* futex: --chrome-kmd-logging: 1: the application may start */
	char own_directory[PATH_MAX]; /* --result-dir: where run_config.json is */
	char arguments[1024]; /* xstrace's own, with blanks between; may be cut */
	char command[4096]; /* the application's argv, NUL-separated, empty string at the end; may be cut */
};

/* Where a device's clock was, between two readings of the host's. */
struct xs_device_pair {
	uint64_t before, after; /* ticks of the host */
	uint64_t device;        /* ticks of the device */
};

#define XS_DEVICE_PAIRS 8u
#define XS_CLOCKS 64u /* devices of a process whose clocks are told like this */

struct xs_device_pairs {
	_Atomic uint32_t count; /* number n of them at n % XS_DEVICE_PAIRS; 0: nothing else is valid */
	uint32_t bits, kernel_bits; /* that the clock counts, in the pairs and in the times of device work */
	uint64_t frequency;         /* Hz */
	struct xs_device_pair last[XS_DEVICE_PAIRS];
};

/* What a process does beyond our reach. */
enum xs_unseen { XS_UNSEEN_ZE_OLD, XS_UNSEEN_ZE_SECOND, XS_UNSEEN_ZE_DEEP, XS_UNSEEN_SANDBOX, XS_UNSEEN_STRICT };

struct xs_process_file {
	_Atomic uint64_t magic; /* stored last */
	int32_t pid, ppid;   /* as the process sees them */
	uint64_t pid_namespace; /* xs_process_namespace() */
	uint64_t join_tick;
	uint64_t start;      /* of the process, as /proc/PID/stat has it; 0: unknown. The same in all images of an exec */
	uint64_t join_boot;  /* CLOCK_BOOTTIME in ns: a process of this pid that started later is another one */
	uint32_t serial;
	uint32_t slots;      /* rings in this file */
	uint64_t ring_size;  /* data bytes of each ring */
	_Atomic uint32_t used;     /* rings ever taken in this file */
	_Atomic uint32_t segments; /* further files */
	_Atomic uint64_t lost_no_ring; /* events of threads for which there was no memory for a ring */
	_Atomic uint64_t untimed; /* commands whose device times nobody can tell */
	_Atomic uint64_t commands_ended; /* as in struct xs_ring, by threads that have no ring */
	_Atomic uint32_t unseen; /* enum xs_unseen, a bit each */
	_Atomic int32_t rank_told, world_size; /* of the job, as the environment says, later MPI: rank + 1; 0: nobody has said */
	struct xs_pauses pauses;       /* its own; those of the run are in the control file */
	/* the drain process's */
	_Atomic uint64_t committed; /* bytes of output that hold the records before the saved tails, << 1 | prepared */
	char output[PATH_MAX];      /* absolute path of the trace; empty: none opened yet */
	char comm[16];
};

/* What follows the struct, in pages of its own that are there from the first clock on. */
struct xs_process_clocks {
	struct xs_device_pairs device[XS_CLOCKS];
};

struct xs_segment_file {
	_Atomic uint64_t magic;
	uint32_t slots;
	_Atomic uint32_t used;
};

#define XS_SHM_VERSION 12u
#define XS_PAGE 4096u
#define XS_PROCESS_FIRST 8192u   /* of struct xs_process_file */
#define XS_PROCESS_HEADER 24576u /* and of its clocks */
#define XS_FIRST_SLOTS 8u
#define XS_MORE_SLOTS 64u
#define XS_MAX_SEGMENTS 1024u
_Static_assert(sizeof(struct xs_process_file) <= XS_PROCESS_FIRST, "the clocks begin behind it");
_Static_assert(XS_PROCESS_FIRST + sizeof(struct xs_process_clocks) <= XS_PROCESS_HEADER, "the rings begin behind the header");

static inline struct xs_process_clocks *xs_clocks_of(void *process_file)
{
	return (struct xs_process_clocks *)((char *)process_file + XS_PROCESS_FIRST);
}

/* Offset of ring `slot` in a file of rings, of ring_size data bytes each. */
static inline uint64_t xs_slot_offset(uint32_t slot, uint64_t ring_size)
{
	return XS_PROCESS_HEADER + slot * (XS_RING_HEADER + ring_size);
}

/*
 * Maps a file of the run directory, shared and writable. create: it must not exist, is made `size` bytes long (sparse) with mode
 * 0600, its first page present; otherwise size 0 means all of it. Returns 0 and the mapping, or -errno. No descriptor
 * stays open.
 */
int xs_shm_map(const char *dir, const char *name, bool create, uint64_t size, void **ret_map, uint64_t *ret_size);

/* Makes memory of a mapping present, so that a full file system is seen here and not as a SIGBUS at a store. Usable in any context. */
bool xs_shm_present(void *start, uint64_t size);

/* Notes that recording was off from now on, and that it is on again. For one writer at a time. */
void xs_pauses_begin(struct xs_pauses *pauses, uint64_t tick);
void xs_pauses_end(struct xs_pauses *pauses, uint64_t tick);

/* Asks the flight recorder to write; usable in any context. Returns the number of the request: done when `dumped` has come so far. */
uint32_t xs_control_dump(struct xs_control *control, enum xs_dump_reason reason);

/* Gives the whole run a reason not to record, or takes it away. True when that changed something. */
bool xs_control_pause(struct xs_control *control, enum xs_pause_reason reason, bool on);

/*
 * A session is a link, xstrace-session-<uid>-<name>, to the run directory, in one of the directories that every shell of a user knows.
 * xs_session_link() gives its path in the n-th of them; false: there are no more. `path` has room for PATH_MAX bytes.
 */
bool xs_session_link(unsigned n, unsigned uid, const char *session, char *path);
/* Removes the session's links to this run directory (before the directory itself). */
void xs_session_remove(const char *session, const char *dir);

/* Removes a run directory and all that is in it. 0, or -1 and errno. */
int xs_shm_remove(const char *dir);

/* "p<pid>.<serial>", with ".s<segment>" when segment > 0. `text` has room for XS_NAME_MAX bytes. Usable in any context. */
#define XS_NAME_MAX 64
void xs_process_name(char *text, int32_t pid, uint32_t serial, uint32_t segment);

#endif
