/*
 * A program that contains xstrace and does with it what nobody expects. It prints results.
 *
 *	library_odd cancel	threads are cancelled within every function
 *	library_odd anywhere	threads that can be cancelled at any instruction are
 *	library_odd often N	N traces, one after the other
 *	library_odd stack	every function on a stack of PTHREAD_STACK_MIN
 *	library_odd post	the function that is told events starts the next trace
 *	library_odd fork	a child frees and saves its parent's trace
 *	library_odd locked	children of fork, while another thread reports memory
 *	library_odd reaper	the program is its descendants' subreaper
 *	library_odd descriptors	there are none when a trace is to be stopped
 *	library_odd limited N	RLIMIT_NOFILE is N when the run is to begin
 *	library_odd saved PATH	RLIMIT_FSIZE is smaller than what is saved at PATH
 *	library_odd list PATH	metadata of an activity that finds no room
 *	library_odd times PATH	activities at times that cannot be
 *	library_odd words N	prepares with N options
 *	library_odd again DIR	prepares many times
 *	library_odd every	threads that call every function at once
 *	library_odd names N PATH	N long names; prints how many characters the events' names
 *have
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "app.h"
#include "xstrace/xstrace.h"

static void say(const char *what, int result)
{
	printf("%s: %d%s%s\n", what, result, result ? ", " : "", result ? xstrace_why() : "");
	(void)fflush(stdout);
}

static int stop_and_free(void)
{
	struct xstrace_trace *trace = NULL;
	int result = xstrace_stop(&trace);

	xstrace_trace_free(trace);
	return result;
}

static int trace_once(void)
{
	int started = xstrace_start(), stopped;

	xstrace_range_push("range");
	xstrace_range_pop();
	stopped = stop_and_free();
	return started ? started : stopped;
}

/* All that a thread may call. */
static void call_everything(void)
{
	struct xstrace_activity activity = { .name = "a", .start = 1, .end = 2 };
	struct xstrace_config config = { .size = sizeof(config), .filter = "cpu_op,kernel" };
	struct xstrace_cpu_trace *list = xstrace_cpu_trace_create(xstrace_now(), "list");

	(void)xstrace_prepare(&config);
	(void)trace_once();
	(void)xstrace_start();
	xstrace_step();
	xstrace_mark("mark");
	xstrace_counter("counter", 1);
	xstrace_record_thread_info();
	(void)xstrace_cpu_trace_add(list, &activity, 1, NULL);
	(void)xstrace_activity_metadata(list, 0, "key", "value", true);
	(void)xstrace_cpu_trace_transfer(list, xstrace_now());
	(void)xstrace_report_backend_event(1, 2, XSTRACE_SCOPE_FUNCTION, "event", "back-end");
	(void)xstrace_log_invariant_violation("a", "b", "c", "d");
	(void)xstrace_metadata("key", "value");
	(void)xstrace_memory_start();
	xstrace_memory(&activity, 1, 2, 3, XSTRACE_DEVICE_CPU, 0, "category");
	(void)xstrace_memory_stop();
	(void)xstrace_memory_export("/dev/null");
	(void)xstrace_toggle_collection(true, XSTRACE_ALL);
	(void)xstrace_enable_in_child_thread();
	(void)xstrace_disable_in_child_thread();
}

static void *call_for_ever(void *unused)
{
	(void)unused;
	for (;;) {
		call_everything();
		pthread_testcancel();
	}
	return NULL;
}

static void ask_everything(void)
{
	(void)xstrace_register();
	(void)xstrace_initialize(true);
	(void)xstrace_is_registered();
	(void)xstrace_is_initialized();
	(void)xstrace_is_active();
	(void)xstrace_is_enabled_in_main_thread();
	(void)xstrace_active_profiler();
	(void)xstrace_why();
	(void)xstrace_get_ids();
	(void)xstrace_itt_available();
	(void)xstrace_itt_domain();
	(void)xstrace_device_type_of(XSTRACE_CONCURRENT_KERNEL);
	xstrace_set_privateuse1(xstrace_type_of("kernel") < 0);
}

