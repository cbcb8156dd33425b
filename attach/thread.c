/*
 * From looks to slices: a function is open on a thread's track from the look that has found it to
 * the first one that has not. Innermost stands in which state the thread was, unless it ran.
 */
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "plain.h"
#include "sink.h"
#include "sinks_open.h"

#define THREADS 65536u /* that live; the sampler looks at fewer */

static struct at_thread *find(const struct at_threads *threads, pid_t tid)
{
	for (uint32_t i = threads->count; i-- > 0;)
		if (threads->list[i]->tid == tid)
			return threads->list[i];
	return NULL;
}

static struct at_thread *make(struct at_threads *threads, pid_t tid, uint64_t ns)
{
	uint32_t room = threads->room ? 2 * threads->room : 64;
	struct at_thread **grown, *thread;

	if (threads->count == THREADS)
		return NULL;
	if (threads->count == threads->room) {
		grown = realloc(threads->list, room * sizeof(*grown));
		if (!grown)
			return NULL;
		threads->list = grown;
		threads->room = room;
	}
	thread = calloc(1, sizeof(*thread));
	if (thread)
		thread->track.open = calloc(AT_FRAMES_MAX + 2, sizeof(*thread->track.open));
	if (!thread || !thread->track.open) {
		free(thread);
		return NULL;
	}
	thread->tid = tid;
	thread->state = '?';
	thread->stack = AT_NO_STACK;
	thread->since = ns;
	thread->track.process = threads->process;
	thread->track.tid = (uint32_t)tid;
	threads->list[threads->count++] = thread;
	return thread;
}

/* ---- slices ---- */

static void close_from(struct at_threads *threads, struct at_thread *thread, uint32_t depth,
		       uint64_t ns)
{
	struct xs_track *track = &thread->track;

	for (; track->depth > depth; track->depth--) {
		const struct xs_open *open = &track->open[track->depth - 1];
		const struct xs_task task = { .start = open->start,
					      .end = ns,
					      .name = open->name.id,
					      .depth = track->depth };

		if (threads->process->plain_tasks && ns > open->start) {
			threads->process->plain_tasks(track, &task, 1);
			thread->slices++;
		}
	}
}

/* What a thread that does not run is shown to be in; NULL: it runs. */
static const char *state_name(char state)
{
	switch (state) {
	case 'S':
		return "(waiting)";
	case 'D':
		return "(waiting in the kernel)";
	case 'T':
	case 't':
		return "(stopped)";
	default:
		return NULL;
	}
}

/* The functions that are still there go on; what lies in others than before begins anew. */
static void show(struct at_threads *threads, struct at_thread *thread, uint64_t ns)
{
	const struct at_stack *stack =
		thread->stack == AT_NO_STACK ? NULL : &threads->stacks->list[thread->stack];
	const char *state = state_name(thread->state);
	struct xs_track *track = &thread->track;
	uint32_t names[AT_FRAMES_MAX + 2], count = 0, same = 0;

	if (stack && stack->cut)
		names[count++] = at_name(threads->stacks, "…");
	for (uint32_t i = 0; stack && i < stack->count; i++)
		names[count++] = stack->names[i];
	if (state)
		names[count++] = at_name(threads->stacks, state);
	while (same < count && same < track->depth && track->open[same].name.id == names[same])
		same++;
	close_from(threads, thread, same, ns);
	for (; track->depth < count; track->depth++)
		track->open[track->depth] =
			(struct xs_open){ .start = ns, .name = { .id = names[track->depth] } };
}

/*
 * The time since the last change belongs to what was seen then: of a thread that ran, its time on
 * processors (`cpu`: until now), since it may have waited for one.
 */
static void account(struct at_threads *threads, struct at_thread *thread, uint64_t ns, uint64_t cpu)
{
	bool ran = thread->state == 'R';
	uint64_t time = ns > thread->since ? ns - thread->since : 0;

	if (ran)
		time = cpu > thread->cpu ? cpu - thread->cpu : 0;
	thread->since = ns;
	if (thread->state == '?')
		return;
	if (!ran)
		thread->waited += time;
	if (thread->stack == AT_NO_STACK)
		threads->stacks->omitted += ran ? time : 0;
	else if (ran)
		threads->stacks->list[thread->stack].ran += time;
	else
		threads->stacks->list[thread->stack].waited += time;
}

