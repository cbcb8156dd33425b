#include "lost.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"
#include "process.h"
#include "program.h"
#include "text.h"

#define FIRST_NS 60000000ull /* a program that ends sooner is not missed */
#define LAST_NS	 1000000000ull
#define REST \
	50u /* a look takes this part of the time at most: there may be thousands of processes */
#define DEPTH	 8u /* of forked children that have recorded nothing */
#define SUSPECTS (sizeof(((struct xs_lost *)0)->suspects) / sizeof(struct xs_suspect))

int xs_has_variable(const struct xs_run *run, int32_t pid)
{
	char path[48], *line = NULL;
	const size_t n = sizeof(XS_ENV_RUN "=") - 1;
	size_t room = 0;
	int found = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (!found && getdelim(&line, &room, '\0', file) > 0)
		found = !strncmp(line, XS_ENV_RUN "=", n) && !strcmp(line + n, run->variable);
	if (ferror(file))
		found = -1;
	free(line);
	fclose(file);
	return found;
}

/* What of ours a process has mapped. */
enum mapped {
	MAPPED_NOTHING,
	MAPPED_OTHER,	/* the library of another xstrace */
	MAPPED_LIBRARY, /* and no more: it could not join */
	/*
	 * and the names, but no file of a process: it had no room for its own, or may not join
	 * (--ranks-to-sample)
	 */
	MAPPED_NAMES,
	MAPPED_RUN,	/* it has joined, or is the forked child of one that has */
	MAPPED_UNKNOWN, /* it may not be looked into, or has ended */
};

