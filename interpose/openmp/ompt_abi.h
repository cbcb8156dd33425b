/*
 * What we use of OMPT, the interface by which an OpenMP runtime tells a tool what it does. Source:
 * the OpenMP API specification 5.2, chapters 19 ("OMPT interface") and 20; kinds of work above 8
 * are those of 6.0. tests/test_openmp.py compares with omp-tools.h of LLVM.
 *
 * Values are passed as the C enums of the specification, which are ints.
 */
#ifndef XS_OMPT_ABI_H
#define XS_OMPT_ABI_H

#include <stddef.h>
#include <stdint.h>

/* A word that the runtime keeps for the tool, one for each region, task and thread. */
union ompt_word {
	uint64_t value;
	void *pointer;
};

typedef void (*ompt_function)(void);
typedef ompt_function ompt_lookup(const char *name);

struct ompt_tool {
	/* 0: the tool wants nothing */
	int (*initialize)(ompt_lookup *lookup, int initial_device, union ompt_word *tool);
	void (*finalize)(union ompt_word *tool);
	union ompt_word word;
};

typedef struct ompt_tool *ompt_start(unsigned version, const char *runtime);
typedef int ompt_set_callback(int event, ompt_function callback);
typedef int ompt_get_callback(int event, ompt_function *ret);

enum ompt_event {
	OMPT_THREAD_BEGIN = 1,
	OMPT_THREAD_END = 2,
	OMPT_PARALLEL_BEGIN = 3,
	OMPT_PARALLEL_END = 4,
	OMPT_TASK_CREATE = 5,
	OMPT_TASK_SCHEDULE = 6,
	OMPT_IMPLICIT_TASK = 7,
	OMPT_TASK_DEPENDENCE = 19,
	OMPT_WORK = 20,
	OMPT_MASKED = 21,
	OMPT_SYNC_REGION = 23,
	OMPT_MUTEX_RELEASED = 17,
	OMPT_MUTEX_ACQUIRE = 26,
	OMPT_MUTEX_ACQUIRED = 27,
	OMPT_TARGET_EMI = 33,
	OMPT_TARGET_DATA_OP_EMI = 34,
	OMPT_TARGET_SUBMIT_EMI = 35,
	OMPT_EVENTS = 64, /* more than there are */
};

enum { OMPT_SET_ERROR = 0, OMPT_SET_NEVER = 1, OMPT_SET_ALWAYS = 5 };

enum ompt_endpoint { OMPT_BEGIN = 1, OMPT_END = 2, OMPT_BEGIN_END = 3 };

enum ompt_thread { OMPT_THREAD_INITIAL = 1, OMPT_THREAD_WORKER = 2 };

enum ompt_sync {
	OMPT_BARRIER = 1,
	OMPT_BARRIER_IMPLICIT = 2, /* any: until OpenMP 5.1 told which */
	OMPT_BARRIER_EXPLICIT = 3,
	OMPT_BARRIER_IMPLEMENTATION = 4,
	OMPT_TASKWAIT = 5,
	OMPT_TASKGROUP = 6,
	OMPT_REDUCTION = 7,
	OMPT_BARRIER_WORKSHARE = 8,
	OMPT_BARRIER_PARALLEL = 9,
	OMPT_BARRIER_TEAMS = 10,
	OMPT_SYNCS,
};

enum ompt_work {
	OMPT_WORK_LOOP = 1,
	OMPT_WORK_SECTIONS = 2,
	OMPT_WORK_SINGLE = 3,	    /* by the thread that does it */
	OMPT_WORK_SINGLE_OTHER = 4, /* by each of the others */
	OMPT_WORK_WORKSHARE = 5,
	OMPT_WORK_DISTRIBUTE = 6,
	OMPT_WORK_TASKLOOP = 7,
	OMPT_WORK_SCOPE = 8,
	OMPT_WORK_LOOP_STATIC = 10,
	OMPT_WORK_LOOP_DYNAMIC = 11,
	OMPT_WORK_LOOP_GUIDED = 12,
	OMPT_WORK_LOOP_OTHER = 13,
	OMPT_WORKS,
};

enum ompt_mutex {
	OMPT_LOCK = 1,
	OMPT_TEST_LOCK = 2,
	OMPT_NEST_LOCK_KIND = 3,
	OMPT_TEST_NEST_LOCK = 4,
	OMPT_CRITICAL = 5,
	OMPT_ATOMIC = 6,
	OMPT_ORDERED = 7,
	OMPT_MUTEXES,
};

enum ompt_task_flags {
	OMPT_TASK_INITIAL = 1,
	OMPT_TASK_IMPLICIT = 2,
	OMPT_TASK_EXPLICIT = 4,
	OMPT_TASK_TARGET = 8,
};

enum ompt_task_status {
	OMPT_TASK_COMPLETE = 1,
	OMPT_TASK_YIELD = 2,
	OMPT_TASK_CANCEL = 3,
	OMPT_TASK_DETACH = 4,
	OMPT_TASK_EARLY_FULFILL = 5,
	OMPT_TASK_LATE_FULFILL = 6,
	OMPT_TASK_SWITCH = 7,
};

enum ompt_parallel_flags { OMPT_PARALLEL_LEAGUE = 0x40000000 };

enum ompt_target {
	OMPT_TARGET = 1,
	OMPT_TARGET_ENTER_DATA = 2,
	OMPT_TARGET_EXIT_DATA = 3,
	OMPT_TARGET_UPDATE = 4,
	OMPT_TARGET_NOWAIT = 8, /* added to these */
};

enum ompt_data_op {
	OMPT_DATA_ALLOC = 1,
	OMPT_DATA_TO_DEVICE = 2,
	OMPT_DATA_FROM_DEVICE = 3,
	OMPT_DATA_DELETE = 4,
	OMPT_DATA_ASSOCIATE = 5,
	OMPT_DATA_DISASSOCIATE = 6,
	OMPT_DATA_ASYNC = 16, /* added to the first four */
};

#endif
