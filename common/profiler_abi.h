/*
 * CUPTI's profiler: what we call of it, as the headers of CUDA 12.6 to 13.5 have it
 * (cupti_profiler_host.h, cupti_range_profiler.h, cupti_profiler_target.h, cupti_target.h; of what
 * is sampled by time pm_sampling_abi.h). Those of CUDA 12 are C++, and older ones lack them; so
 * they are declared here. The software CUDA's build compares each with the headers
 * (tests/softcuda/profiler_abi.c).
 *
 * A call takes a structure that begins with its own size: as long as CUDA 12.6 has it, which each
 * later version takes.
 */
#ifndef XS_PROFILER_ABI_H
#define XS_PROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>

struct xs_prof_head {
	size_t size;
	void *none; /* always NULL */
};

/* cuptiProfilerInitialize */
struct xs_prof_initialize {
	struct xs_prof_head head;
};

/* cuptiDeviceGetChipName */
struct xs_prof_chip {
	struct xs_prof_head head;
	size_t device;
	const char *name; /* returned */
};

/* ---- the host's side: which counters make a metric ---- */

#define XS_PROF_RANGES 0 /* CUPTI_PROFILER_TYPE_RANGE_PROFILER */

/* cuptiProfilerHostInitialize, cuptiProfilerHostDeinitialize (up to its object) */
struct xs_prof_host {
	struct xs_prof_head head;
	int type;
	const char *chip;
	const uint8_t *availability;
	void *object; /* returned */
};

struct xs_prof_host_end {
	struct xs_prof_head head;
	void *object;
};

/* cuptiProfilerHostGetMetricProperties */
struct xs_prof_properties {
	struct xs_prof_head head;
	void *object;
	const char *name;
	const char *description, *hardware, *unit; /* returned */
	int type;
};

/* cuptiProfilerHostConfigAddMetrics */
struct xs_prof_add {
	struct xs_prof_head head;
	void *object;
	const char **names;
	size_t count;
};

/* cuptiProfilerHostGetConfigImageSize */
struct xs_prof_config_size {
	struct xs_prof_head head;
	void *object;
	size_t bytes; /* returned */
};

/* cuptiProfilerHostGetConfigImage */
struct xs_prof_config {
	struct xs_prof_head head;
	void *object;
	size_t bytes;
	uint8_t *image;
};

/* cuptiProfilerHostEvaluateToGpuValues */
struct xs_prof_evaluate {
	struct xs_prof_head head;
	void *object;
	const uint8_t *image;
	size_t bytes, range;
	const char **names;
	size_t count;
	double *values;
};

/* ---- the device's side: ranges ---- */

#define XS_PROF_AUTO_RANGE    1 /* CUPTI_AutoRange: each kernel is one */
#define XS_PROF_KERNEL_REPLAY 2 /* CUPTI_KernelReplay: it runs as often as that takes */

/* cuptiRangeProfilerEnable */
struct xs_prof_enable {
	struct xs_prof_head head;
	void *context;
	void *object; /* returned */
};

/* cuptiRangeProfilerSetConfig */
struct xs_prof_set {
	struct xs_prof_head head;
	void *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t bytes;
	uint8_t *image;
	int range, replay;
	size_t ranges;
	uint16_t levels, least_level;
	size_t pass;
	uint16_t level;
};

/* cuptiRangeProfilerStart, cuptiRangeProfilerDisable */
struct xs_prof_object {
	struct xs_prof_head head;
	void *object;
};

/* cuptiRangeProfilerStop */
struct xs_prof_stop {
	struct xs_prof_head head;
	void *object;
	size_t pass, level; /* returned, as is the next */
	uint8_t all_submitted;
};

/* cuptiRangeProfilerDecodeData */
struct xs_prof_decode {
	struct xs_prof_head head;
	void *object;
	size_t dropped; /* returned */
};

/* cuptiRangeProfilerGetCounterDataSize */
struct xs_prof_data_size {
	struct xs_prof_head head;
	void *object;
	const char **names;
	size_t count, ranges;
	uint32_t nodes;
	size_t bytes; /* returned */
};

/* cuptiRangeProfilerCounterDataImageInitialize */
struct xs_prof_data {
	struct xs_prof_head head;
	void *object;
	size_t bytes;
	uint8_t *image;
};

/* cuptiRangeProfilerGetCounterDataInfo */
struct xs_prof_info {
	struct xs_prof_head head;
	const uint8_t *image;
	size_t bytes;
	size_t ranges; /* returned */
};

/* ---- samples of instructions (cupti_pcsampling.h, as CUDA 12 has it) ---- */

/* cuptiPCSamplingEnable, …Disable, …Start, …Stop */
struct xs_pc_context {
	struct xs_prof_head head;
	void *context;
};

/* cuptiPCSamplingGetNumStallReasons */
struct xs_pc_reason_count {
	struct xs_prof_head head;
	void *context;
	size_t *count;
};

/* cuptiPCSamplingGetStallReasons */
#define XS_PC_REASON_NAME 128u /* bytes that CUPTI writes of each */
struct xs_pc_reasons {
	struct xs_prof_head head;
	void *context;
	size_t count;
	uint32_t *index;
	char **names;
};

