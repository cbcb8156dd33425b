/*
 * Python's functions on the calling thread's stack, in the place of the interpreter's native frames
 * that run them.
 *
 * They are read from memory, without the interpreter's lock. It is the thread's own call that is
 * recorded, so it is in C code that the functions have called: until it returns, nobody but the
 * thread itself changes its chain of frames, and the frames hold their code and its texts. Where
 * that is not so, nothing is read: in a signal's handler the interpreter may have been interrupted
 * at any instruction (stack.c), and when it ends it frees what daemon threads use.
 *
 * Besides, each stack reads no page that the kernel has not just said to be readable, so pointers
 * that the program has spoilt lead nowhere. What was found earlier does not count: memory goes.
 */
#include "python.h"

#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "collector.h"
#include "record.h"
#include "self.h"
#include "strtab.h"

#define PAGE   4096u
#define KNOWN  8192u /* a power of two */
#define PROBES 8u

static_assert(XS_STRINGS_SIZE / 8 < 1u << 22, "a file's id reaches no mark of a frame's word");

/*
 * Weak references, which the loader settles: asking for names that are not there would allocate
 * memory in programs that have nothing to do with Python. Both take no lock.
 */
extern void *PyGILState_GetThisThreadState(void) __attribute__((weak));
extern int Py_IsInitialized(void) __attribute__((weak));
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

static struct xs_python python;

/*
 * Tables without locks: half-written entries match nothing. A place in a function is known by its
 * code object and what tells that from others in its place.
 */
static struct tables {
	struct {
		_Atomic uint64_t check; /* exclusive or of the key and the word */
		_Atomic uint64_t word;	/* for the record */
	} known[KNOWN];
} *tables;

/* Pages of one stack are few: they stand where their number says, or a little further on. */
static bool is_readable(uint64_t *pages, uint64_t page)
{
	uint64_t at = (page / PAGE * 0x9e3779b97f4a7c15ull) >> 40;
	uint64_t *place = &pages[at % XS_PYTHON_PAGES];

	for (uint32_t i = 0; i < PROBES; i++) {
		uint64_t *next = &pages[(at + i) % XS_PYTHON_PAGES];

		if (*next == (page | 1))
			return true;
		if (!*next) {
			place = next;
			break;
		}
	}
	if (!xs_page_readable(page))
		return false;
	*place = page | 1;
	return true;
}

static int read_own(void *pages, uint64_t address, void *to, size_t bytes)
{
	uint64_t first = address & ~(uint64_t)(PAGE - 1),
		 last = (address + bytes - 1) & ~(uint64_t)(PAGE - 1);

	if (!is_readable(pages, first) || (last != first && !is_readable(pages, last)))
		return -1;
	memcpy(to, (const void *)(uintptr_t)address, bytes);
	return 0;
}

void xs_python_init_own(void)
{
	uint64_t pages[XS_PYTHON_PAGES] = { 0 };
	struct dl_find_object object;

	if (tables || !PyGILState_GetThisThreadState || !Py_IsInitialized || !_dl_find_object ||
	    _dl_find_object((void *)(uintptr_t)PyGILState_GetThisThreadState, &object))
		return;
	tables = xs_map_memory(sizeof(*tables));
	if (!tables || xs_python_find(&python, read_own, pages, (uintptr_t)object.dlfo_map_start))
		python.minor = 0;
	python.data = NULL;
}

void xs_python_stack_begin(struct xs_python_stack *stack)
{
	uint64_t state;

	stack->walk.frame = 0;
	if (!python.minor || !Py_IsInitialized())
		return;
	state = (uintptr_t)PyGILState_GetThisThreadState();
	if (!state)
		return;
	*stack = (struct xs_python_stack){ .python = python };
	stack->python.data = stack->pages;
	xs_python_begin(&stack->python, state, &stack->walk);
	stack->native = xs_python_native(&stack->python, &stack->walk);
}

bool xs_python_is_run_by(const struct xs_python_stack *stack, uintptr_t at, uintptr_t from,
			 uintptr_t to)
{
	if (!stack->walk.frame)
		return false;
	if (!stack->native)
		return at - stack->python.loop < stack->python.loop_size;
	return stack->native >= from && stack->native < to;
}

/* ---- what they are called ---- */

static __attribute__((noinline, cold)) uint64_t word_of(const struct xs_python *own,
							const struct xs_python_frame *frame)
{
	struct xs_python_text text;
	struct xs_part part = { text.text, 0 };
	uint32_t file;

	xs_python_file(own, frame->code, &text);
	part.length = text.length;
	file = xs_name_parts(&part, 1, 0);
	xs_python_function(own, frame->code, &text);
	part.length = text.length;
	return XS_FRAME_OF_PYTHON(xs_name_parts(&part, 1, file), xs_python_line(own, frame));
}

uint64_t xs_python_stack_next(struct xs_python_stack *stack, bool *ret_last)
{
	const struct xs_python *own = &stack->python;
	struct xs_python_frame frame;
	uint64_t key, word, check;
	uint32_t at;

	if (!xs_python_next(own, &stack->walk, &frame))
		return 0;
	*ret_last = frame.is_entry;
	if (frame.is_entry)
		stack->native = xs_python_native(own, &stack->walk);
	key = (frame.code ^ (uint64_t)frame.instruction << 40) * 0x9e3779b97f4a7c15ull;
	at = (uint32_t)(key >> 40) % KNOWN;
	key ^= xs_python_check_of(own, frame.code);
	word = atomic_load_explicit(&tables->known[at].word, memory_order_relaxed);
	check = atomic_load_explicit(&tables->known[at].check, memory_order_relaxed);
	if (!word || (check ^ word) != key) {
		word = word_of(own, &frame);
		atomic_store_explicit(&tables->known[at].check, key ^ word, memory_order_relaxed);
		atomic_store_explicit(&tables->known[at].word, word, memory_order_relaxed);
	}
	return word;
}
