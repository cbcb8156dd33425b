/*
 * Looking again and again, for xstrace-attach. Behind what told.c prints:
 *
 *	B NS			a look begins, at that time of CLOCK_MONOTONIC
 *	W TID NAME		what a thread is called, when that is new
 *	T TID STATE CPU STACK	a thread that has done something since: its state, its ns on
 *				processors until now, its stack; "-": not known
 *	X TID			it has ended
 *	S HELD MISSED MENDED NS LONGEST OWN SAMPLES	the look's cost (struct xs_held), this
 *				program's own ns on a processor, samples of perf
 *	O			there are more threads than are looked at
 *	A			there is no room for more numbers: this program ends, and is to be
 *				started again
 *	E WHY			the process cannot be looked into
 *
 * Threads that run are sampled by perf (perf.c), where that is allowed and they do nothing in
 * Python. Others that run, and those that sleep where that does no harm, are held one by one. A
 *thread that traces others does it, and is a new one at each look: with its end the kernel lets go
 *whoever has not stopped in time.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "python_frames.h"
#include "stacks.h"

#define STILL	   2   /* seconds for which a look may hold threads; then this program ends */
#define STUCK	   20  /* seconds of a processor that it may take in all */
#define REFUSALS   100 /* looks in a row that are refused, once one was not, */
#define ATTEMPTS   5   /* and before that: another one may just look, too */
#define SHARE_HELD 50  /* a thread stands still for one part of so many, */
#define SHARE_OWN  20  /* and this program uses one part of so many of a processor */
#define PRIORITY   -15
#define AGAIN_NS   100000000u	/* between two looks at what is mapped */
#define ROOM	   (600u << 20) /* bytes: libunwind keeps what it has read of each function */

static volatile sig_atomic_t ended;

struct sampling {
	struct xs_watch watch;
	struct xs_threads held; /* of this look */
	struct xs_held cost;
	struct stat program; /* what it runs: it changes with exec */
	uint64_t mapped;     /* when its modules were read */
	bool unknown;	     /* code was found that no module has */
	bool python;	     /* its frames are read while a thread stands still */
	uint64_t period;     /* of perf's samples, ns */
	uint64_t samples;    /* of those, in this look */
	int error;	     /* of the newest look that was refused */
	unsigned refusals;   /* in a row */
	pid_t living;	     /* by which thread the memory is read */
	bool allowed;	     /* a thread could be held or sampled once */
};

static void end(int number)
{
	(void)number;
	ended = 1;
}

