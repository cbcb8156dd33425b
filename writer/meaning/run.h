/*
 * The run, as the drain process has it: its directory, its clock, its options. One for the whole
 * drain process.
 */
#ifndef XS_RUN_H
#define XS_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "options.h"
#include "shm.h"
#include "strtab.h"

#define XS_FILTERED 256u /* kernels, and functions, whose answer is remembered */

/* What a trace says about the dump that it belongs to. */
struct xs_dump {
	uint32_t number, reasons; /* from 1; enum xs_dump_reason */
	/* ns of the trace: all that a process recorded in between is there */
	uint64_t from, to;
	bool cut; /* there was no memory for the whole time */
};

struct xs_run {
	char dir[PATH_MAX];
	int directory;		    /* the same, opened: its files are found by it alone */
	struct xs_control *control; /* the launcher's and ours */
	/* as the launcher made it, before any process could spoil it */
	const struct xs_control *made;
	struct xs_mailbox *mailbox; /* every traced process can write there */
	/* of the files that all processes share, when the run began; 0: not known (shared.h) */
#define XS_SHARED_FILES 3
	uint64_t shared_inodes[XS_SHARED_FILES];
	const struct xs_options *options;
	struct xs_options copied_options;
	char *bases[2]; /* by enum xs_base (below.h); NULL: not resolved yet */
	char run_id[sizeof(((struct xs_control *)0)->run_id)];
	int32_t rank; /* -1: unknown */
	char command[sizeof(((struct xs_control *)0)->command)];
	uint32_t command_length; /* bytes of `command` */
	char arguments[sizeof(((struct xs_control *)0)->arguments)];
	char variable[XS_ENV_RUN_MAX]; /* the value of XS_ENV_RUN in its processes */
	int32_t launcher_pid, app_pid; /* 0: not yet known */
	bool app_not_traced;	       /* the launcher has said why already */
	/* the start time of the program that has begun this run for itself; 0: the launcher did */
	uint64_t hosted_start;
	bool cuts;	  /* one trace comes after the other: a hosted run, or --on-demand */
	bool owns_output; /* its directory of traces was made for it */
	int channel;	  /* our end, to the launcher; -1: recovering */
	bool use_tsc;
	const struct xs_strings *strings;
	uint64_t strings_size;
	struct xs_timeline clock, raw; /* of ticks, of CLOCK_MONOTONIC_RAW */
	/* tick: no event is older; a timeline that is restored begins later */
	uint64_t began;
	/* ns since the epoch that the traces' times count from: the start of the run's day */
	uint64_t base;
	char host[64];
	uint64_t descriptors; /* how many may be open; 0: unknown */
	int64_t date_offset;  /* of CLOCK_REALTIME to CLOCK_BOOTTIME, the least seen */
	bool recovering;
	bool copied; /* recovering: in a copy of the run's directory, whose files are others */
	/* recovering: a trace is not the file that was being written; a line has said so */
	bool refused;
	bool disk_error_told;
	bool incomplete;      /* --recover: something is missing, and it has been said */
	bool again;	      /* --recover: it could not write all, and can be tried again */
	bool wrote_something; /* a trace or report, of any process */
	bool saw_application; /* its process has come */
	bool saw_python;      /* an interpreter of Python's, likewise */
	bool saw_openmp;      /* a runtime of OpenMP's, in any process */
	/* process.c: whose file could not be removed, and is not to be met again */
	struct xs_met {
		uint32_t serial;
		int32_t pid;
	} *met;
	uint32_t met_count;
	struct xs_symbols *symbols; /* symbols.c; NULL: none yet */
	/* demangle.c: kernels' name ids << 1 | wanted, by their last bits */
	uint32_t filtered[XS_FILTERED];
	uint32_t filtered_calls[XS_FILTERED]; /* functions, likewise */
	/* names.c: copies of the strings that were asked for; NULL: none yet */
	struct xs_texts *texts;
	/* places.c: of texts that say where something is; NULL: they stay without */
	char *(*place_text)(struct xs_run *run, const char *text, uint32_t *length);
	bool placing;		    /* it is at work: a file's path is no such text */
	struct xs_samples *samples; /* what devices were sampled (samples.c); NULL: nothing yet */
	/* kernels of processors, and what those have counted (processors.c); NULL: nothing yet */
	struct xs_processors *processors;
	struct xs_backlog *backlog; /* NULL: there is to be none */
	struct xs_flight *flight;   /* NULL: records become text as they are read */
	struct xs_demand *demand;   /* --on-demand; NULL: traces begin without being asked for */
	struct xs_live *live;	    /* what --top shows; NULL: nobody looks */
	const struct xs_dump *dump; /* the flight recorder's newest one; NULL: it has none */
	/*
	 * who wants to know of each trace that is complete, and may give it another path (of
	 * PATH_MAX bytes); NULL: nobody
	 */
	void (*trace_written)(struct xs_run *run, char *path);
};

/* May the descriptor be kept? A few are held back, for looking into the run directory and /proc. */
static inline bool xs_run_can_spare(const struct xs_run *run, int fd)
{
	return !run->descriptors || (uint64_t)fd + 4 < run->descriptors;
}

#endif