static void record_everything(void)
{
	xstrace_push_correlation(1);
	xstrace_push_user_correlation(2);
	xstrace_range_push("range");
	xstrace_range_push_name(xstrace_get_name("another"));
	xstrace_itt_range_push("third");
	xstrace_itt_mark("mark");
	(void)xstrace_itt_string_handle("handle");
	xstrace_itt_range_pop();
	xstrace_range_pop();
	xstrace_range_pop();
	xstrace_pop_user_correlation();
	xstrace_pop_correlation();
}

static void count_event(const struct xstrace_event *event, void *user)
{
	(void)event;
	atomic_fetch_add((_Atomic unsigned *)user, 1);
}

/* Whoever is first has the trace. */
static void *use_traces(void *count)
{
	for (unsigned i = 0; i < 20; i++) {
		struct xstrace_trace *trace;
		struct xstrace_event event;

		ask_everything();
		(void)xstrace_start_with_post_process(count_event, count);
		record_everything();
		call_everything();
		if (xstrace_stop(&trace))
			continue;
		for (size_t k = 0; k < xstrace_trace_count(trace); k++)
			(void)xstrace_trace_event(trace, k, &event);
		(void)xstrace_trace_save(trace, xstrace_trace_path(trace));
		(void)unlink(xstrace_trace_path(trace));
		xstrace_trace_free(trace);
	}
	return NULL;
}

static void every(void)
{
	_Atomic unsigned events = 0;
	pthread_t threads[4];

	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		(void)pthread_create(&threads[i], NULL, use_traces, &events);
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		(void)pthread_join(threads[i], NULL);
	(void)stop_and_free();
	printf("some events: %d\n", events > 0);
	say("once more", trace_once());
}

static void cancel_each(void *(*start)(void *), unsigned threads, unsigned later_us)
{
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;

		(void)pthread_create(&thread, NULL, start, NULL);
		(void)usleep(i * later_us);
		(void)pthread_cancel(thread);
		(void)pthread_join(thread, NULL);
	}
}

static void cancel(void)
{
	cancel_each(call_for_ever, 200, 50);
	(void)stop_and_free();
	say("once more", trace_once());
}

static void start_and_stop(void)
{
	struct xstrace_trace *trace;

	(void)xstrace_start();
	if (!xstrace_stop(&trace))
		xstrace_trace_free(trace);
}

static void *start_for_ever(void *unused)
{
	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		start_and_stop();
	return unused;
}

static void anywhere(void)
{
	cancel_each(start_for_ever, 60, 200);
	start_and_stop();
	puts("all joined");
}

static void *call_once(void *unused)
{
	(void)unused;
	call_everything();
	return NULL;
}

static void on_a_small_stack(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
	(void)pthread_create(&thread, &attributes, call_once, NULL);
	(void)pthread_join(thread, NULL);
	say("stop", stop_and_free());
}

static unsigned told;

static void start_the_next(const struct xstrace_event *event, void *unused)
{
	(void)event, (void)unused;
	if (!told++)
		say("start", xstrace_start());
}

static void post(void)
{
	struct xstrace_trace *trace;

	(void)xstrace_start_with_post_process(start_the_next, NULL);
	for (unsigned i = 0; i < 10; i++)
		xstrace_mark("mark");
	say("stop", xstrace_stop(&trace));
	printf("told %u\n", told);
	xstrace_trace_free(trace);
	say("stop", xstrace_stop(&trace));
	xstrace_trace_free(trace);
}

static void wait_for(pid_t child)
{
	int status = 0;

	if (waitpid(child, &status, 0) != child || status)
		printf("child: status %x\n", (unsigned)status);
}

static void forked(void)
{
	struct xstrace_trace *trace;
	pid_t child;

	say("start", xstrace_start());
	xstrace_mark("mark");
	say("stop", xstrace_stop(&trace));
	(void)fflush(stdout);
	child = fork();
	if (!child) {
		say("child's save", xstrace_trace_save(trace, "child.json"));
		xstrace_trace_free(trace);
		exit(0);
	}
	wait_for(child);
	say("save", xstrace_trace_save(trace, "parent.json"));
	xstrace_trace_free(trace);
}

static atomic_bool enough;

static void *report_memory(void *unused)
{
	while (!enough)
		xstrace_memory(unused, 1, 1, 1, XSTRACE_DEVICE_CPU, 0, NULL);
	return NULL;
}

