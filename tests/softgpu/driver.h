/* What the files of the software Level Zero driver share; README.md tells what the driver does. */
#ifndef SG_DRIVER_H
#define SG_DRIVER_H

#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>
#include <level_zero/zet_api.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "newer.h"
#include "softgpu.h"

#define SG_OK ZE_RESULT_SUCCESS

enum { SG_DEVICES_MAX = 8, SG_TILES_MAX = 8, SG_WORKERS_MAX = 16, SG_ENGINE_GROUPS = 3 };

/* config.c: the settings, read once */
struct sg_config {
	uint32_t devices, tiles, workers, bits;
	uint64_t frequency, memory, kernel_mask; /* Hz, bytes of one device, the valid bits */
	/* of streamers: ticks for which reports wait; each which is lost; reports that fit; the
	 * valid bits of their times */
	uint64_t late, drop, room;
	uint32_t metric_bits, open_us;
	bool sync, virtual_clock, durations, bears, cancels, strict;
};
extern struct sg_config sg_config;
void sg_start(void); /* the first call of any function that comes before the others */

/*
 * clock.c: device time. Ticks are whole numbers of 64 bits inside, cut to the valid bits where they
 * leave.
 */
uint64_t sg_now_ns(void); /* CLOCK_MONOTONIC_RAW, as zeDeviceGetGlobalTimestamps tells */
uint64_t sg_ticks_at(uint64_t ns);
uint64_t sg_ticks_of(uint64_t duration_ns);
uint64_t sg_ns_of(uint64_t ticks);
void sg_wait_for_tick(uint64_t tick);
void sg_clock_start(int64_t ppm, const char *first_tick);
static inline uint64_t sg_kernel_ticks(uint64_t ticks) /* as wide as kernel timestamps are */
{
	return ticks & sg_config.kernel_mask;
}
/* what the host has waited for, and so where what it submits next starts at the earliest */
uint64_t sg_virtual_now(void);
void sg_virtual_seen(uint64_t tick);
uint64_t sg_device_ticks(void); /* now, by the clock in use */

/* device.c */
struct sg_device {
	int id, tile; /* tile -1: the whole device */
	uint32_t tiles;
	struct sg_device *root, *tile_devices[SG_TILES_MAX];
	_Atomic uint64_t used; /* of the root: bytes allocated */
	/* of the root: ticks in kernels, how many, of how many groups; for metrics and sysman */
	_Atomic uint64_t busy, launches, groups;
};
void sg_devices_make(void);
struct sg_device *sg_device_number(uint32_t number); /* NULL past the last */
bool sg_group_computes(uint32_t ordinal);
uint32_t sg_group_queues(uint32_t ordinal); /* 0: no such group */

/*
 * event.c: an event is a handle of this process; what the device writes of it lies in its pool,
 * which processes may share
 */
struct sg_slot {
	_Atomic uint32_t state;		   /* 1: signalled; of a counter-based one: how often */
	_Atomic uint32_t tiles;		   /* of the device that signalled */
	_Atomic uint64_t start, end, base; /* ticks; base: where the context's clock began */
};
struct sg_pool;
struct sg_event {
	struct sg_pool *pool;
	struct sg_slot *slot;
	_Atomic uint32_t users;	 /* commands on their way that name it */
	_Atomic uint32_t wanted; /* of a counter-based one: signals asked for so far */
	bool counts, timed, shared;
	/* the graph that signals it, and the immediate list it was captured from; NULL: none */
	struct sg_list *captured, *captured_from;
};
struct sg_span {
	uint64_t start, end;	   /* ticks */
	uint64_t start_ns, end_ns; /* the host's clock around it */
};
bool sg_event_ready(const struct sg_event *event);
bool sg_event_reached(const struct sg_event *event, uint32_t wanted); /* of a counter-based one */
void sg_event_signal(struct sg_event *event, const struct sg_span *span, uint32_t tiles,
		     uint64_t base);
void sg_event_clear(struct sg_event *event);
void sg_event_result(const struct sg_event *event, int tile, ze_kernel_timestamp_result_t *result);
/* until ready(what); what is shared with another process is polled */
ze_result_t sg_wait(bool (*ready)(const void *), const void *what, uint64_t timeout_ns,
		    bool shared);
void sg_event_asked(struct sg_event *event); /* one more signal of it is on its way */

