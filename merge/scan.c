#include "scan.h"

#define ONES 0x0101010101010101ull
#define HIGHS 0x8080808080808080ull

static const char *skip_space(const char *p)
{
	while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
		p++;
	return p;
}

/* Length of the UTF-8 sequence at p, which may be anything and is followed by a NUL at the latest; 0: not one. */
static size_t utf8(const unsigned char *p)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, above U+10FFFF */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
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
 * The length of the escape at p (a backslash), 0: none that JSON knows. A half of a surrogate pair is none, and neither is a backslash in
 * front of the closing quote, since Perfetto's scanner takes that quote for an escaped one.
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

/* Goes to the closing quote of the string whose inside begins at p; anything but plain ASCII is looked at by itself. */
static enum xm_scan string_end(const char *p, const char *end, const char **ret_quote)
{
	enum xm_scan result = XM_OK;

	for (;;) {
		uint64_t word, quote, backslash, stop;
		size_t n;

		memcpy(&word, p, 8); /* there is slack */
		quote = word ^ ONES * '"';
		backslash = word ^ ONES * '\\';
		stop = ((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | (word - ONES * 0x20) | word;
		stop &= HIGHS;
		if (!stop) {
			p += 8;
			continue;
		}
		p += __builtin_ctzll(stop) / 8;
		if (*p == '"') {
			*ret_quote = p;
			return result;
		}
		if (p >= end)
			return XM_MORE;
		if (*p == '\\') {
			n = escape(p);
			if (!n) {
				result = XM_DIRTY;
				/* a backslash hides the next character in any case */
				n = p[1] ? 2 : 1;
			}
		} else if ((unsigned char)*p < 0x20) {
			result = XM_DIRTY;
			n = 1;
		} else {
			n = utf8((const unsigned char *)p);
			if (!n) {
				result = XM_DIRTY;
				n = 1;
			}
		}
		p += n;
		if (p > end)
			return XM_MORE;
	}
}

static const char *number_end(const char *p)
{
	if (*p == '-')
		p++;
	if (*p == '0')
		p++;
	else if (*p >= '1' && *p <= '9')
		while (*p >= '0' && *p <= '9')
			p++;
	else
		return NULL;
	if (*p == '.') {
		if (*++p < '0' || *p > '9')
			return NULL;
		while (*p >= '0' && *p <= '9')
			p++;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		if (*p == '+' || *p == '-')
			p++;
		if (*p < '0' || *p > '9')
			return NULL;
		while (*p >= '0' && *p <= '9')
			p++;
	}
	return p;
}

static const struct word {
	const char *text;
	enum xm_scan result;
} words[] = { { "true", XM_OK },      { "false", XM_OK },	 { "null", XM_OK },
	      { "NaN", XM_DIRTY },    { "-NaN", XM_DIRTY },	 { "nan", XM_DIRTY },	   { "-nan", XM_DIRTY },
	      { "Infinity", XM_DIRTY }, { "-Infinity", XM_DIRTY }, { "inf", XM_DIRTY }, { "-inf", XM_DIRTY } };

static const struct word *word_at(const char *p)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].text);

		if (!strncmp(p, words[i].text, n) && !(p[n] >= 'a' && p[n] <= 'z') && !(p[n] >= 'A' && p[n] <= 'Z'))
			return &words[i];
	}
	return NULL;
}

/* A string, number or word. */
static enum xm_scan scalar(const char *p, const char *end, const char **ret_end, const char **ret_why)
{
	const struct word *word;
	enum xm_scan result;
	const char *stop;

	if (*p == '"') {
		result = string_end(p + 1, end, &stop);
		if (result != XM_MORE)
			*ret_end = stop + 1;
		return result;
	}
	stop = number_end(p);
	if (stop) {
		*ret_end = stop;
		return stop >= end ? XM_MORE : XM_OK; /* a digit may follow */
	}
	word = word_at(p);
	if (word) {
		*ret_end = p + strlen(word->text);
		return *ret_end >= end ? XM_MORE : word->result;
	}
	/* a number or word that is cut looks like no value */
	for (stop = p; stop < end && (*stop == '-' || *stop == '+' || *stop == '.' || (*stop >= '0' && *stop <= '9') ||
				      ((*stop | 0x20) >= 'a' && (*stop | 0x20) <= 'z'));)
		stop++;
	if (stop >= end)
		return XM_MORE;
	*ret_why = "a value was expected";
	return XM_BAD;
}

/* A key and its colon; *p moves to the value. */
static enum xm_scan key(const char **p, const char *end, struct xm_text *ret_key, const char **ret_why)
{
	enum xm_scan result;
	const char *quote;

