/*
 * Parallel regions, who takes part in them, work-sharing, and what threads wait for there.
 *
 * A thread's part ends where it arrives at the barrier at the region's end. What it waits there is
 * not known before all have arrived: workers even wait there until the next region begins. So each
 * thread tells when it has arrived (XS_TEAM), and the drain process finds out who was late.
 */
#include "openmp.h"

typedef void thread_begin(int type, union ompt_word *thread);
typedef void thread_end(union ompt_word *thread);
typedef void parallel_begin(union ompt_word *task, const void *frame, union ompt_word *region,
			    unsigned threads, int flags, const void *code);
typedef void parallel_end(union ompt_word *region, union ompt_word *task, int flags,
			  const void *code);
typedef void implicit_task(int endpoint, union ompt_word *region, union ompt_word *task,
			   unsigned threads, unsigned index, int flags);
typedef void work(int kind, int endpoint, union ompt_word *region, union ompt_word *task,
		  uint64_t count, const void *code);
typedef void masked(int endpoint, union ompt_word *region, union ompt_word *task, const void *code);
typedef void sync_region(int kind, int endpoint, union ompt_word *region, union ompt_word *task,
			 const void *code);

/* ---- threads ---- */

static void on_thread_begin(int type, union ompt_word *word)
{
	if (!xs_paused() && type == OMPT_THREAD_WORKER && xs_recording())
		xs_thread_name(xs_name("OpenMP worker", 0));
	OMP_PASS_ON(OMPT_THREAD_BEGIN, thread_begin, type, word);
}

static void on_thread_end(union ompt_word *word)
{
	OMP_PASS_ON(OMPT_THREAD_END, thread_end, word);
	omp_thread_leave();
}

/* ---- regions ---- */

/* A region's word: its serial number, and the name that it has (an id has 22 bits). */
#define NAME_BITS	  22
#define REGION_NAME(word) ((uint32_t)((word) & ((1u << NAME_BITS) - 1)))
static_assert(XS_STRINGS_SIZE / 8 <= 1u << NAME_BITS, "an id of a string fits");

static void on_parallel_begin(union ompt_word *task, const void *frame, union ompt_word *region,
			      unsigned threads, int flags, const void *code)
{
	static _Atomic uint64_t regions;
	struct omp_thread *thread = omp_thread();
	uint64_t tick;

	OMP_PASS_ON(OMPT_PARALLEL_BEGIN, parallel_begin, task, frame, region, threads, flags, code);
	omp_set_word(region, 0);
	tick = omp_now();
	if (!tick || !thread)
		return;
	thread->code = code;
	if (xs_recording()) {
		uint32_t name =
			omp_name(flags & OMPT_PARALLEL_LEAGUE ? OMP_TEAMS : OMP_PARALLEL, code);

		omp_set_word(region,
			     (1 + atomic_fetch_add_explicit(&regions, 1, memory_order_relaxed))
					     << NAME_BITS |
				     name);
		omp_begin(name, tick);
	}
}

static void on_parallel_end(union ompt_word *region, union ompt_word *task, int flags,
			    const void *code)
{
	uint64_t tick = omp_now();

	omp_drop_word(region);
	if (tick)
		omp_end(tick);
	OMP_PASS_ON(OMPT_PARALLEL_END, parallel_end, region, task, flags, code);
}

void omp_tell_part(struct omp_member *member, uint64_t tick, uint8_t flags)
{
	struct xs_team_record *record;

	if (!member->begun || !member->region)
		return;
	record = xs_record_begin(sizeof(*record), XS_TEAM, XS_SOURCE_NONE, flags,
				 REGION_NAME(member->region), XS_ROLE_OTHER);
	if (!record)
		return;
	record->event.tick = tick;
	record->region = member->region >> NAME_BITS;
	record->duration = tick - member->begun;
	record->waited = member->waited;
	record->index = member->index;
	record->size = member->size;
	record->told = member->told;
	record->reserved = 0;
	member->told = record->duration - record->waited;
	xs_record_end(sizeof(*record));
}

/* The thread is done with the region but for the barrier there. */
static void arrive(struct omp_member *member, uint64_t tick)
{
	member->arrived = true;
	if (!tick)
		return;
	omp_end(tick);
	omp_tell_part(member, tick, 0);
}

