/*
 * What the program does to itself that restricts us: it enters a sandbox, disables the time stamp
 * counter, or makes a process that shares its memory and a thread's variables. We intercept the C
 * library's functions (lookups.c: also where a program asks for them by name); a system call made
 * by the bare instruction is not seen.
 */
#include <dlfcn.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>

#include "companion.h"
#include "environment.h"
#include "lock.h"
#include "next.h"
#include "self.h"
#include "sys.h"

#define EXPORT __attribute__((visibility("default")))

typedef long syscall_function(long number, long a, long b, long c, long d, long e, long f);
syscall_function *xs_real_syscall __attribute__((visibility("hidden")));
void xs_syscall_find(void) __attribute__((visibility("hidden"), used));
syscall_function xs_syscall_watched __attribute__((visibility("hidden"), used));

/* ---- sandboxes ---- */

static _Atomic(xs_sandbox_function *) companion;

EXPORT void xs_companion_sandbox(xs_sandbox_function *function)
{
	atomic_store_explicit(&companion, function, memory_order_release);
}

static void tell_companion(bool sealed)
{
	xs_sandbox_function *function = atomic_load_explicit(&companion, memory_order_acquire);

	if (function)
		function(sealed);
}

static struct xs_hook *_Atomic at_seal;

void xs_at_seal(struct xs_hook *hook)
{
	xs_hang(&at_seal, hook);
}

enum sandbox { SANDBOX_NONE, SANDBOX_FILTER, SANDBOX_STRICT };

/*
 * Stops recording for good, also in children of fork: every thread then finds the collector as in
 * an untraced process, and reads no clock. The previous gate is closed too, for threads that still
 * use it.
 */
static void close_for_good(void)
{
	static struct xs_gate off = { .open = XS_GATE_OFF, .state = XS_OFF };
	struct xs_gate *gate = xs_gate;

	if (xs_state() == XS_JOINED) {
		atomic_store_explicit(&gate->open, XS_GATE_OFF, memory_order_relaxed);
		atomic_store_explicit(&gate->state, XS_OFF, memory_order_release);
	}
	__atomic_store_n(&xs_gate, &off, __ATOMIC_RELEASE);
}

/*
 * A child of vfork() is another process in our memory: what it does to itself does not change what
 * this one may do. Who has not joined is told by the kernel, unless it may be in a sandbox already
 * that forbids to ask.
 */
static bool is_another(void)
{
	long pid = xs_sys(SYS_getpid);

	if (xs_joined())
		return pid != xs_self.pid;
	return !xs_sys(SYS_prctl, PR_GET_SECCOMP) &&
	       !xs_sys(SYS_kcmp, pid, xs_sys(SYS_getppid), KCMP_VM, 0, 0);
}

/* ---- programs that are started in the sandbox ---- */

/*
 * They begin with our library, which makes calls. Where a filter may end them for that, nothing
 * leads them to the run: neither their environment, which system() and others pass on as it is, nor
 * one that is made for them (exec.c).
 */
_Atomic bool xs_starts_untraced;
__thread int32_t xs_child_starts_untraced __attribute__((tls_model("initial-exec")));

static char *run_place; /* of what leads programs to the run, in the environment */

static void start_untraced(bool another, int32_t pid)
{
	if (another) {
		xs_child_starts_untraced = pid;
		return;
	}
	xs_tell_unseen(XS_UNSEEN_SANDBOX_EXEC);
	atomic_store_explicit(&xs_starts_untraced, true, memory_order_relaxed);
	if (run_place)
		*run_place = '\0';
}

/* What may be needed later, and could not be had then. */
extern struct xs_table *const __start_xs_tables[] __attribute__((weak, visibility("hidden")));
extern struct xs_table *const __stop_xs_tables[] __attribute__((weak, visibility("hidden")));

static void make_tables(void)
{
	for (struct xs_table *const *table = __start_xs_tables; table < __stop_xs_tables; table++)
		(void)xs_table(*table);
}

#define PATIENCE 10000u /* pauses; somewhat more than a second */

/*
 * No thread begins a call from now on: waits until the others have ended theirs. A filter of all
 * threads would end a thread that is just before its call, and one whose call the kernel begins
 * anew. False: one does not come to its end; it may be stopped, or has left by a jump and does not
 * trace any more.
 */
