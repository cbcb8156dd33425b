/*
 * Joining a run, fork, exit.
 *
 * Rules: no memory from the application's allocator, no descriptor left open, errno as it was. What
 * must not survive a fork (the gate, the lock, the state) lives in one page that the kernel wipes
 * in the child.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call_values.h"
#include "lock.h"
#include "process.h"
#include "rank.h"
#include "self.h"
#include "stack.h"
#include "strtab.h"
#include "sys.h"

__thread struct xs_tls xs_tls __attribute__((tls_model("initial-exec")));
static struct xs_gate untraced = { .state = XS_OFF };
static struct xs_gate before_start;
struct xs_gate *xs_gate = &before_start;
static const _Atomic uint32_t not_paused;
const _Atomic uint32_t *xs_run_paused = &not_paused;
struct xs_doorbell *xs_bell;
bool xs_use_tsc;

/* for companion.h: by these names the inline functions of collector.h work in another library */
#define COMPANION(of) __attribute__((alias(of), visibility("default")))
extern __thread struct xs_tls xs_companion_tls
	__attribute__((tls_model("initial-exec"))) COMPANION("xs_tls");
extern struct xs_gate *xs_companion_gate COMPANION("xs_gate");
extern const _Atomic uint32_t *xs_companion_paused COMPANION("xs_run_paused");
extern bool xs_companion_use_tsc COMPANION("xs_use_tsc");

struct xs_self xs_self;
static struct xs_hook *_Atomic at_end;
static char *arena, *arena_end; /* zeroed memory */

/*
 * SIGKILL and SIGSTOP aside, all: those that the C library keeps to itself (cancellation, setuid()
 * of all threads) too.
 */
static const uint64_t every_signal = UINT64_MAX;

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

#define ARENA 65536u

