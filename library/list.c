/*
 * Activities that the program describes itself, and what it says of the whole trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

#define TEXT_MOST 16384u /* bytes of a name or a value that are looked at */
#define ROWS_MAX  4096u	 /* tracks of one list; what is beyond them shares one */

struct row {
	int64_t device, resource;
	char text[64];
};

/* What is known of an activity: pairs of texts, each with its NUL. */
struct facts {
	char *text;
	uint32_t length, count;
};

struct xstrace_cpu_trace {
	int64_t start;
	char *name;
	struct xs_own_activity *activities; /* name and row: offset and number until the transfer */
	struct facts *facts;		    /* of the first fact_room activities */
	size_t count, room, fact_room;
	char *text; /* the names, each with its NUL */
	size_t length, text_room;
	struct row *rows;
	uint32_t row_count, last_row;
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

static bool is_row(const struct row *row, const struct xstrace_activity *activity)
{
	return row->device == activity->device && row->resource == activity->resource;
}

/* The number of the activity's track; the last one is likely the next one's. -1: no memory. */
static int64_t row_of(struct xstrace_cpu_trace *list, const struct xstrace_activity *activity)
{
	struct row *grown;
	bool host;

	if (list->row_count && is_row(&list->rows[list->last_row], activity))
		return list->last_row;
	for (list->last_row = 0; list->last_row < list->row_count; list->last_row++)
		if (is_row(&list->rows[list->last_row], activity))
			return list->last_row;
	if (list->row_count == ROWS_MAX)
		return list->last_row = ROWS_MAX - 1;
	grown = realloc(list->rows, (list->row_count + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	list->rows = grown;
	grown += list->row_count++;
	grown->device = activity->device;
	grown->resource = activity->resource;
	host = activity->device == getpid();
	if (host)
		(void)snprintf(grown->text, sizeof(grown->text), "activities of thread %lld",
			       (long long)activity->resource);
	else
		(void)snprintf(grown->text, sizeof(grown->text), "activities of device %lld, %lld",
			       (long long)activity->device, (long long)activity->resource);
	return list->last_row;
}

static bool add(struct xstrace_cpu_trace *list, const struct xstrace_activity *activity)
{
	size_t length = activity->name ? strnlen(activity->name, TEXT_MOST) : 0;
	int64_t row = row_of(list, activity);
	bool instant = activity->type == XSTRACE_CPU_INSTANT_EVENT;

	if (row < 0 || !reserve(&list->text, &list->text_room, list->length + length + 1, 1))
		return false;
	memcpy(list->text + list->length, activity->name ? activity->name : "", length);
	list->text[list->length + length] = '\0';
	list->activities[list->count++] = (struct xs_own_activity){
		.start = (uint64_t)activity->start,
		.end = (uint64_t)(instant ? activity->start : activity->end),
		.device = activity->device,
		.resource = activity->resource,
		.correlation = activity->correlation,
		.type = (uint32_t)activity->type,
		.name = (const char *)(uintptr_t)list->length,
		.name_length = (uint32_t)length,
		.row = (const char *)(uintptr_t)row,
	};
	list->length += length + 1;
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

/* Both or none. The value as the trace shows it: text, whatever it was given as. */
static bool append(struct facts *facts, const char *key, const char *value)
{
	size_t key_length = strnlen(key, TEXT_MOST), value_length = strnlen(value, TEXT_MOST);
	size_t length = facts->length + key_length + value_length + 2;
	char *grown = length <= UINT32_MAX ? realloc(facts->text, length) : NULL;

	if (!grown)
		return false;
	(void)put(put(grown + facts->length, key, key_length), value, value_length);
	facts->text = grown;
	facts->length = (uint32_t)length;
	facts->count++;
	return true;
}

/* There is room for what is known of each activity so far. */
static bool reserve_facts(struct xstrace_cpu_trace *list)
{
	size_t before = list->fact_room;

	if (!reserve(&list->facts, &list->fact_room, list->count, sizeof(*list->facts)))
		return false;
	memset(list->facts + before, 0, (list->fact_room - before) * sizeof(*list->facts));
	return true;
}

int xstrace_activity_metadata(struct xstrace_cpu_trace *list, size_t number, const char *key,
			      const char *value, bool quote)
{
	struct facts *facts;

	(void)quote; /* arguments of slices are lists of texts and numbers */
	if (!list || number >= list->count || !key || !value)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "the list has no activity %zu", number);
	if (!reserve_facts(list))
		return xs_refuse(XSTRACE_NO_MEMORY, "no memory");
	facts = &list->facts[number];
	return append(facts, key, value) ? XSTRACE_OK : xs_refuse(XSTRACE_NO_MEMORY, "no memory");
}

void xstrace_cpu_trace_free(struct xstrace_cpu_trace *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->fact_room; i++)
		free(list->facts[i].text);
	free(list->facts);
	free(list->activities);
	free(list->text);
	free(list->rows);
	free(list->name);
	free(list);
}

/* From offsets to addresses, and to the run's clock. */
static void finish(struct xstrace_cpu_trace *list)
{
	uint64_t offset = 0 - xs_monotonic_of(0);

	for (size_t i = 0; i < list->count; i++) {
		struct xs_own_activity *activity = &list->activities[i];

		activity->name = list->text + (uintptr_t)activity->name;
		activity->row = list->rows[(uintptr_t)activity->row].text;
		activity->start -= offset;
		activity->end -= offset;
		if (i < list->fact_room) {
			activity->metadata = list->facts[i].text;
			activity->metadata_count = list->facts[i].count;
		}
	}
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
	finish(list);
	xs_table_of_library()->activities(list->activities, list->count);
	xstrace_cpu_trace_free(list);
	return XSTRACE_OK;
}

static int report_one(const struct xstrace_activity *activity, const char *const *metadata)
{
	struct xstrace_cpu_trace *list = xstrace_cpu_trace_create(activity->start, "");
	int result = list ? xstrace_cpu_trace_add(list, activity, 1, NULL)
			  : xs_refuse(XSTRACE_NO_MEMORY, "no memory");

	for (; !result && metadata[0]; metadata += 2)
		if (metadata[1])
			result = xstrace_activity_metadata(list, 0, metadata[0], metadata[1], true);
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
	const char *metadata[] = { "Backend", backend, "scope", number, NULL };

	if ((unsigned)scope >= XSTRACE_SCOPES || !name)
		return xs_refuse(XSTRACE_BAD_ARGUMENT, "a back-end's event has a name and a scope");
	(void)snprintf(number, sizeof(number), "%d", (int)scope);
	return report_one(&activity, metadata);
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
	const char *metadata[] = {
		"assertion", assertion,		 "error",	   error, "profile_id",
		profile_id,  "group_profile_id", group_profile_id, NULL
	};

	return report_one(&activity, metadata);
}
