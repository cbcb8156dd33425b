/*
 * Joining a run, threads, fork, exit.
 *
 * Rules: no memory from the application's allocator, no descriptor left open, errno as it was. What must not survive a
 * fork (the gate, the lock, the state) lives in one page that the kernel wipes in the child.
 */
#include "call_values.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "rank.h"
#include "shm.h"
#include "stack.h"
#include "strtab.h"

enum state { NOT_JOINED, JOINED, OFF };

__thread struct xs_tls xs_tls;
static struct xs_gate untraced = { .state = OFF };
static struct xs_gate before_start;
struct xs_gate *xs_gate = &before_start;
static const _Atomic uint32_t not_paused;
const _Atomic uint32_t *xs_run_paused = &not_paused;
struct xs_doorbell *xs_bell;
bool xs_use_tsc;

/* for companion.h: by these names the inline functions of collector.h work in another library */
#define COMPANION(of) __attribute__((alias(of), visibility("default")))
extern __thread struct xs_tls xs_companion_tls __attribute__((tls_model("initial-exec"))) COMPANION("xs_tls");
extern struct xs_gate *xs_companion_gate COMPANION("xs_gate");
extern const _Atomic uint32_t *xs_companion_paused COMPANION("xs_run_paused");
extern bool xs_companion_use_tsc COMPANION("xs_use_tsc");

static struct {
	char dir[PATH_MAX];
	struct xs_control *control; /* mapped once, kept over fork */
	struct xs_strings *strings;
	struct xs_process_file *process;
	struct xs_segment_file *segment[XS_MAX_SEGMENTS];
	pthread_key_t key;
	bool have_key;
	void (*at_end[4])(void);
	char *arena, *arena_end;
} self;

static enum state state_now(void)
{
	/* pairs with the release in start(): every thread comes by here before its first event */
	return (enum state)atomic_load_explicit(&xs_gate->state, memory_order_acquire);
}

static void lock(void)
{
	while (atomic_exchange_explicit(&xs_gate->lock, 1, memory_order_acquire))
		sched_yield();
}

static void unlock(void)
{
	atomic_store_explicit(&xs_gate->lock, 0, memory_order_release);
}

/* From here to leave() events of this thread's signal handlers are not recorded. Nests. */
static struct xs_ring *enter(void)
{
	struct xs_ring *ready = xs_tls.ready;

	xs_tls.ready = NULL;
	xs_tls.busy++;
	atomic_signal_fence(memory_order_seq_cst);
	return ready;
}

static void leave(struct xs_ring *ready)
{
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.busy--;
	xs_tls.ready = ready;
}

void *xs_arena(size_t size)
{
	struct xs_ring *ready = enter();
	void *result = NULL;

	size = (size + 15) & ~(size_t)15;
	lock();
	if (size > (size_t)(self.arena_end - self.arena)) {
		size_t chunk = size > 65536 ? size : 65536;
		void *map = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		self.arena = map == MAP_FAILED ? NULL : map;
		self.arena_end = map == MAP_FAILED ? NULL : self.arena + chunk;
	}
	if (self.arena) {
		result = self.arena;
		self.arena += size;
	}
	unlock();
	leave(ready);
	return result;
}

void xs_at_end(void (*function)(void))
{
	for (size_t i = 0; i < sizeof(self.at_end) / sizeof(self.at_end[0]); i++) {
		if (self.at_end[i] == function)
			return;
		if (!self.at_end[i]) {
			self.at_end[i] = function;
			return;
		}
	}
}

static void thread_record(struct xs_ring *ring)
{
	struct xs_thread_record *record = &ring->thread, *place;
	char name[16] = "";

	record->event.tick = xs_tick(xs_use_tsc);
	record->event.name = xs_tls.name;
	if (!xs_tls.name) {
		prctl(PR_GET_NAME, name);
		record->event.name = xs_intern(self.strings, name, (uint32_t)strnlen(name, sizeof(name)), 0);
	}
	record->event.kind = XS_THREAD;
	record->event.words = sizeof(*record) / 8;
	record->event.source = record->event.flags = 0;
	record->tid = atomic_load_explicit(&ring->tid, memory_order_relaxed);
	record->lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
	place = xs_ring_reserve(ring, xs_bell, sizeof(*record), XS_ROLE_THREAD);
	if (place) {
		*place = *record;
		xs_ring_commit(ring, sizeof(*record));
	}
}

