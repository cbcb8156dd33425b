/*
 * Names as the Chrome JSON has them: made once and kept ready with a fixed number of readable
 * bytes, so that writing one is a copy without a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chrome.h"
#include "hash.h"
#include "names.h"

#define NAMES_BYTES (16u << 20) /* texts kept ready; other names are made each time */

/* Where the id is, or may be put. */
static struct xs_json_name *name_of(const struct xs_json_names *names, uint32_t id)
{
	for (uint32_t at = xs_hash_id(id);; at++) {
		struct xs_json_name *name = &names->table[at & (names->size - 1)];

		if (!name->id || name->id == id)
			return name;
	}
}

static bool grow(struct xs_json_names *names)
{
	struct xs_json_names grown = { .size = names->size ? 2 * names->size : 256 };

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

static void render(struct xs_process *process, struct xs_json_name *name)
{
	struct xs_json_names *names = &xs_chrome_of(process)->names;
	size_t length;
	const char *text = xs_text_of(process->run, name->id, &length);
	char json[64 + 6 * XS_NAME_SLACK], *o = json;
	const char *category;

	if (length > XS_NAME_SLACK)
		return;
	category = xs_chrome_category(process, &text, &length);
	name->skip = (uint16_t)strlen(category);
	o = xs_put(xs_put(o, category), ",\"name\":\"");
	o = xs_put(xs_json_escape(o, text, length), "\"},\n");
	length = (size_t)(o - json);
	if (length > XS_NAME_SLACK || names->bytes + XS_NAME_SLACK > NAMES_BYTES)
		return;
	name->text = calloc(1, XS_NAME_SLACK);
	if (!name->text)
		return;
	memcpy(name->text, json, length);
	name->length = (uint16_t)length;
	names->bytes += XS_NAME_SLACK;
}

void xs_json_names_init(struct xs_json_names *names)
{
	for (uint32_t i = 0; i < XS_JSON_HOT; i++)
		names->hot[i].id = i + 1;
}

struct xs_json_name xs_json_name_find(struct xs_process *process, uint32_t id)
{
	struct xs_json_names *names = &xs_chrome_of(process)->names;
	struct xs_json_name *name;

	/* where there are too many, many ids have one name */
	id = xs_name_of(process, id).id;
	name = names->size ? name_of(names, id) : NULL;
	if (name && name->id)
		return names->hot[id % XS_JSON_HOT] = *name;
	if (2 * names->count >= names->size && !grow(names))
		return (struct xs_json_name){ .id = id };
	names->count++;
	name = name_of(names, id);
	name->id = id;
	render(process, name);
	return *name;
}

void xs_json_names_free(struct xs_json_names *names)
{
	for (uint32_t i = 0; i < names->size; i++)
		free(names->table[i].text);
	free(names->table);
}
