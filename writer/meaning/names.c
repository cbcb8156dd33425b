/*
 * From the ids in records to names.
 *
 * The strings lie in memory that each traced process can write. A string is copied when it is first
 * asked for, and only the copy is used from then on: one id is one text, for as long as the run
 * lasts.
 */
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "hash.h"
#include "names.h"
#include "place.h"

#define TEXTS_MAX    (1u << 18) /* strings; the table of honest processes holds less, see strtab.h */
#define TEXTS_BYTES  (32u << 20)
#define FUNCTION_MAX 128u
#define NAMES_MAX    (1u << 18) /* of a process, with those of functions */

static uint32_t function_count(const struct xs_backend *backend)
{
	return backend->names ? *backend->name_count : 0;
}

char xs_memory_letter(uint8_t source, unsigned memory)
{
	const char *letters = xs_backend_of(source)->memory;

	return memory < strlen(letters) ? letters[memory] : '?';
}

void xs_shown_shape(uint8_t source, const uint64_t *shape, uint64_t *shown)
{
	bool groups = xs_backend_of(source)->groups;

	for (int i = 0; i < 3; i++)
		shown[i] = groups && shape[3 + i] ? shape[i] / shape[3 + i] : shape[i];
}

/* ---- texts ---- */

struct xs_texts {
	struct entry {
		uint32_t id; /* 0: free */
		struct xs_text text;
	} *table;
	uint32_t size, count; /* size: a power of two */
	size_t bytes;
};

/* Where the id is, or may be put. */
static struct entry *entry_of(const struct xs_texts *texts, uint32_t id)
{
	for (uint32_t at = xs_hash_id(id);; at++) {
		struct entry *entry = &texts->table[at & (texts->size - 1)];

		if (!entry->id || entry->id == id)
			return entry;
	}
}

static bool grow_texts(struct xs_texts *texts)
{
	struct xs_texts grown = *texts;

	grown.size = texts->size ? 2 * texts->size : 256;
	grown.table = calloc(grown.size, sizeof(*grown.table));
	if (!grown.table)
		return false;
	for (uint32_t i = 0; i < texts->size; i++)
		if (texts->table[i].id)
			*entry_of(&grown, texts->table[i].id) = texts->table[i];
	free(texts->table);
	*texts = grown;
	return true;
}

/* Puts a function's name into a text that says where in the code something is. */
static char *with_place(struct xs_run *run, char *text, uint32_t *length)
{
	uint64_t frame;
	char *shown;

	if (!run->place_text || run->placing || !xs_place_marked(text, *length, &frame))
		return text;
	run->placing = true;
	shown = run->place_text(run, text, length);
	run->placing = false;
	if (!shown)
		return text;
	free(text);
	return shown;
}

/*
 * The string of the id, as it is now; false: the id is invalid, there is no memory, or somebody has
 * changed what was interned. Of another name that has come there nobody can tell.
 */
static bool copy_text(struct xs_run *run, uint32_t id, struct xs_text *ret)
{
	const struct xs_string *string =
		xs_string(run->strings, run->strings_size, id, &ret->length);
	char *text = string ? malloc(ret->length + 1u) : NULL;

	if (!text)
		return false;
	memcpy(text, string->text, ret->length);
	text[ret->length] = '\0';
	ret->scope = __atomic_load_n(&string->scope, __ATOMIC_RELAXED);
	if (!xs_string_is(string, text, ret->length, ret->scope)) {
		free(text);
		return false;
	}
	ret->text = with_place(run, text, &ret->length);
	return true;
}

static const struct xs_text unknown_text = { "(unknown)", 9, 0 };

struct xs_text xs_text_find(struct xs_run *run, uint32_t id)
{
	static const struct xs_text full = { "(too many names)", 16, 0 };
	struct xs_texts *texts = run->texts;
	struct entry *entry;
	struct xs_text text;

	if (id == XS_STRING_FULL)
		return full;
	if (!texts)
		texts = run->texts = calloc(1, sizeof(*texts));
	if (!texts || !id)
		return unknown_text;
	entry = texts->size ? entry_of(texts, id) : NULL;
	if (entry && entry->id)
		return entry->text;
	if (texts->count >= TEXTS_MAX || texts->bytes >= TEXTS_BYTES)
		return full;
	if ((2 * texts->count >= texts->size && !grow_texts(texts)) || !copy_text(run, id, &text))
		return unknown_text;
	*entry_of(texts, id) = (struct entry){ id, text };
	texts->count++;
	texts->bytes += text.length;
	return text;
}

