/*
 * Which file an address belongs to, and where that has its call frame information: by the kernel's
 * list of mappings and the headers in memory.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "stacks.h"

#define MODULES	 16384u
#define LINES	 262144u /* of the kernel's list */
#define PROGRAMS 64u	 /* headers of a file */
#define NOTES	 1024u	 /* bytes */

static struct xs_module *modules;
static size_t count;
/* where code may be, also code that was made at run time */
static struct range {
	uintptr_t start, end;
} *code;
static size_t code_count;

size_t xs_module_number(const struct xs_module *module)
{
	return (size_t)(module - modules);
}

const struct xs_module *xs_module_at(size_t i)
{
	return i < count ? &modules[i] : NULL;
}

/* Mappings of one file that follow each other are one module. */
static void add(uintptr_t start, uintptr_t end, uintptr_t offset, char *path)
{
	struct xs_module *last = count ? &modules[count - 1] : NULL;

	if (last && path[0] && !strcmp(last->path, path) && offset) {
		last->end = end;
		return;
	}
	/* room between the parts of a file, and its zeros, have no name */
	if (!path[0] || count == MODULES)
		return;
	path = strdup(path);
	if (path)
		modules[count++] = (struct xs_module){ .start = start, .end = end, .path = path };
}

bool xs_module_is_code(uintptr_t address)
{
	for (size_t i = 0; i < code_count; i++)
		if (address >= code[i].start && address < code[i].end)
			return true;
	return false;
}

bool xs_modules_read(pid_t pid)
{
	char name[48], *line = NULL;
	size_t room = 0;
	FILE *file;

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	file = fopen(name, "re");
	for (size_t i = 0; i < count; i++)
		free(modules[i].path);
	count = code_count = 0;
	if (!modules)
		modules = calloc(MODULES, sizeof(*modules));
	if (!code)
		code = calloc(MODULES, sizeof(*code));
	for (unsigned n = 0;
	     file && modules && code && n < LINES && getline(&line, &room, file) > 0; n++) {
		unsigned long start, end, offset;
		char rights[8];
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &start, &end, rights, &offset, &at) <
			    4 ||
		    !at)
			continue;
		add(start, end, offset, line + at);
		if (strchr(rights, 'x') && code_count < MODULES)
			code[code_count++] = (struct range){ start, end };
	}
	free(line);
	if (file)
		(void)fclose(file);
	return count;
}

/* The binary search table of .eh_frame_hdr, as linkers make it: other forms are not looked at. */
static void take_table(struct xs_module *module, uintptr_t address)
{
	struct {
		uint8_t version, frame, number, table;
		int32_t frames;
		uint32_t entries;
	} head;

	if (!xs_memory_read(address, &head, sizeof(head)) || head.version != 1 ||
	    head.frame != 0x1b || head.number != 0x03 || head.table != 0x3b ||
	    head.entries > 1u << 24)
		return;
	module->table = address;
	module->entries = head.entries;
}

static void take_build_id(struct xs_module *module, uintptr_t address, size_t size)
{
	unsigned char notes[NOTES];

	if (size > sizeof(notes))
		size = sizeof(notes);
	if (!xs_memory_read(address, notes, size))
		return;
	for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), id;

		memcpy(&note, notes + at, sizeof(note));
		id = name + ((note.n_namesz + 3ul) & ~3ul);
		if (id > size || note.n_descsz > size - id)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4)) {
			for (size_t i = 0; i < note.n_descsz && i < 32; i++)
				(void)sprintf(module->build_id + 2 * i, "%02x", notes[id + i]);
			return;
		}
		at = (id + note.n_descsz + 3ul) & ~3ul;
	}
}

static void look_at(struct xs_module *module)
{
	Elf64_Phdr programs[PROGRAMS];
	bool placed = false;
	Elf64_Ehdr head;
	unsigned n;

	module->looked = true;
	module->bias = module->start;
	if (!xs_memory_read(module->start, &head, sizeof(head)) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(programs[0]) || head.e_phoff > XS_PAGE)
		return;
	n = head.e_phnum < PROGRAMS ? head.e_phnum : PROGRAMS;
	if (!xs_memory_read(module->start + head.e_phoff, programs, n * sizeof(programs[0])))
		return;
	for (unsigned i = 0; i < n && !placed; i++)
		if (programs[i].p_type == PT_LOAD) {
			module->bias = module->start - (programs[i].p_vaddr & ~(XS_PAGE - 1ul));
			placed = true;
		}
	for (unsigned i = 0; i < n; i++) {
		if (programs[i].p_type == PT_GNU_EH_FRAME)
			take_table(module, module->bias + programs[i].p_vaddr);
		if (programs[i].p_type == PT_NOTE && !module->build_id[0])
			take_build_id(module, module->bias + programs[i].p_vaddr,
				      programs[i].p_filesz);
	}
}

/* The one that covers the address; count: none. */
static size_t find(uintptr_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (modules[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low == count || address < modules[low].start ? count : low;
}

bool xs_module_covers(uintptr_t address)
{
	size_t at = find(address);

	return at < count && modules[at].path[0] == '/';
}

struct xs_module *xs_module_of(uintptr_t address)
{
	size_t at = find(address);

	if (at == count)
		return NULL;
	if (!modules[at].looked)
		look_at(&modules[at]);
	return &modules[at];
}
