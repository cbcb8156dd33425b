/*
 * What tasks of OpenMP's are called: "OpenMP::loop", and where in the program that is. The drain
 * process makes a function's name of the place (common/place.h).
 */
#include "openmp.h"

#include <string.h>

#include "place.h"
#include "stack.h"

static const char *const texts[OMP_NOTHING] = {
	[OMP_PARALLEL] = "OpenMP::parallel",
	[OMP_TEAMS] = "OpenMP::teams",
	[OMP_IMPLICIT_TASK] = "OpenMP::implicit task",
	[OMP_LOOP] = "OpenMP::loop",
	[OMP_SECTIONS] = "OpenMP::sections",
	[OMP_SINGLE] = "OpenMP::single",
	[OMP_WORKSHARE] = "OpenMP::workshare",
	[OMP_DISTRIBUTE] = "OpenMP::distribute",
	[OMP_TASKLOOP] = "OpenMP::taskloop",
	[OMP_SCOPE] = "OpenMP::scope",
	[OMP_MASKED] = "OpenMP::masked",
	[OMP_BARRIER] = "OpenMP::barrier",
	[OMP_BARRIER_IMPLICIT] = "OpenMP::implicit barrier",
	[OMP_BARRIER_OF_LOOP] = "OpenMP::barrier at the end of work",
	[OMP_BARRIER_OF_REGION] = "OpenMP::barrier at the end of the region",
	[OMP_BARRIER_AND_IDLE] = "OpenMP::barrier at the end of the region, then idle",
	[OMP_BARRIER_OF_RUNTIME] = "OpenMP::barrier of the runtime",
	[OMP_BARRIER_OF_TEAMS] = "OpenMP::barrier of teams",
	[OMP_TASKWAIT] = "OpenMP::taskwait",
	[OMP_TASKGROUP] = "OpenMP::taskgroup",
	[OMP_REDUCTION] = "OpenMP::reduction",
	[OMP_TASK_CREATE] = "OpenMP::create task",
	[OMP_TASK] = "OpenMP::task",
	[OMP_LOCK_WAIT] = "OpenMP::wait for lock",
	[OMP_NEST_LOCK_WAIT] = "OpenMP::wait for nestable lock",
	[OMP_CRITICAL_WAIT] = "OpenMP::wait for critical",
	[OMP_ATOMIC_WAIT] = "OpenMP::wait for atomic",
	[OMP_ORDERED_WAIT] = "OpenMP::wait for ordered",
	[OMP_CRITICAL] = "OpenMP::critical",
	[OMP_ORDERED] = "OpenMP::ordered",
	[OMP_TARGET] = "OpenMP::target",
	[OMP_TARGET_ENTER_DATA] = "OpenMP::target enter data",
	[OMP_TARGET_EXIT_DATA] = "OpenMP::target exit data",
	[OMP_TARGET_UPDATE] = "OpenMP::target update",
	[OMP_DATA_ALLOC] = "OpenMP::allocate on device",
	[OMP_DATA_TO_DEVICE] = "OpenMP::transfer to device",
	[OMP_DATA_FROM_DEVICE] = "OpenMP::transfer from device",
	[OMP_DATA_DELETE] = "OpenMP::free on device",
	[OMP_SUBMIT] = "OpenMP::submit kernel",
};

uint32_t omp_domain(void)
{
	static _Atomic uint32_t domain;
	uint32_t id = atomic_load_explicit(&domain, memory_order_relaxed);

	if (__builtin_expect(!id, 0)) {
		id = xs_name("OpenMP", 0);
		atomic_store_explicit(&domain, id, memory_order_relaxed);
	}
	return id;
}

static uint32_t make_name(enum omp_what what, const void *code)
{
	char mark[XS_PLACE_MARK_LENGTH];
	const struct xs_part parts[] = { { mark, sizeof(mark) },
					 { texts[what], (uint32_t)strlen(texts[what]) } };

	if (!code)
		return xs_name_parts(parts + 1, 1, omp_domain());
	xs_place_mark(mark, xs_stack_place((uintptr_t)code));
	return xs_name_parts(parts, 2, omp_domain());
}

/*
 * What was interned, by place. Without a lock: `check` is the key, exclusive or the id, so a
 * half-written entry is one of no place.
 */
struct entry {
	_Atomic uint64_t check, id;
};
#define ENTRIES 4096u /* a power of two */

uint32_t omp_name(enum omp_what what, const void *code)
{
	static struct entry entries[ENTRIES];
	/* another library may have come to the place of one that was unloaded */
	uint64_t key = (uintptr_t)code ^ (uint64_t)what << 56 ^ xs_stack_unloaded() << 48, id;
	struct entry *entry = &entries[key * 0x9e3779b97f4a7c15ull >> 52];

	id = atomic_load_explicit(&entry->id, memory_order_relaxed);
	if (__builtin_expect(id && (atomic_load_explicit(&entry->check, memory_order_relaxed) ^
				    id * 0x9e3779b97f4a7c15ull) == key,
			     1))
		return (uint32_t)id;
	id = make_name(what, code);
	atomic_store_explicit(&entry->check, key ^ id * 0x9e3779b97f4a7c15ull,
			      memory_order_relaxed);
	atomic_store_explicit(&entry->id, id, memory_order_relaxed);
	return (uint32_t)id;
}
