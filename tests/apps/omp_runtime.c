/*
 * What an OpenMP runtime says to a tool, by hand: events of target regions, which need a device
 * otherwise; events that no runtime should send; and what one costs.
 *
 *	omp_runtime target		a target region with its data
 *	omp_runtime odd			every event, with nothing right
 *	omp_runtime stack BYTES		a region on a thread with so much stack
 *	omp_runtime cancel N		N threads that are cancelled while they tell
 *	omp_runtime many N		N threads, one after the other, with a region each
 *	omp_runtime second		another runtime starts within a region
 *	omp_runtime events N		N loops within a region; says what an event takes, ns
 */
#include <dlfcn.h>
#include <limits.h>

#include "app.h"
#include "ompt_abi.h"

static ompt_function callback[OMPT_EVENTS];

static int set_callback(int event, ompt_function function)
{
	if (event <= 0 || event >= OMPT_EVENTS)
		return OMPT_SET_ERROR;
	callback[event] = function;
	return OMPT_SET_ALWAYS;
}

static ompt_function lookup(const char *name)
{
	return strcmp(name, "ompt_set_callback") ? NULL : (ompt_function)set_callback;
}

/* Without a tool nobody is told. */
#define TELL(event, types, ...)                                        \
	do {                                                           \
		if (callback[event])                                   \
			((void(*) types)callback[event])(__VA_ARGS__); \
	} while (0)

static char code[16]; /* stands for places in the program */

static void thread_begin(int type, union ompt_word *thread)
{
	TELL(OMPT_THREAD_BEGIN, (int, union ompt_word *), type, thread);
}

static void thread_end(union ompt_word *thread)
{
	TELL(OMPT_THREAD_END, (union ompt_word *), thread);
}

static void parallel(bool begin, union ompt_word *region, const void *where)
{
	union ompt_word task = { 0 };

	if (begin)
		TELL(OMPT_PARALLEL_BEGIN,
		     (union ompt_word *, const void *, union ompt_word *, unsigned, int,
		      const void *),
		     &task, NULL, region, 1, 1, where);
	else
		TELL(OMPT_PARALLEL_END, (union ompt_word *, union ompt_word *, int, const void *),
		     region, &task, 1, where);
}

static void implicit(int endpoint, union ompt_word *region, union ompt_word *task, unsigned threads,
		     unsigned index)
{
	TELL(OMPT_IMPLICIT_TASK,
	     (int, union ompt_word *, union ompt_word *, unsigned, unsigned, int), endpoint, region,
	     task, threads, index, OMPT_TASK_IMPLICIT);
}

static void work(int kind, int endpoint, const void *where)
{
	TELL(OMPT_WORK, (int, int, union ompt_word *, union ompt_word *, uint64_t, const void *),
	     kind, endpoint, NULL, NULL, 1000, where);
}

static void sync_region(int kind, int endpoint, const void *where)
{
	TELL(OMPT_SYNC_REGION, (int, int, union ompt_word *, union ompt_word *, const void *), kind,
	     endpoint, NULL, NULL, where);
}

/* ---- what it is told ---- */

static void target(void)
{
	union ompt_word task = { 0 }, region = { 0 };
	uint64_t operation = 0;
	char data[64];

#define TARGET(kind, endpoint)                                                        \
	TELL(OMPT_TARGET_EMI,                                                         \
	     (int, int, int, union ompt_word *, union ompt_word *, union ompt_word *, \
	      const void *),                                                          \
	     kind, endpoint, 3, &task, NULL, &region, code)
#define DATA(kind, endpoint, bytes)                                                            \
	TELL(OMPT_TARGET_DATA_OP_EMI,                                                          \
	     (int, union ompt_word *, union ompt_word *, uint64_t *, int, void *, int, void *, \
	      int, size_t, const void *),                                                      \
	     endpoint, NULL, &region, &operation, kind, data, 0, data, 3, (size_t)(bytes), code)
#define SUBMIT(endpoint)                                                                       \
	TELL(OMPT_TARGET_SUBMIT_EMI, (int, union ompt_word *, uint64_t *, unsigned), endpoint, \
	     &region, &operation, 120)
	thread_begin(OMPT_THREAD_INITIAL, &task);
	TARGET(OMPT_TARGET_ENTER_DATA, OMPT_BEGIN);
	DATA(OMPT_DATA_ALLOC, OMPT_BEGIN, 4096);
	DATA(OMPT_DATA_ALLOC, OMPT_END, 4096);
	DATA(OMPT_DATA_TO_DEVICE + OMPT_DATA_ASYNC, OMPT_BEGIN, 4096);
	DATA(OMPT_DATA_TO_DEVICE + OMPT_DATA_ASYNC, OMPT_END, 4096);
	TARGET(OMPT_TARGET_ENTER_DATA, OMPT_END);
	TARGET(OMPT_TARGET + OMPT_TARGET_NOWAIT, OMPT_BEGIN);
	SUBMIT(OMPT_BEGIN);
	SUBMIT(OMPT_END);
	DATA(OMPT_DATA_FROM_DEVICE, OMPT_BEGIN, 2048);
	DATA(OMPT_DATA_FROM_DEVICE, OMPT_END, 2048);
	DATA(OMPT_DATA_DELETE, OMPT_BEGIN, 0);
	DATA(OMPT_DATA_DELETE, OMPT_END, 0);
	DATA(OMPT_DATA_ASSOCIATE, OMPT_BEGIN, 0);
	DATA(OMPT_DATA_ASSOCIATE, OMPT_END, 0);
	TARGET(OMPT_TARGET + OMPT_TARGET_NOWAIT, OMPT_END);
	TARGET(OMPT_TARGET_UPDATE, OMPT_BEGIN);
	TARGET(OMPT_TARGET_UPDATE, OMPT_END);
}

