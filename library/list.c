/*
 * Activities that the program describes itself, and what it says of the whole trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

#define ROWS_MAX    4096u  /* tracks of one list; what is beyond them shares one */
#define LETTERS_MAX 16384u /* of a name or a value that are looked at */
#define BLOCK	    65536u
#define RECENT	    256u /* of names and of rows; a power of two */

/* Texts lie in blocks, which do not move. */
struct block {
	struct block *next;
	size_t used;
	char text[BLOCK];
};

struct row {
	int64_t device, resource;
};

struct xstrace_cpu_trace {
	int64_t start;
	char *name;
	struct xs_own_activity *activities;
	struct xs_own_text *names, *row_texts;
	struct row *rows;
	struct xs_own_metadata *metadata; /* of the first metadata_room activities */
	size_t count, room, name_count, name_room, row_count, row_room, row_text_room,
		metadata_room;
	struct block *blocks;
	/*
	 * The same name, or track, likely comes again. A name is found by its address, and
	 * compared: the program may have written another one there.
	 */
	struct {
		const char *given;
		uint32_t number;
	} recent_names[RECENT];
	uint16_t recent_rows[RECENT];
};

uint64_t xs_monotonic_of(int64_t time)
{
	const struct xs_control *control =
		xs_library.collector.control ? xs_library.collector.control() : NULL;
	uint64_t offset = control ? control->real0 - control->mono0
				  : xs_clock_ns(CLOCK_REALTIME) - xs_clock_ns(CLOCK_MONOTONIC);

	return (uint64_t)time - offset;
}

/* At least `wanted` of `size` bytes each, twice as many as before. False: no memory. */
static bool reserve(void *memory, size_t *room, size_t wanted, size_t size)
{
	size_t grown = *room ? *room : 64;
	void *new;

	if (wanted <= *room)
		return true;
	while (grown < wanted)
		grown *= 2;
	new = realloc(*(void **)memory, grown * size);
	if (!new)
		return false;
	*(void **)memory = new;
	*room = grown;
	return true;
}

struct xstrace_cpu_trace *xstrace_cpu_trace_create(int64_t start, const char *name)
{
	struct xstrace_cpu_trace *list = calloc(1, sizeof(*list));

	if (!list)
		return NULL;
	list->start = start;
	list->name = strdup(name ? name : "");
	if (list->name)
		return list;
	free(list);
	return NULL;
}

/* A copy of the text, with its NUL; NULL: no memory. */
static const char *keep(struct xstrace_cpu_trace *list, const char *text, size_t length)
{
	struct block *block = list->blocks;
	char *place;

	if (!block || sizeof(block->text) - block->used <= length) {
		block = malloc(sizeof(*block));
		if (!block)
			return NULL;
		block->next = list->blocks;
		block->used = 0;
		list->blocks = block;
	}
	place = block->text + block->used;
	memcpy(place, text, length);
	place[length] = '\0';
	block->used += length + 1;
	return place;
}

static uint32_t spread(uint64_t value)
{
	return (uint32_t)(value * 0x9e3779b97f4a7c15u >> 56) % RECENT;
}

/* The number of the name. -1: no memory. */
static int64_t name_of(struct xstrace_cpu_trace *list, const char *name)
{
	uint32_t slot = spread((uintptr_t)name);
	struct xs_own_text text;

	if (list->recent_names[slot].given == name) {
		const char *known = list->names[list->recent_names[slot].number].text;

		if (!strncmp(known, name, LETTERS_MAX))
			return list->recent_names[slot].number;
	}
	text.length = (uint32_t)strnlen(name, LETTERS_MAX);
	text.text = keep(list, name, text.length);
	text.id = 0;
	if (!text.text || list->name_count == UINT32_MAX ||
	    !reserve(&list->names, &list->name_room, list->name_count + 1, sizeof(text)))
		return -1;
	list->names[list->name_count] = text;
	list->recent_names[slot].given = name;
	list->recent_names[slot].number = (uint32_t)list->name_count;
	return (int64_t)list->name_count++;
}

static bool is_row(const struct row *row, const struct xstrace_activity *activity)
{
	return row->device == activity->device && row->resource == activity->resource;
}

static bool add_row(struct xstrace_cpu_trace *list, const struct xstrace_activity *activity)
{
	struct xs_own_text *text;
	char title[64];
	int n;

	if (!reserve(&list->rows, &list->row_room, list->row_count + 1, sizeof(*list->rows)) ||
	    !reserve(&list->row_texts, &list->row_text_room, list->row_count + 1, sizeof(*text)))
		return false;
	if (activity->device == getpid())
		n = snprintf(title, sizeof(title), "activities of thread %lld",
			     (long long)activity->resource);
	else
		n = snprintf(title, sizeof(title), "activities of device %lld, %lld",
			     (long long)activity->device, (long long)activity->resource);
	text = &list->row_texts[list->row_count];
	text->text = keep(list, title, (size_t)n);
	text->length = (uint32_t)n;
	text->id = 0;
	if (!text->text)
		return false;
	list->rows[list->row_count++] = (struct row){ activity->device, activity->resource };
	return true;
}