/* list.c, append.c, image.c: commands and what they are collected in */
enum sg_op {
	SG_KERNEL,
	SG_COPY,
	SG_FILL,
	SG_REGION,
	SG_BARRIER,
	SG_SIGNAL,
	SG_WAIT,
	SG_RESET,
	SG_TIMESTAMP,
	SG_QUERY_TIMESTAMPS,
	SG_CALL,
	SG_FENCE,
	SG_LIST_END,
};
struct sg_region {
	uint32_t width, height, depth; /* bytes, rows, slices */
	size_t dst_pitch, dst_slice, src_pitch, src_slice;
};
struct sg_cmd {
	enum sg_op op;
	/* starts after everything before it; everything after it starts after it */
	bool after_all, before_all;
	uint32_t nwait;
	struct sg_event *signal, **wait;
	const char *name; /* the kernel's, or the function's that appended it */
	uint64_t bytes;
	void *dst;
	const void *src;
	union {
		struct {
			const struct softgpu_kernel *kernel;
			const ze_group_count_t *indirect;
			uint32_t groups[3], size[3];
			unsigned char *args;
			size_t local;
		};
		size_t pattern_size; /* SG_FILL, of src */
		struct sg_region region;
		struct sg_event *event; /* SG_RESET */
		struct {
			uint32_t count; /* SG_QUERY_TIMESTAMPS */
			struct sg_event **events;
			const size_t *offsets;
		};
		struct {
			/* SG_CALL */
			void (*call)(struct sg_cmd *cmd, struct sg_device *device,
				     const struct sg_span *span);
			void *data;
		};
	};
};
struct sg_arena;
struct sg_list {
	struct sg_device *device;
	struct sg_queue *queue; /* of an immediate list */
	struct sg_arena *arena, *arena_first;
	struct sg_cmd **cmds;
	uint32_t count, capacity, ordinal, flags;
	uint64_t executions;
	_Atomic uint32_t users; /* commands on their way that are its own */
	bool closed, in_order;
	/* of an immediate list: where what is appended goes instead, while a graph is made of it */
	struct sg_list *capture;
	/* of such a graph: the further lists that are captured into it; of these: the next */
	struct sg_list *forks;
	struct sg_event *last; /* of such a further list: what its last command signals */
	bool joined;	       /* another one waits for that */
	ze_context_handle_t context;
};
struct sg_wanted { /* by the caller of an append: what nearly all of them take */
	struct sg_event *signal;
	uint32_t nwait;
	ze_event_handle_t *wait;
};
ze_result_t sg_list_new(ze_context_handle_t context, struct sg_device *device, uint32_t ordinal,
			uint32_t flags, bool in_order, struct sg_list **ret);
void *sg_list_memory(struct sg_list *list, size_t size);
void sg_list_rewind(struct sg_list *list); /* all of its memory is free again */
ze_result_t sg_append_begin(ze_command_list_handle_t handle, enum sg_op op, const char *name,
			    const struct sg_wanted *wanted, struct sg_cmd **ret);
ze_result_t sg_append_end(ze_command_list_handle_t handle, struct sg_cmd *cmd);
/* a fork, or a join, if it is captured */
void sg_capture_wait(struct sg_list *list, const struct sg_event *event);
void sg_capture_appended(struct sg_list *list, struct sg_event *signal); /* the list is captured */

/* queue.c: the order in which commands may start, and who runs them */
struct sg_fence;
struct sg_task {
	struct sg_task *next, *previous;
	struct sg_cmd *cmd;
	struct sg_list *list;
	struct sg_fence *fence;
	uint64_t execution;
	bool running;
	/*
	 * as the command's: that may be gone with its list while the task still runs, when its
	 * event was seen
	 */
	bool after_all, before_all;
	/*
	 * of counter-based wait events: the signals that were asked for before this; NULL when none
	 * counts
	 */
	uint32_t few[4], *wanted;
};
struct sg_queue {
	struct sg_device *device;
	uint32_t ordinal, index;
	ze_command_queue_mode_t mode;
	struct sg_queue *next_queue;
	struct sg_task *head, *tail, *unused;
	_Atomic uint32_t pending;
	uint32_t workers;
	bool stop;
	pthread_t threads[SG_WORKERS_MAX];
	uint64_t base; /* ticks at its creation */
	/* virtual clock: ends of the last barrier, of all, of each worker's last */
	uint64_t barrier, latest, slots[SG_WORKERS_MAX];
	pthread_mutex_t virtual_lock;
};
struct sg_queue *sg_queue_new(struct sg_device *device, const ze_command_queue_desc_t *desc);
void sg_queue_destroy(struct sg_queue *queue);
void sg_queue_push(struct sg_queue *queue, struct sg_list *list, struct sg_cmd *cmd,
		   uint64_t execution);
void sg_queue_push_list(struct sg_queue *queue, struct sg_list *list);
/* NULL: only an end between lists */
void sg_queue_push_fence(struct sg_queue *queue, struct sg_fence *fence);
void sg_queue_go(struct sg_queue *queue);
bool sg_queue_idle(const void *queue);
/* end of all that it has executed, by the virtual clock */
uint64_t sg_queue_latest(struct sg_queue *queue);
/* on the calling thread, where that is how commands run: everything that can run */
void sg_pump(void);
void sg_changed(void); /* an event, a queue or a fence is not as it was */
void sg_fence_signal(struct sg_fence *fence, uint64_t tick);
extern pthread_mutex_t sg_lock;

