/*
 * Explicit tasks: where they are created, where they run, and on which others they depend.
 *
 * A thread that waits in a task may run others meanwhile, which then lie within the waiting one. So
 * the thread's open tasks are a stack, and one that goes on is found there.
 */
#include "openmp.h"

typedef void task_create(union ompt_word *task, const void *frame, union ompt_word *created,
			 int flags, int dependences, const void *code);
typedef void task_schedule(union ompt_word *prior, int status, union ompt_word *next);
typedef void task_dependence(union ompt_word *from, union ompt_word *to);

/*
 * A task's word: the thread that has created it, the how manieth it is there, and the name of its
 * slices. Two of a process are the same after 2^28 tasks of a thread.
 */
#define NAME_BITS	22
#define NUMBER_BITS	28
#define WORD_NAME(word) ((uint32_t)((word) & ((1u << NAME_BITS) - 1)))

static uint64_t word_of(struct omp_thread *thread, uint32_t name)
{
	uint64_t number = ++thread->created & ((1u << NUMBER_BITS) - 1);

	return thread->number << (NAME_BITS + NUMBER_BITS) | number << NAME_BITS | name;
}

static void on_task_create(union ompt_word *task, const void *frame, union ompt_word *created,
			   int flags, int dependences, const void *code)
{
	struct omp_thread *thread = omp_thread();
	uint64_t tick = flags & (OMPT_TASK_EXPLICIT | OMPT_TASK_TARGET) ? omp_now() : 0, word = 0;

	OMP_PASS_ON(OMPT_TASK_CREATE, task_create, task, frame, created, flags, dependences, code);
	if (tick && thread && xs_recording()) {
		word = word_of(thread, omp_name(OMP_TASK, code));
		omp_mark_created(omp_name(OMP_TASK_CREATE, code), word, tick);
	}
	omp_set_word(created, word);
}

/* The thread turns from what it did, or waited for, to a task. */
static void turn_to(struct omp_thread *thread, uint64_t word, uint64_t tick)
{
	struct omp_member *member = omp_member(thread);

	if (thread->open < OMP_OPEN) {
		thread->task[thread->open] = word;
		thread->waits[thread->open] = member ? member->waits : 0;
	}
	if (++thread->open > OMP_OPEN)
		return;
	if (member) {
		omp_wait_stop(member, tick);
		member->waits = 0;
	}
	if (tick)
		omp_begin_task(WORD_NAME(word), word, tick);
}

/* And back, from the innermost one. */
static void turn_back(struct omp_thread *thread, uint64_t tick)
{
	struct omp_member *member = omp_member(thread);

	if (thread->open-- > OMP_OPEN)
		return;
	if (tick)
		omp_end(tick);
	if (!member)
		return;
	omp_wait_stop(member, tick);
	member->waits = thread->waits[thread->open];
	if (member->waits)
		member->wait = tick;
	if (tick && member->arrived && thread->open == member->open)
		omp_tell_part(member, tick, XS_TEAM_FLAG_MORE);
}

/* Ends the thread's tasks down to this number of open ones. */
static void end_down_to(struct omp_thread *thread, uint32_t open, uint64_t tick)
{
	while (thread->open > open)
		turn_back(thread, tick);
}

/* The lowest number of open tasks that are not the region's. */
static uint32_t floor_of(struct omp_thread *thread)
{
	const struct omp_member *member = omp_member(thread);

	return member ? member->open : 0;
}

static void go_on_with(struct omp_thread *thread, uint64_t word, uint64_t tick)
{
	uint32_t floor = floor_of(thread);

	for (uint32_t at = thread->open < OMP_OPEN ? thread->open : OMP_OPEN; at > floor; at--)
		if (thread->task[at - 1] == word) {
			end_down_to(thread, at, tick);
			return;
		}
	turn_to(thread, word, tick);
}

static bool is_over(int status)
{
	return status == OMPT_TASK_COMPLETE || status == OMPT_TASK_CANCEL ||
	       status == OMPT_TASK_DETACH;
}

static void on_task_schedule(union ompt_word *prior, int status, union ompt_word *next)
{
	struct omp_thread *thread = omp_thread();
	uint64_t tick = omp_now(), ended = prior ? omp_word(prior) : 0,
		 begun = next ? omp_word(next) : 0;

	/* a task of which a library says, later, that it is done: no thread runs it now */
	if (thread && status != OMPT_TASK_EARLY_FULFILL && status != OMPT_TASK_LATE_FULFILL) {
		if (is_over(status) && ended && thread->open > floor_of(thread) &&
		    (thread->open > OMP_OPEN || thread->task[thread->open - 1] == ended))
			turn_back(thread, tick);
		if (begun)
			go_on_with(thread, begun, tick);
		else if (next) /* the thread's own part of the region */
			end_down_to(thread, floor_of(thread), tick);
	}
	if (prior && is_over(status) && status != OMPT_TASK_DETACH)
		omp_drop_word(prior);
	OMP_PASS_ON(OMPT_TASK_SCHEDULE, task_schedule, prior, status, next);
}

static void on_task_dependence(union ompt_word *from, union ompt_word *to)
{
	uint64_t first = omp_now() ? omp_word(from) : 0, second = first ? omp_word(to) : 0;

	if (second)
		omp_relate(first, second);
	OMP_PASS_ON(OMPT_TASK_DEPENDENCE, task_dependence, from, to);
}

const struct omp_callback omp_of_tasks[] = {
	OMP_CALLBACK(OMPT_TASK_CREATE, on_task_create),
	OMP_CALLBACK(OMPT_TASK_SCHEDULE, on_task_schedule),
	OMP_CALLBACK(OMPT_TASK_DEPENDENCE, on_task_dependence),
	{ 0 },
};
