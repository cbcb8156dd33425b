#include "reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_ROOM (1u << 20)

/*
 * The number of the line at an offset of the text: it is asked for seldom, so that lines are not
 * counted before.
 */
static uint64_t line_at(const struct xm_file *file, uint64_t offset)
{
	struct xm_source source;
	uint64_t lines = 1;
	char data[16384];
	ssize_t n;

	if (xm_source_open(&source, file) < 0)
		return 0;
	while (offset &&
	       (n = xm_source_read(&source, data,
				   offset < sizeof(data) ? (size_t)offset : sizeof(data))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			lines += data[i] == '\n';
		offset -= (uint64_t)n;
	}
	xm_source_close(&source);
	return lines;
}

/* What a long event needed is given back behind it. */
static void shrink(struct xm_reader *r)
{
	char *smaller = realloc(r->data, r->window + XF_SLACK);

	if (smaller) {
		r->data = smaller;
		r->room = r->window;
	}
}

/*
 * Drops what was read and reads on; the window grows when all of it is still wanted. False: the
 * text ends here.
 */
static bool more(struct xm_reader *r)
{
	if (r->eof)
		return false;
	r->offset += r->at;
	r->length -= r->at;
	memmove(r->data, r->data + r->at, r->length);
	r->at = 0;
	if (r->room > r->window && r->length <= r->window / 2)
		shrink(r);
	if (r->repaired_room > KEPT_ROOM) {
		free(r->repaired);
		r->repaired = NULL;
		r->repaired_room = 0;
	}
	if (r->length > r->room / 2) {
		char *grown = realloc(r->data, 2 * r->room + XF_SLACK);

		if (!grown) {
			r->error = -ENOMEM;
			r->eof = true;
			return false;
		}
		r->data = grown;
		r->room *= 2;
	}
	while (r->length < r->room) {
		ssize_t n = xm_source_read(&r->source, r->data + r->length, r->room - r->length);

		if (n <= 0) {
			r->eof = true;
			r->error = n < 0 ? (int)n : 0;
			break;
		}
		r->length += (size_t)n;
	}
	memset(r->data + r->length, 0, XF_SLACK);
	return true;
}

static bool space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The next character that is not white space; 0 at the end of the text. */
static char peek(struct xm_reader *r)
{
	for (;;) {
		while (space(r->data[r->at]))
			r->at++;
		if (r->at < r->length)
			return r->data[r->at] ? r->data[r->at]
					      : '?'; /* a NUL is a character like any other that
							does not belong there */
		if (!more(r))
			return 0;
	}
}

static void note(struct xm_reader *r, const char *why)
{
	if (!r->left_out++) {
		r->first_line = line_at(r->file, r->offset + r->at);
		r->first_why = why;
	}
}

/* Moves to the next line that can begin an event, or end them. False: there is none. */
static bool resync(struct xm_reader *r)
{
	for (;;) {
		char *newline = memchr(r->data + r->at, '\n', r->length - r->at), *p;

		if (!newline) {
			r->at = r->length;
			if (!more(r))
				return false;
			continue;
		}
		for (p = newline + 1; *p == ' ' || *p == '\t' || *p == '\r'; p++)
			;
		/* this line's beginning is not there yet */
		if (p >= r->data + r->length && !r->eof) {
			r->at = (size_t)(newline - r->data);
			(void)more(r);
			continue;
		}
		r->at = (size_t)(p - r->data);
		if (*p == '{' || *p == ']' || *p == ',')
			return true;
	}
}

/* Does a line that looks as if it began an event follow? */
static bool is_next_line_one(const struct xm_reader *r, const char *p)
{
	p = memchr(p, '\n', (size_t)(r->data + r->length - p));
	while (p && space(*p))
		p++;
	return p && (*p == '{' || *p == ',');
}

/* May an element end before p? A piece of a torn event may have any brackets. */
static bool is_behind_one(const struct xm_reader *r, const char *p)
{
	return *p == ',' || *p == '{' || (*p == ']' && !is_next_line_one(r, p)) ||
	       p >= r->data + r->length;
}

/* Passes an element that is valid JSON. False: it is not, or is too long. */
static bool pass_value(struct xm_reader *r)
{
	const char *stop = NULL;
	enum xf_scan result;

	if (r->offset + r->at < r->tried) /* it would be looked at again and again */
		return false;
	do {
		result = xf_pass_value(r->data + r->at, r->data + r->length, &stop);
		while ((result == XF_OK || result == XF_DIRTY) && space(*stop))
			stop++;
		if (result == XF_MORE || stop >= r->data + r->length)
			stop = r->data + r->length;
	} while (stop == r->data + r->length && r->length - r->at <= r->longest && more(r));
	if ((result == XF_OK || result == XF_DIRTY) && is_behind_one(r, stop)) {
		r->at = (size_t)(stop - r->data);
		return true;
	}
	r->tried = r->offset + (size_t)(stop - r->data);
	return false;
}

/* Passes an element as far as its brackets tell its end. False: its line has ended before. */
static bool pass_in_line(struct xm_reader *r)
{
	const char first = r->data[r->at];
	bool in_string = first == '"', escaped = false;
	uint64_t depth = first == '{' || first == '[';

	for (r->at++;; r->at++) {
		char c;

		while (r->at >= r->length) /* there may be no more, and that is not known yet */
			if (!more(r))
				return false;
		c = r->data[r->at];
		if (c == '\n')
			return false;
		if (in_string) {
			in_string = c != '"' || escaped;
			escaped = c == '\\' && !escaped;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (!depth)
				return true; /* the end of all of them */
			if (--depth)
				continue;
			r->at++;
			return true;
		} else if (c == ',' && !depth) {
			return true;
		}
	}
}

/*
 * Leaves out the element at the text's place, alone where its end can be told, else with the rest
 * of its line. False: there is nothing behind it that can be read.
 */
static bool leave_out(struct xm_reader *r, const char *why)
{
	uint64_t place;

	note(r, why);
	place = r->offset + r->at;
	if (pass_value(r))
		return true;
	if (pass_in_line(r) && (!peek(r) || is_behind_one(r, r->data + r->at)))
		return true;
	if (resync(r))
		return true;
	r->lost_line = line_at(r->file, place);
	r->where = XM_AT_END;
	return false;
}

/* An event that does not end in sight: was it cut, or the file? */
static bool another_event(const struct xm_reader *r)
{
	const char *p = r->data + r->at, *end = r->data + r->length;

	while ((p = memchr(p, '\n', (size_t)(end - p)))) {
		while (p < end && space(*p))
			p++;
		if (p < end && *p == '{')
			return true;
	}
	return false;
}

/* Makes JSON of text that can be read; NULL: no memory. */
static char *repair(struct xm_reader *r, const char *text, size_t length, size_t *ret_length)
{
	size_t room = xf_repaired_length(text, length) + XF_SLACK;

	if (r->repaired_room < room) {
		free(r->repaired);
		r->repaired_room = room;
		r->repaired = malloc(r->repaired_room);
		if (!r->repaired) {
			r->repaired_room = 0;
			r->error = -ENOMEM;
			return NULL;
		}
	}
	*ret_length = (size_t)(xf_repair(r->repaired, text, length) - r->repaired);
	memset(r->repaired + *ret_length, 0, XF_SLACK);
	return r->repaired;
}

/* A value of the top level, into *ret; the text moves behind it. False: cut, or no JSON. */
static bool top_value(struct xm_reader *r, struct xf_text *ret)
{
	const char *stop = NULL, *why = NULL;

	for (;;) {
		char *p = r->data + r->at;
		enum xf_scan result = xf_scan_value(p, r->data + r->length, &stop, &why);

		if (result == XF_MORE && r->length - r->at <= r->longest && more(r))
			continue;
		if (result == XF_MORE)
			r->cut = r->eof;
		if (result == XF_BAD || (result == XF_MORE && !r->eof))
			note(r, why ? why : "a value that is too long");
		if (result == XF_MORE || result == XF_BAD)
			return false;
		*ret = (struct xf_text){ p, (size_t)(stop - p) };
		r->at += ret->n;
		if (result == XF_DIRTY)
			ret->p = repair(r, p, ret->n, &ret->n);
		return ret->p;
	}
}

/* The trace has ended: what follows, as a second one does, is left out. */
static void at_end(struct xm_reader *r)
{
	if (r->had_events && peek(r))
		note(r, "text behind the end of the trace");
}

/* Members of the top level up to the events, or to the end. */
static void members(struct xm_reader *r)
{
	char name[64];

	r->where = XM_AT_END;
	for (;;) {
		struct xf_text value;
		char mark = peek(r);

		if (mark == ',') {
			r->at++;
			mark = peek(r);
		}
		if (mark == '}') {
			r->at++;
			at_end(r);
			return;
		}
		if (mark != '"') {
			r->cut |= !mark;
			if (mark)
				note(r, "a member was expected");
			return;
		}
		if (!top_value(r, &value))
			return;
		(void)xf_unescape(value, name, sizeof(name));
		mark = peek(r);
		if (mark != ':') {
			r->cut |= !mark;
			if (mark)
				note(r, "':' was expected");
			return;
		}
		r->at++;
		mark = peek(r);
		if (!strcmp(name, "traceEvents") && mark == '[') {
			r->at++;
			r->had_events = true;
			r->where = XM_IN_EVENTS;
			return;
		}
		if (!mark)
			r->cut = true;
		if (!mark || !top_value(r, &value))
			return;
		if (r->member)
			r->member(r->user, (struct xf_text){ name, strlen(name) }, value);
	}
}

int xm_reader_open(struct xm_reader *r, const struct xm_file *file, size_t window,
		   const char **ret_why)
{
	int result = xm_source_open(&r->source, file);
	char mark;

	if (result < 0)
		return result;
	r->room = r->window = window;
	r->longest = r->longest ? r->longest : XM_LONGEST;
	r->file = file;
	r->data = calloc(1, window + XF_SLACK);
	if (!r->data)
		return -ENOMEM;
	(void)more(r);
	if (r->length >= 3 && !memcmp(r->data, "\xef\xbb\xbf", 3))
		r->at = 3;
	mark = peek(r);
	if (r->error < 0)
		return r->error;
	if (!mark) {
		r->where = XM_AT_END;
		r->cut = true;
		*ret_why = r->source.error ? r->source.error : "empty";
		return -EBADMSG;
	}
	if (mark != '{' && mark != '[') {
		*ret_why = r->data[0] == '\n' /* a packet's tag */
				   ? "no JSON (Perfetto's format? trace without --format perfetto)"
				   : "not a trace (it begins with neither { nor [)";
		return -EBADMSG;
	}
	r->at++;
	if (mark == '[') {
		r->is_array = r->had_events = true;
		r->where = XM_IN_EVENTS;
		return 0;
	}
	members(r);
	if (!r->had_events && !r->cut) {
		*ret_why = r->left_out ? "not a trace (its beginning is no JSON)"
				       : "not a trace (it has no traceEvents)";
		return -EBADMSG;
	}
	return r->error;
}

/* The event at the text's place, which is '{'. 1: it is there, 0: left out, -1: it was cut. */
static int one(struct xm_reader *r, struct xf_event *event)
{
	for (;;) {
		const char *stop = NULL, *why = "an event without an end";
		char *p = r->data + r->at;
		enum xf_scan result =
			xf_own_next(p, r->data + r->length, &r->own, event, &stop)
				? XF_OK
				: xf_scan_event(p, r->data + r->length, event, &stop, &why);

		if (result == XF_OK || result == XF_DIRTY) {
			size_t length = (size_t)(stop - p);

			if (length > r->longest)
				note(r, "an event that is too long");
			r->at += length;
			if (length > r->longest)
				return 0;
			if (result == XF_OK)
				return 1;
			p = repair(r, p, length, &length);
			return p && xf_scan_event(p, p + length, event, &stop, &why) == XF_OK ? 1
											      : 0;
		}
		if (result == XF_MORE && r->length - r->at <= r->longest && more(r))
			continue;
		if (result == XF_MORE && r->eof && !another_event(r))
			return -1;
		(void)leave_out(r, result != XF_MORE		    ? why
				   : r->length - r->at > r->longest ? "an event that is too long"
								    : "an event without an end");
		return 0;
	}
}

/* The next line, if it is a slice of xstrace's own: most are. */
static inline bool own_line(struct xm_reader *r, struct xf_event *event)
{
	const char *p = r->data + r->at, *stop;

	/* zeros follow the text */
	if (r->where != XM_IN_EVENTS || memcmp(p, ",\n{", 3) ||
	    !xf_own_next(p + 2, r->data + r->length, &r->own, event, &stop) ||
	    (size_t)(stop - p) > r->longest)
		return false;
	r->at = (size_t)(stop - r->data);
	return true;
}

bool xm_reader_next(struct xm_reader *r, struct xf_event *event)
{
	if (own_line(r, event))
		return true;
	while (r->where == XM_IN_EVENTS && !r->error) {
		char mark = peek(r);
		int result;

		if (mark == ',') {
			r->at++;
		} else if (mark == '{') {
			result = one(r, event);
			if (result > 0)
				return true;
			if (result < 0) {
				r->cut = true;
				r->where = XM_AT_END;
			}
		} else if (mark == ']') {
			r->at++;
			r->where = XM_AT_END;
			if (r->is_array)
				at_end(r);
			else
				members(r);
		} else if (!mark) {
			r->cut = true;
			r->where = XM_AT_END;
		} else {
			(void)leave_out(r, "an event was expected");
		}
	}
	if (r->source.cut)
		r->cut = true;
	return false;
}

void xm_reader_close(struct xm_reader *r)
{
	xm_source_close(&r->source);
	free(r->data);
	free(r->repaired);
	r->data = r->repaired = NULL;
}

const char *xm_reason(int error)
{
	switch (error) {
	case -ENOTSUP:
		return "this build cannot read compressed files of its kind";
	case -EMEDIUMTYPE:
		return "neither a file nor a pipe";
	case -ENODATA:
		return "has become shorter while it was read";
	default:
		return strerror(-error);
	}
}
