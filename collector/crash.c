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

EXPORT sigaction_function sigaction;
EXPORT handler *signal(int number, handler *action);

static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

static bool is_fatal(int number)
{
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		if (fatal[i] == number)
			return true;
	return false;
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

/* Only one thread's end ends the program: the default action comes back before the signal does. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	const struct sigaction as_it_was = { .sa_handler = SIG_DFL };
	int error = errno;

	(void)context;
	xs_companion_crash(number);
	(void)real_sigaction(number, &as_it_was, NULL);
	/* it is blocked until this function returns; its sender, address and reason are the same */
	(void)xs_sys6(SYS_rt_tgsigqueueinfo, xs_sys6(SYS_getpid, 0, 0, 0, 0, 0, 0),
		      xs_sys6(SYS_gettid, 0, 0, 0, 0, 0, 0), number, (long)info, 0, 0);
	errno = error;
}

static const struct sigaction *ours(void)
{
	/* on the stack that the program has for signals, if any; else there may be none left */
	static const struct sigaction action = { .sa_sigaction = on_signal,
						 .sa_flags = SA_SIGINFO | SA_ONSTACK };

	return &action;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

static bool wanted;

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	bool is_default = wanted && is_fatal(number) && action &&
			  !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
	int result = real_sigaction(number, is_default ? ours() : action, old);

	if (!result && old && is_ours(old))
		*old = (struct sigaction){ .sa_handler = SIG_DFL };
	return result;
}

EXPORT handler *signal(int number, handler *action)
{
	static _Atomic(handler * (*)(int, handler *)) real;
	handler *(*function)(int, handler *) = atomic_load_explicit(&real, memory_order_relaxed);
	const struct sigaction as_default = { .sa_handler = SIG_DFL };
	struct sigaction old;
	handler *result;

	if (is_fatal(number) && action == SIG_DFL)
		return sigaction(number, &as_default, &old) < 0 ? SIG_ERR : old.sa_handler;
	if (!function) {
		*(void **)&function = next("signal");
		atomic_store_explicit(&real, function, memory_order_relaxed);
	}
	result = function(number, action);
	return (void *)result == (void *)on_signal ? SIG_DFL : result;
}

__attribute__((constructor)) static void begin(void)
{
	const struct xs_options *options = xs_companion_options();
	struct sigaction now;

	wanted = options && options->stacks_on_crash;
	for (size_t i = 0; wanted && i < sizeof(fatal) / sizeof(fatal[0]); i++)
		if (!real_sigaction(fatal[i], NULL, &now) && !(now.sa_flags & SA_SIGINFO) &&
		    now.sa_handler == SIG_DFL)
			(void)real_sigaction(fatal[i], ours(), NULL);
}
