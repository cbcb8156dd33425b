#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Beyond ASCII: control characters, ends of lines, and what turns the direction of the text behind
 * it.
 */
static bool is_harmful(uint32_t code)
{
	return code < 0xa0 || code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Bytes of the UTF-8 character at text; 0: it is none, or none to be shown. */
static size_t character(const unsigned char *text, size_t length)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = text[0] < 0xc2   ? 0
		   : text[0] < 0xe0 ? 2
		   : text[0] < 0xf0 ? 3
		   : text[0] < 0xf5 ? 4
				    : 0;
	uint32_t code;

	if (text[0] < 0x80)
		return text[0] >= ' ' && text[0] != 0x7f;
	if (!n || n > length)
		return 0;
	code = text[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
			       is_harmful(code)
		       ? 0
		       : n;
}

char *xs_plain(char *out, const char *text, size_t length)
{
	const unsigned char *from = (const unsigned char *)text, *stop = from + length;

	while (from < stop) {
		size_t n = character(from, (size_t)(stop - from));

		if (!n) {
			*out++ = '?';
			from++;
			continue;
		}
		memmove(out, from, n); /* it may be made plain where it stands */
		out += n;
		from += n;
	}
	return out;
}

char *xs_plain_file(char *out, const char *text, size_t length)
{
	char *end = xs_plain(out, text, length);

	for (char *c = out; c < end; c++)
		if (*c == '/' || (*c == '-' && c == out))
			*c = '_';
	return end;
}