/* run.c: one command, from its start to the signal of its event */
/* plus its size, in the second half of an argument that is local memory */
enum { SG_LOCAL_MARK = 1 << 30 };
void sg_run(struct sg_queue *queue, struct sg_list *list, struct sg_cmd *cmd, uint64_t execution,
	    bool counted);
/* of what the command names, if `counted` */
void sg_users(const struct sg_cmd *cmd, struct sg_list *list, int change);

/* streamer.c: while there are streamers, they want to know of each kernel */
bool sg_stream_start(const char *path);
bool sg_streaming(void);
int sg_stream_begin(const struct sg_device *device);
void sg_stream_end(int place, const struct sg_device *device, const struct sg_cmd *cmd,
		   const struct sg_span *span);

/* module.c */
struct sg_module;
struct sg_kernel {
	struct sg_module *module;
	const struct softgpu_kernel *entry;
	uint32_t size[3];
	size_t local; /* bytes of arguments that are local memory */
	ze_kernel_indirect_access_flags_t access;
	unsigned char args[SOFTGPU_ARG_SIZE * SOFTGPU_ARGS_MAX] __attribute__((aligned(16)));
};

/* memory.c */
struct sg_allocation {
	char *base;
	size_t size;
	off_t offset; /* in the device's memory, of those that have a place there */
	ze_memory_type_t type;
	struct sg_device *device;
	uint64_t id;
	bool mapped, ipc;
};
bool sg_find_allocation(const void *pointer, struct sg_allocation *ret);

/*
 * fault.c: what is made to fail. `sg_faults` is false in nearly every run, and then all of it costs
 * one test.
 */
extern bool sg_faults;
void sg_faults_start(const char *spec);
ze_result_t sg_fault(const char *function);
bool sg_device_lost(void);
void sg_fault_finish(uint64_t sequence, struct sg_event *event, const struct sg_span *span,
		     uint32_t tiles, uint64_t base);

/* First in every function of the API; its name is that of the API's function after "sg_". */
#define SG_ENTER()                                                                           \
	do {                                                                                 \
		ze_result_t sg_result_;                                                      \
		if (__builtin_expect(sg_faults, 0) && (sg_result_ = sg_fault(__func__ + 3))) \
			return sg_result_;                                                   \
	} while (0)
#define SG_HANDLE(handle)                                           \
	do {                                                        \
		if (!(handle))                                      \
			return ZE_RESULT_ERROR_INVALID_NULL_HANDLE; \
	} while (0)
#define SG_POINTER(pointer)                                          \
	do {                                                         \
		if (!(pointer))                                      \
			return ZE_RESULT_ERROR_INVALID_NULL_POINTER; \
	} while (0)

/* What most begin with: a handle, and where the result goes. */
#define SG_ENTER_WITH(handle, pointer) \
	do {                           \
		SG_ENTER();            \
		SG_HANDLE(handle);     \
		SG_POINTER(pointer);   \
	} while (0)

/* log.c: what was really executed */
extern bool sg_logging;
void sg_log_start(const char *path);
void sg_log(uint64_t sequence, const struct sg_queue *queue, const struct sg_list *list,
	    const struct sg_cmd *cmd, uint64_t execution, const struct sg_span *span);
void sg_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The rule of nearly all functions that give arrays: `*count` is what there is room for, and
 * becomes what there is.
 */
#define SG_GIVE(count, array, have, ...)                                          \
	do {                                                                      \
		uint32_t sg_have_ = (have);                                       \
		if ((array) && *(count))                                          \
			for (uint32_t i = 0; i < sg_have_ && i < *(count); i++) { \
				__VA_ARGS__;                                      \
			}                                                         \
		if (!*(count) || *(count) > sg_have_)                             \
			*(count) = sg_have_;                                      \
	} while (0)

/* the functions themselves, and those that give them to the loader */
#define SG_FN(version, function, member)    __typeof__(function) sg_##function;
#define SG_NEW(version, function, position) __typeof__(function) sg_##function;
#define SG_EXT(function)		    __typeof__(function) sg_##function;
#define SG_TABLE(getter, type)                                                              \
	__attribute__((visibility("default"))) ze_result_t getter(ze_api_version_t version, \
								  type *table);
#define SG_END
#include <level_zero/ze_ddi.h>
#include <level_zero/zes_ddi.h>
#include <level_zero/zet_ddi.h>
#include "api.def"
#undef SG_FN
#undef SG_NEW
#undef SG_EXT
#undef SG_TABLE
#undef SG_END

#endif
