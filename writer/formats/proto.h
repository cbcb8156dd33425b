/*
 * Protobuf's wire format, as much as a writer needs. A message inside a message has a length of
 * four bytes, filled in at its end.
 */
#ifndef XF_PROTO_H
#define XF_PROTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct xf_proto {
	char *data;
	size_t length, room;
	bool failed; /* no memory: what is there is worth nothing */
};

static inline char *xf_proto_room(struct xf_proto *p, size_t n)
{
	if (p->length + n > p->room) {
		size_t room = 2 * p->room + n + 256;
		char *grown = realloc(p->data, room);

		if (!grown) {
			p->failed = true;
			return NULL;
		}
		p->data = grown;
		p->room = room;
	}
	return p->data + p->length;
}

static inline void xf_proto_varint(struct xf_proto *p, uint64_t value)
{
	char *o = xf_proto_room(p, 10);

	if (!o)
		return;
	for (; value > 127; value >>= 7)
		*o++ = (char)(value | 128);
	*o++ = (char)value;
	p->length = (size_t)(o - p->data);
}

static inline void xf_proto_uint(struct xf_proto *p, uint32_t field, uint64_t value)
{
	xf_proto_varint(p, field << 3);
	xf_proto_varint(p, value);
}

static inline void xf_proto_double(struct xf_proto *p, uint32_t field, double value)
{
	char *o;

	xf_proto_varint(p, field << 3 | 1);
	o = xf_proto_room(p, 8);
	if (o) {
		memcpy(o, &value, 8);
		p->length += 8;
	}
}

static inline void xf_proto_raw(struct xf_proto *p, const void *data, size_t n)
{
	char *o = xf_proto_room(p, n);

	if (o && n) {
		memcpy(o, data, n);
		p->length += n;
	}
}

static inline void xf_proto_bytes(struct xf_proto *p, uint32_t field, const void *data, size_t n)
{
	xf_proto_varint(p, field << 3 | 2);
	xf_proto_varint(p, n);
	xf_proto_raw(p, data, n);
}

static inline size_t xf_proto_begin(struct xf_proto *p, uint32_t field)
{
	xf_proto_varint(p, field << 3 | 2);
	if (xf_proto_room(p, 4))
		p->length += 4;
	return p->length;
}

static inline void xf_proto_end(struct xf_proto *p, size_t begin)
{
	size_t n = p->length - begin;
	char *o = p->data + begin - 4;

	if (p->failed)
		return;
	for (int i = 0; i < 3; i++, n >>= 7)
		*o++ = (char)(n | 128);
	*o = (char)n;
}

#endif
