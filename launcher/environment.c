/*
 * How the collector gets into the application: a few variables.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"
#include "process.h"
#include "program.h"
#include "text.h"

extern char **environ;

/*
 * Is anything behind the first `length` bytes of the path a link? Asking the kernel for each part
 * of three whole paths, as realpath() does, takes a tenth of the launcher's time.
 */
static bool has_link(const char *path, size_t length)
{
	char part[PATH_MAX], target[1];

	do {
		length += 1 + strcspn(path + length + 1, "/");
		(void)snprintf(part, sizeof(part), "%.*s", (int)length, path);
		if (readlink(part, target, sizeof(target)) >= 0)
			return true;
	} while (path[length]);
	return false;
}

/*
 * The file beside this program's directory (which the kernel has told, so it is without links),
 * with links resolved: what is loaded by path must not change under a run.
 */
static int find_part(const char *directory, const char *name, char *path)
{
	size_t length = strlen(directory);
	char candidate[PATH_MAX];

	if (!strncmp(name, "../", 3)) {
		while (length && directory[--length] != '/')
			;
		name += 3;
	}
	if (snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)length, directory, name) >=
	    (int)sizeof(candidate))
		return -ENAMETOOLONG;
	if (access(candidate, F_OK))
		return -errno;
	if (has_link(candidate, length))
		return realpath(candidate, path) ? 0 : -errno;
	strcpy(path, candidate);
	return 0;
}

static int own_directory(char *directory)
{
	ssize_t n = readlink("/proc/self/exe", directory, PATH_MAX - 1);

	if (n <= 0)
		return -errno;
	directory[n] = '\0';
	*strrchr(directory, '/') = '\0';
	return 0;
}

int xs_find_program(enum xs_part_program which, char *path)
{
	/* installed, built */
	static const char *const places[][2] = {
		[XS_PART_DEVICES] = { "../lib/xstrace/xstrace-devices",
				      "../devices/xstrace-devices" },
		[XS_PART_SAMPLER] = { "../lib/xstrace/xstrace-system",
				      "../sampler/xstrace-system" },
		[XS_PART_METRICS] = { "../lib/xstrace/xstrace-metrics",
				      "../sampler/xstrace-metrics" },
		[XS_PART_PROCESSORS] = { "../lib/xstrace/xstrace-cpu", "../sampler/xstrace-cpu" },
		[XS_PART_DOCTOR] = { "../lib/xstrace/xstrace-doctor", "../doctor/xstrace-doctor" },
		[XS_PART_ATTACH] = { "../lib/xstrace/xstrace-attach", "../attach/xstrace-attach" },
		[XS_PART_OPEN] = { "xstrace-open", "../../scripts/xstrace-open" },
	};
	char self[PATH_MAX];
	int error = own_directory(self);
	const char *name;

	if (!error)
		error = find_part(self, places[which][0], path);
	if (error == -ENOENT)
		error = find_part(self, places[which][1], path);
	/* installed xstrace-host stands beside them */
	name = strrchr(places[which][0], '/');
	return error == -ENOENT && name ? find_part(self, name + 1, path) : error;
}

int xs_find_parts(char *library, char *drain)
{
	/* installed: <prefix>/bin/xstrace, <prefix>/lib/xstrace/xstrace-host; built:
	 * <build>/launcher/… */
	static const char *const libraries[] = { "../lib/xstrace/libxstrace.so", "libxstrace.so",
						 "../collector/libxstrace.so" };
	static const char *const drains[] = { "../lib/xstrace/xstrace-drain", "xstrace-drain",
					      "../writer/xstrace-drain" };
	char self[PATH_MAX];
	int error = xs_proc_is_ours() ? own_directory(self) : -ESRCH;

	if (error < 0)
		return error;
	error = -ENOENT;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && error < 0; i++) {
		error = find_part(self, libraries[i], library);
		if (!error)
			error = find_part(self, drains[i], drain);
	}
	return error;
}

/* ---- a library in a place with an odd name ---- */

/* the last one divides the list of XPTI_SUBSCRIBERS */
#define ODD " :$,"
/* Programs' static ittnotify keeps the path twice in 4,086 bytes, and else leaves it. */
#define LONG 1000u

/*
 * Can nobody but root and this user make or rename anything on the way to it? `path`: without
 * links.
 */
