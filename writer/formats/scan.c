#include "scan.h"

#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "own_slice.h"

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

/* More digits than readers take for one: Python's json ends with an error. */
static bool is_too_long(const char *p, const char *stop)
{
	size_t n = (size_t)(stop - p) - (*p == '-');

	return n > XF_DIGITS && !memchr(p, '.', n) && !memchr(p, 'e', n) && !memchr(p, 'E', n);
}

/* A string, number or word. */
static enum xf_scan scalar(const char *p, const char *end, const char **ret_end,
			   const char **ret_why)
{
	const struct xf_word *word;
	enum xf_scan result;
	const char *stop;

	if (*p == '"') {
		result = xf_string_end(p + 1, end, &stop);
		if (result != XF_MORE)
			*ret_end = stop + 1;
		return result;
	}
	stop = number_end(p);
	if (stop) {
		*ret_end = stop;
		if (stop >= end)
			return XF_MORE; /* a digit may follow */
		if (__builtin_expect(!is_too_long(p, stop), 1))
			return XF_OK;
		*ret_why = "a number with too many digits";
		return XF_BAD;
	}
	word = xf_word_at(p);
	if (word) {
		*ret_end = p + strlen(word->text);
		return *ret_end >= end ? XF_MORE : word->result;
	}
	/* a number or word that is cut looks like no value */
	for (stop = p; stop < end && (*stop == '-' || *stop == '+' || *stop == '.' ||
				      (*stop >= '0' && *stop <= '9') ||
				      ((*stop | 0x20) >= 'a' && (*stop | 0x20) <= 'z'));)
		stop++;
	if (stop >= end)
		return XF_MORE;
	*ret_why = "a value was expected";
	return XF_BAD;
}

/* A key and its colon; *p moves to the value. */
static enum xf_scan key(const char **p, const char *end, struct xf_text *ret_key,
			const char **ret_why)
{
	enum xf_scan result;
	const char *quote;

	if (**p != '"') {
		*ret_why = "a member was expected";
		return *p >= end ? XF_MORE : XF_BAD;
	}
	result = xf_string_end(*p + 1, end, &quote);
	if (result == XF_MORE)
		return result;
	*ret_key = (struct xf_text){ *p + 1, (size_t)(quote - *p - 1) };
	*p = xf_skip_space(quote + 1);
	if (**p != ':') {
		*ret_why = "':' was expected";
		return *p >= end ? XF_MORE : XF_BAD;
	}
	*p = xf_skip_space(*p + 1);
	return result;
}

/* The objects and lists that are open. */
struct nest {
	uint8_t *is_object;
	unsigned depth, deepest;
	bool any_number; /* also one that is_too_long() */
};

static inline bool in_object(const struct nest *nest)
{
	unsigned last = nest->depth - 1;

	return nest->depth && nest->is_object[last / 8] >> last % 8 & 1;
}

/* A value: one without parts, which is passed, or an object or a list, which is entered. */
static inline enum xf_scan begin_value(struct nest *nest, const char **p, const char *end,
				       bool *ret_ended, const char **ret_why)
{
	uint8_t *place = &nest->is_object[nest->depth / 8];
	unsigned bit = 1u << nest->depth % 8;
	bool object = **p == '{';
	struct xf_text unused;

	*ret_ended = true;
	if (!object && **p != '[') {
		const char *start = *p;
		enum xf_scan result = scalar(start, end, p, ret_why);

		return result == XF_BAD && nest->any_number && *p > start ? XF_DIRTY : result;
	}
	if (nest->depth == nest->deepest) {
		*ret_why = "nested too deeply";
		return XF_BAD;
	}
	*p = xf_skip_space(*p + 1);
	if (**p == (object ? '}' : ']')) {
		++*p;
		return XF_OK;
	}
	*place = (uint8_t)((*place & ~bit) | (object ? bit : 0));
	nest->depth++;
	*ret_ended = false;
	return object ? key(p, end, &unused, ret_why) : XF_OK;
}

/* *ret_end: of what is bad, where that is seen. */
static inline enum xf_scan pass_value(struct nest *nest, const char *p, const char *end,
				      const char **ret_end, const char **ret_why)
{
	enum xf_scan result = XF_OK, one;
	struct xf_text unused;
	bool ended = false; /* a value has just ended */

	for (;;) {
		*ret_end = p;
		if (!ended) {
			one = begin_value(nest, &p, end, &ended, ret_why);
		} else {
			bool object = in_object(nest);

			p = xf_skip_space(p);
			one = XF_OK;
			if (*p == ',') {
				p = xf_skip_space(p + 1);
				ended = false;
				if (object)
					one = key(&p, end, &unused, ret_why);
			} else if (*p == (object ? '}' : ']')) {
				p++;
				nest->depth--;
			} else {
				*ret_why = object ? "',' or '}' was expected"
						  : "',' or ']' was expected";
				return p >= end ? XF_MORE : XF_BAD;
			}
		}
		if (one == XF_MORE || one == XF_BAD)
			return one;
		if (one == XF_DIRTY)
			result = one;
		if (ended && !nest->depth) {
			*ret_end = p;
			return result;
		}
	}
}

