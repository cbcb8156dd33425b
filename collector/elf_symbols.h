/*
 * The symbol tables of the libraries that are there, without the dynamic loader's help:
 * lookups.c, mpi_probe.c (interpose/mpi).
 */
#ifndef XS_SYMBOLS_H
#define XS_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct xs_elf_symbols {
	const ElfW(Sym) * table;
	const char *names;
	const uint32_t *gnu_hash;
};

/* All that is loaded, and this library among it; NULL: not known. */
const struct link_map *xs_elf_maps(void);
const struct link_map *xs_elf_self(void);
struct xs_elf_symbols xs_elf_symbols_of(const struct link_map *map);
/* NULL: the library does not define it. */
const ElfW(Sym) * xs_elf_symbol(const struct xs_elf_symbols *s, const char *name);
/* The name of a function that begins at the address; NULL: there is none that others may use. */
const char *xs_elf_name_at(const struct link_map *map, uintptr_t address);
/* As strcmp(), which must not be called here. */
bool xs_elf_is_same(const char *a, const char *b);

/*
 * What a backend has in front of functions of a library that is not the C library, wherever it is
 * and whenever it comes: dlsym() answers with it (lookups.c).
 */
struct xs_in_front {
	bool (*has)(const char *name);
	/* Instead of what was found. */
	void *(*answer)(const char *name, void *found);
};
extern const struct xs_in_front *xs_in_front __attribute__((visibility("hidden")));

#endif
