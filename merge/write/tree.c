#include "tree.h"

#include <stdlib.h>

#define AT_ONCE 4096u /* children that began in one slice */

struct child {
	const struct xm_input *parent, *input;
	struct xm_place to; /* absolute time */
	/* the parent's slice that began last before that; start XM_NO_TIME: none */
	int64_t tid, start, end;
};

struct xm_tree {
	struct child *children; /* by parent, then by time */
	uint32_t count;
	uint32_t *first, *last; /* of each input's children */
};

/* The process that the input is the trace of; NULL: it is not one process's. */
static const struct xm_process *own_process(const struct xm_input *input)
{
	for (uint32_t i = 0; i < input->pids.count; i++)
		if (input->processes[i].is_number && input->processes[i].pid == input->pid)
			return &input->processes[i];
	return NULL;
}

/*
 * A process that calls exec continues under its pid in another file: the parent is the image that
 * lived then.
 */
static const struct xm_input *parent_of(const struct xm_merge *merge, const struct xm_input *input)
{
	const struct xm_input *best = NULL;

	if (!input->run[0] || input->ppid <= 0)
		return NULL;
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *other = &merge->inputs[i];

		if (other != input && other->pid == input->ppid &&
		    !strcmp(other->run, input->run) && !strcmp(other->host, input->host) &&
		    other->first <= input->first && (!best || other->first > best->first))
			best = other;
	}
	return best;
}

static int by_parent(const void *left, const void *right)
{
	const struct child *a = left, *b = right;

	if (a->parent != b->parent)
		return a->parent->number < b->parent->number ? -1 : 1;
	if (a->to.time != b->to.time)
		return a->to.time < b->to.time ? -1 : 1;
	return a->input->number < b->input->number ? -1 : 1;
}

struct xm_tree *xm_tree_create(const struct xm_merge *merge, const struct xm_clocks *clocks)
{
	struct xm_tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->children = calloc(merge->count + 1, sizeof(*tree->children));
	tree->first = calloc(2 * (size_t)merge->count + 2, sizeof(*tree->first));
	if (!tree->children || !tree->first) {
		xm_tree_free(tree);
		return NULL;
	}
	tree->last = tree->first + merge->count;
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = merge->order[i], *parent = parent_of(merge, input);
		const struct xm_process *process = parent ? own_process(input) : NULL;

		if (!process || process->first_start == XM_NO_TIME ||
		    process->first_tid == XM_NO_TIME)
			continue;
		tree->children[tree->count++] =
			(struct child){ parent,
					input,
					{ process->out_pid, process->first_tid,
					  xm_true_time(xm_clocks_of(clocks, input),
						       process->first_start + input->shift) },
					0,
					XM_NO_TIME,
					XM_NO_TIME };
	}
	qsort(tree->children, tree->count, sizeof(*tree->children), by_parent);
	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t parent = tree->children[i].parent->number;

		if (!i || tree->children[i - 1].parent != tree->children[i].parent)
			tree->first[parent] = i;
		tree->last[parent] = i + 1;
	}
	return tree;
}

void xm_tree_slice(struct xm_tree *tree, const struct xm_input *input, int64_t tid, int64_t start,
		   int64_t end)
{
	uint32_t low = tree->first[input->number], last = tree->last[input->number], high = last;

	while (low < high) { /* the first child that was not there yet */
		uint32_t middle = low + (high - low) / 2;

		if (tree->children[middle].to.time < start)
			low = middle + 1;
		else
			high = middle;
	}
	/* the innermost slice that it lies in, else the one that was the last to begin before it */
	for (uint32_t i = low; i < last && i - low < AT_ONCE; i++) {
		struct child *child = &tree->children[i];
		bool lies_in = child->to.time <= end,
		     lay_in = child->start != XM_NO_TIME && child->to.time <= child->end;

		if (child->start == XM_NO_TIME || (lies_in && !lay_in) ||
		    (lies_in == lay_in && start > child->start)) {
			child->tid = tid;
			child->start = start;
			child->end = end;
		}
		if (!lies_in)
			break;
	}
}

uint64_t xm_tree_draw(struct xm_tree *tree, struct xm_sink *sink, uint64_t first_id)
{
	uint64_t drawn = 0;

	for (uint32_t i = 0; i < tree->count; i++) {
		struct child *child = &tree->children[i];
		const struct xm_process *parent = own_process(child->parent);
		struct xm_place from, to = child->to;

		/* what began before an earlier child began before this one, too */
		if (i && tree->children[i - 1].parent == child->parent &&
		    child->start == XM_NO_TIME) {
			child->tid = tree->children[i - 1].tid;
			child->start = tree->children[i - 1].start;
			child->end = tree->children[i - 1].end;
		}
		if (!parent || child->start == XM_NO_TIME)
			continue;
		from = (struct xm_place){ parent->out_pid, child->tid,
					  child->end < to.time ? child->end : to.time };
		/* inside (at its very end it is over), and before it arrives */
		if ((from.time == child->end || from.time == to.time) && from.time > child->start)
			from.time--;
		from.time -= sink->merge->base;
		to.time -= sink->merge->base;
		sink->arrow(sink, "process", "child", first_id + drawn++, &from, &to);
	}
	return drawn;
}

void xm_tree_free(struct xm_tree *tree)
{
	if (!tree)
		return;
	free(tree->children);
	free(tree->first);
	free(tree);
}