static void begin_part(struct omp_thread *thread, const union ompt_word *region, unsigned threads,
		       unsigned index)
{
	struct omp_member *member;
	uint64_t tick = omp_now();

	thread->depth++;
	member = omp_member(thread);
	if (!member)
		return;
	*member = (struct omp_member){
		.region = region ? omp_word(region) : 0,
		.begun = tick,
		.code = index ? NULL : thread->code,
		.index = index,
		.size = threads,
		.open = thread->open,
	};
	thread->code = NULL;
	if (!tick)
		return;
	if (!index) /* still within the region's own task */
		omp_number("threads", threads, tick);
	omp_begin(omp_name(OMP_IMPLICIT_TASK, NULL), tick);
}

static void end_part(struct omp_thread *thread)
{
	struct omp_member *member = omp_member(thread);

	if (member && !member->arrived)
		arrive(member, omp_now());
	if (member && thread->open > member->open)
		thread->open = member->open;
	if (thread->depth)
		thread->depth--;
}

static void on_implicit_task(int endpoint, union ompt_word *region, union ompt_word *task,
			     unsigned threads, unsigned index, int flags)
{
	struct omp_thread *thread = flags & OMPT_TASK_INITIAL ? NULL : omp_thread();

	if (endpoint == OMPT_BEGIN) {
		OMP_PASS_ON(OMPT_IMPLICIT_TASK, implicit_task, endpoint, region, task, threads,
			    index, flags);
		omp_set_word(task, 0);
	}
	if (thread && endpoint == OMPT_BEGIN)
		begin_part(thread, region, threads, index);
	else if (thread)
		end_part(thread);
	if (endpoint != OMPT_BEGIN) {
		omp_drop_word(task);
		OMP_PASS_ON(OMPT_IMPLICIT_TASK, implicit_task, endpoint, region, task, threads,
			    index, flags);
	}
}

/* ---- work-sharing ---- */

static enum omp_what what_of_work(int kind)
{
	static const uint8_t whats[OMPT_WORKS] = {
		[OMPT_WORK_LOOP] = OMP_LOOP,	       [OMPT_WORK_SECTIONS] = OMP_SECTIONS,
		[OMPT_WORK_SINGLE] = OMP_SINGLE,       [OMPT_WORK_SINGLE_OTHER] = OMP_NOTHING,
		[OMPT_WORK_WORKSHARE] = OMP_WORKSHARE, [OMPT_WORK_DISTRIBUTE] = OMP_DISTRIBUTE,
		[OMPT_WORK_TASKLOOP] = OMP_TASKLOOP,   [OMPT_WORK_SCOPE] = OMP_SCOPE,
		[OMPT_WORK_LOOP_STATIC] = OMP_LOOP,    [OMPT_WORK_LOOP_DYNAMIC] = OMP_LOOP,
		[OMPT_WORK_LOOP_GUIDED] = OMP_LOOP,    [OMPT_WORK_LOOP_OTHER] = OMP_LOOP,
	};

	/* 0, which OMP_PARALLEL is, and 9: of no kind */
	return kind > 0 && kind < OMPT_WORKS && whats[kind] ? whats[kind] : OMP_NOTHING;
}

static void on_work(int kind, int endpoint, union ompt_word *region, union ompt_word *task,
		    uint64_t count, const void *code)
{
	enum omp_what what = what_of_work(kind);
	uint64_t tick = what == OMP_NOTHING ? 0 : omp_now();

	if (tick && endpoint == OMPT_BEGIN) {
		omp_begin(omp_name(what, code), tick);
		if (what == OMP_LOOP || what == OMP_SECTIONS || what == OMP_TASKLOOP)
			omp_number(what == OMP_SECTIONS ? "sections" : "iterations", count, tick);
	} else if (tick && endpoint == OMPT_END) {
		omp_end(tick);
	}
	OMP_PASS_ON(OMPT_WORK, work, kind, endpoint, region, task, count, code);
}

