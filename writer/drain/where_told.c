/*
 * What xstrace-stacks has printed of a process (stacks/main.c says how), as a person reads it and
 * as instants of its trace. It comes from a program that has read hostile memory: it is believed no
 * more than that.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "extras.h"
#include "merge_python.h"
#include "sink.h"
#include "symbols.h"
#include "task_record.h"
#include "where.h"

#define THREADS	   4096u
#define FILES	   16384u
#define FRAMES	   512u /* of a thread, with Python's */
#define FRAME_TEXT 640u
#define LISTED	   12u /* threads of one stack that are named */

struct thread {
	uint32_t tid;
	char state, name[20];
	bool not_held, cut;
	uint32_t count;
	char **frames; /* innermost first; NULL where there was no memory */
	bool told;
};

struct told {
	struct xs_process *process;
	struct thread *threads;
	uint32_t count;
	char **files; /* by number: build id, a blank, the path */
	/* of the last thread, innermost first */
	char *frames[FRAMES], *python[FRAMES];
	bool entry[FRAMES]; /* of Python's functions: C has called it */
	uint32_t frame_count, python_count;
	uint64_t still;
	const char *why; /* it could not be looked into */
	bool more;
};

/* ---- reading ---- */

/* The next word of a line; empty: there is none. */
static char *word(char **rest)
{
	char *at = strsep(rest, " ");

	return at ? at : (char *)"";
}

/* Python's functions take their places among the native frames. */
static void merge_python(struct told *told)
{
	static const char interpreter[] = "_PyEval_EvalFrameDefault";
	static char *all[FRAMES];
	static bool loops[FRAMES], used[FRAMES];
	static int32_t order[FRAMES];
	uint32_t count;

	for (uint32_t i = 0; i < told->frame_count; i++) {
		loops[i] = !strncmp(told->frames[i], interpreter, sizeof(interpreter) - 1);
		used[i] = false;
	}
	count = xs_merge_python(loops, told->frame_count, told->entry, told->python_count, order,
				FRAMES);
	for (uint32_t i = 0; i < count; i++) {
		if (order[i] >= 0)
			used[order[i]] = true;
		all[i] = order[i] >= 0 ? told->frames[order[i]] : told->python[-1 - order[i]];
		if (order[i] < 0)
			told->python[-1 - order[i]] = NULL;
	}
	for (uint32_t i = 0; i < told->frame_count; i++)
		if (!used[i])
			free(told->frames[i]);
	for (uint32_t i = 0; i < told->python_count; i++)
		free(told->python[i]);
	told->frame_count = count;
	memcpy(told->frames, all, count * sizeof(all[0]));
	told->python_count = 0;
}

static void keep_frames(struct told *told)
{
	struct thread *thread = told->count ? &told->threads[told->count - 1] : NULL;

	merge_python(told);
	if (thread && told->frame_count)
		thread->frames = malloc(told->frame_count * sizeof(*thread->frames));
	if (thread && thread->frames) {
		memcpy(thread->frames, told->frames, told->frame_count * sizeof(*thread->frames));
		thread->count = told->frame_count;
	} else {
		for (uint32_t i = 0; i < told->frame_count; i++)
			free(told->frames[i]);
	}
	told->frame_count = 0;
}

