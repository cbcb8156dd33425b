/*
 * Walking the calling thread's stack, for the call that is being recorded.
 *
 * Code is compiled without frame pointers, so each step follows the module's call frame information
 * (cfi.c). That is looked up once for each place in the code and kept in a table without locks. The
 * loader tells where an address belongs without its lock
 * (_dl_find_object, glibc 2.35), so a thread in the middle of dlopen() disturbs nobody. Code that
 * brings no such information (made at run time) is passed by its frame pointer, if it has one.
 *
 * No byte is read before it is known to be readable: stacks may be odd (coroutines, a handler's
 * own) and rules may be wrong. What is known is kept for each thread; the kernel is asked for each
 * page once. That holds for as long as each step is one that the code itself describes: the stack
 * that it stands on stays. From where a frame pointer was followed, which may be any number,
 * nothing counts that was known before; and no such step leaves the thread's stack.
 */
#include "stack.h"

#include "next.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "cfi.h"
#include "collector.h"
#include "python.h"
#include "self.h"
#include "shm.h"
#include "sys.h"

#define PAGE	   4096u
#define OWN_FRAMES 64u /* of ours, on the way: a few */
#if defined(__x86_64__)
#define HAVE_RULES 1 /* cfi.c knows the registers */
#else
#define HAVE_RULES 0
#endif
#define REACH (1u << 20) /* farther from what is known, it is another stack */

uint32_t xs_stack_depth;

/* From the C library, where it is new enough. */
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

/*
 * What is known about a place in the code. Written and read without a lock: `check` is the
 * exclusive or of the address and all other words, so a half-written entry is one of no address.
 * When a library is unloaded another one may come to the same place: all entries are forgotten then
 * (`closed`), and should the C library unload one by itself, `code`, the bytes before the address,
 * mostly tell.
 */
struct place {
	_Atomic uint64_t check, frame, rule, code;
};
#define PLACES	   8192u /* a power of two */
#define FEW_PLACES 256u	 /* another: those between handlers that record and what they interrupt */
static struct place few_places[FEW_PLACES];
static struct place *_Atomic places = few_places;
static _Atomic uint32_t place_count = FEW_PLACES; /* set after the table */
static _Atomic uint64_t closed;			  /* libraries, so far; part of `check` */
static uintptr_t own_start, own_size;
static _Atomic uint32_t program_name; /* string id of the program's own file */

struct frame {
	uintptr_t at; /* inside of the instruction that called, or was interrupted */
	uintptr_t sp, bp;
	bool guessed;		      /* by a frame pointer, which may be none */
	struct dl_find_object module; /* that `at` was found in last */
};

/* ---- reading the stack ---- */

static bool reach(uintptr_t address)
{
	struct xs_tls *t = &xs_tls;
	uintptr_t page = address & ~(uintptr_t)(PAGE - 1);

	if (page >= t->stack_high ? page - t->stack_high >= REACH : t->stack_low - page > REACH)
		t->stack_low = t->stack_high = page;
	while (t->stack_high <= page) {
		if (!xs_page_readable(t->stack_high))
			break;
		t->stack_high += PAGE;
	}
	while (t->stack_low > page) {
		if (!xs_page_readable(t->stack_low - PAGE))
			break;
		t->stack_low -= PAGE;
	}
	if (t->stack_low <= page && page < t->stack_high)
		return true;
	/* something else lies in between */
	if (!xs_page_readable(page))
		return false;
	t->stack_low = page;
	t->stack_high = page + PAGE;
	return true;
}

static void forget_pages(void)
{
	xs_tls.stack_low = xs_tls.stack_high = 0;
}

/* Sanitizers would see the application's stack read outside of its variables. */
__attribute__((no_sanitize("address", "thread"))) static bool load(uintptr_t address,
								   uintptr_t *ret)
{
	if (__builtin_expect(address < xs_tls.stack_low || address >= xs_tls.stack_high, 0) &&
	    !reach(address))
		return false;
	if (address % sizeof(*ret))
		return false;
	*ret = *(const uintptr_t *)address;
	return true;
}

