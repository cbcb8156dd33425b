/* What happens around a call of the API when somebody wants to know of it: its correlation id,
 * faults that were asked for, and the tool's hooks. A call within a call (of the driver by the
 * runtime) has the correlation id of the outer one. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic unsigned sc_slow_flags;
struct sc_tool sc_tool;
const char *(*sc_runtime_name)(const void *host);

static _Atomic uint32_t last_correlation;
static __thread struct sc_call *innermost;
static __thread uint32_t thread_id;

enum { FAULTS_MAX = 32 };
static struct {
	char function[64];
	uint64_t nth; /* 0: every one */
	int result;
	_Atomic uint64_t calls;
} faults[FAULTS_MAX];
static unsigned fault_count;

#define BLOCKS -2 /* the result of a function that never returns */

static int fault_of(int result)
{
	while (result == BLOCKS)
		(void)pause();
	return result;
}

/* FUNCTION[:N]:RESULT,... */
bool sc_faults_start(const char *list)
{
	char copy[1024], *next = copy;

	if (strlen(list) >= sizeof(copy))
		return false;
	strcpy(copy, list);
	for (char *one; (one = strsep(&next, ","));) {
		char *function = strsep(&one, ":"), *first = strsep(&one, ":"), *second = one;

		if (!*function || !first || fault_count == FAULTS_MAX ||
		    strlen(function) >= sizeof(faults[0].function))
			return false;
		strcpy(faults[fault_count].function, function);
		faults[fault_count].nth = second ? strtoull(first, NULL, 0) : 0;
		if (!second)
			second = first;
		faults[fault_count++].result = strcmp(second, "block") ? atoi(second) : BLOCKS;
	}
	sc_flag(SC_FAULTS, true);
	return true;
}

int sc_fault(const char *name)
{
	for (unsigned i = 0; i < fault_count; i++) {
		if (strcmp(faults[i].function, name) != 0)
			continue;
		if (atomic_fetch_add(&faults[i].calls, 1) + 1 == faults[i].nth || !faults[i].nth)
			return fault_of(faults[i].result);
	}
	return -1;
}

void sc_flag(unsigned flag, bool on)
{
	if (on)
		atomic_fetch_or(&sc_slow_flags, flag);
	else
		atomic_fetch_and(&sc_slow_flags, ~flag);
}

uint32_t sc_pid;

static void forget_ids(void)
{
	thread_id = 0;
	sc_pid = (uint32_t)getpid();
}

__attribute__((constructor)) static void know_ids(void)
{
	forget_ids();
	(void)pthread_atfork(NULL, NULL, forget_ids);
}

uint32_t sc_thread(void)
{
	if (!thread_id)
		thread_id = (uint32_t)syscall(SYS_gettid);
	return thread_id;
}

uint32_t sc_correlation(void)
{
	return innermost ? innermost->corr : 0;
}

bool sc_call_begin(struct sc_call *call)
{
	unsigned flags = atomic_load_explicit(&sc_slow_flags, memory_order_relaxed);
	int fault;

	call->outer = innermost;
	call->corr =
		innermost
			? innermost->corr
			: atomic_fetch_add_explicit(&last_correlation, 1, memory_order_relaxed) + 1;
	innermost = call;
	if (flags & SC_CALLS)
		SC_TELL(enter, call);
	if (!(flags & SC_FAULTS))
		return true;
	fault = sc_fault(call->symbol);
	if (fault >= 0)
		*call->ret = fault;
	return fault < 0;
}

void sc_call_end(struct sc_call *call)
{
	innermost = call->outer;
	if (call->told)
		SC_TELL(leave, call);
}