/* Runs when a thread ends; its ring goes to the next thread as it is, whatever is still in it. */
static void thread_detach(void *unused)
{
	struct xs_ring *ring = xs_tls.ring;
	int saved = errno;

	(void)unused;
	if (!ring || !xs_joined())
		return;
	(void)enter();
	thread_record(ring); /* its name as it is now */
	xs_tls.ring = NULL;
	/* all that this thread wrote; pairs with the acquire in take() */
	atomic_store_explicit(&ring->state, XS_RING_IDLE, memory_order_release);
	atomic_store_explicit(&xs_gate->no_rings, 0, memory_order_relaxed);
	leave(NULL);
	errno = saved;
}

static bool map_run(void)
{
	struct xs_control *control;
	const char *dir = getenv(XS_ENV_RUN);
	void *map;

	if (!dir || strlen(dir) >= sizeof(self.dir) - XS_NAME_MAX)
		return false;
	strcpy(self.dir, dir);
	if (xs_shm_map(dir, "control", false, sizeof(*control), &map, NULL) < 0)
		return false;
	control = map;
	if (atomic_load_explicit(&control->magic, memory_order_acquire) != XS_MAGIC ||
	    control->version != XS_SHM_VERSION || xs_shm_map(dir, "strings", false, XS_STRINGS_SIZE, &map, NULL) < 0) {
		munmap(control, sizeof(*control));
		return false;
	}
	self.strings = map;
	xs_bell = &control->bell;
	xs_run_paused = &control->paused;
	xs_use_tsc = control->use_tsc;
	xs_log_calls = control->options.call_logging;
	self.have_key = !pthread_key_create(&self.key, thread_detach);
	self.control = control;
	return true;
}

static bool make_gate(void)
{
	void *page = mmap(NULL, XS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || madvise(page, XS_PAGE, MADV_WIPEONFORK) < 0) /* Linux 4.14 */
		return false;
	xs_gate = page;
	return true;
}

static struct xs_process_file *make_process(uint32_t slots)
{
	uint64_t ring_size = self.control->options.ring_size;
	struct xs_process_file *process;
	char name[XS_NAME_MAX];
	int32_t pid = getpid(), rank, world_size;
	uint32_t serial = atomic_fetch_add_explicit(&self.control->serials, 1, memory_order_relaxed);
	void *map;

	xs_process_name(name, pid, serial, 0);
	if (xs_shm_map(self.dir, name, true, xs_slot_offset(slots, ring_size), &map, NULL) < 0)
		return NULL;
	if (!xs_shm_present(map, XS_PROCESS_FIRST)) {
		munmap(map, xs_slot_offset(slots, ring_size));
		return NULL; /* the empty file goes with the run directory */
	}
	process = map;
	process->pid = pid;
	process->ppid = getppid();
	process->pid_namespace = xs_process_namespace(0);
	process->join_tick = xs_tick(xs_use_tsc);
	process->start = xs_process_start(pid);
	process->join_boot = xs_clock_ns(CLOCK_BOOTTIME);
	process->serial = serial;
	process->slots = slots;
	process->ring_size = ring_size;
	prctl(PR_GET_NAME, process->comm);
	if (xs_job_rank(&rank, &world_size)) {
		atomic_store_explicit(&process->world_size, world_size, memory_order_relaxed);
		atomic_store_explicit(&process->rank_told, rank + 1, memory_order_relaxed);
	}
	/* all of the above; pairs with the acquire in the drain process's adopt() */
	atomic_store_explicit(&process->magic, XS_MAGIC, memory_order_release);
	/* last: the drain process looks for files when it sees this */
	atomic_fetch_add_explicit(&self.control->joined, 1, memory_order_release);
	return process;
}

/* Not after --stop, no descendants with --follow-child-process 0, and of the ranks only those of --ranks-to-sample. */
static bool may_join(void)
{
	const char *ranks = self.control->options.ranks;
	int32_t rank, size;

	if (atomic_load_explicit(&self.control->paused, memory_order_relaxed) & XS_PAUSE_STOPPED)
		return false;
	/* the launcher of the job may be a child of ours */
	if (ranks[0] && xs_job_rank(&rank, &size) && !xs_is_listed(ranks, (uint64_t)rank))
		return false;
	return self.control->options.follow_children || getpid() == self.control->app_pid;
}

