#include "lost.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "text.h"

#define FIRST_NS 60000000ull    /* a program that ends sooner is not missed */
#define LAST_NS 1000000000ull
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

/* Is the collector loaded? Programs that write their title over their environment have it. */
static bool has_library(int32_t pid)
{
	char path[48], *line = NULL;
	bool found = false;
	size_t room = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	while (file && !found && getline(&line, &room, file) > 0)
		found = strstr(line, "/libxstrace.so");
	free(line);
	if (file)
		fclose(file);
	return found || !file;
}

/* Which program a process runs; 0: it has ended, or is not to be seen. */
static uint64_t program_of(int32_t pid)
{
	char path[48];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_dev << 48 ^ st.st_ino;
}

static void count(struct xs_lost *lost, int32_t pid)
{
	struct xs_lost_program *program = &lost->named[lost->count];
	char path[48];
	FILE *file;

	if (lost->count++ >= XS_LOST_NAMED)
		return;
	program->pid = pid;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(program->comm, sizeof(program->comm), file))
		strcpy(program->comm, "?");
	program->comm[strcspn(program->comm, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Counted when it is the same at a second look: what is just being started looks like this too. */
static void suspect(struct xs_lost *lost, int32_t pid, uint64_t program)
{
	uint64_t start = xs_process_start(pid);
	struct xs_suspect *place = NULL;

	for (size_t i = 0; i < SUSPECTS; i++) {
		struct xs_suspect *known = &lost->suspects[i];

		if (known->pid == pid && known->start == start && known->program == program) {
			if (!known->told)
				count(lost, pid);
			known->told = true;
			return;
		}
		if (!place && (!known->pid || !xs_process_alive(known->pid, known->start)))
			place = known;
	}
	if (!place)
		return;
	*place = (struct xs_suspect){ .pid = pid, .start = start, .program = program };
	xs_lost_again(lost); /* soon */
}

/* True: it is lost, as it seems. */
static bool look_at(struct xs_lost *lost, const struct xs_run *run, int32_t pid)
{
	uint64_t program = program_of(pid);

	if (!program || xs_has_variable(run, pid) != 0 || has_library(pid))
		return false;
	suspect(lost, pid, program);
	return true;
}

static bool joined(const struct xs_process *processes, int32_t pid)
{
	for (const struct xs_process *p = processes; p; p = p->next)
		if (p->watched == pid)
			return true;
	return false;
}

/* Children of one thread; a kernel without CONFIG_PROC_CHILDREN tells of none. */
static void look_at_children(struct xs_lost *lost, const struct xs_run *run, const struct xs_process *processes, int32_t pid, const char *tid)
{
	char path[80];
	FILE *file;
	int child;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", pid, tid);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		if (!joined(processes, child))
			(void)look_at(lost, run, child);
	if (file)
		fclose(file);
}

void xs_lost_look(struct xs_lost *lost, const struct xs_run *run, const struct xs_process *processes)
{
	uint64_t now = xs_clock_ns(CLOCK_MONOTONIC);
	struct dirent *entry;
	char path[48];
	DIR *dir;

	if (!lost->interval)
		xs_lost_again(lost);
	if (now < lost->next)
		return;
	lost->interval = lost->interval < LAST_NS ? 2 * lost->interval : LAST_NS;
	lost->next = now + lost->interval;
	for (const struct xs_process *p = processes; p; p = p->next) {
		if (p->watched != p->pid) /* in a container: what is there is not started by us alone */
			continue;
		/* it may have called exec since it joined; what a lost one starts is lost with it */
		if (look_at(lost, run, p->pid))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
		dir = opendir(path);
		while (dir && (entry = readdir(dir)))
			if (entry->d_name[0] != '.')
				look_at_children(lost, run, processes, p->pid, entry->d_name);
		if (dir)
			closedir(dir);
	}
}

void xs_lost_again(struct xs_lost *lost)
{
	lost->interval = FIRST_NS;
	lost->next = xs_clock_ns(CLOCK_MONOTONIC) + FIRST_NS;
}

void xs_lost_tell(const struct xs_lost *lost)
{
	char names[XS_LOST_NAMED * 40] = "";
	size_t n = 0;

	if (!lost->count)
		return;
	for (uint32_t i = 0; i < lost->count && i < XS_LOST_NAMED; i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s %s (%d)", i ? "," : "", lost->named[i].comm, lost->named[i].pid);
	xs_tell("[WARNING] %u program%s started without xstrace's variables (env -i and the like) and not traced:%s%s; put xstrace in front of them: "
		"env -i xstrace …\n",
		lost->count, lost->count == 1 ? " was" : "s were", names, lost->count > XS_LOST_NAMED ? ", …" : "");
}