/* The number of the activity's track. -1: no memory. */
static int64_t row_of(struct xstrace_cpu_trace *list, const struct xstrace_activity *activity)
{
	uint32_t slot = spread((uint64_t)activity->device * 31 + (uint64_t)activity->resource);
	size_t row = list->recent_rows[slot];

	if (row < list->row_count && is_row(&list->rows[row], activity))
		return (int64_t)row;
	for (row = 0; row < list->row_count; row++)
		if (is_row(&list->rows[row], activity))
			break;
	if (row == ROWS_MAX)
		row--;
	else if (row == list->row_count && !add_row(list, activity))
		return -1;
	list->recent_rows[slot] = (uint16_t)row;
	return (int64_t)row;
}

static bool add(struct xstrace_cpu_trace *list, const struct xstrace_activity *activity)
{
	int64_t name = name_of(list, activity->name ? activity->name : ""),
		row = row_of(list, activity);
	bool instant = activity->type == XSTRACE_CPU_INSTANT_EVENT;

	if (row < 0 || name < 0)
		return false;
	list->activities[list->count++] = (struct xs_own_activity){
		.start = (uint64_t)activity->start,
		.end = (uint64_t)(instant ? activity->start : activity->end),
		.device = activity->device,
		.resource = activity->resource,
		.correlation = activity->correlation,
		.name = (uint32_t)name,
		.row = (uint16_t)row,
		.type = (uint16_t)activity->type,
	};
	return true;
}

int xstrace_cpu_trace_add(struct xstrace_cpu_trace *list, const struct xstrace_activity *activities,
			  size_t count, size_t *ret_first)
{
	if (!list || (count && !activities))
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "xstrace_cpu_trace_add: NULL");
	for (size_t i = 0; i < count; i++)
		if ((uint32_t)activities[i].type >= XSTRACE_TYPES)
			return xs_refuse(XSTRACE_BAD_ARGUMENT,
					 "activity %zu: no type has number %d", i,
					 activities[i].type);
	if (ret_first)
		*ret_first = list->count;
	if (!reserve(&list->activities, &list->room, list->count + count,
		     sizeof(*list->activities)))
		return xs_refuse(XSTRACE_NO_MEMORY, "no memory for %zu activities", count);
	for (size_t i = 0; i < count; i++)
		if (!add(list, &activities[i]))
			return xs_refuse(XSTRACE_NO_MEMORY, "no memory for %zu activities", count);
	return XSTRACE_OK;
}

static char *put(char *at, const char *text, size_t length)
{
	memcpy(at, text, length);
	at[length] = '\0';
	return at + length + 1;
}

/* Both or none. */
static bool append(struct xs_own_metadata *facts, const char *key, const char *value, bool quote)
{
	size_t key_length = strnlen(key, LETTERS_MAX), value_length = strnlen(value, LETTERS_MAX);
	size_t length = facts->length + key_length + value_length + 3;
	char *grown, *at;

	grown = length <= UINT32_MAX ? realloc(facts->text, length) : NULL;

	if (!grown)
		return false;
	at = put(grown + facts->length, key, key_length);
	*at = (char)(quote ? XS_OWN_TEXT : XS_OWN_JSON);
	(void)put(at + 1, value, value_length);
	facts->text = grown;
	facts->length = (uint32_t)length;
	facts->count++;
	return true;
}

/* There is room for what is known of each activity so far. */
static bool reserve_metadata(struct xstrace_cpu_trace *list)
{
	size_t before = list->metadata_room;

	if (!reserve(&list->metadata, &list->metadata_room, list->count, sizeof(*list->metadata)))
		return false;
	memset(list->metadata + before, 0,
	       (list->metadata_room - before) * sizeof(*list->metadata));
	return true;
}

int xstrace_activity_metadata(struct xstrace_cpu_trace *list, size_t number, const char *key,
			      const char *value, bool quote)
{
	struct xs_own_metadata *facts;

	if (!list || number >= list->count || !key || !value)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "the list has no activity %zu", number);
	if (!reserve_metadata(list))
		return xs_refuse(XSTRACE_NO_MEMORY, "no memory");
	facts = &list->metadata[number];
	return append(facts, key, value, quote) ? XSTRACE_OK
						: xs_refuse(XSTRACE_NO_MEMORY, "no memory");
}

