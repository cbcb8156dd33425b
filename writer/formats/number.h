/*
 * Decimal digits, up to eight at once.
 */
#ifndef XF_NUMBER_H
#define XF_NUMBER_H

#include "json_text.h"

/* Eight digits as bytes 0..9, the first in the lowest byte. */
static inline uint32_t xf_eight(uint64_t digits)
{
	digits = digits * 10 + (digits >> 8);
	return (uint32_t)(((digits & 0x000000ff000000ffull) * (100 + (1000000ull << 32)) +
			   ((digits >> 16) & 0x000000ff000000ffull) * (1 + (10000ull << 32))) >>
			  32);
}

/*
 * Appends the digits that stand at p to the value; how many they are, 8 at most: more may follow
 * then. Reads eight bytes.
 */
static inline unsigned xf_digits(const char *p, uint64_t *value)
{
	static const uint32_t powers[] = { 1,	   10,	    100,      1000,	10000,
					   100000, 1000000, 10000000, 100000000 };
	uint64_t word, others;
	unsigned n;

	memcpy(&word, p, 8);
	word -= XF_ONES * '0';
	/* right up to the first that is none */
	others = (word | (word + XF_ONES * 0x76)) & XF_HIGHS;
	n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
	if (!n)
		return 0;
	word <<= 64 - 8 * n; /* as if zeros came before them */
	*value = *value * powers[n] + xf_eight(word);
	return n;
}

#endif
