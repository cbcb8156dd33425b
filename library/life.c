/*
 * The life of a trace: register, initialise, prepare, start, stop.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"

/* Takes the lock. XSTRACE_OK: it is held. */
static int enter(void)
{
	return xs_lock(&xs_library.lock);
}

static int leave(int result)
{
	return xs_unlock(&xs_library.lock, result);
}

/* ---- the collector ---- */

/* libxstrace.so: the one that is in the process, else the one that lies where ours does. */
static void *open_collector(void)
{
	static const char *const places[] = { "xstrace/libxstrace.so", "../xstrace/libxstrace.so",
					      "libxstrace.so", "../collector/libxstrace.so" };
	static char path[PATH_MAX]; /* the lock is held */
	const char *end;
	Dl_info info;
	void *found;

	if (dlsym(RTLD_DEFAULT, "xs_companion_library"))
		return RTLD_DEFAULT;
	if (!dladdr((const void *)&xstrace_start, &info) || !info.dli_fname)
		return NULL;
	end = strrchr(info.dli_fname, '/');
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(path, sizeof(path), "%.*s%s",
			       end ? (int)(end + 1 - info.dli_fname) : 0, info.dli_fname,
			       places[i]);
		if (access(path, R_OK))
			continue;
		found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (found)
			return found;
	}
	return NULL;
}

static bool find_functions(void)
{
	struct xs_companion_functions *functions = &xs_library.collector;
	void *library = open_collector();

	if (!library && !dlsym(RTLD_DEFAULT, "xs_companion_library"))
		return false;
	*(void **)&functions->begin = dlsym(library, "xs_companion_begin");
	*(void **)&functions->control = dlsym(library, "xs_companion_control");
	*(void **)&functions->library = dlsym(library, "xs_companion_library");
	return functions->begin && functions->control && functions->library;
}

static int turn_off(const char *reason)
{
	xs_library.how = XS_HOW_OFF;
	atomic_store_explicit(&xs_library.why_off, reason, memory_order_relaxed);
	return xs_refuse(XSTRACE_OFF, "%s", reason);
}

int xs_library_look(void)
{
	const struct xs_library *table;

	if (xs_library.how == XS_HOW_OFF)
		return xs_refuse(XSTRACE_OFF, "%s", xs_library.why_off);
	if (xs_library.how != XS_HOW_UNKNOWN)
		return XSTRACE_OK;
	if (getenv("XSTRACE_DISABLE"))
		return turn_off("XSTRACE_DISABLE is set in the environment");
	if (!find_functions())
		return turn_off("libxstrace.so is not where libxstrace-api is; is xstrace "
				"installed?");
	table = xs_library.collector.library();
	if (!table)
		return turn_off("libxstrace.so was built without ITT, which the library needs");
	if (table->version != XS_LIBRARY_VERSION)
		return turn_off("libxstrace.so is of another version than libxstrace-api");
	if (!xs_library.collector.control() && getenv(XS_ENV_RUN))
		return turn_off("the launcher's run is over, or does not take this process");
	xs_library.how = xs_library.collector.control() ? XS_HOW_LAUNCHED : XS_HOW_ALONE;
	if (xs_library.how == XS_HOW_LAUNCHED)
		atomic_store_explicit(&xs_library.table, table, memory_order_release);
	return XSTRACE_OK;
}

int xstrace_register(void)
{
	int result = enter();

	if (result)
		return result;
	result = xs_library_look();
	xs_library.registered |= !result;
	return leave(result);
}

bool xstrace_is_registered(void)
{
	bool result;

	if (enter())
		return false;
	result = xs_library.registered;
	(void)leave(0);
	return result;
}

/* ---- what loads us lazily, when the program first uses it ---- */

static void set_unless_set(const char *name, const char *value)
{
	(void)setenv(name, value, 0);
}

/*
 * The runtimes look at these once, when the program first uses them. Values of the user's own stay.
 */
static void offer_collector(bool cpu_only)
{
	Dl_info info;

	if (xs_library.how != XS_HOW_ALONE ||
	    !dladdr((const void *)xs_library.collector.library, &info) || !info.dli_fname)
		return;
	set_unless_set("INTEL_LIBITTNOTIFY64", info.dli_fname);
	if (cpu_only)
		return;
	set_unless_set("OPENCL_LAYERS", info.dli_fname);
	set_unless_set("CUDA_INJECTION64_PATH", info.dli_fname);
	set_unless_set("NVTX_INJECTION64_PATH", info.dli_fname);
}

static int initialize(bool cpu_only)
{
	int result = xs_library_look();

	if (result)
		return result;
	xs_library.registered = true;
	offer_collector(cpu_only);
	return XSTRACE_OK;
}

