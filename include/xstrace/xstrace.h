/*
 * xstrace as a library: a program that traces itself.
 *
 *	xstrace_prepare(NULL);
 *	xstrace_start();
 *	xstrace_range_push("step");
 *	...
 *	xstrace_range_pop();
 *	struct xstrace_trace *trace;
 *	if (xstrace_stop(&trace) == XSTRACE_OK)
 *		xstrace_trace_save(trace, "trace.json");
 *	xstrace_trace_free(trace);
 *
 * Under the launcher (`xstrace [options] app`) the events join the launcher's trace, and a trace
 * that is stopped says where that is. Without it xstrace_start() begins a run of this program's
 *own: rings, and a drain process that writes the trace.
 *
 * Where xstrace is not installed, or is switched off (XSTRACE_DISABLE in the environment), every
 * function from the first xstrace_register() or xstrace_start() on returns XSTRACE_OFF or nothing,
 * and xstrace_why() says why. Where a run cannot begin, what would begin it does so. A program that
 * is to be built without xstrace includes xstrace/stub.h.
 *
 * Threads: every function may be called by any thread at any time, unless it says otherwise. None
 * may be called from a signal handler but the ranges, marks and counters. After fork() the child is
 * not traced, and its calls do nothing; what the parent has started is the parent's.
 *
 * Times are ns of CLOCK_REALTIME since 1970 (xstrace_now()), as PyTorch has them. Texts are UTF-8
 *and are copied. A name is shown up to 16,384 bytes.
 */
#ifndef XSTRACE_H
#define XSTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* a jump less for each call; they are bound when the program starts */
#define XSTRACE_NOPLT
#ifdef __has_attribute
#if __has_attribute(noplt)
#undef XSTRACE_NOPLT
#define XSTRACE_NOPLT , noplt
#endif
#endif
#define XSTRACE_API __attribute__((visibility("default") XSTRACE_NOPLT))

/* ---- results ---- */

enum xstrace_result {
	XSTRACE_OK = 0,
	XSTRACE_OFF,	      /* nothing is traced here: xstrace_why() */
	XSTRACE_JOINED,	      /* the events are in the launcher's trace, there is none of its own */
	XSTRACE_BAD_STATE,    /* not started, started twice, saved twice, … */
	XSTRACE_BAD_ARGUMENT, /* NULL where there must be something, an unknown number or option */
	XSTRACE_NO_MEMORY,
	XSTRACE_IO,	/* a file: errno says what */
	XSTRACE_TIMEOUT /* the drain process did not answer in time */
};

/* A constant text for a result. */
XSTRACE_API const char *xstrace_result_text(int result);
/*
 * One line: why the last call of this thread that did not return XSTRACE_OK did not, or why nothing
 * is traced. Valid until the thread's next call. Never NULL.
 */
XSTRACE_API const char *xstrace_why(void);
/* "0.1.0" */
XSTRACE_API const char *xstrace_version(void);
/* ns since 1970, as all times of this interface. Usable in a signal handler. */
XSTRACE_API int64_t xstrace_now(void);

/* ---- what can be traced ---- */

/* Whose activities a trace has: bits of xstrace_config.activities. */
enum xstrace_activities {
	XSTRACE_CPU = 1,
	XSTRACE_XPU = 2, /* Level Zero, OpenCL */
	XSTRACE_CUDA = 4,
	XSTRACE_MTIA = 8, /* what the program adds itself, as for the next two */
	XSTRACE_HPU = 16,
	XSTRACE_PRIVATEUSE1 = 32,
	XSTRACE_ALL = 63
};