static void on_masked(int endpoint, union ompt_word *region, union ompt_word *task,
		      const void *code)
{
	uint64_t tick = omp_now();

	if (tick && endpoint == OMPT_BEGIN)
		omp_begin(omp_name(OMP_MASKED, code), tick);
	else if (tick && endpoint == OMPT_END)
		omp_end(tick);
	OMP_PASS_ON(OMPT_MASKED, masked, endpoint, region, task, code);
}

/* ---- waits ---- */

static enum omp_what what_of_sync(int kind, bool at_end, const struct omp_member *member)
{
	static const uint8_t whats[OMPT_SYNCS] = {
		[OMPT_BARRIER] = OMP_BARRIER,
		[OMPT_BARRIER_IMPLICIT] = OMP_BARRIER_IMPLICIT,
		[OMPT_BARRIER_EXPLICIT] = OMP_BARRIER,
		[OMPT_BARRIER_IMPLEMENTATION] = OMP_BARRIER_OF_RUNTIME,
		[OMPT_TASKWAIT] = OMP_TASKWAIT,
		[OMPT_TASKGROUP] = OMP_TASKGROUP,
		[OMPT_REDUCTION] = OMP_REDUCTION,
		[OMPT_BARRIER_WORKSHARE] = OMP_BARRIER_OF_LOOP,
		[OMPT_BARRIER_PARALLEL] = OMP_BARRIER_OF_REGION,
		[OMPT_BARRIER_TEAMS] = OMP_BARRIER_OF_TEAMS,
	};

	if (at_end)
		return member->index ? OMP_BARRIER_AND_IDLE : OMP_BARRIER_OF_REGION;
	return kind > 0 && kind < OMPT_SYNCS ? whats[kind] : OMP_NOTHING;
}

/*
 * Is it the barrier at the region's end? Runtimes of OpenMP 5.0 do not say so, but give no place in
 * the code for it, or that of the region.
 */
static bool is_end(int kind, const struct omp_member *member, const void *code)
{
	return member && !member->arrived &&
	       (kind == OMPT_BARRIER_PARALLEL ||
		(kind == OMPT_BARRIER_IMPLICIT && (!code || code == member->code)));
}

static void begin_sync(int kind, const void *code)
{
	struct omp_thread *thread = omp_thread();
	struct omp_member *member = thread ? omp_member(thread) : NULL;
	uint64_t tick = omp_now();
	bool at_end = is_end(kind, member, code);
	enum omp_what what = what_of_sync(kind, at_end, member);

	if (at_end)
		arrive(member, tick);
	if (member)
		omp_wait_begin(member, tick);
	if (tick && what != OMP_NOTHING)
		omp_begin(omp_name(what, code), tick);
}

static void end_sync(int kind)
{
	struct omp_thread *thread = omp_thread();
	struct omp_member *member = thread ? omp_member(thread) : NULL;
	uint64_t tick = omp_now();

	if (member && member->waits == 1)
		omp_wait_stop(member, tick);
	if (member && member->waits)
		member->waits--;
	if (tick && what_of_sync(kind, false, member) != OMP_NOTHING)
		omp_end(tick);
}

static void on_sync_region(int kind, int endpoint, union ompt_word *region, union ompt_word *task,
			   const void *code)
{
	if (endpoint == OMPT_BEGIN)
		begin_sync(kind, code);
	else if (endpoint == OMPT_END)
		end_sync(kind);
	OMP_PASS_ON(OMPT_SYNC_REGION, sync_region, kind, endpoint, region, task, code);
}

const struct omp_callback omp_of_regions[] = {
	OMP_CALLBACK(OMPT_THREAD_BEGIN, on_thread_begin),
	OMP_CALLBACK(OMPT_THREAD_END, on_thread_end),
	OMP_CALLBACK(OMPT_PARALLEL_BEGIN, on_parallel_begin),
	OMP_CALLBACK(OMPT_PARALLEL_END, on_parallel_end),
	OMP_CALLBACK(OMPT_IMPLICIT_TASK, on_implicit_task),
	OMP_CALLBACK(OMPT_WORK, on_work),
	OMP_CALLBACK(OMPT_MASKED, on_masked),
	OMP_CALLBACK(OMPT_SYNC_REGION, on_sync_region),
	{ 0 },
};
