#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_check.h"

/*
 * Behind `key` in the text from `from` to `stop`, or NULL. strstr() would look at the length of all
 * that follows.
 */
static const char *behind(const char *from, const char *stop, const char *key)
{
	const char *found = memmem(from, (size_t)(stop - from), key, strlen(key));

	return found ? found + strlen(key) : NULL;
}

static uint64_t micros(const char *text)
{
	char *end;
	uint64_t value = text ? strtoull(text, &end, 10) * 1000 : 0;

	return text && *end == '.' ? value + strtoull(end + 1, NULL, 10) : UINT64_MAX;
}

static uint64_t number(const char *text)
{
	return text ? strtoull(text, NULL, 10) : UINT64_MAX;
}

static void parse_slice(struct slice *slice, const char *line, const char *stop)
{
	const char *name = behind(line, stop, ",\"name\":\"");

	memset(slice, 0, sizeof(*slice));
	slice->tid = number(behind(line, stop, "\"tid\":"));
	slice->pid = number(behind(line, stop, ",\"pid\":"));
	slice->start = micros(behind(line, stop, ",\"ts\":"));
	slice->end = slice->start + micros(behind(line, stop, ",\"dur\":"));
	slice->unfinished = behind(line, stop, "\"unfinished\":true");
	for (size_t n = 0; name && n + 1 < sizeof(slice->name) && name[n] != '"'; n++)
		slice->name[n] = name[n];
}

bool trace_parse(struct trace *trace, char *text, size_t length, char *complaint, size_t size)
{
	size_t at, room = 0;

	memset(trace, 0, sizeof(*trace));
	trace->text = text;
	trace->length = length;
	if (!json_check(text, length, &at)) {
		size_t from = at < 60 ? 0 : at - 60, to = at + 60 < length ? at + 60 : length;

		(void)snprintf(complaint, size, "not JSON at %zu: %.*s", at, (int)(to - from),
			       text + from);
		return false;
	}
	for (const char *line = text, *stop;
	     (stop = memchr(line, '\n', length - (size_t)(line - text))); line = stop + 1) {
		if (strncmp(line, "{\"ph\":\"X\"", 9))
			continue;
		if (trace->count == room) {
			struct slice *grown =
				realloc(trace->slices, (room = 2 * room + 64) * sizeof(*grown));

			if (!grown) {
				(void)snprintf(complaint, size, "no memory");
				return false;
			}
			trace->slices = grown;
		}
		parse_slice(&trace->slices[trace->count++], line, stop);
	}
	return true;
}

void trace_free(struct trace *trace)
{
	free(trace->text);
	free(trace->slices);
	memset(trace, 0, sizeof(*trace));
}

static int by_track_and_time(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

const struct slice *trace_overlap(struct trace *trace)
{
	uint64_t *open = calloc(trace->count + 1, sizeof(*open));
	const struct slice *found = NULL;
	size_t depth = 0;

	if (trace->count)
		qsort(trace->slices, trace->count, sizeof(*trace->slices), by_track_and_time);
	for (size_t i = 0; open && i < trace->count && !found; i++) {
		const struct slice *s = &trace->slices[i];

		if (i && (s[-1].tid != s->tid || s[-1].pid != s->pid))
			depth = 0;
		while (depth && open[depth - 1] <= s->start)
			depth--;
		if (depth && s->end > open[depth - 1])
			found = s;
		open[depth++] = s->end;
	}
	free(open);
	return found;
}

size_t trace_named(const struct trace *trace, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->count; i++)
		n += !strcmp(trace->slices[i].name, name);
	return n;
}

uint64_t trace_other(const struct trace *trace, const char *key)
{
	const char *stop = trace->text + trace->length;
	const char *other = behind(trace->text, stop, "\"otherData\":");
	char text[64];

	(void)snprintf(text, sizeof(text), "\"%s\":", key);
	return other ? number(behind(other, stop, text)) : UINT64_MAX;
}
