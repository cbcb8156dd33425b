/*
 * Programs that are rough with their threads while these trace. Each is right without a tracer, and
 * ends by itself. itt_inside …
 *
 *	cancel		a thread that is to be cancelled makes its first event when eight
 *			rings are taken; eight others go on
 *	async N		N threads of asynchronous cancel type are cancelled while they trace;
 *			four others go on
 *	stack BYTES	new names, metadata and the rest on threads of such stacks (0:
 *			PTHREAD_STACK_MIN)
 *	depth		how many bytes of stack each entry point takes at its first call
 *	sigstack BYTES	as stack, in a handler on a signal stack of that size
 *	control SECONDS	a handler pauses, resumes and changes the environment while the
 *			thread does the same
 *	jump N WHERE	a handler leaves N times by siglongjmp(); then 1,000 tasks. WHERE:
 *			same, deeper, sigstack
 *	nested N	handlers trace a task, N times, while the thread traces its own
 *	nodefer N TASKS	the same with so many tasks each millisecond, and handlers that
 *			their own signal interrupts
 *	realtime SECONDS	a real-time and a normal thread of one processor make names
 *			all the time; prints the longest wait
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "itt_app.h"

#define CANARY 65536

static __itt_domain *domain;
static __itt_string_handle *task, *later, *of_handler;

static void new_name(const char *kind, unsigned number)
{
	char name[48];

	snprintf(name, sizeof(name), "%s %u", kind, number);
	finished_task(domain, __itt_string_handle_create(name));
}

/* ---- threads that are cancelled ---- */

static pthread_barrier_t ready, go;
static atomic_bool stop;

static void *eight(void *unused)
{
	finished_task(domain, task);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);
	for (int i = 0; i < 100; i++)
		finished_task(domain, task);
	return unused;
}

static void *to_be_cancelled(void *unused)
{
	pthread_cancel(pthread_self()); /* takes place at the next cancellation point */
	finished_task(domain, later);
	new_name("named in a thread that is to be cancelled", 1);
	pthread_testcancel();
	return unused;
}

static int cancel(void)
{
	pthread_t threads[8], victim;
	void *result;

	pthread_barrier_init(&ready, NULL, 9);
	pthread_barrier_init(&go, NULL, 9);
	for (int i = 0; i < 8; i++)
		threads[i] = start_thread(eight, NULL);
	pthread_barrier_wait(&ready);
	victim = start_thread(to_be_cancelled, NULL);
	pthread_join(victim, &result);
	pthread_barrier_wait(&go);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 100; i++)
		finished_task(domain, later);
	printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "ended");
	printf("expected: 808 tasks inside::task\nexpected: 101 tasks inside::later\n");
	return 0;
}

static void *traces_for_ever(void *number)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (unsigned i = 0;; i++) {
		finished_task(domain, task);
		if (i % 16 == 0 && i < 1600)
			new_name("of a thread", (unsigned)(uintptr_t)number * 100 + i / 16);
	}
	return NULL;
}

static void *goes_on(void *unused)
{
	while (!stop) {
		finished_task(domain, of_handler);
		for (volatile int i = 0; i < 2000; i++)
			;
	}
	for (int i = 0; i < 1000; i++)
		finished_task(domain, later);
	return unused;
}

