/*
 * CUPTI's sampling of counters by time: what we call of it, as the headers of CUDA 12.6 to 13.5
 * have it (cupti_pmsampling.h, cupti_profiler_host.h), and of CUDA's driver (cuda.h, since CUDA 4).
 * Declared here for the reasons that profiler_abi.h gives; the software CUDA's build compares each
 * with the headers (tests/softcuda/profiler_abi.c).
 */
#ifndef XS_PM_SAMPLING_ABI_H
#define XS_PM_SAMPLING_ABI_H

#include "profiler_abi.h"

#define XS_PROF_PM_SAMPLING 1 /* CUPTI_PROFILER_TYPE_PM_SAMPLING */

/* CUptiResult */
#define XS_CUPTI_OUT_OF_MEMORY		 8
#define XS_CUPTI_NOT_SUPPORTED		 27
#define XS_CUPTI_INSUFFICIENT_PRIVILEGES 35

/* cuptiProfilerHostGetNumOfPasses */
struct xs_pm_passes {
	struct xs_prof_head head;
	size_t bytes;
	uint8_t *image;
	size_t passes; /* returned */
};

/* cuptiPmSamplingGetCounterAvailability: without an image, how long it is */
struct xs_pm_availability {
	struct xs_prof_head head;
	size_t device, bytes;
	uint8_t *image;
};

/* cuptiPmSamplingEnable */
struct xs_pm_enable {
	struct xs_prof_head head;
	size_t device;
	void *object; /* returned */
};

/* cuptiPmSamplingSetConfig */
enum xs_pm_trigger { XS_PM_BY_CYCLES, XS_PM_BY_NS };
#define XS_PM_KEEP_OLDEST 0
struct xs_pm_config {
	struct xs_prof_head head;
	void *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t buffer;	   /* bytes of the device's memory for samples */
	uint64_t interval; /* as the trigger says */
	int trigger, append;
};

/* cuptiPmSamplingStart, …Stop, …Disable */
struct xs_pm_object {
	struct xs_prof_head head;
	void *object;
};

/* cuptiPmSamplingDecodeData */
#define XS_PM_IMAGE_FULL 1 /* the reason why it stopped */
struct xs_pm_decode {
	struct xs_prof_head head;
	void *object;
	uint8_t *image;
	size_t bytes;
	int reason; /* returned, as is the next */
	uint8_t overflow;
};

/* cuptiPmSamplingGetCounterDataSize */
struct xs_pm_data_size {
	struct xs_prof_head head;
	void *object;
	const char **names;
	size_t count;
	uint32_t samples;
	size_t bytes; /* returned */
};

/* cuptiPmSamplingCounterDataImageInitialize */
struct xs_pm_data {
	struct xs_prof_head head;
	void *object;
	size_t bytes;
	uint8_t *image;
};

/* cuptiPmSamplingGetCounterDataInfo */
struct xs_pm_info {
	struct xs_prof_head head;
	const uint8_t *image;
	size_t bytes;
	size_t total, populated, completed; /* returned */
};

/* cuptiPmSamplingCounterDataGetSampleInfo */
struct xs_pm_sample {
	struct xs_prof_head head;
	void *object;
	const uint8_t *image;
	size_t bytes, index;
	uint64_t start, end; /* returned */
};

/* as XS_PROF_CALLS */
#define XS_PM_CALLS(F)                                                                             \
	F(ProfilerHostGetNumOfPasses, xs_pm_passes, passes,                                        \
	  CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses)                                  \
	F(PmSamplingGetCounterAvailability, xs_pm_availability, image,                             \
	  CUpti_PmSampling_GetCounterAvailability_Params, pCounterAvailabilityImage)               \
	F(PmSamplingEnable, xs_pm_enable, object, CUpti_PmSampling_Enable_Params,                  \
	  pPmSamplingObject)                                                                       \
	F(PmSamplingDisable, xs_pm_object, object, CUpti_PmSampling_Disable_Params,                \
	  pPmSamplingObject)                                                                       \
	F(PmSamplingSetConfig, xs_pm_config, append, CUpti_PmSampling_SetConfig_Params,            \
	  hwBufferAppendMode)                                                                      \
	F(PmSamplingStart, xs_pm_object, object, CUpti_PmSampling_Start_Params, pPmSamplingObject) \
	F(PmSamplingStop, xs_pm_object, object, CUpti_PmSampling_Stop_Params, pPmSamplingObject)   \
	F(PmSamplingDecodeData, xs_pm_decode, overflow, CUpti_PmSampling_DecodeData_Params,        \
	  overflow)                                                                                \
	F(PmSamplingGetCounterDataSize, xs_pm_data_size, bytes,                                    \
	  CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize)                             \
	F(PmSamplingCounterDataImageInitialize, xs_pm_data, image,                                 \
	  CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData)                       \
	F(PmSamplingGetCounterDataInfo, xs_pm_info, completed,                                     \
	  CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples)                         \
	F(PmSamplingCounterDataGetSampleInfo, xs_pm_sample, end,                                   \
	  CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp)

/* Those of profiler_abi.h that it needs, too. */
#define XS_PM_HOST_CALLS(F)                                    \
	F(ProfilerInitialize, xs_prof_initialize)              \
	F(DeviceGetChipName, xs_prof_chip)                     \
	F(ProfilerHostInitialize, xs_prof_host)                \
	F(ProfilerHostDeinitialize, xs_prof_host_end)          \
	F(ProfilerHostGetMetricProperties, xs_prof_properties) \
	F(ProfilerHostConfigAddMetrics, xs_prof_add)           \
	F(ProfilerHostGetConfigImageSize, xs_prof_config_size) \
	F(ProfilerHostGetConfigImage, xs_prof_config)          \
	F(ProfilerHostEvaluateToGpuValues, xs_prof_evaluate)

#endif
