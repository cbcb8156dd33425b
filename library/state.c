/*
 * What all files of the library know of this process, and why the last call failed.
 */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct xs_state_of_library xs_library = { .lock = { .mutex = PTHREAD_MUTEX_INITIALIZER },
					  .table = &xs_library_nothing };

/*
 * A pointer alone: a library that is loaded late finds little room for variables of threads.
 */
static __thread struct xs_of_thread *mine;
static pthread_key_t key;
static bool have_key;

static void forget(void *thread)
{
	mine = NULL;
	(void)munmap(thread, sizeof(*mine));
}

static void make_key(void)
{
	have_key = !pthread_key_create(&key, forget);
}

struct xs_of_thread *xs_of_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct xs_of_thread *made;

	if (__builtin_expect(mine != NULL, 1))
		return mine;
	(void)pthread_once(&once, make_key);
	if (!have_key)
		return NULL;
	/* not malloc(): the first use may be in a signal's handler */
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (made == MAP_FAILED)
		return NULL;
	if (pthread_setspecific(key, made)) {
		(void)munmap(made, sizeof(*made));
		return NULL;
	}
	return mine = made;
}

int xs_refuse(int result, const char *format, ...)
{
	const char *off = atomic_load_explicit(&xs_library.why_off, memory_order_relaxed);
	struct xs_of_thread *thread = xs_of_thread();
	va_list args;

	if (off && (result == XSTRACE_BAD_STATE || result == XSTRACE_BAD_ARGUMENT))
		return xs_refuse(XSTRACE_OFF, "%s", off);
	if (!thread)
		return result;
	va_start(args, format);
	(void)vsnprintf(thread->why, sizeof(thread->why), format, args);
	va_end(args);
	return result;
}

const char *xstrace_why(void)
{
	struct xs_of_thread *thread = xs_of_thread();

	if (!thread)
		return "no memory";
	return thread->why[0] ? thread->why : "nothing has failed in this thread";
}

bool xs_is_child(void)
{
	pid_t pid = atomic_load_explicit(&xs_library.pid, memory_order_relaxed);

	return pid && pid != getpid();
}

/* ---- calm ---- */

/*
 * glibc's handler of cancellation does not ask whether it is disabled, only of which type it is.
 * The signal may have been sent just before.
 */
static struct xs_cancelled not_now(void)
{
	struct xs_cancelled before;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.state);
	(void)pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before.type);
	return before;
}

/* The thread may end here. */
static void as_before(struct xs_cancelled before)
{
	(void)pthread_setcanceltype(before.type, NULL);
	(void)pthread_setcancelstate(before.state, NULL);
}

static bool is_pending(void)
{
	sigset_t pending;

	return !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
}

void xs_calm_begin(struct xs_calm *ret)
{
	sigset_t kept_away;

	ret->cancelled = not_now();
	(void)sigemptyset(&kept_away);
	(void)sigaddset(&kept_away, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &kept_away, &ret->signals);
	ret->was_pending = is_pending();
}

void xs_calm_end(const struct xs_calm *calm)
{
	static const struct timespec now;
	sigset_t ours;

	(void)sigemptyset(&ours);
	(void)sigaddset(&ours, SIGXFSZ);
	if (!calm->was_pending && is_pending())
		(void)sigtimedwait(&ours, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, &calm->signals, NULL);
	as_before(calm->cancelled);
}

/* ---- locks ---- */

/* Before the first lock is taken: a child that is forked from then on knows that it is one. */
static void claim(void)
{
	pid_t none = 0;

	if (!atomic_load_explicit(&xs_library.pid, memory_order_relaxed))
		(void)atomic_compare_exchange_strong(&xs_library.pid, &none, getpid());
}

int xs_lock(struct xs_api_lock *lock)
{
	struct xs_cancelled before;

	claim();
	if (xs_is_child())
		return xs_refuse(XSTRACE_OFF, "this process was forked from one that uses xstrace; "
					      "it is not traced");
	before = not_now();
	pthread_mutex_lock(&lock->mutex);
	lock->cancelled = before;
	return XSTRACE_OK;
}

int xs_unlock(struct xs_api_lock *lock, int result)
{
	struct xs_cancelled before = lock->cancelled;

	pthread_mutex_unlock(&lock->mutex);
	as_before(before);
	return result;
}
