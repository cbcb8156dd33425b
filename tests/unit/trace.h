/*
 * A trace read back: its slices, and whether they nest.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
	uint64_t pid, tid, start, end; /* ns */
	char name[64];		       /* as in the file, cut */
	bool unfinished;
};

struct trace {
	char *text;
	size_t length, count;
	struct slice *slices;
};

/*
 * Takes `text` over. False: it is not JSON, or has no memory; `complaint` says where. trace_free()
 * it in any case.
 */
bool trace_parse(struct trace *trace, char *text, size_t length, char *complaint, size_t size);
void trace_free(struct trace *trace);

/*
 * Sorts the slices, and returns the first that overlaps another one of its track without being
 * inside; NULL: none does.
 */
const struct slice *trace_overlap(struct trace *trace);

/* How many slices have the name. */
size_t trace_named(const struct trace *trace, const char *name);
/* A number in otherData, UINT64_MAX when it is not there. */
uint64_t trace_other(const struct trace *trace, const char *key);

#endif
