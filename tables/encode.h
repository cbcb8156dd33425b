/*
 * Parquet's encodings of columns (github.com/apache/parquet-format, Encodings.md): integers as
 * differences that are packed into as few bits as a miniblock needs, small numbers as runs.
 */
#ifndef XT_ENCODE_H
#define XT_ENCODE_H

#include "proto.h"

/* DELTA_BINARY_PACKED */
void xt_encode_delta(struct xf_proto *out, const int64_t *values, size_t count);
/* The hybrid of runs and bit-packed groups; no value has more than `width` bits. */
void xt_encode_hybrid(struct xf_proto *out, const uint32_t *values, size_t count, unsigned width);
/* Bits that the values up to `most` need. */
unsigned xt_width(uint64_t most);

#endif
