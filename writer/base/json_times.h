/*
 * The two times of a slice at once.
 */
#ifndef XS_JSON_TIMES_H
#define XS_JSON_TIMES_H

#include "json.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define XS_JSON_TIME_LOW 100000000u /* `low` is below that */
#define XS_JSON_TIME_DUR UINT32_MAX /* `duration` is not above that */

/*
 * The last eight digits of a time in ns, as microseconds, and a duration: 12345.678,"dur":9.012
 * Returns the end; touches at most 32 bytes behind `out`.
 */
#ifdef __SSE2__
/* A constant that the compiler multiplies by, where it would make shifts and sums of it. */
static inline __m128i xs_json_opaque(__m128i constant)
{
	__asm__("" : "+x"(constant));
	return constant;
}

/* Both at once: a number in each half, then in each half groups of four digits, two, one. */
static inline char *xs_json_times(char *out, uint32_t low, uint32_t duration)
{
	const __m128i times_dur = _mm_setr_epi8('0', '0', '0', '0', '0', '.', '0', '0', '0', ',',
						'"', 'd', 'u', 'r', '"', ':');
	const __m128i ascii = _mm_setr_epi8('0', '0', '0', '0', '0', '0', '0', '0', '.', '0', '0',
					    '0', 0, 0, 0, 0);
	__m128i ns =
		_mm_unpacklo_epi64(_mm_cvtsi32_si128((int)low), _mm_cvtsi32_si128((int)duration));
	/* / 1000, / 10000: exact for all numbers of 32 bits */
	__m128i us = _mm_srli_epi64(_mm_mul_epu32(ns, _mm_set1_epi64x(274877907)), 38);
	__m128i top = _mm_srli_epi64(_mm_mul_epu32(us, _mm_set1_epi64x(3518437209)), 45);
	__m128i rest = _mm_sub_epi64(us, _mm_mul_epu32(top, _mm_set1_epi64x(10000)));
	__m128i decimals = _mm_sub_epi64(ns, _mm_mul_epu32(us, _mm_set1_epi64x(1000)));
	__m128i fours = _mm_or_si128(_mm_or_si128(top, _mm_slli_epi64(rest, 16)),
				     _mm_slli_epi64(decimals, 32));
	/* / 100: exact below 43699 */
	__m128i hundreds = _mm_srli_epi16(_mm_mulhi_epu16(fours, _mm_set1_epi16(5243)), 3);
	const __m128i hundred = xs_json_opaque(_mm_set1_epi16(100));
	__m128i units = _mm_sub_epi16(fours, _mm_mullo_epi16(hundreds, hundred));
	__m128i first = _mm_unpacklo_epi16(hundreds, units);
	__m128i second = _mm_unpackhi_epi16(hundreds, units);
	/* tens (/ 10: exact below 100) + 256 * (twos - 10 * tens) */
	const __m128i tenth = _mm_set1_epi16(6554);
	const __m128i less = xs_json_opaque(_mm_set1_epi16(2559));
	unsigned skip;

	first = _mm_sub_epi16(_mm_slli_epi16(first, 8),
			      _mm_mullo_epi16(_mm_mulhi_epu16(first, tenth), less));
	second = _mm_sub_epi16(_mm_slli_epi16(second, 8),
			       _mm_mullo_epi16(_mm_mulhi_epu16(second, tenth), less));
	/* of the leading zeros one is left: all before that lie below what is stored next */
	skip = (unsigned)__builtin_ctz(
		(unsigned)~_mm_movemask_epi8(_mm_cmpeq_epi8(second, _mm_setzero_si128())) |
		1u << 7);
	out += 16 - skip;
	_mm_storeu_si128((__m128i *)(void *)out, _mm_add_epi8(second, ascii));
	_mm_storeu_si128((__m128i *)(void *)(out - 16 + skip),
			 _mm_add_epi8(_mm_srli_si128(first, 3), times_dur));
	return out + 12;
}
#else
static inline char *xs_json_times(char *out, uint32_t low, uint32_t duration)
{
	out = xs_json_micros_low(out, low);
	memcpy(out, ",\"dur\":", 8);
	return xs_json_micros(out + 7, duration);
}
#endif

#endif
