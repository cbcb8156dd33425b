/*
 * Executions of lists: what level_zero_execute.c, level_zero_body.c, level_zero_submission.c
 * and level_zero_append.c know of each other.
 */
#ifndef XS_LEVEL_ZERO_EXECUTE_H
#define XS_LEVEL_ZERO_EXECUTE_H

#include "device_record.h"
#include "level_zero.h"

struct xs_ze_fence {
	struct xs_ze_fence *next;
	ze_fence_handle_t handle;
};

/* One call that executes lists. */
struct xs_ze_submission {
	struct xs_ze_submission *next; /* in its queue, if it has a fence of the application */
	struct xs_ze_queue *queue;
	struct xs_ze_fence *fence; /* ours; NULL: the application has one */
	struct xs_ze_node *node;   /* in an immediate list: its event tells, and no fence */
	ze_fence_handle_t theirs;
	uint32_t users;
	bool done, failed; /* failed: its times cannot be read */
};

/* One list in it. */
struct xs_ze_execution {
	struct xs_ze_execution *next;
	struct xs_ze_queue *queue;
	struct xs_ze_body *body;
	struct xs_ze_submission *submission; /* when it is complete, the times can be read */
	struct xs_ze_slot *slot;	     /* from there; NULL: from the events */
	struct xs_ze_submit submit;
	struct xs_ze_query *query; /* of a graph: around all of it; NULL: none */
	uint64_t serial;
	bool busy; /* they are being read */
};

/*
 * Where the times of a body's commands are copied away to, and by which list of ours (NULL: of a
 * graph, it is appended each time).
 */
struct xs_ze_slot {
	struct xs_ze_slot *next;
	ze_command_list_handle_t list;
	/*
	 * of all commands: from their events; with `resets` two more each: from where they were
	 * saved before a reset, from the host before one
	 */
	ze_kernel_timestamp_result_t *times;
	bool resets;
	uint32_t changes; /* as its body's when it was made */
};
#define XS_ZE_LOST UINT64_MAX /* the serial of an execution whose times could not be kept */

struct xs_ze_body {
	struct xs_ze_context *context;
	struct xs_ze_device_info *device;
	uint32_t ordinal, count, users;
	uint32_t untimed; /* further commands, whose times cannot be read */
	uint32_t changes; /* of the events of its commands, ever */
	bool graph;
	uint32_t number, name; /* of the graph, from 1; interned, as its measurements have it */
	bool measured;	       /* commands of it have queries */
	struct xs_ze_query *unused;  /* among its commands, and of none of them */
	bool impatient;		     /* waiting for its execution was in vain */
	uint64_t capture;	     /* while it is captured: the number of the capture */
	struct xs_ze_list *captured; /* the lists that are captured into it, each a user */
	struct xs_ze_body *next_capture;
	struct xs_ze_node *first, *last;
	struct xs_ze_execution *live; /* whose times the events hold */
	/*
	 * by which it was executed last, and in the queue of that number; tick 0: never, or unseen
	 */
	struct xs_ze_submit submit;
	uint32_t submit_queue;
	_Atomic uint32_t executions; /* ever; wraps */
	struct xs_ze_slot *idle;
	/* events are reset between its executions: nodes may have early or saved times */
	bool resets;
	/* some of its events belong to others as well: who is executed last has them */
	bool shares;
};

/* For all of these. Held for a few loads and stores, and never while the driver is called. */
extern _Atomic uint32_t xs_ze_execute_lock;

/* With one user; NULL: no memory. */
struct xs_ze_submission *xs_ze_submission_new(struct xs_ze_queue *queue);
void xs_ze_submission_drop(struct xs_ze_submission *submission);
/* Is it complete? Asked of the driver, without waiting. */
bool xs_ze_submission_done(struct xs_ze_submission *submission);
/* A fence of ours that is not signalled; NULL: there is none. */
struct xs_ze_fence *xs_ze_fence_get(struct xs_ze_queue *queue);
/* Those that are not in use. */
void xs_ze_fences_destroy(struct xs_ze_queue *queue);

/* What one call of the application executes, as it goes to the driver. */
#define XS_ZE_LISTS 512u /* of the application */
#define XS_ZE_FEW   16u
struct xs_ze_batch {
	struct xs_ze_queue *queue;
	struct xs_ze_submission *submission; /* NULL: pass it as it is */
	struct xs_ze_execution *first, *last;
	uint64_t tick;
	uint64_t untimed; /* commands in them whose times cannot be read */
	struct xs_own_time time;
	uint32_t count;
	ze_command_list_handle_t *list; /* theirs, and between them ours */
	ze_command_list_handle_t few[2 * XS_ZE_FEW];
};

/* Of at most so many lists; queue NULL: not ours. */
void xs_ze_batch_begin(struct xs_ze_batch *batch, struct xs_ze_queue *queue, uint32_t lists);
void xs_ze_batch_list(struct xs_ze_batch *batch, ze_command_list_handle_t list);
/*
 * One more execution of a body. Returns what has its last one's times copied away before; NULL:
 * nothing.
 */
struct xs_ze_slot *xs_ze_batch_body(struct xs_ze_batch *batch, struct xs_ze_body *body);
/* Directly around the driver's call, if there is a submission; and: it has taken it, or not. */
void xs_ze_batch_ready(const struct xs_ze_batch *batch);
void xs_ze_batch_called(struct xs_ze_batch *batch);
void xs_ze_batch_end(struct xs_ze_batch *batch, ze_result_t result);
/* An unused one; NULL: there is no memory for it. */
struct xs_ze_slot *xs_ze_slot_get(struct xs_ze_body *body);
/* Appends what copies the times of the body's events into the slot. */
bool xs_ze_append_copies(ze_command_list_handle_t list, const struct xs_ze_body *body,
			 const struct xs_ze_slot *slot);

/*
 * --metric-query (level_zero_graph.c): one of the graph's kernels ran, the first one makes the
 * record; and, all are known: what was counted around the graph is told of the record.
 */
void xs_ze_graph_ran(struct xs_device_record *graph, const struct xs_ze_node *node,
		     const ze_kernel_timestamp_result_t *times, uint32_t id);
void xs_ze_graph_told(const struct xs_ze_execution *execution, struct xs_device_record *graph);

#endif
