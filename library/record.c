/*
 * What is recorded while a trace is: each function is one call through the table.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

int64_t xstrace_now(void)
{
	return (int64_t)xs_clock_ns(CLOCK_REALTIME);
}

void xstrace_range_push(const char *name)
{
	xs_table_of_library()->range_push(name);
}

void xstrace_range_push_name(const struct xstrace_name *name)
{
	xs_table_of_library()->range_push_name(name);
}

void xstrace_range_pop(void)
{
	xs_table_of_library()->range_pop();
}

const struct xstrace_name *xstrace_get_name(const char *name)
{
	return xs_table_of_library()->name(name);
}

void xstrace_mark(const char *name)
{
	xs_table_of_library()->mark(name);
}

void xstrace_counter(const char *name, double value)
{
	xs_table_of_library()->counter(name, value);
}

void xstrace_step_number(uint64_t number)
{
	const struct xs_library *table = xs_table_of_library();
	bool own = atomic_load_explicit(&xs_library.recording, memory_order_relaxed);
	uint64_t count;
	char name[40];

	/* before a trace ends with it, and another step begins with one */
	if (atomic_exchange(&xs_library.in_step, false))
		table->step_end();
	count = table->count_step();
	if (!own && !count)
		return;
	if (!own) /* who asks for a trace counts from when it could */
		number = count - 1;
	(void)snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)number);
	atomic_store(&xs_library.in_step, table->step(name));
}

void xstrace_step(void)
{
	/* those that nobody records, too: it is the program's number */
	xstrace_step_number(atomic_fetch_add_explicit(&xs_library.step, 1, memory_order_relaxed));
}

/* ---- ITT's words ---- */

bool xstrace_itt_available(void)
{
	return xs_table_of_library()->domain();
}

void xstrace_itt_range_push(const char *name)
{
	xstrace_range_push(name);
}

void xstrace_itt_range_pop(void)
{
	xstrace_range_pop();
}

void xstrace_itt_mark(const char *name)
{
	xstrace_mark(name);
}

void *xstrace_itt_domain(void)
{
	return xs_table_of_library()->domain();
}

void *xstrace_itt_string_handle(const char *name)
{
	return (void *)xs_table_of_library()->name(name);
}

/* ---- correlation ---- */

static uint64_t top(const struct xs_ids *ids)
{
	uint32_t depth = ids->depth < XS_IDS_MAX ? ids->depth : XS_IDS_MAX;

	return depth ? ids->id[depth - 1] : 0;
}

static void tell(const struct xs_of_thread *thread)
{
	xs_table_of_library()->external(top(&thread->correlation), top(&thread->user_correlation));
}

static void push(struct xs_ids *ids, uint64_t id)
{
	if (ids->depth < XS_IDS_MAX)
		ids->id[ids->depth] = id;
	ids->depth++;
}

static void pop(struct xs_ids *ids)
{
	if (ids->depth)
		ids->depth--;
}

void xstrace_push_correlation(uint64_t id)
{
	struct xs_of_thread *thread = xs_of_thread();

	if (!thread)
		return;
	push(&thread->correlation, id);
	tell(thread);
}

void xstrace_pop_correlation(void)
{
	struct xs_of_thread *thread = xs_of_thread();

	if (!thread)
		return;
	pop(&thread->correlation);
	tell(thread);
}

void xstrace_push_user_correlation(uint64_t id)
{
	struct xs_of_thread *thread = xs_of_thread();

	if (!thread)
		return;
	push(&thread->user_correlation, id);
	tell(thread);
}

void xstrace_pop_user_correlation(void)
{
	struct xs_of_thread *thread = xs_of_thread();

	if (!thread)
		return;
	pop(&thread->user_correlation);
	tell(thread);
}

void xstrace_record_thread_info(void)
{
	xs_table_of_library()->thread_info();
}

struct xstrace_ids xstrace_get_ids(void)
{
	return (struct xstrace_ids){ getpid(), syscall(SYS_gettid) };
}