/* Kinds of activities, with Kineto's numbers and names (xstrace_type_name()). */
enum xstrace_type {
	XSTRACE_CPU_OP = 0,
	XSTRACE_USER_ANNOTATION,
	XSTRACE_GPU_USER_ANNOTATION,
	XSTRACE_GPU_MEMCPY,
	XSTRACE_GPU_MEMSET,
	XSTRACE_CONCURRENT_KERNEL,
	XSTRACE_EXTERNAL_CORRELATION,
	XSTRACE_CUDA_RUNTIME,
	XSTRACE_CUDA_DRIVER,
	XSTRACE_CPU_INSTANT_EVENT,
	XSTRACE_PYTHON_FUNCTION,
	XSTRACE_OVERHEAD,
	XSTRACE_MTIA_RUNTIME,
	XSTRACE_MTIA_CCP_EVENTS,
	XSTRACE_MTIA_INSIGHT,
	XSTRACE_CUDA_SYNC,
	XSTRACE_CUDA_EVENT,
	XSTRACE_MTIA_COUNTERS,
	XSTRACE_GLOW_RUNTIME,
	XSTRACE_CUDA_PROFILER_RANGE,
	XSTRACE_HPU_OP,
	XSTRACE_XPU_RUNTIME,
	XSTRACE_XPU_DRIVER,
	XSTRACE_COLLECTIVE_COMM,
	XSTRACE_PRIVATEUSE1_RUNTIME,
	XSTRACE_PRIVATEUSE1_DRIVER,
	XSTRACE_XPU_SCOPE_PROFILER,
	XSTRACE_XPU_SYNC,
	XSTRACE_HARDWARE_COUNTERS,
	XSTRACE_TYPES
};
/* "cpu_op", …, as they stand in a trace's "cat"; NULL: no such type. */
XSTRACE_API const char *xstrace_type_name(int type);
/* The type of a name; -1: there is none. */
XSTRACE_API int xstrace_type_of(const char *name);

enum xstrace_device_type {
	XSTRACE_DEVICE_CPU = 0,
	XSTRACE_DEVICE_CUDA = 1,
	XSTRACE_DEVICE_XPU = 12,
	XSTRACE_DEVICE_HPU = 18,
	XSTRACE_DEVICE_MTIA = 19,
	XSTRACE_DEVICE_PRIVATEUSE1 = 20
};
/*
 * The kind of device on which activities of a type are (numbers: PyTorch's c10::DeviceType). After
 * xstrace_set_privateuse1() types that CUDA shares with others are XSTRACE_DEVICE_PRIVATEUSE1. An
 * unknown type is XSTRACE_DEVICE_CPU.
 */
XSTRACE_API int xstrace_device_type_of(int type);
/* The program's own device back-end takes the place of CUDA in the above. */
XSTRACE_API void xstrace_set_privateuse1(bool in_use);

/* States of a profiler, and what is active, with PyTorch's numbers. */
enum xstrace_state {
	XSTRACE_STATE_DISABLED = 0,
	XSTRACE_STATE_CPU,
	XSTRACE_STATE_CUDA,
	XSTRACE_STATE_NVTX,
	XSTRACE_STATE_ITT,
	XSTRACE_STATE_PRIVATEUSE1,
	XSTRACE_STATE_KINETO,
	XSTRACE_STATE_KINETO_GPU_FALLBACK,
	XSTRACE_STATE_KINETO_PRIVATEUSE1_FALLBACK,
	XSTRACE_STATE_KINETO_ONDEMAND
};
enum xstrace_profiler_type {
	XSTRACE_PROFILER_NONE = 0,
	XSTRACE_PROFILER_LEGACY,
	XSTRACE_PROFILER_KINETO,
	XSTRACE_PROFILER_NVTX,
	XSTRACE_PROFILER_ITT,
	XSTRACE_PROFILER_PRIVATEUSE1
};
/* Where an event comes from, with PyTorch's numbers (at::RecordScope). */
enum xstrace_scope {
	XSTRACE_SCOPE_FUNCTION = 0,
	XSTRACE_SCOPE_BACKWARD_FUNCTION,
	XSTRACE_SCOPE_TORCHSCRIPT_FUNCTION,
	XSTRACE_SCOPE_KERNEL_FUNCTION_DTYPE,
	XSTRACE_SCOPE_CUSTOM_CLASS,
	XSTRACE_SCOPE_BUILD_FEATURE,
	XSTRACE_SCOPE_LITE_INTERPRETER,
	XSTRACE_SCOPE_USER_SCOPE,
	XSTRACE_SCOPE_STATIC_RUNTIME_OP,
	XSTRACE_SCOPE_STATIC_RUNTIME_MODEL,
	XSTRACE_SCOPES
};

/* ---- life ---- */