	if (**p != '"') {
		*ret_why = "a member was expected";
		return *p >= end ? XM_MORE : XM_BAD;
	}
	result = string_end(*p + 1, end, &quote);
	if (result == XM_MORE)
		return result;
	*ret_key = (struct xm_text){ *p + 1, (size_t)(quote - *p - 1) };
	*p = skip_space(quote + 1);
	if (**p != ':') {
		*ret_why = "':' was expected";
		return *p >= end ? XM_MORE : XM_BAD;
	}
	*p = skip_space(*p + 1);
	return result;
}

enum xm_scan xm_scan_value(const char *p, const char *end, const char **ret_end, const char **ret_why)
{
	uint8_t is_object[XM_DEPTH / 8];
	enum xm_scan result = XM_OK, one;
	struct xm_text unused;
	unsigned depth = 0;
	bool closed = false; /* a value has just ended */

	for (;;) {
		bool in_object = depth && is_object[(depth - 1) / 8] >> (depth - 1) % 8 & 1;

		if (!closed) {
			if (*p == '{' || *p == '[') {
				bool object = *p == '{';

				if (depth == XM_DEPTH) {
					*ret_why = "nested too deeply";
					return XM_BAD;
				}
				is_object[depth / 8] = (uint8_t)((is_object[depth / 8] & ~(1u << depth % 8)) | (unsigned)object << depth % 8);
				depth++;
				p = skip_space(p + 1);
				if (*p == (object ? '}' : ']')) {
					depth--;
					p++;
					closed = true;
				} else if (object) {
					one = key(&p, end, &unused, ret_why);
					if (one == XM_MORE || one == XM_BAD)
						return one;
					result = one == XM_DIRTY ? one : result;
				}
				if (!closed)
					continue;
			} else {
				one = scalar(p, end, &p, ret_why);
				if (one == XM_MORE || one == XM_BAD)
					return one;
				result = one == XM_DIRTY ? one : result;
				closed = true;
			}
			if (!depth) {
				*ret_end = p;
				return result;
			}
			continue;
		}
		p = skip_space(p);
		if (*p == ',') {
			p = skip_space(p + 1);
			closed = false;
			if (in_object) {
				one = key(&p, end, &unused, ret_why);
				if (one == XM_MORE || one == XM_BAD)
					return one;
				result = one == XM_DIRTY ? one : result;
			}
		} else if (*p == (in_object ? '}' : ']')) {
			p++;
			if (!--depth) {
				*ret_end = p;
				return result;
			}
		} else {
			*ret_why = in_object ? "',' or '}' was expected" : "',' or ']' was expected";
			return p >= end ? XM_MORE : XM_BAD;
		}
	}
}

static struct xm_text *slot(struct xm_event *event, struct xm_text name)
{
	switch (name.n) {
	case 1:
		return name.p[0] == 's' ? &event->scope : NULL;
	case 2:
		return !memcmp(name.p, "ph", 2)	  ? &event->ph
		       : !memcmp(name.p, "ts", 2) ? &event->ts
		       : !memcmp(name.p, "id", 2) ? &event->id
		       : !memcmp(name.p, "bp", 2) ? &event->bp
						  : NULL;
	case 3:
		return !memcmp(name.p, "pid", 3)   ? &event->pid
		       : !memcmp(name.p, "tid", 3) ? &event->tid
		       : !memcmp(name.p, "dur", 3) ? &event->dur
		       : !memcmp(name.p, "cat", 3) ? &event->cat
						   : NULL;
	case 4:
		return !memcmp(name.p, "name", 4) ? &event->name : !memcmp(name.p, "args", 4) ? &event->args : NULL;
	default:
		return NULL;
	}
}

static inline bool take(const char **p, const char *text, size_t n)
{
	if (memcmp(*p, text, n))
		return false;
	*p += n;
	return true;
}
#define TAKE(p, literal) take(p, literal, sizeof(literal) - 1)

/* A number without a sign and with at most three decimals, which does not begin with a needless 0. */
static inline bool take_number(const char **p, struct xm_text *ret)
{
	const char *from = *p, *at = from;

	while ((unsigned char)(*at - '0') <= 9)
		at++;
	if (at == from || (*from == '0' && at > from + 1))
		return false;
	if (*at == '.') {
		const char *point = at++;

		while ((unsigned char)(*at - '0') <= 9)
			at++;
		if (at == point + 1)
			return false;
	}
	*ret = (struct xm_text){ from, (size_t)(at - from) };
	*p = at;
	return *at == ',';
}

/*
 * A slice as xstrace itself writes it, which is most of what there is to read: its members' order is known. False: look at it as at any other
 * event.
 */
