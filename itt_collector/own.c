/*
 * This library's own functions by name, from its own table of symbols.
 *
 * A static ittnotify asks for 250 names at the program's first event. dlsym() takes 120 ns for
 * each, and for those that we do not have it allocates the text of an error.
 */
#include "own.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))
extern ElfW(Dyn) _DYNAMIC[] HIDDEN;	     /* made by the linker */
extern const ElfW(Ehdr) __ehdr_start HIDDEN; /* where the library begins */

/* Whether the loader has made addresses of the offsets in there differs. */
static const void *place(ElfW(Addr) value)
{
	ElfW(Addr) base = (ElfW(Addr))&__ehdr_start;

	return (const void *)(value < base ? base + value : value);
}

bool itt_own_open(struct itt_own *own)
{
	const uint32_t *hash = NULL;

	*own = (struct itt_own){ 0 };
	for (const ElfW(Dyn) *row = _DYNAMIC; row->d_tag != DT_NULL; row++)
		switch (row->d_tag) {
		case DT_SYMTAB:
			own->symbols = place(row->d_un.d_ptr);
			break;
		case DT_STRTAB:
			own->names = place(row->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			hash = place(row->d_un.d_ptr);
			break;
		default:
			break;
		}
	if (!own->symbols || !own->names || !hash)
		return false;
	own->bucket_count = hash[0];
	own->first = hash[1];
	/* between the head and the buckets lie hash[2] words of a filter */
	own->buckets = (const uint32_t *)((const ElfW(Addr) *)(hash + 4) + hash[2]);
	return own->bucket_count != 0;
}

void *itt_own_function(const struct itt_own *own, const char *name, size_t length)
{
	const uint32_t *chains = own->buckets + own->bucket_count;
	uint32_t hash = 5381, at;

	for (size_t i = 0; i < length; i++)
		hash = hash * 33 + (unsigned char)name[i];
	at = own->buckets[hash % own->bucket_count];
	if (at < own->first)
		return NULL;
	for (;; at++) {
		const ElfW(Sym) *symbol = (const ElfW(Sym) *)own->symbols + at;
		uint32_t chain = chains[at - own->first];
		const char *text = own->names + symbol->st_name;

		/* the lowest bit says that the chain ends */
		if ((chain | 1) == (hash | 1) && !strncmp(text, name, length) && !text[length])
			return symbol->st_shndx == SHN_UNDEF
				       ? NULL
				       : (void *)((uintptr_t)&__ehdr_start + symbol->st_value);
		if (chain & 1)
			return NULL;
	}
}
