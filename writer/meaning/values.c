/*
 * Arguments and results of calls as text and as JSON. Nothing that a record holds is believed: a
 * value is shown as far as its bytes go.
 */
#include <stdio.h>
#include <string.h>

#include "values.h"
#include "json.h"
#include "text.h"

#define ARRAY_SHOWN 16u
#define BYTES_SHOWN 32u

static bool room(const struct xs_line *line)
{
	return line->at < line->stop;
}

void xs_line_put(struct xs_line *line, const char *text)
{
	size_t length = strlen(text);

	if (!room(line))
		return;
	length = length < XS_LINE_SLACK ? length : XS_LINE_SLACK;
	memcpy(line->at, text, length);
	line->at += length;
}

static void put_uint(struct xs_line *line, uint64_t value)
{
	if (room(line))
		line->at = xs_json_uint(line->at, value);
}

static void put_hex(struct xs_line *line, uint64_t value)
{
	static const char digits[] = "0123456789abcdef";
	int shift = 60;

	if (!room(line))
		return;
	if (line->json)
		*line->at++ = '"';
	*line->at++ = '0';
	*line->at++ = 'x';
	while (shift && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*line->at++ = digits[value >> shift & 15];
	if (line->json)
		*line->at++ = '"';
}

/* In quotes; cut: there was more. Text is what comes before the first 0. */
static void put_quoted(struct xs_line *line, const char *text, size_t length, bool cut)
{
	char *begin;

	length = strnlen(text, length);
	if (!room(line))
		return;
	length = length < XS_LINE_SLACK / 8 ? length : XS_LINE_SLACK / 8;
	*line->at++ = '"';
	begin = line->at;
	line->at = xs_json_escape(begin, text, length); /* also for text: one line */
	if (!line->json)
		line->at = xs_plain(begin, begin,
				    (size_t)(line->at -
					     begin)); /* and nobody's terminal is at its mercy */
	if (line->json && cut)
		line->at = stpcpy(line->at, "…");
	*line->at++ = '"';
	if (!line->json && cut)
		xs_line_put(line, "...");
}

static uint64_t number(const unsigned char *data, uint32_t size)
{
	uint64_t value = 0;

	memcpy(&value, data, size < 8 ? size : 8);
	return value;
}

static int64_t signed_number(const unsigned char *data, uint32_t size)
{
	unsigned shift = size < 8 ? 64 - 8 * size : 0;

	return size ? (int64_t)(number(data, size) << shift) >> shift : 0;
}

static void put_int(struct xs_line *line, int64_t value)
{
	if (value < 0)
		xs_line_put(line, "-");
	put_uint(line, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/*
 * The name of a value; NULL: it has none. Constants may be signed or not, and narrower than 64
 * bits.
 */
static const char *constant(const struct xs_type *type, const unsigned char *data, uint32_t size)
{
	uint64_t mask = size < 8 ? (1ull << 8 * size) - 1 : UINT64_MAX,
		 value = number(data, size) & mask;

	for (uint32_t i = 0; i < type->constant_count; i++)
		if (((uint64_t)type->constants[i].value & mask) == value)
			return type->constants[i].name;
	return NULL;
}

static void put_flags(struct xs_line *line, const struct xs_type *type, const unsigned char *data,
		      uint32_t size)
{
	uint64_t value = number(data, size);
	const char *name = constant(type, data, size);
	bool first = true;

	if (!value || name) {
		if (line->json && name)
			xs_line_put(line, "\"");
		xs_line_put(line, name ? name : "0");
		if (line->json && name)
			xs_line_put(line, "\"");
		return;
	}
	if (line->json)
		xs_line_put(line, "\"");
	for (uint32_t i = 0; i < type->constant_count && value; i++) {
		uint64_t bit = (uint64_t)type->constants[i].value;

		if (!bit || (bit & value) != bit)
			continue;
		xs_line_put(line, first ? "" : "|");
		xs_line_put(line, type->constants[i].name);
		first = false;
		value &= ~bit;
	}
	if (value || first) {
		bool json = line->json;

		xs_line_put(line, first ? "" : "|");
		line->json = false;
		put_hex(line, value);
		line->json = json;
	}
	if (line->json)
		xs_line_put(line, "\"");
}

static void put_bytes(struct xs_line *line, const unsigned char *data, uint32_t size, bool cut)
{
	uint32_t printable = 0, shown = size < BYTES_SHOWN ? size : BYTES_SHOWN;
	char hex[4];

	while (printable < size && data[printable] >= ' ' && data[printable] < 0x7f)
		printable++;
	if (printable > 2 && (printable == size || !data[printable]) && size != 4 && size != 8) {
		put_quoted(line, (const char *)data, size, cut);
		return;
	}
	if (!cut && (size == 1 || size == 2 || size == 4 || size == 8)) {
		put_hex(line, number(data, size));
		return;
	}
	xs_line_put(line, line->json ? "\"" : "");
	for (uint32_t i = 0; i < shown; i++) {
		(void)snprintf(hex, sizeof(hex), i ? " %02x" : "%02x", data[i]);
		xs_line_put(line, hex);
	}
	xs_line_put(line, shown < size || cut ? " ..." : "");
	xs_line_put(line, line->json ? "\"" : "");
}

static void put_member(struct xs_line *line, const char *name, bool first)
{
	if (line->json) {
		xs_line_put(line, first ? "\"" : ",\"");
		xs_line_put(line, name);
		xs_line_put(line, "\":");
	} else {
		xs_line_put(line, first ? "" : ", ");
		xs_line_put(line, name);
		xs_line_put(line, " = ");
	}
}

static void put_real(struct xs_line *line, const unsigned char *data, uint32_t size)
{
	char text[32];
	double real;
	float single;

	memcpy(&single, data, sizeof(single) <= size ? sizeof(single) : 0);
	memcpy(&real, data, sizeof(real) <= size ? sizeof(real) : 0);
	if (size < sizeof(single))
		return;
	real = size < sizeof(real) ? (double)single : real;
	(void)snprintf(text, sizeof(text),
		       __builtin_isfinite(real) || !line->json ? "%.9g" : "\"%.9g\"", real);
	xs_line_put(line, text);
}

static void put_enum(struct xs_line *line, const struct xs_type *type, const unsigned char *data,
		     uint32_t size)
{
	const char *name = constant(type, data, size);

	if (!name) {
		put_hex(line, number(data, size));
		return;
	}
	xs_line_put(line, line->json ? "\"" : "");
	xs_line_put(line, name);
	xs_line_put(line, line->json ? "\"" : "");
}

static void put_values(struct xs_line *line, const struct xs_type *type, const unsigned char *data,
		       uint32_t bytes, uint64_t count);
static void put_value(struct xs_line *line, const struct xs_type *type, const unsigned char *data,
		      uint32_t bytes);

static void put_struct(struct xs_line *line, const struct xs_type *type, const unsigned char *data,
		       uint32_t bytes)
{
	bool first = true;

	xs_line_put(line, "{");
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct xs_field *field = &type->fields[i];
		uint32_t length = field->type->size * field->count;

		if (field->offset + length > bytes)
			break;
		put_member(line, field->name, first);
		first = false;
		if (field->type->show == XS_SHOW_TEXT)
			put_quoted(line, (const char *)data + field->offset, length, false);
		else if (field->count > 1)
			put_values(line, field->type, data + field->offset, length, field->count);
		else
			put_value(line, field->type, data + field->offset, length);
	}
	xs_line_put(line, "}");
}

static void put_value(struct xs_line *line, const struct xs_type *type, const unsigned char *data,
		      uint32_t bytes)
{
	uint32_t size = type->size < bytes ? type->size : bytes;

	switch (type->show) {
	case XS_SHOW_HEX:
		put_hex(line, number(data, size));
		break;
	case XS_SHOW_UINT:
		put_uint(line, number(data, size));
		break;
	case XS_SHOW_INT:
		put_int(line, signed_number(data, size));
		break;
	case XS_SHOW_REAL:
		put_real(line, data, size);
		break;
	case XS_SHOW_ENUM:
		put_enum(line, type, data, size);
		break;
	case XS_SHOW_FLAGS:
		put_flags(line, type, data, size);
		break;
	case XS_SHOW_TEXT:
		put_quoted(line, (const char *)data, bytes, false);
		break;
	case XS_SHOW_BYTES:
		put_bytes(line, data, size, false);
		break;
	case XS_SHOW_STRUCT:
		put_struct(line, type, data, bytes);
		break;
	}
}

/* An array in brackets. */
static void put_values(struct xs_line *line, const struct xs_type *type, const unsigned char *data,
		       uint32_t bytes, uint64_t count)
{
	uint32_t size = type->size ? type->size : 1, there = bytes / size, i;

	xs_line_put(line, line->json ? "[" : "{");
	for (i = 0; i < there && i < count && i < ARRAY_SHOWN && room(line); i++) {
		xs_line_put(line, !i ? "" : line->json ? "," : ", ");
		put_value(line, type, data + i * size, size);
	}
	if (i < count)
		xs_line_put(line, line->json ? (i ? ",\"…\"" : "\"…\"") : i ? ", ..." : "...");
	xs_line_put(line, line->json ? "]" : "}");
}

/* ---- what an argument points to ---- */

struct pointee {
	const struct xs_value *value;
	const unsigned char *data;
};

/* The next value of a record; NULL: there is none that can be one. */
static const struct xs_value *next_value(const struct xs_values_record *values, uint32_t *at)
{
	const unsigned char *data = (const unsigned char *)(values + 1);
	uint32_t most = values->event.words * 8u - (uint32_t)sizeof(*values),
		 length = values->length < most ? values->length : most;
	const struct xs_value *value = (const void *)(data + *at);

	if (length < *at + sizeof(*value) || length < *at + sizeof(*value) + value->bytes)
		return NULL;
	*at += (uint32_t)sizeof(*value) + (value->bytes + 7u) / 8u * 8u;
	return value;
}

static const struct xs_value *value_of(const struct xs_values_record *values, uint32_t argument,
				       bool member)
{
	const struct xs_value *value;
	uint32_t at = 0;

	while (values && (value = next_value(values, &at)))
		if (value->argument == argument && value->member == member)
			return value;
	return NULL;
}

static void put_pointee(struct xs_line *line, const struct xs_argument *argument,
			const struct xs_value *value)
{
	const unsigned char *data = (const unsigned char *)(value + 1);
	const struct xs_type *type = argument->pointee;

	if (type->show == XS_SHOW_TEXT)
		put_quoted(line, (const char *)data, value->bytes, value->count > value->bytes);
	else if (type->show == XS_SHOW_BYTES && type->size == 1)
		put_bytes(line, data, value->bytes, value->count > value->bytes);
	else if (argument->array)
		put_values(line, type, data, value->bytes, value->count);
	else
		put_value(line, type, data, value->bytes);
}

static void put_name(struct xs_line *line, const char *name)
{
	if (line->json) {
		xs_line_put(line, line->some ? ",\"" : "\"");
		xs_line_put(line, name);
		xs_line_put(line, "\":");
	} else {
		xs_line_put(line, " ");
		xs_line_put(line, name);
		xs_line_put(line, " = ");
	}
	line->some = true;
}

/* Behind the address: "text", {1, 2}, {member = 1}, (Count = 1). */
static void put_read(struct xs_line *line, const struct xs_argument *argument,
		     const struct xs_value *value)
{
	bool single = !argument->array && argument->pointee->show != XS_SHOW_STRUCT &&
		      argument->pointee->show != XS_SHOW_TEXT;

	if (single) {
		xs_line_put(line, " (");
		xs_line_put(line, argument->value_name);
		xs_line_put(line, " = ");
	} else {
		xs_line_put(line, " ");
	}
	put_pointee(line, argument, value);
	xs_line_put(line, single ? ")" : "");
}

static size_t place_of(uint64_t handle)
{
	return (size_t)(handle * 0x9e3779b97f4a7c15ull >> 32) % XS_HANDLES;
}

void xs_handles_learn(struct xs_handles *handles, const struct xs_function *function,
		      const struct xs_values_record *values)
{
	uint32_t argument = function->names - 1u;
	const struct xs_value *text = value_of(values, argument, true), *value = NULL;
	uint64_t handle = values->result;
	char *name;

	text = text ? text : value_of(values, argument, false);
	if (function->handle)
		value = value_of(values, function->handle - 1u, false);
	if (value)
		handle = number((const unsigned char *)(value + 1), value->bytes);
	if (!text || !handle || (function->handle && !value))
		return;
	handles->known[place_of(handle)].handle = handle;
	name = handles->known[place_of(handle)].name;
	*xs_plain(name, (const char *)(text + 1),
		  strnlen((const char *)(text + 1), text->bytes < 119u ? text->bytes : 119u)) =
		'\0';
}

static void put_handle_name(struct xs_line *line, uint64_t handle)
{
	const struct xs_handles *handles = line->handles;

	if (line->json || !handles || !handle || handles->known[place_of(handle)].handle != handle)
		return;
	xs_line_put(line, " (");
	xs_line_put(line, handles->known[place_of(handle)].name);
	xs_line_put(line, ")");
}

/* As what it is afterwards is shown, see xs_show_values(). */
static void put_before(struct xs_line *line, const struct xs_argument *argument, uint64_t word)
{
	unsigned char data[8];

	memcpy(data, &word, sizeof(data));
	if (!line->json && argument->pointee->show == XS_SHOW_UINT)
		put_hex(line, word);
	else
		put_value(line, argument->pointee, data, argument->pointee->size);
}

void xs_show_arguments(struct xs_line *line, const struct xs_function *function,
		       const uint64_t *words, uint32_t count, const struct xs_values_record *values)
{
	for (uint32_t i = 0; i < function->count && i < count; i++) {
		const struct xs_argument *argument = &function->arguments[i];
		const struct xs_value *value =
			argument->pointee && !argument->out ? value_of(values, i, false) : NULL;
		/* by value */
		bool is_struct = argument->type && argument->type->show == XS_SHOW_STRUCT;
		bool whole = value && (is_struct || argument->pointee->show == XS_SHOW_TEXT);
		bool before = argument->before && argument->before < count && words[i];
		unsigned char word[8];

		put_name(line, argument->name);
		memcpy(word, &words[i], sizeof(word));
		if (!argument->type || (is_struct && !value))
			xs_line_put(line, line->json ? "null" : "{...}");
		else if (whole || (value && line->json))
			put_pointee(line, argument, value); /* no address: it says nothing */
		else if (before && line->json)
			put_before(line, argument, words[argument->before]);
		else if (argument->type->show == XS_SHOW_REAL)
			put_value(line, &(struct xs_type){ .show = XS_SHOW_REAL, .size = 8 }, word,
				  8);
		else
			put_value(line, argument->type, word, 8);
		if (argument->named)
			put_handle_name(line, words[i]);
		if (value && !whole && !line->json)
			put_read(line, argument, value);
		if (before && !line->json) {
			xs_line_put(line, " (");
			xs_line_put(line, argument->value_name);
			xs_line_put(line, " = ");
			put_before(line, argument, words[argument->before]);
			xs_line_put(line, ")");
		}
		value = value ? value_of(values, i, true) : NULL;
		if (!value)
			continue;
		if (line->json)
			put_name(line, "text");
		else
			xs_line_put(line, " ");
		put_quoted(line, (const char *)(value + 1), value->bytes,
			   value->count > value->bytes);
	}
}

/* name[0] = 1 name[1] = 2 */
static void put_elements(struct xs_line *line, const struct xs_argument *argument,
			 const struct xs_value *value)
{
	uint32_t size = argument->pointee->size ? argument->pointee->size : 1,
		 there = value->bytes / size, i;
	const unsigned char *data = (const unsigned char *)(value + 1);
	char name[160];

	for (i = 0; i < there && i < ARRAY_SHOWN && room(line); i++) {
		(void)snprintf(name, sizeof(name), "%s[%u]", argument->value_name, i);
		put_name(line, name);
		put_value(line, argument->pointee, data + i * size, size);
	}
	if (i < value->count)
		xs_line_put(line, " ...");
}

void xs_show_values(struct xs_line *line, const struct xs_api *api,
		    const struct xs_function *function, const struct xs_values_record *values,
		    bool late)
{
	const struct xs_value *value;
	uint32_t at = 0;

	if (!values)
		return;
	if (function->returns >= XS_RETURNS_POINTER) {
		put_name(line, "result");
		put_hex(line, values->result);
	}
	while ((value = next_value(values, &at))) {
		const struct xs_argument *argument = value->argument < function->count
							     ? &function->arguments[value->argument]
							     : NULL;

		if (!argument || !argument->pointee || value->member || (!argument->out && !late))
			continue;
		if (argument->array && !line->json && argument->pointee->show != XS_SHOW_TEXT &&
		    argument->pointee->show != XS_SHOW_BYTES) {
			put_elements(line, argument, value);
			continue;
		}
		put_name(line, argument->value_name);
		if (api->hexadecimal && !line->json && !argument->array &&
		    argument->pointee->show == XS_SHOW_UINT && value->bytes <= 8)
			put_hex(line, number((const unsigned char *)(value + 1), value->bytes));
		else
			put_pointee(line, argument, value);
	}
}

static const struct xs_type *result_type(const struct xs_api *api,
					 const struct xs_function *function)
{
	uint64_t number = (uint64_t)(function - api->functions);

	return api->later_result && number >= api->later_from ? api->later_result : api->result;
}

void xs_show_result(struct xs_line *line, const struct xs_api *api,
		    const struct xs_function *function, int64_t result, bool failed)
{
	const struct xs_type *type = result_type(api, function);
	unsigned char word[8];
	const char *name;

	memcpy(word, &result, sizeof(word));
	name = constant(type, word, type->size);
	xs_line_put(line, name ? name : "(unknown)");
	if (api->hexadecimal) {
		xs_line_put(line, "(");
		put_hex(line, (uint64_t)result & UINT32_MAX);
	} else {
		xs_line_put(line, " (");
		put_int(line, result);
	}
	xs_line_put(line, failed ? ") [FAILED]" : ")");
}

char *xs_show_given(char *out, const struct xs_function *function, const struct xs_given *given)
{
	struct xs_line line = { .at = out + 1, .stop = out + 1 + XS_SHOWN_LINE / 2, .json = true };

	*out = '{';
	xs_show_arguments(&line, function, given->words, given->count, given->values);
	*line.at = '}';
	return line.at + 1;
}

char *xs_show_returned(char *out, const struct xs_api *api, const struct xs_function *function,
		       const struct xs_given *given)
{
	struct xs_line line = { .at = out + 1, .stop = out + 1 + XS_SHOWN_LINE / 2, .json = true };

	*out = '{';
	xs_show_values(&line, api, function, given->values, false);
	*line.at = '}';
	return line.at + 1;
}

const char *xs_show_returned_result(const struct xs_api *api, const struct xs_function *function,
				    int64_t result, char *text)
{
	struct xs_line line = { .at = text, .stop = text + XS_RESULT_MAX / 2 };

	if (!api || !function || function->returns == XS_RETURNS_NOTHING ||
	    function->returns == XS_RETURNS_POINTER)
		return NULL;
	xs_show_result(&line, api, function, result, false);
	*line.at = '\0';
	return text;
}
