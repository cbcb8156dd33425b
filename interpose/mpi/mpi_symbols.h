/*
 * The symbol tables of the libraries that are there, without the dynamic loader's help: see
 * mpi_probe.c.
 */
#ifndef XS_MPI_SYMBOLS_H
#define XS_MPI_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct xs_mpi_symbols {
	const ElfW(Sym) * table;
	const char *names;
	const uint32_t *gnu_hash;
};

/* All that is loaded, and this library among it; NULL: not known. */
const struct link_map *xs_mpi_maps(void);
const struct link_map *xs_mpi_self(void);
struct xs_mpi_symbols xs_mpi_symbols_of(const struct link_map *map);
/* NULL: the library does not define it. */
const ElfW(Sym) * xs_mpi_symbol(const struct xs_mpi_symbols *s, const char *name);
/* As strcmp(), which must not be called here. */
bool xs_mpi_is_same(const char *a, const char *b);

#endif
