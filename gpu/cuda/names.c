/*
 * Names of kernels and devices: those that calls have, and those that CUPTI's records point to.
 */
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "bus.h"
#include "xs_cuda.h"
#include "lock.h"
#include "sys.h"

/* ---- of calls ---- */

#define SYMBOLS 4096u /* a power of two */

struct symbol {
	_Atomic uint64_t pointer;
	_Atomic uint64_t name; /* the id, and the generation << 32 in which it was learnt */
};
XS_TABLE(symbols, SYMBOLS * sizeof(struct symbol));
static _Atomic uint32_t generation;

void xs_cuda_forget_symbols(void)
{
	atomic_fetch_add(&generation, 1);
}

/*
 * Two symbols may share a place: then each is looked for in the run's table of names when the other
 * was there before. A reader that meets a writer may see the new pointer with the old name, so the
 * name is taken away first and comes last.
 */
uint32_t xs_cuda_symbol(const char *symbol)
{
	uint64_t pointer = (uint64_t)(uintptr_t)symbol, known;
	uint64_t now = (uint64_t)atomic_load_explicit(&generation, memory_order_acquire) << 32;
	struct symbol *table = xs_table(&symbols), *at;
	uint32_t name;

	if (!table)
		return xs_name(symbol, 0);
	at = &table[xs_activity_place(pointer, 0) & (SYMBOLS - 1)];
	known = atomic_load_explicit(&at->name, memory_order_acquire);
	if (__builtin_expect((known & ~0xffffffffull) == now && (uint32_t)known &&
				     atomic_load_explicit(&at->pointer, memory_order_acquire) ==
					     pointer &&
				     atomic_load_explicit(&at->name, memory_order_relaxed) == known,
			     1))
		return (uint32_t)known;
	name = xs_name(symbol, 0);
	atomic_store_explicit(&at->name, 0, memory_order_release);
	atomic_store_explicit(&at->pointer, pointer, memory_order_release);
	atomic_store_explicit(&at->name, now | name, memory_order_release);
	return name;
}

/* ---- of records ---- */

#define PAGE 4096u

/*
 * The id of the text that a record points to; 0: there is none. Other processes can write into the
 * buffers, too, so the kernel copies the text and nothing here follows the pointer. Where the
 * kernel may not be asked (some containers), such names are not known.
 */
static uint32_t name_at(uint64_t pointer, uint32_t scope)
{
	static char text[XS_STRING_MAX];
	static _Atomic uint32_t lock;
	uint32_t length = 0, name = 0;

	xs_lock_robust(&lock);
	while (length < XS_STRING_MAX) {
		uint64_t from = pointer + length, rest = XS_STRING_MAX - length;
		uint64_t in_page = PAGE - from % PAGE, wanted = in_page < rest ? in_page : rest;
		struct iovec here = { text + length, wanted },
			     there = { (void *)(uintptr_t)from, wanted };
		uint32_t found;
		long n = xs_sys(SYS_process_vm_readv, xs_cuda_owner, &here, 1, &there, 1, 0);

		if (n <= 0)
			break;
		found = (uint32_t)strnlen(text + length, (size_t)n);
		length += found;
		if (found < (uint32_t)n || length == XS_STRING_MAX) {
			name = xs_name_parts(&(struct xs_part){ text, length }, 1, scope);
			break;
		}
	}
	xs_unlock(&lock);
	return name;
}

/* CUPTI keeps these as long as the process lives. */
static void learn(struct xs_activity_file *file, uint64_t pointer)
{
	for (uint32_t n = 0; n < XS_ACTIVITY_PROBES; n++) {
		struct xs_activity_name *at =
			&file->name[xs_activity_place(pointer, n) & (XS_ACTIVITY_NAMES - 1)];
		uint64_t there = atomic_load_explicit(&at->pointer, memory_order_acquire);
		uint32_t name;

		if (there == pointer)
			return;
		if (there)
			continue;
		name = name_at(pointer, 0);
		if (!name)
			return;
		atomic_store_explicit(&at->name, name, memory_order_relaxed);
		/* the name; pairs with the acquire in the drain process */
		if (atomic_compare_exchange_strong_explicit(&at->pointer, &there, pointer,
							    memory_order_release,
							    memory_order_relaxed) ||
		    there == pointer)
			return;
	}
}

/* A word of a record: read once, whoever changes it meanwhile. */
static uint64_t word_at(const unsigned char *record, size_t at)
{
	return *(const volatile uint64_t *)(const void *)(record + at);
}

static uint32_t number_at(const unsigned char *record, size_t at)
{
	return *(const volatile uint32_t *)(const void *)(record + at);
}

#define DEVICE(member) number_at(record, offsetof(CUpti_ActivityDevice2, member))

static uint32_t device_facts(const unsigned char *record)
{
	uint32_t warp = DEVICE(numThreadsPerWarp);
	const struct xs_device_fact facts[] = {
		{ "totalGlobalMem",
		  word_at(record, offsetof(CUpti_ActivityDevice2, globalMemorySize)) },
		{ "computeMajor", DEVICE(computeCapabilityMajor) },
		{ "computeMinor", DEVICE(computeCapabilityMinor) },
		{ "maxThreadsPerBlock", DEVICE(maxThreadsPerBlock) },
		{ "maxThreadsPerMultiprocessor",
		  (uint64_t)DEVICE(maxWarpsPerMultiprocessor) * warp },
		{ "regsPerBlock", DEVICE(maxRegistersPerBlock) },
		{ "warpSize", warp },
		{ "sharedMemPerBlock", DEVICE(maxSharedMemoryPerBlock) },
		{ "numSms", DEVICE(numMultiprocessors) },
		{ "regsPerMultiprocessor", DEVICE(maxRegistersPerMultiprocessor) },
		{ "sharedMemPerMultiprocessor", DEVICE(maxSharedMemoryPerMultiprocessor) },
	};

	return xs_device_facts(facts, sizeof(facts) / sizeof(facts[0]));
}

