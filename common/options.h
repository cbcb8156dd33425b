/*
 * The options: one struct, and one table from which parsing, --help, the README's table and range
 * errors come.
 *
 * The launcher parses; the result travels in the control file. Nothing here calls getopt: the
 * struct has no pointers.
 */
#ifndef XS_OPTIONS_H
#define XS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define XS_PATH_MAX  1024
#define XS_NAMES_MAX 16384
#define XS_CALLS_MAX 1024

/* Exit statuses of env(1) and its like. */
enum { XS_EXIT_SELF = 125, XS_EXIT_NOT_RUNNABLE = 126, XS_EXIT_NOT_FOUND = 127 };

enum xs_compress { XS_COMPRESS_NONE, XS_COMPRESS_ZSTD };
enum xs_format { XS_FORMAT_CHROME, XS_FORMAT_KINETO, XS_FORMAT_KINETO_HTA, XS_FORMAT_PERFETTO };
enum xs_report_format { XS_REPORT_TEXT, XS_REPORT_JSON, XS_REPORT_CSV };

struct xs_options {
	bool host_timing;
	bool device_timing;
	bool kernel_submission;
	bool device_timeline;
	bool call_logging;
	bool chrome_call;
	bool chrome_kernel;
	bool chrome_device;
	bool chrome_itt;
	bool chrome_ccl;
	bool chrome_dnn;
	bool chrome_mpi;
	bool chrome_openmp, openmp_report;
	bool chrome_sycl;
	bool metric_query, metric_sampling, stall_sampling, idle_sampling;
	bool ccl_summary;
	bool start_paused;
	bool on_demand;
	bool stacks_on_crash;
	bool no_thread_on_device;
	bool no_engine_on_device;
	bool verbose;
	bool demangle;
	bool separate_tiles; /* gpu/: a record for each tile that worked */
	bool show_tid, show_pid;
	bool opencl;	  /* accepted for unitrace's sake: OpenCL is traced anyway */
	bool system_time; /* accepted for unitrace's sake */
	bool once;	  /* --top: one picture */
	bool show_version;
	uint32_t on_full;	/* enum xs_on_full */
	uint32_t compress;	/* enum xs_compress */
	uint32_t format;	/* of the trace: enum xs_format */
	uint32_t report_format; /* enum xs_report_format */
	uint64_t ring_size;	/* bytes, a power of two once parsed */
	uint64_t backlog;	/* bytes; 0: none */
	uint64_t backlog_disk;	/* bytes beyond these, on disk; 0: none */
	uint64_t buffer_events; /* UINT64_MAX: not given */
	/* 0: the application's own process alone; 1: descendants too (default) */
	uint32_t follow_children;
	/* accepted for unitrace's sake: events are the application's alone */
	uint32_t reset_event;
	uint64_t sampling_interval; /* of metrics, us */
	uint64_t teardown_signal;   /* accepted for unitrace's sake: traces survive every end */
	uint64_t system_metrics;    /* ms between two samples; 0: none */
	uint64_t call_stacks;	    /* frames per call; 0: not wanted */
	uint64_t delay, duration;   /* ns; 0: not given */
	uint64_t watchdog;	    /* ns without a record; 0: not wanted */
	/* --flight-recorder: ns of history and bytes for it; 0: not given */
	uint64_t flight, flight_memory;
	char iterations[XS_PATH_MAX]; /* "name:first-last" */
	char trigger[XS_PATH_MAX];    /* "task:name>50ms" or "marker:name" */
	char session[XS_PATH_MAX];
	/* of a session */
	char pause[XS_PATH_MAX], resume[XS_PATH_MAX], stop[XS_PATH_MAX], dump[XS_PATH_MAX];
	char stacks[XS_PATH_MAX];
	char attach[16]; /* a pid; empty: not wanted */
	char top[160];	 /* a session, or "*"; empty: not wanted */
	char export[1024];
	char open[1024];
	char devices[XS_PATH_MAX]; /* as ranks */
	/* --devices-to-sample: a bit for each, in the API's order; set by the launcher */
	uint64_t opencl_devices, level_zero_devices, cuda_devices;
	bool device_list, metric_list;
	bool doctor, json;	 /* json: of --doctor, and of --top --once */
	char ranks[XS_PATH_MAX]; /* "0,3,8-15" */
	char metric_group[XS_PATH_MAX];
	char cpu_metrics[XS_PATH_MAX]; /* events, "default"; empty: not wanted */
	/* a bit for each event (cpu_events.h): of the application, of its tasks; set by the
	 * launcher */
	uint32_t cpu_events, cpu_events_of_tasks;
	char python_stacks[XS_PATH_MAX]; /* modules, "all"; empty: not wanted */
	char output[XS_PATH_MAX];
	char output_dir[XS_PATH_MAX]; /* --result-dir's too */
	char result_dir[XS_PATH_MAX];
	char kmd_script[XS_PATH_MAX];
	char recover[XS_PATH_MAX];
	char show_help[64]; /* a topic, "all"; empty: not wanted */
	uint32_t has_names; /* one of the five below is not empty; nobody looks at them else */
	/*
	 * as given; the launcher makes pieces of names of them and of what is in the files, each
	 * with its NUL, and an empty one behind the last
	 */
	char include_kernels[XS_NAMES_MAX + 1], exclude_kernels[XS_NAMES_MAX + 1];
	/* likewise; small, as an application starts with the launcher's RLIMIT_DATA */
	char exclude_calls[XS_CALLS_MAX + 1];
	/* paths, likewise */
	char include_kernels_files[XS_NAMES_MAX + 1], exclude_kernels_files[XS_NAMES_MAX + 1];
};