static bool own_slice(const char *p, const char *end, struct xm_event *event, const char **ret_end)
{
	const char *from = p, *quote, *why;

	if (end - p < 128 || !TAKE(&p, "{\"ph\":\"X\",\"tid\":") || !take_number(&p, &event->tid) || !TAKE(&p, ",\"pid\":") ||
	    !take_number(&p, &event->pid) || !TAKE(&p, ",\"ts\":") || !take_number(&p, &event->ts) || !TAKE(&p, ",\"dur\":") ||
	    !take_number(&p, &event->dur) || !TAKE(&p, ",\"cat\":\"cpu_op\",\"name\":\""))
		return false;
	if (string_end(p, end, &quote) != XM_OK)
		return false;
	event->ph = (struct xm_text){ from + 6, 3 };
	event->name = (struct xm_text){ p - 1, (size_t)(quote - p) + 2 };
	event->cat = (struct xm_text){ p - 17, 8 };
	event->id = event->bp = event->scope = event->args = (struct xm_text){ 0 };
	event->other_count = 0;
	p = quote + 1;
	if (*p == '}') {
		*ret_end = p + 1;
		return true;
	}
	if (!TAKE(&p, ",\"args\":"))
		return false;
	event->args.p = p;
	if (xm_scan_value(p, end, &p, &why) != XM_OK || *p != '}')
		return false;
	event->args.n = (size_t)(p - event->args.p);
	*ret_end = p + 1;
	return true;
}

enum xm_scan xm_scan_event(const char *p, const char *end, struct xm_event *event, const char **ret_end, const char **ret_why)
{
	enum xm_scan result = XM_OK, one;

	if (own_slice(p, end, event, ret_end))
		return XM_OK;
	memset(event, 0, offsetof(struct xm_event, others));
	event->other_count = 0;
	p = skip_space(p + 1);
	if (*p == '}') {
		*ret_end = p + 1;
		return XM_OK;
	}
	for (;;) {
		const char *start = p;
		struct xm_text name, *value;

		one = key(&p, end, &name, ret_why);
		if (one == XM_MORE || one == XM_BAD)
			return one;
		result = one == XM_DIRTY ? one : result;
		value = slot(event, name);
		if (!value && event->other_count < XM_OTHERS)
			value = &event->others[event->other_count++];
		if (!value) {
			*ret_why = "an event with too many members";
			return XM_BAD;
		}
		value->p = value < event->others ? p : start;
		one = *p == '{' || *p == '[' ? xm_scan_value(p, end, &p, ret_why) : scalar(p, end, &p, ret_why);
		if (one == XM_MORE || one == XM_BAD)
			return one;
		result = one == XM_DIRTY ? one : result;
		value->n = (size_t)(p - value->p);
		p = skip_space(p);
		if (*p == ',') {
			p = skip_space(p + 1);
		} else if (*p == '}') {
			*ret_end = p + 1;
			return result;
		} else {
			*ret_why = "',' or '}' was expected";
			return p >= end ? XM_MORE : XM_BAD;
		}
	}
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

char *xm_repair(char *out, const char *text, size_t length)
{
	const char *p = text, *end = text + length;
	bool in_string = false;

	while (p < end) {
		const struct word *word;

		if (*p == '"') {
			in_string = !in_string;
			*out++ = *p++;
		} else if (in_string) {
			out = repair_piece(out, &p);
		} else if ((word = word_at(p)) && word->result == XM_DIRTY) {
			memcpy(out, "null", 4);
			out += 4;
			p += strlen(word->text);
		} else {
			*out++ = *p++;
		}
	}
	return out;
}

bool xm_member(const char **p, const char *end, struct xm_text *ret_key, struct xm_text *ret_value)
{
	const char *why, *stop;

	*p = skip_space(*p);
	if (**p == ',')
		*p = skip_space(*p + 1);
	if (*p >= end || key(p, end, ret_key, &why) > XM_OK)
		return false;
	if (xm_scan_value(*p, end, &stop, &why) > XM_OK)
		return false;
	*ret_value = (struct xm_text){ *p, (size_t)(stop - *p) };
	*p = stop;
	return true;
}

bool xm_element(const char **p, const char *end, struct xm_text *ret_value)
{
	const char *why, *stop;

	*p = skip_space(*p);
	if (**p == ',')
		*p = skip_space(*p + 1);
	if (*p >= end || **p == ']' || xm_scan_value(*p, end, &stop, &why) > XM_OK)
		return false;
	*ret_value = (struct xm_text){ *p, (size_t)(stop - *p) };
	*p = stop;
	return true;
}

struct xm_text xm_find(struct xm_text object, const char *name)
{
	struct xm_text member, value;
	const char *p = xm_first(object);

