/*
 * Looks into symbol tables. It runs while the dynamic loader binds somebody, as mpi_probe.c
 * (interpose/mpi) does, and keeps its rules.
 */
#include "elf_symbols.h"

#include <elf.h>
#include <stddef.h>

/*
 * What only one C library has: a program of musl's, which gets us by its environment, must start
 * all the same; MPI is not traced there.
 */
#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak)); /* musl's _r_debug */

const struct link_map *xs_elf_maps(void)
{
	return &_r_debug			   ? _r_debug.r_map
	       : &_dl_debug_addr && _dl_debug_addr ? _dl_debug_addr->r_map
						   : NULL;
}

bool xs_elf_is_same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return *a == *b;
}

struct xs_elf_symbols xs_elf_symbols_of(const struct link_map *map)
{
	struct xs_elf_symbols s = { NULL, NULL, NULL };
	/* musl leaves them as they are in the file */
	ElfW(Addr) base = &_r_debug ? 0 : map->l_addr;

	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			s.table = (const void *)(base + d->d_un.d_ptr);
		if (d->d_tag == DT_STRTAB)
			s.names = (const void *)(base + d->d_un.d_ptr);
		if (d->d_tag == DT_GNU_HASH)
			s.gnu_hash = (const void *)(base + d->d_un.d_ptr);
	}
	/* the vDSO's are not addresses */
	if ((uintptr_t)s.table < map->l_addr || (uintptr_t)s.gnu_hash < map->l_addr)
		s.gnu_hash = NULL;
	return s;
}

const ElfW(Sym) * xs_elf_symbol(const struct xs_elf_symbols *s, const char *name)
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

		if ((entry | 1) == (hash | 1) && s->table[index].st_shndx != SHN_UNDEF &&
		    xs_elf_is_same(s->names + s->table[index].st_name, name))
			return &s->table[index];
		if (entry & 1)
			return NULL;
	}
}

static bool is_function_at(const ElfW(Sym) * symbol, uintptr_t offset)
{
	return symbol->st_value == offset && symbol->st_shndx != SHN_UNDEF &&
	       (symbol->st_info & 0xf) == STT_FUNC;
}

const char *xs_elf_name_at(const struct link_map *map, uintptr_t address)
{
	struct xs_elf_symbols s = xs_elf_symbols_of(map);
	const uint32_t *buckets, *chain;
	uint32_t first;

	if (!s.table || !s.names || !s.gnu_hash)
		return NULL;
	first = s.gnu_hash[1];
	buckets = s.gnu_hash + 4 + s.gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
	chain = buckets + s.gnu_hash[0];
	for (uint32_t i = 0; i < s.gnu_hash[0]; i++) {
		uint32_t index = buckets[i];

		if (index < first)
			continue;
		do
			if (is_function_at(&s.table[index], address - map->l_addr))
				return s.names + s.table[index].st_name;
		while (!(chain[index++ - first] & 1));
	}
	return NULL;
}

const struct link_map *xs_elf_self(void)
{
	for (const struct link_map *map = xs_elf_maps(); map; map = map->l_next)
		if (map->l_ld == _DYNAMIC)
			return map;
	return NULL;
}
