/*
 * Arguments of tasks and marks as Chrome JSON: values of one key are one array, in the order in
 * which they were given.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chrome.h"
#include "task_record.h"

#define ARGS_MAX   32768u /* text of one slice's arguments; what does not fit is left out */
#define NUMBER_MAX 40u	  /* more than put_value() writes */
#define MEMBER_MIN 5u	  /* the shortest member: "":[] */

/*
 * One argument in the text of a slice's arguments: where its key begins, with "key":[, and where
 * the values end.
 */
struct member {
	uint32_t at, key_length, end;
};

/* The text of the slice that is being written. */
static struct {
	char text[ARGS_MAX + 128];
	uint32_t length, count;
	bool cut; /* it is not all */
	struct member members[ARGS_MAX / MEMBER_MIN + 1];
} made;

char *xs_chrome_put_double(char *o, double value, bool single)
{
	char text[40];

	if (!isfinite(value))
		return xs_put(o, isnan(value) ? "\"NaN\""
				 : value > 0  ? "\"Infinity\""
					      : "\"-Infinity\"");
	if (value == 0 && signbit(value))
		return xs_put(o, "-0.0"); /* -0 is an integer, and has no sign, for many readers */
	if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value)
		return xs_json_signed(o, (int64_t)value);
	for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	return xs_put(o, text);
}

/* Each case copies a size that the compiler knows: no call. */
#define LOAD(type) (memcpy(&value.type, data, sizeof(value.type)), value.type)

static inline char *put_value(char *o, uint8_t type, const unsigned char *data)
{
	union {
		uint64_t u64;
		int64_t s64;
		uint32_t u32;
		int32_t s32;
		uint16_t u16;
		int16_t s16;
		float f;
		double d;
	} value;

	switch (type) {
	case XS_VALUE_U64:
		return xs_json_uint(o, LOAD(u64));
	case XS_VALUE_S64:
		return xs_json_signed(o, LOAD(s64));
	case XS_VALUE_U32:
		return xs_json_uint(o, LOAD(u32));
	case XS_VALUE_S32:
		return xs_json_signed(o, LOAD(s32));
	case XS_VALUE_U16:
		return xs_json_uint(o, LOAD(u16));
	case XS_VALUE_S16:
		return xs_json_signed(o, LOAD(s16));
	case XS_VALUE_FLOAT:
		return xs_chrome_put_double(o, (double)LOAD(f), true);
	case XS_VALUE_DOUBLE:
		return xs_chrome_put_double(o, LOAD(d), false);
	default:
		return o + sprintf(o, "\"0x%llx\"", (unsigned long long)LOAD(u64));
	}
}

bool xs_chrome_is_text(const struct xs_arg *arg)
{
	return arg->type == XS_VALUE_TEXT || arg->type == XS_VALUE_JSON;
}

/* On one line, as all that readers go through line by line. */
char *xs_chrome_put_text(char *o, const struct xs_arg *arg, const unsigned char *data)
{
	const char *text = (const char *)data;

	if (arg->type == XS_VALUE_JSON && !arg->cut && !memchr(text, '\n', arg->count) &&
	    !memchr(text, '\r', arg->count) && xs_json_valid(text, arg->count))
		return xs_json_copy(o, text, arg->count);
	return xs_put(xs_json_escape(xs_put(o, "\""), text, arg->count), "\"");
}

/* key: "key":[ as in the text. Its number; made.count: there is none. */
static uint32_t find_member(const char *key, size_t length)
{
	uint32_t i;

	for (i = 0; i < made.count; i++)
		if (made.members[i].key_length == length &&
		    !memcmp(made.text + made.members[i].at, key, length))
			break;
	return i;
}

/* The values alone, with commas between. At most 6 bytes per byte of text, 30 per number. */
static char *put_values(char *o, const struct xs_arg *arg, const unsigned char *data)
{
	size_t size = xs_value_size(arg->type);

	if (xs_chrome_is_text(arg))
		return xs_chrome_put_text(o, arg, data);
	for (uint32_t i = 0; i < arg->count; i++) {
		if (i)
			*o++ = ',';
		o = put_value(o, arg->type, data + i * size);
	}
	return o;
}

/* What put_flags() writes; a program's own key of that name is no flag, and not to be lost. */
static bool is_flag(const char *text, size_t length)
{
	static const char flags[][12] = { "cut", "cancelled", "clock", "unfinished" };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (length == strlen(flags[i]) && !memcmp(text, flags[i], length))
			return true;
	return false;
}

/* At most 6 * 256 + 8 bytes. */
static char *put_key(char *o, const struct xs_process *process, uint32_t id)
{
	size_t length;
	const char *text = xs_text_of(process->run, id, &length);

	made.cut |= length > 256;
	o = xs_json_escape(xs_put(o, "\""), text, length < 256 ? length : 256);
	if (is_flag(text, length))
		o = xs_put(o, " (metadata)");
	return xs_put(o, "\":[");
}

/* So that the next one need not be escaped; not if it is too long to be remembered. */
static void remember_key(struct xs_process *process, uint32_t id, const char *json, size_t length)
{
	struct xs_key *key = &xs_chrome_of(process)->keys[id % XS_KEYS];

	if (!id || key->id == id || length > sizeof(key->json))
		return;
	memcpy(key->json, json, length);
	key->length = (uint32_t)length;
	key->id = id;
}