/* Is what this line of /proc/PID/maps tells of our library? Where we do not see it, it may be. */
static bool is_our_library(char *line)
{
	const char *path = strchr(line, '/');
	char own[PATH_MAX];
	struct stat theirs, ours;

	line[strcspn(line, "\n")] = '\0';
	xs_path_of_program("libxstrace.so", "collector", own);
	return !path || stat(path, &theirs) < 0 || stat(own, &ours) < 0 ||
	       (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

static enum mapped mapped_by(const struct xs_run *run, int32_t pid)
{
	enum mapped found = MAPPED_NOTHING;
	char path[48], strings[sizeof(run->run_id) + 16], own[sizeof(run->run_id) + 16],
		*line = NULL;
	size_t room = 0, lines = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	/* mapped last of what all processes have */
	(void)snprintf(strings, sizeof(strings), "/%s/strings", run->run_id);
	(void)snprintf(own, sizeof(own), "/%s/p", run->run_id);
	file = fopen(path, "re");
	for (; file && found != MAPPED_RUN && getline(&line, &room, file) > 0; lines++) {
		if (strstr(line, own))
			found = MAPPED_RUN;
		else if (strstr(line, strings))
			found = MAPPED_NAMES;
		else if (found < MAPPED_LIBRARY && strstr(line, "/libxstrace.so"))
			found = is_our_library(line) ? MAPPED_LIBRARY : MAPPED_OTHER;
	}
	free(line);
	if (file)
		fclose(file);
	return lines ? found : MAPPED_UNKNOWN;
}

/*
 * The first number behind a word at the beginning of a line of /proc/PID/…; UINT64_MAX: none
 * ("unlimited"), or not to be seen.
 */
static uint64_t number_in(int32_t pid, const char *name, const char *word)
{
	unsigned long long value = UINT64_MAX;
	char path[48], line[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, word, strlen(word)) &&
		    sscanf(line + strlen(word), "%llu", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

/*
 * Why nothing is traced in it, as the end of a line. False: it is traced, or nothing proves that it
 * is not, or the process that has started it tells of it.
 */
static bool why_not(const struct xs_run *run, const struct xs_process *by, int32_t pid, char *why,
		    size_t size)
{
	enum mapped mapped = mapped_by(run, pid);
	int has_variable = xs_has_variable(run, pid);
	uint64_t user = number_in(pid, "status", "Uid:"),
		 space = number_in(pid, "limits", "Max address space");
	uint64_t data = number_in(pid, "limits", "Max data size");
	enum xs_program kind = XS_PROGRAM_UNKNOWN;
	const char *file, *judged;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (mapped == MAPPED_NOTHING)
		kind = xs_program_kind(path, NULL, &judged);
	file = xs_program_why_not(kind);
	if (mapped == MAPPED_RUN || user == UINT64_MAX)
		return false;
	if (kind == XS_PROGRAM_OTHER_CLASS && by &&
	    atomic_load_explicit(&by->file->unseen, memory_order_relaxed) & 1u << XS_UNSEEN_CLASS)
		return false;
	if (mapped == MAPPED_NAMES &&
	    (!atomic_load_explicit(&run->mailbox->join_failed, memory_order_relaxed) ||
	     (space == UINT64_MAX && data == UINT64_MAX)))
		return false;
	if (mapped == MAPPED_NOTHING && !has_variable)
		(void)snprintf(why, size,
			       "it was started without xstrace's variables (env -i and the like); "
			       "put xstrace in front of it: env -i xstrace …");
	else if (file)
		(void)snprintf(why, size, "it %s", file);
	else if (user != geteuid())
		(void)snprintf(why, size,
			       "it runs as user %llu, who has no right to xstrace's run directory; "
			       "start xstrace as that user",
			       (unsigned long long)user);
	else if (mapped == MAPPED_OTHER)
		(void)snprintf(why, size,
			       "the libxstrace.so in it is that of another xstrace: LD_PRELOAD was "
			       "changed");
	else if (mapped == MAPPED_UNKNOWN || (mapped == MAPPED_LIBRARY && !has_variable))
		return false;
	else if (space != UINT64_MAX || data != UINT64_MAX)
		(void)snprintf(why, size,
			       "it may have no more than %llu bytes of memory (ulimit -%c), which "
			       "leaves xstrace no room",
			       (unsigned long long)(space < data ? space : data),
			       space < data ? 'v' : 'd');
	else if (mapped == MAPPED_NOTHING)
		(void)snprintf(why, size,
			       "libxstrace.so was not loaded into it: LD_PRELOAD was changed, or "
			       "it gained rights");
	else
		(void)snprintf(why, size, "it cannot open %.100s, where the run is", run->dir);
	return true;
}

#define NOT_SEEN 1u

/* Which program a process runs, or NOT_SEEN. */
static uint64_t program_of(int32_t pid)
{
	char path[48];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &st) < 0 ? NOT_SEEN : (uint64_t)st.st_dev << 48 ^ st.st_ino;
}

static void count(struct xs_lost *lost, int32_t pid, uint64_t ran, const char *why, bool failed)
{
	struct xs_lost_program *program = &lost->named[lost->count];
	char path[48];
	FILE *file;

	lost->failed += failed;
	if (lost->count++ >= XS_LOST_NAMED)
		return;
	program->pid = pid;
	program->program = ran;
	(void)snprintf(program->why, sizeof(program->why), "%s", why);
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(program->comm, sizeof(program->comm), file))
		strcpy(program->comm, "?");
	program->comm[strcspn(program->comm, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Counted when it is the same at a second look: what is just being started looks like this too. */
static void suspect(struct xs_lost *lost, int32_t pid, const char *why, bool failed)
{
	uint64_t start = xs_pid_start(pid), program = program_of(pid);
	struct xs_suspect *place = NULL;

	for (size_t i = 0; i < SUSPECTS; i++) {
		struct xs_suspect *known = &lost->suspects[i];

		if (known->pid == pid && known->start == start && known->program == program) {
			if (!known->told)
				count(lost, pid, program, why, failed);
			known->told = true;
			return;
		}
		if (!place && (!known->pid || !xs_pid_alive(known->pid, known->start)))
			place = known;
	}
	if (!place)
		return;
	*place = (struct xs_suspect){ .pid = pid, .start = start, .program = program };
	xs_lost_again(lost); /* soon */
}

/* True: it is lost, as it seems. */
static bool look_at(struct xs_lost *lost, const struct xs_run *run, const struct xs_process *by,
		    int32_t pid)
{
	char why[XS_LOST_WHY];

	if (!xs_pid_alive(pid, 0) || !why_not(run, by, pid, why, sizeof(why)))
		return false;
	suspect(lost, pid, why, mapped_by(run, pid) == MAPPED_NAMES);
	return true;
}

static bool joined(const struct xs_process *processes, int32_t pid)
{
	for (const struct xs_process *p = processes; p; p = p->next)
		if (p->watched == pid)
			return true;
	return false;
}

static void look_below(struct xs_lost *lost, const struct xs_run *run,
		       const struct xs_process *processes, const struct xs_process *by, int32_t pid,
		       unsigned depth);

/*
 * Children of one thread; a kernel without CONFIG_PROC_CHILDREN tells of none. A forked child that
 * has recorded nothing is no process of the run, but starts programs as its parent would: what
 * makes a sandbox (bubblewrap) forks twice before it does.
 */
static void look_at_children(struct xs_lost *lost, const struct xs_run *run,
			     const struct xs_process *processes, const struct xs_process *by,
			     int32_t pid, const char *tid, unsigned depth)
{
	char path[80];
	FILE *file;
	int child;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", pid, tid);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		if (!joined(processes, child) && !look_at(lost, run, by, child) && depth &&
		    mapped_by(run, child) == MAPPED_RUN)
			look_below(lost, run, processes, by, child, depth - 1);
	if (file)
		fclose(file);
}

static void look_below(struct xs_lost *lost, const struct xs_run *run,
		       const struct xs_process *processes, const struct xs_process *by, int32_t pid,
		       unsigned depth)
{
	struct dirent *entry;
	char path[48];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			look_at_children(lost, run, processes, by, pid, entry->d_name, depth);
	if (dir)
		closedir(dir);
}

void xs_lost_look(struct xs_lost *lost, const struct xs_run *run,
		  const struct xs_process *processes)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC), rest;

	if (!lost->interval)
		xs_lost_again(lost);
	if (now < lost->next)
		return;
	lost->interval = lost->interval < LAST_NS ? 2 * lost->interval : LAST_NS;
	/* of others only a traced one's children are ours for certain */
	if (run->app_pid && !run->app_not_traced && !joined(processes, run->app_pid))
		(void)look_at(lost, run, NULL, run->app_pid);
	for (const struct xs_process *p = processes; p; p = p->next) {
		/* in a container: what is there is not started by us alone */
		if (p->watched != p->pid)
			continue;
		/*
		 * it may have called exec since it joined; what a lost one starts is lost with it
		 */
		if (!look_at(lost, run, p, p->pid))
			look_below(lost, run, processes, p, p->pid, DEPTH);
	}
	rest = REST * (xs_clock_ns(CLOCK_MONOTONIC) - now);
	lost->next = now + (rest > lost->interval ? rest : lost->interval);
}

void xs_lost_again(struct xs_lost *lost)
{
	lost->interval = FIRST_NS;
	lost->next = xs_clock_ns(CLOCK_MONOTONIC) + FIRST_NS;
}

void xs_lost_joined(struct xs_lost *lost, int32_t pid)
{
	for (uint32_t i = 0; i < lost->count && i < XS_LOST_NAMED; i++) {
		uint64_t program = lost->named[i].pid == pid ? program_of(pid) : 0;

		/* it may have ended since, and nobody sees which it was */
		if (program == lost->named[i].program || program == NOT_SEEN)
			lost->named[i].joined = true;
	}
}

void xs_lost_tell(const struct xs_lost *lost)
{
	for (uint32_t i = 0; i < lost->count && i < XS_LOST_NAMED; i++)
		if (!lost->named[i].joined)
			xs_tell("[WARNING] process %d (%s) is not traced: %s\n", lost->named[i].pid,
				lost->named[i].comm, lost->named[i].why);
	if (lost->count > XS_LOST_NAMED)
		xs_tell("[WARNING] %u more processes are not traced, for similar reasons\n",
			lost->count - XS_LOST_NAMED);
}

bool xs_lost_has(const struct xs_lost *lost, int32_t pid)
{
	for (uint32_t i = 0; i < lost->count && i < XS_LOST_NAMED; i++)
		if (lost->named[i].pid == pid && !lost->named[i].joined)
			return true;
	return false;
}
