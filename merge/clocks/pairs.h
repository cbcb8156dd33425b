/*
 * What is known of two clocks at a time.
 */
#ifndef XM_PAIRS_H
#define XM_PAIRS_H

#include "bounds.h"
#include "clocks.h"

/* The clocks first < second; bounds on how far the second is ahead. */
struct xm_pair {
	uint32_t first, second;
	struct xm_bounds bounds;
	struct xm_samples *samples;
	struct xm_line line;
	bool has_line;
	uint64_t calls[2];     /* as in struct xm_clock */
	struct xm_proof proof; /* the worst, if the two were one clock */
};

struct xm_pairs {
	struct xf_map map;
	struct xm_pair *all;
	uint32_t room;
};

void xm_pairs_init(struct xm_pairs *pairs);
/* See clocks.h. The pair; NULL: no room, or no two clocks. */
struct xm_pair *xm_pairs_message(struct xm_pairs *pairs, uint32_t from, int64_t sent, uint32_t to,
				 int64_t seen);
void xm_pairs_together(struct xm_pairs *pairs, uint32_t a, int64_t a_time, uint32_t b,
		       int64_t b_time);
void xm_pairs_free(struct xm_pairs *pairs);

#endif
