/*
 * Joining a run, fork, exit.
 *
 * Rules: no memory from the application's allocator, no descriptor left open, errno as it was.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call_values.h"
#include "environment.h"
#include "lock.h"
#include "process.h"
#include "rank.h"
#include "self.h"
#include "stack.h"
#include "sys.h"

static struct xs_hook *_Atomic at_end;

void xs_at_end(struct xs_hook *hook)
{
	xs_hang(&at_end, hook);
}

static struct xs_hook *_Atomic at_begin;

void xs_at_begin(struct xs_hook *hook)
{
	xs_hang(&at_begin, hook);
}

static struct xs_hook *_Atomic at_stop;

void xs_at_stop(struct xs_hook *hook)
{
	xs_hang(&at_stop, hook);
}

void xs_call_at_stop(void)
{
	xs_call_hooks(&at_stop);
}

static void tell_not_joined(void)
{
	atomic_fetch_add_explicit(&xs_self.mailbox->join_failed, 1, memory_order_relaxed);
}

/*
 * The variable outlives the run, and a directory of that name may then belong to another user: the
 * files must be this user's, and hold the secret. If a later step fails, what was mapped before
 * stays mapped and unused.
 */
static bool map_files(int directory, const char *secret)
{
	const struct xs_control *control;
	void *map, *mailbox, *strings;

	if (xs_shm_map_at(directory, "control", XS_SHM_READ, sizeof(*control), &map, NULL) < 0)
		return false;
	control = map;
	if (!xs_control_valid(control, secret) ||
	    xs_shm_map_at(directory, "mailbox", XS_SHM_OPEN, sizeof(struct xs_mailbox), &mailbox,
			  NULL) < 0)
		return false;
	xs_self.mailbox = mailbox;
	/* the largest: where there is little address space, it is this that does not fit */
	if (xs_shm_map_at(directory, "strings", XS_SHM_OPEN, XS_STRINGS_SIZE, &strings, NULL) < 0) {
		tell_not_joined();
		return false;
	}
	xs_self.strings = strings;
	xs_bell = &xs_self.mailbox->bell;
	xs_run_paused = &control->paused;
	xs_use_tsc = control->use_tsc;
	xs_log_calls = control->options.call_logging;
	xs_ring_set_consumer(&control->consumer);
	xs_threads_init();
	xs_self.control = control;
	return true;
}

/* of a run that this program has begun for itself; empty: there is none */
static char late_run[XS_ENV_RUN_MAX];

/* The run directory, or -errno. The secret is asked for before the run's files are mapped. */
static int open_run(char *const *environment, const char **ret_secret)
{
	if (!xs_self.control &&
	    !xs_run_parse(late_run[0] ? late_run : xs_environment_value(environment, XS_ENV_RUN),
			  xs_self.dir, sizeof(xs_self.dir) - XS_NAME_MAX, ret_secret))
		return -ENOENT;
	return xs_shm_open_directory(xs_self.dir);
}

/*
 * What the program was started with, while the library's constructor runs: reading it in /proc
 * takes longer. NULL: later, or in a C library that does not say it.
 */
static char *const *started_with;

static uint32_t put_arguments(char *text, uint32_t size)
{
	uint32_t used = 0;

	if (!started_with || xs_state() != XS_NOT_JOINED)
		return (uint32_t)xs_pid_arguments(xs_self.pid, text, size);
	for (char *const *word = started_with; *word && used < size; word++) {
		uint32_t n = (uint32_t)strnlen(*word, size - used);

		memcpy(text + used, *word, n); /* the file is of zeros */
		used += n < size - used ? n + 1 : n;
	}
	return used;
}

/*
 * In a child of fork, its parent's file; the program may have kept that from it (MADV_DONTFORK),
 * and have other memory there.
 */
static struct xs_process_file *parents_file(void)
{
	struct xs_process_file *file = xs_self.process;

	return file && xs_page_readable((uintptr_t)file) && file->magic == XS_MAGIC &&
			       file->pid == xs_self.pid && file->serial == xs_self.serial
		       ? file
		       : NULL;
}

