/*
 * See symbols.h. Memory is bounded: MAX_SYMBOLS symbols of all files together, and MAX_TEXT bytes
 * of names found; what does not fit is shown as file+offset, or looked up again.
 */
#include "symbols.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "names.h"
#include "regular.h"
#include "run.h"

#define MAX_SYMBOLS    (2u << 20)
#define MAX_TEXT       (8u << 20)
#define MAX_FILES      4096u
#define NAME_MAX_BYTES 1024u

struct symbol {
	uint64_t address;
	uint32_t size;
	uint32_t name; /* offset in the string table << 2 | rank, 0 the best */
};

struct file {
	struct file *next;
	uint32_t id; /* string id of its path; 0: `told` says which one it is */
	char *told;  /* build id, a blank, the path */
	int fd;	     /* of the file with the symbols: its path may soon lead nowhere. -1: none */
	uint64_t strings, strings_size; /* where in that file */
	struct symbol *symbols;
	uint32_t count;
};

struct known {
	uint64_t frame; /* key; 0: free */
	struct xs_symbol symbol;
};

struct xs_symbols {
	struct file *files;
	uint32_t file_count;
	uint32_t total; /* symbols */
	struct known *known;
	uint32_t size, count;
	size_t text;
	struct xs_symbol last; /* one that is not kept */
	char last_name[NAME_MAX_BYTES];
};

/* ---- files ---- */

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX - size && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool is_elf(int fd, Elf64_Ehdr *head)
{
	return read_at(fd, head, sizeof(*head), 0) && !memcmp(head->e_ident, ELFMAG, SELFMAG) &&
	       head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_shentsize == sizeof(Elf64_Shdr) &&
	       head->e_phentsize == sizeof(Elf64_Phdr);
}

/*
 * Does the file have this build id (hexadecimal digits)? One without is believed to be the one that
 * was loaded.
 */
static bool has_build_id(int fd, const Elf64_Ehdr *head, const char *wanted, size_t length)
{
	Elf64_Phdr program;
	char notes[4096], text[65];

	for (unsigned i = 0; i < head->e_phnum; i++) {
		size_t size, at = 0;

		if (!read_at(fd, &program, sizeof(program), head->e_phoff + i * sizeof(program)))
			return false;
		size = program.p_filesz < sizeof(notes) ? (size_t)program.p_filesz : sizeof(notes);
		if (program.p_type != PT_NOTE || !read_at(fd, notes, size, program.p_offset))
			continue;
		while (at + sizeof(Elf64_Nhdr) <= size) {
			const Elf64_Nhdr *note = (const void *)(notes + at);
			size_t id = at + sizeof(*note) + ((note->n_namesz + 3ul) & ~3ul), n;

			if (id > size || note->n_descsz > size - id)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    !memcmp(notes + at + sizeof(*note), "GNU", 4)) {
				for (n = 0; n < note->n_descsz && n < 32; n++)
					(void)sprintf(text + 2 * n, "%02x",
						      (unsigned char)notes[id + n]);
				return 2 * n == length && !memcmp(text, wanted, length);
			}
			at = (id + note->n_descsz + 3) & ~3ul;
		}
	}
	return !length;
}

/* The section of that type; false: there is none. */
static bool find_section(int fd, const Elf64_Ehdr *head, uint32_t type, Elf64_Shdr *ret)
{
	for (unsigned i = 0; i < head->e_shnum; i++)
		if (read_at(fd, ret, sizeof(*ret), head->e_shoff + i * sizeof(*ret)) &&
		    ret->sh_type == type)
			return ret->sh_entsize == sizeof(Elf64_Sym);
	return false;
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (int)(x->name & 3) - (int)(y->name & 3);
}

