/*
 * One pass over the events of a trace: xstrace's own layout and any other of the same JSON, plain
 * or compressed, whole or cut.
 *
 * What is in the file never stops the reader: a cut file gives the events that are complete. What
 * is no event is left out alone where it is JSON or its brackets tell its end, and else reading
 * goes on at the next line that begins with an event.
 */
#ifndef XM_READER_H
#define XM_READER_H

#include "own_slice.h"
#include "scan.h"
#include "source.h"

#define XM_LONGEST (16u << 20)

struct xm_reader {
	struct xm_source source;
	char *data; /* a window that moves over the text; XF_SLACK zero bytes follow it */
	size_t at, length, room, window;
	/*
	 * set before it is opened, if it is not XM_LONGEST: bytes of one event, or of one member of
	 * the top level
	 */
	size_t longest;
	const struct xm_file *file;
	uint64_t offset; /* of data[0] in the text */
	uint64_t tried;	 /* none that begins before it, and could not be taken, is whole */
	enum { XM_IN_HEADER, XM_IN_EVENTS, XM_AT_END } where;
	bool eof, is_array, had_events;
	struct xf_own own; /* the last slice of xstrace's own layout */
	char *repaired;
	size_t repaired_room;

	bool cut;	     /* the text ends too early */
	uint64_t left_out;   /* things that were no JSON */
	uint64_t first_line; /* where the first of them begins */
	const char *first_why;
	uint64_t lost_line; /* behind what begins there nothing could be read; 0: all was */
	int error;	    /* -errno: the file cannot be read (further) */
	/* called with each member of the top level but traceEvents */
	void (*member)(void *user, struct xf_text key, struct xf_text value);
	void *user;
};

/*
 * Reads up to the first event. window: bytes to hold; more only where one event is longer. 0 or
 * -errno; -EBADMSG: no trace at all, *ret_why says so.
 */
int xm_reader_open(struct xm_reader *reader, const struct xm_file *file, size_t window,
		   const char **ret_why);
/* The next event; it is valid until the next call. False: there is none. */
bool xm_reader_next(struct xm_reader *reader, struct xf_event *event);
void xm_reader_close(struct xm_reader *reader);
/* What is wrong with a file, for people. */
const char *xm_reason(int error);

#endif