static struct xs_process_file *make_process(int directory, uint32_t slots, char *const *environment,
					    const struct xs_process_file *parent)
{
	uint64_t ring_size = xs_ring_size(slots);
	struct xs_process_file *process;
	char name[XS_NAME_MAX];
	int32_t pid = (int32_t)xs_sys(SYS_getpid), rank, world_size;
	struct xs_shm_file made;
	struct xs_clock_pair joined;
	uint32_t serial =
		atomic_fetch_add_explicit(&xs_self.mailbox->serials, 1, memory_order_relaxed);
	void *map;

	xs_process_file_name(name, pid, serial, 0);
	_Static_assert(XS_PROCESS_FIRST == XS_PAGE, "the first page of a new file is present");
	if (xs_shm_map_at(directory, name, XS_SHM_CREATE, xs_slot_offset(slots, ring_size), &map,
			  &made) < 0)
		return NULL;
	process = map;
	xs_self.pid = pid;
	xs_self.serial = serial;
	xs_self.slots = slots;
	xs_self.ring_size = ring_size;
	process->pid = pid;
	process->ppid = (int32_t)xs_sys(SYS_getppid); /* the launcher, too (parent.c) */
	/* its number costs more than all else here, and nearly always it is the launcher's */
	if (!xs_shm_is_marked(directory, xs_self.control->launcher_pid)) {
		process->pid_namespace = xs_pid_namespace(0);
		if (!process->pid_namespace)
			process->pid_namespace = XS_PID_NAMESPACE_UNKNOWN;
	}
	process->identity = xs_pid_identity(pid);
	joined = xs_clock_pair(xs_use_tsc ? XS_CLOCK_TSC : XS_CLOCK_MONOTONIC);
	process->join_tick = joined.tick;
	process->join_mono = joined.mono;
	process->serial = serial;
	process->slots = slots;
	process->ring_size = ring_size;
	process->made_as = xs_file_word(made.inode, pid, serial, 0);
	/* the interpreter that a fork has copied is as it was measured */
	if (parent)
		xs_copy_function_costs(process, parent);
	(void)xs_sys(SYS_prctl, PR_GET_NAME, process->comm);
	process->arguments_length = put_arguments(process->arguments, sizeof(process->arguments));
	if (xs_job_rank(environment, &rank, &world_size)) {
		atomic_store_explicit(&process->world_size, world_size, memory_order_relaxed);
		atomic_store_explicit(&process->rank_told, rank + 1, memory_order_relaxed);
	}
	/* all of the above; pairs with the acquire in the drain process's adopt() */
	atomic_store_explicit(&process->magic, XS_MAGIC, memory_order_release);
	/* last: the drain process looks for files when it sees this */
	atomic_fetch_add_explicit(&xs_self.mailbox->joined, 1, memory_order_release);
	return process;
}

/*
 * Not after --stop, no descendants with --follow-child-process 0, and of the ranks only those of
 * --ranks-to-sample.
 */
static bool may_join(char *const *environment)
{
	const char *ranks = xs_self.control->options.ranks;
	int32_t rank, size, pid;

	if (atomic_load_explicit(&xs_self.control->paused, memory_order_relaxed) & XS_PAUSE_STOPPED)
		return false;
	/* somebody has overwritten them: the drain process tells (writer/drain/shared.c) */
	if (!xs_control_is_whole(xs_self.control))
		return false;
	/* the launcher of the job may be a child of ours */
	if (ranks[0] && xs_job_rank(environment, &rank, &size) &&
	    !xs_is_listed(ranks, (uint64_t)rank))
		return false;
	pid = (int32_t)xs_sys(SYS_getpid);
	return xs_self.control->options.follow_children || pid == xs_self.control->app_pid ||
	       pid == xs_self.control->sampler_pid || pid == xs_self.control->metrics_pid ||
	       pid == xs_self.control->processors_pid;
}

/* With the lock held. A process of few resources (ulimit -v) gets fewer rings. */
static bool join_in(char *const *environment)
{
	const char *secret = NULL;
	int directory = open_run(environment, &secret);
	bool may = (xs_self.control || (directory >= 0 && map_files(directory, secret))) &&
		   may_join(environment);
	struct xs_process_file *process = NULL, *parent = parents_file();

	for (uint32_t slots = XS_FIRST_SLOTS; may && directory >= 0 && slots && !process;
	     slots /= 4)
		process = make_process(directory, slots, environment, parent);
	if (directory >= 0)
		(void)xs_sys(SYS_close, directory);
	if (!may)
		return false;
	if (parent && parent == xs_self.left)
		(void)xs_sys(SYS_munmap, parent, XS_PROCESS_HEADER);
	xs_self.left = NULL;
	xs_self.process = process;
	if (!process) {
		tell_not_joined();
		return false;
	}
	/*
	 * a process of another PID namespace has other numbers. What the program itself says later
	 * is what counts
	 */
	if (xs_self.control->names_tracer && !process->pid_namespace)
		(void)xs_sys(SYS_prctl, PR_SET_PTRACER, xs_self.control->consumer.pid, 0, 0, 0);
	xs_rings_forget();
	xs_doorbell_ring(xs_bell);
	return true;
}

