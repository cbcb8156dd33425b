#include "json_text.h"

/*
 * Length of the UTF-8 sequence at p, which may be anything and is followed by a NUL at the latest;
 * 0: not one.
 */
static size_t utf8(const unsigned char *p)
{
	size_t n = p[0] < 0x80	 ? 1
		   : p[0] < 0xc2 ? 0
		   : p[0] < 0xe0 ? 2
		   : p[0] < 0xf0 ? 3
		   : p[0] < 0xf5 ? 4
				 : 0;

	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, above U+10FFFF */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of \uXXXX at p; -1: not four. */
static int hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(p[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/*
 * A letter, a digit or '_': what the words that are compared as they stand consist of (keys,
 * phases, categories). Nobody who escapes for safety's sake (Go's \u003c, Python's \u00e9) escapes
 * these.
 */
static bool is_of_words(int c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

/* The character that stands at p (a backslash) as \uXXXX for no reason; -1: none. */
static int needless(const char *p)
{
	int value = p[1] == 'u' ? hex4(p + 2) : -1;

	return is_of_words(value) ? value : -1;
}

/*
 * The length of the escape at p (a backslash), 0: none that JSON knows. A half of a surrogate pair
 * is none, and neither is a backslash in front of the closing quote, since Perfetto's scanner takes
 * that quote for an escaped one.
 */
static size_t escape(const char *p)
{
	int value;

	switch (p[1]) {
	case '\\':
		return p[2] == '"' ? 0 : 2;
	case '"':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return 2;
	case 'u':
		value = hex4(p + 2);
		if (value < 0 || (value >= 0xdc00 && value <= 0xdfff))
			return 0;
		if (value < 0xd800 || value > 0xdbff)
			return 6;
		if (p[6] != '\\' || p[7] != 'u')
			return 0;
		value = hex4(p + 8);
		return value >= 0xdc00 && value <= 0xdfff ? 12 : 0;
	default:
		return 0;
	}
}

/* The first byte from p on that is no plain ASCII, or a quote, a backslash or a control character.
 */
static inline const char *special(const char *p)
{
	typedef int8_t bytes __attribute__((vector_size(16)));
	typedef uint64_t two __attribute__((vector_size(16)));

	for (;; p += 16) {
		bytes text, stop;
		two words;

		memcpy(&text, p, 16); /* there is slack */
		stop = (text == '"') | (text == '\\') | (text < 0x20);
		memcpy(&words, &stop, 16);
		if (words[0])
			return p + __builtin_ctzll(words[0]) / 8;
		if (words[1])
			return p + 8 + __builtin_ctzll(words[1]) / 8;
	}
}

/* Anything but plain ASCII is looked at by itself. */
enum xf_scan xf_string_end(const char *p, const char *end, const char **ret_quote)
{
	enum xf_scan result = XF_OK;

	for (;;) {
		size_t n;

		p = special(p);
		if (*p == '"') {
			*ret_quote = p;
			return result;
		}
		if (p >= end)
			return XF_MORE;
		if (*p == '\\') {
			n = escape(p);
			if (needless(p) >= 0)
				result = XF_DIRTY;
			if (!n) {
				result = XF_DIRTY;
				/* a backslash hides the next character in any case */
				n = p[1] ? 2 : 1;
			}
		} else if ((unsigned char)*p < 0x20) {
			result = XF_DIRTY;
			n = 1;
		} else {
			n = utf8((const unsigned char *)p);
			if (!n) {
				result = XF_DIRTY;
				n = 1;
			}
		}
		p += n;
		if (p > end)
			return XF_MORE;
	}
}

static const struct xf_word words[] = { { "true", XF_OK },	   { "false", XF_OK },
					{ "null", XF_OK },	   { "NaN", XF_DIRTY },
					{ "-NaN", XF_DIRTY },	   { "nan", XF_DIRTY },
					{ "-nan", XF_DIRTY },	   { "Infinity", XF_DIRTY },
					{ "-Infinity", XF_DIRTY }, { "inf", XF_DIRTY },
					{ "-inf", XF_DIRTY } };

const struct xf_word *xf_word_at(const char *p)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].text);

		if (!strncmp(p, words[i].text, n) && !(p[n] >= 'a' && p[n] <= 'z') &&
		    !(p[n] >= 'A' && p[n] <= 'Z'))
			return &words[i];
	}
	return NULL;
}

