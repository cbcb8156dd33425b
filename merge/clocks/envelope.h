/*
 * How far a clock can be off to one side, over the time: at some times it is known that it is off
 * by at most so much, and at others by as much more as its pace can have changed. Times come about
 * in their order; memory does not depend on their number.
 */
#ifndef XM_ENVELOPE_H
#define XM_ENVELOPE_H

#include <stdbool.h>
#include <stdint.h>

#define XM_ENVELOPE_POINTS 16u

struct xm_envelope {
	struct xm_known {
		int64_t time;
		double most;	      /* ns */
	} points[XM_ENVELOPE_POINTS]; /* that may still matter for what is between them */
	uint32_t count;
	struct xm_known first; /* of all, if there were more than these */
	bool has_more;
	double worst; /* of the time between that and these */
};

/* At `time` it is off by at most `most`. `change`: ns per ns, always the same. */
void xm_envelope_add(struct xm_envelope *envelope, int64_t time, double most, double change);
/* The most that it can be off between `from` and `to`; infinite if nothing is known. Once. */
double xm_envelope_latest(struct xm_envelope *envelope, int64_t from, int64_t to, double change);

#endif
