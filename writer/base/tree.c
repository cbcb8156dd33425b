#include "tree.h"

#include <stddef.h>

#include "hash.h"

/* What is before `key` and what is not, of the subtree `from`, become two. */
static void split(const struct xs_tree *tree, struct xs_tree_node *from,
		  const struct xs_tree_node *key, struct xs_tree_node **ret_before,
		  struct xs_tree_node **ret_behind)
{
	while (from) {
		if (tree->compare(from, key) < 0) {
			*ret_before = from;
			ret_before = &from->right;
			from = from->right;
		} else {
			*ret_behind = from;
			ret_behind = &from->left;
			from = from->left;
		}
	}
	*ret_before = *ret_behind = NULL;
}

void xs_tree_add(struct xs_tree *tree, struct xs_tree_node *node)
{
	struct xs_tree_node **link = &tree->root;

	/*
	 * nobody outside knows the secret, so nobody can choose an order that makes the tree deep
	 */
	tree->random = (tree->random + 0x9e3779b97f4a7c15ull) * xs_hash_secret();
	node->weight = (uint32_t)(tree->random >> 32);
	while (*link && (*link)->weight > node->weight)
		link = tree->compare(node, *link) < 0 ? &(*link)->left : &(*link)->right;
	split(tree, *link, node, &node->left, &node->right);
	*link = node;
	tree->count++;
}

void xs_tree_take(struct xs_tree *tree, struct xs_tree_node *node)
{
	struct xs_tree_node **link = &tree->root, *left = node->left, *right = node->right;

	while (*link != node)
		link = tree->compare(node, *link) < 0 ? &(*link)->left : &(*link)->right;
	while (left && right) {
		if (left->weight > right->weight) {
			*link = left;
			link = &left->right;
			left = left->right;
		} else {
			*link = right;
			link = &right->left;
			right = right->left;
		}
	}
	*link = left ? left : right;
	tree->count--;
}

struct xs_tree_node *xs_tree_before(const struct xs_tree *tree, const struct xs_tree_node *key)
{
	struct xs_tree_node *found = NULL;

	for (struct xs_tree_node *at = tree->root; at;) {
		if (tree->compare(at, key) <= 0) {
			found = at;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return found;
}

struct xs_tree_node *xs_tree_behind(const struct xs_tree *tree, const struct xs_tree_node *key)
{
	struct xs_tree_node *found = NULL;

	for (struct xs_tree_node *at = tree->root; at;) {
		if (tree->compare(at, key) >= 0) {
			found = at;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return found;
}
