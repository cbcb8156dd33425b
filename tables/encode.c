#include "encode.h"

#define BLOCK	  128u
#define MINIBLOCK 32u
#define LEAST_RUN 16u

unsigned xt_width(uint64_t most)
{
	return most ? 64 - (unsigned)__builtin_clzll(most) : 0;
}

static void put_word(struct xf_proto *out, uint64_t word, unsigned bytes)
{
	xf_proto_raw(out, &word, bytes);
}

/* A miniblock: MINIBLOCK values of `width` bits each, the first in the lowest ones. */
static void pack(struct xf_proto *out, const uint64_t *values, unsigned width)
{
	unsigned filled = 0;
	uint64_t word = 0;

	for (unsigned i = 0; i < MINIBLOCK && width; i++) {
		word |= values[i] << filled;
		filled += width;
		if (filled < 64)
			continue;
		put_word(out, word, 8);
		filled -= 64;
		word = filled ? values[i] >> (width - filled) : 0;
	}
	put_word(out, word, filled / 8); /* 32 values end at a byte */
}

static void delta_block(struct xf_proto *out, const int64_t *values, size_t count)
{
	uint64_t deltas[BLOCK];
	uint8_t widths[BLOCK / MINIBLOCK] = { 0 };
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		deltas[i] = (uint64_t)values[i + 1] - (uint64_t)values[i];
		least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
	}
	for (size_t i = 0; i < BLOCK; i += MINIBLOCK) {
		uint64_t all = 0;

		for (size_t k = i; k < i + MINIBLOCK; k++) {
			deltas[k] = k < count ? deltas[k] - (uint64_t)least : 0;
			all |= deltas[k];
		}
		widths[i / MINIBLOCK] = (uint8_t)xt_width(all);
	}
	xf_proto_varint(out, (uint64_t)least << 1 ^ (uint64_t)(least >> 63));
	xf_proto_raw(out, widths, sizeof(widths));
	for (size_t i = 0; i < count; i += MINIBLOCK)
		pack(out, deltas + i, widths[i / MINIBLOCK]);
}

void xt_encode_delta(struct xf_proto *out, const int64_t *values, size_t count)
{
	int64_t first = count ? values[0] : 0;

	xf_proto_varint(out, BLOCK);
	xf_proto_varint(out, BLOCK / MINIBLOCK);
	xf_proto_varint(out, count);
	xf_proto_varint(out, (uint64_t)first << 1 ^ (uint64_t)(first >> 63));
	for (size_t i = 0; i + 1 < count; i += BLOCK)
		delta_block(out, values + i, count - 1 - i < BLOCK ? count - 1 - i : BLOCK);
}

/* Groups of eight; what the last one lacks is zeros. */
static void put_groups(struct xf_proto *out, const uint32_t *values, size_t count, unsigned width)
{
	size_t groups = (count + 7) / 8;
	unsigned filled = 0;
	uint64_t word = 0;

	if (!groups)
		return;
	xf_proto_varint(out, groups << 1 | 1);
	for (size_t i = 0; i < 8 * groups; i++) {
		word |= (uint64_t)(i < count ? values[i] : 0) << filled;
		filled += width;
		if (filled >= 32) {
			put_word(out, word, 4);
			word >>= 32;
			filled -= 32;
		}
	}
	put_word(out, word, filled / 8);
}

void xt_encode_hybrid(struct xf_proto *out, const uint32_t *values, size_t count, unsigned width)
{
	size_t from = 0, at = 0;

	while (at < count) {
		size_t end = at + 1, missing = (8 - (at - from) % 8) % 8;

		while (end < count && values[end] == values[at])
			end++;
		if (end - at >= missing + LEAST_RUN) {
			put_groups(out, values + from, at + missing - from, width);
			xf_proto_varint(out, (end - at - missing) << 1);
			put_word(out, values[at], (width + 7) / 8);
			from = end;
		}
		at = end;
	}
	put_groups(out, values + from, count - from, width);
}
