/*
 * The Chrome JSON of what a program that contains the library has described itself.
 */
#include <stdlib.h>
#include <string.h>

#include "activity_types.h"
#include "chrome.h"
#include "task_record.h"

#define ABOUTS_MAX 1024u
#define ABOUT_ROOM (4u << 20) /* bytes of them all, as JSON */

struct xs_chrome_about {
	uint32_t count, length; /* length: bytes of JSON that they need at most */
	struct about {
		uint32_t key, length, most; /* most: of JSON */
		bool json;
		char *text;
	} about[ABOUTS_MAX];
};

/* The program has given it itself, as in Kineto's format: a second one would hide the first. */
static bool has_external_id(const struct xs_process *process, const struct xs_activity *activity)
{
	const unsigned char *values;
	uint32_t at = 0;
	struct xs_arg arg;
	size_t length;

	while (xs_args_next(activity->args, activity->length, &at, &arg, &values)) {
		const char *key = xs_text_of(process->run, arg.key, &length);

		if (length == strlen("External id") && !memcmp(key, "External id", length))
			return true;
	}
	return false;
}

void xs_chrome_activity(struct xs_track *track, const struct xs_activity *activity)
{
	struct xs_process *process = track->process;
	const struct xs_activity_record *record = activity->record;
	const struct xs_extra args = { .args = (unsigned char *)activity->args,
				       .length = activity->length };
	char *o = xs_chrome_own_slice(process, record->row, activity->start, activity->end);

	if (!o)
		return;
	o = xs_chrome_put_args(o, process, NULL, &args, false);
	if (record->correlation && !has_external_id(process, activity)) {
		o = o[-1] == '}' ? xs_put(o - 1, ",") : xs_put(o, ",\"args\":{");
		o = xs_put(xs_put_count(o, "\"External id\":", record->correlation), "}");
	}
	o = xs_put(xs_put(xs_put(o, ",\"cat\":\""), xs_activity_type_name(record->type)), "\"");
	xs_chrome_finish(xs_chrome_of(process),
			 xs_chrome_put_bare_name(o, process, record->event.name));
}

/* The key's place, a new one if there is room. NULL: there is none. */
static struct about *about_of(struct xs_chrome_about *abouts, uint32_t key)
{
	for (uint32_t i = 0; i < abouts->count; i++)
		if (abouts->about[i].key == key)
			return &abouts->about[i];
	if (abouts->count == ABOUTS_MAX)
		return NULL;
	abouts->about[abouts->count] = (struct about){ .key = key };
	return &abouts->about[abouts->count++];
}

/* The last word on a key counts. */
void xs_chrome_about(struct xs_process *process, uint32_t key, const char *text, size_t length,
		     bool json)
{
	struct xs_chrome *chrome = xs_chrome_of(process);
	size_t most = (json ? 3 * length : 6 * length + 2) + 6 * 256 + 8;
	struct about *about;
	char *copy;

	if (!chrome->about)
		chrome->about = calloc(1, sizeof(*chrome->about));
	copy = chrome->about && chrome->about->length + most <= ABOUT_ROOM ? malloc(length + 1)
									   : NULL;
	about = copy ? about_of(chrome->about, key) : NULL;
	if (!about) {
		free(copy);
		process->omitted[XS_OMIT_NAMES]++;
		return;
	}
	memcpy(copy, text, length);
	free(about->text);
	about->text = copy;
	about->length = (uint32_t)length;
	about->json = json;
	chrome->about->length += (uint32_t)most - about->most; /* the former word goes */
	about->most = (uint32_t)most;
}

size_t xs_chrome_about_room(const struct xs_chrome *chrome)
{
	return chrome->about ? chrome->about->length + 64u : 0;
}

/* "key":value, on one line, as all that readers go through line by line. */
static char *put_member(char *o, const struct xs_process *process, const struct about *about)
{
	size_t length;
	const char *key = xs_text_of(process->run, about->key, &length);
	char *value;

	o = xs_put(xs_json_escape(xs_put(o, "\""), key, length < 256 ? length : 256), "\":");
	if (!about->json)
		return xs_put(xs_json_escape(xs_put(o, "\""), about->text, about->length), "\"");
	value = o;
	o = xs_json_copy(o, about->text, about->length);
	for (; value < o; value++)
		if (*value == '\n' || *value == '\r') /* between values: text has none */
			*value = ' ';
	return o;
}

static bool is_called(const struct xs_process *process, const struct about *about, const char *key)
{
	size_t length;
	const char *text = xs_text_of(process->run, about->key, &length);

	return length == strlen(key) && !memcmp(text, key, length);
}

bool xs_chrome_has_about(const struct xs_process *process, const char *key)
{
	const struct xs_chrome_about *abouts = xs_chrome_of(process)->about;

	for (uint32_t i = 0; abouts && i < abouts->count; i++)
		if (is_called(process, &abouts->about[i], key))
			return true;
	return false;
}

char *xs_chrome_put_about_keys(char *o, const struct xs_process *process,
			       const char *const *reserved)
{
	const struct xs_chrome_about *abouts = xs_chrome_of(process)->about;

	for (uint32_t i = 0; abouts && i < abouts->count; i++) {
		const char *const *word = reserved;

		while (*word && !is_called(process, &abouts->about[i], *word))
			word++;
		if (!*word)
			o = put_member(xs_put(o, ","), process, &abouts->about[i]);
	}
	return o;
}

char *xs_chrome_put_about(char *o, const struct xs_process *process)
{
	const struct xs_chrome_about *abouts = xs_chrome_of(process)->about;

	for (uint32_t i = 0; abouts && i < abouts->count; i++)
		o = put_member(xs_put(o, i ? "," : ",\"application\":{"), process,
			       &abouts->about[i]);
	return abouts && abouts->count ? xs_put(o, "}") : o;
}

void xs_chrome_about_free(struct xs_chrome *chrome)
{
	for (uint32_t i = 0; chrome->about && i < chrome->about->count; i++)
		free(chrome->about->about[i].text);
	free(chrome->about);
	chrome->about = NULL;
}
