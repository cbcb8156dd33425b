/*
 * Arrows of which an input has one end alone. Of an input of which something is missing, the other
 * end may have been there, and viewers make nothing of half an arrow.
 */
#ifndef XM_HALVES_H
#define XM_HALVES_H

#include "scan.h"

/*
 * The first pass: an event of phase s, t or f, in the order of the input. Memory is bounded: of
 * many that are half at the same time some are forgotten. NULL before the first one, to be freed.
 */
struct xm_halves;
void xm_half_met(struct xm_halves **halves, const struct xf_event *event);

/* A later pass, likewise: is that event all that there is of its arrow? Once for each. */
bool xm_half_is(struct xm_halves *halves, const struct xf_event *event);

#endif