static void add_symbol(struct file *file, const Elf64_Sym *symbol)
{
	/* names that a library means for others come first */
	uint32_t rank = ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL ? 0
			: ELF64_ST_BIND(symbol->st_info) == STB_WEAK ? 1
								     : 2;
	uint8_t type = ELF64_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || !symbol->st_value ||
	    symbol->st_shndx == SHN_UNDEF || symbol->st_name >= 1u << 30)
		return;
	file->symbols[file->count++] = (struct symbol){
		.address = symbol->st_value,
		.size = symbol->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)symbol->st_size,
		.name = symbol->st_name << 2 | rank,
	};
}

static bool read_table(struct xs_symbols *symbols, struct file *file, int fd,
		       const Elf64_Ehdr *head, uint32_t type)
{
	Elf64_Sym piece[512];
	Elf64_Shdr table, strings;
	uint64_t count, done = 0;

	if (!find_section(fd, head, type, &table) || table.sh_link >= head->e_shnum ||
	    !read_at(fd, &strings, sizeof(strings),
		     head->e_shoff + table.sh_link * sizeof(strings)))
		return false;
	count = table.sh_size / sizeof(Elf64_Sym);
	if (!count || count > MAX_SYMBOLS - symbols->total)
		return false;
	file->symbols = malloc(count * sizeof(*file->symbols));
	while (file->symbols && done < count) {
		size_t n = count - done < 512 ? (size_t)(count - done) : 512;

		if (!read_at(fd, piece, n * sizeof(*piece),
			     table.sh_offset + done * sizeof(*piece)))
			break;
		for (size_t i = 0; i < n; i++)
			add_symbol(file, &piece[i]);
		done += n;
	}
	if (!file->count) {
		free(file->symbols);
		file->symbols = NULL;
		return false;
	}
	file->symbols = realloc(file->symbols, file->count * sizeof(*file->symbols)); /* smaller */
	qsort(file->symbols, file->count, sizeof(*file->symbols), compare);
	symbols->total += file->count;
	file->strings = strings.sh_offset;
	file->strings_size = strings.sh_size;
	return true;
}

/* True: its symbols are read. */
static bool read_file(struct xs_run *run, struct file *file, const char *path, const char *build_id,
		      size_t length, uint32_t type)
{
	int fd = xs_open_regular(path);
	Elf64_Ehdr head;
	bool good;

	if (fd < 0)
		return false;
	good = xs_run_can_spare(run, fd) && is_elf(fd, &head) &&
	       has_build_id(fd, &head, build_id, length) &&
	       read_table(run->symbols, file, fd, &head, type);
	if (good)
		file->fd = fd;
	else
		close(fd);
	return good;
}

/* One that is new; NULL: no memory, or there are too many. */
static struct file *add_file(struct xs_symbols *symbols)
{
	struct file *file = symbols->file_count < MAX_FILES ? calloc(1, sizeof(*file)) : NULL;

	if (!file)
		return NULL;
	symbols->file_count++;
	file->fd = -1;
	file->next = symbols->files;
	symbols->files = file;
	return file;
}

/* `name`, of a file with that build id (or an empty one), as process `pid` sees it. */
static void find_symbols(struct xs_run *run, struct file *file, int32_t pid, const char *name,
			 size_t length, const char *build_id, size_t id_length)
{
	char path[PATH_MAX + 32];

	if (name[0] != '/' || length >= PATH_MAX || memchr(name, '\0', length))
		return;
	if (strspn(build_id, "0123456789abcdef") != id_length) /* it becomes a part of a path */
		return;
	/* first as the process sees it, which may live in a container */
	for (int where = pid > 0 ? 0 : 1; where < 2 && file->fd < 0; where++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/root%.*s", pid, (int)length, name);
		if (where)
			(void)snprintf(path, sizeof(path), "%.*s", (int)length, name);
		if (read_file(run, file, path, build_id, id_length, SHT_SYMTAB))
			break;
		if (id_length > 2) {
			char debug[128];

			(void)snprintf(debug, sizeof(debug),
				       "/usr/lib/debug/.build-id/%.2s/%.*s.debug", build_id,
				       (int)(id_length - 2), build_id + 2);
			if (read_file(run, file, debug, build_id, id_length, SHT_SYMTAB))
				break;
		}
		(void)read_file(run, file, path, build_id, id_length, SHT_DYNSYM);
	}
}