/*
 * With KINETO_USE_DAEMON dynolog can ask for traces from now on, as of a program with Kineto; with
 * XSTRACE_SESSION a shell can.
 */
static int initialize_for_others(bool cpu_only)
{
	int result = initialize(cpu_only);

	if (!result && xs_library.how == XS_HOW_ALONE &&
	    (getenv("KINETO_USE_DAEMON") || getenv("XSTRACE_SESSION")))
		result = xs_host_begin(NULL, NULL, !cpu_only);
	return result;
}

int xstrace_initialize(bool cpu_only)
{
	int result = enter();

	return result ? result : leave(initialize_for_others(cpu_only));
}

bool xstrace_is_initialized(void)
{
	bool result;

	if (enter())
		return false;
	result = xs_library.registered && xs_library.how > XS_HOW_OFF;
	(void)leave(0);
	return result;
}

/* ---- prepare ---- */

static int parse_filter(const char *filter, uint64_t *ret)
{
	*ret = 0;
	while (filter && *filter) {
		size_t n = strcspn(filter, ",");
		char name[64];
		int type;

		(void)snprintf(name, sizeof(name), "%.*s", (int)n, filter);
		type = xstrace_type_of(name);
		if (type < 0)
			return xs_refuse(XSTRACE_BAD_ARGUMENT, "filter: no type is called %s",
					 name);
		*ret |= 1ull << type;
		filter += n + (filter[n] == ',');
	}
	return XSTRACE_OK;
}

/* What is given in a structure of this size, or of an older, shorter one. */
static int read_config(const struct xstrace_config *given, struct xstrace_config *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (given) {
		/* sizes of all versions are multiples: a member is there as a whole, or not */
		if (given->size < offsetof(struct xstrace_config, activities) + sizeof(uint32_t) ||
		    given->size % _Alignof(struct xstrace_config))
			return xs_refuse(XSTRACE_BAD_ARGUMENT,
					 "config: size is to be sizeof(struct xstrace_config)");
		memcpy(ret, given, given->size < sizeof(*ret) ? given->size : sizeof(*ret));
	}
	if (ret->activities & ~(uint32_t)XSTRACE_ALL)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "config: unknown bits in activities");
	if (!ret->activities)
		ret->activities = XSTRACE_ALL;
	if (ret->cpu_only)
		ret->activities &= ~(uint32_t)(XSTRACE_XPU | XSTRACE_CUDA);
	if (!ret->state)
		ret->state = XSTRACE_STATE_KINETO;
	if (ret->state < 0 || ret->state > XSTRACE_STATE_KINETO_ONDEMAND)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "config: unknown state");
	return XSTRACE_OK;
}

/* Metrics are not measured: the trace tells who asked for them. */
static void note_metrics(const struct xstrace_config *config)
{
	size_t length = 0, room = sizeof(xs_library.metrics);

	xs_library.metrics[0] = '\0';
	for (size_t i = 0; config->metrics && i < config->metric_count && length < room; i++)
		length += (size_t)snprintf(xs_library.metrics + length, room - length, "%s%s",
					   i ? "," : "",
					   config->metrics[i] ? config->metrics[i] : "");
}

/*
 * The process has one run, whose options and place are given when it begins. What the environment
 * has begun (initialize_for_others()) has none of them, and that is for its user to know.
 */
static int keep_run(const struct xstrace_config *config)
{
	static const char *const what[] = { "options", "directory" };
	const char *const wanted[] = { config->options, config->directory };

	for (size_t i = 0; xs_library.run_prepared && i < 2; i++)
		if (wanted[i] &&
		    strcmp(wanted[i], xs_library.run_given[i] ? xs_library.run_given[i] : "") != 0)
			return xs_refuse(XSTRACE_BAD_STATE,
					 "config: this process's run has begun with %s '%s', which "
					 "cannot be changed to '%s'",
					 what[i],
					 xs_library.run_given[i] ? xs_library.run_given[i] : "",
					 wanted[i]);
	return XSTRACE_OK;
}

static int begin_run(const struct xstrace_config *config, bool devices)
{
	int result = xs_host_begin(config->options, config->directory, devices);

	if (result)
		return result;
	xs_library.run_given[0] = config->options ? strdup(config->options) : NULL;
	xs_library.run_given[1] = config->directory ? strdup(config->directory) : NULL;
	xs_library.run_prepared = true;
	return XSTRACE_OK;
}

