/*
 * The built-in check: for each API that is there, a small program of it is traced as a user's would
 * be, and its trace looked at.
 */
#include "doctor.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"

#define PYTHON "def doctor():\n    return 1\n[doctor() for _ in range(3)]\n"

static const struct check {
	const char *kind, *name, *api; /* api: for which there must be a device; NULL: none */
	const char *options[3];
	const char *wanted[2]; /* what the trace must hold */
	const char *todo;
} checks[] = {
	{ "itt",
	  "ITT",
	  NULL,
	  { "--chrome-itt-logging" },
	  { "\"doctor::task\"" },
	  "look at what xstrace says below; reinstall it" },
	{ "opencl",
	  "OpenCL",
	  "opencl",
	  { "--chrome-call-logging", "--chrome-kernel-logging" },
	  { "\"clEnqueueWriteBuffer\"", "\"gpu_op\"" },
	  "unset OPENCL_LAYERS and OCL_ICD_VENDORS; another loader (above)" },
	{ "level_zero",
	  "Level Zero",
	  "level_zero",
	  { "--chrome-call-logging" },
	  { "\"zeDriverGet\"" },
	  "a loader of version 1.4 or later; unset ZE_ENABLE_VALIDATION_LAYER" },
	{ "cuda",
	  "CUDA",
	  "cuda",
	  { "--chrome-call-logging" },
	  { "\"cuDeviceGetCount\"" },
	  "a libcupti that fits the driver (above, docs/CUDA.md)" },
	{ "mpi",
	  "MPI",
	  NULL,
	  { "--chrome-mpi-logging" },
	  { "\"MPI_Initialized\"" },
	  "another MPI library, or tell us of this one" },
	{ "python",
	  "Python",
	  NULL,
	  { "--python-stacks", "--chrome-itt-logging" },
	  { "doctor (" },
	  "use Python 3.8 to 3.13" },
};

/* Is the text in a trace of the directory? */
static bool is_in(const char *directory, const char *text)
{
	DIR *dir = opendir(directory);
	char path[PATH_MAX + 300];
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		found = entry->d_name[0] != '.' && dr_file_has(path, text);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void remove_all(const char *directory)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	(void)rmdir(directory);
}

/* The last line that xstrace itself said, without the one that names the trace. */
static const char *last_word(char *text)
{
	const char *last = "";

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!strncmp(line, "xstrace:", 8) || !strncmp(line, "[WARNING]", 9) ||
		    !strncmp(line, "[INFO] No event", 15))
			last = line;
	return last;
}

static void one(const struct check *check, const char *launcher, const char *directory)
{
	char self[PATH_MAX] = "", text[8192], why[128];
	const char *problem, *missing = NULL;
	bool python = !strcmp(check->kind, "python");
	char *argv[16] = { (char *)launcher, "--output-dir-path", (char *)directory };
	struct dr_ended ended;
	int n = 3;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return;
	for (int i = 0; i < 3 && check->options[i]; i++)
		argv[n++] = (char *)check->options[i];
	argv[n++] = python ? "python3" : self;
	argv[n++] = python ? "-c" : "probe";
	argv[n++] = python ? PYTHON : (char *)check->kind;
	argv[n] = !strcmp(check->kind, "mpi") ? (char *)dr_mpi() : NULL;
	ended = dr_run(argv, text, sizeof(text));
	problem = dr_why(&ended, why, sizeof(why));
	for (int i = 0; i < 2 && check->wanted[i] && !missing; i++)
		if (!is_in(directory, check->wanted[i]))
			missing = check->wanted[i];
	if (problem)
		dr_say(DR_BAD, check->name, check->todo, "a small program of it, traced, %s%s%s",
		       problem, *last_word(text) ? "; " : "", last_word(text));
	else if (missing)
		dr_say(DR_BAD, check->name, check->todo, "traced, but the trace has no %s%s%s",
		       missing, *last_word(text) ? "; " : "", last_word(text));
	else
		dr_say(DR_OK, check->name, NULL, "a small program was traced (%s%s%s)",
		       check->options[0], check->options[1] ? " " : "",
		       check->options[1] ? check->options[1] : "");
}

static bool is_there(const struct check *check)
{
	char *python[] = { "python3", "-c",
			   "import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 14))", NULL };
	char text[256];

	if (!strcmp(check->kind, "mpi"))
		return dr_mpi();
	if (!strcmp(check->kind, "python"))
		return dr_run(python, text, sizeof(text)).status == 0;
	return !check->api || dr_has(check->api);
}

void dr_try(const char *launcher)
{
	const char *place = getenv("TMPDIR");
	char directory[PATH_MAX];

	dr_section("Traced just now", "checks");
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (!is_there(&checks[i]))
			continue;
		(void)snprintf(directory, sizeof(directory), "%s/xstrace-doctor.XXXXXX",
			       place && place[0] ? place : "/tmp");
		if (!mkdtemp(directory)) {
			dr_say(DR_BAD, checks[i].name, "make room there, or set TMPDIR",
			       "no directory can be made in %s",
			       place && place[0] ? place : "/tmp");
			return;
		}
		one(&checks[i], launcher, directory);
		remove_all(directory);
	}
}