void xs_texts_fini(struct xs_run *run)
{
	struct xs_texts *texts = run->texts;

	for (uint32_t i = 0; texts && i < texts->size; i++)
		free((char *)texts->table[i].text.text);
	if (texts)
		free(texts->table);
	free(texts);
	run->texts = NULL;
}

/* Sinks take names of functions as they are: what is none, in C, is not shown. */
static const char *interned_function(struct xs_run *run, uint32_t id, size_t *ret_length)
{
	static const char none[] = "(unknown)",
			  letters[] =
				  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	struct xs_text text = xs_text_find(run, id);

	*ret_length = text.length;
	if (text.length && text.length <= FUNCTION_MAX && strspn(text.text, letters) == text.length)
		return text.text;
	*ret_length = sizeof(none) - 1;
	return none;
}

static const char *function_name(struct xs_run *run, const struct xs_backend *backend,
				 uint32_t function, size_t *ret_length)
{
	uint32_t count = function_count(backend);
	const char *name = function < count ? backend->names[function] : "(unknown)";

	if (function >= count && backend->interned)
		return interned_function(run, function - count, ret_length);
	*ret_length = strlen(name);
	return name;
}

const char *xs_text_of(struct xs_run *run, uint32_t id, size_t *ret_length)
{
	struct xs_text text;

	if (id & XS_NAME_FUNCTION)
		return function_name(run, xs_backend_of((uint8_t)(id >> 24 & 0x7f)), id & 0xffffff,
				     ret_length);
	text = xs_text_find(run, id);
	*ret_length = text.length;
	return text.text;
}

/* Properties are members of a JSON object; no place on a bus begins like that. */
struct xs_device_told xs_device_told(struct xs_run *run, uint32_t name)
{
	struct xs_device_told told = { { "", 0, 0 }, { "", 0, 0 } };
	uint32_t scope = xs_text_find(run, name).scope;

	for (int i = 0; i < 2 && scope; i++) {
		struct xs_text text = xs_text_find(run, scope);

		*(text.text[0] == '"' ? &told.facts : &told.bus) = text;
		scope = text.scope;
	}
	return told;
}

/* ---- names ---- */

/* As above. */
static struct xs_name *name_of(const struct xs_names *names, uint32_t id)
{
	for (uint32_t at = xs_hash_id(id);; at++) {
		struct xs_name *name = &names->table[at & (names->size - 1)];

		if (!name->id || name->id == id)
			return name;
	}
}

static bool grow_names(struct xs_names *names)
{
	struct xs_names grown = { .size = names->size ? 2 * names->size : 256 };

	grown.table = calloc(grown.size, sizeof(*grown.table));
	if (!grown.table)
		return false;
	for (uint32_t i = 0; i < names->size; i++)
		if (names->table[i].id)
			*name_of(&grown, names->table[i].id) = names->table[i];
	free(names->table);
	names->table = grown.table;
	names->size = grown.size;
	return true;
}

struct xs_names *xs_names_open(void)
{
	struct xs_names *names = calloc(1, sizeof(*names));

	/* nothing is hot yet: each place has an id that belongs to another one */
	for (uint32_t i = 0; names && i < XS_NAMES_HOT; i++)
		names->hot[i].id = i + 1;
	return names;
}

void xs_names_free(struct xs_names *names)
{
	if (names)
		free(names->table);
	free(names);
}

static uint32_t scope_of(struct xs_process *process, uint32_t id)
{
	struct xs_text text = xs_text_find(process->run, id);

	if (id == XS_STRING_FULL)
		return XS_SCOPE_UNKNOWN;
	if (text.text != unknown_text.text)
		return text.scope;
	process->omitted[XS_OMIT_NAMES]++;
	return XS_SCOPE_UNKNOWN;
}

struct xs_name xs_name_find(struct xs_process *process, uint32_t id)
{
	struct xs_names *names = process->names;
	struct xs_name *name;

	if (!id)
		id = XS_STRING_FULL; /* 0 marks a free entry */
	name = names->size ? name_of(names, id) : NULL;
	if (name && name->id)
		return names->hot[id % XS_NAMES_HOT] = *name;
	if (names->count >= NAMES_MAX && id != XS_STRING_FULL) {
		process->omitted[XS_OMIT_NAMES]++;
		return xs_name_find(process, XS_STRING_FULL);
	}
	if (2 * names->count >= names->size && !grow_names(names))
		return (struct xs_name){ id, XS_SCOPE_UNKNOWN };
	names->count++;
	name = name_of(names, id);
	name->id = id;
	name->scope = id & XS_NAME_FUNCTION ? 0 : scope_of(process, id);
	return *name;
}