/* ---- modules ---- */

static bool find_module(uintptr_t at, struct dl_find_object *module)
{
	if (at >= (uintptr_t)module->dlfo_map_start && at < (uintptr_t)module->dlfo_map_end)
		return true;
	if (_dl_find_object && !_dl_find_object((void *)at, module))
		return true;
	module->dlfo_map_start = module->dlfo_map_end = NULL;
	return false;
}

/*
 * The path of the file that is mapped at an address, as the kernel has it (/proc/self/maps). Rare.
 */
static uint32_t name_by_kernel(uintptr_t at, uint32_t build_id)
{
	enum { FROM, TO, RIGHTS, OFFSET, DEVICE, INODE, PATH };
	char text[256], path[512];
	uintptr_t range[2] = { 0, 0 };
	int fd = (int)xs_sys_open(AT_FDCWD, "/proc/self/maps", O_RDONLY);
	unsigned field = FROM;
	size_t length = 0;
	uint32_t name = 0;
	long n;

	if (fd < 0)
		return 0;
	while (!name && (n = xs_sys(SYS_read, fd, text, sizeof(text))) > 0)
		for (const char *c = text; c < text + n && !name; c++) {
			if (*c == '\n') {
				path[length] = '\0';
				if (at >= range[0] && at < range[1] && length)
					name = xs_name(path, build_id);
				field = FROM;
				length = range[0] = range[1] = 0;
			} else if (field < PATH && *c == (field == FROM ? '-' : ' ')) {
				field++;
			} else if (field <= TO) {
				range[field] = range[field] << 4 |
					       (uintptr_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
			} else if (field == PATH && (*c != ' ' || length) &&
				   length < sizeof(path) - 1) {
				path[length++] = *c;
			}
		}
	(void)xs_sys(SYS_close, fd);
	return name;
}

/*
 * String id of the module's build id as hexadecimal digits; 0: it has none. Its headers are in
 * memory.
 */
static uint32_t build_id_of(const struct dl_find_object *module)
{
	const ElfW(Ehdr) *head = module->dlfo_map_start;
	const ElfW(Phdr) *program = (const void *)((const char *)head + head->e_phoff);
	const char *bias = (const char *)module->dlfo_link_map->l_addr;

	if (memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_phoff + head->e_phnum * sizeof(*program) > PAGE)
		return 0;
	for (unsigned i = 0; i < head->e_phnum; i++) {
		const char *p = bias + program[i].p_vaddr, *end = p + program[i].p_memsz;

		if (program[i].p_type != PT_NOTE)
			continue;
		while (p + sizeof(ElfW(Nhdr)) < end) {
			const ElfW(Nhdr) *note = (const void *)p;
			const char *name = p + sizeof(*note);
			const unsigned char *id =
				(const void *)(name + ((note->n_namesz + 3) & ~3u));
			char text[2 * 32 + 1];
			unsigned n = 0;

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    !memcmp(name, "GNU", 4)) {
				for (; n < note->n_descsz && n < 32; n++) {
					text[2 * n] = "0123456789abcdef"[id[n] >> 4];
					text[2 * n + 1] = "0123456789abcdef"[id[n] & 15];
				}
				text[2 * n] = '\0';
				return xs_name(text, 0);
			}
			p = (const char *)id + ((note->n_descsz + 3) & ~3u);
		}
	}
	return 0;
}

static uint32_t name_of(const struct dl_find_object *module, uintptr_t at)
{
	const char *name = module->dlfo_link_map->l_name;
	uint32_t id;

	if (name[0] == '/')
		return xs_name(name, build_id_of(module));
	/*
	 * the program itself has no name here, and dlopen("./plugin.so") leaves one that is of no
	 * use elsewhere
	 */
	if (!name[0] && atomic_load_explicit(&program_name, memory_order_relaxed))
		return atomic_load_explicit(&program_name, memory_order_relaxed);
	id = name_by_kernel(at, build_id_of(module));
	if (!name[0])
		atomic_store_explicit(&program_name, id, memory_order_relaxed);
	return id;
}

