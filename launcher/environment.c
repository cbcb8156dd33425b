/*
 * How the collector gets into the application: a few variables.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "text.h"

extern char **environ;

/* The file beside this program's directory, with links resolved: what is loaded by path must not change under a run. */
static int find_part(const char *directory, const char *name, char *path)
{
	char candidate[PATH_MAX + 64];

	if (snprintf(candidate, sizeof(candidate), "%s/%s", directory, name) >= (int)sizeof(candidate))
		return -ENAMETOOLONG;
	return realpath(candidate, path) ? 0 : -errno;
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

int xs_find_devices(char *path)
{
	char self[PATH_MAX];
	int error = own_directory(self);

	if (!error)
		error = find_part(self, "../lib/xstrace/xstrace-devices", path);
	return error == -ENOENT ? find_part(self, "../devices/xstrace-devices", path) : error;
}

int xs_find_parts(char *library, char *drain)
{
	/* installed: <prefix>/bin/xstrace; built: <build>/launcher/xstrace */
	static const char *const libraries[] = { "../lib/xstrace/libxstrace.so", "../collector/libxstrace.so" };
	static const char *const drains[] = { "../lib/xstrace/xstrace-drain", "../writer/xstrace-drain" };
	char self[PATH_MAX];
	int error = own_directory(self);

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

/* LD_PRELOAD has no quoting: a path with a blank, colon or dollar goes through a link in the run directory. */
static const char *plain_path(const struct xs_launch *launch, const char *library, char *path, size_t size)
{
	if (!strpbrk(library, " :$"))
		return library;
	(void)snprintf(path, size, "%s%s", launch->dir, strrchr(library, '/'));
	return symlink(library, path) < 0 ? NULL : path;
}

static char *variable(const char *name, const char *first, const char *separator, const char *second)
{
	char *text = NULL;

	return asprintf(&text, "%s=%s%s%s", name, first, second ? separator : "", second ? second : "") < 0 ? NULL
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
		xs_tell("xstrace: %s is set (%s); only one %s is possible, xstrace takes its place\n", name, given(name), what);
	return variable(name, path, "", NULL);
}

/* The file of another name in the same directory. */
static void beside(const char *library, const char *name, char *path, size_t size)
{
	(void)snprintf(path, size, "%.*s%s", (int)(strrchr(library, '/') + 1 - library), library, name);
}

char **xs_environment(const struct xs_launch *launch, const char *library, bool wants_mpi)
{
	const struct xs_options *options = &launch->control->options;
	char link[PATH_MAX + 32], mpi_link[PATH_MAX + 32], jit[PATH_MAX + 32], mpi[PATH_MAX + 32], layer[PATH_MAX + 32];
	char ours[3 * PATH_MAX], **environment, *added[8];
	size_t count = 0, n = 0;
	const char *mpi_library;

	while (environ[count])
		count++;
	environment = calloc(count + sizeof(added) / sizeof(added[0]) + 1, sizeof(*environment));
	beside(library, "libxstrace-jit.so", jit, sizeof(jit));
	beside(library, "libxstrace-mpi.so", mpi, sizeof(mpi));
	beside(library, "libxstrace-ze.so", layer, sizeof(layer));
	library = plain_path(launch, library, link, sizeof(link));
	mpi_library = wants_mpi ? plain_path(launch, mpi, mpi_link, sizeof(mpi_link)) : "";
	if (!environment || !library || !mpi_library)
		return NULL;
	(void)snprintf(ours, sizeof(ours), "%s%s%s", library, mpi_library[0] ? ":" : "", mpi_library);
	memcpy(environment, environ, count * sizeof(*environment));
	added[n++] = variable(XS_ENV_RUN, launch->dir, "", NULL);
	/* behind the user's: no symbol of ours competes with theirs */
	added[n++] = given("LD_PRELOAD") ? variable("LD_PRELOAD", given("LD_PRELOAD"), ":", ours)
					 : variable("LD_PRELOAD", ours, "", NULL);
	/* or gcc's AddressSanitizer ends each program that is built with it, since our library comes before its runtime; the user's word is last */
	added[n++] = variable("ASAN_OPTIONS", "verify_asan_link_order=0", ":", given("ASAN_OPTIONS"));
	if (xs_want_itt(options))
		added[n++] = take("INTEL_LIBITTNOTIFY64", "ITT collector", library);
	if (options->chrome_itt)
		added[n++] = take("INTEL_JIT_PROFILER64", "JIT profiler", jit);
	if (xs_want_calls(options) || xs_want_device(options))
		/* the user's layers stay between the application and us: we see what the runtime sees */
		added[n++] = given("OPENCL_LAYERS") ? variable("OPENCL_LAYERS", given("OPENCL_LAYERS"), ":", library)
						    : variable("OPENCL_LAYERS", library, "", NULL);
	if ((xs_want_calls(options) || xs_want_device(options)) && !access(layer, F_OK)) {
		/* Level Zero's loader opens its validation layer, whose place we take; the user's own is opened by us then */
		const char *users = given("ZE_ENABLE_VALIDATION_LAYER");

		added[n++] = variable("ZE_ENABLE_VALIDATION_LAYER", "1", "", NULL);
		if (users && !strcmp(users, "1") && !given(XS_ENV_RUN)) /* else it is an outer xstrace's */
			added[n++] = variable(XS_ENV_ZE_VALIDATION, "1", "", NULL);
	}
	for (size_t i = 0; i < n; i++) {
		if (!added[i])
			return NULL;
		set(environment, added[i]);
	}
	return environment;
}
