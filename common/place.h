/*
 * A name that says where in the code something is: text that begins with a mark, behind which the
 * place stands as in a record of a call stack (XS_FRAME). The drain process puts the function there
 * and the place in it behind the rest of the text: "\1000000…OpenMP::loop" becomes
 * "OpenMP::loop main+0x2a".
 */
#ifndef XS_PLACE_H
#define XS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#define XS_PLACE_MARK_LENGTH 17u

static inline void xs_place_mark(char *mark, uint64_t frame)
{
	mark[0] = '\1';
	for (int i = 0; i < 16; i++)
		mark[1 + i] = "0123456789abcdef"[frame >> (60 - 4 * i) & 15];
}

/* Has the text such a mark? */
static inline bool xs_place_marked(const char *text, uint32_t length, uint64_t *ret_frame)
{
	*ret_frame = 0;
	if (length < XS_PLACE_MARK_LENGTH || text[0] != '\1')
		return false;
	for (int i = 0; i < 16; i++) {
		char c = text[1 + i];
		uint64_t digit = c >= '0' && c <= '9'	? (uint64_t)(c - '0')
				 : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a' + 10)
							: 16;

		if (digit > 15)
			return false;
		*ret_frame = *ret_frame << 4 | digit;
	}
	return true;
}

#endif
