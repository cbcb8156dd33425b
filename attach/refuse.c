/*
 * What keeps a process from being sampled, and what of it is not recorded: by /proc, before it is
 * disturbed.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "process.h"
#include "text.h"

struct status {
	char state;
	long thread_group, tracer, kernel_thread;
	bool has_memory;
};

/* False: there is none. */
static bool read_status(pid_t pid, struct status *status)
{
	char path[32], line[256];
	FILE *file;

	*status = (struct status){ .state = '?' };
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "State: %c", &status->state);
		(void)sscanf(line, "Tgid: %ld", &status->thread_group);
		(void)sscanf(line, "TracerPid: %ld", &status->tracer);
		(void)sscanf(line, "Kthread: %ld", &status->kernel_thread);
		status->has_memory |= !strncmp(line, "VmSize:", 7);
	}
	(void)fclose(file);
	return status->thread_group != 0;
}

static bool is_32_bit(pid_t pid)
{
	unsigned char head[EI_NIDENT] = "";
	char path[32];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, head, sizeof(head), 0);
		close(fd);
	}
	return n == (ssize_t)sizeof(head) && !memcmp(head, ELFMAG, SELFMAG) &&
	       head[EI_CLASS] == ELFCLASS32;
}

/* Calls `found` for each file that is mapped, by its path; stops when that is true. */
static bool any_mapping(pid_t pid, bool (*found)(const char *path, void *data), void *data)
{
	char path[32], *line = NULL, *at;
	size_t room = 0;
	bool done = false;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	while (file && !done && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		at = strchr(line, '/');
		done = at && found(at, data);
	}
	free(line);
	if (file)
		(void)fclose(file);
	return done;
}

/* A run directory's file, which goes with the run. */
static bool is_of_run(const char *path, void *data)
{
	const char *at = strstr(path, "/xstrace-");

	(void)data;
	return at && strlen(at) == strlen("/xstrace-XXXXXX/control") &&
	       !strcmp(at + strlen("/xstrace-XXXXXX"), "/control");
}

static const char *comm_of(long pid, char *text, size_t size)
{
	char path[48], raw[32] = "?";
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(raw, sizeof(raw), file))
		raw[strcspn(raw, "\n")] = '\0';
	if (file)
		(void)fclose(file);
	if (strlen(raw) >= size)
		raw[size - 1] = '\0';
	*xs_plain(text, raw, strlen(raw)) = '\0';
	return text;
}

bool at_refused(pid_t pid, char *text, size_t size)
{
	pid_t living = xs_pid_living(pid);
	struct status status;
	char comm[32];

	if (!xs_proc_is_ours())
		(void)snprintf(text, size,
			       "/proc is missing or shows another PID namespace: mount it here "
			       "(mount -t proc proc /proc; unshare: --mount-proc)");
	else if (!read_status(living, &status))
		(void)snprintf(text, size, "%s",
			       kill(pid, 0) < 0 && errno == ESRCH
				       ? "there is no such process"
				       : "this user cannot see it (/proc is mounted with hidepid)");
	else if (pid == getpid())
		(void)snprintf(text, size, "that is xstrace itself");
	else if (status.thread_group != pid)
		(void)snprintf(text, size,
			       "that is a thread of process %ld: xstrace --attach %ld samples all "
			       "of its threads",
			       status.thread_group, status.thread_group);
	else if ((status.state == 'Z' || status.state == 'X') && living == pid)
		(void)snprintf(text, size,
			       "it has ended, and its parent has not asked for its status yet");
	else if (status.kernel_thread || !status.has_memory)
		(void)snprintf(text, size, "that is a thread of the kernel");
	else if (status.tracer)
		(void)snprintf(text, size,
			       "process %ld (%s) traces it already, and there can be one tracer "
			       "alone: end that first",
			       status.tracer, comm_of(status.tracer, comm, sizeof(comm)));
	else if (is_32_bit(living))
		(void)snprintf(text, size, "it is a 32-bit program, whose stacks cannot be read");
	else if (any_mapping(living, is_of_run, NULL))
		(void)snprintf(text, size,
			       "xstrace traces it already: xstrace --top shows what it does, "
			       "xstrace --stacks NAME where its threads are");
	else
		return false;
	return true;
}

/* ---- what is not recorded ---- */

static const struct {
	const char *library, *what;
} runtimes[] = {
	{ "/libOpenCL.so", "OpenCL" }, { "/libze_loader.so", "Level Zero" },
	{ "/libcuda.so", "CUDA" },     { "/libsycl.so", "SYCL" },
	{ "/libmpi.so", "MPI" },       { "/libmpich.so", "MPI" },
	{ "/libmpi_cxx.so", "MPI" },   { "/libomp.so", "OpenMP" },
	{ "/libiomp5.so", "OpenMP" },  { "/libittnotify", "ITT" },
};
#define RUNTIMES (sizeof(runtimes) / sizeof(runtimes[0]))

static bool note_runtime(const char *path, void *data)
{
	bool *there = data;
	const char *base = strrchr(path, '/');

	for (size_t i = 0; i < RUNTIMES; i++)
		there[i] |= !strncmp(base, runtimes[i].library, strlen(runtimes[i].library));
	return false;
}

void at_tell_not_recorded(pid_t pid)
{
	bool there[RUNTIMES] = { false };
	char names[160] = "";
	size_t used = 0;

	(void)any_mapping(xs_pid_living(pid), note_runtime, there);
	for (size_t i = 0; i < RUNTIMES; i++)
		if (there[i] && !strstr(names, runtimes[i].what))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", runtimes[i].what);
	if (used)
		xs_tell("[INFO] not recorded: what the program does with %s. A tool gets there "
			"only from inside the process, from its start on: xstrace [options] app\n",
			names);
}
