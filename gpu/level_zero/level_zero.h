/*
 * What the files of gpu/level_zero/ know of each other.
 *
 * A command is a node: it owns an event of ours, which tells when the command ran unless the
 * application gave one of its own. The nodes of an immediate list wait in its queue until they are
 * found complete. Those of a regular list are its body, which every execution refers to. Nothing
 * here waits for the device. No lock is held while the driver is called, since the thread may end
 * there, or a handler of the program may leave the driver by a jump. What the thread was working on
 * then is counted and never used again.
 */
#ifndef XS_LEVEL_ZERO_H
#define XS_LEVEL_ZERO_H

#include "device_record.h"
#include "handles.h"
#include "level_zero_wrap.h"
#include "lock.h"
#include "spare.h"
#include "sys.h"
#include "waited.h"

/* ---- level_zero_target.c ---- */

/* Sets what the wrappers look at. */
void xs_ze_want(const struct xs_options *options);
/* 1 in a page that the kernel wipes in a forked child; NULL: no context yet. */
extern const _Atomic uint32_t *xs_ze_alive_word;
/* Is this the process that called zeInit, and not a child that it forked? */
static inline bool xs_ze_alive(void)
{
	return xs_ze_alive_word && atomic_load_explicit(xs_ze_alive_word, memory_order_relaxed);
}

/* ---- level_zero_device.c ---- */

#define XS_ZE_TILES 8u

struct xs_ze_device_info {
	ze_device_handle_t handle;
	ze_device_handle_t tile_handle[XS_ZE_TILES];
	uint32_t tiles; /* sub-devices of a whole device */
	/* index: of the whole device in the process; tile: from 1, 0: the whole device */
	uint8_t index, tile;
	uint32_t name;	    /* interned */
	uint8_t type;	    /* enum xs_device_type */
	uint64_t copy_only; /* groups of engines, a bit each */
	bool unwanted;	    /* by --devices-to-sample */
};

struct xs_ze_meter;
struct xs_ze_query;

struct xs_ze_context {
	ze_context_handle_t handle;
	struct xs_ze_device_info *devices[64];
	struct xs_ze_meter *meters[64]; /* of these; NULL: their kernels are not measured */
	uint32_t device_count;
	_Atomic uint64_t free_nodes; /* index + 1, and a tag above it against ABA */
	_Atomic uint32_t lock;
	struct xs_ze_pool *pools; /* of our events */
	struct xs_ze_context *next;
	_Atomic bool dead;
};

struct xs_ze_context *xs_ze_context_of(ze_context_handle_t context);
struct xs_ze_device_info *xs_ze_device_of(struct xs_ze_context *context, ze_device_handle_t device);
struct xs_ze_meter *xs_ze_meter_of(const struct xs_ze_context *context,
				   const struct xs_ze_device_info *device);
/* Notes where device and host clock are, if that was long ago; cheap if not. */
void xs_ze_clock(const struct xs_ze_device_info *device);

/* ---- level_zero_node.c ---- */

enum { XS_ZE_FREE, XS_ZE_PENDING, XS_ZE_BUSY, XS_ZE_DONE };

struct xs_ze_node {
	/*
	 * of those that an event is linked with: how often it was used, one of the above, and while
	 * its times are read, by whom
	 */
	_Atomic uint64_t state;
	/* the state in which it was found complete: its record may be there; of who reads it */
	_Atomic uint64_t told;
	_Atomic(struct xs_ze_node *) next; /* in its queue's circle, or its body */
	_Atomic uint32_t next_free;
	uint32_t index;
	struct xs_ze_context *context;
	/* event: the one that tells, our own or the application's */
	ze_event_handle_t own, event;
	struct xs_ze_queue *queue; /* of an immediate list, else NULL */
	struct xs_ze_body *body;   /* of a regular list, else NULL */
	/* where the device copies the times before it resets the event; NULL: nowhere */
	ze_kernel_timestamp_result_t *saved;
	ze_kernel_timestamp_result_t *memory; /* of the driver, for that; kept */
	/* the reset is in the same list, behind the command */
	bool saved_always;
	/* of a body: the execution whose times are in early_times */
	_Atomic uint64_t early;
	ze_kernel_timestamp_result_t early_times;
	/* of an immediate list: early_times are what the event told before the command was there */
	bool stale;
	/* unknown whether the device will still signal it */
	bool lost;
	uint32_t shape;			/* of the record, interned; 0: not */
	uint64_t command;		/* its number in a mutable list; 0: it has none */
	struct xs_ze_query *query;	/* what is counted while it runs; NULL: nothing */
	struct xs_device_record record; /* all but id, submit, start, end */
};

