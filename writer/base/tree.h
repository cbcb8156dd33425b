/*
 * What traced processes begin and end, in an order of which nothing is known: found in a logarithm
 * of their number, whatever keys come. (A treap: a search tree by key that is a heap by random
 * weights.) Nodes lie in what they stand for.
 */
#ifndef XS_TREE_H
#define XS_TREE_H

#include <stdint.h>

struct xs_tree_node {
	struct xs_tree_node *left, *right;
	uint32_t weight;
};

struct xs_tree {
	struct xs_tree_node *root;
	/*
	 * Below 0, 0, above 0: a comes before b, is the same one, comes behind it. No two nodes are
	 * the same.
	 */
	int (*compare)(const struct xs_tree_node *a, const struct xs_tree_node *b);
	uint64_t random;
	uint32_t count;
};

void xs_tree_add(struct xs_tree *tree, struct xs_tree_node *node);
/* The node must be there. */
void xs_tree_take(struct xs_tree *tree, struct xs_tree_node *node);
/* The last node that is not behind `key`, the first that is not before it; NULL: there is none. */
struct xs_tree_node *xs_tree_before(const struct xs_tree *tree, const struct xs_tree_node *key);
struct xs_tree_node *xs_tree_behind(const struct xs_tree *tree, const struct xs_tree_node *key);

#endif
