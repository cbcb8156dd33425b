#include "json.h"

static const char pairs[201] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
			       "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
			       "8081828384858687888990919293949596979899";

/* Eight digits, leading zeros included. */
static inline void put8(char *out, uint32_t value)
{
	uint32_t high = value / 10000, low = value % 10000;

	memcpy(out, pairs + high / 100 * 2, 2);
	memcpy(out + 2, pairs + high % 100 * 2, 2);
	memcpy(out + 4, pairs + low / 100 * 2, 2);
	memcpy(out + 6, pairs + low % 100 * 2, 2);
}

static inline char *put_small(char *out, uint32_t value)
{
	char text[8];
	int skip;

	put8(text, value);
	skip = value >= 10000 ? value >= 1000000 ? value >= 10000000 ? 0 : 1 : value >= 100000 ? 2 : 3
			      : value >= 100 ? value >= 1000 ? 4 : 5 : value >= 10 ? 6 : 7;
	memcpy(out, text + skip, (size_t)(8 - skip));
	return out + 8 - skip;
}

char *xs_json_uint(char *out, uint64_t value)
{
	if (value < 100000000)
		return put_small(out, (uint32_t)value);
	out = xs_json_uint(out, value / 100000000);
	put8(out, (uint32_t)(value % 100000000));
	return out + 8;
}

char *xs_json_micros(char *out, uint64_t ns)
{
	uint64_t micros = ns / 1000;
	uint32_t rest = (uint32_t)(ns % 1000);

	out = xs_json_uint(out, micros);
	out[0] = '.';
	out[1] = (char)('0' + rest / 100);
	memcpy(out + 2, pairs + rest % 100 * 2, 2);
	return out + 4;
}

/* Length of the valid UTF-8 sequence at text, or 0. */
static size_t utf8(const unsigned char *text, size_t length)
{
	unsigned char c = text[0];
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	if (!n || n > length)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, above U+10FFFF */
	if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) || (c == 0xf0 && text[1] < 0x90) ||
	    (c == 0xf4 && text[1] > 0x8f))
		return 0;
	return n;
}

char *xs_json_escape(char *out, const char *text, size_t length)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)text[i];
		size_t n;

		if (c == '"' || c == '\\') {
			*out++ = '\\';
			*out++ = (char)c;
			i++;
		} else if (c < 0x20 || c == 0x7f) {
			memcpy(out, "\\u00", 4);
			out[4] = hex[c >> 4];
			out[5] = hex[c & 15];
			out += 6;
			i++;
		} else if ((n = utf8((const unsigned char *)text + i, length - i))) {
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
