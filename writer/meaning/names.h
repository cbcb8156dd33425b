/*
 * From the ids in records to names.
 */
#ifndef XS_NAMES_H
#define XS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"
#include "traced.h"

/* What is known of a name: of a task, event, counter, function, … */
struct xs_name {
	uint32_t id;	/* key: string id, or source << 24 | function | XS_NAME_FUNCTION */
	uint32_t scope; /* of an ITT task: its domain's id; or XS_SCOPE_UNKNOWN */
};
/* Of a name that found no room, or that somebody has overwritten: it may be of any domain. */
#define XS_SCOPE_UNKNOWN 0x7fffffffu
#define XS_NAME_FUNCTION 0x80000000u
#define XS_NAMES_HOT	 64u

struct xs_names {
	struct xs_name *table;
	uint32_t size, count;		  /* size: power of two */
	struct xs_name hot[XS_NAMES_HOT]; /* by the last bits of their ids */
};

/*
 * The name behind a string id or function number. There may be too many: then its id is
 * XS_STRING_FULL.
 */
struct xs_name xs_name_find(struct xs_process *process, uint32_t id);
static inline struct xs_name xs_name_of(struct xs_process *process, uint32_t id)
{
	const struct xs_name *hot = &process->names->hot[id % XS_NAMES_HOT];

	return __builtin_expect(hot->id == id, 1) ? *hot : xs_name_find(process, id);
}
/* An empty table; NULL: no memory. */
struct xs_names *xs_names_open(void);
void xs_names_free(struct xs_names *names);

/* A string of the run: our own copy, the same whenever it is asked for. */
struct xs_text {
	const char *text;
	uint32_t length, scope;
};
struct xs_text xs_text_find(struct xs_run *run, uint32_t id);
/*
 * What the scopes of a device's name say, as the collector gives them (gpu/base/bus.h): where it
 * sits, and its properties. An empty text: it is not known.
 */
struct xs_device_told {
	struct xs_text bus, facts;
};
struct xs_device_told xs_device_told(struct xs_run *run, uint32_t name);
void xs_texts_fini(struct xs_run *run);
/* The text of a name or a function; it stays as long as the run. */
const char *xs_text_of(struct xs_run *run, uint32_t id, size_t *ret_length);
/* enum xs_memory, as unitrace calls it. */
char xs_memory_letter(uint8_t source, unsigned memory);
/* Of global[3], local[3] what is shown first: groups or work items, as the backend has it. */
void xs_shown_shape(uint8_t source, const uint64_t *shape, uint64_t *shown);
/* Key of a function's name for the two above. */
static inline uint32_t xs_function_id(uint8_t source, uint32_t function)
{
	return XS_NAME_FUNCTION | (uint32_t)(source & 0x7f) << 24 | (function & 0xffffff);
}
/* A C++ name as it is written; other text stays. Valid until the next call. */
const char *xs_demangle(const char *text, size_t *length);
/*
 * What a device record's event names: a function, or a kernel, by its C++ name where that is
 * wanted; valid until the next call.
 */
const char *xs_kernel_text(struct xs_run *run, const struct xs_event *event, size_t *ret_length);
/*
 * --include-kernels, --exclude-kernels: is the work to be shown? The traced process has decided as
 * far as it knew.
 */
bool xs_work_wanted(struct xs_run *run, const struct xs_event *event);
/*
 * --exclude-calls: is the call to be shown? Calls of --chrome-kernel-logging always are: arrows
 * begin and end there.
 */
bool xs_call_wanted(struct xs_run *run, const struct xs_event *event);

#endif
