/*
 * The software CUDA's profiler of counters: metrics that are known functions of what ran.
 */
#ifndef SOFTCUDA_COUNTERS_H
#define SOFTCUDA_COUNTERS_H

#include "profiler.h"

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

/* What is counted of a range: all that the metrics are made of. */
struct su_counts {
	uint64_t ns, blocks, threads, kernels;
	uint64_t start, period; /* of a sample of a device: `ns` of it were busy */
};

enum { SU_METRICS_MAX = 64 };

/* What cuptiProfilerHostGetConfigImage() makes: which metrics are scheduled. */
struct su_config {
	uint64_t magic;
	uint32_t calls, count, metric[SU_METRICS_MAX];
};

/* Where counts are decoded to. */
struct su_image {
	uint64_t magic;
	size_t ranges, most;
	struct su_counts of[];
};
#define SU_CONFIG_MAGIC 0x6766636564756375u
#define SU_IMAGE_MAGIC	0x676d696564756375u

/* What each call begins with: it takes structures that are shorter by members that came later. */
#define TAKES(params, type, last)                                                                \
	do {                                                                                     \
		SU_BEGIN();                                                                      \
		if (!(params) || (params)->pPriv || (params)->structSize < offsetof(type, last)) \
			return CUPTI_ERROR_INVALID_PARAMETER;                                    \
	} while (0)

/* -1: it is not known */
int su_metric_named(const char *name);
/* How often a kernel would have to run for all of the metrics. */
size_t su_passes(const struct su_config *config);
void su_ranges_begin(const struct sc_call *call);
void su_ranges_end(const struct sc_call *call);
void su_ranges_executed(const struct sc_cmd *cmd);
/* CUPTI makes threads here: a note if they would get the program's signals. */
void su_makes_threads(void);
bool su_ranging(void);
/* Are the context's kernels ranges now? */
bool su_ranged(const struct sc_context *context);
bool su_sampling(void);
void su_sampling_executed(const struct sc_cmd *cmd);

#endif