static bool is_safe(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (int length = (int)strlen(path);;) {
		(void)snprintf(part, sizeof(part), "%.*s", length ? length : 1, path);
		if (lstat(part, &st) < 0 || !S_ISDIR(st.st_mode) ||
		    (st.st_uid && st.st_uid != geteuid()) || st.st_mode & 0022)
			return false;
		if (!length)
			return true;
		while (path[--length] != '/')
			;
	}
}

/* A directory below `base` for our links, made if missing. */
static bool safe_place(const char *base, const char *below, char *place)
{
	char path[PATH_MAX + 32];

	if (!base || !realpath(base, place) || !is_safe(place))
		return false;
	(void)snprintf(path, sizeof(path), "%s%s", place, below);
	for (char *at = path + strlen(place); (at = strchr(at + 1, '/'));) { /* .cache, too */
		*at = '\0';
		(void)mkdir(path, 0700);
		*at = '/';
	}
	(void)mkdir(path, 0700);
	return realpath(path, place) && !strpbrk(place, ODD) && strlen(place) < PATH_MAX - 64 &&
	       is_safe(place);
}

/* FNV-1a */
static uint64_t hash(const char *text)
{
	uint64_t value = 0xcbf29ce484222325u;

	while (*text)
		value = (value ^ (unsigned char)*text++) * 0x100000001b3u;
	return value;
}

/*
 * A link to the directory, at one place whatever else is linked there; it is the same for all runs,
 * and stays.
 */
static int link_to(const char *directory, char *link, size_t size)
{
	static const struct {
		const char *variable, *below;
	} places[] = { { "XDG_RUNTIME_DIR", "/xstrace" },
		       { "XDG_CACHE_HOME", "/xstrace" },
		       { "HOME", "/.cache/xstrace" } };
	char place[PATH_MAX], found[PATH_MAX], fresh[PATH_MAX + 64];
	ssize_t n;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!safe_place(getenv(places[i].variable), places[i].below, place))
			continue;
		(void)snprintf(link, size, "%s/%016llx", place,
			       (unsigned long long)hash(directory));
		n = readlink(link, found, sizeof(found));
		if (n == (ssize_t)strlen(directory) && !memcmp(found, directory, (size_t)n))
			return 0;
		(void)snprintf(fresh, sizeof(fresh), "%s.%d", link, getpid());
		if (!symlink(directory, fresh) && !rename(fresh, link))
			return 0;
		(void)unlink(fresh);
	}
	return -1;
}

int xs_plain_library(char *library)
{
	char link[PATH_MAX], directory[PATH_MAX], *name = strrchr(library, '/');

	if (!strpbrk(library, ODD) && strlen(library) <= LONG)
		return 0;
	(void)snprintf(directory, sizeof(directory), "%.*s", (int)(name - library), library);
	if (link_to(directory, link, sizeof(link) - strlen(name)) < 0) {
		xs_tell("xstrace: a path with a blank, colon, comma or dollar, or of more than "
			"1,000 bytes (%s) cannot be preloaded, "
			"and there is no place for a link to it that only "
			"you can write; set XDG_RUNTIME_DIR or HOME to such a directory, or move "
			"xstrace\n",
			directory);
		return -1;
	}
	memmove(library + strlen(link), name, strlen(name) + 1);
	memcpy(library, link, strlen(link));
	return 0;
}

/* ---- files of the installation that are missing or broken ---- */

static const char *why_not(int error)
{
	return error == -ENOEXEC || error == -EINVAL ? "it is no library, or cut short"
						     : strerror(-error);
}

int xs_check_library(const char *library)
{
	int error = xs_library_check(library);

	if (error < 0)
		xs_tell("xstrace: %s cannot be loaded (%s): install xstrace again\n", library,
			why_not(error));
	return error;
}

/* The path, or NULL: it cannot be loaded, and a line has said so. */
static const char *loadable(const char *path, const char *wanted)
{
	int error = xs_library_check(path);

	if (error < 0)
		xs_tell("xstrace: %s cannot be loaded (%s): %s; install xstrace "
			"again\n",
			path, why_not(error), wanted);
	return error < 0 ? NULL : path;
}

/* The same of one that xstrace can be built without. */
static const char *loadable_if_built(const char *path, const char *wanted)
{
	return access(path, F_OK) < 0 && errno == ENOENT ? NULL : loadable(path, wanted);
}

/* ---- the variables ---- */

bool xs_wants_daemon(const struct xs_options *options)
{
	return getenv("KINETO_USE_DAEMON") && !xs_want_reports(options) && !options->flight &&
	       !options->compress && !options->result_dir[0] &&
	       options->on_full != XS_FULL_OVERWRITE;
}

