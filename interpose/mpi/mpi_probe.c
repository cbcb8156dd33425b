/*
 * Functions that are not there, and must not seem to be: programs ask by weak symbols and dlsym()
 * whether an MPI library is loaded, and which functions it has (mpi4py asks both), and must get the
 * answer that they would get without us.
 *
 * So our own table of symbols is kept true. A program that is linked with MPI has its library when
 * we are loaded: what that lacks is taken out of the table. In any other program nothing is in it,
 * until dlopen() is called. What that binds needs an answer in the middle of it: meanwhile all are
 * in the table, those that not every library has as indirect symbols (STT_GNU_IFUNC), which look
 * into the libraries that are there then. The next dlopen(), or dlsym() for such a name, finds out
 * whether an MPI library came. dlopen() and dlsym() are passed on by a jump, since they look at who
 * called them.
 *
 * All of it may run at any time: while the dynamic loader binds somebody, and while the runtime of
 * a sanitizer starts, which asks dlsym() for the string functions that it stands in front of, and
 * cannot be called before it knows them. So no string function is called, and no sanitizer
 * instruments this.
 */
#include "mpi_wrap.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>

#include "elf_symbols.h"
#include "sys.h"

#pragma weak dlvsym /* of glibc; see elf_symbols.c */

#define SYMBOLS 4096u
static struct {
	ElfW(Sym) * symbol;
	ElfW(Addr) value;
	uint16_t section;
	void *(*probe)(void); /* NULL: every library has it */
} ours[SYMBOLS];
static uint32_t count;
static uintptr_t first_page, end_page, base;
enum mode { GIVEN, ALL, NONE, SETTLED };
static _Atomic uint32_t mode, busy; /* mode: of the table */

/* Names that the table may have; of all others it has none. */
static bool is_of_mpi(const char *name)
{
	return (name[0] | 0x20) == 'm' && (name[1] | 0x20) == 'p' && (name[2] | 0x20) == 'i' &&
	       name[3] == '_';
}

static uint32_t last_symbol(const struct xs_elf_symbols *s)
{
	uint32_t buckets = s->gnu_hash[0], first = s->gnu_hash[1], last = 0;
	const uint32_t *bucket = s->gnu_hash + 4 + s->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4),
		       *chain = bucket + buckets;

	for (uint32_t i = 0; i < buckets; i++)
		last = bucket[i] > last ? bucket[i] : last;
	while (last >= first && !(chain[last - first] & 1))
		last++;
	return last;
}

static void find_ours(void)
{
	const struct link_map *map = xs_elf_self();
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE); /* no system call */
	struct xs_elf_symbols s;

	if (!map)
		return;
	s = xs_elf_symbols_of(map);
	if (!s.gnu_hash)
		return;
	base = map->l_addr;
	for (uint32_t i = s.gnu_hash[1], last = last_symbol(&s); i <= last && count < SYMBOLS;
	     i++) {
		const char *name = s.names + s.table[i].st_name;

		if (!is_of_mpi(name))
			continue;
		ours[count].symbol = (ElfW(Sym) *)(uintptr_t)&s.table[i];
		ours[count].value = s.table[i].st_value;
		ours[count].section = s.table[i].st_shndx;
		for (uint32_t k = 0; k < xs_mpi_optional_count; k++)
			if (xs_elf_is_same(name, xs_mpi_optional[k].name))
				ours[count].probe = xs_mpi_optional[k].probe;
		if (!first_page || (uintptr_t)ours[count].symbol < first_page)
			first_page = (uintptr_t)ours[count].symbol;
		if ((uintptr_t)(ours[count].symbol + 1) > end_page)
			end_page = (uintptr_t)(ours[count].symbol + 1);
		count++;
	}
	first_page &= ~(page - 1);
	end_page = (end_page + page - 1) & ~(page - 1);
}