/* ---- places ---- */

__attribute__((no_sanitize("address"))) static uint64_t code_before(uintptr_t at)
{
	uint64_t code;

	__builtin_memcpy(&code, (const void *)(at + 1 - sizeof(code)), sizeof(code));
	return code;
}

uint64_t xs_stack_place(uintptr_t after_call)
{
	struct dl_find_object module = { 0 };

	if (!find_module(after_call - 1, &module))
		return XS_FRAME_RAW | after_call;
	return XS_FRAME(name_of(&module, after_call - 1),
			after_call - module.dlfo_link_map->l_addr);
}

uint64_t xs_stack_unloaded(void)
{
	return atomic_load_explicit(&closed, memory_order_relaxed);
}

static struct place *place_in_table(uintptr_t at)
{
	uint32_t count = atomic_load_explicit(&place_count, memory_order_acquire);
	struct place *table = atomic_load_explicit(&places, memory_order_relaxed);

	return &table[(at * 0x9e3779b97f4a7c15ull >> 32) & (count - 1)];
}

/*
 * The word for the trace, 0 if it is not wanted, and the way on if it is known: from the table or
 * from the module.
 */
static uint64_t place_of(struct frame *frame, bool named, struct xs_rule *ret_rule)
{
	struct place *place = place_in_table(frame->at);
	uint64_t word, rule, code,
		key = frame->at ^ atomic_load_explicit(&closed, memory_order_relaxed) << 48;

	if (!find_module(frame->at, &frame->module))
		return XS_FRAME_RAW | (frame->at + 1);
	word = atomic_load_explicit(&place->frame, memory_order_relaxed);
	rule = atomic_load_explicit(&place->rule, memory_order_relaxed);
	code = atomic_load_explicit(&place->code, memory_order_relaxed);
	if ((atomic_load_explicit(&place->check, memory_order_relaxed) ^ word ^ rule ^ code) !=
		    key ||
	    code != code_before(frame->at) || (named && !word)) {
		word = named ? XS_FRAME(name_of(&frame->module, frame->at),
					frame->at + 1 - frame->module.dlfo_link_map->l_addr)
			     : 0;
		if (!HAVE_RULES || !frame->module.dlfo_eh_frame ||
		    !xs_cfi_find(frame->module.dlfo_eh_frame, frame->at, ret_rule))
			return word; /* not to be kept: the code is not known to be readable */
		memcpy(&rule, ret_rule, sizeof(rule));
		code = code_before(frame->at);
		atomic_store_explicit(&place->check, key ^ word ^ rule ^ code,
				      memory_order_relaxed);
		atomic_store_explicit(&place->frame, word, memory_order_relaxed);
		atomic_store_explicit(&place->rule, rule, memory_order_relaxed);
		atomic_store_explicit(&place->code, code, memory_order_relaxed);
	}
	memcpy(ret_rule, &rule, sizeof(*ret_rule));
	return word;
}

__attribute__((visibility("default"))) int dlclose(void *handle)
{
	static _Atomic(void *) real; /* it waits for the loader's lock itself */
	int (*function)(void *) = xs_next(&real, "dlclose");
	int result = function(handle);

	atomic_fetch_add_explicit(&closed, 1, memory_order_relaxed);
	return result;
}

/* ---- walking ---- */

/* To what a signal interrupted, by the registers that the kernel saved (struct ucontext). */
static bool step_signal(struct frame *frame)
{
	uintptr_t at, sp, bp;

	if (!load(frame->sp + 168, &at) || !load(frame->sp + 160, &sp) ||
	    !load(frame->sp + 120, &bp))
		return false;
	frame->at = at; /* not behind a call: it has not run yet */
	frame->sp = sp;
	frame->bp = bp;
	return at;
}