/* With the lock held. A process of few resources (ulimit -v) gets fewer rings. */
static bool join(void)
{
	if ((!self.control && !map_run()) || !may_join())
		return false;
	for (uint32_t slots = XS_FIRST_SLOTS; slots; slots /= 4) {
		self.process = make_process(slots);
		if (self.process)
			break;
	}
	if (!self.process) {
		atomic_fetch_add_explicit(&self.control->join_failed, 1, memory_order_relaxed);
		return false;
	}
	memset(self.segment, 0, sizeof(self.segment));
	xs_doorbell_ring(xs_bell);
	return true;
}

/* Joins the run unless that was done or is impossible. True: joined. */
static bool start(void)
{
	int saved = errno;

	if (xs_gate == &untraced || state_now() == OFF)
		return false;
	if (xs_gate == &before_start) {
		/* two threads that come here first at once: the page of one is lost, nothing else */
		if (!getenv(XS_ENV_RUN) || !make_gate()) {
			xs_gate = &untraced;
			errno = saved;
			return false;
		}
	}
	lock();
	if (state_now() == NOT_JOINED) {
		/* in a forked child: the parent's, and perhaps torn */
		xs_tls.ring = xs_tls.ready = NULL;
		self.arena = self.arena_end = NULL;
		bool joined = join();

		if (joined)
			xs_stack_init((uint32_t)self.control->options.call_stacks);
		/* all that join() set up; pairs with the acquire in state_now() */
		atomic_store_explicit(&xs_gate->state, joined ? JOINED : OFF, memory_order_release);
		atomic_store_explicit(&xs_gate->open,
				      joined ? xs_gate_wanted() : XS_GATE_CLOSED,
				      memory_order_release);
	}
	unlock();
	errno = saved;
	return state_now() == JOINED;
}

const struct xs_options *xs_collector_options(void)
{
	bool joined;

	if (xs_tls.busy)
		return NULL;
	xs_tls.busy++;
	joined = start();
	xs_tls.busy--;
	return joined ? &self.control->options : NULL;
}

const struct xs_options *xs_options_of_run(void)
{
	return &self.control->options;
}

struct xs_pauses *xs_own_pauses(void)
{
	return &self.process->pauses;
}

struct xs_device_pairs *xs_own_device_pairs(uint32_t device)
{
	struct xs_process_clocks *clocks = xs_clocks_of(self.process);

	return xs_shm_present(clocks, sizeof(*clocks)) ? &clocks->device[device % XS_CLOCKS] : NULL;
}

void xs_count_untimed(uint64_t count)
{
	atomic_fetch_add_explicit(&self.process->untimed, count, memory_order_relaxed);
}

void xs_tell_unseen(unsigned what)
{
	if (xs_joined())
		atomic_fetch_or_explicit(&self.process->unseen, 1u << what, memory_order_relaxed);
}

uint64_t xs_life_began_tick(void)
{
	return self.control->tick0;
}

uint64_t xs_life_began_ns(void)
{
	return self.control->mono0;
}

void xs_told_rank(int32_t rank, int32_t world_size)
{
	if (!xs_joined())
		return;
	atomic_store_explicit(&self.process->world_size, world_size, memory_order_relaxed);
	/* before the first record of MPI */
	atomic_store_explicit(&self.process->rank_told, rank + 1, memory_order_release);
}

void xs_request_dump(void)
{
	int saved = errno;

	(void)xs_control_dump(self.control, XS_DUMP_TRIGGER);
	errno = saved;
}

void xs_thread_ignore(void)
{
	xs_tls.ignored = true;
	xs_tls.ready = NULL;
}

void xs_thread_name(uint32_t name)
{
	int saved = errno;
	struct xs_ring *ready;

	xs_tls.name = name;
	if (xs_joined() && xs_tls.ready) {
		ready = enter();
		thread_record(ready);
		leave(ready);
	}
	errno = saved;
}

uint32_t xs_name(const char *text, uint32_t scope)
{
	return self.strings ? xs_intern(self.strings, text, (uint32_t)strnlen(text, XS_STRING_MAX + 1), scope) : 0;
}

uint32_t xs_shape(const struct xs_shape *shape)
{
	uint32_t id = self.strings ? xs_intern(self.strings, (const char *)shape, sizeof(*shape), XS_SHAPE_SCOPE) : XS_STRING_FULL;

	return id == XS_STRING_FULL ? 0 : id;
}

