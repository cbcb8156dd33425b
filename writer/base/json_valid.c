/*
 * Is a text JSON (RFC 8259)? What a program gives as JSON becomes part of a trace as it is.
 */
#include "json.h"

#define DEPTH_MAX  64u
#define DIGITS_MAX 4300 /* of an integer */

struct text {
	const unsigned char *at, *end;
};

static void skip_blanks(struct text *t)
{
	while (t->at < t->end &&
	       (*t->at == ' ' || *t->at == '\n' || *t->at == '\t' || *t->at == '\r'))
		t->at++;
}

static bool take(struct text *t, char c)
{
	if (t->at == t->end || *t->at != (unsigned char)c)
		return false;
	t->at++;
	return true;
}

static bool word(struct text *t, const char *expected)
{
	for (; *expected; expected++)
		if (!take(t, *expected))
			return false;
	return true;
}

static bool digits(struct text *t)
{
	const unsigned char *from = t->at;

	while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
		t->at++;
	return t->at > from;
}

static bool number(struct text *t)
{
	const unsigned char *from = t->at;

	(void)take(t, '-');
	if (!take(t, '0') && !digits(t))
		return false;
	if (t->at - from > DIGITS_MAX && (t->at == t->end || !strchr(".eE", *t->at)))
		return false;
	if (take(t, '.') && !digits(t))
		return false;
	if (!take(t, 'e') && !take(t, 'E'))
		return true;
	if (!take(t, '+'))
		(void)take(t, '-');
	return digits(t);
}

static bool is_hexadecimal(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool escape(struct text *t)
{
	unsigned char c;

	if (t->at == t->end)
		return false;
	c = *t->at++;
	if (c != 'u')
		return c && strchr("\"\\/bfnrt", c);
	for (int i = 0; i < 4; i++, t->at++)
		if (t->at == t->end || !is_hexadecimal(*t->at))
			return false;
	return true;
}

static bool string(struct text *t)
{
	if (!take(t, '"'))
		return false;
	while (t->at < t->end) {
		size_t n = xs_json_utf8(t->at, (size_t)(t->end - t->at));

		if (!n || *t->at < 0x20)
			return false;
		t->at += n;
		if (t->at[-1] == '"' && n == 1)
			return true;
		if (t->at[-1] == '\\' && n == 1 && !escape(t))
			return false;
	}
	return false;
}

static bool value(struct text *t, unsigned depth);

static bool members(struct text *t, unsigned depth, bool keys, char close)
{
	skip_blanks(t);
	if (take(t, close))
		return true;
	do {
		skip_blanks(t);
		if (keys && !string(t))
			return false;
		skip_blanks(t);
		if (keys && !take(t, ':'))
			return false;
		if (!value(t, depth))
			return false;
	} while (take(t, ','));
	return take(t, close);
}

/* With blanks around it. */
static bool value(struct text *t, unsigned depth)
{
	bool valid;

	skip_blanks(t);
	if (!depth || t->at == t->end)
		return false;
	switch (*t->at) {
	case '{':
	case '[':
		t->at++;
		valid = members(t, depth - 1, t->at[-1] == '{', t->at[-1] == '{' ? '}' : ']');
		break;
	case '"':
		valid = string(t);
		break;
	case 't':
		valid = word(t, "true");
		break;
	case 'f':
		valid = word(t, "false");
		break;
	case 'n':
		valid = word(t, "null");
		break;
	default:
		valid = number(t);
	}
	skip_blanks(t);
	return valid;
}

bool xs_json_valid(const char *text, size_t length)
{
	struct text t = { (const unsigned char *)text, (const unsigned char *)text + length };

	return value(&t, DEPTH_MAX) && t.at == t.end;
}