static void one_region(void)
{
	union ompt_word region = { 0 }, task = { 0 }, thread = { 0 };

	thread_begin(OMPT_THREAD_WORKER, &thread);
	parallel(true, &region, code);
	implicit(OMPT_BEGIN, &region, &task, 1, 0);
	work(OMPT_WORK_LOOP, OMPT_BEGIN, code);
	work(OMPT_WORK_LOOP, OMPT_END, code);
	implicit(OMPT_END, NULL, &task, 0, 0);
	parallel(false, &region, code);
	thread_end(&thread);
}

/* As it is in a program's region that calls a library which brings its own runtime. */
static void second_runtime(struct ompt_tool *tool)
{
	union ompt_word region = { 0 }, task = { 0 };

	parallel(true, &region, code);
	implicit(OMPT_BEGIN, &region, &task, 1, 0);
	if (tool)
		(void)tool->initialize(lookup, 0, &tool->word);
	work(OMPT_WORK_LOOP, OMPT_BEGIN, code);
	work(OMPT_WORK_LOOP, OMPT_END, code);
	implicit(OMPT_END, NULL, &task, 0, 0);
	parallel(false, &region, code);
}

static void odd(void)
{
	static const int numbers[] = { INT_MIN, -1, 0, 9, 14, 99, INT_MAX };
	union ompt_word word = { .value = UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int kind = numbers[i];

		for (int endpoint = -1; endpoint < 5; endpoint++) {
			work(kind, endpoint, NULL);
			work(kind, endpoint, (void *)1);
			sync_region(kind, endpoint, (void *)UINTPTR_MAX);
			sync_region(OMPT_BARRIER_PARALLEL, endpoint, NULL);
			TELL(OMPT_MASKED, (int, union ompt_word *, union ompt_word *, const void *),
			     endpoint, NULL, NULL, NULL);
			TELL(OMPT_TARGET_EMI,
			     (int, int, int, union ompt_word *, union ompt_word *,
			      union ompt_word *, const void *),
			     kind, endpoint, kind, NULL, NULL, NULL, NULL);
			TELL(OMPT_TARGET_DATA_OP_EMI,
			     (int, union ompt_word *, union ompt_word *, uint64_t *, int, void *,
			      int, void *, int, size_t, const void *),
			     endpoint, NULL, NULL, NULL, kind, NULL, kind, NULL, kind, SIZE_MAX,
			     NULL);
			TELL(OMPT_TARGET_SUBMIT_EMI, (int, union ompt_word *, uint64_t *, unsigned),
			     endpoint, NULL, NULL, UINT_MAX);
			implicit(endpoint, NULL, NULL, UINT_MAX, UINT_MAX);
			implicit(endpoint, &word, &word, 0, 0);
		}
		TELL(OMPT_MUTEX_ACQUIRE, (int, unsigned, unsigned, uint64_t, const void *), kind,
		     UINT_MAX, UINT_MAX, UINT64_MAX, NULL);
		TELL(OMPT_MUTEX_RELEASED, (int, uint64_t, const void *), kind, 0, NULL);
		TELL(OMPT_MUTEX_ACQUIRED, (int, uint64_t, const void *), kind, 0, NULL);
		/* a wait that crosses a region, at its begin and at its end */
		for (int first = 0; first < 2; first++) {
			parallel(first, &word, NULL);
			TELL(OMPT_MUTEX_ACQUIRE, (int, unsigned, unsigned, uint64_t, const void *),
			     OMPT_LOCK, 0, 0, 1, NULL);
			sleep_ms(1);
			parallel(!first, &word, NULL);
			sleep_ms(1);
			TELL(OMPT_MUTEX_ACQUIRED, (int, uint64_t, const void *), OMPT_LOCK, 1,
			     NULL);
		}
		word.value = UINT64_MAX;
		TELL(OMPT_TASK_SCHEDULE, (union ompt_word *, int, union ompt_word *), &word, kind,
		     NULL);
		TELL(OMPT_TASK_SCHEDULE, (union ompt_word *, int, union ompt_word *), NULL, kind,
		     &word);
		TELL(OMPT_TASK_SCHEDULE, (union ompt_word *, int, union ompt_word *), NULL,
		     OMPT_TASK_SWITCH, NULL);
		TELL(OMPT_TASK_DEPENDENCE, (union ompt_word *, union ompt_word *), NULL, &word);
		TELL(OMPT_TASK_DEPENDENCE, (union ompt_word *, union ompt_word *), &word, &word);
		TELL(OMPT_TASK_CREATE,
		     (union ompt_word *, const void *, union ompt_word *, int, int, const void *),
		     NULL, NULL, NULL, kind, kind, NULL);
		parallel(false, NULL, NULL);
		parallel(true, NULL, NULL);
		parallel(true, &word, NULL);
	}
	thread_end(NULL);
	thread_end(NULL);
	one_region();
}

