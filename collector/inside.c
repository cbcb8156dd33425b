/*
 * The collector's rare paths, where no signal arrives.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#include "self.h"
#include "sys.h"

/*
 * SIGKILL and SIGSTOP aside, all: those that the C library keeps to itself (cancellation, setuid()
 * of all threads) too. Not the trap after each instruction, with which a program looks at its own
 * steps: the kernel ends who has blocked it.
 */
static const uint64_t every_signal = ~(1ull << (SIGTRAP - 1));

uint64_t xs_true_ns(void)
{
	struct timespec ts;

	if (xs_sys(SYS_clock_gettime, CLOCK_MONOTONIC, &ts) < 0) /* it is sandboxed */
		return xs_is_off() ? UINT64_MAX : xs_clock_ns(CLOCK_MONOTONIC);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

__attribute__((noinline)) void xs_ask_for_stack(uint32_t bytes)
{
	*(volatile char *)__builtin_alloca(bytes) = 0;
}

/*
 * Nothing says that the thread is inside before its signals are blocked: a handler may come at any
 * instruction until then, and leave by a jump. A thread that comes here from outside is in no call
 * any more: those that are still counted it has left in that way.
 */
void xs_enter_in(uintptr_t mark, struct xs_entered *entered)
{
	*entered = (struct xs_entered){ .mark = xs_tls.mark, .error = errno };
	if (xs_tls.busy) {
		entered->how = XS_ENTERED_AGAIN;
		xs_tls.busy++;
	} else {
		if (!entered->mark)
			xs_sys_left();
		xs_ask_for_stack(1024); /* more than is needed but for the process's first event */
		/* ends in xs_leave(): a thread that seals the process waits until then */
		if (xs_sys_begin()) {
			(void)xs_sys_always(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal,
					    &entered->signals, sizeof(every_signal));
			xs_tls.busy = 1;
		} else {
			entered->how = XS_ENTERED_SEALED;
			xs_sys_end();
		}
	}
	xs_inside_begin(mark);
}

void xs_leave(const struct xs_entered *entered)
{
	atomic_signal_fence(memory_order_seq_cst);
	errno = entered->error;
	if (entered->how != XS_ENTERED_SEALED)
		xs_tls.busy--;
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.mark = entered->mark;
	if (entered->how != XS_ENTERED_BLOCKED)
		return;
	(void)xs_sys_always(SYS_rt_sigprocmask, SIG_SETMASK, &entered->signals, NULL,
			    sizeof(every_signal));
	xs_sys_end();
}

void xs_sys_forget_parent(void)
{
	if (xs_self.process && xs_state() == XS_NOT_JOINED)
		atomic_store_explicit(&xs_sys_going, xs_sys_mine, memory_order_relaxed);
}