static void locked(void)
{
	pthread_t threads[2];

	(void)xstrace_memory_start();
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_create(&threads[i], NULL, report_memory, NULL);
	for (unsigned i = 0; i < 200; i++) {
		pid_t child = fork();

		if (!child) {
			(void)alarm(10);
			xstrace_memory(NULL, 1, 1, 1, XSTRACE_DEVICE_CPU, 0, NULL);
			(void)xstrace_memory_stop();
			_exit(0);
		}
		wait_for(child);
	}
	enough = true;
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	printf("done\n");
}

static void reaper(void)
{
	int is = 0;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	say("once", trace_once());
	(void)prctl(PR_GET_CHILD_SUBREAPER, &is);
	(void)usleep(100000);
	printf("subreaper %d, child %d\n", is, (int)waitpid(-1, NULL, WNOHANG));
}

static void descriptors(void)
{
	struct xstrace_trace *trace;
	int fd, last = -1;

	say("start", xstrace_start());
	xstrace_mark("mark");
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	say("stop", xstrace_stop(&trace));
	printf("active %d\n", (int)xstrace_is_active());
	for (fd = 3; fd <= last; fd++)
		(void)close(fd);
	say("stop", xstrace_stop(&trace));
	printf("events %zu\n", xstrace_trace_count(trace));
	xstrace_trace_free(trace);
}

static void limited(rlim_t descriptors)
{
	struct rlimit limit = { descriptors, descriptors };

	(void)setrlimit(RLIMIT_NOFILE, &limit);
	printf("start %d\n", xstrace_start() != XSTRACE_OK);
}

static void saved(const char *path)
{
	struct rlimit limit = { 1000, RLIM_INFINITY };
	struct xstrace_trace *trace;

	say("start", xstrace_start());
	(void)xstrace_memory_start();
	for (unsigned i = 0; i < 1000; i++)
		xstrace_memory(NULL, 1, 1, 1, XSTRACE_DEVICE_CPU, 0, NULL);
	(void)xstrace_memory_stop();
	say("stop", xstrace_stop(&trace));
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	printf("save %d\n", xstrace_trace_save(trace, path));
	printf("export %d\n", xstrace_memory_export(path));
	limit.rlim_cur = RLIM_INFINITY;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	say("save", xstrace_trace_save(trace, path));
	xstrace_trace_free(trace);
}

static void list(const char *path)
{
	struct xstrace_activity activity = { .name = "activity", .start = xstrace_now() };
	struct xstrace_cpu_trace *made;
	struct xstrace_trace *trace;
	char *text = malloc(1 << 21);

	memset(text, 'x', (1 << 21) - 1);
	text[(1 << 21) - 1] = '\0';
	activity.end = activity.start + 1000;
	(void)xstrace_start();
	made = xstrace_cpu_trace_create(activity.start, "");
	(void)xstrace_cpu_trace_add(made, &activity, 1, NULL);
	say("short", xstrace_activity_metadata(made, 0, "first", "1", true));
	say("long", xstrace_activity_metadata(made, 0, "long", text, true));
	say("short", xstrace_activity_metadata(made, 0, "last", "2", true));
	say("transfer", xstrace_cpu_trace_transfer(made, activity.end));
	say("stop", xstrace_stop(&trace));
	say("save", xstrace_trace_save(trace, path));
	xstrace_trace_free(trace);
	free(text);
}

/* One activity is as it must be. */
static void times(const char *path)
{
	int64_t now;
	struct xstrace_cpu_trace *made;
	struct xstrace_trace *trace;

	say("start", xstrace_start());
	now = xstrace_now();
	made = xstrace_cpu_trace_create(now, "");
	{
		const struct xstrace_activity given[] = {
			{ .name = "right", .start = now, .end = now + 1000 },
			{ .name = "ends before it begins", .start = now, .end = now - 1 },
			{ .name = "in years", .start = now, .end = now + (INT64_C(1) << 58) },
			{ .name = "never", .start = INT64_MAX, .end = INT64_MAX },
			{ .name = "negative", .start = INT64_MIN, .end = INT64_MIN },
			{ .name = "in 1970", .start = 0, .end = 1 },
		};

		say("add", xstrace_cpu_trace_add(made, given, ARRAY_SIZE(given), NULL));
	}
	say("transfer", xstrace_cpu_trace_transfer(made, now + 2000));
	say("stop", xstrace_stop(&trace));
	say("save", xstrace_trace_save(trace, path));
	xstrace_trace_free(trace);
}

