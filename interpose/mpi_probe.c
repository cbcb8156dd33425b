/*
 * Functions that are not in every MPI library. Programs ask whether their library has them by a weak symbol (mpi4py does), and must get the
 * answer that they would get without us, not our wrapper.
 *
 * So once the programs's own libraries are bound, our symbols of these functions become indirect ones (STT_GNU_IFUNC): whoever is loaded later asks
 * a function of ours, which looks into the libraries that are there then. They are not indirect from the beginning since the dynamic
 * loader binds the program's libraries before this one, and warns about indirect symbols of a library that is not bound yet.
 */
#include "mpi_wrap.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

struct symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *gnu_hash;
};

static struct symbols symbols_of(const struct link_map *map)
{
	struct symbols s = { NULL, NULL, NULL };

	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			s.table = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_STRTAB)
			s.names = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_GNU_HASH)
			s.gnu_hash = (const void *)d->d_un.d_ptr;
	}
	/* the vDSO's are not addresses */
	if ((uintptr_t)s.table < map->l_addr || (uintptr_t)s.gnu_hash < map->l_addr)
		s.gnu_hash = NULL;
	return s;
}

static const ElfW(Sym) *find_symbol(const struct symbols *s, const char *name)
{
	uint32_t hash = 5381, count, first, index;
	const uint32_t *buckets, *chain;

	if (!s->table || !s->names || !s->gnu_hash || !s->gnu_hash[0])
		return NULL;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	count = s->gnu_hash[0];
	first = s->gnu_hash[1];
	buckets = s->gnu_hash + 4 + s->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
	chain = buckets + count;
	index = buckets[hash % count];
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t entry = chain[index - first];

		if ((entry | 1) == (hash | 1) && s->table[index].st_shndx != SHN_UNDEF && !strcmp(s->names + s->table[index].st_name, name))
			return &s->table[index];
		if (entry & 1)
			return NULL;
	}
}

static const struct link_map *self(void)
{
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
		if (map->l_ld == _DYNAMIC)
			return map;
	return NULL;
}

/* Runs while the dynamic loader binds somebody: nothing of it may be called. */
void *xs_mpi_probe(const char *name, void *wrapper)
{
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		struct symbols s = symbols_of(map);

		if (map->l_ld != _DYNAMIC && find_symbol(&s, name))
			return wrapper;
	}
	return NULL;
}

__attribute__((constructor)) static void become_indirect(void)
{
	const struct link_map *map = self();
	struct symbols s = { NULL, NULL, NULL };
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = UINTPTR_MAX, to = 0;

	if (map)
		s = symbols_of(map);
	for (uint32_t i = 0; i < xs_mpi_optional_count; i++) {
		const ElfW(Sym) *symbol = find_symbol(&s, xs_mpi_optional[i].name);

		if (!symbol)
			return;
		if ((uintptr_t)symbol < from)
			from = (uintptr_t)symbol;
		if ((uintptr_t)(symbol + 1) > to)
			to = (uintptr_t)(symbol + 1);
	}
	from &= ~(page - 1);
	to = (to + page - 1) & ~(page - 1);
	if (from >= to || mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) < 0)
		return;
	for (uint32_t i = 0; i < xs_mpi_optional_count; i++) {
		ElfW(Sym) *symbol = (ElfW(Sym) *)(uintptr_t)find_symbol(&s, xs_mpi_optional[i].name);

		symbol->st_value = (uintptr_t)xs_mpi_optional[i].probe - map->l_addr;
		symbol->st_info = ELF64_ST_INFO(ELF64_ST_BIND(symbol->st_info), STT_GNU_IFUNC);
	}
	(void)mprotect((void *)from, to - from, PROT_READ);
}