static int async(unsigned count)
{
	pthread_t others[4];

	/* a cancellation in ittnotify's own first steps would leave its lock taken */
	finished_task(domain, task);
	for (int i = 0; i < 4; i++)
		others[i] = start_thread(goes_on, NULL);
	for (unsigned i = 0; i < count; i++) {
		pthread_t thread = start_thread(traces_for_ever, (void *)(uintptr_t)i);

		if (i % 3)
			nanosleep(&(struct timespec){ 0, 1000 * (i * 7919 % 199) }, NULL);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(others[i], NULL);
	printf("expected: 4000 tasks inside::later\n");
	return 0;
}

/* ---- little stack ---- */

static void *everything(void *unused)
{
	__itt_id id = { (unsigned long long)(uintptr_t)&id, 1, 0 };
	__itt_string_handle *key = __itt_string_handle_create("a key");
	static char text[4096];
	double values[] = { 1.5, 2.5 };
	unsigned long long count = 7;

	memset(text, 'x', sizeof(text) - 1);
	new_name("on a little stack", 1);
	__itt_task_begin(domain, id, __itt_null, __itt_string_handle_create(text));
	__itt_metadata_add(domain, id, key, __itt_metadata_double, 2, values);
	__itt_metadata_str_add(domain, id, key, text, 0);
	__itt_task_end(domain);
	__itt_task_begin_fn(domain, __itt_null, __itt_null, (void *)everything);
	__itt_task_end(domain);
	__itt_counter_set_value(__itt_counter_create(text, "a domain"), &count);
	__itt_frame_begin_v3(domain, NULL);
	__itt_frame_end_v3(domain, NULL);
	__itt_marker(domain, id, key, __itt_scope_track_group);
	__itt_sync_create(&count, "type", text, 0);
	__itt_sync_prepare(&count);
	__itt_sync_acquired(&count);
	__itt_module_load(text, text + 1, text);
	__itt_thread_set_name("little");
	__itt_task_begin_overlapped(domain, id, __itt_null, key);
	__itt_task_end_overlapped(domain, id);
	__itt_region_begin(domain, id, __itt_null, key);
	__itt_region_end(domain, id);
	finished_task(domain, later);
	return unused;
}

/* Memory for a stack of `bytes`, with bytes below it that must stay as they are. */
static char *guarded(size_t bytes)
{
	char *map = mmap(NULL, CANARY + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (map == MAP_FAILED)
		die("mmap");
	memset(map, 0x5a, CANARY);
	return map;
}

static bool intact(const char *map)
{
	for (int i = 0; i < CANARY; i++)
		if (map[i] != 0x5a)
			return false;
	return true;
}

static int stack(size_t bytes)
{
	pthread_attr_t attributes;
	char *map;
	pthread_t thread;

	if (!bytes)
		bytes = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	map = guarded(bytes);
	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, map + CANARY, bytes))
		die("pthread_attr_setstack");
	errno = pthread_create(&thread, &attributes, everything, NULL);
	if (errno)
		die("pthread_create");
	pthread_join(thread, NULL);
	printf("%s\nexpected: 1 tasks inside::later\n",
	       intact(map) ? "intact" : "written below the stack");
	return 0;
}

static void handler_on_stack(int unused)
{
	(void)unused;
	everything(NULL);
}

static void *raises(void *map)
{
	size_t bytes = *(size_t *)map;
	stack_t signal_stack;

	memset(map, 0x5a, sizeof(bytes));
	signal_stack = (stack_t){ .ss_sp = (char *)map + CANARY, .ss_size = bytes };
	if (sigaltstack(&signal_stack, NULL))
		die("sigaltstack");
	raise(SIGUSR1);
	return NULL;
}

static int signal_stack_of(size_t bytes)
{
	struct sigaction action = { .sa_handler = handler_on_stack, .sa_flags = SA_ONSTACK };
	char *map = guarded(bytes);

	*(size_t *)map = bytes;
	sigaction(SIGUSR1, &action, NULL);
	pthread_join(start_thread(raises, map), NULL);
	printf("%s\nexpected: 1 tasks inside::later\n",
	       intact(map) ? "intact" : "written below the stack");
	return 0;
}

/* ---- how much stack ---- */

static void first_event(void)
{
	finished_task(domain, task);
}

static void no_event(void)
{
}

static void known_task(void)
{
	finished_task(domain, task);
}

static void new_task(void)
{
	finished_task(domain, __itt_string_handle_create("a name that is new here"));
}

static void function_task(void)
{
	__itt_task_begin_fn(domain, __itt_null, __itt_null, (void *)new_task);
	__itt_task_end(domain);
}