static char *put_escape(char *out, unsigned value)
{
	static const char digits[] = "0123456789abcdef";

	memcpy(out, "\\u", 2);
	for (int i = 0; i < 4; i++)
		out[2 + i] = digits[value >> (12 - 4 * i) & 15];
	return out + 6;
}

/* One thing inside a string; *p moves behind it. */
static char *repair_piece(char *out, const char **p)
{
	size_t n;

	if (**p == '\\') {
		n = escape(*p);
		if (needless(*p) >= 0) {
			*out++ = (char)needless(*p);
			*p += n;
			return out;
		}
		if (n) {
			memcpy(out, *p, n);
			*p += n;
			return out + n;
		}
		if ((*p)[1] == '\\') { /* in front of the closing quote */
			*p += 2;
			return put_escape(out, '\\');
		}
		if ((*p)[1] == 'u' && hex4(*p + 2) >= 0) { /* half of a pair */
			*p += 6;
			return put_escape(out, 0xfffd);
		}
		*p += 1; /* of no meaning: it stands for itself */
		return put_escape(out, '\\');
	}
	if ((unsigned char)**p < 0x20)
		return put_escape(out, (unsigned char)*(*p)++);
	n = utf8((const unsigned char *)*p);
	memcpy(out, n ? *p : "\xef\xbf\xbd", n ? n : 3);
	*p += n ? n : 1;
	return out + (n ? n : 3);
}

size_t xf_repaired_length(const char *text, size_t length)
{
	size_t more = 0;

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c == '\\' || c >= 0x80)
			more += 5; /* as an escape */
		else
			more += (c | 0x20) == 'n' ||
				(c | 0x20) == 'i'; /* "nan" and "inf" as "null" */
	}
	return length + more;
}

char *xf_repair(char *out, const char *text, size_t length)
{
	const char *p = text, *end = text + length;
	bool in_string = false;

	while (p < end) {
		const struct xf_word *word;

		if (*p == '"') {
			in_string = !in_string;
			*out++ = *p++;
		} else if (in_string) {
			out = repair_piece(out, &p);
		} else if ((word = xf_word_at(p)) && word->result == XF_DIRTY) {
			memcpy(out, "null", 4);
			out += 4;
			p += strlen(word->text);
		} else {
			*out++ = *p++;
		}
	}
	return out;
}

static char *put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 63));
		*out++ = (char)(0x80 | (c & 63));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 63));
		*out++ = (char)(0x80 | (c >> 6 & 63));
		*out++ = (char)(0x80 | (c & 63));
	}
	return out;
}

/* The character that stands there as \uXXXX, which is passed; half of a surrogate pair: U+FFFD. */
static unsigned escaped(const char **at, const char *end)
{
	const char *p = *at;
	int high = hex4(p + 2), low = -1;

	*at = p + 6;
	if (high < 0xd800 || high > 0xdfff)
		return high < 0 ? 0xfffd : (unsigned)high;
	if (high < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u')
		low = hex4(p + 8);
	if (low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	*at = p + 12;
	return 0x10000 + (((unsigned)high - 0xd800) << 10) + ((unsigned)low - 0xdc00);
}

size_t xf_unescape(struct xf_text string, char *out, size_t room)
{
	struct xf_text text = xf_inside(string);
	const char *p = text.p, *end = p + text.n;
	char *o = out, *stop = out + room - 5;

	while (p < end && o < stop) {
		static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
		const char *letter;

		if (*p != '\\') {
			*o++ = *p++;
			continue;
		}
		if (p[1] != 'u') {
			letter = p[1] ? strchr(from, p[1]) : NULL;
			*o++ = letter ? to[letter - from] : p[1];
			p += 2;
			continue;
		}
		o = put_utf8(o, escaped(&p, end));
	}
	if (p < end) /* no half characters */
		while (o > out && (o[-1] & 0x80)) {
			o--;
			if ((*o & 0xc0) == 0xc0)
				break;
		}
	*o = '\0';
	return (size_t)(o - out);
}

void xf_take_integer(struct xf_text object, const char *name, int64_t *field)
{
	int64_t value;

	if (xf_integer(xf_find(object, name), &value))
		*field = value;
}

void xf_take_text(struct xf_text object, const char *name, char *field, size_t room)
{
	struct xf_text value = xf_find(object, name);

	if (xf_is_string(value))
		(void)xf_unescape(value, field, room);
}
