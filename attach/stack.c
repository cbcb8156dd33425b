/*
 * The sampler's frames and stacks, as functions with names.
 *
 * The same functions at other addresses are one stack. Memory is bounded: AT_STACKS of them; the
 * time of others is counted.
 */
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "merge_python.h"
#include "run.h"
#include "strtab.h"
#include "symbols.h"

#define STACKS 65536u
#define FILES  16384u
#define FRAMES (1u << 20) /* of one sampler: more than it gives */
#define NAME   1024u

struct at_frame {
	uint32_t name;		  /* string id */
	bool loop, python, entry; /* the function that runs Python's; one of Python's */
};

bool at_stacks_init(struct at_stacks *stacks, struct xs_run *run, pid_t pid)
{
	*stacks = (struct at_stacks){ .run = run, .pid = pid, .size = 2 * STACKS };
	stacks->strings = (struct xs_strings *)(uintptr_t)run->strings; /* the run is our own */
	stacks->list = calloc(STACKS, sizeof(*stacks->list));
	stacks->index = calloc(stacks->size, sizeof(*stacks->index));
	stacks->files = calloc(FILES, sizeof(*stacks->files));
	return stacks->list && stacks->index && stacks->files;
}

void at_stacks_fini(struct at_stacks *stacks)
{
	at_stacks_renew(stacks);
	for (uint32_t i = 0; i < stacks->count; i++)
		free(stacks->list[i].names);
	free(stacks->list);
	free(stacks->index);
	free(stacks->files);
	free(stacks->frames);
	free(stacks->numbers);
}

void at_stacks_renew(struct at_stacks *stacks)
{
	for (uint32_t i = 0; i < FILES; i++) {
		free(stacks->files[i]);
		stacks->files[i] = NULL;
	}
	if (stacks->frames)
		memset(stacks->frames, 0, stacks->frame_room * sizeof(*stacks->frames));
	for (uint32_t i = 0; i < stacks->number_room; i++)
		stacks->numbers[i] = AT_NO_STACK;
}

uint32_t at_name(struct at_stacks *stacks, const char *text)
{
	return xs_intern(stacks->strings, text, (uint32_t)strlen(text), 0);
}

uint32_t at_stack_of(const struct at_stacks *stacks, uint32_t number)
{
	return number < stacks->number_room ? stacks->numbers[number] : AT_NO_STACK;
}

/* ---- lines ---- */

/* The next word; empty: there is none. */
static char *word(char **rest)
{
	char *at = strsep(rest, " ");

	return at ? at : (char *)"";
}

static void read_file(struct at_stacks *stacks, char *rest)
{
	unsigned long number = strtoul(word(&rest), NULL, 10);
	const char *build_id = word(&rest);
	char *told;

	if (number >= FILES || !rest ||
	    asprintf(&told, "%s %s", build_id[0] == '-' ? "" : build_id, rest) < 0)
		return;
	free(stacks->files[number]);
	stacks->files[number] = told;
}

/* Its place; NULL: it cannot be. */
static struct at_frame *new_frame(struct at_stacks *stacks, unsigned long number)
{
	uint32_t room = stacks->frame_room ? stacks->frame_room : 1024;
	struct at_frame *grown;

	if (number >= FRAMES)
		return NULL;
	while (room <= number)
		room *= 2;
	if (room != stacks->frame_room) {
		grown = realloc(stacks->frames, room * sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + stacks->frame_room, 0, (room - stacks->frame_room) * sizeof(*grown));
		stacks->frames = grown;
		stacks->frame_room = room;
	}
	return &stacks->frames[number];
}

/* The function's, or "[file]" where that has no symbol. Valid until the next call. */
static const char *name_in(struct at_stacks *stacks, const char *told, uint64_t address)
{
	static char file[NAME];
	const char *name = xs_symbol_in(stacks->run, stacks->pid, told, address)->name,
		   *base = strrchr(told, '/');

	base = base ? base + 1 : strchr(told, ' ') + 1;
	if (strcmp(base, name) != 0 || base[0] == '[')
		return name;
	(void)snprintf(file, sizeof(file), "[%s]", base);
	return file;
}

/* "NUMBER FILE ADDRESS" */
static void read_native(struct at_stacks *stacks, char *rest)
{
	static const char loop[] = "_PyEval_EvalFrameDefault";
	struct at_frame *frame = new_frame(stacks, strtoul(word(&rest), NULL, 10));
	const char *file = word(&rest), *known = NULL, *name = "(code in no file)";
	unsigned long number = strtoul(file, NULL, 10);

	if (!frame)
		return;
	if (file[0] >= '0' && file[0] <= '9' && number < FILES)
		known = stacks->files[number];
	if (known)
		name = name_in(stacks, known, strtoull(word(&rest), NULL, 16));
	*frame = (struct at_frame){ .name = at_name(stacks, name),
				    .loop = !strncmp(name, loop, sizeof(loop) - 1) };
}