struct xstrace_config {
	size_t size;		  /* sizeof(struct xstrace_config): later versions may have more */
	uint32_t activities;	  /* bits of enum xstrace_activities; 0: all */
	enum xstrace_state state; /* 0: XSTRACE_STATE_KINETO */
	bool cpu_only;		  /* nothing of devices, whatever `activities` says */
	/*
	 * types (their names, commas between) that alone are in xstrace_trace_event()'s list; NULL:
	 * all
	 */
	const char *filter;
	const char *trace_id; /* NULL: xstrace makes one */
	/*
	 * Options of `xstrace`, blanks between, beside those that `activities` means: see
	 * docs/OPTIONS.md. NULL: none, or as before. Those that say when to record, that are
	 * commands, and those that a launcher sees to (hardware metrics, --system-metrics,
	 * --export,
	 * --watchdog) are refused. Under the launcher they have no effect.
	 */
	const char *options;
	/* where traces lie until they are saved; NULL: $TMPDIR or /tmp, or as before */
	const char *directory;
	/* metrics of a device's hardware: not measured yet; told in the trace's metadata */
	const char *const *metrics;
	size_t metric_count;
	bool measure_per_kernel;
	bool cuda_sync_events; /* waits for streams and events are activities, too */
	bool profile_memory;   /* xstrace_memory_start() at once */
};

/*
 * Makes the library known in this process, and looks for the collector. Again: nothing. Before the
 * program's first use of OpenCL, CUDA or ITT: these load what traces them once, at that time.
 */
XSTRACE_API int xstrace_register(void);
XSTRACE_API bool xstrace_is_registered(void);
/* Loads the collector. cpu_only: nothing of devices. Implies xstrace_register(). */
XSTRACE_API int xstrace_initialize(bool cpu_only);
XSTRACE_API bool xstrace_is_initialized(void);
/*
 * Says what the next trace is to have. config NULL: everything. Implies xstrace_initialize(). What
 * is prepared again, without a start in between, is replaced as a whole. But the first prepare()
 * of a process begins its run: other options or another directory later are XSTRACE_BAD_STATE, and
 * what was prepared before stays. While a trace is being recorded: XSTRACE_BAD_STATE.
 */
XSTRACE_API int xstrace_prepare(const struct xstrace_config *config);
/*
 * Begins to record. Implies xstrace_prepare(NULL) where nothing is prepared. What the calling
 * thread is in is not in the trace, unless it ends later.
 */
XSTRACE_API int xstrace_start(void);
/*
 * Ends recording; *ret: the trace, to be freed by xstrace_trace_free(), also when XSTRACE_JOINED is
 * returned. On any other result it is NULL. XSTRACE_IO: the process has no descriptors left for
 * this, or no right to the run's files any more; then recording goes on if xstrace_is_active(). Or
 * there is no file: no room for it, or somebody has removed it.
 */
struct xstrace_trace;
XSTRACE_API int xstrace_stop(struct xstrace_trace **ret);
/* Is a trace being recorded? */
XSTRACE_API bool xstrace_is_active(void);
/* While a trace is recorded: its state's profiler, else XSTRACE_PROFILER_NONE. */
XSTRACE_API enum xstrace_profiler_type xstrace_active_profiler(void);
/*
 * Within a trace: stops and goes on recording. `activities`, bits of enum xstrace_activities: all
 * that the trace has (recording as a whole), or parts. XSTRACE_CPU: what the program says itself;
 * ranges that are open then end in the trace. XSTRACE_XPU, XSTRACE_CUDA: their calls, and device
 * work that is launched meanwhile. XSTRACE_BAD_STATE: no trace is being recorded; XSTRACE_JOINED:
 * the launcher's is not the program's to control.
 */
XSTRACE_API int xstrace_toggle_collection(bool on, uint32_t activities);
/*
 * A profiler that is enabled for the main thread (xstrace_start()) records every thread; these are
 * for programs that say so for each. The child's are counted: XSTRACE_BAD_STATE where disable comes
 * without enable, or nothing is recorded.
 */
