/*
 * What scan.c needs to know of JSON's strings and words, and of bytes looked at eight at a time
 * (the first is the lowest).
 */
#ifndef XM_JSON_TEXT_H
#define XM_JSON_TEXT_H

#include "scan.h"

#define XM_ONES	 0x0101010101010101ull
#define XM_HIGHS 0x8080808080808080ull

static inline bool xm_same16(const char *a, const char *b)
{
	typedef uint64_t two __attribute__((vector_size(16)));
	two left, right;

	memcpy(&left, a, 16);
	memcpy(&right, b, 16);
	left ^= right;
	return !(left[0] | left[1]);
}

static inline const char *xm_skip_space(const char *p)
{
	while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
		p++;
	return p;
}

/* Goes to the closing quote of the string whose inside begins at p. XM_OK, XM_DIRTY or XM_MORE. */
enum xm_scan xm_string_end(const char *p, const char *end, const char **ret_quote);

/* true, false, null, and what programs write in place of a number. */
struct xm_word {
	const char *text;
	enum xm_scan result;
};
const struct xm_word *xm_word_at(const char *p);

#endif