/* As many uses as a link tells apart; above them who reads, 0: a thread that is gone. */
#define XS_ZE_STATE_READER 34
#define XS_ZE_STATE_USES   ((1ull << XS_ZE_STATE_READER) - 4)
static inline uint64_t xs_ze_state(uint64_t before, uint32_t now)
{
	return (before & XS_ZE_STATE_USES) | now;
}
/* What still refers to the last use finds another count. */
static inline uint64_t xs_ze_state_of_next_use(uint64_t before, uint32_t now)
{
	return xs_ze_state(before + 4, now);
}

/*
 * Kernels that were appended while nothing was recorded may be executed: records their properties
 * now.
 */
void xs_ze_kernels_tell(void);
/* From here on the node runs this kernel (level_zero_kernel.c). */
void xs_ze_node_kernel(struct xs_ze_node *node, ze_kernel_handle_t kernel);
/*
 * The same of the kernel that is being appended, in so many groups (NULL: only the device knows).
 * False: the kernel is not to be shown.
 */
bool xs_ze_node_launch(struct xs_ze_node *node, ze_kernel_handle_t kernel,
		       const ze_group_count_t *groups);
/* NULL: none left. */
struct xs_ze_node *xs_ze_node_get(struct xs_ze_context *context);
/*
 * Gives a node back. One that is lost is never used again, for the device may still signal its
 * event.
 */
void xs_ze_node_put(struct xs_ze_node *node);
struct xs_ze_node *xs_ze_node_at(uint32_t index);
/* The word by which an event finds its node, as long as it is the same use of it. */
uint64_t xs_ze_node_link(const struct xs_ze_node *node);
struct xs_ze_node *xs_ze_node_linked(uint64_t link);
/*
 * Records an immediate list's command that an event of the application tells of, if it is complete.
 * True: it is done with.
 */
bool xs_ze_node_finish(struct xs_ze_node *node);
/*
 * Who was finishing the node does not come back: gives the node up. False: nobody is, or it can be
 * asked again.
 */
bool xs_ze_node_abandon(struct xs_ze_node *node);
/* The thread reads and looks at nothing more. */
void xs_ze_thread_ends(void);
/* Its times cannot be read any more, unless they were saved. */
void xs_ze_node_lost(struct xs_ze_node *node);
/* The record tells of work in this queue from here on. */
void xs_ze_record_queue(struct xs_device_record *record, const struct xs_ze_queue *queue);
/* The call that submitted what was appended before. */
struct xs_ze_submit {
	uint64_t tick; /* of the host */
	uint32_t tid;
};
/* What is still there of an execution. */
#define XS_ZE_EVENT_HOLDS 1u /* its event has these times, and those of tiles */
#define XS_ZE_QUERY_HOLDS 2u /* its query has what was counted, or will have */
/* One record of an execution. submit NULL: it was submitted when it was appended. */
void xs_ze_node_record(const struct xs_ze_node *node, const ze_kernel_timestamp_result_t *times,
		       uint32_t holds, const struct xs_ze_submit *submit,
		       const struct xs_ze_queue *queue, uint32_t id);
/*
 * The same of each of a body's nodes, whose times lie in `saved`, one after the other, or in their
 * events (NULL).
 */
void xs_ze_nodes_record(const struct xs_ze_node *first, const ze_kernel_timestamp_result_t *saved,
			const struct xs_ze_submit *submit, const struct xs_ze_queue *queue);