static void set_table(enum mode wanted)
{
	if (!count || xs_sys_always(SYS_mprotect, first_page, end_page - first_page,
				    PROT_READ | PROT_WRITE) < 0)
		return;
	for (uint32_t i = 0; i < count; i++) {
		ElfW(Sym) *symbol = ours[i].symbol;
		bool there = wanted == ALL ||
			     (wanted == SETTLED && (!ours[i].probe || ours[i].probe()));
		bool indirect = wanted == ALL && ours[i].probe;

		/* the dynamic loader decides by the value */
		symbol->st_value = indirect ? (uintptr_t)ours[i].probe - base
				   : there  ? ours[i].value
					    : 0;
		symbol->st_info = ELF64_ST_INFO(ELF64_ST_BIND(symbol->st_info),
						indirect ? STT_GNU_IFUNC : STT_FUNC);
		symbol->st_shndx = there ? ours[i].section : SHN_UNDEF;
	}
	(void)xs_sys_always(SYS_mprotect, first_page, end_page - first_page, PROT_READ);
	atomic_store_explicit(&mode, wanted, memory_order_relaxed);
}

static void look_alone(bool opening)
{
	if (!count)
		find_ours();
	if (xs_mpi_probe("PMPI_Init", ours))
		set_table(SETTLED);
	else if (opening != (atomic_load_explicit(&mode, memory_order_relaxed) == ALL))
		set_table(opening ? ALL : NONE);
}

/*
 * Something may be bound from now on (opening), or was. No signal ends the thread, or makes it
 * leave, in the middle of it.
 */
static void look(bool opening)
{
	const uint64_t every_signal = UINT64_MAX;
	uint64_t before;

	if (atomic_load_explicit(&mode, memory_order_relaxed) == SETTLED)
		return;
	if (!xs_sys_begin() || xs_sys_always(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal,
					     &before, sizeof(before)) < 0) {
		xs_sys_end();
		return;
	}
	/* else another thread does it */
	if (!atomic_exchange_explicit(&busy, 1, memory_order_acquire)) {
		look_alone(opening);
		atomic_store_explicit(&busy, 0, memory_order_release);
	}
	(void)xs_sys_always(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	xs_sys_end();
}

__attribute__((constructor)) static void first_look(void)
{
	look(false);
}

/*
 * dlsym() and dlopen() have versions in glibc, and none elsewhere: asked for by a version, who
 * stands between us and glibc is passed over.
 */
static void *real(const char *name)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };
	void *found = NULL;

	for (const struct link_map *map = dlvsym ? NULL : xs_elf_maps(); map && !found;
	     map = map->l_next) {
		struct xs_elf_symbols s = xs_elf_symbols_of(map);
		const ElfW(Sym) *symbol = map->l_ld == _DYNAMIC ? NULL : xs_elf_symbol(&s, name);

		found = symbol ? (void *)(map->l_addr + symbol->st_value) : NULL;
	}
	for (size_t i = 0; dlvsym && !found && i < sizeof(versions) / sizeof(versions[0]); i++)
		found = dlvsym(RTLD_NEXT, name, versions[i]);
	return found;
}

/* libxstrace.so's, which gives Level Zero's loader its layer: it comes behind this library. */
static void *next_dlopen(void)
{
	void *(*find)(void *handle, const char *name);

	*(void **)&find = real("dlsym");
	return find(RTLD_NEXT, "dlopen");
}

XS_EXPORT void *dlopen(const char *path, int flags)
{
	static void *(*next)(const char *path, int flags);

	if (__builtin_expect(!next, 0))
		*(void **)&next = next_dlopen();
	if (path)
		look(true);
	if (path && xs_elf_is_same(path, "libunitrace_mpi.so") && xs_elf_self())
		path = xs_elf_self()->l_name;
	return next(path, flags);
}

/*
 * For other names the table stays as it is: dlopen() may be at work, in this thread, whose
 * libxstrace.so looks something up on the way, or in another one.
 */
XS_EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*next)(void *restrict handle, const char *restrict name);

	if (__builtin_expect(!next, 0))
		*(void **)&next = xs_companion_dlsym ? (void *)(uintptr_t)xs_companion_dlsym
						     : real("dlsym");
	if (is_of_mpi(name))
		look(false);
	return next(handle, name);
}
