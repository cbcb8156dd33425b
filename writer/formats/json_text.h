/*
 * What scan.c needs to know of JSON's strings and words, and of bytes looked at eight at a time
 * (the first is the lowest).
 */
#ifndef XF_JSON_TEXT_H
#define XF_JSON_TEXT_H

#include "scan.h"

#define XF_ONES	 0x0101010101010101ull
#define XF_HIGHS 0x8080808080808080ull

static inline bool xf_same16(const char *a, const char *b)
{
	typedef uint64_t two __attribute__((vector_size(16)));
	two left, right;

	memcpy(&left, a, 16);
	memcpy(&right, b, 16);
	left ^= right;
	return !(left[0] | left[1]);
}

static inline const char *xf_skip_space(const char *p)
{
	while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
		p++;
	return p;
}

/* Goes to the closing quote of the string whose inside begins at p. XF_OK, XF_DIRTY or XF_MORE. */
enum xf_scan xf_string_end(const char *p, const char *end, const char **ret_quote);

/* true, false, null, and what programs write in place of a number. */
struct xf_word {
	const char *text;
	enum xf_scan result;
};
const struct xf_word *xf_word_at(const char *p);

#endif
