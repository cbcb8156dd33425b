/*
 * Decimal digits, up to eight at once.
 */
#ifndef XM_NUMBER_H
#define XM_NUMBER_H

#include "json_text.h"

/*
 * Appends the digits that stand at p to the value; how many they are, 8 at most: more may follow
 * then. Reads eight bytes.
 */
static inline unsigned xm_digits(const char *p, uint64_t *value)
{
	static const uint32_t powers[] = { 1,	   10,	    100,      1000,	10000,
					   100000, 1000000, 10000000, 100000000 };
	uint64_t word, others;
	unsigned n;

	memcpy(&word, p, 8);
	word -= XM_ONES * '0';
	/* right up to the first that is none */
	others = (word | (word + XM_ONES * 0x76)) & XM_HIGHS;
	n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
	if (!n)
		return 0;
	word <<= 64 - 8 * n; /* as if zeros came before them */
	word = word * 10 + (word >> 8);
	word = ((word & 0x000000ff000000ffull) * (100 + (1000000ull << 32)) +
		((word >> 16) & 0x000000ff000000ffull) * (1 + (10000ull << 32))) >>
	       32;
	*value = *value * powers[n] + (uint32_t)word;
	return n;
}

#endif