/* "NUMBER ENTRY TEXT" */
static void read_python(struct at_stacks *stacks, char *rest)
{
	struct at_frame *frame = new_frame(stacks, strtoul(word(&rest), NULL, 10));
	bool entry = word(&rest)[0] == '1';

	if (frame && rest && strlen(rest) < NAME)
		*frame = (struct at_frame){ .name = at_name(stacks, rest),
					    .python = true,
					    .entry = entry };
}

/* ---- stacks ---- */

static uint64_t hash_of(const uint32_t *names, uint32_t count, bool cut)
{
	uint64_t hash = cut + 1u;

	for (uint32_t i = 0; i < count; i++) {
		hash = (hash ^ names[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash | 1;
}

static uint32_t find(struct at_stacks *stacks, const uint32_t *names, uint32_t count, bool cut)
{
	uint64_t hash = hash_of(names, count, cut), at = hash;
	struct at_stack *stack;

	for (; stacks->index[at % stacks->size]; at++) {
		stack = &stacks->list[stacks->index[at % stacks->size] - 1];
		if (stack->hash == hash && stack->count == count && stack->cut == cut &&
		    !memcmp(stack->names, names, count * sizeof(*names)))
			return (uint32_t)(stack - stacks->list);
	}
	if (stacks->count == STACKS)
		return AT_NO_STACK;
	stack = &stacks->list[stacks->count];
	*stack = (struct at_stack){ .hash = hash,
				    .count = count,
				    .cut = cut,
				    .names = malloc(count * sizeof(*names) + 1) };
	if (!stack->names)
		return AT_NO_STACK;
	memcpy(stack->names, names, count * sizeof(*names));
	stacks->index[at % stacks->size] = ++stacks->count;
	return stacks->count - 1;
}

static void keep_number(struct at_stacks *stacks, unsigned long number, uint32_t stack)
{
	uint32_t room = stacks->number_room ? stacks->number_room : 1024;
	uint32_t *grown;

	if (number >= FRAMES)
		return;
	while (room <= number)
		room *= 2;
	if (room != stacks->number_room) {
		grown = realloc(stacks->numbers, room * sizeof(*grown));
		if (!grown)
			return;
		for (uint32_t i = stacks->number_room; i < room; i++)
			grown[i] = AT_NO_STACK;
		stacks->numbers = grown;
		stacks->number_room = room;
	}
	stacks->numbers[number] = stack;
}

/* Frames up to "/" or the line's end; how many. */
static uint32_t read_frames(const struct at_stacks *stacks, char **rest, struct at_frame *frames)
{
	uint32_t count = 0;
	char *at;

	while (*rest && (at = word(rest))[0] != '/') {
		unsigned long number = strtoul(at, NULL, 10);

		if (at[0] && number < stacks->frame_room && count < AT_FRAMES_MAX / 2)
			frames[count++] = stacks->frames[number];
	}
	return count;
}

/* "NUMBER CUT FRAME… / FRAME…", innermost first. */
static void read_stack(struct at_stacks *stacks, char *rest)
{
	static struct at_frame native[AT_FRAMES_MAX], python[AT_FRAMES_MAX];
	bool loops[AT_FRAMES_MAX], entries[AT_FRAMES_MAX];
	uint32_t names[AT_FRAMES_MAX], natives, pythons, count;
	int32_t order[AT_FRAMES_MAX];
	unsigned long number = strtoul(word(&rest), NULL, 10);
	bool cut = word(&rest)[0] == '1';

	natives = read_frames(stacks, &rest, native);
	pythons = read_frames(stacks, &rest, python);
	for (uint32_t i = 0; i < natives; i++)
		loops[i] = native[i].loop;
	for (uint32_t i = 0; i < pythons; i++)
		entries[i] = python[i].entry;
	count = xs_merge_python(loops, natives, entries, pythons, order, AT_FRAMES_MAX);
	for (uint32_t i = 0; i < count; i++)
		names[count - 1 - i] = order[i] >= 0 ? native[order[i]].name
						     : python[-1 - order[i]].name;
	keep_number(stacks, number, find(stacks, names, count, cut));
}

void at_stacks_read(struct at_stacks *stacks, char kind, char *rest)
{
	if (kind == 'M')
		read_file(stacks, rest);
	else if (kind == 'D')
		read_native(stacks, rest);
	else if (kind == 'Y')
		read_python(stacks, rest);
	else if (kind == 'K')
		read_stack(stacks, rest);
}
