/*
 * What the files of libxstrace-api know together. Nobody else includes it.
 */
#ifndef XS_LIBRARY_STATE_H
#define XS_LIBRARY_STATE_H

#include <limits.h>
#include <pthread.h>
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

/* All but `table`, `step` and `recording` is read and changed with the lock held. */
struct xs_state_of_library {
	pthread_mutex_t lock;
	enum xs_how how;
	const char *why_off;
	pid_t pid; /* that has looked: a child of fork is another */
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
	uint32_t activities; /* never 0 */
	enum xstrace_state state;
	uint64_t filter; /* a bit for each type; 0: all */
	char trace_id[128], metrics[1024];
	bool profile_memory;
	xstrace_post_process post_process;
	void *post_process_user;
	/* a hosted run (host.c) */
	char run_directory[PATH_MAX];
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

/* Notes why, for xstrace_why(), and returns `result`. */
int xs_refuse(int result, const char *format, ...) HIDDEN __attribute__((format(printf, 2, 3)));

/* With the lock held. Finds out how the process is traced; XSTRACE_OK or XSTRACE_OFF. */
int xs_library_look(void) HIDDEN;
/* Is this a child of fork, which is not traced? Before the lock: the parent may have held it. */
bool xs_is_child(void) HIDDEN;

static inline const struct xs_library *xs_table_of_library(void)
{
	return atomic_load_explicit(&xs_library.table, memory_order_relaxed);
}

/* ---- host.c: a run of the program's own; with the lock held ---- */

/* Begins it: XSTRACE_OK, or why not. `options`: as in struct xstrace_config. */
int xs_host_begin(const char *options, const char *directory, bool devices) HIDDEN;
int xs_host_record(bool on) HIDDEN;
/* The same at the beginning of a trace: one that is recorded for dynolog ends. */
int xs_host_start(void) HIDDEN;
/* Ends the trace; `path`, of PATH_MAX bytes: where it is. */
int xs_host_cut(char *path) HIDDEN;

/* ---- trace.c ---- */

/* Takes `path` over: the file is removed with the trace unless it is saved. NULL: no memory. */
struct xstrace_trace *xs_trace_open(const char *path, bool joined) HIDDEN;
void xs_trace_post_process(const struct xstrace_trace *trace) HIDDEN;

/* ---- list.c ---- */

/* From ns since 1970 to ns of CLOCK_MONOTONIC, as the run has them. */
uint64_t xs_monotonic_of(int64_t time) HIDDEN;

#endif
