/*
 * The software CUDA's driver (libcuda.so.1) and what it offers to its runtime and its CUPTI: the
 * objects, the commands that streams execute, and the hooks of a tool. README.md tells what it
 * does and its settings.
 */
#ifndef SOFTCUDA_DRIVER_H
#define SOFTCUDA_DRIVER_H

#include "softcuda.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SC_SHARED	       __attribute__((visibility("default")))
#define SC_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum { SC_DEVICES_MAX = 8, SC_NAME_MAX = 256, SC_ARG_BYTES_MAX = 256 };
enum sc_domain { SC_DRIVER = 1, SC_RUNTIME = 2 }; /* as CUPTI numbers them */

/* ---- settings ---- */

struct sc_config {
	unsigned devices, first, mig;
	bool sync, asks_kernel, tells_within, no_driver, insufficient_driver;
	bool durations;
	int driver_version, cupti_version;
	uint64_t memory, lost_after;
	unsigned late_ms, flush_ms, out_of_order, drop_every, cut_every;
};
extern SC_SHARED struct sc_config sc_config;
void sc_config_start(void);

/* ---- calls of the API, and what is asked to be told of them ---- */

enum {
	SC_LOGGING = 1,	 /* the truth */
	SC_FAULTS = 2,	 /* calls that are to fail */
	SC_CALLS = 4,	 /* a tool wants the calls */
	SC_DEVICE = 8,	 /* a tool wants what devices do */
	SC_HISTORY = 32, /* what samples devices wants it */
	SC_CHECKED = 16, /* a device may be lost, or the process is a child of fork */
};
extern SC_SHARED _Atomic unsigned sc_slow_flags;

struct sc_call {
	struct sc_call *outer;
	enum sc_domain domain;
	uint32_t cbid, corr, thread;
	const char *name, *symbol;
	const void *params;
	int *ret;
	uint64_t start, end;
	uint64_t data[4]; /* of each subscriber, from the beginning of the call to its end */
	bool told;
};

struct sc_name {
	const char *name;
	void *function;
};
extern const struct sc_name sc_driver_names[], sc_runtime_names[];

static inline bool sc_slow(void)
{
	return SC_UNLIKELY(atomic_load_explicit(&sc_slow_flags, memory_order_relaxed) != 0);
}
bool sc_call_begin(struct sc_call *call) SC_SHARED; /* false: the call fails as *call->ret says */
void sc_call_end(struct sc_call *call) SC_SHARED;
uint32_t sc_correlation(void) SC_SHARED; /* of the call that this thread is in, or 0 */
uint32_t sc_thread(void) SC_SHARED;
extern SC_SHARED uint32_t sc_pid;	  /* which costs no system call */
int sc_fault(const char *name) SC_SHARED; /* the result that this call is to have, or -1 */
bool sc_faults_start(const char *list);

/* ---- clock and truth ---- */

extern SC_SHARED uint64_t (*_Atomic sc_clock)(void); /* what everything is stamped with */
uint64_t sc_raw_ns(void);
static inline uint64_t sc_now(void)
{
	return atomic_load_explicit(&sc_clock, memory_order_relaxed)();
}
void sc_log_start(const char *path);
void sc_log_note(const char *format, ...) SC_SHARED __attribute__((format(printf, 1, 2)));

/* ---- objects ---- */

struct sc_device {
	int ordinal;
	char name[64], pci[24];
	CUuuid uuid;
	struct sc_context *primary;
	unsigned retained;
	_Atomic uint64_t used;
	_Atomic bool lost;
};
extern SC_SHARED struct sc_device sc_devices[SC_DEVICES_MAX];

struct sc_context {
	struct sc_context *next;
	uint32_t id, flags;
	bool ended;
	struct sc_device *device;
	struct sc_stream *null_stream, *streams;
};

struct sc_stream {
	struct sc_stream *next;
	uint32_t id, flags;
	int priority;
	struct sc_context *context;
	struct sc_graph *capture;
	pthread_t worker;
	bool working, leaving;
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	struct sc_cmd *ring;
	uint64_t head, tail; /* of commands that were put in, and that are done */
};

struct sc_event {
	uint32_t id, flags;
	struct sc_context *context;
	struct sc_stream *stream;
	struct sc_graph *captured;
	_Atomic uint64_t asked, done; /* how often it was recorded */
	_Atomic uint64_t time_ns, sync_id;
};

struct sc_module {
	uint32_t id;
	void *handle;
	struct sc_function *functions;
};

struct sc_function {
	struct sc_function *next;
	struct sc_module *module;
	char name[SC_NAME_MAX];
	softcuda_kernel run;
	bool sized; /* the sizes of its arguments are known */
	struct softcuda_info info;
	uint64_t duration_ns;
};

/* ---- commands ---- */

enum sc_kind {
	SC_KERNEL,
	SC_COPY,
	SC_PEER,
	SC_SET,
	SC_HOST,
	SC_RECORD,
	SC_WAIT,
	SC_GRAPH,
	SC_EMPTY,
	SC_KINDS
};
enum { SC_PAGEABLE = 1, SC_PINNED = 2, SC_ON_DEVICE = 3, SC_MANAGED = 5 }; /* as CUPTI's */

