/*
 * CUDA, by CUPTI: what the files of this folder share.
 *
 * libcupti is opened when the driver is initialised (door.c), calls us for calls of the
 * application (calls.c), and fills buffers that the drain process reads (buffers.c). names.c knows
 * the names that its records point to.
 */
#ifndef XS_CUDA_H
#define XS_CUDA_H

#include <cupti.h>

#include "activity.h"
#include "blocked.h"
#include "collector.h"
#include "cuda_functions.h"
#include "sys.h"

/* What a call of a function means: generated, by CUPTI's numbers. */
#define XS_CUDA_ENQUEUES       1u  /* puts work on a device */
#define XS_CUDA_LAUNCHES       2u  /* of a kernel */
#define XS_CUDA_KERNELS	       4u  /* belongs to what --chrome-kernel-logging shows */
#define XS_CUDA_WAITS	       8u  /* waits for work, or makes an event that is waited for */
#define XS_CUDA_GRAPHS	       16u /* launches a graph */
#define XS_CUDA_SIZED	       32u /* copies or fills and goes on; argument 3: how much */
#define XS_CUDA_CAPTURE_BEGINS 64u
#define XS_CUDA_CAPTURE_ENDS   128u
#define XS_CUDA_CAPTURES       (XS_CUDA_CAPTURE_BEGINS | XS_CUDA_CAPTURE_ENDS)
extern const uint8_t xs_cuda_runtime_uses[XS_CUDA_runtime_COUNT];
extern const uint8_t xs_cuda_driver_uses[XS_CUDA_driver_COUNT];
/* Is it the error of a call that failed, and not an answer? */
bool xs_cuda_failed(int result);

/* -c: generated; before and after a call. */
void xs_cuda_in(struct xs_call *call, bool runtime, uint32_t id, const void *parameters);
void xs_cuda_out(const struct xs_call *call, bool runtime, uint32_t id, const void *parameters);

/* ---- door.c ---- */

/* The functions of libcupti; those of the second list may be NULL. */
#define XS_CUPTI_NEEDED(F)           \
	F(GetVersion)                \
	F(Subscribe)                 \
	F(Unsubscribe)               \
	F(EnableCallback)            \
	F(EnableDomain)              \
	F(ActivityRegisterCallbacks) \
	F(ActivityEnable)            \
	F(ActivityFlushAll)          \
	F(ActivityGetNextRecord)     \
	F(ActivityGetNumDroppedRecords)
#define XS_CUPTI_OPTIONAL(F)                 \
	F(GetResultString)                   \
	F(GetTimestamp)                      \
	F(GetContextId)                      \
	F(GetDeviceId)                       \
	F(GetStreamIdEx)                     \
	F(ActivityDisable)                   \
	F(ActivityEnableLatencyTimestamps)   \
	F(ActivityRegisterTimestampCallback) \
	F(ActivityConfigureUnifiedMemoryCounter)

/* From CUPTI 13.3 on each subscriber has calls of its own; our headers may be older. */
struct xs_cupti_later {
	CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *, void *);
	CUptiResult (*register_callbacks)(CUpti_SubscriberHandle, void *, void *);
	CUptiResult (*enable)(CUpti_SubscriberHandle, CUpti_ActivityKind, void *);
	CUptiResult (*disable)(CUpti_SubscriberHandle, CUpti_ActivityKind, void *);
	CUptiResult (*next_record)(CUpti_SubscriberHandle, uint8_t *, size_t, CUpti_Activity **);
	CUptiResult (*dropped)(CUpti_SubscriberHandle, CUcontext, uint32_t, size_t *);
};

struct xs_cupti {
#define XS_CUPTI_MEMBER(name) __typeof__(&cupti##name) name;
	XS_CUPTI_NEEDED(XS_CUPTI_MEMBER)
	XS_CUPTI_OPTIONAL(XS_CUPTI_MEMBER)
#undef XS_CUPTI_MEMBER
	struct xs_cupti_later later;
	void *library; /* for functions of CUPTI that are rarely needed */
	CUpti_SubscriberHandle subscriber;
	bool several; /* the later ones are used */
	/* enum xs_cuda_stage: a program has come that wants CUPTI for itself (theirs.c) */
	_Atomic uint32_t stage;
};
enum xs_cuda_stage {
	XS_CUDA_GOES_ON,
	XS_CUDA_LEAVES, /* CUPTI gets no more buffers of ours */
	XS_CUDA_HAS_LEFT,
};
extern struct xs_cupti xs_cupti;
/* Whose buffers and callbacks they are: a child that is forked has none. */
extern pid_t xs_cuda_owner;
/* No: also in a process that may make no system call any more. */
static inline bool xs_cuda_own_process(void)
{
	return xs_sys(SYS_getpid) == (long)xs_cuda_owner;
}

