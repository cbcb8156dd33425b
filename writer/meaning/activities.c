/*
 * Activities and metadata that the program has described itself (library/inside.c).
 */
#include "activities.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "sink.h"
#include "task_record.h"

#define ABOUT_MAX (1u << 20) /* bytes of one text */

/* A text that comes in pieces. */
struct xs_about_text {
	uint32_t key, length, room;
	char *text;
};

static void read_activity(struct xs_track *track, const struct xs_activity_record *record,
			  uint32_t size)
{
	struct xs_process *process = track->process;
	uint64_t offset = (uint64_t)process->mono_offset;
	struct xs_activity activity = { .record = record,
					.start = record->start + offset,
					.end = record->end + offset,
					.args = (const unsigned char *)(record + 1),
					.length = record->length };

	if (size < sizeof(*record) || activity.length > size - sizeof(*record))
		return;
	if (record->end < record->start || record->end > INT64_MAX || (int64_t)activity.start < 0 ||
	    activity.end > process->horizon) {
		process->impossible++;
		return;
	}
	XS_TELL_SINKS(process, activity, track, &activity);
	if (activity.end > process->last_ns)
		process->last_ns = activity.end;
}

static bool append(struct xs_about_text *about, const char *text, uint32_t length)
{
	char *grown;

	if (length > ABOUT_MAX - about->length)
		return false;
	/* an empty piece needs a place, too */
	if (!about->text || about->length + length > about->room) {
		uint32_t room = 2 * (about->length + length) + 16;

		grown = realloc(about->text, room);
		if (!grown)
			return false;
		about->text = grown;
		about->room = room;
	}
	memcpy(about->text + about->length, text, length);
	about->length += length;
	return true;
}

static void tell_about(struct xs_track *track, uint32_t key, const char *text, uint32_t length,
		       bool json)
{
	/* what is no JSON would spoil the trace: it is shown as the text that it is */
	json &= xs_json_valid(text, length);
	XS_TELL_SINKS(track->process, about, track->process, key, text, length, json);
}

static void read_about(struct xs_track *track, const struct xs_args_record *record, uint32_t size)
{
	bool json = record->event.flags & XS_ABOUT_FLAG_JSON,
	     more = record->event.flags & XS_ABOUT_FLAG_MORE;
	const char *text = (const char *)(record + 1);
	struct xs_about_text *about = track->about;

	if (size < sizeof(*record) || record->length > size - sizeof(*record))
		return;
	if (about && about->length && about->key != record->event.name)
		about->length = 0; /* its end was lost */
	if (!more && (!about || !about->length)) {
		tell_about(track, record->event.name, text, record->length, json);
		return;
	}
	if (!about)
		about = track->about = calloc(1, sizeof(*about));
	if (!about)
		return;
	about->key = record->event.name;
	if (!append(about, text, record->length)) {
		track->process->omitted[XS_OMIT_NAMES]++;
		about->length = 0;
	} else if (!more) {
		tell_about(track, about->key, about->text, about->length, json);
		about->length = 0;
	}
}

void xs_about_forget(struct xs_track *track)
{
	if (track->about)
		free(track->about->text);
	free(track->about);
	track->about = NULL;
}

void xs_activity_read(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	const struct xs_external_record *external = (const void *)event;

	if (event->kind == XS_ACTIVITY) {
		read_activity(track, (const void *)event, size);
	} else if (event->kind == XS_ABOUT) {
		read_about(track, (const void *)event, size);
	} else if (size >= sizeof(*external)) {
		track->external = external->id;
		track->user_external = external->user_id;
	}
}