static struct file *file_of(struct xs_run *run, int32_t pid, uint32_t id)
{
	struct xs_symbols *symbols = run->symbols;
	struct xs_text name = xs_text_find(run, id);
	const char *build_id = "";
	size_t id_length = 0;
	struct file *file;

	for (file = symbols->files; file; file = file->next)
		if (file->id == id)
			return file;
	file = add_file(symbols);
	if (!file)
		return NULL;
	file->id = id;
	if (name.scope)
		build_id = xs_text_of(run, name.scope, &id_length);
	find_symbols(run, file, pid, name.text, name.length, build_id, id_length);
	return file;
}

/* By what `told` says. */
static struct file *file_told(struct xs_run *run, int32_t pid, const char *told)
{
	struct xs_symbols *symbols = run->symbols;
	size_t id_length = strcspn(told, " ");
	struct file *file;

	for (file = symbols->files; file; file = file->next)
		if (file->told && !strcmp(file->told, told))
			return file;
	file = add_file(symbols);
	if (!file)
		return NULL;
	file->told = strdup(told);
	if (file->told && told[id_length])
		find_symbols(run, file, pid, told + id_length + 1, strlen(told + id_length + 1),
			     told, id_length);
	return file;
}

/* ---- places ---- */

/* The symbol that covers an address; NULL: none. */
static const struct symbol *covering(const struct file *file, uint64_t address)
{
	const struct symbol *best = NULL;
	uint32_t low = 0, high = file->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (file->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* symbols may lie inside others; of those with one address, the first is the best */
	for (uint32_t i = 0; i < 64 && low; i++) {
		const struct symbol *symbol = &file->symbols[--low];

		if (best && symbol->address != best->address)
			break;
		/* hand-written code may not say how long it is */
		if (address - symbol->address < symbol->size || (!symbol->size && (!i || best)))
			best = symbol;
	}
	return best;
}

static bool read_name(const struct file *file, const struct symbol *symbol, char *name, size_t size)
{
	uint64_t offset = symbol->name >> 2;
	ssize_t n = -1;

	if (offset < file->strings_size) {
		size_t room = file->strings_size - offset < size - 1
				      ? (size_t)(file->strings_size - offset)
				      : size - 1;

		n = pread(file->fd, name, room, (off_t)(file->strings + offset));
	}
	if (n <= 0)
		return false;
	name[n] = '\0';
	name[strcspn(name, "@")] = '\0'; /* a version */
	return name[0];
}

/* The address in a file of that path. */
static void name_in(const struct file *file, uint64_t address, const char *path, size_t length,
		    struct xs_symbol *ret)
{
	const struct symbol *symbol = NULL;
	const char *base;
	size_t n;

	ret->whole = false;
	if (file && file->count)
		symbol = covering(file, address - 1); /* it is where the call returns to: perhaps
							 another function already */
	if (file && file->count && !symbol)
		symbol = covering(file, address); /* where a signal handler or a coroutine returns
						     to: nobody called from there */
	if (symbol && read_name(file, symbol, ret->name, NAME_MAX_BYTES)) {
		const char *plain;

		n = strlen(ret->name);
		plain = xs_demangle(ret->name, &n);
		if (plain != ret->name)
			(void)snprintf(ret->name, NAME_MAX_BYTES, "%.*s", (int)n, plain);
		ret->offset = address - symbol->address;
	} else {
		base = memrchr(path, '/', length);
		base = base ? base + 1 : path;
		(void)snprintf(ret->name, NAME_MAX_BYTES, "%.*s", (int)(path + length - base),
			       base);
		ret->offset = address;
	}
	ret->length = (uint32_t)strlen(ret->name);
}

/* "Class.method (file.py:12)" */
static void name_python(struct xs_run *run, uint64_t frame, struct xs_symbol *ret)
{
	struct xs_text function = xs_text_find(run, XS_FRAME_FUNCTION(frame));
	size_t length = 0;
	const char *path = xs_text_of(run, function.scope, &length), *base;

	base = memrchr(path, '/', length);
	base = base ? base + 1 : path;
	(void)snprintf(ret->name, NAME_MAX_BYTES, "%.*s (%.*s:%u)", (int)function.length,
		       function.text, (int)(path + length - base), base, XS_FRAME_LINE(frame));
	ret->length = (uint32_t)strlen(ret->name);
}

static void find_name(struct xs_run *run, struct xs_symbols *symbols, int32_t pid, uint64_t frame,
		      struct xs_symbol *ret)
{
	const char *path;
	size_t n;

	ret->name = symbols->last_name;
	ret->offset = 0;
	ret->whole = true;
	if ((frame & (XS_FRAME_RAW | XS_FRAME_PYTHON)) == XS_FRAME_PYTHON) {
		name_python(run, frame, ret);
		return;
	}
	if (frame & XS_FRAME_RAW || !XS_FRAME_FILE(frame)) {
		ret->length = (uint32_t)snprintf(ret->name, NAME_MAX_BYTES, "0x%llx",
						 (unsigned long long)(frame & ~XS_FRAME_RAW));
		return;
	}
	path = xs_text_of(run, XS_FRAME_FILE(frame), &n);
	name_in(file_of(run, pid, XS_FRAME_FILE(frame)), XS_FRAME_ADDRESS(frame), path, n, ret);
}

static bool grow(struct xs_symbols *symbols)
{
	uint32_t size = symbols->size ? 2 * symbols->size : 1024;
	struct known *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (uint32_t i = 0; i < symbols->size; i++) {
		uint32_t at;

		if (!symbols->known[i].frame)
			continue;
		for (at = xs_hash(&symbols->known[i].frame, 1); table[at % size].frame; at++)
			;
		table[at % size] = symbols->known[i];
	}
	free(symbols->known);
	symbols->known = table;
	symbols->size = size;
	return true;
}

const struct xs_symbol *xs_symbol_in(struct xs_run *run, int32_t pid, const char *told,
				     uint64_t address)
{
	static const struct xs_symbol nothing = { .name = (char *)"?", .length = 1 };
	const char *path = strchr(told, ' ');
	struct xs_symbols *symbols = run->symbols;

	if (!symbols)
		symbols = run->symbols = calloc(1, sizeof(*symbols));
	if (!symbols || !path)
		return &nothing;
	symbols->last.name = symbols->last_name;
	symbols->last.offset = 0;
	name_in(file_told(run, pid, told), address, path + 1, strlen(path + 1), &symbols->last);
	return &symbols->last;
}

const struct xs_symbol *xs_symbol_of(struct xs_run *run, int32_t pid, uint64_t frame)
{
	static const struct xs_symbol nothing = { .name = (char *)"?", .length = 1 };
	struct xs_symbols *symbols = run->symbols;
	uint32_t at = xs_hash(&frame, 1);
	char *name;

	if (!symbols)
		symbols = run->symbols = calloc(1, sizeof(*symbols));
	if (!symbols || !frame)
		return &nothing;
	for (uint32_t i = at; symbols->size && symbols->known[i % symbols->size].frame; i++)
		if (symbols->known[i % symbols->size].frame == frame)
			return &symbols->known[i % symbols->size].symbol;
	find_name(run, symbols, pid, frame, &symbols->last);
	if (symbols->text >= MAX_TEXT || (2 * symbols->count >= symbols->size && !grow(symbols)))
		return &symbols->last;
	name = malloc(symbols->last.length + 1);
	if (!name)
		return &symbols->last;
	memcpy(name, symbols->last.name, symbols->last.length + 1);
	symbols->text += symbols->last.length + 64; /* with its entry */
	for (; symbols->known[at % symbols->size].frame; at++)
		;
	symbols->count++;
	symbols->known[at % symbols->size] =
		(struct known){ .frame = frame, .symbol = symbols->last };
	symbols->known[at % symbols->size].symbol.name = name;
	return &symbols->known[at % symbols->size].symbol;
}