/* Where the device was to write times there was UINT64_MAX before. */
static inline bool xs_ze_is_set(const ze_kernel_timestamp_result_t *times)
{
	return times->global.kernelStart != UINT64_MAX;
}
/* In the place of times that nobody can read any more. */
#define XS_ZE_GONE (UINT64_MAX - 1)
static inline bool xs_ze_is_gone(const ze_kernel_timestamp_result_t *times)
{
	return times->global.kernelStart == XS_ZE_GONE;
}
/* The shape of what a record tells; 0: too many are interned already. */
uint32_t xs_ze_shape(const struct xs_device_record *record);
/* The first of `count` numbers of commands. */
uint32_t xs_ze_next_ids(uint32_t count);
void xs_ze_context_pools_destroy(struct xs_ze_context *context);

/* ---- level_zero_event.c: the application's events ---- */

#define XS_ZE_EVENT_KNOWN  (1ull << 63)
#define XS_ZE_EVENT_TIMED  (1ull << 62) /* it will tell when its command ran */
#define XS_ZE_EVENT_ASKED  (1ull << 61) /* as the application wanted it to */
#define XS_ZE_EVENT_COUNTS (1ull << 60) /* counter-based */
#define XS_ZE_EVENT_RESETS (1ull << 59) /* lists reset it, on the device */
#define XS_ZE_EVENT_UNSEEN (1ull << 58) /* the host was not to see it */
#define XS_ZE_EVENT_HOST   (1ull << 56) /* the host has signalled it, once at least */
/* in place of the link: the queue and id of the command that it told of */
#define XS_ZE_EVENT_TOLD       (1ull << 57)
#define XS_ZE_EVENT_LINK       ((1ull << 56) - 1)
#define XS_ZE_TOLD_QUEUE_SHIFT 32

/* The loader has given its table of pools. */
void xs_ze_pools_begin(void);
/* The word of an event: flags, and the node that it tells of; NULL: not known. */
_Atomic uint64_t *xs_ze_event_word(ze_event_handle_t event);
static inline uint64_t xs_ze_event_link(uint64_t word)
{
	return word & XS_ZE_EVENT_TOLD ? 0 : word & XS_ZE_EVENT_LINK;
}
/* That event of the application tells of the node from here on. */
void xs_ze_node_link_event(struct xs_ze_node *node, ze_event_handle_t event);
/* It is reset: what it told of is past. */
void xs_ze_event_forgets(_Atomic uint64_t *word);
/* It tells of the node no more, which has its record, of that id; and: which has none. */
void xs_ze_event_told(ze_event_handle_t event, const struct xs_ze_node *node, uint32_t id);
void xs_ze_event_unlink(ze_event_handle_t event, const struct xs_ze_node *node);

/* ---- level_zero_list.c ---- */

/*
 * Commands that become one record. Not in the ring, since the driver is called between two of them;
 * and those of a queue not on the stack, which may be small, and which a jump leaves.
 */
#define XS_ZE_FINISHED 24u
struct xs_ze_finished {
	uint32_t count;
	struct xs_command command[XS_ZE_FINISHED];
};

/*
 * level_zero_record.c: one more, which has a record of its own if it does not fit in; and those
 * that are there. submit: as in xs_ze_node_record().
 */
void xs_ze_finished_add(struct xs_ze_finished *batch, const struct xs_ze_node *node,
			const ze_kernel_timestamp_result_t *times,
			const struct xs_ze_submit *submit, const struct xs_ze_queue *queue);
void xs_ze_finished_write(struct xs_ze_finished *batch, const struct xs_device_record *newest,
			  const struct xs_ze_submit *submit);

struct xs_ze_queue {
	struct xs_ze_queue *next;	  /* of all queues */
	ze_command_queue_handle_t handle; /* NULL: of an immediate list */
	uint64_t shown_handle;
	struct xs_ze_context *context;
	struct xs_ze_device_info *device;
	struct xs_ze_meter *meter; /* of its device */
	uint32_t serial, ordinal, index;
	uint8_t flags; /* of its records */
	/* an immediate list's commands are complete when the call that appends them returns */
	bool synchronous;
	_Atomic bool ended;
	_Atomic uint64_t collecting; /* claimed by who looks at what is complete */
	_Atomic bool left;	     /* who did so has ended, or gone on elsewhere, in the middle */
	/* whose times another thread was reading when it was looked at last */
	const struct xs_ze_node *stuck;
	uint64_t stuck_state;
	uint32_t stuck_since;
	/*
	 * Commands of an immediate list: nodes in a circle, which grows to as many as are in
	 * flight. From `done`, which has been dealt with, to `newest`: those appended and not yet
	 * known to be complete. One thread appends at a time, as the API demands, and one collects.
	 */
	_Atomic(struct xs_ze_node *) done, newest;
	_Atomic bool raced; /* two threads have appended at once: it may be no circle any more */
	uint32_t size;	    /* nodes in it; fewer are counted if it is not */
	uint32_t appended;
	struct xs_ze_finished batch; /* of these, on their way into the ring */
	/* executions of regular lists */
	struct xs_ze_execution *first, *last;
	struct xs_ze_submission *submissions; /* with fences of the application */
	struct xs_ze_fence *fences;	      /* of ours, unused */
};

