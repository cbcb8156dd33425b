/*
 * Names as C++ writes them: of kernels, and of the functions in call stacks.
 *
 * A program chooses its names. One of 180 bytes may stand for 2^27 letters, and one that stands for
 * nothing may take the runtime's parser years. So there is an end to the letters, to the processor
 * time of a name and to that of all that are out of the ordinary. What is beyond is shown as it is.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends.h"
#include "device_record.h"
#include "hash.h"
#include "kernel_filter.h"
#include "names.h"
#include "text.h"

#ifdef XS_HAVE_DEMANGLE
/*
 * Of the C++ runtime, in its static library: gives the name in pieces. It takes no memory but of
 * its stack, so it can be left at any instruction. 0: that was all of it.
 */
int __gcclibcxx_demangle_callback(const char *mangled, void (*piece)(const char *, size_t, void *),
				  void *user);

#define KEPT	      1024u
#define LONGEST	      4096u /* mangled */
#define LONGEST_PLAIN 65536u
#define TIME_NS	      10000000	 /* of one name; usual ones take some us */
#define ALL_TIME_NS   1000000000 /* of names that came to nothing, or took long */
#define LONG_NS	      100000

static struct entry {
	char *mangled, *plain;
} entries[KEPT];

/* ---- one name ---- */

static struct {
	sigjmp_buf way_out;
	volatile sig_atomic_t busy;
	timer_t timer;
	pid_t thread; /* whose timer that is; 0: nobody's */
	size_t length;
	char text[LONGEST_PLAIN];
} work;

static void out_of_time(int signal)
{
	(void)signal;
	if (work.busy && work.thread == (pid_t)syscall(SYS_gettid))
		siglongjmp(work.way_out, 1);
}

static void take_piece(const char *text, size_t length, void *user)
{
	(void)user;
	if (length > sizeof(work.text) - work.length)
		siglongjmp(work.way_out, 1);
	memcpy(work.text + work.length, text, length);
	work.length += length;
}

/* A timer of this thread's processor time; it does not outlive a fork. */
static bool make_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM };
	struct sigaction action = { .sa_handler = out_of_time,
				    .sa_flags = SA_NODEFER | SA_RESTART };
	pid_t thread = (pid_t)syscall(SYS_gettid);

	if (work.thread == thread)
		return true;
	event._sigev_un._tid = thread;
	if (sigaction(SIGVTALRM, &action, NULL) < 0 ||
	    timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &work.timer) < 0)
		return false;
	work.thread = thread;
	return true;
}

static void set_timer(long ns)
{
	/* again and again: the first may come just before it is waited for */
	struct itimerspec when = { .it_value.tv_nsec = ns, .it_interval.tv_nsec = ns };

	(void)timer_settime(work.timer, 0, &when, NULL);
}

/* In work.text; false: it is no such name, or too much. */
static bool demangle(const char *mangled)
{
	volatile bool whole = false;

	if (!make_timer())
		return false;
	work.length = 0;
	if (!sigsetjmp(work.way_out, 0)) {
		set_timer(TIME_NS);
		work.busy = 1;
		whole = !__gcclibcxx_demangle_callback(mangled, take_piece, NULL);
	}
	work.busy = 0;
	set_timer(0);
	return whole;
}

/* False: no more of them. */
static bool may_try(uint64_t spent)
{
	static uint64_t all;
	bool before = all < ALL_TIME_NS;

	all += spent;
	if (before && all >= ALL_TIME_NS)
		xs_tell("[WARNING] Some C++ names take too long to demangle; from here on names "
			"are shown mangled\n");
	return all < ALL_TIME_NS;
}

/* To be freed; NULL: it stays as it is. */
static char *plain_of(const char *mangled)
{
	static const char prefix[] = "typeinfo name for ";
	uint64_t start = xs_clock_ns(CLOCK_THREAD_CPUTIME_ID), spent;
	const char *text = work.text;
	bool whole;

	if (!may_try(0))
		return NULL;
	whole = demangle(mangled);
	spent = xs_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	/* most are short, or no C++ names, which is seen at once */
	(void)may_try(spent > LONG_NS ? spent : 0);
	if (!whole)
		return NULL;
	/* SYCL names a kernel by the type of its function object */
	if (work.length >= sizeof(prefix) && !memcmp(text, prefix, sizeof(prefix) - 1)) {
		text += sizeof(prefix) - 1;
		work.length -= sizeof(prefix) - 1;
	}
	return strndup(text, work.length);
}

/* ---- those that are known ---- */

static const struct entry *look_up(const char *text, size_t length)
{
	struct entry *entry;
	uint64_t hash = length;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
	entry = &entries[xs_hash(&hash, 1) % KEPT];
	if (entry->mangled && strlen(entry->mangled) == length &&
	    !memcmp(entry->mangled, text, length))
		return entry;
	free(entry->mangled);
	free(entry->plain);
	entry->mangled = strndup(text, length);
	entry->plain = entry->mangled ? plain_of(entry->mangled) : NULL;
	return entry;
}
#endif

const char *xs_demangle(const char *text, size_t *length)
{
#ifdef XS_HAVE_DEMANGLE
	if (*length > 2 && *length <= LONGEST && text[0] == '_' && text[1] == 'Z' &&
	    !memchr(text, '\0', *length)) {
		const struct entry *entry = look_up(text, *length);

		if (entry->plain) {
			*length = strlen(entry->plain);
			return entry->plain;
		}
	}
#else
	(void)length;
#endif
	return text;
}

const char *xs_kernel_text(struct xs_run *run, const struct xs_event *event, size_t *ret_length)
{
	bool function = event->flags & XS_DEVICE_FLAG_FUNCTION;
	const char *text =
		xs_text_of(run, function ? xs_function_id(event->source, event->name) : event->name,
			   ret_length);

	if (!function && (run->options->demangle || xs_backend_of(event->source)->demangled))
		return xs_demangle(text, ret_length);
	return text;
}

static bool is_wanted(struct xs_run *run, uint32_t id)
{
	size_t length;
	const char *name = xs_text_of(run, id, &length), *plain = xs_demangle(name, &length);

	return xs_kernel_wanted(run->options, name, plain);
}

bool xs_work_wanted(struct xs_run *run, const struct xs_event *event)
{
	uint32_t *known = &run->filtered[event->name % XS_FILTERED];

	if (event->flags & XS_DEVICE_FLAG_FUNCTION || !run->options->has_names)
		return true;
	if (!*known || *known >> 1 != event->name)
		*known = event->name << 1 | is_wanted(run, event->name);
	return *known & 1;
}

bool xs_call_wanted(struct xs_run *run, const struct xs_event *event)
{
	/* all ids of functions have the highest bit, which is not kept */
	uint32_t id = xs_function_id(event->source, event->name), key = id << 1;
	uint32_t *known = &run->filtered_calls[id % XS_FILTERED];
	size_t length;

	if (!run->options->has_names || (run->options->chrome_kernel && event->kind == XS_CALL &&
					 event->flags & XS_CALL_FLAG_OF_WORK))
		return true;
	if ((*known & ~1u) != key)
		*known = key | xs_function_wanted(run->options, xs_text_of(run, id, &length));
	return *known & 1;
}
