/*
 * A run as a graph: what had to wait for what (docs/PATH.md).
 *
 * A node is a moment of a track: a slice begins or ends there, or an arrow leaves. The nodes of a
 * track lie one behind the other in the order of time, so each but the first has the one before it
 * as its predecessor: that edge is the chain. Edges from elsewhere (a launch, a message) stand in a
 * table, sorted by the node that they lead to. Times are in ns.
 */
#ifndef XR_GRAPH_H
#define XR_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XR_NONE	   UINT32_MAX /* no node, no slice */
#define XR_OUTSIDE 0u	      /* the name of time in no slice */

/* What a slice is; the order is python/xstrace/path_graph.py's. */
enum xr_kind { XR_TASK, XR_CALL, XR_KERNEL, XR_COPY, XR_WORK, XR_KINDS };

/* What time was spent on; the order is python/xstrace/path_graph.py's. */
enum xr_category {
	XR_HOST,
	XR_WAITING,
	XR_LAUNCH,
	XR_QUEUE,
	XR_DEVICE,
	XR_WAKE,
	XR_MESSAGE,
	XR_COLLECTIVE,
	XR_START,
	XR_JOIN,
	XR_IDLE,
	XR_CATEGORIES
};

enum xr_arrow {
	XR_TO_DEVICE, /* a call → the begin of device work */
	XR_TO_HOST,   /* the end of device work → the call that waited */
	XR_ORDER,     /* the end of device work → the begin of other work */
	XR_SENT,      /* the begin of a call → the call that got the message */
	XR_TOGETHER,  /* the same, of a collective */
	XR_CHILD,     /* what a process was doing → the first slice of its child */
	XR_HANDED,    /* the end of a slice → the begin of one that needs its result */
	XR_ARROWS
};

#define XR_WAITS 1u /* flag of a name: time in such a call is waiting, whatever for */
#define XR_GIVES 1u /* roles in a collective */
#define XR_GETS	 2u

/* What is asked: arrays of the lengths in front of them, checked by xr_read(). */
struct xr_input {
	uint64_t slices, tracks, names, arrows, groups, members, rules, scenarios, halves;
	int64_t *begin, *end; /* of slices */
	uint32_t *track, *name;
	uint8_t *kind;
	uint32_t *process; /* of tracks */
	uint8_t *flags;	   /* of names */
	uint32_t *from, *to;
	int64_t *from_time;
	uint8_t *type;
	uint32_t *group, *member;
	uint8_t *role;
	double *factor;	    /* of rules */
	uint16_t *match;    /* [rules][names]: bits of the categories that the rule is about */
	uint64_t *scenario; /* bits of the rules that each has */
};

struct xr_edge {
	int64_t weight;
	uint32_t source, target;
	uint32_t slice; /* whose name it has */
	uint8_t category;
	bool is_kept; /* its target was when it was because of it */
};

struct xr_graph {
	const struct xr_input *input;
	uint32_t nodes, edges, tracks;
	uint32_t edge_room;
	int64_t begin, end; /* of the run */
	int64_t *time;	    /* of nodes */
	int64_t *chain;	 /* weight of the edge from the node before; -1: it is its track's first */
	uint32_t *slice; /* the innermost one between the node before and this one */
	uint8_t *category;	 /* of that edge */
	uint32_t *order;	 /* all nodes, each behind those before it */
	uint32_t *first;	 /* of tracks: the first node; tracks + 1 of them */
	uint32_t *starts, *ends; /* of slices */
	uint32_t *leaves;	 /* of arrows: the node that it leaves from */
	uint64_t *rules; /* of slices: those about the host time in it, or in one around it */
	struct xr_edge *edge;
	uint32_t *into; /* of nodes: the first edge that leads there; nodes + 1 of them */
	uint64_t late;	/* arrows that arrive before they leave */
	uint64_t loose; /* arrows without a slice, collectives of one member */
	uint64_t circular;
	uint64_t overlaps; /* slices that were cut at the end of the one around them */
};

/* How weights differ from those of the run. */
struct xr_change {
	uint64_t rules;	    /* of the input */
	uint32_t half_name; /* XR_NONE, or: this name's time in half_category takes half */
	uint8_t half_category;
};

/*
 * All of these return 0 or -errno: -ENOMEM, and xr_read() -EINVAL where the input is not what it
 * should be. What they make belongs to the graph (the input), and xr_graph_free() frees it.
 */
int xr_read(int fd, struct xr_input *ret_input);
void xr_input_free(struct xr_input *input);

int xr_make_nodes(struct xr_graph *graph);
int xr_add_arrows(struct xr_graph *graph);
int xr_add_groups(struct xr_graph *graph);
int xr_add_starts(struct xr_graph *graph);
int xr_sort_edges(struct xr_graph *graph);
int xr_weigh(struct xr_graph *graph);
int xr_put_in_order(struct xr_graph *graph);
void xr_graph_free(struct xr_graph *graph);

/* An edge to a node; a category and a slice say what it stands for. */
int xr_add_edge(struct xr_graph *graph, uint32_t source, uint32_t target, uint32_t slice,
		enum xr_category category);

/* The first node of the nodes from `low` to before `high`, of one track, that is at `time` or
 * later. */
uint32_t xr_node_at(const struct xr_graph *graph, uint32_t low, uint32_t high, int64_t time);

/* The place of what kept the node: an edge, or XR_NONE for the chain. */
uint32_t xr_kept_by(const struct xr_graph *graph, uint32_t node);

/* When each node would be; `times` has room for all. Returns the run's new end. */
int64_t xr_replay(const struct xr_graph *graph, const struct xr_change *change, int64_t *times);

/*
 * How much longer what has a name may take at one time before the run does, of device work and of
 * the host's own time: the least of all times, INT64_MAX where there is none. `latest` has room for
 * all nodes, `slack` for all names. Returns the least of all.
 */
int64_t xr_slack(const struct xr_graph *graph, int64_t *latest, int64_t *slack);

/* What is found, to stdout. */
int xr_answer(struct xr_graph *graph);

static inline bool xr_is_device(uint8_t kind)
{
	return kind >= XR_KERNEL;
}

#endif
