/*
 * Thrift's compact protocol, as much as the metadata of a Parquet file needs
 * (github.com/apache/thrift, doc/specs/thrift-compact-protocol.md).
 */
#ifndef XT_THRIFT_H
#define XT_THRIFT_H

#include "proto.h"

enum { XT_I32 = 5, XT_I64 = 6, XT_BINARY = 8, XT_LIST = 9, XT_STRUCT = 12 };

/* A struct that is being written: fields come in the order of their numbers. */
struct xt_thrift {
	struct xf_proto *out;
	uint32_t last;
};

static inline void xt_byte(struct xf_proto *out, unsigned byte)
{
	char c = (char)byte;

	xf_proto_raw(out, &c, 1);
}

static inline void xt_field(struct xt_thrift *t, uint32_t number, unsigned type)
{
	xt_byte(t->out, (number - t->last) << 4 | type); /* no two are 16 apart */
	t->last = number;
}

static inline void xt_zigzag(struct xf_proto *out, int64_t value)
{
	xf_proto_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline void xt_i32(struct xt_thrift *t, uint32_t number, int32_t value)
{
	xt_field(t, number, XT_I32);
	xt_zigzag(t->out, value);
}

static inline void xt_i64(struct xt_thrift *t, uint32_t number, int64_t value)
{
	xt_field(t, number, XT_I64);
	xt_zigzag(t->out, value);
}

static inline void xt_binary(struct xt_thrift *t, uint32_t number, const void *data, size_t n)
{
	xt_field(t, number, XT_BINARY);
	xf_proto_varint(t->out, n);
	xf_proto_raw(t->out, data, n);
}

static inline void xt_list(struct xt_thrift *t, uint32_t number, unsigned type, size_t count)
{
	xt_field(t, number, XT_LIST);
	if (count < 15) {
		xt_byte(t->out, (unsigned)count << 4 | type);
		return;
	}
	xt_byte(t->out, 0xf0 | type);
	xf_proto_varint(t->out, count);
}

/* A struct as a field; as an element of a list it has no field: XT_NESTED(out). */
static inline struct xt_thrift xt_nested(struct xt_thrift *t, uint32_t number)
{
	xt_field(t, number, XT_STRUCT);
	return (struct xt_thrift){ t->out, 0 };
}

static inline void xt_stop(struct xt_thrift *t)
{
	xt_byte(t->out, 0);
}

#endif