static void metadata(void)
{
	__itt_metadata_str_add(domain, __itt_null, task, "text", 0);
	__itt_metadata_add(domain, __itt_null, later, __itt_metadata_double, 1, &(double){ 1.5 });
}

static void formatted(void)
{
	__itt_formatted_metadata_add(domain, __itt_string_handle_create("%s %d %ls %La %.*f"),
				     "text", 1, L"wide", 1.5L, 900000000, 1e300 / 3);
}

static void counters(void)
{
	__itt_counter_set_value(__itt_counter_create("a counter that is new here", "domain"),
				&(unsigned long long){ 1 });
}

static void waits(void)
{
	static char object;

	__itt_sync_create(&object, "type", "name", 0);
	__itt_sync_prepare(&object);
	__itt_sync_acquired(&object);
}

static void pauses(void)
{
	__itt_pause();
	__itt_resume();
}

static void environment(void)
{
	setenv("PTI_ENABLE_COLLECTION", "1", 1);
}

static void *calls(void *function)
{
	((void (*)(void))function)();
	return NULL;
}

static long depth_of(void (*function)(void))
{
	enum { BYTES = 262144 };
	pthread_attr_t attributes;
	char *map = guarded(BYTES);
	pthread_t thread;
	long at = 0;

	memset(map, 0x5a, CANARY + BYTES);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, map + CANARY, BYTES);
	errno = pthread_create(&thread, &attributes, calls, (void *)function);
	if (errno)
		die("pthread_create");
	pthread_join(thread, NULL);
	while (at < CANARY + BYTES && map[at] == 0x5a)
		at++;
	return CANARY + BYTES - at;
}

