/*
 * Numbers and strings as JSON, fast: the writers' inner loops are made of these.
 */
#ifndef XS_JSON_H
#define XS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XS_JSON_MICROS_MAX 32 /* bytes that the functions below may touch behind `out` */

/*
 * The eight decimal digits of a value below 10^8 as bytes 0..9, the first digit in the lowest byte:
 * three rounds of splitting all lanes at once, each a multiplication by a rounded-up reciprocal
 * that is exact in its range.
 */
static inline uint64_t xs_json_digits8(uint32_t value)
{
	uint64_t four = value / 10000 | (uint64_t)(value % 10000) << 32;
	uint64_t hundreds = (four * 10486 >> 20) & 0x0000007f0000007full; /* / 100, below 10^4 */
	uint64_t two = hundreds | (four - 100 * hundreds) << 16;
	uint64_t tens = (two * 103 >> 10) & 0x000f000f000f000full; /* / 10, below 10^2 */

	return tens | (two - 10 * tens) << 8;
}
#define XS_JSON_ASCII 0x3030303030303030ull

/* Decimal digits of a value; returns the end. */
static inline char *xs_json_uint(char *out, uint64_t value)
{
	uint64_t digits;
	unsigned skip;

	if (__builtin_expect(value >= 100000000, 0)) {
		out = xs_json_uint(out, value / 100000000);
		digits = xs_json_digits8((uint32_t)(value % 100000000)) + XS_JSON_ASCII;
		memcpy(out, &digits, 8);
		return out + 8;
	}
	digits = xs_json_digits8((uint32_t)value);
	/* leading zeros, but never the last digit */
	skip = (unsigned)__builtin_ctzll(digits | 1ull << 56) / 8;
	digits = (digits + XS_JSON_ASCII) >> 8 * skip;
	memcpy(out, &digits, 8);
	return out + 8 - skip;
}

static inline char *xs_json_signed(char *out, int64_t value)
{
	if (value < 0)
		*out++ = '-';
	return xs_json_uint(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Five digits, a point, three digits: ns below 10^8 as microseconds with leading zeros. */
static inline char *xs_json_micros_low(char *out, uint32_t ns)
{
	uint64_t digits = xs_json_digits8(ns) + XS_JSON_ASCII, decimals = digits >> 40;

	memcpy(out, &digits, 8);
	out[5] = '.';
	memcpy(out + 6, &decimals, 4);
	return out + 9;
}

/* ns as microseconds with exactly three decimals ("1234.567"); returns the end. */
static inline char *xs_json_micros(char *out, uint64_t ns)
{
	uint64_t digits, decimals;
	unsigned skip;

	if (__builtin_expect(ns >= 100000000, 0))
		return xs_json_micros_low(xs_json_uint(out, ns / 100000000),
					  (uint32_t)(ns % 100000000));
	digits = xs_json_digits8((uint32_t)ns);
	skip = (unsigned)__builtin_ctzll(digits | 1ull << 32) / 8;
	digits += XS_JSON_ASCII;
	decimals = digits >> 40;
	digits >>= 8 * skip;
	memcpy(out, &digits, 8);
	out[5 - skip] = '.';
	memcpy(out + 6 - skip, &decimals, 4);
	return out + 9 - skip;
}

/* The leading digits of the last time written: they change every 100 ms of traced time. */
struct xs_json_clock {
	uint64_t high;
	uint32_t length;
	char text[20];
};

/* As xs_json_micros(), for times that are mostly close to the one before. */
static inline char *xs_json_time(char *out, uint64_t ns, struct xs_json_clock *clock)
{
	uint64_t high = ns / 100000000;

	if (__builtin_expect(!high, 0))
		return xs_json_micros(out, ns);
	if (__builtin_expect(high != clock->high, 0)) {
		char text[XS_JSON_MICROS_MAX];

		clock->length = (uint32_t)(xs_json_uint(text, high) - text);
		memcpy(clock->text, text, sizeof(clock->text));
		clock->high = high;
	}
	memcpy(out, clock->text, sizeof(clock->text));
	return xs_json_micros_low(out + clock->length, (uint32_t)(ns - high * 100000000));
}

/*
 * The text as the inside of a JSON string: escaped, and valid UTF-8 whatever it was (bad bytes
 * become U+FFFD). Writes at most 6 * length bytes; returns the end.
 */
char *xs_json_escape(char *out, const char *text, size_t length);

/* Length of the valid UTF-8 sequence at text, or 0. */
size_t xs_json_utf8(const unsigned char *text, size_t length);

/*
 * Is the text one JSON value, of valid UTF-8, nested at most 64 deep, with integers of 4,300 digits
 * at most? (More, or less, our readers refuse.)
 */
bool xs_json_valid(const char *text, size_t length);

/*
 * Copies JSON that is valid as above, so that all readers take it: halves of surrogate pairs become
 * U+FFFD, and a backslash in front of a closing quote is written by its number. Writes at most 3 *
 * length bytes; returns the end.
 */
char *xs_json_copy(char *out, const char *text, size_t length);

#endif
