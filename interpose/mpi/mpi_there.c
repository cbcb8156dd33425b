/*
 * Does a library that is loaded have a function? It runs while the dynamic loader binds somebody,
 * as mpi_probe.c does, and keeps its rules.
 */
#include "mpi_wrap.h"

#include "elf_symbols.h"

void *xs_mpi_probe(const char *name, const void *wrapper)
{
	for (const struct link_map *map = xs_elf_maps(); map; map = map->l_next) {
		struct xs_elf_symbols s = xs_elf_symbols_of(map);

		if (map->l_ld != _DYNAMIC && xs_elf_symbol(&s, name))
			return (void *)(uintptr_t)wrapper;
	}
	return NULL;
}