enum xf_scan xf_scan_value(const char *p, const char *end, const char **ret_end,
			   const char **ret_why)
{
	uint8_t is_object[XF_DEPTH / 8 + 1];
	struct nest nest = { .is_object = is_object, .deepest = XF_DEPTH };
	const char *stop;
	enum xf_scan result = pass_value(&nest, p, end, &stop, ret_why);

	if (result == XF_OK || result == XF_DIRTY)
		*ret_end = stop;
	return result;
}

enum xf_scan xf_pass_value(const char *p, const char *end, const char **ret_end)
{
	uint8_t is_object[XF_DEEPEST / 8 + 1];
	struct nest nest = { .is_object = is_object, .deepest = XF_DEEPEST, .any_number = true };
	const char *why;

	return pass_value(&nest, p, end, ret_end, &why);
}

static struct xf_text *slot(struct xf_event *event, struct xf_text name)
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
		return !memcmp(name.p, "name", 4)   ? &event->name
		       : !memcmp(name.p, "args", 4) ? &event->args
						    : NULL;
	default:
		return NULL;
	}
}

enum xf_scan xf_scan_event(const char *p, const char *end, struct xf_event *event,
			   const char **ret_end, const char **ret_why)
{
	enum xf_scan result = XF_OK, one;

	if (xf_own_slice(p, end, event, ret_end))
		return XF_OK;
	memset(event, 0, offsetof(struct xf_event, others));
	event->other_count = 0;
	p = xf_skip_space(p + 1);
	if (*p == '}') {
		*ret_end = p + 1;
		return XF_OK;
	}
	for (;;) {
		const char *start = p;
		struct xf_text name, *value;

		one = key(&p, end, &name, ret_why);
		if (one == XF_MORE || one == XF_BAD)
			return one;
		result = one == XF_DIRTY ? one : result;
		value = slot(event, name);
		if (!value && event->other_count < XF_OTHERS)
			value = &event->others[event->other_count++];
		if (!value) {
			*ret_why = "an event with too many members";
			return XF_BAD;
		}
		value->p = value < event->others ? p : start;
		one = *p == '{' || *p == '[' ? xf_scan_value(p, end, &p, ret_why)
					     : scalar(p, end, &p, ret_why);
		if (one == XF_MORE || one == XF_BAD)
			return one;
		result = one == XF_DIRTY ? one : result;
		value->n = (size_t)(p - value->p);
		p = xf_skip_space(p);
		if (*p == ',') {
			p = xf_skip_space(p + 1);
		} else if (*p == '}') {
			*ret_end = p + 1;
			return result;
		} else {
			*ret_why = "',' or '}' was expected";
			return p >= end ? XF_MORE : XF_BAD;
		}
	}
}

bool xf_member(const char **p, const char *end, struct xf_text *ret_key, struct xf_text *ret_value)
{
	const char *why, *stop;

	*p = xf_skip_space(*p);
	if (**p == ',')
		*p = xf_skip_space(*p + 1);
	if (*p >= end || key(p, end, ret_key, &why) > XF_OK)
		return false;
	if (xf_scan_value(*p, end, &stop, &why) > XF_OK)
		return false;
	*ret_value = (struct xf_text){ *p, (size_t)(stop - *p) };
	*p = stop;
	return true;
}

bool xf_element(const char **p, const char *end, struct xf_text *ret_value)
{
	const char *why, *stop;

	*p = xf_skip_space(*p);
	if (**p == ',')
		*p = xf_skip_space(*p + 1);
	if (*p >= end || **p == ']' || xf_scan_value(*p, end, &stop, &why) > XF_OK)
		return false;
	*ret_value = (struct xf_text){ *p, (size_t)(stop - *p) };
	*p = stop;
	return true;
}

struct xf_text xf_find(struct xf_text object, const char *name)
{
	struct xf_text member, value;
	const char *p = xf_first(object);

	if (object.n < 2 || object.p[0] != '{')
		return (struct xf_text){ 0 };
	while (xf_member(&p, object.p + object.n, &member, &value))
		if (xf_is(member, name))
			return value;
	return (struct xf_text){ 0 };
}

char *xf_keep(struct xf_text text)
{
	char *copy = malloc(text.n + XF_SLACK);

	if (!copy)
		return NULL;
	if (text.n)
		memcpy(copy, text.p, text.n);
	memset(copy + text.n, 0, XF_SLACK);
	return copy;
}

static uint64_t mix(uint64_t hash, struct xf_text text)
{
	hash = (hash ^ text.n) * 0x9e3779b97f4a7c15ull;
	for (size_t i = 0; i < text.n; i += 8) {
		uint64_t word = 0;

		memcpy(&word, text.p + i, text.n - i < 8 ? text.n - i : 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccdull;
		hash ^= hash >> 32;
	}
	return hash;
}

uint64_t xf_arrow_hash(const struct xf_event *event, struct xf_text id)
{
	return mix(mix(mix(1, event->cat), event->name), id);
}
