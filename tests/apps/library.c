/*
 * A program that contains xstrace (include/xstrace/xstrace.h).
 *
 *	library windows DIR N	N traces: DIR/0.json, …; "expected" lines before each file's name
 *	library misuse DIR	every call at the wrong time; a line for each result
 *	library threads DIR	ranges by 8 threads while traces start and stop
 *	library fork DIR	children in the middle, and a child of the program's own to wait for
 *	library end KIND	ends while a trace is recorded: exit, _exit, abort, kill, exec, stop
 *	library memory DIR	a profile of memory
 *	library options WORDS	what xstrace_prepare() says to these options
 *	library events N	N ranges, and how long start and stop take, in us
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "app.h"
#include "xstrace/xstrace.h"

static const char *place;

static const char *path_of(const char *name, unsigned number)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s%u.json", place, name, number);
	return path;
}

static void say(const char *what, int result)
{
	printf("%s: %d%s%s\n", what, result, result ? ", " : "", result ? xstrace_why() : "");
}

static void must(const char *what, int result)
{
	if (!result)
		return;
	say(what, result);
	exit(1);
}

static void work(unsigned ranges)
{
	for (unsigned i = 0; i < ranges; i++) {
		xstrace_range_push("outer");
		xstrace_range_push_name(xstrace_get_name("inner"));
		xstrace_range_pop();
		xstrace_mark("here");
		xstrace_counter("level", i * 0.5);
		xstrace_range_pop();
	}
}

static void describe(unsigned number, unsigned many)
{
	struct xstrace_ids ids = xstrace_get_ids();
	int64_t now = xstrace_now();
	struct xstrace_activity list[] = {
		{ "gemm", now - 900000, now - 800000, 0, 7, 40 + number,
		  XSTRACE_CONCURRENT_KERNEL },
		{ "aten::mm", now - 950000, now - 850000, ids.device, ids.resource, 40 + number,
		  XSTRACE_CPU_OP },
		{ "[memory]", now - 1000, 0, ids.device, ids.resource, 0,
		  XSTRACE_CPU_INSTANT_EVENT },
	};
	struct xstrace_cpu_trace *trace = xstrace_cpu_trace_create(now - 1000000, "a list");
	size_t first;

	must("add", xstrace_cpu_trace_add(trace, list, ARRAY_SIZE(list), &first));
	must("metadata",
	     xstrace_activity_metadata(trace, first + 1, "Input Dims", "[[2, 3]]", false));
	for (unsigned i = 0; i < many; i++)
		must("add", xstrace_cpu_trace_add(trace, &list[1], 1, &first));
	if (many) {
		must("metadata", xstrace_activity_metadata(trace, first, "last", "yes", true));
		must("metadata",
		     xstrace_activity_metadata(trace, first, "External id", "its own", true));
	}
	must("transfer", xstrace_cpu_trace_transfer(trace, now));
	must("metadata", xstrace_metadata("note", "a \"text\" \xff"));
	must("json",
	     xstrace_metadata_json("config", "{\"a\": [1, 2.5e3, null], \"b\": \"\\u00e9\"}"));
	must("json", xstrace_metadata_json("broken", "{\"a\": "));
	must("backend", xstrace_report_backend_event(now - 10, now, XSTRACE_SCOPE_USER_SCOPE,
						     "kernel of a back-end", "mine"));
	must("violation", xstrace_log_invariant_violation("a < b", "it is not", "1", "2"));
}

static unsigned seen;

static void count_event(const struct xstrace_event *event, void *user)
{
	seen += event->name[0] != '\0' && user == &seen;
}

static void windows(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct xstrace_trace *trace;
		struct xstrace_event event;
		unsigned kernels = 0, externals = 0;

		must("prepare", xstrace_prepare(NULL));
		work(3); /* not in a trace */
		must("start", xstrace_start_with_post_process(count_event, &seen));
		xstrace_step();
		xstrace_push_correlation(5);
		work(4 + i);
		xstrace_push_user_correlation(6);
		work(1);
		xstrace_pop_user_correlation();
		xstrace_pop_correlation();
		xstrace_step();
		describe(i, i * 1000); /* more than there was room for at first */
		must("stop", xstrace_stop(&trace));
		work(2);
		for (size_t k = 0; k < xstrace_trace_count(trace); k++) {
			must("event", xstrace_trace_event(trace, k, &event));
			kernels += event.type == XSTRACE_CONCURRENT_KERNEL &&
				   event.correlation == 40 + i && event.duration == 100000 &&
				   event.device == 0 && event.resource == 7;
			externals += event.external == 5 && event.user_external == 6;
		}
		printf("events %zu %u, kernels %u, in ids %u\n", xstrace_trace_count(trace), seen,
		       kernels, externals);
		seen = 0;
		must("save", xstrace_trace_save(trace, path_of("", i)));
		printf("file %s outer %u steps 2\n", xstrace_trace_path(trace), 5 + i);
		xstrace_trace_free(trace);
	}
}