static void learn_device(struct xs_activity_file *file, const unsigned char *record)
{
	uint32_t id = DEVICE(id);
	uint64_t pointer = word_at(record, offsetof(CUpti_ActivityDevice2, name));
	uint32_t name = id < XS_ACTIVITY_DEVICES ? name_at(pointer, device_facts(record)) : 0;
	size_t uuid = offsetof(CUpti_ActivityDevice2, uuid);

	if (!name)
		return;
	atomic_store_explicit(&file->device[id].uuid[0], word_at(record, uuid),
			      memory_order_relaxed);
	atomic_store_explicit(&file->device[id].uuid[1], word_at(record, uuid + 8),
			      memory_order_relaxed);
	/* pairs with the acquire in the drain process: what is known of it is there before */
	atomic_store_explicit(&file->device[id].name, name, memory_order_release);
}

void xs_cuda_learn_names(struct xs_activity_file *file, const unsigned char *data, uint64_t bytes)
{
	uint32_t size;

	for (uint64_t at = 0; at + 8 <= bytes; at += size) {
		const unsigned char *record = data + at;
		uint32_t kind = (uint32_t)word_at(record, 0) & ~XS_ACTIVITY_RESERVED;
		uint64_t pointer;

		size = kind < XS_ACTIVITY_KINDS
			       ? atomic_load_explicit(&file->size[kind], memory_order_relaxed)
			       : 0;
		if (!size || size % 8 || size > bytes - at)
			return;
		if ((kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
		     kind == CUPTI_ACTIVITY_KIND_KERNEL) &&
		    size >= sizeof(CUpti_ActivityKernel4)) {
			pointer = word_at(record, offsetof(CUpti_ActivityKernel4, name));
			if (pointer)
				learn(file, pointer);
		} else if (kind == CUPTI_ACTIVITY_KIND_DEVICE &&
			   size >= sizeof(CUpti_ActivityDevice2)) {
			learn_device(file, record);
		}
	}
}

void xs_cuda_texts(struct xs_activity_file *file)
{
	static const char *const texts[XS_ACTIVITY_TEXTS] = {
		[XS_TEXT_DEVICE] = "CUDA device",
		[XS_TEXT_OVERHEAD_ROW] = "CUPTI overhead",
		[XS_TEXT_SYNC_ROW] = "CUDA synchronization",
		[XS_TEXT_JIT_ROW] = "CUDA just-in-time compilation",
		[XS_TEXT_MEMORY_ROW] = "CUDA memory",
		[XS_TEXT_OVERHEAD] = "overhead",
		[XS_TEXT_OVERHEAD_COMPILER] = "driver compiler",
		[XS_TEXT_OVERHEAD_FLUSH] = "flush of CUPTI's buffers",
		[XS_TEXT_OVERHEAD_INSTRUMENTATION] = "CUPTI's instrumentation",
		[XS_TEXT_OVERHEAD_RESOURCE] = "CUPTI's resources",
		[XS_TEXT_OVERHEAD_TRIGGER] = "CUDA runtime's launch",
		[XS_TEXT_OVERHEAD_LAZY] = "lazy loading of a function",
		[XS_TEXT_OVERHEAD_COMMAND_BUFFER] = "command buffer full",
		[XS_TEXT_SYNC] = "synchronization",
		[XS_TEXT_SYNC_EVENT] = "waits for an event",
		[XS_TEXT_SYNC_WAIT_EVENT] = "stream waits for an event",
		[XS_TEXT_SYNC_STREAM] = "waits for a stream",
		[XS_TEXT_SYNC_CONTEXT] = "waits for a context",
		[XS_TEXT_JIT] = "just-in-time compilation",
		[XS_TEXT_JIT_PTX] = "PTX to CUBIN",
		[XS_TEXT_JIT_NVVM] = "NVVM IR to PTX",
		[XS_TEXT_USED_DEVICE] = "CUDA device memory",
		[XS_TEXT_USED_PINNED] = "CUDA pinned memory",
		[XS_TEXT_USED_MANAGED] = "CUDA managed memory",
		[XS_TEXT_USED_POOL] = "CUDA memory pools",
		[XS_TEXT_MIGRATION_ROW] = "CUDA managed memory",
		[XS_TEXT_MIGRATION_HTOD] = "migration HtoD",
		[XS_TEXT_MIGRATION_DTOH] = "migration DtoH",
		[XS_TEXT_MIGRATION_DTOD] = "migration DtoD",
		[XS_TEXT_CPU_FAULTS] = "CPU page faults",
		[XS_TEXT_GPU_FAULTS] = "GPU page faults",
		[XS_TEXT_THRASHING] = "thrashing",
	};

	for (uint32_t i = 0; i < XS_ACTIVITY_TEXTS; i++)
		file->text[i] = xs_name(texts[i], 0);
}