struct xs_ze_list {
	struct xs_ze_context *context;
	struct xs_ze_device_info *device;
	struct xs_ze_meter *meter; /* of its device */
	struct xs_ze_queue *queue; /* of an immediate list, else NULL */
	/* of a regular list, and of an immediate one while it is captured: where its commands go */
	struct xs_ze_body *body;
	_Atomic uint32_t appender;   /* the thread that appends just now; 0: none */
	uint64_t refused;	     /* whom it kept from doing so, and since when */
	const void *graph;	     /* that it is captured into */
	struct xs_ze_list *captured; /* the next one that is captured into the same */
	bool captured_now;	     /* by the call that goes on */
	uint64_t next_command;	     /* mutable lists: the next command's number; 0: it has none */
	struct xs_ze_query *begun;   /* before that; NULL: nothing */
	uint32_t ordinal;
	bool in_order;
	bool untimed;  /* there was no memory */
	uint8_t flags; /* of records of its commands */
};

extern struct xs_handles xs_ze_lists; /* struct xs_ze_list * */
static inline struct xs_ze_list *xs_ze_list_of(ze_command_list_handle_t list)
{
	return xs_handle_get(&xs_ze_lists, list);
}

/*
 * The commands that are complete, as far as they lie in a row; and: those behind the first that is
 * not, too, for the last time.
 */
void xs_ze_collect(struct xs_ze_queue *queue);
void xs_ze_collect_others(struct xs_ze_queue *queue);
/* Whose commands a thread looks at, and XS_FRAME_MARK() of where it does so. */
struct xs_ze_look {
	struct xs_ze_queue *queue;
	uintptr_t mark;
};
/*
 * The same of who looks for himself: one thread at a time. False: another one does, or this one,
 * which a handler has interrupted there. outer: what the thread was looking at before, for the end.
 */
bool xs_ze_collect_begin_in(uintptr_t mark, struct xs_ze_queue *queue,
			    struct xs_ze_look *ret_outer);
void xs_ze_collect_end(struct xs_ze_queue *queue, const struct xs_ze_look *outer);
XS_INLINE bool xs_ze_collect_begin(struct xs_ze_queue *queue, struct xs_ze_look *ret_outer)
{
	return xs_ze_collect_begin_in(XS_FRAME_MARK(), queue, ret_outer);
}
/* One more node for a queue; NULL: none left. */
struct xs_ze_node *xs_ze_grow(struct xs_ze_queue *queue);
/* An append was left by a jump, or its thread ended there: what it took is never used again. */
void xs_ze_append_left(struct xs_ze_list *list) __attribute__((cold));
/* Commands that two threads have appended at once are dealt with; what follows is in order. */
void xs_ze_queue_mend(struct xs_ze_queue *queue) __attribute__((cold));
/* More of its nodes are in no row. */
static inline uint32_t xs_ze_queue_most(const struct xs_ze_queue *queue)
{
	return queue->size + 64;
}

/*
 * A node for the list's next command, which is in the queue when it is pushed and not before; NULL:
 * none left.
 */
