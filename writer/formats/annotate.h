/*
 * Arguments of events: JSON's values as Perfetto's debug annotations.
 */
#ifndef XM_ANNOTATE_H
#define XM_ANNOTATE_H

#include "proto.h"
#include "scan.h"

#define XM_LONGEST_TEXT 65536

struct xm_annotator {
	struct xm_proto *out;
	/* The number by which the trace knows a key; XM_NONE: none, the key itself is written. */
	uint32_t (*key)(void *user, const char *text, size_t length);
	void *user;
	char text[XM_LONGEST_TEXT];
};

/*
 * Puts a complete value as field `field`. key: its name, without quotes; {NULL, 0}: it has none. Of
 * a text, what is beyond XM_LONGEST_TEXT - 1 bytes is cut.
 */
void xm_annotate(struct xm_annotator *a, uint32_t field, struct xm_text key, struct xm_text value);

/* The members of an object, as the event's own annotations. Nothing where it is none. */
void xm_annotate_all(struct xm_annotator *a, struct xm_text object);

#endif