/* An option that is given again: the last one counts, or they add up. */
enum xs_repeat { XS_LAST, XS_COMMA, XS_LINES, XS_TEXTS };

enum xs_option_type {
	XS_OPT_FLAG,
	XS_OPT_COUNT,
	XS_OPT_MAYBE_COUNT,
	XS_OPT_SIZE,
	XS_OPT_TIME,
	XS_OPT_CHOICE,
	XS_OPT_TEXT,
	XS_OPT_MAYBE_TEXT,
	XS_OPT_CHECKED
};

struct xs_option {
	char letter; /* 0: none */
	const char *name;
	enum xs_option_type type;
	size_t offset;	      /* in struct xs_options */
	const char *argument; /* shown in the help; NULL for flags */
	/*
	 * MAYBE_COUNT, MAYBE_TEXT: its value where none is given; COUNT: a word for UINT64_MAX, or
	 * NULL; CHOICE: "block|drop", index = value; CHECKED: what it takes, in words
	 */
	const char *choices;
	/* COUNT, SIZE; TIME in ns; TEXT, CHECKED: bytes with the terminating 0 */
	uint64_t low, high;
	bool (*valid)(const char *text); /* CHECKED */
	const char *help;
	enum xs_repeat adds; /* TEXT, CHECKED */
};

extern const struct xs_option xs_option_table[];
extern const size_t xs_option_count;

void xs_options_default(struct xs_options *options);
/*
 * The names, which are most of the struct and hardly ever given, only if they are: the kernel would
 * clear 16 pages for them, here and wherever the copy is.
 */
void xs_options_copy(struct xs_options *to, const struct xs_options *from);

/*
 * Of options that somebody may have overwritten: each that no command line could have given (a
 * number out of its range, no choice, a text without an end) becomes its default. False: there were
 * some. What a text says is not looked at.
 */
bool xs_options_mend(struct xs_options *options);

/* A sum of all that they say, never 0: against accidents, not against who means it. */
uint64_t xs_options_sum(const struct xs_options *options);

/*
 * Parses argv[1..] up to the application's name; *ret_app is its index (argc when there is none).
 * Returns 0, or -EINVAL with one line that says what is wrong in `error`.
 */
int xs_options_parse(struct xs_options *options, int argc, char **argv, int *ret_app, char *error,
		     size_t error_size);

/* Edits (insert, delete, replace) between a and b, for "did you mean"; both are short. */
size_t xs_edit_distance(const char *a, const char *b, size_t b_length);

/* "1.5s", "20ms", "500us", "2m", "30" (seconds): in ns. 0 or -EINVAL. */
int xs_parse_time(const char *text, uint64_t *ret_ns);

/*
 * Is the number in a list that --ranks-to-sample and --devices-to-sample take? And the highest one
 * in it.
 */
bool xs_is_listed(const char *list, uint64_t number);
uint64_t xs_highest_listed(const char *list);

/* What the options ask for; the rest of the program asks here instead of adding up flags. */
bool xs_want_chrome(const struct xs_options *options);
bool xs_want_reports(const struct xs_options *options);	 /* any of them */
bool xs_want_itt(const struct xs_options *options);	 /* of any domain */
bool xs_listen_to_itt(const struct xs_options *options); /* that, or __itt_resume() alone */
bool xs_want_all_itt(const struct xs_options *options);	 /* of all domains */
/* May somebody look into the run's processes (--stacks, --watchdog, --stacks-on-crash)? */
bool xs_want_stacks(const struct xs_options *options);
bool xs_want_openmp(const struct xs_options *options);
bool xs_want_hardware(const struct xs_options *options);
/* Of which metrics: --group, or unitrace's default. */
const char *xs_metric_group(const struct xs_options *options);
/* Are samples of instructions wished for (EuStallSampling)? */
bool xs_want_stalls(const struct xs_options *options);
/* us between two samples of a device: --sampling-interval, or unitrace's default. */
uint64_t xs_sampling_interval(const struct xs_options *options);
bool xs_want_calls(const struct xs_options *options);	 /* every host API call */
bool xs_want_enqueues(const struct xs_options *options); /* the calls that put work on a device */
/* the calls that have to do with such work: make, submit, wait */
bool xs_want_kernel_calls(const struct xs_options *options);
bool xs_want_device(const struct xs_options *options); /* device work */

/*
 * Prints the help: all of it (topic is NULL or "all"), the list of topics ("topics"), one topic
 * with examples, or one option by its name. NULL; where there is no such topic, what was meant most
 * likely, and nothing is printed.
 */
const char *xs_options_help(FILE *out, const char *topic);

#endif
