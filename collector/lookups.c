/*
 * dlsym(): a program may ask the C library alone, and not the process, for the functions by which
 * it enters a sandbox, starts another program or finds its parent, as Python's ctypes does:
 * dlsym(dlopen("libc.so.6"), "prctl"). It gets those that we have in front of them. Every other
 * question goes on by a jump, since RTLD_NEXT and RTLD_DEFAULT mean the library that asks, which
 * the real dlsym() knows by the return address.
 *
 * All of it may run at any time, also before our constructors, and while the runtime of a sanitizer
 * starts: no function for text is called, and no sanitizer instruments this.
 */
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "elf_symbols.h"

const struct xs_in_front *xs_in_front;

#if defined(__x86_64__) || defined(__aarch64__)

#pragma weak dlvsym /* of glibc; see elf_symbols.c */

typedef void *lookup_function(void *handle, const char *name);
lookup_function *xs_next_dlsym __attribute__((visibility("hidden"), used));
lookup_function *xs_dlsym_way(void *handle, const char *name, const void *caller)
	__attribute__((visibility("hidden"), used));

/*
 * By a version who stands between us and glibc is passed over: there may be one, so the function
 * that is found is asked for the next one. On each processor the oldest version is always there.
 */
#if defined(__x86_64__)
#define VERSION "GLIBC_2.2.5"
#else
#define VERSION "GLIBC_2.17"
#endif

static lookup_function *of_glibc(void)
{
	lookup_function *found;

	*(void **)&found = dlvsym(RTLD_NEXT, "dlsym", VERSION);
	if (!found)
		*(void **)&found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	return found;
}

/* The first one from here on that is not ours; NULL: there is none. */
static void *of_another(const struct link_map *map, const char *name)
{
	for (; map; map = map->l_next) {
		struct xs_elf_symbols s = xs_elf_symbols_of(map);
		const ElfW(Sym) *symbol = map->l_ld == _DYNAMIC ? NULL : xs_elf_symbol(&s, name);

		if (symbol)
			return (void *)(map->l_addr + symbol->st_value);
	}
	return NULL;
}

/* The last call finds something: so none of ours leaves an error for dlerror(). */
__attribute__((constructor)) static void find(void)
{
	lookup_function *found = dlvsym ? of_glibc() : NULL, *next = NULL;

	if (!dlvsym) /* functions have no versions: the first one that comes behind us */
		*(void **)&found = of_another(xs_elf_self(), "dlsym");
	if (found)
		*(void **)&next = found(RTLD_NEXT, "dlsym");
	__atomic_store_n(&xs_next_dlsym, next ? next : found, __ATOMIC_RELAXED);
}

