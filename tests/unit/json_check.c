#include "json_check.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 64

struct reader {
	const unsigned char *at, *end;
};

/* One character; decoded first and judged afterwards. */
static bool character(struct reader *r)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned char c = *r->at;
	uint32_t code;
	int more;

	if (c < 0x80) {
		r->at++;
		return true;
	}
	if ((c & 0xe0) == 0xc0)
		more = 1, code = c & 0x1f;
	else if ((c & 0xf0) == 0xe0)
		more = 2, code = c & 0x0f;
	else if ((c & 0xf8) == 0xf0)
		more = 3, code = c & 0x07;
	else
		return false;
	if (r->end - r->at <= more)
		return false;
	for (int i = 1; i <= more; i++) {
		if (r->at[i] >> 6 != 2)
			return false;
		code = code << 6 | (r->at[i] & 0x3f);
	}
	if (code < least[more] || code > 0x10ffff || code >> 11 == 0x1b)
		return false;
	r->at += more + 1;
	return true;
}

static bool hex4(struct reader *r, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 4; i++, r->at++) {
		const char *digits = "0123456789abcdef", *found;

		if (r->at >= r->end || !*r->at)
			return false;
		found = strchr(digits, *r->at >= 'A' && *r->at <= 'F' ? *r->at + 32 : *r->at);
		if (!found)
			return false;
		*ret = *ret << 4 | (uint32_t)(found - digits);
	}
	return true;
}

static bool escape(struct reader *r)
{
	uint32_t code, low;

	if (++r->at >= r->end || !*r->at)
		return false;
	if (*r->at != 'u')
		return strchr("\"\\/bfnrt", *r->at++);
	r->at++;
	if (!hex4(r, &code) || code >> 10 == 0x37)
		return false;
	if (code >> 10 != 0x36)
		return true;
	if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
		return false;
	r->at += 2;
	return hex4(r, &low) && low >> 10 == 0x37;
}

/* Up to an unescaped quotation mark, or the end. */
static bool inside(struct reader *r)
{
	while (r->at < r->end && *r->at != '"')
		if (*r->at < 0x20 || !(*r->at == '\\' ? escape(r) : character(r)))
			return false;
	return true;
}

static bool string(struct reader *r)
{
	if (r->at >= r->end || *r->at != '"')
		return false;
	r->at++;
	return inside(r) && r->at < r->end && *r->at++ == '"';
}

static bool digits(struct reader *r)
{
	const unsigned char *first = r->at;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return r->at != first;
}

static bool number(struct reader *r)
{
	if (r->at < r->end && *r->at == '-')
		r->at++;
	if (r->at < r->end && *r->at == '0')
		r->at++;
	else if (!digits(r))
		return false;
	if (r->at < r->end && *r->at == '.') {
		r->at++;
		if (!digits(r))
			return false;
	}
	if (r->at < r->end && (*r->at | 32) == 'e') {
		r->at++;
		if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
			r->at++;
		return digits(r);
	}
	return true;
}

static void blank(struct reader *r)
{
	while (r->at < r->end && *r->at && strchr(" \t\n\r", *r->at))
		r->at++;
}

static bool word(struct reader *r, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n))
		return false;
	r->at += n;
	return true;
}

static bool value(struct reader *r, int depth);

static bool members(struct reader *r, int depth, bool object, unsigned char close)
{
	r->at++;
	blank(r);
	if (r->at < r->end && *r->at == close) {
		r->at++;
		return true;
	}
	for (;;) {
		if (object) {
			blank(r);
			if (!string(r))
				return false;
			blank(r);
			if (r->at >= r->end || *r->at++ != ':')
				return false;
		}
		if (!value(r, depth + 1) || r->at >= r->end)
			return false;
		if (*r->at == close) {
			r->at++;
			return true;
		}
		if (*r->at != ',')
			return false;
		r->at++;
	}
}

/* With the blanks around it. */
static bool value(struct reader *r, int depth)
{
	bool good;

	blank(r);
	if (r->at >= r->end || depth > DEPTH_MAX)
		return false;
	switch (*r->at) {
	case '{':
		good = members(r, depth, true, '}');
		break;
	case '[':
		good = members(r, depth, false, ']');
		break;
	case '"':
		good = string(r);
		break;
	case 't':
		good = word(r, "true");
		break;
	case 'f':
		good = word(r, "false");
		break;
	case 'n':
		good = word(r, "null");
		break;
	default:
		good = number(r);
	}
	blank(r);
	return good;
}

bool json_check(const char *text, size_t length, size_t *ret_at)
{
	struct reader r = { (const unsigned char *)text, (const unsigned char *)text + length };
	bool good = value(&r, 0) && r.at == r.end;

	*ret_at = (size_t)(r.at - (const unsigned char *)text);
	return good;
}

bool json_check_string(const char *text, size_t length, size_t *ret_at)
{
	struct reader r = { (const unsigned char *)text, (const unsigned char *)text + length };
	bool good = inside(&r) && r.at == r.end;

	*ret_at = (size_t)(r.at - (const unsigned char *)text);
	return good;
}
