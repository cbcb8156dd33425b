/*
 * What this process tells the drain process beside records: names, counts, pauses, by words in
 * shared memory.
 */
#include <string.h>
#include <sys/mman.h>

#include "activity.h"
#include "device_record.h"
#include "self.h"
#include "strtab.h"
#include "sys.h"

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

/* What children of fork are kept from, of this process or of the one that it was forked from. */
static struct {
	void *_Atomic map;
	uint64_t size;
} own[XS_ACTIVITY_FILES];

/*
 * CUPTI's records point to names, which this process reads where they point to: a child, which may
 * have dropped its rights, must not be able to change them.
 */
void *xs_own_activity(uint32_t number, uint64_t size, size_t made_as)
{
	struct xs_shm_file file;
	struct xs_entered entered;
	char name[XS_NAME_MAX];
	void *map = NULL;

	xs_enter(&entered);
	xs_activity_name(name, xs_self.pid, xs_self.serial, number);
	if (number >= XS_ACTIVITY_FILES || !xs_joined() ||
	    xs_shm_map(xs_self.dir, name, XS_SHM_CREATE, size, &map, &file) < 0) {
		map = NULL;
	} else if (xs_sys(SYS_madvise, map, size, MADV_DONTFORK) < 0) {
		(void)xs_sys(SYS_munmap, map, size);
		map = NULL;
	} else {
		*(uint64_t *)((char *)map + made_as) =
			xs_file_word(file.inode, xs_self.pid, xs_self.serial, number);
		own[number].size = size;
		atomic_store_explicit(&own[number].map, map, memory_order_release);
	}
	xs_leave(&entered);
	return map;
}

void xs_leave_activity(void)
{
	for (uint32_t i = 0; i < XS_ACTIVITY_FILES; i++) {
		void *map = atomic_exchange_explicit(&own[i].map, NULL, memory_order_acquire);

		if (map)
			(void)xs_sys(SYS_mmap, map, own[i].size, PROT_READ | PROT_WRITE,
				     MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS |
					     MAP_NORESERVE,
				     -1, 0);
	}
}

void xs_tell_activity(void)
{
	atomic_store_explicit(&xs_self.process->activity, 1, memory_order_release);
}

void xs_count_untimed(uint64_t count)
{
	atomic_fetch_add_explicit(&xs_self.process->untimed, count, memory_order_relaxed);
}

void xs_count_unmeasured(uint64_t count)
{
	atomic_fetch_add_explicit(&xs_self.process->unmeasured, count, memory_order_relaxed);
}

void xs_count_unnamed(void)
{
	if (xs_self.process)
		atomic_fetch_add_explicit(&xs_self.process->unnamed, 1, memory_order_relaxed);
}

void xs_count_unsampled(uint64_t count)
{
	atomic_fetch_add_explicit(&xs_self.process->unsampled, count, memory_order_relaxed);
}

#define STEP_NS 50000000u

uint64_t xs_count_step(void)
{
	struct xs_doorbell *bell;
	struct xs_process_file *file;
	uint64_t steps, due;
	uint32_t done;

	if (!xs_joined() || !xs_self.control->options.on_demand)
		return 0;
	file = xs_self.process;
	bell = &xs_self.mailbox->bell;
	done = atomic_load_explicit(&file->step_done, memory_order_acquire);
	steps = atomic_fetch_add_explicit(&file->steps, 1, memory_order_relaxed) + 1;
	due = atomic_load_explicit(&file->step_due, memory_order_relaxed);
	if (!due || steps < due)
		return steps;
	atomic_fetch_add_explicit(&bell->rung, 1, memory_order_release);
	xs_futex_wake(&bell->rung);
	xs_futex_wait(&file->step_done, done, STEP_NS);
	/* a drain process that does not answer is not waited for again */
	if (atomic_load_explicit(&file->step_done, memory_order_acquire) == done)
		atomic_store_explicit(&file->step_due, 0, memory_order_relaxed);
	return steps;
}

static void commands_end(uint64_t count)
{
	struct xs_ring *ring = xs_own_ring();
	_Atomic uint64_t *ended;

	if (!xs_joined() || !ring) {
		atomic_fetch_add_explicit(&xs_self.process->commands_ended, count,
					  memory_order_relaxed);
		return;
	}
	ended = &ring->commands_ended;
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

void xs_tell_unfreed(uint32_t place, uint32_t device, uint64_t count, uint64_t bytes)
{
	struct xs_unfreed *unfreed;

	if (!xs_joined() || place >= XS_UNFREED)
		return;
	unfreed = &xs_self.process->unfreed[place];
	atomic_store_explicit(&unfreed->device, device, memory_order_relaxed);
	atomic_store_explicit(&unfreed->count, count, memory_order_relaxed);
	atomic_store_explicit(&unfreed->bytes, bytes, memory_order_relaxed);
}

static uint32_t in_256ths(double ns)
{
	return ns <= 0 ? 0 : ns < UINT32_MAX / 256 ? (uint32_t)(ns * 256) : UINT32_MAX;
}

void xs_tell_function_costs(double ns, double inside_ns, double counted_ns)
{
	struct xs_function_costs *costs = &xs_self.process->function_costs;

	if (!xs_joined())
		return;
	atomic_store_explicit(&costs->inside_ns, in_256ths(inside_ns), memory_order_relaxed);
	atomic_store_explicit(&costs->counted_ns, in_256ths(counted_ns), memory_order_relaxed);
	atomic_store_explicit(&costs->ns, in_256ths(ns), memory_order_relaxed);
}

void xs_copy_function_costs(struct xs_process_file *to, const struct xs_process_file *from)
{
	const struct xs_function_costs *costs = &from->function_costs;

	atomic_store_explicit(&to->function_costs.inside_ns,
			      atomic_load_explicit(&costs->inside_ns, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&to->function_costs.counted_ns,
			      atomic_load_explicit(&costs->counted_ns, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&to->function_costs.ns,
			      atomic_load_explicit(&costs->ns, memory_order_relaxed),
			      memory_order_relaxed);
}

/* The caller has the interpreter's lock, so nobody else counts. */
void xs_count_function(bool has_slice)
{
	struct xs_process_file *file = xs_self.process;
	_Atomic uint64_t *count = has_slice ? &file->functions : &file->counted_functions;

	if (xs_joined())
		atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
				      memory_order_relaxed);
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
	uint32_t id = xs_self.strings ? xs_intern_parts(xs_self.strings, parts, count, scope) : 0;

	if (__builtin_expect(id == XS_STRING_FULL, 0))
		xs_count_unnamed();
	return id;
}

uint32_t xs_name(const char *text, uint32_t scope)
{
	return xs_name_parts(&(struct xs_part){ text, (uint32_t)strnlen(text, XS_STRING_MAX + 1) },
			     1, scope);
}

struct xs_part xs_text_of_name(uint32_t name)
{
	uint32_t length = 0;
	const struct xs_string *string =
		xs_self.strings ? xs_string(xs_self.strings, XS_STRINGS_SIZE, name, &length) : NULL;

	return (struct xs_part){ string ? string->text : "", string ? length : 0 };
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