static void *map_memory(size_t size)
{
	long map = xs_sys(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (map >= 0 || map <= -4096)
		return (void *)map;
	if (map == -ENOMEM) /* and not in a sandbox, which is reported elsewhere */
		xs_tell_unseen(XS_UNSEEN_MEMORY);
	return NULL;
}

void *xs_arena_locked(size_t size)
{
	void *result = NULL;

	size = (size + 15) & ~(size_t)15;
	if (size > ARENA / 2 && size > (size_t)(arena_end - arena))
		return map_memory(size);
	if (size > (size_t)(arena_end - arena)) {
		char *fresh = map_memory(ARENA);

		if (!fresh)
			return NULL; /* a smaller piece may still fit */
		arena = fresh;
		arena_end = arena + ARENA;
	}
	result = arena;
	arena += size;
	return result;
}

void *xs_arena(size_t size)
{
	struct xs_entered entered;
	void *result = NULL;

	xs_enter(&entered);
	if (xs_lock(&xs_gate->lock)) {
		result = xs_arena_locked(size);
		xs_unlock(&xs_gate->lock);
	}
	xs_leave(&entered);
	return result;
}

void *xs_table_make(struct xs_table *table)
{
	void *fresh = xs_arena(table->size), *there = NULL;

	/* two threads at once: what one of them got is lost */
	if (fresh &&
	    !atomic_compare_exchange_strong_explicit(&table->memory, &there, fresh,
						     memory_order_release, memory_order_acquire))
		return there;
	return fresh;
}

void xs_hang(struct xs_hook *_Atomic *hooks, struct xs_hook *hook)
{
	if (atomic_exchange(&hook->is_hung, true))
		return;
	hook->next = atomic_load(hooks);
	while (!atomic_compare_exchange_weak(hooks, &hook->next, hook))
		;
}

void xs_call_hooks(struct xs_hook *_Atomic *hooks)
{
	for (const struct xs_hook *hook = atomic_load(hooks); hook; hook = hook->next)
		hook->function();
}

void xs_at_end(struct xs_hook *hook)
{
	xs_hang(&at_end, hook);
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

static bool map_run(void)
{
	const char *secret;
	int directory;
	bool mapped;

	if (!xs_run_parse(getenv(XS_ENV_RUN), xs_self.dir, sizeof(xs_self.dir) - XS_NAME_MAX,
			  &secret))
		return false;
	directory = xs_shm_open_directory(xs_self.dir);
	if (directory < 0)
		return false;
	mapped = map_files(directory, secret);
	(void)xs_sys(SYS_close, directory);
	return mapped;
}

/* If several threads come here at once, all use the first one's gate. */
static void make_gate(void)
{
	struct xs_gate *gate = &untraced, *expected = &before_start;
	void *page = MAP_FAILED;

	if (getenv(XS_ENV_RUN))
		page = mmap(NULL, XS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	if (page != MAP_FAILED && madvise(page, XS_PAGE, MADV_WIPEONFORK) == 0) /* Linux 4.14 */
		gate = page;
	if (__atomic_compare_exchange_n(&xs_gate, &expected, gate, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE) &&
	    gate == page)
		return;
	if (page != MAP_FAILED)
		(void)munmap(page, XS_PAGE);
}

static struct xs_process_file *make_process(uint32_t slots)
{
	uint64_t ring_size = xs_self.control->options.ring_size;
	struct xs_process_file *process;
	char name[XS_NAME_MAX];
	int32_t pid = getpid(), rank, world_size;
	uint32_t serial =
		atomic_fetch_add_explicit(&xs_self.mailbox->serials, 1, memory_order_relaxed);
	void *map;

	xs_process_name(name, pid, serial, 0);
	if (xs_shm_map(xs_self.dir, name, XS_SHM_CREATE, xs_slot_offset(slots, ring_size), &map,
		       NULL) < 0)
		return NULL;
	if (!xs_shm_present(map, XS_PROCESS_FIRST)) {
		munmap(map, xs_slot_offset(slots, ring_size));
		return NULL; /* the empty file goes with the run directory */
	}
	process = map;
	xs_self.pid = pid;
	xs_self.serial = serial;
	xs_self.slots = slots;
	xs_self.ring_size = ring_size;
	process->pid = pid;
	process->ppid = (int32_t)xs_sys(SYS_getppid); /* the launcher, too (parent.c) */
	process->pid_namespace = xs_process_namespace(0);
	process->join_tick = xs_tick(xs_use_tsc);
	process->start = xs_process_start(pid);
	process->serial = serial;
	process->slots = slots;
	process->ring_size = ring_size;
	(void)xs_sys(SYS_prctl, PR_GET_NAME, process->comm);
	process->arguments_length =
		(uint32_t)xs_process_arguments(pid, process->arguments, sizeof(process->arguments));
	if (xs_job_rank(&rank, &world_size)) {
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
static bool may_join(void)
{
	const char *ranks = xs_self.control->options.ranks;
	int32_t rank, size;

	if (atomic_load_explicit(&xs_self.control->paused, memory_order_relaxed) & XS_PAUSE_STOPPED)
		return false;
	/* the launcher of the job may be a child of ours */
	if (ranks[0] && xs_job_rank(&rank, &size) && !xs_is_listed(ranks, (uint64_t)rank))
		return false;
	return xs_self.control->options.follow_children || getpid() == xs_self.control->app_pid;
}

/* With the lock held. A process of few resources (ulimit -v) gets fewer rings. */
static bool join(void)
{
	if ((!xs_self.control && !map_run()) || !may_join())
		return false;
	for (uint32_t slots = XS_FIRST_SLOTS; slots; slots /= 4) {
		xs_self.process = make_process(slots);
		if (xs_self.process)
			break;
	}
	if (!xs_self.process) {
		tell_not_joined();
		return false;
	}
	xs_rings_forget();
	xs_doorbell_ring(xs_bell);
	return true;
}

/*
 * With the lock held, in a process that has not joined: in a forked child what is there is the
 * parent's, and perhaps torn.
 */
static void start(void)
{
	bool joined;

	xs_tls.producer = (struct xs_producer){ .ring = NULL };
	xs_tls.slot = NULL;
	arena = arena_end = NULL;
	xs_sys_forget_parent();
	joined = join();
	if (joined)
		xs_stack_init((uint32_t)xs_self.control->options.call_stacks);
	/* all that join() set up; pairs with the acquire in xs_state() */
	atomic_store_explicit(&xs_gate->state, joined ? XS_JOINED : XS_OFF, memory_order_release);
	atomic_store_explicit(&xs_gate->open, joined ? xs_gate_wanted() : XS_GATE_CLOSED,
			      memory_order_release);
}

bool xs_start(void)
{
	if (__atomic_load_n(&xs_gate, __ATOMIC_ACQUIRE) == &before_start)
		make_gate();
	if (xs_state() == XS_NOT_JOINED && xs_lock(&xs_gate->lock)) {
		if (xs_state() == XS_NOT_JOINED)
			start();
		xs_unlock(&xs_gate->lock);
	}
	return xs_state() == XS_JOINED;
}

const struct xs_options *xs_collector_options(void)
{
	struct xs_entered entered;

	if (xs_joined())
		return &xs_self.control->options;
	if (xs_tls.busy || xs_state() == XS_OFF || xs_is_sealed())
		return NULL;
	xs_enter(&entered);
	(void)xs_start();
	xs_leave(&entered);
	return xs_state() == XS_JOINED ? &xs_self.control->options : NULL;
}

const struct xs_options *xs_options_of_run(void)
{
	return &xs_self.control->options;
}

struct xs_pauses *xs_own_pauses(void)
{
	return &xs_self.process->pauses;
}

struct xs_device_pairs *xs_own_device_pairs(uint32_t device)
{
	struct xs_process_clocks *clocks = xs_clocks_of(xs_self.process);

	return xs_shm_present(clocks, sizeof(*clocks)) ? &clocks->device[device % XS_CLOCKS] : NULL;
}

void *xs_own_activity(uint32_t number, uint64_t size)
{
	struct xs_entered entered;
	char name[XS_NAME_MAX];
	void *map = NULL;

	xs_enter(&entered);
	xs_activity_name(name, xs_self.pid, xs_self.serial, number);
	if (!xs_joined() || xs_shm_map(xs_self.dir, name, XS_SHM_CREATE, size, &map, NULL) < 0)
		map = NULL;
	xs_leave(&entered);
	return map;
}

void xs_tell_activity(void)
{
	atomic_store_explicit(&xs_self.process->activity, 1, memory_order_release);
}

void xs_count_untimed(uint64_t count)
{
	atomic_fetch_add_explicit(&xs_self.process->untimed, count, memory_order_relaxed);
}

/* In a child that has not joined yet the ring is its parent's. */
static void commands_end(uint64_t count)
{
	_Atomic uint64_t *ended;

	if (!xs_joined() || !xs_tls.producer.ring) {
		atomic_fetch_add_explicit(&xs_self.process->commands_ended, count,
					  memory_order_relaxed);
		return;
	}
	ended = &xs_tls.producer.ring->commands_ended;
	atomic_store_explicit(ended, atomic_load_explicit(ended, memory_order_relaxed) + count,
			      memory_order_relaxed);
}

/* Nothing is recorded here and now. */
static bool not_recording(void)
{
	return xs_paused() || xs_tls.ignored;
}

void xs_commands_end(uint64_t count, bool written)
{
	if (written || !not_recording())
		commands_end(count);
}

void xs_commands_untimed(uint64_t count)
{
	if (not_recording())
		return;
	xs_count_untimed(count);
	commands_end(count);
}

void xs_tell_unseen(unsigned what)
{
	if (xs_joined())
		atomic_fetch_or_explicit(&xs_self.process->unseen, 1u << what,
					 memory_order_relaxed);
}

uint64_t xs_life_began_tick(void)
{
	return xs_self.control->tick0;
}

uint64_t xs_life_began_ns(void)
{
	return xs_self.control->mono0;
}

void xs_told_rank(int32_t rank, int32_t world_size)
{
	if (!xs_joined())
		return;
	atomic_store_explicit(&xs_self.process->world_size, world_size, memory_order_relaxed);
	/* before the first record of MPI */
	atomic_store_explicit(&xs_self.process->rank_told, rank + 1, memory_order_release);
}

void xs_request_dump(void)
{
	/* pairs with the acquire in xs_flight_asked() */
	atomic_fetch_add_explicit(&xs_self.mailbox->triggers, 1, memory_order_release);
	xs_doorbell_ring(xs_bell);
}

uint32_t xs_name_parts(const struct xs_part *parts, uint32_t count, uint32_t scope)
{
	return xs_self.strings ? xs_intern_parts(xs_self.strings, parts, count, scope) : 0;
}

uint32_t xs_name(const char *text, uint32_t scope)
{
	return xs_name_parts(&(struct xs_part){ text, (uint32_t)strnlen(text, XS_STRING_MAX + 1) },
			     1, scope);
}

uint32_t xs_shape(const struct xs_shape *shape)
{
	uint32_t id = xs_self.strings ? xs_intern(xs_self.strings, (const char *)shape,
						  sizeof(*shape), XS_SHAPE_SCOPE)
				      : XS_STRING_FULL;

	return id == XS_STRING_FULL ? 0 : id;
}

const struct xs_shape *xs_shape_of(uint32_t id)
{
	return (const struct xs_shape *)((const char *)xs_self.strings + 8ull * id +
					 sizeof(struct xs_string));
}

/*
 * Only hurries what the first event would do: the process is known from its first instruction on.
 */
__attribute__((constructor)) static void hurry(void)
{
	(void)xs_collector_options();
}

__attribute__((destructor)) static void end(void)
{
	if (xs_state() != XS_JOINED || xs_is_sealed())
		return;
	xs_call_hooks(&at_end);
}
