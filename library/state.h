/*
 * What the files of libxstrace-api know together. Nobody else includes it.
 */
#ifndef XS_LIBRARY_STATE_H
#define XS_LIBRARY_STATE_H

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "library.h"
#include "shm.h"
#include "xstrace/xstrace.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* How the process is traced. */
enum xs_how {
	XS_HOW_UNKNOWN,	 /* nobody has looked */
	XS_HOW_OFF,	 /* it is not, and will not be */
	XS_HOW_LAUNCHED, /* xstrace has started it: the run is the launcher's */
	XS_HOW_ALONE,	 /* it may begin a run of its own */
	XS_HOW_HOSTED,	 /* it has */
};

/* How a thread could be cancelled before. */
struct xs_cancelled {
	int state, type;
};

/*
 * Around the writing of files: the thread is not cancelled there, and a file that grows beyond
 * RLIMIT_FSIZE is an error (SIGXFSZ stays away).
 */
struct xs_calm {
	struct xs_cancelled cancelled;
	sigset_t signals;
	bool was_pending;
};

/* Its holder is not cancelled: nobody would give it back. */
struct xs_api_lock {
	pthread_mutex_t mutex;
	struct xs_cancelled cancelled; /* of the holder */
};

/* All but what is atomic is read and changed with the lock held. */
struct xs_state_of_library {
	struct xs_api_lock lock;
	enum xs_how how;
	const char *_Atomic why_off; /* NULL, unless XS_HOW_OFF */
	/* who has taken a lock first: a child of fork is another */
	_Atomic pid_t pid;
	/* functions of libxstrace.so; those that do nothing where nothing is traced */
	const struct xs_library *_Atomic table;
	bool registered, prepared;
	_Atomic bool recording;
	struct xs_companion_functions {
		bool (*begin)(const char *variable);
		const struct xs_control *(*control)(void);
		const struct xs_library *(*library)(void);
	} collector;
	/* what is prepared */
	uint32_t activities;	/* never 0 */
	_Atomic uint32_t state; /* enum xstrace_state; read without the lock */
	uint32_t off;		/* of them, switched off for now */
	uint64_t filter;	/* a bit for each type; 0: all */
	char trace_id[128], metrics[1024];
	bool profile_memory;
	xstrace_post_process post_process;
	void *post_process_user;
	/* a hosted run (host.c) */
	char run_directory[PATH_MAX];
	/* by xstrace_prepare(), with these options and this directory; NULL: none */
	bool run_prepared;
	char *run_given[2];
	bool has_devices;   /* the run was begun with them */
	bool lacks_devices; /* the trace is to have them all the same */
	struct xs_control *control;
	struct xs_mailbox *mailbox;
	pid_t main_thread;
	uint32_t children; /* threads that said that they are enabled */
	_Atomic uint64_t step;
	_Atomic bool in_step;
};
extern struct xs_state_of_library xs_library HIDDEN;

#define XS_IDS_MAX 256u

/* Ids that are pushed: what is deeper than the array counts alone. */
struct xs_ids {
	uint32_t depth;
	uint64_t id[XS_IDS_MAX];
};

struct xs_of_thread {
	char why[512]; /* the last call was refused; empty: none was */
	struct xs_ids correlation, user_correlation;
};
/* Of the calling thread, as long as it lives. NULL: no memory. */
struct xs_of_thread *xs_of_thread(void) HIDDEN;

/*
 * Notes why, for xstrace_why(), and returns `result`. Where the library is off, that is what is
 * said in place of a mistake of the program's: a program that goes by the results sees none then.
 */
int xs_refuse(int result, const char *format, ...) HIDDEN __attribute__((format(printf, 2, 3)));

void xs_calm_begin(struct xs_calm *ret) HIDDEN;
void xs_calm_end(const struct xs_calm *calm) HIDDEN;

/*
 * The only way to take a lock of the library. XSTRACE_OFF, and no lock: this is a child of fork;
 * its parent may have held it. Nothing of the caller's may jump or be cancelled until it is given
 * back.
 */
int xs_lock(struct xs_api_lock *lock) HIDDEN;
/* Gives it back. Returns `result`. */
int xs_unlock(struct xs_api_lock *lock, int result) HIDDEN;

/* With the lock held. Finds out how the process is traced; XSTRACE_OK or XSTRACE_OFF. */
int xs_library_look(void) HIDDEN;
/* Is this a child of fork, which is not traced? */
bool xs_is_child(void) HIDDEN;

static inline const struct xs_library *xs_table_of_library(void)
{
	return atomic_load_explicit(&xs_library.table, memory_order_relaxed);
}

/* ---- host.c: a run of the program's own; with the lock held ---- */

/* Begins it: XSTRACE_OK, or why not. `options`: as in struct xstrace_config. */
int xs_host_begin(const char *options, const char *directory, bool devices) HIDDEN;
/* Recording, or a part of it, goes on or stops. */
int xs_host_switch(enum xs_pause_reason what, bool on) HIDDEN;
/* The same at the beginning of a trace: one that is recorded for dynolog ends. */
int xs_host_start(void) HIDDEN;
/*
 * Ends the trace: xs_host_open() first, which fails where there are no descriptors for that, and
 * then nothing has changed. `path`, of PATH_MAX bytes: where the trace is.
 */
struct xs_host_files {
	int directory, spare;
};
int xs_host_open(struct xs_host_files *ret) HIDDEN;
int xs_host_cut(struct xs_host_files *files, char *path) HIDDEN;

/* ---- trace.c ---- */

/* Takes `path` over: the file is removed with the trace unless it is saved. NULL: no memory. */
struct xstrace_trace *xs_trace_open(const char *path, bool joined) HIDDEN;
/* A device or a pipe is none. */
bool xs_is_file(int fd) HIDDEN;
void xs_trace_post_process(const struct xstrace_trace *trace, xstrace_post_process function,
			   void *user) HIDDEN;

/* ---- memory.c ---- */

int xs_memory_start(void) HIDDEN;

/* ---- list.c ---- */

/* From ns since 1970 to ns of CLOCK_MONOTONIC, as the run has them. */
uint64_t xs_monotonic_of(int64_t time) HIDDEN;

#endif