/* ---- threads ---- */

static void *region_thread(void *arg)
{
	(void)arg;
	one_region();
	return NULL;
}

static void *endless_thread(void *arg)
{
	union ompt_word task = { 0 };

	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &(int){ 0 });
	(void)arg;
	for (;;) {
		implicit(OMPT_BEGIN, NULL, &task, 1, 0);
		work(OMPT_WORK_LOOP, OMPT_BEGIN, code);
		sync_region(OMPT_BARRIER_EXPLICIT, OMPT_BEGIN, code);
		sync_region(OMPT_BARRIER_EXPLICIT, OMPT_END, code);
		work(OMPT_WORK_LOOP, OMPT_END, code);
		implicit(OMPT_END, NULL, &task, 1, 0);
	}
	return NULL;
}

static void cancel(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_t thread = start_thread(endless_thread, NULL);

		usleep((unsigned)(i * 37 % 500));
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
}

static void little_stack(size_t bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, bytes))
		die("stack size");
	if (pthread_create(&thread, &attributes, region_thread, NULL))
		die("pthread_create");
	pthread_join(thread, NULL);
}

static double events(int n)
{
	union ompt_word region = { 0 }, task = { 0 };
	uint64_t start;

	parallel(true, &region, code);
	implicit(OMPT_BEGIN, &region, &task, 1, 0);
	start = now_ns();
	for (int i = 0; i < n; i++) {
		work(OMPT_WORK_SINGLE, OMPT_BEGIN, code);
		sync_region(OMPT_BARRIER_EXPLICIT, OMPT_BEGIN, code);
		sync_region(OMPT_BARRIER_EXPLICIT, OMPT_END, code);
		work(OMPT_WORK_SINGLE, OMPT_END, code);
	}
	start = now_ns() - start;
	implicit(OMPT_END, NULL, &task, 0, 0);
	parallel(false, &region, code);
	return (double)start / n / 4;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "odd";
	int n = argc > 2 ? atoi(argv[2]) : 1;
	ompt_start *start = NULL;
	struct ompt_tool *tool;

	*(void **)&start = dlsym(RTLD_DEFAULT, "ompt_start_tool");
	tool = start ? start(202011, "by hand") : NULL;
	if (tool && !tool->initialize(lookup, 0, &tool->word))
		memset(callback, 0, sizeof(callback));
	if (!strcmp(what, "target"))
		target();
	else if (!strcmp(what, "odd"))
		odd();
	else if (!strcmp(what, "stack"))
		little_stack((size_t)n);
	else if (!strcmp(what, "cancel"))
		cancel(n);
	else if (!strcmp(what, "many"))
		for (int i = 0; i < n; i++)
			pthread_join(start_thread(region_thread, NULL), NULL);
	else if (!strcmp(what, "second"))
		second_runtime(tool);
	else if (!strcmp(what, "events"))
		printf("event %.2f\n", events(n));
	if (tool)
		tool->finalize(&tool->word);
	printf("done\n");
	return 0;
}
