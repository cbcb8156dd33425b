/*
 * The open calls of a thread: an end is told if its begin was, whatever was not recorded in
 * between, and slices nest, whatever switches stacks (greenlets).
 */
#include "python_stacks.h"

#include "spare.h"

#define DEPTH 1024u /* deeper calls are not told */

struct py_thread {
	struct py_thread *next; /* unused ones */
	uint32_t depth;
	uint64_t beyond; /* open calls that are deeper */
	struct {
		struct py_function *function;
		uint64_t tick; /* 0: recording was off */
		bool counted;  /* it has no slice */
		bool told;
	} open[DEPTH];
};

static __thread struct py_thread *own __attribute__((tls_model("initial-exec")));
static struct xs_spare spare;

static void thread_ends(void)
{
	if (!own)
		return;
	xs_spare_give(&spare, own);
	own = NULL;
}

static __attribute__((noinline, cold)) struct py_thread *take(void)
{
	static struct xs_hook at_thread_end = { .function = thread_ends };
	struct py_thread *thread = xs_spare_take(&spare, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->depth = 0;
	thread->beyond = 0;
	xs_at_thread_end(&at_thread_end);
	return own = thread;
}

static uint32_t domain(void)
{
	static uint32_t id;

	if (__builtin_expect(!id, 0))
		id = xs_name("Python", 0);
	return id;
}

static __attribute__((noinline, cold)) bool write_long(uint8_t kind, uint32_t name, uint64_t tick)
{
	enum xs_role role = kind == XS_BEGIN ? XS_ROLE_BEGIN : XS_ROLE_END;
	uint32_t lost = xs_tls.producer.skip;
	struct xs_event *event =
		xs_record_begin(sizeof(*event), kind, XS_SOURCE_NONE, 0, name, role);

	/* the ring waits for the end of a begin that found no room there */
	if (!event)
		return xs_tls.producer.skip > lost;
	event->tick = tick;
	xs_record_end(sizeof(*event));
	return true;
}

static bool tell(uint8_t kind, uint32_t name, uint64_t tick)
{
	return __builtin_expect(xs_is_open() && xs_mark_at(kind, XS_SOURCE_NONE, name, tick), 1) ||
	       write_long(kind, name, tick);
}

void py_enter(struct py_function *function)
{
	struct py_thread *thread = __builtin_expect(own != NULL, 1) ? own : take();
	uint32_t at;

	if (!thread)
		return;
	if (__builtin_expect(thread->depth == DEPTH, 0)) {
		thread->beyond++;
		return;
	}
	at = thread->depth++;
	thread->open[at].function = function;
	thread->open[at].told = false;
	thread->open[at].counted = function->counted;
	thread->open[at].tick = xs_paused() ? 0 : xs_tick(xs_use_tsc);
	if (thread->open[at].tick && !function->counted)
		thread->open[at].told = tell(XS_BEGIN, function->name, thread->open[at].tick);
}

static void end_innermost(struct py_thread *thread, uint64_t tick)
{
	uint32_t at = --thread->depth;

	if (thread->open[at].told)
		(void)tell(XS_END, domain(), tick);
	if (thread->open[at].tick)
		py_function_ended(thread->open[at].function, tick - thread->open[at].tick,
				  thread->open[at].counted);
}

void py_leave(const struct py_function *function)
{
	uint64_t tick = xs_paused() ? 0 : xs_tick(xs_use_tsc);
	struct py_thread *thread = own;
	uint32_t at;

	if (!thread)
		return;
	if (__builtin_expect(thread->beyond != 0, 0)) {
		thread->beyond--;
		return;
	}
	/* what lies above it has been left without a word, by a switch of stacks */
	for (at = thread->depth; at && thread->open[at - 1].function != function; at--)
		;
	if (!at) /* it began before we came */
		return;
	if (__builtin_expect(!tick, 0)) {
		thread->depth = at - 1;
		return;
	}
	while (thread->depth >= at)
		end_innermost(thread, tick);
}

void py_leave_all(void)
{
	struct py_thread *thread = own;
	uint64_t tick = xs_tick_if_any();

	while (thread && thread->depth)
		end_innermost(thread, tick);
	if (thread)
		thread->beyond = 0;
}