/* ---- library.c ---- */

/* Finds and opens libcupti. False: *ret_why says why not. */
bool xs_cupti_open(const char **ret_why);
/* From here on CUPTI tells of this kind of activity. */
CUptiResult xs_cuda_enable(CUpti_ActivityKind kind);
bool xs_cuda_has_enabled(CUpti_ActivityKind kind);
/* From here on CUPTI tells of nothing that was asked for so; `but`: bit n, kind n stays. */
void xs_cuda_disable(uint64_t but);

/* ---- calls.c ---- */

void CUPTIAPI xs_cuda_on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			      const void *data);
/* Calls that a thread has left are counted when it ends, or the process does. */
void xs_cuda_watch_ends(void);

/* ---- asked.c ---- */

struct xs_cuda_asked {
	/* which calls are shown */
	bool all, kernels, enqueues;
	/* hardware counters are read */
	bool profiles;
	/* uses: the drain process is told the numbers of such calls */
	uint8_t correlated;
};
extern struct xs_cuda_asked xs_cuda_asked;
/* Asks for the calls that the options need. */
CUptiResult xs_cuda_enable_calls(const struct xs_options *options);
/* The process may have been resumed: from now on they are told. */
void xs_cuda_resumed(void);

/* ---- buffers.c ---- */

/* Makes the file that tells of the others; NULL: no memory. */
struct xs_activity_file *xs_cuda_activity(void);
/* Asks for the activity that the options need. their_clock: CUPTI has one of the program's. */
CUptiResult xs_cuda_enable_activity(const struct xs_options *options, bool their_clock);
/* From the stage XS_CUDA_LEAVES on: no buffer is on its way to CUPTI, and no records are asked for
 * but those of the kinds in `but`. */
void xs_cuda_stop_activity(uint64_t but);
/* Is this a buffer that CUPTI has of ours? Then we have it again. */
bool xs_cuda_take_back(const uint8_t *data, size_t valid);
/* Is CUDA traced in this very process, and may it be called? */
bool xs_cuda_alive(void);
/* CUPTI hands back all that it has; may never return. */
void xs_cuda_flush(void);
/* CUPTI fills in what has run, and hands back buffers in which nothing is open. */
void xs_cuda_flush_some(void);

/* ---- managed.c ---- */

/* Asks for what is to be told of managed memory. CUPTI may know no device before there is a
 * context. */
void xs_cuda_enable_managed(void);
/* Is it still to be asked for? */
bool xs_cuda_awaits_context(void);
/* There is a context now. */
void xs_cuda_context_made(void);

/* ---- objects.c ---- */

/* From here on what the program calls its streams, contexts and devices is told. */
void xs_cuda_take_names(struct xs_activity_file *file);

/* ---- own.c ---- */

/* Are the thread's calls our own, and nobody's to see? */
extern __thread bool xs_cuda_is_ours __attribute__((tls_model("initial-exec")));

/* ---- flusher.c ---- */

/* Has xs_cuda_flush() called when the program ends, or its trace does: each time for a limited
 * time. */
void xs_cuda_flush_at_ends(void);
/* Has xs_cuda_flush() called, now, for a limited time; from then on nothing of this file is. */
void xs_cuda_flush_last(void);
/* A call has put work on a device, or has waited for some: has xs_cuda_flush_some() called. */
void xs_cuda_worked(void);

/* ---- names.c ---- */

/* The id of a function's name, which the driver keeps as long as its module is loaded. */
uint32_t xs_cuda_symbol(const char *symbol);
/* A module is unloaded: another name may come to lie where one of its own was. */
void xs_cuda_forget_symbols(void);
/* The names that the records of a buffer point to. */
void xs_cuda_learn_names(struct xs_activity_file *file, const unsigned char *data, uint64_t bytes);
/* Interns what the drain process shows. */
void xs_cuda_texts(struct xs_activity_file *file);

#endif
