/*
 * Memory of the collector (xs_arena()) in a child that was forked while another thread was in the
 * middle of taking some, at each instruction.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "rundir.h"
#include "self.h"
#include "tap.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define STEPPING       true
#define TRAP_FLAG      0x100
#define FLAGS(context) (((ucontext_t *)(context))->uc_mcontext.gregs[REG_EFL])
#else
#define STEPPING       false
#define TRAP_FLAG      0
#define FLAGS(context) (*(long *)(context))
#endif

#define LARGE 40000u /* two of them need two chunks */

static struct rundir dir;
static char *taken[8];
static unsigned taken_count;
static volatile unsigned steps, failed;
static volatile bool stepping;

/* Before the collector's constructor, which looks for a run once. */
__attribute__((constructor(101))) static void make_run(void)
{
	char value[PATH_MAX + 64];

	rundir_open(&dir, NULL);
	(void)snprintf(value, sizeof(value), "%s:%.*s", dir.launch.dir, (int)XS_SECRET,
		       dir.launch.control->secret);
	(void)setenv(XS_ENV_RUN, value, 1);
}

static bool is_taken(const char *memory, size_t size)
{
	for (unsigned i = 0; i < taken_count; i++)
		if (memory < taken[i] + LARGE && taken[i] < memory + size)
			return true;
	return false;
}

/* A thread of the child, which traces on: what it gets is there, and is nobody else's. */
static void *go_on(void *unused)
{
	(void)unused;
	if (!xs_collector_options())
		_exit(2);
	for (unsigned i = 0; i < 100; i++) {
		char *memory = xs_arena(4096);

		if (!memory || is_taken(memory, 4096))
			_exit(3);
		memset(memory, 0xff, 4096);
	}
	_exit(0);
}

static void child(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, go_on, NULL))
		_exit(1);
	for (;;)
		(void)pause();
}

/* After each instruction: what a child would see that another thread had forked just now. */
static void on_trap(int signal, siginfo_t *info, void *context)
{
	int status = -1;
	pid_t pid;

	(void)signal, (void)info;
	if (!stepping) {
		FLAGS(context) &= ~TRAP_FLAG;
		return;
	}
	FLAGS(context) |= TRAP_FLAG;
	if (!steps++)
		return;
	pid = fork();
	if (!pid)
		child();
	(void)waitpid(pid, &status, 0);
	failed += status != 0;
}

static void forked_inside(void)
{
	struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	CHECK(xs_collector_options(), "joined");
	(void)sigaction(SIGTRAP, &trap, NULL);
	for (unsigned i = 0; i < 3; i++) {
		stepping = i == 2; /* it takes a new chunk, as the one before did */
		if (stepping)
			(void)raise(SIGTRAP);
		taken[taken_count] = xs_arena(LARGE);
		stepping = false;
		taken_count++;
	}
	CHECK(steps > 10, "%u steps", steps);
	CHECK(!failed, "of %u children %u have got memory that is not there or not theirs", steps,
	      failed);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	if (STEPPING)
		tap_run("a fork in the middle", forked_inside);
	else
		tap_skip("a fork in the middle", "not here: x86-64, and no sanitizer");
	rundir_close(&dir);
	return tap_done();
}