static void words(unsigned count)
{
	struct xstrace_config config = { .size = sizeof(config) };
	char *options = calloc(count, 8);

	for (unsigned i = 0; i < count; i++)
		strcpy(options + strlen(options), " --tid");
	config.options = options;
	say("prepare", xstrace_prepare(&config));
	free(options);
}

/* What is prepared again: the last counts, but for what belongs to the run. */
static void again(const char *directory)
{
	const struct xstrace_config given[] = {
		{ .trace_id = "first", .options = "--tid", .directory = directory },
		{ .trace_id = "second", .filter = "cpu_op" },
		{ .trace_id = "third", .options = "--tid", .directory = directory },
		{ .trace_id = "fourth", .options = "--format kineto" },
		{ .trace_id = "fifth", .directory = "/" },
	};
	struct xstrace_trace *trace;

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		struct xstrace_config config = given[i];

		config.size = sizeof(config);
		say("prepare", xstrace_prepare(&config));
	}
	say("start", xstrace_start());
	xstrace_range_push("range");
	xstrace_range_pop();
	say("stop", xstrace_stop(&trace));
	printf("events %zu\n", xstrace_trace_count(trace));
	say("save", xstrace_trace_save(trace, "again.json"));
	xstrace_trace_free(trace);
}

static void names(unsigned count, const char *path)
{
	struct xstrace_trace *trace;
	char name[512];
	size_t length = 0;

	say("start", xstrace_start());
	for (unsigned i = 0; i < count; i++) {
		memset(name, 'n', sizeof(name) - 1);
		(void)snprintf(name + sizeof(name) - 16, 16, "%u", i);
		xstrace_mark(name);
	}
	say("stop", xstrace_stop(&trace));
	for (size_t i = 0; i < xstrace_trace_count(trace); i++) {
		struct xstrace_event event;

		(void)xstrace_trace_event(trace, i, &event);
		length += strlen(event.name);
	}
	printf("events %zu, characters %zu\n", xstrace_trace_count(trace), length);
	say("an event", xstrace_trace_event(trace, 0, &(struct xstrace_event){ .name = NULL }));
	say("save", xstrace_trace_save(trace, path));
	xstrace_trace_free(trace);
}

/* A structure of each size: what does not end with a member is none. */
static void sizes(void)
{
	const char *metrics[] = { "a metric" };
	struct xstrace_config config = { .activities = XSTRACE_CPU,
					 .filter = "cpu_op",
					 .trace_id = "an id",
					 .metrics = metrics,
					 .metric_count = 1 };
	size_t wrong = 0;

	for (config.size = 0; config.size <= sizeof(config) + 64; config.size++) {
		bool whole = config.size >= 16 && config.size % 8 == 0;

		wrong += xstrace_prepare(&config) != (whole ? XSTRACE_OK : XSTRACE_BAD_ARGUMENT);
	}
	printf("wrong: %zu\n", wrong);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "", *word = argc > 2 ? argv[2] : "";

	if (!strcmp(kind, "cancel"))
		cancel();
	else if (!strcmp(kind, "anywhere"))
		anywhere();
	else if (!strcmp(kind, "often"))
		for (int i = 0; i < atoi(word); i++)
			start_and_stop();
	else if (!strcmp(kind, "stack"))
		on_a_small_stack();
	else if (!strcmp(kind, "post"))
		post();
	else if (!strcmp(kind, "fork"))
		forked();
	else if (!strcmp(kind, "locked"))
		locked();
	else if (!strcmp(kind, "reaper"))
		reaper();
	else if (!strcmp(kind, "descriptors"))
		descriptors();
	else if (!strcmp(kind, "limited"))
		limited((rlim_t)atoi(word));
	else if (!strcmp(kind, "saved"))
		saved(word);
	else if (!strcmp(kind, "list"))
		list(word);
	else if (!strcmp(kind, "times"))
		times(word);
	else if (!strcmp(kind, "words"))
		words((unsigned)atoi(word));
	else if (!strcmp(kind, "every"))
		every();
	else if (!strcmp(kind, "again"))
		again(word);
	else if (!strcmp(kind, "sizes"))
		sizes();
	else if (!strcmp(kind, "names"))
		names((unsigned)atoi(word), argc > 3 ? argv[3] : "");
	return 0;
}
