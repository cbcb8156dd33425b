/* common/profiler_abi.h and pm_sampling_abi.h say what CUPTI's headers say. */
#include "counters.h"

#include <assert.h>
#include <cupti_pcsampling.h>
#include <cupti_pmsampling.h>

#include "pm_sampling_abi.h"

#define SAME(name, ours, last, theirs, member)                                             \
	static_assert(XS_PROF_SIZE(ours, last) ==                                          \
			      offsetof(theirs, member) + sizeof(((theirs *)NULL)->member), \
		      #name);
XS_PROF_CALLS(SAME)
XS_PC_CALLS(SAME)
XS_PM_CALLS(SAME)

static_assert(XS_PROF_RANGES == CUPTI_PROFILER_TYPE_RANGE_PROFILER, "type");
static_assert(XS_PROF_AUTO_RANGE == CUPTI_AutoRange, "range");
static_assert(XS_PROF_KERNEL_REPLAY == CUPTI_KernelReplay, "replay");
#define AT(ours, member, theirs, their_member) \
	static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member), #member);
AT(xs_prof_set, range, CUpti_RangeProfiler_SetConfig_Params, range)
AT(xs_prof_set, ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass)
AT(xs_prof_set, levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels)
AT(xs_prof_set, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex)
AT(xs_prof_set, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage)
AT(xs_prof_host, chip, CUpti_Profiler_Host_Initialize_Params, pChipName)
AT(xs_prof_properties, unit, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit)
AT(xs_prof_evaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex)
AT(xs_prof_data_size, nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes)
AT(xs_pc_attribute, data, CUpti_PCSamplingConfigurationInfo, attributeData)
AT(xs_pc, name, CUpti_PCSamplingPCData, functionName)
AT(xs_pc, reasons, CUpti_PCSamplingPCData, stallReason)
AT(xs_pc_data, pc, CUpti_PCSamplingData, pPcData)
AT(xs_pc_data, full, CUpti_PCSamplingData, hardwareBufferFull)
AT(xs_pc_reason, samples, CUpti_PCSamplingStallReason, samples)
static_assert(sizeof(struct xs_pc) == sizeof(CUpti_PCSamplingPCData), "an array of them");
static_assert(sizeof(struct xs_pc_attribute) == sizeof(CUpti_PCSamplingConfigurationInfo),
	      "an array of them");
static_assert(sizeof(struct xs_pc_reason) == sizeof(CUpti_PCSamplingStallReason),
	      "an array of them");
static_assert(XS_PC_REASON_NAME == CUPTI_STALL_REASON_STRING_SIZE, "names");
#define TYPE(ours, theirs)                                                                  \
	static_assert((int)ours == (int)CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_##theirs, \
		      #theirs);
TYPE(XS_PC_PERIOD, SAMPLING_PERIOD)
TYPE(XS_PC_REASONS, STALL_REASON)
TYPE(XS_PC_MODE, COLLECTION_MODE)
TYPE(XS_PC_START_STOP, ENABLE_START_STOP_CONTROL)
TYPE(XS_PC_BUFFER, SAMPLING_DATA_BUFFER)
static_assert((int)XS_PC_CONTINUOUS == (int)CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS, "mode");

AT(xs_pm_config, config, CUpti_PmSampling_SetConfig_Params, pConfig)
AT(xs_pm_config, buffer, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize)
AT(xs_pm_config, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval)
AT(xs_pm_config, trigger, CUpti_PmSampling_SetConfig_Params, triggerMode)
AT(xs_pm_decode, reason, CUpti_PmSampling_DecodeData_Params, decodeStopReason)
AT(xs_pm_availability, bytes, CUpti_PmSampling_GetCounterAvailability_Params,
   counterAvailabilityImageSize)
AT(xs_pm_data_size, samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples)
AT(xs_pm_sample, index, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sampleIndex)
AT(xs_pm_sample, start, CUpti_PmSampling_CounterData_GetSampleInfo_Params, startTimestamp)
AT(xs_pm_passes, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage)
static_assert(XS_PROF_PM_SAMPLING == CUPTI_PROFILER_TYPE_PM_SAMPLING, "type");
static_assert((int)XS_PM_BY_NS == (int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL, "trigger");
static_assert((int)XS_PM_BY_CYCLES == (int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL,
	      "trigger");
static_assert(XS_PM_KEEP_OLDEST == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST,
	      "append");
static_assert(XS_PM_IMAGE_FULL == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL, "reason");
static_assert(XS_CUPTI_OUT_OF_MEMORY == CUPTI_ERROR_OUT_OF_MEMORY, "result");
static_assert(XS_CUPTI_NOT_SUPPORTED == CUPTI_ERROR_NOT_SUPPORTED, "result");
static_assert(XS_CUPTI_INSUFFICIENT_PRIVILEGES == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "result");
