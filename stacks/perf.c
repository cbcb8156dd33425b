/*
 * Where a thread runs, by perf_event_open(): the kernel copies its registers and the newest part of
 * its stack while it runs, every so many ns on a processor. It never stands still, and no system
 * call of it is interrupted.
 *
 * Of a program whose samples may not be taken inside of the kernel (perf_event_paranoid is 2) there
 * are those outside alone. What Python does cannot be had so: its frames lie elsewhere in memory.
 */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stacks.h"

#define OPEN_MAX_THREADS 256u
#define PAGES		 16u	     /* of a ring, a power of two: one sample and a little more */
#define STACK		 (32u << 10) /* of a sample; less than 64 KiB */
#define REGISTERS	 17u
/* AX to IP, R8 to R15, as asm/perf_regs.h numbers them */
#define REGISTER_MASK 0xff01ffull

struct xs_perf {
	int fd;
	struct perf_event_mmap_page *page;
};

static unsigned count;

static struct perf_event_attr attributes(uint64_t period, bool kernel)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = REGISTER_MASK,
		.sample_stack_user = STACK,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
	};
}

struct xs_perf *xs_perf_open(pid_t tid, uint64_t period)
{
	struct perf_event_attr attr = attributes(period, true);
	struct xs_perf *perf;
	void *map;
	long fd;

	if (count == OPEN_MAX_THREADS)
		return NULL;
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		attr = attributes(period, false);
		fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return NULL;
	map = mmap(NULL, (PAGES + 1) * XS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	perf = map == MAP_FAILED ? NULL : malloc(sizeof(*perf));
	if (!perf) {
		if (map != MAP_FAILED)
			(void)munmap(map, (PAGES + 1) * XS_PAGE);
		close((int)fd);
		return NULL;
	}
	*perf = (struct xs_perf){ (int)fd, map };
	count++;
	return perf;
}

void xs_perf_close(struct xs_perf *perf)
{
	if (!perf)
		return;
	(void)munmap(perf->page, (PAGES + 1) * XS_PAGE);
	close(perf->fd);
	free(perf);
	count--;
}

/* From the ring, which goes round. */
static void copy(const struct xs_perf *perf, uint64_t at, void *to, size_t bytes)
{
	const unsigned char *ring = (const unsigned char *)perf->page + XS_PAGE;
	size_t size = PAGES * XS_PAGE, from = at % size;
	size_t first = bytes < size - from ? bytes : size - from;

	memcpy(to, ring + from, first);
	memcpy((unsigned char *)to + first, ring, bytes - first);
}

/* A sample: which registers, those, how much of the stack, that, how much of it there was. */
static bool take(const struct xs_perf *perf, uint64_t at, size_t bytes, struct xs_thread *thread)
{
	uint64_t abi, r[REGISTERS], size, used;

	if (bytes < sizeof(abi) + sizeof(r) + sizeof(size))
		return false;
	copy(perf, at, &abi, sizeof(abi));
	if (abi != PERF_SAMPLE_REGS_ABI_64)
		return false;
	copy(perf, at + 8, r, sizeof(r));
	copy(perf, at + 8 + sizeof(r), &size, sizeof(size));
	if (!size || size > STACK || size + 24 + sizeof(r) > bytes)
		return false;
	copy(perf, at + 16 + sizeof(r) + size, &used, sizeof(used));
	thread->registers = (struct user_regs_struct){
		.rax = r[0],
		.rbx = r[1],
		.rcx = r[2],
		.rdx = r[3],
		.rsi = r[4],
		.rdi = r[5],
		.rbp = r[6],
		.rsp = r[7],
		.rip = r[8],
		.r8 = r[9],
		.r9 = r[10],
		.r10 = r[11],
		.r11 = r[12],
		.r12 = r[13],
		.r13 = r[14],
		.r14 = r[15],
		.r15 = r[16],
	};
	if (!thread->bytes)
		thread->bytes = malloc(STACK);
	if (!thread->bytes)
		return false;
	thread->stack = r[7];
	thread->stack_bytes = used < size ? used : size;
	copy(perf, at + 16 + sizeof(r), thread->bytes, thread->stack_bytes);
	thread->copied = true;
	return true;
}

uint32_t xs_perf_take(struct xs_perf *perf, struct xs_thread *thread)
{
	/* pairs with the kernel's own barrier before it moves the head */
	uint64_t head = __atomic_load_n(&perf->page->data_head, __ATOMIC_ACQUIRE),
		 tail = perf->page->data_tail;
	uint32_t taken = 0;

	while (tail < head) {
		struct perf_event_header header;

		copy(perf, tail, &header, sizeof(header));
		if (header.size < sizeof(header))
			break;
		if (header.type == PERF_RECORD_SAMPLE)
			taken += take(perf, tail + sizeof(header), header.size - sizeof(header),
				      thread);
		tail += header.size;
	}
	/* what was read has been read before the kernel may write there */
	__atomic_store_n(&perf->page->data_tail, head, __ATOMIC_RELEASE);
	return taken;
}
