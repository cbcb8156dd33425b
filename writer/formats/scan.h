/*
 * One event of a trace in Chrome's JSON, taken apart where it lies: nothing is copied, every member
 * becomes a piece of the text.
 *
 * The text must be followed by XM_SLACK zero bytes: a NUL cannot be part of JSON, so that loops
 * need no second condition.
 */
#ifndef XM_SCAN_H
#define XM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XM_SLACK  64
#define XM_OTHERS 24
#define XM_DEPTH  256

struct xm_text {
	const char *p; /* NULL: absent */
	size_t n;
};

enum xm_scan {
	XM_OK,
	XM_MORE,  /* the text ends inside */
	XM_DIRTY, /* readable, but what it says needs xm_repair() to be JSON */
	XM_BAD,
};

/* Values as they stand there: strings with their quotes. */
struct xm_event {
	struct xm_text ph, ts, id, bp, pid, tid, dur, cat, name, args, scope;
	struct xm_text others[XM_OTHERS]; /* "key":value */
	uint32_t other_count;
	/*
	 * A slice in the layout that xstrace writes, which is most of what there is to read: its
	 * numbers are known (times in ns), and all that follows them stands together.
	 */
	bool is_own;
	uint32_t own_pid, own_tid;
	int64_t own_ts, own_dur;
	struct xm_text own_rest; /* from the comma behind ts to the closing brace */
};

/* The object at p (which is '{'), up to *ret_end. XM_BAD: *ret_why says what is wrong. */
enum xm_scan xm_scan_event(const char *p, const char *end, struct xm_event *event,
			   const char **ret_end, const char **ret_why);

/* Any value. */
enum xm_scan xm_scan_value(const char *p, const char *end, const char **ret_end,
			   const char **ret_why);

/*
 * Copies readable text and makes JSON of it: raw control characters are escaped, bytes that are not
 * UTF-8 and halves of surrogate pairs become U+FFFD, NaN and the infinities null. Returns the end.
 */
char *xm_repair(char *out, const char *text, size_t length);

/* At most so many bytes it is then. */
size_t xm_repaired_length(const char *text, size_t length);

/*
 * The members of a complete object, one by one: p is behind '{' or where the last call left it.
 * False: no more.
 */
bool xm_member(const char **p, const char *end, struct xm_text *ret_key, struct xm_text *ret_value);
/* The elements of a complete array, in the same way. */
bool xm_element(const char **p, const char *end, struct xm_text *ret_value);
/* Where the first member or element begins. */
static inline const char *xm_first(struct xm_text value)
{
	return value.n ? value.p + 1 : value.p;
}

/* A member by name; {NULL, 0} when there is none, or when it is no object. */
struct xm_text xm_find(struct xm_text object, const char *name);

static inline bool xm_is_string(struct xm_text value)
{
	return value.n >= 2 && value.p[0] == '"';
}

/* A string's inside. */
static inline struct xm_text xm_inside(struct xm_text value)
{
	return xm_is_string(value) ? (struct xm_text){ value.p + 1, value.n - 2 }
				   : (struct xm_text){ 0 };
}

static inline bool xm_is(struct xm_text value, const char *text)
{
	size_t n = strlen(text);

	return value.n == n && !memcmp(value.p, text, n);
}

/*
 * A string's characters (not more than room - 1 bytes of them, NUL-terminated); returns their
 * number.
 */
size_t xm_unescape(struct xm_text string, char *out, size_t room);

/* A decimal number without a fraction. */
bool xm_integer(struct xm_text value, int64_t *ret);
/*
 * A number of microseconds, as ns: exact, a fraction of a nanosecond is rounded to even. False: no
 * number, or too large.
 */
bool xm_nanoseconds(struct xm_text value, int64_t *ret);

#endif
