/*
 * What the files of this folder know of each other: an OpenMP runtime's events become tasks of the
 * domain "OpenMP", on the threads where they happen.
 *
 * The runtime keeps a word for each region and task, in which we note who it is. Threads have a
 * struct of their own, because what a thread has begun must be ended on it, whatever was not
 * recorded in between.
 */
#ifndef XS_OPENMP_H
#define XS_OPENMP_H

#include "collector.h"
#include "ompt_abi.h"

/* ---- names.c ---- */

/* What is shown. Each comes with the place in the program's code, if the runtime tells it. */
enum omp_what {
	OMP_PARALLEL,
	OMP_TEAMS,
	OMP_IMPLICIT_TASK,
	OMP_LOOP,
	OMP_SECTIONS,
	OMP_SINGLE,
	OMP_WORKSHARE,
	OMP_DISTRIBUTE,
	OMP_TASKLOOP,
	OMP_SCOPE,
	OMP_MASKED,
	OMP_BARRIER,
	OMP_BARRIER_IMPLICIT,
	OMP_BARRIER_OF_LOOP,
	OMP_BARRIER_OF_REGION,
	OMP_BARRIER_AND_IDLE,
	OMP_BARRIER_OF_RUNTIME,
	OMP_BARRIER_OF_TEAMS,
	OMP_TASKWAIT,
	OMP_TASKGROUP,
	OMP_REDUCTION,
	OMP_TASK_CREATE,
	OMP_TASK,
	OMP_LOCK_WAIT,
	OMP_NEST_LOCK_WAIT,
	OMP_CRITICAL_WAIT,
	OMP_ATOMIC_WAIT,
	OMP_ORDERED_WAIT,
	OMP_CRITICAL,
	OMP_ORDERED,
	OMP_TARGET,
	OMP_TARGET_ENTER_DATA,
	OMP_TARGET_EXIT_DATA,
	OMP_TARGET_UPDATE,
	OMP_DATA_ALLOC,
	OMP_DATA_TO_DEVICE,
	OMP_DATA_FROM_DEVICE,
	OMP_DATA_DELETE,
	OMP_SUBMIT,
	OMP_NOTHING, /* not shown */
};

/* Interned name of the domain; never 0. */
uint32_t omp_domain(void);
/* Interned name; `code`: a return address in the program's code, or NULL. */
uint32_t omp_name(enum omp_what what, const void *code);

/* ---- write.c ---- */

/* The time; 0: nothing is recorded just now. */
static inline uint64_t omp_now(void)
{
	return xs_paused() ? 0 : xs_tick(xs_use_tsc);
}

/* tick: omp_now()'s, not 0. */
void omp_begin(uint32_t name, uint64_t tick);
void omp_end(uint64_t tick);
/* A number of what the thread has begun last. key: a constant. */
void omp_number(const char *key, uint64_t value, uint64_t tick);

/*
 * Ids of explicit tasks: the word of a task, and whether it is its creation or its execution that
 * is meant.
 */
enum omp_half { OMP_CREATED = 1, OMP_EXECUTED };
void omp_mark_created(uint32_t name, uint64_t task, uint64_t tick);
void omp_begin_task(uint32_t name, uint64_t task, uint64_t tick);
void omp_relate(uint64_t from, uint64_t to);

/* ---- threads.c: of each thread of OpenMP's ---- */

#define OMP_DEPTH 16u /* regions inside of each other */
#define OMP_OPEN  64u /* explicit tasks */

/* The thread's part in a region. */
struct omp_member {
	uint64_t region; /* its word; 0: nothing is known */
	uint64_t begun;	 /* ticks; 0: was not recorded */
	uint64_t waited; /* until now, in ticks */
	uint64_t told;	 /* of its work, in ticks */
	uint64_t wait;	 /* since when it waits; 0: it does not */
	const void *code;
	uint32_t index, size;
	uint32_t open; /* explicit tasks of the thread's that are not of this region */
	uint8_t waits; /* inside of each other, of the innermost task */
	bool arrived;  /* at the region's end */
};

struct omp_thread {
	struct omp_thread *next;  /* unused ones */
	uint64_t number, created; /* of tasks */
	uint32_t depth;		  /* of member[]; it may be more than there are */
	uint32_t open;
	const void *code; /* of the region that it has just begun, and of which it is not yet a
			     member */
	uint64_t lock, lock_tick; /* that it wants, and since when; 0: that was not recorded */
	struct omp_member member[OMP_DEPTH];
	uint64_t task[OMP_OPEN]; /* explicit ones, the innermost last */
	uint8_t waits[OMP_OPEN]; /* member->waits when each began */
};

/* The calling thread's; NULL: no memory. */
struct omp_thread *omp_thread(void);
/* It is no thread of OpenMP's any more. */
void omp_thread_leave(void);
/*
 * A runtime starts. In a child of fork nothing goes on of what its thread had begun. Otherwise
 * there are two: libraries bring their own, and may call it first within the program's region.
 */
void omp_thread_start(void);

static inline struct omp_member *omp_member(struct omp_thread *thread)
{
	return thread->depth && thread->depth <= OMP_DEPTH ? &thread->member[thread->depth - 1]
							   : NULL;
}

/*
 * Of the thread's part in the region: it begins to wait, or has waited enough. What it does in an
 * explicit task is no wait, though the task may run in one.
 */
static inline void omp_wait_begin(struct omp_member *member, uint64_t tick)
{
	if (!member->waits++)
		member->wait = tick;
}

static inline void omp_wait_stop(struct omp_member *member, uint64_t tick)
{
	if (member->waits && tick && member->wait)
		member->waited += tick - member->wait;
	member->wait = 0;
}

/* It has done its part, but for tasks that it may run while it waits for the others. */
void omp_tell_part(struct omp_member *member, uint64_t tick, uint8_t flags);

/* ---- the callbacks: regions.c, tasks.c, locks.c, target.c ---- */

struct omp_callback {
	int event;
	ompt_function function;
};
#define OMP_CALLBACK(event, function) { event, (ompt_function)(function) }
/* Ours of the event, of these lists; NULL: we have none. */
ompt_function omp_ours(int event);
extern const struct omp_callback omp_of_regions[], omp_of_tasks[], omp_of_locks[], omp_of_target[];

/* ---- chain.c: a tool of the program's own ---- */

/*
 * What the program's own tool says of this runtime; NULL: there is none. with_files: also one that
 * OMP_TOOL_LIBRARIES names.
 */
struct ompt_tool *omp_others_tool(unsigned version, const char *runtime, bool with_files);
/* Starts it, with a set_callback() of ours; NULL: forgets one that an earlier runtime had. */
void omp_chain_start(struct ompt_tool *others, ompt_lookup *lookup, int device);
void omp_chain_end(void);
/* Its callback of the event; NULL: it has none. */
ompt_function omp_others(int event);
/* Calls it, if there is one: the end of each callback of ours. */
#define OMP_PASS_ON(event, type, ...)                      \
	do {                                               \
		type *theirs_ = (type *)omp_others(event); \
		if (__builtin_expect(theirs_ != NULL, 0))  \
			theirs_(__VA_ARGS__);              \
	} while (0)

/* Our word of a region or task: the runtime's, unless the program's own tool has that. */
uint64_t omp_word(const union ompt_word *of);
void omp_set_word(union ompt_word *of, uint64_t value);
void omp_drop_word(union ompt_word *of);

#endif
