/*
 * Protobuf's wire format, as much as a reader needs. Nothing of what stands there is believed.
 */
#ifndef XT_WIRE_H
#define XT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { XT_NUMBER = 0, XT_EIGHT = 1, XT_BYTES = 2, XT_FOUR = 5 };

/* What is left of a message. */
struct xt_message {
	const uint8_t *p, *end;
	const char *why; /* it is no message: what is wrong; NULL: nothing */
};

struct xt_wire {
	uint32_t number, kind;
	uint64_t value;	  /* of XT_NUMBER, XT_EIGHT, XT_FOUR */
	const char *data; /* of XT_BYTES */
	size_t n;
};

/* False: it is cut, or too long. */
static inline bool xt_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t byte = *(*p)++;

		*ret |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return true;
	}
	return false;
}

/* The next field; false: there is none, or `why` says what is wrong. */
static inline bool xt_next(struct xt_message *m, struct xt_wire *field)
{
	uint64_t key;

	if (m->p >= m->end)
		return false;
	m->why = "a number is cut";
	if (!xt_varint(&m->p, m->end, &key))
		return false;
	field->number = key >> 3 > UINT32_MAX ? UINT32_MAX : (uint32_t)(key >> 3);
	field->kind = key & 7;
	field->value = field->n = 0;
	if (field->kind == XT_NUMBER || field->kind == XT_BYTES) {
		if (!xt_varint(&m->p, m->end, &field->value))
			return false;
	}
	m->why = "a field is longer than its message";
	field->data = (const char *)m->p;
	if (field->kind == XT_BYTES)
		field->n = field->value > (uint64_t)(m->end - m->p) ? SIZE_MAX : field->value;
	else if (field->kind == XT_EIGHT || field->kind == XT_FOUR)
		field->n = field->kind == XT_EIGHT ? 8 : 4;
	else if (field->kind != XT_NUMBER)
		m->why = "a field of no kind";
	if (field->n > (size_t)(m->end - m->p) || (field->kind & 3) == 3 || field->kind == 4 ||
	    field->kind > XT_FOUR)
		return false;
	if (field->kind == XT_EIGHT || field->kind == XT_FOUR)
		memcpy(&field->value, m->p, field->n);
	m->p += field->n;
	m->why = NULL;
	return true;
}

static inline struct xt_message xt_inside(const struct xt_wire *field)
{
	const uint8_t *p = (const uint8_t *)field->data;

	return (struct xt_message){ p, field->kind == XT_BYTES ? p + field->n : p, NULL };
}

#endif