const struct xs_shape *xs_shape_of(uint32_t id)
{
	return (const struct xs_shape *)((const char *)self.strings + 8ull * id + sizeof(struct xs_string));
}

static struct xs_ring *slot_ring(void *file, uint32_t slot)
{
	return (struct xs_ring *)((char *)file + xs_slot_offset(slot, self.process->ring_size));
}

/* A thread that traced in its last destructor round has left its ring LIVE: our own destructor had run before. */
static bool abandoned(const struct xs_ring *ring)
{
	uint32_t tid = atomic_load_explicit(&ring->tid, memory_order_relaxed);

	return atomic_load_explicit(&ring->state, memory_order_acquire) == XS_RING_LIVE && tid &&
	       syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH;
}

static struct xs_ring *reuse(void *file, uint32_t used, bool of_dead_threads)
{
	for (uint32_t i = 0; i < used; i++) {
		struct xs_ring *ring = slot_ring(file, i);
		uint32_t idle = of_dead_threads && abandoned(ring) ? XS_RING_LIVE : XS_RING_IDLE;

		/* pairs with the release in thread_detach() */
		if (atomic_compare_exchange_strong_explicit(&ring->state, &idle, XS_RING_LIVE, memory_order_acquire,
							    memory_order_relaxed)) {
			ring->skip = ring->lost_ends = 0; /* of a thread that ended inside a lost task */
			ring->limit = 0;
			return ring;
		}
	}
	return NULL;
}

static struct xs_ring *fresh(void *file, uint32_t slots, _Atomic uint32_t *used)
{
	uint32_t slot = atomic_load_explicit(used, memory_order_relaxed);
	struct xs_ring *ring;

	if (slot >= slots)
		return NULL;
	ring = slot_ring(file, slot);
	/* a full /dev/shm must show here and not as a SIGBUS */
	if (!xs_shm_present(ring, XS_RING_HEADER))
		return NULL;
	xs_ring_init(ring, (unsigned char *)ring + XS_RING_HEADER, self.process->ring_size,
		     self.control->options.on_full);
	atomic_store_explicit(&ring->state, XS_RING_LIVE, memory_order_relaxed);
	/* the ring is ready; pairs with the acquire in the drain process */
	atomic_store_explicit(used, slot + 1, memory_order_release);
	return ring;
}

static struct xs_segment_file *make_segment(uint32_t number)
{
	uint64_t ring_size = self.process->ring_size;
	char name[XS_NAME_MAX];
	void *map;

	xs_process_name(name, self.process->pid, self.process->serial, number);
	for (uint32_t slots = XS_MORE_SLOTS; slots; slots /= 8) {
		struct xs_segment_file *segment;

		if (xs_shm_map(self.dir, name, true, xs_slot_offset(slots, ring_size), &map, NULL) < 0)
			continue;
		segment = map;
		segment->slots = slots;
		atomic_store_explicit(&segment->magic, XS_MAGIC, memory_order_release);
		/* pairs with the acquire in the drain process */
		atomic_store_explicit(&self.process->segments, number, memory_order_release);
		return segment;
	}
	return NULL;
}

static struct xs_ring *reuse_any(uint32_t segments, bool of_dead_threads)
{
	uint32_t used = atomic_load_explicit(&self.process->used, memory_order_relaxed);
	struct xs_ring *ring = reuse(self.process, used, of_dead_threads);

	for (uint32_t i = 0; !ring && i < segments; i++) {
		used = atomic_load_explicit(&self.segment[i]->used, memory_order_relaxed);
		ring = reuse(self.segment[i], used, of_dead_threads);
	}
	return ring;
}

/* With the lock held: a ring that nobody uses, the oldest first, else a new one. */
static struct xs_ring *take(void)
{
	uint32_t segments = atomic_load_explicit(&self.process->segments, memory_order_relaxed);
	struct xs_ring *ring = reuse_any(segments, false);

	if (!ring)
		ring = fresh(self.process, self.process->slots, &self.process->used);
	if (!ring && segments)
		ring = fresh(self.segment[segments - 1], self.segment[segments - 1]->slots,
			     &self.segment[segments - 1]->used);
	if (!ring)
		ring = reuse_any(segments, true);
	if (!ring && segments < XS_MAX_SEGMENTS) {
		struct xs_segment_file *segment = make_segment(segments + 1);

		self.segment[segments] = segment;
		if (segment)
			ring = fresh(segment, segment->slots, &segment->used);
	}
	if (!ring)
		atomic_store_explicit(&xs_gate->no_rings, 1, memory_order_relaxed);
	return ring;
}