/* What we have in front of the C library's function of this name; NULL: nothing. */
static void *watched(const char *name)
{
	static const struct {
		char name[16];
		void *function;
	} all[] = {
#define ONE(name) { #name, (void *)name }
		ONE(prctl),   ONE(syscall),	ONE(clone),	   ONE(getppid),
		ONE(execl),   ONE(execle),	ONE(execlp),	   ONE(execv),
		ONE(execve),  ONE(execvp),	ONE(execvpe),	   ONE(execveat),
		ONE(fexecve), ONE(posix_spawn), ONE(posix_spawnp), ONE(_Fork),
#undef ONE
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (xs_elf_is_same(name, all[i].name))
			return all[i].function;
	return NULL;
}

/*
 * Ours only in place of the one that ours calls. Another library may have a function of that name,
 * which asks the C library for its own: if ours calls that one, ours must not be the answer.
 *
 * The last question is the program's, which decides what dlerror() says.
 */
static void *find_watched(void *handle, const char *name)
{
	void *behind = xs_next_dlsym(RTLD_NEXT, name), *found = xs_next_dlsym(handle, name);

	return found && found == behind ? watched(name) : found;
}

/* What comes behind us in the process, as who asks for all that it has would find it without us. */
static void *find_behind(void *handle, const char *name)
{
	void *found = xs_next_dlsym(RTLD_NEXT, name);

	(void)handle;
	/* by a call and not by a jump: we are who asks */
	__asm__ volatile("" : "+r"(found));
	return found;
}

/* Is it what we export? */
static bool is_ours(const void *found, const char *name)
{
	const struct link_map *self = xs_elf_self();
	struct xs_elf_symbols s = { NULL, NULL, NULL };
	const ElfW(Sym) * symbol;

	if (self)
		s = xs_elf_symbols_of(self);
	symbol = xs_elf_symbol(&s, name);
	return symbol && (uintptr_t)found == self->l_addr + symbol->st_value;
}

/*
 * Ours is found by the program's own handle, which stands for all that everybody sees: if nothing
 * else is there, it must not seem to be. What is found elsewhere may lie in another namespace.
 */
static void *find_in_front(void *handle, const char *name)
{
	void *real = xs_next_dlsym(handle, name);

	if (real && is_ours(real, name))
		return find_behind(handle, name) ? real : NULL;
	return real ? __atomic_load_n(&xs_in_front, __ATOMIC_ACQUIRE)->answer(name, real) : NULL;
}

/*
 * With these handles whoever asks from behind us, to have the next function, must not get ours; all
 * others find it by themselves.
 */
static bool is_of_caller(const void *handle)
{
	return handle == RTLD_NEXT || handle == RTLD_DEFAULT;
}

/* An indirect function (STT_GNU_IFUNC) may be resolved before we are bound to anything ourselves.
 */
static void *no_answer(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

/* The main program, which sees what everybody sees and nothing else. */
static bool is_program(const void *caller)
{
	const struct link_map *first = xs_elf_maps();
	Dl_info program, its;

	return first && dladdr(first->l_ld, &program) && dladdr(caller, &its) &&
	       program.dli_fbase == its.dli_fbase;
}

/* Is ours the only one that everybody sees? Others may have been opened for their openers alone. */
static bool is_only_ours(const void *handle, const char *name)
{
	void *first = xs_next_dlsym(RTLD_DEFAULT, name);

	return (handle == RTLD_NEXT || !first || is_ours(first, name)) &&
	       !xs_next_dlsym(RTLD_NEXT, name);
}

static lookup_function *way_in_front(void *handle, const char *name, const void *caller)
{
	if (!is_of_caller(handle))
		return find_in_front;
	if (!of_another(xs_elf_maps(), name))
		return find_behind;
	return is_program(caller) && is_only_ours(handle, name) ? find_behind : xs_next_dlsym;
}

lookup_function *xs_dlsym_way(void *handle, const char *name, const void *caller)
{
	const struct xs_in_front *front = __atomic_load_n(&xs_in_front, __ATOMIC_ACQUIRE);

	if (!__atomic_load_n(&xs_next_dlsym, __ATOMIC_RELAXED))
		find();
	if (!xs_next_dlsym)
		return no_answer;
	if (front && front->has(name))
		return way_in_front(handle, name, caller);
	return !is_of_caller(handle) && watched(name) ? find_watched : xs_next_dlsym;
}

/* Looks at the first letter. */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq xs_next_dlsym(%rip), %rax\n"
	"	testq %rax, %rax\n"
	"	je 3f\n"
	"	movzbl (%rsi), %r11d\n"
	"	subl $'c', %r11d\n"
	"	cmpl $'s' - 'c', %r11d\n"
	"	ja 2f\n"
	"	movl $0x1201d, %r10d\n" /* c, e, f, g, p, s */
	"	btl %r11d, %r10d\n"
	"	jc 3f\n"
	"2:	jmp *%rax\n"
	"3:	pushq %rdi\n"
	"	pushq %rsi\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 24\n"
	"	movq 24(%rsp), %rdx\n" /* where the call returns to */
	"	call xs_dlsym_way\n"
	"	addq $8, %rsp\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -24\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n"
	".globl xs_companion_dlsym\n"
	".type xs_companion_dlsym, @function\n"
	"xs_companion_dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	jmp dlsym\n"
	"	.cfi_endproc\n"
	".size xs_companion_dlsym, .-xs_companion_dlsym\n"
	".popsection\n");
#else
__asm__(".pushsection .text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	adrp x16, xs_next_dlsym\n"
	"	ldr x16, [x16, :lo12:xs_next_dlsym]\n"
	"	cbz x16, 3f\n"
	"	ldrb w17, [x1]\n"
	"	sub w17, w17, #'c'\n"
	"	cmp w17, #'s' - 'c'\n"
	"	b.hi 2f\n"
	"	mov w9, #0x201d\n" /* c, e, f, g, p, s */
	"	movk w9, #1, lsl #16\n"
	"	lsr w9, w9, w17\n"
	"	tbnz w9, #0, 3f\n"
	"2:	br x16\n"
	"3:	stp x0, x1, [sp, #-32]!\n"
	"	str x30, [sp, #16]\n"
	"	.cfi_adjust_cfa_offset 32\n"
	"	.cfi_rel_offset x30, 16\n"
	"	mov x2, x30\n" /* where the call returns to */
	"	bl xs_dlsym_way\n"
	"	mov x16, x0\n"
	"	ldr x30, [sp, #16]\n"
	"	ldp x0, x1, [sp], #32\n"
	"	.cfi_restore x30\n"
	"	.cfi_adjust_cfa_offset -32\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n"
	".globl xs_companion_dlsym\n"
	".type xs_companion_dlsym, %function\n"
	"xs_companion_dlsym:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	b dlsym\n"
	"	.cfi_endproc\n"
	".size xs_companion_dlsym, .-xs_companion_dlsym\n"
	".popsection\n");
#endif
#endif