static void misuse(void)
{
	struct xstrace_trace *trace = NULL, *other;
	struct xstrace_config config = { .size = sizeof(config) };
	struct xstrace_cpu_trace *list;
	struct xstrace_event event;

	say("stop before start", xstrace_stop(&trace));
	say("stop without a place", xstrace_stop(NULL));
	say("step before start", (xstrace_step(), 0));
	say("metadata before start", xstrace_metadata("a", "b"));
	config.size = 3;
	say("a size that cannot be", xstrace_prepare(&config));
	config = (struct xstrace_config){ .size = sizeof(config), .activities = 1u << 20 };
	say("unknown activities", xstrace_prepare(&config));
	config = (struct xstrace_config){ .size = sizeof(config), .filter = "kernel,no_such" };
	say("unknown filter", xstrace_prepare(&config));
	config = (struct xstrace_config){ .size = sizeof(config), .directory = "/no/such" };
	say("no such directory", xstrace_prepare(&config));
	config = (struct xstrace_config){ .size = sizeof(config), .filter = "cpu_instant_event" };
	say("filter", xstrace_prepare(&config));
	say("start", xstrace_start());
	say("start again", xstrace_start());
	say("prepare while started", xstrace_prepare(NULL));
	say("child without enable", xstrace_disable_in_child_thread());
	say("toggle a part", xstrace_toggle_collection(false, XSTRACE_CUDA));
	say("toggle off", xstrace_toggle_collection(false, XSTRACE_ALL));
	work(7);
	say("toggle on", xstrace_toggle_collection(true, XSTRACE_ALL));
	work(2);
	list = xstrace_cpu_trace_create(0, NULL);
	say("a type that is none",
	    xstrace_cpu_trace_add(list, &(struct xstrace_activity){ .type = 1000 }, 1, NULL));
	xstrace_cpu_trace_free(list);
	say("transfer of nothing", xstrace_cpu_trace_transfer(NULL, 0));
	say("memory export too early", xstrace_memory_export(path_of("memory", 0)));
	say("stop", xstrace_stop(&trace));
	say("stop again", xstrace_stop(&other));
	printf("marks %zu\n", xstrace_trace_count(trace));
	say("an event that is none", xstrace_trace_event(trace, 1000, &event));
	say("save nowhere", xstrace_trace_save(trace, "/no/such/file"));
	say("save", xstrace_trace_save(trace, path_of("", 0)));
	say("save again", xstrace_trace_save(trace, path_of("", 1)));
	xstrace_trace_free(trace);
	xstrace_trace_free(NULL);
}

static _Atomic bool done;

static void *range_loop(void *unused)
{
	uint64_t ranges = 0;

	(void)unused;
	(void)xstrace_enable_in_child_thread();
	while (!done) {
		work(10);
		xstrace_push_correlation(ranges);
		xstrace_pop_correlation();
		ranges += 10;
	}
	return (void *)(uintptr_t)ranges;
}

static void threads(void)
{
	pthread_t all[8];
	uint64_t ranges = 0;
	void *result;

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++)
		all[i] = start_thread(range_loop, NULL);
	for (unsigned i = 0; i < 10; i++) {
		struct xstrace_trace *trace;

		must("start", xstrace_start());
		sleep_ms(1);
		must("stop", xstrace_stop(&trace));
		must("save", xstrace_trace_save(trace, path_of("", i)));
		xstrace_trace_free(trace);
	}
	done = true;
	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		(void)pthread_join(all[i], &result);
		ranges += (uintptr_t)result;
	}
	printf("some ranges: %d\n", ranges > 0);
}

