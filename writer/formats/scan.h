/*
 * One event of a trace in Chrome's JSON, taken apart where it lies: nothing is copied, every member
 * becomes a piece of the text.
 *
 * The text must be followed by XF_SLACK zero bytes: a NUL cannot be part of JSON, so that loops
 * need no second condition.
 */
#ifndef XF_SCAN_H
#define XF_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XF_SLACK  64
#define XF_OTHERS 24
#define XF_DEPTH  256
#define XF_DIGITS 4300 /* of an integer */
/* what is passed over alone may be nested so deeply */
#define XF_DEEPEST 65536

struct xf_text {
	const char *p; /* NULL: absent */
	size_t n;
};

enum xf_scan {
	XF_OK,
	XF_MORE, /* the text ends inside */
	/* readable, but needs xf_repair() to be JSON, or to be compared with a word as it stands */
	XF_DIRTY,
	XF_BAD,
};

/* Values as they stand there: strings with their quotes. */
struct xf_event {
	struct xf_text ph, ts, id, bp, pid, tid, dur, cat, name, args, scope;
	struct xf_text others[XF_OTHERS]; /* "key":value */
	uint32_t other_count;
	/*
	 * A slice in the layout that xstrace writes, which is most of what there is to read: its
	 * numbers are known (times in ns), and all that follows them stands together.
	 */
	bool is_own;
	uint32_t own_pid, own_tid;
	int64_t own_ts, own_dur;
	struct xf_text own_rest; /* from the comma behind ts to the closing brace */
};

/* The object at p (which is '{'), up to *ret_end. XF_BAD: *ret_why says what is wrong. */
enum xf_scan xf_scan_event(const char *p, const char *end, struct xf_event *event,
			   const char **ret_end, const char **ret_why);

/* Any value. */
enum xf_scan xf_scan_value(const char *p, const char *end, const char **ret_end,
			   const char **ret_why);

/*
 * The same for what is not taken: it may have any digits and more depth than others read. XF_BAD:
 * *ret_end is where it is bad.
 */
enum xf_scan xf_pass_value(const char *p, const char *end, const char **ret_end);

/*
 * Copies readable text and makes JSON of it: raw control characters are escaped, bytes that are not
 * UTF-8 and halves of surrogate pairs become U+FFFD, NaN and the infinities null. Letters, digits
 * and '_' that are escaped ("d\u0075r") stand there themselves. Returns the end.
 */
char *xf_repair(char *out, const char *text, size_t length);

/* At most so many bytes it is then. */
size_t xf_repaired_length(const char *text, size_t length);

/*
 * The members of a complete object, one by one: p is behind '{' or where the last call left it.
 * False: no more.
 */
bool xf_member(const char **p, const char *end, struct xf_text *ret_key, struct xf_text *ret_value);
/* The elements of a complete array, in the same way. */
bool xf_element(const char **p, const char *end, struct xf_text *ret_value);
/* Where the first member or element begins. */
static inline const char *xf_first(struct xf_text value)
{
	return value.n ? value.p + 1 : value.p;
}

/*
 * A copy of a text, to be freed, that can be read in all ways in which the text can: XF_SLACK zero
 * bytes follow it. NULL: there is no memory.
 */
char *xf_keep(struct xf_text text);

/* A member by name; {NULL, 0} when there is none, or when it is no object. */
struct xf_text xf_find(struct xf_text object, const char *name);

static inline bool xf_is_string(struct xf_text value)
{
	return value.n >= 2 && value.p[0] == '"';
}

/* A string's inside. */
static inline struct xf_text xf_inside(struct xf_text value)
{
	return xf_is_string(value) ? (struct xf_text){ value.p + 1, value.n - 2 }
				   : (struct xf_text){ 0 };
}

static inline bool xf_is(struct xf_text value, const char *text)
{
	size_t n = strlen(text);

	return value.n == n && !memcmp(value.p, text, n);
}

/* Of events of phase s, t and f: which arrow they are of (docs/TRACE_FORMAT.md, Arrows). */
uint64_t xf_arrow_hash(const struct xf_event *event, struct xf_text id);

/*
 * A string's characters (not more than room - 1 bytes of them, NUL-terminated); returns their
 * number.
 */
size_t xf_unescape(struct xf_text string, char *out, size_t room);

/* A decimal number without a fraction. */
/* The same for 0 to UINT64_MAX. */
bool xf_unsigned(struct xf_text value, uint64_t *ret);
bool xf_integer(struct xf_text value, int64_t *ret);
/* Any number of JSON. */
bool xf_number(struct xf_text value, double *ret);
/*
 * A number of microseconds, as ns: exact, a fraction of a nanosecond is rounded to even. False: no
 * number, or too large.
 */
bool xf_nanoseconds(struct xf_text value, int64_t *ret);

/* What the object's member is, where it has one that is an integer, or a string; else nothing
 * changes. */
void xf_take_integer(struct xf_text object, const char *name, int64_t *field);
void xf_take_text(struct xf_text object, const char *name, char *field, size_t room);

#endif
