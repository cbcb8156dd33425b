/*
 * libxstrace-crash.so, preloaded with --stacks-on-crash alone: before a signal ends the program by
 * its default action, the drain process is told, and waited for while it looks where threads are.
 * Then the signal comes again, with the default action: the program ends as it would have.
 *
 * A handler of the program's own is never replaced. Where the program reads the default action, or
 * sets it, that is ours.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "companion.h"
#include "sys.h"

#define EXPORT __attribute__((visibility("default")))

typedef int sigaction_function(int number, const struct sigaction *action, struct sigaction *old);
typedef void handler(int number);

typedef handler *signal_function(int number, handler *action);

EXPORT sigaction_function sigaction, __sigaction;
/* What older standards, or a program built for them, call instead. */
EXPORT signal_function signal, bsd_signal, ssignal, sysv_signal, __sysv_signal, sigset;

#define SECOND_WAITS 2500u /* ms; longer than xs_companion_crash() waits */

static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

enum { FATAL = sizeof(fatal) / sizeof(fatal[0]) };
static struct sigaction defaults[FATAL]; /* with the flags and the mask that the program gave */

/* -1: it is none of them. */
static int place_of(int number)
{
	for (int i = 0; i < FATAL; i++)
		if (fatal[i] == number)
			return i;
	return -1;
}

/* The C library's; what is below us may have one, too. */
static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static int real_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	static _Atomic(sigaction_function *) real;
	sigaction_function *function = atomic_load_explicit(&real, memory_order_relaxed);

	if (!function) {
		*(void **)&function = next("sigaction");
		atomic_store_explicit(&real, function, memory_order_relaxed);
	}
	return function(number, action, old);
}

/*
 * The process that a thread ends by now; 0: none. A child of vfork() has its parent's memory, and
 * what it leaves there is another process's id.
 */
static _Atomic long ending;

/*
 * By the first signal a program would have ended, and by no later one: who comes second waits for
 * that end. It comes soon; if it never does, the second one tries.
 */
static void wait_if_second(long pid)
{
	const struct timespec ms = { 0, 1000000 };
	long was = atomic_load_explicit(&ending, memory_order_relaxed);

	if (was != pid &&
	    atomic_compare_exchange_strong_explicit(&ending, &was, pid, memory_order_relaxed,
						    memory_order_relaxed))
		return;
	for (unsigned i = 0; i < SECOND_WAITS; i++)
		(void)xs_sys6(SYS_nanosleep, (long)&ms, 0, 0, 0, 0, 0);
}

/*
 * To this thread, where it is blocked until the handler returns. Its sender, address and reason are
 * the same; a sandbox that the program was started in may refuse to say them.
 */
static void send_again(long pid, int number, siginfo_t *info)
{
	long tid = xs_sys6(SYS_gettid, 0, 0, 0, 0, 0, 0);
	bool raised = info->si_code == SI_TKILL && info->si_pid == pid; /* abort(), raise() */

	if (!raised && !xs_sys6(SYS_rt_tgsigqueueinfo, pid, tid, number, (long)info, 0, 0))
		return;
	if (xs_sys6(SYS_tgkill, pid, tid, number, 0, 0, 0))
		(void)xs_sys6(SYS_kill, pid, number, 0, 0, 0, 0);
}

/* Only one thread's end ends the program: the default action comes back before the signal does. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	const struct sigaction as_it_was = { .sa_handler = SIG_DFL };
	long pid = xs_sys6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	int error = errno;

	(void)context;
	wait_if_second(pid);
	xs_companion_crash(number);
	(void)real_sigaction(number, &as_it_was, NULL);
	send_again(pid, number, info);
	errno = error;
}

static struct sigaction ours(int number)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	/* A thread that has crashed runs no other handler any more: one may leave by a jump. */
	memset(&action.sa_mask, 0xff, sizeof(action.sa_mask));
	/*
	 * An overflow needs the stack that the program has for signals, if any. That may be too
	 * small for a frame of the kernel's, and then another signal would end the program: so no
	 * other one uses it.
	 */
	if (number == SIGSEGV)
		action.sa_flags |= SA_ONSTACK;
	return action;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

static _Atomic bool wanted;

/* Where the action is the default one, ours takes its place. */
static void take_default(int place)
{
	const struct sigaction instead = ours(fatal[place]);
	struct sigaction now;

	if (real_sigaction(fatal[place], NULL, &now) < 0 || now.sa_handler != SIG_DFL)
		return;
	defaults[place] = now;
	(void)real_sigaction(fatal[place], &instead, NULL);
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	int place = place_of(number), result;
	struct sigaction was = { .sa_handler = SIG_DFL };

	if (place >= 0)
		was = defaults[place];
	result = real_sigaction(number, action, old);
	if (!result && old && is_ours(old))
		*old = was;
	if (!result && action && place >= 0 && wanted)
		take_default(place);
	return result;
}

EXPORT int __sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	return sigaction(number, action, old);
}

/* What the function that is named so does, but the default action is ours. */
static handler *as_named(_Atomic(signal_function *) *real, const char *name, int number,
			 handler *action)
{
	signal_function *function = atomic_load_explicit(real, memory_order_relaxed);
	handler *result;

	if (!function) {
		*(void **)&function = next(name);
		atomic_store_explicit(real, function, memory_order_relaxed);
	}
	result = function(number, action);
	if (result != SIG_ERR && wanted && place_of(number) >= 0)
		take_default(place_of(number));
	return (void *)result == (void *)on_signal ? SIG_DFL : result;
}

#define AS_NAMED(name)                                         \
	EXPORT handler *name(int number, handler *action)      \
	{                                                      \
		static _Atomic(signal_function *) real;        \
		return as_named(&real, #name, number, action); \
	}

AS_NAMED(signal)
AS_NAMED(bsd_signal)
AS_NAMED(ssignal)
AS_NAMED(sysv_signal)
AS_NAMED(__sysv_signal)
AS_NAMED(sigset)

/* Where the action is the default one, ours takes its place, or the other way round. */
static void change(bool to_ours)
{
	struct sigaction now;

	atomic_store_explicit(&wanted, to_ours, memory_order_relaxed);
	for (int i = 0; i < FATAL; i++)
		if (to_ours)
			take_default(i);
		else if (!real_sigaction(fatal[i], NULL, &now) && is_ours(&now))
			(void)real_sigaction(fatal[i], &defaults[i], NULL);
}

/* A sandbox may kill for the system calls that our handler makes. */
static void on_sandbox(bool sealed)
{
	change(!sealed);
}

__attribute__((constructor)) static void begin(void)
{
	const struct xs_options *options = xs_companion_options();

	if (!options || !options->stacks_on_crash)
		return;
	change(true);
	xs_companion_sandbox(on_sandbox);
}