struct sc_cmd {
	enum sc_kind kind;
	uint32_t corr, thread;
	struct sc_context *context;
	struct sc_stream *stream;
	uint32_t graph_id, source_graph_id;
	uint64_t node_id, source_node_id;
	uint64_t queued, submitted, start, end;
	struct sc_function *function;
	unsigned grid[3], block[3], cluster[3];
	unsigned shared;
	uint8_t copy_kind;
	uint64_t bytes;
	void **args;
	/* a launch of a kernel leaves what follows as it is */
	void *to;
	const void *from;
	uint8_t from_kind, to_kind;
	bool async;
	int from_device, to_device;
	uint32_t value, value_size;
	struct sc_event *event;
	uint64_t recording;   /* of that event: which */
	struct sc_exec *exec; /* of SC_GRAPH */
	const struct sc_node *node;
	void (*host)(void *);
	void *host_data;
	void *arg_at[SOFTCUDA_ARGS_MAX];
	unsigned char arg_bytes[SC_ARG_BYTES_MAX];
};

CUresult sc_submit(struct sc_cmd *cmd);
void sc_execute(struct sc_cmd *cmd);
void sc_log_command(const struct sc_cmd *cmd, uint64_t raw_start, uint64_t raw_end);
CUresult sc_stream_drain(struct sc_stream *stream) SC_SHARED;
void sc_stream_end(struct sc_stream *stream);
struct sc_stream *sc_stream_make(struct sc_context *context, unsigned flags, int priority);
struct sc_stream *sc_stream_of(CUstream handle) SC_SHARED;
bool sc_stream_idle(struct sc_stream *stream);
bool sc_event_done(const struct sc_event *event);
extern SC_SHARED _Atomic unsigned sc_captures_broken; /* how often all that went on were ended */
CUresult sc_capture(struct sc_stream *stream, const struct sc_cmd *cmd);
void sc_graph_run(const struct sc_cmd *cmd);
bool sc_keep_args(struct sc_cmd *kept);

/* ---- contexts, memory, modules ---- */

CUresult sc_ready(void) SC_SHARED; /* of the driver, of this process */
struct sc_context *sc_current(void) SC_SHARED;
struct sc_context *sc_context_make(struct sc_device *device, unsigned flags);
void sc_context_end(struct sc_context *context);
extern SC_SHARED struct sc_context *sc_contexts;

struct sc_block {
	void *at;
	uint64_t bytes;
	int device; /* -1: none */
	uint8_t kind;
	bool pooled;
	int location; /* of managed memory: the device, or -1 for the host */
};
/* a kernel that uses managed memory makes it migrate */
void sc_managed_used(const struct sc_cmd *cmd);
bool sc_block_of(const void *at, struct sc_block *block) SC_SHARED;
struct sc_function *sc_function_of(CUfunction handle) SC_SHARED;
struct sc_module *sc_module_make(const void *image, bool name) SC_SHARED;
struct sc_function *sc_function_find(struct sc_module *module, const char *name) SC_SHARED;

/* ---- the tool: libcupti fills in what it wants to be told ---- */

struct sc_synced {
	int type; /* as CUPTI's */
	struct sc_context *context;
	struct sc_stream *stream;
	struct sc_event *event;
	uint64_t start, end;
	int result;
};

struct sc_allocated {
	bool freed, managed_or_pinned;
	struct sc_block block;
	struct sc_context *context;
	struct sc_stream *stream;
	uint64_t time;
};

enum { SC_POOL_CREATED = 1, SC_POOL_DESTROYED = 2, SC_POOL_TRIMMED = 3 }; /* as CUPTI's */

struct sc_pool {
	int device;
	uint64_t used, kept, threshold;
};

/* managed memory that moved: to a device because it asked (a fault), or as it was told to */
struct sc_migrated {
	struct sc_block block;
	uint64_t bytes, start, end;
	int from, to; /* -1: the host */
	bool fault;
	struct sc_stream *stream;
};

/* something happened to a graph, with what is known of it */
struct sc_graph_told {
	int cbid; /* CUPTI's resource callback */
	struct sc_graph *graph, *original;
	struct sc_node *node, *original_node, *dependency;
	struct sc_exec *exec;
};

struct sc_tool {
	void (*enter)(struct sc_call *call);
	void (*leave)(struct sc_call *call);
	void (*executed)(const struct sc_cmd *cmd);
	void (*resource)(int cbid, struct sc_context *context, struct sc_stream *stream,
			 void *what);
	void (*synced)(const struct sc_synced *synced);
	void (*allocated)(const struct sc_allocated *allocated);
	void (*graph)(const struct sc_graph_told *told);
	void (*migrated)(const struct sc_migrated *migrated);
	void (*pool)(const struct sc_pool *pool, int operation);
	void (*recorded)(const struct sc_event *event, const struct sc_cmd *cmd);
	void (*compiled)(const struct sc_module *module, uint64_t start, uint64_t end);
};
extern SC_SHARED struct sc_tool sc_tool;
/* of the kernel that a function of the program stands for; the runtime's, once it is loaded */
extern SC_SHARED const char *(*sc_runtime_name)(const void *host);
void sc_flag(unsigned flag, bool on) SC_SHARED;

#define SC_TELL(name, ...)                             \
	do {                                           \
		if (SC_UNLIKELY(sc_tool.name != NULL)) \
			sc_tool.name(__VA_ARGS__);     \
	} while (0)

#endif
