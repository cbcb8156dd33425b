/* Graphs, within the driver and for CUPTI, which tells their ids. */
#ifndef SOFTCUDA_GRAPH_H
#define SOFTCUDA_GRAPH_H

#include "driver.h"

enum { SC_BODIES_MAX = 8 };

/* cbids of CUPTI's resource callbacks */
enum {
	SC_GRAPH_CREATED = 9,
	SC_GRAPH_DESTROY = 10,
	SC_GRAPH_CLONED = 11,
	SC_NODE_CREATE = 12,
	SC_NODE_CREATED = 13,
	SC_NODE_DESTROY = 14,
	SC_DEPENDENCY_CREATED = 15,
	SC_EXEC_CREATE = 17,
	SC_EXEC_CREATED = 18,
	SC_EXEC_DESTROY = 19,
	SC_NODE_CLONED = 20
};

struct sc_condition {
	unsigned value, initial;
	bool assign;
};

struct sc_node {
	struct sc_node *next;
	uint64_t id;
	struct sc_graph *graph;
	CUgraphNodeType type;
	struct sc_cmd cmd;
	struct sc_graph *bodies[SC_BODIES_MAX]; /* of a child graph, or of a conditional node */
	unsigned body_count;
	CUgraphConditionalNodeType condition_type;
	struct sc_condition *condition;
	struct sc_node *clone; /* the newest */
	uint64_t source_id;
	bool placed; /* while nodes are put in order */
};

struct sc_edge {
	struct sc_edge *next;
	struct sc_node *from, *to;
};

struct sc_graph {
	uint32_t id, node_ids, source_id;
	unsigned breaks; /* sc_captures_broken, when it began to be captured */
	struct sc_node *first, *last;
	struct sc_edge *edges;
	struct sc_condition *conditions[SC_BODIES_MAX];
	unsigned condition_count;
};

struct sc_exec {
	uint32_t id;
	struct sc_graph *graph;
	uint64_t flags;
};

struct sc_graph *sc_graph_make(void);
struct sc_graph *sc_graph_clone(struct sc_graph *original);
struct sc_node *sc_node_add(struct sc_graph *graph, CUgraphNodeType type, const CUgraphNode *after,
			    size_t count);
CUresult sc_node_kernel(struct sc_node *node, const CUDA_KERNEL_NODE_PARAMS_v3 *params);

#endif