XSTRACE_API int xstrace_enable_in_child_thread(void);
XSTRACE_API int xstrace_disable_in_child_thread(void);
XSTRACE_API bool xstrace_is_enabled_in_main_thread(void);
/* Called for each event of the trace by xstrace_stop(), before it returns; NULL: none. */
struct xstrace_event;
typedef void (*xstrace_post_process)(const struct xstrace_event *event, void *user);
XSTRACE_API int xstrace_start_with_post_process(xstrace_post_process function, void *user);

/* ---- a trace ---- */

/*
 * Gives the trace its name: a Chrome JSON file (with --format kineto among the options: Kineto's).
 * Once: then XSTRACE_BAD_STATE, for whichever of two threads comes second, too. XSTRACE_JOINED: it
 * is the launcher's. XSTRACE_IO: nothing that is cut stays under that name, and the trace can be
 * saved again.
 */
XSTRACE_API int xstrace_trace_save(struct xstrace_trace *trace, const char *path);
/* Where it lies now; NULL where there is no file. Valid as long as the trace. */
XSTRACE_API const char *xstrace_trace_path(const struct xstrace_trace *trace);
/* NULL is allowed. A trace that was not saved is removed. */
XSTRACE_API void xstrace_trace_free(struct xstrace_trace *trace);

struct xstrace_event {
	const char *name;  /* valid as long as the trace */
	int64_t start;	   /* ns since 1970 */
	uint64_t duration; /* ns; 0: an instant */
	/* the same for work on a device and the call that has launched it; 0: none */
	uint64_t correlation;
	/*
	 * the newest of xstrace_push_correlation(), of its user variant, when the event ended; 0:
	 * none
	 */
	uint64_t external, user_external;
	int64_t device;	     /* number of the device; of activities on the host the process id */
	int64_t resource;    /* the queue or stream; on the host the thread's id */
	uint64_t bytes;	     /* that were moved; 0: none */
	int32_t type;	     /* enum xstrace_type */
	int32_t device_type; /* enum xstrace_device_type */
};
/*
 * How many there are. 0 also where there was no room for their list (a full disk): then
 * xstrace_trace_event() returns XSTRACE_IO.
 */
XSTRACE_API size_t xstrace_trace_count(const struct xstrace_trace *trace);
/*
 * Event number `index`. Those of one thread are in the order in which they ended; those of several
 * threads, of devices, and activities of the program's own come as the drain process has read them.
 */
XSTRACE_API int xstrace_trace_event(const struct xstrace_trace *trace, size_t index,
				    struct xstrace_event *ret);

/* ---- while it is recorded: ranges, marks, counters ---- */

/* A range of the thread; ranges nest. They are ITT tasks of the domain "xstrace". */
XSTRACE_API void xstrace_range_push(const char *name);
XSTRACE_API void xstrace_range_pop(void);
/* A name that is used again and again, looked up once. It lives as long as the process. */
struct xstrace_name;
XSTRACE_API const struct xstrace_name *xstrace_get_name(const char *name);
XSTRACE_API void xstrace_range_push_name(const struct xstrace_name *name);
/* Something without duration. */
XSTRACE_API void xstrace_mark(const char *name);
/* The value of a counter from now on. */
XSTRACE_API void xstrace_counter(const char *name, double value);
/*
 * The next step of the program begins: "ProfilerStep#N", till the next one or the stop. N counts
 * the calls from 0 on, those that nobody records, too; or the program says it.
 */
XSTRACE_API void xstrace_step(void);
XSTRACE_API void xstrace_step_number(uint64_t number);

/* ITT's: the same ranges, by the words of PyTorch's ITT wrapper. */
XSTRACE_API bool xstrace_itt_available(void);
XSTRACE_API void xstrace_itt_range_push(const char *name);
XSTRACE_API void xstrace_itt_range_pop(void);
XSTRACE_API void xstrace_itt_mark(const char *name);
/* The domain of these, an __itt_domain *; made once. NULL where nothing is traced. */
XSTRACE_API void *xstrace_itt_domain(void);
/* An __itt_string_handle *, always the same for a name. NULL where nothing is traced. */
XSTRACE_API void *xstrace_itt_string_handle(const char *name);

/* ---- ids that tie events together ---- */