static int prepare(const struct xstrace_config *given)
{
	struct xstrace_config config;
	uint64_t filter;
	bool devices;
	int result = read_config(given, &config);

	if (!result)
		result = parse_filter(config.filter, &filter);
	devices = !result && config.activities & (XSTRACE_XPU | XSTRACE_CUDA);
	if (!result)
		result = initialize(!devices);
	if (result)
		return result;
	if (xs_library.recording)
		return xs_refuse(XSTRACE_BAD_STATE, "a trace is being recorded; stop it first");
	if (xs_library.how == XS_HOW_ALONE)
		result = begin_run(&config, devices);
	else if (xs_library.how == XS_HOW_HOSTED)
		result = keep_run(&config);
	if (result)
		return result;
	xs_library.lacks_devices = devices && xs_library.how == XS_HOW_HOSTED &&
				   !xs_library.has_devices;
	xs_library.activities = config.activities;
	xs_library.state = config.state;
	xs_library.filter = filter;
	xs_library.profile_memory = config.profile_memory;
	(void)snprintf(xs_library.trace_id, sizeof(xs_library.trace_id), "%s",
		       config.trace_id ? config.trace_id : "");
	note_metrics(&config);
	xs_library.prepared = true;
	return XSTRACE_OK;
}

int xstrace_prepare(const struct xstrace_config *config)
{
	int result = enter();

	return result ? result : leave(prepare(config));
}

/* ---- start and stop ---- */

static const char *trace_id(void)
{
	if (!xs_library.trace_id[0])
		(void)snprintf(xs_library.trace_id, sizeof(xs_library.trace_id), "%016llx%08x",
			       (unsigned long long)xstrace_now(), (unsigned)getpid());
	return xs_library.trace_id;
}

static int start(xstrace_post_process function, void *user)
{
	int result = XSTRACE_OK;

	if (xs_library.recording)
		return xs_refuse(XSTRACE_BAD_STATE, "a trace is being recorded already");
	if (!xs_library.prepared)
		result = prepare(NULL);
	if (!result && xs_library.how == XS_HOW_HOSTED)
		result = xs_host_start();
	if (result)
		return result;
	xs_library.post_process = function;
	xs_library.post_process_user = user;
	xs_library.main_thread = (pid_t)syscall(SYS_gettid);
	xs_library.children = 0;
	atomic_store(&xs_library.in_step, false);
	atomic_store(&xs_library.recording, true);
	xs_table_of_library()->about("trace_id", trace_id(), false);
	if (xs_library.lacks_devices)
		xs_table_of_library()->about(
			"not_traced",
			"devices: the first trace of this process was prepared "
			"without them",
			false);
	if (xs_library.metrics[0])
		xs_table_of_library()->about("metrics_not_measured", xs_library.metrics, false);
	if (xs_library.profile_memory)
		(void)xs_memory_start();
	return XSTRACE_OK;
}

int xstrace_start_with_post_process(xstrace_post_process function, void *user)
{
	int result = enter();

	return result ? result : leave(start(function, user));
}

int xstrace_start(void)
{
	return xstrace_start_with_post_process(NULL, NULL);
}