void xstrace_cpu_trace_free(struct xstrace_cpu_trace *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->metadata_room; i++)
		free(list->metadata[i].text);
	for (struct block *block = list->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	free(list->metadata);
	free(list->activities);
	free(list->names);
	free(list->row_texts);
	free(list->rows);
	free(list->name);
	free(list);
}

/* Nothing is recorded here and now: which result that is. */
static int not_recording(void)
{
	if (xs_is_child() || xs_table_of_library() == &xs_library_nothing)
		return xs_refuse(XSTRACE_OFF, "nothing is traced");
	if (!atomic_load_explicit(&xs_library.recording, memory_order_relaxed))
		return xs_refuse(XSTRACE_BAD_STATE, "no trace is being recorded");
	return XSTRACE_OK;
}

int xstrace_cpu_trace_transfer(struct xstrace_cpu_trace *list, int64_t end)
{
	struct xstrace_activity span;
	struct xs_own_list own;
	struct xstrace_ids ids = xstrace_get_ids();
	int result = list ? not_recording()
			  : xs_refuse(XSTRACE_BAD_ARGUMENT, "xstrace_cpu_trace_transfer: no list");

	if (result) {
		xstrace_cpu_trace_free(list);
		return result;
	}
	/* the list itself, as what lasts from its start to its end */
	span = (struct xstrace_activity){ .name = list->name,
					  .start = list->start,
					  .end = end < list->start ? list->start : end,
					  .device = ids.device,
					  .type = XSTRACE_USER_ANNOTATION };
	if (list->name[0])
		(void)xstrace_cpu_trace_add(list, &span, 1, NULL);
	own = (struct xs_own_list){
		.activities = list->activities,
		.count = list->count,
		.names = list->names,
		.rows = list->row_texts,
		.metadata = list->metadata,
		.metadata_count = list->metadata_room < list->count ? list->metadata_room
								    : list->count,
		.clock = 0 - xs_monotonic_of(0),
	};
	xs_table_of_library()->activities(&own);
	xstrace_cpu_trace_free(list);
	return XSTRACE_OK;
}

/* What is known of one activity; value NULL: nothing. */
struct fact {
	const char *key, *value;
	bool quote;
};

static int report_one(const struct xstrace_activity *activity, const struct fact *facts,
		      size_t count)
{
	struct xstrace_cpu_trace *list = xstrace_cpu_trace_create(activity->start, "");
	int result = list ? xstrace_cpu_trace_add(list, activity, 1, NULL)
			  : xs_refuse(XSTRACE_NO_MEMORY, "no memory");

	for (size_t i = 0; !result && i < count; i++)
		if (facts[i].value)
			result = xstrace_activity_metadata(list, 0, facts[i].key, facts[i].value,
							   facts[i].quote);
	if (!result)
		return xstrace_cpu_trace_transfer(list, activity->end);
	xstrace_cpu_trace_free(list);
	return result;
}

int xstrace_report_backend_event(int64_t start, int64_t end, enum xstrace_scope scope,
				 const char *name, const char *backend)
{
	struct xstrace_ids ids = xstrace_get_ids();
	struct xstrace_activity activity = { .name = name,
					     .start = start,
					     .end = end,
					     .device = ids.device,
					     .resource = ids.resource,
					     .type = XSTRACE_CPU_OP };
	char number[16];
	const struct fact facts[] = { { "Backend", backend, true }, { "scope", number, false } };

	if ((unsigned)scope >= XSTRACE_SCOPES || !name)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "a back-end's event has a name and a scope");
	(void)snprintf(number, sizeof(number), "%d", (int)scope);
	return report_one(&activity, facts, sizeof(facts) / sizeof(facts[0]));
}

static int tell_about(const char *key, const char *value, bool json)
{
	int result = not_recording();

	if (result)
		return result;
	if (!key || !value)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "metadata has a key and a value");
	xs_table_of_library()->about(key, value, json);
	return XSTRACE_OK;
}

int xstrace_metadata(const char *key, const char *value)
{
	return tell_about(key, value, false);
}

int xstrace_metadata_json(const char *key, const char *json)
{
	return tell_about(key, json, true);
}

int xstrace_log_invariant_violation(const char *assertion, const char *error,
				    const char *profile_id, const char *group_profile_id)
{
	struct xstrace_ids ids = xstrace_get_ids();
	struct xstrace_activity activity = { .name = "invariant violation",
					     .start = xstrace_now(),
					     .device = ids.device,
					     .resource = ids.resource,
					     .type = XSTRACE_CPU_INSTANT_EVENT };
	const struct fact facts[] = {
		{ "assertion", assertion, true },
		{ "error", error, true },
		{ "profile_id", profile_id, true },
		{ "group_profile_id", group_profile_id, true },
	};

	return report_one(&activity, facts, sizeof(facts) / sizeof(facts[0]));
}