/* What the thread does from here on belongs to the program's event of this number. They nest. */
XSTRACE_API void xstrace_push_correlation(uint64_t id);
XSTRACE_API void xstrace_pop_correlation(void);
/* The same for ranges of the user's. */
XSTRACE_API void xstrace_push_user_correlation(uint64_t id);
XSTRACE_API void xstrace_pop_user_correlation(void);
/* The thread's name is read again, and its track is there even if it records nothing else. */
XSTRACE_API void xstrace_record_thread_info(void);
/* This process and thread, as activities on the host have them in `device` and `resource`. */
struct xstrace_ids {
	int64_t device, resource;
};
XSTRACE_API struct xstrace_ids xstrace_get_ids(void);

/* ---- activities of the program's own ---- */

struct xstrace_activity {
	const char *name;
	int64_t start, end; /* ns since 1970; end is not looked at for XSTRACE_CPU_INSTANT_EVENT */
	int64_t device, resource; /* as in struct xstrace_event */
	uint64_t correlation;
	int32_t type; /* enum xstrace_type */
};
/*
 * A list of activities, which becomes part of the trace when it is transferred. Not for several
 * threads at once. NULL: no memory.
 */
struct xstrace_cpu_trace;
XSTRACE_API struct xstrace_cpu_trace *xstrace_cpu_trace_create(int64_t start, const char *name);
/*
 * Adds `count` activities. One that ends before it begins, or lies in the future when it is
 * transferred, or before the day on which the run began, is not shown: the trace counts it
 * (otherData.impossible_times). *ret_first, unless NULL: the number of the first one in the list,
 * for xstrace_activity_metadata().
 */
XSTRACE_API int xstrace_cpu_trace_add(struct xstrace_cpu_trace *list,
				      const struct xstrace_activity *activities, size_t count,
				      size_t *ret_first);
/*
 * What is known of an activity of the list. quote: the value is text; else it is JSON, and shown as
 * that, or as text where it is none or longer than 1900 bytes.
 */
XSTRACE_API int xstrace_activity_metadata(struct xstrace_cpu_trace *list, size_t number,
					  const char *key, const char *value, bool quote);
/*
 * Puts the list into the trace that is being recorded, and frees it. end: when the list's time
 * ends. Nothing is recorded: it is freed, and XSTRACE_BAD_STATE or XSTRACE_OFF returned.
 */
XSTRACE_API int xstrace_cpu_trace_transfer(struct xstrace_cpu_trace *list, int64_t end);
/* Frees it instead. NULL is allowed. */
XSTRACE_API void xstrace_cpu_trace_free(struct xstrace_cpu_trace *list);
/* An event that a back-end of the program's own has seen, as one activity. */
XSTRACE_API int xstrace_report_backend_event(int64_t start, int64_t end, enum xstrace_scope scope,
					     const char *name, const char *backend);

/* What is known of the whole trace: text, or JSON. */
XSTRACE_API int xstrace_metadata(const char *key, const char *value);
XSTRACE_API int xstrace_metadata_json(const char *key, const char *json);
/* Something that must not be was seen; an event of the trace, with these as its metadata. */
XSTRACE_API int xstrace_log_invariant_violation(const char *assertion, const char *error,
						const char *profile_id,
						const char *group_profile_id);

/* ---- memory ---- */

/* Begins and ends a profile of memory, of what is reported by xstrace_memory(). */
XSTRACE_API int xstrace_memory_start(void);
XSTRACE_API int xstrace_memory_stop(void);
/*
 * The program has got memory (bytes > 0) or given it back (bytes < 0). Totals: of the device, in
 * bytes. category: what it is for ("parameter", "gradient", …); NULL: unknown.
 */
XSTRACE_API void xstrace_memory(const void *address, int64_t bytes, uint64_t total_allocated,
				uint64_t total_reserved, enum xstrace_device_type device_type,
				int device, const char *category);
/*
 * Writes the profile that was stopped last as JSON: {"timeline": [[ns, device type, device, bytes,
 * total allocated, total reserved], …], "snapshot": [{"device_type", "device", "category", "bytes",
 * "blocks"}, …]}; the snapshot is of what is allocated at the end.
 */
XSTRACE_API int xstrace_memory_export(const char *path);

#ifdef __cplusplus
}
#endif

#endif