/* Behind all others. There is room. */
static void add_member(const char *key, uint32_t key_length, const char *values, uint32_t length)
{
	char *o = made.text + made.length;
	struct member *member = &made.members[made.count++];

	if (made.length)
		*o++ = ',';
	member->at = (uint32_t)(o - made.text);
	member->key_length = key_length;
	member->end = member->at + key_length + length;
	memcpy(o, key, key_length);
	memcpy(o + key_length, values, length);
	made.text[member->end] = ']';
	made.length = member->end + 1;
}

/* More values of a key that was given before. There is room. */
static void add_values(uint32_t i, const char *values, uint32_t length)
{
	struct member *member = &made.members[i];
	bool comma = length && member->end > member->at + member->key_length;
	char *o = made.text + member->end;

	memmove(o + comma + length, o, made.length - member->end);
	if (comma)
		*o++ = ',';
	memcpy(o, values, length);
	member->end += comma + length;
	made.length += comma + length;
	for (i++; i < made.count; i++) {
		made.members[i].at += comma + length;
		made.members[i].end += comma + length;
	}
}

static void add(struct xs_process *process, const struct xs_arg *arg, const unsigned char *data)
{
	/* the longest per byte: text with six for one, and floats with 16 for four */
	static char values[XS_RECORD_MAX * 8];
	char key[6 * 256 + 8];
	size_t length, values_length;
	uint32_t i;

	values_length = (size_t)(put_values(values, arg, data) - values);
	length = (size_t)(put_key(key, process, arg->key) - key);
	remember_key(process, arg->key, key, length);
	if (made.length + length + values_length + 2 > ARGS_MAX) {
		made.cut = true;
		return;
	}
	made.cut |= arg->cut;
	i = find_member(key, length);
	if (i == made.count)
		add_member(key, (uint32_t)length, values, (uint32_t)values_length);
	else
		add_values(i, values, (uint32_t)values_length);
}

static void add_id(const struct xs_id *id)
{
	static const char key[] = "\"id\":[";
	char value[64];
	int length = snprintf(value, sizeof(value), "\"0x%llx:0x%llx:0x%llx\"",
			      (unsigned long long)id->word[0], (unsigned long long)id->word[1],
			      (unsigned long long)id->word[2]);

	add_member(key, sizeof(key) - 1, value, (uint32_t)length);
}

/* What most tasks with arguments have: one number, of a key that is known. NULL: it is not that. */
static inline char *put_only_number(char *o, const struct xs_process *process,
				    const struct xs_extra *extra)
{
	const struct xs_key *key;
	struct xs_arg arg;

	if (extra->length != sizeof(arg) + 8) /* values are padded to that */
		return NULL;
	memcpy(&arg, extra->args, sizeof(arg));
	key = &xs_chrome_of(process)->keys[arg.key % XS_KEYS];
	if (!arg.key || key->id != arg.key || arg.count != 1 || arg.cut || xs_chrome_is_text(&arg))
		return NULL;
	memcpy(o, key->json, sizeof(key->json)); /* of a fixed size: no call */
	o = put_value(o + key->length, arg.type, extra->args + sizeof(arg));
	return xs_put(o, "]");
}

static __attribute__((noinline)) char *put_all(char *o, struct xs_process *process,
					       const struct xs_id *id, const struct xs_extra *extra)
{
	const unsigned char *values;
	struct xs_arg arg;
	uint32_t at = 0;

	made.length = made.count = 0;
	if (id)
		add_id(id);
	while (extra && xs_args_next(extra->args, extra->length, &at, &arg, &values))
		add(process, &arg, values);
	memcpy(o, made.text, made.length);
	return o + made.length;
}

static __attribute__((noinline)) char *put_flags(char *o, const struct xs_extra *extra, bool cut,
						 bool unfinished)
{
	if (cut)
		o = xs_put(o, "\"cut\":true,");
	if (extra && extra->cancelled)
		o = xs_put(o, "\"cancelled\":true,");
	if (extra && extra->unplaced)
		o = xs_put(o, "\"clock\":\"not placed\",");
	if (extra && extra->moved)
		o = xs_put(o, "\"clock\":\"moved\",");
	if (unfinished)
		o = xs_put(o, "\"unfinished\":true,");
	return o;
}

char *xs_chrome_put_args(char *o, struct xs_process *process, const struct xs_id *id,
			 const struct xs_extra *extra, bool unfinished)
{
	char *begin = o, *first, *text = NULL;
	bool cut = extra && extra->cut;

	o = first = xs_put(o, ",\"args\":{");
	if (extra && extra->length && !id)
		text = put_only_number(o, process, extra);
	if (!text && (id || (extra && extra->length))) {
		made.cut = cut;
		text = put_all(o, process, id, extra);
		cut = made.cut;
	}
	if (text && text > first)
		o = xs_put(text, ",");
	if (cut || unfinished || (extra && (extra->cancelled || extra->unplaced || extra->moved)))
		o = put_flags(o, extra, cut, unfinished);
	if (o == first)
		return begin;
	o[-1] = '}'; /* the last comma */
	return o;
}
