/*
 * Arrows from a process to those that it started: from what it was doing then to the first slice of
 * the child.
 */
#ifndef XM_TREE_H
#define XM_TREE_H

#include "sink.h"

struct xm_tree;

/* After xm_arrange() and xm_clocks_solve(). NULL: no memory. */
struct xm_tree *xm_tree_create(const struct xm_merge *merge, const struct xm_clocks *clocks);
/* A slice of the input's own process, in true time. */
void xm_tree_slice(struct xm_tree *tree, const struct xm_input *input, int64_t tid, int64_t start,
		   int64_t end);
/* Draws the arrows; returns their number. */
uint64_t xm_tree_draw(struct xm_tree *tree, struct xm_sink *sink, uint64_t first_id);
void xm_tree_free(struct xm_tree *tree);

#endif