static bool join(void)
{
	void *map;
	char *const *environment = xs_environment_begin(&map);
	bool joined = join_in(environment);

	xs_control_begin(xs_environment_value(environment, XS_ENV_ENABLE));
	xs_environment_end(map);
	return joined;
}

/*
 * With the lock held, in a process that has not joined: in a forked child what is there is the
 * parent's, and perhaps torn.
 */
static void start(void)
{
	uint64_t began = xs_clock_ns(CLOCK_MONOTONIC);
	uint32_t gate = XS_GATE_CLOSED;
	bool joined;

	xs_sys_forget_parent();
	joined = join();
	if (joined) {
		xs_stack_init((uint32_t)xs_self.control->options.call_stacks);
		/* unlike those of all other processes of the run; others can write the serial */
		atomic_store_explicit(&xs_gate->key, xs_self.serial % (XS_GATE_SLOW - 1) + 1,
				      memory_order_relaxed);
		gate = xs_gate_wanted();
	}
	if (joined)
		atomic_store_explicit(&xs_self.process->start_ns,
				      (uint32_t)(xs_clock_ns(CLOCK_MONOTONIC) - began),
				      memory_order_relaxed);
	if (gate >= XS_GATE_PAUSED) /* what is told without records must know, too */
		xs_pauses_begin(xs_own_pauses(), xs_tick(xs_use_tsc));
	/* all that join() set up; pairs with the acquire in xs_state() */
	atomic_store_explicit(&xs_gate->state, joined ? XS_JOINED : XS_OFF, memory_order_release);
	atomic_store_explicit(&xs_gate->open, gate, memory_order_release);
}

bool xs_start(void)
{
	xs_gate_make();
	if (xs_state() == XS_NOT_JOINED && xs_lock(&xs_gate->lock)) {
		if (xs_state() == XS_NOT_JOINED)
			start();
		xs_unlock(&xs_gate->lock);
	}
	return xs_state() == XS_JOINED;
}

bool xs_begin_late(const char *variable)
{
	struct xs_entered entered;
	size_t length = strlen(variable);
	bool joined;

	xs_gate_make();
	if (xs_state() != XS_OFF || xs_self.control || length >= sizeof(late_run) ||
	    xs_first_self())
		return false;
	xs_enter_to_join(&entered);
	memcpy(late_run, variable, length + 1);
	joined = xs_gate_renew() && xs_start();
	xs_leave(&entered);
	if (joined)
		xs_call_hooks(&at_begin);
	return joined;
}

const struct xs_options *xs_collector_options(void)
{
	struct xs_entered entered;

	if (xs_joined())
		return &xs_self.control->options;
	xs_gate_make(); /* in a program of no run nothing follows that asks the kernel */
	if (xs_tls.busy || xs_state() == XS_OFF || xs_is_sealed())
		return NULL;
	xs_enter_to_join(&entered);
	(void)xs_start();
	xs_leave(&entered);
	return xs_state() == XS_JOINED ? &xs_self.control->options : NULL;
}

/*
 * Only hurries what the first event would do: the process is known from its first instruction on.
 */
#ifdef __GLIBC__
__attribute__((constructor)) static void hurry(int count, char **arguments)
{
	started_with = count > 0 ? arguments : NULL;
	xs_environment_is_quiet(true);
	if (xs_collector_options())
		xs_watch_forks();
	started_with = NULL;
	xs_environment_is_quiet(false);
}
#else
__attribute__((constructor)) static void hurry(void)
{
	(void)xs_collector_options();
}
#endif

__attribute__((destructor)) static void end(void)
{
	if (xs_state() != XS_JOINED || xs_is_sealed())
		return;
	xs_call_hooks(&at_end);
}
