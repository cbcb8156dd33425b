/*
 * The MPI library behind us, and what it defines.
 */
#include "mpi_wrap.h"

#include <dlfcn.h>
#include <link.h>

static void *library; /* handle of the one that defines PMPI_Init */
int (*xs_mpi_type_size)(xs_word type, int64_t *size);

void *xs_mpi_find_in(const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

void *xs_mpi_find_data(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	return found ? found : xs_mpi_find_in(name);
}

void *xs_mpi_find_behind(const char *name, void *caller)
{
	void *found = dlsym(RTLD_NEXT, name), *handle;
	Dl_info info;

	if (found)
		return found;
	/*
	 * a library that dlopen() loads has its dependencies in a scope of its own, which only its
	 * own code can search
	 */
	if (!dladdr(caller, &info) || !info.dli_fname[0])
		return NULL;
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	found = dlsym(handle, name);
	dlclose(handle);
	return found;
}

static const char *soname_of(const struct link_map *map)
{
	const char *strings = NULL;
	size_t at = 0;

	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			strings = (const char *)d->d_un.d_ptr;
		if (d->d_tag == DT_SONAME)
			at = d->d_un.d_val;
	}
	return strings && at ? strings + at : "";
}

#pragma weak dladdr1 /* glibc's: see elf_symbols.c */

const char *xs_mpi_library_open(void *caller)
{
	void *init = xs_mpi_find_behind("PMPI_Init", caller);
	struct link_map *map;
	Dl_info info;

	if (!init || !dladdr1 || !dladdr1(init, &info, (void **)&map, RTLD_DL_LINKMAP))
		return NULL;
	library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
	*(void **)&xs_mpi_type_size = xs_mpi_find_in("PMPI_Type_size_x");
	return soname_of(map);
}