/* ---- lines ---- */

/* With the first thread, so that a process that cannot be seen leaves no file. */
static void open_sinks(struct at_threads *threads)
{
	if (threads->told)
		return;
	threads->told = true;
	(void)xs_sinks_open(threads->process, false);
	(void)xs_sinks_open(threads->process, true);
}

static struct at_thread *find_or_make(struct at_threads *threads, pid_t tid, uint64_t ns)
{
	struct at_thread *thread = find(threads, tid);

	if (thread || tid <= 0)
		return thread;
	open_sinks(threads);
	thread = make(threads, tid, ns);
	if (thread && !xs_sinks_add_track(&thread->track)) {
		free(thread->track.open);
		free(thread);
		threads->count--;
		return NULL;
	}
	return thread;
}

void at_threads_seen(struct at_threads *threads, char *rest, uint64_t ns)
{
	unsigned long long cpu = 0;
	char state = '?', number[16] = "-";
	struct at_thread *thread;
	int tid = 0;

	if (sscanf(rest, "%d %c %llu %15s", &tid, &state, &cpu, number) < 4)
		return;
	thread = find_or_make(threads, tid, ns);
	if (!thread)
		return;
	account(threads, thread, ns, cpu);
	if (!thread->cpu_first)
		thread->cpu_first = cpu;
	thread->cpu = cpu;
	thread->state = state;
	thread->stack = number[0] == '-'
				? AT_NO_STACK
				: at_stack_of(threads->stacks, (uint32_t)strtoul(number, NULL, 10));
	show(threads, thread, ns);
}

void at_threads_named(struct at_threads *threads, char *rest, uint64_t ns)
{
	struct at_thread *thread;
	char *name = NULL;
	pid_t tid = (pid_t)strtol(rest, &name, 10);

	thread = find_or_make(threads, tid, ns);
	if (!thread || *name != ' ')
		return;
	(void)snprintf(thread->name, sizeof(thread->name), "%s", name + 1);
	XS_TELL_SINKS(threads->process, thread, threads->process, (uint32_t)tid, thread->name,
		      strlen(thread->name));
}

/* Its slices are told; its sums stay. */
static void end(struct at_threads *threads, struct at_thread *thread, uint64_t ns)
{
	account(threads, thread, ns, thread->cpu);
	close_from(threads, thread, 0, ns);
	xs_sinks_drop_track(&thread->track);
	free(thread->track.open);
	thread->track.open = NULL;
	if (!threads->ended)
		threads->ended = calloc(AT_ENDED_MAX, sizeof(*threads->ended));
	if (threads->ended && threads->ended_count < AT_ENDED_MAX) {
		threads->ended[threads->ended_count++] = thread;
		return;
	}
	threads->more++;
	threads->more_cpu += thread->cpu - thread->cpu_first;
	free(thread);
}

void at_threads_ended(struct at_threads *threads, char *rest, uint64_t ns)
{
	struct at_thread *thread = find(threads, (pid_t)strtol(rest, NULL, 10));

	if (!thread)
		return;
	for (uint32_t i = 0; i < threads->count; i++)
		if (threads->list[i] == thread)
			threads->list[i--] = threads->list[--threads->count];
	end(threads, thread, ns);
}

void at_threads_end(struct at_threads *threads, uint64_t ns)
{
	while (threads->count)
		end(threads, threads->list[--threads->count], ns);
}

void at_threads_pause(struct at_threads *threads, uint64_t ns)
{
	for (uint32_t i = 0; i < threads->count; i++) {
		struct at_thread *thread = threads->list[i];

		account(threads, thread, ns, thread->cpu);
		close_from(threads, thread, 0, ns);
		thread->state = '?';
		thread->stack = AT_NO_STACK;
	}
}

uint64_t at_threads_cpu(const struct at_threads *threads)
{
	uint64_t cpu = threads->more_cpu;

	for (uint32_t i = 0; i < threads->count; i++)
		cpu += threads->list[i]->cpu - threads->list[i]->cpu_first;
	for (uint32_t i = 0; i < threads->ended_count; i++)
		cpu += threads->ended[i]->cpu - threads->ended[i]->cpu_first;
	return cpu;
}
