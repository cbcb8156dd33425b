/*
 * Arguments of events: JSON's values as Perfetto's debug annotations.
 */
#ifndef XF_ANNOTATE_H
#define XF_ANNOTATE_H

#include "proto.h"
#include "scan.h"

#define XF_LONGEST_TEXT 65536

struct xf_annotator {
	struct xf_proto *out;
	/* The number by which the trace knows a key; XF_NONE: none, the key itself is written. */
	uint32_t (*key)(void *user, const char *text, size_t length);
	void *user;
	char text[XF_LONGEST_TEXT];
};

/*
 * Puts a complete value as field `field`. key: its name, without quotes; {NULL, 0}: it has none. Of
 * a text, what is beyond XF_LONGEST_TEXT - 1 bytes is cut.
 */
void xf_annotate(struct xf_annotator *a, uint32_t field, struct xf_text key, struct xf_text value);

/*
 * A counter's value: exact if it is a whole number that an int64_t can be. value: a number, and
 * behind it what ends one.
 */
void xf_put_counter_value(struct xf_proto *out, struct xf_text value);

/* The members of an object, as the event's own annotations. Nothing where it is none. */
void xf_annotate_all(struct xf_annotator *a, struct xf_text object);

#endif
