/*
 * --call-stacks: the stacks of calls, each distinct one kept once, as text for the trace and with
 * the time that was spent there for <app>.<pid>.folded, which flame graph tools read.
 *
 * Memory is bounded: MAX_STACKS of a process, MAX_BYTES of frames and text. Later ones are shown in
 * the trace all the same, made anew each time; in the folded file their time goes to one line,
 * "(too many stacks)".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "hash.h"
#include "json.h"
#include "names.h"
#include "stacks.h"
#include "symbols.h"
#include "text.h"

#define MAX_STACKS 65536u
#define MAX_BYTES  (24u << 20)
/* of a stack in the trace: what does not fit is left out, from the outermost on */
#define TEXT_MAX 16384u

struct stack {
	uint64_t hash; /* 0: free */
	uint32_t function, count;
	bool cut;
	uint32_t text_length; /* 0: not made yet, or not kept */
	uint64_t *frames;     /* innermost first */
	char *text;
	uint64_t ns;
};

struct xs_stacks {
	struct stack *table;
	uint32_t size, count;
	size_t bytes;
	uint64_t omitted_ns;
	char text[TEXT_MAX];
};

static uint64_t hash_of(const struct xs_callers *callers, uint32_t function)
{
	return (xs_hash(callers->frames, callers->count) ^ function * 2ull ^ callers->cut) |
	       1ull << 32;
}

static bool grow(struct xs_stacks *stacks)
{
	uint32_t size = stacks->size ? 2 * stacks->size : 256;
	struct stack *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (uint32_t i = 0; i < stacks->size; i++) {
		uint64_t at;

		if (!stacks->table[i].hash)
			continue;
		for (at = stacks->table[i].hash; table[at % size].hash; at++)
			;
		table[at % size] = stacks->table[i];
	}
	free(stacks->table);
	stacks->table = table;
	stacks->size = size;
	return true;
}

static struct stack *find(struct xs_stacks *stacks, const struct xs_callers *callers,
			  uint32_t function)
{
	uint64_t hash = hash_of(callers, function), at = hash;
	size_t bytes = callers->count * sizeof(callers->frames[0]);
	struct stack *stack;

	for (; stacks->size && (stack = &stacks->table[at % stacks->size])->hash; at++)
		if (stack->hash == hash && stack->function == function &&
		    stack->count == callers->count && stack->cut == callers->cut &&
		    !memcmp(stack->frames, callers->frames, bytes))
			return stack;
	if (stacks->count == MAX_STACKS || stacks->bytes + bytes > MAX_BYTES ||
	    (2 * stacks->count >= stacks->size && !grow(stacks)))
		return NULL;
	for (at = hash; stacks->table[at % stacks->size].hash; at++)
		;
	stack = &stacks->table[at % stacks->size];
	stack->frames = malloc(bytes);
	if (!stack->frames)
		return NULL;
	memcpy(stack->frames, callers->frames, bytes);
	stack->hash = hash;
	stack->function = function;
	stack->count = callers->count;
	stack->cut = callers->cut;
	stacks->bytes += bytes + sizeof(*stack);
	stacks->count++;
	return stack;
}

/* One frame: "function+0x1f"; of Python's: "function (file.py:12)". */
static char *put_frame(char *o, const struct xs_symbol *symbol)
{
	*o++ = '"';
	o = xs_json_escape(o, symbol->name, symbol->length);
	if (!symbol->whole)
		o += sprintf(o, "+0x%llx", (unsigned long long)symbol->offset);
	*o++ = '"';
	return o;
}

/* "stack":["outermost+0x1",…,"innermost+0x2"]; returns the length. */
static uint32_t render(struct xs_process *process, const struct xs_callers *callers, char *text)
{
	char frame[6 * 1024 + 64], *end = text + TEXT_MAX - 64, *o = end;
	bool cut = callers->cut;
	size_t length;

	/* from the innermost on, backwards: it counts most */
	for (uint32_t i = 0; i < callers->count; i++) {
		length = (size_t)(put_frame(frame, xs_symbol_of(process->run, process->watched,
								callers->frames[i])) -
				  frame);
		if ((size_t)(o - text) < length + 32) {
			cut = true;
			break;
		}
		if (i)
			*--o = ',';
		o -= length;
		memcpy(o, frame, length);
	}
	length = (size_t)(end - o);
	o = stpcpy(frame, cut ? "\"stack\":[\"…\"," : "\"stack\":[");
	memmove(text + (o - frame), end - length, length);
	memcpy(text, frame, (size_t)(o - frame));
	o = text + (o - frame) + length;
	*o++ = ']';
	return (uint32_t)(o - text);
}