static void attach(void)
{
	struct xs_ring *ring = NULL;

	if (!xs_joined() && !start())
		return;
	if (xs_tls.ring)
		return;
	if (!atomic_load_explicit(&xs_gate->no_rings, memory_order_relaxed)) {
		lock();
		ring = take();
		/* before the next one looks for rings of dead threads: this one's last owner may be dead */
		if (ring)
			atomic_store_explicit(&ring->tid, (uint32_t)syscall(SYS_gettid), memory_order_relaxed);
		unlock();
	}
	if (!ring) {
		atomic_fetch_add_explicit(&self.process->lost_no_ring, 1, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&ring->call, 0, memory_order_relaxed);
	thread_record(ring);
	if (self.have_key)
		pthread_setspecific(self.key, ring);
	xs_tls.ring = ring;
}

bool xs_thread_attach(void)
{
	int saved = errno;

	if (state_now() == OFF)
		return false;
	if (xs_tls.ignored)
		return false;
	if (xs_joined() && xs_tls.ring) {
		/* we are inside the collector: this is a signal handler */
		atomic_fetch_add_explicit(&xs_tls.ring->lost_nested, 1, memory_order_relaxed);
		return false;
	}
	if (xs_tls.busy)
		return false;
	xs_tls.busy++;
	attach();
	xs_tls.busy--;
	if (xs_joined())
		xs_tls.ready = xs_tls.ring;
	errno = saved;
	return xs_tls.ready && !xs_paused(); /* joining may have shown that nothing is to be recorded for now */
}

bool xs_call_enter_long(struct xs_call *call, uint32_t word)
{
	struct xs_ring *ring;

	if (!xs_recording())
		return false;
	ring = xs_tls.ring;
	call->outer = atomic_load_explicit(&ring->call, memory_order_relaxed);
	call->outer_tick = atomic_load_explicit(&ring->call_tick, memory_order_relaxed);
	call->tick = xs_tick(xs_use_tsc);
	atomic_store_explicit(&ring->call_tick, call->tick, memory_order_relaxed);
	atomic_store_explicit(&ring->call, word, memory_order_relaxed);
	return true;
}

void xs_call_end_long(const struct xs_call *call, uint64_t duration, uint64_t header, int64_t result)
{
	struct xs_call_record *record;

	if (xs_stack_depth)
		xs_stack_write(call->tick);
	record = xs_record_begin(sizeof(*record), XS_CALL, (uint8_t)(header >> 48), (uint8_t)(header >> 56), (uint32_t)header,
				 XS_ROLE_OTHER);
	if (record) {
		record->event.tick = call->tick;
		record->duration = duration;
		record->result = result;
		xs_record_end(sizeof(*record));
	}
}

void xs_call_end(const struct xs_call *call, uint64_t header, int64_t result)
{
	struct xs_ring *ring = xs_tls.ready;
	uint64_t head, *words, tick = call->tick, duration;

	if (__builtin_expect(!xs_ready_for_mark(ring) || call->outer || xs_stack_depth, 0)) {
		xs_call_end_long(call, xs_call_leave(call), header, result);
		return;
	}
	duration = xs_tick(true) - tick;
	atomic_store_explicit(&ring->call, 0, memory_order_relaxed);
	/* before head is read: see xs_mark() */
	xs_tls.ready = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	if (__builtin_expect(head + sizeof(struct xs_call_record) > ring->limit, 0)) {
		xs_tls.ready = ring;
		xs_call_end_long(call, duration, header, result);
		return;
	}
	words = (uint64_t *)(ring->data + (head & ring->mask));
	words[0] = tick;
	words[1] = header;
	words[2] = duration;
	words[3] = (uint64_t)result;
	xs_own_ahead(words);
	atomic_store_explicit(&ring->head, head + sizeof(struct xs_call_record), memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	xs_tls.ready = ring;
}

/* Only hurries what the first event would do: the process is known from its first instruction on. */
__attribute__((constructor)) static void hurry(void)
{
	(void)xs_collector_options();
}

__attribute__((destructor)) static void end(void)
{
	if (state_now() != JOINED)
		return;
	for (size_t i = 0; i < sizeof(self.at_end) / sizeof(self.at_end[0]) && self.at_end[i]; i++)
		self.at_end[i]();
}