	if (object.n < 2 || object.p[0] != '{')
		return (struct xm_text){ 0 };
	while (xm_member(&p, object.p + object.n, &member, &value))
		if (xm_is(member, name))
			return value;
	return (struct xm_text){ 0 };
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

size_t xm_unescape(struct xm_text string, char *out, size_t room)
{
	struct xm_text text = xm_inside(string);
	const char *p = text.p, *end = p + text.n;
	char *o = out, *stop = out + room - 5;

	while (p < end && o < stop) {
		static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
		const char *letter;
		unsigned c;

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
		c = (unsigned)hex4(p + 2);
		p += 6;
		if (c >= 0xd800 && c < 0xdc00 && p + 6 <= end) {
			c = 0x10000 + ((c - 0xd800) << 10) + ((unsigned)hex4(p + 2) - 0xdc00);
			p += 6;
		}
		o = put_utf8(o, c);
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

bool xm_integer(struct xm_text value, int64_t *ret)
{
	bool negative = value.n && value.p[0] == '-';
	uint64_t number = 0;

	if (value.n == (size_t)negative || value.n > 19)
		return false;
	for (size_t i = negative; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(value.p[i] - '0');
	}
	if (number > INT64_MAX)
		return false;
	*ret = negative ? -(int64_t)number : (int64_t)number;
	return true;
}

/* The digits of a number and where its point is; of more than 18 digits the rest only says whether it is 0. */
static bool decimal(struct xm_text value, uint64_t *ret_digits, int *ret_exponent, bool *ret_more)
{
	const char *p = value.p, *end = p + value.n;
	bool behind_point = false, any = false;
	int exponent = 0, count = 0;
	uint64_t digits = 0;

	*ret_more = false;
	if (p < end && *p == '-')
		p++;
	for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !behind_point)); p++) {
		if (*p == '.') {
			behind_point = true;
			continue;
		}
		any = true;
		if (count < 18) {
			digits = digits * 10 + (uint64_t)(*p - '0');
			count += digits != 0;
			exponent -= behind_point;
		} else {
			*ret_more |= *p != '0';
			exponent += !behind_point;
		}
	}
	if (p < end && (*p | 0x20) == 'e') {
		bool negative = p[1] == '-';
		int power = 0;

		for (p += 1 + (p[1] == '-' || p[1] == '+'); p < end && *p >= '0' && *p <= '9'; p++)
			power = power < 10000 ? power * 10 + (*p - '0') : power;
		exponent += negative ? -power : power;
	}
	*ret_digits = digits;
	*ret_exponent = exponent;
	return any && p == end;
}

/* Eight digits at once; false: they are none. */
static inline bool digits8(const char *p, uint64_t *value)
{
	uint64_t word;

	memcpy(&word, p, 8);
	word -= ONES * '0';
	if ((word | (word + ONES * 0x76)) & HIGHS)
		return false;
	word = word * 10 + (word >> 8);
	word = ((word & 0x000000ff000000ffull) * (100 + (1000000ull << 32)) +
		((word >> 16) & 0x000000ff000000ffull) * (1 + (10000ull << 32))) >> 32;
	*value = *value * 100000000 + (uint32_t)word;
	return true;
}

/* "123456.789" as 123456789: digits, a point, three digits; false: look at it as at any other number. */
static inline bool three_decimals(struct xm_text value, uint64_t *ret)
{
	size_t i = 0, whole = value.n - 4;
	uint64_t digits = 0;

	if (value.n < 5 || value.n > 19 || value.p[whole] != '.')
		return false;
	for (; whole - i >= 8; i += 8)
		if (!digits8(value.p + i, &digits))
			return false;
	for (; i < value.n; i++) {
		unsigned digit = (unsigned char)value.p[i] - '0';

		if (i == whole)
			continue;
		if (digit > 9)
			return false;
		digits = digits * 10 + digit;
	}
	*ret = digits;
	return digits < (uint64_t)1 << 62;
}

bool xm_nanoseconds(struct xm_text value, int64_t *ret)
{
	uint64_t digits = 0;
	bool more;
	int exponent;

	if (three_decimals(value, &digits)) {
		*ret = (int64_t)digits;
		return true;
	}
	digits = 0;
	if (!value.n || !decimal(value, &digits, &exponent, &more))
		return false;
	for (exponent += 3; exponent > 0 && digits; exponent--) {
		if (digits > (uint64_t)INT64_MAX / 20)
			return false;
		digits *= 10;
	}
	for (; exponent < 0 && digits; exponent++) {
		uint64_t last = digits % 10;

		digits /= 10;
		if (exponent == -1) {
			digits += last > 5 || (last == 5 && (more || (digits & 1)));
		}
		more |= last != 0;
	}
	if (digits >= (uint64_t)1 << 62)
		return false;
	*ret = value.p[0] == '-' ? -(int64_t)digits : (int64_t)digits;
	return true;
}