static void forks(void)
{
	struct xstrace_trace *trace;
	int status;
	pid_t own;

	own = fork();
	if (!own)
		_exit(7);
	must("start", xstrace_start());
	/* nothing but our own child is there to be waited for */
	if (wait(&status) != own || WEXITSTATUS(status) != 7 || wait(NULL) != -1 || errno != ECHILD)
		printf("another child than the program's own\n");
	work(2);
	fflush(stdout);
	own = fork();
	if (!own) {
		work(5);
		say("stop in a child", xstrace_stop(&trace));
		say("start in a child", xstrace_start());
		xstrace_step();
		exit(0);
	}
	(void)waitpid(own, NULL, 0);
	work(3);
	must("stop", xstrace_stop(&trace));
	must("save", xstrace_trace_save(trace, path_of("", 0)));
	xstrace_trace_free(trace);
}

static void end(const char *kind)
{
	struct xstrace_config config = { .size = sizeof(config), .directory = "." };

	must("prepare", xstrace_prepare(&config));
	must("start", xstrace_start());
	work(5);
	if (!strcmp(kind, "exit"))
		exit(3);
	if (!strcmp(kind, "_exit"))
		_exit(3);
	if (!strcmp(kind, "abort"))
		abort();
	if (!strcmp(kind, "kill"))
		(void)kill(getpid(), SIGKILL);
	if (!strcmp(kind, "exec"))
		(void)execl("/bin/true", "true", NULL);
	if (!strcmp(kind, "unused")) {
		struct xstrace_trace *trace;

		must("stop", xstrace_stop(&trace));
		xstrace_trace_free(trace);
	}
}

static void memory(void)
{
	char *blocks = "0123456789";
	struct xstrace_trace *trace;

	must("start", xstrace_start());
	must("memory", xstrace_memory_start());
	say("memory again", xstrace_memory_start());
	xstrace_memory(blocks, 100, 100, 1000, XSTRACE_DEVICE_CUDA, 1, "parameter");
	xstrace_memory(blocks + 1, 50, 150, 1000, XSTRACE_DEVICE_CUDA, 1, "gradient");
	xstrace_memory(blocks + 2, 25, 175, 1000, XSTRACE_DEVICE_CUDA, 1, "parameter");
	xstrace_memory(blocks + 1, -50, 125, 1000, XSTRACE_DEVICE_CUDA, 1, NULL);
	xstrace_memory(blocks + 3, 8, 8, 8, XSTRACE_DEVICE_CPU, 0, NULL);
	xstrace_memory(blocks + 5, 1, 9, 9, XSTRACE_DEVICE_HPU, 0, "a \"gr\u00f6\u00dfe\" \xff\n");
	/* longer than is kept: it ends in the middle of a character */
	xstrace_memory(blocks + 6, 2, 9, 9, XSTRACE_DEVICE_HPU, 0,
		       "0123456789012345678901234567890123456789\u00f6" + 2);
	must("memory stop", xstrace_memory_stop());
	xstrace_memory(blocks + 4, 8, 16, 16, XSTRACE_DEVICE_CPU, 0, NULL);
	must("export", xstrace_memory_export(path_of("memory", 0)));
	must("stop", xstrace_stop(&trace));
	must("save", xstrace_trace_save(trace, path_of("", 0)));
	xstrace_trace_free(trace);
}

static void events(unsigned long count)
{
	const struct xstrace_name *name;
	struct xstrace_trace *trace;
	uint64_t begun, started, stopped;

	begun = now_ns();
	must("start", xstrace_start());
	started = now_ns();
	name = xstrace_get_name("range");
	for (unsigned long i = 0; i < count; i++) {
		xstrace_range_push_name(name);
		xstrace_range_pop();
	}
	stopped = now_ns();
	must("stop", xstrace_stop(&trace));
	printf("start %llu us, stop %llu us, pair %.1f ns, events %zu\n",
	       (unsigned long long)(started - begun) / 1000,
	       (unsigned long long)(now_ns() - stopped) / 1000,
	       (double)(stopped - started) / (double)count, xstrace_trace_count(trace));
	xstrace_trace_free(trace);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "", *word = argc > 2 ? argv[2] : "";
	struct xstrace_config config = { .size = sizeof(config), .options = word };

	place = word;
	if (!strcmp(kind, "windows"))
		windows((unsigned)atoi(argv[3]));
	else if (!strcmp(kind, "misuse"))
		misuse();
	else if (!strcmp(kind, "threads"))
		threads();
	else if (!strcmp(kind, "fork"))
		forks();
	else if (!strcmp(kind, "end"))
		end(word);
	else if (!strcmp(kind, "memory"))
		memory();
	else if (!strcmp(kind, "options"))
		say("prepare", xstrace_prepare(&config));
	else if (!strcmp(kind, "events"))
		events(strtoul(word, NULL, 10));
	return 0;
}