static bool step_by_rule(struct frame *frame, const struct xs_rule *rule)
{
	uintptr_t cfa = rule->flags & XS_RULE_CFA_OF_RBP ? frame->bp : frame->sp, at,
		  bp = frame->bp;

	if (rule->flags & XS_RULE_OUTERMOST)
		return false;
	if (rule->flags & XS_RULE_SIGNAL)
		return step_signal(frame);
	cfa += (uintptr_t)(intptr_t)rule->cfa;
	if (rule->flags & XS_RULE_CFA_LOADED && !load(cfa, &cfa))
		return false;
	if (cfa <= frame->sp || !load(cfa - 8, &at))
		return false;
	if (rule->flags & XS_RULE_RBP_AT_CFA && !load(cfa + (uintptr_t)(intptr_t)rule->rbp, &bp))
		return false;
	if (rule->flags & XS_RULE_RBP_AT_RBP &&
	    !load(frame->bp + (uintptr_t)(intptr_t)rule->rbp, &bp))
		return false;
	frame->at = at - 1;
	frame->sp = cfa;
	frame->bp = bp;
	return at;
}

/*
 * Where the stack ends at the latest: the C library lays a thread's own data at the top of its
 * stack. The first thread's data lies below the stack; nothing comes and goes above that one.
 */
static uintptr_t end_of_stack(uintptr_t sp)
{
	uintptr_t own = (uintptr_t)__builtin_thread_pointer();

	return sp < own ? own : UINTPTR_MAX;
}

/*
 * Code without call frame information: made at run time, and mostly with frame pointers. Others use
 * the register for anything, also for the address of memory that another thread unmaps just now.
 */
static bool step_by_pointer(struct frame *frame)
{
	uintptr_t at, bp;

	if (!frame->guessed)
		forget_pages();
	frame->guessed = true;
	if (frame->bp < frame->sp || frame->bp - frame->sp >= REACH ||
	    frame->bp >= end_of_stack(frame->sp) || !load(frame->bp, &bp) ||
	    !load(frame->bp + 8, &at))
		return false;
	if (at < PAGE || (bp <= frame->bp && !find_module(at - 1, &frame->module)))
		return false;
	frame->at = at - 1;
	frame->sp = frame->bp + 16;
	frame->bp = bp;
	return true;
}

/* The frame that this is compiled into. */
#if defined(__x86_64__)
#define BEGIN_HERE(frame)                                                     \
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" \
			 : "=r"((frame).at), "=r"((frame).sp), "=r"((frame).bp))
#else /* there lie the caller's and the return address */
#define BEGIN_HERE(frame) ((frame).sp = (frame).bp = (uintptr_t)__builtin_frame_address(0))
#endif

/* Python's functions that a native frame of the interpreter runs. How many, at most `room`. */
static uint32_t put_python(struct xs_python_stack *python, uint64_t *frames, uint32_t room,
			   bool *ret_more)
{
	uint32_t count = 0;
	bool last = false;
	uint64_t word;

	while (!last && (word = xs_python_stack_next(python, &last))) {
		if (count == room) {
			*ret_more = true;
			break;
		}
		frames[count++] = word;
	}
	return count;
}

uint32_t xs_stack_frames(uint64_t *frames, uint32_t room, bool *ret_more)
{
	struct frame frame = { .at = (uintptr_t)xs_stack_frames + 1 };
	struct xs_python_stack python;
	uint32_t count = 0;
	bool go_on = true;

	*ret_more = false;
	xs_python_stack_begin(&python);
	BEGIN_HERE(frame);
	for (uint32_t steps = 0; go_on && steps < room + OWN_FRAMES; steps++) {
		struct xs_rule rule = { .flags = 0 };
		uint64_t word = place_of(&frame, true, &rule);
		uintptr_t at = frame.at, sp = frame.sp;
		uint32_t functions = 0;

		go_on = rule.flags & XS_RULE_VALID ? step_by_rule(&frame, &rule)
						   : step_by_pointer(&frame);
		if (at - own_start < own_size)
			continue;
		if (count == room) {
			*ret_more = true;
			break;
		}
		if (rule.flags & XS_RULE_SIGNAL) /* it may have been changing its frames */
			python.walk.frame = 0;
		if (go_on && xs_python_is_run_by(&python, at, sp, frame.sp))
			functions = put_python(&python, frames + count, room - count, ret_more);
		if (!functions)
			frames[count++] = word;
		count += functions;
	}
	return count;
}

