/*
 * What CUPTI's profilers count. --metric-query: its range profiler makes a range of each kernel of
 * a context, and counts in it. --stall-sampling: its PC sampling.
 */
#ifndef XS_CUDA_PROFILER_H
#define XS_CUDA_PROFILER_H

#include "device_record.h"
#include "profiler_abi.h"
#include "xs_cuda.h"

struct xs_prof {
#define XS_PROF_MEMBER(name, type, last, theirs, member) CUptiResult (*name)(struct type *);
	XS_PROF_CALLS(XS_PROF_MEMBER)
#undef XS_PROF_MEMBER
};
extern struct xs_prof xs_prof;

/* The counters of a context, as long as a thread has them for itself. */
struct xs_counters {
	void *host, *object;
	const char *metrics[XS_METRICS_MAX + 1];
	uint32_t count, columns; /* of those that are shown, which come first */
	uint32_t all;		 /* with that of the kernel's time, which is at `time` */
	uint32_t time;		 /* UINT32_MAX: CUPTI does not know it */
	uint32_t ranges;	 /* that there is room for */
	uint8_t *config, *image;
	size_t config_bytes, image_bytes;
	size_t config_room, image_room; /* the memory stays when the counters end */
};

/* ---- counters.c ---- */

/* Gets counters for a context. False: there are none, which has been told. */
bool xs_counters_make(struct xs_counters *counters, CUcontext context, uint32_t ranges);
void xs_counters_end(struct xs_counters *counters);
/* From here on each kernel is a range. */
bool xs_counters_start(struct xs_counters *counters);
/* Not any more; returns how many ranges there are, UINT32_MAX: that is not known. */
uint32_t xs_counters_stop(struct xs_counters *counters);
/* Writes what was counted in a range. */
bool xs_counters_write(const struct xs_counters *counters, uint32_t range, uint32_t correlation);

/* ---- ranges.c ---- */

extern bool xs_cuda_ranges; /* they are wanted */

/* The driver's call that puts a kernel on a device begins, and ends. !kernel: a graph begins. */
void xs_cuda_range_enter(CUcontext context, uint32_t correlation, bool kernel);
void xs_cuda_range_leave(bool failed);
/* In that call: it becomes a node of a graph, nothing runs yet. */
void xs_cuda_range_captured(void);
/* A stream's capture is about to begin; it has ended, or has not begun. */
void xs_cuda_capture_begins(void);
void xs_cuda_capture_ends(void);
/* The context ends. */
void xs_cuda_range_context_ends(CUcontext context);
/* Nothing is counted any more. False: a launch that is counted goes on, and must be told to end. */
bool xs_cuda_ranges_end(void);

/* ---- stalls.c ---- */

extern bool xs_cuda_stalls; /* samples of instructions are wanted */

/* A kernel is about to be launched in this context. */
void xs_cuda_stalls_launch(CUcontext context);
/* Writes the samples that there are; for_good: also those that the hardware still holds. */
void xs_cuda_stalls_look(bool for_good);
void xs_cuda_stalls_context_ends(CUcontext context);

#endif
