/*
 * What a slice is: by its category, its name, and who wrote the trace.
 */
#ifndef XT_KINDS_H
#define XT_KINDS_H

#include "trace.h"

enum xt_what { XT_TASK, XT_CALL, XT_KERNEL, XT_COPY, XT_DEVICE, XT_REQUEST, XT_OTHER, XT_WHATS };

/* What is known of names, so that each is looked at once. */
struct xt_kinds {
	struct xt_known {
		uint8_t category; /* what a category makes of a slice, + 1; 0: not looked at */
		uint8_t name;	  /* likewise */
		int64_t bytes;	  /* "clEnqueueWriteBuffer[4096]"; -1: none */
	} *known;
	uint32_t room;
};

/*
 * name: as a string of JSON, of number `number` (XF_NONE: it has none). *bytes: what its arguments
 * tell of bytes, -1: nothing; its name may know.
 */
enum xt_what xt_what(struct xt_kinds *kinds, const struct xt_trace *trace, struct xf_text name,
		     uint32_t number, uint32_t category, bool on_queue, int64_t *bytes);
static inline bool xt_is_work(enum xt_what what)
{
	return what == XT_KERNEL || what == XT_COPY || what == XT_DEVICE;
}
extern const char *const xt_what_names[XT_WHATS];

#endif