const char *xs_stacks_text(struct xs_process *process, const struct xs_call *call,
			   size_t *ret_length)
{
	struct xs_callers *callers = call->callers;
	struct xs_stacks *stacks = process->sink[XS_SINK_STACKS];
	struct stack *stack;

	if (!stacks || !callers || !callers->count)
		return NULL;
	stack = find(stacks, callers, call->name);
	if (stack)
		stack->ns += call->end - call->start;
	else
		stacks->omitted_ns += call->end - call->start;
	if (stack && stack->text_length) {
		*ret_length = stack->text_length;
		callers->count = 0;
		return stack->text;
	}
	/*
	 * also where no trace is wanted: the files are looked at now, since they may be gone at the
	 * end
	 */
	*ret_length = render(process, callers, stacks->text);
	callers->count = 0;
	if (!stack || stacks->bytes + *ret_length > MAX_BYTES)
		return stacks->text;
	stack->text = malloc(*ret_length);
	if (!stack->text)
		return stacks->text;
	memcpy(stack->text, stacks->text, *ret_length);
	stack->text_length = (uint32_t)*ret_length;
	stacks->bytes += *ret_length;
	return stack->text;
}

/* ---- the folded file ---- */

/* A function's name in a line: semicolons stand between the functions. Returns its length. */
static size_t put_symbol(char *text, size_t room, const struct xs_symbol *symbol)
{
	char *end = xs_plain(text, symbol->name, symbol->length < room ? symbol->length : room);

	for (char *c = text; c < end; c++)
		if (*c == ';')
			*c = ':';
	return (size_t)(end - text);
}

/* A line's text: frames outermost first, and the call itself. */
static size_t fold(struct xs_process *process, const struct stack *stack, char *text, size_t size)
{
	size_t length, n = 0;
	const char *function = xs_text_of(process->run, stack->function, &length);

	if (stack->cut)
		n += (size_t)snprintf(text + n, size - n, "…;");
	for (uint32_t i = stack->count; i-- > 0 && n < size;) {
		const struct xs_symbol *symbol =
			xs_symbol_of(process->run, process->watched, stack->frames[i]);

		/* the loader's own function is there or not, as it was compiled */
		if (!i && symbol->length == length && !memcmp(symbol->name, function, length))
			break;
		n += put_symbol(text + n, size - n, symbol);
		if (n < size)
			text[n++] = ';';
	}
	n += n < size ? (size_t)snprintf(text + n, size - n, "%.*s", (int)length, function) : 0;
	if (n >= size)
		n = size - 1;
	text[n] = '\0';
	return n;
}

struct line {
	char *text;
	uint64_t ns;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Calls from different places of the same functions are one line. */
static void print(FILE *out, struct xs_process *process)
{
	struct xs_stacks *stacks = process->sink[XS_SINK_STACKS];
	struct line *lines = calloc(stacks->count + 1, sizeof(*lines));
	char text[TEXT_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; lines && i < stacks->size; i++) {
		struct stack *stack = &stacks->table[i];

		if (!stack->hash)
			continue;
		(void)fold(process, stack, text, sizeof(text));
		free(stack->text); /* its room is needed */
		stack->text = NULL;
		lines[n].text = strdup(text);
		lines[n].ns = stack->ns;
		n += lines[n].text != NULL;
	}
	if (lines)
		qsort(lines, n, sizeof(*lines), by_text);
	for (uint32_t i = 0; i < n; i++) {
		if (i + 1 < n && !strcmp(lines[i].text, lines[i + 1].text))
			lines[i + 1].ns += lines[i].ns;
		else
			fprintf(out, "%s %llu\n", lines[i].text, (unsigned long long)lines[i].ns);
		free(lines[i].text);
	}
	if (stacks->omitted_ns)
		fprintf(out, "(too many stacks) %llu\n", (unsigned long long)stacks->omitted_ns);
	free(lines);
}

/* True: there were any. */
static bool write_folded(struct xs_process *process)
{
	const struct xs_stacks *stacks = process->sink[XS_SINK_STACKS];
	char path[PATH_MAX];
	FILE *out;

	if (process->run->flight || (!stacks->count && !stacks->omitted_ns))
		return false;
	out = xs_file_begin(process, XS_FILE_FOLDED, path, sizeof(path));
	if (!out)
		return false;
	print(out, process);
	if (!xs_file_end(out, "Call stacks are", path))
		xs_file_failed(process);
	return true;
}

static void drop_stacks(struct xs_process *process)
{
	struct xs_stacks *stacks = process->sink[XS_SINK_STACKS];

	for (uint32_t i = 0; i < stacks->size; i++) {
		free(stacks->table[i].frames);
		free(stacks->table[i].text);
	}
	free(stacks->table);
	free(stacks);
}

static bool close_stacks(struct xs_process *process, enum xs_end end, int status)
{
	bool some = write_folded(process);

	(void)end, (void)status;
	drop_stacks(process);
	return some;
}

static bool wanted(const struct xs_run *run)
{
	return run->options->call_stacks;
}

static bool open_stacks(struct xs_process *process)
{
	process->sink[XS_SINK_STACKS] = calloc(1, sizeof(struct xs_stacks));
	return process->sink[XS_SINK_STACKS];
}

/* Where the trace shows the call, it has asked for the text already. */
static void take_call(struct xs_track *track, const struct xs_call *call)
{
	size_t length;

	(void)xs_stacks_text(track->process, call, &length);
}

const struct xs_sink xs_stacks_sink = {
	.wanted = wanted,
	.open = open_stacks,
	.at_first_event = true,
	.call = take_call,
	.close = close_stacks,
	.drop = drop_stacks,
};
