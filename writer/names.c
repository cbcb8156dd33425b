/*
 * From the ids in records to names: plain for reports, and as JSON that is made once and kept ready.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "writer.h"

#define NAMES_BYTES (16u << 20) /* JSON texts kept ready; other names are made each time */

extern const char *const xs_opencl_names[], *const xs_level_zero_names[], *const xs_mpi_names[];
extern const uint32_t xs_opencl_count, xs_level_zero_count, xs_mpi_count;

/* The name of an API's function. */
static const char *function_name(uint32_t source, uint32_t function)
{
	if (source == XS_SOURCE_OPENCL && function < xs_opencl_count)
		return xs_opencl_names[function];
	if (source == XS_SOURCE_LEVEL_ZERO && function < xs_level_zero_count)
		return xs_level_zero_names[function];
	if (source == XS_SOURCE_MPI && function < xs_mpi_count)
		return xs_mpi_names[function];
	return "(unknown)";
}

char xs_memory_letter(unsigned memory)
{
	static const char letters[] = { 'M', 'H', 'D', 'S', 'M' };

	return memory < sizeof(letters) ? letters[memory] : '?';
}

void xs_shown_shape(uint8_t source, const uint64_t *shape, uint64_t *shown)
{
	for (int i = 0; i < 3; i++)
		shown[i] = source == XS_SOURCE_LEVEL_ZERO && shape[3 + i] ? shape[i] / shape[3 + i] : shape[i];
}

uint32_t xs_function_id(uint8_t source, uint32_t function)
{
	return XS_NAME_FUNCTION | (uint32_t)(source & 0x7f) << 24 | (function & 0xffffff);
}

const char *xs_text_of(const struct xs_run *run, uint32_t id, size_t *ret_length)
{
	const char *text = "(unknown)";
	size_t length;

	if (id & XS_NAME_FUNCTION) {
		text = function_name(id >> 24 & 0x7f, id & 0xffffff);
		length = strlen(text);
	} else {
		uint32_t string_length = 0;
		const struct xs_string *string = xs_string(run->strings, run->strings_size, id, &string_length);

		length = string ? string_length : strlen(text);
		text = string ? string->text : text;
	}
	*ret_length = length;
	return text;
}

static int grow_names(struct xs_names *names)
{
	uint32_t size = names->size ? 2 * names->size : 256;
	struct xs_name *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < names->size; i++) {
		uint32_t at;

		if (!names->table[i].id)
			continue;
		for (at = names->table[i].id * 0x9e3779b1u; table[at & (size - 1)].id; at++)
			;
		table[at & (size - 1)] = names->table[i];
	}
	free(names->table);
	names->table = table;
	names->size = size;
	memset(names->hot, 0, sizeof(names->hot));
	return 0;
}

static void render(struct xs_process *process, struct xs_name *name)
{
	struct xs_names *names = &process->names;
	size_t length;
	const char *text = xs_text_of(process->run, name->id, &length);
	uint32_t unused;
	const struct xs_string *string =
		name->id & XS_NAME_FUNCTION
			? NULL
			: xs_string(process->run->strings, process->run->strings_size, name->id, &unused);
	char json[64 + 6 * XS_NAME_SLACK], *o = json;

	name->scope = string ? string->scope : 0;
	name->length = 0;
	name->json = NULL;
	if (length > XS_NAME_SLACK)
		return;
	o += sprintf(o, ",\"cat\":\"cpu_op\",\"name\":\"");
	o = xs_json_escape(o, text, length);
	o += sprintf(o, "\"},\n");
	length = (size_t)(o - json);
	if (length > XS_NAME_SLACK || names->bytes + XS_NAME_SLACK > NAMES_BYTES)
		return;
	name->json = malloc(XS_NAME_SLACK);
	if (!name->json)
		return;
	memset(json + length, 0, sizeof(json) - length);
	memcpy(name->json, json, XS_NAME_SLACK);
	name->length = (uint32_t)length;
	names->bytes += XS_NAME_SLACK;
}

const struct xs_name *xs_name_find(struct xs_process *process, uint32_t id)
{
	static struct xs_name spare;
	struct xs_names *names = &process->names;
	uint32_t at;

	if (!id)
		id = XS_STRING_FULL; /* 0 marks a free entry */
	at = id * 0x9e3779b1u;
	for (; names->size && names->table[at & (names->size - 1)].id; at++)
		if (names->table[at & (names->size - 1)].id == id)
			return names->hot[id % XS_NAMES_HOT] = &names->table[at & (names->size - 1)];
	if (2 * names->count >= names->size && grow_names(names) < 0) {
		spare = (struct xs_name){ .id = id };
		return &spare;
	}
	for (at = id * 0x9e3779b1u; names->table[at & (names->size - 1)].id; at++)
		;
	names->count++;
	names->table[at & (names->size - 1)].id = id;
	render(process, &names->table[at & (names->size - 1)]);
	return &names->table[at & (names->size - 1)];
}