static int depth(void)
{
	static const struct {
		const char *name;
		void (*function)(void);
	} rows[] = {
		{ "a thread's first event", first_event },
		{ "task", known_task },
		{ "task with a new name", new_task },
		{ "task named by a function", function_task },
		{ "metadata", metadata },
		{ "formatted metadata", formatted },
		{ "counter with a new name", counters },
		{ "wait", waits },
		{ "pause and resume", pauses },
		{ "setenv", environment },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		printf("%s: %ld\n", rows[i].name, depth_of(rows[i].function) - depth_of(no_event));
	return 0;
}

/* ---- handlers ---- */

static void every_microseconds(int microseconds, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void no_more(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
}

static void controls(int unused)
{
	(void)unused;
	__itt_pause();
	__itt_resume();
}

static int control(long seconds)
{
	uint64_t until = now_ns() + (uint64_t)seconds * 1000000000u;
	unsigned rounds = 0;

	every_microseconds(73, controls, SA_RESTART);
	for (; now_ns() < until; rounds++) {
		__itt_resume();
		finished_task(domain, task);
		__itt_pause();
	}
	no_more();
	__itt_resume();
	for (int i = 0; i < 100; i++)
		finished_task(domain, later);
	printf("%s\nexpected: 100 tasks inside::later\n", rounds > 100 ? "went on" : "stood still");
	return 0;
}

static sigjmp_buf away;
static volatile unsigned jumps;

static void jumps_away(int unused)
{
	(void)unused;
	jumps++;
	siglongjmp(away, 1);
}

static __attribute__((noinline)) void traces(void)
{
	for (;;) {
		finished_task(domain, task);
		for (volatile int i = 0; i < 200; i++)
			;
	}
}

/*
 * Its events are deeper than those that were left, with what they left still in the memory of its
 * frame.
 */
static __attribute__((noinline)) void deeper(void)
{
	volatile char untouched[20000];

	__asm__ volatile("" : : "r"(untouched) : "memory");
	for (int i = 0; i < 4; i++)
		finished_task(domain, task);
}

static int jump(unsigned count, const char *where)
{
	bool deep = !strcmp(where, "deeper");
	stack_t signal_stack = { .ss_sp = guarded(65536) + CANARY, .ss_size = 65536 };

	sigaltstack(&signal_stack, NULL);
	/* a jump out of ittnotify's own first steps would be its end */
	finished_task(domain, task);
	/* the first one may come at once, and has somewhere to jump to */
	if (!sigsetjmp(away, 1))
		every_microseconds(97, jumps_away, !strcmp(where, "sigstack") ? SA_ONSTACK : 0);
	else if (deep)
		deeper();
	if (jumps < count)
		traces();
	no_more();
	if (deep)
		deeper();
	for (int i = 0; i < 1000; i++)
		finished_task(domain, later);
	printf("expected: 1000 tasks inside::later\n");
	return 0;
}

static volatile unsigned handled, each = 1;

static void traces_too(int unused)
{
	(void)unused;
	for (unsigned i = 0; i < each; i++, handled++)
		finished_task(domain, of_handler);
}

static int nested(unsigned count, unsigned tasks)
{
	unsigned made = 1;

	each = tasks ? tasks : 1;
	count *= each;

	/* ittnotify drops what a handler calls while it looks for a collector */
	finished_task(domain, task);
	if (tasks)
		every_microseconds(1000, traces_too, SA_RESTART | SA_NODEFER);
	else
		every_microseconds(53, traces_too, SA_RESTART);
	for (; handled < count; made++) {
		finished_task(domain, task);
		for (volatile int i = 0; i < 200; i++)
			;
	}
	no_more();
	printf("made: %u\nhandled: %u\nexpected: %u tasks inside::task\natmost: %u tasks "
	       "inside::of_handler\n",
	       made, handled, made, handled);
	return 0;
}

/* ---- a real-time thread ---- */

static void *makes_names(void *unused)
{
	for (unsigned i = 0; !stop; i++)
		new_name("normal", i);
	return unused;
}

static int realtime(long seconds)
{
	uint64_t until = now_ns() + (uint64_t)seconds * 1000000000u, longest = 0;
	struct sched_param most = { .sched_priority = 10 };
	cpu_set_t one;
	pthread_t other;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	other = start_thread(makes_names, NULL);
	errno = pthread_setschedparam(pthread_self(), SCHED_FIFO, &most);
	for (unsigned i = 0; now_ns() < until; i++) {
		uint64_t begin = now_ns();

		new_name("real-time", i);
		begin = now_ns() - begin;
		longest = begin > longest ? begin : longest;
		nanosleep(&(struct timespec){ 0, 20000 + i * 7919 % 9973 }, NULL);
	}
	stop = true;
	pthread_join(other, NULL);
	printf("%s\nlongest: %lu us\n", errno == EPERM ? "not real-time" : "real-time",
	       (unsigned long)(longest / 1000));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long number = argc > 2 ? atol(argv[2]) : 0;

	domain = __itt_domain_create("inside");
	task = __itt_string_handle_create("task");
	later = __itt_string_handle_create("later");
	of_handler = __itt_string_handle_create("of_handler");
	if (!strcmp(what, "cancel"))
		return cancel();
	if (!strcmp(what, "async"))
		return async((unsigned)number);
	if (!strcmp(what, "stack"))
		return stack((size_t)number);
	if (!strcmp(what, "depth"))
		return depth();
	if (!strcmp(what, "sigstack"))
		return signal_stack_of((size_t)number);
	if (!strcmp(what, "control"))
		return control(number);
	if (!strcmp(what, "jump"))
		return jump((unsigned)number, argc > 3 ? argv[3] : "same");
	if (!strcmp(what, "nested"))
		return nested((unsigned)number, 0);
	if (!strcmp(what, "nodefer"))
		return nested((unsigned)number, argc > 3 ? (unsigned)atoi(argv[3]) : 1);
	if (!strcmp(what, "realtime"))
		return realtime(number);
	fprintf(stderr, "itt_inside: what?\n");
	return 2;
}