static bool wait_for_others(void)
{
	struct timespec pause = { 0, 50000 };

	for (uint32_t i = 0;
	     (int32_t)(atomic_load_explicit(&xs_sys_going, memory_order_seq_cst) - xs_sys_mine) > 0;
	     i++) {
		if (i == PATIENCE)
			return false;
		(void)xs_sys6(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
	}
	return true;
}

/* What the program is about to do to itself. */
struct entry {
	enum sandbox kind; /* of this process */
	uint32_t was;	   /* xs_seal */
	bool another;	   /* a child of vfork() does it: nothing changes here */
	bool may_end_us;   /* it would, in a program that is started there */
	int32_t pid;	   /* of the child, if its filter lets it ask for that */
};

/*
 * Before the call: what needs system calls is done now or never. A child of fork that has recorded
 * nothing yet joins, too.
 */
static void seal(struct entry *entry)
{
	uint32_t now = XS_SEALED;
	struct xs_entered entered;
	bool all;

	if (entry->was == XS_UNSEALED) {
		tell_companion(true);
		if (xs_joined() && !xs_in_handler())
			xs_call_at_stop(); /* what devices have done, too */
		if (xs_collector_options() && entry->kind == SANDBOX_FILTER) {
			(void)xs_recording(); /* a thread that is about to trace has its ring */
			make_tables();
			xs_enter(&entered);
			now = xs_rings_prepare() ? XS_SEALED_PREPARED : XS_SEALED;
			xs_strings_prepare(xs_self.strings);
			xs_leave(&entered);
		}
		xs_sys_forget_parent();
		atomic_store_explicit(&xs_seal, now, memory_order_seq_cst);
		xs_call_hooks(&at_seal);
	}
	all = wait_for_others(); /* another thread that seals at the same time waits, too */
	/* from now on none lets another thread end its call, either (xs_sys_begin_last()) */
	atomic_store_explicit(&xs_seal_complete, 1, memory_order_seq_cst);
	if (!all || !wait_for_others())
		xs_tell_unseen(XS_UNSEEN_LATE);
}

/* Of a program that is not traced, and that nothing leads to a run, nothing is asked. */
static bool is_of_no_run(void)
{
	const char *run;

	if (xs_state() != XS_OFF)
		return false;
	run = xs_environment_place(XS_ENV_RUN);
	return !(run && *run);
}

/* In a sealed process nothing is read that the kernel may refuse: more filters forbid more. */
static bool may_end_us(const struct sock_fprog *filter)
{
	return xs_is_sealed() || (xs_filter_is_there(filter) && xs_filter_may_end_us(filter));
}

/*
 * NULL: there is none, or the program has forbidden itself to write there. In a sealed process
 * nobody can be asked where it is by now.
 */
static char *place_to_empty(void)
{
	char *place = xs_is_sealed() ? NULL : xs_environment_place(XS_ENV_RUN);
	long page = (long)place & -(long)XS_PAGE, own = (long)&place & -(long)XS_PAGE;

	/* Linux 5.14 */
	if (place && xs_sys(SYS_madvise, page, XS_PAGE, MADV_POPULATE_WRITE) < 0 &&
	    !xs_sys(SYS_madvise, own, XS_PAGE, MADV_POPULATE_WRITE))
		return NULL;
	return place;
}

static struct entry enter(enum sandbox kind, const struct sock_fprog *filter)
{
	struct entry entry = { .kind = kind };

	if (kind == SANDBOX_NONE || is_of_no_run()) {
		entry.kind = SANDBOX_NONE;
		return entry;
	}
	entry.another = !xs_is_sealed() && is_another();
	entry.may_end_us = filter && may_end_us(filter);
	/* not as it was before: the program may have moved it, and have something else there */
	if (!entry.another)
		run_place = place_to_empty();
	if (entry.another) {
		entry.kind = SANDBOX_NONE;
		if (entry.may_end_us && !xs_filter_may_end(filter, SYS_getpid))
			entry.pid = (int32_t)xs_sys(SYS_getpid);
		return entry;
	}
	entry.was = atomic_load_explicit(&xs_seal, memory_order_relaxed);
	seal(&entry);
	return entry;
}

/* After it. */
static void entered(const struct entry *entry, bool done)
{
	if (done && entry->may_end_us)
		start_untraced(entry->another, entry->pid);
	if (entry->kind == SANDBOX_NONE || entry->was != XS_UNSEALED)
		return;
	if (!done) {
		atomic_store_explicit(&xs_seal_complete, 0, memory_order_relaxed);
		atomic_store_explicit(&xs_seal, entry->was, memory_order_relaxed);
		tell_companion(false);
		return;
	}
	xs_tell_unseen(entry->kind == SANDBOX_STRICT ? XS_UNSEEN_STRICT : XS_UNSEEN_SANDBOX);
	/* without the counter a time may need a system call */
	if (entry->kind == SANDBOX_STRICT || !xs_use_tsc)
		close_for_good();
}

/*
 * With the dispatch of system calls to user space each call that does not lie in the program's own
 * code is a SIGSYS: ours too.
 */
static struct entry of_prctl(long option, long mode, long filter)
{
	enum sandbox kind = SANDBOX_NONE;

	if (option == PR_SET_SYSCALL_USER_DISPATCH && mode != PR_SYS_DISPATCH_OFF)
		kind = SANDBOX_FILTER;
	if (option == PR_SET_SECCOMP)
		kind = mode == SECCOMP_MODE_STRICT ? SANDBOX_STRICT : SANDBOX_FILTER;
	return enter(kind, option == PR_SET_SECCOMP && mode == SECCOMP_MODE_FILTER
				   ? (const struct sock_fprog *)filter
				   : NULL);
}

static struct entry of_seccomp(long operation, long filter)
{
	if (operation == SECCOMP_SET_MODE_STRICT)
		return enter(SANDBOX_STRICT, NULL);
	if (operation == SECCOMP_SET_MODE_FILTER)
		return enter(SANDBOX_FILTER, (const struct sock_fprog *)filter);
	return enter(SANDBOX_NONE, NULL);
}

/*
 * Has the kernel done it? A filter with a listener gives its descriptor; without, a number above 0
 * is a thread that could not be put into the sandbox, and so nobody was.
 */
static bool is_done(long number, long operation, long flags, long result)
{
	bool listens = number == SYS_seccomp && operation == SECCOMP_SET_MODE_FILTER &&
		       flags & SECCOMP_FILTER_FLAG_NEW_LISTENER;

	return !result || (listens && result > 0);
}

/* ---- the time stamp counter ---- */

/*
 * Before the call: for the thread that makes it, for those that it starts and for its children,
 * reading the counter is a SIGSEGV, and so is clock_gettime(), which reads it for the C library.
 * There is no time without.
 */
static void of_clock(long option, long mode)
{
	if (option != PR_SET_TSC || mode != PR_TSC_SIGSEGV || is_another())
		return;
	xs_tell_unseen(XS_UNSEEN_CLOCK);
	close_for_good();
}

static _Atomic(void *) real_prctl, real_clone;

__attribute__((constructor)) static void find_early(void)
{
	(void)xs_next(&real_prctl, "prctl");
	(void)xs_next(&real_clone, "clone");
	xs_syscall_find();
}

EXPORT int prctl(int option, ...)
{
	int (*function)(int, unsigned long, unsigned long, unsigned long, unsigned long) =
		xs_next(&real_prctl, "prctl");
	unsigned long argument[4];
	struct entry entry;
	va_list list;
	int result;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		argument[i] = va_arg(list, unsigned long);
	va_end(list);
	of_clock(option, (long)argument[0]);
	entry = of_prctl(option, (long)argument[0], (long)argument[1]);
	result = function(option, argument[0], argument[1], argument[2], argument[3]);
	entered(&entry, !result);
	return result;
}

void xs_syscall_find(void)
{
	if (!xs_real_syscall)
		*(void **)&xs_real_syscall = dlsym(RTLD_NEXT, "syscall");
}

#ifdef SYS_fork
#define IS_FORK(number) ((number) == SYS_fork || (number) == SYS_clone)
#else
#define IS_FORK(number) ((number) == SYS_clone)
#endif

/*
 * Numbers SYS_seccomp, SYS_prctl, SYS_execve and SYS_execveat of syscall(), and those that make a
 * child with memory of its own on the same stack.
 */
long xs_syscall_watched(long number, long a, long b, long c, long d, long e, long f)
{
	struct entry entry;
	long result;

	if (IS_FORK(number)) {
		xs_syscall_find();
		result = xs_real_syscall(number, a, b, c, d, e, f);
		if (!result)
			xs_leave_parent();
		return result;
	}

	if (number == SYS_execve)
		return execve((const char *)a, (char *const *)b, (char *const *)c);
	if (number == SYS_execveat)
		return execveat((int)a, (const char *)b, (char *const *)c, (char *const *)d,
				(int)e);
	entry = number == SYS_seccomp ? of_seccomp(a, c) : of_prctl(a, b, c);
	if (number == SYS_prctl)
		of_clock(a, b);
	xs_syscall_find();
	result = xs_real_syscall(number, a, b, c, d, e, f);
	entered(&entry, is_done(number, a, b, result));
	return result;
}

/* Jumps and not calls: a call that returns twice (SYS_vfork) needs its caller's stack as it is. */
#define TEXT(x)	  #x
#define NUMBER(x) TEXT(x)
#if defined(__x86_64__)
/* clang-format off */
__asm__(".pushsection .text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpq $" NUMBER(__NR_seccomp) ", %rdi\n"
	"	je xs_syscall_watched\n"
	"	cmpq $" NUMBER(__NR_prctl) ", %rdi\n"
	"	je xs_syscall_watched\n"
	"	cmpq $" NUMBER(__NR_execve) ", %rdi\n"
	"	je xs_syscall_watched\n"
	"	cmpq $" NUMBER(__NR_execveat) ", %rdi\n"
	"	je xs_syscall_watched\n"
	"	cmpq $" NUMBER(__NR_fork) ", %rdi\n"
	"	je xs_syscall_watched\n"
	"	cmpq $" NUMBER(__NR_clone) ", %rdi\n"
	"	jne 2f\n"
	"	testq $0x100, %rsi\n" /* CLONE_VM */
	"	jne 2f\n"
	"	testq %rdx, %rdx\n" /* a stack of its own */
	"	je xs_syscall_watched\n"
	"2:	cmpq $0, xs_real_syscall(%rip)\n"
	"	je 1f\n"
	"	jmp *xs_real_syscall(%rip)\n"
	"1:	pushq %rdi\n"
	"	pushq %rsi\n"
	"	pushq %rdx\n"
	"	pushq %rcx\n"
	"	pushq %r8\n"
	"	pushq %r9\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 56\n"
	"	call xs_syscall_find\n"
	"	addq $8, %rsp\n"
	"	popq %r9\n"
	"	popq %r8\n"
	"	popq %rcx\n"
	"	popq %rdx\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -56\n"
	"	jmp *xs_real_syscall(%rip)\n"
	"	.cfi_endproc\n"
	".size syscall, .-syscall\n"
	".popsection\n");
/* clang-format on */
#else
EXPORT long syscall(long number, ...)
{
	long argument[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	xs_syscall_find();
	if (number == SYS_seccomp || number == SYS_prctl || number == SYS_execve ||
	    number == SYS_execveat ||
	    (number == SYS_clone && !(argument[0] & CLONE_VM) && !argument[1]))
		return xs_syscall_watched(number, argument[0], argument[1], argument[2],
					  argument[3], argument[4], argument[5]);
	return xs_real_syscall(number, argument[0], argument[1], argument[2], argument[3],
			       argument[4], argument[5]);
}
#endif

/* ---- processes that share memory ---- */

/*
 * Without variables of its own for its thread such a process looks like the thread that made it:
 * from now on every event asks who it is, and the process's own are lost, counted. (After vfork()
 * the parent waits, so that there is only one at a time.)
 */
EXPORT int clone(int (*start)(void *), void *stack, int flags, void *argument, ...)
{
	int (*function)(int (*)(void *), void *, int, void *, void *, void *, void *) =
		xs_next(&real_clone, "clone");
	void *more[3]; /* there may be none: nobody looks at them then */
	va_list list;

	va_start(list, argument);
	for (int i = 0; i < 3; i++)
		more[i] = va_arg(list, void *);
	va_end(list);
	if (flags & CLONE_VM && !(flags & (CLONE_SETTLS | CLONE_VFORK)) && xs_recording()) {
		atomic_store_explicit(&xs_gate->shared, 1, memory_order_relaxed);
		xs_gate_update();
	}
	return function(start, stack, flags, argument, more[0], more[1], more[2]);
}