static void add_frame(struct told *told, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_frame(struct told *told, const char *format, ...)
{
	char text[FRAME_TEXT];
	va_list args;

	if (told->frame_count == FRAMES)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	told->frames[told->frame_count] = strdup(text);
	told->frame_count += told->frames[told->frame_count] != NULL;
}

/* "ENTRY TEXT" */
static void read_python(struct told *told, char *rest)
{
	bool entry = word(&rest)[0] == '1';

	if (!rest || told->python_count == FRAMES || strlen(rest) >= FRAME_TEXT)
		return;
	told->entry[told->python_count] = entry;
	told->python[told->python_count] = strdup(rest);
	told->python_count += told->python[told->python_count] != NULL;
}

/* "NUMBER ADDRESS" of the last thread. */
static void read_frame(struct told *told, char *rest)
{
	const char *file = word(&rest), *known;
	uint64_t address = strtoull(word(&rest), NULL, 16);
	unsigned long number = strtoul(file, NULL, 10);
	const struct xs_symbol *symbol;
	const char *base;

	known = file[0] >= '0' && file[0] <= '9' && number < FILES ? told->files[number] : NULL;
	if (!known) {
		add_frame(told, "0x%llx", (unsigned long long)address);
		return;
	}
	symbol = xs_symbol_in(told->process->run, told->process->watched, known, address);
	base = strrchr(known, '/');
	base = base ? base + 1 : strchr(known, ' ') + 1;
	if (!strcmp(base, symbol->name))
		add_frame(told, "%s+0x%llx", base, (unsigned long long)symbol->offset);
	else
		add_frame(told, "%.200s+0x%llx (%.64s)", symbol->name,
			  (unsigned long long)symbol->offset, base);
}

static void read_file(struct told *told, char *rest)
{
	unsigned long number = strtoul(word(&rest), NULL, 10);
	const char *build_id = word(&rest);

	if (number >= FILES || told->files[number] || !rest ||
	    asprintf(&told->files[number], "%s %s", build_id[0] == '-' ? "" : build_id, rest) < 0)
		return;
}

static void read_thread(struct told *told, char *rest)
{
	struct thread *thread;

	keep_frames(told);
	if (told->count == THREADS)
		return;
	thread = &told->threads[told->count++];
	thread->tid = (uint32_t)strtoul(word(&rest), NULL, 10);
	thread->state = word(&rest)[0];
	(void)snprintf(thread->name, sizeof(thread->name), "%s", rest ? rest : "");
}

static void read_line(struct told *told, char *line)
{
	struct thread *last = told->count ? &told->threads[told->count - 1] : NULL;
	char *rest = line;
	char kind = word(&rest)[0];

	if (kind == 'S' && rest)
		told->still = strtoull(rest, NULL, 10);
	else if (kind == 'T')
		read_thread(told, rest);
	else if (kind == 'M')
		read_file(told, rest);
	else if (kind == 'F' && last)
		read_frame(told, rest);
	else if (kind == 'P' && last && rest)
		read_python(told, rest);
	else if (kind == 'N' && last)
		last->not_held = true;
	else if (kind == 'C' && last)
		last->cut = true;
	else if (kind == 'O')
		told->more = true;
	else if (kind == 'E' && rest)
		told->why = rest;
}

/* ---- for a person ---- */

static const char *state_of(const struct thread *thread)
{
	switch (thread->state) {
	case 'R':
		return "running";
	case 'S':
		return "waiting";
	case 'D':
		return "in the kernel";
	case 'T':
	case 't':
		return "stopped";
	default:
		return "?";
	}
}

static bool same(const struct thread *a, const struct thread *b)
{
	if (a->count != b->count || a->state != b->state || a->not_held != b->not_held ||
	    a->cut != b->cut)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (strcmp(a->frames[i], b->frames[i]))
			return false;
	return true;
}

/* All threads that are where this one is, and their stack once. */
static void tell_alike(struct told *told, uint32_t from, struct xs_lines *lines)
{
	struct thread *first = &told->threads[from];
	uint32_t count = 0;

	for (uint32_t i = from; i < told->count; i++)
		if (!told->threads[i].told && same(first, &told->threads[i])) {
			told->threads[i].told = true;
			count++;
		}
	xs_lines_add(lines, "  %u thread%s, %s:", count, count == 1 ? "" : "s", state_of(first));
	count = 0;
	for (uint32_t i = from; i < told->count; i++)
		if (same(first, &told->threads[i]) && count++ < LISTED)
			xs_lines_add(lines, "%s %s %u", count > 1 ? "," : "", told->threads[i].name,
				     told->threads[i].tid);
	xs_lines_add(lines, "%s\n", count > LISTED ? ", …" : "");
	if (first->not_held)
		xs_lines_add(lines, "    did not stop in time: it is in a system call that nothing "
				    "interrupts\n");
	for (uint32_t i = 0; i < first->count; i++)
		xs_lines_add(lines, "    #%-2u %s\n", i, first->frames[i]);
	if (first->cut)
		xs_lines_add(lines, "    … more\n");
}

static void tell_process(struct told *told, int how, struct xs_lines *lines)
{
	const struct xs_process *process = told->process;

	xs_lines_add(lines, "Process %d (%.15s)", process->pid, process->comm);
	if (told->why) {
		xs_lines_add(lines, ": its threads cannot be seen: %s\n", told->why);
		return;
	}
	xs_lines_add(lines, ": %u thread%s; stood still for %.1f ms\n", told->count,
		     told->count == 1 ? "" : "s", (double)told->still / 1e6);
	for (uint32_t i = 0; i < told->count; i++)
		if (!told->threads[i].told)
			tell_alike(told, i, lines);
	if (told->more)
		xs_lines_add(lines, "  … more threads\n");
	if (WIFSIGNALED(how))
		xs_lines_add(lines,
			     "  the rest is not known: signal %d ended the program that looked\n",
			     WTERMSIG(how));
}

/* ---- for the trace ---- */

/* Frames as texts, outermost first as those of calls. Returns their bytes. */
static uint32_t put_frames(const struct thread *thread, uint32_t key, unsigned char *args,
			   uint32_t room)
{
	uint32_t used = 0;

	for (uint32_t i = thread->count; i-- > 0;) {
		uint16_t length = (uint16_t)strlen(thread->frames[i]);
		struct xs_arg arg = { .key = key, .count = length, .type = XS_VALUE_TEXT };
		uint32_t size = (uint32_t)sizeof(arg) + ((length + 7u) & ~7u);

		if (size > room - used)
			break;
		memset(args + used, 0, size);
		memcpy(args + used, &arg, sizeof(arg));
		memcpy(args + used + sizeof(arg), thread->frames[i], length);
		used += size;
	}
	return used;
}

/* In a process of another PID namespace threads have other numbers: there it is left out. */
static void trace_threads(const struct told *told, uint64_t tick)
{
	static unsigned char args[FRAMES * (FRAME_TEXT + 16)];
	struct xs_process *process = told->process;
	const uint32_t *names = process->run->control->stack_names;

	if ((!process->open_count && !process->run->flight) || process->watched != process->pid ||
	    !names[0])
		return;
	for (uint32_t i = 0; i < told->count; i++) {
		const struct thread *thread = &told->threads[i];
		struct xs_extra extra = { .args = args };
		const struct xs_mark mark = { .tid = thread->tid,
					      .name = names[0],
					      .ns = xs_process_ns(process, tick),
					      .scope = XS_SCOPE_THREAD,
					      .extra = &extra };

		extra.length = put_frames(thread, names[1], args, sizeof(args));
		if (thread->count && process->run->flight)
			xs_where_keep(process, &mark, tick);
		else if (thread->count)
			XS_TELL_SINKS(process, mark, process, &mark);
	}
}

void xs_where_tell(struct xs_process *process, char *text, int how, uint64_t tick,
		   struct xs_lines *lines)
{
	struct told told = { .process = process };
	char *rest = text, *line;

	told.threads = calloc(THREADS, sizeof(*told.threads));
	told.files = calloc(FILES, sizeof(*told.files));
	while (told.threads && told.files && (line = strsep(&rest, "\n")))
		read_line(&told, line);
	keep_frames(&told);
	if (told.threads && told.files) {
		tell_process(&told, how, lines);
		trace_threads(&told, tick);
	}
	for (uint32_t i = 0; told.threads && i < told.count; i++) {
		for (uint32_t k = 0; k < told.threads[i].count; k++)
			free(told.threads[i].frames[k]);
		free(told.threads[i].frames);
	}
	for (uint32_t i = 0; told.files && i < FILES; i++)
		free(told.files[i]);
	free(told.threads);
	free(told.files);
}
