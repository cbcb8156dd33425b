#include "annotations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "perfetto_fields.h"

static void put(struct xf_proto *out, const char *text)
{
	xf_proto_raw(out, text, strlen(text));
}

void xt_json_string(struct xf_proto *out, const char *text, size_t n)
{
	put(out, "\"");
	for (size_t i = 0, plain = 0; i <= n; i++) {
		unsigned char c = i < n ? (unsigned char)text[i] : 0;
		char escape[8];

		if (i < n && c >= 32 && c != '"' && c != '\\')
			continue;
		if (i > plain) /* an empty text may be no pointer at all */
			xf_proto_raw(out, text + plain, i - plain);
		plain = i + 1;
		if (i == n)
			break;
		(void)snprintf(escape, sizeof(escape), c < 32 ? "\\u%04x" : "\\%c", c);
		put(out, escape);
	}
	put(out, "\"");
}

static void put_double(struct xf_proto *out, uint64_t bits)
{
	char text[40];
	double value;

	memcpy(&value, &bits, 8);
	(void)snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) != value)
		(void)snprintf(text, sizeof(text), "%.17g", value);
	put(out, isfinite(value) ? text : "null");
}

/* What an annotation holds: members, elements, or one value. */
struct held {
	size_t members, elements;
	struct xt_wire value, key;
};

static const char *look(struct xt_message message, struct held *held)
{
	struct xt_wire field;

	memset(held, 0, sizeof(*held));
	while (xt_next(&message, &field)) {
		switch (field.number) {
		case ANNOTATION_NAME_IID:
		case ANNOTATION_NAME:
			held->key = field;
			break;
		case ANNOTATION_BOOL:
		case ANNOTATION_UINT:
		case ANNOTATION_INT:
		case ANNOTATION_DOUBLE:
		case ANNOTATION_STRING:
			held->value = field;
			break;
		case ANNOTATION_DICT:
			held->members++;
			break;
		case ANNOTATION_ARRAY:
			held->elements++;
		}
	}
	return message.why;
}

static const char *put_value(struct xf_proto *out, struct xt_message message,
			     const struct held *held, const struct xt_texts *keys, unsigned depth);

/* The members of an object, or the elements of a list. */
static const char *put_parts(struct xf_proto *out, struct xt_message message, uint32_t number,
			     const struct xt_texts *keys, unsigned depth)
{
	const char *why = NULL, *comma = "";
	struct xt_wire field;

	put(out, number == ANNOTATION_DICT ? "{" : "[");
	while (!why && xt_next(&message, &field)) {
		struct xt_message part = xt_inside(&field);
		struct held held;

		if (field.number != number)
			continue;
		put(out, comma);
		comma = ",";
		if (number == ANNOTATION_DICT) {
			why = xt_json_annotation(out, part, keys, depth);
		} else {
			why = look(part, &held);
			why = why ? why : put_value(out, part, &held, keys, depth);
		}
	}
	put(out, number == ANNOTATION_DICT ? "}" : "]");
	return why;
}

static const char *put_value(struct xf_proto *out, struct xt_message message,
			     const struct held *held, const struct xt_texts *keys, unsigned depth)
{
	char number[24];

	if (!depth)
		return "nested too deeply";
	if (held->members)
		return put_parts(out, message, ANNOTATION_DICT, keys, depth - 1);
	switch (held->value.number) {
	case ANNOTATION_BOOL:
		put(out, held->value.value ? "true" : "false");
		break;
	case ANNOTATION_UINT:
		(void)snprintf(number, sizeof(number), "%llu",
			       (unsigned long long)held->value.value);
		put(out, number);
		break;
	case ANNOTATION_INT:
		(void)snprintf(number, sizeof(number), "%lld", (long long)held->value.value);
		put(out, number);
		break;
	case ANNOTATION_DOUBLE:
		put_double(out, held->value.value);
		break;
	case ANNOTATION_STRING:
		xt_json_string(out, held->value.data, held->value.n);
		break;
	default:
		return put_parts(out, message, ANNOTATION_ARRAY, keys, depth - 1);
	}
	return NULL;
}

const char *xt_json_annotation(struct xf_proto *out, struct xt_message annotation,
			       const struct xt_texts *keys, unsigned depth)
{
	struct held held;
	const char *why = look(annotation, &held);
	struct xf_text key = { 0 };

	if (why)
		return why;
	if (held.key.number == ANNOTATION_NAME_IID) {
		if (held.key.value < keys->room)
			key = keys->list[held.key.value];
		if (!key.p)
			return "a text that was not told";
		xf_proto_raw(out, key.p, key.n);
	} else {
		xt_json_string(out, held.key.data, held.key.n);
	}
	put(out, ":");
	return put_value(out, annotation, &held, keys, depth);
}