static inline struct xs_ze_node *xs_ze_claim(struct xs_ze_queue *queue)
{
	struct xs_ze_node *newest, *node;

	if (__builtin_expect(atomic_load_explicit(&queue->raced, memory_order_relaxed), 0))
		xs_ze_queue_mend(queue);
	newest = atomic_load_explicit(&queue->newest, memory_order_relaxed);
	node = newest ? atomic_load_explicit(&newest->next, memory_order_relaxed) : NULL;
	/* pairs with the release in xs_ze_collect() */
	if (__builtin_expect(node && node != atomic_load_explicit(&queue->done,
								  memory_order_acquire),
			     1))
		return node;
	return xs_ze_grow(queue);
}

static inline void xs_ze_push(struct xs_ze_queue *queue, struct xs_ze_node *node)
{
	/* pairs with the acquire in xs_ze_collect() */
	atomic_store_explicit(&queue->newest, node, memory_order_release);
	/* recycles events even if the application never waits */
	if (__builtin_expect(++queue->appended % 64 == 0 || queue->synchronous, 0)) {
		xs_ze_collect(queue);
		xs_ze_clock(queue->device);
	}
}

void xs_ze_collect_all(void);
/* Of all queues of a context, before it is destroyed. */
void xs_ze_collect_context(struct xs_ze_context *context);

struct xs_ze_queue *xs_ze_queue_of(ze_command_queue_handle_t queue);

/* ---- level_zero_execute.c: regular lists ---- */

/* What a list holds between two resets. The list and each execution refer to it. */
struct xs_ze_body *xs_ze_body_new(struct xs_ze_list *list);
void xs_ze_body_drop(struct xs_ze_body *body);
void xs_ze_body_add(struct xs_ze_body *body, struct xs_ze_node *node);
/* Two threads have appended at once: its nodes are to be counted again. */
void xs_ze_body_raced(struct xs_ze_body *body);
/* One of its commands will never have times. */
void xs_ze_body_untimed(struct xs_ze_body *body);
void xs_ze_body_hold(struct xs_ze_body *body);
/* What the list has begun counts for no command; its body gives it back (handle NULL: it ends). */
void xs_ze_body_unused(struct xs_ze_list *list, ze_command_list_handle_t handle);
/* The application destroys the event. */
void xs_ze_capture_forgets(ze_event_handle_t event);
/* An immediate list that is captured, into a graph of this body, is no more. */
void xs_ze_capture_abandons(struct xs_ze_list *list);
/* The node of a mutable list's command; NULL: it has none. */
struct xs_ze_node *xs_ze_body_command(struct xs_ze_body *body, uint64_t command);
/* Records what is complete before the list is changed. */
void xs_ze_body_changes(struct xs_ze_body *body);
/* The times of some of its commands are saved before a reset. */
void xs_ze_body_saves(struct xs_ze_body *body);
/* By which call it was executed last, and in the queue of which number. False: it was not. */
bool xs_ze_body_submit(struct xs_ze_body *body, struct xs_ze_submit *ret_submit,
		       uint32_t *ret_queue);
/*
 * The application resets or destroys the event of a body's node: its times are kept, if there are
 * any.
 */
void xs_ze_body_event_ends(struct xs_ze_node *node, bool destroyed);
/*
 * Another command is going to signal the node's event, without a reset: what the node's last
 * execution has not told by now is lost.
 */
void xs_ze_body_gives_way(struct xs_ze_node *node);
/* Events of its commands are signalled by what is executed elsewhere, too. */
void xs_ze_body_shares(struct xs_ze_body *body);
/* Records what is complete of a queue's executions. */
void xs_ze_collect_executions(struct xs_ze_queue *queue);
/*
 * The same, where it is done for the last time. The application may know by an event that the
 * device has finished, and the fence behind it comes some microseconds later: so much time it gets.
 */
void xs_ze_collect_executions_last(struct xs_ze_queue *queue);
/*
 * The deadline of a wait for a device that is about to finish (CLOCK_MONOTONIC). And: waits a
 * moment; false: past the deadline, or in vain. *rounds: 0 at first.
 */
uint64_t xs_ze_last_chance(void);
bool xs_ze_wait_on(uint64_t deadline, uint32_t *rounds);
/* A fence of the application goes with what this call has submitted. */
void xs_ze_fence_submitted(ze_fence_handle_t fence, uint64_t tick);
/* The queue is no more. */
void xs_ze_abandon_executions(struct xs_ze_queue *queue);

#endif
