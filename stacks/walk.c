/*
 * From frame to frame by libunwind's remote unwinding, on copies: the thread goes on meanwhile.
 *
 * libunwind's own access by ptrace (_UPT_…) needs the thread to stand still until the last frame,
 * and maps its files anew whenever the walk goes from one to another. So it is given accessors of
 * ours. It finds an address's rule by the search table of the module, read in the process's memory.
 */
#include <libunwind.h>
#include <string.h>

#include "stacks.h"

/* libunwind exports it for this purpose, and declares it in no header that is installed. */
extern int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t space, unw_word_t ip,
					      unw_dyn_info_t *table, unw_proc_info_t *ret, int need,
					      void *user);

#define RULES 4096 /* of frames, that libunwind keeps */

static int find_rule(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *ret, int need,
		     void *user)
{
	const struct xs_module *module = xs_module_of(ip);
	unw_dyn_info_t table = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };

	if (!module || !module->table)
		return -UNW_ENOINFO;
	table.start_ip = module->start;
	table.end_ip = module->end;
	table.u.rti.segbase = module->table;
	table.u.rti.table_data = module->table + 12;
	table.u.rti.table_len = module->entries * 8ul / sizeof(unw_word_t);
	return _Ux86_64_dwarf_search_unwind_table(space, ip, &table, ret, need, user);
}

/* What it holds is freed with this program, which does not live long. */
static void put_rule(unw_addr_space_t space, unw_proc_info_t *info, void *user)
{
	(void)space;
	(void)info;
	(void)user;
}

static int find_dynamic(unw_addr_space_t space, unw_word_t *ret, void *user)
{
	(void)space;
	(void)ret;
	(void)user;
	return -UNW_ENOINFO;
}

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
			 void *user)
{
	(void)space;
	(void)user;
	return !write && xs_memory_read(address, value, sizeof(*value)) ? 0 : -UNW_EINVAL;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value,
			   int write, void *user)
{
	const struct user_regs_struct *r = &((const struct xs_thread *)user)->registers;
	const unsigned long long of[] = {
		[UNW_X86_64_RAX] = r->rax, [UNW_X86_64_RDX] = r->rdx, [UNW_X86_64_RCX] = r->rcx,
		[UNW_X86_64_RBX] = r->rbx, [UNW_X86_64_RSI] = r->rsi, [UNW_X86_64_RDI] = r->rdi,
		[UNW_X86_64_RBP] = r->rbp, [UNW_X86_64_RSP] = r->rsp, [UNW_X86_64_R8] = r->r8,
		[UNW_X86_64_R9] = r->r9,   [UNW_X86_64_R10] = r->r10, [UNW_X86_64_R11] = r->r11,
		[UNW_X86_64_R12] = r->r12, [UNW_X86_64_R13] = r->r13, [UNW_X86_64_R14] = r->r14,
		[UNW_X86_64_R15] = r->r15, [UNW_X86_64_RIP] = r->rip,
	};

	(void)space;
	if (((const struct xs_thread *)user)->untouched && number != UNW_X86_64_RSP &&
	    number != UNW_X86_64_RIP)
		return -UNW_EBADREG;
	if (write || number < 0 || (size_t)number >= sizeof(of) / sizeof(of[0]))
		return -UNW_EBADREG;
	*value = of[number];
	return 0;
}

static int access_float(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write,
			void *user)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)user;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *user)
{
	(void)space;
	(void)cursor;
	(void)user;
	return -UNW_EINVAL;
}

static int name(unw_addr_space_t space, unw_word_t address, char *text, size_t size,
		unw_word_t *offset, void *user)
{
	(void)space;
	(void)address;
	(void)text;
	(void)size;
	(void)offset;
	(void)user;
	return -UNW_ENOINFO;
}

static unw_addr_space_t make_space(void)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_rule,
		.put_unwind_info = put_rule,
		.get_dyn_info_list_addr = find_dynamic,
		.access_mem = access_memory,
		.access_reg = access_register,
		.access_fpreg = access_float,
		.resume = resume,
		.get_proc_name = name,
	};
	unw_addr_space_t space = unw_create_addr_space(&accessors, 0);

	if (space) {
		(void)unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
		(void)unw_set_cache_size(space, RULES, 0);
	}
	return space;
}

/*
 * Where a signal's handler returns to: what it interrupted is the next frame. libunwind says so
 * only of frames that have no call frame information.
 */
static bool is_trampoline(uintptr_t address)
{
	/* mov $SYS_rt_sigreturn, %rax; syscall */
	static const unsigned char code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	unsigned char there[sizeof(code)];

	return xs_memory_read(address, there, sizeof(there)) && !memcmp(there, code, sizeof(code));
}

static unw_addr_space_t process;

void xs_walk_forget(void)
{
	if (process)
		unw_flush_cache(process, 0, 0);
}

size_t xs_walk(const struct xs_thread *thread, uintptr_t *frames, size_t room, bool *ret_more)
{
	unw_cursor_t cursor;
	size_t n = 0;
	int step = 1;

	bool exact = true; /* an instruction that was interrupted, and called nobody */

	*ret_more = false;
	if (!process)
		process = make_space();
	xs_memory_stack(thread);
	if (!process || unw_init_remote(&cursor, process, (void *)(uintptr_t)thread) < 0)
		return 0;
	while (step > 0) {
		unw_word_t ip = 0, sp = 0, before = 0;

		(void)unw_get_reg(&cursor, UNW_REG_IP, &ip);
		(void)unw_get_reg(&cursor, UNW_REG_SP, &before);
		if (!ip || (n && !xs_module_is_code(ip - !exact)))
			break; /* a rule that did not hold, or the stack's end */
		if (n == room) {
			*ret_more = true;
			break;
		}
		frames[n++] = ip + exact;
		exact = is_trampoline(ip);
		step = unw_step(&cursor);
		if (step > 0 && (unw_get_reg(&cursor, UNW_REG_SP, &sp) < 0 || sp == before))
			break; /* it goes round in a circle */
	}
	/* the caller lies where a register says that is not known */
	*ret_more |= thread->untouched && step < 0;
	return n;
}
