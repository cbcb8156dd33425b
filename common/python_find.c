/*
 * Where an interpreter is: by the dynamic symbols of an ELF file that is mapped somewhere.
 *
 * They are read through the caller's function, as all else: the file may be another process's, and
 * deleted.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "python_frames.h"

#define PAGE	 4096u
#define PROGRAMS 64u   /* program headers */
#define ENTRIES	 256u  /* of the dynamic section */
#define CHAIN	 4096u /* symbols whose hashes share a bucket */
#define NAME	 32u   /* bytes of the longest name that is looked for */

struct image {
	xs_python_read *read;
	void *data;
	uint64_t bias, symbols, names, hash;
};

static bool get(const struct image *image, uint64_t address, void *to, size_t bytes)
{
	return !image->read(image->data, address, to, bytes);
}

/* The C library has made most of these addresses; some leave them as they are in the file. */
static uint64_t made(const struct image *image, uint64_t start, uint64_t value)
{
	return value < start ? value + image->bias : value;
}

static bool open_image(struct image *image, uint64_t start)
{
	Elf64_Ehdr head;
	Elf64_Phdr program;
	Elf64_Dyn entry;
	uint64_t dynamic = 0, low = UINT64_MAX;

	if (!get(image, start, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(program))
		return false;
	for (uint32_t i = 0; i < head.e_phnum && i < PROGRAMS; i++) {
		if (!get(image, start + head.e_phoff + i * sizeof(program), &program,
			 sizeof(program)))
			return false;
		if (program.p_type == PT_LOAD && program.p_vaddr < low)
			low = program.p_vaddr & ~(uint64_t)(PAGE - 1);
		if (program.p_type == PT_DYNAMIC)
			dynamic = program.p_vaddr;
	}
	if (!dynamic || low == UINT64_MAX)
		return false;
	image->bias = start - low;
	dynamic += image->bias;
	for (uint32_t i = 0; i < ENTRIES; i++) {
		if (!get(image, dynamic + i * sizeof(entry), &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			image->symbols = made(image, start, entry.d_un.d_ptr);
		if (entry.d_tag == DT_STRTAB)
			image->names = made(image, start, entry.d_un.d_ptr);
		if (entry.d_tag == DT_GNU_HASH)
			image->hash = made(image, start, entry.d_un.d_ptr);
	}
	return image->symbols && image->names && image->hash;
}

/* The address of an exported symbol; 0: there is none. By the table of DT_GNU_HASH. */
static uint64_t symbol_of(const struct image *image, const char *name, uint64_t *ret_size)
{
	struct {
		uint32_t buckets, first, bloom, shift;
	} table;
	uint32_t hash = 5381, number, found;
	size_t length = strlen(name) + 1;
	uint64_t buckets;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	if (!get(image, image->hash, &table, sizeof(table)) || !table.buckets)
		return 0;
	buckets = image->hash + sizeof(table) + 8ull * table.bloom;
	if (!get(image, buckets + 4ull * (hash % table.buckets), &number, sizeof(number)) ||
	    number < table.first)
		return 0;
	for (uint32_t i = 0; i < CHAIN; i++, number++) {
		Elf64_Sym symbol;
		char other[NAME];

		if (!get(image, buckets + 4ull * table.buckets + 4ull * (number - table.first),
			 &found, sizeof(found)))
			return 0;
		if ((found | 1) == (hash | 1) &&
		    get(image, image->symbols + number * sizeof(symbol), &symbol, sizeof(symbol)) &&
		    symbol.st_shndx != SHN_UNDEF && length <= sizeof(other) &&
		    get(image, image->names + symbol.st_name, other, length) &&
		    !memcmp(other, name, length)) {
			*ret_size = symbol.st_size;
			return symbol.st_value + image->bias;
		}
		if (found & 1)
			return 0;
	}
	return 0;
}

static uint64_t symbol(const struct image *image, const char *name)
{
	uint64_t size;

	return symbol_of(image, name, &size);
}

static uint32_t minor_of(const struct image *image)
{
	uint64_t version = symbol(image, "Py_Version");
	uint32_t hex;

	if (version)
		return get(image, version, &hex, sizeof(hex)) && hex >> 24 == 3 ? hex >> 16 & 0xff
										: 0;
	if (symbol(image, XS_PYTHON_SINCE_10))
		return 10;
	if (symbol(image, XS_PYTHON_SINCE_9))
		return 9;
	return symbol(image, XS_PYTHON_SINCE_8) ? 8 : 0;
}

int xs_python_find(struct xs_python *python, xs_python_read *read, void *data, uint64_t start)
{
	struct image image = { .read = read, .data = data };
	uint64_t runtime;
	int result;

	*python = (struct xs_python){ .read = read, .data = data };
	if (!open_image(&image, start))
		return -ENOENT;
	runtime = symbol(&image, "_PyRuntime");
	if (!runtime)
		return -ENOENT;
	result = xs_python_init(python, read, data, runtime, minor_of(&image));
	python->code_type = symbol(&image, "PyCode_Type");
	python->loop = symbol_of(&image, "_PyEval_EvalFrameDefault", &python->loop_size);
	return result;
}