/* cuptiPCSamplingSetConfigurationAttribute */
enum xs_pc_attribute_type {
	XS_PC_PERIOD = 1,     /* uint32_t: 2 to this power cycles */
	XS_PC_REASONS = 2,    /* size_t, uint32_t *: indices of those that are wanted */
	XS_PC_MODE = 5,	      /* int */
	XS_PC_START_STOP = 6, /* uint32_t: 1: by cuptiPCSamplingStart and …Stop */
	XS_PC_BUFFER = 8      /* struct xs_pc_data *: for what is left at the end */
};
#define XS_PC_CONTINUOUS 1 /* the mode in which kernels run as without */
struct xs_pc_attribute {
	int type, result;
	uint64_t data[3];
};
struct xs_pc_configure {
	struct xs_prof_head head;
	void *context;
	size_t count;
	struct xs_pc_attribute *attributes;
};

/* cuptiPCSamplingGetData */
struct xs_pc_reason {
	uint32_t index, samples;
};
struct xs_pc { /* a place in a function */
	size_t size;
	uint64_t cubin, offset;
	uint32_t function, padding;
	char *name; /* shared with other records */
	size_t count;
	struct xs_pc_reason *reasons;
	uint32_t correlation, end;
};
struct xs_pc_data {
	size_t size, room;
	uint64_t samples, dropped;
	size_t count, left;
	uint64_t range;
	struct xs_pc *pc;
	uint64_t others;
	uint8_t full;
};
struct xs_pc_get {
	struct xs_prof_head head;
	void *context;
	void *data;
};

/* The bytes from the beginning of a structure to the end of its last member that is used. */
#define XS_PROF_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)NULL)->last))
#define XS_PROF_HEAD(type, last) .head.size = XS_PROF_SIZE(type, last)

/* name in libcupti, structure, its last member, the header's structure and that member there */
#define XS_PROF_CALLS(F)                                                                           \
	F(ProfilerInitialize, xs_prof_initialize, head, CUpti_Profiler_Initialize_Params, pPriv)   \
	F(DeviceGetChipName, xs_prof_chip, name, CUpti_Device_GetChipName_Params, pChipName)       \
	F(ProfilerHostInitialize, xs_prof_host, object, CUpti_Profiler_Host_Initialize_Params,     \
	  pHostObject)                                                                             \
	F(ProfilerHostDeinitialize, xs_prof_host_end, object,                                      \
	  CUpti_Profiler_Host_Deinitialize_Params, pHostObject)                                    \
	F(ProfilerHostGetMetricProperties, xs_prof_properties, type,                               \
	  CUpti_Profiler_Host_GetMetricProperties_Params, metricType)                              \
	F(ProfilerHostConfigAddMetrics, xs_prof_add, count,                                        \
	  CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics)                                 \
	F(ProfilerHostGetConfigImageSize, xs_prof_config_size, bytes,                              \
	  CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize)                          \
	F(ProfilerHostGetConfigImage, xs_prof_config, image,                                       \
	  CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage)                                 \
	F(ProfilerHostEvaluateToGpuValues, xs_prof_evaluate, values,                               \
	  CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues)                           \
	F(RangeProfilerEnable, xs_prof_enable, object, CUpti_RangeProfiler_Enable_Params,          \
	  pRangeProfilerObject)                                                                    \
	F(RangeProfilerSetConfig, xs_prof_set, level, CUpti_RangeProfiler_SetConfig_Params,        \
	  targetNestingLevel)                                                                      \
	F(RangeProfilerStart, xs_prof_object, object, CUpti_RangeProfiler_Start_Params,            \
	  pRangeProfilerObject)                                                                    \
	F(RangeProfilerStop, xs_prof_stop, all_submitted, CUpti_RangeProfiler_Stop_Params,         \
	  isAllPassSubmitted)                                                                      \
	F(RangeProfilerDisable, xs_prof_object, object, CUpti_RangeProfiler_Disable_Params,        \
	  pRangeProfilerObject)                                                                    \
	F(RangeProfilerDecodeData, xs_prof_decode, dropped, CUpti_RangeProfiler_DecodeData_Params, \
	  numOfRangeDropped)                                                                       \
	F(RangeProfilerGetCounterDataSize, xs_prof_data_size, bytes,                               \
	  CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize)                          \
	F(RangeProfilerCounterDataImageInitialize, xs_prof_data, image,                            \
	  CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData)                    \
	F(RangeProfilerGetCounterDataInfo, xs_prof_info, ranges,                                   \
	  CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges)

#define XS_PC_CALLS(F)                                                                            \
	F(PCSamplingEnable, xs_pc_context, context, CUpti_PCSamplingEnableParams, ctx)            \
	F(PCSamplingDisable, xs_pc_context, context, CUpti_PCSamplingDisableParams, ctx)          \
	F(PCSamplingStart, xs_pc_context, context, CUpti_PCSamplingStartParams, ctx)              \
	F(PCSamplingStop, xs_pc_context, context, CUpti_PCSamplingStopParams, ctx)                \
	F(PCSamplingGetNumStallReasons, xs_pc_reason_count, count,                                \
	  CUpti_PCSamplingGetNumStallReasonsParams, numStallReasons)                              \
	F(PCSamplingGetStallReasons, xs_pc_reasons, names, CUpti_PCSamplingGetStallReasonsParams, \
	  stallReasons)                                                                           \
	F(PCSamplingSetConfigurationAttribute, xs_pc_configure, attributes,                       \
	  CUpti_PCSamplingConfigurationInfoParams, pPCSamplingConfigurationInfo)                  \
	F(PCSamplingGetData, xs_pc_get, data, CUpti_PCSamplingGetDataParams, pcSamplingData)

#endif