/* Which parts are switched off. */
static int switch_parts(uint32_t off)
{
	static const struct {
		uint32_t activities;
		enum xs_pause_reason part;
	} parts[] = {
		{ XSTRACE_CPU, XS_PART_HOST },
		{ XSTRACE_XPU, XS_PART_XPU },
		{ XSTRACE_CUDA, XS_PART_CUDA },
	};
	uint32_t changed = off ^ xs_library.off;
	int result = XSTRACE_OK;

	xs_library.off = off;
	for (size_t i = 0; !result && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (changed & parts[i].activities)
			result = xs_host_switch(parts[i].part, !(off & parts[i].activities));
	return result;
}

/* Somebody has removed the trace, or the drain process could not make its file. */
static int refuse_missing(const char *path)
{
	const char *directory = xs_library.control->options.output_dir;

	errno = path[0] || access(directory, W_OK | X_OK) < 0 ? errno : ENOSPC;
	if (path[0])
		return xs_refuse(XSTRACE_IO, "the trace is gone: %s: %s", path, strerror(errno));
	return xs_refuse(XSTRACE_IO, "the drain process could not write the trace: %s: %s",
			 directory, errno == ENOSPC ? "there was no room" : strerror(errno));
}

static int stop(struct xstrace_trace **ret)
{
	static char path[PATH_MAX]; /* the lock is held */
	bool hosted = xs_library.how == XS_HOW_HOSTED;
	struct xs_host_files files;
	int result = XSTRACE_OK;

	if (!xs_library.recording)
		return xs_refuse(XSTRACE_BAD_STATE, "no trace is being recorded");
	if (hosted && xs_host_open(&files))
		return XSTRACE_IO;
	path[0] = '\0';
	if (atomic_exchange(&xs_library.in_step, false))
		xs_table_of_library()->step_end();
	xs_table_of_library()->stop();
	atomic_store(&xs_library.recording, false);
	xs_library.prepared = false;
	xs_library.off = 0;
	xs_library.trace_id[0] = '\0';
	if (xs_library.profile_memory)
		(void)xstrace_memory_stop();
	if (hosted)
		result = xs_host_cut(&files, path);
	if (result)
		return result;
	*ret = xs_trace_open(path, xs_library.how == XS_HOW_LAUNCHED);
	if (!*ret)
		return xs_refuse(XSTRACE_NO_MEMORY, "no memory for the trace");
	if (hosted && access(path, F_OK) < 0) {
		result = refuse_missing(path);
		xstrace_trace_free(*ret); /* what lay beside it is gone with that */
		*ret = NULL;
		return result;
	}
	return xs_library.how == XS_HOW_LAUNCHED
		       ? xs_refuse(XSTRACE_JOINED, "the events are in the launcher's trace")
		       : XSTRACE_OK;
}

int xstrace_stop(struct xstrace_trace **ret)
{
	xstrace_post_process function;
	void *user;
	int result;

	if (!ret)
		return xs_refuse(XSTRACE_BAD_ARGUMENT,
				 "xstrace_stop: there is to be a place for the "
				 "trace");
	*ret = NULL;
	result = enter();
	if (result)
		return result;
	result = stop(ret);
	/* the function may start the next trace */
	function = xs_library.post_process;
	user = xs_library.post_process_user;
	(void)leave(result);
	if (*ret && function)
		xs_trace_post_process(*ret, function, user);
	return result;
}

bool xstrace_is_active(void)
{
	return atomic_load_explicit(&xs_library.recording, memory_order_relaxed) && !xs_is_child();
}

enum xstrace_profiler_type xstrace_active_profiler(void)
{
	static const enum xstrace_profiler_type types[] = {
		[XSTRACE_STATE_DISABLED] = XSTRACE_PROFILER_NONE,
		[XSTRACE_STATE_CPU] = XSTRACE_PROFILER_LEGACY,
		[XSTRACE_STATE_CUDA] = XSTRACE_PROFILER_LEGACY,
		[XSTRACE_STATE_NVTX] = XSTRACE_PROFILER_NVTX,
		[XSTRACE_STATE_ITT] = XSTRACE_PROFILER_ITT,
		[XSTRACE_STATE_PRIVATEUSE1] = XSTRACE_PROFILER_PRIVATEUSE1,
		[XSTRACE_STATE_KINETO] = XSTRACE_PROFILER_KINETO,
		[XSTRACE_STATE_KINETO_GPU_FALLBACK] = XSTRACE_PROFILER_KINETO,
		[XSTRACE_STATE_KINETO_PRIVATEUSE1_FALLBACK] = XSTRACE_PROFILER_KINETO,
		[XSTRACE_STATE_KINETO_ONDEMAND] = XSTRACE_PROFILER_KINETO,
	};

	return xstrace_is_active() ? types[atomic_load(&xs_library.state)] : XSTRACE_PROFILER_NONE;
}

static int toggle(bool on, uint32_t activities)
{
	uint32_t off;
	int result;

	if (!xs_library.recording)
		return xs_refuse(XSTRACE_BAD_STATE, "no trace is being recorded");
	if (activities & ~(uint32_t)XSTRACE_ALL || !activities)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "unknown bits in activities, or none");
	if (xs_library.how != XS_HOW_HOSTED)
		return xs_refuse(XSTRACE_JOINED, "the launcher's trace is controlled by its "
						 "--session, or by ITT");
	off = on ? xs_library.off & ~activities : xs_library.off | activities;
	result = switch_parts(off);
	/* without any part nothing is recorded at all */
	return result ? result : xs_host_switch(XS_PAUSE_LIBRARY, xs_library.activities & ~off);
}

int xstrace_toggle_collection(bool on, uint32_t activities)
{
	int result = enter();

	return result ? result : leave(toggle(on, activities));
}

/* ---- threads ---- */

int xstrace_enable_in_child_thread(void)
{
	int result = enter();

	if (result)
		return result;
	if (!xs_library.recording)
		return leave(xs_refuse(XSTRACE_BAD_STATE, "no trace is being recorded"));
	xs_library.children++;
	xs_table_of_library()->thread_info();
	return leave(XSTRACE_OK);
}

int xstrace_disable_in_child_thread(void)
{
	int result = enter();

	if (result)
		return result;
	if (!xs_library.recording || !xs_library.children)
		return leave(xs_refuse(XSTRACE_BAD_STATE, "no child thread is enabled"));
	xs_library.children--;
	return leave(XSTRACE_OK);
}

bool xstrace_is_enabled_in_main_thread(void)
{
	return xstrace_is_active();
}
