/*
 * A slice in the layout that xstrace writes: one on each line, its members always in the same
 * order.
 */
#ifndef XF_OWN_SLICE_H
#define XF_OWN_SLICE_H

#include "scan.h"

/* How the last slice began: the next one of its thread mostly begins in the same way. */
struct xf_own {
	char head[64]; /* up to its time */
	uint32_t head_length;
	uint32_t tid_at, tid_length, pid_at, pid_length, tid, pid;
	/* of its time: digits in front of the point, and what all but the last four of them mean */
	uint32_t digits;
	int64_t high;
	uint8_t lead[16], mask[16]; /* these digits */
};

/* Fills *event. False: look at it as at any other event. */
bool xf_own_slice(const char *p, const char *end, struct xf_event *event, const char **ret_end);
/* The same, faster if it begins as the one before, which *own has; zeros: there was none. */
bool xf_own_next(const char *p, const char *end, struct xf_own *own, struct xf_event *event,
		 const char **ret_end);

#endif