static uint64_t time_of(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- what is mapped ---- */

static void read_modules(struct sampling *sampling)
{
	xs_memory_of(sampling->living);
	(void)xs_modules_read(sampling->living);
	sampling->python = xs_python_look(sampling->living);
	xs_walk_forget();
	xs_told_forget();
	xs_memory_forget(NULL);
	sampling->mapped = time_of(CLOCK_MONOTONIC);
	sampling->unknown = false;
}

static void follow_modules(struct sampling *sampling)
{
	struct stat program = { .st_ino = 0 };
	pid_t living = sampling->living;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", living);
	if (stat(path, &program) < 0) { /* that thread has ended */
		sampling->living = xs_pid_living(sampling->watch.pid);
		(void)snprintf(path, sizeof(path), "/proc/%d/exe", sampling->living);
		(void)stat(path, &program);
	}
	if (!sampling->mapped || living != sampling->living ||
	    program.st_ino != sampling->program.st_ino ||
	    program.st_dev != sampling->program.st_dev ||
	    (sampling->unknown && time_of(CLOCK_MONOTONIC) - sampling->mapped > AGAIN_NS))
		read_modules(sampling);
	sampling->program = program;
}

/* ---- one look ---- */

/*
 * Is it sampled as it runs, so that it need not be held? What one does in Python is seen better
 * while it stands still. But a program with a filter of system calls might not survive that: if the
 * thread has just begun to wait, the kernel goes on with restart_syscall().
 */
static bool has_perf(struct sampling *sampling, struct xs_watched *watched)
{
	if (watched->state != 'R' || (sampling->python && !sampling->watch.filtered))
		return false;
	if (!watched->perf && !watched->no_perf) {
		watched->perf = xs_perf_open(watched->tid, sampling->period);
		watched->no_perf = !watched->perf;
	}
	return watched->perf;
}

static void *visit(void *argument)
{
	struct sampling *sampling = argument;

	(void)prctl(PR_SET_TIMERSLACK, 1);
	xs_threads_visit(&sampling->held, &sampling->cost);
	return NULL;
}

/* Holds those that are to be held. False: it is not allowed, or no more. */
static bool hold(struct sampling *sampling)
{
	struct xs_threads *held = &sampling->held;
	pthread_t thread;
	size_t refused = 0;

	held->pid = sampling->watch.pid;
	held->count = 0;
	for (size_t i = 0; i < sampling->watch.count; i++) {
		struct xs_watched *watched = &sampling->watch.list[i];

		if (watched->look != XS_LOOK_HOLD || watched->ended)
			continue;
		if (has_perf(sampling, watched)) {
			watched->look = XS_LOOK_PERF;
			continue;
		}
		if (sampling->watch.filtered) {
			watched->look = XS_LOOK_NONE;
			watched->stack = XS_NO_STACK;
			continue;
		}
		/* it wakes to stop, and wakes again to go on */
		watched->grace = watched->state == 'R' ? 0 : 2;
		held->list[held->count++] = (struct xs_thread){
			.tid = watched->tid,
			.inner = watched->inner,
			.state = watched->state,
		};
	}
	if (!held->count) {
		sampling->allowed = true; /* sleepers could be read, or there are none */
		return true;
	}
	(void)alarm(STILL);
	if (!pthread_create(&thread, NULL, visit, sampling))
		(void)pthread_join(thread, NULL);
	(void)alarm(0);
	for (size_t i = 0; i < held->count; i++)
		if (held->list[i].error && held->list[i].error != ESRCH) {
			sampling->error = -held->list[i].error;
			refused++;
		}
	sampling->refusals = refused == held->count ? sampling->refusals + 1 : 0;
	sampling->allowed |= !sampling->refusals;
	return sampling->refusals < (sampling->allowed ? REFUSALS : ATTEMPTS);
}

static bool take_stack(struct sampling *sampling, struct xs_watched *watched,
		       struct xs_thread *thread)
{
	bool cut;

	watched->stack = xs_told_stack(thread, &cut);
	sampling->unknown |= thread->copied && !xs_module_is_code(thread->registers.rip);
	return !cut;
}

/* One that sleeps is left alone, unless the way to its callers needs registers that are not known.
 */
static void take_sleeper(struct sampling *sampling, struct xs_watched *watched)
{
	struct xs_thread thread = { .tid = watched->tid, .inner = watched->inner };

	thread.registers.rsp = watched->sp;
	thread.registers.rip = watched->pc;
	xs_thread_copy_stack(&thread);
	xs_python_copy_one(&thread);
	if (!xs_watch_sleeps(&sampling->watch, watched)) {
		watched->sp = 0; /* it has woken meanwhile, and is to be looked at again */
		watched->stack = XS_NO_STACK;
	} else if (!take_stack(sampling, watched, &thread) && watched->can_be_held) {
		watched->look = XS_LOOK_HOLD;
	}
	xs_thread_forget(&thread);
}

static void take_sleepers(struct sampling *sampling)
{
	xs_python_list();
	for (size_t i = 0; i < sampling->watch.count; i++)
		if (sampling->watch.list[i].look == XS_LOOK_ASLEEP &&
		    !sampling->watch.list[i].ended)
			take_sleeper(sampling, &sampling->watch.list[i]);
}

static void tell(struct xs_watched *watched)
{
	if (!watched->named) {
		printf("W %d ", watched->tid);
		xs_print_text(watched->name, "\n");
		watched->named = true;
	}
	watched->told = watched->state;
	printf("T %d %c %llu ", watched->tid, watched->state, (unsigned long long)watched->cpu);
	if (watched->stack == XS_NO_STACK)
		puts("-");
	else
		printf("%u\n", watched->stack);
}

/*
 * What it does in Python while it runs: believed if it is twice the same.
 */
static void read_python(struct xs_thread *thread)
{
	struct xs_thread again = { .copied = true, .inner = thread->inner };

	xs_python_copy_one(thread);
	xs_python_copy_one(&again);
	if (thread->python_count != again.python_count || !again.python ||
	    memcmp(thread->python, again.python, again.python_count * sizeof(*again.python)) != 0)
		thread->python_count = 0;
	xs_thread_forget(&again);
}

/*
 * Where it was found since the last look; if it was not, it may be where it was. Of one that sleeps
 * by now, samples are thrown away.
 */
static void take_sample(struct sampling *sampling, struct xs_watched *watched)
{
	struct xs_thread thread = { .tid = watched->tid, .inner = watched->inner };
	uint32_t samples = xs_perf_take(watched->perf, &thread);

	sampling->samples += samples;
	sampling->allowed |= samples > 0;
	if (watched->state == 'R' && samples && sampling->python)
		read_python(&thread);
	if (watched->state == 'R' && samples)
		(void)take_stack(sampling, watched, &thread);
	else if (watched->state == 'R' && watched->told != 'R')
		watched->stack = XS_NO_STACK;
	xs_thread_forget(&thread);
}

static void take_all(struct sampling *sampling)
{
	size_t next = 0;

	for (size_t i = 0; i < sampling->watch.count; i++) {
		struct xs_watched *watched = &sampling->watch.list[i];
		struct xs_thread *thread;

		if (watched->ended) {
			printf("X %d\n", watched->tid);
			continue;
		}
		if (watched->look == XS_LOOK_HOLD) {
			thread = &sampling->held.list[next++];
			if (thread->copied || watched->state == 'R')
				(void)take_stack(sampling, watched, thread);
			xs_thread_forget(thread);
		}
		if (watched->perf && watched->changed)
			take_sample(sampling, watched);
		if (watched->changed)
			tell(watched);
	}
}

/* Nothing is told as long as nothing is allowed: each thread is to be looked at as if new. */
static void look_again(struct sampling *sampling)
{
	for (size_t i = 0; i < sampling->watch.count; i++) {
		sampling->watch.list[i].state = 0;
		sampling->watch.list[i].sp = 0;
	}
}

/* False: there is nothing more to be had. */
static bool look(struct sampling *sampling)
{
	uint64_t own = time_of(CLOCK_PROCESS_CPUTIME_ID);

	xs_memory_forget(xs_module_covers);
	follow_modules(sampling);
	printf("B %llu\n", (unsigned long long)time_of(CLOCK_MONOTONIC));
	if (!xs_watch_look(&sampling->watch))
		return false;
	sampling->cost = (struct xs_held){ 0 };
	take_sleepers(sampling);
	if (!hold(sampling))
		return false;
	if (sampling->allowed)
		take_all(sampling);
	else
		look_again(sampling);
	xs_watch_sweep(&sampling->watch);
	own = time_of(CLOCK_PROCESS_CPUTIME_ID) - own;
	printf("S %u %u %u %llu %llu %llu %llu\n", sampling->cost.threads, sampling->cost.missed,
	       sampling->cost.mended, (unsigned long long)sampling->cost.ns,
	       (unsigned long long)sampling->cost.longest, (unsigned long long)own,
	       (unsigned long long)sampling->samples);
	sampling->samples = 0;
	return !fflush(stdout);
}

/* ns until the next look: as asked for, or longer where that would cost too much. */
static uint64_t pause_for(const struct sampling *sampling, uint64_t interval, uint64_t own)
{
	uint64_t held = sampling->cost.threads ? sampling->cost.ns / sampling->cost.threads : 0;

	if (interval < held * SHARE_HELD)
		interval = held * SHARE_HELD;
	if (interval < own * SHARE_OWN)
		interval = own * SHARE_OWN;
	return interval < 1000000000u ? interval : 1000000000u;
}

static bool is_full(void)
{
	struct rusage usage;

	return xs_told_full() ||
	       (!getrusage(RUSAGE_SELF, &usage) && usage.ru_maxrss > (long)(ROOM >> 10));
}

int xs_sample(pid_t pid, uint64_t interval)
{
	static struct sampling sampling;
	const struct sigaction action = { .sa_handler = end };
	const struct itimerval most = { { 0, 0 }, { STUCK, 0 } };
	uint64_t next = time_of(CLOCK_MONOTONIC), own, spent;
	bool more = false;
	int error = xs_watch_open(&sampling.watch, pid);

	sampling.period = interval;
	sampling.living = pid;
	(void)sigaction(SIGTERM, &action, NULL);
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 20);  /* stacks' room is used again, */
	(void)mallopt(M_TRIM_THRESHOLD, 64 << 20); /* and not given back to the kernel each time */
	/* who holds threads is not to wait for a processor; not everybody may say so */
	(void)setpriority(PRIO_PROCESS, 0, PRIORITY);
	sampling.held.list = calloc(XS_THREADS_MAX, sizeof(*sampling.held.list));
	if (error < 0 || !sampling.held.list)
		return error < 0 ? error : -ENOMEM;
	while (!ended) {
		struct timespec until;

		own = time_of(CLOCK_PROCESS_CPUTIME_ID);
		(void)setitimer(ITIMER_PROF, &most, NULL);
		if (!look(&sampling))
			return sampling.error;
		spent = time_of(CLOCK_PROCESS_CPUTIME_ID) - own;
		if (sampling.watch.more && !more)
			puts("O");
		more = sampling.watch.more;
		if (is_full()) {
			puts("A");
			return 0;
		}
		next += pause_for(&sampling, interval, spent);
		if (next < time_of(CLOCK_MONOTONIC))
			next = time_of(CLOCK_MONOTONIC);
		until.tv_sec = (time_t)(next / 1000000000u);
		until.tv_nsec = (long)(next % 1000000000u);
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	return 0;
}