static char *variable(const char *name, const char *first, const char *separator,
		      const char *second)
{
	char *text = NULL;

	return asprintf(&text, "%s=%s%s%s", name, first, second ? separator : "",
			second ? second : "") < 0
		       ? NULL
		       : text;
}

static void set(char **environment, char *assignment)
{
	size_t n = strcspn(assignment, "=") + 1;

	for (; *environment; environment++)
		if (!strncmp(*environment, assignment, n))
			break;
	*environment = assignment;
}

/* A variable that others use too is kept, with ours beside it; an empty one counts as absent. */
static const char *given(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* A variable of which only one user is possible. */
static char *take(const char *name, const char *what, const char *path)
{
	if (given(name))
		xs_tell("xstrace: %s is set (%s); only one %s is possible, xstrace takes its "
			"place\n",
			name, given(name), what);
	return variable(name, path, "", NULL);
}

/*
 * A variable that names one library alone. The user's own is opened by ours then, which `kept`
 * tells of; unless it is an outer xstrace's. Returns how many variables that makes.
 */
static size_t beside_users(const char *name, const char *kept, const char *path, char **ret)
{
	ret[0] = variable(name, path, "", NULL);
	if (!given(name) || given(XS_ENV_RUN))
		return 1;
	ret[1] = variable(kept, given(name), "", NULL);
	return 2;
}

/*
 * Behind the user's: no symbol of ours competes with theirs. But layers of MPI call each the next
 * one by other names: behind a tool of the user's we would not see what it hands on.
 */
static char *preload(const char *library, const char *mpi, const char *crash)
{
	const char *users = given("LD_PRELOAD");
	char *text = NULL;

	return asprintf(&text, "LD_PRELOAD=%s%s%s%s%s%s%s", mpi ? mpi : "", mpi ? ":" : "",
			users ? users : "", users ? ":" : "", library, crash ? ":" : "",
			crash ? crash : "") < 0
		       ? NULL
		       : text;
}

/* The file of another name in the same directory. */
static void beside(const char *library, const char *name, char *path, size_t size)
{
	(void)snprintf(path, size, "%.*s%s", (int)(strrchr(library, '/') + 1 - library), library,
		       name);
}

/* Variables that name a library which an API's runtime opens when it starts. */
static const struct {
	const char *name;
	const char *kept; /* tells ours of the user's own, which it opens then; NULL: it does not */
} injected[] = {
	{ "CUDA_INJECTION64_PATH", XS_ENV_CUDA_INJECTION },
};
#define INJECTED (sizeof(injected) / sizeof(injected[0]))

/* Both return how many variables they have put into `added`. */
static size_t for_itt(const struct xs_options *options, const char *library, const char *jit,
		      char **added)
{
	size_t n = 0;

	if (xs_listen_to_itt(options))
		added[n++] = take("INTEL_LIBITTNOTIFY64", "ITT collector", library);
	/* NVTX's ranges, and the names that it gives to what device work runs on */
	if (xs_want_itt(options) || xs_want_device(options))
		n += beside_users("NVTX_INJECTION64_PATH", XS_ENV_NVTX_INJECTION, library,
				  added + n);
	if (xs_want_all_itt(options) &&
	    loadable_if_built(jit, "code that is made at run time has no names"))
		added[n++] = take("INTEL_JIT_PROFILER64", "JIT profiler", jit);
	/* oneCCL makes ITT tasks only on request; a value that the user has set is kept */
	if ((options->chrome_ccl || options->ccl_summary) && !getenv("CCL_ITT_LEVEL"))
		added[n++] = variable("CCL_ITT_LEVEL", "1", "", NULL);
	return n;
}

static size_t for_devices(const char *library, const char *layer, char **added)
{
	const char *users = given("ZE_ENABLE_VALIDATION_LAYER");
	size_t n = 0;

	/* the user's layers stay between the application and us: we see what the runtime sees */
	added[n++] = given("OPENCL_LAYERS")
			     ? variable("OPENCL_LAYERS", given("OPENCL_LAYERS"), ":", library)
			     : variable("OPENCL_LAYERS", library, "", NULL);
	/*
	 * Level Zero's loader opens its validation layer, whose place we take; the user's own is
	 * opened by us then
	 */
	if (loadable_if_built(layer, "nothing of Level Zero is recorded")) {
		added[n++] = variable("ZE_ENABLE_VALIDATION_LAYER", "1", "", NULL);
		/* else it is an outer xstrace's */
		if (users && !strcmp(users, "1") && !given(XS_ENV_RUN))
			added[n++] = variable(XS_ENV_ZE_VALIDATION, "1", "", NULL);
	}
	for (size_t i = 0; i < INJECTED; i++)
		if (injected[i].kept)
			n += beside_users(injected[i].name, injected[i].kept, library, added + n);
		else
			added[n++] = take(injected[i].name, "library", library);
	return n;
}

/*
 * SYCL's runtime tells of itself only with all of these. It looks for the framework beside itself
 * and where the loader does, by its name alone: so it is found in a virtual environment, in an
 * installed oneAPI, and by LD_LIBRARY_PATH.
 */
static size_t for_sycl(const char *library, char **added)
{
	const char *enabled = given("XPTI_TRACE_ENABLE");
	size_t n = 0;

	if (!enabled)
		added[n++] = variable("XPTI_TRACE_ENABLE", "1", "", NULL);
	else if (strcmp(enabled, "1") != 0 && strcmp(enabled, "true") != 0)
		xs_tell("xstrace: XPTI_TRACE_ENABLE is set (%s): SYCL's runtime does not tell of "
			"itself; unset it for --chrome-sycl-logging\n",
			enabled);
	if (!given("XPTI_FRAMEWORK_DISPATCHER"))
		added[n++] = variable("XPTI_FRAMEWORK_DISPATCHER", "libxptifw.so", "", NULL);
	added[n++] = given("XPTI_SUBSCRIBERS")
			     ? variable("XPTI_SUBSCRIBERS", given("XPTI_SUBSCRIBERS"), ",", library)
			     : variable("XPTI_SUBSCRIBERS", library, "", NULL);
	added[n++] = given("UR_ENABLE_LAYERS")
			     ? variable("UR_ENABLE_LAYERS", given("UR_ENABLE_LAYERS"), ",",
					"UR_LAYER_TRACING")
			     : variable("UR_ENABLE_LAYERS", "UR_LAYER_TRACING", "", NULL);
	return n;
}

char **xs_environment(const struct xs_launch *launch, const char *library, bool wants_mpi)
{
	const struct xs_options *options = &launch->control->options;
	char jit[PATH_MAX + 32], mpi[PATH_MAX + 32], layer[PATH_MAX + 32], crash[PATH_MAX + 32];
	char run[XS_ENV_RUN_MAX];
	char **environment, *added[16 + 2 * INJECTED];
	size_t count = 0, n = 0;

	while (environ[count])
		count++;
	environment = calloc(count + sizeof(added) / sizeof(added[0]) + 1, sizeof(*environment));
	beside(library, "libxstrace-jit.so", jit, sizeof(jit));
	beside(library, "libxstrace-mpi.so", mpi, sizeof(mpi));
	beside(library, "libxstrace-crash.so", crash, sizeof(crash));
	beside(library, "libxstrace-ze.so", layer, sizeof(layer));
	if (!environment)
		return NULL;
	count = 0;
	for (char **one = environ; *one; one++)
		if (!options->on_demand || strncmp(*one, "KINETO_USE_DAEMON=", 18) != 0)
			environment[count++] = *one; /* without it PyTorch leaves dynolog to us */
	xs_run_variable(run, launch->dir, launch->control);
	added[n++] = variable(XS_ENV_RUN, run, "", NULL);
	added[n++] = preload(library,
			     wants_mpi ? loadable(mpi, "nothing of MPI is recorded") : NULL,
			     options->stacks_on_crash
				     ? loadable(crash, "no stacks are printed at a crash")
				     : NULL);
	/*
	 * or gcc's AddressSanitizer ends each program that is built with it, since our library
	 * comes before its runtime; the user's word is last
	 */
	added[n++] =
		variable("ASAN_OPTIONS", "verify_asan_link_order=0", ":", given("ASAN_OPTIONS"));
	n += for_itt(options, library, jit, added + n);
	if (xs_want_calls(options) || xs_want_device(options))
		n += for_devices(library, layer, added + n);
	if (options->chrome_sycl)
		n += for_sycl(library, added + n);
	if (options->metric_query) /* drivers want to be asked before they start */
		added[n++] = variable("ZET_ENABLE_METRICS", "1", "", NULL);
	for (size_t i = 0; i < n; i++) {
		if (!added[i])
			return NULL;
		set(environment, added[i]);
	}
	return environment;
}
