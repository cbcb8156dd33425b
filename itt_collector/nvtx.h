/*
 * What the files of NVTX share: a program's tables of functions, which we fill in and may have to
 * hand on to a library of the user's own.
 */
#ifndef XS_NVTX_H
#define XS_NVTX_H

#include "itt.h"
#include "nvtx_abi.h"

/* Calls the user's library's function of the table next_<table>, if it has one. */
#define NEXT(table, place, type, ...) \
	(next_##table[place] ? ((type)next_##table[place])(__VA_ARGS__) : (void)0)

/* As UTF-8, which is cut where there is no more room. */
#define NVTX_WIDE_MAX 512u
const char *nvtx_wide(char text[NVTX_WIDE_MAX], const wchar_t *wide);

typedef int nvtx_get_module(int module, nvtx_place **ret_table, unsigned *ret_size);

#define NVTX_OURS(function) ((void (*)(void))(function))

/* What stands in the table before the user's library has filled in its functions. */
void nvtx_note(nvtx_get_module *get, int module, void (**ret_before)(void), unsigned count);
/*
 * Puts ours there. `next` has what nvtx_note() found: where that still stands it calls us, and the
 * user has nothing. others: there is a library of the user's.
 */
void nvtx_take(nvtx_get_module *get, int module, void (*const *ours)(void), void (**next)(void),
	       unsigned count, bool others);

/* Of a handle that the program holds; NULL: the default domain. */
__itt_domain *nvtx_domain_of(const void *handle);
/* The same object as the user's library calls it. */
void *nvtx_theirs_of(const void *handle);
/* The user's library's function of this name, by which it is initialised; NULL: there is none. */
void *nvtx_users(const char *function);

/* ---- nvtx_cuda.c ---- */

void nvtx_cuda_note(nvtx_get_module *get);
void nvtx_cuda_take(nvtx_get_module *get, bool others);

#endif
