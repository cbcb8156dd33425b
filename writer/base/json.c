#include "json.h"

size_t xs_json_utf8(const unsigned char *text, size_t length)
{
	unsigned char c = text[0];
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	if (!n || n > length)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, above U+10FFFF */
	if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
	    (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
		return 0;
	return n;
}

/* The letter of a two-character escape, or 0. */
static char short_escape(unsigned char c)
{
	switch (c) {
	case '"':
		return '"';
	case '\\':
		return '\\';
	case '\n':
		return 'n';
	case '\t':
		return 't';
	case '\r':
		return 'r';
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	default:
		return 0;
	}
}

char *xs_json_escape(char *out, const char *text, size_t length)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)text[i];
		char letter = short_escape(c);
		size_t n;

		/*
		 * Perfetto's scanner takes the quote behind a last backslash for an escaped one,
		 * and then refuses the whole trace
		 */
		if (c == '\\' && i + 1 == length)
			letter = 0;
		if (letter) {
			*out++ = '\\';
			*out++ = letter;
			i++;
		} else if (c < 0x20 || c == 0x7f || c == '\\') {
			memcpy(out, "\\u00", 4);
			out[4] = hex[c >> 4];
			out[5] = hex[c & 15];
			out += 6;
			i++;
		} else if ((n = xs_json_utf8((const unsigned char *)text + i, length - i))) {
			memcpy(out, text + i, n);
			out += n;
			i += n;
		} else {
			memcpy(out, "\xef\xbf\xbd", 3);
			out += 3;
			i++;
		}
	}
	return out;
}

/* The value of \uXXXX, which stands at p. */
static unsigned escaped(const char *p)
{
	unsigned value = 0;

	for (int i = 2; i < 6; i++) {
		unsigned digit = (unsigned char)p[i];

		value = value << 4 | (digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
	}
	return value;
}

/* As much of the text as one escape is, or a pair of them that makes one character. */
static size_t put_escaped(char **out, const char *text, size_t left)
{
	unsigned value = text[1] == 'u' ? escaped(text) : 0;
	size_t n = text[1] == 'u' ? 6 : 2;

	if (value >= 0xd800 && value < 0xdc00 && left >= 12 && text[6] == '\\' && text[7] == 'u' &&
	    escaped(text + 6) >= 0xdc00 && escaped(text + 6) < 0xe000)
		n = 12;
	else if (value >= 0xd800 && value < 0xe000)
		text = "\\ufffd";
	else if (text[1] == '\\' && left > 2 && text[2] == '"') {
		*out = (char *)memcpy(*out, "\\u005c", 6) + 6; /* as above */
		return 2;
	}
	*out = (char *)memcpy(*out, text, n) + n;
	return n;
}

char *xs_json_copy(char *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		if (text[i] == '\\') /* inside of a string */
			i += put_escaped(&out, text + i, length - i);
		else
			*out++ = text[i++];
	}
	return out;
}