/* ---- is an interrupted function still there? ---- */

#define DEEPEST 4096u /* frames */
/* A signal's frame has more bytes than all that lies between an event's function and this one. */
#define SIGNAL_FRAME 768u

static bool on_signal_stack(void)
{
	stack_t stack;

	return !xs_sys(SYS_sigaltstack, NULL, &stack) && stack.ss_flags & SS_ONSTACK;
}

/* By addresses alone: who interrupted it on its own stack lies below it. */
static bool may_be_below(uintptr_t slot)
{
	return on_signal_stack() || (uintptr_t)__builtin_frame_address(0) + SIGNAL_FRAME < slot;
}

enum whereabouts { IS_GONE, IS_THERE, IS_UNKNOWN };

/*
 * From the given frame on; interrupted: there is a signal's frame between the two. Slot 0: the
 * signal's frame itself is looked for.
 */
static enum whereabouts find_frame(struct frame frame, uintptr_t slot, bool interrupted)
{
	bool passed_signal = !interrupted;

	for (uint32_t steps = 0; HAVE_RULES && steps < DEEPEST; steps++) {
		struct xs_rule rule = { .flags = 0 };
		uintptr_t before = frame.sp;

		place_of(&frame, false, &rule);
		if (!(rule.flags & XS_RULE_VALID))
			break;
		if (rule.flags & XS_RULE_OUTERMOST)
			return IS_GONE;
		if (!step_by_rule(&frame, &rule))
			break;
		if (rule.flags & XS_RULE_SIGNAL && !slot)
			return IS_THERE;
		if (rule.flags & XS_RULE_SIGNAL)
			passed_signal = true;
		else if (passed_signal && frame.sp - sizeof(void *) == slot)
			return IS_THERE;
		else if (before <= slot && slot < frame.sp)
			return IS_GONE; /* another function's frame lies there by now */
	}
	return IS_UNKNOWN;
}

bool xs_stack_has(uintptr_t slot)
{
	struct frame frame = { .at = (uintptr_t)xs_stack_has + 1 };
	enum whereabouts found;

	BEGIN_HERE(frame);
	found = find_frame(frame, slot, true);
	return found == IS_UNKNOWN ? may_be_below(slot) : found == IS_THERE;
}

bool xs_stack_came_by(uintptr_t slot)
{
	struct frame frame = { .at = (uintptr_t)xs_stack_came_by + 1 };

	BEGIN_HERE(frame);
	return find_frame(frame, slot, false) != IS_GONE;
}

bool xs_in_handler(void)
{
	struct frame frame = { .at = (uintptr_t)xs_in_handler + 1 };

	BEGIN_HERE(frame);
	return on_signal_stack() || find_frame(frame, 0, true) == IS_THERE;
}

void xs_stack_init(uint32_t depth)
{
	struct dl_find_object own;
	struct place *table;

	if (!depth || !_dl_find_object || _dl_find_object((void *)(uintptr_t)xs_stack_init, &own))
		return;
	if (place_count == FEW_PLACES) {
		table = xs_map_memory(PLACES * sizeof(*table));
		if (!table)
			return;
		atomic_store_explicit(&places, table, memory_order_relaxed);
		atomic_store_explicit(&place_count, PLACES, memory_order_release);
	}
	own_start = (uintptr_t)own.dlfo_map_start;
	own_size = (uintptr_t)own.dlfo_map_end - own_start;
	xs_python_init_own();
	xs_stack_depth = depth;
}
