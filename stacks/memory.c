/*
 * The process's memory: a thread's copied stack, or what is there now, by pages that are kept.
 */
#include <string.h>
#include <sys/uio.h>

#include "stacks.h"

#define PAGES 1024u /* a power of two */

static pid_t of;
static const struct xs_thread *stack;
static struct page {
	uintptr_t address; /* 0: nothing */
	unsigned char bytes[XS_PAGE];
} pages[PAGES];

void xs_memory_of(pid_t pid)
{
	of = pid;
}

void xs_memory_forget(bool (*stays)(uintptr_t address))
{
	for (size_t i = 0; i < PAGES; i++)
		if (pages[i].address && (!stays || !stays(pages[i].address)))
			pages[i].address = 0;
}

void xs_memory_stack(const struct xs_thread *thread)
{
	stack = thread;
}

static const struct page *page_of(uintptr_t address)
{
	struct page *page = &pages[address / XS_PAGE * 0x9e3779b1u % PAGES];
	struct iovec here = { page->bytes, XS_PAGE }, there = { (void *)address, XS_PAGE };

	if (page->address == address)
		return page;
	page->address = 0;
	if (!address || process_vm_readv(of, &here, 1, &there, 1, 0) != (ssize_t)XS_PAGE)
		return NULL;
	page->address = address;
	return page;
}

bool xs_memory_read(uintptr_t address, void *to, size_t size)
{
	unsigned char *out = to;

	if (stack && address >= stack->stack && size <= stack->stack_bytes &&
	    address - stack->stack <= stack->stack_bytes - size) {
		memcpy(to, stack->bytes + (address - stack->stack), size);
		return true;
	}
	while (size) {
		uintptr_t offset = address % XS_PAGE;
		size_t n = size < XS_PAGE - offset ? size : XS_PAGE - offset;
		const struct page *page = page_of(address - offset);

		if (!page)
			return false;
		memcpy(out, page->bytes + offset, n);
		out += n;
		address += n;
		size -= n;
	}
	return true;
}
